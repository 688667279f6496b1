/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leases.c - what people do with leases: request, show, freeze, unfreeze, change, end.
 *
 * Each function is one transaction: it loads, lets the domain decide, stores, and emits events. Who may call it is
 * decided in http/, except for two things that need the template: plain users do not see private templates, and nobody
 * assigns a lease to himself. A lease for oneself is a request, also for a manager: the rules decide, and where they
 * ask for a person, that is somebody else unless the policy allows self-approval. [decide()]
 *
 * Not here: reviews (lease_review.c), the line (lease_line.c), what time and costs do (lease_watch_job.c).
 */
#include "service/pool/accounts.h"
#include "service/lease/leases.h"

#include <assert.h>

#include "domain/approval.h"
#include "service/lease/lease_private.h"
#include "service/record/lease_records.h"

/* --- ask --- */

/* The lease copies the template's values; later changes of the template do not affect it. */
static struct lease make_lease(struct session *s, const struct lease_request *r, const struct lease_template *t)
{
	int64_t now_ms = session_now(s).ms;

	return (struct lease){
		.uuid = kernel_new_id(s, STR("")),
		.user_email = r->owner_email,
		.user_key = email_key(r->owner_email, session_arena(s)),
		.status = LEASE_PENDING_APPROVAL,
		.template_uuid = t->uuid,
		.template_name = t->name,
		.comments = r->comments,
		.created_by = r->by.email,
		.blueprint_id = t->blueprint_id,
		.blueprint_name = t->blueprint_name,
		.max_spend = t->max_spend,
		.budget_thresholds = t->budget_thresholds,
		.duration_ms = t->duration_ms,
		.duration_thresholds = t->duration_thresholds,
		.cost_group = t->cost_group,
		.ttl_days = r->policy->ttl_days,
		.created_ms = now_ms,
		.edited_ms = now_ms,
	};
}

/* By the operator's rules when there are any, otherwise by the template. With an arena for the explanation, or NULL. */
static bool evaluate(const struct approval_policy *rules, const struct approval_question *question,
                     const struct lease_template *t, struct arena *explain, struct approval_answer *ret)
{
	bool has_rules = rules && rules->count > 0;

	if (has_rules)
		approval_evaluate(rules, question, explain, ret);
	else
		*ret = (struct approval_answer){ .verdict = t->requires_approval ? APPROVAL_ASK : APPROVAL_APPROVE };
	return has_rules;
}

static enum approval_verdict decide(const struct lease_request *r, const struct lease_template *t, struct str *ret_rule)
{
	const struct lease      *l = &r->lease;
	struct approval_question question = { .template_uuid = l->template_uuid,
		                              .template_name = l->template_name,
		                              .email = l->user_email,
		                              .roles = r->owner_roles,
		                              .cost_group = l->cost_group,
		                              .max_spend = l->max_spend,
		                              .duration_ms = l->duration_ms };
	bool                     is_assigned = r->is_assigned && !caller_is_only_user(&r->by);
	struct approval_answer   answer;

	if (is_assigned && !caller_is(&r->by, r->owner_email))
		return APPROVAL_APPROVE;
	(void)evaluate(r->approval, &question, t, NULL, &answer); /* by rules or by the template */
	*ret_rule = answer.rule;
	if (answer.verdict == APPROVAL_ASK && is_assigned && r->policy->allows_self_approval)
		return APPROVAL_APPROVE;
	return answer.verdict;
}

enum rc lease_explain(struct session *s, void *arg, struct err *e)
{
	struct lease_explain *x = arg;
	struct template_call  call = { .by = x->owner, .uuid = x->template_name };
	enum rc               rc = template_get(s, &call, e);

	if (rc)
		return rc;
	x->question = (struct approval_question){
		.template_uuid = call.template.uuid,
		.template_name = call.template.name,
		.email = x->owner.email,
		.roles = x->owner.roles,
		.cost_group = call.template.cost_group,
		.max_spend = x->max_spend ? x->max_spend : call.template.max_spend,
		.duration_ms = x->duration_ms ? x->duration_ms : call.template.duration_ms,
	};
	x->is_by_template = !evaluate(x->approval, &x->question, &call.template, session_arena(s), &x->answer);
	return RC_OK;
}

static enum rc begin(struct session *s, struct lease_request *r, const struct lease_template *t, struct err *e)
{
	struct actor by = actor_of_caller(&r->by);
	struct str   rule = { 0 };

	switch (decide(r, t, &rule)) {
	case APPROVAL_APPROVE: return lease_grant(s, &r->lease, STR(AUTO_APPROVED), &by, e);
	case APPROVAL_ASK: return lease_tell(s, NEWS_LEASE_REQUESTED, &r->lease, NULL, &by, e);
	case APPROVAL_DENY:
	case APPROVAL_VERDICT_COUNT: break;
	}
	return err_set(e, RC_DENIED, "the operator's rule \"%.*s\" denies this request", STR_ARG(rule));
}

enum rc lease_request(struct session *s, void *arg, struct err *e)
{
	struct lease_request *r = arg;
	struct lease_template template;
	enum rc rc;

	if (caller_is_only_user(&r->by) && !caller_is(&r->by, r->owner_email))
		return err_set(e, RC_DENIED, "only a manager or an admin can request a lease for someone else");
	if ((rc = template_load(s, &r->by, r->template_uuid, &template, e)))
		return rc;
	r->lease = make_lease(s, r, &template);
	if ((rc = lessee_add(s, &r->lease, r->policy->leases_per_user, e)) || (rc = begin(s, r, &template, e)))
		return rc;
	r->lease.is_queued = r->lease.queued_ms > 0;
	assert(lease_ok(&r->lease));
	session_add(s, &lease_type, &r->lease);
	return RC_OK;
}

/* --- look --- */

enum rc lease_get(struct session *s, void *arg, struct err *e)
{
	struct lease_call *c = arg;
	enum rc            rc = lease_load_called(s, c, e);

	return rc ? rc : line_place(s, &c->lease, c->policy ? c->policy->rest_ms : 0, &c->position, &c->estimate_ms, e);
}

static bool is_wanted(const struct lease_list *l, const struct lease *lease)
{
	if (l->expires_before_ms && (lease_group(lease->status) != LEASE_GROUP_MONITORED || !lease->expires_ms ||
	                             lease->expires_ms >= l->expires_before_ms))
		return false;
	if (!l->has_status)
		return true;
	switch (l->status) {
	case LEASES_IN_LINE: return lease->queued_ms > 0;
	case LEASES_WITHDRAWN:
		return lease->status == LEASE_APPROVAL_DENIED && str_eq_nocase(lease->decided_by, lease->user_email);
	default: return (int)lease_shown_status(lease) == l->status;
	}
}

/* Drops what the query returned beside the wanted leases; the page may then be short. */
static void keep_wanted(struct lease_list *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->page.count; i++) {
		struct lease *lease = page_record(&l->page, &lease_type, i);

		if (is_wanted(l, lease))
			*(struct lease *)page_record(&l->page, &lease_type, kept++) = *lease;
	}
	l->page.count = kept;
}

#define IN_LINE_MARK "line:"

/* Provisioning are those with that status and then, with a marked cursor, those in line. */
static enum rc list_by_status(struct session *s, struct query q, struct lease_list *l, struct err *e)
{
	bool    is_marked = str_starts_with(q.cursor, STR(IN_LINE_MARK));
	enum rc rc;

	q.index = LEASE_BY_STATUS;
	q.hash = value_int(l->status == LEASES_WITHDRAWN ? LEASE_APPROVAL_DENIED : l->status);
	if (is_marked || l->status == LEASES_IN_LINE) {
		q.index = LEASE_IN_LINE;
		q.hash = value_int(1);
	}
	if (is_marked)
		q.cursor = str_skip(q.cursor, strlen(IN_LINE_MARK));
	rc = session_query(s, &q, &l->page, e);
	if (!rc && l->status == LEASE_PROVISIONING && (is_marked ? l->page.next.n > 0 : l->page.next.n == 0))
		l->page.next = str_format(session_arena(s), IN_LINE_MARK "%.*s", STR_ARG(l->page.next));
	return rc;
}

enum rc lease_list(struct session *s, void *arg, struct err *e)
{
	struct lease_list *l = arg;
	struct query       q = query_of(&lease_type, QUERY_ALL, value_int(0), l->limit);
	enum rc            rc;

	q.cursor = l->cursor;
	q.is_descending = true;
	if (l->owner_email.n) {
		q.index = LEASE_BY_OWNER;
		q.hash = value_text(email_key(l->owner_email, session_arena(s)));
	}
	rc = l->has_status && !l->owner_email.n ? list_by_status(s, q, l, e) : session_query(s, &q, &l->page, e);
	if (!rc && (l->has_status || l->expires_before_ms))
		keep_wanted(l);
	return rc;
}

/* --- freeze, unfreeze, end --- */

enum rc lease_freeze(struct session *s, void *arg, struct err *e)
{
	struct lease_call *c = arg;
	struct actor       by = actor_of_caller(&c->by);
	enum rc            rc = lease_load_called(s, c, e);

	return rc ? rc
	          : lease_freeze_for(s, &c->lease, reason_of_comment(session_arena(s), "ManuallyFrozen", c->reason),
	                             &by, e);
}

enum rc lease_unfreeze(struct session *s, void *arg, struct err *e)
{
	struct lease_call *c = arg;
	struct actor       by = actor_of_caller(&c->by);
	struct lease_fact  fact = { .text = c->reason.n ? c->reason : STR("Unfrozen by a manager") };
	enum rc            rc = lease_load_called(s, c, e);

	if (rc || (rc = lease_apply(&c->lease, LEASE_ON_UNFREEZE, session_now(s), e)))
		return rc;
	lease_store(s, &c->lease);
	if ((rc = account_change(s, &c->lease, ACCOUNT_ON_UNFREEZE, STR(""), by.name, e)) ||
	    (rc = lease_arm(s, &c->lease, e)))
		return rc;
	return lease_tell(s, NEWS_LEASE_UNFROZEN, &c->lease, &fact, &by, e);
}

enum rc lease_terminate(struct session *s, void *arg, struct err *e)
{
	struct lease_call  *c = arg;
	struct actor        by = actor_of_caller(&c->by);
	struct lease_ending end = { .event = LEASE_ON_TERMINATE,
		                    .reason_json = reason_of_comment(session_arena(s), "ManuallyTerminated", c->reason),
		                    .clean_reason = STR(CLEAN_AFTER_LEASE),
		                    .by = &by };
	enum rc             rc = lease_load_called(s, c, e);

	if (!rc && c->lease.queued_ms) /* it has no account: it only leaves the line */
		return lease_refuse(s, &c->lease, LEASE_ON_WITHDRAW, c->by.email, c->reason, &by, e);
	return rc ? rc : lease_finish(s, &c->lease, &end, e);
}

/* --- change --- */

static void merge(struct lease *l, const struct lease_edit *edit, struct wall now)
{
	if (edit->sets_max_spend)
		l->max_spend = edit->max_spend;
	if (edit->sets_budget)
		l->budget_thresholds = edit->budget_thresholds;
	if (edit->sets_duration)
		l->duration_thresholds = edit->duration_thresholds;
	if (edit->sets_group)
		l->cost_group = edit->cost_group;
	if (edit->sets_expiry)
		l->expires_ms = edit->expires_ms;
	if (edit->sets_expiry && !edit->expires_ms && l->status == LEASE_PROVISIONING)
		l->duration_ms = 0; /* it gets its end when it begins: now it will not */
	l->edited_ms = now.ms;
}

enum rc lease_edit(struct session *s, void *arg, struct err *e)
{
	struct lease_edit *edit = arg;
	struct lease      *l = &edit->call.lease;
	struct actor       by = actor_of_caller(&edit->call.by);
	enum rc            rc = lease_load_called(s, &edit->call, e);

	edit->problems = (struct problems){ .arena = session_arena(s) };
	if (rc)
		return rc;
	if (lease_group(l->status) != LEASE_GROUP_MONITORED)
		return err_set(e, RC_INVALID,
		               "lease %.*s is %s; only one that is Active, Frozen or Provisioning can be changed",
		               STR_ARG(l->uuid), lease_state_text(l));
	merge(l, edit, session_now(s));
	lease_check_limits(l, edit->call.policy, &edit->problems);
	if (edit->problems.count)
		return err_set(e, RC_INVALID, "%.*s: %.*s", STR_ARG(edit->problems.items[0].field),
		               STR_ARG(edit->problems.items[0].message));
	lease_store(s, l);
	rc = lease_arm(s, l, e);
	return rc ? rc : lease_tell(s, NEWS_LEASE_EDITED, l, NULL, &by, e);
}
