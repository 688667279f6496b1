/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.c - a ring of minutes.
 *
 * Times of claims are counted in buckets that grow by BUCKET_GROWTH from BUCKET_FIRST_MS on, so the ring has the same size whatever comes;
 * what is above the last bound is counted in the last bucket. A minute that nobody claimed in has no place of its own: a place is made new
 * when its first claim comes, and read as empty while it still has an older minute.
 */
#include "http/tally.h"

#include <string.h>

#define MINUTE_MS       60000
#define BUCKET_FIRST_MS 0.05
#define BUCKET_GROWTH   1.4

enum { PACE_MINUTES = 10 };

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
	t->first_minute = now_ms / MINUTE_MS;
}

void tally_claim(struct tally *t, int64_t now_ms, bool is_granted, double seconds)
{
	int64_t              minute = now_ms / MINUTE_MS;
	struct tally_minute *m = &t->minutes[minute % TALLY_MINUTES];

	if (m->minute != minute)
		*m = (struct tally_minute){ .minute = minute };
	m->granted += is_granted;
	m->refused += !is_granted;
	m->buckets[bucket_of(seconds * 1000)]++;
}

struct tally_minute tally_at(const struct tally *t, int64_t minute)
{
	const struct tally_minute *m = &t->minutes[minute % TALLY_MINUTES];

	return m->minute == minute ? *m : (struct tally_minute){ .minute = minute };
}

double tally_p99_ms(const struct tally_minute *m)
{
	uint64_t all = (uint64_t)m->granted + m->refused, seen = 0;
	int      i = 0;

	if (!all)
		return -1;
	for (; i < TALLY_BUCKETS - 1; i++) {
		seen += m->buckets[i];
		if (seen * 100 >= all * 99)
			break;
	}
	return bucket_top(i);
}

int64_t tally_per_minute(const struct tally *t, int64_t now_ms)
{
	struct tally_minute now = tally_at(t, now_ms / MINUTE_MS), before = tally_at(t, now_ms / MINUTE_MS - 1);
	int64_t             left_ms = MINUTE_MS - now_ms % MINUTE_MS;

	return now.granted + now.refused + ((int64_t)before.granted + before.refused) * left_ms / MINUTE_MS;
}

int64_t tally_estimate_sec(const struct tally *t, int64_t waiting, int64_t now_ms)
{
	int64_t last = now_ms / MINUTE_MS, from = last - PACE_MINUTES + 1, granted = 0;

	if (from < t->first_minute)
		from = t->first_minute;
	for (int64_t minute = from; minute <= last; minute++)
		granted += tally_at(t, minute).granted;
	return granted ? waiting * (last - from + 1) * 60 / granted : -1;
}
