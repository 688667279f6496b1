/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.c - the defaults of the operator's configuration, and the list of what is wrong with an input.
 *
 * Always true: a list of problems holds at most PROBLEMS_MAX, each on one line of at most PROBLEM_TEXT_MAX bytes,
 * whatever the input was.
 *
 * Not here: the document itself and how it is read (http/, service/), the limits that follow from it
 * (lease_template.c).
 */
#include "domain/policy.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"

enum { PROBLEM_TEXT_MAX = 400 };

void problems_add(struct problems *p, const char *field, const char *fmt, ...)
{
	char    text[PROBLEM_TEXT_MAX + 1];
	va_list args;

	if (p->count == PROBLEMS_MAX)
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args); /* cut when it is longer */
	va_end(args);
	p->items[p->count++] = (struct problem){
		.field = utf8_line(p->arena, str_from(field), PROBLEM_TEXT_MAX),
		.message = utf8_line(p->arena, str_from(text), PROBLEM_TEXT_MAX),
	};
}

void policy_defaults(struct policy *ret)
{
	*ret = (struct policy){
		.terms_of_service = STR(
		        "# Terms of service\n\nThis account is lent to you for a limited time and budget. "
		        "When either is used up, everything in it is deleted.\n"),
		.requires_budget = true,
		.budget_max_usd = 50,
		.requires_duration = true,
		.duration_max_hours = 168,
		.leases_per_user = 3,
		.ttl_days = 30,
		.on_projected_overrun = STR_INIT("alert"),
		.on_estimated_overrun = STR_INIT("alert"),
		.clean_failures_max = 3,
		.clean_retry_wait_sec = 5,
		.clean_successes = 2,
		.clean_rerun_wait_sec = 30,
		.session_minutes = 60,
		.regions = { STR_INIT("us-east-1") },
		.region_count = 1,
	};
}
