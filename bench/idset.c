/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idset.c - was any id handed out twice?
 *
 * While the load runs an id is only copied to the end of an array. The hash set is built once, when the clock has
 * stopped, so that checking costs the measurement next to nothing.
 */
#include "idset.h"

#include <stdlib.h>

#include "base/mem.h"

enum { IDSET_ROOM_FIRST = 4096 };

bool idset_add(struct idset *s, struct str id)
{
	struct idset_id *to;

	if (id.n == 0 || id.n > IDSET_ID_MAX)
		return false;
	if (s->count == s->room) {
		s->room = s->room ? s->room * 2 : IDSET_ROOM_FIRST;
		s->ids = mem_resize(s->ids, s->room * sizeof(*s->ids));
	}
	to = &s->ids[s->count++];
	to->size = (unsigned char)id.n;
	memcpy(to->text, id.p, id.n);
	return true;
}

/* FNV-1a. */
static size_t hash_of(const struct idset_id *id)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < id->size; i++)
		hash = (hash ^ (unsigned char)id->text[i]) * 0x100000001b3;
	return (size_t)(hash ^ (hash >> 32));
}

static bool is_same(const struct idset_id *a, const struct idset_id *b)
{
	return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

/* Put id into the table of mask + 1 places. False when an equal one is there already. */
static bool insert(const struct idset_id **places, size_t mask, const struct idset_id *id)
{
	size_t at = hash_of(id) & mask;

	for (; places[at]; at = (at + 1) & mask)
		if (is_same(places[at], id))
			return false;
	places[at] = id;
	return true;
}

size_t idset_repeats(const struct idset *s)
{
	size_t                  size = IDSET_ROOM_FIRST;
	size_t                  repeats = 0;
	const struct idset_id **places;

	while (size < s->count * 2)
		size *= 2;
	places = mem_new_array(const struct idset_id *, size);
	for (size_t i = 0; i < s->count; i++)
		repeats += !insert(places, size - 1, &s->ids[i]);
	free(places);
	return repeats;
}

void idset_fini(struct idset *s)
{
	free(s->ids);
	*s = (struct idset){ 0 };
}
