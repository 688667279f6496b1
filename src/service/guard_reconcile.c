/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_reconcile.c - what another system's account table says of its accounts, for the reconciler.
 *
 * A guard depends on events, and events are lost. So each pass notes which accounts it has seen in CleanUp, and which lent: one that is
 * Available later, without a hold or a record of why there is none since, came out of a cleanup without anybody telling. The guard is told of
 * that move as CloudTrail would have told it: it then decides as always, with all its rules, and the event that comes after all is old.
 *
 * Always true:
 *   1. A repair looks again where the account is and what the table says, and judges again in the transaction that decides it.  [mend()]
 *   2. That transaction stores holds, timers, sagas and events; what is done outside follows from them by the guard's own ways.
 *   3. The same missed move is told once: its id is made of the account and of when it was last seen before it.            [tell_guard()]
 *
 * A cleanup that begins and ends between two passes is seen by the lease before it; as the account may have been moved by hand instead, and
 * the event of that be under way, it is waited for a while.                                                              [see_exit()]
 *
 * Not here: what is wrong (domain/discrepancy_guard.c).
 */
#include "service/guard_parts.h"

#include "base/attr.h"
#include "base/buf.h"
#include "base/json.h"
#include "domain/guard.h"
#include "kernel/event.h"
#include "service/account_follow.h"
#include "service/holds.h"
#include "service/pool_listing.h"
#include "service/reconcile.h"
#include "store/session.h"
#include "store/store.h"

#define FACT_CLEANUP "cleanup-seen/"
#define FACT_LENT    "lent-seen/"
#define ACTOR        "reconciler"

enum { VIEWS_PAGE = 50, SEEN_AT_ONCE = 40, HOLDS_LOOKED_AT = 32, DETAIL_TEXT_MAX = 4096, LENT_WAIT_MS = 1800000 };

/* --- look --- */

static enum said said_by(struct str status)
{
	if (str_eq(status, STR("Available")))
		return SAID_FREE;
	if (str_eq(status, STR("Quarantine")))
		return SAID_LOCKED;
	return guard_is_leased(status) ? SAID_LENT : SAID_ELSE;
}

static enum rc read_seen(struct session *s, const char *prefix, struct str account, struct fact *ret, struct err *e)
{
	struct str name = str_format(session_arena(s), "%s%.*s", prefix, STR_ARG(account));
	enum rc    rc = session_get(s, &fact_type, name, ret, NULL);

	if (rc == RC_NOT_FOUND)
		*ret = (struct fact){ .name = name };
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "fact %.*s cannot be read", STR_ARG(name)) : RC_OK;
}

struct own_look {
	struct pool_view *views;
	struct str       *ous; /* where each of them is */
	size_t            count;
	int64_t           started_ms;
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

/* Its release was given up while it was in Quarantine, and nothing is known to have happened to it since. */
static bool was_left_there(const struct hold *h, const struct own *own)
{
	return h->state == HOLD_SKIPPED && !h->locks && str_eq(h->placement, STR(PLACE_RELEASED)) &&
	       h->created_ms >= own->seen_ms && h->closed_ms >= own->mark.at_ms;
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
		v->is_ours = was_left_there(h, own);
	}
	return rc;
}

/* What our own records add to what the table says. */
static enum rc see_own(struct session *s, struct pool_view *v, struct str ou, int64_t started_ms, struct own *ret,
                       struct err *e)
{
	struct guard_progress progress;
	enum rc               rc;

	if ((rc = guard_mark_read(s, v->id, &ret->mark, e)) || (rc = hold_list_open(s, v->id, &ret->open, e)) ||
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

	for (size_t i = 0; !rc && i < l->count; i++) {
		struct own own;

		rc = see_own(s, &l->views[i], l->ous[i], l->started_ms, &own, e);
	}
	return rc;
}

/* One that the table does not have may still have a hold of ours. */
static enum rc see_table(const struct guard *g, struct str id, struct arena *a, struct pool_view *ret,
                         struct str *ret_name, struct err *e)
{
	struct account_table *t = g->options.table;
	struct table_account  found = { 0 };
	struct err            cause = { 0 };
	enum rc               rc = t->ops->get(t, id, a, &found, &cause);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "the account table: %s", cause.msg);
	*ret = (struct pool_view){ .id = id,
		                   .said = said_by(found.status),
		                   .status = found.status,
		                   .expected_ou = found.status,
		                   .has_lease = guard_is_leased(found.status),
		                   .is_guarded = true,
		                   .is_tracked = !rc };
	*ret_name = found.name;
	return RC_OK;
}

static enum rc guard_list(struct pool_records *r, const struct pool_listing *listing, int64_t started_ms,
                          struct str cursor, struct arena *a, struct pool_views *ret, struct err *e)
{
	const struct guard_records *records = CONTAINER_OF(r, const struct guard_records, base);
	struct own_look             l = { .started_ms = started_ms };
	int64_t                     from = 0;
	size_t                      i;
	enum rc                     rc = RC_OK;

	if (cursor.n && !str_to_int(cursor, 0, (int64_t)listing->count, &from))
		return err_set(e, RC_INTERNAL, "the cursor of a pass makes no sense");
	l.views = arena_alloc(a, VIEWS_PAGE * sizeof(*l.views));
	l.ous = arena_alloc(a, VIEWS_PAGE * sizeof(*l.ous));
	for (i = (size_t)from; !rc && i < listing->count && i < (size_t)from + VIEWS_PAGE; i++) {
		struct str name;

		l.ous[l.count] = listing->members[i].ou;
		rc = see_table(records->guard, listing->members[i].id, a, &l.views[l.count], &name, e);
		l.count += !rc;
	}
	if (rc || (rc = store_read(records->guard->options.store, see_all_own, &l, a, e)))
		return rc;
	*ret = (struct pool_views){ .items = l.views, .count = l.count };
	if (i < listing->count)
		ret->next = str_format(a, "%zu", i);
	return RC_OK;
}

/* --- heal --- */

struct repair {
	const struct guard *guard;
	struct pool_view    view; /* by the table */
	struct str          name, ou, cleanup_id, available_id;
	int64_t             started_ms;
	enum discrepancy    found; /* the answer */
};

static struct str event_text(struct session *s, const struct repair *u, struct str id)
{
	char            text[ISO_TIME_SIZE];
	struct str      time = iso_time(session_now(s).ms / 1000, text), ret;
	struct json_out o;
	struct buf      b;

	buf_init(&b, DETAIL_TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "version", STR("0"));
	json_put_str(&o, "id", id);
	json_put_str(&o, "detail-type", STR("AWS API Call via CloudTrail"));
	json_put_str(&o, "source", STR("aws.organizations"));
	json_put_str(&o, "account", u->view.id);
	json_put_str(&o, "time", time);
	json_put_str(&o, "region", STR("us-east-1"));
	json_put_object(&o, "detail");
	json_put_str(&o, "eventSource", STR("organizations.amazonaws.com"));
	json_put_str(&o, "eventName", STR("MoveAccount"));
	json_put_str(&o, "eventTime", time);
	json_put_str(&o, "eventID", id);
	json_put_object(&o, "requestParameters");
	json_put_str(&o, "accountId", u->view.id);
	json_put_str(&o, "sourceParentId", u->cleanup_id);
	json_put_str(&o, "destinationParentId", u->available_id);
	json_close_object(&o);
	json_close_object(&o);
	json_close_object(&o);
	ret = str_dup(session_arena(s), buf_str(&b));
	buf_fini(&b);
	return ret;
}

static enum rc tell_guard(struct session *s, const struct repair *u, const struct pool_view *v, struct err *e)
{
	struct arena *a = session_arena(s);
	struct str    id = str_format(a, "untold/%.*s/%lld", STR_ARG(v->id), (long long)v->cleaned_ms);
	struct event  event = { .type = STR(EVENT_GUARD_UNTOLD),
		                .actor = STR(ACTOR),
		                .subject = account_subject(s, v->id),
		                .detail = event_text(s, u, id) };

	return session_emit(s, &event, e);
}

/* It is where no hold brings it back from. In CleanUp its holds end as when an event tells of it. */
static enum rc close_stale(struct session *s, const struct repair *u, struct holds *open, struct str why, struct err *e)
{
	struct guard_field fields[] = { { "reason", why }, { "currentStatus", u->view.status } };
	enum hold_state    how = str_eq(u->ou, STR("CleanUp")) ? HOLD_CLEANED_AGAIN : HOLD_SKIPPED;
	enum rc            rc = RC_OK;

	for (size_t i = 0; !rc && i < open->count; i++)
		rc = hold_end(s, &open->items[i], how, STR(ACTOR), why, e);
	return rc ? rc : guard_tell(s, "QUARANTINE_ENDED", u->view.id, fields, ARRAY_LEN(fields), e);
}

static enum rc put_right(struct session *s, const struct repair *u, const struct pool_view *v, struct own *own,
                         struct err *e)
{
	struct str         why = discrepancy_text(u->found, v, u->ou, session_arena(s));
	struct guard_found found = { .account = v->id, .name = u->name, .by = STR(ACTOR), .why = why };

	switch (u->found) {
	case DISCREPANCY_BYPASS: return tell_guard(s, u, v, e);
	case DISCREPANCY_STUCK_MOVE: return guard_unstick(s, &own->mark, &own->open, e);
	case DISCREPANCY_STALE_HOLD: return close_stale(s, u, &own->open, why, e);
	case DISCREPANCY_UNRECORDED_REST:
		return v->held ? guard_confirm_now(s, v->id, e) : guard_hold_found(s, u->guard, &found, e);
	case DISCREPANCY_NO_HOLD: return guard_hold_found(s, u->guard, &found, e);
	default: return RC_OK;
	}
}

static enum rc mend(struct session *s, void *arg, struct err *e)
{
	struct repair   *u = arg;
	struct pool_view v = u->view;
	struct own       own;
	enum rc          rc = see_own(s, &v, u->ou, u->started_ms, &own, e);

	if (rc)
		return rc;
	u->found = discrepancy_judge(&v, u->ou);
	return discrepancy_heals[u->found] ? put_right(s, u, &v, &own, e) : RC_OK;
}

/* Where it is by now, by the OU's name. */
static enum rc see_place(struct guard *g, struct str id, struct arena *a, struct str *ret, struct err *e)
{
	struct organisation *o = g->options.cloud.organisation;
	struct str           here;
	enum rc              rc = o->ops->find_parent(o, id, a, &here, e);

	if (rc)
		return err_wrap(e, rc, "where account %.*s is", STR_ARG(id));
	*ret = account_ous_name(g->ous, here, a);
	return RC_OK;
}

static enum rc look_again(struct repair *u, struct guard *g, struct str id, struct arena *a, struct str *ret_place,
                          struct err *e)
{
	enum rc rc = account_ous_find(g->ous, STR("CleanUp"), a, &u->cleanup_id, e);

	if (!rc)
		rc = account_ous_find(g->ous, STR("Available"), a, &u->available_id, e);
	if (!rc)
		rc = see_table(g, id, a, &u->view, &u->name, e);
	return rc ? rc : see_place(g, id, a, ret_place, e);
}

static enum rc guard_heal(struct pool_records *r, int64_t started_ms, struct str id, struct str ou,
                          enum discrepancy *ret, struct err *e)
{
	const struct guard_records *records = CONTAINER_OF(r, const struct guard_records, base);
	struct guard               *g = records->guard;
	struct repair               u = { .guard = g, .ou = ou, .started_ms = started_ms };
	struct arena                a = { 0 };
	struct str                  place;
	enum rc                     rc = look_again(&u, g, id, &a, &place, e);

	if (!rc && str_eq(place, ou)) /* elsewhere by now: the next pass sees it there */
		rc = store_run(g->options.store, mend, &u, &a, e);
	arena_fini(&a);
	*ret = u.found;
	return rc;
}

/* --- who is being cleaned, who is lent --- */

struct seen_page {
	const struct pool_listing *listing;
	size_t                     from, next; /* numbers in the listing */
	int64_t                    started_ms;
};

/* NULL: being there says nothing about what comes next. */
static const char *fact_of(struct str ou)
{
	if (str_eq(ou, STR("CleanUp")))
		return FACT_CLEANUP;
	return guard_is_leased(ou) ? FACT_LENT : NULL; /* OUs are named as the status */
}

static enum rc put_seen(struct session *s, void *arg, struct err *e)
{
	struct seen_page *p = arg;
	size_t            i, count = 0;
	enum rc           rc = RC_OK;

	for (i = p->from; !rc && i < p->listing->count && count < SEEN_AT_ONCE; i++) {
		const char *name = fact_of(p->listing->members[i].ou);
		struct fact fact;

		if (!name)
			continue;
		if ((rc = read_seen(s, name, p->listing->members[i].id, &fact, e)))
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

	for (; !rc && p.from < listing->count; p.from = p.next) {
		struct arena a = { 0 };

		rc = store_run(records->guard->options.store, put_seen, &p, &a, e);
		arena_fini(&a);
	}
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
