/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_review.c - from a request to a usable lease: approve, deny, withdraw, and the account's answer.
 *
 * An approval claims an account in its own transaction, or joins the line; the lease is Provisioning until access
 * works. The account's saga then reports that it does [on_ready()], or that it never will [on_failed()]. Both ignore a
 * lease that does not have the account, or no longer: it may have ended meanwhile.
 *
 * After a crash nothing is half approved: the claim, the lease and the saga are stored together, or none of them.
 */
#include "base/json.h"
#include "base/utf8.h"
#include "service/pool/accounts.h"
#include "service/account/account_follow.h"
#include "service/lease/lease_private.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"

static const struct actor follower = { STR_INIT("saga/account-follow"), STR_INIT("") };

static enum rc check_undecided(const struct lease_call *c, struct err *e)
{
	if (!c->lease.queued_ms)
		return RC_OK;
	return err_set(e, RC_CONFLICT,
	               "lease %.*s was approved by %.*s and waits in line for an account; to take it out of the line, "
	               "terminate it",
	               STR_ARG(c->uuid), STR_ARG(c->lease.queued_by));
}

enum rc lease_approve(struct session *s, void *arg, struct err *e)
{
	struct lease_call *c = arg;
	struct actor       by = actor_of_caller(&c->by);
	enum rc            rc = lease_load_called(s, c, e);

	if (rc)
		return rc;
	if (caller_is(&c->by, c->lease.user_email) && !(c->policy && c->policy->allows_self_approval))
		return err_set(e, RC_DENIED,
		               "this is your own request, so another manager or admin has to approve it; see "
		               "leases.allowSelfApproval of the policy");
	c->lease.decision_reason = c->reason;
	if ((rc = check_undecided(c, e)) || (rc = lease_grant(s, &c->lease, c->by.email, &by, e)))
		return rc;
	lease_store(s, &c->lease);
	return RC_OK;
}

enum rc lease_deny(struct session *s, void *arg, struct err *e)
{
	struct lease_call *c = arg;
	struct actor       by = actor_of_caller(&c->by);
	enum rc            rc = lease_load_called(s, c, e);

	if (rc || (rc = check_undecided(c, e)))
		return rc;
	return lease_refuse(s, &c->lease, LEASE_ON_DENY, c->by.email,
	                    c->reason.n ? c->reason : STR("Request denied by manager"), &by, e);
}

enum rc lease_withdraw(struct session *s, void *arg, struct err *e)
{
	struct lease_call *c = arg;
	struct actor       by = actor_of_caller(&c->by);
	enum rc            rc = lease_load_called(s, c, e);

	if (rc)
		return rc;
	if (!caller_is(&c->by, c->lease.user_email))
		return err_set(e, RC_DENIED, "only %.*s can withdraw this request; a manager can deny it",
		               STR_ARG(c->lease.user_email));
	return lease_refuse(s, &c->lease, LEASE_ON_WITHDRAW, c->by.email, c->reason, &by, e);
}

/* --- what the account says --- */

/* The lease that has this account now; *ret_is_there is false when there is none, or it has ended. */
static enum rc load_of_account(struct session *s, const struct account *account, struct lease *ret, bool *ret_is_there,
                               struct err *e)
{
	bool    is_there = false;
	enum rc rc = RC_OK;

	if (account->lease_uuid.n)
		rc = session_find(s, &lease_type, account->lease_uuid, ret, &is_there, e);
	*ret_is_there = is_there && lease_group(ret->status) == LEASE_GROUP_MONITORED &&
	                str_eq(ret->account_id, account->id);
	return rc;
}

static enum rc on_ready(struct session *s, const struct account *account, struct err *e)
{
	struct arena *a = session_arena(s);
	struct lease  l;
	bool          is_there;
	enum rc       rc = load_of_account(s, account, &l, &is_there, e);

	if (rc || !is_there || l.status != LEASE_PROVISIONING ||
	    (rc = lease_apply(&l, LEASE_ON_PUBLISH, session_now(s), e)))
		return rc;
	lease_store(s, &l);
	if ((rc = lease_arm(s, &l, e)) ||
	    (rc = account_emit(s, "AccountProvisioned", l.account_id, follower.name, STR(""),
	                       JSON_OF(a, member_str("accountId", l.account_id), member_object("leaseId"),
	                               member_str("userEmail", l.user_email), member_str("uuid", l.uuid), member_end()),
	                       e)))
		return rc;
	return lease_tell(s, NEWS_LEASE_APPROVED, &l, NULL, &follower, e);
}

static enum rc on_failed(struct session *s, const struct account *account, struct str why, struct err *e)
{
	struct lease_fact   fact = { .text = utf8_line(session_arena(s), why, REASON_MAX) };
	struct lease_ending end = { .event = LEASE_ON_FAIL, .by = &follower };
	struct lease        l;
	bool                is_there;
	enum rc             rc = load_of_account(s, account, &l, &is_there, e);

	if (rc || !is_there || l.status != LEASE_PROVISIONING ||
	    (rc = lease_tell(s, NEWS_LEASE_PROVISIONING_FAILED, &l, &fact, &follower, e)))
		return rc;
	if (!str_eq(l.approved_by, STR(AUTO_APPROVED))) {
		/* Approved by a person, who is asked again: the owner did nothing wrong. */
		if (!(rc = lease_apply(&l, LEASE_ON_RESET, session_now(s), e)))
			lease_store(s, &l);
		return rc;
	}
	end.reason_json = reason_of_comment(session_arena(s), "ProvisioningFailed", fact.text);
	return lease_finish(s, &l, &end, e);
}

static enum rc on_lost(struct session *s, const struct account *account, enum lease_event event, struct str comment,
                       struct str actor, struct err *e)
{
	struct actor        by = { .name = utf8_clip(actor, ACTOR_MAX) };
	struct lease_ending end = { .event = event, .by = &by };
	struct lease        l;
	bool                is_there;
	enum rc             rc = load_of_account(s, account, &l, &is_there, e);

	if (rc || !is_there)
		return rc;
	end.reason_json = reason_of_comment(session_arena(s),
	                                    event == LEASE_ON_EJECT ? "Ejected" : "AccountQuarantined",
	                                    utf8_line(session_arena(s), comment, REASON_MAX));
	return lease_finish(s, &l, &end, e);
}

const struct account_hooks lease_account_hooks = {
	.ready = on_ready, .failed = on_failed, .lost = on_lost, .freed = line_poke, .lock_away = account_lock_away
};
