/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_wal.c - what a commit appends to SQLite's log leaves in one write; what is moved out of it is not lost.
 *
 * SQLite writes each frame of its log with two calls of the system, one for 24 bytes and one for a page, and a commit
 * of many transactions has dozens of frames, one behind the other. They are held here until SQLite syncs the log. With
 * synchronous=FULL that is before anybody is told of them: neither a reader nor the index of the log knows a frame that
 * was not synced. Whatever is not behind what is held, or reads the file, lets go of it first.
 *
 * The sync reports a write that fails; SQLite then undoes the transaction, and the next one writes over its frames.
 *
 * When the log is moved into the database but somebody still reads an older state, SQLite counts the pages up to there
 * as moved without a sync; the sync of the move that reaches the end of the log is for them, too. If it fails, the
 * system may have dropped them, says so once, and would report success the next time: SQLite, which does not move them
 * again, would then write over them in the log. So the program ends. At a start SQLite has counted nothing, and moves
 * the whole log. A sync that fails when nothing was counted before is harmless: all of that move is repeated.
 * [database_sync()]
 */
#include "store/sqlite/sqlite_wal.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_MAX = 120 * 1024 }; /* SQLite writes less than 128 KiB at once */

/* Behind SQLite's own file, some of whose methods it replaces. */
struct held {
	const sqlite3_io_methods *own;
	sqlite3_io_methods        methods;
	bool                      is_moving; /* of a database: pages of the log were written to it, */
	int                       moves;     /* and so many moves of them were not synced */
	sqlite3_int64             offset;    /* of a log: where the bytes belong */
	int                       size;
	char                     *bytes; /* HELD_MAX of them */
};

static sqlite3_vfs vfs; /* the system's, but for how a log is opened */

static struct held *held_of(sqlite3_file *f)
{
	const sqlite3_vfs *system = vfs.pAppData;

	return (struct held *)((char *)f + system->szOsFile);
}

/* --- the log --- */

static int let_go(sqlite3_file *f)
{
	struct held *h = held_of(f);
	int          size = h->size;

	h->size = 0;
	return size ? h->own->xWrite(f, h->bytes, size, h->offset) : SQLITE_OK;
}

static int wal_write(sqlite3_file *f, const void *bytes, int size, sqlite3_int64 offset)
{
	struct held *h = held_of(f);

	if (offset != h->offset + h->size || size > HELD_MAX - h->size) {
		int code = let_go(f);

		if (code != SQLITE_OK || size > HELD_MAX)
			return code != SQLITE_OK ? code : h->own->xWrite(f, bytes, size, offset);
		h->offset = offset;
	}
	memcpy(h->bytes + h->size, bytes, (size_t)size);
	h->size += size;
	return SQLITE_OK;
}

static int wal_read(sqlite3_file *f, void *to, int size, sqlite3_int64 offset)
{
	int code = let_go(f);

	return code != SQLITE_OK ? code : held_of(f)->own->xRead(f, to, size, offset);
}

static int wal_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	int code = let_go(f);

	return code != SQLITE_OK ? code : held_of(f)->own->xTruncate(f, size);
}

static int wal_sync(sqlite3_file *f, int flags)
{
	int code = let_go(f);

	return code != SQLITE_OK ? code : held_of(f)->own->xSync(f, flags);
}

static int wal_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	int code = let_go(f);

	return code != SQLITE_OK ? code : held_of(f)->own->xFileSize(f, ret);
}

static int wal_close(sqlite3_file *f)
{
	int code = let_go(f), closed = held_of(f)->own->xClose(f);

	sqlite3_free(held_of(f)->bytes);
	return code != SQLITE_OK ? code : closed;
}

/* --- the database --- */

static int database_write(sqlite3_file *f, const void *bytes, int size, sqlite3_int64 offset)
{
	struct held *h = held_of(f);
	int          code = h->own->xWrite(f, bytes, size, offset);

	h->is_moving = code == SQLITE_OK; /* a move that cannot write counts nothing, and ends there */
	return code;
}

static int database_control(sqlite3_file *f, int what, void *arg)
{
	struct held *h = held_of(f);

	if (what == SQLITE_FCNTL_CKPT_DONE) {
		h->moves += h->is_moving;
		h->is_moving = false;
	}
	return h->own->xFileControl(f, what, arg);
}

static int database_sync(sqlite3_file *f, int flags)
{
	struct held *h = held_of(f);
	int          code = h->own->xSync(f, flags);

	if (code != SQLITE_OK && h->moves > 1) {
		fputs("leasehold: the database file could not be flushed, and pages that count as moved into it may be "
		      "lost there; the log still has them, and the next start moves them again\n",
		      stderr);
		abort();
	}
	h->moves = 0;
	return code;
}

/* --- opening --- */

static int open_file(sqlite3_vfs *self, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	sqlite3_vfs *system = self->pAppData;
	struct held *h = held_of(f);
	int          code = system->xOpen(system, name, f, flags, ret_flags);

	if (code != SQLITE_OK || !(flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB)))
		return code;
	*h = (struct held){ .own = f->pMethods, .methods = *f->pMethods };
	if (flags & SQLITE_OPEN_MAIN_DB) {
		h->methods.xWrite = database_write;
		h->methods.xFileControl = database_control;
		h->methods.xSync = database_sync;
		f->pMethods = &h->methods;
		return SQLITE_OK;
	}
	h->bytes = sqlite3_malloc(HELD_MAX);
	if (!h->bytes)
		return SQLITE_OK; /* without it each frame is written by itself */
	h->methods.xClose = wal_close;
	h->methods.xRead = wal_read;
	h->methods.xWrite = wal_write;
	h->methods.xTruncate = wal_truncate;
	h->methods.xSync = wal_sync;
	h->methods.xFileSize = wal_size;
	f->pMethods = &h->methods;
	return SQLITE_OK;
}

static void set_up(void)
{
	sqlite3_vfs *system = sqlite3_vfs_find(NULL);

	if (!system)
		return;
	vfs = *system;
	vfs.zName = "leasehold";
	vfs.pAppData = system;
	vfs.szOsFile += (int)sizeof(struct held);
	vfs.xOpen = open_file;
	(void)sqlite3_vfs_register(&vfs, 0); /* a connection that does not find it says so */
}

const char *sqlite_wal_vfs(void)
{
	static pthread_once_t is_set_up = PTHREAD_ONCE_INIT;

	pthread_once(&is_set_up, set_up);
	return vfs.zName;
}
