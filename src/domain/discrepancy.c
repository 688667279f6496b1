/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discrepancy.c - compares where an account is with what the records say of it.
 *
 * Where an account is, is a fact; what a record says is a wish. When they differ, the OU Quarantine wins over a record that says free, and a
 * record that says "rests" wins over any OU: of two ways to be wrong, the one is taken in which nobody gets the account.
 *
 * Always true:
 *   1. No verdict makes an account free.                                                    [discrepancies and their repair]
 *   2. Nothing is said of an account that is being moved, or was changed since the listing began.   [discrepancy_judge()]
 *   3. An account with a lease on it is left alone: its holder is not thrown out by a comparison.
 *
 * Not here: how it is put right (service/reconcile.c and the records' own file).
 */
#include "domain/discrepancy.h"

#include "base/arena.h"
#include "domain/account.h"

const char *const discrepancy_names[DISCREPANCY_COUNT] = {
#define X(name, text, heals) text,
	DISCREPANCIES(X)
#undef X
};
const bool discrepancy_heals[DISCREPANCY_COUNT] = {
#define X(name, text, heals) heals,
	DISCREPANCIES(X)
#undef X
};

static bool is_in_quarantine(struct str ou)
{
	return str_eq(ou, str_from(account_ou_names[ACCOUNT_QUARANTINE]));
}

static enum discrepancy judge_place(const struct pool_view *v, struct str ou)
{
	if (str_eq(ou, v->expected_ou))
		return DISCREPANCY_NONE;
	if (is_in_quarantine(ou) && v->has_lease)
		return DISCREPANCY_LENT_AT_REST;
	if (is_in_quarantine(ou) && v->said == SAID_FREE)
		return DISCREPANCY_UNRECORDED_REST;
	if (ou.n && (v->said == SAID_RESTING || v->said == SAID_LOCKED))
		return DISCREPANCY_REST_ELSEWHERE;
	return DISCREPANCY_MISPLACED;
}

enum discrepancy discrepancy_judge(const struct pool_view *v, struct str ou)
{
	enum discrepancy d;

	if (v->is_guarded)
		return discrepancy_judge_guarded(v, ou);
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

static struct str since_text(int64_t ms, struct arena *a)
{
	char text[ISO_TIME_SIZE];

	return str_dup(a, iso_time(ms / 1000, text));
}

struct str discrepancy_text(enum discrepancy d, const struct pool_view *v, struct str ou, struct arena *a)
{
	struct str at = ou.n ? ou : STR("none of the pool's OUs");

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
		return str_format(a, "account %.*s is in %.*s, and not by us: the other system sees to it",
		                  STR_ARG(v->id), STR_ARG(at));
	case DISCREPANCY_NO_HOLD: return str_format(a, "account %.*s rests, and nothing holds it", STR_ARG(v->id));
	case DISCREPANCY_BYPASS:
	case DISCREPANCY_LENT_BYPASS:
		return str_format(a,
		                  "account %.*s was cleaned %.*s and is %.*s; no rest, bypass or ejection is on record",
		                  STR_ARG(v->id), STR_ARG(since_text(v->cleaned_ms, a)), STR_ARG(v->status));
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
