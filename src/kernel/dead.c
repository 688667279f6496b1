/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead.c - dead letters and queues as operators see them: count, list, replay, drop.
 *
 * Replaying puts the event at the end of its lane, with all its tries before it; what came later for the same subject has gone before
 * it by then. Replaying and dropping are events themselves.
 */
#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/kernel_ops.h"
#include "kernel/lane.h"

enum { COUNT_PAGE = 1000, DETAIL_TEXT_MAX = 8192 };

struct str dead_to_detail(const struct dead *dead, struct str reason, struct arena *a)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, DETAIL_TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "deadLetterId", dead->id);
	json_put_str(&o, "queue", dead->queue);
	json_put_str(&o, "eventId", dead->event_id);
	json_put_int(&o, "tries", dead->tries);
	json_put_str(&o, "error", dead->error);
	if (dead->target.n)
		json_put_str(&o, "target", dead->target);
	if (reason.n)
		json_put_str(&o, "reason", reason);
	json_close_object(&o);
	assert(!b.is_full);
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

/* --- look --- */

static enum rc count_lanes(struct session *s, struct str queue, struct queue_count *ret, struct err *e)
{
	struct query q = { .type = &lane_type, .index = LANE_DUE, .hash = value_text(queue), .limit = COUNT_PAGE };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < page.count; i++) {
		struct lane *lane = page_record(&page, &lane_type, i);

		ret->failing += lane->last_error.n > 0;
		if (!ret->oldest_ms || lane->since_ms < ret->oldest_ms)
			ret->oldest_ms = lane->since_ms;
	}
	ret->lanes = (int64_t)page.count;
	return page.next.n ? session_count(s, &lane_type, LANE_DUE, value_text(queue), &ret->lanes, e) : RC_OK;
}

enum rc queue_counts(struct session *s, void *arg, struct err *e)
{
	struct queue_counts         *c = arg;
	const struct kernel_options *o = kernel_options(c->kernel);

	c->counts = arena_alloc(session_arena(s), o->queue_count * sizeof(*c->counts));
	for (size_t i = 0; i < o->queue_count; i++) {
		struct str name = str_from(o->queues[i].name);
		enum rc    rc = count_lanes(s, name, &c->counts[i], e);

		if (!rc)
			rc = session_count(s, &dead_type, DEAD_BY_QUEUE, value_text(name), &c->counts[i].dead, e);
		if (rc)
			return rc;
	}
	return RC_OK;
}

enum rc lane_list(struct session *s, void *arg, struct err *e)
{
	struct lane_list *l = arg;
	struct query      q = { .type = &lane_type,
		                .index = LANE_DUE,
		                .hash = value_text(l->queue),
		                .limit = l->limit,
		                .cursor = l->cursor };

	return session_query(s, &q, &l->page, e);
}

enum rc dead_list(struct session *s, void *arg, struct err *e)
{
	struct dead_list *l = arg;
	struct query      q = { .type = &dead_type, .index = QUERY_KEYS, .limit = l->limit, .cursor = l->cursor };

	if (l->queue.n) {
		q.index = DEAD_BY_QUEUE;
		q.hash = value_text(l->queue);
	}
	return session_query(s, &q, &l->page, e);
}

enum rc dead_get(struct session *s, void *arg, struct err *e)
{
	struct dead *dead = arg;
	struct str   id = dead->id;
	enum rc      rc = session_get(s, &dead_type, id, dead, NULL);

	if (rc == RC_NOT_FOUND)
		return err_set(e, rc, "there is no dead letter %.*s", STR_ARG(id));
	return rc ? err_set(e, rc, "dead letter %.*s cannot be read", STR_ARG(id)) : RC_OK;
}

/* --- act --- */

static enum rc audit(struct session *s, const struct dead_call *c, const char *type, struct err *e)
{
	struct event event = { .type = str_from(type),
		               .subject = c->dead.subject,
		               .actor = c->actor,
		               .request_id = c->request_id,
		               .detail = dead_to_detail(&c->dead, c->reason, session_arena(s)) };

	return session_emit(s, &event, e);
}

/* The event as it was. The log may have forgotten it, or may before it is delivered: so it is not taken from there. */
static enum rc recall_event(struct session *s, const struct dead *dead, struct event *ret, struct err *e)
{
	if (!dead->event.n)
		return err_set(e, RC_CONFLICT, "dead letter %.*s has no event to replay; it can only be dropped",
		               STR_ARG(dead->id));
	return event_from_json(dead->event, session_arena(s), ret, e);
}

enum rc dead_replay(struct session *s, void *arg, struct err *e)
{
	struct dead_call   *c = arg;
	const struct queue *queue;
	struct event        event;
	enum rc             rc;

	c->dead = (struct dead){ .id = c->id };
	if ((rc = dead_get(s, &c->dead, e)))
		return rc;
	queue = kernel_queue(kernel_of(s), c->dead.queue);
	if (!queue)
		return err_set(e, RC_CONFLICT,
		               "queue %.*s does not exist any more; the dead letter can only be dropped",
		               STR_ARG(c->dead.queue));
	if ((rc = recall_event(s, &c->dead, &event, e)))
		return rc;
	if ((rc = queue_put(s, queue, &event, c->dead.target, e)))
		return rc;
	session_delete(s, &dead_type, c->dead.id);
	return audit(s, c, "DeadLetterReplayed", e);
}

enum rc dead_drop(struct session *s, void *arg, struct err *e)
{
	struct dead_call *c = arg;
	enum rc           rc;

	if (!c->reason.n)
		return err_set(e, RC_INVALID, "a reason is required to drop a dead letter");
	c->dead = (struct dead){ .id = c->id };
	if ((rc = dead_get(s, &c->dead, e)))
		return rc;
	session_delete(s, &dead_type, c->dead.id);
	return audit(s, c, "DeadLetterDropped", e);
}
