/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_timed.c - records with time keys: written many to a row, and removed from there.
 *
 * Those that are in no index of the file wait, as pointers, until there are PENDING_MAX, until anything of their type
 * is read or changed, or until COMMIT. Then they become one row, or one for every SEGMENT_SIZE bytes. They cannot meet
 * a conflict: their numbers are above all that are there. What a transaction put into its arena lives until it is told
 * of the commit, so the pointers last.
 *
 * Always true:
 *   1. Rows do not overlap: whatever has a number between the first and the last record of a row is in that row, so
 *      rows in the order of their numbers are records in the order of theirs. A record that would come in between, as
 *      after the machine's clock was set back, has the row taken apart first.  [timed_make_way()]
 *   2. Who reads or changes rows in another way settles first.                  [timed_settle()]
 *   3. What could not be written still waits, so that COMMIT, which settles, fails with it or makes it good.
 *
 * Who removes records removes neighbours, oldest first. So the row stays here, and its records are only marked, until
 * one of another row is removed: a row is read and written once for all of them.
 */
#include "store/sqlite/sqlite_timed.h"

#include <assert.h>

#include "store/sqlite/sqlite_row.h"
#include "store/sqlite/sqlite_statement.h"

/* Of value and text. Whoever wants one record of a row reads all of it. */
enum { SEGMENT_SIZE = 32 << 10 };

/* --- rows --- */

static enum rc get_statement(struct sqlite_connection *c, enum statement_kind kind, sqlite3_stmt **ret, struct err *e)
{
	return sqlite_statement(c, (struct statement_key){ .type = c->pending_type, .kind = (uint8_t)kind }, ret, e);
}

/* INSERT or UPDATE of the row that was made. It is in no index. */
static enum rc write_made(struct sqlite_connection *c, enum statement_kind kind, struct err *e)
{
	const struct record_type *type = c->pending_type;
	int                       text = c->made.text_field;
	struct str                value;
	sqlite3_stmt             *stmt;
	enum rc                   rc = get_statement(c, kind, &stmt, e);

	if (rc)
		return rc;
	if (!segment_end(&c->made, &value))
		return err_set(e, RC_TOO_LARGE, "a %s is too large", type->name);
	sqlite3_bind_int64(stmt, AT_SEQ, c->made.seq);
	sqlite_bind_text(stmt, AT_VALUE, value);
	for (int i = 0; kind == UPDATE && i < type->index_count; i++)
		sqlite3_bind_null(stmt, AT_INDEXES + i);
	if (text != NO_FIELD && c->made.text.n)
		sqlite_bind_text(stmt, AT_INDEXES + type->index_count + text, buf_str(&c->made.text));
	else if (text != NO_FIELD)
		sqlite3_bind_null(stmt, AT_INDEXES + type->index_count + text);
	rc = sqlite_run(stmt, e);
	if (!rc && !sqlite3_changes(c->db))
		rc = err_set(e, RC_INTERNAL, "row %lld of %s is not as it was left", (long long)c->made.seq,
		             type->name);
	return rc;
}

static enum rc delete_row(struct sqlite_connection *c, int64_t seq, struct err *e)
{
	sqlite3_stmt *stmt;
	enum rc       rc = get_statement(c, DELETE, &stmt, e);

	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, seq);
	return sqlite_run(stmt, e);
}

/* The last row with this number or a smaller one; none is empty. */
static enum rc read_row(struct sqlite_connection *c, int64_t seq, struct segment *ret, struct err *e)
{
	sqlite3_stmt *stmt;
	enum rc       rc = get_statement(c, GET, &stmt, e);
	int           step;

	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, seq);
	step = sqlite3_step(stmt);
	ret->count = 0;
	if (step == SQLITE_ROW)
		timed_read_row(ret, c->pending_type, stmt);
	else if (step != SQLITE_DONE)
		rc = sqlite_failed(c->db, "read a record", e);
	sqlite3_reset(stmt);
	return rc;
}

/* --- those that wait --- */

static enum rc write_pending(struct sqlite_connection *c, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < c->pending_count;) {
		segment_begin(&c->made, c->pending_type, c->pending[i].seq);
		for (; i < c->pending_count && segment_size(&c->made) < SEGMENT_SIZE; i++)
			segment_add(&c->made, c->pending[i].seq, c->pending[i].record);
		rc = write_made(c, INSERT, e);
	}
	if (!rc)
		c->pending_count = 0;
	return rc;
}

bool timed_may_wait(const struct sqlite_connection *c, int64_t seq)
{
	return seq > c->newest;
}

enum rc timed_wait(struct sqlite_connection *c, const void *record, int64_t seq, struct err *e)
{
	enum rc rc = c->pending_count == PENDING_MAX ? write_pending(c, e) : RC_OK;

	assert(timed_may_wait(c, seq));
	if (rc)
		return rc;
	c->pending[c->pending_count++] = (struct pending){ record, seq };
	c->newest = seq;
	return RC_OK;
}

void timed_note(struct sqlite_connection *c, int64_t seq)
{
	if (c->newest < seq + (ROW_SLOTS - 1))
		c->newest = seq + (ROW_SLOTS - 1);
}

/* --- those that go --- */

/* What is left of the row. */
static enum rc write_cut(struct sqlite_connection *c, struct err *e)
{
	struct segment *g = &c->cut;
	size_t          gone = 0;
	enum rc         rc = RC_OK;

	for (size_t i = 0; i < g->count; i++)
		gone += g->places[i].is_gone;
	if (gone && gone == g->count) {
		rc = delete_row(c, g->seq, e);
	} else if (gone) {
		segment_begin(&c->made, c->pending_type, g->seq);
		for (size_t i = 0; i < g->count; i++)
			if (!g->places[i].is_gone)
				segment_add_place(&c->made, &g->places[i]);
		rc = write_made(c, UPDATE, e);
	}
	if (!rc)
		g->count = 0;
	return rc;
}

enum rc timed_remove(struct sqlite_connection *c, int64_t seq, struct err *e)
{
	enum rc rc = write_pending(c, e);

	if (!rc && !segment_covers(&c->cut, seq) && !(rc = write_cut(c, e)))
		rc = read_row(c, seq, &c->cut, e);
	for (size_t i = 0; !rc && i < c->cut.count; i++)
		if (c->cut.places[i].seq == seq && !c->cut.places[i].is_damaged)
			c->cut.places[i].is_gone = true;
	return rc;
}

enum rc timed_settle(struct sqlite_connection *c, struct err *e)
{
	enum rc rc = write_cut(c, e);

	return rc ? rc : write_pending(c, e);
}

void timed_forget(struct sqlite_connection *c)
{
	c->pending_count = c->cut.count = 0;
}

/* --- rows of one record --- */

enum rc timed_make_way(struct sqlite_connection *c, int64_t seq, struct err *e)
{
	struct segment *g = &c->cut;
	enum rc         rc = read_row(c, seq, g, e);

	if (!rc && segment_covers(g, seq) && g->has_many) {
		rc = delete_row(c, g->seq, e);
		for (size_t i = 0; !rc && i < g->count;) {
			segment_begin(&c->made, c->pending_type, g->places[i].seq);
			do /* damaged ones may share a number */
				segment_add_place(&c->made, &g->places[i++]);
			while (i < g->count && g->places[i].seq == c->made.seq);
			rc = write_made(c, INSERT, e);
		}
	}
	g->count = 0;
	return rc;
}

enum rc timed_load(struct sqlite_connection *c, struct err *e)
{
	enum rc rc = c->pending_type ? read_row(c, INT64_MAX, &c->cut, e) : RC_OK;

	if (!rc)
		c->newest = c->cut.count ? segment_last(&c->cut) : 0;
	c->cut.count = 0;
	return rc;
}
