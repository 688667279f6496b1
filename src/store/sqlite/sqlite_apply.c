/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_apply.c - what a session has changed, written as SQL; what is kept in memory follows. */
#include "store/sqlite/sqlite_packed.h"
#include "store/sqlite/sqlite_private.h"
#include "store/sqlite/sqlite_statement.h"
#include "store/sqlite/sqlite_timed.h"

/* Absent fields are NULL, but for those that order an index. */
static bool is_null(const struct record_type *type, int field, const void *record)
{
	return record_is_absent(type, field, record) && !sqlite_is_sort_field(type, field);
}

/* INSERT or UPDATE of these fields. */
static enum rc write_fields(struct session *s, const struct session_entry *entry, enum statement_kind kind,
                            uint64_t fields, struct err *e)
{
	const struct record_type *type = entry->type;
	sqlite3_stmt             *stmt;
	enum rc rc = sqlite_statement(s->connection, (struct statement_key){ type, kind, 0, 0, fields }, &stmt, e);

	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, (int64_t)record_version(type, entry->after));
	for (int f = 0; f < type->field_count; f++)
		if (fields >> f & 1 && is_null(type, f, entry->after))
			sqlite3_bind_null(stmt, f + 2);
		else if (fields >> f & 1)
			sqlite_bind_value(stmt, f + 2, type->fields[f].kind, record_value(type, f, entry->after));
	if (kind == UPDATE)
		sqlite3_bind_int64(stmt, type->field_count + 2, entry->handle);
	return sqlite_run(stmt, e);
}

/* RC_CONFLICT: there is one already, and nothing was written. */
static enum rc apply_insert(struct session *s, const struct session_entry *entry, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	uint64_t                  present = 0;
	enum rc                   rc;

	if (entry->type->is_packed)
		return packed_insert(s, entry, e);
	for (int f = 0; f < entry->type->field_count; f++)
		present |= (uint64_t)!is_null(entry->type, f, entry->after) << f;
	rc = write_fields(s, entry, INSERT, present, e);
	if (!rc && !sqlite3_changes(c->db))
		rc = err_set(e, RC_CONFLICT, "there is a %s '%.*s' already", entry->type->name, STR_ARG(entry->key));
	return rc;
}

static enum rc apply_delete(struct session *s, const struct record_type *type, int64_t seq, struct err *e)
{
	sqlite3_stmt *stmt;
	enum rc       rc;

	if (type->has_time_key)
		return timed_remove(s->connection, seq, e);
	if ((rc = packed_settle(s->connection, type, e)) ||
	    (rc = sqlite_statement(s->connection, (struct statement_key){ type, DELETE, 0, 0, 0 }, &stmt, e)))
		return rc;
	sqlite3_bind_int64(stmt, 1, seq);
	return sqlite_run(stmt, e);
}

static enum rc row_was_changed(const struct record_type *type, struct err *e)
{
	return err_set(e, RC_UNAVAILABLE,
	               "a row of %s was changed by another program; what is known of the file is read again",
	               type->name);
}

/* What is kept in memory follows what was written. */
static enum rc note_change(struct session *s, const struct record_type *type, int64_t seq, const void *before,
                           const void *after, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	struct row_count         *count = sqlite_row_count(s, type);

	for (size_t i = 0; i < c->unique_count; i++)
		if (c->uniques[i].type == type && !unique_note(&c->uniques[i], seq, before, after))
			return row_was_changed(type, e);
	for (size_t i = 0; i < c->hot_count; i++)
		if (c->hots[i].type == type && !hot_note(&c->hots[i], seq, before, after))
			return row_was_changed(type, e);
	for (size_t i = 0; i < c->kept_counts_used; i++)
		if (c->kept_counts[i].type == type)
			kept_count_note(&c->kept_counts[i], before, after);
	if (count)
		count->rows += (after != NULL) - (before != NULL);
	return RC_OK;
}

static enum rc apply_one(struct session *s, const struct session_entry *entry, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	int64_t                   seq = entry->handle;
	enum rc                   rc;

	if (!entry->before) {
		rc = apply_insert(s, entry, e);
		seq = sqlite3_last_insert_rowid(c->db);
	} else if (!entry->after) {
		rc = apply_delete(s, entry->type, seq, e);
	} else if (entry->changes) {
		rc = entry->type->is_packed ? packed_update(s, entry, e)
		                            : write_fields(s, entry, UPDATE, entry->changes, e);
	} else {
		rc = RC_OK;
	}
	return rc ? rc : note_change(s, entry->type, seq, entry->before, entry->after, e);
}

/* Take the inserts before `end` back: one of them exists already, and the rest of the commit shall not pay for it. */
static enum rc undo_inserts(struct session *s, const struct session_entry *end, struct err *e)
{
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry)) != end;) {
		struct stored stored;
		enum rc       rc;

		if (entry->before)
			continue;
		rc = sqlite_get(s, entry->type, entry->key, &stored, e);
		if (rc == RC_NOT_FOUND)
			rc = err_set(e, RC_INTERNAL, "%s '%.*s' was just written and is gone", entry->type->name,
			             STR_ARG(entry->key));
		if (!rc)
			rc = apply_delete(s, entry->type, stored.handle, e);
		if (!rc)
			rc = note_change(s, entry->type, stored.handle, entry->after, NULL, e);
		if (rc)
			return rc;
	}
	return RC_OK;
}

static enum rc apply_inserts(struct session *s, struct err *e)
{
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));) {
		enum rc    rc = entry->before ? RC_OK : apply_one(s, entry, e);
		struct err why = { 0 };

		if (rc == RC_CONFLICT && undo_inserts(s, entry, &why)) {
			*e = why;
			return why.rc;
		}
		if (rc)
			return rc;
	}
	return RC_OK;
}

/* Inserts come first: only they can meet a conflict, and then nothing of the session stays. */
enum rc sqlite_apply(struct session *s, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	enum rc                   rc = sqlite3_get_autocommit(c->db) ? sqlite_is_undone(e) : apply_inserts(s, e);

	for (const struct session_entry *entry = NULL; !rc && (entry = session_next_change(s, entry));)
		if (entry->before)
			rc = apply_one(s, entry, e);
	return rc;
}
