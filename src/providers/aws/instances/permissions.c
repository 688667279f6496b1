/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permissions.c - what the driver may do, for the probe: each permission of deploy/aws/instances.json once, asked for
 * by a call that changes nothing.
 *
 * Things are named "tenant-_probe": the policy lets us at them, and no tenant can be called so. What only the tag of a
 * thing allows, and what makes something, cannot be asked for without doing it.
 */
#include "providers/aws/instances/instances_private.h"
#include "providers/aws/probe.h"

#define NOBODY  "tenant-_probe"
#define NO_TASK "00000000000000000000000000000000"

#define BODY(name, ...)                                             \
	static struct str name(const void *arg, struct arena *a)    \
	{                                                           \
		const struct aws_instances_options *o UNUSED = arg; \
                                                                    \
		return __VA_ARGS__;                                 \
	}

BODY(points, AWS_PAIRS(a, { "FileSystemId", o->file_system }, { "MaxResults", STR("1") }))
BODY(secret, JSON_OF(a, member_str("SecretId", str_format(a, "bbws/%.*s/" NOBODY "/db", STR_ARG(o->env)))))
BODY(secret_value, JSON_OF(a, member_str("SecretId", str_format(a, "bbws/%.*s/" NOBODY "/db", STR_ARG(o->env))),
                           member_word("SecretString", "leasehold-probe")))
BODY(admin, JSON_OF(a, member_str("SecretId", o->db_admin)))
BODY(log_group, JSON_OF(a, member_word("logGroupName", "/aws/ecs/" NOBODY)))
BODY(definition, JSON_OF(a, member_word("taskDefinition", NOBODY ":1")))
BODY(definitions, JSON_OF(a, member_word("familyPrefix", NOBODY), member_int("maxResults", 1)))
BODY(services, JSON_OF(a, member_str("cluster", o->cluster), member_raw("services", STR("[\"" NOBODY "\"]"))))
BODY(service, JSON_OF(a, member_str("cluster", o->cluster), member_word("service", NOBODY)))
BODY(tasks, JSON_OF(a, member_str("cluster", o->cluster), member_int("maxResults", 1)))
BODY(task, JSON_OF(a, member_str("cluster", o->cluster), member_raw("tasks", STR("[\"" NO_TASK "\"]"))))
BODY(groups, AWS_PAIRS(a, { "PageSize", STR("1") }))
BODY(rules, AWS_PAIRS(a, { "ListenerArn", o->listener }, { "PageSize", STR("1") }))
BODY(tags, AWS_PAIRS(a, { "ResourceArns.member.1", o->listener }))
BODY(pools, JSON_OF(a, member_int("MaxResults", 1)))
BODY(domain, JSON_OF(a, member_str("Domain", str_format(a, "bbws-%.*s-probe", STR_ARG(o->env)))))
BODY(scanned,
     JSON_OF(a, member_int("ResourcesPerPage", 1),
             member_raw("TagFilters", STR("[{\"Key\":\"" TAG_MANAGED_BY "\",\"Values\":[\"" MANAGED_BY "\"]}]"))))

/* clang-format off */
static const struct aws_probe_item items[] = {
	{ "elasticfilesystem:DescribeAccessPoints", AWS_EFS, true, .method = "GET", .path = "/2015-02-01/access-points", .query = points },
	{ "elasticfilesystem:CreateAccessPoint",    AWS_EFS, true },
	{ "elasticfilesystem:DeleteAccessPoint",    AWS_EFS, true },
	{ "elasticfilesystem:TagResource",          AWS_EFS, true },
	{ "secretsmanager:GetSecretValue",          AWS_SECRETS_MANAGER, true, true, admin },
	{ "secretsmanager:GetSecretValue",          AWS_SECRETS_MANAGER, true, true, secret, .fine = "ResourceNotFoundException" },
	{ "secretsmanager:DescribeSecret",          AWS_SECRETS_MANAGER, true, false, secret, .fine = "ResourceNotFoundException" },
	{ "secretsmanager:PutSecretValue",          AWS_SECRETS_MANAGER, true, true, secret_value, .fine = "ResourceNotFoundException" },
	{ "secretsmanager:DeleteSecret",            AWS_SECRETS_MANAGER, true, false, secret, .fine = "ResourceNotFoundException" },
	{ "secretsmanager:CreateSecret",            AWS_SECRETS_MANAGER, true },
	{ "secretsmanager:TagResource",             AWS_SECRETS_MANAGER, true },
	{ "logs:FilterLogEvents",                   AWS_LOGS, true, false, log_group, .fine = "ResourceNotFoundException" },
	{ "logs:DeleteLogGroup",                    AWS_LOGS, true, false, log_group, .fine = "ResourceNotFoundException" },
	{ "logs:CreateLogGroup",                    AWS_LOGS, true },
	{ "logs:TagResource",                       AWS_LOGS, true },
	{ "ecs:DescribeServices",                   AWS_ECS, true, false, services },
	{ "ecs:UpdateService",                      AWS_ECS, true, false, service, .fine = "ServiceNotFoundException" },
	{ "ecs:DeleteService",                      AWS_ECS, true, false, service, .fine = "ServiceNotFoundException" },
	{ "ecs:CreateService",                      AWS_ECS, true },
	{ "ecs:ListTasks",                          AWS_ECS, true, false, tasks },
	{ "ecs:DescribeTasks",                      AWS_ECS, true, false, task },
	{ "ecs:RunTask",                            AWS_ECS, true },
	{ "ecs:ListTaskDefinitions",                AWS_ECS, true, false, definitions },
	{ "ecs:DescribeTaskDefinition",             AWS_ECS, true, false, definition, .fine = "ClientException" },
	{ "ecs:DeregisterTaskDefinition",           AWS_ECS, true, false, definition, .fine = "ClientException" },
	{ "ecs:RegisterTaskDefinition",             AWS_ECS, true },
	{ "ecs:DeleteTaskDefinitions",              AWS_ECS, true },
	{ "ecs:TagResource",                        AWS_ECS, true },
	{ "iam:PassRole",                           AWS_ECS, true },
	{ "elasticloadbalancing:DescribeRules",        AWS_LOAD_BALANCING, true, false, rules },
	{ "elasticloadbalancing:DescribeTargetGroups", AWS_LOAD_BALANCING, true, false, groups },
	{ "elasticloadbalancing:DescribeTags",         AWS_LOAD_BALANCING, true, false, tags },
	{ "elasticloadbalancing:DescribeTargetHealth", AWS_LOAD_BALANCING, true },
	{ "elasticloadbalancing:CreateTargetGroup",    AWS_LOAD_BALANCING, true },
	{ "elasticloadbalancing:CreateRule",           AWS_LOAD_BALANCING, true },
	{ "elasticloadbalancing:ModifyRule",           AWS_LOAD_BALANCING, true },
	{ "elasticloadbalancing:DeleteRule",           AWS_LOAD_BALANCING, true },
	{ "elasticloadbalancing:DeleteTargetGroup",    AWS_LOAD_BALANCING, true },
	{ "elasticloadbalancing:AddTags",              AWS_LOAD_BALANCING, true },
	{ "cognito-idp:ListUserPools",              AWS_COGNITO, true, false, pools },
	{ "cognito-idp:DescribeUserPoolDomain",     AWS_COGNITO, true, false, domain },
	{ "cognito-idp:CreateUserPool",             AWS_COGNITO, true },
	{ "cognito-idp:TagResource",                AWS_COGNITO, true },
	{ "cognito-idp:DescribeUserPool",           AWS_COGNITO, true },
	{ "cognito-idp:DeleteUserPool",             AWS_COGNITO, true },
	{ "cognito-idp:SetUserPoolMfaConfig",       AWS_COGNITO, true },
	{ "cognito-idp:ListUserPoolClients",        AWS_COGNITO, true },
	{ "cognito-idp:CreateUserPoolClient",       AWS_COGNITO, true },
	{ "cognito-idp:DescribeUserPoolClient",     AWS_COGNITO, true },
	{ "cognito-idp:DeleteUserPoolClient",       AWS_COGNITO, true },
	{ "cognito-idp:CreateUserPoolDomain",       AWS_COGNITO, true },
	{ "cognito-idp:DeleteUserPoolDomain",       AWS_COGNITO, true },
	{ "cognito-idp:AdminCreateUser",            AWS_COGNITO, false },
	{ "cognito-idp:AdminSetUserPassword",       AWS_COGNITO, false },
	{ "cognito-idp:AdminDeleteUser",            AWS_COGNITO, false },
	{ "cognito-idp:AdminUserGlobalSignOut",     AWS_COGNITO, false },
	{ "cognito-idp:ListUsers",                  AWS_COGNITO, false },
	{ "tag:GetResources",                       AWS_TAGGING, false, false, scanned },
};
/* clang-format on */

const struct aws_probe_item *aws_instances_permissions(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(items);
	return items;
}
