/* job_lease.h - which node runs a job: claimed with a lease and a fencing number, in the job's record. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "service/records.h"
#include "store/store.h"

enum lease_verdict {
	LEASE_GRANTED,
	LEASE_HELD,   /* another node runs it, until retry_at at the latest */
	LEASE_RECENT, /* another node ran it a moment ago; the next run is at retry_at */
	LEASE_PAUSED,
};

/* Take the job for this node. An ask is not held back by a pause or a recent run. */
struct lease_claim {
	struct str name, node;
	int64_t    lease_sec, interval_sec;
	bool       is_alone; /* no other node can exist: whoever holds the lease is dead */
	bool       was_asked;

	enum lease_verdict verdict;
	int64_t            retry_at; /* Unix seconds */
	struct job_record  record;   /* as it is now; its fence is this run's number */
};
txn_fn lease_take;

/* Still running: hold it longer. is_lost: another node has taken over. */
struct lease_beat {
	struct str name, node;
	int64_t    lease_sec, fence;
	bool       is_lost;
};
txn_fn lease_extend;

/* The pass is over: give the lease back and keep how it went, unless another node has taken over. */
struct lease_end {
	struct str        node;
	int64_t           fence;
	struct job_record outcome;

	bool              is_lost;
	struct job_record record; /* as it is now, when it is not lost */
};
txn_fn lease_finish;

/* A job's record, or a fresh one when there is none yet. */
MUST_CHECK enum rc job_load(struct session *s, struct str name, struct job_record *ret, struct err *e);
