/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile_native.c - what the lease service's own records say of accounts, and how they are put right.
 *
 * Each repair is one transaction that reads the account again and judges it again. All of them end in the OU
 * Quarantine, with a hold.
 *
 * An account that was never cleaned by us (it was free when the pool was set up) has no cleanup whose rest could be
 * missing.
 */
#include "service/reconcile/reconcile.h"

#include "base/attr.h"
#include "base/json.h"
#include "service/account/account_follow.h"
#include "service/hold/holds.h"
#include "service/record/lease_records.h"
#include "store/session.h"
#include "store/store.h"

#define ACTOR "reconciler"

/* A view costs a few reads, and a transaction of the smallest back end has little time. */
enum { VIEWS_PAGE = 50, HOLDS_LOOKED_AT = 32 };

/* --- look --- */

static const enum said said_by[ACCOUNT_STATUS_COUNT] = {
	[ACCOUNT_AVAILABLE] = SAID_FREE, [ACCOUNT_COOLDOWN] = SAID_RESTING, [ACCOUNT_QUARANTINE] = SAID_LOCKED,
	[ACCOUNT_ACTIVE] = SAID_LENT,    [ACCOUNT_FROZEN] = SAID_LENT,      [ACCOUNT_CLEANUP] = SAID_ELSE,
	[ACCOUNT_EXIT] = SAID_ELSE,
};

/* Is what followed the last cleanup on file? A person's own hold says nothing about that. */
static enum rc look_at_history(struct session *s, const struct account *a, struct pool_view *v, struct err *e)
{
	struct hold_list l = { .account = a->id, .limit = HOLDS_LOOKED_AT };
	enum rc          rc = hold_list(s, &l, e);

	if (rc || (rc = hold_is_handed_over(s, a->id, &v->is_handed_over, e)))
		return rc;
	for (size_t i = 0; i < l.page.count; i++) {
		const struct hold *h = page_record(&l.page, &hold_type, i);

		if (h->created_ms >= a->cleaned_ms && !h->locks && h->reason != HOLD_MANUAL)
			v->is_accounted = true;
	}
	return RC_OK;
}

static enum rc look(struct session *s, const struct account *a, int64_t started_ms, struct pool_view *ret,
                    struct err *e)
{
	struct holds open = { .count = 0 };
	enum rc      rc;

	*ret = (struct pool_view){ .id = a->id,
		                   .said = said_by[a->status],
		                   .status = str_from(account_status_names[a->status]),
		                   .expected_ou = str_from(account_ou_names[a->status]),
		                   .is_busy = a->is_following || a->edited_ms >= started_ms,
		                   .has_lease = a->lease_uuid.n > 0,
		                   .cleaned_ms = a->clean_run.n ? a->cleaned_ms : 0 };
	if ((rc = look_at_history(s, a, ret, e)) || ret->said != SAID_RESTING)
		return rc;
	rc = hold_list_open(s, a->id, &open, e);
	ret->open_holds = open.count;
	return rc;
}

static enum rc read_page(struct session *s, void *arg, struct err *e)
{
	struct pool_views *v = arg;
	struct query       q = { .type = &account_type, .index = QUERY_ALL, .limit = VIEWS_PAGE, .cursor = v->cursor };
	struct page        page;
	enum rc            rc = session_query(s, &q, &page, e);

	if (rc)
		return rc;
	v->items = arena_alloc(session_arena(s), (page.count + 1) * sizeof(*v->items));
	v->count = page.count;
	v->next = page.next;
	v->unreadable = STR("");
	for (size_t i = 0; !rc && i < v->count; i++) {
		rc = look(s, page_record(&page, &account_type, i), v->started_ms, &v->items[i], e);
		rc = pool_leave_alone(&v->items[i], rc, session_arena(s), &v->unreadable, e);
	}
	return rc;
}

static enum rc native_list(struct pool_records *r, const struct pool_listing *listing UNUSED, struct pool_views *page,
                           struct arena *a, struct err *e)
{
	return store_read(CONTAINER_OF(r, struct native_records, base)->store, read_page, page, a, e);
}

/* --- heal --- */

/* It rests, until this time; 0: until a person says otherwise. */
static enum rc rest(struct session *s, struct account *a, enum hold_reason reason, int64_t due_ms, struct str why,
                    struct err *e)
{
	struct hold h = { .account = a->id,
		          .reason = reason,
		          .due_ms = due_ms,
		          .created_by = STR(ACTOR),
		          .note = why,
		          .lease_uuid = a->last_lease };
	enum rc     rc = hold_make(s, &h, HOLD_OPEN, e);

	if (rc)
		return rc;
	if (a->status == ACCOUNT_AVAILABLE && (rc = account_apply(a, ACCOUNT_ON_HOLD, session_now(s), e)))
		return rc;
	session_put(s, &account_type, a);
	return hold_free_account(s, a->id, STR(ACTOR), e);
}

static enum rc put_right(struct session *s, const struct pool_repair *x, struct account *a, struct str text,
                         struct err *e)
{
	const struct hold_rules *rules = CONTAINER_OF(x->records, struct native_records, base)->rules;
	enum hold_reason         reason;
	int64_t                  hours = hold_longest_hours(rules, a->name, &reason);
	struct wall              now = session_now(s);

	switch (x->found) {
	case DISCREPANCY_UNRECORDED_REST: /* nobody knows since when: the whole time */
		a->placed_ou = x->ou;
		a->has_drifted = 0; /* the record agrees with the OU from now on */
		return rest(s, a, reason, hours ? now.ms + hours * HOLD_HOUR_MS : 0, text, e);
	case DISCREPANCY_NO_HOLD:
	case DISCREPANCY_BYPASS:
		return rest(s, a, reason, discrepancy_due_ms(rules, a->name, a->cleaned_ms, now), text, e);
	case DISCREPANCY_REST_ELSEWHERE: a->placed_ou = x->ou; return account_save(s, a, STR(ACTOR), e);
	default: return RC_OK;
	}
}

static enum rc heal(struct session *s, void *arg, struct err *e)
{
	struct pool_repair *x = arg;
	struct pool_view    v;
	struct account      a;
	struct str          text;
	bool                is_there;
	enum rc             rc = session_find(s, &account_type, x->id, &a, &is_there, e);

	x->found = DISCREPANCY_NONE;
	if (rc || !is_there || (rc = look(s, &a, x->started_ms, &v, e)))
		return rc;
	x->found = discrepancy_judge(&v, x->ou);
	if (!discrepancy_heals[x->found])
		return RC_OK;
	text = discrepancy_text(x->found, &v, x->ou, session_arena(s));
	rc = account_emit(s, EVENT_ACCOUNT_RECONCILED, a.id, STR(ACTOR), STR(""),
	                  JSON_OF(session_arena(s), member_str("accountId", a.id),
	                          member_word("kind", discrepancy_names[x->found]), member_str("text", text)),
	                  e);
	return rc ? rc : put_right(s, x, &a, text, e);
}

static enum rc native_heal(struct pool_repair *x, struct err *e)
{
	return store_run(CONTAINER_OF(x->records, struct native_records, base)->store, heal, x, NULL, e);
}

struct native_records native_records(struct store *store, const struct hold_rules *rules)
{
	static const struct pool_records_ops ops = { .list = native_list, .heal = native_heal };

	return (struct native_records){ .base = { .ops = &ops }, .store = store, .rules = rules };
}
