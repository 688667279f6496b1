/* jwks.h - public keys that somebody publishes (JSON Web Key Set), and what is signed with them: RS256 and ES256. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct jwks;

enum { JWKS_KEYS_MAX = 64, JWKS_TEXT_MAX = 256 * 1024 };

/* Keys that are for something else, or of a kind or size that we do not accept, are skipped. RC_INVALID: not a key set,
 * or no key is left. */
MUST_CHECK enum rc jwks_open(struct str json, struct jwks **ret, struct err *e);
void               jwks_close(struct jwks *set);

/* Check a token's signature; *ret_payload is its JSON, in the arena. What it says is for the caller to judge.
 * RC_NOT_FOUND: no key of the set is meant; a newer set may have it. RC_UNKNOWN: the token is not good. */
MUST_CHECK enum rc jwks_verify(const struct jwks *set, struct str token, struct arena *a, struct str *ret_payload,
                               struct err *e);
