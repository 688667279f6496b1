/* serve.h - the server process: puts everything together, runs until it is told to stop. */
#pragma once

#include <stdbool.h>

struct config;

struct serve_options {
	bool is_dev;
	bool may_init;     /* make a store where there is none */
	bool accepts_loss; /* start although the log of the store has lost commits */
};

/* Returns the process's exit code. */
int serve(struct config *config, const struct serve_options *o);
