/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the smallest back end, and the one to copy for a new one.
 *
 * Each type is a shelf. On it are the records, each packed with its texts into one piece of memory, and the orders in
 * which they are looked for: by age, by key, and one for each index. An order is a sorted array of pointers, so that a
 * look is a binary search and a query a walk over neighbours. Most looks are for one key, and the simulator makes
 * millions of them: so there is a table of keys beside the orders. That is fast for the thousands of records that tests
 * and the simulator have, and right for any number.
 *
 * Always true: every record is in the orders by age and by key, in the table of keys, and in the order of an index when
 * it belongs there.                                                                  [add(), change(), drop()]
 *
 * Transactions run one after the other when the caller turns the store, so a run is repeatable.
 */
#include "store/memory/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "store/store_ops.h"

struct kept {
	int64_t      seq;
	char        *record;    /* and behind it its texts */
	size_t       size;      /* of both */
	uint64_t     hash;      /* of its key, which never changes */
	struct kept *next_like; /* with the same place in the table of keys */
};

struct order {
	int           index; /* QUERY_ALL: by age; QUERY_KEYS; or the number of an index: by hash and sort value */
	struct kept **items;
	size_t        count, room;
};

enum { BY_AGE, BY_KEY, BY_INDEX }; /* in shelf.orders; the index's number is added to the last */

struct shelf { /* all records of one type */
	const struct record_type *type;
	struct order             *orders;
	size_t                    order_count;
	struct kept             **keys;
	size_t                    key_room;                 /* a power of two, at least as many as there are records */
	size_t                    texts[RECORD_FIELDS_MAX]; /* offsets of the fields that are texts */
	size_t                    text_count;
};

enum { TYPE_PLACES = 128, KEY_ROOM = 64 };

struct memory_store {
	struct store  base;
	struct inbox  submitted;
	struct shelf *shelves;
	size_t        shelf_count;
	struct shelf *seen[TYPE_PLACES]; /* where a type was found last; another type may have the same place */
	int64_t       last_seq;
};

static size_t type_place(const struct record_type *type)
{
	return ((uintptr_t)type / sizeof(void *) * 0x9e3779b97f4a7c15ull) >> 57; /* below TYPE_PLACES */
}

static struct shelf *shelf_of(struct session *s, const struct record_type *type)
{
	struct memory_store *m = CONTAINER_OF(s->store, struct memory_store, base);
	struct shelf       **seen = &m->seen[type_place(type)];

	for (size_t i = 0; i < m->shelf_count && !(*seen && (*seen)->type == type); i++)
		if (m->shelves[i].type == type)
			*seen = &m->shelves[i];
	assert(*seen && (*seen)->type == type); /* else the store was not opened with it */
	return *seen;
}

static struct order *order_of(struct shelf *shelf, int index)
{
	switch (index) {
	case QUERY_ALL: return &shelf->orders[BY_AGE];
	case QUERY_KEYS: return &shelf->orders[BY_KEY];
	default: return &shelf->orders[BY_INDEX + index];
	}
}

/* --- one record and its texts in one piece of memory --- */

static struct str *text_at(char *record, size_t offset)
{
	return (struct str *)(void *)(record + offset);
}

static struct kept pack(const struct shelf *shelf, const void *record)
{
	size_t      head = shelf->type->size;
	struct kept kept = { .size = head };
	struct str  text;
	char       *at;

	for (size_t i = 0; i < shelf->text_count; i++) {
		memcpy(&text, (const char *)record + shelf->texts[i], sizeof(text));
		kept.size += text.n + 1;
	}
	kept.record = mem_alloc(kept.size);
	memcpy(kept.record, record, head);
	at = kept.record + head;
	for (size_t i = 0; i < shelf->text_count; i++) {
		struct str *own = text_at(kept.record, shelf->texts[i]);

		if (own->n)
			memcpy(at, own->p, own->n);
		own->p = at;
		at += own->n + 1;
	}
	return kept;
}

/* A copy of the whole piece, with texts that point into the copy. */
static struct stored hand_out(struct session *s, const struct shelf *shelf, const struct kept *kept)
{
	char *copy = arena_alloc(s->arena, kept->size);

	memcpy(copy, kept->record, kept->size);
	for (size_t i = 0; i < shelf->text_count; i++) {
		struct str *text = text_at(copy, shelf->texts[i]);

		text->p = copy + (text->p - kept->record);
	}
	return (struct stored){ .record = copy, .handle = kept->seq };
}

/* --- orders --- */

static bool belongs(const struct record_type *type, int index, const void *record)
{
	return index < 0 || record_is_in_index(type, &type->indexes[index], record);
}

static int field_of(const struct record_type *type, int index)
{
	return index >= 0 ? type->indexes[index].sort : index == QUERY_KEYS ? type->key : NO_FIELD;
}

static int compare_field(const struct record_type *type, int field, const void *a, const void *b)
{
	return value_cmp(type->fields[field].kind, record_value(type, field, a), record_value(type, field, b));
}

/* By hash value, sort value and age. */
static int compare(const struct record_type *type, int index, const struct kept *a, const struct kept *b)
{
	int field = field_of(type, index);
	int order = index < 0 ? 0 : compare_field(type, type->indexes[index].hash, a->record, b->record);

	if (!order && field != NO_FIELD)
		order = compare_field(type, field, a->record, b->record);
	return order ? order : (a->seq > b->seq) - (a->seq < b->seq);
}

/* Where the record is in the order, or would be. */
static size_t find_place(const struct record_type *type, const struct order *o, const struct kept *kept)
{
	size_t low = 0, high = o->count;

	if (high && compare(type, o->index, o->items[high - 1], kept) < 0)
		return high; /* most new ones are the last: of age, and of keys that grow with time */
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare(type, o->index, o->items[middle], kept) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void place(const struct record_type *type, struct order *o, struct kept *kept)
{
	size_t at = find_place(type, o, kept);

	if (o->count == o->room) {
		o->room = o->room ? o->room * 2 : 16;
		o->items = mem_resize(o->items, o->room * sizeof(struct kept *));
	}
	memmove(&o->items[at + 1], &o->items[at], (o->count++ - at) * sizeof(struct kept *));
	o->items[at] = kept;
}

static void displace(const struct record_type *type, struct order *o, const struct kept *kept)
{
	size_t at = find_place(type, o, kept);

	assert(at < o->count && o->items[at] == kept);
	memmove(&o->items[at], &o->items[at + 1], (--o->count - at) * sizeof(struct kept *));
}

/* --- reading --- */

/* Is the record before (-1), in or behind (1) what the query asks for? */
static int side(const struct query *q, const void *record)
{
	int          field = field_of(q->type, q->index);
	int          order = 0;
	struct value sort;

	if (q->index >= 0) {
		int hash = q->type->indexes[q->index].hash;

		order = value_cmp(q->type->fields[hash].kind, record_value(q->type, hash, record), q->hash);
	}
	if (order || field == NO_FIELD)
		return order;
	sort = record_value(q->type, field, record);
	if (q->type->fields[field].kind != FIELD_TEXT)
		return q->has_sort_max && sort.number > q->sort_max;
	if (str_cmp(sort.text, q->sort_from) < 0)
		return -1;
	if (!str_starts_with(sort.text, q->sort_prefix))
		return str_cmp(sort.text, q->sort_prefix);
	return q->sort_to.n && str_cmp(sort.text, q->sort_to) >= 0;
}

/* The first record of the order that is on this side of the query, or behind it. */
static size_t find_side(const struct order *o, const struct query *q, int wanted)
{
	size_t low = 0, high = o->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (side(q, o->items[middle]->record) < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct range {
	size_t from, to;
};

static struct range find_range(struct shelf *shelf, const struct query *q)
{
	const struct order *o = order_of(shelf, q->index);

	return (struct range){ find_side(o, q, 0), find_side(o, q, 1) };
}

static struct kept *find_by_key(struct shelf *shelf, struct str key)
{
	uint64_t     hash = str_hash(key, 0);
	struct kept *kept = shelf->keys[hash & (shelf->key_room - 1)];

	while (kept && !(kept->hash == hash && str_eq(record_key(shelf->type, kept->record), key)))
		kept = kept->next_like;
	return kept;
}

static enum rc get(struct session *s, const struct record_type *type, struct str key, struct stored *ret, struct err *e)
{
	struct shelf      *shelf = shelf_of(s, type);
	const struct kept *kept = find_by_key(shelf, key);

	(void)e;
	if (!kept)
		return RC_NOT_FOUND;
	*ret = hand_out(s, shelf, kept);
	return RC_OK;
}

/* Leaves in the range what comes after the cursor: after a record like the last one, in the order of the query. */
static enum rc go_behind(const struct query *q, const struct order *o, struct range *range, struct err *e)
{
	char         record[1024] = { 0 };
	struct kept  last = { .record = record };
	int          field = query_sort_field(q);
	struct value v;
	size_t       at;
	enum rc      rc = query_read_cursor(q, &last.seq, &v, e);

	assert(q->type->size <= sizeof(record));
	if (rc)
		return rc;
	if (q->index >= 0)
		record_set(q->type, q->type->indexes[q->index].hash, record, q->hash);
	if (field != NO_FIELD)
		record_set(q->type, field, record, v);
	at = find_place(q->type, o, &last);
	if (!q->is_descending && at < o->count && compare(q->type, q->index, o->items[at], &last) == 0)
		at++;
	if (q->is_descending && at < range->to)
		range->to = at;
	if (!q->is_descending && at > range->from)
		range->from = at;
	return RC_OK;
}

static enum rc query(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct shelf       *shelf = shelf_of(s, q->type);
	const struct order *o = order_of(shelf, q->index);
	struct range        range = find_range(shelf, q);
	enum rc             rc = q->cursor.n ? go_behind(q, o, &range, e) : RC_OK;
	size_t              looked = 0, bytes = 0;
	const struct kept  *last = NULL;

	if (rc)
		return rc;
	ret->items = arena_alloc(s->arena, q->limit * sizeof(*ret->items));
	while (range.from < range.to && !query_is_full(q, ret, looked, bytes)) {
		last = o->items[q->is_descending ? --range.to : range.from++];
		looked++;
		if (!query_wants(q, last->record))
			continue;
		bytes += last->size;
		ret->items[ret->count++] = hand_out(s, shelf, last);
	}
	if (last && !(q->is_last && ret->count) && query_is_full(q, ret, looked, bytes))
		ret->next = query_make_cursor(s->arena, q, last->seq, last->record);
	return RC_OK;
}

static enum rc find_unique(struct session *s, const struct record_type *type, int index, struct value v,
                           struct stored *ret, struct err *e)
{
	struct shelf *shelf = shelf_of(s, type);
	struct range  range = find_range(shelf, &(struct query){ .type = type, .index = index, .hash = v });

	(void)e;
	if (range.from == range.to)
		return RC_NOT_FOUND;
	*ret = hand_out(s, shelf, order_of(shelf, index)->items[range.from]);
	return RC_OK;
}

static enum rc count_records(struct session *s, const struct record_type *type, int index, struct value hash,
                             int64_t *ret, struct err *e)
{
	struct range range = find_range(shelf_of(s, type),
	                                &(struct query){ .type = type, .index = index, .hash = hash });

	(void)e;
	*ret = (int64_t)(range.to - range.from);
	return RC_OK;
}

/* --- writing --- */

static void put_key(struct shelf *shelf, struct kept *kept)
{
	struct kept **first = &shelf->keys[kept->hash & (shelf->key_room - 1)];

	kept->next_like = *first;
	*first = kept;
}

static void add_key(struct shelf *shelf, struct kept *kept)
{
	const struct order *all = &shelf->orders[BY_AGE];

	if (all->count >= shelf->key_room) {
		free(shelf->keys);
		shelf->key_room *= 2;
		shelf->keys = mem_new_array(struct kept *, shelf->key_room);
		for (size_t i = 0; i < all->count; i++)
			put_key(shelf, all->items[i]);
	}
	kept->hash = str_hash(record_key(shelf->type, kept->record), 0);
	put_key(shelf, kept);
}

static void drop_key(struct shelf *shelf, const struct kept *kept)
{
	struct kept **link = &shelf->keys[kept->hash & (shelf->key_room - 1)];

	while (*link != kept)
		link = &(*link)->next_like;
	*link = kept->next_like;
}

static void add(struct session *s, struct shelf *shelf, const void *record)
{
	struct memory_store *m = CONTAINER_OF(s->store, struct memory_store, base);
	struct kept         *kept = mem_new(struct kept);

	*kept = pack(shelf, record);
	kept->seq = ++m->last_seq;
	add_key(shelf, kept);
	for (size_t i = 0; i < shelf->order_count; i++)
		if (belongs(shelf->type, shelf->orders[i].index, record))
			place(shelf->type, &shelf->orders[i], kept);
}

/* Only the orders in which it gets another place are touched. */
static void change(struct shelf *shelf, struct kept *kept, const void *record)
{
	struct kept now = pack(shelf, record);
	bool        is_moved[RECORD_FIELDS_MAX];

	assert(shelf->order_count <= ARRAY_LEN(is_moved));
	now.seq = kept->seq;
	now.hash = kept->hash;
	now.next_like = kept->next_like;
	for (size_t i = 0; i < shelf->order_count; i++) {
		struct order *o = &shelf->orders[i];
		bool          was_in = belongs(shelf->type, o->index, kept->record);

		is_moved[i] = !was_in || !belongs(shelf->type, o->index, record) ||
		              compare(shelf->type, o->index, kept, &now) != 0;
		if (was_in && is_moved[i])
			displace(shelf->type, o, kept);
	}
	free(kept->record);
	*kept = now;
	for (size_t i = 0; i < shelf->order_count; i++)
		if (is_moved[i] && belongs(shelf->type, shelf->orders[i].index, record))
			place(shelf->type, &shelf->orders[i], kept);
}

static void drop(struct shelf *shelf, struct kept *kept)
{
	for (size_t i = 0; i < shelf->order_count; i++)
		if (belongs(shelf->type, shelf->orders[i].index, kept->record))
			displace(shelf->type, &shelf->orders[i], kept);
	drop_key(shelf, kept);
	free(kept->record);
	free(kept);
}

/* The record that the session has read. */
static struct kept *find_read(struct shelf *shelf, const struct session_entry *entry)
{
	struct kept *kept = find_by_key(shelf, entry->key);

	assert(kept && kept->seq == entry->handle);
	return kept;
}

/* Everything is checked before anything is written, so a refused transaction is never torn. */
static enum rc apply(struct session *s, struct err *e)
{
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		if (!entry->before && find_by_key(shelf_of(s, entry->type), entry->key))
			return err_set(e, RC_CONFLICT, "there is a %s '%.*s' already", entry->type->name,
			               STR_ARG(entry->key));
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));) {
		struct shelf *shelf = shelf_of(s, entry->type);

		if (!entry->before)
			add(s, shelf, entry->after);
		else if (entry->after)
			change(shelf, find_read(shelf, entry), entry->after);
		else
			drop(shelf, find_read(shelf, entry));
	}
	return RC_OK;
}

static void submit(struct store *base, struct txn *const *txns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)inbox_put(&CONTAINER_OF(base, struct memory_store, base)->submitted, &txns[i]->item);
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
		(void)session_execute(&s, t, &is_torn);   /* kept in the transaction */
		assert(!is_torn || t->rc == RC_CONFLICT); /* see apply() */
		store_note_commit(base, RC_OK, NULL, 1, true);
		store_tell(base, &t, 1);
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
	for (struct shelf *shelf = m->shelves; shelf < m->shelves + m->shelf_count; shelf++) {
		for (size_t i = 0; i < shelf->orders[BY_AGE].count; i++) {
			free(shelf->orders[BY_AGE].items[i]->record);
			free(shelf->orders[BY_AGE].items[i]);
		}
		for (size_t i = 0; i < shelf->order_count; i++)
			free(shelf->orders[i].items);
		free(shelf->orders);
		free(shelf->keys);
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

static struct shelf open_shelf(const struct record_type *type)
{
	struct shelf shelf = { .type = type,
		               .order_count = BY_INDEX + (size_t)type->index_count,
		               .key_room = KEY_ROOM };

	shelf.keys = mem_new_array(struct kept *, shelf.key_room);
	shelf.orders = mem_new_array(struct order, shelf.order_count);
	shelf.orders[BY_AGE].index = QUERY_ALL;
	shelf.orders[BY_KEY].index = QUERY_KEYS;
	for (int i = 0; i < type->index_count; i++)
		shelf.orders[BY_INDEX + i].index = i;
	for (int f = 0; f < type->field_count; f++)
		if (type->fields[f].kind == FIELD_TEXT)
			shelf.texts[shelf.text_count++] = type->fields[f].offset;
	return shelf;
}

struct store *store_memory_open(const struct record_type *const *types, size_t type_count, const struct clock *clock)
{
	struct memory_store *m = mem_new(struct memory_store);

	store_init(&m->base, &ops, clock);
	inbox_init(&m->submitted);
	m->shelves = mem_new_array(struct shelf, type_count);
	m->shelf_count = type_count;
	for (size_t i = 0; i < type_count; i++)
		m->shelves[i] = open_shelf(types[i]);
	return &m->base;
}
