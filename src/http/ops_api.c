/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_api.c - the operators' routes of timers, sagas, alarms, nodes and jobs.
 *
 * What comes in is checked here, decided in kernel/, written as JSON here. Whatever changes something is audited by the function
 * that does it, under the name of who did it and the request's id.
 */
#include "base/json.h"
#include "http/ops.h"
#include "kernel/alarm.h"
#include "kernel/kernel.h"
#include "kernel/node.h"
#include "kernel/saga.h"
#include "kernel/timer.h"
#include "service/alarms.h"

/* --- timers --- */

static void put_timer(struct json_out *o, const struct timer *t)
{
	json_put_str(o, "name", t->name);
	json_put_str(o, "type", t->type);
	json_put_str(o, "subject", t->subject);
	ops_put_time(o, "due_at", t->due_ms);
	ops_put_time(o, "armed_at", t->armed_ms);
}

static const char *timers_name(struct request *r, const struct timer_list *l)
{
	return ops_list_name(r, "timers", &l->prefix, 1);
}

static void on_timers(struct request *r)
{
	struct timer_list *l = r->arg;
	struct json_out    o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "timers");
	for (size_t i = 0; i < l->page.count; i++) {
		json_open_object(&o);
		put_timer(&o, page_record(&l->page, &timer_type, i));
		json_close_object(&o);
	}
	ops_send_list(r, &o, timers_name(r, l), l->page.count, l->page.next);
}

void handle_timer_list(struct request *r)
{
	struct timer_list *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct err         e = { 0 };

	r->arg = l;
	if (ops_read_text(r, "prefix", OPS_ID_MAX, &l->prefix, &e) ||
	    ops_read_page(r, timers_name(r, l), &l->limit, &l->cursor, &e))
		request_fail(r, &e);
	else
		request_submit(r, timer_list, l, true, on_timers);
}

static void reply_timer(struct request *r, const char *status)
{
	const struct timer_call *c = r->arg;
	struct json_out          o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	if (status)
		json_put_str(&o, "status", str_from(status));
	put_timer(&o, &c->timer);
	ops_put_json(&o, "detail", c->timer.detail);
	reply_send(r, 200);
}

static void on_timer(struct request *r)
{
	reply_timer(r, NULL);
}

static void on_timer_fired(struct request *r)
{
	reply_timer(r, "fired");
}

static void on_timer_cancelled(struct request *r)
{
	reply_timer(r, "cancelled");
}

static void submit_timer(struct request *r, txn_fn *run, bool is_read_only, void (*complete)(struct request *r))
{
	struct timer_call *c = arena_alloc(&r->call->arena, sizeof(*c));
	struct err         e = { 0 };

	c->actor = r->actor;
	c->request_id = str_from(r->id);
	r->arg = c;
	if (ops_read_id(r, "timer", &c->name, &e))
		request_fail(r, &e);
	else
		request_submit(r, run, c, is_read_only, complete);
}

void handle_timer_show(struct request *r)
{
	submit_timer(r, timer_get, true, on_timer);
}

void handle_timer_fire(struct request *r)
{
	submit_timer(r, timer_fire_now, false, on_timer_fired);
}

void handle_timer_cancel(struct request *r)
{
	submit_timer(r, timer_cancel, false, on_timer_cancelled);
}

/* --- sagas --- */

static const char *mark_word(char mark)
{
	switch (mark) {
	case SAGA_MARK_INTENT: return "doing";
	case SAGA_MARK_DONE: return "done";
	case SAGA_MARK_SKIPPED: return "skipped";
	case SAGA_MARK_UNDOING: return "undoing";
	case SAGA_MARK_UNDONE: return "undone";
	default: return "not_begun";
	}
}

/* A saga of a kind that this program does not have (any more) still has its marks. */
static struct str step_name(const struct saga_kind *kind, struct arena *a, size_t i)
{
	return kind && i < kind->step_count ? str_from(kind->steps[i].name) : str_format(a, "step %zu", i + 1);
}

static void put_saga(struct json_out *o, struct request *r, const struct saga *s)
{
	const struct saga_kind *kind = kernel_saga(ops_kernel(r), s->kind);
	size_t                  count = s->marks.n;
	size_t                  at = s->step < 0 ? 0 : (size_t)s->step;

	if (count && at >= count)
		at = count - 1; /* it is through */
	json_put_str(o, "id", s->id);
	json_put_str(o, "kind", s->kind);
	json_put_str(o, "subject", s->subject);
	json_put_str(o, "state", str_from(saga_state_names[s->state]));
	json_put_int(o, "step", (int64_t)at + 1);
	json_put_int(o, "step_count", (int64_t)count);
	json_put_str(o, "step_name", step_name(kind, &r->call->arena, at));
	ops_put_time(o, "step_since_at", s->step_since_ms);
	json_put_int(o, "tries", s->tries);
	ops_put_text(o, "last_error", s->last_error);
	ops_put_text(o, "reason", s->reason);
	ops_put_time(o, "started_at", s->started_ms);
	ops_put_time(o, "ended_at", s->ended_ms);
}

static void put_steps(struct json_out *o, struct request *r, const struct saga *s)
{
	const struct saga_kind *kind = kernel_saga(ops_kernel(r), s->kind);

	json_put_array(o, "steps");
	for (size_t i = 0; i < s->marks.n; i++) {
		json_open_object(o);
		json_put_str(o, "name", step_name(kind, &r->call->arena, i));
		json_put_str(o, "mark", str_from(mark_word(s->marks.p[i])));
		json_close_object(o);
	}
	json_close_array(o);
}

static void reply_saga(struct request *r, const struct saga *s)
{
	struct json_out o = reply_begin(r);

	put_saga(&o, r, s);
	ops_put_time(&o, "due_at", s->due_ms);
	ops_put_time(&o, "deadline_at", s->deadline_ms);
	ops_put_text(&o, "owner", s->owner);
	ops_put_text(&o, "actor", s->actor);
	put_steps(&o, r, s);
	ops_put_json(&o, "leftovers", s->leftovers);
	ops_put_json(&o, "input", s->input);
	ops_put_json(&o, "data", s->data);
	reply_send(r, 200);
}

static enum rc read_saga_state(struct request *r, struct saga_list *l, struct err *e)
{
	struct str text;
	enum rc    rc = request_query(r, "state", &text, e);

	if (rc || !text.n)
		return rc;
	for (int i = 0; i < SAGA_STATE_COUNT; i++)
		if (str_eq(text, str_from(saga_state_names[i]))) {
			l->has_state = true;
			l->state = (enum saga_state)i;
			return RC_OK;
		}
	return err_set(e, RC_INVALID, "state must be running, undoing, parked, done or undone, not '%.*s'",
	               STR_ARG(text));
}

static enum rc read_saga_filter(struct request *r, struct saga_list *l, struct err *e)
{
	enum rc rc;

	if ((rc = read_saga_state(r, l, e)) || (rc = ops_read_text(r, "subject", SUBJECT_MAX, &l->subject, e)))
		return rc;
	if (l->has_state && l->subject.n)
		return err_set(e, RC_INVALID, "give state or subject, not both: a subject has few sagas");
	return RC_OK;
}

static const char *sagas_name(struct request *r, const struct saga_list *l)
{
	struct str filters[] = { l->has_state ? str_from(saga_state_names[l->state]) : STR(""), l->subject };

	return ops_list_name(r, "sagas", filters, ARRAY_LEN(filters));
}

static void on_sagas(struct request *r)
{
	struct saga_list *l = r->arg;
	struct json_out   o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "sagas");
	for (size_t i = 0; i < l->page.count; i++) {
		json_open_object(&o);
		put_saga(&o, r, page_record(&l->page, &saga_type, i));
		json_close_object(&o);
	}
	ops_send_list(r, &o, sagas_name(r, l), l->page.count, l->page.next);
}

void handle_saga_list(struct request *r)
{
	struct saga_list *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct err        e = { 0 };

	r->arg = l;
	if (read_saga_filter(r, l, &e) || ops_read_page(r, sagas_name(r, l), &l->limit, &l->cursor, &e))
		request_fail(r, &e);
	else
		request_submit(r, saga_list, l, true, on_sagas);
}

static void on_saga(struct request *r)
{
	if (!ops_failed(r))
		reply_saga(r, r->arg);
}

void handle_saga_show(struct request *r)
{
	struct saga *s = arena_alloc(&r->call->arena, sizeof(*s));
	struct err   e = { 0 };

	r->arg = s;
	if (ops_read_id(r, "saga", &s->id, &e))
		request_fail(r, &e);
	else
		request_submit(r, saga_get, s, true, on_saga);
}

static void on_saga_order(struct request *r)
{
	const struct saga_order *order = r->arg;

	if (!ops_failed(r))
		reply_saga(r, &order->saga);
}

static void submit_order(struct request *r, txn_fn *run, bool has_reason)
{
	struct saga_order *order = arena_alloc(&r->call->arena, sizeof(*order));
	struct err         e = { 0 };

	order->actor = r->actor;
	order->request_id = str_from(r->id);
	r->arg = order;
	if (ops_read_id(r, "saga", &order->id, &e) || (has_reason && ops_read_reason(r, &order->reason, &e)))
		request_fail(r, &e);
	else
		request_submit(r, run, order, false, on_saga_order);
}

void handle_saga_retry(struct request *r)
{
	submit_order(r, saga_retry, false);
}

void handle_saga_skip(struct request *r)
{
	submit_order(r, saga_skip, true);
}

void handle_saga_abort(struct request *r)
{
	submit_order(r, saga_abort, true);
}

/* --- alarms and nodes --- */

static struct str runbook_of(struct str rule)
{
	for (size_t i = 0; i < service_alarm_count; i++)
		if (str_eq(rule, str_from(service_alarms[i].name)))
			return str_from(service_alarms[i].runbook);
	return STR("");
}

void ops_put_alarm(struct json_out *o, const struct alarm *a)
{
	json_put_str(o, "name", a->name);
	json_put_str(o, "rule", a->rule);
	json_put_str(o, "state", str_from(alarm_state_names[a->state]));
	json_put_str(o, "severity", str_from(alarm_severity_names[a->severity]));
	ops_put_text(o, "evidence", a->evidence);
	json_put_int(o, "value", a->value);
	ops_put_time(o, "since_at", a->since_ms);
	ops_put_time(o, "raised_at", a->raised_ms);
	ops_put_time(o, "checked_at", a->checked_ms);
	ops_put_text(o, "runbook", runbook_of(a->rule));
}

static void on_alarms(struct request *r)
{
	struct alarm_list *l = r->arg;
	struct json_out    o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "alarms");
	for (size_t i = 0; i < l->page.count; i++) {
		json_open_object(&o);
		ops_put_alarm(&o, page_record(&l->page, &alarm_type, i));
		json_close_object(&o);
	}
	json_close_array(&o);
	reply_send(r, 200);
}

void handle_alarm_list(struct request *r)
{
	r->arg = arena_alloc(&r->call->arena, sizeof(struct alarm_list));
	request_submit(r, alarm_list, r->arg, true, on_alarms);
}

static void on_nodes(struct request *r)
{
	struct node_list *l = r->arg;
	int64_t           silent_ms = kernel_span_ms(ops_kernel(r), NODE_SILENT_MS);
	struct json_out   o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "nodes");
	for (size_t i = 0; i < l->page.count; i++) {
		const struct node *n = page_record(&l->page, &node_type, i);

		json_open_object(&o);
		json_put_str(&o, "id", n->id);
		ops_put_time(&o, "started_at", n->started_ms);
		ops_put_time(&o, "beat_at", n->beat_ms);
		json_put_bool(&o, "silent", ops_now_ms(r) - n->beat_ms > silent_ms);
		json_put_int(&o, "slowest_ms", n->slowest_ms);
		json_put_int(&o, "failed_commits", n->failed_commits);
		json_close_object(&o);
	}
	json_close_array(&o);
	reply_send(r, 200);
}

void handle_node_list(struct request *r)
{
	r->arg = arena_alloc(&r->call->arena, sizeof(struct node_list));
	request_submit(r, node_list, r->arg, true, on_nodes);
}

/* --- jobs: the same as below admin/ --- */

void handle_ops_jobs(struct request *r)
{
	handle_jobs(r);
}

void handle_ops_job_run(struct request *r)
{
	handle_job_run(r);
}

void handle_ops_job_pause(struct request *r)
{
	handle_job_pause(r);
}

void handle_ops_job_resume(struct request *r)
{
	handle_job_resume(r);
}
