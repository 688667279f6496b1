/* sqlite_statement.h - prepared statements of the sqlite back end; private to its files. */
#pragma once

#include <sqlite3.h>

#include "base/attr.h"
#include "store/sqlite/sqlite_private.h"

enum statement_kind { GET = 1, GET_BY_SEQ, ALL, QUERY, COUNT, INSERT, UPDATE, DELETE };
enum { WITH_CURSOR = 1, WITH_PREFIX = 2, WITH_MAX = 4, WITH_FROM = 8, WITH_TO = 16, DESCENDING = 32 };

/* Numbers of the parameters in a query. */
enum { AT_HASH = 1, AT_PREFIX, AT_PREFIX_END, AT_MAX, AT_FROM, AT_TO, AT_CURSOR_SORT, AT_CURSOR_SEQ, AT_LIMIT };

/* Columns of what is read: the row's number, then of a packed record its value and those fields that have a column; of
 * others the version and the fields that are wanted. */
enum { IN_SEQ, IN_VERSION, IN_FIELDS };
enum { IN_VALUE = 1, IN_LONG };

/* Parameters of INSERT and UPDATE of a packed record; from AT_INDEXES on one for each index, then one for each field,
 * of which those in the file and those with a column are used.
 *
 * GET of a type with time keys has one: rows up to this number, the last one first. */
enum { AT_SEQ = 1, AT_VALUE, AT_KEY, AT_INDEXES };

/* Which fields a statement reads: 0 stands for all. */
static inline bool statement_has_field(uint64_t fields, int f)
{
	return !fields || (fields >> f & 1);
}

/* The prepared statement for the key; reset it after use. */
MUST_CHECK enum rc sqlite_statement(struct sqlite_connection *c, struct statement_key key, sqlite3_stmt **ret,
                                    struct err *e);

/* One that is not kept: finalize it. */
MUST_CHECK enum rc sqlite_prepare(struct sqlite_connection *c, const struct statement_key *key, sqlite3_stmt **ret,
                                  struct err *e);

/* Run one that writes, and reset it. */
MUST_CHECK enum rc sqlite_run(sqlite3_stmt *stmt, struct err *e);

static inline void sqlite_bind_text(sqlite3_stmt *stmt, int at, struct str text)
{
	sqlite3_bind_text(stmt, at, text.p ? text.p : "", (int)text.n, SQLITE_STATIC);
}

static inline void sqlite_bind_value(sqlite3_stmt *stmt, int at, enum field_kind kind, struct value v)
{
	if (kind == FIELD_TEXT)
		sqlite_bind_text(stmt, at, v.text);
	else
		sqlite3_bind_int64(stmt, at, v.number);
}
