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
#include <unistd.h>

static void say(const char *text)
{
	ssize_t wrote = write(STDERR_FILENO, text, strlen(text));

	(void)wrote; /* then nobody hears it */
}

NO_RETURN void mem_out(const char *what)
{
	say("leasehold: out of memory, or over another limit of this process, for ");
	say(what);
	say("\n");
	abort();
}

static NO_RETURN void out_of_memory(size_t size)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%zu bytes", size); /* fits; integers need no memory */
	mem_out(text);
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
