/* digits.h - numbers as text, eight digits at a time; for hot paths. */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/octets.h"

enum { DIGITS_MAX = 20, DIGITS_EIGHT = 100000000 }; /* most of a decimal number, with its sign; what eight are below */

/* Eight digits as the values 0 to 9, the first in the lowest byte; of a number below DIGITS_EIGHT. Each step cuts all
 * parts of it in two: a product with a rounded-up reciprocal, shifted, is the quotient. */
static inline uint64_t digits_split(uint64_t number)
{
	uint64_t x = number / 10000 | number % 10000 << 32, high;

	high = x * 10486 >> 20 & 0x0000007f0000007full;
	x = high | (x - 100 * high) << 16;
	high = x * 103 >> 10 & 0x000f000f000f000full;
	return high | (x - 10 * high) << 8;
}

/* Back again. */
static inline uint64_t digits_join(uint64_t x)
{
	x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ffull;
	x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffffull;
	return (x * 10000 + (x >> 32)) & 0xffffffff;
}

static inline char *digits_put_eight(char *at, uint64_t number)
{
	octets_put(at, digits_split(number) | OCTETS_OF('0'), sizeof(uint64_t));
	return at + sizeof(uint64_t);
}

/* Without zeroes in front; the number is not 0. */
static inline char *digits_put_some(char *at, uint64_t number)
{
	uint64_t x = digits_split(number);
	unsigned zeroes = octets_first(x);

	octets_put(at, (x | OCTETS_OF('0')) >> 8 * zeroes, sizeof(uint64_t));
	return at + sizeof(uint64_t) - zeroes;
}

/* Writes at most DIGITS_MAX characters, no NUL; needs room for that many even when fewer are used. Returns the end. */
static inline char *digits_put(char *at, int64_t number)
{
	uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number, high = rest / DIGITS_EIGHT;

	*at = '-';
	at += number < 0;
	if (rest < 10) {
		*at = (char)('0' + rest);
		return at + 1;
	}
	if (!high)
		return digits_put_some(at, rest);
	if (high < DIGITS_EIGHT)
		at = digits_put_some(at, high);
	else
		at = digits_put_eight(digits_put_some(at, high / DIGITS_EIGHT), high % DIGITS_EIGHT);
	return digits_put_eight(at, rest % DIGITS_EIGHT);
}

static inline bool digits_is(char c)
{
	return (unsigned char)(c - '0') < 10;
}

/* The decimal number that begins here, without a sign, modulo 2^64, and how many digits it has. It looks up to eight
 * bytes behind the end, and a number that goes on there is not cut off: it ends behind the end. */
static inline uint64_t digits_get(const char *at, const char *end, size_t *ret_count)
{
	static const uint64_t powers[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, DIGITS_EIGHT };
	const char           *from = at;
	uint64_t              number = 0;
	unsigned              count = sizeof(uint64_t);

	if (digits_is(at[0]) && !digits_is(at[1])) { /* many have no more */
		*ret_count = 1;
		return (uint64_t)(at[0] - '0');
	}
	while (count == sizeof(uint64_t) && at < end) {
		uint64_t x = octets_at(at) ^ OCTETS_OF('0');
		uint64_t others = (x | (x + OCTETS_OF(0x80 - 10))) & OCTETS_OF(0x80);

		count = others ? octets_first(others) : sizeof(uint64_t);
		if (count)
			number = number * powers[count] + digits_join(x << 8 * (sizeof(uint64_t) - count));
		at += count;
	}
	*ret_count = (size_t)(at - from);
	return number;
}

/* Eight hexadecimal digits, in small letters, the first in the lowest byte. */
static inline uint64_t digits_hex(uint32_t number)
{
	uint64_t x = __builtin_bswap32(number), letters;

	x = (x | x << 16) & 0x0000ffff0000ffffull;
	x = (x | x << 8) & 0x00ff00ff00ff00ffull;
	x = (x >> 4 | x << 8) & OCTETS_OF(0x0f);
	letters = (x + OCTETS_OF(6)) >> 4 & OCTETS_OF(1);
	return x + OCTETS_OF('0') + letters * ('a' - '9' - 1);
}

/* Back again. False: it is no such text. */
static inline bool digits_read_hex(uint64_t octets, uint32_t *ret)
{
	uint64_t x = (octets & OCTETS_OF(0x0f)) + 9 * (octets >> 6 & OCTETS_OF(1));

	x = (x << 4 | x >> 8) & 0x00ff00ff00ff00ffull;
	x = (x | x >> 8) & 0x0000ffff0000ffffull;
	*ret = __builtin_bswap32((uint32_t)(x | x >> 16));
	return digits_hex(*ret) == octets; /* what is read of anything else is written in another way */
}
