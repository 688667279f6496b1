/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_unique.c - unique values, kept in memory beside the file.
 *
 * Values that have to be unique (the track that holds a sandbox) arrive in random order, so as an index in the file
 * each new one would dirty a page of its own, and writing those pages would cost more than the rest of a claim. There
 * is one writer, so a hash table from value to row number does the same: it is made from the table at the start,
 * follows every write, and is made again when a commit fails. It is never stored and so can never disagree with the
 * file after a crash.
 *
 * Open addressing with linear probing; a removal moves later entries back, so there are no tombstones. Two values may
 * have one hash: whoever asks compares the row. 16 bytes for each place, at most two thirds of them taken.
 */
#include "store/sqlite/sqlite_unique.h"

#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/mem.h"

enum { FIRST_CAPACITY = 1024 };

void unique_init(struct unique_index *u, const struct record_type *type, int index)
{
	*u = (struct unique_index){ .type = type, .index = index, .capacity = FIRST_CAPACITY };
	u->slots = mem_new_array(struct unique_slot, u->capacity);
	id_random(&u->seed, sizeof(u->seed));
}

void unique_fini(struct unique_index *u)
{
	free(u->slots);
	u->slots = NULL;
}

static uint64_t hash_value(const struct unique_index *u, struct value v)
{
	bool     is_text = u->type->fields[u->type->indexes[u->index].hash].kind == FIELD_TEXT;
	uint64_t hash = is_text ? str_hash(v.text, u->seed)
	                        : str_hash(str_of((const char *)&v.number, sizeof(v.number)), u->seed);

	return hash ? hash : 1;
}

static size_t home(const struct unique_index *u, uint64_t hash)
{
	return (size_t)hash & (u->capacity - 1);
}

static size_t next(const struct unique_index *u, size_t at)
{
	return (at + 1) & (u->capacity - 1);
}

static void place(struct unique_index *u, struct unique_slot slot)
{
	size_t at = home(u, slot.hash);

	while (u->slots[at].hash)
		at = next(u, at);
	u->slots[at] = slot;
}

static void grow(struct unique_index *u)
{
	struct unique_slot *old = u->slots;
	size_t              old_capacity = u->capacity;

	u->capacity *= 2;
	u->slots = mem_new_array(struct unique_slot, u->capacity);
	for (size_t i = 0; i < old_capacity; i++)
		if (old[i].hash)
			place(u, old[i]);
	free(old);
}

static void add(struct unique_index *u, uint64_t hash, int64_t seq)
{
	if ((u->count + 1) * 3 > u->capacity * 2)
		grow(u);
	place(u, (struct unique_slot){ hash, seq });
	u->count++;
}

/* Close the gap at `gap`: whoever stands behind it and does not belong behind it moves into it. */
static void close_gap(struct unique_index *u, size_t gap)
{
	for (size_t at = next(u, gap); u->slots[at].hash; at = next(u, at)) {
		size_t from_home = (at - home(u, u->slots[at].hash)) & (u->capacity - 1);
		size_t from_gap = (at - gap) & (u->capacity - 1);

		if (from_home < from_gap)
			continue;
		u->slots[gap] = u->slots[at];
		gap = at;
	}
	u->slots[gap] = (struct unique_slot){ 0 };
}

/* False: it was not there. */
static bool drop(struct unique_index *u, uint64_t hash, int64_t seq)
{
	size_t at = home(u, hash);

	while (u->slots[at].hash && !(u->slots[at].hash == hash && u->slots[at].seq == seq))
		at = next(u, at);
	if (!u->slots[at].hash)
		return false;
	close_gap(u, at);
	u->count--;
	return true;
}

int64_t unique_candidate(const struct unique_index *u, struct value v, size_t *at)
{
	uint64_t hash = hash_value(u, v);

	for (;; ++*at) {
		const struct unique_slot *slot = &u->slots[(home(u, hash) + *at) & (u->capacity - 1)];

		if (!slot->hash)
			return 0;
		if (slot->hash != hash)
			continue;
		++*at;
		return slot->seq;
	}
}

bool unique_note(struct unique_index *u, int64_t seq, const void *before, const void *after)
{
	const struct record_index *index = &u->type->indexes[u->index];
	bool                       was_in = before && record_is_in_index(u->type, index, before);
	bool                       is_in = after && record_is_in_index(u->type, index, after);
	uint64_t                   old = was_in ? hash_value(u, record_value(u->type, index->hash, before)) : 0;
	uint64_t new = is_in ? hash_value(u, record_value(u->type, index->hash, after)) : 0;

	if (old == new)
		return true;
	if (was_in && !drop(u, old, seq))
		return false;
	if (is_in)
		add(u, new, seq);
	return true;
}

void unique_clear(struct unique_index *u)
{
	memset(u->slots, 0, u->capacity * sizeof(*u->slots));
	u->count = 0;
}
