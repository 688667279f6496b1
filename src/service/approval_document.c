/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approval_document.c - approval rules as a document of the operator.
 *
 * The other documents are tables of keys; this one is a list. Its changes are told rule by rule, found by id; a rule that only has another
 * place among the others has not changed, but the order has, and that can decide.
 *
 * Not here: what a rule is (domain/approval.h), where documents are kept (policy_store.c).
 */
#include "service/approval_document.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "domain/approval.h"

/* A rule has two lists of names of 254 bytes, one of groups, and all of their characters may need escapes. */
enum { RULE_TEXT_MAX = 131072, SHOWN_MAX = 200 };

static const struct approval_policy no_rules;

static const struct approval_policy *rules_of(const struct policy *p)
{
	return p->approval ? p->approval : &no_rules;
}

bool approval_document_read(json_t *document, struct policy *policy, struct problems *p)
{
	struct approval_policy *rules = arena_alloc(p->arena, sizeof(*rules));
	struct problems         own = { .arena = p->arena };

	policy->approval = NULL;
	if (json_is_null(document))
		return true;
	if (approval_read(document, p->arena, rules, &own)) {
		for (size_t i = 0; i < own.count && p->count < PROBLEMS_MAX; i++)
			p->items[p->count++] = own.items[i];
		return false;
	}
	policy->approval = rules->count ? rules : NULL;
	return true;
}

/* --- writing --- */

static struct str rule_text(const struct approval_rule *rule, struct arena *a)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, RULE_TEXT_MAX);
	json_out_init(&o, &b);
	approval_write(rule, &o);
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

/* How to begin, for who has none. */
static void write_example(struct buf *b)
{
	buf_add_text(b,
	             "# Which requests are approved at once, which a person is asked about, which are denied.\n"
	             "# The first rule that matches decides; when none does, a person is asked. Without any rule the\n"
	             "# templates decide. For example:\n"
	             "#\n"
	             "# rules:\n"
	             "#   - id: short-tries\n"
	             "#     when: {template: Playground, domain: \"*.example.org\", maxBudget: 10, maxHours: 24}\n"
	             "#     then: approve\n\n"
	             "rules: []\n");
}

void approval_document_yaml(const struct policy *policy, struct buf *b)
{
	const struct approval_policy *rules = rules_of(policy);
	struct arena                  a = { 0 };

	if (!rules->count) {
		write_example(b);
		return;
	}
	buf_add_text(b, "{\"rules\": [\n");
	for (size_t i = 0; i < rules->count; i++)
		buf_addf(b, "  %.*s%s\n", STR_ARG(rule_text(&rules->rules[i], &a)), i + 1 < rules->count ? "," : "");
	buf_add_text(b, "]}\n");
	arena_fini(&a);
}

void approval_document_json(const struct policy *policy, struct json_out *o)
{
	const struct approval_policy *rules = rules_of(policy);

	json_put_array(o, "rules");
	for (size_t i = 0; i < rules->count; i++)
		approval_write(&rules->rules[i], o);
	json_close_array(o);
}

/* --- differences --- */

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
	c->changes->items[c->changes->count++] = (struct policy_change){ key, utf8_line(c->arena, from, SHOWN_MAX),
		                                                         utf8_line(c->arena, to, SHOWN_MAX) };
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
	struct buf b;
	struct str text;

	buf_init(&b, APPROVAL_RULES_MAX * (APPROVAL_ID_MAX + 2));
	for (size_t i = 0; i < rules->count; i++)
		if (find_rule(other, rules->rules[i].id))
			buf_addf(&b, "%s%.*s", b.n ? ", " : "", STR_ARG(rules->rules[i].id));
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

void approval_document_compare(const struct policy *before, const struct policy *after, struct arena *a,
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
