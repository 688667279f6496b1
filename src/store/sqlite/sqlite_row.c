/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_row.c - records that are written all the time are one value in their row.
 *
 * With a column for each field SQLite takes a row apart and puts it together again field by field, at each read and
 * each write. As one value it is copied. The value is JSON, so that whoever opens the file can read it, by the view
 * that sqlite_schema.c makes or by SQLite's own functions: [version, field, field, ...], null for what is absent or has
 * a column of its own, and nothing behind the last that is there but blanks, where it may grow.
 *
 * Texts are kept byte by byte, also what is not UTF-8. What we write needs no parser to be read; what another program
 * wrote (with json_array(), say) is read as well, and anything else is refused.
 *
 * A time key is an id as the kernel makes them (UUID version 7): its first 60 bits, which grow, are the record's
 * number, so it needs no index of its own.
 */
#include "store/sqlite/sqlite_row.h"

#include <string.h>

#include "base/digits.h"
#include "base/octets.h"

enum { TIME_KEY_SIZE = 36, MEMBER_MAX = DIGITS_MAX + 2 * sizeof(uint64_t) };

/* --- writing --- */

static char *put_escape(char *at, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";

	*at++ = '\\';
	if (c == '"' || c == '\\') {
		*at++ = (char)c;
		return at;
	}
	memcpy(at, "u00", 3);
	at[3] = hex[c >> 4];
	at[4] = hex[c & 15];
	return at + 5;
}

/* Eight bytes at a time: they are written as they are, and overwritten from the first that must not be. There is room
 * for six times the text, and eight. */
static char *put_escaped(char *at, struct str s)
{
	size_t i = 0;

	while (i + sizeof(uint64_t) <= s.n) {
		uint64_t marks = octets_quoted(octets_at(s.p + i), false);
		size_t   plain = marks ? octets_first(marks) : sizeof(uint64_t);

		memcpy(at, s.p + i, sizeof(uint64_t));
		at += plain;
		i += plain;
		if (marks)
			at = put_escape(at, (unsigned char)s.p[i++]);
	}
	if (i < s.n && s.n >= sizeof(uint64_t)) { /* the last eight again, without those that are written */
		unsigned written = 8 * (unsigned)(sizeof(uint64_t) - (s.n - i));
		uint64_t x = octets_at(s.p + s.n - sizeof(uint64_t)) >> written;

		if (!octets_quoted(x | OCTETS_OF(' ') << (64 - written), false)) {
			x = htole64(x);
			memcpy(at, &x, sizeof(x));
			at += s.n - i;
			i = s.n;
		}
	}
	for (; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c < 0x20 || c == '"' || c == '\\')
			at = put_escape(at, c);
		else
			*at++ = (char)c;
	}
	return at;
}

/* Most have nothing to escape. */
static inline char *put_text(char *at, struct str s)
{
	*at++ = '"';
	if (s.n >= 16 && octets_copy_plain(at, s.p, s.n))
		at += s.n;
	else
		at = put_escaped(at, s);
	*at++ = '"';
	return at;
}

static inline char *put_null(char *at)
{
	memcpy(at, "null", 4);
	return at + 4;
}

/* Room for a text behind `at`, and for so many bytes more; where `at` is then. NULL: the buffer is full. */
static inline char *make_room(struct buf *b, char *at, size_t text, size_t more)
{
	size_t size = 6 * text + more, used = (size_t)(at - (b->p + b->n));

	if ((size_t)(b->p + b->room - at) > size)
		return at;
	at = buf_room(b, used + size);
	return at ? at + used : NULL;
}

void row_pack(const struct record_type *type, const void *record, size_t least, struct buf *b)
{
	size_t start = b->n, end, size, members = MEMBER_MAX * (size_t)(type->field_count + 2);
	char  *at = buf_room(b, members);

	if (!at)
		return; /* the buffer says that it is full */
	*at++ = '[';
	at = digits_put(at, (int64_t)record_version(type, record));
	end = (size_t)(at - b->p);
	for (const struct record_field *field = type->fields, *behind = field + type->field_count; field < behind;
	     field++) {
		*at++ = ',';
		if (field->kind == FIELD_TEXT) {
			struct str text = record_text(field, record);

			if (!text.n || row_is_long(field)) {
				at = put_null(at);
				continue;
			}
			if (!(at = make_room(b, at, text.n, members)))
				return;
			at = put_text(at, text);
		} else {
			int64_t number = record_number(field, record);

			if (!number && field->is_optional) {
				at = put_null(at);
				continue;
			}
			at = digits_put(at, number);
		}
		end = (size_t)(at - b->p);
	}
	b->p[end++] = ']';
	size = end - start;
	if (size < least) {
		if (!buf_room(b, least))
			return;
		memset(b->p + end, ' ', least - size);
		size = least;
	}
	buf_added(b, size);
}

/* --- reading --- */

/* Four hexadecimal digits; -1: they are not. */
static int read_code(const char *p, const char *end)
{
	int code = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = char_hex(p[i]);

		if (digit < 0)
			return -1;
		code = code << 4 | digit;
	}
	return code;
}

static char *put_utf8(char *at, unsigned code)
{
	if (code < 0x80) {
		*at++ = (char)code;
	} else if (code < 0x800) {
		*at++ = (char)(0xc0 | code >> 6);
		*at++ = (char)(0x80 | (code & 0x3f));
	} else {
		*at++ = (char)(code < 0x10000 ? 0xe0 | code >> 12 : 0xf0 | code >> 18);
		if (code >= 0x10000)
			*at++ = (char)(0x80 | (code >> 12 & 0x3f));
		*at++ = (char)(0x80 | (code >> 6 & 0x3f));
		*at++ = (char)(0x80 | (code & 0x3f));
	}
	return at;
}

/* \uXXXX, or two of them for one character. p is behind the 'u'. */
static bool read_unicode(char **p, const char *end, char **to)
{
	int first = read_code(*p, end), second;

	if (first < 0)
		return false;
	*p += 4;
	if ((first & 0xfc00) == 0xd800 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u' &&
	    (second = read_code(*p + 2, end)) >= 0 && (second & 0xfc00) == 0xdc00) {
		*p += 6;
		first = 0x10000 + ((first & 0x3ff) << 10 | (second & 0x3ff));
	}
	*to = put_utf8(*to, (unsigned)first);
	return true;
}

/* p is behind the backslash. What is written is never longer than what was read. */
static bool read_escape(char **p, const char *end, char **to)
{
	static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	const char       *found;

	if (*p == end)
		return false;
	if (**p == 'u') {
		++*p;
		return read_unicode(p, end, to);
	}
	found = **p ? strchr(names, **p) : NULL;
	if (!found)
		return false;
	*(*to)++ = means[found - names];
	++*p;
	return true;
}

/* The readers of a member answer what is behind it, at most `end`; NULL: it is something else. They look up to
 * ROW_SLACK bytes behind the end. */
static char *read_text(char *at, const char *end, struct str *ret)
{
	char *from = at + 1, *to;

	if (at >= end || *at != '"')
		return NULL;
	for (at = from;; at += sizeof(uint64_t)) { /* mostly there is nothing to replace */
		uint64_t marks;

		if (at >= end)
			return NULL;
		marks = octets_either(octets_at(at), '"', '\\');
		if (!marks)
			continue;
		at += octets_first(marks);
		break;
	}
	for (to = at; at < end && *at != '"';) /* from the first escape on */
		if (*at != '\\') {
			*to++ = *at++;
		} else {
			at++;
			if (!read_escape(&at, end, &to))
				return NULL;
		}
	if (at >= end)
		return NULL;
	*to = '\0';
	*ret = str_of(from, (size_t)(to - from));
	return at + 1;
}

static char *read_number(char *at, const char *end, int64_t *ret)
{
	bool     is_negative = *at == '-';
	size_t   count;
	uint64_t number = digits_get(at + is_negative, end, &count);

	*ret = (int64_t)(is_negative ? 0 - number : number);
	at += is_negative + count;
	return count && count <= DIGITS_MAX && at <= end ? at : NULL;
}

/* *ret is not touched by a null. */
static inline char *read_member(char *at, const char *end, enum field_kind kind, struct value *ret)
{
	while (*at == ' ' && at < end) /* others put a blank behind a comma */
		at++;
	if (memcmp(at, "null", 4) == 0)
		return end - at >= 4 ? at + 4 : NULL;
	return kind == FIELD_TEXT ? read_text(at, end, &ret->text) : read_number(at, end, &ret->number);
}

/* Those of a newer program. */
static char *skip_members(char *at, const char *end)
{
	struct value ignored;

	while (at && at < end && *at == ',') {
		const char *first = ++at;

		while (first < end && *first == ' ')
			first++;
		at = read_member(at, end, *first == '"' ? FIELD_TEXT : FIELD_INT, &ignored);
	}
	return at;
}

bool row_unpack(const struct record_type *type, uint64_t fields, char *text, size_t size, void *record)
{
	const char  *end = text + size;
	struct value version = { 0 };
	char        *at = size >= 2 && text[0] == '[' ? read_member(text + 1, end, FIELD_INT, &version) : NULL;

	if (!at)
		return false;
	record_set_version(type, record, (uint64_t)version.number);
	for (int f = 0; f < type->field_count; f++) {
		const struct record_field *field = &type->fields[f];
		struct value               v = { 0 };

		if (*at == ',' && at < end && !(at = read_member(at + 1, end, field->kind, &v)))
			return false;
		if (fields >> f & 1 && !row_is_long(field))
			record_set_field(field, record, v);
	}
	at = skip_members(at, end);
	return at && at < end && *at == ']'; /* what is behind it are blanks */
}

/* --- keys with a time --- */

/* The number of one as the kernel writes it; the rest of the key, behind its counter, may be anything. */
static bool read_time_key(struct str key, uint64_t *ret)
{
	uint32_t high, low;

	if (key.n != TIME_KEY_SIZE || key.p[8] != '-' || key.p[13] != '-' || key.p[14] != '7')
		return false;
	if (!digits_read_hex(octets_at(key.p), &high) ||
	    !digits_read_hex((octets_at(key.p + 9) & UINT32_MAX) | octets_at(key.p + 14) << 32, &low))
		return false;
	*ret = (uint64_t)high << 28 | (uint64_t)(low >> 16) << 12 | (low & 0xfff); /* without its version */
	return true;
}

/* Of any other text: what begins like such a key is before all ids that go on from there, or behind them. */
static uint64_t number_not_before(struct str key)
{
	static const char form[] = "xxxxxxxx-xxxx-7xxx";
	uint64_t          number = 0;
	int               left = 60; /* bits */

	for (size_t i = 0; i < sizeof(form) - 1; i++) {
		int c = i < key.n ? (unsigned char)key.p[i] : -1;
		int digit = form[i] != 'x'         ? 0
		            : c >= '0' && c <= '9' ? c - '0'
		            : c >= 'a' && c <= 'f' ? c - 'a' + 10
		                                   : -1;

		if (form[i] == 'x' && digit >= 0) {
			left -= 4;
			number |= (uint64_t)digit << left;
			continue;
		}
		if (form[i] != 'x' && c == form[i])
			continue;
		if (form[i] == 'x' ? c > 'f' : c > form[i])
			number |= (1ull << left) - 1;
		else if (form[i] == 'x' && c > '9')
			number |= 10ull << (left - 4);
		break;
	}
	return number;
}

bool row_of_time_key(struct str key, int64_t *ret)
{
	uint64_t number;
	bool     is_ours = read_time_key(key, &number);

	if (!is_ours)
		number = number_not_before(key);
	*ret = (int64_t)(number * ROW_SLOTS);
	return is_ours;
}
