/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - reading by jansson, writing by ourselves.
 *
 * jansson is the strictest of the packaged parsers; what it lacks, a limit on depth that is ours to choose, is
 * checked before it sees the text. Writing goes directly into the reply's buffer: building a tree first would cost
 * more than everything else a reply needs. Bytes that are not UTF-8 are written as U+FFFD, so a reply is always valid.
 */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

/* Deepest nesting of brackets outside strings. */
static int text_depth(struct str text)
{
	int  depth = 0, deepest = 0;
	bool is_in_string = false;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (is_in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				is_in_string = false;
		} else if (c == '"') {
			is_in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > deepest)
				deepest = depth;
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	return deepest;
}

enum rc json_parse(struct str text, json_t **ret, struct err *e)
{
	json_error_t why;
	json_t      *value;

	if (text_depth(text) > JSON_DEPTH_MAX)
		return err_set(e, RC_INVALID, "JSON is nested deeper than %d levels", JSON_DEPTH_MAX);
	value = json_loadb(text.p ? text.p : "", text.n, JSON_REJECT_DUPLICATES, &why);
	if (!value)
		return err_set(e, RC_INVALID, "not valid JSON at line %d column %d: %s", why.line, why.column,
		               why.text);
	*ret = value;
	return RC_OK;
}

void json_freep(json_t **value)
{
	json_decref(*value);
}

bool json_get_text(const json_t *object, const char *name, struct str *ret)
{
	const json_t *member = json_object_get(object, name);

	*ret = STR("");
	if (!member || json_is_null(member))
		return true;
	if (!json_is_string(member))
		return false;
	*ret = str_of(json_string_value(member), json_string_length(member));
	return true;
}

bool json_get_number(const json_t *object, const char *name, int64_t fallback, int64_t *ret)
{
	const json_t *member = json_object_get(object, name);

	*ret = fallback;
	if (!member || json_is_null(member))
		return true;
	if (!json_is_integer(member))
		return false;
	*ret = json_integer_value(member);
	return true;
}

void json_out_init(struct json_out *o, struct buf *b)
{
	*o = (struct json_out){ .b = b };
}

static void separate(struct json_out *o)
{
	if (o->has_member[o->depth])
		buf_add_char(o->b, ',');
	o->has_member[o->depth] = true;
}

static void open(struct json_out *o, char bracket)
{
	buf_add_char(o->b, bracket);
	assert(o->depth + 1 < JSON_NESTING_MAX);
	o->has_member[++o->depth] = false;
}

static void close_with(struct json_out *o, char bracket)
{
	assert(o->depth > 0);
	o->depth--;
	buf_add_char(o->b, bracket);
}

static void add_escape(struct buf *b, unsigned char c)
{
	switch (c) {
	case '"': buf_add(b, "\\\"", 2); break;
	case '\\': buf_add(b, "\\\\", 2); break;
	case '\n': buf_add(b, "\\n", 2); break;
	case '\r': buf_add(b, "\\r", 2); break;
	case '\t': buf_add(b, "\\t", 2); break;
	default: buf_addf(b, "\\u%04x", c); break;
	}
}

static void add_quoted(struct buf *b, struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t               plain_from = 0;

	buf_add_char(b, '"');
	for (size_t i = 0; i < s.n;) {
		size_t length;

		if (p[i] >= 0x20 && p[i] < 0x80 && p[i] != '"' && p[i] != '\\') {
			i++;
			continue;
		}
		length = utf8_length(str_of(s.p + i, s.n - i));
		if (length > 1) {
			i += length;
			continue;
		}
		buf_add(b, s.p + plain_from, i - plain_from);
		if (length == 1)
			add_escape(b, p[i]);
		else
			buf_add_text(b, "\xef\xbf\xbd");
		plain_from = ++i;
	}
	if (s.n > plain_from)
		buf_add(b, s.p + plain_from, s.n - plain_from);
	buf_add_char(b, '"');
}

static void name_member(struct json_out *o, const char *name)
{
	separate(o);
	add_quoted(o->b, str_from(name));
	buf_add_char(o->b, ':');
}

void json_open_object(struct json_out *o)
{
	separate(o);
	open(o, '{');
}

void json_close_object(struct json_out *o)
{
	close_with(o, '}');
}

void json_close_array(struct json_out *o)
{
	close_with(o, ']');
}

void json_add_str(struct json_out *o, struct str value)
{
	separate(o);
	add_quoted(o->b, value);
}

void json_add_int(struct json_out *o, int64_t value)
{
	separate(o);
	buf_add_int(o->b, value);
}

void json_put_object(struct json_out *o, const char *name)
{
	name_member(o, name);
	open(o, '{');
}

void json_put_array(struct json_out *o, const char *name)
{
	name_member(o, name);
	open(o, '[');
}

void json_put_str(struct json_out *o, const char *name, struct str value)
{
	name_member(o, name);
	add_quoted(o->b, value);
}

void json_put_int(struct json_out *o, const char *name, int64_t value)
{
	name_member(o, name);
	buf_add_int(o->b, value);
}

/* The shortest decimal form that reads back as the same number. */
static void add_real(struct buf *b, double value)
{
	char text[32];

	if (!isfinite(value)) {
		buf_add_text(b, "null");
		return;
	}
	if (value == (double)(int64_t)value && fabs(value) < 1e15) {
		buf_add_int(b, (int64_t)value);
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value); /* 24 characters at most */
		if (strtod(text, NULL) == value)
			break;
	}
	buf_add_text(b, text);
}

void json_put_real(struct json_out *o, const char *name, double value)
{
	name_member(o, name);
	add_real(o->b, value);
}

void json_put_bool(struct json_out *o, const char *name, bool value)
{
	name_member(o, name);
	buf_add_text(o->b, value ? "true" : "false");
}

void json_put_null(struct json_out *o, const char *name)
{
	name_member(o, name);
	buf_add_text(o->b, "null");
}

void json_put_raw(struct json_out *o, const char *name, struct str json)
{
	name_member(o, name);
	buf_add_str(o->b, json);
}
