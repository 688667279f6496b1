/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wiring.c - queues, routes and the threads that serve them.
 *
 * The tables here are the answer to "who hears of it". The pulse is one thread that does what has to be done every now and then by each
 * process: say that it lives, compute the alarms, look whether other nodes have made webhooks, state what only this process sees, bring
 * the simulated cloud's events to the inbox, look whether other nodes have changed the policy. None of it is needed for anything to be right, only for it to be noticed.
 */
#include "app/wiring.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "app/config.h"
#include "app/guarding.h"
#include "app/lending.h"
#include "app/signin.h"
#include "base/arena.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernel/intake.h"
#include "kernel/kernel.h"
#include "kernel/node.h"
#include "kernel/pump.h"
#include "kernel/queue.h"
#include "kernel/recover.h"
#include "kernel/webhook.h"
#include "providers/csp/guard.h"
#include "providers/notify/lease_mail.h"
#include "providers/notify/log_sink.h"
#include "providers/notify/mail.h"
#include "providers/notify/webhook_out.h"
#include "providers/sim/cloud.h"
#include "service/alarms.h"
#include "service/broker_alarms.h"
#include "service/cloudtrail.h"
#include "service/jobs.h"
#include "service/leases.h"
#include "service/sandbox_events.h"
#include "service/policy_store.h"
#include "store/store.h"

enum {
	TICK_MS = 1000,
	BEAT_TICKS = 10,
	POLICY_TICKS = 5,
	SAGA_LEASE_MS = 30000,
};

enum {
	QUEUE_JOBS,
	QUEUE_WEBHOOK,
	QUEUE_WEBHOOK_OUT,
	QUEUE_MAIL,
	QUEUE_MAIL_OUT,
	QUEUE_LOG,
	QUEUE_CLOUDTRAIL,
	QUEUE_COUNT /* those of leases, or of the guard, follow */
};
enum {
	ROUTES_MAX = 8 + LENDING_ROUTES + LEASE_ROUTE_COUNT + GUARDING_ROUTES,
	QUEUES_MAX = QUEUE_COUNT + LENDING_QUEUES + GUARDING_QUEUES,
	SAGAS_MAX = 1 + GUARDING_SAGAS,
};

const char *const wiring_inboxes[] = { "cloudtrail" };
const size_t      wiring_inbox_count = ARRAY_LEN(wiring_inboxes);

struct wiring {
	struct wiring_options   o;
	char                    node[ID_UUID_SIZE];
	struct queue            queues[QUEUES_MAX];
	size_t                  queue_count;
	struct route            routes[ROUTES_MAX];
	size_t                  route_count;
	struct webhook_out      webhook_out;
	struct mail_rule        mail_rule;
	struct mail_routes      mail_routes;
	struct mail_server      mail_server;
	const struct saga_kind *sagas[SAGAS_MAX];
	size_t                  saga_count;
	struct kernel          *kernel;
	struct pump            *pump;

	pthread_t       pulse;
	pthread_mutex_t lock;
	pthread_cond_t  is_changed;
	bool            is_stopping;
	struct node     self;
	uint64_t        failed_commits;   /* at the last beat */
	bool            was_circuit_open; /* as it was stated last */
	bool            was_policy_bad;
};

/* --- tables --- */

static void add_route(struct wiring *w, const char *pattern, const char *queue)
{
	if (pattern && *pattern)
		w->routes[w->route_count++] = (struct route){ pattern, queue };
}

static bool has_mail(const struct config *c)
{
	return config_text(c, CONFIG_SMTP_URL) != NULL;
}

static void lay_routes(struct wiring *w)
{
	const struct config *c = w->o.config;

	add_route(w, EVENT_JOB_DUE, JOBS_QUEUE);
	add_route(w, EVENT_JOB_REQUESTED, JOBS_QUEUE);
	add_route(w, "*", "webhook");
	add_route(w, "cloudtrail:*", "cloudtrail");
	for (size_t i = 0; w->o.lending && i < LENDING_ROUTES; i++)
		add_route(w, lending_routes[i].pattern, lending_routes[i].queue);
	for (size_t i = 0; w->o.lending && i < LEASE_ROUTE_COUNT; i++)
		add_route(w, lease_routes[i].pattern, lease_routes[i].queue);
	for (size_t i = 0; w->o.guarding && i < GUARDING_ROUTES; i++)
		add_route(w, guarding_route(i).pattern, guarding_route(i).queue);
	add_route(w, config_text(c, CONFIG_LOG_EVENTS), "log");
	if (!has_mail(c))
		return;
	add_route(w, config_text(c, CONFIG_MAIL_EVENTS), "mail");
	if (w->o.lending)
		add_route(w, LEASE_MAIL_EVENTS, "mail");
}

static struct queue sink(const struct wiring *w, const char *name, queue_call_fn *call, void *arg)
{
	return (struct queue){ .name = name,
		               .call = call,
		               .arg = arg,
		               .tries = config_number(w->o.config, CONFIG_SINK_TRIES),
		               .backoff_ms = config_number(w->o.config, CONFIG_SINK_BACKOFF) };
}

static void make_queues(struct wiring *w)
{
	w->queues[QUEUE_JOBS] = jobs_queue(w->o.jobs);
	w->queues[QUEUE_WEBHOOK] = (struct queue){ .name = "webhook",
		                                   .handle = webhook_fan_out,
		                                   .has_addressees = true };
	w->queues[QUEUE_WEBHOOK_OUT] = sink(w, "webhook-out", webhook_out_call, &w->webhook_out);
	w->queues[QUEUE_MAIL] = (struct queue){ .name = "mail", .handle = mail_fan_out, .arg = &w->mail_routes };
	w->queues[QUEUE_MAIL_OUT] = sink(w, "mail-out", mail_out_call, &w->mail_server);
	w->queues[QUEUE_LOG] = (struct queue){ .name = "log", .handle = log_sink_handle, .is_heard = true };
	w->queue_count = QUEUE_COUNT;
	if (w->o.lending) {
		lending_queues(w->o.lending, w->queues + w->queue_count);
		w->queue_count += LENDING_QUEUES;
	}
	if (w->o.guarding) {
		guarding_queues(w->o.guarding, w->queues + w->queue_count);
		w->queue_count += GUARDING_QUEUES;
	}
	w->queues[QUEUE_CLOUDTRAIL] = (struct queue){ .name = "cloudtrail", .handle = cloudtrail_note, .tries = 5 };
}

static struct mail_server mail_server(const struct config *c)
{
	return (struct mail_server){ .url = config_text(c, CONFIG_SMTP_URL),
		                     .tls = config_number(c, CONFIG_SMTP_TLS) ? MAIL_TLS_REQUIRED : MAIL_TLS_IF_OFFERED,
		                     .user = config_text(c, CONFIG_SMTP_USER),
		                     .password = config_text(c, CONFIG_SMTP_PASSWORD),
		                     .from = config_text(c, CONFIG_MAIL_FROM),
		                     .ca_file = config_text(c, CONFIG_SMTP_CA) };
}

static struct mail_rule mail_rule(const struct config *c)
{
	return (struct mail_rule){ config_str(c, CONFIG_MAIL_EVENTS), config_str(c, CONFIG_MAIL_TO) };
}

enum rc wiring_check(const struct config *c, struct err *e)
{
	struct mail_server server = mail_server(c);
	struct mail_rule   rule = mail_rule(c);
	enum rc            rc;

	if (!has_mail(c))
		return RC_OK;
	if ((rc = mail_server_check(&server, e)))
		return err_wrap(e, rc, "mail settings (LEASEHOLD_SMTP_*, LEASEHOLD_MAIL_FROM)");
	rc = mail_routes_check(&(struct mail_routes){ .rules = &rule, .rule_count = 1 }, e);
	return rc ? err_wrap(e, rc, "mail settings (%s)", config_name(CONFIG_MAIL_TO)) : RC_OK;
}

/* --- open --- */

static uint64_t draw(void *arg)
{
	(void)arg;
	return id_fast_random();
}

static void make_kernel(struct wiring *w)
{
	const struct config  *c = w->o.config;
	struct kernel_options options = {
		.store = w->o.store,
		.clock = w->o.clock,
		.node = str_from(w->node),
		.source = config_str(c, CONFIG_EVENT_SOURCE),
		.account = config_str(c, CONFIG_EVENT_ACCOUNT),
		.region = config_str(c, CONFIG_EVENT_REGION),
		.routine = STR(SANDBOX_ROUTINE_EVENTS),
		.chained = STR(SANDBOX_SUBJECTS),
		.last_event = sandbox_last_event,
		.queues = w->queues,
		.queue_count = w->queue_count,
		.routes = w->routes,
		.route_count = w->route_count,
		.sagas = w->sagas,
		.saga_count = w->saga_count,
		.is_eager = w->o.is_alone,
		.lease_ms = SAGA_LEASE_MS,
		.timers_per_sec = config_number(c, CONFIG_TIMERS_PER_SEC),
		.random = draw,
		.metrics = w->o.metrics,
	};

	w->kernel = kernel_new(&options);
	w->webhook_out = (struct webhook_out){ .kernel = w->kernel,
		                               .allows_private = w->o.is_dev ||
		                                                 config_number(c, CONFIG_WEBHOOK_PRIVATE),
		                               .ca_file = config_text(c, CONFIG_WEBHOOK_CA) };
}

enum rc wiring_open(const struct wiring_options *o, struct wiring **ret, struct err *e)
{
	struct wiring *w = mem_new(struct wiring);
	enum rc        rc;

	w->o = *o;
	id_uuid(w->node);
	pthread_mutex_init(&w->lock, NULL);
	w->mail_server = mail_server(o->config);
	w->mail_rule = mail_rule(o->config);
	w->mail_routes = (struct mail_routes){ .rules = &w->mail_rule, .rule_count = 1 };
	if (o->lending) {
		w->sagas[w->saga_count++] = lending_saga(o->lending);
		w->mail_routes.find = lease_mail_recipients;
		w->mail_routes.find_arg = signin_identity(o->signin);
	}
	for (size_t i = 0; o->guarding && i < GUARDING_SAGAS; i++)
		w->sagas[w->saga_count++] = guarding_saga(o->guarding, i);
	lay_routes(w);
	make_queues(w);
	make_kernel(w);
	*ret = w;
	if (!o->is_alone) /* the store may be away now; the pulse sees to it later */
		return RC_OK;
	if ((rc = kernel_prime(w->kernel, e)) || (rc = webhook_refresh(w->kernel, e)))
		return rc;
	return kernel_recover(w->kernel, e);
}

struct kernel *wiring_kernel(struct wiring *w)
{
	return w->kernel;
}

/* --- the pulse --- */

/* What fails here is tried again at the next tick; the store's health is told elsewhere. */
static enum rc try_now(struct wiring *w, txn_fn *run, void *arg)
{
	struct arena a = { 0 };
	enum rc      rc = store_run(w->o.store, run, arg, &a, NULL);

	arena_fini(&a);
	return rc;
}

/* What a beat would have said that the store did not take, the next one says. */
static void beat(struct wiring *w)
{
	uint64_t failed = store_counts(w->o.store).failed_commits;
	int64_t  slowest_ms = store_take_slowest_ms(w->o.store);

	if (slowest_ms > w->self.slowest_ms)
		w->self.slowest_ms = slowest_ms;
	w->self.failed_commits = (int64_t)(failed - w->failed_commits);
	if (try_now(w, node_beat, &w->self) == RC_OK) {
		w->failed_commits = failed;
		w->self.slowest_ms = 0;
	}
	rc_ignore(webhook_refresh(w->kernel, NULL));
	signin_refresh_keys(w->o.signin);
}

/* When it changes; and with each beat while it is open, so that a process that has ended is not believed for ever. */
static void state_circuit(struct wiring *w, bool is_beat)
{
	bool        is_open = csp_guard_is_open(w->o.csp, NULL);
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
	bool       is_bad = policy_holder_refresh(lending_policies(w->o.lending), &e) == RC_CORRUPT;

	if (is_bad && !w->was_policy_bad)
		log_write(LOG_ERROR, "policy", NULL, 0, "the stored configuration cannot be used: %s", e.msg);
	w->was_policy_bad = is_bad;
}

/* NULL: nobody rests here. */
static const struct hold_rules *rest_rules(const struct wiring *w)
{
	if (w->o.lending)
		return lending_world(w->o.lending)->rules;
	return w->o.guarding ? guarding_rules(w->o.guarding) : NULL;
}

static void check_alarms(struct wiring *w)
{
	struct broker_alarm_context context = { .settings = w->o.settings,
		                                .has_leases = w->o.lending != NULL,
		                                .accounts_low_water = config_number(w->o.config,
		                                                                    CONFIG_ACCOUNTS_LOW_WATER),
		                                .rules = rest_rules(w) };
	struct alarm_check          check = {
		         .kernel = w->kernel, .rules = service_alarms, .rule_count = service_alarm_count, .arg = &context
	};
	struct err e = { 0 };

	if (alarm_check(&check, &e))
		log_write(LOG_WARNING, "alarms", NULL, 0, "not all alarms could be computed: %s", e.msg);
}

static bool take_in(struct wiring *w, const struct sim_due_event *due, struct arena *a)
{
	struct intake_record *records;
	size_t                count;
	struct err            e = { 0 };

	if (intake_parse(STR("cloudtrail"), due->body, a, &records, &count, &e)) {
		log_write(LOG_ERROR, "cloud", NULL, 0, "an event of the simulated cloud makes no sense: %s", e.msg);
		return true; /* it will not get better */
	}
	for (size_t i = 0; i < count; i++) {
		struct intake_call call = { .source = STR("cloudtrail"), .record = &records[i] };

		if (store_run(w->o.store, intake_store, &call, a, NULL))
			return false; /* comes again */
	}
	return true;
}

static void bring_events(struct wiring *w)
{
	struct arena          a = { 0 };
	struct sim_due_event *due;
	size_t                count, taken = 0;

	if (!w->o.cloud)
		return;
	if (sim_cloud_take_events(w->o.cloud, SIM_EVENTS_MAX, &a, &due, &count, NULL) == RC_OK) {
		while (taken < count && take_in(w, &due[taken], &a))
			taken++;
		if (taken)
			rc_ignore(sim_cloud_drop_events(w->o.cloud, due, taken,
			                                NULL)); /* else they come again and are known */
	}
	arena_fini(&a);
}

/* False: stop. */
static bool wait_tick(struct wiring *w)
{
	struct timespec until;
	bool            may_go_on;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TICK_MS / 1000;
	pthread_mutex_lock(&w->lock);
	while (!w->is_stopping && pthread_cond_timedwait(&w->is_changed, &w->lock, &until) == 0)
		;
	may_go_on = !w->is_stopping;
	pthread_mutex_unlock(&w->lock);
	return may_go_on;
}

static void *pulse_loop(void *arg)
{
	struct wiring *w = arg;
	unsigned       alarm_ticks = (unsigned)config_number(w->o.config, CONFIG_ALARM_INTERVAL);

	for (unsigned tick = 0;; tick++) {
		bool is_beat = tick % BEAT_TICKS == 0;

		if (is_beat)
			beat(w);
		if (w->o.lending && tick % POLICY_TICKS == 0)
			refresh_policy(w);
		state_circuit(w, is_beat);
		bring_events(w);
		signin_refresh_users(w->o.signin);
		if (tick % alarm_ticks == alarm_ticks - 1)
			check_alarms(w);
		if (!wait_tick(w))
			return NULL;
	}
}

/* --- start and stop --- */

static void poke_pump(void *arg)
{
	pump_poke(arg);
}

static void init_pulse(struct wiring *w)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->is_changed, &attr);
	pthread_condattr_destroy(&attr);
	w->self = (struct node){ .id = str_from(w->node), .started_ms = clock_now(w->o.clock).ms };
}

void wiring_start(struct wiring *w, void (*on_events)(void *arg), void *arg)
{
	w->pump = pump_start(
	        &(struct pump_options){ .kernel = w->kernel,
	                                .workers = (unsigned)config_number(w->o.config, CONFIG_WORKERS) + JOB_COUNT,
	                                .poll_ms = config_number(w->o.config, CONFIG_POLL) });
	kernel_on_news(w->kernel, poke_pump, w->pump);
	kernel_on_events(w->kernel, on_events, arg);
	init_pulse(w);
	if (pthread_create(&w->pulse, NULL, pulse_loop, w))
		abort(); /* without threads there is no program */
}

void wiring_stop(struct wiring *w)
{
	if (!w || !w->pump)
		return;
	pthread_mutex_lock(&w->lock);
	w->is_stopping = true;
	pthread_cond_broadcast(&w->is_changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->pulse, NULL);
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
	kernel_free(w->kernel);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
