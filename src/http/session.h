/* session.h - who sends a request to /api: a person with a session's token, or a program with a service account's key. Loop thread
 * only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/caller.h"
#include "net/jwt.h"

struct arena;
struct auth;
struct keyring;
struct password_book;
struct request;
struct signin_provider;

/* Without a policy that says so. */
enum { SESSION_MINUTES_DEFAULT = 60 };

/* Everything about sign-in that lives as long as the api. Texts are copied. */
struct auth_options {
	const struct clock     *clock;
	struct jwt_secrets      secrets;     /* without a current one nobody can sign in, and no token is good */
	struct str              web_app_url; /* where a browser goes with its token; empty: the root of this server */
	bool                    is_secure;   /* browsers reach us by https: cookies are for that only */
	struct password_book   *passwords;   /* of the page of our own; NULL: there is nobody to check */
	struct signin_provider *provider;    /* instead of that page; NULL: the page */
	struct keyring         *keyring;
};

struct auth *auth_new(const struct auth_options *o);
void         auth_free(struct auth *a);

/* From now on. Texts are copied. */
void auth_set_secrets(struct auth *a, const struct jwt_secrets *secrets);

/* Whose session's token this is, and for how many seconds more; a service account's key is none. False: nobody's, or no longer. What *ret
 * points to lives in the arena. a may be NULL: then there is no sign-in. */
MUST_CHECK bool session_of_token(const struct auth *a, struct str token, struct arena *arena, struct caller *ret,
                                 int64_t *ret_left_sec);

/* Who asks, from the Authorization header; for handlers of SCOPE_SESSION routes, first thing. What *ret points to lives as long as
 * the request. A service account's roles are what its scopes are worth on this path and method.
 * RC_UNKNOWN (401): no header; expired, bad or unknown. RC_DENIED (403): not "Bearer ..."; a service account whose scopes do not
 * reach here. RC_INVALID (400): a good token with a user that makes no sense. RC_UNAVAILABLE (503): sign-in is not set up.
 * The caller sends e in the form of its routes. */
MUST_CHECK enum rc session_caller(struct request *r, struct caller *ret, struct err *e);
