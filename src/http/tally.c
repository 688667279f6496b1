/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.c - a ring of steps in time.
 *
 * Times of claims are counted in buckets that grow by BUCKET_GROWTH from BUCKET_FIRST_MS on, so the ring has the same size whatever comes;
 * what is above the last bound is counted in the last bucket. A step that nobody claimed in has no place of its own: a place is made new
 * when its first claim comes, and passed over while it still has an older step.
 */
#include "http/tally.h"

#include <string.h>

#define BUCKET_FIRST_MS 0.05
#define BUCKET_GROWTH   1.2

enum { PACE_STEPS = 60 };

static double bucket_top(int i)
{
	double top = BUCKET_FIRST_MS;

	while (i-- > 0)
		top *= BUCKET_GROWTH;
	return top;
}

static int bucket_of(double ms)
{
	int    i = 0;
	double top = BUCKET_FIRST_MS;

	while (i < TALLY_BUCKETS - 1 && ms > top) {
		top *= BUCKET_GROWTH;
		i++;
	}
	return i;
}

void tally_begin(struct tally *t, int64_t now_ms)
{
	memset(t, 0, sizeof(*t));
	t->first_step = now_ms / TALLY_STEP_MS;
}

void tally_claim(struct tally *t, int64_t now_ms, bool is_granted, double seconds)
{
	int64_t             step = now_ms / TALLY_STEP_MS;
	struct tally_count *c = &t->places[step % TALLY_STEPS].count;

	if (t->places[step % TALLY_STEPS].step != step) {
		t->places[step % TALLY_STEPS].step = step;
		*c = (struct tally_count){ 0 };
	}
	c->granted += is_granted;
	c->refused += !is_granted;
	c->buckets[bucket_of(seconds * 1000)]++;
}

struct tally_count tally_sum(const struct tally *t, int64_t step, int64_t n)
{
	struct tally_count sum = { 0 };

	for (; n > 0; step++, n--) {
		const struct tally_count *c = &t->places[step % TALLY_STEPS].count;

		if (t->places[step % TALLY_STEPS].step != step)
			continue;
		sum.granted += c->granted;
		sum.refused += c->refused;
		for (int i = 0; i < TALLY_BUCKETS; i++)
			sum.buckets[i] += c->buckets[i];
	}
	return sum;
}

double tally_p99_ms(const struct tally_count *c)
{
	uint64_t all = (uint64_t)c->granted + c->refused, seen = 0;
	int      i = 0;

	if (!all)
		return -1;
	for (; i < TALLY_BUCKETS - 1; i++) {
		seen += c->buckets[i];
		if (seen * 100 >= all * 99)
			break;
	}
	return bucket_top(i);
}

int64_t tally_estimate_sec(const struct tally *t, int64_t waiting, int64_t now_ms)
{
	int64_t last = now_ms / TALLY_STEP_MS, from = last - PACE_STEPS + 1, granted;

	if (from < t->first_step)
		from = t->first_step;
	granted = tally_sum(t, from, last - from + 1).granted;
	return granted ? waiting * (last - from + 1) * (TALLY_STEP_MS / 1000) / granted : -1;
}
