/* pace.h - how often AWS is called, by all nodes together. */
#pragma once

#include "base/err.h"
#include "providers/aws/call.h"

/* Borrowed. wait NULL: sleeps; for tests. */
struct aws_pacer {
	struct store *store;
	int64_t       org_times; /* factor for the rates of Organizations; 0: 1. The same on all nodes */
	void (*wait)(void *arg, int64_t ms);
	void *wait_arg;
};

struct aws_rate {
	const char *name;
	int64_t     gap_ms; /* between two calls */
	int64_t     burst;  /* calls at once */
};
extern const struct aws_rate aws_rates[AWS_PACE_COUNT];

/* Take the next free moment and wait for it. RC_LIMITED: it is later than in left_ms, and not taken.
 * RC_UNAVAILABLE: the store does not answer. */
MUST_CHECK enum rc aws_pacer_take(const struct aws_pacer *p, enum aws_pace pace, long left_ms, struct err *e);

/* AWS said "slow down": half the rate for a minute. Best effort: a store that does not answer is ignored. */
void aws_pacer_throttled(const struct aws_pacer *p, enum aws_pace pace);

/* How many of the throttles on record were in the AWS_THROTTLE_WINDOW_MS before now. */
enum { AWS_THROTTLE_WINDOW_MS = 5 * 60 * 1000 };
MUST_CHECK enum rc aws_pacer_count(const struct aws_pacer *p, enum aws_pace pace, int64_t now_ms, size_t *ret,
                                   struct err *e);
