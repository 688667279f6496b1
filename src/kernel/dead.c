/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead.c - dead letters and queues as operators see them: count, list, replay, drop.
 *
 * Replaying puts the event at the end of its lane, with all its tries before it; what came later for the same subject
 * has gone before it by then. Replaying and dropping are events themselves.
 */
#include "base/arena.h"
#include "base/json.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/kernel_private.h"
#include "kernel/queue.h"

enum { COUNT_PAGE = 1000 };

struct str dead_to_detail(const struct dead *dead, struct str reason, struct arena *a)
{
	return JSON_OF(a, member_str("deadLetterId", dead->id), member_str("queue", dead->queue),
	               member_str("eventId", dead->event_id), member_int("tries", dead->tries),
	               member_str("error", dead->error), member_if_any(member_str("target", dead->target)),
	               member_if_any(member_str("reason", reason)));
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
	struct query      q = query_of(&lane_type, LANE_DUE, value_text(l->queue), l->limit);

	q.cursor = l->cursor;
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
	bool         is_there;
	enum rc      rc = session_find(s, &dead_type, id, dead, &is_there, e);

	return rc || is_there ? rc : err_set(e, RC_NOT_FOUND, "there is no dead letter %.*s", STR_ARG(id));
}

/* --- act --- */

static enum rc audit(struct session *s, const struct dead_call *c, const char *type, struct err *e)
{
	return session_tell(s, type, c->dead.subject, c->actor, c->request_id,
	                    dead_to_detail(&c->dead, c->reason, session_arena(s)), e);
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
		return err_set(e, RC_CONFLICT, "queue %.*s no longer exists; the dead letter can only be dropped",
		               STR_ARG(c->dead.queue));
	if (!c->dead.event.n)
		return err_set(e, RC_CONFLICT, "dead letter %.*s has no event to replay; it can only be dropped",
		               STR_ARG(c->dead.id));
	/* The event as it was: the log may have forgotten it, or may before it is delivered. */
	if ((rc = event_from_json(c->dead.event, session_arena(s), &event, e)) ||
	    (rc = queue_put(s, queue, &event, c->dead.target, e)))
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
