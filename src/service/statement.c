/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statement.c - what one lease cost: the record, its window, and how it grows from pending to final.
 *
 * What a cloud knows of its costs comes a day late and more, so the last figure that the monitor saw is not the last word. The transaction
 * that ends a lease opens its statement, with all that is needed later. It is made once after a day (provisional) and again when the
 * account's rest is over or, when nobody tells, after some days (final). It is looked at twice more, after ten and forty days; if it says
 * something else by then, it is amended; its hash tells.
 *
 * The window has eight hours of padding on both sides, rounded to days, for costs that are booked early or late. It begins before the
 * lease's start and ends after its end or, when a rest tells when the account was clean, after that. Two leases that follow each other
 * on one account have disjoint windows for certain when 40 hours are between them.
 *
 * Always true: a final statement has all figures of its window, or the cloud has not told them for STATEMENT_PATIENCE_MS.
 *
 * Not here: asking for the figures (statement_figures.c), the queue and its timers (reports.c).
 */
#include "service/statement.h"

#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "domain/lease.h"
#include "kernel/timer.h"
#include "service/cost_report.h"
#include "service/cost_shares.h"
#include "store/record_rows.h"
#include "store/session.h"

enum { HASH_HEX = 64 };

const char *const statement_state_names[STATEMENT_STATE_COUNT] = { "pending", "provisional", "final", "amended" };

/* clang-format off */
enum {
	STATEMENT_F_UUID, STATEMENT_F_STATE, STATEMENT_F_USER_EMAIL, STATEMENT_F_ACCOUNT_ID, STATEMENT_F_COST_GROUP, STATEMENT_F_START,
	STATEMENT_F_END, STATEMENT_F_FROM, STATEMENT_F_TO, STATEMENT_F_TOTAL, STATEMENT_F_COMPLETE, STATEMENT_F_ROWS, STATEMENT_F_HASH,
	STATEMENT_F_MADE, STATEMENT_F_DAYS, STATEMENT_F_RESTED,
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
	[STATEMENT_F_DAYS]       = { TEXT_OR_NONE(statement, days, STATEMENT_TEXT_MAX) },
	[STATEMENT_F_RESTED]     = { INT_OR_NONE(statement, rested_ms) },
};
static const struct record_index statement_indexes[] = {
	[STATEMENT_BY_ACCOUNT] = { "ByAccount", STATEMENT_F_ACCOUNT_ID, STATEMENT_F_END, false, NO_FIELD, 0, 1 },
};
/* clang-format on */

const struct record_type statement_type = {
	.name = "statement",
	.size = sizeof(struct statement),
	.fields = statement_fields,
	.field_count = ARRAY_LEN(statement_fields),
	.key = STATEMENT_F_UUID,
	.version_offset = offsetof(struct statement, version),
	.indexes = statement_indexes,
	.index_count = ARRAY_LEN(statement_indexes),
};

/* --- rules --- */

/* The first moment of the day after the padding. */
static int64_t window_end(int64_t ms)
{
	return (ms + STATEMENT_PADDING_MS + DAY_MS - 1) / DAY_MS * DAY_MS;
}

void statement_window(int64_t start_ms, int64_t end_ms, int64_t *ret_from_ms, int64_t *ret_to_ms)
{
	int64_t earliest_ms;

	*ret_to_ms = window_end(end_ms);
	*ret_from_ms = (start_ms - STATEMENT_PADDING_MS) / DAY_MS * DAY_MS;
	earliest_ms = *ret_to_ms - STATEMENT_DAYS_MAX * (int64_t)DAY_MS;
	if (*ret_from_ms < earliest_ms)
		*ret_from_ms = earliest_ms;
}

bool statement_next(enum statement_state now, enum statement_state wanted, bool is_same, enum statement_state *ret)
{
	if (now == STATEMENT_PENDING || (now == STATEMENT_PROVISIONAL && (wanted == STATEMENT_FINAL || !is_same)))
		*ret = wanted;
	else if (now != STATEMENT_PROVISIONAL && wanted == STATEMENT_FINAL && !is_same)
		*ret = STATEMENT_AMENDED;
	else
		return false;
	return true;
}

static bool is_final_due(const struct statement *st, int64_t final_ms, int64_t now_ms)
{
	return st->rested_ms || now_ms >= st->end_ms + final_ms;
}

enum statement_state statement_wanted(const struct statement *st, int64_t final_ms, int64_t now_ms)
{
	bool is_complete = st->complete_until_ms >= st->to_ms || now_ms >= st->end_ms + STATEMENT_PATIENCE_MS;

	if (st->state >= STATEMENT_FINAL)
		return STATEMENT_FINAL;
	return is_complete && is_final_due(st, final_ms, now_ms) ? STATEMENT_FINAL : STATEMENT_PROVISIONAL;
}

int64_t statement_due_ms(const struct statement *st, int64_t final_ms, int64_t kept_ms, int64_t now_ms)
{
	static const int64_t looks[] = { 10 * INT64_C(86400000), 40 * INT64_C(86400000) }; /* after it was final */
	int64_t              spread = (int64_t)(str_hash(st->uuid, 0) % STATEMENT_SPREAD_MS);

	if (st->state == STATEMENT_PENDING)
		return st->end_ms + STATEMENT_PROVISIONAL_MS + spread;
	if (st->state == STATEMENT_PROVISIONAL && is_final_due(st, final_ms, now_ms))
		return now_ms + STATEMENT_AGAIN_MS;
	if (st->state == STATEMENT_PROVISIONAL)
		return st->end_ms + final_ms + spread;
	for (size_t i = 0; i < ARRAY_LEN(looks); i++)
		if (now_ms < st->end_ms + looks[i] && looks[i] < kept_ms)
			return st->end_ms + looks[i] + spread;
	return st->end_ms + kept_ms + spread;
}

/* --- how it is shown --- */

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
	json_put_raw(o, "days", st->days.n ? st->days : STR("[]"));
	put_text(o, "hash", st->hash);
	if (is_made)
		json_put_int(o, "made_at", st->made_ms / 1000);
	else
		json_put_null(o, "made_at");
}

static void add_date(struct buf *b, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	buf_add(b, iso_time(ms / 1000, text).p, 10);
	buf_add_char(b, ',');
}

static void add_csv_row(const struct statement *st, const json_t *row, struct buf *b)
{
	char       text[ISO_TIME_SIZE];
	struct str service = STR("");

	(void)json_get_text(row, "service", &service); /* written by us */
	csv_add_cell(b, st->uuid);
	buf_add_char(b, ',');
	csv_add_cell(b, st->account_id);
	buf_add_char(b, ',');
	csv_add_cell(b, service);
	buf_add_char(b, ',');
	add_date(b, st->from_ms);
	add_date(b, st->to_ms - DAY_MS);
	buf_addf(b, "%.6f,USD,%s,", json_number_value(json_object_get(row, "usd")), statement_state_names[st->state]);
	buf_add_text(b, st->complete_until_ms ? iso_time(st->complete_until_ms / 1000, text).p : "");
	buf_add_char(b, '\n');
}

void statement_write_csv(const struct statement *st, struct buf *b)
{
	CLEANUP(json_freep) json_t *rows = NULL;

	buf_add_text(b, "Lease,Account,Service,StartDate,EndDate,Cost,Currency,State,CompleteUntil\n");
	if (st->rows.n && json_parse(st->rows, &rows, NULL) == RC_OK)
		for (size_t i = 0; i < json_array_size(rows); i++)
			add_csv_row(st, json_array_get(rows, i), b);
}

/* --- transactions --- */

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

enum rc statement_arm(struct session *s, const struct statement *st, int64_t due_ms, struct err *e)
{
	struct timer timer = { .name = str_format(session_arena(s), "statement/%.*s", STR_ARG(st->uuid)),
		               .type = STR(EVENT_STATEMENT_DUE),
		               .subject = str_format(session_arena(s), "lease/%.*s", STR_ARG(st->uuid)),
		               .detail = STR("{}"),
		               .due_ms = due_ms };

	return session_arm(s, &timer, e);
}

enum rc statement_open(struct session *s, const struct lease *l, struct err *e)
{
	struct statement st = { .uuid = l->uuid,
		                .user_email = l->user_email,
		                .account_id = l->account_id,
		                .cost_group = l->cost_group,
		                .start_ms = l->start_ms,
		                .end_ms = l->end_ms },
	                 found;
	enum rc rc;

	if (!l->start_ms || !l->end_ms || !l->account_id.n)
		return RC_OK; /* never began */
	rc = session_get(s, &statement_type, l->uuid, &found, NULL);
	if (rc != RC_NOT_FOUND)
		return rc ? err_set(e, rc, "the statement of lease %.*s cannot be read", STR_ARG(l->uuid)) : RC_OK;
	statement_window(st.start_ms, st.end_ms, &st.from_ms, &st.to_ms);
	session_put(s, &statement_type, &st);
	if (cost_report_has(l) && (rc = cost_shares_open(s, &st, e)))
		return rc;
	return statement_arm(s, &st, statement_due_ms(&st, STATEMENT_FINAL_MS, STATEMENT_KEPT_MS, session_now(s).ms),
	                     e);
}

/* The statement of the last lease that had this account. */
static enum rc find_last(struct session *s, struct str account_id, struct statement *ret, struct err *e)
{
	struct query q = { .type = &statement_type,
		           .index = STATEMENT_BY_ACCOUNT,
		           .hash = value_text(account_id),
		           .is_descending = true,
		           .limit = 1 };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	if (rc)
		return err_wrap(e, rc, "statements of account %.*s", STR_ARG(account_id));
	if (!page.count)
		return RC_NOT_FOUND;
	return session_get(s, &statement_type, ((struct statement *)page_record(&page, &statement_type, 0))->uuid, ret,
	                   NULL);
}

enum rc statement_finalise(struct session *s, struct str account_id, int64_t clean_ms, struct err *e)
{
	struct statement st;
	int64_t          now_ms = session_now(s).ms;
	enum rc          rc = find_last(s, account_id, &st, e);

	if (rc == RC_NOT_FOUND)
		return RC_OK; /* nobody has had it yet, or it is long ago */
	if (rc)
		return err_set(e, rc, "the statement of account %.*s cannot be read", STR_ARG(account_id));
	if (!st.rested_ms)
		st.rested_ms = now_ms;
	if (st.state < STATEMENT_FINAL && window_end(clean_ms) > st.to_ms)
		st.to_ms = window_end(clean_ms);
	session_put(s, &statement_type, &st);
	return statement_arm(s, &st, now_ms, e);
}
