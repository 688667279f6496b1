/* octets.h - eight bytes at a time: does any of them need a closer look? */
#pragma once

#include <endian.h>
#include <stdbool.h>
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

/* Not 0 when any of them is below c (1 to 128), is c, or is not ASCII. Does not say which one. */
static inline uint64_t octets_below(uint64_t x, unsigned char c)
{
	return (x - OCTETS_OF(c)) & ~x & OCTETS_OF(0x80);
}

static inline uint64_t octets_equal(uint64_t x, unsigned char c)
{
	return octets_below(x ^ OCTETS_OF(c), 1);
}

/* Not 0 when any of them must be escaped in a JSON string: a control character, a quote, a backslash, or, when all must
 * be ASCII, one that is not. */
static inline uint64_t octets_quoted(uint64_t x, bool is_ascii_only)
{
	uint64_t found = (x - OCTETS_OF(0x20)) | ((x ^ OCTETS_OF('"')) - OCTETS_OF(1)) |
	                 ((x ^ OCTETS_OF('\\')) - OCTETS_OF(1));

	return (is_ascii_only ? found | x : found & ~x) & OCTETS_OF(0x80);
}

/* The same for sixteen bytes, without saying where: true when one of them must be escaped. */
static inline bool octets_are_quoted(const void *p, bool is_ascii_only)
{
	typedef uint8_t      sixteen __attribute__((vector_size(16)));
	static const sixteen blank = OCTETS_16(0x20), quote = OCTETS_16('"'), backslash = OCTETS_16('\\'),
	                     del = OCTETS_16(0x7f);
	sixteen  x, found;
	uint64_t halves[2];

	memcpy(&x, p, sizeof(x));
	found = (sixteen)(x < blank) | (sixteen)(x == quote) | (sixteen)(x == backslash);
	if (is_ascii_only)
		found |= (sixteen)(x > del);
	memcpy(halves, &found, sizeof(halves));
	return (halves[0] | halves[1]) != 0;
}

/* Which of them is the first, by what octets_equal() or octets_below() found: not 0. */
static inline unsigned octets_first(uint64_t found)
{
	return (unsigned)__builtin_ctzll(found) / 8; /* exact: a borrow only reaches those behind it */
}
