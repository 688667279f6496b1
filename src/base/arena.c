/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c - bump allocation in blocks.
 *
 * A block is BLOCK_SIZE bytes, or as large as a single request needs. arena_reset() keeps one ordinary block, so a
 * server that resets its arena after each request allocates nothing in the steady state and does not keep the
 * memory of one unusually large request.
 */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* What was given back is closed to everybody, until it is given out again. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, size)   ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)0)
#endif

enum { BLOCK_SIZE = 8192, ALIGNMENT = 16 };

struct arena_block {
	struct arena_block *older;
	size_t              size;
	_Alignas(ALIGNMENT) char bytes[];
};

static void free_blocks(struct arena_block *block)
{
	while (block) {
		struct arena_block *older = block->older;

		free(block);
		block = older;
	}
}

void arena_fini(struct arena *a)
{
	free_blocks(a->blocks);
	*a = (struct arena){ 0 };
}

static void use_block(struct arena *a, struct arena_block *block)
{
	block->older = a->blocks;
	a->blocks = block;
	a->next = block->bytes;
	a->end = block->bytes + block->size;
}

void arena_reset(struct arena *a)
{
	struct arena_block *kept = a->blocks;

	if (!kept)
		return;
	free_blocks(kept->older);
	kept->older = NULL;
	if (kept->size > BLOCK_SIZE) {
		arena_fini(a);
		return;
	}
	a->blocks = NULL;
	use_block(a, kept);
	ASAN_POISON_MEMORY_REGION(kept->bytes, kept->size);
}

void *arena_alloc(struct arena *a, size_t size)
{
	size_t padded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	char  *memory;

	if (padded < size)
		padded = size; /* overflow: let mem_alloc refuse it */
	if (!a->blocks || (size_t)(a->end - a->next) < padded) {
		size_t              room = padded > BLOCK_SIZE ? padded : BLOCK_SIZE, whole;
		bool                is_too_large = __builtin_add_overflow(sizeof(struct arena_block), room, &whole);
		struct arena_block *block = mem_resize(NULL, is_too_large ? SIZE_MAX : whole); /* zeroed below */

		block->size = room;
		use_block(a, block);
	}
	memory = a->next;
	ASAN_UNPOISON_MEMORY_REGION(memory, size);
	a->next += padded;
	return memset(memory, 0, size);
}

char *arena_copy(struct arena *a, const void *from, size_t size)
{
	char *copy = arena_alloc(a, size + 1);

	if (size)
		memcpy(copy, from, size);
	return copy;
}
