/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_copy.c - the way from one machine to many nodes, and back.
 *
 * Records are read a page at a time and written in small transactions that compare first: a record that is equal already is left
 * alone, one that is only in the target is removed. So the copy can be broken off anywhere and run again, and a second run
 * costs little. Whether it is complete is not believed but counted: both sides are summed up afterwards.
 */
#include "app/store_copy.h"

#include "base/arena.h"
#include "base/mem.h"
#include "store/session.h"
#include "store/store.h"

enum { PAGE = 25 }; /* a record can be two actions (itself and a unique value), and is read before */

struct walk {
	const struct record_type *type;
	struct store             *other; /* where each record is looked for or written */
	struct str                cursor;
	struct page               page;
	struct page               part; /* of the page: what is written at once */
	struct store_sum          sum;
	int64_t                   written, part_written;
};

static enum rc read_page(struct session *s, void *arg, struct err *e)
{
	struct walk *w = arg;
	struct query q = { .type = w->type, .index = QUERY_ALL, .limit = PAGE, .cursor = w->cursor };

	return session_query(s, &q, &w->page, e);
}

/* Calls visit for each page of the store. */
static enum rc walk(struct store *store, struct walk                                             *w,
                    enum rc (*visit)(struct walk *w, struct arena *a, struct err *e), struct err *e)
{
	struct arena now = { 0 }, next = { 0 };
	enum rc      rc;

	do {
		struct arena spare = now;

		now = next; /* the cursor lives in the arena of the page before */
		next = spare;
		arena_reset(&now);
		rc = store_read(store, read_page, w, &now, e);
		if (!rc)
			rc = visit(w, &now, e);
		w->cursor = w->page.next;
	} while (!rc && w->cursor.n);
	arena_fini(&now);
	arena_fini(&next);
	return rc;
}

/* --- sums --- */

static uint64_t hash_record(const struct record_type *type, const void *record)
{
	uint64_t hash = 0;

	for (int f = 0; f < type->field_count; f++) {
		struct value v = record_value(type, f, record);

		hash = type->fields[f].kind == FIELD_TEXT
		               ? str_hash(v.text, hash)
		               : str_hash(str_of((const char *)&v.number, sizeof(v.number)), hash);
	}
	return hash;
}

static enum rc sum_page(struct walk *w, struct arena *a, struct err *e)
{
	(void)a;
	(void)e;
	for (size_t i = 0; i < w->page.count; i++) {
		w->sum.count++;
		w->sum.checksum += hash_record(w->type, page_record(&w->page, w->type, i));
	}
	return RC_OK;
}

enum rc store_sum(struct store *s, const struct record_type *type, struct store_sum *ret, struct err *e)
{
	struct walk w = { .type = type };
	enum rc     rc = walk(s, &w, sum_page, e);

	*ret = w.sum;
	return rc;
}

/* --- copying --- */

static enum rc write_part(struct session *s, void *arg, struct err *e)
{
	struct walk *w = arg;
	void        *old = mem_alloc(w->type->size);
	enum rc      rc = RC_OK;

	w->part_written = 0;
	for (size_t i = 0; !rc && i < w->part.count; i++) {
		void *record = page_record(&w->part, w->type, i);

		rc = session_get(s, w->type, record_key(w->type, record), old, NULL);
		if (rc && rc != RC_NOT_FOUND)
			break;
		if (rc || record_changes(w->type, old, record)) {
			session_put(s, w->type, record);
			w->part_written++;
		}
		rc = RC_OK;
	}
	free(old);
	return rc ? err_set(e, rc, "%s cannot be read in the target", w->type->name) : RC_OK;
}

/* Long records can be too much for one transaction; then each half is tried alone. */
static enum rc copy_part(struct walk *w, struct page part, struct arena *a, struct err *e)
{
	struct page first = { .records = part.records, .count = part.count / 2 };
	struct page second = { .records = part.records + first.count * w->type->size,
		               .count = part.count - first.count };
	struct err  why = { 0 };
	enum rc     rc;

	w->part = part;
	rc = store_run(w->other, write_part, w, a, &why);
	if (rc == RC_TOO_LARGE && part.count > 1) {
		rc = copy_part(w, first, a, e);
		return rc ? rc : copy_part(w, second, a, e);
	}
	if (rc)
		return err_set(e, rc, "%s", why.msg);
	w->written += w->part_written;
	return RC_OK;
}

static enum rc copy_page(struct walk *w, struct arena *a, struct err *e)
{
	return copy_part(w, w->page, a, e);
}

/* Does the target's record hold a unique value that the source's does not? It would be in the way of whoever has it now. */
static bool holds_others_value(const struct record_type *type, const void *target, const void *source)
{
	for (int i = 0; i < type->index_count; i++) {
		const struct record_index *index = &type->indexes[i];

		if (index->is_unique && record_is_in_index(type, index, target) &&
		    (!record_is_in_index(type, index, source) ||
		     value_cmp(type->fields[index->hash].kind, record_value(type, index->hash, target),
		               record_value(type, index->hash, source)) != 0))
			return true;
	}
	return false;
}

/* Of a page of the target: which have to go, because they are not in the source or in the way. */
static enum rc find_missing(struct session *s, void *arg, struct err *e)
{
	struct walk *w = arg;
	void        *found = mem_alloc(w->type->size);
	size_t       kept = 0;
	enum rc      rc = RC_OK;

	for (size_t i = 0; i < w->page.count; i++) {
		void *record = page_record(&w->page, w->type, i);

		rc = session_get(s, w->type, record_key(w->type, record), found, NULL);
		if (rc && rc != RC_NOT_FOUND)
			break;
		if (rc || holds_others_value(w->type, record, found))
			memmove(page_record(&w->page, w->type, kept++), record, w->type->size);
		rc = RC_OK;
	}
	w->page.count = kept;
	free(found);
	return rc ? err_set(e, rc, "%s cannot be read in the source", w->type->name) : RC_OK;
}

static enum rc remove_page(struct session *s, void *arg, struct err *e)
{
	struct walk *w = arg;
	void        *found = mem_alloc(w->type->size);
	enum rc      rc = RC_OK;

	for (size_t i = 0; i < w->page.count; i++) {
		struct str key = record_key(w->type, page_record(&w->page, w->type, i));

		rc = session_get(s, w->type, key, found, NULL);
		if (!rc)
			session_delete(s, w->type, key);
		else if (rc != RC_NOT_FOUND)
			break;
		rc = RC_OK;
	}
	free(found);
	return rc ? err_set(e, rc, "%s cannot be read in the target", w->type->name) : RC_OK;
}

struct removal {
	struct walk   walk; /* over the target; other is the source */
	struct store *target;
};

static enum rc prune_page(struct walk *w, struct arena *a, struct err *e)
{
	struct removal *r = CONTAINER_OF(w, struct removal, walk);
	enum rc         rc = store_read(w->other, find_missing, w, a, e);

	if (rc || !w->page.count)
		return rc;
	w->written += (int64_t)w->page.count;
	return store_run(r->target, remove_page, w, a, e);
}

enum rc store_copy(struct store *from, struct store *to, const struct record_type *type, int64_t *ret_written,
                   struct err *e)
{
	struct removal r = { .walk = { .type = type, .other = from }, .target = to };
	struct walk    w = { .type = type, .other = to };
	enum rc        rc = walk(to, &r.walk, prune_page, e);

	if (!rc)
		rc = walk(from, &w, copy_page, e);
	*ret_written = w.written + r.walk.written;
	return rc;
}
