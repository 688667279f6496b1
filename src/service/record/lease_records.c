/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_records.c - the record types of leases, accounts and templates: one row per field.
 *
 * What orders an index is never absent, for a record without it is in no index on DynamoDB: so an account that was
 * never cleaned has the time 0, and is the longest rested. is_queued is there for its index alone and follows from
 * queued_ms [lease_store()]; while it is 0 the lease is not in the index, so the line costs what is in it. Rows may be
 * added at the end of a table.
 */
#include "service/record/lease_records.h"

#include "domain/account.h"
#include "domain/lease.h"
#include "domain/lease_template.h"
#include "store/record_rows.h"

/* What people write is limited in characters, fields in bytes: a character has up to four. */
#define UTF8(characters) (4 * (characters))

enum {
	ACCOUNT_NAME_MAX = 128,
	OU_NAME_MAX = 128,
	BLUEPRINT_NAME_MAX = 50,
	CLEAN_REASON_MAX = 64,
	DOCUMENT_NAME_MAX = 64,
	COST_STATE_MAX = 16,
};

#define LEASE_FIELDS(X)                                                                               \
	X(LEASE_F_UUID, TEXT(lease, uuid, LEASE_UUID_MAX))                                            \
	X(LEASE_F_USER_EMAIL, TEXT(lease, user_email, EMAIL_MAX))                                     \
	X(LEASE_F_USER_KEY, TEXT(lease, user_key, EMAIL_MAX))                                         \
	X(LEASE_F_STATUS, ENUM(lease, status, lease_status_names, LEASE_STATUS_COUNT))                \
	X(LEASE_F_TEMPLATE_UUID, TEXT(lease, template_uuid, LEASE_UUID_MAX))                          \
	X(LEASE_F_TEMPLATE_NAME, TEXT(lease, template_name, UTF8(TEMPLATE_NAME_MAX)))                 \
	X(LEASE_F_COMMENTS, TEXT_OR_NONE(lease, comments, UTF8(COMMENTS_MAX)))                        \
	X(LEASE_F_CREATED_BY, TEXT_OR_NONE(lease, created_by, EMAIL_MAX))                             \
	X(LEASE_F_BLUEPRINT_ID, TEXT_OR_NONE(lease, blueprint_id, LEASE_UUID_MAX))                    \
	X(LEASE_F_BLUEPRINT_NAME, TEXT_OR_NONE(lease, blueprint_name, BLUEPRINT_NAME_MAX))            \
	X(LEASE_F_MAX_SPEND, INT_OR_NONE(lease, max_spend))                                           \
	X(LEASE_F_BUDGET_THRESHOLDS, TEXT_OR_NONE(lease, budget_thresholds, THRESHOLDS_TEXT_MAX))     \
	X(LEASE_F_DURATION, INT_OR_NONE(lease, duration_ms))                                          \
	X(LEASE_F_DURATION_THRESHOLDS, TEXT_OR_NONE(lease, duration_thresholds, THRESHOLDS_TEXT_MAX)) \
	X(LEASE_F_COST_GROUP, TEXT_OR_NONE(lease, cost_group, COST_GROUP_MAX))                        \
	X(LEASE_F_ACCOUNT_ID, TEXT_OR_NONE(lease, account_id, ACCOUNT_ID_MAX))                        \
	X(LEASE_F_APPROVED_BY, TEXT_OR_NONE(lease, approved_by, EMAIL_MAX))                           \
	X(LEASE_F_START, INT_OR_NONE(lease, start_ms))                                                \
	X(LEASE_F_LAST_CHECKED, INT_OR_NONE(lease, last_checked_ms))                                  \
	X(LEASE_F_EXPIRES, INT_OR_NONE(lease, expires_ms))                                            \
	X(LEASE_F_COST, INT(lease, cost))                                                             \
	X(LEASE_F_COST_AT, INT_OR_NONE(lease, cost_at_ms))                                            \
	X(LEASE_F_END, INT_OR_NONE(lease, end_ms))                                                    \
	X(LEASE_F_TTL, INT_OR_NONE(lease, ttl_sec))                                                   \
	X(LEASE_F_QUEUED, INT_OR_NONE(lease, queued_ms))                                              \
	X(LEASE_F_QUEUED_BY, TEXT_OR_NONE(lease, queued_by, EMAIL_MAX))                               \
	X(LEASE_F_DECIDED_BY, TEXT_OR_NONE(lease, decided_by, EMAIL_MAX))                             \
	X(LEASE_F_DECISION_REASON, TEXT_OR_NONE(lease, decision_reason, UTF8(REASON_MAX)))            \
	X(LEASE_F_ENDED_BY, TEXT_OR_NONE(lease, ended_by, EMAIL_MAX))                                 \
	X(LEASE_F_END_REASON, TEXT_OR_NONE(lease, end_reason, REASON_TEXT_MAX))                       \
	X(LEASE_F_FREEZE_REASON, TEXT_OR_NONE(lease, freeze_reason, REASON_TEXT_MAX))                 \
	X(LEASE_F_CREATED, INT(lease, created_ms))                                                    \
	X(LEASE_F_EDITED, INT(lease, edited_ms))                                                      \
	X(LEASE_F_RATE_FROM, INT_OR_NONE(lease, rate_from_ms))                                        \
	X(LEASE_F_RATE_FROM_COST, INT(lease, rate_from_cost))                                         \
	X(LEASE_F_IS_QUEUED, INT_OR_NONE(lease, is_queued))                                           \
	X(LEASE_F_TTL_DAYS, INT(lease, ttl_days))                                                     \
	X(LEASE_F_PROJECTED, INT_OR_NONE(lease, projected_ms))                                        \
	X(LEASE_F_FROZEN_BY, TEXT_OR_NONE(lease, frozen_by, EMAIL_MAX))                               \
	X(LEASE_F_COST_STATE, TEXT_OR_NONE(lease, cost_state, COST_STATE_MAX))                        \
	X(LEASE_F_SETTLED_UNTIL, INT_OR_NONE(lease, settled_until_ms))                                \
	X(LEASE_F_SETTLED_COST, INT_OR_NONE(lease, settled_cost))
FIELDS(lease, LEASE_FIELDS);
static const struct record_index lease_indexes[] = {
	[LEASE_BY_OWNER] = { INDEX("ByOwner", LEASE_F_USER_KEY, LEASE_F_CREATED, 1) },
	[LEASE_BY_STATUS] = { INDEX("ByStatus", LEASE_F_STATUS, LEASE_F_CREATED, 2), .is_counted = true },
	[LEASE_IN_LINE] = { INDEX("InLine", LEASE_F_IS_QUEUED, LEASE_F_QUEUED, 3) },
};

#define ACCOUNT_FIELDS(X)                                                                      \
	X(ACCOUNT_F_ID, TEXT(account, id, ACCOUNT_ID_MAX))                                     \
	X(ACCOUNT_F_NAME, TEXT_OR_NONE(account, name, ACCOUNT_NAME_MAX))                       \
	X(ACCOUNT_F_EMAIL, TEXT_OR_NONE(account, email, EMAIL_MAX))                            \
	X(ACCOUNT_F_STATUS, ENUM(account, status, account_status_names, ACCOUNT_STATUS_COUNT)) \
	X(ACCOUNT_F_PLACED_OU, TEXT_OR_NONE(account, placed_ou, OU_NAME_MAX))                  \
	X(ACCOUNT_F_HOLDER, TEXT_OR_NONE(account, holder, EMAIL_MAX))                          \
	X(ACCOUNT_F_GRANTED, TEXT_OR_NONE(account, granted, EMAIL_MAX))                        \
	X(ACCOUNT_F_LEASE, TEXT_OR_NONE(account, lease_uuid, LEASE_UUID_MAX))                  \
	X(ACCOUNT_F_FOLLOW_NUMBER, INT(account, follow_number))                                \
	X(ACCOUNT_F_IS_FOLLOWING, INT(account, is_following))                                  \
	X(ACCOUNT_F_HAS_DRIFTED, INT(account, has_drifted))                                    \
	X(ACCOUNT_F_CLEAN_RUN, TEXT_OR_NONE(account, clean_run, CLEAN_RUN_MAX))                \
	X(ACCOUNT_F_CLEAN_STARTED, INT_OR_NONE(account, clean_started_ms))                     \
	X(ACCOUNT_F_CLEANED, INT(account, cleaned_ms))                                         \
	X(ACCOUNT_F_CLEAN_SUCCESSES, INT(account, clean_successes))                            \
	X(ACCOUNT_F_CLEAN_FAILURES, INT(account, clean_failures))                              \
	X(ACCOUNT_F_CLEAN_REASON, TEXT_OR_NONE(account, clean_reason, CLEAN_REASON_MAX))       \
	X(ACCOUNT_F_CLEAN_LOG, TEXT_OR_NONE(account, clean_log, CLEAN_LOG_MAX))                \
	X(ACCOUNT_F_REASON, TEXT_OR_NONE(account, reason, REASON_MAX))                         \
	X(ACCOUNT_F_CREATED, INT(account, created_ms))                                         \
	X(ACCOUNT_F_EDITED, INT(account, edited_ms))                                           \
	X(ACCOUNT_F_LAST_LEASE, TEXT_OR_NONE(account, last_lease, LEASE_UUID_MAX))             \
	X(ACCOUNT_F_RESTED, INT_OR_NONE(account, rested_ms))                                   \
	X(ACCOUNT_F_OPEN_HOLDS, INT_OR_NONE(account, open_holds))                              \
	X(ACCOUNT_F_REST_UNTIL, INT_OR_NONE(account, rest_until_ms))
FIELDS(account, ACCOUNT_FIELDS);
static const struct record_index account_indexes[] = {
	[ACCOUNT_BY_STATUS] = { INDEX("ByStatus", ACCOUNT_F_STATUS, ACCOUNT_F_CLEANED, 1), .is_counted = true },
};

#define TEMPLATE_FIELDS(X)                                                                                        \
	X(TEMPLATE_F_UUID, TEXT(lease_template, uuid, LEASE_UUID_MAX))                                            \
	X(TEMPLATE_F_NAME, TEXT(lease_template, name, UTF8(TEMPLATE_NAME_MAX)))                                   \
	X(TEMPLATE_F_DESCRIPTION, TEXT_OR_NONE(lease_template, description, UTF8(DESCRIPTION_MAX)))               \
	X(TEMPLATE_F_CREATED_BY, TEXT(lease_template, created_by, EMAIL_MAX))                                     \
	X(TEMPLATE_F_REQUIRES_APPROVAL, INT(lease_template, requires_approval))                                   \
	X(TEMPLATE_F_VISIBILITY,                                                                                  \
	  ENUM(lease_template, visibility, template_visibility_names, TEMPLATE_VISIBILITY_COUNT))                 \
	X(TEMPLATE_F_COST_GROUP, TEXT_OR_NONE(lease_template, cost_group, COST_GROUP_MAX))                        \
	X(TEMPLATE_F_BLUEPRINT_ID, TEXT_OR_NONE(lease_template, blueprint_id, LEASE_UUID_MAX))                    \
	X(TEMPLATE_F_BLUEPRINT_NAME, TEXT_OR_NONE(lease_template, blueprint_name, BLUEPRINT_NAME_MAX))            \
	X(TEMPLATE_F_MAX_SPEND, INT_OR_NONE(lease_template, max_spend))                                           \
	X(TEMPLATE_F_BUDGET_THRESHOLDS, TEXT_OR_NONE(lease_template, budget_thresholds, THRESHOLDS_TEXT_MAX))     \
	X(TEMPLATE_F_DURATION, INT_OR_NONE(lease_template, duration_ms))                                          \
	X(TEMPLATE_F_DURATION_THRESHOLDS, TEXT_OR_NONE(lease_template, duration_thresholds, THRESHOLDS_TEXT_MAX)) \
	X(TEMPLATE_F_CREATED, INT(lease_template, created_ms))                                                    \
	X(TEMPLATE_F_EDITED, INT(lease_template, edited_ms))
FIELDS(template, TEMPLATE_FIELDS);
static const struct record_index template_indexes[] = {
	[TEMPLATE_BY_NAME] = { INDEX("ByName", TEMPLATE_F_NAME, TEMPLATE_F_CREATED, 1) },
};

#define LESSEE_FIELDS(X)                                      \
	X(LESSEE_F_EMAIL, TEXT(lessee, email_key, EMAIL_MAX)) \
	X(LESSEE_F_LIVE, INT(lessee, live))
FIELDS(lessee, LESSEE_FIELDS);

#define DOCUMENT_FIELDS(X)                                                    \
	X(DOCUMENT_F_NAME, TEXT(document, name, DOCUMENT_NAME_MAX))           \
	X(DOCUMENT_F_TEXT, TEXT(document, text, DOCUMENT_MAX))                \
	X(DOCUMENT_F_EDITED_BY, TEXT_OR_NONE(document, edited_by, EMAIL_MAX)) \
	X(DOCUMENT_F_EDITED, INT(document, edited_ms))
FIELDS(document, DOCUMENT_FIELDS);

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

const struct record_type lease_type = { RECORD_TYPE("lease", lease, lease_fields), INDEXES(lease_indexes),
	                                .is_ok = is_lease_ok };
const struct record_type account_type = { RECORD_TYPE("account", account, account_fields), INDEXES(account_indexes),
	                                  .is_ok = is_account_ok };
const struct record_type template_type = { RECORD_TYPE("template", lease_template, template_fields),
	                                   INDEXES(template_indexes) };
const struct record_type lessee_type = { RECORD_TYPE("lessee", lessee, lessee_fields), .is_ok = is_lessee_ok };
const struct record_type document_type = { RECORD_TYPE("document", document, document_fields) };
