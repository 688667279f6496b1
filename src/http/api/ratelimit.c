/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ratelimit.c - a bucket of tokens for each caller.
 *
 * Buckets live in a table of fixed size, a few places for each hash. When all places of a hash are taken, the fullest
 * bucket makes room: it is the one whose loss forgives least, and a full bucket holds no information at all. So a flood
 * of new callers costs no memory, and can at most forgive somebody a little. A caller is the hash of who authenticated
 * as whom; the hash is seeded, so nobody can choose whom to share a place with.
 */
#include "http/api/ratelimit.h"

#include <stdlib.h>

#include "base/mem.h"

enum { SETS = 16384, WAYS = 4 };

struct bucket {
	uint64_t caller; /* 0: free */
	float    tokens;
	uint32_t filled_ms; /* when tokens was right; wraps, which at worst fills a bucket idle for weeks wrongly */
};

struct ratelimit {
	int64_t       per_sec, burst;
	struct bucket table[SETS][WAYS];
};

struct ratelimit *ratelimit_new(int64_t per_sec, int64_t burst)
{
	struct ratelimit *r = mem_new(struct ratelimit);

	r->per_sec = per_sec;
	r->burst = burst;
	return r;
}

void ratelimit_free(struct ratelimit *r)
{
	free(r);
}

static float tokens_now(const struct ratelimit *r, const struct bucket *b, uint32_t now_ms)
{
	float tokens;

	if (!b->caller)
		return (float)r->burst;
	tokens = b->tokens + (float)(now_ms - b->filled_ms) * (float)r->per_sec / 1000;
	return tokens < (float)r->burst ? tokens : (float)r->burst;
}

static struct bucket *find_bucket(struct ratelimit *r, uint64_t caller, uint32_t now_ms)
{
	struct bucket *set = r->table[caller % SETS];
	struct bucket *fullest = &set[0];

	for (int i = 0; i < WAYS; i++) {
		if (set[i].caller == caller)
			return &set[i];
		if (tokens_now(r, &set[i], now_ms) > tokens_now(r, fullest, now_ms))
			fullest = &set[i];
	}
	*fullest = (struct bucket){ .caller = caller, .tokens = (float)r->burst, .filled_ms = now_ms };
	return fullest;
}

bool ratelimit_take(struct ratelimit *r, uint64_t caller, struct mono now, int64_t *ret_remaining,
                    int64_t *ret_retry_sec)
{
	uint32_t       now_ms = (uint32_t)now.ms;
	struct bucket *b;

	*ret_remaining = r->burst;
	*ret_retry_sec = 0;
	if (r->per_sec == 0)
		return true;
	b = find_bucket(r, caller | 1, now_ms);
	b->tokens = tokens_now(r, b, now_ms);
	b->filled_ms = now_ms;
	*ret_remaining = (int64_t)b->tokens;
	if (b->tokens < 1) {
		*ret_retry_sec = (int64_t)((1 - b->tokens) / (float)r->per_sec) + 1;
		return false;
	}
	b->tokens -= 1;
	--*ret_remaining;
	return true;
}

void ratelimit_give(struct ratelimit *r, uint64_t caller, struct mono now)
{
	uint32_t       now_ms = (uint32_t)now.ms;
	struct bucket *b;

	if (r->per_sec == 0)
		return;
	b = find_bucket(r, caller | 1, now_ms);
	b->tokens = tokens_now(r, b, now_ms) + 1;
	b->filled_ms = now_ms;
	if (b->tokens > (float)r->burst)
		b->tokens = (float)r->burst;
}
