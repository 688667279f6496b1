/* aws_role.h - credentials of a role that our own may assume, such as one in another account. Blocks. */
#pragma once

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "net/aws.h"

struct arena;

/* A role that is assumed by a role lasts an hour at most, whatever its own settings say. */
enum { AWS_SESSION_MIN_SEC = 900, AWS_SESSION_MAX_SEC = 3600 };

struct aws_role_options {
	struct aws_identity *identity; /* our own credentials */
	const struct clock  *clock;
	const char          *region;
	const char          *endpoint; /* of STS; NULL: the real one of the region */
};

/* "arn:aws:iam::123456789012:role/NAME", in the region's partition. */
struct str aws_role_arn(const char *region, struct str account_id, struct str role, struct arena *a);

/* Assume it for so many seconds. The session's name is shown in the account's audit trail: letters, digits and =,.@-_ only.
 * RC_DENIED with STS's code: it refuses us; RC_UNAVAILABLE, RC_TIMEOUT: try later; and all of aws_identity_get(). Texts are in the arena. */
MUST_CHECK enum rc aws_assume_role(const struct aws_role_options *o, struct str role_arn, struct str session,
                                   int seconds, struct arena *a, struct aws_credentials *ret, struct err *e);
