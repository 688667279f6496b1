/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - the only place that sees everything.
 *
 * Start: folder, lock, store, vendor, kernel, api, sockets, jobs; each step that fails says why and undoes nothing by hand, because
 * close_all() takes down whatever is there. Stop (SIGTERM, SIGINT): no new connections, the waiting line is sent home,
 * requests under way are answered, jobs end at their next wait, the store commits what it has, and the process ends with
 * 0. A second signal does not wait for clients. SIGHUP reads tokens and certificates again: all of them, or none.
 *
 * Threads: this one (the loop), the store's own (writer and reader, or workers), those of the kernel (wiring.c), on DynamoDB the
 * adopter at the start. The simulated vendor has a store of its own.
 */
#include "app/serve.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "app/config.h"
#include "app/guarding.h"
#include "app/lending.h"
#include "app/preflight.h"
#include "app/signin.h"
#include "app/stores.h"
#include "app/tokens.h"
#include "app/welcome.h"
#include "app/wiring.h"
#include "app/world_clock.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"
#include "http/api.h"
#include "http/server.h"
#include "net/fetch.h"
#include "providers/csp/guard.h"
#include "providers/csp/http.h"
#include "providers/sim/cloud.h"
#include "providers/sim/csp_sim.h"
#include "providers/sim/records.h"
#include "service/jobs.h"
#include "store/sqlite.h"
#include "store/store.h"

enum {
	DRAIN_MS = 30000,
	DDB_GAUGES_MS = 60000,
	SQLITE_GAUGES_MS = 1000,
	SIM_CACHE_MB = 16,
	DDB_STREAM_LAG_MS = 2000,
	RETENTION_SEC = 3600,
	LINE_SEC = 60,
	DAY_SEC = 86400,
	EXIT_CONFIG = 2,
	EXIT_FAILED = 1
};

struct server {
	struct config         *config;
	bool                   is_dev;
	int                    lock_fd;
	uv_loop_t              loop;
	uv_signal_t            on_term, on_int, on_hup;
	struct clock           clock; /* of all that is stored; sign-in, the wire and the vendor keep the machine's */
	struct app_store       store;
	struct store          *sim_store; /* of the simulated vendor and cloud; NULL when there is a real vendor */
	struct sim_cloud      *sim;
	struct wiring         *wiring;
	struct signin         *signin;
	struct csp            *csp; /* guarded */
	struct metrics        *metrics;
	struct lending        *lending;  /* NULL: no leases here */
	struct guarding       *guarding; /* NULL: we guard nobody's accounts */
	struct broker_settings settings;
	struct api            *api;
	struct jobs           *jobs;
	struct http_server    *http, *probe;
	int                    undrained; /* servers that still have connections */
	bool                   is_stopping;

	pthread_t       adopter;
	pthread_mutex_t lock; /* of what the adopter waits for */
	pthread_cond_t  ends;
	bool            is_ending;
};

/* --- start --- */

static const char *in_data(struct server *s, const char *name)
{
	return str_format(&s->config->arena, "%s/%s", config_text(s->config, CONFIG_DATA), name).p;
}

static enum rc open_sqlite(struct server *s, struct err *e)
{
	enum rc rc = app_open_sqlite(s->config, config_text(s->config, CONFIG_DATA), &s->clock, &s->store, e);

	if (!rc && s->is_dev)
		rc = world_clock(s->store.store, config_number(s->config, CONFIG_TIME_SCALE), &s->clock, e);
	return rc;
}

static enum rc open_store(struct server *s, struct err *e)
{
	if (config_number(s->config, CONFIG_STORE) == APP_SQLITE)
		return open_sqlite(s, e);
	app_open_dynamodb(s->config, &s->store);
	return RC_OK;
}

static enum rc start_pools(struct server *s, struct err *e)
{
	enum rc rc = s->lending ? lending_start(s->lending, e) : RC_OK;

	return !rc && s->guarding ? guarding_start(s->guarding, e) : rc;
}

static enum rc begin_work(struct server *s, struct err *e)
{
	enum rc rc = ddb_adopt(s->store.store, e);

	if (!rc)
		rc = start_pools(s, e);
	if (!rc)
		rc = jobs_start(s->jobs, e);
	if (!rc)
		api_open_doors(s->api);
	return rc;
}

/* On DynamoDB, before the first request: allocations of other programs get their markers. When the store is away at the start,
 * this goes on until it is back. */
static void *adopt(void *arg)
{
	struct server *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->is_ending && !api_is_open(s->api)) {
		struct timespec until;
		enum rc         rc;

		pthread_mutex_unlock(&s->lock);
		rc = begin_work(s, NULL);
		pthread_mutex_lock(&s->lock);
		if (!rc)
			continue;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&s->ends, &s->lock, &until);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void start_adopting(struct server *s)
{
	struct err e = { 0 };

	if (s->store.kind != APP_DYNAMODB)
		return;
	if (begin_work(s, &e)) /* the usual case: open from the first request on */
		log_write(LOG_WARNING, "serve", NULL, 0, "the store is not ready, waiting for it: %s", e.msg);
	if (pthread_create(&s->adopter, NULL, adopt, s))
		abort(); /* without threads there is no program */
}

static void stop_adopting(struct server *s)
{
	if (s->store.kind != APP_DYNAMODB)
		return;
	pthread_mutex_lock(&s->lock);
	s->is_ending = true;
	pthread_cond_broadcast(&s->ends);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->adopter, NULL);
}

static uint64_t draw(void *arg)
{
	(void)arg;
	return id_fast_random();
}

/* The simulated cloud, durable in a file of its own: as any other cloud it goes on when we do not, and nodes on one machine can share it. */
static enum rc open_sim(struct server *s, struct err *e)
{
	const char              *shared = config_text(s->config, CONFIG_SIM_FILE);
	struct sqlite_options    file = { shared ? shared : in_data(s, "sim.db"), sim_types, sim_type_count, &s->clock,
		                       SIM_CACHE_MB };
	struct sim_cloud_options options = { .clock = &clock_real,
		                             .random = draw,
		                             .waits = true,
		                             .available = config_number(s->config, CONFIG_SIM_ACCOUNTS),
		                             .accounts = config_number(s->config, CONFIG_SIM_ACCOUNTS) +
		                                         config_number(s->config, CONFIG_SIM_ENTRY) };
	enum rc                  rc = store_sqlite_open(&file, &s->sim_store, e);

	if (rc)
		return rc;
	options.store = s->sim_store;
	return sim_cloud_open(&options, &s->sim, e);
}

static enum rc open_sim_csp(struct server *s, struct csp **ret, struct err *e)
{
	return csp_sim_open(&(struct csp_sim_options){ s->sim_store, sim_cloud_faults(s->sim),
	                                               config_number(s->config, CONFIG_SIM_SANDBOXES) },
	                    ret, e);
}

static enum rc open_csp(struct server *s, struct err *e)
{
	const struct config     *c = s->config;
	struct csp              *inner = NULL;
	struct csp_guard_options guard = {
		.threshold = (unsigned)config_number(c, CONFIG_BREAKER_THRESHOLD),
		.timeout_ms = config_number(c, CONFIG_BREAKER_TIMEOUT),
		.clock = &clock_real,
	};
	struct csp_http_options http = {
		.base_url = config_text(c, CONFIG_CSP_URL),
		.token = config_text(c, CONFIG_CSP_TOKEN),
		.connect_timeout_ms = (long)config_number(c, CONFIG_CSP_CONNECT),
		.total_timeout_ms = (long)config_number(c, CONFIG_CSP_READ),
		.ca_file = config_text(c, CONFIG_CSP_CA),
	};
	enum rc rc;

	if ((!http.base_url || lending_is_wanted(c) || guarding_is_wanted(c)) && (rc = open_sim(s, e)))
		return rc;
	if (http.base_url) {
		inner = csp_http_open(&http);
	} else if ((rc = open_sim_csp(s, &inner, e))) {
		return rc;
	}
	s->csp = csp_guard_open(inner, &guard);
	return RC_OK;
}

static void on_pass(void *arg)
{
	struct server *s = arg;

	api_poke_line(s->api);
}

static struct broker_settings broker_settings(const struct config *c)
{
	return (struct broker_settings){
		.lab_hours = config_number(c, CONFIG_LAB_HOURS),
		.grace_sec = config_number(c, CONFIG_GRACE_MINUTES) * 60,
		.deletion_max_attempts = config_number(c, CONFIG_DELETION_ATTEMPTS),
		.deletion_backoff_sec = config_number(c, CONFIG_DELETION_BACKOFF),
		.cleanup_batch_size = config_number(c, CONFIG_CLEANUP_BATCH),
		.cleanup_batch_delay_ms = config_number(c, CONFIG_CLEANUP_BATCH_DELAY),
		.cleanup_sandbox_delay_ms = config_number(c, CONFIG_CLEANUP_DELAY),
		.sync_max_stale_percent = config_number(c, CONFIG_MAX_STALE),
		.low_water = config_number(c, CONFIG_LOW_WATER),
		.event_days = config_number(c, CONFIG_EVENT_DAYS),
	};
}

/* NULL: there is no pool of accounts. */
static const struct reconcile_world *reconcile_world(const struct server *s)
{
	if (s->lending)
		return lending_reconcile(s->lending);
	return s->guarding ? guarding_reconcile(s->guarding) : NULL;
}

static void make_jobs(struct server *s)
{
	const struct config *c = s->config;
	struct jobs_options  options = {
		 .store = s->store.store,
		 .csp = s->csp,
		 .settings = &s->settings,
		 .leases = s->lending ? lending_world(s->lending) : NULL,
		 .reconcile = reconcile_world(s),
		 .clock = &s->clock,
		 .metrics = s->metrics,
		 .interval_sec = { [JOB_SYNC] = config_number(c, CONFIG_SYNC_INTERVAL),
		                   [JOB_CLEANUP] = config_number(c, CONFIG_CLEANUP_INTERVAL),
		                   [JOB_EXPIRY] = config_number(c, CONFIG_EXPIRY_INTERVAL),
		                   [JOB_STALE_REMOVAL] = config_number(c, CONFIG_STALE_INTERVAL),
		                   [JOB_EVENT_RETENTION] = RETENTION_SEC },
		 .lease_sec = config_number(c, CONFIG_JOB_LEASE),
		 .on_pass = on_pass,
		 .on_pass_arg = s,
	};

	if (s->lending) {
		options.interval_sec[JOB_LEASE_MONITOR] = config_number(c, CONFIG_MONITOR_INTERVAL);
		options.interval_sec[JOB_LEASE_LINE] = LINE_SEC;
		options.interval_sec[JOB_LEASE_ORPHANS] = DAY_SEC;
		options.interval_sec[JOB_LEASE_PURGE] = DAY_SEC;
		options.interval_sec[JOB_ACCOUNT_DRIFT] = config_number(c, CONFIG_DRIFT_INTERVAL);
	}
	options.interval_sec[JOB_RECONCILE] = config_number(c, CONFIG_RECONCILE_INTERVAL);
	s->settings = broker_settings(c);
	s->jobs = jobs_new(&options);
}

static enum rc open_lending(struct server *s, struct err *e)
{
	return lending_is_wanted(s->config) ? lending_new(s->config, s->store.store, s->sim, &s->lending, e) : RC_OK;
}

static enum rc open_guarding(struct server *s, struct err *e)
{
	if (!guarding_is_wanted(s->config))
		return RC_OK;
	return guarding_new(s->config, s->store.store, s->sim, s->metrics, &s->guarding, e);
}

static enum rc open_wiring(struct server *s, struct err *e)
{
	struct wiring_options options = { .config = s->config,
		                          .store = s->store.store,
		                          .clock = &s->clock,
		                          .metrics = s->metrics,
		                          .csp = s->csp,
		                          .settings = &s->settings,
		                          .jobs = s->jobs,
		                          .cloud = s->sim,
		                          .signin = s->signin,
		                          .is_alone = s->store.kind == APP_SQLITE,
		                          .is_dev = s->is_dev,
		                          .lending = s->lending,
		                          .guarding = s->guarding };

	return wiring_open(&options, &s->wiring, e);
}

static void on_events(void *arg)
{
	api_poke_streams(arg);
}

static bool is_csp_open(void *arg)
{
	return csp_guard_is_open(arg, NULL);
}

static enum rc open_api(struct server *s, struct err *e)
{
	const struct config *c = s->config;
	struct api_tokens    tokens;
	struct api_options   options = {
		  .loop = &s->loop,
		  .store = s->store.store,
		  .kernel = wiring_kernel(s->wiring),
		  .metrics = s->metrics,
		  .low_water = s->settings.low_water,
		  .base_path = config_str(c, CONFIG_BASE_PATH),
		  .cors_origins = config_str(c, CONFIG_CORS),
		  .sends_request_id = config_number(c, CONFIG_REQUEST_ID),
		  .lab_hours = config_number(c, CONFIG_LAB_HOURS),
		  .wait_max_sec = config_number(c, CONFIG_WAIT_MAX),
		  .waiting_max = config_number(c, CONFIG_WAITING_MAX),
		  .rate_per_sec = config_number(c, CONFIG_RATE),
		  .rate_burst = config_number(c, CONFIG_RATE_BURST),
		  .gauges_fresh_ms = s->store.kind == APP_DYNAMODB ? DDB_GAUGES_MS : SQLITE_GAUGES_MS,
		  .is_closed = s->store.kind == APP_DYNAMODB,
		  .stream_lag_ms = s->store.kind == APP_DYNAMODB ? DDB_STREAM_LAG_MS : 0,
		  .inboxes = wiring_inboxes,
		  .inbox_count = wiring_inbox_count,
		  .webhooks_may_be_private = s->is_dev || config_number(c, CONFIG_WEBHOOK_PRIVATE),
		  .is_csp_open = is_csp_open,
		  .csp_arg = s->csp,
		  .world = s->is_dev && s->sim ? sim_cloud_world(s->sim) : NULL,
		  .identity = signin_identity(s->signin),
		  .auth = signin_auth(s->signin),
	};
	enum rc rc = tokens_read(c, &tokens, e);

	if (rc)
		return rc;
	if (s->lending) {
		options.cloud = lending_cloud(s->lending);
		options.costs = lending_cloud(s->lending)->costs;
		options.policy = lending_policies(s->lending);
		options.approval = lending_approval;
		options.approval_arg = s->lending;
		options.admin_accounts = lending_admin_accounts(s->lending);
	}
	options.reconcile = reconcile_world(s);
	s->api = api_new(&options);
	api_set_jobs(s->api, s->jobs);
	api_set_tokens(s->api, &tokens);
	return RC_OK;
}

static enum rc listen_on(struct server *s, const struct http_options *options, const char *way_out,
                         struct http_server **ret, struct err *e)
{
	struct err cause = { 0 };
	enum rc    rc = http_server_open(&s->loop, options, ret, &cause);

	if (!rc)
		return RC_OK;
	return err_set(e, rc, "%s%s", cause.msg, rc == RC_UNAVAILABLE ? way_out : "");
}

static enum rc open_sockets(struct server *s, struct err *e)
{
	const struct config *c = s->config;
	struct http_options  options = {
		 .tls_cert_file = config_text(c, CONFIG_TLS_CERT),
		 .tls_key_file = config_text(c, CONFIG_TLS_KEY),
		 .connections_max = (unsigned)config_number(c, CONFIG_CONNECTIONS),
		 .connections_per_client_max = (unsigned)config_number(c, CONFIG_CONNECTIONS_CLIENT),
		 .header_timeout_ms = (int)config_number(c, CONFIG_HEADER_TIMEOUT),
		 .body_timeout_ms = (int)config_number(c, CONFIG_BODY_TIMEOUT),
		 .idle_timeout_ms = (int)config_number(c, CONFIG_IDLE_TIMEOUT),
		 .write_timeout_ms = (int)config_number(c, CONFIG_WRITE_TIMEOUT),
		 .body_limit = api_body_limit,
		 .on_request = api_on_request,
		 .on_error = api_on_error,
		 .arg = s->api,
	};
	char   *host = NULL;
	enum rc rc = preflight_listen(s->config, &host, &options.port, e);

	if (rc)
		return rc;
	options.host = host;
	rc = listen_on(s, &options, "; choose another with --listen ADDR:PORT (make run LISTEN=ADDR:PORT)", &s->http,
	               e);
	if (rc || !config_number(c, CONFIG_METRICS_PORT))
		return rc;
	options.port = (int)config_number(c, CONFIG_METRICS_PORT);
	options.on_request = api_on_probe;
	return listen_on(s, &options, "; choose another with METRICS_PORT", &s->probe, e);
}

static enum rc start(struct server *s, struct err *e)
{
	enum rc rc;

	if ((rc = app_take_folder(config_text(s->config, CONFIG_DATA), &s->lock_fd, e)))
		return rc;
	if (s->is_dev && ((rc = tokens_prepare_dev(s->config, e)) || (rc = signin_prepare_dev(s->config, e))))
		return rc;
	s->metrics = metrics_new();
	if ((rc = open_store(s, e)))
		return rc;
	if ((rc = open_csp(s, e)))
		return rc;
	if ((rc = signin_open(s->config, s->store.store, &s->signin, e)))
		return rc;
	if ((rc = open_lending(s, e)) || (rc = open_guarding(s, e)))
		return rc;
	make_jobs(s);
	if ((rc = open_wiring(s, e)))
		return rc;
	if (s->store.kind == APP_SQLITE && (rc = start_pools(s, e)))
		return rc;
	if ((rc = open_api(s, e)))
		return rc;
	if ((rc = open_sockets(s, e)))
		return rc;
	if (s->store.kind == APP_SQLITE && (rc = jobs_start(s->jobs, e)))
		return rc;
	start_adopting(s);
	wiring_start(s->wiring, on_events, s->api);
	return RC_OK;
}

/* --- stop --- */

static void on_quiet(void *arg)
{
	struct server *s = arg;

	api_close_handles(s->api);
	uv_close((uv_handle_t *)&s->on_term, NULL);
	uv_close((uv_handle_t *)&s->on_int, NULL);
	uv_close((uv_handle_t *)&s->on_hup, NULL);
}

/* The last connection is closed: the jobs end, then nothing keeps the loop any longer. */
static void on_drained(void *arg)
{
	struct server *s = arg;

	if (--s->undrained)
		return;
	stop_adopting(s);
	wiring_stop(s->wiring);
	jobs_free(s->jobs);
	s->jobs = NULL;
	api_when_quiet(s->api, on_quiet, s); /* clients that hung up may have transactions at the store */
}

static void on_stop(uv_signal_t *signal, int number)
{
	struct server *s = signal->data;
	int            grace_ms = s->is_stopping ? 0 : DRAIN_MS;

	log_write(LOG_INFO, "serve", NULL, 0, "stopping: %s", strsignal(number));
	if (!s->is_stopping) {
		s->is_stopping = true;
		s->undrained = s->probe ? 2 : 1;
		api_stop_waiting(s->api);
	}
	http_server_drain(s->http, grace_ms, on_drained, s);
	if (s->probe)
		http_server_drain(s->probe, grace_ms, on_drained, s);
}

static void close_all(struct server *s)
{
	http_server_free(s->probe);
	http_server_free(s->http);
	api_free(s->api);
	app_store_close(&s->store);
	wiring_free(s->wiring);
	signin_close(s->signin);
	lending_free(s->lending);
	guarding_free(s->guarding);
	csp_close(s->csp);
	sim_cloud_close(s->sim);
	store_close(s->sim_store);
	metrics_free(s->metrics);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
}

/* --- reload --- */

/* What the environment said at the start is all this process will ever see of it. */
static void warn_of_fixed_tokens(const struct config *c)
{
	static const enum setting ids[] = { CONFIG_API_TOKEN, CONFIG_ADMIN_TOKEN, CONFIG_INBOX_TOKENS,
		                            CONFIG_JWT_SECRET };

	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		if (c->values[ids[i]].origin == FROM_ENVIRONMENT)
			log_write(
			        LOG_WARNING, "serve", NULL, 0,
			        "%s comes from the environment, which a running program cannot read again; put it in %s",
			        config_name(ids[i]), CONFIG_FILE_NAME);
}

/* Read everything anew, but take nothing over. */
static void read_again(struct server *s, struct config *fresh, struct api_tokens *ret, struct buf *problems)
{
	const char *file = s->config->file_origin == FROM_COMMAND_LINE ? s->config->file : NULL;
	struct err  e = { 0 };
	enum rc     rc = config_load(fresh, (const char *const *)environ, file, problems);

	if (!rc && s->is_dev) {
		config_set(fresh, CONFIG_DATA, config_str(s->config, CONFIG_DATA), FROM_COMMAND_LINE);
		rc = tokens_prepare_dev(fresh, &e);
		if (!rc)
			rc = signin_prepare_dev(fresh, &e);
	}
	if (!rc)
		rc = tokens_read(fresh, ret, &e);
	if (rc && e.rc)
		buf_addf(problems, "%s\n", e.msg);
	preflight_tls(s->config, problems);
	signin_check(fresh, problems);
}

/* Users and certificates first: they can still fail, and users that are read early do no harm. Both servers have the same files. */
static void take_over(struct server *s, const struct config *fresh, const struct api_tokens *tokens,
                      struct buf *problems)
{
	struct err e = { 0 };
	enum rc    rc = signin_reload_users(s->signin, &e);

	if (!rc)
		rc = http_server_reload_tls(s->http, &e);
	if (!rc && s->probe)
		rc = http_server_reload_tls(s->probe, &e);
	if (rc) {
		buf_addf(problems, "%s\n", e.msg);
		return;
	}
	api_set_tokens(s->api, tokens);
	signin_set_secrets(s->signin, fresh);
}

/* Lines as one line. */
static struct str join_lines(struct arena *a, struct str rest)
{
	struct str all = str_cut(&rest, '\n');

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		all = str_format(a, "%.*s; %.*s", STR_ARG(all), STR_ARG(line));
	}
	return all;
}

static void on_reload(uv_signal_t *signal, int number)
{
	struct server    *s = signal->data;
	struct config     fresh;
	struct api_tokens tokens;
	struct buf        problems;

	(void)number;
	buf_init(&problems, 65536);
	read_again(s, &fresh, &tokens, &problems);
	if (!problems.n)
		take_over(s, &fresh, &tokens, &problems);
	if (problems.n) {
		struct str all = join_lines(&fresh.arena, buf_str(&problems));

		log_write(LOG_ERROR, "serve", NULL, 0, "reload failed, the old settings stay: %.*s", STR_ARG(all));
	} else {
		log_write(LOG_INFO, "serve", NULL, 0, "tokens, users and certificates are read again");
	}
	warn_of_fixed_tokens(&fresh);
	buf_fini(&problems);
	config_fini(&fresh);
}

/* --- run --- */

static void watch_signal(struct server *s, uv_signal_t *handle, int number, uv_signal_cb on_signal)
{
	handle->data = s;
	if (uv_signal_init(&s->loop, handle) || uv_signal_start(handle, on_signal, number))
		abort(); /* never fails for these */
}

static bool is_loopback(struct str listen)
{
	return str_starts_with(listen, STR("127.")) || str_starts_with(listen, STR("[::1]"));
}

/* Without the file commands do not find the server by themselves, but it serves. */
static void welcome(struct server *s, const char *address)
{
	struct err e = { 0 };

	if (welcome_write_client(s->config, address, &e))
		log_write(LOG_WARNING, "serve", NULL, 0, "%s", e.msg);
	welcome_print(s->config, address, s->lending != NULL);
}

static void announce(struct server *s)
{
	bool             is_tls = config_text(s->config, CONFIG_TLS_CERT) != NULL;
	struct str       listen = config_str(s->config, CONFIG_LISTEN);
	const char      *colon = memrchr(listen.p, ':', listen.n);
	struct str       address = str_format(&s->config->arena, "%s://%.*s:%d", is_tls ? "https" : "http",
	                                      (int)(colon - listen.p), listen.p, http_server_port(s->http));
	struct log_field fields[] = {
		LOG_STR("address", address),
		LOG_STR("version", STR(LEASEHOLD_VERSION)),
		LOG_STR("data", config_str(s->config, CONFIG_DATA)),
		LOG_STR("store", config_str(s->config, CONFIG_STORE)),
		LOG_STR("csp", config_text(s->config, CONFIG_CSP_URL) ? STR("http") : STR("simulated")),
	};

	if (s->is_dev)
		welcome(s, address.p);
	log_write(LOG_INFO, "serve", fields, ARRAY_LEN(fields), "listening");
	if (!log_wants(LOG_INFO) &&
	    !(s->is_dev &&
	      isatty(STDOUT_FILENO))) /* a program that started us waits for this line, whatever the level */
		printf("{\"message\":\"listening\",\"address\":\"%s\"}\n", address.p), fflush(stdout);
	if (!s->is_dev && s->lending)
		log_write(LOG_WARNING, "serve", NULL, 0, "%s is set: lending accounts of a simulated organisation",
		          config_name(CONFIG_JWT_SECRET));
	if (!s->is_dev && !config_text(s->config, CONFIG_CSP_URL))
		log_write(LOG_WARNING, "serve", NULL, 0, "no %s: lending simulated sandboxes",
		          config_name(CONFIG_CSP_URL));
	if (!is_tls && !is_loopback(listen))
		log_write(LOG_WARNING, "serve", NULL, 0,
		          "serving beyond this machine without TLS: tokens travel readable (LEASEHOLD_TLS_CERT_FILE)");
}

int serve(struct config *config, bool is_dev)
{
	struct server s = { .config = config,
		            .is_dev = is_dev,
		            .lock_fd = -1,
		            .clock = clock_real,
		            .lock = PTHREAD_MUTEX_INITIALIZER,
		            .ends = PTHREAD_COND_INITIALIZER };
	struct err    e = { 0 };
	enum rc       rc;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a full disk is an error to be answered, not a reason to die */
	umask(077);
	fetch_global_init();
	uv_loop_init(&s.loop);
	rc = start(&s, &e);
	if (rc) {
		/* Ends the process: the system takes back what half a start has opened. */
		fprintf(stderr, "leasehold: %s\n", e.msg);
		_exit(rc == RC_INVALID ? EXIT_CONFIG : EXIT_FAILED);
	}
	watch_signal(&s, &s.on_term, SIGTERM, on_stop);
	watch_signal(&s, &s.on_int, SIGINT, on_stop);
	watch_signal(&s, &s.on_hup, SIGHUP, on_reload);
	announce(&s);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	close_all(&s);
	uv_loop_close(&s.loop);
	log_write(LOG_INFO, "serve", NULL, 0, "stopped");
	log_flush();
	return 0;
}
