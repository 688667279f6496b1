/* jwt.h - session tokens: JSON Web Tokens of contract section 5, signed with HMAC-SHA256 (HS256). Pure. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"

enum {
	JWT_MAX = 8192, /* bytes of a token */
	JWT_SECRET_MIN = 32,
	JWT_EMAIL_MAX = 254,
	JWT_NAME_MAX = 256,
	JWT_SKEW_SEC = 60, /* how far the clock of another issuer may be ahead of ours */
};

/* The numbers are those of enum role in domain/ports/caller.h. */
enum jwt_role { JWT_USER = 1, JWT_MANAGER = 2, JWT_ADMIN = 4 };

/* Whose session, and from when until when (seconds since 1970). */
struct jwt_session {
	struct str email;
	struct str display_name, user_name; /* may be empty */
	unsigned   roles;                   /* enum jwt_role, or-ed */
	int64_t    issued_at;               /* 0: the token does not say */
	int64_t    expires_at;
};

/* What tokens are signed with, and what they were signed with before: accepted until old_until (not included). */
struct jwt_secrets {
	struct str current, old;
	int64_t    old_until;
};

/* The token of this session, in the arena; names in it have at most JWT_NAME_MAX bytes. The secret has at least
 * JWT_SECRET_MIN bytes; the email passes jwt_is_email(). */
struct str jwt_issue(const struct jwt_session *s, struct str secret, struct arena *a);

/* Read a token. RC_UNKNOWN: not a token of ours, or not valid now. RC_INVALID: ours and valid, but its user object is
 * bad. */
MUST_CHECK enum rc jwt_read(struct str token, const struct jwt_secrets *secrets, int64_t now, struct arena *a,
                            struct jwt_session *ret, struct err *e);

/* The three parts of a token, decoded. RC_UNKNOWN when it has not exactly three good ones. */
struct jwt_parts {
	struct str header, payload; /* JSON, not looked at yet */
	struct str signature;       /* bytes */
	struct str signed_text;     /* what is signed */
};
MUST_CHECK enum rc jwt_split(struct str token, struct arena *a, struct jwt_parts *ret, struct err *e);

/* "Admin" and so on, exactly. 0: no role. */
unsigned jwt_role_parse(struct str name);

/* A list of them, added to *ret; a missing list is no role at all. False: it is something else. */
MUST_CHECK bool jwt_read_roles(const json_t *list, unsigned *ret);

/* The name of the role with the number 1 << i; NULL when there is none. */
const char *jwt_role_name(unsigned i);

/* name@host.domain as contract 1.1 has it. */
bool jwt_is_email(struct str text);

/* A signature of a text for one purpose, URL-safe. No purpose's signature is good for another, nor for a token. */
struct str jwt_mac(struct str secret, const char *purpose, struct str text, struct arena *a);
