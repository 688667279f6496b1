/* ratelimit.h - token buckets for many callers in a fixed amount of memory. Loop thread only. */
#pragma once

#include "base/clock.h"

/* per_sec 0: no limit. */
struct ratelimit *ratelimit_new(int64_t per_sec, int64_t burst);
void              ratelimit_free(struct ratelimit *r);

/* Take one token of this caller. False: none left; *ret_retry_sec says when there is one again.
 * *ret_remaining is what is left after this call. */
bool ratelimit_take(struct ratelimit *r, uint64_t caller, struct mono now, int64_t *ret_remaining,
                    int64_t *ret_retry_sec);

/* Give back what a call of ratelimit_take() took. */
void ratelimit_give(struct ratelimit *r, uint64_t caller, struct mono now);
