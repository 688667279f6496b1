/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_leakage.c - no cost of one lease in the next one's bill.
 *
 * 1,000 leases, one after the other over 50 accounts, in a simulated cloud whose costs arrive 8 to 24 hours late. What
 * each lease really caused is known to the cloud; what its final statement says must be the same to the cent. Without a
 * rest it is not: so this can fail.
 */
#include "test.h"

#include <stdlib.h>

#include "domain/world.h"
#include "lease_rig.h"
#include "service/record/lease_records.h"
#include "truth/sim_truth.h"

enum { ACCOUNTS = 50, LEASES = 1000, LONGEST_HOURS = 40, PEOPLE = 100, CENT = 10000 };

struct lent {
	struct str uuid, account;
	int64_t    begin_ms, end_ms; /* end: when somebody ends it */
	bool       is_over;
};

struct trial {
	struct lease_rig r;
	struct lent      lent[LEASES];
	int              count, live;
	uint64_t         chance;
	int              leaking; /* the answer: statements that are wrong by a cent or more */
	int              unfinished;
	int64_t          total_off;
};

static int64_t draw_below(struct trial *t, int64_t n)
{
	t->chance = t->chance * 6364136223846793005ull + 1442695040888963407ull;
	return (int64_t)((t->chance >> 33) % (uint64_t)n);
}

static int64_t now_of(struct trial *t)
{
	return clock_now(&t->r.k.clock).ms;
}

/* Somebody takes an account and spends some dollars an hour in it. */
static void begin_lease(struct trial *t)
{
	struct world *world = sim_cloud_world(t->r.sim);
	struct lent  *l = &t->lent[t->count];
	struct caller who = { .roles = ROLE_USER };

	who.email = str_format(&t->r.k.arena, "person-%d@example.com", t->count % PEOPLE);
	l->uuid = ask(&t->r, &who, t->r.by_rule);
	l->account = lease_of(&t->r, l->uuid).account_id;
	l->begin_ms = now_of(t);
	l->end_ms = l->begin_ms + (1 + draw_below(t, LONGEST_HOURS)) * HOUR_MS + draw_below(t, 60) * MINUTE_MS;
	CHECK(world->ops->set_rate(world, l->account, (1 + draw_below(t, 900)) * 10000, NULL) == RC_OK);
	t->count++;
	t->live++;
}

static void end_due_leases(struct trial *t)
{
	for (int i = 0; i < t->count; i++) {
		struct lent *l = &t->lent[i];

		if (l->is_over || l->end_ms > now_of(t))
			continue;
		CHECK(order(&t->r, lease_terminate, l->uuid, &manager, NULL) == RC_OK);
		l->is_over = true;
		t->live--;
	}
}

/* When the next lease of the same account began. */
static int64_t next_begin(const struct trial *t, int n)
{
	for (int i = n + 1; i < t->count; i++)
		if (str_eq(t->lent[i].account, t->lent[n].account))
			return t->lent[i].begin_ms;
	return INT64_MAX;
}

static void compare(struct trial *t, int n)
{
	const struct lent *l = &t->lent[n];
	struct statement   st = { .uuid = l->uuid };
	int64_t            until_ms = next_begin(t, n), caused;

	rig_run(&t->r.k, statement_get, &st);
	if (until_ms > now_of(t))
		until_ms = now_of(t);
	CHECK(sim_cloud_true_spend(t->r.sim, l->account, l->begin_ms, until_ms, &caused, NULL) == RC_OK);
	t->unfinished += st.state < STATEMENT_FINAL;
	t->leaking += llabs(st.total - caused) >= CENT;
	t->total_off += llabs(st.total - caused);
}

static void run_trial(struct trial *t, int64_t rest_hours)
{
	lease_rig_open(&t->r, ACCOUNTS);
	hold_rules_defaults(&t->r.rules);
	t->r.rules.hours[HOLD_BILLING] = rest_hours;
	t->r.policy.leases_per_user = LEASES;
	t->chance = 7;
	for (int hour = 0; hour < 10000 && (t->count < LEASES || t->live); hour++) {
		while (t->count < LEASES && free_accounts(&t->r) > 0)
			begin_lease(t);
		rig_pass(&t->r.k, HOUR_MS);
		end_due_leases(t);
	}
	CHECK(t->count == LEASES && t->live == 0);
	rig_pass(&t->r.k, 20 * 24 * HOUR_MS); /* the last ones become final */
	for (int i = 0; i < LEASES; i++)
		compare(t, i);
	print_message("rest of %lld h: %d of %d statements off by a cent or more, %.2f USD in all, %d not final\n",
	              (long long)rest_hours, t->leaking, LEASES, (double)t->total_off / 1e6, t->unfinished);
	lease_rig_close(&t->r);
}

TEST(x22_with_72_hours_of_rest_no_cost_leaks)
{
	struct trial *t = calloc(1, sizeof(*t));

	run_trial(t, 72);
	CHECK(t->leaking == 0 && t->unfinished == 0);
	free(t);
}

TEST(without_a_rest_the_same_leases_leak)
{
	struct trial *t = calloc(1, sizeof(*t));

	run_trial(t, 0);
	CHECK(t->leaking > LEASES / 10);
	free(t);
}
