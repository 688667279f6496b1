/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - files and folders.
 *
 * Always true:
 *   1. A file that is there is whole: it is written under another name, then renamed.                    [file_write()]
 *   2. No link that a tenant made is ever followed.                                                    [remove_below()]
 */
#include "providers/local/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/id.h"

enum { PATH_SIZE = 4200, TREE_DEPTH_MAX = 200, PASSES_MAX = 1000 };

static enum rc complain(struct err *e, const char *what, const char *path)
{
	return err_set(e, errno == ENOSPC ? RC_UNAVAILABLE : RC_INTERNAL, "%s %s: %s", what, path, strerror(errno));
}

bool name_sync(const char *path)
{
	CLEANUP(fd_closep) int fd = -1;
	char                   copy[PATH_SIZE];

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && fsync(fd) == 0;
}

enum rc file_write(const char *path, struct str text, struct file_owner owner, bool is_durable, struct err *e)
{
	CLEANUP(fd_closep) int fd = -1;
	char                   draft[PATH_SIZE];
	bool                   is_ok;

	snprintf(draft, sizeof(draft), "%s.draft", path);
	fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return complain(e, "cannot write", draft);
	is_ok = file_write_all(fd, text) && fchown(fd, owner.uid, owner.gid) == 0 && fchmod(fd, owner.mode) == 0 &&
	        (!is_durable || fsync(fd) == 0);
	if (!is_ok || rename(draft, path) != 0 || (is_durable && !name_sync(path)))
		return complain(e, "cannot write", path);
	return RC_OK;
}

enum rc file_read(const char *path, size_t max, struct arena *a, struct str *ret, struct err *e)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat            about;
	enum rc                rc;

	if (fd < 0)
		return errno == ENOENT ? err_set(e, RC_NOT_FOUND, "there is no file %s", path)
		                       : complain(e, "cannot read", path);
	rc = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) ? file_read_all(fd, max, a, ret) : RC_TOO_LARGE;
	if (rc == RC_TOO_LARGE)
		return err_set(e, rc, "%s is no file of at most %zu bytes", path, max);
	return rc ? complain(e, "cannot read", path) : RC_OK;
}

enum rc file_remove(const char *path, struct err *e)
{
	return unlink(path) == 0 || errno == ENOENT ? RC_OK : complain(e, "cannot remove", path);
}

enum rc folder_make(const char *path, struct file_owner owner, struct err *e)
{
	CLEANUP(fd_closep) int fd = -1;

	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return complain(e, "cannot make the folder", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchown(fd, owner.uid, owner.gid) != 0 || fchmod(fd, owner.mode) != 0)
		return complain(e, "cannot set owner and mode of", path);
	return RC_OK;
}

/* What is open while a tree is removed is limited: what lies deeper is moved to its top, and is removed from there. */
struct removal {
	int  top;
	bool has_moved;
};

static bool move_up(struct removal *r, int folder, const char *name)
{
	char moved[ID_UUID_SIZE];

	id_uuid(moved);
	r->has_moved = true;
	return renameat(folder, name, r->top, moved) == 0;
}

static bool remove_below(struct removal *r, int folder, unsigned depth)
{
	DIR           *entries = fdopendir(folder);
	struct dirent *entry;
	bool           is_ok = entries != NULL;

	while (is_ok && (entry = readdir(entries))) {
		int inner;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(entries), entry->d_name, 0) == 0 || errno == ENOENT)
			continue;
		if (depth == TREE_DEPTH_MAX) {
			is_ok = move_up(r, dirfd(entries), entry->d_name);
			continue;
		}
		inner = openat(dirfd(entries), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		is_ok = inner >= 0 && remove_below(r, inner, depth + 1) &&
		        unlinkat(dirfd(entries), entry->d_name, AT_REMOVEDIR) == 0;
	}
	if (entries)
		closedir(entries);
	else
		close(folder);
	return is_ok;
}

enum rc tree_remove(const char *path, struct err *e)
{
	CLEANUP(fd_closep) int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct removal         r = { .top = top, .has_moved = true };
	bool                   is_ok = true;

	if (top < 0)
		return errno == ENOTDIR || errno == ELOOP || errno == ENOENT ? file_remove(path, e)
		                                                             : complain(e, "cannot open", path);
	for (int pass = 0; is_ok && r.has_moved && pass < PASSES_MAX; pass++) {
		int folder = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		r.has_moved = false;
		is_ok = folder >= 0 && remove_below(&r, folder, 0);
	}
	if (!is_ok || (rmdir(path) != 0 && errno != ENOENT))
		return complain(e, "cannot remove", path);
	return RC_OK;
}
