/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_account.c - an account in words: what its status means, what holds it, whether the organisation agrees.
 *
 * Two things come first, because most people ask because of them: a hold that should have ended and has not, and an
 * account whose record and OU differ while nothing moves it. The OU is the last one that is certain; only the job
 * account-drift asks where the account is now.
 *
 * A hold whose timer is gone, or whose time is over, is a problem, and the answer says what will repair it.
 */
#include "base/arena.h"
#include "base/utf8.h"
#include "domain/account.h"
#include "domain/lease.h"
#include "service/pool/account_clean.h"
#include "service/explain/explain_private.h"
#include "service/hold/holds.h"
#include "service/record/lease_records.h"

enum { OVERDUE_MS = 60000, NOTE_BYTES = 200 };

struct view {
	struct account a;
	struct holds   open;
	struct lease   lease; /* on it, or the last one */
	bool           has_lease;
	bool           is_moving; /* a saga brings the world behind the record */
	bool           is_astray; /* the world is elsewhere, and nothing moves it */
};

/* --- what holds it --- */

/* The open ones into *ret and, with the last closed ones, into the situation. */
static void read_holds(struct situation *x, struct holds *ret)
{
	struct hold_list list = { .account = x->id, .limit = EXPLAIN_HOLDS };

	if (x->rc || (x->rc = hold_list_open(x->s, x->id, ret, x->e)) || (x->rc = hold_list(x->s, &list, x->e)))
		return;
	for (size_t i = 0; i < ret->count; i++)
		x->holds[x->hold_count++] = ret->items[i];
	for (size_t i = 0, closed = 0; i < list.page.count && closed < EXPLAIN_CLOSED_HOLDS; i++) {
		const struct hold *h = page_record(&list.page, &hold_type, i);

		if (h->state == HOLD_OPEN)
			continue;
		x->holds[x->hold_count++] = *h;
		closed++;
	}
}

/* Who repairs it, and when: the reconciler if it is scheduled; else the job that compares OUs, which ignores holds. */
static void tell_reconciler(struct situation *x, bool is_about_hold)
{
	struct timer timer;

	if (explain_find(x, &timer_type, STR("job/reconcile"), &timer)) {
		explain_can(x, CAN_DOCTOR, x->id);
		explain_job(
		        x, "reconcile",
		        "organisation, records and holds are compared: what is safe is repaired, the rest raises an "
		        "alarm");
	} else if (!is_about_hold) {
		explain_job(
		        x, "account-drift",
		        "organisation and records are compared: a move that was left is finished; an account that is "
		        "twice in a row not where it should be is put in quarantine");
	}
}

/* Why it is held, as the end of a sentence. */
static struct str purpose_of(struct situation *x, const struct hold *h)
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
		return str_format(x->a, "because %.*s asked for it%s%.*s", STR_ARG(h->created_by), note.n ? ": " : "",
		                  STR_ARG(note));
	case HOLD_NEW_ACCOUNT:
	case HOLD_REASON_COUNT: break;
	}
	return note;
}

/* The hold that lasts longest: until a person, or the latest due. */
static const struct hold *longest_of(const struct holds *open)
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

static bool is_overdue(const struct situation *x, const struct hold *h)
{
	return h->due_ms && h->due_ms + OVERDUE_MS < x->now_ms;
}

/* One with a due time has a timer, or its delivery is on its way; else nothing will ever end it. */
static void tell_timed(struct situation *x, const struct holds *open, const struct hold *h)
{
	const char *reason = hold_reason_names[h->reason];
	struct str  what = str_format(x->a, "the hold %s ends%s", reason,
                                     h == longest_of(open) ? "; nothing else holds the account then" : "");
	bool        is_armed = explain_timer(x, hold_schedule_name(h, x->a), what);

	if (is_overdue(x, h))
		explain_say(x, PROBLEM, "The hold %.*s (%s) should have ended at %s and has not: %s.", STR_ARG(h->id),
		            reason, explain_time(x, h->due_ms),
		            is_armed ? "its timer is armed but has not fired"
		                     : "its timer has fired or is lost, and nothing has ended it since");
	else if (!is_armed && h->due_ms > x->now_ms)
		explain_say(x, PROBLEM, "The hold %.*s (%s) has no timer: nothing will end it at %s.", STR_ARG(h->id),
		            reason, explain_time(x, h->due_ms));
	else
		return; /* in its time, or just now on its way */
	if (!is_armed)
		tell_reconciler(x, true);
}

static void tell_holds(struct situation *x, const struct holds *open)
{
	for (size_t i = 0; i < open->count; i++) {
		const struct hold *h = &open->items[i];
		struct str         for_what = purpose_of(x, h);

		explain_say(x, WHY, "It has been held since %s %.*s, until %s.", explain_time(x, h->created_ms),
		            STR_ARG(for_what),
		            h->due_ms  ? explain_time(x, h->due_ms)
		            : h->locks ? "a cleanup succeeds"
		                       : "someone releases it");
		if (h->last_error.n)
			explain_say(x, PROBLEM, "The move for the hold %.*s has failed %lld times: %.*s",
			            STR_ARG(h->id), (long long)h->attempts, STR_ARG(h->last_error));
		if (!h->locks)
			explain_can(x, CAN_RELEASE_HOLD, h->id);
		if (!h->locks && h->due_ms)
			explain_can(x, CAN_EXTEND_HOLD, h->id);
		if (h->due_ms)
			tell_timed(x, open, h);
	}
}

/* --- what each status means --- */

/* What is handed over is another system's business; else the reconciler finds it. */
static void sum_up_unheld(struct situation *x)
{
	struct account_holds book;

	if (explain_find(x, &account_holds_type, x->id, &book) && book.handed_ms) {
		explain_say(x, SUMMARY,
		            "%s is in cooldown, and was handed over to another system at %s: nothing makes it free "
		            "here before its next cleanup.",
		            x->who, explain_time(x, book.handed_ms));
		return;
	}
	explain_say(x, SUMMARY, "%s is in cooldown although nothing holds it.", x->who);
	explain_say(x, PROBLEM, "It is in cooldown without an open hold: nothing will make it free by itself.");
	tell_reconciler(x, true);
}

static void sum_up_rest(struct situation *x, const struct view *v)
{
	const struct hold *h = longest_of(&v->open);
	struct str         for_what;

	if (!h) {
		sum_up_unheld(x);
		return;
	}
	for_what = purpose_of(x, h);
	if (!h->due_ms)
		explain_say(x, SUMMARY, "%s is in cooldown until someone releases it, %.*s.", x->who,
		            STR_ARG(for_what));
	else if (is_overdue(x, h))
		explain_say(x, SUMMARY, "%s should have been free since %s, but its hold %.*s has not been released.",
		            x->who, explain_time(x, h->due_ms), STR_ARG(h->id));
	else
		explain_say(x, SUMMARY, "Account %.*s is in cooldown until %s %.*s; then it can be lent again.",
		            STR_ARG(x->id), explain_time(x, h->due_ms), STR_ARG(for_what));
}

static void sum_up_locked(struct situation *x, const struct view *v)
{
	struct str why = v->a.reason.n ? utf8_line(x->a, v->a.reason, 300) : STR("no reason is known");

	explain_say(x, SUMMARY,
	            "%s is in quarantine: %.*s. Nothing happens to it by itself: somebody has to have it "
	            "emptied again, or take it out of the pool.",
	            x->who, STR_ARG(why));
	explain_can(x, CAN_CLEAN_AGAIN, x->id);
	explain_can(x, CAN_EJECT, x->id);
}

/* The last line of what the cleaner said. */
static struct str last_words(struct str log)
{
	struct str rest = log, line = STR("");

	while (rest.n) {
		struct str next = str_cut(&rest, '\n');

		line = next.n ? next : line;
	}
	return line;
}

static const char *cleaned_why(struct str reason)
{
	static const struct {
		const char *reason, *words;
	} table[] = {
		{ CLEAN_FOR_REGISTRATION, "because it is new in the pool" },
		{ CLEAN_AFTER_LEASE, "after a lease" },
		{ CLEAN_AFTER_FAILURE, "because somebody had it cleaned again" },
		{ CLEAN_AFTER_RESET, "after a lease that did not come about" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(reason, str_from(table[i].reason)))
			return table[i].words;
	return "for a reason that is not known";
}

static void sum_up_cleaning(struct situation *x, const struct view *v)
{
	const struct account *a = &v->a;
	struct str  words = last_words(a->clean_log), timer = str_format(x->a, "cleanup/%.*s", STR_ARG(a->id));
	const char *began = explain_time(x, a->clean_started_ms);

	explain_say(x, SUMMARY, "Account %.*s %s, %s; after a cooldown it can be lent again.", STR_ARG(x->id),
	            v->is_moving     ? "is on its way to be emptied"
	            : a->clean_run.n ? "is being emptied"
	                             : "waits for its turn to be emptied",
	            cleaned_why(a->clean_reason));
	if (!account_clean_is_running(a, session_now(x->s)))
		explain_can(x, CAN_CLEAN_AGAIN, x->id);
	if (!a->clean_run.n) {
		(void)explain_timer(x, timer, STR("it looks whether it is its turn"));
		return;
	}
	explain_say(x, WHY, "The cleanup began at %s; %lld runs in a row found it clean, %lld failed.", began,
	            (long long)a->clean_successes, (long long)a->clean_failures);
	if (words.n)
		explain_say(x, WHY, "The cleaner's last words: %.*s", STR_ARG(words));
	if (!account_clean_is_running(a, session_now(x->s)))
		explain_say(x, PROBLEM, "The cleanup has not moved since %s and is not under way any more.", began);
	explain_next(x, a->clean_started_ms + CLEAN_LIMIT_MS,
	             STR("the cleanup is given up and the account put in quarantine, unless it has succeeded by then"),
	             STR(CLEANUP_QUEUE));
	(void)explain_timer(x, timer, STR("the next step of the cleanup"));
}

static void sum_up_lent(struct situation *x, const struct view *v)
{
	const struct lease *l = &v->lease;
	bool                has_end = v->has_lease && l->expires_ms;

	explain_say(x, SUMMARY, "%s is lent%s%.*s by lease %.*s%s%s%s.", x->who, v->has_lease ? " to " : "",
	            STR_ARG(l->user_email), STR_ARG(v->a.lease_uuid), has_end ? " until " : "",
	            has_end ? explain_time(x, l->expires_ms) : "",
	            v->a.status == ACCOUNT_FROZEN ? "; the lease is frozen, so nobody has access" : "");
	if (has_end)
		explain_next(x, l->expires_ms, STR("the lease ends; the account is emptied, then its cooldown starts"),
		             str_format(x->a, "timer lease-expiry/%.*s", STR_ARG(l->uuid)));
	explain_can(x, CAN_LOCK_AWAY, x->id);
	explain_can(x, CAN_EJECT, x->id);
}

static void sum_up(struct situation *x, const struct view *v)
{
	bool is_settled = !v->is_moving && !account_must_follow(&v->a);

	switch (v->a.status) {
	case ACCOUNT_AVAILABLE:
		explain_say(x, SUMMARY, "%s is free and can be lent%s.", x->who,
		            is_settled ? "" : ", as soon as it has arrived in its OU");
		explain_can(x, CAN_LOCK_AWAY, x->id);
		explain_can(x, CAN_EJECT, x->id);
		break;
	case ACCOUNT_ACTIVE:
	case ACCOUNT_FROZEN: sum_up_lent(x, v); break;
	case ACCOUNT_CLEANUP: sum_up_cleaning(x, v); break;
	case ACCOUNT_QUARANTINE: sum_up_locked(x, v); break;
	case ACCOUNT_COOLDOWN: sum_up_rest(x, v); break;
	case ACCOUNT_EXIT: explain_say(x, SUMMARY, "%s is on its way out of the pool.", x->who); break;
	case ACCOUNT_STATUS_COUNT: break;
	}
}

/* Since when it has this status. A record does not say; what came with it does. */
static int64_t since(const struct view *v)
{
	const struct account *a = &v->a;
	int64_t               ms = a->edited_ms;

	switch (a->status) {
	case ACCOUNT_AVAILABLE: return a->rested_ms;
	case ACCOUNT_ACTIVE: return v->has_lease && v->lease.start_ms ? v->lease.start_ms : ms;
	case ACCOUNT_CLEANUP: return a->clean_started_ms ? a->clean_started_ms : ms;
	case ACCOUNT_COOLDOWN:
	case ACCOUNT_QUARANTINE:
		for (size_t i = 0; i < v->open.count; i++)
			if (v->open.items[i].created_ms < ms &&
			    (a->status == ACCOUNT_COOLDOWN || v->open.items[i].locks))
				ms = v->open.items[i].created_ms;
		/* A person may have placed a hold before its cleanup. */
		return a->status == ACCOUNT_COOLDOWN && ms < a->cleaned_ms ? a->cleaned_ms : ms;
	case ACCOUNT_FROZEN:
	case ACCOUNT_EXIT:
	case ACCOUNT_STATUS_COUNT: break;
	}
	return ms;
}

/* --- does the organisation agree? --- */

static void tell_place(struct situation *x, struct view *v)
{
	const struct account *a = &v->a;
	const char           *wanted = account_ou_names[a->status];

	if (!str_eq(a->placed_ou, str_from(wanted)))
		explain_say(x, WHY, "It should be in the OU %s; where it last was for certain is %.*s.", wanted,
		            STR_ARG(a->placed_ou));
	if (!str_eq_nocase(a->granted, a->holder))
		explain_say(x, WHY, "Access: %s%.*s should have it; when it was last certain, %s%.*s had it.",
		            a->holder.n ? "" : "nobody", STR_ARG(a->holder), a->granted.n ? "" : "nobody",
		            STR_ARG(a->granted));
	v->is_astray = (account_must_follow(a) && !v->is_moving) || a->has_drifted;
	if (!v->is_astray)
		return;
	if (a->has_drifted)
		explain_say(x, PROBLEM,
		            "The last comparison with the organisation did not find it in the OU %s, where the record "
		            "says it is.",
		            wanted);
	else
		explain_say(x, PROBLEM,
		            "Record and organisation differ, and nothing is moving it: the record says %s (OU %s), the "
		            "account was last in %.*s.",
		            account_status_names[a->status], wanted, STR_ARG(a->placed_ou));
	tell_reconciler(x, false);
}

/* What the record says counts for little while the account is elsewhere. */
static void sum_up_astray(struct situation *x, const struct view *v)
{
	const struct account *a = &v->a;
	struct str            ou = a->has_drifted ? STR("") : a->placed_ou;

	explain_say(x, SUMMARY,
	            "The record says that account %.*s is %s, but %s%.*s: do not trust either until they agree.",
	            STR_ARG(x->id), account_status_names[a->status],
	            a->has_drifted ? "the organisation has it somewhere else" : "it was last in the OU ", STR_ARG(ou));
	if (a->status != ACCOUNT_QUARANTINE && a->status != ACCOUNT_EXIT)
		explain_can(x, CAN_LOCK_AWAY, x->id);
}

/* --- history --- */

static void tell_history(struct situation *x, const struct view *v)
{
	struct account_holds book;

	if (v->has_lease)
		explain_say(x, WHY, "%s %.*s of %.*s%s%s (%s).",
		            v->a.lease_uuid.n ? "Its current lease is" : "Its last lease was", STR_ARG(v->lease.uuid),
		            STR_ARG(v->lease.user_email), v->lease.end_ms ? ", which ended at " : "",
		            v->lease.end_ms ? explain_time(x, v->lease.end_ms) : "",
		            lease_status_names[v->lease.status]);
	if (v->a.cleaned_ms)
		explain_say(x, WHY, "It was last found clean at %s.", explain_time(x, v->a.cleaned_ms));
	if (explain_find(x, &account_holds_type, x->id, &book) && book.bypass_by.n)
		explain_say(x, WHY, "Its next cleanup is not followed by a cooldown: set by %.*s at %s (%.*s).",
		            STR_ARG(book.bypass_by), explain_time(x, book.bypass_ms), STR_ARG(book.bypass_why));
}

/* --- all of it --- */

/* Of another system, beside which we stand guard: we know what we hold, and nothing else. */
static void describe_guarded(struct situation *x, const struct view *v)
{
	const struct hold *h = longest_of(&v->open);
	struct str         for_what = purpose_of(x, h);

	x->where = STR("held");
	x->since_ms = h->created_ms;
	explain_say(x, SUMMARY, "%s of another system is held until %s %.*s.", x->who,
	            h->due_ms ? explain_time(x, h->due_ms) : "a person releases it,", STR_ARG(for_what));
	tell_holds(x, &v->open);
}

void explain_account(struct situation *x)
{
	struct view *v = arena_alloc(x->a, sizeof(*v));
	bool         is_known;

	if (!account_id_is_ok(x->id)) {
		x->rc = err_set(x->e, RC_INVALID, "'%.*s' is not an account id; right are 12 digits", STR_ARG(x->id));
		return;
	}
	x->who = str_format(x->a, "Account %.*s", STR_ARG(x->id)).p;
	is_known = explain_find(x, &account_type, x->id, &v->a);
	read_holds(x, &v->open);
	x->is_gone = !is_known && !v->open.count;
	if (x->rc || x->is_gone)
		return;
	if (!is_known) {
		describe_guarded(x, v);
		return;
	}
	v->has_lease = explain_find(x, &lease_type, v->a.lease_uuid.n ? v->a.lease_uuid : v->a.last_lease, &v->lease);
	x->where = str_from(account_status_names[v->a.status]);
	x->since_ms = since(v);
	tell_holds(x, &v->open);
	tell_history(x, v);
	v->is_moving = explain_follow(x, &v->a);
	tell_place(x, v);
	sum_up(x, v);
	if (v->is_astray)
		sum_up_astray(x, v);
}
