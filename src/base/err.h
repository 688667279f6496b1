/* err.h - how a failure travels: one of a few codes that say what the caller can do, and a message that says why. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"

/* One row per remedy the caller has, not one per cause.
 *  name         http retry  code in an error reply   text */
/* clang-format off */
#define RC_TABLE(X)                                                                               \
	X(OK,          200, false, "OK",                    "ok")                                 \
	X(INVALID,     400, false, "VALIDATION_ERROR",      "request makes no sense")             \
	X(UNKNOWN,     401, false, "UNAUTHORIZED",          "caller is not known")                \
	X(DENIED,      403, false, "FORBIDDEN",             "caller may not do this")             \
	X(NOT_FOUND,   404, false, "NOT_FOUND",             "no such thing")                      \
	X(NO_METHOD,   405, false, "METHOD_NOT_ALLOWED",    "not with this method")               \
	X(CONFLICT,    409, false, "CONFLICT",              "state does not allow it")            \
	X(EXHAUSTED,   409, true,  "NO_SANDBOXES_AVAILABLE","nothing left to hand out")           \
	X(TOO_LARGE,   413, false, "TOO_LARGE",             "over a limit")                       \
	X(LIMITED,     429, true,  "RATE_LIMIT_EXCEEDED",   "too many requests")                  \
	X(INTERNAL,    500, false, "INTERNAL_ERROR",        "our mistake")                        \
	X(CORRUPT,     500, false, "INTERNAL_ERROR",        "stored data breaks a rule")          \
	X(UNAVAILABLE, 503, true,  "SERVICE_UNAVAILABLE",   "store or far side cannot serve now") \
	X(TIMEOUT,     504, true,  "TIMEOUT",               "far side did not answer in time")    \
	X(UNFIT,       422, false, "UNPROCESSABLE",         "understood, but not as things are")
/* clang-format on */

enum rc {
#define X(name, http, retry, code, text) RC_##name,
	RC_TABLE(X)
#undef X
	        RC__COUNT
};

/* Lives in the caller's frame; all zero means "nothing noted". The message is UTF-8 whatever was put into it, and cut
 * between two characters where it does not fit. */
struct err {
	enum rc     rc;
	const char *code; /* a constant more exact than the rc's own, or NULL */
	char        msg[240];
};

/* Fail: note the cause (the first note wins) and hand rc back. e may be NULL. The code is one of its own for the
 * reply, such as "ALLOCATION_EXPIRED", or NULL. */
enum rc err_set_code(struct err *e, enum rc rc, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);
#define err_set(e, rc, ...) err_set_code((e), (rc), NULL, __VA_ARGS__)

/* Pass a failure up: put context before the cause. rc is returned unchanged; with RC_OK nothing is noted. */
enum rc err_wrap(struct err *e, enum rc rc, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Ready for another attempt. */
void err_clear(struct err *e);

/* RC_OK, with nothing noted, in place of this one failure: such as RC_NOT_FOUND from something that was to be
 * removed. */
enum rc err_forgive(struct err *e, enum rc rc, enum rc forgiven);

/* Fail as another call did, with its cause; RC_OK is no failure. For a cause that is passed on only in some cases. */
enum rc err_pass(struct err *e, enum rc rc, const struct err *cause);

/* Ignore a result on purpose; the reason stands beside the call. */
static inline void rc_ignore(enum rc rc)
{
	(void)rc;
}

int         rc_http_status(enum rc rc);
bool        rc_is_retryable(enum rc rc);
const char *rc_text(enum rc rc);

/* The code for an error reply: the exact one, else the rc's own. */
const char *err_code(const struct err *e);
