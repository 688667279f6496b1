/* SPDX-License-Identifier: Apache-2.0 */
/* secret.c - a secret of our own, kept by Secrets Manager. */
#include "providers/aws/secret.h"

#include "base/json.h"
#include "providers/aws/call.h"

enum { SECRET_MS = 15000, NAME_MAX = 2048 };

static const struct aws_error_row errors[] = {
	{ "ResourceNotFoundException", RC_NOT_FOUND },
	{ "InvalidRequestException", RC_NOT_FOUND }, /* it is being deleted */
	{ "DecryptionFailure", RC_DENIED },
	{ NULL, RC_OK },
};

static const struct aws_op get_value = { .service = &aws_services[AWS_SECRETS_MANAGER],
	                                 .name = "GetSecretValue",
	                                 .permission = "secretsmanager:GetSecretValue",
	                                 .errors = errors,
	                                 .is_secret = true };

static enum rc pick(struct str value, struct str name, struct str key, struct arena *a, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *members = NULL;
	struct str                  text = STR("");

	if (json_parse(value, &members, NULL) || !json_take_text(members, str_dup(a, key).p, a, &text) || !text.n)
		return err_set(e, RC_INVALID, "secret %.*s must be a JSON object with a text '%.*s'", STR_ARG(name),
		               STR_ARG(key));
	*ret = text;
	return RC_OK;
}

enum rc aws_secret_read(struct aws_caller *c, struct str reference, struct arena *a, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	struct str                  key = reference, name = str_cut(&key, '#'), value;
	enum rc                     rc;

	if (!name.n || name.n > NAME_MAX)
		return err_set(e, RC_INVALID, "must be " AWS_SECRET_PREFIX "NAME or " AWS_SECRET_PREFIX "NAME#key");
	if ((rc = aws_do_within(c, &get_value, SECRET_MS, JSON_OF(a, member_str("SecretId", name)), a, &answer, e)))
		return err_wrap(e, rc, "secret %.*s", STR_ARG(name));
	if (!json_take_text(answer, "SecretString", a, &value) || !value.n)
		return err_set(e, RC_INVALID, "secret %.*s has no text", STR_ARG(name));
	if (key.n)
		return pick(value, name, key, a, ret, e);
	*ret = value;
	return RC_OK;
}
