/* guard.h - a circuit breaker around another CSP: the same interface, but it stops calling when calls keep failing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct csp;

struct csp_guard_options {
	unsigned            threshold;  /* CIRCUIT_BREAKER_THRESHOLD */
	int64_t             timeout_ms; /* CIRCUIT_BREAKER_TIMEOUT_SEC */
	const struct clock *clock;      /* outlives the guard */
};

/* The code in struct err of a call that was held back; the rc is RC_UNAVAILABLE. Nothing was sent then, so whoever
 * counts failures must not count it. */
#define CSP_GUARD_CODE "CIRCUIT_OPEN"

/* Takes inner over: csp_close() of the guard closes it too. Any number of threads may call the guard at once. */
struct csp *csp_guard_open(struct csp *inner, const struct csp_guard_options *options);

/* Whether calls are held back now. *ret_until, when not NULL: when the next probe is due (zero when closed). */
bool csp_guard_is_open(struct csp *guard, struct wall *ret_until);
