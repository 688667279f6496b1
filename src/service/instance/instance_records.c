/* SPDX-License-Identifier: Apache-2.0 */
/* instance_records.c - the record types of instances: one row per field. Rows may be added at the end of a table. */
#include "service/instance/instance_records.h"

#include "base/attr.h"
#include "store/record_rows.h"

enum { UTF8_MAX = 4, BY_MAX = 160, EVENT_MAX = 512, ONCE_MAX = TENANT_ID_MAX + 1 + INSTANCE_KEY_MAX };

const char *const instance_op_names[OP_COUNT] = { INSTANCE_OPERATIONS(ROW_TEXT) };
const char *const instance_op_events[OP_COUNT] = { INSTANCE_OPERATIONS(ROW_THIRD) };
const char *const operation_state_names[OPERATION_STATE_COUNT] = { "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED" };
const char *const backup_kind_names[BACKUP_KIND_COUNT] = { "BACKUP", "FINAL", "BEFORE_RESTORE" };
const char *const backup_state_names[BACKUP_STATE_COUNT] = { "MAKING", "KEPT", "REMOVED", "FAILED" };

/* clang-format off */
#define OUTPUTS(kind, text) { "outputs_" text, FIELD_TEXT, offsetof(struct instance, outputs) + kind * sizeof(struct str), true, INSTANCE_OUTPUTS_MAX, NULL }

enum { INSTANCE_F_ID, INSTANCE_F_TENANT, INSTANCE_F_STATE, INSTANCE_F_CREATED, INSTANCE_F_UPDATED };
static const struct record_field instance_fields[] = {
	[INSTANCE_F_ID]      = { TEXT(instance, id, INSTANCE_ID_MAX) },
	[INSTANCE_F_TENANT]  = { TEXT(instance, tenant, TENANT_ID_MAX) },
	[INSTANCE_F_STATE]   = { ENUM(instance, state, instance_state_names, INSTANCE_STATE_COUNT) },
	[INSTANCE_F_CREATED] = { INT(instance, created_ms) },
	[INSTANCE_F_UPDATED] = { INT(instance, updated_ms) },
	{ TEXT(instance, organization, UTF8_MAX * INSTANCE_ORGANIZATION_MAX) },
	{ TEXT(instance, contact_email, INSTANCE_EMAIL_MAX) },
	{ TEXT_OR_NONE(instance, opportunity_id, INSTANCE_LABEL_MAX) },
	{ ENUM(instance, tier, instance_tier_names, TIER_COUNT) },
	{ TEXT(instance, wordpress_version, INSTANCE_VERSION_MAX) },
	{ INT(instance, desired_count) },
	{ INT_OR_NONE(instance, previous_count) },
	{ INT_OR_NONE(instance, running_count) },
	{ ENUM(instance, deployment, instance_deployment_names, DEPLOYMENT_COUNT) },
	OUTPUTS(INSTANCE_STORAGE, "storage"),
	OUTPUTS(INSTANCE_DATABASE, "database"),
	OUTPUTS(INSTANCE_SECRET, "secret"),
	OUTPUTS(INSTANCE_ROUTE, "route"),
	OUTPUTS(INSTANCE_WORKERS, "workers"),
	OUTPUTS(INSTANCE_IDENTITY, "identity"),
	{ TEXT_OR_NONE(instance, endpoint, INSTANCE_ENDPOINT_MAX) },
	{ TEXT_OR_NONE(instance, reason, INSTANCE_REASON_MAX) },
	{ TEXT_OR_NONE(instance, last_error, INSTANCE_ERROR_MAX) },
	{ TEXT_OR_NONE(instance, operation, INSTANCE_OPERATION_MAX) },
	{ TEXT_OR_NONE(instance, correlation_id, INSTANCE_KEY_MAX) },
	{ TEXT_OR_NONE(instance, requested_by, BY_MAX) },
	{ INT_OR_NONE(instance, started_ms) },
	{ INT_OR_NONE(instance, activated_ms) },
	{ INT_OR_NONE(instance, removed_ms) },
	{ INT_OR_NONE(instance, below_since_ms) },
	{ TEXT_OR_NONE(instance, archive, INSTANCE_ID_MAX) },
	{ INT_OR_NONE(instance, archive_until_ms) },
	{ TEXT_OR_NONE(instance, last_ecs_event, EVENT_MAX) },
	{ INT_OR_NONE(instance, last_ecs_ms) },
	{ INT_OR_NONE(instance, has_data) },
};
static const struct record_index instance_indexes[] = {
	[INSTANCE_BY_TENANT] = { INDEX("ByTenant", INSTANCE_F_TENANT, INSTANCE_F_CREATED, 1) },
	[INSTANCE_BY_STATE]  = { INDEX("ByState",  INSTANCE_F_STATE,  INSTANCE_F_UPDATED, 2), .is_counted = true },
};

static const struct record_field tenant_slot_fields[] = {
	{ TEXT(tenant_slot, tenant, TENANT_ID_MAX) },
	{ TEXT(tenant_slot, instance, INSTANCE_ID_MAX) },
};

enum { OPERATION_F_ID, OPERATION_F_INSTANCE, OPERATION_F_STARTED };
static const struct record_field operation_fields[] = {
	[OPERATION_F_ID]       = { TEXT(operation, id, INSTANCE_OPERATION_MAX) },
	[OPERATION_F_INSTANCE] = { TEXT(operation, instance, INSTANCE_ID_MAX) },
	[OPERATION_F_STARTED]  = { INT(operation, started_ms) },
	{ TEXT(operation, tenant, TENANT_ID_MAX) },
	{ ENUM(operation, kind, instance_op_names, OP_COUNT) },
	{ ENUM(operation, state, operation_state_names, OPERATION_STATE_COUNT) },
	{ TEXT_OR_NONE(operation, requested_by, BY_MAX) },
	{ TEXT_OR_NONE(operation, correlation_id, INSTANCE_KEY_MAX) },
	{ TEXT_OR_NONE(operation, reason, INSTANCE_REASON_MAX) },
	{ INT_OR_NONE(operation, ended_ms) },
	{ TEXT_OR_NONE(operation, error, INSTANCE_ERROR_MAX) },
	{ TEXT_OR_NONE(operation, backup, INSTANCE_ID_MAX) },
};
static const struct record_index operation_indexes[] = {
	[OPERATION_BY_INSTANCE] = { INDEX("ByInstance", OPERATION_F_INSTANCE, OPERATION_F_STARTED, 1) },
};

enum { BACKUP_F_ID, BACKUP_F_INSTANCE, BACKUP_F_CREATED };
static const struct record_field backup_fields[] = {
	[BACKUP_F_ID]       = { TEXT(backup, id, INSTANCE_ID_MAX) },
	[BACKUP_F_INSTANCE] = { TEXT(backup, instance, INSTANCE_ID_MAX) },
	[BACKUP_F_CREATED]  = { INT(backup, created_ms) },
	{ TEXT(backup, tenant, TENANT_ID_MAX) },
	{ ENUM(backup, kind, backup_kind_names, BACKUP_KIND_COUNT) },
	{ ENUM(backup, state, backup_state_names, BACKUP_STATE_COUNT) },
	{ INT_OR_NONE(backup, until_ms) },
	{ TEXT_OR_NONE(backup, outputs, INSTANCE_OUTPUTS_MAX) },
};
static const struct record_index backup_indexes[] = {
	[BACKUP_BY_INSTANCE] = { INDEX("ByInstance", BACKUP_F_INSTANCE, BACKUP_F_CREATED, 1) },
};

enum { ONCE_F_KEY, ONCE_F_LOT, ONCE_F_AT };
static const struct record_field once_fields[] = {
	[ONCE_F_KEY] = { TEXT(once, key, ONCE_MAX) },
	[ONCE_F_LOT] = { INT(once, lot) },
	[ONCE_F_AT]  = { INT(once, at_ms) },
	{ INT(once, body) },
	{ TEXT(once, instance, INSTANCE_ID_MAX) },
	{ TEXT(once, operation, INSTANCE_OPERATION_MAX) },
};
static const struct record_index once_indexes[] = { [ONCE_BY_AGE] = { INDEX("ByAge", ONCE_F_LOT, ONCE_F_AT, 1) } };

static const struct record_field instance_scan_fields[] = {
	{ TEXT(instance_scan_result, name, INSTANCE_LABEL_MAX) },
	{ INT(instance_scan_result, at_ms) },
	{ INT(instance_scan_result, orphans) },
	{ INT(instance_scan_result, missing) },
	{ INT(instance_scan_result, healed) },
	{ TEXT_OR_NONE(instance_scan_result, findings, SCAN_FINDINGS_MAX) },
};
/* clang-format on */

static bool is_instance_ok(const void *record)
{
	return instance_ok(record);
}

const struct record_type instance_type = { RECORD_TYPE("instance", instance, instance_fields),
	                                   INDEXES(instance_indexes), .is_ok = is_instance_ok,
	                                   .items = instance_items };
const struct record_type tenant_slot_type = { RECORD_TYPE("tenant_slot", tenant_slot, tenant_slot_fields) };
const struct record_type operation_type = { RECORD_TYPE("operation", operation, operation_fields),
	                                    INDEXES(operation_indexes) };
const struct record_type backup_type = { RECORD_TYPE("backup", backup, backup_fields), INDEXES(backup_indexes) };
const struct record_type once_type = { RECORD_TYPE("once", once, once_fields), INDEXES(once_indexes) };
const struct record_type instance_scan_type = { RECORD_TYPE("instance_scan", instance_scan_result,
	                                                    instance_scan_fields) };
