/* SPDX-License-Identifier: Apache-2.0 */
/*
 * configuration_api.c - the operator's policy as the web pages need it. What is about sign-in and mail is left out on purpose: everybody who is
 * signed in reads this, also during maintenance.
 */
#include "base/json.h"
#include "domain/policy.h"
#include "http/api.h"
#include "http/jsend.h"
#include "http/rights.h"

static void put_limits(struct json_out *o, const struct policy *p)
{
	json_put_object(o, "leases");
	json_put_bool(o, "requireMaxBudget", p->requires_budget);
	json_put_int(o, "maxBudget", p->budget_max_usd);
	json_put_bool(o, "requireMaxDuration", p->requires_duration);
	json_put_int(o, "maxDurationHours", p->duration_max_hours);
	json_put_int(o, "maxLeasesPerUser", p->leases_per_user);
	json_put_int(o, "ttl", p->ttl_days);
	json_close_object(o);
	json_put_object(o, "cleanup");
	json_put_int(o, "numberOfFailedAttemptsToCancelCleanup", p->clean_failures_max);
	json_put_int(o, "waitBeforeRetryFailedAttemptSeconds", p->clean_retry_wait_sec);
	json_put_int(o, "numberOfSuccessfulAttemptsToFinishCleanup", p->clean_successes);
	json_put_int(o, "waitBeforeRerunSuccessfulAttemptSeconds", p->clean_rerun_wait_sec);
	json_close_object(o);
}

static void put_texts(struct json_out *o, const char *name, const struct str *texts, size_t count)
{
	json_put_array(o, name);
	for (size_t i = 0; i < count; i++)
		json_add_str(o, texts[i]);
	json_close_array(o);
}

void handle_configuration_show(struct request *r)
{
	const struct policy *p;
	struct json_out      o;
	struct caller        by;

	if (!rights_enter(r, &by))
		return;
	p = rights_policy(r);
	o = jsend_begin(r);
	json_put_object(&o, "data");
	json_put_str(&o, "termsOfService", p->terms_of_service);
	json_put_bool(&o, "maintenanceMode", p->is_maintenance);
	put_limits(&o, p);
	json_put_object(&o, "auth");
	json_put_str(&o, "awsAccessPortalUrl", p->access_portal_url);
	json_put_str(&o, "webAppUrl", p->web_app_url);
	json_close_object(&o);
	put_texts(&o, "isbManagedRegions", p->regions, p->region_count);
	put_texts(&o, "costReportGroups", p->cost_groups, p->cost_group_count);
	json_put_bool(&o, "requireCostReportGroup", p->requires_cost_group);
	json_close_object(&o);
	reply_send(r, 200);
}
