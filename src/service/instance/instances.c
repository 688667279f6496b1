/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instances.c - the commands that people and other systems give about instances, and what can be read of them.
 *
 * Always true:
 *   1. A tenant has one live instance at most: its slot names it, and is read by whoever makes another.
 *      [instance_create()]
 *   2. One operation at a time: an instance names its own, and a command that finds one under way is refused. The
 *      operation of a FAILED one may be a saga that is parked with leftovers: the next command takes over, and the
 *      steps of that saga do nothing from then on. [take_over()]
 *   3. The same Idempotency-Key gets the same answer for 30 days. [find_repeat()]
 *
 * Not here: what the sagas do (instance_kinds.c, instance_steps.c), what follows from their ends (instance_end.c).
 */

#include "base/json.h"
#include "base/utf8.h"
#include "kernel/defect.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/timer.h"
#include "service/instance/instance_private.h"

enum { ACTOR_SHOWN_MAX = 160, LOOKS = 1000 };

/* --- what all commands do --- */

struct str instance_subject(struct session *s, struct str id)
{
	return str_format(session_arena(s), "instance/%.*s", STR_ARG(id));
}

enum rc instance_emit(struct session *s, const char *type, const struct instance *i, struct str actor,
                      struct str request_id, struct str detail, struct err *e)
{
	return session_tell(s, type, instance_subject(s, i->id), utf8_line(session_arena(s), actor, ACTOR_SHOWN_MAX),
	                    request_id, detail, e);
}

/* The tenant's instance with this id. Without an id: its last one. Without a tenant: anybody's. */
static enum rc load(struct session *s, struct instance_call *c, struct instance *ret, struct err *e)
{
	struct tenant_slot slot;
	struct str         id = c->id;
	bool               is_there = true;
	enum rc            rc = RC_OK;

	if (!id.n && !(rc = session_find(s, &tenant_slot_type, c->tenant, &slot, &is_there, e)) && is_there)
		id = slot.instance;
	if (!rc && id.n)
		rc = session_find(s, &instance_type, id, ret, &is_there, e);
	if (!rc && (!id.n || !is_there || (c->tenant.n && !str_eq(ret->tenant, c->tenant))))
		return err_set_code(e, RC_NOT_FOUND, "INSTANCE_NOT_FOUND", "tenant %.*s has no instance%s%.*s",
		                    STR_ARG(c->tenant), c->id.n ? " " : "", STR_ARG(c->id));
	return rc;
}

/* The operation of one that FAILED may be a parked saga, which is not in the way of a command until somebody makes it
 * go on. */
static enum rc refuse_if_busy(struct session *s, const struct instance *i, struct err *e)
{
	bool    is_under_way;
	enum rc rc = saga_is_under_way(s, i->operation, &is_under_way, e);

	if (rc || !i->operation.n || (i->state == INSTANCE_FAILED && !is_under_way))
		return rc;
	return err_set_code(e, RC_UNFIT, "OPERATION_IN_PROGRESS", "instance %.*s is %s, operation %.*s is %s",
	                    STR_ARG(i->id), instance_state_name(i->state), STR_ARG(i->operation),
	                    is_under_way
	                            ? "in progress: wait until it has ended, then try again"
	                            : "parked until a person acts: see leasehold saga show and leasehold saga retry");
}

static struct str new_id(struct session *s, const char *prefix)
{
	char id[KERNEL_ID_SIZE];

	kernel_id(kernel_of(s), session_now(s).ms, id);
	return str_format(session_arena(s), "%s%s", prefix, id);
}

/* Whoever gives the command, as far as records and events have room for. */
static struct str actor_of(struct session *s, const struct instance_call *c)
{
	return utf8_line(session_arena(s), c->actor.n ? c->actor : STR("instances"), ACTOR_SHOWN_MAX);
}

/* A saga that is parked with leftovers has nothing more to do, and a creation that has not begun is cancelled. */
static enum rc take_over(struct session *s, const struct instance_call *c, const struct instance *i, struct err *e)
{
	struct saga_action retry = { .id = i->operation, .actor = actor_of(s, c), .request_id = c->request_id };
	struct operation   before;
	struct saga        saga;
	bool               is_there;
	enum rc            rc = RC_OK;

	if (!i->operation.n || (rc = session_find(s, &operation_type, i->operation, &before, &is_there, e)))
		return rc;
	if (is_there && before.state == OPERATION_RUNNING) {
		before.state = OPERATION_CANCELLED;
		before.ended_ms = session_now(s).ms;
		before.error = instance_error(session_arena(s), "CANCELLED",
		                              STR("another command came before it was begun"), STR(""), STR(""),
		                              before.ended_ms);
		session_put(s, &operation_type, &before);
		if ((rc = instance_tell_end(s, i, &before, e)))
			return rc;
	}
	if ((rc = session_find(s, &saga_type, i->operation, &saga, &is_there, e)) || !is_there ||
	    saga.state != SAGA_PARKED)
		return rc;
	return saga_retry(s, &retry, e);
}

static enum rc begin(struct session *s, struct instance_call *c, struct instance *i, const struct instance_job *job,
                     struct err *e)
{
	struct arena *a = session_arena(s);
	struct str    actor = actor_of(s, c);
	enum rc       rc = take_over(s, c, i, e);

	if (rc)
		return rc;
	c->operation = (struct operation){ .id = new_id(s, "op-"),
		                           .instance = i->id,
		                           .tenant = i->tenant,
		                           .kind = job->op,
		                           .requested_by = actor,
		                           .correlation_id = c->correlation_id.n ? c->correlation_id : c->request_id,
		                           .reason = c->want.reason,
		                           .started_ms = session_now(s).ms,
		                           .backup = job->backup };
	i->operation = c->operation.id;
	i->correlation_id = c->operation.correlation_id;
	i->requested_by = actor;
	i->updated_ms = c->operation.started_ms;
	session_add(s, &operation_type, &c->operation);
	(i->version ? session_put : session_add)(s, &instance_type, i);
	c->instance = *i;
	if ((rc = session_start(s, instance_kind_name(job->op), c->operation.id, instance_subject(s, i->id),
	                        instance_job_write(job, a), actor, e)))
		return rc;
	return instance_emit(s, EVENT_INSTANCE_STARTED, i, actor, c->request_id,
	                     JSON_OF(a, member_str("instanceId", i->id), member_str("tenantId", i->tenant),
	                             member_str("operationId", c->operation.id),
	                             member_word("operation", instance_op_names[job->op]),
	                             member_word("status", instance_status(i->state)),
	                             member_if_any(member_str("reason", c->want.reason)),
	                             member_if_any(member_str("correlationId", c->operation.correlation_id))),
	                     e);
}

static struct instance_job job_of(const struct instance_call *c, const struct instance *i, enum instance_op op)
{
	return (struct instance_job){ .instance = i->id,
		                      .tenant = i->tenant,
		                      .op = op,
		                      .count = i->desired_count,
		                      .count_before = i->desired_count,
		                      .archive_ms = c->world->archive_ms };
}

/* --- create --- */

static enum rc find_repeat(struct session *s, struct instance_call *c, struct str *ret_key, struct err *e)
{
	struct once once;
	bool        is_there;
	enum rc     rc = RC_OK;

	*ret_key = str_format(session_arena(s), "%.*s#%.*s", STR_ARG(c->tenant), STR_ARG(c->once));
	if (!c->once.n || (rc = session_find(s, &once_type, *ret_key, &once, &is_there, e)))
		return rc;
	c->is_repeat = is_there;
	if (!is_there)
		return RC_OK;
	if (once.body != c->body)
		return err_set_code(e, RC_CONFLICT, "CONFLICT",
		                    "this Idempotency-Key was used for another request: use a new one");
	if ((rc = session_get(s, &instance_type, once.instance, &c->instance, e)))
		return rc;
	return session_get(s, &operation_type, once.operation, &c->operation, e);
}

/* The tenant's last instance decides. There may be none, or it is gone, failed before it ever ran, or is in the way. */
static enum rc look_for_another(struct session *s, const struct instance_call *c, struct tenant_slot *ret_slot,
                                struct instance *ret, struct err *e)
{
	enum rc rc = session_find_or_new(s, &tenant_slot_type, c->tenant, ret_slot, e);

	*ret = (struct instance){ .state = INSTANCE_NONE };
	if (rc || !ret_slot->instance.n || (rc = session_get(s, &instance_type, ret_slot->instance, ret, e)))
		return rc;
	if (!instance_state_is_live(ret->state) || HAS_DEFECT(SECOND_INSTANCE)) {
		*ret = (struct instance){ .state = INSTANCE_NONE };
		return RC_OK;
	}
	if (ret->state == INSTANCE_FAILED && !ret->has_data)
		return refuse_if_busy(s, ret, e);
	return err_set_code(e, RC_CONFLICT, "CONFLICT", "tenant %.*s already has instance %.*s, which is %s%s",
	                    STR_ARG(c->tenant), STR_ARG(ret->id), instance_state_name(ret->state),
	                    ret->state == INSTANCE_FAILED ? ", with data in it: recover or delete it" : "");
}

static enum rc set_version(const struct instance_call *c, struct instance *i, struct err *e)
{
	const char *versions = c->world->driver->ops->versions;

	i->wordpress_version = instance_version(c->want.wordpress_version, versions);
	if (i->wordpress_version.n)
		return RC_OK;
	return err_set(e, RC_INVALID, "configuration.wordpressVersion: there is no WordPress %.*s here; there are: %s",
	               STR_ARG(c->want.wordpress_version), versions);
}

static enum rc fill(const struct instance_call *c, struct instance *i, struct err *e)
{
	i->tenant = c->tenant;
	i->organization = c->want.organization;
	i->contact_email = c->want.contact_email;
	i->opportunity_id = c->want.opportunity_id;
	i->tier = c->want.tier < 0 ? TIER_STANDARD : (enum instance_tier)c->want.tier;
	i->deployment = DEPLOYMENT_NONE; /* of an earlier try */
	i->desired_count = c->want.desired_count ? c->want.desired_count : INSTANCE_COUNT_MIN;
	return set_version(c, i, e);
}

enum rc instance_create(struct session *s, void *arg, struct err *e)
{
	struct instance_call *c = arg;
	int64_t               now_ms = session_now(s).ms;
	struct tenant_slot    slot;
	struct instance       i;
	struct instance_job   job;
	struct once           once;
	struct str            key;
	bool                  is_new;
	enum rc               rc;

	c->is_repeat = false;
	if ((rc = find_repeat(s, c, &key, e)) || c->is_repeat)
		return rc;
	rc = look_for_another(s, c, &slot, &i, e);
	c->refused = i.state;
	c->requested = OP_CREATE;
	if (rc || (rc = fill(c, &i, e)))
		return rc;
	is_new = i.state == INSTANCE_NONE;
	if (is_new) {
		i.id = new_id(s, "inst-");
		i.created_ms = now_ms;
	}
	if ((rc = instance_apply(&i, is_new ? INSTANCE_ON_CREATE : INSTANCE_ON_RETRY, now_ms, e)))
		return rc;
	i.started_ms = now_ms;
	i.last_error = STR("");
	slot.instance = i.id;
	session_put(s, &tenant_slot_type, &slot);
	job = job_of(c, &i, OP_CREATE);
	if ((rc = begin(s, c, &i, &job, e)) || !c->once.n)
		return rc;
	once = (struct once){
		.key = key, .body = c->body, .instance = i.id, .operation = i.operation, .lot = 1, .at_ms = now_ms
	};
	session_put(s, &once_type, &once);
	return RC_OK;
}

/* --- the others --- */

enum {
	IN_ACTIVE = 1 << INSTANCE_ACTIVE,
	IN_SUSPENDED = 1 << INSTANCE_SUSPENDED,
	IN_PARKED = 1 << INSTANCE_PARKED,
	IN_FAILED = 1 << INSTANCE_FAILED
};

struct str instance_removal_timer(struct session *s, struct str id)
{
	return str_format(session_arena(s), "instance-removal/%.*s", STR_ARG(id));
}

/* One command, from here to its saga. */
struct command {
	struct session       *s;
	struct instance_call *call;
	struct instance       instance;
	struct instance_job   job;
};

static enum rc prepare_scale(struct command *x, struct err *e)
{
	struct instance *i = &x->instance;

	x->job.count = x->call->want.desired_count;
	if (i->desired_count == x->job.count)
		return err_set_code(e, RC_CONFLICT, "CONFLICT", "instance %.*s already has %lld tasks", STR_ARG(i->id),
		                    (long long)i->desired_count);
	i->previous_count = i->desired_count;
	i->desired_count = x->job.count;
	return RC_OK;
}

/* It stays FAILED until everything was found to be there and to answer. */
static enum rc prepare_recover(struct command *x, struct err *e)
{
	if (x->instance.has_data)
		return RC_OK;
	return err_set_code(e, RC_UNFIT, "INVALID_STATUS_TRANSITION",
	                    "instance %.*s was never active: create it again, or delete it", STR_ARG(x->instance.id));
}

static enum rc prepare_update(struct command *x, struct err *e)
{
	const struct instance_want *want = &x->call->want;
	struct instance            *i = &x->instance;

	x->job.version_before = i->wordpress_version;
	x->job.tier_before = i->tier;
	x->job.contact_before = i->contact_email;
	i->tier = want->tier < 0 ? i->tier : (enum instance_tier)want->tier;
	i->contact_email = want->contact_email.n ? want->contact_email : i->contact_email;
	i->deployment = DEPLOYMENT_IN_PROGRESS;
	return want->wordpress_version.n ? set_version(x->call, i, e) : RC_OK;
}

static struct str add_backup(const struct command *x, enum backup_kind kind)
{
	struct backup b = { .id = new_id(x->s, "bkp-"),
		            .instance = x->instance.id,
		            .tenant = x->instance.tenant,
		            .kind = kind,
		            .created_ms = session_now(x->s).ms };

	session_add(x->s, &backup_type, &b);
	return b.id;
}

static enum rc prepare_backup(struct command *x, struct err *e UNUSED)
{
	x->job.backup = add_backup(x, BACKUP_BY_HAND);
	return RC_OK;
}

/* What is there now is archived first, so that restoring the wrong backup can be undone. */
static enum rc prepare_restore(struct command *x, struct err *e)
{
	struct str    id = x->call->want.backup_id;
	struct backup from;
	bool          is_there;
	enum rc       rc = session_find(x->s, &backup_type, id, &from, &is_there, e);

	if (rc)
		return rc;
	if (!is_there || !str_eq(from.tenant, x->instance.tenant) || from.state != BACKUP_KEPT)
		return err_set_code(e, RC_NOT_FOUND, "BACKUP_NOT_FOUND", "instance %.*s has no backup %.*s",
		                    STR_ARG(x->instance.id), STR_ARG(id));
	x->job.backup = from.id;
	x->job.safety = add_backup(x, BACKUP_BEFORE_RESTORE);
	return RC_OK;
}

static enum rc prepare_delete(struct command *x, struct err *e)
{
	x->job.backup = str_format(session_arena(x->s), "final-%.*s", STR_ARG(x->instance.id));
	return session_disarm(x->s, instance_removal_timer(x->s, x->instance.id), e);
}

static const struct {
	enum instance_trigger on;     /* INSTANCE_TRIGGER_COUNT: it stays in its state, */
	uint32_t              states; /* which is one of these */
	bool                  keeps_reason;
	enum rc (*prepare)(struct command *x, struct err *e); /* adds to instance and job; NULL: nothing */
} commands[OP_COUNT] = {
	[OP_SCALE] = { INSTANCE_ON_SCALE, 0, false, prepare_scale },
	[OP_SUSPEND] = { INSTANCE_ON_SUSPEND, 0, true, NULL },
	[OP_RESUME] = { INSTANCE_ON_RESUME, 0, false, NULL },
	[OP_PARK] = { INSTANCE_ON_PARK, 0, true, NULL },
	[OP_UNPARK] = { INSTANCE_ON_UNPARK, 0, false, NULL },
	[OP_UPDATE] = { INSTANCE_TRIGGER_COUNT, IN_ACTIVE, false, prepare_update },
	[OP_BACKUP] = { INSTANCE_TRIGGER_COUNT, IN_ACTIVE | IN_SUSPENDED | IN_PARKED, false, prepare_backup },
	[OP_RESTORE] = { INSTANCE_TRIGGER_COUNT, IN_ACTIVE | IN_SUSPENDED, false, prepare_restore },
	[OP_ROTATE] = { INSTANCE_TRIGGER_COUNT, IN_ACTIVE, false, NULL },
	[OP_RECOVER] = { INSTANCE_TRIGGER_COUNT, IN_FAILED, false, prepare_recover },
	[OP_DELETE] = { INSTANCE_ON_DELETE, 0, true, prepare_delete },
};

/* A removal need not wait for a creation that has not begun, unless that is already clearing up. */
static enum rc see_if_unbegun(struct session *s, const struct instance *i, bool *ret, struct err *e)
{
	struct saga saga;
	bool        is_there;
	enum rc     rc = RC_OK;

	*ret = false;
	if (i->state != INSTANCE_PENDING_PROVISIONING ||
	    (rc = session_find(s, &saga_type, i->operation, &saga, &is_there, e)))
		return rc;
	*ret = !is_there || saga.state != SAGA_UNDOING;
	return RC_OK;
}

/* If nothing is under way, move it along the domain's table, or see that it is in one of the states. */
static enum rc enter(struct session *s, enum instance_op op, struct instance *i, struct err *e)
{
	bool    is_unbegun = false;
	enum rc rc = op == OP_DELETE ? see_if_unbegun(s, i, &is_unbegun, e) : RC_OK;

	if (rc || (!is_unbegun && (rc = refuse_if_busy(s, i, e))))
		return rc;
	if (commands[op].on < INSTANCE_TRIGGER_COUNT)
		return instance_apply(i, commands[op].on, session_now(s).ms, e);
	if (!(commands[op].states & UINT32_C(1) << i->state))
		return err_set_code(e, RC_UNFIT, "INVALID_STATUS_TRANSITION", "instance %.*s is %s: %s is not possible",
		                    STR_ARG(i->id), instance_state_name(i->state), instance_op_names[op]);
	return RC_OK;
}

static enum rc run_command(struct session *s, struct instance_call *c, enum instance_op op, struct err *e)
{
	struct command   x = { .s = s, .call = c };
	struct instance *i = &x.instance;
	bool             goes_on; /* a removal that failed */
	enum rc          rc = load(s, c, i, e);

	if (rc)
		return rc;
	c->refused = i->state;
	c->requested = op;
	goes_on = op == OP_DELETE && i->state == INSTANCE_PENDING_DEPROVISIONING && !i->operation.n;
	if (!goes_on && (rc = enter(s, op, i, e)))
		return rc;
	x.job = job_of(c, i, op);
	if (commands[op].keeps_reason && c->want.reason.n)
		i->reason = c->want.reason;
	if (commands[op].prepare && (rc = commands[op].prepare(&x, e)))
		return rc;
	return begin(s, c, i, &x.job, e);
}

TXN(instance_scale, run_command(s, arg, OP_SCALE, e))
TXN(instance_suspend, run_command(s, arg, OP_SUSPEND, e))
TXN(instance_resume, run_command(s, arg, OP_RESUME, e))
TXN(instance_park, run_command(s, arg, OP_PARK, e))
TXN(instance_unpark, run_command(s, arg, OP_UNPARK, e))
TXN(instance_update, run_command(s, arg, OP_UPDATE, e))
TXN(instance_backup, run_command(s, arg, OP_BACKUP, e))
TXN(instance_restore, run_command(s, arg, OP_RESTORE, e))
TXN(instance_rotate, run_command(s, arg, OP_ROTATE, e))
TXN(instance_recover, run_command(s, arg, OP_RECOVER, e))
TXN(instance_delete, run_command(s, arg, OP_DELETE, e))

txn_fn *instance_action(struct str word)
{
	static const struct {
		const char *word;
		txn_fn     *run;
	} actions[] = {
		{ "suspend", instance_suspend }, { "stop", instance_suspend }, { "resume", instance_resume },
		{ "start", instance_resume },    { "park", instance_park },    { "unpark", instance_unpark },
		{ "recover", instance_recover },
	};

	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (str_eq(word, str_from(actions[i].word)))
			return actions[i].run;
	return NULL;
}

/* --- reading --- */

static enum rc find_saga(struct session *s, struct str id, struct saga *ret, struct err *e)
{
	bool is_there;

	*ret = (struct saga){ 0 };
	return id.n ? session_find(s, &saga_type, id, ret, &is_there, e) : RC_OK;
}

enum rc instance_get(struct session *s, void *arg, struct err *e)
{
	struct instance_call *c = arg;
	bool                  is_there;
	enum rc               rc = load(s, c, &c->instance, e);

	c->operation = (struct operation){ 0 };
	if (!rc && c->instance.operation.n)
		rc = session_find(s, &operation_type, c->instance.operation, &c->operation, &is_there, e);
	return rc ? rc : find_saga(s, c->instance.operation, &c->saga, e);
}

enum rc operation_get(struct session *s, void *arg, struct err *e)
{
	struct operation_get *g = arg;
	bool                  is_there;
	enum rc               rc = session_find(s, &operation_type, g->id, &g->operation, &is_there, e);

	if (rc)
		return rc;
	if (!is_there || (g->tenant.n && !str_eq(g->operation.tenant, g->tenant)) ||
	    (g->instance.n && !str_eq(g->operation.instance, g->instance)))
		return err_set_code(e, RC_NOT_FOUND, "OPERATION_NOT_FOUND", "instance %.*s has no operation %.*s",
		                    STR_ARG(g->instance), STR_ARG(g->id));
	return find_saga(s, g->id, &g->saga, e);
}

static bool has_status(const void *record, const void *arg)
{
	return str_eq(str_from(instance_status(((const struct instance *)record)->state)), *(const struct str *)arg);
}

/* A full page may be the last one; then there is no cursor. */
static enum rc query_page(struct session *s, struct query q, struct page *ret, struct err *e)
{
	struct page after;
	enum rc     rc = session_query(s, &q, ret, e);

	if (rc || !ret->next.n || q.filter)
		return rc;
	q.cursor = ret->next;
	q.limit = 1;
	if (!(rc = session_query(s, &q, &after, e)) && !after.count)
		ret->next = STR("");
	return rc;
}

enum rc instance_list(struct session *s, void *arg, struct err *e)
{
	enum { STATE_FIELD = 2 };
	struct instance_list     *l = arg;
	const struct query_filter filter = { has_status, &l->status, UINT64_C(1) << STATE_FIELD, LOOKS };
	struct query        q = { .type = &instance_type, .index = QUERY_ALL, .limit = l->limit, .cursor = l->cursor };
	enum instance_state state;

	if (l->tenant.n) {
		q.index = INSTANCE_BY_TENANT;
		q.hash = value_text(l->tenant);
		q.is_descending = true;
	} else if (instance_state_parse(l->status, &state) && state > INSTANCE_CONFIGURING_WORDPRESS) {
		q.index = INSTANCE_BY_STATE; /* a status that is one state */
		q.hash = value_int(state);
	}
	if (l->status.n && q.index != INSTANCE_BY_STATE)
		q.filter = &filter;
	return query_page(s, q, &l->page, e);
}

enum rc backup_list(struct session *s, void *arg, struct err *e)
{
	struct backup_list *l = arg;
	struct query        q = query_of(&backup_type, BACKUP_BY_INSTANCE, value_text(l->instance), l->limit);

	q.is_descending = true;
	q.cursor = l->cursor;
	return query_page(s, q, &l->page, e);
}

enum rc instance_note_secret(struct session *s, void *arg, struct err *e)
{
	struct instance_call *c = arg;
	enum rc               rc = load(s, c, &c->instance, e);

	if (rc)
		return rc;
	if (!c->instance.outputs[INSTANCE_SECRET].n)
		return err_set_code(e, RC_NOT_FOUND, "SECRET_NOT_FOUND", "instance %.*s has no secret: it is %s",
		                    STR_ARG(c->instance.id), instance_state_name(c->instance.state));
	return instance_emit(s, EVENT_INSTANCE_SECRET, &c->instance, c->actor, c->request_id,
	                     JSON_OF(session_arena(s), member_str("instanceId", c->instance.id),
	                             member_str("tenantId", c->instance.tenant)),
	                     e);
}
