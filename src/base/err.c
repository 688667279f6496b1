/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - failures with a code and a chain of context. The table in err.h is the only list of codes. */
#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

enum { CHARACTER_MAX = 4 }; /* bytes */

static const struct {
	int         http;
	bool        is_retryable;
	const char *code;
	const char *text;
} table[RC__COUNT] = {
#define X(name, http, retry, code, text) { http, retry, code, text },
	RC_TABLE(X)
#undef X
};

/* What is quoted may be no UTF-8, or was cut. Where texts are stored as JSON, such a byte becomes three, and a text of
 * the greatest length would be too long when it is read again. */
static void make_whole(struct err *e)
{
	size_t n = strlen(e->msg), length;
	bool   is_full = n == sizeof(e->msg) - 1;

	for (size_t at = 0; at < n; at += length) {
		length = utf8_length(str_of(e->msg + at, n - at));
		if (length)
			continue;
		length = 1;
		e->msg[at] = '?';
		if (is_full && n - at < CHARACTER_MAX) { /* it did not fit */
			e->msg[at] = 0;
			break;
		}
	}
}

enum rc err_set_code(struct err *e, enum rc rc, const char *code, const char *fmt, ...)
{
	va_list args;

	assert(rc != RC_OK);
	if (!e || e->rc)
		return rc;
	e->rc = rc;
	e->code = code;
	va_start(args, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, args); /* a cut message is still a message */
	va_end(args);
	make_whole(e);
	return rc;
}

enum rc err_wrap(struct err *e, enum rc rc, const char *fmt, ...)
{
	char    cause[sizeof(e->msg)];
	va_list args;
	int     used;

	if (!e || !rc)
		return rc;
	memcpy(cause, e->msg, sizeof(cause));
	va_start(args, fmt);
	used = vsnprintf(e->msg, sizeof(e->msg), fmt, args);
	va_end(args);
	if (cause[0] && used >= 0 && (size_t)used + 2 < sizeof(e->msg))
		(void)snprintf(e->msg + used, sizeof(e->msg) - (size_t)used, ": %s", cause); /* may be cut */
	make_whole(e);
	e->rc = rc;
	return rc;
}

void err_clear(struct err *e)
{
	if (e)
		*e = (struct err){ 0 };
}

enum rc err_forgive(struct err *e, enum rc rc, enum rc forgiven)
{
	if (rc != forgiven)
		return rc;
	err_clear(e);
	return RC_OK;
}

enum rc err_pass(struct err *e, enum rc rc, const struct err *cause)
{
	return rc ? err_set_code(e, rc, cause->code, "%s", cause->msg) : RC_OK;
}

int rc_http_status(enum rc rc)
{
	assert(rc < RC__COUNT);
	return table[rc].http;
}

bool rc_is_retryable(enum rc rc)
{
	assert(rc < RC__COUNT);
	return table[rc].is_retryable;
}

const char *rc_text(enum rc rc)
{
	assert(rc < RC__COUNT);
	return table[rc].text;
}

const char *err_code(const struct err *e)
{
	return e->code ? e->code : table[e->rc].code;
}
