/* SPDX-License-Identifier: Apache-2.0 */
/* test_tally.c - claims by the minute, at hand-made times. */
#include "test.h"

#include "http/tally.h"

#define MINUTE 60000LL
#define START  (29000000LL * MINUTE)

static const int64_t first = START / MINUTE;

TEST(a_minute_has_its_claims_and_no_others)
{
	struct tally t;

	tally_begin(&t, START);
	tally_claim(&t, START, true, 0.001);
	tally_claim(&t, START + MINUTE - 1, false, 0.001);
	tally_claim(&t, START + MINUTE, true, 0.001);
	CHECK(tally_at(&t, first).granted == 1 && tally_at(&t, first).refused == 1);
	CHECK(tally_at(&t, first + 1).granted == 1 && tally_at(&t, first + 1).refused == 0);
	CHECK(tally_at(&t, first + 2).granted == 0);
}

TEST(an_old_minute_makes_room_and_is_forgotten)
{
	struct tally t;

	tally_begin(&t, START);
	tally_claim(&t, START, true, 0.001);
	CHECK(tally_at(&t, first + TALLY_MINUTES).granted == 0);
	tally_claim(&t, START + TALLY_MINUTES * MINUTE, false, 0.001);
	CHECK(tally_at(&t, first).granted == 0);
	CHECK(tally_at(&t, first + TALLY_MINUTES).granted == 0 && tally_at(&t, first + TALLY_MINUTES).refused == 1);
}

TEST(p99_is_the_time_that_one_in_a_hundred_passes)
{
	struct tally        t;
	struct tally_minute m;

	tally_begin(&t, START);
	m = tally_at(&t, first);
	CHECK(tally_p99_ms(&m) < 0);
	for (int i = 0; i < 99; i++)
		tally_claim(&t, START, true, 0.002);
	tally_claim(&t, START, true, 0.9);
	m = tally_at(&t, first);
	CHECK(tally_p99_ms(&m) >= 2 && tally_p99_ms(&m) < 2 * 1.4);
	tally_claim(&t, START, true, 0.9);
	m = tally_at(&t, first);
	CHECK(tally_p99_ms(&m) >= 900 && tally_p99_ms(&m) < 900 * 1.4);
}

TEST(a_claim_that_took_for_ever_is_counted_too)
{
	struct tally        t;
	struct tally_minute m;

	tally_begin(&t, START);
	tally_claim(&t, START, false, 1e9);
	m = tally_at(&t, first);
	CHECK(tally_p99_ms(&m) > 2000);
}

TEST(the_last_minute_is_a_sliding_one)
{
	struct tally t;

	tally_begin(&t, START);
	for (int i = 0; i < 100; i++)
		tally_claim(&t, START + i, i % 2, 0.001);
	CHECK(tally_per_minute(&t, START + 30000) == 100);
	CHECK(tally_per_minute(&t, START + MINUTE) == 100);
	CHECK(tally_per_minute(&t, START + MINUTE + 30000) == 50);
	CHECK(tally_per_minute(&t, START + 2 * MINUTE) == 0);
}

TEST(the_estimate_follows_the_pace_since_the_start_or_of_ten_minutes)
{
	struct tally t;

	tally_begin(&t, START);
	CHECK(tally_estimate_sec(&t, 5, START) == -1);
	for (int i = 0; i < 10; i++)
		tally_claim(&t, START, true, 0.001);
	tally_claim(&t, START, false, 0.001); /* a refusal is no pace */
	CHECK(tally_estimate_sec(&t, 5, START + 1000) == 30);
	CHECK(tally_estimate_sec(&t, 5, START + 9 * MINUTE) == 300);
	CHECK(tally_estimate_sec(&t, 5, START + 10 * MINUTE) == -1);
}
