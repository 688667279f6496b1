/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_steps.c - what the steps of instances' sagas do outside, with the driver. Which steps a saga has, in which
 * order and with which limits, is in instance_kinds.c.
 *
 * What a step made is checked, and its id is in the record, before the next one begins. Going back removes what the
 * record or the driver has, including what an earlier try left.
 *
 * Always true:
 *   1. A saga that is not the instance's operation any more does nothing. [act(), undo()]
 *   2. Going back never deletes what belongs to another instance. [remove_own()]
 *   3. No data set of one that was active is deleted before there is an archive of it. [archive_all(), delete_part()]
 */
#include "base/json.h"
#include "kernel/defect.h"
#include "service/instance/instance_private.h"
#include "store/walk.h"

struct step {
	struct instance_world  *world;
	struct instance_driver *driver;
	struct saga_call       *call;
	struct arena           *arena;
	struct instance_job     job;
	struct instance         instance;
	struct instance_spec    spec;
	enum instance_resource  kind; /* of a step that is called as a resource is; else INSTANCE_RESOURCE_COUNT */
	bool                    is_stale;
};

/* One step, of a saga that is the instance's operation. */
typedef enum rc step_fn(struct step *st, struct err *e);

/* One that is a single call, of st and e. */
#define STEP(name, call)                                    \
	static enum rc name(struct step *st, struct err *e) \
	{                                                   \
		return call;                                \
	}

/* --- the frame of each call --- */

static struct instance_spec spec_of(const struct instance *i)
{
	struct instance_spec spec = { .tenant = i->tenant,
		                      .instance = i->id,
		                      .organization = i->organization,
		                      .contact_email = i->contact_email,
		                      .wordpress_version = i->wordpress_version,
		                      .desired_count = i->desired_count };

	instance_tier_size(i->tier, &spec.cpu_units, &spec.memory_mb);
	return spec;
}

static enum instance_resource resource_named(const char *name)
{
	int kind = 0;

	while (kind < INSTANCE_RESOURCE_COUNT && !str_eq(str_from(instance_resource_names[kind]), str_from(name)))
		kind++;
	return (enum instance_resource)kind;
}

static enum rc look(struct saga_call *c, struct step *ret, struct err *e)
{
	bool    is_there;
	enum rc rc;

	*ret = (struct step){ .world = c->world, .call = c, .arena = c->arena };
	ret->driver = ret->world->driver;
	if ((rc = instance_job_read(c->saga->input, c->arena, &ret->job, e)) ||
	    (rc = store_find(ret->world->store, &instance_type, ret->job.instance, c->arena, &ret->instance, &is_there,
	                     e)))
		return rc;
	ret->is_stale = !is_there || !str_eq(ret->instance.operation, c->saga->id);
	ret->spec = spec_of(&ret->instance);
	ret->kind = resource_named(instance_step_name(ret->job.op, (size_t)c->saga->step));
	return RC_OK;
}

static enum rc act(struct saga_call *c, step_fn *run, struct err *e)
{
	struct step st;
	enum rc     rc = look(c, &st, e);

	if (rc)
		return rc;
	if (st.is_stale)
		return err_set(e, RC_CONFLICT, "another operation has taken over instance %.*s",
		               STR_ARG(st.job.instance));
	return run(&st, e);
}

/* An operation that was taken over has nothing to undo. */
static enum rc undo(struct saga_call *c, step_fn *run, struct err *e)
{
	struct step st;
	enum rc     rc = look(c, &st, e);

	return rc || st.is_stale ? rc : run(&st, e);
}

/* --- what a step changes of the record --- */

struct record_change {
	struct step          *step;
	enum instance_trigger on; /* INSTANCE_TRIGGER_COUNT: the state stays */
	bool                  sets_outputs;
	struct str            outputs;
	int64_t               running; /* -1: as it was */
	struct backup        *backup;
};

static void take_endpoint(struct instance *i, struct str outputs, struct arena *a)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct str                  endpoint;

	if (outputs.n && !json_parse(outputs, &o, NULL) && json_take_text(o, "endpoint", a, &endpoint) &&
	    endpoint.n <= INSTANCE_ENDPOINT_MAX)
		i->endpoint = endpoint;
}

static enum rc change_record(struct session *s, void *arg, struct err *e)
{
	struct record_change *ch = arg;
	struct step          *st = ch->step;
	struct instance       i;
	enum rc               rc = session_get(s, &instance_type, st->job.instance, &i, e);

	if (rc)
		return rc;
	if (!str_eq(i.operation, st->call->saga->id))
		return err_set(e, RC_CONFLICT, "another operation has taken over instance %.*s", STR_ARG(i.id));
	if (ch->sets_outputs) {
		i.outputs[st->kind] = ch->outputs;
		if (st->kind == INSTANCE_ROUTE)
			take_endpoint(&i, ch->outputs, session_arena(s));
	}
	if (ch->running >= 0)
		i.running_count = ch->running;
	if (ch->on < INSTANCE_TRIGGER_COUNT && instance_step(i.state, ch->on) &&
	    (rc = instance_apply(&i, ch->on, session_now(s).ms, e)))
		return rc;
	if (ch->backup && (rc = instance_keep_backup(s, ch->backup, st->job.archive_ms, e)))
		return rc;
	if (ch->backup && st->job.op == OP_DELETE) {
		i.archive = ch->backup->id;
		i.archive_until_ms = ch->backup->until_ms;
	}
	session_put(s, &instance_type, &i);
	return RC_OK;
}

static enum rc save(struct step *st, struct record_change ch, struct err *e)
{
	ch.step = st;
	return store_run(st->world->store, change_record, &ch, st->arena, e);
}

static enum rc advance(struct step *st, enum instance_trigger on, struct err *e)
{
	return save(st, (struct record_change){ .on = on, .running = -1 }, e);
}

/* --- resources --- */

/* The state that is over when this one is there. */
static enum instance_trigger trigger_after(enum instance_resource kind)
{
	switch (kind) {
	case INSTANCE_STORAGE: return INSTANCE_ON_STORAGE_READY;
	case INSTANCE_SECRET: return INSTANCE_ON_DATABASE_READY;
	case INSTANCE_IDENTITY: return INSTANCE_ON_IDENTITY_READY;
	default: return INSTANCE_TRIGGER_COUNT;
	}
}

/* Is it there, as it should be? */
static enum rc verify(struct step *st, enum instance_resource kind, bool wants, struct err *e)
{
	struct str outputs;
	bool       exists;
	enum rc    rc = st->driver->ops->check(st->driver, st->job.tenant, kind, st->arena, &exists, &outputs, e);

	if (!rc && exists != wants)
		return err_set(e, RC_UNAVAILABLE, "the %s of tenant %.*s is %s there", instance_resource_names[kind],
		               STR_ARG(st->job.tenant), wants ? "not" : "still");
	return rc;
}

static enum rc note_outputs(struct step *st, enum instance_trigger on, struct str outputs, struct err *e)
{
	return save(st, (struct record_change){ .on = on, .sets_outputs = true, .outputs = outputs, .running = -1 }, e);
}

static enum rc create_part(struct step *st, struct err *e)
{
	struct str outputs = STR("");
	enum rc    rc = st->driver->ops->create(st->driver, &st->spec, st->kind, st->arena, &outputs, e);

	if (!rc && outputs.n > INSTANCE_OUTPUTS_MAX)
		rc = err_set(e, RC_TOO_LARGE, "the outputs of the %s have %zu bytes", instance_resource_names[st->kind],
		             outputs.n);
	if (!rc)
		rc = verify(st, st->kind, true, e);
	return rc ? err_wrap(e, rc, "%s", instance_resource_names[st->kind])
	          : note_outputs(st, trigger_after(st->kind), outputs, e);
}

/* When going back: what is there but not in the record may be another instance's. The driver says whose it is; if it
 * does not, creating it again tells. */
static enum rc is_own(struct step *st, enum instance_resource kind, struct str outputs, bool *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct str                  owner = STR("");
	enum rc                     rc;

	if (outputs.n && !json_parse(outputs, &o, NULL) && json_get_text(o, "instance", &owner) && owner.n) {
		*ret = str_eq(owner, st->job.instance);
		return RC_OK;
	}
	rc = st->driver->ops->create(st->driver, &st->spec, kind, st->arena, &outputs, e);
	*ret = rc != RC_CONFLICT;
	return err_forgive(e, rc, RC_CONFLICT);
}

static enum rc remove_own(struct step *st, enum instance_resource kind, struct err *e)
{
	struct str outputs;
	bool       exists = true;
	enum rc    rc = RC_OK;

	if (!st->instance.outputs[kind].n)
		rc = st->driver->ops->check(st->driver, st->job.tenant, kind, st->arena, &exists, &outputs, e);
	if (!rc && exists && !st->instance.outputs[kind].n)
		rc = is_own(st, kind, outputs, &exists, e);
	if (rc || !exists || (HAS_DEFECT(FORGET_PART) && kind == INSTANCE_DATABASE))
		return rc;
	rc = st->driver->ops->delete (st->driver, st->job.tenant, kind, e);
	return rc ? rc : verify(st, kind, false, e);
}

static enum rc remove_part(struct step *st, struct err *e)
{
	enum rc rc = remove_own(st, st->kind, e);

	return rc ? err_wrap(e, rc, "%s", instance_resource_names[st->kind])
	          : note_outputs(st, INSTANCE_TRIGGER_COUNT, STR(""), e);
}

STEP(begin_creation, advance(st, INSTANCE_ON_BEGIN, e))

/* The last undo also removes what an earlier try left and this one has not reached. */
static enum rc remove_rest(struct step *st, struct err *e)
{
	enum rc rc = RC_OK;

	for (int kind = INSTANCE_RESOURCE_COUNT - 1; !rc && kind >= 0; kind--) {
		st->kind = (enum instance_resource)kind;
		if ((rc = remove_own(st, st->kind, e)))
			return err_wrap(e, rc, "%s", instance_resource_names[kind]);
		if (st->instance.outputs[kind].n)
			rc = note_outputs(st, INSTANCE_TRIGGER_COUNT, STR(""), e);
	}
	return rc;
}

/* For removals and parking: for good. */
static enum rc delete_part(struct step *st, struct err *e)
{
	enum rc rc;

	if (st->job.op == OP_DELETE && st->instance.has_data && !st->instance.archive.n && !HAS_DEFECT(NO_ARCHIVE))
		return err_set(e, RC_INTERNAL, "instance %.*s has data and no archive: nothing of it is deleted",
		               STR_ARG(st->job.instance));
	if (!(rc = st->driver->ops->delete (st->driver, st->job.tenant, st->kind, e)))
		rc = verify(st, st->kind, false, e);
	if (rc && !HAS_DEFECT(GONE_UNSEEN))
		return err_wrap(e, rc, "%s", instance_resource_names[st->kind]);
	return note_outputs(st, INSTANCE_TRIGGER_COUNT, STR(""), e);
}

static enum rc create_again(struct step *st, struct err *e)
{
	struct str outputs;
	enum rc    rc = st->driver->ops->create(st->driver, &st->spec, st->kind, st->arena, &outputs, e);

	return rc ? rc : note_outputs(st, INSTANCE_TRIGGER_COUNT, outputs, e);
}

/* --- tasks --- */

static enum rc count_tasks(struct step *st, int64_t wanted, enum instance_trigger on, struct err *e)
{
	struct instance_tasks tasks;
	enum rc               rc = st->driver->ops->tasks(st->driver, st->job.tenant, st->arena, &tasks, e);

	if (rc)
		return rc;
	if (tasks.running != wanted || tasks.desired != wanted || (wanted && !tasks.is_healthy))
		return err_set(e, RC_UNAVAILABLE, "%lld of %lld tasks run%s", (long long)tasks.running,
		               (long long)wanted, tasks.is_healthy ? "" : ", not all answer");
	return save(st, (struct record_change){ .on = on, .running = tasks.running }, e);
}

/* Waiting does not help once the container service has given up. */
static enum rc wait_stable(struct step *st, struct err *e)
{
	bool is_new = st->job.op == OP_CREATE;

	if (is_new && st->instance.deployment == DEPLOYMENT_FAILED)
		return err_set(e, RC_INVALID, "the container service says that the deployment failed");
	return count_tasks(st, st->instance.desired_count, is_new ? INSTANCE_ON_STABLE : INSTANCE_TRIGGER_COUNT, e);
}

STEP(wait_drained, count_tasks(st, 0, INSTANCE_TRIGGER_COUNT, e))
STEP(start_tasks, st->driver->ops->scale(st->driver, st->job.tenant, st->instance.desired_count, e))
STEP(start_again, st->driver->ops->scale(st->driver, st->job.tenant, st->job.count_before, e))

/* Without workers there is nothing to stop. */
STEP(stop_tasks, err_forgive(e, st->driver->ops->scale(st->driver, st->job.tenant, 0, e), RC_NOT_FOUND))

/* --- the route --- */

/* During a removal it may be gone already. */
static enum rc set_route(struct step *st, enum instance_route to, struct err *e)
{
	enum rc rc = st->driver->ops->set_route(st->driver, st->job.tenant, to, e);

	return st->job.op == OP_DELETE ? err_forgive(e, rc, RC_NOT_FOUND) : rc;
}

STEP(open_route, set_route(st, ROUTE_OPEN, e))
STEP(close_route, set_route(st, ROUTE_CLOSED, e))
STEP(suspend_route, set_route(st, ROUTE_SUSPENDED, e))
STEP(park_route, set_route(st, ROUTE_PARKED, e))

/* One request through the rule that only we can pass. */
static enum rc check_health(struct step *st, struct err *e)
{
	enum rc rc = verify(st, INSTANCE_ROUTE, true, e);

	return rc ? rc : advance(st, INSTANCE_ON_ROUTED, e);
}

/* --- WordPress and its data --- */

STEP(configure, st->driver->ops->configure(st->driver, &st->spec, e))

static enum rc configure_back(struct step *st, struct err *e)
{
	st->spec.wordpress_version = st->job.version_before;
	instance_tier_size((enum instance_tier)st->job.tier_before, &st->spec.cpu_units, &st->spec.memory_mb);
	return configure(st, e);
}

static enum rc archive_as(struct step *st, struct str name, enum backup_kind kind, struct err *e)
{
	struct backup b = { .id = name, .instance = st->job.instance, .tenant = st->job.tenant, .kind = kind };
	enum rc       rc = st->driver->ops->archive(st->driver, st->job.tenant, name, st->arena, &b.outputs, e);

	if (!rc && (!b.outputs.n || b.outputs.n > INSTANCE_OUTPUTS_MAX))
		rc = err_set(e, RC_UNAVAILABLE, "the driver did not say where archive %.*s is", STR_ARG(name));
	return rc ? err_wrap(e, rc, "archive")
	          : save(st, (struct record_change){ .on = INSTANCE_TRIGGER_COUNT, .running = -1, .backup = &b }, e);
}

STEP(archive_by_hand, archive_as(st, st->job.backup, BACKUP_BY_HAND, e))
STEP(archive_before_restore, archive_as(st, st->job.safety, BACKUP_BEFORE_RESTORE, e))

/* One that was never active has no data of the tenant. */
static enum rc archive_all(struct step *st, struct err *e)
{
	if (!st->instance.has_data || st->instance.archive.n || HAS_DEFECT(NO_ARCHIVE))
		return RC_OK;
	return archive_as(st, st->job.backup, BACKUP_FINAL, e);
}

STEP(restore, st->driver->ops->restore(st->driver, st->job.tenant, st->job.backup, e))
STEP(rotate, st->driver->ops->rotate(st->driver, st->job.tenant, e))

/* --- beginning and end of a removal --- */

static enum rc begin_removal(struct step *st, struct err *e)
{
	enum rc rc = advance(st, INSTANCE_ON_REMOVE, e);

	return rc ? rc : close_route(st, e);
}

static enum rc check_all(struct step *st, bool wants, struct err *e)
{
	enum rc rc = RC_OK;

	for (int kind = 0; !rc && kind < INSTANCE_RESOURCE_COUNT && !HAS_DEFECT(GONE_UNSEEN); kind++)
		rc = verify(st, (enum instance_resource)kind, wants, e);
	return rc;
}

STEP(check_none, check_all(st, false, e))
STEP(check_resources, check_all(st, true, e))

/* --- as sagas call them --- */

#define X(name)                                                         \
	enum rc instance_act_##name(struct saga_call *c, struct err *e) \
	{                                                               \
		return act(c, name, e);                                 \
	}
INSTANCE_ACTS(X)
#undef X

#define X(name)                                                          \
	enum rc instance_undo_##name(struct saga_call *c, struct err *e) \
	{                                                                \
		return undo(c, name, e);                                 \
	}
INSTANCE_UNDOS(X)
#undef X
