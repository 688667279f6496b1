/* mem.h - allocation that cannot fail: when memory is gone the process ends, and a restart finds everything on disk. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

/* Memory, or another resource, cannot be had for what is named: says so without allocating and ends the process. */
NO_RETURN void mem_out(const char *what);

static inline void mem_must(bool is_given, const char *what)
{
	if (!is_given)
		mem_out(what);
}

/* Zeroed memory. Never NULL. End it with free(). */
void *mem_alloc(size_t size);

/* Like realloc(), never NULL. The added bytes are not zeroed. */
void *mem_resize(void *old, size_t size);

/* A copy of size bytes. */
void *mem_copy(const void *from, size_t size);

/* A NUL-terminated copy. */
char *mem_strdup(const char *text);

#define mem_new(type)              ((type *)mem_alloc(sizeof(type)))
#define mem_new_array(type, count) ((type *)mem_alloc_array(sizeof(type), (count)))

void *mem_alloc_array(size_t size, size_t count);
