/* SPDX-License-Identifier: Apache-2.0 */
/*
 * password.c - passwords, and their hashes: Argon2id by libsodium; why that library: docs/decisions/0013-argon2.md.
 *
 * A new hash costs libsodium's "interactive" price. A stored hash names its own price, so its limits are checked before
 * use: whoever can write a hash must not choose how much memory a sign-in takes.
 */
#include "base/password.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

enum { KIB_MAX = 256 * 1024, PASSES_MAX = 10, SALT_TEXT_MIN = 11, DIGEST_TEXT_MIN = 22, PASSWORD_LENGTH = 24 };

static_assert(PASSWORD_HASH_SIZE >= crypto_pwhash_STRBYTES, "a hash fits");

static void prepare(void)
{
	if (sodium_init() >= 0) /* may be called by any thread, again and again */
		return;
	fprintf(stderr, "leasehold: libsodium cannot be used on this machine\n");
	abort();
}

enum rc password_hash(struct str password, char ret[PASSWORD_HASH_SIZE], struct err *e)
{
	if (password.n < PASSWORD_MIN || password.n > PASSWORD_MAX)
		return err_set(e, RC_INVALID, "a password must have %d to %d bytes", PASSWORD_MIN, PASSWORD_MAX);
	prepare();
	memset(ret, 0, PASSWORD_HASH_SIZE);
	if (crypto_pwhash_str_alg(ret, password.p, password.n, crypto_pwhash_OPSLIMIT_INTERACTIVE,
	                          crypto_pwhash_MEMLIMIT_INTERACTIVE, crypto_pwhash_ALG_ARGON2ID13))
		return err_set(e, RC_UNAVAILABLE, "hashing a password needs %d MiB of memory, which is not available",
		               (int)(crypto_pwhash_MEMLIMIT_INTERACTIVE >> 20));
	return RC_OK;
}

/* "m=65536,t=2,p=1" */
static bool is_price_ok(struct str text)
{
	static const struct {
		struct str name;
		int64_t    least, most;
	} rows[] = { { STR_INIT("m"), 8, KIB_MAX }, { STR_INIT("t"), 1, PASSES_MAX }, { STR_INIT("p"), 1, 1 } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str value = str_cut(&text, ',');
		int64_t    number;

		if (!str_eq(str_cut(&value, '='), rows[i].name) ||
		    !str_to_int(value, rows[i].least, rows[i].most, &number))
			return false;
	}
	return text.n == 0;
}

bool password_is_hash(struct str text)
{
	struct str rest = text;

	if (text.n >= PASSWORD_HASH_SIZE || str_cut(&rest, '$').n || !str_eq(str_cut(&rest, '$'), STR("argon2id")) ||
	    !str_eq(str_cut(&rest, '$'), STR("v=19")) || !is_price_ok(str_cut(&rest, '$')))
		return false;
	return str_cut(&rest, '$').n >= SALT_TEXT_MIN && rest.n >= DIGEST_TEXT_MIN && !memchr(rest.p, '$', rest.n);
}

bool password_verify(struct str password, const char *hash)
{
	prepare();
	return crypto_pwhash_str_verify(hash, password.p ? password.p : "", password.n) == 0;
}

struct str password_new(struct arena *a)
{
	static const char *const kinds[] = { "ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijkmnopqrstuvwxyz", "23456789",
		                             "-_.+=" };
	char                    *text = arena_alloc(a, PASSWORD_LENGTH + 1);

	for (size_t i = 0; i < PASSWORD_LENGTH; i++) { /* the first four places have one of each kind */
		const char *from = kinds[i < ARRAY_LEN(kinds) ? i : randombytes_uniform(3)];

		text[i] = from[randombytes_uniform((uint32_t)strlen(from))];
	}
	return str_of(text, PASSWORD_LENGTH);
}
