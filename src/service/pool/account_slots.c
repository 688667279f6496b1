/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_slots.c - the slots for cleanups: one record that names the accounts that have one.
 *
 * It changes only when a cleanup begins or ends. The accounts' records are the truth: a slot whose account is no longer
 * being cleaned (ejected, quarantined) is taken back when no other is free.
 *
 * The next account is the one whose last cleanup is the longest ago, so everyone's turn comes.
 */
#include "service/pool/account_slots.h"

#include "domain/account.h"
#include "kernel/records.h"
#include "service/pool/account_clean.h"
#include "service/record/lease_records.h"

#define SLOTS STR("cleanup/running")

enum { WAITING_PAGE = 50, WAITING_PAGES_MAX = 20 };

struct slots {
	struct fact fact;
	struct str  ids[CLEAN_AT_ONCE_MAX];
	size_t      count;
};

static enum rc load(struct session *s, struct slots *ret, struct err *e)
{
	struct str rest;
	enum rc    rc = session_find_or_new(s, &fact_type, SLOTS, &ret->fact, e);

	if (rc)
		return rc;
	ret->count = 0;
	rest = ret->fact.text;
	while (rest.n && ret->count < CLEAN_AT_ONCE_MAX)
		ret->ids[ret->count++] = str_cut(&rest, ' ');
	return RC_OK;
}

static void store(struct session *s, struct slots *slots)
{
	slots->fact.text = STR("");
	for (size_t i = 0; i < slots->count; i++)
		slots->fact.text = str_format(session_arena(s), "%.*s%s%.*s", STR_ARG(slots->fact.text), i ? " " : "",
		                              STR_ARG(slots->ids[i]));
	slots->fact.value = (int64_t)slots->count;
	slots->fact.since_ms = slots->fact.at_ms = session_now(s).ms;
	session_put(s, &fact_type, &slots->fact);
}

static size_t find(const struct slots *slots, struct str id)
{
	size_t i = 0;

	while (i < slots->count && !str_eq(slots->ids[i], id))
		i++;
	return i;
}

static enum rc drop_forgotten(struct session *s, struct slots *slots, struct err *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < slots->count; i++) {
		struct account a;
		bool           is_there;
		enum rc        rc = session_find(s, &account_type, slots->ids[i], &a, &is_there, e);

		if (rc)
			return rc;
		if (is_there && account_clean_is_running(&a, session_now(s)))
			slots->ids[kept++] = slots->ids[i];
	}
	slots->count = kept;
	return RC_OK;
}

enum rc account_slots_enter(struct session *s, struct str id, size_t max, bool *ret, struct err *e)
{
	struct slots slots;
	enum rc      rc = load(s, &slots, e);

	if (rc)
		return rc;
	*ret = find(&slots, id) < slots.count;
	if (*ret)
		return RC_OK;
	if (slots.count >= max && (rc = drop_forgotten(s, &slots, e)))
		return rc;
	*ret = slots.count < max;
	if (*ret) {
		slots.ids[slots.count++] = id;
		store(s, &slots);
	}
	return RC_OK;
}

/* The index is in the order of last cleanups. It may lag: an account with a slot is being cleaned, whatever the index
 * shows. */
static enum rc find_next(struct session *s, const struct slots *slots, struct str *ret, struct err *e)
{
	struct records        all = { .query = query_of(&account_type, ACCOUNT_BY_STATUS, value_int(ACCOUNT_CLEANUP),
		                                        WAITING_PAGE),
		                      .pages_max = WAITING_PAGES_MAX };
	const struct account *a;
	enum rc               rc;

	while ((a = session_next(s, &all, &rc, e)))
		if (!a->clean_run.n && !a->is_following && !account_must_follow(a) &&
		    find(slots, a->id) == slots->count) {
			*ret = a->id;
			return RC_OK;
		}
	return rc;
}

enum rc account_slots_leave(struct session *s, struct str id, struct str *ret_next, struct err *e)
{
	struct slots slots;
	size_t       at;
	enum rc      rc = load(s, &slots, e);

	*ret_next = STR("");
	if (rc)
		return rc;
	at = find(&slots, id);
	if (at == slots.count)
		return RC_OK;
	slots.ids[at] = slots.ids[--slots.count];
	store(s, &slots);
	return find_next(s, &slots, ret_next, e);
}
