/* SPDX-License-Identifier: Apache-2.0 */
/* test_aws_costs.c - what is decided about costs: amounts, days, what is complete. */
#include "test.h"

#include <stdint.h>

#include "providers/aws/costs_rule.h"

#define DAY  (int64_t) COST_DAY_MS
#define HOUR INT64_C(3600000)

enum { TODAY = 20000 }; /* days since 1970 */

static const struct {
	const char *label, *text;
	bool        is_ok;
	int64_t     units;
} amounts[] = {
	{ "a whole number", "3", true, 30000000000 },
	{ "nothing", "0", true, 0 },
	{ "ten digits are kept", "12.3456789012", true, 123456789012 },
	{ "a credit is negative", "-0.1", true, -1000000000 },
	{ "the eleventh digit rounds up from five", "0.00000000005", true, 1 },
	{ "and down below", "0.00000000004999", true, 0 },
	{ "away from zero, too", "-0.00000000005", true, -1 },
	{ "digits behind do not matter", "0.000000000099999999999999999999999", true, 1 },
	{ "many zeroes fit", "1234567.0000000000000000", true, 12345670000000000 },
	{ "an exponent", "1.5E-7", true, 1500 },
	{ "a small one", "1e-10", true, 1 },
	{ "one that is too small to count", "4e-11", true, 0 },
	{ "a large one", "1.25e+3", true, 12500000000000 },
	{ "a point without digits behind", "7.", true, 70000000000 },
	{ "a point without digits before", ".5", true, 5000000000 },
	{ "the most that can be counted", "922337203.6854775807", true, INT64_MAX },
	{ "no more than that", "922337203.6854775808", false, 0 },
	{ "a number without an end", "99999999999999999999999999", false, 0 },
	{ "an exponent that is too large", "1e40", false, 0 },
	{ "an empty text", "", false, 0 },
	{ "a sign alone", "-", false, 0 },
	{ "a point alone", ".", false, 0 },
	{ "two points", "1.2.3", false, 0 },
	{ "words", "N/A", false, 0 },
	{ "something behind it", "1 USD", false, 0 },
	{ "a plus", "+1", false, 0 },
	{ "an exponent without a number", "1e", false, 0 },
};

TEST(amounts_are_exact)
{
	for (size_t i = 0; i < ARRAY_LEN(amounts); i++) {
		int64_t units = -7;
		bool    is_ok;

		CASE(amounts[i].label);
		is_ok = cost_amount(str_from(amounts[i].text), &units);
		CHECK(is_ok == amounts[i].is_ok);
		CHECK(units == (is_ok ? amounts[i].units : -7));
	}
}

TEST(a_sum_is_rounded_once_half_away_from_zero)
{
	CHECK(cost_micro(0) == 0);
	CHECK(cost_micro(4999) == 0);
	CHECK(cost_micro(5000) == 1);
	CHECK(cost_micro(14999) == 1);
	CHECK(cost_micro(15000) == 2);
	CHECK(cost_micro(-4999) == 0);
	CHECK(cost_micro(-5000) == -1);
	CHECK(cost_micro(-15000) == -2);
	CHECK(cost_micro(INT64_MAX) == 922337203685478);
	CHECK(cost_micro(INT64_MIN) == -922337203685478);
}

static const struct {
	const char *label;
	int64_t     from, to, first, end; /* days in halves */
} overlaps[] = {
	{ "a whole day", 4, 6, 4, 6 },
	{ "half a day counts whole", 5, 6, 4, 6 },
	{ "until noon", 4, 5, 4, 6 },
	{ "over midnight: both", 5, 7, 4, 8 },
	{ "until midnight: not the next", 4, 8, 4, 8 },
	{ "no time at all", 5, 5, 4, 4 },
};

TEST(a_day_counts_when_it_overlaps)
{
	for (size_t i = 0; i < ARRAY_LEN(overlaps); i++) {
		struct cost_days days = cost_days_of(overlaps[i].from * DAY / 2, overlaps[i].to * DAY / 2);

		CASE(overlaps[i].label);
		CHECK(days.first_ms == overlaps[i].first * DAY / 2);
		CHECK(days.end_ms == overlaps[i].end * DAY / 2);
	}
}

TEST(days_are_written_and_read)
{
	char    text[16];
	int64_t ms = -1;

	CHECK(str_eq(cost_day_text(TODAY * DAY, text), STR("2024-10-04")));
	CHECK(cost_day_read(STR("2024-10-04"), &ms) && ms == TODAY * DAY);
	CHECK(cost_day_read(STR("2024-10-04T00:00:00Z"), &ms) && ms == TODAY * DAY);
	CHECK(!cost_day_read(STR("2024-1-4"), &ms));
	CHECK(!cost_day_read(STR("2024-13-04"), &ms));
	CHECK(!cost_day_read(STR(""), &ms));
}

TEST(a_day_is_complete_when_it_is_old_enough_and_two_refreshes_agree)
{
	int64_t           day = (TODAY - 3) * DAY, now = TODAY * DAY + 12 * HOUR;
	struct cost_known known = { .first_ms = day + 30 * HOUR,
		                    .recent_ms = day + 38 * HOUR,
		                    .whole_ms = day + 30 * HOUR };
	bool              yes = true, no = false;

	CASE("a day without costs, asked for twice, 8 h apart");
	CHECK(cost_is_complete(&known, day, NULL, now));
	CASE("not quite 8 h");
	known.recent_ms--;
	CHECK(!cost_is_complete(&known, day, NULL, now));
	CASE("a day with costs is as settled as its record says");
	CHECK(cost_is_complete(&known, day, &yes, now));
	CHECK(!cost_is_complete(&known, day, &no, now));
	CASE("24 h after its end, and not before");
	CHECK(cost_is_complete(&known, day, &yes, day + 2 * DAY));
	CHECK(!cost_is_complete(&known, day, &yes, day + 2 * DAY - 1));
}

TEST(a_day_that_the_short_refreshes_leave_out_needs_a_whole_one)
{
	int64_t           day = (TODAY - 20) * DAY, now = TODAY * DAY + 12 * HOUR;
	struct cost_known known = { .first_ms = now - 9 * HOUR, .recent_ms = now, .whole_ms = now - 9 * HOUR };

	CHECK(!cost_is_complete(&known, day, NULL, now));
	known.whole_ms = now;
	CHECK(cost_is_complete(&known, day, NULL, now));
}

TEST(what_nobody_could_ask_for_is_not_complete_however_old_it_is)
{
	int64_t           now = TODAY * DAY + 12 * HOUR, last = now - 60 * DAY;
	struct cost_known known = {
		.from_ms = cost_day(last) - 100 * DAY, .first_ms = last - 100 * DAY, .recent_ms = last, .whole_ms = last
	};
	bool no = false;

	CHECK(!cost_is_complete(&known, cost_day(last) + DAY, NULL, now));
	CHECK(!cost_is_complete(&known, cost_day(last), NULL, now)); /* it had not ended */
	CHECK(cost_is_complete(&known, cost_day(last) - DAY, NULL, now));
	CHECK(!cost_is_complete(&known, cost_day(last) - DAY, &no, now));
	CASE("before what was asked for");
	CHECK(cost_is_complete(&known, cost_day(known.from_ms), NULL, now));
	CHECK(!cost_is_complete(&known, cost_day(known.from_ms) - DAY, NULL, now));
}

TEST(an_hour_has_ten_pages_for_every_thousand_accounts)
{
	struct cost_budget b = { 0 };
	int64_t            now = TODAY * DAY;

	CHECK(cost_budget_left(&b, now) == 10);
	b.accounts = 1000;
	CHECK(cost_budget_whole(&b) == 10);
	b.accounts = 1001;
	CHECK(cost_budget_whole(&b) == 20);
	b.accounts = 1000;
	cost_budget_note(&b, 1000, 4, false, now);
	cost_budget_note(&b, 1000, 3, false, now + HOUR / 2);
	CHECK(cost_budget_left(&b, now + HOUR) == 3); /* an hour after the last of them */
	CHECK(cost_budget_left(&b, now + 3 * HOUR / 2 - 1) == 3);
	CHECK(cost_budget_left(&b, now + 3 * HOUR / 2) == 10);
	CASE("more than there were: an account cannot be asked for in parts");
	cost_budget_note(&b, 45, 12, false, now + 2 * HOUR);
	CHECK(cost_budget_left(&b, now + 2 * HOUR) == 0);
}

TEST(a_question_is_as_large_as_the_pages_that_are_left)
{
	struct cost_budget b = { .accounts = 1000 };

	CASE("as long as an answer has one page, nobody knows how much would fit");
	cost_budget_note(&b, 199 * 45, 1, false, 1);
	CHECK(cost_budget_fits(&b, 1, 45) > 199);
	CHECK(cost_budget_fits(&b, 0, 45) == 0);
	CASE("199 accounts had between 8 and 9 pages: 9 of them are enough for as many, one for none for certain");
	cost_budget_note(&b, 199 * 45, 9, false, 1);
	CHECK(cost_budget_fits(&b, 9, 45) >= 198 && cost_budget_fits(&b, 9, 45) <= 199);
	CHECK(cost_budget_fits(&b, 1, 45) == 0);
	CHECK(cost_budget_fits(&b, 5, 45) >= 99 && cost_budget_fits(&b, 5, 45) <= 100);
	CHECK(cost_budget_fits(&b, 5, 9) >= 497 && cost_budget_fits(&b, 5, 9) <= 500);
	CHECK(cost_budget_fits(&b, 0, 45) == 0);
	CASE("an answer on a part of a page says little");
	cost_budget_note(&b, 5 * 45, 1, false, 1);
	CHECK(cost_budget_fits(&b, 9, 45) >= 198 && cost_budget_fits(&b, 9, 45) <= 199);
	CASE("one that was cut off: half as many the next time");
	cost_budget_note(&b, 199 * 45, 10, true, 1);
	CHECK(cost_budget_fits(&b, 11, 45) >= 99 && cost_budget_fits(&b, 11, 45) <= 100);
	CASE("and more again when there is less on it");
	cost_budget_note(&b, 99 * 45, 1, false, 1);
	CHECK(cost_budget_fits(&b, 10, 45) >= 199);
}

TEST(what_is_not_asked_for_again_is_believed)
{
	int64_t           now = TODAY * DAY + 12 * HOUR;
	struct cost_known known = { .first_ms = now, .recent_ms = now, .whole_ms = now };
	bool              no = false;

	CHECK(cost_is_complete(&known, (TODAY - COST_WHOLE_DAYS - 1) * DAY, &no, now));
	CHECK(!cost_is_complete(&known, (TODAY - COST_WHOLE_DAYS) * DAY, &no, now));
}
