/* arena.h - memory with one lifetime: allocate many, free once. Used for one request or one transaction. */
#pragma once

#include <stddef.h>

struct arena {
	struct arena_block *blocks; /* newest first */
	char               *next;
	char               *end;
};

/* An all-zero struct arena is ready to use, as is one after this. */
void arena_fini(struct arena *a);

/* Forget everything allocated, keep one block for the next round. */
void arena_reset(struct arena *a);

/* Zeroed memory, aligned for any type, valid until reset or fini. Never NULL. */
void *arena_alloc(struct arena *a, size_t size);

/* A copy of size bytes, followed by a NUL. */
char *arena_copy(struct arena *a, const void *from, size_t size);
