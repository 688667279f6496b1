/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - the api's life, and what it does for handlers.
 *
 * A request comes in through admit.c, which finds its route and lets it pass or not, and goes to a handler. A handler
 * that needs the store or a job hands its work to another thread and returns; the answer comes back through
 * `completions`, which wakes the loop once for many. It leaves through answer.c.
 *
 * The loop is woken by a descriptor of our own: uv_async_send() lets it spin until the sender runs again, which on one
 * processor takes a while. [decision 96]
 *
 * What the handlers of one turn of the loop submit goes to the store together, at the turn's end: the store's thread is
 * woken once and finds all of it, instead of committing the first by itself.
 *
 * Everything here runs on the loop thread, except api_complete_later().
 */
#include "http/api/api.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/api/line.h"
#include "http/api/ops_stream.h"
#include "http/api/ratelimit.h"
#include "http/api/rights.h"
#include "http/api/urlform.h"

enum { REPLY_MAX = 16 * 1024 * 1024, COMPLETIONS_TURN_NS = 500000, LOG_SOON_MS = 100, BODY_VALUES_MAX = 1000 };

/* Who may call, by the words of routes.def: the scope, and the roles of it. */
#define BY_PUBLIC  SCOPE_PUBLIC, 0
#define BY_PROBE   SCOPE_PROBE, 0
#define BY_TRACK   SCOPE_TRACK, 0
#define BY_ADMIN   SCOPE_ADMIN, 0
#define BY_INBOX   SCOPE_INBOX, 0
#define BY_SESSION SCOPE_SESSION, 0
#define BY_POOL    SCOPE_SESSION, ROLE_ADMIN
#define BY_MANAGER SCOPE_SESSION, ROLE_MANAGER | ROLE_ADMIN
#define BY_USER    SCOPE_SESSION, ROLE_USER | ROLE_MANAGER | ROLE_ADMIN
#define BY_ANYTIME SCOPE_SESSION, ROLE_USER | ROLE_MANAGER | ROLE_ADMIN | RIGHTS_IN_MAINTENANCE

const struct api_route api_routes[] = {
#define ROUTE(name, operation, method, path, scope, params, replies, summary) \
	{ #name, #operation, #method, path, BY_##scope, params, replies, summary },
#include "http/api/routes.def"
#undef ROUTE
};
const size_t api_route_count = ARRAY_LEN(api_routes);

/* --- life cycle --- */

bool api_split_path(struct str path, struct str *segments, size_t *ret_count)
{
	size_t      count = 0;
	const char *slash = path.p;

	if (path.n == 0 || path.p[0] != '/')
		return false;
	while (slash) {
		if (count == API_SEGMENTS_MAX)
			return false;
		path = str_skip(path, (size_t)(slash + 1 - path.p));
		slash = memchr(path.p, '/', path.n);
		segments[count++] = slash ? str_of(path.p, (size_t)(slash - path.p)) : path;
	}
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

/* Run what has come, until the time is over. False: there may be more, of which nobody tells again. */
static bool run_completions(struct api *a, int64_t now_ns, int64_t until_ns)
{
	struct inbox_item *item;

	do {
		item = a->completing ? a->completing : inbox_take_all(&a->completions);
		a->completing = item ? item->next : NULL;
		if (item) {
			struct completion *c = CONTAINER_OF(item, struct completion, item);
			struct loop_span   span = loop_span_begin(&a->watch, now_ns);
			const char        *what = c->what ? c->what : "completion"; /* c is gone afterwards */

			c->run(c);
			now_ns = loop_span_end(&a->watch, &span, what);
		}
	} while (item && now_ns < until_ns);
	log_flush();
	return !item;
}

/* From any thread. It fails only when the loop has been told very often already. */
static void wake_loop(struct api *a)
{
	(void)eventfd_write(a->wake_fd, 1);
}

/* What does not fit into one turn waits for the next, so that others on the loop get their turn. */
static void on_wake(uv_poll_t *handle, int status UNUSED, int events UNUSED)
{
	struct api *a = handle->data;
	int64_t     now_ns = mono_ns();
	eventfd_t   times;

	(void)eventfd_read(a->wake_fd, &times); /* nothing to read: told twice, and done */
	if (!run_completions(a, now_ns, now_ns + COMPLETIONS_TURN_NS))
		wake_loop(a);
}

static void submit_gathered(struct api *a)
{
	size_t count = a->submitted_count;

	a->submitted_count = 0;
	if (count)
		store_submit_all(a->options.store, a->submitted, count);
}

static void on_turn_end(uv_prepare_t *prepare)
{
	submit_gathered(prepare->data);
}

static void on_log_timer(uv_timer_t *timer UNUSED)
{
	log_flush();
}

void api_log_soon(struct api *a)
{
	if (!uv_is_active((uv_handle_t *)&a->log_timer) && !uv_is_closing((uv_handle_t *)&a->log_timer))
		uv_timer_start(&a->log_timer, on_log_timer, LOG_SOON_MS, 0);
}

void api_complete_later(struct api *a, struct completion *c)
{
	if (inbox_put(&a->completions, &c->item))
		wake_loop(a);
}

/* Those of one commit wake the loop once. */
static void on_txns_done(struct txn_group *g, struct txn *const *txns, size_t count)
{
	struct api        *a = CONTAINER_OF(g, struct api, group);
	struct inbox_item *first = NULL, **end = &first, *last = NULL;

	for (size_t i = 0; i < count; i++, end = &last->next)
		*end = last = &CONTAINER_OF(txns[i], struct request, txn)->completion.item;
	if (inbox_put_list(&a->completions, first, last))
		wake_loop(a);
}

struct api *api_new(const struct api_options *o)
{
	struct api *a = mem_new(struct api);

	a->options = *o;
	atomic_init(&a->is_open, !o->is_closed);
	id_random(&a->hash_seed, sizeof(a->hash_seed));
	buf_init(&a->scratch, REPLY_MAX);
	buf_init(&a->overview, REPLY_MAX);
	claim_stats_begin(&a->claims, clock_now(&clock_real).ms);
	loop_watch_open(&a->watch, o->loop, o->metrics);
	inbox_init(&a->completions);
	a->wake.data = a;
	a->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->wake_fd < 0 || uv_poll_init(o->loop, &a->wake, a->wake_fd) ||
	    uv_poll_start(&a->wake, UV_READABLE, on_wake) || uv_timer_init(o->loop, &a->log_timer))
		mem_out("the API");                   /* the loop was just made */
	(void)uv_prepare_init(o->loop, &a->turn_end); /* these two cannot fail */
	a->turn_end.data = a;
	(void)uv_prepare_start(&a->turn_end, on_turn_end);
	uv_unref((uv_handle_t *)&a->turn_end);
	a->group.done = on_txns_done;
	for (size_t i = 0; i < api_route_count; i++) {
		a->matchers[i].path = route_path(&api_routes[i], o->base_path, &a->arena);
		assert(a->matchers[i].path.n > 0);
		if (!api_split_path(a->matchers[i].path, a->matchers[i].segments, &a->matchers[i].segment_count))
			abort(); /* routes.def and the base path are checked at start */
	}
	a->unknown.path = STR("unknown");
	a->limits = ratelimit_new(o->rate_per_sec, o->rate_burst);
	a->rate_head = str_format(&a->arena,
	                          "X-RateLimit-Limit: %lld\r\nX-RateLimit-Remaining: ", (long long)o->rate_burst);
	a->line = line_new(a, o->loop, o->waiting_max);
	a->streams = streams_new(&a->options);
	return a;
}

void api_free(struct api *a)
{
	if (!a)
		return;
	free(a->streams);
	line_free(a->line);
	ratelimit_free(a->limits);
	close(a->wake_fd);
	inbox_fini(&a->completions);
	buf_fini(&a->overview);
	buf_fini(&a->scratch);
	arena_fini(&a->token_arena);
	arena_fini(&a->arena);
	free(a);
}

void api_close_handles(struct api *a)
{
	while (!run_completions(a, mono_ns(), INT64_MAX))
		;
	uv_close((uv_handle_t *)&a->wake, NULL);
	uv_close((uv_handle_t *)&a->turn_end, NULL);
	loop_watch_close(&a->watch);
	uv_close((uv_handle_t *)&a->log_timer, NULL);
	line_close_handles(a->line);
	streams_close_handles(a->streams);
}

void api_when_quiet(struct api *a, void (*on_quiet)(void *arg), void *arg)
{
	a->on_quiet = on_quiet;
	a->quiet_arg = arg;
	api_hold(a);
	api_release(a);
}

void api_set_tokens(struct api *a, const struct api_tokens *tokens)
{
	struct token_list *lists[] = { &a->tokens.track, &a->tokens.admin, &a->tokens.inbox, &a->tokens.metrics };

	arena_reset(&a->token_arena);
	a->tokens = *tokens;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t k = 0; k < lists[i]->count; k++)
			lists[i]->items[k] = str_dup(&a->token_arena, lists[i]->items[k]);
}

int token_find(const struct token_list *known, struct str token)
{
	int found = -1;

	for (size_t i = 0; i < known->count; i++)
		if (str_eq_secret(known->items[i], token))
			found = (int)i;
	return found;
}

/* --- for handlers --- */

void api_hold(struct api *a)
{
	a->in_flight++;
}

void api_release(struct api *a)
{
	void (*on_quiet)(void *arg) = a->on_quiet;

	if (--a->in_flight || !on_quiet)
		return;
	a->on_quiet = NULL;
	on_quiet(a->quiet_arg);
}

static void run_request_completion(struct completion *c)
{
	struct request *r = CONTAINER_OF(c, struct request, completion);
	struct api     *a = r->api; /* r is gone after its reply */

	r->complete(r);
	api_release(a);
}

static void submit(struct request *r, struct arena *a, txn_fn *run, void *arg, bool is_read_only,
                   void (*complete)(struct request *r), void (*end)(struct completion *c))
{
	r->txn = (struct txn){ .run = run,
		               .arg = arg,
		               .arena = a,
		               .is_read_only = is_read_only,
		               .trace = str_from(r->trace.text),
		               .group = &r->api->group };
	r->complete = complete;
	r->completion.run = end;
	r->completion.what = r->route ? r->route->name : NULL;
	api_hold(r->api);
	r->api->submitted[r->api->submitted_count++] = &r->txn;
	if (r->api->submitted_count == API_SUBMIT_MAX)
		submit_gathered(r->api);
}

void request_submit_in(struct request *r, struct arena *a, txn_fn *run, void *arg, bool is_read_only,
                       void (*complete)(struct request *r))
{
	submit(r, a, run, arg, is_read_only, complete, run_request_completion);
}

void request_submit(struct request *r, txn_fn *run, void *arg, bool is_read_only, void (*complete)(struct request *r))
{
	request_submit_in(r, &r->call->arena, run, arg, is_read_only, complete);
}

/* A function may be run again: the last page counts. */
static enum rc read_page(struct session *s, void *arg, struct err *e)
{
	struct request *r = arg;
	enum rc         rc = r->read(s, r->read_arg, e);

	if (rc)
		return rc;
	r->txn.rc = RC_OK; /* that of a try before this one */
	r->is_writing_page = true;
	r->complete(r);
	r->is_writing_page = false;
	return RC_OK;
}

static void run_page_completion(struct completion *c)
{
	struct request *r = CONTAINER_OF(c, struct request, completion);
	struct api     *a = r->api; /* r is gone after its reply */
	struct buf      page = r->page;

	if (r->txn.rc)
		r->complete(r);
	else if (page.is_full)
		request_refuse(r, RC_INTERNAL, "the reply is too large");
	else
		request_reply_taken(r, r->page_status, r->page_type, &page);
	buf_fini(&page);
	api_release(a);
}

void request_submit_page(struct request *r, txn_fn *run, void *arg, void (*complete)(struct request *r))
{
	buf_init(&r->page, REPLY_MAX);
	r->read = run;
	r->read_arg = arg;
	submit(r, &r->call->arena, read_page, r, true, complete, run_page_completion);
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

enum rc request_json(const struct request *r, json_t **ret, struct err *e)
{
	return json_parse_limited(r->call->req.body, BODY_VALUES_MAX, ret, e);
}

void request_prefer(const struct request *r, int64_t *ret_wait_sec, bool *ret_is_async)
{
	const struct http_request *req = &r->call->req;
	size_t                     times;
	struct str                 all = http_header(req, STR("Prefer"), &times);

	for (size_t i = 0; times > 1 && i < req->header_count; i++) /* several are one, with commas */
		if (req->headers[i].value.p != all.p && str_eq_nocase(req->headers[i].name, STR("Prefer")))
			all = str_format(&r->call->arena, "%.*s,%.*s", STR_ARG(all), STR_ARG(req->headers[i].value));
	prefer_parse(all, ret_wait_sec, ret_is_async);
}
