/* costs.h - the costs port by Cost Explorer: asked for all accounts together, rarely, by one node; answered from what
 * is stored. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct aws_costs_options {
	struct aws_caller  *caller; /* of the management account */
	struct store       *store;
	const struct clock *clock;
	struct str leave_out; /* record types that are no costs, separated by commas: "Credit,Refund"; empty: none */

	/* The accounts of the pool, in the arena; NULL: only those that were asked for. */
	enum rc (*list)(void *arg, struct arena *a, struct str **ret, size_t *ret_count, struct err *e);
	void   *list_arg;
	int64_t refresh_ms; /* figures that are younger are not asked for; 0: all are */
};
struct aws_costs *aws_costs_new(const struct aws_costs_options *o);
void              aws_costs_free(struct aws_costs *c);
struct costs     *aws_costs_port(struct aws_costs *c);

/* Ask for what may have changed, of every account that is in the pool or was asked for in the last weeks, and is due
 * (is_wanted: or not). Those that waited longest come first, as far as the pages of this hour go (struct cost_budget);
 * the rest waits for the next one. For one node at a time. Blocks. */
struct aws_costs_done {
	int64_t accounts, questions, pages, changed_days;
	int64_t waiting;  /* accounts that were due and are left for the next hour */
	bool    is_spent; /* there are no pages left in this one */
};
enum { AWS_COSTS_LOOK_SEC = 600 }; /* how often it is looked whether something is due */
MUST_CHECK enum rc aws_costs_refresh(struct aws_costs *c, bool is_wanted, struct aws_costs_done *ret, struct err *e);

struct aws_costs_state {
	int64_t    refreshed_ms; /* 0: never */
	int64_t    accounts;
	int64_t    complete_until_ms; /* of the account that is furthest behind; 0: there is none */
	struct str behind;            /* which one; in the arena */
	int64_t    pages_this_month;  /* each costs USD 0.01 */
};
MUST_CHECK enum rc aws_costs_look(struct aws_costs *c, struct arena *a, struct aws_costs_state *ret, struct err *e);
