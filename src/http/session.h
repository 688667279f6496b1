/* session.h - who sends a request to /api: a person with a session's token, or a program with a service account's key. Loop thread
 * only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/caller.h"

struct auth;
struct request;

/* Who asks, from the Authorization header; for handlers of SCOPE_SESSION routes, first thing. What *ret points to lives as long as
 * the request. A service account's roles are what its scopes are worth on this route and method.
 * RC_UNKNOWN (401): no header; expired, bad or unknown. RC_DENIED (403): not "Bearer ..."; a service account whose scopes do not
 * reach here. RC_INVALID (400): a good token with a user that makes no sense. RC_UNAVAILABLE (503): sign-in is not set up.
 * The caller sends e in the form of its routes. */
MUST_CHECK enum rc session_caller(struct request *r, struct caller *ret, struct err *e);
