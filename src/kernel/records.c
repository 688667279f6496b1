/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c - the kernel's record types: one row per field.
 *
 * Rows may be added at the end of a table; the store adds the column. See CONTRIBUTING.md.
 */
#include "kernel/records.h"

#include "base/attr.h"
#include "store/record_rows.h"

#define INDEX(name, hash, sort, gsi)                      \
	{                                                 \
		name, hash, sort, false, NO_FIELD, 0, gsi \
	}

#define TYPE(id, struct_name, field_table, index_table, count_of_indexes, key_field, ...)               \
	const struct record_type id##_type = { .name = #id,                                             \
		                               .size = sizeof(struct struct_name),                      \
		                               .fields = field_table,                                   \
		                               .field_count = ARRAY_LEN(field_table),                   \
		                               .key = key_field,                                        \
		                               .version_offset = offsetof(struct struct_name, version), \
		                               .indexes = index_table,                                  \
		                               .index_count = count_of_indexes,                         \
		                               __VA_ARGS__ }

enum { ID_MAX = 36, TIMER_NAME_MAX = 240, SAGA_ID_MAX = 200 };

static const char *const event_volume_names[EVENT_VOLUME_COUNT] = { "notable", "routine" };
static const char *const event_reach_names[EVENT_REACH_COUNT] = { "indexed", "chained" };
static const char *const timer_state_names[TIMER_STATE_COUNT] = { "armed" };
const char *const        saga_state_names[SAGA_STATE_COUNT] = { "running", "undoing", "parked", "done", "undone" };
const char *const        alarm_state_names[ALARM_STATE_COUNT] = { "pending", "raised" };
const char *const        alarm_severity_names[ALARM_SEVERITY_COUNT] = { "warning", "page" };

/* clang-format off */
static const struct record_field event_fields[] = {
	[EVENT_F_ID]         = { TEXT(event, id, ID_MAX) },
	[EVENT_F_TYPE]       = { TEXT(event, type, EVENT_TYPE_MAX) },
	[EVENT_F_SOURCE]     = { TEXT_OR_NONE(event, source, 128) },
	[EVENT_F_ACCOUNT]    = { TEXT_OR_NONE(event, account, 64) },
	[EVENT_F_REGION]     = { TEXT_OR_NONE(event, region, 64) },
	[EVENT_F_TIME]       = { INT(event, time_ms) },
	[EVENT_F_RESOURCES]  = { TEXT_OR_NONE(event, resources, 4096) },
	[EVENT_F_SUBJECT]    = { TEXT(event, subject, SUBJECT_MAX) },
	[EVENT_F_ACTOR]      = { TEXT_OR_NONE(event, actor, ACTOR_MAX) },
	[EVENT_F_REQUEST_ID] = { TEXT_OR_NONE(event, request_id, 64) },
	[EVENT_F_SCHEMA]     = { INT(event, schema) },
	[EVENT_F_DETAIL]     = { TEXT_OR_NONE(event, detail, DETAIL_MAX) },
	[EVENT_F_VOLUME]     = { ENUM(event, volume, event_volume_names, EVENT_VOLUME_COUNT) },
	[EVENT_F_PREVIOUS]   = { TEXT_OR_NONE(event, previous, ID_MAX) },
	[EVENT_F_REACH]      = { ENUM(event, reach, event_reach_names, EVENT_REACH_COUNT) },
};
static const struct record_index event_indexes[] = {
	[EVENT_BY_SUBJECT] = { "BySubject", EVENT_F_SUBJECT, EVENT_F_ID, false, EVENT_F_REACH,  EVENT_INDEXED, 1 },
	[EVENT_BY_TYPE]    = { "ByType",    EVENT_F_TYPE,    EVENT_F_ID, false, EVENT_F_VOLUME, EVENT_NOTABLE, 2 },
};

static const struct record_field lane_fields[] = {
	[LANE_F_KEY]        = { TEXT(lane, key, LANE_KEY_MAX) },
	[LANE_F_QUEUE]      = { TEXT(lane, queue, QUEUE_NAME_MAX) },
	[LANE_F_SUBJECT]    = { TEXT(lane, subject, SUBJECT_MAX) },
	[LANE_F_TARGET]     = { TEXT_OR_NONE(lane, target, TARGET_MAX) },
	[LANE_F_EVENT_ID]   = { TEXT(lane, event_id, ID_MAX) },
	[LANE_F_HEAD]       = { INT(lane, head) },
	[LANE_F_TAIL]       = { INT(lane, tail) },
	[LANE_F_SINCE]      = { INT(lane, since_ms) },
	[LANE_F_DUE]        = { INT(lane, due_ms) },
	[LANE_F_TRIES]      = { INT(lane, tries) },
	[LANE_F_OWNER]      = { TEXT_OR_NONE(lane, owner, 64) },
	[LANE_F_FENCE]      = { INT(lane, fence) },
	[LANE_F_LAST_ERROR] = { TEXT_OR_NONE(lane, last_error, ERROR_MAX) },
	[LANE_F_EVENT]      = { TEXT_OR_NONE(lane, event, 2 * DETAIL_MAX) },
};
static const struct record_index lane_indexes[] = { [LANE_DUE] = INDEX("Due", LANE_F_QUEUE, LANE_F_DUE, 1) };

static const struct record_field waiting_fields[] = {
	[WAITING_F_KEY]      = { TEXT(waiting, key, LANE_KEY_MAX + 13) },
	[WAITING_F_EVENT_ID] = { TEXT(waiting, event_id, ID_MAX) },
	[WAITING_F_AT]       = { INT(waiting, at_ms) },
	[WAITING_F_EVENT]    = { TEXT_OR_NONE(waiting, event, 2 * DETAIL_MAX) },
};

static const struct record_field dead_fields[] = {
	[DEAD_F_ID]       = { TEXT(dead, id, ID_MAX) },
	[DEAD_F_QUEUE]    = { TEXT(dead, queue, QUEUE_NAME_MAX) },
	[DEAD_F_SUBJECT]  = { TEXT(dead, subject, SUBJECT_MAX) },
	[DEAD_F_TARGET]   = { TEXT_OR_NONE(dead, target, TARGET_MAX) },
	[DEAD_F_EVENT_ID] = { TEXT(dead, event_id, ID_MAX) },
	[DEAD_F_EVENT]    = { TEXT_OR_NONE(dead, event, 2 * DETAIL_MAX) },
	[DEAD_F_TRIES]    = { INT(dead, tries) },
	[DEAD_F_ERROR]    = { TEXT_OR_NONE(dead, error, ERROR_MAX) },
	[DEAD_F_SINCE]    = { INT(dead, since_ms) },
	[DEAD_F_DIED]     = { INT(dead, died_ms) },
};
static const struct record_index dead_indexes[] = { [DEAD_BY_QUEUE] = INDEX("ByQueue", DEAD_F_QUEUE, DEAD_F_DIED, 1) };

static const struct record_field timer_fields[] = {
	[TIMER_F_NAME]    = { TEXT(timer, name, TIMER_NAME_MAX) },
	[TIMER_F_STATE]   = { ENUM(timer, state, timer_state_names, TIMER_STATE_COUNT) },
	[TIMER_F_DUE]     = { INT(timer, due_ms) },
	[TIMER_F_TYPE]    = { TEXT(timer, type, EVENT_TYPE_MAX) },
	[TIMER_F_SUBJECT] = { TEXT(timer, subject, SUBJECT_MAX) },
	[TIMER_F_DETAIL]  = { TEXT_OR_NONE(timer, detail, 4096) },
	[TIMER_F_ARMED]   = { INT(timer, armed_ms) },
};
static const struct record_index timer_indexes[] = { [TIMER_DUE] = INDEX("Due", TIMER_F_STATE, TIMER_F_DUE, 1) };

static const struct record_field saga_fields[] = {
	[SAGA_F_ID]         = { TEXT(saga, id, SAGA_ID_MAX) },
	[SAGA_F_KIND]       = { TEXT(saga, kind, 64) },
	[SAGA_F_SUBJECT]    = { TEXT(saga, subject, SUBJECT_MAX) },
	[SAGA_F_STATE]      = { ENUM(saga, state, saga_state_names, SAGA_STATE_COUNT) },
	[SAGA_F_STEP]       = { INT(saga, step) },
	[SAGA_F_MARKS]      = { TEXT(saga, marks, SAGA_STEPS_MAX) },
	[SAGA_F_IS_BACK]    = { INT(saga, is_back) },
	[SAGA_F_INPUT]      = { TEXT_OR_NONE(saga, input, SAGA_DATA_MAX) },
	[SAGA_F_DATA]       = { TEXT_OR_NONE(saga, data, SAGA_DATA_MAX) },
	[SAGA_F_STARTED]    = { INT(saga, started_ms) },
	[SAGA_F_STEP_SINCE] = { INT(saga, step_since_ms) },
	[SAGA_F_ENDED]      = { INT_OR_NONE(saga, ended_ms) },
	[SAGA_F_DEADLINE]   = { INT_OR_NONE(saga, deadline_ms) },
	[SAGA_F_DUE]        = { INT(saga, due_ms) },
	[SAGA_F_TRIES]      = { INT(saga, tries) },
	[SAGA_F_OWNER]      = { TEXT_OR_NONE(saga, owner, 64) },
	[SAGA_F_FENCE]      = { INT(saga, fence) },
	[SAGA_F_LAST_ERROR] = { TEXT_OR_NONE(saga, last_error, ERROR_MAX) },
	[SAGA_F_REASON]     = { TEXT_OR_NONE(saga, reason, ERROR_MAX) },
	[SAGA_F_LEFTOVERS]  = { TEXT_OR_NONE(saga, leftovers, 2048) },
	[SAGA_F_ACTOR]      = { TEXT_OR_NONE(saga, actor, ACTOR_MAX) },
};
static const struct record_index saga_indexes[] = {
	[SAGA_BY_STATE]   = INDEX("ByState",   SAGA_F_STATE,   SAGA_F_DUE,     1),
	[SAGA_BY_SUBJECT] = INDEX("BySubject", SAGA_F_SUBJECT, SAGA_F_STARTED, 2),
};

static const struct record_field alarm_fields[] = {
	[ALARM_F_NAME]     = { TEXT(alarm, name, 240) },
	[ALARM_F_RULE]     = { TEXT(alarm, rule, 64) },
	[ALARM_F_STATE]    = { ENUM(alarm, state, alarm_state_names, ALARM_STATE_COUNT) },
	[ALARM_F_SEVERITY] = { ENUM(alarm, severity, alarm_severity_names, ALARM_SEVERITY_COUNT) },
	[ALARM_F_EVIDENCE] = { TEXT_OR_NONE(alarm, evidence, ERROR_MAX) },
	[ALARM_F_VALUE]    = { INT(alarm, value) },
	[ALARM_F_SINCE]    = { INT(alarm, since_ms) },
	[ALARM_F_RAISED]   = { INT_OR_NONE(alarm, raised_ms) },
	[ALARM_F_CHECKED]  = { INT(alarm, checked_ms) },
};

static const struct record_field webhook_fields[] = {
	[WEBHOOK_F_ID]          = { TEXT(webhook, id, ID_MAX) },
	[WEBHOOK_F_URL]         = { TEXT(webhook, url, 2048) },
	[WEBHOOK_F_FILTER]      = { TEXT(webhook, filter, 1024) },
	[WEBHOOK_F_SECRET]      = { TEXT(webhook, secret, 128) },
	[WEBHOOK_F_DESCRIPTION] = { TEXT_OR_NONE(webhook, description, 256) },
	[WEBHOOK_F_PAUSED]      = { INT(webhook, is_paused) },
	[WEBHOOK_F_CREATED]     = { INT(webhook, created_ms) },
	[WEBHOOK_F_CREATED_BY]  = { TEXT_OR_NONE(webhook, created_by, ACTOR_MAX) },
};

static const struct record_field seen_fields[] = {
	[SEEN_F_KEY]      = { TEXT(seen, key, SEEN_KEY_MAX) },
	[SEEN_F_EVENT_ID] = { TEXT(seen, event_id, ID_MAX) },
	[SEEN_F_LOT]      = { INT(seen, lot) },
	[SEEN_F_AT]       = { INT(seen, at_ms) },
};
static const struct record_index seen_indexes[] = { [SEEN_BY_AGE] = INDEX("ByAge", SEEN_F_LOT, SEEN_F_AT, 1) };

static const struct record_field node_fields[] = {
	[NODE_F_ID]      = { TEXT(node, id, 64) },
	[NODE_F_STARTED] = { INT(node, started_ms) },
	[NODE_F_BEAT]    = { INT(node, beat_ms) },
	[NODE_F_SLOWEST] = { INT(node, slowest_ms) },
	[NODE_F_FAILED]  = { INT(node, failed_commits) },
};

static const struct record_field fact_fields[] = {
	[FACT_F_NAME]  = { TEXT(fact, name, 128) },
	[FACT_F_VALUE] = { INT(fact, value) },
	[FACT_F_TEXT]  = { TEXT_OR_NONE(fact, text, ERROR_MAX) },
	[FACT_F_SINCE] = { INT(fact, since_ms) },
	[FACT_F_AT]    = { INT(fact, at_ms) },
};

TYPE(event,   event,   event_fields,   event_indexes, ARRAY_LEN(event_indexes), EVENT_F_ID);
TYPE(lane,    lane,    lane_fields,    lane_indexes,  ARRAY_LEN(lane_indexes),  LANE_F_KEY, .is_often_empty = true);
TYPE(waiting, waiting, waiting_fields, NULL,          0,                        WAITING_F_KEY);
TYPE(dead,    dead,    dead_fields,    dead_indexes,  ARRAY_LEN(dead_indexes),  DEAD_F_ID);
TYPE(timer,   timer,   timer_fields,   timer_indexes, ARRAY_LEN(timer_indexes), TIMER_F_NAME);
TYPE(saga,    saga,    saga_fields,    saga_indexes,  ARRAY_LEN(saga_indexes),  SAGA_F_ID);
TYPE(alarm,   alarm,   alarm_fields,   NULL,          0,                        ALARM_F_NAME);
TYPE(webhook, webhook, webhook_fields, NULL,          0,                        WEBHOOK_F_ID);
TYPE(seen,    seen,    seen_fields,    seen_indexes,  ARRAY_LEN(seen_indexes),  SEEN_F_KEY);
TYPE(node,    node,    node_fields,    NULL,          0,                        NODE_F_ID);
TYPE(fact,    fact,    fact_fields,    NULL,          0,                        FACT_F_NAME);
/* clang-format on */
