/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sign.c - HMAC-SHA256 over time and body, by OpenSSL.
 *
 * The time is part of what is signed, so a receiver that refuses old times cannot be sent an old body again. "v1" leaves room for another
 * algorithm beside it.
 */
#include "providers/notify/sign.h"

#include <inttypes.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

enum { HASH_SIZE = 32 };

static struct str to_hex(struct arena *a, const unsigned char *bytes, size_t n)
{
	char *hex = arena_alloc(a, 2 * n + 1);

	for (size_t i = 0; i < n; i++) {
		hex[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		hex[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	return str_of(hex, 2 * n);
}

struct str sign_body(struct str secret, int64_t now_sec, struct str body, struct arena *a)
{
	unsigned char hash[HASH_SIZE];
	unsigned      size = 0;
	struct str    text = str_format(a, "%" PRId64 ".%.*s", now_sec, STR_ARG(body));
	struct str    hex;

	if (secret.n > INT_MAX ||
	    !HMAC(EVP_sha256(), secret.p, (int)secret.n, (const unsigned char *)text.p, text.n, hash, &size) ||
	    size != HASH_SIZE) {
		fprintf(stderr, "leasehold: OpenSSL has no memory or no SHA-256\n");
		abort();
	}
	hex = to_hex(a, hash, sizeof(hash));
	return str_format(a, "t=%" PRId64 ",v1=%.*s", now_sec, STR_ARG(hex));
}
