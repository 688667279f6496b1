/* folder.h - the folder of one run: what it is to do, its lock, what it wrote, how it ended. Folders outlive us.
 *
 *     job        what to do (JSON); there from the start on
 *     config     aws-nuke's configuration for the account
 *     lock       held by the processes of the run, for as long as one of them lives
 *     log        what aws-nuke wrote; there when the run really began
 *     result     how it ended (JSON); written once, whole or not at all
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/ports/cloud.h"

#define NUKE_JOB    "job"
#define NUKE_CONFIG "config"
#define NUKE_LOCK   "lock"
#define NUKE_LOG    "log"
#define NUKE_RESULT "result"

enum { NUKE_RUN_ID_SIZE = 38, NUKE_FILE_MAX = 1 << 20 };

/* The name of the folder: the same key has the same. */
void nuke_run_id(struct str key, char ret[NUKE_RUN_ID_SIZE]);
bool nuke_is_run_id(struct str text);

/* A descriptor of the folder PARENT/NAME, yours to close. RC_NOT_FOUND: there is none; with `makes` it is made. */
MUST_CHECK enum rc nuke_folder_open(const char *parent, const char *name, bool makes, int *ret, struct err *e);

/* A whole file, durable when this returns. */
MUST_CHECK enum rc nuke_folder_write(int folder, const char *name, struct str text, struct err *e);

/* RC_NOT_FOUND: there is no such file. */
MUST_CHECK enum rc nuke_folder_read(int folder, const char *name, struct arena *a, struct str *ret, struct err *e);
bool               nuke_folder_has(int folder, const char *name);

/* Take the lock: it is held until the last copy of the descriptor, in any process, is closed. RC_CONFLICT: others have
 * it. */
MUST_CHECK enum rc nuke_folder_lock(int folder, int *ret, struct err *e);
bool               nuke_folder_is_locked(int folder);

/* What is to be done. */
struct nuke_job {
	struct str account_id, key;
	struct str program;      /* path of aws-nuke */
	int64_t    limit_ms;     /* for all of it */
	int64_t    wait_retries; /* of aws-nuke: rounds without progress */
};
MUST_CHECK enum rc nuke_job_write(int folder, const struct nuke_job *job, struct err *e);
MUST_CHECK enum rc nuke_job_read(int folder, struct arena *a, struct nuke_job *ret, struct err *e);

/* How it ended; the report is always there. RC_NOT_FOUND: it has not. */
MUST_CHECK enum rc nuke_result_write(int folder, const struct cloud_run *run, struct err *e);
MUST_CHECK enum rc nuke_result_read(int folder, struct arena *a, struct cloud_run *ret, struct err *e);

/* Remove folders of runs that nobody has touched since. */
void nuke_folder_sweep(const char *parent, int64_t before_ms);
