/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_form.c - between records and the JSON that clients know.
 *
 * Amounts and hours are numbers without noise; times are ISO 8601 in UTC with a Z. A lease shows the members that its
 * status has and leaves out the others; of those, nothing is null. Beside the known members it shows what else is
 * known: who approved or denied it and why, who ended it, since when it waits in line, up to when its cost is complete,
 * what is probably spent beyond that, and how final the cost of an ended one is.
 *
 * Thresholds come in two forms: {"dollarsSpent", "action"} and {"hoursRemaining", "action"}; or {"percentage"} and
 * {"remainingHours"}, whose action may be left out and is ALERT then. They are kept in the first.
 */
#include "http/api/lease_form.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

enum { LEASE_SCHEMA = 3, TEXT_MAX = 8192, PERCENT_MOST = 100 };

/* --- in --- */

const struct threshold_kind budget_kind = {
	"budgetThresholds", "dollarsSpent percentage action",
	"dollarsSpent",     "percentage",
	MICROS_PER_DOLLAR,  DOLLARS_MOST,
	PERCENT_MOST,       true,
};
const struct threshold_kind duration_kind = {
	"durationThresholds", "hoursRemaining remainingHours action",
	"hoursRemaining",     "remainingHours",
	MS_PER_HOUR,          HOURS_MOST,
	HOURS_MOST,           false,
};

static void read_threshold(const struct part *at, const struct threshold_kind *kind, size_t i,
                           struct threshold_form *ret)
{
	bool    is_alias = json_object_get(at->object, kind->alias) != NULL;
	int64_t share = 0;

	part_expect(at, kind->words);
	if (is_alias && json_object_get(at->object, kind->own))
		part_problem(at, kind->alias, "says the same in another way as the member beside it; send one of them");
	if (is_alias && kind->is_share) {
		ret->has_percentage = true;
		(void)part_amount(at, kind->alias, REQUIRED, 1e6, kind->alias_most, &share); /* problems are noted */
		ret->items[i].percentage = (double)share / 1e6;
	} else {
		(void)part_amount(at, is_alias ? kind->alias : kind->own, REQUIRED, kind->scale,
		                  is_alias ? kind->alias_most : kind->most, &ret->items[i].amount);
	}
	(void)part_choice(at, "action", is_alias ? OPTIONAL : REQUIRED, threshold_action_names, THRESHOLD_ACTION_COUNT,
	                  &ret->items[i].action); /* likewise; ALERT otherwise */
}

enum given part_thresholds(const struct part *at, const struct threshold_kind *kind, struct threshold_form *ret)
{
	const json_t *list;
	enum given    given = part_list(at, kind->list, OPTIONAL, THRESHOLDS_MAX, &list);

	*ret = (struct threshold_form){ .count = 0 };
	if (given != GIVEN)
		return given;
	ret->count = json_array_size(list);
	for (size_t i = 0; i < ret->count; i++) {
		char        path[64];
		struct part item = { .body = at->body, .object = json_array_get(list, i), .path = path };

		(void)snprintf(path, sizeof(path), "%s%s.%zu.", at->path, kind->list, i); /* fits */
		if (json_is_object(item.object)) {
			read_threshold(&item, kind, i, ret);
		} else {
			item.path = "";
			path[strlen(path) - 1] = '\0';
			part_problem(&item, path, "must be an object");
		}
	}
	return GIVEN;
}

struct str thresholds_text(const struct threshold_kind *kind, const struct threshold_form *f, int64_t max_spend,
                           struct arena *a)
{
	struct json_out o;
	struct buf      b = BUF(TEXT_MAX);

	buf_add_char(&b, '[');
	for (size_t i = 0; i < f->count; i++) {
		double amount = f->items[i].percentage > 0
		                        ? round((double)max_spend * f->items[i].percentage / PERCENT_MOST)
		                        : (double)f->items[i].amount;

		if (i)
			buf_add_char(&b, ',');
		o = JSON_OUT(&b);
		json_open_object(&o);
		json_put_real(&o, kind->own, amount / kind->scale);
		JSON_PUT(&o, member_word("action", threshold_action_names[f->items[i].action]), member_end());
	}
	buf_add_char(&b, ']');
	return buf_take(&b, a);
}

/* --- out --- */

struct json_member member_duration(int64_t ms)
{
	return member_if(ms != 0, member_micro("leaseDurationInHours", llround((double)ms / MS_PER_HOUR * 1e6)));
}

void form_put_meta(struct json_out *o, int64_t created_ms, int64_t edited_ms, int64_t schema_version)
{
	JSON_PUT(o, member_object("meta"), member_if_any(member_moment("createdTime", created_ms)),
	         member_if_any(member_moment("lastEditTime", edited_ms)), member_int("schemaVersion", schema_version),
	         member_end());
}

/* Of a lease that has, or had, an account, or is next to get one. While it waits and while access is being made it has
 * begun with its approval, for those who need a date. */
static void put_course(struct json_out *o, const struct lease *l)
{
	bool                  has_ended = l->end_ms != 0;
	int64_t               start_ms = l->start_ms ? l->start_ms : l->edited_ms;
	struct lease_forecast f;

	lease_forecast(l, &f);
	JSON_PUT(o, member_if_any(member_str("awsAccountId", l->account_id)),
	         member_str("approvedBy", l->queued_ms ? l->queued_by : l->approved_by),
	         member_if_any(member_str("approvalReason", l->decision_reason)),
	         member_if_any(member_moment("startDate", start_ms)),
	         member_if_any(member_moment("lastCheckedDate", l->last_checked_ms ? l->last_checked_ms : start_ms)),
	         member_if_any(member_moment("expirationDate", l->expires_ms)),
	         member_micro("totalCostAccrued", l->cost), member_if_any(member_moment("costAsOf", l->cost_at_ms)),
	         member_if(has_ended, member_str("costState", l->cost_state.n ? l->cost_state : STR("pending"))),
	         member_if(f.is_known && !l->cost_state.n, member_micro("estimatedSpend", f.estimated)));
	if (f.is_known && !has_ended)
		JSON_PUT(o, member_micro("spendPerHour", f.per_hour), member_micro("projectedSpend", f.projected),
		         member_if_any(member_micro("possibleOverrun", f.overrun)));
}

void form_put_lease(struct json_out *o, const struct lease *l, struct arena *a)
{
	enum lease_group group = lease_group(l->status);

	JSON_PUT(o, member_str("userEmail", l->user_email), member_str("uuid", l->uuid),
	         member_word("status", lease_status_names[lease_shown_status(l)]),
	         member_str("originalLeaseTemplateUuid", l->template_uuid),
	         member_str("originalLeaseTemplateName", l->template_name),
	         member_if_any(member_str("comments", l->comments)),
	         member_if_any(member_str("createdBy", l->created_by)),
	         member_if_any(member_str("blueprintId", l->blueprint_id)),
	         member_if_any(member_str("blueprintName", l->blueprint_name)),
	         member_if_any(member_micro("maxSpend", l->max_spend)),
	         member_if_any(member_raw("budgetThresholds", l->budget_thresholds)), member_duration(l->duration_ms),
	         member_if_any(member_raw("durationThresholds", l->duration_thresholds)),
	         member_if_any(member_str("costReportGroup", l->cost_group)),
	         member_if_any(member_moment("queuedSince", l->queued_ms)));
	if (group == LEASE_GROUP_DENIED)
		JSON_PUT(o, member_if_any(member_str("deniedBy", l->decided_by)),
		         member_if_any(member_str("denyReason", l->decision_reason)));
	if (group == LEASE_GROUP_MONITORED || group == LEASE_GROUP_ENDED || l->queued_ms)
		put_course(o, l);
	if (group == LEASE_GROUP_ENDED)
		JSON_PUT(o, member_if_any(member_moment("endDate", l->end_ms)),
		         member_if_any(member_str("terminatedBy", l->ended_by)),
		         member_if_any(member_raw("endReason", l->end_reason)));
	if (l->status == LEASE_FROZEN)
		JSON_PUT(o, member_if_any(member_str("frozenBy", l->frozen_by)),
		         member_if_any(member_raw("freezeReason", l->freeze_reason)));
	JSON_PUT(o, member_if_any(member_int("ttl", l->ttl_sec)));
	form_put_meta(o, l->created_ms, l->edited_ms, LEASE_SCHEMA);
	json_put_str(o, "leaseId", lease_id(l, a));
}
