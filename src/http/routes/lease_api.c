/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_api.c - the routes of leases: request, show, change, review, freeze, unfreeze, end, withdraw.
 *
 * A handler reads the request and submits a transaction of service/lease/leases.h; another function answers. The lease
 * id names the owner, and the transactions refuse a lease of another owner, so whether a lease is the caller's own is
 * known before anything is read.
 *
 * Always true:
 *   1. With only the role User, people reach only their own leases and request only for themselves. [rights_own_only()]
 *   2. Only managers and admins assign: users who name themselves in a request just make a request. [lease_request()]
 */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "domain/ports/cloud.h"
#include "domain/lease.h"
#include "http/api/api.h"
#include "http/api/body.h"
#include "http/api/lease_form.h"
#include "http/api/auth.h"
#include "http/api/rights.h"
#include "http/api/urlform.h"
#include "http/api/view.h"
#include "service/account/account_follow.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"

enum { LEASES_MOST = 2000 };

/* --- shared --- */

/* What all calls about one lease begin with. NULL: it has been answered. */
static struct lease_call *lease_call_begin(struct request *r, struct lease_call *c)
{
	c->by = r->by;
	c->policy = rights_policy(r);
	return rights_own_lease(r, &c->owner_email, &c->uuid) ? c : NULL;
}

static struct lease_call *lease_call_new(struct request *r)
{
	struct lease_call *c = NEW_OF(r, struct lease_call);

	r->shown = &c->lease;
	return lease_call_begin(r, c);
}

static void put_lease(struct json_out *o, struct request *r, const void *thing)
{
	form_put_lease(o, thing, &r->call->arena);
}

/* {leaseId, status}: what became of the lease. */
PUT_OF(put_state, struct lease, l, member_str("leaseId", lease_id(l, &r->call->arena)),
       member_word("status", lease_status_names[lease_shown_status(l)]))

/* --- the list --- */

#define STATUS_WORD(name, text, group) text ", "

static const struct listing leases = { "result",           NULL,       &lease_type,
	                               put_lease,          lease_list, LIST_OF(struct lease_list),
	                               .most = LEASES_MOST };

void handle_lease_list(struct request *r)
{
	struct listing    *v = view_begin_list(r, &leases);
	struct lease_list *l = v->list;
	struct str         status, before;
	int64_t            before_sec = 0;

	l->owner_email = page_query(r, "userEmail", v->problems);
	if (l->owner_email.n && !memchr(l->owner_email.p, '@', l->owner_email.n) && /* some clients escape it twice */
	    !url_decode(&r->call->arena, l->owner_email, &l->owner_email))
		problems_add(v->problems, "userEmail", "has a broken %%-escape");
	else if (l->owner_email.n && !email_is_ok(l->owner_email))
		problems_add(v->problems, "userEmail", "must be an email address");
	l->owner_email = email_key(l->owner_email, &r->call->arena);
	status = page_query(r, "status", v->problems);
	l->status = str_eq(status, STR("InLine"))      ? LEASES_IN_LINE
	            : str_eq(status, STR("Withdrawn")) ? LEASES_WITHDRAWN
	                                               : -1;
	for (int i = 0; i < LEASE_STATUS_COUNT; i++)
		if (str_eq(status, str_from(lease_status_names[i])))
			l->status = i;
	if (status.n && l->status < 0)
		problems_add(v->problems, "status",
		             "must be " LEASE_STATUSES(STATUS_WORD) "InLine or Withdrawn, not '%.*s'", STR_ARG(status));
	l->has_status = l->status >= 0;
	before = page_query(r, "expiresBefore", v->problems);
	if (before.n && (!iso_time_parse(before, &before_sec) || before_sec <= 0))
		problems_add(v->problems, "expiresBefore", "must be a time, such as 2026-11-15T18:03:43Z");
	l->expires_before_ms = before_sec * 1000;
	v->name = str_format(&r->call->arena, "leases/%.*s/%d/%lld", STR_ARG(l->owner_email), l->status,
	                     (long long)before_sec)
	                  .p;
	if (view_read_page(r, v) && rights_own_only(r, l->owner_email))
		view_submit_list(r, v);
}

/* --- asking for one --- */

static bool read_request(struct request *r, struct lease_request *q, struct str *ret_owner)
{
	CLEANUP(body_close) struct body body;

	*ret_owner = q->by.email;
	if (!body_open(r, "leaseTemplateUuid comments userEmail", &body))
		return false;
	(void)part_checked(&body.whole, "leaseTemplateUuid", REQUIRED, uuid_is_ok, "must be a uuid",
	                   &q->template_uuid); /* problems are in the body */
	(void)part_text(&body.whole, "comments", OPTIONAL, 0, COMMENTS_MAX, &q->comments);
	q->is_assigned = part_checked(&body.whole, "userEmail", OPTIONAL, email_is_ok, "must be an email address",
	                              ret_owner) == GIVEN;
	return body_is_good(&body);
}

/* A pending lease shows members that it does not have yet: clients of the original expect them. */
static void put_requested(struct json_out *o, struct request *r, const void *thing)
{
	const struct lease_request *q = thing;

	put_lease(o, r, &q->lease);
	if (lease_group(q->lease.status) == LEASE_GROUP_PENDING && !q->lease.queued_ms)
		JSON_PUT(o, member_text("approvedBy", STR("")), member_text("awsAccountId", STR("")),
		         member_int("totalCostAccrued", 0));
}

void handle_lease_create(struct request *r)
{
	const struct api_options *o = &r->api->options;
	struct lease_request     *q = arena_alloc(&r->call->arena, sizeof(*q));
	struct caller             person = { 0 };
	struct str                owner;

	q->by = r->by;
	if (!read_request(r, q, &owner) || !rights_own_only(r, owner) ||
	    !request_is_good(r, person_find(r, owner, &person, &r->e)))
		return;
	q->owner_email = person.email;
	q->owner_roles = person.roles;
	q->approval = o->approval ? o->approval(o->approval_arg) : NULL;
	q->policy = rights_policy(r);
	view_submit(r, lease_request, q, WRITES, 201, put_requested);
}

/* --- looking at one --- */

static void put_found(struct json_out *o, struct request *r, const void *thing)
{
	const struct lease_call *c = r->arg;
	const struct cloud      *cloud = r->api->options.cloud;

	put_lease(o, r, thing);
	if (c->position)
		JSON_PUT(o, member_int("queuePosition", c->position),
		         member_if_any(member_moment("queueEstimate", c->estimate_ms)));
	if (c->lease.status == LEASE_ACTIVE && cloud && cloud->credentials)
		json_put_str(o, "credentialsSecret", account_secret_name(c->lease.account_id, &r->call->arena));
}

/* --- changing one --- */

struct lease_change {
	struct lease_edit     edit;
	struct threshold_form budget, duration;
};

static bool read_change(struct request *r, struct lease_change *c)
{
	CLEANUP(body_close) struct body body;
	struct lease_edit              *edit = &c->edit;

	if (!body_open(r, "maxSpend budgetThresholds expirationDate durationThresholds costReportGroup", &body))
		return false;
	edit->sets_max_spend = part_amount(&body.whole, "maxSpend", NULLABLE, MICROS_PER_DOLLAR, DOLLARS_MOST,
	                                   &edit->max_spend) != ABSENT;
	edit->sets_budget = part_thresholds(&body.whole, &budget_kind, &c->budget) != ABSENT;
	edit->sets_expiry = part_time(&body.whole, "expirationDate", NULLABLE, &edit->expires_ms) != ABSENT;
	edit->sets_duration = part_thresholds(&body.whole, &duration_kind, &c->duration) != ABSENT;
	edit->sets_group = part_text(&body.whole, "costReportGroup", NULLABLE, 1, COST_GROUP_MAX, &edit->cost_group) !=
	                   ABSENT;
	return body_is_good(&body);
}

/* Percentages need the lease's own budget if the call has none: it is read in the same transaction. */
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
		edit->budget_thresholds = thresholds_text(&budget_kind, &c->budget, max_spend, session_arena(s));
	if (edit->sets_duration)
		edit->duration_thresholds = thresholds_text(&duration_kind, &c->duration, 0, session_arena(s));
	return lease_edit(s, edit, e);
}

static void on_changed(struct request *r)
{
	const struct lease_change *c = r->arg;

	if (r->txn.rc == RC_INVALID && c->edit.problems.count)
		request_fail_all(r, 400, &c->edit.problems);
	else if (!request_failed(r))
		view_reply(r, 200, put_lease, &c->edit.call.lease);
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
	int                             decision = 0;
	struct str                      ignored;
	bool                            has_action, has_decision;

	if (!body_open(r, "action decision reason approverEmail", &body))
		return false;
	has_decision = json_object_get(body.whole.object, "decision") != NULL;
	has_action = part_choice(&body.whole, "action", has_decision ? OPTIONAL : REQUIRED, actions, ARRAY_LEN(actions),
	                         ret_action) == GIVEN;
	if (part_choice(&body.whole, "decision", OPTIONAL, decisions, ARRAY_LEN(decisions), &decision) == GIVEN) {
		if (has_action && decision != *ret_action)
			part_problem(&body.whole, "decision", "says something else than action");
		*ret_action = decision;
	}
	(void)part_text(&body.whole, "reason", OPTIONAL, 0, REASON_MAX, &c->reason);     /* problems are in the body */
	(void)part_text(&body.whole, "approverEmail", OPTIONAL, 0, EMAIL_MAX, &ignored); /* who it is says the token */
	return body_is_good(&body);
}

static void review(struct request *r)
{
	struct lease_call *c = lease_call_new(r);
	struct caller      owner;
	int                action = 0;

	if (c && read_review(r, c, &action) &&
	    request_is_good(r, action == 0 && person_find(r, c->owner_email, &owner, &r->e)))
		view_submit(r, action == 0 ? lease_approve : lease_deny, c, WRITES, 200, put_state);
}

HANDLER(lease_review, review(r))
HANDLER(lease_review_patch, review(r))

/* --- show, freeze, unfreeze, terminate, withdraw --- */

void handle_lease_show(struct request *r)
{
	struct lease_call *c = lease_call_new(r);

	if (c)
		view_submit(r, lease_get, c, READS, 200, put_found);
}

/* {"reason": "..."}, or nothing: clients of the original send no body, or an empty one of any type. */
static void submit_with_reason(struct request *r, txn_fn *run, put_fn *put)
{
	CLEANUP(body_close) struct body body = { .request = r };
	struct str                      text = str_trim(r->call->req.body);
	bool                            has_reason = text.n && !str_eq(text, STR("{}"));
	struct lease_call              *c = lease_call_new(r);

	if (!c || (has_reason && !body_open(r, "reason", &body)))
		return;
	if (has_reason)
		(void)part_text(&body.whole, "reason", OPTIONAL, 0, REASON_MAX, &c->reason);
	if (body_is_good(&body))
		view_submit(r, run, c, WRITES, 200, put);
}

static void put_note(struct json_out *o, struct request *r, const void *thing UNUSED)
{
	json_put_str(o, "note", r->api->options.freeze_note);
}

HANDLER(lease_freeze, submit_with_reason(r, lease_freeze, r->api->options.freeze_note.n ? put_note : NULL))
HANDLER(lease_terminate, submit_with_reason(r, lease_terminate, NULL))

void handle_lease_unfreeze(struct request *r)
{
	struct lease_call *c = lease_call_new(r);
	struct caller      owner;

	if (c && request_is_good(r, person_find(r, c->owner_email, &owner, &r->e)))
		view_submit(r, lease_unfreeze, c, WRITES, 200, put_lease);
}

void handle_lease_withdraw(struct request *r)
{
	struct lease_call *c = lease_call_new(r);

	if (c && caller_is(&c->by, c->owner_email))
		view_submit(r, lease_withdraw, c, WRITES, 200, put_state);
	else if (c)
		request_refuse(r, RC_DENIED, "only its owner can withdraw a request; a manager can deny it");
}
