/* SPDX-License-Identifier: Apache-2.0 */
/* test_accounts.c - accounts of the pool, and the world that follows their records: through refusals, outsiders,
 * time-outs and crashes. */
#include "test.h"

#include <string.h>

#include "account_rig.h"
#include "kernel/saga.h"
#include "service/record/lease_records.h"
#include "store/session.h"
#include "truth/sim_truth.h"

static bool is_settled(struct account_rig *r, struct str id, enum account_status status, enum sim_ou_name ou)
{
	struct account a = get_account(r, id);

	return a.status == status && !a.is_following && !account_must_follow(&a) && where_is(r, id) == ou;
}

/* --- in --- */

TEST(a_registered_account_is_cleaned_and_becomes_available)
{
	struct account_rig r = { 0 };
	struct str         id;
	struct account     a;

	account_rig_open(&r);
	id = nth_account(&r, 0);
	do_account(&r, account_register, id);
	a = get_account(&r, id);
	CHECK(a.status == ACCOUNT_CLEANUP && str_eq(a.placed_ou, STR("Entry")) && a.is_following);
	CHECK(count_events(&r, "CleanAccountRequest") == 0); /* not before it is in CleanUp */

	(void)rig_turn(&r.rig);
	CHECK(is_settled(&r, id, ACCOUNT_CLEANUP, SIM_OU_CLEANUP));
	CHECK(text_has(last_event(&r, "CleanAccountRequest").detail, "ACCOUNT_REGISTRATION"));
	CHECK(may_use(&r, id, CLOUD_GROUP, STR("managers")) && may_use(&r, id, CLOUD_GROUP, STR("admins")));

	rig_pass(&r.rig, 2 * HOUR_MS);
	CHECK(is_settled(&r, id, ACCOUNT_AVAILABLE, SIM_OU_AVAILABLE));
	CHECK(get_account(&r, id).cleaned_ms > 1700000000000);
	CHECK(count_access(&r, id) == 2);
	CHECK(try_account(&r, account_register, id) == RC_CONFLICT);
	CHECK(try_account(&r, account_register, STR("12")) == RC_INVALID);
	CHECK(try_account(&r, account_get, STR("123456789012")) == RC_NOT_FOUND);
	account_rig_close(&r);
}

/* --- lend --- */

TEST(a_lent_account_is_active_with_access_before_its_lease_is)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	CHECK(str_eq(lease.account_id, id));
	CHECK(get_lease(&r, lease.uuid).status == LEASE_PROVISIONING);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_GRANT, 0);
	rig_pass(&r.rig, MINUTE_MS);
	CHECK(where_is(&r, id) == SIM_OU_ACTIVE && !may_use(&r, id, CLOUD_USER, ANN));
	CHECK(get_lease(&r, lease.uuid).status == LEASE_PROVISIONING);

	goes_well(&r);
	rig_pass(&r.rig, 5 * MINUTE_MS);
	CHECK(is_settled(&r, id, ACCOUNT_ACTIVE, SIM_OU_ACTIVE) && may_use(&r, id, CLOUD_USER, ANN));
	CHECK(get_lease(&r, lease.uuid).status == LEASE_ACTIVE);
	CHECK(count_events(&r, "LeaseApproved") == 1);
	account_rig_close(&r);
}

/* --- credentials --- */

static bool has_secret(struct account_rig *r, struct str id, struct str who)
{
	struct credentials *c = r->cloud.credentials;
	struct cloud_secret secret;
	struct arena        a = { 0 };
	bool                found, is_his;

	CHECK(c->ops->find(c, id, &a, &secret, &found, &r->err) == RC_OK);
	is_his = found && str_eq(secret.principal, who) && str_eq(secret.name, account_secret_name(id, &a));
	arena_fini(&a);
	return is_his;
}

TEST(credentials_are_there_before_a_lease_is_active_and_gone_while_it_is_frozen_and_after_it)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_ISSUE, 0);
	rig_pass(&r.rig, MINUTE_MS);
	CHECK(may_use(&r, id, CLOUD_USER, ANN) && get_lease(&r, lease.uuid).status == LEASE_PROVISIONING);
	goes_well(&r);
	rig_pass(&r.rig, 5 * MINUTE_MS);
	CHECK(get_lease(&r, lease.uuid).status == LEASE_ACTIVE && has_secret(&r, id, ANN));
	freeze(&r, lease.uuid);
	rig_pass(&r.rig, MINUTE_MS);
	CHECK(!has_secret(&r, id, ANN));
	unfreeze(&r, lease.uuid);
	rig_pass(&r.rig, MINUTE_MS);
	CHECK(has_secret(&r, id, ANN));
	take_back(&r, lease.uuid);
	rig_pass(&r.rig, MINUTE_MS);
	CHECK(!has_secret(&r, id, ANN) && where_is(&r, id) == SIM_OU_CLEANUP);
	account_rig_close(&r);
}

TEST(credentials_that_cannot_be_made_lead_to_quarantine_and_none_are_left)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_ISSUE, 0);
	rig_pass(&r.rig, 3 * HOUR_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_QUARANTINE && !may_use(&r, id, CLOUD_USER, ANN));
	CHECK(get_lease(&r, lease.uuid).status != LEASE_ACTIVE);
	goes_well(&r);
	CHECK(!has_secret(&r, id, ANN));
	account_rig_close(&r);
}

TEST(the_longest_rested_is_lent_first_and_none_twice)
{
	struct account_rig r = { 0 };
	struct lease       one, two, three;
	struct str         first, second;

	account_rig_open(&r);
	first = add_free_account(&r, 3);
	second = add_free_account(&r, 0);
	one = lend(&r, ANN);
	two = lend(&r, BOB);
	CHECK(str_eq(one.account_id, first) && str_eq(two.account_id, second));
	CHECK(try_lend(&r, ANN, BOB, &three) == RC_EXHAUSTED);
	CHECK(text_has(str_from(r.err.msg), "no account is free"));
	(void)rig_turn(&r.rig);
	CHECK(may_use(&r, first, CLOUD_USER, ANN) && !may_use(&r, first, CLOUD_USER, BOB));
	CHECK(may_use(&r, second, CLOUD_USER, BOB) && !may_use(&r, second, CLOUD_USER, ANN));
	account_rig_close(&r);
}

TEST(an_account_on_its_way_to_the_free_ones_is_not_lent_yet)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id;

	account_rig_open(&r);
	id = nth_account(&r, 0);
	do_account(&r, account_register, id);
	(void)rig_turn(&r.rig);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	for (int i = 0; i < 200 && get_account(&r, id).status != ACCOUNT_AVAILABLE; i++)
		rig_pass(&r.rig, MINUTE_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_AVAILABLE && where_is(&r, id) == SIM_OU_CLEANUP);
	CHECK(try_lend(&r, ANN, BOB, &lease) == RC_EXHAUSTED);

	goes_well(&r);
	rig_pass(&r.rig, 5 * MINUTE_MS);
	CHECK(try_lend(&r, ANN, BOB, &lease) == RC_OK && str_eq(lease.account_id, id));
	account_rig_close(&r);
}

TEST(freezing_ends_access_unfreezing_gives_it_back_and_taking_back_cleans)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	(void)rig_turn(&r.rig);
	freeze(&r, lease.uuid);
	CHECK(get_account(&r, id).status == ACCOUNT_FROZEN); /* at once; the world follows */
	(void)rig_turn(&r.rig);
	CHECK(is_settled(&r, id, ACCOUNT_FROZEN, SIM_OU_FROZEN) && !may_use(&r, id, CLOUD_USER, ANN));
	CHECK(may_use(&r, id, CLOUD_GROUP, STR("managers")));

	unfreeze(&r, lease.uuid);
	(void)rig_turn(&r.rig);
	CHECK(is_settled(&r, id, ACCOUNT_ACTIVE, SIM_OU_ACTIVE) && may_use(&r, id, CLOUD_USER, ANN));

	take_back(&r, lease.uuid);
	(void)rig_turn(&r.rig);
	CHECK(is_settled(&r, id, ACCOUNT_CLEANUP, SIM_OU_CLEANUP) && !may_use(&r, id, CLOUD_USER, ANN));
	CHECK(text_has(last_event(&r, "CleanAccountRequest").detail, "LEASE_TERMINATION"));
	CHECK(get_account(&r, id).lease_uuid.n == 0);
	rig_pass(&r.rig, 2 * HOUR_MS);
	CHECK(is_settled(&r, id, ACCOUNT_AVAILABLE, SIM_OU_AVAILABLE));
	account_rig_close(&r);
}

/* --- targets that change --- */

TEST(a_target_that_changes_on_the_way_is_followed_next)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id;
	int64_t            before;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	before = get_account(&r, id).follow_number;
	lease = lend(&r, ANN);
	CHECK(crash_after_call(&r)); /* the saga is under way */
	take_back(&r, lease.uuid);
	CHECK(get_account(&r, id).follow_number == before + 1 && get_account(&r, id).is_following);
	CHECK(count_sagas(&r, SAGA_RUNNING) == 1);
	rig_pass(&r.rig, 2 * MINUTE_MS);
	CHECK(get_account(&r, id).follow_number == before + 2);
	CHECK(is_settled(&r, id, ACCOUNT_CLEANUP, SIM_OU_CLEANUP) && !may_use(&r, id, CLOUD_USER, ANN));
	CHECK(count_events(&r, "LeaseApproved") == 0);
	CHECK(count_events(&r, "CleanAccountRequest") == 2); /* of the registration and of this */
	account_rig_close(&r);
}

TEST(a_second_target_that_takes_back_the_first_ends_where_it_began)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	(void)rig_turn(&r.rig);
	freeze(&r, lease.uuid);
	unfreeze(&r, lease.uuid);
	(void)rig_turn(&r.rig);
	CHECK(is_settled(&r, id, ACCOUNT_ACTIVE, SIM_OU_ACTIVE) && may_use(&r, id, CLOUD_USER, ANN));
	account_rig_close(&r);
}

/* --- what goes wrong --- */

TEST(an_account_that_an_outsider_moved_is_quarantined_and_its_lease_is_told)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct account     a;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	outsider_moves(&r, id, SIM_OU_ENTRY);
	lease = lend(&r, ANN);
	(void)rig_turn(&r.rig);
	CHECK(is_settled(&r, id, ACCOUNT_QUARANTINE, SIM_OU_QUARANTINE));
	a = get_account(&r, id);
	CHECK(text_has(a.reason, "is in Entry") && text_has(a.reason, "should be in Available"));
	CHECK(a.lease_uuid.n == 0 && a.granted.n == 0);
	CHECK(get_lease(&r, lease.uuid).status == LEASE_PENDING_APPROVAL); /* a person had approved it */
	CHECK(text_has(last_event(&r, "AccountQuarantined").detail, "should be in Available"));
	CHECK(count_sagas(&r, SAGA_PARKED) == 0);
	account_rig_close(&r);
}

TEST(access_that_cannot_be_granted_is_taken_back_and_the_account_quarantined)
{
	struct account_rig r = { 0 };
	struct sim_truth   before, after;
	struct lease       lease;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	CHECK(sim_cloud_inspect(r.sim, id, &before, &r.err) == RC_OK);
	CHECK(try_lend(&r, ANN, STR(AUTO_APPROVED), &lease) == RC_OK);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_GRANT, 0);
	rig_pass(&r.rig, 3 * HOUR_MS);
	CHECK(is_settled(&r, id, ACCOUNT_QUARANTINE, SIM_OU_QUARANTINE) && !may_use(&r, id, CLOUD_USER, ANN));
	CHECK(sim_cloud_inspect(r.sim, id, &after, &r.err) == RC_OK);
	CHECK(after.moves == before.moves + 3); /* there, back, and away */
	CHECK(get_lease(&r, lease.uuid).status == LEASE_PROVISIONING_FAILED);
	account_rig_close(&r);
}

TEST(a_move_that_timed_out_after_its_effect_is_not_made_twice)
{
	struct account_rig r = { 0 };
	struct sim_truth   before, after;
	struct lease       lease;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	CHECK(sim_cloud_inspect(r.sim, id, &before, &r.err) == RC_OK);
	lease = lend(&r, ANN);
	goes_wrong(&r, WORLD_TIMEOUT_AFTER, WORLD_MOVE, 1);
	rig_pass(&r.rig, 5 * MINUTE_MS);
	CHECK(sim_cloud_inspect(r.sim, id, &after, &r.err) == RC_OK);
	CHECK(after.moves == before.moves + 1);
	CHECK(get_lease(&r, lease.uuid).status == LEASE_ACTIVE && may_use(&r, id, CLOUD_USER, ANN));
	account_rig_close(&r);
}

TEST(whatever_call_is_lost_in_a_crash_the_lease_comes_up_once)
{
	struct account_rig r = { 0 };
	struct sim_truth   before, after;
	struct lease       lease;
	struct str         id;
	int                crashes = 0;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	CHECK(sim_cloud_inspect(r.sim, id, &before, &r.err) == RC_OK);
	lease = lend(&r, ANN);
	for (; crashes < 20 && get_lease(&r, lease.uuid).status == LEASE_PROVISIONING; crashes++) {
		CHECK(crash_after_call(&r));
		r.rig.clock.test_ms += 3 * MINUTE_MS; /* the lease of the dead process runs out */
		if (crashes >= 4)
			(void)rig_turn(&r.rig);
	}
	CHECK(sim_cloud_inspect(r.sim, id, &after, &r.err) == RC_OK);
	CHECK(after.moves == before.moves + 1 && crashes > 4);
	CHECK(get_lease(&r, lease.uuid).status == LEASE_ACTIVE && count_events(&r, "LeaseApproved") == 1);
	account_rig_close(&r);
}

TEST(a_quarantine_that_the_world_refuses_stays_parked_until_it_is_asked_for_again)
{
	struct account_rig r = { 0 };
	struct saga_action order = { .actor = STR("root@example.com") };
	struct account     a;
	struct str         id;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	do_account(&r, account_quarantine, id);
	rig_pass(&r.rig, 24 * HOUR_MS);
	a = get_account(&r, id);
	CHECK(a.status == ACCOUNT_QUARANTINE && !a.is_following && where_is(&r, id) == SIM_OU_AVAILABLE);
	CHECK(count_sagas(&r, SAGA_PARKED) == 1 && count_sagas(&r, SAGA_RUNNING) == 0);
	order.id = str_format(&r.rig.arena, "account-follow/%.*s/%lld", STR_ARG(id), (long long)a.follow_number);

	goes_well(&r);
	do_account(&r, account_quarantine, id);
	(void)rig_turn(&r.rig);
	CHECK(is_settled(&r, id, ACCOUNT_QUARANTINE, SIM_OU_QUARANTINE));

	do_account(&r, account_retry_cleanup, id);
	rig_pass(&r.rig, 2 * HOUR_MS);
	rig_run(&r.rig, saga_retry, &order); /* the old one: nothing follows from it any more */
	(void)rig_turn(&r.rig);
	CHECK(is_settled(&r, id, ACCOUNT_AVAILABLE, SIM_OU_AVAILABLE) && count_sagas(&r, SAGA_PARKED) == 0);
	account_rig_close(&r);
}

/* --- quarantine, exit --- */

TEST(quarantine_ends_the_lease_and_takes_in_what_is_unknown)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id, stranger;

	account_rig_open(&r);
	id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	(void)rig_turn(&r.rig);
	do_account(&r, account_quarantine, id);
	(void)rig_turn(&r.rig);
	CHECK(is_settled(&r, id, ACCOUNT_QUARANTINE, SIM_OU_QUARANTINE) && !may_use(&r, id, CLOUD_USER, ANN));
	CHECK(get_lease(&r, lease.uuid).status == LEASE_ACCOUNT_QUARANTINED);
	CHECK(str_eq(get_account(&r, id).reason, STR("it looks odd")));

	stranger = nth_account(&r, 5);
	outsider_moves(&r, stranger, SIM_OU_ACTIVE);
	do_account(&r, account_quarantine, stranger);
	(void)rig_turn(&r.rig);
	CHECK(is_settled(&r, stranger, ACCOUNT_QUARANTINE, SIM_OU_QUARANTINE));
	account_rig_close(&r);
}

TEST(an_ejected_account_is_in_exit_without_access_and_forgotten)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id;

	account_rig_open(&r);
	id = nth_account(&r, 0);
	do_account(&r, account_register, id);
	CHECK(try_account(&r, account_eject, id) == RC_CONFLICT); /* while it is cleaned */
	rig_pass(&r.rig, 2 * HOUR_MS);
	lease = lend(&r, ANN);
	(void)rig_turn(&r.rig);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 2);
	do_account(&r, account_eject, id);
	CHECK(get_account(&r, id).status == ACCOUNT_EXIT && get_lease(&r, lease.uuid).status == LEASE_EJECTED);
	rig_pass(&r.rig, 5 * MINUTE_MS);
	CHECK(!has_account(&r, id));
	CHECK(where_is(&r, id) == SIM_OU_EXIT && count_access(&r, id) == 0);
	CHECK(str_eq(last_event(&r, "AccountEjected").actor, STR("root@example.com")));

	outsider_moves(&r, id, SIM_OU_ENTRY); /* and it may come again */
	do_account(&r, account_register, id);
	rig_pass(&r.rig, 2 * HOUR_MS);
	CHECK(is_settled(&r, id, ACCOUNT_AVAILABLE, SIM_OU_AVAILABLE));
	account_rig_close(&r);
}

/* A record that waits for a saga that is not there: as after an upgrade that no longer knows it. */
static enum rc lose_saga(struct session *s, void *arg, struct err *e)
{
	struct account *a = arg;
	enum rc         rc = session_get(s, &account_type, a->id, a, e);

	a->is_following = 1;
	a->follow_number++;
	if (!rc)
		session_put(s, &account_type, a);
	return rc;
}

TEST(a_saga_that_is_over_does_not_keep_the_next_from_starting)
{
	struct account_rig r = { 0 };
	struct account     a;

	account_rig_open(&r);
	a = (struct account){ .id = add_free_account(&r, 0) };
	rig_run(&r.rig, lose_saga, &a);
	do_account(&r, account_quarantine, a.id);
	(void)rig_turn(&r.rig);
	CHECK(is_settled(&r, a.id, ACCOUNT_QUARANTINE, SIM_OU_QUARANTINE));
	account_rig_close(&r);
}

TEST(the_accounts_of_each_status_are_counted_and_listed)
{
	struct account_rig  r = { 0 };
	struct account_list l = { .statuses = 1u << ACCOUNT_AVAILABLE, .limit = 10 };
	int64_t             counts[ACCOUNT_STATUS_COUNT];
	struct str          free;

	account_rig_open(&r);
	free = add_free_account(&r, 0);
	do_account(&r, account_register, nth_account(&r, 0));
	rig_run(&r.rig, account_counts, counts);
	CHECK(counts[ACCOUNT_AVAILABLE] == 1 && counts[ACCOUNT_CLEANUP] == 1 && counts[ACCOUNT_ACTIVE] == 0);
	rig_run(&r.rig, account_list, &l);
	CHECK(l.page.count == 1 && str_eq(((struct account *)(void *)l.page.records)->id, free));
	l = (struct account_list){ .limit = 10 };
	rig_run(&r.rig, account_list, &l);
	CHECK(l.page.count == 2);
	account_rig_close(&r);
}
