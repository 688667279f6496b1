/* SPDX-License-Identifier: Apache-2.0 */
/*
 * urlform.c - reads the small languages of a request that are not HTTP itself.
 *
 * Everything here takes bytes that a client chose. What it returns lies in the input or in the arena; what it does not
 * understand it refuses, except in Prefer, where RFC 7240 wants it passed over.
 */
#include "http/api/urlform.h"

#include <string.h>

#include "base/arena.h"
#include "base/base64.h"

enum { PREFER_WAIT_MAX = 1000000, CURSOR_TEXT_MAX = 1024 };

bool url_decode(struct arena *a, struct str text, struct str *ret)
{
	char  *to;
	size_t n = 0;

	if (!text.n || !memchr(text.p, '%', text.n)) {
		*ret = text;
		return true;
	}
	to = arena_alloc(a, text.n + 1);
	for (size_t i = 0; i < text.n; i++) {
		int high, low;

		if (text.p[i] != '%') {
			to[n++] = text.p[i];
			continue;
		}
		if (i + 2 >= text.n || (high = char_hex(text.p[i + 1])) < 0 || (low = char_hex(text.p[i + 2])) < 0 ||
		    high * 16 + low < 0x20)
			return false;
		to[n++] = (char)(high * 16 + low);
		i += 2;
	}
	*ret = str_of(to, n);
	return true;
}

enum rc url_query(struct arena *a, struct str query, const char *name, struct str *ret, struct err *e)
{
	bool is_found = false;

	*ret = STR("");
	while (query.n) {
		struct str pair = str_cut(&query, '&');

		if (!str_eq(str_cut(&pair, '='), str_from(name)))
			continue;
		if (is_found)
			return err_set(e, RC_INVALID, "query parameter %s is given twice", name);
		is_found = true;
		if (!url_decode(a, pair, ret))
			return err_set(e, RC_INVALID, "query parameter %s has a broken %%-escape", name);
		if (ret->n == 0)
			return err_set(e, RC_INVALID, "query parameter %s is empty", name);
	}
	return RC_OK;
}

struct str cursor_wrap(struct arena *a, const char *filter, struct str inner)
{
	struct str bound = str_format(a, "%s %.*s", filter, STR_ARG(inner));

	return base64url_encode(a,
	                        str_format(a, "%016llx %.*s", (unsigned long long)str_hash(bound, 0), STR_ARG(bound)));
}

bool cursor_unwrap(struct arena *a, const char *filter, struct str text, struct str *ret)
{
	struct str rest;

	if (text.n > CURSOR_TEXT_MAX || !base64url_decode(a, text, &rest))
		return false;
	(void)str_cut(&rest, ' '); /* the checksum; wrapping again below compares it */
	(void)str_cut(&rest, ' ');
	if (rest.n == 0 || !str_eq(cursor_wrap(a, filter, rest), text))
		return false;
	*ret = rest;
	return true;
}

void prefer_parse(struct str header, int64_t *ret_wait_sec, bool *ret_is_async)
{
	bool has_wait = false;

	*ret_wait_sec = -1;
	*ret_is_async = false;
	while (header.n) {
		struct str preference = str_cut(&header, ',');
		struct str value = str_cut(&preference, ';'); /* what follows are its parameters */
		struct str name = str_trim(str_cut(&value, '='));

		if (str_eq_nocase(name, STR("respond-async")))
			*ret_is_async = true;
		if (!str_eq_nocase(name, STR("wait")) || has_wait)
			continue; /* of two the first counts */
		has_wait = true;
		if (!str_to_int(str_trim(value), 0, INT64_MAX, ret_wait_sec))
			*ret_wait_sec = -1;
		else if (*ret_wait_sec > PREFER_WAIT_MAX)
			*ret_wait_sec = PREFER_WAIT_MAX; /* as much as anybody may; the caller cuts it further */
	}
}
