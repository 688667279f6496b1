/* io.h - what a command may touch of the process around it, and how it ends. */
#pragma once

#include <stdio.h>

#include "base/clock.h"

/* CLI_EXIT_OK, CLI_EXIT_REFUSED ... */
enum cli_exit {
#define EXIT_CODE(id, number, help) CLI_EXIT_##id = number,
#include "cli/term/commands.def"
};

/* What a run may touch of the process around it. */
struct cli_io {
	FILE *in, *out, *err;
	bool  is_in_terminal;  /* then, with is_err_terminal, somebody can be asked */
	bool  is_out_terminal; /* then colour, unless NO_COLOR is set */
	bool  is_err_terminal; /* then progress while waiting */
	const char *(*env)(const char *name);
	const struct clock *clock;
	int                 poll_ms; /* between two polls of something that takes long */
	size_t              width;   /* columns of out; 0 when it is no terminal: then nothing is cut */
};
