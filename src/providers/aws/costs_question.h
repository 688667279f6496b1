/* costs_question.h - one question to Cost Explorer: what some accounts spent on some days, by service. Nothing is
 * stored. Blocks. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "providers/aws/costs_rule.h"

enum { COST_ACCOUNTS_MAX = 199 }; /* in one question */

struct cost_item {
	struct str        service;
	int64_t           units;
	struct cost_item *next; /* by name */
};

/* What one account spent on one day. */
struct cost_cell {
	int64_t           units;
	struct cost_item *items;
};

struct cost_question {
	struct aws_caller *caller;
	struct str         leave_out; /* record types, separated by commas */
	const struct str  *accounts;
	size_t             count;
	struct cost_days   days;
	struct arena      *arena;     /* of the answer */
	int64_t            pages_max; /* to read; 0: all */

	struct cost_cell *cells;  /* the answer: account by account, day by day */
	int64_t           pages;  /* that were answered, also when it failed */
	bool              is_cut; /* RC_LIMITED, since it has more of them than may be read */
};

/* All pages; begun again once when the figures changed in between. RC_CORRUPT: not in USD, or no number. */
MUST_CHECK enum rc cost_question_ask(struct cost_question *q, struct err *e);

struct cost_cell *cost_question_cell(const struct cost_question *q, size_t account, int64_t day_ms);
int64_t           cost_day_count(struct cost_days days);
