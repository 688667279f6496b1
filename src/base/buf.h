/* buf.h - a growing byte buffer with a stated maximum, always NUL-terminated. */
#pragma once

#include "base/str.h"

struct buf {
	char  *p;
	size_t n;
	size_t room;
	size_t max;
	bool   is_full; /* something did not fit; nothing is added after that */
};

/* struct buf b = BUF(max); is the same as buf_init(). */
#define BUF(most) ((struct buf){ .max = (most) })
void buf_init(struct buf *b, size_t max);
void buf_fini(struct buf *b);

/* Empty it, keep its memory. */
void buf_reset(struct buf *b);

/* Room for size more bytes to be written at the returned place, then buf_added(). NULL when over the maximum. Inline,
 * as are the additions: a reply is made of a hundred of them. */
char *buf_grow(struct buf *b, size_t size);

static inline char *buf_room(struct buf *b, size_t size)
{
	bool fits = !b->is_full && size <= b->max - b->n && b->n + size < b->room;

	return fits ? b->p + b->n : buf_grow(b, size);
}

static inline void buf_added(struct buf *b, size_t size)
{
	b->n += size;
	b->p[b->n] = '\0';
}

static inline void buf_add(struct buf *b, const void *bytes, size_t size)
{
	char *at = buf_room(b, size);

	if (!at)
		return;
	if (size)
		memcpy(at, bytes, size);
	buf_added(b, size);
}

static inline void buf_add_str(struct buf *b, struct str s)
{
	buf_add(b, s.p, s.n);
}

static inline void buf_add_text(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

static inline void buf_add_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_add_int(struct buf *b, int64_t number);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A text as a cell of CSV: quoted where needed; what a spreadsheet would compute gets an apostrophe. */
void buf_add_csv(struct buf *b, struct str text);

/* Drop the first size bytes. */
void buf_consume(struct buf *b, size_t size);

struct str buf_str(const struct buf *b);

/* What is in it, NUL-terminated in the arena; ends the buffer. */
struct str buf_take(struct buf *b, struct arena *a);
