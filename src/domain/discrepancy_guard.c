/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discrepancy_guard.c - compares where an account is with what another system's table and our holds say of it.
 *
 * The rules are a table, read from its top: the first whose condition holds decides.
 *
 * Always true:
 *   1. Nothing is said of an account that is being moved by us, or was changed since the listing began.        [is_busy]
 *   2. An account with a lease on it is told of, never held.          [is_lent_at_rest before the repairs, was_lent_past_us]
 *   3. What is in Quarantine and not there by us is not ours to release: it gets no hold, so no due time.      [is_foreign]
 *   4. The table follows the OU Quarantine, never the other way round.
 *
 * Not here: how it is put right (service/guard_reconcile.c).
 */
#include "domain/discrepancy.h"

#include "base/attr.h"
#include "domain/account.h"

static bool is_in(struct str ou, enum account_status status)
{
	return str_eq(ou, str_from(account_ou_names[status]));
}

static bool rests(struct str ou)
{
	return is_in(ou, ACCOUNT_QUARANTINE);
}

/* It came out of a cleanup that is not followed by anything on file. */
static bool is_unaccounted(const struct pool_view *v)
{
	return v->cleaned_ms && !v->is_accounted;
}

static bool is_busy(const struct pool_view *v, struct str ou)
{
	(void)ou;
	return v->is_busy;
}

static bool is_stuck(const struct pool_view *v, struct str ou)
{
	(void)ou;
	return v->is_stuck;
}

static bool is_lent_at_rest(const struct pool_view *v, struct str ou)
{
	return rests(ou) && v->has_lease;
}

static bool is_held_in_available(const struct pool_view *v, struct str ou)
{
	return v->held && is_in(ou, ACCOUNT_AVAILABLE);
}

/* Lent, cleaned, or on its way out: no hold brings it back from there. */
static bool is_held_elsewhere(const struct pool_view *v, struct str ou)
{
	return v->held && ou.n && !rests(ou);
}

static bool is_untracked(const struct pool_view *v, struct str ou)
{
	(void)ou;
	return !v->is_tracked;
}

/* Free by the table; or, when we hold it, anything but Quarantine. Without a hold of ours, CleanUp in the table may be the other system on
 * its way to quarantine the account itself. */
static bool is_unrecorded(const struct pool_view *v, struct str ou)
{
	return rests(ou) && (v->said == SAID_FREE || (v->held && v->said != SAID_LOCKED));
}

static bool is_unheld(const struct pool_view *v, struct str ou)
{
	return rests(ou) && v->said == SAID_LOCKED && !v->open_holds;
}

static bool is_handed_over(const struct pool_view *v, struct str ou)
{
	return is_unheld(v, ou) && v->is_handed_over;
}

static bool is_orphaned(const struct pool_view *v, struct str ou)
{
	return is_unheld(v, ou) && v->is_ours;
}

/* The other system moves first and writes then: CleanUp in its table may be late. */
static bool has_passed_us(const struct pool_view *v, struct str ou)
{
	bool is_late = is_in(v->expected_ou, ACCOUNT_CLEANUP);

	return is_in(ou, ACCOUNT_AVAILABLE) && (v->said == SAID_FREE || is_late) && is_unaccounted(v);
}

static bool is_misplaced(const struct pool_view *v, struct str ou)
{
	return !str_eq(ou, v->expected_ou);
}

static bool was_lent_past_us(const struct pool_view *v, struct str ou)
{
	(void)ou;
	return v->has_lease && is_unaccounted(v);
}

static const struct rule {
	bool (*holds)(const struct pool_view *v, struct str ou);
	enum discrepancy found;
} rules[] = {
	{ is_busy, DISCREPANCY_NONE },
	{ is_stuck, DISCREPANCY_STUCK_MOVE },
	{ is_lent_at_rest, DISCREPANCY_LENT_AT_REST },
	{ has_passed_us, DISCREPANCY_BYPASS }, /* before the next: an old hold says nothing about this cleanup */
	{ is_held_in_available, DISCREPANCY_LEFT_REST },
	{ is_held_elsewhere, DISCREPANCY_STALE_HOLD },
	{ is_untracked, DISCREPANCY_NONE },
	{ is_unrecorded, DISCREPANCY_UNRECORDED_REST },
	{ is_handed_over, DISCREPANCY_NONE },
	{ is_orphaned, DISCREPANCY_NO_HOLD },
	{ is_unheld, DISCREPANCY_FOREIGN_REST },
	{ is_misplaced, DISCREPANCY_MISPLACED },
	{ was_lent_past_us, DISCREPANCY_LENT_BYPASS },
};

enum discrepancy discrepancy_judge_guarded(const struct pool_view *v, struct str ou)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i].holds(v, ou))
			return rules[i].found;
	return DISCREPANCY_NONE;
}
