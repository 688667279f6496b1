/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - the api's life, and what it does for handlers.
 *
 * A request comes in through admit.c, which finds its route and lets it pass or not, and goes to a handler. A handler that needs
 * the store or a job hands its work to another thread and returns; the answer comes back through `completions`, which wakes the
 * loop once for many. It leaves through answer.c.
 *
 * Everything here runs on the loop thread, except api_complete_later(), api_poke_line() and api_poke_streams().
 */
#include "http/api.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/api_ops.h"
#include "http/urlform.h"

enum { REPLY_MAX = 16 * 1024 * 1024 };

const struct api_route api_routes[] = {
#define ROUTE(name, operation, method, path, scope, params, replies, summary) \
	{ #name, #operation, #method, path, SCOPE_##scope, params, replies, summary },
#include "http/routes.def"
#undef ROUTE
};
const size_t api_route_count = ARRAY_LEN(api_routes);

/* --- life cycle --- */

bool api_split_path(struct str path, struct str *segments, size_t *ret_count)
{
	size_t count = 0;
	bool   is_last;

	if (path.n == 0 || path.p[0] != '/')
		return false;
	path = str_of(path.p + 1, path.n - 1);
	do {
		if (count == API_SEGMENTS_MAX)
			return false;
		is_last = !memchr(path.p, '/', path.n);
		segments[count++] = str_cut(&path, '/');
	} while (!is_last);
	*ret_count = count;
	return true;
}

struct str route_path(const struct api_route *route, struct str base, struct arena *a)
{
	struct str path = str_from(route->path);

	if (!str_starts_with(path, STR("{base}")))
		return path;
	return str_format(a, "%.*s%s", STR_ARG(base), route->path + strlen("{base}"));
}

static void drain_completions(uv_async_t *handle)
{
	struct api        *a = handle->data;
	struct inbox_item *item = inbox_take_all(&a->completions);

	while (item) {
		struct inbox_item *next = item->next;
		struct completion *c = CONTAINER_OF(item, struct completion, item);

		c->run(c);
		item = next;
	}
	log_flush();
}

void api_complete_later(struct api *a, struct completion *c)
{
	if (inbox_put(&a->completions, &c->item))
		uv_async_send(&a->wake);
}

struct api *api_new(const struct api_options *o)
{
	struct api *a = mem_new(struct api);

	a->options = *o;
	a->jobs = o->jobs;
	atomic_init(&a->is_open, !o->is_closed);
	id_random(&a->hash_seed, sizeof(a->hash_seed));
	buf_init(&a->scratch, REPLY_MAX);
	buf_init(&a->overview, REPLY_MAX);
	tally_begin(&a->tally, clock_now(&clock_real).ms);
	inbox_init(&a->completions);
	a->wake.data = a;
	if (uv_async_init(o->loop, &a->wake, drain_completions))
		abort(); /* the loop was just made: only memory can be missing */
	for (size_t i = 0; i < api_route_count; i++) {
		a->matchers[i].path = route_path(&api_routes[i], o->base_path, &a->arena);
		assert(a->matchers[i].path.n > 0);
		if (!api_split_path(a->matchers[i].path, a->matchers[i].segments, &a->matchers[i].segment_count))
			abort(); /* routes.def and the base path are checked at start */
	}
	a->unknown.path = STR("unknown");
	a->limits = ratelimit_new(o->rate_per_sec, o->rate_burst);
	a->line = line_new(a, o->loop, o->waiting_max);
	a->streams = streams_new(o);
	return a;
}

void api_free(struct api *a)
{
	if (!a)
		return;
	streams_free(a->streams);
	line_free(a->line);
	ratelimit_free(a->limits);
	inbox_fini(&a->completions);
	buf_fini(&a->overview);
	buf_fini(&a->scratch);
	arena_fini(&a->token_arena);
	arena_fini(&a->arena);
	free(a);
}

void api_close_handles(struct api *a)
{
	drain_completions(&a->wake);
	uv_close((uv_handle_t *)&a->wake, NULL);
	line_close_handles(a->line);
	streams_close_handles(a->streams);
}

void api_open_doors(struct api *a)
{
	atomic_store(&a->is_open, true);
}

bool api_is_open(const struct api *a)
{
	return atomic_load(&a->is_open);
}

void api_when_quiet(struct api *a, void (*on_quiet)(void *arg), void *arg)
{
	a->on_quiet = on_quiet;
	a->quiet_arg = arg;
	if (a->in_flight == 0)
		on_quiet(arg);
}

void api_set_jobs(struct api *a, struct jobs *jobs)
{
	a->jobs = jobs;
}

void api_set_tokens(struct api *a, const struct api_tokens *tokens)
{
	arena_reset(&a->token_arena);
	a->tokens = *tokens;
	for (size_t i = 0; i < tokens->track_count; i++)
		a->tokens.track[i] = str_dup(&a->token_arena, tokens->track[i]);
	for (size_t i = 0; i < tokens->admin_count; i++)
		a->tokens.admin[i] = str_dup(&a->token_arena, tokens->admin[i]);
	for (size_t i = 0; i < tokens->inbox_count; i++)
		a->tokens.inbox[i] = str_dup(&a->token_arena, tokens->inbox[i]);
}

const struct api_options *api_options(const struct api *a)
{
	return &a->options;
}

struct jobs *api_jobs(const struct api *a)
{
	return a->jobs;
}

struct line *api_line(const struct api *a)
{
	return a->line;
}

struct streams *api_streams(const struct api *a)
{
	return a->streams;
}

void api_note_claim(struct api *a, bool is_granted, double seconds)
{
	tally_claim(&a->tally, clock_now(&clock_real).ms, is_granted, seconds);
}

bool api_wants_gauges(struct api *a)
{
	int64_t now_ms = mono_now().ms;

	if (now_ms < a->next_gauges_ms)
		return false;
	a->next_gauges_ms = now_ms + a->options.gauges_fresh_ms;
	return true;
}

/* --- for handlers --- */

static void run_request_completion(struct completion *c)
{
	struct request *r = CONTAINER_OF(c, struct request, completion);
	struct api     *a = r->api; /* r is gone after its reply */

	r->complete(r);
	if (--a->in_flight == 0 && a->on_quiet)
		a->on_quiet(a->quiet_arg);
}

static void on_txn_done(struct txn *t, enum rc rc, const struct err *e)
{
	struct request *r = CONTAINER_OF(t, struct request, txn);

	(void)rc; /* both stay in the transaction */
	(void)e;
	api_complete_later(r->api, &r->completion);
}

void request_submit_in(struct request *r, struct arena *a, txn_fn *run, void *arg, bool is_read_only,
                       void (*complete)(struct request *r))
{
	r->txn = (struct txn){ .run = run, .arg = arg, .arena = a, .is_read_only = is_read_only, .done = on_txn_done };
	r->complete = complete;
	r->api->in_flight++;
	r->completion.run = run_request_completion;
	store_submit(r->api->options.store, &r->txn);
}

void request_submit(struct request *r, txn_fn *run, void *arg, bool is_read_only, void (*complete)(struct request *r))
{
	request_submit_in(r, &r->call->arena, run, arg, is_read_only, complete);
}

struct str request_header_value(const struct request *r, struct str name)
{
	struct str value = http_header(&r->call->req, name, NULL);

	return value.p ? str_trim(value) : STR("");
}

enum rc request_query(struct request *r, const char *name, struct str *ret, struct err *e)
{
	return url_query(&r->call->arena, r->call->req.query, name, ret, e);
}

enum rc request_query_int(struct request *r, const char *name, int64_t min, int64_t max, int64_t fallback, int64_t *ret,
                          struct err *e)
{
	struct str text;
	enum rc    rc = request_query(r, name, &text, e);

	if (rc)
		return rc;
	*ret = fallback;
	if (text.n && !str_to_int(text, min, max, ret))
		return err_set(e, RC_INVALID, "query parameter %s must be a whole number from %lld to %lld", name,
		               (long long)min, (long long)max);
	return RC_OK;
}

void request_prefer(const struct request *r, int64_t *ret_wait_sec, bool *ret_is_async)
{
	prefer_parse(request_header_value(r, STR("Prefer")), ret_wait_sec, ret_is_async);
}

void api_poke_line(struct api *a)
{
	line_poke_later(a->line);
}

void api_poke_streams(struct api *a)
{
	streams_poke_later(a->streams);
}

void api_stop_waiting(struct api *a)
{
	streams_stop(a->streams);
	line_stop(a->line);
}
