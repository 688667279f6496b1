/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts.c - the accounts of the pool: load, decide, save.
 *
 * Every function here runs inside the store and may be run again; the rules are the domain's. account_save() stores the account and has
 * the world follow, so each change is records, events and the start of a saga in one commit.
 *
 * Always true:
 *   1. What is lent was free and settled: Available, and nothing under way that could still move it.    [account_lend()]
 *   2. An account belongs to the lease that changes it, or the change is refused.                       [load_of_lease()]
 *   3. An account that loses its lease by quarantine or ejection tells the lease first.                  [lose_lease()]
 */
#include "service/leases.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "kernel/event.h"
#include "service/account_clean.h"
#include "service/account_follow.h"
#include "service/account_ous.h"
#include "service/holds.h"
#include "service/lease_flow.h"
#include "service/lease_records.h"

enum {
	FREE_PAGE = 16,
	FREE_PAGES_MAX = 64,
	FREE_LOOKS_MAX = 20 /* each is an action of the transaction */,
	DETAIL_TEXT_MAX = 16384
};

/* --- events --- */

enum rc account_emit(struct session *s, const char *type, const struct account *account, struct str actor,
                     struct str request_id, struct str detail, struct err *e)
{
	struct event event = { .type = str_from(type),
		               .subject = account_subject(s, account->id),
		               .actor = utf8_line(session_arena(s), actor, ACTOR_MAX),
		               .request_id = request_id,
		               .detail = detail };

	return session_emit(s, &event, e);
}

static enum rc tell_of_quarantine(struct session *s, const struct account *a, struct str actor, struct str request_id,
                                  struct err *e)
{
	struct json_out o;
	struct buf      b;
	struct str      detail;

	buf_init(&b, DETAIL_TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "awsAccountId", a->id);
	json_put_str(&o, "reason", a->reason);
	json_close_object(&o);
	detail = str_dup(session_arena(s), buf_str(&b));
	buf_fini(&b);
	return account_emit(s, "AccountQuarantined", a, actor, request_id, detail, e);
}

/* --- reading --- */

/* *ret_is_known: false when there is none. */
static enum rc find(struct session *s, struct str id, struct account *ret, bool *ret_is_known, struct err *e)
{
	enum rc rc;

	if (!account_id_is_ok(id))
		return err_set(e, RC_INVALID, "'%.*s' is not an account id; right are 12 digits", STR_ARG(id));
	rc = session_get(s, &account_type, id, ret, NULL);
	*ret_is_known = rc == RC_OK;
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "account %.*s cannot be read", STR_ARG(id)) : RC_OK;
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

	enum rc rc = load(s, c->id, &c->account, e);

	if (rc)
		return rc;
	c->report = (struct account_report){ 0 };
	rc = account_report_get(s, c->id, &c->report, NULL);
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "the report of account %.*s cannot be read", STR_ARG(c->id))
	                                : RC_OK;
}

enum rc account_list(struct session *s, void *arg, struct err *e)
{
	struct account_list *l = arg;
	struct query         q = { .type = &account_type, .index = QUERY_ALL, .limit = l->limit, .cursor = l->cursor };

	if (l->has_status) {
		q.index = ACCOUNT_BY_STATUS;
		q.hash = value_int(l->status);
	}
	return session_query(s, &q, &l->page, e);
}

enum rc account_counts(struct session *s, void *arg, struct err *e)
{
	int64_t *counts = arg;

	for (int status = 0; status < ACCOUNT_STATUS_COUNT; status++) {
		enum rc rc = session_count(s, &account_type, ACCOUNT_BY_STATUS, value_int(status), &counts[status], e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

/* --- what operators do --- */

/* Whoever comes for the first time is in Entry, as far as we know. Sagas of an earlier life of the account are still there: their numbers
 * are lower, for a saga takes longer than a millisecond. */
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
	struct str detail = str_format(session_arena(s), "{\"accountId\":\"%.*s\"}", STR_ARG(c->account.id));
	enum rc    rc = account_emit(s, type, &c->account, c->by.email, c->by.request_id, detail, e);

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
	bool                 is_running;
	enum rc              rc = load(s, c->id, &c->account, e);

	if (rc)
		return rc;
	is_running = account_clean_is_running(&c->account, session_now(s));
	if ((rc = account_apply(&c->account, ACCOUNT_ON_RETRY, session_now(s), e)))
		return rc;
	c->account.reason = STR("");
	if ((rc = end_holds(s, c, HOLD_CLEANED_AGAIN, STR("it is cleaned again"), e)))
		return rc;
	if (!is_running)
		want_cleanup(&c->account, STR(CLEAN_AFTER_FAILURE));
	return save(s, c, "AccountCleanupRetried", e);
}

/* The lease on it ends, if there is one; before the account forgets it. */
static enum rc lose_lease(struct session *s, struct account *a, enum lease_event event, struct str comment,
                          struct str actor, struct err *e)
{
	enum rc rc = a->lease_uuid.n ? lease_on_lost(s, a, event, comment, actor, e) : RC_OK;

	a->last_lease = a->lease_uuid.n ? a->lease_uuid : a->last_lease;
	a->lease_uuid = STR("");
	return rc;
}

enum rc account_lock_away(struct session *s, struct account *account, enum hold_reason kind, struct str reason,
                          struct str actor, struct str request_id, struct err *e)
{
	struct account a = *account;
	enum rc        rc;

	if ((rc = account_apply(&a, ACCOUNT_ON_QUARANTINE, session_now(s), e)))
		return rc;
	if ((rc = lose_lease(s, &a, LEASE_ON_QUARANTINE, reason, actor, e)))
		return rc;
	a.reason = utf8_line(session_arena(s), reason, REASON_MAX);
	if ((rc = tell_of_quarantine(s, &a, actor, request_id, e)) ||
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

	if (rc)
		return rc;
	if ((rc = account_apply(&c->account, ACCOUNT_ON_EJECT, session_now(s), e)))
		return rc;
	if ((rc = lose_lease(s, &c->account, LEASE_ON_EJECT, STR("the account was ejected"), c->by.email, e)))
		return rc;
	if ((rc = end_holds(s, c, HOLD_EJECTED, STR("the account leaves the pool"), e)))
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
	struct query q = *free_ones;
	struct page  page;
	int          looks = 0;

	q.limit = FREE_PAGE;
	for (int i = 0; i < FREE_PAGES_MAX; i++) {
		enum rc rc = session_query(s, &q, &page, e);

		for (size_t j = 0; !rc && j < page.count && looks < FREE_LOOKS_MAX; j++) {
			const struct account *seen = page_record(&page, &account_type, j);
			bool                  is_good = false;

			if (seen->is_following || account_must_follow(seen))
				continue;
			*ret = *seen;
			looks++;
			if (!(rc = is_free(s, ret, &is_good, e)) && is_good)
				return RC_OK;
		}
		if (rc)
			return rc;
		if (!page.next.n)
			break;
		q.cursor = page.next;
	}
	return err_set(e, RC_EXHAUSTED, "no account is free");
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

static enum rc load_of_lease(struct session *s, const struct lease *lease, struct account *ret, struct err *e)
{
	enum rc rc = load(s, lease->account_id, ret, e);

	if (rc || str_eq(ret->lease_uuid, lease->uuid))
		return rc;
	return err_set(e, RC_CONFLICT, "account %.*s is not that of lease %.*s any more", STR_ARG(ret->id),
	               STR_ARG(lease->uuid));
}

enum rc account_freeze(struct session *s, const struct lease *lease, struct str actor, struct err *e)
{
	struct account a;
	enum rc        rc = load_of_lease(s, lease, &a, e);

	if (rc)
		return rc;
	if ((rc = account_apply(&a, ACCOUNT_ON_FREEZE, session_now(s), e)))
		return rc;
	return account_save(s, &a, actor, e);
}

enum rc account_unfreeze(struct session *s, const struct lease *lease, struct str actor, struct err *e)
{
	struct account a;
	enum rc        rc = load_of_lease(s, lease, &a, e);

	if (rc)
		return rc;
	if ((rc = account_apply(&a, ACCOUNT_ON_UNFREEZE, session_now(s), e)))
		return rc;
	a.holder = lease->user_email;
	return account_save(s, &a, actor, e);
}

enum rc account_take_back(struct session *s, const struct lease *lease, struct str clean_reason, struct str actor,
                          struct err *e)
{
	struct account a;
	enum rc        rc = load_of_lease(s, lease, &a, e);

	if (rc)
		return rc;
	if ((rc = account_apply(&a, ACCOUNT_ON_TAKE_BACK, session_now(s), e)))
		return rc;
	a.last_lease = a.lease_uuid;
	a.lease_uuid = STR("");
	want_cleanup(&a, clean_reason);
	return account_save(s, &a, actor, e);
}
