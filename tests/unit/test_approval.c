/* SPDX-License-Identifier: Apache-2.0 */
/* test_approval.c - rules for requests: which one decides, why, and every way to write them wrongly. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "domain/approval.h"
#include "domain/lease.h"
#include "lease_rig.h"

#define UUID "0f8fad5b-d9cb-469f-a165-70867728950e"

static struct approval_question small_request(void)
{
	return (struct approval_question){ .template_uuid = STR(UUID),
		                           .template_name = STR("small"),
		                           .email = STR("ann@dept.gov.uk"),
		                           .roles = ROLE_USER,
		                           .cost_group = STR("red"),
		                           .max_spend = 50 * (int64_t)LEASE_USD,
		                           .duration_ms = 24 * (int64_t)LEASE_HOUR_MS };
}

/* A policy of one rule that approves under this condition. */
static struct approval_policy approve_when(const char *when, struct arena *a)
{
	struct approval_policy policy = { 0 };
	struct problems        problems = { .arena = a };
	struct str text = str_format(a, "{\"rules\":[{\"id\":\"r\",\"when\":%s,\"then\":\"approve\"}]}", when);

	CHECK(rules_read(text, a, &policy, &problems) == RC_OK && policy.count == 1);
	return policy;
}

static const struct {
	const char *label, *when;
	bool        matches;
} conditions[] = {
	{ "no condition matches everything", "{}", true },

	{ "the template by its name", "{\"template\":\"small\"}", true },
	{ "the template by its uuid", "{\"template\":\"" UUID "\"}", true },
	{ "another template", "{\"template\":\"large\"}", false },
	{ "a part of the name is not the name", "{\"template\":\"smal\"}", false },
	{ "one of several templates", "{\"template\":[\"large\",\"small\"]}", true },
	{ "none of several templates", "{\"template\":[\"large\",\"huge\"]}", false },

	{ "the role", "{\"role\":\"User\"}", true },
	{ "another role", "{\"role\":\"Admin\"}", false },
	{ "one of several roles", "{\"role\":[\"Admin\",\"User\"]}", true },

	{ "the domain itself", "{\"domain\":\"dept.gov.uk\"}", true },
	{ "the domain in another case", "{\"domain\":\"DEPT.Gov.uk\"}", true },
	{ "the domain above it", "{\"domain\":\"gov.uk\"}", false },
	{ "all below a domain", "{\"domain\":\"*.gov.uk\"}", true },
	{ "all below a domain in another case", "{\"domain\":\"*.GOV.UK\"}", true },
	{ "all below a top-level domain", "{\"domain\":\"*.uk\"}", true },
	{ "all below the domain itself", "{\"domain\":\"*.dept.gov.uk\"}", false },
	{ "all below another", "{\"domain\":\"*.ac.uk\"}", false },
	{ "one of several domains", "{\"domain\":[\"*.ac.uk\",\"*.gov.uk\"]}", true },

	{ "the group", "{\"group\":\"red\"}", true },
	{ "another group", "{\"group\":\"blue\"}", false },

	{ "a budget that equals the limit", "{\"maxBudget\":50}", true },
	{ "a budget a cent above the limit", "{\"maxBudget\":49.99}", false },
	{ "a duration that equals the limit", "{\"maxHours\":24}", true },
	{ "a duration above the limit", "{\"maxHours\":23.5}", false },

	{ "all of them",
	  "{\"template\":\"small\",\"role\":\"User\",\"domain\":\"*.gov.uk\",\"group\":\"red\",\"maxBudget\":50,\"maxHours\":24}",
	  true },
	{ "all but the last",
	  "{\"template\":\"small\",\"role\":\"User\",\"domain\":\"*.gov.uk\",\"group\":\"red\",\"maxBudget\":50,\"maxHours\":1}",
	  false },
	{ "all but the first",
	  "{\"template\":\"big\",\"role\":\"User\",\"domain\":\"*.gov.uk\",\"group\":\"red\",\"maxBudget\":50,\"maxHours\":24}",
	  false },
};

TEST(a_rule_matches_when_all_its_conditions_hold)
{
	struct arena             a = { 0 };
	struct approval_question q = small_request();

	for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
		struct approval_policy policy = approve_when(conditions[i].when, &a);
		struct approval_answer answer, explained;

		approval_evaluate(&policy, &q, NULL, &answer);
		approval_evaluate(&policy, &q, &a, &explained);
		CASE(conditions[i].label);
		CHECK(answer.verdict == (conditions[i].matches ? APPROVAL_APPROVE : APPROVAL_ASK));
		CHECK(str_eq(answer.rule, conditions[i].matches ? STR("r") : STR("")) && answer.note_count == 0);
		CHECK(explained.verdict == answer.verdict && explained.note_count == 1);
		CHECK(explained.notes[0].matches == conditions[i].matches && explained.notes[0].why.n > 0);
	}
	arena_fini(&a);
}

TEST(a_wildcard_stops_at_a_label)
{
	static const struct {
		const char *email;
		bool        matches;
	} cases[] = {
		{ "a@x.gov.uk", true },
		{ "a@x.y.GOV.uk", true },
		{ "a@gov.uk", false },
		{ "a@evilgov.uk", false },
		{ "a@x.evilgov.uk", false },
		{ "a@gov.uk.evil.com", false },
		{ "a@x.gov.uk.co", false },
		{ "x.gov.uk", false },
		{ "a@.gov.uk", false },
		{ "a@", false },
		{ "", false },
	};
	struct arena           a = { 0 };
	struct approval_policy policy = approve_when("{\"domain\":\"*.gov.uk\"}", &a);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct approval_question q = small_request();
		struct approval_answer   answer;

		q.email = str_from(cases[i].email);
		approval_evaluate(&policy, &q, NULL, &answer);
		CASE(cases[i].email);
		CHECK((answer.verdict == APPROVAL_APPROVE) == cases[i].matches);
	}
	arena_fini(&a);
}

TEST(a_request_that_leaves_something_open_is_over_every_limit)
{
	static const char *const whens[] = { "{\"maxBudget\":1000}", "{\"maxHours\":1000}", "{\"group\":\"red\"}",
		                             "{\"template\":\"small\"}" };
	struct arena             a = { 0 };
	struct approval_question q = { .email = STR("ann@dept.gov.uk"), .roles = ROLE_USER };

	for (size_t i = 0; i < ARRAY_LEN(whens); i++) {
		struct approval_policy policy = approve_when(whens[i], &a);
		struct approval_answer answer;

		approval_evaluate(&policy, &q, &a, &answer);
		CASE(whens[i]);
		CHECK(answer.verdict == APPROVAL_ASK && str_starts_with(answer.notes[0].why, STR("there is no ")));
	}
	arena_fini(&a);
}

TEST(a_reason_too_long_to_tell_is_still_a_reason)
{
	struct arena             a = { 0 };
	struct approval_policy   policy = approve_when("{\"template\":\"large\"}", &a);
	struct approval_question q = small_request();
	struct approval_answer   answer;
	char                     name[5000];

	memset(name, 'x', sizeof(name));
	q.template_name = str_of(name, sizeof(name));
	approval_evaluate(&policy, &q, &a, &answer);
	CHECK(answer.verdict == APPROVAL_ASK && !answer.notes[0].matches);
	arena_fini(&a);
}

static const char three_rules[] =
        "{\"rules\":[{\"id\":\"no-contractors\",\"when\":{\"domain\":\"*.contractor.example\"},\"then\":\"deny\"},"
        "{\"id\":\"small\",\"when\":{\"template\":\"small\",\"maxBudget\":50},\"then\":\"approve\"},"
        "{\"id\":\"managers\",\"when\":{\"role\":[\"Manager\",\"Admin\"]},\"then\":\"approve\"},"
        "{\"id\":\"rest\",\"when\":{},\"then\":\"ask\"}]}";

TEST(the_first_rule_that_matches_decides)
{
	static const struct {
		const char           *label, *email, *template;
		unsigned              roles;
		enum approval_verdict verdict;
		const char           *rule;
		size_t                notes;
	} cases[] = {
		{ "the first", "bob@x.contractor.example", "small", ROLE_ADMIN, APPROVAL_DENY, "no-contractors", 1 },
		{ "the second", "ann@dept.gov.uk", "small", ROLE_USER, APPROVAL_APPROVE, "small", 2 },
		{ "the third", "ann@dept.gov.uk", "large", ROLE_USER | ROLE_MANAGER, APPROVAL_APPROVE, "managers", 3 },
		{ "the last", "ann@dept.gov.uk", "large", ROLE_USER, APPROVAL_ASK, "rest", 4 },
	};
	struct arena           a = { 0 };
	struct approval_policy policy;
	struct problems        problems = { .arena = &a };

	CHECK(rules_read(str_from(three_rules), &a, &policy, &problems) == RC_OK && policy.count == 4);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct approval_question q = small_request();
		struct approval_answer   answer;

		q.email = str_from(cases[i].email);
		q.template_name = str_from(cases[i].template);
		q.roles = cases[i].roles;
		approval_evaluate(&policy, &q, &a, &answer);
		CASE(cases[i].label);
		CHECK(answer.verdict == cases[i].verdict && str_eq(answer.rule, str_from(cases[i].rule)));
		CHECK(answer.note_count == cases[i].notes && answer.notes[answer.note_count - 1].matches);
	}
	arena_fini(&a);
}

TEST(an_explanation_names_every_condition_that_does_not_hold)
{
	struct arena           a = { 0 };
	struct approval_policy policy = approve_when(
	        "{\"template\":[\"large\",\"huge\"],\"role\":[\"Manager\",\"Admin\"],\"domain\":\"*.ac.uk\","
	        "\"group\":\"blue\",\"maxBudget\":10.5,\"maxHours\":8}",
	        &a);
	struct approval_question q = small_request();
	struct approval_answer   answer;

	approval_evaluate(&policy, &q, &a, &answer);
	CHECK(answer.note_count == 1 && !answer.notes[0].matches && str_eq(answer.notes[0].rule, STR("r")));
	CHECK(str_eq(answer.notes[0].why,
	             STR("the template is small, not large or huge; the owner is not Manager or Admin; "
	                 "the domain is dept.gov.uk, not *.ac.uk; the cost report group is red, not blue; "
	                 "the budget is 50 dollars, more than 10.5; the duration is 24 hours, more than 8")));
	arena_fini(&a);
}

TEST(without_rules_a_person_is_asked)
{
	struct arena             a = { 0 };
	struct approval_policy   policy = { .count = 7 };
	struct approval_question q = small_request();
	struct approval_answer   answer;
	struct problems          problems = { .arena = &a };

	CHECK(rules_read(STR("{\"rules\":[]}"), &a, &policy, &problems) == RC_OK && policy.count == 0);
	approval_evaluate(&policy, &q, &a, &answer);
	CHECK(answer.verdict == APPROVAL_ASK && answer.rule.n == 0 && answer.note_count == 0);
	arena_fini(&a);
}

#define RULE(when)      "{\"rules\":[{\"id\":\"r\",\"when\":" when ",\"then\":\"ask\"}]}"
#define WHEN(condition) RULE("{" condition "}")

/* The paths of the problems, joined. */
static const struct {
	const char *label, *text, *paths;
} mistakes[] = {
	{ "a list", "[]", "input" },
	{ "no rules", "{}", "rules" },
	{ "rules that are no list", "{\"rules\":{}}", "rules" },
	{ "an unknown member", "{\"rules\":[],\"default\":\"approve\"}", "input" },
	{ "a rule that is no object", "{\"rules\":[1]}", "rules.0" },
	{ "an empty rule", "{\"rules\":[{}]}", "rules.0.id rules.0.then rules.0.when" },
	{ "an unknown member of a rule", "{\"rules\":[{\"id\":\"r\",\"when\":{},\"then\":\"ask\",\"else\":\"deny\"}]}",
	  "rules.0" },
	{ "an id with a blank", "{\"rules\":[{\"id\":\"a b\",\"when\":{},\"then\":\"ask\"}]}", "rules.0.id" },
	{ "an id that is a number", "{\"rules\":[{\"id\":1,\"when\":{},\"then\":\"ask\"}]}", "rules.0.id" },
	{ "an id that is empty", "{\"rules\":[{\"id\":\"\",\"when\":{},\"then\":\"ask\"}]}", "rules.0.id" },
	{ "an id of another rule",
	  "{\"rules\":[{\"id\":\"r\",\"when\":{\"group\":\"x\"},\"then\":\"ask\"},{\"id\":\"r\",\"when\":{},\"then\":\"ask\"}]}",
	  "rules.1.id" },
	{ "an unknown verdict", "{\"rules\":[{\"id\":\"r\",\"when\":{},\"then\":\"Approve\"}]}", "rules.0.then" },
	{ "a verdict that is null", "{\"rules\":[{\"id\":\"r\",\"when\":{},\"then\":null}]}", "rules.0.then" },
	{ "a rule behind one that matches everything",
	  "{\"rules\":[{\"id\":\"a\",\"when\":{},\"then\":\"ask\"},{\"id\":\"b\",\"when\":{\"group\":\"x\"},\"then\":\"deny\"}]}",
	  "rules.1" },
	{ "no conditions at all", "{\"rules\":[{\"id\":\"r\",\"then\":\"ask\"}]}", "rules.0.when" },
	{ "conditions that are a text", RULE("\"always\""), "rules.0.when" },
	{ "an unknown condition", WHEN("\"maxbudget\":5"), "rules.0.when" },
	{ "an empty template", WHEN("\"template\":\"\""), "rules.0.when.template" },
	{ "a template that is null", WHEN("\"template\":null"), "rules.0.when.template" },
	{ "an empty list", WHEN("\"template\":[]"), "rules.0.when.template" },
	{ "a list with a number", WHEN("\"template\":[\"a\",1]"), "rules.0.when.template" },
	{ "an unknown role", WHEN("\"role\":\"user\""), "rules.0.when.role" },
	{ "an unknown role in a list", WHEN("\"role\":[\"User\",\"Root\"]"), "rules.0.when.role" },
	{ "a star alone", WHEN("\"domain\":\"*\""), "rules.0.when.domain" },
	{ "a star and a dot", WHEN("\"domain\":\"*.\""), "rules.0.when.domain" },
	{ "a star within a label", WHEN("\"domain\":\"*gov.uk\""), "rules.0.when.domain" },
	{ "a star in the middle", WHEN("\"domain\":\"a.*.uk\""), "rules.0.when.domain" },
	{ "two stars", WHEN("\"domain\":\"*.*.uk\""), "rules.0.when.domain" },
	{ "a domain with an @", WHEN("\"domain\":\"@gov.uk\""), "rules.0.when.domain" },
	{ "a domain without a dot", WHEN("\"domain\":\"localhost\""), "rules.0.when.domain" },
	{ "a budget of nothing", WHEN("\"maxBudget\":0"), "rules.0.when.maxBudget" },
	{ "a budget below nothing", WHEN("\"maxBudget\":-1"), "rules.0.when.maxBudget" },
	{ "a budget that is a text", WHEN("\"maxBudget\":\"50\""), "rules.0.when.maxBudget" },
	{ "a budget that is too large", WHEN("\"maxBudget\":1e300"), "rules.0.when.maxBudget" },
	{ "hours that are null", WHEN("\"maxHours\":null"), "rules.0.when.maxHours" },
	{ "several at once", WHEN("\"role\":1,\"domain\":\"x\",\"maxHours\":0"),
	  "rules.0.when.role rules.0.when.domain rules.0.when.maxHours" },
};

TEST(every_mistake_is_named_with_its_place)
{
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		struct approval_policy policy = { .count = 7 };
		struct problems        problems = { .arena = &a };
		char                   paths[256] = "";
		size_t                 n = 0;

		CASE(mistakes[i].label);
		CHECK(rules_read(str_from(mistakes[i].text), &a, &policy, &problems) == RC_INVALID &&
		      policy.count == 7);
		for (size_t j = 0; j < problems.count; j++) {
			CHECK(problems.items[j].message.n > 10);
			n += (size_t)snprintf(paths + n, sizeof(paths) - n, "%s%.*s", j ? " " : "",
			                      STR_ARG(problems.items[j].field));
		}
		CHECK(strcmp(paths, mistakes[i].paths) == 0);
	}
	arena_fini(&a);
}

static enum rc parse_many(size_t rules, size_t groups, struct arena *a)
{
	CLEANUP(buf_fini) struct buf b;
	struct approval_policy       policy;
	struct problems              problems = { .arena = a };

	buf_init(&b, 1 << 20);
	buf_add_text(&b, "{\"rules\":[");
	for (size_t i = 0; i < rules; i++) {
		buf_addf(&b, "%s{\"id\":\"r%zu\",\"then\":\"ask\",\"when\":{\"group\":[", i ? "," : "", i);
		for (size_t j = 0; j < groups; j++)
			buf_addf(&b, "%s\"g%zu\"", j ? "," : "", j);
		buf_add_text(&b, "]}}");
	}
	buf_add_text(&b, "]}");
	return rules_read(buf_str(&b), a, &policy, &problems);
}

TEST(a_document_has_limits)
{
	struct arena a = { 0 };

	CHECK(parse_many(APPROVAL_RULES_MAX, APPROVAL_TEXTS_MAX, &a) == RC_OK);
	CHECK(parse_many(APPROVAL_RULES_MAX + 1, 1, &a) == RC_INVALID);
	CHECK(parse_many(1, APPROVAL_TEXTS_MAX + 1, &a) == RC_INVALID);
	arena_fini(&a);
}
