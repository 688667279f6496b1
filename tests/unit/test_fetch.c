/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "fake_server.h"
#include "net/fetch.h"

static const char large_body[] = "0123456789012345678901234567890123456789";

static struct fake_reply answer(const struct fake_request *req, size_t number, void *arg)
{
	(void)number;
	(void)arg;
	if (strcmp(req->target, "/moved") == 0)
		return (struct fake_reply){ 302, "Location: /plain\r\n", "elsewhere", NULL, false };
	if (strcmp(req->target, "/silent") == 0)
		return (struct fake_reply){ .is_silent = true };
	if (strcmp(req->target, "/half-a-head") == 0)
		return (struct fake_reply){ .raw = "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Le" };
	if (strcmp(req->target, "/broken") == 0)
		return (struct fake_reply){ .raw = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nonly this" };
	if (strcmp(req->target, "/not-http") == 0)
		return (struct fake_reply){ .raw = "220 mail.example ESMTP\r\n" };
	if (strcmp(req->target, "/interim") == 0)
		return (struct fake_reply){ .raw = "HTTP/1.1 103 Early\r\nX-A: early\r\n\r\nHTTP/1.1 200 OK\r\n"
			                           "X-A: late\r\nContent-Length: 0\r\n\r\n" };
	if (strcmp(req->target, "/large") == 0)
		return (struct fake_reply){ 200, NULL, large_body, NULL, false };
	if (strcmp(req->target, "/large-unannounced") == 0)
		return (struct fake_reply){ .raw = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
			                           "0123456789012345678901234567890123456789" };
	if (strcmp(req->target, "/echo") == 0)
		return (struct fake_reply){ 201, NULL, req->body[0] ? "with body" : "without body", NULL, false };
	return (struct fake_reply){ 200, "X-One:  padded value \r\nx-two: 2\r\n", "hello", NULL, false };
}

struct fixture {
	struct fake_server *server;
	struct arena        arena;
	struct err          err;
	struct fetch_reply  reply;
};

static void set_up(struct fixture *f)
{
	*f = (struct fixture){ .server = fake_server_open(answer, NULL) };
}

static void tear_down(struct fixture *f)
{
	fake_server_close(f->server);
	arena_fini(&f->arena);
}

static enum rc get(struct fixture *f, const char *path)
{
	struct fetch_request req = {
		.method = "GET", .url = fake_server_url(f->server, path), .total_timeout_ms = 5000, .max_bytes = 32
	};

	err_clear(&f->err);
	return fetch(&req, &f->arena, &f->reply, &f->err);
}

TEST(an_answer_comes_with_status_headers_and_body)
{
	struct fixture f;

	set_up(&f);
	CHECK(get(&f, "/plain") == RC_OK);
	CHECK(f.reply.status == 200);
	CHECK(str_eq(f.reply.body, STR("hello")));
	CHECK(str_eq(fetch_header(&f.reply, "x-one"), STR("padded value")));
	CHECK(str_eq(fetch_header(&f.reply, "X-Two"), STR("2")));
	CHECK(str_eq(fetch_header(&f.reply, "X-Three"), STR("")));
	tear_down(&f);
}

TEST(a_redirect_is_an_answer_and_not_followed)
{
	struct fixture f;

	set_up(&f);
	CHECK(get(&f, "/moved") == RC_OK);
	CHECK(f.reply.status == 302);
	CHECK(str_eq(fetch_header(&f.reply, "Location"), STR("/plain")));
	CHECK(fake_server_requests(f.server) == 1);
	tear_down(&f);
}

TEST(headers_are_those_of_the_final_answer)
{
	struct fixture f;

	set_up(&f);
	CHECK(get(&f, "/interim") == RC_OK);
	CHECK(str_eq(fetch_header(&f.reply, "X-A"), STR("late")));
	tear_down(&f);
}

TEST(each_way_to_fail_has_its_code)
{
	static const struct {
		const char *label, *path;
		enum rc     rc;
	} cases[] = {
		{ "a body longer than announced room", "/large", RC_TOO_LARGE },
		{ "a body that never said its length", "/large-unannounced", RC_TOO_LARGE },
		{ "a connection cut in the body", "/broken", RC_UNAVAILABLE },
		{ "a connection cut in the headers", "/half-a-head", RC_UNAVAILABLE },
		{ "another protocol", "/not-http", RC_UNAVAILABLE },
	};
	struct fixture f;

	set_up(&f);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CASE(cases[i].label);
		CHECK(get(&f, cases[i].path) == cases[i].rc);
		CHECK(strstr(f.err.msg, "GET http://127.0.0.1:") == f.err.msg);
		CHECK(strstr(f.err.msg, cases[i].path));
	}
	tear_down(&f);
}

TEST(a_request_knows_whether_it_went_out)
{
	struct fixture       f;
	unsigned             sends = 0;
	struct fetch_request req = { .method = "GET", .sends = &sends };

	set_up(&f);
	req.url = str_dup(&f.arena, str_from(fake_server_url(f.server, "/plain"))).p;
	CHECK(fetch(&req, &f.arena, &f.reply, &f.err) == RC_OK && sends == 1);
	req.url = str_format(&f.arena, "http://127.0.0.1:%d/", fake_closed_port()).p;
	CHECK(fetch(&req, &f.arena, &f.reply, &f.err) == RC_UNAVAILABLE && sends == 1);
	req.url = str_dup(&f.arena, str_from(fake_server_url(f.server, "/broken"))).p;
	CHECK(fetch(&req, &f.arena, &f.reply, &f.err) == RC_UNAVAILABLE && sends == 2);
	tear_down(&f);
}

TEST(a_silent_server_is_a_timeout)
{
	struct fixture f;

	set_up(&f);
	struct fetch_request req = { .method = "GET",
		                     .url = fake_server_url(f.server, "/silent"),
		                     .total_timeout_ms = 50 };

	CHECK(fetch(&req, &f.arena, &f.reply, &f.err) == RC_TIMEOUT);
	tear_down(&f);
}

TEST(nobody_listening_is_unavailable)
{
	struct fixture f;
	char           url[64];

	set_up(&f);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/", fake_closed_port()); /* fits */
	struct fetch_request req = { .method = "GET", .url = url };

	CHECK(fetch(&req, &f.arena, &f.reply, &f.err) == RC_UNAVAILABLE);
	tear_down(&f);
}

TEST(urls_that_are_not_http_are_refused)
{
	static const char *const urls[] = {
		"ftp://127.0.0.1/",       "file:///etc/hostname",   "127.0.0.1:80/x", "http://", "",
		"http://127.0.0.1:1/a b", "http://127.0.0.1:1/a\nb"
	};
	struct fixture f;

	set_up(&f);
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct fetch_request req = { .method = "GET", .url = urls[i] };

		CASE(urls[i]);
		err_clear(&f.err);
		CHECK(fetch(&req, &f.arena, &f.reply, &f.err) == RC_INVALID);
	}
	tear_down(&f);
}

TEST(a_message_shows_no_password_query_or_token)
{
	struct fixture f;
	char           url[128];

	set_up(&f);
	(void)snprintf(url, sizeof(url), "http://us3r:passw0rd@127.0.0.1:%d/path?key=s3cret#part",
	               fake_closed_port()); /* fits */
	struct fetch_request req = { .method = "GET", .url = url, .headers = { "Authorization: Token t0ken" } };

	CHECK(fetch(&req, &f.arena, &f.reply, &f.err) == RC_UNAVAILABLE);
	CHECK(strstr(f.err.msg, "/path"));
	CHECK(!strstr(f.err.msg, "us3r") && !strstr(f.err.msg, "passw0rd") && !strstr(f.err.msg, "s3cret") &&
	      !strstr(f.err.msg, "t0ken"));

	req.headers[0] = "Authorization: Token t0ken\r\nX-Injected: 1";
	err_clear(&f.err);
	CHECK(fetch(&req, &f.arena, &f.reply, &f.err) == RC_INVALID);
	CHECK(strstr(f.err.msg, "Authorization") && !strstr(f.err.msg, "t0ken"));

	req.headers[0] = "Authorization t0ken";
	err_clear(&f.err);
	CHECK(fetch(&req, &f.arena, &f.reply, &f.err) == RC_INVALID);
	CHECK(strstr(f.err.msg, "header 1") && !strstr(f.err.msg, "t0ken"));
	tear_down(&f);
}

static struct fake_reply check_request(const struct fake_request *req, size_t number, void *arg)
{
	bool *is_right = arg;

	(void)number;
	if (strcmp(req->method, "POST") == 0)
		*is_right = fake_request_has(req, req->body[0] ? "Content-Length: 4" : "Content-Length: 0") &&
		            !strcasestr(req->headers, "Content-Type") && !strcasestr(req->headers, "Expect");
	else
		*is_right = strcmp(req->method, "DELETE") == 0 && !strcasestr(req->headers, "Content-Length") &&
		            fake_request_has(req, "X-Mine: yes");
	return (struct fake_reply){ .status = 204 };
}

TEST(method_headers_and_body_are_sent_as_asked)
{
	bool                 is_right = false;
	struct arena         arena = { 0 };
	struct err           err = { 0 };
	struct fetch_reply   reply;
	struct fake_server  *s = fake_server_open(check_request, &is_right);
	struct fetch_request req = { .method = "POST", .url = fake_server_url(s, "/") };

	CASE("POST without a body");
	CHECK(fetch(&req, &arena, &reply, &err) == RC_OK && reply.status == 204 && is_right);
	CASE("POST with a body");
	req.body = STR("1234");
	CHECK(fetch(&req, &arena, &reply, &err) == RC_OK && is_right);
	CASE("DELETE after POST on the same handle");
	req = (struct fetch_request){ .method = "DELETE", .url = req.url, .headers = { "X-Mine: yes" } };
	CHECK(fetch(&req, &arena, &reply, &err) == RC_OK && is_right);
	fake_server_close(s);
	arena_fini(&arena);
}

TEST(requests_of_one_thread_share_a_connection)
{
	struct fixture f;

	set_up(&f);
	for (int i = 0; i < 5; i++)
		CHECK(get(&f, "/plain") == RC_OK);
	CHECK(fake_server_requests(f.server) == 5);
	CHECK(fake_server_connections(f.server) == 1);
	tear_down(&f);
}

static void *get_many(void *arg)
{
	struct fake_server *server = arg;
	struct arena        arena = { 0 };
	size_t             *failures = mem_new(size_t);
	char                url[64];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/plain", fake_server_port(server)); /* fits */
	for (int i = 0; i < 20; i++) {
		struct fetch_request req = { .method = "GET", .url = url };
		struct fetch_reply   reply;
		struct err           err = { 0 };

		if (fetch(&req, &arena, &reply, &err) != RC_OK || !str_eq(reply.body, STR("hello")))
			++*failures;
	}
	arena_fini(&arena);
	return failures;
}

TEST(threads_do_not_disturb_each_other)
{
	pthread_t      threads[4];
	struct fixture f;

	set_up(&f);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		CHECK(pthread_create(&threads[i], NULL, get_many, f.server) == 0);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		void *failures;

		pthread_join(threads[i], &failures);
		CHECK(*(size_t *)failures == 0);
		free(failures);
	}
	CHECK(fake_server_requests(f.server) == 80);
	CHECK(fake_server_connections(f.server) == 4);
	tear_down(&f);
}

TEST(http_ignores_a_proxy_of_the_environment)
{
	struct fixture f;

	set_up(&f);
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	CHECK(get(&f, "/plain") == RC_OK);
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
	tear_down(&f);
}

TEST(a_ca_file_that_is_not_there_is_the_callers_mistake)
{
	struct fixture f;
	char           url[64];

	set_up(&f);
	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%d/", fake_server_port(f.server)); /* fits */
	struct fetch_request req = { .method = "GET", .url = url, .ca_file = "no/such/file.pem" };

	CHECK(fetch(&req, &f.arena, &f.reply, &f.err) == RC_INVALID);
	CHECK(strstr(f.err.msg, "no/such/file.pem"));
	tear_down(&f);
}

TEST(escaped_text_is_one_part_of_a_url)
{
	struct buf b;

	buf_init(&b, 100);
	fetch_escape(&b, STR("Az09-._~/ ?%\xc3\xa9"));
	CHECK(str_eq(buf_str(&b), STR("Az09-._~%2F%20%3F%25%C3%A9")));
	buf_fini(&b);
}

static enum rc get_within(struct fixture *f, enum fetch_reach reach)
{
	struct fetch_request req = {
		.method = "GET", .url = fake_server_url(f->server, "/plain"), .total_timeout_ms = 5000, .reach = reach
	};

	err_clear(&f->err);
	return fetch(&req, &f->arena, &f->reply, &f->err);
}

/* Takes at most so many bytes. */
struct taker {
	struct buf got;
	size_t     enough;
	unsigned   pieces;
};

static bool take(struct str bytes, void *arg)
{
	struct taker *t = arg;

	t->pieces++;
	buf_add_str(&t->got, bytes);
	return t->got.n < t->enough;
}

static enum rc take_from(struct fixture *f, const char *path, struct taker *t)
{
	struct fetch_request req = {
		.method = "GET", .url = fake_server_url(f->server, path), .max_bytes = 8, .take = take, .take_arg = t
	};

	buf_reset(&t->got);
	t->pieces = 0;
	err_clear(&f->err);
	return fetch(&req, &f->arena, &f->reply, &f->err);
}

TEST(an_answer_may_be_taken_in_pieces_of_any_length)
{
	struct taker   t = { .enough = SIZE_MAX };
	struct fixture f;

	set_up(&f);
	buf_init(&t.got, 1024);
	CHECK(take_from(&f, "/large", &t) == RC_OK && f.reply.status == 200);
	CHECK(str_eq(buf_str(&t.got), STR(large_body)) && f.reply.body.n == 0);

	CASE("broken off: what came was taken, and the end is told");
	CHECK(take_from(&f, "/broken", &t) == RC_UNAVAILABLE);
	CHECK(str_eq(buf_str(&t.got), STR("only this")));

	CASE("a refusal is kept whole, within the limit");
	CHECK(take_from(&f, "/moved", &t) == RC_TOO_LARGE && t.pieces == 0);

	CASE("who has enough says so");
	t.enough = 1;
	CHECK(take_from(&f, "/large-unannounced", &t) == RC_OK && f.reply.status == 200);
	CHECK(t.pieces == 1 && t.got.n > 0);
	buf_fini(&t.got);
	tear_down(&f);
}

TEST(an_answer_in_pieces_that_falls_silent_is_given_up)
{
	struct taker         t = { .enough = SIZE_MAX };
	struct fixture       f;
	struct fetch_request req;

	set_up(&f);
	req = (struct fetch_request){ .method = "GET",
		                      .url = fake_server_url(f.server, "/silent"),
		                      .take = take,
		                      .take_arg = &t,
		                      .idle_timeout_ms = 1 };
	CHECK(fetch(&req, &f.arena, &f.reply, &f.err) == RC_TIMEOUT && t.pieces == 0);
	tear_down(&f);
}

TEST(a_request_of_limited_reach_does_not_leave_it)
{
	struct fixture f;

	set_up(&f);
	CHECK(get_within(&f, FETCH_PUBLIC) == RC_DENIED);
	CHECK(strstr(f.err.msg, "127.0.0.1") != NULL);
	CHECK(fake_server_connections(f.server) == 0);
	CHECK(get_within(&f, FETCH_NOT_FORBIDDEN) == RC_OK);
	tear_down(&f);
}

TEST(a_kept_connection_does_not_widen_the_reach)
{
	struct fixture f;

	set_up(&f);
	CHECK(get_within(&f, FETCH_ANYWHERE) == RC_OK);
	CHECK(get_within(&f, FETCH_PUBLIC) == RC_DENIED);
	CHECK(fake_server_requests(f.server) == 1);
	tear_down(&f);
}
