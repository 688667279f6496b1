/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_api.c - the operators' routes of holds: why accounts are not lent yet, and what a person can do about it.
 *
 * A token says only that the caller is an operator. `by` may say who makes a change; it is stored as "admin/BY".
 *
 * Draining is many transactions: one that reads a page, then one for each hold, so that one that cannot be closed does
 * not stop the others. A call does one page and says where the next one begins. Without "apply" it only lists.
 *
 * Not here: what a hold is and when it ends (service/hold/holds.c).
 */
#include "base/json.h"
#include "base/utf8.h"
#include "domain/lease.h"
#include "http/api/ops.h"
#include "service/hold/holds.h"

enum { BY_MAX = 100 };

/* --- out --- */

PUT_OF(put_hold, struct hold, h, member_str("id", h->id), member_str("account_id", h->account),
       member_word("reason", hold_reason_names[h->reason]), member_word("mode", hold_mode_names[h->mode]),
       member_word("state", hold_state_names[h->state]), member_bool("locks", h->locks),
       member_sec("created_at", h->created_ms), member_sec("due_at", h->due_ms),
       member_str("created_by", h->created_by), member_text("note", h->note),
       member_text("schedule", h->due_ms ? hold_schedule_name(h, &r->call->arena) : STR("")),
       member_text("source_event", h->source_event), member_text("lease_uuid", h->lease_uuid),
       member_text("placement", h->placement), member_int("attempts", h->attempts),
       member_text("last_error", h->last_error), member_sec("closed_at", h->closed_ms),
       member_text("closed_by", h->closed_by), member_text("closed_why", h->closed_why))

/* --- in --- */

/* The body, an object with some of these members; yours. */
static enum rc read_body(struct request *r, const char *words, json_t **ret, struct err *e)
{
	struct str must = str_format(&r->call->arena, "a JSON object with some of: %s", words);

	return ops_read_object(r, must.p, words, ret, e);
}

static enum rc read_line(struct request *r, const json_t *body, const char *name, size_t max, struct str *ret,
                         struct err *e)
{
	struct str text;

	if (!json_get_text(body, name, &text))
		return err_set(e, RC_INVALID, "%s must be a text", name);
	if (text.n > max)
		return err_set(e, RC_INVALID, "%s has %zu bytes, at most %zu are allowed", name, text.n, max);
	*ret = utf8_line(&r->call->arena, str_trim(text), max);
	return RC_OK;
}

/* Who, and why. */
static enum rc read_words(struct request *r, const json_t *body, struct hold_call *c, struct err *e)
{
	struct str by;
	enum rc    rc = read_line(r, body, "by", BY_MAX, &by, e);

	if (rc || (rc = read_line(r, body, "reason", OPS_REASON_MAX, &c->reason, e)))
		return rc;
	c->by.email = by.n ? str_format(&r->call->arena, "admin/%.*s", STR_ARG(by)) : STR("admin");
	c->by.request_id = str_from(r->id);
	return RC_OK;
}

static enum rc read_account(struct request *r, const json_t *body, struct hold_call *c, struct err *e)
{
	if (!json_take_text(body, "account", &r->call->arena, &c->account) || !account_id_is_ok(c->account))
		return err_set(e, RC_INVALID, "account must be a text of 12 digits");
	return RC_OK;
}

/* due_at, or hours from now; 0: neither is given. */
static enum rc read_due(struct request *r, const json_t *body, int64_t *ret_ms, struct err *e)
{
	const json_t *due = json_object_get(body, "due_at"), *span = json_object_get(body, "hours");
	int64_t       sec = 0, hours = 0;
	struct str    text;

	if (span && !json_is_null(span) &&
	    (!json_get_number(body, "hours", 0, &hours) || hours < 1 || hours > HOLD_HOURS_MAX))
		return err_set(e, RC_INVALID, "hours must be a whole number from 1 to %d", HOLD_HOURS_MAX);
	if (json_is_integer(due) && json_integer_value(due) > 0 && json_integer_value(due) <= OPS_TIME_MAX_SEC)
		sec = json_integer_value(due);
	else if (due && !json_is_null(due) && (!json_get_text(body, "due_at", &text) || !iso_time_parse(text, &sec)))
		return err_set(e, RC_INVALID, "due_at must be a time such as 2026-11-15T18:03:43Z, or Unix seconds");
	if (sec && hours)
		return err_set(e, RC_INVALID, "give due_at or hours, not both");
	*ret_ms = hours ? ops_now_ms(r) + hours * HOLD_HOUR_MS : sec * 1000;
	return RC_OK;
}

/* --- the list --- */

static enum rc read_filter(struct request *r, struct listing *v, struct err *e)
{
	struct hold_list *l = v->list;
	enum rc           rc = request_query(r, "account", &l->account, e);

	if (!rc && l->account.n && !account_id_is_ok(l->account))
		rc = err_set(e, RC_INVALID, "account must be 12 digits");
	v->name = ops_list_name(r, "holds", &l->account, 1);
	return rc;
}

static const struct listing holds = { "holds",    NULL, &hold_type, put_hold, hold_list, LIST_OF(struct hold_list),
	                              read_filter };
HANDLER(hold_list, view_list(r, &holds))

/* --- one --- */

void handle_hold_show(struct request *r)
{
	struct hold_call *c = NEW_OF(r, struct hold_call);

	r->shown = &c->hold;
	if (request_is_good(r, ops_read_id(r, "hold", &c->id, &r->e)))
		view_submit(r, hold_get, c, READS, 200, put_hold);
}

PUT_OF(put_bypass, struct hold, h, member_str("account_id", h->account), member_str("by", h->created_by),
       member_str("why", h->note))

enum { HAS_ACCOUNT = 1, HAS_DUE = 2 };

/* A change to the hold in the path, or to the account in the body, which may have these members. */
static void act(struct request *r, const char *words, unsigned has, txn_fn *run, int status, put_fn *put)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct hold_call           *c = NEW_OF(r, struct hold_call);
	bool                        has_account = has & HAS_ACCOUNT, has_due = has & HAS_DUE;

	r->shown = &c->hold;
	if (request_is_good(r, (!has_account && ops_read_id(r, "hold", &c->id, &r->e)) ||
	                               read_body(r, words, &body, &r->e) ||
	                               (has_account && read_account(r, body, c, &r->e)) ||
	                               read_words(r, body, c, &r->e) ||
	                               (has_due && read_due(r, body, &c->due_ms, &r->e)) ||
	                               (has_due && !has_account && !c->due_ms &&
	                                err_set(&r->e, RC_INVALID, "due_at or hours is needed: until when?"))))
		view_submit(r, run, c, WRITES, status, put);
}

HANDLER(hold_add, act(r, "account reason due_at hours by", HAS_ACCOUNT | HAS_DUE, hold_add, 201, put_hold))
HANDLER(hold_bypass, act(r, "account reason by", HAS_ACCOUNT, hold_set_bypass, 200, put_bypass))
HANDLER(hold_extend, act(r, "due_at hours reason by", HAS_DUE, hold_extend_until, 200, put_hold))
HANDLER(hold_release, act(r, "reason by", 0, hold_release, 200, put_hold))
HANDLER(hold_cancel, act(r, "reason by", 0, hold_cancel, 200, put_hold))

/* --- is it safe to remove us? --- */

static void put_safety(struct json_out *o, struct request *r, const void *thing)
{
	const struct hold_safety *s = thing;
	const struct {
		const char *what;
		int64_t     count;
		const char *advice;
	} against[] = {
		{ "holds that end by themselves", s->timed, "wait for the last one, or drain" },
		{ "holds without an end", s->by_person, "release or cancel them" },
		{ "accounts in quarantine", s->locked, "clean them again or eject them" },
		{ "holds that are being moved", s->moving, "wait" },
		{ "operations in progress", s->sagas, "wait, or see saga list" },
		{ "subjects with undelivered events", s->waiting, "wait, or see queue list" },
		{ "dead letters", s->dead, "replay or drop them" },
	};

	JSON_PUT(o, member_bool("safe", s->is_safe), member_int("open_holds", s->open), member_int("timed", s->timed),
	         member_int("until_a_person", s->by_person), member_int("locked", s->locked),
	         member_int("moving", s->moving), member_int("sagas", s->sagas), member_int("undelivered", s->waiting),
	         member_int("dead_letters", s->dead), member_sec("next_due_at", s->next_due_ms),
	         member_sec("last_due_at", s->last_due_ms), member_list("against"));
	for (size_t i = 0; i < ARRAY_LEN(against); i++)
		if (against[i].count)
			json_add_str(o, str_format(&r->call->arena, "%s: %lld; %s", against[i].what,
			                           (long long)against[i].count, against[i].advice));
	json_close_array(o);
}

HANDLER(hold_safety, view_submit(r, hold_safety, NEW_OF(r, struct hold_safety), READS, 200, put_safety))

/* --- drain --- */

struct drain {
	struct hold_list list;
	struct hold_call terms, call;
	struct arena     one; /* what the transaction of one hold needs */
	bool             hands_over, applies;
	size_t           at; /* number of the hold in the page */
	int64_t          done, refused;
};

/* Only holds that end by themselves are released; a quarantine is never handed over. */
static bool is_for(const struct drain *d, const struct hold *h)
{
	return !h->locks && (d->hands_over || h->due_ms);
}

static bool is_left_out(const struct listing *v, const struct request *r UNUSED, const void *hold)
{
	return !is_for(v->list, hold);
}

/* Shows the holds as they were before. */
static void reply_drain(struct request *r)
{
	struct drain   *d = r->arg;
	struct listing  v = { "holds",  ops_list_name(r, "drain", NULL, 0), &hold_type, put_hold, .hides = is_left_out,
		              .list = d };
	struct json_out o = reply_begin(r);

	JSON_PUT(&o, member_word("mode", d->hands_over ? "hand-over" : "release"), member_bool("dry_run", !d->applies),
	         member_int("done", d->done), member_int("refused", d->refused));
	view_put_list(r, &o, &v, &d->list.page);
	reply_send(r, 200);
}

static void drain_next(struct request *r);

static void on_drained(struct request *r)
{
	struct drain *d = r->arg;

	if (rc_is_retryable(r->txn.rc)) { /* the store fails: what was done stays done */
		arena_fini(&d->one);
		request_fail(r, &r->txn.e);
		return;
	}
	d->done += !r->txn.rc;
	d->refused += r->txn.rc != RC_OK;
	drain_next(r);
}

static void drain_next(struct request *r)
{
	struct drain      *d = r->arg;
	const struct hold *h = NULL;

	arena_reset(&d->one);
	while (d->applies && d->at < d->list.page.count && !h) {
		const struct hold *next = page_record(&d->list.page, &hold_type, d->at++);

		h = is_for(d, next) ? next : NULL;
	}
	if (!h) {
		arena_fini(&d->one);
		reply_drain(r);
		return;
	}
	d->call = d->terms;
	d->call.id = h->id;
	request_submit_in(r, &d->one, d->hands_over ? hold_hand_over : hold_release, &d->call, false, on_drained);
}

static void on_drain_listed(struct request *r)
{
	if (!request_failed(r))
		drain_next(r);
}

static enum rc read_drain(struct request *r, struct drain *d, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct str                  mode;
	const json_t               *apply;
	enum rc                     rc = read_body(r, "mode reason apply by", &body, e);

	if (rc || (rc = read_words(r, body, &d->terms, e)))
		return rc;
	if (!json_get_text(body, "mode", &mode) || !(str_eq(mode, STR("release")) || str_eq(mode, STR("hand-over"))))
		return err_set(e, RC_INVALID, "mode must be release or hand-over");
	apply = json_object_get(body, "apply");
	if (apply && !json_is_boolean(apply))
		return err_set(e, RC_INVALID, "apply must be true or false");
	d->hands_over = str_eq(mode, STR("hand-over"));
	d->applies = json_is_true(apply);
	if (d->applies && !d->terms.reason.n)
		return err_set(e, RC_INVALID, "a reason is needed: say why, in a few words");
	return ops_read_page(r, ops_list_name(r, "drain", NULL, 0), &d->list.limit, &d->list.cursor, e);
}

void handle_hold_drain(struct request *r)
{
	struct drain *d = arena_alloc(&r->call->arena, sizeof(*d));

	r->arg = d;
	if (request_is_good(r, read_drain(r, d, &r->e)))
		request_submit(r, hold_list, &d->list, true, on_drain_listed);
}
