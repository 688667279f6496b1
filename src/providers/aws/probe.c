/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.c - what we are allowed to do at AWS, found out before it is needed.
 *
 * Each permission is one row: an operation that is harmless as it is called here (a list of one, a thing that does not
 * exist, a condition that never holds), and the codes by which AWS says "allowed, but there is no such thing". What
 * cannot be tried without doing it is a row too: not tried. A refused hop of the chain is reported once, and the rows
 * behind it are not tried.
 *
 * The rows go in order, since some need the answers of others: the instance of Identity Center, its store, a
 * permission set.
 */
#include "providers/aws/probe.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "domain/hold.h"
#include "providers/aws/costs.h"
#include "providers/aws/costs_rule.h"
#include "providers/aws/directory.h"

#define NOBODY  "000000000000" /* an account that no organisation has */
#define NO_UUID "00000000-0000-4000-8000-000000000000"

enum { ROWS_MAX = 160, PROBE_MS = 10000, PROBE_ATTEMPTS = 3, VISIBILITY_LEAST_SEC = 30 };

/* When a row is asked for: what the settings use. */
enum {
	LEASES = 1,
	GUARD = 2,
	PARAMETER = 4,
	EJECTS = 8,
	BUS = 16,
	TOPIC = 32,
	MAIL = 64,
	CODEBUILD = 128,
	SCHEDULER = 256,
	CREDENTIALS = 512,
	NUKE = 1024,
	TENANT_QUEUE = 2048,
	PAID = 4096, /* costs something: only when it is wanted */
	CLOUD = 8192,
};

struct aws_probe {
	struct cloud_probe       port;
	struct aws_probe_options o;
};

/* One look. */
struct look {
	const struct aws_probe *p;
	struct arena           *a;
	struct probe_row       *rows;
	size_t                  count;
	bool                    is_hop_refused[AWS_HOP_COUNT];
	const char             *policy;                                 /* of the rows under way; NULL: their hop's */
	struct str              available, cleanup;                     /* OUs of the pool */
	struct str              instance, store, permission_set, group; /* of Identity Center */
};

/* --- bodies --- */

#define BODY(name, ...)                              \
	static struct str name(const struct look *l) \
	{                                            \
		return JSON_OF(l->a, __VA_ARGS__);   \
	}

static struct json_member of_instance(const struct look *l)
{
	return member_str("InstanceArn", l->instance);
}

static struct json_member of_store(const struct look *l)
{
	return member_str("IdentityStoreId", l->store);
}

/* {"UniqueAttribute": {...}} */
static struct json_member by_attribute(const struct look *l, const char *path, const char *value)
{
	struct str inside = JSON_OF(l->a, member_word("AttributePath", path), member_word("AttributeValue", value));

	return member_raw("AlternateIdentifier", JSON_OF(l->a, member_raw("UniqueAttribute", inside)));
}

static struct json_member table_key(const struct look *l)
{
	struct str key = JSON_OF(l->a, member_raw("awsAccountId", JSON_OF(l->a, member_word("S", NOBODY))));

	return member_raw("Key", key);
}

static struct str names_of_status(void)
{
	return STR("{\"#status\":\"status\"}");
}

/* A root has no parent to ask for. */
static bool is_below_root(const struct look *l)
{
	return str_starts_with(l->p->o.cloud->sandbox_ou, STR("r-"));
}

BODY(one_result, member_int("MaxResults", 1))
BODY(child, member_str("ChildId", is_below_root(l) ? STR(NOBODY) : l->p->o.cloud->sandbox_ou))
BODY(parent, member_str("ParentId", l->p->o.cloud->sandbox_ou), member_int("MaxResults", 1))
BODY(account, member_word("AccountId", NOBODY))
BODY(resource, member_word("ResourceId", NOBODY))
BODY(move, member_word("AccountId", NOBODY), member_str("SourceParentId", l->available),
     member_str("DestinationParentId", l->cleanup))
BODY(tag, member_word("ResourceId", NOBODY),
     member_raw("Tags", STR("[{\"Key\":\"" HOLD_BYPASS_TAG "\",\"Value\":\"\"}]")))
BODY(untag, member_word("ResourceId", NOBODY), member_raw("TagKeys", STR("[\"" HOLD_BYPASS_TAG "\"]")))
BODY(parameter, member_str("Name", l->p->o.cloud->pool_config_param), member_bool("WithDecryption", true))
BODY(permission_sets, of_instance(l), member_int("MaxResults", 1))
BODY(permission_set, of_instance(l), member_str("PermissionSetArn", l->permission_set))
BODY(assignments, of_instance(l), member_word("AccountId", NOBODY), member_str("PermissionSetArn", l->permission_set),
     member_int("MaxResults", 1))
BODY(creation, of_instance(l), member_word("AccountAssignmentCreationRequestId", NO_UUID))
BODY(deletion, of_instance(l), member_word("AccountAssignmentDeletionRequestId", NO_UUID))
BODY(users, of_store(l), member_int("MaxResults", 1))
BODY(user, of_store(l), member_word("UserId", NO_UUID))
BODY(user_id, of_store(l), by_attribute(l, "emails.value", "nobody@leasehold.invalid"))
BODY(group_id, of_store(l), by_attribute(l, "displayName", "leasehold-probe"))
BODY(members, of_store(l), member_word("GroupId", NO_UUID), member_int("MaxResults", 1))
BODY(memberships, of_store(l), member_raw("MemberId", STR("{\"UserId\":\"" NO_UUID "\"}")), member_int("MaxResults", 1))
BODY(table_get, member_str("TableName", l->p->o.table), table_key(l),
     member_word("ProjectionExpression", "awsAccountId,#status,#name"),
     member_raw("ExpressionAttributeNames", STR("{\"#status\":\"status\",\"#name\":\"name\"}")))
BODY(table_update, member_str("TableName", l->p->o.table), table_key(l),
     member_word("UpdateExpression", "SET #status = :none"), member_word("ConditionExpression", "#status = :none"),
     member_raw("ExpressionAttributeNames", names_of_status()),
     member_raw("ExpressionAttributeValues", STR("{\":none\":{\"S\":\"leasehold-probe\"}}")))
BODY(table_delete, member_str("TableName", l->p->o.table), table_key(l),
     member_word("ConditionExpression", "#status = :none"), member_raw("ExpressionAttributeNames", names_of_status()),
     member_raw("ExpressionAttributeValues", STR("{\":none\":{\"S\":\"leasehold-probe\"}}")))
/* Names that do not exist, of kinds that the policies allow: the project's builds, secrets below leasehold/. */
BODY(builds, member_raw("ids", str_format(l->a, "[\"%.*s:" NO_UUID "\"]", STR_ARG(l->p->o.cloud->codebuild_project))))
BODY(project, member_str("projectName", l->p->o.cloud->codebuild_project))
BODY(secret, member_word("SecretId", "leasehold/probe"))

/* Of the day before: Cost Explorer refuses to look back for more than 14 months. */
static struct str costs(const struct look *l)
{
	int64_t today_ms = cost_day(clock_now(&clock_real).ms);
	char    from[16], to[16];

	return JSON_OF(l->a, member_object("TimePeriod"),
	               member_str("Start", cost_day_text(today_ms - COST_DAY_MS, from)),
	               member_str("End", cost_day_text(today_ms, to)), member_end(),
	               member_word("Granularity", "DAILY"), member_raw("Metrics", STR("[\"UnblendedCost\"]")));
}

/* --- what an answer tells beside "allowed" --- */

static void keep(struct look *l, const json_t *object, const char *name, struct str *ret)
{
	struct str text;

	if (json_take_text(object, name, l->a, &text) && text.n)
		*ret = text;
}

static struct str read_instances(struct look *l, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "Instances"), *first = json_array_get(list, 0);

	if (!l->instance.n)
		keep(l, first, "InstanceArn", &l->instance);
	if (!l->store.n)
		keep(l, first, "IdentityStoreId", &l->store);
	return l->instance.n && l->store.n ? STR("") : STR("there is no instance of Identity Center in this region");
}

static struct str read_permission_sets(struct look *l, const json_t *answer)
{
	const char *first = json_string_value(json_array_get(json_object_get(answer, "PermissionSets"), 0));

	if (first)
		l->permission_set = str_dup(l->a, str_from(first));
	return first ? STR("") : STR("Identity Center has no permission set");
}

static struct str read_mail_account(struct look *l UNUSED, const json_t *answer)
{
	return json_is_true(json_object_get(answer, "ProductionAccessEnabled"))
	               ? STR("")
	               : STR("SES is in its sandbox: mail goes to verified addresses only");
}

/* --- rows --- */

/* clang-format off */
static const struct item {
	const char         *permission;
	enum aws_service_id service;
	enum aws_hop        as;
	unsigned            when;
	bool                is_needed;
	struct str        (*body)(const struct look *l); /* NULL, and no path: cannot be tried */
	const char         *fine;                        /* codes that mean: allowed */
	struct str        (*read)(struct look *l, const json_t *answer); /* what is wrong with it; NULL: nothing */
	const char         *method, *path;
	enum aws_pace       pace;
} items[] = {
	{ "organizations:ListRoots",           AWS_ORGANIZATIONS, AWS_MANAGEMENT, CLOUD, true, one_result, NULL, NULL, NULL, NULL, AWS_PACE_ORG_READ },
	{ "organizations:ListParents",         AWS_ORGANIZATIONS, AWS_MANAGEMENT, CLOUD, true, child, "ChildNotFoundException", NULL, NULL, NULL, AWS_PACE_ORG_READ },
	{ "organizations:ListOrganizationalUnitsForParent", AWS_ORGANIZATIONS, AWS_MANAGEMENT, CLOUD, true, parent, NULL, NULL, NULL, NULL, AWS_PACE_ORG_READ },
	{ "organizations:ListAccountsForParent", AWS_ORGANIZATIONS, AWS_MANAGEMENT, CLOUD, true, parent, NULL, NULL, NULL, NULL, AWS_PACE_ORG_READ },
	{ "organizations:DescribeAccount",     AWS_ORGANIZATIONS, AWS_MANAGEMENT, LEASES, true, account, "AccountNotFoundException", NULL, NULL, NULL, AWS_PACE_ORG_READ },
	{ "organizations:ListTagsForResource", AWS_ORGANIZATIONS, AWS_MANAGEMENT, GUARD, true, resource, "TargetNotFoundException", NULL, NULL, NULL, AWS_PACE_ORG_READ },
	{ "organizations:MoveAccount",         AWS_ORGANIZATIONS, AWS_MANAGEMENT, CLOUD, true, move, "AccountNotFoundException", NULL, NULL, NULL, AWS_PACE_ORG_WRITE },
	{ "organizations:TagResource",         AWS_ORGANIZATIONS, AWS_MANAGEMENT, GUARD, false, tag, "TargetNotFoundException", NULL, NULL, NULL, AWS_PACE_ORG_WRITE },
	{ "organizations:UntagResource",       AWS_ORGANIZATIONS, AWS_MANAGEMENT, GUARD, true, untag, "TargetNotFoundException", NULL, NULL, NULL, AWS_PACE_ORG_WRITE },
	{ "ssm:GetParameter",                  AWS_SSM, AWS_OWN, PARAMETER, true, parameter },
	{ "ce:GetCostAndUsage",                AWS_COST_EXPLORER, AWS_MANAGEMENT, LEASES | PAID, true, costs, "DataUnavailableException", NULL, NULL, NULL, AWS_PACE_COSTS },
	{ "sso:ListInstances",                 AWS_SSO_ADMIN, AWS_IDENTITY_CENTRE, LEASES, true, one_result, NULL, read_instances, NULL, NULL, AWS_PACE_IDC_READ },
	{ "sso:ListPermissionSets",            AWS_SSO_ADMIN, AWS_IDENTITY_CENTRE, LEASES, true, permission_sets, NULL, read_permission_sets, NULL, NULL, AWS_PACE_IDC_READ },
	{ "sso:DescribePermissionSet",         AWS_SSO_ADMIN, AWS_IDENTITY_CENTRE, LEASES, true, permission_set, NULL, NULL, NULL, NULL, AWS_PACE_IDC_READ },
	{ "sso:ListAccountAssignments",        AWS_SSO_ADMIN, AWS_IDENTITY_CENTRE, LEASES, true, assignments, "ResourceNotFoundException", NULL, NULL, NULL, AWS_PACE_IDC_READ },
	{ "sso:DescribeAccountAssignmentCreationStatus", AWS_SSO_ADMIN, AWS_IDENTITY_CENTRE, LEASES, true, creation, "ResourceNotFoundException", NULL, NULL, NULL, AWS_PACE_IDC_READ },
	{ "sso:DescribeAccountAssignmentDeletionStatus", AWS_SSO_ADMIN, AWS_IDENTITY_CENTRE, LEASES, true, deletion, "ResourceNotFoundException", NULL, NULL, NULL, AWS_PACE_IDC_READ },
	{ "sso:CreateAccountAssignment",       AWS_SSO_ADMIN, AWS_IDENTITY_CENTRE, LEASES, true },
	{ "sso:DeleteAccountAssignment",       AWS_SSO_ADMIN, AWS_IDENTITY_CENTRE, LEASES, true },
	{ "identitystore:ListUsers",           AWS_IDENTITY_STORE, AWS_IDENTITY_CENTRE, LEASES, true, users, NULL, NULL, NULL, NULL, AWS_PACE_IDC_READ },
	{ "identitystore:DescribeUser",        AWS_IDENTITY_STORE, AWS_IDENTITY_CENTRE, LEASES, true, user, "ResourceNotFoundException", NULL, NULL, NULL, AWS_PACE_IDC_READ },
	{ "identitystore:GetUserId",           AWS_IDENTITY_STORE, AWS_IDENTITY_CENTRE, LEASES, true, user_id, "ResourceNotFoundException", NULL, NULL, NULL, AWS_PACE_IDC_READ },
	{ "identitystore:GetGroupId",          AWS_IDENTITY_STORE, AWS_IDENTITY_CENTRE, LEASES, true, group_id, "ResourceNotFoundException", NULL, NULL, NULL, AWS_PACE_IDC_READ },
	{ "identitystore:ListGroupMemberships", AWS_IDENTITY_STORE, AWS_IDENTITY_CENTRE, LEASES, true, members, "ResourceNotFoundException", NULL, NULL, NULL, AWS_PACE_IDC_READ },
	{ "identitystore:ListGroupMembershipsForMember", AWS_IDENTITY_STORE, AWS_IDENTITY_CENTRE, LEASES, true, memberships, "ResourceNotFoundException", NULL, NULL, NULL, AWS_PACE_IDC_READ },
	{ "dynamodb:GetItem",                  AWS_DYNAMODB, AWS_OWN, GUARD, true, table_get },
	{ "dynamodb:UpdateItem",               AWS_DYNAMODB, AWS_OWN, GUARD, true, table_update, "ConditionalCheckFailedException" },
	{ "dynamodb:DeleteItem",               AWS_DYNAMODB, AWS_OWN, GUARD | EJECTS, true, table_delete, "ConditionalCheckFailedException" },
	{ "sqs:SendMessage",                   AWS_SQS, AWS_OWN, TENANT_QUEUE, false },
	{ "events:PutEvents",                  AWS_EVENTBRIDGE, AWS_OWN, BUS, false },
	{ "sns:Publish",                       AWS_SNS, AWS_OWN, TOPIC, false },
	{ "ses:GetAccount",                    AWS_SES, AWS_OWN, MAIL, false, NULL, NULL, read_mail_account, "GET", "/v2/email/account" },
	{ "ses:SendEmail",                     AWS_SES, AWS_OWN, MAIL, false },
	{ "codebuild:BatchGetBuilds",          AWS_CODEBUILD, AWS_OWN, CODEBUILD, true, builds },
	{ "codebuild:ListBuildsForProject",    AWS_CODEBUILD, AWS_OWN, CODEBUILD, true, project },
	{ "codebuild:StartBuild",              AWS_CODEBUILD, AWS_OWN, CODEBUILD, true },
	{ "scheduler:GetSchedule",             AWS_SCHEDULER, AWS_OWN, SCHEDULER, false, NULL, "ResourceNotFoundException", NULL, "GET", "/schedules/{Name}" },
	{ "scheduler:ListSchedules",           AWS_SCHEDULER, AWS_OWN, SCHEDULER, false, NULL, NULL, NULL, "GET", "/schedules" },
	{ "scheduler:DeleteSchedule",          AWS_SCHEDULER, AWS_OWN, SCHEDULER, false, NULL, "ResourceNotFoundException", NULL, "DELETE", "/schedules/{Name}" },
	{ "scheduler:CreateSchedule",          AWS_SCHEDULER, AWS_OWN, SCHEDULER, false },
	{ "iam:PassRole",                      AWS_SCHEDULER, AWS_OWN, SCHEDULER, false },
	{ "secretsmanager:DescribeSecret",     AWS_SECRETS_MANAGER, AWS_OWN, CREDENTIALS, true, secret, "ResourceNotFoundException" },
	{ "secretsmanager:CreateSecret",       AWS_SECRETS_MANAGER, AWS_OWN, CREDENTIALS, true },
};

static const struct aws_error_row errors[] = {
	{ "AccessPointNotFound",             RC_NOT_FOUND },
	{ "AccountNotFoundException",        RC_NOT_FOUND },
	{ "AWSOrganizationsNotInUseException", RC_DENIED },
	{ "ChildNotFoundException",          RC_NOT_FOUND },
	{ "ClientException",                 RC_NOT_FOUND },
	{ "ClusterNotFoundException",        RC_NOT_FOUND },
	{ "ConditionalCheckFailedException", RC_CONFLICT },
	{ "DataUnavailableException",        RC_UNAVAILABLE },
	{ "FileSystemNotFound",              RC_NOT_FOUND },
	{ "ListenerNotFound",                RC_NOT_FOUND },
	{ "ParameterNotFound",               RC_NOT_FOUND },
	{ "ParentNotFoundException",         RC_NOT_FOUND },
	{ "QueueDoesNotExist",               RC_NOT_FOUND },
	{ "ResourceNotFoundException",       RC_NOT_FOUND },
	{ "ServiceNotFoundException",        RC_NOT_FOUND },
	{ "TargetGroupNotFound",             RC_NOT_FOUND },
	{ "TargetNotFoundException",         RC_NOT_FOUND },
	{ NULL, RC_OK },
};
/* clang-format on */

/* --- verdicts --- */

static unsigned used(const struct aws_probe_options *o, bool is_paid)
{
	unsigned bits = !o->cloud ? 0 : CLOUD | (o->cloud->is_guard ? GUARD : LEASES);

	bits |= o->cloud && o->cloud->pool_config_param.n ? PARAMETER : 0;
	bits |= o->cloud && o->cloud->codebuild_project.n ? CODEBUILD : 0;
	bits |= o->ejects ? EJECTS : 0;
	bits |= o->bus.n ? BUS : 0;
	bits |= o->topic.n ? TOPIC : 0;
	bits |= o->sends_mail ? MAIL : 0;
	bits |= o->scheduler_group.n ? SCHEDULER : 0;
	bits |= o->makes_credentials ? CREDENTIALS : 0;
	bits |= o->has_nuke ? NUKE : 0;
	bits |= o->tenant_queue.n ? TENANT_QUEUE : 0;
	return bits | (is_paid ? PAID : 0);
}

static struct str show_as(const struct look *l, enum aws_hop hop)
{
	struct aws_caller *c = aws_caller_of(l->p->o.callers, hop);

	return aws_caller_arn(c).n ? aws_caller_arn(c) : STR("own credentials");
}

static const char *policy_of(const struct look *l, enum aws_hop hop)
{
	static const char *const files[AWS_HOP_COUNT] = { "task.json", "intermediate.json", "management.json",
		                                          "identity-center.json" };

	return l->policy ? l->policy : files[hop];
}

static struct str how_to_change(const struct look *l, const struct probe_row *row, enum aws_hop hop)
{
	bool is_kms = str_has(row->text, STR("kms"));

	if (row->verdict == PROBE_DENIED && is_kms)
		return str_format(
		        l->a,
		        "allow kms:Decrypt and kms:GenerateDataKey on the key to %.*s, in its policy and in the key's",
		        STR_ARG(row->as));
	if (row->verdict == PROBE_DENIED)
		return str_format(
		        l->a, "allow %.*s to %.*s (deploy/aws/%s); look for a service control policy that denies it",
		        STR_ARG(row->permission), STR_ARG(row->as), policy_of(l, hop));
	if (row->verdict == PROBE_MISSING)
		return STR("check the setting that names it, and its region");
	return row->verdict == PROBE_UNREACHABLE ? STR("check the way to AWS: network, endpoint, proxy") : STR("");
}

static struct probe_row *add_row(struct look *l, const char *permission, enum aws_hop hop, bool is_needed)
{
	struct probe_row *row = &l->rows[l->count < ROWS_MAX ? l->count++ : ROWS_MAX - 1];

	*row = (struct probe_row){ .permission = str_from(permission),
		                   .as = show_as(l, hop),
		                   .verdict = PROBE_NOT_TRIED,
		                   .is_needed = is_needed,
		                   .text = STR(""),
		                   .change = STR("") };
	return row;
}

static enum probe_verdict verdict_of(enum rc rc)
{
	if (rc == RC_UNAVAILABLE || rc == RC_TIMEOUT || rc == RC_LIMITED)
		return PROBE_UNREACHABLE;
	return rc == RC_DENIED ? PROBE_DENIED : PROBE_MISSING;
}

/* Calls, and writes what came of it into the row. */
static void try_call(struct look *l, struct probe_row *row, enum aws_hop hop, const struct aws_call *call,
                     const char *fine, struct str (*read)(struct look *l, const json_t *answer))
{
	CLEANUP(json_freep) json_t *answer = NULL;
	struct err                  why = { 0 };
	enum rc                     rc = aws_do_call(aws_caller_of(l->p->o.callers, hop), call, l->a, &answer, &why);

	if (!rc || str_is_word_of(str_from(why.code), fine)) {
		row->verdict = PROBE_OK;
		row->text = !rc && read ? read(l, answer) : STR("");
		return;
	}
	row->verdict = verdict_of(rc);
	row->text = str_dup(l->a, str_from(why.msg));
	row->change = how_to_change(l, row, hop);
}

/* --- hops --- */

static void probe_hop(struct look *l, enum aws_hop hop, enum aws_hop before)
{
	static const struct aws_op who = { .service = &aws_services[AWS_STS],
		                           .name = "GetCallerIdentity",
		                           .permission = "sts:GetCallerIdentity" };
	struct aws_call            call = { .op = &who, .ms = PROBE_MS, .attempts = PROBE_ATTEMPTS };
	struct probe_row          *row;
	bool                       is_own = hop == AWS_OWN;

	if (!is_own && str_eq(show_as(l, hop), show_as(l, before))) { /* a hop that is left out */
		l->is_hop_refused[hop] = l->is_hop_refused[before];
		return;
	}
	row = add_row(l, is_own ? "sts:GetCallerIdentity" : "sts:AssumeRole", is_own ? AWS_OWN : before, true);
	if (l->is_hop_refused[before] && !is_own) {
		l->is_hop_refused[hop] = true;
		row->text = str_format(l->a, "for %.*s: the hop before it is refused", STR_ARG(show_as(l, hop)));
		return;
	}
	try_call(l, row, hop, &call, NULL, NULL);
	l->is_hop_refused[hop] = row->verdict != PROBE_OK;
	if (row->verdict == PROBE_DENIED && !is_own)
		row->change = str_format(
		        l->a,
		        "the trust policy of %.*s must name %.*s, whose own policy (deploy/aws/%s) must allow "
		        "sts:AssumeRole on it",
		        STR_ARG(show_as(l, hop)), STR_ARG(row->as), policy_of(l, before));
	else if (row->verdict == PROBE_OK && !is_own)
		row->text = str_format(l->a, "on %.*s", STR_ARG(show_as(l, hop)));
}

/* --- the table's rows --- */

static void probe_item(struct look *l, const struct item *item, unsigned bits)
{
	const char       *name = strchr(item->permission, ':') + 1;
	struct probe_row *row = add_row(l, item->permission, item->as, item->is_needed);
	struct aws_op     op = { .service = &aws_services[item->service],
		                 .name = name,
		                 .permission = item->permission,
		                 .method = item->method,
		                 .path = item->path,
		                 .errors = errors,
		                 .pace = item->pace };
	struct str        path_args[] = { STR("leasehold-probe") };
	struct aws_call   call = { .op = &op, .ms = PROBE_MS, .attempts = PROBE_ATTEMPTS, .path_args = path_args };

	if (l->is_hop_refused[item->as]) {
		row->text = STR("the row of its role says why");
		return;
	}
	if (!item->body && !item->path) {
		row->text = STR("it cannot be asked for without doing it");
		return;
	}
	if (item->when & PAID && !(bits & PAID)) {
		row->text = STR("costs USD 0.01: --paid asks for it");
		return;
	}
	if (item->body)
		call.body = item->body(l);
	if (item->service == AWS_SCHEDULER)
		call.query = AWS_PAIRS(l->a, { strcmp(name, "ListSchedules") == 0 ? "ScheduleGroup" : "groupName",
		                               l->p->o.scheduler_group });
	try_call(l, row, item->as, &call, item->fine, item->read);
	if (row->verdict == PROBE_OK && row->text.n && item->is_needed) /* allowed, but of no use */
		row->verdict = PROBE_MISSING;
}

static void probe_more(struct look *l, const struct aws_probe_item *item)
{
	struct probe_row *row = add_row(l, item->permission, AWS_OWN, item->is_needed);
	struct aws_op     op = { .service = &aws_services[item->service],
		                 .name = strchr(item->permission, ':') + 1,
		                 .permission = item->permission,
		                 .method = item->method,
		                 .path = item->path,
		                 .errors = errors,
		                 .is_secret = item->is_secret };
	struct aws_call   call = { .op = &op, .ms = PROBE_MS, .attempts = PROBE_ATTEMPTS };

	if (l->is_hop_refused[AWS_OWN])
		row->text = STR("the row of its role says why");
	else if (!item->body && !item->path)
		row->text = STR("it cannot be asked for without doing it");
	if (row->text.n)
		return;
	if (item->body)
		call.body = item->body(l->p->o.more_arg, l->a);
	if (item->query)
		call.query = item->query(l->p->o.more_arg, l->a);
	try_call(l, row, AWS_OWN, &call, item->fine, NULL);
}

/* --- queues --- */

/* Nothing without dead letters, and a message must not come back while it is being stored. */
static struct str judge_queue(struct look *l, const json_t *answer)
{
	const json_t *attributes = json_object_get(answer, "Attributes");
	struct str    visibility, redrive;
	int64_t       sec = 0;

	if (!json_get_text(attributes, "VisibilityTimeout", &visibility) || !str_to_int(visibility, 0, 43200, &sec) ||
	    sec < VISIBILITY_LEAST_SEC)
		return str_format(l->a, "its visibility timeout is %.*s s; right is 60 and more", STR_ARG(visibility));
	if (!json_get_text(attributes, "RedrivePolicy", &redrive) || !redrive.n)
		return STR("it has no queue for dead letters: what cannot be read comes back for ever");
	return STR("");
}

static void probe_queue(struct look *l, struct str url)
{
	static const struct aws_op get = { .service = &aws_services[AWS_SQS],
		                           .name = "GetQueueAttributes",
		                           .permission = "sqs:GetQueueAttributes",
		                           .errors = errors };
	struct str                 names = STR("[\"VisibilityTimeout\",\"RedrivePolicy\"]");
	struct aws_call            call = { .op = &get,
		                            .body = JSON_OF(l->a, member_str("QueueUrl", url),
		                                            member_raw("AttributeNames", names)),
		                            .region = l->p->o.region_of ? l->p->o.region_of(url, l->a) : NULL,
		                            .ms = PROBE_MS };
	struct probe_row          *row = add_row(l, get.permission, AWS_OWN, true);

	if (l->is_hop_refused[AWS_OWN]) {
		row->text = STR("the row of its role says why");
		return;
	}
	try_call(l, row, AWS_OWN, &call, NULL, judge_queue);
	row->text = str_format(l->a, "%.*s%s%.*s", STR_ARG(url), row->text.n ? ": " : "", STR_ARG(row->text));
}

/* --- all --- */

static void find_ous(struct look *l)
{
	struct organisation *o = l->p->o.organisation;
	struct cloud_ou     *ous;
	size_t               count = 0;

	l->available = l->cleanup = l->p->o.cloud->sandbox_ou;
	if (l->is_hop_refused[AWS_MANAGEMENT] || o->ops->list_ous(o, l->a, &ous, &count, NULL))
		return; /* the rows say why */
	for (size_t i = 0; i < count; i++)
		if (str_eq(ous[i].name, STR("Available")))
			l->available = ous[i].id;
		else if (str_eq(ous[i].name, STR("CleanUp")))
			l->cleanup = ous[i].id;
}

/* --- figures, beside the rows that they are about --- */

static void add_text(struct look *l, const char *permission, struct str text)
{
	for (size_t i = 0; i < l->count; i++) {
		struct str *known = &l->rows[i].text;

		if (str_eq(l->rows[i].permission, str_from(permission)))
			*known = str_format(l->a, "%.*s%s%.*s", STR_ARG(*known), known->n ? "; " : "", STR_ARG(text));
	}
}

static void tell_costs(struct look *l)
{
	struct aws_costs_state s;

	if (!l->p->o.costs || aws_costs_look(l->p->o.costs, l->a, &s, NULL))
		return;
	add_text(l, "ce:GetCostAndUsage",
	         str_format(l->a, "%lld pages this month, USD %lld.%02lld", (long long)s.pages_this_month,
	                    (long long)s.pages_this_month / 100, (long long)s.pages_this_month % 100));
}

static void tell_people(struct look *l)
{
	struct aws_directory_state s;

	if (!l->p->o.directory || aws_directory_look(l->p->o.directory, l->a, &s, NULL) || !s.read_ms)
		return;
	add_text(l, "identitystore:ListGroupMemberships",
	         str_format(l->a, "%lld people have a role; left out: %lld disabled, %lld without an email%s%.*s",
	                    (long long)s.members, (long long)s.disabled, (long long)s.without_email,
	                    s.missing.n ? "; missing groups: " : "", STR_ARG(s.missing)));
}

/* The hops behind our own, and what the rows behind them need. */
static void probe_chain(struct look *l)
{
	probe_hop(l, AWS_INTERMEDIATE, AWS_OWN);
	probe_hop(l, AWS_MANAGEMENT, AWS_INTERMEDIATE);
	if (!l->p->o.cloud->is_guard)
		probe_hop(l, AWS_IDENTITY_CENTRE, AWS_INTERMEDIATE);
	find_ous(l);
}

static enum rc look(struct cloud_probe *port, bool is_paid, struct arena *a, struct probe_row **ret, size_t *ret_count,
                    struct err *e UNUSED)
{
	const struct aws_probe *p = CONTAINER_OF(port, struct aws_probe, port);
	struct look             l = { .p = p,
		                      .a = a,
		                      .rows = arena_alloc(a, ROWS_MAX * sizeof(*l.rows)),
		                      .instance = p->o.cloud ? p->o.cloud->idc_instance : STR(""),
		                      .store = p->o.cloud ? p->o.cloud->idc_store : STR("") };
	unsigned                bits = used(&p->o, is_paid);

	probe_hop(&l, AWS_OWN, AWS_OWN);
	if (p->o.cloud)
		probe_chain(&l);
	for (size_t i = 0; i < ARRAY_LEN(items); i++)
		if ((items[i].when & (unsigned)~PAID & ~bits) == 0)
			probe_item(&l, &items[i], bits);
	for (size_t i = 0; i < AWS_PROBE_QUEUES; i++)
		if (p->o.queues[i].n)
			probe_queue(&l, p->o.queues[i]);
	if (bits & NUKE)
		add_row(&l, "sts:AssumeRole", AWS_INTERMEDIATE, true)->text = STR(
		        "on the role in each sandbox account: it is asked for with the first account that is emptied");
	l.policy = p->o.more_policy;
	for (size_t i = 0; i < p->o.more_count; i++)
		probe_more(&l, &p->o.more[i]);
	tell_costs(&l);
	tell_people(&l);
	*ret = l.rows;
	*ret_count = l.count;
	return RC_OK;
}

struct aws_probe *aws_probe_new(const struct aws_probe_options *o)
{
	struct aws_probe *p = mem_new(struct aws_probe);

	p->port.look = look;
	p->o = *o;
	return p;
}

void aws_probe_free(struct aws_probe *p)
{
	free(p);
}

struct cloud_probe *aws_probe_port(struct aws_probe *p)
{
	return &p->port;
}
