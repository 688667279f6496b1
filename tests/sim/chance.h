/* chance.h - the simulator's only source of chance: a small generator with a seed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct chance {
	uint64_t state;
};

static inline uint64_t chance_next(struct chance *c) /* splitmix64 */
{
	uint64_t z = c->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* A number from 0 up to n - 1. */
static inline int64_t chance_below(struct chance *c, int64_t n)
{
	return (int64_t)(chance_next(c) % (uint64_t)n);
}

static inline int64_t chance_from_to(struct chance *c, int64_t from, int64_t to)
{
	return from + chance_below(c, to - from + 1);
}

/* True so often in a thousand times. */
static inline bool chance_is(struct chance *c, int64_t permille)
{
	return chance_below(c, 1000) < permille;
}
