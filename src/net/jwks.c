/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jwks.c - from a JSON Web Key Set to OpenSSL's keys, and signatures checked with them.
 *
 * Always true:
 *   1. A key decides the algorithm: an RSA key checks RS256, a P-256 key ES256. A token whose header says otherwise is
 *      refused, so a public key is never taken for the secret of an HMAC. [find_key()]
 *   2. RSA keys have 2048 bits or more. [read_rsa()]
 *   3. A token that names no key is good only when there is exactly one it can mean. [find_key()]
 */
#include "net/jwks.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/mem.h"
#include "net/jwt.h"

enum { KID_MAX = 512, RSA_BITS_MIN = 2048, RSA_BYTES_MAX = 1024, EC_SIZE = 32, DER_MAX = 80 };

enum key_kind { KEY_RSA, KEY_EC };

struct key {
	enum key_kind kind;
	struct str    kid; /* may be empty */
	EVP_PKEY *public;
};

struct jwks {
	struct arena arena;
	struct key   keys[JWKS_KEYS_MAX];
	size_t       count;
};

/* --- reading keys --- */

static EVP_PKEY *make_key(const char *type, OSSL_PARAM_BLD *parts)
{
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	OSSL_PARAM   *params = OSSL_PARAM_BLD_to_param(parts);
	EVP_PKEY     *key = NULL;

	mem_must(c && params, "OpenSSL");
	if (EVP_PKEY_fromdata_init(c) != 1 || EVP_PKEY_fromdata(c, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	OSSL_PARAM_free(params);
	EVP_PKEY_CTX_free(c);
	return key;
}

/* A member in base64url, decoded: at most max bytes. */
static bool read_bytes(const json_t *object, const char *name, size_t max, struct arena *a, struct str *ret)
{
	struct str text;

	return json_get_text(object, name, &text) && text.n && text.n <= max * 2 && base64url_decode(a, text, ret) &&
	       ret->n && ret->n <= max;
}

static BIGNUM *to_number(struct str bytes)
{
	BIGNUM *n = BN_bin2bn((const unsigned char *)bytes.p, (int)bytes.n, NULL);

	mem_must(n, "OpenSSL");
	return n;
}

static EVP_PKEY *read_rsa(const json_t *object, struct arena *a)
{
	OSSL_PARAM_BLD *parts;
	struct str      modulus, exponent;
	BIGNUM         *n, *e;
	EVP_PKEY       *key;

	if (!read_bytes(object, "n", RSA_BYTES_MAX, a, &modulus) ||
	    !read_bytes(object, "e", sizeof(uint32_t), a, &exponent))
		return NULL;
	n = to_number(modulus);
	e = to_number(exponent);
	parts = OSSL_PARAM_BLD_new();
	mem_must(parts && OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_RSA_N, n) &&
	                 OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_RSA_E, e),
	         "OpenSSL");
	key = BN_num_bits(n) >= RSA_BITS_MIN && BN_is_odd(e) && !BN_is_one(e) ? make_key("RSA", parts) : NULL;
	OSSL_PARAM_BLD_free(parts);
	BN_free(n);
	BN_free(e);
	return key;
}

static EVP_PKEY *read_ec(const json_t *object, struct arena *a)
{
	unsigned char   point[1 + 2 * EC_SIZE] = { 4 }; /* not compressed */
	OSSL_PARAM_BLD *parts;
	struct str      curve, x, y;
	EVP_PKEY       *key;

	if (!json_get_text(object, "crv", &curve) || !str_eq(curve, STR("P-256")) ||
	    !read_bytes(object, "x", EC_SIZE, a, &x) || !read_bytes(object, "y", EC_SIZE, a, &y) || x.n != EC_SIZE ||
	    y.n != EC_SIZE)
		return NULL;
	memcpy(point + 1, x.p, EC_SIZE);
	memcpy(point + 1 + EC_SIZE, y.p, EC_SIZE);
	parts = OSSL_PARAM_BLD_new();
	mem_must(parts && OSSL_PARAM_BLD_push_utf8_string(parts, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) &&
	                 OSSL_PARAM_BLD_push_octet_string(parts, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)),
	         "OpenSSL");
	key = make_key("EC", parts); /* refuses a point that is not on the curve */
	OSSL_PARAM_BLD_free(parts);
	return key;
}

/* False: a key that is skipped. */
static bool read_key(const json_t *object, struct arena *a, struct key *ret)
{
	struct str type, use, kid;

	if (!json_is_object(object) || !json_get_text(object, "kty", &type) || !json_get_text(object, "use", &use) ||
	    !json_get_text(object, "kid", &kid) || kid.n > KID_MAX || (use.n && !str_eq(use, STR("sig"))))
		return false;
	ret->kid = str_dup(a, kid);
	ret->kind = str_eq(type, STR("RSA")) ? KEY_RSA : KEY_EC;
	if (str_eq(type, STR("RSA")))
		ret->public = read_rsa(object, a);
	else
		ret->public = str_eq(type, STR("EC")) ? read_ec(object, a) : NULL;
	return ret->public != NULL;
}

enum rc jwks_open(struct str json, struct jwks **ret, struct err *e)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct jwks                *set;
	const json_t               *list;
	enum rc                     rc;

	if (json.n > JWKS_TEXT_MAX)
		return err_set(e, RC_INVALID, "a key set must have at most %d bytes", JWKS_TEXT_MAX);
	if ((rc = json_parse(json, &document, e)))
		return err_wrap(e, rc, "key set");
	list = json_object_get(document, "keys");
	if (!json_is_array(list))
		return err_set(e, RC_INVALID, "a key set must be {\"keys\": [...]}");
	set = mem_new(struct jwks);
	for (size_t i = 0; i < json_array_size(list) && set->count < JWKS_KEYS_MAX; i++)
		set->count += read_key(json_array_get(list, i), &set->arena, &set->keys[set->count]);
	if (set->count == 0) {
		jwks_close(set);
		return err_set(e, RC_INVALID,
		               "the key set has no key for signatures that we accept (RSA from 2048 bits, P-256)");
	}
	*ret = set;
	return RC_OK;
}

void jwks_close(struct jwks *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->count; i++)
		EVP_PKEY_free(set->keys[i].public);
	arena_fini(&set->arena);
	free(set);
}

/* --- checking --- */

static const struct key *find_key(const struct jwks *set, struct str alg, struct str kid)
{
	const struct key *found = NULL;

	for (size_t i = 0; i < set->count; i++) {
		if (!str_eq(alg, set->keys[i].kind == KEY_RSA ? STR("RS256") : STR("ES256")) ||
		    (kid.n && !str_eq(set->keys[i].kid, kid)))
			continue;
		if (found && !kid.n)
			return NULL;
		found = found ? found : &set->keys[i];
	}
	return found;
}

/* r and s, 32 bytes each, as OpenSSL wants them. 0: that is not a signature. */
static int to_der(struct str raw, unsigned char ret[DER_MAX])
{
	ECDSA_SIG     *sig;
	unsigned char *at = ret;
	int            size;

	if (raw.n != 2 * EC_SIZE)
		return 0;
	sig = ECDSA_SIG_new();
	mem_must(sig && ECDSA_SIG_set0(sig, to_number(str_of(raw.p, EC_SIZE)),
	                               to_number(str_of(raw.p + EC_SIZE, EC_SIZE))),
	         "OpenSSL");
	size = i2d_ECDSA_SIG(sig, NULL);
	size = size > 0 && size <= DER_MAX ? i2d_ECDSA_SIG(sig, &at) : 0;
	ECDSA_SIG_free(sig);
	return size > 0 ? size : 0;
}

static bool is_signed_by(const struct key *key, const struct jwt_parts *parts)
{
	const unsigned char *signature = (const unsigned char *)parts->signature.p;
	size_t               size = parts->signature.n;
	unsigned char        der[DER_MAX];
	EVP_MD_CTX          *c;
	bool                 is_good;

	if (key->kind == KEY_EC) {
		size = (size_t)to_der(parts->signature, der);
		signature = der;
	}
	if (size == 0)
		return false;
	c = EVP_MD_CTX_new();
	mem_must(c, "OpenSSL");
	is_good = EVP_DigestVerifyInit(c, NULL, EVP_sha256(), NULL, key->public) == 1 &&
	          EVP_DigestVerify(c, signature, size, (const unsigned char *)parts->signed_text.p,
	                           parts->signed_text.n) == 1;
	EVP_MD_CTX_free(c);
	return is_good;
}

enum rc jwks_verify(const struct jwks *set, struct str token, struct arena *a, struct str *ret_payload, struct err *e)
{
	CLEANUP(json_freep) json_t *header = NULL;
	struct str                  alg, kid;
	struct jwt_parts            parts;
	const struct key           *key;
	enum rc                     rc = jwt_split(token, a, &parts, e);

	if (rc)
		return rc;
	if (json_parse(parts.header, &header, NULL) || !json_is_object(header) || !json_get_text(header, "alg", &alg) ||
	    !json_get_text(header, "kid", &kid) || json_object_get(header, "crit"))
		return err_set(e, RC_UNKNOWN, "the token's header makes no sense");
	if (!str_eq(alg, STR("RS256")) && !str_eq(alg, STR("ES256")))
		return err_set(e, RC_UNKNOWN, "the token must be signed with RS256 or ES256");
	key = find_key(set, alg, kid);
	if (!key)
		return err_set(e, RC_NOT_FOUND, "the key set has no key for this token");
	if (!is_signed_by(key, &parts))
		return err_set(e, RC_UNKNOWN, "the token's signature is not good");
	*ret_payload = parts.payload;
	return RC_OK;
}
