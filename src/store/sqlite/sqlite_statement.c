/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_statement.c - the texts of statements, and those that are prepared.
 *
 * Texts are built from the record type at first use, prepared, and kept by the connection; a claim in the steady state
 * compiles nothing. An update names only the columns that changed, because SQLite rewrites every index that has a named
 * column; an insert names only those that have a value, for the same reason that nobody binds what is not there. A
 * cursor is the sort value and row number of the last record seen, so a page costs the same wherever it begins.
 */
#include <assert.h>
#include <string.h>

#include "store/sqlite/sqlite_private.h"
#include "store/sqlite/sqlite_row.h"
#include "store/sqlite/sqlite_statement.h"

enum { SQL_MAX = 8192 };

static void add_long_columns(struct buf *sql, const struct record_type *type)
{
	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f))
			buf_addf(sql, ", \"%s\"", type->fields[f].name);
}

static void add_columns(struct buf *sql, const struct record_type *type, uint64_t fields)
{
	if (type->is_packed) {
		buf_add_text(sql, "seq, value");
		add_long_columns(sql, type);
		return;
	}
	buf_add_text(sql, "seq, version");
	for (int f = 0; f < type->field_count; f++)
		if (statement_has_field(fields, f))
			buf_addf(sql, ", \"%s\"", type->fields[f].name);
}

/* The column that orders the query. */
static const char *sort_column(const struct statement_key *key)
{
	int field = query_sort_field(&(struct query){ .type = key->type, .index = key->index });

	return field == NO_FIELD || sqlite_is_time_sorted(key->type, field) ? "seq" : key->type->fields[field].name;
}

/* Where the rows are. */
static void add_table(struct buf *sql, const struct record_type *type)
{
	buf_addf(sql, "\"%s%s\"", type->name, type->is_packed ? SQLITE_PACKED : "");
}

static void build_conditions(struct buf *sql, const struct statement_key *key)
{
	const struct record_type  *type = key->type;
	const struct record_index *index = key->index >= 0 ? &type->indexes[key->index] : NULL;
	const char                *sort = sort_column(key);
	char                       after = key->flags & DESCENDING ? '<' : '>';

	buf_add_text(sql, " WHERE ");
	if (index)
		buf_addf(sql, "\"%s\" = ?%d", type->is_packed ? index->name : type->fields[index->hash].name, AT_HASH);
	else
		buf_add_text(sql, "true");
	if (index && index->only_field != NO_FIELD && !type->is_packed)
		buf_addf(sql, " AND \"%s\" = %d", type->fields[index->only_field].name, index->only_value);
	if (key->flags & WITH_PREFIX)
		buf_addf(sql, " AND \"%s\" >= ?%d AND \"%s\" < ?%d", sort, AT_PREFIX, sort, AT_PREFIX_END);
	if (key->flags & WITH_MAX)
		buf_addf(sql, " AND \"%s\" <= ?%d", sort, AT_MAX);
	if (key->flags & WITH_FROM)
		buf_addf(sql, " AND \"%s\" >= ?%d", sort, AT_FROM);
	if (key->flags & WITH_TO)
		buf_addf(sql, " AND \"%s\" < ?%d", sort, AT_TO);
	if (key->flags & WITH_CURSOR && strcmp(sort, "seq") == 0)
		buf_addf(sql, " AND seq %c ?%d", after, AT_CURSOR_SEQ);
	else if (key->flags & WITH_CURSOR)
		buf_addf(sql, " AND (\"%s\", seq) %c (?%d, ?%d)", sort, after, AT_CURSOR_SORT, AT_CURSOR_SEQ);
}

static void build_query(struct buf *sql, const struct statement_key *key)
{
	const char *sort = sort_column(key);
	const char *order = key->flags & DESCENDING ? " DESC" : "";

	buf_add_text(sql, "SELECT ");
	add_columns(sql, key->type, key->fields);
	buf_add_text(sql, " FROM ");
	add_table(sql, key->type);
	build_conditions(sql, key);
	buf_add_text(sql, " ORDER BY ");
	if (strcmp(sort, "seq") != 0)
		buf_addf(sql, "\"%s\"%s, ", sort, order);
	buf_addf(sql, "seq%s LIMIT ?%d", order, AT_LIMIT);
}

/* All records with time keys: one row has many of them. */
static bool is_timed_list(const struct statement_key *key)
{
	return key->type->has_time_key && key->index < 0;
}

/* Each record is a line of its row's value (sqlite_segment.c). */
static const char count_lines[] = "coalesce(sum(1 + length(value) - length(replace(value, char(10), ''))), 0)";

/* From the row that may hold the first of them on. */
static void build_timed_query(struct buf *sql, const struct statement_key *key)
{
	const char *name = key->type->name;

	buf_add_text(sql, "SELECT ");
	add_columns(sql, key->type, 0);
	buf_addf(sql,
	         " FROM \"%s" SQLITE_PACKED "\" WHERE seq >= ifnull((SELECT max(seq) FROM \"%s" SQLITE_PACKED
	         "\" WHERE seq <= ?%d), ?%d) AND seq <= ?%d ORDER BY seq%s LIMIT ?%d",
	         name, name, AT_FROM, AT_FROM, AT_TO, key->flags & DESCENDING ? " DESC" : "", AT_LIMIT);
}

static void build_insert(struct buf *sql, const struct statement_key *key)
{
	buf_addf(sql, "INSERT INTO \"%s\" (version", key->type->name);
	for (int f = 0; f < key->type->field_count; f++)
		if (key->fields >> f & 1)
			buf_addf(sql, ", \"%s\"", key->type->fields[f].name);
	buf_add_text(sql, ") VALUES (?1");
	for (int f = 0; f < key->type->field_count; f++)
		if (key->fields >> f & 1)
			buf_addf(sql, ", ?%d", f + 2);
	buf_add_text(sql, ") ON CONFLICT DO NOTHING");
}

static void build_update(struct buf *sql, const struct statement_key *key)
{
	buf_addf(sql, "UPDATE \"%s\" SET version = ?1", key->type->name);
	for (int f = 0; f < key->type->field_count; f++)
		if (key->fields >> f & 1)
			buf_addf(sql, ", \"%s\" = ?%d", key->type->fields[f].name, f + 2);
	buf_addf(sql, " WHERE seq = ?%d", key->type->field_count + 2);
}

/* The fields of the key are the indexes that the record is in. */
static void build_packed_insert(struct buf *sql, const struct statement_key *key)
{
	const struct record_type *type = key->type;

	buf_addf(sql, "INSERT INTO \"%s" SQLITE_PACKED "\" (seq, value", type->name);
	if (row_has_key_column(type))
		buf_addf(sql, ", \"%s\"", type->fields[type->key].name);
	for (int i = 0; i < type->index_count; i++)
		if (key->fields >> i & 1)
			buf_addf(sql, ", \"%s\"", type->indexes[i].name);
	add_long_columns(sql, type);
	buf_addf(sql, ") VALUES (?%d, ?%d", AT_SEQ, AT_VALUE);
	if (row_has_key_column(type))
		buf_addf(sql, ", ?%d", AT_KEY);
	for (int i = 0; i < type->index_count; i++)
		if (key->fields >> i & 1)
			buf_addf(sql, ", ?%d", AT_INDEXES + i);
	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f))
			buf_addf(sql, ", ?%d", AT_INDEXES + type->index_count + f);
	buf_add_text(sql, ") ON CONFLICT DO NOTHING");
}

static void build_packed_update(struct buf *sql, const struct statement_key *key)
{
	const struct record_type *type = key->type;

	buf_addf(sql, "UPDATE \"%s" SQLITE_PACKED "\" SET value = ?%d", type->name, AT_VALUE);
	for (int i = 0; i < type->index_count; i++)
		if (sqlite_is_in_file(&type->indexes[i]))
			buf_addf(sql, ", \"%s\" = ?%d", type->indexes[i].name, AT_INDEXES + i);
	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f))
			buf_addf(sql, ", \"%s\" = ?%d", type->fields[f].name, AT_INDEXES + type->index_count + f);
	buf_addf(sql, " WHERE seq = ?%d", AT_SEQ);
}

enum rc sqlite_prepare(struct sqlite_connection *c, const struct statement_key *key, sqlite3_stmt **ret, struct err *e)
{
	CLEANUP(buf_fini) struct buf sql = BUF(SQL_MAX);
	const struct record_type    *type = key->type;

	switch ((enum statement_kind)key->kind) {
	case GET:
	case GET_BY_SEQ:
	case ALL:
		buf_add_text(&sql, "SELECT ");
		add_columns(&sql, type, 0);
		buf_add_text(&sql, " FROM ");
		add_table(&sql, type);
		if (key->kind == GET && type->has_time_key)
			buf_add_text(&sql, " WHERE seq <= ?1 ORDER BY seq DESC");
		else if (key->kind != ALL)
			buf_addf(&sql, " WHERE \"%s\" = ?1", key->kind == GET ? type->fields[type->key].name : "seq");
		break;
	case QUERY: (is_timed_list(key) ? build_timed_query : build_query)(&sql, key); break;
	case COUNT:
		buf_addf(&sql, "SELECT %s FROM ", is_timed_list(key) ? count_lines : "count(*)");
		add_table(&sql, type);
		build_conditions(&sql, key);
		break;
	case INSERT: (type->is_packed ? build_packed_insert : build_insert)(&sql, key); break;
	case UPDATE: (type->is_packed ? build_packed_update : build_update)(&sql, key); break;
	case DELETE:
		buf_add_text(&sql, "DELETE FROM ");
		add_table(&sql, type);
		buf_add_text(&sql, " WHERE seq = ?1");
		break;
	}
	assert(!sql.is_full);
	if (sqlite3_prepare_v3(c->db, sql.p, (int)sql.n, SQLITE_PREPARE_PERSISTENT, ret, NULL) != SQLITE_OK)
		return sqlite_failed(c->db, "prepare a statement", e);
	return RC_OK;
}

static bool is_same_key(const struct statement_key *a, const struct statement_key *b)
{
	return a->type == b->type && a->kind == b->kind && a->index == b->index && a->flags == b->flags &&
	       a->fields == b->fields;
}

static void forget_statements(struct sqlite_connection *c)
{
	for (size_t i = 0; i < STATEMENTS_MAX; i++)
		sqlite3_finalize(c->statements[i].stmt);
	memset(c->statements, 0, sizeof(c->statements));
	c->statement_count = 0;
}

enum rc sqlite_statement(struct sqlite_connection *c, struct statement_key key, sqlite3_stmt **ret, struct err *e)
{
	uint64_t hash = ((uint64_t)(uintptr_t)key.type >> 4) ^ ((uint64_t)key.kind << 40) ^
	                ((uint64_t)(uint8_t)key.index << 48) ^ ((uint64_t)key.flags << 56) ^ key.fields;
	size_t  at = (size_t)((hash * 0x9e3779b97f4a7c15ull) >> 56) % STATEMENTS_MAX;
	enum rc rc;

	while (c->statements[at].stmt && !is_same_key(&c->statements[at].key, &key))
		at = (at + 1) % STATEMENTS_MAX;
	if (!c->statements[at].stmt) {
		if (c->statement_count >= STATEMENTS_MAX / 2) {
			forget_statements(c);
			return sqlite_statement(c, key, ret, e);
		}
		rc = sqlite_prepare(c, &key, &c->statements[at].stmt, e);
		if (rc)
			return rc;
		c->statements[at].key = key;
		c->statement_count++;
	}
	*ret = c->statements[at].stmt;
	return RC_OK;
}

enum rc sqlite_run(sqlite3_stmt *stmt, struct err *e)
{
	enum rc rc = RC_OK;

	if (sqlite3_get_autocommit(sqlite3_db_handle(stmt)))
		return sqlite_is_undone(e);
	if (sqlite3_step(stmt) != SQLITE_DONE)
		rc = sqlite_failed(sqlite3_db_handle(stmt), "write a record", e);
	sqlite3_reset(stmt);
	return rc;
}

void sqlite_disconnect(struct sqlite_connection *c)
{
	forget_statements(c);
	sqlite3_finalize(c->begin);
	sqlite3_finalize(c->commit);
	buf_fini(&c->row);
	segment_row_fini(&c->made);
	segment_fini(&c->cut);
	segment_fini(&c->seen);
	for (size_t i = 0; i < c->unique_count; i++)
		unique_fini(&c->uniques[i]);
	sqlite3_close(c->db);
	c->db = NULL;
}
