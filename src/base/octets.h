/* octets.h - eight or sixteen bytes at a time: does any of them need a closer look? */
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

typedef uint8_t octets_vector __attribute__((vector_size(16)));
typedef uint8_t octets_half __attribute__((vector_size(8)));

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

/* All of n bytes, which are 4 to 8, in whatever order and some of them twice. */
static inline uint64_t octets_of_few(const void *p, size_t n)
{
	uint32_t first, last;

	memcpy(&first, p, sizeof(first));
	memcpy(&last, (const char *)p + n - sizeof(last), sizeof(last));
	return first | (uint64_t)last << 32;
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

/* The same for sixteen bytes: those that must be escaped have all their bits set. */
static inline octets_vector octets_quoted_vector(octets_vector x, bool is_ascii_only)
{
	static const octets_vector blank = OCTETS_16(0x20), quote = OCTETS_16('"'), backslash = OCTETS_16('\\'),
	                           del = OCTETS_16(0x7f);
	octets_vector found = (octets_vector)(x < blank) | (octets_vector)(x == quote) |
	                      (octets_vector)(x == backslash);

	return is_ascii_only ? found | (octets_vector)(x > del) : found;
}

static inline octets_vector octets_vector_at(const void *p)
{
	octets_vector x;

	memcpy(&x, p, sizeof(x));
	return x;
}

static inline bool octets_any(octets_vector found)
{
	uint64_t halves[2];

	memcpy(halves, &found, sizeof(halves));
	return (halves[0] | halves[1]) != 0;
}

static inline bool octets_are_quoted(const void *p, bool is_ascii_only)
{
	return octets_any(octets_quoted_vector(octets_vector_at(p), is_ascii_only));
}

/* Copies n bytes, at least sixteen: in steps of sixteen, the last of which takes some of them again. True when none of
 * them must be escaped; not only ASCII. */
static inline bool octets_copy_plain(char *to, const char *from, size_t n)
{
	octets_vector x, found = { 0 };
	size_t        last = n - sizeof(x);

	for (size_t i = 0; i < last; i += sizeof(x)) {
		x = octets_vector_at(from + i);
		memcpy(to + i, &x, sizeof(x));
		found |= octets_quoted_vector(x, false);
	}
	x = octets_vector_at(from + last);
	memcpy(to + last, &x, sizeof(x));
	return !octets_any(found | octets_quoted_vector(x, false));
}

/* Which of them is the first, by what octets_either() or octets_quoted() found: not 0. */
static inline unsigned octets_first(uint64_t found)
{
	return (unsigned)__builtin_ctzll(found) / 8; /* exact: a borrow only reaches those behind it */
}

/* Which of sixteen is the first that is marked, with all its bits; 16: none. */
static inline unsigned octets_first_marked(octets_vector marks)
{
	uint64_t halves[2];

	memcpy(halves, &marks, sizeof(halves));
	if (halves[0])
		return (unsigned)__builtin_ctzll(le64toh(halves[0])) / 8;
	return halves[1] ? 8 + (unsigned)__builtin_ctzll(le64toh(halves[1])) / 8 : 16;
}

/* How many of sixteen bytes come before the first control character other than the tab; 16: there is none. */
static inline unsigned octets_before_control(const void *p)
{
	static const octets_vector blank = OCTETS_16(' '), tab = OCTETS_16('\t'), del = OCTETS_16(0x7f);
	octets_vector              x = octets_vector_at(p);

	return octets_first_marked(((octets_vector)(x < blank) & ~(octets_vector)(x == tab)) |
	                           (octets_vector)(x == del));
}

/* How many of eight bytes come before the first that is no letter (ASCII), digit, '-' or '.'; 8: there is none. */
static inline unsigned octets_before_mark(const void *p)
{
	octets_half x, common;
	uint64_t    others;

	memcpy(&x, p, sizeof(x));
	common = (octets_half)((x | 0x20) - 'a' < 26) | (octets_half)(x - '0' < 10) | (octets_half)(x - '-' < 2);
	memcpy(&others, &common, sizeof(others));
	others = ~le64toh(others);
	return others ? octets_first(others) : 8;
}

/* Not 0 when any of them is no visible ASCII character. Does not say which one. */
static inline uint64_t octets_hidden(uint64_t x)
{
	return ((x - OCTETS_OF('!')) | ((x ^ OCTETS_OF(0x7f)) - OCTETS_OF(1)) | x) & OCTETS_OF(0x80);
}
