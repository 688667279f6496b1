/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost_report.c - the costs of a month and of a lease, against figures that were computed by hand. */
#include "test.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "domain/account.h"
#include "domain/ports/cloud.h"
#include "domain/lease.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "kernel_rig.h"
#include "service/cost/cost_report.h"
#include "service/record/lease_records.h"
#include "service/cost/statement.h"
#include "store/session.h"

enum { HOUR = 3600000, ACCOUNTS = 4 };
#define UUID "9f8b7c6d-1111-4222-8333-000000000001"

static int64_t at(const char *text)
{
	int64_t sec = 0;

	CHECK(iso_time_parse(str_from(text), &sec));
	return sec * 1000;
}

static struct cost_month month(const char *text)
{
	struct cost_month m;

	CHECK(cost_month_parse(str_from(text), &m));
	return m;
}

/* --- months --- */

TEST(months_are_read_and_counted)
{
	static const char *const bad[] = { "",        "2026",    "2026-1",  "2026-00",  "2026-13", "2026-20",
		                           "2026/10", "1969-12", "2026-1x", "2026-10 ", "+026-10", "9999-01" };
	struct cost_month        m = month("2026-10");

	CHECK(m.year == 2026 && m.month == 10);
	CHECK(m.from_ms == at("2026-10-01T00:00:00Z") && m.to_ms == at("2026-11-01T00:00:00Z"));
	CHECK(cost_month_due_ms(&m) == at("2026-11-02T01:25:00Z"));
	m = month("2026-12");
	CHECK(m.to_ms == at("2027-01-01T00:00:00Z"));
	m = month("2028-02");
	CHECK(m.to_ms - m.from_ms == 29 * (int64_t)DAY_MS);
	cost_month_before((struct wall){ at("2027-01-02T01:25:00Z") }, &m);
	CHECK(m.year == 2026 && m.month == 12);
	cost_month_before((struct wall){ at("2026-03-31T23:59:59Z") }, &m);
	CHECK(m.year == 2026 && m.month == 2);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CASE(bad[i]);
		CHECK(!cost_month_parse(str_from(bad[i]), &m));
	}
}

/* --- days --- */

TEST(a_day_counts_when_its_midnight_is_in_the_lease)
{
	static const struct {
		const char *label, *start, *end;
		int         first, days; /* in October; 0 days: none */
	} rows[] = {
		{ "within", "2026-10-05T10:00:00Z", "2026-10-08T09:00:00Z", 6, 3 },
		{ "one day without a midnight", "2026-10-05T10:00:00Z", "2026-10-05T20:00:00Z", 0, 0 },
		{ "begins at midnight", "2026-10-05T00:00:00Z", "2026-10-05T00:00:01Z", 5, 1 },
		{ "ends at midnight", "2026-10-05T10:00:00Z", "2026-10-06T00:00:00Z", 0, 0 },
		{ "ends after midnight", "2026-10-05T10:00:00Z", "2026-10-06T00:00:01Z", 6, 1 },
		{ "from the month before", "2026-09-20T10:00:00Z", "2026-10-02T10:00:00Z", 1, 2 },
		{ "into the month after", "2026-10-30T10:00:00Z", "2026-11-20T10:00:00Z", 31, 1 },
		{ "all of it", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", 1, 31 },
		{ "before", "2026-09-01T00:00:00Z", "2026-09-30T23:59:59Z", 0, 0 },
		{ "over when it begins", "2026-09-01T00:00:00Z", "2026-10-01T00:00:00Z", 0, 0 },
		{ "after", "2026-11-01T00:00:00Z", "2026-11-05T00:00:00Z", 0, 0 },
		{ "still there on the 10th", "2026-10-07T10:00:00Z", NULL, 8, 3 },
	};
	struct cost_month m = month("2026-10");
	struct wall       now = { at("2026-10-10T12:00:00Z") };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct lease l = { .status = rows[i].end ? LEASE_EXPIRED : LEASE_ACTIVE,
			           .account_id = STR("111122223333"),
			           .start_ms = at(rows[i].start),
			           .end_ms = rows[i].end ? at(rows[i].end) : 0 };
		int64_t      from = 0, to = 0;

		CASE(rows[i].label);
		CHECK(cost_report_days(&l, &m, now, &from, &to) == (rows[i].days > 0));
		if (rows[i].days)
			CHECK(from == m.from_ms + (rows[i].first - 1) * (int64_t)DAY_MS &&
			      to - from == rows[i].days * (int64_t)DAY_MS);
	}
}

TEST(leases_that_never_began_are_not_reported)
{
	struct cost_month m = month("2026-10");
	struct wall       now = { m.to_ms };
	int64_t           from, to;

	for (int i = 0; i < LEASE_STATUS_COUNT; i++) {
		struct lease l = { .status = (enum lease_status)i,
			           .account_id = STR("111122223333"),
			           .start_ms = m.from_ms,
			           .end_ms = m.to_ms };
		bool         is_reported = i != LEASE_PENDING_APPROVAL && i != LEASE_APPROVAL_DENIED &&
		                   i != LEASE_PROVISIONING && i != LEASE_PROVISIONING_FAILED;

		CASE(lease_status_names[i]);
		CHECK(cost_report_days(&l, &m, now, &from, &to) == is_reported);
		l.start_ms = 0;
		CHECK(!cost_report_days(&l, &m, now, &from, &to));
	}
}

/* --- the table --- */

TEST(the_table_is_safe_for_spreadsheets)
{
	static const struct {
		const char *text, *cell;
	} rows[] = {
		{ "alpha", "alpha" },    { "a,b", "\"a,b\"" },   { "say \"x\"", "\"say \"\"x\"\"\"" },
		{ "=1+1", "'=1+1" },     { "+1", "'+1" },        { "-1", "'-1" },
		{ "@x", "'@x" },         { "|x", "'|x" },        { "%x", "'%x" },
		{ "=a,b", "\"'=a,b\"" }, { "a=b", "a=b" },       { "", "" },
		{ "\tx", "'\tx" },       { "a\nb", "\"a\nb\"" },
	};
	static const struct {
		int64_t     micro;
		const char *dollars;
	} sums[] = {
		{ 0, "0.00" },
		{ 4999, "0.00" },
		{ 5000, "0.01" },
		{ 12345678, "12.35" },
		{ 12344999, "12.34" },
		{ -5000, "-0.01" },
		{ -4999, "0.00" },
		{ 1000000, "1.00" },
		{ 999995000, "1000.00" },
		{ INT64_MAX, "9223372036854.78" },
		{ INT64_MIN, "-9223372036854.78" },
	};
	struct buf b;

	buf_init(&b, 1000);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str cell = str_from(rows[i].text);

		buf_reset(&b);
		csv_add_cells(&b, &cell, 1);
		CASE(rows[i].text);
		CHECK(b.n > 0 && b.p[--b.n] == ',' && str_eq(buf_str(&b), str_from(rows[i].cell)));
	}
	for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
		buf_reset(&b);
		csv_add_dollars(&b, sums[i].micro);
		CASE(sums[i].dollars);
		CHECK(str_eq(buf_str(&b), str_from(sums[i].dollars)));
	}
	buf_fini(&b);
}

TEST(groups_and_sums_have_limits)
{
	struct arena        a = { 0 };
	struct cost_report *r = calloc(1, sizeof(*r));
	struct err          e = { 0 };

	r->arena = &a;
	CHECK(cost_report_add(r, STR("a"), INT64_MAX, &e) == RC_OK);
	CHECK(cost_report_add(r, STR("a"), 1, &e) == RC_TOO_LARGE);
	for (int i = 1; i < REPORT_GROUPS_MAX; i++)
		CHECK(cost_report_add(r, str_format(&a, "g%d", i), 1, &e) == RC_OK);
	CHECK(cost_report_add(r, STR("g1"), 1, &e) == RC_OK);
	CHECK(cost_report_add(r, STR("one more"), 1, &e) == RC_TOO_LARGE);
	free(r);
	arena_fini(&a);
}

static void check_str(struct str have, const char *want)
{
	if (!str_eq(have, str_from(want)))
		print_error("%.*s\n", STR_ARG(have));
	CHECK(str_eq(have, str_from(want)));
}

/* --- a cloud with prices: so many dollars a day for each account, from the first account on 1, 2, 3, 4 --- */

struct prices {
	struct costs base;
	int          calls;
	int          failures; /* so many calls fail first */
	int64_t      extra;    /* comes later: added to every answer, or to each day */
	int64_t      known_until_ms;
};

static enum rc spend(struct costs *c, struct str account_id, int64_t from_ms, int64_t to_ms, struct cloud_spend *ret,
                     struct err *e)
{
	struct prices *p = (struct prices *)c;
	int64_t        dollars = account_id.p[account_id.n - 1] - '0';

	p->calls++;
	if (p->failures && p->failures--)
		return err_set(e, RC_UNAVAILABLE, "no prices today");
	CHECK(from_ms % DAY_MS == 0 && to_ms % DAY_MS == 0 && from_ms < to_ms);
	*ret = (struct cloud_spend){ .micro_usd = dollars * 1000000 * ((to_ms - from_ms) / DAY_MS) + p->extra,
		                     .complete_until_ms = to_ms };
	return RC_OK;
}

/* Each day: a fifth for storage, the rest for computing; what comes late is of a service whose name is a formula. */
static enum rc itemise(struct costs *c, struct str account_id, int64_t from_ms, int64_t to_ms, struct arena *a,
                       struct cloud_bill *ret, struct err *e)
{
	struct prices     *p = (struct prices *)c;
	struct cloud_spend sum;
	enum rc            rc = spend(c, account_id, from_ms, to_ms, &sum, e);

	if (rc)
		return rc;
	*ret = (struct cloud_bill){ .items = arena_alloc(a, (size_t)((to_ms - from_ms) / DAY_MS) * 3 *
		                                                    sizeof(struct cloud_cost)) };
	for (int64_t day = from_ms; day < to_ms; day += DAY_MS) {
		int64_t dollars = account_id.p[account_id.n - 1] - '0';

		ret->items[ret->count++] = (struct cloud_cost){ STR("Storage"), day, dollars * 200000 };
		ret->items[ret->count++] = (struct cloud_cost){ STR("Compute"), day, dollars * 800000 };
		if (p->extra)
			ret->items[ret->count++] = (struct cloud_cost){ STR("=Late, \"big\""), day, p->extra };
		ret->spend.micro_usd += dollars * 1000000 + p->extra;
	}
	ret->spend.complete_until_ms = p->known_until_ms ? p->known_until_ms : to_ms;
	return RC_OK;
}

static const struct costs_ops prices_ops = { .spend = spend, .itemise = itemise };

static struct lease new_lease(const char *uuid, enum lease_status status, const char *account, const char *group,
                              const char *start, const char *end)
{
	return (struct lease){ .uuid = str_from(uuid),
		               .user_email = STR("A@example.org"),
		               .user_key = STR("a@example.org"),
		               .status = status,
		               .template_uuid = STR("9f8b7c6d-1111-4222-8333-000000000000"),
		               .template_name = STR("t"),
		               .created_by = STR("a@example.org"),
		               .approved_by = STR("m@example.org"),
		               .account_id = str_from(account),
		               .cost_group = str_from(group),
		               .start_ms = at(start),
		               .last_checked_ms = at(start),
		               .end_ms = end ? at(end) : 0,
		               .ttl_sec = end ? at(end) / 1000 + 1 : 0,
		               .created_ms = at(start),
		               .edited_ms = at(start) };
}

/* As it is when it has ended: with its statement. */
static enum rc add_lease(struct session *s, void *arg, struct err *e)
{
	session_add(s, &lease_type, arg);
	return statement_open(s, arg, e);
}

static enum rc remove_lease(struct session *s, void *arg, struct err *e)
{
	struct lease lease;
	enum rc      rc = session_get(s, &lease_type, STR(UUID), &lease, e);

	(void)arg;
	if (!rc)
		session_delete(s, &lease_type, lease.uuid);
	return rc;
}

static void add(struct kernel_rig *rig, struct lease lease)
{
	rig_run(rig, add_lease, &lease);
}

static void check_report_by(struct kernel_rig *rig, struct prices *p, enum cost_report_by by, const char *wanted)
{
	struct cost_report_call c = {
		.store = rig->store, .costs = &p->base, .month = month("2026-10"), .now = { at("2026-10-20T12:00:00Z") }
	};
	struct err e = { 0 };
	struct buf b;

	c.by = by;
	buf_init(&b, REPORT_BYTES_MAX);
	CHECK(cost_report_make(&c, &b, &e) == RC_OK);
	if (!str_eq(buf_str(&b), str_from(wanted)))
		print_error("%s\n", b.p);
	CHECK(str_eq(buf_str(&b), str_from(wanted)));
	buf_fini(&b);
}

static void check_report(struct kernel_rig *rig, struct prices *p, const char *wanted)
{
	check_report_by(rig, p, COST_BY_GROUP, wanted);
}

TEST(a_month_is_what_was_computed_by_hand)
{
	struct kernel_rig rig = { 0 };
	struct prices     p = { .base = { &prices_ops } };

	rig_open(&rig);
	check_report(&rig, &p, "CostReportGroup,StartDate,EndDate,Cost,Currency\n");
	/* beta: midnights of the 6th, 7th, 8th at $1; and, from the account at $2, of the 19th and 20th: $7 */
	add(&rig, new_lease("9f8b7c6d-1111-4222-8333-000000000001", LEASE_EXPIRED, "111122223331", "beta",
	                    "2026-10-05T10:00:00Z", "2026-10-08T09:00:00Z"));
	add(&rig, new_lease("9f8b7c6d-1111-4222-8333-000000000002", LEASE_ACTIVE, "111122223332", "beta",
	                    "2026-10-18T10:00:00Z", NULL));
	/* no group: the 1st and the 2nd at $3 */
	add(&rig, new_lease("9f8b7c6d-1111-4222-8333-000000000003", LEASE_MANUALLY_TERMINATED, "111122223333", "",
	                    "2026-09-20T10:00:00Z", "2026-10-02T10:00:00Z"));
	/* a formula: one day at $4; frozen */
	add(&rig, new_lease("9f8b7c6d-1111-4222-8333-000000000004", LEASE_FROZEN, "111122223334", "=alpha",
	                    "2026-10-19T10:00:00Z", NULL));
	/* not in October */
	add(&rig, new_lease("9f8b7c6d-1111-4222-8333-000000000005", LEASE_EJECTED, "111122223331", "gamma",
	                    "2026-09-20T10:00:00Z", "2026-09-30T10:00:00Z"));
	check_report(&rig, &p,
	             "CostReportGroup,StartDate,EndDate,Cost,Currency\n"
	             "'=alpha,2026-10-01,2026-10-31,4.00,USD\n"
	             "beta,2026-10-01,2026-10-31,7.00,USD\n"
	             "No group,2026-10-01,2026-10-31,6.00,USD\n");
	rig_close(&rig);
}

TEST(a_month_can_be_told_by_owner_template_lease_and_day)
{
	struct kernel_rig rig = { 0 };
	struct prices     p = { .base = { &prices_ops } };
	struct lease running = new_lease("9f8b7c6d-1111-4222-8333-000000000002", LEASE_ACTIVE, "111122223332", "beta",
	                                 "2026-10-18T10:00:00Z", NULL);

	/* 24 dollars in its first day, and 36 hours are left of it: another dollar for each */
	running.cost = 24000000;
	running.cost_at_ms = at("2026-10-19T10:00:00Z");
	running.expires_ms = at("2026-10-20T22:00:00Z");
	rig_open(&rig);
	add(&rig, new_lease("9f8b7c6d-1111-4222-8333-000000000001", LEASE_EXPIRED, "111122223331", "",
	                    "2026-10-05T10:00:00Z", "2026-10-08T09:00:00Z"));
	add(&rig, running);
	check_report_by(&rig, &p, COST_BY_OWNER,
	                "Owner,StartDate,EndDate,Cost,Currency\nA@example.org,2026-10-01,2026-10-31,7.00,USD\n");
	check_report_by(&rig, &p, COST_BY_TEMPLATE,
	                "Template,StartDate,EndDate,Cost,Currency\nt,2026-10-01,2026-10-31,7.00,USD\n");
	check_report_by(
	        &rig, &p, COST_BY_LEASE,
	        "Lease,Owner,Template,CostReportGroup,Account,StartDate,EndDate,Cost,ProjectedCost,Currency,State\n"
	        "9f8b7c6d-1111-4222-8333-000000000002,A@example.org,t,beta,111122223332,2026-10-19,2026-10-20,4.00,40.00,USD,running\n"
	        "9f8b7c6d-1111-4222-8333-000000000001,A@example.org,t,No group,111122223331,2026-10-06,2026-10-08,3.00,3.00,USD,ended\n");
	check_report_by(&rig, &p, COST_BY_DAY,
	                "Day,Cost,Currency\n2026-10-01,0.00,USD\n2026-10-02,0.00,USD\n2026-10-03,0.00,USD\n"
	                "2026-10-04,0.00,USD\n2026-10-05,0.00,USD\n2026-10-06,1.00,USD\n2026-10-07,1.00,USD\n"
	                "2026-10-08,1.00,USD\n2026-10-09,0.00,USD\n2026-10-10,0.00,USD\n2026-10-11,0.00,USD\n"
	                "2026-10-12,0.00,USD\n2026-10-13,0.00,USD\n2026-10-14,0.00,USD\n2026-10-15,0.00,USD\n"
	                "2026-10-16,0.00,USD\n2026-10-17,0.00,USD\n2026-10-18,0.00,USD\n2026-10-19,2.00,USD\n"
	                "2026-10-20,2.00,USD\n");
	rig_close(&rig);
}

TEST(more_leases_than_a_page_count_once_each)
{
	enum { LEASES = 1100 };
	struct kernel_rig rig = { 0 };
	struct prices     p = { .base = { &prices_ops } };

	rig_open(&rig);
	for (int i = 0; i < LEASES; i++)
		add(&rig, new_lease(str_format(&rig.arena, "9f8b7c6d-1111-4222-8333-%012d", i).p, LEASE_EXPIRED,
		                    "111122223331", "g", "2026-10-05T10:00:00Z", "2026-10-06T09:00:00Z"));
	check_report(&rig, &p,
	             "CostReportGroup,StartDate,EndDate,Cost,Currency\ng,2026-10-01,2026-10-31,1100.00,USD\n");
	CHECK(p.calls == LEASES);
	rig_close(&rig);
}

/* --- statements --- */

TEST(the_window_has_eight_hours_on_both_sides_and_whole_days)
{
	static const struct {
		const char *start, *end, *from, *to;
	} rows[] = {
		{ "2026-10-05T10:00:00Z", "2026-10-08T09:00:00Z", "2026-10-05T00:00:00Z", "2026-10-09T00:00:00Z" },
		{ "2026-10-05T07:59:59Z", "2026-10-08T16:00:00Z", "2026-10-04T00:00:00Z", "2026-10-09T00:00:00Z" },
		{ "2026-10-05T08:00:00Z", "2026-10-08T16:00:01Z", "2026-10-05T00:00:00Z", "2026-10-10T00:00:00Z" },
		/* the clock was set back meanwhile */
		{ "2026-10-08T10:00:00Z", "2026-10-05T09:00:00Z", "2026-10-08T00:00:00Z", "2026-10-09T00:00:00Z" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t from, to;

		statement_window(at(rows[i].start), at(rows[i].end), &from, &to);
		CASE(rows[i].start);
		CHECK(from == at(rows[i].from) && to == at(rows[i].to));
	}
}

/* As they were stored when a lease could end before it began. */
TEST(a_window_of_less_than_no_days_costs_nothing)
{
	struct prices           p = { .base = { &prices_ops } };
	struct statement_asking how = { .costs = &p.base };
	struct arena            a = { 0 };
	struct statement        st = { .uuid = STR(UUID),
		                       .account_id = STR("111122223331"),
		                       .from_ms = at("2026-10-08T00:00:00Z"),
		                       .to_ms = at("2026-10-06T00:00:00Z") };
	int64_t                *days;

	CHECK(statement_ask(&st, &how, &a, &days, NULL) == RC_OK);
	CHECK(st.total == 0 && p.calls == 0 && str_eq(st.rows, STR("[]")) && str_eq(st.days, STR("[]")));
	arena_fini(&a);
}

/* Forty hours between two leases keep their windows apart; 39 do not always. */
TEST(forty_hours_keep_windows_apart)
{
	bool has_overlap = false;

	for (int hour = 0; hour < 24; hour++) {
		int64_t end = at("2026-10-08T00:00:00Z") + hour * (int64_t)HOUR, from, to, next_from, next_to;

		statement_window(end - DAY_MS, end, &from, &to);
		statement_window(end + 40 * (int64_t)HOUR, end + 90 * (int64_t)HOUR, &next_from, &next_to);
		CHECK(next_from >= to);
		statement_window(end + 38 * (int64_t)HOUR, end + 90 * (int64_t)HOUR, &next_from, &next_to);
		has_overlap = has_overlap || next_from < to;
	}
	CHECK(has_overlap);
}

TEST(a_final_statement_that_says_something_else_is_amended)
{
	static const struct {
		enum statement_state now, wanted;
		bool                 is_same;
		int                  next; /* -1: stays */
	} rows[] = {
		{ STATEMENT_PENDING, STATEMENT_PROVISIONAL, false, STATEMENT_PROVISIONAL },
		{ STATEMENT_PENDING, STATEMENT_FINAL, false, STATEMENT_FINAL },
		{ STATEMENT_PROVISIONAL, STATEMENT_PROVISIONAL, true, -1 },
		{ STATEMENT_PROVISIONAL, STATEMENT_PROVISIONAL, false, STATEMENT_PROVISIONAL },
		{ STATEMENT_PROVISIONAL, STATEMENT_FINAL, true, STATEMENT_FINAL },
		{ STATEMENT_PROVISIONAL, STATEMENT_FINAL, false, STATEMENT_FINAL },
		{ STATEMENT_FINAL, STATEMENT_FINAL, true, -1 },
		{ STATEMENT_FINAL, STATEMENT_FINAL, false, STATEMENT_AMENDED },
		{ STATEMENT_FINAL, STATEMENT_PROVISIONAL, false, -1 },
		{ STATEMENT_AMENDED, STATEMENT_FINAL, true, -1 },
		{ STATEMENT_AMENDED, STATEMENT_FINAL, false, STATEMENT_AMENDED },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum statement_state next = STATEMENT_PENDING;

		CHECK(statement_next(rows[i].now, rows[i].wanted, rows[i].is_same, &next) == (rows[i].next >= 0));
		CHECK(rows[i].next < 0 || (int)next == rows[i].next);
	}
}

struct rig {
	struct kernel_rig base;
	struct prices     prices;
	struct reports    reports;
	struct queue      queues[1];
	struct route      routes[2];
};

static void open_reports(struct rig *r)
{
	*r = (struct rig){ .prices = { .base = { &prices_ops } } };
	r->queues[0] = reports_queue(&r->reports);
	r->routes[0] = (struct route){ EVENT_STATEMENT_DUE, REPORTS_QUEUE };
	r->routes[1] = (struct route){ EVENT_COST_REPORT_DUE, REPORTS_QUEUE };
	r->base.options = (struct kernel_options){
		.queues = r->queues, .queue_count = 1, .routes = r->routes, .route_count = ARRAY_LEN(r->routes)
	};
	rig_open(&r->base);
	r->reports.store = r->base.store;
	r->reports.costs = &r->prices.base;
}

static struct statement statement(struct rig *r)
{
	struct statement st = { .uuid = STR(UUID) };

	rig_run(&r->base, statement_get, &st);
	return st;
}

static struct event_list events_of(struct rig *r, const char *type)
{
	struct event_list l = { .type = str_from(type), .limit = 100 };

	rig_run(&r->base, event_list, &l);
	return l;
}

static void end_lease(struct rig *r)
{
	r->base.clock.test_ms = at("2026-10-08T09:00:00Z");
	add(&r->base,
	    new_lease(UUID, LEASE_EXPIRED, "111122223332", "beta", "2026-10-05T10:00:00Z", "2026-10-08T09:00:00Z"));
}

TEST(a_statement_is_provisional_after_a_day_and_final_after_some)
{
	struct rig        r;
	struct statement  st;
	struct event_list told;
	struct str        hash;

	open_reports(&r);
	end_lease(&r);
	st = statement(&r);
	CHECK(st.state == STATEMENT_PENDING && st.from_ms == at("2026-10-05T00:00:00Z") && r.prices.calls == 0);
	rig_pass(&r.base, STATEMENT_PROVISIONAL_MS - 1);
	CHECK(statement(&r).state == STATEMENT_PENDING);
	rig_pass(&r.base, 1 + STATEMENT_SPREAD_MS);
	st = statement(&r);
	/* the 5th, 6th, 7th and 8th at $2 */
	CHECK(st.state == STATEMENT_PROVISIONAL && st.total == 8000000 && r.prices.calls == 1);
	check_str(st.rows, "[{\"service\":\"Compute\",\"usd\":6.4},{\"service\":\"Storage\",\"usd\":1.6}]");
	CHECK(strncmp(st.days.p, "[{\"from\":\"2026-10-05\",\"days\":1,\"usd\":2},", 40) == 0 && st.hash.n == 64);
	CHECK(st.complete_until_ms == st.to_ms);
	hash = str_dup(&r.base.arena, st.hash);

	r.prices.extra = 500000; /* what came late */
	rig_pass(&r.base, STATEMENT_FINAL_MS - STATEMENT_PROVISIONAL_MS + STATEMENT_SPREAD_MS);
	st = statement(&r);
	CHECK(st.state == STATEMENT_FINAL && st.total == 10000000 && !str_eq(hash, st.hash));
	told = events_of(&r, EVENT_COSTS_GENERATED);
	CHECK(told.count == 2);
	CHECK(strstr(told.events[0].detail.p, "\"totalCost\":8,") &&
	      strstr(told.events[0].detail.p, "\"state\":\"provisional\""));
	CHECK(strstr(told.events[1].detail.p, "\"totalCost\":10,") &&
	      strstr(told.events[1].detail.p, "\"state\":\"final\""));
	CHECK(strstr(told.events[1].detail.p,
	             "\"startDate\":\"2026-10-05T00:00:00Z\",\"endDate\":\"2026-10-09T00:00:00Z\""));
	rig_close(&r.base);
}

/* Compute 6.4, the late one 2, Storage 1.6: not by name, and what a spreadsheet would compute is text. */
TEST(a_statement_is_a_table_with_the_dearest_service_first)
{
	struct rig       r;
	struct statement st;
	struct buf       b;

	open_reports(&r);
	end_lease(&r);
	r.prices.extra = 500000;
	rig_pass(&r.base, STATEMENT_FINAL_MS + STATEMENT_SPREAD_MS);
	st = statement(&r);
	buf_init(&b, 10000);
	statement_write_csv(&st, &b);
	check_str(
	        buf_str(&b),
	        "Lease,Account,Service,StartDate,EndDate,Cost,Currency,State,CompleteUntil\n" UUID
	        ",111122223332,Compute,2026-10-05,2026-10-08,6.400000,USD,final,2026-10-09T00:00:00Z\n" UUID
	        ",111122223332,\"'=Late, \"\"big\"\"\",2026-10-05,2026-10-08,2.000000,USD,final,2026-10-09T00:00:00Z\n" UUID
	        ",111122223332,Storage,2026-10-05,2026-10-08,1.600000,USD,final,2026-10-09T00:00:00Z\n");
	buf_fini(&b);
	rig_close(&r.base);
}

TEST(a_statement_is_not_final_before_its_figures_are_there)
{
	struct rig r;

	open_reports(&r);
	end_lease(&r);
	r.prices.known_until_ms = at("2026-10-08T12:00:00Z"); /* the window ends at midnight */
	rig_pass(&r.base, STATEMENT_FINAL_MS + STATEMENT_SPREAD_MS);
	CHECK(statement(&r).state == STATEMENT_PROVISIONAL);
	CHECK(statement(&r).complete_until_ms == at("2026-10-08T12:00:00Z"));
	CASE("it looks again, and tells nothing while nothing changes");
	rig_pass(&r.base, STATEMENT_AGAIN_MS);
	CHECK(statement(&r).state == STATEMENT_PROVISIONAL && r.prices.calls >= 3);
	CHECK(events_of(&r, EVENT_COSTS_GENERATED).count == 1);
	r.prices.known_until_ms = 0;
	rig_pass(&r.base, STATEMENT_AGAIN_MS);
	CHECK(statement(&r).state == STATEMENT_FINAL);
	rig_close(&r.base);
}

TEST(a_cloud_that_never_tells_all_does_not_keep_a_statement_open_for_ever)
{
	struct rig r;

	open_reports(&r);
	end_lease(&r);
	r.prices.known_until_ms = at("2026-10-08T12:00:00Z");
	rig_pass(&r.base, STATEMENT_PATIENCE_MS - STATEMENT_AGAIN_MS);
	CHECK(statement(&r).state == STATEMENT_PROVISIONAL);
	rig_pass(&r.base, 2 * STATEMENT_AGAIN_MS);
	CHECK(statement(&r).state == STATEMENT_FINAL);
	rig_close(&r.base);
}

struct rest {
	struct str account_id;
	int64_t    clean_ms;
};

static enum rc end_rest(struct session *s, void *arg, struct err *e)
{
	struct rest *rest = arg;

	return statement_finalise(s, rest->account_id, rest->clean_ms, e);
}

TEST(the_end_of_the_rest_makes_a_statement_final)
{
	struct rig  r;
	struct rest rest = { STR("111122223332"), at("2026-10-08T17:00:00Z") }, other = { STR("111122223331"), 0 };

	open_reports(&r);
	end_lease(&r);
	rig_pass(&r.base, STATEMENT_PROVISIONAL_MS + STATEMENT_SPREAD_MS);
	rig_run(&r.base, end_rest, &other); /* nobody has had it */
	rig_pass(&r.base, 1000);
	CHECK(statement(&r).state == STATEMENT_PROVISIONAL);
	rig_run(&r.base, end_rest, &rest);
	rig_pass(&r.base, 1000);
	CHECK(statement(&r).state == STATEMENT_FINAL);
	CASE("what was spent until the account was clean counts: eight hours later is the 9th");
	CHECK(statement(&r).to_ms == at("2026-10-10T00:00:00Z") && statement(&r).total == 10000000);
	CASE("told twice, nothing changes");
	rig_run(&r.base, end_rest, &rest);
	rig_pass(&r.base, 1000);
	CHECK(statement(&r).state == STATEMENT_FINAL && events_of(&r, EVENT_COSTS_GENERATED).count == 2);
	rig_close(&r.base);
}

TEST(a_rest_that_ends_early_waits_for_the_figures)
{
	struct rig  r;
	struct rest rest = { STR("111122223332"), 0 };

	open_reports(&r);
	end_lease(&r);
	r.prices.known_until_ms = at("2026-10-08T08:00:00Z");
	rig_pass(&r.base, HOUR);
	rig_run(&r.base, end_rest, &rest);
	rig_pass(&r.base, 1000);
	CHECK(statement(&r).state == STATEMENT_PROVISIONAL);
	r.prices.known_until_ms = 0;
	rig_pass(&r.base, STATEMENT_AGAIN_MS);
	CHECK(statement(&r).state == STATEMENT_FINAL);
	rig_close(&r.base);
}

TEST(figures_that_change_after_it_was_final_amend_a_statement)
{
	struct rig r;

	open_reports(&r);
	end_lease(&r);
	rig_pass(&r.base, STATEMENT_FINAL_MS + STATEMENT_SPREAD_MS);
	CHECK(statement(&r).state == STATEMENT_FINAL && statement(&r).total == 8000000);
	r.prices.extra = 250000;
	rig_pass(&r.base, 10 * (int64_t)DAY_MS);
	CHECK(statement(&r).state == STATEMENT_AMENDED && statement(&r).total == 9000000);
	CASE("the same once more is not told again");
	rig_pass(&r.base, 40 * (int64_t)DAY_MS);
	CHECK(events_of(&r, EVENT_COSTS_GENERATED).count == 3);
	rig_close(&r.base);
}

TEST(a_statement_has_one_timer)
{
	struct rig        r;
	struct timer_list timers = { .prefix = STR("statement/"), .limit = 10 };

	open_reports(&r);
	end_lease(&r);
	for (int i = 0; i < 8; i++) {
		rig_pass(&r.base, DAY_MS);
		rig_run(&r.base, timer_list, &timers);
		CHECK(timers.page.count == 1);
	}
	rig_close(&r.base);
}

/* --- shares --- */

TEST(a_report_counts_leases_that_are_gone_and_asks_no_more_for_what_is_final)
{
	struct rig r;
	int        calls;

	open_reports(&r);
	end_lease(&r);
	check_report(&r.base, &r.prices,
	             "CostReportGroup,StartDate,EndDate,Cost,Currency\nbeta,2026-10-01,2026-10-31,6.00,USD\n");
	rig_pass(&r.base, STATEMENT_FINAL_MS + STATEMENT_SPREAD_MS);
	rig_run(&r.base, remove_lease, NULL);
	calls = r.prices.calls;
	/* midnights of the 6th, 7th and 8th at $2 */
	check_report(&r.base, &r.prices,
	             "CostReportGroup,StartDate,EndDate,Cost,Currency\nbeta,2026-10-01,2026-10-31,6.00,USD\n");
	CHECK(r.prices.calls == calls);
	CASE("an amended statement changes the report");
	r.prices.extra = 1000000;
	rig_pass(&r.base, 10 * (int64_t)DAY_MS);
	check_report(&r.base, &r.prices,
	             "CostReportGroup,StartDate,EndDate,Cost,Currency\nbeta,2026-10-01,2026-10-31,9.00,USD\n");
	rig_close(&r.base);
}

struct share_count {
	int64_t month, count;
};

static enum rc count_month(struct session *s, void *arg, struct err *e)
{
	struct share_count *c = arg;

	return session_count(s, &cost_share_type, COST_SHARE_BY_MONTH, value_int(c->month), &c->count, e);
}

static int64_t count_shares(struct rig *r, int64_t month_number)
{
	struct share_count c = { .month = month_number };

	rig_run(&r->base, count_month, &c);
	return c.count;
}

TEST(a_lease_leaves_a_share_in_each_of_its_months_until_its_statement_goes)
{
	struct rig r;

	open_reports(&r);
	r.base.clock.test_ms = at("2027-02-03T09:00:00Z");
	add(&r.base,
	    new_lease(UUID, LEASE_EXPIRED, "111122223332", "beta", "2026-10-31T10:00:00Z", "2027-02-03T09:00:00Z"));
	CHECK(count_shares(&r, 202610) == 0); /* no midnight of October is in it */
	CHECK(count_shares(&r, 202611) == 1 && count_shares(&r, 202612) == 1);
	CHECK(count_shares(&r, 202701) == 1 && count_shares(&r, 202702) == 1 && count_shares(&r, 202703) == 0);
	rig_pass(&r.base, STATEMENT_KEPT_MS + DAY_MS);
	CHECK(count_shares(&r, 202611) + count_shares(&r, 202612) + count_shares(&r, 202701) +
	              count_shares(&r, 202702) ==
	      0);
	rig_close(&r.base);
}

TEST(a_lease_of_many_years_still_fits_one_transaction)
{
	struct rig       r;
	struct statement st;

	open_reports(&r);
	r.base.clock.test_ms = at("2038-02-03T09:00:00Z");
	add(&r.base,
	    new_lease(UUID, LEASE_EXPIRED, "111122223332", "beta", "2020-01-01T10:00:00Z", "2038-02-03T09:00:00Z"));
	CHECK(count_shares(&r, 203802) == 1 && count_shares(&r, 203303) == 1 && count_shares(&r, 203302) == 0);
	rig_pass(&r.base, STATEMENT_FINAL_MS + STATEMENT_SPREAD_MS);
	st = statement(&r);
	CHECK(st.state == STATEMENT_FINAL && (st.to_ms - st.from_ms) / DAY_MS == STATEMENT_DAYS_MAX);
	CHECK(st.total == 2 * (int64_t)1000000 * STATEMENT_DAYS_MAX);
	rig_close(&r.base);
}

/* Names of the greatest length, all of it escaped; each day costs a dollar for each of them. */
static enum rc itemise_many(struct costs *c, struct str account_id, int64_t from_ms, int64_t to_ms, struct arena *a,
                            struct cloud_bill *ret, struct err *e)
{
	enum { MANY = STATEMENT_SERVICES_MAX + 20 };
	size_t count = 0;

	(void)c;
	(void)account_id;
	(void)e;
	*ret = (struct cloud_bill){ .items = arena_alloc(a, (MANY + 1) * sizeof(struct cloud_cost)),
		                    .spend = { .complete_until_ms = to_ms } };
	for (int i = 0; i < MANY; i++) {
		struct str name = str_format(
		        a, "%03d%.*s", i, CLOUD_SERVICE_MAX - 3,
		        "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"
		        "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"
		        "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01");

		ret->items[count++] = (struct cloud_cost){ name, from_ms, 1000000 };
	}
	ret->items[count++] = (struct cloud_cost){ STR(""), from_ms, 5000000 };
	ret->count = count;
	return RC_OK;
}

TEST(services_beyond_the_limit_and_those_without_a_name_are_one_row_at_the_end)
{
	static const struct costs_ops many_ops = { .itemise = itemise_many };
	struct costs                  many = { &many_ops };
	struct statement_asking       how = { .costs = &many };
	struct statement st = { .uuid = STR(UUID), .account_id = STR("111122223332"), .from_ms = 0, .to_ms = DAY_MS };
	struct arena     a = { 0 };
	CLEANUP(json_freep) json_t *rows = NULL;
	int64_t                    *days;
	struct str                  last;
	struct err                  e = { 0 };

	CHECK(statement_ask(&st, &how, &a, &days, &e) == RC_OK);
	CHECK(json_parse(st.rows, &rows, &e) == RC_OK && json_array_size(rows) == STATEMENT_SERVICES_MAX + 1);
	CHECK(json_get_text(json_array_get(rows, STATEMENT_SERVICES_MAX), "service", &last));
	check_str(last, STATEMENT_OTHERS);
	CHECK(json_number_value(json_object_get(json_array_get(rows, STATEMENT_SERVICES_MAX), "usd")) == 25);
	CHECK(st.total == (STATEMENT_SERVICES_MAX + 25) * INT64_C(1000000) && days[0] == st.total);
	arena_fini(&a);
}

TEST(a_statement_waits_for_a_cloud_that_is_away_and_is_forgotten_after_three_years)
{
	struct rig       r;
	struct statement st = { .uuid = STR(UUID) };

	open_reports(&r);
	end_lease(&r);
	r.prices.failures = 3;
	rig_pass(&r.base, STATEMENT_FINAL_MS + 2 * (int64_t)STATEMENT_SPREAD_MS);
	CHECK(statement(&r).state == STATEMENT_FINAL);
	r.prices.failures = 1000; /* the later looks fail for good, and nobody is asked for what is removed */
	rig_pass(&r.base, 50 * (int64_t)DAY_MS);
	CHECK(statement(&r).state == STATEMENT_FINAL && events_of(&r, EVENT_COSTS_FAILED).count == 2);
	rig_pass(&r.base, STATEMENT_KEPT_MS);
	CHECK(rig_try(&r.base, statement_get, &st, NULL) == RC_NOT_FOUND);
	rig_close(&r.base);
}

TEST(a_statement_that_was_never_made_is_forgotten_too)
{
	struct rig       r;
	struct statement st = { .uuid = STR(UUID) };
	size_t           failures;

	open_reports(&r);
	r.reports.kept_ms = 30 * (int64_t)DAY_MS;
	end_lease(&r);
	r.prices.failures = INT_MAX;
	rig_pass(&r.base, 29 * (int64_t)DAY_MS);
	CHECK(statement(&r).state == STATEMENT_PENDING && events_of(&r, EVENT_COSTS_FAILED).count > 1);
	rig_pass(&r.base, 2 * (int64_t)DAY_MS);
	CHECK(rig_try(&r.base, statement_get, &st, NULL) == RC_NOT_FOUND);
	failures = events_of(&r, EVENT_COSTS_FAILED).count;
	rig_pass(&r.base, 5 * (int64_t)DAY_MS);
	CHECK(events_of(&r, EVENT_COSTS_FAILED).count == failures);
	rig_close(&r.base);
}

TEST(the_monthly_report_is_told_and_comes_again)
{
	struct rig        r;
	struct event_list told;
	struct timer_list timers = { .prefix = STR(COST_REPORT_TIMER), .limit = 10 };

	open_reports(&r);
	r.base.clock.test_ms = at("2026-10-20T12:00:00Z");
	rig_run(&r.base, reports_arm, NULL);
	rig_run(&r.base, reports_arm, NULL);
	rig_pass(&r.base, at("2026-11-02T01:24:59Z") - r.base.clock.test_ms);
	CHECK(events_of(&r, EVENT_REPORT_GENERATED).count == 0);
	rig_pass(&r.base, 2000);
	told = events_of(&r, EVENT_REPORT_GENERATED);
	CHECK(told.count == 1 && strstr(told.events[0].detail.p, "\"reportMonth\":\"2026-10\"") != NULL);
	CHECK(strstr(told.events[0].detail.p, "\"fileName\":\"2026/10/cost-report-20261102-012500.csv\"") != NULL);
	rig_run(&r.base, timer_list, &timers);
	CHECK(timers.page.count == 1);
	CHECK(((struct timer *)page_record(&timers.page, &timer_type, 0))->due_ms == at("2026-12-02T01:25:00Z"));
	rig_close(&r.base);
}

TEST(on_the_first_of_a_month_the_report_of_the_last_is_still_to_come)
{
	struct rig        r;
	struct timer_list timers = { .prefix = STR(COST_REPORT_TIMER), .limit = 10 };

	open_reports(&r);
	r.base.clock.test_ms = at("2026-11-01T12:00:00Z");
	rig_run(&r.base, reports_arm, NULL);
	rig_run(&r.base, timer_list, &timers);
	CHECK(((struct timer *)page_record(&timers.page, &timer_type, 0))->due_ms == at("2026-11-02T01:25:00Z"));
	rig_close(&r.base);
}

TEST(a_report_that_fails_for_good_is_told_as_failed)
{
	struct rig        r;
	struct event_list told;

	open_reports(&r);
	r.base.clock.test_ms = at("2026-10-20T12:00:00Z");
	add(&r.base, new_lease(UUID, LEASE_ACTIVE, "111122223332", "beta", "2026-10-05T10:00:00Z", NULL));
	rig_run(&r.base, reports_arm, NULL);
	r.prices.failures = 1000;
	rig_pass(&r.base, at("2026-11-03T00:00:00Z") - r.base.clock.test_ms);
	told = events_of(&r, EVENT_REPORT_FAILED);
	CHECK(told.count == 1 && strstr(told.events[0].detail.p, "\"reportMonth\":\"2026-10\"") != NULL);
	CHECK(events_of(&r, EVENT_REPORT_GENERATED).count == 0);
	rig_close(&r.base);
}
