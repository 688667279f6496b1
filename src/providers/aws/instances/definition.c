/* SPDX-License-Identifier: Apache-2.0 */
/*
 * definition.c - what tasks are made of, and where they log.
 *
 * Every registration is a new revision, so the newest one is looked at first: its tag leasehold:digest says what it was
 * made of.
 */
#include "base/hash.h"
#include "providers/aws/instances/tasks.h"

enum { DELETE_MAX = 10, SMALL_CPU = 512, SMALL_MEMORY = 1024 };

/* clang-format off */
const struct aws_error_row ecs_errors[] = {
	{ "ClusterNotFoundException",                         RC_DENIED },
	{ "BlockedException",                                 RC_DENIED },
	{ "ServiceNotFoundException",                         RC_NOT_FOUND },
	{ "ServiceNotActiveException",                        RC_NOT_FOUND },
	{ "InvalidParameterException",                        RC_UNAVAILABLE, "does not have an associated load balancer" }, /* it will */
	{ "ClientException",                                  RC_INVALID },
	{ "LimitExceededException",                           RC_INVALID },
	{ "PlatformUnknownException",                         RC_INVALID },
	{ "PlatformTaskDefinitionIncompatibilityException",   RC_INVALID },
	{ "UnsupportedFeatureException",                      RC_INVALID },
	{ "ConflictException",                                RC_UNAVAILABLE },
	{ "ServerException",                                  RC_UNAVAILABLE },
	{ NULL, RC_OK },
};
static const struct aws_error_row describe_errors[] = {
	{ "ClientException", RC_NOT_FOUND }, /* there is none, or no active one */
	{ "ServerException", RC_UNAVAILABLE },
	{ NULL, RC_OK },
};
static const struct aws_error_row log_errors[] = {
	{ "ResourceAlreadyExistsException", RC_CONFLICT },
	{ "ResourceNotFoundException",      RC_NOT_FOUND },
	{ "OperationAbortedException",      RC_UNAVAILABLE },
	{ "ServiceUnavailableException",    RC_UNAVAILABLE },
	{ "LimitExceededException",         RC_INVALID },
	{ NULL, RC_OK },
};
static const struct aws_op
	register_definition   = ECS_OP("RegisterTaskDefinition", true),
	list_definitions      = ECS_OP("ListTaskDefinitions", false),
	deregister_definition = ECS_OP("DeregisterTaskDefinition", true),
	delete_definitions    = ECS_OP("DeleteTaskDefinitions", true),
	describe_definition = { .service = &aws_services[AWS_ECS], .name = "DescribeTaskDefinition", .permission = "ecs:DescribeTaskDefinition",
	                        .errors = describe_errors },
	create_group = { .service = &aws_services[AWS_LOGS], .name = "CreateLogGroup", .permission = "logs:CreateLogGroup", .writes = true, .errors = log_errors },
	delete_group = { .service = &aws_services[AWS_LOGS], .name = "DeleteLogGroup", .permission = "logs:DeleteLogGroup", .writes = true, .errors = log_errors };
/* clang-format on */

struct str family_name(const struct site *s, enum family family)
{
	static const char *const endings[FAMILY_COUNT] = { "wordpress", "install", "files", "drop" };

	return str_format(s->a, "tenant-%s-%s", s->t, endings[family]);
}

/* --- logs --- */

struct str log_group_name(const struct site *s)
{
	return str_format(s->a, "/aws/ecs/tenant-%s-wordpress", s->t);
}

enum rc log_group_make(struct site *s, struct err *e)
{
	struct str body = JSON_OF(s->a, member_str("logGroupName", log_group_name(s)),
	                          member_raw("tags", site_tag_map(s)));

	return err_forgive(e, site_do(s, &create_group, body, NULL, e), RC_CONFLICT);
}

enum rc log_group_remove(struct site *s, struct err *e)
{
	struct str body = JSON_OF(s->a, member_str("logGroupName", log_group_name(s)));

	return err_forgive(e, site_do(s, &delete_group, body, NULL, e), RC_NOT_FOUND);
}

/* --- what it is made of --- */

static struct str json_list(struct arena *a, struct str items)
{
	struct str all = STR("");

	while (items.n) {
		struct str item = str_trim(str_cut(&items, ','));

		all = str_format(a, "%.*s%s\"%.*s\"", STR_ARG(all), all.n ? "," : "", STR_ARG(item));
	}
	return str_format(a, "[%.*s]", STR_ARG(all));
}

struct str site_network(const struct site *s)
{
	return JSON_OF(s->a, member_object("awsvpcConfiguration"),
	               member_raw("subnets", json_list(s->a, s->x->o.subnets)),
	               member_raw("securityGroups", json_list(s->a, s->x->o.security_groups)),
	               member_word("assignPublicIp", "DISABLED"), member_end());
}

/* LEASEHOLD_WORDPRESS_IMAGE with the version in the place of {version}. */
static struct str image_of(const struct site *s)
{
	static const char mark[] = "{version}";
	struct str        image = s->x->o.image, rest = str_from(s->x->o.versions);
	struct str        version = s->spec ? s->spec->wordpress_version : str_cut(&rest, ' ');
	const char       *at = memmem(image.p, image.n, mark, sizeof(mark) - 1);

	if (!at)
		return image;
	return str_format(s->a, "%.*s%.*s%s", (int)(at - image.p), image.p, STR_ARG(version), at + sizeof(mark) - 1);
}

static void put_pair(struct json_out *o, const char *value_name, const char *name, struct str value)
{
	JSON_PUT(o, member_object(NULL), member_word("name", name), member_str(value_name, value), member_end());
}

static void put_environment(struct json_out *o, const struct site *s, enum family family)
{
	struct str url = str_format(s->a, "https://%.*s/tenant/%s", STR_ARG(s->x->o.domain), s->t);

	json_put_array(o, "environment");
	put_pair(o, "value", "LEASEHOLD_SITE_PATH", str_format(s->a, "/tenant/%s", s->t));
	if (family < FAMILY_FILES) {
		put_pair(o, "value", "WORDPRESS_DB_HOST", s->x->o.db_host);
		put_pair(o, "value", "WORDPRESS_DB_NAME", rds_name(s));
		put_pair(o, "value", "WORDPRESS_CONFIG_EXTRA",
		         str_format(s->a,
		                    "define('MYSQL_CLIENT_FLAGS', MYSQLI_CLIENT_SSL); define('WP_HOME', '%s'); "
		                    "define('WP_SITEURL', '%s');",
		                    url.p, url.p));
	}
	if (family == FAMILY_INSTALL)
		put_pair(o, "value", "LEASEHOLD_SITE_URL", url);
	if (family == FAMILY_INSTALL || family == FAMILY_DROP)
		put_pair(o, "value", "LEASEHOLD_ARCHIVE",
		         str_format(s->a, "s3://%.*s/%.*s/tenant-%s", STR_ARG(s->x->o.bucket), STR_ARG(s->x->o.env),
		                    s->t));
	json_close_array(o);
}

/* ECS reads them when a task starts, so that no definition has a password in it. */
static enum rc put_secrets(struct json_out *o, struct site *s, enum family family, struct err *e)
{
	static const struct {
		const char      *name, *member;
		enum site_secret from;
		enum family      first; /* of the families that have it */
	} rows[] = { { "WORDPRESS_DB_USER", ":username::", SECRET_DATABASE, FAMILY_WORDPRESS },
		     { "WORDPRESS_DB_PASSWORD", ":password::", SECRET_DATABASE, FAMILY_WORDPRESS },
		     { "LEASEHOLD_ADMIN_USER", ":username::", SECRET_ADMIN, FAMILY_INSTALL },
		     { "LEASEHOLD_ADMIN_PASSWORD", ":password::", SECRET_ADMIN, FAMILY_INSTALL },
		     { "LEASEHOLD_SIGNIN", "", SECRET_SIGNIN, FAMILY_INSTALL } };
	struct found secrets[SECRET_COUNT] = { 0 };
	enum rc      rc = RC_OK;

	json_put_array(o, "secrets");
	for (size_t i = 0; !rc && i < ARRAY_LEN(rows) && family < FAMILY_FILES; i++) {
		struct found *f = &secrets[rows[i].from];

		if (rows[i].first > family)
			continue;
		if (!f->is_there && !(rc = vault_find(s, rows[i].from, f, e)) && !f->is_there &&
		    (s->spec || rows[i].from == SECRET_DATABASE)) /* without a spec it is for an archive */
			rc = err_set(e, RC_NOT_FOUND, "there is no secret %s", vault_name(s, rows[i].from).p);
		if (!rc && f->is_there)
			put_pair(o, "valueFrom", rows[i].name,
			         str_format(s->a, "%.*s%s", STR_ARG(f->arn), rows[i].member));
	}
	json_close_array(o);
	return rc;
}

static void put_container(struct json_out *o, struct site *s, enum family family)
{
	static const char *const prefixes[FAMILY_COUNT] = { "wordpress", "install", "files", "drop" };
	struct str
	        mounts = STR("[{\"sourceVolume\":\"wp-content\",\"containerPath\":\"/var/www/html/wp-content\"}]"),
	        ports = STR("[{\"containerPort\":80,\"protocol\":\"tcp\"}]"),
	        health = STR(
	                "{\"command\":[\"CMD-SHELL\",\"curl -f http://localhost/ || exit 1\"],\"interval\":30,\"timeout\":5,"
	                "\"retries\":3,\"startPeriod\":60}");
	bool serves = family == FAMILY_WORDPRESS;

	JSON_PUT(o, member_word("name", SITE_CONTAINER), member_str("image", image_of(s)),
	         member_bool("essential", true), member_if(family != FAMILY_DROP, member_raw("mountPoints", mounts)),
	         member_if(serves, member_raw("portMappings", ports)),
	         member_if(serves, member_raw("healthCheck", health)),
	         member_if(!serves, member_raw("command", STR("[\"leasehold-task\"]"))));
	if (family == FAMILY_DROP) /* the log group is an instance's, and that may be gone */
		return;
	JSON_PUT(o, member_object("logConfiguration"), member_word("logDriver", "awslogs"), member_object("options"),
	         member_str("awslogs-group", log_group_name(s)),
	         member_word("awslogs-region", aws_caller_region(s->x->caller)),
	         member_word("awslogs-stream-prefix", prefixes[family]), member_end(), member_end());
}

/* Without its last bracket: the tags follow. */
static enum rc write_definition(struct site *s, enum family family, struct str *ret, struct err *e)
{
	bool            serves = family == FAMILY_WORDPRESS && s->spec;
	struct found    point;
	struct buf      b = BUF(JSON_OF_MAX);
	struct json_out o = JSON_OUT(&b);
	enum rc         rc = family == FAMILY_DROP ? RC_OK : efs_find(s, &point, e);

	if (rc)
		return rc;
	if (family != FAMILY_DROP && !point.is_there)
		return err_set(e, RC_NOT_FOUND, "tenant %.*s has no storage", STR_ARG(s->tenant));
	json_open_object(&o);
	JSON_PUT(&o, member_str("family", family_name(s, family)), member_word("networkMode", "awsvpc"),
	         member_raw("requiresCompatibilities", STR("[\"FARGATE\"]")),
	         member_str("cpu", str_format(s->a, "%lld", (long long)(serves ? s->spec->cpu_units : SMALL_CPU))),
	         member_str("memory",
	                    str_format(s->a, "%lld", (long long)(serves ? s->spec->memory_mb : SMALL_MEMORY))),
	         member_str("executionRoleArn", s->x->o.execution_role), member_str("taskRoleArn", s->x->o.task_role));
	if (family != FAMILY_DROP)
		JSON_PUT(&o, member_list("volumes"), member_object(NULL), member_word("name", "wp-content"),
		         member_object("efsVolumeConfiguration"), member_str("fileSystemId", s->x->o.file_system),
		         member_word("transitEncryption", "ENABLED"), member_object("authorizationConfig"),
		         member_str("accessPointId", point.id), member_word("iam", "ENABLED"), member_end(),
		         member_end(), member_end(), member_list_end());
	JSON_PUT(&o, member_list("containerDefinitions"), member_object(NULL));
	put_container(&o, s, family);
	put_environment(&o, s, family);
	rc = put_secrets(&o, s, family, e);
	JSON_PUT(&o, member_end(), member_list_end());
	*ret = buf_take(&b, s->a);
	return rc;
}

/* --- registered --- */

/* The newest that is active, with its tags; NULL: none. Yours. */
static enum rc get_newest(struct site *s, enum family family, json_t **ret, struct err *e)
{
	struct str body = JSON_OF(s->a, member_str("taskDefinition", family_name(s, family)),
	                          member_raw("include", STR("[\"TAGS\"]")));

	return err_forgive(e, site_do(s, &describe_definition, body, ret, e), RC_NOT_FOUND);
}

enum rc definition_find(struct site *s, enum family family, bool *ret_is_there, struct str *ret_key, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL;
	enum rc                     rc = get_newest(s, family, &got, e);

	*ret_is_there = got != NULL;
	*ret_key = aws_get_tag(json_object_get(got, "tags"), "key", "value", TAG_KEY, s->a);
	return rc;
}

/* The newest, if it has this digest; else empty. */
static enum rc find_same(struct site *s, enum family family, struct str digest, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL;
	enum rc                     rc = get_newest(s, family, &got, e);

	*ret = STR("");
	if (str_eq(aws_get_tag(json_object_get(got, "tags"), "key", "value", TAG_DIGEST, s->a), digest))
		json_take_text(json_object_get(got, "taskDefinition"), "taskDefinitionArn", s->a, ret);
	return rc;
}

enum rc definition_make(struct site *s, enum family family, struct str *ret_arn, struct err *e)
{
	CLEANUP(json_freep) json_t *made = NULL;
	struct str                  text, digest, key;
	bool                        is_there;
	enum rc                     rc;

	if (family == FAMILY_INSTALL && !s->spec) { /* as it was configured, unless that is gone */
		*ret_arn = family_name(s, family);
		if ((rc = definition_find(s, family, &is_there, &key, e)) || is_there)
			return rc;
	}
	if ((rc = write_definition(s, family, &text, e)))
		return rc;
	digest = str_of(hash_sha256_hex(s->a, text).p, SITE_TOKEN_SIZE - 1);
	if ((rc = find_same(s, family, digest, ret_arn, e)) || ret_arn->n)
		return rc;
	text = str_format(s->a, "%.*s,\"tags\":%s}", STR_ARG(text),
	                  site_tag_list(s, "key", "value", TAG_DIGEST, digest).p);
	if ((rc = site_do(s, &register_definition, text, &made, e)))
		return rc;
	if (!json_take_text(json_object_get(made, "taskDefinition"), "taskDefinitionArn", s->a, ret_arn) || !ret_arn->n)
		return err_set(e, RC_TIMEOUT, "RegisterTaskDefinition: the answer has no ARN");
	return RC_OK;
}

/* --- removed --- */

static enum rc take_arn(void *arg, const json_t *arn, struct err *e UNUSED)
{
	if (json_is_string(arn))
		json_array_append_new(arg, json_copy((json_t *)(uintptr_t)arn));
	return RC_OK;
}

/* Adds their ARNs to the array. */
static enum rc list_all(struct site *s, enum family family, const char *status, json_t *arns, struct err *e)
{
	struct str        body = JSON_OF(s->a, member_str("familyPrefix", family_name(s, family)),
	                                 member_word("status", status));
	struct aws_paging paging = { .call = { .op = &list_definitions, .body = body, .ms = SITE_CALL_MS },
		                     .token = "nextToken",
		                     .list = "taskDefinitionArns",
		                     .each = take_arn,
		                     .arg = arns };

	return aws_pages(s->x->caller, &paging, e);
}

static enum rc delete_some(struct site *s, const json_t *all, size_t from, struct err *e)
{
	CLEANUP(json_freep) json_t *some = json_array();

	for (size_t i = from; i < json_array_size(all) && i < from + DELETE_MAX; i++)
		json_array_append(some, json_array_get(all, i));
	return site_do(s, &delete_definitions, JSON_OF(s->a, member_raw("taskDefinitions", json_dump(s->a, some))),
	               NULL, e);
}

enum rc definitions_remove(struct site *s, enum family family, struct err *e)
{
	CLEANUP(json_freep) json_t *active = json_array(), *inactive = json_array();
	enum rc                     rc = list_all(s, family, "ACTIVE", active, e);

	/* One that an earlier try has made inactive is refused; the list that follows shows what is left. */
	for (size_t i = 0; !rc && i < json_array_size(active); i++) {
		const char *arn = json_string_value(json_array_get(active, i));

		rc = site_do(s, &deregister_definition, JSON_OF(s->a, member_word("taskDefinition", arn)), NULL, e);
		rc = err_forgive(e, rc, RC_INVALID);
	}
	if (rc || (rc = list_all(s, family, "INACTIVE", inactive, e)))
		return rc;
	for (size_t i = 0; !rc && i < json_array_size(inactive); i += DELETE_MAX)
		rc = delete_some(s, inactive, i, e);
	return rc;
}
