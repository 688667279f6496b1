/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_records.c - how holds are kept. is_open is there for its index alone: a closed hold is not in it, so looking for
 * what is due costs what is open.
 */
#include "service/hold/holds.h"

#include "store/record_rows.h"

/* What people write is limited in characters, fields in bytes: a character has up to four. */
#define UTF8(characters) (4 * (characters))

enum {
	ACCOUNT_DIGITS = 12,
	EMAIL_BYTES = 320,
	UUID_MAX = 64,
	EVENT_ID_MAX = 128,
	PLACEMENT_MAX = 16,
	OPEN_MAX = HOLDS_OPEN_MAX * HOLD_ID_SIZE,
};

#define HOLD_FIELDS(X)                                                             \
	X(HOLD_F_ID, TEXT(hold, id, HOLD_ID_SIZE - 1))                             \
	X(HOLD_F_ACCOUNT, TEXT(hold, account, ACCOUNT_DIGITS))                     \
	X(HOLD_F_REASON, ENUM(hold, reason, hold_reason_names, HOLD_REASON_COUNT)) \
	X(HOLD_F_MODE, ENUM(hold, mode, hold_mode_names, HOLD_MODE_COUNT))         \
	X(HOLD_F_STATE, ENUM(hold, state, hold_state_names, HOLD_STATE_COUNT))     \
	X(HOLD_F_IS_OPEN, INT_OR_NONE(hold, is_open))                              \
	X(HOLD_F_LOCKS, INT(hold, locks))                                          \
	X(HOLD_F_CREATED, INT(hold, created_ms))                                   \
	X(HOLD_F_DUE, INT(hold, due_ms))                                           \
	X(HOLD_F_CREATED_BY, TEXT(hold, created_by, EMAIL_BYTES))                  \
	X(HOLD_F_NOTE, TEXT_OR_NONE(hold, note, UTF8(HOLD_NOTE_MAX)))              \
	X(HOLD_F_SOURCE_EVENT, TEXT_OR_NONE(hold, source_event, EVENT_ID_MAX))     \
	X(HOLD_F_LEASE, TEXT_OR_NONE(hold, lease_uuid, UUID_MAX))                  \
	X(HOLD_F_PLACEMENT, TEXT_OR_NONE(hold, placement, PLACEMENT_MAX))          \
	X(HOLD_F_ATTEMPTS, INT(hold, attempts))                                    \
	X(HOLD_F_LAST_ERROR, TEXT_OR_NONE(hold, last_error, UTF8(HOLD_NOTE_MAX)))  \
	X(HOLD_F_CLOSED, INT_OR_NONE(hold, closed_ms))                             \
	X(HOLD_F_CLOSED_BY, TEXT_OR_NONE(hold, closed_by, EMAIL_BYTES))            \
	X(HOLD_F_CLOSED_WHY, TEXT_OR_NONE(hold, closed_why, UTF8(HOLD_NOTE_MAX)))
FIELDS(hold, HOLD_FIELDS);
static const struct record_index hold_indexes[] = {
	[HOLD_BY_ACCOUNT] = { "ByAccount", HOLD_F_ACCOUNT, HOLD_F_CREATED, false, NO_FIELD, 0, 1 },
	[HOLD_OPEN_ONES] = { "Open", HOLD_F_IS_OPEN, HOLD_F_DUE, false, NO_FIELD, 0, 2 },
};

static const struct record_field book_fields[] = {
	{ TEXT(account_holds, account, ACCOUNT_DIGITS) },
	{ TEXT_OR_NONE(account_holds, open, OPEN_MAX) },
	{ INT(account_holds, last_ms) },
	{ TEXT_OR_NONE(account_holds, bypass_by, EMAIL_BYTES) },
	{ TEXT_OR_NONE(account_holds, bypass_why, UTF8(HOLD_NOTE_MAX)) },
	{ INT_OR_NONE(account_holds, bypass_ms) },
	{ INT_OR_NONE(account_holds, handed_ms) },
};

static bool is_hold_ok(const void *record)
{
	return hold_ok(record);
}

const struct record_type hold_type = { RECORD_TYPE("hold", hold, hold_fields), INDEXES(hold_indexes),
	                               .is_ok = is_hold_ok };
/* Its name is as stores have called it from the start */
const struct record_type account_holds_type = { RECORD_TYPE("hold_book", account_holds, book_fields) };
