/* queue.h - deliveries: at least once, in order per subject, N tries with back-off, then dead. */
#pragma once

#include "base/err.h"
#include "kernel/records.h"
#include "store/session.h"
#include "store/store.h"

struct kernel;

/* What a handler is given. */
struct delivery {
	const struct queue *queue;
	struct event        event;
	struct str          target; /* of the lane */
	int64_t             tries;  /* this one included */
};

/* Runs inside the transaction that removes the delivery, so its effect happens once. A failure undoes it: a try. */
typedef enum rc queue_handle_fn(struct session *s, const struct delivery *d, void *arg, struct err *e);

/* For queues that call out: blocks, on a worker thread, between two transactions. May run more than once for an
 * event. */
struct call {
	const struct delivery *delivery;
	struct arena          *arena;
	const struct clock    *clock;
	void                  *arg;    /* the queue's */
	void                  *result; /* for settle(), in the arena */

	/* Set by a call that fails because the far side accepts nothing for now: the next try comes no sooner than
	 * this, and this one does not count. At most CALL_WAIT_MAX_MS. */
	int64_t wait_ms;

	/* Still ours, and not asked to stop? Keeps the delivery in flight; ask often in what takes long. */
	bool (*go_on)(struct call *c);
};
enum { CALL_WAIT_MAX_MS = 900000 };
typedef enum rc queue_call_fn(struct call *c, struct err *e);

/* After a call that succeeded: inside the transaction that removes the delivery. */
typedef enum rc queue_settle_fn(struct session *s, const struct call *c, struct err *e);

/* After a call and its settling, however they ended, on the worker thread: to wake waiters in this process. */
typedef void queue_over_fn(const struct call *c);

struct queue {
	const char      *name;
	queue_handle_fn *handle; /* this one alone */
	queue_call_fn   *call;   /* or this one, */
	queue_settle_fn *settle; /* and this one, or NULL */
	queue_over_fn   *over;   /* the same */
	void            *arg;
	bool             is_heard;        /* handle() is noticed outside the store: not before the event is durable */
	bool             buries_nonsense; /* RC_INVALID and RC_CORRUPT: dead at once, another try would say the same */
	bool             has_addressees;  /* gets deliveries only once there was a webhook */

	int64_t  tries;                      /* 0: 3 */
	int64_t  backoff_ms, backoff_max_ms; /* 0: 1 s, 5 min */
	int64_t  visibility_ms;              /* 0: 2 min */
	unsigned concurrency;                /* calls at once on one node; 0: 4 */
	unsigned addressees;                 /* how many addressees have a call of their own besides; 0: none */
};

/* With their defaults. */
int64_t queue_tries(const struct queue *q);
int64_t queue_visibility_ms(const struct queue *q);

/* Put an event of the log (or one that was replayed: then its version is 0) into a queue's lane. What session_emit()
 * does for each route; for handlers that pass events on to addressees. Two actions at most. */
MUST_CHECK enum rc queue_put(struct session *s, const struct queue *queue, const struct event *event, struct str target,
                             struct err *e);

/* The queue by which an event goes out: alarms have one of their own, so that they wait behind nothing else. Where
 * there is none they go with the others. */
const struct queue *queue_for(const struct kernel *k, const struct event *event, const char *usual, const char *alarms);

/* Deliveries due later than any claim or back-off lasts were put off by a wrong clock: due now. arg is the kernel. */
txn_fn queue_rearm;

/* --- for operators --- */

/* Depth and age of each queue; read-only. counts[i] belongs to kernel_options.queues[i]. */
struct queue_count {
	int64_t lanes;     /* subjects with something to deliver */
	int64_t oldest_ms; /* since when the longest waiting head is due; 0: none. Of the first 1,000 */
	int64_t failing;   /* of the first 1,000 lanes: tried at least once without success */
	int64_t dead;
};
struct queue_counts {
	struct kernel      *kernel;
	struct queue_count *counts; /* the answer, in the session's arena */
};
txn_fn queue_counts;

/* What is to be delivered: a page of one queue's lanes, or one lane with everything behind its head; read-only. */
struct lane_list {
	struct str queue;
	size_t     limit;
	struct str cursor;

	struct page page; /* the answer: struct lane records */
};
txn_fn lane_list;

/* Dead letters; read-only. Empty queue: all. */
struct dead_list {
	struct str queue;
	size_t     limit;
	struct str cursor;

	struct page page; /* the answer: struct dead records */
};
txn_fn dead_list;
txn_fn dead_get; /* arg is a struct dead with its id set; read-only */

/* Each of these is audited. RC_NOT_FOUND. */
struct dead_call {
	struct str id, actor, request_id;
	struct str reason; /* drop: required */

	struct dead dead; /* the answer: as it was */
};
txn_fn dead_replay; /* back to the end of its lane, with all its tries */
txn_fn dead_drop;
