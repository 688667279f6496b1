/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_clock.c - what time it is in a simulated world.
 *
 * A world whose time was scaled is ahead of the machine's date. If it were set back by a restart, all its leases would last longer by
 * what it was ahead; so it goes on at the time of its newest event, at whatever scale it has now. The time between two runs does not pass.
 */
#include "app/world_clock.h"

#include "base/arena.h"
#include "base/clock.h"
#include "kernel/event.h"
#include "store/store.h"

enum { AHEAD_MS = 60000 }; /* less may come from a machine whose clock was put right */

enum rc world_clock(struct store *store, int64_t scale, struct clock *ret, struct err *e)
{
	struct arena      a = { 0 };
	struct event_list newest = { .is_newest_first = true, .limit = 1 };
	struct wall       start = clock_now(&clock_real);
	bool              is_ahead;
	enum rc           rc = store_read(store, event_list, &newest, &a, e);

	is_ahead = !rc && newest.count && newest.events[0].time_ms > start.ms + AHEAD_MS;
	if (is_ahead)
		start.ms = newest.events[0].time_ms;
	if (!rc && (is_ahead || scale > 1))
		*ret = clock_scaled(start, scale);
	arena_fini(&a);
	return rc;
}
