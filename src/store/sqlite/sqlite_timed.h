/* sqlite_timed.h - records with time keys, of which one row holds many: see sqlite_segment.h. Of the type of which
 * there is one, struct sqlite_connection's pending_type. */
#pragma once

#include "base/attr.h"
#include "store/sqlite/sqlite_private.h"

/* --- the writer's: sqlite_timed.c --- */

/* May one with this number, the smallest of its key, wait for the others of its commit? It must be in no index of the
 * file, and last as long as the commit. */
bool               timed_may_wait(const struct sqlite_connection *c, int64_t seq);
MUST_CHECK enum rc timed_wait(struct sqlite_connection *c, const void *record, int64_t seq, struct err *e);

/* Another one, which will be a row of its own, has this number or one of those behind it. */
void timed_note(struct sqlite_connection *c, int64_t seq);

/* One that is not there is none that can be removed. */
MUST_CHECK enum rc timed_remove(struct sqlite_connection *c, int64_t seq, struct err *e);

/* Write what waits and what is left of a row: before rows are read or changed in another way, and before COMMIT. */
MUST_CHECK enum rc timed_settle(struct sqlite_connection *c, struct err *e);
void               timed_forget(struct sqlite_connection *c);

/* When settled: afterwards a row of one record can have this number; a record that has it is such a row. */
MUST_CHECK enum rc timed_make_way(struct sqlite_connection *c, int64_t seq, struct err *e);

/* The newest number, from the file. */
MUST_CHECK enum rc timed_load(struct sqlite_connection *c, struct err *e);

/* --- both connections': sqlite_timed_read.c --- */

/* The row of a statement that reads some. */
void timed_read_row(struct segment *g, const struct record_type *type, sqlite3_stmt *stmt);

/* RC_NOT_FOUND. */
MUST_CHECK enum rc timed_get(struct session *s, const struct record_type *type, struct str key, struct stored *ret,
                             struct err *e);

/* A page of all records, by age or by key, which is the same. Damaged ones are left out and told. */
MUST_CHECK enum rc timed_query(struct session *s, const struct query *q, struct stored_page *ret, struct err *e);
