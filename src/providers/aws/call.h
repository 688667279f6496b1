/* call.h - calls to AWS as rows: who calls (a hop of the chain of roles), what (an operation and what its errors mean),
 * at which pace. Blocks. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"

struct aws_caller;
struct aws_callers;

/* --- what is called --- */

enum aws_protocol { AWS_JSON_1_0, AWS_JSON_1_1, AWS_QUERY, AWS_REST_JSON };

/* One row per service, in the order of enum aws_service_id. */
struct aws_service {
	const char       *id;                /* the ending of AWS_ENDPOINT_URL_ */
	const char       *host;              /* "organizations" in organizations.us-east-1.amazonaws.com */
	const char       *signed_as;         /* its name in the signature */
	const char       *prefix_or_version; /* of X-Amz-Target; version of a query; REST: NULL */
	enum aws_protocol protocol;
	const char       *region; /* NULL: the caller's */
};

enum aws_service_id {
	AWS_ORGANIZATIONS,
	AWS_COST_EXPLORER,
	AWS_SSO_ADMIN,
	AWS_IDENTITY_STORE,
	AWS_SECRETS_MANAGER,
	AWS_CODEBUILD,
	AWS_SSM,
	AWS_SQS,
	AWS_EVENTBRIDGE,
	AWS_ECS,
	AWS_COGNITO,
	AWS_LOGS,
	AWS_TAGGING,
	AWS_STS,
	AWS_SNS,
	AWS_LOAD_BALANCING,
	AWS_SCHEDULER,
	AWS_EFS,
	AWS_SES,
	AWS_DYNAMODB,
	AWS_IAM,
	AWS_SERVICE_COUNT
};
extern const struct aws_service aws_services[AWS_SERVICE_COUNT];

/* What a code of the service means. Rows end with one whose code is NULL; the first that fits counts. */
struct aws_error_row {
	const char *code;
	enum rc     rc;
	const char *says; /* words of its message; NULL: whatever it says */
};

/* Calls of one class share a rate, on all nodes together. */
enum aws_pace {
	AWS_PACE_NONE,
	AWS_PACE_ORG_READ,  /* 4/s, burst 8 */
	AWS_PACE_ORG_WRITE, /* 1/s, burst 2 */
	AWS_PACE_IDC_READ,  /* 8/s, burst 8 */
	AWS_PACE_IDC_WRITE, /* 1/s, burst 2 */
	AWS_PACE_COSTS,     /* 1/s, burst 1 */
	AWS_PACE_COUNT
};

/* One row per operation, const data in the file of its service. */
struct aws_op {
	const struct aws_service *service;
	const char               *name; /* "MoveAccount" */
	const char *permission; /* "organizations:MoveAccount", as IAM calls it; the test of the policies reads it */
	bool        writes;
	const char *method,
	        *path; /* REST only: "GET", "/schedules/{Name}"; {...} is filled from path_args in their order */
	const struct aws_error_row *errors; /* NULL: the common ones only */
	enum aws_pace               pace;
	bool                        is_secret; /* neither its request nor its answer may be shown, not even in part */
};

/* --- calling --- */

/* One call, for what aws_do() has no room for. Numbers that are 0 and texts that are NULL or empty get the default. */
struct aws_call {
	const struct aws_op *op;
	struct str           body;       /* a JSON object, or AWS_PAIRS() for AWS_QUERY; empty: {} or nothing */
	const struct str    *path_args;  /* REST: raw texts, escaped here; as many as the path has */
	struct str           query;      /* REST: AWS_PAIRS() */
	const char          *region;     /* of the queue, the bus; NULL: the service's, else the caller's */
	long                 ms;         /* for all attempts with their waits; 0: AWS_CALL_MS */
	long                 attempt_ms; /* for one attempt, such as a long poll; 0: 10 s */
	int                  attempts;   /* most; 0: 5 */
};
enum { AWS_CALL_MS = 30000, AWS_PAGES_MAX = 1000 };

/* RC_OK: *ret is the answer as a JSON object (XML: objects of texts, <member> lists as arrays, what is inside
 * ...Result), yours to json_decref(); an answer without a body is {}. ret may be NULL: the answer does not matter.
 * Failures have the service's code in err.code if a row of errors or the common ones know it, and in the text always:
 *   the row's rc    the service said so, and every attempt before it was answered
 *   RC_TIMEOUT      a write that may have happened: an attempt went unanswered or got 5xx, whatever came afterwards.
 *                   Look first
 *   RC_UNAVAILABLE  a read that was not answered, or no connection: did not happen
 *   RC_LIMITED      throttled to the last attempt, and no row says otherwise, or our own pace leaves no room in time:
 *                   did not happen
 *   RC_DENIED       AccessDenied and the like; a hop of the chain was refused (the text names its ARN)
 *   RC_CORRUPT      an answer that cannot be read
 *   RC_INVALID      ValidationException and the like: never works
 *   RC_INTERNAL     a code that no row knows */
MUST_CHECK enum rc aws_do(struct aws_caller *c, const struct aws_op *op, struct str body, struct arena *a, json_t **ret,
                          struct err *e);
MUST_CHECK enum rc aws_do_within(struct aws_caller *c, const struct aws_op *op, long ms, struct str body,
                                 struct arena *a, json_t **ret, struct err *e);
MUST_CHECK enum rc aws_do_call(struct aws_caller *c, const struct aws_call *call, struct arena *a, json_t **ret,
                               struct err *e);

/* Names and values of a query or a form, escaped. A value whose p is NULL is left out.
 * AWS_PAIRS(a, { "TopicArn", arn }, { "Message", text }). */
struct aws_pair {
	const char *name;
	struct str  value;
};
struct str aws_pairs(struct arena *a, const struct aws_pair *pairs, size_t count);
#define AWS_PAIRS(a, ...)                                        \
	aws_pairs((a), (const struct aws_pair[]){ __VA_ARGS__ }, \
	          sizeof((const struct aws_pair[]){ __VA_ARGS__ }) / sizeof(struct aws_pair))

/* All pages of a list. An empty page with a token is not the end; no token, null or "" is. RC_CORRUPT: more than
 * AWS_PAGES_MAX, or the same token twice. */
struct aws_paging {
	struct aws_call call;        /* for the first page; its times are those of each page */
	const char     *token;       /* what the next page is asked for with, and what answers call it: "NextToken" */
	const char     *asked_token; /* what requests call it; NULL: the same */
	const char     *list;        /* the member of the answer with the items; NULL: each gets whole pages */
	enum rc (*each)(void *arg, const json_t *item, struct err *e); /* copies what it wants to keep */
	void       *arg;
	const bool *is_over; /* set by each: no more pages are needed; NULL: all are */
};
MUST_CHECK enum rc aws_pages(struct aws_caller *c, const struct aws_paging *p, struct err *e);

/* Epoch seconds with a fraction, as JSON services send times, in milliseconds. False: missing or no number. */
bool aws_get_time(const json_t *object, const char *name, int64_t *ret_ms);

/* The value of a tag in a list of objects, in which its name and its value are members with these names; empty: it has
 * none. In the arena. */
struct str aws_get_tag(const json_t *list, const char *name, const char *value, const char *wanted, struct arena *a);

/* --- who calls --- */

/* Borrowed for as long as the callers live. ARNs that are empty: that hop is left out, and its caller is the one before
 * it. */
struct aws_settings {
	const char *(*env)(const char *name); /* credentials and AWS_ENDPOINT_URL... come from there */
	const struct clock *clock;
	const char         *region, *idc_region;
	const char         *node; /* which of us it is, in the names of sessions */
	struct str          intermediate_arn, management_arn, idc_arn;
	struct str          sandbox_role; /* name of the role in each sandbox account */
	struct str          external_id, source_identity, user_agent_extra;
	int                 session_sec;  /* 0: 900 */
	struct aws_pacer   *pacer;        /* NULL: no pace (tests) */
	long                wait_base_ms; /* between attempts; 0: 1 s; for tests */
	/* What operators are told of. Any thread. */
	void (*on_denied)(void *arg, const char *permission, const char *text);
	void (*on_throttled)(void *arg, const struct aws_op *op);
	void *arg;
};
/* RC_INVALID: an endpoint override is no URL, or http to somewhere else than this machine. */
MUST_CHECK enum rc aws_callers_new(const struct aws_settings *s, struct aws_callers **ret, struct err *e);
void               aws_callers_free(struct aws_callers *c);

/* Borrowed; any number of threads. NULL of NULL. */
enum aws_hop { AWS_OWN, AWS_INTERMEDIATE, AWS_MANAGEMENT, AWS_IDENTITY_CENTRE, AWS_HOP_COUNT };
struct aws_caller *aws_caller_of(struct aws_callers *c, enum aws_hop hop);

/* In a sandbox account, by the role of this name (empty: the settings'); purpose is the session's ending, such as
 * "nuke" or "cred". Yours. */
struct aws_caller *aws_caller_sandbox(struct aws_callers *c, struct str account_id, struct str role,
                                      const char *purpose, int seconds);
void               aws_caller_free(struct aws_caller *c);

/* Its credentials, renewed in time; for programs that want them themselves. */
struct aws_identity *aws_caller_identity(struct aws_caller *c);
const char          *aws_caller_region(const struct aws_caller *c);
struct str           aws_caller_arn(const struct aws_caller *c); /* of its role; empty: our own credentials */
