/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_kernel.c - what the kernel has under way about a thing: sagas, timers, jobs, deliveries, dead letters, alarms.
 *
 * Deliveries are found by the key of their lane, which is the queue and the subject; those to webhooks and mailboxes have an addressee in
 * the key and are not looked for. Of the dead letters, which are kept by queue, the newest DEAD_LOOK of each queue are looked at; of the
 * alarms all that hold, which are at most 1,000 and as a rule none.
 */
#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "kernel/alarm.h"
#include "kernel/kernel.h"
#include "kernel/node.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "service/explain_ops.h"
#include "service/records.h"

enum { DEAD_LOOK = 100, WAITS_LONG_MS = 60000 };

/* --- sagas --- */

static struct str step_name(struct situation *x, const struct saga *saga)
{
	const struct saga_kind *kind = kernel_saga(kernel_of(x->s), saga->kind);

	if (kind && saga->step >= 0 && (size_t)saga->step < kind->step_count)
		return str_from(kind->steps[saga->step].name);
	return str_format(x->a, "number %lld", (long long)saga->step + 1);
}

/* "step 2 of 3 (move) since 2026-11-15 10:00 UTC, try 3; the last try failed: ..." */
static struct str progress(struct situation *x, const struct saga *saga)
{
	struct str step = step_name(x, saga);
	struct str tries = saga->tries > 1 ? str_format(x->a, ", try %lld", (long long)saga->tries) : STR("");

	return str_format(x->a, "step %lld of %zu (%.*s) since %s%.*s%s%.*s", (long long)saga->step + 1, saga->marks.n,
	                  STR_ARG(step), explain_time(x, saga->step_since_ms), STR_ARG(tries),
	                  saga->last_error.n ? "; the last try failed: " : "", STR_ARG(saga->last_error));
}

static void tell_running(struct situation *x, const struct saga *saga)
{
	struct str step = step_name(x, saga), at = progress(x, saga);

	explain_why(x, str_format(x->a, "%.*s is %s: %.*s.", STR_ARG(saga->id),
	                          saga->state == SAGA_UNDOING ? "being undone" : "under way", STR_ARG(at)));
	if (saga->owner.n)
		explain_next(x, x->now_ms, str_format(x->a, "the step %.*s is being done", STR_ARG(step)), saga->id);
	else
		explain_next(x, saga->due_ms > x->now_ms ? saga->due_ms : x->now_ms,
		             str_format(x->a, "the step %.*s is tried%s", STR_ARG(step), saga->tries ? " again" : ""),
		             saga->id);
	if (saga->last_error.n) {
		explain_problem(x, str_format(x->a, "%.*s does not get on: %.*s", STR_ARG(saga->id), STR_ARG(at)));
		explain_can(x, CAN_SAGA_RETRY, saga->id);
		explain_can(x, CAN_SAGA_ABORT, saga->id);
	}
}

static void tell_parked(struct situation *x, const struct saga *saga)
{
	struct str why = saga->reason.n ? saga->reason : saga->last_error;
	struct str step = step_name(x, saga);

	explain_problem(
	        x, str_format(x->a,
	                      "%.*s is parked %s step %lld of %zu (%.*s) since %s and waits for a person: %.*s%s%.*s",
	                      STR_ARG(saga->id), saga->is_back ? "while undoing" : "at", (long long)saga->step + 1,
	                      saga->marks.n, STR_ARG(step), explain_time(x, saga->step_since_ms), STR_ARG(why),
	                      saga->leftovers.n ? "; may be left over: " : "", STR_ARG(saga->leftovers)));
	explain_can(x, CAN_SAGA_RETRY, saga->id);
	explain_can(x, CAN_SAGA_SKIP, saga->id);
	explain_can(x, CAN_SAGA_ABORT, saga->id);
}

enum rc explain_saga(struct situation *x, struct str id, bool *ret_is_moving, struct err *e)
{
	struct saga saga;
	bool        is_there;
	enum rc     rc = explain_find(x, &saga_type, id, &saga, &is_there, e);

	*ret_is_moving = false;
	if (rc || !is_there)
		return rc;
	*ret_is_moving = saga.state == SAGA_RUNNING || saga.state == SAGA_UNDOING;
	if (*ret_is_moving && !x->is_for_user)
		tell_running(x, &saga);
	else if (saga.state == SAGA_PARKED)
		tell_parked(x, &saga);
	return RC_OK;
}

/* --- timers and jobs --- */

enum rc explain_timer(struct situation *x, struct str name, struct str what, bool *ret_is_armed, struct err *e)
{
	struct timer timer;
	bool         is_armed;
	enum rc      rc = explain_find(x, &timer_type, name, &timer, &is_armed, e);

	if (!rc && is_armed)
		explain_next(x, timer.due_ms, what, str_format(x->a, "timer %.*s", STR_ARG(name)));
	if (ret_is_armed)
		*ret_is_armed = !rc && is_armed;
	return rc;
}

enum rc explain_job(struct situation *x, const char *name, struct str what, struct err *e)
{
	struct str        timer_name = str_format(x->a, "job/%s", name);
	struct job_record job;
	struct timer      timer;
	bool              has_record, is_armed;
	enum rc           rc = explain_find(x, &job_type, str_from(name), &job, &has_record, e);

	if (rc || (rc = explain_find(x, &timer_type, timer_name, &timer, &is_armed, e)))
		return rc;
	if (has_record && job.is_paused) {
		explain_problem(x, str_format(x->a,
		                              "The job %s is paused: nothing happens here until somebody resumes it.",
		                              name));
		explain_can(x, CAN_JOB_RESUME, str_from(name));
	}
	if (has_record && job.failures > 0)
		explain_problem(x, str_format(x->a, "The job %s has failed %lld times in a row: %.*s", name,
		                              (long long)job.failures, STR_ARG(job.last_error)));
	explain_next(x, is_armed ? timer.due_ms : 0, what, str_format(x->a, "job %s", name));
	explain_can(x, CAN_JOB_RUN, str_from(name));
	return RC_OK;
}

/* --- deliveries --- */

static enum rc tell_lane(struct situation *x, const struct queue *queue, struct err *e)
{
	struct str   key = str_format(x->a, "%s#%.*s", queue->name, STR_ARG(x->subject)), type = STR("an event");
	struct lane  lane;
	struct event head;
	bool         is_there, is_known = false;
	enum rc      rc = explain_find(x, &lane_type, key, &lane, &is_there, e);

	if (rc || !is_there || (lane.tries == 0 && lane.since_ms > x->now_ms - WAITS_LONG_MS))
		return rc;
	if ((rc = explain_find(x, &event_type, lane.event_id, &head, &is_known, e)))
		return rc;
	if (is_known)
		type = head.type;
	if (lane.last_error.n || lane.tries == 0)
		explain_problem(x, str_format(x->a, "Queue %s has not delivered %.*s since %s, after %lld tries%s%.*s.",
		                              queue->name, STR_ARG(type), explain_time(x, lane.since_ms),
		                              (long long)lane.tries, lane.last_error.n ? ": " : "",
		                              STR_ARG(lane.last_error)));
	explain_next(x, lane.due_ms > x->now_ms ? lane.due_ms : x->now_ms,
	             str_format(x->a, "%.*s is delivered%s", STR_ARG(type),
	                        lane.tries ? ", if it works this time" : ""),
	             str_format(x->a, "queue %s", queue->name));
	return RC_OK;
}

static enum rc tell_dead(struct situation *x, const struct queue *queue, struct err *e)
{
	struct query q = { .type = &dead_type,
		           .index = DEAD_BY_QUEUE,
		           .hash = value_text(str_from(queue->name)),
		           .is_descending = true,
		           .limit = DEAD_LOOK };
	struct page  page;
	enum rc      rc = session_query(x->s, &q, &page, e);

	for (size_t i = 0; !rc && i < page.count; i++) {
		const struct dead *dead = page_record(&page, &dead_type, i);

		if (!str_eq(dead->subject, x->subject))
			continue;
		explain_problem(x, str_format(x->a, "A delivery of queue %s was given up at %s after %lld tries: %.*s",
		                              queue->name, explain_time(x, dead->died_ms), (long long)dead->tries,
		                              STR_ARG(dead->error)));
		explain_can(x, CAN_DEAD_REPLAY, dead->id);
	}
	return rc;
}

enum rc explain_deliveries(struct situation *x, struct err *e)
{
	const struct kernel_options *o = kernel_options(kernel_of(x->s));
	enum rc                      rc = RC_OK;

	for (size_t i = 0; !rc && i < o->queue_count; i++)
		if (!(rc = tell_lane(x, &o->queues[i], e)))
			rc = tell_dead(x, &o->queues[i], e);
	return rc;
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

enum rc explain_alarms(struct situation *x, struct err *e)
{
	struct alarm_list list;
	enum rc           rc = alarm_list(x->s, &list, e);

	for (size_t i = 0; !rc && i < list.page.count; i++) {
		const struct alarm *alarm = page_record(&list.page, &alarm_type, i);

		if (alarm->state == ALARM_RAISED && (names(alarm->name, x->id) || names(alarm->evidence, x->id)))
			explain_problem(x, str_format(x->a, "The alarm %.*s is raised since %s: %.*s",
			                              STR_ARG(alarm->rule), explain_time(x, alarm->raised_ms),
			                              STR_ARG(alarm->evidence)));
	}
	return rc;
}
