/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_saga.c - when the guard's sagas start, and what follows from their ends.
 *
 *     guard-hold     move Available -> Quarantine, then the table         the holds are "held"
 *     guard-release  look, move Quarantine -> Available, then the table   the hold is closed
 *     guard-eject    move Available -> Exit, revoke access, then delete   the record of it says "ejected"
 *     guard-untag    take the tag away that let an account pass           it may be set again
 *
 * Always true:
 *   1. One of the first three at a time is the account's: the one that its mark names. The end of any other changes
 *      nothing, and its steps do nothing any more. [load_ending()]
 *   2. The intent (the hold) is stored before anything is moved, and a hold is closed only after the account is back,
 *      or it was seen that there is nothing to bring back.
 *   3. What failed is tried again after a while, for as long as it is still wanted.    [note_failure()]
 *
 * Not here: what the steps do (guard_steps.c), what is decided about a move (guard.c).
 */
#include "base/json.h"
#include "base/utf8.h"
#include "service/account/account_follow.h"
#include "service/guard/guard_private.h"
#include "service/hold/holds.h"
#include "store/record_rows.h"

/* --- the mark; rows may be added at the end of the table --- */

enum { ACCOUNT_DIGITS = 12, EVENT_ID_MAX = 128, ACTION_MAX = 32, SAGA_ID_MAX = 64 };

/* clang-format off */
static const struct record_field mark_fields[] = {
	{ TEXT(guard_mark, account, ACCOUNT_DIGITS) },
	{ TEXT_OR_NONE(guard_mark, event_id, EVENT_ID_MAX) },
	{ INT(guard_mark, event_ms) },
	{ TEXT_OR_NONE(guard_mark, outcome, ACTION_MAX) },
	{ INT(guard_mark, at_ms) },
	{ INT(guard_mark, number) },
	{ TEXT_OR_NONE(guard_mark, saga_id, SAGA_ID_MAX) },
	{ TEXT_OR_NONE(guard_mark, untag, HOLD_ID_SIZE - 1) },
};
/* clang-format on */

const struct record_type guard_mark_type = { RECORD_TYPE("guard_mark", guard_mark, mark_fields) };

/* --- tasks and findings --- */

static struct str task_write(const struct guard_task *o, struct arena *a)
{
	return JSON_OF(a, member_str("account", o->account), member_str("hold", o->hold), member_str("how", o->how),
	               member_str("by", o->by), member_str("why", o->why));
}

enum rc guard_task_read(const struct saga *saga, struct arena *a, struct guard_task *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct guard_task           r;

	if (json_parse(saga->input, &o, e) || !json_take_text(o, "account", a, &r.account) ||
	    !json_take_text(o, "hold", a, &r.hold) || !json_take_text(o, "how", a, &r.how) ||
	    !json_take_text(o, "by", a, &r.by) || !json_take_text(o, "why", a, &r.why) || !r.account.n || !r.hold.n)
		return err_set(e, RC_CORRUPT, "the input of saga %.*s lacks its account or hold", STR_ARG(saga->id));
	*ret = r;
	return RC_OK;
}

struct str guard_finding_write(const struct guard_finding *f, struct arena *a)
{
	return JSON_OF(a, member_str("note", f->note), member_str("status", f->status), member_str("ouId", f->ou_id),
	               member_int("isFlagged", f->is_flagged));
}

enum rc guard_finding_read(struct str data, struct arena *a, struct guard_finding *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct guard_finding        f = { 0 };
	enum rc                     rc = data.n ? json_parse(data, &o, e) : RC_OK;

	if (rc || !json_take_text(o, "note", a, &f.note) || !json_take_text(o, "status", a, &f.status) ||
	    !json_take_text(o, "ouId", a, &f.ou_id) || !json_get_number(o, "isFlagged", 0, &f.is_flagged))
		return err_set(e, RC_CORRUPT, "the data of a saga of the guard makes no sense");
	*ret = f;
	return RC_OK;
}

/* --- start --- */

enum rc guard_start(struct session *s, struct guard_mark *mark, const char *kind, const struct guard_task *task,
                    struct err *e)
{
	struct arena *a = session_arena(s);

	mark->number++;
	mark->saga_id = str_format(a, "%s/%.*s/%lld", kind, STR_ARG(task->account), (long long)mark->number);
	session_put(s, &guard_mark_type, mark);
	return session_start(s, kind, mark->saga_id, account_subject(s, task->account), task_write(task, a),
	                     STR(GUARD_ACTOR), e);
}

enum rc guard_start_untag(struct session *s, const struct guard_task *task, struct err *e)
{
	struct str id = str_format(session_arena(s), GUARD_UNTAG_SAGA "/%.*s", STR_ARG(task->hold));

	return session_start(s, GUARD_UNTAG_SAGA, id, account_subject(s, task->account),
	                     task_write(task, session_arena(s)), STR(GUARD_ACTOR), e);
}

static bool is_at_work(const struct saga *saga)
{
	return saga->state == SAGA_RUNNING || saga->state == SAGA_UNDOING;
}

static struct str retry_name(struct session *s, struct str account)
{
	return str_format(session_arena(s), "guard-retry/%.*s", STR_ARG(account));
}

enum rc guard_retry(struct session *s, struct str saga_id, struct err *e)
{
	struct guard_mark mark;
	struct guard_task task;
	struct saga       saga;
	bool              is_there;
	enum rc           rc = session_find(s, &saga_type, saga_id, &saga, &is_there, e);

	if (rc || !is_there || is_at_work(&saga) || (rc = guard_task_read(&saga, session_arena(s), &task, e)) ||
	    (rc = session_find_or_new(s, &guard_mark_type, task.account, &mark, e)) || !str_eq(mark.saga_id, saga.id))
		return rc;
	return guard_start(s, &mark, str_dup(session_arena(s), saga.kind).p, &task, e);
}

enum rc guard_arm_confirm(struct session *s, struct str account, struct err *e)
{
	struct arena *a = session_arena(s);

	return account_arm(s, str_format(a, "guard-confirm/%.*s", STR_ARG(account)),
	                   session_now(s).ms + GUARD_CONFIRM_MS, EVENT_GUARD_CONFIRM, account,
	                   JSON_OF(a, member_str("accountId", account)), e);
}

/* --- what is stuck --- */

static bool is_on_its_way(const struct hold *h)
{
	return str_eq(h->placement, STR(PLACE_INTENDED)) || str_eq(h->placement, STR(PLACE_RELEASING));
}

/* Its task still stands: a hold is on its way, or an eject has failed. */
static bool is_wanted(const struct holds *open, const struct saga *saga, bool is_there)
{
	for (size_t i = 0; i < open->count; i++)
		if (is_on_its_way(&open->items[i]))
			return true;
	return is_there && str_eq(saga->kind, STR(GUARD_EJECT_SAGA)) && saga->state != SAGA_DONE;
}

enum rc guard_look_at_progress(struct session *s, const struct guard_mark *mark, const struct holds *open,
                               struct guard_progress *ret, struct err *e)
{
	struct timer timer;
	struct saga  saga;
	bool         is_there, has_timer;
	enum rc      rc;

	*ret = (struct guard_progress){ 0 };
	if (!mark->saga_id.n)
		return RC_OK;
	if ((rc = session_find(s, &saga_type, mark->saga_id, &saga, &is_there, e)) ||
	    (rc = session_find(s, &timer_type, retry_name(s, mark->account), &timer, &has_timer, e)))
		return rc;
	ret->is_busy = has_timer || (is_there && is_at_work(&saga));
	ret->is_stuck = !ret->is_busy && is_wanted(open, &saga, is_there);
	return RC_OK;
}

/* Its saga is gone, or thinks that it is done. */
static enum rc begin_anew(struct session *s, struct guard_mark *mark, struct hold *h, struct err *e)
{
	struct guard_task task = { .account = h->account, .hold = h->id };

	if (str_eq(h->placement, STR(PLACE_INTENDED)))
		return guard_start(s, mark, GUARD_HOLD_SAGA, &task, e);
	h->placement = STR(PLACE_HELD);
	session_put(s, &hold_type, h);
	return h->due_ms ? hold_arm(s, h, h->due_ms, e) : RC_OK;
}

enum rc guard_unstick(struct session *s, struct guard_mark *mark, struct holds *open, struct err *e)
{
	struct saga saga;
	bool        is_there;
	enum rc     rc = session_find(s, &saga_type, mark->saga_id, &saga, &is_there, e);

	if (rc)
		return rc;
	if (is_there && saga.state != SAGA_DONE)
		return guard_retry(s, mark->saga_id, e);
	for (size_t i = 0; i < open->count; i++)
		if (is_on_its_way(&open->items[i]))
			return begin_anew(s, mark, &open->items[i], e);
	return RC_OK;
}

/* --- ends --- */

/* A saga at its end, with what it belongs to. */
struct ending {
	const struct saga   *saga;
	struct guard_task    task;
	struct guard_finding finding;
	struct guard_mark    mark;
	struct hold          hold;
	bool                 is_stale; /* the account's saga is another by now, or the hold is gone */
};

static enum rc load_ending(struct session *s, const struct saga *saga, struct ending *ret, struct err *e)
{
	struct arena *a = session_arena(s);
	bool          is_there;
	enum rc       rc;

	*ret = (struct ending){ .saga = saga };
	if ((rc = guard_task_read(saga, a, &ret->task, e)) ||
	    (rc = guard_finding_read(saga->data, a, &ret->finding, e)) ||
	    (rc = session_find_or_new(s, &guard_mark_type, ret->task.account, &ret->mark, e)))
		return rc;
	rc = session_find(s, &hold_type, ret->task.hold, &ret->hold, &is_there, e);
	ret->is_stale = !is_there || !str_eq(ret->mark.saga_id, saga->id);
	return rc;
}

static struct str error_of(struct session *s, const struct saga *saga)
{
	return utf8_line(session_arena(s), saga->last_error.n ? saga->last_error : saga->reason, HOLD_NOTE_MAX);
}

/* The hold stays as it is, says what is wrong, and it is tried again. */
static enum rc note_failure(struct session *s, struct ending *end, struct err *e)
{
	struct arena *a = session_arena(s);
	enum rc       rc;

	end->hold.attempts++;
	end->hold.last_error = error_of(s, end->saga);
	session_put(s, &hold_type, &end->hold);
	rc = account_arm(s, retry_name(s, end->task.account), session_now(s).ms + GUARD_RETRY_MS, EVENT_GUARD_RETRY,
	                 end->task.account, JSON_OF(a, member_str("sagaId", end->saga->id)), e);
	return rc ? rc
	          : guard_tell(s, "HANDLER_ERROR", end->task.account,
	                       JSON_MEMBERS(member_str("error", end->hold.last_error),
	                                    member_str("holdId", end->hold.id),
	                                    member_str("eventId", end->hold.source_event),
	                                    member_str("schedulerName", hold_schedule_name(&end->hold, a)),
	                                    member_str("sagaId", end->saga->id)),
	                       e);
}

static enum rc tell_flag(struct session *s, const struct ending *end, struct err *e)
{
	return guard_tell(s, "QUARANTINE_FLAGGED", end->task.account,
	                  JSON_MEMBERS(member_word("reason", "a lease has the account already"),
	                               member_str("currentStatus", end->finding.status),
	                               member_str("holdId", end->hold.id)),
	                  e);
}

/* There was nothing to do; expected: the status with which there would have been, or NULL. */
static enum rc tell_skip(struct session *s, const struct ending *end, const char *action, const char *expected,
                         struct err *e)
{
	return guard_tell(s, action, end->task.account,
	                  JSON_MEMBERS(member_str("reason", end->finding.note),
	                               member_str("currentStatus", end->finding.status),
	                               member_if(expected, member_word("expectedStatus", expected)),
	                               member_str("holdId", end->hold.id)),
	                  e);
}

/* --- guard-hold --- */

static enum rc tell_held(struct session *s, const struct ending *end, struct err *e)
{
	enum rc rc;

	if (end->finding.note.n)
		rc = tell_skip(s, end, "QUARANTINE_SKIP", NULL, e);
	else
		rc = guard_tell(s, "QUARANTINE_COMPLETE", end->task.account,
		                JSON_MEMBERS(member_str("holdId", end->hold.id),
		                             member_str("eventId", end->hold.source_event),
		                             member_word("fromOu", "Available"), member_word("toOu", "Quarantine"),
		                             member_str("quarantineOuId", end->finding.ou_id)),
		                e);
	if (!rc && end->finding.is_flagged)
		rc = tell_flag(s, end, e);
	return rc || end->finding.note.n ? rc : guard_arm_confirm(s, end->task.account, e);
}

enum rc guard_hold_ends(struct session *s, const struct saga *saga, struct err *e)
{
	struct ending end;
	struct holds  open;
	enum rc       rc = load_ending(s, saga, &end, e);

	if (rc || end.is_stale || (rc = hold_list_open(s, end.task.account, &open, e)))
		return rc;
	/* The hold that it was started with may be over, and others of the same move not: it ends for the first. */
	for (size_t i = 0; end.hold.state != HOLD_OPEN && i < open.count; i++)
		if (str_eq(open.items[i].source_event, end.hold.source_event))
			end.hold = open.items[i];
	if (end.hold.state != HOLD_OPEN)
		return RC_OK;
	if (saga->state != SAGA_DONE)
		return note_failure(s, &end, e);
	for (struct hold *h = open.items; !rc && h < open.items + open.count; h++) {
		if (!str_eq(h->source_event, end.hold.source_event))
			continue;
		if (end.finding.note.n) {
			rc = hold_end(s, h, HOLD_SKIPPED, STR(GUARD_ACTOR), end.finding.note, e);
			continue;
		}
		h->placement = STR(PLACE_HELD);
		h->last_error = STR("");
		session_put(s, &hold_type, h);
	}
	return rc ? rc : tell_held(s, &end, e);
}

/* --- guard-release --- */

static enum rc tell_released(struct session *s, const struct ending *end, struct err *e)
{
	struct arena      *a = session_arena(s);
	const struct hold *h = &end->hold;
	double             hours = (double)(session_now(s).ms - h->created_ms) / (double)HOLD_HOUR_MS;
	enum rc            rc;

	if (end->finding.note.n)
		rc = tell_skip(s, end, "UNQUARANTINE_SKIP", "Quarantine", e);
	else
		rc = guard_tell(s, "UNQUARANTINE_COMPLETE", end->task.account,
		                JSON_MEMBERS(member_str("holdId", h->id),
		                             member_word("holdReason", hold_reason_names[h->reason]),
		                             member_word("fromOu", "Quarantine"), member_word("toOu", "Available"),
		                             member_str("availableOuId", end->finding.ou_id),
		                             member_time("quarantinedAt", h->created_ms),
		                             member_str("quarantineDuration", str_format(a, "%.2f", hours))),
		                e);
	return rc ? rc
	          : guard_tell(s, "SCHEDULER_DELETED", end->task.account,
	                       JSON_MEMBERS(member_str("schedulerName", hold_schedule_name(h, a))), e);
}

enum rc guard_release_ends(struct session *s, const struct saga *saga, struct err *e)
{
	struct ending   end;
	enum hold_state how = HOLD_RELEASED;
	enum rc         rc = load_ending(s, saga, &end, e);

	if (rc || end.is_stale || end.hold.state != HOLD_OPEN)
		return rc;
	if (saga->state != SAGA_DONE)
		return note_failure(s, &end, e);
	for (int i = HOLD_OPEN + 1; i < HOLD_STATE_COUNT; i++)
		if (str_eq(end.task.how, str_from(hold_state_names[i])))
			how = (enum hold_state)i;
	if (end.finding.note.n) {
		how = HOLD_SKIPPED;
		end.task.why = end.finding.note;
	}
	end.hold.placement = STR(PLACE_RELEASED);
	end.hold.last_error = STR("");
	rc = hold_end(s, &end.hold, how, end.task.by, end.task.why, e);
	return rc ? rc : tell_released(s, &end, e);
}

/* --- guard-eject --- */

enum rc guard_eject_ends(struct session *s, const struct saga *saga, struct err *e)
{
	struct ending end;
	enum rc       rc = load_ending(s, saga, &end, e);

	if (rc || end.is_stale)
		return rc;
	if (saga->state != SAGA_DONE)
		return note_failure(s, &end, e);
	end.hold.last_error = end.finding.note;
	if (!end.finding.note.n)
		end.hold.placement = STR(PLACE_EJECTED);
	session_put(s, &hold_type, &end.hold);
	if (end.finding.note.n)
		return tell_skip(s, &end, "QUARANTINE_SKIP", NULL, e);
	rc = guard_tell(s, "EJECT_COMPLETE", end.task.account,
	                JSON_MEMBERS(member_str("holdId", end.hold.id), member_word("fromOu", "Available"),
	                             member_word("toOu", "Exit")),
	                e);
	return rc || !end.finding.is_flagged ? rc : tell_flag(s, &end, e);
}

/* --- guard-untag --- */

/* A tag that could not be taken away stays used up, until a later look does not find it: the account is held the next
 * time. */
enum rc guard_untag_ends(struct session *s, const struct saga *saga, struct err *e)
{
	struct ending end;
	enum rc       rc = load_ending(s, saga, &end, e);

	if (rc)
		return rc;
	if (saga->state != SAGA_DONE)
		return guard_tell(s, "TAG_REMOVAL_FAILED", end.task.account,
		                  JSON_MEMBERS(member_word("tag", HOLD_BYPASS_TAG),
		                               member_str("error", error_of(s, saga))),
		                  e);
	if (!str_eq(end.mark.untag, end.task.hold))
		return RC_OK;
	end.mark.untag = STR("");
	session_put(s, &guard_mark_type, &end.mark);
	return RC_OK;
}
