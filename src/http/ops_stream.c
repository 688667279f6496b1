/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_stream.c - replies that last: events as they happen (server-sent events), and all events of a filter (JSON lines).
 *
 * Both read the log page by page, and the next page only when the client has taken the one before. So a client that does not read
 * costs one page of memory until the server's write time-out ends it, and it can go on where it was: by Last-Event-ID.
 *
 * A live stream looks after its last event when there is news on this node, and once a second for events of other nodes. Where a
 * later id can become visible before an earlier one, it stays stream_lag_ms behind the clock. When a look has seen everything, events
 * older than FLOOR_MS cannot come any more; so a stream whose filter matches nothing does not read the same records for ever.
 *
 * Always true:
 *   1. The reply begins after the first page was read: a store that does not answer is a 503, not an empty stream.
 *   2. A request is ended only while none of its transactions is with the store.                       [end_if_quiet()]
 *   3. A live stream ends with the session of who asked for it.                                       [is_over()]
 *   4. An export that could not be read to its end is cut off, without the mark of an end.
 *   4. Of a live stream an event is sent once and after all with smaller ids; a read that failed is made again.
 */
#include "http/ops_stream.h"

#include <assert.h>
#include <stdatomic.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/api.h"
#include "kernel/event.h"
#include "kernel/kernel.h"

enum {
	POLL_MS = 1000,
	HEARTBEAT_MS = 15000,
	FLOOR_MS = 60000,
	RETRY_MS = 2000, /* told to the client: how soon to come back */
	FOLLOW_PAGE = 50,
	EXPORT_PAGE = 100,
	PIECE_MAX = 16 * 1024 * 1024,
	EVENT_ID_SIZE = 37,
};

struct stream {
	struct stream    *previous, *next;
	struct streams   *all;
	struct request   *request;
	bool              is_export;
	bool              has_begun;
	bool              is_reading; /* a transaction is with the store */
	bool              has_news;   /* since that was submitted */
	bool              is_ending;  /* gone or stopped */
	struct arena      page;       /* what the last read has found */
	struct event_list filter, list;
	char              after[EVENT_ID_SIZE];
	char              cursor[CURSOR_MAX + 1];
	int64_t           read_ms;  /* wall: when the last read began */
	int64_t           spoke_ms; /* monotonic: when something was sent last */
};

struct streams {
	const struct kernel *kernel;
	int64_t              lag_ms;
	struct stream       *first;
	atomic_uint          count; /* other threads ask whether there are any */
	uv_timer_t           tick;
	uv_async_t           wake;
	struct buf           piece;
	bool                 is_stopped;
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
}

/* The stream lives in the request's arena and is gone after this. */
static void end(struct stream *s, bool is_whole)
{
	struct request *r = s->request;
	struct err      e = { 0 };

	forget(s);
	r->call->on_gone = NULL;
	if (!s->has_begun) {
		rc_ignore(err_set(&e, RC_UNAVAILABLE, "the server is stopping; ask again")); /* noted in e */
		request_fail(r, &e);
	} else if (is_whole) {
		http_stream_end(r->call);
	} else {
		http_stream_abort(r->call);
	}
}

static bool end_if_quiet(struct stream *s)
{
	if (!s->is_ending || s->is_reading)
		return false;
	end(s, !s->is_export);
	return true;
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
	if (!bytes.n)
		return;
	s->spoke_ms = mono_now().ms;
	http_stream_send(s->request->call, bytes);
}

/* The envelope on one line. Outside of JSON's strings a line break is as good as a blank; inside there is none. */
static void add_line(struct streams *all, const struct event *event)
{
	size_t          from = all->piece.n;
	struct json_out o;

	json_out_init(&o, &all->piece);
	json_open_object(&o);
	event_write_json(all->kernel, event, &o);
	json_close_object(&o);
	for (size_t i = from; i < all->piece.n; i++)
		if (all->piece.p[i] == '\n' || all->piece.p[i] == '\r')
			all->piece.p[i] = ' ';
	buf_add_char(&all->piece, '\n');
}

static void add_event(struct streams *all, const struct event *event)
{
	buf_addf(&all->piece, "id: %.*s\nevent: %.*s\ndata: ", STR_ARG(event->id), STR_ARG(event->type));
	add_line(all, event);
	buf_add_char(&all->piece, '\n');
}

/* False: more than fits, which no page of ours is. */
static bool send_page(struct stream *s)
{
	struct streams *all = s->all;

	buf_reset(&all->piece);
	for (size_t i = 0; i < s->list.count; i++)
		(s->is_export ? add_line : add_event)(all, &s->list.events[i]);
	if (all->piece.is_full)
		return false;
	say(s, buf_str(&all->piece));
	return true;
}

static void begin(struct stream *s)
{
	s->has_begun = true;
	request_stream(s->request, s->is_export ? "application/x-ndjson" : "text/event-stream");
	if (!s->is_export) /* with the id, a client that has seen no event yet can come back without missing one */
		say(s, str_format(&s->page, "retry: %d\nid: %s\n: events follow\n\n", RETRY_MS, s->after));
}

/* --- reading --- */

static void keep_cursor(struct stream *s)
{
	assert(s->list.next.n <= CURSOR_MAX);
	memcpy(s->cursor, s->list.next.p ? s->list.next.p : "", s->list.next.n);
	s->cursor[s->list.next.n] = '\0';
}

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

/* Where the next look of a live stream begins. */
static void move_on(struct stream *s)
{
	s->cursor[0] = '\0';
	if (s->list.count)
		move_to(s, s->list.events[s->list.count - 1].id);
	else if (s->list.next.n)
		keep_cursor(s); /* many records, none of them asked for: the rest of them follows */
	else
		move_to(s, floor_id(&s->page, s->read_ms - FLOOR_MS - s->all->lag_ms));
}

static void on_export_read(struct stream *s)
{
	keep_cursor(s);
	if (!send_page(s) || !s->cursor[0])
		end(s, !s->all->piece.is_full);
	else if (http_stream_is_idle(s->request->call))
		read_on(s);
}

static void on_follow_read(struct stream *s)
{
	bool has_more = s->list.next.n > 0;

	if (!send_page(s)) {
		end(s, false);
		return;
	}
	move_on(s);
	if ((has_more || s->has_news) && http_stream_is_idle(s->request->call))
		read_on(s);
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
	log_write_later(LOG_WARNING, "http", fields, ARRAY_LEN(fields), "events could not be read for a stream");
	if (s->is_export)
		end(s, false);
	else
		s->cursor[0] = '\0';
}

static void on_read(struct request *r)
{
	struct stream *s = r->arg;

	s->is_reading = false;
	if (end_if_quiet(s))
		return;
	if (r->txn.rc) {
		on_failed(s);
		return;
	}
	if (!s->has_begun)
		begin(s);
	if (s->is_export)
		on_export_read(s);
	else
		on_follow_read(s);
}

static void read_on(struct stream *s)
{
	struct request *r = s->request;

	arena_reset(&s->page);
	s->read_ms = clock_now(kernel_options(s->all->kernel)->clock).ms;
	s->list = s->filter;
	s->list.after_id = str_from(s->after);
	s->list.cursor = str_from(s->cursor);
	s->list.limit = s->is_export ? EXPORT_PAGE : FOLLOW_PAGE;
	if (!s->is_export && s->all->lag_ms && !s->cursor[0])
		s->filter.until_ms = s->list.until_ms = s->read_ms - s->all->lag_ms;
	s->is_reading = true;
	s->has_news = false;
	request_submit_in(r, &s->page, event_list, &s->list, true, on_read);
}

/* Look for more, unless that is under way or the client has enough to read. */
static void look(struct stream *s)
{
	s->has_news = true;
	if (s->has_begun && !s->is_reading && !s->is_ending && http_stream_is_idle(s->request->call))
		read_on(s);
}

static void on_sent(struct http_call *call)
{
	look(((struct request *)call->user)->arg);
}

/* A stream from now on begins behind the newest event. */
static void on_newest(struct request *r)
{
	struct stream *s = r->arg;

	s->is_reading = false;
	if (end_if_quiet(s))
		return;
	if (r->txn.rc) {
		on_failed(s);
		return;
	}
	move_to(s, s->list.count ? s->list.events[0].id : floor_id(&s->page, 0));
	begin(s);
}

static void find_newest(struct stream *s)
{
	s->list = (struct event_list){ .is_newest_first = true, .limit = 1 };
	s->is_reading = true;
	request_submit_in(s->request, &s->page, event_list, &s->list, true, on_newest);
}

/* --- time --- */

/* Who may not call any more is not told more, either. */
static bool is_over(const struct stream *s, int64_t now_ms)
{
	return s->request->good_until_ms && now_ms >= s->request->good_until_ms;
}

static void on_tick(uv_timer_t *tick)
{
	static const struct str heartbeat = STR_INIT(":\n\n");
	struct streams         *all = tick->data;
	int64_t                 now_ms = mono_now().ms;

	for (struct stream *s = all->first, *next; s; s = next) {
		next = s->next;
		if (s->is_export)
			continue;
		if (is_over(s, now_ms)) {
			s->is_ending = true;
			end_if_quiet(s);
			continue;
		}
		if (s->has_begun && now_ms - s->spoke_ms >= HEARTBEAT_MS)
			say(s, heartbeat);
		look(s);
	}
}

static void on_wake(uv_async_t *wake)
{
	struct streams *all = wake->data;

	for (struct stream *s = all->first, *next; s; s = next) {
		next = s->next;
		if (!end_if_quiet(s) && !s->is_export)
			look(s);
	}
}

void streams_poke_later(struct streams *all)
{
	if (atomic_load(&all->count))
		uv_async_send(&all->wake);
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

	all->kernel = o->kernel;
	all->lag_ms = o->stream_lag_ms;
	all->tick.data = all->wake.data = all;
	buf_init(&all->piece, PIECE_MAX);
	if (uv_timer_init(o->loop, &all->tick) || uv_async_init(o->loop, &all->wake, on_wake))
		abort(); /* the loop was just made: only memory can be missing */
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

void streams_free(struct streams *all)
{
	if (!all)
		return;
	buf_fini(&all->piece);
	free(all);
}

static struct stream *stream_new(struct request *r, const struct event_list *filter)
{
	struct streams *all = api_streams(r->api);
	struct stream  *s = arena_alloc(&r->call->arena, sizeof(*s));

	*s = (struct stream){ .all = all, .request = r, .filter = *filter, .next = all->first };
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

/* True when there is room for one more; otherwise the request is answered. HEAD gets its headers here, and no stream. */
static bool admit(struct request *r, const char *content_type)
{
	struct streams *all = api_streams(r->api);
	struct err      e = { 0 };

	if (r->call->req.is_head) {
		request_reply_as(r, 200, content_type, STR(""));
		return false;
	}
	if (!all->is_stopped && all->count < STREAMS_MAX)
		return true;
	rc_ignore(all->is_stopped ? err_set(&e, RC_UNAVAILABLE, "the server is stopping; ask again")
	                          : err_set(&e, RC_UNAVAILABLE,
	                                    "%d streams are open here already, which is the most; "
	                                    "close one, or try again later",
	                                    STREAMS_MAX)); /* noted in e */
	request_fail(r, &e);
	return false;
}

void streams_export(struct request *r, const struct event_list *filter)
{
	struct stream *s;

	if (!admit(r, "application/x-ndjson"))
		return;
	s = stream_new(r, filter);
	s->is_export = true;
	read_on(s);
}

void streams_follow(struct request *r, const struct event_list *filter, struct str after_id)
{
	struct stream *s;

	if (!admit(r, "text/event-stream"))
		return;
	s = stream_new(r, filter);
	move_to(s, after_id);
	if (after_id.n)
		read_on(s);
	else
		find_newest(s);
}
