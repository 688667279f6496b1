/* aws.h - calls to AWS services: credentials, signature, time limits, retries. Blocks. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "net/sigv4.h"

/* Where credentials come from, in this order: environment (AWS_ACCESS_KEY_ID ...), web identity
 * (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN), shared file (AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials,
 * AWS_PROFILE), container endpoint (AWS_CONTAINER_CREDENTIALS_*), instance endpoint (IMDSv2, unless
 * AWS_EC2_METADATA_DISABLED). Found at first use, renewed five minutes before they end. Any number of threads.
 * The options' clock and texts are borrowed. With a role: from nowhere but STS, by the credentials of the role's
 * client; renewed when a fifth of their time is left. */
struct aws_role {
	struct aws_client *sts;
	struct str         arn, session;
	struct str         external_id, source_identity; /* empty: none */
	int                seconds;
};
struct aws_identity_options {
	const char *(*env)(const char *name);
	const struct clock    *clock;
	const char            *sts_endpoint;       /* NULL: the real one of the region; for tests */
	const char            *imds_endpoint;      /* NULL: http://169.254.169.254 */
	const char            *container_endpoint; /* NULL: http://169.254.170.2 */
	const struct aws_role *role;               /* NULL: none; env is not needed with one */
};
struct aws_identity *aws_identity_new(const struct aws_identity_options *o);
void                 aws_identity_free(struct aws_identity *i);

/* RC_DENIED, naming all places that were looked at, when there are none, or when STS denies the role; RC_INVALID,
 * RC_UNAVAILABLE, RC_TIMEOUT when a place that was set up is wrong or does not answer. Texts are copied into the
 * arena. */
MUST_CHECK enum rc aws_identity_get(struct aws_identity *i, struct arena *a, struct aws_credentials *ret,
                                    struct err *e);

/* The service did not accept these: the next get looks for new ones, unless it has others by now. */
void aws_identity_refuse(struct aws_identity *i, const struct aws_credentials *refused);

/* A role that is assumed by a role lasts an hour at most, whatever its own settings say. */
enum { AWS_SESSION_MAX_SEC = 3600 };

struct aws_role_options {
	struct aws_identity *identity; /* our own credentials */
	const struct clock  *clock;
	const char          *region;
	const char          *endpoint; /* of STS; NULL: the real one of the region */
};

/* "arn:aws:iam::123456789012:role/NAME", in the region's partition. */
struct str aws_role_arn(const char *region, struct str account_id, struct str role, struct arena *a);

/* Assume a role that our own credentials may, such as one in another account, for AWS_SESSION_MAX_SEC. The session's
 * name is shown in the account's audit trail: letters, digits and =,.@-_ only. RC_DENIED with STS's code: it refuses
 * us; RC_UNAVAILABLE, RC_TIMEOUT: try later; and all of aws_identity_get(). Texts are in the arena. */
MUST_CHECK enum rc aws_assume_role(const struct aws_role_options *o, struct str role_arn, struct str session,
                                   struct arena *a, struct aws_credentials *ret, struct err *e);

/* Numbers that are 0 get the default. The time to find or renew credentials, which is rare, has limits of its own (at
 * most some seconds) that total_timeout_ms does not cut. */
struct aws_client_options {
	const char          *endpoint; /* NULL or empty: https://SERVICE.REGION.amazonaws.com */
	const char          *region, *service;
	const char          *signed_as;  /* the service's name in signatures; NULL: the same */
	const char          *user_agent; /* NULL: none */
	struct aws_identity *identity;   /* borrowed */
	const struct clock  *clock;
	long                 connect_timeout_ms, attempt_timeout_ms; /* of one attempt; 1 s and 5 s */
	long                 total_timeout_ms;                       /* of a call with all its retries; 15 s */
	int                  attempts_max;                           /* 5 */
	long                 wait_base_ms, wait_max_ms;              /* between attempts; 25 ms, doubling up to 1 s */
	void (*wait)(void *arg, long ms);                            /* NULL: sleeps; for tests */
	void *wait_arg;
};
struct aws_client *aws_client_new(const struct aws_client_options *o);
void               aws_client_free(struct aws_client *c);

enum { AWS_REPLY_MAX = 20 << 20 };

/* An answer of the service, and what it took to get it. */
struct aws_reply {
	int        status;
	struct str body;          /* JSON, or XML of a query service */
	struct str error_type;    /* such as "ConditionalCheckFailedException"; empty for success */
	struct str error_message; /* its first line: more may be our request with its token */
	struct str request_id;    /* empty: it has none */
	int        attempts;
	int        throttles;    /* of them */
	bool       is_uncertain; /* one went out that was not answered, or with 5xx: it may have happened */
};

/* One request of any kind. Texts that are empty and numbers that are 0 get the default. */
struct aws_request {
	const char *method;      /* NULL: POST */
	struct str  path, query; /* behind the endpoint: escaped, "/schedules/a"; without '?' */
	struct str  type;        /* Content-Type; empty: none */
	struct str  target;      /* X-Amz-Target; empty: none */
	struct str  body;        /* p NULL: none */
	const char *shown;       /* what messages call it: "GetItem" */

	const char *const *slow_codes; /* more codes after which to wait and repeat; NULL-terminated; NULL: none */
	long               total_ms, attempt_ms; /* the client's when 0; total_ms may be more than the client's */
	int                attempts_max;
	bool               is_patient; /* "slow down" does not count as an attempt: repeated until the time is over */

	/* True for an answer that says "slow down" in other words than a code; NULL: none does. */
	bool (*is_slow)(const struct aws_reply *reply);

	/* Called before each attempt, may wait; a failure is the call's. Called for each answer that says "slow down".
	 * NULL: nobody. */
	enum rc (*before)(void *arg, long left_ms, struct err *e);
	void (*on_throttle)(void *arg);
	void *arg;
};

/* Any number of threads at once, each with a connection of its own that it keeps.
 * RC_OK: the service answered, with success or with an error of the caller's (4xx that no retry can change): see
 * status.
 * RC_LIMITED: every attempt was throttled; it did not happen.
 * RC_UNAVAILABLE, RC_TIMEOUT: it did not answer, or with 5xx to the last; whether it may have happened: is_uncertain.
 * Throttling, 5xx and broken connections are retried with full jitter while the total time lasts. A clock that is far
 * off and expired credentials are each corrected once, beyond attempts_max. Any failure of aws_identity_get() and
 * before(). RC_TOO_LARGE for an answer over AWS_REPLY_MAX. *ret is always set; without an answer, only its counts. */
MUST_CHECK enum rc aws_send(struct aws_client *c, const struct aws_request *req, struct arena *a, struct aws_reply *ret,
                            struct err *e);

/* One operation of a service that speaks JSON 1.0: target such as "DynamoDB_20120810.GetItem". Like aws_send(), but
 * what was throttled to the last is RC_UNAVAILABLE, and *ret is left alone when it fails. */
MUST_CHECK enum rc aws_call(struct aws_client *c, const char *target, struct str body, struct arena *a,
                            struct aws_reply *ret, struct err *e);
