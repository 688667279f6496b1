/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wiring.c - the kernel of this program, and the threads that serve it.
 *
 * Who hears of what is in subscriptions.c. The pulse is one thread for what each process does periodically: say that it
 * lives, compute alarms, look for webhooks and policies that other nodes changed, state what only this process sees,
 * bring the simulated cloud's events to the inbox. Nothing depends on it but that things are noticed.
 */
#include "app/wiring.h"

#include <pthread.h>
#include <stdlib.h>

#include "app/aws_parts.h"
#include "app/config/config.h"
#include "app/messages.h"
#include "app/parts.h"
#include "service/instance/instances.h"
#include "app/signin.h"
#include "app/subscriptions.h"
#include "app/watch.h"
#include "base/arena.h"
#include "base/id.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "http/api/api.h"
#include "http/api/ops_stream.h"
#include "kernel/edge/intake.h"
#include "kernel/kernel.h"
#include "kernel/alarm/node.h"
#include "kernel/pump.h"
#include "kernel/edge/webhook.h"
#include "providers/csp/csp_breaker.h"
#include "providers/sim/cloud.h"
#include "service/alarms/alarms.h"
#include "service/broker/claims_pause.h"
#include "service/jobs/jobs.h"
#include "service/broker/sandbox_events.h"
#include "service/figures/figures.h"
#include "service/gauges.h"
#include "service/policy/policy_store.h"
#include "service/services.h"
#include "store/store.h"

enum { TICK_MS = 1000, BEAT_TICKS = 10, POLICY_TICKS = 5, FIGURES_TICKS = 60, REARM_TICKS = 60, SAGA_LEASE_MS = 30000 };
enum { FIGURE_BEATS = 6 }; /* where counting costs */

const char *const wiring_inboxes[WIRING_INBOXES] = { "cloudtrail", INSTANCE_COMMANDS, INSTANCE_ECS };

struct wiring {
	struct parts        *p;
	bool                 is_alone; /* no other node can use this store */
	struct subscriptions heard;
	struct kernel       *kernel;
	struct pump         *pump;

	bool (*begin)(void *arg); /* called with each tick until it is true; NULL: it was */
	void              *begin_arg;
	pthread_t          pulse;
	pthread_mutex_t    lock;
	pthread_cond_t     is_changed;
	bool               is_stopping;
	struct node        self;
	uint64_t           failed_commits; /* at the last beat */
	struct store_watch store_watch;
	bool               was_circuit_open; /* as it was stated last */
	bool               was_policy_bad;
	struct clock_watch clock_watch;
	struct figures    *figures; /* NULL: of nothing that is lent here */
	unsigned           beats;
};

/* --- open --- */

static void make_kernel(struct wiring *w)
{
	const struct config  *c = w->p->config;
	struct kernel_options options = {
		.store = w->p->store.store,
		.clock = &w->p->clock,
		.node = str_from(w->p->node),
		.source = config_str(c, CONFIG_EVENT_SOURCE),
		.account = config_str(c, CONFIG_EVENT_ACCOUNT),
		.region = config_str(c, CONFIG_EVENT_REGION),
		.routine = STR(SANDBOX_ROUTINE_EVENTS),
		.chained = STR(SANDBOX_SUBJECTS),
		.last_event = sandbox_last_event,
		.queues = w->heard.queues,
		.queue_count = w->heard.queue_count,
		.routes = w->heard.routes,
		.route_count = w->heard.route_count,
		.sagas = w->heard.sagas,
		.saga_count = w->heard.saga_count,
		.hooks = service_hooks,
		.hook_count = service_hook_count,
		.is_eager = w->is_alone,
		.lease_ms = SAGA_LEASE_MS,
		.timers_per_sec = config_number(c, CONFIG_TIMERS_PER_SEC),
		.random = id_draw,
		.metrics = w->p->metrics,
	};

	w->kernel = w->p->kernel = kernel_new(&options);
	w->heard.webhook_out = (struct webhook_out){ .kernel = w->kernel,
		                                     .allows_private = w->p->is_dev ||
		                                                       config_number(c, CONFIG_WEBHOOK_PRIVATE),
		                                     .ca_file = config_text(c, CONFIG_WEBHOOK_CA) };
}

enum rc wiring_open(struct parts *p, struct wiring **ret, struct err *e)
{
	struct wiring *w = mem_new(struct wiring);
	enum rc        rc;

	w->p = p;
	w->is_alone = p->store.kind == APP_SQLITE;
	pthread_mutex_init(&w->lock, NULL);
	subscriptions_init(&w->heard, p);
	make_kernel(w);
	if ((p->leases || p->guard) && p->metrics)
		w->figures = figures_new(p->store.store, p->metrics, w->is_alone, clock_now(&p->clock).ms);
	clock_watch_init(&w->clock_watch, p->store.store, &p->clock, w->is_alone ? "machine" : w->p->node);
	*ret = w;
	if (!w->is_alone) /* the store may be away now; the pulse sees to it later */
		return RC_OK;
	if ((rc = clock_watch_resume(&w->clock_watch, e)) || (rc = kernel_prime(w->kernel, e)) ||
	    (rc = webhook_refresh(w->kernel, e)))
		return rc;
	return kernel_recover(w->kernel, e);
}

/* --- the pulse --- */

/* What fails here is tried again at the next tick; the store's health is told elsewhere. */
static enum rc try_now(struct wiring *w, txn_fn *run, void *arg)
{
	return store_run(w->p->store.store, run, arg, NULL, NULL);
}

/* What a beat would have said that the store did not take, the next one says. */
static void beat(struct wiring *w)
{
	uint64_t failed = store_counts(w->p->store.store).failed_commits;
	int64_t  slowest_ms = store_take_slowest_ms(w->p->store.store);

	if (slowest_ms > w->self.slowest_ms)
		w->self.slowest_ms = slowest_ms;
	w->self.failed_commits = (int64_t)(failed - w->failed_commits);
	if (try_now(w, node_beat, &w->self) == RC_OK) {
		w->failed_commits = failed;
		w->self.slowest_ms = 0;
	}
	signin_refresh(w->p->signin);
	if (w->figures && (w->is_alone || w->beats++ % FIGURE_BEATS == 0))
		rc_ignore(figures_refresh(w->figures, NULL)); /* comes again */
}

/* When it changes; and with each beat while it is open, so that a process that has ended is not believed for ever. */
static void state_circuit(struct wiring *w, bool is_beat)
{
	bool        is_open = csp_breaker_is_open(w->p->csp, NULL);
	struct fact fact = { .name = STR("circuit/csp"),
		             .value = is_open,
		             .text = is_open ? STR("calls to the sandbox vendor are held back")
		                             : STR("calls go through") };

	if (is_open == w->was_circuit_open && !(is_open && is_beat))
		return;
	if (try_now(w, fact_state, &fact) == RC_OK)
		w->was_circuit_open = is_open;
}

/* What other nodes have written. */
static void refresh_policy(struct wiring *w)
{
	struct err e = { 0 };
	bool       is_bad = policy_holder_refresh(w->p->leases->policies, &e) == RC_CORRUPT;

	if (is_bad && !w->was_policy_bad)
		log_write(LOG_ERROR, "policy", NULL, 0, "the stored configuration cannot be used: %s", e.msg);
	w->was_policy_bad = is_bad;
}

/* As whoever asks /metrics sees them; where the store does not answer, as they were. */
static void log_metrics(struct wiring *w)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct gauges                    gauges;

	gauges_init(&gauges, w->kernel);
	if (store_read(w->p->store.store, gauges_count, &gauges, &a, NULL) == RC_OK)
		gauges_set(w->p->metrics, &gauges);
	gauges_read(w->p->metrics, w->p->store.store);
	metrics_set(w->p->metrics, METRIC_CSP_CIRCUIT_OPEN, csp_breaker_is_open(w->p->csp, NULL));
	metrics_log(w->p->metrics);
}

static void check_alarms(struct wiring *w)
{
	const struct lease_parts   *leases = w->p->leases;
	struct broker_alarm_context context = { .settings = &w->p->settings,
		                                .has_leases = leases != NULL,
		                                .has_aws = leases && w->p->aws->cloud,
		                                .accounts_low_water = config_number(w->p->config,
		                                                                    CONFIG_ACCOUNTS_LOW_WATER) };
	struct alarm_check          check = {
		         .kernel = w->kernel, .rules = service_alarms, .rule_count = service_alarm_count, .arg = &context
	};
	struct err e = { 0 };

	if (leases || w->p->guard) /* else nobody rests here */
		context.rules = leases ? &leases->rules : &w->p->guard->rules;
	if (alarm_check(&check, &e))
		log_write(LOG_WARNING, "alarms", NULL, 0, "not all alarms could be computed: %s", e.msg);
}

/* Of the simulated cloud, to the inbox. False: comes again. */
static bool take_in(struct wiring *w, const struct sim_due_event *due, struct arena *a)
{
	struct intake_record *records;
	size_t                count;
	struct err            e = { 0 };

	if (intake_parse(STR("cloudtrail"), due->body, a, &records, &count, &e)) {
		log_write(LOG_ERROR, "cloud", NULL, 0, "an event of the simulated cloud makes no sense: %s", e.msg);
		return true; /* it will not get better */
	}
	for (size_t i = 0; i < count; i++)
		if (try_now(w, intake_store,
		            &(struct intake_call){ .source = STR("cloudtrail"), .record = &records[i] }))
			return false;
	return true;
}

static void bring_events(struct wiring *w)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct sim_due_event            *due;
	size_t                           count, taken = 0;

	if (sim_cloud_take_events(w->p->sim, SIM_EVENTS_MAX, &a, &due, &count, NULL) == RC_OK)
		while (taken < count && take_in(w, &due[taken], &a))
			taken++;
	if (taken) /* else they come again and are known */
		rc_ignore(sim_cloud_drop_events(w->p->sim, due, taken, NULL));
}

/* False: stop. */
static bool wait_tick(struct wiring *w)
{
	int64_t until_ms = mono_now().ms + TICK_MS;

	LOCKED(&w->lock);
	while (!w->is_stopping && cond_wait_until(&w->is_changed, &w->lock, until_ms))
		;
	return !w->is_stopping;
}

static void *pulse_loop(void *arg)
{
	struct wiring *w = arg;
	unsigned       alarm_ticks = (unsigned)config_number(w->p->config, CONFIG_ALARM_INTERVAL);
	unsigned       log_ticks = (unsigned)config_number(w->p->config, CONFIG_LOG_METRICS);

	for (unsigned tick = 0;; tick++) {
		bool is_beat = tick % BEAT_TICKS == 0;

		if (is_beat)
			beat(w);
		if (w->p->leases && tick % POLICY_TICKS == 0)
			refresh_policy(w);
		if (!w->is_alone)
			rc_ignore(webhook_refresh(w->kernel, NULL));
		store_watch_look(&w->store_watch, w->p->store.store, &w->p->clock);
		if (tick % POLICY_TICKS == 0)
			rc_ignore(claims_switch_refresh(&w->p->claims, w->p->store.store,
			                                NULL)); /* then it stays as it was */
		state_circuit(w, is_beat);
		if (is_beat)
			messages_tell(w->p->messages), aws_parts_tell(w->p->aws);
		if (tick % FIGURES_TICKS == 0)
			messages_write_figures(w->p->messages);
		clock_watch_tell(&w->clock_watch, is_beat);
		if (tick % REARM_TICKS == REARM_TICKS - 1) { /* what was put off by a clock that was wrong, too far */
			rc_ignore(try_now(w, queue_rearm, w->kernel));
			rc_ignore(try_now(w, jobs_arm, w->p->jobs));
		}
		if (w->p->sim)
			bring_events(w);
		signin_refresh_users(w->p->signin);
		if (tick % alarm_ticks == alarm_ticks - 1)
			check_alarms(w);
		if (log_ticks && tick % log_ticks == log_ticks - 1)
			log_metrics(w);
		if (w->begin && w->begin(w->begin_arg))
			w->begin = NULL;
		if (!wait_tick(w))
			return NULL;
	}
}

/* --- where nothing runs all the time --- */

enum rc wiring_arm(struct wiring *w, struct err *e)
{
	struct store *store = w->p->store.store;
	enum rc       rc = webhook_refresh(w->kernel, e);

	if (rc || (rc = store_run(store, queue_rearm, w->kernel, NULL, e)))
		return rc;
	return store_run(store, jobs_arm, w->p->jobs, NULL, e);
}

void wiring_watch(struct wiring *w)
{
	messages_tell(w->p->messages);
	aws_parts_tell(w->p->aws);
	check_alarms(w);
}

/* --- start and stop --- */

void wiring_start(struct wiring *w, struct api *api, bool (*begin)(void *arg), void *arg)
{
	struct pump_options options = { .kernel = w->kernel,
		                        .workers = (unsigned)config_number(w->p->config, CONFIG_WORKERS) + JOB_COUNT,
		                        .poll_ms = config_number(w->p->config, CONFIG_POLL) };

	w->begin = begin;
	w->begin_arg = arg;
	w->self = (struct node){ .id = str_from(w->p->node), .started_ms = clock_now(&w->p->clock).ms };
	w->pump = pump_start(&options);
	kernel_on_news(w->kernel, pump_poke, w->pump);
	kernel_on_events(w->kernel, streams_poke_later, api->streams);
	cond_init(&w->is_changed);
	messages_start(w->p->messages); /* the pulse looks at what it starts */
	mem_must(!pthread_create(&w->pulse, NULL, pulse_loop, w), "a thread");
}

void wiring_stop(struct wiring *w)
{
	if (!w || !w->pump)
		return;
	messages_stop(w->p->messages);
	pthread_mutex_lock(&w->lock);
	w->is_stopping = true;
	pthread_cond_broadcast(&w->is_changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->pulse, NULL);
	messages_end(w->p->messages);
	kernel_on_news(w->kernel, NULL, NULL);
	kernel_on_events(w->kernel, NULL, NULL);
	pump_stop(w->pump);
	w->pump = NULL;
	rc_ignore(try_now(w, node_leave, &w->self)); /* else the others notice its silence */
	pthread_cond_destroy(&w->is_changed);
}

void wiring_free(struct wiring *w)
{
	if (!w)
		return;
	figures_free(w->figures);
	kernel_free(w->kernel);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
