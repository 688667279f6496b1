/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_session.c - get, query, count and apply as SQL.
 *
 * Statement texts are built from the record type at first use, prepared, and kept by the connection; a claim in the
 * steady state compiles nothing. An update names only the columns that changed, because SQLite rewrites every index
 * that has a named column; an insert names only those that have a value, for the same reason that nobody binds what is not there. A cursor is the sort value and row number of the last record seen, so a page costs the
 * same wherever it begins.
 */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/sqlite_ops.h"

enum statement_kind { GET = 1, GET_BY_SEQ, QUERY, COUNT, INSERT, UPDATE, DELETE };
enum { WITH_CURSOR = 1, WITH_PREFIX = 2, WITH_MAX = 4, WITH_FROM = 8, WITH_TO = 16, DESCENDING = 32, SQL_MAX = 8192 };

/* Numbers of the parameters in a query. */
enum { AT_HASH = 1, AT_PREFIX, AT_PREFIX_END, AT_MAX, AT_FROM, AT_TO, AT_CURSOR_SORT, AT_CURSOR_SEQ, AT_LIMIT };

static void add_columns(struct buf *sql, const struct record_type *type)
{
	buf_add_text(sql, "seq, version");
	for (int f = 0; f < type->field_count; f++)
		buf_addf(sql, ", \"%s\"", type->fields[f].name);
}

static void build_get(struct buf *sql, const struct statement_key *key)
{
	buf_add_text(sql, "SELECT ");
	add_columns(sql, key->type);
	buf_addf(sql, " FROM \"%s\" WHERE \"%s\" = ?1", key->type->name, key->type->fields[key->type->key].name);
}

static void build_get_by_seq(struct buf *sql, const struct statement_key *key)
{
	buf_add_text(sql, "SELECT ");
	add_columns(sql, key->type);
	buf_addf(sql, " FROM \"%s\" WHERE seq = ?1", key->type->name);
}

/* The column that orders the query. */
static const char *sort_column(const struct statement_key *key)
{
	int field = query_sort_field(&(struct query){ .type = key->type, .index = key->index });

	return field == NO_FIELD ? "seq" : key->type->fields[field].name;
}

static void build_hash(struct buf *sql, const struct statement_key *key)
{
	const struct record_index *index = &key->type->indexes[key->index];

	buf_addf(sql, "\"%s\" = ?%d", key->type->fields[index->hash].name, AT_HASH);
	if (index->only_field != NO_FIELD)
		buf_addf(sql, " AND \"%s\" = %d", key->type->fields[index->only_field].name, index->only_value);
}

static void build_cursor(struct buf *sql, const struct statement_key *key, const char *sort)
{
	char after = key->flags & DESCENDING ? '<' : '>';

	if (str_eq(str_from(sort), STR("seq")))
		buf_addf(sql, " AND seq %c ?%d", after, AT_CURSOR_SEQ);
	else
		buf_addf(sql, " AND (\"%s\", seq) %c (?%d, ?%d)", sort, after, AT_CURSOR_SORT, AT_CURSOR_SEQ);
}

static void build_conditions(struct buf *sql, const struct statement_key *key)
{
	const char *sort = sort_column(key);

	buf_add_text(sql, " WHERE ");
	if (key->index >= 0)
		build_hash(sql, key);
	else
		buf_add_text(sql, "true");
	if (key->flags & WITH_PREFIX)
		buf_addf(sql, " AND \"%s\" >= ?%d AND \"%s\" < ?%d", sort, AT_PREFIX, sort, AT_PREFIX_END);
	if (key->flags & WITH_MAX)
		buf_addf(sql, " AND \"%s\" <= ?%d", sort, AT_MAX);
	if (key->flags & WITH_FROM)
		buf_addf(sql, " AND \"%s\" >= ?%d", sort, AT_FROM);
	if (key->flags & WITH_TO)
		buf_addf(sql, " AND \"%s\" < ?%d", sort, AT_TO);
	if (key->flags & WITH_CURSOR)
		build_cursor(sql, key, sort);
}

static void build_query(struct buf *sql, const struct statement_key *key)
{
	const char *sort = sort_column(key);
	const char *order = key->flags & DESCENDING ? " DESC" : "";

	buf_add_text(sql, "SELECT ");
	add_columns(sql, key->type);
	buf_addf(sql, " FROM \"%s\"", key->type->name);
	build_conditions(sql, key);
	buf_add_text(sql, " ORDER BY ");
	if (!str_eq(str_from(sort), STR("seq")))
		buf_addf(sql, "\"%s\"%s, ", sort, order);
	buf_addf(sql, "seq%s LIMIT ?%d", order, AT_LIMIT);
}

static void build_count(struct buf *sql, const struct statement_key *key)
{
	buf_addf(sql, "SELECT count(*) FROM \"%s\"", key->type->name);
	build_conditions(sql, key);
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

static void build_delete(struct buf *sql, const struct statement_key *key)
{
	buf_addf(sql, "DELETE FROM \"%s\" WHERE seq = ?1", key->type->name);
}

static enum rc prepare(struct sqlite_connection *c, const struct statement_key *key, sqlite3_stmt **ret, struct err *e)
{
	static void (*const builders[])(struct buf *, const struct statement_key *) = {
		[GET] = build_get,       [GET_BY_SEQ] = build_get_by_seq, [QUERY] = build_query,
		[COUNT] = build_count,   [INSERT] = build_insert,         [UPDATE] = build_update,
		[DELETE] = build_delete,
	};
	struct buf sql;
	enum rc    rc = RC_OK;

	buf_init(&sql, SQL_MAX);
	builders[key->kind](&sql, key);
	assert(!sql.is_full);
	if (sqlite3_prepare_v3(c->db, sql.p, (int)sql.n, SQLITE_PREPARE_PERSISTENT, ret, NULL) != SQLITE_OK)
		rc = sqlite_failed(c->db, "prepare a statement", e);
	buf_fini(&sql);
	return rc;
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

static void bind_field(sqlite3_stmt *stmt, int at, const struct record_type *type, int field, const void *record)
{
	if (is_null(type, field, record))
		sqlite3_bind_null(stmt, at);
	else
		bind_value(stmt, at, type->fields[field].kind, record_value(type, field, record));
}

/* The current row as a record. */
static struct stored read_row(struct session *s, const struct record_type *type, sqlite3_stmt *stmt)
{
	struct stored stored = { .record = arena_alloc(s->arena, type->size) };

	stored.handle = sqlite3_column_int64(stmt, 0);
	record_set_version(type, stored.record, (uint64_t)sqlite3_column_int64(stmt, 1));
	for (int f = 0; f < type->field_count; f++) {
		struct value v = { 0 };

		if (type->fields[f].kind == FIELD_TEXT) {
			const char *text = (const char *)sqlite3_column_text(stmt, f + 2);

			if (text)
				v.text = str_dup(s->arena, str_of(text, (size_t)sqlite3_column_bytes(stmt, f + 2)));
		} else {
			v.number = sqlite3_column_int64(stmt, f + 2);
		}
		record_set(type, f, stored.record, v);
	}
	return stored;
}

/* Read a row and believe it only after a look: the file may have been changed by other hands. */
static enum rc take_row(struct session *s, const struct record_type *type, sqlite3_stmt *stmt, struct stored *ret,
                        struct err *e)
{
	*ret = read_row(s, type, stmt);
	return record_check(type, ret->record, e);
}

static enum rc step_get(struct session *s, const struct record_type *type, sqlite3_stmt *stmt, struct stored *ret,
                        struct err *e)
{
	struct sqlite_connection *c = s->connection;
	enum rc                   rc;

	switch (sqlite3_step(stmt)) {
	case SQLITE_ROW: rc = take_row(s, type, stmt, ret, e); break;
	case SQLITE_DONE: rc = RC_NOT_FOUND; break;
	default: rc = sqlite_failed(c->db, "read a record", e); break;
	}
	sqlite3_reset(stmt);
	return rc;
}

/* NULL: nobody counts them. */
static struct tally *find_tally(struct session *s, const struct record_type *type)
{
	struct sqlite_connection *c = s->connection;

	for (size_t i = 0; type->is_often_empty && i < c->tally_count; i++)
		if (c->tallies[i].type == type)
			return &c->tallies[i];
	return NULL;
}

enum rc sqlite_get(struct session *s, const struct record_type *type, struct str key, struct stored *ret, struct err *e)
{
	const struct tally *tally = find_tally(s, type);
	sqlite3_stmt       *stmt;
	enum rc             rc;

	if (tally && !tally->rows)
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

static bool is_sorted_by_text(const struct query *q)
{
	int sort = query_sort_field(q);

	return sort != NO_FIELD && q->type->fields[sort].kind == FIELD_TEXT;
}

/* A cursor is "seq:sort value". */
static enum rc bind_cursor(sqlite3_stmt *stmt, const struct query *q, struct err *e)
{
	struct str rest = q->cursor;
	struct str seq_text = str_cut(&rest, ':');
	int64_t    seq, number;

	if (!str_to_int(seq_text, 0, INT64_MAX, &seq))
		return err_set(e, RC_INVALID, "the cursor does not belong to this list");
	sqlite3_bind_int64(stmt, AT_CURSOR_SEQ, seq);
	if (query_sort_field(q) == NO_FIELD)
		return RC_OK;
	if (is_sorted_by_text(q)) {
		bind_text(stmt, AT_CURSOR_SORT, rest);
		return RC_OK;
	}
	if (!str_to_int(rest, INT64_MIN, INT64_MAX, &number))
		return err_set(e, RC_INVALID, "the cursor does not belong to this list");
	sqlite3_bind_int64(stmt, AT_CURSOR_SORT, number);
	return RC_OK;
}

static enum rc bind_query(struct session *s, sqlite3_stmt *stmt, const struct query *q, struct err *e)
{
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
	sqlite3_bind_int64(stmt, AT_LIMIT, (int64_t)q->limit);
	return q->cursor.n ? bind_cursor(stmt, q, e) : RC_OK;
}

static struct str make_cursor(struct session *s, const struct query *q, const struct stored *last)
{
	int          sort = query_sort_field(q);
	struct value v;

	if (sort == NO_FIELD)
		return str_format(s->arena, "%lld", (long long)last->handle);
	v = record_value(q->type, sort, last->record);
	if (is_sorted_by_text(q))
		return str_format(s->arena, "%lld:%.*s", (long long)last->handle, STR_ARG(v.text));
	return str_format(s->arena, "%lld:%lld", (long long)last->handle, (long long)v.number);
}

/* A damaged row must not hide the others: it is left out and told. */
static enum rc read_page(struct session *s, const struct query *q, sqlite3_stmt *stmt, struct stored_page *ret,
                         struct err *e)
{
	struct sqlite_connection *c = s->connection;
	struct stored             last = { 0 };
	size_t                    seen = 0;
	int                       step;

	ret->items = arena_alloc(s->arena, q->limit * sizeof(*ret->items));
	for (; (step = sqlite3_step(stmt)) == SQLITE_ROW; seen++) {
		struct err damage = { 0 };

		assert(seen < q->limit);
		if (take_row(s, q->type, stmt, &last, &damage) == RC_OK)
			ret->items[ret->count++] = last;
		else
			log_write(LOG_WARNING, "store", NULL, 0, "a record is left out: %s", damage.msg);
	}
	if (step != SQLITE_DONE)
		return sqlite_failed(c->db, "read records", e);
	if (seen == q->limit)
		ret->next = make_cursor(s, q, &last);
	return RC_OK;
}

static enum rc query_page(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct statement_key key = { q->type, QUERY, (int8_t)q->index, 0, 0 };
	sqlite3_stmt        *stmt;
	enum rc              rc;

	key.flags = (uint8_t)((q->cursor.n ? WITH_CURSOR : 0) | (q->sort_prefix.n ? WITH_PREFIX : 0) |
	                      (q->has_sort_max ? WITH_MAX : 0) | (q->sort_from.n ? WITH_FROM : 0) |
	                      (q->sort_to.n ? WITH_TO : 0) | (q->is_descending ? DESCENDING : 0));
	rc = statement(s, key, &stmt, e);
	if (rc)
		return rc;
	rc = bind_query(s, stmt, q, e);
	if (!rc)
		rc = read_page(s, q, stmt, ret, e);
	sqlite3_reset(stmt);
	return rc;
}

/* An empty page is the last one, also when nothing but damaged records came before: who asks for the first record must not take them for
 * the end. */
enum rc sqlite_query(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct query next = *q;
	enum rc      rc;

	do {
		*ret = (struct stored_page){ 0 };
		rc = query_page(s, &next, ret, e);
		next.cursor = ret->next;
	} while (!rc && !ret->count && ret->next.n);
	return rc;
}

enum rc sqlite_count(struct session *s, const struct record_type *type, int index, struct value hash, int64_t *ret,
                     struct err *e)
{
	struct sqlite_connection *c = s->connection;
	sqlite3_stmt             *stmt;
	enum rc rc = statement(s, (struct statement_key){ type, COUNT, (int8_t)index, 0, 0 }, &stmt, e);

	if (rc)
		return rc;
	if (index >= 0)
		bind_value(stmt, AT_HASH, type->fields[type->indexes[index].hash].kind, hash);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		*ret = sqlite3_column_int64(stmt, 0);
	else
		rc = sqlite_failed(c->db, "count records", e);
	sqlite3_reset(stmt);
	return rc;
}

static enum rc run_write(struct session *s, sqlite3_stmt *stmt, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	enum rc                   rc = RC_OK;

	if (sqlite3_step(stmt) != SQLITE_DONE)
		rc = sqlite_failed(c->db, "write a record", e);
	sqlite3_reset(stmt);
	return rc;
}

/* RC_CONFLICT: there is one already, and nothing was written. */
static enum rc apply_insert(struct session *s, const struct session_entry *entry, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	const struct record_type *type = entry->type;
	uint64_t                  present = 0;
	sqlite3_stmt             *stmt;
	enum rc                   rc;

	for (int f = 0; f < type->field_count; f++)
		present |= (uint64_t)!is_null(type, f, entry->after) << f;
	rc = statement(s, (struct statement_key){ type, INSERT, 0, 0, present }, &stmt, e);
	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, (int64_t)record_version(type, entry->after));
	for (int f = 0; f < type->field_count; f++)
		if (present >> f & 1)
			bind_value(stmt, f + 2, type->fields[f].kind, record_value(type, f, entry->after));
	rc = run_write(s, stmt, e);
	if (!rc && !sqlite3_changes(c->db))
		rc = err_set(e, RC_CONFLICT, "there is a %s '%.*s' already", type->name, STR_ARG(entry->key));
	return rc;
}

static enum rc apply_update(struct session *s, const struct session_entry *entry, struct err *e)
{
	const struct record_type *type = entry->type;
	uint64_t                  changed = record_changes(type, entry->before, entry->after);
	sqlite3_stmt             *stmt;
	enum rc                   rc;

	if (!changed)
		return RC_OK;
	rc = statement(s, (struct statement_key){ type, UPDATE, 0, 0, changed }, &stmt, e);
	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, (int64_t)record_version(type, entry->after));
	for (int f = 0; f < type->field_count; f++)
		if (changed >> f & 1)
			bind_field(stmt, f + 2, type, f, entry->after);
	sqlite3_bind_int64(stmt, type->field_count + 2, entry->handle);
	return run_write(s, stmt, e);
}

static enum rc apply_delete(struct session *s, const struct record_type *type, int64_t seq, struct err *e)
{
	sqlite3_stmt *stmt;
	enum rc       rc = statement(s, (struct statement_key){ type, DELETE, 0, 0, 0 }, &stmt, e);

	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, seq);
	return run_write(s, stmt, e);
}

/* What is kept in memory follows what was written. */
static void note_change(struct session *s, const struct record_type *type, int64_t seq, const void *before,
                        const void *after)
{
	struct sqlite_connection *c = s->connection;
	struct tally             *tally = find_tally(s, type);

	for (size_t i = 0; i < c->unique_count; i++)
		if (c->uniques[i].type == type)
			unique_note(&c->uniques[i], seq, before, after);
	if (tally)
		tally->rows += (after != NULL) - (before != NULL);
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
		rc = apply_update(s, entry, e);
	}
	if (!rc)
		note_change(s, entry->type, seq, entry->before, entry->after);
	return rc;
}

/* Take the inserts before `end` back: one of them is there already, and others of the same commit shall not pay for that. */
static enum rc undo_inserts(struct session *s, const struct session_entry *end, struct err *e)
{
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry)) != end;) {
		struct stored stored;
		enum rc       rc;

		if (entry->before)
			continue;
		rc = sqlite_get(s, entry->type, entry->key, &stored, e);
		if (!rc)
			rc = apply_delete(s, entry->type, stored.handle, e);
		if (rc)
			return rc;
		note_change(s, entry->type, stored.handle, entry->after, NULL);
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
