/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker.c - the pool's transactions: load, decide, put.
 *
 * Every function here runs inside the store (see store.h) and may be run again; the rules are the domain's. Whatever
 * changes a sandbox emits one event in the same transaction; what changes nothing emits none. That a track never
 * holds two sandboxes is kept twice: broker_claim() looks for a live one first, and the unique TrackIndex refuses a
 * second even if it had not.
 */
#include "service/broker.h"

#include "base/arena.h"
#include "service/records.h"

enum { RESERVED_SCAN_PAGE = 16, RESERVED_SCAN_MAX = 64, STALE_SCAN_PAGE = 500, FIND_STEPS_MAX = 200 };

static enum rc none_is_free(const struct claim *c, struct err *e)
{
	err_clear(e); /* what the store says of it knows no prefix */
	if (!c->prefix.n)
		return err_set(e, RC_EXHAUSTED, "no sandbox is free");
	return err_set(e, RC_EXHAUSTED, "no sandbox whose name begins with '%.*s' is free", STR_ARG(c->prefix));
}

static bool is_reserved(const struct claim *c, const struct sandbox *sandbox)
{
	for (size_t i = 0; i < c->reserved_count; i++)
		if (str_starts_with(sandbox->name, c->reserved[i]))
			return true;
	return false;
}

/* The first free sandbox that nobody in line could use. What the line can use is freshly freed and few, so a short
 * look is enough; after it the caller is told that there is none. */
static enum rc claim_beside_line(struct session *s, const struct query *free_ones, struct claim *c, struct err *e)
{
	struct query q = *free_ones;
	struct page  page;

	q.limit = RESERVED_SCAN_PAGE;
	for (int i = 0; i < RESERVED_SCAN_MAX; i++) {
		enum rc rc = session_query(s, &q, &page, e);

		if (rc)
			return rc;
		for (size_t j = 0; j < page.count; j++) {
			c->sandbox = *(struct sandbox *)page_record(&page, &sandbox_type, j);
			if (!is_reserved(c, &c->sandbox))
				return RC_OK;
		}
		if (page.next.n == 0)
			break;
		q.cursor = page.next;
	}
	return none_is_free(c, e);
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

/* The one it holds may be over, though nobody has noticed yet. */
static enum rc end_expired(struct session *s, struct claim *c, const struct actor *by, struct err *e)
{
	enum rc rc = sandbox_apply(&c->sandbox, SANDBOX_ON_EXPIRE, session_now(s), e);

	if (rc)
		return rc;
	return sandbox_save(s, NEWS_SANDBOX_EXPIRED, &c->sandbox, by, e);
}

enum rc broker_claim(struct session *s, void *arg, struct err *e)
{
	struct claim *c = arg;
	struct actor  by;
	enum rc rc = session_find_unique(s, &sandbox_type, SANDBOX_BY_TRACK, value_text(c->ask.owner), &c->sandbox, e);

	c->is_new = false;
	if (rc && rc != RC_NOT_FOUND)
		return rc;
	if (!rc && sandbox_is_live(&c->sandbox, session_now(s)))
		return RC_OK;
	by = actor_of_track(s, c->ask.owner, c->request_id);
	if (!rc && (rc = end_expired(s, c, &by, e)))
		return rc;
	if ((rc = pick_free(s, c, e)))
		return rc;
	if ((rc = sandbox_claim(&c->sandbox, &c->ask, session_now(s), e)))
		return rc;
	c->is_new = true;
	return sandbox_save(s, NEWS_SANDBOX_ALLOCATED, &c->sandbox, &by, e);
}

static enum rc load(struct session *s, struct sandbox_call *c, struct err *e)
{
	enum rc rc = sandbox_is_id(c->id) ? session_get(s, &sandbox_type, c->id, &c->sandbox, NULL) : RC_NOT_FOUND;

	if (rc == RC_NOT_FOUND)
		return err_set_code(e, rc, "SANDBOX_NOT_FOUND", "there is no sandbox %.*s", STR_ARG(c->id));
	if (rc)
		return err_set(e, rc, "sandbox %.*s cannot be read", STR_ARG(c->id));
	return RC_OK;
}

enum rc broker_show(struct session *s, void *arg, struct err *e)
{
	struct sandbox_call *c = arg;
	enum rc              rc = load(s, c, e);

	return rc ? rc : sandbox_check_owner(&c->sandbox, c->owner, e);
}

enum rc broker_inspect(struct session *s, void *arg, struct err *e)
{
	return load(s, arg, e);
}

enum rc broker_give_back(struct session *s, void *arg, struct err *e)
{
	struct sandbox_call *c = arg;
	struct actor         by;
	bool                 is_changed;
	enum rc              rc = load(s, c, e);

	if (rc)
		return rc;
	if ((rc = sandbox_give_back(&c->sandbox, c->owner, session_now(s), &is_changed, e)))
		return rc;
	if (!is_changed)
		return RC_OK;
	by = actor_of_track(s, c->owner, c->by.request_id);
	return sandbox_save(s, NEWS_SANDBOX_MARKED, &c->sandbox, &by, e);
}

enum rc broker_quarantine(struct session *s, void *arg, struct err *e)
{
	struct sandbox_call *c = arg;
	enum rc              rc = load(s, c, e);

	if (rc)
		return rc;
	if ((rc = sandbox_quarantine(&c->sandbox, c->reason, session_now(s), e)))
		return rc;
	return sandbox_save(s, NEWS_SANDBOX_QUARANTINED, &c->sandbox, &c->by, e);
}

enum rc broker_release(struct session *s, void *arg, struct err *e)
{
	struct sandbox_call *c = arg;
	enum rc              rc = load(s, c, e);

	if (rc)
		return rc;
	if ((rc = sandbox_release(&c->sandbox, session_now(s), e)))
		return rc;
	return sandbox_save(s, NEWS_SANDBOX_RELEASED, &c->sandbox, &c->by, e);
}

enum rc broker_retry_deletion(struct session *s, void *arg, struct err *e)
{
	struct sandbox_call *c = arg;
	enum rc              rc = load(s, c, e);

	if (rc)
		return rc;
	if ((rc = sandbox_retry_deletion(&c->sandbox, session_now(s), e)))
		return rc;
	return sandbox_save(s, NEWS_SANDBOX_DELETION_RETRIED, &c->sandbox, &c->by, e);
}

enum rc broker_discard(struct session *s, void *arg, struct err *e)
{
	struct sandbox_call *c = arg;
	enum rc              rc = load(s, c, e);

	if (rc)
		return rc;
	if ((rc = sandbox_discard(&c->sandbox, session_now(s), e)))
		return rc;
	return sandbox_save(s, NEWS_SANDBOX_MARKED, &c->sandbox, &c->by, e);
}

static bool has_text(struct str in, struct str text)
{
	for (size_t i = 0; i + text.n <= in.n; i++)
		if (str_eq_nocase(str_of(in.p + i, text.n), text))
			return true;
	return false;
}

static bool is_found(const struct sandbox *s, struct str text)
{
	return has_text(s->name, text) || has_text(s->sandbox_id, text) || has_text(s->allocated_to_track, text) ||
	       has_text(s->external_id, text);
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

			if (is_found(one, l->find))
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

	c->total = 0;
	for (int state = 0; state < SANDBOX_STATE_COUNT; state++) {
		enum rc rc = session_count(s, &sandbox_type, SANDBOX_BY_STATUS, value_int(state), &c->by_state[state],
		                           e);

		if (rc)
			return rc;
		c->total += c->by_state[state];
	}
	return RC_OK;
}

static enum rc count_quarantined(struct session *s, int64_t *ret, struct err *e)
{
	struct query q = { .type = &sandbox_type,
		           .index = SANDBOX_BY_STATUS,
		           .hash = value_int(SANDBOX_STALE),
		           .limit = STALE_SCAN_PAGE };
	struct page  page;

	*ret = 0;
	do {
		enum rc rc = session_query(s, &q, &page, e);

		if (rc)
			return rc;
		for (size_t i = 0; i < page.count; i++)
			*ret += ((struct sandbox *)page_record(&page, &sandbox_type, i))->quarantine_reason.n > 0;
		q.cursor = page.next;
	} while (page.next.n);
	return RC_OK;
}

enum rc broker_stats(struct session *s, void *arg, struct err *e)
{
	struct pool_stats *p = arg;
	enum rc            rc = broker_count(s, &p->counts, e);

	return rc ? rc : count_quarantined(s, &p->quarantined, e);
}
