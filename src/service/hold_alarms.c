/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_alarms.c - the alarms of holds, read from the holds themselves and from what the reconciler has found.
 *
 * What the reconciler finds is a fact until a pass does not find it any more. So an alarm about what was put right at once is raised all the
 * same, and cleared a quarter of an hour later: somebody should know that it happened. As in alarm_rules.c, an evidence names times, not ages.
 */
#include "service/hold_alarms.h"

#include "base/clock.h"
#include "domain/account.h"
#include "domain/discrepancy.h"
#include "kernel/records.h"
#include "service/broker_alarms.h"
#include "service/holds.h"
#include "service/lease_records.h"
#include "service/reconcile.h"

enum {
	ESCALATE_HOURS = 24, /* after the due time */
	THROTTLED_PASSES = 2,
	THROTTLED_PAGE = 4,
	HORIZON_HOURS_LEAST = 24,
};

static const char *at(struct session *s, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	return str_dup(session_arena(s), iso_time(ms / 1000, text)).p;
}

/* --- overdue --- */

static void add_overdue(struct session *s, const struct hold *h, int64_t grace_hours, struct findings *ret)
{
	bool is_long = session_now(s).ms - h->due_ms > (grace_hours + ESCALATE_HOURS) * HOLD_HOUR_MS;

	findings_add(ret,
	             &(struct finding){
	                     .instance = h->id,
	                     .severity = is_long ? ALARM_PAGE : ALARM_WARNING,
	                     .value = h->due_ms,
	                     .evidence = str_format(session_arena(s),
	                                            "account %.*s is held since %s; hold %.*s (%s) was due %s%s%.*s",
	                                            STR_ARG(h->account), at(s, h->created_ms), STR_ARG(h->id),
	                                            hold_reason_names[h->reason], at(s, h->due_ms),
	                                            h->last_error.n ? ": " : "", STR_ARG(h->last_error)) });
}

/* The index has those without a due time first: read from the other end. */
enum rc alarm_hold_overdue(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct broker_alarm_context *context = arg;
	int64_t                            grace_hours = context->rules ? context->rules->grace_hours : 0;
	struct query                       q = { .type = &hold_type,
		                                 .index = HOLD_OPEN_ONES,
		                                 .hash = value_int(1),
		                                 .has_sort_max = true,
		                                 .sort_max = session_now(s).ms - grace_hours * HOLD_HOUR_MS - 1,
		                                 .is_descending = true,
		                                 .limit = FINDINGS_MAX };
	struct page                        page;
	enum rc                            rc;

	if (!context->rules)
		return RC_OK;
	if ((rc = session_query(s, &q, &page, e)))
		return rc;
	for (size_t i = 0; i < page.count; i++) {
		const struct hold *h = page_record(&page, &hold_type, i);

		if (h->due_ms)
			add_overdue(s, h, grace_hours, ret);
	}
	return RC_OK;
}

/* --- what the reconciler has found --- */

struct watched {
	enum discrepancy    kind;
	enum alarm_severity severity;
};

static enum rc each_of(struct session *s, const struct watched *watched, struct findings *ret, struct err *e)
{
	struct str   prefix = str_format(session_arena(s), FACT_DISCREPANCY "%s/", discrepancy_names[watched->kind]);
	struct query q = { .type = &fact_type, .index = QUERY_KEYS, .sort_prefix = prefix, .limit = FINDINGS_MAX };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	for (size_t i = 0; !rc && i < page.count; i++) {
		const struct fact *fact = page_record(&page, &fact_type, i);

		findings_add(ret,
		             &(struct finding){ .instance = str_of(fact->name.p + prefix.n, fact->name.n - prefix.n),
		                                .severity = watched->severity,
		                                .value = fact->since_ms,
		                                .evidence = str_format(session_arena(s), "%.*s; seen since %s%s",
		                                                       STR_ARG(fact->text), at(s, fact->since_ms),
		                                                       fact->value ? ", put right" : "") });
	}
	return rc;
}

static enum rc each(struct session *s, const struct watched *watched, size_t count, struct findings *ret, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < count; i++)
		rc = each_of(s, &watched[i], ret, e);
	return rc;
}

enum rc alarm_hold_bypass(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	static const struct watched watched[] = { { DISCREPANCY_LENT_BYPASS, ALARM_PAGE },
		                                  { DISCREPANCY_BYPASS, ALARM_WARNING } };

	(void)arg;
	return each(s, watched, ARRAY_LEN(watched), ret, e);
}

enum rc alarm_hold_broken(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	static const struct watched watched[] = { { DISCREPANCY_NO_HOLD, ALARM_WARNING },
		                                  { DISCREPANCY_NO_TIMER, ALARM_WARNING },
		                                  { DISCREPANCY_STUCK_MOVE, ALARM_WARNING } };

	(void)arg;
	return each(s, watched, ARRAY_LEN(watched), ret, e);
}

enum rc alarm_pool_mismatch(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	static const struct watched watched[] = {
		{ DISCREPANCY_LENT_AT_REST, ALARM_PAGE },      { DISCREPANCY_UNRECORDED_REST, ALARM_WARNING },
		{ DISCREPANCY_REST_ELSEWHERE, ALARM_WARNING }, { DISCREPANCY_LEFT_REST, ALARM_WARNING },
		{ DISCREPANCY_STALE_HOLD, ALARM_WARNING },     { DISCREPANCY_MISPLACED, ALARM_WARNING }
	};

	(void)arg;
	return each(s, watched, ARRAY_LEN(watched), ret, e);
}

enum rc alarm_events_silent(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	static const struct watched watched[] = { { DISCREPANCY_EVENTS_SILENT, ALARM_WARNING } };

	(void)arg;
	return each(s, watched, ARRAY_LEN(watched), ret, e);
}

/* *ret is empty when it was never stated. */
static enum rc read_fact(struct session *s, const char *name, struct fact *ret, struct err *e)
{
	enum rc rc = session_get(s, &fact_type, str_from(name), ret, NULL);

	if (rc == RC_NOT_FOUND)
		*ret = (struct fact){ .value = 0 };
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "fact %s cannot be read", name) : RC_OK;
}

enum rc alarm_cloud_throttled(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	struct fact fact;
	enum rc     rc = read_fact(s, FACT_THROTTLED, &fact, e);

	(void)arg;
	if (rc || fact.value < THROTTLED_PASSES)
		return rc;
	findings_add(ret,
	             &(struct finding){
	                     .severity = fact.value >= THROTTLED_PAGE ? ALARM_PAGE : ALARM_WARNING,
	                     .value = fact.value,
	                     .evidence = str_format(session_arena(s),
	                                            "%lld passes of the reconciler in a row were throttled, the "
	                                            "first %s: %.*s",
	                                            (long long)fact.value, at(s, fact.since_ms), STR_ARG(fact.text)) });
	return RC_OK;
}

/* --- runway --- */

/* When the next one comes back from its rest; 0: none does by itself. */
static enum rc find_next(struct session *s, int64_t *ret_ms, struct err *e)
{
	struct query q = { .type = &account_type,
		           .index = ACCOUNT_BY_STATUS,
		           .hash = value_int(ACCOUNT_COOLDOWN),
		           .limit = QUERY_LIMIT_MAX };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	*ret_ms = 0;
	for (size_t i = 0; !rc && i < page.count; i++) {
		int64_t until_ms = ((const struct account *)page_record(&page, &account_type, i))->rest_until_ms;

		if (until_ms && (!*ret_ms || until_ms < *ret_ms))
			*ret_ms = until_ms;
	}
	return rc;
}

static void add_runway(struct session *s, const struct runway *r, int64_t ends_ms, struct findings *ret)
{
	struct str next = r->next_due_ms
	                          ? str_format(session_arena(s), "the next one is back %s", at(s, r->next_due_ms))
	                          : STR("none is due to come back");

	findings_add(ret, &(struct finding){
	                          .severity = ALARM_WARNING,
	                          .value = r->ready,
	                          .evidence = str_format(session_arena(s),
	                                                 "%lld accounts are free and %lld were lent in %lld days: they "
	                                                 "are used up about %s; %.*s",
	                                                 (long long)r->ready, (long long)r->used,
	                                                 (long long)(r->span_ms / (24 * HOLD_HOUR_MS)), at(s, ends_ms),
	                                                 STR_ARG(next)) });
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
	if ((rc = read_fact(s, FACT_DEMAND, &demand, e)) || demand.value <= 0)
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
