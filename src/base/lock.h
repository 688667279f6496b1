/* lock.h - a mutex that is held until the end of its block, however the block is left. */
#pragma once

#include <pthread.h>

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
