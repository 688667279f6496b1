/* SPDX-License-Identifier: Apache-2.0 */
/* test_guard_more.c - the conformance cases that the tool before us lacked, as far as a guard beside another system has
 * them: X1 to X5, X8 to X14, X16, X17, X19 to X21; and the other system's late writes. */
#include "test.h"

#include "guard_rig.h"
#include "truth/sim_truth.h"

static void open_held(struct guard_rig *r)
{
	guard_rig_open(r);
	isb_ends_cleanup(r, r->accounts[0]);
	pass(r, 5 * MINUTE_MS);
	CHECK(is_held(r, r->accounts[0]));
}

/* What the other system does when somebody has an account cleaned again. */
static void isb_cleans_again(struct guard_rig *r, struct str account)
{
	CHECK(sim_isb_change(r->sim, account, SIM_OU_CLEANUP, &r->err) == RC_OK);
	pass(r, 10 * MINUTE_MS);
	isb_ends_cleanup(r, account);
	pass(r, 10 * MINUTE_MS);
}

/* Ready for the event to be looked at. */
static void open_with_event(struct guard_rig *r)
{
	guard_rig_open(r);
	r->drops_events = true;
	isb_ends_cleanup(r, r->accounts[0]);
	CHECK(send_body(r, event_text(r, "e-1", r->accounts[0], SIM_OU_CLEANUP, SIM_OU_AVAILABLE, r->rig.clock.test_ms,
	                              "")) == 1);
}

TEST(x1_wherever_the_process_ends_there_is_one_hold_with_one_release_time)
{
	for (int calls = 0; calls <= 2; calls++) { /* the look at the event, the move, the write of the table */
		struct guard_rig r = { 0 };

		open_with_event(&r);
		CHECK(crash_after_call(&r, calls));
		CHECK(count_timers(&r, HOLD_NAME_PREFIX) == open_holds(&r, r.accounts[0]).count);
		pass(&r, 30 * MINUTE_MS);
		CHECK(is_held(&r, r.accounts[0]) && count_holds(&r, r.accounts[0]) == 1);
		CHECK(count_timers(&r, HOLD_NAME_PREFIX) == 1 && count_dead(&r) == 0);
		guard_rig_close(&r);
	}
}

TEST(x2_after_a_crash_between_move_and_commit_the_hold_is_completed_without_a_second_move)
{
	struct guard_rig r = { 0 };
	int64_t          moves;

	open_with_event(&r);
	moves = moves_of(&r, r.accounts[0]);
	CHECK(crash_after_call(&r, 1));
	CHECK(is_with(&r, r.accounts[0], SIM_OU_QUARANTINE, "Available"));
	CHECK(str_eq(last_hold(&r, r.accounts[0]).placement, STR("intended")));
	pass(&r, 10 * MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]) && moves_of(&r, r.accounts[0]) == moves + 1);
	CHECK(count_holds(&r, r.accounts[0]) == 1);
	guard_rig_close(&r);
}

TEST(x2_a_timeout_after_the_move_is_looked_into_before_it_is_repeated)
{
	struct guard_rig r = { 0 };
	int64_t          moves;

	guard_rig_open(&r);
	isb_ends_cleanup(&r, r.accounts[0]);
	moves = moves_of(&r, r.accounts[0]);
	goes_wrong(&r, WORLD_TIMEOUT_AFTER, WORLD_MOVE, 1);
	pass(&r, 10 * MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]) && moves_of(&r, r.accounts[0]) == moves + 1);
	guard_rig_close(&r);
}

TEST(x3_held_cleaned_again_held_again_only_the_second_time_releases)
{
	struct guard_rig r = { 0 };
	struct hold      first, second;

	open_held(&r);
	first = last_hold(&r, r.accounts[0]);
	pass(&r, 24 * HOUR_MS);
	isb_cleans_again(&r, r.accounts[0]);
	second = last_hold(&r, r.accounts[0]);
	CHECK(is_held(&r, r.accounts[0]) && !str_eq(first.id, second.id) && count_timers(&r, HOLD_NAME_PREFIX) == 1);
	pass(&r, first.due_ms - r.rig.clock.test_ms + HOUR_MS);
	CHECK(is_held(&r, r.accounts[0])); /* the first one's time has come, and nothing happened */
	pass(&r, second.due_ms - r.rig.clock.test_ms + HOUR_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_RELEASED);
	guard_rig_close(&r);
}

TEST(x3_the_first_hold_ends_when_the_account_goes_to_cleanup)
{
	struct guard_rig r = { 0 };

	open_held(&r);
	CHECK(sim_isb_change(r.sim, r.accounts[0], SIM_OU_CLEANUP, &r.err) == RC_OK);
	pass(&r, MINUTE_MS);
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_CLEANED_AGAIN && count_timers(&r, HOLD_NAME_PREFIX) == 0);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_CLEANUP, "CleanUp"));
	guard_rig_close(&r);
}

/* The moves of the first cleanup fail until the second one is over; its event is still under way when they succeed. */
TEST(x3_a_move_to_quarantine_that_succeeds_late_does_not_hide_the_next_cleanup)
{
	struct guard_rig r = { .event_delay_ms = MINUTE_MS };
	struct str       account;

	guard_rig_open(&r);
	account = r.accounts[0];
	goes_wrong(&r, WORLD_OUTAGE, WORLD_FIND_PARENT, 0);
	isb_ends_cleanup(&r, account);
	pass_until_retry(&r);
	CHECK(sim_isb_change(r.sim, account, SIM_OU_CLEANUP, &r.err) == RC_OK);
	pass(&r, 4 * MINUTE_MS);
	CHECK(last_hold(&r, account).state == HOLD_CLEANED_AGAIN && count_timers(&r, "guard-retry/") == 1);
	isb_ends_cleanup(&r, account);
	goes_well(&r);
	r.drops_events = true; /* it may take longer */
	pass(&r, 5 * MINUTE_MS);
	CHECK(is_with(&r, account, SIM_OU_AVAILABLE, "Available") && count_timers(&r, "guard-retry/") == 0);
	r.drops_events = false;
	pass(&r, HOUR_MS);
	CHECK(is_held(&r, account) && count_holds(&r, account) == 2);
	guard_rig_close(&r);
}

/* The account was moved, and the table was not written yet. */
static void open_with_moved(struct guard_rig *r)
{
	guard_rig_open(r);
	goes_wrong(r, WORLD_OUTAGE, WORLD_TABLE_SET, 0);
	isb_ends_cleanup(r, r->accounts[0]);
	pass(r, 10 * 1000);
	CHECK(is_with(r, r->accounts[0], SIM_OU_QUARANTINE, "Available"));
}

TEST(x3_a_table_that_is_written_late_does_not_hide_the_next_cleanup)
{
	struct guard_rig r = { 0 };
	struct str       account;

	open_with_moved(&r);
	account = r.accounts[0];
	CHECK(sim_isb_change(r.sim, account, SIM_OU_CLEANUP, &r.err) == RC_OK);
	pass(&r, 10 * 1000);
	CHECK(last_hold(&r, account).state == HOLD_CLEANED_AGAIN);
	r.drops_events = true;
	isb_ends_cleanup(&r, account);
	goes_well(&r);
	pass(&r, 5 * MINUTE_MS);
	CHECK(is_with(&r, account, SIM_OU_AVAILABLE, "Available"));
	r.drops_events = false;
	pass(&r, HOUR_MS);
	CHECK(is_held(&r, account) && count_holds(&r, account) == 2);
	guard_rig_close(&r);
}

/* It stays in Quarantine: nobody lends it there by an old word of the table. */
TEST(the_table_follows_the_move_of_a_hold_that_is_handed_over_before)
{
	struct guard_rig r = { 0 };
	struct hold_call c = { .reason = STR("we leave"), .by = { .email = STR("ann@example.com") } };

	open_with_moved(&r);
	c.id = last_hold(&r, r.accounts[0]).id;
	rig_run(&r.rig, hold_hand_over, &c);
	goes_well(&r);
	pass(&r, HOUR_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_QUARANTINE, "Quarantine") && open_holds(&r, r.accounts[0]).count == 0);
	guard_rig_close(&r);
}

/* The event of the way to CleanUp is lost for a while: only that of the failed cleanup comes. */
TEST(x4_a_stale_release_leaves_an_account_that_is_quarantined_for_another_reason)
{
	struct guard_rig r = { 0 };
	struct hold      first;
	struct holds     open;

	open_held(&r);
	first = last_hold(&r, r.accounts[0]);
	goes_wrong(&r, WORLD_LOSE_EVENTS, WORLD_ANY_CALL, 1);
	CHECK(sim_isb_change(r.sim, r.accounts[0], SIM_OU_CLEANUP, &r.err) == RC_OK);
	r.rig.clock.test_ms += 5000;
	CHECK(sim_isb_change(r.sim, r.accounts[0], SIM_OU_QUARANTINE, &r.err) == RC_OK);
	pass(&r, HOUR_MS);
	open = open_holds(&r, r.accounts[0]);
	CHECK(open.count == 2 && open.items[1].reason == HOLD_FAILED_CLEANUP && open.items[1].locks);
	pass(&r, first.due_ms - r.rig.clock.test_ms + HOUR_MS);
	open = open_holds(&r, r.accounts[0]);
	CHECK(open.count == 1 && open.items[0].locks);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_QUARANTINE, "Quarantine"));
	CHECK(release_early(&r, open.items[0].id) == RC_CONFLICT); /* nor by hand */
	isb_cleans_again(&r, r.accounts[0]);                       /* a cleanup that succeeds ends it */
	CHECK(is_held(&r, r.accounts[0]) && !last_hold(&r, r.accounts[0]).locks);
	guard_rig_close(&r);
}

TEST(x4_a_release_under_way_is_refused_when_another_hold_has_come)
{
	struct guard_rig r = { 0 };
	struct str       account;

	open_held(&r);
	account = r.accounts[0];
	goes_wrong(&r, WORLD_OUTAGE, WORLD_TABLE_GET, 0);
	CHECK(release_early(&r, last_hold(&r, account).id) == RC_OK);
	pass(&r, 10 * 1000);
	r.drops_events = true;
	CHECK(send_body(&r, event_text(&r, "e-9", account, SIM_OU_CLEANUP, SIM_OU_QUARANTINE, r.rig.clock.test_ms,
	                               "")) == 1);
	pass(&r, 10 * 1000);
	goes_well(&r);
	pass(&r, 20 * MINUTE_MS);
	CHECK(is_with(&r, account, SIM_OU_QUARANTINE, "Quarantine"));
	CHECK(open_holds(&r, account).count == 1 && open_holds(&r, account).items[0].locks);
	guard_rig_close(&r);
}

/* One is no event at all, one has an account that cannot be: each is reported alone. */
TEST(x5_one_bad_record_among_ten_is_dead_alone)
{
	struct guard_rig r = { 0 };
	struct str       all = STR("");

	guard_rig_open(&r);
	r.drops_events = true;
	for (int i = 0; i < 10; i++) {
		struct str text;

		if (i != 4)
			isb_ends_cleanup(&r, r.accounts[i]);
		text = event_text(&r, str_format(&r.rig.arena, "e-%d", i).p, i == 4 ? STR("4") : r.accounts[i],
		                  SIM_OU_CLEANUP, SIM_OU_AVAILABLE, r.rig.clock.test_ms, "");
		all = str_format(&r.rig.arena, "%.*s%s%.*s", STR_ARG(all), i ? "," : "", STR_ARG(text));
	}
	CHECK(send_body(&r, str_format(&r.rig.arena, "[%.*s,7]", STR_ARG(all))) == 10);
	CHECK(r.err.rc == RC_INVALID);
	pass(&r, MINUTE_MS);
	CHECK(count_dead(&r) == 1); /* no other try would read it */
	for (int i = 0; i < 10; i++)
		CHECK(i == 4 || is_held(&r, r.accounts[i]));
	CHECK(place_of(&r, r.accounts[4]) == SIM_OU_CLEANUP);
	guard_rig_close(&r);
}

TEST(x8_the_move_of_our_own_release_is_not_held_again)
{
	struct guard_rig r = { 0 };

	open_held(&r);
	pass(&r, 73 * HOUR_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	CHECK(count_holds(&r, r.accounts[0]) == 1 && count_actions(&r, "QUARANTINE_START") == 1);
	CHECK(text_has(last_action(&r, "QUARANTINE_SKIP").detail, "source OU is not CleanUp"));
	guard_rig_close(&r);
}

TEST(x9_an_event_with_an_error_code_is_ignored_and_counted)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	r.drops_events = true;
	CHECK(send_body(&r, event_text(&r, "e-1", r.accounts[0], SIM_OU_CLEANUP, SIM_OU_AVAILABLE, r.rig.clock.test_ms,
	                               ",\"errorCode\":\"ConcurrentModificationException\"")) == 1);
	pass(&r, HOUR_MS);
	CHECK(count_holds(&r, r.accounts[0]) == 0 && place_of(&r, r.accounts[0]) == SIM_OU_CLEANUP);
	CHECK(count_actions(&r, "EVENT_IGNORED") == 1 && count_dead(&r) == 0);
	CHECK(text_has(last_action(&r, "EVENT_IGNORED").detail, "ConcurrentModificationException"));
	CHECK(calls_of(&r, WORLD_TABLE_GET) == 0);
	guard_rig_close(&r);
}

TEST(x10_a_move_to_elsewhere_is_ignored)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	isb_moves(&r, r.accounts[0], SIM_OU_EXIT);
	pass(&r, HOUR_MS);
	CHECK(count_holds(&r, r.accounts[0]) == 0 && place_of(&r, r.accounts[0]) == SIM_OU_EXIT);
	CHECK(text_has(last_action(&r, "EVENT_IGNORED").detail, "destination OU is not Available"));
	guard_rig_close(&r);
}

TEST(x11_the_same_event_twice_is_one_hold)
{
	struct guard_rig r = { 0 };
	struct str       text;

	guard_rig_open(&r);
	r.drops_events = true;
	isb_ends_cleanup(&r, r.accounts[0]);
	text = event_text(&r, "e-1", r.accounts[0], SIM_OU_CLEANUP, SIM_OU_AVAILABLE, r.rig.clock.test_ms, "");
	CHECK(send_body(&r, text) == 1 && send_body(&r, text) == 0);
	pass(&r, MINUTE_MS);
	CHECK(send_body(&r, text) == 0);
	pass(&r, HOUR_MS);
	CHECK(is_held(&r, r.accounts[0]) && count_holds(&r, r.accounts[0]) == 1);
	guard_rig_close(&r);
}

/* Two rules forward it: the envelopes differ, CloudTrail's own id does not. */
TEST(x11_the_same_move_in_two_envelopes_is_one_hold)
{
	struct guard_rig r = { 0 };
	struct str       text;
	char            *id;

	guard_rig_open(&r);
	r.drops_events = true;
	isb_ends_cleanup(&r, r.accounts[0]);
	text = event_text(&r, "e-1", r.accounts[0], SIM_OU_CLEANUP, SIM_OU_AVAILABLE, r.rig.clock.test_ms, "");
	CHECK(send_body(&r, text) == 1);
	text = str_dup(&r.rig.arena, text);
	id = memmem(text.p, text.n, "\"e-1\"", 5);
	CHECK(id);
	id[3] = '2';
	isb_writes(&r, r.accounts[0], "CleanUp");
	CHECK(send_body(&r, text) == 1);
	pass(&r, HOUR_MS);
	CHECK(is_held(&r, r.accounts[0]) && count_holds(&r, r.accounts[0]) == 1);
	CHECK(text_has(last_action(&r, "EVENT_IGNORED").detail, "handled already"));
	guard_rig_close(&r);
}

TEST(x12_an_older_event_after_a_newer_one_changes_nothing)
{
	struct guard_rig r = { 0 };
	struct hold      h;

	open_held(&r);
	r.drops_events = true;
	h = last_hold(&r, r.accounts[0]);
	CHECK(send_body(&r, event_text(&r, "old", r.accounts[0], SIM_OU_CLEANUP, SIM_OU_AVAILABLE,
	                               r.rig.clock.test_ms - HOUR_MS, "")) == 1);
	CHECK(send_body(&r, event_text(&r, "old-too", r.accounts[0], SIM_OU_QUARANTINE, SIM_OU_CLEANUP,
	                               r.rig.clock.test_ms - HOUR_MS, "")) == 1);
	pass(&r, HOUR_MS);
	CHECK(is_held(&r, r.accounts[0]) && str_eq(last_hold(&r, r.accounts[0]).id, h.id));
	CHECK(count_actions(&r, "EVENT_IGNORED") >= 2 && count_timers(&r, HOLD_NAME_PREFIX) == 1);
	guard_rig_close(&r);
}

TEST(x12_a_move_told_by_a_clock_that_was_ahead_makes_no_later_one_old)
{
	struct guard_rig r = { 0 };
	int64_t          ahead_ms;

	guard_rig_open(&r);
	ahead_ms = r.rig.clock.test_ms + 24 * HOUR_MS;
	CHECK(send_body(&r, event_text(&r, "e-ahead", r.accounts[0], SIM_OU_AVAILABLE, SIM_OU_ACTIVE, ahead_ms, "")) ==
	      1);
	pass(&r, MINUTE_MS);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, MINUTE_MS);
	CHECK(open_holds(&r, r.accounts[0]).count == 1 && is_with(&r, r.accounts[0], SIM_OU_QUARANTINE, "Quarantine"));
	guard_rig_close(&r);
}

TEST(x12_a_cleanup_whose_event_comes_after_that_of_the_lease_is_not_held)
{
	struct guard_rig r = { 0 };
	int64_t          at_ms;

	guard_rig_open(&r);
	r.drops_events = true;
	at_ms = r.rig.clock.test_ms;
	isb_moves(&r, r.accounts[0], SIM_OU_AVAILABLE);
	isb_moves(&r, r.accounts[0], SIM_OU_ACTIVE); /* the table is still to be written */
	CHECK(send_body(&r, event_text(&r, "e-2", r.accounts[0], SIM_OU_AVAILABLE, SIM_OU_ACTIVE, at_ms + 9000, "")));
	pass(&r, MINUTE_MS);
	CHECK(send_body(&r, event_text(&r, "e-1", r.accounts[0], SIM_OU_CLEANUP, SIM_OU_AVAILABLE, at_ms, "")));
	pass(&r, HOUR_MS);
	CHECK(place_of(&r, r.accounts[0]) == SIM_OU_ACTIVE && count_holds(&r, r.accounts[0]) == 0);
	guard_rig_close(&r);
}

TEST(x13_an_account_that_a_lease_has_is_not_held_but_flagged)
{
	static const char *const statuses[] = { "Active", "Frozen" };

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		struct guard_rig r = { 0 };

		guard_rig_open(&r);
		set_tag(&r, r.accounts[0], "x");
		isb_moves(&r, r.accounts[0], SIM_OU_AVAILABLE);
		isb_moves(&r, r.accounts[0], SIM_OU_ACTIVE);
		isb_writes(&r, r.accounts[0], statuses[i]);
		pass(&r, HOUR_MS);
		CHECK(is_with(&r, r.accounts[0], SIM_OU_ACTIVE, statuses[i]) && count_holds(&r, r.accounts[0]) == 0);
		CHECK(text_has(last_action(&r, "QUARANTINE_FLAGGED").detail, statuses[i]));
		CHECK(has_tag(&r, r.accounts[0])); /* not used up */
		guard_rig_close(&r);
	}
}

/* The lease comes between our look and our move: the organisation refuses the move, and we look again. */
TEST(x13_a_lease_that_wins_the_race_keeps_the_account)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 2);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, 10 * 1000);
	r.drops_events = true;
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_OPEN);
	if (place_of(&r, r.accounts[0]) == SIM_OU_AVAILABLE)
		CHECK(sim_isb_change(r.sim, r.accounts[0], SIM_OU_ACTIVE, &r.err) == RC_OK);
	pass(&r, HOUR_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_ACTIVE, "Active"));
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_SKIPPED && count_actions(&r, "QUARANTINE_FLAGGED") == 1);
	CHECK(count_timers(&r, HOLD_NAME_PREFIX) == 0);
	guard_rig_close(&r);
}

TEST(x14_a_hold_is_released_at_its_due_time_and_not_one_millisecond_before)
{
	struct guard_rig r = { 0 };
	struct hold      h;

	open_held(&r);
	h = last_hold(&r, r.accounts[0]);
	pass(&r, h.due_ms - r.rig.clock.test_ms - 1);
	CHECK(is_held(&r, r.accounts[0]));
	pass(&r, 1);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	r.rig.clock.test_ms -= 10 * HOUR_MS; /* the clock is set back: it is not held again */
	pass(&r, HOUR_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_RELEASED);
	guard_rig_close(&r);
}

static void grant_access(struct guard_rig *r, struct str account)
{
	struct access          *x = sim_cloud_ports(r->sim).access;
	struct cloud_assignment assignment = { account, CLOUD_GROUP, STR("managers"), STR("manager") };

	CHECK(x->ops->set(x, &assignment, true, &r->err) == RC_OK);
}

static size_t count_access(struct guard_rig *r, struct str account)
{
	struct access           *x = sim_cloud_ports(r->sim).access;
	struct cloud_assignment *list;
	size_t                   count = 0;

	CHECK(x->ops->list(x, account, &r->rig.arena, &list, &count, &r->err) == RC_OK);
	return count;
}

TEST(x16_an_eject_converges_and_access_ends_before_the_record_does)
{
	struct guard_rig r = { 0 };

	hold_rules_defaults(&r.rules);
	r.rules.ejects = true;
	guard_rig_open(&r);
	grant_access(&r, r.accounts[0]);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_TABLE_DELETE, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, 20 * MINUTE_MS);
	CHECK(place_of(&r, r.accounts[0]) == SIM_OU_EXIT && isb_status(&r, r.accounts[0]).n);
	CHECK(count_access(&r, r.accounts[0]) == 0);
	goes_well(&r);
	pass(&r, 20 * MINUTE_MS);
	CHECK(place_of(&r, r.accounts[0]) == SIM_OU_EXIT && !isb_status(&r, r.accounts[0]).n);
	CHECK(count_actions(&r, "EJECT_COMPLETE") == 1 && !last_hold(&r, r.accounts[0]).last_error.n);
	guard_rig_close(&r);
}

TEST(x16_an_eject_takes_nothing_from_a_lease_that_was_faster)
{
	struct guard_rig r = { 0 };

	hold_rules_defaults(&r.rules);
	r.rules.ejects = true;
	guard_rig_open(&r);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_FIND_PARENT, 0);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_LIST_ASSIGNMENTS, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, 30 * 1000); /* it is decided, and nothing was done yet */
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_EJECTED);
	goes_well(&r);
	CHECK(sim_isb_change(r.sim, r.accounts[0], SIM_OU_ACTIVE, &r.err) == RC_OK);
	grant_access(&r, r.accounts[0]);
	pass(&r, 30 * MINUTE_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_ACTIVE, "Active") && count_access(&r, r.accounts[0]) == 1);
	guard_rig_close(&r);
}

TEST(x17_already_there_is_a_success)
{
	struct guard_rig r = { 0 };
	int64_t          moves;

	guard_rig_open(&r);
	r.drops_events = true;
	isb_ends_cleanup(&r, r.accounts[0]);
	CHECK(send_body(&r, event_text(&r, "e-1", r.accounts[0], SIM_OU_CLEANUP, SIM_OU_AVAILABLE, r.rig.clock.test_ms,
	                               "")) == 1);
	isb_moves(&r, r.accounts[0], SIM_OU_QUARANTINE); /* by hand, or by another guard */
	moves = moves_of(&r, r.accounts[0]);
	pass(&r, 10 * MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]) && moves_of(&r, r.accounts[0]) == moves);
	isb_moves(&r, r.accounts[0], SIM_OU_AVAILABLE); /* and back the same way, before its time */
	moves = moves_of(&r, r.accounts[0]);
	pass(&r, 73 * HOUR_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available") && moves_of(&r, r.accounts[0]) == moves);
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_RELEASED);
	guard_rig_close(&r);
}

TEST(x19_a_tag_is_used_up_by_one_cleanup)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	set_tag(&r, r.accounts[0], "x");
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, 10 * MINUTE_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	isb_cleans_again(&r, r.accounts[0]);
	CHECK(is_held(&r, r.accounts[0]));
	guard_rig_close(&r);
}

TEST(x19_a_tag_that_could_not_be_taken_away_is_used_up_all_the_same)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	set_tag(&r, r.accounts[0], "x");
	goes_wrong(&r, WORLD_OUTAGE, WORLD_REMOVE_TAG, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, 10 * MINUTE_MS);
	isb_cleans_again(&r, r.accounts[0]);
	CHECK(is_held(&r, r.accounts[0]) && has_tag(&r, r.accounts[0]));
	goes_well(&r);
	pass(&r, HOUR_MS);
	CHECK(!has_tag(&r, r.accounts[0]));
	set_tag(&r, r.accounts[0], "y"); /* a new one counts again */
	isb_cleans_again(&r, r.accounts[0]);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	guard_rig_close(&r);
}

static void remove_tag(struct guard_rig *r, struct str account)
{
	struct organisation *o = sim_cloud_ports(r->sim).organisation;

	CHECK(o->ops->remove_tag(o, account, STR(HOLD_BYPASS_TAG), &r->err) == RC_OK);
}

/* We have given up taking it away: a person does, and its successor counts once a cleanup has seen it gone. */
TEST(x19_a_tag_that_a_person_takes_away_in_the_end_does_not_use_up_the_next_one)
{
	struct guard_rig r = { 0 };
	struct str       account;

	guard_rig_open(&r);
	account = r.accounts[0];
	set_tag(&r, account, "x");
	goes_wrong(&r, WORLD_OUTAGE, WORLD_REMOVE_TAG, 0);
	isb_ends_cleanup(&r, account);
	pass(&r, 60 * HOUR_MS);
	CHECK(count_actions(&r, "TAG_REMOVAL_FAILED") == 1 && has_tag(&r, account));
	goes_well(&r);
	isb_cleans_again(&r, account);
	CHECK(is_held(&r, account)); /* it is used up */
	remove_tag(&r, account);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_GET_TAGS, 0);
	isb_cleans_again(&r, account);
	goes_well(&r);
	set_tag(&r, account, "y");
	isb_cleans_again(&r, account);
	CHECK(is_held(&r, account)); /* nobody could see that it was another */
	remove_tag(&r, account);
	isb_cleans_again(&r, account);
	CHECK(is_held(&r, account));
	set_tag(&r, account, "z");
	isb_cleans_again(&r, account);
	CHECK(is_with(&r, account, SIM_OU_AVAILABLE, "Available") && last_hold(&r, account).state == HOLD_BYPASSED);
	guard_rig_close(&r);
}

TEST(x20_a_bypass_is_recorded_with_who_and_why)
{
	static const struct {
		const char *value, *by, *why;
	} cases[] = {
		{ "ann@example.com: brand new, nothing to wait for", "ann@example.com",
		  "brand new, nothing to wait for" },
		{ "brand new", "tag do-not-separate", "brand new" },
		{ "ticket: 7", "tag do-not-separate", "ticket: 7" },
		{ "", "tag do-not-separate", "the tag has no value that says why" },
	};
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct hold h;

		CASE(cases[i].value);
		set_tag(&r, r.accounts[i], cases[i].value);
		isb_ends_cleanup(&r, r.accounts[i]);
		pass(&r, MINUTE_MS);
		h = last_hold(&r, r.accounts[i]);
		CHECK(h.state == HOLD_BYPASSED && h.source_event.n);
		CHECK(str_eq(h.closed_by, str_from(cases[i].by)) && str_eq(h.closed_why, str_from(cases[i].why)));
	}
	CHECK(text_has(last_action(&r, "QUARANTINE_BYPASS_TAG").detail, "\"movedBy\":\"arn:aws:sts::"));
	guard_rig_close(&r);
}

TEST(x21_throttled_for_ten_minutes_no_account_is_lost)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	goes_wrong(&r, WORLD_THROTTLE, WORLD_ANY_CALL, 0);
	for (int i = 0; i < GUARD_RIG_ACCOUNTS; i++)
		isb_ends_cleanup(&r, r.accounts[i]);
	pass(&r, 10 * MINUTE_MS);
	goes_well(&r);
	pass(&r, 30 * MINUTE_MS);
	for (int i = 0; i < GUARD_RIG_ACCOUNTS; i++)
		CHECK(is_held(&r, r.accounts[i]) && count_holds(&r, r.accounts[i]) == 1);
	CHECK(count_dead(&r) == 0);

	pass(&r, 71 * HOUR_MS);
	goes_wrong(&r, WORLD_THROTTLE, WORLD_ANY_CALL, 0); /* and when they are due */
	pass(&r, 2 * HOUR_MS);
	goes_well(&r);
	pass(&r, 15 * MINUTE_MS);
	for (int i = 0; i < GUARD_RIG_ACCOUNTS; i++)
		CHECK(is_with(&r, r.accounts[i], SIM_OU_AVAILABLE, "Available") &&
		      last_hold(&r, r.accounts[i]).state == HOLD_RELEASED);
	guard_rig_close(&r);
}

TEST(a_failed_look_at_the_ous_is_an_error_and_not_a_skip)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_LIST_OUS, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, 10 * MINUTE_MS);
	CHECK(count_holds(&r, r.accounts[0]) == 0 && count_actions(&r, "QUARANTINE_SKIP") == 0);
	goes_well(&r);
	pass(&r, 20 * MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]));
	guard_rig_close(&r);
}

TEST(an_event_before_the_other_systems_write_is_held_and_the_late_write_is_put_right)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	isb_moves(&r, r.accounts[0], SIM_OU_AVAILABLE);
	pass(&r, 30 * 1000);
	CHECK(is_held(&r, r.accounts[0])); /* the table said CleanUp */
	isb_writes(&r, r.accounts[0], "Available");
	pass(&r, 10 * MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]));
	CHECK(text_has(last_action(&r, "QUARANTINE_CORRECTED").detail, "\"currentStatus\":\"Available\""));
	pass(&r, 73 * HOUR_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	guard_rig_close(&r);
}

TEST(a_status_that_changes_between_look_and_write_is_read_again)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_TABLE_SET, 3);
	isb_moves(&r, r.accounts[0], SIM_OU_AVAILABLE);
	pass(&r, 5 * 1000);
	isb_writes(&r, r.accounts[0], "Available");
	pass(&r, 10 * MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]));
	guard_rig_close(&r);
}

TEST(the_guard_keeps_its_promise_whatever_the_cloud_does)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct guard_rig              r = { .chance = seed * 77777 };
		static const enum world_fault faults[] = { WORLD_OUTAGE,           WORLD_THROTTLE,
			                                   WORLD_TIMEOUT_BEFORE,   WORLD_TIMEOUT_AFTER,
			                                   WORLD_DUPLICATE_EVENTS, WORLD_REORDER_EVENTS,
			                                   WORLD_LOSE_EVENTS };
		struct world_rules            rules = { .count = ARRAY_LEN(faults) };

		guard_rig_open(&r);
		for (size_t i = 0; i < ARRAY_LEN(faults); i++)
			rules.rules[i] = (struct world_rule){ .fault = faults[i],
				                              .call = WORLD_ANY_CALL,
				                              .per_mille = 150 };
		sim_cloud_world(r.sim)->ops->set_rules(sim_cloud_world(r.sim), &rules);
		for (int i = 0; i < GUARD_RIG_ACCOUNTS; i++)
			isb_ends_cleanup(&r, r.accounts[i]);
		pass(&r, 6 * HOUR_MS);
		for (int i = 0; i < GUARD_RIG_ACCOUNTS; i++)
			CHECK(is_held(&r, r.accounts[i]) && count_holds(&r, r.accounts[i]) == 1);
		CHECK(count_timers(&r, HOLD_NAME_PREFIX) == GUARD_RIG_ACCOUNTS);
		pass(&r, 70 * HOUR_MS);
		goes_well(&r);
		pass(&r, HOUR_MS);
		for (int i = 0; i < GUARD_RIG_ACCOUNTS; i++)
			CHECK(is_with(&r, r.accounts[i], SIM_OU_AVAILABLE, "Available"));
		guard_rig_close(&r);
	}
}
