/* SPDX-License-Identifier: Apache-2.0 */
/* powerlog.c - a diary of all that a program does to its files: loaded before libc (LD_PRELOAD), it writes down each
 * write, truncation, flush and removal below $POWERLOG_FOLDER, in the order of its happening, to $POWERLOG_DIARY.
 *
 * From the diary, tests/lib/power.py makes the files that a power failure at any moment could have left behind.
 *
 * Invariants:
 *   1. An entry is in the diary before the call it describes returns, so whoever has an answer finds in the diary all
 *      that had to happen for it. A flush is written down after it succeeded, everything else with the call, under one
 *      lock.
 *   2. An entry is complete or at the very end: it is one write().
 *   3. A call that failed, or wrote less than it was asked to, is written down as what it did.
 *
 * It does not see what is written through a mapping; SQLite maps only the log's index, which it makes anew after a
 * crash. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ENTRY_WRITE = 'w', ENTRY_TRUNCATE = 't', ENTRY_FLUSH = 'f', ENTRY_REMOVE = 'r' };

/* Followed by the name, then by the bytes. */
struct entry {
	uint64_t offset; /* of a write; the new size of a truncated file */
	uint32_t length;
	uint16_t name_length;
	uint8_t  kind;
	uint8_t  zero;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int             diary = -1;

/* The name below the folder, or NULL. */
static const char *below_folder(const char *path)
{
	const char *folder = getenv("POWERLOG_FOLDER");
	size_t      length = folder ? strlen(folder) : 0;

	if (!length || strncmp(path, folder, length) != 0 || path[length] != '/')
		return NULL;
	return path + length + 1;
}

static const char *name_of(int fd, char path[static PATH_MAX])
{
	char    link[64];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if ((n = readlink(link, path, PATH_MAX - 1)) < 0)
		return NULL;
	path[n] = '\0';
	return below_folder(path);
}

/* Under the lock. A diary with a gap would make the test lie. */
static void note(uint8_t kind, const char *name, uint64_t offset, const void *bytes, size_t length)
{
	struct entry entry = { offset, (uint32_t)length, (uint16_t)strlen(name), kind, 0 };
	struct iovec parts[] = { { &entry, sizeof entry },
		                 { (void *)name, entry.name_length },
		                 { (void *)bytes, length } };
	ssize_t      want = (ssize_t)(sizeof entry + entry.name_length + length);

	if (diary < 0)
		diary = (int)syscall(SYS_openat, AT_FDCWD, getenv("POWERLOG_DIARY"),
		                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (diary < 0 || writev(diary, parts, 3) != want)
		abort();
}

static ssize_t write_noted(int fd, const void *bytes, size_t length, off_t offset)
{
	char        path[PATH_MAX];
	const char *name = name_of(fd, path);
	ssize_t     n;
	int         saved;

	pthread_mutex_lock(&lock);
	if (name && offset < 0)
		offset = lseek(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
	n = name ? syscall(SYS_pwrite64, fd, bytes, length, offset) : 0;
	saved = errno;
	if (name && n > 0)
		note(ENTRY_WRITE, name, (uint64_t)offset, bytes, (size_t)n);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return name ? n : -2;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset)
{
	ssize_t n = write_noted(fd, bytes, length, offset);

	return n == -2 ? syscall(SYS_pwrite64, fd, bytes, length, offset) : n;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	return pwrite64(fd, bytes, length, offset);
}

ssize_t write(int fd, const void *bytes, size_t length)
{
	ssize_t n = write_noted(fd, bytes, length, -1);

	if (n == -2)
		return syscall(SYS_write, fd, bytes, length);
	if (n > 0)
		lseek(fd, n, SEEK_CUR);
	return n;
}

int ftruncate64(int fd, off_t size)
{
	char        path[PATH_MAX];
	const char *name = name_of(fd, path);
	int         status, saved;

	pthread_mutex_lock(&lock);
	status = (int)syscall(SYS_ftruncate, fd, size);
	saved = errno;
	if (name && status == 0)
		note(ENTRY_TRUNCATE, name, (uint64_t)size, NULL, 0);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return status;
}

int ftruncate(int fd, off_t size)
{
	return ftruncate64(fd, size);
}

/* What was written while it was under way may or may not be on the disk, so it counts as not flushed: the diary is
 * marked where the flush began. */
static int flush_noted(long call, int fd)
{
	char        path[PATH_MAX];
	const char *name = name_of(fd, path);
	uint64_t    began = 0;
	int         status, saved;

	if (name) {
		pthread_mutex_lock(&lock);
		began = diary < 0 ? 0 : (uint64_t)lseek(diary, 0, SEEK_END);
		pthread_mutex_unlock(&lock);
	}
	status = (int)syscall(call, fd);
	saved = errno;
	if (name && status == 0) {
		pthread_mutex_lock(&lock);
		note(ENTRY_FLUSH, name, began, NULL, 0);
		pthread_mutex_unlock(&lock);
	}
	errno = saved;
	return status;
}

int fsync(int fd)
{
	return flush_noted(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return flush_noted(SYS_fdatasync, fd);
}

int unlink(const char *path)
{
	const char *name = below_folder(path);
	int         status, saved;

	pthread_mutex_lock(&lock);
	status = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	saved = errno;
	if (name && status == 0)
		note(ENTRY_REMOVE, name, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return status;
}
