/* SPDX-License-Identifier: Apache-2.0 */
/*
 * configuration_api.c - the operator's policy as the web pages need it. What is about sign-in and mail is left out on
 * purpose: everybody who is signed in reads this, also during maintenance.
 */
#include "base/json.h"
#include "domain/policy.h"
#include "http/api/api.h"
#include "http/api/auth.h"
#include "http/api/rights.h"
#include "http/api/view.h"

static void put_policy(struct json_out *o, struct request *r, const void *thing)
{
	const struct policy *p = thing;
	const struct auth   *auth = r->api->options.auth;

	JSON_PUT(o, member_str("termsOfService", p->terms_of_service),
	         member_bool("maintenanceMode", p->is_maintenance), member_object("leases"),
	         member_bool("requireMaxBudget", p->requires_budget), member_int("maxBudget", p->budget_max_usd),
	         member_bool("requireMaxDuration", p->requires_duration),
	         member_int("maxDurationHours", p->duration_max_hours),
	         member_int("maxLeasesPerUser", p->leases_per_user), member_int("ttl", p->ttl_days), member_end(),
	         member_object("cleanup"), member_int("numberOfFailedAttemptsToCancelCleanup", p->clean_failures_max),
	         member_int("waitBeforeRetryFailedAttemptSeconds", p->clean_retry_wait_sec),
	         member_int("numberOfSuccessfulAttemptsToFinishCleanup", p->clean_successes),
	         member_int("waitBeforeRerunSuccessfulAttemptSeconds", p->clean_rerun_wait_sec), member_end(),
	         member_object("auth"), member_str("awsAccessPortalUrl", p->access_portal_url),
	         member_str("webAppUrl", p->web_app_url.n ? p->web_app_url : auth->o.web_app_url), member_end());
	json_put_texts(o, "isbManagedRegions", p->regions, p->region_count);
	json_put_texts(o, "costReportGroups", p->cost_groups, p->cost_group_count);
	json_put_bool(o, "requireCostReportGroup", p->requires_cost_group);
}

HANDLER(configuration_show, view_reply(r, 200, put_policy, rights_policy(r)))
