/* cli.h - the command line client: everything it does, it does through the server's HTTP API. */
#pragma once

#include "cli/term/io.h"

/* Every command but those of the server program: serve, config, store, version, sandbox states. Returns the process's
 * exit code, one of enum cli_exit. */
int cli_main(int argc, char **argv);

/* The same with everything given. */
int cli_run(const struct cli_io *io, int argc, char **argv);
