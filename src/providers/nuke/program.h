/* program.h - the program aws-nuke: where it is, what it knows, and the process of one run of it. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Its path. RC_INVALID: it is not on PATH, or cannot be executed. */
MUST_CHECK enum rc nuke_program_find(const char *name, const char *path, struct arena *a, struct str *ret,
                                     struct err *e);

/* The kinds of resources it knows, one a line: proof that it runs. RC_INVALID: it does not. Blocks for a moment. */
MUST_CHECK enum rc nuke_program_kinds(const char *program, struct arena *a, struct str *ret, struct err *e);

enum {
	NUKE_LOCK_FD = 3,        /* where the process finds the lock that it inherits */
	NUKE_LOG_BYTES = 4 << 20 /* of a run's log; what is beyond is read and not kept */
};

/* How this is started: PROGRAM NUKE_RUN_COMMAND FOLDER. Not for people, so not in the table of commands. */
#define NUKE_RUN_COMMAND "nuke-run"

/* A whole run, in a process of its own with one thread: starts aws-nuke with the credentials in the environment, reads
 * its output, ends it at the limit, notes the result. Returns the exit status: 0 when a result is written, whatever it
 * is. */
int nuke_supervise(const char *folder);
