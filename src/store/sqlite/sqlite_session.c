/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_session.c - get, query and count as SQL, or by what is kept in memory. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/sqlite/sqlite_packed.h"
#include "store/sqlite/sqlite_private.h"
#include "store/sqlite/sqlite_row.h"
#include "store/sqlite/sqlite_statement.h"
#include "store/sqlite/sqlite_timed.h"

enum { HOT_STEP = 64 };

/* The current row into the record; its texts are copied to the arena, or last until the next step without one. */
static void fill_record(struct arena *a, const struct record_type *type, uint64_t fields, sqlite3_stmt *stmt,
                        void *record)
{
	int column = IN_FIELDS;

	record_set_version(type, record, (uint64_t)sqlite3_column_int64(stmt, IN_VERSION));
	for (int f = 0; f < type->field_count; f++) {
		struct value v = { 0 };

		if (!statement_has_field(fields, f))
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

/* A packed one: these fields; its texts are in the room, which is as large as packed_room() says. */
static bool unpack_record(const struct record_type *type, uint64_t fields, sqlite3_stmt *stmt, char *room, void *record)
{
	size_t      size = (size_t)sqlite3_column_bytes(stmt, IN_VALUE);
	const void *value = sqlite3_column_blob(stmt, IN_VALUE);
	char       *more = room + size + ROW_SLACK;
	int         column = IN_LONG;

	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f)) {
			size_t      n = (size_t)sqlite3_column_bytes(stmt, column);
			const void *text = sqlite3_column_blob(stmt, column++);

			if (n)
				memcpy(more, text, n);
			more[n] = '\0';
			record_set(type, f, record, value_text(str_of(more, n)));
			more += n + 1;
		}
	if (!size)
		return false;
	memcpy(room, value, size);
	return row_unpack(type, fields, room, size, record);
}

static size_t packed_room(const struct record_type *type, sqlite3_stmt *stmt)
{
	size_t size = (size_t)sqlite3_column_bytes(stmt, IN_VALUE) + ROW_SLACK;
	int    column = IN_LONG;

	for (int f = 0; f < type->field_count; f++)
		if (row_has_column(type, f))
			size += (size_t)sqlite3_column_bytes(stmt, column++) + 1;
	return size;
}

/* Read a row and believe it only after a look: the file may have been changed by other hands. */
static enum rc take_row(struct session *s, const struct record_type *type, sqlite3_stmt *stmt, struct stored *ret,
                        struct err *e)
{
	*ret = (struct stored){ arena_alloc(s->arena, type->size), sqlite3_column_int64(stmt, IN_SEQ) };
	if (!type->is_packed)
		fill_record(s->arena, type, 0, stmt, ret->record);
	else if (!unpack_record(type, ~0ull, stmt, arena_alloc(s->arena, packed_room(type, stmt)), ret->record))
		return err_set(e, RC_CORRUPT, SQLITE_ROW_IS_NONE, (long long)ret->handle, type->name);
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

/* Fields that an index in memory is made of. */
static uint64_t memory_fields(const struct record_type *type)
{
	uint64_t fields = 0;

	for (int i = 0; i < type->index_count; i++) {
		const struct record_index *index = &type->indexes[i];

		if (sqlite_is_in_file(index))
			continue;
		fields |= 1ull << index->hash;
		if (index->sort != NO_FIELD)
			fields |= 1ull << index->sort;
		if (index->only_field != NO_FIELD)
			fields |= 1ull << index->only_field;
	}
	return fields;
}

enum rc sqlite_each_row(struct sqlite_connection *c, const struct record_type           *type,
                        void (*visit)(void *arg, int64_t seq, const void *record), void *arg, struct err *e)
{
	void         *record = mem_alloc(type->size);
	uint64_t      fields = memory_fields(type);
	struct arena  a = { 0 };
	sqlite3_stmt *stmt = NULL;
	enum rc       rc = sqlite_prepare(c, &(struct statement_key){ type, ALL, 0, 0, 0 }, &stmt, e);
	int           step = SQLITE_DONE;

	while (!rc && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		bool is_ok = true;

		arena_reset(&a);
		if (type->is_packed)
			is_ok = unpack_record(type, fields, stmt, arena_alloc(&a, packed_room(type, stmt)), record);
		else
			fill_record(NULL, type, 0, stmt, record);
		if (is_ok) /* nobody finds what is damaged; who asks for it by its key is told */
			visit(arg, sqlite3_column_int64(stmt, IN_SEQ), record);
	}
	if (step != SQLITE_DONE)
		rc = sqlite_failed(c->db, "read its records", e);
	sqlite3_finalize(stmt);
	arena_fini(&a);
	free(record);
	return rc;
}

/* NULL: nobody counts them. */
struct row_count *sqlite_row_count(struct session *s, const struct record_type *type)
{
	struct sqlite_connection *c = s->connection;

	for (size_t i = 0; type->is_often_empty && i < c->counted_types; i++)
		if (c->row_counts[i].type == type)
			return &c->row_counts[i];
	return NULL;
}

enum rc sqlite_get(struct session *s, const struct record_type *type, struct str key, struct stored *ret, struct err *e)
{
	const struct row_count *count = sqlite_row_count(s, type);
	sqlite3_stmt           *stmt;
	enum rc                 rc;

	if (count && !count->rows)
		return RC_NOT_FOUND;
	if ((rc = packed_settle(s->connection, type, e)))
		return rc;
	if (type->has_time_key)
		return timed_get(s, type, key, ret, e);
	rc = sqlite_statement(s->connection, (struct statement_key){ type, GET, 0, 0, 0 }, &stmt, e);
	if (rc)
		return rc;
	sqlite_bind_text(stmt, 1, key);
	return step_get(s, type, stmt, ret, e);
}

static enum rc get_by_seq(struct session *s, const struct record_type *type, int64_t seq, struct stored *ret,
                          struct err *e)
{
	const struct sqlite_connection *c = s->connection;
	sqlite3_stmt                   *stmt;
	enum rc                         rc;

	if (!c->is_reader && (c->value_type == type || packed_is_in_place(type)))
		return packed_get(s, type, seq, ret, e);
	rc = sqlite_statement(s->connection, (struct statement_key){ type, GET_BY_SEQ, 0, 0, 0 }, &stmt, e);
	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, seq);
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

/* Another program has deleted it. */
static enum rc row_is_gone(struct session *s, const struct record_type *type, struct err *e)
{
	struct sqlite_connection *c = s->connection;

	c->is_memory_doubted = true;
	return err_set(e, RC_UNAVAILABLE,
	               "a row of %s was deleted by another program; what is known of the file is read again",
	               type->name);
}

enum rc sqlite_find_unique(struct session *s, const struct record_type *type, int index, struct value v,
                           struct stored *ret, struct err *e)
{
	struct unique_index *u = find_unique_index(s, type, index);
	int                  field = type->indexes[index].hash;
	size_t               at = 0;
	int64_t              seq;

	while ((seq = unique_candidate(u, v, &at))) {
		enum rc rc = get_by_seq(s, type, seq, ret, e);

		if (rc)
			return rc == RC_NOT_FOUND ? row_is_gone(s, type, e) : rc;
		if (value_cmp(type->fields[field].kind, v, record_value(type, field, ret->record)) == 0)
			return RC_OK;
	}
	return RC_NOT_FOUND;
}

/* Limits of keys as limits of rows' numbers; read_page() looks at the keys themselves, which say more. */
static void bind_times(sqlite3_stmt *stmt, const struct query *q)
{
	int64_t seq;

	assert(!q->sort_prefix.n);
	if (q->sort_from.n) {
		(void)row_of_time_key(q->sort_from, &seq);
		sqlite3_bind_int64(stmt, AT_FROM, seq);
	}
	if (q->sort_to.n) {
		(void)row_of_time_key(q->sort_to, &seq);
		sqlite3_bind_int64(stmt, AT_TO, seq < INT64_MAX - ROW_SLOTS ? seq + ROW_SLOTS : INT64_MAX);
	}
}

static enum rc bind_query(struct session *s, sqlite3_stmt *stmt, const struct query *q, struct err *e)
{
	int          sort_field = query_sort_field(q);
	struct value sort;
	int64_t      seq;
	enum rc      rc = q->cursor.n ? query_read_cursor(q, &seq, &sort, e) : RC_OK;

	if (q->index >= 0)
		sqlite_bind_value(stmt, AT_HASH, q->type->fields[q->type->indexes[q->index].hash].kind, q->hash);
	if (q->sort_prefix.n) {
		sqlite_bind_text(stmt, AT_PREFIX, q->sort_prefix);
		/* 0xff is in no UTF-8 text, so this is behind everything that begins with the prefix */
		sqlite_bind_text(stmt, AT_PREFIX_END, str_format(s->arena, "%.*s\xff", STR_ARG(q->sort_prefix)));
	}
	if (q->has_sort_max)
		sqlite3_bind_int64(stmt, AT_MAX, q->sort_max);
	if (sort_field != NO_FIELD && sqlite_is_time_sorted(q->type, sort_field)) {
		bind_times(stmt, q);
	} else {
		if (q->sort_from.n)
			sqlite_bind_text(stmt, AT_FROM, q->sort_from);
		if (q->sort_to.n)
			sqlite_bind_text(stmt, AT_TO, q->sort_to);
	}
	sqlite3_bind_int64(stmt, AT_LIMIT, (int64_t)query_looks(q));
	if (rc || !q->cursor.n)
		return rc;
	sqlite3_bind_int64(stmt, AT_CURSOR_SEQ, seq);
	if (sort_field != NO_FIELD && !sqlite_is_time_sorted(q->type, sort_field))
		sqlite_bind_value(stmt, AT_CURSOR_SORT, q->type->fields[sort_field].kind, sort);
	return RC_OK;
}

/* What decides about a record, and where the next page begins behind it. */
static uint64_t looked_fields(const struct query *q)
{
	int sort = query_sort_field(q);

	if (!q->filter || q->type->is_packed) /* those are read as a whole */
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
	enum rc              rc = rows.fields ? sqlite_statement(s->connection, whole, &ret->whole, e) : RC_OK;

	if (!rc)
		rc = sqlite_statement(s->connection, rows, &ret->rows, e);
	return !rc && rows.fields ? sqlite_statement(s->connection, whole, &ret->whole, e) : rc;
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

/* The same of a packed one: its value, in room that the next one uses again; no filter asks for a long text. */
static enum rc look_at_packed(struct session *s, const struct query *q, const struct listing *l, struct stored *last,
                              struct stored *ret, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	size_t                    size = (size_t)sqlite3_column_bytes(l->rows, IN_VALUE);
	char                     *room;

	c->row.max = SIZE_MAX;
	buf_reset(&c->row);
	room = buf_room(&c->row, size + ROW_SLACK);
	if (size)
		memcpy(room, sqlite3_column_blob(l->rows, IN_VALUE), size);
	last->handle = sqlite3_column_int64(l->rows, IN_SEQ);
	memset(last->record, 0, q->type->size); /* of the one before, what could not be read must not stay */
	if (!row_unpack(q->type, ~0ull, room, size, last->record))
		return err_set(e, RC_CORRUPT, SQLITE_ROW_IS_NONE, (long long)last->handle, q->type->name);
	return query_matches(q, last->record) ? take_row(s, q->type, l->rows, ret, e) : RC_NOT_FOUND;
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
		if (q->filter && q->type->is_packed) {
			rc = look_at_packed(s, q, l, &last, &found, &damage);
		} else if (q->filter) {
			rc = look_at_row(s, q, l, &last, &found, &damage);
		} else {
			rc = take_row(s, q->type, l->rows, &found, &damage);
			last = found;
			if (!rc && q->type->is_packed && !query_matches(q, found.record))
				rc = RC_NOT_FOUND;
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
	if ((rc = packed_settle(s->connection, q->type, e)))
		return rc;
	if (q->type->has_time_key && q->index < 0)
		return timed_query(s, q, ret, e);
	if ((rc = get_listing(s, key, &l, e)))
		return rc;
	rc = bind_query(s, l.rows, q, e);
	if (!rc)
		rc = read_page(s, q, &l, ret, e);
	sqlite3_reset(l.rows);
	return rc;
}

static struct hot_index *find_hot(struct sqlite_connection *c, const struct record_type *type, int index)
{
	for (size_t i = 0; index >= 0 && type->indexes[index].is_hot && i < c->hot_count; i++)
		if (c->hots[i].type == type && c->hots[i].index == index)
			return &c->hots[i];
	return NULL;
}

/* The row at a place of an index in memory, when it is there and what was asked for: RC_NOT_FOUND otherwise. */
static enum rc take_place(struct session *s, const struct query *q, const struct hot_place *place, struct stored *ret,
                          struct err *e)
{
	struct sqlite_connection *c = s->connection;
	int                       field = query_sort_field(q);
	enum rc                   rc = get_by_seq(s, q->type, place->seq, ret, e);

	if (rc && rc != RC_NOT_FOUND)
		return rc;
	if (!rc && record_value(q->type, q->type->indexes[q->index].hash, ret->record).number == q->hash.number &&
	    value_cmp(q->type->fields[field].kind, record_value(q->type, field, ret->record), place->sort) == 0)
		return query_wants(q, ret->record) ? RC_OK : RC_NOT_FOUND;
	if (!c->is_reader)
		c->is_memory_doubted =
		        true; /* the reader's snapshot is another moment; the writer's must be this one */
	return RC_NOT_FOUND;
}

static struct str place_cursor(struct arena *a, const struct hot_index *h, const struct hot_place *place)
{
	if (h->is_text)
		return str_format(a, "%lld:%.*s", (long long)place->seq, STR_ARG(place->sort.text));
	return str_format(a, "%lld:%lld", (long long)place->seq, (long long)place->sort.number);
}

/* As query_page(), by an index in memory. */
static enum rc query_hot(struct session *s, struct hot_index *h, const struct query *q, struct stored_page *ret,
                         struct err *e)
{
	const struct sqlite_connection *c = s->connection;
	struct hot_place                behind, found[HOT_STEP];
	bool                            is_begun = q->cursor.n > 0;
	size_t                          looked = 0, bytes = 0, count = 1;
	enum rc                         rc = is_begun ? query_read_cursor(q, &behind.seq, &behind.sort, e) : RC_OK;

	if (rc)
		return rc;
	ret->items = arena_alloc(s->arena, q->limit * sizeof(*ret->items));
	while (count && !query_is_full(q, ret, looked, bytes)) {
		size_t want = query_looks(q) - looked;

		count = hot_find(h, q, is_begun ? &behind : NULL, c->is_reader, s->arena, found,
		                 want < HOT_STEP ? want : HOT_STEP);
		for (size_t i = 0; i < count && !query_is_full(q, ret, looked, bytes); i++) {
			struct err damage = { 0 };

			looked++;
			behind = found[i];
			is_begun = true;
			rc = take_place(s, q, &behind, &ret->items[ret->count], &damage);
			if (!rc && q->bytes_max)
				bytes += record_bytes(q->type, ret->items[ret->count].record);
			if (!rc)
				ret->count++;
			else if (rc == RC_CORRUPT)
				log_write(LOG_WARNING, "store", NULL, 0, "a record is left out: %s", damage.msg);
			else if (rc != RC_NOT_FOUND)
				return err_set(e, rc, "%s", damage.msg);
		}
	}
	if (count && !(q->is_last && ret->count))
		ret->next = place_cursor(s->arena, h, &behind);
	return RC_OK;
}

/* An empty page is the last one, also after damaged records: who asks for the first must not take them for the end. */
enum rc sqlite_query(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct hot_index *hot = find_hot(s->connection, q->type, q->index);
	struct query      next = *q;
	enum rc           rc;

	do {
		*ret = (struct stored_page){ 0 };
		rc = hot ? query_hot(s, hot, &next, ret, e) : query_page(s, &next, ret, e);
		next.cursor = ret->next;
	} while (!rc && !ret->count && ret->next.n && !q->filter);
	return rc;
}

enum rc sqlite_count(struct session *s, const struct record_type *type, int index, struct value hash, int64_t *ret,
                     struct err *e)
{
	struct sqlite_connection *c = s->connection;
	struct hot_index         *hot = find_hot(c, type, index);
	sqlite3_stmt             *stmt;
	enum rc                   rc;

	if (hot) {
		*ret = hot_count(hot, hash.number, c->is_reader);
		return RC_OK;
	}
	for (size_t i = 0; i < c->kept_counts_used; i++)
		if (c->kept_counts[i].type == type && c->kept_counts[i].index == index) {
			*ret = kept_count_of(&c->kept_counts[i], hash.number, c->is_reader);
			return RC_OK;
		}
	if ((rc = packed_settle(c, type, e)) ||
	    (rc = sqlite_statement(c, (struct statement_key){ type, COUNT, (int8_t)index, 0, 0 }, &stmt, e)))
		return rc;
	if (index >= 0)
		sqlite_bind_value(stmt, AT_HASH, type->fields[type->indexes[index].hash].kind, hash);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		*ret = sqlite3_column_int64(stmt, 0);
	else
		rc = sqlite_failed(sqlite3_db_handle(stmt), "count records", e);
	sqlite3_reset(stmt);
	return rc;
}
