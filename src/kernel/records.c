/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c - the kernel's record types: one row per field.
 *
 * Rows may be added at the end of a table; the store adds the column. See CONTRIBUTING.md.
 */
#include "kernel/records.h"

#include "store/record_rows.h"

#define TYPE(id, list, ...)                                                          \
	static const struct record_field id##_fields[] = { list(RECORD_FIELD_ROW) }; \
	const struct record_type         id##_type = { RECORD_TYPE(#id, id, id##_fields), __VA_ARGS__ }

enum { ID_MAX = 36, TIMER_NAME_MAX = 240, SAGA_ID_MAX = 200 };

static const char *const event_volume_names[EVENT_VOLUME_COUNT] = { "notable", "routine" };
static const char *const event_reach_names[EVENT_REACH_COUNT] = { "indexed", "chained" };
static const char *const timer_state_names[TIMER_STATE_COUNT] = { "armed" };
const char *const        saga_state_names[SAGA_STATE_COUNT] = { "running", "undoing", "parked", "done", "undone" };
const char *const        alarm_state_names[ALARM_STATE_COUNT] = { "pending", "raised" };
const char *const        alarm_severity_names[ALARM_SEVERITY_COUNT] = { "warning", "page" };

/* clang-format off */
static const struct record_index event_indexes[] = {
	[EVENT_BY_SUBJECT] = { "BySubject", EVENT_F_SUBJECT, EVENT_F_ID, false, EVENT_F_REACH,  EVENT_INDEXED, 1 },
	[EVENT_BY_TYPE]    = { "ByType",    EVENT_F_TYPE,    EVENT_F_ID, false, EVENT_F_VOLUME, EVENT_NOTABLE, 2 },
};
static const struct record_index lane_indexes[] = { [LANE_DUE] = { INDEX("Due", LANE_F_QUEUE, LANE_F_DUE, 1) } };
static const struct record_index dead_indexes[] = {
	[DEAD_BY_QUEUE] = { INDEX("ByQueue", DEAD_F_QUEUE, DEAD_F_DIED, 1) },
};
static const struct record_index timer_indexes[] = { [TIMER_DUE] = { INDEX("Due", TIMER_F_STATE, TIMER_F_DUE, 1) } };
static const struct record_index saga_indexes[] = {
	[SAGA_BY_STATE]   = { INDEX("ByState",   SAGA_F_STATE,   SAGA_F_DUE,     1) },
	[SAGA_BY_SUBJECT] = { INDEX("BySubject", SAGA_F_SUBJECT, SAGA_F_STARTED, 2) },
};
static const struct record_index seen_indexes[] = { [SEEN_BY_AGE] = { INDEX("ByAge", SEEN_F_LOT, SEEN_F_AT, 1) } };

TYPE(event, EVENT_FIELDS, INDEXES(event_indexes), .is_sliced = true, .is_packed = true, .has_time_key = true);
TYPE(lane, LANE_FIELDS, INDEXES(lane_indexes), .is_often_empty = true);
TYPE(waiting, WAITING_FIELDS);
TYPE(dead, DEAD_FIELDS, INDEXES(dead_indexes));
TYPE(timer, TIMER_FIELDS, INDEXES(timer_indexes));
TYPE(saga, SAGA_FIELDS, INDEXES(saga_indexes));
TYPE(alarm, ALARM_FIELDS);
TYPE(webhook, WEBHOOK_FIELDS);
TYPE(seen, SEEN_FIELDS, INDEXES(seen_indexes));
TYPE(node, NODE_FIELDS);
TYPE(fact, FACT_FIELDS);
/* clang-format on */
