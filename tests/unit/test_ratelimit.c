/* SPDX-License-Identifier: Apache-2.0 */
/* test_ratelimit.c - what the buckets let through, at hand-made times. */
#include "test.h"

#include "http/api/ratelimit.h"

static int64_t remaining, retry_sec;

static bool take(struct ratelimit *r, uint64_t caller, int64_t ms)
{
	return ratelimit_take(r, caller, (struct mono){ ms }, &remaining, &retry_sec);
}

TEST(a_new_caller_has_a_burst_and_no_more)
{
	struct ratelimit *r = ratelimit_new(10, 5);

	for (int left = 4; left >= 0; left--) {
		CHECK(take(r, 7, 1000));
		CHECK(remaining == left && retry_sec == 0);
	}
	CHECK(!take(r, 7, 1000) && remaining == 0 && retry_sec == 1);
	ratelimit_free(r);
}

TEST(what_is_given_back_can_be_taken_again_but_never_more_than_the_burst)
{
	struct ratelimit *r = ratelimit_new(1, 2);

	CHECK(take(r, 7, 0) && take(r, 7, 0) && !take(r, 7, 0));
	ratelimit_give(r, 7, (struct mono){ 0 });
	CHECK(take(r, 7, 0) && !take(r, 7, 0));
	for (int i = 0; i < 10; i++)
		ratelimit_give(r, 7, (struct mono){ 0 });
	CHECK(take(r, 7, 0) && take(r, 7, 0) && !take(r, 7, 0));
	ratelimit_free(r);
}

TEST(tokens_come_back_with_time_up_to_the_burst)
{
	struct ratelimit *r = ratelimit_new(10, 5);
	int               taken = 0;

	while (take(r, 7, 0))
		taken++;
	CHECK(taken == 5);
	CHECK(!take(r, 7, 99));
	CHECK(take(r, 7, 100) && !take(r, 7, 100));
	CHECK(take(r, 7, 300) && take(r, 7, 300) && !take(r, 7, 300));
	for (taken = 0; take(r, 7, 1000000);)
		taken++;
	CHECK(taken == 5);
	ratelimit_free(r);
}

TEST(fractions_of_a_token_are_kept_even_by_those_who_ask_too_often)
{
	struct ratelimit *r = ratelimit_new(1, 1);
	int               taken = 0;

	for (int64_t ms = 0; ms <= 10000; ms++)
		taken += take(r, 7, ms);
	CHECK(taken >= 10 && taken <= 11);
	ratelimit_free(r);
}

TEST(the_time_to_wait_is_long_enough)
{
	static const int64_t rates[] = { 1, 2, 3, 7, 50, 1000 };

	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		for (int64_t late = 0; late < 1000; late += 37) {
			struct ratelimit *r = ratelimit_new(rates[i], 1);

			CHECK(take(r, 7, 5000));
			if (!take(r, 7, 5000 + late)) {
				CHECK(retry_sec >= 1 && retry_sec <= 2);
				CHECK(take(r, 7, 5000 + late + retry_sec * 1000));
			}
			ratelimit_free(r);
		}
}

TEST(callers_do_not_share_a_bucket)
{
	struct ratelimit *r = ratelimit_new(1, 2);

	CHECK(take(r, 3, 0) && take(r, 3, 0) && !take(r, 3, 0));
	CHECK(take(r, 5, 0) && remaining == 1);
	CHECK(!take(r, 3, 0));
	ratelimit_free(r);
}

TEST(without_a_rate_there_is_no_limit)
{
	struct ratelimit *r = ratelimit_new(0, 3);

	for (int i = 0; i < 1000; i++)
		CHECK(take(r, 7, 0) && remaining == 3 && retry_sec == 0);
	ratelimit_free(r);
}

/* Callers whose hashes differ by a multiple of the number of sets stand in one set; more of them than places. */
TEST(who_loses_its_place_is_forgiven_at_most_a_full_bucket)
{
	enum { STEP = 1 << 20, CALLERS = 12, BURST = 5, ROUNDS = 200 };
	struct ratelimit *r = ratelimit_new(1, BURST);
	int               taken = 0;

	while (take(r, 1, 0))
		taken++;
	for (uint64_t caller = 1; caller < CALLERS; caller++)
		CHECK(take(r, 1 + caller * STEP, 0) && remaining <= BURST - 1);
	while (take(r, 1, 0))
		taken++;
	CHECK(taken <= 2 * BURST);
	ratelimit_free(r);
}

TEST(the_emptiest_buckets_keep_their_places)
{
	enum { STEP = 1 << 20 };
	struct ratelimit *r = ratelimit_new(1, 5);

	while (take(r, 1, 0))
		;
	for (uint64_t caller = 1; caller < 100; caller++)
		CHECK(take(r, 1 + caller * STEP, 0));
	CHECK(!take(r, 1, 0));
	ratelimit_free(r);
}

TEST(a_clock_that_wraps_does_not_lock_anybody_out)
{
	struct ratelimit *r = ratelimit_new(10, 5);
	int64_t           end = UINT32_MAX;

	while (take(r, 7, end - 50))
		;
	CHECK(take(r, 7, end + 60));
	ratelimit_free(r);
}
