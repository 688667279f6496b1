/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admit.c - every request passes these checks, in this order, before its handler runs: the path exists (404), with this
 * method (405), the caller is known (401) and allowed (403), not too often (429), no unknown query parameter and no
 * body that nobody would read (400).
 *
 * A known caller is limited by identity, from any address; a refused one by address. So nobody can use up someone
 * else's share, not even from behind the same proxy. [limit_rate(), limit_refused()]
 *
 * An unknown caller learns nothing else. Comparing a token takes the same time however much of it is right.
 */
#include <assert.h>
#include <string.h>

#include "base/metrics.h"
#include "base/utf8.h"
#include "domain/sandbox.h"
#include "http/api/api.h"
#include "http/spec/apispec.h"
#include "http/routes/console_api.h"
#include "http/api/rights.h"
#include "http/api/auth.h"
#include "http/api/ratelimit.h"
#include "http/api/urlform.h"
#include "kernel/records.h"

enum {
	SHOWN_PATH_MAX = 80,
	ADMIN_CALLERS = 1000,
	INBOX_CALLERS = 2000,
	SESSION_CALLERS = 3000,
	REFUSED_CALLERS = 4000
};

static handler_fn *const handlers[] = {
#define ROUTE(name, operation, method, path, scope, params, replies, summary) handle_##name,
#include "http/api/routes.def"
#undef ROUTE
};

static const char preflight_headers[] =
        "Access-Control-Allow-Methods: GET, POST, PUT, PATCH, DELETE\r\n"
        "Access-Control-Allow-Headers: Authorization, Content-Type, X-Track-ID, X-Instruqt-Sandbox-ID, "
        "X-Instruqt-Track-ID, X-Sandbox-Name-Prefix, Idempotency-Key, Prefer, Last-Event-ID\r\n"
        "Access-Control-Max-Age: 3600\r\n";

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

/* The first route from this number on that has this path; api_route_count: none. */
static size_t find_match(const struct api *a, struct str path, size_t from)
{
	struct str segments[API_SEGMENTS_MAX];
	size_t     count;

	if (!api_split_path(path, segments, &count))
		return api_route_count;
	while (from < api_route_count && !is_path_match(&a->matchers[from], segments, count))
		from++;
	return from;
}

static bool is_served(const struct api *a, struct str path)
{
	return find_match(a, path, 0) < api_route_count;
}

/* The path as a message can show it. */
static struct str shown_path(struct request *r)
{
	struct str path = r->call->req.path;
	char      *shown;

	if (path.n > SHOWN_PATH_MAX)
		path.n = SHOWN_PATH_MAX;
	shown = arena_copy(&r->call->arena, path.p, path.n);
	for (size_t i = 0; i < path.n; i++)
		if (shown[i] < ' ' || shown[i] > '~')
			shown[i] = '?';
	return str_of(shown, path.n);
}

/* What was probably meant: without the slash at the end, or with the base path in front. Empty: neither exists. */
static struct str guess_path(struct request *r, struct str path)
{
	struct str guess;

	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	if (is_served(r->api, path))
		return path;
	guess = str_format(&r->call->arena, "%.*s%.*s", STR_ARG(r->api->options.base_path), STR_ARG(path));
	return is_served(r->api, guess) ? guess : STR("");
}

static enum rc fail_path(struct request *r, struct err *e)
{
	struct arena *a = &r->call->arena;
	struct str    base = r->api->options.base_path;
	struct str    shown = shown_path(r);
	struct str    guess = str_eq(shown, r->call->req.path) ? guess_path(r, shown) : STR("");
	struct str    hint = guess.n ? str_format(a, "; did you mean %.*s?", STR_ARG(guess)) : STR("");
	struct str    end = str_format(a, "; all paths: %.*s/openapi.json", STR_ARG(base));

	if (hint.n + end.n + SHOWN_PATH_MAX + sizeof("there is nothing at ''") > sizeof(e->msg))
		hint = STR(""); /* the end is worth more */
	return err_set(e, RC_NOT_FOUND, "there is nothing at '%.*s'%.*s%.*s", STR_ARG(shown), STR_ARG(hint),
	               STR_ARG(end));
}

/* Finds the route. RC_NOT_FOUND, RC_NO_METHOD (with the Allow header added). */
static enum rc find_route(struct request *r, struct err *e)
{
	const struct http_request *req = &r->call->req;
	struct str                 segments[API_SEGMENTS_MAX];
	struct str                 method = req->is_head ? STR("GET") : req->method;
	struct buf                *headers = &r->call->headers;
	struct str                 allowed;
	size_t                     count;

	if (!api_split_path(req->path, segments, &count))
		return fail_path(r, e);
	if (str_starts_with(req->path, STR("/api/auth/")) && !segments[count - 1].n)
		count--; /* a slash too many, which the original ignores */
	for (size_t i = 0; i < api_route_count; i++) {
		if (!is_path_match(&r->api->matchers[i], segments, count))
			continue;
		if (str_eq(method, str_from(api_routes[i].method))) {
			buf_reset(headers);
			r->route = &api_routes[i];
			return take_params(r, &r->api->matchers[i], segments, e);
		}
		if (!str_has(buf_str(headers), str_from(api_routes[i].method)))
			buf_addf(headers, "%s%s", headers->n ? ", " : "Allow: ", api_routes[i].method);
	}
	if (!headers->n)
		return fail_path(r, e);
	allowed = str_of(headers->p + strlen("Allow: "), headers->n - strlen("Allow: "));
	rc_ignore(err_set(e, RC_NO_METHOD, "%.*s takes %.*s, not %.*s", STR_ARG(shown_path(r)), STR_ARG(allowed),
	                  STR_ARG(req->method))); /* noted in e */
	buf_add_str(headers, STR("\r\n"));
	return RC_NO_METHOD;
}

/* Who sends the request. */
struct sender {
	uint64_t   number; /* different for each token */
	struct str email;  /* of a person's session; empty: one of our tokens */
};

/* A token that is not one of ours may be a person's session: admins may do what admin tokens may. */
static enum rc authenticate_person(const struct api *a, struct str token, enum scope scope, struct arena *arena,
                                   struct sender *ret, struct err *e)
{
	struct caller c;
	struct err    why = { 0 };

	if (scope != SCOPE_ADMIN || !auth_caller_of_token(a->options.auth, token, arena, &c, &why))
		return err_set_code(e, RC_UNKNOWN, why.code ? why.code : "TOKEN_INVALID",
		                    "the token is not known here%s", why.code ? ": it has expired" : "");
	if (!(c.roles & ROLE_ADMIN))
		return err_set(e, RC_DENIED, "this needs the role Admin, or an admin token");
	*ret = (struct sender){ SESSION_CALLERS, c.email };
	return RC_OK;
}

static bool is_for_tenant(const struct request *r)
{
	return str_starts_with(r->call->req.path, STR("/v1.0/tenants/"));
}

/* What *ret points to lives in the arena. */
static enum rc authenticate(const struct api *a, const struct http_request *req, enum scope scope, struct arena *arena,
                            struct sender *ret, struct err *e)
{
	const struct api_tokens *known = &a->tokens;
	struct str               token;
	int                      track, admin, inbox;
	enum rc                  rc = auth_read_bearer(req, RC_UNKNOWN, &token, e);

	if (rc)
		return rc;
	track = token_find(&known->track, token);
	admin = token_find(&known->admin, token);
	inbox = token_find(&known->inbox, token);
	if (track < 0 && admin < 0 && inbox < 0)
		return authenticate_person(a, token, scope, arena, ret, e);
	if (scope == SCOPE_ADMIN && admin < 0)
		return err_set(e, RC_DENIED, "this needs an admin token");
	if (scope == SCOPE_TRACK && track < 0)
		return err_set(e, RC_DENIED, "this needs a track's token, not an admin's");
	if (scope == SCOPE_INBOX && inbox < 0 && admin < 0)
		return err_set(e, RC_DENIED, "this needs a token of LEASEHOLD_INBOX_TOKENS, or an admin's");
	*ret = (struct sender){ 0 };
	if (scope == SCOPE_TRACK)
		ret->number = (uint64_t)track + 1;
	else
		ret->number = admin >= 0 ? (uint64_t)admin + ADMIN_CALLERS : (uint64_t)inbox + INBOX_CALLERS;
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
		return err_set_code(e, RC_INVALID, "INVALID_TRACK_ID",
		                    "X-Track-ID (or X-Instruqt-Sandbox-ID) must be 1 to %d visible ASCII characters "
		                    "(and sent once)",
		                    SANDBOX_OWNER_MAX);
	r->owner = owner;
	return RC_OK;
}

/* "more than N WHAT; try again in M s", when it is one too many of this caller. */
static enum rc take_rate(struct request *r, struct str who, uint64_t caller, const char *what, int64_t *ret_remaining,
                         struct err *e)
{
	uint64_t key = str_hash(who, r->api->hash_seed ^ caller);

	if (ratelimit_take(r->api->limits, key, mono_now(), ret_remaining, &r->retry_after))
		return RC_OK;
	metrics_add(r->api->options.metrics, METRIC_RATE_LIMITED, "", 1);
	err_clear(e);
	return err_set(e, RC_LIMITED, "more than %lld %s; try again in %lld s", (long long)r->api->options.rate_per_sec,
	               what, (long long)r->retry_after);
}

static enum rc limit_rate(struct request *r, struct str who, uint64_t caller, struct err *e)
{
	return take_rate(r, who, caller, "requests a second", &r->rate_remaining, e);
}

/* A refused caller: *e says why, unless there were too many refusals from this address. */
static enum rc limit_refused(struct request *r, enum rc rc, struct err *e)
{
	int64_t ignored;

	return take_rate(r, http_client_key(r->call), REFUSED_CALLERS, "refused requests a second from this address",
	                 &ignored, e)
	               ? RC_LIMITED
	               : rc;
}

/* An unknown query parameter is a mistake, which is reported rather than ignored. */
static enum rc check_query_names(struct request *r, struct err *e)
{
	struct str rest = r->call->req.query;

	while (rest.n) {
		struct str               pair = str_cut(&rest, '&'), name = str_cut(&pair, '=');
		const struct spec_param *p;
		size_t                   at = 0;
		bool                     is_known = false;

		while (!is_known && spec_next_param(r->route, &at, &p))
			is_known = p && strcmp(p->where, "query") == 0 && str_eq(name, str_from(p->name));
		if (!is_known)
			return err_set(e, RC_INVALID, "there is no query parameter '%.*s' here", STR_ARG(name));
	}
	return RC_OK;
}

/* Old clients send {} with every call. */
static bool is_empty_body(struct str body)
{
	char   seen[2] = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < body.n; i++) {
		if (strchr(" \t\r\n", body.p[i]) && body.p[i])
			continue;
		if (n == sizeof(seen))
			return false;
		seen[n++] = body.p[i];
	}
	return n == 0 || (seen[0] == '{' && seen[1] == '}');
}

/* Under /api unknown query parameters and unread bodies are ignored, as clients expect. Sign-in has limits of its own,
 * see auth_api.c. */
static enum rc admit_session(struct request *r, struct err *e)
{
	struct str who;
	bool       is_tried;
	enum rc    rc = RC_OK;

	if (!atomic_load(&r->api->is_open))
		return err_set(e, RC_UNAVAILABLE, "the store has not answered since the start");
	if (auth_find_sender(r, &who, &is_tried))
		rc = limit_rate(r, who, SESSION_CALLERS, e);
	else if (is_tried || r->route->roles)
		rc = limit_refused(r, RC_OK, e);
	return rc || !r->route->roles ? rc : rights_enter(r, e);
}

static enum rc admit(struct request *r, struct err *e)
{
	struct err    owner_problem = { 0 };
	struct sender sender = { 0 };
	enum rc       rc;

	if (r->route->scope == SCOPE_SESSION)
		return admit_session(r, e);
	if (r->route->scope != SCOPE_PUBLIC && r->route->scope != SCOPE_PROBE) {
		if ((rc = authenticate(r->api, &r->call->req, r->route->scope, &r->call->arena, &sender, e))) {
			if (rc == RC_UNKNOWN && !is_for_tenant(r))
				e->code = NULL; /* only tenants' routes say what is wrong with a token */
			return limit_refused(r, rc, e);
		}
		r->actor = sender.email.n ? utf8_line(&r->call->arena, sender.email, ACTOR_MAX) : STR("admin");
		if (!atomic_load(&r->api->is_open))
			return err_set(e, RC_UNAVAILABLE, "the store has not answered since the start");
		rc = r->route->scope == SCOPE_TRACK ? read_owner(r, &owner_problem) : RC_OK;
		if (limit_rate(r, sender.email.n ? sender.email : r->owner, sender.number, e))
			return RC_LIMITED;
		if (rc) {
			*e = owner_problem;
			return rc;
		}
	}
	if ((rc = check_query_names(r, e)))
		return rc;
	if (is_empty_body(r->call->req.body) || spec_find_body(r->route))
		return RC_OK; /* otherwise the sender of a body would expect it to matter */
	return err_set(e, RC_INVALID,
	               "this call takes no body; send none, or {}; parameters go into the query or into headers");
}

/* With a code in otherwise, only probes are served. Returns the route's name: the request may be gone afterwards. */
static const char *serve(struct request *r, enum rc otherwise, const char *why)
{
	struct err  e = { 0 };
	enum rc     rc = find_route(r, &e);
	const char *what = r->route ? r->route->name : "unknown";
	bool        is_options = rc && str_eq(r->call->req.method, STR("OPTIONS"));

	if (otherwise && (rc || r->route->scope != SCOPE_PROBE)) {
		buf_reset(&r->call->headers);
		request_refuse(r, otherwise, "%s", why);
	} else if (is_options && rc != RC_NOT_FOUND) { /* a browser asks before it sends: CORS */
		if (http_header(&r->call->req, STR("Access-Control-Request-Method"), NULL).p)
			buf_add(&r->call->headers, preflight_headers, sizeof(preflight_headers) - 1);
		answer_send(r, 204, NULL, STR(""), "");
	} else if (rc && (is_options || !r->route) && api_is_under(r->api, r->call->req.path)) {
		/* What the gateway in front of the original says, for a path as for a method: its clients know it. */
		buf_reset(&r->call->headers);
		answer_send(r, 403, "application/json", STR("{\"message\":\"Missing Authentication Token\"}"),
		            "no such path or method");
	} else if (rc == RC_NOT_FOUND && !r->route && !is_options && console_answer(r)) {
		return "console";
	} else if (rc || (!otherwise && (rc = admit(r, &e)))) {
		request_fail(r, &e);
	} else {
		handlers[r->route - api_routes](r);
	}
	return what;
}

/* Callers of tenants' routes may send a request id of their own: it is used if it has this form. */
static void take_request_id(struct request *r)
{
	struct str id = http_header(&r->call->req, STR("X-Request-ID"), NULL);

	if (is_for_tenant(r) && id.n && id.n <= REQUEST_ID_MAX && str_is_of(id, "a-zA-Z0-9._:/=+-"))
		snprintf(r->id, sizeof(r->id), "%.*s", STR_ARG(id));
}

/* Measured, like all work on the loop. */
static void serve_call(struct http_call *call, struct api *a, enum rc otherwise, const char *why)
{
	struct loop_span span = loop_span_begin(&a->watch, call->started_ns);
	struct request  *r = arena_alloc(&call->arena, sizeof(*r));
	const char      *what;

	r->api = a;
	r->call = call;
	r->rate_remaining = -1;
	id_uuid(r->id);
	take_request_id(r);
	(void)trace_read(request_header_value(r, STR("traceparent")), request_header_value(r, STR("X-Amzn-Trace-Id")),
	                 &r->trace); /* one that makes no sense is none */
	call->user = r;
	what = serve(r, otherwise, why);
	(void)loop_span_end(&a->watch, &span, what);
}

void api_on_request(struct http_call *call, void *arg)
{
	serve_call(call, arg, RC_OK, "");
}

void api_on_probe(struct http_call *call, void *arg)
{
	serve_call(call, arg, RC_NOT_FOUND, "only /metrics, /healthz and /readyz are served on this port");
}

void api_on_spare(struct http_call *call, void *arg)
{
	serve_call(call, arg, RC_UNAVAILABLE, "all connections are taken; only probes are answered; try again later");
}

static bool is_known_to(const struct api *a, const struct http_request *head, enum scope scope)
{
	CLEANUP(arena_fini) struct arena arena = { 0 };
	struct sender                    sender;
	enum rc                          rc = authenticate(a, head, scope, &arena, &sender, NULL);

	return !rc;
}

bool request_is_still_allowed(const struct request *r)
{
	return is_known_to(r->api, &r->call->req, r->route->scope);
}

/* Bodies are small; only known callers may send as much as the route takes. */
size_t api_body_limit(const struct http_request *head, void *arg)
{
	const struct api *a = arg;

	for (size_t i = find_match(a, head->path, 0); i < api_route_count; i = find_match(a, head->path, i + 1)) {
		const struct api_route *route = &api_routes[i];

		if (str_eq(head->method, str_from(route->method)))
			return route->scope == SCOPE_SESSION || is_known_to(a, head, route->scope)
			               ? spec_body_max(route)
			               : SPEC_BODY_MAX;
	}
	return SPEC_BODY_MAX;
}
