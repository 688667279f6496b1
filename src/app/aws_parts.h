/* aws_parts.h - what of AWS the server process uses: who calls, at which pace, and the cloud of LEASEHOLD_CLOUD=aws. */
#pragma once

#include <pthread.h>

#include "base/arena.h"
#include "base/err.h"
#include "providers/aws/aws.h"
#include "providers/aws/call.h"
#include "providers/aws/instances/instances.h"
#include "providers/aws/pace.h"

struct buf;
struct config;

enum { CLOUD_SIM, CLOUD_AWS }; /* in the order of LEASEHOLD_CLOUD's words */
enum { AWS_DENIALS_MAX = 16, AWS_PERMISSION_MAX = 80, AWS_DENIAL_TEXT_MAX = 240 };

/* What was refused, for the alarm; forgotten when it has not happened for a while. */
struct aws_denial {
	char    permission[AWS_PERMISSION_MAX];
	char    text[AWS_DENIAL_TEXT_MAX];
	int64_t at_ms;
	bool    is_stated; /* the fact in the store says so */
};

struct aws_parts {
	struct parts            *p;
	struct arena             arena;
	struct aws_pacer         pacer;
	struct aws_callers      *callers; /* NULL: nothing of AWS is used */
	struct aws_cloud_options options;
	struct aws_cloud        *cloud; /* NULL: the cloud is simulated */
	struct cloud             ports;

	struct aws_instances_options instances; /* of the driver aws, for the probe */
	struct aws_probe            *probe;     /* NULL: neither of both is AWS's */

	pthread_mutex_t   lock; /* of what follows */
	struct aws_denial denials[AWS_DENIALS_MAX];
	size_t            denial_count;
	bool              was_throttled[AWS_PACE_COUNT]; /* of the pulse's thread alone */
};

bool aws_parts_is_wanted(const struct config *c);

/* Settings that are missing or make no sense, one a line. */
void aws_parts_check(const struct config *c, bool is_dev, struct buf *problems);

/* Fills p->aws, also when it fails: half-built is fine for aws_parts_free(). After the store. Nothing is called yet. */
MUST_CHECK enum rc aws_parts_new(struct parts *p, struct err *e);
void               aws_parts_free(struct aws_parts *x);

/* Logs endpoints that are not AWS's own, once, at the start. */
void aws_parts_warn(const struct config *c);

/* Try every permission. RC_DENIED: something that is needed is refused or missing; all rows are then on standard error.
 * Anything else that is refused raises an alarm. If AWS does not answer, the server starts all the same: AWS may be
 * back before it is needed. Blocks. */
MUST_CHECK enum rc aws_parts_probe(struct aws_parts *x, struct err *e);

/* For the pulse, with each beat: what is refused, and what is throttled too often. */
void aws_parts_tell(struct aws_parts *x);
