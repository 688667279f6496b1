/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.c - the life of one connection: accept, read, hand requests to the router, deadlines, end.
 *
 * One request at a time: while the router has a call, what else arrives is kept in the room that is left in the receive
 * buffer, and reading stops only when that is full. Reading otherwise stays on, so a client that goes away is noticed
 * while its request is under way, and the loop need not be told anything per request.
 *
 * Always true:
 *   1. The receive buffer does not move while the router has a call: the request's views point into it.
 *   2. A connection is in exactly one list of the server, the one of what it waits for.               [conn_wait()]
 *   3. Deadlines of header and body count from their beginning; more bytes do not prolong them.      [await_more()]
 *   4. A router that has a call replies exactly once. When the client is gone, on_gone is called once, the socket is
 *      closed, and the connection's memory stays until that reply.                          [conn_close(), on_closed()]
 *   5. A streamed reply has a deadline only while something waits to be taken by the client. [conn_sent_piece()]
 *   6. However many requests come at once, one turn of the loop answers only a few of them.          [conn_serve()]
 *   7. conn_serve() is never nested: a reply from inside on_request only changes the state, and the loop there goes on.
 *
 * A client that closes its sending half while its request is under way counts as gone; while it is being answered, it
 * gets the answers to all that it has sent.
 *
 * Not here: sending (send.c), what replies look like (reply.c), listening and draining (server.c).
 */
#include "http/server/conn.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

enum {
	IN_ROOM_FIRST = 4096,
	IN_ROOM_KEPT = 16384,      /* a larger buffer is given back when it is empty */
	IN_ROOM_SPARE = 1024,      /* less than this left: make room before reading on */
	WRITE_PROGRESS_MIN = 4096, /* bytes a slow reader must take per write_timeout_ms */
	REQUESTS_A_TURN = 4,       /* of one connection, in one turn of the loop */
	KEEPALIVE_SEC = 60,
	PLAIN_HTTP_LOG_MS = 1000,
	FULL_LOG_MS = 10000,
};

/* Lists. */

static void unlink_conn(struct conn *c)
{
	struct conn_list *list = &c->server->waits[c->wait];

	*(c->previous ? &c->previous->next : &list->first) = c->next;
	*(c->next ? &c->next->previous : &list->last) = c->previous;
	c->previous = c->next = NULL;
}

static void link_last(struct conn *c, enum conn_wait wait)
{
	struct conn_list *list = &c->server->waits[wait];

	c->wait = wait;
	c->due_ms = (int64_t)uv_now(c->server->loop) + list->timeout_ms;
	c->previous = list->last;
	*(list->last ? &list->last->next : &list->first) = c;
	list->last = c;
}

void conn_wait(struct conn *c, enum conn_wait wait)
{
	unlink_conn(c);
	link_last(c, wait);
}

/* End of life. */

void conn_free(struct conn *c)
{
	assert(!c->has_call);
	free(c->in);
	buf_fini(&c->out);
	buf_fini(&c->out_more);
	buf_fini(&c->body);
	buf_fini(&c->call.headers);
	arena_fini(&c->call.arena);
	tls_free(c->tls);
	free(c);
}

static void on_closed(uv_handle_t *handle)
{
	struct conn        *c = CONTAINER_OF(handle, struct conn, tcp);
	struct http_server *s = c->server;

	unlink_conn(c);
	c->server = NULL;
	server_forget(s, c);
	if (!c->has_call)
		conn_free(c);
}

void conn_close(struct conn *c)
{
	if (c->is_gathered)
		server_send_gathered(c->server);
	if (c->state == CONN_CLOSING)
		return;
	c->state = CONN_CLOSING;
	conn_wait(c, WAIT_CLOSE);
	uv_close((uv_handle_t *)&c->tcp, on_closed);
	if (c->has_call && c->call.on_gone)
		c->call.on_gone(&c->call);
}

/* What the socket does not take of a gathered reply is waited for: then it is not idle. */
static void close_when_idle(struct conn *c)
{
	if (c->is_gathered)
		server_send_gathered(c->server);
	if (c->state == CONN_READING)
		conn_close(c);
}

void conn_close_if_idle(struct conn *c)
{
	bool is_about_to_ask = c->is_fresh && (int64_t)uv_now(c->server->loop) < c->server->fresh_until_ms;

	if (c->state == CONN_READING && c->in_end == c->in_start && !is_about_to_ask)
		close_when_idle(c);
}

static void peer_left(struct conn *c, bool is_orderly)
{
	if (c->is_gathered)
		server_send_gathered(c->server);
	if (is_orderly && (c->state == CONN_WRITING || c->wait == WAIT_TURN))
		c->has_ended = true; /* it may still read */
	else
		conn_close(c);
}

/* The receive buffer. */

static void resize_in(struct conn *c, size_t room)
{
	c->in = mem_resize(c->in, room);
	c->in_room = room;
}

/* Only when no view points into the buffer. */
static void make_room(struct conn *c)
{
	size_t n = c->in_end - c->in_start;

	if (n == 0) {
		c->in_start = c->in_end = 0;
		if (c->in_room > IN_ROOM_KEPT || c->in_room == 0) {
			free(c->in);
			c->in = NULL;
			resize_in(c, IN_ROOM_FIRST);
		}
	}
	if (c->in_room - c->in_end >= IN_ROOM_SPARE)
		return;
	if (c->in_start > 0) {
		memmove(c->in, c->in + c->in_start, n);
		c->in_start = 0;
		c->in_end = n;
	}
	if (c->in_room - c->in_end < IN_ROOM_SPARE)
		resize_in(c, c->in_room * 2);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	struct conn *c = CONTAINER_OF(handle, struct conn, tcp);

	(void)suggested;
	if (c->tls || c->must_linger || c->state == CONN_LINGERING)
		*ret = uv_buf_init(c->server->scratch, CONN_SCRATCH_SIZE);
	else
		*ret = uv_buf_init(c->in + c->in_end, (unsigned)(c->in_room - c->in_end));
}

/* Plain HTTP is a mistake in somebody's settings that an operator can only see here; a client that insists must not
 * fill the log. */
static void tls_broke(struct conn *c)
{
	struct http_server *s = c->server;
	struct log_field    fields[] = { LOG_STR("client", str_from(c->client_text)) };
	int64_t             now_ms = (int64_t)uv_now(s->loop);

	if (tls_met_http(c->tls) && now_ms >= s->plain_http_after_ms) {
		s->plain_http_after_ms = now_ms + PLAIN_HTTP_LOG_MS;
		log_write(LOG_INFO, "http", fields, ARRAY_LEN(fields), "a client spoke plain HTTP to the TLS port");
	}
	conn_flush_tls(c); /* the alert that says why */
	if (c->state == CONN_READING) {
		c->is_last = true;
		c->must_linger = true;
		conn_sent_all(c);
	} else {
		conn_close(c);
	}
}

/* Take decrypted bytes over into the receive buffer. True when there were any. */
static bool pull_tls(struct conn *c)
{
	enum tls_result result;
	size_t          n = 0;

	if (!c->tls || c->in_end == c->in_room)
		return false;
	result = tls_read(c->tls, c->in + c->in_end, c->in_room - c->in_end, &n);
	c->in_end += n;
	if (result == TLS_FAILED)
		tls_broke(c);
	else
		conn_flush_tls(c);
	if (result == TLS_CLOSED)
		peer_left(c, true);
	return result == TLS_OK;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes);

void conn_resume(struct conn *c)
{
	if (!c->is_paused)
		return;
	c->is_paused = false;
	if (uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0)
		conn_close(c);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
	struct conn *c = CONTAINER_OF(stream, struct conn, tcp);

	if (n == 0 || c->state == CONN_CLOSING)
		return;
	if (n < 0) {
		peer_left(c, n == UV_EOF);
		return;
	}
	if (c->must_linger || c->state == CONN_LINGERING)
		return; /* nothing of what still comes is wanted */
	if (c->tls)
		tls_receive(c->tls, bytes->base, (size_t)n);
	else
		c->in_end += (size_t)n;
	if (c->state == CONN_READING && c->wait != WAIT_TURN) {
		conn_serve(c);
		return;
	}
	while (pull_tls(c)) /* the router or the socket is busy with the request before */
		;
	if (c->in_end < c->in_room || c->state == CONN_CLOSING)
		return;
	c->is_paused = true;
	(void)uv_read_stop((uv_stream_t *)&c->tcp); /* always 0 */
}

/* Requests. */

static void note_client(struct conn *c, const struct ip *client)
{
	c->client = client_key(client);
	if (ip_is_v4(client))
		(void)uv_inet_ntop(AF_INET, client->bytes + 12, c->client_text, sizeof(c->client_text)); /* fits */
	else
		(void)uv_inet_ntop(AF_INET6, client->bytes, c->client_text, sizeof(c->client_text));
}

static void take_request(struct conn *c)
{
	const struct http_options *o = &c->server->options;
	struct ip                  client;

	if (c->in_end == c->in_room)
		resize_in(c, c->in_room + IN_ROOM_SPARE); /* so that reading can stay on */
	http_parser_request(&c->parser, c->in + c->in_start, &c->call.req);
	if (c->is_proxy) {
		client = forwarded_client(&o->trusted_proxies, &c->address, &c->call.req);
		note_client(c, &client);
	}
	c->state = CONN_BUSY;
	c->has_call = true;
	c->is_fresh = false;
	conn_wait(c, WAIT_REPLY);
	c->call.started_ns = mono_ns();
	c->call.user = NULL;
	c->call.on_gone = NULL;
	c->call.on_sent = NULL;
	if (c->is_spare)
		c->call.req.is_keep_alive = false;
	(c->is_spare ? o->on_spare : o->on_request)(&c->call, o->arg);
}

/* One step with what is there. True when another one may be possible. Counts the requests down. */
static bool serve_step(struct conn *c, int *left)
{
	const struct http_options *o = &c->server->options;
	size_t                     n = c->in_end - c->in_start;
	enum http_verdict          verdict = n ? http_parse(&c->parser, c->in + c->in_start, &n) : HTTP_NEED_MORE;

	c->in_end = c->in_start + n;
	switch (verdict) {
	case HTTP_NEED_MORE:
		if (c->parser.has_body && c->parser.expects_continue) {
			c->parser.expects_continue = false;
			if (n == c->parser.body_at)
				conn_send(c, STR("HTTP/1.1 100 Continue\r\n\r\n"), STR(""));
		}
		make_room(c);
		return c->state == CONN_READING && pull_tls(c);
	case HTTP_HEAD_DONE:
		if (c->parser.has_body) {
			http_parser_request(&c->parser, c->in + c->in_start, &c->call.req);
			http_parser_allow(&c->parser, o->body_limit(&c->call.req, o->arg));
		}
		return true;
	case HTTP_DONE:
		--*left;
		take_request(c);
		return true;
	case HTTP_REFUSED: conn_refuse(c, c->parser.status, c->parser.why); return false;
	}
	return false;
}

/* The deadline runs from the first moment of each wait; bytes that come in between do not move it. */
static void await_more(struct conn *c)
{
	enum conn_wait wait = WAIT_IDLE;

	conn_resume(c);
	if (c->state != CONN_READING)
		return;
	if (c->parser.has_body)
		wait = WAIT_BODY;
	else if (c->is_fresh || c->in_end > c->in_start)
		wait = WAIT_HEADER;
	if (c->has_ended || (wait == WAIT_IDLE && c->server->is_draining))
		close_when_idle(c);
	else if (c->wait != wait)
		conn_wait(c, wait);
}

void conn_serve(struct conn *c)
{
	int left = REQUESTS_A_TURN;

	if (c->is_serving)
		return;
	c->is_serving = true;
	while (c->state == CONN_READING && left > 0 && serve_step(c, &left))
		;
	c->is_serving = false;
	if (c->state != CONN_READING)
		return;
	if (left > 0) {
		await_more(c);
	} else {
		conn_wait(c, WAIT_TURN);
		server_wake_in_turn(c->server);
	}
}

void conn_take_turn(struct conn *c)
{
	conn_wait(c, WAIT_HEADER); /* await_more() says what it waits for */
	conn_serve(c);
}

/* Deadlines. */

void conn_expire(struct conn *c)
{
	size_t left = conn_write_left(c);

	switch (c->wait) {
	case WAIT_HEADER:
		if (c->in_end > c->in_start)
			conn_refuse(c, 408, "the head of the request did not come in time");
		else
			conn_close(c);
		break;
	case WAIT_BODY: conn_refuse(c, 408, "the body of the request did not come in time"); break;
	case WAIT_WRITE:
		if (left + WRITE_PROGRESS_MIN > c->write_left) {
			conn_close(c);
		} else {
			c->write_left = left;
			conn_wait(c, WAIT_WRITE);
		}
		break;
	default: conn_close(c); break;
	}
}

/* Beginning of life. */

static void on_rejected(uv_handle_t *handle)
{
	free(CONTAINER_OF(handle, struct conn, tcp));
}

static bool find_peer(const struct http_server *s, struct conn *c)
{
	struct sockaddr_storage address = { 0 };
	int                     size = sizeof(address);

	if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&address, &size) != 0)
		return false; /* gone already */
	c->address = ip_of((struct sockaddr *)&address);
	c->peer = client_key(&c->address);
	c->is_proxy = proxies_trust(&s->options.trusted_proxies, &c->address);
	note_client(c, &c->address);
	return true;
}

static void tell_full(struct http_server *s)
{
	int64_t now_ms = (int64_t)uv_now(s->loop);

	if (now_ms < s->full_after_ms)
		return;
	s->full_after_ms = now_ms + FULL_LOG_MS;
	if (s->is_short)
		server_tell_short();
	else
		log_write(LOG_WARNING, "http", NULL, 0,
		          "all %u connections are taken; only probes are answered on others; "
		          "LEASEHOLD_CONNECTIONS_MAX is the limit",
		          s->options.connections_max);
}

/* The newest one has the place, unless a request of the one before is under way. */
static bool take_spare_place(struct http_server *s, struct conn *c)
{
	tell_full(s);
	if (s->options.metrics)
		metrics_add(s->options.metrics, METRIC_CONNECTIONS_OVER, "", 1);
	if (!s->options.on_spare || (s->spare && s->spare->has_call))
		return false;
	if (s->spare)
		conn_close(s->spare);
	s->spare = c;
	c->is_spare = true;
	return true;
}

/* True when the limits let it in; it is counted then. */
static bool admit(struct http_server *s, struct conn *c)
{
	unsigned max = s->options.connections_per_client_max;
	bool     is_full = s->is_short || s->connections - (s->spare ? 1 : 0) >= s->options.connections_max;

	if (s->is_draining || !find_peer(s, c))
		return false;
	if (is_full ? !take_spare_place(s, c)
	            : !clients_join(s->clients, &c->peer, max && !c->is_proxy ? max : UINT32_MAX))
		return false;
	server_count(s, 1);
	return true;
}

static void start(struct http_server *s, struct conn *c)
{
	c->server = s;
	c->is_fresh = true;
	buf_init(&c->call.headers, CONN_REPLY_HEADERS_MAX);
	http_parser_init(&c->parser);
	if (s->identity)
		c->tls = tls_new(s->identity);
	make_room(c);
	link_last(c, WAIT_HEADER);
	(void)uv_tcp_nodelay(&c->tcp, 1);                  /* without it replies are late, not wrong */
	(void)uv_tcp_keepalive(&c->tcp, 1, KEEPALIVE_SEC); /* without it the dead are noticed later */
	if (uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0)
		conn_close(c);
}

void conn_open(struct http_server *s)
{
	struct conn *c = mem_new(struct conn);

	if (uv_tcp_init(s->loop, &c->tcp) != 0) {
		free(c);
		return;
	}
	if (uv_accept((uv_stream_t *)&s->listener, (uv_stream_t *)&c->tcp) == 0 && admit(s, c))
		start(s, c);
	else
		uv_close((uv_handle_t *)&c->tcp, on_rejected);
}
