/* aws_endpoint.h - where services are: other addresses by AWS's own variables. */
#pragma once

#include "base/err.h"

struct arena;

/* The URL that AWS_ENDPOINT_URL_{id} names, else AWS_ENDPOINT_URL; NULL: none, or AWS_IGNORE_CONFIGURED_ENDPOINT_URLS
 * is true. In the arena, without a slash at its end. RC_INVALID names the variable: it must be https, or http to this
 * machine, since what is sent is signed but not hidden. */
MUST_CHECK enum rc aws_endpoint(const char *(*env)(const char *name), const char *id, struct arena *a, const char **ret,
                                struct err *e);
