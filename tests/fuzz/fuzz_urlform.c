/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_urlform.c - escapes, queries, cursors and Prefer: what is taken means one thing, and stays within bounds. */
#include "fuzz.h"

#include "base/arena.h"
#include "base/base64.h"
#include "http/api/urlform.h"

static void check_base64(struct arena *a, struct str text)
{
	struct str bytes, inner;

	if (base64url_decode(a, text, &bytes))
		must(str_eq(base64url_encode(a, bytes), text));
	must(base64url_decode(a, base64url_encode(a, text), &bytes) && str_eq(bytes, text));
	if (cursor_unwrap(a, "*", text, &inner)) {
		must(inner.n > 0 && str_eq(cursor_wrap(a, "*", inner), text));
		must(!cursor_unwrap(a, "stale", text, &inner));
	}
	/* Text behind a checksum that is right, so that the fuzzer need not guess it. */
	if (text.n && text.n < 500 && !memchr(text.p, '\0', text.n))
		must(cursor_unwrap(a, "*", cursor_wrap(a, "*", text), &inner) && str_eq(inner, text));
}

static void check_escapes(struct arena *a, struct str text)
{
	struct str decoded;

	if (!url_decode(a, text, &decoded))
		return;
	must(decoded.n <= text.n);
	for (size_t i = 0; i < decoded.n; i++)
		must((unsigned char)decoded.p[i] >= 0x20 || memchr(text.p, decoded.p[i], text.n));
}

static void check_query(struct arena *a, struct str text)
{
	struct str value;
	struct err e = { 0 };

	if (url_query(a, text, "x", &value, &e))
		must(e.rc == RC_INVALID && e.msg[0]);
	else
		must(value.n <= text.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str   text = str_of((const char *)data, size);
	struct arena a = { 0 };
	int64_t      wait_sec;
	bool         is_async;

	check_base64(&a, text);
	check_escapes(&a, text);
	check_query(&a, text);
	prefer_parse(text, &wait_sec, &is_async);
	must(wait_sec >= -1 && wait_sec <= 1000000);
	arena_fini(&a);
	return 0;
}
