/* claim_stats.h - claims over time, of this process: how many, and how long they took. Pure; the caller has the
 * time. */
#pragma once

#include "base/str.h"

/* Time is counted in steps; a step's number is its beginning divided by its length. */
enum { CLAIM_STATS_STEP_MS = 10000, CLAIM_STATS_STEPS = 4 * 360, CLAIM_STATS_BUCKETS = 64 };

/* What happened in one step, or in several. */
struct claim_counts {
	uint32_t granted, refused;
	uint32_t buckets[CLAIM_STATS_BUCKETS]; /* of their times */
};

/* The last CLAIM_STATS_STEPS steps; a step's place is its number modulo that. */
struct claim_stats {
	struct {
		int64_t             step;
		struct claim_counts count;
	} places[CLAIM_STATS_STEPS];
	int64_t first_step;                /* from here on it was counted */
	double  tops[CLAIM_STATS_BUCKETS]; /* in milliseconds */
};

void claim_stats_begin(struct claim_stats *t, int64_t now_ms);
void claim_stats_claim(struct claim_stats *t, int64_t now_ms, bool is_granted, double seconds);

/* The figures of n steps from this one on; nothing is known, and zero, of those that are too long ago. */
struct claim_counts claim_stats_sum(const struct claim_stats *t, int64_t step, int64_t n);

/* The time in milliseconds that 99 of 100 of these claims did not pass, at most 20 % too high; -1: there were none. */
double claim_stats_p99_ms(const struct claim_counts *c);

/* How long a line of so many takes at the pace of the last ten minutes, in seconds; -1: nobody got anything. */
int64_t claim_stats_estimate_sec(const struct claim_stats *t, int64_t waiting, int64_t now_ms);
