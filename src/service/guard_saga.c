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
 *   1. One of the first three at a time is the account's: the one that its mark names. The end of any other changes nothing, and its steps do
 *      nothing any more.                                                              [load_ending()]
 *   2. The intent (the hold) is stored before anything is moved, and a hold is closed only after the account is back, or it was seen that
 *      there is nothing to bring back.
 *   3. What failed is tried again after a while, for as long as it is still wanted.    [note_failure()]
 *
 * Not here: what the steps do (guard_steps.c), what is decided about a move (guard.c).
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "service/account_follow.h"
#include "service/guard_parts.h"
#include "service/holds.h"

enum { ORDER_MAX = 8192, FINDING_MAX = 4096, HOURS_SIZE = 32 };

/* --- orders and findings --- */

static struct str order_write(const struct guard_order *o, struct arena *a)
{
	struct json_out out;
	struct buf      b;
	struct str      text;

	buf_init(&b, ORDER_MAX);
	json_out_init(&out, &b);
	json_open_object(&out);
	json_put_str(&out, "account", o->account);
	json_put_str(&out, "hold", o->hold);
	json_put_str(&out, "how", o->how);
	json_put_str(&out, "by", o->by);
	json_put_str(&out, "why", o->why);
	json_close_object(&out);
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

enum rc guard_order_read(const struct saga *saga, struct arena *a, struct guard_order *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct guard_order          r;

	if (json_parse(saga->input, &o, e) || !json_get_text(o, "account", &r.account) ||
	    !json_get_text(o, "hold", &r.hold) || !json_get_text(o, "how", &r.how) || !json_get_text(o, "by", &r.by) ||
	    !json_get_text(o, "why", &r.why) || !r.account.n || !r.hold.n)
		return err_set(e, RC_CORRUPT, "the input of saga %.*s lacks its account or hold", STR_ARG(saga->id));
	*ret = (struct guard_order){ str_dup(a, r.account), str_dup(a, r.hold), str_dup(a, r.how), str_dup(a, r.by),
		                     str_dup(a, r.why) };
	return RC_OK;
}

struct str guard_finding_write(const struct guard_finding *f, struct arena *a)
{
	struct json_out out;
	struct buf      b;
	struct str      text;

	buf_init(&b, FINDING_MAX);
	json_out_init(&out, &b);
	json_open_object(&out);
	json_put_str(&out, "note", f->note);
	json_put_str(&out, "status", f->status);
	json_put_str(&out, "ouId", f->ou_id);
	json_put_int(&out, "isFlagged", f->is_flagged);
	json_close_object(&out);
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

enum rc guard_finding_read(struct str data, struct arena *a, struct guard_finding *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct guard_finding        f = { 0 };
	enum rc                     rc = data.n ? json_parse(data, &o, e) : RC_OK;

	if (rc || !json_get_text(o, "note", &f.note) || !json_get_text(o, "status", &f.status) ||
	    !json_get_text(o, "ouId", &f.ou_id) || !json_get_number(o, "isFlagged", 0, &f.is_flagged))
		return err_set(e, RC_CORRUPT, "the data of a saga of the guard makes no sense");
	*ret = (struct guard_finding){ str_dup(a, f.note), str_dup(a, f.status), str_dup(a, f.ou_id), f.is_flagged };
	return RC_OK;
}

/* --- start --- */

enum rc guard_mark_read(struct session *s, struct str account, struct guard_mark *ret, struct err *e)
{
	enum rc rc = session_get(s, &guard_mark_type, account, ret, NULL);

	if (rc == RC_NOT_FOUND)
		*ret = (struct guard_mark){ .account = str_dup(session_arena(s), account) };
	else if (rc)
		return err_set(e, rc, "what the guard knows of account %.*s cannot be read", STR_ARG(account));
	return RC_OK;
}

enum rc guard_start(struct session *s, struct guard_mark *mark, const char *kind, const struct guard_order *order,
                    struct err *e)
{
	struct arena *a = session_arena(s);

	mark->number++;
	mark->saga_id = str_format(a, "%s/%.*s/%lld", kind, STR_ARG(order->account), (long long)mark->number);
	session_put(s, &guard_mark_type, mark);
	return session_start(s, kind, mark->saga_id, account_subject(s, order->account), order_write(order, a),
	                     STR(GUARD_ACTOR), e);
}

enum rc guard_start_untag(struct session *s, struct str id, const struct guard_order *order, struct err *e)
{
	return session_start(s, GUARD_UNTAG_SAGA, id, account_subject(s, order->account),
	                     order_write(order, session_arena(s)), STR(GUARD_ACTOR), e);
}

static enum rc find_saga(struct session *s, struct str id, struct saga *ret, bool *ret_is_there, struct err *e)
{
	enum rc rc = session_get(s, &saga_type, id, ret, NULL);

	*ret_is_there = rc == RC_OK;
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "saga %.*s cannot be read", STR_ARG(id)) : RC_OK;
}

static bool is_at_work(const struct saga *saga)
{
	return saga->state == SAGA_RUNNING || saga->state == SAGA_UNDOING;
}

enum rc guard_is_busy(struct session *s, const struct guard_mark *mark, bool *ret, struct err *e)
{
	struct saga saga;
	bool        is_there;
	enum rc     rc;

	*ret = false;
	if (!mark->saga_id.n)
		return RC_OK;
	rc = find_saga(s, mark->saga_id, &saga, &is_there, e);
	*ret = !rc && is_there && is_at_work(&saga);
	return rc;
}

static struct str retry_name(struct session *s, struct str account)
{
	return str_format(session_arena(s), "guard-retry/%.*s", STR_ARG(account));
}

static enum rc arm_retry(struct session *s, const struct guard_order *o, struct str saga_id, struct err *e)
{
	struct arena *a = session_arena(s);
	struct timer  timer = { .name = retry_name(s, o->account),
		                .due_ms = session_now(s).ms + GUARD_RETRY_MS,
		                .type = STR(EVENT_GUARD_RETRY),
		                .subject = account_subject(s, o->account),
		                .detail = str_format(a, "{\"sagaId\":\"%.*s\"}", STR_ARG(saga_id)) };

	return session_arm(s, &timer, e);
}

enum rc guard_retry(struct session *s, struct str saga_id, struct err *e)
{
	struct guard_mark  mark;
	struct guard_order order;
	struct saga        saga;
	bool               is_there;
	enum rc            rc = find_saga(s, saga_id, &saga, &is_there, e);

	if (rc || !is_there || is_at_work(&saga))
		return rc;
	if ((rc = guard_order_read(&saga, session_arena(s), &order, e)) ||
	    (rc = guard_mark_read(s, order.account, &mark, e)) || !str_eq(mark.saga_id, saga.id))
		return rc;
	return guard_start(s, &mark, str_dup(session_arena(s), saga.kind).p, &order, e);
}

static struct str confirm_detail(struct session *s, struct str account)
{
	return str_format(session_arena(s), "{\"accountId\":\"%.*s\"}", STR_ARG(account));
}

enum rc guard_arm_confirm(struct session *s, struct str account, struct err *e)
{
	struct arena *a = session_arena(s);
	struct timer  timer = { .name = str_format(a, "guard-confirm/%.*s", STR_ARG(account)),
		                .due_ms = session_now(s).ms + GUARD_CONFIRM_MS,
		                .type = STR(EVENT_GUARD_CONFIRM),
		                .subject = account_subject(s, account),
		                .detail = confirm_detail(s, account) };

	return session_arm(s, &timer, e);
}

enum rc guard_confirm_now(struct session *s, struct str account, struct err *e)
{
	struct event event = { .type = STR(EVENT_GUARD_CONFIRM),
		               .subject = account_subject(s, account),
		               .actor = STR(GUARD_ACTOR),
		               .detail = confirm_detail(s, account) };

	return session_emit(s, &event, e);
}

/* --- what is stuck --- */

static bool is_on_its_way(const struct hold *h)
{
	return str_eq(h->placement, STR(PLACE_INTENDED)) || str_eq(h->placement, STR(PLACE_RELEASING));
}

/* Its order still stands: a hold is on its way, or an eject has failed. */
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
	bool         is_there;
	enum rc      rc;

	*ret = (struct guard_progress){ 0 };
	if (!mark->saga_id.n)
		return RC_OK;
	if ((rc = find_saga(s, mark->saga_id, &saga, &is_there, e)))
		return rc;
	rc = session_get(s, &timer_type, retry_name(s, mark->account), &timer, NULL);
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "the timer of saga %.*s cannot be read", STR_ARG(mark->saga_id));
	ret->is_busy = !rc || (is_there && is_at_work(&saga));
	ret->is_stuck = !ret->is_busy && is_wanted(open, &saga, is_there);
	return RC_OK;
}

/* Its saga is gone, or thinks that it is done. */
static enum rc begin_anew(struct session *s, struct guard_mark *mark, struct hold *h, struct err *e)
{
	struct guard_order order = { .account = h->account, .hold = h->id };

	if (str_eq(h->placement, STR(PLACE_INTENDED)))
		return guard_start(s, mark, GUARD_HOLD_SAGA, &order, e);
	h->placement = STR(PLACE_HELD);
	session_put(s, &hold_type, h);
	return h->due_ms ? hold_rearm(s, h, e) : RC_OK;
}

enum rc guard_unstick(struct session *s, struct guard_mark *mark, struct holds *open, struct err *e)
{
	struct saga saga;
	bool        is_there;
	enum rc     rc = find_saga(s, mark->saga_id, &saga, &is_there, e);

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
	struct guard_order   order;
	struct guard_finding finding;
	struct guard_mark    mark;
	struct hold          hold;
	bool                 is_stale; /* the account's saga is another by now, or the hold is gone */
};

static enum rc load_ending(struct session *s, const struct saga *saga, struct ending *ret, struct err *e)
{
	struct arena *a = session_arena(s);
	enum rc       rc;

	*ret = (struct ending){ .saga = saga };
	if ((rc = guard_order_read(saga, a, &ret->order, e)) ||
	    (rc = guard_finding_read(saga->data, a, &ret->finding, e)) ||
	    (rc = guard_mark_read(s, ret->order.account, &ret->mark, e)))
		return rc;
	rc = session_get(s, &hold_type, ret->order.hold, &ret->hold, NULL);
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "hold %.*s cannot be read", STR_ARG(ret->order.hold));
	ret->is_stale = rc == RC_NOT_FOUND || !str_eq(ret->mark.saga_id, saga->id);
	return RC_OK;
}

static struct str error_of(struct session *s, const struct saga *saga)
{
	return utf8_line(session_arena(s), saga->last_error.n ? saga->last_error : saga->reason, HOLD_NOTE_MAX);
}

/* The hold stays as it is, says what is wrong, and it is tried again. */
static enum rc note_failure(struct session *s, struct ending *end, struct err *e)
{
	struct guard_field fields[] = { { "error", error_of(s, end->saga) },
		                        { "holdId", end->hold.id },
		                        { "eventId", end->hold.source_event },
		                        { "schedulerName", hold_schedule_name(&end->hold, session_arena(s)) },
		                        { "sagaId", end->saga->id } };
	enum rc            rc;

	end->hold.attempts++;
	end->hold.last_error = error_of(s, end->saga);
	session_put(s, &hold_type, &end->hold);
	if ((rc = arm_retry(s, &end->order, end->saga->id, e)))
		return rc;
	return guard_tell(s, "HANDLER_ERROR", end->order.account, fields, ARRAY_LEN(fields), e);
}

static enum rc tell_flag(struct session *s, const struct ending *end, struct err *e)
{
	struct guard_field fields[] = { { "reason", STR("a lease has the account already") },
		                        { "currentStatus", end->finding.status },
		                        { "holdId", end->hold.id } };

	return guard_tell(s, "QUARANTINE_FLAGGED", end->order.account, fields, ARRAY_LEN(fields), e);
}

/* --- guard-hold --- */

static enum rc note_held(struct session *s, struct hold *h, const struct ending *end, struct err *e)
{
	if (end->finding.note.n)
		return hold_end(s, h, HOLD_SKIPPED, STR(GUARD_ACTOR), end->finding.note, e);
	h->placement = STR(PLACE_HELD);
	h->last_error = STR("");
	session_put(s, &hold_type, h);
	return RC_OK;
}

static enum rc tell_held(struct session *s, const struct ending *end, struct err *e)
{
	struct guard_field fields[] = { { "holdId", end->hold.id },
		                        { "eventId", end->hold.source_event },
		                        { "fromOu", STR("Available") },
		                        { "toOu", STR("Quarantine") },
		                        { "quarantineOuId", end->finding.ou_id } };
	struct guard_field skip[] = { { "reason", end->finding.note },
		                      { "currentStatus", end->finding.status },
		                      { "holdId", end->hold.id } };

	if (end->finding.note.n)
		return guard_tell(s, "QUARANTINE_SKIP", end->order.account, skip, ARRAY_LEN(skip), e);
	return guard_tell(s, "QUARANTINE_COMPLETE", end->order.account, fields, ARRAY_LEN(fields), e);
}

/* The hold that the saga was started with may be over, and others of the same move not: then it ends for the first of these. */
static void find_left(struct ending *end, const struct holds *open)
{
	for (size_t i = 0; end->hold.state != HOLD_OPEN && i < open->count; i++)
		if (str_eq(open->items[i].source_event, end->hold.source_event))
			end->hold = open->items[i];
}

enum rc guard_hold_ends(struct session *s, const struct saga *saga, struct err *e)
{
	struct ending end;
	struct holds  open;
	enum rc       rc = load_ending(s, saga, &end, e);

	if (rc || end.is_stale || (rc = hold_list_open(s, end.order.account, &open, e)))
		return rc;
	find_left(&end, &open);
	if (end.hold.state != HOLD_OPEN)
		return RC_OK;
	if (saga->state != SAGA_DONE)
		return note_failure(s, &end, e);
	for (size_t i = 0; !rc && i < open.count; i++)
		if (str_eq(open.items[i].source_event, end.hold.source_event))
			rc = note_held(s, &open.items[i], &end, e);
	if (!rc)
		rc = tell_held(s, &end, e);
	if (!rc && end.finding.is_flagged)
		rc = tell_flag(s, &end, e);
	return rc || end.finding.note.n ? rc : guard_arm_confirm(s, end.order.account, e);
}

/* --- guard-release --- */

static enum hold_state state_named(struct str name)
{
	for (int i = HOLD_OPEN + 1; i < HOLD_STATE_COUNT; i++)
		if (str_eq(name, str_from(hold_state_names[i])))
			return (enum hold_state)i;
	return HOLD_RELEASED;
}

static enum rc tell_released(struct session *s, const struct ending *end, struct err *e)
{
	struct arena      *a = session_arena(s);
	double             hours = (double)(session_now(s).ms - end->hold.created_ms) / (double)HOLD_HOUR_MS;
	char               since[ISO_TIME_SIZE];
	struct str         made = iso_time(end->hold.created_ms / 1000, since);
	struct guard_field fields[] = { { "holdId", end->hold.id },
		                        { "holdReason", str_from(hold_reason_names[end->hold.reason]) },
		                        { "fromOu", STR("Quarantine") },
		                        { "toOu", STR("Available") },
		                        { "availableOuId", end->finding.ou_id },
		                        { "quarantinedAt", made },
		                        { "quarantineDuration", str_format(a, "%.2f", hours) } };
	struct guard_field skip[] = { { "reason", end->finding.note },
		                      { "currentStatus", end->finding.status },
		                      { "expectedStatus", STR("Quarantine") },
		                      { "holdId", end->hold.id } };
	struct guard_field timer[] = { { "schedulerName", hold_schedule_name(&end->hold, a) } };
	enum rc            rc;

	if (end->finding.note.n)
		rc = guard_tell(s, "UNQUARANTINE_SKIP", end->order.account, skip, ARRAY_LEN(skip), e);
	else
		rc = guard_tell(s, "UNQUARANTINE_COMPLETE", end->order.account, fields, ARRAY_LEN(fields), e);
	return rc ? rc : guard_tell(s, "SCHEDULER_DELETED", end->order.account, timer, ARRAY_LEN(timer), e);
}

enum rc guard_release_ends(struct session *s, const struct saga *saga, struct err *e)
{
	struct ending   end;
	struct str      why;
	enum hold_state how;
	enum rc         rc = load_ending(s, saga, &end, e);

	if (rc || end.is_stale || end.hold.state != HOLD_OPEN)
		return rc;
	if (saga->state != SAGA_DONE)
		return note_failure(s, &end, e);
	how = end.finding.note.n ? HOLD_SKIPPED : state_named(end.order.how);
	why = end.finding.note.n ? end.finding.note : end.order.why;
	end.hold.placement = STR(PLACE_RELEASED);
	end.hold.last_error = STR("");
	if ((rc = hold_end(s, &end.hold, how, end.order.by, why, e)))
		return rc;
	return tell_released(s, &end, e);
}

/* --- guard-eject --- */

enum rc guard_eject_ends(struct session *s, const struct saga *saga, struct err *e)
{
	struct ending      end;
	struct guard_field fields[] = { { "holdId", STR("") },
		                        { "fromOu", STR("Available") },
		                        { "toOu", STR("Exit") } };
	enum rc            rc = load_ending(s, saga, &end, e);

	if (rc || end.is_stale)
		return rc;
	if (saga->state != SAGA_DONE)
		return note_failure(s, &end, e);
	if (end.finding.note.n) {
		end.hold.last_error = end.finding.note;
		session_put(s, &hold_type, &end.hold);
		return tell_held(s, &end, e);
	}
	end.hold.placement = STR(PLACE_EJECTED);
	end.hold.last_error = STR("");
	session_put(s, &hold_type, &end.hold);
	fields[0].text = end.hold.id;
	rc = guard_tell(s, "EJECT_COMPLETE", end.order.account, fields, ARRAY_LEN(fields), e);
	return rc || !end.finding.is_flagged ? rc : tell_flag(s, &end, e);
}

/* --- guard-untag --- */

/* A tag that could not be taken away stays used up: the account is held the next time. */
enum rc guard_untag_ends(struct session *s, const struct saga *saga, struct err *e)
{
	struct ending      end;
	struct guard_field fields[] = { { "tag", STR(HOLD_BYPASS_TAG) }, { "error", error_of(s, saga) } };
	enum rc            rc = load_ending(s, saga, &end, e);

	if (rc)
		return rc;
	if (saga->state != SAGA_DONE)
		return guard_tell(s, "TAG_REMOVAL_FAILED", end.order.account, fields, ARRAY_LEN(fields), e);
	if (!str_eq(end.mark.untag, end.order.hold))
		return RC_OK;
	end.mark.untag = STR("");
	session_put(s, &guard_mark_type, &end.mark);
	return RC_OK;
}
