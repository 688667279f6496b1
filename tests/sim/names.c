/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - open addressing; at least half of the slots are free. Nothing is ever removed: a run is short. */
#include "names.h"

#include <assert.h>

#include "base/arena.h"

enum { FIRST_ROOM = 256 };

static struct name *slot_of(const struct names *n, struct str name)
{
	size_t at = (size_t)str_hash(name, 0) & (n->room - 1);

	while (n->slots[at].thing && !str_eq(n->slots[at].name, name))
		at = (at + 1) & (n->room - 1);
	return &n->slots[at];
}

void *names_find(const struct names *n, struct str name)
{
	return n->room ? slot_of(n, name)->thing : NULL;
}

static void grow(struct names *n)
{
	struct names old = *n;

	n->room = old.room ? old.room * 2 : FIRST_ROOM;
	n->slots = arena_alloc(n->arena, n->room * sizeof(*n->slots));
	for (size_t i = 0; i < old.room; i++)
		if (old.slots[i].thing)
			*slot_of(n, old.slots[i].name) = old.slots[i];
}

void names_add(struct names *n, struct str name, void *thing)
{
	struct name *slot;

	if (n->count * 2 >= n->room)
		grow(n);
	slot = slot_of(n, name);
	assert(!slot->thing && thing);
	*slot = (struct name){ name, thing };
	n->count++;
}
