/* alb.h - what of the route others need. */
#pragma once

#include "providers/aws/instances/instances_private.h"

/* RC_NOT_FOUND: there is none. */
MUST_CHECK enum rc alb_set(struct site *s, enum instance_route to, struct err *e);

/* How many tasks answer the load balancer. */
MUST_CHECK enum rc alb_count(struct site *s, int64_t *ret_healthy, struct err *e);

/* The target group, with a rule that forwards to it. */
MUST_CHECK enum rc alb_target(struct site *s, struct str *ret_group, struct err *e);
