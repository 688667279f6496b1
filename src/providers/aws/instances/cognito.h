/* cognito.h - what of the identity pool others need. */
#pragma once

#include "providers/aws/instances/instances_private.h"

extern const struct aws_error_row cognito_errors[];
#define COGNITO_OP(operation, writing, secret)                                                                    \
	{                                                                                                         \
		.service = &aws_services[AWS_COGNITO], .name = operation, .permission = "cognito-idp:" operation, \
		.writes = writing, .errors = cognito_errors, .is_secret = secret                                  \
	}

/* RC_NOT_FOUND: the tenant has no pool. */
MUST_CHECK enum rc cognito_pool(struct site *s, struct str *ret_id, struct err *e);

/* What the site needs to know to ask the pool, as JSON; has a secret in it. */
MUST_CHECK enum rc cognito_signin(struct site *s, struct str *ret, struct err *e);

MUST_CHECK enum rc people_add(struct site *s, struct str email, struct str name, bool *ret_is_new,
                              struct str *ret_password, struct err *e);
MUST_CHECK enum rc people_read(struct site *s, struct instance_person **ret, size_t *ret_count, struct err *e);
MUST_CHECK enum rc people_remove(struct site *s, struct str email, bool *ret_was_there, struct err *e);
