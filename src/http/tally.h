/* tally.h - claims over time, of this process: how many, and how long they took. Pure; the caller brings the time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Time is counted in steps; a step's number is its beginning divided by its length. */
enum { TALLY_STEP_MS = 10000, TALLY_STEPS = 4 * 360, TALLY_BUCKETS = 64 };

/* What happened in one step, or in several. */
struct tally_count {
	uint32_t granted, refused;
	uint32_t buckets[TALLY_BUCKETS]; /* of their times */
};

/* The last TALLY_STEPS steps; a step's place is its number modulo that. */
struct tally {
	struct {
		int64_t            step;
		struct tally_count count;
	} places[TALLY_STEPS];
	int64_t first_step; /* from here on it was counted */
};

void tally_begin(struct tally *t, int64_t now_ms);
void tally_claim(struct tally *t, int64_t now_ms, bool is_granted, double seconds);

/* The figures of n steps from this one on; nothing is known, and zero, of those that are too long ago. */
struct tally_count tally_sum(const struct tally *t, int64_t step, int64_t n);

/* The time in milliseconds that 99 of 100 of these claims did not pass, at most 20 % too high; -1: there were none. */
double tally_p99_ms(const struct tally_count *c);

/* How long a line of so many takes at the pace of the last ten minutes, in seconds; -1: nobody got anything. */
int64_t tally_estimate_sec(const struct tally *t, int64_t waiting, int64_t now_ms);
