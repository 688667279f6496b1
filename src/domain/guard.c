/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - the decision about a move that another system has made.
 *
 * Always true:
 *   1. Every tracked account that moves from CleanUp to Available is held, unless it is held already, leased, tagged or
 *      ejected.
 *   2. A move that does not come from CleanUp is never held: so our own release starts nothing. [NOT_FROM_CLEANUP]
 *   3. The tag is looked at last: a move that is not held anyway does not use it up.
 *
 * The first rules are about moves of accounts that we hold: when the other system takes such an account to CleanUp, or
 * quarantines it for a reason of its own, our holds must know, or an old one would free an account that is held for
 * something else.
 */
#include "domain/guard.h"

const char *const guard_outcome_actions[GUARD_OUTCOME_COUNT] = { GUARD_OUTCOMES(ROW_TEXT) };

const char *const guard_outcome_reasons[GUARD_OUTCOME_COUNT] = { GUARD_OUTCOMES(ROW_THIRD) };

const char *const guard_release_reasons[GUARD_RELEASE_COUNT] = { GUARD_RELEASES(ROW_TEXT) };

enum guard_outcome guard_decide(const struct guard_facts *f)
{
	/* From the event and our own records. */
	if (f->has_failed)
		return GUARD_FAILED_CALL;
	if (f->is_repeat)
		return GUARD_REPEAT;
	if (f->is_old)
		return GUARD_OLD;
	if (f->has_open_hold && str_eq(f->destination, f->cleanup))
		return GUARD_CLEANED_AGAIN;
	if (f->has_open_hold && str_eq(f->destination, f->quarantine) && !str_eq(f->source, f->available))
		return GUARD_LOCKED; /* by the other system: we come to Quarantine from Available only */
	if (!str_eq(f->destination, f->available))
		return GUARD_ELSEWHERE;
	/* From the table. */
	if (!f->is_tracked)
		return GUARD_NOT_TRACKED;
	if (str_eq(f->status, STR("Quarantine")))
		return GUARD_QUARANTINED;
	if (!str_eq(f->source, f->cleanup))
		return GUARD_NOT_FROM_CLEANUP;
	if (guard_is_leased(f->status))
		return GUARD_LEASED;
	/* From the tag. */
	if (f->is_tagged)
		return GUARD_BYPASS;
	return f->ejects ? GUARD_EJECT : GUARD_HOLD;
}

bool guard_needs_table(const struct guard_facts *f)
{
	return guard_decide(f) > GUARD_ELSEWHERE;
}

bool guard_needs_tag(const struct guard_facts *f)
{
	return guard_decide(f) > GUARD_LEASED;
}

bool guard_is_leased(struct str status)
{
	return str_eq(status, STR("Active")) || str_eq(status, STR("Frozen"));
}

enum guard_release guard_decide_release(bool is_tracked, struct str status, struct str place, struct str quarantine,
                                        struct str available)
{
	if (!is_tracked)
		return GUARD_RELEASE_UNTRACKED;
	if (str_eq(status, STR("Available")))
		return GUARD_RELEASE_AVAILABLE;
	if (!str_eq(status, STR("Quarantine")))
		return GUARD_RELEASE_STATUS;
	if (!str_eq(place, quarantine) && !str_eq(place, available))
		return GUARD_RELEASE_PLACE;
	return GUARD_RELEASE;
}
