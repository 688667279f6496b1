/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_line.c - who waits for an account, and who is next.
 *
 * An approved lease that finds no free account stays PendingApproval with queued_ms, its place. There is nothing else: the line is an index
 * over these leases, so it survives everything that leases survive.
 *
 * Always true:
 *   1. First come, first served: places are handed out in the order of commits, also when the clock stands still or goes back
 *      [lease_line_join()]; only the first is ever given an account [serve_next()].
 *   2. Nobody waits while an account is free: a free account tells the queue "line" [line_poke()], and so does whoever joins. So it does
 *      not matter which of two that do not see each other commits first.
 *
 * An estimate is the time at which as many accounts will have come back as there are people before and at this place: leases end at the
 * latest at their end, a cleanup takes about CLEANUP_MS, and then accounts rest; those that rest now have their time. With more leases than ESTIMATE_LEASES it looks at so many of them, and is
 * then rather too late than too early.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "domain/account.h"
#include "kernel/event.h"
#include "service/lease_flow.h"
#include "service/lease_ops.h"
#include "service/lease_records.h"
#include "service/leases.h"

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
	return (struct query){ .type = &lease_type, .index = LEASE_IN_LINE, .hash = value_int(1), .limit = limit };
}

/* --- join --- */

enum rc line_is_empty(struct session *s, bool *ret, struct err *e)
{
	struct query q = line_query(1);
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	if (!rc)
		*ret = page.count == 0;
	return rc;
}

enum rc lease_line_join(struct session *s, struct lease *l, struct str approver, const struct actor *by, struct err *e)
{
	struct query q = line_query(1);
	struct page  page;
	enum rc      rc;

	assert(l->status == LEASE_PENDING_APPROVAL);
	q.is_descending = true;
	if ((rc = session_query(s, &q, &page, e)))
		return rc;
	l->queued_ms = l->edited_ms = session_now(s).ms;
	if (page.count) {
		const struct lease *last = page_record(&page, &lease_type, 0);

		if (l->queued_ms <= last->queued_ms)
			l->queued_ms = last->queued_ms + 1;
	}
	l->queued_by = approver;
	return lease_tell(s, NEWS_LEASE_QUEUED, l, NULL, by, e);
}

/* --- serve --- */

static enum rc tell_line(struct session *s, const char *type, struct err *e)
{
	struct event event = {
		.type = str_from(type), .subject = STR("line"), .actor = line_actor.name, .detail = STR("{}")
	};

	return session_emit(s, &event, e);
}

enum rc line_poke(struct session *s, struct err *e)
{
	return tell_line(s, EVENT_ACCOUNT_FREED, e);
}

/* An index may be behind: what it names is read again. */
static enum rc find_first(struct session *s, struct lease *ret, bool *ret_is_there, struct err *e)
{
	struct query q = line_query(SERVE_LOOK);
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	*ret_is_there = false;
	for (size_t i = 0; !rc && i < page.count && !*ret_is_there; i++) {
		const struct lease *seen = page_record(&page, &lease_type, i);

		rc = session_get(s, &lease_type, seen->uuid, ret, e);
		*ret_is_there = !rc && ret->queued_ms > 0;
		if (rc == RC_NOT_FOUND) {
			err_clear(e);
			rc = RC_OK;
		}
	}
	return rc;
}

static enum rc serve_next(struct session *s, int64_t *ret_served, struct err *e)
{
	struct account account;
	struct str     approver;
	struct lease   l;
	bool           is_there;
	enum rc        rc = find_first(s, &l, &is_there, e);

	*ret_served = 0;
	if (rc || !is_there)
		return rc;
	rc = account_lend(s, &l, line_actor.name, &account, e);
	if (rc == RC_EXHAUSTED) {
		err_clear(e);
		return RC_OK;
	}
	if (rc)
		return rc;
	approver = l.queued_by;
	if ((rc = lease_apply(&l, LEASE_ON_APPROVE, session_now(s), e)))
		return rc;
	l.account_id = account.id;
	l.approved_by = approver;
	lease_store(s, &l);
	*ret_served = 1;
	return lease_tell(s, NEWS_LEASE_CLAIMED, &l, NULL, &line_actor, e);
}

enum rc line_serve(struct session *s, void *arg, struct err *e)
{
	struct line_serve *serve = arg;

	return serve_next(s, &serve->served, e);
}

/* As many as one transaction holds; when that was not the end of it, another one follows. */
enum rc line_handle(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	(void)d;
	(void)arg;
	for (int i = 0; i < SERVE_BATCH; i++) {
		int64_t served;
		enum rc rc = serve_next(s, &served, e);

		if (rc || !served)
			return rc;
	}
	return tell_line(s, EVENT_LINE_MOVED, e);
}

enum rc line_expire(struct session *s, void *arg, struct err *e)
{
	struct line_expire *x = arg;
	struct query        q = line_query(EXPIRE_BATCH);
	struct page         page;
	enum rc             rc;

	x->expired = 0;
	q.has_sort_max = true;
	q.sort_max = x->before_ms - 1;
	if ((rc = session_query(s, &q, &page, e)))
		return rc;
	for (size_t i = 0; i < page.count; i++) {
		struct lease l;

		if ((rc = lease_load(s, ((struct lease *)page_record(&page, &lease_type, i))->uuid, &l, e)))
			return rc;
		if (!l.queued_ms)
			continue;
		rc = lease_refuse(s, &l, LEASE_ON_DENY, line_actor.name, STR("queue_timeout"), &line_actor, e);
		if (rc)
			return rc;
		x->expired++;
	}
	return RC_OK;
}

/* --- place and estimate --- */

static enum rc count_before(struct session *s, const struct lease *l, int64_t *ret, struct err *e)
{
	struct query q = line_query(QUERY_LIMIT_MAX);
	struct page  page;

	q.has_sort_max = true;
	q.sort_max = l->queued_ms - 1;
	*ret = 0;
	do {
		enum rc rc = session_query(s, &q, &page, e);

		if (rc)
			return rc;
		*ret += (int64_t)page.count;
		q.cursor = page.next;
	} while (page.next.n);
	return RC_OK;
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
	struct query q = {
		.type = &lease_type, .index = LEASE_BY_STATUS, .hash = value_int(status), .limit = QUERY_LIMIT_MAX
	};
	struct page page;

	for (int seen = 0; seen < ESTIMATE_LEASES; seen += QUERY_LIMIT_MAX) {
		enum rc rc = session_query(s, &q, &page, e);

		if (rc)
			return rc;
		for (size_t i = 0; i < page.count; i++) {
			const struct lease *l = page_record(&page, &lease_type, i);

			if (l->expires_ms)
				r->at_ms[r->count++] = later(l->expires_ms, session_now(s).ms) + CLEANUP_MS +
				                       r->rest_ms;
		}
		if (!page.next.n)
			break;
		q.cursor = page.next;
	}
	return RC_OK;
}

static enum rc add_cleanups(struct session *s, struct returns *r, struct err *e)
{
	struct query q = { .type = &account_type,
		           .index = ACCOUNT_BY_STATUS,
		           .hash = value_int(ACCOUNT_CLEANUP),
		           .limit = ESTIMATE_ACCOUNTS };
	struct page  page;
	int64_t      now_ms = session_now(s).ms;
	enum rc      rc = session_query(s, &q, &page, e);

	for (size_t i = 0; !rc && i < page.count; i++) {
		const struct account *a = page_record(&page, &account_type, i);
		int64_t               from_ms = a->clean_started_ms ? a->clean_started_ms : now_ms;

		r->at_ms[r->count++] = later(from_ms + CLEANUP_MS, now_ms) + r->rest_ms;
	}
	return rc;
}

/* Those that a person has to release have no time. */
static enum rc add_rests(struct session *s, struct returns *r, struct err *e)
{
	struct query q = { .type = &account_type,
		           .index = ACCOUNT_BY_STATUS,
		           .hash = value_int(ACCOUNT_COOLDOWN),
		           .limit = ESTIMATE_ACCOUNTS };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	for (size_t i = 0; !rc && i < page.count; i++) {
		const struct account *a = page_record(&page, &account_type, i);

		if (a->rest_until_ms)
			r->at_ms[r->count++] = later(a->rest_until_ms, session_now(s).ms);
	}
	return rc;
}

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static enum rc estimate(struct session *s, int64_t position, int64_t rest_ms, int64_t *ret_ms, struct err *e)
{
	struct returns *r = arena_alloc(session_arena(s), sizeof(*r));
	enum rc         rc;

	r->rest_ms = rest_ms;
	if ((rc = add_cleanups(s, r, e)) || (rc = add_rests(s, r, e)) || (rc = add_leases(s, LEASE_ACTIVE, r, e)) ||
	    (rc = add_leases(s, LEASE_FROZEN, r, e)))
		return rc;
	qsort(r->at_ms, r->count, sizeof(r->at_ms[0]), compare_times);
	*ret_ms = (size_t)position <= r->count ? r->at_ms[position - 1] : 0;
	return RC_OK;
}

enum rc line_place(struct session *s, const struct lease *l, int64_t rest_ms, int64_t *ret_position,
                   int64_t *ret_estimate_ms, struct err *e)
{
	int64_t before;
	enum rc rc;

	*ret_position = *ret_estimate_ms = 0;
	if (!l->queued_ms)
		return RC_OK;
	if ((rc = count_before(s, l, &before, e)))
		return rc;
	*ret_position = before + 1;
	return estimate(s, *ret_position, rest_ms, ret_estimate_ms, e);
}
