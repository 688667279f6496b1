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
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "service/sweep.h"
#include "store/store.h"

enum {
	PAGE = 500,
	/* A transaction takes 100 actions. An addition is two (record and tombstone) and its event: so eleven fit. An
	 * account that is only refreshed is one; a group of accounts ends when the next one might not fit. */
	ADD_ACTIONS = 2 + NEWS_ACTIONS,
	GROUP = SESSION_ACTIONS_MAX / ADD_ACTIONS,
	TOMBSTONE_GROUP = SESSION_ACTIONS_MAX - 10, /* one action each, no event */
	TOMBSTONE_KEEP_SEC = 24 * 3600,
};

struct listed {
	const struct csp_account *account;
	bool                      is_known; /* there is a record */
	bool                      is_due;   /* and it has to be refreshed */
	bool                      is_dead;  /* there is a tombstone */
};

struct id_list {
	struct str *ids; /* copies in the sync's arena */
	size_t      count, room;
};

struct sync {
	const struct pass *p;
	struct arena       arena; /* the listing and the four lists */
	struct arena       page_arena, next_arena, work;
	struct listed     *listed; /* by sandbox_id */
	size_t             listed_count;
	struct id_list     missing, found_tombstones, missed_tombstones, old_tombstones;
	int64_t            free_known;
	int64_t            started_at;

	struct str  cursor; /* of the walk under way */
	struct page page;

	const struct csp_account **group; /* of the transaction under way */
	const struct str          *group_ids;
	size_t                     group_count, group_done;
	int64_t                    group_added, group_restored, group_changed;

	int64_t synced, added, restored, marked_stale;
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

static void id_list_add(struct sync *y, struct id_list *l, struct str id)
{
	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : 64;
		l->ids = mem_resize(l->ids, l->room * sizeof(*l->ids));
	}
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
	y->listed = mem_new_array(struct listed, count);
	y->listed_count = count;
	for (size_t i = 0; i < count; i++)
		y->listed[i].account = &accounts[i];
	qsort(y->listed, count, sizeof(*y->listed), compare_listed);
	return RC_OK;
}

static enum rc read_page(struct session *s, void *arg, struct err *e)
{
	struct sync *y = arg;
	struct query q = { .type = &sandbox_type, .index = QUERY_ALL, .limit = PAGE, .cursor = y->cursor };

	return session_query(s, &q, &y->page, e);
}

static enum rc read_tombstones(struct session *s, void *arg, struct err *e)
{
	struct sync *y = arg;
	struct query q = { .type = &tombstone_type, .index = QUERY_ALL, .limit = PAGE, .cursor = y->cursor };

	return session_query(s, &q, &y->page, e);
}

/* Call look() for every record, a page at a time. */
static enum rc walk(struct sync *y, txn_fn *read, const struct record_type *type,
                    void (*look)(struct sync *y, const void *record), struct err *e)
{
	y->cursor = STR("");
	do {
		struct arena spare = y->page_arena;
		enum rc      rc;

		y->page_arena = y->next_arena; /* the cursor lives in the arena of the page before */
		y->next_arena = spare;
		arena_reset(&y->page_arena);
		rc = go_on(y->p, e);
		if (!rc)
			rc = store_read(y->p->store, read, y, &y->page_arena, e);
		if (rc)
			return rc;
		for (size_t i = 0; i < y->page.count; i++)
			look(y, page_record(&y->page, type, i));
		y->cursor = y->page.next;
	} while (y->cursor.n);
	return RC_OK;
}

static void look_at_sandbox(struct sync *y, const void *record)
{
	struct sandbox copy = *(const struct sandbox *)record;
	struct listed *listed = find_listed(y, copy.sandbox_id);

	y->free_known += copy.status == SANDBOX_AVAILABLE;
	if (listed) {
		listed->is_known = true;
		listed->is_due = sandbox_see(&copy, listed->account, wall_from_sec(y->started_at));
		y->synced += copy.status == SANDBOX_AVAILABLE;
	} else if (copy.status == SANDBOX_AVAILABLE && copy.last_synced <= y->started_at) {
		id_list_add(y, &y->missing, copy.sandbox_id);
	}
}

static void look_at_tombstone(struct sync *y, const void *record)
{
	const struct tombstone *t = record;
	struct listed          *listed = find_listed(y, t->sandbox_id);

	if (listed)
		listed->is_dead = true;
	if (listed && t->missed_since)
		id_list_add(y, &y->found_tombstones, t->sandbox_id);
	if (!listed && !t->missed_since)
		id_list_add(y, &y->missed_tombstones, t->sandbox_id);
	if (!listed && t->missed_since && y->started_at - t->missed_since >= TOMBSTONE_KEEP_SEC)
		id_list_add(y, &y->old_tombstones, t->sandbox_id);
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
	enum rc          rc = session_get(s, &sandbox_type, account->sandbox_id, &sandbox, NULL);

	if (!rc)
		return refresh(s, y, &sandbox, account, actions, e);
	*actions += ADD_ACTIONS;
	if (rc == RC_NOT_FOUND)
		rc = session_get(s, &tombstone_type, account->sandbox_id, &tombstone, NULL);
	if (rc == RC_NOT_FOUND) {
		sandbox = sandbox_from_account(account, y->p->settings->lab_hours, session_now(s));
		y->group_added++;
		return sandbox_save(s, NEWS_SANDBOX_ADDED, &sandbox, &y->p->by, e);
	}
	return rc ? err_set(e, rc, "account %.*s cannot be looked up", STR_ARG(account->sandbox_id)) : RC_OK;
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

/* New accounts are added in the order of their names: then age order and name order agree, and claims by either
 * touch neighbouring pages of the store. */
static enum rc add_and_refresh(struct sync *y, struct err *e)
{
	const struct csp_account **todo = arena_alloc(&y->arena, (y->listed_count + 1) * sizeof(struct csp_account *));
	size_t                     count = 0;

	for (size_t i = 0; i < y->listed_count; i++)
		if (!y->listed[i].is_dead && (!y->listed[i].is_known || y->listed[i].is_due))
			todo[count++] = y->listed[i].account;
	qsort(todo, count, sizeof(*todo), compare_names);
	for (size_t at = 0; at < count; at += y->group_done) {
		enum rc rc;

		y->group = todo + at;
		y->group_count = count - at;
		arena_reset(&y->work);
		rc = go_on(y->p, e);
		if (!rc)
			rc = store_run(y->p->store, write_accounts, y, &y->work, e);
		if (rc)
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
		enum rc        rc = session_get(s, &sandbox_type, y->group_ids[i], &sandbox, NULL);

		if (rc && rc != RC_NOT_FOUND)
			return rc;
		if (rc || sandbox.status != SANDBOX_AVAILABLE || sandbox.last_synced > y->started_at ||
		    sandbox_apply(&sandbox, SANDBOX_ON_MISSED, session_now(s), NULL))
			continue; /* claimed, gone or seen meanwhile */
		if ((rc = sandbox_save(s, NEWS_SANDBOX_STALE, &sandbox, &y->p->by, e)))
			return rc;
		y->group_changed++;
	}
	return RC_OK;
}

static enum rc set_missed_since(struct session *s, struct sync *y, int64_t since)
{
	for (size_t i = 0; i < y->group_count; i++) {
		struct tombstone t;
		enum rc          rc = session_get(s, &tombstone_type, y->group_ids[i], &t, NULL);

		if (rc == RC_NOT_FOUND)
			continue;
		if (rc)
			return rc;
		t.missed_since = since;
		session_put(s, &tombstone_type, &t);
	}
	return RC_OK;
}

static enum rc note_found(struct session *s, void *arg, struct err *e)
{
	(void)e;
	return set_missed_since(s, arg, 0);
}

static enum rc note_missed(struct session *s, void *arg, struct err *e)
{
	struct sync *y = arg;

	(void)e;
	return set_missed_since(s, y, y->started_at);
}

static enum rc drop_tombstones(struct session *s, void *arg, struct err *e)
{
	struct sync *y = arg;

	(void)e;
	for (size_t i = 0; i < y->group_count; i++) {
		struct tombstone t;
		enum rc          rc = session_get(s, &tombstone_type, y->group_ids[i], &t, NULL);

		if (!rc)
			session_delete(s, &tombstone_type, y->group_ids[i]);
		else if (rc != RC_NOT_FOUND)
			return rc;
	}
	return RC_OK;
}

static enum rc in_groups(struct sync *y, const struct id_list *l, size_t most, txn_fn *run, int64_t *ret_changed,
                         struct err *e)
{
	for (size_t at = 0; at < l->count; at += most) {
		enum rc rc;

		y->group_ids = l->ids + at;
		y->group_count = l->count - at < most ? l->count - at : most;
		arena_reset(&y->work);
		rc = go_on(y->p, e);
		if (!rc)
			rc = store_run(y->p->store, run, y, &y->work, e);
		if (rc)
			return rc;
		if (ret_changed)
			*ret_changed += y->group_changed;
	}
	return RC_OK;
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
		        "(LEASEHOLD_SYNC_MAX_STALE_PERCENT), so none was set aside; force the sync if it is true",
		        y->missing.count, (long long)y->free_known, (long long)allowed);
	return in_groups(y, &y->missing, GROUP, mark_missing, &y->marked_stale, e);
}

static enum rc run_sync(struct sync *y, struct err *e)
{
	enum rc rc;

	if ((rc = fetch_listing(y, e)))
		return rc;
	if ((rc = walk(y, read_page, &sandbox_type, look_at_sandbox, e)))
		return rc;
	if ((rc = walk(y, read_tombstones, &tombstone_type, look_at_tombstone, e)))
		return rc;
	if ((rc = add_and_refresh(y, e)))
		return rc;
	if ((rc = in_groups(y, &y->found_tombstones, TOMBSTONE_GROUP, note_found, NULL, e)))
		return rc;
	if ((rc = set_missing_aside(y, e)))
		return rc; /* a listing that is not believed ends no tombstone either */
	if ((rc = in_groups(y, &y->missed_tombstones, TOMBSTONE_GROUP, note_missed, NULL, e)))
		return rc;
	return in_groups(y, &y->old_tombstones, TOMBSTONE_GROUP, drop_tombstones, NULL, e);
}

enum rc pass_sync(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct sync y = { .p = p, .started_at = wall_sec(clock_now(p->clock)) };
	enum rc     rc = run_sync(&y, e);

	pass_count(ret, "synced", y.synced, METRIC_SYNC_SYNCED);
	pass_count(ret, "added", y.added, METRIC__COUNT);
	pass_count(ret, "restored", y.restored, METRIC__COUNT);
	pass_count(ret, "marked_stale", y.marked_stale, METRIC_SYNC_STALE);
	free(y.listed);
	free(y.missing.ids);
	free(y.found_tombstones.ids);
	free(y.missed_tombstones.ids);
	free(y.old_tombstones.ids);
	arena_fini(&y.arena);
	arena_fini(&y.page_arena);
	arena_fini(&y.next_arena);
	arena_fini(&y.work);
	return rc;
}
