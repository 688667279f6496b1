/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - every request passes here twice: on its way to a handler, and as an answer back.
 *
 * On the way in, in this order: is there such a path (404), such a method (405), who is it (401), may he (403), not too
 * often (429), then the handler. On the way out: the common headers, one metric, one log line. A handler that needs the
 * store or a job hands its work to another thread and returns; the answer comes back through `completions`, which wakes
 * the loop once for many.
 *
 * Everything here runs on the loop thread, except api_complete_later() and api_poke_line().
 */
#include "http/api.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "domain/sandbox.h"
#include "http/line.h"
#include "http/ratelimit.h"
#include "http/urlform.h"
#include "service/broker.h"

enum {
	SEGMENTS_MAX = 8,
	REPLY_MAX = 16 * 1024 * 1024,
	BODY_MAX = 4096,
	UNAVAILABLE_RETRY_SEC = 5,
	STATUS_SLOTS = 20,
};

const struct route api_routes[] = {
#define ROUTE(name, method, path, scope, params, replies, summary) \
	{ #name, #method, path, SCOPE_##scope, params, replies, summary },
#include "http/routes.def"
#undef ROUTE
};
const size_t api_route_count = ARRAY_LEN(api_routes);

static handler_fn *const handlers[] = {
#define ROUTE(name, method, path, scope, params, replies, summary) handle_##name,
#include "http/routes.def"
#undef ROUTE
};

/* A route as the router sees it. */
struct matcher {
	struct str            path; /* with the base path, parameters still in braces */
	struct str            segments[SEGMENTS_MAX];
	size_t                segment_count;
	struct metric_series *latency[STATUS_SLOTS];
};

struct api {
	struct api_options options;
	struct jobs       *jobs;
	struct line       *line;
	struct ratelimit  *limits;
	struct arena       arena; /* what lives as long as the api */
	struct arena       token_arena;
	struct api_tokens  tokens;
	struct matcher     matchers[ARRAY_LEN(api_routes)];
	struct matcher     unknown; /* for the metrics of unknown paths */
	struct inbox       completions;
	uv_async_t         wake;
	struct buf         scratch; /* the reply in the making */
	uint64_t           hash_seed;
	int64_t            next_gauges_ms;
};

static const char common_headers[] = "X-Frame-Options: DENY\r\n"
                                     "X-Content-Type-Options: nosniff\r\n"
                                     "X-XSS-Protection: 1; mode=block\r\n"
                                     "Strict-Transport-Security: max-age=31536000; includeSubDomains\r\n"
                                     "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
                                     "Referrer-Policy: no-referrer\r\n"
                                     "Permissions-Policy: geolocation=(), microphone=(), camera=()\r\n";

static const char preflight_headers[] =
        "Access-Control-Allow-Methods: GET, POST\r\n"
        "Access-Control-Allow-Headers: Authorization, Content-Type, X-Track-ID, X-Instruqt-Sandbox-ID, "
        "X-Instruqt-Track-ID, X-Sandbox-Name-Prefix, Idempotency-Key, Prefer\r\n"
        "Access-Control-Max-Age: 3600\r\n";

/* --- life cycle --- */

/* "/v1/x" -> "v1", "x". False when there are too many parts. */
static bool split_path(struct str path, struct str *segments, size_t *ret_count)
{
	size_t count = 0;
	bool   is_last;

	if (path.n == 0 || path.p[0] != '/')
		return false;
	path = str_of(path.p + 1, path.n - 1);
	do {
		if (count == SEGMENTS_MAX)
			return false;
		is_last = !memchr(path.p, '/', path.n);
		segments[count++] = str_cut(&path, '/');
	} while (!is_last);
	*ret_count = count;
	return true;
}

struct str route_path(const struct route *route, struct str base, struct arena *a)
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
	id_random(&a->hash_seed, sizeof(a->hash_seed));
	buf_init(&a->scratch, REPLY_MAX);
	inbox_init(&a->completions);
	a->wake.data = a;
	if (uv_async_init(o->loop, &a->wake, drain_completions))
		abort(); /* the loop was just made: only memory can be missing */
	for (size_t i = 0; i < api_route_count; i++) {
		a->matchers[i].path = route_path(&api_routes[i], o->base_path, &a->arena);
		assert(a->matchers[i].path.n > 0);
		if (!split_path(a->matchers[i].path, a->matchers[i].segments, &a->matchers[i].segment_count))
			abort(); /* routes.def and the base path are checked at start */
	}
	a->unknown.path = STR("unknown");
	a->limits = ratelimit_new(o->rate_per_sec, o->rate_burst);
	a->line = line_new(a, o->loop, o->waiting_max);
	return a;
}

void api_free(struct api *a)
{
	if (!a)
		return;
	line_free(a->line);
	ratelimit_free(a->limits);
	inbox_fini(&a->completions);
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

bool api_wants_gauges(struct api *a)
{
	int64_t now_ms = mono_now().ms;

	if (now_ms < a->next_gauges_ms)
		return false;
	a->next_gauges_ms = now_ms + a->options.gauges_fresh_ms;
	return true;
}

/* --- the way out --- */

static bool is_origin_allowed(const struct api *a, struct str origin)
{
	struct str rest = a->options.cors_origins;

	if (str_eq(rest, STR("*")))
		return true;
	while (rest.n)
		if (str_eq(str_trim(str_cut(&rest, ',')), origin))
			return true;
	return false;
}

static void add_cors(struct request *r)
{
	struct str origin = http_header(&r->call->req, STR("Origin"), NULL);
	bool       is_any = str_eq(r->api->options.cors_origins, STR("*"));

	if (!origin.p)
		return;
	if (!is_any)
		request_header(r, "Vary", "Origin");
	if (!is_origin_allowed(r->api, origin))
		return;
	request_header(r, "Access-Control-Allow-Origin", "%.*s", STR_ARG(is_any ? STR("*") : origin));
	request_header(r, "Access-Control-Expose-Headers",
	               "X-Request-ID, X-RateLimit-Limit, X-RateLimit-Remaining, Retry-After");
}

static void add_common_headers(struct request *r)
{
	struct buf *h = &r->call->headers;

	buf_add(h, common_headers, sizeof(common_headers) - 1);
	if (r->api->options.sends_request_id) {
		buf_add_str(h, STR("X-Request-ID: "));
		buf_add(h, r->id, ID_UUID_SIZE - 1);
		buf_add_str(h, STR("\r\n"));
	}
	if (r->rate_remaining >= 0) {
		buf_add_str(h, STR("X-RateLimit-Limit: "));
		buf_add_int(h, ratelimit_per_sec(r->api->limits));
		buf_add_str(h, STR("\r\nX-RateLimit-Remaining: "));
		buf_add_int(h, r->rate_remaining);
		buf_add_str(h, STR("\r\n"));
	}
	add_cors(r);
}

static struct matcher *matcher_of(struct request *r)
{
	return r->route ? &r->api->matchers[r->route - api_routes] : &r->api->unknown;
}

static size_t status_slot(int status)
{
	static const int known[STATUS_SLOTS - 1] = { 200, 201, 202, 204, 400, 401, 403, 404,
		                                     405, 409, 413, 429, 500, 503, 504 };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i] == status)
			return i;
	return STATUS_SLOTS - 1;
}

static void note_latency(struct request *r, int status, double seconds)
{
	struct matcher        *m = matcher_of(r);
	struct metric_series **series = &m->latency[status_slot(status)];

	if (!*series) {
		char labels[512];

		(void)snprintf(labels, sizeof(labels), "%s,%.*s,%d", r->route ? r->route->method : "any",
		               STR_ARG(m->path), status); /* a cut label is still a label */
		*series = metrics_series(r->api->options.metrics, METRIC_REQUEST_LATENCY, labels);
	}
	metric_observe(*series, seconds);
}

static void log_request(struct request *r, int status, double seconds, const char *error)
{
	const struct http_request *req = &r->call->req;
	struct log_field           fields[] = {
		          LOG_STR("request_id", str_from(r->id)),
		          LOG_STR("track_id", r->owner),
		          LOG_STR("sandbox_id", r->sandbox_id),
		          LOG_STR("action", str_format(&r->call->arena, "%.*s %.*s", STR_ARG(req->method), STR_ARG(req->path))),
		          LOG_STR("outcome", status < 400 ? STR("success") : STR("failure")),
		          LOG_NUM("status", status),
		          LOG_NUM("latency_ms", (double)(int64_t)(seconds * 1e6) / 1000),
		          LOG_STR("error", str_from(error)),
		          LOG_STR("instruqt_track_id", request_header_value(r, STR("X-Instruqt-Track-ID"))),
		          LOG_STR("client", http_peer(r->call)),
	};

	log_write_later(status >= 500 ? LOG_ERROR : LOG_INFO, "http", fields, ARRAY_LEN(fields), "request");
}

static void finish(struct request *r, int status, const char *content_type, struct str body, const char *error)
{
	double seconds = (double)(mono_ns() - r->call->started_ns) / 1e9;

	add_common_headers(r);
	note_latency(r, status, seconds);
	if (log_wants(status >= 500 ? LOG_ERROR : LOG_INFO))
		log_request(r, status, seconds, error);
	http_reply(r->call, status, content_type, body);
}

void request_reply_as(struct request *r, int status, const char *content_type, struct str body)
{
	finish(r, status, content_type, body, "");
}

struct json_out reply_begin(struct request *r)
{
	struct json_out o;

	buf_reset(&r->api->scratch);
	json_out_init(&o, &r->api->scratch);
	json_open_object(&o);
	return o;
}

void reply_send(struct request *r, int status)
{
	struct err e = { 0 };

	buf_add_char(&r->api->scratch, '}');
	if (r->api->scratch.is_full) {
		rc_ignore(err_set(&e, RC_INTERNAL, "the reply is too large")); /* noted in e */
		request_fail(r, &e);
		return;
	}
	finish(r, status, "application/json", buf_str(&r->api->scratch), "");
}

static void write_error(struct buf *b, const char *code, const char *message, const char *request_id,
                        int64_t retry_after)
{
	struct json_out o;

	json_out_init(&o, b);
	json_open_object(&o);
	json_put_object(&o, "error");
	json_put_str(&o, "code", str_from(code));
	json_put_str(&o, "message", str_from(message));
	json_put_str(&o, "request_id", str_from(request_id));
	if (retry_after > 0)
		json_put_int(&o, "retry_after", retry_after);
	json_close_object(&o);
	json_close_object(&o);
}

static int64_t retry_after(const struct request *r, enum rc rc)
{
	if (r->retry_after)
		return r->retry_after;
	switch (rc) {
	case RC_EXHAUSTED: return BROKER_RETRY_AFTER_SEC;
	case RC_UNAVAILABLE:
	case RC_TIMEOUT: return UNAVAILABLE_RETRY_SEC;
	default: return 0;
	}
}

void request_fail(struct request *r, const struct err *e)
{
	int         status = rc_http_status(e->rc);
	int64_t     after = retry_after(r, e->rc);
	const char *message = e->msg;

	assert(e->rc != RC_OK);
	if (status == 500)
		message = "something went wrong here; the log has the details under this request_id";
	if (after)
		request_header(r, "Retry-After", "%lld", (long long)after);
	if (e->rc == RC_UNKNOWN)
		request_header(r, "WWW-Authenticate", "Bearer");
	buf_reset(&r->api->scratch);
	write_error(&r->api->scratch, err_code(e), message, r->id, after);
	finish(r, status, "application/json", buf_str(&r->api->scratch), e->msg);
}

void request_header(struct request *r, const char *name, const char *fmt, ...)
{
	char    value[512];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, args); /* ours, and short */
	va_end(args);
	buf_addf(&r->call->headers, "%s: %s\r\n", name, value);
}

/* Errors that the server makes by itself, in the same clothes. */
void api_on_error(int status, const char *why, struct buf *headers, struct buf *body, void *arg)
{
	struct api *a = arg;
	char        id[ID_UUID_SIZE];
	const char *code = status == 408                                     ? "REQUEST_TIMEOUT"
	                   : status == 413 || status == 414 || status == 431 ? "TOO_LARGE"
	                   : status == 503                                   ? "SERVICE_UNAVAILABLE"
	                   : status >= 500 && status != 501 && status != 505 ? "INTERNAL_ERROR"
	                                                                     : "VALIDATION_ERROR";

	id_uuid(id);
	buf_add_str(headers, STR("Content-Type: application/json\r\n"));
	buf_add(headers, common_headers, sizeof(common_headers) - 1);
	if (a->options.sends_request_id)
		buf_addf(headers, "X-Request-ID: %s\r\n", id);
	if (str_eq(a->options.cors_origins, STR("*")))
		buf_add_str(headers, STR("Access-Control-Allow-Origin: *\r\n"));
	write_error(body, code, why, id, status == 503 ? UNAVAILABLE_RETRY_SEC : 0);
	if (status == 503)
		buf_addf(headers, "Retry-After: %d\r\n", UNAVAILABLE_RETRY_SEC);
	struct log_field fields[] = { LOG_STR("request_id", str_from(id)), LOG_NUM("status", status),
		                      LOG_STR("error", str_from(why)) };

	log_write_later(LOG_INFO, "http", fields, ARRAY_LEN(fields), "refused");
}

/* --- the way in --- */

static bool is_param(struct str segment)
{
	return segment.n > 2 && segment.p[0] == '{';
}

static bool is_path_match(const struct matcher *m, const struct str *segments, size_t count)
{
	if (m->segment_count != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (is_param(m->segments[i]) ? segments[i].n == 0 : !str_eq(m->segments[i], segments[i]))
			return false;
	return true;
}

static enum rc take_params(struct request *r, const struct matcher *m, const struct str *segments, struct err *e)
{
	size_t at = 0;

	for (size_t i = 0; i < m->segment_count; i++) {
		if (!is_param(m->segments[i]))
			continue;
		assert(at < API_PARAMS_MAX);
		if (!url_decode(&r->call->arena, segments[i], &r->params[at++]))
			return err_set(e, RC_INVALID, "the path has a broken %%-escape in '%.*s'",
			               STR_ARG(segments[i]));
	}
	return RC_OK;
}

/* Finds the route. RC_NOT_FOUND, RC_NO_METHOD (with the Allow header added). */
static enum rc find_route(struct request *r, struct err *e)
{
	const struct http_request *req = &r->call->req;
	struct str                 segments[SEGMENTS_MAX];
	struct str                 method = req->is_head ? STR("GET") : req->method;
	struct buf                *headers = &r->call->headers;
	size_t                     count, allowed = 0;

	if (!split_path(req->path, segments, &count))
		return err_set(e, RC_NOT_FOUND, "there is nothing at this path");
	for (size_t i = 0; i < api_route_count; i++) {
		if (!is_path_match(&r->api->matchers[i], segments, count))
			continue;
		if (str_eq(method, str_from(api_routes[i].method))) {
			buf_reset(headers);
			r->route = &api_routes[i];
			return take_params(r, &r->api->matchers[i], segments, e);
		}
		buf_addf(headers, "%s%s", allowed++ ? ", " : "Allow: ", api_routes[i].method);
	}
	if (!allowed)
		return err_set(e, RC_NOT_FOUND, "there is nothing at this path");
	buf_add_str(headers, STR("\r\n"));
	return err_set(e, RC_NO_METHOD, "this path does not take %.*s", STR_ARG(req->method));
}

/* The token's number among those known, or -1. Looks at all of them, whatever it finds. */
static int find_token(const struct str *tokens, size_t count, struct str token)
{
	int found = -1;

	for (size_t i = 0; i < count; i++)
		if (str_eq_secret(tokens[i], token))
			found = (int)i;
	return found;
}

static enum rc authenticate(struct request *r, uint64_t *ret_caller, struct err *e)
{
	size_t     times;
	struct str rest = http_header(&r->call->req, STR("Authorization"), &times);
	struct str scheme = str_cut(&rest, ' ');
	struct str token = str_trim(rest);
	int        track, admin;

	if (times == 0)
		return err_set(e, RC_UNKNOWN, "no Authorization header; send 'Authorization: Bearer TOKEN'");
	if (times > 1 || !str_eq_nocase(scheme, STR("Bearer")) || token.n == 0)
		return err_set(e, RC_UNKNOWN, "the Authorization header must be 'Bearer TOKEN', once");
	track = find_token(r->api->tokens.track, r->api->tokens.track_count, token);
	admin = find_token(r->api->tokens.admin, r->api->tokens.admin_count, token);
	if (track < 0 && admin < 0)
		return err_set(e, RC_UNKNOWN, "the token is not known here");
	if (r->route->scope == SCOPE_ADMIN && admin < 0)
		return err_set(e, RC_DENIED, "this needs an admin token");
	if (r->route->scope == SCOPE_TRACK && track < 0)
		return err_set(e, RC_DENIED, "this needs a track's token, not an admin's");
	*ret_caller = r->route->scope == SCOPE_ADMIN ? (uint64_t)admin + 1000 : (uint64_t)track + 1;
	return RC_OK;
}

/* The owner: X-Instruqt-Sandbox-ID wins over X-Track-ID. */
static enum rc read_owner(struct request *r, struct err *e)
{
	size_t     times;
	struct str owner = http_header(&r->call->req, STR("X-Instruqt-Sandbox-ID"), &times);

	if (times == 0)
		owner = http_header(&r->call->req, STR("X-Track-ID"), &times);
	owner = str_trim(owner);
	if (times == 0)
		return err_set_code(e, RC_INVALID, "INVALID_TRACK_ID",
		                    "no X-Track-ID (or X-Instruqt-Sandbox-ID) header: who is asking?");
	if (times > 1 || !sandbox_is_label(owner))
		return err_set_code(
		        e, RC_INVALID, "INVALID_TRACK_ID",
		        "X-Track-ID (or X-Instruqt-Sandbox-ID) must be 1 to %d visible ASCII characters, once",
		        SANDBOX_OWNER_MAX);
	r->owner = owner;
	return RC_OK;
}

static enum rc limit_rate(struct request *r, uint64_t caller, struct err *e)
{
	uint64_t key = str_hash(r->owner, r->api->hash_seed ^ caller);

	if (ratelimit_take(r->api->limits, key, mono_now(), &r->rate_remaining, &r->retry_after))
		return RC_OK;
	metrics_add(r->api->options.metrics, METRIC_RATE_LIMITED, "", 1);
	return err_set(e, RC_LIMITED, "more than %lld requests a second; try again in %lld s",
	               (long long)ratelimit_per_sec(r->api->limits), (long long)r->retry_after);
}

/* A query parameter that the route does not have is a mistake to be told, not to be passed over. */
static enum rc check_query_names(struct request *r, struct err *e)
{
	struct str rest = r->call->req.query;

	while (rest.n) {
		struct str pair = str_cut(&rest, '&');
		struct str name = str_cut(&pair, '=');
		struct str known = str_from(r->route->params);
		bool       is_known = false;

		while (known.n && !is_known) {
			struct str id = str_cut(&known, ' ');

			is_known = str_eq(id, name) ||
			           (str_eq(id, STR("required-status")) && str_eq(name, STR("status")));
		}
		if (!is_known)
			return err_set(e, RC_INVALID, "there is no query parameter '%.*s' here", STR_ARG(name));
	}
	return RC_OK;
}

static enum rc admit(struct request *r, struct err *e)
{
	struct err owner_problem = { 0 };
	uint64_t   caller = 0;
	enum rc    rc;

	if (r->route->scope == SCOPE_TRACK || r->route->scope == SCOPE_ADMIN) {
		if ((rc = authenticate(r, &caller, e)))
			return rc;
		rc = r->route->scope == SCOPE_TRACK ? read_owner(r, &owner_problem) : RC_OK;
		if (limit_rate(r, caller, e))
			return RC_LIMITED;
		if (rc) {
			*e = owner_problem;
			return rc;
		}
	}
	return check_query_names(r, e);
}

static struct request *request_new(struct api *a, struct http_call *call)
{
	struct request *r = arena_alloc(&call->arena, sizeof(*r));

	r->api = a;
	r->call = call;
	r->rate_remaining = -1;
	id_uuid(r->id);
	call->user = r;
	return r;
}

/* A browser asks before it sends: CORS. */
static void answer_options(struct request *r, const struct err *e)
{
	struct str wanted = http_header(&r->call->req, STR("Access-Control-Request-Method"), NULL);

	if (e->rc == RC_NOT_FOUND) {
		request_fail(r, e);
		return;
	}
	if (wanted.p)
		buf_add(&r->call->headers, preflight_headers, sizeof(preflight_headers) - 1);
	finish(r, 204, NULL, STR(""), "");
}

void api_on_request(struct http_call *call, void *arg)
{
	struct request *r = request_new(arg, call);
	struct err      e = { 0 };
	enum rc         rc = find_route(r, &e);

	if (rc && str_eq(call->req.method, STR("OPTIONS")))
		answer_options(r, &e);
	else if (rc || (rc = admit(r, &e)))
		request_fail(r, &e);
	else
		handlers[r->route - api_routes](r);
}

void api_on_probe(struct http_call *call, void *arg)
{
	struct request *r = request_new(arg, call);
	struct err      e = { 0 };
	enum rc         rc = find_route(r, &e);

	if (rc || r->route->scope != SCOPE_PROBE) {
		buf_reset(&call->headers);
		err_clear(&e);
		rc = err_set(&e, RC_NOT_FOUND, "only /metrics, /healthz and /readyz are served on this port");
	}
	if (rc)
		request_fail(r, &e);
	else
		handlers[r->route - api_routes](r);
}

size_t api_body_limit(const struct http_request *head, void *arg)
{
	(void)head;
	(void)arg;
	return BODY_MAX; /* bodies are small or ignored, whatever the route */
}

/* --- for handlers --- */

static void run_request_completion(struct completion *c)
{
	struct request *r = CONTAINER_OF(c, struct request, completion);

	r->complete(r);
}

static void on_txn_done(struct txn *t, enum rc rc, const struct err *e)
{
	struct request *r = CONTAINER_OF(t, struct request, txn);

	(void)rc; /* both stay in the transaction */
	(void)e;
	api_complete_later(r->api, &r->completion);
}

void request_submit(struct request *r, txn_fn *run, void *arg, bool is_read_only, void (*complete)(struct request *r))
{
	r->txn = (struct txn){
		.run = run, .arg = arg, .arena = &r->call->arena, .is_read_only = is_read_only, .done = on_txn_done
	};
	r->complete = complete;
	r->completion.run = run_request_completion;
	store_submit(r->api->options.store, &r->txn);
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

void api_stop_waiting(struct api *a)
{
	line_stop(a->line);
}
