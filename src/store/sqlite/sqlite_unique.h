/* sqlite_unique.h - a unique index of the sqlite back end: from a value to the row that has it, in memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "store/record.h"

struct unique_slot {
	uint64_t hash; /* 0: free */
	int64_t  seq;
};

struct unique_index {
	const struct record_type *type;
	int                       index;
	struct unique_slot       *slots;
	size_t                    capacity, count; /* capacity is a power of two */
	uint64_t                  seed;
};

void unique_init(struct unique_index *u, const struct record_type *type, int index);
void unique_fini(struct unique_index *u);

/* Forget everything. */
void unique_clear(struct unique_index *u);

/* Rows that may have the value: *at starts at 0 and is moved on; 0 when there are no more. The caller compares. */
int64_t unique_candidate(const struct unique_index *u, struct value v, size_t *at);

/* A row has changed, come or gone (NULL: not there). False: its old value is unknown: somebody else wrote to the
 * file. */
MUST_CHECK bool unique_note(struct unique_index *u, int64_t seq, const void *before, const void *after);
