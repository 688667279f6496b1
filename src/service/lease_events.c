/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_events.c - the events of leases.
 *
 * Type names and what each detail says are rows of LEASE_NEWS_TABLE. Details are those of the contract; where the seed document has a field
 * of another name for the same fact, both are there. Dollars and hours are numbers without noise, times are ISO 8601 with Z. What a lease
 * does not have (no budget, no end) is left out of the detail rather than told as zero.
 */
#include "service/lease_events.h"

#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "kernel/event.h"
#include "service/lease_flow.h"

/* A request's comments and an end's reason may each need six bytes for one ("\u001f"). */
enum { LEASE_DETAIL_MAX = 32768, NEWS_REASON_MAX = 8192, MICRO = 1000000, HOUR_MS = 3600000 };

static const struct {
	const char *type;
	unsigned    tells;
} table[LEASE_NEWS_COUNT] = {
#define X(name, text, what) [NEWS_LEASE_##name] = { text, what },
	LEASE_NEWS_TABLE(X)
#undef X
};

/* --- values --- */

static void put_usd(struct json_out *o, const char *name, int64_t micro_usd)
{
	json_put_real(o, name, (double)micro_usd / MICRO);
}

static void put_usd_if_any(struct json_out *o, const char *name, int64_t micro_usd)
{
	if (micro_usd)
		put_usd(o, name, micro_usd);
}

/* To a millionth of an hour: a duration of 20 minutes is 0.333333. */
static void put_hours(struct json_out *o, const char *name, int64_t ms)
{
	json_put_real(o, name, (double)((ms * 10 + 18) / 36) / MICRO);
}

static void put_time(struct json_out *o, const char *name, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	json_put_str(o, name, iso_time(ms / 1000, text));
}

static void put_if_any(struct json_out *o, const char *name, struct str text)
{
	if (text.n)
		json_put_str(o, name, text);
}

/* Of a whole lease, rounded as the contract has it, unless that would be nothing; for one that has no end it is left out. */
static void put_lease_hours(struct json_out *o, const struct lease *l)
{
	if (lease_hours(l))
		json_put_int(o, "leaseDurationInHours", lease_hours(l));
	else if (l->expires_ms || l->duration_ms)
		put_hours(o, "leaseDurationInHours",
		          l->expires_ms > l->start_ms ? l->expires_ms - l->start_ms : l->duration_ms);
}

void lease_put_key(struct json_out *o, const char *name, const struct lease *lease)
{
	json_put_object(o, name);
	json_put_str(o, "userEmail", lease->user_email);
	json_put_str(o, "uuid", lease->uuid);
	json_close_object(o);
}

/* --- details --- */

static void put_people(struct json_out *o, unsigned tells, const struct lease *l)
{
	if (tells & TELLS_KEY)
		lease_put_key(o, "leaseId", l);
	if (tells & TELLS_UUID)
		json_put_str(o, "leaseId", l->uuid);
	if (tells & TELLS_USER)
		json_put_str(o, "userEmail", l->user_email);
	if (tells & TELLS_ACCOUNT)
		json_put_str(o, "accountId", l->account_id);
	if (tells & TELLS_AWS_ACCOUNT)
		json_put_str(o, "awsAccountId", l->account_id);
	if (tells & TELLS_APPROVER)
		json_put_str(o, "approvedBy", l->approved_by);
	if (tells & TELLS_QUEUED_BY)
		json_put_str(o, "approvedBy", l->queued_by);
}

static void put_request(struct json_out *o, const struct lease *l)
{
	json_put_bool(o, "requiresManualApproval", true);
	put_if_any(o, "comments", l->comments);
	json_put_str(o, "templateId", l->template_uuid);
	json_put_str(o, "templateName", l->template_name);
}

static void put_reasons(struct json_out *o, unsigned tells, const struct lease *l, const struct lease_fact *fact)
{
	if (tells & TELLS_DENIER) {
		json_put_str(o, "deniedBy", l->decided_by);
		put_if_any(o, "reason", l->decision_reason);
	}
	if (tells & TELLS_FREEZE_REASON)
		json_put_raw(o, "reason", fact->freeze_reason.n ? fact->freeze_reason : l->freeze_reason);
	if (tells & TELLS_END_REASON) {
		json_put_raw(o, "reason", l->end_reason);
		json_put_str(o, "terminatedBy", l->ended_by);
	}
	if (tells & TELLS_TEXT)
		json_put_str(o, "reason", fact->text);
}

static void put_figures(struct json_out *o, unsigned tells, const struct lease *l)
{
	if (tells & TELLS_LIMITS) {
		put_usd_if_any(o, "maxBudget", l->max_spend);
		put_lease_hours(o, l);
	}
	if (tells & TELLS_SPEND) {
		put_usd_if_any(o, "budget", l->max_spend);
		put_usd(o, "totalSpend", l->cost);
	}
	if (tells & TELLS_EXPIRY) {
		put_time(o, "leaseExpirationDate", l->expires_ms);
		put_time(o, "expirationDate", l->expires_ms);
	}
	if (tells & TELLS_BLUEPRINT) {
		if (l->blueprint_name.n)
			json_put_str(o, "blueprintName", l->blueprint_name);
		else
			json_put_null(o, "blueprintName");
	}
}

static void put_budget_alert(struct json_out *o, const struct lease *l, const struct budget_threshold *t)
{
	put_usd(o, "budgetThresholdTriggered", t->micro_usd);
	json_put_str(o, "actionRequested", str_from(threshold_action_names[t->action]));
	if (l->max_spend)
		json_put_real(o, "threshold",
		              (double)(t->micro_usd * 100 / (l->max_spend / 100 ? l->max_spend / 100 : 1)) / 100);
	put_usd(o, "alertThreshold", t->micro_usd);
	put_usd(o, "currentSpend", l->cost);
}

static void put_duration_alert(struct json_out *o, const struct lease *l, const struct duration_threshold *t)
{
	put_hours(o, "triggeredDurationThreshold", t->remaining_ms);
	put_lease_hours(o, l);
	json_put_str(o, "actionRequested", str_from(threshold_action_names[t->action]));
}

static void put_values(struct json_out *o, const struct lease *l)
{
	put_usd_if_any(o, "maxSpend", l->max_spend);
	if (l->budget_thresholds.n)
		json_put_raw(o, "budgetThresholds", l->budget_thresholds);
	if (l->expires_ms)
		put_time(o, "expirationDate", l->expires_ms);
	if (l->duration_thresholds.n)
		json_put_raw(o, "durationThresholds", l->duration_thresholds);
	put_if_any(o, "costReportGroup", l->cost_group);
}

static void put_detail(struct json_out *o, unsigned tells, const struct lease *l, const struct lease_fact *fact)
{
	put_people(o, tells, l);
	if (tells & TELLS_REQUEST)
		put_request(o, l);
	put_figures(o, tells, l);
	put_reasons(o, tells, l, fact);
	if (tells & TELLS_BUDGET_ALERT)
		put_budget_alert(o, l, &fact->budget);
	if (tells & TELLS_DURATION_ALERT)
		put_duration_alert(o, l, &fact->duration);
	if (tells & TELLS_PROJECTION)
		put_usd(o, "projectedSpend", fact->projected);
	if (tells & TELLS_VALUES)
		put_values(o, l);
}

enum rc lease_tell(struct session *s, enum lease_news news, const struct lease *l, const struct lease_fact *fact,
                   const struct actor *by, struct err *e)
{
	static const struct lease_fact none;
	CLEANUP(buf_fini) struct buf   b;
	struct json_out                o;

	buf_init(&b, LEASE_DETAIL_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	put_detail(&o, table[news].tells, l, fact ? fact : &none);
	json_close_object(&o);
	assert(!b.is_full);
	return lease_emit(s, table[news].type, l, by->name, by->request_id, str_dup(session_arena(s), buf_str(&b)), e);
}

enum rc lease_emit(struct session *s, const char *type, const struct lease *lease, struct str actor,
                   struct str request_id, struct str detail, struct err *e)
{
	struct event event = { .type = str_from(type),
		               .subject = str_format(session_arena(s), "lease/%.*s", STR_ARG(lease->uuid)),
		               .actor = actor,
		               .request_id = request_id,
		               .detail = detail };

	return session_emit(s, &event, e);
}

/* --- reasons --- */

static void open_reason(struct json_out *o, struct buf *b, const char *type)
{
	buf_init(b, NEWS_REASON_MAX);
	json_out_init(o, b);
	json_open_object(o);
	json_put_str(o, "type", str_from(type));
}

static struct str close_reason(struct json_out *o, struct buf *b, struct arena *a)
{
	json_close_object(o);
	assert(!b->is_full);
	return str_dup(a, buf_str(b));
}

struct str reason_of_comment(struct arena *a, const char *type, struct str comment)
{
	CLEANUP(buf_fini) struct buf b;
	struct json_out              o;

	open_reason(&o, &b, type);
	json_put_str(&o, "comment", comment);
	return close_reason(&o, &b, a);
}

struct str reason_of_end(struct arena *a, const struct lease *l, enum lease_event event)
{
	CLEANUP(buf_fini) struct buf b;
	struct json_out              o;

	assert(event == LEASE_ON_EXPIRE || event == LEASE_ON_EXCEED);
	open_reason(&o, &b, event == LEASE_ON_EXPIRE ? "Expired" : "BudgetExceeded");
	put_figures(&o, event == LEASE_ON_EXCEED ? TELLS_SPEND : 0, l);
	if (event == LEASE_ON_EXPIRE)
		put_lease_hours(&o, l);
	return close_reason(&o, &b, a);
}

struct str reason_of_budget_freeze(struct arena *a, const struct lease *l, const struct budget_threshold *by)
{
	CLEANUP(buf_fini) struct buf b;
	struct json_out              o;

	open_reason(&o, &b, "BudgetExceeded");
	put_usd(&o, "triggeredBudgetThreshold", by->micro_usd);
	put_figures(&o, TELLS_SPEND, l);
	return close_reason(&o, &b, a);
}

struct str reason_of_duration_freeze(struct arena *a, const struct lease *l, const struct duration_threshold *by)
{
	CLEANUP(buf_fini) struct buf b;
	struct json_out              o;

	open_reason(&o, &b, "Expired");
	put_hours(&o, "triggeredDurationThreshold", by->remaining_ms);
	put_lease_hours(&o, l);
	return close_reason(&o, &b, a);
}
