/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_schema.c - from record types to tables.
 *
 * A type becomes a table with one column per field, plus `seq` (the row number: age order, and small index entries) and
 * `version`. An index of the type becomes an index of the table, partial when the type says so. A file made by an older
 * program gets the columns and indexes that are missing, and an index that has changed is made anew; all in one
 * transaction, so a crash leaves the old file. The file carries our application id and a schema version: other files
 * and newer ones are refused.
 *
 * A packed type (sqlite_row.c) has a table `NAME_row` of row number, value, the key unless the number comes from it,
 * and one column for each index in the file, which is NULL in records that do not belong into it. Its name is that of a
 * view with a column per field, as the table was before: whoever asks the file with sqlite3 sees no difference, also
 * where one row has many records (sqlite_segment.c). Where nothing else has to follow, the view can be updated, too. A
 * table of the older kind is moved over.
 */
#include <assert.h>

#include "base/buf.h"
#include "store/sqlite/sqlite_private.h"
#include "store/sqlite/sqlite_row.h"

enum { APPLICATION_ID = 0x4c534844, SQL_MAX = 16384 }; /* "LSHD" */

enum rc sqlite_read_number(sqlite3 *db, const char *sql, int64_t *ret, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	enum rc       rc = RC_OK;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK || sqlite3_step(stmt) != SQLITE_ROW)
		rc = sqlite_failed(db, "be read", e);
	else
		*ret = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return rc;
}

bool sqlite_is_sort_field(const struct record_type *type, int field)
{
	for (int i = 0; i < type->index_count; i++)
		if (type->indexes[i].sort == field)
			return true;
	return false;
}

static const char *column_type(enum field_kind kind)
{
	return kind == FIELD_TEXT ? "TEXT" : "INTEGER";
}

static void add_table(struct buf *sql, const struct record_type *type)
{
	buf_addf(sql, "CREATE TABLE IF NOT EXISTS \"%s\" (seq INTEGER PRIMARY KEY, version INTEGER NOT NULL",
	         type->name);
	for (int f = 0; f < type->field_count; f++)
		buf_addf(sql, ", \"%s\" %s%s", type->fields[f].name, column_type(type->fields[f].kind),
		         f == type->key ? " NOT NULL UNIQUE" : "");
	buf_add_text(sql, ") STRICT;");
}

static void add_index(struct buf *sql, const struct record_type *type, const struct record_index *index)
{
	buf_addf(sql, "CREATE INDEX \"%s_%s\" ON \"%s\" (\"%s\"", type->name, index->name, type->name,
	         type->fields[index->hash].name);
	if (index->sort != NO_FIELD)
		buf_addf(sql, ", \"%s\"", type->fields[index->sort].name);
	buf_add_char(sql, ')');
	if (index->only_field != NO_FIELD)
		buf_addf(sql, " WHERE \"%s\" = %d", type->fields[index->only_field].name, index->only_value);
}

static enum rc exec_buf(sqlite3 *db, struct buf *sql, struct err *e)
{
	assert(!sql->is_full);
	return sqlite_exec(db, sql->p, e);
}

/* Is the index there, made with this text? SQLite keeps it as it was, but for "IF NOT EXISTS". */
static enum rc has_index(sqlite3 *db, struct str sql, bool *ret, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	enum rc       rc = RC_OK;
	int           step = SQLITE_ERROR;

	if (sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND sql = ?1", -1, &stmt, NULL) ==
	    SQLITE_OK) {
		sqlite3_bind_text(stmt, 1, sql.p, (int)sql.n, SQLITE_STATIC);
		step = sqlite3_step(stmt);
	}
	if (step != SQLITE_ROW && step != SQLITE_DONE)
		rc = sqlite_failed(db, "be read", e);
	*ret = step == SQLITE_ROW;
	sqlite3_finalize(stmt);
	return rc;
}

static enum rc make_index(sqlite3 *db, const struct record_type *type, const struct record_index *index, struct err *e)
{
	CLEANUP(buf_fini) struct buf wanted = BUF(SQL_MAX), anew = BUF(SQL_MAX);
	bool                         is_there = true;
	enum rc                      rc;

	add_index(&wanted, type, index);
	rc = has_index(db, buf_str(&wanted), &is_there, e);
	if (rc || is_there)
		return rc;
	buf_addf(&anew, "DROP INDEX IF EXISTS \"%s_%s\"; %s", type->name, index->name, wanted.p);
	return exec_buf(db, &anew, e);
}

/* A table with a column for each field, those that are missing included. */
static enum rc make_columns(sqlite3 *db, const struct record_type *type, struct err *e)
{
	struct buf sql = BUF(SQL_MAX);
	enum rc    rc;

	add_table(&sql, type);
	rc = exec_buf(db, &sql, e);
	for (int f = 0; !rc && f < type->field_count; f++) {
		if (sqlite3_table_column_metadata(db, "main", type->name, type->fields[f].name, NULL, NULL, NULL, NULL,
		                                  NULL) == SQLITE_OK)
			continue;
		buf_reset(&sql);
		buf_addf(&sql, "ALTER TABLE \"%s\" ADD COLUMN \"%s\" %s%s;", type->name, type->fields[f].name,
		         column_type(type->fields[f].kind), type->fields[f].kind == FIELD_TEXT ? "" : " DEFAULT 0");
		rc = exec_buf(db, &sql, e);
	}
	buf_fini(&sql);
	return rc;
}

/* --- packed records --- */

/* The value as row_pack() writes it, by the columns of the table, or in a trigger. A column has a type; what is
 * assigned through a view has any. */
static void add_packed_value(struct buf *sql, const struct record_type *type, const char *of)
{
	buf_addf(sql, "json_array(CAST(%sversion AS INTEGER)", of);
	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f))
			buf_add_text(sql, ", NULL");
		else
			buf_addf(sql, ", CAST(%s\"%s\" AS %s)", of, type->fields[f].name,
			         column_type(type->fields[f].kind));
	buf_add_char(sql, ')');
}

static void add_packed_table(struct buf *sql, const struct record_type *type)
{
	buf_addf(sql,
	         "CREATE TABLE IF NOT EXISTS \"%s" SQLITE_PACKED "\" (seq INTEGER PRIMARY KEY, value TEXT NOT NULL",
	         type->name);
	if (row_has_key_column(type))
		buf_addf(sql, ", \"%s\" TEXT NOT NULL UNIQUE", type->fields[type->key].name);
	for (int i = 0; i < type->index_count; i++)
		if (sqlite_is_in_file(&type->indexes[i]))
			buf_addf(sql, ", \"%s\" %s", type->indexes[i].name,
			         column_type(type->fields[type->indexes[i].hash].kind));
	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f))
			buf_addf(sql, ", \"%s\" TEXT", type->fields[f].name);
	buf_add_text(sql, ") STRICT;");
	for (int i = 0; i < type->index_count; i++)
		if (sqlite_is_in_file(&type->indexes[i]))
			buf_addf(sql,
			         "CREATE INDEX IF NOT EXISTS \"%s_%s\" ON \"%s" SQLITE_PACKED
			         "\" (\"%s\") WHERE \"%s\" IS NOT NULL;",
			         type->name, type->indexes[i].name, type->name, type->indexes[i].name,
			         type->indexes[i].name);
}

static void add_view_columns(struct buf *sql, const struct record_type *type)
{
	buf_add_text(sql, "seq, json_extract(value, '$[0]') AS version");
	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f) || f == type->key)
			buf_addf(sql, ", \"%s\"", type->fields[f].name);
		else
			buf_addf(sql, ", json_extract(value, '$[%d]') AS \"%s\"", ROW_MEMBER(f), type->fields[f].name);
	buf_addf(sql, " FROM \"%s" SQLITE_PACKED "\"", type->name);
}

/* Rows of many records, see sqlite_segment.c; one that is alone is shown as if its row were one, too. */
static void add_timed_columns(struct buf *sql, const struct record_type *type)
{
	static const char has_many[] = "substr(r.value, 1, 2) = '[['";

	buf_add_text(sql, "r.seq + json_extract(e.value, '$[0]') AS seq, json_extract(e.value, '$[3][0]') AS version");
	for (int f = 0; f < type->field_count; f++) {
		const char *name = type->fields[f].name;

		if (row_has_column(type, f))
			buf_addf(sql,
			         ", iif(%s, CAST(nullif(substr(CAST(r.\"%s\" AS BLOB), 1 + json_extract(e.value,"
			         " '$[1]'), json_extract(e.value, '$[2]')), x'') AS TEXT), r.\"%s\") AS \"%s\"",
			         has_many, name, name, name);
		else
			buf_addf(sql, ", json_extract(e.value, '$[3][%d]') AS \"%s\"", ROW_MEMBER(f), name);
	}
	buf_addf(sql,
	         " FROM \"%s" SQLITE_PACKED "\" AS r, json_each(iif(%s, r.value, '[[0,0,0,' || r.value || ']]')) AS e",
	         type->name, has_many);
}

/* The view is made anew each time: fields may have been added. */
static void add_view(struct buf *sql, const struct record_type *type)
{
	bool is_followed = false;

	buf_addf(sql, "DROP VIEW IF EXISTS \"%s\"; CREATE VIEW \"%s\" AS SELECT ", type->name, type->name);
	if (type->has_time_key)
		add_timed_columns(sql, type);
	else
		add_view_columns(sql, type);
	buf_add_char(sql, ';');
	for (int i = 0; i < type->index_count; i++)
		is_followed |= sqlite_is_in_file(&type->indexes[i]);
	for (int f = 0; f < type->field_count; f++)
		is_followed |= row_has_column(type, f);
	if (is_followed || !row_has_key_column(type))
		return;
	buf_addf(sql,
	         "CREATE TRIGGER \"%s_update\" INSTEAD OF UPDATE ON \"%s\" BEGIN UPDATE \"%s" SQLITE_PACKED
	         "\" SET \"%s\" = new.\"%s\", value = ",
	         type->name, type->name, type->name, type->fields[type->key].name, type->fields[type->key].name);
	add_packed_value(sql, type, "new.");
	buf_add_text(sql, " WHERE seq = old.seq; END;");
}

/* A new one has a number that its key does not tell yet. */
static void time_number(sqlite3_context *call, int count, sqlite3_value **args)
{
	struct str key = str_of((const char *)sqlite3_value_text(args[0]), 0);
	int64_t    seq;

	(void)count;
	key.n = (size_t)sqlite3_value_bytes(args[0]);
	if (row_of_time_key(key, &seq))
		sqlite3_result_int64(call, seq);
	else
		sqlite3_result_error(call, "a record has a key that this program did not make", -1);
}

/* Behind row number and value: the columns of a packed table, or what they are made of in a table of columns. */
static void add_packed_columns(struct buf *sql, const struct record_type *type, bool is_source)
{
	if (row_has_key_column(type))
		buf_addf(sql, ", \"%s\"", type->fields[type->key].name);
	for (int i = 0; i < type->index_count; i++) {
		const struct record_index *index = &type->indexes[i];
		const char                *hash = type->fields[index->hash].name;

		if (!sqlite_is_in_file(index))
			continue;
		if (is_source && index->only_field != NO_FIELD)
			buf_addf(sql, ", iif(\"%s\" = %d, \"%s\", NULL)", type->fields[index->only_field].name,
			         index->only_value, hash);
		else
			buf_addf(sql, ", \"%s\"", is_source ? hash : index->name);
	}
	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f))
			buf_addf(sql, ", \"%s\"", type->fields[f].name);
}

/* Everything from the table of columns, which goes. */
static enum rc move_over(sqlite3 *db, const struct record_type *type, struct buf *sql, struct err *e)
{
	const char *key = type->fields[type->key].name;
	enum rc     rc;

	if ((rc = make_columns(db, type, e)))
		return rc;
	sqlite3_create_function(db, "time_number", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, time_number, NULL,
	                        NULL);
	buf_reset(sql);
	buf_addf(sql, "INSERT INTO \"%s" SQLITE_PACKED "\" (seq, value", type->name);
	add_packed_columns(sql, type, false);
	buf_add_text(sql, ") SELECT ");
	if (type->has_time_key) /* of one moment, those that came first are first */
		buf_addf(
		        sql,
		        "time_number(\"%s\") + row_number() OVER (PARTITION BY time_number(\"%s\") ORDER BY seq) - 1, ",
		        key, key);
	else
		buf_add_text(sql, "seq, ");
	add_packed_value(sql, type, "");
	add_packed_columns(sql, type, true);
	buf_addf(sql, " FROM \"%s\"; DROP TABLE \"%s\";", type->name, type->name);
	return exec_buf(db, sql, e);
}

static enum rc make_packed(sqlite3 *db, const struct record_type *type, struct err *e)
{
	CLEANUP(buf_fini) struct buf sql = BUF(SQL_MAX);
	int64_t                      is_older = 0;
	enum rc                      rc;

	buf_addf(&sql, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '%s'", type->name);
	if ((rc = sqlite_read_number(db, sql.p, &is_older, e)))
		return rc;
	buf_reset(&sql);
	add_packed_table(&sql, type);
	rc = exec_buf(db, &sql, e);
	if (!rc && is_older)
		rc = move_over(db, type, &sql, e);
	buf_reset(&sql);
	add_view(&sql, type);
	return rc ? rc : exec_buf(db, &sql, e);
}

static enum rc make_type(sqlite3 *db, const struct record_type *type, struct err *e)
{
	enum rc rc;

	if (type->is_packed)
		return make_packed(db, type, e);
	rc = make_columns(db, type, e);
	for (int i = 0; !rc && i < type->index_count; i++)
		if (sqlite_is_in_file(&type->indexes[i]))
			rc = make_index(db, type, &type->indexes[i], e);
	return rc;
}

enum rc sqlite_check_identity(sqlite3 *db, bool may_be_new, struct err *e)
{
	int64_t id = 0, version = 0, objects = 0;
	enum rc rc;

	if ((rc = sqlite_read_number(db, "PRAGMA application_id", &id, e)) ||
	    (rc = sqlite_read_number(db, "PRAGMA user_version", &version, e)) ||
	    (rc = sqlite_read_number(db, "SELECT count(*) FROM sqlite_schema", &objects, e)))
		return rc;
	if (id != APPLICATION_ID && (objects > 0 || !may_be_new))
		return sqlite_is_foreign(e);
	if (version > SQLITE_SCHEMA_VERSION)
		return err_set(e, RC_CORRUPT,
		               SQLITE_STORE_WORDS
		               " has schema version %d, this program knows up to %d: use a newer one",
		               (int)version, SQLITE_SCHEMA_VERSION);
	return RC_OK;
}

enum rc sqlite_prepare_schema(sqlite3 *db, const struct record_type *const *types, size_t type_count, bool may_be_new,
                              struct err *e)
{
	enum rc rc = sqlite_check_identity(db, may_be_new, e);
	char    stamp[96];

	if (rc || (rc = sqlite_exec(db, "BEGIN IMMEDIATE", e)))
		return rc;
	for (size_t i = 0; !rc && i < type_count; i++)
		rc = make_type(db, types[i], e);
	(void)snprintf(stamp, sizeof(stamp), "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
	               APPLICATION_ID, SQLITE_SCHEMA_VERSION); /* fits */
	if (!rc)
		rc = sqlite_exec(db, stamp, e);
	if (rc)
		rc_ignore(sqlite_exec(db, "ROLLBACK", NULL)); /* the first failure is the one to report */
	return rc;
}
