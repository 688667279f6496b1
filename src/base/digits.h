/* digits.h - a number in decimal, written where it belongs; for what is written all the time. */
#pragma once

#include <stdint.h>
#include <string.h>

enum { DIGITS_MAX = 20 }; /* with its sign */

/* At most DIGITS_MAX characters, no NUL. Answers where they end. */
static inline char *digits_put(char *at, int64_t number)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
	                            "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
	                            "8081828384858687888990919293949596979899";
	uint64_t          rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
	char             *end;

	if (number < 0)
		*at++ = '-';
	if (rest < 10) {
		*at = (char)('0' + rest);
		return at + 1;
	}
	end = at + 2;
	for (uint64_t left = rest; left >= 100; left /= 100)
		end += left >= 1000 ? 2 : 1;
	at = end;
	for (; rest >= 10; rest /= 100) {
		at -= 2;
		memcpy(at, pairs + 2 * (rest % 100), 2);
	}
	if (rest)
		at[-1] = (char)('0' + rest);
	return end;
}
