/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.c - a histogram whose buckets grow with the value, as in HdrHistogram.
 *
 * Values below 64 have a bucket each. Above, every doubling is cut into 64 equal steps, so a bucket is never wider
 * than 1/64 of the values in it. Adding is a few instructions and never allocates.
 *
 * Quantiles are answered with the upper end of their bucket: never better than what was measured.
 */
#include "histogram.h"

#include <assert.h>
#include <stddef.h>

enum { STEPS = 1 << HISTOGRAM_STEP_BITS };

/* How far a value's bits are shifted down within its doubling. */
static unsigned shift_of(uint64_t value)
{
	return value < STEPS ? 0 : 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_STEP_BITS;
}

static size_t bucket_of(uint64_t value)
{
	unsigned shift = shift_of(value);

	return value < STEPS ? value : ((size_t)shift << HISTOGRAM_STEP_BITS) + (size_t)(value >> shift);
}

static uint64_t upper_end(size_t bucket)
{
	size_t shift = bucket < STEPS ? 0 : (bucket >> HISTOGRAM_STEP_BITS) - 1;

	return bucket < STEPS ? bucket : ((((uint64_t)bucket - (shift << HISTOGRAM_STEP_BITS)) + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t value)
{
	size_t bucket = bucket_of(value);

	assert(bucket < HISTOGRAM_BUCKETS);
	h->buckets[bucket]++;
	h->count++;
	if (value > h->max)
		h->max = value;
}

uint64_t histogram_quantile(const struct histogram *h, double part)
{
	uint64_t wanted = (uint64_t)(part * (double)h->count);
	uint64_t seen = 0;

	assert(part >= 0 && part <= 1);
	if ((double)wanted < part * (double)h->count || wanted == 0)
		wanted++;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen >= wanted)
			return upper_end(i) < h->max ? upper_end(i) : h->max;
	}
	return h->max;
}
