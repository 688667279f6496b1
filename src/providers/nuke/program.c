/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - finds aws-nuke and asks it what it knows, with a limit of time and size. It gets an empty environment and no input. */
#include "providers/nuke/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"

enum { KINDS_MAX = 131072, ASK_MS = 20000 };

enum rc nuke_program_find(const char *name, const char *path, struct arena *a, struct str *ret, struct err *e)
{
	struct str rest = str_from(path ? path : "/usr/local/bin:/usr/bin:/bin"), at;

	if (strchr(name, '/')) {
		if (access(name, X_OK) != 0)
			return err_set(e, RC_INVALID, "%s cannot be executed: %s", name, strerror(errno));
		*ret = str_dup(a, str_from(name));
		return RC_OK;
	}
	while (rest.n) {
		struct str folder = str_cut(&rest, ':');

		at = str_format(a, "%.*s/%s", STR_ARG(folder), name);
		if (folder.n && access(at.p, X_OK) == 0) {
			*ret = at;
			return RC_OK;
		}
	}
	return err_set(e, RC_INVALID, "there is no program %s on PATH; install aws-nuke, or name its path", name);
}

static enum rc spawn(const char *program, int out, pid_t *ret, struct err *e)
{
	char *const args[] = { (char *)(uintptr_t) "aws-nuke", (char *)(uintptr_t) "resource-types", NULL };
	char *const environment[] = { NULL };
	posix_spawn_file_actions_t files;
	int                        failed;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	failed = posix_spawn(ret, program, &files, NULL, args, environment);
	posix_spawn_file_actions_destroy(&files);
	return failed ? err_set(e, RC_INVALID, "%s cannot be started: %s", program, strerror(failed)) : RC_OK;
}

/* Up to its end, the limit, or the end of time; false unless it is the first. */
static bool read_all(int from, char *text, size_t *size)
{
	int64_t end_ms = mono_now().ms + ASK_MS;

	for (;;) {
		struct pollfd ready = { .fd = from, .events = POLLIN };
		int64_t       left = end_ms - mono_now().ms;
		ssize_t       got;

		if (left <= 0 || *size == KINDS_MAX)
			return false;
		if (poll(&ready, 1, (int)left) <= 0)
			continue;
		got = read(from, text + *size, KINDS_MAX - *size);
		if (got == 0)
			return true;
		if (got > 0)
			*size += (size_t)got;
		else if (errno != EINTR)
			return false;
	}
}

enum rc nuke_program_kinds(const char *program, struct arena *a, struct str *ret, struct err *e)
{
	char   *text = arena_alloc(a, KINDS_MAX + 1);
	size_t  size = 0;
	int     ends[2], status = 0;
	bool    is_whole;
	pid_t   pid;
	enum rc rc;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_set(e, RC_UNAVAILABLE, "no pipe for %s: %s", program, strerror(errno));
	rc = spawn(program, ends[1], &pid, e);
	close(ends[1]);
	is_whole = !rc && read_all(ends[0], text, &size);
	close(ends[0]);
	if (rc)
		return rc;
	if (!is_whole)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!is_whole || status != 0 || !memmem(text, size, "\n", 1))
		return err_set(e, RC_INVALID, "%s does not answer 'resource-types' as aws-nuke 2 does", program);
	*ret = str_of(text, size);
	return RC_OK;
}
