/* SPDX-License-Identifier: Apache-2.0 */
/*
 * efs.c - a tenant's files: an access point of the shared file system, below its own folder, as user 33.
 *
 * Deleting an access point leaves the files, so a task that mounts it deletes them first. The log group goes with the
 * storage, since the last task writes into it.
 */
#include "providers/aws/instances/instances_private.h"
#include "providers/aws/instances/tasks.h"

/* clang-format off */
static const struct aws_error_row errors[] = {
	{ "FileSystemNotFound",                RC_DENIED },
	{ "AccessPointNotFound",               RC_NOT_FOUND },
	{ "AccessPointAlreadyExists",          RC_CONFLICT },
	{ "AccessPointLimitExceeded",          RC_INVALID },
	{ "IncorrectFileSystemLifeCycleState", RC_UNAVAILABLE },
	{ "InternalServerError",               RC_UNAVAILABLE },
	{ "ThrottlingException",               RC_LIMITED },
	{ "BadRequest",                        RC_INVALID },
	{ NULL, RC_OK },
};
#define POINTS "/2015-02-01/access-points"
#define EFS_OP(operation, writing, verb, at) \
	{ .service = &aws_services[AWS_EFS], .name = operation, .permission = "elasticfilesystem:" operation, .writes = writing, \
	  .method = verb, .path = at, .errors = errors }
static const struct aws_op
	create_point    = EFS_OP("CreateAccessPoint", true, "POST", POINTS),
	describe_points = EFS_OP("DescribeAccessPoints", false, "GET", POINTS),
	delete_point    = EFS_OP("DeleteAccessPoint", true, "DELETE", POINTS "/{AccessPointId}");
/* clang-format on */

static struct str path_of(const struct site *s)
{
	return instance_resource_name(s->tenant, INSTANCE_STORAGE, s->a);
}

static void read_point(const struct site *s, const json_t *point, struct found *ret)
{
	*ret = (struct found){ 0 };
	ret->is_there = json_take_text(point, "AccessPointId", s->a, &ret->id) && ret->id.n;
	json_take_text(point, "AccessPointArn", s->a, &ret->arn);
	json_take_text(point, "LifeCycleState", s->a, &ret->state);
	ret->key = aws_get_tag(json_object_get(point, "Tags"), "Key", "Value", TAG_KEY, s->a);
}

struct search {
	struct site  *s;
	struct found *found;
};

static enum rc take_point(void *arg, const json_t *point, struct err *e UNUSED)
{
	struct search *x = arg;
	struct str     path;

	if (!x->found->is_there && json_get_text(json_object_get(point, "RootDirectory"), "Path", &path) &&
	    str_eq(path, path_of(x->s)))
		read_point(x->s, point, x->found);
	return RC_OK;
}

enum rc efs_find(struct site *s, struct found *ret, struct err *e)
{
	struct search     x = { s, ret };
	struct str        query = AWS_PAIRS(s->a, { "FileSystemId", s->x->o.file_system });
	struct aws_paging paging = { .call = { .op = &describe_points, .query = query, .ms = SITE_CALL_MS },
		                     .token = "NextToken",
		                     .list = "AccessPoints",
		                     .each = take_point,
		                     .arg = &x,
		                     .is_over = &ret->is_there };

	*ret = (struct found){ 0 };
	return aws_pages(s->x->caller, &paging, e);
}

static enum rc make_point(struct site *s, struct found *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *made = NULL;
	struct str                  body;
	enum rc                     rc;

	body = JSON_OF(s->a, member_str("ClientToken", site_token(s, "storage")),
	               member_str("FileSystemId", s->x->o.file_system),
	               member_raw("PosixUser", STR("{\"Uid\":33,\"Gid\":33}")), member_object("RootDirectory"),
	               member_str("Path", path_of(s)),
	               member_raw("CreationInfo", STR("{\"OwnerUid\":33,\"OwnerGid\":33,\"Permissions\":\"755\"}")),
	               member_end(), member_raw("Tags", site_tag_list(s, "Key", "Value", NULL, STR(""))));
	if ((rc = site_do(s, &create_point, body, &made, e)))
		return rc;
	read_point(s, made, ret);
	return RC_OK;
}

static enum rc is_available(struct site *s, bool *ret, struct err *e)
{
	struct found f;
	enum rc      rc = efs_find(s, &f, e);

	if (!rc && str_eq(f.state, STR("error")))
		return err_set(e, RC_INVALID, "access point %.*s ended in an error", STR_ARG(f.id));
	*ret = str_eq(f.state, STR("available"));
	return rc;
}

static struct str outputs_of(const struct site *s, const struct found *f)
{
	return JSON_OF(s->a, member_str("id", f->id), member_str("name", path_of(s)), member_str("arn", f->arn),
	               member_str("instance", f->key));
}

enum rc efs_make(struct site *s, struct str *ret_outputs, struct err *e)
{
	struct found f;
	enum rc      rc = site_make_once(s, INSTANCE_STORAGE, efs_find, make_point, &f, e);

	if (!rc && !str_eq(f.state, STR("available")))
		rc = site_wait_for(s, is_available, "the access point is available", e);
	if (!rc)
		*ret_outputs = outputs_of(s, &f);
	return rc;
}

enum rc efs_check(struct site *s, bool *ret_exists, struct str *ret_outputs, struct err *e)
{
	struct found f;
	enum rc      rc = efs_find(s, &f, e);

	*ret_exists = f.is_there;
	*ret_outputs = outputs_of(s, &f);
	return rc;
}

static enum rc is_gone(struct site *s, bool *ret, struct err *e)
{
	struct found f;
	enum rc      rc = efs_find(s, &f, e);

	*ret = !f.is_there;
	return rc;
}

enum rc efs_remove(struct site *s, struct err *e)
{
	struct found    f;
	struct aws_call drop = { .op = &delete_point, .path_args = &f.id, .ms = SITE_CALL_MS };
	enum rc         rc = efs_find(s, &f, e);

	if (!rc && f.is_there && str_eq(f.state, STR("available")))
		rc = task_empty_files(s, &f, e);
	if (!rc && f.is_there && !str_eq(f.state, STR("deleting")))
		rc = err_forgive(e, aws_do_call(s->x->caller, &drop, s->a, NULL, e), RC_NOT_FOUND);
	if (!rc && f.is_there)
		rc = site_wait_for(s, is_gone, "the access point is gone", e);
	if (!rc)
		rc = definitions_remove(s, FAMILY_FILES, e);
	return rc ? rc : log_group_remove(s, e);
}
