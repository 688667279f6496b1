/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_api.c - replies that take a while, when the store fails or the client leaves meanwhile.
 *
 * The API behind its server, on a store that only works when the test turns it. Everything runs on the test's thread,
 * but for what the API leaves to threads of its own.
 */
#include "test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/lock.h"
#include "base/metrics.h"
#include "domain/ports/cloud_probe.h"
#include "http/api/api.h"
#include "http/api/ops_stream.h"
#include "http/server/server.h"
#include "kernel/event.h"
#include "kernel_rig.h"

enum { PATIENCE_MS = 60000, GOT_MAX = 1 << 20, METRICS_MAX = 1 << 20 };

#define GET(path) "GET /v1/ops/" path " HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer admin-token\r\n\r\n"

/* A cloud that answers when the gate is open. */
struct slow_cloud {
	struct cloud_probe probe;
	pthread_mutex_t    lock;
	pthread_cond_t     opens;
	bool               is_open;
};

struct fixture {
	uv_loop_t           loop;
	struct fault_plan   faults;
	struct kernel_rig   rig;
	struct slow_cloud   cloud;
	struct metrics     *metrics;
	struct api         *api;
	struct http_server *server;
	bool                is_drained;
};

struct client {
	struct fixture *f;
	int             fd;
	struct buf      got;
};

static enum rc ask_slow_cloud(struct cloud_probe *p, bool is_paid UNUSED, struct arena *a UNUSED,
                              struct probe_row **ret UNUSED, size_t *ret_count, struct err *e UNUSED)
{
	struct slow_cloud *cloud = CONTAINER_OF(p, struct slow_cloud, probe);

	LOCKED(&cloud->lock);
	while (!cloud->is_open)
		pthread_cond_wait(&cloud->opens, &cloud->lock);
	*ret_count = 0;
	return RC_OK;
}

static void open_gate(struct slow_cloud *cloud)
{
	LOCKED(&cloud->lock);
	cloud->is_open = true;
	pthread_cond_broadcast(&cloud->opens);
}

static void open_api(struct fixture *f)
{
	struct api_tokens  tokens = { .admin = { .items = { STR("admin-token") }, .count = 1 } };
	struct api_options options = {
		.loop = &f->loop,
		.store = f->rig.store,
		.kernel = f->rig.kernel,
		.metrics = f->metrics,
		.base_path = STR("/v1"),
		.rate_per_sec = 1000,
		.rate_burst = 1000,
		.streams_max = 4,
		.probe = &f->cloud.probe,
	};

	f->api = api_new(&options);
	api_set_tokens(f->api, &tokens);
}

static void setup(struct fixture *f)
{
	struct http_options options = {
		.host = "127.0.0.1",
		.connections_max = 10,
		.header_timeout_ms = PATIENCE_MS,
		.body_timeout_ms = PATIENCE_MS,
		.idle_timeout_ms = PATIENCE_MS,
		.write_timeout_ms = PATIENCE_MS,
		.body_limit = api_body_limit,
		.on_request = api_on_request,
		.on_error = api_on_error,
	};
	struct err e = { 0 };

	*f = (struct fixture){ .cloud.probe.look = ask_slow_cloud };
	CHECK(uv_loop_init(&f->loop) == 0);
	CHECK(!pthread_mutex_init(&f->cloud.lock, NULL) && !pthread_cond_init(&f->cloud.opens, NULL));
	f->rig.faults = &f->faults;
	rig_open(&f->rig);
	f->metrics = metrics_new();
	open_api(f);
	options.arg = f->api;
	CHECK(http_server_open(&f->loop, &options, &f->server, &e) == RC_OK);
}

static enum rc nothing(struct session *s UNUSED, void *arg UNUSED, struct err *e UNUSED)
{
	return RC_OK;
}

/* What was submitted to it. */
static void turn_store(struct fixture *f)
{
	rig_run(&f->rig, nothing, NULL);
}

static void note_drained(void *arg)
{
	((struct fixture *)arg)->is_drained = true;
}

static void teardown(struct fixture *f)
{
	http_server_drain(f->server, 0, note_drained, f);
	while (!f->is_drained || f->api->in_flight) {
		uv_run(&f->loop, UV_RUN_NOWAIT);
		turn_store(f);
	}
	api_close_handles(f->api);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	http_server_free(f->server);
	api_free(f->api);
	CHECK(uv_loop_close(&f->loop) == 0);
	rig_close(&f->rig);
	metrics_free(f->metrics);
	pthread_cond_destroy(&f->cloud.opens);
	pthread_mutex_destroy(&f->cloud.lock);
}

static void ask(struct client *c, struct fixture *f, const char *request)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)http_server_port(f->server)) };
	size_t             size = strlen(request);

	*c = (struct client){ .f = f, .fd = socket(AF_INET, SOCK_STREAM, 0) };
	buf_init(&c->got, GOT_MAX);
	CHECK(inet_pton(AF_INET, "127.0.0.1", &to.sin_addr) == 1);
	CHECK(connect(c->fd, (struct sockaddr *)&to, sizeof(to)) == 0 && fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK(send(c->fd, request, size, MSG_NOSIGNAL) == (ssize_t)size);
}

static void leave(struct client *c)
{
	close(c->fd);
	buf_fini(&c->got);
}

static size_t count_of(const struct client *c, const char *text)
{
	size_t size = strlen(text), count = 0;

	for (size_t at = 0; at + size <= c->got.n; at++)
		count += memcmp(c->got.p + at, text, size) == 0;
	return count;
}

/* One turn of the loop, with a look for news, and of the store if it may. */
static void step(struct fixture *f, int64_t since_ms, bool is_with_store)
{
	CHECK(mono_now().ms - since_ms < PATIENCE_MS);
	streams_poke_later(f->api->streams);
	uv_run(&f->loop, UV_RUN_NOWAIT);
	if (is_with_store)
		turn_store(f);
}

static bool has_got(struct client *c, const char *text)
{
	ssize_t n;
	char   *to;

	while ((to = buf_room(&c->got, 4096)) && (n = recv(c->fd, to, 4096, 0)) > 0)
		buf_added(&c->got, (size_t)n);
	return count_of(c, text) > 0;
}

static void expect(struct client *c, const char *text)
{
	for (int64_t since = mono_now().ms; !has_got(c, text);)
		step(c->f, since, true);
}

static enum rc tell(struct session *s, void *arg, struct err *e)
{
	return session_tell(s, arg, STR("thing/1"), STR("test"), STR(""), STR("{}"), e);
}

static void happen(struct fixture *f, const char *type)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s", type);
	f->rig.clock.test_ms += 1000;
	rig_run(&f->rig, tell, name);
}

/* So many requests were answered with this status, by what operators see. */
static bool has_answered(struct fixture *f, int status, int times)
{
	struct buf b;
	char       line[64];
	bool       is_there;

	buf_init(&b, METRICS_MAX);
	metrics_write(f->metrics, &b);
	(void)snprintf(line, sizeof(line), "status=\"%d\"} %d\n", status, times);
	is_there = strstr(b.p, line) != NULL;
	buf_fini(&b);
	return is_there;
}

TEST(a_live_stream_does_not_repeat_a_page_when_the_next_cannot_be_read)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	ask(&c, &f, GET("events/stream"));
	expect(&c, ": events follow\n\n");
	happen(&f, "First");
	expect(&c, "event: First\n");
	atomic_store(&f.faults.refused, 1);
	for (int64_t since = mono_now().ms; f.faults.refused;)
		step(&f, since, true);
	happen(&f, "Second");
	expect(&c, "event: Second\n");
	CHECK(count_of(&c, "event: First\n") == 1);
	leave(&c);
	teardown(&f);
}

TEST(a_client_that_leaves_before_its_stream_begins_is_no_stranger)
{
	struct fixture f;
	struct client  c;

	setup(&f);
	ask(&c, &f, GET("events/stream"));
	for (int64_t since = mono_now().ms; !f.api->in_flight;)
		step(&f, since, false);
	leave(&c);
	for (int64_t since = mono_now().ms; http_server_connections(f.server);)
		step(&f, since, false);
	for (int64_t since = mono_now().ms; f.api->in_flight;)
		step(&f, since, true);
	CHECK(has_answered(&f, 499, 1) && !has_answered(&f, 401, 1));
	teardown(&f);
}

TEST(a_client_that_leaves_before_a_thread_is_free_is_no_failure_of_ours)
{
	static const char question[] = GET("doctor/aws");
	struct fixture    f;
	struct client     c[3];

	setup(&f);
	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		ask(&c[i], &f, question);
		for (int64_t since = mono_now().ms; f.api->in_flight <= i;)
			step(&f, since, false);
	}
	CHECK(f.api->blocking[BLOCKING_DOCTOR].waiting == 1);
	leave(&c[2]);
	for (int64_t since = mono_now().ms; http_server_connections(f.server) > 2;)
		step(&f, since, false);
	open_gate(&f.cloud);
	expect(&c[0], "HTTP/1.1 200 OK");
	expect(&c[1], "HTTP/1.1 200 OK");
	for (int64_t since = mono_now().ms; f.api->in_flight;)
		step(&f, since, true);
	CHECK(has_answered(&f, 200, 2) && has_answered(&f, 499, 1) && !has_answered(&f, 503, 1));
	leave(&c[0]);
	leave(&c[1]);
	teardown(&f);
}
