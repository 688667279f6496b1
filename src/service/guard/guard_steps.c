/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_steps.c - what the guard's sagas do outside.
 *
 * Always true:
 *   1. An account is located before and after a move: success is never inferred from the absence of an error, and
 *      "already there" is success. [bring(), move()]
 *   2. It is moved from one place only: if it is elsewhere, somebody else has moved it, and it is left there. [bring()]
 *   3. The table is written after the move, and only if its status is the one that was read: what the other system
 *      wrote meanwhile is read again, and a lease is never written over. [hold_note()]
 *   4. Every act can be repeated, so no step has a check or an undo of its own.
 *   5. A saga that is no longer the account's does nothing.                                [begin()]
 *   6. Neither does one whose hold has ended meanwhile, although no other saga has begun.  [see_hold()]
 *
 * Not here: when sagas start, and what follows from their ends (guard_saga.c).
 */
#include "domain/guard.h"
#include "kernel/saga.h"
#include "service/guard/guard_private.h"
#include "service/hold/holds.h"
#include "store/store.h"

enum { TRIES = 8, BACKOFF_MAX_MS = 60000, UNTAG_TRIES = 300, UNTAG_BACKOFF_MAX_MS = 300000 };

/* --- the beginning of each step --- */

struct step {
	struct guard        *guard;
	struct arena        *arena;
	const struct saga   *saga;
	struct guard_task    task;
	struct guard_finding finding;
	bool                 is_stale;
	bool                 is_open;    /* the hold that it is for */
	bool                 is_wanted;  /* by that hold, or by another one of the same move */
	size_t               open_count; /* of the account's holds */
};

static const struct str hold_ended = STR_INIT("its hold has ended meanwhile");
static const struct str held_otherwise = STR_INIT("the account is held for another reason by now");

static enum rc see_hold(struct session *s, struct step *st, const struct holds *open, struct err *e)
{
	struct hold hold;
	bool        is_there;
	enum rc     rc = session_find(s, &hold_type, st->task.hold, &hold, &is_there, e);

	st->is_open = !rc && is_there && hold.state == HOLD_OPEN;
	st->is_wanted = st->is_open;
	for (size_t i = 0; !rc && is_there && i < open->count; i++)
		st->is_wanted = st->is_wanted || str_eq(open->items[i].source_event, hold.source_event);
	return rc;
}

static enum rc see_records(struct session *s, void *arg, struct err *e)
{
	struct step      *st = arg;
	struct guard_mark mark;
	struct holds      open;
	enum rc           rc = session_find_or_new(s, &guard_mark_type, st->task.account, &mark, e);

	if (rc || (rc = hold_list_open(s, st->task.account, &open, e)))
		return rc;
	st->is_stale = !str_eq(mark.saga_id, st->saga->id);
	st->open_count = open.count;
	return see_hold(s, st, &open, e);
}

static enum rc begin(struct saga_call *c, struct step *ret, struct err *e)
{
	enum rc rc;

	*ret = (struct step){ .guard = c->world, .arena = c->arena, .saga = c->saga };
	if ((rc = guard_task_read(c->saga, c->arena, &ret->task, e)) ||
	    (rc = guard_finding_read(c->data, c->arena, &ret->finding, e)) ||
	    (rc = store_read(ret->guard->options.store, see_records, ret, c->arena, e)))
		return rc;
	if (ret->is_stale)
		return err_set(e, RC_CONFLICT, "another saga has taken over account %.*s", STR_ARG(ret->task.account));
	return RC_OK;
}

static void keep(struct saga_call *c, const struct step *st)
{
	c->data = guard_finding_write(&st->finding, c->arena);
}

/* --- moving --- */

static enum rc move(const struct step *st, struct ou_pair ids, struct err *e)
{
	struct account_ous *ous = st->guard->ous;
	struct str          here, account = st->task.account;
	enum rc             rc = account_ous_move(ous, account, ids, e);

	if (rc || (rc = account_look_again(account_ous_locate(ous, account, st->arena, &here, e), e)) ||
	    str_eq(here, ids.to))
		return rc;
	return err_set(e, RC_UNAVAILABLE, "account %.*s was moved, but is in %.*s", STR_ARG(account), STR_ARG(here));
}

/* From one OU to another, by name; from nowhere else. */
static enum rc bring(struct step *st, struct ou_pair names, struct err *e)
{
	struct account_ous *ous = st->guard->ous;
	struct ou_pair      ids;
	struct str          here, name;
	enum rc             rc = account_look_again(account_ous_locate(ous, st->task.account, st->arena, &here, e), e);

	if (rc || (rc = account_ous_route(ous, here, names, st->arena, &ids, e)))
		return rc;
	st->finding.ou_id = ids.to;
	if (str_eq(here, ids.to))
		return RC_OK;
	if (str_eq(here, ids.from))
		return move(st, ids, e);
	name = account_ous_name(ous, here, st->arena);
	st->finding.note = str_format(st->arena, "the account is in %.*s by now: somebody else has moved it",
	                              STR_ARG(name));
	st->finding.is_flagged = guard_is_leased(name); /* its OU is named as the status */
	if (st->finding.is_flagged)
		st->finding.status = name;
	return RC_OK;
}

static const struct ou_pair to_quarantine = { STR_INIT("Available"), STR_INIT("Quarantine") };
static const struct ou_pair from_quarantine = { STR_INIT("Quarantine"), STR_INIT("Available") };
static const struct ou_pair to_exit = { STR_INIT("Available"), STR_INIT("Exit") };

/* --- the table --- */

enum rc guard_read_table(const struct guard *g, struct str account, struct arena *a, struct table_account *ret,
                         bool *ret_is_tracked, struct err *e)
{
	struct account_table *t = g->options.table;
	struct err            cause = { 0 };
	enum rc               rc;

	*ret = (struct table_account){ 0 };
	rc = t->ops->get(t, account, a, ret, &cause);
	*ret_is_tracked = !rc;
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "the account table: %s", cause.msg) : RC_OK;
}

/* A step that does something to what the table says: *ret_is_tracked is false when there is nothing to do. */
static enum rc begin_at_table(struct saga_call *c, struct step *ret, struct table_account *ret_found,
                              bool *ret_is_tracked, struct err *e)
{
	enum rc rc = begin(c, ret, e);

	*ret_is_tracked = false;
	if (rc || ret->finding.note.n)
		return rc;
	return guard_read_table(ret->guard, ret->task.account, ret->arena, ret_found, ret_is_tracked, e);
}

static enum rc set_status(const struct step *st, struct str from, struct str to, struct err *e)
{
	struct account_table *t = st->guard->options.table;

	return account_look_again(t->ops->set_status(t, st->task.account, from, to, e), e);
}

enum rc guard_correct_table(struct guard *g, struct str account, struct arena *a, struct str *ret_was, struct err *e)
{
	struct step          st = { .guard = g, .arena = a, .task = { .account = account } };
	struct table_account found;
	struct str           here, quarantine;
	bool                 is_tracked;
	enum rc              rc;

	*ret_was = STR("");
	if ((rc = account_ous_locate(g->ous, account, a, &here, e)) ||
	    (rc = account_ous_find(g->ous, STR("Quarantine"), a, &quarantine, e)) || !str_eq(here, quarantine) ||
	    (rc = guard_read_table(g, account, a, &found, &is_tracked, e)) || !is_tracked ||
	    str_eq(found.status, STR("Quarantine")))
		return rc;
	*ret_was = found.status;
	return guard_is_leased(found.status) ? RC_OK : set_status(&st, found.status, STR("Quarantine"), e);
}

/* --- guard-hold --- */

static enum rc hold_move(struct saga_call *c, struct err *e)
{
	struct step st;
	enum rc     rc = begin(c, &st, e);

	if (rc)
		return rc;
	if (!st.is_wanted)
		st.finding.note = hold_ended;
	else if ((rc = bring(&st, to_quarantine, e)))
		return rc;
	keep(c, &st);
	return RC_OK;
}

/* From any status but a lease's; what it says by now is the condition. When its holds have ended since the move, only
 * if the account is still there: after another cleanup it would seem to be held already. */
static enum rc hold_note(struct saga_call *c, struct err *e)
{
	struct table_account found;
	struct step          st;
	bool                 is_tracked;
	enum rc              rc = begin_at_table(c, &st, &found, &is_tracked, e);

	if (rc || !is_tracked || str_eq(found.status, to_quarantine.to))
		return rc;
	if (!st.is_wanted)
		return account_look_again(guard_correct_table(st.guard, st.task.account, st.arena, &found.status, e),
		                          e);
	st.finding.status = found.status;
	st.finding.is_flagged = guard_is_leased(found.status);
	if (!st.finding.is_flagged && (rc = set_status(&st, found.status, to_quarantine.to, e)))
		return rc;
	keep(c, &st);
	return RC_OK;
}

/* --- guard-release --- */

/* Why its hold brings nothing back any more; empty: it does. */
static struct str refusal(const struct step *st)
{
	return !st->is_open ? hold_ended : st->open_count > 1 ? held_otherwise : STR("");
}

static enum rc release_look(struct saga_call *c, struct err *e)
{
	struct table_account found;
	struct step          st;
	struct ou_pair       ids;
	struct str           here = STR("");
	bool                 is_tracked;
	enum guard_release   verdict;
	enum rc              rc = begin(c, &st, e);

	if (rc || (rc = guard_read_table(st.guard, st.task.account, st.arena, &found, &is_tracked, e)))
		return rc;
	if (is_tracked && (rc = account_ous_locate(st.guard->ous, st.task.account, st.arena, &here, e)))
		return account_look_again(rc, e);
	if ((rc = account_ous_find(st.guard->ous, from_quarantine.from, st.arena, &ids.from, e)) ||
	    (rc = account_ous_find(st.guard->ous, from_quarantine.to, st.arena, &ids.to, e)))
		return rc;
	verdict = guard_decide_release(is_tracked, found.status, here, ids.from, ids.to);
	st.finding.status = found.status;
	st.finding.note = verdict == GUARD_RELEASE ? refusal(&st) : str_from(guard_release_reasons[verdict]);
	keep(c, &st);
	return RC_OK;
}

static enum rc release_move(struct saga_call *c, struct err *e)
{
	struct step st;
	enum rc     rc = begin(c, &st, e);

	if (rc || st.finding.note.n)
		return rc;
	st.finding.note = refusal(&st);
	if (!st.finding.note.n && (rc = bring(&st, from_quarantine, e)))
		return rc;
	keep(c, &st);
	return RC_OK;
}

/* Only what we wrote ourselves is written over, and only while the account is this hold's to give back. */
static enum rc release_note(struct saga_call *c, struct err *e)
{
	struct table_account found;
	struct step          st;
	bool                 is_tracked;
	enum rc              rc = begin_at_table(c, &st, &found, &is_tracked, e);

	if (rc || !is_tracked || !str_eq(found.status, from_quarantine.from))
		return rc;
	st.finding.note = refusal(&st);
	keep(c, &st);
	if (st.finding.note.n)
		return RC_OK;
	return set_status(&st, from_quarantine.from, from_quarantine.to, e);
}

/* --- guard-eject --- */

static enum rc eject_move(struct saga_call *c, struct err *e)
{
	struct step st;
	enum rc     rc = begin(c, &st, e);

	if (rc || (rc = bring(&st, to_exit, e)))
		return rc;
	keep(c, &st);
	return RC_OK;
}

/* After the move: an account that is elsewhere may be lent, and then the access belongs to its lease. */
static enum rc eject_revoke(struct saga_call *c, struct err *e)
{
	struct cloud_assignment *list;
	struct step              st;
	struct access           *x;
	size_t                   count;
	enum rc                  rc = begin(c, &st, e);

	x = rc || st.finding.note.n ? NULL : st.guard->options.cloud.access;
	if (!x || (rc = x->ops->list(x, st.task.account, st.arena, &list, &count, e)))
		return rc;
	for (size_t i = 0; !rc && i < count; i++)
		rc = x->ops->set(x, &list[i], false, e);
	return err_wrap(e, rc, "access to account %.*s", STR_ARG(st.task.account));
}

static enum rc eject_delete(struct saga_call *c, struct err *e)
{
	struct account_table *t;
	struct table_account  found;
	struct step           st;
	bool                  is_tracked;
	enum rc               rc = begin_at_table(c, &st, &found, &is_tracked, e);

	if (rc || !is_tracked)
		return rc;
	st.finding.status = found.status;
	st.finding.is_flagged = guard_is_leased(found.status);
	keep(c, &st);
	if (st.finding.is_flagged)
		return RC_OK;
	t = st.guard->options.table;
	return account_look_again(t->ops->delete (t, st.task.account, found.status, e), e);
}

/* --- guard-untag --- */

static enum rc untag(struct saga_call *c, struct err *e)
{
	struct guard        *g = c->world;
	struct organisation *o = g->options.cloud.organisation;
	struct guard_task    task;
	enum rc              rc = guard_task_read(c->saga, c->arena, &task, e);

	if (rc)
		return rc;
	rc = o->ops->remove_tag(o, task.account, STR(HOLD_BYPASS_TAG), e);
	return err_wrap(e, rc, "the tag " HOLD_BYPASS_TAG " of account %.*s", STR_ARG(task.account));
}

#define STEP(text, fn)                                                                                        \
	{                                                                                                     \
		.name = text, .act = fn, .tries = TRIES, .backoff_max_ms = BACKOFF_MAX_MS, .is_patient = true \
	}

/* Some minutes of tries; then guard_saga.c notes what is wrong, and begins anew after a while. */
static const struct saga_step hold_steps[] = {
	STEP("move", hold_move),
	STEP("note", hold_note),
};
static const struct saga_step release_steps[] = {
	STEP("look", release_look),
	STEP("move", release_move),
	STEP("note", release_note),
};
static const struct saga_step eject_steps[] = {
	STEP("move", eject_move),
	STEP("revoke", eject_revoke),
	STEP("delete", eject_delete),
};
static const struct saga_step untag_steps[] = {
	{ .name = "untag",
	  .act = untag,
	  .tries = UNTAG_TRIES,
	  .backoff_max_ms = UNTAG_BACKOFF_MAX_MS,
	  .is_patient = true },
};

void guard_kinds(struct guard *g, struct saga_kind ret[GUARD_KINDS])
{
#define KIND(text, steps, on_end) (struct saga_kind){ text, steps, ARRAY_LEN(steps), 0, on_end, g }
	ret[0] = KIND(GUARD_HOLD_SAGA, hold_steps, guard_hold_ends);
	ret[1] = KIND(GUARD_RELEASE_SAGA, release_steps, guard_release_ends);
	ret[2] = KIND(GUARD_EJECT_SAGA, eject_steps, guard_eject_ends);
	ret[3] = KIND(GUARD_UNTAG_SAGA, untag_steps, guard_untag_ends);
#undef KIND
}
