/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c - reads outside of a transaction of the caller's: all records of a query, page by page; one record.
 *
 * A walk holds nobody up for longer than a page, sees the whole at any size, and is no snapshot: what changes its place
 * while the walk is under way may be seen twice or not at all.
 */
#include "store/walk.h"

#include "base/arena.h"

struct walk {
	struct query q;
	walk_fn     *visit;
	page_fn     *visit_after;
	void        *arg;
	struct page  page;
};

static enum rc visit_page(struct session *s, void *arg, struct err *e)
{
	struct walk *w = arg;
	enum rc      rc = session_query(s, &w->q, &w->page, e);

	return !rc && w->visit && w->page.count ? w->visit(s, &w->page, w->arg, e) : rc;
}

static enum rc walk(struct store *store, struct walk *w, bool is_read_only, struct err *e)
{
	struct arena pages[2] = { { 0 }, { 0 } }; /* the cursor lives with the page before, so two take turns */
	enum rc      rc;
	int          turn = 0;

	do {
		struct arena *a = &pages[turn];

		arena_reset(a);
		rc = is_read_only ? store_read(store, visit_page, w, a, e) : store_run(store, visit_page, w, a, e);
		if (!rc && w->visit_after)
			rc = w->visit_after(&w->page, a, w->arg, e);
		w->q.cursor = w->page.next;
		turn = !turn;
	} while (!rc && w->q.cursor.n);
	arena_fini(&pages[0]);
	arena_fini(&pages[1]);
	return rc;
}

enum rc store_walk(struct store *store, const struct query *q, bool is_read_only, walk_fn *visit, void *arg,
                   struct err *e)
{
	return walk(store, &(struct walk){ .q = *q, .visit = visit, .arg = arg }, is_read_only, e);
}

enum rc store_read_pages(struct store *store, const struct query *q, page_fn *visit, void *arg, struct err *e)
{
	return walk(store, &(struct walk){ .q = *q, .visit_after = visit, .arg = arg }, true, e);
}

struct finding {
	const struct record_type *type;
	struct str                key;
	void                     *ret;
	bool                      is_there;
};

static enum rc find(struct session *s, void *arg, struct err *e)
{
	struct finding *f = arg;

	return session_find(s, f->type, f->key, f->ret, &f->is_there, e);
}

enum rc store_find(struct store *store, const struct record_type *type, struct str key, struct arena *a, void *ret,
                   bool *ret_is_there, struct err *e)
{
	struct finding f = { .type = type, .key = key, .ret = ret };
	enum rc        rc = store_read(store, find, &f, a, e);

	*ret_is_there = !rc && f.is_there;
	return rc;
}
