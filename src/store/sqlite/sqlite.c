/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite.c - the embedded back end.
 *
 * One thread writes. It takes what has been submitted (up to BATCH_MAX), runs every function inside one SQL
 * transaction, commits once, and only then tells each caller: many transactions share one flush to disk. There is no
 * artificial wait; while a commit is being flushed the next batch gathers by itself. One other thread serves
 * read-only transactions on a snapshot, so that a long list never delays a claim.
 *
 * Always true:
 *   1. done(RC_OK) of a writing transaction comes after COMMIT returned with synchronous=FULL, and when the files are
 *      still where they were. [commit_batch()]
 *   2. When COMMIT fails, nothing of the batch is kept and every caller in it is told so. The connection stays: the
 *      next commit writes over the same part of the log and is flushed itself, so nothing depends on the failed flush.
 *      If we crash before that, SQLite may find the commit whole in the log: then all of the batch is there after all,
 *      as with any answer that gets lost, and every call can be repeated.
 *   3. The write-ahead log is moved into the main file when it passes WAL_KB_MAX, or at WAL_KB_IDLE when nothing
 *      waits, by the writer itself; it does not grow without bound. While somebody reads an older state (a backup), it
 *      cannot be moved, and is tried again only when it has grown by as much again. [checkpoint()]
 *
 * The log is short on purpose: moving it stops the writer for some milliseconds, and a part of a file that was written
 * before is flushed in half the time that a new one takes. Claims change neighbouring pages, so a longer one would
 * save next to nothing.
 *
 * A new file has pages of PAGE_SIZE. A commit of many claims appends to a few places, so with pages twice as large as
 * SQLite's own it has half as many of them to write, to add up and to move; a commit of one claim is no slower. Twice
 * that, it would be. A file that is there keeps its pages until it is compacted. [decision 98]
 *
 * The page cache is small on purpose: after a b-tree page was split, SQLite walks its whole cache at the next commit,
 * which with a large cache costs more than the cache saves. What does not fit is in the system's file cache, a short
 * copy away.
 *
 * A crash loses only what nobody was told of: SQLite replays the log at the next open.
 */
#include "store/sqlite/sqlite.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "store/sqlite/sqlite_packed.h"
#include "store/sqlite/sqlite_private.h"
#include "store/sqlite/sqlite_timed.h"
#include "store/sqlite/sqlite_wal.h"

enum {
	BATCH_MAX = 512,
	WAL_KB_MAX = 4000,
	WAL_KB_IDLE = 2000,
	WAL_KB_LONG = 64000, /* from here on it is worth a wait for the reader */
	CACHE_MB = 8,
	BUSY_MS = 5000,
	READER_CACHE_MB = 8,
};

struct sqlite_store {
	struct store             base;
	struct sqlite_connection writer_connection, reader_connection;
	struct inbox             writes, reads;
	pthread_t                writer, reader;
	struct txn              *batch[BATCH_MAX];
	pthread_mutex_t          turn_lock;
	pthread_cond_t           turn_changes;
	bool                     is_reading, is_reader_held;
	bool                     is_memory_lost; /* a commit failed: read again what is kept beside the file */
	struct sqlite_file       file;           /* ours alone; not used unless it was asked for */
	struct hot_index         hots[HOTS_MAX]; /* of both connections */
	struct kept_count        kept_counts[KEPT_COUNTS_MAX];
};

enum rc sqlite_is_foreign(struct err *e)
{
	return err_set(e, RC_CORRUPT, SQLITE_STORE_WORDS " is not a Leasehold store or is damaged" SQLITE_STORE_ADVICE);
}

/* Say which file it is: in place of "the store" where the sentence is about the file, else in front. */
enum rc sqlite_name_file(enum rc rc, const char *path, struct err *e)
{
	struct err cause;

	if (rc != RC_CORRUPT || !e || !str_starts_with(str_from(e->msg), STR(SQLITE_STORE_WORDS)))
		return err_wrap(e, rc, "%s", path);
	cause = *e;
	err_clear(e);
	return err_set(e, rc, "%s%s", path, cause.msg + strlen(SQLITE_STORE_WORDS));
}

enum rc sqlite_failed(sqlite3 *db, const char *doing, struct err *e)
{
	const char *why = sqlite3_errmsg(db);

	switch (sqlite3_errcode(db) & 0xff) {
	case SQLITE_FULL: return err_set(e, RC_UNAVAILABLE, "the store cannot %s: the disk is full", doing);
	case SQLITE_IOERR:
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_CANTOPEN: return err_set(e, RC_UNAVAILABLE, "the store cannot %s: %s", doing, why);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB: return sqlite_is_foreign(e);
	default: return err_set(e, RC_INTERNAL, "the store cannot %s: %s", doing, why);
	}
}

enum rc sqlite_is_undone(struct err *e)
{
	return err_set(e, RC_UNAVAILABLE, "the store undid its transaction");
}

enum rc sqlite_exec(sqlite3 *db, const char *sql, struct err *e)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return sqlite_failed(db, sql, e);
	return RC_OK;
}

static int note_wal_size(void *arg, sqlite3 *db, const char *name, int pages)
{
	struct sqlite_connection *c = arg;

	(void)db;
	(void)name;
	c->wal_kb = (int64_t)pages * c->page_size / 1024;
	if (c->wal_kb < c->wal_tried_kb)
		c->wal_tried_kb = 0; /* it has begun anew */
	return SQLITE_OK;
}

/* Once for the process, before the first connection: SQLite's own memory statistics cost a lock at each allocation. */
static void set_up_library(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	sqlite3_initialize();
}

enum rc sqlite_set_page_size(sqlite3 *db, struct err *e)
{
	return sqlite_exec(db, "PRAGMA page_size = " SQLITE_PAGE_SIZE, e);
}

/* Pages of our size in a new file, and what size they are. */
static enum rc settle_page_size(struct sqlite_connection *c, struct err *e)
{
	int64_t pages;
	enum rc rc = sqlite_read_number(c->db, "PRAGMA page_count", &pages, e);

	if (!rc && !pages)
		rc = sqlite_set_page_size(c->db, e);
	return rc ? rc : sqlite_read_number(c->db, "PRAGMA page_size", &c->page_size, e);
}

enum rc sqlite_connect(const char *path, bool is_read_only, int cache_mb, struct sqlite_connection *ret, struct err *e)
{
	static pthread_once_t is_set_up = PTHREAD_ONCE_INIT;
	int                   flags = is_read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	char                  sql[160];
	enum rc               rc;

	pthread_once(&is_set_up, set_up_library);
	if (sqlite3_open_v2(path, &ret->db, flags | SQLITE_OPEN_NOMUTEX, is_read_only ? NULL : sqlite_wal_vfs()) !=
	    SQLITE_OK)
		return sqlite_failed(ret->db, "open its file", e);
	/* Without this, binding a value to a column that has a partial index compiles the statement anew each time. */
	sqlite3_db_config(ret->db, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
	sqlite3_busy_timeout(ret->db, BUSY_MS);
	if (!is_read_only && (rc = settle_page_size(ret, e)))
		return rc;
	(void)snprintf(sql, sizeof(sql), "PRAGMA cache_size = -%d; PRAGMA temp_store = MEMORY;%s", cache_mb * 1024,
	               is_read_only ? "" : "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"); /* fits */
	if (sqlite3_exec(ret->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return sqlite_failed(ret->db, "open its file", e);
	return RC_OK;
}

/* A statement without results, kept prepared because it runs for every batch. */
static enum rc run(struct sqlite_connection *c, sqlite3_stmt **stmt, const char *sql, struct err *e)
{
	enum rc rc = RC_OK;

	if (!*stmt && sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL) != SQLITE_OK)
		return sqlite_failed(c->db, sql, e);
	if (sqlite3_step(*stmt) != SQLITE_DONE)
		rc = sqlite_failed(c->db, sql, e);
	sqlite3_reset(*stmt);
	return rc;
}

static void begin_session(struct session *s, struct sqlite_store *store, struct sqlite_connection *c,
                          const struct txn *t, struct wall now)
{
	*s = (struct session){
		.store = &store->base,
		.arena = t->arena,
		.now = now,
		.is_read_only = t->is_read_only,
		.connection = c,
	};
}

static enum rc run_batch(struct sqlite_store *store, size_t count, struct err *e)
{
	struct wall now = clock_now(store->base.clock); /* a commit is one moment */

	for (size_t i = 0; i < count; i++) {
		struct session s;
		bool           is_torn;

		begin_session(&s, store, &store->writer_connection, store->batch[i], now);
		(void)session_execute(&s, store->batch[i], &is_torn); /* kept in the transaction */
		if (is_torn && store->batch[i]->rc == RC_CONFLICT)
			is_torn = false; /* sqlite_apply() has left nothing */
		/* After some failures of the disk, also of a read, SQLite has undone the whole transaction itself. */
		if (is_torn || sqlite3_get_autocommit(store->writer_connection.db)) {
			if (!store->batch[i]->rc)
				return sqlite_is_undone(e);
			*e = store->batch[i]->e;
			return store->batch[i]->rc;
		}
	}
	return RC_OK;
}

/* What is kept of one type in memory, while it is made from the file. */
struct loading {
	struct sqlite_connection *c;
	const struct record_type *type;
	struct hot_index          fresh[HOTS_MAX]; /* as the connection's; those of other types are not used */
};

static void note_row(void *arg, int64_t seq, const void *record)
{
	struct loading *l = arg;
	bool            is_known = true;

	for (size_t i = 0; i < l->c->hot_count; i++)
		if (l->c->hots[i].type == l->type)
			is_known &= hot_note(&l->fresh[i], seq, NULL, record);
	for (size_t i = 0; i < l->c->unique_count; i++)
		if (l->c->uniques[i].type == l->type)
			is_known &= unique_note(&l->c->uniques[i], seq, NULL, record);
	assert(is_known); /* only what leaves can be unknown */
	(void)is_known;
}

/* What is kept of a type, from one pass over its rows. */
static enum rc load_type(struct sqlite_connection *c, const struct record_type *type, struct err *e)
{
	struct loading l = { .c = c, .type = type };
	enum rc        rc;

	for (size_t i = 0; i < c->hot_count; i++)
		hot_init(&l.fresh[i], c->hots[i].type, c->hots[i].index);
	for (size_t i = 0; i < c->unique_count; i++)
		if (c->uniques[i].type == type)
			unique_clear(&c->uniques[i]);
	rc = sqlite_each_row(c, type, note_row, &l, e);
	for (size_t i = 0; i < c->hot_count; i++) {
		if (!rc && c->hots[i].type == type)
			hot_replace(&c->hots[i], &l.fresh[i]);
		hot_fini(&l.fresh[i]);
	}
	return rc;
}

/* What the writer keeps in memory beside the file. */
static enum rc load_memory(struct sqlite_connection *c, struct err *e)
{
	enum rc rc = RC_OK;
	char    sql[96];

	for (size_t i = 0; !rc && i < c->loaded_count; i++)
		rc = load_type(c, c->loaded[i], e);
	if (!rc)
		rc = timed_load(c, e);
	for (size_t i = 0; !rc && i < c->counted_types; i++) {
		(void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM \"%s\"", c->row_counts[i].type->name); /* fits */
		rc = sqlite_read_number(c->db, sql, &c->row_counts[i].rows, e);
	}
	for (size_t i = 0; !rc && i < c->kept_counts_used; i++)
		rc = kept_count_load(&c->kept_counts[i], c->db, e);
	return rc;
}

static void commit_batch(struct sqlite_store *store, size_t count)
{
	struct sqlite_connection *c = &store->writer_connection;
	sqlite3                  *db = c->db;
	int                       changes = sqlite3_total_changes(db);
	struct err                e = { 0 };
	enum rc                   rc = run(c, &c->begin, "BEGIN IMMEDIATE", &e);

	/* After a failed commit what is kept in memory is ahead of the file; nothing is decided before it is right. */
	if (!rc && store->is_memory_lost)
		rc = load_memory(c, &e);
	if (!rc) {
		store->is_memory_lost = false;
		rc = run_batch(store, count, &e);
	}
	if (!rc)
		rc = packed_finish(c, &e);
	if (!rc)
		rc = run(c, &c->commit, "COMMIT", &e);
	if (!rc)
		rc = sqlite_file_check(&store->file, &e);
	if (rc) {
		packed_forget(c);
		if (!sqlite3_get_autocommit(db))
			rc_ignore(sqlite_exec(db, "ROLLBACK", NULL)); /* the failure to report is the commit's */
		for (size_t i = 0; i < count; i++) /* who was told nothing yet shares the commit's failure */
			if (!store->batch[i]->rc) {
				store->batch[i]->rc = rc;
				store->batch[i]->e = e;
			}
		store->is_memory_lost = true;
	}
	for (size_t i = 0; !rc && i < c->hot_count; i++)
		hot_commit(&c->hots[i]);
	for (size_t i = 0; !rc && i < c->kept_counts_used; i++)
		kept_count_commit(&c->kept_counts[i]);
	store->is_memory_lost |= c->is_memory_doubted;
	c->is_memory_doubted = false;
	store_note_commit(&store->base, rc, &e, count, c->has_written || sqlite3_total_changes(db) != changes);
	c->has_written = false;
}

/* Held, it pauses between two of its transactions. */
static void hold_reader(struct sqlite_store *store, bool is_held)
{
	pthread_mutex_lock(&store->turn_lock);
	store->is_reader_held = is_held;
	pthread_cond_broadcast(&store->turn_changes);
	while (is_held && store->is_reading)
		pthread_cond_wait(&store->turn_changes, &store->turn_lock);
	pthread_mutex_unlock(&store->turn_lock);
}

static void set_reading(struct sqlite_store *store, bool is_reading)
{
	pthread_mutex_lock(&store->turn_lock);
	while (is_reading && store->is_reader_held)
		pthread_cond_wait(&store->turn_changes, &store->turn_lock);
	store->is_reading = is_reading;
	pthread_cond_broadcast(&store->turn_changes);
	pthread_mutex_unlock(&store->turn_lock);
}

static void checkpoint(struct sqlite_store *store, bool is_idle)
{
	struct sqlite_connection *c = &store->writer_connection;
	bool                      is_long = c->wal_kb >= WAL_KB_LONG;
	int64_t                   step = is_idle ? WAL_KB_IDLE : WAL_KB_MAX;
	int                       pages = 0, moved = 0;

	if (c->wal_tried_kb >= WAL_KB_LONG)
		step = WAL_KB_LONG / 2; /* a backup reads: the writer shall not wait for our reader all the time */
	if (c->wal_kb - c->wal_tried_kb < step)
		return;
	/* A passive one gets to the end only when nobody reads an older state, which steady reads never allow. So for a
	 * long log our reader pauses between two transactions. Not getting there is no failure: it is tried again. */
	if (is_long)
		hold_reader(store, true);
	atomic_fetch_add(&store->base.checkpoints, 1);
	c->wal_tried_kb = c->wal_kb;
	if (sqlite3_wal_checkpoint_v2(c->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved) == SQLITE_OK &&
	    moved >= pages)
		c->wal_kb = c->wal_tried_kb = 0;
	if (is_long)
		hold_reader(store, false);
}

static void *write_loop(void *arg)
{
	struct sqlite_store *store = arg;
	struct inbox_item   *items;
	size_t               count;

	while ((items = inbox_wait_all(&store->writes)))
		while (items) {
			for (count = 0; items && count < BATCH_MAX; items = items->next)
				store->batch[count++] = CONTAINER_OF(items, struct txn, item);
			atomic_store(&store->base.busy_since_ms, mono_now().ms);
			commit_batch(store, count);
			atomic_store(&store->base.busy_since_ms, 0);
			store_tell(&store->base, store->batch, count);
			if (!items)
				items = inbox_take_all(&store->writes);
			checkpoint(store, !items);
		}
	return NULL;
}

/* Nothing was written, so nothing is reported; but a transaction that stays open would block every later one. */
static void end_snapshot(sqlite3 *db)
{
	if (!sqlite3_get_autocommit(db) && sqlite_exec(db, "COMMIT", NULL))
		rc_ignore(
		        sqlite_exec(db, "ROLLBACK", NULL)); /* if this fails too, the next transaction tries it again */
}

static void run_read(struct sqlite_store *store, struct txn *t)
{
	sqlite3       *db = store->reader_connection.db;
	struct session s;
	bool           is_torn;

	set_reading(store, true);
	end_snapshot(db); /* of the one before, if it could not */
	for (size_t i = 0; i < store->reader_connection.hot_count; i++)
		hot_begin_read(&store->hots[i]);
	begin_session(&s, store, &store->reader_connection, t, clock_now(store->base.clock));
	t->rc = sqlite_exec(db, "BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1", &t->e); /* with its snapshot */
	if (!t->rc)
		(void)session_execute(&s, t, &is_torn); /* kept in the transaction */
	end_snapshot(db);
	for (size_t i = 0; i < store->reader_connection.hot_count; i++)
		hot_end_read(&store->hots[i]);
	set_reading(store, false);
	store_tell(&store->base, &t, 1);
}

static void *read_loop(void *arg)
{
	struct sqlite_store *store = arg;
	struct inbox_item   *item;

	while ((item = inbox_wait_one(&store->reads)))
		run_read(store, CONTAINER_OF(item, struct txn, item));
	return NULL;
}

static void submit(struct store *base, struct txn *const *txns, size_t count)
{
	struct sqlite_store *store = CONTAINER_OF(base, struct sqlite_store, base);
	struct inbox_item   *first = NULL, **end = &first, *last = NULL;

	for (size_t i = 0; i < count; i++)
		if (txns[i]->is_read_only) {
			(void)inbox_put(&store->reads, &txns[i]->item);
		} else {
			*end = last = &txns[i]->item;
			end = &last->next;
		}
	if (first)
		(void)inbox_put_list(&store->writes, first, last);
}

static void free_store(struct sqlite_store *store)
{
	sqlite_disconnect(&store->reader_connection);
	sqlite_disconnect(&store->writer_connection);
	for (size_t i = 0; i < store->writer_connection.hot_count; i++)
		hot_fini(&store->hots[i]);
	sqlite_file_free(&store->file);
	inbox_fini(&store->reads);
	inbox_fini(&store->writes);
	pthread_cond_destroy(&store->turn_changes);
	pthread_mutex_destroy(&store->turn_lock);
	store_fini(&store->base);
	free(store);
}

static void close_store(struct store *base)
{
	struct sqlite_store *store = CONTAINER_OF(base, struct sqlite_store, base);

	inbox_close(&store->writes);
	inbox_close(&store->reads);
	pthread_join(store->writer, NULL);
	pthread_join(store->reader, NULL);
	free_store(store);
}

static const struct store_ops ops = {
	.name = "sqlite",
	.submit = submit,
	.turn = store_turn_nothing,
	.close = close_store,
	.get = sqlite_get,
	.query = sqlite_query,
	.find_unique = sqlite_find_unique,
	.count = sqlite_count,
	.claim = session_claim_first,
	.apply = sqlite_apply,
};

/* Makes room for what is kept of a type in memory. */
static void add_type(struct sqlite_connection *c, const struct record_type *type)
{
	for (int i = 0; i < type->index_count; i++)
		if (type->indexes[i].is_unique) {
			assert(c->unique_count < UNIQUES_MAX);
			unique_init(&c->uniques[c->unique_count++], type, i);
		} else if (type->indexes[i].is_hot) {
			assert(type->is_packed && c->hot_count < HOTS_MAX);
			hot_init(&c->hots[c->hot_count++], type, i);
		} else if (type->indexes[i].is_counted) {
			assert(c->kept_counts_used < KEPT_COUNTS_MAX);
			c->kept_counts[c->kept_counts_used].type = type;
			c->kept_counts[c->kept_counts_used++].index = i;
		}
	for (int i = 0; i < type->index_count; i++)
		if (!sqlite_is_in_file(&type->indexes[i])) {
			assert(c->loaded_count < LOADED_MAX && !type->has_time_key);
			c->loaded[c->loaded_count++] = type;
			break;
		}
	if (type->has_time_key) {
		assert(!c->pending_type);
		c->pending_type = type;
	}
	if (type->is_often_empty) {
		assert(c->counted_types < ROW_COUNTS_MAX);
		c->row_counts[c->counted_types++].type = type;
	}
}

static enum rc connect_both(struct sqlite_store *store, const struct sqlite_options *o, struct err *e)
{
	struct sqlite_connection *writer = &store->writer_connection;
	enum rc                   rc = o->is_owned ? sqlite_own(o, &store->file, e) : RC_OK;

	if (rc)
		return rc;
	rc = sqlite_connect(o->path, false, o->cache_mb ? o->cache_mb : CACHE_MB, writer, e);
	if (!rc)
		rc = sqlite_prepare_schema(writer->db, o->types, o->type_count, !o->is_owned, e);
	writer->hots = store->hots;
	writer->kept_counts = store->reader_connection.kept_counts = store->kept_counts;
	for (size_t i = 0; !rc && i < o->type_count; i++)
		add_type(writer, o->types[i]);
	store->reader_connection.hots = store->hots;
	store->reader_connection.hot_count = writer->hot_count;
	store->reader_connection.kept_counts_used = writer->kept_counts_used;
	store->reader_connection.is_reader = true;
	if (!rc)
		rc = load_memory(writer, e);
	if (!rc)
		rc = sqlite_connect(o->path, true, READER_CACHE_MB, &store->reader_connection, e);
	if (!rc && o->ret_has_lost && *o->ret_has_lost)
		rc = sqlite_check_pages(writer->db, e);
	if (!rc && o->is_owned)
		rc = sqlite_file_note(&store->file, e);
	if (rc)
		return sqlite_name_file(rc, o->path, e);
	sqlite3_wal_autocheckpoint(writer->db, 0);
	sqlite3_wal_hook(writer->db, note_wal_size, writer);
	return RC_OK;
}

enum rc store_sqlite_open(const struct sqlite_options *o, struct store **ret, struct err *e)
{
	struct sqlite_store *store = mem_new(struct sqlite_store);
	enum rc              rc;

	store_init(&store->base, &ops, o->clock);
	inbox_init(&store->writes);
	inbox_init(&store->reads);
	pthread_mutex_init(&store->turn_lock, NULL);
	pthread_cond_init(&store->turn_changes, NULL);
	rc = connect_both(store, o, e);
	if (rc) {
		free_store(store);
		return rc;
	}
	mem_must(!pthread_create(&store->writer, NULL, write_loop, store), "a thread");
	mem_must(!pthread_create(&store->reader, NULL, read_loop, store), "a thread");
	*ret = &store->base;
	return RC_OK;
}
