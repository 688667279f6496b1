/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost_report.c - the costs of a month and of a lease, against figures that were computed by hand. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "domain/account.h"
#include "domain/cloud.h"
#include "domain/lease.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "kernel_rig.h"
#include "service/cost_report.h"
#include "service/lease_records.h"
#include "service/statement.h"
#include "store/session.h"

enum { HOUR = 3600000, ACCOUNTS = 4 };

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
		buf_reset(&b);
		csv_add_cell(&b, str_from(rows[i].text));
		CASE(rows[i].text);
		CHECK(str_eq(buf_str(&b), str_from(rows[i].cell)));
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

/* --- a cloud with prices: so many dollars a day for each account, from the first account on 1, 2, 3, 4 --- */

struct prices {
	struct costs base;
	int          calls;
	int          failures; /* so many calls fail first */
	int64_t      extra;    /* comes later: added to every answer */
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

static const struct costs_ops prices_ops = { .spend = spend };

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

static enum rc add_lease(struct session *s, void *arg, struct err *e)
{
	(void)e;
	session_add(s, &lease_type, arg);
	return RC_OK;
}

static void add(struct kernel_rig *rig, struct lease lease)
{
	rig_run(rig, add_lease, &lease);
}

static void check_report(struct kernel_rig *rig, struct prices *p, const char *wanted)
{
	struct cost_report_call c = {
		.store = rig->store, .costs = &p->base, .month = month("2026-10"), .now = { at("2026-10-20T12:00:00Z") }
	};
	struct err e = { 0 };
	struct buf b;

	buf_init(&b, REPORT_BYTES_MAX);
	CHECK(cost_report_make(&c, &b, &e) == RC_OK);
	if (!str_eq(buf_str(&b), str_from(wanted)))
		print_error("%s\n", b.p);
	CHECK(str_eq(buf_str(&b), str_from(wanted)));
	buf_fini(&b);
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
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t from, to;

		statement_window(at(rows[i].start), at(rows[i].end), &from, &to);
		CASE(rows[i].start);
		CHECK(from == at(rows[i].from) && to == at(rows[i].to));
	}
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
	struct route      routes[3];
};

static void open_reports(struct rig *r)
{
	*r = (struct rig){ .prices = { .base = { &prices_ops } } };
	r->queues[0] = reports_queue(&r->reports);
	r->routes[0] = (struct route){ EVENT_LEASE_TERMINATED, REPORTS_QUEUE };
	r->routes[1] = (struct route){ EVENT_STATEMENT_DUE, REPORTS_QUEUE };
	r->routes[2] = (struct route){ EVENT_COST_REPORT_DUE, REPORTS_QUEUE };
	r->base.options = (struct kernel_options){
		.queues = r->queues, .queue_count = 1, .routes = r->routes, .route_count = ARRAY_LEN(r->routes)
	};
	rig_open(&r->base);
	r->reports.store = r->base.store;
	r->reports.costs = &r->prices.base;
}

#define UUID "9f8b7c6d-1111-4222-8333-000000000001"

static enum rc emit_end(struct session *s, void *arg, struct err *e)
{
	struct event event = { .type = STR(EVENT_LEASE_TERMINATED),
		               .subject = STR("lease/" UUID),
		               .actor = STR("monitor"),
		               .detail = STR("{}") };

	(void)arg;
	return session_emit(s, &event, e);
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
	rig_run(&r->base, emit_end, NULL);
	(void)rig_turn(&r->base);
}

TEST(a_statement_is_provisional_after_a_day_and_final_after_three)
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
	CHECK(st.state == STATEMENT_PROVISIONAL && st.total == 8000000 && r.prices.calls == 4);
	CHECK(strncmp(st.rows.p, "[{\"from\":\"2026-10-05\",\"days\":1,\"usd\":2},", 40) == 0 && st.hash.n == 64);
	hash = str_dup(&r.base.arena, st.hash);

	r.prices.extra = 250000; /* what came late */
	rig_pass(&r.base, STATEMENT_FINAL_MS - STATEMENT_PROVISIONAL_MS + STATEMENT_SPREAD_MS);
	st = statement(&r);
	CHECK(st.state == STATEMENT_FINAL && st.total == 9000000 && !str_eq(hash, st.hash));
	told = events_of(&r, EVENT_COSTS_GENERATED);
	CHECK(told.count == 2);
	CHECK(strstr(told.events[0].detail.p, "\"totalCost\":8,") &&
	      strstr(told.events[0].detail.p, "\"state\":\"provisional\""));
	CHECK(strstr(told.events[1].detail.p, "\"totalCost\":9,") &&
	      strstr(told.events[1].detail.p, "\"state\":\"final\""));
	CHECK(strstr(told.events[1].detail.p,
	             "\"startDate\":\"2026-10-05T00:00:00Z\",\"endDate\":\"2026-10-09T00:00:00Z\""));
	rig_close(&r.base);
}

TEST(an_event_that_comes_again_opens_nothing_new)
{
	struct rig        r;
	struct timer_list timers = { .prefix = STR("statement/"), .limit = 10 };

	open_reports(&r);
	end_lease(&r);
	rig_pass(&r.base, STATEMENT_PROVISIONAL_MS + STATEMENT_SPREAD_MS);
	rig_run(&r.base, emit_end, NULL);
	(void)rig_turn(&r.base);
	CHECK(statement(&r).state == STATEMENT_PROVISIONAL && events_of(&r, EVENT_COSTS_GENERATED).count == 1);
	rig_run(&r.base, timer_list, &timers);
	CHECK(timers.page.count == 1);
	rig_close(&r.base);
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
	r.prices.failures = 1000; /* nobody is asked for what is removed */
	rig_pass(&r.base, STATEMENT_KEPT_MS);
	CHECK(rig_try(&r.base, statement_get, &st, NULL) == RC_NOT_FOUND);
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
