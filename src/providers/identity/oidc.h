/* oidc.h - sign-in by an OpenID Connect provider: authorisation code flow with PKCE; groups become roles. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/signin.h"

/* Texts must live as long as the provider. Lists are separated by commas. */
struct oidc_options {
	const struct clock *clock;
	struct str          issuer; /* exactly as the provider calls itself */
	struct str          client_id, client_secret;
	struct str          redirect_url; /* <web app>/api/auth/login/callback */
	struct str          scopes;       /* separated by blanks, "openid" among them */
	struct str          groups_claim, admin_groups, manager_groups, user_groups;
	bool                has_directory; /* who may do what is told by another directory: nobody needs a group here */
	const char         *ca_file;       /* NULL: the system's */
};

/* What can be said against the options. RC_INVALID. */
MUST_CHECK enum rc oidc_check(const struct oidc_options *o, struct err *e);

/* Asks the provider for nothing yet. */
struct signin_provider *oidc_open(const struct oidc_options *o);
void                    oidc_close(struct signin_provider *p);
