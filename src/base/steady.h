/* steady.h - the time that a service keeps when the machine's date may be changed while it runs.
 *
 * It follows the machine's date through corrections of up to STEADY_STEP_MS. After a larger step it goes on by the time
 * since boot, until the step is undone, a person accepts it, or another clock agrees with it. So a date that is wrong
 * for a while ends no lease and delays no job. Any thread. */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"

enum { STEADY_STEP_MS = 60000 };

struct steady {
	_Atomic int64_t ahead_ms;   /* our time minus the time since boot; STEADY_UNSET before the first reading */
	_Atomic int64_t differs_ms; /* the machine's date minus ours; 0: it is followed */
};

/* What the machine says at one moment. The time since boot counts while the machine is suspended, too. */
struct steady_reading {
	int64_t machine_ms, boot_ms;
};
struct steady_reading steady_read_machine(void);

/* It takes the first date that it sees. */
void steady_init(struct steady *s);

/* Our time, given what the machine says. */
int64_t steady_time(struct steady *s, struct steady_reading now);

/* How far the machine's date is ahead of ours (negative: behind). 0: it is followed. */
int64_t steady_differs_ms(const struct steady *s);

/* Take the machine's date as it is. */
void steady_accept(struct steady *s, struct steady_reading now);

/* Another clock, right to a few seconds. True: it agrees with the machine's, whose date is followed again. */
bool steady_hear(struct steady *s, struct steady_reading now, int64_t other_ms);

/* At a start: the previous process did not follow the machine's date either, which was ahead by differs_ms, as it noted
 * at told_ms of its own time. Continues that, unless the date was set back meanwhile. */
void steady_resume(struct steady *s, struct steady_reading now, int64_t differs_ms, int64_t told_ms);

/* A clock that shows its time. The steady must outlive it. */
struct clock clock_steady(struct steady *s);
