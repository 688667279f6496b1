/* urlform.h - what travels in a URL or a Prefer header as text: reading it, strictly. Pure; no request, no loop. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Undo %XX. False: a broken escape, or one that hides a control character. */
MUST_CHECK bool url_decode(struct arena *a, struct str text, struct str *ret);

/* A query parameter, decoded; empty when it is not there. RC_INVALID: malformed, empty or given twice. */
MUST_CHECK enum rc url_query(struct arena *a, struct str query, const char *name, struct str *ret, struct err *e);

/* What the store calls a cursor, wrapped so that a changed one, or one of another list, is noticed. The filter is the
 * list's name. */
struct str      cursor_wrap(struct arena *a, const char *filter, struct str inner);
MUST_CHECK bool cursor_unwrap(struct arena *a, const char *filter, struct str text, struct str *ret);

/* A Prefer header: the number of seconds to wait (-1: not asked for), and whether the client would rather not. */
void prefer_parse(struct str header, int64_t *ret_wait_sec, bool *ret_is_async);
