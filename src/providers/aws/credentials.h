/* credentials.h - the credentials port: temporary credentials of a role in the account, kept in Secrets Manager for one
 * person. */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum { AWS_CREDENTIALS_RENEW_SEC = 300 }; /* how often aws_credentials_renew() should be called */

/* Copied; what it points to is borrowed. */
struct aws_credentials_options {
	struct aws_callers *callers;
	struct store       *store;
	const struct clock *clock;
	struct str          role;           /* whose credentials they are: its name, the same in every account */
	struct str          key;            /* that encrypts them; AWS's own lets nobody in another account read them */
	struct str          permission_set; /* of the person, who can read them only from a session of it */
};
struct aws_credential_store *aws_credentials_new(const struct aws_credentials_options *o);
void                         aws_credentials_free(struct aws_credential_store *c);
struct credentials          *aws_credentials_port(struct aws_credential_store *c);

/* Replaces those that expire within a quarter of an hour, and removes what a withdrawal could not. For one node at a
 * time, beside others that issue and withdraw. All are tried; the first failure is returned. Blocks. */
MUST_CHECK enum rc aws_credentials_renew(struct aws_credential_store *c, int64_t *ret_renewed, struct err *e);
