/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigv4.c - AWS Signature Version 4 on OpenSSL's SHA-256 and HMAC.
 *
 * The service builds a "canonical" text of the request it got and signs it with a key derived from the secret; we do
 * the same with the request we are about to send. The text is not kept: its pieces go straight into the digest.
 *
 * Canonical means:
 *   path     without "." and ".." and empty segments, then escaped once more than it is sent; for S3 as it is sent
 *   query    each name and value unescaped and escaped again, sorted by name, then by value; "name" is "name="
 *   headers  names in lower case and sorted, values without blanks at the ends, inner blanks as one; the values of a
 *            name that comes twice are joined by commas in the order they are sent
 *   body     its SHA-256, or what x-amz-content-sha256 says when that is among the headers
 *
 * Always true:
 *   1. Time, region and secret come from the caller; the same input gives the same signature.
 *   2. Derived keys are gone from memory when sigv4_sign() returns.                               [sign_text()]
 *
 * The derived key is not kept for the next request: that would save two of seven microseconds and need a lock.
 *
 * Not here: signatures in the query (presigned URLs), signed chunks.
 */
#include "net/sigv4.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

enum { HASH_SIZE = 32, HEX_SIZE = 2 * HASH_SIZE };

/* A name and its value: a header or a part of the query. */
struct pair {
	struct str name;
	struct str value;
	size_t     order; /* as given: a sort must not change the order of equal names */
};

struct pairs {
	struct pair *p;
	size_t       n;
};

static void must(bool is_true)
{
	if (is_true)
		return;
	fprintf(stderr, "leasehold: OpenSSL has no memory or no SHA-256\n");
	abort();
}

/* --- text ------------------------------------------------------------------------------------------------------- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static struct str to_hex(struct arena *a, const unsigned char *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char             *hex = arena_alloc(a, 2 * n + 1);

	for (size_t i = 0; i < n; i++) {
		hex[2 * i] = digits[bytes[i] >> 4];
		hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	return str_of(hex, 2 * n);
}

static bool is_unreserved(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' ||
	       c == '_' || c == '~';
}

static struct str escape(struct arena *a, struct str text, bool keeps_slash)
{
	static const char digits[] = "0123456789ABCDEF";
	char             *out = arena_alloc(a, 3 * text.n + 1);
	size_t            n = 0;

	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (is_unreserved(c) || (keeps_slash && c == '/')) {
			out[n++] = (char)c;
			continue;
		}
		out[n++] = '%';
		out[n++] = digits[c >> 4];
		out[n++] = digits[c & 15];
	}
	return str_of(out, n);
}

/* A part of a query as the service reads it: %XX is a byte and + a blank. A % that begins no escape stays. */
static struct str unescape(struct arena *a, struct str text)
{
	char  *out = arena_alloc(a, text.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		bool is_escape = text.p[i] == '%' && text.n - i > 2 && hex_value(text.p[i + 1]) >= 0 &&
		                 hex_value(text.p[i + 2]) >= 0;

		if (is_escape) {
			out[n++] = (char)(hex_value(text.p[i + 1]) << 4 | hex_value(text.p[i + 2]));
			i += 2;
		} else {
			out[n++] = text.p[i] == '+' ? ' ' : text.p[i];
		}
	}
	return str_of(out, n);
}

static struct str lower(struct arena *a, struct str text)
{
	char *out = arena_copy(a, text.p, text.n);

	for (size_t i = 0; i < text.n; i++)
		if (out[i] >= 'A' && out[i] <= 'Z')
			out[i] = (char)(out[i] - 'A' + 'a');
	return str_of(out, text.n);
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct str fold_blanks(struct arena *a, struct str text)
{
	char  *out = arena_alloc(a, text.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (!is_blank(text.p[i]))
			out[n++] = text.p[i];
		else if (n && out[n - 1] != ' ')
			out[n++] = ' ';
	}
	if (n && out[n - 1] == ' ')
		n--;
	return str_of(out, n);
}

/* --- the parts of the canonical request ------------------------------------------------------------------------- */

/* Back to before the last segment of the path that was written. */
static size_t drop_segment(const char *path, size_t n)
{
	while (n && path[n - 1] != '/')
		n--;
	return n ? n - 1 : 0;
}

/* Without empty, "." and ".." segments. A slash at the end stays. */
static struct str normalize_path(struct arena *a, struct str path)
{
	bool       ends_in_slash = path.n && path.p[path.n - 1] == '/';
	char      *out = arena_alloc(a, path.n + 2);
	size_t     n = 0;
	struct str rest = path;

	while (rest.n) {
		struct str segment = str_cut(&rest, '/');

		if (segment.n == 0 || str_eq(segment, STR(".")))
			continue;
		if (str_eq(segment, STR(".."))) {
			n = drop_segment(out, n);
			continue;
		}
		out[n++] = '/';
		memcpy(out + n, segment.p, segment.n);
		n += segment.n;
	}
	if (n == 0 || ends_in_slash)
		out[n++] = '/';
	return str_of(out, n);
}

static struct str canonical_path(const struct sigv4_request *req, struct arena *a)
{
	if (req->path.n == 0)
		return STR("/");
	if (req->is_s3)
		return req->path;
	return escape(a, normalize_path(a, req->path), true);
}

static int compare_parameters(const void *left, const void *right)
{
	const struct pair *l = left, *r = right;
	int                by_name = str_cmp(l->name, r->name);

	return by_name ? by_name : str_cmp(l->value, r->value);
}

static struct pairs canonical_query(const struct sigv4_request *req, struct arena *a)
{
	struct str   rest = req->query;
	struct pairs ret = { NULL, 0 };
	size_t       max = 1;

	for (size_t i = 0; i < rest.n; i++)
		max += rest.p[i] == '&';
	ret.p = arena_alloc(a, max * sizeof(*ret.p));
	while (rest.n) {
		struct str value = str_cut(&rest, '&');
		struct str name;

		if (value.n == 0)
			continue;
		name = str_cut(&value, '=');
		ret.p[ret.n++] = (struct pair){ .name = escape(a, unescape(a, name), false),
			                        .value = escape(a, unescape(a, value), false) };
	}
	qsort(ret.p, ret.n, sizeof(*ret.p), compare_parameters);
	return ret;
}

static int compare_headers(const void *left, const void *right)
{
	const struct pair *l = left, *r = right;
	int                by_name = str_cmp(l->name, r->name);

	return by_name ? by_name : (l->order > r->order) - (l->order < r->order);
}

static struct pairs canonical_headers(const struct sigv4_request *req, struct str amz_date, struct str token,
                                      struct arena *a)
{
	struct pairs ret = { arena_alloc(a, (req->header_count + 2) * sizeof(*ret.p)), 0 };

	for (; ret.n < req->header_count; ret.n++)
		ret.p[ret.n] = (struct pair){ .name = lower(a, str_trim(req->headers[ret.n].name)),
			                      .value = fold_blanks(a, req->headers[ret.n].value),
			                      .order = ret.n };
	ret.p[ret.n] = (struct pair){ STR("x-amz-date"), amz_date, ret.n };
	ret.n++;
	if (token.n) {
		ret.p[ret.n] = (struct pair){ STR("x-amz-security-token"), fold_blanks(a, token), ret.n };
		ret.n++;
	}
	qsort(ret.p, ret.n, sizeof(*ret.p), compare_headers);
	return ret;
}

static bool repeats_name(const struct pairs *headers, size_t i)
{
	return i > 0 && str_eq(headers->p[i].name, headers->p[i - 1].name);
}

static struct str signed_names(const struct pairs *headers, struct arena *a)
{
	size_t size = 0, n = 0;
	char  *out;

	for (size_t i = 0; i < headers->n; i++)
		size += headers->p[i].name.n + 1;
	out = arena_alloc(a, size + 1);
	for (size_t i = 0; i < headers->n; i++) {
		struct str name = headers->p[i].name;

		if (repeats_name(headers, i))
			continue;
		if (n)
			out[n++] = ';';
		memcpy(out + n, name.p, name.n);
		n += name.n;
	}
	return str_of(out, n);
}

/* --- digests ---------------------------------------------------------------------------------------------------- */

static void add(EVP_MD_CTX *digest, struct str text)
{
	must(EVP_DigestUpdate(digest, text.p, text.n) == 1);
}

static struct str finish(EVP_MD_CTX *digest, struct arena *a)
{
	unsigned char hash[HASH_SIZE];

	must(EVP_DigestFinal_ex(digest, hash, NULL) == 1);
	return to_hex(a, hash, sizeof(hash));
}

static struct str hash_body(EVP_MD_CTX *digest, const struct sigv4_request *req, const struct pairs *headers,
                            struct arena *a)
{
	for (size_t i = 0; i < headers->n; i++)
		if (str_eq(headers->p[i].name, STR("x-amz-content-sha256")))
			return headers->p[i].value;
	must(EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1);
	add(digest, req->body);
	return finish(digest, a);
}

static void add_query(EVP_MD_CTX *digest, const struct pairs *query)
{
	for (size_t i = 0; i < query->n; i++) {
		if (i)
			add(digest, STR("&"));
		add(digest, query->p[i].name);
		add(digest, STR("="));
		add(digest, query->p[i].value);
	}
	add(digest, STR("\n"));
}

static void add_headers(EVP_MD_CTX *digest, const struct pairs *headers)
{
	for (size_t i = 0; i < headers->n; i++) {
		if (repeats_name(headers, i)) {
			add(digest, STR(","));
		} else {
			add(digest, i ? STR("\n") : STR(""));
			add(digest, headers->p[i].name);
			add(digest, STR(":"));
		}
		add(digest, headers->p[i].value);
	}
	add(digest, STR("\n\n"));
}

static struct str hash_request(const struct sigv4_request *req, const struct pairs *headers, struct str names,
                               struct arena *a)
{
	EVP_MD_CTX  *digest = EVP_MD_CTX_new();
	struct pairs query = canonical_query(req, a);
	struct str   body, ret;

	must(digest != NULL);
	body = hash_body(digest, req, headers, a);
	must(EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1);
	add(digest, req->method);
	add(digest, STR("\n"));
	add(digest, canonical_path(req, a));
	add(digest, STR("\n"));
	add_query(digest, &query);
	add_headers(digest, headers);
	add(digest, names);
	add(digest, STR("\n"));
	add(digest, body);
	ret = finish(digest, a);
	EVP_MD_CTX_free(digest);
	return ret;
}

static void hmac(EVP_MAC_CTX *mac, const void *key, size_t key_size, struct str text, unsigned char ret[HASH_SIZE])
{
	size_t n;

	must(EVP_MAC_init(mac, key, key_size, NULL) == 1);
	must(EVP_MAC_update(mac, (const unsigned char *)text.p, text.n) == 1);
	must(EVP_MAC_final(mac, ret, &n, HASH_SIZE) == 1 && n == HASH_SIZE);
}

static EVP_MAC_CTX *new_hmac(void)
{
	char         digest[] = "SHA256";
	OSSL_PARAM   params[] = { OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_END };
	EVP_MAC     *kind = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *mac = EVP_MAC_CTX_new(kind);

	must(mac && EVP_MAC_CTX_set_params(mac, params) == 1);
	EVP_MAC_free(kind); /* the context holds on to it */
	return mac;
}

/* The text under the key of this day, region and service. */
static struct str sign_text(struct str text, const struct sigv4_request *req, struct str secret, struct str day,
                            struct arena *a)
{
	size_t        first_size = secret.n + 4;
	char         *first = arena_alloc(a, first_size);
	EVP_MAC_CTX  *mac = new_hmac();
	unsigned char key[HASH_SIZE], next[HASH_SIZE];
	struct str    ret;

	memcpy(first, "AWS4", 4);
	if (secret.n)
		memcpy(first + 4, secret.p, secret.n);
	hmac(mac, first, first_size, day, key);
	hmac(mac, key, sizeof(key), req->region, next);
	hmac(mac, next, sizeof(next), req->service, key);
	hmac(mac, key, sizeof(key), STR("aws4_request"), next);
	hmac(mac, next, sizeof(next), text, key);
	ret = to_hex(a, key, sizeof(key));
	EVP_MAC_CTX_free(mac);
	OPENSSL_cleanse(first, first_size);
	OPENSSL_cleanse(key, sizeof(key));
	OPENSSL_cleanse(next, sizeof(next));
	return ret;
}

/* "20261115T180343Z" */
static struct str show_time(struct wall now, struct arena *a)
{
	char       iso[ISO_TIME_SIZE];
	struct str text = iso_time(wall_sec(now), iso);
	char      *out = arena_alloc(a, text.n + 1);
	size_t     n = 0;

	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] != '-' && text.p[i] != ':')
			out[n++] = text.p[i];
	return str_of(out, n);
}

void sigv4_sign(const struct sigv4_request *req, const struct aws_credentials *credentials, struct wall now,
                struct arena *a, struct sigv4_signature *ret)
{
	struct str   amz_date = show_time(now, a), rest = amz_date;
	struct str   day = str_cut(&rest, 'T');
	struct pairs headers = canonical_headers(req, amz_date, credentials->session_token, a);
	struct str   names = signed_names(&headers, a);
	struct str   scope = str_format(a, "%.*s/%.*s/%.*s/aws4_request", STR_ARG(day), STR_ARG(req->region),
	                                STR_ARG(req->service));
	struct str   hash = hash_request(req, &headers, names, a);
	struct str   text = str_format(a, "AWS4-HMAC-SHA256\n%.*s\n%.*s\n%.*s", STR_ARG(amz_date), STR_ARG(scope),
	                               STR_ARG(hash));
	struct str   signature = sign_text(text, req, credentials->secret_key, day, a);

	assert(signature.n == HEX_SIZE);
	ret->amz_date = amz_date;
	ret->authorization = str_format(a, "AWS4-HMAC-SHA256 Credential=%.*s/%.*s, SignedHeaders=%.*s, Signature=%.*s",
	                                STR_ARG(credentials->access_key), STR_ARG(scope), STR_ARG(names),
	                                STR_ARG(signature));
}
