/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approval_write.c - an approval rule as JSON, as approval_read.c reads it.
 *
 * Always true: a rule that was read, written and read again is the same rule. A condition with one value is a text, with several a list.
 */
#include "base/json.h"
#include "domain/approval.h"
#include "domain/lease.h"

static void put_texts(struct json_out *o, const char *name, const struct approval_texts *texts)
{
	if (texts->count == 1)
		json_put_str(o, name, texts->items[0]);
	if (texts->count <= 1)
		return;
	json_put_array(o, name);
	for (size_t i = 0; i < texts->count; i++)
		json_add_str(o, texts->items[i]);
	json_close_array(o);
}

static void put_roles(struct json_out *o, unsigned roles)
{
	if (!roles)
		return;
	json_put_array(o, "role");
	for (size_t i = 0; i < APPROVAL_ROLE_COUNT; i++)
		if (roles & approval_roles[i].role)
			json_add_str(o, str_from(approval_roles[i].name));
	json_close_array(o);
}

static void put_limit(struct json_out *o, const char *name, int64_t value, int64_t unit)
{
	if (value)
		json_put_real(o, name, (double)value / (double)unit);
}

void approval_write(const struct approval_rule *rule, struct json_out *o)
{
	json_open_object(o);
	json_put_str(o, "id", rule->id);
	json_put_object(o, "when");
	put_texts(o, "template", &rule->templates);
	put_roles(o, rule->roles);
	put_texts(o, "domain", &rule->domains);
	put_texts(o, "group", &rule->groups);
	put_limit(o, "maxBudget", rule->max_spend, LEASE_USD);
	put_limit(o, "maxHours", rule->max_ms, LEASE_HOUR_MS);
	json_close_object(o);
	json_put_str(o, "then", str_from(approval_verdict_names[rule->then]));
	json_close_object(o);
}
