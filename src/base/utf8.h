/* utf8.h - text from outside, made fit for a line that people read. */
#pragma once

#include "base/str.h"

/* Bytes of the valid UTF-8 character that s begins with; 0 when there is none. */
size_t utf8_length(struct str s);

/* No longer than max bytes, and not cut inside a character. */
struct str utf8_clip(struct str s, size_t max);

/* One line of at most max bytes in the arena: control characters become blanks, bytes that are not UTF-8 become '?', no
 * character is cut in two. */
struct str utf8_line(struct arena *a, struct str s, size_t max);
