/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holds.c - holds of accounts, and the only way to Available.
 *
 *     cleanup succeeded -> hold_rest() -> Cooldown, with its holds -> each closed in its time -> the last: Available
 *
 * Always true:
 *   1. An account becomes Available only in free_native(), after its list of holds was read without an open one in the
 *      same transaction; never while it is handed over to another system.
 *   2. A hold with a due time has a timer: both are written in one commit.         [hold_make(), hold_extend_until()]
 *   3. A hold closes by its own id, at its own time: an old timer closes nothing else.                      [on_due()]
 *   4. A cleanup that is not followed by a rest leaves a closed hold that says why.                      [hold_rest()]
 *
 * A failure closes nothing: the account stays in cooldown, the timer's delivery is tried again, and the reconciler
 * finds what is overdue.
 *
 * Not here: how long a hold is (domain/hold.c), moving an account (account_follow.c; guard.c for those of others).
 */
#include "service/hold/holds.h"

#include "base/json.h"
#include "base/utf8.h"
#include "domain/lease.h"
#include "kernel/defect.h"
#include "kernel/kernel.h"
#include "kernel/timer.h"
#include "service/account/account_follow.h"
#include "service/record/lease_records.h"
#include "service/cost/statement.h"

enum { TRIES = 10 };

#define ACTOR "holds"

/* --- events --- */

static struct str detail_of(struct session *s, const struct hold *h)
{
	return JSON_OF(session_arena(s), member_str("holdId", h->id), member_str("accountId", h->account),
	               member_word("reason", hold_reason_names[h->reason]),
	               member_word("mode", hold_mode_names[h->mode]), member_word("state", hold_state_names[h->state]),
	               member_if_any(member_time("created", h->created_ms)),
	               member_if_any(member_time("due", h->due_ms)), member_if_any(member_str("note", h->note)),
	               member_if_any(member_str("leaseUuid", h->lease_uuid)),
	               member_if_any(member_str("closedBy", h->closed_by)),
	               member_if_any(member_str("why", h->closed_why)));
}

/* --- the list of open holds --- */

static struct str with_id(struct session *s, struct str list, struct str id)
{
	return str_format(session_arena(s), "%.*s%s%.*s", STR_ARG(list), list.n ? " " : "", STR_ARG(id));
}

static struct str without_id(struct session *s, struct str list, struct str id)
{
	struct str left = STR("");

	while (list.n) {
		struct str one = str_cut(&list, ' ');

		if (!str_eq(one, id))
			left = with_id(s, left, one);
	}
	return left;
}

enum rc hold_list_open(struct session *s, struct str account, struct holds *ret, struct err *e)
{
	struct account_holds book;
	bool                 is_there;
	enum rc              rc = session_find_or_new(s, &account_holds_type, account, &book, e);

	ret->count = 0;
	while (!rc && book.open.n) {
		struct str id = str_cut(&book.open, ' ');

		if (ret->count == HOLDS_OPEN_MAX)
			return err_set(e, RC_CORRUPT, "account %.*s has more than %d open holds in its list",
			               STR_ARG(account), HOLDS_OPEN_MAX);
		rc = session_find(s, &hold_type, id, &ret->items[ret->count], &is_there, e);
		if (!rc && !is_there)
			return err_set(e, RC_CORRUPT, "hold %.*s cannot be read", STR_ARG(id));
		ret->count += !rc;
	}
	return rc;
}

int64_t holds_until(const struct holds *h)
{
	int64_t until_ms = 0;

	for (size_t i = 0; i < h->count; i++) {
		if (!h->items[i].due_ms)
			return INT64_MAX;
		if (h->items[i].due_ms > until_ms)
			until_ms = h->items[i].due_ms;
	}
	return until_ms;
}

/* --- making one --- */

enum rc hold_arm(struct session *s, const struct hold *h, int64_t due_ms, struct err *e)
{
	struct arena *a = session_arena(s);

	if (h->state != HOLD_OPEN || !h->due_ms)
		return err_set(e, RC_CORRUPT, "hold %.*s is closed or has no end; no timer belongs to it",
		               STR_ARG(h->id));
	return account_arm(s, hold_schedule_name(h, a), due_ms, EVENT_HOLD_DUE, h->account,
	                   JSON_OF(a, member_str("holdId", h->id)), e);
}

enum rc hold_make(struct session *s, struct hold *h, enum hold_state state, struct err *e)
{
	struct arena        *a = session_arena(s);
	struct account_holds book;
	bool                 is_open = state == HOLD_OPEN;
	int                  count = 0;
	enum rc              rc = session_find_or_new(s, &account_holds_type, h->account, &book, e);

	if (rc)
		return rc;
	for (struct str rest = book.open; rest.n; count++)
		(void)str_cut(&rest, ' '); /* only counted */
	if (is_open && count >= HOLDS_OPEN_MAX)
		return err_set(e, RC_CONFLICT, "account %.*s has %d open holds; close one first", STR_ARG(h->account),
		               HOLDS_OPEN_MAX);
	h->id = hold_make_id(h->account, session_now(s), &book.last_ms, a);
	h->state = state;
	h->is_open = is_open;
	h->created_ms = book.last_ms;
	h->created_by = utf8_line(a, h->created_by, EMAIL_MAX);
	h->note = utf8_line(a, h->note, HOLD_NOTE_MAX);
	if (is_open) {
		book.open = with_id(s, book.open, h->id);
	} else {
		h->closed_ms = session_now(s).ms;
		h->closed_by = utf8_line(a, h->closed_by.n ? h->closed_by : h->created_by, EMAIL_MAX);
		h->closed_why = utf8_line(a, h->closed_why.n ? h->closed_why : h->note, HOLD_NOTE_MAX);
	}
	if (state == HOLD_BYPASSED) { /* once */
		book.bypass_by = book.bypass_why = STR("");
		book.bypass_ms = 0;
	}
	session_add(s, &hold_type, h);
	session_put(s, &account_holds_type, &book);
	if (is_open && h->due_ms && (rc = hold_arm(s, h, h->due_ms, e)))
		return rc;
	return account_emit(s, is_open ? EVENT_HOLD_CREATED : EVENT_HOLD_CLOSED, h->account,
	                    is_open ? h->created_by : h->closed_by, STR(""), detail_of(s, h), e);
}

/* --- free --- */

/* Not one that is leaving: nobody gets it any more, and a hold would outlast its record. */
static enum rc load_account(struct session *s, struct str id, struct account *ret, struct err *e)
{
	bool    is_there;
	enum rc rc = session_find(s, &account_type, id, ret, &is_there, e);

	if (rc)
		return rc;
	if (!is_there)
		return err_set(e, RC_NOT_FOUND, "there is no account %.*s in the pool", STR_ARG(id));
	if (ret->status == ACCOUNT_EXIT)
		return err_set(e, RC_NOT_FOUND, "account %.*s is on its way out of the pool", STR_ARG(id));
	return RC_OK;
}

/* In the account: what holds it now. */
static enum rc note_holds(struct session *s, struct account *a, struct err *e)
{
	struct holds open;
	enum rc      rc = hold_list_open(s, a->id, &open, e);
	int64_t      until_ms = holds_until(&open);

	if (rc)
		return rc;
	if (HAS_DEFECT(FREE_AT_FIRST))
		open.count = 0;
	a->rest_until_ms = a->status == ACCOUNT_COOLDOWN && until_ms != INT64_MAX ? until_ms : 0;
	a->open_holds = (int64_t)open.count;
	return RC_OK;
}

enum rc hold_is_handed_over(struct session *s, struct str account, bool *ret, struct err *e)
{
	struct account_holds book;
	enum rc              rc = session_find_or_new(s, &account_holds_type, account, &book, e);

	*ret = !rc && book.handed_ms > 0;
	return rc;
}

/* Store the account with what its holds have become: free, when it rests and nothing holds it. */
static enum rc free_native(struct session *s, struct account *a, struct str actor, struct err *e)
{
	bool    is_handed_over;
	enum rc rc = note_holds(s, a, e);

	if (rc || (rc = hold_is_handed_over(s, a->id, &is_handed_over, e)))
		return rc;
	if (a->status != ACCOUNT_COOLDOWN) { /* nothing follows outside: saved, it would seem to arrive once more */
		session_put(s, &account_type, a);
		return RC_OK;
	}
	if (a->open_holds > 0 || is_handed_over)
		return account_save(s, a, actor, e);
	if ((rc = account_apply(a, ACCOUNT_ON_RELEASE, session_now(s), e)) ||
	    (rc = statement_finalise(s, a->id, a->cleaned_ms, e))) /* what the last lease cost is known by now */
		return rc;
	return account_save(s, a, actor, e);
}

enum rc hold_free_account(struct session *s, struct str account, struct str actor, struct err *e)
{
	struct account a;
	bool           is_there;
	enum rc        rc = session_find(s, &account_type, account, &a, &is_there, e);

	return rc || !is_there ? rc : free_native(s, &a, actor, e);
}

/* --- closing --- */

enum rc hold_end(struct session *s, struct hold *h, enum hold_state how, struct str by, struct str why, struct err *e)
{
	struct account_holds book;
	enum rc              rc = hold_close(h, how, utf8_line(session_arena(s), by, EMAIL_MAX),
	                                     utf8_line(session_arena(s), why, HOLD_NOTE_MAX), session_now(s), e);

	if (rc || (rc = session_find_or_new(s, &account_holds_type, h->account, &book, e)))
		return rc;
	book.open = without_id(s, book.open, h->id);
	session_put(s, &account_holds_type, &book);
	session_put(s, &hold_type, h);
	if (h->due_ms && (rc = session_disarm(s, hold_schedule_name(h, session_arena(s)), e)))
		return rc;
	return account_emit(s, EVENT_HOLD_CLOSED, h->account, by, STR(""), detail_of(s, h), e);
}

static enum rc end_and_free(struct session *s, struct hold *h, enum hold_state how, struct str by, struct str why,
                            struct err *e)
{
	enum rc rc;

	if (h->mode == HOLD_GUARD) {
		const struct hold_mode_ops *guard = kernel_hook(kernel_of(s), HOLD_GUARD_MODE);

		return guard->end(s, h, how, by, why, e);
	}
	rc = hold_end(s, h, how, by, why, e);
	return rc ? rc : hold_free_account(s, h->account, by, e);
}

enum rc hold_close_all(struct session *s, struct str account, enum hold_state how, struct str actor, struct str why,
                       struct err *e)
{
	struct holds open;
	enum rc      rc = hold_list_open(s, account, &open, e);

	for (size_t i = 0; !rc && i < open.count; i++) {
		struct hold *h = &open.items[i];
		bool         is_persons = h->reason == HOLD_MANUAL && !h->locks;

		if (how == HOLD_EJECTED || !is_persons)
			rc = hold_end(s, h, how, actor, why, e);
	}
	return rc;
}

/* --- rest --- */

static enum rc open_by_rules(struct session *s, const struct hold_rules *rules, const struct hold *model,
                             struct str account_name, size_t *ret_count, struct err *e)
{
	enum rc rc = RC_OK;

	*ret_count = 0;
	for (int reason = HOLD_BILLING; !rc && reason <= HOLD_QUOTA; reason++) {
		int64_t     hours = hold_hours(rules, account_name, (enum hold_reason)reason);
		struct hold h = *model;

		if (hours <= 0)
			continue;
		h.reason = (enum hold_reason)reason;
		h.due_ms = session_now(s).ms + hours * HOLD_HOUR_MS;
		rc = hold_make(s, &h, HOLD_OPEN, e);
		++*ret_count;
	}
	return rc;
}

/* The holds that follow from the rules, or the record of why there is none. *ret_leaves: it leaves the pool instead. */
static enum rc hold_by_rules(struct session *s, const struct hold_rules *rules, const struct account *a,
                             struct str actor, bool *ret_leaves, struct err *e)
{
	struct hold h = { .account = a->id, .reason = HOLD_BILLING, .created_by = actor, .lease_uuid = a->last_lease };
	struct account_holds book;
	size_t               count;
	enum rc              rc = session_find_or_new(s, &account_holds_type, a->id, &book, e);

	if (rc)
		return rc;
	*ret_leaves = rules->ejects && a->last_lease.n && !book.bypass_by.n;
	if (book.bypass_by.n) {
		h.closed_by = book.bypass_by;
		h.closed_why = h.note = book.bypass_why;
		return hold_make(s, &h, HOLD_BYPASSED, e);
	}
	if (*ret_leaves) {
		h.note = STR("accounts of this pool are not lent twice");
		return hold_make(s, &h, HOLD_EJECTED, e);
	}
	/* One that never had a hold was never lent: a lease ends with a rest. */
	if (rules->exempts_new && !book.last_ms && str_eq(a->clean_reason, STR(CLEAN_FOR_REGISTRATION))) {
		h.reason = HOLD_NEW_ACCOUNT;
		h.note = STR("a new account has no costs to wait for");
		return hold_make(s, &h, HOLD_EXEMPT, e);
	}
	h.note = STR("after its cleanup");
	if ((rc = open_by_rules(s, rules, &h, a->name, &count, e)) || count > 0)
		return rc;
	h.note = STR("no cooldown is configured");
	return hold_make(s, &h, HOLD_EXEMPT, e);
}

static enum rc set_handed_over(struct session *s, struct str account, int64_t at_ms, struct err *e)
{
	struct account_holds book;
	enum rc              rc = session_find_or_new(s, &account_holds_type, account, &book, e);

	if (rc || book.handed_ms == at_ms)
		return rc;
	book.handed_ms = at_ms;
	session_put(s, &account_holds_type, &book);
	return RC_OK;
}

enum rc hold_rest(struct session *s, const struct hold_rules *rules, struct account *a, struct str actor, struct err *e)
{
	bool    leaves = false;
	enum rc rc = account_apply(a, ACCOUNT_ON_CLEANED, session_now(s), e);

	if (rc || (rc = set_handed_over(s, a->id, 0, e)) ||
	    (!HAS_DEFECT(NO_REST) && (rc = hold_by_rules(s, rules, a, actor, &leaves, e))))
		return rc;
	if (!leaves)
		return free_native(s, a, actor, e);
	if ((rc = hold_close_all(s, a->id, HOLD_EJECTED, actor, STR("the account leaves the pool"), e)) ||
	    (rc = account_apply(a, ACCOUNT_ON_EJECT, session_now(s), e)))
		return rc;
	return account_save(s, a, actor, e);
}

enum rc hold_lock(struct session *s, struct str account, enum hold_reason reason, struct str note_text,
                  struct str actor, struct err *e)
{
	struct hold  h = { .account = account, .reason = reason, .locks = 1, .created_by = actor, .note = note_text };
	struct holds open;
	enum rc      rc = hold_list_open(s, account, &open, e);

	for (size_t i = 0; !rc && i < open.count; i++)
		if (open.items[i].locks && open.items[i].reason == reason)
			rc = hold_end(s, &open.items[i], HOLD_CANCELLED, actor, STR("in quarantine again"), e);
	return rc ? rc : hold_make(s, &h, HOLD_OPEN, e);
}

/* --- due --- */

/* The event of a timer: of exactly this hold, and not before its time, whatever the account's status says. */
static enum rc on_due(struct session *s, const struct delivery *d, void *arg UNUSED, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct str                  id;
	struct hold                 h;
	bool                        is_there;
	enum rc                     rc;

	if (json_parse(d->event.detail, &o, e) || !json_get_text(o, "holdId", &id) || !id.n)
		return err_set(e, RC_CORRUPT, "the detail of a " EVENT_HOLD_DUE " names no hold");
	if ((rc = session_find(s, &hold_type, id, &h, &is_there, e)) || !is_there)
		return rc;
	if (h.state != HOLD_OPEN || !h.due_ms)
		return RC_OK;
	if (!hold_is_due(&h, session_now(s)))
		return hold_arm(s, &h, h.due_ms, e);
	return end_and_free(s, &h, HOLD_RELEASED, STR(ACTOR), STR("its time has come"), e);
}

struct queue hold_queue(void)
{
	return (struct queue){ .name = HOLD_QUEUE, .handle = on_due, .tries = TRIES };
}

/* --- for operators --- */

enum rc hold_list(struct session *s, void *arg, struct err *e)
{
	struct hold_list *l = arg;
	struct query      q = query_of(&hold_type, HOLD_OPEN_ONES, value_int(1), l->limit);

	q.cursor = l->cursor;
	if (l->account.n) {
		q.index = HOLD_BY_ACCOUNT;
		q.hash = value_text(l->account);
		q.is_descending = true;
	}
	return session_query(s, &q, &l->page, e);
}

enum rc hold_get(struct session *s, void *arg, struct err *e)
{
	struct hold_call *c = arg;

	return session_get(s, &hold_type, c->id, &c->hold, e);
}

static enum rc need_reason(const struct hold_call *c, struct err *e)
{
	return str_trim(c->reason).n ? RC_OK : err_set(e, RC_INVALID, "a reason is needed: say why, in a few words");
}

/* Room is left for holds that come by themselves: a person's must not keep an account from being cleaned or locked. */
static enum rc need_room(struct session *s, struct str account, struct err *e)
{
	struct holds open;
	size_t       count = 0;
	enum rc      rc = hold_list_open(s, account, &open, e);

	for (size_t i = 0; !rc && i < open.count; i++)
		count += open.items[i].reason == HOLD_MANUAL && !open.items[i].locks;
	if (rc || count < HOLDS_BY_PERSONS_MAX)
		return rc;
	return err_set(e, RC_CONFLICT, "account %.*s has %d holds placed by people; close one of them first",
	               STR_ARG(account), HOLDS_BY_PERSONS_MAX);
}

enum rc hold_add(struct session *s, void *arg, struct err *e)
{
	struct hold_call *c = arg;
	struct account    a;
	enum rc           rc = need_reason(c, e);

	if (rc || (rc = load_account(s, c->account, &a, e)) || (rc = need_room(s, a.id, e)))
		return rc;
	if (c->due_ms && c->due_ms <= session_now(s).ms)
		return err_set(e, RC_INVALID, "the end of a hold must be in the future");
	c->hold = (struct hold){ .account = a.id,
		                 .reason = HOLD_MANUAL,
		                 .due_ms = c->due_ms,
		                 .created_by = c->by.email,
		                 .note = c->reason };
	if ((rc = hold_make(s, &c->hold, HOLD_OPEN, e)))
		return rc;
	if (a.status == ACCOUNT_AVAILABLE && (rc = account_apply(&a, ACCOUNT_ON_HOLD, session_now(s), e)))
		return rc;
	return free_native(s, &a, c->by.email, e);
}

enum rc hold_extend_until(struct session *s, void *arg, struct err *e)
{
	struct hold_call *c = arg;
	struct hold       told;
	int64_t           was_ms;
	enum rc           rc = session_get(s, &hold_type, c->id, &c->hold, e);

	if (rc)
		return rc;
	was_ms = c->hold.due_ms ? c->hold.due_ms : INT64_MAX; /* without an end: any is earlier */
	if ((rc = hold_extend(&c->hold, c->due_ms, session_now(s), e)) ||
	    (c->due_ms < was_ms && (rc = need_reason(c, e))))
		return rc;
	session_put(s, &hold_type, &c->hold);
	told = c->hold;
	told.closed_why = utf8_line(session_arena(s), c->reason, HOLD_NOTE_MAX); /* in the event alone: it is open */
	if ((rc = hold_arm(s, &c->hold, c->hold.due_ms, e)) ||
	    (rc = account_emit(s, EVENT_HOLD_EXTENDED, told.account, c->by.email, c->by.request_id, detail_of(s, &told),
	                       e)))
		return rc;
	return c->hold.mode == HOLD_GUARD ? RC_OK : hold_free_account(s, c->hold.account, c->by.email, e);
}

/* With a reason, and none that only a cleanup or an ejection ends. */
static enum rc load_to_end(struct session *s, struct hold_call *c, struct err *e)
{
	enum rc rc = need_reason(c, e);

	if (rc || (rc = session_get(s, &hold_type, c->id, &c->hold, e)))
		return rc;
	if (c->hold.state == HOLD_OPEN && c->hold.locks)
		return err_set(
		        e, RC_CONFLICT,
		        "account %.*s is in quarantine (%s): retry its cleanup or eject it; the hold ends with that",
		        STR_ARG(c->hold.account), hold_reason_names[c->hold.reason]);
	return RC_OK;
}

static enum rc end_by_person(struct session *s, struct hold_call *c, enum hold_state how, struct err *e)
{
	enum rc rc = load_to_end(s, c, e);

	return rc ? rc : end_and_free(s, &c->hold, how, c->by.email, c->reason, e);
}

TXN(hold_release, end_by_person(s, arg, HOLD_RELEASED_EARLY, e))
TXN(hold_cancel, end_by_person(s, arg, HOLD_CANCELLED, e))

enum rc hold_hand_over(struct session *s, void *arg, struct err *e)
{
	struct hold_call *c = arg;
	struct account    a;
	bool              is_there;
	enum rc           rc = load_to_end(s, c, e);

	if (rc || (rc = hold_end(s, &c->hold, HOLD_HANDED_OVER, c->by.email, c->reason, e)) ||
	    (rc = set_handed_over(s, c->hold.account, session_now(s).ms, e)) ||
	    (rc = session_find(s, &account_type, c->hold.account, &a, &is_there, e)) || !is_there ||
	    (rc = note_holds(s, &a, e)))
		return rc;
	session_put(s, &account_type, &a);
	return RC_OK;
}

enum rc hold_set_bypass(struct session *s, void *arg, struct err *e)
{
	struct hold_call    *c = arg;
	struct account_holds book;
	struct account       a;
	enum rc              rc = need_reason(c, e);

	if (rc || (rc = load_account(s, c->account, &a, e)) ||
	    (rc = session_find_or_new(s, &account_holds_type, a.id, &book, e)))
		return rc;
	book.bypass_by = utf8_line(session_arena(s), c->by.email, EMAIL_MAX);
	book.bypass_why = utf8_line(session_arena(s), c->reason, HOLD_NOTE_MAX);
	book.bypass_ms = session_now(s).ms;
	session_put(s, &account_holds_type, &book);
	c->hold = (struct hold){ .account = a.id, .note = book.bypass_why, .created_by = book.bypass_by };
	return account_emit(s, EVENT_BYPASS_SET, a.id, c->by.email, c->by.request_id,
	                    JSON_OF(session_arena(s), member_str("accountId", a.id)), e);
}
