/* SPDX-License-Identifier: Apache-2.0 */
/* test_lease_watch.c - the monitor's rule: a table of situations, every boundary from both sides, and histories by
 * chance. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "domain/lease.h"

/* Hours and dollars of the tables; the lease starts at hour 0 of its own time. */
enum { START_MS = 1000000000 };

#define MS(hours)   ((int64_t)(START_MS + (hours) * (double)LEASE_HOUR_MS + 0.5))
#define MICRO(usd)  ((int64_t)((usd) * (double)LEASE_USD + 0.5))
#define BUDGET_LIST "[{\"dollarsSpent\":10,\"action\":\"ALERT\"},{\"dollarsSpent\":40.5,\"action\":\"FREEZE_ACCOUNT\"}]"
#define TIME_LIST   "[{\"hoursRemaining\":12,\"action\":\"ALERT\"},{\"hoursRemaining\":1,\"action\":\"FREEZE_ACCOUNT\"}]"

static struct lease lease_of_50_dollars_and_a_day(void)
{
	return (struct lease){ .uuid = STR("0f8fad5b-d9cb-469f-a165-70867728950e"),
		               .status = LEASE_ACTIVE,
		               .max_spend = MICRO(50),
		               .budget_thresholds = STR(BUDGET_LIST),
		               .duration_thresholds = STR(TIME_LIST),
		               .start_ms = START_MS,
		               .last_checked_ms = START_MS,
		               .expires_ms = MS(24) };
}

/* What followed, as one line: "over", "expired", or any of freeze, alert by $ or by h; "" is nothing. */
static const char *told(const struct lease_watch *w, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	if (w->is_over_budget)
		n += (size_t)snprintf(ret + n, size - n, " over");
	if (w->is_expired)
		n += (size_t)snprintf(ret + n, size - n, " expired");
	if (w->freezes && w->freezes_by_budget)
		n += (size_t)snprintf(ret + n, size - n, " freeze$%g", (double)w->freeze.at / LEASE_USD);
	if (w->freezes && !w->freezes_by_budget)
		n += (size_t)snprintf(ret + n, size - n, " freeze%gh", (double)w->freeze.at / LEASE_HOUR_MS);
	if (w->alerts_budget)
		n += (size_t)snprintf(ret + n, size - n, " alert$%g", (double)w->alert_budget.at / LEASE_USD);
	if (w->alerts_duration)
		n += (size_t)snprintf(ret + n, size - n, " alert%gh", (double)w->alert_duration.at / LEASE_HOUR_MS);
	if (w->alerts_projection)
		n += (size_t)snprintf(ret + n, size - n, " projected");
	return n ? ret + 1 : ret;
}

#define MICROSTEP 1e-6
#define MSTEP     (1.0 / LEASE_HOUR_MS)

/* The cost before and now in dollars; the hour of the last check and of this one. Thresholds: alert at $10 and 12 h,
 * freeze at $40.5 and 1 h, unless the row has its own. A budget of 0 and an end of 0 are none. */
static const struct {
	const char       *label;
	enum lease_status status;
	double            budget, end;
	double            cost_before, cost;
	double            checked, now;
	const char       *budget_list, *time_list;
	const char       *told;
} cases[] = {
	/* budget and end */
	{ "little was spent, little time has passed", LEASE_ACTIVE, 50, 24, 1, 2, 1, 2, NULL, NULL, "" },
	{ "a cost just below the budget is not over it", LEASE_ACTIVE, 50, 24, 45, 50 - MICROSTEP, 1, 2, NULL, NULL,
	  "" },
	{ "a cost that equals the budget is over it", LEASE_ACTIVE, 50, 24, 45, 50, 1, 2, NULL, NULL, "over" },
	{ "over the budget wins over everything else", LEASE_ACTIVE, 50, 24, 0, 60, 1, 30, NULL, NULL, "over" },
	{ "over the budget is told until it is handled", LEASE_ACTIVE, 50, 24, 60, 60, 1, 2, NULL, NULL, "over" },
	{ "a frozen lease can be over its budget", LEASE_FROZEN, 50, 24, 45, 51, 1, 2, NULL, NULL, "over" },
	{ "without a budget nothing is over it", LEASE_ACTIVE, 0, 24, 41, 1e6, 1, 2, NULL, NULL, "" },
	{ "at its very end a lease has not expired", LEASE_ACTIVE, 50, 24, 1, 1, 23.5, 24, NULL, NULL, "" },
	{ "a millisecond after its end it has", LEASE_ACTIVE, 50, 24, 1, 1, 23.5, 24 + MSTEP, NULL, NULL, "expired" },
	{ "expired wins over thresholds", LEASE_ACTIVE, 50, 24, 1, 45, 1, 25, NULL, NULL, "expired" },
	{ "expired is told until it is handled", LEASE_ACTIVE, 50, 24, 1, 1, 30, 31, NULL, NULL, "expired" },
	{ "a frozen lease can expire", LEASE_FROZEN, 50, 24, 1, 1, 1, 25, NULL, NULL, "expired" },
	{ "without an end nothing expires or runs out", LEASE_ACTIVE, 50, 0, 1, 1, 1, 9999, NULL, NULL, "" },

	/* budget thresholds */
	{ "just below a threshold", LEASE_ACTIVE, 50, 24, 9, 10 - MICROSTEP, 1, 2, NULL, NULL, "" },
	{ "exactly at a threshold", LEASE_ACTIVE, 50, 24, 9, 10, 1, 2, NULL, NULL, "alert$10" },
	{ "a threshold that was reached before", LEASE_ACTIVE, 50, 24, 10, 11, 1, 2, NULL, NULL, "" },
	{ "from just below to just above", LEASE_ACTIVE, 50, 24, 10 - MICROSTEP, 10 + MICROSTEP, 1, 2, NULL, NULL,
	  "alert$10" },
	{ "the first figure can cross one", LEASE_ACTIVE, 50, 24, 0, 12, 1, 2, NULL, NULL, "alert$10" },
	{ "a figure that stays the same crosses nothing", LEASE_ACTIVE, 50, 24, 10, 10, 1, 2, NULL, NULL, "" },
	{ "a figure that falls crosses nothing", LEASE_ACTIVE, 50, 24, 12, 9, 1, 2, NULL, NULL, "" },
	{ "a threshold that freezes", LEASE_ACTIVE, 50, 24, 20, 40.5, 1, 2, NULL, NULL, "freeze$40.5" },
	{ "just below the one that freezes", LEASE_ACTIVE, 50, 24, 20, 40.5 - MICROSTEP, 1, 2, NULL, NULL, "" },
	{ "two at once: the largest freezes, so no alert", LEASE_ACTIVE, 50, 24, 1, 41, 1, 2, NULL, NULL,
	  "freeze$40.5" },
	{ "two at once: the largest alerts, the other freezes", LEASE_ACTIVE, 50, 24, 1, 41, 1, 2,
	  "[{\"dollarsSpent\":20,\"action\":\"FREEZE_ACCOUNT\"},{\"dollarsSpent\":30,\"action\":\"ALERT\"}]", NULL,
	  "freeze$20 alert$30" },
	{ "of several alerts only the furthest is told", LEASE_ACTIVE, 50, 24, 1, 41, 1, 2,
	  "[{\"dollarsSpent\":30,\"action\":\"ALERT\"},{\"dollarsSpent\":20,\"action\":\"ALERT\"}]", NULL, "alert$30" },
	{ "of several that freeze the first in the list does", LEASE_ACTIVE, 50, 24, 1, 41, 1, 2,
	  "[{\"dollarsSpent\":30,\"action\":\"FREEZE_ACCOUNT\"},{\"dollarsSpent\":20,\"action\":\"FREEZE_ACCOUNT\"}]",
	  NULL, "freeze$30" },
	{ "thresholds work without a budget", LEASE_ACTIVE, 0, 24, 1, 41, 1, 2, NULL, NULL, "freeze$40.5" },
	{ "a threshold at the budget itself is never reached", LEASE_ACTIVE, 50, 24, 45, 50, 1, 2,
	  "[{\"dollarsSpent\":50,\"action\":\"ALERT\"}]", NULL, "over" },
	{ "a frozen lease is not frozen again", LEASE_FROZEN, 50, 24, 20, 41, 1, 2, NULL, NULL, "" },
	{ "a frozen lease still alerts", LEASE_FROZEN, 50, 24, 9, 10, 1, 2, NULL, NULL, "alert$10" },

	/* duration thresholds: 12 h are left at hour 12, 1 h at hour 23 */
	{ "just before so much time is left", LEASE_ACTIVE, 50, 24, 1, 1, 11, 12 - MSTEP, NULL, NULL, "" },
	{ "exactly when so much time is left", LEASE_ACTIVE, 50, 24, 1, 1, 11, 12, NULL, NULL, "alert12h" },
	{ "it was so at the last check", LEASE_ACTIVE, 50, 24, 1, 1, 12, 13, NULL, NULL, "" },
	{ "the last check was just before it", LEASE_ACTIVE, 50, 24, 1, 1, 12 - MSTEP, 13, NULL, NULL, "alert12h" },
	{ "a threshold of time that freezes", LEASE_ACTIVE, 50, 24, 1, 1, 22, 23, NULL, NULL, "freeze1h" },
	{ "both at once: the smallest freezes, so no alert", LEASE_ACTIVE, 50, 24, 1, 1, 11, 23.5, NULL, NULL,
	  "freeze1h" },
	{ "both at once: the smallest alerts, the other freezes", LEASE_ACTIVE, 50, 24, 1, 1, 1, 23, NULL,
	  "[{\"hoursRemaining\":2,\"action\":\"FREEZE_ACCOUNT\"},{\"hoursRemaining\":1,\"action\":\"ALERT\"}]",
	  "freeze2h alert1h" },
	{ "a frozen lease is not frozen by time again", LEASE_FROZEN, 50, 24, 1, 1, 22, 23, NULL, NULL, "" },
	{ "a frozen lease alerts by time", LEASE_FROZEN, 50, 24, 1, 1, 11, 12, NULL, NULL, "alert12h" },
	{ "more time than the lease has is never left", LEASE_ACTIVE, 50, 24, 1, 1, 0, 10, NULL,
	  "[{\"hoursRemaining\":48,\"action\":\"FREEZE_ACCOUNT\"}]", "" },
	{ "a part of an hour is a threshold too", LEASE_ACTIVE, 50, 24, 1, 1, 23, 23.75, NULL,
	  "[{\"hoursRemaining\":0.25,\"action\":\"ALERT\"}]", "alert0.25h" },
	{ "at the very end thresholds still count", LEASE_ACTIVE, 50, 24, 1, 1, 22, 24, NULL, NULL, "freeze1h" },

	/* both kinds */
	{ "money and time alert in one check", LEASE_ACTIVE, 50, 24, 9, 11, 11, 12, NULL, NULL, "alert$10 alert12h" },
	{ "money freezes before time does", LEASE_ACTIVE, 50, 24, 20, 41, 22, 23, NULL, NULL, "freeze$40.5" },
	{ "money freezes while time alerts", LEASE_ACTIVE, 50, 24, 20, 41, 11, 12, NULL, NULL, "freeze$40.5 alert12h" },
	{ "time freezes while money alerts", LEASE_ACTIVE, 50, 24, 9, 10, 22, 23, NULL, NULL, "freeze1h alert$10" },

	/* lists */
	{ "empty lists", LEASE_ACTIVE, 50, 24, 1, 41, 1, 23, "[]", "[]", "" },
	{ "no lists", LEASE_ACTIVE, 50, 24, 1, 41, 1, 23, "", "", "" },
	{ "what is not a threshold is left out", LEASE_ACTIVE, 50, 24, 1, 41, 1, 23,
	  "[1,{\"dollarsSpent\":-5,\"action\":\"ALERT\"},{\"dollarsSpent\":9,\"action\":\"SHOUT\"},{\"action\":\"ALERT\"},"
	  "{\"dollarsSpent\":5,\"action\":\"ALERT\"}]",
	  "{\"hoursRemaining\":12}", "alert$5" },
	{ "a list that is not JSON", LEASE_ACTIVE, 50, 24, 1, 41, 1, 23, "[{", "nonsense", "" },

	/* who is watched */
	{ "a lease in provisioning is not watched", LEASE_PROVISIONING, 50, 24, 1, 60, 1, 30, NULL, NULL, "" },
	{ "a lease that has ended is not watched", LEASE_EXPIRED, 50, 24, 1, 60, 1, 30, NULL, NULL, "" },
	{ "a pending lease is not watched", LEASE_PENDING_APPROVAL, 50, 24, 1, 60, 1, 30, NULL, NULL, "" },
};

static struct lease lease_of_case(size_t i)
{
	struct lease l = lease_of_50_dollars_and_a_day();

	l.status = cases[i].status;
	l.max_spend = MICRO(cases[i].budget);
	l.expires_ms = cases[i].end > 0 ? MS(cases[i].end) : 0;
	l.cost = MICRO(cases[i].cost_before);
	l.last_checked_ms = MS(cases[i].checked);
	if (cases[i].budget_list)
		l.budget_thresholds = str_from(cases[i].budget_list);
	if (cases[i].time_list)
		l.duration_thresholds = str_from(cases[i].time_list);
	return l;
}

TEST(the_monitor_says_what_follows)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct lease       l = lease_of_case(i), before = l;
		struct lease_watch w = { .lease = &l, .cost = MICRO(cases[i].cost), .now = { MS(cases[i].now) } };
		bool               is_watched = l.status == LEASE_ACTIVE || l.status == LEASE_FROZEN;
		char               text[128];

		w.cost_at_ms = w.now.ms - LEASE_HOUR_MS;
		lease_watch(&w);
		CASE(cases[i].label);
		CHECK(strcmp(told(&w, text, sizeof(text)), cases[i].told) == 0);
		if (is_watched)
			CHECK(l.cost == w.cost && l.cost_at_ms == w.cost_at_ms && l.last_checked_ms == w.now.ms);
		else
			CHECK(memcmp(&l, &before, sizeof(l)) == 0);
		CHECK(l.status == before.status && l.expires_ms == before.expires_ms);
	}
}

TEST(what_is_told_is_not_told_again)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct lease       l = lease_of_case(i);
		struct lease_watch w = { .lease = &l, .cost = MICRO(cases[i].cost), .now = { MS(cases[i].now) } };
		bool               is_over;

		lease_watch(&w);
		is_over = w.is_over_budget || w.is_expired;
		lease_watch(&w);
		CASE(cases[i].label);
		CHECK(!w.freezes && !w.alerts_budget && !w.alerts_duration);
		CHECK((w.is_over_budget || w.is_expired) == is_over);
	}
}

TEST(a_lease_with_an_end_but_no_duration_is_watched_like_any_other)
{
	struct lease       l = lease_of_50_dollars_and_a_day();
	struct lease_watch w = { .lease = &l, .now = { MS(23) } };

	l.duration_ms = 0;
	lease_watch(&w);
	CHECK(w.freezes && !w.freezes_by_budget && w.freeze.at == LEASE_HOUR_MS);
	CHECK(lease_hours(&l) == 24);
	w.now.ms = MS(25);
	lease_watch(&w);
	CHECK(w.is_expired);
}

TEST(an_end_that_moves_arms_a_threshold_again)
{
	struct lease       l = lease_of_50_dollars_and_a_day();
	struct lease_watch w = { .lease = &l, .now = { MS(12) } };

	lease_watch(&w);
	CHECK(w.alerts_duration);
	l.expires_ms = MS(48);
	w.now.ms = MS(36);
	lease_watch(&w);
	CHECK(w.alerts_duration && w.alert_duration.at == 12 * (int64_t)LEASE_HOUR_MS);
}

TEST(what_a_change_puts_behind_the_last_look_is_not_crossed_any_more)
{
	struct lease       l = lease_of_50_dollars_and_a_day();
	struct lease_watch w = { .lease = &l, .now = { MS(10) }, .cost = 20 * LEASE_USD };

	lease_watch(&w);
	l.expires_ms = MS(10.5); /* less than all of its thresholds */
	l.budget_thresholds = STR("[{\"dollarsSpent\":15,\"action\":\"FREEZE_ACCOUNT\"}]");
	w.now.ms = MS(10.25);
	lease_watch(&w);
	CHECK(!w.freezes && !w.alerts_budget && !w.alerts_duration);
	l.max_spend = 18 * LEASE_USD;
	lease_watch(&w);
	CHECK(w.is_over_budget);
}

TEST(a_clock_that_goes_back_does_not_tell_a_crossing_twice)
{
	struct lease       l = lease_of_50_dollars_and_a_day();
	struct lease_watch w = { .lease = &l, .now = { MS(12.5) } };

	lease_watch(&w);
	CHECK(w.alerts_duration);
	w.now.ms = MS(11);
	lease_watch(&w);
	CHECK(!w.alerts_duration && l.last_checked_ms == MS(12.5));
	w.now.ms = MS(12.6);
	lease_watch(&w);
	CHECK(!w.alerts_duration);
}

TEST(more_thresholds_than_allowed_are_not_read)
{
	struct thresholds all;
	char              text[4096] = "[";
	size_t            n = 1;

	for (int i = 1; i <= 2 * THRESHOLDS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s{\"dollarsSpent\":%d,\"action\":\"ALERT\"}",
		                      i > 1 ? "," : "", i);
	snprintf(text + n, sizeof(text) - n, "]");
	thresholds_parse(str_from(text), STR(""), &all);
	CHECK(all.budget.count == THRESHOLDS_MAX && all.duration.count == 0);
	CHECK(all.budget.items[0].at == LEASE_USD && all.budget.items[19].at == 20 * (int64_t)LEASE_USD);
}

TEST(amounts_are_read_to_the_millionth)
{
	struct thresholds all;

	thresholds_parse(
	        STR("[{\"dollarsSpent\":0.1,\"action\":\"ALERT\"},{\"dollarsSpent\":1e300,\"action\":\"ALERT\"},"
	            "{\"dollarsSpent\":33.333333,\"action\":\"FREEZE_ACCOUNT\"}]"),
	        STR("[{\"hoursRemaining\":0.1,\"action\":\"ALERT\"}]"), &all);
	CHECK(all.budget.count == 2 && all.budget.items[0].at == 100000 && all.budget.items[1].at == 33333333);
	CHECK(all.budget.items[0].action == THRESHOLD_ALERT && all.budget.items[1].action == THRESHOLD_FREEZE);
	CHECK(all.duration.count == 1 && all.duration.items[0].at == 360000);
}

/* --- the projection --- */

/* Watches hour by hour with a steady spend; returns how often it was projected. The last watch is in *ret. */
static int watch_hours(struct lease *l, int from, int to, double usd_per_hour, struct lease_watch *ret)
{
	int alerts = 0;

	for (int hour = from; hour <= to; hour++) {
		*ret = (struct lease_watch){ .lease = l, .cost = l->cost + MICRO(usd_per_hour), .projects = true };
		ret->now.ms = ret->cost_at_ms = MS(hour);
		lease_watch(ret);
		alerts += ret->alerts_projection;
	}
	return alerts;
}

static struct lease lease_without_thresholds(void)
{
	struct lease l = lease_of_50_dollars_and_a_day();

	l.budget_thresholds = l.duration_thresholds = STR("");
	return l;
}

TEST(a_spend_that_will_pass_the_budget_is_told_once)
{
	struct lease       l = lease_without_thresholds();
	struct lease_watch w;

	CHECK(watch_hours(&l, 1, 1, 3, &w) == 1);
	CHECK(w.forecast.projected == MICRO(72) && l.projected_ms == MS(1));
	CHECK(watch_hours(&l, 2, 16, 3, &w) == 0 && !w.is_over_budget);
}

TEST(a_spend_that_ends_just_below_the_budget_is_not_told)
{
	struct lease       l = lease_without_thresholds();
	struct lease_watch w;

	l.max_spend = MICRO(48) + 1;
	CHECK(watch_hours(&l, 1, 23, 2, &w) == 0 && w.forecast.projected == MICRO(48));
	l = lease_without_thresholds();
	l.max_spend = MICRO(48);
	CHECK(watch_hours(&l, 1, 23, 2, &w) == 1);
}

TEST(nothing_is_told_when_projections_are_off)
{
	struct lease       l = lease_without_thresholds();
	struct lease_watch w = { .lease = &l, .cost = MICRO(40), .cost_at_ms = MS(1), .now = { MS(1) } };

	lease_watch(&w);
	CHECK(!w.alerts_projection && w.forecast.projected > l.max_spend && l.projected_ms == 0);
}

TEST(a_lease_without_a_budget_is_not_projected_to_pass_it)
{
	struct lease       l = lease_without_thresholds();
	struct lease_watch w;

	l.max_spend = 0;
	CHECK(watch_hours(&l, 1, 20, 1000, &w) == 0);
}

TEST(a_lease_without_an_end_is_projected_a_day_ahead)
{
	struct lease       l = lease_without_thresholds();
	struct lease_watch w;

	l.expires_ms = 0;
	CHECK(watch_hours(&l, 1, 25, 1, &w) == 0 && w.forecast.projected == MICRO(49));
	CHECK(watch_hours(&l, 26, 26, 1, &w) == 1 && w.forecast.projected == MICRO(50));
}

TEST(the_first_minutes_tell_nothing)
{
	struct lease       l = lease_without_thresholds();
	struct lease_watch w = {
		.lease = &l, .cost = MICRO(5), .cost_at_ms = MS(1) - 1, .now = { MS(2) }, .projects = true
	};

	lease_watch(&w);
	CHECK(!w.alerts_projection && w.forecast.projected == 0);
}

TEST(old_spending_fades_from_the_rate)
{
	struct lease       l = lease_without_thresholds();
	struct lease_watch w;

	l.max_spend = MICRO(10000);
	l.expires_ms = MS(1000);
	watch_hours(&l, 1, 100, 0, &w);
	CHECK(w.forecast.projected == 0);
	watch_hours(&l, 101, 300, 1, &w);
	CHECK(w.forecast.projected > MICRO(899) && w.forecast.projected <= MICRO(900));
	CHECK(l.rate_from_ms == MS(300 - 24));
}

TEST(a_projection_that_fell_well_below_the_budget_can_be_told_again)
{
	struct lease       l = lease_without_thresholds();
	struct lease_watch w;

	l.expires_ms = MS(200);
	CHECK(watch_hours(&l, 1, 5, 1, &w) == 1);
	CHECK(watch_hours(&l, 6, 150, 0, &w) == 0 && l.projected_ms == 0 && w.forecast.projected < MICRO(45));
	CHECK(watch_hours(&l, 151, 170, 2, &w) == 1);
}

TEST(a_projection_around_the_budget_is_told_once)
{
	struct lease       l = lease_without_thresholds();
	struct lease_watch w;
	int                alerts = 0;

	l.expires_ms = MS(100);
	for (int hour = 1; hour < 95; hour++)
		alerts += watch_hours(&l, hour, hour, hour % 2 ? 0.52 : 0.48, &w);
	CHECK(alerts == 1);
}

TEST(figures_that_are_corrected_downwards_begin_a_new_rate)
{
	struct lease       l = lease_without_thresholds();
	struct lease_watch w = { .lease = &l, .projects = true };

	l.expires_ms = MS(100);
	l.rate_from_ms = MS(2);
	l.rate_from_cost = MICRO(20);
	w.cost = MICRO(1);
	w.now.ms = w.cost_at_ms = MS(5);
	lease_watch(&w);
	CHECK(!w.alerts_projection && w.forecast.projected == 0 && l.rate_from_ms == MS(5) &&
	      l.rate_from_cost == MICRO(1));
}

/* --- what is not billed yet --- */

/* Six hours at 5 dollars an hour are known, four hours later: 30 known, 20 not yet; at its end 120 of 50. */
static struct lease_watch watch_with_a_lag(struct lease *l, enum overrun_action on_projected,
                                           enum overrun_action on_estimated)
{
	struct lease_watch w = { .lease = l,
		                 .cost = MICRO(30),
		                 .cost_at_ms = MS(6),
		                 .now = { MS(10) },
		                 .on_projected = on_projected,
		                 .on_estimated = on_estimated };

	lease_watch(&w);
	return w;
}

TEST(what_is_not_billed_yet_is_the_rate_times_the_lag)
{
	struct lease          l = lease_without_thresholds();
	struct lease_watch    w = watch_with_a_lag(&l, OVERRUN_ALERT, OVERRUN_ALERT);
	struct lease_forecast f;

	CHECK(w.forecast.is_known && w.forecast.per_hour == MICRO(5) && w.forecast.estimated == MICRO(50));
	CHECK(w.forecast.projected == MICRO(120) && w.forecast.overrun == MICRO(20));
	CHECK(!w.is_over_budget && !w.freezes);
	lease_forecast(&l, &f); /* the stored lease says the same */
	CHECK(f.estimated == w.forecast.estimated && f.projected == w.forecast.projected);
}

TEST(a_budget_that_suffices_cannot_be_overrun)
{
	struct lease       l = lease_without_thresholds();
	struct lease_watch w;

	l.max_spend = MICRO(120);
	w = watch_with_a_lag(&l, OVERRUN_ALERT, OVERRUN_ALERT);
	CHECK(w.forecast.is_known && w.forecast.overrun == 0);
	l = lease_without_thresholds();
	l.max_spend = MICRO(115); /* it ends before a bill could show more */
	CHECK(watch_with_a_lag(&l, OVERRUN_ALERT, OVERRUN_ALERT).forecast.overrun == MICRO(5));
	l.max_spend = 0;
	CHECK(watch_with_a_lag(&l, OVERRUN_END, OVERRUN_END).is_over_budget == false);
}

TEST(the_policy_says_what_follows_from_a_forecast)
{
	static const struct {
		const char         *label;
		double              budget;
		enum overrun_action on_projected, on_estimated;
		bool                ends, freezes;
	} rows[] = {
		{ "an alert alone changes nothing", 50, OVERRUN_ALERT, OVERRUN_ALERT, false, false },
		{ "the projection reaches it: frozen", 120, OVERRUN_FREEZE, OVERRUN_ALERT, false, true },
		{ "the projection reaches it: ended", 120, OVERRUN_END, OVERRUN_ALERT, true, false },
		{ "the projection stays below", 120.01, OVERRUN_END, OVERRUN_FREEZE, false, false },
		{ "the estimate reaches it: frozen", 50, OVERRUN_ALERT, OVERRUN_FREEZE, false, true },
		{ "the estimate reaches it: ended", 50, OVERRUN_ALERT, OVERRUN_END, true, false },
		{ "the estimate stays below", 50.01, OVERRUN_ALERT, OVERRUN_END, false, false },
		{ "an end is worth more than a freeze", 50, OVERRUN_FREEZE, OVERRUN_END, true, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct lease       l = lease_without_thresholds();
		struct lease_watch w;

		CASE(rows[i].label);
		l.max_spend = MICRO(rows[i].budget);
		w = watch_with_a_lag(&l, rows[i].on_projected, rows[i].on_estimated);
		CHECK(w.is_over_budget == rows[i].ends && w.freezes == rows[i].freezes);
		CHECK(w.is_by_forecast == (rows[i].ends || rows[i].freezes));
	}
}

TEST(a_frozen_lease_is_not_frozen_by_a_forecast_but_ended_by_it)
{
	struct lease l = lease_without_thresholds();

	l.status = LEASE_FROZEN;
	CHECK(!watch_with_a_lag(&l, OVERRUN_FREEZE, OVERRUN_FREEZE).freezes);
	CHECK(watch_with_a_lag(&l, OVERRUN_FREEZE, OVERRUN_END).is_over_budget);
}

/* --- the next moment --- */

TEST(the_next_moment_is_the_next_threshold_or_the_end)
{
	static const struct {
		const char       *label;
		enum lease_status status;
		double            end, now, expected; /* 0: none */
	} moments[] = {
		{ "before the first threshold", LEASE_ACTIVE, 24, 1, 12 },
		{ "just before it", LEASE_ACTIVE, 24, 12 - MSTEP, 12 },
		{ "at it: the next", LEASE_ACTIVE, 24, 12, 23 },
		{ "after the last: just behind the end", LEASE_ACTIVE, 24, 23, 24 + MSTEP },
		{ "at the end: just behind it", LEASE_ACTIVE, 24, 24, 24 + MSTEP },
		{ "after the end: it is due", LEASE_ACTIVE, 24, 30, 24 + MSTEP },
		{ "frozen leases end too", LEASE_FROZEN, 24, 1, 12 },
		{ "without an end there is no moment", LEASE_ACTIVE, 0, 1, 0 },
		{ "a lease in provisioning has none", LEASE_PROVISIONING, 24, 1, 0 },
		{ "a lease that is over has none", LEASE_EXPIRED, 24, 1, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
		struct lease l = lease_of_50_dollars_and_a_day();
		struct wall  now = { MS(moments[i].now) };
		int64_t      expected = moments[i].expected > 0 ? MS(moments[i].expected) : 0;

		l.status = moments[i].status;
		l.expires_ms = moments[i].end > 0 ? MS(moments[i].end) : 0;
		CASE(moments[i].label);
		CHECK(lease_next_moment_ms(&l, now) == expected);
	}
}

/* --- histories by chance --- */

/* xorshift: the same numbers in every run, so that a failure can be looked at. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int64_t below(uint64_t *state, int64_t limit)
{
	return (int64_t)(next_random(state) % (uint64_t)limit);
}

/* Up to 5 thresholds with different values, all ALERT, as stored. */
static struct str random_list(uint64_t *state, const char *name, int64_t values[5], size_t *ret_count, struct arena *a)
{
	struct str list = STR("[");

	*ret_count = (size_t)below(state, 6);
	for (size_t i = 0; i < *ret_count; i++) {
		values[i] = (int64_t)i * 10 + 1 + below(state, 10);
		list = str_format(a, "%.*s%s{\"%s\":%lld,\"action\":\"ALERT\"}", STR_ARG(list), i ? "," : "", name,
		                  (long long)values[i]);
	}
	return str_format(a, "%.*s]", STR_ARG(list));
}

/* The largest of values in (from, to], 0: none. */
static int64_t largest_between(const int64_t *values, size_t count, int64_t unit, int64_t from, int64_t to)
{
	int64_t largest = 0;

	for (size_t i = 0; i < count; i++)
		if (values[i] * unit > from && values[i] * unit <= to && values[i] * unit > largest)
			largest = values[i] * unit;
	return largest;
}

/* One lease that is only watched when its next moment has come, and at random: every crossing must be told, once, at
 * once or as part of a larger one in the same check. */
static void live_through(uint64_t seed)
{
	struct arena a = { 0 };
	uint64_t     state = seed * 0x9e3779b97f4a7c15u + 1;
	struct lease l = lease_of_50_dollars_and_a_day();
	int64_t      dollars[5], hours[5], now = START_MS;
	size_t       dollar_count, hour_count;
	int          expired = 0;

	l.max_spend = 0;
	l.expires_ms = MS(60);
	l.budget_thresholds = random_list(&state, "dollarsSpent", dollars, &dollar_count, &a);
	l.duration_thresholds = random_list(&state, "hoursRemaining", hours, &hour_count, &a);
	for (int step = 0; step < 400 && !expired; step++) {
		struct lease_watch w = { .lease = &l,
			                 .cost = l.cost + below(&state, 3) * below(&state, 2 * LEASE_USD) };
		int64_t            checked = l.last_checked_ms, cost = l.cost;
		int64_t            next = lease_next_moment_ms(&l, (struct wall){ now }), smallest = 0;

		now += below(&state, LEASE_HOUR_MS);
		if (now > next)
			now = next; /* the exact timer */
		w.now.ms = w.cost_at_ms = now;
		lease_watch(&w);
		expired = w.is_expired;
		CHECK(expired == (now > MS(60)));
		if (expired)
			break;
		CHECK((w.alerts_budget ? w.alert_budget.at : 0) ==
		      largest_between(dollars, dollar_count, LEASE_USD, cost, w.cost));
		for (size_t i = 0; i < hour_count; i++)
			if (MS(60 - hours[i]) > checked && MS(60 - hours[i]) <= now)
				smallest = hours[i];
		CHECK((w.alerts_duration ? w.alert_duration.at : 0) == smallest * LEASE_HOUR_MS);
		CHECK(!smallest || now == MS(60 - smallest));
		CHECK(!w.freezes && !w.is_over_budget);
	}
	CHECK(expired == 1 && now == MS(60) + 1);
	arena_fini(&a);
}

TEST(in_any_history_each_crossing_is_told_once_and_on_time)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		char label[32];

		snprintf(label, sizeof(label), "seed %d", (int)seed);
		CASE(label);
		live_through(seed);
	}
}

/* How often each threshold was told over a whole history whose checks come seldom, counting what a further one stood
 * for. */
TEST(in_any_history_a_threshold_is_told_as_often_as_it_is_crossed)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t     state = seed * 0x9e3779b97f4a7c15u + 1;
		struct lease l = lease_of_50_dollars_and_a_day();
		int          told_times = 0, crossed_times = 0;

		l.max_spend = 0;
		l.budget_thresholds = STR("[{\"dollarsSpent\":5,\"action\":\"ALERT\"}]");
		for (int step = 0; step < 100; step++) {
			struct lease_watch w = { .lease = &l,
				                 .cost = below(&state, 10 * LEASE_USD + 1),
				                 .now = { START_MS } };

			crossed_times += l.cost < MICRO(5) && w.cost >= MICRO(5);
			lease_watch(&w);
			told_times += w.alerts_budget;
		}
		CHECK(told_times == crossed_times && told_times > 0);
	}
}
