/* ecs.h - what is done with a tenant's tasks besides making and removing them. */
#pragma once

#include "providers/aws/instances/instances_private.h"

/* RC_NOT_FOUND: there is no service. */
MUST_CHECK enum rc ecs_scale(struct site *s, int64_t desired, struct err *e);

/* New tasks of the same definition, one after the other; of the spec's, if that is another one. */
MUST_CHECK enum rc ecs_restart(struct site *s, struct err *e);
MUST_CHECK enum rc ecs_redefine(struct site *s, struct err *e);

/* RC_INVALID: the deployment failed, and nothing runs. */
MUST_CHECK enum rc ecs_count(struct site *s, struct instance_tasks *ret, struct err *e);
