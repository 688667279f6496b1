/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statement.c - what one lease cost: the record, its window, and how it grows from pending to final.
 *
 * What a cloud knows of its costs comes a day late and more, so the last figure that the monitor saw is not the last word. When a lease
 * has ended, its statement is opened with all that is needed later. It is made once after a day (provisional) and once when the
 * account's rest is over (final). If it is made again after that and says something else, it is amended; its hash tells.
 *
 * The window has eight hours of padding on both sides, rounded to days, for costs that are booked early or late. Two leases that follow
 * each other on one account have disjoint windows for certain when 40 hours are between them.
 *
 * Not here: asking for the figures and the timers (reports.c).
 */
#include "service/statement.h"

#include <stddef.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/json.h"
#include "domain/lease.h"
#include "service/cost_report.h"
#include "store/record_rows.h"
#include "store/session.h"

enum { HASH_HEX = 64 };

const char *const statement_state_names[STATEMENT_STATE_COUNT] = { "pending", "provisional", "final", "amended" };

/* clang-format off */
enum {
	STATEMENT_F_UUID, STATEMENT_F_STATE, STATEMENT_F_USER_EMAIL, STATEMENT_F_ACCOUNT_ID, STATEMENT_F_COST_GROUP, STATEMENT_F_START,
	STATEMENT_F_END, STATEMENT_F_FROM, STATEMENT_F_TO, STATEMENT_F_TOTAL, STATEMENT_F_COMPLETE, STATEMENT_F_ROWS, STATEMENT_F_HASH,
	STATEMENT_F_MADE,
};

static const struct record_field statement_fields[] = {
	[STATEMENT_F_UUID]       = { TEXT(statement, uuid, LEASE_UUID_MAX) },
	[STATEMENT_F_STATE]      = { ENUM(statement, state, statement_state_names, STATEMENT_STATE_COUNT) },
	[STATEMENT_F_USER_EMAIL] = { TEXT(statement, user_email, EMAIL_MAX) },
	[STATEMENT_F_ACCOUNT_ID] = { TEXT(statement, account_id, ACCOUNT_ID_MAX) },
	[STATEMENT_F_COST_GROUP] = { TEXT_OR_NONE(statement, cost_group, COST_GROUP_MAX) },
	[STATEMENT_F_START]      = { INT(statement, start_ms) },
	[STATEMENT_F_END]        = { INT(statement, end_ms) },
	[STATEMENT_F_FROM]       = { INT(statement, from_ms) },
	[STATEMENT_F_TO]         = { INT(statement, to_ms) },
	[STATEMENT_F_TOTAL]      = { INT(statement, total) },
	[STATEMENT_F_COMPLETE]   = { INT_OR_NONE(statement, complete_until_ms) },
	[STATEMENT_F_ROWS]       = { TEXT_OR_NONE(statement, rows, STATEMENT_TEXT_MAX) },
	[STATEMENT_F_HASH]       = { TEXT_OR_NONE(statement, hash, HASH_HEX) },
	[STATEMENT_F_MADE]       = { INT_OR_NONE(statement, made_ms) },
};
/* clang-format on */

const struct record_type statement_type = {
	.name = "statement",
	.size = sizeof(struct statement),
	.fields = statement_fields,
	.field_count = ARRAY_LEN(statement_fields),
	.key = STATEMENT_F_UUID,
	.version_offset = offsetof(struct statement, version),
};

void statement_window(int64_t start_ms, int64_t end_ms, int64_t *ret_from_ms, int64_t *ret_to_ms)
{
	*ret_from_ms = (start_ms - STATEMENT_PADDING_MS) / DAY_MS * DAY_MS;
	*ret_to_ms = (end_ms + STATEMENT_PADDING_MS + DAY_MS - 1) / DAY_MS * DAY_MS;
}

bool statement_next(enum statement_state now, enum statement_state wanted, bool is_same, enum statement_state *ret)
{
	if (now == STATEMENT_PENDING || now == STATEMENT_PROVISIONAL)
		*ret = wanted;
	else if (wanted == STATEMENT_FINAL && !is_same)
		*ret = STATEMENT_AMENDED;
	else
		return false;
	return true;
}

static void put_iso(struct json_out *o, const char *name, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	if (ms)
		json_put_str(o, name, iso_time(ms / 1000, text));
	else
		json_put_null(o, name);
}

static void put_text(struct json_out *o, const char *name, struct str text)
{
	if (text.n)
		json_put_str(o, name, text);
	else
		json_put_null(o, name);
}

void statement_write_json(const struct statement *st, struct json_out *o)
{
	bool is_made = st->state != STATEMENT_PENDING;

	json_put_str(o, "lease", st->uuid);
	json_put_str(o, "state", str_from(statement_state_names[st->state]));
	json_put_str(o, "user_email", st->user_email);
	json_put_str(o, "account_id", st->account_id);
	put_text(o, "cost_group", st->cost_group);
	json_put_int(o, "lease_started_at", st->start_ms / 1000);
	json_put_int(o, "lease_ended_at", st->end_ms / 1000);
	put_iso(o, "from", st->from_ms);
	put_iso(o, "to", st->to_ms);
	if (is_made)
		json_put_real(o, "total_usd", (double)st->total / 1e6);
	else
		json_put_null(o, "total_usd");
	json_put_str(o, "currency", STR("USD"));
	put_iso(o, "complete_until", st->complete_until_ms);
	json_put_raw(o, "rows", st->rows.n ? st->rows : STR("[]"));
	put_text(o, "hash", st->hash);
	if (is_made)
		json_put_int(o, "made_at", st->made_ms / 1000);
	else
		json_put_null(o, "made_at");
}

enum rc statement_get(struct session *s, void *arg, struct err *e)
{
	struct statement *st = arg;
	struct str        uuid = st->uuid;
	enum rc           rc = session_get(s, &statement_type, uuid, st, NULL);

	st->uuid = uuid;
	if (rc == RC_NOT_FOUND)
		return err_set(e, rc, "there is no statement of lease %.*s; it is opened when the lease ends",
		               STR_ARG(uuid));
	return rc ? err_set(e, rc, "the statement of lease %.*s cannot be read", STR_ARG(uuid)) : RC_OK;
}
