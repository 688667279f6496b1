/* SPDX-License-Identifier: Apache-2.0 */
/* test_reconcile.c - what differs between the organisation, the records and the holds is found without any event, and
 * put right in the direction in which nobody gets the account. */
#include "test.h"

#include <string.h>

#include "account_rig.h"
#include "domain/discrepancy.h"
#include "kernel/records.h"
#include "kernel/timer.h"
#include "service/account/account_ous.h"
#include "service/hold/holds.h"
#include "service/record/lease_records.h"
#include "service/reconcile/reconcile.h"
#include "store/session.h"

#define REST_MS (72 * HOUR_MS)

/* --- the rig --- */

static void open_rig(struct account_rig *r)
{
	*r = (struct account_rig){ 0 };
	account_rig_open(r);
	hold_rules_defaults(&r->rules);
}

static enum rc try_reconcile(struct account_rig *r, bool is_dry_run, struct reconcile_report *ret)
{
	struct native_records  records = native_records(r->rig.store, &r->rules);
	struct reconcile_world world = { r->cloud.organisation, &records.base };
	struct pass            terms = { .store = r->rig.store, .clock = &r->rig.clock, .reconcile = &world };

	r->rig.clock.test_ms += MINUTE_MS;
	err_clear(&r->err);
	return reconcile_run(&terms, is_dry_run, ret, &r->err);
}

/* How many were found of this kind, after a pass that must succeed; and everything that follows has happened. */
static size_t found(struct account_rig *r, enum discrepancy kind, bool is_dry_run)
{
	struct reconcile_report report = { .count = 0 };
	size_t                  count = 0;

	CHECK(try_reconcile(r, is_dry_run, &report) == RC_OK);
	for (size_t i = 0; i < report.count; i++)
		count += report.items[i].kind == kind;
	CHECK(report.found == (int64_t)count); /* and nothing else */
	CHECK(report.healed == (is_dry_run || !discrepancy_heals[kind] ? 0 : (int64_t)count));
	reconcile_report_fini(&report);
	(void)rig_turn(&r->rig);
	return count;
}

static size_t heal(struct account_rig *r, enum discrepancy kind)
{
	return found(r, kind, false);
}

/* One that was lent, given back and cleaned: it rests since a moment ago. */
static struct str add_resting(struct account_rig *r)
{
	struct str   id = add_free_account(r, 0);
	struct lease lease = lend(r, ANN);

	(void)rig_turn(&r->rig);
	take_back(r, lease.uuid);
	rig_pass(&r->rig, 2 * HOUR_MS);
	CHECK(get_account(r, id).status == ACCOUNT_COOLDOWN && where_is(r, id) == SIM_OU_QUARANTINE);
	return id;
}

struct holds_call {
	struct str   account;
	struct holds open;
};

static enum rc read_open(struct session *s, void *arg, struct err *e)
{
	struct holds_call *c = arg;

	return hold_list_open(s, c->account, &c->open, e);
}

static struct holds open_of(struct account_rig *r, struct str id)
{
	struct holds_call c = { .account = id };

	rig_run(&r->rig, read_open, &c);
	return c.open;
}

/* What must never happen by itself: its book is empty, and all its holds are gone without a trace. */
static enum rc lose_holds(struct session *s, void *arg, struct err *e)
{
	const struct str    *id = arg;
	struct holds         open;
	struct account_holds book;
	enum rc              rc = hold_list_open(s, *id, &open, e);

	for (size_t i = 0; !rc && i < open.count; i++) {
		rc = session_disarm(s, hold_schedule_name(&open.items[i], session_arena(s)), e);
		session_delete(s, &hold_type, open.items[i].id);
	}
	if (rc || (rc = session_get(s, &account_holds_type, *id, &book, e)))
		return rc;
	book.open = STR("");
	session_put(s, &account_holds_type, &book);
	return RC_OK;
}

/* The same, and the record says that it is free. */
static enum rc free_without_rest(struct session *s, void *arg, struct err *e)
{
	const struct str *id = arg;
	struct account    a;
	enum rc           rc = lose_holds(s, arg, e);

	if (rc || (rc = session_get(s, &account_type, *id, &a, e)))
		return rc;
	a.status = ACCOUNT_AVAILABLE;
	a.placed_ou = STR("Available");
	a.rested_ms = a.cleaned_ms;
	a.open_holds = a.rest_until_ms = 0;
	session_put(s, &account_type, &a);
	return RC_OK;
}

static enum rc lose_timers(struct session *s, void *arg, struct err *e)
{
	const struct str *id = arg;
	struct holds      open;
	enum rc           rc = hold_list_open(s, *id, &open, e);

	for (size_t i = 0; !rc && i < open.count; i++)
		rc = session_disarm(s, hold_schedule_name(&open.items[i], session_arena(s)), e);
	return rc;
}

static enum rc read_fact(struct session *s, void *arg, struct err *e)
{
	struct fact *fact = arg;

	return session_get(s, &fact_type, fact->name, fact, e);
}

static bool has_fact(struct account_rig *r, const char *name, struct fact *ret)
{
	*ret = (struct fact){ .name = str_from(name) };
	return rig_try(&r->rig, read_fact, ret, NULL) == RC_OK;
}

static bool has_discrepancy(struct account_rig *r, enum discrepancy kind, struct str id)
{
	struct fact fact;

	return has_fact(r,
	                str_format(&r->rig.arena, FACT_DISCREPANCY "%s/%.*s", discrepancy_names[kind], STR_ARG(id)).p,
	                &fact);
}

static enum rc hear_event(struct session *s, void *arg, struct err *e)
{
	struct fact fact = { .name = STR(FACT_CLOUDTRAIL) };
	enum rc     rc = session_get(s, &fact_type, fact.name, &fact, NULL);

	(void)arg;
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "the fact cannot be read");
	fact = (struct fact){ .name = STR(FACT_CLOUDTRAIL), .value = fact.value + 1, .version = fact.version };
	fact.since_ms = fact.at_ms = session_now(s).ms;
	session_put(s, &fact_type, &fact);
	return RC_OK;
}

/* --- nothing is wrong --- */

TEST(a_pool_that_is_right_has_no_discrepancy_at_any_stage)
{
	struct account_rig r;
	struct lease       lease;

	open_rig(&r);
	(void)add_free_account(&r, 0);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	lease = lend(&r, ANN);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	take_back(&r, lease.uuid);
	for (int i = 0; i < 90; i++) {
		CHECK(heal(&r, DISCREPANCY_NONE) == 0);
		rig_pass(&r.rig, HOUR_MS);
	}
	CHECK(count_events(&r, EVENT_ACCOUNT_RECONCILED) == 0);
	account_rig_close(&r);
}

/* --- X18 --- */

TEST(x18_the_record_follows_an_account_in_quarantine_with_a_due_time)
{
	struct account_rig r;
	struct account     a;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	outsider_moves(&r, id, SIM_OU_QUARANTINE);
	CHECK(found(&r, DISCREPANCY_UNRECORDED_REST, true) == 1 && get_account(&r, id).status == ACCOUNT_AVAILABLE);
	CHECK(heal(&r, DISCREPANCY_UNRECORDED_REST) == 1);
	a = get_account(&r, id);
	CHECK(a.status == ACCOUNT_COOLDOWN && a.open_holds == 1 && a.rest_until_ms == r.rig.clock.test_ms + REST_MS);
	CHECK(where_is(&r, id) == SIM_OU_QUARANTINE && has_discrepancy(&r, DISCREPANCY_UNRECORDED_REST, id));
	CHECK(text_has(last_event(&r, EVENT_ACCOUNT_RECONCILED).detail, "\"kind\":\"unrecorded-rest\""));
	CHECK(heal(&r, DISCREPANCY_NONE) == 0 && !has_discrepancy(&r, DISCREPANCY_UNRECORDED_REST, id));
	rig_pass(&r.rig, REST_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_AVAILABLE && where_is(&r, id) == SIM_OU_AVAILABLE);
	account_rig_close(&r);
}

TEST(x18_with_a_lease_on_it_an_account_in_quarantine_is_only_told_of)
{
	struct account_rig r;
	struct lease       lease;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	(void)rig_turn(&r.rig);
	outsider_moves(&r, id, SIM_OU_QUARANTINE);
	CHECK(heal(&r, DISCREPANCY_LENT_AT_REST) == 1 && heal(&r, DISCREPANCY_LENT_AT_REST) == 1);
	CHECK(get_account(&r, id).status == ACCOUNT_ACTIVE && open_of(&r, id).count == 0);
	CHECK(get_lease(&r, lease.uuid).status == LEASE_ACTIVE && has_discrepancy(&r, DISCREPANCY_LENT_AT_REST, id));
	account_rig_close(&r);
}

TEST(x18_an_account_at_rest_that_is_found_in_available_is_brought_back_never_freed)
{
	struct account_rig r;
	struct str         id;

	open_rig(&r);
	id = add_resting(&r);
	outsider_moves(&r, id, SIM_OU_AVAILABLE);
	CHECK(heal(&r, DISCREPANCY_REST_ELSEWHERE) == 1);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN && where_is(&r, id) == SIM_OU_QUARANTINE);
	CHECK(open_of(&r, id).count == 1);
	account_rig_close(&r);
}

static void abort_move(struct account_rig *r, struct str id)
{
	struct account     a = get_account(r, id);
	struct saga_action o = { .id = str_format(&r->rig.arena, ACCOUNT_FOLLOW "/%.*s/%lld", STR_ARG(id),
		                                  (long long)a.follow_number),
		                 .actor = STR("an operator"),
		                 .reason = STR("leave it where it is") };

	rig_run(&r->rig, saga_abort, &o);
	rig_pass(&r->rig, MINUTE_MS);
}

/* Found by the simulator: each step is one of the table's, only the move in between is not needed any more. */
TEST(an_account_whose_way_back_was_aborted_is_free_where_it_is_when_its_rest_ends_and_not_before)
{
	struct reconcile_report report = { .count = 0 };
	struct account_rig      r;
	struct lease            next;
	struct str              id;

	open_rig(&r);
	id = add_resting(&r);
	outsider_moves(&r, id, SIM_OU_AVAILABLE);
	CHECK(try_reconcile(&r, false, &report) == RC_OK && report.healed == 1);
	reconcile_report_fini(&report);
	abort_move(&r, id);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN && where_is(&r, id) == SIM_OU_AVAILABLE);
	CHECK(try_lend(&r, BOB, STR("boss@example.com"), &next) == RC_EXHAUSTED);
	rig_pass(&r.rig, get_account(&r, id).rest_until_ms - clock_now(&r.rig.clock).ms + MINUTE_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_AVAILABLE && open_of(&r, id).count == 0);
	CHECK(try_lend(&r, BOB, STR("boss@example.com"), &next) == RC_OK);
	account_rig_close(&r);
}

/* --- holds --- */

TEST(a_resting_account_without_a_hold_gets_one_that_counts_from_its_cleanup)
{
	struct account_rig r;
	struct account     a;
	struct holds       open;
	struct str         id;

	open_rig(&r);
	id = add_resting(&r);
	rig_run(&r.rig, lose_holds, &id);
	rig_pass(&r.rig, HOUR_MS);
	a = get_account(&r, id);
	CHECK(a.status == ACCOUNT_COOLDOWN); /* never free by itself */
	CHECK(heal(&r, DISCREPANCY_NO_HOLD) == 1);
	open = open_of(&r, id);
	CHECK(open.count == 1 && open.items[0].reason == HOLD_BILLING);
	CHECK(open.items[0].due_ms == a.cleaned_ms + REST_MS);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	rig_pass(&r.rig, REST_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_AVAILABLE);
	account_rig_close(&r);
}

TEST(a_rest_that_is_made_up_for_is_as_long_as_the_longest_that_is_configured)
{
	struct account_rig r;
	struct account     a;
	struct str         id;

	open_rig(&r);
	r.rules.hours[HOLD_METADATA] = HOLD_METADATA_91D;
	id = add_resting(&r);
	rig_run(&r.rig, lose_holds, &id);
	rig_pass(&r.rig, HOUR_MS);
	a = get_account(&r, id);
	CHECK(heal(&r, DISCREPANCY_NO_HOLD) == 1);
	CHECK(open_of(&r, id).items[0].due_ms == a.cleaned_ms + HOLD_METADATA_91D * HOUR_MS);
	rig_pass(&r.rig, REST_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN);
	account_rig_close(&r);
}

TEST(a_free_account_found_in_quarantine_rests_as_long_as_the_longest_that_is_configured)
{
	struct account_rig r;
	struct str         id;

	open_rig(&r);
	r.rules.hours[HOLD_BILLING] = 0;
	r.rules.hours[HOLD_METADATA] = HOLD_METADATA_91D;
	id = add_free_account(&r, 0);
	outsider_moves(&r, id, SIM_OU_QUARANTINE);
	rig_pass(&r.rig, MINUTE_MS);
	CHECK(heal(&r, DISCREPANCY_UNRECORDED_REST) == 1);
	CHECK(open_of(&r, id).items[0].due_ms == open_of(&r, id).items[0].created_ms + HOLD_METADATA_91D * HOUR_MS);
	account_rig_close(&r);
}

TEST(what_was_handed_over_is_not_held_again)
{
	struct account_rig r;
	struct hold_call   c = { .by = { .email = STR("admin") }, .reason = STR("the other one does it now") };
	struct hold_safety safety;
	struct str         id;

	open_rig(&r);
	id = add_resting(&r);
	rig_run(&r.rig, hold_safety, &safety);
	CHECK(!safety.is_safe && safety.open == 1 && safety.timed == 1 && safety.last_due_ms > r.rig.clock.test_ms);
	c.id = open_of(&r, id).items[0].id;
	rig_run(&r.rig, hold_hand_over, &c);
	CHECK(c.hold.state == HOLD_HANDED_OVER);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN && where_is(&r, id) == SIM_OU_QUARANTINE);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0 && open_of(&r, id).count == 0);
	rig_run(&r.rig, hold_safety, &safety);
	CHECK(safety.is_safe && safety.open == 0);
	rig_pass(&r.rig, 2 * REST_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN);
	account_rig_close(&r);
}

TEST(what_was_handed_over_is_not_freed_by_the_end_of_another_hold)
{
	struct account_rig r;
	struct hold_call   c = { .by = { .email = STR("admin") }, .reason = STR("the other one does it now") };
	struct str         id;

	open_rig(&r);
	id = add_resting(&r);
	c.id = open_of(&r, id).items[0].id;
	c.account = id;
	rig_run(&r.rig, hold_add, &c);
	rig_run(&r.rig, hold_hand_over, &c);
	CHECK(c.hold.state == HOLD_HANDED_OVER && open_of(&r, id).count == 1);
	c.id = open_of(&r, id).items[0].id;
	rig_run(&r.rig, hold_cancel, &c);
	rig_pass(&r.rig, MINUTE_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN && where_is(&r, id) == SIM_OU_QUARANTINE);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0 && open_of(&r, id).count == 0);
	clean_resting(&r, id); /* this brings it back to us */
	rig_pass(&r.rig, 2 * HOUR_MS);
	CHECK(open_of(&r, id).count == 1);
	rig_pass(&r.rig, REST_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_AVAILABLE);
	account_rig_close(&r);
}

TEST(an_overdue_hold_without_a_timer_is_released_within_one_pass)
{
	struct account_rig r;
	struct str         id;

	open_rig(&r);
	id = add_resting(&r);
	rig_run(&r.rig, lose_timers, &id);
	rig_pass(&r.rig, 4 * 24 * HOUR_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN);
	CHECK(found(&r, DISCREPANCY_NO_TIMER, true) == 1 && get_account(&r, id).status == ACCOUNT_COOLDOWN);
	CHECK(heal(&r, DISCREPANCY_NO_TIMER) == 1);
	CHECK(get_account(&r, id).status == ACCOUNT_AVAILABLE && open_of(&r, id).count == 0);
	account_rig_close(&r);
}

TEST(a_hold_that_lost_its_timer_before_its_time_is_not_released_early)
{
	struct account_rig r;
	struct str         id;
	int64_t            due_ms;

	open_rig(&r);
	id = add_resting(&r);
	due_ms = open_of(&r, id).items[0].due_ms;
	rig_run(&r.rig, lose_timers, &id);
	CHECK(heal(&r, DISCREPANCY_NO_TIMER) == 1 && heal(&r, DISCREPANCY_NONE) == 0);
	rig_pass(&r.rig, due_ms - r.rig.clock.test_ms - 1);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN);
	rig_pass(&r.rig, 1);
	CHECK(get_account(&r, id).status == ACCOUNT_AVAILABLE);
	account_rig_close(&r);
}

/* --- FR19 --- */

TEST(fr19_an_account_that_is_free_without_a_rest_on_record_rests_again)
{
	struct account_rig r;
	struct str         id;

	open_rig(&r);
	id = add_resting(&r);
	outsider_moves(&r, id, SIM_OU_AVAILABLE);
	rig_run(&r.rig, free_without_rest, &id);
	CHECK(heal(&r, DISCREPANCY_BYPASS) == 1);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN && where_is(&r, id) == SIM_OU_QUARANTINE);
	CHECK(get_account(&r, id).rest_until_ms == get_account(&r, id).cleaned_ms + REST_MS);
	CHECK(has_discrepancy(&r, DISCREPANCY_BYPASS, id));
	CHECK(heal(&r, DISCREPANCY_NONE) == 0 && !has_discrepancy(&r, DISCREPANCY_BYPASS, id));
	account_rig_close(&r);
}

TEST(fr19_one_that_was_lent_already_is_told_of_and_keeps_its_lease)
{
	struct account_rig r;
	struct lease       lease;
	struct str         id;

	open_rig(&r);
	id = add_resting(&r);
	outsider_moves(&r, id, SIM_OU_AVAILABLE);
	rig_run(&r.rig, free_without_rest, &id);
	lease = lend(&r, BOB);
	(void)rig_turn(&r.rig);
	CHECK(heal(&r, DISCREPANCY_LENT_BYPASS) == 1);
	CHECK(get_lease(&r, lease.uuid).status == LEASE_ACTIVE && get_account(&r, id).status == ACCOUNT_ACTIVE);
	account_rig_close(&r);
}

TEST(fr19_a_bypass_an_exemption_and_a_rest_that_is_over_are_on_record)
{
	struct account_rig r;
	struct hold_call   bypass = { .by = { .email = STR("admin") }, .reason = STR("a course tomorrow") };
	struct lease       lease;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0); /* new: exempt */
	CHECK(heal(&r, DISCREPANCY_NONE) == 0 && get_account(&r, id).status == ACCOUNT_AVAILABLE);
	bypass.account = id;
	rig_run(&r.rig, hold_set_bypass, &bypass);
	for (int i = 0; i < 2; i++) { /* once bypassed, once rested */
		lease = lend(&r, ANN);
		(void)rig_turn(&r.rig);
		take_back(&r, lease.uuid);
		rig_pass(&r.rig, i * REST_MS + 2 * HOUR_MS);
		CHECK(get_account(&r, id).status == ACCOUNT_AVAILABLE);
		CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	}
	account_rig_close(&r);
}

/* --- what else can be wrong --- */

TEST(an_incomplete_listing_concludes_nothing_and_throttling_is_counted)
{
	struct reconcile_report report = { .count = 0 };
	struct account_rig      r;
	struct fact             fact;
	struct str              id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	outsider_moves(&r, id, SIM_OU_QUARANTINE);
	goes_wrong(&r, WORLD_THROTTLE, WORLD_LIST_ACCOUNTS, 0);
	CHECK(try_reconcile(&r, false, &report) == RC_LIMITED && try_reconcile(&r, false, &report) == RC_LIMITED);
	CHECK(report.found == 0 && get_account(&r, id).status == ACCOUNT_AVAILABLE);
	CHECK(has_fact(&r, FACT_THROTTLED, &fact) && fact.value == 2);
	goes_well(&r);
	CHECK(heal(&r, DISCREPANCY_UNRECORDED_REST) == 1);
	CHECK(has_fact(&r, FACT_THROTTLED, &fact) && fact.value == 0);
	reconcile_report_fini(&report);
	account_rig_close(&r);
}

static enum rc lose_hold(struct session *s, void *arg, struct err *e)
{
	struct hold_list l = { .account = *(struct str *)arg, .limit = 1 };
	enum rc          rc = hold_list(s, &l, e);

	CHECK(rc || l.page.count == 1);
	if (!rc)
		session_delete(s, &hold_type, ((struct hold *)page_record(&l.page, &hold_type, 0))->id);
	return rc;
}

TEST(a_hold_that_cannot_be_read_keeps_nobody_from_looking_at_the_others)
{
	struct reconcile_report report = { .count = 0 };
	struct account_rig      r;
	struct str              broken, other;

	open_rig(&r);
	broken = add_free_account(&r, 0);
	other = add_free_account(&r, 1);
	outsider_moves(&r, broken, SIM_OU_QUARANTINE);
	CHECK(heal(&r, DISCREPANCY_UNRECORDED_REST) == 1 && get_account(&r, broken).status == ACCOUNT_COOLDOWN);
	rig_run(&r.rig, lose_hold, &broken);
	outsider_moves(&r, other, SIM_OU_QUARANTINE);
	rig_pass(&r.rig, MINUTE_MS);
	CHECK(try_reconcile(&r, false, &report) == RC_CORRUPT && report.healed == 1);
	CHECK(get_account(&r, other).status == ACCOUNT_COOLDOWN);
	CHECK(get_account(&r, broken).status == ACCOUNT_COOLDOWN); /* not freed, either */
	reconcile_report_fini(&report);
	account_rig_close(&r);
}

TEST(moves_that_are_throttled_are_counted_until_there_was_an_hours_peace)
{
	struct account_rig r;
	struct fact        fact;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	goes_wrong(&r, WORLD_THROTTLE, WORLD_MOVE, 3);
	do_account(&r, account_quarantine, id);
	rig_pass(&r.rig, HOUR_MS);
	CHECK(where_is(&r, id) == SIM_OU_QUARANTINE);
	CHECK(has_fact(&r, FACT_MOVES_THROTTLED, &fact) && fact.value == 3);
	rig_pass(&r.rig, 2 * HOUR_MS);
	goes_wrong(&r, WORLD_THROTTLE, WORLD_MOVE, 1);
	do_account(&r, account_retry_cleanup, id);
	rig_pass(&r.rig, HOUR_MS);
	CHECK(has_fact(&r, FACT_MOVES_THROTTLED, &fact) && fact.value == 1);
	account_rig_close(&r);
}

TEST(a_trail_that_falls_silent_is_noticed_by_the_cleanups_it_does_not_tell_of)
{
	struct account_rig r;

	open_rig(&r);
	rig_run(&r.rig, hear_event, NULL);
	for (size_t i = 0; i < SILENT_CLEANUPS; i++)
		do_account(&r, account_register, nth_account(&r, i));
	rig_pass(&r.rig, 2 * HOUR_MS);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0); /* it may only be slow */
	rig_pass(&r.rig, SILENT_HOURS * HOUR_MS);
	CHECK(heal(&r, DISCREPANCY_EVENTS_SILENT) == 1 && has_discrepancy(&r, DISCREPANCY_EVENTS_SILENT, STR("")));
	rig_run(&r.rig, hear_event, NULL);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0 && !has_discrepancy(&r, DISCREPANCY_EVENTS_SILENT, STR("")));
	account_rig_close(&r);
}

TEST(a_trail_that_never_spoke_is_not_missed_natively)
{
	struct account_rig r;

	open_rig(&r);
	for (size_t i = 0; i < SILENT_CLEANUPS; i++)
		do_account(&r, account_register, nth_account(&r, i));
	rig_pass(&r.rig, 2 * SILENT_HOURS * HOUR_MS);
	CHECK(heal(&r, DISCREPANCY_NONE) == 0);
	account_rig_close(&r);
}

/* --- pure --- */

#define DAY_MS (24 * HOUR_MS)

TEST(the_free_ones_last_until_the_next_come_back_or_it_is_told_when_they_end)
{
	static const struct {
		const char   *label;
		struct runway runway;
		int64_t       ends_ms; /* from now on; 0: they last */
	} rows[] = {
		{ "nobody asks", { .ready = 0, .used = 0, .span_ms = 7 * DAY_MS, .horizon_ms = 3 * DAY_MS }, 0 },
		{ "enough for the horizon", { 4, 0, 7, 7 * DAY_MS, 3 * DAY_MS }, 0 },
		{ "not enough, and none rests", { 2, 0, 7, 7 * DAY_MS, 3 * DAY_MS }, 2 * DAY_MS },
		{ "one comes back before", { 2, DAY_MS, 7, 7 * DAY_MS, 3 * DAY_MS }, 0 },
		{ "one comes back too late", { 1, 2 * DAY_MS, 7, 7 * DAY_MS, 3 * DAY_MS }, DAY_MS },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct runway r = rows[i].runway;
		struct wall   now = { .ms = 1700000000000 };

		CASE(rows[i].label);
		r.next_due_ms += r.next_due_ms ? now.ms : 0;
		CHECK(runway_ends_ms(&r, now) == (rows[i].ends_ms ? now.ms + rows[i].ends_ms : 0));
	}
}
