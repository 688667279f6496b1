/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_sweep.c - the passes that put right what nobody asked for: old leases, leases and accounts that have lost each other, the line.
 *
 * Each walks over a snapshot, page by page, and looks again in the transaction that changes something. None of them is needed for a lease
 * to go its way; what they find was left by a restore from a backup, a deleted record or a mistake of ours.
 *
 * The purge looks only at leases that are older than the time to live, so that it does not grow with what has just ended. A lease that
 * ended under a shorter time to live than today's is removed by today's.
 */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "domain/account.h"
#include "service/lease_flow.h"
#include "service/lease_ops.h"
#include "service/lease_passes.h"
#include "service/lease_records.h"
#include "service/leases.h"
#include "store/store.h"

enum { SWEEP_PAGE = 50, LINE_TURNS_MAX = 10000 };

static const struct actor sweeper = { STR_INIT("job/orphans"), STR_INIT("") };

/* --- walking --- */

struct reading {
	struct query q;
	struct page  page;
};

static enum rc read_page(struct session *s, void *arg, struct err *e)
{
	struct reading *r = arg;

	return session_query(s, &r->q, &r->page, e);
}

static enum rc check_stop(const struct lease_pass *p, struct err *e)
{
	return !p->may_go_on || p->may_go_on(p->arg)
	               ? RC_OK
	               : err_set(e, RC_UNAVAILABLE, "the pass was stopped before its end");
}

enum rc lease_walk(const struct lease_pass *p, const struct query *q, lease_visit_fn *visit, void *arg, struct err *e)
{
	struct reading r = { .q = *q };
	struct arena   a = { 0 };
	char           cursor[CURSOR_MAX];
	enum rc        rc;

	do {
		arena_reset(&a);
		rc = check_stop(p, e);
		if (!rc)
			rc = store_read(p->store, read_page, &r, &a, e);
		if (!rc)
			rc = visit(p, &r.page, &a, arg, e);
		if (rc)
			break;
		assert(r.page.next.n <= sizeof(cursor));
		if (r.page.next.n) /* it lives in the arena, which the next page begins anew */
			memcpy(cursor, r.page.next.p, r.page.next.n);
		r.q.cursor = str_of(cursor, r.page.next.n);
	} while (r.q.cursor.n);
	arena_fini(&a);
	return rc;
}

/* All of these statuses, one after the other. */
static enum rc walk_leases(const struct lease_pass *p, const enum lease_status *statuses, size_t count,
                           int64_t created_max_ms, lease_visit_fn *visit, void *arg, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		struct query q = { .type = &lease_type,
			           .index = LEASE_BY_STATUS,
			           .hash = value_int(statuses[i]),
			           .limit = SWEEP_PAGE,
			           .has_sort_max = created_max_ms > 0,
			           .sort_max = created_max_ms };
		enum rc      rc = lease_walk(p, &q, visit, arg, e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

/* What a page has shown to be worth a closer look. */
struct suspects {
	const struct page *page;
	struct str         keys[SWEEP_PAGE];
	size_t             count, at;
	bool               is_changed; /* the one at `at` */
};

/* One transaction for each of them. */
static enum rc look_closer(const struct lease_pass *p, struct suspects *found, txn_fn *run, struct arena *a,
                           int64_t *sum, struct err *e)
{
	for (found->at = 0; found->at < found->count; found->at++) {
		enum rc rc = store_run(p->store, run, found, a, e);

		if (rc)
			return rc;
		*sum += found->is_changed;
	}
	return RC_OK;
}

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
		enum rc      rc = session_get(s, &lease_type, found->keys[i], &l, NULL);

		if (rc && rc != RC_NOT_FOUND)
			return err_set(e, rc, "lease %.*s cannot be read", STR_ARG(found->keys[i]));
		if (!rc && is_over(&l, session_now(s)))
			session_delete(s, &lease_type, l.uuid);
	}
	return RC_OK;
}

static enum rc purge_page(const struct lease_pass *p, const struct page *page, struct arena *a, void *arg,
                          struct err *e)
{
	struct suspects *found = arena_alloc(a, sizeof(*found));
	int64_t         *removed = arg;
	enum rc          rc;

	for (size_t i = 0; i < page->count; i++) {
		const struct lease *l = page_record(page, &lease_type, i);

		if (is_over(l, clock_now(p->clock)))
			found->keys[found->count++] = l->uuid;
	}
	if (!found->count)
		return RC_OK;
	if ((rc = store_run(p->store, remove_old, found, a, e)))
		return rc;
	*removed += (int64_t)found->count;
	return RC_OK;
}

enum rc pass_purge_leases(const struct lease_pass *p, struct pass_result *ret, struct err *e)
{
	static const enum lease_status statuses[] = { LEASE_APPROVAL_DENIED,     LEASE_EXPIRED,
		                                      LEASE_BUDGET_EXCEEDED,     LEASE_MANUALLY_TERMINATED,
		                                      LEASE_ACCOUNT_QUARANTINED, LEASE_EJECTED,
		                                      LEASE_PROVISIONING_FAILED };
	int64_t                        removed = 0;
	int64_t                        created_max_ms = clock_now(p->clock).ms - p->policy->ttl_days * DAY_SEC * 1000;
	enum rc rc = walk_leases(p, statuses, ARRAY_LEN(statuses), created_max_ms, purge_page, &removed, e);

	pass_count(ret, "removed", removed, METRIC__COUNT);
	return rc;
}

/* --- leases without their account --- */

static bool is_monitored(const struct lease *l)
{
	return lease_group(l->status) == LEASE_GROUP_MONITORED;
}

static enum rc find_orphans(struct session *s, void *arg, struct err *e)
{
	struct suspects *found = arg;

	found->count = 0;
	for (size_t i = 0; i < found->page->count; i++) {
		const struct lease *l = page_record(found->page, &lease_type, i);
		bool                has_account;
		enum rc             rc = lease_has_account(s, l, &has_account, e);

		if (rc)
			return rc;
		if (!has_account)
			found->keys[found->count++] = l->uuid;
	}
	return RC_OK;
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

static enum rc visit_leases(const struct lease_pass *p, const struct page *page, struct arena *a, void *arg,
                            struct err *e)
{
	struct suspects *found = arena_alloc(a, sizeof(*found));
	enum rc          rc;

	found->page = page;
	rc = store_read(p->store, find_orphans, found, a, e);
	return rc ? rc : look_closer(p, found, end_orphan, a, arg, e);
}

/* --- accounts without their lease --- */

static enum rc has_lease(struct session *s, const struct account *account, bool *ret, struct err *e)
{
	struct lease l;
	enum rc      rc = session_get(s, &lease_type, account->lease_uuid, &l, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "lease %.*s cannot be read", STR_ARG(account->lease_uuid));
	*ret = !rc && is_monitored(&l) && str_eq(l.account_id, account->id);
	return RC_OK;
}

static enum rc find_strays(struct session *s, void *arg, struct err *e)
{
	struct suspects *found = arg;

	found->count = 0;
	for (size_t i = 0; i < found->page->count; i++) {
		const struct account *account = page_record(found->page, &account_type, i);
		bool                  is_leased;
		enum rc               rc = has_lease(s, account, &is_leased, e);

		if (rc)
			return rc;
		if (!is_leased)
			found->keys[found->count++] = account->id;
	}
	return RC_OK;
}

static enum rc take_back_stray(struct session *s, void *arg, struct err *e)
{
	struct suspects *found = arg;
	struct account   account;
	struct lease     former = { 0 }; /* as much of it as the account knows */
	bool             is_leased;
	enum rc          rc = session_get(s, &account_type, found->keys[found->at], &account, NULL);

	found->is_changed = false;
	if (rc == RC_NOT_FOUND || (!rc && account.status != ACCOUNT_ACTIVE && account.status != ACCOUNT_FROZEN))
		return RC_OK;
	if (rc)
		return err_set(e, rc, "account %.*s cannot be read", STR_ARG(found->keys[found->at]));
	if ((rc = has_lease(s, &account, &is_leased, e)) || is_leased)
		return rc;
	former.uuid = account.lease_uuid;
	former.account_id = account.id;
	former.user_email = account.holder;
	found->is_changed = true;
	return account_take_back(s, &former, STR("LEASE_TERMINATION"), sweeper.name, e);
}

static enum rc visit_accounts(const struct lease_pass *p, const struct page *page, struct arena *a, void *arg,
                              struct err *e)
{
	struct suspects *found = arena_alloc(a, sizeof(*found));
	enum rc          rc;

	found->page = page;
	rc = store_read(p->store, find_strays, found, a, e);
	return rc ? rc : look_closer(p, found, take_back_stray, a, arg, e);
}

enum rc pass_find_orphans(const struct lease_pass *p, struct pass_result *ret, struct err *e)
{
	static const enum lease_status   statuses[] = { LEASE_PROVISIONING, LEASE_ACTIVE, LEASE_FROZEN };
	static const enum account_status lent[] = { ACCOUNT_ACTIVE, ACCOUNT_FROZEN };
	int64_t                          ended = 0, taken_back = 0;
	enum rc                          rc = walk_leases(p, statuses, ARRAY_LEN(statuses), 0, visit_leases, &ended, e);

	for (size_t i = 0; !rc && i < ARRAY_LEN(lent); i++) {
		struct query q = { .type = &account_type,
			           .index = ACCOUNT_BY_STATUS,
			           .hash = value_int(lent[i]),
			           .limit = SWEEP_PAGE };

		rc = lease_walk(p, &q, visit_accounts, &taken_back, e);
	}
	pass_count(ret, "ended", ended, METRIC__COUNT);
	pass_count(ret, "taken_back", taken_back, METRIC__COUNT);
	return rc;
}

/* --- the line --- */

enum rc pass_tend_line(const struct lease_pass *p, struct pass_result *ret, struct err *e)
{
	struct line_expire old = { .before_ms = clock_now(p->clock).ms - p->line_limit_ms };
	struct line_serve  next = { 0 };
	struct arena       a = { 0 };
	int64_t            expired = 0, served = 0;
	enum rc            rc = RC_OK;

	for (int i = 0; !rc && p->line_limit_ms && i < LINE_TURNS_MAX && (i == 0 || old.expired); i++) {
		arena_reset(&a);
		if (!(rc = check_stop(p, e)) && !(rc = store_run(p->store, line_expire, &old, &a, e)))
			expired += old.expired;
	}
	for (int i = 0; !rc && i < LINE_TURNS_MAX && (i == 0 || next.served); i++) {
		arena_reset(&a);
		if (!(rc = check_stop(p, e)) && !(rc = store_run(p->store, line_serve, &next, &a, e)))
			served += next.served;
	}
	arena_fini(&a);
	pass_count(ret, "expired", expired, METRIC__COUNT);
	pass_count(ret, "served", served, METRIC__COUNT);
	return rc;
}
