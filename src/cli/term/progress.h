/* progress.h - a line on the terminal that says what is being waited for, and for how long; --watch. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct cli_args;

struct progress {
	const struct cli_io *io;
	const char          *text;
	bool                 is_shown; /* a thread is running */
	bool                 is_over;  /* under the lock */
	pthread_t            thread;
	pthread_mutex_t      lock;
	pthread_cond_t       ended;
};

/* Shows nothing when standard error is not a terminal, and nothing in the first second. text must stay valid. */
void progress_start(struct progress *p, const struct cli_io *io, const char *text);

/* Takes the line away. */
void progress_stop(struct progress *p);

typedef int refresh_fn(const struct cli_io *io, const struct cli_args *args);

/* Run `once` every --watch seconds until Ctrl-C, which is exit code 0. On a terminal each round is drawn over the one
 * before; elsewhere they follow one another. Returns when a round fails: the first one in any way, a later one in any
 * way but that the server is away. */
int refresh_run(const struct cli_io *io, const struct cli_args *args, refresh_fn *once);
