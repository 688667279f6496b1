/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approval_api.c - what would be decided about a request for a lease, and why, without asking for one.
 *
 * Always true: the answer comes from the rules in force on this node and from the directory of people, as that of a real request would.
 *
 * Not here: the routes of the document with the rules (document_api.c).
 */
#include <math.h>

#include "base/json.h"
#include "domain/lease.h"
#include "http/ops.h"
#include "http/people.h"
#include "service/leases.h"

enum { TEMPLATE_TEXT_MAX = 50, USD_MOST = 1000000000, HOURS_MOST = 1000000 };

static const char *const members[] = { "template", "userEmail", "maxSpend", "hours" };

static enum rc check_members(json_t *body, struct err *e)
{
	const char *name;
	json_t     *value;

	json_object_foreach(body, name, value)
	{
		bool is_known = false;

		for (size_t i = 0; i < ARRAY_LEN(members); i++)
			is_known = is_known || str_eq(str_from(name), str_from(members[i]));
		if (!is_known)
			return err_set(
			        e, RC_INVALID,
			        "there is no member '%.40s' here; known are: template, userEmail, maxSpend, hours",
			        name);
	}
	return RC_OK;
}

/* A number above 0; not given, it stays as it is. */
static enum rc read_amount(json_t *body, const char *name, double most, int64_t unit, int64_t *ret, struct err *e)
{
	const json_t *value = json_object_get(body, name);
	double        number = json_number_value(value); /* 0 when it is none */

	if (!value || json_is_null(value))
		return RC_OK;
	if (!(number * (double)unit >= 1) || number > most)
		return err_set(e, RC_INVALID, "%s: must be a number above 0, at most %.0f", name, most);
	*ret = llround(number * (double)unit);
	return RC_OK;
}

static enum rc read_question(struct request *r, struct lease_explain *x, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct str template, email;
	enum rc rc = r->call->req.body.n ? json_parse(r->call->req.body, &body, e) : RC_OK;

	if (rc)
		return err_wrap(e, rc, "body");
	if (!json_is_object(body))
		return err_set(e, RC_INVALID,
		               "the body must be like {\"template\": \"Project\", \"userEmail\": \"ann@example.org\"}");
	if ((rc = check_members(body, e)))
		return rc;
	if (!json_get_text(body, "template", &template) || !template.n || template.n > TEMPLATE_TEXT_MAX)
		return err_set(e, RC_INVALID, "template: must be the name or the uuid of a template");
	if (!json_get_text(body, "userEmail", &email) || !email_is_ok(email))
		return err_set(e, RC_INVALID, "userEmail: must be an email address");
	x->template_name = str_dup(&r->call->arena, template);
	x->owner.email = str_dup(&r->call->arena, email);
	if ((rc = read_amount(body, "maxSpend", USD_MOST, LEASE_USD, &x->max_spend, e)))
		return rc;
	return read_amount(body, "hours", HOURS_MOST, LEASE_HOUR_MS, &x->duration_ms, e);
}

/* --- the answer --- */

static void put_amount(struct json_out *o, const char *name, int64_t value, int64_t unit)
{
	if (value)
		json_put_real(o, name, (double)value / (double)unit);
	else
		json_put_null(o, name);
}

static void put_notes(struct json_out *o, const struct approval_answer *answer)
{
	json_put_array(o, "rules");
	for (size_t i = 0; i < answer->note_count; i++) {
		json_open_object(o);
		json_put_str(o, "rule", answer->notes[i].rule);
		json_put_bool(o, "matches", answer->notes[i].matches);
		json_put_str(o, "why", answer->notes[i].why);
		json_close_object(o);
	}
	json_close_array(o);
}

static void on_explained(struct request *r)
{
	const struct lease_explain *x = r->arg;
	struct json_out             o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_str(&o, "decision", str_from(approval_verdict_names[x->answer.verdict]));
	json_put_str(&o, "decided_by",
	             str_from(x->is_by_template  ? "template"
	                      : x->answer.rule.n ? "rule"
	                                         : "default"));
	ops_put_text(&o, "rule", x->answer.rule);
	json_put_str(&o, "template", x->question.template_name);
	json_put_str(&o, "user_email", x->question.email);
	put_amount(&o, "max_spend", x->question.max_spend, LEASE_USD);
	put_amount(&o, "hours", x->question.duration_ms, LEASE_HOUR_MS);
	put_notes(&o, &x->answer);
	reply_send(r, 200);
}

void handle_approval_explain(struct request *r)
{
	const struct api_options *o = api_options(r->api);
	struct lease_explain     *x = arena_alloc(&r->call->arena, sizeof(*x));
	struct err                e = { 0 };

	if (read_question(r, x, &e) || people_find(r, x->owner.email, &x->owner, &e)) {
		request_fail(r, &e);
		return;
	}
	x->approval = o->approval ? o->approval(o->approval_arg) : NULL;
	r->arg = x;
	request_submit(r, lease_explain, x, true, on_explained);
}
