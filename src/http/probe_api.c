/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_api.c - the routes for those who watch: alive, ready, metrics, what is this.
 *
 * Readiness tells whether the last commit succeeded. A node that is not ready gets no traffic and so would never commit
 * again; therefore, while the store is unwell, the question itself tries a small write.
 */
#include "base/clock.h"
#include "base/metrics.h"
#include "http/api.h"
#include "http/console_api.h"
#include "http/openapi.h"
#include "kernel/alarm.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "kernel/timer.h"
#include "service/broker.h"
#include "service/records.h"
#include "store/session.h"

enum { METRICS_MAX = 4 * 1024 * 1024, OPENAPI_MAX = 1024 * 1024 };

static int64_t now_sec(void)
{
	return wall_sec(clock_now(&clock_real));
}

void handle_health(struct request *r)
{
	struct json_out o = reply_begin(r);

	json_put_str(&o, "status", STR("healthy"));
	json_put_int(&o, "timestamp", now_sec());
	reply_send(r, 200);
}

static void reply_ready(struct request *r, const struct err *e)
{
	struct json_out o = reply_begin(r);

	json_put_str(&o, "status", e->rc ? STR("not_ready") : STR("ready"));
	json_put_int(&o, "timestamp", now_sec());
	json_put_object(&o, "checks");
	json_put_str(&o, "store", e->rc ? str_from(e->msg) : STR("ok"));
	json_close_object(&o);
	reply_send(r, e->rc ? 503 : 200);
}

static void on_probed(struct request *r)
{
	reply_ready(r, &r->txn.e);
}

/* A write that changes something each time. */
static enum rc write_probe(struct session *s, void *arg, struct err *e)
{
	struct job_record probe = { .name = STR("readiness-probe") };
	enum rc           rc = session_get(s, &job_type, probe.name, &probe, NULL);

	(void)arg;
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "the store cannot be read");
	probe.last_finished_at = session_now(s).ms;
	session_put(s, &job_type, &probe);
	return RC_OK;
}

void handle_ready(struct request *r)
{
	struct err e = { 0 };

	if (!api_is_open(r->api)) {
		if (!store_health(api_options(r->api)->store, &e)) /* which says why, if it has been asked already */
			rc_ignore(err_set(&e, RC_UNAVAILABLE, "the store has not answered since the start"));
		reply_ready(r, &e);
	} else if (store_health(api_options(r->api)->store, &e) && !store_is_stuck(api_options(r->api)->store))
		request_submit(r, write_probe, NULL, false, on_probed);
	else
		reply_ready(r, &e);
}

_Static_assert((int)METRIC_POOL_DELETION_FAILED - (int)METRIC_POOL_AVAILABLE == (int)SANDBOX_DELETION_FAILED,
               "the pool's gauges are in the order of the states");

static void gather_counters(struct request *r)
{
	const struct api_options *o = api_options(r->api);
	struct store_counts       counts = store_counts(o->store);

	metrics_set(o->metrics, METRIC_STORE_COMMITS, (double)counts.commits);
	metrics_set(o->metrics, METRIC_STORE_FAILED_COMMITS, (double)counts.failed_commits);
	metrics_set(o->metrics, METRIC_STORE_TRANSACTIONS, (double)counts.transactions);
	metrics_set(o->metrics, METRIC_ALLOCATE_CONFLICTS, (double)counts.conflicts);
	metrics_set(o->metrics, METRIC_CSP_CIRCUIT_OPEN, o->is_csp_open && o->is_csp_open(o->csp_arg));
}

static void reply_metrics(struct request *r)
{
	struct buf text;

	gather_counters(r);
	buf_init(&text, METRICS_MAX);
	metrics_write(api_options(r->api)->metrics, &text);
	request_reply_as(r, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&text));
	buf_fini(&text);
}

/* What the gauges show: the pool, and the kernel's work. */
struct figures {
	struct pool_counts  pool;
	struct queue_counts queues;
	struct timer_list   timers; /* the first one */
	struct alarm_list   alarms;
	int64_t             sagas[SAGA_OPEN_STATES];
	int64_t             timers_armed;
};

static enum rc count_figures(struct session *s, void *arg, struct err *e)
{
	struct figures *f = arg;
	enum rc         rc;

	if ((rc = broker_count(s, &f->pool, e)) || (rc = queue_counts(s, &f->queues, e)) ||
	    (rc = timer_list(s, &f->timers, e)) || (rc = alarm_list(s, &f->alarms, e)) ||
	    (rc = saga_count(s, f->sagas, e)))
		return rc;
	return session_count(s, &timer_type, TIMER_DUE, value_int(TIMER_ARMED), &f->timers_armed, e);
}

static void set_gauge(struct metrics *m, enum metric id, const char *label, double value)
{
	metric_set(metrics_series(m, id, label), value);
}

static double seconds_since(int64_t ms, int64_t now_ms)
{
	return ms && now_ms > ms ? (double)(now_ms - ms) / 1000 : 0;
}

static void set_pool(struct metrics *m, const struct pool_counts *c)
{
	for (int state = 0; state < SANDBOX_STATE_COUNT; state++)
		metrics_set(m, METRIC_POOL_AVAILABLE + (enum metric)state, (double)c->by_state[state]);
	metrics_set(m, METRIC_POOL_TOTAL, (double)c->total);
}

static void set_queues(struct metrics *m, const struct queue_counts *c, int64_t now_ms)
{
	const struct kernel_options *k = kernel_options(c->kernel);

	for (size_t i = 0; i < k->queue_count; i++) {
		set_gauge(m, METRIC_QUEUE_LANES, k->queues[i].name, (double)c->counts[i].lanes);
		set_gauge(m, METRIC_QUEUE_OLDEST, k->queues[i].name, seconds_since(c->counts[i].oldest_ms, now_ms));
		set_gauge(m, METRIC_DEAD_LETTERS, k->queues[i].name, (double)c->counts[i].dead);
	}
}

static void set_alarms(struct metrics *m, const struct alarm_list *l)
{
	int64_t raised[ALARM_SEVERITY_COUNT] = { 0 };

	for (size_t i = 0; i < l->page.count; i++) {
		const struct alarm *a = page_record(&l->page, &alarm_type, i);

		raised[a->severity] += a->state == ALARM_RAISED;
	}
	for (int i = 0; i < ALARM_SEVERITY_COUNT; i++)
		set_gauge(m, METRIC_ALARMS, alarm_severity_names[i], (double)raised[i]);
}

static void set_figures(struct request *r, const struct figures *f)
{
	struct metrics     *m = api_options(r->api)->metrics;
	int64_t             now_ms = clock_now(kernel_options(f->queues.kernel)->clock).ms;
	const struct timer *first = f->timers.page.count ? page_record(&f->timers.page, &timer_type, 0) : NULL;

	set_pool(m, &f->pool);
	set_queues(m, &f->queues, now_ms);
	metrics_set(m, METRIC_TIMER_LAG, first ? seconds_since(first->due_ms, now_ms) : 0);
	metrics_set(m, METRIC_TIMERS_ARMED, (double)f->timers_armed);
	for (int i = 0; i < SAGA_OPEN_STATES; i++)
		set_gauge(m, METRIC_SAGAS, saga_state_names[i], (double)f->sagas[i]);
	set_alarms(m, &f->alarms);
}

static void on_counted(struct request *r)
{
	if (!r->txn.rc) /* otherwise the store does not answer: the last known figures are shown */
		set_figures(r, r->arg);
	reply_metrics(r);
}

void handle_metrics(struct request *r)
{
	struct figures *f = arena_alloc(&r->call->arena, sizeof(*f));

	f->queues.kernel = api_options(r->api)->kernel;
	f->timers.limit = 1;
	r->arg = f;
	if (api_wants_gauges(r->api))
		request_submit(r, count_figures, f, true, on_counted);
	else
		reply_metrics(r);
}

void handle_openapi(struct request *r)
{
	struct buf text;

	buf_init(&text, OPENAPI_MAX);
	openapi_write(api_options(r->api)->base_path, &text);
	request_reply_as(r, 200, "application/json", buf_str(&text));
	buf_fini(&text);
}

/* Browsers get the console, with a token in the query when they come from a sign-in. Programs get where to read on. */
void handle_root(struct request *r)
{
	struct json_out o;

	if (console_is_wanted(r)) {
		console_answer_page(r);
		return;
	}
	o = reply_begin(r);
	json_put_str(&o, "service", STR("leasehold"));
	json_put_str(&o, "version", STR(LEASEHOLD_VERSION));
	json_put_str(&o, "docs",
	             str_format(&r->call->arena, "%.*s/openapi.json", STR_ARG(api_options(r->api)->base_path)));
	json_put_bool(&o, "simulated", api_options(r->api)->world != NULL);
	request_header(r, "Vary", "Accept");
	reply_send(r, 200);
}
