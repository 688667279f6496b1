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

void id_put_uuid(uint64_t first, uint64_t second, char ret[ID_UUID_SIZE])
{
	uint64_t time = digits_hex((uint32_t)first), random = digits_hex((uint32_t)(second >> 32));

	octets_put(ret, digits_hex((uint32_t)(first >> 32)), 8);
	octets_put(ret + 9, time, 4);
	octets_put(ret + 14, time >> 32, 4);
	octets_put(ret + 19, random, 4);
	octets_put(ret + 24, random >> 32, 4);
	octets_put(ret + 28, digits_hex((uint32_t)second), 8);
	ret[8] = ret[13] = ret[18] = ret[23] = '-';
	ret[36] = '\0';
}

void id_uuid(char ret[ID_UUID_SIZE])
{
	uint64_t first = (id_fast_random() & ~0xf000ull) | 0x4000; /* version 4 */

	id_put_uuid(first, id_uuid_half(id_fast_random()), ret);
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
