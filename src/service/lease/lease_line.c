/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_line.c - who waits for an account, and who is next.
 *
 * An approved lease that finds no free account stays PendingApproval with queued_ms, its place. The line is only an
 * index over these leases, so it survives everything that leases survive.
 *
 * Always true:
 *   1. First come, first served: places are handed out in the order of commits, also when the clock stands still or
 *      goes back [lease_line_join()]; only the first is ever given an account [line_serve()].
 *   2. Nobody waits while an account is free: a free account wakes the queue "line" [line_poke()], and so does every
 *      newcomer. So of two that do not see each other, it does not matter which commits first.
 *
 * An estimate is the time at which enough accounts will have come back: leases end at their end at the latest, a
 * cleanup takes about CLEANUP_MS, and then accounts rest; those in cooldown now have a known end. Of more than
 * ESTIMATE_LEASES leases it looks at that many, and is then too late rather than too early.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "domain/account.h"
#include "kernel/event.h"
#include "service/pool/accounts.h"
#include "service/lease/lease_private.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"

enum {
	SERVE_LOOK = 16,  /* entries that are read to find the first; more only when others have just been served */
	SERVE_BATCH = 3,  /* in one transaction: an account, a lease, a saga and their events each */
	EXPIRE_BATCH = 8, /* in one transaction: a lease, a counter and an event each */
	CLEANUP_MS = 1800000,
	ESTIMATE_LEASES = 2000,
	ESTIMATE_ACCOUNTS = 1000,
};

static const struct actor line_actor = { STR_INIT("line"), STR_INIT("") };

static struct query line_query(size_t limit)
{
	return query_of(&lease_type, LEASE_IN_LINE, value_int(1), limit);
}

/* --- join --- */

enum rc line_is_empty(struct session *s, bool *ret, struct err *e)
{
	struct records line = { .query = line_query(1) };
	enum rc        rc;

	*ret = !session_next(s, &line, &rc, e);
	return rc;
}

enum rc lease_line_join(struct session *s, struct lease *l, struct str approver, const struct actor *by, struct err *e)
{
	struct records      line = { .query = line_query(1) };
	const struct lease *last;
	enum rc             rc;

	assert(l->status == LEASE_PENDING_APPROVAL);
	line.query.is_descending = true;
	last = session_next(s, &line, &rc, e);
	if (rc)
		return rc;
	l->queued_ms = l->edited_ms = session_now(s).ms;
	if (last && l->queued_ms <= last->queued_ms)
		l->queued_ms = last->queued_ms + 1;
	l->queued_by = approver;
	return lease_tell(s, NEWS_LEASE_QUEUED, l, NULL, by, e);
}

/* --- serve --- */

enum rc line_poke(struct session *s, struct err *e)
{
	return session_tell(s, EVENT_ACCOUNT_FREED, STR("line"), line_actor.name, STR(""), STR("{}"), e);
}

/* An index may be behind: what it names is read again. */
static enum rc find_first(struct session *s, struct lease *ret, bool *ret_is_there, struct err *e)
{
	struct records      line = { .query = line_query(SERVE_LOOK), .pages_max = 1 };
	const struct lease *seen;
	enum rc             rc = RC_OK;

	*ret_is_there = false;
	while (!rc && !*ret_is_there && (seen = session_next(s, &line, &rc, e))) {
		rc = session_find(s, &lease_type, seen->uuid, ret, ret_is_there, e);
		*ret_is_there = *ret_is_there && ret->queued_ms > 0;
	}
	return rc;
}

enum rc line_serve(struct session *s, void *arg, struct err *e)
{
	bool          *ret_is_served = arg;
	struct account account;
	struct str     approver;
	struct lease   l;
	bool           is_there;
	enum rc        rc = find_first(s, &l, &is_there, e);

	*ret_is_served = false;
	if (rc || !is_there)
		return rc;
	if ((rc = account_lend(s, &l, line_actor.name, &account, e)))
		return err_forgive(e, rc, RC_EXHAUSTED);
	approver = l.queued_by;
	if ((rc = lease_apply(&l, LEASE_ON_APPROVE, session_now(s), e)))
		return rc;
	l.account_id = account.id;
	l.approved_by = approver;
	lease_store(s, &l);
	*ret_is_served = true;
	return lease_tell(s, NEWS_LEASE_CLAIMED, &l, NULL, &line_actor, e);
}

/* As many as fit into one transaction; if there may be more, another one follows. */
static enum rc on_line_moved(struct session *s, const struct delivery *d UNUSED, void *arg UNUSED, struct err *e)
{
	for (int i = 0; i < SERVE_BATCH; i++) {
		bool    is_served;
		enum rc rc = line_serve(s, &is_served, e);

		if (rc || !is_served)
			return rc;
	}
	return session_tell(s, EVENT_LINE_MOVED, STR("line"), line_actor.name, STR(""), STR("{}"), e);
}

const struct queue line_queue = { .name = LINE_QUEUE, .handle = on_line_moved, .tries = 5 };

enum rc line_expire(struct session *s, void *arg, struct err *e)
{
	struct line_expire *x = arg;
	struct records      old = { .query = query_until(&lease_type, LEASE_IN_LINE, value_int(1), x->before_ms - 1,
		                                         EXPIRE_BATCH),
		                    .pages_max = 1 };
	const struct lease *seen;
	enum rc             rc = RC_OK;

	x->expired = 0;
	while (!rc && (seen = session_next(s, &old, &rc, e))) {
		struct lease l;

		if ((rc = lease_load(s, seen->uuid, &l, e)) || !l.queued_ms || l.queued_ms >= x->before_ms)
			continue; /* the index was behind: it has left the line, or joined it again */
		rc = lease_refuse(s, &l, LEASE_ON_DENY, line_actor.name, STR("queue_timeout"), &line_actor, e);
		x->expired += !rc;
	}
	return rc;
}

/* --- place and estimate --- */

static enum rc count_before(struct session *s, const struct lease *l, int64_t *ret, struct err *e)
{
	struct records line = { .query = query_until(&lease_type, LEASE_IN_LINE, value_int(1), l->queued_ms - 1,
		                                     QUERY_LIMIT_MAX) };
	enum rc        rc;

	for (*ret = 0; session_next(s, &line, &rc, e); ++*ret)
		;
	return rc;
}

/* When accounts come back, in any order. */
struct returns {
	int64_t at_ms[2 * ESTIMATE_LEASES + 2 * ESTIMATE_ACCOUNTS];
	size_t  count;
	int64_t rest_ms; /* after a cleanup */
};

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static enum rc add_leases(struct session *s, enum lease_status status, struct returns *r, struct err *e)
{
	struct records      all = { .query = query_of(&lease_type, LEASE_BY_STATUS, value_int(status), QUERY_LIMIT_MAX),
		                    .pages_max = ESTIMATE_LEASES / QUERY_LIMIT_MAX };
	const struct lease *l;
	enum rc             rc;

	while ((l = session_next(s, &all, &rc, e)))
		if (l->expires_ms)
			r->at_ms[r->count++] = later(l->expires_ms, session_now(s).ms) + CLEANUP_MS + r->rest_ms;
	return rc;
}

/* Those in CleanUp or Cooldown. One that a person has to release has no time. */
static enum rc add_accounts(struct session *s, enum account_status status, struct returns *r, struct err *e)
{
	struct records        all = { .query = query_of(&account_type, ACCOUNT_BY_STATUS, value_int(status),
		                                        ESTIMATE_ACCOUNTS),
		                      .pages_max = 1 };
	int64_t               now_ms = session_now(s).ms;
	const struct account *a;
	enum rc               rc;

	while ((a = session_next(s, &all, &rc, e))) {
		int64_t from_ms = a->clean_started_ms ? a->clean_started_ms : now_ms;

		if (status == ACCOUNT_CLEANUP)
			r->at_ms[r->count++] = later(from_ms + CLEANUP_MS, now_ms) + r->rest_ms;
		else if (a->rest_until_ms)
			r->at_ms[r->count++] = later(a->rest_until_ms, now_ms);
	}
	return rc;
}

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

enum rc line_place(struct session *s, const struct lease *l, int64_t rest_ms, int64_t *ret_position,
                   int64_t *ret_estimate_ms, struct err *e)
{
	struct returns *r;
	int64_t         before;
	enum rc         rc;

	*ret_position = *ret_estimate_ms = 0;
	if (!l->queued_ms)
		return RC_OK;
	r = arena_alloc(session_arena(s), sizeof(*r));
	r->rest_ms = rest_ms;
	if ((rc = count_before(s, l, &before, e)) || (rc = add_accounts(s, ACCOUNT_CLEANUP, r, e)) ||
	    (rc = add_accounts(s, ACCOUNT_COOLDOWN, r, e)) || (rc = add_leases(s, LEASE_ACTIVE, r, e)) ||
	    (rc = add_leases(s, LEASE_FROZEN, r, e)))
		return rc;
	qsort(r->at_ms, r->count, sizeof(r->at_ms[0]), compare_times);
	*ret_position = before + 1;
	*ret_estimate_ms = (size_t)before < r->count ? r->at_ms[before] : 0;
	return RC_OK;
}
