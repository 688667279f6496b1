/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_steps.c - what the guard's sagas do outside.
 *
 * Always true:
 *   1. An account is moved after it was seen where it is, and the move counts when it was seen where it should be: success is never inferred
 *      from the absence of an error, and "already there" is success.                       [bring()]
 *   2. It is moved from one place only: an account that is anywhere else was moved by somebody else, and is left there.   [bring()]
 *   3. The table is written after the move, and only if its status is the one that was read: what the other system wrote meanwhile is read
 *      again, and a lease is never written over.                                           [follow_in_table()]
 *   4. Every act can be repeated, so no step has a check or an undo of its own.
 *   5. A saga that is no longer the account's does nothing.                                [begin()]
 *
 * Not here: when sagas start, and what follows from their ends (guard_saga.c).
 */
#include "base/arena.h"
#include "domain/guard.h"
#include "kernel/saga.h"
#include "service/guard_parts.h"
#include "service/holds.h"
#include "store/store.h"

enum { TRIES = 8, BACKOFF_MAX_MS = 60000, UNTAG_TRIES = 300, UNTAG_BACKOFF_MAX_MS = 300000 };

/* --- the beginning of each step --- */

struct step {
	struct guard        *guard;
	struct arena        *arena;
	const struct saga   *saga;
	struct guard_order   order;
	struct guard_finding finding;
	bool                 is_stale;
	size_t               open_count; /* of the account's holds */
};

static enum rc see_records(struct session *s, void *arg, struct err *e)
{
	struct step      *st = arg;
	struct guard_mark mark;
	struct holds      open;
	enum rc           rc = guard_mark_read(s, st->order.account, &mark, e);

	if (rc || (rc = hold_list_open(s, st->order.account, &open, e)))
		return rc;
	st->is_stale = !str_eq(mark.saga_id, st->saga->id);
	st->open_count = open.count;
	return RC_OK;
}

static enum rc begin(struct saga_call *c, struct step *ret, struct err *e)
{
	enum rc rc;

	*ret = (struct step){ .guard = c->world, .arena = c->arena, .saga = c->saga };
	if ((rc = guard_order_read(c->saga, c->arena, &ret->order, e)) ||
	    (rc = guard_finding_read(c->data, c->arena, &ret->finding, e)) ||
	    (rc = store_read(ret->guard->options.store, see_records, ret, c->arena, e)))
		return rc;
	if (ret->is_stale)
		return err_set(e, RC_CONFLICT, "account %.*s is not this saga's any longer",
		               STR_ARG(ret->order.account));
	return RC_OK;
}

static void keep(struct saga_call *c, const struct step *st)
{
	c->data = guard_finding_write(&st->finding, c->arena);
}

/* --- moving --- */

static enum rc find_place(const struct step *st, struct str *ret, struct err *e)
{
	struct organisation *o = st->guard->options.cloud.organisation;
	enum rc              rc = o->ops->find_parent(o, st->order.account, st->arena, ret, e);

	return rc ? err_wrap(e, rc, "where account %.*s is", STR_ARG(st->order.account)) : RC_OK;
}

/* Refused because things are not as we saw them: look again. */
static enum rc look_again(enum rc rc, struct err *e)
{
	if (rc != RC_CONFLICT && rc != RC_NOT_FOUND)
		return rc;
	if (e)
		e->rc = RC_UNAVAILABLE;
	return RC_UNAVAILABLE;
}

static enum rc move(const struct step *st, struct str from, struct str to, struct err *e)
{
	struct organisation *o = st->guard->options.cloud.organisation;
	struct str           here;
	enum rc              rc = o->ops->move(o, st->order.account, from, to, e);

	if (rc == RC_NOT_FOUND)
		account_ous_forget(st->guard->ous);
	if (rc)
		return look_again(rc, e);
	if ((rc = find_place(st, &here, e)))
		return look_again(rc, e);
	if (!str_eq(here, to))
		return err_set(e, RC_UNAVAILABLE, "account %.*s was moved, but is in %.*s", STR_ARG(st->order.account),
		               STR_ARG(here));
	return RC_OK;
}

static enum rc find_ous(const struct step *st, const char *from, const char *to, struct str *ret_from,
                        struct str *ret_to, struct err *e)
{
	enum rc rc = account_ous_find(st->guard->ous, str_from(from), st->arena, ret_from, e);

	return rc ? rc : account_ous_find(st->guard->ous, str_from(to), st->arena, ret_to, e);
}

/* From one OU to another, by name; from nowhere else. */
static enum rc bring(struct step *st, const char *from_name, const char *to_name, struct err *e)
{
	struct str here, from, to, name;
	enum rc    rc = find_place(st, &here, e);

	if (rc)
		return look_again(rc, e);
	if ((rc = find_ous(st, from_name, to_name, &from, &to, e)))
		return rc;
	if (!str_eq(here, from) && !str_eq(here, to)) { /* or do we know the OUs' ids no longer? */
		account_ous_forget(st->guard->ous);
		if ((rc = find_ous(st, from_name, to_name, &from, &to, e)))
			return rc;
	}
	st->finding.ou_id = to;
	if (str_eq(here, to))
		return RC_OK;
	if (str_eq(here, from))
		return move(st, from, to, e);
	name = account_ous_name(st->guard->ous, here, st->arena);
	st->finding.note = str_format(st->arena, "the account is in %.*s by now: somebody else has moved it",
	                              STR_ARG(name));
	st->finding.is_flagged = guard_is_leased(name); /* its OU is named as the status */
	if (st->finding.is_flagged)
		st->finding.status = name;
	return RC_OK;
}

/* --- the table --- */

static enum rc read_table(const struct step *st, struct table_account *ret, bool *ret_is_tracked, struct err *e)
{
	struct account_table *t = st->guard->options.table;
	struct err            cause = { 0 };
	enum rc               rc = t->ops->get(t, st->order.account, st->arena, ret, &cause);

	*ret_is_tracked = !rc;
	if (rc == RC_NOT_FOUND)
		return RC_OK;
	return rc ? err_set(e, rc, "the account table: %s", cause.msg) : RC_OK;
}

/* Have it say `to`, from any status but a lease's; what it says by now is the condition. */
static enum rc follow_in_table(struct step *st, struct str to, struct err *e)
{
	struct account_table *t = st->guard->options.table;
	struct table_account  found;
	bool                  is_tracked;
	enum rc               rc = read_table(st, &found, &is_tracked, e);

	if (rc || !is_tracked || str_eq(found.status, to))
		return rc;
	st->finding.status = found.status;
	st->finding.is_flagged = guard_is_leased(found.status);
	if (st->finding.is_flagged)
		return RC_OK;
	return look_again(t->ops->set_status(t, st->order.account, found.status, to, e), e);
}

enum rc guard_correct_table(struct guard *g, struct str account, struct arena *a, struct str *ret_was, struct err *e)
{
	struct step          st = { .guard = g, .arena = a, .order = { .account = account } };
	struct table_account found;
	struct str           here, quarantine;
	bool                 is_tracked;
	enum rc              rc;

	*ret_was = STR("");
	if ((rc = find_place(&st, &here, e)) || (rc = account_ous_find(g->ous, STR("Quarantine"), a, &quarantine, e)) ||
	    !str_eq(here, quarantine) || (rc = read_table(&st, &found, &is_tracked, e)) || !is_tracked ||
	    str_eq(found.status, STR("Quarantine")))
		return rc;
	*ret_was = found.status;
	return guard_is_leased(found.status) ? RC_OK : follow_in_table(&st, STR("Quarantine"), e);
}

/* --- guard-hold --- */

static enum rc hold_move(struct saga_call *c, struct err *e)
{
	struct step st;
	enum rc     rc = begin(c, &st, e);

	if (!rc)
		rc = bring(&st, "Available", "Quarantine", e);
	if (!rc)
		keep(c, &st);
	return rc;
}

static enum rc hold_note(struct saga_call *c, struct err *e)
{
	struct step st;
	enum rc     rc = begin(c, &st, e);

	if (rc || st.finding.note.n)
		return rc;
	rc = follow_in_table(&st, STR("Quarantine"), e);
	if (!rc)
		keep(c, &st);
	return rc;
}

/* --- guard-release --- */

static enum rc release_look(struct saga_call *c, struct err *e)
{
	struct table_account found = { 0 };
	struct step          st;
	struct str           here, quarantine, available;
	bool                 is_tracked;
	enum guard_release   verdict;
	enum rc              rc = begin(c, &st, e);

	if (rc || (rc = read_table(&st, &found, &is_tracked, e)))
		return rc;
	if (is_tracked && (rc = find_place(&st, &here, e)))
		return look_again(rc, e);
	if ((rc = find_ous(&st, "Quarantine", "Available", &quarantine, &available, e)))
		return rc;
	verdict = guard_decide_release(is_tracked, found.status, is_tracked ? here : STR(""), quarantine, available);
	st.finding.status = found.status;
	if (verdict != GUARD_RELEASE)
		st.finding.note = str_from(guard_release_reasons[verdict]);
	else if (st.open_count > 1)
		st.finding.note = STR("the account is held for another reason by now");
	keep(c, &st);
	return RC_OK;
}

static enum rc release_move(struct saga_call *c, struct err *e)
{
	struct step st;
	enum rc     rc = begin(c, &st, e);

	if (rc || st.finding.note.n)
		return rc;
	if (st.open_count > 1)
		st.finding.note = STR("the account is held for another reason by now");
	else if ((rc = bring(&st, "Quarantine", "Available", e)))
		return rc;
	keep(c, &st);
	return RC_OK;
}

/* Only what we wrote ourselves is written over. */
static enum rc release_note(struct saga_call *c, struct err *e)
{
	struct account_table *t;
	struct table_account  found;
	struct step           st;
	bool                  is_tracked;
	enum rc               rc = begin(c, &st, e);

	if (rc || st.finding.note.n || (rc = read_table(&st, &found, &is_tracked, e)))
		return rc;
	if (!is_tracked || !str_eq(found.status, STR("Quarantine")))
		return RC_OK;
	t = st.guard->options.table;
	return look_again(t->ops->set_status(t, st.order.account, STR("Quarantine"), STR("Available"), e), e);
}

/* --- guard-eject --- */

static enum rc eject_move(struct saga_call *c, struct err *e)
{
	struct step st;
	enum rc     rc = begin(c, &st, e);

	if (!rc)
		rc = bring(&st, "Available", "Exit", e);
	if (!rc)
		keep(c, &st);
	return rc;
}

/* After the move: an account that is not where we bring it may be lent, and then the access is its tenant's. */
static enum rc eject_revoke(struct saga_call *c, struct err *e)
{
	struct cloud_assignment *list;
	struct step              st;
	struct access           *x;
	size_t                   count;
	enum rc                  rc = begin(c, &st, e);

	x = rc || st.finding.note.n ? NULL : st.guard->options.cloud.access;
	if (!x || (rc = x->ops->list(x, st.order.account, st.arena, &list, &count, e)))
		return rc;
	for (size_t i = 0; !rc && i < count; i++)
		rc = x->ops->revoke(x, &list[i], e);
	return rc ? err_wrap(e, rc, "access to account %.*s", STR_ARG(st.order.account)) : RC_OK;
}

static enum rc eject_delete(struct saga_call *c, struct err *e)
{
	struct account_table *t;
	struct table_account  found;
	struct step           st;
	bool                  is_tracked;
	enum rc               rc = begin(c, &st, e);

	if (rc || st.finding.note.n || (rc = read_table(&st, &found, &is_tracked, e)) || !is_tracked)
		return rc;
	st.finding.status = found.status;
	st.finding.is_flagged = guard_is_leased(found.status);
	keep(c, &st);
	if (st.finding.is_flagged)
		return RC_OK;
	t = st.guard->options.table;
	return look_again(t->ops->delete (t, st.order.account, found.status, e), e);
}

/* --- guard-untag --- */

static enum rc untag(struct saga_call *c, struct err *e)
{
	struct guard        *g = c->world;
	struct organisation *o = g->options.cloud.organisation;
	struct guard_order   order;
	enum rc              rc = guard_order_read(c->saga, c->arena, &order, e);

	if (rc)
		return rc;
	rc = o->ops->remove_tag(o, order.account, STR(HOLD_BYPASS_TAG), e);
	return rc ? err_wrap(e, rc, "the tag " HOLD_BYPASS_TAG " of account %.*s", STR_ARG(order.account)) : RC_OK;
}

#define STEP(text, fn)                                                                    \
	{                                                                                 \
		.name = text, .act = fn, .tries = TRIES, .backoff_max_ms = BACKOFF_MAX_MS \
	}

/* Some minutes of tries; then guard_saga.c notes what is wrong, and begins anew after a while. */
const struct saga_step guard_hold_steps[GUARD_HOLD_STEPS] = {
	STEP("move", hold_move),
	STEP("note", hold_note),
};
const struct saga_step guard_release_steps[GUARD_RELEASE_STEPS] = {
	STEP("look", release_look),
	STEP("move", release_move),
	STEP("note", release_note),
};
const struct saga_step guard_eject_steps[GUARD_EJECT_STEPS] = {
	STEP("move", eject_move),
	STEP("revoke", eject_revoke),
	STEP("delete", eject_delete),
};
const struct saga_step guard_untag_steps[GUARD_UNTAG_STEPS] = {
	{ .name = "untag", .act = untag, .tries = UNTAG_TRIES, .backoff_max_ms = UNTAG_BACKOFF_MAX_MS },
};
