/* mem.h - allocation that cannot fail: when memory is gone the process ends, and a restart finds everything on disk. */
#pragma once

#include <stddef.h>

#include "base/attr.h"

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

/* For CLEANUP(): frees what a local pointer points to. */
void mem_freep(void *pointer_to_pointer);
