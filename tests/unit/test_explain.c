/* SPDX-License-Identifier: Apache-2.0 */
/* test_explain.c - accounts and sandboxes in words, in each situation that somebody would ask about; and whether what
 * is offered exists. */
#include "test.h"

#include <stdlib.h>

#include "account_rig.h"
#include "cli/term/commands.h"
#include "explained.h"
#include "http/api/rights.h"
#include "kernel/timer.h"
#include "pool.h"
#include "service/reconcile/reconcile.h"
#include "service/explain/explain_private.h"
#include "service/hold/holds.h"
#include "service/instance/instance_records.h"
#include "service/record/lease_records.h"

static void open_rig(struct account_rig *r)
{
	account_rig_open(r);
	hold_rules_defaults(&r->rules);
}

static json_t *account_explained(struct account_rig *r, struct str id)
{
	return explained(r->rig.store, &r->rig.arena, "account", id);
}

/* Lent, taken back and cleaned: it rests. The lease's uuid. */
static struct str rest(struct account_rig *r, struct str id)
{
	struct lease lease = lend(r, ANN);

	rig_pass(&r->rig, HOUR_MS);
	take_back(r, lease.uuid);
	for (int i = 0; i < 240 && get_account(r, id).status != ACCOUNT_COOLDOWN; i++)
		rig_pass(&r->rig, MINUTE_MS);
	rig_pass(&r->rig, MINUTE_MS);
	CHECK(get_account(r, id).status == ACCOUNT_COOLDOWN);
	return lease.uuid;
}

static const char *iso(struct account_rig *r, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	return str_dup(&r->rig.arena, iso_time(ms / 1000, text)).p;
}

/* --- accounts --- */

TEST(a_resting_account_says_until_when_and_for_which_lease)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *answer = NULL;
	struct account              a;
	struct str                  id, lease;

	open_rig(&r);
	id = add_free_account(&r, 0);
	lease = rest(&r, id);
	a = get_account(&r, id);
	answer = account_explained(&r, id);
	CHECK(says(answer, "where", "Cooldown") && says(answer, "since", iso(&r, a.cleaned_ms)));
	CHECK(says(answer, "summary", "is in cooldown until 2023-11-"));
	CHECK(says(answer, "summary",
	           str_format(&r.rig.arena, "the costs of lease %.*s are complete", STR_ARG(lease)).p));
	CHECK(says(answer, "summary", "then it can be lent again"));
	CHECK(lists(answer, "holds", "state", "open") && lists(answer, "holds", "due", iso(&r, a.rest_until_ms)));
	CHECK(lists(answer, "holds", "state", "exempt")); /* of its registration */
	CHECK(lists(answer, "next", "at", iso(&r, a.rest_until_ms)) && lists(answer, "next", "by", "isb-billing-sep-"));
	CHECK(lists(answer, "can", "command", "leasehold hold release ") && lists(answer, "can", "path", "/release"));
	CHECK(lists(answer, "why", NULL, "Its last lease was") &&
	      json_array_size(json_object_get(answer, "problems")) == 0);
	CHECK(lists(answer, "events", "text", "held: billing, until 2023-11-"));
	CHECK(count_of(answer, "events", "type", "CleanupDue") == 0);
	account_rig_close(&r);
}

TEST(a_hold_from_before_the_cleanup_does_not_make_the_cooldown_longer)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *answer = NULL;
	struct hold_call            c = { .by.email = STR("ops"), .reason = STR("legal asks") };
	struct lease                lease;
	struct account              a;

	open_rig(&r);
	c.account = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	rig_pass(&r.rig, HOUR_MS);
	rig_run(&r.rig, hold_add, &c);
	rig_pass(&r.rig, 40 * HOUR_MS);
	take_back(&r, lease.uuid);
	rig_pass(&r.rig, 2 * HOUR_MS);
	a = get_account(&r, c.account);
	CHECK(a.status == ACCOUNT_COOLDOWN && a.cleaned_ms > c.hold.created_ms + 39 * HOUR_MS);
	answer = account_explained(&r, a.id);
	CHECK(says(answer, "since", iso(&r, a.cleaned_ms)));
	account_rig_close(&r);
}

struct held {
	const char      *account;
	enum hold_reason reason;
	int64_t          due_ms;
};

static enum rc hold_it(struct session *s, void *arg, struct err *e)
{
	const struct held *want = arg;
	struct hold        h = { .account = str_from(want->account),
		                 .reason = want->reason,
		                 .due_ms = want->due_ms,
		                 .locks = !want->due_ms && want->reason != HOLD_MANUAL,
		                 .created_by = STR("somebody") };

	return hold_make(s, &h, HOLD_OPEN, e);
}

TEST(an_account_of_another_system_says_until_when_it_is_held_and_for_what)
{
	static const struct {
		enum hold_reason reason;
		bool             is_timed;
		const char      *summary;
	} rows[] = {
		{ HOLD_BILLING, true, "of another system is held until 2023-11-1" },
		{ HOLD_BILLING, true, "so that its costs are complete." },
		{ HOLD_METADATA, true, "so that what its last user left in histories and logs has expired." },
		{ HOLD_QUOTA, true, "so that the quotas that were used up have recovered." },
		{ HOLD_MANUAL, false, "is held until someone releases it, because somebody asked for it." },
		{ HOLD_DRIFT, false, "until it is cleaned or leaves the pool, because it was not where it should be." },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(json_freep) json_t *answer = NULL;
		struct account_rig          r = { 0 };
		struct held                 held = { "999999999999", rows[i].reason, 0 };

		CASE(rows[i].summary);
		open_rig(&r);
		held.due_ms = rows[i].is_timed ? r.rig.clock.test_ms + HOUR_MS : 0;
		rig_run(&r.rig, hold_it, &held);
		answer = account_explained(&r, str_from(held.account));
		CHECK(says(answer, "where", "held") && says(answer, "summary", rows[i].summary));
		CHECK(count_of(answer, "can", "command", "hold release") == (rows[i].reason != HOLD_DRIFT));
		CHECK(count_of(answer, "next", "by", "isb-billing-sep-") == rows[i].is_timed);
		account_rig_close(&r);
	}
}

static enum rc give_end(struct session *s, void *arg, struct err *e)
{
	struct lease *want = arg, l;
	enum rc       rc = session_get(s, &lease_type, want->uuid, &l, e);

	l.expires_ms = want->expires_ms;
	if (!rc)
		session_put(s, &lease_type, &l);
	return rc;
}

TEST(an_account_that_is_lent_says_to_whom_and_until_when)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *answer = NULL;
	struct lease                lease;
	struct str                  id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	rig_pass(&r.rig, HOUR_MS);
	lease.expires_ms = r.rig.clock.test_ms + HOUR_MS;
	rig_run(&r.rig, give_end, &lease);
	answer = account_explained(&r, id);
	CHECK(says(answer, "where", "Active") && says(answer, "summary", "is lent to Ann@example.com by lease "));
	CHECK(says(answer, "summary", " until 2023-11-"));
	CHECK(lists(answer, "next", "at", iso(&r, lease.expires_ms)));
	CHECK(lists(answer, "can", "command", "account quarantine") &&
	      lists(answer, "can", "command", "account eject"));
	account_rig_close(&r);
}

TEST(an_account_that_was_handed_over_says_so)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *answer = NULL;
	struct hold_call            c = { .by.email = STR("ops"), .reason = STR("the other one does it now") };
	struct hold_list            l = { .limit = 1 };
	struct account_call         clean = { .by.email = STR("ops") };

	open_rig(&r);
	clean.id = l.account = add_free_account(&r, 0);
	(void)rest(&r, l.account);
	rig_run(&r.rig, hold_list, &l);
	c.id = str_dup(&r.rig.arena, ((struct hold *)page_record(&l.page, &hold_type, 0))->id);
	rig_run(&r.rig, hold_hand_over, &c);
	answer = account_explained(&r, l.account);
	CHECK(says(answer, "summary", "was handed over to another system at 2023-11-"));
	CHECK(json_array_size(json_object_get(answer, "problems")) == 0);
	CHECK(rig_try(&r.rig, account_retry_cleanup, &clean, &r.err) == RC_CONFLICT);
	CHECK(count_of(answer, "can", "command", "account retry-cleanup") == 0);
	account_rig_close(&r);
}

TEST(an_account_that_is_being_emptied_is_not_offered_to_be_emptied_again)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *answer = NULL;
	struct account_call         c = { .by.email = STR("ops") };
	struct lease                lease;

	open_rig(&r);
	c.id = add_free_account(&r, 0);
	lease = lend(&r, ANN);
	rig_pass(&r.rig, HOUR_MS);
	take_back(&r, lease.uuid);
	for (int i = 0; i < 100 && !get_account(&r, c.id).clean_run.n; i++)
		rig_pass(&r.rig, 1000);
	answer = account_explained(&r, c.id);
	CHECK(says(answer, "summary", "is being emptied"));
	CHECK(rig_try(&r.rig, account_retry_cleanup, &c, &r.err) == RC_CONFLICT);
	CHECK(count_of(answer, "can", "command", "account retry-cleanup") == 0);
	account_rig_close(&r);
}

struct disarm {
	struct hold_list list;
};

/* And the reconciler is scheduled. */
static enum rc lose_timer(struct session *s, void *arg, struct err *e)
{
	struct disarm *d = arg;
	struct timer   job = { .name = STR("job/reconcile"),
		               .due_ms = session_now(s).ms + 900 * HOUR_MS,
		               .type = STR("JobDue"),
		               .subject = STR("job/reconcile"),
		               .detail = STR("{}") };
	struct str     name;
	enum rc        rc = hold_list(s, &d->list, e);

	if (rc)
		return rc;
	name = hold_schedule_name(page_record(&d->list.page, &hold_type, 0), session_arena(s));
	return (rc = session_arm(s, &job, e)) ? rc : session_disarm(s, name, e);
}

TEST(a_hold_that_nothing_will_end_is_a_problem_before_and_after_its_time)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *before = NULL;
	CLEANUP(json_freep) json_t *after = NULL;
	struct disarm               d = { .list.limit = 1 };
	struct str                  id;

	open_rig(&r);
	id = d.list.account = add_free_account(&r, 0);
	(void)rest(&r, id);
	rig_run(&r.rig, lose_timer, &d);
	before = account_explained(&r, id);
	CHECK(lists(before, "problems", NULL, "has no timer: nothing will end it at 2023-11-"));
	CHECK(count_of(before, "next", "by", "timer") == 0 && lists(before, "next", "by", "job reconcile"));
	CHECK(lists(before, "can", "command", "leasehold doctor --fix"));

	rig_pass(&r.rig, 96 * HOUR_MS);
	after = account_explained(&r, id);
	CHECK(says(after, "summary", "should have been free since 2023-11-") &&
	      says(after, "summary", "has not been released"));
	CHECK(lists(after, "problems", NULL, "its timer has fired or is lost"));
	CHECK(lists(after, "can", "command", "leasehold hold release "));
	account_rig_close(&r);
}

TEST(an_account_locked_away_after_a_failed_cleanup_says_why_and_what_brings_it_back)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *answer = NULL;
	struct str                  id;

	open_rig(&r);
	id = nth_account(&r, 0);
	goes_wrong(&r, WORLD_CLEAN_FAILS, WORLD_ANY_CALL, 0);
	do_account(&r, account_register, id);
	rig_pass(&r.rig, 24 * HOUR_MS);
	answer = account_explained(&r, id);
	CHECK(says(answer, "where", "Quarantine") &&
	      says(answer, "summary", "is in quarantine: the cleanup failed: 3 attempts"));
	CHECK(says(answer, "summary", "Nothing happens to it by itself"));
	CHECK(lists(answer, "holds", "reason", "failed-cleanup") &&
	      lists(answer, "events", "type", "AccountCleanupFailed"));
	CHECK(lists(answer, "can", "path", str_format(&r.rig.arena, "/api/accounts/%.*s/retryCleanup", STR_ARG(id)).p));
	CHECK(lists(answer, "can", "command", "leasehold account eject "));
	CHECK(count_of(answer, "can", "command", "hold release") == 0); /* such a hold ends with a cleanup */
	CHECK(lists(answer, "why", NULL, "because its cleanup failed, until it is cleaned or leaves the pool.") &&
	      count_of(answer, "why", NULL, "until someone releases it") == 0);
	account_rig_close(&r);
}

TEST(an_account_on_its_way_says_which_step_and_that_it_is_not_there_yet)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *answer = NULL;
	struct str                  id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	(void)lend(&r, ANN);
	(void)rig_turn(&r.rig); /* one try, then the back-off */
	answer = account_explained(&r, id);
	CHECK(says(answer, "where", "Active") && says(answer, "summary", "is lent to Ann@example.com"));
	CHECK(lists(answer, "why", NULL, "(move) since "));
	CHECK(lists(answer, "why", NULL, "It should be in the OU Active; where it last was for certain is Available."));
	CHECK(lists(answer, "why", NULL,
	            "Access: Ann@example.com should have it; when it was last certain, nobody had it."));
	CHECK(lists(answer, "problems", NULL, "is not making progress: step "));
	CHECK(lists(answer, "next", "what", "the step move is tried again"));
	CHECK(count_of(answer, "can", "path", "account-follow%2F") == 2);
	CHECK(count_of(answer, "problems", NULL, "Record and organisation differ") == 0);
	account_rig_close(&r);
}

TEST(a_parked_saga_is_told_with_its_step_and_its_orders)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *answer = NULL;
	struct str                  id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	goes_wrong(&r, WORLD_OUTAGE, WORLD_MOVE, 0);
	do_account(&r, account_quarantine, id);
	rig_pass(&r.rig, 24 * HOUR_MS);
	CHECK(count_sagas(&r, SAGA_PARKED) == 1);
	answer = account_explained(&r, id);
	CHECK(lists(answer, "problems", NULL, " and is waiting for a person: "));
	CHECK(lists(answer, "can", "command", "leasehold saga retry account-follow/"));
	CHECK(lists(answer, "can", "command", "leasehold saga skip account-follow/"));
	CHECK(lists(answer, "events", "type", "SagaParked"));
	CHECK(lists(answer, "problems", NULL,
	            "Record and organisation differ, and nothing is moving it: the record says Quarantine"));
	account_rig_close(&r);
}

static enum rc put_elsewhere(struct session *s, void *arg, struct err *e)
{
	struct account *a = arg;
	enum rc         rc = session_get(s, &account_type, a->id, a, e);

	a->placed_ou = STR("Quarantine");
	if (!rc)
		session_put(s, &account_type, a);
	return rc;
}

TEST(a_split_brain_is_said_plainly_with_what_the_reconciler_will_do)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *answer = NULL;
	struct account              a = { 0 };

	open_rig(&r);
	a.id = add_free_account(&r, 0);
	rig_run(&r.rig, put_elsewhere, &a);
	answer = account_explained(&r, a.id);
	CHECK(says(answer, "summary", "The record says that account ") &&
	      says(answer, "summary", " is Available, but it was last in the OU Quarantine"));
	CHECK(lists(answer, "problems", NULL,
	            "the record says Available (OU Available), the account was last in Quarantine."));
	CHECK(lists(answer, "next", "by", "job account-drift") &&
	      lists(answer, "next", "what", "a move that was left is finished"));
	CHECK(lists(answer, "can", "command", "leasehold job run account-drift"));
	CHECK(lists(answer, "can", "command", "leasehold account quarantine "));
	account_rig_close(&r);
}

TEST(an_account_that_an_outsider_moved_is_told_after_the_first_look)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *answer = NULL;
	struct lease_world          world;
	struct pass                 drift;
	struct pass_result          result = { 0 };
	struct str                  id;

	open_rig(&r);
	id = add_free_account(&r, 0);
	outsider_moves(&r, id, SIM_OU_QUARANTINE);
	r.rig.clock.test_ms += HOUR_MS;
	world = (struct lease_world){ .cloud = r.cloud };
	drift = (struct pass){ .store = r.rig.store, .clock = &r.rig.clock, .leases = &world };
	CHECK(pass_find_drift(&drift, &result, &r.err) == RC_OK);
	answer = account_explained(&r, id);
	CHECK(says(answer, "summary", "is Available, but the organisation has it somewhere else"));
	CHECK(lists(answer, "problems", NULL, "did not find it in the OU Available"));
	CHECK(lists(answer, "next", "by", "job account-drift"));
	account_rig_close(&r);
}

static enum rc add_trouble(struct session *s, void *arg, struct err *e)
{
	struct str   id = *(struct str *)arg;
	struct dead  dead = { .id = STR("dead-1"),
		              .queue = STR(HOLD_QUEUE),
		              .subject = str_format(session_arena(s), "account/%.*s", STR_ARG(id)),
		              .event_id = STR("x"),
		              .event = STR("{}"),
		              .tries = 10,
		              .error = STR("the store said no"),
		              .died_ms = 1700000000000 };
	struct dead  other = dead;
	struct alarm alarm = { .name = str_format(session_arena(s), "account-quarantined#%.*s", STR_ARG(id)),
		               .rule = STR("account-quarantined"),
		               .state = ALARM_RAISED,
		               .evidence = STR("it is so"),
		               .raised_ms = 1700000000000 };

	(void)e;
	other.id = STR("dead-2");
	other.subject = STR("account/999999999999");
	session_add(s, &dead_type, &dead);
	session_add(s, &dead_type, &other);
	session_add(s, &alarm_type, &alarm);
	return RC_OK;
}

TEST(dead_letters_and_alarms_about_it_are_problems_and_those_of_others_are_not)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *answer = NULL;
	CLEANUP(json_freep) json_t *of_other = NULL;
	struct str                  id, other;

	open_rig(&r);
	id = add_free_account(&r, 0);
	other = add_free_account(&r, 1);
	rig_run(&r.rig, add_trouble, &id);
	answer = account_explained(&r, id);
	CHECK(lists(
	        answer, "problems", NULL,
	        "A delivery of queue holds was given up at 2023-11-14 22:13 UTC after 10 tries: the store said no"));
	CHECK(lists(answer, "problems", NULL,
	            "The alarm account-quarantined has been raised since 2023-11-14 22:13 UTC: it is so"));
	CHECK(lists(answer, "can", "command", "leasehold dlq replay dead-1"));
	of_other = account_explained(&r, other);
	CHECK(json_array_size(json_object_get(of_other, "problems")) == 0);
	account_rig_close(&r);
}

TEST(what_is_not_known_is_not_found_and_what_is_gone_is_told_by_its_events)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *gone = NULL;
	struct explain              x = { .kind = STR("account"), .id = STR("999999999999") };
	struct str                  id;

	open_rig(&r);
	CHECK(try_explain(r.rig.store, &r.rig.arena, &x, &r.err) == RC_NOT_FOUND &&
	      strstr(r.err.msg, "no event tells of one"));
	x = (struct explain){ .kind = STR("instance"), .id = STR("i-1") };
	err_clear(&r.err);
	CHECK(try_explain(r.rig.store, &r.rig.arena, &x, &r.err) == RC_NOT_FOUND &&
	      strstr(r.err.msg, "no event tells of one"));
	x = (struct explain){ .kind = STR("moon"), .id = STR("1") };
	CHECK(try_explain(r.rig.store, &r.rig.arena, &x, NULL) == RC_INVALID);
	x = (struct explain){ .kind = STR("account"), .id = STR("12") };
	CHECK(try_explain(r.rig.store, &r.rig.arena, &x, NULL) == RC_INVALID);

	id = add_free_account(&r, 0);
	do_account(&r, account_eject, id);
	rig_pass(&r.rig, HOUR_MS);
	CHECK(!has_account(&r, id));
	gone = account_explained(&r, id);
	CHECK(says(gone, "where", "gone") && says(gone, "summary", "There is no record of account"));
	CHECK(lists(gone, "events", "text", "left the pool"));
	account_rig_close(&r);
}

/* --- sandboxes --- */

static json_t *sandbox_explained(struct pool *p, int n)
{
	return explained(p->store, &p->arena, "sandbox", pool_id(&p->arena, n));
}

static enum rc state_circuit(struct session *s, void *arg, struct err *e)
{
	struct fact fact = {
		.name = STR("circuit/csp"), .value = 1, .since_ms = session_now(s).ms - 5000, .at_ms = session_now(s).ms
	};

	(void)arg;
	(void)e;
	session_add(s, &fact_type, &fact);
	return RC_OK;
}

TEST(a_sandbox_whose_deletion_fails_says_how_often_and_why_and_when_again)
{
	struct pool                 p;
	CLEANUP(json_freep) json_t *answer = NULL;
	CLEANUP(json_freep) json_t *held_back = NULL;
	struct sandbox              s;

	pool_open_memory(&p);
	pool_fill(&p, 1, 3);
	s = pool_get(&p, pool_id(&p.arena, 1));
	s.status = SANDBOX_PENDING_DELETION;
	s.allocated_to_track = STR("lab-42");
	s.allocated_at = POOL_NOW_SEC - 7200;
	s.deletion_requested_at = POOL_NOW_SEC - 3600;
	s.deletion_retry_count = 2;
	s.next_deletion_at = POOL_NOW_SEC + 600;
	s.last_error = STR("503 from the vendor");
	pool_put(&p, s);
	answer = sandbox_explained(&p, 1);
	CHECK(says(answer, "where", "pending_deletion") &&
	      says(answer, "summary", "was used by track lab-42 and is to be deleted, which has not worked yet"));
	CHECK(says(answer, "since", "2001-09-09T00:46:40Z"));
	CHECK(lists(answer, "why", NULL, "2 attempts to delete it have failed; the last error: 503 from the vendor"));
	CHECK(lists(answer, "next", "at", "2001-09-09T01:56:40Z") &&
	      lists(answer, "can", "command", "leasehold job run cleanup"));
	CHECK(lists(answer, "problems", NULL, "Its deletion fails: 503"));

	CHECK(store_run(p.store, state_circuit, NULL, &p.arena, NULL) == RC_OK);
	held_back = sandbox_explained(&p, 1);
	CHECK(lists(held_back, "problems", NULL, "Calls to the vendor are held back since"));
	pool_close(&p);
}

TEST(a_sandbox_is_explained_in_each_of_its_states)
{
	static const struct {
		const char        *label;
		enum sandbox_state state;
		const char        *summary, *command, *quarantine_reason;
	} rows[] = {
		{ "free", SANDBOX_AVAILABLE, "is free: the next track", "sandbox quarantine" },
		{ "lent", SANDBOX_ALLOCATED, "belongs to track lab-42, until 2001-09-09 0", "job run expiry" },
		{ "given up", SANDBOX_DELETION_FAILED, "it is not tried again until someone asks for it",
		  "sandbox retry-deletion sb-0001" },
		{ "missing", SANDBOX_STALE, "is stale: the vendor did not list it", "job run sync" },
		{ "set aside", SANDBOX_STALE, "is stale: an operator put it in quarantine: smells", "sandbox release",
		  "smells" },
	};
	struct pool p;

	pool_open_memory(&p);
	pool_fill(&p, 1, 2);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(json_freep) json_t *answer = NULL;
		struct sandbox              s = pool_get(&p, pool_id(&p.arena, 1));

		CASE(rows[i].label);
		s.status = rows[i].state;
		s.allocated_to_track = s.status == SANDBOX_AVAILABLE ? STR("") : STR("lab-42");
		s.allocated_at = s.status == SANDBOX_AVAILABLE ? 0 : POOL_NOW_SEC;
		s.deletion_requested_at = s.status == SANDBOX_DELETION_FAILED ? POOL_NOW_SEC : 0;
		s.deletion_retry_count = s.status == SANDBOX_DELETION_FAILED ? 5 : 0;
		s.last_error = s.status == SANDBOX_DELETION_FAILED ? STR("no") : STR("");
		s.quarantine_reason = str_from(rows[i].quarantine_reason ? rows[i].quarantine_reason : "");
		pool_put(&p, s);
		answer = sandbox_explained(&p, 1);
		CHECK(says(answer, "where", sandbox_state_name(rows[i].state)) &&
		      says(answer, "summary", rows[i].summary));
		CHECK(lists(answer, "can", "command", rows[i].command));
	}
	pool_close(&p);
}

static enum rc trouble_job(struct session *s, void *arg, struct err *e)
{
	struct job_record job;
	enum rc           rc = session_find_or_new(s, &job_type, str_from(arg), &job, e);

	job.is_paused = 1;
	job.failures = 3;
	job.last_error = STR("503 from the vendor");
	if (!rc)
		session_put(s, &job_type, &job);
	return rc;
}

TEST(a_job_that_something_waits_for_is_told_when_it_is_paused_or_fails)
{
	struct pool                 p;
	CLEANUP(json_freep) json_t *answer = NULL;
	struct sandbox              s;

	pool_open_memory(&p);
	pool_fill(&p, 1, 2);
	s = pool_get(&p, pool_id(&p.arena, 1));
	s.status = SANDBOX_STALE;
	pool_put(&p, s);
	CHECK(store_run(p.store, trouble_job, (char[]){ "sync" }, &p.arena, NULL) == RC_OK);
	answer = sandbox_explained(&p, 1);
	CHECK(lists(answer, "problems", NULL, "The job sync is paused: nothing happens here") &&
	      lists(answer, "can", "command", "leasehold job resume sync"));
	CHECK(lists(answer, "problems", NULL, "The job sync has failed 3 times in a row: 503 from the vendor"));
	pool_close(&p);
}

/* --- instances --- */

static enum rc add_instance(struct session *s, void *arg, struct err *e UNUSED)
{
	session_add(s, &instance_type, arg);
	return RC_OK;
}

TEST(an_instance_with_an_operation_under_way_is_offered_nothing_that_would_be_refused)
{
	struct account_rig          r = { 0 };
	CLEANUP(json_freep) json_t *busy = NULL;
	CLEANUP(json_freep) json_t *idle = NULL;
	struct instance             i = { .tenant = STR("tenant-acme"),
		                          .organization = STR("Acme"),
		                          .contact_email = STR("a@acme.example"),
		                          .wordpress_version = STR("6.5"),
		                          .desired_count = 2,
		                          .state = INSTANCE_ACTIVE,
		                          .has_data = 1 };

	open_rig(&r);
	i.created_ms = i.updated_ms = r.rig.clock.test_ms;
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		i.outputs[kind] = STR("{}");
	i.id = STR("inst-idle");
	rig_run(&r.rig, add_instance, &i);
	i.id = STR("inst-busy");
	i.operation = STR("op-1"); /* a backup, for one */
	rig_run(&r.rig, add_instance, &i);
	idle = explained(r.rig.store, &r.rig.arena, "instance", STR("inst-idle"));
	busy = explained(r.rig.store, &r.rig.arena, "instance", STR("inst-busy"));
	CHECK(lists(idle, "can", "command", "instance scale") && lists(idle, "can", "command", "instance delete"));
	CHECK(says(busy, "where", "ACTIVE") && json_array_size(json_object_get(busy, "can")) == 0);
	account_rig_close(&r);
}

/* --- what is offered --- */

static bool has_command(const struct explain_action *action)
{
	char        text[128], *rest = NULL;
	const char *words[2];
	size_t      used;

	(void)snprintf(text, sizeof(text), "%s", action->command);
	words[0] = strtok_r(text, " ", &rest);
	words[1] = strtok_r(NULL, " ", &rest);
	return cli_command_find(words, 2, &used) != NULL;
}

TEST(every_action_that_is_offered_is_a_command_and_a_route)
{
	for (int i = 0; i < EXPLAIN_ACTION_COUNT; i++) {
		CASE(explain_actions[i].command);
		CHECK(rights_route(explain_actions[i].route).path != NULL);
		CHECK(has_command(&explain_actions[i]));
	}
}

TEST(an_event_is_one_readable_line_and_an_unknown_one_has_its_name)
{
	static const struct {
		const char *type, *detail, *text;
	} rows[] = {
		{ "HoldCreated", "{\"reason\":\"billing\",\"due\":\"2026-11-18T10:00:00Z\"}",
		  "held: billing, until 2026-11-18 10:00 UTC" },
		{ "HoldClosed", "{\"reason\":\"manual\",\"state\":\"released-early\",\"why\":\"needed\"}",
		  "the hold manual ended: released-early (needed)" },
		{ "LeaseDenied", "{\"deniedBy\":\"max@example.com\"}", "denied by max@example.com" },
		{ "LeaseFrozen",
		  "{\"reason\":{\"type\":\"BudgetExceeded\",\"triggeredBudgetThreshold\":40,\"budget\":50,\"totalSpend\":41.5}}",
		  "frozen (BudgetExceeded): 41.50 USD spent, the threshold is 40 USD" },
		{ "SandboxAllocated", "{\"track\":\"lab\",\"expiresAt\":1000000000}",
		  "claimed by track lab, until 2001-09-09 01:46 UTC" },
		{ "LeaseQueued", "{\"approvedBy\":\"AUTO_APPROVED\"}",
		  "approved by the rules; no account was free, so it waits in line" },
		{ "cloudtrail:MoveAccount",
		  "{\"detail\":{\"requestParameters\":{\"sourceParentId\":\"ou-a\",\"destinationParentId\":\"ou-b\"}}}",
		  "moved in the organisation from ou-a to ou-b" },
		{ "LeaseDenied", "[1]", "denied by " },
		{ "LeaseDenied", "no JSON", "denied by " },
		{ "LeaseDenied", "{\"deniedBy\":{},\"reason\":\"a\\nb\\u001b[1m\"}", "denied by : a b [1m" },
		{ "SomethingNew", "{}", "SomethingNew" },
		{ "CleanupDue", "{}", "" },
	};
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct event event = { .type = str_from(rows[i].type), .detail = str_from(rows[i].detail) };
		struct str   text = explain_event(&event, &a);

		CASE(rows[i].text);
		if (!str_eq(text, str_from(rows[i].text)))
			print_error("'%.*s'\n", STR_ARG(text));
		CHECK(str_eq(text, str_from(rows[i].text)));
	}
	arena_fini(&a);
}

/* What a cloud takes back later can be more than what a lease has cost. */
TEST(an_amount_below_zero_has_its_sign_in_front)
{
	static const struct {
		int64_t     micro_usd;
		const char *text;
	} rows[] = {
		{ 0, "0.00 USD" },
		{ 12500000, "12.50 USD" },
		{ 9999, "0.00 USD" },
		{ -500000, "-0.50 USD" },
		{ -12345678, "-12.34 USD" },
		{ -9999, "0.00 USD" },
		{ INT64_MIN, "-9223372036854.77 USD" },
	};
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE(rows[i].text);
		CHECK(strcmp(explain_usd(&a, rows[i].micro_usd), rows[i].text) == 0);
	}
	arena_fini(&a);
}
