/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_report.c - the cost report of a month: by group, as upstream has it, or by owner, template, lease or day.
 *
 * The report has leases that are Active or Frozen, and ended ones unless they never began. Of each, it counts the days
 * of the month whose midnight (UTC) is in the lease: from its start up to, but not including, its end, or now. So the
 * rest of the first day is left out and all of the last day is in, as upstream does it; the statement of a lease
 * (statement.c) is the exact figure. What the account spent on these days counts for the lease's present group.
 *
 * Leases in use are read by status, and their costs are asked for. Ended ones have left a share in each of their months
 * (statement.c): so a report reads only what is in its month, however many leases have ended, and misses none whose
 * record is gone. A share whose statement is final has its cost.
 *
 * Always true: each lease counts once, even if its status changes meanwhile. Leases in use are read again until nothing
 * new is found, because one may be unfrozen between two reads; shares are read after them, and a lease that ends leaves
 * its shares in the same commit. Sums are exact; only the table is rounded.
 */
#include "service/cost/cost_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "domain/ports/cloud.h"
#include "domain/lease.h"
#include "service/cost/statement.h"
#include "service/record/lease_records.h"
#include "store/walk.h"

enum { DAYS_MAX = 31, PAGE = 500, ROUNDS_MAX = 10, MICRO_PER_CENT = 10000, HOUR_MS = 3600000, MINUTE_MS = 60000 };

const char *const cost_report_by_names[COST_BY_COUNT] = { "group", "owner", "template", "lease", "day" };

#define SUM_COLUMNS ",StartDate,EndDate,Cost,Currency\n"
static const char *const headings[COST_BY_COUNT] = {
	[COST_BY_GROUP] = "CostReportGroup" SUM_COLUMNS,
	[COST_BY_OWNER] = "Owner" SUM_COLUMNS,
	[COST_BY_TEMPLATE] = "Template" SUM_COLUMNS,
	[COST_BY_LEASE] =
	        "Lease,Owner,Template,CostReportGroup,Account,StartDate,EndDate,Cost,ProjectedCost,Currency,State\n",
	[COST_BY_DAY] = "Day,Cost,Currency\n",
};

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
	*m = (struct cost_month){ year, month, month_start_ms(year, month),
		                  month == 12 ? month_start_ms(year + 1, 1) : month_start_ms(year, month + 1) };
}

bool cost_month_parse(struct str text, struct cost_month *ret)
{
	int64_t year, month;

	if (text.n != 7 || text.p[4] != '-' || !str_to_int(str_of(text.p, 4), 1970, 9998, &year) ||
	    !str_to_int(str_of(text.p + 5, 2), 1, 12, &month))
		return false;
	set_month(ret, (int)year, (int)month);
	return true;
}

void cost_month_of(struct wall at, struct cost_month *ret)
{
	char       text[ISO_TIME_SIZE];
	struct str iso = iso_time(wall_sec(at), text);

	if (iso.n < 7 || !cost_month_parse(str_of(iso.p, 7), ret))
		set_month(ret, at.ms < 0 ? 1970 : 9998, at.ms < 0 ? 1 : 12); /* the nearest month that has a name */
}

int64_t cost_month_number(const struct cost_month *m)
{
	return m->year * 100 + m->month;
}

void cost_month_before(struct wall now, struct cost_month *ret)
{
	cost_month_of(now, ret);
	set_month(ret, ret->month == 1 ? ret->year - 1 : ret->year, ret->month == 1 ? 12 : ret->month - 1);
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

void csv_add_cells(struct buf *b, const struct str *cells, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		buf_add_csv(b, cells[i]);
		buf_add_char(b, ',');
	}
}

void csv_add_dollars(struct buf *b, int64_t micro_usd)
{
	uint64_t size = micro_usd < 0 ? 0 - (uint64_t)micro_usd : (uint64_t)micro_usd;
	uint64_t cents = size / MICRO_PER_CENT + (size % MICRO_PER_CENT >= MICRO_PER_CENT / 2);

	buf_addf(b, "%s%llu.%02llu", micro_usd < 0 && cents ? "-" : "", (unsigned long long)(cents / 100),
	         (unsigned long long)(cents % 100));
}

void csv_add_days(struct buf *b, int64_t from_ms, int64_t to_ms)
{
	char from[ISO_TIME_SIZE], to[ISO_TIME_SIZE];

	buf_addf(b, "%.10s,%.10s,", iso_time(from_ms / 1000, from).p, iso_time((to_ms - DAY_MS) / 1000, to).p);
}

#define NO_GROUP "No group"

static struct str or_none(struct str text, const char *none)
{
	return text.n ? text : str_from(none);
}

/* By name, those without a group last. */
static void write_csv(struct cost_report *r, enum cost_report_by by, struct buf *b)
{
	qsort(r->sums, r->count, sizeof(r->sums[0]), by_group);
	for (size_t i = 0; i < r->count; i++) {
		struct str group = or_none(r->sums[i].group, by == COST_BY_GROUP ? NO_GROUP : "Unknown");

		csv_add_cells(b, &group, 1);
		csv_add_days(b, r->month.from_ms, r->month.to_ms);
		csv_add_dollars(b, r->sums[i].micro_usd);
		buf_add_text(b, ",USD\n");
	}
}

/* --- asking --- */

/* Leases in use, by uuid; texts in the report's arena. */
struct live {
	struct lease *leases;
	size_t        count, capacity;
	size_t        sorted; /* the first of them; what was found since comes behind */
};

struct making {
	const struct cost_report_call *call;
	struct cost_report            *r;
	struct live                    live;
	struct buf                    *csv;
	int64_t                       *days; /* by day: one for each of the month */
};

/* Whose costs of which days, as a lease that goes on and a share of one that has ended both tell it. */
struct item {
	struct str  uuid, owner, template, account_id, group;
	int64_t     from_ms, to_ms, micro_usd;
	int64_t     more; /* until the month is over, at its present rate */
	const char *state;
};

static bool is_meant(const struct making *m, struct str group)
{
	return !m->call->group.n || str_eq(m->call->group, or_none(group, NO_GROUP));
}

static void write_lease(struct buf *b, const struct item *item)
{
	const struct str cells[] = { item->uuid, or_none(item->owner, "Unknown"), or_none(item->template, "Unknown"),
		                     or_none(item->group, NO_GROUP), item->account_id };

	csv_add_cells(b, cells, ARRAY_LEN(cells));
	csv_add_days(b, item->from_ms, item->to_ms);
	csv_add_dollars(b, item->micro_usd);
	buf_add_char(b, ',');
	csv_add_dollars(b, item->micro_usd + item->more);
	buf_addf(b, ",USD,%s\n", item->state);
}

static enum rc add_item(const struct making *m, const struct item *item, struct err *e)
{
	switch (m->call->by) {
	case COST_BY_OWNER: return cost_report_add(m->r, item->owner, item->micro_usd, e);
	case COST_BY_TEMPLATE: return cost_report_add(m->r, item->template, item->micro_usd, e);
	case COST_BY_LEASE: write_lease(m->csv, item); return RC_OK;
	default: return cost_report_add(m->r, item->group, item->micro_usd, e);
	}
}

static enum rc add_days(const struct making *m, const struct item *item, struct err *e)
{
	struct costs                    *costs = m->call->costs;
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct cloud_bill                bill;
	enum rc rc = costs->ops->itemise(costs, item->account_id, item->from_ms, item->to_ms, &a, &bill, e);

	for (size_t i = 0; !rc && i < bill.count; i++) {
		int64_t day_ms = bill.items[i].day_ms;

		if (day_ms < item->from_ms || day_ms >= item->to_ms)
			rc = err_set(e, RC_CORRUPT, "the bill has a day that was not asked for");
		else
			m->days[(day_ms - m->call->month.from_ms) / DAY_MS] += bill.items[i].micro_usd;
	}
	return rc;
}

static enum rc ask_and_add(const struct making *m, struct item *item, struct err *e)
{
	const struct cost_report_call *c = m->call;
	struct cloud_spend             spend;
	enum rc                        rc;

	if (c->go_on && !c->go_on(c->go_on_arg))
		return err_set(e, RC_UNAVAILABLE, "the report was interrupted");
	if (c->by == COST_BY_DAY)
		rc = add_days(m, item, e);
	else
		rc = c->costs->ops->spend(c->costs, item->account_id, item->from_ms, item->to_ms, &spend, e);
	if (rc || c->by == COST_BY_DAY)
		return err_wrap(e, rc, "costs of account %.*s", STR_ARG(item->account_id));
	item->micro_usd = spend.micro_usd;
	return add_item(m, item, e);
}

/* --- leases in use --- */

static int by_uuid(const void *a, const void *b)
{
	const struct lease *x = a, *y = b;

	return str_cmp(x->uuid, y->uuid);
}

static bool is_live(const struct live *live, struct str uuid)
{
	struct lease wanted = { .uuid = uuid };

	return live->sorted && bsearch(&wanted, live->leases, live->sorted, sizeof(wanted), by_uuid);
}

/* Those that were found before are passed over. */
static enum rc add_live(const struct page *page, struct arena *a UNUSED, void *arg, struct err *e)
{
	struct making *m = arg;
	struct live   *live = &m->live;

	for (size_t i = 0; i < page->count; i++) {
		const struct lease *l = page_record(page, &lease_type, i);

		if (is_live(live, l->uuid))
			continue;
		if (live->count == live->capacity) {
			live->capacity = live->capacity ? 2 * live->capacity : PAGE;
			live->leases = mem_resize(live->leases, live->capacity * sizeof(live->leases[0]));
		}
		live->leases[live->count++] = (struct lease){ .uuid = str_dup(m->r->arena, l->uuid),
			                                      .status = l->status,
			                                      .user_email = str_dup(m->r->arena, l->user_email),
			                                      .template_name = str_dup(m->r->arena, l->template_name),
			                                      .account_id = str_dup(m->r->arena, l->account_id),
			                                      .cost_group = str_dup(m->r->arena, l->cost_group),
			                                      .start_ms = l->start_ms,
			                                      .expires_ms = l->expires_ms,
			                                      .cost = l->cost,
			                                      .cost_at_ms = l->cost_at_ms,
			                                      .rate_from_ms = l->rate_from_ms,
			                                      .rate_from_cost = l->rate_from_cost };
	}
	return live->count > REPORT_LEASES_MAX
	               ? err_set(e, RC_TOO_LARGE, "more than %d leases are in use", REPORT_LEASES_MAX)
	               : RC_OK;
}

/* Again while that finds more: one that thaws after Active and before Frozen was read is found by the next round. */
static enum rc read_live(struct making *m, struct err *e)
{
	static const enum lease_status statuses[] = { LEASE_ACTIVE, LEASE_FROZEN };
	size_t                         before;
	int                            rounds = 0;
	enum rc                        rc = RC_OK;

	do {
		before = m->live.count;
		for (size_t i = 0; !rc && i < ARRAY_LEN(statuses); i++) {
			struct query q = query_of(&lease_type, LEASE_BY_STATUS, value_int(statuses[i]), PAGE);

			rc = store_read_pages(m->call->store, &q, add_live, m, e);
			if (m->live.count)
				qsort(m->live.leases, m->live.count, sizeof(m->live.leases[0]), by_uuid);
			m->live.sorted = m->live.count;
		}
	} while (!rc && m->live.count > before && ++rounds < ROUNDS_MAX);
	return rc;
}

/* --- leases that have ended --- */

static enum rc add_shares(const struct page *page, struct arena *a UNUSED, void *arg, struct err *e)
{
	const struct making *m = arg;
	enum rc              rc = RC_OK;

	for (size_t i = 0; !rc && i < page->count; i++) {
		const struct cost_share *share = page_record(page, &cost_share_type, i);
		struct item              item;

		if (is_live(&m->live, share->lease_uuid) || !is_meant(m, share->cost_group))
			continue;
		item = (struct item){ .uuid = share->lease_uuid,
			              .owner = share->user_email,
			              .template = share->template_name,
			              .account_id = share->account_id,
			              .group = share->cost_group,
			              .from_ms = share->from_ms,
			              .to_ms = share->to_ms,
			              .micro_usd = share->micro_usd,
			              .state = share->is_final ? "final" : "ended" };
		rc = share->is_final && m->call->by != COST_BY_DAY ? add_item(m, &item, e) : ask_and_add(m, &item, e);
	}
	return rc;
}

/* What it will spend from the last figures on, until it ends or the month does. */
static int64_t more_of(const struct lease *l, const struct cost_month *m, struct wall now)
{
	int64_t               from_ms = l->cost_at_ms > m->from_ms ? l->cost_at_ms : m->from_ms;
	int64_t               to_ms = l->expires_ms && l->expires_ms < m->to_ms ? l->expires_ms : m->to_ms;
	struct lease_forecast f;

	lease_forecast(l, &f);
	if (now.ms >= m->to_ms || from_ms >= to_ms)
		return 0;
	return (int64_t)((double)f.per_hour * (double)(to_ms - from_ms) / HOUR_MS);
}

static enum rc add_all(struct making *m, struct err *e)
{
	const struct cost_report_call *c = m->call;
	struct value                   number = value_int(cost_month_number(&c->month));
	struct query                   q = query_of(&cost_share_type, COST_SHARE_BY_MONTH, number, PAGE);
	enum rc                        rc = read_live(m, e);

	for (size_t i = 0; !rc && i < m->live.count; i++) {
		const struct lease *l = &m->live.leases[i];
		struct item         item = { .uuid = l->uuid,
			                     .owner = l->user_email,
			                     .template = l->template_name,
			                     .account_id = l->account_id,
			                     .group = l->cost_group,
			                     .more = more_of(l, &c->month, c->now),
			                     .state = "running" };

		if (is_meant(m, l->cost_group) && cost_report_days(l, &c->month, c->now, &item.from_ms, &item.to_ms))
			rc = ask_and_add(m, &item, e);
	}
	return rc ? rc : store_read_pages(c->store, &q, add_shares, m, e);
}

static void write_days(const struct making *m)
{
	for (int64_t ms = m->call->month.from_ms; ms < m->call->month.to_ms && ms <= m->call->now.ms; ms += DAY_MS) {
		char text[ISO_TIME_SIZE];

		buf_addf(m->csv, "%.10s,", iso_time(ms / 1000, text).p);
		csv_add_dollars(m->csv, m->days[(ms - m->call->month.from_ms) / DAY_MS]);
		buf_add_text(m->csv, ",USD\n");
	}
}

enum rc cost_report_make(const struct cost_report_call *c, struct buf *csv, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	int64_t                          days[DAYS_MAX] = { 0 };
	struct making                    m = { .call = c, .r = mem_new(struct cost_report), .csv = csv, .days = days };
	enum rc                          rc;

	buf_add_text(csv, headings[c->by]);
	m.r->month = c->month;
	m.r->arena = &a;
	rc = add_all(&m, e);
	if (!rc && c->by == COST_BY_DAY)
		write_days(&m);
	else if (!rc)
		write_csv(m.r, c->by, csv);
	if (!rc && csv->is_full)
		rc = err_set(e, RC_TOO_LARGE, "the report has more than %d bytes", REPORT_BYTES_MAX);
	free(m.live.leases);
	free(m.r);
	return rc;
}
