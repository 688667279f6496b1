/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_stats.c - a ring of steps in time.
 *
 * Times of claims are counted in buckets that grow by BUCKET_GROWTH from BUCKET_FIRST_MS on, so the ring has the same
 * size whatever comes; what is above the last bound is counted in the last bucket. A step that nobody claimed in has no
 * place of its own: a place is made new when its first claim comes, and passed over while it still has an older step.
 */
#include "http/api/claim_stats.h"

#include <string.h>

#define BUCKET_FIRST_MS 0.05
#define BUCKET_GROWTH   1.2

enum { PACE_STEPS = 60 };

/* A date before 1970 has one, too. */
static int64_t place_of(int64_t step)
{
	return (step % CLAIM_STATS_STEPS + CLAIM_STATS_STEPS) % CLAIM_STATS_STEPS;
}

void claim_stats_begin(struct claim_stats *t, int64_t now_ms)
{
	double top = BUCKET_FIRST_MS;

	memset(t, 0, sizeof(*t));
	t->first_step = now_ms / CLAIM_STATS_STEP_MS;
	for (int i = 0; i < CLAIM_STATS_BUCKETS; i++, top *= BUCKET_GROWTH)
		t->tops[i] = top;
}

/* The first whose top is not below, by halving; the last takes the rest. */
static int bucket_of(const struct claim_stats *t, double ms)
{
	int from = 0, to = CLAIM_STATS_BUCKETS - 1;

	while (from < to) {
		int middle = (from + to) / 2;

		if (ms > t->tops[middle])
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void claim_stats_claim(struct claim_stats *t, int64_t now_ms, bool is_granted, double seconds)
{
	int64_t              step = now_ms / CLAIM_STATS_STEP_MS;
	struct claim_counts *c = &t->places[place_of(step)].count;

	if (t->places[place_of(step)].step != step) {
		t->places[place_of(step)].step = step;
		*c = (struct claim_counts){ 0 };
	}
	c->granted += is_granted;
	c->refused += !is_granted;
	c->buckets[bucket_of(t, seconds * 1000)]++;
}

struct claim_counts claim_stats_sum(const struct claim_stats *t, int64_t step, int64_t n)
{
	struct claim_counts sum = { 0 };

	for (; n > 0; step++, n--) {
		const struct claim_counts *c = &t->places[place_of(step)].count;

		if (t->places[place_of(step)].step != step)
			continue;
		sum.granted += c->granted;
		sum.refused += c->refused;
		for (int i = 0; i < CLAIM_STATS_BUCKETS; i++)
			sum.buckets[i] += c->buckets[i];
	}
	return sum;
}

double claim_stats_p99_ms(const struct claim_counts *c)
{
	uint64_t all = (uint64_t)c->granted + c->refused, seen = c->buckets[0];
	double   top = BUCKET_FIRST_MS;

	if (!all)
		return -1;
	for (int i = 1; i < CLAIM_STATS_BUCKETS && seen * 100 < all * 99; i++) {
		seen += c->buckets[i];
		top *= BUCKET_GROWTH;
	}
	return top;
}

int64_t claim_stats_estimate_sec(const struct claim_stats *t, int64_t waiting, int64_t now_ms)
{
	int64_t last = now_ms / CLAIM_STATS_STEP_MS, from = last - PACE_STEPS + 1, granted;

	if (from < t->first_step)
		from = t->first_step;
	granted = claim_stats_sum(t, from, last - from + 1).granted;
	return granted ? waiting * (last - from + 1) * (CLAIM_STATS_STEP_MS / 1000) / granted : -1;
}
