/* auth.h - who sends a request to /api: a person with a session's token, or a program with a service account's
 * key; and who somebody is, by the directory of people. Loop thread only. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/ports/caller.h"
#include "net/jwt.h"
#include "service/service_accounts.h"

struct http_request;
struct request;

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
	struct people          *people; /* who has signed in */
};

struct auth {
	struct auth_options o;
	struct arena        arena;            /* what lives as long as this */
	struct arena        secret_arena;     /* of o.secrets */
	struct ratelimit   *by_pair;          /* failures of a person's name from one address */
	struct ratelimit   *by_pair_strictly; /* the same, while the name is tried from everywhere */
	struct ratelimit   *by_either;        /* the name alone, the address alone */
	uint64_t            hash_seed;
};

struct auth *auth_new(const struct auth_options *o);
void         auth_free(struct auth *a);

/* From now on. Texts are copied. */
void auth_set_secrets(struct auth *a, const struct jwt_secrets *secrets);

/* False for NULL, too: then there is no sign-in. */
bool auth_is_set_up(const struct auth *a);

/* What the Authorization header says, whatever it is good for. */
struct session_proof {
	bool                   is_service;
	struct jwt_session     session; /* a person */
	struct service_account account; /* a program */
};
MUST_CHECK enum rc session_read(struct request *r, struct session_proof *ret, struct err *e);

/* The token of "Authorization: Bearer TOKEN". RC_UNKNOWN: no header; otherwise: the code of a malformed one. */
MUST_CHECK enum rc auth_read_bearer(const struct http_request *req, enum rc otherwise, struct str *ret, struct err *e);

/* Whose session's token this is; a service account's key is none. False: nobody's, or no longer. What *ret
 * points to lives in the arena. a may be NULL: then there is no sign-in. e says why not, and may be NULL. */
MUST_CHECK bool auth_caller_of_token(const struct auth *a, struct str token, struct arena *arena, struct caller *ret,
                                     struct err *e);

/* Whoever sends this request, by his email, whatever he may do here. False: nobody who is known; *ret_is_tried: he
 * sent something that should make him known. *ret lives as long as the request. */
bool auth_find_sender(struct request *r, struct str *ret, bool *ret_is_tried);

/* Who asks, from the Authorization header; for handlers of SCOPE_SESSION routes, first thing. What *ret points to
 * lives as long as the request. A service account's roles are what its scopes are worth on this path and method.
 * RC_UNKNOWN (401): no header; expired, bad or unknown. RC_DENIED (403): not "Bearer ..."; a service account whose
 * scopes do not cover this. RC_INVALID (400): a good token with a user that makes no sense. RC_UNAVAILABLE (503):
 * sign-in is not set up. The caller sends e in the form of its routes. */
MUST_CHECK enum rc auth_caller(struct request *r, struct caller *ret, struct err *e);

/* The person with this email, in any case. RC_NOT_FOUND; RC_UNAVAILABLE: there is no directory. What it says goes
 * into answers, so its own codes do not. */
MUST_CHECK enum rc person_find(struct request *r, struct str email, struct caller *ret, struct err *e);
