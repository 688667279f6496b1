/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approval.c - which rule decides about a request, and why.
 *
 * Always true:
 *   1. The first rule whose conditions all hold decides; without one a person is asked.
 *   2. A wildcard stands for whole labels: *.gov.uk is for a.gov.uk and a.b.gov.uk, not for gov.uk and not for
 *      evilgov.uk. [is_in_domain()]
 *   3. What a request leaves open is no smaller than any limit: a rule with maxBudget does not match one without a
 *      budget.
 *   4. The explanation comes from the same tests as the verdict; there is no second reading of the rules.
 *
 * Not here: the document (approval_read.c), what follows from the verdict (service/).
 */
#include "domain/approval.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "domain/lease.h"

enum { WHY_MAX = 1000 };

const char *const approval_verdict_names[APPROVAL_VERDICT_COUNT] = { "approve", "ask", "deny" };

const struct approval_role approval_roles[APPROVAL_ROLE_COUNT] = {
	{ ROLE_USER, "User" },
	{ ROLE_MANAGER, "Manager" },
	{ ROLE_ADMIN, "Admin" },
};

typedef bool text_matches_fn(struct str pattern, struct str value);

static bool is_same(struct str pattern, struct str value)
{
	return str_eq(pattern, value);
}

static bool is_in_domain(struct str pattern, struct str domain)
{
	struct str below = str_of(pattern.p + 1, pattern.n - 1); /* ".gov.uk" of "*.gov.uk" */

	if (pattern.p[0] != '*')
		return str_eq_nocase(pattern, domain);
	return domain.n > below.n && str_eq_nocase(below, str_of(domain.p + domain.n - below.n, below.n));
}

static bool is_one_of(const struct approval_texts *texts, struct str value, text_matches_fn *matches)
{
	for (size_t i = 0; i < texts->count; i++)
		if (matches(texts->items[i], value))
			return true;
	return texts->count == 0;
}

static bool is_within(int64_t value, int64_t max)
{
	return max == 0 || (value > 0 && value <= max);
}

/* What is between two reasons. */
static void begin_reason(struct buf *why)
{
	if (why->n > 0)
		buf_add_text(why, "; ");
}

static void say_texts(struct buf *why, const char *what, struct str value, const struct approval_texts *texts)
{
	begin_reason(why);
	if (value.n > 0)
		buf_addf(why, "the %s is %.*s, not ", what, STR_ARG(value));
	else
		buf_addf(why, "there is no %s; it would have to be ", what);
	for (size_t i = 0; i < texts->count; i++)
		buf_addf(why, "%s%.*s", i ? " or " : "", STR_ARG(texts->items[i]));
}

static void say_limit(struct buf *why, int64_t value, int64_t max, int64_t unit, const char *what, const char *units)
{
	begin_reason(why);
	if (value > 0)
		buf_addf(why, "the %s is %.10g %s, more than %.10g", what, (double)value / (double)unit, units,
		         (double)max / (double)unit);
	else
		buf_addf(why, "there is no %s; it would have to be at most %.10g %s", what, (double)max / (double)unit,
		         units);
}

static void say_roles(struct buf *why, unsigned roles)
{
	const char *before = "the owner is not ";

	begin_reason(why);
	for (size_t i = 0; i < APPROVAL_ROLE_COUNT; i++)
		if (roles & approval_roles[i].role) {
			buf_addf(why, "%s%s", before, approval_roles[i].name);
			before = " or ";
		}
}

/* Tests every condition, with a reason for each that fails. The verdict does not depend on what fits into them. */
static bool rule_matches(const struct approval_rule *rule, const struct approval_question *q, struct buf *why)
{
	struct str domain = q->email;
	bool       has_template = is_one_of(&rule->templates, q->template_name, is_same) ||
	                    is_one_of(&rule->templates, q->template_uuid, is_same);
	bool has_role = rule->roles == 0 || (rule->roles & q->roles) != 0;
	bool has_group = is_one_of(&rule->groups, q->cost_group, is_same);
	bool is_cheap = is_within(q->max_spend, rule->max_spend);
	bool is_short = is_within(q->duration_ms, rule->max_ms);
	bool has_domain;

	(void)str_cut(&domain, '@');
	has_domain = is_one_of(&rule->domains, domain, is_in_domain);
	if (!has_template)
		say_texts(why, "template", q->template_name, &rule->templates);
	if (!has_role)
		say_roles(why, rule->roles);
	if (!has_domain)
		say_texts(why, "domain", domain, &rule->domains);
	if (!has_group)
		say_texts(why, "cost report group", q->cost_group, &rule->groups);
	if (!is_cheap)
		say_limit(why, q->max_spend, rule->max_spend, LEASE_USD, "budget", "dollars");
	if (!is_short)
		say_limit(why, q->duration_ms, rule->max_ms, LEASE_HOUR_MS, "duration", "hours");
	return has_template && has_role && has_domain && has_group && is_cheap && is_short;
}

void approval_evaluate(const struct approval_policy *policy, const struct approval_question *question,
                       struct arena *explain, struct approval_answer *ret)
{
	CLEANUP(buf_fini) struct buf why = BUF(WHY_MAX);

	*ret = (struct approval_answer){ .verdict = APPROVAL_ASK };
	if (explain)
		ret->notes = arena_alloc(explain, (policy->count + 1) * sizeof(*ret->notes));
	for (size_t i = 0; i < policy->count; i++) {
		const struct approval_rule *rule = &policy->rules[i];
		bool                        matches;

		buf_reset(&why);
		matches = rule_matches(rule, question, &why);
		if (explain)
			ret->notes[ret->note_count++] = (struct approval_note){
				.rule = rule->id,
				.matches = matches,
				.why = matches ? STR("all its conditions hold")
				               : utf8_line(explain, buf_str(&why), WHY_MAX),
			};
		if (matches) {
			ret->verdict = rule->then;
			ret->rule = rule->id;
			return;
		}
	}
}
