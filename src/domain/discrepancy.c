/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discrepancy.c - compares where an account is with what the records say of it.
 *
 * Where an account is, is a fact; what a record says is a target. When they differ, the OU Quarantine wins over a
 * record that says free, and a record that says "rests" wins over any OU: of two ways to be wrong, the one is taken in
 * which nobody gets the account.
 *
 * Always true:
 *   1. No verdict makes an account free. [discrepancies and their repair]
 *   2. Nothing is said of an account that is being moved, or was changed since the listing began. [discrepancy_judge()]
 *   3. An account with a lease on it is left alone: its holder is not thrown out by a comparison.
 *   4. Beside another system: what is in Quarantine and not there by us is not ours to release, so it gets no hold and
 *      no due time; and its table follows the OU Quarantine, never the other way round. [judge_guarded()]
 *
 * Not here: how it is put right (service/reconcile/reconcile.c, service/guard/guard_reconcile.c).
 */
#include "domain/discrepancy.h"

#include "domain/account.h"

const char *const discrepancy_names[DISCREPANCY_COUNT] = { DISCREPANCIES(ROW_TEXT) };
const bool        discrepancy_heals[DISCREPANCY_COUNT] = { DISCREPANCIES(ROW_THIRD) };

static bool is_in(struct str ou, enum account_status status)
{
	return str_eq(ou, str_from(account_ou_names[status]));
}

static enum discrepancy judge_place(const struct pool_view *v, struct str ou)
{
	if (str_eq(ou, v->expected_ou))
		return DISCREPANCY_NONE;
	if (is_in(ou, ACCOUNT_QUARANTINE) && v->has_lease)
		return DISCREPANCY_LENT_AT_REST;
	if (is_in(ou, ACCOUNT_QUARANTINE) && v->said == SAID_FREE)
		return DISCREPANCY_UNRECORDED_REST;
	if (ou.n && (v->said == SAID_RESTING || v->said == SAID_LOCKED))
		return DISCREPANCY_REST_ELSEWHERE;
	return DISCREPANCY_MISPLACED;
}

/* Beside another system: its table and our holds. The first rule whose condition holds decides. */
static enum discrepancy judge_guarded(const struct pool_view *v, struct str ou)
{
	bool rests = is_in(ou, ACCOUNT_QUARANTINE), is_free = is_in(ou, ACCOUNT_AVAILABLE);
	bool is_unheld = rests && v->said == SAID_LOCKED && !v->open_holds;
	bool is_unaccounted = v->cleaned_ms && !v->is_accounted; /* nothing on file follows its cleanup */
	bool is_late = is_in(v->expected_ou, ACCOUNT_CLEANUP);   /* the other system moves first and writes then */

	if (v->is_busy)
		return DISCREPANCY_NONE;
	if (v->is_stuck)
		return DISCREPANCY_STUCK_MOVE;
	if (rests && v->has_lease)
		return DISCREPANCY_LENT_AT_REST;
	if (is_free && (v->said == SAID_FREE || is_late) && is_unaccounted)
		return DISCREPANCY_BYPASS; /* before the next: an old hold says nothing about this cleanup */
	if (v->held && is_free)
		return DISCREPANCY_LEFT_REST;
	if (v->held && !rests)
		return DISCREPANCY_STALE_HOLD; /* lent, cleaned, on its way out or gone: no hold brings it back */
	if (!v->is_tracked)
		return DISCREPANCY_NONE;
	/* Free by the table; or, when we hold it, anything but Quarantine. Without a hold of ours, CleanUp in the
	 * table may be the other system on its way to quarantine the account itself. */
	if (rests && (v->said == SAID_FREE || (v->held && v->said != SAID_LOCKED)))
		return DISCREPANCY_UNRECORDED_REST;
	if (is_unheld && v->is_handed_over)
		return DISCREPANCY_NONE;
	if (is_unheld)
		return v->is_ours ? DISCREPANCY_NO_HOLD : DISCREPANCY_FOREIGN_REST;
	if (!str_eq(ou, v->expected_ou))
		return DISCREPANCY_MISPLACED;
	return v->has_lease && is_unaccounted ? DISCREPANCY_LENT_BYPASS : DISCREPANCY_NONE;
}

enum discrepancy discrepancy_judge(const struct pool_view *v, struct str ou)
{
	enum discrepancy d;

	if (v->is_guarded)
		return judge_guarded(v, ou);
	if (v->is_busy)
		return DISCREPANCY_NONE;
	if ((d = judge_place(v, ou)))
		return d;
	if (v->said == SAID_RESTING && !v->open_holds && !v->is_handed_over)
		return DISCREPANCY_NO_HOLD;
	if (!v->cleaned_ms || v->is_accounted)
		return DISCREPANCY_NONE;
	if (v->has_lease)
		return DISCREPANCY_LENT_BYPASS;
	return v->said == SAID_FREE ? DISCREPANCY_BYPASS : DISCREPANCY_NONE;
}

struct str discrepancy_text(enum discrepancy d, const struct pool_view *v, struct str ou, struct arena *a)
{
	struct str at = ou.n ? ou : STR("none of the pool's OUs"), since;
	char       text[ISO_TIME_SIZE];

	switch (d) {
	case DISCREPANCY_LENT_AT_REST:
	case DISCREPANCY_UNRECORDED_REST:
	case DISCREPANCY_REST_ELSEWHERE:
	case DISCREPANCY_MISPLACED:
		return str_format(a, "account %.*s is in %.*s, the record says %.*s%s", STR_ARG(v->id), STR_ARG(at),
		                  STR_ARG(v->status), v->has_lease ? " and has a lease" : "");
	case DISCREPANCY_STUCK_MOVE:
		return str_format(a, "a move of account %.*s was begun and has stopped; it is in %.*s", STR_ARG(v->id),
		                  STR_ARG(at));
	case DISCREPANCY_STALE_HOLD:
	case DISCREPANCY_LEFT_REST:
		return str_format(a, "account %.*s is held, but it is in %.*s: somebody has moved it", STR_ARG(v->id),
		                  STR_ARG(at));
	case DISCREPANCY_FOREIGN_REST:
		return str_format(
		        a, "account %.*s is in %.*s, but we did not put it there: the other system looks after it",
		        STR_ARG(v->id), STR_ARG(at));
	case DISCREPANCY_NO_HOLD:
		return str_format(a, "account %.*s is in cooldown, and nothing holds it", STR_ARG(v->id));
	case DISCREPANCY_BYPASS:
	case DISCREPANCY_LENT_BYPASS:
		since = iso_time(v->cleaned_ms / 1000, text);
		return str_format(a,
		                  "account %.*s was cleaned %.*s and is %.*s; "
		                  "no cooldown, bypass or ejection is on record",
		                  STR_ARG(v->id), STR_ARG(since), STR_ARG(v->status));
	case DISCREPANCY_NO_TIMER:
	case DISCREPANCY_EVENTS_SILENT:
	case DISCREPANCY_NONE:
	case DISCREPANCY_COUNT: break;
	}
	return STR("");
}

int64_t discrepancy_due_ms(const struct hold_rules *rules, struct str account_name, int64_t cleaned_ms, struct wall now)
{
	enum hold_reason reason;
	int64_t          due_ms = cleaned_ms + hold_longest_hours(rules, account_name, &reason) * HOLD_HOUR_MS;

	return due_ms > now.ms ? due_ms : now.ms;
}

bool hold_is_forgotten(const struct hold *h, struct wall now)
{
	bool is_under_way = (now.ms >= h->due_ms && now.ms - h->due_ms < RELEASE_TAKES_MS) ||
	                    str_eq(h->placement, STR(HOLD_RELEASING));

	return h->state == HOLD_OPEN && h->due_ms && !is_under_way;
}

int64_t runway_ends_ms(const struct runway *r, struct wall now)
{
	int64_t ends_ms, back_ms = now.ms + r->horizon_ms;

	if (r->used <= 0 || r->span_ms <= 0)
		return 0;
	ends_ms = now.ms + r->ready * (r->span_ms / r->used);
	if (r->next_due_ms && r->next_due_ms < back_ms)
		back_ms = r->next_due_ms;
	return ends_ms < back_ms ? ends_ms : 0;
}
