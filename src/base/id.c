/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id.c - where randomness comes from.
 *
 * Secrets are read from the kernel. Request ids and jitter come from a small generator per thread (xoshiro256**),
 * seeded once from the kernel, because a system call for each request would be too slow.
 */
#include "base/id.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/digits.h"

void id_random(void *ret, size_t size)
{
	char *at = ret;

	while (size) {
		ssize_t got = getrandom(at, size, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			perror("leasehold: getrandom");
			abort();
		}
		at += got;
		size -= (size_t)got;
	}
}

static uint64_t rotate(uint64_t x, int by)
{
	return (x << by) | (x >> (64 - by));
}

uint64_t id_fast_random(void)
{
	static _Thread_local uint64_t s[4];
	static _Thread_local bool     is_seeded;
	uint64_t                      result, t;

	if (!is_seeded) {
		id_random(s, sizeof(s));
		is_seeded = true;
	}
	result = rotate(s[1] * 5, 7) * 9;
	t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

uint64_t id_draw(void *ignored)
{
	(void)ignored;
	return id_fast_random();
}

void id_uuid(char ret[ID_UUID_SIZE])
{
	uint64_t first = (id_fast_random() & ~0xf000ull) | 0x4000;           /* version 4 */
	uint64_t second = (id_fast_random() & ~(3ull << 62)) | (2ull << 62); /* variant 1 */

	char digits[32];

	digits_put_hex(digits, (uint32_t)(first >> 32));
	digits_put_hex(digits + 8, (uint32_t)first);
	digits_put_hex(digits + 16, (uint32_t)(second >> 32));
	digits_put_hex(digits + 24, (uint32_t)second);
	memcpy(ret, digits, 8);
	memcpy(ret + 9, digits + 8, 4);
	memcpy(ret + 14, digits + 12, 4);
	memcpy(ret + 19, digits + 16, 4);
	memcpy(ret + 24, digits + 20, 12);
	ret[8] = ret[13] = ret[18] = ret[23] = '-';
	ret[36] = '\0';
}

void id_token(char ret[ID_TOKEN_SIZE])
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char     bytes[ID_TOKEN_SIZE - 1];

	id_random(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		ret[i] = alphabet[bytes[i] & 63];
	ret[sizeof(bytes)] = '\0';
}
