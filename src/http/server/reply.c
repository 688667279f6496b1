/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.c - puts replies together: the router's and the server's own.
 *
 * A reply is put together in one buffer of the server, which is free again when the socket has taken it or what it did
 * not take was copied. Nothing is allocated for a reply that the socket takes at once.
 *
 * A streamed reply is sent in chunks (HTTP/1.0: as it comes, and the connection's end is its end), each put together in
 * the same buffer.
 *
 * The text of the Date header is made once a second.
 */
#include <assert.h>
#include <time.h>

#include "base/clock.h"
#include "http/server/conn.h"

enum { JOIN_MAX = 16384 }; /* a body up to this size is copied behind its head, to leave in one piece */

#define REPLY_LINE(status, reason)                                            \
	{                                                                     \
		status, STR_INIT("HTTP/1.1 " #status " " reason "\r\nDate: ") \
	}

/* How a reply begins: up to the date. */
static const struct {
	int        status;
	struct str text;
} reply_lines[] = {
	REPLY_LINE(200, "OK"),
	REPLY_LINE(201, "Created"),
	REPLY_LINE(202, "Accepted"),
	REPLY_LINE(204, "No Content"),
	REPLY_LINE(302, "Found"),
	REPLY_LINE(304, "Not Modified"),
	REPLY_LINE(400, "Bad Request"),
	REPLY_LINE(401, "Unauthorized"),
	REPLY_LINE(403, "Forbidden"),
	REPLY_LINE(404, "Not Found"),
	REPLY_LINE(405, "Method Not Allowed"),
	REPLY_LINE(408, "Request Timeout"),
	REPLY_LINE(409, "Conflict"),
	REPLY_LINE(413, "Content Too Large"),
	REPLY_LINE(422, "Unprocessable Content"),
	REPLY_LINE(414, "URI Too Long"),
	REPLY_LINE(415, "Unsupported Media Type"),
	REPLY_LINE(417, "Expectation Failed"),
	REPLY_LINE(429, "Too Many Requests"),
	REPLY_LINE(431, "Request Header Fields Too Large"),
	REPLY_LINE(500, "Internal Server Error"),
	REPLY_LINE(501, "Not Implemented"),
	REPLY_LINE(503, "Service Unavailable"),
	REPLY_LINE(504, "Gateway Timeout"),
	REPLY_LINE(505, "HTTP Version Not Supported"),
};

static struct conn *conn_of(struct http_call *call)
{
	return CONTAINER_OF(call, struct conn, call);
}

static const struct conn *conn_read(const struct http_call *call)
{
	return (const struct conn *)(const void *)((const char *)call - offsetof(struct conn, call));
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static const char *date_text(struct http_server *s)
{
	int64_t   now_ms = (int64_t)uv_now(s->loop);
	int64_t   wall_ms;
	time_t    sec;
	struct tm tm;

	if (now_ms < s->date_until_ms)
		return s->date;
	wall_ms = clock_now(&clock_real).ms;
	sec = (time_t)(wall_ms / 1000);
	gmtime_r(&sec, &tm);
	(void)strftime(s->date, sizeof(s->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	s->date_until_ms = now_ms + 1000 - wall_ms % 1000;
	return s->date;
}

static void add_reply_line(struct buf *b, int status)
{
	for (size_t i = 0; i < ARRAY_LEN(reply_lines); i++)
		if (reply_lines[i].status == status) {
			buf_add_str(b, reply_lines[i].text);
			return;
		}
	buf_addf(b, "HTTP/1.1 %d \r\nDate: ", status);
}

/* The reply's end is found by its size, by the last of its chunks, or by the end of the connection. */
static void add_head(struct conn *c, int status, const char *content_type, size_t body_size)
{
	struct buf *b = &c->server->reply;

	buf_reset(b);
	add_reply_line(b, status);
	buf_add_text(b, date_text(c->server));
	if (c->is_streaming && !c->parser.is_http10) {
		buf_add_str(b, STR("\r\nTransfer-Encoding: chunked"));
	} else if (!c->is_streaming && status != 204 && status != 304) {
		buf_add_str(b, STR("\r\nContent-Length: "));
		buf_add_int(b, (int64_t)body_size);
	}
	if (content_type) {
		buf_add_str(b, STR("\r\nContent-Type: "));
		buf_add_text(b, content_type);
	}
	if (c->is_last)
		buf_add_str(b, STR("\r\nConnection: close"));
	else if (c->parser.is_http10)
		buf_add_str(b, STR("\r\nConnection: keep-alive"));
	buf_add_str(b, STR("\r\n"));
	buf_add_str(b, buf_str(&c->call.headers));
	buf_add_str(b, STR("\r\n"));
}

static void send_reply(struct conn *c, int status, const char *content_type, struct str body)
{
	struct buf *b = &c->server->reply;

	add_head(c, status, content_type, body.n);
	if (c->parser.is_head || status == 204 || status == 304)
		body.n = 0;
	if (body.n <= JOIN_MAX) {
		buf_add_str(b, body);
		body.n = 0;
	}
	assert(!b->is_full);
	conn_send_reply(c, buf_str(b), body);
}

/* The request is answered: forget it. */
static void end_request(struct conn *c)
{
	c->in_start += c->parser.used;
	http_parser_init(&c->parser);
	arena_reset(&c->call.arena);
	buf_reset(&c->call.headers);
}

void conn_refuse(struct conn *c, int status, const char *why)
{
	struct http_server *s = c->server;

	c->is_last = true;
	c->must_linger = true;
	buf_reset(&c->call.headers);
	buf_reset(&s->error_body);
	s->options.on_error(status, why, &c->call.headers, &s->error_body, s->options.arg);
	send_reply(c, status, NULL, buf_str(&s->error_body));
	conn_sent_all(c);
}

/* False: there is nobody to be answered, or the answer is that it is too large. */
static bool may_reply(struct conn *c, size_t body_size)
{
	assert(c->has_call);
	c->has_call = false;
	if (!c->server) {
		conn_free(c);
		return false;
	}
	if (c->state == CONN_CLOSING)
		return false; /* freed when the loop has closed the socket */
	c->is_last = c->is_last || !c->call.req.is_keep_alive || c->server->is_leaving;
	if (!c->call.headers.is_full && body_size <= HTTP_REPLY_MAX)
		return true;
	conn_refuse(c, 500, "the reply is too large to be sent");
	return false;
}

void http_reply(struct http_call *call, int status, const char *content_type, struct str body)
{
	struct conn *c = conn_of(call);

	if (!may_reply(c, body.n))
		return;
	send_reply(c, status, content_type, body);
	end_request(c);
	conn_sent_all(c);
}

/* *body may be in the call's arena, which is reset. */
void http_reply_taken(struct http_call *call, int status, const char *content_type, struct buf *body)
{
	struct conn *c = conn_of(call);
	struct buf   taken = *body;
	bool         is_whole = taken.n <= CONN_PIECE_MAX || c->parser.is_head;

	buf_init(body, 0);
	if (is_whole) {
		http_reply(call, status, content_type, buf_str(&taken));
	} else if (may_reply(c, taken.n)) {
		add_head(c, status, content_type, taken.n);
		conn_send(c, buf_str(&c->server->reply), STR(""));
		conn_send_pieces(c, &taken);
		end_request(c);
		conn_sent_all(c);
	}
	buf_fini(&taken);
}

/* Is there nobody any more to be sent anything? */
static bool is_cut(const struct conn *c)
{
	return !c->server || c->state == CONN_CLOSING;
}

bool http_is_gone(const struct http_call *call)
{
	return is_cut(conn_read(call));
}

/* --- a reply in pieces --- */

void http_stream_begin(struct http_call *call, const char *content_type)
{
	struct conn *c = conn_of(call);

	assert(c->has_call && !c->is_streaming);
	c->is_streaming = true;
	if (is_cut(c))
		return;
	c->is_last = c->is_last || !call->req.is_keep_alive || c->parser.is_http10 || c->server->is_leaving;
	add_head(c, 200, content_type, 0);
	conn_send(c, buf_str(&c->server->reply), STR(""));
	conn_sent_piece(c);
}

void http_stream_send(struct http_call *call, struct str bytes)
{
	struct conn *c = conn_of(call);
	struct buf  *b;

	assert(c->is_streaming && !c->parser.is_head);
	if (is_cut(c) || !bytes.n) /* an empty chunk would be the last */
		return;
	b = &c->server->reply;
	buf_reset(b);
	if (!c->parser.is_http10)
		buf_addf(b, "%zx\r\n", bytes.n);
	buf_add_str(b, bytes);
	if (!c->parser.is_http10)
		buf_add_str(b, STR("\r\n"));
	assert(!b->is_full);
	conn_send(c, buf_str(b), STR(""));
	conn_sent_piece(c);
}

bool http_stream_is_idle(const struct http_call *call)
{
	const struct conn *c = conn_read(call);

	return !is_cut(c) && !c->is_writing;
}

void http_stream_end(struct http_call *call)
{
	struct conn *c = conn_of(call);

	assert(c->has_call && c->is_streaming);
	c->has_call = c->is_streaming = false;
	if (!c->server) {
		conn_free(c);
		return;
	}
	if (c->state == CONN_CLOSING)
		return; /* freed when the loop has closed the socket */
	c->is_last = c->is_last || c->server->is_leaving;
	if (!c->parser.is_http10 && !c->parser.is_head)
		conn_send(c, STR("0\r\n\r\n"), STR(""));
	end_request(c);
	conn_sent_all(c);
}

void http_stream_abort(struct http_call *call)
{
	struct conn *c = conn_of(call);

	assert(c->has_call && c->is_streaming);
	c->has_call = c->is_streaming = false;
	if (c->server)
		conn_close(c);
	else
		conn_free(c);
}

struct str http_client(const struct http_call *call)
{
	return str_from(conn_read(call)->client_text);
}

struct str http_client_key(const struct http_call *call)
{
	const struct client_key *key = &conn_read(call)->client;

	return str_of((const char *)key->bytes, sizeof(key->bytes));
}
