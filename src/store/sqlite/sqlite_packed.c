/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_packed.c - packed records: written, and read by the writer, with as little SQL as can be.
 *
 * A statement costs more to start and to end than the row that it writes, so there are two ways around them:
 *
 *   - A record that changes is padded with blanks, to have room for what it may become. The writer reads and writes its
 *     value where it stands, by a handle that moves from row to row; only one that outgrows its room is an UPDATE. Rows
 *     that keep their size do not move their neighbours either. The handle is closed before each COMMIT.
 *   - Records with time keys that are in no index of the file wait, and become one row together: sqlite_timed.c.
 */
#include "store/sqlite/sqlite_packed.h"

#include <assert.h>

#include "base/arena.h"
#include "store/sqlite/sqlite_row.h"
#include "store/sqlite/sqlite_statement.h"
#include "store/sqlite/sqlite_timed.h"

enum { VALUE_MAX = 16 << 20, GROWTH = 192, ROOM_STEP = 64 };

/* --- in place --- */

bool packed_is_in_place(const struct record_type *type)
{
	if (!type->is_packed || type->has_time_key)
		return false;
	for (int i = 0; i < type->index_count; i++)
		if (sqlite_is_in_file(&type->indexes[i]))
			return false;
	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f))
			return false;
	return true;
}

static void close_value(struct sqlite_connection *c)
{
	sqlite3_blob_close(c->value);
	c->value = NULL;
	c->value_seq = 0;
}

static int open_first(struct sqlite_connection *c, const struct record_type *type, int64_t seq)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%s" SQLITE_PACKED, type->name); /* fits */
	return sqlite3_blob_open(c->db, "main", name, "value", seq, 1, &c->value);
}

static enum rc open_value(struct sqlite_connection *c, const struct record_type *type, int64_t seq, struct err *e)
{
	int rc;

	if (c->value && c->value_type != type)
		close_value(c);
	if (c->value && c->value_seq == seq)
		return RC_OK;
	rc = c->value ? sqlite3_blob_reopen(c->value, seq) : open_first(c, type, seq);
	if (rc == SQLITE_OK) {
		c->value_type = type;
		c->value_seq = seq;
		return RC_OK;
	}
	close_value(c);
	return rc == SQLITE_ERROR ? RC_NOT_FOUND : sqlite_failed(c->db, "read a record", e);
}

enum rc packed_get(struct session *s, const struct record_type *type, int64_t seq, struct stored *ret, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	enum rc                   rc = open_value(c, type, seq, e);
	int                       size;
	char                     *room;

	if (rc)
		return rc;
	size = sqlite3_blob_bytes(c->value);
	room = arena_alloc(s->arena, (size_t)size + ROW_SLACK);
	if (sqlite3_blob_read(c->value, room, size, 0) != SQLITE_OK)
		return sqlite_failed(c->db, "read a record", e);
	*ret = (struct stored){ arena_alloc(s->arena, type->size), seq };
	if (!row_unpack(type, ~0ull, room, (size_t)size, ret->record))
		return err_set(e, RC_CORRUPT, SQLITE_ROW_IS_NONE, (long long)seq, type->name);
	return record_check(type, ret->record, e);
}

/* --- what waits --- */

enum rc packed_settle(struct sqlite_connection *c, const struct record_type *type, struct err *e)
{
	if (c->value && c->value_type == type)
		c->value_seq = 0; /* what SQL changes, the handle has to find again */
	return c->pending_type == type ? timed_settle(c, e) : RC_OK;
}

enum rc packed_finish(struct sqlite_connection *c, struct err *e)
{
	close_value(c);
	return timed_settle(c, e);
}

void packed_forget(struct sqlite_connection *c)
{
	close_value(c);
	timed_forget(c);
}

/* --- one by one --- */

static void bind_long(sqlite3_stmt *stmt, int at, const struct record_type *type, int f, const void *record)
{
	if (record_is_absent(type, f, record))
		sqlite3_bind_null(stmt, at);
	else
		sqlite_bind_text(stmt, at, record_value(type, f, record).text);
}

static enum rc check_size(const struct sqlite_connection *c, const struct record_type *type, struct err *e)
{
	return c->row.is_full ? err_set(e, RC_TOO_LARGE, "a %s has more than %d bytes", type->name, VALUE_MAX) : RC_OK;
}

/* Those in the file. */
static uint64_t indexes_of(const struct record_type *type, const void *record)
{
	uint64_t indexes = 0;

	for (int i = 0; i < type->index_count; i++)
		if (sqlite_is_in_file(&type->indexes[i]) && record_is_in_index(type, &type->indexes[i], record))
			indexes |= 1ull << i;
	return indexes;
}

/* INSERT or UPDATE of what is packed. Row 0: the next free one. */
static enum rc write_row(struct sqlite_connection *c, const struct session_entry *entry, enum statement_kind kind,
                         int64_t seq, struct err *e)
{
	const struct record_type *type = entry->type;
	uint64_t                  has = indexes_of(type, entry->after);
	sqlite3_stmt             *stmt;
	enum rc rc = sqlite_statement(c, (struct statement_key){ type, (uint8_t)kind, 0, 0, kind == UPDATE ? 0 : has },
	                              &stmt, e);

	if (rc)
		return rc;
	if (seq)
		sqlite3_bind_int64(stmt, AT_SEQ, seq);
	else
		sqlite3_bind_null(stmt, AT_SEQ);
	sqlite_bind_text(stmt, AT_VALUE, buf_str(&c->row));
	if (kind == INSERT && row_has_key_column(type))
		sqlite_bind_text(stmt, AT_KEY, entry->key);
	for (int i = 0; i < type->index_count; i++)
		if (has >> i & 1)
			sqlite_bind_value(stmt, AT_INDEXES + i, type->fields[type->indexes[i].hash].kind,
			                  record_value(type, type->indexes[i].hash, entry->after));
		else if (kind == UPDATE && sqlite_is_in_file(&type->indexes[i]))
			sqlite3_bind_null(stmt, AT_INDEXES + i);
	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f))
			bind_long(stmt, AT_INDEXES + type->index_count + f, type, f, entry->after);
	return sqlite_run(stmt, e);
}

/* `least`: it is padded to so many bytes. */
static enum rc pack(struct sqlite_connection *c, const struct session_entry *entry, size_t least, struct err *e)
{
	c->row.max = VALUE_MAX;
	buf_reset(&c->row);
	row_pack(entry->type, entry->after, least, &c->row);
	return check_size(c, entry->type, e);
}

/* With room to grow, where that is of use. */
static enum rc pack_with_room(struct sqlite_connection *c, const struct session_entry *entry, struct err *e)
{
	enum rc rc = pack(c, entry, 0, e);

	if (!rc && packed_is_in_place(entry->type))
		rc = pack(c, entry, (c->row.n + GROWTH) / ROOM_STEP * ROOM_STEP, e);
	return rc;
}

static enum rc is_there(const struct session_entry *entry, struct err *e)
{
	return err_set(e, RC_CONFLICT, "there is a %s '%.*s' already", entry->type->name, STR_ARG(entry->key));
}

/* Its number may be taken by another key of the same moment. */
static enum rc insert_in_slot(struct session *s, const struct session_entry *entry, int64_t seq, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	struct stored             other;
	enum rc                   rc = packed_settle(c, entry->type, e);

	if (rc || (rc = sqlite_get(s, entry->type, entry->key, &other, e)) != RC_NOT_FOUND)
		return rc ? rc : is_there(entry, e);
	if ((rc = timed_make_way(c, seq, e)) || (rc = pack(c, entry, 0, e)))
		return rc;
	for (int slot = 0; slot < ROW_SLOTS; slot++) {
		rc = write_row(c, entry, INSERT, seq + slot, e);
		if (rc || sqlite3_changes(c->db))
			return rc;
	}
	return is_there(entry, e);
}

static enum rc insert_by_time(struct session *s, const struct session_entry *entry, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	int64_t                   seq;

	assert(c->pending_type == entry->type);
	if (!row_of_time_key(entry->key, &seq))
		return err_set(e, RC_INVALID, "'%.*s' cannot be the key of a new %s", STR_ARG(entry->key),
		               entry->type->name);
	if (timed_may_wait(c, seq) && !indexes_of(entry->type, entry->after))
		return timed_wait(c, entry->after, seq, e);
	timed_note(c, seq);
	return insert_in_slot(s, entry, seq, e);
}

enum rc packed_insert(struct session *s, const struct session_entry *entry, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	enum rc                   rc;

	if (entry->type->has_time_key)
		return insert_by_time(s, entry, e);
	if ((rc = pack_with_room(c, entry, e)) || (rc = write_row(c, entry, INSERT, 0, e)))
		return rc;
	return sqlite3_changes(c->db) ? RC_OK : is_there(entry, e);
}

/* Where it stands, if it has room there. */
static enum rc update_in_place(struct sqlite_connection *c, const struct session_entry *entry, bool *ret_is_done,
                               struct err *e)
{
	enum rc rc = open_value(c, entry->type, entry->handle, e);
	size_t  room;

	*ret_is_done = false;
	if (rc)
		return rc == RC_NOT_FOUND ? RC_OK : rc; /* the UPDATE finds nothing either */
	room = (size_t)sqlite3_blob_bytes(c->value);
	if ((rc = pack(c, entry, room, e)) || c->row.n != room)
		return rc;
	if (sqlite3_blob_write(c->value, c->row.p, (int)room, 0) != SQLITE_OK)
		return sqlite_failed(c->db, "write a record", e);
	*ret_is_done = c->has_written = true;
	return RC_OK;
}

enum rc packed_update(struct session *s, const struct session_entry *entry, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	bool                      is_done = false;
	enum rc                   rc = RC_OK;

	if (c->value_type == entry->type || packed_is_in_place(entry->type))
		rc = update_in_place(c, entry, &is_done, e);
	if (rc || is_done)
		return rc;
	if ((rc = packed_settle(c, entry->type, e)))
		return rc;
	if (entry->type->has_time_key && (rc = timed_make_way(c, entry->handle, e)))
		return rc;
	if ((rc = pack_with_room(c, entry, e)))
		return rc;
	return write_row(c, entry, UPDATE, entry->handle, e);
}
