/* run.h - a program that is waited for: with a limit of time, and of what it says. It ends when we do. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

enum { RUN_OUTPUT_MAX = 1 << 20 };

struct run {
	const char *const *args;   /* args[0] is looked for in the usual folders */
	const char *const *env;    /* NULL: PATH and little else */
	const char        *folder; /* NULL: / */
	uid_t              uid;    /* 0: as we are */
	gid_t              gid;
	struct str         in;     /* its input; NULL: nothing */
	int                in_fd;  /* 0: none */
	int                out_fd; /* 0: what it writes is returned */
	const struct run  *into;   /* its output is the input of this one, whose output counts */
	int64_t            limit_ms;
};

/* RC_UNAVAILABLE: it failed, with its last line; RC_TIMEOUT: it was killed. ret may be NULL. */
MUST_CHECK enum rc run_program(const struct run *r, struct arena *a, struct str *ret, struct err *e);

/* In a child after fork(): nothing that allocates or locks. */
void                     run_become(uid_t uid, gid_t gid, mode_t mask);
extern const char *const run_environment[];
