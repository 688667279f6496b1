/* SPDX-License-Identifier: Apache-2.0 */
/* test_guard_reconcile.c - what no event told of is found beside another system too, and the guard hears of it. */
#include "test.h"

#include "guard_rig.h"
#include "kernel/timer.h"
#include "service/reconcile/reconcile.h"

#define REST_MS (72 * HOUR_MS)

static void open_rig(struct guard_rig *r)
{
	*r = (struct guard_rig){ 0 };
	guard_rig_open(r);
	r->drops_events = true;
}

/* How many were found of this kind, and nothing else; and what follows has happened. */
static size_t found(struct guard_rig *r, enum discrepancy kind, bool is_dry_run)
{
	struct guard_records    records = guard_records(r->guard);
	struct reconcile_world  world = { sim_cloud_ports(r->sim).organisation, &records.base };
	struct pass             terms = { .store = r->rig.store, .clock = &r->rig.clock, .reconcile = &world };
	struct reconcile_report report = { .count = 0 };
	size_t                  count = 0;

	r->rig.clock.test_ms += MINUTE_MS;
	CHECK(reconcile_run(&terms, is_dry_run, &report, &r->err) == RC_OK);
	for (size_t i = 0; i < report.count; i++)
		count += report.items[i].kind == kind;
	CHECK(report.found == (int64_t)count);
	reconcile_report_fini(&report);
	pass(r, MINUTE_MS);
	return count;
}

static struct timer_call timer_of(const char *prefix, struct str id)
{
	static char name[128];

	(void)snprintf(name, sizeof(name), "%s%.*s", prefix, STR_ARG(id));
	return (struct timer_call){ .name = str_from(name), .actor = STR("somebody") };
}

static size_t heal(struct guard_rig *r, enum discrepancy kind)
{
	return found(r, kind, false);
}

TEST(fr19_a_cleanup_whose_end_no_event_told_of_is_held_within_one_pass)
{
	struct guard_rig r;
	struct str       id;

	open_rig(&r);
	id = r.accounts[0];
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	isb_ends_cleanup(&r, id);
	pass(&r, HOUR_MS);
	CHECK(is_with(&r, id, SIM_OU_AVAILABLE, "Available") && count_holds(&r, id) == 0);
	CHECK(found(&r, DISCREPANCY_BYPASS, true) == 1 && count_holds(&r, id) == 0);
	CHECK(heal(&r, DISCREPANCY_BYPASS) == 1);
	CHECK(is_with(&r, id, SIM_OU_QUARANTINE, "Quarantine") && open_holds(&r, id).count == 1);

	r.drops_events = false; /* the event comes after all */
	pass(&r, MINUTE_MS);
	CHECK(count_holds(&r, id) == 1 && count_dead(&r) == 0);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	pass(&r, REST_MS);
	CHECK(is_with(&r, id, SIM_OU_AVAILABLE, "Available"));
	CHECK(heal(&r, DISCREPANCY_NONE) == 0); /* it has rested */
	guard_rig_close(&r);
}

TEST(x18_the_table_follows_an_account_in_quarantine_with_a_due_time)
{
	struct guard_rig r;
	struct hold      h;
	struct str       id;

	open_rig(&r);
	id = r.accounts[0];
	isb_moves(&r, id, SIM_OU_QUARANTINE);
	isb_writes(&r, id, "Available");
	CHECK(heal(&r, DISCREPANCY_UNRECORDED_REST) == 1);
	h = last_hold(&r, id);
	CHECK(is_with(&r, id, SIM_OU_QUARANTINE, "Quarantine"));
	CHECK(h.state == HOLD_OPEN && h.mode == HOLD_GUARD && h.due_ms == h.created_ms + REST_MS);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	guard_rig_close(&r);
}

TEST(x18_an_account_that_a_lease_has_is_only_told_of)
{
	struct guard_rig r;
	struct str       id;

	open_rig(&r);
	id = r.accounts[0];
	isb_moves(&r, id, SIM_OU_QUARANTINE);
	isb_writes(&r, id, "Active");
	CHECK(heal(&r, DISCREPANCY_LENT_AT_REST) == 1 && heal(&r, DISCREPANCY_LENT_AT_REST) == 1);
	CHECK(is_with(&r, id, SIM_OU_QUARANTINE, "Active") && count_holds(&r, id) == 0);
	guard_rig_close(&r);
}

TEST(b1_what_the_other_system_has_quarantined_itself_is_told_of_and_left_alone)
{
	struct guard_rig r;
	struct str       id;

	open_rig(&r);
	id = r.accounts[0];
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	isb_moves(&r, id, SIM_OU_QUARANTINE);
	isb_writes(&r, id, "Quarantine");
	CHECK(heal(&r, DISCREPANCY_FOREIGN_REST) == 1 && heal(&r, DISCREPANCY_FOREIGN_REST) == 1);
	CHECK(count_holds(&r, id) == 0 && is_with(&r, id, SIM_OU_QUARANTINE, "Quarantine"));
	guard_rig_close(&r);
}

TEST(where_events_come_nothing_is_found_at_any_stage)
{
	struct guard_rig r;
	struct str       id;

	open_rig(&r);
	r.drops_events = false;
	id = r.accounts[0];
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	isb_ends_cleanup(&r, id);
	for (int i = 0; i < 80; i++) {
		pass(&r, HOUR_MS);
		CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	}
	CHECK(is_with(&r, id, SIM_OU_AVAILABLE, "Available") && count_holds(&r, id) == 1);
	guard_rig_close(&r);
}

/* --- b1, b2 --- */

/* In Quarantine by us, and its hold was given up: the other system's table said something else when it was due. */
static struct str orphan(struct guard_rig *r)
{
	struct str id = r->accounts[0];

	r->drops_events = false;
	isb_ends_cleanup(r, id);
	pass(r, HOUR_MS);
	isb_writes(r, id, "CleanUp");
	pass(r, REST_MS);
	CHECK(last_hold(r, id).state == HOLD_SKIPPED && place_of(r, id) == SIM_OU_QUARANTINE);
	isb_writes(r, id, "Quarantine");
	return id;
}

TEST(b1_an_orphan_of_ours_gets_a_hold_with_a_due_time)
{
	struct guard_rig r;
	struct hold      h;
	struct str       id;

	open_rig(&r);
	id = orphan(&r);
	CHECK(found(&r, DISCREPANCY_NO_HOLD, true) == 1 && open_holds(&r, id).count == 0);
	CHECK(heal(&r, DISCREPANCY_NO_HOLD) == 1 && open_holds(&r, id).count == 1);
	h = last_hold(&r, id);
	CHECK(h.mode == HOLD_GUARD && h.due_ms == h.created_ms + REST_MS && str_eq(h.created_by, STR("reconciler")));
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	pass(&r, REST_MS);
	CHECK(is_with(&r, id, SIM_OU_AVAILABLE, "Available"));
	guard_rig_close(&r);
}

TEST(b1_what_was_lent_since_is_no_orphan_of_ours)
{
	struct guard_rig r;
	struct str       id;

	open_rig(&r);
	id = orphan(&r);
	r.drops_events = true;
	isb_moves(&r, id, SIM_OU_ACTIVE);
	isb_writes(&r, id, "Active");
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	isb_moves(&r, id, SIM_OU_QUARANTINE); /* for drift: dirty */
	isb_writes(&r, id, "Quarantine");
	CHECK(heal(&r, DISCREPANCY_FOREIGN_REST) == 1 && open_holds(&r, id).count == 0);
	guard_rig_close(&r);
}

TEST(b2_the_table_of_a_held_account_follows_and_its_time_stays)
{
	static const char *const said[] = { "Available", "CleanUp" };

	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		struct guard_rig r;
		struct hold      h;
		struct str       id;

		open_rig(&r);
		id = r.accounts[0];
		r.drops_events = false;
		isb_ends_cleanup(&r, id);
		pass(&r, HOUR_MS);
		h = last_hold(&r, id);
		isb_writes(&r, id, said[i]);
		CHECK(heal(&r, DISCREPANCY_UNRECORDED_REST) == 1);
		CHECK(is_with(&r, id, SIM_OU_QUARANTINE, "Quarantine"));
		CHECK(count_holds(&r, id) == 1 && last_hold(&r, id).due_ms == h.due_ms);
		CHECK(heal(&r, DISCREPANCY_NONE) == 0);
		guard_rig_close(&r);
	}
}

TEST(x18_where_accounts_are_not_lent_twice_one_in_quarantine_is_held_once)
{
	struct guard_rig r;
	struct str       id;

	open_rig(&r);
	r.rules.ejects = 1;
	id = r.accounts[0];
	isb_moves(&r, id, SIM_OU_QUARANTINE);
	isb_writes(&r, id, "Available");
	CHECK(heal(&r, DISCREPANCY_UNRECORDED_REST) == 1);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0 && count_holds(&r, id) == 1);
	guard_rig_close(&r);
}

/* --- fr19 --- */

TEST(fr19_a_cleanup_between_two_passes_is_seen_by_the_lease_before_it)
{
	struct guard_rig r;
	struct str       id;

	open_rig(&r);
	id = r.accounts[0];
	isb_moves(&r, id, SIM_OU_ACTIVE);
	isb_writes(&r, id, "Active");
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	isb_moves(&r, id, SIM_OU_CLEANUP);
	isb_ends_cleanup(&r, id);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0); /* its event may be under way */
	pass(&r, 30 * MINUTE_MS);
	CHECK(heal(&r, DISCREPANCY_BYPASS) == 1 && is_with(&r, id, SIM_OU_QUARANTINE, "Quarantine"));
	guard_rig_close(&r);
}

TEST(fr19_what_was_moved_by_hand_and_told_of_is_no_bypass)
{
	struct guard_rig r;
	struct str       id;

	open_rig(&r);
	r.drops_events = false;
	id = r.accounts[0];
	isb_moves(&r, id, SIM_OU_FROZEN);
	isb_writes(&r, id, "Frozen");
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	isb_moves(&r, id, SIM_OU_AVAILABLE);
	isb_writes(&r, id, "Available");
	pass(&r, HOUR_MS);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0 && count_holds(&r, id) == 0);
	guard_rig_close(&r);
}

TEST(fr19_a_table_that_is_written_late_does_not_keep_it_from_being_held)
{
	struct guard_rig r;
	struct str       id;

	open_rig(&r);
	id = r.accounts[0];
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	isb_moves(&r, id, SIM_OU_AVAILABLE); /* the table says CleanUp */
	CHECK(heal(&r, DISCREPANCY_BYPASS) == 1 && is_with(&r, id, SIM_OU_QUARANTINE, "Quarantine"));
	guard_rig_close(&r);
}

TEST(fr19_one_that_was_lent_already_is_told_of_and_keeps_its_lease)
{
	struct guard_rig r;
	struct str       id;

	open_rig(&r);
	id = r.accounts[0];
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	isb_ends_cleanup(&r, id);
	isb_moves(&r, id, SIM_OU_ACTIVE);
	isb_writes(&r, id, "Active");
	for (int i = 0; i < 3; i++) /* as long as it is lent */
		CHECK(heal(&r, DISCREPANCY_LENT_BYPASS) == 1);
	CHECK(is_with(&r, id, SIM_OU_ACTIVE, "Active") && count_holds(&r, id) == 0);
	guard_rig_close(&r);
}

/* --- holds and where accounts are --- */

static struct str held(struct guard_rig *r)
{
	open_rig(r);
	r->drops_events = false;
	isb_ends_cleanup(r, r->accounts[0]);
	pass(r, HOUR_MS);
	CHECK(is_with(r, r->accounts[0], SIM_OU_QUARANTINE, "Quarantine"));
	r->drops_events = true;
	return r->accounts[0];
}

TEST(a_hold_of_an_account_that_is_lent_cleaned_or_gone_is_closed)
{
	static const struct {
		enum sim_ou_name ou;
		const char      *status;
		enum hold_state  state;
	} cases[] = { { SIM_OU_ACTIVE, "Active", HOLD_SKIPPED },
		      { SIM_OU_FROZEN, "Frozen", HOLD_SKIPPED },
		      { SIM_OU_EXIT, "Quarantine", HOLD_SKIPPED },
		      { SIM_OU_CLEANUP, "CleanUp", HOLD_CLEANED_AGAIN } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct guard_rig r;
		struct str       id = held(&r);

		isb_moves(&r, id, cases[i].ou);
		isb_writes(&r, id, cases[i].status);
		CHECK(found(&r, DISCREPANCY_STALE_HOLD, true) == 1 && open_holds(&r, id).count == 1);
		CHECK(heal(&r, DISCREPANCY_STALE_HOLD) == 1 && open_holds(&r, id).count == 0);
		CHECK(last_hold(&r, id).state == cases[i].state && count_timers(&r, HOLD_NAME_PREFIX) == 0);
		pass(&r, REST_MS);
		CHECK(is_with(&r, id, cases[i].ou, cases[i].status));
		guard_rig_close(&r);
	}
}

/* Its hold has no due time: nothing else would ever come upon it. */
TEST(a_hold_that_locks_an_account_ends_when_it_has_left_the_pool)
{
	struct guard_rig r;
	struct str       id = held(&r);

	r.drops_events = false;
	goes_wrong(&r, WORLD_LOSE_EVENTS, WORLD_ANY_CALL, 1);
	isb_moves(&r, id, SIM_OU_CLEANUP);
	r.rig.clock.test_ms += MINUTE_MS;
	isb_moves(&r, id, SIM_OU_QUARANTINE); /* the cleanup has failed */
	isb_writes(&r, id, "Quarantine");
	pass(&r, REST_MS);
	CHECK(open_holds(&r, id).count == 1 && open_holds(&r, id).items[0].locks);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0 && open_holds(&r, id).count == 1);
	isb_moves(&r, id, SIM_ROOT);
	CHECK(found(&r, DISCREPANCY_STALE_HOLD, true) == 1 && open_holds(&r, id).count == 1);
	CHECK(heal(&r, DISCREPANCY_STALE_HOLD) == 1 && open_holds(&r, id).count == 0);
	CHECK(last_hold(&r, id).state == HOLD_SKIPPED);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	guard_rig_close(&r);
}

/* And held without an end, as one that was found in Quarantine is where no cooldown is configured. */
static enum rc lock_unknown(struct session *s, void *arg UNUSED, struct err *e)
{
	struct hold h = { .account = STR("999999999999"), .placement = STR("held"), .created_by = STR("somebody") };
	enum rc     rc = hold_make(s, &h, HOLD_OPEN, e);

	h.reason = HOLD_DRIFT;
	h.locks = 1;
	return rc ? rc : hold_make(s, &h, HOLD_OPEN, e);
}

TEST(a_hold_that_locks_an_account_ends_when_the_organisation_has_lost_it)
{
	struct guard_rig r;

	open_rig(&r);
	CHECK(store_run(r.rig.store, lock_unknown, NULL, NULL, &r.err) == RC_OK);
	CHECK(open_holds(&r, STR("999999999999")).count == 2);
	CHECK(found(&r, DISCREPANCY_STALE_HOLD, true) == 1);
	CHECK(heal(&r, DISCREPANCY_STALE_HOLD) == 1 && open_holds(&r, STR("999999999999")).count == 0);
	guard_rig_close(&r);
}

TEST(a_held_account_that_somebody_has_put_into_available_is_told_of)
{
	struct guard_rig r;
	struct str       id = held(&r);

	isb_moves(&r, id, SIM_OU_AVAILABLE);
	isb_writes(&r, id, "Available");
	CHECK(heal(&r, DISCREPANCY_LEFT_REST) == 1 && heal(&r, DISCREPANCY_LEFT_REST) == 1);
	CHECK(open_holds(&r, id).count == 1 && is_with(&r, id, SIM_OU_AVAILABLE, "Available"));
	guard_rig_close(&r);
}

TEST(an_overdue_hold_without_a_timer_is_released_within_one_pass)
{
	struct guard_rig  r;
	struct str        id = held(&r);
	struct hold       h = last_hold(&r, id);
	struct timer_call c = timer_of("", hold_schedule_name(&h, &r.rig.arena));

	rig_run(&r.rig, timer_cancel, &c);
	pass(&r, 2 * REST_MS);
	CHECK(is_with(&r, id, SIM_OU_QUARANTINE, "Quarantine"));
	CHECK(heal(&r, DISCREPANCY_NO_TIMER) == 1 && is_with(&r, id, SIM_OU_AVAILABLE, "Available"));
	guard_rig_close(&r);
}

TEST(b2_a_hold_whose_move_has_stopped_goes_on)
{
	struct guard_rig  r;
	struct timer_call c;
	struct str        id;

	open_rig(&r);
	id = r.accounts[0];
	r.drops_events = false;
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	isb_ends_cleanup(&r, id);
	pass_until_retry(&r);
	goes_well(&r);
	c = timer_of("guard-retry/", id);
	rig_run(&r.rig, timer_cancel, &c);
	pass(&r, HOUR_MS);
	CHECK(place_of(&r, id) == SIM_OU_AVAILABLE);
	CHECK(heal(&r, DISCREPANCY_STUCK_MOVE) == 1);
	CHECK(is_with(&r, id, SIM_OU_QUARANTINE, "Quarantine") && count_holds(&r, id) == 1);
	guard_rig_close(&r);
}

TEST(a_release_that_has_stopped_goes_on_and_one_that_is_tried_again_is_let_alone)
{
	struct guard_rig  r;
	struct str        id = held(&r);
	struct timer_call c;

	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	pass(&r, REST_MS);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	pass_until_retry(&r);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	pass_until_retry(&r);
	goes_well(&r);
	c = timer_of("guard-retry/", id);
	rig_run(&r.rig, timer_cancel, &c);
	pass(&r, HOUR_MS);
	CHECK(place_of(&r, id) == SIM_OU_QUARANTINE);
	CHECK(heal(&r, DISCREPANCY_STUCK_MOVE) == 1);
	CHECK(is_with(&r, id, SIM_OU_AVAILABLE, "Available") && last_hold(&r, id).state == HOLD_RELEASED);
	guard_rig_close(&r);
}

/* --- the pass --- */

TEST(silence_of_the_trail_is_noticed_by_the_cleanups_it_does_not_tell_of)
{
	struct guard_rig r;

	open_rig(&r);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	for (int i = 0; i < SILENT_CLEANUPS; i++)
		isb_ends_cleanup(&r, r.accounts[i]);
	CHECK(heal(&r, DISCREPANCY_BYPASS) == SILENT_CLEANUPS);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	pass(&r, (SILENT_HOURS + 1) * HOUR_MS);
	CHECK(heal(&r, DISCREPANCY_EVENTS_SILENT) == 1);
	guard_rig_close(&r);
}

static enum rc run_pass(struct guard_rig *r, struct str below, int64_t *ret_accounts)
{
	struct guard_records    records = guard_records(r->guard);
	struct reconcile_world  world = { sim_cloud_ports(r->sim).organisation, &records.base };
	struct pass             terms = { .store = r->rig.store, .clock = &r->rig.clock, .reconcile = &world };
	struct reconcile_report report = { .count = 0 };
	enum rc                 rc;

	records.base.below = below;
	r->rig.clock.test_ms += MINUTE_MS;
	err_clear(&r->err);
	rc = reconcile_run(&terms, false, &report, &r->err);
	*ret_accounts = report.accounts;
	reconcile_report_fini(&report);
	return rc;
}

TEST(nothing_is_concluded_from_an_incomplete_listing)
{
	struct guard_rig r;
	int64_t          looked_at;
	struct str       id;

	open_rig(&r);
	id = r.accounts[0];
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	isb_ends_cleanup(&r, id);
	goes_wrong(&r, WORLD_THROTTLE, WORLD_LIST_ACCOUNTS, 0);
	CHECK(run_pass(&r, STR(""), &looked_at) == RC_LIMITED && looked_at == 0);
	pass(&r, MINUTE_MS);
	CHECK(count_holds(&r, id) == 0);
	goes_well(&r);
	CHECK(heal(&r, DISCREPANCY_BYPASS) == 1 && count_holds(&r, id) == 1);
	guard_rig_close(&r);
}

/* The other system's table, with one item that makes no sense. */
struct torn_table {
	struct account_table  port;
	struct account_table *whole;
	struct str            account;
};

static enum rc get_or_torn(struct account_table *port, struct str account, struct arena *a, struct table_account *ret,
                           struct err *e)
{
	struct torn_table *t = (struct torn_table *)port;

	if (str_eq(account, t->account))
		return err_set(e, RC_CORRUPT, "it has no readable status");
	return t->whole->ops->get(t->whole, account, a, ret, e);
}

static enum rc set_whole(struct account_table *port, struct str account, struct str expected, struct str status,
                         struct err *e)
{
	struct torn_table *t = (struct torn_table *)port;

	return t->whole->ops->set_status(t->whole, account, expected, status, e);
}

/* The guard looks at this table instead. */
static void tear(struct guard_rig *r, struct torn_table *t, struct str account)
{
	static const struct account_table_ops ops = { .get = get_or_torn, .set_status = set_whole };

	*t = (struct torn_table){ .port = { &ops }, .whole = sim_isb_table(r->sim), .account = account };
	guard_free(r->guard);
	r->guard = guard_new(&(struct guard_options){ .store = r->rig.store,
	                                              .cloud = sim_cloud_ports(r->sim),
	                                              .table = &t->port,
	                                              .rules = &r->rules,
	                                              .metrics = r->metrics });
	guard_queues(r->guard, r->queues);
	guard_kinds(r->guard, r->kinds);
}

/* It is left alone and told of; the others, listed before and after it, are looked after. */
TEST(an_item_of_the_table_that_cannot_be_read_concerns_its_account_alone)
{
	struct guard_rig  r;
	struct torn_table t;
	int64_t           looked_at;

	open_rig(&r);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	for (int i = 0; i < 3; i++)
		isb_ends_cleanup(&r, r.accounts[i]);
	tear(&r, &t, r.accounts[1]);
	CHECK(run_pass(&r, STR(""), &looked_at) == RC_CORRUPT && looked_at == GUARD_RIG_ACCOUNTS - 1);
	CHECK(text_has(str_from(r.err.msg), "it has no readable status") &&
	      text_has(str_from(r.err.msg), str_dup(&r.rig.arena, r.accounts[1]).p));
	pass(&r, MINUTE_MS);
	for (int i = 0; i < 3; i++)
		CHECK(count_holds(&r, r.accounts[i]) == (i != 1));
	CHECK(is_with(&r, r.accounts[0], SIM_OU_QUARANTINE, "Quarantine"));
	CHECK(is_with(&r, r.accounts[1], SIM_OU_AVAILABLE, "Available"));
	t.account = STR(""); /* it was put right */
	CHECK(heal(&r, DISCREPANCY_BYPASS) == 1 && count_holds(&r, r.accounts[1]) == 1);
	guard_rig_close(&r);
}

TEST(only_the_ous_below_the_pools_own_are_looked_at)
{
	struct guard_rig r;
	int64_t          looked_at;

	open_rig(&r);
	CHECK(run_pass(&r, STR(""), &looked_at) == RC_OK && looked_at == GUARD_RIG_ACCOUNTS);
	CHECK(run_pass(&r, STR("ou-abcd-99999999"), &looked_at) == RC_OK && looked_at == 0);
	guard_rig_close(&r);
}

/* The table was looked at, or the account moved, or the table written: and the process ended before it could note
 * so. */
TEST(fr19_wherever_the_process_ends_a_missed_move_ends_in_one_hold)
{
	for (int calls = 0; calls <= 2; calls++) {
		struct guard_rig r;
		int64_t          looked_at;
		struct str       id;

		open_rig(&r);
		id = r.accounts[0];
		CHECK(heal(&r, DISCREPANCY_NONE) == 0);
		isb_ends_cleanup(&r, id);
		CHECK(run_pass(&r, STR(""), &looked_at) == RC_OK);
		CHECK(crash_after_call(&r, calls));
		CHECK(run_pass(&r, STR(""), &looked_at) == RC_OK);
		pass(&r, 15 * MINUTE_MS);
		CHECK(is_with(&r, id, SIM_OU_QUARANTINE, "Quarantine") && open_holds(&r, id).count == 1);
		CHECK(count_holds(&r, id) == 1 && count_timers(&r, HOLD_NAME_PREFIX) == 1 && count_dead(&r) == 0);
		CHECK(heal(&r, DISCREPANCY_NONE) == 0);
		guard_rig_close(&r);
	}
}

/* Passes, some of which fail, while the cloud does what it likes. */
static void pass_quarters(struct guard_rig *r, int64_t ms)
{
	int64_t looked_at;

	for (; ms > 0; ms -= 15 * MINUTE_MS) {
		rc_ignore(run_pass(r, STR(""), &looked_at)); /* the next one may be luckier */
		pass(r, 14 * MINUTE_MS);
	}
}

TEST(b2_without_any_event_all_are_held_and_come_back_whatever_the_cloud_does)
{
	static const enum world_fault faults[] = { WORLD_OUTAGE, WORLD_THROTTLE, WORLD_TIMEOUT_BEFORE,
		                                   WORLD_TIMEOUT_AFTER };

	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct guard_rig   r = { .chance = seed * 7919, .drops_events = true };
		struct world_rules rules = { .count = ARRAY_LEN(faults) };

		guard_rig_open(&r);
		for (size_t i = 0; i < ARRAY_LEN(faults); i++)
			rules.rules[i] = (struct world_rule){ .fault = faults[i],
				                              .call = WORLD_ANY_CALL,
				                              .per_mille = 40 };
		CHECK(heal(&r, DISCREPANCY_NONE) == 0);
		for (int i = 0; i < GUARD_RIG_ACCOUNTS; i++)
			isb_ends_cleanup(&r, r.accounts[i]);
		sim_cloud_world(r.sim)->ops->set_rules(sim_cloud_world(r.sim), &rules);
		pass_quarters(&r, 6 * HOUR_MS);
		goes_well(&r);
		pass_quarters(&r, HOUR_MS);
		for (int i = 0; i < GUARD_RIG_ACCOUNTS; i++)
			CHECK(is_with(&r, r.accounts[i], SIM_OU_QUARANTINE, "Quarantine") &&
			      open_holds(&r, r.accounts[i]).count == 1);
		CHECK(count_timers(&r, HOLD_NAME_PREFIX) == GUARD_RIG_ACCOUNTS);
		pass(&r, REST_MS);
		pass_quarters(&r, HOUR_MS);
		for (int i = 0; i < GUARD_RIG_ACCOUNTS; i++)
			CHECK(is_with(&r, r.accounts[i], SIM_OU_AVAILABLE, "Available") &&
			      count_holds(&r, r.accounts[i]) == 1);
		guard_rig_close(&r);
	}
}
