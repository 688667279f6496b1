/* SPDX-License-Identifier: Apache-2.0 */
/* test_guard_release.c - the conformance cases R1 to R11: how an account comes back from its hold. R8 is in
 * tests/api. */
#include "test.h"

#include "guard_rig.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "truth/sim_truth.h"

/* Open, with the first account held. */
static struct hold open_held(struct guard_rig *r)
{
	guard_rig_open(r);
	isb_ends_cleanup(r, r->accounts[0]);
	pass(r, 5 * MINUTE_MS);
	CHECK(is_with(r, r->accounts[0], SIM_OU_QUARANTINE, "Quarantine"));
	return last_hold(r, r->accounts[0]);
}

static void pass_until_due(struct guard_rig *r, const struct hold *h)
{
	pass(r, h->due_ms - r->rig.clock.test_ms + 10 * MINUTE_MS);
}

/* Closed without a move, and nothing is left to come. */
static bool is_skipped(struct guard_rig *r, const struct hold *h, int64_t moves)
{
	struct hold now = last_hold(r, h->account);

	return str_eq(now.id, h->id) && now.state == HOLD_SKIPPED && moves_of(r, h->account) == moves &&
	       count_timers(r, HOLD_NAME_PREFIX) == 0 && open_holds(r, h->account).count == 0;
}

TEST(r1_a_hold_whose_time_has_come_brings_the_account_back)
{
	struct guard_rig r = { 0 };
	struct hold      h = open_held(&r);

	pass(&r, h.due_ms - r.rig.clock.test_ms - 1000);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_QUARANTINE, "Quarantine") && count_timers(&r, HOLD_NAME_PREFIX) == 1);
	pass(&r, MINUTE_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_RELEASED && count_timers(&r, HOLD_NAME_PREFIX) == 0);
	CHECK(text_has(last_action(&r, "UNQUARANTINE_COMPLETE").detail, "\"quarantineDuration\":\"72.00\""));
	CHECK(count_actions(&r, "UNQUARANTINE_START") == 1 && count_actions(&r, "SCHEDULER_DELETED") == 1);
	guard_rig_close(&r);
}

TEST(r2_an_account_in_cleanup_is_not_released)
{
	struct guard_rig r = { 0 };
	struct hold      h = open_held(&r);
	int64_t          moves = moves_of(&r, h.account);

	isb_writes(&r, h.account, "CleanUp");
	pass_until_due(&r, &h);
	CHECK(is_skipped(&r, &h, moves));
	CHECK(text_has(last_action(&r, "UNQUARANTINE_SKIP").detail, "account not in Quarantine status"));
	CHECK(text_has(last_action(&r, "UNQUARANTINE_SKIP").detail, "\"currentStatus\":\"CleanUp\""));
	guard_rig_close(&r);
}

TEST(r3_an_account_that_is_available_is_not_released)
{
	struct guard_rig r = { 0 };
	struct hold      h = open_held(&r);
	int64_t          moves = moves_of(&r, h.account);

	isb_writes(&r, h.account, "Available");
	pass_until_due(&r, &h);
	CHECK(is_skipped(&r, &h, moves));
	CHECK(text_has(last_action(&r, "UNQUARANTINE_SKIP").detail, "account already in Available status"));
	guard_rig_close(&r);
}

TEST(r4_an_account_that_is_gone_from_the_table_is_not_released)
{
	struct guard_rig      r = { 0 };
	struct hold           h = open_held(&r);
	struct account_table *t = sim_isb_table(r.sim);
	int64_t               moves = moves_of(&r, h.account);

	CHECK(t->ops->delete (t, h.account, STR("Quarantine"), &r.err) == RC_OK);
	pass_until_due(&r, &h);
	CHECK(is_skipped(&r, &h, moves));
	CHECK(text_has(last_action(&r, "UNQUARANTINE_SKIP").detail, "account not found in tracking"));
	guard_rig_close(&r);
}

TEST(r5_a_move_that_fails_keeps_the_hold_and_is_tried_again)
{
	struct guard_rig r = { 0 };
	struct hold      h = open_held(&r);

	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	pass_until_due(&r, &h);
	pass(&r, 20 * MINUTE_MS);
	h = last_hold(&r, h.account);
	CHECK(h.state == HOLD_OPEN && h.attempts > 0 && h.last_error.n);
	CHECK(is_with(&r, h.account, SIM_OU_QUARANTINE, "Quarantine") && count_actions(&r, "HANDLER_ERROR") > 0);

	goes_well(&r);
	pass(&r, 15 * MINUTE_MS);
	CHECK(is_with(&r, h.account, SIM_OU_AVAILABLE, "Available"));
	CHECK(last_hold(&r, h.account).state == HOLD_RELEASED);
	guard_rig_close(&r);
}

TEST(r6_a_schedule_that_is_gone_already_does_not_matter)
{
	struct guard_rig  r = { 0 };
	struct hold       h = open_held(&r);
	struct timer_call c = { .name = hold_schedule_name(&h, &r.rig.arena), .actor = STR("ann@example.com") };

	rig_run(&r.rig, timer_cancel, &c);
	CHECK(count_timers(&r, HOLD_NAME_PREFIX) == 0);
	CHECK(release_early(&r, h.id) == RC_OK);
	pass(&r, MINUTE_MS);
	CHECK(is_with(&r, h.account, SIM_OU_AVAILABLE, "Available"));
	CHECK(last_hold(&r, h.account).state == HOLD_RELEASED_EARLY);
	CHECK(str_eq(last_hold(&r, h.account).closed_by, STR("ann@example.com")));
	guard_rig_close(&r);
}

/* Our schedule dies with the hold, in one commit: either both are there or neither. */
TEST(r7_a_release_whose_end_was_not_stored_is_finished_later_without_a_second_move)
{
	struct guard_rig r = { 0 };
	struct hold      h = open_held(&r);
	int64_t          moves = moves_of(&r, h.account);

	CHECK(release_early(&r, h.id) == RC_OK);
	for (int i = 0; i < 3; i++) { /* it looks, moves, writes; each time one step further, whose outcome is lost */
		CHECK(crash_after_call(&r, i ? 2 : 1));
		CHECK(last_hold(&r, h.account).state == HOLD_OPEN && count_timers(&r, HOLD_NAME_PREFIX) == 1);
	}
	CHECK(place_of(&r, h.account) == SIM_OU_AVAILABLE);
	pass(&r, 5 * MINUTE_MS);
	CHECK(last_hold(&r, h.account).state == HOLD_RELEASED_EARLY && count_timers(&r, HOLD_NAME_PREFIX) == 0);
	CHECK(moves_of(&r, h.account) == moves + 1);
	guard_rig_close(&r);
}

static enum rc emit_due(struct session *s, void *arg, struct err *e)
{
	struct event event = {
		.type = STR(EVENT_HOLD_DUE), .subject = STR("account/x"), .actor = STR("test"), .detail = str_from(arg)
	};

	return session_emit(s, &event, e);
}

static size_t count_dead_holds(struct guard_rig *r)
{
	struct dead_list l = { .queue = STR(HOLD_QUEUE), .limit = 100 };

	CHECK(store_read(r->rig.store, dead_list, &l, &r->rig.arena, &r->err) == RC_OK);
	return l.page.count;
}

/* A release names its hold and nothing else: one that names none that we have does nothing. */
static void release_by(const char *detail, size_t expected_dead)
{
	struct guard_rig r = { 0 };
	struct hold      h = open_held(&r);
	int64_t          moves = moves_of(&r, h.account);

	rig_run(&r.rig, emit_due, (void *)(uintptr_t)detail);
	pass(&r, 3 * HOUR_MS);
	CHECK(moves_of(&r, h.account) == moves && last_hold(&r, h.account).state == HOLD_OPEN);
	CHECK(is_with(&r, h.account, SIM_OU_QUARANTINE, "Quarantine") && count_dead_holds(&r) == expected_dead);
	guard_rig_close(&r);
}

TEST(r9_a_bad_account_in_a_release_has_no_effect)
{
	release_by("{\"holdId\":\"11112222333-1700003610000\"}", 0);
}

TEST(r10_a_bad_time_in_a_release_has_no_effect)
{
	release_by("{\"holdId\":\"111122223333-yesterday\"}", 0);
}

TEST(r11_an_empty_name_in_a_release_is_an_error_before_any_effect)
{
	release_by("{\"holdId\":\"\"}", 1);
}

TEST(a_release_that_is_under_way_is_not_begun_a_second_time)
{
	struct guard_rig r = { 0 };
	struct hold      h = open_held(&r);

	goes_wrong(&r, WORLD_OUTAGE, WORLD_FIND_PARENT, 0);
	CHECK(release_early(&r, h.id) == RC_OK);
	pass(&r, MINUTE_MS);
	CHECK(release_early(&r, h.id) == RC_CONFLICT && text_has(str_from(r.err.msg), "being released already"));
	pass_until_due(&r, &h); /* its own timer does not begin another one either */
	goes_well(&r);
	pass(&r, 15 * MINUTE_MS);
	CHECK(last_hold(&r, h.account).state == HOLD_RELEASED_EARLY && count_actions(&r, "UNQUARANTINE_START") == 1);
	guard_rig_close(&r);
}

TEST(a_hold_whose_release_is_tried_again_is_not_extended)
{
	struct guard_rig r = { 0 };
	struct hold      h = open_held(&r);
	struct hold_call c = { .id = h.id, .by = { .email = STR("ann@example.com") } };

	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	pass_until_due(&r, &h);
	pass_until_retry(&r);
	c.due_ms = r.rig.clock.test_ms + 24 * HOUR_MS;
	CHECK(rig_try(&r.rig, hold_extend_until, &c, &r.err) == RC_CONFLICT);
	CHECK(text_has(str_from(r.err.msg), "being released already"));
	CHECK(last_hold(&r, h.account).due_ms == h.due_ms && count_timers(&r, HOLD_NAME_PREFIX) == 0);
	goes_well(&r);
	pass(&r, 15 * MINUTE_MS);
	CHECK(last_hold(&r, h.account).state == HOLD_RELEASED);
	guard_rig_close(&r);
}

/* --- a hold that ends while its saga goes on --- */

static void isb_changes(struct guard_rig *r, struct str account, enum sim_ou_name to)
{
	CHECK(sim_isb_change(r->sim, account, to, &r->err) == RC_OK);
	pass(r, 10 * 1000);
}

/* How far the release is when the account is cleaned again. */
enum release_stage { WAITS_FOR_RETRY, IS_TO_MOVE, IS_TO_NOTE };

static void release_up_to(struct guard_rig *r, const struct hold *h, enum release_stage stage)
{
	goes_wrong(r, WORLD_OUTAGE, stage == IS_TO_NOTE ? WORLD_TABLE_SET : WORLD_MOVE, 0);
	CHECK(release_early(r, h->id) == RC_OK);
	if (stage == WAITS_FOR_RETRY) {
		pass_until_retry(r);
		return;
	}
	pass(r, 10 * 1000);
	CHECK(place_of(r, h->account) == (stage == IS_TO_NOTE ? SIM_OU_AVAILABLE : SIM_OU_QUARANTINE));
	/* it does not see where the account goes, nor what the table says, before all is over */
	goes_wrong(r, WORLD_OUTAGE, WORLD_FIND_PARENT, 0);
	goes_wrong(r, WORLD_OUTAGE, WORLD_TABLE_GET, 0);
}

TEST(a_release_does_not_bring_back_what_is_cleaned_again_and_in_vain)
{
	for (int stage = WAITS_FOR_RETRY; stage <= IS_TO_NOTE; stage++) {
		struct guard_rig r = { 0 };
		struct hold      h = open_held(&r);

		CASE(stage == WAITS_FOR_RETRY ? "retry" : stage == IS_TO_MOVE ? "move" : "note");
		release_up_to(&r, &h, (enum release_stage)stage);
		isb_changes(&r, h.account, SIM_OU_CLEANUP);
		CHECK(last_hold(&r, h.account).state == HOLD_CLEANED_AGAIN);
		isb_changes(&r, h.account, SIM_OU_QUARANTINE);
		goes_well(&r);
		pass(&r, HOUR_MS);
		CHECK(is_with(&r, h.account, SIM_OU_QUARANTINE, "Quarantine") && count_timers(&r, "") == 0);
		guard_rig_close(&r);
	}
}

static enum rc cancel(struct guard_rig *r, struct str hold_id)
{
	struct hold_call c = { .id = hold_id, .reason = STR("a mistake"), .by = { .email = STR("ann@example.com") } };

	return rig_try(&r->rig, hold_cancel, &c, &r->err);
}

/* The event of the way to CleanUp is lost. */
TEST(a_release_whose_hold_is_cancelled_does_not_bring_back_what_another_hold_locks)
{
	struct guard_rig r = { 0 };
	struct hold      h = open_held(&r);

	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	CHECK(release_early(&r, h.id) == RC_OK);
	pass_until_retry(&r);
	goes_wrong(&r, WORLD_LOSE_EVENTS, WORLD_ANY_CALL, 1);
	isb_changes(&r, h.account, SIM_OU_CLEANUP);
	isb_changes(&r, h.account, SIM_OU_QUARANTINE);
	CHECK(open_holds(&r, h.account).count == 2);
	CHECK(cancel(&r, h.id) == RC_OK && open_holds(&r, h.account).count == 1);
	goes_well(&r);
	pass(&r, HOUR_MS);
	CHECK(is_with(&r, h.account, SIM_OU_QUARANTINE, "Quarantine"));
	CHECK(open_holds(&r, h.account).count == 1 && open_holds(&r, h.account).items[0].locks);
	guard_rig_close(&r);
}

TEST(an_account_on_its_way_to_quarantine_is_not_released_before_it_is_there)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, 20 * 1000);
	CHECK(release_early(&r, last_hold(&r, r.accounts[0]).id) == RC_CONFLICT);
	CHECK(text_has(str_from(r.err.msg), "on its way to Quarantine"));
	guard_rig_close(&r);
}

/* The hold was never carried out: at its end there is nothing to bring back. */
TEST(a_hold_that_never_succeeded_ends_in_its_time)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, 75 * HOUR_MS);
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_SKIPPED && count_timers(&r, "") == 0);
	CHECK(place_of(&r, r.accounts[0]) == SIM_OU_AVAILABLE);
	guard_rig_close(&r);
}
