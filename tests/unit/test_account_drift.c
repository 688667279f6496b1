/* SPDX-License-Identifier: Apache-2.0 */
/* test_account_drift.c - who is not where he should be is noticed once, told of the second time, and put right. */
#include "test.h"

#include "account_rig.h"
#include "service/reconcile/reconcile.h"

static int64_t scan(struct account_rig *r, const char *what)
{
	struct lease_world world = { .cloud = r->cloud };
	struct pass        drift = { .store = r->rig.store, .clock = &r->rig.clock, .leases = &world };
	struct pass_result result = { 0 };
	int64_t            value = -1;

	r->rig.clock.test_ms += MINUTE_MS;
	CHECK(pass_find_drift(&drift, &result, &r->err) == RC_OK);
	for (int i = 0; i < result.count; i++)
		if (str_eq(str_from(result.counts[i].name), str_from(what)))
			value = result.counts[i].value;
	CHECK(value >= 0);
	(void)rig_turn(&r->rig);
	return value;
}

TEST(an_account_in_the_wrong_ou_is_quarantined_at_the_second_look)
{
	struct account_rig r = { 0 };
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	CHECK(scan(&r, "suspected") == 0);
	outsider_moves(&r, id, SIM_OU_FROZEN);
	CHECK(scan(&r, "suspected") == 1);
	CHECK(get_account(&r, id).status == ACCOUNT_AVAILABLE && get_account(&r, id).has_drifted);
	CHECK(count_events(&r, "AccountDriftDetected") == 0);

	CHECK(scan(&r, "drifted") == 1);
	CHECK(text_has(last_event(&r, "AccountDriftDetected").detail,
	               "\"actualOu\":\"Frozen\",\"expectedOu\":\"Available\""));
	CHECK(get_account(&r, id).status == ACCOUNT_QUARANTINE && where_is(&r, id) == SIM_OU_QUARANTINE);
	CHECK(text_has(get_account(&r, id).reason, "found in Frozen, but should be in Available"));
	CHECK(scan(&r, "drifted") == 0 && scan(&r, "suspected") == 0);
	account_rig_close(&r);
}

TEST(an_account_that_came_back_is_forgiven)
{
	struct account_rig r = { 0 };
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	outsider_moves(&r, id, SIM_OU_FROZEN);
	CHECK(scan(&r, "suspected") == 1);
	outsider_moves(&r, id, SIM_OU_AVAILABLE);
	CHECK(scan(&r, "recovered") == 1 && !get_account(&r, id).has_drifted);
	outsider_moves(&r, id, SIM_OU_FROZEN);
	CHECK(scan(&r, "drifted") == 0); /* a grace of its own */
	account_rig_close(&r);
}

TEST(a_quarantined_account_that_was_moved_out_is_brought_back)
{
	struct account_rig r = { 0 };
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	do_account(&r, account_quarantine, id);
	(void)rig_turn(&r.rig);
	outsider_moves(&r, id, SIM_OU_ACTIVE);
	CHECK(scan(&r, "suspected") == 1 && scan(&r, "drifted") == 1);
	CHECK(get_account(&r, id).status == ACCOUNT_QUARANTINE && where_is(&r, id) == SIM_OU_QUARANTINE);
	account_rig_close(&r);
}

TEST(whoever_is_being_moved_is_left_alone)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	lease = lend(&r, ANN);
	for (int i = 0; i < 3; i++)
		CHECK(scan(&r, "suspected") == 0 && scan(&r, "drifted") == 0);
	goes_well(&r);
	rig_pass(&r.rig, 5 * MINUTE_MS);
	CHECK(get_lease(&r, lease.uuid).status == LEASE_ACTIVE && where_is(&r, id) == SIM_OU_ACTIVE);
	account_rig_close(&r);
}

TEST(strangers_in_the_pool_are_taken_in_at_once_but_not_those_in_entry_and_exit)
{
	struct account_rig r = { 0 };
	struct str         stranger, leaver;

	account_rig_open(&r);
	stranger = nth_account(&r, 0);
	leaver = nth_account(&r, 1);
	outsider_moves(&r, stranger, SIM_OU_AVAILABLE);
	outsider_moves(&r, leaver, SIM_OU_EXIT);
	CHECK(scan(&r, "unknown") == 1);
	CHECK(!text_has(last_event(&r, "AccountDriftDetected").detail, "expectedOu"));
	CHECK(get_account(&r, stranger).status == ACCOUNT_QUARANTINE && where_is(&r, stranger) == SIM_OU_QUARANTINE);
	CHECK(get_account(&r, stranger).name.n > 0);
	CHECK(!has_account(&r, leaver) && !has_account(&r, nth_account(&r, 0)));
	account_rig_close(&r);
}

TEST(a_saga_that_failed_in_an_outage_is_made_up_for)
{
	struct account_rig r = { 0 };
	struct str         id;

	account_rig_open(&r);
	id = nth_account(&r, 0);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_GRANT, 0);
	do_account(&r, account_quarantine, id);
	rig_pass(&r.rig, 6 * HOUR_MS);
	CHECK(where_is(&r, id) == SIM_OU_QUARANTINE && count_sagas(&r, SAGA_PARKED) == 1);
	goes_well(&r);
	CHECK(scan(&r, "stalled") == 1);
	CHECK(may_use(&r, id, CLOUD_GROUP, STR("admins")));
	CHECK(scan(&r, "stalled") == 0);
	account_rig_close(&r);
}

TEST(an_account_that_has_left_the_pool_is_forgotten_and_its_lease_ends)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	(void)rig_turn(&r.rig);
	outsider_moves(&r, id, SIM_ROOT);
	CHECK(scan(&r, "suspected") == 1 && has_account(&r, id));
	CHECK(scan(&r, "drifted") == 1 && !has_account(&r, id));
	CHECK(get_lease(&r, lease.uuid).status == LEASE_ACCOUNT_QUARANTINED);
	account_rig_close(&r);
}

static enum rc read_open(struct session *s, void *arg, struct err *e)
{
	struct holds *h = arg;

	return hold_list_open(s, h->items[0].account, h, e);
}

/* Nobody could end it: without its account there is nothing to clean or to eject. */
TEST(an_account_that_has_left_the_pool_takes_its_holds_along)
{
	struct account_rig r = { 0 };
	struct holds       open = { 0 };
	struct str         id;

	account_rig_open(&r);
	id = open.items[0].account = add_free_account(&r, 0);
	do_account(&r, account_quarantine, id);
	(void)rig_turn(&r.rig);
	outsider_moves(&r, id, SIM_ROOT);
	CHECK(scan(&r, "suspected") == 1 && scan(&r, "drifted") == 1 && !has_account(&r, id));
	CHECK(store_read(r.rig.store, read_open, &open, &r.rig.arena, &r.err) == RC_OK && open.count == 0);

	outsider_moves(&r, id, SIM_OU_ENTRY);
	do_account(&r, account_register, id);
	rig_pass(&r.rig, 2 * HOUR_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_AVAILABLE);
	account_rig_close(&r);
}

TEST(an_incomplete_listing_concludes_nothing)
{
	struct account_rig r = { 0 };
	struct pass_result result = { 0 };
	struct lease_world world;
	struct pass        drift;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	world = (struct lease_world){ .cloud = r.cloud };
	drift = (struct pass){ .store = r.rig.store, .clock = &r.rig.clock, .leases = &world };
	r.rig.clock.test_ms += MINUTE_MS;
	goes_wrong(&r, WORLD_THROTTLE, WORLD_LIST_ACCOUNTS, 0);
	CHECK(pass_find_drift(&drift, &result, &r.err) == RC_LIMITED);
	CHECK(!get_account(&r, id).has_drifted);
	account_rig_close(&r);
}
