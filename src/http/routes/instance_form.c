/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_form.c - instances in the forms of their contract: details, what was accepted, operations, archives; each
 * with its links.
 *
 * Nothing written here is a secret: resources are shown by what their driver calls outputs, which have none.
 */
#include "http/routes/instance_form.h"

#include "base/json.h"

/* --- links --- */

static void put_link(struct json_out *o, const char *name, struct str href)
{
	JSON_PUT(o, member_object(name), member_str("href", href), member_end());
}

static void put_links(struct json_out *o, const struct instance *i, struct str operation, bool is_status,
                      struct arena *a)
{
	static const char *const below[] = { "status", "size", "logs", "backups", "people" };
	struct str               all = str_format(a, INSTANCE_BASE "/%.*s/instances", STR_ARG(i->tenant));
	struct str               self = str_format(a, "%.*s/%.*s", STR_ARG(all), STR_ARG(i->id));

	json_put_object(o, "_links");
	put_link(o, "self", self);
	put_link(o, "collection", all);
	put_link(o, "tenant", str_format(a, INSTANCE_BASE "/%.*s", STR_ARG(i->tenant)));
	for (size_t n = 0; n < ARRAY_LEN(below); n++)
		put_link(o, below[n], str_format(a, "%.*s/%s", STR_ARG(self), below[n]));
	if (is_status) { /* which has names of its own for three of these */
		put_link(o, "instance", self);
		put_link(o, "scale", str_format(a, "%.*s/size", STR_ARG(self)));
		put_link(o, "stop", str_format(a, "%.*s/status", STR_ARG(self)));
	}
	if (operation.n)
		put_link(o, "operation", str_format(a, "%.*s/operations/%.*s", STR_ARG(self), STR_ARG(operation)));
	json_close_object(o);
}

void instance_put_status_links(struct json_out *o, const struct instance *i, struct arena *a)
{
	put_links(o, i, i->operation, true, a);
}

/* --- an operation --- */

static int64_t step_number(const struct saga *saga)
{
	int64_t n = saga->step + 1;

	for (size_t i = 0; saga->state != SAGA_RUNNING && i < saga->marks.n; i++)
		n = saga->marks.p[i] != SAGA_MARK_NONE ? (int64_t)i + 1 : n;
	return n;
}

static void put_progress(struct json_out *o, const struct operation *op, const struct saga *saga)
{
	bool is_open = saga->id.n && op->state == OPERATION_RUNNING;

	JSON_PUT(o, member_str("operationId", op->id), member_word("operation", instance_op_names[op->kind]),
	         member_word("state", operation_state_names[op->state]),
	         member_text("step", saga->id.n ? str_from(instance_saga_step(saga)) : STR("")));
	if (saga->id.n)
		JSON_PUT(o, member_int("stepNumber", step_number(saga)),
		         member_int("stepCount", instance_saga_steps(saga)), member_int("tries", saga->tries));
	JSON_PUT(o, member_text("waitsFor", is_open ? saga->last_error : STR("")),
	         member_bool("goesBack", saga->state == SAGA_UNDOING),
	         member_bool("parked", saga->id.n && saga->state == SAGA_PARKED),
	         member_at("startedAt", op->started_ms));
}

void instance_put_operation(struct json_out *o, struct request *r, const void *thing)
{
	const struct operation_get *g = thing;
	const struct instance       i = { .id = g->operation.instance, .tenant = g->operation.tenant };

	JSON_PUT(o, member_str("instanceId", i.id), member_str("tenantId", i.tenant));
	put_progress(o, &g->operation, &g->saga);
	JSON_PUT(o, member_text("reason", g->operation.reason), member_raw("error", g->operation.error),
	         member_text("backupId", g->operation.backup), member_text("requestedBy", g->operation.requested_by),
	         member_text("correlationId", g->operation.correlation_id),
	         member_at("endedAt", g->operation.ended_ms));
	put_links(o, &i, g->operation.id, false, &r->call->arena);
}

/* --- an instance --- */

static void put_names(struct json_out *o, const struct instance *i)
{
	JSON_PUT(o, member_str("instanceId", i->id), member_str("tenantId", i->tenant),
	         member_str("organizationName", i->organization), member_word("status", instance_status(i->state)),
	         member_word("provisioningState", instance_state_name(i->state)),
	         member_word("tier", instance_tier_names[i->tier]));
}

void instance_put_listed(struct json_out *o, struct request *r, const void *thing)
{
	const struct instance *i = thing;

	put_names(o, i);
	JSON_PUT(o, member_int("desiredCount", i->desired_count), member_int("runningCount", i->running_count),
	         member_text("endpoint", i->endpoint), member_at("createdAt", i->created_ms),
	         member_at("updatedAt", i->updated_ms));
	put_links(o, i, i->operation, false, &r->call->arena);
}

/* The host of http://HOST:PORT/... */
static struct str domain_of(struct str url)
{
	struct str host;

	(void)str_cut(&url, '/');
	(void)str_cut(&url, '/');
	host = str_cut(&url, '/');
	return str_cut(&host, ':');
}

void instance_put_details(struct json_out *o, struct request *r, const void *thing)
{
	const struct instance_call *c = thing;
	const struct instance      *i = &c->instance;

	put_names(o, i);
	JSON_PUT(o, member_str("contactEmail", i->contact_email), member_text("opportunityId", i->opportunity_id),
	         member_object("configuration"), member_int("desiredCount", i->desired_count),
	         member_str("wordpressVersion", i->wordpress_version),
	         member_text("phpVersion", str_from(c->world->driver->ops->php)), member_end(),
	         member_int("runningCount", i->running_count),
	         member_word("deploymentStatus", instance_deployment_names[i->deployment]), member_object("resources"));
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		if (i->outputs[kind].n)
			json_put_raw(o, instance_resource_names[kind], i->outputs[kind]);
	JSON_PUT(o, member_end(), member_text("endpoint", i->endpoint), member_text("domain", domain_of(i->endpoint)),
	         member_object("tags"), member_str("bbws:tenant-id", i->tenant),
	         member_word("bbws:managed-by", "leasehold"),
	         member_if_any(member_str("bbws:opportunity", i->opportunity_id)), member_end(),
	         member_text("reason", i->reason), member_raw("lastError", i->last_error));
	if (i->operation.n && c->operation.id.n) {
		json_put_object(o, "operation");
		put_progress(o, &c->operation, &c->saga);
		json_close_object(o);
	} else {
		json_put_null(o, "operation");
	}
	instance_put_allowed(o, "allowedTransitions", i->state);
	JSON_PUT(o, member_text("archiveId", i->archive), member_at("archivedUntil", i->archive_until_ms),
	         member_at("belowDesiredSince", i->below_since_ms), member_raw("lastEcsEvent", i->last_ecs_event),
	         member_at("createdAt", i->created_ms), member_at("updatedAt", i->updated_ms),
	         member_at("activatedAt", i->activated_ms), member_at("removedAt", i->removed_ms),
	         member_text("requestedBy", i->requested_by), member_text("correlationId", i->correlation_id),
	         member_int("version", (int64_t)i->version));
	put_links(o, i, i->operation, false, &r->call->arena);
}

/* --- what was accepted --- */

/* What will happen, and how long it takes at most. */
static const struct {
	const char *message;
	int64_t     minutes;
} accepted[OP_COUNT] = {
	[OP_CREATE] = { "the instance is being provisioned", 15 },
	[OP_SCALE] = { "the number of tasks is being changed", 5 },
	[OP_SUSPEND] = { "the instance is being suspended", 2 },
	[OP_RESUME] = { "the instance is being resumed", 5 },
	[OP_PARK] = { "the instance is being parked: its tasks are released, its data stay", 5 },
	[OP_UNPARK] = { "the instance is being rebuilt", 15 },
	[OP_UPDATE] = { "the configuration is being changed, task by task", 15 },
	[OP_BACKUP] = { "both data sets are being archived", 10 },
	[OP_RESTORE] = { "the archive is being put back; what was there is archived before", 15 },
	[OP_ROTATE] = { "the database gets a new password, task by task", 5 },
	[OP_RECOVER] = { "the instance is being looked at and started", 10 },
	[OP_DELETE] = { "the instance is being removed: closed, stopped, archived, then deleted", 10 },
};

void instance_put_accepted(struct json_out *o, struct request *r, const void *thing)
{
	const struct instance_call *c = thing;
	const struct instance      *i = &c->instance;
	enum instance_op            op = c->operation.kind;

	JSON_PUT(o, member_str("instanceId", i->id), member_str("tenantId", i->tenant),
	         member_str("status", op == OP_CREATE ? STR("PROVISIONING") : str_from(instance_status(i->state))),
	         member_word("operation", instance_op_names[op]), member_str("operationId", c->operation.id),
	         member_word("message", accepted[op].message), member_word("requestId", r->id),
	         member_int("estimatedCompletionMinutes", accepted[op].minutes),
	         member_if_any(member_str("action", c->want.action)),
	         member_if(op == OP_SCALE, member_int("previousCount", i->previous_count)),
	         member_if(op == OP_SCALE || op == OP_RESUME || op == OP_UNPARK || op == OP_CREATE,
	                   member_int("desiredCount", i->desired_count)),
	         member_if(op == OP_DELETE, member_int("dataRetentionDays", c->world->archive_ms / 86400000)),
	         member_if(op != OP_DELETE, member_if_any(member_str("backupId", c->operation.backup))));
	put_links(o, i, c->operation.id, false, &r->call->arena);
}

void instance_put_backup(struct json_out *o, struct request *r UNUSED, const void *thing)
{
	CLEANUP(json_freep) json_t *outputs = NULL;
	const struct backup        *b = thing;
	int64_t                     bytes = 0;
	bool                        is_known = b->outputs.n && !json_parse(b->outputs, &outputs, NULL) &&
	                json_get_number(outputs, "bytes", 0, &bytes);

	JSON_PUT(o, member_str("backupId", b->id), member_word("kind", backup_kind_names[b->kind]),
	         member_word("state", backup_state_names[b->state]), member_at("createdAt", b->created_ms),
	         member_at("keptUntil", b->state == BACKUP_BROKEN ? 0 : b->until_ms),
	         is_known ? member_int("bytes", bytes) : member_raw("bytes", STR("")));
}
