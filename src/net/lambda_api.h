/* lambda_api.h - how a function on AWS Lambda gets its invocations and answers them. Blocks. */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum { LAMBDA_PAYLOAD_MAX = 8 << 20 };

struct lambda_invocation {
	struct str id, trace;
	int64_t    deadline_ms; /* by the machine's date; 0: unknown */
	struct str payload;
};

/* at is AWS_LAMBDA_RUNTIME_API, host:port. Waits for as long as it takes: the process is frozen meanwhile.
 * RC_UNAVAILABLE, RC_TOO_LARGE, RC_CORRUPT. Texts are in the arena. */
MUST_CHECK enum rc lambda_next(const char *at, struct arena *a, struct lambda_invocation *ret, struct err *e);

/* What came of it: the answer, or what went wrong. */
MUST_CHECK enum rc lambda_respond(const char *at, struct str id, struct str body, struct arena *a, struct err *e);
MUST_CHECK enum rc lambda_fail(const char *at, struct str id, const char *type, const char *text, struct arena *a,
                               struct err *e);

/* It failed before its first invocation. */
MUST_CHECK enum rc lambda_init_error(const char *at, const char *type, const char *text, struct arena *a,
                                     struct err *e);
