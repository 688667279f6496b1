/* SPDX-License-Identifier: Apache-2.0 */
/* test_leases.c - what people do with leases, and what happens when things go wrong in between. */
#include "test.h"

#include <string.h>

#include "domain/account.h"
#include "kernel/event.h"
#include "lease_rig.h"
#include "service/lease/blueprints.h"
#include "service/lease/lease_private.h"
#include "service/pool/accounts.h"
#include "service/record/lease_records.h"

static int events_of_all(struct lease_rig *r)
{
	return told(r, "Lease*", STR(""));
}

/* --- ask --- */

TEST(a_request_is_pending_and_reserves_no_account)
{
	struct lease_rig r;
	struct str       uuid;
	struct lease     l;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_request);
	l = lease_of(&r, uuid);
	CHECK(l.status == LEASE_PENDING_APPROVAL && l.account_id.n == 0 && l.is_queued == 0);
	CHECK(str_eq(l.user_email, STR("Ann@example.com")) && str_eq(l.user_key, STR("ann@example.com")));
	CHECK(l.max_spend == 50 * USD && l.duration_ms == 48 * HOUR_MS && str_eq(l.template_name, STR("By request")));
	CHECK(str_eq(l.created_by, ann.email));
	CHECK(free_accounts(&r) == 1 && live_of(&r, &ann) == 1);
	CHECK(told(&r, "LeaseRequested", uuid) == 1 && events_of_all(&r) == 3); /* two templates were made */
	CHECK(mentions(last_detail(&r, "LeaseRequested", uuid),
	               "\"leaseId\":{\"userEmail\":\"Ann@example.com\",\"uuid\":\""));
	CHECK(mentions(last_detail(&r, "LeaseRequested", uuid), "\"requiresManualApproval\":true"));
	CHECK(mentions(last_detail(&r, "LeaseRequested", uuid), "\"templateName\":\"By request\""));
	lease_rig_close(&r);
}

TEST(a_template_without_approval_leads_to_an_active_lease_without_a_request)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_rule);
	CHECK(status_of(&r, uuid) == LEASE_PROVISIONING && told(&r, "LeaseApproved", uuid) == 0);
	(void)rig_turn(&r.k);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE);
	CHECK(str_eq(lease_of(&r, uuid).approved_by, STR(AUTO_APPROVED)));
	CHECK(told(&r, "LeaseRequested", uuid) == 0 && told(&r, "LeaseApproved", uuid) == 1);
	lease_rig_close(&r);
}

TEST(a_plain_users_own_email_is_no_assignment)
{
	struct lease_rig     r;
	struct lease_request own = { .by = ann, .is_assigned = true }, other = { .by = ann, .is_assigned = true };
	struct lease_request assigned = { .by = manager, .is_assigned = true };

	lease_rig_open(&r, 1);
	own.template_uuid = other.template_uuid = assigned.template_uuid = r.by_request;
	own.owner_email = STR("ann@EXAMPLE.com");
	CHECK(try_ask(&r, &own, NULL) == RC_OK);
	CHECK(own.lease.status == LEASE_PENDING_APPROVAL);
	other.owner_email = bob.email;
	CHECK(try_ask(&r, &other, NULL) == RC_DENIED);
	assigned.owner_email = bob.email;
	CHECK(try_ask(&r, &assigned, NULL) == RC_OK);
	CHECK(assigned.lease.status == LEASE_PROVISIONING && str_eq(assigned.lease.created_by, manager.email));
	lease_rig_close(&r);
}

TEST(a_manager_gets_nothing_by_assigning_it_to_himself_or_approving_it_himself)
{
	struct lease_rig     r;
	struct lease_request own = { .by = manager, .is_assigned = true };
	struct err           e = { 0 };
	struct caller        other = manager;

	lease_rig_open(&r, 1);
	own.template_uuid = r.by_request;
	own.owner_email = STR("Max@EXAMPLE.com");
	other.email = STR("other@example.com");
	CHECK(str_eq_nocase(own.owner_email, manager.email));
	CHECK(try_ask(&r, &own, NULL) == RC_OK && own.lease.status == LEASE_PENDING_APPROVAL);
	CHECK(order(&r, lease_approve, own.lease.uuid, &manager, &e) == RC_DENIED);
	CHECK(strstr(e.msg, "allowSelfApproval"));
	CHECK(order(&r, lease_approve, own.lease.uuid, &other, NULL) == RC_OK);
	lease_rig_close(&r);
}

TEST(where_the_policy_allows_it_a_manager_approves_himself_but_not_over_a_rule)
{
	static const struct approval_rule   deny = { .id = STR_INIT("no"), .then = APPROVAL_DENY };
	static const struct approval_policy rules = { &deny, 1 };
	struct lease_rig                    r;
	struct lease_request                own = { .by = manager, .is_assigned = true }, denied = own;
	struct str                          uuid;

	lease_rig_open(&r, 2);
	r.policy.allows_self_approval = true;
	own.template_uuid = denied.template_uuid = r.by_request;
	CHECK(try_ask(&r, &own, NULL) == RC_OK && own.lease.status == LEASE_PROVISIONING);
	uuid = ask(&r, &manager, r.by_request);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_OK);
	denied.approval = &rules;
	CHECK(try_ask(&r, &denied, NULL) == RC_DENIED);
	lease_rig_close(&r);
}

static void make_private(struct lease_rig *r, struct str uuid)
{
	struct template_call c = { .by = manager, .policy = &r->policy, .uuid = uuid };

	rig_run(&r->k, template_get, &c);
	c.fields = c.template;
	c.fields.visibility = TEMPLATE_PRIVATE;
	rig_run(&r->k, template_put, &c);
}

TEST(a_private_template_is_there_for_managers_only)
{
	struct lease_rig     r;
	struct lease_request request = { .by = ann };
	struct template_call look = { .by = ann };

	lease_rig_open(&r, 0);
	request.template_uuid = look.uuid = r.by_request;
	make_private(&r, r.by_request);
	CHECK(try_ask(&r, &request, NULL) == RC_NOT_FOUND);
	CHECK(rig_try(&r.k, template_get, &look, NULL) == RC_NOT_FOUND);
	look.uuid = STR("By request");
	CHECK(rig_try(&r.k, template_get, &look, NULL) == RC_NOT_FOUND);
	request.by = look.by = manager;
	request.owner_email = STR("");
	CHECK(try_ask(&r, &request, NULL) == RC_OK);
	CHECK(rig_try(&r.k, template_get, &look, NULL) == RC_OK && str_eq(look.template.uuid, r.by_request));
	lease_rig_close(&r);
}

static struct str add_named(struct lease_rig *r, struct str name, enum template_visibility visibility)
{
	struct template_call c = { .by = manager, .policy = &r->policy, .uuid = r->by_request };

	rig_run(&r->k, template_get, &c);
	c.fields = c.template;
	c.fields.name = name;
	c.fields.visibility = visibility;
	c.uuid = STR("");
	c.is_new = true;
	r->k.clock.test_ms += SECOND_MS;
	rig_run(&r->k, template_put, &c);
	return c.template.uuid;
}

TEST(a_private_template_does_not_hide_a_public_one_of_its_name)
{
	struct lease_rig     r;
	struct template_call look = { .by = ann, .uuid = STR("Twin") };
	struct str           first = { 0 }, uuid;

	lease_rig_open(&r, 0);
	for (int i = 0; i < 20; i++) {
		uuid = add_named(&r, look.uuid, TEMPLATE_PRIVATE);
		first = i ? first : uuid;
	}
	CHECK(rig_try(&r.k, template_get, &look, NULL) == RC_NOT_FOUND);
	uuid = add_named(&r, look.uuid, TEMPLATE_PUBLIC);
	(void)add_named(&r, look.uuid, TEMPLATE_PUBLIC);
	look.uuid = STR("Twin");
	CHECK(rig_try(&r.k, template_get, &look, NULL) == RC_OK && str_eq(look.template.uuid, uuid));
	look.by = manager;
	look.uuid = STR("Twin");
	CHECK(rig_try(&r.k, template_get, &look, NULL) == RC_OK && str_eq(look.template.uuid, first));
	lease_rig_close(&r);
}

TEST(rules_of_the_operator_decide_instead_of_the_template_but_not_over_an_assignment)
{
	static const struct {
		const char *label;
		const char *rules;
		bool        is_assigned, is_own;
		enum rc     rc;
		int         status;
	} cases[] = {
		{ "approved by rule", "{\"rules\":[{\"id\":\"r\",\"when\":{\"maxBudget\":50},\"then\":\"approve\"}]}",
		  false, true, RC_OK, LEASE_PROVISIONING },
		{ "no rule matches: a person is asked",
		  "{\"rules\":[{\"id\":\"r\",\"when\":{\"maxBudget\":9},\"then\":\"approve\"}]}", false, true, RC_OK,
		  LEASE_PENDING_APPROVAL },
		{ "denied by rule", "{\"rules\":[{\"id\":\"r\",\"when\":{},\"then\":\"deny\"}]}", false, true,
		  RC_DENIED, -1 },
		{ "assigned", "{\"rules\":[{\"id\":\"r\",\"when\":{},\"then\":\"deny\"}]}", true, false, RC_OK,
		  LEASE_PROVISIONING },
		{ "assigned to himself", "{\"rules\":[{\"id\":\"r\",\"when\":{},\"then\":\"deny\"}]}", true, true,
		  RC_DENIED, -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct lease_rig       r;
		struct lease_request   request = { .by = manager, .is_assigned = cases[i].is_assigned };
		struct approval_policy rules;
		struct problems        problems = { 0 };

		CASE(cases[i].label);
		lease_rig_open(&r, 1);
		problems.arena = &r.k.arena;
		CHECK(rules_read(str_from(cases[i].rules), &r.k.arena, &rules, &problems) == RC_OK);
		request.template_uuid = r.by_request;
		request.approval = &rules;
		request.owner_email = cases[i].is_own ? manager.email : bob.email;
		CHECK(try_ask(&r, &request, NULL) == cases[i].rc);
		CHECK(cases[i].rc || (int)request.lease.status == cases[i].status);
		CHECK(live_of(&r, cases[i].is_own ? &manager : &bob) == (cases[i].rc ? 0 : 1));
		lease_rig_close(&r);
	}
}

TEST(a_dry_run_says_what_a_request_would_get_and_asks_for_nothing)
{
	static const char document[] =
	        "{\"rules\":[{\"id\":\"managers\",\"when\":{\"role\":\"Manager\"},\"then\":\"deny\"},"
	        "{\"id\":\"small\",\"when\":{\"maxBudget\":9},\"then\":\"approve\"}]}";
	struct lease_rig       r;
	struct approval_policy rules;
	struct problems        problems = { 0 };
	struct lease_explain   x = { .owner = ann };

	lease_rig_open(&r, 1);
	problems.arena = &r.k.arena;
	CHECK(rules_read(str_from(document), &r.k.arena, &rules, &problems) == RC_OK);
	x.template_name = r.by_request;
	rig_run(&r.k, lease_explain, &x);
	CHECK(x.is_by_template && x.answer.verdict == APPROVAL_ASK && x.answer.note_count == 0);
	x.template_name = r.by_rule;
	rig_run(&r.k, lease_explain, &x);
	CHECK(x.is_by_template && x.answer.verdict == APPROVAL_APPROVE);

	x.approval = &rules;
	rig_run(&r.k, lease_explain, &x);
	CHECK(!x.is_by_template && x.answer.verdict == APPROVAL_ASK && x.answer.rule.n == 0 &&
	      x.answer.note_count == 2);
	CHECK(mentions(x.answer.notes[0].why, "the owner is not Manager"));
	CHECK(mentions(x.answer.notes[1].why, "more than 9"));
	x.max_spend = 5 * USD;
	rig_run(&r.k, lease_explain, &x);
	CHECK(x.answer.verdict == APPROVAL_APPROVE && str_eq(x.answer.rule, STR("small")));
	x.owner = manager;
	rig_run(&r.k, lease_explain, &x);
	CHECK(x.answer.verdict == APPROVAL_DENY && x.answer.note_count == 1);
	x.template_name = STR("no such template");
	CHECK(rig_try(&r.k, lease_explain, &x, NULL) == RC_NOT_FOUND);
	CHECK(live_of(&r, &ann) == 0 && live_of(&r, &manager) == 0 && told(&r, "LeaseRequested", STR("")) == 0);
	lease_rig_close(&r);
}

/* An email may be longer than what an event has room for as its actor. */
TEST(a_long_email_is_the_actor_of_an_event_as_far_as_whole_characters_fit)
{
	struct lease_rig r;
	char             email[EMAIL_MAX + 1];
	struct caller    long_one = { .roles = ROLE_MANAGER };

	memset(email, 'a', EMAIL_MAX);
	memcpy(email + EMAIL_MAX - 12, "@example.com", 13);
	memcpy(email + ACTOR_MAX - 1, "\xc3\xa9", 2);
	long_one.email = str_from(email);
	CHECK(str_eq(actor_of_caller(&long_one).name, str_of(email, ACTOR_MAX - 1)));
	CASE("of a blueprint's event too");
	lease_rig_open(&r, 0);
	rig_run(&r.k, blueprint_create,
	        &(struct blueprint_call){ .by = long_one,
	                                  .fields = { .name = STR("network"),
	                                              .stack_set_id = STR("network-1"),
	                                              .regions = STR("[\"us-east-1\"]") } });
	CHECK(told(&r, "BlueprintCreated", STR("")) == 1);
	lease_rig_close(&r);
}

TEST(somebody_with_a_long_email_can_take_an_account_away_from_its_lease)
{
	static const struct {
		const char       *label;
		txn_fn           *run;
		enum lease_status status;
	} cases[] = {
		{ "eject", account_eject, LEASE_EJECTED },
		{ "quarantine", account_quarantine, LEASE_ACCOUNT_QUARANTINED },
	};
	char email[EMAIL_MAX + 1];

	memset(email, 'a', EMAIL_MAX);
	memcpy(email + EMAIL_MAX - 12, "@example.com", 13);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct lease_rig    r;
		struct account_call away = { .by = { .email = str_from(email), .roles = ROLE_ADMIN },
			                     .reason = STR("why") };
		struct err          e = { 0 };
		struct str          uuid;

		CASE(cases[i].label);
		lease_rig_open(&r, 1);
		uuid = make_active(&r, &ann);
		away.id = lease_of(&r, uuid).account_id;
		if (rig_try(&r.k, cases[i].run, &away, &e))
			print_error("%s\n", e.msg);
		check_ended(&r, uuid, cases[i].status);
		lease_rig_close(&r);
	}
}

TEST(an_unknown_template_is_not_found)
{
	struct lease_rig     r;
	struct lease_request request = { .by = ann, .template_uuid = STR("00000000-0000-0000-0000-000000000000") };

	lease_rig_open(&r, 0);
	CHECK(try_ask(&r, &request, NULL) == RC_NOT_FOUND);
	CHECK(live_of(&r, &ann) == 0);
	lease_rig_close(&r);
}

TEST(a_template_can_be_replaced_and_removed_without_touching_leases)
{
	struct lease_rig     r;
	struct template_call c = { .by = manager };
	struct template_list list = { .limit = 10 };
	struct str           uuid;

	lease_rig_open(&r, 0);
	uuid = ask(&r, &ann, r.by_request);
	c.policy = &r.policy;
	c.uuid = r.by_request;
	rig_run(&r.k, template_get, &c);
	c.fields = c.template;
	c.fields.max_spend = 51 * USD;
	CHECK(rig_try(&r.k, template_put, &c, NULL) == RC_INVALID && c.problems.count == 1);
	CHECK(str_eq(c.problems.items[0].field, STR("maxSpend")));
	c.fields.max_spend = 5 * USD;
	rig_run(&r.k, template_put, &c);
	CHECK(c.template.max_spend == 5 * USD && c.template.version == 2 && c.template.created_ms > 0);
	CHECK(lease_of(&r, uuid).max_spend == 50 * USD);
	rig_run(&r.k, template_list, &list);
	CHECK(list.page.count == 2);
	rig_run(&r.k, template_delete, &c);
	rig_run(&r.k, template_delete, &c);
	CHECK(told(&r, "LeaseTemplateDeleted", STR("")) == 1);
	CHECK(rig_try(&r.k, template_get, &c, NULL) == RC_NOT_FOUND);
	CHECK(rig_try(&r.k, template_put, &c, NULL) == RC_NOT_FOUND);
	lease_rig_close(&r);
}

/* --- the limit per user --- */

TEST(nobody_gets_more_leases_than_allowed_though_every_transaction_runs_twice)
{
	struct lease_rig     r;
	struct lease_request request = { .by = ann };
	struct str           first;
	int                  granted = 0;

	lease_rig_open(&r, 2);
	first = ask(&r, &ann, r.by_request);
	r.faults.next = FAULT_RERUN;
	r.faults.count = 100;
	for (int i = 0; i < 6; i++) {
		enum rc rc;

		request = (struct lease_request){ .by = ann, .template_uuid = i % 2 ? r.by_rule : r.by_request };
		request.owner_email = i % 2 ? STR("ANN@example.com") : ann.email;
		rc = try_ask(&r, &request, NULL);
		CHECK(rc == RC_OK || rc == RC_CONFLICT);
		granted += rc == RC_OK;
	}
	CHECK(granted == 2 && live_of(&r, &ann) == 3 && r.faults.injected > 0);
	ask(&r, &bob, r.by_request);
	CHECK(order(&r, lease_deny, first, &manager, NULL) == RC_OK);
	CHECK(live_of(&r, &ann) == 2);
	ask(&r, &ann, r.by_request);
	CHECK(live_of(&r, &ann) == 3);
	lease_rig_close(&r);
}

static struct lease_rig *hook_rig;

/* Somebody else asks in between. */
static void ask_in_between(void *arg)
{
	struct lease_rig    *r = hook_rig;
	struct lease_request request = { .by = ann, .template_uuid = r->by_request };

	(void)arg;
	r->faults.before_write = NULL;
	CHECK(try_ask(r, &request, NULL) == RC_OK);
}

TEST(a_request_that_comes_in_between_counts)
{
	struct lease_rig     r;
	struct lease_request request = { .by = ann };

	lease_rig_open(&r, 0);
	hook_rig = &r;
	ask(&r, &ann, r.by_request);
	ask(&r, &ann, r.by_request);
	request.template_uuid = r.by_request;
	r.faults.before_write = ask_in_between;
	CHECK(try_ask(&r, &request, NULL) == RC_CONFLICT);
	CHECK(live_of(&r, &ann) == 3);
	lease_rig_close(&r);
}

/* --- review --- */

TEST(an_approval_claims_an_account_and_the_lease_is_active_when_access_works)
{
	struct lease_rig r;
	struct str       uuid;
	struct lease     l;
	struct account   a;

	lease_rig_open(&r, 2);
	uuid = ask(&r, &ann, r.by_request);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_OK);
	l = lease_of(&r, uuid);
	CHECK(l.status == LEASE_PROVISIONING && str_eq(l.account_id, r.accounts[0]) && l.expires_ms == 0);
	CHECK(told(&r, "LeaseApproved", uuid) == 0 && !is_armed(&r, "expiry", uuid));
	r.k.clock.test_ms += 7000;
	(void)rig_turn(&r.k);
	l = lease_of(&r, uuid);
	a = account_of(&r, l.account_id);
	CHECK(l.status == LEASE_ACTIVE && l.start_ms == r.k.clock.test_ms && l.expires_ms == l.start_ms + 48 * HOUR_MS);
	CHECK(a.status == ACCOUNT_ACTIVE && str_eq(a.granted, ann.email) && str_eq(a.lease_uuid, uuid));
	CHECK(str_eq(l.approved_by, manager.email));
	CHECK(told(&r, "LeaseApproved", uuid) == 1 && is_armed(&r, "expiry", uuid) && is_armed(&r, "moment", uuid));
	CHECK(mentions(last_detail(&r, "LeaseApproved", uuid),
	               str_format(&r.k.arena, "\"leaseId\":\"%.*s\"", STR_ARG(uuid)).p));
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_CONFLICT);
	CHECK(order(&r, lease_deny, uuid, &manager, NULL) == RC_CONFLICT);
	lease_rig_close(&r);
}

TEST(the_cleanup_after_a_lease_names_its_owner_and_a_later_one_does_not)
{
	enum { HOURS_MAX = 12 };
	struct account_call again = { .by = manager, .restarts_rest = true };
	struct lease_rig    r;
	struct str          uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	again.id = lease_of(&r, uuid).account_id;
	CHECK(order(&r, lease_terminate, uuid, &manager, NULL) == RC_OK);
	for (int i = 0; i < HOURS_MAX && told(&r, "AccountCleanupSucceeded", STR("")) < 1; i++)
		rig_pass(&r.k, HOUR_MS);
	CHECK(mentions(last_detail(&r, "AccountCleanupSucceeded", STR("")),
	               str_format(&r.k.arena, "\"leaseId\":{\"userEmail\":\"%.*s\",\"uuid\":\"%.*s\"}",
	                          STR_ARG(ann.email), STR_ARG(uuid))
	                       .p));
	again.reason = STR("look at it");
	CHECK(rig_try(&r.k, account_quarantine, &again, NULL) == RC_OK);
	rig_pass(&r.k, HOUR_MS);
	CHECK(rig_try(&r.k, account_retry_cleanup, &again, NULL) == RC_OK);
	for (int i = 0; i < HOURS_MAX && told(&r, "AccountCleanupSucceeded", STR("")) < 2; i++)
		rig_pass(&r.k, HOUR_MS);
	CHECK(told(&r, "AccountCleanupSucceeded", STR("")) == 2);
	CHECK(!strstr(last_detail(&r, "AccountCleanupSucceeded", STR("")).p, "leaseId"));
	lease_rig_close(&r);
}

TEST(a_denied_request_is_kept_for_its_time_and_no_longer_counts)
{
	struct lease_rig r;
	struct str       uuid;
	struct lease     l;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_request);
	CHECK(order(&r, lease_deny, uuid, &manager, NULL) == RC_OK);
	l = lease_of(&r, uuid);
	CHECK(l.status == LEASE_APPROVAL_DENIED && l.ttl_sec == r.k.clock.test_ms / 1000 + 30 * 86400);
	CHECK(str_eq(l.decided_by, manager.email) && str_eq(l.decision_reason, STR("because")) &&
	      live_of(&r, &ann) == 0);
	CHECK(mentions(last_detail(&r, "LeaseDenied", uuid),
	               "\"deniedBy\":\"max@example.com\",\"reason\":\"because\""));
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_CONFLICT);
	lease_rig_close(&r);
}

TEST(the_owner_withdraws_his_request_and_nobody_else)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_request);
	CHECK(order(&r, lease_withdraw, uuid, &bob, NULL) == RC_DENIED);
	CHECK(order(&r, lease_withdraw, uuid, &ann, NULL) == RC_OK);
	CHECK(status_of(&r, uuid) == LEASE_APPROVAL_DENIED && live_of(&r, &ann) == 0);
	CHECK(told(&r, "LeaseWithdrawn", uuid) == 1 && told(&r, "LeaseDenied", uuid) == 0);
	CHECK(order(&r, lease_withdraw, uuid, &ann, NULL) == RC_CONFLICT);
	lease_rig_close(&r);
}

TEST(a_lease_is_found_under_its_owner_in_any_case_and_under_nobody_else)
{
	struct lease_rig  r;
	struct lease_call c = { .by = ann };

	lease_rig_open(&r, 1);
	c.uuid = ask(&r, &ann, r.by_request);
	c.owner_email = STR("aNN@example.com");
	CHECK(rig_try(&r.k, lease_get, &c, NULL) == RC_OK && c.position == 0);
	c.owner_email = bob.email;
	CHECK(rig_try(&r.k, lease_get, &c, NULL) == RC_NOT_FOUND);
	c.uuid = STR("nonsense");
	CHECK(rig_try(&r.k, lease_get, &c, NULL) == RC_NOT_FOUND);
	lease_rig_close(&r);
}

TEST(a_list_has_the_newest_first_and_only_what_was_asked_for)
{
	struct lease_rig  r;
	struct lease_list all = { .limit = 10 }, pending = all, own = all, denied = all;
	struct str        first, last;

	lease_rig_open(&r, 1);
	first = ask(&r, &ann, r.by_request);
	r.k.clock.test_ms += 1000;
	ask(&r, &bob, r.by_request);
	r.k.clock.test_ms += 1000;
	last = ask(&r, &ann, r.by_request);
	CHECK(order(&r, lease_deny, first, &manager, NULL) == RC_OK);
	rig_run(&r.k, lease_list, &all);
	CHECK(all.page.count == 3 && str_eq(((struct lease *)page_record(&all.page, &lease_type, 0))->uuid, last));
	pending.has_status = own.has_status = true;
	pending.status = own.status = LEASE_PENDING_APPROVAL;
	rig_run(&r.k, lease_list, &pending);
	CHECK(pending.page.count == 2);
	own.owner_email = STR("ann@example.com");
	rig_run(&r.k, lease_list, &own);
	CHECK(own.page.count == 1 && str_eq(((struct lease *)page_record(&own.page, &lease_type, 0))->uuid, last));
	denied.owner_email = STR("ANN@example.com");
	rig_run(&r.k, lease_list, &denied);
	CHECK(denied.page.count == 2);
	lease_rig_close(&r);
}

/* --- freeze, unfreeze, end --- */

TEST(freezing_takes_access_away_and_unfreezing_gives_it_back)
{
	struct lease_rig r;
	struct str       uuid, id;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	id = lease_of(&r, uuid).account_id;
	CHECK(order(&r, lease_unfreeze, uuid, &manager, NULL) == RC_CONFLICT);
	CHECK(order(&r, lease_freeze, uuid, &manager, NULL) == RC_OK);
	CHECK(status_of(&r, uuid) == LEASE_FROZEN && account_of(&r, id).status == ACCOUNT_FROZEN);
	CHECK(mentions(last_detail(&r, "LeaseFrozen", uuid),
	               "\"reason\":{\"type\":\"ManuallyFrozen\",\"comment\":\"because\"}"));
	CHECK(order(&r, lease_freeze, uuid, &manager, NULL) == RC_CONFLICT);
	(void)rig_turn(&r.k);
	CHECK(account_of(&r, id).granted.n == 0 && is_armed(&r, "expiry", uuid));
	CHECK(order(&r, lease_unfreeze, uuid, &manager, NULL) == RC_OK);
	(void)rig_turn(&r.k);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE && str_eq(account_of(&r, id).granted, ann.email));
	CHECK(lease_of(&r, uuid).freeze_reason.n == 0);
	CHECK(mentions(last_detail(&r, "LeaseUnfrozen", uuid),
	               "\"maxBudget\":50,\"leaseDurationInHours\":48,\"reason\":\"because\""));
	lease_rig_close(&r);
}

TEST(a_terminated_lease_gives_its_account_back_and_it_is_cleaned_and_lent_again)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	CHECK(order(&r, lease_terminate, uuid, &manager, NULL) == RC_OK);
	check_ended(&r, uuid, LEASE_MANUALLY_TERMINATED);
	CHECK(mentions(last_detail(&r, "LeaseTerminated", uuid),
	               "\"reason\":{\"type\":\"ManuallyTerminated\",\"comment\":\"because\"}"));
	CHECK(mentions(last_detail(&r, "LeaseTerminated", uuid), "\"terminatedBy\":\"max@example.com\""));
	CHECK(order(&r, lease_terminate, uuid, &manager, NULL) == RC_CONFLICT);
	rig_pass(&r.k, HOUR_MS);
	CHECK(told(&r, "CleanAccountRequest", STR("")) == 1 && free_accounts(&r) == 1);
	(void)make_active(&r, &bob);
	lease_rig_close(&r);
}

TEST(a_lease_can_be_ended_while_it_is_being_provisioned_and_never_becomes_active)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_request);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_OK);
	CHECK(order(&r, lease_terminate, uuid, &ann, NULL) == RC_OK);
	check_ended(&r, uuid, LEASE_MANUALLY_TERMINATED);
	rig_pass(&r.k, HOUR_MS);
	check_ended(&r, uuid, LEASE_MANUALLY_TERMINATED);
	CHECK(told(&r, "LeaseApproved", uuid) == 0 && free_accounts(&r) == 1);
	CHECK(account_of(&r, r.accounts[0]).granted.n == 0);
	lease_rig_close(&r);
}

TEST(a_lease_that_is_frozen_and_then_ended_is_cleaned_once)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	CHECK(order(&r, lease_freeze, uuid, &manager, NULL) == RC_OK);
	CHECK(order(&r, lease_terminate, uuid, &manager, NULL) == RC_OK);
	rig_pass(&r.k, HOUR_MS);
	check_ended(&r, uuid, LEASE_MANUALLY_TERMINATED);
	CHECK(told(&r, "CleanAccountRequest", STR("")) == 1 && free_accounts(&r) == 1);
	lease_rig_close(&r);
}

/* Its cost is over the budget: as the monitor ends it. arg is its uuid. */
static enum rc exceed(struct session *s, void *arg, struct err *e)
{
	struct actor        by = { .name = STR("test") };
	struct lease_ending end = { .event = LEASE_ON_EXCEED,
		                    .reason_json = STR("{\"type\":\"BudgetExceeded\"}"),
		                    .clean_reason = STR(CLEAN_AFTER_LEASE),
		                    .by = &by };
	struct lease        l;
	enum rc             rc = lease_load(s, *(struct str *)arg, &l, e);

	return rc ? rc : lease_finish(s, &l, &end, e);
}

TEST(a_pending_lease_cannot_be_frozen_or_ended)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_request);
	CHECK(order(&r, lease_freeze, uuid, &manager, NULL) == RC_CONFLICT);
	CHECK(order(&r, lease_terminate, uuid, &manager, NULL) == RC_CONFLICT);
	CHECK(rig_try(&r.k, exceed, &uuid, NULL) == RC_CONFLICT);
	CHECK(live_of(&r, &ann) == 1);
	lease_rig_close(&r);
}

TEST(the_system_ends_a_lease_once)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	rig_run(&r.k, exceed, &uuid);
	check_ended(&r, uuid, LEASE_BUDGET_EXCEEDED);
	CHECK(rig_try(&r.k, exceed, &uuid, NULL) == RC_CONFLICT);
	CHECK(account_of(&r, r.accounts[0]).status == ACCOUNT_CLEANUP);
	lease_rig_close(&r);
}

TEST(a_quarantined_account_ends_its_lease_without_a_cleanup)
{
	struct lease_rig    r;
	struct account_call c = { .by = manager, .reason = STR("odd traffic") };
	struct str          uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	c.id = r.accounts[0];
	rig_run(&r.k, account_quarantine, &c);
	check_ended(&r, uuid, LEASE_ACCOUNT_QUARANTINED);
	CHECK(mentions(last_detail(&r, "LeaseTerminated", uuid),
	               "{\"type\":\"AccountQuarantined\",\"comment\":\"odd traffic\"}"));
	rig_pass(&r.k, HOUR_MS);
	CHECK(told(&r, "CleanAccountRequest", STR("")) == 0 && account_of(&r, c.id).status == ACCOUNT_QUARANTINE);
	lease_rig_close(&r);
}

TEST(an_ejected_account_ends_its_lease)
{
	struct lease_rig    r;
	struct account_call c = { .by = manager };
	struct str          uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	c.id = r.accounts[0];
	rig_run(&r.k, account_eject, &c);
	check_ended(&r, uuid, LEASE_EJECTED);
	CHECK(mentions(last_detail(&r, "LeaseTerminated", uuid), "\"type\":\"Ejected\""));
	lease_rig_close(&r);
}

/* --- change --- */

TEST(a_change_must_keep_the_limits_and_says_every_problem)
{
	struct lease_rig  r;
	struct str        uuid;
	struct lease_edit more = {
		.sets_max_spend = true, .max_spend = 60 * USD, .sets_group = true, .cost_group = STR("none")
	};
	struct lease_edit less = { .sets_max_spend = true, .max_spend = 20 * USD };
	struct lease_edit nothing = { 0 };

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_request);
	CHECK(edit(&r, uuid, &less) == RC_INVALID);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_OK);
	CHECK(edit(&r, uuid, &nothing) == RC_OK);
	(void)rig_turn(&r.k);
	CHECK(edit(&r, uuid, &more) == RC_INVALID && more.problems.count == 2);
	CHECK(lease_of(&r, uuid).max_spend == 50 * USD);
	CHECK(edit(&r, uuid, &less) == RC_OK);
	CHECK(lease_of(&r, uuid).max_spend == 20 * USD && told(&r, "LeaseEdited", uuid) == 2);
	CHECK(mentions(last_detail(&r, "LeaseEdited", uuid), "\"maxSpend\":20,"));
	lease_rig_close(&r);
}

TEST(an_end_that_is_moved_moves_its_timers)
{
	struct lease_rig  r;
	struct str        uuid;
	struct lease_edit later = { .sets_expiry = true };

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	later.expires_ms = lease_of(&r, uuid).start_ms + 100 * HOUR_MS;
	CHECK(edit(&r, uuid, &later) == RC_OK);
	rig_pass(&r.k, 50 * HOUR_MS);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE && told(&r, "LeaseDurationThresholdAlert", uuid) == 0);
	rig_pass(&r.k, 46 * HOUR_MS);
	CHECK(told(&r, "LeaseDurationThresholdAlert", uuid) == 1);
	rig_pass(&r.k, 5 * HOUR_MS);
	check_ended(&r, uuid, LEASE_EXPIRED);
	lease_rig_close(&r);
}

TEST(an_end_in_the_past_ends_the_lease_at_once)
{
	struct lease_rig  r;
	struct str        uuid;
	struct lease_edit past = { .sets_expiry = true };

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	rig_pass(&r.k, HOUR_MS);
	past.expires_ms = r.k.clock.test_ms - MINUTE_MS;
	CHECK(edit(&r, uuid, &past) == RC_OK);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE);
	(void)rig_turn(&r.k);
	check_ended(&r, uuid, LEASE_EXPIRED);
	lease_rig_close(&r);
}

TEST(a_lease_whose_end_was_taken_away_has_no_timer)
{
	struct lease_rig  r;
	struct str        uuid;
	struct lease_edit never = { .sets_expiry = true };

	lease_rig_open(&r, 1);
	r.policy.requires_duration = false;
	uuid = make_active(&r, &ann);
	CHECK(edit(&r, uuid, &never) == RC_OK);
	CHECK(!is_armed(&r, "expiry", uuid) && !is_armed(&r, "moment", uuid));
	rig_pass(&r.k, 1000 * HOUR_MS);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE);
	lease_rig_close(&r);
}

TEST(a_lease_that_has_an_end_but_no_duration_expires_like_others)
{
	struct lease_rig  r;
	struct str        uuid;
	struct lease_edit soon = { .sets_expiry = true };

	lease_rig_open(&r, 1);
	r.policy.requires_duration = false;
	uuid = ask(&r, &ann, r.by_request);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_OK);
	CHECK(edit(&r, uuid, &soon) == RC_OK); /* while it is provisioned: it gets no end */
	(void)rig_turn(&r.k);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE && lease_of(&r, uuid).expires_ms == 0);
	soon.expires_ms = r.k.clock.test_ms + 6 * HOUR_MS;
	CHECK(edit(&r, uuid, &soon) == RC_OK);
	rig_pass(&r.k, 7 * HOUR_MS);
	check_ended(&r, uuid, LEASE_EXPIRED);
	CHECK(mentions(last_detail(&r, "LeaseTerminated", uuid), "{\"type\":\"Expired\",\"leaseDurationInHours\":6}"));
	CHECK(told(&r, "CleanAccountRequest", STR("")) == 1);
	lease_rig_close(&r);
}

/* --- when things go wrong --- */

TEST(a_crash_after_an_approval_loses_nothing)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 2);
	uuid = ask(&r, &ann, r.by_request);
	r.faults.next = FAULT_AFTER; /* written, but who asked never hears of it */
	r.faults.count = 1;
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_UNAVAILABLE);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_CONFLICT);
	(void)rig_turn(&r.k);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE && free_accounts(&r) == 1 && told(&r, "LeaseApproved", uuid) == 1);
	lease_rig_close(&r);
}

TEST(an_approval_that_the_store_refuses_has_done_nothing)
{
	struct lease_rig r;
	struct str       uuid;
	int              before;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_request);
	before = events_of_all(&r);
	r.faults.next = FAULT_BEFORE;
	r.faults.count = 1;
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_UNAVAILABLE);
	CHECK(status_of(&r, uuid) == LEASE_PENDING_APPROVAL && free_accounts(&r) == 1 && events_of_all(&r) == before);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_OK);
	lease_rig_close(&r);
}

static void set_outage(struct lease_rig *r, enum world_call call, int64_t count)
{
	struct world_rules rules = {
		.count = 1, .rules = { { .fault = WORLD_OUTAGE, .call = call, .per_mille = 1000, .count = count } }
	};

	sim_cloud_world(r->sim)->ops->set_rules(sim_cloud_world(r->sim), &rules);
}

TEST(an_outage_while_publishing_only_delays_it)
{
	struct lease_rig r;
	struct str       uuid;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_request);
	set_outage(&r, WORLD_GRANT, 2);
	CHECK(order(&r, lease_approve, uuid, &manager, NULL) == RC_OK);
	(void)rig_turn(&r.k);
	CHECK(status_of(&r, uuid) == LEASE_PROVISIONING && told(&r, "LeaseApproved", uuid) == 0);
	rig_pass(&r.k, 10 * MINUTE_MS);
	CHECK(status_of(&r, uuid) == LEASE_ACTIVE && told(&r, "LeaseApproved", uuid) == 1);
	lease_rig_close(&r);
}

TEST(a_provisioning_that_fails_for_good_is_asked_again_when_a_person_had_approved_it)
{
	struct lease_rig r;
	struct str       by_person, by_rule;

	lease_rig_open(&r, 2);
	by_person = ask(&r, &ann, r.by_request);
	set_outage(&r, WORLD_GRANT, 0);
	CHECK(order(&r, lease_approve, by_person, &manager, NULL) == RC_OK);
	by_rule = ask(&r, &bob, r.by_rule);
	rig_pass(&r.k, 48 * HOUR_MS);
	CHECK(status_of(&r, by_person) == LEASE_PENDING_APPROVAL && lease_of(&r, by_person).account_id.n == 0);
	CHECK(told(&r, "LeaseProvisioningFailed", by_person) == 1 && told(&r, "LeaseTerminated", by_person) == 0);
	CHECK(live_of(&r, &ann) == 1);
	for (int i = 0; i < 2; i++)
		CHECK(account_of(&r, r.accounts[i]).status == ACCOUNT_QUARANTINE);
	CHECK(status_of(&r, by_rule) == LEASE_PROVISIONING_FAILED && told(&r, "LeaseTerminated", by_rule) == 1);
	CHECK(told(&r, "LeaseProvisioningFailed", by_rule) == 1 && live_of(&r, &bob) == 0);
	CHECK(mentions(last_detail(&r, "LeaseTerminated", by_rule), "\"type\":\"ProvisioningFailed\""));
	lease_rig_close(&r);
}
