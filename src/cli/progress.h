/* progress.h - a line on the terminal that says what is being waited for, and for how long. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct cli_io;

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
