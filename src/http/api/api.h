/* api.h - from an HTTP call to an answer: routing, who may do it, the common headers, one log line. Loop thread
 * only. */
#pragma once

#include <stdatomic.h>
#include <uv.h>

#include "base/err.h"
#include "base/id.h"
#include "base/inbox.h"
#include "base/json.h"
#include "base/str.h"
#include "base/trace.h"
#include "domain/ports/caller.h"
#include "http/api/blocking.h"
#include "http/api/claim_stats.h"
#include "http/api/loop_watch.h"
#include "http/server/server.h"
#include "store/store.h"

struct problems;

enum { API_TOKENS_MAX = 8, API_PARAMS_MAX = 3, API_JOB_WAIT_MS = 20000, REQUEST_ID_MAX = 64 };

enum scope {
	SCOPE_PUBLIC, /* anybody */
	SCOPE_PROBE,  /* anybody, also on the metrics port; never limited */
	SCOPE_TRACK,
	SCOPE_ADMIN,
	SCOPE_INBOX,   /* those who send events from outside; operators too */
	SCOPE_SESSION, /* people and their programs, under /api; by their roles, see rights.h */
};

struct api_route {
	const char *name;
	const char *operation; /* its id for those who make clients of the description */
	const char *method;
	const char *path; /* as in routes.def, "{base}" and parameters in braces */
	enum scope  scope;
	unsigned    roles; /* under /api: who has none of these is refused; 0: anybody */
	const char *params, *replies, *summary;
};

extern const struct api_route api_routes[];
extern const size_t           api_route_count;

/* Is it this folder, which may be empty, or something in it? */
bool path_is_below(struct str path, struct str folder);

/* Is this a path of /api? Its answers have an envelope and headers of their own. */
bool api_is_under(const struct api *a, struct str path);

struct token_list {
	struct str items[API_TOKENS_MAX];
	size_t     count;
};

/* metrics: none: anybody may read them. */
struct api_tokens {
	struct token_list track, admin, inbox, metrics;
};

struct api_options {
	uv_loop_t      *loop;
	struct store   *store;
	struct jobs    *jobs; /* may be set later */
	struct kernel  *kernel;
	struct metrics *metrics;
	struct str      base_path;
	struct str      openapi;      /* the description of the API: openapi_text() */
	struct str      cors_origins; /* comma-separated, or "*" */
	bool            sends_request_id;
	int64_t         lab_hours, wait_max_sec, waiting_max;
	int64_t         low_water; /* shown in the overview; 0: there is none */
	int64_t         rate_per_sec, rate_burst;
	int64_t  gauges_fresh_ms; /* count the pool for /metrics at most this often: on DynamoDB it reads everything */
	bool     is_closed;       /* refuse everything but probes until is_open */
	unsigned streams_max;     /* live streams and exports of events at once */
	int64_t  stream_lag_ms;   /* live events are this late: for stores where a later id can be visible earlier */
	const char *const    *inboxes; /* whose events are taken in */
	size_t                inbox_count;
	bool                  webhooks_may_be_private; /* their URLs may name this machine or a private network */
	struct claims_switch *lending;                 /* are sandboxes lent? */
	bool (*is_csp_open)(void *arg);                /* is the circuit open? for the metric */
	void                 *csp_arg;
	struct str            notice; /* what is not real here, for every page and 'status'; empty: nothing to say */
	struct world         *world;  /* the simulated cloud, for development; NULL: its routes are not there */
	struct policy_holder *policy; /* the policy in force; told of changes that are made here */

	struct instance_world *instances; /* tenants' instances; NULL: there are none */

	/* For /api. */
	struct auth                  *auth;      /* sign-in, see session.h; NULL: there is none */
	struct identity              *identity;  /* who the people are */
	struct cloud                 *cloud;     /* where accounts come from */
	const struct reconcile_world *reconcile; /* what the doctor compares; NULL: there is no pool of accounts */
	struct cloud_probe           *probe;     /* may we do what we need to do there? NULL: nobody needs to ask */
	struct str freeze_note;    /* what a freeze does not do here, for whoever orders one; empty: nothing to say */
	struct str admin_accounts; /* comma-separated: those that the organisation is run from are never lent */
	const struct approval_policy *(*approval)(void *arg); /* the operator's rules; NULL: the templates decide */
	void *approval_arg;
};

enum {
	API_ROUTES = 0
#define ROUTE(name, operation, method, path, scope, params, replies, summary) +1
#include "http/api/routes.def"
#undef ROUTE
	,
	API_SEGMENTS_MAX = 8,
	API_SUBMIT_MAX = 128,
	API_STATUS_SLOTS = 20,
};

/* A route as the router sees it. */
struct matcher {
	struct str            path; /* with the base path, parameters still in braces */
	struct str            segments[API_SEGMENTS_MAX];
	size_t                segment_count;
	struct metric_series *latency[API_STATUS_SLOTS];
};

/* The works of one kind: those with a thread, and those that wait for one, the first first. */
struct block_line {
	struct blocking *first, *last;
	unsigned         running, waiting;
};

struct api {
	struct api_options options;
	struct line       *line;
	struct streams    *streams;
	struct ratelimit  *limits;
	struct str         rate_head; /* X-RateLimit-Limit, and the name of what remains of it */
	struct arena       arena;     /* what lives as long as the api */
	struct arena       token_arena;
	struct api_tokens  tokens;
	struct matcher     matchers[API_ROUTES];
	struct matcher     unknown; /* for the metrics of unknown paths */
	struct inbox       completions;
	struct inbox_item *completing; /* taken from there, and not yet run */
	uv_poll_t          wake;       /* of wake_fd */
	int                wake_fd;
	struct txn_group   group; /* all that is submitted */
	uv_prepare_t       turn_end;
	struct txn        *submitted[API_SUBMIT_MAX]; /* in this turn; handed to the store at its end */
	size_t             submitted_count;
	uv_timer_t         log_timer; /* runs while lines wait to be written */
	struct buf         scratch;   /* the reply in the making */
	struct loop_watch  watch;
	struct claim_stats claims;   /* the claims of the last hours */
	struct buf         overview; /* the answer that is given again until overview_until_ms, without its end */
	int64_t            overview_until_ms;
	uint64_t           hash_seed;
	int64_t            next_gauges_ms;
	atomic_bool        is_open;    /* the store is ready to be used; set by any thread */
	bool               is_leaving; /* the process is about to end: probes say so */
	unsigned           in_flight;  /* requests with something at the store or with a thread */
	struct block_line  blocking[BLOCKING_KIND_COUNT];
	void (*on_quiet)(void *arg);
	void *quiet_arg;
};

/* Something to be done on the loop, handed over from another thread. */
struct completion {
	struct inbox_item item;
	void (*run)(struct completion *c);
	const char *what; /* whose time it is that run() uses, for the metrics; NULL: "completion" */
};

/* One request on its way. Lives in the call's arena. */
struct request {
	struct api             *api;
	struct http_call       *call;
	const struct api_route *route;
	struct str              params[API_PARAMS_MAX]; /* of the path, decoded */
	char                    id[REQUEST_ID_MAX + 1]; /* ours; of instances the caller's, when it has sent one */
	struct trace            trace;                  /* what the caller belongs to, if he says so */
	struct str              actor; /* admin routes: who it is in the log of events; "admin", or a person's email */
	struct str              owner; /* track routes */
	struct caller           by;    /* under /api, but for sign-in: who asks, and he may */
	struct err              e;     /* what is wrong with it, see request_is_good() */
	struct str              sandbox_id; /* for the log, when one is known */
	int64_t                 rate_remaining;

	bool       is_page;     /* of the console: with the headers of one */
	int64_t    retry_after; /* of the error reply; 0: the error's own */
	struct str details;     /* of the error reply of instances: JSON; empty: none */

	/* An answer that comes from another thread: complete() runs on the loop. */
	struct txn        txn;
	struct completion completion;
	void (*complete)(struct request *r);
	void *arg; /* the handler's own */

	/* Of view_submit(). */
	void (*put)(struct json_out *o, struct request *r, const void *thing);
	int         status;
	const void *shown; /* what is put; NULL: arg */
	const char *done;  /* the answer's "status"; NULL: it has none */

	/* Of request_submit_page(); a page that is not JSON is written here while is_writing_page, with these two. */
	txn_fn     *read;
	void       *read_arg;
	struct buf  page;
	int         page_status;
	const char *page_type;
	bool        is_writing_page;
};

typedef void handler_fn(struct request *r);

#define ROUTE(name, operation, method, path, scope, params, replies, summary) handler_fn handle_##name;
#include "http/api/routes.def"
#undef ROUTE

struct api *api_new(const struct api_options *o);

/* Close its handles, run the loop until they are closed, then free it. */
void api_close_handles(struct api *a);

/* Calls on_quiet when no request has a transaction at the store, or work with a thread. */
void api_when_quiet(struct api *a, void (*on_quiet)(void *arg), void *arg);
void api_free(struct api *a);

/* The tokens from now on; texts are copied. */
void api_set_tokens(struct api *a, const struct api_tokens *tokens);

/* The token's number in the list, or -1. Looks at all of them, whatever it finds. */
int token_find(const struct token_list *known, struct str token);

/* For struct http_options; arg is the api. */
http_request_fn    api_on_request;
http_request_fn    api_on_probe; /* of the metrics port: SCOPE_PROBE routes only */
http_request_fn    api_on_spare; /* of the connection beyond the limit: the same, others get 503 */
http_error_fn      api_on_error;
http_body_limit_fn api_body_limit;

/* --- for handlers --- */

/* Send a body of any type. It must live until this returns. */
void request_reply_as(struct request *r, int status, const char *content_type, struct str body);

/* The same with a body that is taken over; for one that can be large. */
void request_reply_taken(struct request *r, int status, const char *content_type, struct buf *body);

/* Send the error that e holds; or this one. */
void request_fail(struct request *r, const struct err *e);
void request_refuse(struct request *r, enum rc rc, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Under /api: refuse with every problem, each with its field where it has one. There is at least one. */
void request_fail_all(struct request *r, int status, const struct problems *problems);

/* Instead of a reply, when the client has left before there was one: nobody is told anything, and it is nobody's
 * failure. In the log and the figures it has status 499, which is never sent. */
void request_drop(struct request *r);

/* Add a reply header. */
void request_header(struct request *r, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Run a transaction; complete() is called on the loop when it is over, with r->txn.rc and r->txn.e. */
void request_submit(struct request *r, txn_fn *run, void *arg, bool is_read_only, void (*complete)(struct request *r));

/* The same, but what the transaction reads and allocates lives in this arena. */
void request_submit_in(struct request *r, struct arena *a, txn_fn *run, void *arg, bool is_read_only,
                       void (*complete)(struct request *r));

/* Would it be let in again, as it was sent? For replies that last longer than a token is good. */
bool request_is_still_allowed(const struct request *r);

/* Run a read-only transaction whose answer may be long: complete() is called at its end, on its thread, and what it
 * does between reply_begin() and reply_send() is only written down there; the loop sends it. There it touches
 * nothing but the request, its arg and what never changes. A transaction that fails is completed on the loop, as
 * always. */
void request_submit_page(struct request *r, txn_fn *run, void *arg, void (*complete)(struct request *r));

/* Instead of a reply: the common headers, one metric, one log line, then http_stream_send() and so on. */
void request_stream(struct request *r, const char *content_type);

/* From any thread: have c->run() called on the loop. */
void api_complete_later(struct api *a, struct completion *c);

/* A header's trimmed value; empty when it is not there. */
struct str request_header_value(const struct request *r, struct str name);

/* A query parameter, decoded; empty when it is not there. RC_INVALID: malformed or given twice. */
MUST_CHECK enum rc request_query(struct request *r, const char *name, struct str *ret, struct err *e);

/* An integer query parameter with limits and a fallback. */
MUST_CHECK enum rc request_query_int(struct request *r, const char *name, int64_t min, int64_t max, int64_t fallback,
                                     int64_t *ret, struct err *e);

/* The body as JSON, of what the loop has the time to read. RC_INVALID with the reason. */
MUST_CHECK enum rc request_json(const struct request *r, json_t **ret, struct err *e);

/* Prefer: the number of seconds to wait (-1: not asked for), and whether the client would rather not. */
void request_prefer(const struct request *r, int64_t *ret_wait_sec, bool *ret_is_async);

/* Begin a JSON reply in the api's own buffer, fill it, send it: all within one call from the loop. */
struct json_out reply_begin(struct request *r);
void            reply_send(struct request *r, int status);

/* The whole of a small one: REPLY(r, 200, member_word("status", "running"), ...). */
#define REPLY(r, status, ...) reply_members((r), (status), JSON_MEMBERS(__VA_ARGS__))
void reply_members(struct request *r, int status, const struct json_member *members, size_t count);

/* Full path of a route, with the base path put in. */
struct str route_path(const struct api_route *route, struct str base, struct arena *a);

/* "/v1/x" -> "v1", "x". False when there are too many parts. */
bool api_split_path(struct str path, struct str *segments, size_t *ret_count);

/* A request has something at the store or with a thread, and then no longer: the api is quiet when none has. */
void api_hold(struct api *a);
void api_release(struct api *a);

/* A line of the log was left for later: it is written in a moment. */
void api_log_soon(struct api *a);

/* Send an answer: the common headers, one metric, one log line. error is for the log; "" when all is well. */
void answer_send(struct request *r, int status, const char *content_type, struct str body, const char *error);
