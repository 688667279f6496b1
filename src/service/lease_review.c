/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_review.c - from a request to a lease that can be used: approve, deny, withdraw, and what the account says to it.
 *
 * An approval claims an account in its own transaction, or joins the line; the lease is Provisioning until access works. Then the
 * account's saga tells us [lease_on_ready()], or that it will never work [lease_on_failed()]. Both leave alone what is not, or no longer,
 * the lease of that account: it may have been ended meanwhile.
 *
 * After a crash nothing is half approved: either the claim, the lease and the saga are stored, or none of them.
 */
#include "base/arena.h"
#include "base/utf8.h"
#include "service/lease_flow.h"
#include "service/lease_ops.h"
#include "service/lease_records.h"
#include "service/leases.h"

static const struct actor follower = { STR_INIT("saga/account-follow"), STR_INIT("") };

enum rc lease_approve(struct session *s, void *arg, struct err *e)
{
	struct lease_call *c = arg;
	struct actor       by = actor_of_caller(&c->by);
	enum rc            rc = lease_load_called(s, c, e);

	if (rc)
		return rc;
	if (c->lease.queued_ms)
		return err_set(e, RC_CONFLICT, "lease %.*s was approved by %.*s and waits in line for an account",
		               STR_ARG(c->uuid), STR_ARG(c->lease.queued_by));
	if ((rc = lease_grant(s, &c->lease, c->by.email, &by, e)))
		return rc;
	lease_store(s, &c->lease);
	return RC_OK;
}

enum rc lease_deny(struct session *s, void *arg, struct err *e)
{
	struct lease_call *c = arg;
	struct actor       by = actor_of_caller(&c->by);
	enum rc            rc = lease_load_called(s, c, e);

	return rc ? rc : lease_refuse(s, &c->lease, LEASE_ON_DENY, c->by.email, c->reason, &by, e);
}

enum rc lease_withdraw(struct session *s, void *arg, struct err *e)
{
	struct lease_call *c = arg;
	struct actor       by = actor_of_caller(&c->by);
	enum rc            rc = lease_load_called(s, c, e);

	if (rc)
		return rc;
	if (!str_eq_nocase(c->by.email, c->lease.user_email))
		return err_set(e, RC_DENIED, "only %.*s can withdraw this request; a manager can deny it",
		               STR_ARG(c->lease.user_email));
	return lease_refuse(s, &c->lease, LEASE_ON_WITHDRAW, c->by.email, c->reason, &by, e);
}

/* --- what the account says --- */

/* The lease that has this account now; *ret_is_there is false when there is none, or it has ended. */
static enum rc load_of_account(struct session *s, const struct account *account, struct lease *ret, bool *ret_is_there,
                               struct err *e)
{
	enum rc rc = account->lease_uuid.n ? session_get(s, &lease_type, account->lease_uuid, ret, NULL) : RC_NOT_FOUND;

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "lease %.*s cannot be read", STR_ARG(account->lease_uuid));
	*ret_is_there = !rc && lease_group(ret->status) == LEASE_GROUP_MONITORED &&
	                str_eq(ret->account_id, account->id);
	return RC_OK;
}

enum rc lease_on_ready(struct session *s, const struct account *account, struct err *e)
{
	struct lease l;
	bool         is_there;
	enum rc      rc = load_of_account(s, account, &l, &is_there, e);

	if (rc || !is_there || l.status != LEASE_PROVISIONING)
		return rc;
	if ((rc = lease_apply(&l, LEASE_ON_PUBLISH, session_now(s), e)))
		return rc;
	lease_store(s, &l);
	if ((rc = lease_arm(s, &l, e)))
		return rc;
	return lease_tell(s, NEWS_LEASE_APPROVED, &l, NULL, &follower, e);
}

/* Approved by a person: he is asked again, for the owner did nothing wrong. */
static enum rc reset(struct session *s, struct lease *l, struct err *e)
{
	enum rc rc = lease_apply(l, LEASE_ON_RESET, session_now(s), e);

	if (!rc)
		lease_store(s, l);
	return rc;
}

enum rc lease_on_failed(struct session *s, const struct account *account, struct str why, struct err *e)
{
	struct lease_fact   fact = { .text = utf8_line(session_arena(s), why, REASON_MAX) };
	struct lease_ending end = { .event = LEASE_ON_FAIL, .by = &follower };
	struct lease        l;
	bool                is_there;
	enum rc             rc = load_of_account(s, account, &l, &is_there, e);

	if (rc || !is_there || l.status != LEASE_PROVISIONING)
		return rc;
	if ((rc = lease_tell(s, NEWS_LEASE_PROVISIONING_FAILED, &l, &fact, &follower, e)))
		return rc;
	if (!str_eq(l.approved_by, STR(AUTO_APPROVED)))
		return reset(s, &l, e);
	end.reason_json = reason_of_comment(session_arena(s), "ProvisioningFailed", fact.text);
	return lease_finish(s, &l, &end, e);
}

enum rc lease_on_lost(struct session *s, const struct account *account, enum lease_event event, struct str comment,
                      struct str actor, struct err *e)
{
	struct actor        by = { .name = actor };
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
