/* store.h - durable records, changed by transaction functions. The caller's side; session.h says what they may do. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/inbox.h"
#include "base/str.h"

struct follow;
struct session;
struct store;
struct txn;

/* A transaction: a function that may be run again after a conflict, so it touches nothing but its session and its
 * argument, and starts afresh each time. A failure has written nothing. */
typedef enum rc txn_fn(struct session *s, void *arg, struct err *e);

/* One that is a single call, of s, arg and e. */
#define TXN(name, call)                                           \
	enum rc name(struct session *s, void *arg, struct err *e) \
	{                                                         \
		return call;                                      \
	}

/* A caller of many transactions, who can be told of several by one call. */
struct txn_group {
	/* Instead of done() of each; rc and e are in the transactions. */
	void (*done)(struct txn_group *g, struct txn *const *txns, size_t count);
};

/* Caller-owned. Hands off (also from the arena and the argument) from store_submit() until done() is called. */
struct txn {
	txn_fn       *run;
	void         *arg;
	struct arena *arena;        /* what the function reads and allocates lives here */
	bool          is_read_only; /* runs beside the writers, on a snapshot */
	struct str    trace;        /* see base/trace.h; empty: none. store_run() and store_read() take the thread's */

	/* Called on a thread of the store, once: after the commit is durable, or with the failure. */
	void (*done)(struct txn *t, enum rc rc, const struct err *e);
	struct txn_group *group; /* NULL: told one by one, by done() */

	struct inbox_item item; /* private to the back end */
	unsigned          news;
	struct follow    *follows;
	struct mono       submitted;
	struct err        e;
	enum rc           rc;
};

/* Queue it. done() is never called inside this call. */
void store_submit(struct store *s, struct txn *t);

/* Queue several, in this order: as far as the store can, they share a commit. */
void store_submit_all(struct store *s, struct txn *const *txns, size_t count);

/* Submit and wait. For worker threads, start-up and tests, never for the loop thread. Without an arena (NULL) it has
 * one of its own, which is gone with all that was read when this returns. */
MUST_CHECK enum rc store_run(struct store *s, txn_fn *run, void *arg, struct arena *a, struct err *e);
MUST_CHECK enum rc store_read(struct store *s, txn_fn *run, void *arg, struct arena *a, struct err *e);

/* Can it serve? RC_OK, or the last failure of a commit since the last good one. Any thread, never waits. */
enum rc store_health(struct store *s, struct err *e);

/* Why a commit failed last, also when others succeeded since; RC_OK: none ever did. Any thread. */
enum rc store_last_failure(struct store *s, struct err *e);

/* Is a commit under way that does not come to an end? Then asking the store for anything is a wait without end. */
bool store_is_stuck(struct store *s);

/* Something that every session finds again with session_context(); before the first transaction. on_news: after each
 * durable transaction that called session_poke(), on a thread of the store; must not wait. */
void store_set_context(struct store *s, void *context, void (*on_news)(void *context, unsigned news));

/* Figures since the start. */
struct store_counts {
	uint64_t commits, failed_commits, transactions;
	uint64_t conflicts;   /* functions run again because somebody else was faster */
	uint64_t checkpoints; /* tries to move the log into the file; sqlite only */
};
struct store_counts store_counts(struct store *s);

/* How long the slowest writing transaction took, from submission to the end, since this was asked last. */
int64_t store_take_slowest_ms(struct store *s);

/* Finish what was submitted, then close. */
void store_close(struct store *s);
