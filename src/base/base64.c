/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - RFC 4648 section 5, unpadded. Decoding is strict: one text for each sequence of bytes. */
#include "base/base64.h"

#include "base/arena.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

struct str base64url_encode(struct arena *a, struct str bytes)
{
	char    *text = arena_alloc(a, bytes.n / 3 * 4 + 5);
	size_t   n = 0;
	uint32_t bits = 0;
	int      have = 0;

	for (size_t i = 0; i < bytes.n; i++) {
		bits = bits << 8 | (unsigned char)bytes.p[i];
		for (have += 8; have >= 6; have -= 6)
			text[n++] = alphabet[bits >> (have - 6) & 63];
	}
	if (have)
		text[n++] = alphabet[bits << (6 - have) & 63];
	return str_of(text, n);
}

bool base64url_decode(struct arena *a, struct str text, struct str *ret)
{
	char    *bytes = arena_alloc(a, text.n / 4 * 3 + 4);
	size_t   n = 0;
	uint32_t bits = 0;
	int      have = 0;

	if (text.n % 4 == 1)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		const char *at = text.p[i] ? memchr(alphabet, text.p[i], 64) : NULL;

		if (!at)
			return false;
		bits = bits << 6 | (uint32_t)(at - alphabet);
		have += 6;
		if (have >= 8) {
			have -= 8;
			bytes[n++] = (char)(bits >> have & 0xff);
		}
	}
	if (bits & ((1u << have) - 1))
		return false; /* left-over bits must be zero */
	*ret = str_of(bytes, n);
	return true;
}
