/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bell.c - one schedule for each open hold that has an end.
 *
 * The queue hears of each change of a hold after its commit, looks at the hold as it is by then, and has the
 * scheduler agree: a schedule that should be there and is there already is fine, and so is one that should be gone
 * and is gone. An extended hold gets a new schedule of the same name. Once a day all schedules of our name are
 * compared with all open holds: what belongs to none is deleted, what is missing is made.
 *
 * Always true:
 *   1. Nothing waits for a bell: whoever it wakes looks for what is due, by the timers' records.
 *   2. Existing schedules are listed before the holds are read: one whose hold is not open then has no use. [sweep()]
 *   3. Names begin with HOLD_NAME_PREFIX; no other schedule is touched.
 */
#include "providers/aws/messages/bell.h"

#include "base/clock.h"
#include "base/grow.h"
#include "base/json.h"
#include "domain/hold.h"
#include "kernel/records.h"
#include "kernel/timer.h"
#include "providers/aws/call.h"
#include "providers/aws/messages/sink.h"
#include "store/session.h"

enum {
	TRIES = 30,
	SWEEP_MS = 24 * 3600 * 1000,
	SOON_MS = 5000, /* due so soon: the scheduler takes no time that is over, and the next look finds it */
	NAMES_MAX = 100000,
	RETRIES = 20,
	AGE_MAX_SEC = 86400,
};

static const struct aws_error_row errors[] = { { "ConflictException", RC_CONFLICT },
	                                       { "ResourceNotFoundException", RC_NOT_FOUND },
	                                       { "ServiceQuotaExceededException", RC_EXHAUSTED },
	                                       { "InternalServerException", RC_UNAVAILABLE },
	                                       { NULL, RC_OK } };

#define OP(op_name, is_write, http_method, http_path)                                                         \
	{                                                                                                     \
		.service = &aws_services[AWS_SCHEDULER], .name = op_name, .permission = "scheduler:" op_name, \
		.writes = is_write, .method = http_method, .path = http_path, .errors = errors                \
	}

static const struct aws_op create_op = OP("CreateSchedule", true, "POST", "/schedules/{Name}");
static const struct aws_op delete_op = OP("DeleteSchedule", true, "DELETE", "/schedules/{Name}");
static const struct aws_op list_op = OP("ListSchedules", false, "GET", "/schedules");

/* --- calls --- */

static enum rc call(const struct bell *b, const struct aws_op *op, struct str name, struct str body, struct str query,
                    struct arena *a, struct err *e)
{
	struct aws_call call = {
		.op = op, .body = body, .path_args = &name, .query = query, .ms = SINK_MS, .attempts = SINK_ATTEMPTS
	};

	return sink_rc(aws_do_call(b->caller, &call, a, NULL, e), e);
}

struct str bell_expression(int64_t due_ms, struct arena *a)
{
	char       time[ISO_TIME_SIZE];
	struct str text = iso_time((due_ms + 999) / 1000, time);

	return str_format(a, "at(%.*s)", (int)text.n - 1, text.p); /* without its Z: the zone is a member of its own */
}

static struct str write_schedule(const struct bell *b, const struct bell_due *due, struct arena *a)
{
	char       time[ISO_TIME_SIZE];
	struct str input = JSON_OF(a, member_str("accountId", due->account),
	                           member_str("quarantinedAt", iso_time_ms(due->created_ms, time)),
	                           member_str("schedulerName", due->name));

	return JSON_OF(a, member_str("GroupName", b->group),
	               member_str("ScheduleExpression", bell_expression(due->due_ms, a)),
	               member_word("ScheduleExpressionTimezone", "UTC"), member_object("FlexibleTimeWindow"),
	               member_word("Mode", "OFF"), member_end(), member_word("ActionAfterCompletion", "DELETE"),
	               member_object("Target"), member_str("Arn", b->target_arn), member_str("RoleArn", b->role_arn),
	               member_str("Input", input), member_object("RetryPolicy"),
	               member_int("MaximumRetryAttempts", RETRIES), member_int("MaximumEventAgeInSeconds", AGE_MAX_SEC),
	               member_end(), member_object("DeadLetterConfig"), member_str("Arn", b->dlq_arn), member_end(),
	               member_end());
}

/* It is there already: fine. */
static enum rc create(const struct bell *b, const struct bell_due *due, struct arena *a, struct err *e)
{
	if (due->due_ms <= clock_now(b->clock).ms + SOON_MS)
		return RC_OK;
	return err_forgive(e, call(b, &create_op, due->name, write_schedule(b, due, a), STR(""), a, e), RC_CONFLICT);
}

/* It is gone already: fine. */
static enum rc delete_named(const struct bell *b, struct str name, struct arena *a, struct err *e)
{
	struct str query = AWS_PAIRS(a, { "groupName", b->group });

	return err_forgive(e, call(b, &delete_op, name, STR(""), query, a, e), RC_NOT_FOUND);
}

/* --- one hold --- */

static enum rc follow(const struct bell *b, const struct event *event, struct arena *a, struct err *e)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	struct bell_due             due = { 0 };
	struct str                  id = STR("");
	bool                        is_new = str_eq(event->type, STR("HoldCreated")), is_open;
	enum rc                     rc;

	if (json_parse(event->detail, &detail, e) || !json_take_text(detail, "holdId", a, &id) || !id.n)
		return err_set(e, RC_INVALID, "the detail of a %.*s has no holdId", STR_ARG(event->type));
	rc = b->find(b->arg, id, a, &due, e);
	is_open = !rc;
	if ((rc = err_forgive(e, rc, RC_NOT_FOUND)))
		return rc;
	if ((!is_open || !is_new) && (rc = delete_named(b, due.name, a, e)))
		return rc;
	return is_open ? create(b, &due, a, e) : RC_OK;
}

/* --- all of them --- */

struct names {
	struct arena *arena;
	struct str   *list;
	size_t        count, room;
};

static enum rc add_name(void *arg, const json_t *schedule, struct err *e)
{
	struct names *all = arg;
	struct str    name;

	if (!json_take_text(schedule, "Name", all->arena, &name) || !str_starts_with(name, STR(HOLD_NAME_PREFIX)))
		return RC_OK;
	if (all->count == NAMES_MAX)
		return err_set(e, RC_TOO_LARGE, "there are more than %d schedules", NAMES_MAX);
	all->list = arena_grow(all->arena, all->list, all->count, &all->room, sizeof(*all->list));
	all->list[all->count++] = name;
	return RC_OK;
}

static enum rc list_schedules(const struct bell *b, struct names *all, struct err *e)
{
	struct str query = AWS_PAIRS(all->arena, { "MaxResults", STR("100") }, { "NamePrefix", STR(HOLD_NAME_PREFIX) },
	                             { "ScheduleGroup", b->group });
	struct aws_paging paging = {
		.call = { .op = &list_op, .query = query, .ms = SINK_MS, .attempts = SINK_ATTEMPTS },
		.token = "NextToken",
		.list = "Schedules",
		.each = add_name,
		.arg = all,
	};

	return sink_rc(aws_pages(b->caller, &paging, e), e);
}

static bool is_wanted(struct str name, const struct bell_due *due, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(due[i].name, name))
			return true;
	return false;
}

static enum rc sweep(struct call *c, struct err *e)
{
	const struct bell *b = c->arg;
	struct names       there = { .arena = c->arena };
	struct bell_due   *due;
	size_t             count;
	enum rc            rc = list_schedules(b, &there, e);

	if (rc || (rc = b->list(b->arg, c->arena, &due, &count, e)))
		return rc;
	for (size_t i = 0; !rc && i < there.count && c->go_on(c); i++)
		if (!is_wanted(there.list[i], due, count))
			rc = delete_named(b, there.list[i], c->arena, e);
	for (size_t i = 0; !rc && i < count && c->go_on(c); i++)
		if (!str_is_among(due[i].name, there.list, there.count))
			rc = create(b, &due[i], c->arena, e);
	return rc;
}

/* --- the queue --- */

static bool is_sweep(const struct call *c)
{
	return str_eq(c->delivery->event.type, STR(EVENT_BELL_SWEEP));
}

static enum rc ring_call(struct call *c, struct err *e)
{
	return is_sweep(c) ? sweep(c, e) : follow(c->arg, &c->delivery->event, c->arena, e);
}

static enum rc arm(struct session *s, struct err *e)
{
	struct timer timer = { .name = STR("bell-sweep"),
		               .due_ms = session_now(s).ms + SWEEP_MS,
		               .type = STR(EVENT_BELL_SWEEP),
		               .subject = STR("bell") };

	return session_arm(s, &timer, e);
}

enum rc bell_arm(struct session *s, void *arg UNUSED, struct err *e)
{
	struct timer timer;
	bool         is_there;
	enum rc      rc = session_find(s, &timer_type, STR("bell-sweep"), &timer, &is_there, e);

	return rc || is_there ? rc : arm(s, e);
}

static enum rc settle(struct session *s, const struct call *c, struct err *e)
{
	return is_sweep(c) ? arm(s, e) : RC_OK;
}

struct queue bell_queue(struct bell *b)
{
	return (struct queue){ .name = BELL_QUEUE,
		               .call = ring_call,
		               .settle = settle,
		               .arg = b,
		               .tries = TRIES,
		               .buries_nonsense = true };
}
