/* jobs.h - runs the passes: on their schedule, on demand, one at a time each. Threads of its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "service/passes.h"
#include "service/records.h"
#include "store/store.h"

struct jobs;

/* Scheduled ones first; the rest run only when asked and are not listed. */
enum job_id {
	JOB_SYNC,
	JOB_CLEANUP,
	JOB_EXPIRY,
	JOB_STALE_REMOVAL,
	JOB_SCHEDULED,
	JOB_BULK_DELETE = JOB_SCHEDULED,
	JOB_RETRY_FAILED,
	JOB_COUNT
};

struct jobs_options {
	struct store                 *store;
	struct csp                   *csp;
	const struct broker_settings *settings;
	const struct clock           *clock;
	struct metrics               *metrics;
	int64_t                       interval_sec[JOB_SCHEDULED];
	int64_t                       lease_sec; /* how long a node may be silent before another runs its job */
	bool                          is_alone;  /* no other node uses this store: leases of others are leftovers */

	/* Called after each pass, on the job's thread. */
	void (*on_pass)(void *arg);
	void *on_pass_arg;
};

/* Reads what was paused, starts the threads; each scheduled job that is not paused runs at once. */
MUST_CHECK enum rc jobs_open(const struct jobs_options *o, struct jobs **ret, struct err *e);

/* Ends passes at their next wait and joins the threads. Asks that were not served get RC_UNAVAILABLE. */
void jobs_close(struct jobs *j);

const char *jobs_name(enum job_id id);
bool        jobs_find(struct str name, enum job_id *ret); /* scheduled ones only */

/* Somebody who wants a pass and its result. Caller-owned, hands off until done(), which comes on the job's thread. */
struct job_ask {
	bool               has_own_terms; /* is_forced, stale_hours or status are set: not served by another's pass */
	bool               is_forced;
	int64_t            stale_hours;
	enum sandbox_state status;

	enum rc            rc;
	struct err         e;
	struct pass_result result;
	int64_t            duration_ms;

	void (*done)(struct job_ask *ask);
	struct job_ask *next; /* private */
};

/* Run it now, paused or not. Without own terms the ask joins a pass that is already under way. */
void jobs_ask(struct jobs *j, enum job_id id, struct job_ask *ask);

/* What is known about a job. Texts live in the arena. */
struct job_status {
	struct job_record record;
	bool              is_running;
	int64_t           interval_sec;
	int64_t           next_run_at; /* 0: paused or running */
};
void jobs_status(struct jobs *j, enum job_id id, struct arena *a, struct job_status *ret);

/* Pause or resume: a transaction for the record, then jobs_set_paused() once it is durable. */
struct job_pause {
	struct str name;
	bool       is_paused;

	uint64_t version; /* the answer: of the record that says so */
};
txn_fn job_pause;
void   jobs_set_paused(struct jobs *j, enum job_id id, const struct job_pause *done);
