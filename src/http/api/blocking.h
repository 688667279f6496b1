/* blocking.h - the part of a request that blocks (a hash, a call of the outside): done by a thread of libuv,
 * answered on the loop. Nobody else uses libuv's threads. Loop thread only. */
#pragma once

#include "base/err.h"

struct api;
struct request;

/* Kind, threads of its own, how many more may wait for them, what they are called. A kind does not wait for
 * another's threads. */
#define BLOCKING_KINDS(X)                             \
	X(SIGNIN, 4, 4, "sign-ins")                   \
	X(ACCOUNTS, 2, 16, "look-ups of accounts")    \
	X(DOCTOR, 2, 8, "comparisons")                \
	X(REPORT, 2, 8, "cost reports")               \
	X(METRICS, 1, 16, "readings of metrics")      \
	X(INBOX, 2, 64, "large bodies of events")     \
	X(DOCUMENT, 1, 32, "documents")               \
	X(SIM, 2, 32, "calls of the simulated cloud") \
	X(INSTANCE, 2, 32, "looks at instances")

enum blocking_kind {
#define X(name, threads, waiting, text) BLOCKING_##name,
	BLOCKING_KINDS(X)
#undef X
	        BLOCKING_KIND_COUNT
};

/* Have run() done by a thread: it may use the request's arena and texts, and arg, nothing else of it. Then answer() is
 * called on the loop, with r->arg as arg; instead the request is answered with the error when run() fails, and with 503
 * when too many wait already. arg lives in the request's arena and owns nothing before run() and after its failure. */
typedef enum rc blocking_fn(struct request *r, void *arg, struct err *e);
void blocking_start(struct request *r, enum blocking_kind kind, blocking_fn *run, void (*answer)(struct request *r),
                    void *arg);

/* Do too many wait already? */
bool blocking_is_full(const struct api *a, enum blocking_kind kind);

/* Before the first thread of the program is made: so many threads as the kinds have. */
void blocking_prepare(void);
