/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_timed_read.c - records with time keys: found in their rows.
 *
 * Rows do not overlap (sqlite_timed.c), so records are in order when rows are. A list begins at the last row that is
 * not behind its lower limit, which may hold records of both sides of it. A row is taken apart in room that the next
 * one uses again; only what is wanted is copied to the session's arena.
 */
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "store/sqlite/sqlite_row.h"
#include "store/sqlite/sqlite_statement.h"
#include "store/sqlite/sqlite_timed.h"

static struct str column(sqlite3_stmt *stmt, int at)
{
	const char *bytes = sqlite3_column_blob(stmt, at);

	return str_of(bytes, bytes ? (size_t)sqlite3_column_bytes(stmt, at) : 0);
}

void timed_read_row(struct segment *g, const struct record_type *type, sqlite3_stmt *stmt)
{
	bool has_text = segment_text_field(type) != NO_FIELD;

	segment_read(g, sqlite3_column_int64(stmt, IN_SEQ), column(stmt, IN_VALUE),
	             has_text ? column(stmt, IN_LONG) : STR(""));
}

/* As views into the row. */
static enum rc look(const struct record_type *type, struct segment_place *place, void *ret, struct err *e)
{
	memset(ret, 0, type->size); /* of the one before, what could not be read must not stay */
	if (!segment_unpack(type, place, ret))
		return err_set(e, RC_CORRUPT, SQLITE_ROW_IS_NONE, (long long)place->seq, type->name);
	return RC_OK;
}

static enum rc keep(struct session *s, const struct record_type *type, int64_t seq, const void *record,
                    struct stored *ret, struct err *e)
{
	enum rc rc = record_check(type, record, e);

	if (rc)
		return rc;
	*ret = (struct stored){ arena_alloc(s->arena, type->size), seq };
	record_copy(type, ret->record, record, s->arena);
	return RC_OK;
}

/* --- by key --- */

/* Of the numbers that the key may have, which begin with this one. */
static enum rc find_in_row(struct session *s, const struct record_type *type, struct segment *g, int64_t seq,
                           struct str key, struct stored *ret, struct err *e)
{
	void   *record = arena_alloc(s->arena, type->size);
	enum rc rc = RC_NOT_FOUND;

	for (size_t i = 0; rc == RC_NOT_FOUND && i < g->count; i++) {
		struct segment_place *place = &g->places[i];

		if (place->is_damaged || place->seq < seq || place->seq > seq + (ROW_SLOTS - 1))
			continue;
		rc = look(type, place, record, e);
		if (!rc)
			rc = str_eq(record_key(type, record), key) ? keep(s, type, place->seq, record, ret, e)
			                                           : RC_NOT_FOUND;
	}
	return rc;
}

enum rc timed_get(struct session *s, const struct record_type *type, struct str key, struct stored *ret, struct err *e)
{
	struct sqlite_connection *c = s->connection;
	sqlite3_stmt             *stmt;
	int64_t                   seq;
	enum rc rc = sqlite_statement(c, (struct statement_key){ .type = type, .kind = GET }, &stmt, e);
	int     step = SQLITE_DONE;

	if (rc)
		return rc;
	if (!row_of_time_key(key, &seq))
		return RC_NOT_FOUND;
	sqlite3_bind_int64(stmt, 1, seq + (ROW_SLOTS - 1));
	rc = RC_NOT_FOUND;
	do {
		step = sqlite3_step(stmt);
		if (step != SQLITE_ROW)
			break;
		timed_read_row(&c->seen, type, stmt);
		rc = find_in_row(s, type, &c->seen, seq, key, ret, e);
	} while (rc == RC_NOT_FOUND && c->seen.seq > seq);
	if (step != SQLITE_ROW && step != SQLITE_DONE)
		rc = sqlite_failed(c->db, "read a record", e);
	sqlite3_reset(stmt);
	return rc;
}

/* --- lists --- */

struct range {
	int64_t from, to; /* both included */
};

/* What the limits and the cursor say about numbers; query_matches() looks at the keys themselves, which say more. */
static enum rc find_range(const struct query *q, struct range *ret, struct err *e)
{
	struct value sort;
	int64_t      seq;
	enum rc      rc;

	*ret = (struct range){ INT64_MIN, INT64_MAX };
	if (q->index == QUERY_KEYS && q->sort_from.n)
		(void)row_of_time_key(q->sort_from, &ret->from);
	if (q->index == QUERY_KEYS && q->sort_to.n) {
		(void)row_of_time_key(q->sort_to, &seq);
		ret->to = seq + (ROW_SLOTS - 1);
	}
	if (!q->cursor.n)
		return RC_OK;
	if ((rc = query_read_cursor(q, &seq, &sort, e)))
		return rc;
	if (q->is_descending)
		ret->to = seq - 1 < ret->to ? seq - 1 : ret->to;
	else if (seq >= ret->from)
		ret->from = seq < INT64_MAX ? seq + 1 : seq;
	return RC_OK;
}

/* A page while it is filled. */
struct filling {
	struct session     *s;
	const struct query *q;
	struct range        range;
	struct stored       last; /* that was looked at; its texts last as long as its row */
	size_t              looked, bytes;
	struct stored_page *page;
};

static bool is_full(const struct filling *f)
{
	return query_is_full(f->q, f->page, f->looked, f->bytes);
}

static void add_place(struct filling *f, struct segment_place *place)
{
	const struct record_type *type = f->q->type;
	struct stored            *item = &f->page->items[f->page->count];
	struct err                damage = { 0 };
	enum rc                   rc;

	if (place->seq < f->range.from || place->seq > f->range.to)
		return;
	f->looked++;
	f->last.handle = place->seq;
	rc = look(type, place, f->last.record, &damage);
	if (!rc && !query_matches(f->q, f->last.record))
		return;
	if (!rc)
		rc = keep(f->s, type, place->seq, f->last.record, item, &damage);
	if (rc) {
		log_write(LOG_WARNING, "store", NULL, 0, "a record is left out: %s", damage.msg);
		return;
	}
	f->page->count++;
	f->bytes += record_bytes(type, item->record);
}

static void add_row(struct filling *f, struct segment *g)
{
	for (size_t i = 0; i < g->count && !is_full(f); i++)
		add_place(f, &g->places[f->q->is_descending ? g->count - 1 - i : i]);
}

/* Each row has a record that counts, but for the one in which the list begins. */
static enum rc fill(struct filling *f, sqlite3_stmt *stmt, struct err *e)
{
	struct sqlite_connection *c = f->s->connection;
	int                       step = SQLITE_ROW;

	sqlite3_bind_int64(stmt, AT_FROM, f->range.from);
	sqlite3_bind_int64(stmt, AT_TO, f->range.to);
	sqlite3_bind_int64(stmt, AT_LIMIT, (int64_t)query_looks(f->q) + 1);
	while (!is_full(f) && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		timed_read_row(&c->seen, f->q->type, stmt);
		add_row(f, &c->seen);
	}
	if (step != SQLITE_ROW && step != SQLITE_DONE)
		return sqlite_failed(c->db, "read records", e);
	if (step == SQLITE_ROW && !(f->q->is_last && f->page->count))
		f->page->next = query_make_cursor(f->s->arena, f->q, f->last.handle, f->last.record);
	return RC_OK;
}

enum rc timed_query(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct statement_key key = { .type = q->type, .kind = QUERY, .index = (int8_t)q->index };
	struct filling       f = { .s = s, .q = q, .page = ret, .last.record = arena_alloc(s->arena, q->type->size) };
	sqlite3_stmt        *stmt;
	enum rc              rc;

	key.flags = q->is_descending ? DESCENDING : 0;
	if ((rc = find_range(q, &f.range, e)) || (rc = sqlite_statement(s->connection, key, &stmt, e)))
		return rc;
	ret->items = arena_alloc(s->arena, q->limit * sizeof(*ret->items));
	rc = fill(&f, stmt, e);
	sqlite3_reset(stmt);
	return rc;
}
