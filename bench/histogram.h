/* histogram.h - many durations in little room: each is kept to within 1.6 % of itself. */
#pragma once

#include <stdint.h>

enum {
	HISTOGRAM_STEP_BITS = 6, /* 64 steps for each doubling */
	HISTOGRAM_BUCKETS = (64 - HISTOGRAM_STEP_BITS + 1) << HISTOGRAM_STEP_BITS,
};

/* Zero is a valid, empty one. */
struct histogram {
	uint64_t count;
	uint64_t max;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t value);

/* The smallest kept value that at least this part (0 to 1) of all values does not exceed; 0 when empty. */
uint64_t histogram_quantile(const struct histogram *h, double part);
