/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_lease.c - a lease in words: what it waits for, who decided, what it has spent and when that was known, when
 * it ends, why it ended.
 *
 * A lease is found by its uuid, or by the beginning of it when no other begins so. Its account is looked at where that
 * explains something: while it is being set up, and after the end.
 */
#include "base/arena.h"
#include "domain/account.h"
#include "domain/lease.h"
#include "domain/policy.h"
#include "service/explain/explain_private.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"

enum { BEGINNING_MIN = 4, TWO = 2 };

struct view {
	struct lease   l;
	struct str     long_id;
	int64_t        position, estimate_ms;
	struct account account;
	bool           has_account; /* there is a record of it */
};

static void can(struct situation *x, const struct view *v, enum explain_action_id action)
{
	explain_can_lease(x, action, v->l.uuid, v->long_id);
}

/* --- finding it --- */

static bool find(struct situation *x, struct lease *ret)
{
	struct query q = { .type = &lease_type, .index = QUERY_KEYS, .sort_prefix = x->id, .limit = TWO };
	struct page  page;

	if (explain_find(x, &lease_type, x->id, ret))
		return true;
	if (x->rc || x->id.n < BEGINNING_MIN || x->id.n >= LEASE_UUID_MAX ||
	    (x->rc = session_query(x->s, &q, &page, x->e)))
		return false;
	if (page.count > 1)
		x->rc = err_set(x->e, RC_INVALID, "several leases start with %.*s; give more of the uuid",
		                STR_ARG(x->id));
	if (page.count == 1)
		*ret = *(struct lease *)page_record(&page, &lease_type, 0);
	return page.count == 1;
}

static bool read_view(struct situation *x, struct view *v)
{
	struct lease_call call;
	struct str        owner = x->ask->owner_email;

	if (!find(x, &v->l))
		return false;
	if (owner.n && !str_eq_nocase(owner, v->l.user_email)) {
		x->rc = err_set(x->e, RC_NOT_FOUND, "there is no lease %.*s of %.*s", STR_ARG(x->id), STR_ARG(owner));
		return false;
	}
	x->id = v->l.uuid;
	v->long_id = lease_id(&v->l, x->a);
	x->who = str_format(x->a, "Lease %.*s of %.*s", STR_ARG(v->l.uuid), STR_ARG(v->l.user_email)).p;
	call = (struct lease_call){ .policy = x->ask->policy, .owner_email = v->l.user_email, .uuid = v->l.uuid };
	if (v->l.queued_ms && (x->rc = lease_get(x->s, &call, x->e)))
		return false;
	v->position = call.position;
	v->estimate_ms = call.estimate_ms;
	v->has_account = explain_find(x, &account_type, v->l.account_id, &v->account);
	return true;
}

/* --- parts of sentences --- */

/* "12.50 USD of 50.00 USD spent, known up to ... and looked at ..." */
static void tell_spend(struct situation *x, const struct lease *l)
{
	const char *budget = l->max_spend ? explain_usd(x->a, l->max_spend) : "";
	bool        was_later = l->last_checked_ms > l->cost_at_ms; /* an ended lease is no longer looked at */

	if (!l->cost_at_ms)
		explain_say(x, WHY, "No costs are known yet%s%s.", budget[0] ? "; the budget is " : "", budget);
	else
		explain_say(x, WHY, "Spent: %s%s%s; costs are complete up to %s%s%s.", explain_usd(x->a, l->cost),
		            budget[0] ? " of " : "", budget, explain_time(x, l->cost_at_ms),
		            was_later ? " and were looked at " : "",
		            was_later ? explain_time(x, l->last_checked_ms) : "");
}

static void tell_request(struct situation *x, const struct lease *l)
{
	bool       is_assigned = l->created_by.n && !str_eq_nocase(l->created_by, l->user_email);
	struct str by = is_assigned ? l->created_by : STR("");

	explain_say(x, WHY, "It was %s at %s%s%.*s, from the template %.*s.", is_assigned ? "assigned" : "requested",
	            explain_time(x, l->created_ms), is_assigned ? " by " : "", STR_ARG(by), STR_ARG(l->template_name));
	if (str_eq(l->approved_by, STR(AUTO_APPROVED)))
		explain_say(x, WHY, "Nobody had to approve it.");
	else if (l->approved_by.n)
		explain_say(x, WHY, "%.*s approved it%s%.*s.", STR_ARG(l->approved_by),
		            l->decision_reason.n ? ": " : "", STR_ARG(l->decision_reason));
}

/* --- each group of statuses --- */

static void describe_pending(struct situation *x, const struct view *v)
{
	const struct lease *l = &v->l;
	struct str          by = str_eq(l->queued_by, STR(AUTO_APPROVED)) ? STR("the rules") : l->queued_by;
	bool                is_own = x->ask->by && caller_is(x->ask->by, l->user_email);

	x->since_ms = l->queued_ms ? l->queued_ms : l->created_ms;
	if (l->queued_ms) {
		explain_say(x, SUMMARY, "%s is approved and waiting in line for an account, at position %lld%s%s.",
		            x->who, (long long)v->position,
		            v->estimate_ms ? "; its turn may come by " : "; there is no estimate yet",
		            v->estimate_ms ? explain_time(x, v->estimate_ms) : "");
		explain_say(x, WHY, "No account was free when %.*s approved it.", STR_ARG(by));
		explain_next(x, v->estimate_ms, STR("an account becomes free for it"),
		             STR("the line, first come first served"));
		can(x, v, CAN_TERMINATE);
	} else {
		explain_say(x, SUMMARY, "%s is waiting for a manager's approval.", x->who);
		explain_next(x, 0, STR("a manager approves or denies it"), STR("a person"));
		if (!is_own || (x->ask->policy && x->ask->policy->allows_self_approval))
			can(x, v, CAN_APPROVE);
		can(x, v, CAN_DENY);
	}
	if (!x->ask->by || is_own)
		can(x, v, CAN_WITHDRAW);
}

static void describe_denied(struct situation *x, const struct view *v)
{
	const struct lease *l = &v->l;

	x->since_ms = l->edited_ms;
	if (str_eq(l->decision_reason, STR("queue_timeout")))
		explain_say(x, SUMMARY, "%s was denied: it waited in line longer than allowed.", x->who);
	else
		explain_say(x, SUMMARY, "%s was %s by %.*s%s%.*s.", x->who,
		            str_eq_nocase(l->decided_by, l->user_email) ? "withdrawn" : "denied",
		            STR_ARG(l->decided_by), l->decision_reason.n ? ": " : "", STR_ARG(l->decision_reason));
}

static void describe_provisioning(struct situation *x, const struct view *v)
{
	bool is_moving = v->has_account && explain_follow(x, &v->account);

	x->since_ms = v->l.edited_ms;
	explain_say(x, SUMMARY, "%s is being set up: account %.*s is moved and access is granted%s.", x->who,
	            STR_ARG(v->l.account_id), is_moving ? "" : ", but nothing is in progress");
	if (!is_moving)
		explain_say(
		        x, PROBLEM,
		        "The account should be set up, but no saga is doing it; see: leasehold explain account %.*s",
		        STR_ARG(v->l.account_id));
	can(x, v, CAN_TERMINATE);
}

static void describe_running(struct situation *x, const struct view *v)
{
	const struct lease *l = &v->l;
	bool                is_frozen = l->status == LEASE_FROZEN;
	struct str          why = explain_reason(l->freeze_reason, x->a);
	int64_t             moment_ms = lease_next_moment_ms(l, session_now(x->s));

	x->since_ms = is_frozen ? l->edited_ms : l->start_ms;
	if (is_frozen)
		explain_say(x, SUMMARY, "%s is frozen%s%.*s: account %.*s stays as it is, and nobody has access.",
		            x->who, why.n ? " because " : "", STR_ARG(why), STR_ARG(l->account_id));
	else
		explain_say(x, SUMMARY, "Lease %.*s: %.*s uses account %.*s%s%s.", STR_ARG(l->uuid),
		            STR_ARG(l->user_email), STR_ARG(l->account_id),
		            l->expires_ms ? " until " : " without an end",
		            l->expires_ms ? explain_time(x, l->expires_ms) : "");
	tell_spend(x, l);
	if (l->projected_ms)
		explain_say(x, WHY, "Since %s its spend has been projected to exceed the budget.",
		            explain_time(x, l->projected_ms));
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
	if (!x->is_for_user)
		explain_job(x, "lease-monitor",
		            "its costs are looked at; it is frozen or ended when it has passed a limit");
}

static void describe_ended(struct situation *x, const struct view *v)
{
	const struct lease *l = &v->l;
	struct str          why = explain_reason(l->end_reason, x->a);

	x->since_ms = l->end_ms;
	explain_say(x, SUMMARY, "%s has ended (%s)%s%.*s.", x->who, lease_status_names[l->status], why.n ? ": " : "",
	            STR_ARG(why));
	if (l->ended_by.n)
		explain_say(x, WHY, "%.*s ended it at %s.", STR_ARG(l->ended_by), explain_time(x, l->end_ms));
	tell_spend(x, l);
	if (!x->is_for_user && v->has_account && str_eq(v->account.last_lease, l->uuid))
		explain_say(x, WHY, "Its account %.*s is %s now; see: leasehold explain account %.*s",
		            STR_ARG(l->account_id), account_status_names[v->account.status], STR_ARG(l->account_id));
	if (l->ttl_sec)
		explain_next(x, l->ttl_sec * 1000, STR("its record is removed"), STR("job lease-purge"));
	explain_can(x, CAN_STATEMENT, l->uuid);
	(void)explain_timer(x, str_format(x->a, "statement/%.*s", STR_ARG(l->uuid)),
	                    STR("its statement of costs is made, or made again"));
}

void explain_lease(struct situation *x)
{
	struct view *v = arena_alloc(x->a, sizeof(*v));
	struct str   email;

	if (str_starts_with(x->id, STR("eyJ")) && (x->rc = lease_id_parse(x->id, x->a, &email, &x->id, x->e)))
		return;
	x->is_gone = !read_view(x, v);
	if (x->is_gone)
		return;
	x->where = str_from(lease_status_names[lease_shown_status(&v->l)]);
	tell_request(x, &v->l);
	switch (lease_group(v->l.status)) {
	case LEASE_GROUP_PENDING: describe_pending(x, v); break;
	case LEASE_GROUP_DENIED: describe_denied(x, v); break;
	case LEASE_GROUP_MONITORED:
		(v->l.status == LEASE_PROVISIONING ? describe_provisioning : describe_running)(x, v);
		break;
	case LEASE_GROUP_ENDED: describe_ended(x, v); break;
	}
}
