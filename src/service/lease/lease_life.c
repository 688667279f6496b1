/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_life.c - what happens to every lease, whoever asks for it: counted, timed, given an account, frozen, refused,
 * ended.
 *
 * Always true:
 *   1. lessee.live is the number of the owner's live leases: it changes in the transaction that makes a lease, refuses
 *      it or ends it, and nowhere else. So the limit holds exactly, however many ask at once.
 *   2. A lease that is Active or Frozen and has an end has a timer "lease-expiry/UUID"; with a duration threshold ahead
 *      also "lease-moment/UUID". One that has ended has neither. [lease_arm()]
 *   3. A lease ends once: the record, its event, its statement and the request to clean its account are one commit.
 *      [lease_finish()]
 *   4. Whoever is in line is served before somebody who was approved later. [lease_grant()]
 *
 * Not here: the decisions (domain/lease.c), who asks (leases.c, lease_review.c, lease_watch_job.c), accounts
 * (accounts.c).
 */
#include <assert.h>

#include "base/utf8.h"
#include "domain/account.h"
#include "kernel/defect.h"
#include "kernel/timer.h"
#include "service/pool/accounts.h"
#include "service/lease/lease_private.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"
#include "service/cost/statement.h"

struct actor actor_of_caller(const struct caller *c)
{
	return (struct actor){ utf8_clip(c->email, ACTOR_MAX), c->request_id };
}

enum rc lease_load(struct session *s, struct str uuid, struct lease *ret, struct err *e)
{
	return uuid_is_ok(uuid) ? session_get(s, &lease_type, uuid, ret, e)
	                        : err_set(e, RC_NOT_FOUND, "there is no lease %.*s", STR_ARG(uuid));
}

enum rc lease_load_called(struct session *s, struct lease_call *c, struct err *e)
{
	enum rc rc = lease_load(s, c->uuid, &c->lease, e);

	if (rc)
		return rc;
	if (!str_eq_nocase(c->owner_email, c->lease.user_email))
		return err_set(e, RC_NOT_FOUND, "there is no lease %.*s of %.*s", STR_ARG(c->uuid),
		               STR_ARG(c->owner_email));
	if (c->policy)
		c->lease.ttl_days = c->policy->ttl_days;
	return RC_OK;
}

void lease_store(struct session *s, struct lease *l)
{
	l->is_queued = l->queued_ms > 0;
	assert(lease_ok(l));
	session_put(s, &lease_type, l);
}

/* --- how many a person has --- */

enum rc lessee_add(struct session *s, const struct lease *l, int64_t max, struct err *e)
{
	struct lessee lessee;
	enum rc       rc = session_find_or_new(s, &lessee_type, l->user_key, &lessee, e);

	if (rc)
		return rc;
	if (lessee.live >= max)
		return err_set(e, RC_CONFLICT,
		               "%.*s has %lld leases that are pending or in use; at most %lld are allowed",
		               STR_ARG(l->user_email), (long long)lessee.live, (long long)max);
	lessee.live++;
	session_put(s, &lessee_type, &lessee);
	return RC_OK;
}

static enum rc lessee_remove(struct session *s, const struct lease *l, struct err *e)
{
	struct lessee lessee;
	enum rc       rc = session_find_or_new(s, &lessee_type, l->user_key, &lessee, e);

	if (rc)
		return rc;
	if (lessee.live > 1) {
		lessee.live--;
		session_put(s, &lessee_type, &lessee);
	} else if (lessee.version) {
		session_delete(s, &lessee_type, l->user_key);
	}
	return RC_OK;
}

/* --- timers --- */

/* due_ms 0: not needed. */
static enum rc set_timer(struct session *s, const struct lease *l, const char *kind, int64_t due_ms, struct err *e)
{
	struct arena *a = session_arena(s);
	struct timer  timer = { .name = str_format(a, "lease-%s/%.*s", kind, STR_ARG(l->uuid)),
		                .due_ms = due_ms,
		                .type = STR(EVENT_LEASE_TIMER_DUE),
		                .subject = str_format(a, "lease/%.*s", STR_ARG(l->uuid)),
		                .detail = str_format(a, "{\"timer\":\"%s\",\"uuid\":\"%.*s\"}", kind,
		                                     STR_ARG(l->uuid)) };

	return due_ms ? session_arm(s, &timer, e) : session_disarm(s, timer.name, e);
}

enum rc lease_arm(struct session *s, const struct lease *l, struct err *e)
{
	int64_t moment_ms = lease_next_moment_ms(l, session_now(s));
	bool    has_end = moment_ms != 0;
	enum rc rc = set_timer(s, l, "expiry", has_end ? l->expires_ms + 1 : 0, e); /* it expires after its end */

	return rc ? rc : set_timer(s, l, "moment", has_end && moment_ms <= l->expires_ms ? moment_ms : 0, e);
}

/* --- ends --- */

static int64_t removal_sec(const struct lease *l, struct wall now)
{
	return wall_sec(now) + l->ttl_days * DAY_SEC;
}

enum rc lease_has_account(struct session *s, const struct lease *l, bool *ret, struct err *e)
{
	struct account account;
	bool           is_there;
	enum rc        rc = session_find(s, &account_type, l->account_id, &account, &is_there, e);

	*ret = is_there && str_eq(account.lease_uuid, l->uuid);
	return rc;
}

enum rc lease_finish(struct session *s, struct lease *l, const struct lease_ending *end, struct err *e)
{
	enum rc rc;

	if (lease_group(l->status) == LEASE_GROUP_MONITORED && end->clean_reason.n && !HAS_DEFECT(NO_TAKE_BACK) &&
	    (rc = account_change(s, l, ACCOUNT_ON_TAKE_BACK, end->clean_reason, end->by->name, e)))
		return rc;
	if ((rc = lease_apply(l, end->event, session_now(s), e)))
		return rc;
	l->ttl_sec = removal_sec(l, session_now(s));
	l->ended_by = end->by->name;
	l->end_reason = end->reason_json;
	lease_store(s, l);
	if ((rc = lessee_remove(s, l, e)) || (rc = lease_arm(s, l, e)) || (rc = statement_open(s, l, e)))
		return rc;
	return lease_tell(s, NEWS_LEASE_TERMINATED, l, NULL, end->by, e);
}

enum rc lease_refuse(struct session *s, struct lease *l, enum lease_event event, struct str who, struct str reason,
                     const struct actor *by, struct err *e)
{
	struct lease_fact fact = { .text = reason };
	enum rc           rc = lease_apply(l, event, session_now(s), e);

	if (rc)
		return rc;
	l->ttl_sec = removal_sec(l, session_now(s));
	l->decided_by = who;
	l->decision_reason = reason;
	lease_store(s, l);
	if ((rc = lessee_remove(s, l, e)))
		return rc;
	return lease_tell(s, event == LEASE_ON_DENY ? NEWS_LEASE_DENIED : NEWS_LEASE_WITHDRAWN, l, &fact, by, e);
}

enum rc lease_freeze_for(struct session *s, struct lease *l, struct str reason_json, const struct actor *by,
                         struct err *e)
{
	enum rc rc = lease_apply(l, LEASE_ON_FREEZE, session_now(s), e);

	if (rc)
		return rc;
	l->freeze_reason = reason_json;
	l->frozen_by = by->name;
	lease_store(s, l);
	rc = account_change(s, l, ACCOUNT_ON_FREEZE, STR(""), by->name, e);
	return rc ? rc : lease_tell(s, NEWS_LEASE_FROZEN, l, NULL, by, e);
}

/* --- an account for it --- */

enum rc lease_grant(struct session *s, struct lease *l, struct str approver, const struct actor *by, struct err *e)
{
	struct account account;
	bool           is_next;
	enum rc        rc;

	if (lease_step(l->status, LEASE_ON_APPROVE) == NULL)
		return lease_apply(l, LEASE_ON_APPROVE, session_now(s), e); /* refused, in its own words */
	if ((rc = line_is_empty(s, &is_next, e)))
		return rc;
	if (!is_next && !HAS_DEFECT(PASS_THE_LINE))
		return lease_line_join(s, l, approver, by, e);
	rc = account_lend(s, l, by->name, &account, e);
	if (rc == RC_EXHAUSTED) {
		err_clear(e);
		return lease_line_join(s, l, approver, by, e);
	}
	if (rc || (rc = lease_apply(l, LEASE_ON_APPROVE, session_now(s), e)))
		return rc;
	l->account_id = account.id;
	l->approved_by = approver;
	return lease_tell(s, NEWS_LEASE_CLAIMED, l, NULL, by, e);
}
