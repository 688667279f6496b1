/* digits.h - numbers, written straight into place; for hot paths. */
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { DIGITS_MAX = 20 }; /* with its sign */

/* How many characters digits_put() writes. */
static inline size_t digits_count(int64_t number)
{
	static const uint64_t powers[DIGITS_MAX] = {
		1ull,
		10ull,
		100ull,
		1000ull,
		10000ull,
		100000ull,
		1000000ull,
		10000000ull,
		100000000ull,
		1000000000ull,
		10000000000ull,
		100000000000ull,
		1000000000000ull,
		10000000000000ull,
		100000000000000ull,
		1000000000000000ull,
		10000000000000000ull,
		100000000000000000ull,
		1000000000000000000ull,
		10000000000000000000ull,
	};
	uint64_t size = (number < 0 ? 0 - (uint64_t)number : (uint64_t)number) | 1; /* 0 has a digit, too */
	size_t   bits = 64 - (size_t)__builtin_clzll(size);
	size_t   least = bits * 1233 >> 12; /* bits * log10(2): right, or one too few */

	return (number < 0) + least + (size >= powers[least]);
}

/* Two digits of a number below 100 before end. Returns where they begin. */
static inline char *digits_put_pair(char *end, unsigned number)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
	                            "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
	                            "8081828384858687888990919293949596979899";

	end[-1] = pairs[2 * number + 1];
	end[-2] = pairs[2 * number];
	return end - 2;
}

/* Writes at most DIGITS_MAX characters, no NUL. Returns the end. */
static inline char *digits_put(char *at, int64_t number)
{
	uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
	char    *end = at + digits_count(number), *left = end;
	uint32_t few;

	*at = '-';
	at += number < 0;
	for (; rest > UINT32_MAX; rest /= 100)
		left = digits_put_pair(left, rest % 100);
	for (few = (uint32_t)rest; few >= 10; few /= 100) /* shorter divisions are cheaper */
		left = digits_put_pair(left, few % 100);
	if (left > at)
		*at = (char)('0' + few);
	return end;
}

/* The eight hexadecimal digits of a number, no NUL: each byte of the word is one of them, all are made at once. */
static inline void digits_put_hex(char *at, uint32_t number)
{
	uint64_t x = number;

	x = (x | x << 16) & 0x0000ffff0000ffffull;
	x = (x | x << 8) & 0x00ff00ff00ff00ffull;
	x = (x | x << 4) & 0x0f0f0f0f0f0f0f0full;
	x += 0x3030303030303030ull + ((x + 0x0606060606060606ull) >> 4 & 0x0101010101010101ull) * ('a' - '9' - 1);
	x = htobe64(x);
	memcpy(at, &x, sizeof(x));
}
