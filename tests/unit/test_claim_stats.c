/* SPDX-License-Identifier: Apache-2.0 */
/* test_claim_stats.c - claims over time, at hand-made times. */
#include "test.h"

#include "http/api/claim_stats.h"

#define START (170000000LL * CLAIM_STATS_STEP_MS)

static const int64_t first = START / CLAIM_STATS_STEP_MS;

TEST(a_step_has_its_claims_and_no_others)
{
	struct claim_stats t;

	claim_stats_begin(&t, START);
	claim_stats_claim(&t, START, true, 0.001);
	claim_stats_claim(&t, START + CLAIM_STATS_STEP_MS - 1, false, 0.001);
	claim_stats_claim(&t, START + CLAIM_STATS_STEP_MS, true, 0.001);
	CHECK(claim_stats_sum(&t, first, 1).granted == 1 && claim_stats_sum(&t, first, 1).refused == 1);
	CHECK(claim_stats_sum(&t, first + 1, 1).granted == 1 && claim_stats_sum(&t, first + 1, 1).refused == 0);
	CHECK(claim_stats_sum(&t, first + 2, 1).granted == 0);
	CHECK(claim_stats_sum(&t, first - 1, 10).granted == 2 && claim_stats_sum(&t, first - 1, 10).refused == 1);
}

TEST(the_first_minute_of_the_epoch_and_what_was_before_it_have_places_too)
{
	static const int64_t times[] = { 0, 5000, -1, -5 * CLAIM_STATS_STEP_MS };

	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		struct claim_stats t;

		claim_stats_begin(&t, times[i]);
		CHECK(claim_stats_sum(&t, times[i] / CLAIM_STATS_STEP_MS - 11, 12).granted == 0);
		claim_stats_claim(&t, times[i], true, 0.001);
		CHECK(claim_stats_sum(&t, times[i] / CLAIM_STATS_STEP_MS - 11, 12).granted == 1);
	}
}

TEST(an_old_step_makes_room_and_is_forgotten)
{
	struct claim_stats t;

	claim_stats_begin(&t, START);
	claim_stats_claim(&t, START, true, 0.001);
	CHECK(claim_stats_sum(&t, first + CLAIM_STATS_STEPS, 1).granted == 0);
	claim_stats_claim(&t, START + (int64_t)CLAIM_STATS_STEPS * CLAIM_STATS_STEP_MS, false, 0.001);
	CHECK(claim_stats_sum(&t, first, 1).granted == 0);
	CHECK(claim_stats_sum(&t, first + CLAIM_STATS_STEPS, 1).granted == 0);
	CHECK(claim_stats_sum(&t, first + CLAIM_STATS_STEPS, 1).refused == 1);
}

TEST(p99_is_the_time_that_one_in_a_hundred_passes)
{
	struct claim_stats  t;
	struct claim_counts c;

	claim_stats_begin(&t, START);
	c = claim_stats_sum(&t, first, 1);
	CHECK(claim_stats_p99_ms(&c) < 0);
	for (int i = 0; i < 99; i++)
		claim_stats_claim(&t, START, true, 0.002);
	claim_stats_claim(&t, START, true, 0.9);
	c = claim_stats_sum(&t, first, 1);
	CHECK(claim_stats_p99_ms(&c) >= 2 && claim_stats_p99_ms(&c) < 2 * 1.2);
	claim_stats_claim(&t, START, true, 0.9);
	c = claim_stats_sum(&t, first, 1);
	CHECK(claim_stats_p99_ms(&c) >= 900 && claim_stats_p99_ms(&c) < 900 * 1.2);
}

/* Each bucket is a fifth wider than the one before. */
TEST(a_time_is_counted_in_the_first_bucket_that_it_fits_into)
{
	double top = 0.05;

	for (int bucket = 0; bucket < CLAIM_STATS_BUCKETS - 1; bucket++, top *= 1.2)
		for (int more = -1; more <= 1; more++) {
			struct claim_stats  t;
			struct claim_counts c;

			claim_stats_begin(&t, START);
			claim_stats_claim(&t, START, true, top * (1 + more * 1e-9) / 1000);
			c = claim_stats_sum(&t, first, 1);
			CHECK(more == 0 || c.buckets[bucket + (more > 0)] == 1);
			CHECK(c.buckets[bucket] + c.buckets[bucket + 1] == 1);
		}
}

TEST(a_claim_that_took_for_ever_is_counted_too)
{
	struct claim_stats  t;
	struct claim_counts c;

	claim_stats_begin(&t, START);
	claim_stats_claim(&t, START, false, 1e9);
	c = claim_stats_sum(&t, first, 1);
	CHECK(claim_stats_p99_ms(&c) > 2000);
}

TEST(the_estimate_follows_the_pace_since_the_start_or_of_ten_minutes)
{
	struct claim_stats t;

	claim_stats_begin(&t, START);
	CHECK(claim_stats_estimate_sec(&t, 5, START) == -1);
	for (int i = 0; i < 10; i++)
		claim_stats_claim(&t, START, true, 0.001);
	claim_stats_claim(&t, START, false, 0.001); /* a refusal is no pace */
	CHECK(claim_stats_estimate_sec(&t, 5, START + 1000) == 5);
	CHECK(claim_stats_estimate_sec(&t, 5, START + 59 * CLAIM_STATS_STEP_MS) == 300);
	CHECK(claim_stats_estimate_sec(&t, 5, START + 60 * CLAIM_STATS_STEP_MS) == -1);
}
