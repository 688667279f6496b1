/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_account.c - an account in words: what its status means, what holds it, whether the organisation agrees.
 *
 * Two things are told before anything else, because who asks is most likely here for them: a hold that should have ended and has not, and an
 * account whose record and OU differ while nothing moves it. The OU is the one where it last was for certain; where it really is now, only
 * the job account-drift knows, which looks.
 */
#include "base/arena.h"
#include "base/utf8.h"
#include "domain/account.h"
#include "domain/lease.h"
#include "service/account_clean.h"
#include "service/account_follow.h"
#include "service/explain_ops.h"
#include "service/holds.h"
#include "service/lease_records.h"

struct view {
	struct account   a;
	struct holds     open;
	struct hold_book book;
	struct lease     lease; /* on it, or the last one */
	bool             has_lease;
	bool             is_moving; /* a saga brings the world behind the record */
	bool             is_astray; /* the world is elsewhere, and nothing moves it */
};

/* --- reading --- */

static enum rc read_view(struct situation *x, struct view *v, bool *ret_is_known, struct err *e)
{
	struct str lease;
	bool       has_book;
	enum rc    rc = explain_find(x, &account_type, x->id, &v->a, ret_is_known, e);

	if (rc || (rc = explain_read_holds(x, &v->open, e)) ||
	    (rc = explain_find(x, &hold_book_type, x->id, &v->book, &has_book, e)) || !*ret_is_known)
		return rc;
	if (!has_book)
		v->book = (struct hold_book){ .account = x->id };
	lease = v->a.lease_uuid.n ? v->a.lease_uuid : v->a.last_lease;
	return explain_find(x, &lease_type, lease, &v->lease, &v->has_lease, e);
}

/* --- what each status means --- */

static void sum_up_rest(struct situation *x, const struct view *v)
{
	const struct hold *h = explain_longest(&v->open);
	struct str         for_what;

	if (!h) {
		x->summary = str_format(x->a, "Account %.*s rests although nothing holds it.", STR_ARG(x->id));
		explain_problem(x, STR("It rests and has no open hold: nothing will make it free by itself."));
		explain_can(x, CAN_CLEAN_AGAIN, x->id);
		return;
	}
	for_what = explain_purpose(x, h);
	if (!h->due_ms)
		x->summary = str_format(x->a, "Account %.*s rests until a person releases it, %.*s.", STR_ARG(x->id),
		                        STR_ARG(for_what));
	else if (explain_is_overdue(x, h))
		x->summary = str_format(
		        x->a, "Account %.*s should have been free since %s, but its hold %.*s has not been released.",
		        STR_ARG(x->id), explain_time(x, h->due_ms), STR_ARG(h->id));
	else
		x->summary = str_format(x->a, "Account %.*s rests until %s %.*s; then it can be lent again.",
		                        STR_ARG(x->id), explain_time(x, h->due_ms), STR_ARG(for_what));
}

static void sum_up_locked(struct situation *x, const struct view *v)
{
	struct str why = v->a.reason.n ? utf8_line(x->a, v->a.reason, 300) : STR("no reason is known");

	x->summary = str_format(
	        x->a,
	        "Account %.*s is locked away: %.*s. Nothing happens to it by itself: somebody has to have it "
	        "emptied again, or take it out of the pool.",
	        STR_ARG(x->id), STR_ARG(why));
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

static const char *cleaning_state(const struct view *v)
{
	if (v->is_moving)
		return "is on its way to be emptied";
	return v->a.clean_run.n ? "is being emptied" : "waits for its turn to be emptied";
}

static enum rc sum_up_cleaning(struct situation *x, const struct view *v, struct err *e)
{
	const struct account *a = &v->a;
	struct str            words = last_words(a->clean_log);
	bool                  has_begun = a->clean_run.n > 0;

	x->summary = str_format(x->a, "Account %.*s %s, %s; after that it rests, and then it can be lent again.",
	                        STR_ARG(x->id), cleaning_state(v), cleaned_why(a->clean_reason));
	explain_can(x, CAN_CLEAN_AGAIN, x->id);
	if (!has_begun)
		return explain_timer(x, str_format(x->a, "cleanup/%.*s", STR_ARG(a->id)),
		                     STR("it looks whether it is its turn"), NULL, e);
	explain_why(x, str_format(x->a, "The cleanup began at %s; %lld runs in a row found it clean, %lld failed.",
	                          explain_time(x, a->clean_started_ms), (long long)a->clean_successes,
	                          (long long)a->clean_failures));
	if (words.n)
		explain_why(x, str_format(x->a, "The cleaner's last words: %.*s", STR_ARG(words)));
	if (!account_clean_is_running(a, session_now(x->s)))
		explain_problem(x, str_format(x->a, "The cleanup has not moved since %s and is not under way any more.",
		                              explain_time(x, a->clean_started_ms)));
	explain_next(x, a->clean_started_ms + CLEAN_LIMIT_MS,
	             STR("the cleanup is given up, and the account locked away, unless it has succeeded by then"),
	             STR(CLEANUP_QUEUE));
	return explain_timer(x, str_format(x->a, "cleanup/%.*s", STR_ARG(a->id)), STR("the next step of the cleanup"),
	                     NULL, e);
}

static void sum_up_lent(struct situation *x, const struct view *v)
{
	const struct lease *l = &v->lease;
	bool                is_frozen = v->a.status == ACCOUNT_FROZEN;
	bool                has_end = v->has_lease && l->expires_ms;

	x->summary = str_format(x->a, "Account %.*s is lent%s%.*s by lease %.*s%s%s%s.", STR_ARG(x->id),
	                        v->has_lease ? " to " : "", STR_ARG(l->user_email), STR_ARG(v->a.lease_uuid),
	                        has_end ? " until " : "", has_end ? explain_time(x, l->expires_ms) : "",
	                        is_frozen ? "; the lease is frozen, so nobody has access" : "");
	if (has_end)
		explain_next(x, l->expires_ms, STR("the lease ends; the account is emptied and rests"),
		             str_format(x->a, "timer lease-expiry/%.*s", STR_ARG(l->uuid)));
	explain_can(x, CAN_LOCK_AWAY, x->id);
	explain_can(x, CAN_EJECT, x->id);
}

static void sum_up_free(struct situation *x, const struct view *v)
{
	bool is_settled = !v->is_moving && !account_must_follow(&v->a);

	x->summary = str_format(x->a, "Account %.*s is free and can be lent%s.", STR_ARG(x->id),
	                        is_settled ? "" : ", as soon as it has arrived in its OU");
	explain_can(x, CAN_LOCK_AWAY, x->id);
	explain_can(x, CAN_EJECT, x->id);
}

static enum rc sum_up(struct situation *x, const struct view *v, struct err *e)
{
	switch (v->a.status) {
	case ACCOUNT_AVAILABLE: sum_up_free(x, v); break;
	case ACCOUNT_ACTIVE:
	case ACCOUNT_FROZEN: sum_up_lent(x, v); break;
	case ACCOUNT_CLEANUP: return sum_up_cleaning(x, v, e);
	case ACCOUNT_QUARANTINE: sum_up_locked(x, v); break;
	case ACCOUNT_COOLDOWN: sum_up_rest(x, v); break;
	case ACCOUNT_EXIT:
		x->summary = str_format(x->a, "Account %.*s is on its way out of the pool.", STR_ARG(x->id));
		break;
	case ACCOUNT_STATUS_COUNT: break;
	}
	return RC_OK;
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
		return ms;
	case ACCOUNT_FROZEN:
	case ACCOUNT_EXIT:
	case ACCOUNT_STATUS_COUNT: break;
	}
	return ms;
}

/* --- does the organisation agree? --- */

static enum rc tell_place(struct situation *x, struct view *v, struct err *e)
{
	const struct account *a = &v->a;
	const char           *wanted = account_ou_names[a->status];
	bool                  is_elsewhere = !str_eq(a->placed_ou, str_from(wanted));

	if (is_elsewhere)
		explain_why(x, str_format(x->a, "It should be in the OU %s; where it last was for certain is %.*s.",
		                          wanted, STR_ARG(a->placed_ou)));
	if (!str_eq_nocase(a->granted, a->holder))
		explain_why(x,
		            str_format(x->a, "Access: %s%.*s should have it; when it was last certain, %s%.*s had it.",
		                       a->holder.n ? "" : "nobody", STR_ARG(a->holder), a->granted.n ? "" : "nobody",
		                       STR_ARG(a->granted)));
	v->is_astray = (account_must_follow(a) && !v->is_moving) || a->has_drifted;
	if (!v->is_astray)
		return RC_OK;
	if (a->has_drifted)
		explain_problem(
		        x,
		        str_format(x->a,
		                   "The last comparison with the organisation did not find it in the OU %s, where the "
		                   "record says it is.",
		                   wanted));
	else
		explain_problem(
		        x,
		        str_format(x->a,
		                   "Record and organisation differ, and nothing is moving it: the record says %s (OU "
		                   "%s), the account was last in %.*s.",
		                   account_status_names[a->status], wanted, STR_ARG(a->placed_ou)));
	return explain_reconciler(x, false, e);
}

/* What the record says counts for little while the account is elsewhere. */
static void sum_up_astray(struct situation *x, const struct view *v)
{
	const struct account *a = &v->a;

	x->summary =
	        str_format(x->a,
	                   "The record says that account %.*s is %s, but %s%.*s: do not trust either until they agree.",
	                   STR_ARG(x->id), account_status_names[a->status],
	                   a->has_drifted ? "the organisation has it somewhere else" : "it was last in the OU ",
	                   a->has_drifted ? 0 : (int)a->placed_ou.n, a->placed_ou.p ? a->placed_ou.p : "");
	if (a->status != ACCOUNT_QUARANTINE && a->status != ACCOUNT_EXIT)
		explain_can(x, CAN_LOCK_AWAY, x->id);
}

/* --- history --- */

static void tell_history(struct situation *x, const struct view *v)
{
	const struct account *a = &v->a;

	if (v->has_lease)
		explain_why(x, str_format(x->a, "%s %.*s of %.*s%s%s (%s).",
		                          a->lease_uuid.n ? "On it is lease" : "Its last lease was",
		                          STR_ARG(v->lease.uuid), STR_ARG(v->lease.user_email),
		                          v->lease.end_ms ? ", which ended at " : "",
		                          v->lease.end_ms ? explain_time(x, v->lease.end_ms) : "",
		                          lease_status_names[v->lease.status]));
	if (a->cleaned_ms)
		explain_why(x, str_format(x->a, "It was last found clean at %s.", explain_time(x, a->cleaned_ms)));
	if (v->book.bypass_by.n)
		explain_why(x, str_format(x->a,
		                          "Its next cleanup will not be followed by a rest: %.*s said so at %s (%.*s).",
		                          STR_ARG(v->book.bypass_by), explain_time(x, v->book.bypass_ms),
		                          STR_ARG(v->book.bypass_why)));
}

/* --- all of it --- */

/* Of another system, beside which we stand guard: we know what we hold, and nothing else. */
static enum rc describe_guarded(struct situation *x, const struct view *v, struct err *e)
{
	const struct hold *h = explain_longest(&v->open);
	struct str         for_what = explain_purpose(x, h);

	x->where = STR("held");
	x->since_ms = h->created_ms;
	x->summary = str_format(x->a, "Account %.*s of another system is held until %s %.*s.", STR_ARG(x->id),
	                        h->due_ms ? explain_time(x, h->due_ms) : "a person releases it,", STR_ARG(for_what));
	return explain_holds(x, &v->open, e);
}

enum rc explain_account(struct situation *x, struct err *e)
{
	struct view *v = arena_alloc(x->a, sizeof(*v));
	bool         is_known;
	enum rc      rc;

	if (!account_id_is_ok(x->id))
		return err_set(e, RC_INVALID, "'%.*s' is not an account id; right are 12 digits", STR_ARG(x->id));
	if ((rc = read_view(x, v, &is_known, e)))
		return rc;
	x->is_gone = !is_known && !v->open.count;
	if (!is_known)
		return x->is_gone ? RC_OK : describe_guarded(x, v, e);
	x->where = str_from(account_status_names[v->a.status]);
	x->since_ms = since(v);
	if ((rc = explain_holds(x, &v->open, e)))
		return rc;
	tell_history(x, v);
	rc = explain_saga(x,
	                  str_format(x->a, ACCOUNT_FOLLOW "/%.*s/%lld", STR_ARG(x->id), (long long)v->a.follow_number),
	                  &v->is_moving, e);
	if (rc || (rc = tell_place(x, v, e)) || (rc = sum_up(x, v, e)))
		return rc;
	if (v->is_astray)
		sum_up_astray(x, v);
	return RC_OK;
}
