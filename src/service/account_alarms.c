/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_alarms.c - the alarms of lending accounts, read from the records of accounts and leases.
 *
 * As in alarm_rules.c, an evidence names times, not ages. An account is in CleanUp since its cleanup began, or, while that waits for its
 * turn, since the account was last touched; a cleanup that is over its limits ends in quarantine by itself, so who is still there an hour
 * later is forgotten. Of a pool with more accounts in one status than ACCOUNTS_LOOKED_AT, those that were cleaned longest ago are looked at.
 */
#include "service/account_alarms.h"

#include "base/clock.h"
#include "domain/account.h"
#include "domain/lease.h"
#include "service/broker_alarms.h"
#include "service/lease_records.h"

enum { ACCOUNTS_LOOKED_AT = QUERY_LIMIT_MAX };

#define LINE_MS  (1 * LEASE_HOUR_MS)
#define STUCK_MS (13 * LEASE_HOUR_MS)

static const char *at(struct session *s, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	return str_dup(session_arena(s), iso_time(ms / 1000, text)).p;
}

/* --- capacity --- */

/* Since when the first in line waits; 0: nobody does. */
static enum rc read_line(struct session *s, int64_t *ret_since_ms, int64_t *ret_count, struct err *e)
{
	struct query q = { .type = &lease_type, .index = LEASE_IN_LINE, .hash = value_int(1), .limit = 1 };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	if (rc)
		return rc;
	*ret_since_ms = page.count ? ((const struct lease *)page_record(&page, &lease_type, 0))->queued_ms : 0;
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
	findings_add(ret,
	             &(struct finding){
	                     .severity = free_count == 0 && waiting > 0 ? ALARM_PAGE : ALARM_WARNING,
	                     .value = free_count,
	                     .evidence = str_format(
	                             session_arena(s),
	                             "%lld accounts are free, the low-water mark is %lld; %lld requests wait in line",
	                             (long long)free_count, mark, (long long)waiting) });
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
	findings_add(ret, &(struct finding){ .severity = ALARM_WARNING,
	                                     .value = waiting,
	                                     .evidence = str_format(session_arena(s),
	                                                            "%lld requests wait in line, the first since %s",
	                                                            (long long)waiting, at(s, since_ms)) });
	return RC_OK;
}

/* --- accounts --- */

typedef void account_judge_fn(struct session *s, const struct account *a, struct findings *ret);

static enum rc each_account(struct session *s, const struct broker_alarm_context *context, enum account_status status,
                            account_judge_fn *judge, struct findings *ret, struct err *e)
{
	struct query q = { .type = &account_type,
		           .index = ACCOUNT_BY_STATUS,
		           .hash = value_int(status),
		           .limit = ACCOUNTS_LOOKED_AT };
	struct page  page = { 0 };
	enum rc      rc = context->has_leases ? session_query(s, &q, &page, e) : RC_OK;

	for (size_t i = 0; !rc && i < page.count; i++)
		judge(s, page_record(&page, &account_type, i), ret);
	return rc;
}

static void judge_quarantined(struct session *s, const struct account *a, struct findings *ret)
{
	findings_add(ret,
	             &(struct finding){
	                     .instance = a->id,
	                     .severity = ALARM_WARNING,
	                     .value = a->edited_ms,
	                     .evidence = str_format(session_arena(s), "account %.*s is in quarantine: %.*s",
	                                            STR_ARG(a->id),
	                                            STR_ARG(a->reason.n ? a->reason : STR("no reason is known"))) });
}

enum rc alarm_account_quarantined(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	return each_account(s, arg, ACCOUNT_QUARANTINE, judge_quarantined, ret, e);
}

static void judge_stuck(struct session *s, const struct account *a, struct findings *ret)
{
	int64_t since_ms = a->clean_started_ms ? a->clean_started_ms : a->edited_ms;

	if (session_now(s).ms - since_ms <= STUCK_MS)
		return;
	findings_add(ret, &(struct finding){
	                          .instance = a->id,
	                          .severity = ALARM_WARNING,
	                          .value = since_ms,
	                          .evidence = str_format(session_arena(s),
	                                                 "account %.*s is in CleanUp since %s; its cleanup %s",
	                                                 STR_ARG(a->id), at(s, since_ms),
	                                                 a->clean_started_ms ? "has not ended" : "has not begun") });
}

enum rc alarm_cleanup_stuck(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	return each_account(s, arg, ACCOUNT_CLEANUP, judge_stuck, ret, e);
}
