/* SPDX-License-Identifier: Apache-2.0 */
/* test_jwt.c - tokens are read strictly, signatures are checked, time is honoured; keys of others too. */
#include "test.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/arena.h"
#include "base/base64.h"
#include "net/jwks.h"
#include "net/jwt.h"

#define SECRET "0123456789abcdef0123456789abcdef"
#define OTHER  "fedcba9876543210fedcba9876543210"

enum { NOW = 1000000, END = NOW + 60 };

static const struct jwt_secrets secrets = { .current = STR_INIT(SECRET) };

/* Of RFC 7515, appendix A.1: made by others. */
static const char rfc_secret[] =
        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
static const char rfc_token[] =
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/* Appendix A.3. */
static const char ec_keys[] = "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
                              "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
                              "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}";
static const char ec_token[] =
        "eyJhbGciOiJFUzI1NiJ9."
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";

/* Made with another library (python3-cryptography). */
static const char rsa_keys[] =
        "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"one\",\"use\":\"sig\",\"e\":\"AQAB\",\"n\":\""
        "rlUP-xLNhFfkU15_gifc6D3vZgZhxyOHuJ2wYYBnM2MlUdxGtSPTNCyFAgYBg6xzVvGWZrblhM2hBQMdAZIP5YRowLcFQmd"
        "CJO7EPzYhbVK6lj99Ilj7yjVhE6fNAV_0E9kLgp3TDPg49UT5Y6lk7v-"
        "R_DA4SkbIwoQyDxe_OmAWYrBOqspIiEO4AY_XdATbkYzJfG4PhlMfbV5oQMELw0RSJIgd1peuEqaLNX2Oy906zrEZ4KkKgN"
        "nC8MX2DxFLeTHpzL2PogZMbsOF0w-Nng3ctxrbvJMh2jyywBoDqIsvOQhpfQRvF_1VxK4yBoJ-L1nLrEdnptAkLQd7-"
        "UJkew"
        "\"}]}";
static const char rsa_token[] =
        "eyJhbGciOiJSUzI1NiIsImtpZCI6Im9uZSJ9.eyJpc3MiOiJodHRwczovL2lkcC5leGFtcGxlIn0.SmAr47dqX5abAygfzH"
        "wP19qdDhTTzWcOvwi02Ce3WbDfGI3xnZV-9N511kAO9X_G3P9arCJUD-U7CuWFqjTXBRWpHO1_JrZ-"
        "p1qwJK2Gj8x7hUl9i0FQRW3Hq8lVyD_pVeRxsL-"
        "HUz3wWZGq7l0djIF2Vnq1Htwb3UOnKnBAexHr9GY9N3VBKvWJIcCleKGfXuJeggFnQwcQRiK-CfXc7wLfYKT3w3E2nJss24"
        "IVnFyP5ufzeeRdCjmkU58aCeKv3-nO8Z5Vvhrgte9ZpJj16Q4VxVosKD9Rla_v4aM-N7nDGFGb3T9M-"
        "geSIKBxFGQ_SGFmmize_Kw9KuZzDpGV6g";

/* The same with a key of 1024 bits. */
static const char short_keys[] =
        "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"one\",\"use\":\"sig\",\"e\":\"AQAB\",\"n\":\""
        "t8rgR0NAEBr8gX4HGg028aKwMpJ_uG0N7J5Iy_8TOY8scTn9Gj1Gfi4yh_JHSrgTlpGfT1h19uQRGsFfdzZFrT-"
        "dscWwjwmt64XeImyuY98K1HqaG5mhAKLAwOO0CiMJGR8UzB7oOFt7zvOyfA7h_C2-63RPZ6NOtQN8aMbVE7k"
        "\"}]}";

/* A token with this header and payload, signed properly. */
static struct str forge(struct arena *a, const char *header, const char *payload, struct str secret)
{
	struct str    head = base64url_encode(a, str_from(header)), body = base64url_encode(a, str_from(payload));
	struct str    text = str_format(a, "%.*s.%.*s", STR_ARG(head), STR_ARG(body)), signature;
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned      size;

	CHECK(HMAC(EVP_sha256(), secret.p, (int)secret.n, (const unsigned char *)text.p, text.n, mac, &size) != NULL);
	signature = base64url_encode(a, str_of((const char *)mac, size));
	return str_format(a, "%.*s.%.*s", STR_ARG(text), STR_ARG(signature));
}

static enum rc read_at(struct arena *a, struct str token, int64_t now, struct jwt_session *ret)
{
	struct err e = { 0 };
	enum rc    rc = jwt_read(token, &secrets, now, a, ret, &e);

	CHECK(!rc || e.msg[0]);
	return rc;
}

TEST(what_is_issued_can_be_read)
{
	struct arena       a = { 0 };
	struct jwt_session in = { .email = STR("ann@example.com"),
		                  .display_name = STR("Ann \"A\" \xc3\xa4"),
		                  .user_name = STR("ann"),
		                  .roles = JWT_ADMIN | JWT_USER,
		                  .issued_at = NOW,
		                  .expires_at = END };
	struct jwt_session out;

	CHECK(read_at(&a, jwt_issue(&in, STR(SECRET), &a), NOW, &out) == RC_OK);
	CHECK(str_eq(out.email, in.email) && str_eq(out.display_name, in.display_name));
	CHECK(str_eq(out.user_name, in.user_name) && out.roles == in.roles);
	CHECK(out.issued_at == NOW && out.expires_at == END);
	arena_fini(&a);
}

TEST(a_name_that_is_too_long_is_cut_between_characters)
{
	struct arena       a = { 0 };
	struct str         name = str_format(&a, "%01024d", 0), wide = str_format(&a, "%0255d\xc3\xa9%0700d", 0, 0);
	struct jwt_session in = { .email = STR("a@b.co"), .display_name = name, .user_name = wide, .expires_at = END };
	struct jwt_session out;

	CHECK(read_at(&a, jwt_issue(&in, STR(SECRET), &a), NOW, &out) == RC_OK);
	CHECK(out.display_name.n == JWT_NAME_MAX && out.user_name.n == JWT_NAME_MAX - 1);
	arena_fini(&a);
}

TEST(the_signature_of_rfc_7515_is_good)
{
	struct arena       a = { 0 };
	struct jwt_secrets theirs = { .old = STR("") };
	struct jwt_session out;
	struct err         e = { 0 };

	CHECK(base64url_decode(&a, STR(rfc_secret), &theirs.current));
	CHECK(jwt_read(STR(rfc_token), &theirs, 1300819379, &a, &out, &e) == RC_INVALID); /* good, but it has no user */
	CHECK(jwt_read(STR(rfc_token), &theirs, 1300819380, &a, &out, NULL) == RC_UNKNOWN);
	CHECK(jwt_read(STR(rfc_token), &secrets, 1300819379, &a, &out, NULL) == RC_UNKNOWN);
	arena_fini(&a);
}

#define USER(member) "{\"user\":{" member "},\"exp\":1000060}"

static const struct {
	const char *label, *header, *payload;
	enum rc     rc;
} cases[] = {
	{ "an email and roles are enough", "{\"alg\":\"HS256\"}", USER("\"email\":\"a@b.co\",\"roles\":[\"Admin\"]"),
	  RC_OK },
	{ "members that nobody knows are passed over", "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"x\":1}",
	  USER("\"email\":\"a@b.co\",\"userId\":\"7\",\"roles\":[]"), RC_OK },
	{ "no roles at all is no role", "{\"alg\":\"HS256\"}", USER("\"email\":\"a@b.co\""), RC_OK },
	{ "alg none", "{\"alg\":\"none\"}", USER("\"email\":\"a@b.co\""), RC_UNKNOWN },
	{ "alg None", "{\"alg\":\"None\"}", USER("\"email\":\"a@b.co\""), RC_UNKNOWN },
	{ "alg in small letters", "{\"alg\":\"hs256\"}", USER("\"email\":\"a@b.co\""), RC_UNKNOWN },
	{ "another HMAC", "{\"alg\":\"HS512\"}", USER("\"email\":\"a@b.co\""), RC_UNKNOWN },
	{ "a public key's alg", "{\"alg\":\"RS256\"}", USER("\"email\":\"a@b.co\""), RC_UNKNOWN },
	{ "no alg", "{\"typ\":\"JWT\"}", USER("\"email\":\"a@b.co\""), RC_UNKNOWN },
	{ "alg twice", "{\"alg\":\"none\",\"alg\":\"HS256\"}", USER("\"email\":\"a@b.co\""), RC_UNKNOWN },
	{ "alg that is no text", "{\"alg\":[\"HS256\"]}", USER("\"email\":\"a@b.co\""), RC_UNKNOWN },
	{ "an extension that must be understood", "{\"alg\":\"HS256\",\"crit\":[\"x\"]}", USER("\"email\":\"a@b.co\""),
	  RC_UNKNOWN },
	{ "a header that is no object", "\"HS256\"", USER("\"email\":\"a@b.co\""), RC_UNKNOWN },
	{ "no end", "{\"alg\":\"HS256\"}", "{\"user\":{\"email\":\"a@b.co\"}}", RC_UNKNOWN },
	{ "an end that is a text", "{\"alg\":\"HS256\"}", "{\"user\":{\"email\":\"a@b.co\"},\"exp\":\"1000060\"}",
	  RC_UNKNOWN },
	{ "an end that is too large", "{\"alg\":\"HS256\"}", "{\"user\":{\"email\":\"a@b.co\"},\"exp\":1e300}",
	  RC_UNKNOWN },
	{ "an end with a fraction", "{\"alg\":\"HS256\"}", "{\"user\":{\"email\":\"a@b.co\"},\"exp\":1000060.5}",
	  RC_OK },
	{ "a clock that is a little ahead", "{\"alg\":\"HS256\"}",
	  "{\"user\":{\"email\":\"a@b.co\"},\"iat\":1000060,\"exp\":1000090}", RC_OK },
	{ "issued in the future", "{\"alg\":\"HS256\"}",
	  "{\"user\":{\"email\":\"a@b.co\"},\"iat\":1000061,\"exp\":1000090}", RC_UNKNOWN },
	{ "issued after its end", "{\"alg\":\"HS256\"}",
	  "{\"user\":{\"email\":\"a@b.co\"},\"iat\":1000050,\"exp\":1000040}", RC_UNKNOWN },
	{ "not valid yet", "{\"alg\":\"HS256\"}", "{\"user\":{\"email\":\"a@b.co\"},\"nbf\":1000061,\"exp\":1000090}",
	  RC_UNKNOWN },
	{ "a payload that is no object", "{\"alg\":\"HS256\"}", "[1000060]", RC_UNKNOWN },
	{ "no user", "{\"alg\":\"HS256\"}", "{\"exp\":1000060}", RC_INVALID },
	{ "a user that is a text", "{\"alg\":\"HS256\"}", "{\"user\":\"a@b.co\",\"exp\":1000060}", RC_INVALID },
	{ "a user without an email", "{\"alg\":\"HS256\"}", USER("\"roles\":[\"Admin\"]"), RC_INVALID },
	{ "an email without a domain", "{\"alg\":\"HS256\"}", USER("\"email\":\"a@localhost\""), RC_INVALID },
	{ "an email with a line break", "{\"alg\":\"HS256\"}", USER("\"email\":\"a@b.co\\nX: y\""), RC_INVALID },
	{ "a role that there is not", "{\"alg\":\"HS256\"}", USER("\"email\":\"a@b.co\",\"roles\":[\"Root\"]"),
	  RC_INVALID },
	{ "a role in small letters", "{\"alg\":\"HS256\"}", USER("\"email\":\"a@b.co\",\"roles\":[\"admin\"]"),
	  RC_INVALID },
	{ "roles that are a text", "{\"alg\":\"HS256\"}", USER("\"email\":\"a@b.co\",\"roles\":\"Admin\""),
	  RC_INVALID },
	{ "a name that is a number", "{\"alg\":\"HS256\"}", USER("\"email\":\"a@b.co\",\"displayName\":7"),
	  RC_INVALID },
};

TEST(tokens_that_are_signed_properly_are_read_strictly)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct arena       a = { 0 };
		struct jwt_session out;

		CASE(cases[i].label);
		CHECK(read_at(&a, forge(&a, cases[i].header, cases[i].payload, STR(SECRET)), NOW, &out) == cases[i].rc);
		arena_fini(&a);
	}
}

TEST(a_token_is_good_until_its_end_and_not_at_it)
{
	struct arena       a = { 0 };
	struct jwt_session in = { .email = STR("a@b.co"), .issued_at = NOW, .expires_at = END }, out;
	struct str         token = jwt_issue(&in, STR(SECRET), &a);

	CHECK(read_at(&a, token, END - 1, &out) == RC_OK);
	CHECK(read_at(&a, token, END, &out) == RC_UNKNOWN);
	CHECK(read_at(&a, token, END + 1, &out) == RC_UNKNOWN);
	arena_fini(&a);
}

TEST(no_changed_character_is_overlooked)
{
	struct arena       a = { 0 };
	struct jwt_session in = { .email = STR("a@b.co"), .roles = JWT_USER, .issued_at = NOW, .expires_at = END }, out;
	struct str         token = jwt_issue(&in, STR(SECRET), &a);

	for (size_t i = 0; i < token.n; i++) {
		char *changed = arena_copy(&a, token.p, token.n);

		changed[i] = changed[i] == 'A' ? 'B' : 'A';
		CHECK(read_at(&a, str_of(changed, token.n), NOW, &out) == RC_UNKNOWN);
		CHECK(read_at(&a, str_of(token.p, i), NOW, &out) == RC_UNKNOWN);
	}
	CHECK(read_at(&a, str_format(&a, "%.*s.", STR_ARG(token)), NOW, &out) == RC_UNKNOWN);
	CHECK(read_at(&a, str_format(&a, "%.*s=", STR_ARG(token)), NOW, &out) == RC_UNKNOWN);
	CHECK(read_at(&a, str_format(&a, ".%.*s", STR_ARG(token)), NOW, &out) == RC_UNKNOWN);
	arena_fini(&a);
}

TEST(a_token_without_a_signature_or_of_any_size_is_refused)
{
	struct arena       a = { 0 };
	struct jwt_session in = { .email = STR("a@b.co"), .expires_at = END }, out;
	struct str rest = jwt_issue(&in, STR(SECRET), &a), head = str_cut(&rest, '.'), body = str_cut(&rest, '.');
	char      *large = arena_alloc(&a, JWT_MAX + 2);

	CHECK(read_at(&a, str_format(&a, "%.*s.%.*s.", STR_ARG(head), STR_ARG(body)), NOW, &out) == RC_UNKNOWN);
	CHECK(read_at(&a, str_format(&a, "%.*s.%.*s", STR_ARG(head), STR_ARG(body)), NOW, &out) == RC_UNKNOWN);
	CHECK(read_at(&a, STR(""), NOW, &out) == RC_UNKNOWN);
	memset(large, 'A', JWT_MAX + 1);
	CHECK(read_at(&a, str_of(large, JWT_MAX + 1), NOW, &out) == RC_UNKNOWN);
	arena_fini(&a);
}

TEST(an_old_secret_is_good_until_its_date)
{
	struct arena       a = { 0 };
	struct jwt_session in = { .email = STR("a@b.co"), .issued_at = NOW, .expires_at = NOW + 1000 }, out;
	struct jwt_secrets both = { .current = STR(OTHER), .old = STR(SECRET), .old_until = NOW + 10 };
	struct str         token = jwt_issue(&in, STR(SECRET), &a), fresh = jwt_issue(&in, STR(OTHER), &a);

	CHECK(jwt_read(token, &both, NOW + 9, &a, &out, NULL) == RC_OK);
	CHECK(jwt_read(token, &both, NOW + 10, &a, &out, NULL) == RC_UNKNOWN);
	CHECK(jwt_read(fresh, &both, NOW + 10, &a, &out, NULL) == RC_OK);
	arena_fini(&a);
}

TEST(an_empty_secret_is_never_good)
{
	struct arena       a = { 0 };
	struct jwt_secrets none = { .old_until = INT64_MAX };
	struct jwt_session out;

	CHECK(jwt_read(forge(&a, "{\"alg\":\"HS256\"}", USER("\"email\":\"a@b.co\""), STR("")), &none, NOW, &a, &out,
	               NULL) == RC_UNKNOWN);
	arena_fini(&a);
}

TEST(signatures_for_one_purpose_are_not_for_another)
{
	struct arena a = { 0 };

	CHECK(str_eq(jwt_mac(STR(SECRET), "form", STR("x"), &a), jwt_mac(STR(SECRET), "form", STR("x"), &a)));
	CHECK(!str_eq(jwt_mac(STR(SECRET), "form", STR("x"), &a), jwt_mac(STR(SECRET), "trip", STR("x"), &a)));
	CHECK(!str_eq(jwt_mac(STR(SECRET), "form", STR("x"), &a), jwt_mac(STR(OTHER), "form", STR("x"), &a)));
	arena_fini(&a);
}

/* --- keys of others --- */

static enum rc verify(const char *keys, struct str token, struct str *ret, struct arena *a)
{
	struct jwks *set = NULL;
	struct err   e = { 0 };
	enum rc      rc = jwks_open(str_from(keys), &set, &e);

	CHECK(rc == RC_OK);
	rc = jwks_verify(set, token, a, ret, &e);
	CHECK(!rc || e.msg[0]);
	jwks_close(set);
	return rc;
}

TEST(signatures_with_public_keys_are_checked)
{
	struct arena a = { 0 };
	struct str   payload;

	CHECK(verify(ec_keys, STR(ec_token), &payload, &a) == RC_OK);
	CHECK(str_starts_with(payload, STR("{\"iss\":\"joe\"")));
	CHECK(verify(rsa_keys, STR(rsa_token), &payload, &a) == RC_OK);
	CHECK(str_eq(payload, STR("{\"iss\":\"https://idp.example\"}")));
	arena_fini(&a);
}

TEST(a_key_checks_only_tokens_of_its_own_kind_and_name)
{
	struct arena a = { 0 };
	struct str   payload;

	CHECK(verify(rsa_keys, STR(ec_token), &payload, &a) == RC_NOT_FOUND);
	CHECK(verify(ec_keys, STR(rsa_token), &payload, &a) == RC_NOT_FOUND);
	arena_fini(&a);
}

TEST(a_public_key_is_not_the_secret_of_an_hmac)
{
	struct arena a = { 0 };
	struct str   payload;

	CHECK(verify(rsa_keys, forge(&a, "{\"alg\":\"HS256\",\"kid\":\"one\"}", "{\"iss\":\"x\"}", STR(rsa_keys)),
	             &payload, &a) == RC_UNKNOWN);
	CHECK(verify(rsa_keys, forge(&a, "{\"alg\":\"none\",\"kid\":\"one\"}", "{\"iss\":\"x\"}", STR(rsa_keys)),
	             &payload, &a) == RC_UNKNOWN);
	arena_fini(&a);
}

TEST(a_changed_token_of_others_is_refused)
{
	static const char *const tokens[] = { rsa_token, ec_token }, *const keys[] = { rsa_keys, ec_keys };
	struct arena a = { 0 };

	for (size_t which = 0; which < ARRAY_LEN(tokens); which++)
		for (size_t i = 0; i < strlen(tokens[which]); i += 7) {
			char      *changed = arena_copy(&a, tokens[which], strlen(tokens[which]));
			struct str payload;

			changed[i] = changed[i] == 'A' ? 'B' : 'A';
			CHECK(verify(keys[which], str_from(changed), &payload, &a) != RC_OK);
		}
	arena_fini(&a);
}

TEST(key_sets_that_are_no_good_are_refused)
{
	static const char *const sets[] = {
		"",
		"[]",
		"{}",
		"{\"keys\":[]}",
		"{\"keys\":{}}",
		short_keys,
		"{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2VjcmV0\"}]}",
		"{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}]}",
		/* not on the curve */
		"{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
		"\"y\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\"}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		struct jwks *set = NULL;
		struct err   e = { 0 };

		CASE(sets[i]);
		CHECK(jwks_open(str_from(sets[i]), &set, &e) == RC_INVALID);
		CHECK(e.msg[0]);
	}
}
