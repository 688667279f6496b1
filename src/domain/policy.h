/* policy.h - the operator's global configuration: limits, cleanup, sign-in, notices. Pure. */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum { COST_GROUPS_MAX = 100, COST_GROUP_MAX = 50, PROBLEMS_MAX = 64, REGIONS_MAX = 32 };

/* What is wrong with an input: every problem at once. */
struct problem {
	struct str field; /* dotted path, "input" for the whole, or empty */
	struct str message;
};
struct problems {
	struct arena  *arena;
	struct problem items[PROBLEMS_MAX];
	size_t         count; /* more than PROBLEMS_MAX are not kept */
};
void problems_add(struct problems *p, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);

struct policy {
	struct str terms_of_service;
	bool       is_maintenance;

	bool       requires_budget, requires_duration;
	int64_t    budget_max_usd, duration_max_hours, leases_per_user;
	bool       allows_self_approval; /* managers and admins, of their own requests */
	int64_t    ttl_days;
	struct str on_projected_overrun, on_estimated_overrun; /* alert, freeze or end: domain/lease.h */

	int64_t clean_failures_max;   /* numberOfFailedAttemptsToCancelCleanup */
	int64_t clean_retry_wait_sec; /* waitBeforeRetryFailedAttemptSeconds */
	int64_t clean_successes;      /* numberOfSuccessfulAttemptsToFinishCleanup */
	int64_t clean_rerun_wait_sec; /* waitBeforeRerunSuccessfulAttemptSeconds */

	struct str access_portal_url, web_app_url, idp_sign_in_url, idp_sign_out_url, idp_audience;
	int64_t    session_minutes;
	struct str mail_from;

	struct str regions[REGIONS_MAX];
	size_t     region_count;
	struct str cost_groups[COST_GROUPS_MAX];
	size_t     cost_group_count;
	bool       requires_cost_group;

	const struct approval_policy *approval; /* rules for requests; NULL: none, the templates decide */

	int64_t rest_ms; /* how long accounts rest after a cleanup; from the settings, not of the document */

	uint64_t version; /* of the stored document; 0: the defaults */
};

/* The shipped defaults, except for maintenance mode: whoever starts the program wants to use it. */
void policy_defaults(struct policy *ret);
