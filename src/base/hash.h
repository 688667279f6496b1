/* hash.h - SHA-256, plain and with a key (HMAC), by OpenSSL. The process ends when OpenSSL has no memory. */
#pragma once

#include "base/str.h"

struct hash {
	unsigned char bytes[32];
};

void hash_sha256(struct str text, struct hash *ret);
void hash_hmac(struct str key, struct str text, struct hash *ret);

static inline struct str hash_str(const struct hash *h)
{
	return str_of((const char *)h->bytes, sizeof(h->bytes));
}

/* What MySQL and MariaDB keep of a password: * and SHA1(SHA1(password)) in capitals. */
struct str hash_mysql(struct arena *a, struct str password);

/* As 64 hexadecimal digits; of a text at once. */
struct str hash_hex(struct arena *a, const struct hash *h);
struct str hash_sha256_hex(struct arena *a, struct str text);
