/* grow.h - lists in an arena that grow one by one. */
#pragma once

#include <string.h>

#include "base/arena.h"

/* The items, with room for at least one more: as they are, or copied into twice the room. *room is 0 at first. */
static inline void *arena_grow(struct arena *a, void *items, size_t count, size_t *room, size_t size)
{
	void *more = items;

	if (count < *room)
		return items;
	*room = *room ? 2 * *room : 64;
	more = arena_alloc(a, *room * size);
	if (count)
		memcpy(more, items, count * size);
	return more;
}
