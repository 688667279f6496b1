/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_session.c - get, query, count and apply as SQL.
 *
 * Statement texts are built from the record type at first use, prepared, and kept by the connection; a claim in the
 * steady state compiles nothing. An update names only the columns that changed, because SQLite rewrites every index
 * that has a named column; an insert names only those that have a value, for the same reason that nobody binds what is
 * not there. A cursor is the sort value and row number of the last record seen, so a page costs the same wherever it
 * begins.
 */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/sqlite/sqlite_private.h"

enum statement_kind { GET = 1, GET_BY_SEQ, QUERY, COUNT, INSERT, UPDATE, DELETE };
enum { WITH_CURSOR = 1, WITH_PREFIX = 2, WITH_MAX = 4, WITH_FROM = 8, WITH_TO = 16, DESCENDING = 32, SQL_MAX = 8192 };

/* Numbers of the parameters in a query. */
enum { AT_HASH = 1, AT_PREFIX, AT_PREFIX_END, AT_MAX, AT_FROM, AT_TO, AT_CURSOR_SORT, AT_CURSOR_SEQ, AT_LIMIT };

/* Which fields a statement reads: 0 stands for all. */
static bool has_column(uint64_t fields, int f)
{
	return !fields || (fields >> f & 1);
}

static void add_columns(struct buf *sql, const struct record_type *type, uint64_t fields)
{
	buf_add_text(sql, "seq, version");
	for (int f = 0; f < type->field_count; f++)
		if (has_column(fields, f))
			buf_addf(sql, ", \"%s\"", type->fields[f].name);
}

/* The column that orders the query. */
static const char *sort_column(const struct statement_key *key)
{
	int field = query_sort_field(&(struct query){ .type = key->type, .index = key->index });

	return field == NO_FIELD ? "seq" : key->type->fields[field].name;
}

static void build_conditions(struct buf *sql, const struct statement_key *key)
{
	const struct record_type  *type = key->type;
	const struct record_index *index = key->index >= 0 ? &type->indexes[key->index] : NULL;
	const char                *sort = sort_column(key);
	char                       after = key->flags & DESCENDING ? '<' : '>';

	buf_add_text(sql, " WHERE ");
	if (index)
		buf_addf(sql, "\"%s\" = ?%d", type->fields[index->hash].name, AT_HASH);
	else
		buf_add_text(sql, "true");
	if (index && index->only_field != NO_FIELD)
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
	buf_addf(sql, " FROM \"%s\"", key->type->name);
	build_conditions(sql, key);
	buf_add_text(sql, " ORDER BY ");
	if (strcmp(sort, "seq") != 0)
		buf_addf(sql, "\"%s\"%s, ", sort, order);
	buf_addf(sql, "seq%s LIMIT ?%d", order, AT_LIMIT);
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

static enum rc prepare(struct sqlite_connection *c, const struct statement_key *key, sqlite3_stmt **ret, struct err *e)
{
	CLEANUP(buf_fini) struct buf sql;
	const struct record_type    *type = key->type;

	buf_init(&sql, SQL_MAX);
	switch ((enum statement_kind)key->kind) {
	case GET:
	case GET_BY_SEQ:
		buf_add_text(&sql, "SELECT ");
		add_columns(&sql, type, 0);
		buf_addf(&sql, " FROM \"%s\" WHERE \"%s\" = ?1", type->name,
		         key->kind == GET ? type->fields[type->key].name : "seq");
		break;
	case QUERY: build_query(&sql, key); break;
	case COUNT:
		buf_addf(&sql, "SELECT count(*) FROM \"%s\"", type->name);
		build_conditions(&sql, key);
		break;
	case INSERT: build_insert(&sql, key); break;
	case UPDATE: build_update(&sql, key); break;
	case DELETE: buf_addf(&sql, "DELETE FROM \"%s\" WHERE seq = ?1", type->name); break;
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

/* The prepared statement for the key; reset it after use. */
static enum rc statement(struct session *s, struct statement_key key, sqlite3_stmt **ret, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	uint64_t                  hash = ((uint64_t)(uintptr_t)key.type >> 4) ^ ((uint64_t)key.kind << 40) ^
	                ((uint64_t)(uint8_t)key.index << 48) ^ ((uint64_t)key.flags << 56) ^ key.fields;
	size_t  at = (size_t)((hash * 0x9e3779b97f4a7c15ull) >> 56) % STATEMENTS_MAX;
	enum rc rc;

	while (c->statements[at].stmt && !is_same_key(&c->statements[at].key, &key))
		at = (at + 1) % STATEMENTS_MAX;
	if (!c->statements[at].stmt) {
		if (c->statement_count >= STATEMENTS_MAX / 2) {
			forget_statements(c);
			return statement(s, key, ret, e);
		}
		rc = prepare(c, &key, &c->statements[at].stmt, e);
		if (rc)
			return rc;
		c->statements[at].key = key;
		c->statement_count++;
	}
	*ret = c->statements[at].stmt;
	return RC_OK;
}

void sqlite_disconnect(struct sqlite_connection *c)
{
	forget_statements(c);
	sqlite3_finalize(c->begin);
	sqlite3_finalize(c->commit);
	for (size_t i = 0; i < c->unique_count; i++)
		unique_fini(&c->uniques[i]);
	sqlite3_close(c->db);
	c->db = NULL;
}

static void bind_text(sqlite3_stmt *stmt, int at, struct str text)
{
	sqlite3_bind_text(stmt, at, text.p ? text.p : "", (int)text.n, SQLITE_STATIC);
}

static void bind_value(sqlite3_stmt *stmt, int at, enum field_kind kind, struct value v)
{
	if (kind == FIELD_TEXT)
		bind_text(stmt, at, v.text);
	else
		sqlite3_bind_int64(stmt, at, v.number);
}

/* Absent fields are NULL, but for those that order an index. */
static bool is_null(const struct record_type *type, int field, const void *record)
{
	return record_is_absent(type, field, record) && !sqlite_is_sort_field(type, field);
}

/* The current row into the record; its texts are copied to the arena, or last until the next step without one. */
static void fill_record(struct arena *a, const struct record_type *type, uint64_t fields, sqlite3_stmt *stmt,
                        void *record)
{
	int column = 2;

	record_set_version(type, record, (uint64_t)sqlite3_column_int64(stmt, 1));
	for (int f = 0; f < type->field_count; f++) {
		struct value v = { 0 };

		if (!has_column(fields, f))
			continue;
		if (type->fields[f].kind == FIELD_TEXT) {
			const char *text = (const char *)sqlite3_column_text(stmt, column);

			if (text)
				v.text = str_of(text, (size_t)sqlite3_column_bytes(stmt, column));
			if (text && a)
				v.text = str_dup(a, v.text);
		} else {
			v.number = sqlite3_column_int64(stmt, column);
		}
		record_set(type, f, record, v);
		column++;
	}
}

/* Read a row and believe it only after a look: the file may have been changed by other hands. */
static enum rc take_row(struct session *s, const struct record_type *type, sqlite3_stmt *stmt, struct stored *ret,
                        struct err *e)
{
	*ret = (struct stored){ arena_alloc(s->arena, type->size), sqlite3_column_int64(stmt, 0) };
	fill_record(s->arena, type, 0, stmt, ret->record);
	return record_check(type, ret->record, e);
}

static enum rc step_get(struct session *s, const struct record_type *type, sqlite3_stmt *stmt, struct stored *ret,
                        struct err *e)
{
	enum rc rc;

	switch (sqlite3_step(stmt)) {
	case SQLITE_ROW: rc = take_row(s, type, stmt, ret, e); break;
	case SQLITE_DONE: rc = RC_NOT_FOUND; break;
	default: rc = sqlite_failed(sqlite3_db_handle(stmt), "read a record", e); break;
	}
	sqlite3_reset(stmt);
	return rc;
}

/* NULL: nobody counts them. */
static struct row_count *find_row_count(struct session *s, const struct record_type *type)
{
	struct sqlite_connection *c = s->connection;

	for (size_t i = 0; type->is_often_empty && i < c->counted_types; i++)
		if (c->row_counts[i].type == type)
			return &c->row_counts[i];
	return NULL;
}

enum rc sqlite_get(struct session *s, const struct record_type *type, struct str key, struct stored *ret, struct err *e)
{
	const struct row_count *count = find_row_count(s, type);
	sqlite3_stmt           *stmt;
	enum rc                 rc;

	if (count && !count->rows)
		return RC_NOT_FOUND;
	rc = statement(s, (struct statement_key){ type, GET, 0, 0, 0 }, &stmt, e);
	if (rc)
		return rc;
	bind_text(stmt, 1, key);
	return step_get(s, type, stmt, ret, e);
}

static struct unique_index *find_unique_index(struct session *s, const struct record_type *type, int index)
{
	struct sqlite_connection *c = s->connection;

	for (size_t i = 0; i < c->unique_count; i++)
		if (c->uniques[i].type == type && c->uniques[i].index == index)
			return &c->uniques[i];
	assert(!"a unique index that the store was not opened with");
	return NULL;
}

enum rc sqlite_find_unique(struct session *s, const struct record_type *type, int index, struct value v,
                           struct stored *ret, struct err *e)
{
	struct unique_index *u = find_unique_index(s, type, index);
	int                  field = type->indexes[index].hash;
	size_t               at = 0;
	int64_t              seq;

	while ((seq = unique_candidate(u, v, &at))) {
		sqlite3_stmt *stmt;
		enum rc       rc = statement(s, (struct statement_key){ type, GET_BY_SEQ, 0, 0, 0 }, &stmt, e);

		if (rc)
			return rc;
		sqlite3_bind_int64(stmt, 1, seq);
		rc = step_get(s, type, stmt, ret, e);
		if (rc)
			return rc == RC_NOT_FOUND ? err_set(e, RC_INTERNAL, "a unique value without its row") : rc;
		if (value_cmp(type->fields[field].kind, v, record_value(type, field, ret->record)) == 0)
			return RC_OK;
	}
	return RC_NOT_FOUND;
}

static enum rc bind_query(struct session *s, sqlite3_stmt *stmt, const struct query *q, struct err *e)
{
	int          sort_field = query_sort_field(q);
	struct value sort;
	int64_t      seq;
	enum rc      rc = q->cursor.n ? query_read_cursor(q, &seq, &sort, e) : RC_OK;

	if (q->index >= 0)
		bind_value(stmt, AT_HASH, q->type->fields[q->type->indexes[q->index].hash].kind, q->hash);
	if (q->sort_prefix.n) {
		bind_text(stmt, AT_PREFIX, q->sort_prefix);
		/* 0xff is in no UTF-8 text, so this is behind everything that begins with the prefix */
		bind_text(stmt, AT_PREFIX_END, str_format(s->arena, "%.*s\xff", STR_ARG(q->sort_prefix)));
	}
	if (q->has_sort_max)
		sqlite3_bind_int64(stmt, AT_MAX, q->sort_max);
	if (q->sort_from.n)
		bind_text(stmt, AT_FROM, q->sort_from);
	if (q->sort_to.n)
		bind_text(stmt, AT_TO, q->sort_to);
	sqlite3_bind_int64(stmt, AT_LIMIT, (int64_t)query_looks(q));
	if (rc || !q->cursor.n)
		return rc;
	sqlite3_bind_int64(stmt, AT_CURSOR_SEQ, seq);
	if (sort_field != NO_FIELD)
		bind_value(stmt, AT_CURSOR_SORT, q->type->fields[sort_field].kind, sort);
	return RC_OK;
}

/* What decides about a record, and where the next page begins behind it. */
static uint64_t looked_fields(const struct query *q)
{
	int sort = query_sort_field(q);

	if (!q->filter)
		return 0;
	return q->filter->fields | 1ull << q->type->key | (sort == NO_FIELD ? 0 : 1ull << sort);
}

/* Statements of one list: rows in order, and with a filter also whole rows by their number. */
struct listing {
	sqlite3_stmt *rows, *whole;
};

/* Getting one may forget all others when there are too many; then the third has room for sure. */
static enum rc get_listing(struct session *s, struct statement_key rows, struct listing *ret, struct err *e)
{
	struct statement_key whole = { rows.type, GET_BY_SEQ, 0, 0, 0 };
	enum rc              rc = rows.fields ? statement(s, whole, &ret->whole, e) : RC_OK;

	if (!rc)
		rc = statement(s, rows, &ret->rows, e);
	return !rc && rows.fields ? statement(s, whole, &ret->whole, e) : rc;
}

/* Look at a row of looked_fields(); when it is wanted, read the rest of it, too. *last lasts until the next step. */
static enum rc look_at_row(struct session *s, const struct query *q, const struct listing *l, struct stored *last,
                           struct stored *ret, struct err *e)
{
	fill_record(NULL, q->type, looked_fields(q), l->rows, last->record);
	last->handle = sqlite3_column_int64(l->rows, 0);
	if (!query_wants(q, last->record))
		return RC_NOT_FOUND;
	sqlite3_bind_int64(l->whole, 1, last->handle);
	return step_get(s, q->type, l->whole, ret, e);
}

/* A damaged row must not hide the others: it is left out and told. */
static enum rc read_page(struct session *s, const struct query *q, const struct listing *l, struct stored_page *ret,
                         struct err *e)
{
	struct stored last = { .record = q->filter ? arena_alloc(s->arena, q->type->size) : NULL }, found;
	size_t        looked = 0, bytes = 0;
	int           step = SQLITE_ROW;

	ret->items = arena_alloc(s->arena, q->limit * sizeof(*ret->items));
	while (!query_is_full(q, ret, looked, bytes) && (step = sqlite3_step(l->rows)) == SQLITE_ROW) {
		struct err damage = { 0 };
		enum rc    rc;

		looked++;
		if (q->filter) {
			rc = look_at_row(s, q, l, &last, &found, &damage);
		} else {
			rc = take_row(s, q->type, l->rows, &found, &damage);
			last = found;
		}
		if (!rc) {
			ret->items[ret->count++] = found;
			bytes += record_bytes(q->type, found.record);
		} else if (rc != RC_NOT_FOUND) {
			log_write(LOG_WARNING, "store", NULL, 0, "a record is left out: %s", damage.msg);
		}
	}
	if (step != SQLITE_ROW && step != SQLITE_DONE)
		return sqlite_failed(sqlite3_db_handle(l->rows), "read records", e);
	if (step == SQLITE_ROW && !(q->is_last && ret->count))
		ret->next = query_make_cursor(s->arena, q, last.handle, last.record);
	return RC_OK;
}

static enum rc query_page(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct statement_key key = { q->type, QUERY, (int8_t)q->index, 0, looked_fields(q) };
	struct listing       l = { 0 };
	enum rc              rc;

	key.flags = (uint8_t)((q->cursor.n ? WITH_CURSOR : 0) | (q->sort_prefix.n ? WITH_PREFIX : 0) |
	                      (q->has_sort_max ? WITH_MAX : 0) | (q->sort_from.n ? WITH_FROM : 0) |
	                      (q->sort_to.n ? WITH_TO : 0) | (q->is_descending ? DESCENDING : 0));
	rc = get_listing(s, key, &l, e);
	if (rc)
		return rc;
	rc = bind_query(s, l.rows, q, e);
	if (!rc)
		rc = read_page(s, q, &l, ret, e);
	sqlite3_reset(l.rows);
	return rc;
}

/* An empty page is the last one, also after damaged records: who asks for the first must not take them for the end. */
enum rc sqlite_query(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct query next = *q;
	enum rc      rc;

	do {
		*ret = (struct stored_page){ 0 };
		rc = query_page(s, &next, ret, e);
		next.cursor = ret->next;
	} while (!rc && !ret->count && ret->next.n && !q->filter);
	return rc;
}

enum rc sqlite_count(struct session *s, const struct record_type *type, int index, struct value hash, int64_t *ret,
                     struct err *e)
{
	sqlite3_stmt *stmt;
	enum rc       rc = statement(s, (struct statement_key){ type, COUNT, (int8_t)index, 0, 0 }, &stmt, e);

	if (rc)
		return rc;
	if (index >= 0)
		bind_value(stmt, AT_HASH, type->fields[type->indexes[index].hash].kind, hash);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		*ret = sqlite3_column_int64(stmt, 0);
	else
		rc = sqlite_failed(sqlite3_db_handle(stmt), "count records", e);
	sqlite3_reset(stmt);
	return rc;
}

static enum rc run_write(sqlite3_stmt *stmt, struct err *e)
{
	enum rc rc = RC_OK;

	if (sqlite3_step(stmt) != SQLITE_DONE)
		rc = sqlite_failed(sqlite3_db_handle(stmt), "write a record", e);
	sqlite3_reset(stmt);
	return rc;
}

/* INSERT or UPDATE of these fields. */
static enum rc write_fields(struct session *s, const struct session_entry *entry, enum statement_kind kind,
                            uint64_t fields, struct err *e)
{
	const struct record_type *type = entry->type;
	sqlite3_stmt             *stmt;
	enum rc                   rc = statement(s, (struct statement_key){ type, kind, 0, 0, fields }, &stmt, e);

	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, (int64_t)record_version(type, entry->after));
	for (int f = 0; f < type->field_count; f++)
		if (fields >> f & 1 && is_null(type, f, entry->after))
			sqlite3_bind_null(stmt, f + 2);
		else if (fields >> f & 1)
			bind_value(stmt, f + 2, type->fields[f].kind, record_value(type, f, entry->after));
	if (kind == UPDATE)
		sqlite3_bind_int64(stmt, type->field_count + 2, entry->handle);
	return run_write(stmt, e);
}

/* RC_CONFLICT: there is one already, and nothing was written. */
static enum rc apply_insert(struct session *s, const struct session_entry *entry, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	uint64_t                  present = 0;
	enum rc                   rc;

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
	enum rc       rc = statement(s, (struct statement_key){ type, DELETE, 0, 0, 0 }, &stmt, e);

	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, seq);
	return run_write(stmt, e);
}

/* What is kept in memory follows what was written. */
static enum rc note_change(struct session *s, const struct record_type *type, int64_t seq, const void *before,
                           const void *after, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	struct row_count         *count = find_row_count(s, type);

	for (size_t i = 0; i < c->unique_count; i++)
		if (c->uniques[i].type == type && !unique_note(&c->uniques[i], seq, before, after))
			return err_set(
			        e, RC_UNAVAILABLE,
			        "a row of %s was changed by another program; what is known of the file is read again",
			        type->name);
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
	} else {
		rc = entry->changes ? write_fields(s, entry, UPDATE, entry->changes, e) : RC_OK;
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
	enum rc rc = apply_inserts(s, e);

	for (const struct session_entry *entry = NULL; !rc && (entry = session_next_change(s, entry));)
		if (entry->before)
			rc = apply_one(s, entry, e);
	return rc;
}
