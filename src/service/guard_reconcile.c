/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_reconcile.c - what another system's account table says of its accounts, for the reconciler.
 *
 * A guard depends on events, and events are lost. So each pass notes which accounts it has seen in CleanUp; one that is Available later,
 * without a hold or a record of why there is none since, came out without anybody telling. The repair is to tell the guard of that move, as
 * CloudTrail would have: it then decides as always, with all its rules, and the event that comes after all finds the account held.
 *
 * An account that the table has in Quarantine without a hold of ours is there for the other system's own reasons, and left alone.
 */
#include "service/guard_parts.h"

#include "base/attr.h"
#include "base/buf.h"
#include "base/json.h"
#include "domain/guard.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "service/holds.h"
#include "service/pool_listing.h"
#include "service/reconcile.h"
#include "store/session.h"
#include "store/store.h"

#define FACT_CLEANUP "cleanup-seen/"
#define ACTOR        "reconciler"

enum { VIEWS_PAGE = 50, SEEN_AT_ONCE = 40, HOLDS_LOOKED_AT = 32, DETAIL_TEXT_MAX = 4096 };

/* --- look --- */

static enum said said_by(struct str status)
{
	if (str_eq(status, STR("Available")))
		return SAID_FREE;
	if (str_eq(status, STR("Quarantine")))
		return SAID_LOCKED;
	return guard_is_leased(status) ? SAID_LENT : SAID_ELSE;
}

static enum rc read_seen(struct session *s, struct str account, struct fact *ret, struct err *e)
{
	struct str name = str_format(session_arena(s), FACT_CLEANUP "%.*s", STR_ARG(account));
	enum rc    rc = session_get(s, &fact_type, name, ret, NULL);

	if (rc == RC_NOT_FOUND)
		*ret = (struct fact){ .name = name };
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "fact %.*s cannot be read", STR_ARG(name)) : RC_OK;
}

struct own_look {
	struct pool_view *views;
	size_t            count;
	int64_t           started_ms;
};

/* What our own records add to what the table says. */
static enum rc see_own(struct session *s, struct pool_view *v, int64_t started_ms, struct err *e)
{
	struct hold_list  l = { .account = v->id, .limit = HOLDS_LOOKED_AT };
	struct guard_mark mark;
	struct fact       seen;
	enum rc           rc;

	if ((rc = guard_mark_read(s, v->id, &mark, e)) || (rc = guard_is_busy(s, &mark, &v->is_busy, e)) ||
	    (rc = read_seen(s, v->id, &seen, e)) || (rc = hold_list(s, &l, e)))
		return rc;
	v->is_busy = v->is_busy || mark.at_ms >= started_ms;
	v->cleaned_ms = v->said == SAID_ELSE ? 0 : seen.at_ms; /* who is still being cleaned has not left */
	for (size_t i = 0; i < l.page.count; i++) {
		const struct hold *h = page_record(&l.page, &hold_type, i);

		v->open_holds += h->state == HOLD_OPEN;
		v->is_accounted = v->is_accounted || h->created_ms >= seen.at_ms;
	}
	return RC_OK;
}

static enum rc see_all_own(struct session *s, void *arg, struct err *e)
{
	struct own_look *l = arg;
	enum rc          rc = RC_OK;

	for (size_t i = 0; !rc && i < l->count; i++)
		rc = see_own(s, &l->views[i], l->started_ms, e);
	return rc;
}

/* *ret_is_tracked: false when the table does not have it. */
static enum rc see_table(const struct guard *g, struct str id, struct arena *a, struct pool_view *ret,
                         bool *ret_is_tracked, struct err *e)
{
	struct account_table *t = g->options.table;
	struct table_account  found;
	struct err            cause = { 0 };
	enum rc               rc = t->ops->get(t, id, a, &found, &cause);

	*ret_is_tracked = rc == RC_OK;
	if (rc)
		return rc == RC_NOT_FOUND ? RC_OK : err_set(e, rc, "the account table: %s", cause.msg);
	*ret = (struct pool_view){ .id = id,
		                   .said = said_by(found.status),
		                   .status = found.status,
		                   .expected_ou = found.status,
		                   .has_lease = guard_is_leased(found.status) };
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
	for (i = (size_t)from; !rc && i < listing->count && i < (size_t)from + VIEWS_PAGE; i++) {
		bool is_tracked;

		rc = see_table(records->guard, listing->members[i].id, a, &l.views[l.count], &is_tracked, e);
		l.count += !rc && is_tracked;
	}
	if (rc || (rc = store_read(records->guard->options.store, see_all_own, &l, a, e)))
		return rc;
	*ret = (struct pool_views){ .items = l.views, .count = l.count };
	if (i < listing->count)
		ret->next = str_format(a, "%zu", i);
	return RC_OK;
}

/* --- heal --- */

struct untold {
	struct pool_view view;
	struct str       ou, cleanup_id, available_id;
	int64_t          started_ms;
	enum discrepancy found; /* the answer */
};

static struct str event_text(struct session *s, const struct untold *u, const char *id)
{
	char            text[ISO_TIME_SIZE];
	struct str      time = iso_time(session_now(s).ms / 1000, text), ret;
	struct json_out o;
	struct buf      b;

	buf_init(&b, DETAIL_TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "version", STR("0"));
	json_put_str(&o, "id", str_from(id));
	json_put_str(&o, "detail-type", STR("AWS API Call via CloudTrail"));
	json_put_str(&o, "source", STR("aws.organizations"));
	json_put_str(&o, "account", u->view.id);
	json_put_str(&o, "time", time);
	json_put_str(&o, "region", STR("us-east-1"));
	json_put_object(&o, "detail");
	json_put_str(&o, "eventSource", STR("organizations.amazonaws.com"));
	json_put_str(&o, "eventName", STR("MoveAccount"));
	json_put_str(&o, "eventTime", time);
	json_put_str(&o, "eventID", str_from(id));
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

/* Judged again with our own records; the table is looked at again by the guard. */
static enum rc tell_guard(struct session *s, void *arg, struct err *e)
{
	struct untold   *u = arg;
	struct pool_view v = u->view;
	char             id[KERNEL_ID_SIZE];
	struct event     event = { .type = STR(EVENT_GUARD_UNTOLD), .actor = STR(ACTOR) };
	enum rc          rc = see_own(s, &v, u->started_ms, e);

	if (rc)
		return rc;
	u->found = discrepancy_judge(&v, u->ou);
	if (u->found == DISCREPANCY_REST_ELSEWHERE) /* the other system's own: it decides */
		u->found = DISCREPANCY_MISPLACED;
	if (!discrepancy_heals[u->found])
		return RC_OK;
	kernel_id(kernel_of(s), session_now(s).ms, id);
	event.subject = str_format(session_arena(s), "account/%.*s", STR_ARG(v.id));
	event.detail = event_text(s, u, id);
	return session_emit(s, &event, e);
}

static enum rc guard_heal(struct pool_records *r, int64_t started_ms, struct str id, struct str ou,
                          enum discrepancy *ret, struct err *e)
{
	const struct guard_records *records = CONTAINER_OF(r, const struct guard_records, base);
	struct guard               *g = records->guard;
	struct untold               u = { .ou = ou, .started_ms = started_ms };
	struct arena                a = { 0 };
	bool                        is_tracked = false;
	enum rc                     rc = see_table(g, id, &a, &u.view, &is_tracked, e);

	if (!rc)
		rc = account_ous_find(g->ous, STR("CleanUp"), &a, &u.cleanup_id, e);
	if (!rc)
		rc = account_ous_find(g->ous, STR("Available"), &a, &u.available_id, e);
	if (!rc && is_tracked)
		rc = store_run(g->options.store, tell_guard, &u, &a, e);
	arena_fini(&a);
	*ret = u.found;
	return rc;
}

/* --- who is being cleaned --- */

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
		struct fact fact;

		if (!str_eq(p->listing->members[i].ou, STR("CleanUp")))
			continue;
		if ((rc = read_seen(s, p->listing->members[i].id, &fact, e)))
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

	return (struct guard_records){ .base = { .ops = &ops, .needs_events = true }, .guard = g };
}
