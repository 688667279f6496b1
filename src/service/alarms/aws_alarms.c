/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_alarms.c - alarms about what is read from AWS for all nodes: costs, people.
 *
 * That a refresh fails is told by its job (job-failing). These say what it means when it lasts, from what was read
 * last.
 */
#include "service/alarms/alarms.h"

#include "service/record/aws_records.h"

#define DAY_MS INT64_C(86400000)

enum {
	MINUTE_MS = 60000,
	UNASKED_MS = 26 * 60 * MINUTE_MS, /* the longest interval, and some */
	BEHIND_DAYS = 5, /* it is a day until a day may be complete, and the data are up to three days late */
	YOUNG_DAYS = 6,  /* of an account that is asked for since then, nothing needs to be complete */
	KEEP_DAYS = 30,  /* an account that nobody asked for since then is not refreshed any more */
	UNREAD_MS = 30 * MINUTE_MS,
};

/* Accounts whose costs are far behind. */
static enum rc find_behind(struct session *s, struct findings *ret, struct err *e)
{
	struct records all = { .query = query_of(&aws_cost_account_type, QUERY_ALL, value_int(0), QUERY_LIMIT_MAX),
		               .pages_max = 1 };
	const struct aws_cost_account *account;
	int64_t                        now_ms = session_now(s).ms, count = 0, oldest_ms = INT64_MAX;
	struct str                     which = STR("");
	enum rc                        rc;

	while ((account = session_next(s, &all, &rc, e))) {
		if (account->asked_ms < now_ms - KEEP_DAYS * DAY_MS ||
		    account->first_ms > now_ms - YOUNG_DAYS * DAY_MS ||
		    account->complete_ms >= now_ms - BEHIND_DAYS * DAY_MS)
			continue;
		count++;
		if (account->complete_ms < oldest_ms) {
			oldest_ms = account->complete_ms;
			which = account->account_id;
		}
	}
	if (!rc && count)
		findings_add(
		        ret, STR("accounts"), ALARM_WARNING, count,
		        "the costs of %lld account%s are more than %d days behind, such as those of %.*s, complete until %s",
		        (long long)count, count == 1 ? "" : "s", BEHIND_DAYS, STR_ARG(which), alarm_time(s, oldest_ms));
	return rc;
}

enum rc alarm_costs_late(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct broker_alarm_context *context = arg;
	struct aws_cost_book               book;
	enum rc                            rc;

	if (!context->has_aws)
		return RC_OK;
	if ((rc = session_find_or_new(s, &aws_cost_book_type, STR(AWS_COST_BOOK), &book, e)))
		return rc;
	if (book.refreshed_ms && session_now(s).ms - book.refreshed_ms > UNASKED_MS)
		findings_add(ret, STR("refresh"), ALARM_WARNING, book.refreshed_ms,
		             "Cost Explorer was last asked at %s: budgets are watched with old figures",
		             alarm_time(s, book.refreshed_ms));
	return find_behind(s, ret, e);
}

enum rc alarm_directory_unread(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct broker_alarm_context *context = arg;
	struct aws_directory_record        head = { 0 };
	bool                               is_there;
	int64_t                            age_ms;
	enum rc                            rc;

	if (!context->has_aws)
		return RC_OK;
	if ((rc = session_find(s, &aws_directory_type, STR(AWS_DIRECTORY), &head, &is_there, e)) || !is_there)
		return rc;
	age_ms = session_now(s).ms - head.read_ms;
	if (age_ms > UNREAD_MS)
		findings_add(ret, STR(""), age_ms > DAY_MS ? ALARM_PAGE : ALARM_WARNING, head.read_ms,
		             "Identity Center was read last at %s; %s", alarm_time(s, head.read_ms),
		             age_ms > DAY_MS ? "nobody can sign in any more" : "people are as they were then");
	if (head.missing.n)
		findings_add(ret, STR("groups"), ALARM_WARNING, head.read_ms, "Identity Center does not have: %.*s",
		             STR_ARG(head.missing));
	return RC_OK;
}
