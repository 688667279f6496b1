/* instance_form.h - instances in the forms of their contract; shared by the handlers of instances, nobody else
 * includes this. */
#pragma once

#include "http/api/ops.h"
#include "service/instance/instances.h"

#define INSTANCE_BASE "/v1.0/tenants"

/* What all handlers of instances begin with: are there any here, whose, which? NULL: it has been answered. */
struct instance_call *instance_enter(struct request *r, bool needs_id);

/* The body, which may be left out where nothing in it is required. False: it has been answered. */
bool instance_read_body(struct request *r, struct instance_call *c, enum instance_body kind);

/* The members of a struct instance_call: details, or what was accepted. */
put_fn instance_put_details;
put_fn instance_put_accepted;
put_fn instance_put_listed;    /* a struct instance */
put_fn instance_put_operation; /* a struct operation_get */
put_fn instance_put_backup;    /* a struct backup */

void instance_put_status_links(struct json_out *o, const struct instance *i, struct arena *a);
