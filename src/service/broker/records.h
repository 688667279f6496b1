/* records.h - how the domain's structs are kept: the record types of the store. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "store/record.h"

#define SANDBOX_FIELDS(X)                                                                          \
	X(SANDBOX_F_ID, TEXT(sandbox, sandbox_id, SANDBOX_ID_MAX))                                 \
	X(SANDBOX_F_NAME, TEXT(sandbox, name, SANDBOX_NAME_MAX))                                   \
	X(SANDBOX_F_EXTERNAL_ID, TEXT(sandbox, external_id, SANDBOX_EXTERNAL_ID_MAX))              \
	X(SANDBOX_F_STATUS, ENUM(sandbox, status, sandbox_state_names, SANDBOX_STATE_COUNT))       \
	X(SANDBOX_F_TRACK, TEXT_OR_NONE(sandbox, allocated_to_track, SANDBOX_OWNER_MAX))           \
	X(SANDBOX_F_KEY, TEXT_OR_NONE(sandbox, idempotency_key, SANDBOX_OWNER_MAX))                \
	X(SANDBOX_F_TRACK_NAME, TEXT_OR_NONE(sandbox, track_name, SANDBOX_OWNER_MAX))              \
	X(SANDBOX_F_SFDC, TEXT_OR_NONE(sandbox, sfdc_account_id, SANDBOX_NAME_MAX))                \
	X(SANDBOX_F_ALLOCATED_AT, INT_OR_NONE(sandbox, allocated_at))                              \
	X(SANDBOX_F_LAB_HOURS, INT(sandbox, lab_duration_hours))                                   \
	X(SANDBOX_F_DELETION_REQUESTED_AT, INT_OR_NONE(sandbox, deletion_requested_at))            \
	X(SANDBOX_F_RETRY_COUNT, INT(sandbox, deletion_retry_count))                               \
	X(SANDBOX_F_NEXT_DELETION_AT, INT_OR_NONE(sandbox, next_deletion_at))                      \
	X(SANDBOX_F_LAST_ERROR, TEXT_OR_NONE(sandbox, last_error, SANDBOX_TEXT_MAX))               \
	X(SANDBOX_F_QUARANTINE_REASON, TEXT_OR_NONE(sandbox, quarantine_reason, SANDBOX_TEXT_MAX)) \
	X(SANDBOX_F_LAST_SYNCED, INT_OR_NONE(sandbox, last_synced))                                \
	X(SANDBOX_F_CREATED_AT, INT(sandbox, created_at))                                          \
	X(SANDBOX_F_UPDATED_AT, INT(sandbox, updated_at))                                          \
	X(SANDBOX_F_LAST_EVENT, TEXT_OR_NONE(sandbox, last_event, SANDBOX_EVENT_ID_MAX))
enum { SANDBOX_FIELDS(RECORD_FIELD_ID) };

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

enum { JOB_RESULT_MAX = 1024 };

extern const struct record_type job_type;
