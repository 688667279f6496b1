/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer.c - durable timers.
 *
 * A timer is a record and nothing else: a million of them cost an index on the disk, and the start reads none. When one
 * is due, a transaction reads it again by its name (it may have been cancelled or set again), removes it and emits its
 * event. What then happens is a matter of queues, with their tries and dead letters; so firing cannot fail, except with
 * the store.
 */
#include "kernel/timer.h"

#include <assert.h>

#include "base/json.h"
#include "kernel/defect.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/kernel_private.h"
#include "kernel/work_private.h"

enum { EARLY_MS = 30000 };

static int64_t lead_ms(void)
{
	return HAS_DEFECT(TIMER_EARLY) ? EARLY_MS : 0;
}

enum rc session_arm(struct session *s, struct timer *timer, struct err *e)
{
	struct timer old;
	bool         is_armed;
	enum rc      rc;

	assert(timer->name.n && timer->type.n && timer->subject.n);
#ifdef LEASEHOLD_DEFECTS
	if (HAS_DEFECT(TIMER_AFTER_COMMIT))
		return defect_arm_later(s, timer);
#endif
	if ((rc = session_find(s, &timer_type, timer->name, &old, &is_armed, e)))
		return rc;
	timer->state = TIMER_ARMED;
	timer->armed_ms = session_now(s).ms;
	session_put(s, &timer_type, timer);
	session_poke(s, NEWS_TO_DO);
	return RC_OK;
}

enum rc session_disarm(struct session *s, struct str name, struct err *e)
{
	return session_drop(s, &timer_type, name, NULL, e);
}

/* --- stages --- */

static enum rc timer_find(struct session *s, struct work_finder *f, struct err *e)
{
	struct work  w = { .kernel = f->kernel, .kind = WORK_TIMER };
	struct query q = query_of(&timer_type, TIMER_DUE, value_int(TIMER_ARMED), 1);
	int64_t      now_ms = session_now(s).ms;
	size_t       before = f->count, allowed;
	enum rc      rc;

	f->lead_ms = lead_ms();
	rc = work_query_due(s, f, &q, &w, e);
	f->lead_ms = 0;
	if (rc)
		return rc;
	allowed = kernel_timer_allowance(f->kernel, now_ms, f->count - before);
	if (allowed < f->count - before) { /* the rest in the next second */
		f->count = before + allowed;
		work_later(f, now_ms + kernel_span_ms(f->kernel, 1000));
	}
	return RC_OK;
}

static enum rc timer_settle(struct session *s, struct work *w, struct err *e)
{
	struct timer timer;
	struct event event;
	bool         is_armed;
	enum rc      rc = session_find(s, &timer_type, w->key, &timer, &is_armed, e);

	if (rc)
		return rc;
	w->is_lost = !is_armed || timer.due_ms > session_now(s).ms + lead_ms();
	if (w->is_lost)
		return RC_OK;
	event = (struct event){ .type = timer.type,
		                .subject = timer.subject,
		                .detail = timer.detail,
		                .actor = str_format(session_arena(s), "timer/%.*s",
		                                    (int)(timer.name.n > 150 ? 150 : timer.name.n), timer.name.p) };
	session_delete(s, &timer_type, timer.name);
	w->outcome = "fired";
	return session_emit(s, &event, e);
}

const struct work_ops timer_work = { .find = timer_find, .settle = timer_settle };

/* --- for operators --- */

enum rc timer_list(struct session *s, void *arg, struct err *e)
{
	struct timer_list *l = arg;
	struct query       q = query_of(&timer_type, TIMER_DUE, value_int(TIMER_ARMED), l->limit);

	q.cursor = l->cursor;
	if (l->prefix.n) { /* then in the order of names */
		q.index = QUERY_KEYS;
		q.sort_prefix = l->prefix;
	}
	return session_query(s, &q, &l->page, e);
}

enum rc timer_get(struct session *s, void *arg, struct err *e)
{
	struct timer_call *c = arg;
	bool               is_armed;
	enum rc            rc = session_find(s, &timer_type, c->name, &c->timer, &is_armed, e);

	if (!rc && !is_armed)
		return err_set(e, RC_NOT_FOUND, "there is no timer %.*s; it has fired or was never armed",
		               STR_ARG(c->name));
	return rc;
}

static enum rc audit(struct session *s, const struct timer_call *c, const char *type, struct err *e)
{
	return session_tell(s, type, c->timer.subject, c->actor, c->request_id,
	                    JSON_OF(session_arena(s), member_str("timer", c->timer.name),
	                            member_int("dueMs", c->timer.due_ms), member_str("type", c->timer.type)),
	                    e);
}

enum rc timer_fire_now(struct session *s, void *arg, struct err *e)
{
	struct timer_call *c = arg;
	struct timer       sooner;
	enum rc            rc = timer_get(s, c, e);

	if (rc)
		return rc;
	sooner = c->timer;
	if (sooner.due_ms > session_now(s).ms)
		sooner.due_ms = session_now(s).ms;
	session_put(s, &timer_type, &sooner);
	session_poke(s, NEWS_TO_DO);
	return audit(s, c, "TimerFiredByHand", e);
}

enum rc timer_cancel(struct session *s, void *arg, struct err *e)
{
	struct timer_call *c = arg;
	enum rc            rc = timer_get(s, c, e);

	if (rc)
		return rc;
	session_delete(s, &timer_type, c->name);
	return audit(s, c, "TimerCancelled", e);
}
