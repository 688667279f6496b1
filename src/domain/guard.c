/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - the decision about a move that another system has made.
 *
 * Always true:
 *   1. Whatever comes from CleanUp into Available, and is tracked, is held, unless it is so already, leased, tagged or ejected.
 *   2. A move that does not come from CleanUp is never held: so our own release starts nothing.       [NOT_FROM_CLEANUP]
 *   3. The tag is looked at last: a move that is not held anyway does not use it up.
 *
 * The first rows are about moves of accounts that we hold: when the other system takes such an account to CleanUp, or quarantines it for a
 * reason of its own, our holds must know, or an old one would free an account that is held for something else.
 */
#include "domain/guard.h"

#include "base/attr.h"

const char *const guard_outcome_actions[GUARD_OUTCOME_COUNT] = {
#define X(name, action, reason) [GUARD_##name] = action,
	GUARD_OUTCOMES(X)
#undef X
};

const char *const guard_outcome_reasons[GUARD_OUTCOME_COUNT] = {
#define X(name, action, reason) [GUARD_##name] = reason,
	GUARD_OUTCOMES(X)
#undef X
};

const char *const guard_release_reasons[GUARD_RELEASE_COUNT] = {
#define X(name, reason) [GUARD_##name] = reason,
	GUARD_RELEASES(X)
#undef X
};

/* --- conditions --- */

static bool has_failed(const struct guard_facts *f)
{
	return f->has_failed;
}

static bool is_repeat(const struct guard_facts *f)
{
	return f->is_repeat;
}

static bool is_old(const struct guard_facts *f)
{
	return f->is_old;
}

static bool is_cleaned_again(const struct guard_facts *f)
{
	return f->has_open_hold && str_eq(f->destination, f->cleanup);
}

/* By the other system: we come to Quarantine from Available only. */
static bool is_locked(const struct guard_facts *f)
{
	return f->has_open_hold && str_eq(f->destination, f->quarantine) && !str_eq(f->source, f->available);
}

static bool is_elsewhere(const struct guard_facts *f)
{
	return !str_eq(f->destination, f->available);
}

static bool is_untracked(const struct guard_facts *f)
{
	return !f->is_tracked;
}

static bool is_quarantined(const struct guard_facts *f)
{
	return str_eq(f->status, STR("Quarantine"));
}

static bool is_not_from_cleanup(const struct guard_facts *f)
{
	return !str_eq(f->source, f->cleanup);
}

static bool is_leased(const struct guard_facts *f)
{
	return guard_is_leased(f->status);
}

static bool is_tagged(const struct guard_facts *f)
{
	return f->is_tagged;
}

static bool ejects(const struct guard_facts *f)
{
	return f->ejects;
}

static bool always(const struct guard_facts *f)
{
	(void)f;
	return true;
}

/* Those up to ELSEWHERE follow from the event and our own records; the next ones need the table, BYPASS needs the tag. */
static const struct rule {
	bool (*holds)(const struct guard_facts *f);
	enum guard_outcome outcome;
} rules[] = {
	{ has_failed, GUARD_FAILED_CALL },
	{ is_repeat, GUARD_REPEAT },
	{ is_old, GUARD_OLD },
	{ is_cleaned_again, GUARD_CLEANED_AGAIN },
	{ is_locked, GUARD_LOCKED },
	{ is_elsewhere, GUARD_ELSEWHERE },
	{ is_untracked, GUARD_NOT_TRACKED },
	{ is_quarantined, GUARD_QUARANTINED },
	{ is_not_from_cleanup, GUARD_NOT_FROM_CLEANUP },
	{ is_leased, GUARD_LEASED },
	{ is_tagged, GUARD_BYPASS },
	{ ejects, GUARD_EJECT },
	{ always, GUARD_HOLD },
};

enum guard_outcome guard_decide(const struct guard_facts *f)
{
	const struct rule *r = rules;

	while (!r->holds(f))
		r++;
	return r->outcome;
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
