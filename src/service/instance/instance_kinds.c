/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_kinds.c - the sagas of instances: a table of steps for each operation, with their limits; and what a saga is
 * told to do. What the steps do is in instance_steps.c.
 *
 * Provisioning makes the parts in the order in which each has what it needs, installs WordPress, and opens the route
 * last: before that nobody can reach the installer. Going back is the reverse.
 *
 * Removing goes forward only. The route is closed and the tasks are stopped first, so that nothing is written any more;
 * then both data sets are archived; only then anything is deleted, and each deletion is checked. A step that does not
 * succeed ends the saga; the next one goes through the same steps, and finds done what is done.
 */
#include "base/json.h"
#include "service/instance/instance_private.h"

enum {
	TRIES = 4,           /* three more, the first after a second */
	BACKOFF_MAX_SEC = 8, /* so that an undo that cannot succeed is given up within a minute */
	POLL_MS = 50,
	POLLS = 100000, /* the deadline ends it */
	REMOVE_TRIES = 12,
	SEC = 1000,
};

/* --- the job --- */

struct str instance_job_write(const struct instance_job *j, struct arena *a)
{
	return JSON_OF(a, member_str("instance", j->instance), member_str("tenant", j->tenant), member_int("op", j->op),
	               member_int("count", j->count), member_int("countBefore", j->count_before),
	               member_str("versionBefore", j->version_before), member_int("tierBefore", j->tier_before),
	               member_str("contactBefore", j->contact_before), member_str("backup", j->backup),
	               member_str("safety", j->safety), member_int("archiveMs", j->archive_ms));
}

enum rc instance_job_read(struct str input, struct arena *a, struct instance_job *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	int64_t                     op;
	enum rc                     rc = json_parse(input, &o, e);

	if (rc)
		return err_wrap(e, rc, "the input of a saga of an instance");
	if (!json_take_text(o, "instance", a, &ret->instance) || !json_take_text(o, "tenant", a, &ret->tenant) ||
	    !json_get_number(o, "op", -1, &op) || !json_get_number(o, "count", 0, &ret->count) ||
	    !json_get_number(o, "countBefore", 0, &ret->count_before) ||
	    !json_take_text(o, "versionBefore", a, &ret->version_before) ||
	    !json_get_number(o, "tierBefore", 0, &ret->tier_before) ||
	    !json_take_text(o, "contactBefore", a, &ret->contact_before) ||
	    !json_take_text(o, "backup", a, &ret->backup) || !json_take_text(o, "safety", a, &ret->safety) ||
	    !json_get_number(o, "archiveMs", 0, &ret->archive_ms) || op < 0 || op >= OP_COUNT || ret->tier_before < 0 ||
	    ret->tier_before >= TIER_COUNT)
		return err_set(e, RC_CORRUPT, "the input of a saga of an instance cannot be read");
	ret->op = (enum instance_op)op;
	return RC_OK;
}

/* --- the kinds --- */

/* clang-format off */
#define TIMES(call_sec, most, backoff_sec, limit_sec) \
	.timeout_ms = call_sec * SEC, .tries = most, .backoff_max_ms = backoff_sec * SEC, .deadline_ms = limit_sec * SEC
#define STEP(text, limit_sec, ...)   { .name = text, TIMES(30, TRIES, BACKOFF_MAX_SEC, limit_sec), __VA_ARGS__ }
#define LONG(text, limit_sec, ...)   { .name = text, TIMES(120, TRIES, BACKOFF_MAX_SEC, limit_sec), __VA_ARGS__ }
#define POLL(text, limit_sec, ...)   { .name = text, TIMES(0, POLLS, 1, limit_sec), .backoff_ms = POLL_MS, __VA_ARGS__ }
#define GONE(text, ...)              { .name = text, TIMES(120, REMOVE_TRIES, 60, 0), __VA_ARGS__ }
#define ACT(name)                    .act = instance_act_##name
#define UNDO(name)                   .undo = instance_undo_##name
#define PART(text, limit_sec)        STEP(text, limit_sec, ACT(create_part), UNDO(remove_part))

static const struct saga_step create_steps[] = {
	LONG("prepare", 60, ACT(begin_creation), UNDO(remove_rest), .clears = true), PART("storage", 60),
	PART("database", 120), PART("secret", 30), PART("route", 60), PART("workers", 60),
	POLL("stable", 600, ACT(wait_stable)), POLL("health", 60, ACT(check_health)), PART("identity", 120),
	LONG("configure", 240, ACT(configure)), STEP("open", 60, ACT(open_route), UNDO(close_route)),
};
static const struct saga_step scale_steps[] = {
	STEP("scale", 60, ACT(start_tasks), UNDO(start_again)), POLL("stable", 300, ACT(wait_stable)),
};
static const struct saga_step suspend_steps[] = {
	STEP("close", 60, ACT(suspend_route), UNDO(open_route)), STEP("stop", 60, ACT(stop_tasks), UNDO(start_again)),
	POLL("drained", 120, ACT(wait_drained)),
};
static const struct saga_step resume_steps[] = {
	STEP("start", 60, ACT(start_tasks), UNDO(stop_tasks)), POLL("stable", 300, ACT(wait_stable)),
	STEP("open", 60, ACT(open_route), UNDO(suspend_route)),
};
static const struct saga_step park_steps[] = {
	STEP("close", 60, ACT(park_route), UNDO(open_route)), STEP("stop", 60, ACT(stop_tasks), UNDO(start_again)),
	POLL("drained", 120, ACT(wait_drained)), STEP("workers", 60, ACT(delete_part), UNDO(create_again)),
};
static const struct saga_step unpark_steps[] = {
	PART("workers", 60), POLL("stable", 600, ACT(wait_stable)),
	STEP("open", 60, ACT(open_route), UNDO(park_route)),
};
static const struct saga_step update_steps[] = {
	LONG("configure", 300, ACT(configure), UNDO(configure_back)), POLL("stable", 300, ACT(wait_stable)),
};
static const struct saga_step backup_steps[] = {
	LONG("archive", 300, ACT(archive_by_hand)),
};
static const struct saga_step restore_steps[] = {
	LONG("archive", 300, ACT(archive_before_restore)), LONG("restore", 300, ACT(restore)),
};
static const struct saga_step rotate_steps[] = {
	LONG("rotate", 300, ACT(rotate)),
};
static const struct saga_step recover_steps[] = {
	POLL("resources", 60, ACT(check_resources)), STEP("start", 60, ACT(start_tasks)),
	POLL("stable", 300, ACT(wait_stable)), STEP("open", 60, ACT(open_route)),
};
static const struct saga_step delete_steps[] = {
	GONE("close", ACT(begin_removal)), GONE("stop", ACT(stop_tasks)), POLL("drained", 120, ACT(wait_drained)),
	GONE("archive", ACT(archive_all)), GONE("workers", ACT(delete_part)), GONE("route", ACT(delete_part)),
	GONE("identity", ACT(delete_part)), GONE("secret", ACT(delete_part)), GONE("database", ACT(delete_part)),
	GONE("storage", ACT(delete_part)), GONE("verify", ACT(check_none)),
};
/* clang-format on */

static const struct {
	const char             *kind;
	const struct saga_step *steps;
	size_t                  count;
	int64_t                 deadline_sec;
} kinds[OP_COUNT] = {
#define KIND(op, name, table, limit_sec) [OP_##op] = { "instance-" name, table, ARRAY_LEN(table), limit_sec }
	KIND(CREATE, "create", create_steps, 900),    KIND(SCALE, "scale", scale_steps, 300),
	KIND(SUSPEND, "suspend", suspend_steps, 120), KIND(RESUME, "resume", resume_steps, 300),
	KIND(PARK, "park", park_steps, 300),          KIND(UNPARK, "unpark", unpark_steps, 900),
	KIND(UPDATE, "update", update_steps, 900),    KIND(BACKUP, "backup", backup_steps, 600),
	KIND(RESTORE, "restore", restore_steps, 900), KIND(ROTATE, "rotate", rotate_steps, 300),
	KIND(RECOVER, "recover", recover_steps, 600), KIND(DELETE, "delete", delete_steps, 0),
#undef KIND
};

const char *instance_kind_name(enum instance_op op)
{
	return kinds[op].kind;
}

const char *instance_step_name(enum instance_op op, size_t step)
{
	return step < kinds[op].count ? kinds[op].steps[step].name : "";
}

/* OP_COUNT: none of ours. */
static enum instance_op op_of(struct str kind)
{
	int op = 0;

	while (op < OP_COUNT && !str_eq(str_from(kinds[op].kind), kind))
		op++;
	return (enum instance_op)op;
}

void instance_kinds(struct instance_world *w, struct saga_kind ret[OP_COUNT])
{
	for (int op = 0; op < OP_COUNT; op++)
		ret[op] = (struct saga_kind){ .name = kinds[op].kind,
			                      .steps = kinds[op].steps,
			                      .step_count = kinds[op].count,
			                      .deadline_ms = kinds[op].deadline_sec * SEC,
			                      .on_end = instance_on_end,
			                      .world = w };
}

/* On the way back the step under way is one that is undone: the last that was begun is the one that failed. */
const char *instance_saga_step(const struct saga *saga)
{
	enum instance_op op = op_of(saga->kind);
	size_t           at = (size_t)saga->step;

	if (op == OP_COUNT)
		return "";
	if (saga->state != SAGA_RUNNING)
		for (size_t i = 0; i < saga->marks.n; i++)
			at = saga->marks.p[i] != SAGA_MARK_NONE ? i : at;
	return instance_step_name(op, at);
}

int64_t instance_saga_steps(const struct saga *saga)
{
	enum instance_op op = op_of(saga->kind);

	return op == OP_COUNT ? 0 : (int64_t)kinds[op].count;
}
