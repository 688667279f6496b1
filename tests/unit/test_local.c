/* SPDX-License-Identifier: Apache-2.0 */
/* What the local instance driver is made of, without WordPress: programs that are waited for, children that are found
 * again, files. Real sites are tested by tests/local. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/process.h"
#include "providers/local/child.h"
#include "providers/local/fastcgi.h"
#include "providers/local/files.h"
#include "providers/local/local_private.h"
#include "providers/local/run.h"
#include "test.h"

enum { WAIT_MS = 10000 };

struct fixture {
	char         folder[64];
	struct arena arena;
	struct err   err;
	struct child child;
};

static void set_up(struct fixture *f)
{
	(void)signal(SIGPIPE, SIG_IGN); /* as the server does; cannot fail for this signal */
	*f = (struct fixture){ .folder = "/tmp/leasehold-local-XXXXXX" };
	CHECK(mkdtemp(f->folder) != NULL);
	f->child = (struct child){ .pidfd = -1,
		                   .plan = { .lock = str_format(&f->arena, "%s/lock", f->folder),
		                             .log = str_format(&f->arena, "%s/log", f->folder),
		                             .socket = str_format(&f->arena, "%s/socket", f->folder),
		                             .args = { "/bin/sh", "-c", "sleep 600 & wait" } } };
}

static void tear_down(struct fixture *f)
{
	CHECK(tree_remove(f->folder, &f->err) == RC_OK);
	arena_fini(&f->arena);
}

static const char *path(struct fixture *f, const char *name)
{
	return str_format(&f->arena, "%s/%s", f->folder, name).p;
}

/* --- programs --- */

static enum rc run_shell(struct fixture *f, const char *script, struct run r, struct str *ret)
{
	const char *const args[] = { "sh", "-c", script, NULL };

	r.args = args;
	r.limit_ms = r.limit_ms ? r.limit_ms : WAIT_MS;
	err_clear(&f->err);
	return run_program(&r, &f->arena, ret, &f->err);
}

TEST(a_program_is_given_its_input_and_returns_its_output)
{
	struct fixture f;
	struct str     out;

	set_up(&f);
	CHECK(run_shell(&f, "cat; pwd", (struct run){ .in = STR("in\n"), .folder = f.folder }, &out) == RC_OK);
	CHECK(str_eq(out, str_format(&f.arena, "in\n%s\n", f.folder)));
	CHECK(run_shell(&f, "cat", (struct run){ 0 }, &out) == RC_OK && out.n == 0);
	CHECK(run_shell(&f, "true", (struct run){ .in = STR("nobody reads this") }, &out) == RC_OK);
	tear_down(&f);
}

TEST(a_program_that_fails_says_why_by_its_last_line)
{
	struct fixture f;

	set_up(&f);
	CHECK(run_shell(&f, "echo first >&2; echo it is full >&2; exit 3", (struct run){ 0 }, NULL) == RC_UNAVAILABLE);
	CHECK(strcmp(f.err.msg, "sh failed: it is full") == 0);
	CHECK(run_program(&(struct run){ .args = (const char *const[]){ "no-such-program", NULL },
	                                 .limit_ms = WAIT_MS },
	                  &f.arena, NULL, NULL) == RC_UNAVAILABLE);
	CHECK(run_shell(&f, "exec yes", (struct run){ 0 }, NULL) == RC_TOO_LARGE);
	tear_down(&f);
}

TEST(a_program_that_does_not_end_is_killed)
{
	struct fixture f;

	set_up(&f);
	CHECK(run_shell(&f, "exec sleep 600", (struct run){ .limit_ms = 50 }, NULL) == RC_TIMEOUT);
	tear_down(&f);
}

TEST(a_program_that_says_no_more_and_does_not_end_is_killed)
{
	struct run     silent = { .args = (const char *const[]){ "sh", "-c", "exec sleep 600 >&- 2>&-", NULL } };
	struct fixture f;

	set_up(&f);
	CHECK(run_shell(&f, silent.args[2], (struct run){ .limit_ms = 50 }, NULL) == RC_TIMEOUT);
	CHECK(run_shell(&f, "exec 2>&-; echo a", (struct run){ .limit_ms = 50, .into = &silent }, NULL) == RC_TIMEOUT);
	tear_down(&f);
}

/* What a sandbox around us does. */
static bool forbid_pidfds(void)
{
	struct sock_filter rules[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		                       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		                       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		                       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog  program = { .len = ARRAY_LEN(rules), .filter = rules };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 && syscall(SYS_pidfd_open, getpid(), 0) < 0 &&
	       errno == EPERM;
}

TEST(where_a_sandbox_forbids_to_watch_a_process_programs_run_and_are_killed_all_the_same)
{
	struct fixture f;
	pid_t          us;

	set_up(&f);
	us = fork();
	CHECK(us >= 0);
	if (!us) {
		alarm(WAIT_MS / 1000);
		_exit(!forbid_pidfds() ||
		      run_shell(&f, "exec >&- 2>&-; sleep 0.02", (struct run){ 0 }, NULL) != RC_OK ||
		      run_shell(&f, "exec >&- 2>&-; exec sleep 600", (struct run){ .limit_ms = 50 }, NULL) !=
		              RC_TIMEOUT);
	}
	CHECK(process_wait(us) == 0);
	tear_down(&f);
}

TEST(one_program_goes_into_another_and_the_failure_of_either_counts)
{
	static const struct {
		const char *from, *into;
		enum rc     rc;
	} cases[] = { { "echo a b", "tr ' ' -", RC_OK },
		      { "echo a b; exit 1", "cat", RC_UNAVAILABLE },
		      { "echo a b", "cat; exit 1", RC_UNAVAILABLE } };
	struct fixture f;
	struct str     out;

	set_up(&f);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run into = { .args = (const char *const[]){ "sh", "-c", cases[i].into, NULL } };

		CASE(cases[i].from);
		CHECK(run_shell(&f, cases[i].from, (struct run){ .into = &into }, &out) == cases[i].rc);
		CHECK(cases[i].rc || str_eq(out, STR("a-b\n")));
	}
	tear_down(&f);
}

/* --- children --- */

static void wait_free(const struct child *c)
{
	int64_t until = mono_now().ms + WAIT_MS;

	while (child_is_locked(c) && mono_now().ms < until)
		poll(NULL, 0, 1);
	CHECK(!child_is_locked(c));
}

static void end(struct child *c)
{
	child_kill(c);
	wait_free(c);
	(void)process_wait(c->pid);
	child_forget(c);
}

TEST(there_are_never_two_of_one_child)
{
	struct fixture f;
	struct child   second;

	set_up(&f);
	second = f.child;
	CHECK(!child_is_locked(&f.child));
	CHECK(child_start(&f.child, 1, &f.err) == RC_OK && child_is_locked(&f.child));
	CHECK(child_start(&second, 1, NULL) == RC_CONFLICT);
	end(&f.child);
	CHECK(child_start(&second, 2, &f.err) == RC_OK);
	end(&second);
	tear_down(&f);
}

TEST(a_child_is_found_again_with_its_generation)
{
	struct fixture f;
	struct child   found;

	set_up(&f);
	found = f.child;
	CHECK(child_start(&f.child, 7, &f.err) == RC_OK);
	child_adopt(&found);
	CHECK(found.state == CHILD_STARTING && found.pid == f.child.pid && found.generation == 7);
	CHECK(found.pidfd >= 0 && found.started_ms > 0);
	close(found.pidfd);
	end(&f.child);
	child_adopt(&found);
	CHECK(found.pidfd < 0 && found.pid != 0);
	tear_down(&f);
}

/* The first process of a group dies, one that it has started lives on: as php-fpm's. */
static void behead(struct fixture *f)
{
	CHECK(child_start(&f->child, 1, &f->err) == RC_OK);
	while (file_read(f->child.plan.log.p, 100, &f->arena, &(struct str){ 0 }, NULL) == RC_NOT_FOUND)
		poll(NULL, 0, 1);
	for (struct str text = STR(""); !text.n;) /* it says that it has started the other */
		CHECK(file_read(f->child.plan.log.p, 100, &f->arena, &text, &f->err) == RC_OK);
	child_signal(&f->child, SIGKILL);
	(void)process_wait(f->child.pid);
	close(f->child.pidfd);
	f->child.pidfd = -1;
}

TEST(what_a_dead_child_leaves_behind_holds_its_lock_and_is_killed)
{
	struct fixture f;
	struct child   found;

	set_up(&f);
	f.child.plan.args[2] = "sleep 600 & echo started; wait";
	found = f.child;
	behead(&f);
	CHECK(child_is_locked(&f.child));
	child_adopt(&found);
	CHECK(found.state == CHILD_NONE && !child_is_locked(&f.child));
	tear_down(&f);
}

TEST(what_nobody_knows_is_killed_by_its_lock)
{
	struct fixture f;

	set_up(&f);
	CHECK(child_start(&f.child, 1, &f.err) == RC_OK);
	child_kill_stranger(f.child.plan.lock.p);
	CHECK(!child_is_locked(&f.child));
	end(&f.child);
	child_kill_stranger(path(&f, "no-such-lock"));
	tear_down(&f);
}

TEST(a_number_in_a_free_lock_is_nobodys)
{
	struct fixture f;
	char           text[32];

	set_up(&f);
	snprintf(text, sizeof(text), "%d 1\n", (int)getpid());
	CHECK(file_write(f.child.plan.lock.p, str_from(text), FILE_OURS, false, &f.err) == RC_OK);
	child_kill_stranger(f.child.plan.lock.p); /* it would be us */
	child_adopt(&f.child);
	CHECK(f.child.state == CHILD_NONE);
	tear_down(&f);
}

TEST(a_stopped_child_is_told_from_a_busy_one)
{
	struct fixture f;
	int64_t        until = mono_now().ms + WAIT_MS;

	set_up(&f);
	CHECK(child_start(&f.child, 1, &f.err) == RC_OK && !child_is_stopped(&f.child));
	child_signal(&f.child, SIGSTOP);
	while (!child_is_stopped(&f.child) && mono_now().ms < until)
		poll(NULL, 0, 1);
	CHECK(child_is_stopped(&f.child));
	end(&f.child);
	tear_down(&f);
}

/* --- files --- */

TEST(no_link_is_followed)
{
	struct fixture f;
	struct stat    about;

	set_up(&f);
	CHECK(folder_make(path(&f, "kept"), (struct file_owner){ (uid_t)-1, (gid_t)-1, 0755 }, &f.err) == RC_OK);
	CHECK(file_write(path(&f, "kept/file"), STR("kept"), FILE_OURS, true, &f.err) == RC_OK);
	CHECK(folder_make(path(&f, "tree"), (struct file_owner){ (uid_t)-1, (gid_t)-1, 0700 }, &f.err) == RC_OK);
	CHECK(symlink(path(&f, "kept"), path(&f, "tree/link")) == 0);
	CHECK(symlink(path(&f, "kept"), path(&f, "link")) == 0);
	CHECK(folder_make(path(&f, "link"), (struct file_owner){ (uid_t)-1, (gid_t)-1, 0700 }, NULL) != RC_OK);
	CHECK(stat(path(&f, "kept"), &about) == 0 && (about.st_mode & 0777) == 0755);
	CHECK(tree_remove(path(&f, "tree"), &f.err) == RC_OK && tree_remove(path(&f, "link"), &f.err) == RC_OK);
	CHECK(tree_remove(path(&f, "no-such-tree"), &f.err) == RC_OK);
	CHECK(stat(path(&f, "kept/file"), &about) == 0);
	tear_down(&f);
}

TEST(a_tree_of_any_depth_is_removed)
{
	struct fixture f;
	struct stat    about;
	int            at = -1;

	set_up(&f);
	CHECK(file_write(path(&f, "kept"), STR("kept"), FILE_OURS, false, &f.err) == RC_OK);
	CHECK(mkdir(path(&f, "tree"), 0700) == 0 && (at = open(path(&f, "tree"), O_DIRECTORY)) >= 0);
	for (int depth = 0; depth < 1000; depth++) {
		int outer = at;

		CHECK(mkdirat(outer, "d", 0700) == 0 && symlinkat(path(&f, "kept"), outer, "link") == 0);
		CHECK((at = openat(outer, "d", O_DIRECTORY)) >= 0 && close(outer) == 0);
	}
	CHECK(close(at) == 0);
	CHECK(tree_remove(path(&f, "tree"), &f.err) == RC_OK);
	CHECK(lstat(path(&f, "tree"), &about) != 0 && stat(path(&f, "kept"), &about) == 0);
	tear_down(&f);
}

TEST(a_file_has_its_mode_and_nothing_half_written_has_its_name)
{
	struct fixture f;
	struct str     text;
	struct stat    about;

	set_up(&f);
	CHECK(file_write(path(&f, "a"), STR("one"), (struct file_owner){ (uid_t)-1, (gid_t)-1, 0640 }, true, &f.err) ==
	      RC_OK);
	CHECK(stat(path(&f, "a"), &about) == 0 && (about.st_mode & 0777) == 0640);
	CHECK(file_read(path(&f, "a"), 3, &f.arena, &text, &f.err) == RC_OK && str_eq(text, STR("one")));
	CHECK(file_read(path(&f, "a"), 2, &f.arena, &text, NULL) == RC_TOO_LARGE);
	CHECK(file_read(path(&f, "b"), 2, &f.arena, &text, NULL) == RC_NOT_FOUND);
	CHECK(mkdir(path(&f, "c.draft"), 0700) == 0);
	CHECK(file_write(path(&f, "c"), STR("x"), FILE_OURS, false, NULL) != RC_OK && stat(path(&f, "c"), &about) != 0);
	tear_down(&f);
}

/* --- logs --- */

/* Behind the text is a page that nobody may read. */
TEST(nothing_is_read_behind_the_stamp_of_a_line)
{
	static const struct {
		const char *line;
		int64_t     at_ms;
	} cases[] = { { "[16-Nov-2026 13:36:22", INT64_C(1794836182000) },
		      { "[16-Nov-2026 13:36:2x", INT64_C(1794836162000) },
		      { "[16-Now-2026 13:36:22", -1 },
		      { "[16-Nov-2026 13:36:", -1 },
		      { "[[[[[[[[[[[[[[[[[[[[[", -1 },
		      { "[", -1 },
		      { "", -1 } };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char  *text = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(text != MAP_FAILED && mprotect(text + page, page, PROT_NONE) == 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t n = strlen(cases[i].line);

		CASE(cases[i].line);
		memcpy(text + page - n, cases[i].line, n);
		CHECK(log_stamp(str_of(text + page - n, n)) == cases[i].at_ms);
	}
	CHECK(munmap(text, 2 * page) == 0);
}

/* --- tasks --- */

TEST(a_ping_is_four_whole_records)
{
	struct str ping = fastcgi_ping();
	size_t     at = 0, records = 0;

	while (at + 8 <= ping.n && ping.p[at] == 1) {
		at += 8 + (size_t)((unsigned char)ping.p[at + 4] << 8 | (unsigned char)ping.p[at + 5]);
		records++;
	}
	CHECK(at == ping.n && records == 4);
	CHECK(text_has(ping, FASTCGI_PING_PATH));
}
