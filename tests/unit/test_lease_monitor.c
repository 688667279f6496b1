/* SPDX-License-Identifier: Apache-2.0 */
/* test_lease_monitor.c - what time and money do to leases; what the passes find. */
#include "test.h"

#include "domain/account.h"
#include "kernel/event.h"
#include "lease_rig.h"
#include "service/policy/policy_store.h"
#include "service/record/lease_records.h"

/* --- time --- */

TEST(a_lease_ends_within_the_second_of_its_end)
{
	struct lease_rig r;
	struct str       uuid;
	int64_t          expires_ms;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	expires_ms = lease_of(&r, uuid).expires_ms;
	rig_pass(&r.k, expires_ms - r.k.clock.test_ms);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE);
	CHECK(told(&r, "LeaseDurationThresholdAlert", uuid) == 1);
	CHECK(mentions(last_detail(&r, "LeaseDurationThresholdAlert", uuid),
	               "\"triggeredDurationThreshold\":4,\"leaseDurationInHours\":48,\"actionRequested\":\"ALERT\""));
	rig_pass(&r.k, SECOND_MS);
	check_ended(&r, uuid, LEASE_EXPIRED);
	CHECK(lease_of(&r, uuid).end_ms - expires_ms < SECOND_MS);
	CHECK(told(&r, "LeaseExpired", uuid) == 1 &&
	      mentions(last_detail(&r, "LeaseExpired", uuid), "\"leaseExpirationDate\":\"20"));
	lease_rig_close(&r);
}

TEST(a_frozen_lease_expires_too)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	CHECK(order(&r, lease_freeze, uuid, &manager, NULL) == RC_OK);
	rig_pass(&r.k, 49 * HOUR_MS);
	check_ended(&r, uuid, LEASE_EXPIRED);
	lease_rig_close(&r);
}

static enum rc emit_timer(struct session *s, void *arg, struct err *e)
{
	struct event event = { .type = STR(EVENT_LEASE_TIMER_DUE),
		               .subject = str_format(session_arena(s), "lease/%.*s", STR_ARG(*(struct str *)arg)) };

	return session_emit(s, &event, e);
}

TEST(each_of_several_thresholds_is_told_at_its_moment)
{
	struct lease_rig  r;
	struct str        uuid;
	struct lease_edit three = { .sets_duration = true,
		                    .duration_thresholds = STR("[{\"hoursRemaining\":24,\"action\":\"ALERT\"},"
		                                               "{\"hoursRemaining\":1,\"action\":\"ALERT\"},"
		                                               "{\"hoursRemaining\":4,\"action\":\"ALERT\"}]") };

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	CHECK(edit(&r, uuid, &three) == RC_OK);
	rig_pass(&r.k, 24 * HOUR_MS - 1);
	CHECK(told(&r, "LeaseDurationThresholdAlert", uuid) == 0);
	rig_pass(&r.k, 1);
	CHECK(told(&r, "LeaseDurationThresholdAlert", uuid) == 1);
	rig_pass(&r.k, 20 * HOUR_MS);
	CHECK(told(&r, "LeaseDurationThresholdAlert", uuid) == 2);
	rig_pass(&r.k, 3 * HOUR_MS);
	CHECK(told(&r, "LeaseDurationThresholdAlert", uuid) == 3);
	CHECK(mentions(last_detail(&r, "LeaseDurationThresholdAlert", uuid), "\"triggeredDurationThreshold\":1,"));
	lease_rig_close(&r);
}

TEST(a_duration_threshold_freezes_at_its_moment)
{
	struct lease_rig  r;
	struct str        uuid;
	struct lease_edit freezing = { .sets_duration = true,
		                       .duration_thresholds = STR(
		                               "[{\"hoursRemaining\":1.5,\"action\":\"FREEZE_ACCOUNT\"}]") };
	int64_t           moment_ms;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	CHECK(edit(&r, uuid, &freezing) == RC_OK);
	moment_ms = lease_of(&r, uuid).expires_ms - HOUR_MS * 3 / 2;
	rig_pass(&r.k, moment_ms - 1 - r.k.clock.test_ms);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE);
	rig_pass(&r.k, 1);
	CHECK(status_of(&r, uuid) == LEASE_FROZEN && told(&r, "LeaseDurationThresholdAlert", uuid) == 0);
	CHECK(mentions(
	        last_detail(&r, "LeaseFreezingThresholdAlert", uuid),
	        "\"reason\":{\"type\":\"Expired\",\"triggeredDurationThreshold\":1.5,\"leaseDurationInHours\":48}"));
	CHECK(told(&r, "LeaseFrozen", uuid) == 1 && !is_armed(&r, "moment", uuid) && is_armed(&r, "expiry", uuid));
	CHECK(order(&r, lease_unfreeze, uuid, &manager, NULL) == RC_OK);
	rig_pass(&r.k, HOUR_MS);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE && told(&r, "LeaseFrozen", uuid) == 1);
	lease_rig_close(&r);
}

TEST(a_timer_that_comes_late_does_nothing)
{
	struct lease_rig r;
	struct str       ended, frozen, unknown = STR("00000000-0000-0000-0000-000000000000");
	struct lease     before;

	lease_rig_open(&r, 2);
	ended = make_active(&r, &ann);
	frozen = make_active(&r, &bob);
	CHECK(order(&r, lease_terminate, ended, &manager, NULL) == RC_OK);
	CHECK(order(&r, lease_freeze, frozen, &manager, NULL) == RC_OK);
	(void)rig_turn(&r.k);
	before = lease_of(&r, ended);
	r.k.clock.test_ms = before.expires_ms + HOUR_MS;
	rig_run(&r.k, emit_timer, &ended);
	rig_run(&r.k, emit_timer, &unknown);
	(void)rig_turn(&r.k);
	CHECK(lease_of(&r, ended).edited_ms == before.edited_ms && told(&r, "LeaseExpired", ended) == 0);
	CHECK(status_of(&r, frozen) == LEASE_EXPIRED);
	CHECK(told(&r, "DeadLettered", STR("")) == 0);
	lease_rig_close(&r);
}

/* --- money --- */

TEST(each_crossing_is_told_once)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	r.cost = 9 * USD;
	CHECK(run_pass(&r, pass_watch_leases, "watched") == 1);
	CHECK(told(&r, "LeaseBudgetThresholdAlert", uuid) == 0 && lease_of(&r, uuid).cost == 9 * USD);
	r.cost = 10 * USD + 500000;
	CHECK(run_pass(&r, pass_watch_leases, "acted") == 1);
	CHECK(run_pass(&r, pass_watch_leases, "acted") == 0);
	r.cost = 20 * USD;
	CHECK(run_pass(&r, pass_watch_leases, "acted") == 0);
	CHECK(told(&r, "LeaseBudgetThresholdAlert", uuid) == 1);
	CHECK(mentions(
	        last_detail(&r, "LeaseBudgetThresholdAlert", uuid),
	        "\"budget\":50,\"totalSpend\":10.5,\"budgetThresholdTriggered\":10,\"actionRequested\":\"ALERT\",\"threshold\":20,"));
	r.cost = 41 * USD;
	CHECK(run_pass(&r, pass_watch_leases, "acted") == 1);
	CHECK(status_of(&r, uuid) == LEASE_FROZEN && account_of(&r, r.accounts[0]).status == ACCOUNT_FROZEN);
	CHECK(told(&r, "LeaseFreezingThresholdAlert", uuid) == 1 && told(&r, "LeaseFrozen", uuid) == 1);
	CHECK(mentions(
	        last_detail(&r, "LeaseFrozen", uuid),
	        "{\"type\":\"BudgetExceeded\",\"triggeredBudgetThreshold\":40,\"budget\":50,\"totalSpend\":41}"));
	CHECK(run_pass(&r, pass_watch_leases, "acted") == 0);
	r.cost = 50 * USD;
	CHECK(run_pass(&r, pass_watch_leases, "acted") == 1);
	check_ended(&r, uuid, LEASE_BUDGET_EXCEEDED);
	CHECK(mentions(last_detail(&r, "LeaseBudgetExceeded", uuid), "\"budget\":50,\"totalSpend\":50"));
	CHECK(run_pass(&r, pass_watch_leases, "watched") == 0);
	lease_rig_close(&r);
}

TEST(a_crossing_is_told_once_though_the_transaction_runs_twice_and_the_timer_comes_too)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	r.k.clock.test_ms += 44 * HOUR_MS + MINUTE_MS; /* the timer is due but has not been seen to */
	r.faults.next = FAULT_RERUN;
	r.faults.count = 2;
	CHECK(run_pass(&r, pass_watch_leases, "acted") == 1);
	(void)rig_turn(&r.k);
	CHECK(told(&r, "LeaseDurationThresholdAlert", uuid) == 1);
	lease_rig_close(&r);
}

static struct policy_holder *replaced;

/* What was in force before the first of them is gone after the second. */
static void replace_policy_twice(struct lease_rig *r)
{
	static uint64_t version;

	for (int i = 0; i < 2; i++) {
		struct document d = { .text = STR("leases: {maxBudget: 75}"), .version = ++version };

		CHECK(policy_holder_take(replaced, DOCUMENT_GLOBAL, &d, NULL) == RC_OK);
		r->k.clock.test_mono_ms += POLICY_VALID_MS + SECOND_MS;
	}
}

static const struct policy *policy_held(void *arg)
{
	return policy_current(arg);
}

TEST(a_policy_that_is_replaced_while_costs_are_asked_for_is_not_read_again)
{
	struct lease_rig   r;
	struct lease_world world = { .policy = policy_held };
	struct pass        pass = { .leases = &world };
	struct pass_result result = { 0 };

	lease_rig_open(&r, 2);
	(void)make_active(&r, &ann);
	(void)make_active(&r, &bob);
	world.policy_arg = replaced = policy_holder_new(r.k.store, &r.k.clock);
	world.cloud.costs = &r.costs;
	pass.store = r.k.store;
	pass.clock = &r.k.clock;
	r.before_cost = replace_policy_twice;
	CHECK(pass_watch_leases(&pass, &result, NULL) == RC_OK && result.counts[0].value == 2);
	policy_holder_free(replaced);
	lease_rig_close(&r);
}

/* A dollar a day, until cost_at_ms if there is one. What is older than CLOUD_SPEND_DAYS cannot be had. */
static enum rc dollar_a_day(struct costs *c, struct str account_id UNUSED, int64_t from_ms, int64_t to_ms,
                            struct cloud_spend *ret, struct err *e)
{
	const struct lease_rig *r = CONTAINER_OF(c, struct lease_rig, costs);
	int64_t                 end_ms = r->cost_at_ms && r->cost_at_ms < to_ms ? r->cost_at_ms : to_ms;

	if (r->k.clock.test_ms - from_ms > CLOUD_SPEND_DAYS * 24 * HOUR_MS)
		return err_set(e, RC_INVALID, "too long ago");
	*ret = (struct cloud_spend){ .complete_until_ms = to_ms };
	if (end_ms > from_ms)
		ret->micro_usd = (end_ms - from_ms) / (24 * HOUR_MS) * USD;
	return RC_OK;
}

static const struct costs_ops dollar_a_day_ops = { dollar_a_day };

static enum rc make_endless(struct session *s, void *arg, struct err *e)
{
	struct lease l;
	enum rc      rc = session_get(s, &lease_type, *(struct str *)arg, &l, e);

	if (rc)
		return rc;
	l.max_spend = l.duration_ms = l.expires_ms = 0;
	l.budget_thresholds = l.duration_thresholds = STR("");
	session_put(s, &lease_type, &l);
	return RC_OK;
}

TEST(the_cost_of_a_lease_that_lasts_for_more_than_a_year_is_all_of_it)
{
	struct lease_rig r;
	struct str       uuid;
	int64_t          from_ms;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	rig_run(&r.k, make_endless, &uuid);
	from_ms = lease_of(&r, uuid).start_ms;
	from_ms -= from_ms % (24 * HOUR_MS);
	r.costs.ops = &dollar_a_day_ops;
	for (int day = 0; day < 900; day++) {
		r.k.clock.test_ms += 24 * HOUR_MS;
		CHECK(run_pass(&r, pass_watch_leases, "without_cost") == 0);
		CHECK(lease_of(&r, uuid).cost == (r.k.clock.test_ms - from_ms) / (24 * HOUR_MS) * USD);
	}
	lease_rig_close(&r);
}

TEST(a_cost_of_which_a_part_can_no_longer_be_had_does_not_fall)
{
	struct lease_rig r;
	struct str       uuid;
	int64_t          cost;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	rig_run(&r.k, make_endless, &uuid);
	r.costs.ops = &dollar_a_day_ops;
	r.k.clock.test_ms += 250 * 24 * HOUR_MS;
	CHECK(run_pass(&r, pass_watch_leases, "watched") == 1);
	cost = lease_of(&r, uuid).cost;
	CHECK(cost >= 250 * USD);
	r.cost_at_ms = r.k.clock.test_ms; /* it costs nothing from now on, and nobody looks for a long time */
	r.k.clock.test_ms += 400 * 24 * HOUR_MS;
	for (int day = 0; day < 3; day++) {
		CHECK(run_pass(&r, pass_watch_leases, "without_cost") == 0 && lease_of(&r, uuid).cost == cost);
		r.k.clock.test_ms += 24 * HOUR_MS;
	}
	lease_rig_close(&r);
}

static enum rc make_old(struct session *s, void *arg, struct err *e)
{
	struct lease l;
	enum rc      rc = session_get(s, &lease_type, *(struct str *)arg, &l, e);

	if (rc)
		return rc;
	l.start_ms -= 500 * 24 * HOUR_MS;
	l.cost = 410 * USD;
	l.cost_at_ms = session_now(s).ms;
	session_put(s, &lease_type, &l);
	return RC_OK;
}

TEST(the_cost_of_a_lease_that_is_older_than_the_costs_goes_on_from_what_is_known)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	rig_run(&r.k, make_endless, &uuid);
	rig_run(&r.k, make_old, &uuid);
	r.costs.ops = &dollar_a_day_ops;
	for (int day = 0; day < 450; day++) {
		CHECK(run_pass(&r, pass_watch_leases, "without_cost") == 0);
		CHECK(lease_of(&r, uuid).cost == (410 + day) * USD);
		r.k.clock.test_ms += 24 * HOUR_MS;
	}
	lease_rig_close(&r);
}

TEST(costs_that_cannot_be_had_keep_their_age_and_stop_nobody)
{
	struct lease_rig r;
	struct str       a, b;
	int64_t          known_at_ms;

	lease_rig_open(&r, 2);
	a = make_active(&r, &ann);
	b = make_active(&r, &bob);
	r.cost = 5 * USD;
	(void)run_pass(&r, pass_watch_leases, "watched");
	known_at_ms = lease_of(&r, a).cost_at_ms;
	r.k.clock.test_ms += HOUR_MS;
	r.cost = 15 * USD;
	r.cost_fails_for = lease_of(&r, a).account_id;
	CHECK(run_pass(&r, pass_watch_leases, "without_cost") == 1);
	CHECK(lease_of(&r, a).cost == 5 * USD && lease_of(&r, a).cost_at_ms == known_at_ms);
	CHECK(lease_of(&r, a).last_checked_ms == r.k.clock.test_ms);
	CHECK(lease_of(&r, b).cost == 15 * USD && lease_of(&r, b).cost_at_ms == r.k.clock.test_ms);
	CHECK(told(&r, "LeaseBudgetThresholdAlert", b) == 1 && told(&r, "LeaseBudgetThresholdAlert", a) == 0);
	lease_rig_close(&r);
}

static struct str hook_uuid;

static void freeze_meanwhile(struct lease_rig *r)
{
	r->before_cost = NULL;
	CHECK(order(r, lease_freeze, hook_uuid, &manager, NULL) == RC_OK);
}

static void terminate_meanwhile(struct lease_rig *r)
{
	r->before_cost = NULL;
	CHECK(order(r, lease_terminate, hook_uuid, &manager, NULL) == RC_OK);
}

TEST(the_monitor_does_not_overwrite_what_happens_meanwhile)
{
	struct lease_rig r;

	lease_rig_open(&r, 1);
	hook_uuid = make_active(&r, &ann);
	r.cost = 3 * USD;
	r.before_cost = freeze_meanwhile;
	(void)run_pass(&r, pass_watch_leases, "watched");
	CHECK(status_of(&r, hook_uuid) == LEASE_FROZEN && lease_of(&r, hook_uuid).cost == 3 * USD);
	r.cost = 60 * USD;
	r.before_cost = terminate_meanwhile;
	(void)run_pass(&r, pass_watch_leases, "watched");
	check_ended(&r, hook_uuid, LEASE_MANUALLY_TERMINATED);
	CHECK(lease_of(&r, hook_uuid).cost == 3 * USD && told(&r, "LeaseBudgetExceeded", hook_uuid) == 0);
	lease_rig_close(&r);
}

TEST(an_older_figure_is_not_used)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	r.cost = 8 * USD;
	r.cost_at_ms = r.k.clock.test_ms;
	(void)run_pass(&r, pass_watch_leases, "watched");
	r.cost = 2 * USD;
	r.cost_at_ms -= HOUR_MS;
	(void)run_pass(&r, pass_watch_leases, "watched");
	CHECK(lease_of(&r, uuid).cost == 8 * USD);
	lease_rig_close(&r);
}

TEST(a_projected_spend_over_the_budget_is_told_once_and_only_when_it_is_wanted)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	r.k.clock.test_ms += 2 * HOUR_MS;
	r.cost = 5 * USD; /* 2.50 an hour for 48 hours: 120 */
	(void)run_pass(&r, pass_watch_leases, "watched");
	CHECK(told(&r, "LeaseProjectedSpendAlert", uuid) == 0);
	r.projects = true;
	(void)run_pass(&r, pass_watch_leases, "watched");
	(void)run_pass(&r, pass_watch_leases, "watched");
	CHECK(told(&r, "LeaseProjectedSpendAlert", uuid) == 1);
	CHECK(mentions(last_detail(&r, "LeaseProjectedSpendAlert", uuid),
	               "\"totalSpend\":5,\"estimatedSpend\":5,\"projectedSpend\":120"));
	lease_rig_close(&r);
}

/* 2 dollars an hour are known for five of ten hours: 10 known, 20 spent, 96 at its end. */
static struct str spend_with_a_lag(struct lease_rig *r)
{
	struct str uuid;

	lease_rig_open(r, 1);
	uuid = make_active(r, &ann);
	r->k.clock.test_ms += 10 * HOUR_MS;
	r->cost = 10 * USD;
	r->cost_at_ms = r->k.clock.test_ms - 5 * HOUR_MS;
	return uuid;
}

TEST(a_lease_is_ended_by_what_is_not_billed_yet_when_the_policy_says_so)
{
	struct lease_rig r;
	struct str       uuid = spend_with_a_lag(&r);

	r.policy.on_projected_overrun = STR("end");
	CHECK(run_pass(&r, pass_watch_leases, "acted") == 1);
	check_ended(&r, uuid, LEASE_BUDGET_EXCEEDED);
	CHECK(mentions(last_detail(&r, "LeaseTerminated", uuid),
	               "\"totalSpend\":10,\"estimatedSpend\":20,\"projectedSpend\":96"));
	lease_rig_close(&r);
}

TEST(a_lease_that_is_thawed_without_a_larger_budget_is_frozen_again)
{
	struct lease_rig r;
	struct str       uuid = spend_with_a_lag(&r);

	r.policy.on_projected_overrun = STR("freeze");
	(void)run_pass(&r, pass_watch_leases, "acted");
	CHECK(status_of(&r, uuid) == LEASE_FROZEN && told(&r, "LeaseFrozen", uuid) == 1);
	CHECK(run_pass(&r, pass_watch_leases, "acted") == 0);
	CHECK(order(&r, lease_unfreeze, uuid, &manager, NULL) == RC_OK);
	(void)run_pass(&r, pass_watch_leases, "acted");
	CHECK(status_of(&r, uuid) == LEASE_FROZEN && told(&r, "LeaseFrozen", uuid) == 2);
	lease_rig_close(&r);
}

/* --- what was lost, and what is over --- */

static enum rc forget_lease(struct session *s, void *arg, struct err *e)
{
	struct lease l;
	enum rc      rc = session_get(s, &lease_type, *(struct str *)arg, &l, e);

	if (!rc)
		session_delete(s, &lease_type, l.uuid);
	return rc;
}

TEST(a_lease_and_an_account_that_have_lost_each_other_are_found)
{
	struct lease_rig r;
	struct str       orphan, gone, well;
	struct str       id;

	lease_rig_open(&r, 3);
	orphan = make_active(&r, &ann);
	gone = make_active(&r, &bob);
	well = make_active(&r, &bob);
	CHECK(run_pass(&r, pass_find_orphans, "ended") == 0);
	id = lease_of(&r, orphan).account_id;
	forget_account(&r, id);
	id = lease_of(&r, gone).account_id;
	rig_run(&r.k, forget_lease, &gone);
	CHECK(run_pass(&r, pass_find_orphans, "ended") == 1);
	check_ended(&r, orphan, LEASE_ACCOUNT_QUARANTINED);
	CHECK(account_of(&r, id).status == ACCOUNT_CLEANUP && status_of(&r, well) == LEASE_ACTIVE);
	CHECK(run_pass(&r, pass_find_orphans, "taken_back") == 0);
	rig_pass(&r.k, HOUR_MS);
	CHECK(account_of(&r, id).status == ACCOUNT_AVAILABLE);
	lease_rig_close(&r);
}

TEST(a_lease_whose_account_is_gone_ends_by_its_timer_all_the_same)
{
	struct lease_rig r;
	struct str       uuid, id;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	id = lease_of(&r, uuid).account_id;
	forget_account(&r, id);
	CHECK(order(&r, lease_terminate, uuid, &manager, NULL) == RC_NOT_FOUND);
	rig_pass(&r.k, 49 * HOUR_MS);
	check_ended(&r, uuid, LEASE_EXPIRED);
	lease_rig_close(&r);
}

TEST(what_is_over_is_removed_after_its_time_and_not_before)
{
	struct lease_rig r;
	struct str       denied, ended, pending;

	lease_rig_open(&r, 1);
	ended = make_active(&r, &ann);
	denied = ask(&r, &ann, r.by_request);
	CHECK(order(&r, lease_deny, denied, &manager, NULL) == RC_OK);
	pending = ask(&r, &ann, r.by_request);
	r.k.clock.test_ms += 24 * HOUR_MS;
	CHECK(order(&r, lease_terminate, ended, &manager, NULL) == RC_OK);
	r.k.clock.test_ms += 29 * 24 * HOUR_MS - SECOND_MS;
	CHECK(run_pass(&r, pass_purge_leases, "removed") == 0);
	r.k.clock.test_ms += SECOND_MS;
	CHECK(run_pass(&r, pass_purge_leases, "removed") == 1);
	CHECK(status_of(&r, ended) == LEASE_MANUALLY_TERMINATED);
	r.k.clock.test_ms += 24 * HOUR_MS;
	CHECK(run_pass(&r, pass_purge_leases, "removed") == 1);
	CHECK(status_of(&r, pending) == LEASE_PENDING_APPROVAL);
	lease_rig_close(&r);
}

/* --- many --- */

enum { MANY = 120 };

static enum rc add_many(struct session *s, void *arg, struct err *e)
{
	int *from = arg;

	(void)e;
	for (int i = *from; i < *from + 40; i++) {
		struct lease   l = { .uuid = str_format(session_arena(s), "00000000-0000-0000-0000-%012d", i),
			             .user_email = STR("ann@example.com"),
			             .user_key = STR("ann@example.com"),
			             .status = i % 2 ? LEASE_ACTIVE : LEASE_FROZEN,
			             .template_uuid = STR("t"),
			             .template_name = STR("t"),
			             .approved_by = STR("x"),
			             .account_id = str_format(session_arena(s), "%012d", i),
			             .start_ms = session_now(s).ms,
			             .last_checked_ms = session_now(s).ms,
			             .created_ms = i / 7 };
		struct account a = { .id = l.account_id,
			             .status = i % 2 ? ACCOUNT_ACTIVE : ACCOUNT_FROZEN,
			             .holder = i % 2 ? l.user_email : STR(""),
			             .lease_uuid = l.uuid };

		session_add(s, &lease_type, &l);
		session_add(s, &account_type, &a);
	}
	return RC_OK;
}

TEST(a_pass_sees_all_leases_whatever_their_number)
{
	struct lease_rig  r;
	struct lease_list list = { .limit = 1000, .has_status = true, .status = LEASE_ACTIVE };

	lease_rig_open(&r, 0);
	for (int from = 0; from < MANY; from += 40)
		rig_run(&r.k, add_many, &from);
	r.cost = 7 * USD;
	CHECK(run_pass(&r, pass_watch_leases, "watched") == MANY);
	CHECK(run_pass(&r, pass_find_orphans, "ended") == 0);
	rig_run(&r.k, lease_list, &list);
	CHECK(list.page.count == MANY / 2);
	for (size_t i = 0; i < list.page.count; i++)
		CHECK(((struct lease *)page_record(&list.page, &lease_type, i))->cost == 7 * USD);
	lease_rig_close(&r);
}

static bool stop(void *arg, int64_t ms)
{
	(void)arg;
	(void)ms;
	return false;
}

TEST(a_pass_stops_when_it_is_told_to)
{
	struct lease_rig   r;
	struct lease_world world = { 0 };
	struct pass        p = { .wait = stop, .leases = &world };
	struct pass_result result = { 0 };
	struct str         uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	p.store = r.k.store;
	p.clock = &r.k.clock;
	world.cloud.costs = &r.costs;
	r.cost = 60 * USD;
	CHECK(pass_watch_leases(&p, &result, NULL) == RC_UNAVAILABLE);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE);
	lease_rig_close(&r);
}
