/* SPDX-License-Identifier: Apache-2.0 */
/* costs_rule.c - see costs_rule.h. */
#include "providers/aws/costs_rule.h"

#include <stdio.h>

#include "base/clock.h"

#define RATE_DAYS INT64_C(1000000000)
enum { DECIMALS = 10, MICRO_PER_UNITS = 10000, EXPONENT_MAX = 40 };

/* "E-7" behind the digits; nothing is 0. */
static bool read_exponent(struct str text, int64_t *ret)
{
	*ret = 0;
	if (!text.n)
		return true;
	if (text.p[0] != 'E' && text.p[0] != 'e')
		return false;
	text = str_skip(text, 1);
	if (text.n && text.p[0] == '+')
		text = str_skip(text, 1);
	return str_to_int(text, -EXPONENT_MAX, EXPONENT_MAX, ret);
}

/* digits * 10^power, rounded half up. */
static bool scale(int64_t digits, int64_t power, int64_t *ret)
{
	for (; power > 0 && digits; power--)
		if (__builtin_mul_overflow(digits, 10, &digits))
			return false;
	for (; power < -1 && digits; power++)
		digits /= 10;
	*ret = power < 0 ? digits / 10 + (digits % 10 >= 5) : digits;
	return true;
}

bool cost_amount(struct str text, int64_t *ret)
{
	bool    is_negative = text.n && text.p[0] == '-', has_point = false, has_digit = false;
	int64_t digits = 0, behind = 0, exponent, units;
	size_t  i = is_negative;

	for (; i < text.n && (char_is_of(text.p[i], "0-9") || (text.p[i] == '.' && !has_point)); i++) {
		if (text.p[i] == '.') {
			has_point = true;
			continue;
		}
		has_digit = true;
		if (has_point && behind > DECIMALS) /* the first that is not kept decides how the last is rounded */
			continue;
		if (__builtin_mul_overflow(digits, 10, &digits) ||
		    __builtin_add_overflow(digits, text.p[i] - '0', &digits))
			return false;
		behind += has_point;
	}
	if (!has_digit || !read_exponent(str_skip(text, i), &exponent) ||
	    !scale(digits, DECIMALS - behind + exponent, &units))
		return false;
	*ret = is_negative ? -units : units;
	return true;
}

int64_t cost_micro(int64_t units)
{
	int64_t rest = units % MICRO_PER_UNITS, half = MICRO_PER_UNITS / 2;

	return units / MICRO_PER_UNITS + (rest >= half) - (rest <= -half);
}

int64_t cost_day(int64_t ms)
{
	return ms - ms % COST_DAY_MS;
}

struct cost_days cost_days_of(int64_t from_ms, int64_t to_ms)
{
	int64_t first_ms = cost_day(from_ms);

	if (to_ms <= from_ms)
		return (struct cost_days){ first_ms, first_ms };
	return (struct cost_days){ first_ms, cost_day(to_ms - 1) + COST_DAY_MS };
}

struct str cost_day_text(int64_t day_ms, char ret[16])
{
	char whole[ISO_TIME_SIZE];

	(void)iso_time(day_ms / 1000, whole);
	(void)snprintf(ret, 16, "%.10s", whole);
	return str_from(ret);
}

bool cost_day_read(struct str text, int64_t *ret_ms)
{
	char    whole[ISO_TIME_SIZE];
	int64_t sec;

	if (text.n < 10) /* it may have a time behind it, which is midnight */
		return false;
	(void)snprintf(whole, sizeof(whole), "%.10sT00:00:00Z", text.p);
	if (!iso_time_parse(str_from(whole), &sec))
		return false;
	*ret_ms = sec * 1000;
	return true;
}

int64_t cost_budget_whole(const struct cost_budget *b)
{
	int64_t thousands = (b->accounts + COST_BUDGET_ACCOUNTS - 1) / COST_BUDGET_ACCOUNTS;

	return COST_PAGES_AN_HOUR * (thousands ? thousands : 1);
}

int64_t cost_budget_left(const struct cost_budget *b, int64_t now_ms)
{
	int64_t left = cost_budget_whole(b) - (now_ms - b->last_ms < COST_HOUR_MS ? b->pages : 0);

	return left > 0 ? left : 0;
}

int64_t cost_budget_fits(const struct cost_budget *b, int64_t pages, int64_t days)
{
	if (pages <= 0)
		return 0;
	return !b->rate ? INT64_MAX : (pages - 1) * RATE_DAYS / (b->rate * days); /* the last page is a part of one */
}

void cost_budget_note(struct cost_budget *b, int64_t account_days, int64_t pages, bool is_cut, int64_t now_ms)
{
	int64_t least = (pages - 1) * RATE_DAYS / account_days, most = pages * RATE_DAYS / account_days;

	if (now_ms - b->last_ms >= COST_HOUR_MS)
		b->pages = 0;
	b->pages += pages;
	b->last_ms = now_ms;
	if (is_cut) /* by how much nobody knows */
		least = most = 2 * most;
	b->rate = b->rate < least ? least : b->rate > most ? most : b->rate;
}

bool cost_is_complete(const struct cost_known *known, int64_t day_ms, const bool *is_settled, int64_t now_ms)
{
	int64_t first_ms = known->first_ms > day_ms ? known->first_ms : day_ms;
	bool    is_recent = day_ms >= cost_day(known->recent_ms) - (int64_t)COST_RECENT_DAYS * COST_DAY_MS;
	int64_t asked_ms = is_recent ? known->recent_ms : known->whole_ms;

	if (day_ms + COST_DAY_MS + COST_AGE_MS > now_ms || day_ms < known->from_ms ||
	    day_ms + COST_DAY_MS > known->recent_ms)
		return false;
	if (day_ms < cost_day(known->whole_ms) - (int64_t)COST_WHOLE_DAYS * COST_DAY_MS)
		return true;
	return is_settled ? *is_settled : asked_ms - first_ms >= COST_APART_MS;
}
