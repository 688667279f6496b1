/* SPDX-License-Identifier: Apache-2.0 */
/* test_tally.c - claims over time, at hand-made times. */
#include "test.h"

#include "http/tally.h"

#define START (170000000LL * TALLY_STEP_MS)

static const int64_t first = START / TALLY_STEP_MS;

TEST(a_step_has_its_claims_and_no_others)
{
	struct tally t;

	tally_begin(&t, START);
	tally_claim(&t, START, true, 0.001);
	tally_claim(&t, START + TALLY_STEP_MS - 1, false, 0.001);
	tally_claim(&t, START + TALLY_STEP_MS, true, 0.001);
	CHECK(tally_sum(&t, first, 1).granted == 1 && tally_sum(&t, first, 1).refused == 1);
	CHECK(tally_sum(&t, first + 1, 1).granted == 1 && tally_sum(&t, first + 1, 1).refused == 0);
	CHECK(tally_sum(&t, first + 2, 1).granted == 0);
	CHECK(tally_sum(&t, first - 1, 10).granted == 2 && tally_sum(&t, first - 1, 10).refused == 1);
}

TEST(an_old_step_makes_room_and_is_forgotten)
{
	struct tally t;

	tally_begin(&t, START);
	tally_claim(&t, START, true, 0.001);
	CHECK(tally_sum(&t, first + TALLY_STEPS, 1).granted == 0);
	tally_claim(&t, START + (int64_t)TALLY_STEPS * TALLY_STEP_MS, false, 0.001);
	CHECK(tally_sum(&t, first, 1).granted == 0);
	CHECK(tally_sum(&t, first + TALLY_STEPS, 1).granted == 0);
	CHECK(tally_sum(&t, first + TALLY_STEPS, 1).refused == 1);
}

TEST(p99_is_the_time_that_one_in_a_hundred_passes)
{
	struct tally       t;
	struct tally_count c;

	tally_begin(&t, START);
	c = tally_sum(&t, first, 1);
	CHECK(tally_p99_ms(&c) < 0);
	for (int i = 0; i < 99; i++)
		tally_claim(&t, START, true, 0.002);
	tally_claim(&t, START, true, 0.9);
	c = tally_sum(&t, first, 1);
	CHECK(tally_p99_ms(&c) >= 2 && tally_p99_ms(&c) < 2 * 1.2);
	tally_claim(&t, START, true, 0.9);
	c = tally_sum(&t, first, 1);
	CHECK(tally_p99_ms(&c) >= 900 && tally_p99_ms(&c) < 900 * 1.2);
}

TEST(a_claim_that_took_for_ever_is_counted_too)
{
	struct tally       t;
	struct tally_count c;

	tally_begin(&t, START);
	tally_claim(&t, START, false, 1e9);
	c = tally_sum(&t, first, 1);
	CHECK(tally_p99_ms(&c) > 2000);
}

TEST(the_estimate_follows_the_pace_since_the_start_or_of_ten_minutes)
{
	struct tally t;

	tally_begin(&t, START);
	CHECK(tally_estimate_sec(&t, 5, START) == -1);
	for (int i = 0; i < 10; i++)
		tally_claim(&t, START, true, 0.001);
	tally_claim(&t, START, false, 0.001); /* a refusal is no pace */
	CHECK(tally_estimate_sec(&t, 5, START + 1000) == 5);
	CHECK(tally_estimate_sec(&t, 5, START + 59 * TALLY_STEP_MS) == 300);
	CHECK(tally_estimate_sec(&t, 5, START + 60 * TALLY_STEP_MS) == -1);
}
