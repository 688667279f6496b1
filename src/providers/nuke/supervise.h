/* supervise.h - the process of one run: starts aws-nuke, reads what it writes, ends it when its time is over, notes how it ended. */
#pragma once

enum {
	NUKE_LOCK_FD = 3,        /* where the process finds the lock that it inherits */
	NUKE_LOG_BYTES = 4 << 20 /* of a run's log; what is beyond is read and not kept */
};

/* The command that this is started by: PROGRAM NUKE_RUN_COMMAND FOLDER. Not for people, so it is not in the table of commands. */
#define NUKE_RUN_COMMAND "nuke-run"

/* All of a run, in a process of its own that has one thread. The credentials are in its environment. Returns the exit status: 0 when
 * the result is written, whatever it is. */
int nuke_supervise(const char *folder);
