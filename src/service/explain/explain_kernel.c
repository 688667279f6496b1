/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_kernel.c - what the kernel has under way about a thing: sagas, timers, jobs, deliveries, dead letters,
 * alarms.
 *
 * Deliveries are found by the key of their lane, which is the queue and the subject; those to webhooks and mailboxes
 * have an addressee in the key and are not looked for. Of the dead letters, which are kept by queue, the newest
 * DEAD_LOOK of each queue are looked at; of the alarms all that hold, which are at most 1,000 and as a rule none.
 */
#include <ctype.h>
#include <string.h>

#include "domain/account.h"
#include "kernel/alarm/alarm.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "service/account/account_follow.h"
#include "service/explain/explain_private.h"
#include "service/broker/records.h"

enum { DEAD_LOOK = 100, WAITS_LONG_MS = 60000 };

/* --- sagas --- */

static struct str step_name(struct situation *x, const struct saga *saga)
{
	const struct saga_kind *kind = kernel_saga(kernel_of(x->s), saga->kind);

	if (kind && saga->step >= 0 && (size_t)saga->step < kind->step_count)
		return str_from(kind->steps[saga->step].name);
	return str_format(x->a, "number %lld", (long long)saga->step + 1);
}

static void tell_running(struct situation *x, const struct saga *saga)
{
	struct str step = step_name(x, saga);
	struct str tries = saga->tries > 1 ? str_format(x->a, ", try %lld", (long long)saga->tries) : STR("");
	/* "step 2 of 3 (move) since 2026-11-15 10:00 UTC, try 3; the last try failed: ..." */
	struct str at = str_format(x->a, "step %lld of %zu (%.*s) since %s%.*s%s%.*s", (long long)saga->step + 1,
	                           saga->marks.n, STR_ARG(step), explain_time(x, saga->step_since_ms), STR_ARG(tries),
	                           saga->last_error.n ? "; the last try failed: " : "", STR_ARG(saga->last_error));

	explain_say(x, WHY, "%.*s is %s: %.*s.", STR_ARG(saga->id),
	            saga->state == SAGA_UNDOING ? "being undone" : "under way", STR_ARG(at));
	if (saga->owner.n)
		explain_next(x, x->now_ms, str_format(x->a, "the step %.*s is being done", STR_ARG(step)), saga->id);
	else
		explain_next(x, saga->due_ms > x->now_ms ? saga->due_ms : x->now_ms,
		             str_format(x->a, "the step %.*s is tried%s", STR_ARG(step), saga->tries ? " again" : ""),
		             saga->id);
	if (saga->last_error.n) {
		explain_say(x, PROBLEM, "%.*s is not making progress: %.*s", STR_ARG(saga->id), STR_ARG(at));
		explain_can(x, CAN_SAGA_RETRY, saga->id);
		explain_can(x, CAN_SAGA_ABORT, saga->id);
	}
}

static void tell_parked(struct situation *x, const struct saga *saga)
{
	struct str why = saga->reason.n ? saga->reason : saga->last_error;
	struct str step = step_name(x, saga);

	explain_say(x, PROBLEM,
	            "%.*s is parked %s step %lld of %zu (%.*s) since %s and is waiting for a person: %.*s%s%.*s",
	            STR_ARG(saga->id), saga->is_back ? "while undoing" : "at", (long long)saga->step + 1, saga->marks.n,
	            STR_ARG(step), explain_time(x, saga->step_since_ms), STR_ARG(why),
	            saga->leftovers.n ? "; may be left over: " : "", STR_ARG(saga->leftovers));
	explain_can(x, CAN_SAGA_RETRY, saga->id);
	explain_can(x, CAN_SAGA_SKIP, saga->id);
	explain_can(x, CAN_SAGA_ABORT, saga->id);
}

bool explain_follow(struct situation *x, const struct account *account)
{
	return explain_saga(x, str_format(x->a, ACCOUNT_FOLLOW "/%.*s/%lld", STR_ARG(account->id),
	                                  (long long)account->follow_number));
}

bool explain_saga(struct situation *x, struct str id)
{
	struct saga saga;
	bool        is_moving;

	if (!explain_find(x, &saga_type, id, &saga))
		return false;
	is_moving = saga.state == SAGA_RUNNING || saga.state == SAGA_UNDOING;
	if (is_moving && !x->is_for_user)
		tell_running(x, &saga);
	else if (saga.state == SAGA_PARKED)
		tell_parked(x, &saga);
	return is_moving;
}

/* --- timers and jobs --- */

bool explain_timer(struct situation *x, struct str name, struct str what)
{
	struct timer timer;
	bool         is_armed = explain_find(x, &timer_type, name, &timer);

	if (is_armed)
		explain_next(x, timer.due_ms, what, str_format(x->a, "timer %.*s", STR_ARG(name)));
	return is_armed;
}

void explain_job(struct situation *x, const char *name, const char *what)
{
	struct str        timer_name = str_format(x->a, "job/%s", name);
	struct job_record job;
	struct timer      timer;
	bool              has_record = explain_find(x, &job_type, str_from(name), &job);
	bool              is_armed = explain_find(x, &timer_type, timer_name, &timer);

	if (has_record && job.is_paused) {
		explain_say(x, PROBLEM, "The job %s is paused: nothing happens here until somebody resumes it.", name);
		explain_can(x, CAN_JOB_RESUME, str_from(name));
	}
	if (has_record && job.failures > 0)
		explain_say(x, PROBLEM, "The job %s has failed %lld times in a row: %.*s", name,
		            (long long)job.failures, STR_ARG(job.last_error));
	explain_next(x, is_armed ? timer.due_ms : 0, str_from(what), str_format(x->a, "job %s", name));
	explain_can(x, CAN_JOB_RUN, str_from(name));
}

/* --- deliveries --- */

static void tell_lane(struct situation *x, const struct queue *queue)
{
	struct str   key = str_format(x->a, "%s#%.*s", queue->name, STR_ARG(x->subject)), type;
	struct lane  lane;
	struct event head;

	if (!explain_find(x, &lane_type, key, &lane) || (lane.tries == 0 && lane.since_ms > x->now_ms - WAITS_LONG_MS))
		return;
	type = explain_find(x, &event_type, lane.event_id, &head) ? head.type : STR("an event");
	if (lane.last_error.n || lane.tries == 0)
		explain_say(x, PROBLEM, "Queue %s has not delivered %.*s since %s, after %lld tries%s%.*s.",
		            queue->name, STR_ARG(type), explain_time(x, lane.since_ms), (long long)lane.tries,
		            lane.last_error.n ? ": " : "", STR_ARG(lane.last_error));
	explain_next(x, lane.due_ms > x->now_ms ? lane.due_ms : x->now_ms,
	             str_format(x->a, "%.*s is delivered%s", STR_ARG(type),
	                        lane.tries ? ", if it works this time" : ""),
	             str_format(x->a, "queue %s", queue->name));
}

static void tell_dead(struct situation *x, const struct queue *queue)
{
	struct query       q = query_of(&dead_type, DEAD_BY_QUEUE, value_text(str_from(queue->name)), DEAD_LOOK);
	struct records     all = { .query = q, .pages_max = 1 };
	const struct dead *dead;

	all.query.is_descending = true;
	while (!x->rc && (dead = session_next(x->s, &all, &x->rc, x->e))) {
		if (!str_eq(dead->subject, x->subject))
			continue;
		explain_say(x, PROBLEM, "A delivery of queue %s was given up at %s after %lld tries: %.*s", queue->name,
		            explain_time(x, dead->died_ms), (long long)dead->tries, STR_ARG(dead->error));
		explain_can(x, CAN_DEAD_REPLAY, dead->id);
	}
}

void explain_deliveries(struct situation *x)
{
	const struct kernel_options *o = kernel_options(kernel_of(x->s));

	for (size_t i = 0; i < o->queue_count; i++) {
		tell_lane(x, &o->queues[i]);
		tell_dead(x, &o->queues[i]);
	}
}

/* --- alarms --- */

/* Is the word in the text, and not as a part of a longer one? */
static bool names(struct str text, struct str word)
{
	for (struct str rest = text; word.n && rest.n >= word.n;) {
		const char *at = memmem(rest.p, rest.n, word.p, word.n);

		if (!at)
			return false;
		if ((at == text.p || !isalnum((unsigned char)at[-1])) &&
		    (at + word.n == text.p + text.n || !isalnum((unsigned char)at[word.n])))
			return true;
		rest = str_of(at + 1, (size_t)(text.p + text.n - at) - 1);
	}
	return false;
}

void explain_alarms(struct situation *x)
{
	struct page list;

	if (x->rc || (x->rc = alarm_list(x->s, &list, x->e)))
		return;
	for (size_t i = 0; i < list.count; i++) {
		const struct alarm *alarm = page_record(&list, &alarm_type, i);

		if (alarm->state == ALARM_RAISED && (names(alarm->name, x->id) || names(alarm->evidence, x->id)))
			explain_say(x, PROBLEM, "The alarm %.*s has been raised since %s: %.*s", STR_ARG(alarm->rule),
			            explain_time(x, alarm->raised_ms), STR_ARG(alarm->evidence));
	}
}
