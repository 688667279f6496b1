/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_copy.c - the way from one machine to many nodes, and back.
 *
 * Records are read a page at a time and written in small transactions that compare first: an equal record is left
 * alone, one that is only in the target is removed. So the copy can be interrupted anywhere and run again, and a second
 * run costs little. Completeness is not assumed but counted: both sides are summed up afterwards.
 */
#include "app/store/store_copy.h"

#include "base/arena.h"
#include "store/walk.h"

enum { PAGE = 25 }; /* a record can be two actions (itself and a unique value), and is read before */

struct copying {
	const struct record_type *type;
	struct store             *from, *to;
	struct page               part; /* of a page: what is written or removed at once */
	struct store_sum          sum;
	int64_t                   written, part_written;
};

static enum rc walk(struct store *store, struct copying *c, page_fn *visit, struct err *e)
{
	return store_read_pages(store, &(struct query){ .type = c->type, .index = QUERY_ALL, .limit = PAGE }, visit, c,
	                        e);
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

static enum rc sum_page(const struct page *page, struct arena *a UNUSED, void *arg, struct err *e UNUSED)
{
	struct copying *c = arg;

	for (size_t i = 0; i < page->count; i++) {
		c->sum.count++;
		c->sum.checksum += hash_record(c->type, page_record(page, c->type, i));
	}
	return RC_OK;
}

enum rc store_sum(struct store *s, const struct record_type *type, struct store_sum *ret, struct err *e)
{
	struct copying c = { .type = type };
	enum rc        rc = walk(s, &c, sum_page, e);

	*ret = c.sum;
	return rc;
}

/* --- copying --- */

static enum rc write_part(struct session *s, void *arg, struct err *e)
{
	struct copying *c = arg;
	void           *old = arena_alloc(session_arena(s), c->type->size);

	c->part_written = 0;
	for (size_t i = 0; i < c->part.count; i++) {
		void   *record = page_record(&c->part, c->type, i);
		bool    is_there;
		enum rc rc = session_find(s, c->type, record_key(c->type, record), old, &is_there, e);

		if (rc)
			return err_wrap(e, rc, "the target");
		if (is_there && !record_changes(c->type, old, record))
			continue;
		session_put(s, c->type, record);
		c->part_written++;
	}
	return RC_OK;
}

/* Long records can be too much for one transaction; then each half is tried alone. */
static enum rc copy_part(struct copying *c, struct page part, struct arena *a, struct err *e)
{
	struct page first = { .records = part.records, .count = part.count / 2 };
	struct page second = { .records = page_record(&part, c->type, first.count), .count = part.count - first.count };
	struct err  why = { 0 };
	enum rc     rc;

	c->part = part;
	rc = store_run(c->to, write_part, c, a, &why);
	if (rc == RC_TOO_LARGE && part.count > 1) {
		rc = copy_part(c, first, a, e);
		return rc ? rc : copy_part(c, second, a, e);
	}
	if (rc)
		return err_set(e, rc, "%s", why.msg);
	c->written += c->part_written;
	return RC_OK;
}

static enum rc copy_page(const struct page *page, struct arena *a, void *arg, struct err *e)
{
	return copy_part(arg, *page, a, e);
}

/* Does the target's record hold a unique value that the source's does not? It would block whoever has it now. */
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

/* Of a part of the target: which have to go, because they are not in the source or in the way. */
static enum rc find_missing(struct session *s, void *arg, struct err *e)
{
	struct copying *c = arg;
	void           *found = arena_alloc(session_arena(s), c->type->size);
	size_t          kept = 0;

	for (size_t i = 0; i < c->part.count; i++) {
		void   *record = page_record(&c->part, c->type, i);
		bool    is_there;
		enum rc rc = session_find(s, c->type, record_key(c->type, record), found, &is_there, e);

		if (rc)
			return err_wrap(e, rc, "the source");
		if (!is_there || holds_others_value(c->type, record, found))
			memmove(page_record(&c->part, c->type, kept++), record, c->type->size);
	}
	c->part.count = kept;
	return RC_OK;
}

static enum rc remove_part(struct session *s, void *arg, struct err *e)
{
	struct copying *c = arg;
	enum rc         rc = RC_OK;

	for (size_t i = 0; !rc && i < c->part.count; i++)
		rc = session_drop(s, c->type, record_key(c->type, page_record(&c->part, c->type, i)), NULL, e);
	return rc ? err_wrap(e, rc, "the target") : RC_OK;
}

static enum rc prune_page(const struct page *page, struct arena *a, void *arg, struct err *e)
{
	struct copying *c = arg;
	enum rc         rc;

	c->part = *page;
	rc = store_read(c->from, find_missing, c, a, e);
	if (rc || !c->part.count)
		return rc;
	c->written += (int64_t)c->part.count;
	return store_run(c->to, remove_part, c, a, e);
}

enum rc store_copy(struct store *from, struct store *to, const struct record_type *type, int64_t *ret_written,
                   struct err *e)
{
	struct copying c = { .type = type, .from = from, .to = to };
	enum rc        rc = walk(to, &c, prune_page, e);

	if (!rc)
		rc = walk(from, &c, copy_page, e);
	*ret_written = c.written;
	return rc;
}
