/* sqlite_tally.h - how many records an index has for each value of an enum, kept in memory beside the file. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "store/record.h"

struct sqlite3;

enum { TALLY_VALUES_MAX = 32 };

struct tally {
	const struct record_type *type;
	int                       index;
	int64_t                   rows[TALLY_VALUES_MAX]; /* the writer's: with what is not durable yet */
	_Atomic int64_t           committed[TALLY_VALUES_MAX];
};

/* Count what the file has: one pass over the index. */
MUST_CHECK enum rc tally_load(struct tally *t, struct sqlite3 *db, struct err *e);

/* A record has changed, come or gone (NULL: not there). */
void tally_note(struct tally *t, const void *before, const void *after);

/* What was noted is durable. */
void tally_commit(struct tally *t);

/* How many have this value, with what is not durable yet or without. */
int64_t tally_count(const struct tally *t, int64_t value, bool is_durable_only);
