/* SPDX-License-Identifier: Apache-2.0 */
/* failcall.c - the one call that fails: loaded before libc (LD_PRELOAD), it lets the n-th call of one kind fail and all
 * others through.
 *
 * $FAILCALL_FILE is a file of three 64-bit numbers that the test and the program map: the kind, how many calls of it
 * are left until one fails, and how many have failed. A test writes "left" first, then the kind; the kind is 0 again
 * once a call has failed.
 *
 * Only files, sockets and the standard streams fail: a wake-up within the process (eventfd, epoll) cannot, but what it
 * needs may not be had at the start. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { KIND_MEMORY = 1, KIND_OPEN, KIND_READ, KIND_WRITE, KIND_FLUSH, KIND_ACCEPT, KIND_WAIT };

static struct control {
	_Atomic int64_t kind, left, failed;
} * control;

__attribute__((constructor)) static void map_control(void)
{
	const char *path = getenv("FAILCALL_FILE");
	int         fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
	void       *map;

	if (fd < 0)
		return;
	map = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		control = map;
}

static bool fails(enum kind kind, int error)
{
	if (!control || control->kind != kind || atomic_fetch_sub(&control->left, 1) != 1)
		return false;
	control->kind = 0;
	control->failed++;
	errno = error;
	return true;
}

/* The error that this descriptor would give, or 0 if it cannot fail. */
static int error_of(int fd, int of_file)
{
	struct stat info;
	int         was = errno, error = 0;

	if (!control || !control->kind || fstat(fd, &info) != 0)
		error = 0;
	else if (S_ISREG(info.st_mode))
		error = of_file;
	else if (S_ISSOCK(info.st_mode))
		error = ECONNRESET;
	else if (fd == STDOUT_FILENO || fd == STDERR_FILENO)
		error = EIO;
	errno = was;
	return error;
}

static bool transfer_fails(enum kind kind, int fd, int of_file)
{
	int error = error_of(fd, of_file);

	return error && fails(kind, error);
}

/* --- memory --- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
	return fails(KIND_MEMORY, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails(KIND_MEMORY, ENOMEM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return size && fails(KIND_MEMORY, ENOMEM) ? NULL : __libc_realloc(old, size);
}

/* --- files --- */

static int open_at(int folder, const char *path, int flags, int mode)
{
	return fails(KIND_OPEN, EMFILE) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE_OF(flags, mode)                                                    \
	do {                                                                    \
		va_list more;                                                   \
		va_start(more, flags);                                          \
		mode = (flags) & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0; \
		va_end(more);                                                   \
	} while (0)

int open(const char *path, int flags, ...)
{
	int mode;

	MODE_OF(flags, mode);
	return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int openat(int folder, const char *path, int flags, ...)
{
	int mode;

	MODE_OF(flags, mode);
	return open_at(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));

int fsync(int fd)
{
	return fails(KIND_FLUSH, EIO) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return fails(KIND_FLUSH, EIO) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

/* --- transfers --- */

ssize_t read(int fd, void *to, size_t size)
{
	return transfer_fails(KIND_READ, fd, EIO) ? -1 : syscall(SYS_read, fd, to, size);
}

ssize_t pread(int fd, void *to, size_t size, off_t at)
{
	return transfer_fails(KIND_READ, fd, EIO) ? -1 : syscall(SYS_pread64, fd, to, size, at);
}

ssize_t pread64(int fd, void *to, size_t size, off64_t at) __attribute__((alias("pread")));

ssize_t recv(int fd, void *to, size_t size, int flags)
{
	return transfer_fails(KIND_READ, fd, EIO) ? -1 : syscall(SYS_recvfrom, fd, to, size, flags, NULL, NULL);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	return transfer_fails(KIND_READ, fd, EIO) ? -1 : syscall(SYS_recvmsg, fd, message, flags);
}

ssize_t write(int fd, const void *from, size_t size)
{
	return transfer_fails(KIND_WRITE, fd, ENOSPC) ? -1 : syscall(SYS_write, fd, from, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return transfer_fails(KIND_WRITE, fd, ENOSPC) ? -1 : syscall(SYS_writev, fd, parts, count);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at)
{
	return transfer_fails(KIND_WRITE, fd, ENOSPC) ? -1 : syscall(SYS_pwrite64, fd, from, size, at);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) __attribute__((alias("pwrite")));

ssize_t send(int fd, const void *from, size_t size, int flags)
{
	return transfer_fails(KIND_WRITE, fd, ENOSPC) ? -1 : syscall(SYS_sendto, fd, from, size, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return transfer_fails(KIND_WRITE, fd, ENOSPC) ? -1 : syscall(SYS_sendmsg, fd, message, flags);
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	return fails(KIND_ACCEPT, EMFILE) ? -1 : (int)syscall(SYS_accept4, fd, address, size, flags);
}

int accept(int fd, struct sockaddr *address, socklen_t *size)
{
	return accept4(fd, address, size, 0);
}

/* --- what a loop waits with --- */

int epoll_create1(int flags)
{
	return fails(KIND_WAIT, EMFILE) ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

int eventfd(unsigned int count, int flags)
{
	return fails(KIND_WAIT, EMFILE) ? -1 : (int)syscall(SYS_eventfd2, count, flags);
}

int pipe2(int ends[2], int flags)
{
	return fails(KIND_WAIT, EMFILE) ? -1 : (int)syscall(SYS_pipe2, ends, flags);
}
