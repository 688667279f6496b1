/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_api.c - the routes of lease templates.
 *
 * Who is only a user sees no private template: it is left out of lists, whose pages may be short for it, and there is no such one when he names
 * it. The name of the blueprint is the server's to write: what a client sends is looked up in the transaction that stores the template. A
 * replacement may have a name too, which is passed over: web pages from before there were blueprints send back all that they were given.
 */
#include "base/json.h"
#include "domain/lease_template.h"
#include "http/api.h"
#include "http/body.h"
#include "http/jsend.h"
#include "http/lease_form.h"
#include "http/page_token.h"
#include "http/rights.h"
#include "service/blueprints.h"
#include "service/lease_records.h"
#include "service/leases.h"

enum { TEMPLATES_MOST = 2000, TEMPLATE_SCHEMA = 3, DESCRIPTION_MOST = 1000 };

static const char template_words[] =
        "name description requiresApproval visibility costReportGroup blueprintId maxSpend budgetThresholds "
        "leaseDurationInHours durationThresholds meta";
static const char replacement_words[] =
        "name description requiresApproval visibility costReportGroup blueprintId maxSpend budgetThresholds "
        "leaseDurationInHours durationThresholds meta createdBy blueprintName";

/* --- out --- */

static void put_template(struct json_out *o, const struct lease_template *t)
{
	json_put_str(o, "uuid", t->uuid);
	json_put_str(o, "name", t->name);
	form_put_text(o, "description", t->description);
	json_put_bool(o, "requiresApproval", t->requires_approval);
	json_put_str(o, "createdBy", t->created_by);
	json_put_str(o, "visibility", str_from(template_visibility_names[t->visibility]));
	form_put_text(o, "costReportGroup", t->cost_group);
	if (t->blueprint_id.n) {
		json_put_str(o, "blueprintId", t->blueprint_id);
		json_put_str(o, "blueprintName", t->blueprint_name);
	} else {
		json_put_null(o, "blueprintId");
		json_put_null(o, "blueprintName");
	}
	form_put_dollars(o, "maxSpend", t->max_spend);
	form_put_thresholds(o, "budgetThresholds", t->budget_thresholds);
	form_put_hours(o, "leaseDurationInHours", t->duration_ms);
	form_put_thresholds(o, "durationThresholds", t->duration_thresholds);
	form_put_meta(o, t->created_ms, t->edited_ms, TEMPLATE_SCHEMA);
}

static void reply_template(struct request *r, int status, const struct lease_template *t)
{
	struct json_out o = jsend_begin(r);

	json_put_object(&o, "data");
	put_template(&o, t);
	json_close_object(&o);
	reply_send(r, status);
}

/* --- the list --- */

struct template_page {
	struct template_list list;
	bool                 hides_private;
};

static void on_listed(struct request *r)
{
	const struct template_page *l = r->arg;
	struct json_out             o;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	json_put_array(&o, "result");
	for (size_t i = 0; i < l->list.page.count; i++) {
		const struct lease_template *t = page_record(&l->list.page, &template_type, i);

		if (l->hides_private && t->visibility == TEMPLATE_PRIVATE)
			continue;
		json_open_object(&o);
		put_template(&o, t);
		json_close_object(&o);
	}
	json_close_array(&o);
	page_token_put(r, &o, "templates", l->list.page.next);
	json_close_object(&o);
	reply_send(r, 200);
}

void handle_template_list(struct request *r)
{
	struct template_page *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct problems       p = { .arena = &r->call->arena };
	struct caller         by;

	if (!rights_enter(r, &by))
		return;
	page_token_read(r, "templates", TEMPLATES_MOST, &l->list.limit, &l->list.cursor, &p);
	if (!page_is_good(r, &p))
		return;
	l->hides_private = caller_is_only_user(&by);
	r->arg = l;
	request_submit(r, template_list, &l->list, true, on_listed);
}

/* --- one --- */

static struct template_call *template_call_new(struct request *r)
{
	struct template_call *c = arena_alloc(&r->call->arena, sizeof(*c));

	if (!rights_enter(r, &c->by))
		return NULL;
	c->policy = rights_policy(r);
	c->uuid = r->params[0];
	r->arg = c;
	return c;
}

static void on_got(struct request *r)
{
	const struct template_call *c = r->arg;
	struct err                  e = { 0 };

	if (jsend_failed(r))
		return;
	if (c->template.visibility == TEMPLATE_PRIVATE && caller_is_only_user(&c->by)) {
		rc_ignore(err_set(&e, RC_NOT_FOUND, "there is no template %.*s", STR_ARG(c->uuid))); /* noted in e */
		request_fail(r, &e);
		return;
	}
	reply_template(r, 200, &c->template);
}

void handle_template_show(struct request *r)
{
	struct template_call *c = template_call_new(r);

	if (c)
		request_submit(r, template_get, c, true, on_got);
}

static void on_removed(struct request *r)
{
	if (!jsend_failed(r))
		jsend_null(r);
}

void handle_template_remove(struct request *r)
{
	struct template_call *c = template_call_new(r);

	if (c)
		request_submit(r, template_delete, c, false, on_removed);
}

/* --- making and replacing --- */

/* When the record was made: clients send back what they were given. */
static void read_meta(const struct part *whole, struct lease_template *t)
{
	struct part meta = { .body = whole->body, .path = "meta." };

	part_any_object(whole, "meta", &meta.object);
	if (meta.object)
		(void)part_time(&meta, "createdTime", OPTIONAL, &t->created_ms); /* problems are in the body */
}

static void read_budget(const struct part *whole, struct lease_template *t)
{
	struct threshold_form budget, duration;
	struct arena         *a = whole->body->problems.arena;

	(void)part_amount(whole, "maxSpend", OPTIONAL, MICROS_PER_DOLLAR, DOLLARS_MOST, &t->max_spend); /* as above */
	(void)part_amount(whole, "leaseDurationInHours", OPTIONAL, MS_PER_HOUR, HOURS_MOST, &t->duration_ms);
	if (part_budget_thresholds(whole, &budget) == GIVEN) {
		if (budget.has_percentage && !t->max_spend)
			part_problem(whole, "budgetThresholds", "a percentage needs a maxSpend to be a share of");
		t->budget_thresholds = budget_thresholds_text(&budget, t->max_spend, a);
	}
	if (part_duration_thresholds(whole, &duration) == GIVEN)
		t->duration_thresholds = duration_thresholds_text(&duration, a);
}

static bool read_template(struct request *r, struct template_call *c)
{
	CLEANUP(body_close) struct body body;
	struct part                     whole;
	struct lease_template          *t = &c->fields;
	int                             visibility = TEMPLATE_PUBLIC;

	if (!body_open(r, &body))
		return false;
	whole = body_whole(&body);
	part_expect(&whole, c->is_new ? template_words : replacement_words);
	(void)part_text(&whole, "name", REQUIRED, 1, TEMPLATE_NAME_MAX, &t->name); /* problems are in the body */
	(void)part_text(&whole, "description", OPTIONAL, 0, DESCRIPTION_MOST, &t->description);
	(void)part_bool(&whole, "requiresApproval", REQUIRED, &t->requires_approval);
	(void)part_choice(&whole, "visibility", OPTIONAL, template_visibility_names, TEMPLATE_VISIBILITY_COUNT,
	                  &visibility);
	(void)part_text(&whole, "costReportGroup", OPTIONAL, 1, COST_GROUP_MAX, &t->cost_group);
	(void)part_checked(&whole, "blueprintId", NULLABLE, uuid_is_ok, "must be a uuid, or null", &t->blueprint_id);
	t->visibility = (enum template_visibility)visibility;
	t->created_by = c->by.email;
	if (!c->is_new)
		(void)part_checked(&whole, "createdBy", REQUIRED, email_is_ok, "must be an email address",
		                   &t->created_by);
	read_budget(&whole, t);
	read_meta(&whole, t);
	return body_is_good(&body);
}

/* Look the blueprint up, then put: one transaction, so that it cannot go in between. */
static enum rc put_with_blueprint(struct session *s, void *arg, struct err *e)
{
	struct template_call *c = arg;
	struct blueprint      blueprint;
	struct str            id = c->fields.blueprint_id;
	enum rc               rc;

	c->problems = (struct problems){ .arena = session_arena(s) };
	if (id.n) {
		rc = session_get(s, &blueprint_type, id, &blueprint, NULL);
		if (rc == RC_NOT_FOUND) {
			problems_add(&c->problems, "blueprintId", "there is no blueprint %.*s", STR_ARG(id));
			return err_set(e, RC_INVALID, "there is no blueprint %.*s", STR_ARG(id));
		}
		if (rc)
			return err_set(e, rc, "blueprint %.*s cannot be read", STR_ARG(id));
		c->fields.blueprint_name = blueprint.name;
	}
	return template_put(s, c, e);
}

static void reply_put(struct request *r, int status)
{
	const struct template_call *c = r->arg;

	if (r->txn.rc == RC_INVALID && c->problems.count)
		jsend_refuse(r, 400, &c->problems);
	else if (!jsend_failed(r))
		reply_template(r, status, &c->template);
}

static void on_created(struct request *r)
{
	reply_put(r, 201);
}

static void on_replaced(struct request *r)
{
	reply_put(r, 200);
}

void handle_template_create(struct request *r)
{
	struct template_call *c = template_call_new(r);

	if (!c)
		return;
	c->is_new = true;
	c->uuid = STR("");
	if (read_template(r, c))
		request_submit(r, put_with_blueprint, c, false, on_created);
}

void handle_template_replace(struct request *r)
{
	struct template_call *c = template_call_new(r);

	if (c && read_template(r, c))
		request_submit(r, put_with_blueprint, c, false, on_replaced);
}
