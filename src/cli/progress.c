/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - a thread that counts the seconds, because the request it speaks of blocks.
 *
 * Only this thread writes to the terminal between start and stop, so lines do not mix.
 */
#include "cli/progress.h"

#include <stdio.h>
#include <time.h>

#include "cli/cli.h"

static void *count_seconds(void *arg)
{
	struct progress *p = arg;
	struct timespec  next;
	bool             is_drawn = false;

	clock_gettime(CLOCK_MONOTONIC, &next);
	pthread_mutex_lock(&p->lock);
	for (int seconds = 1; !p->is_over; seconds++) {
		next.tv_sec++;
		while (!p->is_over && pthread_cond_timedwait(&p->ended, &p->lock, &next) == 0)
			;
		if (p->is_over)
			break;
		fprintf(p->io->err, "\r%s ... %d s", p->text, seconds);
		fflush(p->io->err);
		is_drawn = true;
	}
	pthread_mutex_unlock(&p->lock);
	if (is_drawn)
		fprintf(p->io->err, "\r\033[K");
	fflush(p->io->err);
	return NULL;
}

void progress_start(struct progress *p, const struct cli_io *io, const char *text)
{
	pthread_condattr_t monotonic;

	*p = (struct progress){ .io = io, .text = text };
	if (!io->is_err_terminal)
		return;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	p->is_shown = pthread_create(&p->thread, NULL, count_seconds, p) == 0;
}

void progress_stop(struct progress *p)
{
	if (p->is_shown) {
		pthread_mutex_lock(&p->lock);
		p->is_over = true;
		pthread_cond_signal(&p->ended);
		pthread_mutex_unlock(&p->lock);
		pthread_join(p->thread, NULL);
	}
	if (p->io->is_err_terminal) {
		pthread_mutex_destroy(&p->lock);
		pthread_cond_destroy(&p->ended);
	}
}
