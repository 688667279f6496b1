/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_file.c - what can happen to the store's files from outside.
 *
 * The lock is on the database file itself, so it goes where the file goes: deleting some other file admits nobody. It
 * is a lock of the open file (OFD) on one byte that SQLite never locks, so the two do not meet. What SQLite locks is
 * lost when any descriptor of the file is closed by this process; therefore ours stays open until SQLite is done.
 *
 * A file that was moved, deleted or replaced is still written by who has it open, and nobody will ever read that. So
 * the writer compares the paths with what it has opened after each commit, before it tells anybody.
 * [sqlite_file_check()]
 */
#include "store/sqlite/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum { LOCK_BYTE = 0x40000000 - 1 }; /* SQLite's own are behind it */

static const char *const suffixes[SQLITE_FILES] = { "", "-wal", "-shm" };

/* False: the path is too long to be one. */
static bool name_file(const char *path, int which, char ret[PATH_MAX])
{
	return snprintf(ret, PATH_MAX, "%s%s", path, suffixes[which]) < PATH_MAX;
}

static bool stat_file(const char *path, int which, struct stat *ret)
{
	char name[PATH_MAX];

	return name_file(path, which, name) && stat(name, ret) == 0;
}

enum rc sqlite_file_look(const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) == 0) {
		if (!S_ISREG(st.st_mode))
			return err_set(e, RC_CORRUPT, "%s is not a file", path);
		if (st.st_size == 0)
			return err_set(e, RC_CORRUPT,
			               "%s is empty, which a store never is: restore a backup (docs/runbook.md)", path);
		return RC_OK;
	}
	if (errno != ENOENT && errno != ENOTDIR)
		return err_set(e, RC_UNAVAILABLE, "%s cannot be looked at: %s", path, strerror(errno));
	for (int i = 1; i < SQLITE_FILES; i++)
		if (stat_file(path, i, &st))
			return err_set(e, RC_CORRUPT,
			               "%s is missing, but its %s is there: find the file, or restore a backup "
			               "(docs/runbook.md)",
			               path, suffixes[i]);
	return err_set(e, RC_NOT_FOUND, "there is no store at %s", path);
}

static const struct flock our_lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1 };

enum rc sqlite_file_take(const char *path, struct sqlite_file *ret, struct err *e)
{
	struct flock lock = our_lock;

	ret->path = mem_strdup(path);
	ret->fd = open(path, O_RDWR | O_CLOEXEC);
	if (ret->fd < 0)
		return err_set(e, RC_UNAVAILABLE, "%s cannot be opened: %s", path, strerror(errno));
	if (fcntl(ret->fd, F_OFD_SETLK, &lock) == 0)
		return RC_OK;
	if (errno == EAGAIN || errno == EACCES)
		return err_set(e, RC_UNAVAILABLE, "another leasehold uses %s; stop it or use another --data", path);
	return err_set(e, RC_UNAVAILABLE, "%s cannot be locked: %s", path, strerror(errno));
}

bool sqlite_file_is_taken(const char *path)
{
	struct flock lock = our_lock;
	int          fd = open(path, O_RDONLY | O_CLOEXEC);
	bool         is_taken = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;

	if (fd >= 0)
		close(fd);
	return is_taken;
}

enum rc sqlite_file_note(struct sqlite_file *f, struct err *e)
{
	struct stat opened, st;
	char        name[PATH_MAX];

	for (int i = 0; i < SQLITE_FILES; i++) {
		if (!stat_file(f->path, i, &st))
			return err_set(e, RC_UNAVAILABLE, "%s%s cannot be looked at: %s", f->path, suffixes[i],
			               strerror(errno));
		(void)name_file(f->path, i, name); /* it was looked at */
		f->ids[i].path = mem_strdup(name);
		f->ids[i].device = st.st_dev;
		f->ids[i].inode = st.st_ino;
	}
	if (fstat(f->fd, &opened) != 0 || opened.st_dev != f->ids[0].device || opened.st_ino != f->ids[0].inode)
		return err_set(e, RC_UNAVAILABLE, "%s was replaced while it was opened", f->path);
	return RC_OK;
}

enum rc sqlite_file_check(const struct sqlite_file *f, struct err *e)
{
	struct statx st;

	for (int i = 0; f->ids[0].path && i < SQLITE_FILES; i++) {
		bool is_there = statx(AT_FDCWD, f->ids[i].path, 0, STATX_INO, &st) == 0;

		if (!is_there || makedev(st.stx_dev_major, st.stx_dev_minor) != f->ids[i].device ||
		    st.stx_ino != f->ids[i].inode)
			return err_set(e, RC_UNAVAILABLE,
			               "%s%s was %s under the running server: nothing is being stored; put it back, "
			               "or stop the server (docs/runbook.md)",
			               f->path, suffixes[i], is_there ? "replaced" : "removed");
	}
	return RC_OK;
}

void sqlite_file_free(struct sqlite_file *f)
{
	if (!f->path)
		return;
	if (f->fd >= 0)
		close(f->fd);
	for (int i = 0; i < SQLITE_FILES; i++) {
		free(f->ids[i].path);
		f->ids[i].path = NULL;
	}
	free(f->path);
	f->path = NULL;
}

static bool flush(const char *path, int flags)
{
	int  fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	bool is_ok = fd >= 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	return is_ok;
}

enum rc sqlite_file_place(const char *from, const char *to, struct err *e)
{
	char folder[PATH_MAX];

	(void)snprintf(folder, sizeof(folder), "%s", to); /* a longer path could not have been opened */
	if (!flush(from, 0) || rename(from, to) != 0 || !flush(dirname(folder), O_DIRECTORY))
		return err_set(e, RC_UNAVAILABLE, "%s cannot be put in place: %s", to, strerror(errno));
	return RC_OK;
}

enum rc sqlite_file_set_aside(const char *path, struct err *e)
{
	long long now = (long long)wall_sec(clock_now(&clock_real));
	char      from[PATH_MAX], to[PATH_MAX];

	for (int i = 0; i < SQLITE_FILES; i++) {
		bool is_named = name_file(path, i, from) &&
		                snprintf(to, sizeof(to), "%s.before-%lld%s", path, now, suffixes[i]) < PATH_MAX;

		if (!is_named || (rename(from, to) != 0 && errno != ENOENT))
			return err_set(e, RC_UNAVAILABLE, "%s%s cannot be set aside: %s", path, suffixes[i],
			               strerror(errno));
	}
	return RC_OK;
}
