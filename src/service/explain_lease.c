/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_lease.c - a lease in words: what it waits for, who decided, what it has spent and when that was known, when it ends, why it ended.
 *
 * A lease is found by its uuid, or by the beginning of it when no other begins so. Its account is looked at where that explains something:
 * while it is being made ready, and after the end.
 */
#include "base/arena.h"
#include "base/utf8.h"
#include "domain/account.h"
#include "domain/lease.h"
#include "service/account_follow.h"
#include "service/explain_ops.h"
#include "service/lease_records.h"
#include "service/leases.h"
#include "service/statement.h"

enum { BEGINNING_MIN = 4, TWO = 2 };

struct view {
	struct lease   l;
	struct str     long_id;
	int64_t        position, estimate_ms;
	struct account account;
	bool           has_account; /* there is a record of it */
};

static void can(struct situation *x, const struct view *v, enum explain_order_id order)
{
	explain_can_lease(x, order, v->l.uuid, v->long_id);
}

/* --- finding it --- */

static enum rc find(struct situation *x, struct view *v, bool *ret_is_there, struct err *e)
{
	struct query q = { .type = &lease_type, .index = QUERY_KEYS, .sort_prefix = x->id, .limit = TWO };
	struct page  page;
	enum rc      rc = explain_find(x, &lease_type, x->id, &v->l, ret_is_there, e);

	if (rc || *ret_is_there || x->id.n < BEGINNING_MIN || x->id.n >= LEASE_UUID_MAX)
		return rc;
	if ((rc = session_query(x->s, &q, &page, e)))
		return rc;
	if (page.count > 1)
		return err_set(e, RC_INVALID, "more than one lease begins with %.*s; give more of its uuid",
		               STR_ARG(x->id));
	*ret_is_there = page.count == 1;
	if (*ret_is_there)
		v->l = *(struct lease *)page_record(&page, &lease_type, 0);
	return RC_OK;
}

static enum rc read_view(struct situation *x, struct view *v, bool *ret_is_there, struct err *e)
{
	struct lease_call call = { 0 };
	struct str        owner = x->ask->owner_email;
	enum rc           rc = find(x, v, ret_is_there, e);

	if (rc || !*ret_is_there)
		return rc;
	if (owner.n && !str_eq_nocase(owner, v->l.user_email))
		return err_set(e, RC_NOT_FOUND, "there is no lease %.*s of %.*s", STR_ARG(x->id), STR_ARG(owner));
	x->id = v->l.uuid;
	v->long_id = lease_id(&v->l, x->a);
	call.uuid = v->l.uuid;
	call.owner_email = v->l.user_email;
	call.policy = x->ask->policy;
	if (v->l.queued_ms && (rc = lease_get(x->s, &call, e)))
		return rc;
	v->position = call.position;
	v->estimate_ms = call.estimate_ms;
	return explain_find(x, &account_type, v->l.account_id, &v->account, &v->has_account, e);
}

/* --- parts of sentences --- */

/* "12.50 USD of 50.00 USD spent, known up to ... and looked at ..." */
static void tell_spend(struct situation *x, const struct view *v)
{
	const struct lease *l = &v->l;
	struct str          of = l->max_spend ? str_format(x->a, " of %s", explain_usd(x->a, l->max_spend)) : STR("");

	if (!l->cost_at_ms)
		explain_why(x, str_format(x->a, "No costs are known yet%s%.*s.", of.n ? "; the budget is" : "",
		                          of.n ? (int)of.n - 3 : 0, of.n ? of.p + 3 : ""));
	else
		explain_why(x, str_format(x->a, "Spent: %s%.*s; costs are complete up to %s%s%s.",
		                          explain_usd(x->a, l->cost), STR_ARG(of), explain_time(x, l->cost_at_ms),
		                          l->last_checked_ms ? " and were looked at " : "",
		                          l->last_checked_ms ? explain_time(x, l->last_checked_ms) : ""));
}

static void tell_request(struct situation *x, const struct view *v)
{
	const struct lease *l = &v->l;
	bool                is_assigned = l->created_by.n && !str_eq_nocase(l->created_by, l->user_email);

	explain_why(x, str_format(x->a, "It was %s at %s%s%.*s, from the template %.*s.",
	                          is_assigned ? "assigned" : "asked for", explain_time(x, l->created_ms),
	                          is_assigned ? " by " : "", is_assigned ? (int)l->created_by.n : 0,
	                          l->created_by.p ? l->created_by.p : "", STR_ARG(l->template_name)));
	if (l->approved_by.n)
		explain_why(x, str_eq(l->approved_by, STR(AUTO_APPROVED))
		                       ? STR("Nobody had to approve it.")
		                       : str_format(x->a, "%.*s approved it.", STR_ARG(l->approved_by)));
}

/* --- each group of statuses --- */

static void describe_pending(struct situation *x, const struct view *v)
{
	const struct lease *l = &v->l;

	x->since_ms = l->queued_ms ? l->queued_ms : l->created_ms;
	if (l->queued_ms) {
		x->summary = str_format(
		        x->a, "Lease %.*s of %.*s is approved and waits in line for an account, at place %lld%s%s.",
		        STR_ARG(l->uuid), STR_ARG(l->user_email), (long long)v->position,
		        v->estimate_ms ? "; its turn may come by " : "; nobody can say when its turn comes",
		        v->estimate_ms ? explain_time(x, v->estimate_ms) : "");
		explain_why(x, str_format(x->a, "No account was free when %s%.*s approved it.",
		                          str_eq(l->queued_by, STR(AUTO_APPROVED)) ? "the rules" : "",
		                          str_eq(l->queued_by, STR(AUTO_APPROVED)) ? 0 : (int)l->queued_by.n,
		                          l->queued_by.p ? l->queued_by.p : ""));
		explain_next(x, v->estimate_ms, STR("an account becomes free for it"),
		             STR("the line, first come first served"));
	} else {
		x->summary = str_format(x->a, "Lease %.*s of %.*s waits for a manager to approve it.", STR_ARG(l->uuid),
		                        STR_ARG(l->user_email));
		explain_next(x, 0, STR("a manager approves or denies it"), STR("a person"));
		can(x, v, CAN_APPROVE);
	}
	can(x, v, CAN_DENY);
	if (!x->ask->by || str_eq_nocase(x->ask->by->email, l->user_email))
		can(x, v, CAN_WITHDRAW);
}

static void describe_denied(struct situation *x, const struct view *v)
{
	const struct lease *l = &v->l;
	bool                was_late = str_eq(l->decision_reason, STR("queue_timeout"));
	bool                was_withdrawn = str_eq_nocase(l->decided_by, l->user_email);

	x->since_ms = l->edited_ms;
	if (was_late)
		x->summary = str_format(x->a,
		                        "Lease %.*s of %.*s was not served: it waited in line for longer than it may.",
		                        STR_ARG(l->uuid), STR_ARG(l->user_email));
	else
		x->summary = str_format(x->a, "Lease %.*s of %.*s was %s%.*s%s%.*s.", STR_ARG(l->uuid),
		                        STR_ARG(l->user_email), was_withdrawn ? "withdrawn by " : "denied by ",
		                        STR_ARG(l->decided_by), l->decision_reason.n ? ": " : "",
		                        STR_ARG(l->decision_reason));
}

static enum rc describe_provisioning(struct situation *x, const struct view *v, struct err *e)
{
	const struct account *a = &v->account;
	bool                  is_moving = false;
	enum rc               rc = RC_OK;

	x->since_ms = v->l.edited_ms;
	if (v->has_account)
		rc = explain_saga(x,
		                  str_format(x->a, ACCOUNT_FOLLOW "/%.*s/%lld", STR_ARG(a->id),
		                             (long long)a->follow_number),
		                  &is_moving, e);
	x->summary =
	        str_format(x->a,
	                   "Lease %.*s of %.*s is being made ready: account %.*s is moved and access is granted%s.",
	                   STR_ARG(v->l.uuid), STR_ARG(v->l.user_email), STR_ARG(v->l.account_id),
	                   is_moving ? "" : ", but nothing is under way");
	if (!rc && !is_moving)
		explain_problem(
		        x, str_format(x->a,
		                      "The account should be made ready, and no saga does it; see: leasehold explain "
		                      "account %.*s",
		                      STR_ARG(v->l.account_id)));
	can(x, v, CAN_TERMINATE);
	return rc;
}

static enum rc describe_running(struct situation *x, const struct view *v, struct err *e)
{
	const struct lease *l = &v->l;
	bool                is_frozen = l->status == LEASE_FROZEN;
	struct str          why = explain_reason(l->freeze_reason, x->a);
	int64_t             moment_ms = lease_next_moment_ms(l, session_now(x->s));

	x->since_ms = is_frozen ? l->edited_ms : l->start_ms;
	if (is_frozen)
		x->summary = str_format(
		        x->a, "Lease %.*s of %.*s is frozen%s%.*s: account %.*s stays as it is, and nobody has access.",
		        STR_ARG(l->uuid), STR_ARG(l->user_email), why.n ? " because " : "", STR_ARG(why),
		        STR_ARG(l->account_id));
	else
		x->summary = str_format(x->a, "Lease %.*s: %.*s uses account %.*s%s%s.", STR_ARG(l->uuid),
		                        STR_ARG(l->user_email), STR_ARG(l->account_id),
		                        l->expires_ms ? " until " : " without an end",
		                        l->expires_ms ? explain_time(x, l->expires_ms) : "");
	tell_spend(x, v);
	if (l->projected_ms)
		explain_why(x, str_format(x->a, "Since %s its spend is projected to pass the budget.",
		                          explain_time(x, l->projected_ms)));
	if (l->expires_ms)
		explain_next(x, l->expires_ms, STR("it ends: access is taken away and the account is emptied"),
		             str_format(x->a, "timer lease-expiry/%.*s", STR_ARG(l->uuid)));
	if (moment_ms && moment_ms <= l->expires_ms)
		explain_next(x, moment_ms,
		             STR("a threshold of its duration is reached: its owner is told, or it is frozen"),
		             str_format(x->a, "timer lease-moment/%.*s", STR_ARG(l->uuid)));
	can(x, v, is_frozen ? CAN_UNFREEZE : CAN_FREEZE);
	can(x, v, CAN_EXTEND);
	can(x, v, CAN_TERMINATE);
	if (x->is_for_user)
		return RC_OK;
	return explain_job(x, "lease-monitor",
	                   STR("its costs are looked at; it is frozen or ended when it has passed a limit"), e);
}

static enum rc describe_ended(struct situation *x, const struct view *v, struct err *e)
{
	const struct lease *l = &v->l;
	struct str          why = explain_reason(l->end_reason, x->a);
	bool                is_back = v->has_account && str_eq(v->account.last_lease, l->uuid);

	x->since_ms = l->end_ms;
	x->summary = str_format(x->a, "Lease %.*s of %.*s has ended (%s)%s%.*s.", STR_ARG(l->uuid),
	                        STR_ARG(l->user_email), lease_status_names[l->status], why.n ? ": " : "", STR_ARG(why));
	if (l->ended_by.n)
		explain_why(x,
		            str_format(x->a, "%.*s ended it at %s.", STR_ARG(l->ended_by), explain_time(x, l->end_ms)));
	tell_spend(x, v);
	if (!x->is_for_user && is_back)
		explain_why(x, str_format(x->a, "Its account %.*s is %s now; see: leasehold explain account %.*s",
		                          STR_ARG(l->account_id), account_status_names[v->account.status],
		                          STR_ARG(l->account_id)));
	if (l->ttl_sec)
		explain_next(x, l->ttl_sec * 1000, STR("its record is removed"), STR("job lease-purge"));
	explain_can(x, CAN_STATEMENT, l->uuid);
	return explain_timer(x, str_format(x->a, "statement/%.*s", STR_ARG(l->uuid)),
	                     STR("its statement of costs is made, or made again"), NULL, e);
}

static enum rc describe(struct situation *x, const struct view *v, struct err *e)
{
	switch (lease_group(v->l.status)) {
	case LEASE_GROUP_PENDING: describe_pending(x, v); break;
	case LEASE_GROUP_DENIED: describe_denied(x, v); break;
	case LEASE_GROUP_MONITORED:
		return v->l.status == LEASE_PROVISIONING ? describe_provisioning(x, v, e) : describe_running(x, v, e);
	case LEASE_GROUP_ENDED: return describe_ended(x, v, e);
	}
	return RC_OK;
}

enum rc explain_lease(struct situation *x, struct err *e)
{
	struct view *v = arena_alloc(x->a, sizeof(*v));
	struct str   email;
	bool         is_there;
	enum rc      rc;

	if (str_starts_with(x->id, STR("eyJ")) && (rc = lease_id_parse(x->id, x->a, &email, &x->id, e)))
		return rc;
	if ((rc = read_view(x, v, &is_there, e)))
		return rc;
	x->is_gone = !is_there;
	if (x->is_gone)
		return RC_OK;
	x->where = str_from(lease_status_names[v->l.status]);
	tell_request(x, v);
	return describe(x, v, e);
}
