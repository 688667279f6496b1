/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_events.c - the events of leases.
 *
 * Type names and what each detail says are rows of LEASE_NEWS_TABLE. Details are those of the contract; where the seed
 * document has another name for the same fact, both are there. Dollars and hours are numbers without noise, times are
 * ISO 8601 with Z. What a lease does not have (a budget, an end) is left out, not told as zero.
 */
#include "service/lease/lease_private.h"

#include "base/json.h"
#include "base/utf8.h"
#include "kernel/event.h"

static const struct {
	const char *type;
	unsigned    tells;
} table[LEASE_NEWS_COUNT] = {
#define X(name, text, what) [NEWS_LEASE_##name] = { text, what },
	LEASE_NEWS_TABLE(X)
#undef X
};

/* --- members --- */

/* To a millionth of an hour: a duration of 20 minutes is 0.333333. */
static struct json_member hours(const char *name, int64_t ms)
{
	return member_micro(name, (ms * 10 + 18) / 36);
}

/* Of a whole lease: whole hours as in the contract, or less when that would be 0; left out when it has no end. */
static struct json_member hours_of(const struct lease *l)
{
	static const char name[] = "leaseDurationInHours";

	if (lease_hours(l))
		return member_int(name, lease_hours(l));
	return member_if(l->expires_ms || l->duration_ms,
	                 hours(name, l->expires_ms > l->start_ms ? l->expires_ms - l->start_ms : l->duration_ms));
}

/* Of the budget, to a hundredth of a percent. */
static struct json_member share_of_budget(const struct lease *l, int64_t micro_usd)
{
	int64_t hundredth = l->max_spend / 100 ? l->max_spend / 100 : 1;

	return member_if(l->max_spend, member_micro("threshold", micro_usd * 100 / hundredth * 10000));
}

/* --- details --- */

static struct str detail_of(struct arena *a, unsigned tells, const struct lease *l, const struct lease_fact *fact)
{
	struct str            key = JSON_OF(a, member_str("userEmail", l->user_email), member_str("uuid", l->uuid));
	struct str            freeze = fact->freeze_reason.n ? fact->freeze_reason : l->freeze_reason;
	const char           *budget_action = threshold_action_names[fact->budget.action];
	const char           *duration_action = threshold_action_names[fact->duration.action];
	struct lease_forecast forecast;
	bool                  is_open, has_overrun;

	lease_forecast(l, &forecast);
	is_open = forecast.is_known && !l->end_ms;
	has_overrun = is_open && forecast.overrun;

/* clang-format off */
#define IF(what, member)     member_if(tells & TELLS_##what, member)
#define IF_ANY(what, member) member_if(tells & TELLS_##what, member_if_any(member))
	return JSON_OF(a,
		IF(KEY,             member_raw("leaseId", key)),
		IF(UUID,            member_str("leaseId", l->uuid)),
		IF(USER,            member_str("userEmail", l->user_email)),
		IF(ACCOUNT,         member_str("accountId", l->account_id)),
		IF(AWS_ACCOUNT,     member_str("awsAccountId", l->account_id)),
		IF(APPROVER,        member_str("approvedBy", l->approved_by)),
		IF(QUEUED_BY,       member_str("approvedBy", l->queued_by)),
		IF_ANY(APPROVER,    member_str("reason", l->decision_reason)),
		IF_ANY(QUEUED_BY,   member_str("reason", l->decision_reason)),
		IF(REQUEST,         member_bool("requiresManualApproval", true)),
		IF_ANY(REQUEST,     member_str("comments", l->comments)),
		IF(REQUEST,         member_str("templateId", l->template_uuid)),
		IF(REQUEST,         member_str("templateName", l->template_name)),
		IF_ANY(LIMITS,      member_micro("maxBudget", l->max_spend)),
		IF(LIMITS,          hours_of(l)),
		IF_ANY(SPEND,       member_micro("budget", l->max_spend)),
		IF(SPEND,           member_micro("totalSpend", l->cost)),
		IF(EXPIRY,          member_time("leaseExpirationDate", l->expires_ms)),
		IF(EXPIRY,          member_time("expirationDate", l->expires_ms)),
		IF_ANY(BLUEPRINT,   member_str("blueprintName", l->blueprint_name)),
		member_if((tells & TELLS_BLUEPRINT) && !l->blueprint_name.n, member_raw("blueprintName", STR("null"))),
		IF(DENIER,          member_str("deniedBy", l->decided_by)),
		IF_ANY(DENIER,      member_str("reason", l->decision_reason)),
		IF(FREEZE_REASON,   member_raw("reason", freeze)),
		IF(END_REASON,      member_raw("reason", l->end_reason)),
		IF(END_REASON,      member_str("terminatedBy", l->ended_by)),
		IF(TEXT,            member_str("reason", fact->text)),
		IF(BUDGET_ALERT,    member_micro("budgetThresholdTriggered", fact->budget.at)),
		IF(BUDGET_ALERT,    member_word("actionRequested", budget_action)),
		IF(BUDGET_ALERT,    share_of_budget(l, fact->budget.at)),
		IF(BUDGET_ALERT,    member_micro("alertThreshold", fact->budget.at)),
		IF(BUDGET_ALERT,    member_micro("currentSpend", l->cost)),
		IF(DURATION_ALERT,  hours("triggeredDurationThreshold", fact->duration.at)),
		IF(DURATION_ALERT,  hours_of(l)),
		IF(DURATION_ALERT,  member_word("actionRequested", duration_action)),
		IF(FORECAST,        member_if(forecast.is_known, member_micro("estimatedSpend", forecast.estimated))),
		IF(FORECAST,        member_if(is_open, member_micro("projectedSpend", forecast.projected))),
		IF(FORECAST,        member_if(has_overrun, member_micro("possibleOverrun", forecast.overrun))),
		IF_ANY(VALUES,      member_micro("maxSpend", l->max_spend)),
		IF_ANY(VALUES,      member_raw("budgetThresholds", l->budget_thresholds)),
		IF_ANY(VALUES,      member_time("expirationDate", l->expires_ms)),
		IF_ANY(VALUES,      member_raw("durationThresholds", l->duration_thresholds)),
		IF_ANY(VALUES,      member_str("costReportGroup", l->cost_group)));
#undef IF_ANY
#undef IF
	/* clang-format on */
}

enum rc lease_tell(struct session *s, enum lease_news news, const struct lease *l, const struct lease_fact *fact,
                   const struct actor *by, struct err *e)
{
	static const struct lease_fact none;
	struct arena                  *a = session_arena(s);

	return session_tell(s, table[news].type, str_format(a, "lease/%.*s", STR_ARG(l->uuid)), by->name,
	                    by->request_id, detail_of(a, table[news].tells, l, fact ? fact : &none), e);
}

/* --- reasons --- */

struct str reason_of_comment(struct arena *a, const char *type, struct str comment)
{
	return JSON_OF(a, member_word("type", type), member_str("comment", utf8_line(a, comment, REASON_MAX)));
}

/* The known spend, and the estimate if that decided. */
static struct str reason_of_spend(struct arena *a, const struct lease_watch *w, struct json_member threshold)
{
	return JSON_OF(a, member_word("type", "BudgetExceeded"), threshold,
	               member_if_any(member_micro("budget", w->lease->max_spend)),
	               member_micro("totalSpend", w->lease->cost),
	               member_if(w->is_by_forecast, member_micro("estimatedSpend", w->forecast.estimated)),
	               member_if(w->is_by_forecast, member_micro("projectedSpend", w->forecast.projected)));
}

struct str reason_of_end(struct arena *a, const struct lease_watch *w)
{
	if (!w->is_over_budget)
		return JSON_OF(a, member_word("type", "Expired"), hours_of(w->lease));
	return reason_of_spend(a, w, (struct json_member){ 0 });
}

struct str reason_of_freeze(struct arena *a, const struct lease_watch *w)
{
	int64_t at = w->is_by_forecast ? w->lease->max_spend : w->freeze.at;

	if (!w->is_by_forecast && !w->freezes_by_budget)
		return JSON_OF(a, member_word("type", "Expired"), hours("triggeredDurationThreshold", at),
		               hours_of(w->lease));
	return reason_of_spend(a, w, member_micro("triggeredBudgetThreshold", at));
}
