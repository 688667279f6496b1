/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - the log of what happened, and who is told.
 *
 * An event and its deliveries are records like all others, written by the transaction that made the change: nothing
 * announced is lost, nothing unsaved is announced. An event is never changed. Ids are in the order of time, so a range
 * of time is a range of ids.
 */
#include "kernel/event.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "kernel/defect.h"
#include "kernel/kernel.h"
#include "kernel/kernel_private.h"
#include "kernel/queue.h"

enum { PRUNE_EVENTS = 60, PRUNE_SEEN = 30 };

/* --- emit --- */

static void complete(struct session *s, struct event *event)
{
	assert(event->type.n && event->subject.n);
	if (!event->id.n)
		event->id = kernel_new_id(s, event->previous);
	if (!event->time_ms)
		event->time_ms = session_now(s).ms;
	if (!event->schema)
		event->schema = 1;
	if (!event->trace.n)
		event->trace = session_trace(s);
	if (kernel_is_routine(kernel_of(s), event->type))
		event->volume = EVENT_ROUTINE;
	if (!event_is_chained(kernel_of(s), event->subject))
		event->reach = EVENT_INDEXED; /* nothing else leads to it */
}

/* Two rows for one queue are one delivery. */
static bool is_repeat(const struct kernel *k, size_t row, const struct event *event)
{
	const struct kernel_options *o = kernel_options(k);

	for (size_t i = 0; i < row; i++)
		if (strcmp(o->routes[i].queue, o->routes[row].queue) == 0 && kernel_route_matches(k, i, event->type))
			return true;
	return false;
}

static enum rc route_event(struct session *s, const struct event *event, struct err *e)
{
	const struct kernel         *k = kernel_of(s);
	const struct kernel_options *o = kernel_options(k);

	for (size_t i = 0; i < o->route_count; i++) {
		const struct queue *queue;
		enum rc             rc;

		if (!kernel_route_matches(k, i, event->type) || is_repeat(k, i, event))
			continue;
		queue = kernel_queue(k, str_from(o->routes[i].queue));
		assert(queue); /* a route to nowhere is our mistake */
		if (queue->has_addressees && !kernel_has_webhooks(k))
			continue;
		if ((rc = queue_put(s, queue, event, STR(""), e)))
			return rc;
	}
	return RC_OK;
}

enum rc session_emit(struct session *s, struct event *event, struct err *e)
{
#ifdef LEASEHOLD_DEFECTS
	if (HAS_DEFECT(EVENT_IN_SECOND_TXN))
		return defect_emit_later(s, event);
#endif
	complete(s, event);
	if (event->detail.n > DETAIL_MAX)
		return err_set(e, RC_TOO_LARGE, "what %.*s about %.*s would tell has more than %d bytes",
		               STR_ARG(event->type), STR_ARG(event->subject), DETAIL_MAX);
	session_add(s, &event_type, event);
	session_poke(s, NEWS_TO_SEE); /* somebody may be watching the log */
	if (str_eq(event->type, STR(EVENT_DEAD_LETTERED)))
		return RC_OK;
	return route_event(s, event, e);
}

enum rc session_tell(struct session *s, const char *type, struct str subject, struct str actor, struct str request_id,
                     struct str detail, struct err *e)
{
	struct event event = {
		.type = str_from(type), .subject = subject, .actor = actor, .request_id = request_id, .detail = detail
	};

	return session_emit(s, &event, e);
}

struct str event_detail(const struct buf *b, struct arena *a)
{
	return b->is_full ? str_of(arena_alloc(a, DETAIL_MAX + 1), DETAIL_MAX + 1) : str_dup(a, buf_str(b));
}

/* --- as JSON --- */

void event_write_json(const struct kernel *k, const struct event *event, struct json_out *o)
{
	const struct kernel_options *ours = kernel_options(k);
	char                         time[ISO_TIME_SIZE];

	JSON_PUT(o, member_word("version", "0"), member_str("id", event->id), member_str("detail-type", event->type),
	         member_str("source", event->source.n ? event->source : ours->source),
	         member_str("account", event->account.n ? event->account : ours->account),
	         member_str("time", iso_time_ms(event->time_ms, time)),
	         member_str("region", event->region.n ? event->region : ours->region),
	         member_raw("resources", event->resources.n ? event->resources : STR("[]")),
	         member_raw("detail", event->detail.n ? event->detail : STR("{}")),
	         member_str("subject", event->subject), member_if_any(member_str("actor", event->actor)),
	         member_if_any(member_str("requestId", event->request_id)), member_int("schemaVersion", event->schema),
	         member_if_any(member_str("traceparent", event->trace)));
}

struct str event_to_json(const struct kernel *k, const struct event *event, struct arena *a)
{
	struct buf      b = BUF(2 * DETAIL_MAX);
	struct json_out o = JSON_OUT(&b);

	json_open_object(&o);
	event_write_json(k, event, &o);
	json_close_object(&o);
	assert(!b.is_full); /* the limits of the fields add up to less, also with every character escaped */
	return buf_take(&b, a);
}

static bool read_time(const json_t *envelope, int64_t *ret_ms)
{
	struct str text;
	int64_t    sec;

	if (!json_get_text(envelope, "time", &text) || !iso_time_parse(text, &sec))
		return false;
	*ret_ms = sec * 1000;
	if (text.n == 24) /* with milliseconds, as iso_time_ms() writes it */
		*ret_ms += strtol(text.p + 20, NULL, 10);
	return true;
}

enum rc event_from_json(struct str text, struct arena *a, struct event *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *envelope = NULL;
	const json_t               *resources;
	enum rc                     rc = json_parse(text, &envelope, e);
	struct event                view = { 0 }; /* into the envelope */
	bool                        is_ok;

	if (rc)
		return rc;
	is_ok = json_get_text(envelope, "id", &view.id) && json_get_text(envelope, "detail-type", &view.type) &&
	        json_get_text(envelope, "source", &view.source) && json_get_text(envelope, "account", &view.account) &&
	        json_get_text(envelope, "region", &view.region) && json_get_text(envelope, "subject", &view.subject) &&
	        json_get_text(envelope, "actor", &view.actor) &&
	        json_get_text(envelope, "requestId", &view.request_id) &&
	        json_get_number(envelope, "schemaVersion", 1, &view.schema) &&
	        json_get_text(envelope, "traceparent", &view.trace) && read_time(envelope, &view.time_ms);
	if (!is_ok || !view.id.n || !view.type.n || !view.subject.n)
		return err_set(e, RC_CORRUPT, "this is not an event's envelope");
	resources = json_object_get(envelope, "resources");
	if (json_array_size(resources))
		view.resources = json_dump(a, resources);
	view.detail = json_dump(a, json_object_get(envelope, "detail"));
	if ((rc = record_check(&event_type, &view, e)))
		return rc;
	record_copy(&event_type, ret, &view, a);
	return RC_OK;
}

/* --- list --- */

static struct query list_query(struct session *s, const struct event_list *l)
{
	struct query q = {
		.type = &event_type, .index = QUERY_KEYS, .cursor = l->cursor, .is_descending = l->is_newest_first
	};

	if (l->subject.n) {
		q.index = EVENT_BY_SUBJECT;
		q.hash = value_text(l->subject);
	} else if (l->type.n && l->type.p[l->type.n - 1] != '*' && !kernel_is_routine(kernel_of(s), l->type)) {
		q.index = EVENT_BY_TYPE;
		q.hash = value_text(l->type);
	}
	if (l->since_ms)
		q.sort_from = kernel_time_prefix(session_arena(s), l->since_ms);
	if (l->until_ms)
		q.sort_to = kernel_time_prefix(session_arena(s), l->until_ms);
	if (l->after_id.n) /* all ids have one length, so this is just behind it */
		q.sort_from = str_format(session_arena(s), "%.*s0", STR_ARG(l->after_id));
	return q;
}

bool event_is_wanted(const void *record, const void *list)
{
	const struct event      *event = record;
	const struct event_list *l = list;

	return (!l->type.n || kernel_matches(l->type, event->type)) &&
	       (!l->actor.n || str_eq(l->actor, event->actor)) && (!l->hides || !l->hides(event->type));
}

static enum rc list_indexed(struct session *s, struct event_list *l, struct err *e)
{
	struct query_filter filter = { event_is_wanted, l, 1ull << EVENT_F_TYPE | 1ull << EVENT_F_ACTOR, EVENT_LOOKS };
	struct query        q = list_query(s, l);
	struct page         page;
	enum rc             rc;

	q.limit = l->limit;
	q.bytes_max = EVENT_BYTES;
	if (l->actor.n || l->hides || (l->type.n && q.index != EVENT_BY_TYPE))
		q.filter = &filter;
	if ((rc = session_query(s, &q, &page, e)))
		return rc;
	for (; l->count < page.count && l->count < l->limit; l->count++)
		l->events[l->count] = *(struct event *)page_record(&page, &event_type, l->count);
	l->next = page.next;
	return RC_OK;
}

enum rc event_list(struct session *s, void *arg, struct err *e)
{
	struct event_list *l = arg;

	assert(l->limit >= 1 && l->limit <= EVENT_PAGE_MAX);
	l->events = arena_alloc(session_arena(s), l->limit * sizeof(*l->events));
	l->count = 0;
	if (l->subject.n && event_is_chained(kernel_of(s), l->subject))
		return event_list_chained(s, l, e);
	return list_indexed(s, l, e);
}

enum rc event_get(struct session *s, void *arg, struct err *e)
{
	struct event *event = arg;
	bool          is_there;
	enum rc       rc = session_find(s, &event_type, event->id, event, &is_there, e);

	if (!rc && !is_there)
		return err_set(e, RC_NOT_FOUND, "there is no event %.*s, or it is too old to be kept",
		               STR_ARG(event->id));
	return rc;
}

/* --- retention --- */

enum rc kernel_remove_page(struct session *s, const struct query *q, size_t *removed, struct err *e)
{
	struct page page;
	enum rc     rc = session_query(s, q, &page, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < page.count; i++)
		session_delete(s, q->type, record_key(q->type, page_record(&page, q->type, i)));
	*removed += page.count;
	return RC_OK;
}

enum rc event_prune(struct session *s, void *arg, struct err *e)
{
	struct event_prune *p = arg;
	struct query        old_events = { .type = &event_type,
		                           .index = QUERY_KEYS,
		                           .limit = PRUNE_EVENTS,
		                           .sort_to = kernel_time_prefix(session_arena(s), p->before_ms) };
	struct query        old_traces = query_until(&seen_type, SEEN_BY_AGE, value_int(1), p->before_ms, PRUNE_SEEN);
	enum rc             rc;

	p->removed = 0;
	if ((rc = kernel_remove_page(s, &old_events, &p->removed, e)))
		return rc;
	return kernel_remove_page(s, &old_traces, &p->removed, e);
}
