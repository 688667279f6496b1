/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_api.c - the operators' routes of holds: why accounts are not lent yet, and what a person may do about it.
 *
 * A token says only that somebody is an operator. Whoever changes something may say in `by` who he is; it is kept behind "admin/".
 *
 * Draining is many transactions: one that reads a page, then one for each hold, so that one that cannot be closed does not keep the
 * others. A call does one page and says where the next one begins. Without "apply" it only lists.
 *
 * Not here: what a hold is and when it ends (service/holds.c).
 */
#include "base/json.h"
#include "base/utf8.h"
#include "http/ops.h"
#include "service/hold_safety.h"
#include "service/holds.h"
#include "service/leases.h"

enum { BY_MAX = 100 };
static const int64_t time_max_sec = INT64_C(253402300799); /* the end of the year 9999 */

/* --- out --- */

static void put_hold(struct request *r, struct json_out *o, const struct hold *h)
{
	json_put_str(o, "id", h->id);
	json_put_str(o, "account_id", h->account);
	json_put_str(o, "reason", str_from(hold_reason_names[h->reason]));
	json_put_str(o, "mode", str_from(hold_mode_names[h->mode]));
	json_put_str(o, "state", str_from(hold_state_names[h->state]));
	json_put_bool(o, "locks", h->locks);
	ops_put_time(o, "created_at", h->created_ms);
	ops_put_time(o, "due_at", h->due_ms);
	json_put_str(o, "created_by", h->created_by);
	ops_put_text(o, "note", h->note);
	ops_put_text(o, "schedule", h->due_ms ? hold_schedule_name(h, &r->call->arena) : STR(""));
	ops_put_text(o, "source_event", h->source_event);
	ops_put_text(o, "lease_uuid", h->lease_uuid);
	ops_put_text(o, "placement", h->placement);
	json_put_int(o, "attempts", h->attempts);
	ops_put_text(o, "last_error", h->last_error);
	ops_put_time(o, "closed_at", h->closed_ms);
	ops_put_text(o, "closed_by", h->closed_by);
	ops_put_text(o, "closed_why", h->closed_why);
}

static void reply_hold(struct request *r, int status)
{
	const struct hold_call *c = r->arg;
	struct json_out         o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	put_hold(r, &o, &c->hold);
	reply_send(r, status);
}

static void on_hold(struct request *r)
{
	reply_hold(r, 200);
}

static void on_added(struct request *r)
{
	reply_hold(r, 201);
}

/* --- in --- */

static enum rc check_members(json_t *body, const char *words, struct err *e)
{
	const char *name;
	json_t     *value;

	json_object_foreach(body, name, value)
	{
		struct str rest = str_from(words);
		bool       is_known = false;

		while (rest.n)
			is_known = str_eq(str_cut(&rest, ' '), str_from(name)) || is_known;
		if (!is_known)
			return err_set(e, RC_INVALID, "there is no member '%.40s' here; known are: %s", name, words);
	}
	return RC_OK;
}

/* The body, an object with some of these members; yours. */
static enum rc read_body(struct request *r, const char *words, json_t **ret, struct err *e)
{
	enum rc rc = r->call->req.body.n ? json_parse(r->call->req.body, ret, e) : RC_OK;

	if (rc)
		return err_wrap(e, rc, "body");
	if (!json_is_object(*ret))
		return err_set(e, RC_INVALID, "the body must be a JSON object with some of: %s", words);
	return check_members(*ret, words, e);
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
	struct str account;

	if (!json_get_text(body, "account", &account) || !account_id_is_ok(account))
		return err_set(e, RC_INVALID, "account must be a text of 12 digits");
	c->account = str_dup(&r->call->arena, account);
	return RC_OK;
}

/* due_at, or hours from now on; 0: neither was given. */
static enum rc read_due(struct request *r, const json_t *body, int64_t *ret_ms, struct err *e)
{
	const json_t *due = json_object_get(body, "due_at");
	int64_t       sec = 0, hours = 0;
	struct str    text;

	if (!json_get_number(body, "hours", 0, &hours) || hours < 0 || hours > HOLD_HOURS_MAX)
		return err_set(e, RC_INVALID, "hours must be a whole number from 1 to %d", HOLD_HOURS_MAX);
	if (json_is_integer(due) && json_integer_value(due) > 0 && json_integer_value(due) <= time_max_sec)
		sec = json_integer_value(due);
	else if (due && !json_is_null(due) && (!json_get_text(body, "due_at", &text) || !iso_time_parse(text, &sec)))
		return err_set(e, RC_INVALID, "due_at must be a time such as 2026-11-15T18:03:43Z, or Unix seconds");
	if (sec && hours)
		return err_set(e, RC_INVALID, "give due_at or hours, not both");
	*ret_ms = hours ? ops_now_ms(r) + hours * HOLD_HOUR_MS : sec * 1000;
	return RC_OK;
}

static struct hold_call *call_new(struct request *r)
{
	struct hold_call *c = arena_alloc(&r->call->arena, sizeof(*c));

	r->arg = c;
	return c;
}

/* --- the list --- */

static const char *list_name(struct request *r, const struct hold_list *l)
{
	return ops_list_name(r, "holds", &l->account, 1);
}

static void on_listed(struct request *r)
{
	struct hold_list *l = r->arg;
	struct json_out   o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "holds");
	for (size_t i = 0; i < l->page.count; i++) {
		json_open_object(&o);
		put_hold(r, &o, page_record(&l->page, &hold_type, i));
		json_close_object(&o);
	}
	ops_send_list(r, &o, list_name(r, l), l->page.count, l->page.next);
}

void handle_hold_list(struct request *r)
{
	struct hold_list *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct err        e = { 0 };
	enum rc           rc = request_query(r, "account", &l->account, &e);

	r->arg = l;
	if (!rc && l->account.n && !account_id_is_ok(l->account))
		rc = err_set(&e, RC_INVALID, "account must be 12 digits");
	if (rc || ops_read_page(r, list_name(r, l), &l->limit, &l->cursor, &e))
		request_fail(r, &e);
	else
		request_submit(r, hold_list, l, true, on_listed);
}

/* --- one --- */

void handle_hold_show(struct request *r)
{
	struct hold_call *c = call_new(r);
	struct err        e = { 0 };

	if (ops_read_id(r, "hold", &c->id, &e))
		request_fail(r, &e);
	else
		request_submit(r, hold_get, c, true, on_hold);
}

void handle_hold_add(struct request *r)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct hold_call           *c = call_new(r);
	struct err                  e = { 0 };

	if (read_body(r, "account reason due_at hours by", &body, &e) || read_account(r, body, c, &e) ||
	    read_words(r, body, c, &e) || read_due(r, body, &c->due_ms, &e))
		request_fail(r, &e);
	else
		request_submit(r, hold_add, c, false, on_added);
}

static void on_bypass_set(struct request *r)
{
	const struct hold_call *c = r->arg;
	struct json_out         o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_str(&o, "account_id", c->hold.account);
	json_put_str(&o, "by", c->hold.created_by);
	json_put_str(&o, "why", c->hold.note);
	reply_send(r, 200);
}

void handle_hold_bypass(struct request *r)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct hold_call           *c = call_new(r);
	struct err                  e = { 0 };

	if (read_body(r, "account reason by", &body, &e) || read_account(r, body, c, &e) || read_words(r, body, c, &e))
		request_fail(r, &e);
	else
		request_submit(r, hold_set_bypass, c, false, on_bypass_set);
}

void handle_hold_extend(struct request *r)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct hold_call           *c = call_new(r);
	struct err                  e = { 0 };

	if (ops_read_id(r, "hold", &c->id, &e) || read_body(r, "due_at hours reason by", &body, &e) ||
	    read_words(r, body, c, &e) || read_due(r, body, &c->due_ms, &e) ||
	    (!c->due_ms && err_set(&e, RC_INVALID, "due_at or hours is needed: until when?")))
		request_fail(r, &e);
	else
		request_submit(r, hold_extend_until, c, false, on_hold);
}

static void end_hold(struct request *r, txn_fn *run)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct hold_call           *c = call_new(r);
	struct err                  e = { 0 };

	if (ops_read_id(r, "hold", &c->id, &e) || read_body(r, "reason by", &body, &e) || read_words(r, body, c, &e))
		request_fail(r, &e);
	else
		request_submit(r, run, c, false, on_hold);
}

void handle_hold_release(struct request *r)
{
	end_hold(r, hold_release);
}

void handle_hold_cancel(struct request *r)
{
	end_hold(r, hold_cancel);
}

/* --- is it safe to remove us? --- */

static void add_reason(struct request *r, struct json_out *o, const char *what, int64_t count, const char *advice)
{
	if (count)
		json_add_str(o, str_format(&r->call->arena, "%s: %lld; %s", what, (long long)count, advice));
}

static void put_reasons(struct request *r, struct json_out *o, const struct hold_safety *safety)
{
	json_put_array(o, "against");
	add_reason(r, o, "holds that end by themselves", safety->timed, "wait for the last one, or drain");
	add_reason(r, o, "holds until a person closes them", safety->by_person, "release or cancel them");
	add_reason(r, o, "accounts that are locked away", safety->locked, "clean them again or eject them");
	add_reason(r, o, "holds that are being moved", safety->moving, "wait");
	add_reason(r, o, "long operations", safety->sagas, "wait, or see saga list");
	add_reason(r, o, "subjects with events that are not handled", safety->waiting, "wait, or see queue list");
	add_reason(r, o, "dead letters", safety->dead, "replay or drop them");
	json_close_array(o);
}

static void on_safety(struct request *r)
{
	const struct hold_safety *safety = r->arg;
	struct json_out           o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_bool(&o, "safe", safety->is_safe);
	json_put_int(&o, "open_holds", safety->open);
	json_put_int(&o, "timed", safety->timed);
	json_put_int(&o, "until_a_person", safety->by_person);
	json_put_int(&o, "locked", safety->locked);
	json_put_int(&o, "moving", safety->moving);
	json_put_int(&o, "sagas", safety->sagas);
	json_put_int(&o, "undelivered", safety->waiting);
	json_put_int(&o, "dead_letters", safety->dead);
	ops_put_time(&o, "next_due_at", safety->next_due_ms);
	ops_put_time(&o, "last_due_at", safety->last_due_ms);
	put_reasons(r, &o, safety);
	reply_send(r, 200);
}

void handle_hold_safety(struct request *r)
{
	r->arg = arena_alloc(&r->call->arena, sizeof(struct hold_safety));
	request_submit(r, hold_safety, r->arg, true, on_safety);
}

/* --- drain --- */

struct drain {
	struct hold_list list;
	struct hold_call terms, call;
	struct arena     one; /* what the transaction of one hold needs */
	bool             hands_over, applies;
	size_t           at; /* number of the hold in the page */
	int64_t          done, refused;
};

static const char *drain_name(struct request *r)
{
	return ops_list_name(r, "drain", NULL, 0);
}

/* A release is for those that end by themselves; what locks an account away is never another system's. */
static bool is_for(const struct drain *d, const struct hold *h)
{
	return !h->locks && (d->hands_over || h->due_ms);
}

static void reply_drain(struct request *r)
{
	struct drain   *d = r->arg;
	struct json_out o = reply_begin(r);
	size_t          count = 0;

	json_put_str(&o, "mode", d->hands_over ? STR("hand-over") : STR("release"));
	json_put_bool(&o, "dry_run", !d->applies);
	json_put_int(&o, "done", d->done);
	json_put_int(&o, "refused", d->refused);
	json_put_array(&o, "holds");
	for (size_t i = 0; i < d->list.page.count; i++) {
		const struct hold *h = page_record(&d->list.page, &hold_type, i);

		if (!is_for(d, h))
			continue;
		count++;
		json_open_object(&o);
		put_hold(r, &o, h); /* as it was */
		json_close_object(&o);
	}
	ops_send_list(r, &o, drain_name(r), count, d->list.page.next);
}

static void drain_next(struct request *r);

static void on_drained(struct request *r)
{
	struct drain *d = r->arg;

	if (rc_is_retryable(r->txn.rc)) { /* the store is unwell: what was done stays done */
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
	if (!ops_failed(r))
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
	return ops_read_page(r, drain_name(r), &d->list.limit, &d->list.cursor, e);
}

void handle_hold_drain(struct request *r)
{
	struct drain *d = arena_alloc(&r->call->arena, sizeof(*d));
	struct err    e = { 0 };

	r->arg = d;
	if (read_drain(r, d, &e))
		request_fail(r, &e);
	else
		request_submit(r, hold_list, &d->list, true, on_drain_listed);
}
