/* aws.h - calls to AWS services that speak JSON over POST: credentials, signature, time limits, retries. Blocks. */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "net/sigv4.h"

struct arena;
struct aws_client;
struct aws_identity;

/* Where credentials come from, in this order: environment (AWS_ACCESS_KEY_ID ...), web identity
 * (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN), shared file (AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials,
 * AWS_PROFILE), container endpoint (AWS_CONTAINER_CREDENTIALS_*), instance endpoint (IMDSv2, unless
 * AWS_EC2_METADATA_DISABLED). Found at first use, renewed five minutes before they end. Any number of threads.
 * The options' clock and texts are borrowed. */
struct aws_identity_options {
	const char *(*env)(const char *name);
	const struct clock *clock;
	const char         *sts_endpoint;       /* NULL: the real one of the region; for tests */
	const char         *imds_endpoint;      /* NULL: http://169.254.169.254 */
	const char         *container_endpoint; /* NULL: http://169.254.170.2 */
};
struct aws_identity *aws_identity_new(const struct aws_identity_options *o);
void                 aws_identity_free(struct aws_identity *i);

/* RC_DENIED with all places that were looked at when there are none, or when STS denies the role; RC_INVALID,
 * RC_UNAVAILABLE, RC_TIMEOUT when a place that was set up is wrong or does not answer. Texts are copied into the
 * arena. */
MUST_CHECK enum rc aws_identity_get(struct aws_identity *i, struct arena *a, struct aws_credentials *ret,
                                    struct err *e);

/* The service did not accept these: unless others are held by now, the next get looks for new ones. */
void aws_identity_refuse(struct aws_identity *i, const struct aws_credentials *refused);

/* Numbers that are 0 get the default. The time to find or renew credentials, which is rare, has limits of its own (at
 * most some seconds) that total_timeout_ms does not cut. */
struct aws_client_options {
	const char          *endpoint; /* NULL or empty: https://SERVICE.REGION.amazonaws.com */
	const char          *region, *service;
	const char          *json_version; /* "1.0" for DynamoDB */
	struct aws_identity *identity;     /* borrowed */
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

/* An answer of the service. */
struct aws_reply {
	int        status;
	struct str body;          /* JSON */
	struct str error_type;    /* such as "ConditionalCheckFailedException"; empty for success */
	struct str error_message; /* its first line: more may be our request with its token */
	int        attempts;
};

/* One operation: target such as "DynamoDB_20120810.GetItem". Any number of threads at once, each with a connection of
 * its own that it keeps.
 * RC_OK: the service answered, with success or with an error of the caller's (4xx that no retry can change): see
 * status.
 * RC_UNAVAILABLE, RC_TIMEOUT: it did not answer, or with 5xx or throttling to the last; what it was asked may have
 * happened.
 * Throttling, 5xx and broken connections are retried with full jitter while the total time lasts. A clock that is far
 * off and credentials that have ended are each corrected once, beyond attempts_max.
 * Any failure of aws_identity_get(). RC_TOO_LARGE for an answer over AWS_REPLY_MAX. */
MUST_CHECK enum rc aws_call(struct aws_client *c, const char *target, struct str body, struct arena *a,
                            struct aws_reply *ret, struct err *e);
