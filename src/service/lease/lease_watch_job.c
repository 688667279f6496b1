/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_watch_job.c - time and money: what happens when a lease reaches a threshold, its end or its budget.
 *
 * Two ways lead to the same rule (domain/lease_watch.c): a timer of the lease, exact to the second, with the known
 * cost; and the monitor's pass, which asks for the cost of every lease in use.
 *
 * Always true:
 *   1. The lease is read again in the transaction that decides; what was read before served only to ask for its cost.
 *      So a change in between is never overwritten, and a lease that has ended is left alone. [watch_again()]
 *   2. An alert and the mark that it was sent are one commit: each crossing is told once. [act()]
 *   3. A figure never becomes older: one that is complete up to an earlier time than the known one is not used.
 *   4. The cost of a lease is all of it. Costs can be asked for CLOUD_SPEND_DAYS back; in time before that, the sum of
 *      the oldest is kept in the lease, and only the rest is asked for. [settle(), make_up()]
 *
 * The pass asks for a page of costs without a transaction, then stores all figures without consequences in one
 * transaction, and each of the others in one of its own.
 */
#include <assert.h>

#include "base/arena.h"
#include "base/str.h"
#include "domain/ports/cloud.h"
#include "kernel/defect.h"
#include "service/lease/lease_private.h"
#include "service/lease/lease_passes.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"
#include "store/store.h"

enum {
	WATCH_PAGE = 50,
	DAY_MS = DAY_SEC * 1000,
	/* Costs of so many days are settled up to so many days ago: both far from what changes late, and the first far
	 * from what can no longer be asked for. */
	SETTLE_DAYS = 300,
	SETTLED_DAYS = 200,
};

static const struct actor monitor = { STR_INIT("monitor"), STR_INIT("") };

/* --- what follows --- */

static enum rc end_it(struct session *s, const struct lease_watch *w, struct err *e)
{
	enum lease_event    event = w->is_over_budget ? LEASE_ON_EXCEED : LEASE_ON_EXPIRE;
	struct lease_ending end = { .event = event, .reason_json = reason_of_end(session_arena(s), w), .by = &monitor };
	bool                has_account;
	enum rc             rc = lease_has_account(s, w->lease, &has_account, e);

	if (rc)
		return rc;
	if (has_account)
		end.clean_reason = STR(CLEAN_AFTER_LEASE);
	rc = lease_tell(s, w->is_over_budget ? NEWS_LEASE_OVER_BUDGET : NEWS_LEASE_EXPIRED, w->lease, NULL, &monitor,
	                e);
	return rc ? rc : lease_finish(s, w->lease, &end, e);
}

static enum rc alert(struct session *s, const struct lease_watch *w, struct err *e)
{
	struct lease_fact fact = { .budget = w->alert_budget, .duration = w->alert_duration };
	enum rc           rc = RC_OK;

	if (w->alerts_budget)
		rc = lease_tell(s, NEWS_LEASE_BUDGET_ALERT, w->lease, &fact, &monitor, e);
	if (!rc && w->alerts_duration)
		rc = lease_tell(s, NEWS_LEASE_DURATION_ALERT, w->lease, &fact, &monitor, e);
	if (!rc && w->alerts_projection)
		rc = lease_tell(s, NEWS_LEASE_PROJECTION_ALERT, w->lease, &fact, &monitor, e);
	return rc;
}

static enum rc freeze_it(struct session *s, const struct lease_watch *w, struct err *e)
{
	struct lease_fact fact = { .freeze_reason = reason_of_freeze(session_arena(s), w) };
	enum rc           rc = lease_tell(s, NEWS_LEASE_FREEZING_ALERT, w->lease, &fact, &monitor, e);

	return rc ? rc : lease_freeze_for(s, w->lease, fact.freeze_reason, &monitor, e);
}

/* Stores the lease with its new figures, together with all that follows. */
static enum rc act(struct session *s, const struct lease_watch *w, struct err *e)
{
	enum rc rc;

	if (w->is_over_budget || w->is_expired)
		return end_it(s, w, e);
	if ((rc = alert(s, w, e)))
		return rc;
	if (HAS_DEFECT(TELL_AGAIN) && !w->freezes)
		return RC_OK;
	if (!w->freezes)
		lease_store(s, w->lease);
	else if ((rc = freeze_it(s, w, e)))
		return rc;
	return lease_arm(s, w->lease, e);
}

/* --- by timer --- */

struct watched {
	struct str          uuid;
	bool                projects, has_cost;
	enum overrun_action on_projected, on_estimated;
	struct cloud_spend  spend; /* if it has_cost; with what is settled */
	int64_t             settled_until_ms, settled_cost;
	bool                is_done; /* by the monitor's pass */
};

/* The lease as it is now, and what follows. *ret_is_there is false when it has ended meanwhile. */
static enum rc watch_again(struct session *s, const struct watched *item, struct lease *l, struct lease_watch *w,
                           bool *ret_is_there, struct err *e)
{
	enum rc rc = session_find(s, &lease_type, item->uuid, l, ret_is_there, e);

	if (rc || !*ret_is_there)
		return rc;
	*ret_is_there = l->status == LEASE_ACTIVE || l->status == LEASE_FROZEN; /* then it still has that account */
	if (!*ret_is_there)
		return RC_OK;
	*w = (struct lease_watch){ .lease = l,
		                   .cost = l->cost,
		                   .cost_at_ms = l->cost_at_ms,
		                   .now = session_now(s),
		                   .projects = item->projects,
		                   .on_projected = item->on_projected,
		                   .on_estimated = item->on_estimated };
	if (item->has_cost && item->spend.complete_until_ms >= l->cost_at_ms) {
		w->cost = item->spend.micro_usd;
		w->cost_at_ms = item->spend.complete_until_ms;
		l->settled_until_ms = item->settled_until_ms;
		l->settled_cost = item->settled_cost;
	}
	lease_watch(w);
	return RC_OK;
}

/* arg is a struct watched. */
static enum rc act_on(struct session *s, void *arg, struct err *e)
{
	struct lease       l;
	struct lease_watch w;
	bool               is_there;
	enum rc            rc = watch_again(s, arg, &l, &w, &is_there, e);

	return rc || !is_there ? rc : act(s, &w, e);
}

/* With the cost that is known. */
static enum rc on_timer(struct session *s, const struct delivery *d, void *arg UNUSED, struct err *e)
{
	struct watched item = { .uuid = d->event.subject };

	(void)str_cut(&item.uuid, '/'); /* "lease" */
	return act_on(s, &item, e);
}

const struct queue leases_queue = { .name = LEASES_QUEUE, .handle = on_timer, .tries = 5 };

/* --- by the monitor's pass --- */

struct watch_page {
	struct watched items[WATCH_PAGE];
	size_t         count;
};

struct watch_sums {
	int64_t watched, acted, without_cost;
	enum rc rc; /* the first failure */
};

/* For the passes to come, before it can no longer be asked for; when it fails, the next one tries again. */
static void settle(struct costs *costs, const struct lease *l, int64_t now_ms, struct watched *item)
{
	int64_t            until_ms = now_ms - now_ms % DAY_MS - SETTLED_DAYS * (int64_t)DAY_MS;
	struct cloud_spend old;

	if (costs->ops->spend(costs, l->account_id, item->settled_until_ms, until_ms, &old, NULL) ||
	    old.complete_until_ms < until_ms)
		return;
	item->settled_cost += old.micro_usd;
	item->settled_until_ms = until_ms;
}

/* What was before that day can no longer be had: as much as it must have been, so that the cost does not fall. */
static void make_up(const struct lease *l, int64_t from_ms, struct watched *item)
{
	int64_t before = l->cost - item->spend.micro_usd;

	item->settled_until_ms = from_ms;
	if (before > item->settled_cost)
		item->settled_cost = before;
}

/* From the midnight before its start: costs are known by day. */
static void ask_cost(const struct pass *p, const struct lease *l, struct watched *item)
{
	struct costs *costs = p->leases->cloud.costs;
	int64_t       now_ms = clock_now(p->clock).ms;
	int64_t       oldest_ms = now_ms - now_ms % DAY_MS - ((int64_t)CLOUD_SPEND_DAYS - 1) * DAY_MS, from_ms;

	item->settled_cost = l->settled_cost;
	item->settled_until_ms = l->settled_until_ms ? l->settled_until_ms : l->start_ms - l->start_ms % DAY_MS;
	from_ms = item->settled_until_ms > oldest_ms ? item->settled_until_ms : oldest_ms;
	item->has_cost = costs->ops->spend(costs, l->account_id, from_ms, now_ms > from_ms ? now_ms : from_ms,
	                                   &item->spend, NULL) == RC_OK;
	if (!item->has_cost)
		return;
	if (item->settled_until_ms < from_ms)
		make_up(l, from_ms, item);
	item->spend.micro_usd += item->settled_cost;
	if (now_ms - item->settled_until_ms > SETTLE_DAYS * (int64_t)DAY_MS)
		settle(costs, l, now_ms, item);
}

static enum rc store_quiet(struct session *s, void *arg, struct err *e)
{
	struct watch_page *page = arg;

	for (size_t i = 0; i < page->count; i++) {
		struct watched    *item = &page->items[i];
		struct lease       l;
		struct lease_watch w;
		bool               is_there;
		enum rc            rc = watch_again(s, item, &l, &w, &is_there, e);

		if (rc)
			return rc;
		item->is_done = !is_there || !(w.is_over_budget || w.is_expired || w.freezes || w.alerts_budget ||
		                               w.alerts_duration || w.alerts_projection);
		if (is_there && item->is_done)
			lease_store(s, &l);
	}
	return RC_OK;
}

static void watch_page(const struct pass *p, struct watch_page *page, struct arena *a, struct watch_sums *sums,
                       struct err *e)
{
	enum rc rc = store_run(p->store, store_quiet, page, a, e);

	sums->rc = sums->rc ? sums->rc : rc;
	for (size_t i = 0; !rc && i < page->count; i++) {
		enum rc acted;

		if (page->items[i].is_done)
			continue;
		acted = store_run(p->store, act_on, &page->items[i], a, e); /* e keeps the first */
		sums->rc = sums->rc ? sums->rc : acted;
		sums->acted += !acted;
	}
}

/* The words were checked when the policy was read. */
static enum overrun_action overrun_action(struct str word)
{
	int action = str_word(word, overrun_action_names, OVERRUN_ACTION_COUNT);

	return action < OVERRUN_ACTION_COUNT ? (enum overrun_action)action : OVERRUN_ALERT;
}

static enum rc visit(const struct pass *p, const struct page *leases, struct arena *a, void *arg, struct err *e)
{
	struct watch_sums   *sums = arg;
	struct watch_page   *page = arena_alloc(a, sizeof(*page));
	const struct policy *policy = p->leases->policy(p->leases->policy_arg);
	/* Read now: asking for the costs takes longer than a policy that was replaced stays valid. */
	enum overrun_action on_projected = overrun_action(policy->on_projected_overrun);
	enum overrun_action on_estimated = overrun_action(policy->on_estimated_overrun);

	assert(leases->count <= WATCH_PAGE);
	for (page->count = 0; page->count < leases->count; page->count++) {
		const struct lease *l = page_record(leases, &lease_type, page->count);
		struct watched     *item = &page->items[page->count];

		*item = (struct watched){ .uuid = l->uuid,
			                  .projects = p->leases->projects,
			                  .on_projected = on_projected,
			                  .on_estimated = on_estimated };
		ask_cost(p, l, item);
		sums->without_cost += !item->has_cost;
	}
	sums->watched += (int64_t)page->count;
	watch_page(p, page, a, sums, e);
	return RC_OK;
}

enum rc pass_watch_leases(const struct pass *p, struct pass_result *ret, struct err *e)
{
	static const int  statuses[] = { LEASE_ACTIVE, LEASE_FROZEN };
	struct watch_sums sums = { 0 };
	struct query      q = { .type = &lease_type, .index = LEASE_BY_STATUS, .limit = WATCH_PAGE };
	enum rc           rc = lease_walk(p, q, statuses, ARRAY_LEN(statuses), visit, &sums, e);

	pass_count(ret, "watched", sums.watched, METRIC__COUNT);
	pass_count(ret, "acted", sums.acted, METRIC__COUNT);
	pass_count(ret, "without_cost", sums.without_cost, METRIC__COUNT);
	return rc ? rc : sums.rc;
}
