/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c - all records of a query, page by page.
 *
 * A walk holds nobody up for longer than a page, sees the whole at any size, and is no snapshot: what changes its place while the walk is
 * under way may be seen twice or not at all.
 */
#include "store/walk.h"

#include "base/arena.h"

struct walk {
	struct query q;
	walk_fn     *visit;
	void        *arg;
	struct str   next;
};

static enum rc visit_page(struct session *s, void *arg, struct err *e)
{
	struct walk *w = arg;
	struct page  page;
	enum rc      rc = session_query(s, &w->q, &page, e);

	if (rc)
		return rc;
	w->next = page.next;
	return page.count ? w->visit(s, &page, w->arg, e) : RC_OK;
}

enum rc store_walk(struct store *store, const struct query *q, bool is_read_only, walk_fn *visit, void *arg,
                   struct err *e)
{
	struct arena pages[2] = { { 0 }, { 0 } }; /* the cursor lives with the page before, so two take turns */
	struct walk  w = { .q = *q, .visit = visit, .arg = arg };
	enum rc      rc;
	int          turn = 0;

	do {
		arena_reset(&pages[turn]);
		rc = is_read_only ? store_read(store, visit_page, &w, &pages[turn], e)
		                  : store_run(store, visit_page, &w, &pages[turn], e);
		w.q.cursor = w.next;
		turn = !turn;
	} while (!rc && w.next.n);
	arena_fini(&pages[0]);
	arena_fini(&pages[1]);
	return rc;
}
