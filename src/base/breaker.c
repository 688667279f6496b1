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

static bool is_probe_due(const struct breaker *b, struct wall now)
{
	return now.ms < b->opened_at.ms || now.ms - b->opened_at.ms >= b->timeout_ms;
}

bool breaker_allows(struct breaker *b, struct wall now, uint64_t *ret_ticket)
{
	assert(b->threshold > 0 && b->timeout_ms > 0);
	if (b->is_open) {
		if (b->is_probing || !is_probe_due(b, now))
			return false;
		b->is_probing = true;
		b->era++;
	}
	*ret_ticket = b->era;
	return true;
}

static void open_at(struct breaker *b, struct wall now)
{
	b->is_open = true;
	b->is_probing = false;
	b->opened_at = now;
	b->era++;
}

static void close_again(struct breaker *b)
{
	b->is_open = false;
	b->is_probing = false;
	b->opened_at = (struct wall){ 0 };
	b->era++;
}

void breaker_note(struct breaker *b, uint64_t ticket, bool is_ok, struct wall now)
{
	if (ticket != b->era)
		return;
	assert(!b->is_open || b->is_probing);
	if (is_ok) {
		b->failures = 0;
		if (b->is_open)
			close_again(b);
		return;
	}
	if (b->is_open || ++b->failures >= b->threshold) {
		b->failures = 0;
		open_at(b, now);
	}
}

bool breaker_is_open(const struct breaker *b)
{
	return b->is_open;
}

struct wall breaker_retry_at(const struct breaker *b)
{
	return (struct wall){ b->is_open ? b->opened_at.ms + b->timeout_ms : 0 };
}
