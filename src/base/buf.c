/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.c - the buffer everything is written into.
 *
 * A writer need not check each addition: when one does not fit within the maximum, the buffer is marked full and
 * refuses the rest, so the end of the work is the one place to look.
 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/mem.h"

enum { FIRST_ROOM = 256 };

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void buf_fini(struct buf *b)
{
	free(b->p);
	*b = (struct buf){ .max = b->max };
}

void buf_reset(struct buf *b)
{
	b->n = 0;
	b->is_full = false;
	if (b->p)
		b->p[0] = '\0';
}

char *buf_grow(struct buf *b, size_t size)
{
	size_t room = b->room ? b->room : FIRST_ROOM;

	if (b->is_full || size > b->max - b->n) {
		b->is_full = true;
		return NULL;
	}
	while (room < b->n + size + 1)
		room *= 2;
	b->p = mem_resize(b->p, room);
	b->room = room;
	return b->p + b->n;
}

void buf_add_int(struct buf *b, int64_t number)
{
	char  digits[DIGITS_MAX];
	char *at = buf_room(b, 1);

	if (at && b->room - b->n > DIGITS_MAX && b->max - b->n >= DIGITS_MAX)
		buf_added(b, (size_t)(digits_put(at, number) - at));
	else
		buf_add(b, digits, (size_t)(digits_put(digits, number) - digits));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list args;
	int     length;
	char   *at;

	va_start(args, fmt);
	length = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (length < 0 || !(at = buf_room(b, (size_t)length)))
		return;
	va_start(args, fmt);
	(void)vsnprintf(at, (size_t)length + 1, fmt, args); /* the first pass gave the length */
	va_end(args);
	buf_added(b, (size_t)length);
}

void buf_add_csv(struct buf *b, struct str text)
{
	bool is_formula = text.n && char_is_of(text.p[0], "=+@|%\t\r-");
	bool is_quoted = false;

	for (size_t i = 0; i < text.n; i++)
		is_quoted = is_quoted || char_is_of(text.p[i], ",\"\r\n");
	buf_add_text(b, is_quoted ? "\"" : "");
	buf_add_text(b, is_formula ? "'" : "");
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"')
			buf_add_char(b, '"');
		buf_add_char(b, text.p[i]);
	}
	buf_add_text(b, is_quoted ? "\"" : "");
}

void buf_consume(struct buf *b, size_t size)
{
	if (size == 0)
		return;
	memmove(b->p, b->p + size, b->n - size);
	b->n -= size;
	b->p[b->n] = '\0';
}

struct str buf_str(const struct buf *b)
{
	return str_of(b->p ? b->p : "", b->n);
}

struct str buf_take(struct buf *b, struct arena *a)
{
	struct str ret = str_dup(a, buf_str(b));

	buf_fini(b);
	return ret;
}
