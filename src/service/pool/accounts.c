/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts.c - the accounts of the pool: load, decide, save.
 *
 * Every function here is a transaction and may be run again; the rules are the domain's. account_save() stores the
 * account and starts the saga that follows it, so each change is one commit.
 *
 * Always true:
 *   1. What is lent was free and settled: Available, and nothing under way that could still move it. [account_lend()]
 *   2. An account belongs to the lease that changes it, or the change is refused. [account_change()]
 *   3. An account that loses its lease by quarantine or ejection tells the lease first.                  [lose_lease()]
 */
#include "service/pool/accounts.h"

#include "base/json.h"
#include "base/utf8.h"
#include "service/pool/account_clean.h"
#include "service/account/account_follow.h"
#include "service/account/account_ous.h"
#include "service/hold/holds.h"
#include "service/record/lease_records.h"

enum {
	FREE_PAGE = 16,
	FREE_PAGES_MAX = 64,
	FREE_LOOKS_MAX = 20 /* each is an action of the transaction */
};

/* --- reading --- */

/* *ret_is_known: false when there is none. */
static enum rc find(struct session *s, struct str id, struct account *ret, bool *ret_is_known, struct err *e)
{
	if (!account_id_is_ok(id))
		return err_set(e, RC_INVALID, "'%.*s' is not an account id of 12 digits", STR_ARG(id));
	return session_find(s, &account_type, id, ret, ret_is_known, e);
}

static enum rc is_missing(struct str id, struct err *e)
{
	return err_set(e, RC_NOT_FOUND, "there is no account %.*s in the pool", STR_ARG(id));
}

static enum rc load(struct session *s, struct str id, struct account *ret, struct err *e)
{
	bool    is_known;
	enum rc rc = find(s, id, ret, &is_known, e);

	return rc || is_known ? rc : is_missing(id, e);
}

enum rc account_get(struct session *s, void *arg, struct err *e)
{
	struct account_call *c = arg;
	bool                 is_there;
	enum rc              rc = load(s, c->id, &c->account, e);

	c->report = (struct account_report){ 0 };
	return rc ? rc : session_find(s, &account_report_type, c->id, &c->report, &is_there, e);
}

static int next_status(unsigned statuses, int from)
{
	while (from < ACCOUNT_STATUS_COUNT && !(statuses & 1u << from))
		from++;
	return from;
}

/* One status after the other; a cursor names the status that it belongs to, "5:...". */
static enum rc list_by_status(struct session *s, struct query q, struct account_list *l, struct err *e)
{
	struct str rest = l->cursor;
	int64_t    status = next_status(l->statuses, 0), next;
	enum rc    rc;

	if (rest.n && !str_to_int(str_cut(&rest, ':'), 0, ACCOUNT_STATUS_COUNT - 1, &status))
		return err_set(e, RC_INVALID, "the cursor is not one of this list");
	q.index = ACCOUNT_BY_STATUS;
	q.hash = value_int(status);
	q.cursor = rest;
	if ((rc = session_query(s, &q, &l->page, e)))
		return rc;
	next = l->page.next.n ? status : next_status(l->statuses, (int)status + 1);
	if (next < ACCOUNT_STATUS_COUNT)
		l->page.next = str_format(session_arena(s), "%d:%.*s", (int)next, STR_ARG(l->page.next));
	return RC_OK;
}

enum rc account_list(struct session *s, void *arg, struct err *e)
{
	struct account_list *l = arg;
	struct query         q = { .type = &account_type, .index = QUERY_ALL, .limit = l->limit, .cursor = l->cursor };

	return l->statuses ? list_by_status(s, q, l, e) : session_query(s, &q, &l->page, e);
}

TXN(account_counts, session_count_each(s, &account_type, ACCOUNT_BY_STATUS, ACCOUNT_STATUS_COUNT, arg, e))

/* --- what operators do --- */

/* Whoever comes for the first time is in Entry, as far as we know. Sagas of an earlier life of the account are still
 * there: their numbers are lower, for a saga takes longer than a millisecond. */
static struct account newcomer(struct session *s, const struct account_call *c)
{
	return (struct account){ .id = c->id,
		                 .name = c->name,
		                 .email = c->email,
		                 .placed_ou = STR(OU_ENTRY),
		                 .follow_number = session_now(s).ms,
		                 .created_ms = session_now(s).ms };
}

/* Store it and tell who wanted it. */
static enum rc save(struct session *s, struct account_call *c, const char *type, struct err *e)
{
	struct str detail = JSON_OF(session_arena(s), member_str("accountId", c->account.id));
	enum rc    rc = account_emit(s, type, c->account.id, c->by.email, c->by.request_id, detail, e);

	return rc ? rc : account_save(s, &c->account, c->by.email, e);
}

/* It is to be cleaned, as soon as it is in CleanUp. */
static void want_cleanup(struct account *a, struct str reason)
{
	a->clean_reason = reason;
	a->clean_run = a->clean_log = STR("");
	a->clean_started_ms = a->clean_successes = a->clean_failures = 0;
}

/* The account's record follows its holds: how many are open. When it can be free is not known, for it does not rest. */
static enum rc count_holds(struct session *s, struct account *a, struct err *e)
{
	struct holds open;
	enum rc      rc = hold_list_open(s, a->id, &open, e);

	a->open_holds = rc ? a->open_holds : (int64_t)open.count;
	a->rest_until_ms = 0;
	return rc;
}

static enum rc end_holds(struct session *s, struct account_call *c, enum hold_state how, struct str why, struct err *e)
{
	enum rc rc = hold_close_all(s, c->account.id, how, c->by.email, why, e);

	return rc ? rc : count_holds(s, &c->account, e);
}

enum rc account_register(struct session *s, void *arg, struct err *e)
{
	struct account_call *c = arg;
	bool                 is_known;
	enum rc              rc = find(s, c->id, &c->account, &is_known, e);

	if (rc)
		return rc;
	if (!is_known)
		c->account = newcomer(s, c);
	if ((rc = account_apply(&c->account, ACCOUNT_ON_REGISTER, session_now(s), e)))
		return rc;
	want_cleanup(&c->account, STR(CLEAN_FOR_REGISTRATION));
	return save(s, c, "AccountRegistered", e);
}

enum rc account_retry_cleanup(struct session *s, void *arg, struct err *e)
{
	struct account_call *c = arg;
	struct account      *a = &c->account;
	char                 text[ISO_TIME_SIZE];
	enum rc              rc = load(s, c->id, a, e);

	if (rc)
		return rc;
	if (a->status == ACCOUNT_COOLDOWN && !c->restarts_rest)
		return err_set(
		        e, RC_CONFLICT,
		        "account %.*s is clean and in cooldown%s%s, so that late costs do not end up on the "
		        "next lease; to clean it again and restart its cooldown, pass restartRest=true (--force)",
		        STR_ARG(a->id), a->rest_until_ms ? " until " : "",
		        a->rest_until_ms ? iso_time(a->rest_until_ms / 1000, text).p : "");
	if (account_clean_is_running(a, session_now(s)))
		return err_set(e, RC_CONFLICT, "account %.*s has been in cleanup since %s; wait until it has finished",
		               STR_ARG(a->id), iso_time(a->clean_started_ms / 1000, text).p);
	if ((rc = account_apply(&c->account, ACCOUNT_ON_RETRY, session_now(s), e)))
		return rc;
	c->account.reason = STR("");
	if ((rc = end_holds(s, c, HOLD_CLEANED_AGAIN, STR("it is cleaned again"), e)))
		return rc;
	want_cleanup(a, STR(CLEAN_AFTER_FAILURE));
	return save(s, c, "AccountCleanupRetried", e);
}

/* The lease on it ends, if there is one; before the account forgets it. */
static enum rc lose_lease(struct session *s, struct account *a, enum lease_event event, struct str comment,
                          struct str actor, struct err *e)
{
	enum rc rc = a->lease_uuid.n ? account_hooks(s)->lost(s, a, event, comment, actor, e) : RC_OK;

	a->last_lease = a->lease_uuid.n ? a->lease_uuid : a->last_lease;
	a->lease_uuid = STR("");
	return rc;
}

enum rc account_lock_away(struct session *s, struct account *account, enum hold_reason kind, struct str reason,
                          struct str actor, struct str request_id, struct err *e)
{
	struct account a = *account;
	struct str     detail;
	enum rc        rc;

	if ((rc = account_apply(&a, ACCOUNT_ON_QUARANTINE, session_now(s), e)) ||
	    (rc = lose_lease(s, &a, LEASE_ON_QUARANTINE, reason, actor, e)))
		return rc;
	a.reason = utf8_line(session_arena(s), reason, REASON_MAX);
	detail = JSON_OF(session_arena(s), member_str("awsAccountId", a.id), member_str("reason", a.reason));
	if ((rc = account_emit(s, "AccountQuarantined", a.id, actor, request_id, detail, e)) ||
	    (rc = hold_lock(s, a.id, kind, reason, actor, e)) || (rc = count_holds(s, &a, e)))
		return rc;
	*account = a;
	return account_save(s, account, actor, e);
}

enum rc account_quarantine(struct session *s, void *arg, struct err *e)
{
	struct account_call *c = arg;
	bool                 is_known;
	enum rc              rc = find(s, c->id, &c->account, &is_known, e);

	if (rc)
		return rc;
	if (!is_known && c->is_of_pool)
		return is_missing(c->id, e);
	if (!is_known) {
		c->account = newcomer(s, c);
		c->account.has_drifted = 1;
	}
	return account_lock_away(s, &c->account, is_known ? HOLD_MANUAL : HOLD_DRIFT, c->reason, c->by.email,
	                         c->by.request_id, e);
}

enum rc account_eject(struct session *s, void *arg, struct err *e)
{
	struct account_call *c = arg;
	enum rc              rc = load(s, c->id, &c->account, e);

	if (rc || (rc = account_apply(&c->account, ACCOUNT_ON_EJECT, session_now(s), e)) ||
	    (rc = lose_lease(s, &c->account, LEASE_ON_EJECT, STR("the account was ejected"), c->by.email, e)) ||
	    (rc = end_holds(s, c, HOLD_EJECTED, STR("the account leaves the pool"), e)))
		return rc;
	return save(s, c, "AccountEjected", e);
}

/* --- for leases --- */

/* Really free: an index may be behind, so what it names is read again. */
static enum rc is_free(struct session *s, struct account *candidate, bool *ret, struct err *e)
{
	bool    is_known;
	enum rc rc = find(s, candidate->id, candidate, &is_known, e);

	*ret = !rc && is_known && candidate->status == ACCOUNT_AVAILABLE && !candidate->is_following &&
	       !account_must_follow(candidate);
	return rc;
}

/* The first of the free ones may be another's already, or still on its way to the others. */
static enum rc find_free(struct session *s, const struct query *free_ones, struct account *ret, struct err *e)
{
	struct records        all = { .query = *free_ones, .pages_max = FREE_PAGES_MAX };
	const struct account *seen;
	int                   looks = 0;
	bool                  is_good = false;
	enum rc               rc;

	all.query.limit = FREE_PAGE;
	while (looks < FREE_LOOKS_MAX && (seen = session_next(s, &all, &rc, e))) {
		if (seen->is_following || account_must_follow(seen))
			continue;
		*ret = *seen;
		looks++;
		if ((rc = is_free(s, ret, &is_good, e)) || is_good)
			return rc;
	}
	return rc ? rc : err_set(e, RC_EXHAUSTED, "no account is free");
}

enum rc account_lend(struct session *s, const struct lease *lease, struct str actor, struct account *ret, struct err *e)
{
	struct query q = { .type = &account_type, .index = ACCOUNT_BY_STATUS, .hash = value_int(ACCOUNT_AVAILABLE) };
	bool         is_good;
	enum rc      rc = session_claim(s, &q, ret, NULL);

	if (rc)
		return err_set(e, rc, rc == RC_EXHAUSTED ? "no account is free" : "the free accounts cannot be read");
	if ((rc = is_free(s, ret, &is_good, e)) || (!is_good && (rc = find_free(s, &q, ret, e))))
		return rc;
	if ((rc = account_apply(ret, ACCOUNT_ON_LEND, session_now(s), e)))
		return rc;
	ret->lease_uuid = lease->uuid;
	ret->holder = lease->user_email;
	return account_save(s, ret, actor, e);
}

enum rc account_change(struct session *s, const struct lease *lease, enum account_event event, struct str clean_reason,
                       struct str actor, struct err *e)
{
	struct account a;
	enum rc        rc = load(s, lease->account_id, &a, e);

	if (!rc && !str_eq(a.lease_uuid, lease->uuid))
		rc = err_set(e, RC_CONFLICT, "account %.*s no longer belongs to lease %.*s", STR_ARG(a.id),
		             STR_ARG(lease->uuid));
	if (rc || (rc = account_apply(&a, event, session_now(s), e)))
		return rc;
	if (event == ACCOUNT_ON_UNFREEZE)
		a.holder = lease->user_email;
	if (event == ACCOUNT_ON_TAKE_BACK) {
		a.last_lease = a.lease_uuid;
		a.lease_uuid = STR("");
		want_cleanup(&a, clean_reason);
	}
	return account_save(s, &a, actor, e);
}
