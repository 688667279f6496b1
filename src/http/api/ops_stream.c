/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_stream.c - replies that last: events as they happen (server-sent events), and all events of a filter (JSON
 * lines).
 *
 * Both read the log page by page, and the next page only when the client has taken the one before. So a client that
 * does not read costs one page of memory until the server's write time-out ends it, and it can go on where it was: by
 * Last-Event-ID.
 *
 * A live stream looks after its last event when there is news on this node, and once a second for events of other
 * nodes. Where a later id can become visible before an earlier one, it stays stream_lag_ms behind the clock. When a
 * look has seen everything, no event older than FLOOR_MS can still come; so a stream whose filter matches nothing
 * does not read the same records for ever.
 *
 * Always true:
 *   1. The reply begins after the first page was read: a store that does not answer is a 503, not an empty stream.
 *   2. A request is ended only while none of its transactions is with the store.                       [end_if_quiet()]
 *   3. Who could not ask for it any more (the sign-in is over, the token was withdrawn) is told no more: looked at
 *      before each page, after each reload of the settings, and once a second. [end_if_over()]
 *   4. An export that could not be read to its end is cut off, without the mark of an end.
 *   5. Of a live stream an event is sent once and after all with smaller ids; a read that failed is made again.
 */
#include "http/api/ops_stream.h"

#include <stdatomic.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/steady.h"
#include "http/api/api.h"
#include "kernel/event.h"
#include "kernel/kernel.h"

enum {
	POLL_MS = 1000,
	HEARTBEAT_MS = 15000,
	FLOOR_MS = 2 * STEADY_STEP_MS, /* further than the clock goes back */
	RETRY_MS = 2000,               /* told to the client: how soon to come back */
	FOLLOW_PAGE = 50,
	EXPORT_PAGE = 100,
	WRITTEN_MAX = 16 * 1024 * 1024, /* bytes of a page */
	PIECE_MAX = 262144,             /* of it, in one turn of the loop */
	EVENT_ID_SIZE = 37,
};

struct stream {
	struct stream    *previous, *next;
	struct streams   *all;
	struct request   *request;
	bool              is_export, has_begun;
	bool              is_reading; /* a transaction is with the store */
	bool              has_news;   /* since that was submitted */
	bool              has_more;   /* there are events behind the page */
	bool              is_ending;  /* gone or stopped */
	struct arena      page;       /* what the last read has found */
	struct event_list filter, list;
	struct buf        written; /* the page as it is sent: made by the transaction that reads it */
	size_t            sent;    /* bytes of that */
	char              after[EVENT_ID_SIZE];
	char              cursor[CURSOR_MAX + 1];
	int64_t           read_ms;  /* wall: when the last read began */
	int64_t           spoke_ms; /* monotonic: when something was sent last */
};

struct streams {
	const struct api_options *options;
	struct stream            *first;
	atomic_uint               count; /* other threads ask whether there are any */
	uv_timer_t                tick;
	uv_async_t                wake;
	bool                      is_stopped;
};

static void read_on(struct stream *s);

/* --- the end of one --- */

static void forget(struct stream *s)
{
	struct streams *all = s->all;

	*(s->previous ? &s->previous->next : &all->first) = s->next;
	if (s->next)
		s->next->previous = s->previous;
	if (--all->count == 0)
		uv_timer_stop(&all->tick);
	arena_fini(&s->page);
	buf_fini(&s->written);
}

/* The stream lives in the request's arena and is gone after this. */
static void end(struct stream *s, bool is_whole)
{
	struct request *r = s->request;

	forget(s);
	r->call->on_gone = NULL;
	if (!s->has_begun && http_is_gone(r->call))
		request_drop(r);
	else if (!s->has_begun && s->all->is_stopped)
		request_refuse(r, RC_UNAVAILABLE, "the server is stopping; ask again");
	else if (!s->has_begun)
		request_refuse(r, RC_UNKNOWN, "the token is no longer good");
	else if (is_whole)
		http_stream_end(r->call);
	else
		http_stream_abort(r->call);
}

static bool end_if_quiet(struct stream *s)
{
	if (!s->is_ending || s->is_reading)
		return false;
	end(s, !s->is_export);
	return true;
}

/* Who may no longer call hears nothing more. */
static bool end_if_over(struct stream *s)
{
	if (!request_is_still_allowed(s->request))
		s->is_ending = true;
	return end_if_quiet(s);
}

static void on_gone(struct http_call *call)
{
	struct stream *s = ((struct request *)call->user)->arg;

	s->is_ending = true;
	uv_async_send(&s->all->wake); /* a call cannot be ended from in here */
}

/* --- sending --- */

static void say(struct stream *s, struct str bytes)
{
	s->spoke_ms = mono_now().ms;
	http_stream_send(s->request->call, bytes);
}

/* The envelope on one line. Outside of JSON's strings a line break is as good as a blank; inside there is none. */
static void add_line(struct stream *s, const struct event *event)
{
	struct buf     *b = &s->written;
	size_t          from = b->n;
	struct json_out o = JSON_OUT(b);

	json_open_object(&o);
	event_write_json(s->all->options->kernel, event, &o);
	json_close_object(&o);
	for (size_t i = from; i < b->n; i++)
		if (b->p[i] == '\n' || b->p[i] == '\r')
			b->p[i] = ' ';
	buf_add_char(b, '\n');
}

static void add_event(struct stream *s, const struct event *event)
{
	buf_addf(&s->written, "id: %.*s\nevent: %.*s\ndata: ", STR_ARG(event->id), STR_ARG(event->type));
	add_line(s, event);
	buf_add_char(&s->written, '\n');
}

/* A transaction: the page, and what is sent of it; that takes longer than the loop has time. */
static enum rc read_page(struct session *session, void *arg, struct err *e)
{
	struct stream *s = arg;
	enum rc        rc;

	buf_reset(&s->written);
	rc = event_list(session, &s->list, e);
	for (size_t i = 0; !rc && i < s->list.count; i++)
		(s->is_export ? add_line : add_event)(s, &s->list.events[i]);
	return rc;
}

static const char *type_of(bool is_export)
{
	return is_export ? "application/x-ndjson" : "text/event-stream";
}

static void begin(struct stream *s)
{
	s->has_begun = true;
	request_stream(s->request, type_of(s->is_export));
	if (!s->is_export) /* with the id, a client that has seen no event yet can come back without missing one */
		say(s, str_format(&s->page, "retry: %d\nid: %s\n: events follow\n\n", RETRY_MS, s->after));
}

/* --- reading --- */

static void move_to(struct stream *s, struct str id)
{
	if (id.n >= sizeof(s->after) || str_cmp(id, str_from(s->after)) <= 0)
		return;
	memcpy(s->after, id.p, id.n);
	s->after[id.n] = '\0';
}

/* The smallest id that an event of this time can have. */
static struct str floor_id(struct arena *a, int64_t ms)
{
	uint64_t t = ms > 0 ? (uint64_t)ms : 0;

	return str_format(a, "%08" PRIx64 "-%04" PRIx64 "-7000-8000-000000000000", t >> 16, t & 0xffff);
}

/* The next piece of the page, or the next page; when the client has taken what was sent. */
static void go_on(struct stream *s)
{
	size_t left = s->written.n - s->sent, size = left < PIECE_MAX ? left : PIECE_MAX;

	if (!http_stream_is_idle(s->request->call))
		return; /* on_sent() comes */
	if (size)
		say(s, str_of(s->written.p + s->sent, size));
	s->sent += size;
	if (!http_stream_is_idle(s->request->call))
		return; /* the same, or the client has just left */
	if (s->sent < s->written.n)
		uv_async_send(&s->all->wake); /* in the next turn of the loop */
	else if (s->is_export && !s->cursor[0])
		end(s, true);
	else if (s->is_export || s->has_more || s->has_news)
		read_on(s);
}

/* Remember where the next look begins, and send the page. What does not fit is more than any page of ours. */
static void on_page(struct stream *s)
{
	struct event_list *l = &s->list;

	if (s->written.is_full) {
		end(s, false);
		return;
	}
	s->has_more = l->next.n > 0;
	s->cursor[0] = '\0';
	if (s->is_export || (!l->count && l->next.n)) /* the latter: many records, none asked for; the rest follows */
		(void)snprintf(s->cursor, sizeof(s->cursor), "%.*s", STR_ARG(l->next)); /* fits: CURSOR_MAX */
	else if (l->count)
		move_to(s, l->events[l->count - 1].id);
	else
		move_to(s, floor_id(&s->page, s->read_ms - FLOOR_MS - s->all->options->stream_lag_ms));
	go_on(s);
}

/* A read that failed: before the reply has begun it can be told; a live stream looks again at the next tick. */
static void on_failed(struct stream *s)
{
	struct request  *r = s->request;
	struct log_field fields[] = { LOG_STR("error", str_from(r->txn.e.msg)) };

	if (!s->has_begun) {
		forget(s);
		r->call->on_gone = NULL;
		request_fail(r, &r->txn.e);
		return;
	}
	log_write(LOG_WARNING, "http", fields, ARRAY_LEN(fields), "events could not be read for a stream");
	if (s->is_export) {
		end(s, false);
		return;
	}
	s->cursor[0] = '\0';
	buf_reset(&s->written); /* the page before: it was sent, and a read that fails early leaves it here */
}

static void on_read(struct request *r)
{
	struct stream *s = r->arg;

	s->is_reading = false;
	if (end_if_over(s))
		return;
	if (r->txn.rc) {
		on_failed(s);
	} else if (s->list.is_newest_first) { /* a stream from now on begins behind the newest event */
		move_to(s, s->list.count ? s->list.events[0].id : floor_id(&s->page, 0));
		begin(s);
	} else {
		if (!s->has_begun)
			begin(s);
		on_page(s);
	}
}

static void read_on(struct stream *s)
{
	struct request *r = s->request;

	arena_reset(&s->page);
	s->read_ms = clock_now(kernel_options(s->all->options->kernel)->clock).ms;
	s->list = s->filter;
	s->list.after_id = str_from(s->after);
	s->list.cursor = str_from(s->cursor);
	s->list.limit = s->is_export ? EXPORT_PAGE : FOLLOW_PAGE;
	if (!s->is_export && s->all->options->stream_lag_ms && !s->cursor[0])
		s->filter.until_ms = s->list.until_ms = s->read_ms - s->all->options->stream_lag_ms;
	s->is_reading = true;
	s->has_news = s->has_more = false;
	s->sent = 0;
	request_submit_in(r, &s->page, read_page, s, true, on_read);
}

/* Look for more, unless that is under way or the client has enough to read. */
static void look(struct stream *s)
{
	s->has_news = true;
	if (s->has_begun && !s->is_reading && !s->is_ending)
		go_on(s);
}

static void on_sent(struct http_call *call)
{
	look(((struct request *)call->user)->arg);
}

/* --- time --- */

/* Has the client taken all that was begun? While a page is read, `written` belongs to the store's thread: all that was
 * in it has been sent. */
static bool is_between_events(const struct stream *s)
{
	return http_stream_is_idle(s->request->call) && (s->is_reading || s->sent == s->written.n);
}

static void on_tick(uv_timer_t *tick)
{
	static const struct str heartbeat = STR_INIT(":\n\n");
	struct streams         *all = tick->data;
	int64_t                 now_ms = mono_now().ms;

	for (struct stream *s = all->first, *next; s; s = next) {
		next = s->next;
		if (s->is_export || end_if_over(s))
			continue;
		if (s->has_begun && now_ms - s->spoke_ms >= HEARTBEAT_MS && is_between_events(s))
			say(s, heartbeat);
		look(s);
	}
}

static void on_wake(uv_async_t *wake)
{
	struct streams *all = wake->data;

	for (struct stream *s = all->first, *next; s; s = next) {
		next = s->next;
		if (end_if_quiet(s))
			continue;
		if (!s->is_export)
			look(s);
		else if (!s->is_reading && s->sent < s->written.n)
			go_on(s);
	}
}

void streams_poke_later(void *streams)
{
	struct streams *all = streams;

	if (atomic_load(&all->count))
		uv_async_send(&all->wake);
}

void streams_check(struct streams *all)
{
	for (struct stream *s = all->first, *next; s; s = next) {
		next = s->next;
		end_if_over(s);
	}
}

void streams_stop(struct streams *all)
{
	all->is_stopped = true;
	for (struct stream *s = all->first, *next; s; s = next) {
		next = s->next;
		if (s->is_export)
			continue; /* has an end of its own, or the server's patience has */
		s->is_ending = true;
		end_if_quiet(s);
	}
}

/* --- life cycle --- */

struct streams *streams_new(const struct api_options *o)
{
	struct streams *all = mem_new(struct streams);

	all->options = o;
	all->tick.data = all->wake.data = all;
	if (uv_timer_init(o->loop, &all->tick) || uv_async_init(o->loop, &all->wake, on_wake))
		mem_out("streams"); /* the loop was just made */
	return all;
}

void streams_close_handles(struct streams *all)
{
	while (all->first) { /* cut by the server a moment ago */
		all->first->is_ending = true;
		if (!end_if_quiet(all->first))
			abort(); /* the caller has waited for the store */
	}
	uv_close((uv_handle_t *)&all->tick, NULL);
	uv_close((uv_handle_t *)&all->wake, NULL);
}

/* NULL when there is no room for one more: then the request is answered. HEAD gets its headers here, and no stream. */
static struct stream *stream_new(struct request *r, const struct event_list *filter, bool is_export)
{
	struct streams *all = r->api->streams;
	unsigned        max = all->options->streams_max;
	struct stream  *s = arena_alloc(&r->call->arena, sizeof(*s));

	if (r->call->req.is_head) {
		request_stream(r, type_of(is_export));
		http_stream_end(r->call);
		return NULL;
	}
	if (all->is_stopped) {
		request_refuse(r, RC_UNAVAILABLE, "the server is stopping; ask again");
		return NULL;
	}
	if (all->count >= max) {
		request_refuse(r, RC_UNAVAILABLE,
		               "%u streams are open here already, which is the most (LEASEHOLD_STREAMS_MAX); "
		               "close one, or try again later",
		               max);
		return NULL;
	}
	*s = (struct stream){ .all = all, .request = r, .is_export = is_export, .filter = *filter, .next = all->first };
	buf_init(&s->written, WRITTEN_MAX);
	if (s->next)
		s->next->previous = s;
	all->first = s;
	if (all->count++ == 0)
		uv_timer_start(&all->tick, on_tick, POLL_MS, POLL_MS);
	r->arg = s;
	r->call->on_gone = on_gone;
	r->call->on_sent = on_sent;
	return s;
}

void streams_export(struct request *r, const struct event_list *filter)
{
	struct stream *s = stream_new(r, filter, true);

	if (s)
		read_on(s);
}

void streams_follow(struct request *r, const struct event_list *filter, struct str after_id)
{
	struct stream *s = stream_new(r, filter, false);

	if (!s)
		return;
	move_to(s, after_id);
	if (after_id.n) {
		read_on(s);
		return;
	}
	s->list = (struct event_list){ .is_newest_first = true, .limit = 1 };
	s->is_reading = true;
	request_submit_in(r, &s->page, event_list, &s->list, true, on_read);
}
