/* buf.h - a growing byte buffer with a stated maximum, always NUL-terminated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/str.h"

struct buf {
	char  *p;
	size_t n;
	size_t room;
	size_t max;
	bool   is_full; /* something did not fit; nothing is added after that */
};

void buf_init(struct buf *b, size_t max);
void buf_fini(struct buf *b);

/* Empty it, keep its memory. */
void buf_reset(struct buf *b);

void buf_add(struct buf *b, const void *bytes, size_t size);
void buf_add_str(struct buf *b, struct str s);
void buf_add_text(struct buf *b, const char *text);
void buf_add_char(struct buf *b, char c);
void buf_add_int(struct buf *b, int64_t number);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Room for size more bytes to be written at the returned place, then buf_added(). NULL when over the maximum. */
char *buf_room(struct buf *b, size_t size);
void  buf_added(struct buf *b, size_t size);

/* Drop the first size bytes. */
void buf_consume(struct buf *b, size_t size);

struct str buf_str(const struct buf *b);
