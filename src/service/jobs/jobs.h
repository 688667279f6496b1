/* jobs.h - the passes as scheduled work: a durable timer or an operator's request makes one due, the kernel's queue
 * runs it.
 *
 * Wiring, in this order:
 *
 *     jobs = jobs_new(&options);
 *     queues[n] = jobs_queue(jobs);                routes: EVENT_JOB_DUE and EVENT_JOB_REQUESTED to JOBS_QUEUE
 *     kernel = kernel_new(...);                    with that queue and these routes
 *     jobs_start(jobs, &e);                        may fail while the store is away: try again
 *     pump = pump_start(...);                      with at least JOB_COUNT workers for this queue
 *     ...
 *     pump_stop(pump);                             passes are asked to end
 *     jobs_free(jobs); */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "service/broker/passes.h"
#include "service/broker/records.h"
#include "store/store.h"

#define JOBS_QUEUE          "jobs"
#define EVENT_JOB_DUE       "JobDue"
#define EVENT_JOB_REQUESTED "JobRequested"
#define JOBS_EVENTS         EVENT_JOB_DUE "," EVENT_JOB_REQUESTED
#define EVENT_JOB_PAUSED    "JobPaused"
#define EVENT_JOB_RESUMED   "JobResumed"
#define EVENT_JOB_FINISHED  "JobFinished" /* detail: job, event (what made it run), durationMs, result, */
#define EVENT_JOB_FAILED    "JobFailed"   /* and error */

/* Scheduled ones first; the rest run only when asked and are not listed. */
enum job_id {
	JOB_SYNC,
	JOB_CLEANUP,
	JOB_EXPIRY,
	JOB_STALE_REMOVAL,
	JOB_EVENT_RETENTION,
	JOB_LEASE_MONITOR,
	JOB_LEASE_LINE,
	JOB_LEASE_ORPHANS,
	JOB_LEASE_PURGE,
	JOB_ACCOUNT_DRIFT,
	JOB_RECONCILE,
	JOB_INSTANCE_WATCH,
	JOB_INSTANCE_ORPHANS,
	JOB_COST_REFRESH, /* this and those behind read something from outside, for all nodes */
	JOB_DIRECTORY_REFRESH,
	JOB_CREDENTIAL_RENEWAL,
	JOB_SCHEDULED,
	JOB_BULK_DELETE = JOB_SCHEDULED,
	JOB_RETRY_FAILED,
	JOB_COUNT
};
enum { JOB_REFRESHES = JOB_SCHEDULED - JOB_COST_REFRESH };

struct jobs_options {
	struct pass         pass; /* what each is given; what it does not have (leases, instances ...) needs no job */
	struct pass_refresh refresh[JOB_REFRESHES];      /* from JOB_COST_REFRESH on; without run: no such job */
	int64_t             interval_sec[JOB_SCHEDULED]; /* 0: there is no such job */
	int64_t             lease_sec;                   /* how long a node may be silent before another runs its job */

	/* Called after each pass, on the worker's thread; may be NULL. */
	void (*on_pass)(void *arg);
	void *on_pass_arg;
};

/* Touches nothing but memory. */
struct jobs *jobs_new(const struct jobs_options *o);

/* The row of the table of queues. */
struct queue jobs_queue(struct jobs *j);

/* Arm missing timers, and start the thread that keeps the claims of passes under way. Blocks. Repeat it on failure. */
MUST_CHECK enum rc jobs_start(struct jobs *j, struct err *e);

/* The first half of it; arg is the jobs. */
txn_fn jobs_arm;

/* After pump_stop(). Whoever still waits for a result gets RC_UNAVAILABLE. */
void jobs_free(struct jobs *j);

const char *jobs_name(enum job_id id);
bool        jobs_has(const struct jobs *j, enum job_id id);                     /* scheduled, with an interval */
bool        jobs_find(const struct jobs *j, struct str name, enum job_id *ret); /* of these */

/* --- run now --- */

/* The request for a pass, paused or not: written as an event. Without own terms it joins a pass that is due or under
 * way at any node. RC_UNAVAILABLE: too many wait already. */
struct job_request {
	enum job_id        id;
	bool               has_own_terms; /* is_forced, stale_hours or status are set: not served by another's pass */
	bool               is_forced;
	int64_t            stale_hours;
	enum sandbox_state status;
	struct str         actor, request_id;

	char event_id[KERNEL_ID_SIZE]; /* the answer: what the pass will be known by */
	bool is_joined;
};
txn_fn job_request;

/* Somebody who waits for a requested pass. Caller-owned, hands off until done(), which comes on another thread. */
struct job_ask {
	enum job_id id;
	char        event_id[KERNEL_ID_SIZE]; /* of the request */

	enum rc    rc;
	struct err e;
	char       result[JOB_RESULT_MAX + 1]; /* JSON */
	int64_t    duration_ms;

	void (*done)(struct job_ask *ask);
	struct job_ask *next; /* private */
};

/* Have done() called when the pass is over, on whatever node; perhaps before this returns. */
void jobs_expect(struct jobs *j, struct job_ask *ask);

/* No longer interested. False: too late, done() is called or will be. */
MUST_CHECK bool jobs_forget(struct jobs *j, struct job_ask *ask);

/* --- look, pause --- */

struct job_status {
	struct job_record record;
	bool              is_running;
	int64_t           interval_sec;
	int64_t           next_run_at; /* 0: paused or running */
};

/* All scheduled jobs; read-only. */
struct job_list {
	const struct jobs *jobs;

	struct job_status items[JOB_SCHEDULED]; /* the answer */
	int               count;
};
txn_fn job_list;

/* Pause or resume; when that is durable, jobs_look_again() stops a scheduled pass under way. */
struct job_pause {
	const struct jobs *jobs;
	enum job_id        id;
	bool               is_paused;
	struct str         actor, request_id;

	struct job_status status; /* the answer */
};
txn_fn job_pause;
void   jobs_look_again(struct jobs *j);
