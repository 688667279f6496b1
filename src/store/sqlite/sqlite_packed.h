/* sqlite_packed.h - packed records of the sqlite back end: written, and read by the writer, with as little SQL as can
 * be. */
#pragma once

#include "base/attr.h"
#include "store/sqlite/sqlite_private.h"

/* True when the value alone is the record, and the writer may read and write it where it stands. */
bool packed_is_in_place(const struct record_type *type);

/* The writer's look at such a record. RC_NOT_FOUND. */
MUST_CHECK enum rc packed_get(struct session *s, const struct record_type *type, int64_t seq, struct stored *ret,
                              struct err *e);

/* RC_CONFLICT: there is one already, and nothing was written. */
MUST_CHECK enum rc packed_insert(struct session *s, const struct session_entry *entry, struct err *e);
MUST_CHECK enum rc packed_update(struct session *s, const struct session_entry *entry, struct err *e);

/* Before a row of this type is read or changed by SQL. Only the writer has anything to do. */
MUST_CHECK enum rc packed_settle(struct sqlite_connection *c, const struct record_type *type, struct err *e);

/* Before COMMIT: write what waits, let go of rows. Before ROLLBACK: forget it. */
MUST_CHECK enum rc packed_finish(struct sqlite_connection *c, struct err *e);
void               packed_forget(struct sqlite_connection *c);
