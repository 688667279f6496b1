/* SPDX-License-Identifier: Apache-2.0 */
/* test_policy_document.c - the operator's documents: every key right and wrong, what is written is read back, and who
 * may change them. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "domain/approval.h"
#include "kernel/event.h"
#include "kernel_rig.h"
#include "pool.h"
#include "service/policy/policy_document.h"
#include "service/policy/policy_store.h"
#include "store/session.h"
#include "truth/test_clock.h"

enum { TEXT_MAX = 200000 };

static struct arena arena;

static bool read_policy(enum document_kind kind, const char *text, struct policy *ret, struct problems *p)
{
	*p = (struct problems){ .arena = &arena };
	policy_defaults(ret);
	return policy_read(kind, str_from(text), ret, p);
}

static bool has_problem(const struct problems *p, const char *field, const char *part)
{
	for (size_t i = 0; i < p->count; i++)
		if (str_eq(p->items[i].field, str_from(field)) && strstr(p->items[i].message.p, part))
			return true;
	for (size_t i = 0; i < p->count; i++)
		print_error("%s: %s\n", p->items[i].field.p, p->items[i].message.p);
	return false;
}

static bool is_same(enum document_kind kind, const struct policy *a, const struct policy *b)
{
	struct policy_changes changes;

	policy_compare(kind, a, b, &arena, &changes);
	return changes.count == 0;
}

/* --- reading --- */

TEST(what_is_left_out_has_its_default)
{
	static const char *const texts[] = { "", "# nothing\n", "{}", "leases:\n", "leases: {}\nauth: {}\n", "null" };
	struct policy            defaults, got;
	struct problems          p;

	policy_defaults(&defaults);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CASE(texts[i]);
		CHECK(read_policy(DOCUMENT_GLOBAL, texts[i], &got, &p));
		CHECK(is_same(DOCUMENT_GLOBAL, &defaults, &got));
	}
	CHECK(got.budget_max_usd == 50 && got.duration_max_hours == 168 && got.leases_per_user == 3 &&
	      got.ttl_days == 30);
	CHECK(got.requires_budget && got.requires_duration && got.session_minutes == 60 && !got.mail_from.n);
	arena_fini(&arena);
}

static const char whole[] = "termsOfService: |\n  # Be kind\n\n  Clean up.\n"
                            "maintenanceMode: true\n"
                            "isbManagedRegions: [eu-west-2, us-east-1]\n"
                            "leases:\n"
                            "  requireMaxBudget: false\n"
                            "  maxBudget: 51\n"
                            "  requireMaxDuration: no\n"
                            "  maxDurationHours: 169\n"
                            "  maxLeasesPerUser: 4\n"
                            "  allowSelfApproval: true\n"
                            "  ttl: 31\n"
                            "cleanup:\n"
                            "  numberOfFailedAttemptsToCancelCleanup: 5\n"
                            "  waitBeforeRetryFailedAttemptSeconds: 6\n"
                            "  numberOfSuccessfulAttemptsToFinishCleanup: 7\n"
                            "  waitBeforeRerunSuccessfulAttemptSeconds: 8\n"
                            "auth:\n"
                            "  idpSignInUrl: https://idp.example.org/in\n"
                            "  idpSignOutUrl: https://idp.example.org/out\n"
                            "  idpAudience: leasehold\n"
                            "  webAppUrl: http://127.0.0.1:8080\n"
                            "  awsAccessPortalUrl: https://portal.example.org/start\n"
                            "  sessionDurationInMinutes: 61\n"
                            "notification:\n"
                            "  emailFrom: sandbox@example.org\n";

TEST(every_key_is_read)
{
	struct policy   defaults, got;
	struct problems p;

	policy_defaults(&defaults);
	CHECK(read_policy(DOCUMENT_GLOBAL, whole, &got, &p));
	CHECK(str_eq(got.terms_of_service, STR("# Be kind\n\nClean up.\n")) && got.is_maintenance);
	CHECK(got.region_count == 2 && str_eq(got.regions[1], STR("us-east-1")));
	CHECK(!got.requires_budget && got.budget_max_usd == 51 && !got.requires_duration);
	CHECK(got.duration_max_hours == 169 && got.leases_per_user == 4 && got.ttl_days == 31);
	CHECK(got.allows_self_approval && !defaults.allows_self_approval);
	CHECK(got.clean_failures_max == 5 && got.clean_retry_wait_sec == 6);
	CHECK(got.clean_successes == 7 && got.clean_rerun_wait_sec == 8);
	CHECK(str_eq(got.idp_sign_in_url, STR("https://idp.example.org/in")));
	CHECK(str_eq(got.idp_sign_out_url, STR("https://idp.example.org/out")));
	CHECK(str_eq(got.idp_audience, STR("leasehold")) && str_eq(got.web_app_url, STR("http://127.0.0.1:8080")));
	CHECK(str_eq(got.access_portal_url, STR("https://portal.example.org/start")) && got.session_minutes == 61);
	CHECK(str_eq(got.mail_from, STR("sandbox@example.org")));
	CHECK(is_same(DOCUMENT_REPORTING, &defaults, &got));

	CHECK(read_policy(DOCUMENT_REPORTING, "costReportGroups: [alpha, \"no\"]\nrequireCostReportGroup: on\n", &got,
	                  &p));
	CHECK(got.cost_group_count == 2 && str_eq(got.cost_groups[1], STR("no")) && got.requires_cost_group);
	CHECK(is_same(DOCUMENT_GLOBAL, &defaults, &got));
	arena_fini(&arena);
}

/* One wrong value at a time: one problem, at its path, that says what would be right. */
TEST(each_key_refuses_what_it_cannot_be)
{
	static const struct {
		enum document_kind kind;
		const char        *text, *field, *message;
	} rows[] = {
		{ DOCUMENT_GLOBAL, "termsOfService: 7", "termsOfService", "must be a text (put it in quotes), not 7" },
		{ DOCUMENT_GLOBAL, "termsOfService: [a]", "termsOfService", "must be a text, not [\"a\"]" },
		{ DOCUMENT_GLOBAL, "termsOfService:", "termsOfService", "has no value; leave the key out" },
		{ DOCUMENT_GLOBAL, "maintenanceMode: 1", "maintenanceMode",
		  "must be true or false, without quotes, not 1" },
		{ DOCUMENT_GLOBAL, "maintenanceMode: 'true'", "maintenanceMode", "without quotes, not \"true\"" },
		{ DOCUMENT_GLOBAL, "maintenanceMode: nein", "maintenanceMode", "must be true or false" },
		{ DOCUMENT_GLOBAL, "isbManagedRegions: eu", "isbManagedRegions", "must be a list such as" },
		{ DOCUMENT_GLOBAL, "isbManagedRegions: []", "isbManagedRegions", "must have at least 1 element" },
		{ DOCUMENT_GLOBAL, "isbManagedRegions: [no-1, 7]", "isbManagedRegions.1", "must be a text" },
		{ DOCUMENT_GLOBAL, "leases: {requireMaxBudget: maybe}", "leases.requireMaxBudget",
		  "must be true or false" },
		{ DOCUMENT_GLOBAL, "leases: {maxBudget: -1}", "leases.maxBudget", "from 0 to 1000000000, not -1" },
		{ DOCUMENT_GLOBAL, "leases: {maxBudget: 1000000001}", "leases.maxBudget", "from 0 to 1000000000" },
		{ DOCUMENT_GLOBAL, "leases: {maxBudget: 50.5}", "leases.maxBudget", "must be a whole number" },
		{ DOCUMENT_GLOBAL, "leases: {maxBudget: '50'}", "leases.maxBudget", "not \"50\"" },
		{ DOCUMENT_GLOBAL, "leases: {maxBudget: 1_000}", "leases.maxBudget", "not \"1_000\"" },
		{ DOCUMENT_GLOBAL, "leases: {requireMaxDuration: 0}", "leases.requireMaxDuration",
		  "must be true or false" },
		{ DOCUMENT_GLOBAL, "leases: {maxDurationHours: 87601}", "leases.maxDurationHours", "from 0 to 87600" },
		{ DOCUMENT_GLOBAL, "leases: {maxLeasesPerUser: true}", "leases.maxLeasesPerUser",
		  "from 0 to 1000, not true" },
		{ DOCUMENT_GLOBAL, "leases: {onProjectedOverrun: stop}", "leases.onProjectedOverrun",
		  "must be alert, freeze or end" },
		{ DOCUMENT_GLOBAL, "leases: {onEstimatedOverrun: \"\"}", "leases.onEstimatedOverrun",
		  "must be alert, freeze or end" },
		{ DOCUMENT_GLOBAL, "leases: {ttl: 12:30}", "leases.ttl", "must be a whole number from 0 to 36500" },
		{ DOCUMENT_GLOBAL, "cleanup: {numberOfFailedAttemptsToCancelCleanup: 101}",
		  "cleanup.numberOfFailedAttemptsToCancelCleanup", "from 0 to 100, not 101" },
		{ DOCUMENT_GLOBAL, "cleanup: {waitBeforeRetryFailedAttemptSeconds: 86401}",
		  "cleanup.waitBeforeRetryFailedAttemptSeconds", "from 0 to 86400" },
		{ DOCUMENT_GLOBAL, "cleanup: {numberOfSuccessfulAttemptsToFinishCleanup: x}",
		  "cleanup.numberOfSuccessfulAttemptsToFinishCleanup", "not \"x\"" },
		{ DOCUMENT_GLOBAL, "cleanup: {waitBeforeRerunSuccessfulAttemptSeconds: 99999999999999999999}",
		  "cleanup.waitBeforeRerunSuccessfulAttemptSeconds", "from 0 to 86400" },
		{ DOCUMENT_GLOBAL, "auth: {idpSignInUrl: idp.example.org}", "auth.idpSignInUrl",
		  "begins with https:// or http://" },
		{ DOCUMENT_GLOBAL, "auth: {idpSignOutUrl: 'https://'}", "auth.idpSignOutUrl", "must be a URL" },
		{ DOCUMENT_GLOBAL, "auth: {webAppUrl: 'https://a b'}", "auth.webAppUrl", "must be a URL" },
		{ DOCUMENT_GLOBAL, "auth: {webAppUrl: 'javascript:alert(1)'}", "auth.webAppUrl", "must be a URL" },
		{ DOCUMENT_GLOBAL, "auth: {webAppUrl: \"https://a\\r\\nX: y\"}", "auth.webAppUrl", "one line" },
		{ DOCUMENT_GLOBAL, "auth: {awsAccessPortalUrl: 'http://portal'}", "auth.awsAccessPortalUrl",
		  "begins with https://" },
		{ DOCUMENT_GLOBAL, "auth: {idpAudience: \"a\\nb\"}", "auth.idpAudience", "one line" },
		{ DOCUMENT_GLOBAL, "auth: {sessionDurationInMinutes: 43201}", "auth.sessionDurationInMinutes",
		  "from 0 to 43200" },
		{ DOCUMENT_GLOBAL, "notification: {emailFrom: nobody}", "notification.emailFrom",
		  "must be an email address" },
		{ DOCUMENT_GLOBAL, "leases: 7", "leases",
		  "must be a section with the keys requireMaxBudget, maxBudget" },
		{ DOCUMENT_GLOBAL, "leases: [maxBudget]", "leases", "must be a section" },
		{ DOCUMENT_GLOBAL, "leases: {maxBudgt: 7}", "leases.maxBudgt",
		  "is not known; known here are requireMaxBudget" },
		{ DOCUMENT_GLOBAL, "maxBudget: 7", "maxBudget",
		  "is not known; known here are termsOfService, maintenanceMode" },
		{ DOCUMENT_GLOBAL, "costReportGroups: []", "costReportGroups", "is not known" },
		{ DOCUMENT_GLOBAL, "[a]", "input", "must be a document with the keys" },
		{ DOCUMENT_GLOBAL, "just words", "input", "must be a document with the keys" },
		{ DOCUMENT_GLOBAL, "a: b: c", "input", "line 1 column 5" },
		{ DOCUMENT_GLOBAL, "leases: &x {ttl: 1}", "input", "anchors" },
		{ DOCUMENT_GLOBAL, "leases: {ttl: !!int 1}", "input", "tags" },
		{ DOCUMENT_GLOBAL, "leases: {ttl: 1}\nleases: {ttl: 2}", "input", "appears twice" },
		{ DOCUMENT_GLOBAL, "{\"leases\": {\"ttl\": 1, \"ttl\": 2}}", "input", "appears twice" },
		{ DOCUMENT_REPORTING, "costReportGroups: alpha", "costReportGroups", "must be a list" },
		{ DOCUMENT_REPORTING, "costReportGroups: [no, yes, true]", "costReportGroups.2",
		  "must be a text (put it in quotes)" },
		{ DOCUMENT_REPORTING, "costReportGroups: [a, '']", "costReportGroups.1", "1 to 50 bytes" },
		{ DOCUMENT_REPORTING, "costReportGroups: [a, ' ']", "costReportGroups.1", "1 to 50 bytes" },
		{ DOCUMENT_REPORTING, "costReportGroups: [a, b, a]", "costReportGroups.2",
		  "is the same as costReportGroups.0" },
		{ DOCUMENT_REPORTING, "costReportGroups: [123456789012345678901234567890123456789012345678901x]",
		  "costReportGroups.0", "has 52 bytes, at most 50" },
		{ DOCUMENT_REPORTING, "requireCostReportGroup: 'on '", "requireCostReportGroup",
		  "must be true or false" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct policy   got;
		struct problems p;

		CASE(rows[i].text);
		CHECK(!read_policy(rows[i].kind, rows[i].text, &got, &p));
		CHECK(p.count == 1 && has_problem(&p, rows[i].field, rows[i].message));
	}
	arena_fini(&arena);
}

TEST(the_limits_themselves_are_allowed)
{
	struct policy   got;
	struct problems p;

	CHECK(read_policy(
	        DOCUMENT_GLOBAL,
	        "leases: {maxBudget: 1000000000, maxDurationHours: 0, maxLeasesPerUser: 1000, ttl: 0}\n"
	        "auth: {webAppUrl: '', awsAccessPortalUrl: '', idpAudience: ''}\nnotification: {emailFrom: ''}",
	        &got, &p));
	CHECK(got.budget_max_usd == 1000000000 && got.duration_max_hours == 0 && got.leases_per_user == 1000);
	CHECK(read_policy(DOCUMENT_REPORTING, "costReportGroups: [12345678901234567890123456789012345678901234567890x]",
	                  &got, &p) == false);
	CHECK(read_policy(DOCUMENT_REPORTING, "costReportGroups: [x2345678901234567890123456789012345678901234567890]",
	                  &got, &p));
	arena_fini(&arena);
}

static struct str groups_text(int count)
{
	struct str text = STR("costReportGroups:\n");

	for (int i = 0; i < count; i++)
		text = str_format(&arena, "%.*s- g%d\n", STR_ARG(text), i);
	return text;
}

TEST(a_hundred_groups_are_allowed_and_not_one_more)
{
	struct policy   got;
	struct problems p;

	CHECK(read_policy(DOCUMENT_REPORTING, groups_text(COST_GROUPS_MAX).p, &got, &p) && got.cost_group_count == 100);
	CHECK(!read_policy(DOCUMENT_REPORTING, groups_text(COST_GROUPS_MAX + 1).p, &got, &p));
	CHECK(has_problem(&p, "costReportGroups", "has 101 elements, at most 100"));
	arena_fini(&arena);
}

TEST(all_problems_are_named_at_once)
{
	struct policy   got;
	struct problems p;

	CHECK(!read_policy(DOCUMENT_GLOBAL,
	                   "maintenanceMode: 3\ncolour: blue\nleases:\n  maxBudget: none\n  ttl: -1\n  extra: 1\n"
	                   "auth:\n  webAppUrl: x\ncleanup: 5\nnotification:\n  emailFrom: a@b\n",
	                   &got, &p));
	CHECK(p.count == 8);
	CHECK(has_problem(&p, "maintenanceMode", "") && has_problem(&p, "colour", "not known"));
	CHECK(has_problem(&p, "leases.maxBudget", "\"none\"") && has_problem(&p, "leases.ttl", "-1"));
	CHECK(has_problem(&p, "leases.extra", "not known") && has_problem(&p, "auth.webAppUrl", "URL"));
	CHECK(has_problem(&p, "cleanup", "section") && has_problem(&p, "notification.emailFrom", "email"));
	arena_fini(&arena);
}

TEST(more_problems_than_are_kept_do_no_harm)
{
	struct str      text = STR("");
	struct policy   got;
	struct problems p;

	for (int i = 0; i < 3 * PROBLEMS_MAX; i++)
		text = str_format(&arena, "%.*skey%d: 1\n", STR_ARG(text), i);
	CHECK(!read_policy(DOCUMENT_GLOBAL, text.p, &got, &p) && p.count == PROBLEMS_MAX);
	arena_fini(&arena);
}

TEST(yes_and_no_are_text_unless_a_truth_value_is_wanted)
{
	struct policy   got;
	struct problems p;

	CHECK(read_policy(DOCUMENT_REPORTING, "costReportGroups: [no, NO, off]\nrequireCostReportGroup: Yes", &got,
	                  &p));
	CHECK(got.requires_cost_group && got.cost_group_count == 3 && str_eq(got.cost_groups[0], STR("no")));
	CHECK(read_policy(DOCUMENT_GLOBAL, "termsOfService: no\nmaintenanceMode: off", &got, &p));
	CHECK(str_eq(got.terms_of_service, STR("no")) && !got.is_maintenance);
	arena_fini(&arena);
}

TEST(json_is_read_as_json)
{
	struct policy   got;
	struct problems p;

	CHECK(read_policy(DOCUMENT_GLOBAL, " \n{\"termsOfService\": \"\\ud83d\\ude00 \\/\",\t\"leases\": {\"ttl\": 9}}",
	                  &got, &p));
	CHECK(got.ttl_days == 9 && str_eq(got.terms_of_service, STR("\xf0\x9f\x98\x80 /")));
	CHECK(read_policy(DOCUMENT_GLOBAL, "{leases: {ttl: 8}}", &got, &p) && got.ttl_days == 8);
	arena_fini(&arena);
}

/* --- writing --- */

static void check_round_trip(enum document_kind kind, const struct policy *policy)
{
	struct problems p = { .arena = &arena };
	struct policy   got;
	struct buf      b;

	policy_defaults(&got);
	buf_init(&b, TEXT_MAX);
	policy_write_yaml(kind, policy, &b);
	CHECK(!b.is_full);
	if (!policy_read(kind, buf_str(&b), &got, &p) || !is_same(kind, policy, &got))
		print_error("%s\n", b.p);
	CHECK(p.count == 0 && is_same(kind, policy, &got));
	buf_fini(&b);
}

TEST(what_is_written_is_read_back)
{
	static const char *const texts[] = {
		"",
		"plain",
		"two\nlines",
		"two\nlines\n",
		"three\n\nlines\n\n",
		" blank\nfirst",
		"\nfirst",
		"no",
		"12",
		"- a\n- b\n",
		"a: b",
		"# heading\n\ntext\n",
		"\ttab\nx\n",
		"a\n\tb\n",
		"a\n  b",
		"a\n  ",
		"a\r\nb\r\n",
		"'\"\\",
		"x #y",
		"a\n---\nb\n",
		"...",
		"\x01\x1f",
		"\x7f",
		"a\xc2\x85"
		"b",
		"\xe2\x80\xa8",
		"\xef\xbb\xbf"
		"x",
		"\xf0\x9f\x98\x80\n!\n",
		"\xef\xbf\xbe\xef\xbf\xbf",
		"a \nb \n",
		"{}",
		"|",
		"%\n%\n",
	};
	struct policy   policy;
	struct problems p;

	CHECK(read_policy(DOCUMENT_GLOBAL, whole, &policy, &p));
	check_round_trip(DOCUMENT_GLOBAL, &policy);
	policy_defaults(&policy);
	check_round_trip(DOCUMENT_GLOBAL, &policy);
	check_round_trip(DOCUMENT_REPORTING, &policy);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CASE(texts[i]);
		policy.terms_of_service = str_from(texts[i]);
		check_round_trip(DOCUMENT_GLOBAL, &policy);
	}
	policy.cost_groups[0] = STR("no");
	policy.cost_groups[1] = STR("a, b: [c]");
	policy.cost_groups[2] = STR("=1+1");
	policy.cost_group_count = 3;
	check_round_trip(DOCUMENT_REPORTING, &policy);
	arena_fini(&arena);
}

TEST(comments_explain_each_key)
{
	struct policy policy;
	struct buf    b;

	policy_defaults(&policy);
	buf_init(&b, TEXT_MAX);
	policy_write_yaml(DOCUMENT_GLOBAL, &policy, &b);
	CHECK(strstr(b.p, "\nleases:\n  # Every lease must have a budget.\n  requireMaxBudget: true\n") != NULL);
	CHECK(strstr(b.p, "\ntermsOfService: |\n  # Terms of service\n\n  This account") != NULL);
	CHECK(strstr(b.p, "isbManagedRegions:\n  - ") != NULL && strstr(b.p, "  emailFrom: \"\"\n") != NULL);
	buf_fini(&b);
}

TEST(json_has_the_sections)
{
	CLEANUP(json_freep) json_t *value = NULL;
	struct policy               policy;
	struct json_out             o;
	struct buf                  b;

	policy_defaults(&policy);
	buf_init(&b, TEXT_MAX);
	o = JSON_OUT(&b);
	json_open_object(&o);
	policy_write_json(DOCUMENT_GLOBAL, &policy, &o);
	json_close_object(&o);
	CHECK(json_parse(buf_str(&b), &value, NULL) == RC_OK);
	CHECK(json_object_size(value) == 7);
	CHECK(json_integer_value(json_object_get(json_object_get(value, "leases"), "maxBudget")) == 50);
	CHECK(json_object_size(json_object_get(value, "auth")) == 6);
	CHECK(json_is_array(json_object_get(value, "isbManagedRegions")));
	buf_fini(&b);
}

TEST(differences_are_told_in_words)
{
	struct policy         before, after;
	struct policy_changes changes;

	policy_defaults(&before);
	after = before;
	after.budget_max_usd = 75;
	after.is_maintenance = true;
	after.cost_group_count = 2;
	after.cost_groups[0] = STR("a");
	after.cost_groups[1] = STR("b");
	policy_compare(DOCUMENT_GLOBAL, &before, &after, &arena, &changes);
	CHECK(changes.count == 2 && str_eq(changes.items[0].key, STR("maintenanceMode")));
	CHECK(str_eq(changes.items[1].key, STR("leases.maxBudget")) && str_eq(changes.items[1].from, STR("50")));
	CHECK(str_eq(changes.items[1].to, STR("75")));
	policy_compare(DOCUMENT_REPORTING, &before, &after, &arena, &changes);
	CHECK(changes.count == 1 && str_eq(changes.items[0].from, STR("")) && str_eq(changes.items[0].to, STR("a, b")));
	arena_fini(&arena);
}

/* --- approval rules --- */

static const char rules_text[] =
        "rules:\n"
        "  - id: students # may try\n"
        "    when: {template: [small, 'no'], domain: '*.ac.uk', maxHours: 24, maxBudget: 10.5}\n"
        "    then: approve\n"
        "  - {id: staff, when: {role: [Manager, Admin], group: a}, then: approve}\n"
        "  - {id: rest, when: {}, then: deny}\n";

TEST(approval_rules_are_a_document_too)
{
	static const char *const nothing[] = { "", "# nothing\n", "rules: []", "{\"rules\": []}" };
	struct policy            got, defaults;
	struct problems          p;

	policy_defaults(&defaults);
	for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
		CASE(nothing[i]);
		CHECK(read_policy(DOCUMENT_APPROVAL, nothing[i], &got, &p) && !got.approval);
		check_round_trip(DOCUMENT_APPROVAL, &got);
	}
	CHECK(read_policy(DOCUMENT_APPROVAL, rules_text, &got, &p) && got.approval->count == 3);
	CHECK(str_eq(got.approval->rules[0].templates.items[1], STR("no")));
	CHECK(got.approval->rules[0].max_spend == 10500000 && got.approval->rules[2].then == APPROVAL_DENY);
	CHECK(is_same(DOCUMENT_GLOBAL, &defaults, &got) && !is_same(DOCUMENT_APPROVAL, &defaults, &got));
	check_round_trip(DOCUMENT_APPROVAL, &got);
	CHECK(policy_read(DOCUMENT_GLOBAL, STR("leases: {ttl: 9}"), &got, &p) && got.approval->count == 3);
	CHECK(read_policy(DOCUMENT_APPROVAL,
	                  "rules: [{id: a, when: {template: \"\\x7f\\x85\\u2028\\ufeff'\\\"#\\t\"}, then: ask}]", &got,
	                  &p));
	check_round_trip(DOCUMENT_APPROVAL, &got);
	arena_fini(&arena);
}

TEST(all_that_is_wrong_with_approval_rules_is_told_at_once)
{
	struct policy   got;
	struct problems p;

	CHECK(!read_policy(
	        DOCUMENT_APPROVAL,
	        "rules:\n- {id: a b, when: {domain: '*gov.uk'}, then: maybe}\n- {id: c, when: {color: red}}\n", &got,
	        &p));
	CHECK(has_problem(&p, "rules.0.id", "letters, digits") && has_problem(&p, "rules.0.when.domain", "*.gov.uk"));
	CHECK(has_problem(&p, "rules.0.then", "approve, ask or deny") && has_problem(&p, "rules.1.when", "'color'"));
	CHECK(p.count == 5);
	CHECK(!read_policy(DOCUMENT_APPROVAL, "rules: {", &got, &p) && has_problem(&p, "input", "line"));
	CHECK(!read_policy(DOCUMENT_APPROVAL, "[]", &got, &p) && has_problem(&p, "input", "an object with rules"));
	arena_fini(&arena);
}

static struct policy_changes rule_changes(const char *before, const char *after)
{
	struct policy_changes changes;
	struct policy         old, new;
	struct problems       p;

	CHECK(read_policy(DOCUMENT_APPROVAL, before, &old, &p) && read_policy(DOCUMENT_APPROVAL, after, &new, &p));
	policy_compare(DOCUMENT_APPROVAL, &old, &new, &arena, &changes);
	return changes;
}

static struct str many_rules(int count, const char *then)
{
	struct str text = STR("rules:\n");

	for (int i = 0; i < count; i++)
		text = str_format(&arena, "%.*s- {id: r%d, when: {maxHours: 1}, then: %s}\n", STR_ARG(text), i, then);
	return text;
}

TEST(changed_rules_are_told_one_by_one)
{
	struct policy_changes c =
	        rule_changes("rules: [{id: a, when: {group: x}, then: ask}, {id: b, when: {group: y}, then: ask}]",
	                     "rules: [{id: b, when: {group: y}, then: deny}, {id: c, when: {}, then: ask}]");

	CHECK(c.count == 3 && str_eq(c.items[0].key, STR("rules.b")) && str_eq(c.items[1].key, STR("rules.c")));
	CHECK(strstr(c.items[0].from.p, "\"ask\"") && strstr(c.items[0].to.p, "\"deny\""));
	CHECK(str_eq(c.items[1].from, STR("none")));
	CHECK(str_eq(c.items[2].key, STR("rules.a")) && str_eq(c.items[2].to, STR("none")));
	c = rule_changes("rules: [{id: a, when: {group: x}, then: ask}, {id: b, when: {group: y}, then: ask}]",
	                 "rules: [{id: b, when: {group: y}, then: ask}, {id: a, when: {group: x}, then: ask}]");
	CHECK(c.count == 1 && str_eq(c.items[0].key, STR("rules")) && str_eq(c.items[0].from, STR("a, b")));
	c = rule_changes(many_rules(100, "ask").p, many_rules(100, "deny").p);
	CHECK(c.count == POLICY_KEYS_MAX && strstr(c.items[c.count - 1].to.p, "69 more"));
	arena_fini(&arena);
}

/* --- in the store --- */

static struct document_call *call_new(enum document_kind kind, const char *text, uint64_t seen)
{
	struct document_call *c = mem_new(struct document_call);

	c->kind = kind;
	c->actor = STR("admin");
	c->request_id = STR("r-1");
	c->text = str_from(text);
	c->seen_version = seen;
	return c;
}

static size_t count_events_in(struct store *store, struct arena *a, struct event_list *ret)
{
	*ret = (struct event_list){ .type = STR(EVENT_POLICY_CHANGED), .subject = STR("policy/global"), .limit = 100 };
	CHECK(store_read(store, event_list, ret, a, NULL) == RC_OK);
	return ret->count;
}

static size_t count_events(struct kernel_rig *r, struct event_list *ret)
{
	return count_events_in(r->store, &r->arena, ret);
}

TEST(a_document_is_changed_by_who_has_seen_its_version)
{
	struct kernel_rig     rig = { 0 };
	struct document_call *c = call_new(DOCUMENT_GLOBAL, "leases: {maxBudget: 75}", 0);
	struct event_list     events;
	struct err            e = { 0 };

	rig_open(&rig);
	rig_run(&rig, document_get, c);
	CHECK(c->document.version == 0 && c->policy.budget_max_usd == 50 && c->problems.count == 0);
	CHECK(strstr(c->document.text.p, "maxBudget: 50") != NULL);

	rig_run(&rig, document_put, c);
	CHECK(c->document.version == 1 && c->policy.version == 1 && c->changes.count == 1);
	CHECK(count_events(&rig, &events) == 1);
	CHECK(str_eq(events.events[0].actor, STR("admin")));
	CHECK(strstr(events.events[0].detail.p, "\"oldVersion\":0,\"newVersion\":1") != NULL);
	CHECK(strstr(events.events[0].detail.p, "{\"key\":\"leases.maxBudget\",\"from\":\"50\",\"to\":\"75\"}") !=
	      NULL);

	c->text = STR("leases: {maxBudget: 80}");
	CHECK(rig_try(&rig, document_put, c, &e) == RC_CONFLICT && strstr(e.msg, "is at version 1, not 0") != NULL);
	CHECK(c->document.version == 1 && str_eq(c->document.text, STR("leases: {maxBudget: 75}")));

	c->seen_version = 1;
	c->text = STR("leases: {maxBudget: 75}");
	rig_run(&rig, document_put, c);
	CHECK(c->document.version == 1 && count_events(&rig, &events) == 1);

	c->text = STR("leases: {maxBudget: x, ttl: y}");
	err_clear(&e);
	CHECK(rig_try(&rig, document_put, c, &e) == RC_INVALID && c->problems.count == 2);
	CHECK(strstr(e.msg, "2 problems, the first: leases.maxBudget") != NULL);
	rig_run(&rig, document_get, c);
	CHECK(c->document.version == 1 && c->policy.budget_max_usd == 75);
	free(c);
	rig_close(&rig);
}

TEST(a_check_changes_nothing)
{
	struct kernel_rig     rig = { 0 };
	struct document_call *c = call_new(DOCUMENT_REPORTING, "costReportGroups: [a]", 0);
	struct event_list     events;

	rig_open(&rig);
	rig_run(&rig, document_check, c);
	CHECK(c->problems.count == 0 && c->changes.count == 1 && c->document.version == 0);
	c->text = STR("costReportGroups: 7");
	rig_run(&rig, document_check, c);
	CHECK(c->problems.count == 1 && c->changes.count == 0);
	rig_run(&rig, document_get, c);
	CHECK(c->document.version == 0 && count_events(&rig, &events) == 0);
	free(c);
	rig_close(&rig);
}

struct racer {
	struct store         *store;
	struct document_call *call;
	enum rc               rc;
};

static void *race(void *arg)
{
	struct racer *r = arg;
	struct arena  a = { 0 };

	r->rc = store_run(r->store, document_put, r->call, &a, NULL);
	arena_fini(&a);
	return NULL;
}

TEST(of_those_who_edit_at_the_same_time_one_wins)
{
	enum { RACERS = 8, ROUNDS = 20 };
	struct pool           pool = { 0 };
	struct kernel_options options;
	struct kernel        *kernel;
	struct event_list     events;

	pool_open_sqlite(&pool);
	options = *kernel_options(pool.kernel);
	options.store = pool.backend; /* the fault store around it is for one thread */
	kernel = kernel_new(&options);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct racer racers[RACERS];
		pthread_t    threads[RACERS];
		int          won = 0, refused = 0;

		for (int i = 0; i < RACERS; i++) {
			char text[64];

			snprintf(text, sizeof(text), "leases: {maxBudget: %d}", 100 + (int)round * RACERS + i);
			racers[i] = (struct racer){ pool.backend, call_new(DOCUMENT_GLOBAL, mem_strdup(text), round),
				                    RC_OK };
			CHECK(pthread_create(&threads[i], NULL, race, &racers[i]) == 0);
		}
		for (int i = 0; i < RACERS; i++) {
			pthread_join(threads[i], NULL);
			won += racers[i].rc == RC_OK;
			refused += racers[i].rc == RC_CONFLICT;
			free((void *)(uintptr_t)racers[i].call->text.p);
			free(racers[i].call);
		}
		CHECK(won == 1 && refused == RACERS - 1);
	}
	CHECK(count_events_in(pool.backend, &pool.arena, &events) == ROUNDS);
	pool_close(&pool);
	kernel_free(kernel);
}

/* --- in force --- */

static void put(struct kernel_rig *rig, enum document_kind kind, const char *text, uint64_t seen, struct document *ret)
{
	struct document_call *c = call_new(kind, text, seen);

	rig_run(rig, document_put, c);
	*ret = c->document;
	free(c);
}

TEST(the_policy_in_force_follows_the_store)
{
	struct kernel_rig     rig = { 0 };
	struct policy_holder *h;
	const struct policy  *first, *second;
	struct document       d;

	rig_open(&rig);
	h = policy_holder_new(rig.store, &rig.clock);
	first = policy_current(h);
	CHECK(first->budget_max_usd == 50 && first->version == 0);
	CHECK(policy_holder_refresh(h, NULL) == RC_OK && policy_current(h) == first);

	put(&rig, DOCUMENT_GLOBAL, "leases: {maxBudget: 75}", 0, &d);
	CHECK(policy_holder_take(h, DOCUMENT_GLOBAL, &d, NULL) == RC_OK);
	second = policy_current(h);
	CHECK(second->budget_max_usd == 75 && second->version == 1 && first->budget_max_usd == 50);
	put(&rig, DOCUMENT_REPORTING, "costReportGroups: [a]", 0, &d);
	CHECK(policy_holder_refresh(h, NULL) == RC_OK);
	CHECK(policy_current(h)->budget_max_usd == 75 && policy_current(h)->cost_group_count == 1);

	d = (struct document){ .text = STR("leases: {maxBudget: 1}"), .version = 1 };
	CHECK(policy_holder_take(h, DOCUMENT_GLOBAL, &d, NULL) == RC_OK && policy_current(h)->budget_max_usd == 75);
	d = (struct document){ .text = STR("leases: 3"), .version = 9 };
	CHECK(policy_holder_take(h, DOCUMENT_GLOBAL, &d, NULL) == RC_CORRUPT &&
	      policy_current(h)->budget_max_usd == 75);
	policy_holder_free(h);
	rig_close(&rig);
}

TEST(a_configuration_that_cannot_be_read_locks_the_doors)
{
	struct policy_holder *h = policy_holder_new(NULL, &clock_real);
	struct document       d = { .text = STR("leases: {maxBudget: 75, added: later}"), .version = 7 };
	const struct policy  *locked;
	struct err            e = { 0 };

	CHECK(policy_holder_take(h, DOCUMENT_GLOBAL, &d, &e) == RC_CORRUPT && strstr(e.msg, "leases.added") != NULL);
	locked = policy_current(h);
	CHECK(locked->is_maintenance && locked->budget_max_usd == 50);
	CHECK(policy_holder_take(h, DOCUMENT_GLOBAL, &d, NULL) == RC_CORRUPT && policy_current(h) == locked);
	d = (struct document){ .text = STR("leases: {maxBudget: 75}"), .version = 8 };
	CHECK(policy_holder_take(h, DOCUMENT_GLOBAL, &d, NULL) == RC_OK);
	CHECK(!policy_current(h)->is_maintenance && policy_current(h)->budget_max_usd == 75);
	policy_holder_free(h);
}

TEST(rules_that_cannot_be_read_have_a_person_asked_about_everything)
{
	struct policy_holder *h = policy_holder_new(NULL, &clock_real);
	struct document      d = { .text = STR("rules: [{id: a, when: {added: later}, then: approve}]"), .version = 4 };
	const struct policy *careful;

	CHECK(!policy_current(h)->approval);
	CHECK(policy_holder_take(h, DOCUMENT_APPROVAL, &d, NULL) == RC_CORRUPT);
	careful = policy_current(h);
	CHECK(!careful->is_maintenance && careful->approval->count == 1);
	CHECK(careful->approval->rules[0].then == APPROVAL_ASK && !careful->approval->rules[0].templates.count);
	CHECK(policy_holder_take(h, DOCUMENT_APPROVAL, &d, NULL) == RC_CORRUPT && policy_current(h) == careful);

	d = (struct document){ .text = STR("leases: {maxBudget: 75}"), .version = 1 };
	CHECK(policy_holder_take(h, DOCUMENT_GLOBAL, &d, NULL) == RC_OK);
	CHECK(policy_current(h)->budget_max_usd == 75 && policy_current(h)->approval == careful->approval);

	d = (struct document){ .text = str_from(rules_text), .version = 5 };
	CHECK(policy_holder_take(h, DOCUMENT_APPROVAL, &d, NULL) == RC_OK && policy_current(h)->approval->count == 3);
	d = (struct document){ .text = STR("rules: 3"), .version = 6 };
	CHECK(policy_holder_take(h, DOCUMENT_APPROVAL, &d, NULL) == RC_CORRUPT &&
	      policy_current(h)->approval->count == 3);
	policy_holder_free(h);
}

static enum rc store_document(struct session *s, void *arg, struct err *e)
{
	(void)e;
	session_add(s, &document_type, arg);
	return RC_OK;
}

TEST(a_document_that_cannot_be_read_keeps_no_other_away)
{
	struct kernel_rig     rig = { 0 };
	struct policy_holder *h;
	struct document       bad = { .name = STR("global"), .text = STR("leases: 3"), .edited_ms = 1 };
	struct document       d;

	rig_open(&rig);
	h = policy_holder_new(rig.store, &rig.clock);
	rig_run(&rig, store_document, &bad);
	put(&rig, DOCUMENT_APPROVAL, rules_text, 0, &d);
	CHECK(policy_holder_refresh(h, NULL) == RC_CORRUPT);
	CHECK(policy_current(h)->is_maintenance && policy_current(h)->approval->count == 3);
	policy_holder_free(h);
	rig_close(&rig);
}

TEST(old_policies_stay_for_a_minute_and_are_not_too_many)
{
	struct clock          clock = clock_test(0);
	struct policy_holder *h = policy_holder_new(NULL, &clock);
	const struct policy  *kept;
	struct document       d = { .text = STR("leases: {maxBudget: 75}") };
	enum rc               rc = RC_OK;
	int                   taken = 0;

	while (!rc && taken < 2 * POLICY_GENERATIONS_MAX) {
		d.version++;
		rc = policy_holder_take(h, DOCUMENT_GLOBAL, &d, NULL);
		taken += !rc;
	}
	CHECK(rc == RC_LIMITED && taken == POLICY_GENERATIONS_MAX - 1);
	kept = policy_current(h);
	clock.test_mono_ms += POLICY_VALID_MS + 1;
	CHECK(policy_holder_take(h, DOCUMENT_GLOBAL, &d, NULL) == RC_OK);
	clock.test_mono_ms += POLICY_VALID_MS;
	d.version++;
	CHECK(policy_holder_take(h, DOCUMENT_GLOBAL, &d, NULL) == RC_OK);
	CHECK(kept->budget_max_usd == 75); /* replaced a minute ago, not longer */
	policy_holder_free(h);
}

static void *read_on(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		const struct policy *p = policy_current(arg);

		CHECK(p->budget_max_usd == p->duration_max_hours); /* both of one document */
	}
	return NULL;
}

TEST(readers_see_one_whole_policy_while_it_changes)
{
	struct policy_holder *h = policy_holder_new(NULL, &clock_real);
	struct document       d = { .text = STR("leases: {maxBudget: 1, maxDurationHours: 1}"), .version = 1 };
	pthread_t             readers[4];

	CHECK(policy_holder_take(h, DOCUMENT_GLOBAL, &d, NULL) == RC_OK);
	for (size_t i = 0; i < ARRAY_LEN(readers); i++)
		CHECK(pthread_create(&readers[i], NULL, read_on, h) == 0);
	while (d.version < 200) {
		char text[80];

		d.version++;
		snprintf(text, sizeof(text), "leases: {maxBudget: %d, maxDurationHours: %d}", (int)d.version,
		         (int)d.version);
		d.text = str_from(text);
		CHECK(policy_holder_take(h, DOCUMENT_GLOBAL, &d, NULL) == RC_OK);
	}
	for (size_t i = 0; i < ARRAY_LEN(readers); i++)
		pthread_join(readers[i], NULL);
	CHECK(policy_current(h)->budget_max_usd == 200);
	policy_holder_free(h);
}
