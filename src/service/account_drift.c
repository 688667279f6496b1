/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_drift.c - accounts that are not where they should be.
 *
 * The pass lists the pool's OUs first, all of them, and then goes through our records. What differs once may be a move that the two
 * listings saw at different moments: it is only noted. What differs in the next pass too is told as AccountDriftDetected, and the
 * handler quarantines the account from where it is, or forgets it when it is in none of the OUs. An account in the pool that we do not
 * know is told of at once, except in Entry and Exit, where such accounts belong. Where the OU is right but a saga failed after the move,
 * another one is started: one in each pass, so an outage that has ended leaves nothing behind.
 *
 * Always true:
 *   1. Nothing is concluded from an incomplete listing.                                             [account_drift_pass()]
 *   2. Whoever is being moved by us, or was changed since the pass began, is left alone.            [compare()]
 *   3. Each verdict is made again in the transaction that stores it.                                [compare()]
 */
#include "service/account_drift.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "kernel/event.h"
#include "service/account_follow.h"
#include "service/account_ous.h"
#include "service/lease_flow.h"
#include "service/lease_records.h"
#include "service/leases.h"
#include "service/pool_listing.h"
#include "store/store.h"

#define ACTOR "drift-monitor"

enum { ACCOUNTS_PAGE = 500, DETAIL_TEXT_MAX = 4096 };

struct scan {
	const struct account_drift *drift;
	int64_t                     started_ms;
	struct pool_listing         listing;
	struct arena                arena; /* of cursors */

	int64_t scanned, drifted, suspected, recovered, stalled, unknown;
};

static bool may_go_on(const struct scan *sc)
{
	return !sc->drift->go_on || sc->drift->go_on(sc->drift->go_on_arg);
}

/* --- one account --- */

/* Stalled: it is where it should be, but the saga that brought it there has failed since. */
enum verdict { FINE, SUSPECTED, DRIFTED, RECOVERED, STALLED };

struct comparison {
	struct str   id, actual_ou; /* empty: in none */
	struct str   name, email;
	int64_t      started_ms;
	enum verdict verdict; /* the answer */
};

static enum rc tell(struct session *s, const struct account *a, struct str expected_ou, struct str actual_ou,
                    struct err *e)
{
	struct json_out o;
	struct buf      b;
	struct str      detail;

	buf_init(&b, DETAIL_TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "accountId", a->id);
	if (actual_ou.n)
		json_put_str(&o, "actualOu", actual_ou);
	if (expected_ou.n)
		json_put_str(&o, "expectedOu", expected_ou);
	if (a->name.n)
		json_put_str(&o, "name", a->name);
	if (a->email.n)
		json_put_str(&o, "email", a->email);
	json_close_object(&o);
	detail = str_dup(session_arena(s), buf_str(&b));
	buf_fini(&b);
	return account_emit(s, EVENT_DRIFT_DETECTED, a, STR(ACTOR), STR(""), detail, e);
}

static enum verdict judge(const struct account *a, const struct comparison *c)
{
	if (a->is_following || a->edited_ms >= c->started_ms)
		return FINE;
	if (str_eq(c->actual_ou, str_from(account_ou_names[a->status])))
		return account_must_follow(a) ? STALLED : a->has_drifted ? RECOVERED : FINE;
	return a->has_drifted ? DRIFTED : SUSPECTED;
}

static enum rc compare(struct session *s, void *arg, struct err *e)
{
	struct comparison *c = arg;
	struct account     a;
	enum rc            rc = session_get(s, &account_type, c->id, &a, NULL);

	c->verdict = FINE;
	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return err_set(e, rc, "account %.*s cannot be read", STR_ARG(c->id));
	c->verdict = judge(&a, c);
	if (c->verdict == FINE)
		return RC_OK;
	if (c->verdict == STALLED)
		return account_save(s, &a, STR(ACTOR), e);
	if (c->verdict == DRIFTED)
		return tell(s, &a, str_from(account_ou_names[a.status]), c->actual_ou, e);
	a.has_drifted = c->verdict == SUSPECTED;
	session_put(s, &account_type, &a);
	return RC_OK;
}

/* In one of our OUs, and we do not know it: not even by now. */
static enum rc tell_unknown(struct session *s, void *arg, struct err *e)
{
	struct comparison *c = arg;
	struct account     a;
	enum rc            rc = session_get(s, &account_type, c->id, &a, NULL);

	c->verdict = FINE;
	if (rc != RC_NOT_FOUND)
		return rc ? err_set(e, rc, "account %.*s cannot be read", STR_ARG(c->id)) : RC_OK;
	c->verdict = DRIFTED;
	a = (struct account){ .id = c->id, .name = c->name, .email = c->email };
	return tell(s, &a, STR(""), c->actual_ou, e);
}

/* --- the pass --- */

static enum rc store_verdict(struct scan *sc, struct comparison *c, txn_fn *run, struct err *e)
{
	struct arena a = { 0 };
	enum rc      rc = store_run(sc->drift->store, run, c, &a, e);

	arena_fini(&a);
	return rc;
}

static enum rc check_known(struct scan *sc, const struct account *a, struct err *e)
{
	struct pool_member *m = pool_find(&sc->listing, a->id);
	struct comparison   c = { .id = a->id, .actual_ou = m ? m->ou : STR(""), .started_ms = sc->started_ms };
	enum rc             rc = RC_OK;

	if (m)
		m->is_known = true;
	sc->scanned++;
	c.verdict = judge(a, &c);
	if (c.verdict != FINE)
		rc = store_verdict(sc, &c, compare, e);
	sc->drifted += c.verdict == DRIFTED;
	sc->suspected += c.verdict == SUSPECTED;
	sc->recovered += c.verdict == RECOVERED;
	sc->stalled += c.verdict == STALLED;
	return rc;
}

static enum rc check_all_known(struct scan *sc, struct err *e)
{
	struct account_list l = { .limit = ACCOUNTS_PAGE };

	do {
		struct arena a = { 0 };
		enum rc      rc = store_read(sc->drift->store, account_list, &l, &a, e);

		for (size_t i = 0; !rc && i < l.page.count; i++)
			rc = check_known(sc, page_record(&l.page, &account_type, i), e);
		if (!rc && !may_go_on(sc))
			rc = err_set(e, RC_UNAVAILABLE, "the pass was stopped");
		l.cursor = rc ? STR("") : str_dup(&sc->arena, l.page.next);
		arena_fini(&a);
		if (rc)
			return rc;
	} while (l.cursor.n);
	return RC_OK;
}

static bool may_be_unknown(struct str ou)
{
	return str_eq(ou, STR(OU_ENTRY)) || str_eq(ou, str_from(account_ou_names[ACCOUNT_EXIT]));
}

static enum rc check_unknown(struct scan *sc, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < sc->listing.count; i++) {
		const struct pool_member *m = &sc->listing.members[i];
		struct comparison         c = { .id = m->id, .name = m->name, .email = m->email, .actual_ou = m->ou };

		if (m->is_known || may_be_unknown(m->ou))
			continue;
		rc = store_verdict(sc, &c, tell_unknown, e);
		sc->unknown += c.verdict == DRIFTED;
	}
	return rc;
}

enum rc account_drift_pass(void *arg, struct pass_result *ret, struct err *e)
{
	const struct account_drift *drift = arg;
	struct scan                 sc = { .drift = drift, .started_ms = clock_now(drift->clock).ms };
	enum rc                     rc = pool_list(drift->organisation, drift->go_on, drift->go_on_arg, &sc.listing, e);

	if (!rc)
		rc = check_all_known(&sc, e);
	if (!rc)
		rc = check_unknown(&sc, e);
	pass_count(ret, "scanned", sc.scanned, METRIC__COUNT);
	pass_count(ret, "drifted", sc.drifted, METRIC__COUNT);
	pass_count(ret, "suspected", sc.suspected, METRIC__COUNT);
	pass_count(ret, "recovered", sc.recovered, METRIC__COUNT);
	pass_count(ret, "stalled", sc.stalled, METRIC__COUNT);
	pass_count(ret, "unknown", sc.unknown, METRIC__COUNT);
	pool_listing_fini(&sc.listing);
	arena_fini(&sc.arena);
	return rc;
}

/* --- the handler --- */

struct finding {
	struct str id, actual_ou, expected_ou, name, email;
};

static enum rc read_finding(const struct event *event, struct arena *a, struct finding *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct finding              f;

	if (json_parse(event->detail, &o, e) || !json_get_text(o, "accountId", &f.id) ||
	    !json_get_text(o, "actualOu", &f.actual_ou) || !json_get_text(o, "expectedOu", &f.expected_ou) ||
	    !json_get_text(o, "name", &f.name) || !json_get_text(o, "email", &f.email))
		return err_set(e, RC_CORRUPT, "the detail of a " EVENT_DRIFT_DETECTED " makes no sense");
	*ret = (struct finding){ str_dup(a, f.id), str_dup(a, f.actual_ou), str_dup(a, f.expected_ou),
		                 str_dup(a, f.name), str_dup(a, f.email) };
	return RC_OK;
}

/* It has left: there is nothing any more that could be lent, cleaned or moved. */
static enum rc forget(struct session *s, struct account *a, struct err *e)
{
	enum rc rc = RC_OK;

	if (a->lease_uuid.n)
		rc = lease_on_lost(s, a, LEASE_ON_QUARANTINE, STR("the account has left the pool's OUs"), STR(ACTOR),
		                   e);
	if (!rc)
		session_delete(s, &account_type, a->id);
	return rc;
}

static enum rc put_right(struct session *s, struct account *a, const struct finding *f, struct err *e)
{
	struct str reason = str_format(session_arena(s), "it was found in %.*s, but should be in %.*s",
	                               STR_ARG(f->actual_ou), STR_ARG(f->expected_ou));

	if (!str_eq(a->placed_ou,
	            STR(OU_ENTRY))) /* what came from there, and has never arrived, is still to be let in */
		a->placed_ou = f->actual_ou;
	if (a->status == ACCOUNT_EXIT)
		return account_save(s, a, STR(ACTOR), e);
	return account_lock_away(s, a, HOLD_DRIFT, reason, STR(ACTOR), STR(""), e);
}

static enum rc take_in(struct session *s, const struct finding *f, struct err *e)
{
	struct account_call c = { .id = f->id, .name = f->name, .email = f->email, .by.email = STR(ACTOR) };

	c.reason = str_format(session_arena(s), "it was found in %.*s, but is not registered", STR_ARG(f->actual_ou));
	return account_quarantine(s, &c, e);
}

static enum rc handle(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	struct finding f = { 0 };
	struct account a;
	enum rc        rc = read_finding(&d->event, session_arena(s), &f, e);

	(void)arg;
	if (rc)
		return rc;
	rc = session_get(s, &account_type, f.id, &a, NULL);
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "account %.*s cannot be read", STR_ARG(f.id));
	if (rc == RC_NOT_FOUND)
		return f.expected_ou.n ? RC_OK : take_in(s, &f, e);
	/* What was true when it was seen may not be by now. */
	if (a.is_following || !a.has_drifted || !str_eq(f.expected_ou, str_from(account_ou_names[a.status])))
		return RC_OK;
	return f.actual_ou.n ? put_right(s, &a, &f, e) : forget(s, &a, e);
}

struct queue account_drift_queue(void)
{
	return (struct queue){ .name = DRIFT_QUEUE, .handle = handle };
}
