/* instance_parts.h - what tenants' instances need, put together: the driver, sagas. */
#pragma once

#include "base/err.h"
#include "kernel/saga.h"
#include "providers/aws/instances/instances.h"
#include "service/instance/instances.h"

struct config;
struct parts;

/* The parts; app/subscriptions.c gives them to the kernel. */
struct instance_parts {
	struct instance_world world;
	struct saga_kind      kinds[OP_COUNT];
};

/* LEASEHOLD_INSTANCE_DRIVER, or sim in development; NULL: there are no instances. */
const char *instance_parts_driver(const struct config *c, bool is_dev);

/* Does it need the simulated cloud? */
bool instance_parts_is_sim(const struct config *c, bool is_dev);

/* Does it call AWS? And with what, borrowed of the settings. */
bool                         instance_parts_is_aws(const struct config *c);
struct aws_instances_options instance_parts_aws(const struct config *c, struct aws_callers *callers);

/* What is wrong with the settings, one problem a line. */
void instance_parts_check(const struct config *c, struct buf *problems);

/* Fills p->instances; NULL: there are none. */
MUST_CHECK enum rc instance_parts_new(struct parts *p, struct err *e);

/* Ends every wait for AWS. Call it before the calling threads are joined. NULL is fine. */
void instance_parts_stop(struct instance_parts *p);
void instance_parts_free(struct instance_parts *p);
