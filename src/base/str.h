/* str.h - a view of text: pointer and length, never owned, not necessarily NUL-terminated. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attr.h"

struct arena;

struct str {
	const char *p;
	size_t      n;
};

/* A view of a string literal; also usable as an initialiser of a static. */
/* clang-format off */
#define STR(literal)      ((struct str){ (literal), sizeof(literal) - 1 })
#define STR_INIT(literal) { (literal), sizeof(literal) - 1 }
/* clang-format on */

/* For "%.*s". Evaluates s more than once: give it a variable. */
#define STR_ARG(s) (int)(s).n, (s).p ? (s).p : ""

static inline struct str str_from(const char *text)
{
	return (struct str){ text, text ? strlen(text) : 0 };
}

static inline struct str str_of(const char *p, size_t n)
{
	return (struct str){ p, n };
}

/* Without its first n bytes, which it has. */
static inline struct str str_skip(struct str s, size_t n)
{
	return (struct str){ s.p + n, s.n - n };
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Whatever the case of their letters (ASCII). Inline: mostly they are of different lengths, or written alike. */
bool str_eq_lower(struct str a, struct str b); /* of two that are as long */

static inline bool str_eq_nocase(struct str a, struct str b)
{
	return a.n == b.n && (str_eq(a, b) || str_eq_lower(a, b));
}

bool str_is_among(struct str s, const struct str *list, size_t count);
bool str_starts_with(struct str s, struct str prefix);
bool str_ends_with(struct str s, struct str end);
bool str_has(struct str s, struct str part); /* a part that is not empty */
bool str_is_digits(struct str s, size_t n);  /* exactly n of them */

/* Is it in the set of characters and ranges, such as "a-zA-Z0-9._-" (a literal '-' comes last)? NUL never is. */
bool char_is_of(char c, const char *set);
bool str_is_of(struct str s, const char *set); /* all of them; true for an empty one */

int  char_hex(char c);              /* the value of a hexadecimal digit, of either case; -1: it is none */
bool str_has_control(struct str s); /* ASCII control characters, such as line ends */
bool str_is_visible(struct str s);  /* ASCII without blanks and control characters; true for an empty one */

/* Like memcmp; a shorter string sorts before a longer one it begins. */
int str_cmp(struct str a, struct str b);

/* Is it one of the words, which blanks separate? */
bool str_is_word_of(struct str s, const char *words);

/* Which of these words it is; count: none of them. */
int str_word(struct str s, const char *const *words, int count);

/* Compares without telling by its duration where the first difference is. */
bool str_eq_secret(struct str a, struct str b);

/* Without blanks and tabs at both ends. */
static inline struct str str_trim(struct str s)
{
	for (; s.n && (s.p[0] == ' ' || s.p[0] == '\t'); s.p++)
		s.n--;
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

/* Split at the first separator: returns what is before it and leaves the rest in *rest. Without one, all of it. */
struct str str_cut(struct str *rest, char separator);
struct str str_cut_line(struct str *rest); /* at a line end, of either kind */

/* Leave out the prefix; false when it does not begin so. */
bool str_cut_prefix(struct str *rest, struct str prefix);

/* A NUL-terminated copy in the arena; with small letters (ASCII). */
struct str str_dup(struct arena *a, struct str s);
struct str str_lower(struct arena *a, struct str s);
struct str str_format(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct str str_vformat(struct arena *a, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

/* The whole of s as a decimal number within [min, max]; false when it is anything else. */
MUST_CHECK bool str_to_int(struct str s, int64_t min, int64_t max, int64_t *ret);

/* How many characters to add, drop or change make b of a; for names: STR_DISTANCE_MAX when one is longer than that. */
enum { STR_DISTANCE_MAX = 64 };
size_t str_distance(struct str a, struct str b);

/* 64 bits that depend on every byte. Fast, not for secrets; the seed keeps outsiders from choosing collisions. */
uint64_t str_hash(struct str s, uint64_t seed);
