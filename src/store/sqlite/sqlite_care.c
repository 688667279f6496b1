/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_care.c - what is done to the file of a store as a whole: made, taken, copied, checked, compacted.
 *
 * A new or rewritten file is finished beside its place and then moved there, so that a crash leaves the old one or the
 * new one, never half of one. A log that lost commits (see sqlite_log.c) is refused by all of them, because SQLite
 * itself would not say a word.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/sqlite_private.h"
#include "store/store.h"

enum { CACHE_MB = 8 };

/* --- taking it --- */

static enum rc copy_bytes(int from, int to, struct err *e)
{
	char    room[65536];
	ssize_t n;

	while ((n = read(from, room, sizeof(room))) > 0)
		if (write(to, room, (size_t)n) != n)
			break;
	return n == 0 && fsync(to) == 0 ? RC_OK : err_set(e, RC_UNAVAILABLE, "cannot be copied: %s", strerror(errno));
}

/* SQLite will overwrite a damaged log; a copy is kept for inspection. */
static enum rc keep_log(const char *path, struct err *e)
{
	char    from[PATH_MAX], to[PATH_MAX];
	int     in, out;
	enum rc rc;

	(void)snprintf(from, sizeof(from), "%s-wal", path); /* it was read under this name just now */
	if (snprintf(to, sizeof(to), "%s-wal.lost-%lld", path, (long long)wall_sec(clock_now(&clock_real))) >= PATH_MAX)
		return err_set(e, RC_INVALID, "%s: the name is too long", path);
	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	rc = in >= 0 && out >= 0 ? copy_bytes(in, out, e)
	                         : err_set(e, RC_UNAVAILABLE, "cannot be copied to %s: %s", to, strerror(errno));
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return rc ? err_wrap(e, rc, "%s", from) : RC_OK;
}

enum rc sqlite_own(const struct sqlite_options *o, struct sqlite_file *ret, struct err *e)
{
	struct sqlite_log log;
	enum rc           rc = sqlite_file_look(o->path, e);

	if (rc || (rc = sqlite_file_take(o->path, ret, e)))
		return rc;
	rc = sqlite_log_check(o->path, &log, e);
	if (rc != RC_CORRUPT || !o->ret_has_lost)
		return rc;
	err_clear(e);
	*o->ret_has_lost = true;
	return keep_log(o->path, e);
}

/* --- copies --- */

static enum rc copy_pages(sqlite3 *from, sqlite3 *to, struct err *e)
{
	sqlite3_backup *copy = sqlite3_backup_init(to, "main", from, "main");
	int             step;

	if (!copy)
		return sqlite_failed(to, "begin the backup", e);
	/* Small steps: between them the running server may move its log. */
	do
		step = sqlite3_backup_step(copy, 4096);
	while (step == SQLITE_OK || step == SQLITE_BUSY || step == SQLITE_LOCKED);
	sqlite3_backup_finish(copy);
	return step == SQLITE_DONE ? RC_OK : sqlite_failed(to, "finish the backup", e);
}

static enum rc open_existing(const char *path, struct sqlite_connection *ret, struct err *e)
{
	struct sqlite_log log;
	enum rc           rc = sqlite_file_look(path, e);

	if (rc)
		return rc;
	if (access(path, R_OK) != 0)
		return err_set(e, RC_NOT_FOUND, "there is no readable store at %s: %s", path, strerror(errno));
	/* A log that is being written looks torn now and then. */
	if (!sqlite_file_is_taken(path) && (rc = sqlite_log_check(path, &log, e)))
		return rc;
	rc = sqlite_connect(path, true, CACHE_MB, ret, e);
	return rc ? sqlite_name_file(rc, path, e) : RC_OK;
}

/* The system's own reason is better than SQLite's, and nobody else may read the copy. */
static enum rc make_file(const char *path, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST)
		return err_set(e, RC_CONFLICT, "%s exists already; name a new file", path);
	if (fd < 0)
		return err_set(e, RC_UNAVAILABLE, "%s cannot be made: %s", path, strerror(errno));
	close(fd);
	return RC_OK;
}

static enum rc copy_to(sqlite3 *source, const char *to, struct err *e)
{
	struct sqlite_connection target = { 0 };
	enum rc                  rc = make_file(to, e);

	if (rc)
		return rc;
	if (sqlite3_open(to, &target.db) != SQLITE_OK)
		rc = sqlite_failed(target.db, "open its copy", e);
	if (!rc)
		rc = copy_pages(source, target.db, e);
	sqlite_disconnect(&target);
	if (!rc)
		return RC_OK;
	unlink(to); /* half a backup is none */
	return err_wrap(e, rc, "%s", to);
}

enum rc sqlite_backup(const char *from, const char *to, struct err *e)
{
	struct sqlite_connection source = { 0 };
	enum rc                  rc = open_existing(from, &source, e);

	/* One read transaction for the whole copy: the backup is the state of one moment. */
	if (!rc && sqlite3_exec(source.db, "BEGIN; SELECT count(*) FROM sqlite_schema;", NULL, NULL, NULL) != SQLITE_OK)
		rc = sqlite_name_file(sqlite_failed(source.db, "be read", e), from, e);
	if (!rc)
		rc = copy_to(source.db, to, e);
	sqlite_disconnect(&source);
	return rc;
}

enum rc sqlite_check_pages(sqlite3 *db, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	enum rc       rc = RC_OK;

	if (sqlite3_prepare_v2(db, "PRAGMA integrity_check(1)", -1, &stmt, NULL) != SQLITE_OK ||
	    sqlite3_step(stmt) != SQLITE_ROW)
		rc = sqlite_failed(db, "check itself", e);
	else if (strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") != 0)
		rc = sqlite_is_foreign(e);
	sqlite3_finalize(stmt);
	return rc;
}

enum rc sqlite_check(const char *path, struct err *e)
{
	struct sqlite_connection c = { 0 };
	enum rc                  rc = open_existing(path, &c, e);

	if (!rc && ((rc = sqlite_check_pages(c.db, e)) || (rc = sqlite_check_identity(c.db, false, e))))
		rc = sqlite_name_file(rc, path, e);
	sqlite_disconnect(&c);
	return rc;
}

/* --- a file made anew --- */

static void unlink_all(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	char                     name[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
		if (snprintf(name, sizeof(name), "%s%s", path, suffixes[i]) < PATH_MAX)
			unlink(name);
}

/* The name of a file that is not finished. What is left of an earlier try is removed. */
static enum rc begin_file(const char *path, char ret[PATH_MAX], struct err *e)
{
	if (snprintf(ret, PATH_MAX, "%s" SQLITE_UNFINISHED, path) >= PATH_MAX)
		return err_set(e, RC_INVALID, "%s: the name is too long", path);
	unlink_all(ret);
	return RC_OK;
}

static enum rc place(const char *from, const char *to, struct err *e)
{
	char log[PATH_MAX];

	if (snprintf(log, sizeof(log), "%s-wal", from) < PATH_MAX && access(log, F_OK) == 0)
		return err_set(e, RC_UNAVAILABLE, "%s has a log that could not be moved into it", from);
	return sqlite_file_place(from, to, e);
}

/* Has SQLite make or complete the file, and then prepare() see it. */
static enum rc finish_file(const struct sqlite_options *o, const char                     *path,
                           enum rc (*prepare)(struct store *s, struct err *e), struct err *e)
{
	struct sqlite_options fresh = *o;
	struct store         *store;
	enum rc               rc;

	fresh.path = path;
	fresh.is_owned = false;
	if ((rc = store_sqlite_open(&fresh, &store, e)))
		return rc;
	rc = prepare ? prepare(store, e) : RC_OK;
	store_close(store);
	return rc;
}

enum rc sqlite_make(const struct sqlite_options *o, struct err *e)
{
	char    path[PATH_MAX];
	enum rc rc = sqlite_file_look(o->path, e);

	if (rc != RC_NOT_FOUND)
		return rc ? rc : err_set(e, RC_CONFLICT, "%s exists already", o->path);
	err_clear(e);
	if ((rc = begin_file(o->path, path, e)) || (rc = finish_file(o, path, NULL, e)))
		return rc;
	return place(path, o->path, e);
}

/* Who is restoring needs no advice to restore. */
static enum rc check_backup(const char *backup, struct err *e)
{
	enum rc rc = sqlite_check(backup, e);
	char   *advice = rc && e ? strstr(e->msg, SQLITE_STORE_ADVICE) : NULL;

	if (advice)
		*advice = '\0';
	return rc;
}

enum rc sqlite_replace(const struct sqlite_options *o, const char                     *backup,
                       enum rc (*prepare)(struct store *s, struct err *e), struct err *e)
{
	char    path[PATH_MAX];
	enum rc rc;

	if ((rc = begin_file(o->path, path, e)) || (rc = check_backup(backup, e)) ||
	    (rc = sqlite_backup(backup, path, e)) || (rc = finish_file(o, path, prepare, e)) ||
	    (rc = sqlite_file_set_aside(o->path, e)))
		return rc;
	return place(path, o->path, e);
}

/* Everything that is in use, into a new file. */
static enum rc vacuum(const char *from, const char *to, struct err *e)
{
	struct sqlite_connection c = { 0 };
	enum rc                  rc = sqlite_connect(from, false, CACHE_MB, &c, e);
	char                    *sql = sqlite3_mprintf("VACUUM INTO %Q", to);

	if (!rc && !(rc = sqlite_check_identity(c.db, false, e)) &&
	    !(rc = sqlite_exec(c.db, "PRAGMA wal_checkpoint(TRUNCATE)", e)) && !(rc = sqlite_set_page_size(c.db, e)))
		rc = sqlite_exec(c.db, sql, e);
	sqlite3_free(sql);
	sqlite_disconnect(&c);
	return rc;
}

enum rc sqlite_compact(const char *path, struct err *e)
{
	struct sqlite_options o = { .path = path };
	struct sqlite_file    file = { .fd = -1 };
	char                  fresh[PATH_MAX];
	enum rc               rc = sqlite_own(&o, &file, e);

	if (!rc && !(rc = begin_file(path, fresh, e))) {
		rc = vacuum(path, fresh, e);
		if (!rc)
			rc = sqlite_check(fresh, e);
		if (!rc)
			rc = place(fresh, path, e);
		unlink_all(fresh);
		rc = rc ? sqlite_name_file(rc, path, e) : RC_OK;
	}
	sqlite_file_free(&file);
	return rc;
}
