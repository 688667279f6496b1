/* test_clock.h - a clock that stands still at ms until the test changes test_ms, and test_mono_ms. */
#pragma once

#include "base/clock.h"

static inline struct wall read_test_clock(const struct clock *c)
{
	return (struct wall){ c->test_ms };
}

static inline struct mono read_test_mono(const struct clock *c)
{
	return (struct mono){ c->test_mono_ms };
}

static inline struct clock clock_test(int64_t ms)
{
	return (struct clock){ .wall = read_test_clock, .mono = read_test_mono, .test_ms = ms };
}
