/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_write.c - a policy as YAML for people, as JSON for programs, and what differs between two.
 *
 * Always true: what policy_write_yaml() writes, policy_read() reads back as the same policy, whatever characters its texts have. Texts of
 * several lines are blocks when every character in them may stand there as it is; otherwise they are quoted [is_block()].
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "service/approval_document.h"
#include "service/policy_keys.h"

enum { CHANGE_MAX = 200, LIST_TEXT_MAX = 16384 };

/* --- YAML --- */

/* Of a character that begins here: may it stand in a text as it is? Line breaks other than LF, and what YAML does not print, may not. */
static bool is_special(struct str s)
{
	static const struct str specials[] = { STR_INIT("\xe2\x80\xa8"), STR_INIT("\xe2\x80\xa9"),
		                               STR_INIT("\xef\xbb\xbf"), STR_INIT("\xef\xbf\xbe"),
		                               STR_INIT("\xef\xbf\xbf") };
	unsigned char           c = (unsigned char)s.p[0];

	if (c < ' ' || c == 0x7f)
		return true;
	if (c == 0xc2 && s.n > 1 && (unsigned char)s.p[1] < 0xa0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(specials); i++)
		if (str_starts_with(s, specials[i]))
			return true;
	return false;
}

static unsigned code_point(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;

	if (p[0] < 0x80)
		return p[0];
	return p[0] < 0xe0 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
	                   : (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
}

static void add_quoted(struct buf *b, struct str s)
{
	buf_add_char(b, '"');
	while (s.n) {
		size_t n = utf8_length(s);

		n = n ? n : 1;
		if (s.p[0] == '\n')
			buf_add_text(b, "\\n");
		else if (is_special(s))
			buf_addf(b, "\\u%04x", code_point(s));
		else if (s.p[0] == '"' || s.p[0] == '\\')
			buf_addf(b, "\\%c", s.p[0]);
		else
			buf_add(b, s.p, n);
		s = str_of(s.p + n, s.n - n);
	}
	buf_add_char(b, '"');
}

/* Several lines that can stand as they are below "key: |". */
static bool is_block(struct str s)
{
	bool has_line = false;

	if (!s.n || s.p[0] == ' ' || s.p[0] == '\n' || s.p[0] == '\t')
		return false; /* the first line says how far all are indented */
	if (s.n > 1 && s.p[s.n - 1] == '\n' && s.p[s.n - 2] == '\n')
		return false; /* empty lines behind it are not its own */
	while (s.n) {
		size_t n = utf8_length(s);

		if (n == 0 || (s.p[0] != '\n' && s.p[0] != '\t' && is_special(s)))
			return false;
		has_line = has_line || s.p[0] == '\n';
		s = str_of(s.p + n, s.n - n);
	}
	return has_line;
}

static void add_block(struct buf *b, struct str s, const char *indent)
{
	bool has_end = s.p[s.n - 1] == '\n';

	buf_add_text(b, has_end ? "|" : "|-");
	s.n -= has_end;
	while (s.n) {
		struct str line = str_cut(&s, '\n');

		buf_addf(b, "\n%s", line.n ? indent : "");
		buf_add_str(b, line);
	}
}

static void add_text(struct buf *b, struct str s, const char *indent)
{
	if (is_block(s))
		add_block(b, s, indent);
	else if (yaml_is_plain(s))
		buf_add_str(b, s);
	else
		add_quoted(b, s);
}

static void add_list(struct buf *b, const struct str *items, size_t count, const char *indent)
{
	if (!count)
		buf_add_text(b, " []");
	for (size_t i = 0; i < count; i++) {
		buf_addf(b, "\n%s- ", indent);
		add_text(b, items[i], indent);
	}
}

static void add_value(struct buf *b, const struct policy_key *k, const struct policy *p)
{
	const void *at = policy_value(k, p);
	const char *indent = k->section ? "    " : "  ";

	switch (k->kind) {
	case KEY_BOOL: buf_addf(b, " %s", *(const bool *)at ? "true" : "false"); break;
	case KEY_INT: buf_addf(b, " %lld", (long long)*(const int64_t *)at); break;
	case KEY_LIST: add_list(b, at, policy_item_count(k, p), indent); break;
	default:
		buf_add_char(b, ' ');
		add_text(b, *(const struct str *)at, indent);
		break;
	}
}

void policy_write_yaml(enum document_kind kind, const struct policy *policy, struct buf *b)
{
	const char *section = NULL;

	if (kind == DOCUMENT_APPROVAL) {
		approval_document_yaml(policy, b);
		return;
	}
	buf_addf(b, "# The %s configuration of Leasehold. A key that is left out has its default.\n",
	         document_names[kind]);
	for (size_t i = 0; i < policy_key_count; i++) {
		const struct policy_key *k = &policy_keys[i];
		const char              *indent = k->section ? "  " : "";

		if (k->document != kind)
			continue;
		buf_add_char(b, '\n');
		if (k->section && (!section || !str_eq(str_from(section), str_from(k->section))))
			buf_addf(b, "%s:\n", k->section);
		section = k->section;
		buf_addf(b, "%s# %s\n%s%s:", indent, k->comment, indent, k->name);
		add_value(b, k, policy);
		buf_add_char(b, '\n');
	}
}

/* --- JSON --- */

static void put_value(struct json_out *o, const struct policy_key *k, const struct policy *p)
{
	const void       *at = policy_value(k, p);
	const struct str *items = at;

	switch (k->kind) {
	case KEY_BOOL: json_put_bool(o, k->name, *(const bool *)at); break;
	case KEY_INT: json_put_int(o, k->name, *(const int64_t *)at); break;
	case KEY_LIST:
		json_put_array(o, k->name);
		for (size_t i = 0; i < policy_item_count(k, p); i++)
			json_add_str(o, items[i]);
		json_close_array(o);
		break;
	default: json_put_str(o, k->name, *(const struct str *)at); break;
	}
}

void policy_write_json(enum document_kind kind, const struct policy *policy, struct json_out *o)
{
	struct str open = STR("");

	if (kind == DOCUMENT_APPROVAL) {
		approval_document_json(policy, o);
		return;
	}
	for (size_t i = 0; i < policy_key_count; i++) {
		const struct policy_key *k = &policy_keys[i];
		struct str               section = str_from(k->section);

		if (k->document != kind)
			continue;
		if (open.n && !str_eq(open, section))
			json_close_object(o);
		if (section.n && !str_eq(open, section))
			json_put_object(o, k->section);
		open = section;
		put_value(o, k, policy);
	}
	if (open.n)
		json_close_object(o);
}

/* --- differences --- */

static bool is_same(const struct policy_key *k, const struct policy *a, const struct policy *b)
{
	const void *x = policy_value(k, a), *y = policy_value(k, b);

	switch (k->kind) {
	case KEY_BOOL: return *(const bool *)x == *(const bool *)y;
	case KEY_INT: return *(const int64_t *)x == *(const int64_t *)y;
	case KEY_LIST: {
		const struct str *p = x, *q = y;
		size_t            count = policy_item_count(k, a);

		if (count != policy_item_count(k, b))
			return false;
		for (size_t i = 0; i < count; i++)
			if (!str_eq(p[i], q[i]))
				return false;
		return true;
	}
	default: return str_eq(*(const struct str *)x, *(const struct str *)y);
	}
}

static struct str in_words(const struct policy_key *k, const struct policy *p, struct arena *a)
{
	const void       *at = policy_value(k, p);
	const struct str *items = at;
	struct buf        b;
	struct str        line;

	if (k->kind == KEY_BOOL)
		return *(const bool *)at ? STR("true") : STR("false");
	if (k->kind == KEY_INT)
		return str_format(a, "%lld", (long long)*(const int64_t *)at);
	buf_init(&b, LIST_TEXT_MAX);
	if (k->kind == KEY_LIST) {
		for (size_t i = 0; i < policy_item_count(k, p); i++)
			buf_addf(&b, "%s%.*s", i ? ", " : "", STR_ARG(items[i]));
		line = utf8_line(a, buf_str(&b), CHANGE_MAX);
	} else {
		line = utf8_line(a, *items, CHANGE_MAX);
	}
	buf_fini(&b);
	return line;
}

void policy_compare(enum document_kind kind, const struct policy *before, const struct policy *after, struct arena *a,
                    struct policy_changes *ret)
{
	if (kind == DOCUMENT_APPROVAL) {
		approval_document_compare(before, after, a, ret);
		return;
	}
	ret->count = 0;
	for (size_t i = 0; i < policy_key_count; i++) {
		const struct policy_key *k = &policy_keys[i];

		if (k->document == kind && !is_same(k, before, after))
			ret->items[ret->count++] = (struct policy_change){ .key = policy_key_path(k, a),
				                                           .from = in_words(k, before, a),
				                                           .to = in_words(k, after, a) };
	}
}

void policy_changes_write(const struct policy_changes *c, const char *name, struct json_out *o)
{
	json_put_array(o, name);
	for (size_t i = 0; i < c->count; i++) {
		json_open_object(o);
		json_put_str(o, "key", c->items[i].key);
		json_put_str(o, "from", c->items[i].from);
		json_put_str(o, "to", c->items[i].to);
		json_close_object(o);
	}
	json_close_array(o);
}
