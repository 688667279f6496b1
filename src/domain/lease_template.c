/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_template.c - what the operator allows at most: a budget, a time, a cost group.
 *
 * Always true: the maxima hold also where the operator does not demand a value; a maximum itself is allowed.
 *
 * Not here: whether the fields of a request are well-formed (http/).
 */
#include "domain/lease_template.h"

#include <stdio.h>

const char *const template_visibility_names[TEMPLATE_VISIBILITY_COUNT] = { "PUBLIC", "PRIVATE" };

enum { NUMBER_SIZE = 40 };

/* 50500000 of 1000000 is "50.5": as a person would write it. */
static const char *as_number(int64_t value, int64_t unit, char ret[NUMBER_SIZE])
{
	(void)snprintf(ret, NUMBER_SIZE, "%.10g", (double)value / (double)unit); /* 17 characters at most */
	return ret;
}

/* value > max * unit, without computing what may be too large. */
static bool is_more_than(int64_t value, int64_t max, int64_t unit)
{
	return value > 0 && (value - 1) / unit >= max;
}

static void check_budget(int64_t max_spend, const struct policy *policy, struct problems *ret)
{
	char text[NUMBER_SIZE];

	if (max_spend == 0 && policy->requires_budget)
		problems_add(ret, "maxSpend", "a maximum spend is required, of at most %lld dollars",
		             (long long)policy->budget_max_usd);
	if (is_more_than(max_spend, policy->budget_max_usd, LEASE_USD))
		problems_add(ret, "maxSpend", "%s dollars is more than the %lld that are allowed",
		             as_number(max_spend, LEASE_USD, text), (long long)policy->budget_max_usd);
}

static void check_duration(const char *field, int64_t duration_ms, const struct policy *policy, struct problems *ret)
{
	char text[NUMBER_SIZE];

	if (is_more_than(duration_ms, policy->duration_max_hours, LEASE_HOUR_MS))
		problems_add(ret, field, "%s hours is longer than the %lld that are allowed",
		             as_number(duration_ms, LEASE_HOUR_MS, text), (long long)policy->duration_max_hours);
}

static void check_group(struct str group, const struct policy *policy, struct problems *ret)
{
	if (group.n == 0) {
		if (policy->requires_cost_group)
			problems_add(ret, "costReportGroup",
			             "a cost report group is required, one of the %zu configured ones",
			             policy->cost_group_count);
		return;
	}
	for (size_t i = 0; i < policy->cost_group_count; i++)
		if (str_eq(group, policy->cost_groups[i]))
			return;
	problems_add(ret, "costReportGroup", "\"%.*s\" is not one of the %zu configured cost report groups",
	             STR_ARG(group), policy->cost_group_count);
}

void template_check(const struct lease_template *t, const struct policy *policy, struct problems *ret)
{
	check_budget(t->max_spend, policy, ret);
	if (t->duration_ms == 0 && policy->requires_duration)
		problems_add(ret, "leaseDurationInHours", "a duration is required, of at most %lld hours",
		             (long long)policy->duration_max_hours);
	check_duration("leaseDurationInHours", t->duration_ms, policy, ret);
	check_group(t->cost_group, policy, ret);
}

/* A lease that has not begun has no end yet, only what was agreed; afterwards its end decides. */
void lease_check_limits(const struct lease *l, const struct policy *policy, struct problems *ret)
{
	bool has_begun = l->status != LEASE_PENDING_APPROVAL && l->status != LEASE_PROVISIONING;

	check_budget(l->max_spend, policy, ret);
	if (l->expires_ms > 0 && l->start_ms > 0)
		check_duration("expirationDate", l->expires_ms - l->start_ms, policy, ret);
	else if (!has_begun && l->duration_ms > 0)
		check_duration("leaseDurationInHours", l->duration_ms, policy, ret);
	else if (policy->requires_duration)
		problems_add(ret, has_begun ? "expirationDate" : "leaseDurationInHours",
		             "an end is required, at most %lld hours after the start",
		             (long long)policy->duration_max_hours);
	check_group(l->cost_group, policy, ret);
}
