/* id.h - random bytes and identifiers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { ID_UUID_SIZE = 37 }; /* 36 characters and a NUL */

/* Random bytes from the kernel, good enough for secrets. */
void id_random(void *ret, size_t size);

/* A random number, fast and per thread; not for secrets. */
uint64_t id_fast_random(void);
uint64_t id_draw(void *ignored); /* the same, as a callback */

/* A UUID of 128 bits, among them its version and its variant. */
void id_put_uuid(uint64_t first, uint64_t second, char ret[ID_UUID_SIZE]);

/* The second half, when all else in it is random: variant 1. */
static inline uint64_t id_uuid_half(uint64_t random)
{
	return (random & ~(3ull << 62)) | 2ull << 62;
}

/* A random UUID (version 4). Unique, but guessable from others: never a secret. */
void id_uuid(char ret[ID_UUID_SIZE]);

/* A secret token: 43 characters, 256 random bits, URL-safe. */
enum { ID_TOKEN_SIZE = 44 };
void id_token(char ret[ID_TOKEN_SIZE]);
