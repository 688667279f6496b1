/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_form.c - between records and the JSON that clients know.
 *
 * Amounts and hours are numbers without noise; times are ISO 8601 in UTC with a Z. A lease shows the members that its status has and leaves out
 * the others; of those, nothing is null. Beside the known members it shows what else is known: who denied it and why, who ended it, since
 * when it waits in line, up to when its cost is complete.
 *
 * Thresholds come in two forms: {"dollarsSpent", "action"} and {"hoursRemaining", "action"}; or {"percentage"} and {"remainingHours"}, whose
 * action may be left out and is ALERT then. They are kept in the first.
 */
#include "http/lease_form.h"

#include <math.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"

enum { LEASE_SCHEMA = 3, TEXT_MAX = 8192, PERCENT_MOST = 100 };

/* --- in --- */

/* The names of one kind of threshold. */
struct threshold_kind {
	const char *list, *words;
	const char *own, *alias;
	double      own_scale, own_most;
	double      alias_scale, alias_most; /* scale 0: a share */
};

static const struct threshold_kind budget_kind = {
	.list = "budgetThresholds",
	.words = "dollarsSpent percentage action",
	.own = "dollarsSpent",
	.own_scale = MICROS_PER_DOLLAR,
	.own_most = DOLLARS_MOST,
	.alias = "percentage",
	.alias_most = PERCENT_MOST,
};
static const struct threshold_kind duration_kind = {
	.list = "durationThresholds",
	.words = "hoursRemaining remainingHours action",
	.own = "hoursRemaining",
	.own_scale = MS_PER_HOUR,
	.own_most = HOURS_MOST,
	.alias = "remainingHours",
	.alias_scale = MS_PER_HOUR,
	.alias_most = HOURS_MOST,
};

static void read_alias(const struct part *at, const struct threshold_kind *kind, size_t i, struct threshold_form *ret)
{
	int64_t share = 0;

	if (json_object_get(at->object, kind->own))
		part_problem(at, kind->alias, "says the same in another way as the member beside it; send one of them");
	if (kind->alias_scale > 0) {
		(void)part_amount(at, kind->alias, REQUIRED, kind->alias_scale, kind->alias_most,
		                  &ret->items[i].amount); /* a problem is noted */
		return;
	}
	ret->has_percentage = true;
	(void)part_amount(at, kind->alias, REQUIRED, 1e6, kind->alias_most, &share); /* a problem is noted */
	ret->items[i].percentage = (double)share / 1e6;
}

static void read_threshold(const struct part *at, const struct threshold_kind *kind, size_t i,
                           struct threshold_form *ret)
{
	bool is_alias = json_object_get(at->object, kind->alias) != NULL;

	part_expect(at, kind->words);
	if (is_alias)
		read_alias(at, kind, i, ret);
	else
		(void)part_amount(at, kind->own, REQUIRED, kind->own_scale, kind->own_most,
		                  &ret->items[i].amount); /* a problem is noted */
	(void)part_choice(at, "action", is_alias ? OPTIONAL : REQUIRED, threshold_action_names, THRESHOLD_ACTION_COUNT,
	                  &ret->items[i].action); /* likewise; ALERT otherwise */
}

static enum given read_thresholds(const struct part *at, const struct threshold_kind *kind, struct threshold_form *ret)
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

		(void)snprintf(path, sizeof(path), "%s%s.%zu", at->path, kind->list, i); /* fits */
		if (!json_is_object(item.object)) {
			item.path = "";
			part_problem(&item, path, "must be an object");
			continue;
		}
		(void)snprintf(path, sizeof(path), "%s%s.%zu.", at->path, kind->list, i); /* fits */
		read_threshold(&item, kind, i, ret);
	}
	return GIVEN;
}

enum given part_budget_thresholds(const struct part *at, struct threshold_form *ret)
{
	return read_thresholds(at, &budget_kind, ret);
}

enum given part_duration_thresholds(const struct part *at, struct threshold_form *ret)
{
	return read_thresholds(at, &duration_kind, ret);
}

static struct str write_thresholds(const struct threshold_form *f, const char *member, double scale, int64_t max_spend,
                                   struct arena *a)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, TEXT_MAX);
	json_out_init(&o, &b);
	buf_add_char(&b, '[');
	for (size_t i = 0; i < f->count; i++) {
		double amount = f->items[i].percentage > 0
		                        ? round((double)max_spend * f->items[i].percentage / PERCENT_MOST)
		                        : (double)f->items[i].amount;

		if (i)
			buf_add_char(&b, ',');
		json_out_init(&o, &b);
		json_open_object(&o);
		json_put_real(&o, member, amount / scale);
		json_put_str(&o, "action", str_from(threshold_action_names[f->items[i].action]));
		json_close_object(&o);
	}
	buf_add_char(&b, ']');
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

struct str budget_thresholds_text(const struct threshold_form *f, int64_t max_spend, struct arena *a)
{
	return write_thresholds(f, budget_kind.own, MICROS_PER_DOLLAR, max_spend, a);
}

struct str duration_thresholds_text(const struct threshold_form *f, struct arena *a)
{
	return write_thresholds(f, duration_kind.own, MS_PER_HOUR, 0, a);
}

/* --- out --- */

void form_put_text(struct json_out *o, const char *name, struct str text)
{
	if (text.n)
		json_put_str(o, name, text);
}

void form_put_time(struct json_out *o, const char *name, int64_t ms)
{
	char       text[ISO_TIME_SIZE], full[ISO_TIME_SIZE + 8];
	struct str time;

	if (!ms)
		return;
	time = iso_time(ms / 1000, text);
	if (ms % 1000 && time.n) {
		int n = snprintf(full, sizeof(full), "%.*s.%03dZ", (int)time.n - 1, time.p, (int)(ms % 1000));

		time = str_of(full, (size_t)n);
	}
	json_put_str(o, name, time);
}

void form_put_dollars(struct json_out *o, const char *name, int64_t micro_usd)
{
	if (micro_usd)
		json_put_real(o, name, (double)micro_usd / MICROS_PER_DOLLAR);
}

/* To a millionth of an hour: finer is noise of the division. */
void form_put_hours(struct json_out *o, const char *name, int64_t ms)
{
	if (ms)
		json_put_real(o, name, round((double)ms / MS_PER_HOUR * 1e6) / 1e6);
}

void form_put_thresholds(struct json_out *o, const char *name, struct str stored)
{
	if (stored.n)
		json_put_raw(o, name, stored);
}

void form_put_meta(struct json_out *o, int64_t created_ms, int64_t edited_ms, int64_t schema_version)
{
	json_put_object(o, "meta");
	form_put_time(o, "createdTime", created_ms);
	form_put_time(o, "lastEditTime", edited_ms);
	json_put_int(o, "schemaVersion", schema_version);
	json_close_object(o);
}

static void put_wish(struct json_out *o, const struct lease *l)
{
	json_put_str(o, "originalLeaseTemplateUuid", l->template_uuid);
	json_put_str(o, "originalLeaseTemplateName", l->template_name);
	form_put_text(o, "comments", l->comments);
	form_put_text(o, "createdBy", l->created_by);
	form_put_text(o, "blueprintId", l->blueprint_id);
	form_put_text(o, "blueprintName", l->blueprint_name);
	form_put_dollars(o, "maxSpend", l->max_spend);
	form_put_thresholds(o, "budgetThresholds", l->budget_thresholds);
	form_put_hours(o, "leaseDurationInHours", l->duration_ms);
	form_put_thresholds(o, "durationThresholds", l->duration_thresholds);
	form_put_text(o, "costReportGroup", l->cost_group);
}

/* Of a lease that has, or had, an account. While access is being made it has begun with its approval, for those who need a date. */
static void put_course(struct json_out *o, const struct lease *l)
{
	int64_t start_ms = l->start_ms ? l->start_ms : l->edited_ms;

	json_put_str(o, "awsAccountId", l->account_id);
	json_put_str(o, "approvedBy", l->approved_by);
	form_put_time(o, "startDate", start_ms);
	form_put_time(o, "lastCheckedDate", l->last_checked_ms ? l->last_checked_ms : start_ms);
	form_put_time(o, "expirationDate", l->expires_ms);
	json_put_real(o, "totalCostAccrued", (double)l->cost / MICROS_PER_DOLLAR);
	form_put_time(o, "costAsOf", l->cost_at_ms);
}

void form_put_lease(struct json_out *o, const struct lease *l, struct arena *a)
{
	enum lease_group group = lease_group(l->status);

	json_put_str(o, "userEmail", l->user_email);
	json_put_str(o, "uuid", l->uuid);
	json_put_str(o, "status", str_from(lease_status_names[l->status]));
	put_wish(o, l);
	if (group == LEASE_GROUP_PENDING)
		form_put_time(o, "queuedSince", l->queued_ms);
	if (group == LEASE_GROUP_DENIED) {
		form_put_text(o, "deniedBy", l->decided_by);
		form_put_text(o, "denyReason", l->decision_reason);
	}
	if (group == LEASE_GROUP_MONITORED || group == LEASE_GROUP_ENDED)
		put_course(o, l);
	if (group == LEASE_GROUP_ENDED) {
		form_put_time(o, "endDate", l->end_ms);
		form_put_text(o, "terminatedBy", l->ended_by);
	}
	if (l->ttl_sec)
		json_put_int(o, "ttl", l->ttl_sec);
	form_put_meta(o, l->created_ms, l->edited_ms, LEASE_SCHEMA);
	json_put_str(o, "leaseId", lease_id(l, a));
}
