/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passes.c - the passes that only look at our own records: expiry, removals, retries, old events.
 *
 * All but the last are sweeps over the records of a state. A page of ids is read on a snapshot; then one transaction
 * looks at each of these records again and decides. So a sweep never holds up claims for longer than one small
 * transaction, sees the whole pool at any size, and never acts on what it read before: a record that changed in between
 * is judged as it is.
 *
 * Sync and cleanup, which talk to the vendor, have files of their own.
 */
#include "service/broker/passes.h"

#include "kernel/event.h"
#include "kernel/saga.h"
#include "service/broker/records.h"
#include "service/broker/sandbox_events.h"
#include "store/walk.h"

enum sweep_verdict { SWEEP_LEAVE, SWEEP_PUT, SWEEP_REMOVE };

/* Decides about one record inside a transaction; may change it. The state has been checked. */
typedef enum sweep_verdict sweep_fn(struct sandbox *s, const struct pass *p, struct wall now);

struct sweep {
	sweep_fn         *decide;
	enum sandbox_news news;   /* of each record that was changed or removed */
	const char       *counts; /* how many these were, in the words of the pass, and as a metric */
	enum metric       metric;
};
/* A removal is three actions (record, tombstone, unique value) and its event; a record left alone is one, for it was
 * read. So a transaction of 100 takes ten removals, or a page with little to do: it ends when the next might not
 * fit. */
enum { PAGE = 60, REMOVAL_ACTIONS = 3 + NEWS_ACTIONS };

struct group {
	const struct pass  *p;
	enum sandbox_state  state;
	const struct sweep *what;
	const struct page  *page;
	size_t              at, end; /* of the page: where the next transaction begins, and where the last one ended */
	int64_t             changed, all_changed;
};

static enum rc change_one(struct session *s, struct group *g, struct str id, bool *ret_is_changed, struct err *e)
{
	struct sandbox     sandbox;
	enum sweep_verdict verdict;
	bool               is_there;
	enum rc            rc = session_find(s, &sandbox_type, id, &sandbox, &is_there, e);

	*ret_is_changed = false;
	if (rc || !is_there || sandbox.status != g->state)
		return rc; /* somebody was faster */
	verdict = g->what->decide(&sandbox, g->p, session_now(s));
	if (verdict == SWEEP_LEAVE)
		return RC_OK;
	*ret_is_changed = true;
	if (verdict == SWEEP_PUT)
		return sandbox_save(s, g->what->news, &sandbox, &g->p->by, e);
	return sandbox_remove(s, g->what->news, &sandbox, &g->p->by, e);
}

static enum rc change_group(struct session *s, void *arg, struct err *e)
{
	struct group *g = arg;
	int           actions = 0;

	g->changed = 0;
	for (g->end = g->at; g->end < g->page->count && actions + REMOVAL_ACTIONS <= SESSION_ACTIONS_MAX; g->end++) {
		struct sandbox *seen = page_record(g->page, &sandbox_type, g->end);
		bool            is_changed;
		enum rc         rc = change_one(s, g, seen->sandbox_id, &is_changed, e);

		if (rc)
			return rc;
		g->changed += is_changed;
		actions += is_changed ? REMOVAL_ACTIONS : 1;
	}
	return RC_OK;
}

/* One page, in as many transactions as it takes. */
static enum rc change_page(const struct page *page, struct arena *a, void *arg, struct err *e)
{
	struct group *g = arg;

	g->page = page;
	for (g->at = 0; g->at < page->count; g->at = g->end) {
		enum rc rc = pass_go_on(g->p, e);

		if (!rc)
			rc = store_run(g->p->store, change_group, g, a, e);
		if (rc)
			return rc;
		g->all_changed += g->changed;
	}
	return RC_OK;
}

static enum rc sweep(const struct pass *p, enum sandbox_state state, const struct sweep *what, struct pass_result *ret,
                     struct err *e)
{
	struct group g = { .p = p, .state = state, .what = what };
	struct query q = { .type = &sandbox_type, .index = SANDBOX_BY_STATUS, .hash = value_int(state), .limit = PAGE };
	enum rc      rc = store_read_pages(p->store, &q, change_page, &g, e);

	pass_count(ret, what->counts, g.all_changed, what->metric);
	return rc;
}

/* --- the passes --- */

static enum sweep_verdict expire_orphan(struct sandbox *s, const struct pass *p, struct wall now)
{
	if (!sandbox_is_orphaned(s, p->settings->grace_sec, now))
		return SWEEP_LEAVE;
	return sandbox_apply(s, SANDBOX_ON_EXPIRE, now, NULL) ? SWEEP_LEAVE : SWEEP_PUT;
}

enum rc pass_expire(const struct pass *p, struct pass_result *ret, struct err *e)
{
	static const struct sweep orphans = { expire_orphan, NEWS_SANDBOX_EXPIRED, "expired", METRIC_EXPIRY_ORPHANED };

	return sweep(p, SANDBOX_ALLOCATED, &orphans, ret, e);
}

static enum sweep_verdict remove_if_old(struct sandbox *s, const struct pass *p, struct wall now)
{
	bool is_old = wall_sec(now) - s->updated_at >= p->stale_hours * 3600;

	return is_old && s->quarantine_reason.n == 0 ? SWEEP_REMOVE : SWEEP_LEAVE;
}

enum rc pass_remove_stale(const struct pass *p, struct pass_result *ret, struct err *e)
{
	static const struct sweep old = { remove_if_old, NEWS_SANDBOX_REMOVED, "deleted", METRIC__COUNT };
	enum rc                   rc = sweep(p, SANDBOX_STALE, &old, ret, e);

	pass_count(ret, "grace_period_hours", p->stale_hours, METRIC__COUNT);
	return rc;
}

static enum sweep_verdict remove_any(struct sandbox *s, const struct pass *p, struct wall now)
{
	(void)p;
	return sandbox_apply(s, SANDBOX_ON_REMOVE, now, NULL) ? SWEEP_LEAVE : SWEEP_REMOVE;
}

enum rc pass_bulk_delete(const struct pass *p, struct pass_result *ret, struct err *e)
{
	static const struct sweep all = { remove_any, NEWS_SANDBOX_REMOVED, "deleted", METRIC__COUNT };

	return sweep(p, p->status, &all, ret, e);
}

static enum sweep_verdict retry(struct sandbox *s, const struct pass *p, struct wall now)
{
	(void)p;
	return sandbox_retry_deletion(s, now, NULL) ? SWEEP_LEAVE : SWEEP_PUT;
}

enum rc pass_retry_failed(const struct pass *p, struct pass_result *ret, struct err *e)
{
	static const struct sweep failed = { retry, NEWS_SANDBOX_DELETION_RETRIED, "retried", METRIC__COUNT };

	return sweep(p, SANDBOX_DELETION_FAILED, &failed, ret, e);
}

enum { DAY_MS = 86400000 };

enum rc pass_prune_events(const struct pass *p, struct pass_result *ret, struct err *e)
{
	int64_t            before_ms = clock_now(p->clock).ms - p->settings->event_days * DAY_MS;
	struct event_prune events;
	struct saga_prune  sagas;
	int64_t            removed = 0;
	enum rc            rc;

	do { /* a page of each */
		events = (struct event_prune){ .before_ms = before_ms };
		sagas = (struct saga_prune){ .before_ms = before_ms };
		rc = pass_go_on(p, e);
		if (!rc && p->settings->event_days > 0 && !(rc = store_run(p->store, event_prune, &events, NULL, e)))
			rc = store_run(p->store, saga_prune, &sagas, NULL, e);
		removed += (int64_t)(events.removed + sagas.removed);
	} while (!rc && events.removed + sagas.removed);
	pass_count(ret, "removed", removed, METRIC__COUNT);
	return rc;
}
