/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_api.c - the operators' routes of timers, sagas, alarms, nodes and jobs.
 *
 * Requests are checked here, decided in kernel/, and answered as JSON here. The function that makes a change stores the
 * event, with the actor and the request's id.
 */
#include "base/json.h"
#include "base/steady.h"
#include "http/api/ops.h"
#include "kernel/alarm/alarm.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/alarm/node.h"
#include "kernel/saga.h"
#include "kernel/timer.h"
#include "service/alarms/alarms.h"

/* --- timers --- */

PUT_OF(put_timer, struct timer, t, member_str("name", t->name), member_str("type", t->type),
       member_str("subject", t->subject), member_sec("due_at", t->due_ms), member_sec("armed_at", t->armed_ms))

static enum rc read_timer_filter(struct request *r, struct listing *v, struct err *e)
{
	struct timer_list *l = v->list;
	enum rc            rc = ops_read_text(r, "prefix", OPS_ID_MAX, &l->prefix, e);

	v->name = ops_list_name(r, "timers", &l->prefix, 1);
	return rc;
}

static const struct listing timers = { "timers",         NULL,       &timer_type,
	                               put_timer,        timer_list, LIST_OF(struct timer_list),
	                               read_timer_filter };
HANDLER(timer_list, view_list(r, &timers))

static void put_whole_timer(struct json_out *o, struct request *r, const void *thing)
{
	put_timer(o, r, thing);
	JSON_PUT(o, member_raw("detail", ((const struct timer *)thing)->detail));
}

static void submit_timer(struct request *r, txn_fn *run, enum view_access access, const char *done)
{
	struct timer_call *c = NEW_OF(r, struct timer_call);

	*c = (struct timer_call){ .actor = r->actor, .request_id = str_from(r->id) };
	r->done = done;
	r->shown = &c->timer;
	if (request_is_good(r, ops_read_id(r, "timer", &c->name, &r->e)))
		view_submit(r, run, c, access, 200, put_whole_timer);
}

HANDLER(timer_show, submit_timer(r, timer_get, READS, NULL))
HANDLER(timer_fire, submit_timer(r, timer_fire_now, WRITES, "fired"))
HANDLER(timer_cancel, submit_timer(r, timer_cancel, WRITES, "cancelled"))

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

/* A saga of a kind that this program does not have (any more) has no names for its steps. */
static struct str step_name(const struct saga_kind *kind, struct arena *a, size_t i)
{
	return kind && i < kind->step_count ? str_from(kind->steps[i].name) : str_format(a, "step %zu", i + 1);
}

static void put_saga(struct json_out *o, struct request *r, const void *thing)
{
	const struct saga      *s = thing;
	const struct saga_kind *kind = kernel_saga(r->api->options.kernel, s->kind);
	size_t                  count = s->marks.n;
	size_t                  at = s->step < 0 ? 0 : (size_t)s->step;

	if (count && at >= count)
		at = count - 1; /* it is through */
	JSON_PUT(o, member_str("id", s->id), member_str("kind", s->kind), member_str("subject", s->subject),
	         member_word("state", saga_state_names[s->state]), member_int("step", (int64_t)at + 1),
	         member_int("step_count", (int64_t)count),
	         member_str("step_name", step_name(kind, &r->call->arena, at)),
	         member_sec("step_since_at", s->step_since_ms), member_int("tries", s->tries),
	         member_text("last_error", s->last_error), member_text("reason", s->reason),
	         member_sec("started_at", s->started_ms), member_sec("ended_at", s->ended_ms));
}

static void put_whole_saga(struct json_out *o, struct request *r, const void *thing)
{
	const struct saga      *s = thing;
	const struct saga_kind *kind = kernel_saga(r->api->options.kernel, s->kind);

	put_saga(o, r, s);
	JSON_PUT(o, member_sec("due_at", s->due_ms), member_sec("deadline_at", s->deadline_ms),
	         member_text("owner", s->owner), member_text("actor", s->actor), member_list("steps"));
	for (size_t i = 0; i < s->marks.n; i++)
		JSON_PUT(o, member_object(NULL), member_str("name", step_name(kind, &r->call->arena, i)),
		         member_word("mark", mark_word(s->marks.p[i])), member_end());
	JSON_PUT(o, member_list_end(), member_raw("leftovers", s->leftovers), member_raw("input", s->input),
	         member_raw("data", s->data));
}

static enum rc read_saga_filter(struct request *r, struct listing *v, struct err *e)
{
	struct saga_list *l = v->list;
	int               state;
	enum rc           rc = ops_read_word(r, "state", saga_state_names, SAGA_STATE_COUNT,
	                                     "running, undoing, parked, done or undone", &state, e);

	if (rc || (rc = ops_read_text(r, "subject", SUBJECT_MAX, &l->subject, e)))
		return rc;
	l->has_state = state >= 0;
	if (l->has_state && l->subject.n)
		return err_set(e, RC_INVALID, "give state or subject, not both: a subject has few sagas");
	if (l->has_state)
		l->state = (enum saga_state)state;
	v->name = ops_list_name(r, "sagas",
	                        (struct str[]){ str_from(l->has_state ? saga_state_names[state] : ""), l->subject }, 2);
	return RC_OK;
}

static const struct listing sagas = { "sagas",         NULL, &saga_type, put_saga, saga_list, LIST_OF(struct saga_list),
	                              read_saga_filter };
HANDLER(saga_list, view_list(r, &sagas))
HANDLER(saga_show, ops_show(r, "saga", sizeof(struct saga), offsetof(struct saga, id), saga_get, put_whole_saga))

static void submit_action(struct request *r, txn_fn *run, bool has_reason)
{
	struct saga_action *c = NEW_OF(r, struct saga_action);

	*c = (struct saga_action){ .actor = r->actor, .request_id = str_from(r->id) };
	r->shown = &c->saga;
	if (request_is_good(r, ops_read_id(r, "saga", &c->id, &r->e) ||
	                               (has_reason && ops_read_reason(r, true, &c->reason, &r->e))))
		view_submit(r, run, c, WRITES, 200, put_whole_saga);
}

HANDLER(saga_retry, submit_action(r, saga_retry, false))
HANDLER(saga_skip, submit_action(r, saga_skip, true))
HANDLER(saga_abort, submit_action(r, saga_abort, true))

/* --- alarms and nodes --- */

void ops_put_alarm(struct json_out *o, struct request *r UNUSED, const void *thing)
{
	const struct alarm *a = thing;
	const char         *runbook = "";

	for (size_t i = 0; i < service_alarm_count; i++)
		if (str_eq(a->rule, str_from(service_alarms[i].name)))
			runbook = service_alarms[i].runbook;
	JSON_PUT(o, member_str("name", a->name), member_str("rule", a->rule),
	         member_word("state", alarm_state_names[a->state]),
	         member_word("severity", alarm_severity_names[a->severity]), member_text("evidence", a->evidence),
	         member_int("value", a->value), member_sec("since_at", a->since_ms),
	         member_sec("raised_at", a->raised_ms), member_sec("checked_at", a->checked_ms),
	         member_text("runbook", str_from(runbook)));
}

static const struct listing alarms = { "alarms", NULL, &alarm_type, ops_put_alarm, alarm_list, sizeof(struct page) };
HANDLER(alarm_list, view_list(r, &alarms))

static void put_node(struct json_out *o, struct request *r, const void *thing)
{
	const struct node *n = thing;
	int64_t            silent_ms = ops_now_ms(r) - n->beat_ms;

	JSON_PUT(o, member_str("id", n->id), member_sec("started_at", n->started_ms), member_sec("beat_at", n->beat_ms),
	         member_bool("silent", silent_ms > kernel_span_ms(r->api->options.kernel, NODE_SILENT_MS)),
	         member_int("slowest_ms", n->slowest_ms), member_int("failed_commits", n->failed_commits));
}

static const struct listing nodes = { "nodes", NULL, &node_type, put_node, node_list, sizeof(struct page) };
HANDLER(node_list, view_list(r, &nodes))

/* --- the clock of this process --- */

void handle_clock_show(struct request *r)
{
	const struct clock *clock = kernel_options(r->api->options.kernel)->clock;
	int64_t now_ms = clock_now(clock).ms, differs_ms = clock->steady ? steady_differs_ms(clock->steady) : 0;

	REPLY(r, 200, member_sec("server_at", now_ms), member_sec("machine_at", now_ms + differs_ms),
	      member_int("differs_sec", differs_ms / 1000));
}

struct clock_action {
	struct str actor, request_id;
	int64_t    differs_ms;
};

static enum rc note_accepted(struct session *s, void *arg, struct err *e)
{
	const struct clock_action *o = arg;

	return session_tell(s, "ClockAccepted", STR("clock"), o->actor, o->request_id,
	                    str_format(session_arena(s), "{\"differsSec\":%lld}", (long long)o->differs_ms / 1000), e);
}

static void on_accepted(struct request *r)
{
	const struct clock *clock = kernel_options(r->api->options.kernel)->clock;

	if (request_failed(r))
		return;
	if (clock->steady)
		steady_accept(clock->steady, steady_read_machine());
	handle_clock_show(r);
}

/* The event is stored first, with the time that was in use until now. */
void handle_clock_accept(struct request *r)
{
	const struct clock  *clock = kernel_options(r->api->options.kernel)->clock;
	struct clock_action *o = NEW_OF(r, struct clock_action);

	*o = (struct clock_action){ .actor = r->actor, .request_id = str_from(r->id) };
	(void)clock_now(clock);
	o->differs_ms = clock->steady ? steady_differs_ms(clock->steady) : 0;
	r->arg = o;
	if (o->differs_ms)
		request_submit(r, note_accepted, o, false, on_accepted);
	else
		handle_clock_show(r);
}

/* --- jobs: the same as below admin/ --- */

HANDLER(ops_jobs, handle_jobs(r))
HANDLER(ops_job_run, handle_job_run(r))
HANDLER(ops_job_pause, handle_job_pause(r))
HANDLER(ops_job_resume, handle_job_resume(r))
