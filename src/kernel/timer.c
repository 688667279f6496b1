/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer.c - durable timers.
 *
 * A timer is a record and nothing else: a million of them cost an index on the disk, and the start reads none. When one is due, a
 * transaction reads it again by its name (it may have been cancelled or set anew), removes it and emits its event. What then happens
 * is a matter of queues, with their tries and dead letters; so firing cannot fail, except with the store.
 */
#include "kernel/timer.h"

#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "kernel/defect.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/kernel_ops.h"
#include "kernel/work_ops.h"

enum { EARLY_MS = 30000, DETAIL_TEXT_MAX = 2048 };

static int64_t lead_ms(void)
{
	return HAS_DEFECT(TIMER_EARLY) ? EARLY_MS : 0;
}

/* The stored one, when there is one; RC_OK in both cases. */
static enum rc load(struct session *s, struct str name, struct timer *ret, bool *ret_is_armed, struct err *e)
{
	enum rc rc = session_get(s, &timer_type, name, ret, NULL);

	*ret_is_armed = rc == RC_OK;
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "timer %.*s cannot be read", STR_ARG(name)) : RC_OK;
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
	if ((rc = load(s, timer->name, &old, &is_armed, e)))
		return rc;
	timer->state = TIMER_ARMED;
	timer->armed_ms = session_now(s).ms;
	session_put(s, &timer_type, timer);
	session_poke(s, NEWS_TO_DO);
	return RC_OK;
}

enum rc session_disarm(struct session *s, struct str name, struct err *e)
{
	struct timer old;
	bool         is_armed;
	enum rc      rc = load(s, name, &old, &is_armed, e);

	if (!rc && is_armed)
		session_delete(s, &timer_type, name);
	return rc;
}

/* --- stages --- */

enum rc timer_find(struct session *s, struct work_finder *f, struct err *e)
{
	struct work  w = { .kernel = f->kernel, .kind = WORK_TIMER };
	struct query q = { .type = &timer_type, .index = TIMER_DUE, .hash = value_int(TIMER_ARMED) };
	int64_t      now_ms = session_now(s).ms;
	size_t       before = f->count, allowed;
	enum rc      rc;

	f->lead_ms = lead_ms();
	rc = work_query_due(s, f, &q, TIMER_F_DUE, &w, e);
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

enum rc timer_settle(struct session *s, struct work *w, struct err *e)
{
	struct timer timer;
	struct event event;
	bool         is_armed;
	enum rc      rc = load(s, w->key, &timer, &is_armed, e);

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

/* --- for operators --- */

enum rc timer_list(struct session *s, void *arg, struct err *e)
{
	struct timer_list *l = arg;
	struct query       q = { .type = &timer_type,
		                 .index = TIMER_DUE,
		                 .hash = value_int(TIMER_ARMED),
		                 .limit = l->limit,
		                 .cursor = l->cursor };

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
	enum rc            rc = load(s, c->name, &c->timer, &is_armed, e);

	if (!rc && !is_armed)
		return err_set(e, RC_NOT_FOUND, "there is no timer %.*s; it has fired or was never armed",
		               STR_ARG(c->name));
	return rc;
}

static struct str timer_detail(const struct timer *timer, struct arena *a)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, DETAIL_TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "timer", timer->name);
	json_put_int(&o, "dueMs", timer->due_ms);
	json_put_str(&o, "type", timer->type);
	json_close_object(&o);
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

static enum rc audit(struct session *s, const struct timer_call *c, const char *type, struct err *e)
{
	struct event event = { .type = str_from(type),
		               .subject = c->timer.subject,
		               .actor = c->actor,
		               .request_id = c->request_id,
		               .detail = timer_detail(&c->timer, session_arena(s)) };

	return session_emit(s, &event, e);
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
