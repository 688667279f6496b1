/* octets.h - eight bytes at a time: does any of them need a closer look? */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OCTETS_OF(c) (0x0101010101010101ull * (unsigned char)(c))

#define OCTETS_16(c)                                           \
	{                                                      \
		c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c \
	}

static inline uint64_t octets_at(const void *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof(x));
	return le64toh(x);
}

/* The first n of them: at most eight. */
static inline void octets_put(void *to, uint64_t x, size_t n)
{
	x = htole64(x);
	memcpy(to, &x, n);
}

/* Not 0 when any of them is below c (1 to 128), is c, or is not ASCII. Does not say which one. */
static inline uint64_t octets_below(uint64_t x, unsigned char c)
{
	return (x - OCTETS_OF(c)) & ~x & OCTETS_OF(0x80);
}

static inline uint64_t octets_equal(uint64_t x, unsigned char c)
{
	return octets_below(x ^ OCTETS_OF(c), 1);
}

/* Which are the one or the other, both ASCII. */
static inline uint64_t octets_either(uint64_t x, char c, char d)
{
	return (((x ^ OCTETS_OF(c)) - OCTETS_OF(1)) | ((x ^ OCTETS_OF(d)) - OCTETS_OF(1))) & ~x & OCTETS_OF(0x80);
}

/* Not 0 when any of them must be escaped in a JSON string: a control character, a quote, a backslash, or, when all must
 * be ASCII, one that is not. */
static inline uint64_t octets_quoted(uint64_t x, bool is_ascii_only)
{
	uint64_t found = (x - OCTETS_OF(0x20)) | ((x ^ OCTETS_OF('"')) - OCTETS_OF(1)) |
	                 ((x ^ OCTETS_OF('\\')) - OCTETS_OF(1));

	return (is_ascii_only ? found | x : found & ~x) & OCTETS_OF(0x80);
}

/* The same for sixteen bytes: each is 0 unless it must be escaped. */
typedef uint8_t              octets_sixteen __attribute__((vector_size(16)));
static inline octets_sixteen octets_quoted_of_16(octets_sixteen x, bool is_ascii_only)
{
	static const octets_sixteen blank = OCTETS_16(0x20), quote = OCTETS_16('"'), backslash = OCTETS_16('\\'),
	                            del = OCTETS_16(0x7f);
	octets_sixteen found = (octets_sixteen)(x < blank) | (octets_sixteen)(x == quote) |
	                       (octets_sixteen)(x == backslash);

	return is_ascii_only ? found | (octets_sixteen)(x > del) : found;
}

static inline bool octets_any_of_16(octets_sixteen x)
{
	uint64_t halves[2];

	memcpy(halves, &x, sizeof(halves));
	return (halves[0] | halves[1]) != 0;
}

/* Without saying where: true when one of them must be escaped. */
static inline bool octets_are_quoted(const void *p, bool is_ascii_only)
{
	octets_sixteen x;

	memcpy(&x, p, sizeof(x));
	return octets_any_of_16(octets_quoted_of_16(x, is_ascii_only));
}

/* Copies n bytes, at least sixteen: in steps of sixteen, the last of which takes some of them again. True when none of
 * them must be escaped; not only ASCII. */
static inline bool octets_copy_plain(char *to, const char *from, size_t n)
{
	octets_sixteen x, found = { 0 };
	size_t         last = n - sizeof(x);

	for (size_t i = 0; i < last; i += sizeof(x)) {
		memcpy(&x, from + i, sizeof(x));
		memcpy(to + i, &x, sizeof(x));
		found |= octets_quoted_of_16(x, false);
	}
	memcpy(&x, from + last, sizeof(x));
	memcpy(to + last, &x, sizeof(x));
	return !octets_any_of_16(found | octets_quoted_of_16(x, false));
}

/* Which of them is the first, by what octets_equal() or octets_below() found: not 0. */
static inline unsigned octets_first(uint64_t found)
{
	return (unsigned)__builtin_ctzll(found) / 8; /* exact: a borrow only reaches those behind it */
}
