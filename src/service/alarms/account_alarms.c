/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_alarms.c - the alarms of lending accounts, read from the records of accounts, leases and holds, and from what
 * the reconciler has found.
 *
 * As in alarm_rules.c, evidence names times, not ages. An account is in CleanUp since its cleanup began or, while that
 * waits for its turn, since the account was last changed. A cleanup over its limits ends in quarantine, so an account
 * that is still there an hour later was forgotten. Of more than QUERY_LIMIT_MAX accounts in one status, those that were
 * cleaned longest ago are looked at.
 *
 * What the reconciler finds is a fact until a pass no longer finds it. So an alarm about something that was repaired at
 * once is still raised, and cleared a quarter of an hour later: somebody should know that it happened.
 */
#include "service/alarms/alarms.h"

#include "domain/account.h"
#include "domain/discrepancy.h"
#include "domain/lease.h"
#include "kernel/records.h"
#include "service/account/account_ous.h"
#include "service/hold/holds.h"
#include "service/reconcile/reconcile.h"
#include "service/record/lease_records.h"

enum {
	ESCALATE_HOURS = 24, /* after the due time */
	THROTTLED_PASSES = 2,
	THROTTLED_PAGE = 4,
	THROTTLED_MOVES = 10,
	THROTTLED_MOVES_MS = 900000,
	HORIZON_HOURS_LEAST = 24,
};

#define LINE_MS  (1 * LEASE_HOUR_MS)
#define STUCK_MS (13 * LEASE_HOUR_MS)

/* --- capacity --- */

/* Since when the first in line waits; 0: nobody does. */
static enum rc read_line(struct session *s, int64_t *ret_since_ms, int64_t *ret_count, struct err *e)
{
	struct records      line = { .query = query_of(&lease_type, LEASE_IN_LINE, value_int(1), 1) };
	enum rc             rc;
	const struct lease *first = session_next(s, &line, &rc, e);

	if (rc)
		return rc;
	*ret_since_ms = first ? first->queued_ms : 0;
	return session_count(s, &lease_type, LEASE_IN_LINE, value_int(1), ret_count, e);
}

enum rc alarm_accounts_low(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct broker_alarm_context *context = arg;
	long long                          mark = context->accounts_low_water;
	int64_t                            free_count, since_ms, waiting;
	enum rc                            rc;

	if (!context->has_leases || mark <= 0)
		return RC_OK;
	rc = session_count(s, &account_type, ACCOUNT_BY_STATUS, value_int(ACCOUNT_AVAILABLE), &free_count, e);
	if (rc || free_count >= mark || (rc = read_line(s, &since_ms, &waiting, e)))
		return rc;
	findings_add(ret, STR(""), free_count == 0 && waiting > 0 ? ALARM_PAGE : ALARM_WARNING, free_count,
	             "%lld accounts are free, the low-water mark is %lld; %lld requests wait in line",
	             (long long)free_count, mark, (long long)waiting);
	return RC_OK;
}

enum rc alarm_line_waiting(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct broker_alarm_context *context = arg;
	int64_t                            since_ms, waiting;
	enum rc                            rc;

	if (!context->has_leases)
		return RC_OK;
	rc = read_line(s, &since_ms, &waiting, e);
	if (rc || !since_ms || session_now(s).ms - since_ms <= LINE_MS)
		return rc;
	findings_add(ret, STR(""), ALARM_WARNING, waiting, "%lld requests wait in line, the first since %s",
	             (long long)waiting, alarm_time(s, since_ms));
	return RC_OK;
}

/* --- accounts --- */

static struct records accounts_in(enum account_status status)
{
	return (struct records){
		.query = query_of(&account_type, ACCOUNT_BY_STATUS, value_int(status), QUERY_LIMIT_MAX), .pages_max = 1
	};
}

enum rc alarm_account_quarantined(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct broker_alarm_context *context = arg;
	struct records                     all = accounts_in(ACCOUNT_QUARANTINE);
	const struct account              *a;
	enum rc                            rc = RC_OK;

	while (context->has_leases && (a = session_next(s, &all, &rc, e)))
		findings_add(ret, a->id, ALARM_WARNING, a->edited_ms, "account %.*s is in quarantine: %.*s",
		             STR_ARG(a->id), STR_ARG(a->reason.n ? a->reason : STR("no reason is known")));
	return rc;
}

enum rc alarm_cleanup_stuck(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct broker_alarm_context *context = arg;
	struct records                     all = accounts_in(ACCOUNT_CLEANUP);
	const struct account              *a;
	enum rc                            rc = RC_OK;

	while (context->has_leases && (a = session_next(s, &all, &rc, e))) {
		int64_t since_ms = a->clean_started_ms ? a->clean_started_ms : a->edited_ms;

		if (session_now(s).ms - since_ms > STUCK_MS)
			findings_add(ret, a->id, ALARM_WARNING, since_ms,
			             "account %.*s has been in CleanUp since %s; its cleanup %s", STR_ARG(a->id),
			             alarm_time(s, since_ms), a->clean_started_ms ? "has not ended" : "has not begun");
	}
	return rc;
}

/* --- overdue --- */

/* The index has those without a due time first: read from the other end. More than FINDINGS_MAX are read, because those
 * that are an alarm already come last, and would look cleared. */
enum rc alarm_hold_overdue(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct broker_alarm_context *context = arg;
	int64_t                            grace_hours = context->rules ? context->rules->grace_hours : 0;
	int64_t                            due_ms = session_now(s).ms - grace_hours * HOLD_HOUR_MS - 1;
	struct query       q = query_until(&hold_type, HOLD_OPEN_ONES, value_int(1), due_ms, QUERY_LIMIT_MAX);
	struct records     all = { .query = q, .pages_max = 1 };
	const struct hold *h;
	enum rc            rc = RC_OK;

	all.query.is_descending = true;
	while (context->rules && (h = session_next(s, &all, &rc, e)) && h->due_ms) {
		bool is_long = session_now(s).ms - h->due_ms > (grace_hours + ESCALATE_HOURS) * HOLD_HOUR_MS;

		findings_add(ret, h->id, is_long ? ALARM_PAGE : ALARM_WARNING, h->due_ms,
		             "account %.*s has been held since %s; hold %.*s (%s) was due %s%s%.*s",
		             STR_ARG(h->account), alarm_time(s, h->created_ms), STR_ARG(h->id),
		             hold_reason_names[h->reason], alarm_time(s, h->due_ms), h->last_error.n ? ": " : "",
		             STR_ARG(h->last_error));
	}
	return rc;
}

/* --- what the reconciler has found --- */

/* What of it is whose evidence, the more urgent first. */
static const struct watched {
	alarm_rule_fn      *rule;
	enum discrepancy    kind;
	enum alarm_severity severity;
} watched[] = {
	{ alarm_hold_bypass, DISCREPANCY_LENT_BYPASS, ALARM_PAGE },
	{ alarm_hold_bypass, DISCREPANCY_BYPASS, ALARM_WARNING },
	{ alarm_hold_broken, DISCREPANCY_NO_HOLD, ALARM_WARNING },
	{ alarm_hold_broken, DISCREPANCY_NO_TIMER, ALARM_WARNING },
	{ alarm_hold_broken, DISCREPANCY_STUCK_MOVE, ALARM_WARNING },
	{ alarm_pool_mismatch, DISCREPANCY_LENT_AT_REST, ALARM_PAGE },
	{ alarm_pool_mismatch, DISCREPANCY_UNRECORDED_REST, ALARM_WARNING },
	{ alarm_pool_mismatch, DISCREPANCY_REST_ELSEWHERE, ALARM_WARNING },
	{ alarm_pool_mismatch, DISCREPANCY_LEFT_REST, ALARM_WARNING },
	{ alarm_pool_mismatch, DISCREPANCY_STALE_HOLD, ALARM_WARNING },
	{ alarm_pool_mismatch, DISCREPANCY_MISPLACED, ALARM_WARNING },
	{ alarm_events_silent, DISCREPANCY_EVENTS_SILENT, ALARM_WARNING },
};

/* More than FINDINGS_MAX for the same reason: new ones may come before those that are an alarm already. */
static enum rc add_found(struct session *s, const struct watched *w, struct findings *ret, struct err *e)
{
	struct str     prefix = str_format(session_arena(s), FACT_DISCREPANCY "%s/", discrepancy_names[w->kind]);
	struct query   q = { .type = &fact_type, .index = QUERY_KEYS, .sort_prefix = prefix, .limit = QUERY_LIMIT_MAX };
	struct records all = { .query = q, .pages_max = 1 };
	const struct fact *fact;
	enum rc            rc;

	while ((fact = session_next(s, &all, &rc, e)))
		findings_add(ret, str_skip(fact->name, prefix.n), w->severity, fact->since_ms, "%.*s; seen since %s%s",
		             STR_ARG(fact->text), alarm_time(s, fact->since_ms), fact->value ? ", put right" : "");
	return rc;
}

static enum rc add_all_found(struct session *s, alarm_rule_fn *rule, struct findings *ret, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < ARRAY_LEN(watched); i++)
		if (watched[i].rule == rule)
			rc = add_found(s, &watched[i], ret, e);
	return rc;
}

ALARM_RULE(alarm_hold_bypass, add_all_found(s, alarm_hold_bypass, ret, e))
ALARM_RULE(alarm_hold_broken, add_all_found(s, alarm_hold_broken, ret, e))
ALARM_RULE(alarm_pool_mismatch, add_all_found(s, alarm_pool_mismatch, ret, e))
ALARM_RULE(alarm_events_silent, add_all_found(s, alarm_events_silent, ret, e))

enum rc alarm_cloud_throttled(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct fact fact;
	enum rc     rc = session_find_or_new(s, &fact_type, STR(FACT_THROTTLED), &fact, e);

	if (rc)
		return rc;
	if (fact.value >= THROTTLED_PASSES) {
		findings_add(ret, STR(""), fact.value >= THROTTLED_PAGE ? ALARM_PAGE : ALARM_WARNING, fact.value,
		             "%lld passes of the reconciler in a row were throttled, the first %s: %.*s",
		             (long long)fact.value, alarm_time(s, fact.since_ms), STR_ARG(fact.text));
		return RC_OK;
	}
	rc = session_find_or_new(s, &fact_type, STR(FACT_MOVES_THROTTLED), &fact, e);
	if (!rc && fact.value >= THROTTLED_MOVES && session_now(s).ms - fact.at_ms < THROTTLED_MOVES_MS)
		findings_add(ret, STR(""), ALARM_WARNING, fact.value,
		             "the organisation has refused %lld moves because it was asked too often, the first %s",
		             (long long)fact.value, alarm_time(s, fact.since_ms));
	return rc;
}

/* --- runway --- */

/* When the next one comes back from its rest; 0: none does by itself. */
static enum rc find_next(struct session *s, int64_t *ret_ms, struct err *e)
{
	struct records        all = accounts_in(ACCOUNT_COOLDOWN);
	const struct account *a;
	enum rc               rc;

	*ret_ms = 0;
	while ((a = session_next(s, &all, &rc, e)))
		if (a->rest_until_ms && (!*ret_ms || a->rest_until_ms < *ret_ms))
			*ret_ms = a->rest_until_ms;
	return rc;
}

static void add_runway(struct session *s, const struct runway *r, int64_t ends_ms, struct findings *ret)
{
	struct str next = r->next_due_ms ? str_format(session_arena(s), "the next one is back %s",
	                                              alarm_time(s, r->next_due_ms))
	                                 : STR("none is due to come back");

	findings_add(ret, STR(""), ALARM_WARNING, r->ready,
	             "%lld accounts are free and %lld were lent in %lld days: they are used up about %s; %.*s",
	             (long long)r->ready, (long long)r->used, (long long)(r->span_ms / (24 * HOLD_HOUR_MS)),
	             alarm_time(s, ends_ms), STR_ARG(next));
}

enum rc alarm_accounts_runway(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct broker_alarm_context *context = arg;
	struct runway                      r = { .span_ms = DEMAND_DAYS * 24 * HOLD_HOUR_MS };
	struct fact                        demand;
	int64_t                            hours, ends_ms;
	enum rc                            rc;

	if (!context->has_leases || !context->rules)
		return RC_OK;
	if ((rc = session_find_or_new(s, &fact_type, STR(FACT_DEMAND), &demand, e)) || demand.value <= 0)
		return rc;
	if ((rc = session_count(s, &account_type, ACCOUNT_BY_STATUS, value_int(ACCOUNT_AVAILABLE), &r.ready, e)) ||
	    (rc = find_next(s, &r.next_due_ms, e)))
		return rc;
	hours = context->rules->hours[HOLD_BILLING];
	r.used = demand.value;
	r.horizon_ms = (hours > HORIZON_HOURS_LEAST ? hours : HORIZON_HOURS_LEAST) * HOLD_HOUR_MS;
	ends_ms = runway_ends_ms(&r, session_now(s));
	if (ends_ms)
		add_runway(s, &r, ends_ms, ret);
	return RC_OK;
}
