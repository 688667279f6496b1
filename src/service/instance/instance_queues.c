/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_queues.c - the queues of instances: archives that have expired, removals to be tried again, commands of the
 * inbox, and figures of what has ended. Events of the container service are in instance_ecs.c.
 *
 * A command that the state does not allow is answered with a completion that says FAILED, because its sender waits for
 * one. While an operation is under way it is tried again. What makes no sense is a dead letter at once.
 */
#include "base/arena.h"
#include "base/json.h"
#include "base/metrics.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "service/instance/instance_private.h"

enum { COMMAND_TRIES = 60, ARCHIVE_TRIES = 100, HOUR_MS = 3600000 };

/* --- commands --- */

/* clang-format off */
static const struct command {
	const char        *type;
	txn_fn            *run;
	enum instance_op   op;
	enum instance_body body;
	const char        *action; /* of BODY_STATUS */
} commands[] = {
	{ "START_CLUSTER_CREATION", instance_create,  OP_CREATE,  BODY_CREATE, NULL },
	{ "START_CLUSTER_DELETION", instance_delete,  OP_DELETE,  BODY_DELETE, NULL },
	{ "START_CLUSTER_SCALE",    instance_scale,   OP_SCALE,   BODY_SIZE,   NULL },
	{ "START_CLUSTER_PARK",     instance_park,    OP_PARK,    BODY_STATUS, "park" },
	{ "START_CLUSTER_UNPARK",   instance_unpark,  OP_UNPARK,  BODY_STATUS, "unpark" },
	{ "SUSPEND_CLUSTER",        instance_suspend, OP_SUSPEND, BODY_STATUS, "suspend" },
	{ "RESUME_CLUSTER",         instance_resume,  OP_RESUME,  BODY_STATUS, "resume" },
};
/* clang-format on */

static const struct command *find_command(struct str type)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (str_eq(type, str_from(commands[i].type)))
			return &commands[i];
	return NULL;
}

/* The members of a command that are not those of the envelope. */
static json_t *body_of(const json_t *detail, const struct command *command)
{
	static const char *const envelope[] = { "eventType", "tenantId", "timestamp", "requestedBy", "correlationId" };
	json_t                  *body = json_copy((json_t *)(uintptr_t)detail);

	for (size_t i = 0; i < ARRAY_LEN(envelope); i++)
		json_object_del(body, envelope[i]);
	if (command->action)
		json_object_set_new(body, "action", json_string(command->action));
	if (command->action && !json_object_get(body, "reason"))
		json_object_set_new(body, "reason", json_string("asked for by a command"));
	return body;
}

static enum rc read_command(const struct command *command, const json_t *detail, struct arena *a,
                            struct instance_call *ret, struct err *e)
{
	struct instance_problems    p = { .arena = a };
	CLEANUP(json_freep) json_t *body = body_of(detail, command);

	if (!json_take_text(detail, "tenantId", a, &ret->tenant) || !tenant_id_is_ok(ret->tenant))
		return err_set(e, RC_INVALID, "tenantId: must be 3 to 63 of a to z, 0 to 9 and -, the first not -");
	if (!json_take_text(detail, "correlationId", a, &ret->correlation_id) ||
	    ret->correlation_id.n > INSTANCE_KEY_MAX || !json_take_text(detail, "requestedBy", a, &ret->actor) ||
	    ret->actor.n > INSTANCE_EMAIL_MAX)
		return err_set(e, RC_INVALID, "correlationId and requestedBy must be short texts");
	instance_want_read(body, command->body, &ret->want, &p);
	return p.count ? err_set(e, RC_INVALID, "%.*s", STR_ARG(p.items[0].message)) : RC_OK;
}

/* The sender of a command waits for its completion, also of one that is refused. */
static enum rc tell_refusal(struct session *s, const struct instance_call *c, enum instance_op op,
                            const struct err *why, struct err *e)
{
	struct arena *a = session_arena(s);
	struct str    error = instance_error(a, err_code(why), str_from(why->msg), STR(""), STR(""), session_now(s).ms);

	return session_tell(s, instance_op_events[op], str_format(a, "tenant/%.*s", STR_ARG(c->tenant)),
	                    STR("instances"), STR(""),
	                    JSON_OF(a, member_word("eventType", instance_op_events[op]),
	                            member_str("tenantId", c->tenant), member_time("timestamp", session_now(s).ms),
	                            member_word("status", "FAILED"), member_raw("resources", STR("{}")),
	                            member_if_any(member_str("correlationId", c->correlation_id)),
	                            member_raw("error", error)),
	                    e);
}

static enum rc handle_command(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	CLEANUP(json_freep) json_t *outside = NULL;
	struct instance_call        c = { .world = arg, .request_id = d->event.id };
	struct str                  type = d->event.type;
	const struct command       *command;
	struct err                  why = { 0 };
	enum rc                     rc;

	(void)str_cut(&type, ':');
	if (!(command = find_command(type)))
		return err_set(e, RC_INVALID, "there is no command %.*s", STR_ARG(type));
	if ((rc = json_parse(d->event.detail, &outside, e)) ||
	    (rc = read_command(command, json_object_get(outside, "detail"), session_arena(s), &c, e)))
		return rc;
	rc = command->run(s, &c, &why);
	if (!rc)
		return RC_OK;
	if (rc == RC_UNFIT && why.code && str_eq(str_from(why.code), STR("OPERATION_IN_PROGRESS")))
		return err_set(e, RC_UNAVAILABLE, "%s", why.msg);
	if (rc == RC_UNFIT || rc == RC_CONFLICT || rc == RC_NOT_FOUND || rc == RC_INVALID)
		return tell_refusal(s, &c, command->op, &why, e);
	return err_set(e, rc, "%s", why.msg);
}

/* --- archives that have expired --- */

struct archive_call {
	struct instance_world *world;
	struct str             backup, tenant;
};

static enum rc call_archive(struct call *call, struct err *e)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	struct archive_call        *c = arena_alloc(call->arena, sizeof(*c));
	enum rc                     rc = json_parse(call->delivery->event.detail, &detail, e);

	c->world = call->arg;
	call->result = c;
	if (rc)
		return rc;
	if (!json_take_text(detail, "backupId", call->arena, &c->backup) ||
	    !json_take_text(detail, "tenantId", call->arena, &c->tenant))
		return err_set(e, RC_CORRUPT, "the timer of an archive does not say which");
	if (!c->world) {
		call->wait_ms = CALL_WAIT_MAX_MS;
		return err_set(e, RC_UNAVAILABLE, "archive %.*s waits for a driver: set LEASEHOLD_INSTANCE_DRIVER",
		               STR_ARG(c->backup));
	}
	return c->world->driver->ops->drop_archive(c->world->driver, c->tenant, c->backup, e);
}

static enum rc settle_archive(struct session *s, const struct call *call, struct err *e)
{
	const struct archive_call *c = call->result;
	struct backup              b;
	struct instance            i = { 0 };
	bool                       is_there;
	enum rc                    rc = session_find(s, &backup_type, c->backup, &b, &is_there, e);

	if (rc || !is_there || b.state != BACKUP_KEPT) /* of one that failed only what it had left */
		return rc;
	b.state = BACKUP_REMOVED;
	session_put(s, &backup_type, &b);
	i.id = b.instance;
	return instance_emit(s, EVENT_ARCHIVE_REMOVED, &i, STR("instances"), STR(""),
	                     JSON_OF(session_arena(s), member_str("backupId", b.id),
	                             member_str("instanceId", b.instance), member_str("tenantId", b.tenant)),
	                     e);
}

/* --- removals that failed --- */

static enum rc handle_removal(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	struct instance_call        c = { .world = arg, .actor = STR("instances"), .want = { .tier = -1 } };
	struct instance             i;
	bool                        is_there;
	enum rc                     rc = json_parse(d->event.detail, &detail, e);

	if (rc)
		return rc;
	if (!json_take_text(detail, "instanceId", session_arena(s), &c.id) ||
	    !json_take_text(detail, "tenantId", session_arena(s), &c.tenant))
		return err_set(e, RC_CORRUPT, "the timer of a removal does not say whose");
	rc = session_find(s, &instance_type, c.id, &i, &is_there, e);
	if (rc || !is_there || i.state != INSTANCE_PENDING_DEPROVISIONING || i.operation.n)
		return rc;
	if (!c.world) /* no driver: once more, later */
		return instance_arm_removal(s, &i, e);
	c.correlation_id = i.correlation_id;
	return instance_delete(s, &c, e);
}

/* --- figures --- */

static enum rc handle_figures(struct session *s UNUSED, const struct delivery *d, void *arg, struct err *e)
{
	const struct instance_world *w = arg;
	CLEANUP(json_freep) json_t  *detail = NULL;
	struct str                   status;
	int64_t                      ms;
	bool                         is_good, has_begun;
	char                         labels[80];

	if (!w->metrics || json_parse(d->event.detail, &detail, e))
		return RC_OK; /* no figure is worth a dead letter */
	if (!json_get_text(detail, "status", &status) || !json_get_number(detail, "durationMs", 0, &ms))
		return RC_OK;
	is_good = str_eq(status, STR("SUCCESS"));
	has_begun = json_is_string(
	        json_object_get(json_object_get(detail, "error"), "step")); /* else nothing to undo */
	for (int op = 0; op < OP_COUNT; op++) {
		if (!str_eq(d->event.type, str_from(instance_op_events[op])))
			continue;
		snprintf(labels, sizeof(labels), "%s,%s", instance_op_names[op], is_good ? "success" : "failure");
		metrics_add(w->metrics, METRIC_INSTANCE_OPERATIONS, labels, 1);
		if (is_good)
			metrics_observe(w->metrics, METRIC_INSTANCE_DURATION, instance_op_names[op], (double)ms / 1000);
		if (!is_good && op == OP_CREATE && has_begun)
			metrics_add(w->metrics, METRIC_INSTANCE_ROLLBACKS, "", 1);
	}
	return RC_OK;
}

void instance_queues(struct instance_world *w, struct queue ret[INSTANCE_QUEUES],
                     const char *ret_events[INSTANCE_QUEUES])
{
	static const struct {
		const char  *events;
		struct queue queue;
	} rows[INSTANCE_QUEUES] = {
		{ EVENT_ARCHIVE_DUE,
		  { INSTANCE_ARCHIVES_QUEUE, .call = call_archive, .settle = settle_archive, .tries = ARCHIVE_TRIES,
		    .backoff_max_ms = HOUR_MS } },
		{ EVENT_REMOVAL_DUE, { INSTANCE_REMOVALS_QUEUE, .handle = handle_removal, .tries = 10 } },
		{ INSTANCE_COMMAND_EVENTS,
		  { INSTANCE_COMMANDS_QUEUE, .handle = handle_command, .buries_nonsense = true,
		    .tries = COMMAND_TRIES } },
		{ INSTANCE_ECS_EVENTS,
		  { INSTANCE_ECS_QUEUE, .call = instance_call_ecs, .settle = instance_settle_ecs,
		    .buries_nonsense = true, .tries = 10 } },
		{ INSTANCE_COMPLETE_EVENTS, { INSTANCE_FIGURES_QUEUE, .handle = handle_figures, .is_heard = true } },
	};

	for (size_t i = 0; i < INSTANCE_QUEUES; i++) {
		ret[i] = rows[i].queue;
		ret[i].arg = w;
		ret_events[i] = rows[i].events;
	}
}
