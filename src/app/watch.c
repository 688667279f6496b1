/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - what time it is, and whether the store takes commits.
 *
 * A date that has jumped is a fact, in whole minutes: it is stated when it changes; a second more or less is no change.
 * While the date is not followed, every beat states it again, as with an open circuit, so that the fact expires with
 * the process. Not here: what time it is then (base/steady.c).
 *
 * A full disk must leave a trace: while commits fail, not even the alarm about it can be stored; once they succeed,
 * nothing is wrong any more. So the log tells of its beginning, and log and an event of its end, with how many failed
 * and why.
 *
 * A world whose time is scaled is ahead of the machine's date. If a restart set it back, all its leases would last
 * longer; so it goes on at the time of its newest event. No time passes between two runs.
 */
#include "app/watch.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/steady.h"
#include "kernel/alarm/node.h"
#include "kernel/event.h"
#include "store/store.h"

enum { MINUTE_MS = 60000, AHEAD_MS = 60000 /* less may come from a machine whose clock was put right */ };

/* --- the date --- */

void clock_watch_init(struct clock_watch *w, struct store *store, const struct clock *clock, const char *name)
{
	*w = (struct clock_watch){ .store = store, .clock = clock };
	(void)snprintf(w->fact, sizeof(w->fact), "clock/%s", name); /* fits */
}

enum rc clock_watch_resume(struct clock_watch *w, struct err *e)
{
	struct steady *steady = w->clock->steady;
	struct fact    fact = { .name = str_from(w->fact) };
	enum rc        rc = steady ? store_read(w->store, fact_get, &fact, NULL, e) : RC_NOT_FOUND;

	if (!rc) {
		steady_resume(steady, steady_read_machine(), fact.value * MINUTE_MS, fact.at_ms);
		w->told_min = fact.value;
	}
	return err_forgive(e, rc, RC_NOT_FOUND);
}

void clock_watch_tell(struct clock_watch *w, bool is_beat)
{
	struct fact fact = { .name = str_from(w->fact) };
	int64_t     minutes, ms;

	(void)clock_now(w->clock); /* else nobody may have looked since it jumped */
	ms = w->clock->steady ? steady_differs_ms(w->clock->steady) : 0;
	minutes = fact.value = (ms + (ms < 0 ? -MINUTE_MS : MINUTE_MS) / 2) / MINUTE_MS; /* the nearest */
	if (!minutes == !w->told_min && !(minutes && is_beat))
		return;
	fact.text = minutes ? STR("the machine's date has jumped and is not followed")
	                    : STR("the machine's date is followed");
	if (minutes && !w->told_min)
		log_write(LOG_ERROR, "clock", NULL, 0,
		          "the machine's date has jumped by about %lld minutes and is not followed; see "
		          "\"clock-differs\" in docs/runbook.md",
		          (long long)minutes);
	else if (!minutes)
		log_write(LOG_WARNING, "clock", NULL, 0, "the machine's date is followed again");
	if (store_run(w->store, fact_state, &fact, NULL, NULL) == RC_OK)
		w->told_min = minutes;
}

/* --- commits --- */

static enum rc emit(struct session *s, void *arg, struct err *e)
{
	struct event event = *(const struct event *)arg;

	return session_emit(s, &event, e);
}

/* Stays to be told while it cannot be stored. */
static void tell_end(struct store_watch *w, struct store *store, const struct err *why)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	uint64_t                         failed = w->failed - w->before;
	char                             since[ISO_TIME_SIZE];
	struct event event = { .type = STR("StoreRecovered"), .subject = STR("store"), .actor = STR("store") };

	(void)iso_time(w->since_ms / 1000, since);
	event.detail = JSON_OF(&a, member_int("failedCommits", (int64_t)failed), member_word("since", since),
	                       member_word("error", why->msg));
	if (store_run(store, emit, &event, &a, NULL) == RC_OK) {
		log_write(LOG_WARNING, "store", NULL, 0,
		          "commits succeed again; %llu failed since %s, the last one: %s", (unsigned long long)failed,
		          since, why->msg);
		w->since_ms = 0;
	}
}

void store_watch_look(struct store_watch *w, struct store *store, const struct clock *clock)
{
	uint64_t   failed = store_counts(store).failed_commits;
	struct err why = { 0 };

	if (failed == w->failed && !w->since_ms)
		return;
	(void)store_last_failure(store, &why); /* there was one */
	if (!w->since_ms) {
		w->since_ms = clock_now(clock).ms;
		w->before = w->failed;
		log_write(LOG_ERROR, "store", NULL, 0, "commits fail: %s", why.msg);
	}
	w->failed = failed;
	if (store_health(store, NULL) == RC_OK)
		tell_end(w, store, &why);
}

/* --- a simulated world --- */

enum rc world_clock(struct store *store, int64_t scale, struct clock *ret, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct event_list                newest = { .is_newest_first = true, .limit = 1 };
	struct wall                      start = clock_now(&clock_real);
	bool                             is_ahead;
	enum rc                          rc = store_read(store, event_list, &newest, &a, e);

	is_ahead = !rc && newest.count && newest.events[0].time_ms > start.ms + AHEAD_MS;
	if (is_ahead)
		start.ms = newest.events[0].time_ms;
	if (!rc && (is_ahead || scale > 1))
		*ret = clock_scaled(start, scale);
	return rc;
}
