/* tally.h - claims by the minute, of this process: how many, and how long they took. Pure; the caller brings the time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TALLY_MINUTES = 240, TALLY_BUCKETS = 34 };

struct tally_minute {
	int64_t  minute; /* since 1970 */
	uint32_t granted, refused;
	uint32_t buckets[TALLY_BUCKETS]; /* of their times */
};

/* The last TALLY_MINUTES minutes; a minute's place is its number modulo that. All zero: nothing has happened yet. */
struct tally {
	struct tally_minute minutes[TALLY_MINUTES];
	int64_t             first_minute; /* from here on it was counted */
};

void tally_begin(struct tally *t, int64_t now_ms);
void tally_claim(struct tally *t, int64_t now_ms, bool is_granted, double seconds);

/* A minute's figures; zeros when nothing happened in it, or it is too long ago. */
struct tally_minute tally_at(const struct tally *t, int64_t minute);

/* The time in milliseconds that 99 of 100 claims of the minute did not pass, a few per cent too high at most; -1: there were none. */
double tally_p99_ms(const struct tally_minute *m);

/* Claims in the last 60 s, those of the minute before in proportion. */
int64_t tally_per_minute(const struct tally *t, int64_t now_ms);

/* How long a line of so many takes at the pace of the last ten minutes, in seconds; -1: nobody got anything. */
int64_t tally_estimate_sec(const struct tally *t, int64_t waiting, int64_t now_ms);
