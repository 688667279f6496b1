/* digits.h - decimal numbers, written straight into place; for hot paths. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { DIGITS_MAX = 20 }; /* with its sign */

/* Writes at most DIGITS_MAX characters, no NUL; needs room for that many even when fewer are used. Returns the end. */
static inline char *digits_put(char *at, int64_t number)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
	                            "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
	                            "8081828384858687888990919293949596979899";
	uint64_t          rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
	char              digits[2 * DIGITS_MAX] = { 0 };
	size_t            first = DIGITS_MAX;

	if (rest < 10) {
		*at = '-';
		at += number < 0;
		*at = (char)('0' + rest);
		return at + 1;
	}
	for (; rest >= 10; rest /= 100) {
		const char *pair = &pairs[2 * (rest % 100)];

		digits[--first] = pair[1];
		digits[--first] = pair[0];
	}
	if (rest)
		digits[--first] = (char)('0' + rest);
	if (number < 0)
		digits[--first] = '-';
	memcpy(at, digits + first, DIGITS_MAX); /* a size that is known costs nothing to copy */
	return at + DIGITS_MAX - first;
}
