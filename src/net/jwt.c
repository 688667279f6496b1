/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jwt.c - session tokens.
 *
 * A token is read from the outside in: size, three parts, header, signature, and only then what it says. The payload is
 * not looked at before the signature is known to be good.
 *
 * Always true:
 *   1. The algorithm is ours to choose: a header with any but HS256, "none" included, is refused. [check_header()]
 *   2. The time it takes to compare signatures does not reveal how much of them was right. [is_signed_by()]
 *   3. A token without an end is not valid; one is valid while now < exp. [read_times()]
 *   4. One text for each token: base64url is strict, so a changed character is never overlooked. [jwt_split()]
 *
 * Others mint tokens with the shared secret, so the user object may have no more than an email and roles, or members
 * that we do not know.
 *
 * Not here: signatures with public keys (jwks.c), where a token comes from (http/api/auth.c).
 */
#include "net/jwt.h"

#include <assert.h>
#include <math.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/utf8.h"

enum { PAYLOAD_MAX = 4096, ROLES_MAX = 16 };

/* Later than any sensible time, and exact as a double. */
static const double time_max = 1e12;

static const char *const role_names[] = { "User", "Manager", "Admin" };

unsigned jwt_role_parse(struct str name)
{
	int i = str_word(name, role_names, ARRAY_LEN(role_names));

	return i < (int)ARRAY_LEN(role_names) ? 1u << i : 0;
}

const char *jwt_role_name(unsigned i)
{
	return i < ARRAY_LEN(role_names) ? role_names[i] : NULL;
}

/* --- signatures --- */

static struct str sign(struct str secret, struct str text, struct arena *a)
{
	struct hash mac;

	assert(secret.n >= JWT_SECRET_MIN);
	hash_hmac(secret, text, &mac);
	return base64url_encode(a, hash_str(&mac));
}

struct str jwt_mac(struct str secret, const char *purpose, struct str text, struct arena *a)
{
	/* A colon is never in what a token signs. */
	return sign(secret, str_format(a, "%s:%.*s", purpose, STR_ARG(text)), a);
}

static bool is_signed_by(const struct jwt_parts *parts, struct str secret)
{
	struct hash mac;

	if (secret.n < JWT_SECRET_MIN)
		return false;
	hash_hmac(secret, parts->signed_text, &mac);
	return str_eq_secret(parts->signature, hash_str(&mac));
}

/* --- writing --- */

static struct str write_payload(const struct jwt_session *s, struct buf *b)
{
	struct json_out o = JSON_OUT(b);

	JSON_PUT(&o, member_object(NULL), member_object("user"), member_str("email", s->email),
	         member_if_any(member_str("displayName", utf8_clip(s->display_name, JWT_NAME_MAX))),
	         member_if_any(member_str("userName", utf8_clip(s->user_name, JWT_NAME_MAX))), member_list("roles"));
	for (unsigned i = 0; i < ARRAY_LEN(role_names); i++)
		if (s->roles & 1u << i)
			json_add_str(&o, str_from(role_names[i]));
	JSON_PUT(&o, member_list_end(), member_end(), member_int("iat", s->issued_at), member_int("exp", s->expires_at),
	         member_end());
	assert(!b->is_full);
	return buf_str(b);
}

struct str jwt_issue(const struct jwt_session *s, struct str secret, struct arena *a)
{
	struct str                   header = base64url_encode(a, STR("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"));
	struct str                   payload, text, signature;
	CLEANUP(buf_fini) struct buf b = BUF(PAYLOAD_MAX);

	assert(s->email.n <= JWT_EMAIL_MAX);
	payload = base64url_encode(a, write_payload(s, &b));
	text = str_format(a, "%.*s.%.*s", STR_ARG(header), STR_ARG(payload));
	signature = sign(secret, text, a);
	return str_format(a, "%.*s.%.*s", STR_ARG(text), STR_ARG(signature));
}

/* --- reading --- */

enum rc jwt_split(struct str token, struct arena *a, struct jwt_parts *ret, struct err *e)
{
	struct jwt_parts parts = { .signature = token };
	struct str       header, payload;

	if (token.n == 0 || token.n > JWT_MAX)
		return err_set(e, RC_UNKNOWN, "a token has 1 to %d bytes", JWT_MAX);
	header = str_cut(&parts.signature, '.');
	payload = str_cut(&parts.signature, '.');
	parts.signed_text = str_of(token.p, header.n + 1 + payload.n);
	if (!header.n || !payload.n || !parts.signature.n || !base64url_decode(a, header, &parts.header) ||
	    !base64url_decode(a, payload, &parts.payload) || !base64url_decode(a, parts.signature, &parts.signature))
		return err_set(e, RC_UNKNOWN, "a token must be three parts in base64url with dots between them");
	*ret = parts;
	return RC_OK;
}

static enum rc check_header(const struct jwt_parts *parts, struct err *e)
{
	CLEANUP(json_freep) json_t *header = NULL;
	struct str                  alg = STR("");

	if (json_parse(parts->header, &header, NULL) || !json_is_object(header) || !json_get_text(header, "alg", &alg))
		return err_set(e, RC_UNKNOWN, "the token's header is not JSON with an alg");
	if (!str_eq(alg, STR("HS256")) || json_object_get(header, "crit"))
		return err_set(e, RC_UNKNOWN, "the token must be signed with HS256, without extensions");
	return RC_OK;
}

/* A time that others may have written with a fraction. False when it is not a time. */
static bool read_time(const json_t *payload, const char *name, int64_t *ret)
{
	const json_t *value = json_object_get(payload, name);
	double        sec = json_number_value(value);

	if (!json_is_number(value) || !(sec >= 0 && sec <= time_max))
		return false;
	*ret = (int64_t)floor(sec);
	return true;
}

static enum rc read_times(const json_t *payload, int64_t now, struct jwt_session *s, struct err *e)
{
	int64_t not_before = 0;

	if (!read_time(payload, "exp", &s->expires_at))
		return err_set(e, RC_UNKNOWN, "the token has no exp, the time of its end");
	if (json_object_get(payload, "iat") && !read_time(payload, "iat", &s->issued_at))
		return err_set(e, RC_UNKNOWN, "the token's iat is not a time");
	if (json_object_get(payload, "nbf") && !read_time(payload, "nbf", &not_before))
		return err_set(e, RC_UNKNOWN, "the token's nbf is not a time");
	if (now >= s->expires_at)
		return err_set_code(e, RC_UNKNOWN, "TOKEN_EXPIRED", "the session has expired; sign in again");
	if (s->issued_at > now + JWT_SKEW_SEC || not_before > now + JWT_SKEW_SEC || s->issued_at > s->expires_at)
		return err_set(e, RC_UNKNOWN, "the token is from the future: compare the clocks");
	return RC_OK;
}

static bool is_dotted(struct str text)
{
	return text.n && text.p[0] != '.' && text.p[text.n - 1] != '.' && !str_has(text, STR(".."));
}

bool jwt_is_email(struct str text)
{
	struct str host = text;
	struct str local = str_cut(&host, '@');

	return text.n <= JWT_EMAIL_MAX && is_dotted(local) && is_dotted(host) && memchr(host.p, '.', host.n) &&
	       str_is_of(local, "a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-") && str_is_of(host, "a-zA-Z0-9.-");
}

bool jwt_read_roles(const json_t *list, unsigned *ret)
{
	if (!list)
		return true;
	if (!json_is_array(list) || json_array_size(list) > ROLES_MAX)
		return false;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));
		unsigned    role = name ? jwt_role_parse(str_from(name)) : 0;

		if (!role)
			return false;
		*ret |= role;
	}
	return true;
}

static enum rc read_user(const json_t *user, struct arena *a, struct jwt_session *s, struct err *e)
{
	struct str email, display_name, user_name;

	if (!json_is_object(user))
		return err_set(e, RC_INVALID, "the token has no user object");
	if (!json_get_text(user, "email", &email) || !jwt_is_email(email))
		return err_set(e, RC_INVALID, "the token's user.email must be an email address");
	if (!json_get_text(user, "displayName", &display_name) || display_name.n > JWT_NAME_MAX ||
	    !json_get_text(user, "userName", &user_name) || user_name.n > JWT_NAME_MAX)
		return err_set(e, RC_INVALID,
		               "the token's user.displayName and user.userName must be texts of at most %d bytes",
		               JWT_NAME_MAX);
	if (!jwt_read_roles(json_object_get(user, "roles"), &s->roles))
		return err_set(e, RC_INVALID, "the token's user.roles must be a list of Admin, Manager and User");
	s->email = str_dup(a, email);
	s->display_name = str_dup(a, display_name);
	s->user_name = str_dup(a, user_name);
	return RC_OK;
}

enum rc jwt_read(struct str token, const struct jwt_secrets *secrets, int64_t now, struct arena *a,
                 struct jwt_session *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *payload = NULL;
	struct jwt_session          s = { .issued_at = 0 };
	struct jwt_parts            parts;
	enum rc                     rc;

	if ((rc = jwt_split(token, a, &parts, e)) || (rc = check_header(&parts, e)))
		return rc;
	if (!is_signed_by(&parts, secrets->current) &&
	    !(now < secrets->old_until && is_signed_by(&parts, secrets->old)))
		return err_set(e, RC_UNKNOWN, "the token's signature is not good here; sign in again");
	if (json_parse(parts.payload, &payload, NULL) || !json_is_object(payload))
		return err_set(e, RC_UNKNOWN, "the token's payload is not a JSON object");
	if ((rc = read_times(payload, now, &s, e)) || (rc = read_user(json_object_get(payload, "user"), a, &s, e)))
		return rc;
	*ret = s;
	return RC_OK;
}
