/* SPDX-License-Identifier: Apache-2.0 */
/* failsync.c - a disk that loses its flushes: loaded before libc (LD_PRELOAD), it stands in for fsync and fdatasync.
 *
 * $FAILSYNC_DIR/fail exists: every flush answers EIO and is not done.
 * $FAILSYNC_DIR/slow exists: every flush takes 400 ms longer.
 * $FAILSYNC_DIR/hang exists: every flush waits until it is gone.
 * Each flush that was failed, slowed or held adds a byte to $FAILSYNC_DIR/count, so that a test knows it was asked.
 *
 * It keeps no state of its own and is safe in any thread. It does not touch msync or sync_file_range, which SQLite does
 * not use for its log. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool has_flag(const char *name)
{
	const char *dir = getenv("FAILSYNC_DIR");
	char        path[4096];

	if (!dir)
		return false;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void note(void)
{
	char path[4096];
	int  fd;

	snprintf(path, sizeof path, "%s/count", getenv("FAILSYNC_DIR"));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	(void)!write(fd, ".", 1); /* a lost mark only makes the test wait longer */
	close(fd);
}

static int flush(long call, int fd)
{
	const struct timespec pause = { .tv_nsec = 400 * 1000 * 1000 }, look = { .tv_nsec = 10 * 1000 * 1000 };

	if (has_flag("hang"))
		note();
	while (has_flag("hang"))
		nanosleep(&look, NULL);
	if (has_flag("slow")) {
		note();
		nanosleep(&pause, NULL);
	}
	if (has_flag("fail")) {
		note();
		errno = EIO;
		return -1;
	}
	return (int)syscall(call, fd);
}

int fsync(int fd)
{
	return flush(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return flush(SYS_fdatasync, fd);
}
