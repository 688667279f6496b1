/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approval_read.c - the document of approval rules, read strictly and written again, by one table of conditions.
 *
 * Always true: a rule that was read, written and read again is the same rule. What could be a slip of the pen is a
 * problem, not ignored: an unknown member, a condition without a value, a wildcard that is not a whole label, two rules
 * with one name, a rule behind one that matches everything. All problems are told at once, each with its path.
 *
 * Not here: what the rules mean (approval.c), where the document is kept (service/).
 */
#include "domain/approval.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "base/json.h"
#include "domain/lease.h"

enum { BUDGET_MAX_USD = 1000000000, HOURS_MAX = 1000000 };

/* Where we are, and where what we find goes to. */
struct reading {
	struct arena         *a;
	struct problems      *problems;
	const char           *path;  /* "" is the document */
	struct approval_rule *rules; /* those before */
	size_t                count;
};

typedef bool text_is_ok_fn(struct str text, struct arena *a);

static const char *path_to(const struct reading *r, const char *name)
{
	return str_format(r->a, "%s%s%s", r->path, r->path[0] ? "." : "", name).p;
}

/* known: "id, when, then". */
static void refuse_others(struct reading *r, json_t *object, struct str known)
{
	const char *name;
	json_t     *value;

	json_object_foreach(object, name, value)
	{
		bool is_known = false;

		for (struct str rest = known; rest.n && !is_known;)
			is_known = str_eq(str_trim(str_cut(&rest, ',')), str_from(name));
		if (!is_known)
			problems_add(r->problems, r->path[0] ? r->path : "input",
			             "there is no member '%.50s' here, only: %.*s", name, STR_ARG(known));
	}
}

/* --- conditions --- */

static bool is_text(struct str text, struct arena *a UNUSED)
{
	return text.n > 0 && text.n <= APPROVAL_TEXT_MAX;
}

/* "gov.uk" or "*.gov.uk": good where an email with it would be. */
static bool is_domain(struct str text, struct arena *a)
{
	if (!is_text(text, a))
		return false;
	if (!str_starts_with(text, STR("*.")))
		return email_is_ok(str_format(a, "x@%.*s", STR_ARG(text)));
	return email_is_ok(str_format(a, "x@x%.*s", (int)text.n - 1, text.p + 1));
}

static bool read_text(const json_t *value, text_is_ok_fn *is_ok, struct arena *a, struct str *ret)
{
	if (!json_is_string(value))
		return false;
	*ret = str_dup(a, str_of(json_string_value(value), json_string_length(value)));
	return is_ok(*ret, a);
}

static unsigned role_named(struct str name)
{
	for (size_t i = 0; i < APPROVAL_ROLE_COUNT; i++)
		if (str_eq(name, str_from(approval_roles[i].name)))
			return approval_roles[i].role;
	return 0;
}

static bool is_role(struct str text, struct arena *a UNUSED)
{
	return role_named(text) != 0;
}

/* Texts, roles (which are texts in the document) or, with a unit, the most of something. */
static const struct condition {
	const char    *name;
	size_t         offset; /* into struct approval_rule */
	text_is_ok_fn *is_ok;
	const char    *what;
	int64_t        unit, most;
} conditions[] = {
	{ "template", offsetof(struct approval_rule, templates), is_text, "a name or uuid of a template" },
	{ "role", offsetof(struct approval_rule, roles), is_role, "User, Manager or Admin" },
	{ "domain", offsetof(struct approval_rule, domains), is_domain,
	  "a domain such as gov.uk, or *.gov.uk for all below it" },
	{ "group", offsetof(struct approval_rule, groups), is_text, "a cost report group" },
	{ "maxBudget", offsetof(struct approval_rule, max_spend), NULL, NULL, LEASE_USD, BUDGET_MAX_USD },
	{ "maxHours", offsetof(struct approval_rule, max_ms), NULL, NULL, LEASE_HOUR_MS, HOURS_MAX },
};

/* A text, or a list of them. */
static void read_texts(struct reading *r, const struct condition *c, const json_t *value, struct approval_texts *ret)
{
	size_t      count = json_is_array(value) ? json_array_size(value) : 1;
	struct str *items;

	if (count == 0 || count > APPROVAL_TEXTS_MAX) {
		problems_add(r->problems, path_to(r, c->name), "has %zu values, must have 1 to %d", count,
		             APPROVAL_TEXTS_MAX);
		return;
	}
	items = arena_alloc(r->a, count * sizeof(*items));
	for (size_t i = 0; i < count; i++)
		if (!read_text(json_is_array(value) ? json_array_get(value, i) : value, c->is_ok, r->a, &items[i]))
			problems_add(r->problems, path_to(r, c->name), "must be %s, or a list of them", c->what);
	*ret = (struct approval_texts){ items, count };
}

static void read_limit(struct reading *r, const struct condition *c, const json_t *value, int64_t *ret)
{
	double number = json_number_value(value); /* 0 when it is none */

	if (!(number * (double)c->unit >= 1) || number > (double)c->most)
		problems_add(r->problems, path_to(r, c->name), "must be a number above 0, at most %lld",
		             (long long)c->most);
	else
		*ret = llround(number * (double)c->unit);
}

static void read_when(struct reading *r, json_t *when, struct approval_rule *ret)
{
	if (!json_is_object(when)) {
		problems_add(r->problems, r->path, "must be an object of conditions; {} matches everything");
		return;
	}
	refuse_others(r, when, STR("template, role, domain, group, maxBudget, maxHours"));
	for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
		const struct condition *c = &conditions[i];
		json_t                 *value = json_object_get(when, c->name);
		void                   *at = (char *)ret + c->offset;
		struct approval_texts   roles = { 0 };

		if (!value)
			continue;
		if (c->unit)
			read_limit(r, c, value, at);
		else
			read_texts(r, c, value, c->is_ok == is_role ? &roles : at);
		for (size_t k = 0; k < roles.count; k++)
			ret->roles |= role_named(roles.items[k]);
	}
}

static void put_condition(struct json_out *o, const struct condition *c, const void *at)
{
	struct str                   names[APPROVAL_ROLE_COUNT];
	struct approval_texts        roles = { names, 0 };
	const struct approval_texts *texts = c->is_ok == is_role ? &roles : at;

	if (c->unit) {
		if (*(const int64_t *)at)
			json_put_real(o, c->name, (double)*(const int64_t *)at / (double)c->unit);
		return;
	}
	for (size_t i = 0; texts == &roles && i < APPROVAL_ROLE_COUNT; i++)
		if (*(const unsigned *)at & approval_roles[i].role)
			names[roles.count++] = str_from(approval_roles[i].name);
	if (texts->count == 1 && texts != &roles) /* roles are always a list */
		json_put_str(o, c->name, texts->items[0]);
	else if (texts->count)
		json_put_texts(o, c->name, texts->items, texts->count);
}

void approval_write(const struct approval_rule *rule, struct json_out *o)
{
	JSON_PUT(o, member_object(NULL), member_str("id", rule->id), member_object("when"));
	for (size_t i = 0; i < ARRAY_LEN(conditions); i++)
		put_condition(o, &conditions[i], (const char *)rule + conditions[i].offset);
	JSON_PUT(o, member_end(), member_word("then", approval_verdict_names[rule->then]), member_end());
}

/* --- rules --- */

static bool is_id(struct str text, struct arena *a UNUSED)
{
	return text.n > 0 && text.n <= APPROVAL_ID_MAX && str_is_of(text, "a-zA-Z0-9_.-");
}

static void read_id(struct reading *r, json_t *rule, struct approval_rule *ret)
{
	if (!read_text(json_object_get(rule, "id"), is_id, r->a, &ret->id)) {
		problems_add(r->problems, path_to(r, "id"), "must have 1 to %d of letters, digits and . _ -",
		             APPROVAL_ID_MAX);
		ret->id = STR("");
	}
	for (size_t i = 0; ret->id.n > 0 && i < r->count; i++)
		if (str_eq(r->rules[i].id, ret->id))
			problems_add(r->problems, path_to(r, "id"), "is that of rule %zu too; each has its own", i);
}

static void read_rule(struct reading *r, json_t *rule, struct approval_rule *ret)
{
	struct str then;
	int        found = APPROVAL_VERDICT_COUNT;

	if (!json_is_object(rule)) {
		problems_add(r->problems, r->path, "must be an object with id, when and then");
		return;
	}
	refuse_others(r, rule, STR("id, when, then"));
	read_id(r, rule, ret);
	if (json_get_text(rule, "then", &then))
		found = str_word(then, approval_verdict_names, APPROVAL_VERDICT_COUNT);
	if (found == APPROVAL_VERDICT_COUNT)
		problems_add(r->problems, path_to(r, "then"), "must be approve, ask or deny");
	else
		ret->then = (enum approval_verdict)found;
	r->path = path_to(r, "when");
	read_when(r, json_object_get(rule, "when"), ret);
}

static void read_rules(struct reading *r, json_t *rules)
{
	size_t count = json_array_size(rules);
	bool   is_over = false;

	r->rules = arena_alloc(r->a, count * sizeof(*r->rules) + 1);
	for (r->count = 0; r->count < count; r->count++) {
		json_t *rule = json_array_get(rules, r->count), *when;

		r->path = str_format(r->a, "rules.%zu", r->count).p;
		if (is_over)
			problems_add(r->problems, r->path, "is never reached: a rule before it matches everything");
		read_rule(r, rule, &r->rules[r->count]);
		when = json_object_get(rule, "when");
		is_over = is_over || (json_is_object(when) && json_object_size(when) == 0);
	}
}

enum rc approval_read(json_t *document, struct arena *a, struct approval_policy *ret, struct problems *problems)
{
	struct reading r = { .a = a, .problems = problems, .path = "" };
	json_t        *rules = json_object_get(document, "rules");

	assert(problems->count == 0);
	if (!json_is_object(document)) {
		problems_add(problems, "input", "must be an object with rules");
		return RC_INVALID;
	}
	refuse_others(&r, document, STR("rules"));
	if (!json_is_array(rules) || json_array_size(rules) > APPROVAL_RULES_MAX)
		problems_add(problems, "rules", "must be a list of at most %d rules", APPROVAL_RULES_MAX);
	else
		read_rules(&r, rules);
	if (problems->count > 0)
		return RC_INVALID;
	*ret = (struct approval_policy){ r.rules, r.count };
	return RC_OK;
}
