/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_api.c - the routes of the pool: what comes in is checked here, decided in service/broker/broker.c, written as
 * JSON here.
 *
 * Each handler has two halves: read the request and submit a transaction; when that is over, answer. See
 * docs/broker.md.
 */
#include "base/clock.h"
#include "base/metrics.h"
#include "http/api/api.h"
#include "http/api/line.h"
#include "http/api/ops.h"
#include "service/broker/broker.h"
#include "service/broker/claims_pause.h"
#include "service/broker/records.h"

enum { FIND_MAX = 128 };

/* --- replies --- */

static void put_expiry(struct json_out *o, const struct sandbox *s)
{
	JSON_PUT(o, member_sec("expires_at", s->allocated_at ? sandbox_expires_at(s) * 1000 : 0));
}

static void put_sandbox(struct json_out *o, struct request *r, const void *thing)
{
	const struct sandbox *s = thing;

	static const int first[] = { SANDBOX_F_ID,     SANDBOX_F_NAME,         SANDBOX_F_EXTERNAL_ID,
		                     SANDBOX_F_STATUS, SANDBOX_F_ALLOCATED_AT, NO_FIELD };
	static const int rest[] = { SANDBOX_F_TRACK, SANDBOX_F_TRACK_NAME, SANDBOX_F_SFDC, NO_FIELD };

	(void)r;
	record_write_json(&sandbox_type, s, first, o);
	put_expiry(o, s);
	record_write_json(&sandbox_type, s, rest, o);
}

/* What an operator's list tells on top. */
static void put_listed(struct json_out *o, struct request *r, const void *s)
{
	static const int more[] = { SANDBOX_F_QUARANTINE_REASON, NO_FIELD };

	put_sandbox(o, r, s);
	record_write_json(&sandbox_type, s, more, o);
}

static void put_record(struct json_out *o, struct request *r, const void *thing)
{
	const struct sandbox *s = thing;

	(void)r;
	record_write_json(&sandbox_type, s, NULL, o);
	put_expiry(o, s);
	json_put_int(o, "version", (int64_t)s->version);
}

/* --- claim --- */

struct claim_call {
	struct claim claim;
	int64_t      wait_sec;   /* -1: does not wait */
	int64_t      started_ns; /* of its first try */
};

/* An optional label in a header. RC_INVALID when it is there and makes no sense. */
static enum rc read_label(struct request *r, struct str name, struct str *ret, struct err *e)
{
	size_t times;

	*ret = str_trim(http_header(&r->call->req, name, &times));
	if (times > 1 || (times == 1 && !sandbox_is_label(*ret)))
		return err_set(e, RC_INVALID, "%.*s must be 1 to %d visible ASCII characters (and sent once)",
		               STR_ARG(name), SANDBOX_OWNER_MAX);
	return RC_OK;
}

static enum rc read_claim(struct request *r, struct claim_call *c, struct err *e)
{
	const struct api_options *o = &r->api->options;
	bool                      is_async;
	enum rc                   rc;

	c->claim.ask.owner = r->owner;
	c->claim.ask.lab_hours = o->lab_hours;
	c->claim.lending = o->lending;
	c->claim.by.request_id = str_of(r->id, ID_UUID_SIZE - 1);
	if ((rc = read_label(r, STR("Idempotency-Key"), &c->claim.ask.idempotency_key, e)) ||
	    (rc = read_label(r, STR("X-Instruqt-Track-ID"), &c->claim.ask.track_name, e)) ||
	    (rc = read_label(r, STR("X-Sandbox-Name-Prefix"), &c->claim.prefix, e)))
		return rc;
	request_prefer(r, &c->wait_sec, &is_async);
	if (c->wait_sec > o->wait_max_sec)
		c->wait_sec = o->wait_max_sec;
	return RC_OK;
}

static void count_claim(struct request *r, const struct claim_call *c, const char *outcome)
{
	struct metrics *m = r->api->options.metrics;
	double          seconds = (double)(mono_ns() - c->started_ns) / 1e9;

	metrics_add(m, METRIC_ALLOCATE, outcome, 1);
	metrics_observe(m, METRIC_ALLOCATION_LATENCY, outcome, seconds);
	claim_stats_claim(&r->api->claims, clock_now(&clock_real).ms, !r->txn.rc, seconds);
}

static struct claim_call *claim_call_of(struct request *r)
{
	return CONTAINER_OF(r->txn.arg, struct claim_call, claim);
}

/* Also from the line: the header was added before it joined. */
static void on_served(struct request *r)
{
	struct claim_call    *c = claim_call_of(r);
	const struct sandbox *s = &c->claim.sandbox;
	struct json_out       o;

	count_claim(r, c, c->claim.is_new ? "success" : "idempotent");
	if (!c->claim.is_new)
		metrics_add(r->api->options.metrics, METRIC_ALLOCATE_IDEMPOTENT, "", 1);
	o = reply_begin(r);
	JSON_PUT(&o, member_str("sandbox_id", s->sandbox_id), member_str("name", s->name),
	         member_str("external_id", s->external_id), member_int("allocated_at", s->allocated_at),
	         member_int("expires_at", sandbox_expires_at(s)), member_text("sfdc_account_id", s->sfdc_account_id));
	r->sandbox_id = s->sandbox_id;
	reply_send(r, c->claim.is_new ? 201 : 200);
}

static void on_first_try(struct request *r)
{
	struct claim_call *c = claim_call_of(r);

	if (c->wait_sec >= 0)
		request_header(r, "Preference-Applied", "wait=%lld", (long long)c->wait_sec);
	if (!r->txn.rc) {
		on_served(r);
		return;
	}
	count_claim(r, c, r->txn.rc == RC_EXHAUSTED ? "no_sandboxes" : "error");
	if (r->txn.rc == RC_EXHAUSTED && c->wait_sec > 0) {
		c->started_ns = mono_ns();
		if (line_join(r->api->line, r, &c->claim, c->wait_sec * 1000, on_served))
			return;
	}
	request_fail(r, &r->txn.e);
}

/* NULL: it has been answered, and the request with its arena is gone. */
static struct claim_call *claim_begin(struct request *r, struct claim_call *c)
{
	c->started_ns = r->call->started_ns;
	if (!request_is_good(r, read_claim(r, c, &r->e)))
		return NULL;
	c->claim.reserved = line_reserved(r->api->line, &r->call->arena, &c->claim.reserved_count);
	return c;
}

void handle_allocate(struct request *r)
{
	struct claim_call *c = claim_begin(r, NEW_OF(r, struct claim_call));

	if (c)
		request_submit(r, broker_claim, &c->claim, false, on_first_try);
}

/* By an operator, for the track of the header. */
void handle_allocate_for(struct request *r)
{
	struct claim_call *c;

	if (!request_is_good(r, read_label(r, STR("X-Track-ID"), &r->owner, &r->e) ||
	                                (!r->owner.n && err_set_code(&r->e, RC_INVALID, "INVALID_TRACK_ID",
	                                                             "no X-Track-ID header: for whom?"))) ||
	    !(c = claim_begin(r, NEW_OF(r, struct claim_call))))
		return;
	c->claim.by.name = r->actor;
	request_submit(r, broker_claim, &c->claim, false, on_first_try);
}

static void on_replaced(struct request *r)
{
	const struct replacement *p = r->arg;

	if (!request_failed(r))
		view_reply(r, 201, put_sandbox, &p->claim.sandbox);
}

void handle_replace(struct request *r)
{
	struct replacement *p = NEW_OF(r, struct replacement);
	struct claim_call  *c = claim_begin(r, NEW_OF(r, struct claim_call));

	if (!c)
		return;
	p->id = r->sandbox_id = r->params[0];
	p->claim = c->claim;
	p->claim.by.name = r->actor;
	r->arg = p;
	if (request_is_good(r, ops_read_reason(r, false, &p->reason, &r->e)))
		request_submit(r, broker_replace, p, false, on_replaced);
}

/* --- one sandbox --- */

static struct sandbox_call *sandbox_call_new(struct request *r)
{
	struct sandbox_call *c = arena_alloc(&r->call->arena, sizeof(*c));

	c->id = r->sandbox_id = r->params[0];
	c->owner = r->owner;
	c->by = (struct actor){ r->actor, str_of(r->id, ID_UUID_SIZE - 1) };
	r->shown = &c->sandbox;
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

static void put_given_back(struct json_out *o, struct request *r, const void *thing)
{
	const struct sandbox *s = thing;

	(void)r;
	JSON_PUT(o, member_str("sandbox_id", s->sandbox_id), member_word("status", "pending_deletion"),
	         member_int("deletion_requested_at", s->deletion_requested_at));
}

static void on_given_back(struct request *r)
{
	metrics_add(r->api->options.metrics, METRIC_DELETION_MARKED, give_back_outcome(&r->txn), 1);
	if (!request_failed(r))
		view_reply(r, 200, put_given_back, r->shown);
}

HANDLER(give_back, request_submit(r, broker_give_back, sandbox_call_new(r), false, on_given_back))
HANDLER(show, view_submit(r, broker_show, sandbox_call_new(r), READS, 200, put_sandbox))
HANDLER(inspect, view_submit(r, broker_inspect, sandbox_call_new(r), READS, 200, put_record))
HANDLER(retry_deletion, view_submit(r, broker_retry_deletion, sandbox_call_new(r), WRITES, 200, put_record))
HANDLER(discard, view_submit(r, broker_discard, sandbox_call_new(r), WRITES, 200, put_record))

void handle_quarantine(struct request *r)
{
	struct sandbox_call *c = sandbox_call_new(r);

	if (request_is_good(r, ops_read_reason(r, false, &c->reason, &r->e)))
		view_submit(r, broker_quarantine, c, WRITES, 200, put_record);
}

static void on_released(struct request *r)
{
	if (request_failed(r))
		return;
	line_poke_later(r->api->line);
	view_reply(r, 200, put_record, r->shown);
}

HANDLER(release, request_submit(r, broker_release, sandbox_call_new(r), false, on_released))

/* --- the switch of all claims --- */

static void put_pause(struct json_out *o, struct request *r, const void *thing)
{
	const struct claims_pause *p = thing;

	claims_switch_note(r->api->options.lending, p);
	JSON_PUT(o, member_bool("paused", p->is_paused), member_text("reason", p->reason),
	         member_sec("since_at", p->since_ms));
}

static void switch_claims(struct request *r, bool is_paused)
{
	struct claims_pause *p = arena_alloc(&r->call->arena, sizeof(*p));

	p->is_paused = is_paused;
	p->by = (struct actor){ r->actor, str_of(r->id, ID_UUID_SIZE - 1) };
	if (request_is_good(r, ops_read_reason(r, false, &p->reason, &r->e)))
		view_submit(r, claims_pause_set, p, WRITES, 200, put_pause);
}

HANDLER(claims_pause, switch_claims(r, true))
HANDLER(claims_resume, switch_claims(r, false))

HANDLER(claims_show, view_submit(r, claims_pause_get, NEW_OF(r, struct claims_pause), READS, 200, put_pause))

/* --- list and count --- */

static enum rc read_filter(struct request *r, struct listing *v, struct err *e)
{
	struct sandbox_list *l = v->list;
	const char          *must = SANDBOX_STATES_TEXT;
	int                  status;
	enum rc rc = ops_read_word(r, "status", sandbox_state_names, SANDBOX_STATE_COUNT, must, &status, e);

	if (rc || (rc = ops_read_text(r, "q", FIND_MAX, &l->find, e)))
		return rc;
	l->has_status = status >= 0;
	if (l->has_status)
		l->status = (enum sandbox_state)status;
	v->name = l->has_status ? sandbox_state_names[status] : "*";
	if (l->find.n)
		v->name = ops_list_name(r, v->name, &l->find, 1);
	return RC_OK;
}

static const struct listing sandboxes = { "sandboxes", NULL,        &sandbox_type,
	                                  put_listed,  broker_list, LIST_OF(struct sandbox_list),
	                                  read_filter };
HANDLER(list, view_list(r, &sandboxes))

static void put_stats(struct json_out *o, struct request *r, const void *thing)
{
	const struct pool_stats *p = thing;

	json_put_int(o, "total", p->counts.total);
	for (int state = 0; state < SANDBOX_STATE_COUNT; state++)
		json_put_int(o, sandbox_state_names[state], p->counts.by_state[state]);
	JSON_PUT(o, member_int("quarantined", p->quarantined), member_int("waiting", line_count(r->api->line)));
}

HANDLER(stats, view_submit(r, broker_stats, NEW_OF(r, struct pool_stats), READS, 200, put_stats))

/* --- will there be enough? --- */

struct forecast_work {
	struct forecast f; /* first */
	int64_t         waiting;
};

static void put_forecast(struct json_out *o, UNUSED struct request *r, const void *thing)
{
	const struct forecast_work *w = thing;
	const struct forecast      *f = &w->f;
	int64_t                     waiting = w->waiting, sure = f->available - waiting, expected = sure + f->refill;
	const char                 *enough = sure >= f->need ? "yes" : expected >= f->need ? "likely" : "no";

	JSON_PUT(o, member_sec("at", f->at * 1000), member_int("need", f->need), member_int("available", f->available),
	         member_int("waiting", waiting), member_int("ending", f->ending),
	         member_int("pending_deletion", f->pending), member_int("added_last_day", f->added),
	         member_int("expected_refill", f->refill), member_int("expected", expected < 0 ? 0 : expected),
	         member_word("enough", enough));
}

void handle_forecast(struct request *r)
{
	struct forecast_work *w = NEW_OF(r, struct forecast_work);
	int64_t               at_ms = ops_now_ms(r);
	struct str            need;

	if (!request_is_good(r, ops_read_time(r, "at", &at_ms, &r->e) ||
	                                ops_read_text(r, "need", FIND_MAX, &need, &r->e) ||
	                                (need.n && !str_to_int(need, 0, INT32_MAX, &w->f.need) &&
	                                 err_set(&r->e, RC_INVALID, "need must be a number"))))
		return;
	w->f.at = at_ms / 1000;
	w->waiting = line_count(r->api->line); /* here: the answer is made on another thread */
	view_submit(r, broker_forecast, w, READS_LONG, 200, put_forecast);
}
