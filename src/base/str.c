/* SPDX-License-Identifier: Apache-2.0 */
/* str.c - text without surprises: lengths are explicit, comparisons byte by byte, no locale. */
#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/octets.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool str_is_among(struct str s, const struct str *list, size_t count)
{
	while (count--)
		if (str_eq(list[count], s))
			return true;
	return false;
}

bool str_eq_lower(struct str a, struct str b)
{
	for (size_t i = 0; i < a.n; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

bool str_starts_with(struct str s, struct str prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool str_ends_with(struct str s, struct str end)
{
	return s.n >= end.n && (end.n == 0 || memcmp(s.p + s.n - end.n, end.p, end.n) == 0);
}

bool str_has(struct str s, struct str part)
{
	return s.n && memmem(s.p, s.n, part.p, part.n);
}

bool str_is_digits(struct str s, size_t n)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return s.n == n;
}

bool char_is_of(char c, const char *set)
{
	for (; *set; set++) {
		if (c == *set)
			return true;
		if (set[1] != '-' || !set[2])
			continue;
		if (c >= set[0] && c <= set[2])
			return true;
		set += 2;
	}
	return false;
}

bool str_is_of(struct str s, const char *set)
{
	for (size_t i = 0; i < s.n; i++)
		if (!char_is_of(s.p[i], set))
			return false;
	return true;
}

int char_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool str_has_control(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return true;
	return false;
}

bool str_is_visible(struct str s)
{
	uint64_t hidden = 0;
	size_t   i = 0;

	for (; i + sizeof(uint64_t) <= s.n; i += sizeof(uint64_t))
		hidden |= octets_hidden(octets_at(s.p + i));
	for (; i < s.n; i++)
		hidden |= s.p[i] <= ' ' || s.p[i] > '~';
	return !hidden;
}

bool str_is_word_of(struct str s, const char *words)
{
	struct str rest = str_from(words);

	while (rest.n)
		if (str_eq(str_cut(&rest, ' '), s))
			return true;
	return false;
}

int str_word(struct str s, const char *const *words, int count)
{
	int i = 0;

	while (i < count && !str_eq(s, str_from(words[i])))
		i++;
	return i;
}

int str_cmp(struct str a, struct str b)
{
	size_t shorter = a.n < b.n ? a.n : b.n;
	int    order = shorter ? memcmp(a.p, b.p, shorter) : 0;

	if (order)
		return order;
	return (a.n > b.n) - (a.n < b.n);
}

bool str_eq_secret(struct str a, struct str b)
{
	size_t            longer = a.n > b.n ? a.n : b.n, shorter = a.n ^ b.n ^ longer, i = 0;
	volatile uint64_t difference = a.n ^ b.n;

	for (; i + sizeof(uint64_t) <= shorter; i += sizeof(uint64_t)) {
		uint64_t left, right;

		memcpy(&left, a.p + i, sizeof(left));
		memcpy(&right, b.p + i, sizeof(right));
		difference |= left ^ right;
	}
	for (; i < longer; i++) {
		unsigned char left = i < a.n ? (unsigned char)a.p[i] : 0;
		unsigned char right = i < b.n ? (unsigned char)b.p[i] : 0;

		difference |= (uint64_t)(left ^ right);
	}
	return difference == 0;
}

struct str str_cut(struct str *rest, char separator)
{
	const char *at = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
	struct str  head = *rest;

	if (!at) {
		*rest = (struct str){ 0 };
		return head;
	}
	head.n = (size_t)(at - rest->p);
	rest->p += head.n + 1;
	rest->n -= head.n + 1;
	return head;
}

bool str_cut_prefix(struct str *rest, struct str prefix)
{
	if (!str_starts_with(*rest, prefix))
		return false;
	*rest = str_skip(*rest, prefix.n);
	return true;
}

struct str str_cut_line(struct str *rest)
{
	struct str line = str_cut(rest, '\n');

	line.n -= line.n && line.p[line.n - 1] == '\r';
	return line;
}

struct str str_dup(struct arena *a, struct str s)
{
	return str_of(arena_copy(a, s.p, s.n), s.n);
}

struct str str_lower(struct arena *a, struct str s)
{
	char *copy = arena_copy(a, s.p, s.n);

	for (size_t i = 0; i < s.n; i++)
		copy[i] = lower(copy[i]);
	return str_of(copy, s.n);
}

struct str str_vformat(struct arena *a, const char *fmt, va_list args)
{
	va_list twice;
	int     length;
	char   *text;

	assert(fmt);
	va_copy(twice, args);
	length = vsnprintf(NULL, 0, fmt, twice);
	va_end(twice);
	if (length < 0)
		return STR("");
	text = arena_alloc(a, (size_t)length + 1);
	(void)vsnprintf(text, (size_t)length + 1, fmt, args); /* the first pass gave the length */
	return str_of(text, (size_t)length);
}

struct str str_format(struct arena *a, const char *fmt, ...)
{
	struct str text;
	va_list    args;

	va_start(args, fmt);
	text = str_vformat(a, fmt, args);
	va_end(args);
	return text;
}

bool str_to_int(struct str s, int64_t min, int64_t max, int64_t *ret)
{
	bool     is_negative = s.n && s.p[0] == '-';
	uint64_t limit = is_negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
	uint64_t number = 0;
	size_t   i = is_negative ? 1 : 0;

	if (i == s.n)
		return false;
	for (; i < s.n; i++) {
		unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';

		if (digit > 9 || number > (limit - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	int64_t value = is_negative ? (int64_t)(0 - number) : (int64_t)number;

	if (value < min || value > max)
		return false;
	*ret = value;
	return true;
}

uint64_t str_hash(struct str s, uint64_t seed)
{
	uint64_t hash = seed ^ (s.n * 0x9e3779b97f4a7c15ull);
	size_t   i = 0;

	for (; i + 8 <= s.n; i += 8) {
		uint64_t word;

		memcpy(&word, s.p + i, sizeof(word));
		hash = (hash ^ word) * 0xff51afd7ed558ccdull;
		hash ^= hash >> 32;
	}
	for (; i < s.n; i++)
		hash = (hash ^ (unsigned char)s.p[i]) * 0x100000001b3ull;
	hash ^= hash >> 33;
	hash *= 0xc4ceb9fe1a85ec53ull;
	return hash ^ (hash >> 29);
}

/* Levenshtein: row by row through the table of all beginnings of a against all of b; only the last row is kept. */
size_t str_distance(struct str a, struct str b)
{
	size_t row[STR_DISTANCE_MAX + 1];

	if (a.n > STR_DISTANCE_MAX || b.n > STR_DISTANCE_MAX)
		return STR_DISTANCE_MAX;
	for (size_t k = 0; k <= b.n; k++)
		row[k] = k;
	for (size_t i = 1; i <= a.n; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t k = 1; k <= b.n; k++) {
			size_t change = diagonal + (a.p[i - 1] != b.p[k - 1]);
			size_t shift = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;

			diagonal = row[k];
			row[k] = change < shift ? change : shift;
		}
	}
	return row[b.n];
}
