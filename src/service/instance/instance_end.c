/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_end.c - what follows from the end of an instance's saga: its next state, the outcome of the operation, the
 * event of its completion.
 *
 * Always true:
 *   1. The end of a saga that was taken over changes nothing. [instance_on_end()]
 *   2. A completion is told once for an operation: when it ends or is parked; not again when a person resumes it.
 *      [end_operation()]
 *   3. The instance's lastError lists what a parked saga may have left, and the saga stays its operation.
 *      [note_failure()]
 *   4. No event contains a secret; resources are named by id.
 */
#include "base/json.h"
#include "base/utf8.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "service/instance/instance_private.h"

enum { MESSAGE_MAX = 320, LEFTOVERS_MAX = 256 };
#define STAYS INSTANCE_TRIGGER_COUNT
static const int64_t removal_retry_ms = 15 * 60000;

/* Where each operation leads, by the end of its saga. */
static const struct {
	enum instance_trigger done, undone, parked;
} ends[OP_COUNT] = {
	[OP_CREATE] = { INSTANCE_ON_CONFIGURED, INSTANCE_ON_ROLLED_BACK, INSTANCE_ON_ROLLED_BACK },
	[OP_SCALE] = { INSTANCE_ON_SCALED, INSTANCE_ON_SCALED, INSTANCE_ON_SCALE_FAILED },
	[OP_SUSPEND] = { INSTANCE_ON_DRAINED, INSTANCE_ON_DRAIN_FAILED, STAYS },
	[OP_RESUME] = { INSTANCE_ON_RESUMED, INSTANCE_ON_RESUME_FAILED, STAYS },
	[OP_PARK] = { INSTANCE_ON_RELEASED, INSTANCE_ON_RELEASE_FAILED, STAYS },
	[OP_UNPARK] = { INSTANCE_ON_REBUILT, INSTANCE_ON_REBUILD_FAILED, STAYS },
	[OP_UPDATE] = { STAYS, STAYS, STAYS },
	[OP_BACKUP] = { STAYS, STAYS, STAYS },
	[OP_RESTORE] = { STAYS, STAYS, STAYS },
	[OP_ROTATE] = { STAYS, STAYS, STAYS },
	[OP_RECOVER] = { INSTANCE_ON_RECOVER, STAYS, STAYS },
	[OP_DELETE] = { INSTANCE_ON_REMOVED, INSTANCE_ON_REMOVE_FAILED, INSTANCE_ON_REMOVE_FAILED },
};

struct str instance_error(struct arena *a, const char *code, struct str message, struct str step, struct str leftovers,
                          int64_t now_ms)
{
	return JSON_OF(a, member_word("code", code), member_str("message", utf8_line(a, message, MESSAGE_MAX)),
	               member_if_any(member_str("step", step)),
	               member_raw("leftovers", leftovers.n && leftovers.n <= LEFTOVERS_MAX ? leftovers : STR("[]")),
	               member_time("at", now_ms));
}

/* --- what is told --- */

static struct json_member id_of(struct arena *a, const char *name, struct str outputs)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct str                  id = STR("");

	if (outputs.n && !json_parse(outputs, &o, NULL) && !json_take_text(o, "id", a, &id))
		id = STR("");
	return member_if_any(member_str(name, id));
}

enum rc instance_tell_end(struct session *s, const struct instance *i, const struct operation *o, struct err *e)
{
	struct arena *a = session_arena(s);
	const char   *type = instance_op_events[o->kind];
	bool          is_good = o->state == OPERATION_SUCCEEDED;
	struct str    resources = JSON_OF(a, id_of(a, "ecsServiceArn", i->outputs[INSTANCE_WORKERS]),
	                                  id_of(a, "efsAccessPointId", i->outputs[INSTANCE_STORAGE]),
	                                  id_of(a, "cognitoUserPoolId", i->outputs[INSTANCE_IDENTITY]));

	return instance_emit(s, type, i, str_format(a, "operation/%.*s", STR_ARG(o->id)), STR(""),
	                     JSON_OF(a, member_word("eventType", type), member_str("tenantId", i->tenant),
	                             member_str("instanceId", i->id), member_time("timestamp", session_now(s).ms),
	                             member_word("status", is_good ? "SUCCESS" : "FAILED"),
	                             member_raw("resources", resources), member_str("operationId", o->id),
	                             member_if_any(member_str("correlationId", o->correlation_id)),
	                             member_if_any(member_str("backupId", o->backup)),
	                             member_if(is_good && o->kind == OP_SCALE,
	                                       member_int("desiredCount", i->desired_count)),
	                             member_int("durationMs", session_now(s).ms - o->started_ms),
	                             member_if(!is_good && o->error.n, member_raw("error", o->error))),
	                     e);
}

/* --- the record --- */

static void note_success(struct session *s, struct instance *i, const struct instance_job *job)
{
	int64_t now_ms = session_now(s).ms;

	i->last_error = STR("");
	switch (job->op) {
	case OP_CREATE:
		i->activated_ms = now_ms;
		i->has_data = 1;
		break;
	case OP_UPDATE: i->deployment = DEPLOYMENT_COMPLETED; break;
	case OP_DELETE:
		i->removed_ms = now_ms;
		i->endpoint = STR("");
		i->running_count = 0;
		break;
	default: break;
	}
	i->below_since_ms = 0;
}

static void take_back_wishes(struct instance *i, const struct instance_job *job)
{
	if (job->op == OP_SCALE)
		i->desired_count = job->count_before;
	if (job->op == OP_UPDATE) {
		i->wordpress_version = job->version_before;
		i->tier = (enum instance_tier)job->tier_before;
		i->contact_email = job->contact_before.n ? job->contact_before : i->contact_email;
		i->deployment = DEPLOYMENT_FAILED;
	}
}

/* The resources that may be left: those whose steps say so, and those that the record still has. */
static struct str list_leftovers(struct session *s, const struct instance *i, const struct saga *saga)
{
	struct arena *a = session_arena(s);
	struct str    list = STR("");

	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++) {
		struct str name = str_format(a, "\"%s\"", instance_resource_names[kind]);

		if (str_has(saga->leftovers, name) || i->outputs[kind].n)
			list = str_format(a, "%.*s%s%.*s", STR_ARG(list), list.n ? "," : "", STR_ARG(name));
	}
	return str_format(a, "[%.*s]", STR_ARG(list));
}

static void note_failure(struct session *s, struct instance *i, const struct saga *saga, const struct instance_job *job)
{
	struct str  step = str_from(instance_saga_step(saga));
	const char *code = saga->state == SAGA_PARKED && job->op == OP_CREATE ? "PROV-006" : instance_step_code(step);

	i->last_error = instance_error(session_arena(s), code, saga->reason.n ? saga->reason : saga->last_error, step,
	                               job->op == OP_CREATE ? list_leftovers(s, i, saga) : STR(""), session_now(s).ms);
	take_back_wishes(i, job);
	if (job->op == OP_CREATE)
		i->running_count = 0;
}

enum rc instance_arm_removal(struct session *s, const struct instance *i, struct err *e)
{
	struct timer timer = { .name = instance_removal_timer(s, i->id),
		               .due_ms = session_now(s).ms + removal_retry_ms,
		               .type = STR(EVENT_REMOVAL_DUE),
		               .subject = instance_subject(s, i->id),
		               .detail = JSON_OF(session_arena(s), member_str("instanceId", i->id),
		                                 member_str("tenantId", i->tenant)) };

	return session_arm(s, &timer, e);
}

/* --- archives --- */

/* A timer has it removed then. */
static enum rc put_until(struct session *s, struct backup *b, int64_t archive_ms, struct err *e)
{
	struct timer timer;

	b->until_ms = session_now(s).ms + archive_ms;
	session_put(s, &backup_type, b);
	timer = (struct timer){ .name = str_format(session_arena(s), "instance-archive/%.*s", STR_ARG(b->id)),
		                .due_ms = b->until_ms,
		                .type = STR(EVENT_ARCHIVE_DUE),
		                .subject = instance_subject(s, b->instance),
		                .detail = JSON_OF(session_arena(s), member_str("backupId", b->id),
		                                  member_str("tenantId", b->tenant)) };
	return session_arm(s, &timer, e);
}

enum rc instance_keep_backup(struct session *s, struct backup *b, int64_t archive_ms, struct err *e)
{
	struct backup old;
	bool          is_there;
	enum rc       rc = session_find(s, &backup_type, b->id, &old, &is_there, e);

	if (rc)
		return rc;
	if (is_there)
		old.outputs = b->outputs;
	else
		old = *b;
	old.state = BACKUP_KEPT;
	old.created_ms = old.created_ms ? old.created_ms : session_now(s).ms;
	*b = old;
	return put_until(s, b, archive_ms, e);
}

/* All of it or a part may be there: what made it was perhaps only not heard, or ended later. */
static enum rc note_broken_backup(struct session *s, struct str id, int64_t archive_ms, struct err *e)
{
	struct backup b;
	bool          is_there;
	enum rc       rc = id.n ? session_find(s, &backup_type, id, &b, &is_there, e) : RC_OK;

	if (rc || !id.n || !is_there || b.state != BACKUP_MAKING)
		return rc;
	b.state = BACKUP_BROKEN;
	return put_until(s, &b, archive_ms, e);
}

/* --- the end --- */

static enum rc end_operation(struct session *s, const struct instance *i, const struct saga *saga, bool has_failed,
                             struct err *e)
{
	struct operation o;
	bool             is_there, was_told;
	enum rc          rc = session_find(s, &operation_type, saga->id, &o, &is_there, e);

	if (rc || !is_there)
		return rc;
	was_told = o.state != OPERATION_RUNNING;
	o.state = has_failed ? OPERATION_FAILED : OPERATION_SUCCEEDED;
	o.error = i->last_error;
	o.ended_ms = session_now(s).ms;
	session_put(s, &operation_type, &o);
	return was_told ? RC_OK : instance_tell_end(s, i, &o, e);
}

/* A person resumed a parked creation, and now nothing is left; or a change of size succeeded after all. */
static enum rc end_late(struct session *s, struct instance *i, const struct saga *saga, const struct instance_job *job,
                        struct err *e)
{
	enum rc rc = RC_OK;

	i->operation = STR("");
	if (job->op == OP_SCALE)
		rc = instance_apply(i, INSTANCE_ON_RECOVER, session_now(s).ms, e);
	session_put(s, &instance_type, i);
	if (!rc)
		rc = end_operation(s, i, saga, saga->state != SAGA_DONE, e);
	if (rc || job->op != OP_CREATE)
		return rc;
	return instance_emit(s, EVENT_INSTANCE_CLEARED, i, STR("instances"), STR(""),
	                     JSON_OF(session_arena(s), member_str("instanceId", i->id),
	                             member_str("tenantId", i->tenant)),
	                     e);
}

static enum rc move_on(struct session *s, struct instance *i, const struct saga *saga, enum instance_op op,
                       struct err *e)
{
	enum instance_trigger on = saga->state == SAGA_DONE     ? ends[op].done
	                           : saga->state == SAGA_UNDONE ? ends[op].undone
	                                                        : ends[op].parked;

	if (op == OP_DELETE && i->state == INSTANCE_PENDING_DEPROVISIONING)
		on = STAYS; /* it failed before it began */
	if (saga->state != SAGA_PARKED)
		i->operation = STR("");
	i->updated_ms = session_now(s).ms;
	return on == STAYS ? RC_OK : instance_apply(i, on, session_now(s).ms, e);
}

enum rc instance_on_end(struct session *s, const struct saga *saga, struct err *e)
{
	struct instance_job job;
	struct instance     i;
	bool                is_there, has_failed = saga->state != SAGA_DONE;
	enum rc             rc = instance_job_read(saga->input, session_arena(s), &job, e);

	if (rc || (rc = session_find(s, &instance_type, job.instance, &i, &is_there, e)) || !is_there ||
	    !str_eq(i.operation, saga->id))
		return rc;
	if (has_failed)
		note_failure(s, &i, saga, &job);
	else
		note_success(s, &i, &job);
	if (i.state == INSTANCE_FAILED && job.op != OP_RECOVER && saga->state != SAGA_PARKED)
		return end_late(s, &i, saga, &job, e);
	if (i.state != INSTANCE_FAILED || job.op == OP_RECOVER)
		rc = move_on(s, &i, saga, job.op, e);
	if (!rc && !instance_ok(&i)) /* an operator has skipped a step that made something */
		return err_set(e, RC_CONFLICT, "instance %.*s cannot be %s without all of its resources", STR_ARG(i.id),
		               instance_state_name(i.state));
	session_put(s, &instance_type, &i);
	if (!rc && has_failed &&
	    ((rc = note_broken_backup(s, job.op == OP_BACKUP ? job.backup : job.safety, job.archive_ms, e))))
		return rc;
	if (!rc && has_failed && job.op == OP_DELETE)
		rc = instance_arm_removal(s, &i, e);
	return rc ? rc : end_operation(s, &i, saga, has_failed, e);
}
