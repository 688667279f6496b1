/* cli.h - the command line client: everything it does, it does through the server's HTTP API. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"

/* CLI_EXIT_OK, CLI_EXIT_REFUSED ... */
enum cli_exit {
#define EXIT_CODE(id, number, help) CLI_EXIT_##id = number,
#include "cli/commands.def"
};

/* What a run may touch of the process around it. */
struct cli_io {
	FILE *in;
	FILE *out;
	FILE *err;
	bool  is_in_terminal;  /* then, with is_err_terminal, somebody can be asked */
	bool  is_out_terminal; /* then colour, unless NO_COLOR is set */
	bool  is_err_terminal; /* then progress while waiting */
	const char *(*env)(const char *name);
	const struct clock *clock;
	int                 poll_ms; /* between two looks at something that takes long */
};

/* Every command but those of the server program: serve, config, store, version, sandbox states. Returns the process's
 * exit code, one of enum cli_exit. */
int cli_main(int argc, char **argv);

/* The same with everything given. */
int cli_run(const struct cli_io *io, int argc, char **argv);
