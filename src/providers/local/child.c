/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.c - one server program: its lock, its processes, its answers.
 *
 * Always true:
 *   1. The file is empty from the moment the lock is taken until the child itself has written its number: nobody reads
 *      the number of an older
 *      one while the lock is held.                                                                      [child_start()]
 *   2. A group is killed only while the lock is held, that is, while a process of it lives and its number is its own.
 *      [child_kill()]
 */
#include "providers/local/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "providers/local/run.h"

/* glibc names the calls of pidfds from 2.36 on only, and the program is to run on 2.34: hence syscall(). */
enum { LOCK_FD = 3, EXIT_NOT_STARTED = 127, NOTE_SIZE = 64, NOTE_WAIT_MS = 2000, KILL_WAIT_MS = 5000 };

/* --- the lock --- */

static int open_lock(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static bool is_held(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

bool child_is_locked(const struct child *c)
{
	CLEANUP(fd_closep) int fd = open(c->plan.lock.p, O_RDWR | O_CLOEXEC);

	return fd >= 0 && is_held(fd);
}

/* What the holder has written: its number and its generation. It may be about to. */
static bool read_note(int fd, pid_t *ret_pid, int64_t *ret_generation)
{
	int64_t end_ms = mono_now().ms + NOTE_WAIT_MS, pid, generation;

	while (is_held(fd) && mono_now().ms < end_ms) {
		char       text[NOTE_SIZE];
		ssize_t    got = pread(fd, text, sizeof(text), 0);
		struct str rest = str_of(text, got > 0 ? (size_t)got : 0), number = str_cut(&rest, ' ');

		if (str_to_int(number, 2, INT32_MAX, &pid) &&
		    str_to_int(str_cut(&rest, '\n'), 0, INT64_MAX, &generation)) {
			*ret_pid = (pid_t)pid;
			*ret_generation = generation;
			return true;
		}
		poll(NULL, 0, 5);
	}
	return false;
}

/* --- starting --- */

static size_t put_number(char *to, int64_t number)
{
	char   digits[24];
	size_t n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	for (size_t i = 0; i < n; i++)
		to[i] = digits[n - 1 - i];
	return n;
}

/* After fork(): only what is safe there. */
static void exec_child(const struct child *c, int lock, int log, int nothing, int64_t generation)
{
	char   note[NOTE_SIZE];
	size_t n;

	setpgid(0, 0);
	n = put_number(note, getpid());
	note[n++] = ' ';
	n += put_number(note + n, generation);
	note[n++] = '\n';
	if (pwrite(lock, note, n, 0) != (ssize_t)n || dup2(nothing, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
	    dup2(log, STDERR_FILENO) < 0 || dup2(lock, LOCK_FD) < 0 || chdir("/") != 0)
		_exit(EXIT_NOT_STARTED);
	if (lock == LOCK_FD)
		fcntl(lock, F_SETFD, 0);
	close_range(LOCK_FD + 1, ~0U, 0);
	run_become(0, 0, c->plan.mask);
	execve(c->plan.args[0], (char *const *)(uintptr_t)c->plan.args, (char *const *)(uintptr_t)run_environment);
	_exit(EXIT_NOT_STARTED);
}

static enum rc fork_child(struct child *c, int lock, int64_t generation, struct err *e)
{
	CLEANUP(fd_closep) int log = open(c->plan.log.p, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	CLEANUP(fd_closep) int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_t                  pid = log < 0 || nothing < 0 ? -1 : fork();

	if (pid == 0)
		exec_child(c, lock, log, nothing, generation);
	if (pid < 0)
		return err_set(e, RC_UNAVAILABLE, "%s cannot be started: %s", c->plan.args[0], strerror(errno));
	setpgid(pid, pid); /* whoever of the two is first */
	c->pid = pid;
	c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return RC_OK;
}

enum rc child_start(struct child *c, int64_t generation, struct err *e)
{
	struct flock           whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	CLEANUP(fd_closep) int lock = open_lock(c->plan.lock.p);
	enum rc                rc;

	if (lock < 0)
		return err_set(e, RC_UNAVAILABLE, "cannot open %s: %s", c->plan.lock.p, strerror(errno));
	if (fcntl(lock, F_OFD_SETLK, &whole) != 0)
		return err_set(e, RC_CONFLICT, "%s runs still", c->plan.args[0]);
	if (ftruncate(lock, 0) != 0 || (unlink(c->plan.socket.p) != 0 && errno != ENOENT))
		return err_set(e, RC_UNAVAILABLE, "cannot make room for %s: %s", c->plan.args[0], strerror(errno));
	if ((rc = fork_child(c, lock, generation, e)))
		return rc;
	c->state = CHILD_STARTING;
	c->generation = generation;
	c->started_ms = clock_now(&clock_real).ms;
	c->grace_ms = mono_now().ms + CHILD_GRACE_MS;
	c->is_healthy = false;
	return RC_OK;
}

/* --- taking over, ending --- */

void child_adopt(struct child *c)
{
	CLEANUP(fd_closep) int fd = open_lock(c->plan.lock.p);
	struct stat            about;
	bool                   is_known = fd >= 0 && read_note(fd, &c->pid, &c->generation);

	c->pidfd = is_known ? (int)syscall(SYS_pidfd_open, c->pid, 0) : -1;
	if (is_known && c->pidfd >= 0) {
		c->state = CHILD_STARTING;
		c->grace_ms = mono_now().ms + CHILD_GRACE_MS;
		c->started_ms = fstat(fd, &about) == 0 ? (int64_t)about.st_mtim.tv_sec * 1000 : 0;
	} else if (is_known) {
		child_kill_stranger(c->plan.lock.p);
	}
}

void child_kill_stranger(const char *path)
{
	int64_t                end_ms = mono_now().ms + KILL_WAIT_MS, generation;
	CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CLOEXEC);
	pid_t                  pid;

	if (fd >= 0 && read_note(fd, &pid, &generation)) {
		kill(-pid, SIGKILL);
		while (is_held(fd) && mono_now().ms < end_ms)
			poll(NULL, 0, 2);
	}
}

void child_signal(const struct child *c, int number)
{
	if (c->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, number, NULL, 0); /* it is gone: as good */
}

void child_kill(const struct child *c)
{
	if (child_is_locked(c))
		(void)kill(-c->pid, SIGKILL);
}

void child_forget(struct child *c)
{
	(void)waitpid(c->pid, NULL, WNOHANG); /* not ours when it was taken over */
	child_hang_up(c);
	if (c->pidfd >= 0)
		close(c->pidfd);
	c->pidfd = -1;
	c->pid = 0;
	c->is_healthy = false;
	c->state = CHILD_NONE;
}

bool child_is_stopped(const struct child *c)
{
	CLEANUP(fd_closep) int fd = -1;
	char                   path[32], text[256];
	ssize_t                got;
	char                  *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)c->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[got > 0 ? got : 0] = '\0';
	state = strrchr(text, ')'); /* pid (name) state */
	return state && (strncmp(state, ") T", 3) == 0 || strncmp(state, ") t", 3) == 0);
}

/* --- questions --- */

bool child_ask(struct child *c, struct str socket_path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	child_hang_up(c);
	if (fd < 0)
		return false;
	snprintf(to.sun_path, sizeof(to.sun_path), "%.*s", STR_ARG(socket_path));
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) != 0 ||
	    (c->plan.question.n &&
	     send(fd, c->plan.question.p, c->plan.question.n, MSG_NOSIGNAL) != (ssize_t)c->plan.question.n)) {
		close(fd);
		return false;
	}
	c->asking = fd;
	return true;
}

int child_hear(struct child *c)
{
	ssize_t got = recv(c->asking, c->reply + c->reply_n, sizeof(c->reply) - c->reply_n, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0)
		return -1;
	c->reply_n += (size_t)got;
	if (!c->plan.answer.n || str_has(str_of(c->reply, c->reply_n), c->plan.answer))
		return 1;
	return c->reply_n < sizeof(c->reply) ? 0 : -1;
}

void child_hang_up(struct child *c)
{
	if (c->asking)
		close(c->asking);
	c->asking = 0;
	c->reply_n = 0;
}
