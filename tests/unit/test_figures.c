/* SPDX-License-Identifier: Apache-2.0 */
/* test_figures.c - what /metrics says of leases and accounts is what the records say, and each event counts once. */
#include "base/buf.h"
#include "base/metrics.h"
#include "lease_rig.h"
#include "service/figures/figures.h"
#include "service/overview.h"
#include "service/pool/accounts.h"
#include "service/record/lease_records.h"
#include "test.h"

static struct figures *open_figures(struct lease_rig *r, struct metrics *m)
{
	return figures_new(r->k.store, m, true, r->k.clock.test_ms);
}

/* Is this line among those of the metrics? */
static bool says(struct metrics *m, const char *line)
{
	CLEANUP(buf_fini) struct buf b;

	buf_init(&b, 1 << 20);
	metrics_write(m, &b);
	return text_has(buf_str(&b), line);
}

static void refresh(struct figures *f)
{
	struct err e = { 0 };

	CHECK(figures_refresh(f, &e) == RC_OK);
}

TEST(leases_and_accounts_are_counted_by_status)
{
	struct lease_rig r;
	struct metrics  *m = metrics_new();
	struct figures  *f;

	lease_rig_open(&r, 2);
	f = open_figures(&r, m);
	(void)make_active(&r, &ann);
	(void)ask(&r, &bob, r.by_request);
	refresh(f);
	CHECK(says(m, "leasehold_leases{status=\"Active\"} 1\n") &&
	      says(m, "leasehold_leases{status=\"PendingApproval\"} 1\n"));
	CHECK(says(m, "leasehold_accounts{phase=\"Active\"} 1\n") &&
	      says(m, "leasehold_accounts{phase=\"Available\"} 1\n"));
	CHECK(says(m, "leasehold_lease_requests_total 2\n"));
	figures_free(f);
	metrics_free(m);
	lease_rig_close(&r);
}

TEST(who_waits_in_line_is_not_counted_as_undecided)
{
	struct lease_rig r;
	struct metrics  *m = metrics_new();
	struct figures  *f;

	lease_rig_open(&r, 0);
	f = open_figures(&r, m);
	CHECK(order(&r, lease_approve, ask(&r, &ann, r.by_request), &manager, NULL) == RC_OK);
	refresh(f);
	CHECK(says(m, "leasehold_leases{status=\"PendingApproval\"} 0\n") &&
	      says(m, "leasehold_leases{status=\"InLine\"} 1\n"));
	figures_free(f);
	metrics_free(m);
	lease_rig_close(&r);
}

struct copies {
	struct lease      of;
	enum lease_status status;
	int               first, count;
};

static enum rc copy(struct session *s, void *arg, struct err *e)
{
	struct copies *c = arg;

	for (int i = 0; i < c->count; i++) {
		struct lease l = c->of, old;
		bool         is_there;

		l.version = 0;
		l.status = c->status;
		l.uuid = str_format(session_arena(s), "copy-%d", c->first + i);
		CHECK(session_find(s, &lease_type, l.uuid, &old, &is_there, e) == RC_OK && !is_there);
		session_put(s, &lease_type, &l);
	}
	return RC_OK;
}

/* In transactions that are not too long. */
static void copy_lease(struct lease_rig *r, struct str uuid, enum lease_status status, int first, int end)
{
	enum { AT_ONCE = 50 };

	for (; first < end; first += AT_ONCE) {
		int           left = end - first;
		struct copies c = { lease_of(r, uuid), status, first, left < AT_ONCE ? left : AT_ONCE };

		rig_run(&r->k, copy, &c);
	}
}

TEST(the_overview_adds_up_a_limited_number_of_leases_and_says_so)
{
	struct lease_rig r;
	struct overview  o = { 0 };
	struct str       uuid;
	int64_t          budget;

	lease_rig_open(&r, 1);
	o.queues.kernel = r.k.kernel;
	uuid = make_active(&r, &ann);
	budget = lease_of(&r, uuid).max_spend;
	CHECK(budget > 0);
	copy_lease(&r, uuid, LEASE_ACTIVE, 1, OVERVIEW_LEASES_MAX - 1);
	copy_lease(&r, uuid, LEASE_FROZEN, OVERVIEW_LEASES_MAX - 1, OVERVIEW_LEASES_MAX);
	rig_run(&r.k, overview_count, &o);
	CHECK(o.budget == OVERVIEW_LEASES_MAX * budget && !o.is_partial);
	copy_lease(&r, uuid, LEASE_FROZEN, OVERVIEW_LEASES_MAX, OVERVIEW_LEASES_MAX + 1);
	rig_run(&r.k, overview_count, &o);
	CHECK(o.budget == OVERVIEW_LEASES_MAX * budget && o.is_partial);
	copy_lease(&r, uuid, LEASE_ACTIVE, OVERVIEW_LEASES_MAX + 1, OVERVIEW_LEASES_MAX + 2); /* the others wait */
	rig_run(&r.k, overview_count, &o);
	CHECK(o.budget == OVERVIEW_LEASES_MAX * budget && o.is_partial && o.leases[LEASE_FROZEN] == 2);
	lease_rig_close(&r);
}

TEST(accounts_that_are_set_aside_are_counted_with_their_holds)
{
	struct account_call aside = { .by = manager, .reason = STR("look at it") };
	struct lease_rig    r;
	struct metrics     *m = metrics_new();
	struct figures     *f;

	lease_rig_open(&r, 2);
	f = open_figures(&r, m);
	CHECK(says(m, "leasehold_holds_total{change=\"bypassed\"} 0\n"));
	aside.id = r.accounts[0];
	CHECK(rig_try(&r.k, account_quarantine, &aside, NULL) == RC_OK);
	aside.id = r.accounts[1];
	CHECK(rig_try(&r.k, account_eject, &aside, NULL) == RC_OK);
	refresh(f);
	CHECK(says(m, "leasehold_accounts_set_aside_total{how=\"quarantined\"} 1\n"));
	CHECK(says(m, "leasehold_accounts_set_aside_total{how=\"ejected\"} 1\n"));
	CHECK(says(m, "leasehold_holds_total{change=\"created\"} 1\n"));
	figures_free(f);
	metrics_free(m);
	lease_rig_close(&r);
}

TEST(an_event_counts_once_however_often_it_is_looked_for)
{
	struct lease_rig r;
	struct metrics  *m = metrics_new();
	struct figures  *f;
	struct str       uuid;

	lease_rig_open(&r, 2);
	f = open_figures(&r, m);
	uuid = ask(&r, &ann, r.by_request);
	CHECK(order(&r, lease_deny, uuid, &manager, NULL) == RC_OK);
	for (int i = 0; i < 3; i++)
		refresh(f);
	CHECK(says(m, "leasehold_lease_decisions_total{decision=\"denied\"} 1\n"));
	r.k.clock.test_ms += HOUR_MS;
	CHECK(order(&r, lease_deny, ask(&r, &bob, r.by_request), &manager, NULL) == RC_OK);
	refresh(f);
	refresh(f);
	CHECK(says(m, "leasehold_lease_decisions_total{decision=\"denied\"} 2\n"));
	CHECK(says(m, "leasehold_lease_decisions_total{decision=\"approved\"} 0\n"));
	figures_free(f);
	metrics_free(m);
	lease_rig_close(&r);
}

TEST(an_approval_and_a_cleanup_take_as_long_as_they_took)
{
	struct lease_rig r;
	struct metrics  *m = metrics_new();
	struct figures  *f;
	struct str       uuid;

	lease_rig_open(&r, 1);
	f = open_figures(&r, m);
	uuid = ask(&r, &ann, r.by_request);
	rig_pass(&r.k, HOUR_MS);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_OK);
	rig_pass(&r.k, MINUTE_MS);
	refresh(f);
	CHECK(says(m, "leasehold_lease_approval_seconds_count{decision=\"approved\"} 1\n"));
	CHECK(says(m, "leasehold_lease_approval_seconds_bucket{decision=\"approved\",le=\"600\"} 0\n"));
	CHECK(says(m, "leasehold_lease_approval_seconds_bucket{decision=\"approved\",le=\"14400\"} 1\n"));
	CHECK(order(&r, lease_terminate, uuid, &manager, NULL) == RC_OK);
	rig_pass(&r.k, 5 * HOUR_MS);
	refresh(f);
	CHECK(says(m, "leasehold_account_cleanups_total{outcome=\"succeeded\"} 1\n"));
	CHECK(says(m, "leasehold_account_cleanup_seconds_count{outcome=\"succeeded\"} 1\n") &&
	      says(m, "leasehold_lease_ends_total 1\n"));
	figures_free(f);
	metrics_free(m);
	lease_rig_close(&r);
}

TEST(the_spend_of_an_account_is_gone_with_its_lease)
{
	struct lease_rig r;
	struct metrics  *m = metrics_new();
	struct figures  *f;
	struct str       uuid;
	char             line[80];

	lease_rig_open(&r, 1);
	f = open_figures(&r, m);
	uuid = make_active(&r, &ann);
	r.cost = 3 * USD;
	r.cost_at_ms = r.k.clock.test_ms;
	CHECK(run_pass(&r, pass_watch_leases, "watched") == 1);
	refresh(f);
	(void)snprintf(line, sizeof(line), "leasehold_account_spend_usd{account=\"%.*s\"} 3\n", STR_ARG(r.accounts[0]));
	CHECK(says(m, line) && says(m, "leasehold_lease_spend_usd 3\n"));
	CHECK(order(&r, lease_terminate, uuid, &manager, NULL) == RC_OK);
	rig_pass(&r.k, MINUTE_MS);
	refresh(f);
	(void)snprintf(line, sizeof(line), "leasehold_account_spend_usd{account=\"%.*s\"} 0\n", STR_ARG(r.accounts[0]));
	CHECK(says(m, line) && says(m, "leasehold_lease_spend_usd 0\n"));
	figures_free(f);
	metrics_free(m);
	lease_rig_close(&r);
}
