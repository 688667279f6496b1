/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approval_read.c - the document of approval rules, read strictly.
 *
 * Always true: what could be a slip of the pen is a problem, not ignored: an unknown member, a condition without a value, a wildcard that is
 * not a whole label, two rules with one name, a rule behind one that matches everything. All problems are told at once, each with its path.
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

static struct str join(struct arena *a, const char *const *names, size_t count)
{
	struct str all = str_from(names[0]);

	for (size_t i = 1; i < count; i++)
		all = str_format(a, "%.*s, %s", STR_ARG(all), names[i]);
	return all;
}

static void refuse_others(struct reading *r, json_t *object, const char *const *known, size_t count)
{
	struct str  all = join(r->a, known, count);
	const char *name;
	json_t     *value;

	json_object_foreach(object, name, value)
	{
		bool is_known = false;

		for (size_t i = 0; i < count; i++)
			is_known = is_known || strcmp(name, known[i]) == 0;
		if (!is_known)
			problems_add(r->problems, r->path[0] ? r->path : "input",
			             "there is no member '%.50s' here, only: %.*s", name, STR_ARG(all));
	}
}

static bool is_text(struct str text, struct arena *a)
{
	(void)a;
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

/* A text, or a list of them. */
static void read_texts(struct reading *r, json_t *when, const char *name, text_is_ok_fn *is_ok, const char *what,
                       struct approval_texts *ret)
{
	json_t     *value = json_object_get(when, name);
	size_t      count = json_is_array(value) ? json_array_size(value) : 1;
	struct str *items;

	if (!value)
		return;
	if (count == 0 || count > APPROVAL_TEXTS_MAX) {
		problems_add(r->problems, path_to(r, name), "has %zu values, must have 1 to %d", count,
		             APPROVAL_TEXTS_MAX);
		return;
	}
	items = arena_alloc(r->a, count * sizeof(*items));
	for (size_t i = 0; i < count; i++)
		if (!read_text(json_is_array(value) ? json_array_get(value, i) : value, is_ok, r->a, &items[i]))
			problems_add(r->problems, path_to(r, name), "must be %s, or a list of them", what);
	*ret = (struct approval_texts){ items, count };
}

static unsigned role_named(struct str name)
{
	for (size_t i = 0; i < APPROVAL_ROLE_COUNT; i++)
		if (str_eq(name, str_from(approval_roles[i].name)))
			return approval_roles[i].role;
	return 0;
}

static bool is_role(struct str text, struct arena *a)
{
	(void)a;
	return role_named(text) != 0;
}

static void read_limit(struct reading *r, json_t *when, const char *name, int64_t max, int64_t unit, int64_t *ret)
{
	const json_t *value = json_object_get(when, name);
	double        number = json_number_value(value); /* 0 when it is none */

	if (!value)
		return;
	if (!(number * (double)unit >= 1) || number > (double)max)
		problems_add(r->problems, path_to(r, name), "must be a number above 0, at most %lld", (long long)max);
	else
		*ret = llround(number * (double)unit);
}

static void read_when(struct reading *r, json_t *when, struct approval_rule *ret)
{
	static const char *const known[] = { "template", "role", "domain", "group", "maxBudget", "maxHours" };
	struct approval_texts    roles = { 0 };

	if (!json_is_object(when)) {
		problems_add(r->problems, r->path, "must be an object of conditions; {} matches everything");
		return;
	}
	refuse_others(r, when, known, ARRAY_LEN(known));
	read_texts(r, when, "template", is_text, "a name or uuid of a template", &ret->templates);
	read_texts(r, when, "role", is_role, "User, Manager or Admin", &roles);
	read_texts(r, when, "domain", is_domain, "a domain such as gov.uk, or *.gov.uk for all below it",
	           &ret->domains);
	read_texts(r, when, "group", is_text, "a cost report group", &ret->groups);
	read_limit(r, when, "maxBudget", BUDGET_MAX_USD, LEASE_USD, &ret->max_spend);
	read_limit(r, when, "maxHours", HOURS_MAX, LEASE_HOUR_MS, &ret->max_ms);
	for (size_t i = 0; i < roles.count; i++)
		ret->roles |= role_named(roles.items[i]);
}

static bool is_id(struct str text, struct arena *a)
{
	(void)a;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
		      c == '_' || c == '.'))
			return false;
	}
	return text.n > 0 && text.n <= APPROVAL_ID_MAX;
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

static void read_then(struct reading *r, json_t *rule, struct approval_rule *ret)
{
	struct str then;

	if (json_get_text(rule, "then", &then))
		for (int i = 0; i < APPROVAL_VERDICT_COUNT; i++)
			if (str_eq(then, str_from(approval_verdict_names[i]))) {
				ret->then = (enum approval_verdict)i;
				return;
			}
	problems_add(r->problems, path_to(r, "then"), "must be approve, ask or deny");
}

static bool matches_everything(json_t *rule)
{
	json_t *when = json_object_get(rule, "when");

	return json_is_object(when) && json_object_size(when) == 0;
}

static void read_rule(struct reading *r, json_t *rule, struct approval_rule *ret)
{
	static const char *const known[] = { "id", "when", "then" };

	if (!json_is_object(rule)) {
		problems_add(r->problems, r->path, "must be an object with id, when and then");
		return;
	}
	refuse_others(r, rule, known, ARRAY_LEN(known));
	read_id(r, rule, ret);
	read_then(r, rule, ret);
	r->path = path_to(r, "when");
	read_when(r, json_object_get(rule, "when"), ret);
}

static void read_rules(struct reading *r, json_t *rules)
{
	size_t count = json_array_size(rules);
	bool   is_over = false;

	r->rules = arena_alloc(r->a, count * sizeof(*r->rules) + 1);
	for (r->count = 0; r->count < count; r->count++) {
		json_t *rule = json_array_get(rules, r->count);

		r->path = str_format(r->a, "rules.%zu", r->count).p;
		if (is_over)
			problems_add(r->problems, r->path, "is never reached: a rule before it matches everything");
		read_rule(r, rule, &r->rules[r->count]);
		is_over = is_over || matches_everything(rule);
	}
}

static void read_document(struct reading *r, json_t *document)
{
	static const char *const known[] = { "rules" };
	json_t                  *rules = json_object_get(document, "rules");

	if (!json_is_object(document)) {
		problems_add(r->problems, "input", "must be an object with rules");
		return;
	}
	refuse_others(r, document, known, ARRAY_LEN(known));
	if (!json_is_array(rules) || json_array_size(rules) > APPROVAL_RULES_MAX)
		problems_add(r->problems, "rules", "must be a list of at most %d rules", APPROVAL_RULES_MAX);
	else
		read_rules(r, rules);
}

enum rc approval_read(json_t *document, struct arena *a, struct approval_policy *ret, struct problems *problems)
{
	struct reading r = { .a = a, .problems = problems, .path = "" };

	assert(problems->count == 0);
	read_document(&r, document);
	if (problems->count > 0)
		return RC_INVALID;
	*ret = (struct approval_policy){ r.rules, r.count };
	return RC_OK;
}

enum rc approval_parse(struct str text, struct arena *a, struct approval_policy *ret, struct problems *problems)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct err                  e = { 0 };

	assert(problems->count == 0);
	if (str_trim(text).n == 0) {
		*ret = (struct approval_policy){ 0 };
		return RC_OK;
	}
	if (json_parse(text, &document, &e) == RC_OK)
		return approval_read(document, a, ret, problems);
	problems_add(problems, "input", "%s", e.msg);
	return RC_INVALID;
}
