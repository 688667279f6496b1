/* csp_breaker.h - a circuit breaker around another CSP: the same interface, but it stops calling when calls keep
 * failing. */
#pragma once

#include "base/clock.h"

struct csp_breaker_options {
	unsigned            threshold;  /* CIRCUIT_BREAKER_THRESHOLD */
	int64_t             timeout_ms; /* CIRCUIT_BREAKER_TIMEOUT_SEC */
	const struct clock *clock;      /* outlives the breaker */
};

/* The code in struct err of a call that was held back; the rc is RC_UNAVAILABLE. Nothing was sent then, so whoever
 * counts failures must not count it. */
#define CSP_BREAKER_CODE "CIRCUIT_OPEN"

/* Takes inner over: csp_close() of the breaker closes it too. Any number of threads may call the breaker at once. */
struct csp *csp_breaker_open(struct csp *inner, const struct csp_breaker_options *options);

/* Whether calls are held back now. *ret_until, when not NULL: when the next probe is due (zero when closed). */
bool csp_breaker_is_open(struct csp *breaker, struct wall *ret_until);
