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

/* A random UUID (version 4). Unique, but guessable from others: never a secret. */
void id_uuid(char ret[ID_UUID_SIZE]);

/* A secret token: 43 characters, 256 random bits, URL-safe. */
enum { ID_TOKEN_SIZE = 44 };
void id_token(char ret[ID_TOKEN_SIZE]);
