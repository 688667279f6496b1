/* lock.h - a mutex that is held until the end of its block, however the block is left; conditions with a time limit. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/attr.h"

static inline pthread_mutex_t *lock_take(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void lock_release(pthread_mutex_t **taken)
{
	pthread_mutex_unlock(*taken);
}

/* LOCKED(&p->lock); a return's value is still computed with the lock held. At most one in a block. */
#define LOCKED(mutex)                                                      \
	CLEANUP(lock_release) pthread_mutex_t *locked_ = lock_take(mutex); \
	(void)locked_

/* A condition for cond_wait_until(): a change of the machine's date does not matter to it. */
static inline void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/* Wait for a signal, with the mutex held, at most until this time of mono_now(). False: the time is up. */
static inline bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t mono_ms)
{
	struct timespec until = { .tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000 };

	return pthread_cond_timedwait(cond, mutex, &until) == 0;
}
