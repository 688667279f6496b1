/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_server.c - the server over real loopback sockets, its loop turned by the test.
 *
 * Server and clients share one thread: a client's sockets do not block, and whoever waits for something turns the loop
 * until it has happened or PATIENCE_MS are over. The router of these tests knows:
 *   /echo   replies at once with method, path and body
 *   /hold   keeps the call; the test replies
 *   /free   replies to the first call that is kept, with many bytes when there is a query, then to this one
 *   /big    replies with as many bytes as the query says
 *   /full   replies with more headers than there is room for
 *   /same   replies 304
 *   /stream begins a streamed reply and keeps the call; the test goes on with it
 */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "http/server/clients.h"
#include "http/server/server.h"
#include "net/tls.h"

enum { PATIENCE_MS = 10000, HELD_MAX = 64, BODY_MAX = 1 << 20, GOT_MAX = 64 << 20 };

struct fixture {
	uv_loop_t           loop;
	struct http_options options;
	struct http_server *server;
	struct http_call   *held[HELD_MAX];
	size_t              held_count;
	unsigned            requests, gone, errors, drained, sent;
	uintptr_t           stack_top, stack_bottom; /* of the calls to the router */
	char                dir[64], cert[96], key[96];
};

struct client {
	struct fixture *f;
	int             fd;
	struct buf      got;
	bool            is_closed;
	SSL            *ssl;
};

/* The router. */

static size_t allow(const struct http_request *head, void *arg)
{
	(void)arg;
	return str_eq(head->path, STR("/none")) ? 0 : BODY_MAX;
}

static void note_gone(struct http_call *call)
{
	struct fixture *f = call->user;

	f->gone++;
}

static void note_sent(struct http_call *call)
{
	struct fixture *f = call->user;

	f->sent++;
}

static void hold(struct fixture *f, struct http_call *call)
{
	call->on_gone = note_gone;
	CHECK(f->held_count < HELD_MAX);
	f->held[f->held_count++] = call;
}

static void reply_big_to(struct http_call *call, int64_t size)
{
	char *bytes = arena_alloc(&call->arena, (size_t)size);

	for (int64_t i = 0; i < size; i++)
		bytes[i] = (char)('a' + i % 23);
	http_reply(call, 200, "text/plain", str_of(bytes, (size_t)size));
}

static void reply_big(struct http_call *call)
{
	int64_t size = 0;

	CHECK(str_to_int(call->req.query, 0, GOT_MAX, &size));
	reply_big_to(call, size);
}

static void note_depth(struct fixture *f)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (here > f->stack_top)
		f->stack_top = here;
	if (f->stack_bottom == 0 || here < f->stack_bottom)
		f->stack_bottom = here;
}

static void route(struct http_call *call, void *arg)
{
	struct fixture *f = arg;

	f->requests++;
	note_depth(f);
	call->user = f;
	if (str_eq(call->req.path, STR("/hold"))) {
		hold(f, call);
	} else if (str_eq(call->req.path, STR("/free"))) {
		if (call->req.query.n)
			reply_big_to(f->held[0], 3900);
		else
			http_reply(f->held[0], 200, "text/plain", STR("free"));
		http_reply(call, 200, "text/plain", STR("done"));
	} else if (str_eq(call->req.path, STR("/stream"))) {
		hold(f, call);
		call->on_sent = note_sent;
		http_stream_begin(call, "text/event-stream");
	} else if (str_eq(call->req.path, STR("/big"))) {
		reply_big(call);
	} else if (str_eq(call->req.path, STR("/same"))) {
		http_reply(call, 304, NULL, STR(""));
	} else if (str_eq(call->req.path, STR("/full"))) {
		while (!call->headers.is_full)
			buf_add_text(&call->headers, "X-Again: and again\r\n");
		http_reply(call, 200, NULL, STR(""));
	} else {
		buf_add_text(&call->headers, "X-Test: yes\r\n");
		http_reply(call, 200, "text/plain",
		           str_format(&call->arena, "[%.*s %.*s %.*s]", STR_ARG(call->req.method),
		                      STR_ARG(call->req.target), STR_ARG(call->req.body)));
	}
}

static void explain(int status, const char *why, struct buf *headers, struct buf *body, void *arg)
{
	struct fixture *f = arg;

	f->errors++;
	buf_add_text(headers, "Content-Type: text/x-error\r\n");
	buf_addf(body, "error %d: %s", status, why);
}

/* The fixture. */

static void setup(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	CHECK(uv_loop_init(&f->loop) == 0);
	f->options = (struct http_options){
		.host = "127.0.0.1",
		.connections_max = 100,
		.header_timeout_ms = 60000,
		.body_timeout_ms = 60000,
		.idle_timeout_ms = 60000,
		.write_timeout_ms = 60000,
		.body_limit = allow,
		.on_request = route,
		.on_error = explain,
		.arg = f,
	};
}

static void start(struct fixture *f)
{
	struct err e = { 0 };

	if (http_server_open(&f->loop, &f->options, &f->server, &e))
		print_error("%s\n", e.msg);
	CHECK(f->server != NULL);
	CHECK(http_server_port(f->server) > 0);
}

static void turn(struct fixture *f)
{
	uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void note_drained(void *arg)
{
	struct fixture *f = arg;

	f->drained++;
}

static bool in_time(int64_t since_ms)
{
	return mono_now().ms - since_ms < PATIENCE_MS;
}

static void finish_drain(struct fixture *f)
{
	for (int64_t since = mono_now().ms; !f->drained && in_time(since);)
		uv_run(&f->loop, UV_RUN_ONCE);
	CHECK(f->drained == 1);
	http_server_free(f->server);
	f->server = NULL;
}

static void teardown(struct fixture *f)
{
	if (f->server) {
		http_server_drain(f->server, 0, note_drained, f);
		finish_drain(f);
	}
	uv_run(&f->loop, UV_RUN_DEFAULT);
	CHECK(uv_loop_close(&f->loop) == 0);
	if (f->dir[0]) {
		(void)unlink(f->cert);
		(void)unlink(f->key);
		(void)rmdir(f->dir);
	}
}

/* Clients. */

static void open_from(struct client *c, struct fixture *f, const char *from)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)http_server_port(f->server)) };
	struct sockaddr_in local = { .sin_family = AF_INET };

	*c = (struct client){ .f = f, .fd = socket(AF_INET, SOCK_STREAM, 0) };
	buf_init(&c->got, GOT_MAX);
	CHECK(c->fd >= 0);
	CHECK(inet_pton(AF_INET, "127.0.0.1", &to.sin_addr) == 1);
	CHECK(inet_pton(AF_INET, from, &local.sin_addr) == 1);
	CHECK(bind(c->fd, (struct sockaddr *)&local, sizeof(local)) == 0);
	CHECK(connect(c->fd, (struct sockaddr *)&to, sizeof(to)) == 0);
	CHECK(fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0);
}

static void client_open(struct client *c, struct fixture *f)
{
	open_from(c, f, "127.0.0.1");
}

static void client_close(struct client *c)
{
	SSL_free(c->ssl);
	if (c->fd >= 0)
		close(c->fd);
	buf_fini(&c->got);
	c->fd = -1;
	c->ssl = NULL;
}

static ssize_t receive(struct client *c, char *to, size_t room)
{
	int n;

	if (!c->ssl)
		return recv(c->fd, to, room, 0);
	n = SSL_read(c->ssl, to, (int)room);
	if (n > 0)
		return n;
	errno = SSL_get_error(c->ssl, n) == SSL_ERROR_WANT_READ ? EAGAIN : ECONNRESET;
	ERR_clear_error();
	return errno == EAGAIN ? -1 : 0;
}

/* One turn of the server, then what the client can read now. */
static void pump(struct client *c)
{
	struct pollfd ready = { .fd = c->fd, .events = POLLIN };
	ssize_t       n;
	char         *to;

	turn(c->f);
	if (c->is_closed)
		return;
	(void)poll(&ready, 1, 1);
	while ((to = buf_room(&c->got, 65536)) && (n = receive(c, to, 65536)) > 0)
		buf_added(&c->got, (size_t)n);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		c->is_closed = true;
}

/* How often text occurs in what came from byte `from` on. */
static size_t count_from(const struct client *c, size_t from, const char *text)
{
	size_t size = strlen(text), count = 0;

	for (size_t at = from; at + size <= c->got.n; at++)
		if (c->got.p[at] == text[0] && memcmp(c->got.p + at, text, size) == 0)
			count++;
	return count;
}

static size_t count_of(const struct client *c, const char *text)
{
	return count_from(c, 0, text);
}

static bool has_got(const struct client *c, const char *text)
{
	return count_of(c, text) > 0;
}

static void send_bytes(struct client *c, struct str bytes)
{
	for (int64_t since = mono_now().ms; bytes.n && in_time(since);) {
		ssize_t n = c->ssl ? SSL_write(c->ssl, bytes.p, (int)bytes.n)
		                   : send(c->fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (n > 0)
			bytes = str_of(bytes.p + n, bytes.n - (size_t)n);
		else
			pump(c);
		if (c->is_closed)
			return;
	}
	CHECK(bytes.n == 0);
}

static void client_send(struct client *c, const char *text)
{
	send_bytes(c, str_from(text));
}

static void expect(struct client *c, const char *text)
{
	size_t searched = 0;
	bool   is_there = false;

	for (int64_t since = mono_now().ms; !is_there && in_time(since);) {
		is_there = count_from(c, searched, text) > 0;
		searched = c->got.n > strlen(text) ? c->got.n - strlen(text) : 0;
		if (is_there || c->is_closed)
			break;
		pump(c);
	}
	if (!is_there)
		print_error("expected '%s', got '%.*s'\n", text, (int)(c->got.n < 500 ? c->got.n : 500), c->got.p);
	CHECK(is_there);
}

static void expect_close(struct client *c)
{
	for (int64_t since = mono_now().ms; !c->is_closed && in_time(since);)
		pump(c);
	CHECK(c->is_closed);
}

static void expect_count(struct client *c, const char *text, size_t count)
{
	for (int64_t since = mono_now().ms; count_of(c, text) < count && !c->is_closed && in_time(since);)
		pump(c);
	CHECK(count_of(c, text) == count);
}

static void await(struct fixture *f, const unsigned *value, unsigned wanted)
{
	for (int64_t since = mono_now().ms; *value != wanted && in_time(since);)
		turn(f);
	CHECK(*value == wanted);
}

static void await_held(struct fixture *f, size_t wanted)
{
	for (int64_t since = mono_now().ms; f->held_count != wanted && in_time(since);)
		turn(f);
	CHECK(f->held_count == wanted);
}

static void await_connections(struct fixture *f, unsigned wanted)
{
	for (int64_t since = mono_now().ms; http_server_connections(f->server) != wanted && in_time(since);)
		turn(f);
	CHECK(http_server_connections(f->server) == wanted);
}

static void reply_held(struct fixture *f, size_t i, const char *body)
{
	http_reply(f->held[i], 200, "text/plain", str_from(body));
}

#define REQUEST(path) "GET " path " HTTP/1.1\r\nHost: t\r\n\r\n"

/* Requests and replies. */

TEST(a_connection_serves_one_request_after_another)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	for (int i = 0; i < 5; i++) {
		buf_reset(&c.got);
		client_send(&c, REQUEST("/echo?x"));
		expect(&c, "[GET /echo?x ]");
		CHECK(has_got(&c, "HTTP/1.1 200 OK\r\nDate: "));
		CHECK(has_got(&c, " GMT\r\nContent-Length: 14\r\nContent-Type: text/plain\r\nX-Test: yes\r\n\r\n[GET"));
		CHECK(!has_got(&c, "Connection:"));
	}
	CHECK(f.requests == 5 && http_server_connections(f.server) == 1);
	client_close(&c);
	await_connections(&f, 0);
	teardown(&f);
}

TEST(a_request_may_come_byte_by_byte)
{
	static const char text[] =
	        "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		send_bytes(&c, str_of(text + i, 1));
		pump(&c);
	}
	expect(&c, "[POST /echo abc]");
	client_close(&c);
	teardown(&f);
}

TEST(pipelined_requests_are_answered_in_order)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	client_send(&c, REQUEST("/echo?1") REQUEST("/hold") REQUEST("/echo?2") REQUEST("/hold") REQUEST("/echo?3"));
	expect(&c, "[GET /echo?1 ]");
	await_held(&f, 1);
	CHECK(f.requests == 2);
	reply_held(&f, 0, "first held");
	await_held(&f, 2);
	CHECK(f.requests == 4);
	reply_held(&f, 1, "second held");
	expect(&c, "[GET /echo?3 ]");
	CHECK(strstr(c.got.p, "first held") < strstr(c.got.p, "echo?2"));
	CHECK(strstr(c.got.p, "echo?2") < strstr(c.got.p, "second held"));
	client_close(&c);
	teardown(&f);
}

TEST(a_thousand_pipelined_requests_are_served)
{
	struct fixture f;
	struct client  c;
	struct buf     all;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	buf_init(&all, 1 << 20);
	buf_add_text(&all, REQUEST("/hold"));
	for (int i = 0; i < 1000; i++)
		buf_add_text(&all, REQUEST("/echo"));
	send_bytes(&c, buf_str(&all));
	await_held(&f, 1);
	for (int i = 0; i < 50; i++)
		turn(&f);
	CHECK(f.requests == 1);
	reply_held(&f, 0, "");
	expect_count(&c, "[GET /echo ]", 1000);
	CHECK(f.stack_top - f.stack_bottom < 16384); /* one after another, not one inside the other */
	buf_fini(&all);
	client_close(&c);
	teardown(&f);
}

TEST(a_connection_closes_when_asked)
{
	static const struct {
		const char *label, *text, *header;
		bool        closes;
	} cases[] = {
		{ "Connection: close", "GET /echo HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n",
		  "Connection: close\r\n", true },
		{ "HTTP/1.0", "GET /echo HTTP/1.0\r\n\r\n", "Connection: close\r\n", true },
		{ "HTTP/1.0 that stays", "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		  "Connection: keep-alive\r\n", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fixture f;
		struct client  c;

		CASE(cases[i].label);
		setup(&f);
		start(&f);
		client_open(&c, &f);
		client_send(&c, cases[i].text);
		expect(&c, "[GET /echo ]");
		CHECK(has_got(&c, cases[i].header));
		if (cases[i].closes)
			expect_close(&c);
		else
			CHECK(http_server_connections(f.server) == 1);
		client_close(&c);
		teardown(&f);
	}
}

TEST(the_router_can_close_after_a_reply)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	client_send(&c, REQUEST("/hold"));
	await_held(&f, 1);
	CHECK(str_eq(http_client(f.held[0]), STR("127.0.0.1")));
	f.held[0]->req.is_keep_alive = false;
	reply_held(&f, 0, "last words");
	expect(&c, "last words");
	CHECK(has_got(&c, "Connection: close\r\n"));
	expect_close(&c);
	client_close(&c);
	teardown(&f);
}

TEST(a_reply_with_too_many_headers_becomes_an_error)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	client_send(&c, REQUEST("/full") REQUEST("/echo"));
	expect(&c, "HTTP/1.1 500 Internal Server Error");
	expect_close(&c);
	CHECK(f.requests == 1 && !has_got(&c, "X-Again"));
	client_close(&c);
	teardown(&f);
}

TEST(head_gets_the_headers_alone)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	client_send(&c, "HEAD /echo HTTP/1.1\r\nHost: t\r\n\r\n" REQUEST("/echo?next"));
	expect(&c, "[GET /echo?next ]");
	CHECK(has_got(&c, "Content-Length: 13\r\n"));
	CHECK(!has_got(&c, "[HEAD"));
	client_close(&c);
	teardown(&f);
}

TEST(a_304_says_nothing_of_the_length_that_a_200_would_have)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	client_send(&c, REQUEST("/same") "HEAD /same HTTP/1.1\r\nHost: t\r\n\r\n" REQUEST("/echo"));
	expect(&c, "[GET /echo ]");
	CHECK(count_of(&c, "HTTP/1.1 304 Not Modified\r\n") == 2 && count_of(&c, "Content-Length: ") == 1);
	client_close(&c);
	teardown(&f);
}

TEST(what_cannot_be_trusted_is_refused_and_closed)
{
	static const struct {
		const char *text, *status;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n\r\n" REQUEST("/echo"), "HTTP/1.1 400 Bad Request" },
		{ "GET / HTTP/1.1\nHost: t\n\n", "HTTP/1.1 400 Bad Request" },
		{ "GET / HTTP/3.0\r\n\r\n", "HTTP/1.1 505 HTTP Version Not Supported" },
		{ "GET / HTTP/1.1\r\nHost: t\r\nExpect: x\r\n\r\n", "HTTP/1.1 417 Expectation Failed" },
		{ "POST /none HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\n", "HTTP/1.1 413 Content Too Large" },
		{ "POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 1048577\r\n\r\n", "HTTP/1.1 413 Content Too Large" },
		{ "POST /x HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nx", NULL },
		{ "POST /x HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
		  "HTTP/1.1 400 Bad Request" },
		{ "\x16\x03\x01\x02", "HTTP/1.1 400 Bad Request" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fixture f;
		struct client  c;

		CASE(cases[i].text);
		setup(&f);
		start(&f);
		client_open(&c, &f);
		client_send(&c, cases[i].text);
		if (cases[i].status) {
			expect(&c, cases[i].status);
			expect(&c, "error ");
			CHECK(has_got(&c, "Connection: close\r\n") && has_got(&c, "Content-Type: text/x-error\r\n"));
			expect_close(&c);
			CHECK(count_of(&c, "Date: ") == 1);
			CHECK(f.errors == 1);
		}
		CHECK(f.requests == 0);
		client_close(&c);
		teardown(&f);
	}
}

TEST(an_error_reply_survives_a_body_that_still_comes)
{
	struct fixture f;
	struct client  c;
	char          *body = mem_alloc(4 << 20);

	setup(&f);
	start(&f);
	client_open(&c, &f);
	client_send(&c, "POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 4194304\r\n\r\n");
	await(&f, &f.errors, 1);
	for (int i = 0; i < 10; i++)
		turn(&f);
	for (int i = 0; i < 10; i++) {
		CHECK(send(c.fd, body, 1000, MSG_NOSIGNAL) == 1000); /* a closed socket would have sent a reset */
		turn(&f);
	}
	send_bytes(&c, str_of(body, 4 << 20));
	expect(&c, "HTTP/1.1 413 Content Too Large");
	expect_close(&c);
	free(body);
	client_close(&c);
	teardown(&f);
}

/* Bodies. */

static void check_large_body(bool is_chunked)
{
	struct fixture f;
	struct client  c;
	struct buf     request;
	size_t         at;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	buf_init(&request, 16 << 20);
	buf_addf(&request, "POST /echo HTTP/1.1\r\nHost: t\r\n%s\r\n\r\n",
	         is_chunked ? "Transfer-Encoding: chunked" : "Content-Length: 1048576");
	at = request.n;
	for (int i = 0; i < BODY_MAX / 16; i++)
		buf_add_text(&request, is_chunked ? "10\r\n0123456789abcdef\r\n" : "0123456789abcdef");
	if (is_chunked)
		buf_add_text(&request, "0\r\n\r\n");
	CHECK(request.n > at);
	send_bytes(&c, buf_str(&request));
	expect(&c, "f]");
	CHECK(has_got(&c, "Content-Length: 1048589\r\n"));
	CHECK(count_of(&c, "0123456789abcdef") == BODY_MAX / 16);
	buf_fini(&request);
	client_close(&c);
	teardown(&f);
}

TEST(a_body_of_the_largest_size_is_taken)
{
	CASE("by length");
	check_large_body(false);
	CASE("in chunks");
	check_large_body(true);
}

TEST(a_client_that_waits_for_100_continue_gets_it)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	client_send(&c, "POST /echo HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
	expect(&c, "HTTP/1.1 100 Continue\r\n\r\n");
	CHECK(f.requests == 0);
	client_send(&c, "a");
	pump(&c);
	client_send(&c, "bc");
	expect(&c, "[POST /echo abc]");
	CHECK(count_of(&c, "100 Continue") == 1);

	buf_reset(&c.got);
	client_send(&c, "POST /echo HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc");
	expect(&c, "[POST /echo abc]");
	CHECK(!has_got(&c, "100 Continue"));

	buf_reset(&c.got);
	client_send(&c, "POST /echo HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\na");
	for (int i = 0; i < 10; i++)
		pump(&c);
	client_send(&c, "bc");
	expect(&c, "[POST /echo abc]");
	CHECK(!has_got(&c, "100 Continue"));

	buf_reset(&c.got);
	client_send(&c, "POST /none HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
	expect(&c, "HTTP/1.1 413 ");
	CHECK(!has_got(&c, "100 Continue"));
	client_close(&c);
	teardown(&f);
}

/* Clients that go away. */

enum leaving { BY_CLOSE, BY_HALF_CLOSE, BY_RESET };

static void leave(struct client *c, enum leaving how)
{
	struct linger at_once = { .l_onoff = 1, .l_linger = 0 };

	if (how == BY_HALF_CLOSE) {
		CHECK(shutdown(c->fd, SHUT_WR) == 0);
		return;
	}
	if (how == BY_RESET)
		CHECK(setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0);
	close(c->fd);
	c->fd = -1;
}

TEST(a_client_that_leaves_while_its_request_is_under_way_is_noticed_once)
{
	static const char *const labels[] = { "close", "half-close", "reset" };

	for (int how = BY_CLOSE; how <= BY_RESET; how++) {
		struct fixture f;
		struct client  c;

		CASE(labels[how]);
		setup(&f);
		start(&f);
		client_open(&c, &f);
		client_send(&c, REQUEST("/hold") REQUEST("/echo"));
		await_held(&f, 1);
		leave(&c, how);
		await(&f, &f.gone, 1);
		await_connections(&f, 0);
		CHECK(str_eq(f.held[0]->req.path, STR("/hold")));
		reply_held(&f, 0, "to nobody");
		CHECK(f.gone == 1 && f.requests == 1);
		client_close(&c);
		teardown(&f);
	}
}

TEST(a_reply_may_come_in_the_turn_in_which_the_client_left)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	client_send(&c, REQUEST("/hold"));
	await_held(&f, 1);
	leave(&c, BY_RESET);
	reply_held(&f, 0, "to nobody");
	await_connections(&f, 0);
	CHECK(f.gone == 0);
	client_close(&c);
	teardown(&f);
}

/* Nothing has come for it yet. */
static bool is_silent(const struct client *c)
{
	char byte;

	return recv(c->fd, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

TEST(small_replies_of_a_turn_leave_together_at_its_end)
{
	struct fixture f;
	struct client  clients[3];

	setup(&f);
	start(&f);
	for (size_t i = 0; i < 3; i++) {
		client_open(&clients[i], &f);
		client_send(&clients[i], i < 2 ? REQUEST("/hold") : REQUEST("/hold") REQUEST("/echo"));
		await_held(&f, i + 1);
	}
	for (size_t i = 0; i < 3; i++)
		reply_held(&f, i, "together");
	CHECK(is_silent(&clients[0]) && is_silent(&clients[1]));
	CHECK(!is_silent(&clients[2])); /* whose next request is there already */
	for (size_t i = 0; i < 3; i++) {
		expect(&clients[i], "\r\n\r\ntogether");
		client_close(&clients[i]);
	}
	teardown(&f);
}

TEST(a_reply_reaches_a_client_whose_end_comes_in_the_same_turn)
{
	struct fixture f;
	struct client  c, other;

	setup(&f);
	start(&f);
	client_open(&other, &f);
	client_send(&other, REQUEST("/echo"));
	expect(&other, "[GET /echo ]");
	client_open(&c, &f);
	client_send(&c, REQUEST("/hold"));
	await_held(&f, 1);
	turn(&f);
	client_send(&other, REQUEST("/free")); /* the loop hears of this one first */
	leave(&c, BY_HALF_CLOSE);
	expect(&c, "\r\n\r\nfree");
	expect(&other, "\r\n\r\ndone");
	CHECK(f.gone == 0);
	client_close(&c);
	client_close(&other);
	teardown(&f);
}

/* A listening socket whose connections hold little of what is sent. */
static int narrow_listener(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int                fd = socket(AF_INET, SOCK_STREAM, 0), size = 1;

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0);
	return fd;
}

/* So many replies are owed when the server drains, in the turn of the last or later, and the client has read none. */
static unsigned check_slow_reader(unsigned owed, bool is_at_once)
{
	struct fixture f;
	struct client  c;
	int            size = 1;
	unsigned       served;

	setup(&f);
	f.options.inherited_fd = narrow_listener();
	start(&f);
	client_open(&c, &f);
	CHECK(setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) == 0);
	CHECK(setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &size, sizeof(size)) == 0);
	for (unsigned i = 0; i < owed; i++) {
		client_send(&c, REQUEST("/big?3500"));
		for (int k = 0; k < 20 && f.requests <= i; k++)
			turn(&f);
	}
	if (!is_at_once)
		turn(&f);
	served = f.requests;
	http_server_drain(f.server, PATIENCE_MS, note_drained, &f);
	expect_close(&c);
	CHECK(count_of(&c, "HTTP/1.1 200 OK") == f.requests && count_of(&c, "vwabcdefg") > 0);
	CHECK(c.got.n > (size_t)f.requests * 3500 && f.requests >= served);
	client_close(&c);
	finish_drain(&f);
	teardown(&f);
	return owed - served;
}

TEST(a_slow_reader_gets_all_of_its_small_replies_and_holds_up_its_next_request)
{
	unsigned owed = 0, held_up = 0;

	while (!held_up && owed < 200)
		held_up = check_slow_reader(++owed, false);
	CHECK(held_up == 1);
	for (unsigned i = 1; i <= owed; i++)
		(void)check_slow_reader(i, true);
}

/* A client that reads nothing yet, and whose socket is as full as so many replies make it. */
static void open_filled(struct client *c, struct fixture *f, unsigned fill)
{
	int size = 1;

	setup(f);
	f->options.inherited_fd = narrow_listener();
	start(f);
	client_open(c, f);
	CHECK(setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) == 0);
	CHECK(setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &size, sizeof(size)) == 0);
	for (unsigned i = 0; i < fill; i++) {
		client_send(c, REQUEST("/big?3500"));
		for (int k = 0; k < 20 && f->requests <= i; k++)
			turn(f);
	}
	turn(f);
}

/* Every request was answered, and the last with as many bytes. */
static void check_whole(struct client *c, size_t body)
{
	size_t at;

	expect_close(c);
	for (at = c->got.n; at > 4 && memcmp(c->got.p + at - 4, "\r\n\r\n", 4) != 0;)
		at--;
	CHECK(count_of(c, "HTTP/1.1 200 OK") == c->f->requests);
	CHECK(c->got.n - at == body);
}

/* What the client does when it has that many unread replies and its socket may be full; false: it was full before. */
static bool ask_for_all_and_end(struct client *c)
{
	unsigned before = c->f->requests;

	client_send(c, REQUEST("/echo") REQUEST("/echo") REQUEST("/echo") REQUEST("/echo") REQUEST("/big?3900"));
	leave(c, BY_HALF_CLOSE);
	for (int k = 0; k < 10; k++)
		turn(c->f);
	return c->f->requests == before + 5;
}

static bool ask_and_end_in_the_turn_of_the_reply(struct client *c)
{
	struct client other;

	client_open(&other, c->f);
	client_send(&other, REQUEST("/echo"));
	expect(&other, "[GET /echo ]");
	c->f->requests--;
	client_send(c, REQUEST("/hold"));
	for (int k = 0; k < 10; k++)
		turn(c->f);
	if (c->f->held_count) {
		client_send(&other, REQUEST("/free?3900")); /* the loop hears of this one first */
		leave(c, BY_HALF_CLOSE);
		expect(&other, "done");
		c->f->requests--;
	}
	client_close(&other);
	return c->f->held_count;
}

/* The reply that leaves at the end of the turn is the last, and the socket does not take all of it at once. */
TEST(a_slow_reader_gets_all_of_a_reply_that_nothing_comes_behind)
{
	static bool (*const ends[])(struct client * c) = { ask_for_all_and_end, ask_and_end_in_the_turn_of_the_reply };

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		bool may_fill = true;

		for (unsigned fill = 0; may_fill; fill++) {
			struct fixture f;
			struct client  c;

			CHECK(fill < 200);
			open_filled(&c, &f, fill);
			may_fill = f.requests == fill && ends[i](&c);
			if (may_fill)
				check_whole(&c, 3900);
			client_close(&c);
			teardown(&f);
		}
	}
}

TEST(what_was_asked_before_the_client_ended_is_answered_behind_a_large_reply)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	client_send(&c, REQUEST("/big?20000000") REQUEST("/echo?1") REQUEST("/echo?2") "GET /half HTTP/1.1\r\n");
	await(&f, &f.requests, 1);
	leave(&c, BY_HALF_CLOSE);
	expect_close(&c);
	CHECK(has_got(&c, "[GET /echo?1 ]") && has_got(&c, "[GET /echo?2 ]"));
	CHECK(f.requests == 3 && f.errors == 0);
	client_close(&c);
	teardown(&f);
}

TEST(writing_to_a_client_that_is_gone_does_not_end_the_process)
{
	struct fixture   f;
	struct client    c;
	struct sigaction action;

	CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	setup(&f);
	start(&f);
	CHECK(sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_IGN);
	client_open(&c, &f);
	client_send(&c, REQUEST("/big?20000000") REQUEST("/big?20000000"));
	await(&f, &f.requests, 1);
	leave(&c, BY_RESET);
	await_connections(&f, 0);
	client_close(&c);
	teardown(&f);
}

/* Deadlines. */

static void drip(struct client *c, const char *text)
{
	for (int64_t since = mono_now().ms; !c->is_closed && in_time(since);) {
		(void)send(c->fd, text, 1, MSG_NOSIGNAL); /* a closed connection is what we wait for */
		pump(c);
	}
}

TEST(a_head_that_drips_is_cut)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	f.options.header_timeout_ms = 500; /* the first bytes have to be there before */
	start(&f);
	client_open(&c, &f);
	client_send(&c, "GET / HTTP/1.1\r\nX: ");
	drip(&c, "x");
	CHECK(has_got(&c, "HTTP/1.1 408 Request Timeout") && has_got(&c, "error 408"));
	client_close(&c);
	teardown(&f);
}

TEST(a_body_that_drips_is_cut)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	f.options.body_timeout_ms = 50;
	start(&f);
	client_open(&c, &f);
	client_send(&c, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n");
	drip(&c, "x");
	CHECK(has_got(&c, "HTTP/1.1 408 Request Timeout"));
	CHECK(f.requests == 0);
	client_close(&c);
	teardown(&f);
}

TEST(silence_is_closed_silently)
{
	struct fixture f;
	struct client  fresh, idle;

	setup(&f);
	f.options.header_timeout_ms = 50;
	f.options.idle_timeout_ms = 50;
	start(&f);
	client_open(&fresh, &f);
	expect_close(&fresh);
	CHECK(fresh.got.n == 0);
	client_open(&idle, &f);
	client_send(&idle, REQUEST("/echo"));
	expect(&idle, "[GET /echo ]");
	buf_reset(&idle.got);
	expect_close(&idle);
	CHECK(idle.got.n == 0 && f.errors == 0);
	client_close(&fresh);
	client_close(&idle);
	teardown(&f);
}

TEST(a_request_under_way_has_no_deadline_of_the_connection)
{
	struct fixture f;
	struct client  held, idle;

	setup(&f);
	f.options.header_timeout_ms = f.options.idle_timeout_ms = f.options.body_timeout_ms = 30;
	start(&f);
	client_open(&held, &f);
	client_send(&held, REQUEST("/hold"));
	await_held(&f, 1);
	client_open(&idle, &f);
	expect_close(&idle); /* so its time-out has passed since the other came */
	CHECK(f.gone == 0);
	reply_held(&f, 0, "late");
	expect(&held, "late");
	client_close(&held);
	client_close(&idle);
	teardown(&f);
}

TEST(a_client_that_does_not_read_is_cut)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	f.options.write_timeout_ms = 50;
	start(&f);
	client_open(&c, &f);
	client_send(&c, REQUEST("/big?20000000") REQUEST("/echo"));
	await(&f, &f.requests, 1);
	await_connections(&f, 0);
	CHECK(f.requests == 1);
	client_close(&c);
	teardown(&f);
}

TEST(a_slow_reader_gets_all_and_holds_up_its_next_request)
{
	struct fixture f;
	struct client  c;
	size_t         head;

	setup(&f);
	start(&f);
	client_open(&c, &f);
	client_send(&c, REQUEST("/big?20000000") REQUEST("/echo"));
	await(&f, &f.requests, 1);
	for (int i = 0; i < 100; i++)
		turn(&f);
	CHECK(f.requests == 1);
	expect(&c, "[GET /echo ]");
	head = (size_t)(strstr(c.got.p, "\r\n\r\n") + 4 - c.got.p);
	for (size_t i = 0; i < 20000000; i++)
		if (c.got.p[head + i] != (char)('a' + i % 23))
			CHECK(!"every byte is in its place");
	client_close(&c);
	teardown(&f);
}

/* Replies in pieces. */

static void open_stream(struct client *c, struct fixture *f, const char *request)
{
	client_open(c, f);
	client_send(c, request);
	await_held(f, 1);
}

TEST(a_streamed_reply_comes_in_chunks_and_leaves_the_connection_usable)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	open_stream(&c, &f, REQUEST("/stream") REQUEST("/echo"));
	expect(&c, "Transfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n");
	CHECK(!has_got(&c, "Content-Length") && !has_got(&c, "Connection:"));
	CHECK(http_stream_is_idle(f.held[0]));
	http_stream_send(f.held[0], STR("first piece"));
	expect(&c, "\r\n\r\nb\r\nfirst piece\r\n");
	http_stream_send(f.held[0], STR(""));
	http_stream_send(f.held[0], STR("x"));
	expect(&c, "first piece\r\n1\r\nx\r\n");
	CHECK(f.requests == 1);
	http_stream_end(f.held[0]);
	expect(&c, "x\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n");
	expect(&c, "[GET /echo ]");
	CHECK(f.gone == 0 && http_server_connections(f.server) == 1);
	client_close(&c);
	teardown(&f);
}

TEST(a_client_of_http_1_0_gets_a_stream_as_it_comes)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	open_stream(&c, &f, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	http_stream_send(f.held[0], STR("a piece"));
	expect(&c, "\r\n\r\na piece");
	CHECK(!has_got(&c, "chunked") && has_got(&c, "Connection: close\r\n"));
	http_stream_end(f.held[0]);
	expect_close(&c);
	CHECK(str_eq(str_of(c.got.p + c.got.n - 7, 7), STR("a piece")));
	client_close(&c);
	teardown(&f);
}

TEST(head_of_a_stream_gets_its_headers_alone)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	open_stream(&c, &f, "HEAD /stream HTTP/1.1\r\nHost: t\r\n\r\n" REQUEST("/echo"));
	http_stream_end(f.held[0]);
	expect(&c, "Content-Type: text/event-stream\r\n\r\nHTTP/1.1 200 OK\r\n");
	expect(&c, "[GET /echo ]");
	CHECK(count_of(&c, "Transfer-Encoding: chunked\r\n") == 1 && count_of(&c, "Content-Length: ") == 1);
	client_close(&c);
	teardown(&f);
}

TEST(a_client_that_leaves_its_stream_is_noticed_once)
{
	static const char *const labels[] = { "close", "half-close", "reset" };

	for (int how = BY_CLOSE; how <= BY_RESET; how++) {
		struct fixture f;
		struct client  c;

		CASE(labels[how]);
		setup(&f);
		start(&f);
		open_stream(&c, &f, REQUEST("/stream"));
		leave(&c, how);
		await(&f, &f.gone, 1);
		await_connections(&f, 0);
		http_stream_send(f.held[0], STR("to nobody"));
		CHECK(!http_stream_is_idle(f.held[0]));
		http_stream_end(f.held[0]);
		CHECK(f.gone == 1);
		client_close(&c);
		teardown(&f);
	}
}

/* Sends until the socket takes no more. */
static size_t fill(struct http_call *call)
{
	static char piece[65536];
	size_t      sent = 0;

	memset(piece, 'p', sizeof(piece));
	for (; http_stream_is_idle(call) && sent < GOT_MAX / 2; sent += sizeof(piece))
		http_stream_send(call, str_of(piece, sizeof(piece)));
	CHECK(!http_stream_is_idle(call));
	return sent;
}

TEST(who_streams_is_told_when_a_slow_client_has_taken_all)
{
	struct fixture f;
	struct client  c;
	size_t         sent;

	setup(&f);
	start(&f);
	open_stream(&c, &f, REQUEST("/stream"));
	expect(&c, "\r\n\r\n");
	buf_reset(&c.got);
	sent = fill(f.held[0]);
	http_stream_send(f.held[0], STR("behind it"));
	CHECK(f.sent == 0);
	expect(&c, "behind it");
	await(&f, &f.sent, 1);
	CHECK(http_stream_is_idle(f.held[0]) && count_of(&c, "p") == sent);
	http_stream_end(f.held[0]);
	expect(&c, "\r\n0\r\n\r\n");
	client_close(&c);
	teardown(&f);
}

TEST(a_client_that_does_not_read_its_stream_is_cut_and_a_quiet_one_is_not)
{
	struct fixture f;
	struct client  deaf, quiet;

	setup(&f);
	f.options.write_timeout_ms = f.options.idle_timeout_ms = 50;
	start(&f);
	open_stream(&deaf, &f, REQUEST("/stream"));
	client_open(&quiet, &f);
	client_send(&quiet, REQUEST("/stream"));
	await_held(&f, 2);
	(void)fill(f.held[0]); /* how much does not matter */
	await(&f, &f.gone, 1);
	await_connections(&f, 1);
	http_stream_end(f.held[0]);
	http_stream_send(f.held[1], STR("still there"));
	expect(&quiet, "still there");
	http_stream_end(f.held[1]);
	client_close(&deaf);
	client_close(&quiet);
	teardown(&f);
}

TEST(draining_cuts_a_stream_that_does_not_end)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	start(&f);
	open_stream(&c, &f, REQUEST("/stream"));
	http_server_drain(f.server, 20, note_drained, &f);
	http_stream_send(f.held[0], STR("last words"));
	expect(&c, "last words");
	finish_drain(&f);
	CHECK(f.gone == 1);
	http_stream_end(f.held[0]);
	client_close(&c);
	teardown(&f);
}

/* Limits. */

TEST(connections_over_the_limit_are_closed)
{
	struct fixture f;
	struct client  c[3], late;

	setup(&f);
	f.options.connections_max = 3;
	start(&f);
	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		client_open(&c[i], &f);
	await_connections(&f, 3);
	client_open(&late, &f);
	expect_close(&late);
	client_close(&late);
	client_close(&c[0]);
	await_connections(&f, 2);
	client_open(&late, &f);
	client_send(&late, REQUEST("/echo"));
	expect(&late, "[GET /echo ]");
	client_close(&late);
	client_close(&c[1]);
	client_close(&c[2]);
	teardown(&f);
}

TEST(connections_of_one_address_have_a_limit_of_their_own)
{
	struct fixture f;
	struct client  c[2], late, other[8];
	char           address[32];

	setup(&f);
	f.options.connections_per_client_max = 2;
	start(&f);
	client_open(&c[0], &f);
	client_open(&c[1], &f);
	await_connections(&f, 2);
	client_open(&late, &f);
	expect_close(&late);
	for (unsigned i = 0; i < ARRAY_LEN(other); i++) {
		(void)snprintf(address, sizeof(address), "127.0.1.%u", i + 1);
		open_from(&other[i], &f, address);
	}
	await_connections(&f, 2 + ARRAY_LEN(other));
	for (unsigned i = 0; i < ARRAY_LEN(other); i++)
		client_close(&other[i]);
	client_close(&c[0]);
	await_connections(&f, 1);
	client_close(&late);
	client_open(&late, &f);
	client_send(&late, REQUEST("/echo"));
	expect(&late, "[GET /echo ]");
	client_close(&late);
	client_close(&c[1]);
	teardown(&f);
}

TEST(addresses_are_counted_like_by_a_plain_list)
{
	enum { ADDRESSES = 40, MAX = 3 };
	struct clients   *clients = clients_new(ADDRESSES * MAX);
	struct client_key keys[ADDRESSES];
	unsigned          counts[ADDRESSES] = { 0 };
	uint32_t          state = 1;

	for (unsigned i = 0; i < ADDRESSES; i++) {
		struct ip address = { .bytes = { [7] = (uint8_t)i } };

		keys[i] = client_key(&address);
	}
	for (int i = 0; i < 20000; i++) {
		unsigned at = (state = state * 1664525 + 1013904223) >> 16;

		at %= ADDRESSES;
		if (state >> 31 && counts[at] > 0) {
			clients_leave(clients, &keys[at]);
			counts[at]--;
		} else {
			bool is_in = clients_join(clients, &keys[at], MAX);

			CHECK(is_in == (counts[at] < MAX));
			counts[at] += is_in;
		}
	}
	clients_free(clients);
}

static struct client_key key_of(const char *text)
{
	struct ip ip;

	CHECK(ip_of_text(str_from(text), &ip));
	return client_key(&ip);
}

TEST(an_address_is_counted_by_what_one_client_has)
{
	struct client_key a = key_of("10.1.2.3"), b = key_of("::ffff:10.1.2.3");

	CHECK(memcmp(&a, &b, sizeof(a)) == 0);
	a = key_of("2001:db8:0:1::1");
	b = key_of("2001:db8:0:1:ffff::2");
	CHECK(memcmp(&a, &b, sizeof(a)) == 0);
	b = key_of("2001:db8:0:2::1");
	CHECK(memcmp(&a, &b, sizeof(a)) != 0);
}

TEST(a_trusted_proxy_may_have_more_connections_than_a_client)
{
	struct fixture f;
	struct client  c[4], late;
	struct err     e = { 0 };

	setup(&f);
	f.options.connections_per_client_max = 2;
	CHECK(!proxies_parse(STR("127.0.1.0/24"), &f.options.trusted_proxies, &e));
	start(&f);
	for (unsigned i = 0; i < ARRAY_LEN(c); i++)
		open_from(&c[i], &f, "127.0.1.7");
	await_connections(&f, ARRAY_LEN(c));
	open_from(&late, &f, "127.0.2.7");
	await_connections(&f, ARRAY_LEN(c) + 1);
	client_close(&late);
	for (unsigned i = 0; i < ARRAY_LEN(c); i++)
		client_close(&c[i]);
	teardown(&f);
}

/* The end. */

TEST(draining_lets_requests_finish_and_closes_the_rest)
{
	struct fixture f;
	struct client  idle, busy, half;

	setup(&f);
	start(&f);
	client_open(&idle, &f);
	client_send(&idle, REQUEST("/echo"));
	expect(&idle, "[GET /echo ]");
	client_open(&busy, &f);
	client_send(&busy, REQUEST("/hold") REQUEST("/echo"));
	await_held(&f, 1);
	client_open(&half, &f);
	client_send(&half, "GET /echo HTTP/1.1\r\n");
	await_connections(&f, 3);
	for (int i = 0; i < 10; i++)
		turn(&f);
	http_server_drain(f.server, 60000, note_drained, &f);
	expect_close(&idle);
	client_send(&half, "Host: t\r\n\r\n");
	expect(&half, "[GET /echo ]");
	expect_close(&half);
	CHECK(f.drained == 0);
	reply_held(&f, 0, "held to the end");
	expect(&busy, "held to the end");
	CHECK(has_got(&busy, "Connection: close\r\n"));
	client_close(&idle);
	client_close(&half);
	client_close(&busy);
	finish_drain(&f);
	CHECK(f.gone == 0 && f.requests == 3);
	teardown(&f);
}

TEST(draining_cuts_what_is_still_there_and_a_reply_may_come_after_the_end)
{
	struct fixture f;
	struct client  busy, half;

	setup(&f);
	start(&f);
	client_open(&busy, &f);
	client_send(&busy, REQUEST("/hold"));
	await_held(&f, 1);
	client_open(&half, &f);
	client_send(&half, "GET /echo HT");
	await_connections(&f, 2);
	http_server_drain(f.server, 20, note_drained, &f);
	finish_drain(&f);
	CHECK(f.gone == 1);
	reply_held(&f, 0, "to nobody");
	client_close(&busy);
	client_close(&half);
	teardown(&f);
}

TEST(draining_without_connections_ends_at_once_but_not_inside_the_call)
{
	struct fixture f;

	setup(&f);
	start(&f);
	http_server_drain(f.server, 60000, note_drained, &f);
	CHECK(f.drained == 0);
	finish_drain(&f);
	teardown(&f);
}

TEST(connections_in_every_state_are_freed)
{
	static const char *const texts[] = {
		"",
		"GET / HT",
		"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\nabc",
		REQUEST("/hold"),
		REQUEST("/big?20000000"),
		REQUEST("/echo"),
		"bad\r\n",
	};
	struct fixture f;
	struct client  c[ARRAY_LEN(texts)];

	setup(&f);
	start(&f);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		client_open(&c[i], &f);
		client_send(&c[i], texts[i]);
	}
	await(&f, &f.errors, 1);
	await(&f, &f.requests, 3);
	http_server_drain(f.server, 0, note_drained, &f);
	finish_drain(&f);
	CHECK(f.gone == 1);
	reply_held(&f, 0, "");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		client_close(&c[i]);
	teardown(&f);
}

/* Opening. */

static void check_open_fails(struct fixture *f, enum rc expected, const char *message)
{
	struct http_server *server = NULL;
	struct err          e = { 0 };

	CASE(message);
	CHECK(http_server_open(&f->loop, &f->options, &server, &e) == expected);
	if (!strstr(e.msg, message))
		print_error("message: %s\n", e.msg);
	CHECK(strstr(e.msg, message) != NULL);
	CHECK(server == NULL);
}

TEST(a_server_that_cannot_be_opened_says_why)
{
	struct fixture f;

	setup(&f);
	f.options.host = "localhost";
	check_open_fails(&f, RC_INVALID, "'localhost' is not a numeric");
	f.options.host = "127.0.0.1";
	f.options.port = 70000;
	check_open_fails(&f, RC_INVALID, "70000");
	f.options.port = 0;
	f.options.tls_cert_file = "no-such-file.pem";
	check_open_fails(&f, RC_INVALID, "both");
	f.options.tls_key_file = "no-such-key.pem";
	check_open_fails(&f, RC_INVALID, "no-such-file.pem: No such file");
	f.options.tls_cert_file = f.options.tls_key_file = NULL;
	start(&f);
	f.options.port = http_server_port(f.server);
	check_open_fails(&f, RC_UNAVAILABLE, "address already in use");
	teardown(&f);
}

/* TLS. */

static void write_identity(const char *cert_file, const char *key_file, const char *name)
{
	EVP_PKEY  *key = EVP_EC_gen("P-256");
	X509      *cert = X509_new();
	X509_NAME *subject = X509_get_subject_name(cert);
	FILE      *out;

	CHECK(key && cert);
	CHECK(X509_set_version(cert, X509_VERSION_3) && ASN1_INTEGER_set(X509_get_serialNumber(cert), 1));
	CHECK(X509_gmtime_adj(X509_getm_notBefore(cert), -60) && X509_gmtime_adj(X509_getm_notAfter(cert), 3600));
	CHECK(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0));
	CHECK(X509_set_issuer_name(cert, subject) && X509_set_pubkey(cert, key) && X509_sign(cert, key, EVP_sha256()));
	CHECK((out = fopen(cert_file, "w")) && PEM_write_X509(out, cert) && fclose(out) == 0);
	if (key_file)
		CHECK((out = fopen(key_file, "w")) && PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) &&
		      fclose(out) == 0 && chmod(key_file, 0600) == 0);
	X509_free(cert);
	EVP_PKEY_free(key);
}

static void setup_tls(struct fixture *f)
{
	setup(f);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/leasehold-test-XXXXXX");
	CHECK(mkdtemp(f->dir) != NULL);
	(void)snprintf(f->cert, sizeof(f->cert), "%s/cert.pem", f->dir);
	(void)snprintf(f->key, sizeof(f->key), "%s/key.pem", f->dir);
	write_identity(f->cert, f->key, "first");
	f->options.tls_cert_file = f->cert;
	f->options.tls_key_file = f->key;
}

/* True when the handshake succeeds. */
static bool client_secure(struct client *c, int max_version, const char *protocols)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	bool     is_done = false;

	CHECK(ctx && SSL_CTX_set_max_proto_version(ctx, max_version));
	SSL_CTX_set_security_level(ctx, 0);
	if (protocols)
		CHECK(SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)protocols, (unsigned)strlen(protocols)) == 0);
	c->ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	CHECK(c->ssl && SSL_set_fd(c->ssl, c->fd));
	for (int64_t since = mono_now().ms; in_time(since);) {
		int result = SSL_connect(c->ssl);

		is_done = result == 1;
		if (is_done || SSL_get_error(c->ssl, result) != SSL_ERROR_WANT_READ)
			break;
		turn(c->f);
	}
	ERR_clear_error();
	return is_done;
}

static void check_cert_name(struct client *c, const char *expected)
{
	X509 *cert = SSL_get1_peer_certificate(c->ssl);
	char  name[64] = "";

	CHECK(cert != NULL);
	(void)X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name, sizeof(name));
	X509_free(cert);
	CHECK(str_eq(str_from(name), str_from(expected)));
}

TEST(tls_serves_like_plain)
{
	static const struct {
		const char *label;
		int         version;
	} cases[] = { { "TLS 1.2", TLS1_2_VERSION }, { "TLS 1.3", TLS1_3_VERSION } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fixture f;
		struct client  c;

		CASE(cases[i].label);
		setup_tls(&f);
		start(&f);
		client_open(&c, &f);
		CHECK(client_secure(&c, cases[i].version, "\x08http/1.1"));
		client_send(&c, REQUEST("/echo?1") REQUEST("/hold") REQUEST("/echo?2"));
		expect(&c, "[GET /echo?1 ]");
		await_held(&f, 1);
		reply_held(&f, 0, "held");
		expect(&c, "[GET /echo?2 ]");
		CHECK(has_got(&c, "held"));
		buf_reset(&c.got);
		client_send(&c, REQUEST("/big?5000000") REQUEST("/echo?3"));
		expect(&c, "[GET /echo?3 ]");
		CHECK(c.got.n > 5000000);
		client_send(&c, REQUEST("/stream"));
		await_held(&f, 2);
		http_stream_send(f.held[1], STR("a piece"));
		expect(&c, "\r\n7\r\na piece\r\n");
		http_stream_end(f.held[1]);
		expect(&c, "\r\n0\r\n\r\n");
		buf_reset(&c.got);
		client_send(&c, "nonsense\r\n");
		expect(&c, "HTTP/1.1 400 Bad Request");
		expect_close(&c);
		client_close(&c);
		teardown(&f);
	}
}

TEST(tls_takes_large_bodies_and_floods_while_busy)
{
	struct fixture f;
	struct client  c;
	struct buf     all;

	setup_tls(&f);
	start(&f);
	client_open(&c, &f);
	CHECK(client_secure(&c, TLS1_3_VERSION, NULL));
	buf_init(&all, 4 << 20);
	buf_add_text(&all, REQUEST("/hold") "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n");
	for (int i = 0; i < 1000000; i++)
		buf_add_char(&all, 'x');
	for (int i = 0; i < 500; i++)
		buf_add_text(&all, REQUEST("/echo?end"));
	SSL_set_mode(c.ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	send_bytes(&c, str_of(all.p, 40000));
	await_held(&f, 1);
	reply_held(&f, 0, "held");
	send_bytes(&c, str_of(all.p + 40000, all.n - 40000));
	expect_count(&c, "[GET /echo?end ]", 500);
	CHECK(has_got(&c, "xxx]"));
	buf_fini(&all);
	client_close(&c);
	teardown(&f);
}

/* So often new keys, each followed by this text; all of it arrives at once. */
static void send_with_new_keys(struct client *c, int times, const char *text)
{
	BIO  *socket = SSL_get_wbio(c->ssl), *records = BIO_new(BIO_s_mem());
	char *bytes;
	long  n;

	CHECK(BIO_up_ref(socket) == 1);
	SSL_set0_wbio(c->ssl, records);
	for (int i = 0; i < times; i++) {
		CHECK(SSL_key_update(c->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(c->ssl) == 1);
		CHECK(!*text || SSL_write(c->ssl, text, (int)strlen(text)) > 0);
	}
	n = BIO_get_mem_data(records, &bytes);
	CHECK(n > 0 && send(c->fd, bytes, (size_t)n, MSG_NOSIGNAL) == n);
	SSL_set0_wbio(c->ssl, socket);
}

TEST(new_keys_are_worked_off_but_not_as_many_as_somebody_likes)
{
	static const struct {
		const char *label, *text;
		int         times;
		bool        is_served;
	} cases[] = {
		{ "a few", "", 16, true },
		{ "a few, each behind a byte", "x", 16, true },
		{ "many", "", 1000, false },
		{ "many, each behind a byte", "x", 1000, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fixture f;
		struct client  c;

		CASE(cases[i].label);
		setup_tls(&f);
		start(&f);
		client_open(&c, &f);
		CHECK(client_secure(&c, TLS1_3_VERSION, NULL));
		client_send(&c, "GET /echo?");
		send_with_new_keys(&c, cases[i].times, cases[i].text);
		pump(&c);
		if (cases[i].is_served) {
			send_with_new_keys(&c, cases[i].times, cases[i].text);
			client_send(&c, " HTTP/1.1\r\nHost: t\r\n\r\n");
			expect(&c, *cases[i].text ? "?xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ]" : "? ]");
		} else {
			expect_close(&c);
			CHECK(f.requests == 0);
		}
		client_close(&c);
		teardown(&f);
	}
}

TEST(a_tls_client_that_says_good_bye_is_gone)
{
	struct fixture f;
	struct client  c;

	setup_tls(&f);
	start(&f);
	client_open(&c, &f);
	CHECK(client_secure(&c, TLS1_3_VERSION, NULL));
	client_send(&c, REQUEST("/hold"));
	await_held(&f, 1);
	(void)SSL_shutdown(c.ssl); /* one direction is enough here */
	await(&f, &f.gone, 1);
	reply_held(&f, 0, "to nobody");
	client_close(&c);
	teardown(&f);
}

TEST(what_is_not_our_tls_fails_cleanly)
{
	struct fixture f;
	struct client  plain, old, http2, silent;

	setup_tls(&f);
	f.options.header_timeout_ms = 200;
	start(&f);
	client_open(&plain, &f);
	client_send(&plain, REQUEST("/echo"));
	expect_close(&plain);
	client_open(&old, &f);
	CHECK(!client_secure(&old, TLS1_1_VERSION, NULL));
	client_open(&http2, &f);
	CHECK(!client_secure(&http2, TLS1_3_VERSION, "\x02h2"));
	client_open(&silent, &f);
	client_send(&silent, "\x16\x03\x01");
	expect_close(&silent);
	CHECK(silent.got.n == 0 && f.requests == 0);
	client_close(&plain);
	client_close(&old);
	client_close(&http2);
	client_close(&silent);
	teardown(&f);
}

TEST(a_new_certificate_is_for_new_connections)
{
	struct fixture       f;
	struct client        before, after;
	struct tls_identity *fresh;
	struct err           e = { 0 };

	setup_tls(&f);
	start(&f);
	client_open(&before, &f);
	CHECK(client_secure(&before, TLS1_3_VERSION, NULL));
	check_cert_name(&before, "first");
	write_identity(f.cert, f.key, "second");
	CHECK(tls_identity_open(f.cert, f.key, &fresh, &e) == RC_OK);
	http_server_set_tls(f.server, fresh);
	client_open(&after, &f);
	CHECK(client_secure(&after, TLS1_3_VERSION, NULL));
	check_cert_name(&after, "second");
	client_send(&before, REQUEST("/echo"));
	expect(&before, "[GET /echo ]");
	client_close(&after);

	write_identity(f.cert, NULL, "third, with another key");
	CHECK(tls_identity_open(f.cert, f.key, &fresh, &e) == RC_INVALID);
	CHECK(strstr(e.msg, f.key) && strstr(e.msg, "key values mismatch"));
	client_open(&after, &f);
	CHECK(client_secure(&after, TLS1_3_VERSION, NULL));
	check_cert_name(&after, "second");
	client_close(&before);
	client_close(&after);
	teardown(&f);
}

TEST(tls_files_that_do_not_do_are_named)
{
	struct fixture f;
	FILE          *out;

	setup_tls(&f);
	CHECK((out = fopen(f.key, "w")) && fclose(out) == 0);
	check_open_fails(&f, RC_INVALID, "key.pem");
	CHECK(chmod(f.key, 0644) == 0);
	check_open_fails(&f, RC_INVALID, "chmod 640");
	f.options.tls_cert_file = f.key;
	f.options.tls_key_file = f.cert;
	check_open_fails(&f, RC_INVALID, "TLS certificate");
	teardown(&f);
}
