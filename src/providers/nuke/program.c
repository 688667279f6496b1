/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - the program aws-nuke: where it is, what it knows, and one run of it, from the dry run to its result.
 *
 * Asked what it knows, it gets an empty environment, no input, and a limit of time and size.
 *
 * A run is a process of its own, in a session of its own, so it goes on when the server ends, and the next server
 * finds its result. aws-nuke gets our environment, which the server has made for it, and inherits the lock.
 *
 * Always true:
 *   1. A result is written once, at the end. Without it, and without the lock, the run is lost.
 *   2. aws-nuke outlives neither us (the kernel kills it) nor the limit (its group is killed).
 *   3. A success is a dry run that found nothing, or a run that removed everything, by what it says, not by its exit
 *      code.
 *
 * Session tokens last an hour and are not renewed; the limit of a run is below that (LEASEHOLD_NUKE_RUN_SEC).
 */
#include "providers/nuke/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/process.h"
#include "providers/nuke/folder.h"
#include "providers/nuke/output.h"

enum { KINDS_MAX = 131072, ASK_MS = 20000, CHUNK = 16384, WHY_MAX = 2048 };
enum { EXIT_NOT_STARTED = 127, SIGNAL_BASE = 128 };

/* What comes is handed on piece by piece. To its end; false when the time was over first, or no more is wanted. */
static bool read_output(int from, struct mono end, bool (*take)(struct str bytes, void *arg), void *arg)
{
	char bytes[CHUNK];

	for (;;) {
		struct pollfd ready = { .fd = from, .events = POLLIN };
		int64_t       left = end.ms - mono_now().ms;
		ssize_t       got;

		if (left <= 0)
			return false;
		if (poll(&ready, 1, left < INT32_MAX ? (int)left : INT32_MAX) <= 0)
			continue; /* interrupted, or late */
		got = read(from, bytes, sizeof(bytes));
		if (got == 0 || (got < 0 && errno != EINTR))
			return true;
		if (got > 0 && !take(str_of(bytes, (size_t)got), arg))
			return false;
	}
}

/* Its exit code, or SIGNAL_BASE and more. */
static int exit_code_of(pid_t pid)
{
	int status = process_wait(pid);

	return WIFSIGNALED(status) ? SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- what it knows --- */

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

static bool keep_text(struct str bytes, void *arg)
{
	struct buf *b = arg;

	buf_add_str(b, bytes);
	return !b->is_full;
}

enum rc nuke_program_kinds(const char *program, struct arena *a, struct str *ret, struct err *e)
{
	CLEANUP(buf_fini) struct buf text = BUF(KINDS_MAX);
	struct mono                  end = { mono_now().ms + ASK_MS };
	bool                         is_whole;
	int                          ends[2];
	pid_t                        pid;
	enum rc                      rc;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_set(e, RC_UNAVAILABLE, "no pipe for %s: %s", program, strerror(errno));
	rc = spawn(program, ends[1], &pid, e);
	close(ends[1]);
	is_whole = !rc && read_output(ends[0], end, keep_text, &text) && process_ends_by(pid, end);
	close(ends[0]);
	if (rc)
		return rc;
	if (!is_whole)
		kill(pid, SIGKILL);
	if (exit_code_of(pid) != 0 || !is_whole || !str_has(buf_str(&text), STR("\n")))
		return err_set(e, RC_INVALID, "%s does not answer 'resource-types' as aws-nuke 2 does", program);
	*ret = str_dup(a, buf_str(&text));
	return RC_OK;
}

/* --- a run --- */

struct run {
	int             folder, log;
	size_t          logged; /* bytes */
	const char     *config; /* path */
	struct nuke_job job;
	struct mono     end;
	struct wall     began;
	struct arena    arena;
	struct buf      why;
};

/* --- one start of the program --- */

static void write_log(struct run *r, struct str bytes)
{
	size_t  room = NUKE_LOG_BYTES - r->logged;
	ssize_t put;

	if (bytes.n > room)
		bytes.n = room;
	put = bytes.n ? write(r->log, bytes.p, bytes.n) : 0;
	if (put > 0) /* a full disk costs the log, not the run */
		r->logged += (size_t)put;
}

static void exec_program(const struct run *r, char *const args[], int out, pid_t parent)
{
	int nothing = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_NOT_STARTED); /* it died before the kernel knew */
	setpgid(0, 0);
	dup2(nothing, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execv(r->job.program.p, args);
	_exit(EXIT_NOT_STARTED);
}

struct listening {
	struct run         *run;
	struct nuke_output *output;
};

static bool take_output(struct str bytes, void *arg)
{
	struct listening *l = arg;

	write_log(l->run, bytes);
	nuke_output_feed(l->output, bytes);
	return true;
}

/* RC_TIMEOUT: it was killed. */
static enum rc run_program(struct run *r, char *const args[], struct nuke_output *o, int *ret_exit, struct err *e)
{
	pid_t pid, parent = getpid();
	int   ends[2];
	bool  is_over;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_set(e, RC_UNAVAILABLE, "no pipe for aws-nuke: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		exec_program(r, args, ends[1], parent);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return err_set(e, RC_UNAVAILABLE, "no process for aws-nuke: %s", strerror(errno));
	}
	setpgid(pid, pid); /* whoever of the two is first */
	is_over = read_output(ends[0], r->end, take_output, &(struct listening){ r, o }) &&
	          process_ends_by(pid, r->end); /* whoever has closed the output may go on */
	if (!is_over)
		kill(-pid, SIGKILL);
	close(ends[0]);
	*ret_exit = exit_code_of(pid);
	nuke_output_end(o);
	return is_over ? RC_OK
	               : err_set(e, RC_TIMEOUT, "aws-nuke was ended after %lld s", (long long)(r->job.limit_ms / 1000));
}

static enum rc start_program(struct run *r, bool is_dry, struct nuke_output *o, int *ret_exit, struct err *e)
{
	struct str  retries = str_format(&r->arena, "%lld", (long long)r->job.wait_retries);
	const char *args[] = { "aws-nuke",
		               "--config",
		               r->config,
		               "--force",
		               "--force-sleep",
		               "3",
		               is_dry ? NULL : "--no-dry-run",
		               "--max-wait-retries",
		               retries.p,
		               NULL };

	write_log(r, is_dry ? STR("--- dry run\n") : STR("--- run\n"));
	return run_program(r, (char *const *)(uintptr_t)args, o, ret_exit, e);
}

/* --- what is told of it --- */

/* The end of the log, from the beginning of a line on. */
static struct str log_tail(struct run *r)
{
	size_t     size = r->logged < CLOUD_LOG_MAX ? r->logged : CLOUD_LOG_MAX;
	char      *text = arena_alloc(&r->arena, size + 1);
	ssize_t    got = pread(r->log, text, size, (off_t)(r->logged - size));
	struct str tail = str_of(text, got > 0 ? (size_t)got : 0);

	if (size < r->logged)
		(void)str_cut(&tail, '\n');
	return tail;
}

static enum rc write_result(struct run *r, const struct nuke_output *scan, const struct nuke_output *removal,
                            bool is_clean, int exit_code, struct err *e)
{
	struct cloud_run_report report = {
		.exit_code = exit_code,
		.found = scan->total > 0 ? scan->total : 0,
		.filtered = scan->filtered > 0 ? scan->filtered : 0,
		.removed = removal->removed_count,
		.failed = removal->failed > 0 ? removal->failed : 0,
		.removed_list = buf_str(&removal->removed),
		.kept_list = buf_str(removal->nukeable >= 0 ? &removal->kept : &scan->kept),
		.log = log_tail(r),
		.started_ms = r->began.ms,
		.ended_ms = clock_now(&clock_real).ms,
	};
	struct cloud_run run = { .state = is_clean ? CLOUD_SUCCEEDED : CLOUD_FAILED,
		                 .text = is_clean ? STR("") : buf_str(&r->why),
		                 .report = &report };

	return nuke_result_write(r->folder, &run, e);
}

/* The dry run, then the run if there is something to remove; what cannot be done is a failure. */
static enum rc carry_out(struct run *r, struct err *e)
{
	struct nuke_output scan, removal;
	struct err         why = { 0 };
	enum nuke_verdict  verdict = NUKE_FAILED;
	int                exit_code = 0;
	enum rc            rc;

	nuke_output_init(&scan);
	nuke_output_init(&removal);
	if (!(rc = start_program(r, true, &scan, &exit_code, &why)))
		verdict = nuke_judge_scan(&scan, exit_code, &r->why);
	if (!rc && verdict == NUKE_DIRTY && !(rc = start_program(r, false, &removal, &exit_code, &why)))
		verdict = nuke_judge_run(&removal, exit_code, &r->why);
	if (rc)
		buf_add_text(&r->why, why.msg);
	rc = write_result(r, &scan, &removal, !rc && verdict == NUKE_CLEAN, exit_code, e);
	nuke_output_fini(&scan);
	nuke_output_fini(&removal);
	return rc;
}

static enum rc begin(struct run *r, const char *folder, struct err *e)
{
	enum rc rc;

	r->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->folder < 0)
		return err_set(e, RC_INVALID, "%s: %s", folder, strerror(errno));
	if ((rc = nuke_job_read(r->folder, &r->arena, &r->job, e)))
		return rc;
	r->log = openat(r->folder, NUKE_LOG, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (r->log < 0)
		return err_set(e, RC_CONFLICT, "the run has begun before");
	r->config = str_format(&r->arena, "%s/%s", folder, NUKE_CONFIG).p;
	r->began = clock_now(&clock_real);
	r->end.ms = mono_now().ms + r->job.limit_ms;
	return RC_OK;
}

int nuke_supervise(const char *folder)
{
	struct run r = { .folder = -1, .log = -1, .why = BUF(WHY_MAX) };
	struct err e = { 0 };
	enum rc    rc;

	rc = begin(&r, folder, &e);
	if (!rc)
		rc = carry_out(&r, &e);
	if (rc)
		fprintf(stderr, "%s: %s\n", NUKE_RUN_COMMAND, e.msg);
	if (r.log >= 0)
		close(r.log);
	if (r.folder >= 0)
		close(r.folder);
	buf_fini(&r.why);
	arena_fini(&r.arena);
	return rc ? 1 : 0;
}
