/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - reading and writing whole files; the mode and the owner of a file that holds tokens or keys.
 *
 * A group may read a file with secrets: that is how root hands it to the user of a service (root:leasehold, mode 640).
 */
#include "base/file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

enum { CHUNK = 65536 };

enum rc file_read_all(int fd, size_t max, struct arena *a, struct str *ret)
{
	CLEANUP(buf_fini) struct buf b = BUF(max + CHUNK);
	ssize_t                      got = 1;

	while (b.n <= max && got) {
		got = read(fd, buf_room(&b, CHUNK), CHUNK);
		if (got < 0 && errno != EINTR)
			return RC_UNAVAILABLE;
		if (got > 0)
			buf_added(&b, (size_t)got);
	}
	if (b.n > max)
		return RC_TOO_LARGE;
	*ret = str_dup(a, buf_str(&b));
	return RC_OK;
}

bool file_write_all(int fd, struct str text)
{
	while (text.n) {
		ssize_t put = write(fd, text.p, text.n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		text = str_skip(text, (size_t)put);
	}
	return true;
}

void fd_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

enum rc secret_file_check(const char *path, const struct stat *st, struct err *e)
{
	if (!S_ISREG(st->st_mode))
		return RC_OK;
	if (st->st_mode & (S_IRWXO | S_IWGRP | S_IXGRP))
		return err_set(
		        e, RC_INVALID,
		        "others may read or change a file that holds secrets (mode %03o); run: chmod 640 %s, or 600",
		        (unsigned)st->st_mode & 0777, path);
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(
		        e, RC_INVALID,
		        "%s: holds secrets, but belongs to somebody else; its owner must be root or the user that "
		        "runs this",
		        path);
	return RC_OK;
}
