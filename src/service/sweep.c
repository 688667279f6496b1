/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c - one walk over the records of a state.
 *
 * A page of ids is read on a snapshot; then one transaction looks at each of these records again and decides. So the
 * walk never holds up claims for longer than one small transaction, sees the whole pool at any size, and never acts
 * on what it read before: a record that changed in between is judged as it is.
 */
#include "service/sweep.h"

#include "base/arena.h"
#include "store/store.h"

/* A removal is three actions (record, tombstone, unique value) and its event; a record that is left alone is one,
 * because it was read. So a transaction of 100 takes ten removals, or a page where there is little to do: it ends
 * when the next one might not fit. */
enum { PAGE = 60, REMOVAL_ACTIONS = 3 + NEWS_ACTIONS };

struct group {
	const struct pass *p;
	enum sandbox_state state;
	sweep_fn          *decide;
	struct str         cursor;
	enum sandbox_news  news;
	struct page        page;
	size_t             at, end; /* of the page: where the next transaction begins, and where the last one ended */
	int64_t            changed;
};

static enum rc read_group(struct session *s, void *arg, struct err *e)
{
	struct group *g = arg;
	struct query  q = { .type = &sandbox_type,
		            .index = SANDBOX_BY_STATUS,
		            .hash = value_int(g->state),
		            .limit = PAGE,
		            .cursor = g->cursor };

	return session_query(s, &q, &g->page, e);
}

enum rc go_on(const struct pass *p, struct err *e)
{
	return p->wait(p->wait_arg, 0) ? RC_OK : err_set(e, RC_UNAVAILABLE, "the pass was stopped before its end");
}

enum rc remove_with_tombstone(struct session *s, const struct sandbox *sandbox, struct err *e)
{
	struct tombstone t = { 0 };
	enum rc          rc = session_get(s, &tombstone_type, sandbox->sandbox_id, &t, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "tombstone of %.*s cannot be read", STR_ARG(sandbox->sandbox_id));
	t.sandbox_id = sandbox->sandbox_id;
	t.external_id = sandbox->external_id;
	t.removed_at = wall_sec(session_now(s));
	t.missed_since = 0;
	session_put(s, &tombstone_type, &t);
	session_delete(s, &sandbox_type, sandbox->sandbox_id);
	return RC_OK;
}

static enum rc remove_one(struct session *s, const struct sandbox *sandbox, struct err *e)
{
	if (sandbox->allocated_at || sandbox->deletion_requested_at)
		return remove_with_tombstone(s, sandbox, e);
	session_delete(s, &sandbox_type, sandbox->sandbox_id);
	return RC_OK;
}

static enum rc change_one(struct session *s, struct group *g, struct str id, bool *ret_is_changed, struct err *e)
{
	struct sandbox     sandbox;
	enum sweep_verdict verdict;
	enum rc            rc = session_get(s, &sandbox_type, id, &sandbox, NULL);

	*ret_is_changed = false;
	if (rc == RC_NOT_FOUND || (!rc && sandbox.status != g->state))
		return RC_OK; /* somebody was faster */
	if (rc)
		return err_set(e, rc, "sandbox %.*s cannot be read", STR_ARG(id));
	verdict = g->decide(&sandbox, g->p, session_now(s));
	if (verdict == SWEEP_LEAVE)
		return RC_OK;
	*ret_is_changed = true;
	if (verdict == SWEEP_PUT)
		return sandbox_save(s, g->news, &sandbox, &g->p->by, e);
	if ((rc = remove_one(s, &sandbox, e)))
		return rc;
	return sandbox_tell_gone(s, g->news, &sandbox, &g->p->by, e);
}

static enum rc change_group(struct session *s, void *arg, struct err *e)
{
	struct group *g = arg;
	int           actions = 0;

	g->changed = 0;
	for (g->end = g->at; g->end < g->page.count && actions + REMOVAL_ACTIONS <= SESSION_ACTIONS_MAX; g->end++) {
		struct sandbox *seen = page_record(&g->page, &sandbox_type, g->end);
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
static enum rc change_page(struct group *g, struct arena *a, int64_t *changed, struct err *e)
{
	for (g->at = 0; g->at < g->page.count; g->at = g->end) {
		enum rc rc = g->at ? go_on(g->p, e) : RC_OK;

		if (!rc)
			rc = store_run(g->p->store, change_group, g, a, e);
		if (rc)
			return rc;
		*changed += g->changed;
	}
	return RC_OK;
}

enum rc sweep(const struct pass *p, enum sandbox_state state, sweep_fn *decide, enum sandbox_news news,
              int64_t *ret_changed, struct err *e)
{
	struct arena now = { 0 }, next = { 0 };
	struct group g = { .p = p, .state = state, .decide = decide, .news = news };
	enum rc      rc;

	*ret_changed = 0;
	do {
		struct arena spare = now;

		/* The cursor lives in the arena of the page before, so two take turns. */
		now = next;
		next = spare;
		arena_reset(&now);
		rc = go_on(p, e);
		if (!rc)
			rc = store_read(p->store, read_group, &g, &now, e);
		if (!rc)
			rc = change_page(&g, &now, ret_changed, e);
		if (rc)
			break;
		g.cursor = g.page.next;
	} while (g.cursor.n);
	arena_fini(&now);
	arena_fini(&next);
	return rc;
}
