/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady.c - a time that does not follow a date that jumps.
 *
 * One number says it all: how far our time is ahead of the time since boot. A reading that agrees renews it, so slow
 * corrections are followed for ever; one that differs by more than a step is ignored. Several threads may renew it at
 * once: each writes what it saw a moment ago, and all of that is right.
 */
#include "base/steady.h"

#include <stdlib.h>
#include <time.h>

enum { NEAR_MS = 20000 }; /* less than half a step: a clock near one of the two times is not near the other */

#define STEADY_UNSET INT64_MIN

struct steady_reading steady_read_machine(void)
{
	struct timespec boot;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (struct steady_reading){ .machine_ms = clock_now(&clock_real).ms,
		                        .boot_ms = (int64_t)boot.tv_sec * 1000 + boot.tv_nsec / 1000000 };
}

void steady_init(struct steady *s)
{
	atomic_store(&s->ahead_ms, STEADY_UNSET);
	atomic_store(&s->differs_ms, 0);
}

void steady_accept(struct steady *s, struct steady_reading now)
{
	atomic_store(&s->ahead_ms, now.machine_ms - now.boot_ms);
	atomic_store(&s->differs_ms, 0);
}

int64_t steady_time(struct steady *s, struct steady_reading now)
{
	int64_t ahead_ms = atomic_load(&s->ahead_ms);
	int64_t differs_ms = ahead_ms == STEADY_UNSET ? 0 : now.machine_ms - now.boot_ms - ahead_ms;

	if (llabs(differs_ms) <= STEADY_STEP_MS) {
		steady_accept(s, now);
		return now.machine_ms;
	}
	atomic_store(&s->differs_ms, differs_ms);
	return now.boot_ms + ahead_ms;
}

int64_t steady_differs_ms(const struct steady *s)
{
	return atomic_load(&s->differs_ms);
}

bool steady_hear(struct steady *s, struct steady_reading now, int64_t other_ms)
{
	int64_t ours_ms = steady_time(s, now);

	if (!steady_differs_ms(s) || llabs(other_ms - now.machine_ms) > NEAR_MS || llabs(other_ms - ours_ms) <= NEAR_MS)
		return false;
	steady_accept(s, now);
	return true;
}

void steady_resume(struct steady *s, struct steady_reading now, int64_t differs_ms, int64_t told_ms)
{
	int64_t ours_ms = now.machine_ms - differs_ms;

	if (llabs(differs_ms) <= STEADY_STEP_MS || ours_ms < told_ms - STEADY_STEP_MS ||
	    (differs_ms < 0 && now.machine_ms >= told_ms - STEADY_STEP_MS))
		return;
	atomic_store(&s->ahead_ms, ours_ms - now.boot_ms);
	atomic_store(&s->differs_ms, differs_ms);
}

static struct wall read_steady(const struct clock *c)
{
	return (struct wall){ steady_time(c->steady, steady_read_machine()) };
}

struct clock clock_steady(struct steady *s)
{
	return (struct clock){ .wall = read_steady, .mono = clock_real.mono, .steady = s };
}
