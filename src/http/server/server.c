/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.c - listens, counts connections, wakes those whose time is up, and ends in good order.
 *
 * There is one timer for the whole server, not one per connection: connections that wait for the same thing have the
 * same time-out, so a list to which they are appended is in order of deadlines, and a look at each list's first
 * entries finds all that are due.
 *
 * Draining: the listener closes, idle connections close (those that have just come in a second, as their request may be
 * on its way), every reply is a connection's last. When no connection is left the timer closes too, and then on_drained
 * is called, always from the loop and never from inside http_server_drain(). A call whose connection was cut may be
 * replied to even after http_server_free().
 */
#include "http/server/server.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "http/server/conn.h"

enum {
	BACKLOG = 4096,
	TICK_MAX_MS = 500,
	TICK_MIN_MS = 5,
	ERROR_BODY_MAX = 65536,
	SPARE_SILENT_MAX_MS = 500,
	FRESH_MS = 1000
};

/* Draining. */

static void on_handle_closed(uv_handle_t *handle)
{
	struct http_server *s = handle->data;

	s->handles--;
	if (!s->is_draining || s->connections > 0 || s->handles > 0 || s->is_drained)
		return;
	s->is_drained = true;
	s->on_drained(s->drained_arg);
}

static void close_tick_if_last(struct http_server *s)
{
	if (!s->is_draining || s->connections > 0 || uv_is_closing((uv_handle_t *)&s->tick))
		return;
	uv_close((uv_handle_t *)&s->tick, on_handle_closed);
	uv_close((uv_handle_t *)&s->turn, on_handle_closed);
	uv_close((uv_handle_t *)&s->turn_end, on_handle_closed);
}

void server_count(struct http_server *s, int more)
{
	s->connections += (unsigned)more;
	if (s->options.metrics)
		metrics_set(s->options.metrics, METRIC_CONNECTIONS, s->connections);
}

void server_forget(struct http_server *s, struct conn *c)
{
	if (!c->is_spare) /* many of those can come and go in one turn */
		clients_leave(s->clients, &c->peer);
	server_count(s, -1);
	if (s->spare == c)
		s->spare = NULL;
	close_tick_if_last(s);
}

/* What is gathered goes out first, because that moves connections from list to list. */
static void for_each_conn(struct http_server *s, void (*visit)(struct conn *c))
{
	server_send_gathered(s);
	for (int wait = 0; wait < WAIT_CLOSE; wait++) {
		for (struct conn *c = s->waits[wait].first, *next; c; c = next) {
			next = c->next;
			visit(c);
		}
	}
}

void http_server_leave(struct http_server *s)
{
	s->is_leaving = true;
}

void http_server_drain(struct http_server *s, int grace_ms, void (*on_drained)(void *arg), void *arg)
{
	if (s->is_draining) { /* asked again: only the patience may get shorter */
		if ((int64_t)uv_now(s->loop) + grace_ms < s->cut_ms)
			s->cut_ms = (int64_t)uv_now(s->loop) + grace_ms;
		return;
	}
	s->is_draining = s->is_leaving = true;
	s->on_drained = on_drained;
	s->drained_arg = arg;
	s->cut_ms = (int64_t)uv_now(s->loop) + grace_ms;
	s->fresh_until_ms = (int64_t)uv_now(s->loop) + (grace_ms < FRESH_MS ? grace_ms : FRESH_MS);
	uv_close((uv_handle_t *)&s->listener, on_handle_closed);
	for_each_conn(s, conn_close_if_idle);
	close_tick_if_last(s);
}

/* File descriptors. */

void server_tell_short(void)
{
	struct rlimit limit = { 0 };

	(void)getrlimit(RLIMIT_NOFILE, &limit); /* then it is 0 in the text */
	log_write(LOG_WARNING, "http", NULL, 0,
	          "no file descriptor is left, the limit is %llu: connections are refused, except for probes; "
	          "raise it with LimitNOFILE= or ulimit -n, or lower LEASEHOLD_CONNECTIONS_MAX",
	          (unsigned long long)limit.rlim_cur);
}

static int open_any(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void close_any(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* nothing was written */
	*fd = -1;
}

/* The loop answers a lack of descriptors by closing what comes, without a word. So one is kept, and given up for the
 * spare connection as soon as there is no other; two must be there before all are served again. A spare one that is
 * silent is closed: another cannot even come in while it has the last descriptor. */
static void look_at_descriptors(struct http_server *s)
{
	struct conn *spare = s->spare;
	int          more;

	if (s->is_short && spare && spare->wait == WAIT_HEADER &&
	    spare->due_ms - s->options.header_timeout_ms + SPARE_SILENT_MAX_MS < (int64_t)uv_now(s->loop))
		conn_close(spare);
	more = open_any();
	if (s->kept_fd < 0 && more >= 0) {
		s->kept_fd = more;
		more = open_any();
	}
	if (more < 0) {
		if (!s->is_short)
			server_tell_short();
		close_any(&s->kept_fd);
	}
	s->is_short = more < 0;
	close_any(&more);
}

/* Time. */

static void on_tick(uv_timer_t *timer)
{
	struct http_server *s = timer->data;
	int64_t             now_ms = (int64_t)uv_now(s->loop);

	if (s->options.on_spare)
		look_at_descriptors(s);
	for (int wait = 0; wait < WAIT__COUNT; wait++) {
		struct conn_list *list = &s->waits[wait];

		while (list->timeout_ms && list->first && list->first->due_ms <= now_ms)
			conn_expire(list->first);
	}
	if (s->is_draining)
		for_each_conn(s, now_ms >= s->cut_ms ? conn_close : conn_close_if_idle);
}

static int start_tick(struct http_server *s)
{
	int tick_ms = TICK_MAX_MS;

	for (int wait = 0; wait < WAIT__COUNT; wait++)
		if (s->waits[wait].timeout_ms && s->waits[wait].timeout_ms / 4 < tick_ms)
			tick_ms = s->waits[wait].timeout_ms / 4;
	if (tick_ms < TICK_MIN_MS)
		tick_ms = TICK_MIN_MS;
	return uv_timer_start(&s->tick, on_tick, (uint64_t)tick_ms, (uint64_t)tick_ms);
}

/* Turns: who has had enough in one goes on in the next, and the loop does not wait for events meanwhile. */

static void on_turn(uv_idle_t *turn)
{
	struct http_server *s = turn->data;
	struct conn_list   *list = &s->waits[WAIT_TURN];
	size_t              count = 0;

	for (struct conn *c = list->first; c; c = c->next)
		count++;
	while (count-- > 0 && list->first)
		conn_take_turn(list->first);
	if (!list->first)
		(void)uv_idle_stop(turn); /* always 0 */
}

void server_wake_in_turn(struct http_server *s)
{
	(void)uv_idle_start(&s->turn, on_turn); /* fails only without a callback */
}

static void on_turn_end(uv_prepare_t *turn_end)
{
	server_send_gathered(turn_end->data);
}

/* Opening. */

static void on_connection(uv_stream_t *listener, int status)
{
	if (status == 0)
		conn_open(listener->data);
}

static enum rc check_options(const struct http_options *o, struct sockaddr_storage *ret, struct err *e)
{
	if (!o->tls_cert_file != !o->tls_key_file)
		return err_set(e, RC_INVALID, "TLS needs both a certificate file and a key file, or neither");
	if (o->connections_max == 0)
		return err_set(e, RC_INVALID, "connections_max must be at least 1");
	if (o->header_timeout_ms <= 0 || o->body_timeout_ms <= 0 || o->idle_timeout_ms <= 0 || o->write_timeout_ms <= 0)
		return err_set(e, RC_INVALID, "time-outs of the HTTP server must be at least 1 ms");
	if (o->port < 0 || o->port > 65535)
		return err_set(e, RC_INVALID, "port %d is not within 0 to 65535", o->port);
	if (uv_ip4_addr(o->host, o->port, (struct sockaddr_in *)ret) != 0 &&
	    uv_ip6_addr(o->host, o->port, (struct sockaddr_in6 *)ret) != 0)
		return err_set(e, RC_INVALID, "listen address '%s' is not a numeric IPv4 or IPv6 address", o->host);
	return RC_OK;
}

static struct http_server *new_server(uv_loop_t *loop, const struct http_options *o)
{
	struct http_server *s = mem_new(struct http_server);

	s->loop = loop;
	s->options = *o;
	s->options.host = s->options.tls_cert_file = s->options.tls_key_file = NULL; /* the caller's memory */
	s->clients = clients_new(o->connections_max);
	s->kept_fd = o->on_spare ? open_any() : -1;
	buf_init(&s->reply, HTTP_REPLY_MAX);
	buf_init(&s->gathered_text, (size_t)GATHERED_MAX * GATHERED_SIZE);
	buf_init(&s->error_body, ERROR_BODY_MAX);
	s->waits[WAIT_HEADER].timeout_ms = o->header_timeout_ms;
	s->waits[WAIT_BODY].timeout_ms = o->body_timeout_ms;
	s->waits[WAIT_IDLE].timeout_ms = o->idle_timeout_ms;
	s->waits[WAIT_WRITE].timeout_ms = o->write_timeout_ms;
	s->waits[WAIT_LINGER].timeout_ms = CONN_LINGER_MS;
	return s;
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

	s->handles = 4;
	s->listener.data = s->tick.data = s->turn.data = s->turn_end.data = s;
	(void)uv_timer_init(s->loop, &s->tick); /* these only fill the structs in */
	(void)uv_idle_init(s->loop, &s->turn);
	(void)uv_prepare_init(s->loop, &s->turn_end);
	(void)uv_prepare_start(&s->turn_end, on_turn_end); /* fails only without a callback */
	(void)uv_tcp_init(s->loop, &s->listener);
	failure = o->inherited_fd ? uv_tcp_open(&s->listener, o->inherited_fd)
	                          : uv_tcp_bind(&s->listener, (const struct sockaddr *)address, 0);
	if (!failure && !(failure = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection)) &&
	    !(failure = start_tick(s)))
		return RC_OK;
	uv_close((uv_handle_t *)&s->listener, on_failed_closed);
	uv_close((uv_handle_t *)&s->tick, on_failed_closed);
	uv_close((uv_handle_t *)&s->turn, on_failed_closed);
	uv_close((uv_handle_t *)&s->turn_end, on_failed_closed);
	return err_set(e, RC_UNAVAILABLE, "cannot listen on %s port %d: %s", o->host, o->port, uv_strerror(failure));
}

enum rc http_server_open(uv_loop_t *loop, const struct http_options *options, struct http_server **ret, struct err *e)
{
	struct sockaddr_storage address = { 0 };
	struct tls_identity    *identity = NULL;
	struct http_server     *s;
	enum rc                 rc;

	if ((rc = check_options(options, &address, e)))
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

void http_server_set_tls(struct http_server *s, struct tls_identity *identity)
{
	assert(s->identity);
	tls_identity_close(s->identity);
	s->identity = identity;
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	close_any(&s->kept_fd);
	tls_identity_close(s->identity);
	clients_free(s->clients);
	buf_fini(&s->reply);
	buf_fini(&s->gathered_text);
	buf_fini(&s->error_body);
	free(s);
}
