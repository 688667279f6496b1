/* breaker.h - a circuit breaker: after too many failures in a row it holds calls back for a while. Pure; no lock. */
#pragma once

#include "base/clock.h"

/* Set threshold and timeout_ms (both above zero), leave the rest zero. Plain data. */
struct breaker {
	unsigned threshold;  /* failures in a row that open it */
	int64_t  timeout_ms; /* how long it stays open before a probe */

	unsigned    failures; /* in a row, while closed */
	bool        is_open;  /* read it; a probe under way included */
	bool        is_probing;
	struct wall opened_at; /* while open: when, or when the last probe failed */
	uint64_t    era;       /* +1 whenever it opens, closes or sends a probe */
};

/* True when a call may be made now; then breaker_note() must follow with the ticket. While open: false until the
 * time-out is over, then true for exactly one call, the probe, until that one is noted. */
MUST_CHECK bool breaker_allows(struct breaker *b, struct wall now, uint64_t *ret_ticket);

/* How an allowed call ended. One that was allowed before the last change of state is ignored. */
void breaker_note(struct breaker *b, uint64_t ticket, bool is_ok, struct wall now);

/* When the next probe is due; zero when closed. In the past while a probe is under way. */
struct wall breaker_retry_at(const struct breaker *b);
