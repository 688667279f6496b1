/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_report.c - the group cost report.
 *
 * Reported are leases that are Active or Frozen, and those that have ended unless they never began. Of each, the days of the month whose
 * midnight (UTC) is in the lease: from its start up to, but not including, the moment of its end, or now. So the rest of the first day is
 * left out and all of the last day is in, as upstream does it; the statement of a lease (statement.c) is the exact figure. What the account spent on
 * these days counts for the group that the lease has now.
 *
 * Those in use are read by their status and asked for. Those that have ended have left a share in each of their months (cost_shares.c): so
 * the report costs what is in its month, however many leases have ended before and since, and misses none whose record is gone. A share
 * whose statement is final says itself what it costs.
 *
 * Always true: each lease counts once, also while it changes its status under our hands. Those in use are read again until nothing new is
 * found, for one may be thawed behind our back; shares are read after them, and a lease that ends leaves its shares in the same commit.
 * Sums are exact; only the table is rounded.
 */
#include "service/cost_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "domain/cloud.h"
#include "domain/lease.h"
#include "service/cost_shares.h"
#include "service/lease_records.h"
#include "store/session.h"
#include "store/store.h"

enum { PAGE = 500, ROUNDS_MAX = 10, MICRO_PER_CENT = 10000, HOUR_MS = 3600000, MINUTE_MS = 60000 };

/* --- months --- */

static int64_t month_start_ms(int year, int month)
{
	char    text[ISO_TIME_SIZE + 16];
	int64_t sec = 0;

	(void)snprintf(text, sizeof(text), "%04d-%02d-01T00:00:00Z", year, month); /* fits */
	if (!iso_time_parse(str_from(text), &sec))
		abort(); /* the year and month are in range */
	return sec * 1000;
}

static void set_month(struct cost_month *m, int year, int month)
{
	m->year = year;
	m->month = month;
	m->from_ms = month_start_ms(year, month);
	m->to_ms = month == 12 ? month_start_ms(year + 1, 1) : month_start_ms(year, month + 1);
}

bool cost_month_parse(struct str text, struct cost_month *ret)
{
	int64_t year;
	int     month;

	if (text.n != 7 || text.p[4] != '-' || !str_to_int(str_of(text.p, 4), 1970, 9998, &year))
		return false;
	if (text.p[5] < '0' || text.p[5] > '1' || text.p[6] < '0' || text.p[6] > '9')
		return false;
	month = (text.p[5] - '0') * 10 + text.p[6] - '0';
	if (month < 1 || month > 12)
		return false;
	set_month(ret, (int)year, month);
	return true;
}

void cost_month_of(struct wall at, struct cost_month *ret)
{
	char       text[ISO_TIME_SIZE];
	struct str iso = iso_time(wall_sec(at), text);

	if (!cost_month_parse(str_of(iso.p, 7), ret))
		abort(); /* a clock before 1970 */
}

int64_t cost_month_number(const struct cost_month *m)
{
	return m->year * 100 + m->month;
}

void cost_month_before(struct wall now, struct cost_month *ret)
{
	cost_month_of(now, ret);
	if (ret->month == 1)
		set_month(ret, ret->year - 1, 12);
	else
		set_month(ret, ret->year, ret->month - 1);
}

int64_t cost_month_due_ms(const struct cost_month *m)
{
	return m->to_ms + DAY_MS + HOUR_MS + 25 * MINUTE_MS;
}

/* --- one lease --- */

bool cost_report_has(const struct lease *l)
{
	if (!l->start_ms || !l->account_id.n)
		return false;
	if (l->status == LEASE_ACTIVE || l->status == LEASE_FROZEN)
		return true;
	return lease_group(l->status) == LEASE_GROUP_ENDED && l->status != LEASE_PROVISIONING_FAILED;
}

static int64_t midnight_from(int64_t ms)
{
	return (ms + DAY_MS - 1) / DAY_MS * DAY_MS;
}

bool cost_month_days(const struct cost_month *m, int64_t start_ms, int64_t end_ms, int64_t *ret_from_ms,
                     int64_t *ret_to_ms)
{
	int64_t from_ms = midnight_from(start_ms), to_ms = midnight_from(end_ms);

	from_ms = from_ms > m->from_ms ? from_ms : m->from_ms;
	to_ms = to_ms < m->to_ms ? to_ms : m->to_ms;
	if (from_ms >= to_ms)
		return false;
	*ret_from_ms = from_ms;
	*ret_to_ms = to_ms;
	return true;
}

bool cost_report_days(const struct lease *l, const struct cost_month *m, struct wall now, int64_t *ret_from_ms,
                      int64_t *ret_to_ms)
{
	int64_t end_ms = l->end_ms ? l->end_ms : now.ms;

	return cost_report_has(l) && cost_month_days(m, l->start_ms, end_ms, ret_from_ms, ret_to_ms);
}

/* --- the table --- */

enum rc cost_report_add(struct cost_report *r, struct str group, int64_t micro_usd, struct err *e)
{
	struct cost_sum *sum = NULL;

	for (size_t i = 0; i < r->count && !sum; i++)
		if (str_eq(r->sums[i].group, group))
			sum = &r->sums[i];
	if (!sum) {
		if (r->count == REPORT_GROUPS_MAX)
			return err_set(e, RC_TOO_LARGE, "the report has more than %d groups", REPORT_GROUPS_MAX);
		sum = &r->sums[r->count++];
		*sum = (struct cost_sum){ .group = str_dup(r->arena, group) };
	}
	if (__builtin_add_overflow(sum->micro_usd, micro_usd, &sum->micro_usd))
		return err_set(e, RC_TOO_LARGE, "the costs of group '%.*s' are more than can be counted",
		               STR_ARG(group));
	return RC_OK;
}

static int by_group(const void *a, const void *b)
{
	const struct cost_sum *x = a, *y = b;

	if (!x->group.n || !y->group.n)
		return (!x->group.n) - (!y->group.n);
	return str_cmp(x->group, y->group);
}

void csv_add_cell(struct buf *b, struct str text)
{
	bool is_formula = text.n && strchr("=+-@|%\t\r", text.p[0]) && text.p[0];
	bool is_quoted = false;

	for (size_t i = 0; i < text.n; i++)
		is_quoted = is_quoted || (strchr(",\"\r\n", text.p[i]) && text.p[i]);
	buf_add_text(b, is_quoted ? "\"" : "");
	buf_add_text(b, is_formula ? "'" : "");
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"')
			buf_add_char(b, '"');
		buf_add_char(b, text.p[i]);
	}
	buf_add_text(b, is_quoted ? "\"" : "");
}

void csv_add_dollars(struct buf *b, int64_t micro_usd)
{
	uint64_t size = micro_usd < 0 ? 0 - (uint64_t)micro_usd : (uint64_t)micro_usd;
	uint64_t cents = size / MICRO_PER_CENT + (size % MICRO_PER_CENT >= MICRO_PER_CENT / 2);

	buf_addf(b, "%s%llu.%02llu", micro_usd < 0 && cents ? "-" : "", (unsigned long long)(cents / 100),
	         (unsigned long long)(cents % 100));
}

static void add_date(struct buf *b, int64_t ms)
{
	char       text[ISO_TIME_SIZE];
	struct str iso = iso_time(ms / 1000, text);

	buf_add(b, iso.p, 10);
}

void cost_report_write_csv(struct cost_report *r, struct buf *b)
{
	qsort(r->sums, r->count, sizeof(r->sums[0]), by_group);
	buf_add_text(b, "CostReportGroup,StartDate,EndDate,Cost,Currency\n");
	for (size_t i = 0; i < r->count; i++) {
		csv_add_cell(b, r->sums[i].group.n ? r->sums[i].group : STR("No group"));
		buf_add_char(b, ',');
		add_date(b, r->month.from_ms);
		buf_add_char(b, ',');
		add_date(b, r->month.to_ms - DAY_MS);
		buf_add_char(b, ',');
		csv_add_dollars(b, r->sums[i].micro_usd);
		buf_add_text(b, ",USD\n");
	}
}

/* --- asking --- */

static enum rc ask_and_add(const struct cost_report_call *c, struct str account_id, struct str group, int64_t from_ms,
                           int64_t to_ms, struct cost_report *r, struct err *e)
{
	struct cloud_spend spend;
	enum rc            rc;

	if (c->go_on && !c->go_on(c->go_on_arg))
		return err_set(e, RC_UNAVAILABLE, "the report was interrupted");
	if ((rc = c->costs->ops->spend(c->costs, account_id, from_ms, to_ms, &spend, e)))
		return err_wrap(e, rc, "costs of account %.*s", STR_ARG(account_id));
	return cost_report_add(r, group, spend.micro_usd, e);
}

struct reading {
	struct query q;
	struct page  page;
};

static enum rc read_page(struct session *s, void *arg, struct err *e)
{
	struct reading *r = arg;

	return session_query(s, &r->q, &r->page, e);
}

/* --- leases in use --- */

/* As much of each as the report needs, by uuid; in the report's arena. */
struct live {
	struct lease *leases;
	size_t        count, capacity;
};

static int by_uuid(const void *a, const void *b)
{
	const struct lease *x = a, *y = b;

	return str_cmp(x->uuid, y->uuid);
}

static bool is_live(const struct live *live, struct str uuid)
{
	struct lease wanted = { .uuid = uuid };

	return live->count && bsearch(&wanted, live->leases, live->count, sizeof(wanted), by_uuid);
}

static void add_live(struct live *live, const struct lease *l, struct arena *a)
{
	if (live->count == live->capacity) {
		live->capacity = live->capacity ? 2 * live->capacity : PAGE;
		live->leases = mem_resize(live->leases, live->capacity * sizeof(live->leases[0]));
	}
	live->leases[live->count++] = (struct lease){ .uuid = str_dup(a, l->uuid),
		                                      .status = l->status,
		                                      .account_id = str_dup(a, l->account_id),
		                                      .cost_group = str_dup(a, l->cost_group),
		                                      .start_ms = l->start_ms };
}

/* One status; those that were found before are passed over. */
static enum rc read_live(const struct cost_report_call *c, enum lease_status status, struct live *live,
                         struct cost_report *r, struct err *e)
{
	struct reading rd = {
		.q = { .type = &lease_type, .index = LEASE_BY_STATUS, .hash = value_int(status), .limit = PAGE }
	};
	struct live known = *live; /* its order holds while more are added behind */
	enum rc     rc;

	do {
		struct arena a = { 0 };

		rc = store_read(c->store, read_page, &rd, &a, e);
		for (size_t i = 0; !rc && i < rd.page.count; i++) {
			const struct lease *l = page_record(&rd.page, &lease_type, i);

			known.leases = live->leases;
			if (!is_live(&known, l->uuid))
				add_live(live, l, r->arena);
		}
		if (!rc && live->count > REPORT_LEASES_MAX)
			rc = err_set(e, RC_TOO_LARGE, "more than %d leases are in use", REPORT_LEASES_MAX);
		rd.q.cursor = rc ? STR("") : str_dup(r->arena, rd.page.next);
		arena_fini(&a);
	} while (rd.q.cursor.n);
	if (!rc && live->count)
		qsort(live->leases, live->count, sizeof(live->leases[0]), by_uuid);
	return rc;
}

/* Again while that finds more: one that thaws while Active has been read and Frozen not yet is found by the next round. */
static enum rc read_all_live(const struct cost_report_call *c, struct live *live, struct cost_report *r, struct err *e)
{
	static const enum lease_status statuses[] = { LEASE_ACTIVE, LEASE_FROZEN };
	size_t                         before;
	int                            rounds = 0;
	enum rc                        rc = RC_OK;

	do {
		before = live->count;
		for (size_t i = 0; !rc && i < ARRAY_LEN(statuses); i++)
			rc = read_live(c, statuses[i], live, r, e);
	} while (!rc && live->count > before && ++rounds < ROUNDS_MAX);
	return rc;
}

static enum rc add_live_leases(const struct cost_report_call *c, const struct live *live, struct cost_report *r,
                               struct err *e)
{
	int64_t from_ms, to_ms;
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < live->count; i++) {
		const struct lease *l = &live->leases[i];

		if (cost_report_days(l, &c->month, c->now, &from_ms, &to_ms))
			rc = ask_and_add(c, l->account_id, l->cost_group, from_ms, to_ms, r, e);
	}
	return rc;
}

/* --- leases that have ended --- */

static enum rc add_share(const struct cost_report_call *c, const struct cost_share *share, struct cost_report *r,
                         struct err *e)
{
	if (share->is_final)
		return cost_report_add(r, share->cost_group, share->micro_usd, e);
	return ask_and_add(c, share->account_id, share->cost_group, share->from_ms, share->to_ms, r, e);
}

static enum rc add_shares(const struct cost_report_call *c, const struct live *live, struct cost_report *r,
                          struct err *e)
{
	struct reading rd = { .q = { .type = &cost_share_type,
		                     .index = COST_SHARE_BY_MONTH,
		                     .hash = value_int(cost_month_number(&c->month)),
		                     .limit = PAGE } };
	enum rc        rc;

	do {
		struct arena a = { 0 };

		rc = store_read(c->store, read_page, &rd, &a, e);
		for (size_t i = 0; !rc && i < rd.page.count; i++) {
			const struct cost_share *share = page_record(&rd.page, &cost_share_type, i);

			if (!is_live(live, share->lease_uuid))
				rc = add_share(c, share, r, e);
		}
		rd.q.cursor = rc ? STR("") : str_dup(r->arena, rd.page.next);
		arena_fini(&a);
	} while (rd.q.cursor.n);
	return rc;
}

static enum rc add_all(const struct cost_report_call *c, struct cost_report *r, struct err *e)
{
	struct live live = { 0 };
	enum rc     rc = read_all_live(c, &live, r, e);

	if (!rc)
		rc = add_live_leases(c, &live, r, e);
	if (!rc)
		rc = add_shares(c, &live, r, e);
	free(live.leases);
	return rc;
}

enum rc cost_report_make(const struct cost_report_call *c, struct buf *csv, struct err *e)
{
	struct arena        a = { 0 };
	struct cost_report *r = mem_new(struct cost_report);
	enum rc             rc;

	r->month = c->month;
	r->arena = &a;
	rc = add_all(c, r, e);
	if (!rc)
		cost_report_write_csv(r, csv);
	if (!rc && csv->is_full)
		rc = err_set(e, RC_TOO_LARGE, "the report has more than %d bytes", REPORT_BYTES_MAX);
	free(r);
	arena_fini(&a);
	return rc;
}
