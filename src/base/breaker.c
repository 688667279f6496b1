/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breaker.c - when to stop calling someone who does not answer.
 *
 *   closed  -- threshold failures in a row -->  open
 *   open    -- timeout_ms later, one call  -->  probing
 *   probing -- it succeeds --> closed;  it fails --> open, for another timeout_ms
 *
 * Several calls may be under way when the state changes. A ticket is the era in which its call was allowed; a result
 * from an earlier era is ignored, so a slow failure from before cannot end a probe, nor a slow success close the
 * circuit unprobed.
 *
 * A wall clock may be set back. Then "open since the future" counts as time-out over: a probe too early does no harm,
 * waiting for an hour would.
 */
#include "base/breaker.h"

#include <assert.h>

bool breaker_allows(struct breaker *b, struct wall now, uint64_t *ret_ticket)
{
	bool is_probe_due = now.ms < b->opened_at.ms || now.ms - b->opened_at.ms >= b->timeout_ms;

	assert(b->threshold > 0 && b->timeout_ms > 0);
	if (b->is_open) {
		if (b->is_probing || !is_probe_due)
			return false;
		b->is_probing = true;
		b->era++;
	}
	*ret_ticket = b->era;
	return true;
}

void breaker_note(struct breaker *b, uint64_t ticket, bool is_ok, struct wall now)
{
	bool was_open = b->is_open;

	if (ticket != b->era)
		return;
	assert(!was_open || b->is_probing);
	b->failures = is_ok ? 0 : b->failures + 1;
	b->is_open = !is_ok && (was_open || b->failures >= b->threshold);
	if (!was_open && !b->is_open)
		return;
	b->failures = 0;
	b->is_probing = false;
	b->opened_at = b->is_open ? now : (struct wall){ 0 };
	b->era++;
}

struct wall breaker_retry_at(const struct breaker *b)
{
	return (struct wall){ b->is_open ? b->opened_at.ms + b->timeout_ms : 0 };
}
