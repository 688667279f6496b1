/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleaner.c - the cleaner port: starts runs, and tells how they go from what is in their folders.
 *
 * A run is a folder named after its key, and a process that we start and leave alone (program.c). Nothing about it is
 * in memory, so a restarted server, or a second call with the same key, finds it as it is:
 *
 *     result there              over
 *     no result, lock held      under way
 *     log, no result, no lock   lost: its process ended before it could note a result. It failed for good
 *     no log, no lock           not begun: the server ended in between. start() begins it
 *
 * Always true:
 *   1. A run begins only under its lock, which passes to its process without being free in between: no two processes
 *      share a run.
 *   2. The role's credentials are in the environment of that process and nowhere else: not in files, arguments or
 *      messages.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/mem.h"
#include "domain/ports/cloud.h"
#include "providers/nuke/folder.h"
#include "providers/nuke/nuke.h"
#include "providers/nuke/program.h"

#define LOST "the process of the run is gone and has left no result: it was killed, or the machine was"

enum { ENVIRONMENT_MAX = 32, DAY_MS = 86400000 };

struct nuke {
	struct cleaner      base;
	struct nuke_options o;
	struct arena        arena;
	struct str          program;
	pthread_mutex_t     lock; /* of what is below */
	pid_t              *children;
	size_t              child_count;
};

bool nuke_is_role(struct str role)
{
	bool has_part = false;

	for (size_t i = 0; i < role.n; i++) {
		char c = role.p[i];

		if (c == '/' && !has_part)
			return false;
		has_part = c != '/';
	}
	return has_part && role.n <= 512 && str_is_of(role, "a-zA-Z0-9+=.@_/-");
}

struct str nuke_role_name(struct str role)
{
	struct str name = role;

	while (role.n)
		name = str_cut(&role, '/');
	return name;
}

/* --- the process --- */

/* Children that have ended stay in the system's table of processes until they are waited for. */
static void reap(struct nuke *n)
{
	size_t kept = 0;

	LOCKED(&n->lock);
	for (size_t i = 0; i < n->child_count; i++)
		if (waitpid(n->children[i], NULL, WNOHANG) == 0)
			n->children[kept++] = n->children[i];
	n->child_count = kept;
}

/* Only what it needs: the account and run, the role's credentials, ways to the network, and no other source of
 * credentials. */
static void make_environment(const struct nuke *n, const struct nuke_job *job, const struct aws_credentials *c,
                             struct arena *a, char *ret[ENVIRONMENT_MAX])
{
	static const char *const passed[] = { "HTTPS_PROXY",   "HTTP_PROXY",   "NO_PROXY",
		                              "https_proxy",   "http_proxy",   "no_proxy",
		                              "SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_CA_BUNDLE" };
	static const char *const fixed[] = { "LANG=C", "AWS_EC2_METADATA_DISABLED=true",
		                             "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_CONFIG_FILE=/dev/null" };
	size_t                   count = 0;

	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		ret[count++] = arena_copy(a, fixed[i], strlen(fixed[i]));
	for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
		const char *value = n->o.env(passed[i]);

		if (value)
			ret[count++] = (char *)(uintptr_t)str_format(a, "%s=%s", passed[i], value).p;
	}
	ret[count++] = (char *)(uintptr_t)str_format(a, "CLEANUP_ACCOUNT_ID=%.*s", STR_ARG(job->account_id)).p;
	ret[count++] = (char *)(uintptr_t)str_format(a, "STATE_MACHINE_EXECUTION_ID=%.*s", STR_ARG(job->key)).p;
	ret[count++] = (char *)(uintptr_t)str_format(a, "AWS_ACCESS_KEY_ID=%.*s", STR_ARG(c->access_key)).p;
	ret[count++] = (char *)(uintptr_t)str_format(a, "AWS_SECRET_ACCESS_KEY=%.*s", STR_ARG(c->secret_key)).p;
	ret[count++] = (char *)(uintptr_t)str_format(a, "AWS_SESSION_TOKEN=%.*s", STR_ARG(c->session_token)).p;
	ret[count] = NULL;
}

/* It inherits the lock and nothing else that is open. */
static enum rc spawn(struct nuke *n, const char *folder, int lock, char *const environment[], struct err *e)
{
	char *const                args[] = { (char *)(uintptr_t) "leasehold", (char *)(uintptr_t)NUKE_RUN_COMMAND,
		                              (char *)(uintptr_t)folder, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t          attributes;
	sigset_t                   all, none;
	pid_t                      pid;
	int                        failed;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, lock, NUKE_LOCK_FD);
	posix_spawn_file_actions_addclosefrom_np(&files, NUKE_LOCK_FD + 1);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	failed = posix_spawn(&pid, n->o.self, &files, &attributes, args, environment);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	if (failed)
		return err_set(e, RC_UNAVAILABLE, "no process for a run of aws-nuke: %s", strerror(failed));
	LOCKED(&n->lock);
	n->children = mem_resize(n->children, (n->child_count + 1) * sizeof(*n->children));
	n->children[n->child_count++] = pid;
	return RC_OK;
}

/* --- starting --- */

struct start {
	struct nuke  *n;
	struct str    account_id, key;
	const char   *id; /* of the run */
	int           folder;
	struct arena *arena;
};

static enum rc assume(const struct start *st, struct aws_credentials *ret, struct err *e)
{
	const struct nuke_options *o = &st->n->o;

	if (o->assume)
		return o->assume(o->assume_arg, st->account_id, st->arena, ret, e);
	return aws_assume_role(&o->sts, aws_role_arn(o->sts.region, st->account_id, o->role, st->arena),
	                       STR("leasehold-cleanup"), st->arena, ret, e);
}

/* Everything that can go wrong goes wrong before the job is written. */
static enum rc begin(const struct start *st, int lock, struct err *e)
{
	const struct nuke_options *o = &st->n->o;
	struct nuke_job            job = { st->account_id, st->key, st->n->program, o->limit_ms, o->wait_retries };
	struct str                 config;
	struct aws_credentials     credentials;
	char                      *environment[ENVIRONMENT_MAX];
	enum rc                    rc;

	if ((rc = nuke_template_fill(&o->template, st->account_id, st->arena, &config, e)))
		return err_wrap(e, rc, "the configuration of aws-nuke");
	if ((rc = assume(st, &credentials, e)) || (rc = nuke_folder_write(st->folder, NUKE_CONFIG, config, e)) ||
	    (rc = nuke_job_write(st->folder, &job, e)))
		return rc;
	make_environment(st->n, &job, &credentials, st->arena, environment);
	return spawn(st->n, str_format(st->arena, "%s/%s", o->folder, st->id).p, lock, environment, e);
}

/* This key's run must be for the same account; a folder without a job is not taken yet. */
static enum rc start_in_folder(const struct start *st, struct err *e)
{
	struct nuke_job        job;
	struct err             why = { 0 };
	CLEANUP(fd_closep) int lock = -1;
	enum rc                rc = nuke_job_read(st->folder, st->arena, &job, &why);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "%s", why.msg);
	if (!rc && (!str_eq(job.account_id, st->account_id) || !str_eq(job.key, st->key)))
		return err_set_code(e, RC_CONFLICT, "IdempotentParameterMismatchException",
		                    "the key %.*s belongs to a run of account %.*s", STR_ARG(st->key),
		                    STR_ARG(job.account_id));
	if ((rc = nuke_folder_lock(st->folder, &lock, e)))
		return err_forgive(e, rc, RC_CONFLICT); /* it runs */
	if (nuke_folder_has(st->folder, NUKE_LOG) || nuke_folder_has(st->folder, NUKE_RESULT))
		return RC_OK;
	return begin(st, lock, e);
}

static enum rc start(struct cleaner *base, struct str account_id, struct str key, struct arena *a,
                     struct str *ret_run_id, struct err *e)
{
	struct nuke *n = CONTAINER_OF(base, struct nuke, base);
	char         id[NUKE_RUN_ID_SIZE];
	struct start st = { .n = n, .account_id = account_id, .key = key, .id = id, .arena = a };
	enum rc      rc;

	if (!nuke_is_account(account_id))
		return err_set(e, RC_INVALID, "an account id must have 12 digits, not '%.*s'", STR_ARG(account_id));
	if (!key.n || key.n > CLOUD_KEY_MAX)
		return err_set(e, RC_INVALID, "the key of a run must have 1 to %d bytes", CLOUD_KEY_MAX);
	reap(n);
	nuke_folder_sweep(n->o.folder, clock_now(&clock_real).ms - (int64_t)NUKE_KEEP_DAYS * DAY_MS);
	nuke_run_id(key, id);
	if ((rc = nuke_folder_open(n->o.folder, id, true, &st.folder, e)))
		return rc;
	rc = start_in_folder(&st, e);
	close(st.folder);
	if (!rc)
		*ret_run_id = str_dup(a, str_from(id));
	return rc;
}

/* --- looking --- */

static enum rc look(int folder, struct arena *a, struct cloud_run *ret, struct err *e)
{
	struct err why = { 0 };
	bool    is_locked = nuke_folder_is_locked(folder); /* before the result is looked for: it may come in between */
	enum rc rc = nuke_result_read(folder, a, ret, &why);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "%s", why.msg);
	if (rc && is_locked)
		*ret = (struct cloud_run){ .state = CLOUD_RUNNING };
	else if (rc)
		*ret = (struct cloud_run){ .state = CLOUD_FAILED, .text = STR(LOST) };
	return RC_OK;
}

static enum rc check(struct cleaner *base, struct str run_id, struct arena *a, struct cloud_run *ret, struct err *e)
{
	struct nuke           *n = CONTAINER_OF(base, struct nuke, base);
	CLEANUP(fd_closep) int folder = -1;
	enum rc                rc;

	if (!nuke_is_run_id(run_id))
		return err_set(e, RC_NOT_FOUND, "'%.*s' is not a run of aws-nuke", STR_ARG(run_id));
	reap(n);
	rc = nuke_folder_open(n->o.folder, str_dup(a, run_id).p, false, &folder, e);
	return rc ? rc : look(folder, a, ret, e);
}

static const struct cleaner_ops ops = { start, check };

/* --- opening --- */

enum rc nuke_open(const struct nuke_options *o, struct nuke **ret, struct err *e)
{
	struct nuke *n = mem_new(struct nuke);
	struct str   kinds;
	enum rc      rc;

	n->base.ops = &ops;
	n->o = *o;
	pthread_mutex_init(&n->lock, NULL);
	rc = nuke_program_find(o->program, o->env("PATH"), &n->arena, &n->program, e);
	if (!rc && !(rc = nuke_program_kinds(n->program.p, &n->arena, &kinds, e)))
		rc = err_wrap(e, nuke_template_check_kinds(&o->template, kinds, e), "the configuration of aws-nuke");
	if (!rc && mkdir(o->folder, 0700) != 0 && errno != EEXIST)
		rc = err_set(e, RC_UNAVAILABLE, "the folder %s for runs of aws-nuke cannot be made: %s", o->folder,
		             strerror(errno));
	if (!rc && access(o->folder, W_OK) != 0)
		rc = err_set(e, RC_UNAVAILABLE, "the folder %s for runs of aws-nuke cannot be written: %s", o->folder,
		             strerror(errno));
	if (rc) {
		nuke_close(n);
		return rc;
	}
	*ret = n;
	return RC_OK;
}

void nuke_close(struct nuke *n)
{
	if (!n)
		return;
	free(n->children);
	arena_fini(&n->arena);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

struct cleaner *nuke_cleaner(struct nuke *n)
{
	return &n->base;
}
