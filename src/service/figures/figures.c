/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figures.c - gauges from indexes, counters and durations from the log of events.
 *
 * Whatever happens to leases and accounts is already an event. So nothing is counted where it happens: every node reads
 * the log, by a row of `counted` for each type, and all nodes have the same figures. A dashboard takes the largest of
 * them, not the sum.
 *
 * Always true: each node counts an event once, because what a read found is added only after the read. [apply()]
 *
 * After a restart counters start from 0, as Prometheus expects. At most LOOK events of a type are counted in a refresh;
 * the next one counts the rest.
 */
#include "service/figures/figures.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "domain/account.h"
#include "domain/lease.h"
#include "kernel/event.h"
#include "service/hold/holds.h"
#include "service/record/lease_records.h"
#include "store/store.h"

enum { LOOK = 200, ACCOUNTS_SHOWN = 500, MICROS = 1000000 };

enum span { NO_SPAN, SINCE_REQUEST, SINCE_CLEANUP };

static const struct {
	const char *type;
	enum metric counter;
	const char *labels;
	enum span   span;
	enum metric histogram;
} counted[] = {
	{ "LeaseRequested", METRIC_LEASE_REQUESTS, "" },
	{ "LeaseApproved", METRIC_LEASE_DECISIONS, "approved", SINCE_REQUEST, METRIC_LEASE_APPROVAL_TIME },
	{ "LeaseDenied", METRIC_LEASE_DECISIONS, "denied" },
	{ "LeaseWithdrawn", METRIC_LEASE_DECISIONS, "withdrawn" },
	{ "LeaseTerminated", METRIC_LEASE_ENDS, "" },
	{ "LeaseProvisioningFailed", METRIC_LEASE_FAILURES, "" },
	{ "LeaseBudgetExceeded", METRIC_BUDGET_INCIDENTS, "exceeded" },
	{ "LeaseBudgetThresholdAlert", METRIC_BUDGET_INCIDENTS, "threshold" },
	{ "LeaseFreezingThresholdAlert", METRIC_BUDGET_INCIDENTS, "freeze" },
	{ "LeaseProjectedSpendAlert", METRIC_BUDGET_INCIDENTS, "projected" },
	{ "AccountCleanupSucceeded", METRIC_ACCOUNT_CLEANUPS, "succeeded", SINCE_CLEANUP, METRIC_ACCOUNT_CLEANUP_TIME },
	{ "AccountCleanupFailed", METRIC_ACCOUNT_CLEANUPS, "failed", SINCE_CLEANUP, METRIC_ACCOUNT_CLEANUP_TIME },
	{ "AccountDriftDetected", METRIC_ACCOUNT_DRIFTS, "" },
	{ EVENT_HOLD_CREATED, METRIC_HOLDS, "created" },
	{ EVENT_HOLD_CLOSED, METRIC_HOLDS, "closed" },
	{ EVENT_HOLD_EXTENDED, METRIC_HOLDS, "extended" },
	{ EVENT_BYPASS_SET, METRIC_HOLDS, "bypassed" },
	{ "AccountQuarantined", METRIC_ACCOUNTS_ASIDE, "quarantined" },
	{ "AccountEjected", METRIC_ACCOUNTS_ASIDE, "ejected" },
};

struct figures {
	struct store   *store;
	struct metrics *metrics;
	bool            counts_ended;
	int64_t         since_ms;
	struct arena    arenas[2]; /* of the ids of the last events: they take turns */
	int             turn;
	struct str      last_ids[ARRAY_LEN(counted)];

	struct metric_series *shown[ACCOUNTS_SHOWN]; /* of accounts that had a lease at the last refresh */
	size_t                shown_count;
};

struct reading {
	const struct figures *figures;
	int64_t               leases[LEASE_STATUS_COUNT], in_line, accounts[ACCOUNT_STATUS_COUNT], open_holds;
	int64_t               spend, budget;
	size_t                lent;
	struct {
		struct str account;
		int64_t    micro_usd;
	} costs[ACCOUNTS_SHOWN];
	struct {
		size_t     count;
		double     seconds[LOOK]; /* how long it took; negative: not known */
		struct str last_id;
	} events[ARRAY_LEN(counted)];
};

struct figures *figures_new(struct store *store, struct metrics *metrics, bool counts_ended, int64_t since_ms)
{
	struct figures *f = mem_new(struct figures);

	f->store = store;
	f->metrics = metrics;
	f->counts_ended = counts_ended;
	f->since_ms = since_ms;
	for (size_t i = 0; i < ARRAY_LEN(counted); i++) /* so that a rate has its 0 to begin with */
		metrics_add(metrics, counted[i].counter, counted[i].labels, 0);
	return f;
}

void figures_free(struct figures *f)
{
	if (!f)
		return;
	arena_fini(&f->arenas[0]);
	arena_fini(&f->arenas[1]);
	free(f);
}

/* --- reading --- */

static enum rc read_costs(struct session *s, enum lease_status status, struct reading *r, struct err *e)
{
	struct records      all = { .query = query_of(&lease_type, LEASE_BY_STATUS, value_int(status), QUERY_LIMIT_MAX),
		                    .pages_max = 1 };
	const struct lease *l;
	enum rc             rc;

	while ((l = session_next(s, &all, &rc, e))) {
		r->spend += l->cost;
		r->budget += l->max_spend;
		if (r->lent < ACCOUNTS_SHOWN) {
			r->costs[r->lent].account = l->account_id;
			r->costs[r->lent++].micro_usd = l->cost;
		}
	}
	return rc;
}

/* When what this event ends began: by the record of its subject. 0: not known. */
static enum rc find_beginning(struct session *s, enum span span, const struct event *event, int64_t *ret_ms,
                              struct err *e)
{
	struct str     id = event->subject;
	struct account account = { .clean_started_ms = 0 };
	struct lease   lease = { .created_ms = 0 };
	bool           is_there;
	enum rc        rc;

	(void)str_cut(&id, '/');
	rc = span == SINCE_REQUEST ? session_find(s, &lease_type, id, &lease, &is_there, e)
	                           : session_find(s, &account_type, id, &account, &is_there, e);
	*ret_ms = span == SINCE_REQUEST ? lease.created_ms : account.clean_started_ms;
	return rc;
}

static enum rc read_events(struct session *s, size_t row, struct reading *r, struct err *e)
{
	struct event_list l = { .type = str_from(counted[row].type),
		                .since_ms = r->figures->since_ms,
		                .after_id = r->figures->last_ids[row],
		                .limit = LOOK };
	enum rc           rc = event_list(s, &l, e);

	r->events[row].count = rc ? 0 : l.count;
	r->events[row].last_id = !rc && l.count ? l.events[l.count - 1].id : r->figures->last_ids[row];
	for (size_t i = 0; !rc && counted[row].span && i < l.count; i++) {
		int64_t began_ms;

		rc = find_beginning(s, counted[row].span, &l.events[i], &began_ms, e);
		r->events[row].seconds[i] = rc || !began_ms ? -1 : (double)(l.events[i].time_ms - began_ms) / 1000;
	}
	return rc;
}

static enum rc read_all(struct session *s, void *arg, struct err *e)
{
	struct reading *r = arg;
	enum rc         rc = session_count(s, &lease_type, LEASE_IN_LINE, value_int(1), &r->in_line, e);

	r->lent = 0;
	r->spend = r->budget = 0;
	for (int i = 0; !rc && i < LEASE_STATUS_COUNT; i++)
		if (r->figures->counts_ended || lease_is_live((enum lease_status)i))
			rc = session_count(s, &lease_type, LEASE_BY_STATUS, value_int(i), &r->leases[i], e);
	if (!rc)
		rc = session_count_each(s, &account_type, ACCOUNT_BY_STATUS, ACCOUNT_STATUS_COUNT, r->accounts, e);
	if (!rc)
		rc = session_count(s, &hold_type, HOLD_OPEN_ONES, value_int(1), &r->open_holds, e);
	for (int status = 0; !rc && status < LEASE_STATUS_COUNT; status++)
		if (lease_group((enum lease_status)status) == LEASE_GROUP_MONITORED)
			rc = read_costs(s, (enum lease_status)status, r, e);
	for (size_t row = 0; !rc && row < ARRAY_LEN(counted); row++)
		rc = read_events(s, row, r, e);
	return rc;
}

/* --- telling --- */

static void set(struct figures *f, enum metric id, const char *labels, double value)
{
	metric_set(metrics_series(f->metrics, id, labels), value);
}

static void show_costs(struct figures *f, const struct reading *r)
{
	for (size_t i = 0; i < f->shown_count; i++)
		metric_set(f->shown[i], 0);
	f->shown_count = r->lent;
	for (size_t i = 0; i < r->lent; i++) {
		char account[ACCOUNT_ID_MAX + 1];

		(void)snprintf(account, sizeof(account), "%.*s", STR_ARG(r->costs[i].account)); /* fits: 12 digits */
		f->shown[i] = metrics_series(f->metrics, METRIC_ACCOUNT_SPEND, account);
		metric_set(f->shown[i], (double)r->costs[i].micro_usd / MICROS);
	}
}

static void apply(struct figures *f, const struct reading *r)
{
	struct arena *ids = &f->arenas[f->turn = !f->turn];
	int64_t       undecided = r->leases[LEASE_PENDING_APPROVAL] - r->in_line;

	arena_reset(ids);
	for (int i = 0; i < LEASE_STATUS_COUNT; i++)
		if (f->counts_ended || lease_is_live((enum lease_status)i))
			set(f, METRIC_LEASES, lease_status_names[i], (double)r->leases[i]);
	set(f, METRIC_LEASES, lease_status_names[LEASE_PENDING_APPROVAL], undecided > 0 ? (double)undecided : 0);
	set(f, METRIC_LEASES, "InLine", (double)r->in_line);
	for (int i = 0; i < ACCOUNT_STATUS_COUNT; i++)
		set(f, METRIC_ACCOUNTS, account_status_names[i], (double)r->accounts[i]);
	set(f, METRIC_HOLDS_OPEN, "", (double)r->open_holds);
	set(f, METRIC_LEASE_SPEND, "", (double)r->spend / MICROS);
	set(f, METRIC_LEASE_BUDGET, "", (double)r->budget / MICROS);
	show_costs(f, r);
	for (size_t row = 0; row < ARRAY_LEN(counted); row++) {
		metrics_add(f->metrics, counted[row].counter, counted[row].labels, (int64_t)r->events[row].count);
		for (size_t i = 0; counted[row].span && i < r->events[row].count; i++)
			if (r->events[row].seconds[i] >= 0)
				metrics_observe(f->metrics, counted[row].histogram, counted[row].labels,
				                r->events[row].seconds[i]);
		f->last_ids[row] = str_dup(ids, r->events[row].last_id);
	}
}

enum rc figures_refresh(struct figures *f, struct err *e)
{
	struct reading                  *r = mem_new(struct reading);
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc;

	r->figures = f;
	rc = store_read(f->store, read_all, r, &a, e);
	if (!rc)
		apply(f, r);
	free(r);
	return rc;
}
