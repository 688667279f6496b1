/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - hashes by OpenSSL. */
#include "base/hash.h"

#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/mem.h"

void hash_sha256(struct str text, struct hash *ret)
{
	mem_must(EVP_Digest(text.p ? text.p : "", text.n, ret->bytes, NULL, EVP_sha256(), NULL) == 1, "a hash");
}

void hash_hmac(struct str key, struct str text, struct hash *ret)
{
	unsigned size = 0;

	mem_must(key.n <= INT_MAX && HMAC(EVP_sha256(), key.p, (int)key.n, (const unsigned char *)text.p, text.n,
	                                  ret->bytes, &size),
	         "a hash");
}

struct str hash_hex(struct arena *a, const struct hash *h)
{
	size_t n = 2 * sizeof(h->bytes);
	char  *hex = arena_alloc(a, n + 1);

	for (size_t i = 0; i < n; i++)
		hex[i] = "0123456789abcdef"[h->bytes[i / 2] >> (i % 2 ? 0 : 4) & 15];
	return str_of(hex, n);
}

struct str hash_mysql(struct arena *a, struct str password)
{
	enum { SHA1_SIZE = 20 };
	unsigned char once[EVP_MAX_MD_SIZE], twice[EVP_MAX_MD_SIZE];
	char         *text = arena_alloc(a, 2 * SHA1_SIZE + 2);

	mem_must(EVP_Digest(password.p, password.n, once, NULL, EVP_sha1(), NULL) == 1 &&
	                 EVP_Digest(once, SHA1_SIZE, twice, NULL, EVP_sha1(), NULL) == 1,
	         "a hash");
	text[0] = '*';
	for (int i = 0; i < SHA1_SIZE; i++)
		snprintf(text + 1 + 2 * i, 3, "%02X", twice[i]);
	return str_from(text);
}

struct str hash_sha256_hex(struct arena *a, struct str text)
{
	struct hash hash;

	hash_sha256(text, &hash);
	return hash_hex(a, &hash);
}
