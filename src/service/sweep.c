/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c - one walk over the records of a state.
 *
 * A page of ids is read on a snapshot; then one transaction looks at each of these records again and decides. So the
 * walk never holds up claims for longer than one small transaction, sees the whole pool at any size, and never acts on
 * what it read before: a record that changed in between is judged as it is.
 */
#include "service/sweep.h"

#include "base/arena.h"
#include "store/store.h"

enum { GROUP = 30 }; /* a removal is three actions (record, tombstone, unique value), a transaction takes 100 */

struct group {
	const struct pass *p;
	enum sandbox_state state;
	sweep_fn          *decide;
	struct str         cursor;
	struct page        page;
	int64_t            changed;
};

static enum rc read_group(struct session *s, void *arg, struct err *e)
{
	struct group *g = arg;
	struct query  q = { .type = &sandbox_type,
		            .index = SANDBOX_BY_STATUS,
		            .hash = value_int(g->state),
		            .limit = GROUP,
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

static enum rc change_one(struct session *s, struct group *g, struct str id, struct err *e)
{
	struct sandbox sandbox;
	enum rc        rc = session_get(s, &sandbox_type, id, &sandbox, NULL);

	if (rc == RC_NOT_FOUND || (!rc && sandbox.status != g->state))
		return RC_OK; /* somebody was faster */
	if (rc)
		return err_set(e, rc, "sandbox %.*s cannot be read", STR_ARG(id));
	switch (g->decide(&sandbox, g->p, session_now(s))) {
	case SWEEP_LEAVE: return RC_OK;
	case SWEEP_PUT: session_put(s, &sandbox_type, &sandbox); break;
	case SWEEP_REMOVE:
		if (sandbox.allocated_at == 0 && sandbox.deletion_requested_at == 0)
			session_delete(s, &sandbox_type, id);
		else if ((rc = remove_with_tombstone(s, &sandbox, e)))
			return rc;
		break;
	}
	g->changed++;
	return RC_OK;
}

static enum rc change_group(struct session *s, void *arg, struct err *e)
{
	struct group *g = arg;

	g->changed = 0;
	for (size_t i = 0; i < g->page.count; i++) {
		struct sandbox *seen = page_record(&g->page, &sandbox_type, i);
		enum rc         rc = change_one(s, g, seen->sandbox_id, e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

enum rc sweep(const struct pass *p, enum sandbox_state state, sweep_fn *decide, int64_t *ret_changed, struct err *e)
{
	struct arena now = { 0 }, next = { 0 };
	struct group g = { .p = p, .state = state, .decide = decide };
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
		if (!rc && g.page.count)
			rc = store_run(p->store, change_group, &g, &now, e);
		if (rc)
			break;
		*ret_changed += g.changed;
		g.changed = 0;
		g.cursor = g.page.next;
	} while (g.cursor.n);
	arena_fini(&now);
	arena_fini(&next);
	return rc;
}
