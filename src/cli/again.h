/* again.h - the same command over and over: --watch. */
#pragma once

struct cli_args;
struct cli_io;

typedef int again_fn(const struct cli_io *io, const struct cli_args *args);

/* Run `once` every --watch seconds until Ctrl-C, which is exit code 0. On a terminal each round is drawn over the one before; elsewhere
 * they follow one another. Returns when a round fails: the first one in any way, a later one other than by a server that is away. */
int again_run(const struct cli_io *io, const struct cli_args *args, again_fn *once);
