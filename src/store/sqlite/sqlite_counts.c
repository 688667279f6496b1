/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_counts.c - see sqlite_counts.h.
 *
 * SQLite counts by looking at every entry of an index: the more leases there ever were, the longer an overview would
 * take (docs/decisions/0093-kept-counts.md). The writer's thread alone changes them; a reader on another thread is
 * given what the last commit left, value by value, which may be newer than its snapshot.
 */
#include "store/sqlite/sqlite_counts.h"

#include <stdio.h>
#include <string.h>

#include "store/sqlite/sqlite_private.h"

enum { SQL_MAX = 256 };

static const struct record_index *index_of(const struct kept_count *t)
{
	return &t->type->indexes[t->index];
}

enum rc kept_count_load(struct kept_count *t, sqlite3 *db, struct err *e)
{
	const char   *hash = t->type->fields[index_of(t)->hash].name;
	sqlite3_stmt *stmt;
	char          sql[SQL_MAX];
	int           step;
	enum rc       rc = RC_OK;

	(void)snprintf(sql, sizeof(sql), "SELECT \"%s\", count(*) FROM \"%s\" GROUP BY 1", hash,
	               t->type->name); /* fits */
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return sqlite_failed(db, "count records", e);
	memset(t->rows, 0, sizeof(t->rows));
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
		int64_t value = sqlite3_column_int64(stmt, 0);

		if (value >= 0 && value < KEPT_VALUES_MAX) /* another one is damage, which its reader will tell */
			t->rows[value] = sqlite3_column_int64(stmt, 1);
	}
	if (step != SQLITE_DONE)
		rc = sqlite_failed(db, "count records", e);
	sqlite3_finalize(stmt);
	kept_count_commit(t);
	return rc;
}

static void add(struct kept_count *t, const void *record, int64_t n)
{
	int64_t value = record ? record_value(t->type, index_of(t)->hash, record).number : 0;

	if (record && value >= 0 && value < KEPT_VALUES_MAX) /* another one is damage, which its reader will tell */
		t->rows[value] += n;
}

void kept_count_note(struct kept_count *t, const void *before, const void *after)
{
	add(t, before, -1);
	add(t, after, 1);
}

void kept_count_commit(struct kept_count *t)
{
	for (int i = 0; i < KEPT_VALUES_MAX; i++)
		atomic_store_explicit(&t->committed[i], t->rows[i], memory_order_relaxed);
}

int64_t kept_count_of(const struct kept_count *t, int64_t value, bool is_durable_only)
{
	if (value < 0 || value >= KEPT_VALUES_MAX)
		return 0;
	return is_durable_only ? atomic_load_explicit(&t->committed[value], memory_order_relaxed) : t->rows[value];
}
