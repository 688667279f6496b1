/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - programs that are waited for.
 *
 * Secrets go in by the input or the environment, never by the arguments, which everybody on the machine can read. What
 * a program says on standard error becomes the message of the failure: its last line.
 */
#include "providers/local/run.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/process.h"

enum { EXIT_NOT_STARTED = 127, ERROR_MAX = 4096, CHUNK = 16384, CHAIN_MAX = 2 };

const char *const run_environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent", "LC_ALL=C.UTF-8",
	                                "TZ=UTC", NULL };

void run_become(uid_t uid, gid_t gid, mode_t mask)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	umask(mask);
	if (uid && (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0))
		_exit(EXIT_NOT_STARTED);
}

/* The three ends of a program's standard streams, in us. */
struct ends {
	int in[2], out[2], err[2];
};

static void close_end(int *end)
{
	if (*end >= 0)
		close(*end);
	*end = -1;
}

static void close_both(int ends[2])
{
	close_end(&ends[0]);
	close_end(&ends[1]);
}

static void exec_program(const struct run *r, int in, int out, int err, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_NOT_STARTED);
	if (in < 0)
		in = open("/dev/null", O_RDONLY);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0 ||
	    chdir(r->folder ? r->folder : "/") != 0)
		_exit(EXIT_NOT_STARTED);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	run_become(r->uid, r->gid, 022);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user has forgotten it */
	execvpe(r->args[0], (char *const *)(uintptr_t)r->args,
	        (char *const *)(uintptr_t)(r->env ? r->env : run_environment));
	_exit(EXIT_NOT_STARTED);
}

/* Feeds `in`, collects what comes from out and err until both have ended. False: time is up, or it writes too much. */
static bool talk(struct ends *n, struct str in, struct buf *out, struct buf *err, struct mono end)
{
	while (n->out[0] >= 0 || n->err[0] >= 0) {
		struct pollfd ready[3] = { { .fd = n->out[0], .events = POLLIN },
			                   { .fd = n->err[0], .events = POLLIN },
			                   { .fd = n->in[1], .events = POLLOUT } };
		int64_t       left = end.ms - mono_now().ms;

		if (left <= 0 || out->is_full)
			return false;
		if (poll(ready, 3, (int)left) <= 0)
			continue;
		if (ready[2].revents) {
			ssize_t put = in.n ? write(n->in[1], in.p, in.n < CHUNK ? in.n : CHUNK) : 0;

			if (put > 0)
				in = str_of(in.p + put, in.n - (size_t)put);
			if (!in.n || (put < 0 && errno != EINTR && errno != EAGAIN))
				close_end(&n->in[1]);
		}
		for (int i = 0; i < 2; i++) {
			int    *from = i ? &n->err[0] : &n->out[0];
			char    bytes[CHUNK];
			ssize_t got;

			if (!ready[i].revents)
				continue;
			got = read(*from, bytes, sizeof(bytes));
			if (got > 0)
				buf_add(i ? err : out, bytes, (size_t)got);
			else if (got == 0 || errno != EINTR)
				close_end(from);
		}
	}
	return true;
}

static struct str last_line(struct str text)
{
	while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == ' '))
		text.n--;
	for (size_t i = text.n; i > 0; i--)
		if (text.p[i - 1] == '\n')
			return str_of(text.p + i, text.n - i);
	return text;
}

static pid_t spawn(const struct run *r, int in, int out, int err)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		exec_program(r, in, out, err, parent);
	return pid;
}

/* Starts it, and what it goes into; returns how many were started. */
static size_t spawn_all(const struct run *r, struct ends *n, pid_t pids[CHAIN_MAX])
{
	const struct run *last = r->into ? r->into : r;
	int between[2] = { -1, -1 }, in = r->in_fd ? r->in_fd : n->in[0], out = last->out_fd ? last->out_fd : n->out[1];
	size_t count = 0;

	if (r->into && pipe2(between, O_CLOEXEC) != 0)
		return 0;
	pids[0] = spawn(r, in, r->into ? between[1] : out, n->err[1]);
	count += pids[0] > 0;
	if (r->into && count) {
		pids[1] = spawn(r->into, between[0], out, n->err[1]);
		count += pids[1] > 0;
	}
	close_both(between);
	return count;
}

static enum rc judge(const struct run *r, const pid_t *pids, size_t count, bool is_over, struct str said, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; i < count; i++) {
		const char *name = (i ? r->into : r)->args[0];
		int         status;

		if (!is_over)
			kill(pids[i], SIGKILL);
		status = process_wait(pids[i]);
		if (!is_over)
			rc = err_set(e, RC_TIMEOUT, "%s did not end within %lld s", name,
			             (long long)(r->limit_ms / 1000));
		else if (status && !rc && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_STARTED)
			rc = err_set(e, RC_UNAVAILABLE, "%s cannot be started; scripts/setup instances installs it",
			             name);
		else if (status && !rc)
			rc = err_set(e, RC_UNAVAILABLE, "%s failed: %.*s", name, STR_ARG(said));
	}
	return rc;
}

enum rc run_program(const struct run *r, struct arena *a, struct str *ret, struct err *e)
{
	struct ends                  n = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	CLEANUP(buf_fini) struct buf out = BUF(RUN_OUTPUT_MAX), err = BUF(ERROR_MAX);
	pid_t                        pids[CHAIN_MAX];
	size_t                       count = 0, wanted = r->into ? 2 : 1;
	struct mono                  end = { mono_now().ms + r->limit_ms };
	bool                         is_over = false;
	enum rc                      rc;

	if (pipe2(n.out, O_CLOEXEC) == 0 && pipe2(n.err, O_CLOEXEC) == 0 && (!r->in.p || pipe2(n.in, O_CLOEXEC) == 0))
		count = spawn_all(r, &n, pids);
	close_end(&n.in[0]); /* theirs */
	close_end(&n.out[1]);
	close_end(&n.err[1]);
	if (n.in[1] >= 0)
		fcntl(n.in[1], F_SETFL, O_NONBLOCK);
	if (count == wanted)
		is_over = talk(&n, r->in, &out, &err, end);
	for (size_t i = 0; i < count && is_over; i++) /* who has closed its output may go on */
		is_over = process_ends_by(pids[i], end);
	rc = judge(r, pids, count, is_over, last_line(buf_str(&err)), e);
	if (count < wanted)
		rc = err_set(e, RC_UNAVAILABLE, "no process for %s: %s", r->args[0], strerror(errno));
	close_both(n.in);
	close_both(n.out);
	close_both(n.err);
	if (out.is_full) {
		err_clear(e);
		rc = err_set(e, RC_TOO_LARGE, "%s writes more than %d bytes", r->args[0], RUN_OUTPUT_MAX);
	}
	if (!rc && ret)
		*ret = str_dup(a, buf_str(&out));
	return rc;
}
