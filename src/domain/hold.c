/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.c - how long an account rests, and what becomes of a hold.
 *
 * Always true:
 *   1. A hold is closed once, and says how, when, by whom and why.                                  [hold_close()]
 *   2. A hold that locks an account away has no due time: only a cleanup or a person ends it.       [hold_ok()]
 *   3. The billing windows of two leases are apart when the rules were accepted. [hold_rules_check()]
 *
 * Not here: that an account becomes free when the last one is closed (service/hold/holds.c).
 */
#include "domain/hold.h"

#include <assert.h>

enum { ACCOUNT_DIGITS = 12 };

const char *const hold_reason_names[HOLD_REASON_COUNT] = { HOLD_REASONS(ROW_TEXT) };
const char *const hold_state_names[HOLD_STATE_COUNT] = { HOLD_STATES(ROW_TEXT) };
const char *const hold_mode_names[HOLD_MODE_COUNT] = { HOLD_MODES(ROW_TEXT) };

bool hold_ok(const struct hold *h)
{
	if (h->account.n != ACCOUNT_DIGITS || !str_starts_with(h->id, h->account) || !h->created_ms || !h->created_by.n)
		return false;
	if (h->locks && h->due_ms)
		return false;
	return h->is_open == (h->state == HOLD_OPEN) && (h->state == HOLD_OPEN) == (h->closed_ms == 0);
}

/* --- rules --- */

void hold_rules_defaults(struct hold_rules *ret)
{
	*ret = (struct hold_rules){ .padding_hours = HOLD_PADDING_HOURS, .grace_hours = 8, .exempts_new = true };
	ret->hours[HOLD_BILLING] = 72;
}

static enum rc read_hours(struct hold_pool *pool, struct str text, struct err *e)
{
	while (text.n) {
		struct str value = str_cut(&text, ','), name = str_trim(str_cut(&value, '='));
		int        reason = str_word(name, hold_reason_names, HOLD_REASON_COUNT);

		if (reason > HOLD_QUOTA) /* only the holds that come by themselves have hours */
			return err_set(e, RC_INVALID,
			               "pool '%.*s': '%.*s' is not a reason with hours (billing, metadata, quota)",
			               STR_ARG(pool->prefix), STR_ARG(name));
		if (!str_to_int(str_trim(value), 0, HOLD_HOURS_MAX, &pool->hours[reason]))
			return err_set(e, RC_INVALID, "pool '%.*s': %.*s has '%.*s', not hours from 0 to %d",
			               STR_ARG(pool->prefix), STR_ARG(name), STR_ARG(value), HOLD_HOURS_MAX);
	}
	return RC_OK;
}

enum rc hold_rules_read_pools(struct hold_rules *rules, struct str text, struct err *e)
{
	while (str_trim(text).n) {
		struct str        hours = str_cut(&text, ';');
		struct hold_pool *pool = &rules->pools[rules->pool_count];
		enum rc           rc;

		if (rules->pool_count == HOLD_POOLS_MAX)
			return err_set(e, RC_INVALID, "more than %d pools", HOLD_POOLS_MAX);
		pool->prefix = str_trim(str_cut(&hours, ':'));
		for (int i = 0; i < HOLD_REASON_COUNT; i++)
			pool->hours[i] = -1;
		if (!pool->prefix.n || !str_trim(hours).n)
			return err_set(e, RC_INVALID,
			               "pool %zu is not 'PREFIX:REASON=HOURS,...', for example "
			               "lab-:billing=48,metadata=2184",
			               rules->pool_count + 1);
		if ((rc = read_hours(pool, hours, e)))
			return rc;
		rules->pool_count++;
	}
	return RC_OK;
}

static enum rc check_billing(const struct hold_rules *rules, int64_t hours, struct str where, struct err *e)
{
	int64_t least = 24 + 2 * rules->padding_hours;

	if (hours <= 0 || hours >= least)
		return RC_OK;
	return err_set(
	        e, RC_INVALID,
	        "%.*s: a billing hold of %lld h is too short to keep two leases' bills apart; with %lld h of padding "
	        "it needs at least %lld h, or 0 for none",
	        STR_ARG(where), (long long)hours, (long long)rules->padding_hours, (long long)least);
}

enum rc hold_rules_check(const struct hold_rules *rules, struct err *e)
{
	enum rc rc = check_billing(rules, rules->hours[HOLD_BILLING], STR("all accounts"), e);

	for (size_t i = 0; !rc && i < rules->pool_count; i++)
		rc = check_billing(rules, rules->pools[i].hours[HOLD_BILLING], rules->pools[i].prefix, e);
	return rc;
}

int64_t hold_hours(const struct hold_rules *rules, struct str account_name, enum hold_reason reason)
{
	for (size_t i = 0; i < rules->pool_count; i++)
		if (rules->pools[i].hours[reason] >= 0 && str_starts_with(account_name, rules->pools[i].prefix))
			return rules->pools[i].hours[reason];
	return rules->hours[reason];
}

int64_t hold_longest_hours(const struct hold_rules *rules, struct str account_name, enum hold_reason *ret_reason)
{
	int64_t longest = 0;

	*ret_reason = HOLD_BILLING;
	for (int i = HOLD_BILLING; i <= HOLD_QUOTA; i++) {
		int64_t hours = hold_hours(rules, account_name, (enum hold_reason)i);

		if (hours <= longest)
			continue;
		longest = hours;
		*ret_reason = (enum hold_reason)i;
	}
	return longest;
}

/* --- one hold --- */

struct str hold_make_id(struct str account, struct wall now, int64_t *last_ms, struct arena *a)
{
	*last_ms = now.ms > *last_ms ? now.ms : *last_ms + 1;
	return str_format(a, "%.*s-%lld", STR_ARG(account), (long long)*last_ms);
}

struct str hold_schedule_name(const struct hold *h, struct arena *a)
{
	return str_format(a, HOLD_NAME_PREFIX "%.*s", STR_ARG(h->id));
}

bool hold_is_due(const struct hold *h, struct wall now)
{
	return h->state == HOLD_OPEN && h->due_ms && now.ms >= h->due_ms;
}

static enum rc is_closed(const struct hold *h, struct err *e)
{
	char       text[ISO_TIME_SIZE];
	struct str since = iso_time(h->closed_ms / 1000, text);

	return err_set(e, RC_CONFLICT, "hold %.*s has been closed since %.*s: %s", STR_ARG(h->id), STR_ARG(since),
	               hold_state_names[h->state]);
}

enum rc hold_close(struct hold *h, enum hold_state how, struct str by, struct str why, struct wall now, struct err *e)
{
	assert(how != HOLD_OPEN && how < HOLD_STATE_COUNT);
	if (h->state != HOLD_OPEN)
		return is_closed(h, e);
	h->state = how;
	h->is_open = 0;
	h->closed_ms = now.ms;
	h->closed_by = by;
	h->closed_why = why;
	return RC_OK;
}

enum rc hold_extend(struct hold *h, int64_t due_ms, struct wall now, struct err *e)
{
	if (h->state != HOLD_OPEN)
		return is_closed(h, e);
	if (h->locks)
		return err_set(e, RC_CONFLICT,
		               "hold %.*s (%s) has no due time: the account is in quarantine until a cleanup succeeds",
		               STR_ARG(h->id), hold_reason_names[h->reason]);
	if (str_eq(h->placement, STR(HOLD_RELEASING))) /* a later end would be confirmed, and not kept */
		return err_set(e, RC_CONFLICT, "hold %.*s is being released already", STR_ARG(h->id));
	if (due_ms <= now.ms)
		return err_set(e, RC_INVALID, "the end of a hold must be in the future; to end it now, release it");
	h->due_ms = due_ms;
	return RC_OK;
}
