/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_check.c - the settings of AWS against each other.
 *
 * A row says when a setting is needed and what it must look like. All problems are named together, so that one start is
 * enough to mend them.
 */
#include "app/aws_parts.h"

#include "app/config/config.h"
#include "app/messages.h"
#include "app/parts.h"
#include "app/store/stores.h"
#include "base/buf.h"
#include "domain/lease.h"
#include "domain/move_event.h"
#include "net/aws_endpoint.h"

bool aws_parts_is_wanted(const struct config *c)
{
	return config_number(c, CONFIG_CLOUD) == CLOUD_AWS;
}

/* --- forms --- */

static bool is_role_arn(struct str text)
{
	struct str rest = text;

	return str_starts_with(str_cut(&rest, ':'), STR("arn")) && str_starts_with(str_cut(&rest, ':'), STR("aws")) &&
	       str_eq(str_cut(&rest, ':'), STR("iam")) && !str_cut(&rest, ':').n &&
	       str_is_digits(str_cut(&rest, ':'), 12) && str_starts_with(rest, STR("role/")) && rest.n > 5 &&
	       str_is_of(rest, "a-zA-Z0-9+=,.@_/-");
}

static bool is_arn(struct str text)
{
	return text.n > 20 && str_starts_with(text, STR("arn:aws")) && str_is_of(text, "!-~");
}

static bool is_namespace(struct str text)
{
	return text.n >= 3 && text.n <= 8 && str_is_of(text, "a-zA-Z0-9");
}

/* --- rows --- */

enum { WITH_AWS = 1, WITH_LEASES = 2, WITH_CODEBUILD = 4, OR_EMPTY = 8, WITH_CREDENTIALS = 16 };

/* clang-format off */
#define OF(set, least) set, least, NULL /* at least so many of these characters */
#define BY(is_ok)      NULL, 0, is_ok

static const struct row {
	enum setting id;
	unsigned     needed; /* when; OR_EMPTY: it may be set to nothing, but somebody must have said so */
	const char  *set;
	size_t       least;
	bool       (*is_ok)(struct str text);
	const char  *form;
} rows[] = {
	{ CONFIG_AWS_REGION,        0,                      OF("a-z0-9-", 1),            "a region such as eu-west-1" },
	{ CONFIG_IDC_REGION,        0,                      OF("a-z0-9-", 1),            "a region such as eu-west-1" },
	{ CONFIG_INTERMEDIATE_ROLE, WITH_AWS | OR_EMPTY,    BY(is_role_arn),             "a role such as arn:aws:iam::123456789012:role/NAME" },
	{ CONFIG_ORG_ROLE,          WITH_AWS | OR_EMPTY,    BY(is_role_arn),             "a role such as arn:aws:iam::123456789012:role/NAME" },
	{ CONFIG_IDC_ROLE,          WITH_LEASES | OR_EMPTY, BY(is_role_arn),             "a role such as arn:aws:iam::123456789012:role/NAME" },
	{ CONFIG_SANDBOX_ROLE,      0,                      OF("a-zA-Z0-9+=,.@_/-", 1),  "the name of a role" },
	{ CONFIG_EXTERNAL_ID,       0,                      OF("a-zA-Z0-9+=,.@:/_-", 2), "2 to 1224 of letters, digits and +=,.@:/_-" },
	{ CONFIG_SOURCE_IDENTITY,   0,                      OF("a-zA-Z0-9+=,.@_-", 2),   "2 to 64 of letters, digits and +=,.@_-" },
	{ CONFIG_USER_AGENT,        0,                      OF(" -~", 1),                "printable ASCII" },
	{ CONFIG_SANDBOX_OU,        WITH_AWS,               BY(move_is_parent),          "an OU (ou-xxxx-xxxxxxxx) or a root (r-xxxx)" },
	{ CONFIG_POOL_PARAM,        0,                      BY(is_arn),                  "the ARN of a parameter" },
	{ CONFIG_ORG_ACCOUNT,       WITH_LEASES,            BY(account_id_is_ok),        "an account id of 12 digits" },
	{ CONFIG_IDC_ACCOUNT,       WITH_LEASES,            BY(account_id_is_ok),        "an account id of 12 digits" },
	{ CONFIG_HUB_ACCOUNT,       WITH_LEASES,            BY(account_id_is_ok),        "an account id of 12 digits" },
	{ CONFIG_ISB_NAMESPACE,     WITH_LEASES,            BY(is_namespace),            "3 to 8 letters and digits" },
	{ CONFIG_IDC_INSTANCE,      0,                      BY(is_arn),                  "the ARN of an instance of Identity Center" },
	{ CONFIG_IDC_STORE,         0,                      OF("a-zA-Z0-9_-", 1),        "the id of an identity store, such as d-1234567890" },
	{ CONFIG_TENANT_ROLE,       WITH_CREDENTIALS,       OF("a-zA-Z0-9+=,.@_/-", 1),  "the name of a role" },
	{ CONFIG_CREDENTIALS_KEY,   WITH_CREDENTIALS,       BY(is_arn),                  "the ARN of a key of KMS" },
	{ CONFIG_CE_LEAVE_OUT,      0,                      OF(" -~", 1),                "record types, separated by commas" },
	{ CONFIG_CODEBUILD,         WITH_CODEBUILD,         OF("a-zA-Z0-9_-", 2),        "the name of a project, of 2 to 255 letters, digits and _-" },
	{ CONFIG_APPCONFIG_APP,     WITH_CODEBUILD,         OF("a-zA-Z0-9_-", 1),        "an id of AppConfig" },
	{ CONFIG_APPCONFIG_ENV,     WITH_CODEBUILD,         OF("a-zA-Z0-9_-", 1),        "an id of AppConfig" },
	{ CONFIG_APPCONFIG_NUKE,    WITH_CODEBUILD,         OF("a-zA-Z0-9_-", 1),        "an id of AppConfig" },
};
/* clang-format on */

/* Which of the flags hold. */
static unsigned situation(const struct config *c)
{
	unsigned with = WITH_AWS;

	if (!guard_parts_is_wanted(c)) {
		with |= WITH_LEASES;
		with |= config_number(c, CONFIG_CLEANER) == CLEANING_CODEBUILD ? WITH_CODEBUILD : 0;
		with |= config_number(c, CONFIG_CREDENTIALS) ? WITH_CREDENTIALS : 0;
	}
	return with;
}

static const char *why_needed(unsigned needed)
{
	if (needed & WITH_CODEBUILD)
		return "LEASEHOLD_CLEANER=codebuild";
	if (needed & WITH_CREDENTIALS)
		return "LEASEHOLD_CREDENTIALS and LEASEHOLD_CLOUD=aws";
	return needed & WITH_LEASES ? "LEASEHOLD_CLOUD=aws where accounts are lent" : "LEASEHOLD_CLOUD=aws";
}

static bool has_form(const struct row *row, struct str text)
{
	return row->is_ok ? row->is_ok(text) : text.n >= row->least && str_is_of(text, row->set);
}

static void check_row(const struct config *c, const struct row *row, unsigned with, struct buf *problems)
{
	struct str text = config_str(c, row->id);
	bool       is_needed = row->needed & with;

	if (is_needed && row->needed & OR_EMPTY && c->values[row->id].origin != FROM_DEFAULT && !text.n)
		return;
	if (!text.n && is_needed)
		buf_addf(problems, "%s: is required with %s: %s%s\n", config_name(row->id), why_needed(row->needed),
		         row->form, row->needed & OR_EMPTY ? "; set it to nothing to leave that hop out" : "");
	else if (text.n && !has_form(row, text))
		buf_addf(problems, "%s: must be %s, not '%.*s'\n", config_name(row->id), row->form, STR_ARG(text));
}

/* --- what does not go together --- */

static void check_world(const struct config *c, bool is_dev, struct buf *problems)
{
	const char *cloud = config_name(CONFIG_CLOUD), *cleaner = config_name(CONFIG_CLEANER);

	if (is_dev)
		buf_addf(problems, "%s: --dev is for a simulated world; start without it, or unset %s\n", cloud, cloud);
	if (config_number(c, CONFIG_TIME_SCALE) > 1)
		buf_addf(problems, "%s: a real organisation has the real time; right is %s=1\n", cloud,
		         config_name(CONFIG_TIME_SCALE));
	if (guard_parts_is_wanted(c)) {
		if (str_eq(config_str(c, CONFIG_ACCOUNT_TABLE), STR("sim")))
			buf_addf(problems, "%s: must be a real table with %s=aws, not sim\n",
			         config_name(CONFIG_ACCOUNT_TABLE), cloud);
		return;
	}
	if (config_number(c, CONFIG_CLEANER) == CLEANING_SIM)
		buf_addf(problems, "%s: sim empties no real account; right with %s=aws is nuke or codebuild\n", cleaner,
		         cloud);
	if (config_number(c, CONFIG_CLEANER) == CLEANING_NUKE && !config_str(c, CONFIG_SANDBOX_ROLE).n &&
	    !config_str(c, CONFIG_NUKE_ROLE).n)
		buf_addf(problems, "%s: is required with %s=nuke: the name of the role that empties an account\n",
		         config_name(CONFIG_SANDBOX_ROLE), cleaner);
}

static void check_endpoints(struct buf *problems)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char                      *url;
	struct str                       last = STR("");

	for (size_t i = 0; i < AWS_SERVICE_COUNT; i++) {
		struct err e = { 0 };

		if (aws_endpoint(app_env, aws_services[i].id, &a, &url, &e) && !str_eq(str_from(e.msg), last)) {
			buf_addf(problems, "%s\n", e.msg);
			last = str_dup(&a, str_from(e.msg)); /* that of all services is told once */
		}
	}
}

static void check_table_endpoint(const struct config *c, struct buf *problems)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char                      *url;
	struct err                       e = { 0 };

	if (app_ddb_endpoint(c, &a, &url, &e))
		buf_addf(problems, "%s\n", e.msg);
}

void aws_parts_check(const struct config *c, bool is_dev, struct buf *problems)
{
	bool     is_aws = aws_parts_is_wanted(c);
	unsigned with = is_aws ? situation(c) : 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (is_aws || rows[i].id != CONFIG_SANDBOX_OU) /* else the guard's own check says it */
			check_row(c, &rows[i], with, problems);
	if (is_aws)
		check_world(c, is_dev, problems);
	else if (config_number(c, CONFIG_CLEANER) == CLEANING_CODEBUILD)
		buf_addf(problems, "%s: codebuild needs %s=aws\n", config_name(CONFIG_CLEANER),
		         config_name(CONFIG_CLOUD));
	if (is_aws || messages_is_wanted(c))
		check_endpoints(problems);
	else if (config_number(c, CONFIG_STORE) == APP_DYNAMODB)
		check_table_endpoint(c, problems);
}
