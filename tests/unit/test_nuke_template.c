/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's configuration of aws-nuke: what is refused, and what is written for an account. */
#include "providers/nuke/template.h"

#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "test.h"

#define GOOD                                               \
	"regions: [us-east-1, global]\n"                   \
	"account-blocklist: [\"999999999999\"]\n"          \
	"resource-types: {targets: [SQSQueue, IAMRole]}\n" \
	"accounts:\n"                                      \
	"  \"%CLEANUP_ACCOUNT_ID%\":\n"                    \
	"    filters:\n"                                   \
	"      IAMRole: [\"%CLEANUP_ROLE_NAME%\", \"50%\"]\n"

static const struct str protected[] = { STR_INIT("888888888888"), STR_INIT("777777777777") };

static struct nuke_template template_of(const char *text)
{
	return (struct nuke_template){ str_from(text), STR("Cleaner"), protected, ARRAY_LEN(protected) };
}

/* clang-format off */
static const struct { const char *label, *text, *why; } refusals[] = {
	{ "nothing",                          "",                                                             "regions, account-blocklist" },
	{ "no YAML",                          "regions: [",                                                   "line"                       },
	{ "an unknown placeholder",           "regions: [\"%REGION%\"]\n",                                    "no placeholder %REGION%"    },
	{ "an unknown part",                  "region: [a]\n",                                                "aws-nuke has no 'region'"   },
	{ "no regions",                       "regions: []\naccounts: {\"%CLEANUP_ACCOUNT_ID%\": {}}\n",      "regions: must list"         },
	{ "no accounts",                      "regions: [a]\naccount-blocklist: [\"999999999999\"]\n",        "accounts: must have"        },
	{ "another account beside it",        "regions: [a]\naccount-blocklist: [\"999999999999\"]\naccounts: {\"%CLEANUP_ACCOUNT_ID%\": {}, \"123456789012\": {}}\n", "accounts: must have" },
	{ "an account of its own choice",     "regions: [a]\naccount-blocklist: [\"999999999999\"]\naccounts: {\"123456789012\": {}}\n", "accounts: must have" },
	{ "no blocklist",                     "regions: [a]\naccounts: {\"%CLEANUP_ACCOUNT_ID%\": {}}\n",     "account-blocklist: must name" },
	{ "an empty blocklist",               "regions: [a]\naccount-blocklist: []\naccounts: {\"%CLEANUP_ACCOUNT_ID%\": {}}\n", "account-blocklist: must name" },
	{ "the account in the blocklist",     "regions: [a]\naccount-blocklist: [\"%CLEANUP_ACCOUNT_ID%\"]\naccounts: {\"%CLEANUP_ACCOUNT_ID%\": {}}\n", "must not be emptied" },
	{ "an id without quotes",             "regions: [a]\naccount-blocklist: [123456789012]\naccounts: {\"%CLEANUP_ACCOUNT_ID%\": {}}\n", "in quotes" },
};
/* clang-format on */

TEST(a_template_that_cannot_work_is_refused_with_the_reason)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		struct nuke_template t = template_of(refusals[i].text);
		struct err           e = { 0 };

		CASE(refusals[i].label);
		CHECK(nuke_template_check(&t, &e) == RC_INVALID);
		CHECK(strstr(e.msg, refusals[i].why) != NULL);
	}
}

TEST(a_filled_template_has_the_account_and_blocks_all_that_are_protected)
{
	CLEANUP(json_freep) json_t *root = NULL;
	struct nuke_template        t = template_of(GOOD);
	struct arena                a = { 0 };
	struct err                  e = { 0 };
	struct str                  text;
	const json_t               *blocked, *filters;

	CHECK(nuke_template_check(&t, &e) == RC_OK);
	CHECK(nuke_template_fill(&t, STR("012345678901"), &a, &text, &e) == RC_OK);
	CHECK(json_parse(text, &root, &e) == RC_OK);
	blocked = json_object_get(root, "account-blocklist");
	CHECK(json_array_size(blocked) == 3);
	CHECK(strcmp(json_string_value(json_array_get(blocked, 2)), "777777777777") == 0);
	filters = json_object_get(json_object_get(json_object_get(root, "accounts"), "012345678901"), "filters");
	CHECK(strcmp(json_string_value(json_array_get(json_object_get(filters, "IAMRole"), 0)), "Cleaner") == 0);
	CHECK(strcmp(json_string_value(json_array_get(json_object_get(filters, "IAMRole"), 1)), "50%") == 0);
	arena_fini(&a);
}

TEST(a_protected_or_blocked_account_is_never_filled_in)
{
	static const char *const ids[] = { "999999999999", "888888888888", "777777777777" };
	struct nuke_template     t = template_of(GOOD);
	struct arena             a = { 0 };
	struct str               text;

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		CASE(ids[i]);
		CHECK(nuke_template_fill(&t, str_from(ids[i]), &a, &text, NULL) == RC_DENIED);
	}
	CHECK(nuke_template_fill(&t, STR("12345678901x"), &a, &text, NULL) == RC_INVALID);
	arena_fini(&a);
}

TEST(every_kind_of_resource_that_is_named_must_be_known)
{
	struct nuke_template t = template_of(GOOD);
	struct err           e = { 0 };

	CHECK(nuke_template_check_kinds(&t, STR("IAMRole\nSQSQueue\nS3Bucket\n"), &e) == RC_OK);
	CHECK(nuke_template_check_kinds(&t, STR("SQSQueue\nS3Bucket\n"), &e) == RC_INVALID);
	CHECK(strstr(e.msg, "'IAMRole'") != NULL);
	err_clear(&e);
	t = template_of(GOOD "presets:\n  x: {filters: {IAMRoles: [a]}}\n");
	CHECK(nuke_template_check_kinds(&t, STR("IAMRole\nSQSQueue\n"), &e) == RC_INVALID);
	CHECK(strstr(e.msg, "preset x") && strstr(e.msg, "'IAMRoles'"));
}
