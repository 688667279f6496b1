/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_holds.c - what holds an account, in words: for what, until when, and whether that will end by itself.
 *
 * A hold with a due time ends by its timer. One whose timer is gone, or whose time is over, is a problem, and what will put it right is
 * said with it: this is what somebody with a stuck account comes for.
 */
#include "base/arena.h"
#include "base/utf8.h"
#include "service/explain_ops.h"
#include "service/holds.h"

enum { OVERDUE_MS = 60000, NOTE_BYTES = 200 };

enum rc explain_read_holds(struct situation *x, struct holds *ret, struct err *e)
{
	struct hold_list list = { .account = x->id, .limit = EXPLAIN_HOLDS };
	enum rc          rc = hold_list_open(x->s, x->id, ret, e);

	if (rc || (rc = hold_list(x->s, &list, e)))
		return rc;
	for (size_t i = 0; i < ret->count; i++)
		x->holds[x->hold_count++] = ret->items[i];
	for (size_t i = 0, closed = 0; i < list.page.count && closed < EXPLAIN_CLOSED_HOLDS; i++) {
		const struct hold *h = page_record(&list.page, &hold_type, i);

		if (h->state == HOLD_OPEN)
			continue;
		x->holds[x->hold_count++] = *h;
		closed++;
	}
	return RC_OK;
}

/* --- who puts right what has gone wrong --- */

/* The reconciler where it is scheduled; else the job that compares OUs, which does not look at holds. */
enum rc explain_reconciler(struct situation *x, bool is_about_hold, struct err *e)
{
	struct timer timer;
	bool         is_scheduled;
	enum rc      rc = explain_find(x, &timer_type, STR("job/reconcile"), &timer, &is_scheduled, e);

	if (rc)
		return rc;
	if (is_scheduled) {
		explain_can(x, CAN_DOCTOR, x->id);
		return explain_job(
		        x, "reconcile",
		        STR("organisation, records and holds are compared: what is safe is put right, the rest is an alarm"),
		        e);
	}
	if (is_about_hold)
		return RC_OK;
	return explain_job(
	        x, "account-drift",
	        STR("organisation and records are compared: a move that was left is finished; an account that is twice in a "
	            "row not where it should be is locked away"),
	        e);
}

/* --- holds --- */

/* Why it is held, as the end of a sentence. */
struct str explain_purpose(struct situation *x, const struct hold *h)
{
	struct str note = utf8_line(x->a, h->note, NOTE_BYTES);

	switch (h->reason) {
	case HOLD_BILLING:
		return h->lease_uuid.n ? str_format(x->a, "so that the costs of lease %.*s are complete",
		                                    STR_ARG(h->lease_uuid))
		                       : STR("so that its costs are complete");
	case HOLD_METADATA: return STR("so that what its last user left in histories and logs has expired");
	case HOLD_QUOTA: return STR("so that the quotas that were used up have recovered");
	case HOLD_FAILED_CLEANUP: return STR("because its cleanup failed");
	case HOLD_DRIFT: return STR("because it was not where it should be");
	case HOLD_MANUAL:
		return str_format(x->a, "because %.*s wants it so%s%.*s", STR_ARG(h->created_by), note.n ? ": " : "",
		                  STR_ARG(note));
	case HOLD_NEW_ACCOUNT:
	case HOLD_REASON_COUNT: break;
	}
	return note;
}

/* The hold that lasts longest: until a person, or the latest due. */
const struct hold *explain_longest(const struct holds *open)
{
	const struct hold *last = NULL;

	for (size_t i = 0; i < open->count; i++) {
		const struct hold *h = &open->items[i];

		if (!h->due_ms)
			return h;
		if (!last || h->due_ms > last->due_ms)
			last = h;
	}
	return last;
}

bool explain_is_overdue(const struct situation *x, const struct hold *h)
{
	return h->due_ms && h->due_ms + OVERDUE_MS < x->now_ms;
}

/* One with a due time has a timer, or its delivery is on its way; else nothing will ever end it. */
static enum rc tell_timed(struct situation *x, const struct holds *open, const struct hold *h, struct err *e)
{
	bool        is_last = h == explain_longest(open);
	const char *reason = hold_reason_names[h->reason];
	struct str  what = str_format(x->a,
                                     is_last ? "the hold %s ends; nothing else holds the account then"
	                                      : "the hold %s ends",
	                              reason);
	bool        is_armed;
	enum rc     rc = explain_timer(x, hold_schedule_name(h, x->a), what, &is_armed, e);

	if (rc)
		return rc;
	if (explain_is_overdue(x, h))
		explain_problem(x,
		                str_format(x->a, "The hold %.*s (%s) was to end at %s and has not: %s.", STR_ARG(h->id),
		                           reason, explain_time(x, h->due_ms),
		                           is_armed
		                                   ? "its timer is armed but has not fired"
		                                   : "its timer has fired or is lost, and nothing has ended it since"));
	else if (!is_armed && h->due_ms > x->now_ms)
		explain_problem(x, str_format(x->a, "The hold %.*s (%s) has no timer: nothing will end it at %s.",
		                              STR_ARG(h->id), reason, explain_time(x, h->due_ms)));
	else
		return RC_OK; /* in its time, or just now on its way */
	return is_armed ? RC_OK : explain_reconciler(x, true, e);
}

enum rc explain_holds(struct situation *x, const struct holds *open, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < open->count; i++) {
		const struct hold *h = &open->items[i];
		struct str         for_what = explain_purpose(x, h);

		explain_why(x, str_format(x->a, "It is held since %s %.*s%s%s.", explain_time(x, h->created_ms),
		                          STR_ARG(for_what), h->due_ms ? ", until " : ", until a person ends that",
		                          h->due_ms ? explain_time(x, h->due_ms) : ""));
		if (h->last_error.n)
			explain_problem(x, str_format(x->a, "The move for the hold %.*s has failed %lld times: %.*s",
			                              STR_ARG(h->id), (long long)h->attempts, STR_ARG(h->last_error)));
		if (!h->locks) {
			explain_can(x, CAN_RELEASE_HOLD, h->id);
			if (h->due_ms)
				explain_can(x, CAN_EXTEND_HOLD, h->id);
		}
		if (h->due_ms)
			rc = tell_timed(x, open, h, e);
	}
	return rc;
}
