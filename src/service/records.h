/* records.h - how the domain's structs are kept: the record types of the store. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "store/record.h"

enum sandbox_field {
	SANDBOX_F_ID,
	SANDBOX_F_NAME,
	SANDBOX_F_EXTERNAL_ID,
	SANDBOX_F_STATUS,
	SANDBOX_F_TRACK,
	SANDBOX_F_KEY,
	SANDBOX_F_TRACK_NAME,
	SANDBOX_F_SFDC,
	SANDBOX_F_ALLOCATED_AT,
	SANDBOX_F_LAB_HOURS,
	SANDBOX_F_DELETION_REQUESTED_AT,
	SANDBOX_F_RETRY_COUNT,
	SANDBOX_F_NEXT_DELETION_AT,
	SANDBOX_F_LAST_ERROR,
	SANDBOX_F_QUARANTINE_REASON,
	SANDBOX_F_LAST_SYNCED,
	SANDBOX_F_CREATED_AT,
	SANDBOX_F_UPDATED_AT,
	SANDBOX_F_LAST_EVENT,
	SANDBOX_FIELD_COUNT
};

enum sandbox_index {
	SANDBOX_BY_STATUS, /* all of one state, by the time of their allocation */
	SANDBOX_BY_TRACK,  /* the allocated one of a track: unique */
	SANDBOX_FREE,      /* the available ones by name */
	SANDBOX_INDEX_COUNT
};

extern const struct record_type sandbox_type;

/* A removed sandbox that was lent once, kept so that it never comes back while the vendor still lists it. */
struct tombstone {
	struct str sandbox_id;
	struct str external_id;
	int64_t    removed_at;
	int64_t    missed_since; /* the first sync in a row that did not see it at the vendor; 0: it is listed */
	uint64_t   version;
};

enum { TOMBSTONE_F_ID, TOMBSTONE_F_EXTERNAL_ID, TOMBSTONE_F_REMOVED_AT, TOMBSTONE_F_MISSED_SINCE };

extern const struct record_type tombstone_type;

enum job_outcome { JOB_NEVER_RAN, JOB_SUCCESS, JOB_ERROR, JOB_OUTCOME_COUNT };

struct job_record {
	struct str       name;
	int64_t          is_paused;
	int64_t          last_started_at;
	int64_t          last_finished_at;
	enum job_outcome last_outcome;
	struct str       last_error;
	struct str       last_result;   /* JSON */
	struct str       owner;         /* the node that runs it, or died doing so; empty: none */
	struct str       ran_by;        /* the node of the last run */
	int64_t          failures;      /* in a row, up to the last run */
	int64_t          interval_sec;  /* between two runs; 0: only when asked */
	struct str       last_event_id; /* what made it run */
	int64_t          last_duration_ms;
	uint64_t         version;
};

enum {
	JOB_F_NAME,
	JOB_F_PAUSED,
	JOB_F_LAST_STARTED_AT,
	JOB_F_LAST_FINISHED_AT,
	JOB_F_LAST_OUTCOME,
	JOB_F_LAST_ERROR,
	JOB_F_LAST_RESULT,
	JOB_F_OWNER,
	JOB_F_RAN_BY,
	JOB_F_FAILURES,
	JOB_F_INTERVAL,
	JOB_F_LAST_EVENT_ID,
	JOB_F_LAST_DURATION,
};

enum { JOB_RESULT_MAX = 1024 };

extern const struct record_type job_type;

/* All types, for opening a store. */
extern const struct record_type *const service_types[];
extern const size_t                    service_type_count;
