/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault.c - what only a tenant's tasks may know: three secrets in Secrets Manager.
 *
 *   bbws/ENV/tenant-NAME/db        the database's user and its password
 *   bbws/ENV/tenant-NAME/wp-admin  the site's administrator
 *   bbws/ENV/tenant-NAME/signin    how the site asks the identity pool; written by content.c
 *
 * Each try gives the database's user the password that is in the secret: so it does not matter where an earlier try has
 * stopped.
 */
#include "base/id.h"
#include "base/password.h"
#include "providers/aws/instances/instances_private.h"
#include "providers/aws/instances/tasks.h"

/* clang-format off */
static const struct aws_error_row errors[] = {
	{ "ResourceNotFoundException",      RC_NOT_FOUND },
	{ "ResourceExistsException",        RC_CONFLICT },
	{ "InvalidRequestException",        RC_UNAVAILABLE }, /* it is being deleted */
	{ "LimitExceededException",         RC_INVALID },
	{ "PreconditionNotMetException",    RC_UNAVAILABLE },
	{ "InternalServiceError",           RC_UNAVAILABLE },
	{ "DecryptionFailure",              RC_DENIED },
	{ "EncryptionFailure",              RC_DENIED },
	{ NULL, RC_OK },
};
#define SECRET_OP(operation, writing, secret) \
	{ .service = &aws_services[AWS_SECRETS_MANAGER], .name = operation, .permission = "secretsmanager:" operation, .writes = writing, \
	  .errors = errors, .is_secret = secret }
static const struct aws_op
	create_secret   = SECRET_OP("CreateSecret", true, true),
	put_value       = SECRET_OP("PutSecretValue", true, true),
	get_value       = SECRET_OP("GetSecretValue", false, true),
	describe_secret = SECRET_OP("DescribeSecret", false, false),
	delete_secret   = SECRET_OP("DeleteSecret", true, false);
/* clang-format on */

struct str vault_name(const struct site *s, enum site_secret which)
{
	static const char *const endings[SECRET_COUNT] = { "db", "wp-admin", "signin" };

	return str_format(s->a, "bbws/%.*s/tenant-%s/%s", STR_ARG(s->x->o.env), s->t, endings[which]);
}

enum rc vault_find(struct site *s, enum site_secret which, struct found *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL;
	struct str                  body = JSON_OF(s->a, member_str("SecretId", vault_name(s, which)));
	enum rc                     rc = site_do(s, &describe_secret, body, &got, e);

	*ret = (struct found){ 0 };
	if (rc)
		return err_forgive(e, rc, RC_NOT_FOUND);
	ret->is_there = !json_object_get(got, "DeletedDate");
	ret->state = ret->is_there ? STR("") : STR("deleted");
	json_take_text(got, "ARN", s->a, &ret->arn);
	ret->id = ret->arn;
	ret->key = aws_get_tag(json_object_get(got, "Tags"), "Key", "Value", TAG_KEY, s->a);
	return RC_OK;
}

enum rc vault_read(struct site *s, struct str name, struct str *ret_user, struct str *ret_password, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL, *value = NULL;
	struct str                  text;
	enum rc                     rc = site_do(s, &get_value, JSON_OF(s->a, member_str("SecretId", name)), &got, e);

	if (rc)
		return err_wrap(e, rc, "secret %.*s", STR_ARG(name));
	if (!json_get_text(got, "SecretString", &text) || json_parse(text, &value, NULL) ||
	    !json_take_text(value, "username", s->a, ret_user) || !ret_user->n ||
	    !json_take_text(value, "password", s->a, ret_password) || !ret_password->n)
		return err_set(e, RC_INVALID,
		               "secret %.*s must be a JSON object with the texts 'username' and 'password'",
		               STR_ARG(name));
	return RC_OK;
}

static enum rc drop(struct site *s, enum site_secret which, struct err *e)
{
	struct str body = JSON_OF(s->a, member_str("SecretId", vault_name(s, which)),
	                          member_bool("ForceDeleteWithoutRecovery", true));

	return err_forgive(e, site_do(s, &delete_secret, body, NULL, e), RC_NOT_FOUND);
}

/* --- made --- */

/* A secret in its recovery window still occupies its name. */
static enum rc create(struct site *s, enum site_secret which, struct str value, struct found *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *made = NULL;
	struct str                  name = vault_name(s, which), body;
	enum rc                     rc = ret->state.n ? drop(s, which, e) : RC_OK;

	body = JSON_OF(s->a, member_str("Name", name), member_str("SecretString", value),
	               member_str("ClientRequestToken", site_token(s, name.p)),
	               member_raw("Tags", site_tag_list(s, "Key", "Value", NULL, STR(""))));
	if (rc || (rc = site_do(s, &create_secret, body, &made, e)))
		return rc;
	*ret = (struct found){ .is_there = true, .key = s->spec->instance };
	json_take_text(made, "ARN", s->a, &ret->arn);
	ret->id = ret->arn;
	return RC_OK;
}

static struct str credentials(const struct site *s, struct str user)
{
	return JSON_OF(s->a, member_str("username", user), member_str("password", password_new(s->a)));
}

static enum rc find_database(struct site *s, struct found *ret, struct err *e)
{
	return vault_find(s, SECRET_DATABASE, ret, e);
}

static enum rc create_database(struct site *s, struct found *ret, struct err *e)
{
	return create(s, SECRET_DATABASE, credentials(s, rds_user(s)), ret, e);
}

static enum rc find_admin(struct site *s, struct found *ret, struct err *e)
{
	return vault_find(s, SECRET_ADMIN, ret, e);
}

static enum rc create_admin(struct site *s, struct found *ret, struct err *e)
{
	return create(s, SECRET_ADMIN, credentials(s, STR("admin")), ret, e);
}

static struct str outputs_of(const struct site *s, struct str arn, struct str key)
{
	return JSON_OF(s->a, member_str("id", arn), member_str("name", vault_name(s, SECRET_DATABASE)),
	               member_if_any(member_str("instance", key)));
}

enum rc vault_make(struct site *s, struct str *ret_outputs, struct err *e)
{
	struct found database, admin;
	struct str   user, password;
	enum rc      rc = site_make_once(s, INSTANCE_SECRET, find_database, create_database, &database, e);

	if (rc || (rc = site_make_once(s, INSTANCE_SECRET, find_admin, create_admin, &admin, e)) ||
	    (rc = vault_read(s, vault_name(s, SECRET_DATABASE), &user, &password, e)) ||
	    (rc = rds_set_password(s, password, STR(""), e)))
		return rc;
	*ret_outputs = outputs_of(s, database.arn, database.key);
	return RC_OK;
}

enum rc vault_put(struct site *s, enum site_secret which, struct str value, struct err *e)
{
	char         token[ID_UUID_SIZE];
	struct found f;
	enum rc      rc = vault_find(s, which, &f, e);

	if (rc)
		return rc;
	if (!f.is_there && s->spec) {
		rc = create(s, which, value, &f, e);
		if (rc != RC_CONFLICT)
			return rc;
		err_clear(e);
	}
	id_uuid(token);
	return site_do(s, &put_value,
	               JSON_OF(s->a, member_str("SecretId", vault_name(s, which)),
	                       member_word("ClientRequestToken", token), member_str("SecretString", value)),
	               NULL, e);
}

/* --- looked at, removed --- */

enum rc vault_check(struct site *s, bool *ret_exists, struct str *ret_outputs, struct err *e)
{
	struct found f;
	struct str   key = STR("");
	enum rc      rc = RC_OK;

	*ret_exists = false;
	for (int which = SECRET_COUNT - 1; !rc && which >= 0; which--) {
		if (!(rc = vault_find(s, (enum site_secret)which, &f, e)) && f.is_there) {
			*ret_exists = true;
			key = f.key.n ? f.key : key;
		}
	}
	if (!rc)
		*ret_outputs = outputs_of(s, f.arn, key);
	return rc;
}

enum rc vault_remove(struct site *s, struct err *e)
{
	enum rc rc = RC_OK;

	for (int which = 0; !rc && which < SECRET_COUNT; which++)
		rc = drop(s, (enum site_secret)which, e);
	return rc ? rc : definitions_remove(s, FAMILY_INSTALL, e); /* which cannot start without them */
}
