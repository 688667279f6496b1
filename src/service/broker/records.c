/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c - the record types: one row per field, nothing else anywhere.
 *
 * Names are those of the pool table of the source documents, so that the DynamoDB items are the ones that existing
 * deployments have. Rows may be added at the end of a table; the store adds the column. See CONTRIBUTING.md.
 */
#include "service/broker/records.h"

#include "base/attr.h"
#include "domain/sandbox.h"
#include "store/record_rows.h"

static const struct record_field sandbox_fields[] = { SANDBOX_FIELDS(RECORD_FIELD_ROW) };

static const struct record_index sandbox_indexes[SANDBOX_INDEX_COUNT] = {
	/* name, hash, sort, is it unique, only these, number of the GSI */
	[SANDBOX_BY_STATUS] = { INDEX("StatusIndex", SANDBOX_F_STATUS, SANDBOX_F_ALLOCATED_AT, 1), .is_hot = true },
	[SANDBOX_BY_TRACK] = { "TrackIndex", SANDBOX_F_TRACK, NO_FIELD, true, SANDBOX_F_STATUS, SANDBOX_ALLOCATED, 0 },
	[SANDBOX_FREE] = { "FreeIndex", SANDBOX_F_STATUS, SANDBOX_F_NAME, false, SANDBOX_F_STATUS, SANDBOX_AVAILABLE, 0,
	                   .is_hot = true },
};

#define TOMBSTONE_FIELDS(X)                                                               \
	X(TOMBSTONE_F_ID, TEXT(tombstone, sandbox_id, SANDBOX_ID_MAX))                    \
	X(TOMBSTONE_F_EXTERNAL_ID, TEXT(tombstone, external_id, SANDBOX_EXTERNAL_ID_MAX)) \
	X(TOMBSTONE_F_REMOVED_AT, INT(tombstone, removed_at))                             \
	X(TOMBSTONE_F_MISSED_SINCE, INT_OR_NONE(tombstone, missed_since))
FIELDS(tombstone, TOMBSTONE_FIELDS);

static const char *const outcome_names[JOB_OUTCOME_COUNT] = { "never ran", "success", "error" };

#define JOB_FIELDS(X)                                                                           \
	X(JOB_F_NAME, TEXT(job_record, name, 64))                                               \
	X(JOB_F_PAUSED, INT(job_record, is_paused))                                             \
	X(JOB_F_LAST_STARTED_AT, INT_OR_NONE(job_record, last_started_at))                      \
	X(JOB_F_LAST_FINISHED_AT, INT_OR_NONE(job_record, last_finished_at))                    \
	X(JOB_F_LAST_OUTCOME, ENUM(job_record, last_outcome, outcome_names, JOB_OUTCOME_COUNT)) \
	X(JOB_F_LAST_ERROR, TEXT_OR_NONE(job_record, last_error, SANDBOX_TEXT_MAX))             \
	X(JOB_F_LAST_RESULT, TEXT_OR_NONE(job_record, last_result, JOB_RESULT_MAX))             \
	X(JOB_F_OWNER, TEXT_OR_NONE(job_record, owner, 64))                                     \
	X(JOB_F_RAN_BY, TEXT_OR_NONE(job_record, ran_by, 64))                                   \
	X(JOB_F_FAILURES, INT_OR_NONE(job_record, failures))                                    \
	X(JOB_F_INTERVAL, INT_OR_NONE(job_record, interval_sec))                                \
	X(JOB_F_LAST_EVENT_ID, TEXT_OR_NONE(job_record, last_event_id, 64))                     \
	X(JOB_F_LAST_DURATION, INT_OR_NONE(job_record, last_duration_ms))
FIELDS(job, JOB_FIELDS);

static bool is_sandbox_ok(const void *record)
{
	return sandbox_ok(record);
}

const struct record_type sandbox_type = { RECORD_TYPE("sandbox", sandbox, sandbox_fields), INDEXES(sandbox_indexes),
	                                  .is_ok = is_sandbox_ok, .is_packed = true, .key_prefix = "SBX#" };
const struct record_type tombstone_type = { RECORD_TYPE("tombstone", tombstone, tombstone_fields) };
const struct record_type job_type = { RECORD_TYPE("job", job_record, job_fields) };
