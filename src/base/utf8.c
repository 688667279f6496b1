/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.c - which bytes form a character, and text cleaned of those that do not.
 *
 * As strict as RFC 3629: no longer form than needed, no surrogates, nothing above U+10FFFF.
 */
#include "base/utf8.h"

#include "base/arena.h"

static size_t length_by_first_byte(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

size_t utf8_length(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t               length = s.n ? length_by_first_byte(p[0]) : 0;
	uint32_t             code;

	if (length == 0 || length > s.n)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if (length == 3) {
		code = (uint32_t)(p[0] & 15) << 12 | (uint32_t)(p[1] & 63) << 6;
		if (code < 0x800 || (code >= 0xd800 && code < 0xe000))
			return 0;
	}
	if (length == 4) {
		code = (uint32_t)(p[0] & 7) << 18 | (uint32_t)(p[1] & 63) << 12;
		if (code < 0x10000 || code > 0x10ffff)
			return 0;
	}
	return length;
}

struct str utf8_clip(struct str s, size_t max)
{
	if (s.n <= max)
		return s;
	while (max > 0 && ((unsigned char)s.p[max] & 0xC0) == 0x80)
		max--;
	return str_of(s.p, max);
}

/* Also those above ASCII: U+0080 to U+009F, and the separators of lines and paragraphs, U+2028 and U+2029. */
static bool is_control(const unsigned char *p, size_t length)
{
	if (length == 1)
		return p[0] < 0x20 || p[0] == 0x7f;
	if (length == 2)
		return p[0] == 0xc2 && p[1] < 0xa0;
	return length == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9);
}

struct str utf8_line(struct arena *a, struct str s, size_t max)
{
	char  *line = arena_alloc(a, (s.n < max ? s.n : max) + 1);
	size_t n = 0;

	for (size_t at = 0; at < s.n;) {
		size_t length = utf8_length(str_of(s.p + at, s.n - at));
		bool   is_kept = length && !is_control((const unsigned char *)s.p + at, length);
		size_t size = is_kept ? length : 1;

		if (n + size > max)
			break;
		memcpy(line + n, is_kept ? s.p + at : length ? " " : "?", size);
		n += size;
		at += length ? length : 1;
	}
	return str_of(line, n);
}
