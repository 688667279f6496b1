/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_api.c - the routes of lease templates.
 *
 * Someone with only the role User sees no private templates: lists leave them out, so a page may be short, and asking
 * for one by name finds nothing. A blueprint cannot be attached, because none is deployed here. A replacement may have
 * the blueprint's name, which is ignored: older web pages send back everything they were given.
 */
#include "base/json.h"
#include "domain/lease_template.h"
#include "http/api/api.h"
#include "http/api/body.h"
#include "http/api/lease_form.h"
#include "http/api/rights.h"
#include "http/api/view.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"

enum { TEMPLATES_MOST = 2000, TEMPLATE_SCHEMA = 3, DESCRIPTION_MOST = 1000 };

#define TEMPLATE_WORDS                                                                                        \
	"name description requiresApproval visibility costReportGroup blueprintId maxSpend budgetThresholds " \
	"leaseDurationInHours durationThresholds meta"

/* --- out --- */

static void put_template(struct json_out *o, struct request *r UNUSED, const void *thing)
{
	const struct lease_template *t = thing;

	JSON_PUT(o, member_str("uuid", t->uuid), member_str("name", t->name),
	         member_if_any(member_str("description", t->description)),
	         member_bool("requiresApproval", t->requires_approval), member_str("createdBy", t->created_by),
	         member_word("visibility", template_visibility_names[t->visibility]),
	         member_if_any(member_str("costReportGroup", t->cost_group)),
	         member_text("blueprintId", t->blueprint_id),
	         t->blueprint_id.n ? member_str("blueprintName", t->blueprint_name)
	                           : member_raw("blueprintName", STR("")),
	         member_if_any(member_micro("maxSpend", t->max_spend)),
	         member_if_any(member_raw("budgetThresholds", t->budget_thresholds)), member_duration(t->duration_ms),
	         member_if_any(member_raw("durationThresholds", t->duration_thresholds)));
	form_put_meta(o, t->created_ms, t->edited_ms, TEMPLATE_SCHEMA);
}

/* --- the list --- */

static bool is_hidden(const struct listing *v UNUSED, const struct request *r, const void *record)
{
	return caller_is_only_user(&r->by) && ((const struct lease_template *)record)->visibility == TEMPLATE_PRIVATE;
}

static const struct listing templates = { "result",           "templates",           &template_type,
	                                  put_template,       template_list,         LIST_OF(struct template_list),
	                                  .hides = is_hidden, .most = TEMPLATES_MOST };
HANDLER(template_list, view_list(r, &templates))

/* --- one --- */

static struct template_call *template_call_new(struct request *r)
{
	struct template_call *c = NEW_OF(r, struct template_call);

	c->by = r->by;
	c->policy = rights_policy(r);
	c->uuid = r->params[0];
	r->arg = c;
	return c;
}

static void on_got(struct request *r)
{
	const struct template_call *c = r->arg;

	if (request_failed(r))
		return;
	if (c->template.visibility == TEMPLATE_PRIVATE && caller_is_only_user(&c->by))
		request_refuse(r, RC_NOT_FOUND, "there is no template %.*s", STR_ARG(c->uuid));
	else
		view_reply(r, 200, put_template, &c->template);
}

HANDLER(template_show, request_submit(r, template_get, template_call_new(r), true, on_got))
HANDLER(template_remove, view_submit(r, template_delete, template_call_new(r), WRITES, 200, NULL))

/* --- making and replacing --- */

static void read_budget(const struct part *whole, struct lease_template *t)
{
	struct threshold_form budget, duration;
	struct arena         *a = whole->body->problems.arena;

	(void)part_amount(whole, "maxSpend", OPTIONAL, MICROS_PER_DOLLAR, DOLLARS_MOST,
	                  &t->max_spend); /* problems are in the body */
	(void)part_amount(whole, "leaseDurationInHours", OPTIONAL, MS_PER_HOUR, HOURS_MOST, &t->duration_ms);
	if (part_thresholds(whole, &budget_kind, &budget) == GIVEN) {
		if (budget.has_percentage && !t->max_spend)
			part_problem(whole, "budgetThresholds", "a percentage needs a maxSpend to be a share of");
		t->budget_thresholds = thresholds_text(&budget_kind, &budget, t->max_spend, a);
	}
	if (part_thresholds(whole, &duration_kind, &duration) == GIVEN)
		t->duration_thresholds = thresholds_text(&duration_kind, &duration, 0, a);
}

static bool is_no_blueprint(struct str text)
{
	return text.n == 0;
}

static bool read_template(struct request *r, struct template_call *c)
{
	CLEANUP(body_close) struct body body;
	struct part                     meta = { .body = &body, .path = "meta." };
	struct lease_template          *t = &c->fields;
	struct str                      ignored;
	int                             visibility = TEMPLATE_PUBLIC;

	if (!body_open(r, c->is_new ? TEMPLATE_WORDS : TEMPLATE_WORDS " createdBy blueprintName", &body))
		return false;
	(void)part_text(&body.whole, "name", REQUIRED, 1, TEMPLATE_NAME_MAX, &t->name); /* problems are in the body */
	(void)part_text(&body.whole, "description", OPTIONAL, 0, DESCRIPTION_MOST, &t->description);
	(void)part_bool(&body.whole, "requiresApproval", REQUIRED, &t->requires_approval);
	(void)part_choice(&body.whole, "visibility", OPTIONAL, template_visibility_names, TEMPLATE_VISIBILITY_COUNT,
	                  &visibility);
	(void)part_text(&body.whole, "costReportGroup", OPTIONAL, 1, COST_GROUP_MAX, &t->cost_group);
	(void)part_checked(&body.whole, "blueprintId", NULLABLE, is_no_blueprint,
	                   "must be null: no blueprint is deployed here", &t->blueprint_id);
	t->visibility = (enum template_visibility)visibility;
	t->created_by = c->by.email;
	if (!c->is_new) /* clients send it back; it does not change */
		(void)part_checked(&body.whole, "createdBy", REQUIRED, email_is_ok, "must be an email address",
		                   &ignored);
	read_budget(&body.whole, t);
	part_any_object(&body.whole, "meta", &meta.object);
	if (meta.object) /* when the record was made: clients send back what they were given */
		(void)part_time(&meta, "createdTime", OPTIONAL, &t->created_ms);
	return body_is_good(&body);
}

static void on_put(struct request *r)
{
	const struct template_call *c = r->arg;

	if (r->txn.rc == RC_INVALID && c->problems.count)
		request_fail_all(r, 400, &c->problems);
	else if (!request_failed(r))
		view_reply(r, c->is_new ? 201 : 200, put_template, &c->template);
}

static void put(struct request *r, bool is_new)
{
	struct template_call *c = template_call_new(r);

	c->is_new = is_new;
	if (read_template(r, c))
		request_submit(r, template_put, c, false, on_put);
}

HANDLER(template_create, put(r, true))
HANDLER(template_replace, put(r, false))
