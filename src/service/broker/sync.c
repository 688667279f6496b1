/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sync.c - brings the pool in line with what the vendor lists.
 *
 * First everything is only looked at, on snapshots: the vendor's listing, our records, our tombstones. That gives
 * four lists: accounts to add, to refresh, records that are missing, tombstones to note. Then each list is worked off
 * in small transactions, each of which reads its records again and decides anew; so a claim, a deletion or an
 * operator in between always wins, and claims never wait longer than one small transaction.
 *
 * Always true:
 *   1. Only `available` and `stale` records change.                            [sandbox_see(), mark_missing()]
 *   2. An account that was lent once is not added again while its tombstone is there.   [add_or_refresh()]
 *   3. An empty listing, or one that would set aside more than the allowed share, sets aside nothing.
 *   4. What is lent and deleted is the external_id: while a record or a tombstone has it, it is not added under another
 *      sandbox_id.                                                                       [is_left_out()]
 */
#include <stdlib.h>

#include "base/grow.h"
#include "base/log.h"
#include "kernel/alarm/node.h"
#include "service/broker/passes.h"
#include "service/broker/records.h"
#include "service/broker/sandbox_events.h"
#include "store/store.h"

enum {
	PAGE = 500,
	/* A transaction takes 100 actions. An addition is two (record and tombstone) and its event: so eleven fit. An
	 * account that is only refreshed is one; a group of accounts ends when the next one might not fit. */
	ADD_ACTIONS = 2 + NEWS_ACTIONS,
	GROUP = SESSION_ACTIONS_MAX / ADD_ACTIONS,
	TOMBSTONE_GROUP = SESSION_ACTIONS_MAX - 10, /* one action each, no event */
	TOMBSTONE_KEEP_SEC = 24 * 3600,
	STILL_LISTED_SEC = 2 * 3600,
};

struct listed {
	const struct csp_account *account;
	bool                      is_known; /* there is a record */
	bool                      is_due;   /* and it has to be refreshed */
	bool                      is_dead;  /* there is a tombstone */
	bool                      is_other; /* there is either under another sandbox_id: it must not be added */
};

struct id_list {
	struct str *ids; /* in the sync's arena */
	size_t      count, room;
};

struct sync {
	const struct pass *p;
	struct arena       arena; /* the listing and the four lists */
	struct arena       work;
	struct listed     *listed;      /* by sandbox_id */
	struct listed    **by_external; /* the same by external_id */
	size_t             listed_count;
	struct id_list     missing, found_tombstones, missed_tombstones, old_tombstones;
	int64_t            free_known;
	int64_t            started_at;

	const struct csp_account **group; /* of the transaction under way */
	const struct id_list      *group_list;
	const struct str          *group_ids;
	size_t                     group_count, group_done;
	int64_t                    group_added, group_restored, group_changed;

	int64_t synced, added, restored, marked_stale;

	int64_t    undead; /* removed by us long ago, and still listed */
	struct str undead_id;
};

static int compare_listed(const void *a, const void *b)
{
	return str_cmp(((const struct listed *)a)->account->sandbox_id,
	               ((const struct listed *)b)->account->sandbox_id);
}

static struct listed *find_listed(struct sync *y, struct str id)
{
	struct csp_account wanted = { .sandbox_id = id };
	struct listed      key = { .account = &wanted };

	return bsearch(&key, y->listed, y->listed_count, sizeof(key), compare_listed);
}

static int compare_external(const void *a, const void *b)
{
	return str_cmp((*(struct listed *const *)a)->account->external_id,
	               (*(struct listed *const *)b)->account->external_id);
}

/* Is it listed under another sandbox_id? NULL: it is not. */
static struct listed *find_other(struct sync *y, struct str external_id, struct str sandbox_id)
{
	struct csp_account wanted = { .external_id = external_id };
	struct listed      key = { .account = &wanted }, *at = &key, **found;

	found = bsearch(&at, y->by_external, y->listed_count, sizeof(at), compare_external);
	return found && !str_eq((*found)->account->sandbox_id, sandbox_id) ? *found : NULL;
}

static void id_list_add(struct sync *y, struct id_list *l, struct str id)
{
	l->ids = arena_grow(&y->arena, l->ids, l->count, &l->room, sizeof(*l->ids));
	l->ids[l->count++] = str_dup(&y->arena, id);
}

static enum rc fetch_listing(struct sync *y, struct err *e)
{
	struct csp_account *accounts = NULL;
	size_t              count = 0;
	enum rc             rc = csp_list(y->p->csp, &y->arena, &accounts, &count, e);

	if (rc)
		return rc;
	if (count == 0)
		return err_set(
		        e, RC_UNAVAILABLE,
		        "the CSP listed no sandbox at all: taken as a fault of the listing, nothing was changed");
	y->listed = arena_alloc(&y->arena, count * sizeof(*y->listed));
	y->listed_count = count;
	for (size_t i = 0; i < count; i++)
		y->listed[i].account = &accounts[i];
	qsort(y->listed, count, sizeof(*y->listed), compare_listed);
	y->by_external = arena_alloc(&y->arena, count * sizeof(struct listed *));
	for (size_t i = 0; i < count; i++)
		y->by_external[i] = &y->listed[i];
	qsort(y->by_external, count, sizeof(struct listed *), compare_external);
	return RC_OK;
}

static enum rc look_at_sandbox(const struct pass *p, const void *record, void *arg, struct err *e)
{
	struct sync   *y = arg;
	struct sandbox copy = *(const struct sandbox *)record;
	struct listed *listed = find_listed(y, copy.sandbox_id);
	struct listed *other = find_other(y, copy.external_id, copy.sandbox_id);

	(void)p;
	(void)e;
	if (other)
		other->is_other = true;
	y->free_known += copy.status == SANDBOX_AVAILABLE;
	if (listed) {
		listed->is_known = true;
		listed->is_due = sandbox_see(&copy, listed->account, wall_from_sec(y->started_at));
		y->synced += copy.status == SANDBOX_AVAILABLE;
	} else if (copy.status == SANDBOX_AVAILABLE && copy.last_synced <= y->started_at) {
		id_list_add(y, &y->missing, copy.sandbox_id);
	}
	return RC_OK;
}

static enum rc look_at_tombstone(const struct pass *p, const void *record, void *arg, struct err *e)
{
	struct sync            *y = arg;
	const struct tombstone *t = record;
	struct listed          *listed = find_listed(y, t->sandbox_id);
	struct listed          *other = find_other(y, t->external_id, t->sandbox_id);

	(void)p;
	(void)e;
	if (listed)
		listed->is_dead = true;
	if (other)
		other->is_other = true;
	listed = listed ? listed : other; /* then it is there still */
	if (listed && y->started_at - t->removed_at >= STILL_LISTED_SEC && y->undead++ == 0)
		y->undead_id = str_dup(&y->arena, t->sandbox_id);
	if (listed && t->missed_since)
		id_list_add(y, &y->found_tombstones, t->sandbox_id);
	if (!listed && !t->missed_since)
		id_list_add(y, &y->missed_tombstones, t->sandbox_id);
	if (!listed && t->missed_since && y->started_at - t->missed_since >= TOMBSTONE_KEEP_SEC)
		id_list_add(y, &y->old_tombstones, t->sandbox_id);
	return RC_OK;
}

/* The next transaction about a part of a list. */
static enum rc run_group(struct sync *y, txn_fn *run, struct err *e)
{
	enum rc rc = pass_go_on(y->p, e);

	arena_reset(&y->work);
	return rc ? rc : store_run(y->p->store, run, y, &y->work, e);
}

/* There is a record: take over what is new. */
static enum rc refresh(struct session *s, struct sync *y, struct sandbox *sandbox, const struct csp_account *account,
                       int *actions, struct err *e)
{
	bool was_stale = sandbox->status == SANDBOX_STALE;

	*actions += 1;
	if (!sandbox_see(sandbox, account, session_now(s)))
		return RC_OK;
	if (!was_stale) {
		session_put(s, &sandbox_type, sandbox);
		return RC_OK;
	}
	*actions += NEWS_ACTIONS;
	y->group_restored++;
	return sandbox_save(s, NEWS_SANDBOX_RESTORED, sandbox, &y->p->by, e);
}

static enum rc add_or_refresh(struct session *s, struct sync *y, const struct csp_account *account, int *actions,
                              struct err *e)
{
	struct sandbox   sandbox;
	struct tombstone tombstone;
	bool             is_there;
	enum rc          rc = session_find(s, &sandbox_type, account->sandbox_id, &sandbox, &is_there, e);

	if (is_there)
		return refresh(s, y, &sandbox, account, actions, e);
	*actions += ADD_ACTIONS;
	if (rc || (rc = session_find(s, &tombstone_type, account->sandbox_id, &tombstone, &is_there, e)) || is_there)
		return rc;
	sandbox = sandbox_from_account(account, y->p->settings->lab_hours, session_now(s));
	y->group_added++;
	return sandbox_save(s, NEWS_SANDBOX_ADDED, &sandbox, &y->p->by, e);
}

/* As many as fit. */
static enum rc write_accounts(struct session *s, void *arg, struct err *e)
{
	struct sync *y = arg;
	int          actions = 0;

	y->group_added = y->group_restored = 0;
	y->group_done = 0;
	while (y->group_done < y->group_count && actions + ADD_ACTIONS <= SESSION_ACTIONS_MAX) {
		enum rc rc = add_or_refresh(s, y, y->group[y->group_done++], &actions, e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

static int compare_names(const void *a, const void *b)
{
	return str_cmp((*(const struct csp_account *const *)a)->name, (*(const struct csp_account *const *)b)->name);
}

static bool is_left_out(const struct listed *l)
{
	return l->is_other && !l->is_known && !l->is_dead;
}

/* The vendor has given them another csp_id. */
static void warn_of_left_out(const struct sync *y)
{
	struct str first = { 0 };
	size_t     count = 0;

	for (size_t i = 0; i < y->listed_count; i++)
		if (is_left_out(&y->listed[i]) && count++ == 0)
			first = y->listed[i].account->sandbox_id;
	if (count) {
		struct log_field fields[] = { LOG_NUM("accounts", count), LOG_STR("first", first) };

		log_write(LOG_WARNING, "sync", fields, ARRAY_LEN(fields),
		          "accounts not added, for they are known under another sandbox id");
	}
}

/* New accounts are added in the order of their names: then age order and name order agree, and claims by either
 * touch neighbouring pages of the store. */
static enum rc add_and_refresh(struct sync *y, struct err *e)
{
	const struct csp_account **todo = arena_alloc(&y->arena, (y->listed_count + 1) * sizeof(struct csp_account *));
	size_t                     count = 0;

	warn_of_left_out(y);
	for (size_t i = 0; i < y->listed_count; i++)
		if (!y->listed[i].is_dead && !is_left_out(&y->listed[i]) &&
		    (!y->listed[i].is_known || y->listed[i].is_due))
			todo[count++] = y->listed[i].account;
	qsort(todo, count, sizeof(*todo), compare_names);
	for (size_t at = 0; at < count; at += y->group_done) {
		enum rc rc;

		y->group = todo + at;
		y->group_count = count - at;
		if ((rc = run_group(y, write_accounts, e)))
			return rc;
		y->added += y->group_added;
		y->restored += y->group_restored;
	}
	y->synced += y->added;
	return RC_OK;
}

static enum rc mark_missing(struct session *s, void *arg, struct err *e)
{
	struct sync *y = arg;

	y->group_changed = 0;
	for (size_t i = 0; i < y->group_count; i++) {
		struct sandbox sandbox;
		bool           is_there;
		enum rc        rc = session_find(s, &sandbox_type, y->group_ids[i], &sandbox, &is_there, e);

		if (rc)
			return rc;
		if (!is_there || sandbox.status != SANDBOX_AVAILABLE || sandbox.last_synced > y->started_at ||
		    sandbox_apply(&sandbox, SANDBOX_ON_MISSED, session_now(s), NULL))
			continue; /* claimed, gone or seen meanwhile */
		if ((rc = sandbox_save(s, NEWS_SANDBOX_STALE, &sandbox, &y->p->by, e)))
			return rc;
		y->group_changed++;
	}
	return RC_OK;
}

/* What the group's list says of tombstones: they were found again, are missed from now on, or are old enough to go. */
static enum rc write_tombstones(struct session *s, void *arg, struct err *e)
{
	struct sync *y = arg;

	for (size_t i = 0; i < y->group_count; i++) {
		struct tombstone t;
		bool             is_there;
		enum rc          rc = session_find(s, &tombstone_type, y->group_ids[i], &t, &is_there, e);

		if (rc)
			return rc;
		if (!is_there)
			continue;
		if (y->group_list == &y->old_tombstones) {
			session_delete(s, &tombstone_type, t.sandbox_id);
			continue;
		}
		t.missed_since = y->group_list == &y->missed_tombstones ? y->started_at : 0;
		session_put(s, &tombstone_type, &t);
	}
	return RC_OK;
}

static enum rc in_groups(struct sync *y, const struct id_list *l, size_t most, txn_fn *run, struct err *e)
{
	enum rc rc = RC_OK;

	y->group_list = l;
	for (size_t at = 0; !rc && at < l->count; at += most) {
		y->group_ids = l->ids + at;
		y->group_count = l->count - at < most ? l->count - at : most;
		y->group_changed = 0;
		rc = run_group(y, run, e);
		if (!rc)
			y->marked_stale += y->group_changed;
	}
	return rc;
}

static enum rc set_missing_aside(struct sync *y, struct err *e)
{
	int64_t allowed = y->free_known * y->p->settings->sync_max_stale_percent / 100;

	if (allowed < 1)
		allowed = 1;
	if ((int64_t)y->missing.count > allowed && !y->p->is_forced)
		return err_set(
		        e, RC_UNAVAILABLE,
		        "the CSP no longer lists %zu of %lld free sandboxes; at most %lld may go at once "
		        "(LEASEHOLD_SYNC_MAX_STALE_PERCENT), so none was marked as stale; force the sync if it is true",
		        y->missing.count, (long long)y->free_known, (long long)allowed);
	return in_groups(y, &y->missing, GROUP, mark_missing, e);
}

/* For the alarm: the vendor said that they were deleted. */
static enum rc state_undead(struct session *s, void *arg, struct err *e)
{
	struct sync *y = arg;
	struct fact  fact = { .name = STR(FACT_STILL_LISTED), .value = y->undead, .text = y->undead_id }, old;
	bool         is_there;
	enum rc      rc = session_find(s, &fact_type, fact.name, &old, &is_there, e);

	if (rc || y->undead == (is_there ? old.value : 0))
		return rc;
	return fact_state(s, &fact, e);
}

static enum rc run_sync(struct sync *y, struct err *e)
{
	struct query sandboxes = { .type = &sandbox_type, .index = QUERY_ALL, .limit = PAGE };
	struct query tombstones = { .type = &tombstone_type, .index = QUERY_ALL, .limit = PAGE };
	enum rc      rc;

	/* A listing that is not believed ends no tombstone either. */
	if ((rc = fetch_listing(y, e)) || (rc = pass_each(y->p, &sandboxes, look_at_sandbox, y, e)) ||
	    (rc = pass_each(y->p, &tombstones, look_at_tombstone, y, e)) || (rc = add_and_refresh(y, e)) ||
	    (rc = in_groups(y, &y->found_tombstones, TOMBSTONE_GROUP, write_tombstones, e)) ||
	    (rc = set_missing_aside(y, e)) || (rc = store_run(y->p->store, state_undead, y, NULL, e)) ||
	    (rc = in_groups(y, &y->missed_tombstones, TOMBSTONE_GROUP, write_tombstones, e)))
		return rc;
	return in_groups(y, &y->old_tombstones, TOMBSTONE_GROUP, write_tombstones, e);
}

enum rc pass_sync(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct sync y = { .p = p, .started_at = wall_sec(clock_now(p->clock)) };
	enum rc     rc = run_sync(&y, e);

	pass_count(ret, "synced", y.synced, METRIC_SYNC_SYNCED);
	pass_count(ret, "added", y.added, METRIC__COUNT);
	pass_count(ret, "restored", y.restored, METRIC__COUNT);
	pass_count(ret, "marked_stale", y.marked_stale, METRIC_SYNC_STALE);
	arena_fini(&y.arena);
	arena_fini(&y.work);
	return rc;
}
