/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigv4.c - AWS Signature Version 4.
 *
 * The service builds a "canonical" text of the request it got and signs it with a key derived from the secret; we do
 * the same with the request we are about to send.
 *
 * Canonical means:
 *   path     without "." and ".." and empty segments, then escaped once more than it is sent
 *   query    each name and value unescaped and escaped again, sorted by name, then by value; "name" is "name="
 *   headers  names in lower case and sorted, values without blanks at the ends, inner blanks as one; the values of a
 *            name that comes twice are joined by commas in the order they are sent
 *   body     its SHA-256
 *
 * Always true:
 *   1. Time, region and secret come from the caller; the same input gives the same signature.
 *   2. Derived keys are gone from memory when sigv4_sign() returns.                               [sign_text()]
 *
 * The derived key is not kept for the next request: that would save two of seven microseconds and need a lock.
 *
 * Not here: S3, which has rules of its own; signatures in the query (presigned URLs).
 */
#include "net/sigv4.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"

#define UNRESERVED "a-zA-Z0-9.~_-"

/* A name and its value: a header or a part of the query. */
struct pair {
	struct str name, value;
	size_t     order; /* as given: a sort must not change the order of equal names */
};

struct pairs {
	struct pair *p;
	size_t       n;
};

/* --- text ------------------------------------------------------------------------------------------------------- */

static struct str escape(struct arena *a, struct str text, const char *kept)
{
	char  *out = arena_alloc(a, 3 * text.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++)
		if (char_is_of(text.p[i], kept))
			out[n++] = text.p[i];
		else
			n += (size_t)snprintf(out + n, 4, "%%%02X", (unsigned char)text.p[i]);
	return str_of(out, n);
}

/* A part of a query as the service reads it: %XX is a byte and + a blank. A % that begins no escape stays. */
static struct str unescape(struct arena *a, struct str text)
{
	char  *out = arena_alloc(a, text.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		bool is_escape = text.p[i] == '%' && text.n - i > 2 && char_hex(text.p[i + 1]) >= 0 &&
		                 char_hex(text.p[i + 2]) >= 0;

		if (is_escape) {
			out[n++] = (char)(char_hex(text.p[i + 1]) << 4 | char_hex(text.p[i + 2]));
			i += 2;
		} else {
			out[n++] = text.p[i] == '+' ? ' ' : text.p[i];
		}
	}
	return str_of(out, n);
}

static struct str fold_blanks(struct arena *a, struct str text)
{
	char  *out = arena_alloc(a, text.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (!char_is_of(text.p[i], " \t-\r"))
			out[n++] = text.p[i];
		else if (n && out[n - 1] != ' ')
			out[n++] = ' ';
	}
	if (n && out[n - 1] == ' ')
		n--;
	return str_of(out, n);
}

/* --- the parts of the canonical request ------------------------------------------------------------------------- */

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
		if (str_eq(segment, STR(".."))) { /* back to before the last one that was written */
			while (n && out[--n] != '/')
				;
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

/* Headers of one name stay in their order; parameters, which all have the order 0, are sorted by value. */
static int compare(const void *left, const void *right)
{
	const struct pair *l = left, *r = right;
	int                by_name = str_cmp(l->name, r->name);

	if (by_name)
		return by_name;
	return l->order != r->order ? (l->order > r->order) - (l->order < r->order) : str_cmp(l->value, r->value);
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
		ret.p[ret.n++] = (struct pair){ .name = escape(a, unescape(a, name), UNRESERVED),
			                        .value = escape(a, unescape(a, value), UNRESERVED) };
	}
	qsort(ret.p, ret.n, sizeof(*ret.p), compare);
	return ret;
}

static struct pairs canonical_headers(const struct sigv4_request *req, struct str amz_date, struct str token,
                                      struct arena *a)
{
	struct pairs ret = { arena_alloc(a, (req->header_count + 2) * sizeof(*ret.p)), 0 };

	for (; ret.n < req->header_count; ret.n++)
		ret.p[ret.n] = (struct pair){ .name = str_lower(a, str_trim(req->headers[ret.n].name)),
			                      .value = fold_blanks(a, req->headers[ret.n].value),
			                      .order = ret.n };
	ret.p[ret.n] = (struct pair){ STR("x-amz-date"), amz_date, ret.n };
	ret.n++;
	if (token.n) {
		ret.p[ret.n] = (struct pair){ STR("x-amz-security-token"), fold_blanks(a, token), ret.n };
		ret.n++;
	}
	qsort(ret.p, ret.n, sizeof(*ret.p), compare);
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

static void add_headers(struct buf *b, const struct pairs *headers)
{
	for (size_t i = 0; i < headers->n; i++) {
		if (repeats_name(headers, i))
			buf_add_char(b, ',');
		else
			buf_addf(b, "%s%.*s:", i ? "\n" : "", STR_ARG(headers->p[i].name));
		buf_add_str(b, headers->p[i].value);
	}
	buf_add_text(b, "\n\n");
}

static struct str hash_request(const struct sigv4_request *req, const struct pairs *headers, struct str names,
                               struct arena *a)
{
	CLEANUP(buf_fini) struct buf b = BUF(SIZE_MAX);
	struct pairs                 query = canonical_query(req, a);
	struct str path = escape(a, normalize_path(a, req->path), "/" UNRESERVED), body = hash_sha256_hex(a, req->body);

	buf_addf(&b, "%.*s\n%.*s\n", STR_ARG(req->method), STR_ARG(path));
	for (size_t i = 0; i < query.n; i++)
		buf_addf(&b, "%s%.*s=%.*s", i ? "&" : "", STR_ARG(query.p[i].name), STR_ARG(query.p[i].value));
	buf_add_char(&b, '\n');
	add_headers(&b, headers);
	buf_addf(&b, "%.*s\n%.*s", STR_ARG(names), STR_ARG(body));
	return hash_sha256_hex(a, buf_str(&b));
}

/* The text under the key of this day, region and service. */
static struct str sign_text(struct str text, const struct sigv4_request *req, struct str secret, struct str day,
                            struct arena *a)
{
	struct str  parts[] = { day, req->region, req->service, STR("aws4_request"), text };
	char       *first = arena_alloc(a, secret.n + 4);
	struct str  key = str_of(first, secret.n + 4), ret;
	struct hash keys[2];

	memcpy(first, "AWS4", 4);
	if (secret.n)
		memcpy(first + 4, secret.p, secret.n);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		hash_hmac(key, parts[i], &keys[i % 2]);
		key = hash_str(&keys[i % 2]);
	}
	ret = hash_hex(a, &keys[(ARRAY_LEN(parts) - 1) % 2]);
	OPENSSL_cleanse(first, secret.n + 4);
	OPENSSL_cleanse(keys, sizeof(keys));
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

	ret->amz_date = amz_date;
	ret->authorization = str_format(a, "AWS4-HMAC-SHA256 Credential=%.*s/%.*s, SignedHeaders=%.*s, Signature=%.*s",
	                                STR_ARG(credentials->access_key), STR_ARG(scope), STR_ARG(names),
	                                STR_ARG(signature));
}
