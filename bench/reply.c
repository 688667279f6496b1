/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.c - the few parts of an HTTP/1.1 reply that a load generator needs: status, length, sandbox_id.
 *
 * Always true:
 *   1. A reply is whole or it is not: the answer depends on the bytes alone, not on how they were split.
 *   2. A reply that cannot be framed by Content-Length is broken, never guessed at.
 *
 * Not here: chunked bodies, interim replies (1xx), JSON in general. The servers measured send none of the first two,
 * and one that began to would be counted as an error.
 */
#include "reply.h"

enum {
	STATUS_LINE_MIN = 12, /* "HTTP/1.1 201" */
	CONTENT_LENGTH_MAX = 1 << 30,
};

/* The status in "HTTP/1.1 201 Created"; 0 when that is not what it is. */
static int parse_status(struct str line)
{
	int status = 0;

	if (line.n < STATUS_LINE_MIN || !str_starts_with(line, STR("HTTP/1.1 ")))
		return 0;
	for (size_t i = 9; i < STATUS_LINE_MIN; i++) {
		if (line.p[i] < '0' || line.p[i] > '9')
			return 0;
		status = status * 10 + (line.p[i] - '0');
	}
	return status >= 200 && status < 600 ? status : 0;
}

static bool parse_length(struct str text, size_t *ret)
{
	size_t length = 0;

	if (text.n == 0)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		length = length * 10 + (size_t)(text.p[i] - '0');
		if (length > CONTENT_LENGTH_MAX)
			return false;
	}
	*ret = length;
	return true;
}

static bool find_length(struct str headers, size_t *ret)
{
	while (headers.n) {
		struct str value = str_cut(&headers, '\n');
		struct str name = str_cut(&value, ':');

		if (value.n && value.p[value.n - 1] == '\r')
			value.n--;
		if (str_eq_nocase(name, STR("content-length")))
			return parse_length(str_trim(value), ret);
	}
	return false;
}

enum reply_state reply_parse(struct str bytes, struct reply *ret)
{
	const char *end = bytes.n ? memmem(bytes.p, bytes.n, "\r\n\r\n", 4) : NULL;
	struct str  head;
	size_t      head_size, length = 0;
	int         status;

	if (!end)
		return REPLY_PARTIAL;
	head_size = (size_t)(end - bytes.p) + 4;
	head = str_of(bytes.p, head_size);

	status = parse_status(str_cut(&head, '\n'));
	if (!status)
		return REPLY_BROKEN;
	if (status != 204 && status != 304 && !find_length(head, &length))
		return REPLY_BROKEN;
	if (bytes.n - head_size < length)
		return REPLY_PARTIAL;

	*ret = (struct reply){ status, head_size + length, str_of(bytes.p + head_size, length) };
	return REPLY_WHOLE;
}

struct str reply_sandbox_id(struct str body)
{
	static const char key[] = "\"sandbox_id\"";
	const char       *at = body.n ? memmem(body.p, body.n, key, sizeof(key) - 1) : NULL;
	struct str        rest;

	if (!at)
		return (struct str){ 0 };
	at += sizeof(key) - 1;
	rest = str_of(at, body.n - (size_t)(at - body.p));
	if (str_trim(str_cut(&rest, ':')).n || !memchr(rest.p ? rest.p : "", '"', rest.n))
		return (struct str){ 0 };
	if (str_trim(str_cut(&rest, '"')).n || !memchr(rest.p ? rest.p : "", '"', rest.n))
		return (struct str){ 0 };
	return str_cut(&rest, '"');
}
