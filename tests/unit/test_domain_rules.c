/* SPDX-License-Identifier: Apache-2.0 */
/* test_domain_rules.c - each rule of a record broken alone, every refusal, and the tables as people see them: what no
 * flow comes to, because everything before it is right. */
#include "test.h"

#include <string.h>

#include "base/arena.h"
#include "domain/account.h"
#include "domain/discrepancy.h"
#include "domain/hold.h"
#include "domain/instance.h"
#include "domain/lease.h"
#include "domain/sandbox.h"

#define UUID "0f8fad5b-d9cb-469f-a165-70867728950e"

static const struct wall now = { 1000000000 };

/* The record is right, and is not with this one change. */
#define BROKEN(is_ok, record, change)                \
	do {                                         \
		__typeof__(record) broken_ = record; \
                                                     \
		CASE(#record "." #change);           \
		CHECK(is_ok(&broken_));              \
		broken_.change;                      \
		CHECK(!is_ok(&broken_));             \
	} while (0)

/* The call, which reports to e, is refused so. */
#define REFUSED(call, code, words)           \
	do {                                 \
		struct err e = { 0 };        \
                                             \
		CHECK((call) == (code));     \
		CHECK(strstr(e.msg, words)); \
	} while (0)

/* --- records --- */

TEST(a_sandbox_keeps_its_rules)
{
	struct sandbox available = { .sandbox_id = STR("s"), .external_id = STR("x"), .status = SANDBOX_AVAILABLE };
	struct sandbox held = available, doomed = available;

	held.status = SANDBOX_ALLOCATED;
	held.allocated_to_track = STR("t");
	held.allocated_at = held.lab_duration_hours = 1;
	doomed.status = SANDBOX_PENDING_DELETION;
	doomed.deletion_requested_at = 1;
	BROKEN(sandbox_ok, available, sandbox_id = STR(""));
	BROKEN(sandbox_ok, available, external_id = STR(""));
	BROKEN(sandbox_ok, available, allocated_to_track = STR("t"));
	BROKEN(sandbox_ok, available, allocated_at = 1);
	BROKEN(sandbox_ok, available, quarantine_reason = STR("why"));
	BROKEN(sandbox_ok, available, status = SANDBOX_GONE);
	BROKEN(sandbox_ok, available, status = (enum sandbox_state)(SANDBOX_GONE + 1));
	BROKEN(sandbox_ok, held, allocated_to_track = STR(""));
	BROKEN(sandbox_ok, held, allocated_at = 0);
	BROKEN(sandbox_ok, held, lab_duration_hours = 0);
	BROKEN(sandbox_ok, held, deletion_requested_at = 1);
	BROKEN(sandbox_ok, doomed, deletion_requested_at = 0);
}

TEST(a_lease_keeps_its_rules)
{
	struct lease pending = { .uuid = STR(UUID),
		                 .user_email = STR("Ann@example.com"),
		                 .user_key = STR("ann@example.com"),
		                 .template_uuid = STR(UUID),
		                 .template_name = STR("Playground"),
		                 .status = LEASE_PENDING_APPROVAL };
	struct lease denied = pending, active = pending, ended;

	denied.status = LEASE_APPROVAL_DENIED;
	denied.ttl_sec = 1;
	active.status = LEASE_ACTIVE;
	active.account_id = STR("123456789012");
	active.approved_by = STR("m@example.com");
	active.start_ms = active.last_checked_ms = 1;
	ended = active;
	ended.status = LEASE_EXPIRED;
	ended.end_ms = ended.ttl_sec = 1;
	BROKEN(lease_ok, pending, uuid = STR(""));
	BROKEN(lease_ok, pending, user_email = STR(""));
	BROKEN(lease_ok, pending, user_key = STR("bob@example.com"));
	BROKEN(lease_ok, pending, template_uuid = STR(""));
	BROKEN(lease_ok, pending, template_name = STR(""));
	BROKEN(lease_ok, pending, max_spend = -1);
	BROKEN(lease_ok, pending, duration_ms = -1);
	BROKEN(lease_ok, pending, status = LEASE_STATUS_COUNT);
	BROKEN(lease_ok, pending, account_id = STR("123456789012"));
	BROKEN(lease_ok, pending, approved_by = STR("m@example.com"));
	BROKEN(lease_ok, pending, start_ms = 1);
	BROKEN(lease_ok, pending, last_checked_ms = 1);
	BROKEN(lease_ok, pending, expires_ms = 1);
	BROKEN(lease_ok, pending, cost = 1);
	BROKEN(lease_ok, pending, end_ms = 1);
	BROKEN(lease_ok, pending, ttl_sec = 1);
	BROKEN(lease_ok, denied, ttl_sec = 0);
	BROKEN(lease_ok, denied, queued_ms = 1);
	BROKEN(lease_ok, denied, cost = 1);
	BROKEN(lease_ok, active, account_id = STR(""));
	BROKEN(lease_ok, active, approved_by = STR(""));
	BROKEN(lease_ok, active, start_ms = 0);
	BROKEN(lease_ok, active, last_checked_ms = 0);
	BROKEN(lease_ok, active, queued_ms = 1);
	BROKEN(lease_ok, active, end_ms = 1);
	BROKEN(lease_ok, active, ttl_sec = 1);
	BROKEN(lease_ok, ended, account_id = STR(""));
	BROKEN(lease_ok, ended, end_ms = 0);
	BROKEN(lease_ok, ended, ttl_sec = 0);
	pending.queued_ms = 1;
	CHECK(lease_shown_status(&pending) == LEASE_PROVISIONING && lease_shown_status(&active) == LEASE_ACTIVE);
}

TEST(an_account_keeps_its_rules)
{
	struct account free = { .id = STR("123456789012"), .status = ACCOUNT_AVAILABLE }, lent = free, frozen = free,
	               resting = free;

	lent.status = ACCOUNT_ACTIVE;
	lent.holder = STR("ann@example.com");
	lent.lease_uuid = STR(UUID);
	frozen.status = ACCOUNT_FROZEN;
	frozen.lease_uuid = STR(UUID);
	resting.status = ACCOUNT_COOLDOWN;
	BROKEN(account_ok, free, id = STR(""));
	BROKEN(account_ok, free, holder = STR("ann@example.com"));
	BROKEN(account_ok, free, lease_uuid = STR(UUID));
	BROKEN(account_ok, free, open_holds = 1);
	BROKEN(account_ok, free, cleaned_ms = 1);
	BROKEN(account_ok, free, status = ACCOUNT_STATUS_COUNT);
	BROKEN(account_ok, free, status = (enum account_status)(ACCOUNT_STATUS_COUNT + 1));
	BROKEN(account_ok, lent, holder = STR(""));
	BROKEN(account_ok, lent, lease_uuid = STR(""));
	BROKEN(account_ok, frozen, holder = STR("ann@example.com"));
	BROKEN(account_ok, frozen, lease_uuid = STR(""));
	BROKEN(account_ok, resting, holder = STR("ann@example.com"));
	BROKEN(account_ok, resting, lease_uuid = STR(UUID));
}

TEST(a_hold_keeps_its_rules)
{
	struct hold open = { .id = STR("123456789012-1"),
		             .account = STR("123456789012"),
		             .created_ms = 1,
		             .created_by = STR("cleanup"),
		             .is_open = 1,
		             .due_ms = 2 };
	struct hold locked = open, closed = open;

	locked.locks = 1;
	locked.due_ms = 0;
	closed.state = HOLD_RELEASED;
	closed.is_open = 0;
	closed.closed_ms = 1;
	BROKEN(hold_ok, open, account = STR("12345678901"));
	BROKEN(hold_ok, open, id = STR("999956789012-1"));
	BROKEN(hold_ok, open, created_ms = 0);
	BROKEN(hold_ok, open, created_by = STR(""));
	BROKEN(hold_ok, open, is_open = 0);
	BROKEN(hold_ok, open, closed_ms = 1);
	BROKEN(hold_ok, locked, due_ms = 1);
	BROKEN(hold_ok, closed, closed_ms = 0);
	BROKEN(hold_ok, closed, is_open = 1);
}

TEST(an_instance_keeps_its_rules)
{
	struct instance wanted = { .id = STR("inst-1"), .tenant = STR("tenant-a"), .desired_count = 2 }, active, gone;

	active = gone = wanted;
	active.state = INSTANCE_ACTIVE;
	active.has_data = 1;
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		active.outputs[kind] = STR("{}");
	gone.state = INSTANCE_DEPROVISIONED;
	gone.removed_ms = 1;
	BROKEN(instance_ok, wanted, id = STR(""));
	BROKEN(instance_ok, wanted, tenant = STR("A"));
	BROKEN(instance_ok, wanted, desired_count = INSTANCE_COUNT_MIN - 1);
	BROKEN(instance_ok, wanted, desired_count = INSTANCE_COUNT_MAX + 1);
	BROKEN(instance_ok, active, has_data = 0);
	BROKEN(instance_ok, active, outputs[INSTANCE_RESOURCE_COUNT - 1] = STR(""));
	BROKEN(instance_ok, gone, removed_ms = 0);
}

/* --- refusals --- */

TEST(a_sandbox_refuses_what_its_state_does_not_allow)
{
	struct sandbox s = { .sandbox_id = STR("s"), .external_id = STR("x"), .status = SANDBOX_AVAILABLE };

	REFUSED(sandbox_apply(&s, SANDBOX_ON_DELETED, now, &e), RC_CONFLICT, "is available");
	REFUSED(sandbox_retry_deletion(&s, now, &e), RC_CONFLICT, "deletion_failed");
	REFUSED(sandbox_release(&s, now, &e), RC_CONFLICT, "not in quarantine");
	REFUSED(sandbox_deletion_failed(&s, 3, 1, STR("why"), now, &e), RC_CONFLICT, "is available");
	REFUSED(sandbox_check_owner(&s, STR("t"), &e), RC_DENIED, "not yours");
	CHECK(sandbox_quarantine(&s, STR(""), now, NULL) == RC_OK && strstr(s.quarantine_reason.p, "operator"));
	s.deletion_requested_at = 1;
	CHECK(sandbox_release(&s, now, NULL) == RC_OK && s.status == SANDBOX_PENDING_DELETION);
}

TEST(a_hold_refuses_what_its_state_does_not_allow)
{
	struct hold open = { .id = STR("123456789012-1"), .account = STR("123456789012"), .is_open = 1, .due_ms = 5 };
	struct hold locked = open, closed = open, leaving = open;

	locked.locks = 1;
	leaving.placement = STR(HOLD_RELEASING);
	REFUSED(hold_extend(&open, now.ms, now, &e), RC_INVALID, "in the future");
	REFUSED(hold_extend(&locked, now.ms + 1, now, &e), RC_CONFLICT, "no due time");
	REFUSED(hold_extend(&leaving, now.ms + 1, now, &e), RC_CONFLICT, "being released already");
	CHECK(hold_close(&closed, HOLD_RELEASED, STR("timer"), STR(""), now, NULL) == RC_OK);
	REFUSED(hold_close(&closed, HOLD_EJECTED, STR("timer"), STR(""), now, &e), RC_CONFLICT, "released");
	REFUSED(hold_extend(&closed, now.ms + 1, now, &e), RC_CONFLICT, "closed since");
	CHECK(hold_is_due(&open, now) && !hold_is_due(&closed, now));
	CHECK(!hold_is_due(&open, (struct wall){ 4 }));
	open.due_ms = 0;
	CHECK(!hold_is_due(&open, now));
}

TEST(rules_of_rests_say_what_is_wrong_with_them)
{
	struct hold_rules rules;

	hold_rules_defaults(&rules);
	REFUSED(hold_rules_read_pools(&rules, STR("lab-:nap=4"), &e), RC_INVALID, "'nap'");
	REFUSED(hold_rules_read_pools(&rules, STR("lab-:quota=soon"), &e), RC_INVALID, "'soon'");
	REFUSED(hold_rules_read_pools(&rules, STR(":quota=4"), &e), RC_INVALID, "PREFIX");
	REFUSED(hold_rules_read_pools(&rules, STR("lab-:"), &e), RC_INVALID, "PREFIX");
	CHECK(rules.pool_count == 0);
	for (int i = 0; i < HOLD_POOLS_MAX; i++)
		CHECK(hold_rules_read_pools(&rules, STR("lab-:billing=39"), NULL) == RC_OK);
	REFUSED(hold_rules_read_pools(&rules, STR("lab-:quota=4"), &e), RC_INVALID, "more than");
	REFUSED(hold_rules_check(&rules, &e), RC_INVALID, "lab-: a billing hold of 39 h");
}

TEST(an_account_and_a_lease_say_why_not)
{
	struct account a = { .id = STR("123456789012"), .status = ACCOUNT_EXIT, .version = 1 };
	struct lease   l = { .uuid = STR(UUID), .status = LEASE_EXPIRED };

	REFUSED(account_apply(&a, ACCOUNT_ON_REGISTER, now, &e), RC_CONFLICT, "registered already");
	REFUSED(account_apply(&a, ACCOUNT_ON_CLEANED, now, &e), RC_CONFLICT, "is Exit");
	REFUSED(lease_apply(&l, LEASE_ON_FREEZE, now, &e), RC_CONFLICT, "must be Active");
	l.duration_ms = 2 * LEASE_HOUR_MS;
	CHECK(lease_hours(&l) == 2);
	l.expires_ms = 3 * LEASE_HOUR_MS;
	CHECK(lease_hours(&l) == 2); /* it never began */
	l.start_ms = 1;
	CHECK(lease_hours(&l) == 3);
}

TEST(an_instance_says_why_not)
{
	struct instance i = { .id = STR("inst-1"), .state = INSTANCE_ACTIVE };

	REFUSED(instance_apply(&i, INSTANCE_ON_RESUME, 1, &e), RC_UNFIT, "resume is not possible");
	REFUSED(instance_apply(&i, INSTANCE_ON_BEGIN, 1, &e), RC_UNFIT, "the saga takes it");
	CHECK(instance_apply(&i, INSTANCE_ON_SUSPEND, 1, NULL) == RC_OK);
	REFUSED(instance_apply(&i, INSTANCE_ON_RESUME, 1, &e), RC_UNFIT, "wait until");
	CHECK(instance_state_is_rest(INSTANCE_NONE) && !instance_state_is_live(INSTANCE_NONE));
}

/* --- what a body may hold --- */

TEST(of_a_body_at_most_so_many_problems_are_told)
{
	struct arena             a = { 0 };
	struct instance_problems p = { .arena = &a };

	for (int i = 0; i < INSTANCE_PROBLEMS_MAX + 1; i++)
		instance_problem(&p, "body", "UNKNOWN_FIELD", "number %d", i);
	CHECK(p.count == INSTANCE_PROBLEMS_MAX);
	arena_fini(&a);
}

TEST(members_of_a_body_at_their_limits)
{
	static const struct {
		const char        *body;
		enum instance_body kind;
		const char        *code; /* of the first problem; "": none */
	} rows[] = {
		{ "[]", BODY_CREATE, "INVALID_TYPE" },
		{ "{\"organizationName\":\"O'Neil & Co\",\"contactEmail\":\"a@b.org\"}", BODY_CREATE,
		  "INVALID_FORMAT" },
		{ "{\"organizationName\":\"A\",\"contactEmail\":\"a@b.org\"}", BODY_CREATE, "INVALID_FORMAT" },
		{ "{\"organizationName\":\"AZ az 09 -'\xc3\xa9\",\"contactEmail\":\"a@b.org\",\"tier\":\"STANDARD\","
		  "\"configuration\":null,\"opportunityId\":\"o\"}",
		  BODY_CREATE, "" },
		{ "{\"organizationName\":\"Acme\",\"contactEmail\":\"a@b.org\",\"opportunityId\":\"a\\u0001\"}",
		  BODY_CREATE, "INVALID_FORMAT" },
		{ "{\"organizationName\":\"Acme\",\"contactEmail\":\"a@b.org\",\"configuration\":{\"desiredCount\":null}}",
		  BODY_CREATE, "" },
		{ "{\"tier\":\"GOLD\"}", BODY_CHANGE, "INVALID_VALUE" },
		{ "{\"tier\":7}", BODY_CHANGE, "INVALID_TYPE" },
		{ "{\"tier\":\"ENTERPRISE\"}", BODY_CHANGE, "" },
		{ "{\"contactEmail\":\"a@b.org\"}", BODY_CHANGE, "" },
		{ "{\"contactEmail\":\"a@@b.org\"}", BODY_CHANGE, "INVALID_FORMAT" },
		{ "{\"configuration\":{\"wordpressVersion\":\"latest\"}}", BODY_CHANGE, "" },
		{ "{\"configuration\":{\"wordpressVersion\":\"6.5.55555555555555\"}}", BODY_CHANGE, "INVALID_FORMAT" },
		{ "{\"configuration\":{\"wordpressVersion\":6}}", BODY_CHANGE, "INVALID_FORMAT" },
		{ "{\"configuration\":[]}", BODY_CHANGE, "INVALID_TYPE" },
		{ "{\"action\":\"stop\"}", BODY_STATUS, "REQUIRED" },
		{ "{\"action\":\"park\",\"reason\":\"quiet\"}", BODY_STATUS, "" },
		{ "{\"action\":\"resume\"}", BODY_STATUS, "" },
		{ "{\"action\":\"suspend\",\"reason\":\"a\\u0007\"}", BODY_STATUS, "INVALID_FORMAT" },
		{ "{\"desiredCount\":\"3\"}", BODY_SIZE, "INVALID_TYPE" },
		{ "{\"desiredCount\":11}", BODY_SIZE, "SCALE_LIMIT_EXCEEDED" },
		{ "{\"desiredCount\":1}", BODY_SIZE, "SCALE_LIMIT_EXCEEDED" },
		{ "{\"desiredCount\":null}", BODY_SIZE, "REQUIRED" },
		{ "{\"archiveData\":true}", BODY_DELETE, "" },
		{ "{\"archiveData\":\"yes\"}", BODY_DELETE, "INVALID_VALUE" },
		{ "{\"backupId\":\"b-1\"}", BODY_RESTORE, "" },
		{ "{\"backupId\":\"b\\u0002\"}", BODY_RESTORE, "INVALID_FORMAT" },
		{ "{\"backupId\":\"0123456789012345678901234567890123456789012345678901234567890123x\"}", BODY_RESTORE,
		  "INVALID_FORMAT" },
		{ "{\"email\":\"a@b.org\",\"name\":\"Ann\"}", BODY_PERSON, "" },
		{ "{\"email\":\"a@b.org\",\"name\":\"0123456789012345678901234567890123456789012345678901234567890123x\"}",
		  BODY_PERSON, "INVALID_FORMAT" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena             a = { 0 };
		struct instance_problems p = { .arena = &a };
		struct instance_want     w;
		json_t                  *body = NULL;

		CASE(rows[i].body);
		CHECK(json_parse(str_from(rows[i].body), &body, NULL) == RC_OK);
		instance_want_read(body, rows[i].kind, &w, &p);
		CHECK(p.count ? !strcmp(p.items[0].code, rows[i].code) : !rows[i].code[0]);
		json_decref(body);
		arena_fini(&a);
	}
}

/* --- differences --- */

#define OU(status) str_from(account_ou_names[ACCOUNT_##status])

TEST(beside_another_system_the_first_rule_that_fits_decides)
{
	const struct pool_view base = { .id = STR("123456789012"),
		                        .said = SAID_ELSE,
		                        .status = STR("?"),
		                        .expected_ou = OU(QUARANTINE),
		                        .is_guarded = true,
		                        .is_tracked = true };
	struct pool_view       v = base;

	v.is_busy = true;
	CHECK(discrepancy_judge(&v, OU(AVAILABLE)) == DISCREPANCY_NONE);
	v = base, v.is_stuck = true;
	CHECK(discrepancy_judge(&v, OU(AVAILABLE)) == DISCREPANCY_STUCK_MOVE);
	v = base, v.held = 1;
	CHECK(discrepancy_judge(&v, OU(AVAILABLE)) == DISCREPANCY_LEFT_REST);
	CHECK(discrepancy_judge(&v, OU(CLEANUP)) == DISCREPANCY_STALE_HOLD);
	CHECK(discrepancy_judge(&v, OU(QUARANTINE)) == DISCREPANCY_UNRECORDED_REST);
	CHECK(discrepancy_judge(&v, STR("")) == DISCREPANCY_STALE_HOLD);
	v = base, v.is_tracked = false;
	CHECK(discrepancy_judge(&v, OU(AVAILABLE)) == DISCREPANCY_NONE);
	v = base, v.said = SAID_LOCKED;
	CHECK(discrepancy_judge(&v, OU(QUARANTINE)) == DISCREPANCY_FOREIGN_REST);
	v.is_ours = true;
	CHECK(discrepancy_judge(&v, OU(QUARANTINE)) == DISCREPANCY_NO_HOLD);
	v.is_handed_over = true;
	CHECK(discrepancy_judge(&v, OU(QUARANTINE)) == DISCREPANCY_NONE);
	v = base;
	CHECK(discrepancy_judge(&v, OU(AVAILABLE)) == DISCREPANCY_MISPLACED);
	v.expected_ou = OU(CLEANUP), v.cleaned_ms = 1;
	CHECK(discrepancy_judge(&v, OU(AVAILABLE)) == DISCREPANCY_BYPASS);
	v.is_accounted = true;
	CHECK(discrepancy_judge(&v, OU(AVAILABLE)) == DISCREPANCY_MISPLACED);
}

TEST(every_difference_has_a_sentence)
{
	struct arena     a = { 0 };
	struct pool_view v = { .id = STR("123456789012"), .status = STR("Available"), .cleaned_ms = 1000 };

	for (int d = 0; d < DISCREPANCY_COUNT; d++) {
		bool is_told_by_others = d == DISCREPANCY_NONE || d == DISCREPANCY_NO_TIMER ||
		                         d == DISCREPANCY_EVENTS_SILENT;

		CASE(discrepancy_names[d]);
		for (int has_lease = 0; has_lease < 2; has_lease++) {
			v.has_lease = has_lease;
			CHECK((discrepancy_text((enum discrepancy)d, &v, STR(""), &a).n == 0) == is_told_by_others);
			CHECK((discrepancy_text((enum discrepancy)d, &v, OU(ACTIVE), &a).n == 0) == is_told_by_others);
		}
	}
	arena_fini(&a);
}

TEST(a_runway_without_use_has_no_end)
{
	struct runway r = { .ready = 2, .used = 0, .span_ms = 1000, .horizon_ms = 100000 };

	CHECK(runway_ends_ms(&r, now) == 0);
	r.used = 1, r.span_ms = 0;
	CHECK(runway_ends_ms(&r, now) == 0);
	r.span_ms = 1000;
	CHECK(runway_ends_ms(&r, now) == now.ms + 2000);
}

/* --- tables for people --- */

TEST(tables_are_printed_whole)
{
	struct buf          b;
	enum instance_state state;

	buf_init(&b, 65536);
	instance_print_table(&b);
	CHECK(strstr(b.p, "33  PENDING_PROVISIONING    PENDING_DEPROVISIONING"));
	buf_fini(&b);
	buf_init(&b, 65536);
	sandbox_print_table(&b);
	CHECK(strstr(b.p, "available") && strstr(b.p, "put in quarantine by an operator"));
	buf_fini(&b);
	CHECK(instance_state_parse(STR("SCALING"), &state) && state == INSTANCE_SCALING);
	CHECK(!instance_state_parse(STR("scaling"), &state));
}
