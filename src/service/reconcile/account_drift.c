/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_drift.c - accounts of our own that are not where they should be: found by a scan, or told by CloudTrail.
 *
 * The scan lists all of the pool's OUs, and then goes through our records. A first difference may be a move between the
 * two listings: it is only stored. If the next pass finds it too, it emits AccountDriftDetected, and the handler
 * quarantines the account from where it is, or forgets it when it is in none of the OUs. An unknown account in the pool
 * is reported at once, except in Entry and Exit, where such accounts belong. Where the OU is right but a saga failed
 * after the move, each pass starts another one, so an outage that has ended leaves nothing behind.
 *
 * Until the next scan an account could be lent that is not where it should be, and CloudTrail tells of a move within
 * seconds. So an event about an account that should be elsewhere has us ask where it is; accounts that have left the
 * pool are left to the scan. AccountDriftDetected is then in the commit that locks the account away, so the handler
 * finds nothing left to do.
 *
 * Always true:
 *   1. Nothing is concluded from an incomplete listing.                                             [pass_find_drift()]
 *   2. Whoever is being moved by us, or was changed since we began to look, is left alone. [compare(), settle()]
 *   3. Each verdict is made again in the transaction that stores it.                                [compare()]
 *   4. The organisation decides, not the event: one that is late, or out of order, or about a move of ours, finds the
 *      account where it should be and changes nothing. [look()]
 *   5. What is not where it should be is locked away as drift, never brought back to be lent.        [lock_away()]
 */
#include "service/reconcile/reconcile.h"

#include "base/arena.h"
#include "base/json.h"
#include "domain/move_event.h"
#include "service/account/account_follow.h"
#include "service/account/account_ous.h"
#include "service/hold/holds.h"
#include "service/pool/accounts.h"
#include "service/record/lease_records.h"
#include "store/walk.h"

#define ACTOR       "drift-monitor"
#define MOVED_ACTOR "account-moved"

enum { ACCOUNTS_PAGE = 500, MOVED_TRIES = 30 };

/* --- one account --- */

/* Stalled: it is where it should be, but its saga has failed since. Unknown: in one of our OUs, and not ours. */
enum verdict { FINE, DRIFTED, SUSPECTED, RECOVERED, STALLED, UNKNOWN, VERDICT_COUNT };
static const char *const verdict_names[VERDICT_COUNT] = { "scanned",   "drifted", "suspected",
	                                                  "recovered", "stalled", "unknown" };

struct comparison {
	struct pool_member seen; /* its OU is empty: in none */
	int64_t            started_ms;
	enum verdict       verdict; /* the answer */
};

/* The OU where the record wants it. */
static struct str wanted_ou(const struct account *a)
{
	return str_from(account_ou_names[a->status]);
}

static struct str describe(struct session *s, struct str ou, struct str expected_ou)
{
	struct str found = ou.n ? str_format(session_arena(s), "in %.*s", STR_ARG(ou))
	                        : STR("in none of the pool's OUs");

	if (!expected_ou.n)
		return str_format(session_arena(s), "it was found %.*s, but is not registered", STR_ARG(found));
	return str_format(session_arena(s), "it was found %.*s, but should be in %.*s", STR_ARG(found),
	                  STR_ARG(expected_ou));
}

static enum rc tell(struct session *s, const struct pool_member *m, struct str expected_ou, const char *actor,
                    struct str description, struct err *e)
{
	struct str details = JSON_OF(session_arena(s), member_str("drift_description", description));
	struct str detail = JSON_OF(session_arena(s), member_str("accountId", m->id),
	                            member_raw("driftDetails", details), member_if_any(member_str("actualOu", m->ou)),
	                            member_if_any(member_str("expectedOu", expected_ou)),
	                            member_if_any(member_str("name", m->name)),
	                            member_if_any(member_str("email", m->email)));

	return account_emit(s, EVENT_DRIFT_DETECTED, m->id, str_from(actor), STR(""), detail, e);
}

static enum verdict judge(const struct account *a, const struct comparison *c)
{
	if (a->is_following || a->edited_ms >= c->started_ms)
		return FINE;
	if (str_eq(c->seen.ou, wanted_ou(a)))
		return account_must_follow(a) ? STALLED : a->has_drifted ? RECOVERED : FINE;
	return a->has_drifted ? DRIFTED : SUSPECTED;
}

static enum rc compare(struct session *s, void *arg, struct err *e)
{
	struct comparison *c = arg;
	struct account     a;
	bool               is_there;
	enum rc            rc = session_find(s, &account_type, c->seen.id, &a, &is_there, e);

	if (rc)
		return rc;
	if (is_there != c->seen.is_known) /* by now */
		c->verdict = FINE;
	else
		c->verdict = is_there ? judge(&a, c) : UNKNOWN;
	switch (c->verdict) {
	case FINE: return RC_OK;
	case UNKNOWN: return tell(s, &c->seen, STR(""), ACTOR, describe(s, c->seen.ou, STR("")), e);
	case STALLED: return account_save(s, &a, STR(ACTOR), e);
	case DRIFTED:
		c->seen.name = a.name;
		c->seen.email = a.email;
		return tell(s, &c->seen, wanted_ou(&a), ACTOR, describe(s, c->seen.ou, wanted_ou(&a)), e);
	default:
		a.has_drifted = c->verdict == SUSPECTED;
		session_put(s, &account_type, &a);
		return RC_OK;
	}
}

/* --- the scan --- */

struct scan {
	const struct pass  *pass;
	int64_t             started_ms;
	struct pool_listing listing;
	int64_t             counts[VERDICT_COUNT]; /* FINE: all of ours */
};

static enum rc settle_comparison(struct scan *sc, struct comparison *c, struct err *e)
{
	enum rc rc = store_run(sc->pass->store, compare, c, NULL, e);

	sc->counts[c->verdict] += c->verdict != FINE;
	return rc;
}

static enum rc check_known(const struct pass *p UNUSED, const void *record, void *arg, struct err *e)
{
	const struct account *a = record;
	struct scan          *sc = arg;
	struct pool_member   *m = pool_find(&sc->listing, a->id);
	struct comparison     c = { .seen = { .id = a->id, .is_known = true }, .started_ms = sc->started_ms };

	if (m) {
		m->is_known = true;
		c.seen.ou = m->ou;
	}
	sc->counts[FINE]++;
	return judge(a, &c) == FINE ? RC_OK : settle_comparison(sc, &c, e);
}

static enum rc check_unknown(struct scan *sc, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < sc->listing.count; i++) {
		struct comparison c = { .seen = sc->listing.members[i] };
		bool              may_be_there = str_eq(c.seen.ou, STR(OU_ENTRY)) ||
		                    str_eq(c.seen.ou, str_from(account_ou_names[ACCOUNT_EXIT]));

		if (!c.seen.is_known && !may_be_there)
			rc = settle_comparison(sc, &c, e);
	}
	return rc;
}

enum rc pass_find_drift(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct scan  sc = { .pass = p, .started_ms = clock_now(p->clock).ms };
	struct query q = { .type = &account_type, .index = QUERY_ALL, .limit = ACCOUNTS_PAGE };
	enum rc      rc = pool_list(p, p->leases->cloud.organisation, STR(""), &sc.listing, e);

	if (!rc)
		rc = pass_each(p, &q, check_known, &sc, e);
	if (!rc)
		rc = check_unknown(&sc, e);
	for (int i = 0; i < VERDICT_COUNT; i++)
		pass_count(ret, verdict_names[i], sc.counts[i], METRIC__COUNT);
	arena_fini(&sc.listing.arena);
	return rc;
}

/* --- putting it right --- */

/* From where it was seen. */
static enum rc lock_away(struct session *s, struct account *a, struct str place, struct str reason, const char *actor,
                         struct err *e)
{
	if (!str_eq(a->placed_ou,
	            STR(OU_ENTRY))) /* what came from there, and has never arrived, is still to be let in */
		a->placed_ou = str_dup(session_arena(s), place);
	if (a->status == ACCOUNT_EXIT)
		return account_save(s, a, str_from(actor), e);
	return account_lock_away(s, a, HOLD_DRIFT, reason, str_from(actor), STR(""), e);
}

/* It has left: there is nothing any more that could be lent, held, cleaned or moved. */
static enum rc forget(struct session *s, struct account *a, struct err *e)
{
	struct str why = STR("the account has left the pool's OUs");
	enum rc    rc = hold_close_all(s, a->id, HOLD_EJECTED, STR(ACTOR), why, e);

	if (!rc && a->lease_uuid.n)
		rc = account_hooks(s)->lost(s, a, LEASE_ON_QUARANTINE, why, STR(ACTOR), e);
	if (!rc)
		session_delete(s, &account_type, a->id);
	return rc;
}

static enum rc read_finding(const struct event *event, struct arena *a, struct pool_member *ret,
                            struct str *ret_expected_ou, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;

	if (json_parse(event->detail, &o, e) || !json_take_text(o, "accountId", a, &ret->id) ||
	    !json_take_text(o, "actualOu", a, &ret->ou) || !json_take_text(o, "expectedOu", a, ret_expected_ou) ||
	    !json_take_text(o, "name", a, &ret->name) || !json_take_text(o, "email", a, &ret->email))
		return err_set(e, RC_CORRUPT, "the detail of a " EVENT_DRIFT_DETECTED " makes no sense");
	return RC_OK;
}

static enum rc on_drift(struct session *s, const struct delivery *d, void *arg UNUSED, struct err *e)
{
	struct account_call take_in = { .by.email = STR(ACTOR) };
	struct pool_member  f;
	struct str          expected_ou;
	struct account      a;
	bool                is_there;
	enum rc             rc = read_finding(&d->event, session_arena(s), &f, &expected_ou, e);

	if (rc || (rc = session_find(s, &account_type, f.id, &a, &is_there, e)))
		return rc;
	if (!is_there && !expected_ou.n) {
		take_in.id = f.id;
		take_in.name = f.name;
		take_in.email = f.email;
		take_in.reason = describe(s, f.ou, expected_ou);
		return account_quarantine(s, &take_in, e);
	}
	/* What was true when it was seen may not be by now. */
	if (!is_there || a.is_following || !a.has_drifted || !str_eq(expected_ou, wanted_ou(&a)))
		return RC_OK;
	return f.ou.n ? lock_away(s, &a, f.ou, describe(s, f.ou, expected_ou), ACTOR, e) : forget(s, &a, e);
}

struct queue account_drift_queue(void)
{
	return (struct queue){ .name = DRIFT_QUEUE, .handle = on_drift };
}

/* --- told by CloudTrail --- */

struct sighting {
	struct move_event event;
	struct str        place;   /* the name of the OU where it is; empty: not of interest */
	struct account    account; /* as it was before we looked */
	bool              is_ours;
};

static enum rc look(struct call *c, struct err *e)
{
	struct account_moved *m = c->arg;
	struct sighting      *x = arena_alloc(c->arena, sizeof(*x));
	struct move_problem   problem;
	struct str            here, expected;
	enum rc               rc = move_event_parse(c->delivery->event.detail, c->arena, &x->event, &problem);

	if (rc)
		return err_set(e, rc, "%s: %s", move_problem_names[problem.kind], problem.details);
	c->result = x;
	if ((rc = store_find(m->store, &account_type, x->event.account, c->arena, &x->account, &x->is_ours, e)) ||
	    !x->is_ours || x->account.is_following ||
	    (rc = account_ous_find(m->ous, wanted_ou(&x->account), c->arena, &expected, e)) ||
	    str_eq(x->event.destination, expected))
		return rc;
	rc = account_ous_locate(m->ous, x->event.account, c->arena, &here, NULL);
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "where account %.*s is cannot be told", STR_ARG(x->event.account));
	if (!rc)
		x->place = account_ous_name(m->ous, here, c->arena);
	if (move_is_parent(x->place)) /* an id: it is in none of the pool's OUs, and has left it */
		x->place = STR("");
	return RC_OK;
}

static enum rc settle(struct session *s, const struct call *c, struct err *e)
{
	const struct sighting *x = c->result;
	struct pool_member     seen;
	struct account         a;
	struct str             reason;
	bool                   is_there;
	enum rc                rc;

	if (!x->place.n)
		return RC_OK;
	if ((rc = session_find(s, &account_type, x->event.account, &a, &is_there, e)) || !is_there || a.is_following ||
	    a.version != x->account.version || a.status == ACCOUNT_EXIT || str_eq(x->place, wanted_ou(&a)))
		return rc;
	reason = str_format(session_arena(s), "it was moved to %.*s by %.*s, but should be in %s", STR_ARG(x->place),
	                    STR_ARG(x->event.by), account_ou_names[a.status]);
	seen = (struct pool_member){ .id = a.id, .name = a.name, .email = a.email, .ou = x->place };
	if ((rc = tell(s, &seen, wanted_ou(&a), MOVED_ACTOR, reason, e)))
		return rc;
	return lock_away(s, &a, x->place, reason, MOVED_ACTOR, e);
}

struct queue account_moved_queue(struct account_moved *m)
{
	return (struct queue){ .name = MOVED_QUEUE, .call = look, .settle = settle, .arg = m, .tries = MOVED_TRIES };
}
