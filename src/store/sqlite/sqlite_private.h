/* sqlite_private.h - shared by the files of the sqlite back end; nobody else includes this. */
#pragma once

#include <sqlite3.h>

#include "base/buf.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/sqlite_hot.h"
#include "store/sqlite/sqlite_counts.h"
#include "store/sqlite/sqlite_segment.h"
#include "store/sqlite/sqlite_unique.h"
#include "store/store_ops.h"

enum {
	STATEMENTS_MAX = 512,
	UNIQUES_MAX = 16,
	HOTS_MAX = 4,
	LOADED_MAX = 4,
	PENDING_MAX = 512,
	ROW_COUNTS_MAX = 4,
	KEPT_COUNTS_MAX = 4
};

/* What a prepared statement does: everything its text depends on. */
struct statement_key {
	const struct record_type *type;
	uint8_t                   kind;
	int8_t                    index;
	uint8_t                   flags;
	uint64_t                  fields;
};

struct statement {
	struct statement_key key;
	sqlite3_stmt        *stmt; /* NULL: free place */
};

/* How many records there are of a type that often has none. */
struct row_count {
	const struct record_type *type;
	int64_t                   rows;
};

/* A record that waits to be written with others, see sqlite_timed.c. */
struct pending {
	const void *record;
	int64_t     seq;
};

/* One connection, used by one thread. */
struct sqlite_connection {
	sqlite3         *db;
	struct statement statements[STATEMENTS_MAX];
	unsigned         statement_count;
	sqlite3_stmt    *begin, *commit;
	struct buf       row; /* the packed record that is being written, or looked at */
	int64_t          page_size;
	int64_t          wal_kb;       /* after the last commit */
	int64_t          wal_tried_kb; /* as long it was when it could not be moved as a whole; 0: it could */

	struct unique_index       uniques[UNIQUES_MAX]; /* the writer's */
	size_t                    unique_count;
	struct row_count          row_counts[ROW_COUNTS_MAX]; /* the writer's too: they count its own writes */
	size_t                    counted_types;
	const struct record_type *loaded[LOADED_MAX]; /* those of which there are indexes in memory */
	size_t                    loaded_count;
	struct hot_index         *hots; /* of writer and reader */
	size_t                    hot_count;
	struct kept_count        *kept_counts; /* of both, too */
	size_t                    kept_counts_used;
	bool                      is_reader;
	bool                      is_memory_doubted; /* the writer's: a row was not what is kept of it */

	sqlite3_blob             *value; /* the writer's handle on one row's value, and which row that is */
	const struct record_type *value_type;
	int64_t                   value_seq; /* 0: it has to be found again */
	bool                      has_written;
	const struct record_type *pending_type; /* the one type with time keys */
	struct pending            pending[PENDING_MAX];
	size_t                    pending_count;
	int64_t                   newest; /* the greatest number of that type, those that wait included */
	struct segment_row        made;   /* the row that is being written */
	struct segment            cut;    /* the row of which records are being removed */
	struct segment            seen;   /* the row that is being read; the reader's too */
};

MUST_CHECK enum rc sqlite_connect(const char *path, bool is_read_only, int cache_mb, struct sqlite_connection *ret,
                                  struct err *e);
void               sqlite_disconnect(struct sqlite_connection *c);

/* What a new file has, and one that is compacted. The latter by this call, before VACUUM INTO. */
#define SQLITE_PAGE_SIZE "8192"
MUST_CHECK enum rc sqlite_set_page_size(sqlite3 *db, struct err *e);

/* Run SQL text without results. */
MUST_CHECK enum rc sqlite_exec(sqlite3 *db, const char *sql, struct err *e);

/* One number: the first column of the first row. */
MUST_CHECK enum rc sqlite_read_number(sqlite3 *db, const char *sql, int64_t *ret, struct err *e);

/* Turn SQLite's last failure into ours: trouble with the disk is RC_UNAVAILABLE, damage RC_CORRUPT. */
enum rc sqlite_failed(sqlite3 *db, const char *doing, struct err *e);

/* After some failures of the disk, also of a read, SQLite has undone the whole transaction itself. */
enum rc sqlite_is_undone(struct err *e);

/* How a message about the whole file begins; whoever knows the file's name puts it there instead. */
#define SQLITE_STORE_WORDS  "the store"
#define SQLITE_STORE_ADVICE "; restore a backup (docs/runbook.md)"

/* RC_CORRUPT: another program's file, or a damaged one of ours. */
enum rc sqlite_is_foreign(struct err *e);

/* In place of "the store" where the sentence is about the file, else in front: which file it is. */
enum rc sqlite_name_file(enum rc rc, const char *path, struct err *e);

/* Is this file ours, and of a version we know? One with nothing in it is only when it may be new. */
MUST_CHECK enum rc sqlite_check_identity(sqlite3 *db, bool may_be_new, struct err *e);

/* Every page and index entry. */
MUST_CHECK enum rc sqlite_check_pages(sqlite3 *db, struct err *e);

/* Take the file for this process alone, if it is a store and its log has lost nothing. Free *ret in any case. */
MUST_CHECK enum rc sqlite_own(const struct sqlite_options *o, struct sqlite_file *ret, struct err *e);

/* Tables, columns and indexes for these types; what exists stays. One transaction. */
MUST_CHECK enum rc sqlite_prepare_schema(sqlite3 *db, const struct record_type *const *types, size_t type_count,
                                         bool may_be_new, struct err *e);

/* Of a packed record: the row's number, the type's name. */
#define SQLITE_ROW_IS_NONE "row %lld of %s is not a record's value"

/* Behind the name of a type: the table of its packed records; the name alone is a view of them. */
#define SQLITE_PACKED "_row"

/* True when the order of this field is that of the rows' numbers. */
static inline bool sqlite_is_time_sorted(const struct record_type *type, int field)
{
	return type->has_time_key && field == type->key;
}

/* True when the index is neither kept in memory nor missing from the file. */
static inline bool sqlite_is_in_file(const struct record_index *index)
{
	return !index->is_unique && !index->is_hot;
}

/* True when an absent value is stored as 0 and not as NULL: the field orders an index. */
bool sqlite_is_sort_field(const struct record_type *type, int field);

/* NULL: nobody counts them. */
struct row_count *sqlite_row_count(struct session *s, const struct record_type *type);

/* Every row of a type that can be read, with the fields of its indexes in memory; its texts last until the next one. */
MUST_CHECK enum rc sqlite_each_row(struct sqlite_connection *c, const struct record_type           *type,
                                   void (*visit)(void *arg, int64_t seq, const void *record), void *arg, struct err *e);

/* The session calls; session->connection is a struct sqlite_connection. */
session_get_fn         sqlite_get;
session_query_fn       sqlite_query;
session_count_fn       sqlite_count;
session_apply_fn       sqlite_apply;
session_find_unique_fn sqlite_find_unique;
