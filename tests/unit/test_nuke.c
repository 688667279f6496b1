/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of aws-nuke as processes and folders. The program is a script here, which does what the account's number says;
 * the real one is used by tests/api/test_nuke.py. */
#include "providers/nuke/nuke.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "domain/ports/cloud.h"
#include "fake_server.h"
#include "net/aws.h"
#include "providers/nuke/folder.h"
#include "test.h"

#define DIRTY  "111111111111" /* two resources, which go */
#define EMPTY  "222222222222"
#define STUCK  "333333333333" /* never ends */
#define SILENT "444444444444" /* never ends, and has closed its output */
#define FORBID "999999999999"
#define SECRET "secret-of-the-role"

static const char template_text[] = "regions: [us-east-1]\naccount-blocklist: [\"" FORBID "\"]\n"
                                    "accounts: {\"%CLEANUP_ACCOUNT_ID%\": {}}\n";

/* It notes every start and what it was given. */
static const char script[] = "#!/bin/sh\n"
                             "[ \"$1\" = resource-types ] && { echo SQSQueue; exit 0; }\n"
                             "cd \"$(dirname \"$0\")\"\n"
                             "/usr/bin/env >> environment\n"
                             "case $* in *--no-dry-run*) what=run ;; *) what=dry ;; esac\n"
                             "echo \"$what\" >> starts\n"
                             "/bin/grep -q '\"" EMPTY
                             "\": {' \"$2\" && { echo 'Scan complete: 1 total, 0 nukeable, 1 filtered.'; exit 0; }\n"
                             "/bin/grep -q '\"" STUCK "\": {' \"$2\" && { exec /bin/sleep 600; }\n"
                             "/bin/grep -q '\"" SILENT "\": {' \"$2\" && { exec /bin/sleep 600 >&- 2>&-; }\n"
                             "echo 'Scan complete: 2 total, 2 nukeable, 0 filtered.'\n"
                             "[ $what = dry ] && exit 0\n"
                             "echo 'us-east-1 - SQSQueue - a - removed'\n"
                             "echo 'us-east-1 - SQSQueue - b - removed'\n"
                             "echo 'Nuke complete: 0 failed, 0 skipped, 2 finished.'\n";

struct fixture {
	char                 folder[64], program[96], tool[4096], runs[96];
	struct fake_server  *sts;
	int                  sts_status;
	struct aws_identity *identity;
	struct nuke         *nuke;
	struct cleaner      *cleaner;
	struct arena         arena;
	struct err           err;
};

static const char *get_env(const char *name)
{
	if (strcmp(name, "AWS_ACCESS_KEY_ID") == 0)
		return "AKIAOWN";
	if (strcmp(name, "AWS_SECRET_ACCESS_KEY") == 0)
		return "own-secret";
	return strcmp(name, "NO_PROXY") == 0 ? "127.0.0.1" : NULL;
}

static struct fake_reply answer(const struct fake_request *req, size_t number, void *arg)
{
	const struct fixture *f = arg;

	(void)number;
	if (f->sts_status != 200)
		return (struct fake_reply){
			.status = f->sts_status,
			.body = "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"
		};
	CHECK(strstr(req->body, "Action=AssumeRole&") && strstr(req->body, "DurationSeconds=3600"));
	CHECK(strstr(req->body, "RoleArn=arn%3Aaws%3Aiam%3A%3A") && strstr(req->body, "role%2Fpath%2FCleaner"));
	return (struct fake_reply){
		.status = 200,
		.body = "<R><Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>" SECRET
		        "</SecretAccessKey><SessionToken>token</SessionToken><Expiration>2040-01-01T00:00:00Z"
		        "</Expiration></Credentials></R>"
	};
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static struct str read_text(struct fixture *f, const char *name)
{
	struct str text = STR("");
	int        folder = open(f->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (nuke_folder_read(folder, name, &f->arena, &text, NULL))
		text = STR("");
	close(folder);
	return text;
}

static enum rc open_nuke(struct fixture *f, int64_t limit_ms)
{
	struct nuke_options o = { .folder = f->runs,
		                  .self = f->tool,
		                  .program = f->program,
		                  .template = { str_from(template_text), STR("Cleaner"), NULL, 0 },
		                  .role = STR("path/Cleaner"),
		                  .sts = { f->identity, &clock_real, "us-east-1", NULL },
		                  .limit_ms = limit_ms,
		                  .wait_retries = 3,
		                  .env = get_env };
	enum rc             rc;

	o.sts.endpoint = str_dup(&f->arena, str_from(fake_server_url(f->sts, ""))).p;
	rc = nuke_open(&o, &f->nuke, &f->err);
	f->cleaner = rc ? NULL : nuke_cleaner(f->nuke);
	return rc;
}

static void set_up(struct fixture *f)
{
	ssize_t n;

	*f = (struct fixture){ .folder = "/tmp/test_nuke.XXXXXX", .sts_status = 200 };
	CHECK(mkdtemp(f->folder) != NULL);
	snprintf(f->program, sizeof(f->program), "%s/aws-nuke", f->folder);
	snprintf(f->runs, sizeof(f->runs), "%s/runs", f->folder);
	n = readlink("/proc/self/exe", f->tool, sizeof(f->tool) - 16);
	CHECK(n > 0);
	f->tool[n] = '\0';
	snprintf(strrchr(f->tool, '/'), 16, "/nuke_tool");
	write_file(f->program, script, 0700);
	f->sts = fake_server_open(answer, f);
	f->identity = aws_identity_new(&(struct aws_identity_options){ .env = get_env, .clock = &clock_real });
	CHECK(open_nuke(f, 60000) == RC_OK);
}

static void remove_files(const char *path)
{
	DIR           *files = opendir(path);
	struct dirent *file;

	while (files && (file = readdir(files)))
		if (file->d_name[0] != '.')
			unlinkat(dirfd(files), file->d_name, 0);
	if (files)
		closedir(files);
	rmdir(path);
}

static void tear_down(struct fixture *f)
{
	int64_t end_ms = mono_now().ms + 60000;

	nuke_close(f->nuke);
	for (;;) { /* a process may be about to end, and has its lock until then */
		nuke_folder_sweep(f->runs, INT64_MAX);
		if (rmdir(f->runs) == 0 || mono_now().ms > end_ms)
			break;
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	}
	CHECK(access(f->runs, F_OK) != 0);
	remove_files(f->folder);
	aws_identity_free(f->identity);
	fake_server_close(f->sts);
	arena_fini(&f->arena);
}

static enum rc start(struct fixture *f, const char *account, const char *key, struct str *ret)
{
	return f->cleaner->ops->start(f->cleaner, str_from(account), str_from(key), &f->arena, ret, &f->err);
}

static struct cloud_run check(struct fixture *f, struct str id)
{
	struct cloud_run run = { .state = CLOUD_RUN_STATE_COUNT };

	CHECK(f->cleaner->ops->check(f->cleaner, id, &f->arena, &run, &f->err) == RC_OK);
	return run;
}

/* Looks until it is over; a minute is far more than it takes. */
static struct cloud_run wait_end(struct fixture *f, struct str id)
{
	struct cloud_run run = check(f, id);
	int64_t          end_ms = mono_now().ms + 60000;

	while (run.state == CLOUD_RUNNING && mono_now().ms < end_ms) {
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
		run = check(f, id);
	}
	CHECK(run.state != CLOUD_RUNNING);
	return run;
}

TEST(what_a_run_removed_is_told_once_it_is_over)
{
	struct fixture   f;
	struct cloud_run run;
	struct str       id;

	set_up(&f);
	CHECK(start(&f, DIRTY, "k", &id) == RC_OK);
	run = wait_end(&f, id);
	CHECK(run.state == CLOUD_SUCCEEDED && run.report && run.text.n == 0);
	CHECK(run.report->removed == 2 && run.report->exit_code == 0 && run.report->found == 2);
	CHECK(str_eq(run.report->removed_list, STR("us-east-1 - SQSQueue - a\nus-east-1 - SQSQueue - b\n")));
	CHECK(str_eq(read_text(&f, "starts"), STR("dry\nrun\n")));
	tear_down(&f);
}

TEST(an_account_that_is_empty_needs_no_run)
{
	struct fixture   f;
	struct cloud_run run;
	struct str       id;

	set_up(&f);
	CHECK(start(&f, EMPTY, "k", &id) == RC_OK);
	run = wait_end(&f, id);
	CHECK(run.state == CLOUD_SUCCEEDED && run.report->filtered == 1);
	CHECK(str_eq(read_text(&f, "starts"), STR("dry\n")));
	tear_down(&f);
}

TEST(the_same_key_is_the_same_run_also_after_a_restart)
{
	struct fixture f;
	struct str     id, again;

	set_up(&f);
	CHECK(start(&f, DIRTY, "k", &id) == RC_OK);
	CHECK(start(&f, DIRTY, "k", &again) == RC_OK && str_eq(id, again));
	nuke_close(f.nuke);
	CHECK(open_nuke(&f, 60000) == RC_OK);
	CHECK(start(&f, DIRTY, "k", &again) == RC_OK && str_eq(id, again));
	CHECK(wait_end(&f, id).state == CLOUD_SUCCEEDED);
	CHECK(start(&f, DIRTY, "k", &again) == RC_OK && check(&f, again).state == CLOUD_SUCCEEDED);
	CHECK(str_eq(read_text(&f, "starts"), STR("dry\nrun\n")));
	CHECK(start(&f, EMPTY, "k", &again) == RC_CONFLICT);
	tear_down(&f);
}

/* The process of the run, from who has its folder as its last argument. */
static pid_t find_process(const char *folder)
{
	DIR           *all = opendir("/proc");
	struct dirent *one;
	pid_t          found = 0;

	while ((one = readdir(all))) {
		char    path[300], text[4096];
		int     fd;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%s/cmdline", one->d_name);
		fd = one->d_name[0] >= '1' && one->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
		if (fd >= 0)
			close(fd);
		if (n > 0 && memmem(text, (size_t)n, folder, strlen(folder) + 1))
			found = (pid_t)strtol(one->d_name, NULL, 10);
	}
	closedir(all);
	return found;
}

TEST(a_run_whose_process_was_killed_has_failed_and_is_not_begun_again)
{
	struct fixture   f;
	struct cloud_run run;
	struct str       id, again;
	char             folder[200];
	int64_t          end_ms = mono_now().ms + 60000;

	set_up(&f);
	CHECK(start(&f, STUCK, "k", &id) == RC_OK);
	while (read_text(&f, "starts").n == 0 && mono_now().ms < end_ms)
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	CHECK(check(&f, id).state == CLOUD_RUNNING);
	snprintf(folder, sizeof(folder), "%s/%s", f.runs, id.p);
	CHECK(find_process(folder) > 0);
	kill(find_process(folder), SIGKILL);
	run = wait_end(&f, id);
	CHECK(run.state == CLOUD_FAILED && !run.report && strstr(run.text.p, "process of the run is gone"));
	CHECK(start(&f, STUCK, "k", &again) == RC_OK && str_eq(id, again));
	CHECK(check(&f, id).state == CLOUD_FAILED);
	CHECK(str_eq(read_text(&f, "starts"), STR("dry\n")));
	tear_down(&f);
}

TEST(a_run_is_killed_when_its_time_is_over)
{
	static const char *const accounts[] = { STUCK, SILENT };
	struct fixture           f;
	struct cloud_run         run;
	struct str               id;

	set_up(&f);
	nuke_close(f.nuke);
	CHECK(open_nuke(&f, 300) == RC_OK);
	for (size_t i = 0; i < ARRAY_LEN(accounts); i++) {
		CASE(accounts[i]);
		CHECK(start(&f, accounts[i], accounts[i], &id) == RC_OK);
		run = wait_end(&f, id);
		CHECK(run.state == CLOUD_FAILED && strstr(run.text.p, "aws-nuke was ended after"));
		CHECK(run.report->exit_code == 128 + SIGKILL);
	}
	tear_down(&f);
}

TEST(the_program_gets_the_roles_credentials_and_little_else)
{
	static const char *const expected[] = {
		"AWS_ACCESS_KEY_ID=ASIAROLE\n",  "AWS_SECRET_ACCESS_KEY=" SECRET "\n", "AWS_SESSION_TOKEN=token\n",
		"NO_PROXY=127.0.0.1\n",          "AWS_EC2_METADATA_DISABLED=true\n",   "CLEANUP_ACCOUNT_ID=" EMPTY "\n",
		"STATE_MACHINE_EXECUTION_ID=k\n"
	};
	struct fixture f;
	struct str     id, seen;

	set_up(&f);
	CHECK(start(&f, EMPTY, "k", &id) == RC_OK);
	wait_end(&f, id);
	seen = read_text(&f, "environment");
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		CASE(expected[i]);
		CHECK(text_has(seen, expected[i]));
	}
	CHECK(!text_has(seen, "own-secret") && !text_has(seen, "HOME="));
	tear_down(&f);
}

TEST(nothing_begins_for_an_account_that_is_blocked_or_whose_role_is_refused)
{
	struct fixture f;
	struct str     id;

	set_up(&f);
	CHECK(start(&f, FORBID, "k", &id) == RC_DENIED && strstr(f.err.msg, "must not be emptied"));
	err_clear(&f.err);
	CHECK(fake_server_requests(f.sts) == 0);
	f.sts_status = 403;
	CHECK(start(&f, DIRTY, "k2", &id) == RC_DENIED && strstr(f.err.msg, "AccessDenied"));
	err_clear(&f.err);
	f.sts_status = 503;
	CHECK(start(&f, DIRTY, "k2", &id) == RC_UNAVAILABLE);
	err_clear(&f.err);
	CHECK(read_text(&f, "starts").n == 0);
	f.sts_status = 200;
	CHECK(start(&f, DIRTY, "k2", &id) == RC_OK && wait_end(&f, id).state == CLOUD_SUCCEEDED);
	tear_down(&f);
}

TEST(what_is_no_run_or_no_account_is_refused)
{
	struct fixture   f;
	struct cloud_run run;
	struct str       id;

	set_up(&f);
	CHECK(start(&f, "12", "k", &id) == RC_INVALID);
	CHECK(start(&f, DIRTY, "", &id) == RC_INVALID);
	CHECK(f.cleaner->ops->check(f.cleaner, STR("../../etc"), &f.arena, &run, NULL) == RC_NOT_FOUND);
	CHECK(f.cleaner->ops->check(f.cleaner, STR("nuke-00000000000000000000000000000000"), &f.arena, &run, NULL) ==
	      RC_NOT_FOUND);
	tear_down(&f);
}

TEST(roles_are_names_with_or_without_a_path)
{
	CHECK(nuke_is_role(STR("Cleaner")) && nuke_is_role(STR("a/b/Cleaner_1+=.@-")));
	CHECK(!nuke_is_role(STR("")) && !nuke_is_role(STR("/x")) && !nuke_is_role(STR("x/")) &&
	      !nuke_is_role(STR("a//b")));
	CHECK(!nuke_is_role(STR("a b")) && !nuke_is_role(STR("a\"b")));
	CHECK(str_eq(nuke_role_name(STR("a/b/Cleaner")), STR("Cleaner")) && str_eq(nuke_role_name(STR("c")), STR("c")));
}
