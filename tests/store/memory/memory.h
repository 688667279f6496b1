/* memory.h - a back end that forgets: for tests and simulation. No thread of its own; the caller turns it. */
#pragma once

#include <stddef.h>

#include "base/clock.h"
#include "store/record.h"

struct store;

struct store *store_memory_open(const struct record_type *const *types, size_t type_count, const struct clock *clock);

/* Run what was submitted. True when there was something. */
bool store_memory_turn(struct store *s);
