/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_api.c - the routes of leases: ask, look, change, review, freeze, unfreeze, end, withdraw.
 *
 * A handler has two halves: it reads who asks and what for and submits a transaction of service/leases.h; the other half answers. The lease id
 * names the owner, and the transactions refuse one whose owner is another, so whether a lease is the caller's own is known before anything is
 * read.
 *
 * Always true:
 *   1. Who is only a user reaches no lease but his own, and asks only for himself.           [rights_own_only()]
 *   2. A user who names himself in a request asks like anybody else: only managers and admins assign.       [lease_request()]
 */
#include "base/json.h"
#include "domain/cloud.h"
#include "domain/lease.h"
#include "http/api.h"
#include "http/body.h"
#include "http/jsend.h"
#include "http/lease_form.h"
#include "http/page_token.h"
#include "http/people.h"
#include "http/rights.h"
#include "service/account_follow.h"
#include "service/lease_records.h"
#include "service/leases.h"

enum { LEASES_MOST = 2000 };

/* --- shared --- */

/* What all calls about one lease begin with. NULL: it has been answered. */
static struct lease_call *lease_call_begin(struct request *r, struct lease_call *c)
{
	struct err e = { 0 };

	if (!rights_enter(r, &c->by))
		return NULL;
	if (lease_id_parse(r->params[0], &r->call->arena, &c->owner_email, &c->uuid, &e)) {
		request_fail(r, &e);
		return NULL;
	}
	if (!rights_own_only(r, &c->by, c->owner_email))
		return NULL;
	c->policy = rights_policy(r);
	r->arg = c;
	return c;
}

static struct lease_call *lease_call_new(struct request *r)
{
	return lease_call_begin(r, arena_alloc(&r->call->arena, sizeof(struct lease_call)));
}

static void reply_lease(struct request *r, const struct lease *l)
{
	struct json_out o = jsend_begin(r);

	json_put_object(&o, "data");
	form_put_lease(&o, l, &r->call->arena);
	json_close_object(&o);
	reply_send(r, 200);
}

static void on_null(struct request *r)
{
	if (!jsend_failed(r))
		jsend_null(r);
}

/* {leaseId, status}: for those who want to see that something came of it. */
static void on_state(struct request *r)
{
	const struct lease_call *c = r->arg;
	struct json_out          o;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	json_put_str(&o, "leaseId", lease_id(&c->lease, &r->call->arena));
	json_put_str(&o, "status", str_from(lease_status_names[c->lease.status]));
	json_close_object(&o);
	reply_send(r, 200);
}

/* --- the list --- */

static void read_status(struct request *r, struct lease_list *l, struct problems *p)
{
	struct str text = page_query(r, "status", p);

	for (int i = 0; text.n && i < LEASE_STATUS_COUNT; i++)
		if (str_eq(text, str_from(lease_status_names[i]))) {
			l->has_status = true;
			l->status = (enum lease_status)i;
		}
	if (text.n && !l->has_status)
		problems_add(p, "status", "must be that of a lease, such as PendingApproval or Active");
}

/* The list's name for its tokens: with its filters. */
static const char *list_name(struct request *r, const struct lease_list *l)
{
	return str_format(&r->call->arena, "leases/%.*s/%d", STR_ARG(l->owner_email),
	                  l->has_status ? (int)l->status : -1)
	        .p;
}

static bool read_list(struct request *r, struct lease_list *l)
{
	struct problems p = { .arena = &r->call->arena };

	l->owner_email = page_query(r, "userEmail", &p);
	if (l->owner_email.n && !email_is_ok(l->owner_email))
		problems_add(&p, "userEmail", "must be an email address");
	l->owner_email = email_key(l->owner_email, &r->call->arena);
	read_status(r, l, &p);
	page_token_read(r, list_name(r, l), LEASES_MOST, &l->limit, &l->cursor, &p);
	return page_is_good(r, &p);
}

static void on_listed(struct request *r)
{
	struct lease_list *l = r->arg;
	struct json_out    o;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	json_put_array(&o, "result");
	for (size_t i = 0; i < l->page.count; i++) {
		json_open_object(&o);
		form_put_lease(&o, page_record(&l->page, &lease_type, i), &r->call->arena);
		json_close_object(&o);
	}
	json_close_array(&o);
	page_token_put(r, &o, list_name(r, l), l->page.next);
	json_close_object(&o);
	reply_send(r, 200);
}

void handle_lease_list(struct request *r)
{
	struct lease_list *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct caller      by;

	if (!rights_enter(r, &by) || !read_list(r, l) || !rights_own_only(r, &by, l->owner_email))
		return;
	r->arg = l;
	request_submit(r, lease_list, l, true, on_listed);
}

/* --- asking for one --- */

static bool read_request(struct request *r, struct lease_request *q, struct str *ret_owner)
{
	CLEANUP(body_close) struct body body;
	struct part                     whole;

	*ret_owner = q->by.email;
	if (!body_open(r, &body))
		return false;
	whole = body_whole(&body);
	part_expect(&whole, "leaseTemplateUuid comments userEmail");
	(void)part_checked(&whole, "leaseTemplateUuid", REQUIRED, uuid_is_ok, "must be a uuid",
	                   &q->template_uuid); /* problems are in the body */
	(void)part_text(&whole, "comments", OPTIONAL, 0, COMMENTS_MAX, &q->comments);
	q->is_assigned = part_checked(&whole, "userEmail", OPTIONAL, email_is_ok, "must be an email address",
	                              ret_owner) == GIVEN;
	return body_is_good(&body);
}

/* One that waits for its approval shows what it has not yet: clients of the original know it so. */
static void on_requested(struct request *r)
{
	const struct lease_request *q = r->arg;
	struct json_out             o;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	form_put_lease(&o, &q->lease, &r->call->arena);
	if (lease_group(q->lease.status) == LEASE_GROUP_PENDING) {
		json_put_null(&o, "approvedBy");
		json_put_null(&o, "awsAccountId");
		json_put_int(&o, "totalCostAccrued", 0);
	}
	json_close_object(&o);
	reply_send(r, 201);
}

void handle_lease_create(struct request *r)
{
	const struct api_options *o = api_options(r->api);
	struct lease_request     *q = arena_alloc(&r->call->arena, sizeof(*q));
	struct err                e = { 0 };
	struct caller             person = { 0 };
	struct str                owner;

	if (!rights_enter(r, &q->by) || !read_request(r, q, &owner) || !rights_own_only(r, &q->by, owner))
		return;
	if (people_find(r, owner, &person, &e)) {
		request_fail(r, &e);
		return;
	}
	q->owner_email = person.email;
	q->owner_roles = person.roles;
	q->approval = o->approval ? o->approval(o->approval_arg) : NULL;
	q->policy = rights_policy(r);
	r->arg = q;
	request_submit(r, lease_request, q, false, on_requested);
}

/* --- looking at one --- */

static void on_got(struct request *r)
{
	const struct lease_call *c = r->arg;
	struct json_out          o;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	form_put_lease(&o, &c->lease, &r->call->arena);
	if (c->position) {
		json_put_int(&o, "queuePosition", c->position);
		form_put_time(&o, "queueEstimate", c->estimate_ms);
	}
	if (c->lease.status == LEASE_ACTIVE && api_options(r->api)->cloud && api_options(r->api)->cloud->credentials)
		json_put_str(&o, "credentialsSecret", account_secret_name(c->lease.account_id, &r->call->arena));
	json_close_object(&o);
	reply_send(r, 200);
}

void handle_lease_show(struct request *r)
{
	struct lease_call *c = lease_call_new(r);

	if (c)
		request_submit(r, lease_get, c, true, on_got);
}

/* --- changing one --- */

struct lease_change {
	struct lease_edit     edit;
	struct threshold_form budget, duration;
};

static bool read_change(struct request *r, struct lease_change *c)
{
	CLEANUP(body_close) struct body body;
	struct part                     whole;
	struct lease_edit              *edit = &c->edit;

	if (!body_open(r, &body))
		return false;
	whole = body_whole(&body);
	part_expect(&whole, "maxSpend budgetThresholds expirationDate durationThresholds costReportGroup");
	edit->sets_max_spend = part_amount(&whole, "maxSpend", NULLABLE, MICROS_PER_DOLLAR, DOLLARS_MOST,
	                                   &edit->max_spend) != ABSENT;
	edit->sets_budget = part_budget_thresholds(&whole, &c->budget) != ABSENT;
	edit->sets_expiry = part_time(&whole, "expirationDate", NULLABLE, &edit->expires_ms) != ABSENT;
	edit->sets_duration = part_duration_thresholds(&whole, &c->duration) != ABSENT;
	edit->sets_group = part_text(&whole, "costReportGroup", NULLABLE, 1, COST_GROUP_MAX, &edit->cost_group) !=
	                   ABSENT;
	return body_is_good(&body);
}

/* Shares of the budget need the lease's own budget when the call has none: read in the same transaction. */
static enum rc change_lease(struct session *s, void *arg, struct err *e)
{
	struct lease_change *c = arg;
	struct lease_edit   *edit = &c->edit;
	int64_t              max_spend = edit->max_spend;
	enum rc              rc;

	edit->problems = (struct problems){ .arena = session_arena(s) };
	if (c->budget.has_percentage && !edit->sets_max_spend) {
		if ((rc = lease_get(s, &edit->call, e)))
			return rc;
		max_spend = edit->call.lease.max_spend;
	}
	if (c->budget.has_percentage && !max_spend) {
		problems_add(&edit->problems, "budgetThresholds", "a percentage needs a maxSpend to be a share of");
		return err_set(e, RC_INVALID, "a percentage needs a maxSpend");
	}
	if (edit->sets_budget)
		edit->budget_thresholds = budget_thresholds_text(&c->budget, max_spend, session_arena(s));
	if (edit->sets_duration)
		edit->duration_thresholds = duration_thresholds_text(&c->duration, session_arena(s));
	return lease_edit(s, edit, e);
}

static void on_changed(struct request *r)
{
	const struct lease_change *c = r->arg;

	if (r->txn.rc == RC_INVALID && c->edit.problems.count) {
		jsend_refuse(r, 400, &c->edit.problems);
		return;
	}
	if (!jsend_failed(r))
		reply_lease(r, &c->edit.call.lease);
}

void handle_lease_change(struct request *r)
{
	struct lease_change *c = arena_alloc(&r->call->arena, sizeof(*c));

	if (!lease_call_begin(r, &c->edit.call) || !read_change(r, c))
		return;
	r->arg = c;
	request_submit(r, change_lease, c, false, on_changed);
}

/* --- review --- */

static const char *const actions[] = { "Approve", "Deny" };
static const char *const decisions[] = { "approve", "deny" };

static bool read_review(struct request *r, struct lease_call *c, int *ret_action)
{
	CLEANUP(body_close) struct body body;
	struct part                     whole;
	int                             decision = 0;
	struct str                      ignored;
	bool                            has_action, has_decision;

	if (!body_open(r, &body))
		return false;
	whole = body_whole(&body);
	part_expect(&whole, "action decision reason approverEmail");
	has_decision = json_object_get(whole.object, "decision") != NULL;
	has_action = part_choice(&whole, "action", has_decision ? OPTIONAL : REQUIRED, actions, ARRAY_LEN(actions),
	                         ret_action) == GIVEN;
	if (part_choice(&whole, "decision", OPTIONAL, decisions, ARRAY_LEN(decisions), &decision) == GIVEN) {
		if (has_action && decision != *ret_action)
			part_problem(&whole, "decision", "says something else than action");
		*ret_action = decision;
	}
	(void)part_text(&whole, "reason", OPTIONAL, 0, REASON_MAX, &c->reason);     /* problems are in the body */
	(void)part_text(&whole, "approverEmail", OPTIONAL, 0, EMAIL_MAX, &ignored); /* who it is says the token */
	return body_is_good(&body);
}

static void review(struct request *r)
{
	struct lease_call *c = lease_call_new(r);
	struct caller      owner;
	struct err         e = { 0 };
	int                action = 0;

	if (!c || !read_review(r, c, &action))
		return;
	if (action == 0 && people_find(r, c->owner_email, &owner, &e))
		request_fail(r, &e);
	else
		request_submit(r, action == 0 ? lease_approve : lease_deny, c, false, on_state);
}

void handle_lease_review(struct request *r)
{
	review(r);
}

void handle_lease_review_patch(struct request *r)
{
	review(r);
}

/* --- freeze, unfreeze, terminate, withdraw --- */

void handle_lease_freeze(struct request *r)
{
	struct lease_call *c = lease_call_new(r);

	if (c)
		request_submit(r, lease_freeze, c, false, on_null);
}

static void on_unfrozen(struct request *r)
{
	const struct lease_call *c = r->arg;

	if (!jsend_failed(r))
		reply_lease(r, &c->lease);
}

void handle_lease_unfreeze(struct request *r)
{
	struct lease_call *c = lease_call_new(r);
	struct caller      owner;
	struct err         e = { 0 };

	if (!c)
		return;
	if (people_find(r, c->owner_email, &owner, &e))
		request_fail(r, &e);
	else
		request_submit(r, lease_unfreeze, c, false, on_unfrozen);
}

void handle_lease_terminate(struct request *r)
{
	struct lease_call *c = lease_call_new(r);

	if (c)
		request_submit(r, lease_terminate, c, false, on_null);
}

void handle_lease_withdraw(struct request *r)
{
	struct lease_call *c = lease_call_new(r);
	struct err         e = { 0 };

	if (!c)
		return;
	if (rights_is_own(&c->by, c->owner_email)) {
		request_submit(r, lease_withdraw, c, false, on_state);
		return;
	}
	rc_ignore(err_set(&e, RC_DENIED, "only its owner withdraws a request; a manager denies it")); /* noted in e */
	request_fail(r, &e);
}
