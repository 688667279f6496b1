/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c - the record types: one row per field, nothing else anywhere.
 *
 * Names are those of the pool table of the source documents, so that the DynamoDB items are the ones that existing
 * deployments have. Rows may be added at the end of a table; the store adds the column. See CONTRIBUTING.md.
 */
#include "service/records.h"

#include "base/attr.h"
#include "domain/sandbox.h"
#include "kernel/records.h"
#include "service/blueprints.h"
#include "service/guard.h"
#include "service/holds.h"
#include "service/lease_records.h"
#include "service/service_accounts.h"
#include "store/record_rows.h"

/* clang-format off */
static const struct record_field sandbox_fields[SANDBOX_FIELD_COUNT] = {
	[SANDBOX_F_ID]                    = { TEXT(sandbox, sandbox_id, SANDBOX_ID_MAX) },
	[SANDBOX_F_NAME]                  = { TEXT(sandbox, name, SANDBOX_NAME_MAX) },
	[SANDBOX_F_EXTERNAL_ID]           = { TEXT(sandbox, external_id, SANDBOX_EXTERNAL_ID_MAX) },
	[SANDBOX_F_STATUS]                = { ENUM(sandbox, status, sandbox_state_names, SANDBOX_STATE_COUNT) },
	[SANDBOX_F_TRACK]                 = { TEXT_OR_NONE(sandbox, allocated_to_track, SANDBOX_OWNER_MAX) },
	[SANDBOX_F_KEY]                   = { TEXT_OR_NONE(sandbox, idempotency_key, SANDBOX_OWNER_MAX) },
	[SANDBOX_F_TRACK_NAME]            = { TEXT_OR_NONE(sandbox, track_name, SANDBOX_OWNER_MAX) },
	[SANDBOX_F_SFDC]                  = { TEXT_OR_NONE(sandbox, sfdc_account_id, SANDBOX_NAME_MAX) },
	[SANDBOX_F_ALLOCATED_AT]          = { INT_OR_NONE(sandbox, allocated_at) },
	[SANDBOX_F_LAB_HOURS]             = { INT(sandbox, lab_duration_hours) },
	[SANDBOX_F_DELETION_REQUESTED_AT] = { INT_OR_NONE(sandbox, deletion_requested_at) },
	[SANDBOX_F_RETRY_COUNT]           = { INT(sandbox, deletion_retry_count) },
	[SANDBOX_F_NEXT_DELETION_AT]      = { INT_OR_NONE(sandbox, next_deletion_at) },
	[SANDBOX_F_LAST_ERROR]            = { TEXT_OR_NONE(sandbox, last_error, SANDBOX_TEXT_MAX) },
	[SANDBOX_F_QUARANTINE_REASON]     = { TEXT_OR_NONE(sandbox, quarantine_reason, SANDBOX_TEXT_MAX) },
	[SANDBOX_F_LAST_SYNCED]           = { INT_OR_NONE(sandbox, last_synced) },
	[SANDBOX_F_CREATED_AT]            = { INT(sandbox, created_at) },
	[SANDBOX_F_UPDATED_AT]            = { INT(sandbox, updated_at) },
	[SANDBOX_F_LAST_EVENT]            = { TEXT_OR_NONE(sandbox, last_event, SANDBOX_EVENT_ID_MAX) },
};

static const struct record_index sandbox_indexes[SANDBOX_INDEX_COUNT] = {
	/*                      name           hash              sort                    unique only_field          only_value         gsi */
	[SANDBOX_BY_STATUS] = { "StatusIndex", SANDBOX_F_STATUS, SANDBOX_F_ALLOCATED_AT, false, NO_FIELD,           0,                 1 },
	[SANDBOX_BY_TRACK]  = { "TrackIndex",  SANDBOX_F_TRACK,  NO_FIELD,               true,  SANDBOX_F_STATUS,   SANDBOX_ALLOCATED, 0 },
	[SANDBOX_FREE]      = { "FreeIndex",   SANDBOX_F_STATUS, SANDBOX_F_NAME,         false, SANDBOX_F_STATUS,   SANDBOX_AVAILABLE, 0 },
};

static const struct record_field tombstone_fields[] = {
	[TOMBSTONE_F_ID]             = { TEXT(tombstone, sandbox_id, SANDBOX_ID_MAX) },
	[TOMBSTONE_F_EXTERNAL_ID]    = { TEXT(tombstone, external_id, SANDBOX_EXTERNAL_ID_MAX) },
	[TOMBSTONE_F_REMOVED_AT]     = { INT(tombstone, removed_at) },
	[TOMBSTONE_F_MISSED_SINCE]   = { INT_OR_NONE(tombstone, missed_since) },
};

static const char *const outcome_names[JOB_OUTCOME_COUNT] = { "never ran", "success", "error" };

static const struct record_field job_fields[] = {
	[JOB_F_NAME]             = { TEXT(job_record, name, 64) },
	[JOB_F_PAUSED]           = { INT(job_record, is_paused) },
	[JOB_F_LAST_STARTED_AT]  = { INT_OR_NONE(job_record, last_started_at) },
	[JOB_F_LAST_FINISHED_AT] = { INT_OR_NONE(job_record, last_finished_at) },
	[JOB_F_LAST_OUTCOME]     = { ENUM(job_record, last_outcome, outcome_names, JOB_OUTCOME_COUNT) },
	[JOB_F_LAST_ERROR]       = { TEXT_OR_NONE(job_record, last_error, SANDBOX_TEXT_MAX) },
	[JOB_F_LAST_RESULT]      = { TEXT_OR_NONE(job_record, last_result, JOB_RESULT_MAX) },
	[JOB_F_OWNER]            = { TEXT_OR_NONE(job_record, owner, 64) },
	[JOB_F_RAN_BY]           = { TEXT_OR_NONE(job_record, ran_by, 64) },
	[JOB_F_FAILURES]         = { INT_OR_NONE(job_record, failures) },
	[JOB_F_INTERVAL]         = { INT_OR_NONE(job_record, interval_sec) },
	[JOB_F_LAST_EVENT_ID]    = { TEXT_OR_NONE(job_record, last_event_id, 64) },
	[JOB_F_LAST_DURATION]    = { INT_OR_NONE(job_record, last_duration_ms) },
};
/* clang-format on */

static bool is_sandbox_ok(const void *record)
{
	return sandbox_ok(record);
}

const struct record_type sandbox_type = {
	.name = "sandbox",
	.size = sizeof(struct sandbox),
	.fields = sandbox_fields,
	.field_count = SANDBOX_FIELD_COUNT,
	.key = SANDBOX_F_ID,
	.version_offset = offsetof(struct sandbox, version),
	.indexes = sandbox_indexes,
	.index_count = SANDBOX_INDEX_COUNT,
	.is_ok = is_sandbox_ok,
	.key_prefix = "SBX#",
};

const struct record_type tombstone_type = {
	.name = "tombstone",
	.size = sizeof(struct tombstone),
	.fields = tombstone_fields,
	.field_count = ARRAY_LEN(tombstone_fields),
	.key = TOMBSTONE_F_ID,
	.version_offset = offsetof(struct tombstone, version),
};

const struct record_type job_type = {
	.name = "job",
	.size = sizeof(struct job_record),
	.fields = job_fields,
	.field_count = ARRAY_LEN(job_fields),
	.key = JOB_F_NAME,
	.version_offset = offsetof(struct job_record, version),
};

const struct record_type *const service_types[] = { &sandbox_type,         &tombstone_type, &job_type,
	                                            KERNEL_TYPES,          LEASE_TYPES,     BLUEPRINT_TYPES,
	                                            SERVICE_ACCOUNT_TYPES, HOLD_TYPES,      &guard_mark_type };
const size_t                    service_type_count = ARRAY_LEN(service_types);
