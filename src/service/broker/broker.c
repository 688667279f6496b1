/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker.c - the pool's transactions: load, decide, put.
 *
 * Every function here runs inside the store (see store.h) and may be run again; the rules are the domain's. Whatever
 * changes a sandbox emits one event in the same transaction; what changes nothing emits none. That a track never
 * holds two sandboxes is kept twice: broker_claim() looks for a live one first, and the unique TrackIndex refuses a
 * second even if it had not.
 */
#include "service/broker/broker.h"

#include "base/arena.h"
#include "service/broker/claims_pause.h"
#include "service/broker/records.h"

enum { RESERVED_SCAN_PAGE = 16, RESERVED_SCAN_MAX = 64, STALE_SCAN_PAGE = 500, FIND_STEPS_MAX = 200, DAY_SEC = 86400 };

static enum rc none_is_free(const struct claim *c, struct err *e)
{
	err_clear(e); /* what the store says of it knows no prefix */
	if (!c->prefix.n)
		return err_set(e, RC_EXHAUSTED, "no sandbox is free");
	return err_set(e, RC_EXHAUSTED, "no sandbox whose name begins with '%.*s' is free", STR_ARG(c->prefix));
}

/* The first free sandbox that nobody in line could use. What the line can use is freshly freed and few, so a short
 * look is enough; after it the caller is told that there is none. */
static enum rc claim_beside_line(struct session *s, const struct query *free_ones, struct claim *c, struct err *e)
{
	struct records        all = { .query = *free_ones, .pages_max = RESERVED_SCAN_MAX };
	const struct sandbox *one;
	enum rc               rc;

	all.query.limit = RESERVED_SCAN_PAGE;
	while ((one = session_next(s, &all, &rc, e))) {
		size_t i = 0;

		while (i < c->reserved_count && !str_starts_with(one->name, c->reserved[i]))
			i++;
		c->sandbox = *one;
		if (i == c->reserved_count)
			return RC_OK;
	}
	return rc ? rc : none_is_free(c, e);
}

static enum rc pick_free(struct session *s, struct claim *c, struct err *e)
{
	struct query q = { .type = &sandbox_type, .hash = value_int(SANDBOX_AVAILABLE) };
	enum rc      rc;

	q.index = c->prefix.n ? SANDBOX_FREE : SANDBOX_BY_STATUS;
	q.sort_prefix = c->prefix;
	if (c->reserved_count)
		return claim_beside_line(s, &q, c, e);
	rc = session_claim(s, &q, &c->sandbox, e);
	return rc == RC_EXHAUSTED ? none_is_free(c, e) : rc;
}

static enum rc check_lending(const struct claim *c, struct err *e)
{
	if (c->lending && claims_switch_is_paused(c->lending))
		return err_set_code(e, RC_UNAVAILABLE, "CLAIMS_PAUSED",
		                    "no sandbox is lent now: an operator must first check which ones are in use");
	return RC_OK;
}

static enum rc lend(struct session *s, struct claim *c, const struct actor *by, struct err *e)
{
	enum rc rc = pick_free(s, c, e);

	if (rc || (rc = sandbox_claim(&c->sandbox, &c->ask, session_now(s), e)))
		return rc;
	c->is_new = true;
	return sandbox_save(s, NEWS_SANDBOX_ALLOCATED, &c->sandbox, by, e);
}

enum rc broker_claim(struct session *s, void *arg, struct err *e)
{
	struct claim *c = arg;
	struct actor  by = c->by;
	enum rc rc = session_find_unique(s, &sandbox_type, SANDBOX_BY_TRACK, value_text(c->ask.owner), &c->sandbox, e);

	c->is_new = false;
	if (rc && rc != RC_NOT_FOUND)
		return rc;
	if (!rc && sandbox_is_live(&c->sandbox, session_now(s)))
		return RC_OK;
	if (check_lending(c, e))
		return RC_UNAVAILABLE;
	if (!by.name.n)
		by = actor_of_track(s, c->ask.owner, by.request_id);
	if (!rc && ((rc = sandbox_apply(&c->sandbox, SANDBOX_ON_EXPIRE, session_now(s), e)) ||
	            (rc = sandbox_save(s, NEWS_SANDBOX_EXPIRED, &c->sandbox, &by, e))))
		return rc; /* the one it holds is over, though nobody had noticed yet */
	return lend(s, c, &by, e);
}

static enum rc load(struct session *s, struct sandbox_call *c, struct err *e)
{
	bool    is_there = false;
	enum rc rc = sandbox_is_id(c->id) ? session_find(s, &sandbox_type, c->id, &c->sandbox, &is_there, e) : RC_OK;

	if (!rc && !is_there)
		return err_set_code(e, RC_NOT_FOUND, "SANDBOX_NOT_FOUND", "there is no sandbox %.*s", STR_ARG(c->id));
	return rc;
}

enum rc broker_show(struct session *s, void *arg, struct err *e)
{
	struct sandbox_call *c = arg;
	enum rc              rc = load(s, c, e);

	return rc ? rc : sandbox_check_owner(&c->sandbox, c->owner, e);
}

TXN(broker_inspect, load(s, arg, e))

enum rc broker_give_back(struct session *s, void *arg, struct err *e)
{
	struct sandbox_call *c = arg;
	struct actor         by;
	bool                 is_changed;
	enum rc              rc = load(s, c, e);

	if (rc || (rc = sandbox_give_back(&c->sandbox, c->owner, session_now(s), &is_changed, e)) || !is_changed)
		return rc;
	by = actor_of_track(s, c->owner, c->by.request_id);
	return sandbox_save(s, NEWS_SANDBOX_MARKED, &c->sandbox, &by, e);
}

typedef enum rc sandbox_change_fn(struct sandbox *s, struct wall now, struct err *e);

/* An operator's change. */
static enum rc change(struct session *s, struct sandbox_call *c, sandbox_change_fn *apply, enum sandbox_news news,
                      struct err *e)
{
	enum rc rc = load(s, c, e);

	if (rc || (rc = apply(&c->sandbox, session_now(s), e)))
		return rc;
	return sandbox_save(s, news, &c->sandbox, &c->by, e);
}

enum rc broker_quarantine(struct session *s, void *arg, struct err *e)
{
	struct sandbox_call *c = arg;
	enum rc              rc = load(s, c, e);

	if (rc || (rc = sandbox_quarantine(&c->sandbox, c->reason, session_now(s), e)))
		return rc;
	return sandbox_save(s, NEWS_SANDBOX_QUARANTINED, &c->sandbox, &c->by, e);
}

enum rc broker_replace(struct session *s, void *arg, struct err *e)
{
	struct replacement *p = arg;
	struct sandbox_call old = { .id = p->id };
	struct claim       *c = &p->claim;
	enum rc             rc = load(s, &old, e);

	if (rc || (rc = check_lending(c, e)))
		return rc;
	if (old.sandbox.status != SANDBOX_ALLOCATED)
		return err_set(e, RC_CONFLICT, "no track holds sandbox %.*s: it is %s", STR_ARG(p->id),
		               sandbox_state_name(old.sandbox.status));
	c->ask.owner = old.sandbox.allocated_to_track;
	c->ask.track_name = old.sandbox.track_name;
	if ((rc = sandbox_quarantine(&old.sandbox, p->reason, session_now(s), e)) ||
	    (rc = sandbox_save(s, NEWS_SANDBOX_QUARANTINED, &old.sandbox, &c->by, e)))
		return rc;
	return lend(s, c, &c->by, e);
}

TXN(broker_release, change(s, arg, sandbox_release, NEWS_SANDBOX_RELEASED, e))
TXN(broker_retry_deletion, change(s, arg, sandbox_retry_deletion, NEWS_SANDBOX_DELETION_RETRIED, e))
TXN(broker_discard, change(s, arg, sandbox_discard, NEWS_SANDBOX_MARKED, e))

static bool has_text(struct str in, struct str text)
{
	for (size_t i = 0; i + text.n <= in.n; i++)
		if (str_eq_nocase(str_of(in.p + i, text.n), text))
			return true;
	return false;
}

/* Steps of half a page, so that what is found always fits into the page. */
static enum rc find_some(struct session *s, struct query *q, struct sandbox_list *l, struct err *e)
{
	struct sandbox *found = arena_alloc(session_arena(s), l->limit * sizeof(*found));
	size_t          count = 0;

	q->limit = (l->limit + 1) / 2;
	for (int step = 0; step < FIND_STEPS_MAX && count + q->limit <= l->limit; step++) {
		struct page page;
		enum rc     rc = session_query(s, q, &page, e);

		if (rc)
			return rc;
		for (size_t i = 0; i < page.count; i++) {
			const struct sandbox *one = page_record(&page, &sandbox_type, i);

			if (has_text(one->name, l->find) || has_text(one->sandbox_id, l->find) ||
			    has_text(one->allocated_to_track, l->find) || has_text(one->external_id, l->find))
				found[count++] = *one;
		}
		q->cursor = page.next;
		if (!page.next.n)
			break;
	}
	l->page = (struct page){ .records = (char *)found, .count = count, .next = q->cursor };
	return RC_OK;
}

enum rc broker_list(struct session *s, void *arg, struct err *e)
{
	struct sandbox_list *l = arg;
	struct query         q = { .type = &sandbox_type, .index = QUERY_ALL, .limit = l->limit, .cursor = l->cursor };

	if (l->has_status) {
		q.index = SANDBOX_BY_STATUS;
		q.hash = value_int(l->status);
	}
	return l->find.n ? find_some(s, &q, l, e) : session_query(s, &q, &l->page, e);
}

enum rc broker_count(struct session *s, void *arg, struct err *e)
{
	struct pool_counts *c = arg;
	enum rc             rc = RC_OK;

	c->total = 0;
	for (int state = 0; !rc && state < SANDBOX_STATE_COUNT; state++) {
		rc = session_count(s, &sandbox_type, SANDBOX_BY_STATUS, value_int(state), &c->by_state[state], e);
		c->total += rc ? 0 : c->by_state[state];
	}
	return rc;
}

enum rc broker_stats(struct session *s, void *arg, struct err *e)
{
	struct pool_stats    *p = arg;
	struct records        stale = { .query = query_of(&sandbox_type, SANDBOX_BY_STATUS, value_int(SANDBOX_STALE),
		                                          STALE_SCAN_PAGE) };
	const struct sandbox *one;
	enum rc               rc = broker_count(s, &p->counts, e);

	p->quarantined = 0;
	while (!rc && (one = session_next(s, &stale, &rc, e)))
		p->quarantined += one->quarantine_reason.n > 0;
	return rc;
}

enum rc broker_forecast(struct session *s, void *arg, struct err *e)
{
	struct forecast      *f = arg;
	struct records        all = { .query = query_of(&sandbox_type, QUERY_ALL, value_int(0), STALE_SCAN_PAGE) };
	int64_t               now = wall_sec(session_now(s)), gone;
	const struct sandbox *one;
	enum rc               rc = RC_OK;

	f->available = f->ending = f->pending = f->added = 0;
	while ((one = session_next(s, &all, &rc, e))) {
		f->available += one->status == SANDBOX_AVAILABLE;
		f->ending += one->status == SANDBOX_ALLOCATED && sandbox_expires_at(one) <= f->at;
		f->pending += one->status == SANDBOX_PENDING_DELETION;
		f->added += one->created_at > now - DAY_SEC;
	}
	gone = f->ending + f->pending;
	f->refill = f->at > now ? f->added * (f->at - now) / DAY_SEC : 0;
	if (f->refill > gone)
		f->refill = gone;
	return rc;
}
