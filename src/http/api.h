/* api.h - from an HTTP call to an answer: routing, who may do it, the common headers, one log line. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/id.h"
#include "base/inbox.h"
#include "base/json.h"
#include "base/str.h"
#include "http/server.h"
#include "store/store.h"

struct api;
struct approval_policy;
struct auth;
struct cloud;
struct costs;
struct identity;
struct jobs;
struct kernel;
struct metrics;
struct policy_holder;
struct ratelimit;
struct reconcile_world;
struct world;

enum { API_TOKENS_MAX = 8, API_PARAMS_MAX = 2, API_JOB_WAIT_MS = 20000 };

enum scope {
	SCOPE_PUBLIC, /* anybody */
	SCOPE_PROBE,  /* anybody, also on the metrics port; never limited */
	SCOPE_TRACK,
	SCOPE_ADMIN,
	SCOPE_INBOX,   /* those who send events from outside; operators too */
	SCOPE_SESSION, /* people and their programs, under /api: the handler asks who it is, see rights.h */
};

struct api_route {
	const char *name;
	const char *operation; /* its id for those who make clients of the description */
	const char *method;
	const char *path; /* as in routes.def, "{base}" and parameters in braces */
	enum scope  scope;
	const char *params, *replies, *summary;
};

extern const struct api_route api_routes[];
extern const size_t           api_route_count;

/* Is this a path of /api? Its answers have an envelope and headers of their own. */
bool api_is_under(const struct api *a, struct str path);

struct api_tokens {
	struct str track[API_TOKENS_MAX], admin[API_TOKENS_MAX], inbox[API_TOKENS_MAX];
	size_t     track_count, admin_count, inbox_count;
};

struct api_options {
	uv_loop_t      *loop;
	struct store   *store;
	struct jobs    *jobs; /* may be set later with api_set_jobs() */
	struct kernel  *kernel;
	struct metrics *metrics;
	struct str      base_path;
	struct str      cors_origins; /* comma-separated, or "*" */
	bool            sends_request_id;
	int64_t         lab_hours;
	int64_t         wait_max_sec;
	int64_t         waiting_max;
	int64_t         low_water; /* shown in the overview; 0: there is none */
	int64_t         rate_per_sec, rate_burst;
	int64_t gauges_fresh_ms; /* count the pool for /metrics at most this often: on DynamoDB it reads everything */
	bool    is_closed;       /* refuse everything but probes until api_open_doors() */
	int64_t stream_lag_ms;   /* live events are this late: for stores where a later id can be visible earlier */
	const char *const *inboxes; /* whose events are taken in */
	size_t             inbox_count;
	bool               webhooks_may_be_private; /* their URLs may name this machine or a private network */
	bool (*is_csp_open)(void *arg);             /* is the circuit open? for the metric */
	void                 *csp_arg;
	struct world         *world;  /* the simulated cloud, for development; NULL: its routes are not there */
	struct policy_holder *policy; /* the policy in force; told of changes that are made here */
	struct costs         *costs;  /* what accounts spend, for reports; NULL: there are none */

	/* For /api. */
	struct auth                  *auth;      /* sign-in, see session.h; NULL: there is none */
	struct identity              *identity;  /* who the people are */
	struct cloud                 *cloud;     /* where accounts come from */
	const struct reconcile_world *reconcile; /* what the doctor compares; NULL: there is no pool of accounts */
	struct str admin_accounts; /* comma-separated: those that the organisation is run from are never lent */
	const struct approval_policy *(*approval)(void *arg); /* the operator's rules; NULL: the templates decide */
	void *approval_arg;
};

/* Something to be done on the loop, handed over from another thread. */
struct completion {
	struct inbox_item item;
	void (*run)(struct completion *c);
};

/* One request on its way. Lives in the call's arena. */
struct request {
	struct api             *api;
	struct http_call       *call;
	const struct api_route *route;
	struct str              params[API_PARAMS_MAX]; /* of the path, decoded */
	char                    id[ID_UUID_SIZE];
	struct str              actor; /* admin routes: who it is in the log of events; "admin", or a person's email */
	struct str              owner; /* track routes */
	struct str              sandbox_id; /* for the log, when one is known */
	int64_t                 rate_remaining;

	bool    is_page;       /* of the console: with the headers of one */
	int64_t good_until_ms; /* monotonic: the end of the sender's session; 0: has none */
	int64_t retry_after;   /* of the error reply; 0: the error's own */

	/* An answer that comes from another thread: complete() runs on the loop. */
	struct txn        txn;
	struct completion completion;
	void (*complete)(struct request *r);
	void *arg; /* the handler's own */
};

typedef void handler_fn(struct request *r);

#define ROUTE(name, operation, method, path, scope, params, replies, summary) handler_fn handle_##name;
#include "http/routes.def"
#undef ROUTE

struct api *api_new(const struct api_options *o);

/* Close its handles, run the loop until they are closed, then free it. */
void api_close_handles(struct api *a);

/* Calls on_quiet when no transaction of a request is with the store. */
void api_when_quiet(struct api *a, void (*on_quiet)(void *arg), void *arg);
void api_free(struct api *a);
void api_set_jobs(struct api *a, struct jobs *jobs);

/* The store is ready to be used: requests may come in. Any thread. */
void api_open_doors(struct api *a);
bool api_is_open(const struct api *a);

/* The tokens from now on; texts are copied. */
void api_set_tokens(struct api *a, const struct api_tokens *tokens);

/* Somebody may have freed a sandbox: serve the waiting line. Any thread. */
void api_poke_line(struct api *a);

/* There may be new events: tell the live streams. Any thread, until api_close_handles(). */
void api_poke_streams(struct api *a);

/* Nobody waits any longer: the server is stopping. Answers all who do, ends the live streams. */
void api_stop_waiting(struct api *a);

/* For struct http_options; arg is the api. */
http_request_fn    api_on_request;
http_request_fn    api_on_probe; /* of the metrics port: SCOPE_PROBE routes only */
http_error_fn      api_on_error;
http_body_limit_fn api_body_limit;

/* --- for handlers --- */

/* Send a body of any type. It must live until this returns. */
void request_reply_as(struct request *r, int status, const char *content_type, struct str body);

/* Send the error that e holds. */
void request_fail(struct request *r, const struct err *e);

/* Add a reply header. */
void request_header(struct request *r, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Run a transaction; complete() is called on the loop when it is over, with r->txn.rc and r->txn.e. */
void request_submit(struct request *r, txn_fn *run, void *arg, bool is_read_only, void (*complete)(struct request *r));

/* The same, but what the transaction reads and allocates lives in this arena. */
void request_submit_in(struct request *r, struct arena *a, txn_fn *run, void *arg, bool is_read_only,
                       void (*complete)(struct request *r));

/* Instead of a reply: the common headers, one metric, one log line, then http_stream_send() and so on. Not for HEAD. */
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

/* Prefer: the number of seconds to wait (-1: not asked for), and whether the client would rather not. */
void request_prefer(const struct request *r, int64_t *ret_wait_sec, bool *ret_is_async);

/* Begin a JSON reply in the api's own buffer, fill it, send it: all within one call from the loop. */
struct json_out reply_begin(struct request *r);
void            reply_send(struct request *r, int status);

/* --- shared by the files of this layer --- */

const struct api_options *api_options(const struct api *a);
struct jobs              *api_jobs(const struct api *a);
struct line              *api_line(const struct api *a);
struct streams           *api_streams(const struct api *a);

/* A claim was answered: for the overview. */
void api_note_claim(struct api *a, bool is_granted, double seconds);

/* Is it time to count the pool again for /metrics? Says yes once in gauges_fresh_ms. */
bool api_wants_gauges(struct api *a);

/* Full path of a route, with the base path put in. */
struct str route_path(const struct api_route *route, struct str base, struct arena *a);
