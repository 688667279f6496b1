/* SPDX-License-Identifier: Apache-2.0 */
/* test_explain_lease.c - leases in words: why one waits, who approved it, what it has spent, why it is frozen or over;
 * and how much of that a user is told. */
#include "test.h"

#include <stdlib.h>

#include "explained.h"
#include "lease_rig.h"

static json_t *lease_explained(struct lease_rig *r, struct str uuid)
{
	return explained(r->k.store, &r->k.arena, "lease", uuid);
}

/* As this person is told. */
static json_t *told_to(struct lease_rig *r, struct str uuid, const struct caller *by)
{
	struct explain x = { .kind = STR("lease"), .id = uuid, .by = by, .owner_email = lease_of(r, uuid).user_email };
	json_t        *answer = NULL;

	CHECK(try_explain(r->k.store, &r->k.arena, &x, NULL) == RC_OK && json_parse(x.json, &answer, NULL) == RC_OK);
	return answer;
}

TEST(a_request_says_who_must_decide_and_how)
{
	struct lease_rig            r;
	CLEANUP(json_freep) json_t *answer = NULL;
	CLEANUP(json_freep) json_t *owners = NULL;
	CLEANUP(json_freep) json_t *managers = NULL;
	struct str                  uuid;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_request);
	answer = lease_explained(&r, uuid);
	CHECK(says(answer, "where", "PendingApproval") &&
	      says(answer, "summary", "is waiting for a manager's approval"));
	CHECK(lists(answer, "why", NULL, "from the template By request"));
	CHECK(lists(answer, "can", "command", "leasehold lease approve ") &&
	      lists(answer, "can", "command", "lease withdraw"));
	CHECK(count_of(answer, "can", "path", "/api/leases/eyJ") == 3);
	owners = told_to(&r, uuid, &ann);
	CHECK(lists(owners, "can", "command", "lease withdraw") &&
	      json_array_size(json_object_get(owners, "can")) == 1);
	managers = told_to(&r, uuid, &manager);
	CHECK(lists(managers, "can", "command", "lease deny") && count_of(managers, "can", "command", "withdraw") == 0);
	lease_rig_close(&r);
}

TEST(a_lease_in_line_says_its_place_and_when_its_turn_may_come)
{
	struct lease_rig            r;
	CLEANUP(json_freep) json_t *answer = NULL;
	struct str                  second, third;

	lease_rig_open(&r, 1);
	(void)make_active(&r, &ann);
	second = ask(&r, &bob, r.by_rule);
	third = ask(&r, &bob, r.by_request);
	CHECK(order(&r, lease_approve, third, &manager, NULL) == RC_OK);
	CHECK(lease_of(&r, second).queued_ms && lease_of(&r, third).queued_ms);
	answer = lease_explained(&r, third);
	CHECK(says(answer, "where", "Provisioning") &&
	      says(answer, "summary", "is approved and waiting in line for an account, at position 2"));
	CHECK(lists(answer, "why", NULL, "No account was free when max@example.com approved it."));
	CHECK(lists(answer, "next", "what", "an account becomes free for it") &&
	      lists(answer, "can", "command", "lease terminate"));
	CHECK(count_of(answer, "can", "command", "lease approve") == 0); /* it is */
	CHECK(count_of(answer, "can", "command", "lease deny") == 0 &&
	      order(&r, lease_deny, third, &manager, NULL) == RC_CONFLICT);
	CHECK(lists(answer, "events", "text", "so it waits in line"));
	lease_rig_close(&r);
}

TEST(an_active_lease_says_what_was_spent_of_what_up_to_when)
{
	struct lease_rig            r;
	CLEANUP(json_freep) json_t *answer = NULL;
	CLEANUP(json_freep) json_t *short_one = NULL;
	struct str                  uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	r.cost = 9 * USD + 500000;
	(void)run_pass(&r, pass_watch_leases, "watched");
	answer = lease_explained(&r, uuid);
	CHECK(says(answer, "summary", "Ann@example.com uses account ") &&
	      says(answer, "summary", " until 2023-11-16 22:13 UTC"));
	CHECK(lists(answer, "why", NULL,
	            "Spent: 9.50 USD of 50.00 USD; costs are complete up to 2023-11-14 22:13 UTC"));
	CHECK(lists(answer, "why", NULL, "max@example.com approved it: because."));
	CHECK(lists(answer, "next", "by", "timer lease-expiry/") && lists(answer, "next", "by", "timer lease-moment/"));
	CHECK(lists(answer, "can", "command", "lease terminate") && lists(answer, "can", "command", "lease freeze"));
	short_one = lease_explained(&r, str_of(uuid.p, 8));
	CHECK(json_equal(answer, short_one));
	lease_rig_close(&r);
}

TEST(a_lease_that_its_budget_froze_says_so_with_the_figures)
{
	struct lease_rig            r;
	CLEANUP(json_freep) json_t *answer = NULL;
	struct str                  uuid;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	r.cost = 41 * USD;
	CHECK(run_pass(&r, pass_watch_leases, "acted") == 1);
	answer = lease_explained(&r, uuid);
	CHECK(says(answer, "where", "Frozen") &&
	      says(answer, "summary", "is frozen because 41 USD were spent of 50 USD; the threshold is 40 USD"));
	CHECK(lists(answer, "events", "text", "frozen (BudgetExceeded): 41 USD spent, the threshold is 40 USD"));
	CHECK(lists(answer, "can", "command", "lease unfreeze") &&
	      count_of(answer, "can", "command", "lease freeze") == 0);
	lease_rig_close(&r);
}

TEST(a_lease_being_made_ready_tells_the_operator_of_the_saga_and_its_owner_does_not_hear_of_it)
{
	struct lease_rig            r;
	CLEANUP(json_freep) json_t *operators = NULL;
	CLEANUP(json_freep) json_t *owners = NULL;
	struct str                  uuid;
	char                       *text;

	lease_rig_open(&r, 1);
	uuid = ask(&r, &ann, r.by_rule);
	CHECK(status_of(&r, uuid) == LEASE_PROVISIONING);
	operators = lease_explained(&r, uuid);
	CHECK(says(operators, "summary", "is being set up: account ") &&
	      lists(operators, "why", NULL, "is under way: step 1 of "));
	CHECK(lists(operators, "why", NULL, "Nobody had to approve it."));
	owners = told_to(&r, uuid, &ann);
	text = json_dumps(owners, 0);
	CHECK(text && !strstr(text, "account-follow") && strstr(text, "is being set up"));
	free(text);
	lease_rig_close(&r);
}

TEST(a_lease_that_is_over_says_who_ended_it_and_where_its_account_is)
{
	struct lease_rig            r;
	CLEANUP(json_freep) json_t *answer = NULL;
	CLEANUP(json_freep) json_t *denied = NULL;
	struct str                  uuid, other;

	lease_rig_open(&r, 1);
	uuid = make_active(&r, &ann);
	other = ask(&r, &bob, r.by_request);
	CHECK(order(&r, lease_terminate, uuid, &manager, NULL) == RC_OK);
	CHECK(order(&r, lease_deny, other, &manager, NULL) == RC_OK);
	answer = lease_explained(&r, uuid);
	CHECK(says(answer, "where", "ManuallyTerminated") && says(answer, "summary", "has ended (ManuallyTerminated)"));
	CHECK(lists(answer, "why", NULL, "max@example.com ended it at ") &&
	      lists(answer, "why", NULL, " is CleanUp now; see: leasehold explain account"));
	CHECK(lists(answer, "next", "what", "its record is removed") &&
	      lists(answer, "can", "command", "report statement"));
	denied = lease_explained(&r, other);
	CHECK(says(denied, "summary", "was denied by max@example.com: because"));
	lease_rig_close(&r);
}

TEST(a_lease_of_somebody_else_and_one_that_is_not_there_are_not_found)
{
	struct lease_rig r;
	struct explain   x = { .kind = STR("lease") };

	lease_rig_open(&r, 1);
	x.id = ask(&r, &ann, r.by_request);
	x.owner_email = bob.email;
	x.by = &bob;
	CHECK(try_explain(r.k.store, &r.k.arena, &x, NULL) == RC_NOT_FOUND);
	x = (struct explain){ .kind = STR("lease"), .id = STR("00000000-0000-0000-0000-000000000000") };
	CHECK(try_explain(r.k.store, &r.k.arena, &x, NULL) == RC_NOT_FOUND);
	lease_rig_close(&r);
}

TEST(a_beginning_that_two_leases_have_is_refused)
{
	struct lease_rig r;
	struct explain   x = { .kind = STR("lease") };

	lease_rig_open(&r, 1);
	x.id = str_of(ask(&r, &ann, r.by_request).p, 8);
	(void)ask(&r, &bob, r.by_request);
	CHECK(try_explain(r.k.store, &r.k.arena, &x, NULL) == RC_INVALID);
	lease_rig_close(&r);
}
