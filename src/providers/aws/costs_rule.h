/* costs_rule.h - what is decided about costs: exact amounts, days, and up to when they can be believed. Pure. */
#pragma once

#include "base/str.h"

enum { COST_DAY_MS = 86400000, COST_AGE_MS = COST_DAY_MS, COST_APART_MS = 8 * 3600000 };

/* Days that every refresh asks for, and that the first one of a day does: Cost Explorer is late by 24 to 72 hours, and
 * changes a month until its invoice is written. */
enum { COST_RECENT_DAYS = 7, COST_WHOLE_DAYS = 45 };

/* An amount in units of 1e-10, as Cost Explorer counts. More digits are rounded. False: no number, or too large. */
bool cost_amount(struct str text, int64_t *ret);

/* Units as millionths of a dollar, half away from zero. */
int64_t cost_micro(int64_t units);

/* The midnight before, UTC. */
int64_t cost_day(int64_t ms);

/* The days that overlap [from, to): midnights of the first one and of the one behind the last. None: both are the
 * same. */
struct cost_days {
	int64_t first_ms, end_ms;
};
struct cost_days cost_days_of(int64_t from_ms, int64_t to_ms);

/* "2026-11-15", and back. False: something else. */
struct str cost_day_text(int64_t day_ms, char ret[16]);
bool       cost_day_read(struct str text, int64_t *ret_ms);

/* --- pages are money --- */

/* So many in an hour for every thousand accounts that are begun. */
enum { COST_PAGES_AN_HOUR = 10, COST_BUDGET_ACCOUNTS = 1000, COST_HOUR_MS = 3600000 };

struct cost_budget {
	int64_t accounts; /* that are refreshed */
	int64_t last_ms;  /* when the newest page was read: an hour after it all may be spent anew */
	int64_t pages;    /* that were read since */
	int64_t rate;     /* pages for 1e9 days of an account, as far as answers have shown it */
};
int64_t cost_budget_whole(const struct cost_budget *b);
int64_t cost_budget_left(const struct cost_budget *b, int64_t now_ms);

/* How many accounts to ask for at once, about so many days, so that the answer has no more pages than these. 0: not
 * even one. */
int64_t cost_budget_fits(const struct cost_budget *b, int64_t pages, int64_t days);

/* What an answer has shown. is_cut: there were more pages, which were not read. */
void cost_budget_note(struct cost_budget *b, int64_t account_days, int64_t pages, bool is_cut, int64_t now_ms);

/* --- what can be believed --- */

/* What is known of an account. */
struct cost_known {
	int64_t from_ms;   /* the first day that was asked for */
	int64_t first_ms;  /* asked for the first time */
	int64_t recent_ms; /* the last refresh that had its last COST_RECENT_DAYS in it */
	int64_t whole_ms;  /* the same of COST_WHOLE_DAYS */
};

/* Can the sum of this day be believed? It ended at least 24 h ago, and two refreshes at least 8 h apart found the same.
 * is_settled: of a day that has a record, whether they did; a day without one (NULL) costs nothing since it is asked
 * for. What was older than COST_WHOLE_DAYS when it was asked for is not asked for again, and believed. What nobody
 * could ask for is not, however old it is. */
bool cost_is_complete(const struct cost_known *known, int64_t day_ms, const bool *is_settled, int64_t now_ms);
