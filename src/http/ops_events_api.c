/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_events_api.c - the routes of the log of events: a page of it, one event, all of it, and what comes.
 *
 * They share their filters: type, subject, actor, since and until, as far as each has them (see routes.def). The two replies that last
 * are ops_stream.c's.
 */
#include "base/clock.h"
#include "base/json.h"
#include "http/ops.h"
#include "http/ops_stream.h"
#include "kernel/event.h"

enum { EVENT_ID_LENGTH = 36 };

static const int64_t time_max_sec = 253402300799; /* the end of the year 9999 */

/* --- filters --- */

static enum rc read_time(struct request *r, const char *name, int64_t *ret_ms, struct err *e)
{
	struct str text;
	int64_t    sec;
	enum rc    rc = request_query(r, name, &text, e);

	if (rc || !text.n)
		return rc;
	if (!str_to_int(text, 0, time_max_sec, &sec) && !iso_time_parse(text, &sec))
		return err_set(e, RC_INVALID, "%s must be a time such as 2026-11-15T18:03:43Z, or Unix seconds", name);
	*ret_ms = sec * 1000;
	return RC_OK;
}

static enum rc read_type(struct request *r, struct str *ret, struct err *e)
{
	const char *star;
	enum rc     rc = ops_read_text(r, "type", EVENT_TYPE_MAX, ret, e);

	if (rc)
		return rc;
	star = ret->n ? memchr(ret->p, '*', ret->n) : NULL;
	if (star && star != ret->p + ret->n - 1)
		return err_set(e, RC_INVALID, "type may have one '*', at its end: Sandbox*");
	return RC_OK;
}

static enum rc read_filter(struct request *r, struct event_list *l, struct err *e)
{
	enum rc rc;

	if ((rc = read_type(r, &l->type, e)) || (rc = ops_read_text(r, "subject", SUBJECT_MAX, &l->subject, e)) ||
	    (rc = ops_read_text(r, "actor", ACTOR_MAX, &l->actor, e)) ||
	    (rc = read_time(r, "since", &l->since_ms, e)) || (rc = read_time(r, "until", &l->until_ms, e)))
		return rc;
	if (l->since_ms && l->until_ms && l->since_ms > l->until_ms)
		return err_set(e, RC_INVALID, "since is later than until: no event is in between");
	return RC_OK;
}

static enum rc read_order(struct request *r, bool *ret_is_newest_first, struct err *e)
{
	struct str order;
	enum rc    rc = request_query(r, "order", &order, e);

	if (rc)
		return rc;
	if (order.n && !str_eq(order, STR("newest")) && !str_eq(order, STR("oldest")))
		return err_set(e, RC_INVALID, "order must be newest or oldest, not '%.*s'", STR_ARG(order));
	*ret_is_newest_first = !str_eq(order, STR("oldest"));
	return RC_OK;
}

/* --- a page --- */

static const char *list_name(struct request *r, const struct event_list *l)
{
	struct str times = str_format(&r->call->arena, "%lld-%lld-%d", (long long)l->since_ms, (long long)l->until_ms,
	                              l->is_newest_first);
	struct str filters[] = { l->type, l->subject, l->actor, times };

	return ops_list_name(r, "events", filters, ARRAY_LEN(filters));
}

static void on_listed(struct request *r)
{
	struct event_list *l = r->arg;
	struct json_out    o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "events");
	for (size_t i = 0; i < l->count; i++) {
		json_open_object(&o);
		event_write_json(ops_kernel(r), &l->events[i], &o);
		json_close_object(&o);
	}
	ops_send_list(r, &o, list_name(r, l), l->count, l->next);
}

void handle_event_list(struct request *r)
{
	struct event_list *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct err         e = { 0 };

	r->arg = l;
	if (read_filter(r, l, &e) || read_order(r, &l->is_newest_first, &e) ||
	    ops_read_page(r, list_name(r, l), &l->limit, &l->cursor, &e))
		request_fail(r, &e);
	else
		request_submit(r, event_list, l, true, on_listed);
}

/* --- one --- */

static void on_shown(struct request *r)
{
	const struct event *event = r->arg;
	struct json_out     o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	event_write_json(ops_kernel(r), event, &o);
	reply_send(r, 200);
}

void handle_event_show(struct request *r)
{
	struct event *event = arena_alloc(&r->call->arena, sizeof(*event));
	struct err    e = { 0 };

	r->arg = event;
	if (ops_read_id(r, "event", &event->id, &e))
		request_fail(r, &e);
	else
		request_submit(r, event_get, event, true, on_shown);
}

/* --- all, and what comes --- */

void handle_event_export(struct request *r)
{
	struct event_list l = { 0 };
	struct err        e = { 0 };

	if (read_filter(r, &l, &e))
		request_fail(r, &e);
	else
		streams_export(r, &l);
}

static bool is_event_id(struct str id)
{
	for (size_t i = 0; i < id.n; i++)
		if (!strchr("0123456789abcdef-", id.p[i]) || !id.p[i])
			return false;
	return id.n == EVENT_ID_LENGTH;
}

/* A browser that comes back sends the header; the query is for those who cannot. */
static enum rc read_last_id(struct request *r, struct str *ret, struct err *e)
{
	struct str query, id = request_header_value(r, STR("Last-Event-ID"));
	enum rc    rc = request_query(r, "last_event_id", &query, e);

	if (rc)
		return rc;
	if (!id.n)
		id = query;
	if (id.n && !is_event_id(id))
		return err_set(e, RC_INVALID, "Last-Event-ID must be the id of an event, as the stream tells it");
	*ret = id;
	return RC_OK;
}

void handle_event_stream(struct request *r)
{
	struct event_list l = { 0 };
	struct err        e = { 0 };
	struct str        after;

	if (read_filter(r, &l, &e) || read_last_id(r, &after, &e))
		request_fail(r, &e);
	else
		streams_follow(r, &l, after);
}
