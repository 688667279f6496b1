/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_watch_job.c - time and money: what follows when a lease reaches a threshold, its end or its budget.
 *
 * Two ways lead to the same rule (domain/lease_watch.c): a timer of the lease, exact to the second, with the cost that is known; and the
 * monitor's pass, which asks for the cost of every lease that is in use.
 *
 * Always true:
 *   1. The lease is read again in the transaction that decides; what was read before served only to ask for its cost. So a change that
 *      came in between is never overwritten, and one that has ended is left alone.                        [watch_again()]
 *   2. What is told and what makes that it is not told again are one commit: each crossing is told once.         [act()]
 *   3. A figure never becomes older: one that is complete up to an earlier time than the known one is not used.
 *
 * The pass asks for a page of costs without a transaction, then stores all figures that lead to nothing in one transaction, and each that
 * leads to something in one of its own.
 */
#include <assert.h>

#include "base/arena.h"
#include "base/str.h"
#include "domain/cloud.h"
#include "service/lease_flow.h"
#include "service/lease_ops.h"
#include "service/lease_passes.h"
#include "service/lease_records.h"
#include "service/leases.h"
#include "store/store.h"

enum { WATCH_PAGE = 50, DAY_MS = DAY_SEC * 1000 };

static const struct actor monitor = { STR_INIT("monitor"), STR_INIT("") };

const struct queue lease_queues[LEASE_QUEUE_COUNT] = {
	{ .name = LEASES_QUEUE, .handle = lease_timer_handle, .tries = 5 },
	{ .name = LINE_QUEUE, .handle = line_handle, .tries = 5 },
};
const struct route lease_routes[LEASE_ROUTE_COUNT] = {
	{ EVENT_LEASE_TIMER_DUE, LEASES_QUEUE },
	{ EVENT_ACCOUNT_FREED, LINE_QUEUE },
	{ EVENT_LINE_MOVED, LINE_QUEUE },
	{ "LeaseQueued", LINE_QUEUE },
};

/* --- what follows --- */

static bool follows_something(const struct lease_watch *w)
{
	return w->is_over_budget || w->is_expired || w->freezes || w->alerts_budget || w->alerts_duration ||
	       w->alerts_projection;
}

static enum rc end_it(struct session *s, const struct lease_watch *w, struct err *e)
{
	enum lease_event    event = w->is_over_budget ? LEASE_ON_EXCEED : LEASE_ON_EXPIRE;
	struct lease_ending end = { .event = event,
		                    .reason_json = reason_of_end(session_arena(s), w->lease, event),
		                    .by = &monitor };
	bool                has_account;
	enum rc             rc = lease_has_account(s, w->lease, &has_account, e);

	if (rc)
		return rc;
	if (has_account)
		end.clean_reason = STR("LEASE_TERMINATION");
	rc = lease_tell(s, w->is_over_budget ? NEWS_LEASE_OVER_BUDGET : NEWS_LEASE_EXPIRED, w->lease, NULL, &monitor,
	                e);
	return rc ? rc : lease_finish(s, w->lease, &end, e);
}

static enum rc alert(struct session *s, const struct lease_watch *w, struct err *e)
{
	struct lease_fact fact = { .budget = w->alert_budget,
		                   .duration = w->alert_duration,
		                   .projected = w->projected };
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
	struct lease_fact fact = { 0 };
	enum rc           rc;

	fact.freeze_reason = w->freezes_by_budget
	                             ? reason_of_budget_freeze(session_arena(s), w->lease, &w->freeze_budget)
	                             : reason_of_duration_freeze(session_arena(s), w->lease, &w->freeze_duration);
	rc = lease_tell(s, NEWS_LEASE_FREEZING_ALERT, w->lease, &fact, &monitor, e);
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
	if (!w->freezes)
		lease_store(s, w->lease);
	else if ((rc = freeze_it(s, w, e)))
		return rc;
	return lease_arm(s, w->lease, e);
}

/* --- by timer --- */

static bool is_watched(const struct lease *l)
{
	return l->status == LEASE_ACTIVE || l->status == LEASE_FROZEN;
}

enum rc lease_timer_handle(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	struct str         uuid = d->event.subject;
	struct lease       l;
	struct lease_watch w = { .lease = &l, .now = session_now(s) };
	enum rc            rc;

	(void)arg;
	(void)str_cut(&uuid, '/');
	rc = session_get(s, &lease_type, uuid, &l, NULL);
	if (rc == RC_NOT_FOUND || (!rc && !is_watched(&l)))
		return RC_OK; /* it has ended meanwhile */
	if (rc)
		return err_set(e, rc, "lease %.*s cannot be read", STR_ARG(uuid));
	w.cost = l.cost;
	w.cost_at_ms = l.cost_at_ms;
	lease_watch(&w);
	return act(s, &w, e);
}

/* --- by the monitor's pass --- */

struct watched {
	struct str uuid, account_id;
	int64_t    start_ms;
	bool       has_cost;
	int64_t    cost, cost_at_ms;
	bool       is_done;
};

struct watch_page {
	struct watched items[WATCH_PAGE];
	size_t         count, at; /* at: the one that has a transaction of its own */
	bool           projects;
};

struct watch_sums {
	int64_t watched, acted, without_cost;
	enum rc rc; /* the first failure */
};

/* Since midnight before its start: days are what costs are known for. */
static void ask_cost(const struct lease_pass *p, struct watched *item)
{
	int64_t            now_ms = clock_now(p->clock).ms;
	int64_t            from_ms = item->start_ms - item->start_ms % DAY_MS;
	int64_t            oldest_ms = now_ms - ((int64_t)CLOUD_SPEND_DAYS - 1) * DAY_MS;
	struct cloud_spend spend;

	if (from_ms < oldest_ms)
		from_ms = oldest_ms;
	item->has_cost = p->costs->ops->spend(p->costs, item->account_id, from_ms, now_ms > from_ms ? now_ms : from_ms,
	                                      &spend, NULL) == RC_OK;
	if (item->has_cost) {
		item->cost = spend.micro_usd;
		item->cost_at_ms = spend.complete_until_ms;
	}
}

/* The lease as it is now, and what follows. *ret_is_there is false when it has ended meanwhile. */
static enum rc watch_again(struct session *s, const struct watch_page *page, const struct watched *item,
                           struct lease *l, struct lease_watch *w, bool *ret_is_there, struct err *e)
{
	enum rc rc = session_get(s, &lease_type, item->uuid, l, NULL);

	*ret_is_there = !rc && is_watched(l); /* then it still has the account that was asked about */
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "lease %.*s cannot be read", STR_ARG(item->uuid));
	if (!*ret_is_there)
		return RC_OK;
	*w = (struct lease_watch){ .lease = l,
		                   .cost = l->cost,
		                   .cost_at_ms = l->cost_at_ms,
		                   .now = session_now(s),
		                   .projects = page->projects };
	if (item->has_cost && item->cost_at_ms >= l->cost_at_ms) {
		w->cost = item->cost;
		w->cost_at_ms = item->cost_at_ms;
	}
	lease_watch(w);
	return RC_OK;
}

static enum rc store_quiet(struct session *s, void *arg, struct err *e)
{
	struct watch_page *page = arg;

	for (size_t i = 0; i < page->count; i++) {
		struct watched    *item = &page->items[i];
		struct lease       l;
		struct lease_watch w;
		bool               is_there;
		enum rc            rc = watch_again(s, page, item, &l, &w, &is_there, e);

		if (rc)
			return rc;
		item->is_done = !is_there || !follows_something(&w);
		if (is_there && item->is_done)
			lease_store(s, &l);
	}
	return RC_OK;
}

static enum rc act_on_one(struct session *s, void *arg, struct err *e)
{
	struct watch_page *page = arg;
	struct lease       l;
	struct lease_watch w;
	bool               is_there;
	enum rc            rc = watch_again(s, page, &page->items[page->at], &l, &w, &is_there, e);

	return rc || !is_there ? rc : act(s, &w, e);
}

static void note_failure(struct watch_sums *sums, enum rc rc)
{
	if (!sums->rc)
		sums->rc = rc;
}

static void watch_page(const struct lease_pass *p, struct watch_page *page, struct arena *a, struct watch_sums *sums,
                       struct err *e)
{
	enum rc rc = store_run(p->store, store_quiet, page, a, e);

	if (rc) {
		note_failure(sums, rc);
		return;
	}
	for (page->at = 0; page->at < page->count; page->at++) {
		if (page->items[page->at].is_done)
			continue;
		rc = store_run(p->store, act_on_one, page, a, e); /* e keeps the first */
		if (rc)
			note_failure(sums, rc);
		else
			sums->acted++;
	}
}

static enum rc visit(const struct lease_pass *p, const struct page *leases, struct arena *a, void *arg, struct err *e)
{
	struct watch_sums *sums = arg;
	struct watch_page *page = arena_alloc(a, sizeof(*page));

	assert(leases->count <= WATCH_PAGE);
	page->projects = p->projects;
	for (page->count = 0; page->count < leases->count; page->count++) {
		const struct lease *l = page_record(leases, &lease_type, page->count);
		struct watched     *item = &page->items[page->count];

		*item = (struct watched){ .uuid = l->uuid, .account_id = l->account_id, .start_ms = l->start_ms };
		ask_cost(p, item);
		sums->without_cost += !item->has_cost;
	}
	sums->watched += (int64_t)page->count;
	watch_page(p, page, a, sums, e);
	return RC_OK;
}

enum rc pass_watch_leases(const struct lease_pass *p, struct pass_result *ret, struct err *e)
{
	static const enum lease_status statuses[] = { LEASE_ACTIVE, LEASE_FROZEN };
	struct watch_sums              sums = { 0 };
	enum rc                        rc = RC_OK;

	for (size_t i = 0; !rc && i < ARRAY_LEN(statuses); i++) {
		struct query q = { .type = &lease_type,
			           .index = LEASE_BY_STATUS,
			           .hash = value_int(statuses[i]),
			           .limit = WATCH_PAGE };

		rc = lease_walk(p, &q, visit, &sums, e);
	}
	pass_count(ret, "watched", sums.watched, METRIC__COUNT);
	pass_count(ret, "acted", sums.acted, METRIC__COUNT);
	pass_count(ret, "without_cost", sums.without_cost, METRIC__COUNT);
	return rc ? rc : sums.rc;
}
