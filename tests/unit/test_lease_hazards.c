/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lease_hazards.c - by name: the four hazards of the system that people come from (contract, 4.1), and the four
 * recovery scenarios of the user's document. Each fails on what that system does.
 *
 * More about the same things is in test_leases.c and test_lease_monitor.c; crashes of the process are in
 * tests/crash/test_leases.py.
 */
#include "test.h"

#include "domain/account.h"
#include "domain/world.h"
#include "lease_rig.h"
#include "service/record/lease_records.h"

/* A lease with an end and without a duration: a manager took the duration away and set an end. */
static struct str make_endless(struct lease_rig *r, int64_t hours)
{
	struct lease_edit change = { .sets_expiry = true };
	struct str        uuid;

	r->policy.requires_duration = false;
	uuid = ask(r, &ann, r->by_request);
	CHECK(order(r, lease_approve, uuid, &manager, NULL) == RC_OK);
	CHECK(edit(r, uuid, &change) == RC_OK);
	(void)rig_turn(&r->k);
	CHECK(status_of(r, uuid) == LEASE_ACTIVE && lease_of(r, uuid).duration_ms == 0);
	change.expires_ms = r->k.clock.test_ms + hours * HOUR_MS;
	CHECK(edit(r, uuid, &change) == RC_OK);
	return uuid;
}

TEST(hazard_a_an_end_without_a_duration_leads_to_all_events_and_a_cleanup)
{
	struct lease_rig r;
	struct str       uuid, id;

	lease_rig_open(&r, 1);
	uuid = make_endless(&r, 6);
	id = lease_of(&r, uuid).account_id;
	rig_pass(&r.k, 6 * HOUR_MS + SECOND_MS);
	check_ended(&r, uuid, LEASE_EXPIRED);
	CHECK(told(&r, "LeaseExpired", uuid) == 1 && told(&r, "LeaseTerminated", uuid) == 1);
	CHECK(told(&r, "CleanAccountRequest", STR("")) == 1);
	rig_pass(&r.k, 3 * HOUR_MS);
	CHECK(account_of(&r, id).status == ACCOUNT_AVAILABLE);
	lease_rig_close(&r);
}

TEST(hazard_b_a_freeze_by_time_without_a_duration_is_a_whole_event)
{
	struct lease_rig  r;
	struct lease_edit freezing = { .sets_duration = true,
		                       .duration_thresholds = STR(
		                               "[{\"hoursRemaining\":2,\"action\":\"FREEZE_ACCOUNT\"}]") };
	struct str        uuid, detail;

	lease_rig_open(&r, 1);
	uuid = make_endless(&r, 6);
	CHECK(edit(&r, uuid, &freezing) == RC_OK);
	rig_pass(&r.k, 4 * HOUR_MS);
	CHECK(status_of(&r, uuid) == LEASE_FROZEN);
	detail = last_detail(&r, "LeaseFreezingThresholdAlert", uuid);
	CHECK(mentions(detail, "\"triggeredDurationThreshold\":2,\"leaseDurationInHours\":6}"));
	CHECK(mentions(last_detail(&r, "LeaseFrozen", uuid), "\"leaseDurationInHours\":6"));
	lease_rig_close(&r);
}

static struct str hook_uuid;

static void end_meanwhile(struct lease_rig *r)
{
	r->before_cost = NULL;
	CHECK(order(r, lease_terminate, hook_uuid, &manager, NULL) == RC_OK);
}

TEST(hazard_c_the_monitor_does_not_bring_an_ended_lease_back)
{
	struct lease_rig r;

	lease_rig_open(&r, 1);
	hook_uuid = make_active(&r, &ann);
	r.cost = 3 * USD;
	r.before_cost = end_meanwhile;
	(void)run_pass(&r, pass_watch_leases, "watched");
	check_ended(&r, hook_uuid, LEASE_MANUALLY_TERMINATED);
	(void)run_pass(&r, pass_watch_leases, "watched");
	CHECK(status_of(&r, hook_uuid) == LEASE_MANUALLY_TERMINATED && told(&r, "LeaseTerminated", hook_uuid) == 1);
	lease_rig_close(&r);
}

static struct lease_rig *hook_rig;
static struct str        rival;

static void approve_meanwhile(void *arg)
{
	(void)arg;
	hook_rig->faults.before_write = NULL;
	CHECK(order(hook_rig, lease_approve, rival, &manager, NULL) == RC_OK);
}

static void ask_meanwhile(void *arg)
{
	(void)arg;
	hook_rig->faults.before_write = NULL;
	ask(hook_rig, &ann, hook_rig->by_request);
}

TEST(hazard_d_counting_leases_and_picking_an_account_are_one_decision)
{
	struct lease_rig     r;
	struct lease_request third = { .by = ann };
	struct str           uuid;

	lease_rig_open(&r, 1);
	hook_rig = &r;
	uuid = ask(&r, &ann, r.by_request);
	rival = ask(&r, &bob, r.by_request);
	r.faults.before_write = approve_meanwhile;
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_OK);
	CHECK(status_of(&r, rival) == LEASE_PROVISIONING && status_of(&r, uuid) == LEASE_PENDING_APPROVAL);
	CHECK(lease_of(&r, uuid).queued_ms > 0 && lease_of(&r, uuid).account_id.n == 0);

	ask(&r, &ann, r.by_request);
	third.template_uuid = r.by_request;
	r.faults.before_write = ask_meanwhile;
	CHECK(try_ask(&r, &third, NULL) == RC_CONFLICT && live_of(&r, &ann) == 3);
	lease_rig_close(&r);
}

/* --- the document's scenarios --- */

static void goes_wrong(struct lease_rig *r, enum world_fault fault, enum world_call call, int64_t count)
{
	struct world_rules rules = { .count = 1,
		                     .rules = { { .fault = fault, .call = call, .per_mille = 1000, .count = count } } };

	sim_cloud_world(r->sim)->ops->set_rules(sim_cloud_world(r->sim), &rules);
}

/* Stopped after the approval was written and before anybody was told; and then in each step outside, done or not. */
TEST(scenario_1_crash_during_approval)
{
	static const enum world_call  calls[] = { WORLD_MOVE, WORLD_GRANT, WORLD_ISSUE };
	static const enum world_fault faults[] = { WORLD_TIMEOUT_BEFORE, WORLD_TIMEOUT_AFTER };

	for (size_t i = 0; i < ARRAY_LEN(calls) * ARRAY_LEN(faults); i++) {
		struct lease_rig r;
		struct str       uuid;

		CASE(world_call_names[calls[i / 2]]);
		lease_rig_open(&r, 2);
		uuid = ask(&r, &ann, r.by_request);
		goes_wrong(&r, faults[i % 2], calls[i / 2], 2);
		r.faults.next = FAULT_AFTER;
		r.faults.count = 1;
		CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_UNAVAILABLE);
		CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_CONFLICT); /* it did happen */
		rig_pass(&r.k, HOUR_MS);
		CHECK(status_of(&r, uuid) == LEASE_ACTIVE && told(&r, "LeaseApproved", uuid) == 1);
		CHECK(free_accounts(&r) == 1 && live_of(&r, &ann) == 1);
		lease_rig_close(&r);
	}
}

TEST(scenario_2_store_update_fails)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_request);
	r.faults.next = FAULT_BEFORE;
	r.faults.count = 3;
	for (int i = 0; i < 3; i++)
		CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_UNAVAILABLE);
	CHECK(status_of(&r, uuid) == LEASE_PENDING_APPROVAL && free_accounts(&r) == 1);
	CHECK(told(&r, "LeaseProvisioningStarted", uuid) == 0);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_OK);
	(void)rig_turn(&r.k);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE);
	lease_rig_close(&r);
}

/* The event and what it tells of are one commit: there is no lease that is Active and was never announced, nor the
 * other way round. */
TEST(scenario_3_publish_fails)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_request);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_GRANT, 4);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_OK);
	(void)rig_turn(&r.k);
	CHECK(status_of(&r, uuid) == LEASE_PROVISIONING && told(&r, "LeaseApproved", uuid) == 0);
	r.faults.next = FAULT_RERUN; /* from now on every commit is thrown away once */
	r.faults.count = 1000;
	rig_pass(&r.k, HOUR_MS);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE && told(&r, "LeaseApproved", uuid) == 1 && r.faults.injected > 0);
	lease_rig_close(&r);
}

/* The daily pass finds it, ends it, tells, and its owner can ask again. */
TEST(scenario_4_partially_approved)
{
	struct lease_rig r;
	struct str       uuid, id;

	lease_rig_open(&r, 2);
	uuid = make_active(&r, &ann);
	id = lease_of(&r, uuid).account_id;
	forget_account(&r, id);
	CHECK(run_pass(&r, pass_find_orphans, "ended") == 1);
	check_ended(&r, uuid, LEASE_ACCOUNT_QUARANTINED);
	CHECK(told(&r, "LeaseTerminated", uuid) == 1 && live_of(&r, &ann) == 0);
	CHECK(run_pass(&r, pass_find_orphans, "ended") == 0);
	(void)make_active(&r, &ann);
	lease_rig_close(&r);
}
