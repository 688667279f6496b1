/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_events_api.c - the routes of the event log: a page of it, one event, all of it, and new events as they happen.
 *
 * They share their filters: type, subject, actor, since, until and jobs, where routes.def has them. ops_stream.c sends
 * the two replies that last.
 */
#include "base/json.h"
#include "http/api/ops.h"
#include "http/api/ops_stream.h"
#include "kernel/event.h"
#include "service/jobs/jobs.h"

enum { EVENT_ID_LENGTH = 36 };

/* --- filters --- */

/* Jobs that went well, and timers that fired. */
static bool is_clockwork(struct str type)
{
	return str_eq(type, STR(EVENT_JOB_FINISHED)) || str_ends_with(type, STR("Due"));
}

static enum rc read_filter(struct request *r, struct event_list *l, struct err *e)
{
	static const char *const wishes[] = { "yes", "no" };
	int                      jobs = 0;
	enum rc                  rc = ops_read_text(r, "type", EVENT_TYPE_MAX, &l->type, e);
	const char              *star = !rc && l->type.n ? memchr(l->type.p, '*', l->type.n) : NULL;

	if (star && star != l->type.p + l->type.n - 1)
		return err_set(e, RC_INVALID, "type may have one '*', at its end: Sandbox*");
	if (rc || (rc = ops_read_text(r, "subject", SUBJECT_MAX, &l->subject, e)) ||
	    (rc = ops_read_text(r, "actor", ACTOR_MAX, &l->actor, e)) ||
	    (rc = ops_read_time(r, "since", &l->since_ms, e)) || (rc = ops_read_time(r, "until", &l->until_ms, e)) ||
	    (rc = ops_read_word(r, "jobs", wishes, 2, "yes or no", &jobs, e)))
		return rc;
	l->hides = jobs == 1 ? is_clockwork : NULL;
	if (l->since_ms && l->until_ms && l->since_ms > l->until_ms)
		return err_set(e, RC_INVALID, "since is later than until: no event is in between");
	return RC_OK;
}

/* --- a page --- */

/* A list that is read in several transactions. */
struct search {
	struct event_list *all, look;
	struct listing     listing;
	size_t             looks, bytes;
};

static void look(struct request *r);

/* An empty transaction: the answer is written at its end, off the loop. */
static enum rc read_no_more(struct session *s UNUSED, void *arg UNUSED, struct err *e UNUSED)
{
	return RC_OK;
}

static void on_found(struct request *r)
{
	const struct search     *s = r->arg;
	const struct event_list *l = s->all;

	if (!request_failed(r))
		view_reply_list(r, &s->listing, l->events, sizeof(*l->events), l->count, l->next);
}

static void on_looked(struct request *r)
{
	struct search     *s = r->arg;
	struct event_list *all = s->all;

	if (request_failed(r))
		return;
	for (size_t i = 0; i < s->look.count; i++) {
		s->bytes += s->look.events[i].detail.n;
		all->events[all->count++] = s->look.events[i];
	}
	all->next = s->look.next;
	if (all->next.n && all->count < all->limit && s->bytes < EVENT_BYTES && ++s->looks < EVENTS_LOOKED_MAX)
		look(r);
	else
		request_submit_page(r, read_no_more, NULL, on_found);
}

static void look(struct request *r)
{
	struct search *s = r->arg;

	s->look = *s->all;
	s->look.limit = s->all->limit - s->all->count;
	if (s->looks)
		s->look.cursor = s->all->next;
	request_submit(r, event_list, &s->look, true, on_looked);
}

void ops_list_events(struct request *r, struct event_list *l, const struct listing *v)
{
	struct search *s = arena_alloc(&r->call->arena, sizeof(*s));

	if (!request_is_good(r, ops_read_page(r, v->name, &l->limit, &l->cursor, &r->e)))
		return;
	l->events = arena_alloc(&r->call->arena, l->limit * sizeof(*l->events));
	l->count = 0;
	*s = (struct search){ .all = l, .listing = *v };
	r->arg = s;
	look(r);
}

static void put_event(struct json_out *o, struct request *r, const void *thing)
{
	event_write_json(r->api->options.kernel, thing, o);
}

void handle_event_list(struct request *r)
{
	static const char *const orders[] = { "newest", "oldest" };
	struct event_list       *l = NEW_OF(r, struct event_list);
	struct listing           v = { "events", .put = put_event };
	struct str               times;
	int                      order;

	if (!request_is_good(r, read_filter(r, l, &r->e) ||
	                                ops_read_word(r, "order", orders, 2, "newest or oldest", &order, &r->e)))
		return;
	l->is_newest_first = order != 1;
	times = str_format(&r->call->arena, "%lld-%lld-%d%d", (long long)l->since_ms, (long long)l->until_ms,
	                   l->is_newest_first, l->hides != NULL);
	v.name = ops_list_name(r, "events", (struct str[]){ l->type, l->subject, l->actor, times }, 4);
	ops_list_events(r, l, &v);
}

/* --- one --- */

HANDLER(event_show, ops_show(r, "event", sizeof(struct event), offsetof(struct event, id), event_get, put_event))

/* --- all, and new ones as they happen --- */

void handle_event_export(struct request *r)
{
	struct event_list l = { 0 };

	if (request_is_good(r, read_filter(r, &l, &r->e)))
		streams_export(r, &l);
}

/* A browser that reconnects sends the header; the query is for clients that cannot. */
static enum rc read_last_id(struct request *r, struct str *ret, struct err *e)
{
	struct str id = request_header_value(r, STR("Last-Event-ID"));
	enum rc    rc = request_query(r, "last_event_id", ret, e);

	if (rc)
		return rc;
	if (id.n)
		*ret = id;
	if (ret->n && (ret->n != EVENT_ID_LENGTH || !str_is_of(*ret, "0-9a-f-")))
		return err_set(e, RC_INVALID, "Last-Event-ID must be the id of an event, as in the stream");
	return RC_OK;
}

void handle_event_stream(struct request *r)
{
	struct event_list l = { 0 };
	struct str        after;

	if (request_is_good(r, read_filter(r, &l, &r->e) || read_last_id(r, &after, &r->e)))
		streams_follow(r, &l, after);
}
