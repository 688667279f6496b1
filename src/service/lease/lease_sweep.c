/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_sweep.c - the passes that tidy up: old leases, leases and accounts that have lost each other, the line.
 *
 * Each walks over a snapshot, page by page, and looks again in the transaction that changes something. No lease depends
 * on them; what they find was left by a restore from a backup, a deleted record or a mistake of ours.
 *
 * The purge reads only leases that are older than the time to live, so it does not grow with what has just ended. A
 * lease that ended under a shorter time to live than today's is removed by today's.
 */
#include "base/arena.h"
#include "domain/account.h"
#include "service/pool/accounts.h"
#include "service/lease/lease_private.h"
#include "service/lease/lease_passes.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"

enum { SWEEP_PAGE = 50, LINE_TURNS_MAX = 10000 };

static const struct actor sweeper = { STR_INIT("job/orphans"), STR_INIT("") };

enum rc lease_walk(const struct pass *p, struct query q, const int *statuses, size_t count, pass_page_fn *visit,
                   void *arg, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < count; i++) {
		q.hash = value_int(statuses[i]);
		rc = pass_walk(p, &q, visit, arg, e);
	}
	return rc;
}

struct sweep {
	const struct record_type *type;
	int64_t                   changed;
};

/* Records of a page that need a closer look. */
struct suspects {
	const struct page        *page;
	const struct record_type *type;
	struct str                keys[SWEEP_PAGE];
	size_t                    count, at;
	bool                      is_changed; /* the one at `at` */
};

/* --- old leases --- */

static bool is_over(const struct lease *l, struct wall now)
{
	return !lease_is_live(l->status) && l->ttl_sec <= wall_sec(now);
}

static enum rc remove_old(struct session *s, void *arg, struct err *e)
{
	struct suspects *found = arg;

	for (size_t i = 0; i < found->count; i++) {
		struct lease l;
		bool         is_there;
		enum rc      rc = session_find(s, &lease_type, found->keys[i], &l, &is_there, e);

		if (rc)
			return rc;
		if (is_there && is_over(&l, session_now(s)))
			session_delete(s, &lease_type, l.uuid);
	}
	return RC_OK;
}

static enum rc purge_page(const struct pass *p, const struct page *page, struct arena *a, void *arg, struct err *e)
{
	struct sweep    *sweep = arg;
	struct suspects *found = arena_alloc(a, sizeof(*found));
	enum rc          rc;

	for (size_t i = 0; i < page->count; i++) {
		const struct lease *l = page_record(page, &lease_type, i);

		if (is_over(l, clock_now(p->clock)))
			found->keys[found->count++] = l->uuid;
	}
	if (!found->count)
		return RC_OK;
	rc = store_run(p->store, remove_old, found, a, e);
	sweep->changed += rc ? 0 : (int64_t)found->count;
	return rc;
}

enum rc pass_purge_leases(const struct pass *p, struct pass_result *ret, struct err *e)
{
	static const int     statuses[] = { LEASE_APPROVAL_DENIED,     LEASE_EXPIRED,
		                            LEASE_BUDGET_EXCEEDED,     LEASE_MANUALLY_TERMINATED,
		                            LEASE_ACCOUNT_QUARANTINED, LEASE_EJECTED,
		                            LEASE_PROVISIONING_FAILED };
	const struct policy *policy = p->leases->policy(p->leases->policy_arg);
	struct sweep         old = { .changed = 0 };
	int64_t              oldest_ms = clock_now(p->clock).ms - policy->ttl_days * DAY_SEC * 1000;
	struct query         q = query_until(&lease_type, LEASE_BY_STATUS, value_int(0), oldest_ms, SWEEP_PAGE);
	enum rc              rc = lease_walk(p, q, statuses, ARRAY_LEN(statuses), purge_page, &old, e);

	pass_count(ret, "removed", old.changed, METRIC__COUNT);
	return rc;
}

/* --- leases without their account, accounts without their lease --- */

static bool is_monitored(const struct lease *l)
{
	return lease_group(l->status) == LEASE_GROUP_MONITORED;
}

static enum rc has_lease(struct session *s, const struct account *account, bool *ret, struct err *e)
{
	struct lease l;
	bool         is_there;
	enum rc      rc = session_find(s, &lease_type, account->lease_uuid, &l, &is_there, e);

	*ret = is_there && is_monitored(&l) && str_eq(l.account_id, account->id);
	return rc;
}

static enum rc end_orphan(struct session *s, void *arg, struct err *e)
{
	struct suspects    *found = arg;
	struct lease_ending end = { .event = LEASE_ON_QUARANTINE, .by = &sweeper };
	struct lease        l;
	bool                has_account;
	enum rc             rc = lease_load(s, found->keys[found->at], &l, e);

	found->is_changed = false;
	if (rc || !is_monitored(&l) || (rc = lease_has_account(s, &l, &has_account, e)) || has_account)
		return rc;
	end.reason_json = reason_of_comment(session_arena(s), "AccountQuarantined",
	                                    str_format(session_arena(s),
	                                               "account %.*s is not in the pool or is another lease's",
	                                               STR_ARG(l.account_id)));
	found->is_changed = true;
	return lease_finish(s, &l, &end, e);
}

static enum rc take_back_stray(struct session *s, void *arg, struct err *e)
{
	struct suspects *found = arg;
	struct account   account;
	struct lease     former = { 0 }; /* as much of it as the account knows */
	bool             is_leased, is_there;
	enum rc          rc = session_find(s, &account_type, found->keys[found->at], &account, &is_there, e);

	found->is_changed = false;
	if (rc || !is_there || (account.status != ACCOUNT_ACTIVE && account.status != ACCOUNT_FROZEN) ||
	    (rc = has_lease(s, &account, &is_leased, e)) || is_leased)
		return rc;
	former.uuid = account.lease_uuid;
	former.account_id = account.id;
	former.user_email = account.holder;
	found->is_changed = true;
	return account_change(s, &former, ACCOUNT_ON_TAKE_BACK, STR(CLEAN_AFTER_LEASE), sweeper.name, e);
}

static enum rc find_suspects(struct session *s, void *arg, struct err *e)
{
	struct suspects *found = arg;

	found->count = 0;
	for (size_t i = 0; i < found->page->count; i++) {
		const void *record = page_record(found->page, found->type, i);
		bool        is_fine;
		enum rc     rc = found->type == &lease_type ? lease_has_account(s, record, &is_fine, e)
		                                            : has_lease(s, record, &is_fine, e);

		if (rc)
			return rc;
		if (!is_fine)
			found->keys[found->count++] = record_key(found->type, record);
	}
	return RC_OK;
}

/* Look at the whole page, then one transaction for each that has lost the other. */
static enum rc sweep_page(const struct pass *p, const struct page *page, struct arena *a, void *arg, struct err *e)
{
	struct sweep    *sweep = arg;
	struct suspects *found = arena_alloc(a, sizeof(*found));
	enum rc          rc;

	found->page = page;
	found->type = sweep->type;
	rc = store_read(p->store, find_suspects, found, a, e);
	for (found->at = 0; !rc && found->at < found->count; found->at++) {
		rc = store_run(p->store, sweep->type == &lease_type ? end_orphan : take_back_stray, found, a, e);
		sweep->changed += !rc && found->is_changed;
	}
	return rc;
}

enum rc pass_find_orphans(const struct pass *p, struct pass_result *ret, struct err *e)
{
	static const int statuses[] = { LEASE_PROVISIONING, LEASE_ACTIVE, LEASE_FROZEN };
	static const int lent[] = { ACCOUNT_ACTIVE, ACCOUNT_FROZEN };
	struct sweep     leases = { &lease_type, 0 }, accounts = { &account_type, 0 };
	struct query     all_leases = query_of(&lease_type, LEASE_BY_STATUS, value_int(0), SWEEP_PAGE);
	struct query     all_accounts = query_of(&account_type, ACCOUNT_BY_STATUS, value_int(0), SWEEP_PAGE);
	enum rc          rc = lease_walk(p, all_leases, statuses, ARRAY_LEN(statuses), sweep_page, &leases, e);

	if (!rc)
		rc = lease_walk(p, all_accounts, lent, ARRAY_LEN(lent), sweep_page, &accounts, e);
	pass_count(ret, "ended", leases.changed, METRIC__COUNT);
	pass_count(ret, "taken_back", accounts.changed, METRIC__COUNT);
	return rc;
}

/* --- the line --- */

enum rc pass_tend_line(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct line_expire               old = { .before_ms = clock_now(p->clock).ms - p->leases->line_limit_ms };
	CLEANUP(arena_fini) struct arena a = { 0 };
	int64_t                          expired = 0, served = 0;
	bool                             is_served = false;
	enum rc                          rc = RC_OK;

	for (int i = 0; !rc && p->leases->line_limit_ms && i < LINE_TURNS_MAX && (i == 0 || old.expired); i++) {
		arena_reset(&a);
		if (!(rc = pass_go_on(p, e)) && !(rc = store_run(p->store, line_expire, &old, &a, e)))
			expired += old.expired;
	}
	for (int i = 0; !rc && i < LINE_TURNS_MAX && (i == 0 || is_served); i++) {
		arena_reset(&a);
		if (!(rc = pass_go_on(p, e)) && !(rc = store_run(p->store, line_serve, &is_served, &a, e)))
			served += is_served;
	}
	pass_count(ret, "expired", expired, METRIC__COUNT);
	pass_count(ret, "served", served, METRIC__COUNT);
	return rc;
}
