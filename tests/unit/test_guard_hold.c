/* SPDX-License-Identifier: Apache-2.0 */
/* test_guard_hold.c - the conformance cases H1 to H18: what becomes of an account that another system has cleaned. H7
 * is in tests/api. */
#include "test.h"

#include "guard_rig.h"

/* Neither moved, nor held, nor is anything to come. */
static bool is_let_alone(struct guard_rig *r, struct str account, int64_t moves)
{
	return moves_of(r, account) == moves && open_holds(r, account).count == 0 &&
	       count_timers(r, HOLD_NAME_PREFIX) == 0 && count_dead(r) == 0;
}

TEST(h1_an_account_out_of_cleanup_is_moved_to_quarantine_and_has_a_schedule)
{
	struct guard_rig r = { 0 };
	struct hold      h;

	guard_rig_open(&r);
	isb_ends_cleanup(&r, r.accounts[0]);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	pass(&r, MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]) && count_dead(&r) == 0);
	CHECK(count_timers(&r, HOLD_NAME_PREFIX) == 1);
	h = last_hold(&r, r.accounts[0]);
	CHECK(h.mode == HOLD_GUARD && h.reason == HOLD_BILLING && h.due_ms == h.created_ms + 72 * HOUR_MS);
	CHECK(h.source_event.n && h.attempts == 0 && !h.last_error.n);
	CHECK(count_actions(&r, "QUARANTINE_START") == 1 && count_actions(&r, "SCHEDULER_CREATED") == 1);
	CHECK(text_has(last_action(&r, "QUARANTINE_START").detail, "\"sourceParentId\":\"ou-"));
	CHECK(text_has(last_action(&r, "SCHEDULER_CREATED").detail, HOLD_NAME_PREFIX));
	CHECK(text_has(last_action(&r, "QUARANTINE_COMPLETE").detail,
	               "\"fromOu\":\"Available\",\"toOu\":\"Quarantine\""));
	guard_rig_close(&r);
}

TEST(h2_an_account_from_elsewhere_is_let_alone)
{
	struct guard_rig r = { 0 };
	int64_t          moves;

	guard_rig_open(&r);
	r.drops_events = true;
	isb_moves(&r, r.accounts[0], SIM_OU_FROZEN);
	moves = moves_of(&r, r.accounts[0]);
	CHECK(send_body(&r, event_text(&r, "e-1", r.accounts[0], SIM_OU_FROZEN, SIM_OU_AVAILABLE, r.rig.clock.test_ms,
	                               "")) == 1);
	pass(&r, HOUR_MS);
	CHECK(is_let_alone(&r, r.accounts[0], moves));
	CHECK(text_has(last_action(&r, "QUARANTINE_SKIP").detail, "source OU is not CleanUp"));
	CHECK(text_has(last_action(&r, "QUARANTINE_SKIP").detail, "cleanUpOuId"));
	guard_rig_close(&r);
}

TEST(h3_an_account_that_is_in_quarantine_already_is_let_alone)
{
	struct guard_rig r = { 0 };
	int64_t          moves;

	guard_rig_open(&r);
	isb_moves(&r, r.accounts[0], SIM_OU_AVAILABLE);
	isb_writes(&r, r.accounts[0], "Quarantine");
	moves = moves_of(&r, r.accounts[0]);
	pass(&r, HOUR_MS);
	CHECK(is_let_alone(&r, r.accounts[0], moves));
	CHECK(text_has(last_action(&r, "QUARANTINE_SKIP").detail, "account already in Quarantine status"));
	guard_rig_close(&r);
}

/* Of the simulated organisation, but not in the table of the other system. */
static struct str make_untracked(struct guard_rig *r, struct str account)
{
	struct account_table *t = sim_isb_table(r->sim);

	CHECK(t->ops->delete (t, account, isb_status(r, account), &r->err) == RC_OK);
	return account;
}

TEST(h4_an_account_that_is_not_tracked_is_let_alone)
{
	struct guard_rig r = { 0 };
	int64_t          moves;

	guard_rig_open(&r);
	isb_moves(&r, make_untracked(&r, r.accounts[0]), SIM_OU_AVAILABLE);
	moves = moves_of(&r, r.accounts[0]);
	pass(&r, HOUR_MS);
	CHECK(is_let_alone(&r, r.accounts[0], moves));
	CHECK(text_has(last_action(&r, "QUARANTINE_SKIP").detail, "account not found in tracking"));
	CHECK(calls_of(&r, WORLD_GET_TAGS) == 0);
	guard_rig_close(&r);
}

TEST(h5_a_move_that_fails_is_reported_and_made_up_for)
{
	struct guard_rig r = { 0 };
	struct hold      h;

	guard_rig_open(&r);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, 30 * MINUTE_MS);
	h = last_hold(&r, r.accounts[0]);
	CHECK(h.state == HOLD_OPEN && str_eq(h.placement, STR("intended")) && h.attempts > 0 && h.last_error.n);
	CHECK(count_timers(&r, HOLD_NAME_PREFIX) == 1);
	CHECK(count_actions(&r, "HANDLER_ERROR") == (size_t)h.attempts);
	CHECK(text_has(last_action(&r, "HANDLER_ERROR").detail, "\"error\":"));
	CHECK(place_of(&r, r.accounts[0]) == SIM_OU_AVAILABLE);

	goes_well(&r);
	pass(&r, 30 * MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]) && !last_hold(&r, r.accounts[0]).last_error.n);
	CHECK(count_holds(&r, r.accounts[0]) == 1);
	guard_rig_close(&r);
}

TEST(h6_without_the_schedule_nothing_is_stored_or_moved_and_the_event_comes_again)
{
	struct guard_rig r = { .event_delay_ms = 1 };
	int64_t          moves;

	guard_rig_open(&r);
	r.drops_events = true;
	isb_ends_cleanup(&r, r.accounts[0]);
	moves = moves_of(&r, r.accounts[0]);
	CHECK(send_body(&r, event_text(&r, "e-1", r.accounts[0], SIM_OU_CLEANUP, SIM_OU_AVAILABLE, r.rig.clock.test_ms,
	                               "")) == 1);
	CHECK(crash_after_call(&r, 0)); /* looked, but the commit with hold and timer never was */
	CHECK(count_timers(&r, HOLD_NAME_PREFIX) == 0 && count_holds(&r, r.accounts[0]) == 0);
	CHECK(moves_of(&r, r.accounts[0]) == moves);

	pass(&r, 10 * MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]) && count_timers(&r, HOLD_NAME_PREFIX) == 1);
	CHECK(moves_of(&r, r.accounts[0]) == moves + 1);
	guard_rig_close(&r);
}

TEST(h8_a_tag_costs_two_calls_to_the_organisation_and_lets_the_account_pass)
{
	struct guard_rig r = { 0 };
	uint64_t         get, removed, moved;

	guard_rig_open(&r);
	set_tag(&r, r.accounts[0], "any value");
	get = calls_of(&r, WORLD_GET_TAGS);
	removed = calls_of(&r, WORLD_REMOVE_TAG);
	moved = calls_of(&r, WORLD_MOVE);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, HOUR_MS);
	CHECK(calls_of(&r, WORLD_GET_TAGS) == get + 1 && calls_of(&r, WORLD_REMOVE_TAG) == removed + 1);
	CHECK(calls_of(&r, WORLD_MOVE) == moved);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available") && !has_tag(&r, r.accounts[0]));
	CHECK(open_holds(&r, r.accounts[0]).count == 0 && count_timers(&r, HOLD_NAME_PREFIX) == 0);
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_BYPASSED);
	CHECK(text_has(last_action(&r, "QUARANTINE_BYPASS_TAG").detail, "\"tag\":\"do-not-separate\""));
	guard_rig_close(&r);
}

TEST(h9_without_the_tag_the_account_is_held)
{
	struct guard_rig     r = { 0 };
	struct organisation *o;
	struct cloud_tag     other = { STR("separate"), STR("yes") };

	guard_rig_open(&r);
	o = sim_cloud_ports(r.sim).organisation;
	CHECK(o->ops->set_tags(o, r.accounts[0], &other, 1, &r.err) == RC_OK);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, MINUTE_MS);
	CHECK(calls_of(&r, WORLD_GET_TAGS) == 1 && is_held(&r, r.accounts[0]));
	guard_rig_close(&r);
}

TEST(h10_a_look_for_the_tag_that_is_denied_is_no_tag)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	set_tag(&r, r.accounts[0], "x");
	goes_wrong(&r, WORLD_OUTAGE, WORLD_GET_TAGS, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]) && has_tag(&r, r.accounts[0]));
	CHECK(count_actions(&r, "TAG_CHECK_FAILED") == 1);
	guard_rig_close(&r);
}

TEST(h11_a_tag_that_cannot_be_taken_away_still_lets_the_account_pass)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	set_tag(&r, r.accounts[0], "x");
	goes_wrong(&r, WORLD_OUTAGE, WORLD_REMOVE_TAG, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, HOUR_MS);
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_BYPASSED && has_tag(&r, r.accounts[0]));
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	guard_rig_close(&r);
}

static void open_ejecting(struct guard_rig *r)
{
	hold_rules_defaults(&r->rules);
	r->rules.ejects = true;
	guard_rig_open(r);
}

TEST(h12_with_eject_on_the_account_leaves_and_its_record_is_deleted)
{
	struct guard_rig r = { 0 };

	open_ejecting(&r);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, MINUTE_MS);
	CHECK(place_of(&r, r.accounts[0]) == SIM_OU_EXIT && !isb_status(&r, r.accounts[0]).n);
	CHECK(count_timers(&r, HOLD_NAME_PREFIX) == 0 && open_holds(&r, r.accounts[0]).count == 0);
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_EJECTED);
	CHECK(str_eq(last_hold(&r, r.accounts[0]).placement, STR("ejected")));
	CHECK(text_has(last_action(&r, "EJECT_START").detail, "\"mode\":\"eject\""));
	CHECK(text_has(last_action(&r, "EJECT_COMPLETE").detail, "\"toOu\":\"Exit\""));
	guard_rig_close(&r);
}

TEST(h13_the_tag_wins_over_eject)
{
	struct guard_rig r = { 0 };

	open_ejecting(&r);
	set_tag(&r, r.accounts[0], "");
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, MINUTE_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_BYPASSED);
	guard_rig_close(&r);
}

TEST(h14_with_eject_off_the_account_is_held)
{
	struct guard_rig r = { 0 };

	hold_rules_defaults(&r.rules);
	r.rules.ejects = false;
	guard_rig_open(&r);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]));
	guard_rig_close(&r);
}

TEST(h15_by_default_the_account_is_held)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	CHECK(!r.rules.ejects);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]));
	guard_rig_close(&r);
}

TEST(h16_an_eject_whose_move_fails_keeps_the_record)
{
	struct guard_rig r = { 0 };

	open_ejecting(&r);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, 20 * MINUTE_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	CHECK(count_actions(&r, "HANDLER_ERROR") > 0 && last_hold(&r, r.accounts[0]).last_error.n);
	CHECK(count_actions(&r, "EJECT_COMPLETE") == 0);
	guard_rig_close(&r);
}

TEST(h17_a_record_that_cannot_be_deleted_is_reported)
{
	struct guard_rig r = { 0 };

	open_ejecting(&r);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_TABLE_DELETE, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, 20 * MINUTE_MS);
	CHECK(place_of(&r, r.accounts[0]) == SIM_OU_EXIT && str_eq(isb_status(&r, r.accounts[0]), STR("Available")));
	CHECK(count_actions(&r, "HANDLER_ERROR") > 0 && count_actions(&r, "EJECT_COMPLETE") == 0);
	guard_rig_close(&r);
}

TEST(h18_one_held_and_one_untracked_are_both_a_success)
{
	struct guard_rig r = { 0 };

	guard_rig_open(&r);
	isb_ends_cleanup(&r, r.accounts[0]);
	isb_moves(&r, make_untracked(&r, r.accounts[1]), SIM_OU_AVAILABLE);
	pass(&r, 10 * MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]));
	CHECK(place_of(&r, r.accounts[1]) == SIM_OU_AVAILABLE && open_holds(&r, r.accounts[1]).count == 0);
	CHECK(count_dead(&r) == 0 && count_actions(&r, "HANDLER_ERROR") == 0);
	guard_rig_close(&r);
}

TEST(every_reason_with_hours_is_a_hold_of_its_own)
{
	struct guard_rig r = { 0 };
	struct holds     open;

	hold_rules_defaults(&r.rules);
	r.rules.hours[HOLD_METADATA] = HOLD_METADATA_91D;
	guard_rig_open(&r);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, MINUTE_MS);
	open = open_holds(&r, r.accounts[0]);
	CHECK(open.count == 2 && count_timers(&r, HOLD_NAME_PREFIX) == 2);
	CHECK(str_eq(open.items[0].placement, STR("held")) && str_eq(open.items[1].placement, STR("held")));
	pass(&r, 73 * HOUR_MS);
	CHECK(is_held(&r, r.accounts[0])); /* one is over, the account stays */
	pass(&r, 90 * 24 * HOUR_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	guard_rig_close(&r);
}

/* The move goes on for the holds that are left. */
TEST(a_move_that_fails_is_made_up_for_also_when_the_first_of_its_holds_is_over)
{
	struct guard_rig r = { 0 };
	struct holds     open;

	hold_rules_defaults(&r.rules);
	r.rules.hours[HOLD_METADATA] = HOLD_METADATA_91D;
	guard_rig_open(&r);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, MINUTE_MS);
	open = open_holds(&r, r.accounts[0]);
	CHECK(open.count == 2 && open.items[0].reason == HOLD_BILLING);
	CHECK(release_early(&r, open.items[0].id) == RC_OK);
	pass(&r, 30 * MINUTE_MS);
	CHECK(place_of(&r, r.accounts[0]) == SIM_OU_AVAILABLE && last_hold(&r, r.accounts[0]).last_error.n);

	goes_well(&r);
	pass(&r, 30 * MINUTE_MS);
	CHECK(is_held(&r, r.accounts[0]) && last_hold(&r, r.accounts[0]).reason == HOLD_METADATA);
	CHECK(!last_hold(&r, r.accounts[0]).last_error.n);
	guard_rig_close(&r);
}

TEST(where_no_rest_is_configured_there_is_a_record_that_says_so)
{
	struct guard_rig r = { 0 };

	hold_rules_defaults(&r.rules);
	r.rules.hours[HOLD_BILLING] = 0;
	guard_rig_open(&r);
	isb_ends_cleanup(&r, r.accounts[0]);
	pass(&r, MINUTE_MS);
	CHECK(is_with(&r, r.accounts[0], SIM_OU_AVAILABLE, "Available"));
	CHECK(last_hold(&r, r.accounts[0]).state == HOLD_EXEMPT);
	guard_rig_close(&r);
}
