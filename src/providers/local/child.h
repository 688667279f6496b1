/* child.h - a server program that outlives us: started once, found again after a crash of ours, asked whether it
 * answers, ended with all of its processes.
 *
 * A child holds the lock of its file (an open file description's lock, as in decision 16): every process that it starts
 * inherits it. So while the lock is held, some process of the group lives, and the group's number, which is in the
 * file, cannot belong to anybody else; when the lock is free, nothing of the child is left. There are never two of one
 * child: the second does not get the lock. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

enum { CHILD_ARGS_MAX = 32, CHILD_REPLY_MAX = 512 };

enum child_state {
	CHILD_NONE,     /* nothing of it runs */
	CHILD_STARTING, /* it has not answered yet */
	CHILD_UP,
	CHILD_DRAINING, /* its socket has another name, so nobody new comes; those who wait in it are served */
	CHILD_STOPPING, /* told to end */
};

/* What it is; texts are there as long as the child. */
struct child_plan {
	struct str  lock; /* file */
	const char *args[CHILD_ARGS_MAX + 1];
	struct str  log;              /* file that gets its output */
	struct str  socket;           /* where it answers */
	struct str  question, answer; /* answer: what its reply has in it; empty: any byte */
	int         stop_signal;
	int         log_signal; /* makes it open its log again; 0: its log stays small */
	bool        drains;
	mode_t      mask;
};

enum { CHILD_GRACE_MS = 60000 }; /* from its start, or since it was taken over, until the first answer */

struct child {
	struct child_plan plan;
	enum child_state  state;
	bool              is_wanted, is_healthy;
	pid_t             pid; /* of the first process, and its group's number */
	int               pidfd;
	int64_t           generation, started_ms;
	int64_t           grace_ms; /* mono: by then it has to have answered once */
	int64_t           log_ms;   /* mono: when its log is looked at next */
	int64_t           next_ms;  /* mono: of the next question, or the next start */
	int64_t           until_ms; /* mono: when the wait for an answer or for its end is over */
	int               asking;   /* connection on which a question is open; 0: none */
	char              reply[CHILD_REPLY_MAX];
	size_t            reply_n;
	unsigned          failures; /* answers that did not come, or starts that came to nothing, in a row */
};

/* Something of it runs. */
bool child_is_locked(const struct child *c);

/* It was stopped (SIGSTOP, a debugger), so it will never answer. */
bool child_is_stopped(const struct child *c);

/* Start it. RC_CONFLICT: something of it runs still. */
MUST_CHECK enum rc child_start(struct child *c, int64_t generation, struct err *e);

/* Take over what runs. A group without its first process is killed, as is what cannot be known. */
void child_adopt(struct child *c);

/* Kill everything of what holds this lock, whoever it is. */
void child_kill_stranger(const char *lock);

void child_signal(const struct child *c, int number); /* its first process */
void child_kill(const struct child *c);               /* all of them */
void child_forget(struct child *c);                   /* it is gone: closes what is open */

/* Ask whether it answers; false: it cannot be asked. Then, when its connection is readable: 1 it answered, 0 not yet,
 * -1 it will not. */
bool child_ask(struct child *c, struct str socket);
int  child_hear(struct child *c);
void child_hang_up(struct child *c);
