/* SPDX-License-Identifier: Apache-2.0 */
/* test_holds.c - accounts rest after their cleanup: what holds them, for how long, who may end it, and what an old
 * timer cannot do. */
#include "test.h"

#include <string.h>

#include "account_rig.h"
#include "kernel/timer.h"
#include "service/hold/holds.h"
#include "service/record/lease_records.h"
#include "store/session.h"

#define DAY_MS (24 * HOUR_MS)
#define BOSS   STR("boss@example.com")

static const struct caller ops = { .email = STR_INIT("ops@example.com"), .roles = ROLE_ADMIN };

/* 72 h for billing. */
static void open_rig(struct account_rig *r)
{
	account_rig_open(r);
	hold_rules_defaults(&r->rules);
}

/* Lent, taken back and cleaned: it rests. */
static struct str rest(struct account_rig *r, struct str id)
{
	struct lease lease = lend(r, ANN);

	CHECK(str_eq(lease.account_id, id));
	rig_pass(&r->rig, HOUR_MS);
	take_back(r, lease.uuid);
	for (int i = 0; i < 240 && get_account(r, id).status != ACCOUNT_COOLDOWN; i++)
		rig_pass(&r->rig, MINUTE_MS);
	rig_pass(&r->rig, MINUTE_MS);
	CHECK(get_account(r, id).status == ACCOUNT_COOLDOWN);
	return lease.uuid;
}

static enum rc read_open(struct session *s, void *arg, struct err *e)
{
	struct holds *h = arg;

	return hold_list_open(s, h->items[0].account, h, e);
}

static struct holds open_holds(struct account_rig *r, struct str id)
{
	struct holds h = { .items[0].account = id };

	CHECK(store_read(r->rig.store, read_open, &h, &r->rig.arena, &r->err) == RC_OK);
	return h;
}

static struct hold only_hold(struct account_rig *r, struct str id)
{
	struct holds h = open_holds(r, id);

	CHECK(h.count == 1);
	return h.items[0];
}

static struct hold get_hold(struct account_rig *r, struct str id)
{
	struct hold_call c = { .id = id };

	rig_run(&r->rig, hold_get, &c);
	return c.hold;
}

static enum rc try_hold(struct account_rig *r, txn_fn *run, struct hold_call c)
{
	struct hold_call *kept = &c;

	c.by = ops;
	err_clear(&r->err);
	return rig_try(&r->rig, run, kept, &r->err);
}

static bool is_free(struct account_rig *r, struct str id)
{
	return get_account(r, id).status == ACCOUNT_AVAILABLE && where_is(r, id) == SIM_OU_AVAILABLE;
}

static int64_t now_ms(struct account_rig *r)
{
	return clock_now(&r->rig.clock).ms;
}

TEST(an_account_rests_72_hours_after_its_cleanup_and_is_free_then)
{
	struct account_rig r = { 0 };
	struct lease       next;
	struct hold        h;
	struct str         id, uuid;

	open_rig(&r);
	id = add_free_account(&r, 0);
	uuid = rest(&r, id);
	h = only_hold(&r, id);
	CHECK(where_is(&r, id) == SIM_OU_QUARANTINE);
	CHECK(h.reason == HOLD_BILLING && h.due_ms == h.created_ms + 72 * HOUR_MS && str_eq(h.lease_uuid, uuid));
	CHECK(get_account(&r, id).rest_until_ms == h.due_ms && get_account(&r, id).open_holds == 1);
	CHECK(try_lend(&r, BOB, BOSS, &next) == RC_EXHAUSTED);
	rig_pass(&r.rig, h.due_ms - now_ms(&r) - 1);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN);
	rig_pass(&r.rig, 1 + MINUTE_MS);
	CHECK(is_free(&r, id) && get_hold(&r, h.id).state == HOLD_RELEASED && open_holds(&r, id).count == 0);
	CHECK(try_lend(&r, BOB, BOSS, &next) == RC_OK);
	account_rig_close(&r);
}

TEST(a_new_account_does_not_rest_and_that_is_on_record)
{
	struct account_rig r = { 0 };
	struct hold_list   l = { .limit = 10 };

	open_rig(&r);
	l.account = add_free_account(&r, 0);
	rig_run(&r.rig, hold_list, &l);
	CHECK(l.page.count == 1);
	CHECK(((struct hold *)page_record(&l.page, &hold_type, 0))->state == HOLD_EXEMPT);
	CHECK(text_has(last_event(&r, EVENT_HOLD_CLOSED).detail, "new-account"));
	account_rig_close(&r);
}

TEST(the_exemption_of_new_accounts_can_be_switched_off)
{
	struct account_rig r = { 0 };
	struct str         id;

	open_rig(&r);
	r.rules.exempts_new = false;
	id = nth_account(&r, 0);
	do_account(&r, account_register, id);
	rig_pass(&r.rig, 2 * HOUR_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN && only_hold(&r, id).reason == HOLD_BILLING);
	account_rig_close(&r);
}

TEST(several_holds_the_latest_due_time_counts)
{
	struct account_rig r = { 0 };
	struct holds       h;
	struct str         id;

	open_rig(&r);
	r.rules.hours[HOLD_QUOTA] = 24;
	r.rules.hours[HOLD_METADATA] = HOLD_METADATA_91D;
	id = add_free_account(&r, 0);
	(void)rest(&r, id);
	h = open_holds(&r, id);
	CHECK(h.count == 3 && holds_until(&h) == get_account(&r, id).rest_until_ms);
	rig_pass(&r.rig, 90 * DAY_MS);
	CHECK(open_holds(&r, id).count == 1 && get_account(&r, id).status == ACCOUNT_COOLDOWN);
	rig_pass(&r.rig, DAY_MS + HOUR_MS);
	CHECK(is_free(&r, id));
	account_rig_close(&r);
}

TEST(x3_cleaned_again_and_held_again_only_the_second_time_releases)
{
	struct account_rig r = { 0 };
	struct hold        first, second;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	(void)rest(&r, id);
	first = only_hold(&r, id);
	rig_pass(&r.rig, 48 * HOUR_MS);
	CHECK(try_account(&r, account_retry_cleanup, id) == RC_CONFLICT); /* not by accident */
	CHECK(get_hold(&r, first.id).state == first.state && get_account(&r, id).rest_until_ms == first.due_ms);
	clean_resting(&r, id);
	CHECK(get_hold(&r, first.id).state == HOLD_CLEANED_AGAIN);
	rig_pass(&r.rig, 2 * HOUR_MS);
	second = only_hold(&r, id);
	CHECK(!str_eq(first.id, second.id) && second.due_ms > first.due_ms + 48 * HOUR_MS);
	rig_pass(&r.rig, first.due_ms + HOUR_MS - now_ms(&r));
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN);
	rig_pass(&r.rig, second.due_ms + HOUR_MS - now_ms(&r));
	CHECK(is_free(&r, id));
	account_rig_close(&r);
}

/* A timer that comes although its hold is gone, or was put off. */
static enum rc fire(struct session *s, void *arg, struct err *e)
{
	const struct hold *h = arg;
	struct timer       t = { .name = STR("an old schedule"),
		                 .due_ms = session_now(s).ms,
		                 .type = STR(EVENT_HOLD_DUE),
		                 .subject = str_format(session_arena(s), "account/%.*s", STR_ARG(h->account)) };

	t.detail = str_format(session_arena(s), "{\"holdId\":\"%.*s\"}", STR_ARG(h->id));
	return session_arm(s, &t, e);
}

TEST(x4_an_old_release_does_not_free_what_is_locked_away)
{
	struct account_rig r = { 0 };
	struct hold        billing;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	(void)rest(&r, id);
	billing = only_hold(&r, id);
	do_account(&r, account_quarantine, id);
	rig_pass(&r.rig, 100 * HOUR_MS);
	CHECK(get_hold(&r, billing.id).state == HOLD_RELEASED);
	CHECK(get_account(&r, id).status == ACCOUNT_QUARANTINE && only_hold(&r, id).locks);
	rig_run(&r.rig, fire, &billing);
	rig_pass(&r.rig, HOUR_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_QUARANTINE && where_is(&r, id) == SIM_OU_QUARANTINE);
	account_rig_close(&r);
}

TEST(a_failed_cleanup_locks_until_one_succeeds_and_cannot_be_released)
{
	struct account_rig r = { 0 };
	struct hold        lock;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	goes_wrong(&r, WORLD_CLEAN_FAILS, WORLD_ANY_CALL, 0);
	take_back(&r, lend(&r, ANN).uuid);
	rig_pass(&r.rig, 10 * HOUR_MS);
	lock = only_hold(&r, id);
	CHECK(lock.reason == HOLD_FAILED_CLEANUP && lock.locks && !lock.due_ms);
	CHECK(try_hold(&r, hold_release, (struct hold_call){ .id = lock.id, .reason = STR("please") }) == RC_CONFLICT);
	CHECK(strstr(r.err.msg, "retry its cleanup"));
	goes_well(&r);
	do_account(&r, account_retry_cleanup, id);
	rig_pass(&r.rig, 2 * HOUR_MS);
	CHECK(get_hold(&r, lock.id).state == HOLD_CLEANED_AGAIN);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN && only_hold(&r, id).reason == HOLD_BILLING);
	account_rig_close(&r);
}

TEST(x14_due_is_due_to_the_millisecond_and_an_early_timer_is_put_off)
{
	struct account_rig r = { 0 };
	struct hold        h;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	(void)rest(&r, id);
	h = only_hold(&r, id);
	CHECK(!hold_is_due(&h, (struct wall){ h.due_ms - 1 }) && hold_is_due(&h, (struct wall){ h.due_ms }));
	rig_run(&r.rig, fire, &h);
	rig_pass(&r.rig, HOUR_MS);
	CHECK(get_hold(&r, h.id).state == HOLD_OPEN && get_account(&r, id).status == ACCOUNT_COOLDOWN);
	rig_pass(&r.rig, h.due_ms - now_ms(&r) + MINUTE_MS);
	CHECK(is_free(&r, id));
	account_rig_close(&r);
}

TEST(a_person_releases_early_with_a_reason_and_only_so)
{
	struct account_rig r = { 0 };
	struct hold        h;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	(void)rest(&r, id);
	h = only_hold(&r, id);
	CHECK(try_hold(&r, hold_release, (struct hold_call){ .id = h.id, .reason = STR("  ") }) == RC_INVALID);
	CHECK(only_hold(&r, id).state == HOLD_OPEN);
	CHECK(try_hold(&r, hold_release, (struct hold_call){ .id = h.id, .reason = STR("a class starts") }) == RC_OK);
	rig_pass(&r.rig, MINUTE_MS);
	h = get_hold(&r, h.id);
	CHECK(is_free(&r, id) && h.state == HOLD_RELEASED_EARLY && str_eq(h.closed_why, STR("a class starts")));
	CHECK(str_eq(h.closed_by, ops.email));
	CHECK(try_hold(&r, hold_release, (struct hold_call){ .id = h.id, .reason = STR("again") }) == RC_CONFLICT);
	account_rig_close(&r);
}

TEST(extending_moves_the_release)
{
	struct account_rig r = { 0 };
	struct hold        h;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	(void)rest(&r, id);
	h = only_hold(&r, id);
	CHECK(try_hold(&r, hold_extend_until, (struct hold_call){ .id = h.id, .due_ms = now_ms(&r) }) == RC_INVALID);
	CHECK(try_hold(&r, hold_extend_until, (struct hold_call){ .id = h.id, .due_ms = h.due_ms + DAY_MS }) == RC_OK);
	CHECK(get_account(&r, id).rest_until_ms == h.due_ms + DAY_MS);
	rig_pass(&r.rig, h.due_ms + HOUR_MS - now_ms(&r));
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN);
	rig_pass(&r.rig, DAY_MS);
	CHECK(is_free(&r, id));
	account_rig_close(&r);
}

TEST(a_hold_that_is_made_shorter_needs_a_reason_which_is_kept)
{
	struct account_rig r = { 0 };
	struct hold_call   c = { 0 };
	struct hold        h;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	(void)rest(&r, id);
	h = only_hold(&r, id);
	c = (struct hold_call){ .id = h.id, .due_ms = h.due_ms - HOUR_MS };
	CHECK(try_hold(&r, hold_extend_until, c) == RC_INVALID);
	CHECK(only_hold(&r, id).due_ms == h.due_ms);
	c.reason = STR("the bill is there already");
	CHECK(try_hold(&r, hold_extend_until, c) == RC_OK && only_hold(&r, id).due_ms == c.due_ms);
	CHECK(text_has(last_event(&r, EVENT_HOLD_EXTENDED).detail, "\"why\":\"the bill is there already\""));
	account_rig_close(&r);
}

/* It lasts forever, so any end is earlier: an end in a moment would be a release that says nothing. */
TEST(a_hold_without_an_end_is_given_one_only_with_a_reason)
{
	struct account_rig r = { 0 };
	struct hold_call   c = { 0 };
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	CHECK(try_hold(&r, hold_add, (struct hold_call){ .account = id, .reason = STR("audit") }) == RC_OK);
	rig_pass(&r.rig, MINUTE_MS);
	c = (struct hold_call){ .id = only_hold(&r, id).id, .due_ms = now_ms(&r) + 1 };
	CHECK(try_hold(&r, hold_extend_until, c) == RC_INVALID && text_has(str_from(r.err.msg), "a reason is needed"));
	rig_pass(&r.rig, HOUR_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN && !only_hold(&r, id).due_ms);
	c.due_ms = now_ms(&r) + HOUR_MS;
	c.reason = STR("the audit ends at noon");
	CHECK(try_hold(&r, hold_extend_until, c) == RC_OK && only_hold(&r, id).due_ms == c.due_ms);
	account_rig_close(&r);
}

TEST(a_persons_hold_keeps_a_free_account_back_and_survives_a_cleanup)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct hold        h;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	CHECK(try_hold(&r, hold_add, (struct hold_call){ .account = id, .reason = STR("audit") }) == RC_OK);
	rig_pass(&r.rig, MINUTE_MS);
	h = only_hold(&r, id);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN && where_is(&r, id) == SIM_OU_QUARANTINE);
	CHECK(h.reason == HOLD_MANUAL && !h.due_ms && try_lend(&r, ANN, BOSS, &lease) == RC_EXHAUSTED);
	clean_resting(&r, id);
	rig_pass(&r.rig, 100 * HOUR_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN && str_eq(only_hold(&r, id).id, h.id));
	CHECK(try_hold(&r, hold_cancel, (struct hold_call){ .id = h.id, .reason = STR("audit is over") }) == RC_OK);
	rig_pass(&r.rig, MINUTE_MS);
	CHECK(is_free(&r, id));
	account_rig_close(&r);
}

/* Whoever hears of the request would take it for a second cleanup. */
TEST(a_hold_on_an_account_that_is_being_cleaned_asks_for_no_cleanup)
{
	struct account_rig r = { 0 };
	struct hold_call   c = { .reason = STR("audit") };
	struct lease       lease;
	size_t             asked;

	open_rig(&r);
	c.account = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	rig_pass(&r.rig, HOUR_MS);
	take_back(&r, lease.uuid);
	rig_pass(&r.rig, MINUTE_MS);
	CHECK(get_account(&r, c.account).status == ACCOUNT_CLEANUP && get_account(&r, c.account).clean_run.n);
	asked = count_events(&r, "CleanAccountRequest");
	CHECK(try_hold(&r, hold_add, c) == RC_OK);
	CHECK(count_events(&r, "CleanAccountRequest") == asked && get_account(&r, c.account).open_holds == 1);
	rig_pass(&r.rig, 3 * HOUR_MS);
	CHECK(get_account(&r, c.account).status == ACCOUNT_COOLDOWN);
	account_rig_close(&r);
}

TEST(an_account_that_is_lent_says_no_time_until_which_it_rests_though_it_is_held_afterwards)
{
	struct account_rig r = { 0 };
	struct hold_call   c = { .reason = STR("audit") };
	struct lease       lease;

	open_rig(&r);
	c.account = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	rig_pass(&r.rig, HOUR_MS);
	c.due_ms = now_ms(&r) + 100 * HOUR_MS;
	CHECK(try_hold(&r, hold_add, c) == RC_OK);
	CHECK(get_account(&r, c.account).open_holds == 1 && !get_account(&r, c.account).rest_until_ms);
	take_back(&r, lease.uuid);
	rig_pass(&r.rig, 3 * HOUR_MS);
	CHECK(get_account(&r, c.account).status == ACCOUNT_COOLDOWN &&
	      get_account(&r, c.account).rest_until_ms == c.due_ms);
	account_rig_close(&r);
}

TEST(x19_a_bypass_counts_once_and_x20_says_who_and_why)
{
	struct account_rig r = { 0 };
	struct hold_list   l = { .limit = 1 };
	const struct hold *h;
	struct str         id;

	open_rig(&r);
	id = l.account = add_free_account(&r, 0);
	CHECK(try_hold(&r, hold_set_bypass, (struct hold_call){ .account = id, .reason = STR("demo at noon") }) ==
	      RC_OK);
	take_back(&r, lend(&r, ANN).uuid);
	rig_pass(&r.rig, 3 * HOUR_MS);
	CHECK(is_free(&r, id));
	rig_run(&r.rig, hold_list, &l);
	h = page_record(&l.page, &hold_type, 0);
	CHECK(h->state == HOLD_BYPASSED && str_eq(h->closed_by, ops.email) &&
	      str_eq(h->closed_why, STR("demo at noon")));
	(void)rest(&r, id);
	CHECK(only_hold(&r, id).reason == HOLD_BILLING);
	account_rig_close(&r);
}

TEST(eject_instead_of_reuse)
{
	struct account_rig r = { 0 };
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	r.rules.ejects = true;
	take_back(&r, lend(&r, ANN).uuid);
	rig_pass(&r.rig, 3 * HOUR_MS);
	CHECK(!has_account(&r, id) && where_is(&r, id) == SIM_OU_EXIT && open_holds(&r, id).count == 0);
	CHECK(text_has(last_event(&r, EVENT_HOLD_CLOSED).detail, "\"state\":\"ejected\""));
	account_rig_close(&r);
}

/* As beside another system: a person has said so of this account, the setting says it of all. */
TEST(h13_a_bypass_wins_over_eject_instead_of_reuse_once)
{
	struct account_rig r = { 0 };
	struct hold_call   c = { .reason = STR("demo at noon") };

	open_rig(&r);
	c.account = add_free_account(&r, 0);
	r.rules.ejects = true;
	CHECK(try_hold(&r, hold_set_bypass, c) == RC_OK);
	take_back(&r, lend(&r, ANN).uuid);
	rig_pass(&r.rig, 3 * HOUR_MS);
	CHECK(text_has(last_event(&r, EVENT_HOLD_CLOSED).detail, "\"state\":\"bypassed\""));
	CHECK(has_account(&r, c.account) && is_free(&r, c.account));
	take_back(&r, lend(&r, ANN).uuid);
	rig_pass(&r.rig, 3 * HOUR_MS);
	CHECK(!has_account(&r, c.account) && where_is(&r, c.account) == SIM_OU_EXIT);
	account_rig_close(&r);
}

TEST(ejecting_a_resting_account_closes_its_holds_and_it_is_not_new_when_it_returns)
{
	struct account_rig r = { 0 };
	struct hold        h;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	(void)rest(&r, id);
	h = only_hold(&r, id);
	do_account(&r, account_eject, id);
	rig_pass(&r.rig, HOUR_MS);
	CHECK(get_hold(&r, h.id).state == HOLD_EJECTED && !has_account(&r, id));
	outsider_moves(&r, id, SIM_OU_ENTRY);
	do_account(&r, account_register, id);
	rig_pass(&r.rig, 2 * HOUR_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN);
	account_rig_close(&r);
}

TEST(an_account_on_its_way_out_of_the_pool_is_not_held_any_more)
{
	struct account_rig r = { 0 };
	struct hold_call   c = { .reason = STR("audit") };

	open_rig(&r);
	c.account = add_free_account(&r, 0);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	do_account(&r, account_eject, c.account);
	CHECK(try_hold(&r, hold_add, c) == RC_NOT_FOUND && text_has(str_from(r.err.msg), "on its way out"));
	CHECK(try_hold(&r, hold_set_bypass, c) == RC_NOT_FOUND && open_holds(&r, c.account).count == 0);
	goes_well(&r);
	rig_pass(&r.rig, HOUR_MS);
	CHECK(!has_account(&r, c.account));
	account_rig_close(&r);
}

TEST(an_account_that_is_locked_away_says_what_holds_it)
{
	struct account_rig r = { 0 };
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	do_account(&r, account_quarantine, id);
	CHECK(open_holds(&r, id).count == 1 && get_account(&r, id).open_holds == 1);
	CHECK(get_account(&r, id).rest_until_ms == 0);
	account_rig_close(&r);
}

/* Whoever may hold an account cannot keep it from being cleaned, locked away or ejected. */
TEST(as_many_holds_as_persons_may_have_leave_room_for_all_that_comes_by_itself)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	struct str         id;
	size_t             count = 0;

	open_rig(&r);
	for (int i = HOLD_BILLING; i <= HOLD_QUOTA; i++)
		r.rules.hours[i] = 72;
	id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	rig_pass(&r.rig, HOUR_MS);
	while (count < HOLDS_OPEN_MAX &&
	       try_hold(&r, hold_add,
	                (struct hold_call){
	                        .account = id, .reason = STR("audit"), .due_ms = now_ms(&r) + 900 * HOUR_MS }) == RC_OK)
		count++;
	CHECK(count > 4);
	take_back(&r, lease.uuid);
	rig_pass(&r.rig, 3 * HOUR_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_COOLDOWN && open_holds(&r, id).count == count + 3);
	CHECK(try_account(&r, account_quarantine, id) == RC_OK);
	rig_pass(&r.rig, HOUR_MS);
	CHECK(get_account(&r, id).status == ACCOUNT_QUARANTINE && open_holds(&r, id).count == count + 4);
	CHECK(try_account(&r, account_eject, id) == RC_OK);
	rig_pass(&r.rig, HOUR_MS);
	CHECK(!has_account(&r, id) && open_holds(&r, id).count == 0);
	account_rig_close(&r);
}

/* Whatever is interrupted, and as often as one likes: never free before its time, and free after it. */
TEST(a_crash_after_any_call_fails_closed)
{
	struct account_rig r = { 0 };
	struct lease       lease;
	int64_t            due_ms = 0;
	struct str         id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	rig_pass(&r.rig, HOUR_MS);
	take_back(&r, lease.uuid);
	for (int i = 0; i < 400 && !is_free(&r, id); i++) {
		struct account a;

		(void)crash_after_call(&r);
		rig_pass(&r.rig, HOUR_MS / 2);
		a = get_account(&r, id);
		due_ms = a.status == ACCOUNT_COOLDOWN ? a.rest_until_ms : due_ms;
		CHECK(a.status != ACCOUNT_AVAILABLE || (due_ms && now_ms(&r) >= due_ms));
	}
	CHECK(is_free(&r, id));
	account_rig_close(&r);
}

TEST(pools_have_their_own_hours)
{
	struct hold_rules rules;
	struct err        e = { 0 };

	hold_rules_defaults(&rules);
	CHECK(hold_rules_read_pools(&rules, STR("lab-:billing=48,metadata=2184; play-:quota=24"), &e) == RC_OK);
	CHECK(hold_hours(&rules, STR("lab-7"), HOLD_BILLING) == 48 &&
	      hold_hours(&rules, STR("lab-7"), HOLD_METADATA) == 2184);
	CHECK(hold_hours(&rules, STR("play-7"), HOLD_BILLING) == 72 &&
	      hold_hours(&rules, STR("play-7"), HOLD_QUOTA) == 24);
	CHECK(hold_hours(&rules, STR("other"), HOLD_METADATA) == 0 && hold_rules_check(&rules, &e) == RC_OK);
	CHECK(hold_rules_read_pools(&rules, STR("x:manual=1"), &e) == RC_INVALID && strstr(e.msg, "manual"));
	err_clear(&e);
	CHECK(hold_rules_read_pools(&rules, STR("x:billing=-1"), &e) == RC_INVALID && strstr(e.msg, "-1"));
	err_clear(&e);
	CHECK(hold_rules_read_pools(&rules, STR("x"), &e) == RC_INVALID && strstr(e.msg, "PREFIX"));
}

TEST(x22_a_billing_hold_too_short_for_disjoint_windows_is_refused)
{
	struct hold_rules rules;
	struct err        e = { 0 };

	hold_rules_defaults(&rules);
	rules.hours[HOLD_BILLING] = 39;
	CHECK(hold_rules_check(&rules, &e) == RC_INVALID && strstr(e.msg, "at least 40 h"));
	rules.hours[HOLD_BILLING] = 40;
	CHECK(hold_rules_check(&rules, &e) == RC_OK);
	rules.padding_hours = 24;
	err_clear(&e);
	CHECK(hold_rules_check(&rules, &e) == RC_INVALID && strstr(e.msg, "at least 72 h"));
	rules.hours[HOLD_BILLING] = 0;
	CHECK(hold_rules_check(&rules, &e) == RC_OK);
}

TEST(the_release_is_named_as_the_requirement_wants_and_fits)
{
	struct arena a = { 0 };
	int64_t      last_ms = 1768912345678;
	struct hold  h = { .account = STR("111122223333") };
	struct str   name;

	h.id = hold_make_id(h.account, (struct wall){ 1768912345678 }, &last_ms, &a);
	name = hold_schedule_name(&h, &a);
	CHECK(str_eq(name, STR("isb-billing-sep-unquarantine-111122223333-1768912345679")));
	CHECK(name.n == 55 && name.n < HOLD_NAME_SIZE);
	arena_fini(&a);
}

static enum rc open_one(struct session *s, void *arg, struct err *e)
{
	return hold_make(s, arg, HOLD_OPEN, e);
}

TEST(x15_a_restart_with_a_thousand_holds_loses_none)
{
	enum { HOLDS = 1000 };
	struct account_rig r = { 0 };
	struct hold_list   l = { .limit = 1000 };
	int64_t            before_ms = 0;

	open_rig(&r);
	for (int i = 0; i < HOLDS; i++) {
		struct hold *h = arena_alloc(&r.rig.arena, sizeof(*h));

		h->account = str_format(&r.rig.arena, "%012d", i);
		h->created_by = STR("test");
		h->due_ms = now_ms(&r) + HOUR_MS + (i * 7919 % HOLDS) * 1000ll;
		CHECK(store_run(r.rig.store, open_one, h, &r.rig.arena, &r.err) == RC_OK);
	}
	rig_run(&r.rig, hold_list, &l);
	CHECK(l.page.count == HOLDS);
	for (size_t i = 0; i < l.page.count; i++) {
		const struct hold *h = page_record(&l.page, &hold_type, i);

		CHECK(h->due_ms >= before_ms);
		before_ms = h->due_ms;
	}
	rig_pass(&r.rig, 2 * HOUR_MS);
	rig_run(&r.rig, hold_list, &l);
	CHECK(l.page.count == 0);
	account_rig_close(&r);
}
