/* aws_endpoint.h - where services are: other addresses by AWS's own variables, and which addresses may be called
 * without TLS. */
#pragma once

#include "base/err.h"

struct arena;

/* The URL that AWS_ENDPOINT_URL_{id} names, else AWS_ENDPOINT_URL; NULL: none, or AWS_IGNORE_CONFIGURED_ENDPOINT_URLS
 * is true. In the arena, without a slash at its end. RC_INVALID names the variable: it must be https, or http to this
 * machine, since what is sent is signed but not hidden. */
MUST_CHECK enum rc aws_endpoint(const char *(*env)(const char *name), const char *id, struct arena *a, const char **ret,
                                struct err *e);

/* How far http may go. */
enum aws_reach { AWS_LOOPBACK, AWS_LINK_LOCAL };

/* Is it https, or http within this reach? */
bool aws_url_is_safe(const char *url, enum aws_reach http_reach);
