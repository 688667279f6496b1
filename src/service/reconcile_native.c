/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile_native.c - what the lease service's own records say of accounts, and how they are put right.
 *
 * Each repair is one transaction that reads the account again and judges it again. All of them end in the OU Quarantine, with a hold.
 *
 * An account that was never cleaned by us (it was free when the pool was set up) has no cleanup whose rest could be missing.
 */
#include "service/reconcile.h"

#include "base/attr.h"
#include "base/buf.h"
#include "base/json.h"
#include "service/account_follow.h"
#include "service/holds.h"
#include "service/lease_flow.h"
#include "service/lease_records.h"
#include "service/leases.h"
#include "store/session.h"
#include "store/store.h"

#define ACTOR "reconciler"

/* A view costs a few reads, and a transaction of the smallest back end has little time. */
enum { VIEWS_PAGE = 50, HOLDS_LOOKED_AT = 32, DETAIL_TEXT_MAX = 4096 };

/* --- look --- */

static enum said said_by(enum account_status status)
{
	switch (status) {
	case ACCOUNT_AVAILABLE: return SAID_FREE;
	case ACCOUNT_COOLDOWN: return SAID_RESTING;
	case ACCOUNT_QUARANTINE: return SAID_LOCKED;
	case ACCOUNT_ACTIVE:
	case ACCOUNT_FROZEN: return SAID_LENT;
	case ACCOUNT_CLEANUP:
	case ACCOUNT_EXIT:
	case ACCOUNT_STATUS_COUNT: break;
	}
	return SAID_ELSE;
}

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
		                   .said = said_by(a->status),
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

struct page_call {
	int64_t             started_ms;
	struct account_list list;
	struct pool_views  *ret;
};

static enum rc read_page(struct session *s, void *arg, struct err *e)
{
	struct page_call *c = arg;
	enum rc           rc = account_list(s, &c->list, e);

	if (rc)
		return rc;
	c->ret->items = arena_alloc(session_arena(s), (c->list.page.count + 1) * sizeof(*c->ret->items));
	c->ret->count = c->list.page.count;
	c->ret->next = c->list.page.next;
	for (size_t i = 0; !rc && i < c->ret->count; i++)
		rc = look(s, page_record(&c->list.page, &account_type, i), c->started_ms, &c->ret->items[i], e);
	return rc;
}

static enum rc native_list(struct pool_records *r, const struct pool_listing *listing, int64_t started_ms,
                           struct str cursor, struct arena *a, struct pool_views *ret, struct err *e)
{
	const struct native_records *records = CONTAINER_OF(r, const struct native_records, base);
	struct page_call             c = { .started_ms = started_ms,
		                           .list = { .limit = VIEWS_PAGE, .cursor = cursor },
		                           .ret = ret };

	(void)listing;
	return store_read(records->store, read_page, &c, a, e);
}

/* --- heal --- */

struct heal_call {
	const struct native_records *records;
	int64_t                      started_ms;
	struct str                   id, ou;
	enum discrepancy             found; /* the answer */
};

static enum rc tell(struct session *s, const struct account *a, enum discrepancy d, struct str text, struct err *e)
{
	struct json_out o;
	struct buf      b;
	struct str      detail;

	buf_init(&b, DETAIL_TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "accountId", a->id);
	json_put_str(&o, "kind", str_from(discrepancy_names[d]));
	json_put_str(&o, "text", text);
	json_close_object(&o);
	detail = str_dup(session_arena(s), buf_str(&b));
	buf_fini(&b);
	return account_emit(s, EVENT_ACCOUNT_RECONCILED, a, STR(ACTOR), STR(""), detail, e);
}

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
	enum rc     rc = hold_open(s, &h, e);

	if (rc)
		return rc;
	if (a->status == ACCOUNT_AVAILABLE && (rc = account_apply(a, ACCOUNT_ON_HOLD, session_now(s), e)))
		return rc;
	session_put(s, &account_type, a);
	return hold_free_account(s, a->id, STR(ACTOR), e);
}

static enum rc put_right(struct session *s, const struct heal_call *c, struct account *a, struct str text,
                         struct err *e)
{
	const struct hold_rules *rules = c->records->rules;
	enum hold_reason         reason;
	int64_t                  hours = hold_longest_hours(rules, a->name, &reason);
	struct wall              now = session_now(s);

	switch (c->found) {
	case DISCREPANCY_UNRECORDED_REST: /* nobody knows since when: the whole time */
		a->placed_ou = c->ou;
		a->has_drifted = 0; /* the record agrees with the OU from now on */
		return rest(s, a, reason, hours ? now.ms + hours * HOLD_HOUR_MS : 0, text, e);
	case DISCREPANCY_NO_HOLD:
	case DISCREPANCY_BYPASS:
		return rest(s, a, reason, discrepancy_due_ms(rules, a->name, a->cleaned_ms, now), text, e);
	case DISCREPANCY_REST_ELSEWHERE: a->placed_ou = c->ou; return account_save(s, a, STR(ACTOR), e);
	default: return RC_OK;
	}
}

static enum rc heal(struct session *s, void *arg, struct err *e)
{
	struct heal_call *c = arg;
	struct pool_view  v;
	struct account    a;
	struct str        text;
	enum rc           rc = session_get(s, &account_type, c->id, &a, NULL);

	c->found = DISCREPANCY_NONE;
	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return err_set(e, rc, "account %.*s cannot be read", STR_ARG(c->id));
	if ((rc = look(s, &a, c->started_ms, &v, e)))
		return rc;
	c->found = discrepancy_judge(&v, c->ou);
	if (!discrepancy_heals[c->found])
		return RC_OK;
	text = discrepancy_text(c->found, &v, c->ou, session_arena(s));
	rc = tell(s, &a, c->found, text, e);
	return rc ? rc : put_right(s, c, &a, text, e);
}

static enum rc native_heal(struct pool_records *r, int64_t started_ms, struct str id, struct str ou,
                           enum discrepancy *ret, struct err *e)
{
	const struct native_records *records = CONTAINER_OF(r, const struct native_records, base);
	struct heal_call             c = { .records = records, .started_ms = started_ms, .id = id, .ou = ou };
	struct arena                 a = { 0 };
	enum rc                      rc = store_run(records->store, heal, &c, &a, e);

	arena_fini(&a);
	*ret = c.found;
	return rc;
}

struct native_records native_records(struct store *store, const struct hold_rules *rules)
{
	static const struct pool_records_ops ops = { .list = native_list, .heal = native_heal };

	return (struct native_records){ .base = { .ops = &ops }, .store = store, .rules = rules };
}
