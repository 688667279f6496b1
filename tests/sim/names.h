/* names.h - finds things by name. Names and things are borrowed; the memory is the arena's. */
#pragma once

#include <stddef.h>

#include "base/str.h"

struct arena;

struct names {
	struct arena *arena;
	struct name {
		struct str name;
		void      *thing;
	} * slots;
	size_t count, room;
};

/* NULL when there is none. */
void *names_find(const struct names *n, struct str name);

/* The name must be new. */
void names_add(struct names *n, struct str name, void *thing);
