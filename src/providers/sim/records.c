/* SPDX-License-Identifier: Apache-2.0 */
/* records.c - the record types of the simulated cloud and vendor: one row per field. Rows may be added at the end of a table. */
#include "providers/sim/records.h"

#include "base/attr.h"
#include "domain/account_table.h"
#include "domain/cloud.h"
#include "store/record_rows.h"

#define INDEX(name, hash, sort)                         \
	{                                               \
		name, hash, sort, false, NO_FIELD, 0, 1 \
	}

#define TYPE(id, index_table, index_total)                      \
	const struct record_type id##_type = {                  \
		.name = #id,                                    \
		.size = sizeof(struct id),                      \
		.fields = id##_fields,                          \
		.field_count = ARRAY_LEN(id##_fields),          \
		.version_offset = offsetof(struct id, version), \
		.indexes = index_table,                         \
		.index_count = index_total,                     \
	}

enum { DIGITS_MAX = 12, PATH_MAX_BYTES = 64, RUN_ID_MAX = 40, ASSIGNMENT_MAX = 12 + 2 + 2 * CLOUD_NAME_MAX + 2 };

static const char *const outcome_names[SIM_OUTCOME_COUNT] = { "cleans", "fails", "lies" };

/* clang-format off */
static const struct record_field sim_account_fields[] = {
	{ TEXT(sim_account, external_id, PATH_MAX_BYTES) },
	{ TEXT(sim_account, sandbox_id, PATH_MAX_BYTES) },
	{ TEXT(sim_account, name, PATH_MAX_BYTES) },
	{ INT(sim_account, created_at) },
};

static const struct record_field sim_counter_fields[] = {
	{ TEXT(sim_counter, name, PATH_MAX_BYTES) },
	{ INT(sim_counter, made) },
};

static const struct record_field sim_ou_fields[] = {
	{ TEXT(sim_ou, id, CLOUD_ID_MAX) },
	{ TEXT(sim_ou, name, CLOUD_NAME_MAX) },
	{ INT(sim_ou, number) },
};

enum { MEMBER_F_ID, MEMBER_F_OU = 3 };
static const struct record_field sim_member_fields[] = {
	{ TEXT(sim_member, id, DIGITS_MAX) },
	{ TEXT(sim_member, name, CLOUD_NAME_MAX) },
	{ TEXT(sim_member, email, CLOUD_NAME_MAX) },
	{ TEXT(sim_member, ou_id, CLOUD_ID_MAX) },
	{ INT(sim_member, joined_ms) },
	{ INT(sim_member, rate) },
	{ INT(sim_member, dirty) },
	{ INT_OR_NONE(sim_member, clean_at_ms) },
	{ INT(sim_member, moves) },
	{ TEXT_OR_NONE(sim_member, tags, SIM_TAGS_MAX) },
};
static const struct record_index sim_member_indexes[] = { [SIM_MEMBER_BY_OU] = INDEX("ByOu", MEMBER_F_OU, MEMBER_F_ID) };

enum { ASSIGNMENT_F_ACCOUNT = 1 };
static const struct record_field sim_assignment_fields[] = {
	{ TEXT(sim_assignment, key, ASSIGNMENT_MAX) },
	{ TEXT(sim_assignment, account_id, DIGITS_MAX) },
	{ INT(sim_assignment, kind) },
	{ TEXT(sim_assignment, principal, CLOUD_NAME_MAX) },
	{ TEXT(sim_assignment, permission_set, CLOUD_NAME_MAX) },
};
static const struct record_index sim_assignment_indexes[] = {
	[SIM_ASSIGNMENT_BY_ACCOUNT] = INDEX("ByAccount", ASSIGNMENT_F_ACCOUNT, NO_FIELD),
};

static const struct record_field sim_secret_fields[] = {
	{ TEXT(sim_secret, account_id, DIGITS_MAX) },
	{ TEXT(sim_secret, name, CLOUD_NAME_MAX) },
	{ TEXT(sim_secret, principal, CLOUD_NAME_MAX) },
	{ TEXT(sim_secret, value, PATH_MAX_BYTES) },
};

enum { RATE_F_ACCOUNT = 1, RATE_F_AT };
static const struct record_field sim_rate_fields[] = {
	{ TEXT(sim_rate, key, PATH_MAX_BYTES) },
	{ TEXT(sim_rate, account_id, DIGITS_MAX) },
	{ INT(sim_rate, at_ms) },
	{ INT(sim_rate, rate) },
};
static const struct record_index sim_rate_indexes[] = { [SIM_RATE_BY_ACCOUNT] = INDEX("ByAccount", RATE_F_ACCOUNT, RATE_F_AT) };

static const struct record_field sim_run_fields[] = {
	{ TEXT(sim_run, id, RUN_ID_MAX) },
	{ TEXT(sim_run, key, CLOUD_KEY_MAX) },
	{ TEXT(sim_run, account_id, DIGITS_MAX) },
	{ INT(sim_run, started_ms) },
	{ INT(sim_run, ends_ms) },
	{ ENUM(sim_run, outcome, outcome_names, SIM_OUTCOME_COUNT) },
};

enum { RESOURCE_F_TENANT = 1 };
static const struct record_field sim_resource_fields[] = {
	{ TEXT(sim_resource, id, CLOUD_NAME_MAX + 4) },
	{ TEXT(sim_resource, tenant, CLOUD_NAME_MAX) },
	{ INT(sim_resource, kind) },
	{ TEXT(sim_resource, key, CLOUD_KEY_MAX) },
	{ TEXT(sim_resource, outputs, CLOUD_TEXT_MAX) },
};
static const struct record_index sim_resource_indexes[] = {
	[SIM_RESOURCE_BY_TENANT] = INDEX("ByTenant", RESOURCE_F_TENANT, NO_FIELD),
};

enum { EVENT_F_LOT = 1, EVENT_F_DUE };
static const struct record_field sim_event_fields[] = {
	{ TEXT(sim_event, key, PATH_MAX_BYTES) },
	{ INT(sim_event, lot) },
	{ INT(sim_event, due_ms) },
	{ TEXT(sim_event, body, SIM_EVENT_MAX) },
};
static const struct record_index sim_event_indexes[] = { [SIM_EVENT_DUE] = INDEX("Due", EVENT_F_LOT, EVENT_F_DUE) };

static const struct record_field sim_isb_account_fields[] = {
	{ TEXT(sim_isb_account, id, DIGITS_MAX) },
	{ TEXT_OR_NONE(sim_isb_account, name, CLOUD_NAME_MAX) },
	{ TEXT(sim_isb_account, status, TABLE_STATUS_MAX) },
	{ INT(sim_isb_account, edited_ms) },
};
/* clang-format on */

TYPE(sim_account, NULL, 0);
TYPE(sim_counter, NULL, 0);
TYPE(sim_ou, NULL, 0);
TYPE(sim_member, sim_member_indexes, ARRAY_LEN(sim_member_indexes));
TYPE(sim_assignment, sim_assignment_indexes, ARRAY_LEN(sim_assignment_indexes));
TYPE(sim_secret, NULL, 0);
TYPE(sim_rate, sim_rate_indexes, ARRAY_LEN(sim_rate_indexes));
TYPE(sim_run, NULL, 0);
TYPE(sim_resource, sim_resource_indexes, ARRAY_LEN(sim_resource_indexes));
TYPE(sim_isb_account, NULL, 0);
TYPE(sim_event, sim_event_indexes, ARRAY_LEN(sim_event_indexes));

const struct record_type *const sim_types[] = {
	&sim_account_type,    &sim_counter_type,     &sim_ou_type,     &sim_member_type,
	&sim_assignment_type, &sim_rate_type,        &sim_run_type,    &sim_resource_type,
	&sim_event_type,      &sim_isb_account_type, &sim_secret_type,
};
const size_t sim_type_count = ARRAY_LEN(sim_types);
