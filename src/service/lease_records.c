/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_records.c - the record types of leases, accounts and templates: one row per field.
 *
 * What orders an index is never absent, for a record without it is in no index on DynamoDB: so an account that was never cleaned has the
 * time 0, and is the longest rested. is_queued is there for its index alone and follows from queued_ms [lease_store()]; while it is 0
 * the lease is not in the index, so the line costs what is in it. Rows may be added at the end of a table.
 */
#include "service/lease_records.h"

#include "base/attr.h"
#include "domain/account.h"
#include "domain/lease.h"
#include "domain/lease_template.h"
#include "store/record_rows.h"

enum {
	ACCOUNT_NAME_MAX = 128,
	OU_NAME_MAX = 128,
	BLUEPRINT_NAME_MAX = 50,
	CLEAN_REASON_MAX = 64,
	DOCUMENT_NAME_MAX = 64,
	UTF8_MAX = 4, /* bytes of a character: what people write is limited in characters, fields in bytes */
};

/* clang-format off */
#define INDEX(name, hash, sort, gsi) { name, hash, sort, false, NO_FIELD, 0, gsi }

enum {
	LEASE_F_UUID, LEASE_F_USER_EMAIL, LEASE_F_USER_KEY, LEASE_F_STATUS, LEASE_F_TEMPLATE_UUID, LEASE_F_TEMPLATE_NAME, LEASE_F_COMMENTS,
	LEASE_F_CREATED_BY, LEASE_F_BLUEPRINT_ID, LEASE_F_BLUEPRINT_NAME, LEASE_F_MAX_SPEND, LEASE_F_BUDGET_THRESHOLDS, LEASE_F_DURATION,
	LEASE_F_DURATION_THRESHOLDS, LEASE_F_COST_GROUP, LEASE_F_ACCOUNT_ID, LEASE_F_APPROVED_BY, LEASE_F_START, LEASE_F_LAST_CHECKED,
	LEASE_F_EXPIRES, LEASE_F_COST, LEASE_F_COST_AT, LEASE_F_END, LEASE_F_TTL, LEASE_F_QUEUED, LEASE_F_QUEUED_BY, LEASE_F_DECIDED_BY,
	LEASE_F_DECISION_REASON, LEASE_F_ENDED_BY, LEASE_F_END_REASON, LEASE_F_FREEZE_REASON, LEASE_F_CREATED, LEASE_F_EDITED,
	LEASE_F_RATE_FROM, LEASE_F_RATE_FROM_COST, LEASE_F_IS_QUEUED, LEASE_F_TTL_DAYS, LEASE_F_PROJECTED,
};

static const struct record_field lease_fields[] = {
	[LEASE_F_UUID]                = { TEXT(lease, uuid, LEASE_UUID_MAX) },
	[LEASE_F_USER_EMAIL]          = { TEXT(lease, user_email, EMAIL_MAX) },
	[LEASE_F_USER_KEY]            = { TEXT(lease, user_key, EMAIL_MAX) },
	[LEASE_F_STATUS]              = { ENUM(lease, status, lease_status_names, LEASE_STATUS_COUNT) },
	[LEASE_F_TEMPLATE_UUID]       = { TEXT(lease, template_uuid, LEASE_UUID_MAX) },
	[LEASE_F_TEMPLATE_NAME]       = { TEXT(lease, template_name, UTF8_MAX * TEMPLATE_NAME_MAX) },
	[LEASE_F_COMMENTS]            = { TEXT_OR_NONE(lease, comments, UTF8_MAX * COMMENTS_MAX) },
	[LEASE_F_CREATED_BY]          = { TEXT_OR_NONE(lease, created_by, EMAIL_MAX) },
	[LEASE_F_BLUEPRINT_ID]        = { TEXT_OR_NONE(lease, blueprint_id, LEASE_UUID_MAX) },
	[LEASE_F_BLUEPRINT_NAME]      = { TEXT_OR_NONE(lease, blueprint_name, BLUEPRINT_NAME_MAX) },
	[LEASE_F_MAX_SPEND]           = { INT_OR_NONE(lease, max_spend) },
	[LEASE_F_BUDGET_THRESHOLDS]   = { TEXT_OR_NONE(lease, budget_thresholds, THRESHOLDS_TEXT_MAX) },
	[LEASE_F_DURATION]            = { INT_OR_NONE(lease, duration_ms) },
	[LEASE_F_DURATION_THRESHOLDS] = { TEXT_OR_NONE(lease, duration_thresholds, THRESHOLDS_TEXT_MAX) },
	[LEASE_F_COST_GROUP]          = { TEXT_OR_NONE(lease, cost_group, COST_GROUP_MAX) },
	[LEASE_F_ACCOUNT_ID]          = { TEXT_OR_NONE(lease, account_id, ACCOUNT_ID_MAX) },
	[LEASE_F_APPROVED_BY]         = { TEXT_OR_NONE(lease, approved_by, EMAIL_MAX) },
	[LEASE_F_START]               = { INT_OR_NONE(lease, start_ms) },
	[LEASE_F_LAST_CHECKED]        = { INT_OR_NONE(lease, last_checked_ms) },
	[LEASE_F_EXPIRES]             = { INT_OR_NONE(lease, expires_ms) },
	[LEASE_F_COST]                = { INT(lease, cost) },
	[LEASE_F_COST_AT]             = { INT_OR_NONE(lease, cost_at_ms) },
	[LEASE_F_END]                 = { INT_OR_NONE(lease, end_ms) },
	[LEASE_F_TTL]                 = { INT_OR_NONE(lease, ttl_sec) },
	[LEASE_F_QUEUED]              = { INT_OR_NONE(lease, queued_ms) },
	[LEASE_F_QUEUED_BY]           = { TEXT_OR_NONE(lease, queued_by, EMAIL_MAX) },
	[LEASE_F_DECIDED_BY]          = { TEXT_OR_NONE(lease, decided_by, EMAIL_MAX) },
	[LEASE_F_DECISION_REASON]     = { TEXT_OR_NONE(lease, decision_reason, UTF8_MAX * REASON_MAX) },
	[LEASE_F_ENDED_BY]            = { TEXT_OR_NONE(lease, ended_by, EMAIL_MAX) },
	[LEASE_F_END_REASON]          = { TEXT_OR_NONE(lease, end_reason, REASON_TEXT_MAX) },
	[LEASE_F_FREEZE_REASON]       = { TEXT_OR_NONE(lease, freeze_reason, REASON_TEXT_MAX) },
	[LEASE_F_CREATED]             = { INT(lease, created_ms) },
	[LEASE_F_EDITED]              = { INT(lease, edited_ms) },
	[LEASE_F_RATE_FROM]           = { INT_OR_NONE(lease, rate_from_ms) },
	[LEASE_F_RATE_FROM_COST]      = { INT(lease, rate_from_cost) },
	[LEASE_F_IS_QUEUED]           = { INT_OR_NONE(lease, is_queued) },
	[LEASE_F_TTL_DAYS]            = { INT(lease, ttl_days) },
	[LEASE_F_PROJECTED]           = { INT_OR_NONE(lease, projected_ms) },
};
static const struct record_index lease_indexes[] = {
	[LEASE_BY_OWNER]  = INDEX("ByOwner",  LEASE_F_USER_KEY,  LEASE_F_CREATED, 1),
	[LEASE_BY_STATUS] = INDEX("ByStatus", LEASE_F_STATUS,    LEASE_F_CREATED, 2),
	[LEASE_IN_LINE]   = INDEX("InLine",   LEASE_F_IS_QUEUED, LEASE_F_QUEUED,  3),
};

enum {
	ACCOUNT_F_ID, ACCOUNT_F_NAME, ACCOUNT_F_EMAIL, ACCOUNT_F_STATUS, ACCOUNT_F_PLACED_OU, ACCOUNT_F_HOLDER, ACCOUNT_F_GRANTED,
	ACCOUNT_F_LEASE, ACCOUNT_F_FOLLOW_NUMBER, ACCOUNT_F_IS_FOLLOWING, ACCOUNT_F_HAS_DRIFTED, ACCOUNT_F_CLEAN_RUN,
	ACCOUNT_F_CLEAN_STARTED, ACCOUNT_F_CLEANED, ACCOUNT_F_CLEAN_SUCCESSES, ACCOUNT_F_CLEAN_FAILURES, ACCOUNT_F_CLEAN_REASON,
	ACCOUNT_F_CLEAN_LOG, ACCOUNT_F_REASON, ACCOUNT_F_CREATED, ACCOUNT_F_EDITED, ACCOUNT_F_LAST_LEASE, ACCOUNT_F_RESTED,
	ACCOUNT_F_OPEN_HOLDS, ACCOUNT_F_REST_UNTIL,
};

static const struct record_field account_fields[] = {
	[ACCOUNT_F_ID]              = { TEXT(account, id, ACCOUNT_ID_MAX) },
	[ACCOUNT_F_NAME]            = { TEXT_OR_NONE(account, name, ACCOUNT_NAME_MAX) },
	[ACCOUNT_F_EMAIL]           = { TEXT_OR_NONE(account, email, EMAIL_MAX) },
	[ACCOUNT_F_STATUS]          = { ENUM(account, status, account_status_names, ACCOUNT_STATUS_COUNT) },
	[ACCOUNT_F_PLACED_OU]       = { TEXT_OR_NONE(account, placed_ou, OU_NAME_MAX) },
	[ACCOUNT_F_HOLDER]          = { TEXT_OR_NONE(account, holder, EMAIL_MAX) },
	[ACCOUNT_F_GRANTED]         = { TEXT_OR_NONE(account, granted, EMAIL_MAX) },
	[ACCOUNT_F_LEASE]           = { TEXT_OR_NONE(account, lease_uuid, LEASE_UUID_MAX) },
	[ACCOUNT_F_FOLLOW_NUMBER]   = { INT(account, follow_number) },
	[ACCOUNT_F_IS_FOLLOWING]    = { INT(account, is_following) },
	[ACCOUNT_F_HAS_DRIFTED]     = { INT(account, has_drifted) },
	[ACCOUNT_F_CLEAN_RUN]       = { TEXT_OR_NONE(account, clean_run, CLEAN_RUN_MAX) },
	[ACCOUNT_F_CLEAN_STARTED]   = { INT_OR_NONE(account, clean_started_ms) },
	[ACCOUNT_F_CLEANED]         = { INT(account, cleaned_ms) },
	[ACCOUNT_F_CLEAN_SUCCESSES] = { INT(account, clean_successes) },
	[ACCOUNT_F_CLEAN_FAILURES]  = { INT(account, clean_failures) },
	[ACCOUNT_F_CLEAN_REASON]    = { TEXT_OR_NONE(account, clean_reason, CLEAN_REASON_MAX) },
	[ACCOUNT_F_CLEAN_LOG]       = { TEXT_OR_NONE(account, clean_log, CLEAN_LOG_MAX) },
	[ACCOUNT_F_REASON]          = { TEXT_OR_NONE(account, reason, REASON_MAX) },
	[ACCOUNT_F_CREATED]         = { INT(account, created_ms) },
	[ACCOUNT_F_EDITED]          = { INT(account, edited_ms) },
	[ACCOUNT_F_LAST_LEASE]      = { TEXT_OR_NONE(account, last_lease, LEASE_UUID_MAX) },
	[ACCOUNT_F_RESTED]          = { INT_OR_NONE(account, rested_ms) },
	[ACCOUNT_F_OPEN_HOLDS]      = { INT_OR_NONE(account, open_holds) },
	[ACCOUNT_F_REST_UNTIL]      = { INT_OR_NONE(account, rest_until_ms) },
};
static const struct record_index account_indexes[] = {
	[ACCOUNT_BY_STATUS] = INDEX("ByStatus", ACCOUNT_F_STATUS, ACCOUNT_F_CLEANED, 1),
};

enum {
	TEMPLATE_F_UUID, TEMPLATE_F_NAME, TEMPLATE_F_DESCRIPTION, TEMPLATE_F_CREATED_BY, TEMPLATE_F_REQUIRES_APPROVAL, TEMPLATE_F_VISIBILITY,
	TEMPLATE_F_COST_GROUP, TEMPLATE_F_BLUEPRINT_ID, TEMPLATE_F_BLUEPRINT_NAME, TEMPLATE_F_MAX_SPEND, TEMPLATE_F_BUDGET_THRESHOLDS,
	TEMPLATE_F_DURATION, TEMPLATE_F_DURATION_THRESHOLDS, TEMPLATE_F_CREATED, TEMPLATE_F_EDITED,
};

static const struct record_field template_fields[] = {
	[TEMPLATE_F_UUID]                = { TEXT(lease_template, uuid, LEASE_UUID_MAX) },
	[TEMPLATE_F_NAME]                = { TEXT(lease_template, name, UTF8_MAX * TEMPLATE_NAME_MAX) },
	[TEMPLATE_F_DESCRIPTION]         = { TEXT_OR_NONE(lease_template, description, UTF8_MAX * DESCRIPTION_MAX) },
	[TEMPLATE_F_CREATED_BY]          = { TEXT(lease_template, created_by, EMAIL_MAX) },
	[TEMPLATE_F_REQUIRES_APPROVAL]   = { INT(lease_template, requires_approval) },
	[TEMPLATE_F_VISIBILITY]          = { ENUM(lease_template, visibility, template_visibility_names, TEMPLATE_VISIBILITY_COUNT) },
	[TEMPLATE_F_COST_GROUP]          = { TEXT_OR_NONE(lease_template, cost_group, COST_GROUP_MAX) },
	[TEMPLATE_F_BLUEPRINT_ID]        = { TEXT_OR_NONE(lease_template, blueprint_id, LEASE_UUID_MAX) },
	[TEMPLATE_F_BLUEPRINT_NAME]      = { TEXT_OR_NONE(lease_template, blueprint_name, BLUEPRINT_NAME_MAX) },
	[TEMPLATE_F_MAX_SPEND]           = { INT_OR_NONE(lease_template, max_spend) },
	[TEMPLATE_F_BUDGET_THRESHOLDS]   = { TEXT_OR_NONE(lease_template, budget_thresholds, THRESHOLDS_TEXT_MAX) },
	[TEMPLATE_F_DURATION]            = { INT_OR_NONE(lease_template, duration_ms) },
	[TEMPLATE_F_DURATION_THRESHOLDS] = { TEXT_OR_NONE(lease_template, duration_thresholds, THRESHOLDS_TEXT_MAX) },
	[TEMPLATE_F_CREATED]             = { INT(lease_template, created_ms) },
	[TEMPLATE_F_EDITED]              = { INT(lease_template, edited_ms) },
};
static const struct record_index template_indexes[] = {
	[TEMPLATE_BY_NAME] = INDEX("ByName", TEMPLATE_F_NAME, TEMPLATE_F_CREATED, 1),
};

enum { LESSEE_F_EMAIL, LESSEE_F_LIVE };

static const struct record_field lessee_fields[] = {
	[LESSEE_F_EMAIL] = { TEXT(lessee, email_key, EMAIL_MAX) },
	[LESSEE_F_LIVE]  = { INT(lessee, live) },
};

enum { DOCUMENT_F_NAME, DOCUMENT_F_TEXT, DOCUMENT_F_EDITED_BY, DOCUMENT_F_EDITED };

static const struct record_field document_fields[] = {
	[DOCUMENT_F_NAME]      = { TEXT(document, name, DOCUMENT_NAME_MAX) },
	[DOCUMENT_F_TEXT]      = { TEXT(document, text, DOCUMENT_MAX) },
	[DOCUMENT_F_EDITED_BY] = { TEXT_OR_NONE(document, edited_by, EMAIL_MAX) },
	[DOCUMENT_F_EDITED]    = { INT(document, edited_ms) },
};
/* clang-format on */

static bool is_lease_ok(const void *record)
{
	return lease_ok(record);
}

static bool is_account_ok(const void *record)
{
	return account_ok(record);
}

static bool is_lessee_ok(const void *record)
{
	return ((const struct lessee *)record)->live >= 0;
}

const struct record_type lease_type = {
	.name = "lease",
	.size = sizeof(struct lease),
	.fields = lease_fields,
	.field_count = ARRAY_LEN(lease_fields),
	.key = LEASE_F_UUID,
	.version_offset = offsetof(struct lease, version),
	.indexes = lease_indexes,
	.index_count = ARRAY_LEN(lease_indexes),
	.is_ok = is_lease_ok,
};

const struct record_type account_type = {
	.name = "account",
	.size = sizeof(struct account),
	.fields = account_fields,
	.field_count = ARRAY_LEN(account_fields),
	.key = ACCOUNT_F_ID,
	.version_offset = offsetof(struct account, version),
	.indexes = account_indexes,
	.index_count = ARRAY_LEN(account_indexes),
	.is_ok = is_account_ok,
};

const struct record_type template_type = {
	.name = "template",
	.size = sizeof(struct lease_template),
	.fields = template_fields,
	.field_count = ARRAY_LEN(template_fields),
	.key = TEMPLATE_F_UUID,
	.version_offset = offsetof(struct lease_template, version),
	.indexes = template_indexes,
	.index_count = ARRAY_LEN(template_indexes),
};

const struct record_type lessee_type = {
	.name = "lessee",
	.size = sizeof(struct lessee),
	.fields = lessee_fields,
	.field_count = ARRAY_LEN(lessee_fields),
	.key = LESSEE_F_EMAIL,
	.version_offset = offsetof(struct lessee, version),
	.is_ok = is_lessee_ok,
};

const struct record_type document_type = {
	.name = "document",
	.size = sizeof(struct document),
	.fields = document_fields,
	.field_count = ARRAY_LEN(document_fields),
	.key = DOCUMENT_F_NAME,
	.version_offset = offsetof(struct document, version),
};
