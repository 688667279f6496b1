/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the smallest back end, and the one to copy for a new one.
 *
 * Each type is an array of records in age order; a query filters and sorts it. That is slow for a million records and
 * obviously right for a thousand, which is what tests and the simulator need. Transactions run one after the other
 * when the caller turns the store, so a run is repeatable.
 */
#include "store/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "store/store_ops.h"

struct kept {
	int64_t      seq;
	void        *record;
	struct arena texts;
};

struct shelf { /* all records of one type, oldest first */
	const struct record_type *type;
	struct kept             **items;
	size_t                    count, room;
};

struct memory_store {
	struct store  base;
	struct inbox  submitted;
	struct shelf *shelves;
	size_t        shelf_count;
	int64_t       last_seq;
};

static struct shelf *shelf_of(struct session *s, const struct record_type *type)
{
	struct memory_store *m = CONTAINER_OF(s->store, struct memory_store, base);

	for (size_t i = 0; i < m->shelf_count; i++)
		if (m->shelves[i].type == type)
			return &m->shelves[i];
	assert(!"a record type that the store was not opened with");
	return NULL;
}

static struct stored hand_out(struct session *s, const struct record_type *type, const struct kept *kept)
{
	struct stored stored = { .record = arena_alloc(s->arena, type->size), .handle = kept->seq };

	record_copy(type, stored.record, kept->record, s->arena);
	return stored;
}

static enum rc get(struct session *s, const struct record_type *type, struct str key, struct stored *ret, struct err *e)
{
	struct shelf *shelf = shelf_of(s, type);

	(void)e;
	for (size_t i = 0; i < shelf->count; i++)
		if (str_eq(record_key(type, shelf->items[i]->record), key)) {
			*ret = hand_out(s, type, shelf->items[i]);
			return RC_OK;
		}
	return RC_NOT_FOUND;
}

static int compare(const struct query *q, const struct kept *a, const struct kept *b)
{
	int field = query_sort_field(q);
	int order = 0;

	if (field != NO_FIELD)
		order = value_cmp(q->type->fields[field].kind, record_value(q->type, field, a->record),
		                  record_value(q->type, field, b->record));
	if (!order)
		order = (a->seq > b->seq) - (a->seq < b->seq);
	return q->is_descending ? -order : order;
}

static int compare_for_sort(const void *a, const void *b, void *q)
{
	return compare(q, *(struct kept *const *)a, *(struct kept *const *)b);
}

/* All matching records in the query's order. */
static struct kept **sorted_matches(struct session *s, const struct query *q, size_t *ret_count)
{
	struct shelf *shelf = shelf_of(s, q->type);
	struct kept **matches = arena_alloc(s->arena, (shelf->count + 1) * sizeof(*matches));
	struct query  order = *q;
	size_t        count = 0;

	for (size_t i = 0; i < shelf->count; i++)
		if (query_matches(q, shelf->items[i]->record))
			matches[count++] = shelf->items[i];
	qsort_r(matches, count, sizeof(*matches), compare_for_sort, &order);
	*ret_count = count;
	return matches;
}

/* A cursor is "seq:sort value", as of the sqlite back end. Returns the place behind it. */
static enum rc find_start(const struct query *q, struct kept *const *matches, size_t count, size_t *ret, struct err *e)
{
	char         record[1024] = { 0 };
	struct kept  last = { .record = record };
	struct str   rest = q->cursor;
	int          field = query_sort_field(q);
	struct value v = { 0 };

	assert(q->type->size <= sizeof(record));
	if (!str_to_int(str_cut(&rest, ':'), 0, INT64_MAX, &last.seq))
		return err_set(e, RC_INVALID, "the cursor does not belong to this list");
	if (field != NO_FIELD && q->type->fields[field].kind == FIELD_TEXT)
		v.text = rest;
	else if (field != NO_FIELD && !str_to_int(rest, INT64_MIN, INT64_MAX, &v.number))
		return err_set(e, RC_INVALID, "the cursor does not belong to this list");
	if (field != NO_FIELD)
		record_set(q->type, field, record, v);
	while (*ret < count && compare(q, matches[*ret], &last) <= 0)
		++*ret;
	return RC_OK;
}

static struct str make_cursor(struct session *s, const struct query *q, const struct kept *last)
{
	int          field = query_sort_field(q);
	struct value v;

	if (field == NO_FIELD)
		return str_format(s->arena, "%lld", (long long)last->seq);
	v = record_value(q->type, field, last->record);
	if (q->type->fields[field].kind == FIELD_TEXT)
		return str_format(s->arena, "%lld:%.*s", (long long)last->seq, STR_ARG(v.text));
	return str_format(s->arena, "%lld:%lld", (long long)last->seq, (long long)v.number);
}

static enum rc query(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	size_t        count, at = 0;
	struct kept **matches = sorted_matches(s, q, &count);
	enum rc       rc = q->cursor.n ? find_start(q, matches, count, &at, e) : RC_OK;

	if (rc)
		return rc;
	ret->items = arena_alloc(s->arena, q->limit * sizeof(*ret->items));
	for (; at < count && ret->count < q->limit; at++)
		ret->items[ret->count++] = hand_out(s, q->type, matches[at]);
	if (ret->count == q->limit)
		ret->next = make_cursor(s, q, matches[at - 1]);
	return RC_OK;
}

static enum rc find_unique(struct session *s, const struct record_type *type, int index, struct value v,
                           struct stored *ret, struct err *e)
{
	struct query  q = { .type = type, .index = index, .hash = v };
	struct shelf *shelf = shelf_of(s, type);

	(void)e;
	for (size_t i = 0; i < shelf->count; i++)
		if (query_matches(&q, shelf->items[i]->record)) {
			*ret = hand_out(s, type, shelf->items[i]);
			return RC_OK;
		}
	return RC_NOT_FOUND;
}

static enum rc count_records(struct session *s, const struct record_type *type, int index, struct value hash,
                             int64_t *ret, struct err *e)
{
	struct query  q = { .type = type, .index = index, .hash = hash };
	struct shelf *shelf = shelf_of(s, type);

	(void)e;
	*ret = 0;
	for (size_t i = 0; i < shelf->count; i++)
		*ret += query_matches(&q, shelf->items[i]->record);
	return RC_OK;
}

static void fill(const struct record_type *type, struct kept *kept, const void *record)
{
	struct arena old = kept->texts;

	arena_init(&kept->texts);
	record_copy(type, kept->record, record, &kept->texts);
	arena_fini(&old);
}

static void add(struct session *s, struct shelf *shelf, const void *record)
{
	struct memory_store *m = CONTAINER_OF(s->store, struct memory_store, base);
	struct kept         *kept = mem_new(struct kept);

	kept->seq = ++m->last_seq;
	kept->record = mem_alloc(shelf->type->size);
	fill(shelf->type, kept, record);
	if (shelf->count == shelf->room) {
		shelf->room = shelf->room ? shelf->room * 2 : 64;
		shelf->items = mem_resize(shelf->items, shelf->room * sizeof(*shelf->items));
	}
	shelf->items[shelf->count++] = kept;
}

static void free_kept(struct kept *kept)
{
	arena_fini(&kept->texts);
	free(kept->record);
	free(kept);
}

static void apply_one(struct session *s, const struct session_entry *entry)
{
	struct shelf *shelf = shelf_of(s, entry->type);
	size_t        at = 0;

	if (!entry->before) {
		add(s, shelf, entry->after);
		return;
	}
	while (shelf->items[at]->seq != entry->handle)
		at++;
	if (entry->after) {
		fill(entry->type, shelf->items[at], entry->after);
		return;
	}
	free_kept(shelf->items[at]);
	memmove(&shelf->items[at], &shelf->items[at + 1], (--shelf->count - at) * sizeof(*shelf->items));
}

static enum rc apply(struct session *s, struct err *e)
{
	(void)e;
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		apply_one(s, entry);
	return RC_OK;
}

static void submit(struct store *base, struct txn *t)
{
	(void)inbox_put(&CONTAINER_OF(base, struct memory_store, base)->submitted, &t->item);
}

bool store_memory_turn(struct store *base)
{
	struct memory_store *m = CONTAINER_OF(base, struct memory_store, base);
	struct inbox_item   *item = inbox_take_all(&m->submitted);
	bool                 was_busy = item != NULL;

	while (item) {
		struct txn    *t = CONTAINER_OF(item, struct txn, item);
		struct session s = {
			.store = base, .arena = t->arena, .now = clock_now(base->clock), .is_read_only = t->is_read_only
		};
		bool is_torn;

		item = item->next;
		(void)session_execute(&s, t, &is_torn); /* kept in the transaction */
		assert(!is_torn);
		store_note_commit(base, RC_OK, NULL, 1, true);
		store_tell(base, t);
	}
	return was_busy;
}

static void turn(struct store *base)
{
	(void)store_memory_turn(base);
}

static void close_store(struct store *base)
{
	struct memory_store *m = CONTAINER_OF(base, struct memory_store, base);

	turn(base);
	for (size_t i = 0; i < m->shelf_count; i++) {
		for (size_t j = 0; j < m->shelves[i].count; j++)
			free_kept(m->shelves[i].items[j]);
		free(m->shelves[i].items);
	}
	free(m->shelves);
	inbox_fini(&m->submitted);
	store_fini(base);
	free(m);
}

static const struct store_ops ops = {
	.name = "memory",
	.submit = submit,
	.turn = turn,
	.close = close_store,
	.get = get,
	.query = query,
	.find_unique = find_unique,
	.count = count_records,
	.claim = session_claim_first,
	.apply = apply,
};

struct store *store_memory_open(const struct record_type *const *types, size_t type_count, const struct clock *clock)
{
	struct memory_store *m = mem_new(struct memory_store);

	store_init(&m->base, &ops, clock);
	inbox_init(&m->submitted);
	m->shelves = mem_new_array(struct shelf, type_count);
	m->shelf_count = type_count;
	for (size_t i = 0; i < type_count; i++)
		m->shelves[i].type = types[i];
	return &m->base;
}
