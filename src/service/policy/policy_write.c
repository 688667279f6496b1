/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_write.c - a policy as YAML for people, as JSON for programs, and what differs between two.
 *
 * Always true: policy_read() reads what policy_write_yaml() wrote as the same policy, whatever characters its texts
 * have. Texts of several lines are blocks if none of their characters needs quotes [is_block()].
 *
 * Approval rules are a list, not a table of keys. Their changes are told rule by rule, by id. A rule that only moved
 * has not changed, but the order has, and that can decide.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "domain/approval.h"
#include "service/policy/policy_keys.h"

/* A rule has two lists of names of 254 bytes, one of groups, and all of their characters may need escapes. */
enum { CHANGE_MAX = 200, RULE_TEXT_MAX = 131072, NOT_SPECIAL = 0x110000 };

/* --- YAML --- */

/* Of a character of n bytes that begins here: its number when it may not stand in a text as it is, as line breaks
 * other than LF and what YAML does not print; else NOT_SPECIAL. */
static unsigned special(struct str s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s.p;
	unsigned             c = n == 2   ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
	                         : n == 3 ? (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu)
	                                  : p[0];
	bool is_shown = c >= ' ' && (c < 0x7f || c >= 0xa0) && c != 0x2028 && c != 0x2029 && c != 0xfeff && c < 0xfffe;

	return is_shown ? NOT_SPECIAL : c;
}

static void add_quoted(struct buf *b, struct str s)
{
	buf_add_char(b, '"');
	while (s.n) {
		size_t   n = utf8_length(s) ? utf8_length(s) : 1;
		unsigned c = special(s, n);

		if (s.p[0] == '\n')
			buf_add_text(b, "\\n");
		else if (c != NOT_SPECIAL)
			buf_addf(b, "\\u%04x", c);
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

		if (n == 0 || (s.p[0] != '\n' && s.p[0] != '\t' && special(s, n) != NOT_SPECIAL))
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

static void add_value(struct buf *b, const struct policy_key *k, const struct policy *p)
{
	struct policy_value v = policy_value(k, p);
	const char         *indent = k->section ? "    " : "  ";

	switch (k->kind) {
	case KEY_BOOL: buf_add_text(b, v.number ? " true" : " false"); break;
	case KEY_INT: buf_addf(b, " %lld", (long long)v.number); break;
	case KEY_LIST:
		if (!v.count)
			buf_add_text(b, " []");
		for (size_t i = 0; i < v.count; i++) {
			buf_addf(b, "\n%s- ", indent);
			add_text(b, v.texts[i], indent);
		}
		break;
	default:
		buf_add_char(b, ' ');
		add_text(b, v.texts[0], indent);
		break;
	}
}

/* --- approval rules --- */

static const struct approval_policy no_rules;

static const struct approval_policy *rules_of(const struct policy *p)
{
	return p->approval ? p->approval : &no_rules;
}

static struct str rule_text(const struct approval_rule *rule, struct arena *a)
{
	struct buf      b = BUF(RULE_TEXT_MAX);
	struct json_out o = JSON_OUT(&b);

	approval_write(rule, &o);
	return buf_take(&b, a);
}

/* How to begin, for who has none. */
static const char example[] =
        "# Which requests are approved at once, which a person is asked about, which are denied.\n"
        "# The first rule that matches decides; when none does, a person is asked. Without any rule the\n"
        "# templates decide. For example:\n"
        "#\n"
        "# rules:\n"
        "#   - id: short-tries\n"
        "#     when: {template: Playground, domain: \"*.example.org\", maxBudget: 10, maxHours: 24}\n"
        "#     then: approve\n\n"
        "rules: []\n";

/* As JSON, which is as good: their texts may have what YAML does not print. */
static void write_rules(const struct policy *policy, struct buf *b)
{
	const struct approval_policy    *rules = rules_of(policy);
	CLEANUP(arena_fini) struct arena a = { 0 };

	if (!rules->count) {
		buf_add_text(b, example);
		return;
	}
	buf_add_text(b, "{\"rules\": [\n");
	for (size_t i = 0; i < rules->count; i++)
		buf_addf(b, "  %.*s%s\n", STR_ARG(rule_text(&rules->rules[i], &a)), i + 1 < rules->count ? "," : "");
	buf_add_text(b, "]}\n");
}

struct comparison {
	struct policy_changes *changes;
	struct arena          *arena;
	size_t                 left_off;
};

static const struct approval_rule *find_rule(const struct approval_policy *rules, struct str id)
{
	for (size_t i = 0; i < rules->count; i++)
		if (str_eq(rules->rules[i].id, id))
			return &rules->rules[i];
	return NULL;
}

/* One place is kept for what is left off. */
static void add_change(struct comparison *c, struct str key, struct str from, struct str to)
{
	if (c->changes->count == POLICY_KEYS_MAX - 1) {
		c->left_off++;
		return;
	}
	c->changes->items[c->changes->count++] = (struct policy_change){ key, utf8_line(c->arena, from, CHANGE_MAX),
		                                                         utf8_line(c->arena, to, CHANGE_MAX) };
}

/* One of them may be NULL. */
static void compare_rule(struct comparison *c, const struct approval_rule *before, const struct approval_rule *after)
{
	struct str id = after ? after->id : before->id;
	struct str from = before ? rule_text(before, c->arena) : STR("none");
	struct str to = after ? rule_text(after, c->arena) : STR("none");

	if (!str_eq(from, to))
		add_change(c, str_format(c->arena, "rules.%.*s", STR_ARG(id)), from, to);
}

/* The ids of those that are in both, in their order here. */
static struct str order_of(const struct approval_policy *rules, const struct approval_policy *other, struct arena *a)
{
	struct str all = STR("");

	for (size_t i = 0; i < rules->count; i++)
		if (find_rule(other, rules->rules[i].id))
			all = str_format(a, "%.*s%s%.*s", STR_ARG(all), all.n ? ", " : "", STR_ARG(rules->rules[i].id));
	return all;
}

/* A change for each rule added, removed or changed, and one when only the order was. The last counts what does not
 * fit. */
static void compare_rules(const struct policy *before, const struct policy *after, struct arena *a,
                          struct policy_changes *ret)
{
	const struct approval_policy *old = rules_of(before), *new = rules_of(after);
	struct comparison             c = { .changes = ret, .arena = a };
	struct str                    old_order = order_of(old, new, a), new_order = order_of(new, old, a);

	ret->count = 0;
	if (!str_eq(old_order, new_order))
		add_change(&c, STR("rules"), old_order, new_order);
	for (size_t i = 0; i < new->count; i++)
		compare_rule(&c, find_rule(old, new->rules[i].id), &new->rules[i]);
	for (size_t i = 0; i < old->count; i++)
		if (!find_rule(new, old->rules[i].id))
			compare_rule(&c, &old->rules[i], NULL);
	if (c.left_off)
		ret->items[ret->count++] = (struct policy_change){
			STR("rules"), STR("more changes"), str_format(a, "%zu more rules were changed", c.left_off)
		};
}

/* --- documents --- */

void policy_write_yaml(enum document_kind kind, const struct policy *policy, struct buf *b)
{
	const char *section = NULL;

	if (kind == DOCUMENT_APPROVAL) {
		write_rules(policy, b);
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

void policy_write_json(enum document_kind kind, const struct policy *policy, struct json_out *o)
{
	const struct approval_policy *rules = rules_of(policy);
	struct str                    open = STR("");

	if (kind == DOCUMENT_APPROVAL) {
		json_put_array(o, "rules");
		for (size_t i = 0; i < rules->count; i++)
			approval_write(&rules->rules[i], o);
		json_close_array(o);
		return;
	}
	for (size_t i = 0; i < policy_key_count; i++) {
		const struct policy_key *k = &policy_keys[i];
		struct policy_value      v = policy_value(k, policy);
		struct str               section = str_from(k->section);

		if (k->document != kind)
			continue;
		if (open.n && !str_eq(open, section))
			json_close_object(o);
		if (section.n && !str_eq(open, section))
			json_put_object(o, k->section);
		open = section;
		switch (k->kind) {
		case KEY_BOOL: json_put_bool(o, k->name, v.number); break;
		case KEY_INT: json_put_int(o, k->name, v.number); break;
		case KEY_LIST: json_put_texts(o, k->name, v.texts, v.count); break;
		default: json_put_str(o, k->name, v.texts[0]); break;
		}
	}
	if (open.n)
		json_close_object(o);
}

static bool is_same(const struct policy_key *k, const struct policy *before, const struct policy *after)
{
	struct policy_value v = policy_value(k, before), w = policy_value(k, after);
	bool                is_equal = v.number == w.number && v.count == w.count;

	for (size_t i = 0; is_equal && i < v.count; i++)
		is_equal = str_eq(v.texts[i], w.texts[i]);
	return is_equal;
}

static struct str in_words(const struct policy_key *k, const struct policy *p, struct arena *a)
{
	struct policy_value v = policy_value(k, p);
	struct str          all = STR("");

	if (k->kind == KEY_BOOL)
		return v.number ? STR("true") : STR("false");
	if (k->kind == KEY_INT)
		return str_format(a, "%lld", (long long)v.number);
	for (size_t i = 0; i < v.count; i++)
		all = str_format(a, "%.*s%s%.*s", STR_ARG(all), i ? ", " : "", STR_ARG(v.texts[i]));
	return utf8_line(a, all, CHANGE_MAX);
}

void policy_compare(enum document_kind kind, const struct policy *before, const struct policy *after, struct arena *a,
                    struct policy_changes *ret)
{
	if (kind == DOCUMENT_APPROVAL) {
		compare_rules(before, after, a, ret);
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

void policy_changes_write(const struct policy_changes *c, struct json_out *o)
{
	json_put_array(o, "changes");
	for (size_t i = 0; i < c->count; i++)
		JSON_PUT(o, member_object(NULL), member_str("key", c->items[i].key),
		         member_str("from", c->items[i].from), member_str("to", c->items[i].to), member_end());
	json_close_array(o);
}
