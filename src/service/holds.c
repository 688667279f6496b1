/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holds.c - holds of accounts, and the only way to Available.
 *
 *     cleanup succeeded -> hold_rest() -> Cooldown, with its holds -> ... each closed in its time -> the last one -> Available
 *
 * Always true:
 *   1. An account becomes Available only in free_native(), after its book was read without an open hold in the same transaction; never
 *      while it is handed over to another system.
 *   2. A hold with a due time has a timer: both are written in one commit.                          [hold_open(), extend()]
 *   3. A hold closes by its own id, at its own time: an old timer closes nothing else.              [on_due()]
 *   4. A cleanup that is not followed by a rest leaves a closed hold that says why.                 [hold_rest()]
 *
 * What fails closes nothing: an account whose release went wrong rests on, the timer's delivery is tried again, and who is overdue is
 * found by the reconciler.
 *
 * Not here: how long a hold is (domain/hold.c), moving an account (account_follow.c; guard.c for those of others).
 */
#include "service/holds.h"

#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "domain/lease.h"
#include "kernel/defect.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "service/account_clean.h"
#include "service/account_follow.h"
#include "service/guard.h"
#include "service/lease_flow.h"
#include "service/lease_records.h"
#include "service/statement.h"

enum { DETAIL_TEXT_MAX = 32768, TRIES = 10 };

#define ACTOR "holds"

/* --- events --- */

static void put_time(struct json_out *o, const char *name, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	if (ms)
		json_put_str(o, name, iso_time(ms / 1000, text));
}

static void put_text(struct json_out *o, const char *name, struct str text)
{
	if (text.n)
		json_put_str(o, name, text);
}

static struct str detail_of(struct session *s, const struct hold *h)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, DETAIL_TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "holdId", h->id);
	json_put_str(&o, "accountId", h->account);
	json_put_str(&o, "reason", str_from(hold_reason_names[h->reason]));
	json_put_str(&o, "mode", str_from(hold_mode_names[h->mode]));
	json_put_str(&o, "state", str_from(hold_state_names[h->state]));
	put_time(&o, "created", h->created_ms);
	put_time(&o, "due", h->due_ms);
	put_text(&o, "note", h->note);
	put_text(&o, "leaseUuid", h->lease_uuid);
	put_text(&o, "closedBy", h->closed_by);
	put_text(&o, "why", h->closed_why);
	json_close_object(&o);
	text = str_dup(session_arena(s), buf_str(&b));
	buf_fini(&b);
	return text;
}

static enum rc tell(struct session *s, const char *type, const struct hold *h, struct str actor, struct str request_id,
                    struct err *e)
{
	struct event event = { .type = str_from(type),
		               .subject = account_subject(s, h->account),
		               .actor = utf8_line(session_arena(s), actor, ACTOR_MAX),
		               .request_id = request_id,
		               .detail = detail_of(s, h) };

	return session_emit(s, &event, e);
}

/* --- the book --- */

/* *ret is empty when the account never had a hold. */
static enum rc read_book(struct session *s, struct str account, struct hold_book *ret, struct err *e)
{
	enum rc rc = session_get(s, &hold_book_type, account, ret, NULL);

	if (rc == RC_NOT_FOUND)
		*ret = (struct hold_book){ .account = account };
	else if (rc)
		return err_set(e, rc, "the book of holds of account %.*s cannot be read", STR_ARG(account));
	return RC_OK;
}

static size_t count_ids(struct str list)
{
	size_t count = 0;

	while (list.n) {
		(void)str_cut(&list, ' ');
		count++;
	}
	return count;
}

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
	struct hold_book book;
	enum rc          rc = read_book(s, account, &book, e);

	ret->count = 0;
	while (!rc && book.open.n) {
		struct str id = str_cut(&book.open, ' ');

		assert(ret->count < HOLDS_OPEN_MAX);
		rc = session_get(s, &hold_type, id, &ret->items[ret->count++], NULL);
		if (rc)
			return err_set(e, rc == RC_NOT_FOUND ? RC_CORRUPT : rc, "hold %.*s cannot be read",
			               STR_ARG(id));
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

static enum rc arm(struct session *s, const struct hold *h, struct err *e)
{
	struct timer timer = { .name = hold_schedule_name(h, session_arena(s)),
		               .due_ms = h->due_ms,
		               .type = STR(EVENT_HOLD_DUE),
		               .subject = account_subject(s, h->account),
		               .detail = str_format(session_arena(s), "{\"holdId\":\"%.*s\"}", STR_ARG(h->id)) };

	return session_arm(s, &timer, e);
}

enum rc hold_rearm(struct session *s, const struct hold *h, struct err *e)
{
	assert(h->state == HOLD_OPEN && h->due_ms);
	return arm(s, h, e);
}

/* Into the book as open, or, when it is closed already, only as a record. */
static enum rc note(struct session *s, struct hold_book *book, struct hold *h, struct err *e)
{
	if (h->state == HOLD_OPEN && count_ids(book->open) >= HOLDS_OPEN_MAX)
		return err_set(e, RC_CONFLICT, "account %.*s has %d open holds; close one first", STR_ARG(h->account),
		               HOLDS_OPEN_MAX);
	h->id = hold_make_id(h->account, session_now(s), &book->last_ms, session_arena(s));
	h->created_ms = book->last_ms;
	if (h->state == HOLD_OPEN) {
		h->is_open = 1;
		book->open = with_id(s, book->open, h->id);
	} else {
		h->closed_ms = session_now(s).ms;
	}
	session_add(s, &hold_type, h);
	session_put(s, &hold_book_type, book);
	return RC_OK;
}

enum rc hold_open(struct session *s, struct hold *h, struct err *e)
{
	struct hold_book book;
	enum rc          rc = read_book(s, h->account, &book, e);

	if (rc)
		return rc;
	h->state = HOLD_OPEN;
	h->created_by = utf8_line(session_arena(s), h->created_by, EMAIL_MAX);
	h->note = utf8_line(session_arena(s), h->note, HOLD_NOTE_MAX);
	if ((rc = note(s, &book, h, e)))
		return rc;
	if (h->due_ms && (rc = arm(s, h, e)))
		return rc;
	return tell(s, EVENT_HOLD_CREATED, h, h->created_by, STR(""), e);
}

enum rc hold_record(struct session *s, struct hold *h, enum hold_state how, struct err *e)
{
	struct arena    *a = session_arena(s);
	struct hold_book book;
	enum rc          rc = read_book(s, h->account, &book, e);

	if (rc)
		return rc;
	assert(how != HOLD_OPEN);
	h->state = how;
	h->created_by = utf8_line(a, h->created_by, EMAIL_MAX);
	h->note = utf8_line(a, h->note, HOLD_NOTE_MAX);
	h->closed_by = utf8_line(a, h->closed_by, EMAIL_MAX);
	h->closed_why = utf8_line(a, h->closed_why, HOLD_NOTE_MAX);
	if ((rc = note(s, &book, h, e)))
		return rc;
	return tell(s, EVENT_HOLD_CLOSED, h, h->closed_by, STR(""), e);
}

/* There is no rest, and this says why. */
static enum rc record_exemption(struct session *s, struct hold *h, enum hold_state how, struct err *e)
{
	struct hold_book book;
	enum rc          rc = read_book(s, h->account, &book, e);

	if (rc)
		return rc;
	h->state = how;
	h->closed_by = h->created_by;
	h->closed_why = h->note;
	if (how == HOLD_BYPASSED) {
		h->closed_by = book.bypass_by;
		h->closed_why = h->note = book.bypass_why;
		book.bypass_by = book.bypass_why = STR("");
		book.bypass_ms = 0;
	}
	if ((rc = note(s, &book, h, e)))
		return rc;
	return tell(s, EVENT_HOLD_CLOSED, h, h->closed_by, STR(""), e);
}

/* --- free --- */

static enum rc load_account(struct session *s, struct str id, struct account *ret, struct err *e)
{
	enum rc rc = session_get(s, &account_type, id, ret, NULL);

	if (rc == RC_NOT_FOUND)
		return err_set(e, rc, "there is no account %.*s in the pool", STR_ARG(id));
	return rc ? err_set(e, rc, "account %.*s cannot be read", STR_ARG(id)) : RC_OK;
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
	a->rest_until_ms = until_ms == INT64_MAX ? 0 : until_ms;
	a->open_holds = (int64_t)open.count;
	return RC_OK;
}

enum rc hold_is_handed_over(struct session *s, struct str account, bool *ret, struct err *e)
{
	struct hold_book book;
	enum rc          rc = read_book(s, account, &book, e);

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
	if (a->status != ACCOUNT_COOLDOWN || a->open_holds > 0 || is_handed_over)
		return account_save(s, a, actor, e);
	if ((rc = account_apply(a, ACCOUNT_ON_RELEASE, session_now(s), e)))
		return rc;
	if ((rc = statement_finalise(s, a->id, a->cleaned_ms, e))) /* what the last lease cost is known by now */
		return rc;
	return account_save(s, a, actor, e);
}

enum rc hold_free_account(struct session *s, struct str account, struct str actor, struct err *e)
{
	struct account a;
	enum rc        rc = session_get(s, &account_type, account, &a, NULL);

	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return err_set(e, rc, "account %.*s cannot be read", STR_ARG(account));
	return free_native(s, &a, actor, e);
}

/* --- closing --- */

static enum rc take_from_book(struct session *s, const struct hold *h, struct err *e)
{
	struct hold_book book;
	enum rc          rc = read_book(s, h->account, &book, e);

	if (rc)
		return rc;
	book.open = without_id(s, book.open, h->id);
	session_put(s, &hold_book_type, &book);
	return RC_OK;
}

enum rc hold_end(struct session *s, struct hold *h, enum hold_state how, struct str by, struct str why, struct err *e)
{
	enum rc rc = hold_close(h, how, utf8_line(session_arena(s), by, EMAIL_MAX),
	                        utf8_line(session_arena(s), why, HOLD_NOTE_MAX), session_now(s), e);

	if (rc || (rc = take_from_book(s, h, e)))
		return rc;
	session_put(s, &hold_type, h);
	if (h->due_ms && (rc = session_disarm(s, hold_schedule_name(h, session_arena(s)), e)))
		return rc;
	return tell(s, EVENT_HOLD_CLOSED, h, by, STR(""), e);
}

static enum rc end_and_free(struct session *s, struct hold *h, enum hold_state how, struct str by, struct str why,
                            struct err *e)
{
	enum rc rc;

	if (h->mode == HOLD_GUARD)
		return guard_end_hold(s, h, how, by, why, e);
	if ((rc = hold_end(s, h, how, by, why, e)))
		return rc;
	return hold_free_account(s, h->account, by, e);
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
		rc = hold_open(s, &h, e);
		++*ret_count;
	}
	return rc;
}

/* The holds that follow from the rules, or the record of why there is none. */
static enum rc hold_by_rules(struct session *s, const struct hold_rules *rules, const struct account *a,
                             struct str actor, struct err *e)
{
	struct hold h = { .account = a->id, .reason = HOLD_BILLING, .created_by = actor, .lease_uuid = a->last_lease };
	struct hold_book book;
	size_t           count;
	enum rc          rc = read_book(s, a->id, &book, e);

	if (rc)
		return rc;
	if (book.bypass_by.n)
		return record_exemption(s, &h, HOLD_BYPASSED, e);
	if (rules->ejects && a->last_lease.n) {
		h.note = STR("accounts of this pool are not lent twice");
		return record_exemption(s, &h, HOLD_EJECTED, e);
	}
	/* Whoever has no book was never lent: a lease ends with a rest. */
	if (rules->exempts_new && !book.last_ms && str_eq(a->clean_reason, STR(CLEAN_FOR_REGISTRATION))) {
		h.reason = HOLD_NEW_ACCOUNT;
		h.note = STR("a new account has no costs to wait for");
		return record_exemption(s, &h, HOLD_EXEMPT, e);
	}
	h.note = STR("after its cleanup");
	if ((rc = open_by_rules(s, rules, &h, a->name, &count, e)) || count > 0)
		return rc;
	h.note = STR("no rest is configured");
	return record_exemption(s, &h, HOLD_EXEMPT, e);
}

static enum rc set_handed_over(struct session *s, struct str account, int64_t at_ms, struct err *e)
{
	struct hold_book book;
	enum rc          rc = read_book(s, account, &book, e);

	if (rc || book.handed_ms == at_ms)
		return rc;
	book.handed_ms = at_ms;
	session_put(s, &hold_book_type, &book);
	return RC_OK;
}

enum rc hold_rest(struct session *s, const struct hold_rules *rules, struct account *a, struct str actor, struct err *e)
{
	enum rc rc = account_apply(a, ACCOUNT_ON_CLEANED, session_now(s), e);

	if (rc || (rc = set_handed_over(s, a->id, 0, e)) ||
	    (!HAS_DEFECT(NO_REST) && (rc = hold_by_rules(s, rules, a, actor, e))))
		return rc;
	if (!rules->ejects || !a->last_lease.n)
		return free_native(s, a, actor, e);
	if ((rc = hold_close_all(s, a->id, HOLD_EJECTED, actor, STR("the account leaves the pool"), e)))
		return rc;
	if ((rc = account_apply(a, ACCOUNT_ON_EJECT, session_now(s), e)))
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
			rc = hold_end(s, &open.items[i], HOLD_CANCELLED, actor, STR("locked away again"), e);
	return rc ? rc : hold_open(s, &h, e);
}

/* --- due --- */

static enum rc load(struct session *s, struct str id, struct hold *ret, struct err *e)
{
	enum rc rc = session_get(s, &hold_type, id, ret, NULL);

	if (rc == RC_NOT_FOUND)
		return err_set(e, rc, "there is no hold %.*s", STR_ARG(id));
	return rc ? err_set(e, rc, "hold %.*s cannot be read", STR_ARG(id)) : RC_OK;
}

/* The event of a timer: of exactly this hold, and not before its time, whatever the account's status says. */
static enum rc on_due(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct str                  id;
	struct hold                 h;
	enum rc                     rc;

	(void)arg;
	if (json_parse(d->event.detail, &o, e) || !json_get_text(o, "holdId", &id) || !id.n)
		return err_set(e, RC_CORRUPT, "the detail of a " EVENT_HOLD_DUE " names no hold");
	rc = session_get(s, &hold_type, id, &h, NULL);
	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return err_set(e, rc, "hold %.*s cannot be read", STR_ARG(id));
	if (h.state != HOLD_OPEN || !h.due_ms)
		return RC_OK;
	if (!hold_is_due(&h, session_now(s)))
		return arm(s, &h, e);
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
	struct query      q = { .type = &hold_type,
		                .index = HOLD_OPEN_ONES,
		                .hash = value_int(1),
		                .limit = l->limit,
		                .cursor = l->cursor };

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

	return load(s, c->id, &c->hold, e);
}

static enum rc need_reason(const struct hold_call *c, struct err *e)
{
	return str_trim(c->reason).n ? RC_OK : err_set(e, RC_INVALID, "a reason is needed: say why, in a few words");
}

/* Room is left for the holds that come by themselves: a person's must not keep an account from being cleaned or locked away. */
static enum rc need_room(struct session *s, struct str account, struct err *e)
{
	struct holds open;
	size_t       count = 0;
	enum rc      rc = hold_list_open(s, account, &open, e);

	for (size_t i = 0; !rc && i < open.count; i++)
		count += open.items[i].reason == HOLD_MANUAL && !open.items[i].locks;
	if (rc || count < HOLDS_BY_PERSONS_MAX)
		return rc;
	return err_set(e, RC_CONFLICT, "account %.*s has %d holds of persons; close one of them first",
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
		return err_set(e, RC_INVALID, "a hold lasts until a time to come");
	c->hold = (struct hold){ .account = a.id,
		                 .reason = HOLD_MANUAL,
		                 .due_ms = c->due_ms,
		                 .created_by = c->by.email,
		                 .note = c->reason };
	if ((rc = hold_open(s, &c->hold, e)))
		return rc;
	if (a.status == ACCOUNT_AVAILABLE && (rc = account_apply(&a, ACCOUNT_ON_HOLD, session_now(s), e)))
		return rc;
	return free_native(s, &a, c->by.email, e);
}

enum rc hold_extend_until(struct session *s, void *arg, struct err *e)
{
	struct hold_call *c = arg;
	struct hold       told;
	enum rc           rc = load(s, c->id, &c->hold, e);

	if (rc || (c->due_ms < c->hold.due_ms && (rc = need_reason(c, e))) ||
	    (rc = hold_extend(&c->hold, c->due_ms, session_now(s), e)))
		return rc;
	session_put(s, &hold_type, &c->hold);
	told = c->hold;
	told.closed_why = utf8_line(session_arena(s), c->reason, HOLD_NOTE_MAX); /* in the event alone: it is open */
	if ((rc = arm(s, &c->hold, e)) || (rc = tell(s, EVENT_HOLD_EXTENDED, &told, c->by.email, c->by.request_id, e)))
		return rc;
	return c->hold.mode == HOLD_GUARD ? RC_OK : hold_free_account(s, c->hold.account, c->by.email, e);
}

/* With a reason, and none that only a cleanup or an ejection ends. */
static enum rc load_to_end(struct session *s, struct hold_call *c, struct err *e)
{
	enum rc rc = need_reason(c, e);

	if (rc || (rc = load(s, c->id, &c->hold, e)))
		return rc;
	if (c->hold.state == HOLD_OPEN && c->hold.locks)
		return err_set(
		        e, RC_CONFLICT,
		        "account %.*s is locked away (%s): retry its cleanup or eject it; the hold ends with that",
		        STR_ARG(c->hold.account), hold_reason_names[c->hold.reason]);
	return RC_OK;
}

static enum rc end_by_person(struct session *s, struct hold_call *c, enum hold_state how, struct err *e)
{
	enum rc rc = load_to_end(s, c, e);

	return rc ? rc : end_and_free(s, &c->hold, how, c->by.email, c->reason, e);
}

enum rc hold_release(struct session *s, void *arg, struct err *e)
{
	return end_by_person(s, arg, HOLD_RELEASED_EARLY, e);
}

enum rc hold_cancel(struct session *s, void *arg, struct err *e)
{
	return end_by_person(s, arg, HOLD_CANCELLED, e);
}

enum rc hold_hand_over(struct session *s, void *arg, struct err *e)
{
	struct hold_call *c = arg;
	struct account    a;
	enum rc           rc = load_to_end(s, c, e);

	if (rc || (rc = hold_end(s, &c->hold, HOLD_HANDED_OVER, c->by.email, c->reason, e)) ||
	    (rc = set_handed_over(s, c->hold.account, session_now(s).ms, e)))
		return rc;
	rc = session_get(s, &account_type, c->hold.account, &a, NULL);
	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc || (rc = note_holds(s, &a, e)))
		return rc;
	session_put(s, &account_type, &a);
	return RC_OK;
}

enum rc hold_set_bypass(struct session *s, void *arg, struct err *e)
{
	struct hold_call *c = arg;
	struct hold_book  book;
	struct event      event = { .type = STR(EVENT_BYPASS_SET), .subject = account_subject(s, c->account) };
	struct account    a;
	enum rc           rc = need_reason(c, e);

	if (rc || (rc = load_account(s, c->account, &a, e)) || (rc = read_book(s, a.id, &book, e)))
		return rc;
	book.bypass_by = utf8_line(session_arena(s), c->by.email, EMAIL_MAX);
	book.bypass_why = utf8_line(session_arena(s), c->reason, HOLD_NOTE_MAX);
	book.bypass_ms = session_now(s).ms;
	session_put(s, &hold_book_type, &book);
	c->hold = (struct hold){ .account = a.id, .note = book.bypass_why, .created_by = book.bypass_by };
	event.actor = utf8_line(session_arena(s), c->by.email, ACTOR_MAX);
	event.request_id = c->by.request_id;
	event.detail = str_format(session_arena(s), "{\"accountId\":\"%.*s\"}", STR_ARG(a.id));
	return session_emit(s, &event, e);
}
