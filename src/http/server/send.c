/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send.c - bytes out of a connection, and what comes after the last of them.
 *
 * Most replies fit into the socket's buffer and leave with one system call, without a copy and without a request to the
 * loop. Only what does not fit is copied and left to the loop. While the loop writes, `out` must not move; what comes
 * in that time gathers in `out_more`.
 *
 * Small replies of one turn leave together, at its end: the peers are woken once for many, and the processor does not
 * go back and forth between the handlers' code and that of the kernel's sockets. A reply that is its connection's last
 * or has another request behind it does not wait. Before anything else is written to a connection, and before it
 * closes, what is gathered goes out, so nothing is lost and no order changes.
 *
 * A connection reads no further request before its reply is all out, so a client that does not read gets no more than
 * one reply into our memory; of a streamed reply, as much as the router sends before it is told that the last piece is
 * out.
 */
#include "http/server/conn.h"

enum {
	OUT_MAX = HTTP_REPLY_MAX + HTTP_REPLY_MAX / 8, /* a reply, and what TLS adds */
	TLS_BACKLOG_MAX = 65536,                       /* of what TLS says by itself to a peer that does not read */
};

static void on_written(uv_write_t *request, int status);

static void start_write(struct conn *c, char *bytes, size_t size)
{
	uv_buf_t rest = uv_buf_init(bytes, (unsigned)size);

	c->is_writing = true;
	if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &rest, 1, on_written) != 0) {
		c->is_writing = false;
		conn_close(c);
	}
}

size_t conn_write_left(const struct conn *c)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp) + c->body.n - c->body_sent;
}

static void set_write_deadline(struct conn *c)
{
	c->write_left = conn_write_left(c);
	conn_wait(c, WAIT_WRITE);
}

/* Through TLS what is written moves on in `out`, otherwise the body stays where it is. The loop calls on_written()
 * in a later turn, also when the socket takes everything at once. */
static void send_piece(struct conn *c)
{
	size_t     left = c->body.n - c->body_sent;
	struct str piece = str_of(c->body.p + c->body_sent, left < CONN_PIECE_MAX ? left : CONN_PIECE_MAX);

	c->body_sent += piece.n;
	if (!c->tls) {
		start_write(c, c->body.p + c->body_sent - piece.n, piece.n);
	} else if (!tls_write(c->tls, piece)) {
		conn_close(c);
	} else {
		c->out.max = OUT_MAX;
		buf_add_str(&c->out, tls_outgoing(c->tls));
		tls_sent(c->tls);
		start_write(c, c->out.p, c->out.n);
	}
}

void conn_send_pieces(struct conn *c, struct buf *body)
{
	c->body = *body;
	c->body_sent = 0;
	buf_init(body, 0);
	if (!c->is_writing && c->state != CONN_CLOSING)
		send_piece(c);
}

/* What the loop wrote of a streamed reply is out. */
static void went_on(struct conn *c)
{
	if (c->state == CONN_CLOSING)
		return;
	if (c->is_writing) {
		set_write_deadline(c);
		return;
	}
	conn_wait(c, WAIT_REPLY);
	if (c->call.on_sent)
		c->call.on_sent(&c->call);
}

void conn_sent_piece(struct conn *c)
{
	if (c->state != CONN_CLOSING && c->is_writing && c->wait != WAIT_WRITE)
		set_write_deadline(c);
}

static void on_written(uv_write_t *request, int status)
{
	struct conn *c = CONTAINER_OF(request, struct conn, write);
	struct buf   done = c->out;

	c->is_writing = false;
	if (c->state == CONN_CLOSING)
		return;
	if (status != 0) {
		conn_close(c);
		return;
	}
	buf_fini(&done);
	c->out = c->out_more;
	buf_init(&c->out_more, OUT_MAX);
	if (c->out.n) {
		start_write(c, c->out.p, c->out.n);
	} else if (c->body_sent < c->body.n) {
		send_piece(c);
	} else {
		buf_fini(&c->body);
		c->body_sent = 0;
	}
	if (c->is_streaming)
		went_on(c);
	else if (!c->is_writing && c->state == CONN_WRITING)
		conn_sent_all(c);
}

/* Keep what the socket did not take: everything of the two but the first sent bytes. */
static void send_later(struct conn *c, struct str head, struct str body, size_t sent)
{
	struct buf *to = c->is_writing ? &c->out_more : &c->out;
	size_t      of_head = sent < head.n ? sent : head.n;
	size_t      of_body = sent - of_head;

	to->max = OUT_MAX;
	buf_add(to, head.p + of_head, head.n - of_head);
	if (body.n > of_body)
		buf_add(to, body.p + of_body, body.n - of_body);
	if (to->is_full)
		conn_close(c); /* of more than anybody is sent at once a part would be wrong */
	else if (!c->is_writing)
		start_write(c, c->out.p, c->out.n);
}

static void write_now(struct conn *c, struct str head, struct str body)
{
	uv_buf_t parts[2] = { { .base = (char *)(uintptr_t)head.p, .len = head.n },
		              { .base = (char *)(uintptr_t)body.p, .len = body.n } };
	int      sent = 0;

	if (!c->is_writing)
		sent = uv_try_write((uv_stream_t *)&c->tcp, parts, body.n ? 2 : 1);
	if (sent == UV_EAGAIN)
		sent = 0;
	if (sent < 0)
		conn_close(c);
	else if ((size_t)sent < head.n + body.n)
		send_later(c, head, body, (size_t)sent);
}

/* The socket did not take all of a gathered reply: the next request waits for the rest. */
static void wait_for_rest(struct conn *c)
{
	if (c->state != CONN_READING || !c->is_writing)
		return;
	c->state = CONN_WRITING;
	set_write_deadline(c);
}

/* A client that is found gone meanwhile may cause further replies, or bring us here again. */
void server_send_gathered(struct http_server *s)
{
	while (s->gathered_sent < s->gathered_count) {
		struct gathered g = s->gathered[s->gathered_sent++];

		g.conn->is_gathered = false;
		write_now(g.conn, str_of(s->gathered_text.p + g.start, g.size), STR(""));
		wait_for_rest(g.conn);
	}
	s->gathered_count = s->gathered_sent = 0;
	buf_reset(&s->gathered_text);
}

static void send_raw(struct conn *c, struct str head, struct str body)
{
	if (c->is_gathered)
		server_send_gathered(c->server);
	if (c->state != CONN_CLOSING)
		write_now(c, head, body);
}

static void send_tls(struct conn *c)
{
	struct str bytes = tls_outgoing(c->tls);

	if (bytes.n == 0)
		return;
	send_raw(c, bytes, STR(""));
	tls_sent(c->tls);
}

void conn_flush_tls(struct conn *c)
{
	if (c->out_more.n > TLS_BACKLOG_MAX)
		conn_close(c);
	else
		send_tls(c);
}

void conn_send(struct conn *c, struct str head, struct str body)
{
	if (!c->tls)
		send_raw(c, head, body);
	else if (tls_write(c->tls, head) && tls_write(c->tls, body))
		send_tls(c);
	else
		conn_close(c);
}

static bool may_gather(const struct conn *c, size_t size)
{
	return size <= GATHERED_SIZE && c->server->gathered_count < GATHERED_MAX && !c->tls && !c->is_last &&
	       !c->is_writing && !c->is_gathered && c->in_end == c->in_start + c->parser.used;
}

void conn_send_reply(struct conn *c, struct str head, struct str body)
{
	struct http_server *s = c->server;

	if (body.n || !may_gather(c, head.n)) {
		conn_send(c, head, body);
		return;
	}
	s->gathered[s->gathered_count++] = (struct gathered){ c, s->gathered_text.n, head.n };
	buf_add_str(&s->gathered_text, head);
	c->is_gathered = true;
	if (s->gathered_count == GATHERED_MAX)
		server_send_gathered(s);
}

/* What the peer still sends is waited for, so that the last reply is not lost. */
static void finish(struct conn *c)
{
	if (c->tls) {
		tls_goodbye(c->tls);
		conn_flush_tls(c);
	}
	if (c->state == CONN_CLOSING)
		return;
	if (!c->must_linger && c->in_end == c->in_start) {
		conn_close(c);
		return;
	}
	c->state = CONN_LINGERING;
	conn_wait(c, WAIT_LINGER);
	conn_resume(c);
	if (c->state != CONN_CLOSING && uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, NULL) != 0)
		conn_close(c);
}

void conn_sent_all(struct conn *c)
{
	if (c->state == CONN_CLOSING)
		return;
	if (c->is_writing) {
		c->state = CONN_WRITING;
		set_write_deadline(c);
		return;
	}
	if (c->is_last) {
		finish(c);
		return;
	}
	c->state = CONN_READING;
	conn_serve(c);
}
