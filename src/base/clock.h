/* clock.h - two kinds of time that do not mix, and the one place that reads them. */
#pragma once

#include "base/str.h"

struct wall { /* milliseconds since 1970; may be stored */
	int64_t ms;
};

struct mono { /* milliseconds since boot; never stored */
	int64_t ms;
};

/* Where time comes from. The real one, one that goes faster, or one that a test moves by hand. */
struct clock {
	struct wall (*wall)(const struct clock *c);
	struct mono (*mono)(const struct clock *c);
	int64_t        test_ms, test_mono_ms; /* of the clocks of tests */
	int64_t        scale;                 /* how many times faster than the machine's; 0: as fast */
	struct steady *steady;                /* used by clock_steady only */
	int64_t start_ms, start_us; /* used by clock_scaled only: when it began, by itself and by the machine's mono */
};

/* The machine's own clock. */
extern const struct clock clock_real;

/* Does it show the machine's date? A steady clock does while it follows it. */
bool clock_is_real(const struct clock *c);

/* Shows `start` now and runs scale times as fast as the machine's clock, whatever happens to the machine's date. */
enum { CLOCK_SCALE_MAX = 100000 };
struct clock clock_scaled(struct wall start, int64_t scale);

/* How far the clock advances while this much time passes on the machine. */
int64_t clock_span_ms(const struct clock *c, int64_t machine_ms);

/* How much time passes on the machine until the clock has advanced this far; rounded up. */
int64_t clock_wait_ms(const struct clock *c, int64_t span_ms);

static inline struct wall clock_now(const struct clock *c)
{
	return c->wall(c);
}

/* For measuring how long something takes, even when the clock is set meanwhile. */
static inline struct mono clock_mono(const struct clock *c)
{
	return c->mono(c);
}

static inline int64_t wall_sec(struct wall t)
{
	return t.ms / 1000;
}

static inline struct wall wall_from_sec(int64_t sec)
{
	return (struct wall){ sec * 1000 };
}

struct mono mono_now(void);
int64_t     mono_ns(void);
void        mono_sleep(int64_t ms); /* not less, even when signals arrive; below 0: not at all */

/* "2026-11-15T18:03:43Z" of seconds since 1970; needs room for 21 bytes. */
enum { ISO_TIME_SIZE = 32 };
struct str iso_time(int64_t sec, char ret[ISO_TIME_SIZE]);
struct str iso_time_ms(int64_t ms, char ret[ISO_TIME_SIZE]); /* "2026-11-15T18:03:43.123Z" */

/* Reads "2026-11-15T18:03:43[.fraction](Z|+hh:mm)". False when it is anything else. */
bool iso_time_parse(struct str text, int64_t *ret_sec);
