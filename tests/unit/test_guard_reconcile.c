/* SPDX-License-Identifier: Apache-2.0 */
/* test_guard_reconcile.c - what no event told of is found beside another system too, and the guard hears of it. */
#include "test.h"

#include "guard_rig.h"
#include "service/reconcile.h"

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
	struct reconcile        terms = { .store = r->rig.store,
		                          .organisation = sim_cloud_ports(r->sim).organisation,
		                          .records = &records.base,
		                          .clock = &r->rig.clock,
		                          .is_dry_run = is_dry_run };
	struct reconcile_report report = { .count = 0 };
	size_t                  count = 0;

	r->rig.clock.test_ms += MINUTE_MS;
	CHECK(reconcile_run(&terms, &report, &r->err) == RC_OK);
	for (size_t i = 0; i < report.count; i++)
		count += report.items[i].kind == kind;
	CHECK(report.found == (int64_t)count);
	reconcile_report_fini(&report);
	pass(r, MINUTE_MS);
	return count;
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

TEST(what_the_other_system_has_quarantined_itself_is_left_alone)
{
	struct guard_rig r;
	struct str       id;

	open_rig(&r);
	id = r.accounts[0];
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	isb_moves(&r, id, SIM_OU_QUARANTINE);
	isb_writes(&r, id, "Quarantine");
	CHECK(heal(&r, DISCREPANCY_NONE) == 0 && count_holds(&r, id) == 0);
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
