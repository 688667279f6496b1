/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_records.c - how holds are kept. is_open is there for its index alone: a closed hold is not in it, so looking for what is due costs
 * what is open.
 */
#include "service/holds.h"

#include "base/attr.h"
#include "store/record_rows.h"

enum {
	ACCOUNT_DIGITS = 12,
	EMAIL_BYTES = 320,
	UUID_MAX = 64,
	EVENT_ID_MAX = 128,
	PLACEMENT_MAX = 16,
	UTF8_MAX = 4,
	OPEN_MAX = HOLDS_OPEN_MAX * HOLD_ID_SIZE,
};

/* clang-format off */
enum {
	HOLD_F_ID, HOLD_F_ACCOUNT, HOLD_F_REASON, HOLD_F_MODE, HOLD_F_STATE, HOLD_F_IS_OPEN, HOLD_F_LOCKS, HOLD_F_CREATED, HOLD_F_DUE,
	HOLD_F_CREATED_BY, HOLD_F_NOTE, HOLD_F_SOURCE_EVENT, HOLD_F_LEASE, HOLD_F_PLACEMENT, HOLD_F_ATTEMPTS, HOLD_F_LAST_ERROR,
	HOLD_F_CLOSED, HOLD_F_CLOSED_BY, HOLD_F_CLOSED_WHY,
};

static const struct record_field hold_fields[] = {
	[HOLD_F_ID]           = { TEXT(hold, id, HOLD_ID_SIZE - 1) },
	[HOLD_F_ACCOUNT]      = { TEXT(hold, account, ACCOUNT_DIGITS) },
	[HOLD_F_REASON]       = { ENUM(hold, reason, hold_reason_names, HOLD_REASON_COUNT) },
	[HOLD_F_MODE]         = { ENUM(hold, mode, hold_mode_names, HOLD_MODE_COUNT) },
	[HOLD_F_STATE]        = { ENUM(hold, state, hold_state_names, HOLD_STATE_COUNT) },
	[HOLD_F_IS_OPEN]      = { INT_OR_NONE(hold, is_open) },
	[HOLD_F_LOCKS]        = { INT(hold, locks) },
	[HOLD_F_CREATED]      = { INT(hold, created_ms) },
	[HOLD_F_DUE]          = { INT(hold, due_ms) },
	[HOLD_F_CREATED_BY]   = { TEXT(hold, created_by, EMAIL_BYTES) },
	[HOLD_F_NOTE]         = { TEXT_OR_NONE(hold, note, UTF8_MAX * HOLD_NOTE_MAX) },
	[HOLD_F_SOURCE_EVENT] = { TEXT_OR_NONE(hold, source_event, EVENT_ID_MAX) },
	[HOLD_F_LEASE]        = { TEXT_OR_NONE(hold, lease_uuid, UUID_MAX) },
	[HOLD_F_PLACEMENT]    = { TEXT_OR_NONE(hold, placement, PLACEMENT_MAX) },
	[HOLD_F_ATTEMPTS]     = { INT(hold, attempts) },
	[HOLD_F_LAST_ERROR]   = { TEXT_OR_NONE(hold, last_error, UTF8_MAX * HOLD_NOTE_MAX) },
	[HOLD_F_CLOSED]       = { INT_OR_NONE(hold, closed_ms) },
	[HOLD_F_CLOSED_BY]    = { TEXT_OR_NONE(hold, closed_by, EMAIL_BYTES) },
	[HOLD_F_CLOSED_WHY]   = { TEXT_OR_NONE(hold, closed_why, UTF8_MAX * HOLD_NOTE_MAX) },
};
static const struct record_index hold_indexes[] = {
	[HOLD_BY_ACCOUNT] = { "ByAccount", HOLD_F_ACCOUNT, HOLD_F_CREATED, false, NO_FIELD, 0, 1 },
	[HOLD_OPEN_ONES]  = { "Open",      HOLD_F_IS_OPEN, HOLD_F_DUE,     false, NO_FIELD, 0, 2 },
};

enum { BOOK_F_ACCOUNT, BOOK_F_OPEN, BOOK_F_LAST, BOOK_F_BYPASS_BY, BOOK_F_BYPASS_WHY, BOOK_F_BYPASS_MS, BOOK_F_HANDED };

static const struct record_field book_fields[] = {
	[BOOK_F_ACCOUNT]    = { TEXT(hold_book, account, ACCOUNT_DIGITS) },
	[BOOK_F_OPEN]       = { TEXT_OR_NONE(hold_book, open, OPEN_MAX) },
	[BOOK_F_LAST]       = { INT(hold_book, last_ms) },
	[BOOK_F_BYPASS_BY]  = { TEXT_OR_NONE(hold_book, bypass_by, EMAIL_BYTES) },
	[BOOK_F_BYPASS_WHY] = { TEXT_OR_NONE(hold_book, bypass_why, UTF8_MAX * HOLD_NOTE_MAX) },
	[BOOK_F_BYPASS_MS]  = { INT_OR_NONE(hold_book, bypass_ms) },
	[BOOK_F_HANDED]     = { INT_OR_NONE(hold_book, handed_ms) },
};
/* clang-format on */

static bool is_hold_ok(const void *record)
{
	return hold_ok(record);
}

const struct record_type hold_type = {
	.name = "hold",
	.size = sizeof(struct hold),
	.fields = hold_fields,
	.field_count = ARRAY_LEN(hold_fields),
	.key = HOLD_F_ID,
	.version_offset = offsetof(struct hold, version),
	.indexes = hold_indexes,
	.index_count = ARRAY_LEN(hold_indexes),
	.is_ok = is_hold_ok,
};

const struct record_type hold_book_type = {
	.name = "hold_book",
	.size = sizeof(struct hold_book),
	.fields = book_fields,
	.field_count = ARRAY_LEN(book_fields),
	.key = BOOK_F_ACCOUNT,
	.version_offset = offsetof(struct hold_book, version),
};
