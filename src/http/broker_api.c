/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_api.c - the routes of the pool: what comes in is checked here, decided in service/broker.c, written as JSON here.
 *
 * Each handler has two halves: read the request and submit a transaction; when that is over, answer. See docs/broker.md.
 */
#include "base/metrics.h"
#include "http/api.h"
#include "http/line.h"
#include "http/ops.h"
#include "http/urlform.h"
#include "service/broker.h"
#include "service/records.h"

enum { LIST_LIMIT_DEFAULT = 50, LIST_LIMIT_MAX = 100, FIND_MAX = 128 };

/* --- replies --- */

static void put_expiry(struct json_out *o, const struct sandbox *s)
{
	if (s->allocated_at)
		json_put_int(o, "expires_at", sandbox_expires_at(s));
	else
		json_put_null(o, "expires_at");
}

static void put_sandbox(struct json_out *o, const struct sandbox *s)
{
	static const int first[] = { SANDBOX_F_ID,     SANDBOX_F_NAME,         SANDBOX_F_EXTERNAL_ID,
		                     SANDBOX_F_STATUS, SANDBOX_F_ALLOCATED_AT, NO_FIELD };
	static const int rest[] = { SANDBOX_F_TRACK, SANDBOX_F_TRACK_NAME, SANDBOX_F_SFDC, NO_FIELD };

	record_write_json(&sandbox_type, s, first, o);
	put_expiry(o, s);
	record_write_json(&sandbox_type, s, rest, o);
}

/* What an operator's list tells on top. */
static void put_listed(struct json_out *o, const struct sandbox *s)
{
	static const int more[] = { SANDBOX_F_QUARANTINE_REASON, NO_FIELD };

	put_sandbox(o, s);
	record_write_json(&sandbox_type, s, more, o);
}

static void reply_record(struct request *r)
{
	struct sandbox_call *c = r->arg;
	struct json_out      o;

	if (r->txn.rc) {
		request_fail(r, &r->txn.e);
		return;
	}
	o = reply_begin(r);
	record_write_json(&sandbox_type, &c->sandbox, NULL, &o);
	put_expiry(&o, &c->sandbox);
	json_put_int(&o, "version", (int64_t)c->sandbox.version);
	reply_send(r, 200);
}

/* --- claim --- */

struct claim_call {
	struct claim claim;
	int64_t      wait_sec;   /* -1: does not wait */
	int64_t      started_ns; /* of its first try */
};

/* An optional label in a header. RC_INVALID when it is there and makes no sense. */
static enum rc read_label(struct request *r, const char *name, struct str *ret, struct err *e)
{
	size_t times;

	*ret = str_trim(http_header(&r->call->req, str_from(name), &times));
	if (times > 1 || (times == 1 && !sandbox_is_label(*ret)))
		return err_set(e, RC_INVALID, "%s must be 1 to %d visible ASCII characters (and sent once)", name,
		               SANDBOX_OWNER_MAX);
	return RC_OK;
}

static enum rc read_claim(struct request *r, struct claim_call *c, struct err *e)
{
	const struct api_options *o = api_options(r->api);
	bool                      is_async;
	enum rc                   rc;

	c->claim.ask.owner = r->owner;
	c->claim.ask.lab_hours = o->lab_hours;
	c->claim.request_id = str_of(r->id, ID_UUID_SIZE - 1);
	if ((rc = read_label(r, "Idempotency-Key", &c->claim.ask.idempotency_key, e)) ||
	    (rc = read_label(r, "X-Instruqt-Track-ID", &c->claim.ask.track_name, e)) ||
	    (rc = read_label(r, "X-Sandbox-Name-Prefix", &c->claim.prefix, e)))
		return rc;
	request_prefer(r, &c->wait_sec, &is_async);
	if (c->wait_sec > o->wait_max_sec)
		c->wait_sec = o->wait_max_sec;
	return RC_OK;
}

static void count_claim(struct request *r, const struct claim_call *c, const char *outcome)
{
	struct metrics *m = api_options(r->api)->metrics;
	double          seconds = (double)(mono_ns() - c->started_ns) / 1e9;

	metrics_add(m, METRIC_ALLOCATE, outcome, 1);
	metrics_observe(m, METRIC_ALLOCATION_LATENCY, outcome, seconds);
	api_note_claim(r->api, !r->txn.rc, seconds);
}

static void reply_claim(struct request *r, const struct claim_call *c)
{
	const struct sandbox *s = &c->claim.sandbox;
	struct json_out       o = reply_begin(r);

	json_put_str(&o, "sandbox_id", s->sandbox_id);
	json_put_str(&o, "name", s->name);
	json_put_str(&o, "external_id", s->external_id);
	json_put_int(&o, "allocated_at", s->allocated_at);
	json_put_int(&o, "expires_at", sandbox_expires_at(s));
	if (s->sfdc_account_id.n)
		json_put_str(&o, "sfdc_account_id", s->sfdc_account_id);
	else
		json_put_null(&o, "sfdc_account_id");
	r->sandbox_id = s->sandbox_id;
	reply_send(r, c->claim.is_new ? 201 : 200);
}

static struct claim_call *claim_call_of(struct request *r)
{
	return CONTAINER_OF(r->txn.arg, struct claim_call, claim);
}

/* From the line: the header was added when it joined. */
static void on_served(struct request *r)
{
	struct claim_call *c = claim_call_of(r);

	count_claim(r, c, c->claim.is_new ? "success" : "idempotent");
	if (!c->claim.is_new)
		metrics_add(api_options(r->api)->metrics, METRIC_ALLOCATE_IDEMPOTENT, "", 1);
	reply_claim(r, c);
}

static void on_claimed(struct request *r)
{
	struct claim_call *c = claim_call_of(r);

	if (c->wait_sec >= 0)
		request_header(r, "Preference-Applied", "wait=%lld", (long long)c->wait_sec);
	on_served(r);
}

static void on_first_try(struct request *r)
{
	struct claim_call *c = claim_call_of(r);

	if (!r->txn.rc) {
		on_claimed(r);
		return;
	}
	count_claim(r, c, r->txn.rc == RC_EXHAUSTED ? "no_sandboxes" : "error");
	if (c->wait_sec >= 0)
		request_header(r, "Preference-Applied", "wait=%lld", (long long)c->wait_sec);
	if (r->txn.rc == RC_EXHAUSTED && c->wait_sec > 0) {
		c->started_ns = mono_ns();
		if (line_join(api_line(r->api), r, &c->claim, c->wait_sec * 1000, on_served))
			return;
	}
	request_fail(r, &r->txn.e);
}

void handle_allocate(struct request *r)
{
	struct claim_call *c = arena_alloc(&r->call->arena, sizeof(*c));
	struct err         e = { 0 };

	c->started_ns = mono_ns();
	if (read_claim(r, c, &e)) {
		request_fail(r, &e);
		return;
	}
	c->claim.reserved = line_reserved(api_line(r->api), &r->call->arena, &c->claim.reserved_count);
	request_submit(r, broker_claim, &c->claim, false, on_first_try);
}

/* --- one sandbox --- */

static struct sandbox_call *sandbox_call_new(struct request *r)
{
	struct sandbox_call *c = arena_alloc(&r->call->arena, sizeof(*c));

	c->id = r->sandbox_id = r->params[0];
	c->owner = r->owner;
	c->by = (struct actor){ r->actor, str_of(r->id, ID_UUID_SIZE - 1) };
	r->arg = c;
	return c;
}

static const char *give_back_outcome(const struct txn *t)
{
	if (!t->rc)
		return "success";
	if (t->rc == RC_NOT_FOUND)
		return "not_found";
	if (t->rc == RC_CONFLICT)
		return "not_allocated";
	if (t->rc == RC_DENIED)
		return strcmp(err_code(&t->e), "ALLOCATION_EXPIRED") == 0 ? "expired" : "not_owner";
	return "error";
}

static void on_given_back(struct request *r)
{
	struct sandbox_call *c = r->arg;
	struct json_out      o;

	metrics_add(api_options(r->api)->metrics, METRIC_DELETION_MARKED, give_back_outcome(&r->txn), 1);
	if (r->txn.rc) {
		request_fail(r, &r->txn.e);
		return;
	}
	o = reply_begin(r);
	json_put_str(&o, "sandbox_id", c->sandbox.sandbox_id);
	json_put_str(&o, "status", STR("pending_deletion"));
	json_put_int(&o, "deletion_requested_at", c->sandbox.deletion_requested_at);
	reply_send(r, 200);
}

void handle_give_back(struct request *r)
{
	request_submit(r, broker_give_back, sandbox_call_new(r), false, on_given_back);
}

static void on_shown(struct request *r)
{
	struct sandbox_call *c = r->arg;
	struct json_out      o;

	if (r->txn.rc) {
		request_fail(r, &r->txn.e);
		return;
	}
	o = reply_begin(r);
	put_sandbox(&o, &c->sandbox);
	reply_send(r, 200);
}

void handle_show(struct request *r)
{
	request_submit(r, broker_show, sandbox_call_new(r), true, on_shown);
}

void handle_inspect(struct request *r)
{
	request_submit(r, broker_inspect, sandbox_call_new(r), true, reply_record);
}

/* {"reason": "..."}; no body means no reason. */
static enum rc read_reason(struct request *r, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct str                  reason;
	enum rc                     rc;

	*ret = STR("");
	if (r->call->req.body.n == 0)
		return RC_OK;
	if ((rc = json_parse(r->call->req.body, &body, e)))
		return err_wrap(e, rc, "body");
	if (!json_is_object(body) || json_object_size(body) > 1 || !json_get_text(body, "reason", &reason) ||
	    (json_object_size(body) == 1 && !json_object_get(body, "reason")))
		return err_set(e, RC_INVALID, "the body must be {\"reason\": \"text\"} or empty");
	if (reason.n > SANDBOX_TEXT_MAX)
		return err_set(e, RC_INVALID, "reason has %zu bytes, at most %d are allowed", reason.n,
		               SANDBOX_TEXT_MAX);
	*ret = str_dup(&r->call->arena, reason);
	return RC_OK;
}

void handle_quarantine(struct request *r)
{
	struct sandbox_call *c = sandbox_call_new(r);
	struct err           e = { 0 };

	if (read_reason(r, &c->reason, &e))
		request_fail(r, &e);
	else
		request_submit(r, broker_quarantine, c, false, reply_record);
}

static void on_released(struct request *r)
{
	if (!r->txn.rc)
		api_poke_line(r->api);
	reply_record(r);
}

void handle_release(struct request *r)
{
	request_submit(r, broker_release, sandbox_call_new(r), false, on_released);
}

void handle_retry_deletion(struct request *r)
{
	request_submit(r, broker_retry_deletion, sandbox_call_new(r), false, reply_record);
}

void handle_discard(struct request *r)
{
	request_submit(r, broker_discard, sandbox_call_new(r), false, reply_record);
}

/* --- list and count --- */

/* Cursors belong to a list with its filters. */
static const char *filter_name(struct request *r, const struct sandbox_list *l)
{
	const char *state = l->has_status ? sandbox_state_name(l->status) : "*";

	return l->find.n ? ops_list_name(r, state, &l->find, 1) : state;
}

static enum rc read_find(struct request *r, struct sandbox_list *l, struct err *e)
{
	return ops_read_text(r, "q", FIND_MAX, &l->find, e);
}

static enum rc read_status(struct request *r, struct sandbox_list *l, struct err *e)
{
	struct str status;
	enum rc    rc = request_query(r, "status", &status, e);

	if (rc || !status.n)
		return rc;
	l->has_status = true;
	if (!sandbox_state_parse(status, &l->status))
		return err_set(
		        e, RC_INVALID,
		        "status must be available, allocated, pending_deletion, stale or deletion_failed, not '%.*s'",
		        STR_ARG(status));
	return RC_OK;
}

static enum rc read_cursor(struct request *r, struct sandbox_list *l, struct err *e)
{
	struct str text;
	enum rc    rc = request_query(r, "cursor", &text, e);

	if (!rc && text.n && !cursor_unwrap(&r->call->arena, filter_name(r, l), text, &l->cursor))
		return err_set(e, RC_INVALID, "this cursor was not made by this list, or with other filters");
	return rc;
}

static void on_listed(struct request *r)
{
	struct sandbox_list *l = r->arg;
	struct json_out      o;

	if (r->txn.rc) {
		request_fail(r, &r->txn.e);
		return;
	}
	o = reply_begin(r);
	json_put_array(&o, "sandboxes");
	for (size_t i = 0; i < l->page.count; i++) {
		json_open_object(&o);
		put_listed(&o, page_record(&l->page, &sandbox_type, i));
		json_close_object(&o);
	}
	json_close_array(&o);
	json_put_int(&o, "count", (int64_t)l->page.count);
	if (l->page.next.n)
		json_put_str(&o, "cursor", cursor_wrap(&r->call->arena, filter_name(r, l), l->page.next));
	else
		json_put_null(&o, "cursor");
	reply_send(r, 200);
}

void handle_list(struct request *r)
{
	struct sandbox_list *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct err           e = { 0 };
	int64_t              limit;

	r->arg = l;
	if (read_status(r, l, &e) || read_find(r, l, &e) ||
	    request_query_int(r, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, &e) || read_cursor(r, l, &e)) {
		request_fail(r, &e);
		return;
	}
	l->limit = (size_t)limit;
	request_submit(r, broker_list, l, true, on_listed);
}

static void on_counted(struct request *r)
{
	const struct pool_stats *p = r->arg;
	struct json_out          o;

	if (r->txn.rc) {
		request_fail(r, &r->txn.e);
		return;
	}
	o = reply_begin(r);
	json_put_int(&o, "total", p->counts.total);
	for (int state = 0; state < SANDBOX_STATE_COUNT; state++)
		json_put_int(&o, sandbox_state_names[state], p->counts.by_state[state]);
	json_put_int(&o, "quarantined", p->quarantined);
	json_put_int(&o, "waiting", line_count(api_line(r->api)));
	reply_send(r, 200);
}

void handle_stats(struct request *r)
{
	r->arg = arena_alloc(&r->call->arena, sizeof(struct pool_stats));
	request_submit(r, broker_stats, r->arg, true, on_counted);
}
