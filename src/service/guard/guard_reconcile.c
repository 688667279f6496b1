/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_reconcile.c - what another system's account table says of its accounts, for the reconciler.
 *
 * A guard depends on events, and events get lost. So each pass stores which accounts it saw in CleanUp, and which lent.
 * If one is Available later, without a hold or a record of why there is none, the event of its move was lost. The guard
 * is told of that move as CloudTrail would have told it, and decides as always; should the event still come, it is old.
 *
 * Always true:
 *   1. A repair looks again where the account is and what the table says, and judges again in the transaction that
 *      decides it. [mend()]
 *   2. That transaction only stores holds, timers, sagas and events; the guard's sagas do what is done outside.
 *   3. The same missed move is told once: its id is made of the account and of when it was last seen before it.
 *      [tell_guard()]
 *
 * A cleanup that begins and ends between two passes is recognised by the lease before it. The account may also have
 * been moved by hand, and that event may be under way, so the pass waits for a while. [see_exit()]
 *
 * Not here: what is wrong (domain/discrepancy.c).
 */
#include "service/guard/guard_private.h"

#include "base/attr.h"
#include "base/json.h"
#include "domain/guard.h"
#include "service/account/account_follow.h"
#include "service/hold/holds.h"
#include "service/reconcile/reconcile.h"
#include "store/session.h"
#include "store/store.h"

#define FACT_CLEANUP "cleanup-seen/"
#define FACT_LENT    "lent-seen/"
#define ACTOR        "reconciler"

enum { VIEWS_PAGE = 50, LOST_MAX = QUERY_LIMIT_MAX, SEEN_AT_ONCE = 40, HOLDS_LOOKED_AT = 32, LENT_WAIT_MS = 1800000 };

/* --- look --- */

static enum said said_by(struct str status)
{
	return str_eq(status, STR("Available"))    ? SAID_FREE
	       : str_eq(status, STR("Quarantine")) ? SAID_LOCKED
	       : guard_is_leased(status)           ? SAID_LENT
	                                           : SAID_ELSE;
}

static enum rc read_seen(struct session *s, const char *prefix, struct str account, struct fact *ret, struct err *e)
{
	struct str name = str_format(session_arena(s), "%s%.*s", prefix, STR_ARG(account));

	return session_find_or_new(s, &fact_type, name, ret, e);
}

struct own_look {
	struct pool_view *views;
	struct str       *ous; /* where each of them is */
	size_t            count;
	int64_t           started_ms;
	struct str        unreadable; /* the answer, see struct pool_views */
};

/* What our own records say of one. */
struct own {
	struct guard_mark mark;
	struct holds      open;
	int64_t           seen_ms; /* when it was last seen lent, or being cleaned */
};

/* When it was last seen before it came to Available; of one that is being cleaned or lent, before that. */
static enum rc see_exit(struct session *s, struct pool_view *v, struct str ou, struct own *own, struct err *e)
{
	const struct guard_mark *mark = &own->mark;
	struct fact              cleaned, lent;
	enum rc                  rc = read_seen(s, FACT_CLEANUP, v->id, &cleaned, e);

	if (rc || (rc = read_seen(s, FACT_LENT, v->id, &lent, e)))
		return rc;
	own->seen_ms = lent.at_ms > cleaned.at_ms ? lent.at_ms : cleaned.at_ms;
	v->cleaned_ms = str_eq(ou, STR("CleanUp")) ? 0 : cleaned.at_ms;
	if (v->said != SAID_FREE || lent.at_ms <= cleaned.at_ms || session_now(s).ms - lent.at_ms < LENT_WAIT_MS)
		return RC_OK;
	v->cleaned_ms = lent.at_ms;
	v->is_accounted = str_eq(mark->outcome, STR("QUARANTINE_SKIP")) && mark->at_ms >= lent.at_ms;
	return RC_OK;
}

static enum rc see_holds(struct session *s, struct pool_view *v, const struct own *own, struct err *e)
{
	const struct holds *open = &own->open;
	struct hold_list    l = { .account = v->id, .limit = HOLDS_LOOKED_AT };
	enum rc             rc = hold_list(s, &l, e);

	v->open_holds = open->count;
	for (size_t i = 0; i < open->count; i++)
		v->held += str_eq(open->items[i].placement, STR(PLACE_HELD));
	for (size_t i = 0; !rc && i < l.page.count; i++) {
		const struct hold *h = page_record(&l.page, &hold_type, i);

		v->is_accounted = v->is_accounted || h->created_ms >= v->cleaned_ms;
		if (i > 0)
			continue;
		v->is_handed_over = h->state == HOLD_HANDED_OVER;
		/* its release was given up in Quarantine, and nothing is known to have happened to it since */
		v->is_ours = h->state == HOLD_SKIPPED && !h->locks && str_eq(h->placement, STR(PLACE_RELEASED)) &&
		             h->created_ms >= own->seen_ms && h->closed_ms >= own->mark.at_ms;
	}
	return rc;
}

/* What our own records add to what the table says. */
static enum rc see_own(struct session *s, struct pool_view *v, struct str ou, int64_t started_ms, struct own *ret,
                       struct err *e)
{
	struct guard_progress progress;
	enum rc               rc;

	if ((rc = session_find_or_new(s, &guard_mark_type, v->id, &ret->mark, e)) ||
	    (rc = hold_list_open(s, v->id, &ret->open, e)) ||
	    (rc = guard_look_at_progress(s, &ret->mark, &ret->open, &progress, e)) || (rc = see_exit(s, v, ou, ret, e)))
		return rc;
	v->is_busy = progress.is_busy || ret->mark.at_ms >= started_ms;
	v->is_stuck = progress.is_stuck;
	return see_holds(s, v, ret, e);
}

static enum rc see_all_own(struct session *s, void *arg, struct err *e)
{
	struct own_look *l = arg;
	enum rc          rc = RC_OK;

	l->unreadable = STR("");
	for (size_t i = 0; !rc && i < l->count; i++) {
		struct own own;

		rc = see_own(s, &l->views[i], l->ous[i], l->started_ms, &own, e);
		rc = pool_leave_alone(&l->views[i], rc, session_arena(s), &l->unreadable, e);
	}
	return rc;
}

/* One that the table does not have may still have a hold of ours. */
static enum rc see_table(const struct guard *g, struct str id, struct arena *a, struct pool_view *ret,
                         struct str *ret_name, struct err *e)
{
	struct table_account found;
	bool                 is_tracked;
	enum rc              rc = guard_read_table(g, id, a, &found, &is_tracked, e);

	if (rc)
		return rc;
	*ret = (struct pool_view){ .id = id,
		                   .said = said_by(found.status),
		                   .status = found.status,
		                   .expected_ou = found.status,
		                   .has_lease = guard_is_leased(found.status),
		                   .is_guarded = true,
		                   .is_tracked = is_tracked };
	*ret_name = found.name;
	return RC_OK;
}

/* Those whose item there makes no sense are left out. */
static enum rc see_tables(const struct guard *g, const struct pool_member *members, size_t count, struct own_look *ret,
                          struct str *ret_unreadable, struct arena *a, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < count; i++) {
		struct pool_view *v = &ret->views[ret->count];
		struct str        name;

		*v = (struct pool_view){ .id = members[i].id };
		ret->ous[ret->count] = members[i].ou;
		rc = see_table(g, v->id, a, v, &name, e);
		ret->count += !rc;
		rc = pool_leave_alone(v, rc, a, ret_unreadable, e);
	}
	return rc;
}

/* In none of the pool's OUs, with a hold that no time ends: neither the listing nor a release comes upon them. */
struct lost {
	const struct pool_listing *listing;
	struct pool_member         members[LOST_MAX]; /* the answer */
	size_t                     count;
};

static enum rc find_lost(struct session *s, void *arg, struct err *e)
{
	struct lost *l = arg;
	struct query timeless = query_until(&hold_type, HOLD_OPEN_ONES, value_int(1), 0, LOST_MAX);
	struct page  page;
	enum rc      rc = session_query(s, &timeless, &page, e);

	l->count = 0;
	for (size_t i = 0; !rc && i < page.count; i++) {
		struct str id = ((const struct hold *)page_record(&page, &hold_type, i))->account;
		size_t     j = 0;

		while (j < l->count && !str_eq(l->members[j].id, id)) /* it may have several */
			j++;
		if (j == l->count && !pool_find(l->listing, id))
			l->members[l->count++] = (struct pool_member){ .id = id };
	}
	return rc;
}

static enum rc guard_list(struct pool_records *r, const struct pool_listing *listing, struct pool_views *page,
                          struct arena *a, struct err *e)
{
	const struct guard *g = CONTAINER_OF(r, const struct guard_records, base)->guard;
	struct own_look     l = { .started_ms = page->started_ms };
	struct lost        *lost = arena_alloc(a, sizeof(*lost));
	int64_t             from = 0;
	size_t              count;
	bool                is_last;
	enum rc             rc;

	if (page->cursor.n && !str_to_int(page->cursor, 0, (int64_t)listing->count, &from))
		return err_set(e, RC_INTERNAL, "the cursor of a pass makes no sense");
	count = listing->count - (size_t)from;
	is_last = count <= VIEWS_PAGE;
	count = is_last ? count : VIEWS_PAGE;
	lost->listing = listing;
	if (is_last && (rc = store_read(g->options.store, find_lost, lost, a, e)))
		return rc;
	l.views = arena_alloc(a, (count + lost->count) * sizeof(*l.views));
	l.ous = arena_alloc(a, (count + lost->count) * sizeof(*l.ous));
	page->unreadable = STR("");
	if ((rc = see_tables(g, listing->members + from, count, &l, &page->unreadable, a, e)) ||
	    (rc = see_tables(g, lost->members, lost->count, &l, &page->unreadable, a, e)) ||
	    (rc = store_read(g->options.store, see_all_own, &l, a, e)))
		return rc;
	page->items = l.views;
	page->count = l.count;
	if (!page->unreadable.n)
		page->unreadable = l.unreadable;
	page->next = is_last ? STR("") : str_format(a, "%zu", (size_t)from + count);
	return RC_OK;
}

/* --- heal --- */

struct mending {
	const struct guard *guard;
	struct pool_repair *repair;
	struct pool_view    view; /* by the table */
	struct str          name;
	struct str          cleanup, available; /* ids of OUs */
};

/* The move that nobody told of, as CloudTrail would have told it. */
static enum rc tell_guard(struct session *s, const struct mending *m, const struct pool_view *v, struct err *e)
{
	struct arena *a = session_arena(s);
	int64_t       now_ms = session_now(s).ms;
	struct str    id = str_format(a, "untold/%.*s/%lld", STR_ARG(v->id), (long long)v->cleaned_ms);
	struct str    parameters = JSON_OF(a, member_str("accountId", v->id), member_str("sourceParentId", m->cleanup),
	                                   member_str("destinationParentId", m->available));
	struct str    detail = JSON_OF(a, member_word("eventSource", "organizations.amazonaws.com"),
	                               member_word("eventName", "MoveAccount"), member_time("eventTime", now_ms),
	                               member_str("eventID", id), member_raw("requestParameters", parameters));
	struct str    event = JSON_OF(a, member_word("version", "0"), member_str("id", id),
	                              member_word("detail-type", "AWS API Call via CloudTrail"),
	                              member_word("source", "aws.organizations"), member_str("account", v->id),
	                              member_time("time", now_ms), member_word("region", "us-east-1"),
	                              member_raw("detail", detail));

	return account_emit(s, EVENT_GUARD_UNTOLD, v->id, STR(ACTOR), STR(""), event, e);
}

/* It is where no hold brings it back from. In CleanUp its holds end as when an event tells of it. */
static enum rc close_stale(struct session *s, const struct mending *m, struct holds *open, struct str why,
                           struct err *e)
{
	enum hold_state how = str_eq(m->repair->ou, STR("CleanUp")) ? HOLD_CLEANED_AGAIN : HOLD_SKIPPED;
	enum rc         rc = RC_OK;

	for (size_t i = 0; !rc && i < open->count; i++)
		rc = hold_end(s, &open->items[i], how, STR(ACTOR), why, e);
	return rc ? rc
	          : guard_tell(s, "QUARANTINE_ENDED", m->view.id,
	                       JSON_MEMBERS(member_str("reason", why), member_str("currentStatus", m->view.status)), e);
}

static enum rc put_right(struct session *s, const struct mending *m, const struct pool_view *v, struct own *own,
                         struct err *e)
{
	enum discrepancy found = m->repair->found;
	struct str       why = discrepancy_text(found, v, m->repair->ou, session_arena(s));

	switch (found) {
	case DISCREPANCY_BYPASS: return tell_guard(s, m, v, e);
	case DISCREPANCY_STUCK_MOVE: return guard_unstick(s, &own->mark, &own->open, e);
	case DISCREPANCY_STALE_HOLD: return close_stale(s, m, &own->open, why, e);
	case DISCREPANCY_UNRECORDED_REST:
	case DISCREPANCY_NO_HOLD:
		if (found == DISCREPANCY_NO_HOLD || !v->held)
			return guard_hold_found(s, m->guard, v->id, m->name, STR(ACTOR), why, e);
		/* have the table looked at now, as guard_arm_confirm() has it done in two minutes */
		return account_emit(s, EVENT_GUARD_CONFIRM, v->id, STR(GUARD_ACTOR), STR(""),
		                    JSON_OF(session_arena(s), member_str("accountId", v->id)), e);
	default: return RC_OK;
	}
}

static enum rc mend(struct session *s, void *arg, struct err *e)
{
	struct mending     *m = arg;
	struct pool_repair *x = m->repair;
	struct pool_view    v = m->view;
	struct own          own;
	enum rc             rc = see_own(s, &v, x->ou, x->started_ms, &own, e);

	if (rc)
		return rc;
	x->found = discrepancy_judge(&v, x->ou);
	return discrepancy_heals[x->found] ? put_right(s, m, &v, &own, e) : RC_OK;
}

/* Elsewhere by now: the next pass sees it there. */
static enum rc is_still_there(struct account_ous *ous, const struct pool_repair *x, struct arena *a, bool *ret,
                              struct err *e)
{
	struct str here, name;
	enum rc    rc = account_ous_locate(ous, x->id, a, &here, e);

	*ret = rc == RC_NOT_FOUND && !x->ou.n; /* the organisation has it no more */
	if (*ret)
		err_clear(e);
	if (rc)
		return *ret ? RC_OK : rc;
	name = account_ous_name(ous, here, a);
	*ret = str_eq(name, x->ou.n ? x->ou : here); /* what is not of the pool is named by its id */
	return RC_OK;
}

static enum rc guard_heal(struct pool_repair *x, struct err *e)
{
	struct guard                    *g = CONTAINER_OF(x->records, const struct guard_records, base)->guard;
	struct mending                   m = { .guard = g, .repair = x };
	CLEANUP(arena_fini) struct arena a = { 0 };
	bool                             is_there;
	enum rc                          rc;

	x->found = DISCREPANCY_NONE;
	if (!(rc = account_ous_find(g->ous, STR("CleanUp"), &a, &m.cleanup, e)) &&
	    !(rc = account_ous_find(g->ous, STR("Available"), &a, &m.available, e)) &&
	    !(rc = see_table(g, x->id, &a, &m.view, &m.name, e)) &&
	    !(rc = is_still_there(g->ous, x, &a, &is_there, e)) && is_there)
		rc = store_run(g->options.store, mend, &m, &a, e);
	return rc;
}

/* --- who is being cleaned, who is lent --- */

struct seen_page {
	const struct pool_listing *listing;
	size_t                     from, next; /* numbers in the listing */
	int64_t                    started_ms;
};

static enum rc put_seen(struct session *s, void *arg, struct err *e)
{
	struct seen_page *p = arg;
	size_t            i, count = 0;
	enum rc           rc = RC_OK;

	for (i = p->from; !rc && i < p->listing->count && count < SEEN_AT_ONCE; i++) {
		struct str  ou = p->listing->members[i].ou; /* named as the status */
		bool        is_cleanup = str_eq(ou, STR("CleanUp"));
		struct fact fact;

		if (!is_cleanup && !guard_is_leased(ou))
			continue; /* being there says nothing about what comes next */
		if ((rc = read_seen(s, is_cleanup ? FACT_CLEANUP : FACT_LENT, p->listing->members[i].id, &fact, e)))
			return rc;
		fact.value = 1;
		fact.at_ms = p->started_ms; /* it may have left since */
		fact.since_ms = fact.since_ms ? fact.since_ms : fact.at_ms;
		session_put(s, &fact_type, &fact);
		count++;
	}
	p->next = i;
	return rc;
}

static enum rc guard_remember(struct pool_records *r, const struct pool_listing *listing, int64_t started_ms,
                              struct err *e)
{
	const struct guard_records *records = CONTAINER_OF(r, const struct guard_records, base);
	struct seen_page            p = { .listing = listing, .started_ms = started_ms };
	enum rc                     rc = RC_OK;

	for (; !rc && p.from < listing->count; p.from = p.next)
		rc = store_run(records->guard->options.store, put_seen, &p, NULL, e);
	return rc;
}

struct guard_records guard_records(struct guard *g)
{
	static const struct pool_records_ops ops = { .list = guard_list,
		                                     .heal = guard_heal,
		                                     .remember = guard_remember };

	return (struct guard_records){ .base = { .ops = &ops, .below = g->options.sandbox_ou, .needs_events = true },
		                       .guard = g };
}
