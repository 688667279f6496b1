/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statement.c - what one lease cost: the record, its window, and how it grows from pending to final.
 *
 * A cloud's costs arrive a day late or more, so the last figure that the monitor saw is not final. The transaction that
 * ends a lease opens its statement, with all that is needed later. It is made after a day (provisional) and again when
 * the account's cooldown is over or, if nothing reports that, after some days (final). It is checked twice more, after
 * ten and forty days, and amended if its hash differs.
 *
 * The window has eight hours of padding on both sides, rounded to days, for costs that are booked early or late. It
 * ends after the lease's end or, when a cooldown says when the account was clean, after that. The windows of two leases
 * of one account never overlap when 40 hours are between them.
 *
 * The cost report of a month must find the leases of that month, not all that ever ended, and must not miss those whose
 * records are gone. So the transaction that ends a lease leaves a share in every month in which it has a midnight. The
 * keys follow from the lease's times, so shares are found again without an index.
 *
 * Always true:
 *   1. A final statement has all figures of its window, or they have been missing for STATEMENT_PATIENCE_MS.
 *   2. A statement has at most COST_SHARES_MAX shares, with disjoint days, which live exactly as long as it does.
 *
 * Not here: asking for the figures (statement_figures.c), the queue and its timers (reports.c).
 */
#include "service/cost/statement.h"

#include "base/attr.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "domain/lease.h"
#include "kernel/timer.h"
#include "service/cost/cost_report.h"
#include "store/record_rows.h"
#include "store/session.h"

enum { TEMPLATE_BYTES_MAX = 4 * TEMPLATE_NAME_MAX, HASH_HEX = 64, SHARE_KEY_MAX = 8 + LEASE_UUID_MAX };

const char *const statement_state_names[STATEMENT_STATE_COUNT] = { "pending", "provisional", "final", "amended" };

#define STATEMENT_FIELDS(X)                                                                        \
	X(STATEMENT_F_UUID, TEXT(statement, uuid, LEASE_UUID_MAX))                                 \
	X(STATEMENT_F_STATE, ENUM(statement, state, statement_state_names, STATEMENT_STATE_COUNT)) \
	X(STATEMENT_F_USER_EMAIL, TEXT(statement, user_email, EMAIL_MAX))                          \
	X(STATEMENT_F_ACCOUNT_ID, TEXT(statement, account_id, ACCOUNT_ID_MAX))                     \
	X(STATEMENT_F_COST_GROUP, TEXT_OR_NONE(statement, cost_group, COST_GROUP_MAX))             \
	X(STATEMENT_F_START, INT(statement, start_ms))                                             \
	X(STATEMENT_F_END, INT(statement, end_ms))                                                 \
	X(STATEMENT_F_FROM, INT(statement, from_ms))                                               \
	X(STATEMENT_F_TO, INT(statement, to_ms))                                                   \
	X(STATEMENT_F_TOTAL, INT(statement, total))                                                \
	X(STATEMENT_F_COMPLETE, INT_OR_NONE(statement, complete_until_ms))                         \
	X(STATEMENT_F_ROWS, TEXT_OR_NONE(statement, rows, STATEMENT_TEXT_MAX))                     \
	X(STATEMENT_F_HASH, TEXT_OR_NONE(statement, hash, HASH_HEX))                               \
	X(STATEMENT_F_MADE, INT_OR_NONE(statement, made_ms))                                       \
	X(STATEMENT_F_DAYS, TEXT_OR_NONE(statement, days, STATEMENT_TEXT_MAX))                     \
	X(STATEMENT_F_RESTED, INT_OR_NONE(statement, rested_ms))                                   \
	X(STATEMENT_F_BUDGET, INT_OR_NONE(statement, budget))                                      \
	X(STATEMENT_F_ESTIMATED, INT_OR_NONE(statement, estimated))                                \
	X(STATEMENT_F_TEMPLATE, TEXT_OR_NONE(statement, template_name, TEMPLATE_BYTES_MAX))
FIELDS(statement, STATEMENT_FIELDS);
static const struct record_index statement_indexes[] = {
	[STATEMENT_BY_ACCOUNT] = { "ByAccount", STATEMENT_F_ACCOUNT_ID, STATEMENT_F_END, false, NO_FIELD, 0, 1 },
};

#define SHARE_FIELDS(X)                                                             \
	X(SHARE_F_KEY, TEXT(cost_share, key, SHARE_KEY_MAX))                        \
	X(SHARE_F_MONTH, INT(cost_share, month))                                    \
	X(SHARE_F_LEASE, TEXT(cost_share, lease_uuid, LEASE_UUID_MAX))              \
	X(SHARE_F_ACCOUNT, TEXT(cost_share, account_id, ACCOUNT_ID_MAX))            \
	X(SHARE_F_COST_GROUP, TEXT_OR_NONE(cost_share, cost_group, COST_GROUP_MAX)) \
	X(SHARE_F_FROM, INT(cost_share, from_ms))                                   \
	X(SHARE_F_TO, INT(cost_share, to_ms))                                       \
	X(SHARE_F_MICRO_USD, INT(cost_share, micro_usd))                            \
	X(SHARE_F_IS_FINAL, INT(cost_share, is_final))                              \
	X(SHARE_F_OWNER, TEXT_OR_NONE(cost_share, user_email, EMAIL_MAX))           \
	X(SHARE_F_TEMPLATE, TEXT_OR_NONE(cost_share, template_name, TEMPLATE_BYTES_MAX))
FIELDS(share, SHARE_FIELDS);
static const struct record_index share_indexes[] = {
	[COST_SHARE_BY_MONTH] = { "ByMonth", SHARE_F_MONTH, SHARE_F_FROM, false, NO_FIELD, 0, 1 },
};

const struct record_type statement_type = { RECORD_TYPE("statement", statement, statement_fields),
	                                    INDEXES(statement_indexes) };

const struct record_type cost_share_type = { RECORD_TYPE("cost_share", cost_share, share_fields),
	                                     INDEXES(share_indexes) };

/* --- rules --- */

/* The first moment of the day after the padding. */
static int64_t window_end(int64_t ms)
{
	return (ms + STATEMENT_PADDING_MS + DAY_MS - 1) / DAY_MS * DAY_MS;
}

void statement_window(int64_t start_ms, int64_t end_ms, int64_t *ret_from_ms, int64_t *ret_to_ms)
{
	int64_t earliest_ms;

	*ret_to_ms = window_end(end_ms > start_ms ? end_ms : start_ms); /* the clock may have been set back meanwhile */
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
	return st->rested_ms || now_ms >= st->end_ms + (final_ms ? final_ms : STATEMENT_FINAL_MS);
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

	kept_ms = kept_ms ? kept_ms : STATEMENT_KEPT_MS;
	if (st->state == STATEMENT_PENDING)
		return st->end_ms + STATEMENT_PROVISIONAL_MS + spread;
	if (st->state == STATEMENT_PROVISIONAL && is_final_due(st, final_ms, now_ms))
		return now_ms + STATEMENT_AGAIN_MS;
	if (st->state == STATEMENT_PROVISIONAL)
		return st->end_ms + (final_ms ? final_ms : STATEMENT_FINAL_MS) + spread;
	for (size_t i = 0; i < ARRAY_LEN(looks); i++)
		if (now_ms < st->end_ms + looks[i] && looks[i] < kept_ms)
			return st->end_ms + looks[i] + spread;
	return st->end_ms + kept_ms + spread;
}

/* --- how it is shown --- */

void statement_write_json(const struct statement *st, struct json_out *o)
{
	bool    is_made = st->state != STATEMENT_PENDING;
	int64_t over = st->budget && is_made && st->total > st->budget ? st->total - st->budget : 0;

	JSON_PUT(o, member_str("lease", st->uuid), member_word("state", statement_state_names[st->state]),
	         member_str("user_email", st->user_email), member_str("account_id", st->account_id),
	         member_text("cost_group", st->cost_group), member_int("lease_started_at", st->start_ms / 1000),
	         member_int("lease_ended_at", st->end_ms / 1000), member_at("from", st->from_ms),
	         member_at("to", st->to_ms),
	         is_made ? member_micro("total_usd", st->total) : member_text("total_usd", STR("")),
	         member_if_any(member_micro("budget_usd", st->budget)),
	         member_if_any(member_micro("over_budget_usd", over)),
	         member_if(!is_made, member_if_any(member_micro("estimated_usd", st->estimated))),
	         member_word("currency", "USD"), member_at("complete_until", st->complete_until_ms),
	         member_raw("rows", st->rows.n ? st->rows : STR("[]")),
	         member_raw("days", st->days.n ? st->days : STR("[]")), member_text("hash", st->hash),
	         is_made ? member_int("made_at", st->made_ms / 1000) : member_text("made_at", STR("")));
}

static void add_csv_row(const struct statement *st, const json_t *row, struct buf *b)
{
	char       text[ISO_TIME_SIZE];
	struct str cells[] = { st->uuid, st->account_id, STR("") };

	(void)json_get_text(row, "service", &cells[2]); /* written by us */
	csv_add_cells(b, cells, ARRAY_LEN(cells));
	csv_add_days(b, st->from_ms, st->to_ms);
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

/* --- shares --- */

/* What it costs: the days that both have. */
static void settle(struct cost_share *share, const struct statement *st, const int64_t *day_costs)
{
	share->micro_usd = 0;
	for (int64_t ms = share->from_ms; ms < share->to_ms; ms += DAY_MS)
		if (ms >= st->from_ms && ms < st->to_ms)
			share->micro_usd += day_costs[(ms - st->from_ms) / DAY_MS];
	share->is_final = 1;
}

enum rc cost_shares_change(struct session *s, const struct statement *st, enum share_change change,
                           const int64_t *day_costs, struct err *e)
{
	struct cost_month m;

	cost_month_of((struct wall){ st->end_ms }, &m);
	for (int i = 0; i < COST_SHARES_MAX && m.to_ms > st->start_ms; i++) { /* the last month first */
		struct str key = str_format(session_arena(s), "%04d-%02d/%.*s", m.year, m.month, STR_ARG(st->uuid));
		struct cost_share share = { .key = key,
			                    .month = cost_month_number(&m),
			                    .lease_uuid = st->uuid,
			                    .account_id = st->account_id,
			                    .cost_group = st->cost_group,
			                    .user_email = st->user_email,
			                    .template_name = st->template_name };
		bool              is_there = false;
		enum rc           rc;

		if (cost_month_days(&m, st->start_ms, st->end_ms, &share.from_ms, &share.to_ms) &&
		    (rc = session_find(s, &cost_share_type, key, &share, &is_there, e)))
			return rc;
		if (change == SHARES_SETTLE && is_there) /* else of a lease that is not reported */
			settle(&share, st, day_costs);
		if (change == SHARES_REMOVE && is_there)
			session_delete(s, &cost_share_type, key);
		else if (change == SHARES_OPEN ? !is_there && share.to_ms : is_there)
			session_put(s, &cost_share_type, &share);
		cost_month_before((struct wall){ m.from_ms }, &m);
	}
	return RC_OK;
}

/* --- transactions --- */

enum rc statement_get(struct session *s, void *arg, struct err *e)
{
	struct statement *st = arg;
	struct str        uuid = st->uuid;
	bool              is_there;
	enum rc           rc = session_find(s, &statement_type, uuid, st, &is_there, e);

	st->uuid = uuid;
	if (!rc && !is_there)
		return err_set(e, RC_NOT_FOUND, "there is no statement of lease %.*s; it is opened when the lease ends",
		               STR_ARG(uuid));
	return rc;
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
		                .end_ms = l->end_ms,
		                .budget = l->max_spend,
		                .template_name = l->template_name },
	                 found;
	struct lease_forecast forecast;
	bool                  is_there;
	enum rc               rc;

	lease_forecast(l, &forecast);
	st.estimated = forecast.estimated;
	if (!l->start_ms || !l->end_ms || !l->account_id.n)
		return RC_OK; /* never began */
	rc = session_find(s, &statement_type, l->uuid, &found, &is_there, e);
	if (rc || is_there)
		return rc;
	statement_window(st.start_ms, st.end_ms, &st.from_ms, &st.to_ms);
	session_put(s, &statement_type, &st);
	if (cost_report_has(l) && (rc = cost_shares_change(s, &st, SHARES_OPEN, NULL, e)))
		return rc;
	return statement_arm(s, &st, statement_due_ms(&st, 0, 0, session_now(s).ms), e);
}

/* The statement of the last lease that had this account. */
static enum rc find_last(struct session *s, struct str account_id, struct statement *ret, bool *ret_is_there,
                         struct err *e)
{
	struct records all = { .query = query_of(&statement_type, STATEMENT_BY_ACCOUNT, value_text(account_id), 1) };
	const struct statement *last;
	enum rc                 rc;

	*ret_is_there = false;
	all.query.is_descending = true;
	if (!(last = session_next(s, &all, &rc, e)))
		return err_wrap(e, rc, "statements of account %.*s", STR_ARG(account_id));
	return session_find(s, &statement_type, last->uuid, ret, ret_is_there, e);
}

enum rc statement_finalise(struct session *s, struct str account_id, int64_t clean_ms, struct err *e)
{
	struct statement st;
	int64_t          now_ms = session_now(s).ms;
	bool             is_there;
	enum rc          rc = find_last(s, account_id, &st, &is_there, e);

	if (rc || !is_there)
		return rc; /* nobody has had it yet, or it is long ago */
	if (!st.rested_ms)
		st.rested_ms = now_ms;
	if (st.state < STATEMENT_FINAL && window_end(clean_ms) > st.to_ms)
		st.to_ms = window_end(clean_ms);
	session_put(s, &statement_type, &st);
	return statement_arm(s, &st, now_ms, e);
}
