/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saga_rule.c - the decisions of a saga.
 *
 * A saga's record has a letter per step (its mark) and a cursor (the step under way). Going forward, the cursor climbs
 * over what is done or skipped; going back, it descends from where it turned and stops at every step whose effect may
 * be there. Each change is one function from record to record; saga_run.c and saga.c store what comes out.
 *
 * Always true:
 *   1. No step is called before its intent ('i' or 'u') is in the record.                    [saga_rule_intend()]
 *   2. A step whose intent is older than this claim is checked before it is repeated.       [saga_rule_intend()]
 *   3. Going back meets every step marked 'i', 'd' or 'u' from the cursor down, the highest first, and those that
 *      clear even if they were not begun.                                                      [find_to_undo()]
 *   4. A saga that is parked names every step that may have left something.                 [list_leftovers()]
 *   5. The cursor is always a step of the table.
 *
 * When the last step is done, the saga is done, even when its deadline passed meanwhile: a deadline keeps further steps
 * from beginning.
 *
 * Not here: the store, the clock, chance, calling anybody. The arena is only for new texts.
 */
#include "kernel/saga_rule.h"

#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "kernel/defect.h"
#include "kernel/saga.h"

#define TURNED_BECAUSE "; it went back because: "
#define SAGA_MARKS     ".idsux" /* all of enum saga_mark */

enum { NO_STEP = -1, LEFTOVERS_MAX = 2040 };

int64_t saga_step_timeout(const struct saga_step *step)
{
	return step->timeout_ms ? step->timeout_ms : SAGA_TIMEOUT_MS;
}

/* Has an owner whose lease has not run out. */
static bool is_owned(const struct saga_rule *r)
{
	return saga_is_active(r->saga->state) && r->saga->owner.n > 0 && r->saga->due_ms > r->now_ms;
}

struct str saga_rule_step_name(const struct saga *saga, const struct saga_kind *kind, struct arena *a)
{
	if (kind && saga->step >= 0 && (size_t)saga->step < kind->step_count)
		return str_from(kind->steps[saga->step].name);
	return str_format(a, "step %lld", (long long)saga->step + 1);
}

/* --- marks --- */

/* A duration of the table, by the clock of the record. */
static int64_t span_of(const struct saga_rule *r, int64_t ms)
{
	return r->scale > 1 ? ms * r->scale : ms;
}

static const struct saga_step *current(const struct saga_rule *r)
{
	return &r->kind->steps[r->saga->step];
}

static char current_mark(const struct saga_rule *r)
{
	return r->saga->marks.p[r->saga->step];
}

static void set_mark(const struct saga_rule *r, int64_t step, enum saga_mark mark)
{
	char *marks = arena_copy(r->arena, r->saga->marks.p, r->saga->marks.n);

	marks[step] = (char)mark;
	r->saga->marks = str_of(marks, r->saga->marks.n);
}

static bool may_be_there(char mark)
{
	return mark == SAGA_MARK_INTENT || mark == SAGA_MARK_DONE || mark == SAGA_MARK_UNDOING;
}

/* The first step to do from this one up. */
static int64_t find_to_do(const struct saga_rule *r, int64_t from)
{
	for (int64_t i = from; i < (int64_t)r->saga->marks.n; i++)
		if (r->saga->marks.p[i] == SAGA_MARK_NONE || r->saga->marks.p[i] == SAGA_MARK_INTENT)
			return i;
	return NO_STEP;
}

static bool needs_undo(const struct saga_rule *r, int64_t step)
{
	char mark = r->saga->marks.p[step];

	return may_be_there(mark) || (mark == SAGA_MARK_NONE && r->kind->steps[step].clears);
}

/* The first step to undo from this one down. Those that have nothing to undo are marked so on the way. */
static int64_t find_to_undo(const struct saga_rule *r, int64_t from)
{
	int64_t last = (int64_t)r->saga->marks.n - 1;

	for (int64_t n = 0; n <= (HAS_DEFECT(UNDO_IN_ORDER) ? last : from); n++) {
		int64_t i = HAS_DEFECT(UNDO_IN_ORDER) ? n : from - n;

		if (!needs_undo(r, i))
			continue;
		if (r->kind->steps[i].undo)
			return i;
		set_mark(r, i, SAGA_MARK_UNDONE);
	}
	return NO_STEP;
}

/* --- moving --- */

/* The names of all steps whose effect may be there, as a JSON array; empty when there is none. */
static struct str list_leftovers(const struct saga_rule *r)
{
	const struct saga           *saga = r->saga;
	struct saga                  at = *saga;
	CLEANUP(buf_fini) struct buf b = BUF(LEFTOVERS_MAX);
	struct json_out              o = JSON_OUT(&b);

	for (size_t i = 0; i < saga->marks.n && i < SAGA_STEPS_MAX && !HAS_DEFECT(FORGET_LEFTOVERS); i++) {
		if (!may_be_there(saga->marks.p[i]))
			continue;
		at.step = (int64_t)i;
		json_add_str(&o, saga_rule_step_name(&at, r->kind, r->arena));
	}
	return b.n ? str_format(r->arena, "[%.*s]", (int)b.n, b.p) : STR("");
}

static enum saga_next end(const struct saga_rule *r, enum saga_state state)
{
	struct saga *saga = r->saga;

	saga->state = state;
	saga->ended_ms = saga->due_ms = r->now_ms;
	saga->owner = STR("");
	saga->leftovers = state == SAGA_DONE ? STR("") : list_leftovers(r);
	return SAGA_NEXT_END;
}

static void move_to(const struct saga_rule *r, int64_t step)
{
	struct saga *saga = r->saga;

	if (step == saga->step)
		return;
	saga->step = step;
	saga->tries = 0;
	saga->step_since_ms = r->now_ms;
	saga->last_error = STR("");
}

/* On to the next step in its direction, from this one on. */
static enum saga_next go_on(const struct saga_rule *r, int64_t from)
{
	bool    is_back = r->saga->state == SAGA_UNDOING;
	int64_t step = is_back ? find_to_undo(r, from) : find_to_do(r, from);

	if (step == NO_STEP)
		return end(r, is_back ? SAGA_UNDONE : SAGA_DONE);
	move_to(r, step);
	return SAGA_NEXT_CALL;
}

static void turn_back(const struct saga_rule *r, struct str reason)
{
	struct saga *saga = r->saga;

	saga->state = SAGA_UNDOING;
	saga->reason = utf8_clip(reason, ERROR_MAX);
	saga->tries = 0;
	saga->step_since_ms = r->now_ms;
}

/* Why it must not go further for lack of time; empty: it may. */
static struct str find_overdue(const struct saga_rule *r)
{
	const struct saga      *saga = r->saga;
	const struct saga_step *step = current(r);

	if (saga->deadline_ms && r->now_ms > saga->deadline_ms)
		return str_format(r->arena, "not done within %lld s, at step %s",
		                  (long long)r->kind->deadline_ms / 1000, step->name);
	if (step->deadline_ms && current_mark(r) == SAGA_MARK_INTENT &&
	    r->now_ms > saga->step_since_ms + span_of(r, step->deadline_ms))
		return str_format(r->arena, "step %s was not done within %lld s", step->name,
		                  (long long)step->deadline_ms / 1000);
	return STR("");
}

/* --- start, claim, settle --- */

void saga_rule_start(const struct saga_rule *r)
{
	struct saga *saga = r->saga;
	char        *marks = arena_alloc(r->arena, r->kind->step_count + 1);

	memset(marks, SAGA_MARK_NONE, r->kind->step_count);
	saga->marks = str_of(marks, r->kind->step_count);
	saga->state = SAGA_RUNNING;
	saga->step = 0;
	saga->started_ms = saga->step_since_ms = saga->due_ms = r->now_ms;
	saga->deadline_ms = r->kind->deadline_ms ? r->now_ms + span_of(r, r->kind->deadline_ms) : 0;
}

enum rc saga_rule_fits(const struct saga *saga, const struct saga_kind *kind, struct err *e)
{
	if (!kind)
		return err_set(e, RC_CORRUPT, "this program has no sagas of the kind '%.*s'", STR_ARG(saga->kind));
	if (saga->marks.n != kind->step_count)
		return err_set(e, RC_CORRUPT, "the saga has %zu steps, but its kind '%s' has %zu in this program",
		               saga->marks.n, kind->name, kind->step_count);
	if (saga->step < 0 || (size_t)saga->step >= kind->step_count)
		return err_set(e, RC_CORRUPT, "the saga is at step number %lld, but its kind '%s' has 0 to %zu",
		               (long long)saga->step, kind->name, kind->step_count - 1);
	for (size_t i = 0; i < saga->marks.n; i++)
		if (!char_is_of(saga->marks.p[i], SAGA_MARKS))
			return err_set(e, RC_CORRUPT, "step %s has a mark that this program does not know: '%c'",
			               kind->steps[i].name, saga->marks.p[i]);
	return RC_OK;
}

int64_t saga_rule_lease(const struct saga_rule *r, enum saga_todo todo)
{
	int64_t calls = todo == SAGA_TODO_CHECK ? 2 : todo == SAGA_TODO_NOTHING ? 0 : 1;
	int64_t needed = calls * saga_step_timeout(current(r)) + SAGA_LEASE_MARGIN_MS;

	return span_of(r, r->lease_ms > needed ? r->lease_ms : needed);
}

static enum saga_todo intend_to_act(const struct saga_rule *r)
{
	bool was_intended = current_mark(r) == SAGA_MARK_INTENT;

	if (!was_intended) {
		r->saga->step_since_ms = r->now_ms;
		if (!HAS_DEFECT(NO_INTENT))
			set_mark(r, r->saga->step, SAGA_MARK_INTENT);
	}
	return was_intended && current(r)->check && !HAS_DEFECT(NO_CHECK_AFTER_CRASH) ? SAGA_TODO_CHECK : SAGA_TODO_ACT;
}

static enum saga_todo intend_to_undo(const struct saga_rule *r)
{
	int64_t step = find_to_undo(r, r->saga->step);

	if (step == NO_STEP)
		return SAGA_TODO_NOTHING;
	move_to(r, step);
	set_mark(r, step, SAGA_MARK_UNDOING);
	return SAGA_TODO_UNDO;
}

enum saga_todo saga_rule_intend(const struct saga_rule *r)
{
	struct str     overdue = r->saga->state == SAGA_RUNNING ? find_overdue(r) : STR("");
	enum saga_todo todo;

	if (overdue.n)
		turn_back(r, overdue);
	todo = r->saga->state == SAGA_RUNNING ? intend_to_act(r) : intend_to_undo(r);
	r->saga->due_ms = r->now_ms + saga_rule_lease(r, todo);
	return todo;
}

/* A failure that may be gone the next time. */
static bool is_passing(const struct saga_rule *r, enum rc rc)
{
	if (rc == RC_DENIED)
		return current(r)->is_patient;
	return rc == RC_UNAVAILABLE || rc == RC_TIMEOUT || rc == RC_LIMITED;
}

/* Undoing has twice as many. */
static bool has_tries_left(const struct saga_rule *r)
{
	int64_t most = current(r)->tries ? current(r)->tries : SAGA_TRIES;

	return r->saga->tries < (r->saga->state == SAGA_UNDOING ? 2 * most : most);
}

static enum saga_next wait_for_next_try(const struct saga_rule *r)
{
	r->saga->due_ms = r->now_ms + span_of(r, r->backoff_ms);
	r->saga->owner = STR("");
	return SAGA_NEXT_WAIT;
}

/* Why the step is given up after this failure; empty: it is not. */
static struct str find_why_given_up(const struct saga_rule *r, const struct saga_outcome *o)
{
	const struct saga *saga = r->saga;
	const char        *name = current(r)->name;
	struct str         overdue;

	if (!is_passing(r, o->rc))
		return str_format(r->arena, "step %s: %.*s", name, STR_ARG(o->error));
	if (!has_tries_left(r))
		return str_format(r->arena, "step %s failed %lld times: %.*s", name, (long long)saga->tries,
		                  STR_ARG(o->error));
	overdue = find_overdue(r);
	return overdue.n ? str_format(r->arena, "%.*s: %.*s", STR_ARG(overdue), STR_ARG(o->error)) : overdue;
}

/* What made it turn, from a reason that may have been written by an earlier parking. */
static struct str find_first_reason(struct str reason)
{
	const char *tail = reason.n ? memmem(reason.p, reason.n, TURNED_BECAUSE, sizeof(TURNED_BECAUSE) - 1) : NULL;

	if (!tail)
		return reason;
	tail += sizeof(TURNED_BECAUSE) - 1;
	return str_of(tail, (size_t)(reason.p + reason.n - tail));
}

static enum saga_next settle_failed_undo(const struct saga_rule *r, const struct saga_outcome *o)
{
	struct str first = find_first_reason(r->saga->reason);

	if (is_passing(r, o->rc) && has_tries_left(r))
		return wait_for_next_try(r);
	saga_rule_park(r, str_format(r->arena, "step %s cannot be undone: %.*s" TURNED_BECAUSE "%.*s", current(r)->name,
	                             STR_ARG(o->error), STR_ARG(first)));
	return SAGA_NEXT_END;
}

enum saga_next saga_rule_settle(const struct saga_rule *r, const struct saga_outcome *o)
{
	struct saga *saga = r->saga;
	bool         is_back = saga->state == SAGA_UNDOING;
	struct str   why;

	assert(saga->state == SAGA_RUNNING || is_back);
	if (o->has_failed) {
		saga->tries++;
		saga->last_error = utf8_clip(o->error, ERROR_MAX);
		if (is_back)
			return settle_failed_undo(r, o);
		why = find_why_given_up(r, o);
		if (!why.n)
			return wait_for_next_try(r);
		turn_back(r, why);
		return go_on(r, saga->step);
	}
	/* Going back without having found anything to undo, there was no call whose outcome could be noted. */
	if (!is_back || current_mark(r) == SAGA_MARK_UNDOING) {
		set_mark(r, saga->step, is_back ? SAGA_MARK_UNDONE : SAGA_MARK_DONE);
		saga->data = o->data;
		saga->last_error = STR("");
	}
	return go_on(r, saga->step);
}

void saga_rule_park(const struct saga_rule *r, struct str reason)
{
	r->saga->is_back = r->saga->state == SAGA_UNDOING;
	r->saga->reason = utf8_clip(reason, ERROR_MAX);
	(void)end(r, SAGA_PARKED); /* always SAGA_NEXT_END */
}

enum saga_next saga_rule_refuse(const struct saga_rule *r, const struct saga_outcome *o)
{
	struct saga *saga = r->saga;

	saga->tries++;
	saga->last_error = utf8_clip(o->error, ERROR_MAX);
	if (is_passing(r, o->rc) && has_tries_left(r))
		return wait_for_next_try(r);
	saga_rule_park(r, str_format(r->arena, "the %s end of it was refused: %.*s",
	                             saga->state == SAGA_UNDOING ? "undone" : "done", STR_ARG(o->error)));
	return SAGA_NEXT_END;
}

/* --- operators --- */

static enum rc refuse(const struct saga *saga, const char *order, const char *why, struct err *e)
{
	return err_set(e, RC_CONFLICT, "saga %.*s cannot be %s: it is %s%s", STR_ARG(saga->id), order,
	               saga_state_names[saga->state], why);
}

static bool has_ended(const struct saga *saga)
{
	return saga->state == SAGA_DONE || saga->state == SAGA_UNDONE;
}

/* A parked one is under way again, in the direction it had. */
static void unpark(const struct saga_rule *r)
{
	struct saga *saga = r->saga;

	if (saga->state != SAGA_PARKED)
		return;
	saga->state = saga->is_back ? SAGA_UNDOING : SAGA_RUNNING;
	saga->is_back = 0;
	saga->ended_ms = 0;
	saga->tries = 0;
	saga->step_since_ms = r->now_ms;
	saga->leftovers = STR("");
}

/* Whoever has it now has lost it. */
static void take_away(const struct saga_rule *r)
{
	r->saga->owner = STR("");
	r->saga->fence++;
}

enum rc saga_rule_retry(const struct saga_rule *r, struct err *e)
{
	struct saga *saga = r->saga;

	if (has_ended(saga))
		return refuse(saga, "retried", "", e);
	if (is_owned(r))
		return refuse(saga, "retried", " and a call is under way: wait for its outcome, or skip or abort", e);
	unpark(r);
	saga->due_ms = r->now_ms;
	return RC_OK;
}

enum rc saga_rule_skip(const struct saga_rule *r, enum saga_next *ret, struct err *e)
{
	struct saga *saga = r->saga;
	bool         was_owned = is_owned(r), is_back;

	if (has_ended(saga))
		return refuse(saga, "made to skip a step", "", e);
	unpark(r);
	take_away(r);
	saga->due_ms = r->now_ms;
	is_back = saga->state == SAGA_UNDOING;
	/* A call that is under way may still happen: then the mark goes on saying so. */
	if (!was_owned)
		set_mark(r, saga->step, is_back ? SAGA_MARK_UNDONE : SAGA_MARK_SKIPPED);
	*ret = go_on(r, is_back ? saga->step - 1 : saga->step + 1);
	return RC_OK;
}

enum rc saga_rule_abort(const struct saga_rule *r, struct str reason, enum saga_next *ret, struct err *e)
{
	struct saga *saga = r->saga;

	if (has_ended(saga))
		return refuse(saga, "aborted", "", e);
	if (saga->state == SAGA_UNDOING)
		return refuse(saga, "aborted", " already", e);
	/* Undoing waits for the end of the lease: before it, the call under way could still happen after its own
	 * undoing. Its owner stays named, so that nobody makes it due earlier. */
	if (is_owned(r)) {
		saga->fence++;
	} else {
		saga->due_ms = r->now_ms;
		unpark(r);
		take_away(r);
	}
	turn_back(r, reason);
	*ret = go_on(r, saga->step);
	return RC_OK;
}
