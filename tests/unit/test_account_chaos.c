/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_account_chaos.c - many people, outsiders, outages and crashes at once; whatever happens, at no moment has
 * anybody access who should not, and when it is quiet again every account is where its record says. A failing seed is
 * named and fails again.
 */
#include "test.h"

#include <stdio.h>

#include "account_rig.h"
#include "service/reconcile/reconcile.h"

enum { SEEDS = 20, STEPS = 120, ACCOUNTS = 4, LEASES_MAX = STEPS };

struct chaos {
	struct account_rig r;
	uint64_t           seed;
	struct str         accounts[ACCOUNTS];
	struct str         leases[LEASES_MAX];
	size_t             lease_count;
};

static unsigned roll(struct chaos *c, unsigned sides)
{
	c->seed = c->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(c->seed >> 33) % sides;
}

/* --- what happens --- */

static void somebody_asks(struct chaos *c)
{
	struct lease lease;
	enum rc rc = try_lend(&c->r, roll(c, 2) ? ANN : BOB, roll(c, 2) ? STR(AUTO_APPROVED) : STR("boss@example.com"),
	                      &lease);

	CHECK(rc == RC_OK || rc == RC_EXHAUSTED);
	if (!rc && c->lease_count < LEASES_MAX)
		c->leases[c->lease_count++] = lease.uuid;
}

static void a_lease_changes(struct chaos *c)
{
	static const enum lease_event events[] = { LEASE_ON_FREEZE, LEASE_ON_UNFREEZE, LEASE_ON_TERMINATE };
	enum rc                       rc;

	if (!c->lease_count)
		return;
	rc = try_lease(&c->r, c->leases[roll(c, (unsigned)c->lease_count)], events[roll(c, ARRAY_LEN(events))]);
	CHECK(rc == RC_OK || rc == RC_CONFLICT || rc == RC_NOT_FOUND || rc == RC_INVALID);
}

static void an_operator_acts(struct chaos *c)
{
	static txn_fn *const acts[] = { account_register,      account_register,   account_retry_cleanup,
		                        account_retry_cleanup, account_quarantine, account_eject };
	struct str           id = c->accounts[roll(c, ACCOUNTS)];
	txn_fn              *act = acts[roll(c, ARRAY_LEN(acts))];
	enum rc              rc;

	if (act == account_register && where_is(&c->r, id) != SIM_OU_ENTRY)
		return; /* the API would not let it through */
	rc = try_account(&c->r, act, id);
	CHECK(rc == RC_OK || rc == RC_CONFLICT || rc == RC_NOT_FOUND);
}

static void an_outsider_acts(struct chaos *c)
{
	struct str       id = c->accounts[roll(c, ACCOUNTS)];
	enum sim_ou_name to = (enum sim_ou_name)(SIM_OU_AVAILABLE + roll(c, SIM_OU_COUNT - SIM_OU_AVAILABLE));

	if (where_is(&c->r, id) == SIM_OU_EXIT)
		to = SIM_OU_ENTRY; /* it may come again */
	else if (roll(c, 3))
		return;
	if (where_is(&c->r, id) != to)
		outsider_moves(&c->r, id, to);
}

static void something_breaks(struct chaos *c)
{
	static const enum world_fault faults[] = { WORLD_OUTAGE, WORLD_TIMEOUT_AFTER, WORLD_TIMEOUT_BEFORE,
		                                   WORLD_CLEAN_FAILS };
	static const enum world_call  calls[] = { WORLD_MOVE, WORLD_GRANT, WORLD_REVOKE, WORLD_CLEAN, WORLD_ANY_CALL };
	enum world_fault              fault = faults[roll(c, ARRAY_LEN(faults))];

	goes_wrong(&c->r, fault, fault == WORLD_CLEAN_FAILS ? WORLD_ANY_CALL : calls[roll(c, ARRAY_LEN(calls))],
	           1 + roll(c, 40));
}

static void scan(struct chaos *c)
{
	struct lease_world world = { .cloud = c->r.cloud };
	struct pass        drift = { .store = c->r.rig.store, .clock = &c->r.rig.clock, .leases = &world };
	struct pass_result result = { 0 };

	c->r.rig.clock.test_ms++;
	rc_ignore(pass_find_drift(&drift, &result, &c->r.err)); /* in an outage it says so */
}

static void happen(struct chaos *c)
{
	switch (roll(c, 9)) {
	case 0:
	case 1: somebody_asks(c); break;
	case 2: a_lease_changes(c); break;
	case 3: an_operator_acts(c); break;
	case 4: an_outsider_acts(c); break;
	case 5: something_breaks(c); break;
	case 6: goes_well(&c->r); break;
	case 7: scan(c); break;
	default: (void)crash_after_call(&c->r); break;
	}
}

/* --- what must hold --- */

static size_t count_users(struct chaos *c, struct str id)
{
	return (size_t)may_use(&c->r, id, CLOUD_USER, ANN) + may_use(&c->r, id, CLOUD_USER, BOB);
}

/* At any moment. */
static void check_access(struct chaos *c)
{
	for (size_t i = 0; i < ACCOUNTS; i++) {
		enum sim_ou_name ou = where_is(&c->r, c->accounts[i]);

		CHECK(count_users(c, c->accounts[i]) <= 1);
		/* Only an outsider's move can bring an account with access elsewhere; then we hear of it by a scan. */
		if (!has_account(&c->r, c->accounts[i]))
			continue;
		if (ou == SIM_OU_AVAILABLE && get_account(&c->r, c->accounts[i]).status == ACCOUNT_AVAILABLE)
			CHECK(count_users(c, c->accounts[i]) == 0 || get_account(&c->r, c->accounts[i]).is_following);
	}
}

static size_t count_live_on(struct chaos *c, struct str id)
{
	size_t live = 0;

	for (size_t i = 0; i < c->lease_count; i++) {
		struct lease l = get_lease(&c->r, c->leases[i]);

		live += lease_group(l.status) == LEASE_GROUP_MONITORED && str_eq(l.account_id, id);
	}
	return live;
}

/* When it is quiet again. */
static void check_settled(struct chaos *c)
{
	static const enum sim_ou_name ous[ACCOUNT_STATUS_COUNT] = {
		[ACCOUNT_AVAILABLE] = SIM_OU_AVAILABLE, [ACCOUNT_ACTIVE] = SIM_OU_ACTIVE,
		[ACCOUNT_CLEANUP] = SIM_OU_CLEANUP,     [ACCOUNT_QUARANTINE] = SIM_OU_QUARANTINE,
		[ACCOUNT_FROZEN] = SIM_OU_FROZEN,       [ACCOUNT_EXIT] = SIM_OU_EXIT,
	};

	for (size_t i = 0; i < ACCOUNTS; i++) {
		struct str     id = c->accounts[i];
		struct account a;

		if (!has_account(&c->r, id)) {
			CHECK(count_live_on(c, id) == 0);
			CHECK(where_is(&c->r, id) == SIM_OU_ENTRY || where_is(&c->r, id) == SIM_OU_EXIT);
			continue;
		}
		a = get_account(&c->r, id);
		CHECK(!a.is_following && !account_must_follow(&a) && a.status != ACCOUNT_EXIT);
		CHECK(a.status != ACCOUNT_CLEANUP); /* every cleanup has come to an end */
		CHECK(where_is(&c->r, id) == ous[a.status]);
		CHECK(count_live_on(c, id) == (a.lease_uuid.n > 0));
		CHECK(count_users(c, id) == (a.status == ACCOUNT_ACTIVE));
		CHECK(a.status != ACCOUNT_AVAILABLE || a.cleaned_ms > 0);
	}
}

/* How many leases there were. */
static size_t run(uint64_t seed)
{
	struct chaos c = { .seed = seed, .r = { .chance = seed, .clean = { .at_once = 2 } } };
	char         label[40];

	(void)snprintf(label, sizeof(label), "seed %d", (int)seed); /* fits */
	CASE(label);
	account_rig_open(&c.r);
	for (size_t i = 0; i < ACCOUNTS; i++)
		c.accounts[i] = nth_account(&c.r, i);
	for (size_t i = 0; i < ACCOUNTS; i++)
		(void)try_account(&c.r, account_register, c.accounts[i]);
	for (int step = 0; step < STEPS; step++) {
		happen(&c);
		rig_pass(&c.r.rig, (int64_t)roll(&c, 20) * MINUTE_MS);
		check_access(&c);
	}
	goes_well(&c.r);
	for (int i = 0; i < 4; i++) { /* what failed for good is found by a scan, and what it finds by the next */
		rig_pass(&c.r.rig, 14 * HOUR_MS);
		scan(&c);
	}
	rig_pass(&c.r.rig, 14 * HOUR_MS);
	check_settled(&c);
	account_rig_close(&c.r);
	return c.lease_count;
}

TEST(whatever_happens_in_the_end_every_account_is_where_its_record_says)
{
	size_t leases = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		leases += run(seed);
	CHECK(leases > 3 * SEEDS); /* otherwise nothing was tried */
}
