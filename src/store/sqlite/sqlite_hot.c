/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_hot.c - an index that every claim changes, kept in memory beside the file.
 *
 * In the file each claim would take an entry out of an index and put one into it, which costs more than the row itself.
 * Here it is a list in order for each value of an enum: pieces of up to HOT_CHUNK entries, found by bisection. Like the
 * unique values (sqlite_unique.c) it is made from the table at the start, follows every write, is made again when a
 * commit fails, and is never stored.
 *
 * The writer's transactions see what it holds. The reader has a snapshot that is older, and the lists are ahead of it.
 * So what leaves a list is kept aside (`gone`) until no snapshot can have it, and the reader gets both: a superset, in
 * order, of which it believes only what the row itself says in its snapshot. That is why nothing here waits for a
 * commit, and a commit waits for no reader.
 *
 * Always true: the entries of a list are in the order of (sort, seq), also across its chunks.
 */
#include "store/sqlite/sqlite_hot.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"

enum { FIRST_ROOM = 16 };

void hot_init(struct hot_index *h, const struct record_type *type, int index)
{
	const struct record_index *i = &type->indexes[index];

	assert(type->fields[i->hash].kind == FIELD_ENUM && i->sort != NO_FIELD);
	*h = (struct hot_index){ .type = type,
		                 .index = index,
		                 .is_text = type->fields[i->sort].kind == FIELD_TEXT,
		                 .list_count = type->fields[i->hash].max };
	h->lists = mem_new_array(struct hot_list, h->list_count);
	pthread_mutex_init(&h->lock, NULL);
}

static void free_text(const struct hot_index *h, struct hot_entry entry)
{
	if (h->is_text)
		free(entry.sort.text);
}

static void clear_list(const struct hot_index *h, struct hot_list *l)
{
	for (size_t c = 0; c < l->chunk_count; c++) {
		for (size_t i = 0; h->is_text && i < l->chunks[c]->count; i++)
			free_text(h, l->chunks[c]->entries[l->chunks[c]->from + i]);
		free(l->chunks[c]);
	}
	free(l->chunks);
	*l = (struct hot_list){ 0 };
}

void hot_fini(struct hot_index *h)
{
	for (size_t i = 0; i < h->gone_count; i++)
		free_text(h, h->gone[i].entry);
	for (size_t i = 0; i < h->list_count; i++)
		clear_list(h, &h->lists[i]);
	free(h->lists);
	free(h->gone);
	pthread_mutex_destroy(&h->lock);
}

/* What left with a commit that every snapshot has is over. */
static void forget_old(struct hot_index *h)
{
	uint64_t oldest = h->is_read ? h->read_since : h->commits;
	size_t   kept = 0;

	for (size_t i = 0; i < h->gone_count; i++)
		if (h->gone[i].commit <= oldest)
			free_text(h, h->gone[i].entry);
		else
			h->gone[kept++] = h->gone[i];
	h->gone_count = kept;
}

/* What is gone stays so: the reader may have an older snapshot than the file that was read. */
void hot_replace(struct hot_index *h, struct hot_index *fresh)
{
	struct hot_list *old = h->lists;

	pthread_mutex_lock(&h->lock);
	h->lists = fresh->lists;
	for (size_t i = 0; i < h->list_count; i++)
		h->lists[i].committed = h->lists[i].rows;
	h->commits++; /* what left with a commit that failed is back */
	forget_old(h);
	pthread_mutex_unlock(&h->lock);
	fresh->lists = old;
}

/* --- order --- */

static struct value sort_of(const struct hot_index *h, const struct hot_entry *entry)
{
	return h->is_text ? value_text(str_of(entry->sort.text->p, entry->sort.text->n))
	                  : value_int(entry->sort.number);
}

static int compare(const struct hot_index *h, const struct hot_entry *entry, const struct hot_place *place)
{
	int order;

	if (h->is_text)
		order = str_cmp(str_of(entry->sort.text->p, entry->sort.text->n), place->sort.text);
	else
		order = (entry->sort.number > place->sort.number) - (entry->sort.number < place->sort.number);
	return order ? order : (entry->seq > place->seq) - (entry->seq < place->seq);
}

/* Of a list: the chunk, and the entry in it. */
struct position {
	size_t chunk, entry;
};

/* The first entry that is not before the place, or with `is_behind` the first that is behind it. One past the last
 * entry of the last chunk when there is none. */
static struct position find(const struct hot_index *h, const struct hot_list *l, const struct hot_place *place,
                            bool is_behind)
{
	struct position at = { 0, 0 };
	size_t          end = l->chunk_count;

	while (at.chunk < end) { /* the first chunk whose last entry is not before it */
		size_t                  middle = (at.chunk + end) / 2;
		const struct hot_chunk *c = l->chunks[middle];

		if (compare(h, &c->entries[c->from + c->count - 1], place) < is_behind)
			at.chunk = middle + 1;
		else
			end = middle;
	}
	if (at.chunk == l->chunk_count)
		return l->chunk_count ? (struct position){ at.chunk - 1, l->chunks[at.chunk - 1]->count } : at;
	end = l->chunks[at.chunk]->count;
	while (at.entry < end) {
		size_t middle = (at.entry + end) / 2;

		if (compare(h, &l->chunks[at.chunk]->entries[l->chunks[at.chunk]->from + middle], place) < is_behind)
			at.entry = middle + 1;
		else
			end = middle;
	}
	return at;
}

/* --- changes --- */

static struct hot_chunk *add_chunk(struct hot_list *l, size_t at)
{
	if (l->chunk_count == l->room) {
		l->room = l->room ? 2 * l->room : FIRST_ROOM;
		l->chunks = mem_resize(l->chunks, l->room * sizeof(*l->chunks));
	}
	memmove(l->chunks + at + 1, l->chunks + at, (l->chunk_count - at) * sizeof(*l->chunks));
	l->chunk_count++;
	return l->chunks[at] = mem_new(struct hot_chunk);
}

/* A full chunk becomes two; at the end of the list, where most come, it stays full and an empty one follows. */
static struct position split(struct hot_list *l, struct position at)
{
	struct hot_chunk *next = add_chunk(l, at.chunk + 1), *c = l->chunks[at.chunk];
	bool              is_end = at.chunk + 2 == l->chunk_count && at.entry == HOT_CHUNK;
	size_t            stay = is_end ? HOT_CHUNK : HOT_CHUNK / 2;

	next->count = HOT_CHUNK - stay;
	memcpy(next->entries, c->entries + stay, next->count * sizeof(*c->entries));
	c->count = stay;
	return at.entry > stay || is_end ? (struct position){ at.chunk + 1, at.entry - stay } : at;
}

static void insert(struct hot_list *l, struct position at, struct hot_entry entry)
{
	struct hot_chunk *c;

	if (!l->chunk_count)
		(void)add_chunk(l, 0);
	c = l->chunks[at.chunk];
	if (c->from + c->count == HOT_CHUNK && c->from) {
		memmove(c->entries, c->entries + c->from, c->count * sizeof(*c->entries));
		c->from = 0;
	}
	if (c->count == HOT_CHUNK)
		at = split(l, at);
	c = l->chunks[at.chunk];
	memmove(c->entries + c->from + at.entry + 1, c->entries + c->from + at.entry,
	        (c->count - at.entry) * sizeof(*c->entries));
	c->entries[c->from + at.entry] = entry;
	c->count++;
	l->rows++;
}

static struct hot_entry take_out(struct hot_list *l, struct position at)
{
	struct hot_chunk *c = l->chunks[at.chunk];
	struct hot_entry  entry = c->entries[c->from + at.entry];

	c->count--;
	l->rows--;
	if (!at.entry)
		c->from++; /* the usual one: who is first is claimed */
	else
		memmove(c->entries + c->from + at.entry, c->entries + c->from + at.entry + 1,
		        (c->count - at.entry) * sizeof(*c->entries));
	if (!c->count) {
		free(c);
		l->chunk_count--;
		memmove(l->chunks + at.chunk, l->chunks + at.chunk + 1,
		        (l->chunk_count - at.chunk) * sizeof(*l->chunks));
	}
	return entry;
}

static struct hot_entry make_entry(const struct hot_index *h, const struct hot_place *place)
{
	struct hot_entry entry = { .seq = place->seq, .sort.number = place->sort.number };

	if (h->is_text) {
		entry.sort.text = mem_alloc(sizeof(*entry.sort.text) + place->sort.text.n);
		entry.sort.text->n = place->sort.text.n;
		memcpy(entry.sort.text->p, place->sort.text.p, place->sort.text.n);
	}
	return entry;
}

static void keep_aside(struct hot_index *h, size_t list, struct hot_entry entry)
{
	if (h->gone_count == h->gone_room) {
		h->gone_room = h->gone_room ? 2 * h->gone_room : FIRST_ROOM;
		h->gone = mem_resize(h->gone, h->gone_room * sizeof(*h->gone));
	}
	h->gone[h->gone_count++] = (struct hot_gone){ entry, list, h->commits + 1 };
}

/* The usual ones first: who is claimed was the first of its list, and becomes the last of another. */
static struct position find_place(const struct hot_index *h, const struct hot_list *l, const struct hot_place *place)
{
	const struct hot_chunk *first, *last;

	if (!l->chunk_count)
		return (struct position){ 0, 0 };
	first = l->chunks[0];
	last = l->chunks[l->chunk_count - 1];
	if (compare(h, &first->entries[first->from], place) >= 0)
		return (struct position){ 0, 0 };
	if (compare(h, &last->entries[last->from + last->count - 1], place) < 0)
		return (struct position){ l->chunk_count - 1, last->count };
	return find(h, l, place, false);
}

static bool is_at(const struct hot_index *h, const struct hot_list *l, struct position at,
                  const struct hot_place *place)
{
	const struct hot_chunk *c = at.chunk < l->chunk_count ? l->chunks[at.chunk] : NULL;

	return c && at.entry < c->count && compare(h, &c->entries[c->from + at.entry], place) == 0;
}

/* The usual one is the first: it is claimed. False: it was not there. */
static bool drop(struct hot_index *h, size_t list, const struct hot_place *place)
{
	struct hot_list *l = &h->lists[list];
	struct position  at = { 0, 0 };

	if (!is_at(h, l, at, place)) {
		at = find(h, l, place, false);
		if (!is_at(h, l, at, place))
			return false;
	}
	keep_aside(h, list, take_out(l, at));
	return true;
}

/* Where the row belongs; false: not into this index. */
static bool place_of(const struct hot_index *h, int64_t seq, const void *record, size_t *ret_list,
                     struct hot_place *ret)
{
	const struct record_index *index = &h->type->indexes[h->index];

	if (!record || !record_is_in_index(h->type, index, record))
		return false;
	*ret_list = (size_t)record_value(h->type, index->hash, record).number;
	*ret = (struct hot_place){ seq, record_value(h->type, index->sort, record) };
	return *ret_list < h->list_count; /* a damaged row is in no list */
}

bool hot_note(struct hot_index *h, int64_t seq, const void *before, const void *after)
{
	struct hot_place old, new;
	size_t           old_list = 0, new_list = 0;
	bool             was_in = place_of(h, seq, before, &old_list, &old);
	bool             is_in = place_of(h, seq, after, &new_list, &new);
	bool             is_known = true;

	if (was_in && is_in && old_list == new_list &&
	    value_cmp(h->is_text ? FIELD_TEXT : FIELD_INT, old.sort, new.sort) == 0)
		return true;
	pthread_mutex_lock(&h->lock);
	if (was_in)
		is_known = drop(h, old_list, &old);
	if (is_known && is_in)
		insert(&h->lists[new_list], find_place(h, &h->lists[new_list], &new), make_entry(h, &new));
	pthread_mutex_unlock(&h->lock);
	return is_known;
}

/* --- the reader beside the writer --- */

void hot_commit(struct hot_index *h)
{
	pthread_mutex_lock(&h->lock);
	h->commits++;
	for (size_t i = 0; i < h->list_count; i++)
		h->lists[i].committed = h->lists[i].rows;
	forget_old(h);
	pthread_mutex_unlock(&h->lock);
}

void hot_begin_read(struct hot_index *h)
{
	pthread_mutex_lock(&h->lock);
	h->is_read = true;
	h->read_since = h->commits;
	pthread_mutex_unlock(&h->lock);
}

void hot_end_read(struct hot_index *h)
{
	pthread_mutex_lock(&h->lock);
	h->is_read = false;
	pthread_mutex_unlock(&h->lock);
}

/* --- finding --- */

static bool is_wanted(const struct hot_index *h, const struct query *q, const struct hot_entry *entry)
{
	struct value sort = sort_of(h, entry);

	if (!h->is_text)
		return !q->has_sort_max || sort.number <= q->sort_max;
	return str_starts_with(sort.text, q->sort_prefix) &&
	       (!q->sort_from.n || str_cmp(sort.text, q->sort_from) >= 0) &&
	       (!q->sort_to.n || str_cmp(sort.text, q->sort_to) < 0);
}

/* Nothing of the query is before this place. */
static struct hot_place first_place(const struct hot_index *h, const struct query *q)
{
	struct hot_place first = { .seq = INT64_MIN, .sort = value_int(INT64_MIN) };

	if (h->is_text)
		first.sort = value_text(str_cmp(q->sort_from, q->sort_prefix) > 0 ? q->sort_from : q->sort_prefix);
	return first;
}

static struct hot_place copy_place(const struct hot_index *h, const struct hot_entry *entry, struct arena *a)
{
	struct hot_place place = { entry->seq, sort_of(h, entry) };

	if (h->is_text)
		place.sort.text = str_dup(a, place.sort.text);
	return place;
}

/* Ends at the first entry behind the query's range: what is wanted is in one piece. */
static size_t find_up(const struct hot_index *h, const struct hot_list *l, const struct query *q,
                      const struct hot_place *behind, struct arena *a, struct hot_place *ret, size_t max)
{
	struct hot_place first = first_place(h, q);
	bool is_inside = behind && value_cmp(h->is_text ? FIELD_TEXT : FIELD_INT, behind->sort, first.sort) >= 0;
	struct position at = is_inside ? find(h, l, behind, true) : find_place(h, l, &first);
	size_t          count = 0;

	for (; at.chunk < l->chunk_count; at = (struct position){ at.chunk + 1, 0 }) {
		const struct hot_chunk *c = l->chunks[at.chunk];

		for (; at.entry < c->count; at.entry++) {
			const struct hot_entry *entry = &c->entries[c->from + at.entry];

			if (count == max || !is_wanted(h, q, entry))
				return count;
			ret[count++] = copy_place(h, entry, a);
		}
	}
	return count;
}

/* The same backwards. Only lists that nobody claims from are read so, so a look at each entry will do. */
static size_t find_down(const struct hot_index *h, const struct hot_list *l, const struct query *q,
                        const struct hot_place *behind, struct arena *a, struct hot_place *ret, size_t max)
{
	size_t count = 0;

	for (size_t chunk = l->chunk_count; chunk-- && count < max;) {
		const struct hot_chunk *c = l->chunks[chunk];

		if (behind && compare(h, &c->entries[c->from], behind) >= 0)
			continue;
		for (size_t i = c->count; i-- && count < max;) {
			const struct hot_entry *entry = &c->entries[c->from + i];

			if (is_wanted(h, q, entry) && (!behind || compare(h, entry, behind) < 0))
				ret[count++] = copy_place(h, entry, a);
		}
	}
	return count;
}

/* Puts what is gone where it belongs between what was found, and once. What falls off the end is found later. */
static size_t add_gone(const struct hot_index *h, const struct query *q, const struct hot_place *behind,
                       struct arena *a, struct hot_place *ret, size_t count, size_t max)
{
	int direction = q->is_descending ? -1 : 1;

	for (size_t i = 0; i < h->gone_count; i++) {
		const struct hot_entry *entry = &h->gone[i].entry;
		size_t                  at = count;

		if ((int64_t)h->gone[i].list != q->hash.number || !is_wanted(h, q, entry) ||
		    (behind && compare(h, entry, behind) * direction <= 0))
			continue;
		while (at && compare(h, entry, &ret[at - 1]) * direction < 0)
			at--;
		if (at == max || (at && compare(h, entry, &ret[at - 1]) == 0))
			continue;
		count += count < max;
		memmove(ret + at + 1, ret + at, (count - 1 - at) * sizeof(*ret));
		ret[at] = copy_place(h, entry, a);
	}
	return count;
}

size_t hot_find(struct hot_index *h, const struct query *q, const struct hot_place *behind, bool is_reader,
                struct arena *a, struct hot_place *ret, size_t max)
{
	size_t count = 0;

	if (q->hash.number < 0 || (uint64_t)q->hash.number >= h->list_count)
		return 0;
	pthread_mutex_lock(&h->lock);
	count = (q->is_descending ? find_down : find_up)(h, &h->lists[q->hash.number], q, behind, a, ret, max);
	if (is_reader)
		count = add_gone(h, q, behind, a, ret, count, max);
	pthread_mutex_unlock(&h->lock);
	return count;
}

int64_t hot_count(struct hot_index *h, int64_t hash, bool is_durable_only)
{
	int64_t count = 0;

	if (hash < 0 || (uint64_t)hash >= h->list_count)
		return 0;
	pthread_mutex_lock(&h->lock);
	count = is_durable_only ? h->lists[hash].committed : h->lists[hash].rows;
	pthread_mutex_unlock(&h->lock);
	return count;
}
