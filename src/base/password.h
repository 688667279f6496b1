/* password.h - Argon2id hashes of passwords. Each takes about 0.1 s and 64 MiB: never on the loop thread. */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum { PASSWORD_MIN = 8, PASSWORD_MAX = 256, PASSWORD_HASH_SIZE = 128 };

/* "$argon2id$v=19$m=65536,t=2,p=1$...", salted. RC_INVALID: too short or too long. RC_UNAVAILABLE: no memory. */
MUST_CHECK enum rc password_hash(struct str password, char ret[PASSWORD_HASH_SIZE], struct err *e);

/* True for a hash that password_verify() can work with, at a cost within our limits. */
bool password_is_hash(struct str text);

/* A new one: 24 characters, some of each kind, and none that look alike. */
struct str password_new(struct arena *a);

/* Is this the password of the hash? hash is NUL-terminated and passed password_is_hash(). */
bool password_verify(struct str password, const char *hash);
