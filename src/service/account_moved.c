/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_moved.c - moves of our own accounts that were not ours.
 *
 * The scan for drift finds them too, within hours. CloudTrail tells of them within seconds, and in the meantime an account could be lent
 * that is not where it should be. So an event about an account that should be elsewhere is looked into: where is it really?
 *
 * Always true:
 *   1. The organisation decides, not the event: one that is late, or out of order, or about a move of ours, finds the account where it
 *      should be and changes nothing.
 *   2. An account that is being moved by us, or was changed since we looked, is left alone.            [settle()]
 *   3. What is not where it should be is locked away as drift, never brought back to be lent.
 *
 * Not here: accounts that nobody told of (account_drift.c), and those that left the organisation (the same).
 */
#include "service/account_moved.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "domain/move_event.h"
#include "service/account_follow.h"
#include "service/account_ous.h"
#include "service/lease_flow.h"
#include "service/lease_records.h"
#include "store/session.h"
#include "store/store.h"

enum { TRIES = 30 };

#define ACTOR "account-moved"

struct account_moved {
	struct store        *store;
	struct organisation *organisation;
	struct account_ous  *ous;
};

/* What was seen. */
struct sighting {
	struct move_event event;
	struct str        place;   /* the name of the OU where it is; empty: not of interest */
	struct account    account; /* as it was before we looked */
	bool              is_ours;
};

struct account_moved *account_moved_new(struct store *store, struct organisation *organisation)
{
	struct account_moved *m = mem_new(struct account_moved);

	m->store = store;
	m->organisation = organisation;
	m->ous = account_ous_new(organisation);
	return m;
}

void account_moved_free(struct account_moved *m)
{
	if (!m)
		return;
	account_ous_free(m->ous);
	free(m);
}

static enum rc see_account(struct session *s, void *arg, struct err *e)
{
	struct sighting *x = arg;
	enum rc          rc = session_get(s, &account_type, x->event.account, &x->account, NULL);

	x->is_ours = rc == RC_OK;
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "account %.*s cannot be read", STR_ARG(x->event.account))
	                                : RC_OK;
}

/* The OU where the record wants it. */
static struct str wanted(const struct account *a)
{
	return str_from(account_ou_names[a->status]);
}

/* Who has left the organisation is for the scan to judge. */
static enum rc find_place(struct account_moved *m, struct sighting *x, struct arena *a, struct err *e)
{
	struct organisation *o = m->organisation;
	struct str           here, expected;
	enum rc              rc = account_ous_find(m->ous, wanted(&x->account), a, &expected, e);

	if (rc || str_eq(x->event.destination, expected))
		return rc;
	rc = o->ops->find_parent(o, x->event.account, a, &here, NULL);
	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return err_set(e, rc, "where account %.*s is cannot be told", STR_ARG(x->event.account));
	x->place = account_ous_name(m->ous, here, a);
	if (move_is_parent(x->place)) /* an id: it is in none of the pool's OUs, and has left it */
		x->place = STR("");
	return RC_OK;
}

static enum rc look(struct call *c, struct err *e)
{
	struct account_moved *m = c->arg;
	struct sighting      *x = arena_alloc(c->arena, sizeof(*x));
	struct move_problem   problem;
	enum rc               rc = move_event_parse(c->delivery->event.detail, c->arena, &x->event, &problem);

	if (rc)
		return err_set(e, rc, "%s: %s", move_problem_names[problem.kind], problem.details);
	c->result = x;
	if ((rc = store_read(m->store, see_account, x, c->arena, e)) || !x->is_ours || x->account.is_following)
		return rc;
	return find_place(m, x, c->arena, e);
}

static enum rc lock_away(struct session *s, struct account *a, const struct sighting *x, struct err *e)
{
	struct str reason = str_format(session_arena(s), "it was moved to %.*s by %.*s, but should be in %s",
	                               STR_ARG(x->place), STR_ARG(x->event.by), account_ou_names[a->status]);

	if (!str_eq(a->placed_ou, STR(OU_ENTRY))) /* what never arrived is still to be let in */
		a->placed_ou = str_dup(session_arena(s), x->place);
	return account_lock_away(s, a, HOLD_DRIFT, reason, STR(ACTOR), STR(""), e);
}

static enum rc settle(struct session *s, const struct call *c, struct err *e)
{
	const struct sighting *x = c->result;
	struct account         a;
	enum rc                rc;

	if (!x->place.n)
		return RC_OK;
	rc = session_get(s, &account_type, x->event.account, &a, NULL);
	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return err_set(e, rc, "account %.*s cannot be read", STR_ARG(x->event.account));
	if (a.is_following || a.version != x->account.version || a.status == ACCOUNT_EXIT ||
	    str_eq(x->place, wanted(&a)))
		return RC_OK;
	return lock_away(s, &a, x, e);
}

struct queue account_moved_queue(struct account_moved *m)
{
	return (struct queue){ .name = MOVED_QUEUE, .call = look, .settle = settle, .arg = m, .tries = TRIES };
}
