/* SPDX-License-Identifier: Apache-2.0 */
/* guard_records.c - how the guard remembers accounts. Rows may be added at the end of the table. */
#include "base/attr.h"
#include "service/guard.h"
#include "store/record_rows.h"

enum { ACCOUNT_DIGITS = 12, EVENT_ID_MAX = 128, ACTION_MAX = 32, SAGA_ID_MAX = 64 };

/* clang-format off */
static const struct record_field mark_fields[] = {
	{ TEXT(guard_mark, account, ACCOUNT_DIGITS) },
	{ TEXT_OR_NONE(guard_mark, event_id, EVENT_ID_MAX) },
	{ INT(guard_mark, event_ms) },
	{ TEXT_OR_NONE(guard_mark, outcome, ACTION_MAX) },
	{ INT(guard_mark, at_ms) },
	{ INT(guard_mark, number) },
	{ TEXT_OR_NONE(guard_mark, saga_id, SAGA_ID_MAX) },
	{ TEXT_OR_NONE(guard_mark, untag, HOLD_ID_SIZE - 1) },
};
/* clang-format on */

const struct record_type guard_mark_type = {
	.name = "guard_mark",
	.size = sizeof(struct guard_mark),
	.fields = mark_fields,
	.field_count = ARRAY_LEN(mark_fields),
	.version_offset = offsetof(struct guard_mark, version),
};
