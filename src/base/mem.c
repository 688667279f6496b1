/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.c - the only place that decides what happens when memory runs out.
 *
 * Every durable fact is on disk before anybody hears of it, so ending the process is safe, and no caller needs an
 * error path. Sizes that come from outside are checked by the caller before they get here.
 */
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static NO_RETURN void out_of_memory(size_t size)
{
	fprintf(stderr, "leasehold: out of memory (%zu bytes)\n", size);
	abort();
}

void *mem_alloc(size_t size)
{
	void *memory = calloc(1, size ? size : 1);

	if (!memory)
		out_of_memory(size);
	return memory;
}

void *mem_alloc_array(size_t size, size_t count)
{
	if (count && size > SIZE_MAX / count)
		out_of_memory(SIZE_MAX);
	return mem_alloc(size * count);
}

void *mem_resize(void *old, size_t size)
{
	void *memory = realloc(old, size ? size : 1);

	if (!memory)
		out_of_memory(size);
	return memory;
}

void *mem_copy(const void *from, size_t size)
{
	void *copy = mem_alloc(size);

	if (size)
		memcpy(copy, from, size);
	return copy;
}

char *mem_strdup(const char *text)
{
	return mem_copy(text, strlen(text) + 1);
}

void mem_freep(void *pointer_to_pointer)
{
	void **pointer = pointer_to_pointer;

	free(*pointer);
	*pointer = NULL;
}
