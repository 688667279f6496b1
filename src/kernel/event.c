/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - the log of what happened, and who is told.
 *
 * An event and its deliveries are records like all others, written by the transaction that made the change: nothing announced is lost,
 * nothing unsaved is announced. An event is never changed. Ids are in the order of time, so a range of time is a range of ids.
 */
#include "kernel/event.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "kernel/defect.h"
#include "kernel/kernel.h"
#include "kernel/kernel_ops.h"
#include "kernel/queue.h"

enum { PRUNE_EVENTS = 60, PRUNE_SEEN = 30 };

/* --- emit --- */

static struct str fresh_id(struct session *s, struct str previous)
{
	char *id = arena_alloc(session_arena(s), KERNEL_ID_SIZE);

	kernel_id_after(kernel_of(s), session_now(s).ms, previous, id);
	return str_of(id, KERNEL_ID_SIZE - 1);
}

static void complete(struct session *s, struct event *event)
{
	assert(event->type.n && event->subject.n);
	if (!event->id.n)
		event->id = fresh_id(s, event->previous);
	if (!event->time_ms)
		event->time_ms = session_now(s).ms;
	if (!event->schema)
		event->schema = 1;
	if (kernel_matches(kernel_options(kernel_of(s))->routine, event->type))
		event->volume = EVENT_ROUTINE;
	if (!event_is_chained(kernel_of(s), event->subject))
		event->reach = EVENT_INDEXED; /* nothing else leads to it */
}

static bool is_for(const struct kernel *k, const struct route *route, const struct queue *queue,
                   const struct event *event)
{
	return kernel_matches(str_from(route->pattern), event->type) &&
	       (!queue->has_addressees || kernel_has_webhooks(k));
}

/* Two rows for one queue are one delivery. */
static bool is_repeat(const struct kernel_options *o, size_t row, const struct event *event)
{
	for (size_t i = 0; i < row; i++)
		if (strcmp(o->routes[i].queue, o->routes[row].queue) == 0 &&
		    kernel_matches(str_from(o->routes[i].pattern), event->type))
			return true;
	return false;
}

static enum rc route_event(struct session *s, const struct event *event, struct err *e)
{
	const struct kernel         *k = kernel_of(s);
	const struct kernel_options *o = kernel_options(k);

	for (size_t i = 0; i < o->route_count; i++) {
		const struct queue *queue = kernel_queue(k, str_from(o->routes[i].queue));
		enum rc             rc;

		assert(queue); /* a route to nowhere is our mistake */
		if (!is_for(k, &o->routes[i], queue, event) || is_repeat(o, i, event))
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
	session_add(s, &event_type, event);
	session_poke(s, NEWS_TO_SEE); /* somebody may be watching the log */
	if (str_eq(event->type, STR(EVENT_DEAD_LETTERED)))
		return RC_OK;
	return route_event(s, event, e);
}

/* --- as JSON --- */

static void put_or_default(struct json_out *o, const char *name, struct str text, struct str fallback)
{
	json_put_str(o, name, text.n ? text : fallback);
}

static void put_if_any(struct json_out *o, const char *name, struct str text)
{
	if (text.n)
		json_put_str(o, name, text);
}

static void put_time(struct json_out *o, int64_t ms)
{
	char       text[ISO_TIME_SIZE], whole[ISO_TIME_SIZE + 8];
	struct str sec = iso_time(ms / 1000, text);

	(void)snprintf(whole, sizeof(whole), "%.*s.%03dZ", (int)sec.n - 1, sec.p, (int)(ms % 1000)); /* fits */
	json_put_str(o, "time", str_from(whole));
}

void event_write_json(const struct kernel *k, const struct event *event, struct json_out *o)
{
	const struct kernel_options *options = kernel_options(k);

	json_put_str(o, "version", STR("0"));
	json_put_str(o, "id", event->id);
	json_put_str(o, "detail-type", event->type);
	put_or_default(o, "source", event->source, options->source);
	put_or_default(o, "account", event->account, options->account);
	put_time(o, event->time_ms);
	put_or_default(o, "region", event->region, options->region);
	json_put_raw(o, "resources", event->resources.n ? event->resources : STR("[]"));
	json_put_raw(o, "detail", event->detail.n ? event->detail : STR("{}"));
	json_put_str(o, "subject", event->subject);
	put_if_any(o, "actor", event->actor);
	put_if_any(o, "requestId", event->request_id);
	json_put_int(o, "schemaVersion", event->schema);
}

struct str event_to_json(const struct kernel *k, const struct event *event, struct arena *a)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, 2 * DETAIL_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	event_write_json(k, event, &o);
	json_close_object(&o);
	assert(!b.is_full);
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

static struct str dump(struct arena *a, const json_t *value)
{
	char      *text = json_dumps(value, JSON_COMPACT);
	struct str copy = str_dup(a, str_from(text));

	free(text);
	return copy;
}

static bool read_time(const json_t *envelope, int64_t *ret_ms)
{
	struct str text;
	int64_t    sec;

	if (!json_get_text(envelope, "time", &text) || !iso_time_parse(text, &sec))
		return false;
	*ret_ms = sec * 1000;
	if (text.n == 24) /* with milliseconds, as put_time() writes it */
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
	        json_get_number(envelope, "schemaVersion", 1, &view.schema) && read_time(envelope, &view.time_ms);
	if (!is_ok || !view.id.n || !view.type.n || !view.subject.n)
		return err_set(e, RC_CORRUPT, "this is not an event's envelope");
	resources = json_object_get(envelope, "resources");
	if (json_array_size(resources))
		view.resources = dump(a, resources);
	view.detail = dump(a, json_object_get(envelope, "detail"));
	record_copy(&event_type, ret, &view, a);
	return RC_OK;
}

/* --- list --- */

static bool is_pattern(struct str type)
{
	return type.n && type.p[type.n - 1] == '*';
}

static struct query list_query(struct session *s, const struct event_list *l)
{
	struct query q = {
		.type = &event_type, .index = QUERY_KEYS, .cursor = l->cursor, .is_descending = l->is_newest_first
	};

	if (l->subject.n) {
		q.index = EVENT_BY_SUBJECT;
		q.hash = value_text(l->subject);
	} else if (l->type.n && !is_pattern(l->type) &&
	           !kernel_matches(kernel_options(kernel_of(s))->routine, l->type)) {
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

bool event_is_wanted(const struct event_list *l, const struct event *event)
{
	return (!l->type.n || kernel_matches(l->type, event->type)) && (!l->actor.n || str_eq(l->actor, event->actor));
}

/* Each look asks for as many as are still wanted, so that a page ends where the cursor says. */
static enum rc list_indexed(struct session *s, struct event_list *l, struct err *e)
{
	struct query q = list_query(s, l);
	size_t       seen = 0;
	struct page  page;

	for (int look = 0; look < EVENT_LOOKS_MAX && seen < EVENT_SCAN_MAX && l->count < l->limit; look++) {
		enum rc rc;

		q.limit = l->limit - l->count;
		if ((rc = session_query(s, &q, &page, e)))
			return rc;
		for (size_t i = 0; i < page.count; i++) {
			struct event *event = page_record(&page, &event_type, i);

			if (event_is_wanted(l, event))
				l->events[l->count++] = *event;
		}
		seen += page.count;
		q.cursor = page.next;
		if (!page.next.n)
			break;
	}
	l->next = q.cursor;
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
	enum rc       rc = session_get(s, &event_type, event->id, event, NULL);

	if (rc == RC_NOT_FOUND)
		return err_set(e, rc, "there is no event %.*s, or it is too old to be kept", STR_ARG(event->id));
	return rc ? err_set(e, rc, "event %.*s cannot be read", STR_ARG(event->id)) : RC_OK;
}

/* --- retention --- */

static enum rc remove_page(struct session *s, const struct query *q, size_t *ret_removed, struct err *e)
{
	struct page page;
	enum rc     rc = session_query(s, q, &page, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < page.count; i++)
		session_delete(s, q->type, record_key(q->type, page_record(&page, q->type, i)));
	*ret_removed += page.count;
	return RC_OK;
}

enum rc event_prune(struct session *s, void *arg, struct err *e)
{
	struct event_prune *p = arg;
	struct query        old_events = { .type = &event_type,
		                           .index = QUERY_KEYS,
		                           .limit = PRUNE_EVENTS,
		                           .sort_to = kernel_time_prefix(session_arena(s), p->before_ms) };
	struct query        old_traces = { .type = &seen_type,
		                           .index = SEEN_BY_AGE,
		                           .hash = value_int(1),
		                           .limit = PRUNE_SEEN,
		                           .has_sort_max = true,
		                           .sort_max = p->before_ms };
	enum rc             rc;

	p->removed = 0;
	if ((rc = remove_page(s, &old_events, &p->removed, e)))
		return rc;
	return remove_page(s, &old_traces, &p->removed, e);
}
