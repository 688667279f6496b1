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

#include "base/arena.h"
#include "base/clock.h"
#include "base/octets.h"
#include "base/utf8.h"

/* What a text would be, found without making it. */
struct shape {
	int    deepest; /* nesting of brackets outside strings */
	size_t values;  /* brackets, and what has a comma or a colon before it */
};

static struct shape shape_of(struct str text)
{
	struct shape shape = { 0 };
	int          depth = 0;
	bool         is_in_string = false;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (is_in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				is_in_string = false;
			continue;
		}
		is_in_string = c == '"';
		depth += c == '{' || c == '[';
		depth -= c == '}' || c == ']';
		shape.values += c == '{' || c == '[' || c == ',' || c == ':';
		if (depth > shape.deepest)
			shape.deepest = depth;
	}
	return shape;
}

int json_depth(struct str text)
{
	return shape_of(text).deepest;
}

enum rc json_parse_limited(struct str text, size_t values_max, json_t **ret, struct err *e)
{
	struct shape shape = shape_of(text);
	json_error_t why;
	json_t      *value;

	if (shape.deepest > JSON_DEPTH_MAX)
		return err_set(e, RC_INVALID, "JSON is nested deeper than %d levels", JSON_DEPTH_MAX);
	if (shape.values > values_max)
		return err_set(e, RC_INVALID, "JSON has more than %zu members and elements", values_max);
	value = json_loadb(text.p ? text.p : "", text.n, JSON_REJECT_DUPLICATES, &why);
	if (!value)
		return err_set(e, RC_INVALID, "not valid JSON at line %d column %d: %s", why.line, why.column,
		               why.text);
	*ret = value;
	return RC_OK;
}

enum rc json_parse(struct str text, json_t **ret, struct err *e)
{
	return json_parse_limited(text, SIZE_MAX, ret, e);
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

bool json_take_text(const json_t *object, const char *name, struct arena *a, struct str *ret)
{
	if (!json_get_text(object, name, ret))
		return false;
	*ret = str_dup(a, *ret);
	return true;
}

struct str json_dump(struct arena *a, const json_t *value)
{
	char      *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY); /* NULL for NULL */
	struct str copy = str_dup(a, str_from(text));

	free(text);
	return copy;
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

/* Are all characters written as they are? */
static bool is_plain(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t               i = 0;

	if (s.n >= 16) {
		octets_vector found = octets_quoted_vector(octets_vector_at(p + s.n - 16),
		                                           true); /* some of them again */

		for (; i + 16 < s.n; i += 16)
			found |= octets_quoted_vector(octets_vector_at(p + i), true);
		return !octets_any(found);
	}
	if (s.n >= 8)
		return !(octets_quoted(octets_at(p), true) | octets_quoted(octets_at(p + s.n - 8), true));
	if (s.n >= 4)
		return !octets_quoted(octets_of_few(p, s.n), true);
	for (; i < s.n; i++)
		if (p[i] < 0x20 || p[i] >= 0x80 || p[i] == '"' || p[i] == '\\')
			return false;
	return true;
}

/* Where the run of characters ends that are written as they are. */
static size_t end_of_plain(struct str s, size_t i)
{
	const unsigned char *p = (const unsigned char *)s.p;

	for (; i + sizeof(uint64_t) <= s.n; i += sizeof(uint64_t)) {
		uint64_t found = octets_quoted(octets_at(p + i), true);

		if (found)
			return i + octets_first(found);
	}
	while (i < s.n && p[i] >= 0x20 && p[i] < 0x80 && p[i] != '"' && p[i] != '\\')
		i++;
	return i;
}

static void add_escaped(struct buf *b, struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t               plain_from = 0;

	buf_add_char(b, '"');
	for (size_t i = 0; (i = end_of_plain(s, i)) < s.n;) {
		size_t length = utf8_length(str_of(s.p + i, s.n - i));

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

static void add_quoted(struct buf *b, struct str s)
{
	char *at;

	if (!is_plain(s)) {
		add_escaped(b, s);
		return;
	}
	at = buf_room(b, s.n + 2);
	if (!at)
		return;
	at[0] = at[s.n + 1] = '"';
	if (s.n)
		memcpy(at + 1, s.p, s.n);
	buf_added(b, s.n + 2);
}

static void name_member(struct json_out *o, struct str name)
{
	bool  is_next = o->has_member[o->depth];
	char *at;

	if (!is_plain(name)) {
		separate(o);
		add_escaped(o->b, name);
		buf_add_char(o->b, ':');
		return;
	}
	o->has_member[o->depth] = true;
	if (!(at = buf_room(o->b, name.n + 3 + is_next))) /* in one piece: a reply is made of names */
		return;
	*at = ',';
	at += is_next;
	*at++ = '"';
	memcpy(at, name.p, name.n);
	memcpy(at + name.n, "\":", 2);
	buf_added(o->b, name.n + 3 + is_next);
}

/* Values. */

/* The shortest decimal form that reads back as the same number. */
static void add_real(struct buf *b, double value)
{
	char text[32];

	if (!isfinite(value)) {
		buf_add_text(b, "null");
		return;
	}
	if (fabs(value) < 1e15 && value == (double)(int64_t)value) {
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

static void add_bool(struct buf *b, bool value)
{
	buf_add_text(b, value ? "true" : "false");
}

static void add_null(struct buf *b)
{
	buf_add_text(b, "null");
}

static void add_text(struct buf *b, struct str text)
{
	if (text.n)
		add_quoted(b, text);
	else
		add_null(b);
}

static void add_time(struct buf *b, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	add_text(b, ms ? iso_time(ms / 1000, text) : STR(""));
}

/* Members. */

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

void json_put_object(struct json_out *o, const char *name)
{
	name_member(o, str_from(name));
	open(o, '{');
}

void json_put_array(struct json_out *o, const char *name)
{
	name_member(o, str_from(name));
	open(o, '[');
}

void json_put_str(struct json_out *o, const char *name, struct str value)
{
	name_member(o, str_from(name));
	add_quoted(o->b, value);
}

void json_put_int(struct json_out *o, const char *name, int64_t value)
{
	name_member(o, str_from(name));
	buf_add_int(o->b, value);
}

void json_put_real(struct json_out *o, const char *name, double value)
{
	name_member(o, str_from(name));
	add_real(o->b, value);
}

void json_put_bool(struct json_out *o, const char *name, bool value)
{
	name_member(o, str_from(name));
	add_bool(o->b, value);
}

void json_put_null(struct json_out *o, const char *name)
{
	name_member(o, str_from(name));
	add_null(o->b);
}

void json_put_raw(struct json_out *o, const char *name, struct str json)
{
	name_member(o, str_from(name));
	buf_add_str(o->b, json);
}

void json_put_text(struct json_out *o, const char *name, struct str text)
{
	name_member(o, str_from(name));
	add_text(o->b, text);
}

void json_put_time(struct json_out *o, const char *name, int64_t ms)
{
	name_member(o, str_from(name));
	add_time(o->b, ms);
}

void json_put_texts(struct json_out *o, const char *name, const struct str *texts, size_t count)
{
	json_put_array(o, name);
	for (size_t i = 0; i < count; i++)
		json_add_str(o, texts[i]);
	json_close_array(o);
}

static void add_value(struct json_out *o, const struct json_member *m)
{
	struct buf *b = o->b;

	switch (m->kind) {
	case MEMBER_STR: add_quoted(b, m->text); break;
	case MEMBER_TEXT: add_text(b, m->text); break;
	case MEMBER_INT: buf_add_int(b, m->number); break;
	case MEMBER_BOOL: add_bool(b, m->number); break;
	case MEMBER_TIME: add_quoted(b, iso_time(m->number / 1000, (char[ISO_TIME_SIZE]){ 0 })); break;
	case MEMBER_AT: add_time(b, m->number); break;
	case MEMBER_MOMENT:
		add_quoted(b, m->number % 1000 ? iso_time_ms(m->number, (char[ISO_TIME_SIZE]){ 0 })
		                               : iso_time(m->number / 1000, (char[ISO_TIME_SIZE]){ 0 }));
		break;
	case MEMBER_SEC:
		if (m->number)
			buf_add_int(b, m->number / 1000);
		else
			add_null(b);
		break;
	case MEMBER_RAW: buf_add_str(b, m->text.n ? m->text : STR("null")); break;
	case MEMBER_MICRO: add_real(b, (double)m->number / 1000000); break;
	case MEMBER_OPEN: open(o, '{'); break;
	case MEMBER_OPEN_LIST: open(o, '['); break;
	case MEMBER_NONE:
	case MEMBER_CLOSE:
	case MEMBER_CLOSE_LIST: break; /* see put_member() */
	}
}

static void put_member(struct json_out *o, const struct json_member *m)
{
	switch (m->kind) {
	case MEMBER_NONE: break;
	case MEMBER_CLOSE: json_close_object(o); break;
	case MEMBER_CLOSE_LIST: json_close_array(o); break;
	default:
		if (m->name.p)
			name_member(o, m->name);
		else
			separate(o);
		add_value(o, m);
		break;
	}
}

void json_put_members(struct json_out *o, const struct json_member *members, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_member(o, &members[i]);
}

struct str json_of(struct arena *a, const struct json_member *members, size_t count)
{
	CLEANUP(buf_fini) struct buf b = BUF(JSON_OF_MAX);
	struct json_out              o = JSON_OUT(&b);

	json_open_object(&o);
	json_put_members(&o, members, count);
	json_close_object(&o);
	return b.is_full ? str_of(arena_alloc(a, JSON_OF_MAX), JSON_OF_MAX) : str_dup(a, buf_str(&b));
}

struct str json_dollars(struct arena *a, double dollars)
{
	double cents = floor(round(fabs(dollars) * 1e6) / 1e4 + 0.5);

	return str_format(a, "%s%.2f", dollars < 0 && cents > 0 ? "-" : "", cents / 100);
}
