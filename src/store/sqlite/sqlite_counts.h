/* sqlite_counts.h - how many records an index has for each value of an enum, kept in memory beside the file. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "store/record.h"

struct sqlite3;

enum { KEPT_VALUES_MAX = 32 };

struct kept_count {
	const struct record_type *type;
	int                       index;
	int64_t                   rows[KEPT_VALUES_MAX]; /* the writer's: with what is not durable yet */
	_Atomic int64_t           committed[KEPT_VALUES_MAX];
};

/* Count what the file has: one pass over the index. */
MUST_CHECK enum rc kept_count_load(struct kept_count *t, struct sqlite3 *db, struct err *e);

/* A record has changed, come or gone (NULL: not there). */
void kept_count_note(struct kept_count *t, const void *before, const void *after);

/* What was noted is durable. */
void kept_count_commit(struct kept_count *t);

/* How many have this value, with what is not durable yet or without. */
int64_t kept_count_of(const struct kept_count *t, int64_t value, bool is_durable_only);
