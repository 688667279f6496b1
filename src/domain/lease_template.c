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

#include "base/clock.h"

const char *const template_visibility_names[TEMPLATE_VISIBILITY_COUNT] = { "PUBLIC", "PRIVATE" };

enum { NUMBER_SIZE = 60 };

/* "7 days 2 hours": as a person would say it; a part of a minute counts as one. */
static const char *as_time(int64_t ms, char ret[NUMBER_SIZE])
{
	static const struct {
		const char *name;
		int64_t     minutes;
	} units[] = { { "day", 1440 }, { "hour", 60 }, { "minute", 1 } };
	int64_t rest = ms / 60000 + (ms % 60000 != 0);
	size_t  n = 0;

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		int64_t count = rest / units[i].minutes;

		rest %= units[i].minutes;
		if (count || (n == 0 && i + 1 == ARRAY_LEN(units)))
			n += (size_t)snprintf(ret + n, NUMBER_SIZE - n, "%s%lld %s%s", n ? " " : "", (long long)count,
			                      units[i].name, count == 1 ? "" : "s");
	}
	return ret;
}

/* value > max * unit, without computing what may be too large. */
static bool is_more_than(int64_t value, int64_t max, int64_t unit)
{
	return value > 0 && (value - 1) / unit >= max;
}

static void check_budget(int64_t max_spend, const struct policy *policy, struct problems *ret)
{
	if (max_spend == 0 && policy->requires_budget)
		problems_add(ret, "maxSpend", "a maximum spend is required, of at most %lld dollars (leases.maxBudget)",
		             (long long)policy->budget_max_usd);
	if (is_more_than(max_spend, policy->budget_max_usd, LEASE_USD))
		problems_add(ret, "maxSpend", "%.10g dollars is more than the %lld that leases.maxBudget allows",
		             (double)max_spend / LEASE_USD, (long long)policy->budget_max_usd);
}

/* start_ms: of a lease that has begun; 0: it has not, or it is a template. */
static void check_duration(const char *field, int64_t start_ms, int64_t duration_ms, const struct policy *policy,
                           struct problems *ret)
{
	char text[NUMBER_SIZE], most[NUMBER_SIZE], until[ISO_TIME_SIZE];

	if (!is_more_than(duration_ms, policy->duration_max_hours, LEASE_HOUR_MS))
		return;
	(void)as_time(duration_ms, text);
	(void)as_time(policy->duration_max_hours * LEASE_HOUR_MS, most);
	if (!start_ms)
		problems_add(ret, field, "%s is longer than the %s that leases.maxDurationHours allows", text, most);
	else
		problems_add(ret, field,
		             "%s after its start is longer than the %s that leases.maxDurationHours allows: at the "
		             "latest it ends at %s",
		             text, most,
		             iso_time(start_ms / 1000 + policy->duration_max_hours * (LEASE_HOUR_MS / 1000), until).p);
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
	char most[NUMBER_SIZE];

	check_budget(t->max_spend, policy, ret);
	if (t->duration_ms == 0 && policy->requires_duration)
		problems_add(ret, "leaseDurationInHours",
		             "a duration is required, of at most %s (leases.maxDurationHours)",
		             as_time(policy->duration_max_hours * LEASE_HOUR_MS, most));
	check_duration("leaseDurationInHours", 0, t->duration_ms, policy, ret);
	check_group(t->cost_group, policy, ret);
}

/* A lease that has not begun has no end yet, only what was agreed; afterwards its end decides. */
void lease_check_limits(const struct lease *l, const struct policy *policy, struct problems *ret)
{
	char most[NUMBER_SIZE];
	bool has_begun = l->status != LEASE_PENDING_APPROVAL && l->status != LEASE_PROVISIONING;

	check_budget(l->max_spend, policy, ret);
	if (l->expires_ms > 0 && l->start_ms > 0)
		check_duration("expirationDate", l->start_ms, l->expires_ms - l->start_ms, policy, ret);
	else if (!has_begun && l->duration_ms > 0)
		check_duration("leaseDurationInHours", 0, l->duration_ms, policy, ret);
	else if (policy->requires_duration)
		problems_add(ret, has_begun ? "expirationDate" : "leaseDurationInHours",
		             "an end is required, at most %s after the start (leases.maxDurationHours)",
		             as_time(policy->duration_max_hours * LEASE_HOUR_MS, most));
	check_group(l->cost_group, policy, ret);
}
