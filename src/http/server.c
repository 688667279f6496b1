/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.c - listens, counts connections, wakes those whose time is up, and ends in good order.
 *
 * There is one timer for the whole server, not one per connection: connections that wait for the same thing have the
 * same time-out, so a list to which they are appended is in order of deadlines, and a look at each list's first
 * entries finds all that are due.
 *
 * Draining: the listener closes, idle connections close, every reply is a connection's last. When no connection is left
 * the timer closes too, and then on_drained is called, always from the loop and never from inside
 * http_server_drain(). A call whose connection was cut may be replied to even after http_server_free().
 */
#include "http/server.h"

#include <signal.h>

#include "base/mem.h"
#include "http/conn.h"

enum { BACKLOG = 4096, TICK_MAX_MS = 500, TICK_MIN_MS = 5, ERROR_BODY_MAX = 65536 };

/* Draining. */

static void finish_if_drained(struct http_server *s)
{
	if (!s->is_draining || s->connections > 0 || s->handles > 0 || s->is_drained)
		return;
	s->is_drained = true;
	s->on_drained(s->drained_arg);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct http_server *s = handle->data;

	s->handles--;
	finish_if_drained(s);
}

static void close_tick_if_last(struct http_server *s)
{
	if (s->is_draining && s->connections == 0 && !uv_is_closing((uv_handle_t *)&s->tick))
		uv_close((uv_handle_t *)&s->tick, on_handle_closed);
}

void server_forget(struct http_server *s, struct conn *c)
{
	peers_leave(s->peers, &c->peer);
	s->connections--;
	close_tick_if_last(s);
}

static void for_each_conn(struct http_server *s, void (*visit)(struct conn *c))
{
	for (int wait = 0; wait < WAIT_CLOSE; wait++) {
		for (struct conn *c = s->waits[wait].first, *next; c; c = next) {
			next = c->next;
			visit(c);
		}
	}
}

void http_server_drain(struct http_server *s, int grace_ms, void (*on_drained)(void *arg), void *arg)
{
	if (s->is_draining) { /* asked again: only the patience may get shorter */
		if ((int64_t)uv_now(s->loop) + grace_ms < s->cut_ms)
			s->cut_ms = (int64_t)uv_now(s->loop) + grace_ms;
		return;
	}
	s->is_draining = true;
	s->on_drained = on_drained;
	s->drained_arg = arg;
	s->cut_ms = (int64_t)uv_now(s->loop) + grace_ms;
	uv_close((uv_handle_t *)&s->listener, on_handle_closed);
	for_each_conn(s, conn_close_if_idle);
	close_tick_if_last(s);
}

/* Time. */

static void on_tick(uv_timer_t *timer)
{
	struct http_server *s = timer->data;
	int64_t             now_ms = (int64_t)uv_now(s->loop);

	for (int wait = 0; wait < WAIT__COUNT; wait++) {
		struct conn_list *list = &s->waits[wait];

		while (list->timeout_ms && list->first && list->first->due_ms <= now_ms)
			conn_expire(list->first);
	}
	if (s->is_draining && now_ms >= s->cut_ms)
		for_each_conn(s, conn_close);
}

static int smallest_timeout(const struct http_server *s)
{
	int smallest = TICK_MAX_MS * 4;

	for (int wait = 0; wait < WAIT__COUNT; wait++)
		if (s->waits[wait].timeout_ms && s->waits[wait].timeout_ms < smallest)
			smallest = s->waits[wait].timeout_ms;
	return smallest;
}

static int start_tick(struct http_server *s)
{
	int tick_ms = smallest_timeout(s) / 4;

	if (tick_ms < TICK_MIN_MS)
		tick_ms = TICK_MIN_MS;
	return uv_timer_start(&s->tick, on_tick, (uint64_t)tick_ms, (uint64_t)tick_ms);
}

/* Opening. */

static void on_connection(uv_stream_t *listener, int status)
{
	if (status == 0)
		conn_open(listener->data);
}

static enum rc check_options(const struct http_options *o, struct err *e)
{
	if (!o->tls_cert_file != !o->tls_key_file)
		return err_set(e, RC_INVALID, "TLS needs both a certificate file and a key file, or neither");
	if (o->connections_max == 0)
		return err_set(e, RC_INVALID, "connections_max must be at least 1");
	if (o->header_timeout_ms <= 0 || o->body_timeout_ms <= 0 || o->idle_timeout_ms <= 0 || o->write_timeout_ms <= 0)
		return err_set(e, RC_INVALID, "time-outs of the HTTP server must be at least 1 ms");
	return RC_OK;
}

static enum rc parse_address(const struct http_options *o, struct sockaddr_storage *ret, struct err *e)
{
	if (o->port < 0 || o->port > 65535)
		return err_set(e, RC_INVALID, "port %d is not within 0 to 65535", o->port);
	if (uv_ip4_addr(o->host, o->port, (struct sockaddr_in *)ret) == 0 ||
	    uv_ip6_addr(o->host, o->port, (struct sockaddr_in6 *)ret) == 0)
		return RC_OK;
	return err_set(e, RC_INVALID, "listen address '%s' is not a numeric IPv4 or IPv6 address", o->host);
}

static void set_timeouts(struct http_server *s)
{
	s->waits[WAIT_HEADER].timeout_ms = s->options.header_timeout_ms;
	s->waits[WAIT_BODY].timeout_ms = s->options.body_timeout_ms;
	s->waits[WAIT_IDLE].timeout_ms = s->options.idle_timeout_ms;
	s->waits[WAIT_WRITE].timeout_ms = s->options.write_timeout_ms;
	s->waits[WAIT_LINGER].timeout_ms = CONN_LINGER_MS;
}

static struct http_server *new_server(uv_loop_t *loop, const struct http_options *o)
{
	struct http_server *s = mem_new(struct http_server);

	s->loop = loop;
	s->options = *o;
	s->cert_file = o->tls_cert_file ? mem_strdup(o->tls_cert_file) : NULL;
	s->key_file = o->tls_key_file ? mem_strdup(o->tls_key_file) : NULL;
	s->options.host = s->options.tls_cert_file = s->options.tls_key_file = NULL; /* the caller's memory */
	s->peers = peers_new(o->connections_max);
	buf_init(&s->reply, HTTP_REPLY_MAX);
	buf_init(&s->error_body, ERROR_BODY_MAX);
	set_timeouts(s);
	return s;
}

static int listen_on(struct http_server *s, const struct sockaddr_storage *address)
{
	int failure = uv_tcp_bind(&s->listener, (const struct sockaddr *)address, 0);

	if (!failure)
		failure = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection);
	return failure ? failure : start_tick(s);
}

static void on_failed_closed(uv_handle_t *handle)
{
	struct http_server *s = handle->data;

	if (--s->handles == 0)
		http_server_free(s);
}

static enum rc start(struct http_server *s, const struct http_options *o, const struct sockaddr_storage *address,
                     struct err *e)
{
	int failure;

	s->handles = 2;
	s->listener.data = s->tick.data = s;
	(void)uv_timer_init(s->loop, &s->tick);   /* these two only fill */
	(void)uv_tcp_init(s->loop, &s->listener); /* the structs in */
	failure = listen_on(s, address);
	if (!failure)
		return RC_OK;
	uv_close((uv_handle_t *)&s->listener, on_failed_closed);
	uv_close((uv_handle_t *)&s->tick, on_failed_closed);
	return err_set(e, RC_UNAVAILABLE, "cannot listen on %s port %d: %s", o->host, o->port, uv_strerror(failure));
}

enum rc http_server_open(uv_loop_t *loop, const struct http_options *options, struct http_server **ret, struct err *e)
{
	struct sockaddr_storage address = { 0 };
	struct tls_identity    *identity = NULL;
	struct http_server     *s;
	enum rc                 rc;

	if ((rc = check_options(options, e)) || (rc = parse_address(options, &address, e)))
		return rc;
	if (options->tls_cert_file &&
	    (rc = tls_identity_open(options->tls_cert_file, options->tls_key_file, &identity, e)))
		return rc;
	(void)signal(SIGPIPE, SIG_IGN); /* libuv writes without MSG_NOSIGNAL; cannot fail for this signal */
	s = new_server(loop, options);
	s->identity = identity;
	if ((rc = start(s, options, &address, e)))
		return rc;
	*ret = s;
	return RC_OK;
}

int http_server_port(const struct http_server *s)
{
	struct sockaddr_storage address = { 0 };
	int                     size = sizeof(address);

	if (uv_tcp_getsockname(&s->listener, (struct sockaddr *)&address, &size) != 0)
		return 0; /* closed already */
	if (address.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&address)->sin_port);
	return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
}

unsigned http_server_connections(const struct http_server *s)
{
	return s->connections;
}

enum rc http_server_reload_tls(struct http_server *s, struct err *e)
{
	struct tls_identity *identity;
	enum rc              rc;

	if (!s->cert_file)
		return RC_OK;
	if ((rc = tls_identity_open(s->cert_file, s->key_file, &identity, e)))
		return rc;
	tls_identity_close(s->identity);
	s->identity = identity;
	return RC_OK;
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	tls_identity_close(s->identity);
	peers_free(s->peers);
	buf_fini(&s->reply);
	buf_fini(&s->error_body);
	free(s->cert_file);
	free(s->key_file);
	free(s);
}
