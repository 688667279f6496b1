/* SPDX-License-Identifier: Apache-2.0 */
/* test_lease_line.c - who waits for an account is served in turn, sees his place, and does not wait for ever. */
#include "test.h"

#include "domain/account.h"
#include "lease_rig.h"
#include "service/record/lease_records.h"
#include "store/store_ops.h"

static struct lease_call look(struct lease_rig *r, struct str uuid)
{
	struct lease_call c = {
		.by = manager, .policy = &r->policy, .owner_email = lease_of(r, uuid).user_email, .uuid = uuid
	};

	rig_run(&r->k, lease_get, &c);
	return c;
}

static struct str ask_and_approve(struct lease_rig *r, const struct caller *who)
{
	struct str uuid = ask(r, who, r->by_request);

	CHECK(order(r, lease_approve, uuid, &manager, NULL) == RC_OK);
	return uuid;
}

TEST(an_approval_without_a_free_account_waits_in_line)
{
	struct lease_rig r;
	struct str       uuid;
	struct lease     l;

	lease_rig_open(&r, 0);
	uuid = ask_and_approve(&r, &ann);
	l = lease_of(&r, uuid);
	CHECK(l.status == LEASE_PENDING_APPROVAL && l.queued_ms == r.k.clock.test_ms && l.is_queued == 1);
	CHECK(str_eq(l.queued_by, manager.email) && told(&r, "LeaseQueued", uuid) == 1);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_CONFLICT);
	(void)rig_turn(&r.k);
	CHECK(look(&r, uuid).position == 1 && look(&r, uuid).estimate_ms == 0);
	CHECK(live_of(&r, &ann) == 1);
	lease_rig_close(&r);
}

TEST(a_request_that_needs_no_approval_waits_in_line_too)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 0);
	uuid = ask(&r, &ann, r.by_rule);
	CHECK(lease_of(&r, uuid).is_queued == 1 && str_eq(lease_of(&r, uuid).queued_by, STR(AUTO_APPROVED)));
	CHECK(told(&r, "LeaseQueued", uuid) == 1 && told(&r, "LeaseRequested", uuid) == 0);
	lease_rig_close(&r);
}

TEST(two_approvals_for_one_account_give_it_to_the_first)
{
	struct lease_rig r;
	struct str       a, b;

	lease_rig_open(&r, 1);
	a = ask(&r, &ann, r.by_request);
	b = ask(&r, &bob, r.by_request);
	r.faults.next = FAULT_RERUN;
	r.faults.count = 2;
	CHECK(order(&r, lease_approve, b, &manager, NULL) == RC_OK);
	CHECK(order(&r, lease_approve, a, &manager, NULL) == RC_OK);
	(void)rig_turn(&r.k);
	CHECK(status_of(&r, b) == LEASE_ACTIVE && status_of(&r, a) == LEASE_PENDING_APPROVAL);
	CHECK(lease_of(&r, a).is_queued == 1 && str_eq(account_of(&r, r.accounts[0]).lease_uuid, b));
	lease_rig_close(&r);
}

TEST(the_line_is_served_first_come_first_served_as_accounts_come_back)
{
	struct lease_rig r;
	struct str       holders[2], waiting[3];

	lease_rig_open(&r, 2);
	holders[0] = make_active(&r, &manager);
	holders[1] = make_active(&r, &manager);
	waiting[0] = ask_and_approve(&r, &ann); /* all at one moment: the order is that of the commits */
	waiting[1] = ask_and_approve(&r, &bob);
	waiting[2] = ask_and_approve(&r, &ann);
	for (int i = 0; i < 3; i++)
		CHECK(look(&r, waiting[i]).position == i + 1);
	CHECK(order(&r, lease_terminate, holders[0], &manager, NULL) == RC_OK);
	rig_pass(&r.k, HOUR_MS);
	CHECK(status_of(&r, waiting[0]) == LEASE_ACTIVE && str_eq(lease_of(&r, waiting[0]).approved_by, manager.email));
	CHECK(lease_of(&r, waiting[0]).is_queued == 0 && status_of(&r, waiting[1]) == LEASE_PENDING_APPROVAL);
	CHECK(look(&r, waiting[1]).position == 1 && look(&r, waiting[2]).position == 2);
	CHECK(order(&r, lease_terminate, holders[1], &manager, NULL) == RC_OK);
	CHECK(order(&r, lease_terminate, waiting[0], &manager, NULL) == RC_OK);
	rig_pass(&r.k, HOUR_MS);
	CHECK(status_of(&r, waiting[1]) == LEASE_ACTIVE && status_of(&r, waiting[2]) == LEASE_ACTIVE);
	lease_rig_close(&r);
}

static enum rc free_all(struct session *s, void *arg, struct err *e)
{
	struct lease_rig *r = arg;

	(void)e;
	for (int i = 0; i < 6; i++) {
		struct account a;

		if (session_get(s, &account_type, r->accounts[i], &a, e))
			return RC_INTERNAL;
		a.status = ACCOUNT_AVAILABLE;
		a.rested_ms = a.cleaned_ms;
		session_put(s, &account_type, &a);
	}
	return RC_OK;
}

static enum rc lock_all(struct session *s, void *arg, struct err *e)
{
	struct lease_rig *r = arg;

	for (int i = 0; i < 6; i++) {
		struct account a;

		if (session_get(s, &account_type, r->accounts[i], &a, e))
			return RC_INTERNAL;
		a.status = ACCOUNT_QUARANTINE;
		session_put(s, &account_type, &a);
	}
	return RC_OK;
}

/* Accounts that nobody heard of: the line is told by whoever joins it. */
TEST(whoever_joins_the_line_has_it_served_and_overtakes_nobody)
{
	struct lease_rig r;
	struct str       waiting[5], last;

	lease_rig_open(&r, 6);
	r.policy.leases_per_user = 10;
	rig_run(&r.k, lock_all, &r);
	for (int i = 0; i < 5; i++)
		waiting[i] = ask_and_approve(&r, i % 2 ? &ann : &bob);
	(void)rig_turn(&r.k);
	rig_run(&r.k, free_all, &r);
	last = ask_and_approve(&r, &ann);
	CHECK(lease_of(&r, last).is_queued == 1); /* behind the others, though accounts are free */
	(void)rig_turn(&r.k);
	for (int i = 0; i < 5; i++) {
		CHECK(status_of(&r, waiting[i]) == LEASE_ACTIVE);
		CHECK(str_eq(lease_of(&r, waiting[i]).account_id,
		             r.accounts[i])); /* the longest rested for the first */
	}
	CHECK(status_of(&r, last) == LEASE_ACTIVE && str_eq(lease_of(&r, last).account_id, r.accounts[5]));
	CHECK(told(&r, "LineMoved", STR("")) >= 1);
	lease_rig_close(&r);
}

TEST(the_pass_serves_a_line_that_was_forgotten)
{
	struct lease_rig r;
	struct str       a, b;

	lease_rig_open(&r, 6);
	rig_run(&r.k, lock_all, &r);
	a = ask_and_approve(&r, &ann);
	b = ask_and_approve(&r, &bob);
	(void)rig_turn(&r.k);
	rig_run(&r.k, free_all, &r);
	CHECK(run_pass(&r, pass_tend_line, "served") == 2);
	(void)rig_turn(&r.k);
	CHECK(status_of(&r, a) == LEASE_ACTIVE && status_of(&r, b) == LEASE_ACTIVE);
	lease_rig_close(&r);
}

TEST(the_line_keeps_its_order_when_the_clock_goes_back)
{
	struct lease_rig r;
	struct str       first, second;

	lease_rig_open(&r, 0);
	first = ask_and_approve(&r, &ann);
	r.k.clock.test_ms -= HOUR_MS;
	second = ask_and_approve(&r, &bob);
	CHECK(look(&r, first).position == 1 && look(&r, second).position == 2);
	lease_rig_close(&r);
}

TEST(who_withdraws_or_is_taken_out_leaves_the_line)
{
	struct lease_rig r;
	struct str       uuids[3];

	lease_rig_open(&r, 0);
	for (int i = 0; i < 3; i++)
		uuids[i] = ask_and_approve(&r, &ann);
	CHECK(order(&r, lease_withdraw, uuids[0], &ann, NULL) == RC_OK);
	CHECK(order(&r, lease_deny, uuids[1], &manager, NULL) == RC_CONFLICT);
	CHECK(order(&r, lease_terminate, uuids[1], &manager, NULL) == RC_OK);
	CHECK(look(&r, uuids[0]).position == 0 && look(&r, uuids[1]).position == 0 && look(&r, uuids[2]).position == 1);
	CHECK(lease_of(&r, uuids[0]).is_queued == 0 && live_of(&r, &ann) == 1);
	lease_rig_close(&r);
}

/* Clients see it as Provisioning: that it is "PendingApproval" would contradict what they see. */
TEST(what_cannot_be_done_in_line_is_refused_with_the_line_as_the_reason)
{
	struct lease_rig  r;
	struct lease_edit less = { .sets_max_spend = true, .max_spend = 20 * USD };
	struct str        uuid;
	struct err        e = { 0 };

	lease_rig_open(&r, 0);
	uuid = ask_and_approve(&r, &ann);
	CHECK(order(&r, lease_freeze, uuid, &manager, &e) == RC_CONFLICT);
	CHECK(mentions(str_from(e.msg), "is in line for an account; to freeze, it must be Active"));
	err_clear(&e);
	less.call = (struct lease_call){ .by = manager, .policy = &r.policy, .owner_email = ann.email, .uuid = uuid };
	CHECK(rig_try(&r.k, lease_edit, &less, &e) == RC_INVALID);
	CHECK(mentions(str_from(e.msg), "is in line for an account; only one that is Active"));
	lease_rig_close(&r);
}

TEST(who_waits_for_too_long_is_denied_and_told_why)
{
	struct lease_rig r;
	struct str       old, young;

	lease_rig_open(&r, 0);
	old = ask_and_approve(&r, &ann);
	r.k.clock.test_ms += 12 * HOUR_MS;
	young = ask_and_approve(&r, &bob);
	r.k.clock.test_ms += 12 * HOUR_MS;
	CHECK(run_pass(&r, pass_tend_line, "expired") == 0);
	r.k.clock.test_ms += 1;
	CHECK(run_pass(&r, pass_tend_line, "expired") == 1);
	CHECK(status_of(&r, old) == LEASE_APPROVAL_DENIED && status_of(&r, young) == LEASE_PENDING_APPROVAL);
	CHECK(mentions(last_detail(&r, "LeaseDenied", old), "\"deniedBy\":\"line\",\"reason\":\"queue_timeout\""));
	CHECK(live_of(&r, &ann) == 0 && look(&r, young).position == 1);
	lease_rig_close(&r);
}

static session_query_fn *real_query;

/* As an index that still has everybody at an earlier place. */
static enum rc query_behind(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct query all = *q;
	enum rc      rc;

	all.has_sort_max = false;
	rc = real_query(s, &all, ret, e);
	for (size_t i = 0; !rc && i < ret->count; i++) {
		struct lease *seen = arena_alloc(session_arena(s), sizeof(*seen));

		*seen = *(const struct lease *)ret->items[i].record;
		seen->queued_ms -= 2 * HOUR_MS;
		ret->items[i].record = seen;
	}
	return rc;
}

static enum rc expire_by_old_index(struct session *s, void *arg, struct err *e)
{
	struct store_ops *ops = (struct store_ops *)(uintptr_t)s->store->ops; /* the rig's own, see fault.c */
	enum rc           rc;

	real_query = ops->query;
	ops->query = query_behind;
	rc = line_expire(s, arg, e);
	ops->query = real_query;
	return rc;
}

TEST(who_has_joined_the_line_again_is_not_denied_for_the_time_before)
{
	struct lease_rig   r;
	struct str         old, young;
	struct line_expire x;

	lease_rig_open(&r, 0);
	old = ask_and_approve(&r, &ann);
	r.k.clock.test_ms += HOUR_MS;
	young = ask_and_approve(&r, &bob);
	x.before_ms = r.k.clock.test_ms;
	rig_run(&r.k, expire_by_old_index, &x);
	CHECK(x.expired == 1 && status_of(&r, old) == LEASE_APPROVAL_DENIED);
	CHECK(status_of(&r, young) == LEASE_PENDING_APPROVAL && look(&r, young).position == 1);
	lease_rig_close(&r);
}

TEST(the_estimate_is_when_as_many_accounts_have_come_back_as_the_place_says)
{
	struct lease_rig  r;
	struct str        early, late, a, b, c;
	struct lease_edit sooner = { .sets_expiry = true };

	lease_rig_open(&r, 2);
	early = make_active(&r, &manager);
	late = make_active(&r, &manager);
	sooner.expires_ms = r.k.clock.test_ms + 10 * HOUR_MS;
	sooner.call = (struct lease_call){
		.by = manager, .policy = &r.policy, .owner_email = manager.email, .uuid = early
	};
	rig_run(&r.k, lease_edit, &sooner);
	a = ask_and_approve(&r, &ann);
	b = ask_and_approve(&r, &bob);
	c = ask_and_approve(&r, &bob);
	CHECK(look(&r, a).estimate_ms == r.k.clock.test_ms + 10 * HOUR_MS + 30 * MINUTE_MS);
	CHECK(look(&r, b).estimate_ms == lease_of(&r, late).expires_ms + 30 * MINUTE_MS);
	CHECK(look(&r, c).estimate_ms == 0); /* nobody can tell */
	r.policy.rest_ms = 72 * HOUR_MS;
	CHECK(look(&r, a).estimate_ms == r.k.clock.test_ms + 82 * HOUR_MS + 30 * MINUTE_MS);
	hold_rules_defaults(&r.rules);
	CHECK(order(&r, lease_terminate, late, &manager, NULL) == RC_OK);
	CHECK(look(&r, a).estimate_ms == r.k.clock.test_ms + 72 * HOUR_MS + 30 * MINUTE_MS);
	rig_pass(&r.k, 5 * HOUR_MS);
	CHECK(look(&r, a).estimate_ms == account_of(&r, lease_of(&r, late).account_id).rest_until_ms);
	lease_rig_close(&r);
}
