/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.c - files of runs.
 *
 * Always true:
 *   1. A file that is there is whole: it is written under another name, flushed, then renamed. [nuke_folder_write()]
 *   2. The lock belongs to the open file, not to a process (Linux's "open file description" locks): the server takes
 *      it, the run's processes inherit it, and it is free when the last of them is gone. Others can look without taking
 *      it.
 */
#include "providers/nuke/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#define ID_PREFIX "nuke-"

enum { ID_BYTES = 16, RESULT_MAX = 8 * (CLOUD_REMOVED_MAX + CLOUD_KEPT_MAX + CLOUD_LOG_MAX), PATH_SIZE = 4200 };

void nuke_run_id(struct str key, char ret[NUKE_RUN_ID_SIZE])
{
	CLEANUP(arena_fini) struct arena a = { 0 };

	(void)snprintf(ret, NUKE_RUN_ID_SIZE, ID_PREFIX "%.*s", 2 * ID_BYTES, hash_sha256_hex(&a, key).p); /* fits */
}

bool nuke_is_run_id(struct str text)
{
	return str_cut_prefix(&text, STR(ID_PREFIX)) && text.n == 2 * ID_BYTES && str_is_of(text, "0-9a-f");
}

static enum rc complain(struct err *e, const char *what, const char *name)
{
	return err_set(e, RC_UNAVAILABLE, "%s %s: %s", what, name, strerror(errno));
}

enum rc nuke_folder_open(const char *parent, const char *name, bool makes, int *ret, struct err *e)
{
	char path[PATH_SIZE];
	int  n = snprintf(path, sizeof(path), "%s/%s", parent, name), fd;

	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(e, RC_INVALID, "the path of folder %s is too long", name);
	if (makes && mkdir(path, 0700) != 0 && errno != EEXIST)
		return complain(e, "cannot make the folder", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? err_set(e, RC_NOT_FOUND, "there is no folder %s", path)
		                       : complain(e, "cannot open the folder", path);
	*ret = fd;
	return RC_OK;
}

enum rc nuke_folder_write(int folder, const char *name, struct str text, struct err *e)
{
	CLEANUP(fd_closep) int fd = -1;
	char                   draft[64];

	snprintf(draft, sizeof(draft), "%s.draft", name);
	fd = openat(folder, draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || !file_write_all(fd, text) || fsync(fd) != 0 || renameat(folder, draft, folder, name) != 0 ||
	    fsync(folder) != 0)
		return complain(e, "cannot write the run's file", name);
	return RC_OK;
}

enum rc nuke_folder_read(int folder, const char *name, struct arena *a, struct str *ret, struct err *e)
{
	CLEANUP(fd_closep) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	enum rc                rc;

	if (fd < 0)
		return errno == ENOENT ? err_set(e, RC_NOT_FOUND, "the run has no file %s", name)
		                       : complain(e, "cannot read the run's file", name);
	rc = file_read_all(fd, NUKE_FILE_MAX, a, ret);
	if (rc == RC_TOO_LARGE)
		return err_set(e, RC_CORRUPT, "the run's file %s is too large", name);
	return rc ? err_set(e, rc, "the run's file %s cannot be read", name) : RC_OK;
}

bool nuke_folder_has(int folder, const char *name)
{
	return faccessat(folder, name, F_OK, 0) == 0;
}

/* --- the lock --- */

static int open_lock(int folder)
{
	return openat(folder, NUKE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

enum rc nuke_folder_lock(int folder, int *ret, struct err *e)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int          fd = open_lock(folder);
	enum rc      rc;

	if (fd < 0)
		return complain(e, "cannot open the run's", NUKE_LOCK);
	if (fcntl(fd, F_OFD_SETLK, &whole) == 0) {
		*ret = fd;
		return RC_OK;
	}
	rc = errno == EAGAIN || errno == EACCES ? err_set(e, RC_CONFLICT, "others have the lock of the run")
	                                        : complain(e, "cannot take the run's", NUKE_LOCK);
	close(fd);
	return rc;
}

bool nuke_folder_is_locked(int folder)
{
	struct flock           whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	CLEANUP(fd_closep) int fd = open_lock(folder);

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

/* --- what is in the files --- */

enum rc nuke_job_write(int folder, const struct nuke_job *job, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str text = JSON_OF(&a, member_str("account", job->account_id), member_str("key", job->key),
	                          member_str("program", job->program), member_int("limit_ms", job->limit_ms),
	                          member_int("wait_retries", job->wait_retries));

	return nuke_folder_write(folder, NUKE_JOB, text, e);
}

enum rc nuke_job_read(int folder, struct arena *a, struct nuke_job *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct nuke_job             job;
	struct str                  text;
	enum rc                     rc = nuke_folder_read(folder, NUKE_JOB, a, &text, e);

	if (rc)
		return rc;
	if (json_parse(text, &o, NULL) || !json_take_text(o, "account", a, &job.account_id) ||
	    !json_take_text(o, "key", a, &job.key) || !json_take_text(o, "program", a, &job.program) ||
	    !json_get_number(o, "limit_ms", 0, &job.limit_ms) ||
	    !json_get_number(o, "wait_retries", 0, &job.wait_retries))
		return err_set(e, RC_CORRUPT, "the run's file %s makes no sense", NUKE_JOB);
	*ret = job;
	return RC_OK;
}

enum rc nuke_result_write(int folder, const struct cloud_run *run, struct err *e)
{
	const struct cloud_run_report *r = run->report;
	CLEANUP(buf_fini) struct buf   b = BUF(RESULT_MAX);
	struct json_out                o = JSON_OUT(&b);

	json_open_object(&o);
	json_put_members(&o,
	                 JSON_MEMBERS(member_int("succeeded", run->state == CLOUD_SUCCEEDED),
	                              member_str("text", run->text), member_int("exit_code", r->exit_code),
	                              member_int("found", r->found), member_int("filtered", r->filtered),
	                              member_int("removed", r->removed), member_int("failed", r->failed),
	                              member_str("removed_list", r->removed_list),
	                              member_str("kept_list", r->kept_list), member_str("log", r->log),
	                              member_int("started_ms", r->started_ms), member_int("ended_ms", r->ended_ms)));
	json_close_object(&o);
	return nuke_folder_write(folder, NUKE_RESULT, buf_str(&b), e);
}

static bool read_report(const json_t *o, struct cloud_run_report *r)
{
	return json_get_number(o, "exit_code", 0, &r->exit_code) && json_get_number(o, "found", 0, &r->found) &&
	       json_get_number(o, "filtered", 0, &r->filtered) && json_get_number(o, "removed", 0, &r->removed) &&
	       json_get_number(o, "failed", 0, &r->failed) && json_get_text(o, "removed_list", &r->removed_list) &&
	       json_get_text(o, "kept_list", &r->kept_list) && json_get_text(o, "log", &r->log) &&
	       json_get_number(o, "started_ms", 0, &r->started_ms) && json_get_number(o, "ended_ms", 0, &r->ended_ms);
}

enum rc nuke_result_read(int folder, struct arena *a, struct cloud_run *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct cloud_run_report    *r = arena_alloc(a, sizeof(*r));
	struct str                  text, words;
	int64_t                     succeeded;
	enum rc                     rc = nuke_folder_read(folder, NUKE_RESULT, a, &text, e);

	if (rc)
		return rc;
	if (json_parse(text, &o, NULL) || !json_get_number(o, "succeeded", -1, &succeeded) || succeeded < 0 ||
	    !json_get_text(o, "text", &words) || !read_report(o, r))
		return err_set(e, RC_CORRUPT, "the run's file %s makes no sense", NUKE_RESULT);
	r->removed_list = str_dup(a, r->removed_list);
	r->kept_list = str_dup(a, r->kept_list);
	r->log = str_dup(a, r->log);
	*ret = (struct cloud_run){ .state = succeeded == 1 ? CLOUD_SUCCEEDED : CLOUD_FAILED,
		                   .text = str_dup(a, words),
		                   .report = r };
	return RC_OK;
}

/* --- old ones --- */

static void remove_run(int parent, const char *name)
{
	int            folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR           *files;
	struct dirent *file;

	if (folder < 0)
		return;
	if (nuke_folder_is_locked(folder) || !(files = fdopendir(folder))) {
		close(folder);
		return;
	}
	while ((file = readdir(files)))
		if (file->d_name[0] != '.')
			(void)unlinkat(folder, file->d_name, 0); /* what stays is found again */
	closedir(files);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

void nuke_folder_sweep(const char *parent, int64_t before_ms)
{
	DIR           *runs = opendir(parent);
	struct dirent *run;
	struct stat    about;

	while (runs && (run = readdir(runs)))
		if (nuke_is_run_id(str_from(run->d_name)) && fstatat(dirfd(runs), run->d_name, &about, 0) == 0 &&
		    (int64_t)about.st_mtim.tv_sec * 1000 < before_ms)
			remove_run(dirfd(runs), run->d_name);
	if (runs)
		closedir(runs);
}
