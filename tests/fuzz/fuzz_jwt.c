/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_jwt.c - whatever a token or a key set has in it, nothing is read beyond its bytes, and nobody gets in without
 * the secret.
 *
 * The input is cut at each 0xff: a token, a payload that is signed properly, a header that is, a key set, a token for
 * that.
 */
#include "fuzz.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/arena.h"
#include "base/base64.h"
#include "net/jwks.h"
#include "net/jwt.h"

enum { NOW = 1000000 };

static const struct jwt_secrets secrets = { .current = STR_INIT("0123456789abcdef0123456789abcdef") };

static void check_session(const struct jwt_session *s)
{
	must(jwt_is_email(s->email) && s->expires_at > NOW && s->issued_at <= NOW + JWT_SKEW_SEC);
	must(!(s->roles & ~(unsigned)(JWT_USER | JWT_MANAGER | JWT_ADMIN)));
	must(s->display_name.n <= JWT_NAME_MAX && s->user_name.n <= JWT_NAME_MAX);
}

/* What was read can be issued, and read again. */
static void check_again(const struct jwt_session *s, struct arena *a)
{
	struct jwt_session again;
	struct str         token = jwt_issue(s, secrets.current, a);

	must(jwt_read(token, &secrets, NOW, a, &again, NULL) == RC_OK);
	must(str_eq(again.email, s->email) && str_eq(again.display_name, s->display_name) && again.roles == s->roles);
}

static void read_signed(struct str header, struct str payload, struct arena *a)
{
	struct str         head = base64url_encode(a, header), body = base64url_encode(a, payload), signature;
	struct str         text = str_format(a, "%.*s.%.*s", STR_ARG(head), STR_ARG(body));
	unsigned char      mac[EVP_MAX_MD_SIZE];
	unsigned           size;
	struct jwt_session s;

	must(HMAC(EVP_sha256(), secrets.current.p, (int)secrets.current.n, (const unsigned char *)text.p, text.n, mac,
	          &size) != NULL);
	signature = base64url_encode(a, str_of((const char *)mac, size));
	if (jwt_read(str_format(a, "%.*s.%.*s", STR_ARG(text), STR_ARG(signature)), &secrets, NOW, a, &s, NULL))
		return;
	check_session(&s);
	check_again(&s, a);
}

static void read_keys(struct str keys, struct str token, struct arena *a)
{
	struct jwks *set = NULL;
	struct str   payload;

	if (jwks_open(keys, &set, NULL))
		return;
	if (jwks_verify(set, token, a, &payload, NULL) == RC_OK)
		must(payload.n < token.n);
	jwks_close(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str   rest = str_of((const char *)data, size);
	struct str   token = str_cut(&rest, '\xff'), payload = str_cut(&rest, '\xff'), header = str_cut(&rest, '\xff');
	struct str   keys = str_cut(&rest, '\xff');
	struct jwt_session s;

	must(jwt_read(token, &secrets, NOW, &a, &s, NULL) != RC_OK);
	read_signed(header.n ? header : STR("{\"alg\":\"HS256\"}"), payload, &a);
	read_keys(keys, rest, &a);
	arena_fini(&a);
	return 0;
}
