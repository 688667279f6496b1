/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - the only place that sees everything.
 *
 * Start: folder, lock, store, vendor, kernel, api, sockets, jobs. A step that fails says why and undoes nothing: the
 * process ends. Stop (SIGTERM, SIGINT): no new connections, waiting claims are turned away, requests under way are
 * answered, jobs end at their next wait, the store commits what it has, and the process ends with 0. A second signal
 * does not wait for clients; later ones change nothing. SIGHUP: reload.c.
 *
 * Threads: this one (the loop), the store's own (writer and reader, or workers), those of the kernel (wiring.c). The
 * simulated vendor has a store of its own. DynamoDB may be unreachable at the start: then the pulse begins the work
 * once it is back.
 */
#include "app/serve.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "app/aws_lending.h"
#include "app/aws_parts.h"
#include "app/config/config.h"
#include "app/dev.h"
#include "app/instance_parts.h"
#include "app/messages.h"
#include "app/parts.h"
#include "app/preflight.h"
#include "app/reload.h"
#include "app/signin.h"
#include "app/watch.h"
#include "app/wiring.h"
#include "base/addr.h"
#include "base/clock.h"
#include "base/steady.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"
#include "domain/ports/csp.h"
#include "http/api/api.h"
#include "http/api/blocking.h"
#include "http/api/line.h"
#include "http/api/ops_stream.h"
#include "http/spec/openapi.h"
#include "http/server/server.h"
#include "kernel/event.h"
#include "net/fetch.h"
#include "providers/aws/access.h"
#include "providers/aws/probe.h"
#include "providers/csp/csp_breaker.h"
#include "providers/csp/http.h"
#include "providers/sim/cloud.h"
#include "providers/sim/records.h"
#include "service/broker/claims_pause.h"
#include "service/jobs/jobs.h"
#include "service/people/people.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

enum { DRAIN_MS = 30000, DDB_GAUGES_MS = 60000, SQLITE_GAUGES_MS = 1000, DDB_STREAM_LAG_MS = 2000, SIM_CACHE_MB = 16 };
enum { RESERVED_FILES = 256 }; /* of the store, kept connections to AWS, the vendor and webhooks, pipes to programs */
enum { RETENTION_SEC = 3600, LINE_SEC = 60, DAY_SEC = 86400, EXIT_CONFIG = 2, EXIT_FAILED = 1 };
enum { FIRST_SOCKET = 3 }; /* of those that were bound for us */

struct server {
	struct parts         p;
	struct serve_options options;
	int                  lock_fd;
	uv_loop_t            loop;
	unsigned             connections_max;
	uv_signal_t          on_term, on_int, on_hup;
	struct reload        reload;
	struct steady        steady;
	const char          *vendor; /* the name of its provider */
	bool                 is_sim_csp;
	struct store        *sim_store; /* of the simulated vendor and cloud; NULL when there is a real vendor */
	struct wiring       *wiring;
	struct api          *api;
	struct http_server  *http, *probe;
	int                  undrained; /* servers that still have connections */
	uv_timer_t           leaving;   /* requests are still taken, until it fires */
	bool                 is_leaving, is_stopping;
	bool                 has_lost;    /* commits, at this start */
	bool                 is_hurrying; /* was told a second time */
};

/* --- start --- */

static enum rc open_store(struct server *s, struct err *e)
{
	const struct config *c = s->p.config;
	struct app_sqlite    how = { .folder = config_text(c, CONFIG_DATA),
		                     .clock = &s->p.clock,
		                     .may_init = s->options.may_init,
		                     .accepts_loss = s->options.accepts_loss };
	enum rc              rc;

	if (config_number(c, CONFIG_STORE) != APP_SQLITE) {
		app_open_dynamodb(c, &s->p.clock, &s->p.store);
		return RC_OK;
	}
	rc = app_open_sqlite(c, &how, &s->p.store, e);
	s->has_lost = how.has_lost;
	if (!rc && s->p.is_dev)
		rc = world_clock(s->p.store.store, config_number(c, CONFIG_TIME_SCALE), &s->p.clock, e);
	return rc;
}

/* Claims that were acknowledged are gone with what was lost: what is in use looks free. */
static enum rc pause_after_loss(struct server *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct event_list                newest = { .is_newest_first = true, .limit = 1 };
	char                             when[ISO_TIME_SIZE] = "an unknown time";
	struct str                       reason;
	enum rc                          rc = store_read(s->p.store.store, event_list, &newest, &a, e);

	if (!rc && newest.count)
		(void)iso_time(newest.events[0].time_ms / 1000, when);
	reason = str_format(&a, "the log of the store was damaged: what was stored after %s is lost", when);
	if (!rc)
		rc = store_run(s->p.store.store, claims_pause_mark, &reason, &a, e);
	if (!rc)
		log_write(LOG_ERROR, "serve", NULL, 0, "%.*s; claims are paused (docs/runbook.md#claims-paused)",
		          STR_ARG(reason));
	return rc;
}

static enum rc start_pools(struct server *s, struct err *e)
{
	enum rc rc = claims_switch_refresh(&s->p.claims, s->p.store.store, e);

	if (!rc && s->p.leases)
		rc = lease_parts_start(s->p.leases, e);
	if (!rc && s->p.guard)
		rc = guard_parts_start(s->p.guard, e);
	return rc ? rc : messages_arm(s->p.messages, e);
}

/* On DynamoDB, before the first request: allocations of other programs get their markers. */
static enum rc begin_work(struct server *s, struct err *e)
{
	enum rc rc;

	if ((rc = ddb_adopt(s->p.store.store, e)) || (rc = start_pools(s, e)) || (rc = jobs_start(s->p.jobs, e)))
		return rc;
	atomic_store(&s->api->is_open, true);
	return RC_OK;
}

static bool try_to_begin(void *arg)
{
	return begin_work(arg, NULL) == RC_OK;
}

/* The simulated cloud, in a file of its own: like any cloud it outlives us, and nodes on one machine can share it. */
static enum rc open_sim(struct server *s, struct err *e)
{
	struct config           *c = s->p.config;
	const char              *shared = config_text(c, CONFIG_SIM_FILE), *data = config_text(c, CONFIG_DATA);
	struct sqlite_options    file = { .path = shared ? shared : str_format(&c->arena, "%s/sim.db", data).p,
		                          .types = sim_types,
		                          .type_count = sim_type_count,
		                          .clock = &s->p.clock,
		                          .cache_mb = SIM_CACHE_MB };
	struct sim_cloud_options options = { .clock = &clock_real,
		                             .random = id_draw,
		                             .waits = true,
		                             .available = config_number(c, CONFIG_SIM_ACCOUNTS),
		                             .accounts = config_number(c, CONFIG_SIM_ACCOUNTS) +
		                                         config_number(c, CONFIG_SIM_ENTRY) };
	enum rc                  rc = store_sqlite_open(&file, &s->sim_store, e);

	if (rc)
		return rc;
	options.store = s->sim_store;
	return sim_cloud_open(&options, &s->p.sim, e);
}

/* The vendor's clock is the second opinion about a date that has jumped. */
static void on_vendor_date(int64_t sec, void *arg)
{
	if (steady_hear(arg, steady_read_machine(), sec * 1000))
		log_write(LOG_WARNING, "clock", NULL, 0,
		          "the vendor's clock says what the machine's does: its date is followed again");
}

static enum rc open_csp(struct server *s, struct err *e)
{
	const struct config       *c = s->p.config;
	struct csp                *inner = NULL;
	struct csp_breaker_options guard = { .threshold = (unsigned)config_number(c, CONFIG_BREAKER_THRESHOLD),
		                             .timeout_ms = config_number(c, CONFIG_BREAKER_TIMEOUT),
		                             .clock = &clock_real };
	struct csp_http_options    http = { .base_url = config_text(c, CONFIG_CSP_URL),
		                            .token = config_text(c, CONFIG_CSP_TOKEN),
		                            .connect_timeout_ms = (long)config_number(c, CONFIG_CSP_CONNECT),
		                            .total_timeout_ms = (long)config_number(c, CONFIG_CSP_READ),
		                            .ca_file = config_text(c, CONFIG_CSP_CA),
		                            .on_date = on_vendor_date,
		                            .on_date_arg = &s->steady };
	enum rc                    rc;

	s->is_sim_csp = !http.base_url;
	if ((s->is_sim_csp || ((lease_parts_is_wanted(c) || guard_parts_is_wanted(c)) && !aws_parts_is_wanted(c)) ||
	     instance_parts_is_sim(c, s->p.is_dev)) &&
	    (rc = open_sim(s, e)))
		return rc;
	if (!s->is_sim_csp)
		inner = csp_http_open(&http);
	else if ((rc = csp_sim_open(&(struct csp_sim_options){ s->sim_store, sim_cloud_faults(s->p.sim),
	                                                       config_number(c, CONFIG_SIM_SANDBOXES) },
	                            &inner, e)))
		return rc;
	s->vendor = inner->ops->name;
	s->p.csp = csp_breaker_open(inner, &guard);
	return RC_OK;
}

static void on_pass(void *arg)
{
	line_poke_later(((struct server *)arg)->api->line);
}

/* In development everybody knows that all is simulated; elsewhere, and where time runs faster, it has to be said. */
static struct str notice(const struct server *s)
{
	struct config *c = s->p.config;
	bool           is_sim_csp = !s->p.is_dev && s->is_sim_csp;
	bool           is_sim_cloud = !s->p.is_dev && s->p.leases && s->p.leases->sim;
	int64_t        scale = s->p.is_dev ? config_number(c, CONFIG_TIME_SCALE) : 1;

	if (scale > 1)
		return str_format(&c->arena, "Time runs %" PRId64 " times faster here than in the real world.", scale);
	if (!is_sim_csp && !is_sim_cloud)
		return STR("");
	return str_format(&c->arena, "This server lends simulated %s%s%s: nothing here is real.",
	                  is_sim_cloud ? "accounts" : "", is_sim_csp && is_sim_cloud ? " and " : "",
	                  is_sim_csp ? "sandboxes" : "");
}

static const struct reconcile_world *reconcile_world(const struct server *s)
{
	if (s->p.leases)
		return &s->p.leases->reconcile;
	return s->p.guard ? &s->p.guard->reconcile : NULL;
}

static void make_jobs(struct server *s)
{
	const struct config *c = s->p.config;
	bool                 lends = s->p.leases != NULL;
	struct jobs_options  options = {
		 .pass.store = s->p.store.store,
		 .pass.csp = s->p.csp,
		 .pass.settings = &s->p.settings,
		 .pass.leases = lends ? &s->p.leases->world : NULL,
		 .pass.reconcile = reconcile_world(s),
		 .pass.instances = s->p.instances ? &s->p.instances->world : NULL,
		 .pass.clock = &s->p.clock,
		 .pass.metrics = s->p.metrics,
		 .interval_sec = { [JOB_SYNC] = config_number(c, CONFIG_SYNC_INTERVAL),
		                   [JOB_CLEANUP] = config_number(c, CONFIG_CLEANUP_INTERVAL),
		                   [JOB_EXPIRY] = config_number(c, CONFIG_EXPIRY_INTERVAL),
		                   [JOB_STALE_REMOVAL] = config_number(c, CONFIG_STALE_INTERVAL),
		                   [JOB_EVENT_RETENTION] = RETENTION_SEC,
		                   [JOB_LEASE_MONITOR] = lends ? config_number(c, CONFIG_MONITOR_INTERVAL) : 0,
		                   [JOB_LEASE_LINE] = lends ? LINE_SEC : 0,
		                   [JOB_LEASE_ORPHANS] = lends ? DAY_SEC : 0,
		                   [JOB_LEASE_PURGE] = lends ? DAY_SEC : 0,
		                   [JOB_ACCOUNT_DRIFT] = lends ? config_number(c, CONFIG_DRIFT_INTERVAL) : 0,
		                   [JOB_RECONCILE] = config_number(c, CONFIG_RECONCILE_INTERVAL),
		                   [JOB_INSTANCE_WATCH] = LINE_SEC,
		                   [JOB_INSTANCE_ORPHANS] = DAY_SEC },
		 .lease_sec = config_number(c, CONFIG_JOB_LEASE),
		 .on_pass = on_pass,
		 .on_pass_arg = s,
	};

	aws_lending_jobs(s->p.aws, &options);
	s->p.settings = (struct broker_settings){
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
	s->p.jobs = jobs_new(&options);
}

static bool is_csp_open(void *arg)
{
	return csp_breaker_is_open(arg, NULL);
}

static enum rc open_api(struct server *s, struct err *e)
{
	const struct config *c = s->p.config;
	struct api_tokens    tokens;
	struct api_options   options = {
		  .loop = &s->loop,
		  .store = s->p.store.store,
		  .kernel = s->p.kernel,
		  .metrics = s->p.metrics,
		  .low_water = s->p.settings.low_water,
		  .base_path = config_str(c, CONFIG_BASE_PATH),
		  .cors_origins = config_str(c, CONFIG_CORS),
		  .sends_request_id = config_number(c, CONFIG_REQUEST_ID),
		  .lab_hours = config_number(c, CONFIG_LAB_HOURS),
		  .wait_max_sec = config_number(c, CONFIG_WAIT_MAX),
		  .waiting_max = config_number(c, CONFIG_WAITING_MAX),
		  .rate_per_sec = config_number(c, CONFIG_RATE),
		  .rate_burst = config_number(c, CONFIG_RATE_BURST),
		  .gauges_fresh_ms = s->p.store.kind == APP_DYNAMODB ? DDB_GAUGES_MS : SQLITE_GAUGES_MS,
		  .is_closed = s->p.store.kind == APP_DYNAMODB,
		  .streams_max = (unsigned)config_number(c, CONFIG_STREAMS),
		  .stream_lag_ms = s->p.store.kind == APP_DYNAMODB ? DDB_STREAM_LAG_MS : 0,
		  .inboxes = wiring_inboxes,
		  .inbox_count = s->p.instances ? WIRING_INBOXES : 1,
		  .instances = s->p.instances ? &s->p.instances->world : NULL,
		  .webhooks_may_be_private = s->p.is_dev || config_number(c, CONFIG_WEBHOOK_PRIVATE),
		  .lending = &s->p.claims,
		  .is_csp_open = is_csp_open,
		  .csp_arg = s->p.csp,
		  .notice = notice(s),
		  .world = s->p.is_dev && s->p.sim ? sim_cloud_world(s->p.sim) : NULL,
		  .identity = people_identity(s->p.signin->people),
		  .auth = s->p.signin->auth,
	};
	enum rc rc = tokens_read(c, &tokens, e);

	if (rc)
		return rc;
	if (s->p.leases) {
		options.cloud = &s->p.leases->cloud;
		options.policy = s->p.leases->policies;
		options.approval = lease_parts_approval;
		options.approval_arg = s->p.leases;
		if (s->p.aws->cloud)
			options.freeze_note = STR(AWS_FREEZE_NOTE);
		options.admin_accounts = s->p.leases->admin_accounts;
	}
	options.probe = s->p.aws->probe ? aws_probe_port(s->p.aws->probe) : NULL;
	options.openapi = openapi_text(options.base_path, &s->p.config->arena);
	options.reconcile = reconcile_world(s);
	s->api = api_new(&options);
	s->api->options.jobs = s->p.jobs;
	api_set_tokens(s->api, &tokens);
	return RC_OK;
}

static enum rc listen_on(struct server *s, const struct http_options *options, const char *way_out,
                         struct http_server **ret, struct err *e)
{
	struct err cause = { 0 };
	enum rc    rc = http_server_open(&s->loop, options, ret, &cause);

	return rc ? err_set(e, rc, "%s%s", cause.msg, rc == RC_UNAVAILABLE ? way_out : "") : RC_OK;
}

/* The nth socket that our starter has bound for us (sd_listen_fds(3)); 0: none. Connections wait in it while nobody
 * runs. */
static int inherited_socket(int nth)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	int64_t     number;

	if (!pid || !count || !str_to_int(str_from(pid), 1, INT32_MAX, &number) || number != getpid() ||
	    !str_to_int(str_from(count), nth + 1, 64, &number))
		return 0;
	(void)fcntl(FIRST_SOCKET + nth, F_SETFD, FD_CLOEXEC); /* fails when it is none: then listening tells */
	return FIRST_SOCKET + nth;
}

static enum rc open_sockets(struct server *s, struct err *e)
{
	const struct config *c = s->p.config;
	struct http_options  options = {
		 .tls_cert_file = config_text(c, CONFIG_TLS_CERT),
		 .tls_key_file = config_text(c, CONFIG_TLS_KEY),
		 .connections_max = s->connections_max,
		 .connections_per_client_max = (unsigned)config_number(c, CONFIG_CONNECTIONS_CLIENT),
		 .header_timeout_ms = (int)config_number(c, CONFIG_HEADER_TIMEOUT),
		 .body_timeout_ms = (int)config_number(c, CONFIG_BODY_TIMEOUT),
		 .idle_timeout_ms = (int)config_number(c, CONFIG_IDLE_TIMEOUT),
		 .write_timeout_ms = (int)config_number(c, CONFIG_WRITE_TIMEOUT),
		 .body_limit = api_body_limit,
		 .on_request = api_on_request,
		 .on_spare = api_on_spare,
		 .on_error = api_on_error,
		 .arg = s->api,
		 .metrics = s->p.metrics,
	};
	char   *host = NULL;
	enum rc rc = preflight_listen(s->p.config, &host, &options.port, e);

	if (rc || (rc = proxies_parse(config_str(c, CONFIG_TRUSTED_PROXIES), &options.trusted_proxies, e)))
		return rc;
	options.host = host;
	options.inherited_fd = inherited_socket(0);
	rc = listen_on(s, &options, "; choose another with --listen ADDR:PORT (make run LISTEN=ADDR:PORT)", &s->http,
	               e);
	if (rc || !config_number(c, CONFIG_METRICS_PORT))
		return rc;
	options.port = (int)config_number(c, CONFIG_METRICS_PORT);
	options.inherited_fd = inherited_socket(1);
	options.on_request = options.on_spare = api_on_probe;
	options.metrics = NULL; /* of the other port */
	return listen_on(s, &options, "; choose another with METRICS_PORT", &s->probe, e);
}

/* A process begins with a soft limit, often 1,024, and may raise it to the hard one by itself. */
static rlim_t raise_limit(rlim_t wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return wanted; /* it always answers; without a limit nothing is limited */
	if (limit.rlim_cur >= wanted)
		return limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		(void)getrlimit(RLIMIT_NOFILE, &limit); /* as it was */
	return limit.rlim_cur;
}

/* When a table of descriptors is full, Linux makes it larger, and in a process with threads waits for every processor
 * first, up to 20 ms: accept() would hold the loop for as long. As long as there are no threads it takes no time. */
static void make_room(int fd, int descriptors)
{
	int last = fcntl(fd, F_DUPFD_CLOEXEC, descriptors - 1);

	if (last >= 0)
		close(last); /* the table stays as large; without it, accepting is slower */
}

/* How many of the wanted connections fit: the store, calls to the outside and log files need descriptors too. */
static unsigned descriptors_for(unsigned connections, int loop_fd)
{
	rlim_t wanted = (rlim_t)connections + RESERVED_FILES, limit = raise_limit(wanted);
	rlim_t reserved = limit / 2 < RESERVED_FILES ? limit / 2 : RESERVED_FILES;

	make_room(loop_fd, (int)(wanted < limit ? wanted : limit));
	if (limit - reserved >= connections)
		return connections;
	log_write(LOG_WARNING, "app", NULL, 0,
	          "LEASEHOLD_CONNECTIONS_MAX is %u, but this process may have only %llu open files: at most %llu "
	          "connections are served; raise that limit with LimitNOFILE= or ulimit -n, or lower the setting",
	          connections, (unsigned long long)limit, (unsigned long long)(limit - reserved));
	return (unsigned)(limit - reserved);
}

static enum rc take_folder(struct server *s, struct err *e)
{
	struct config *c = s->p.config;
	const char    *folder = config_text(c, CONFIG_DATA);
	enum rc        rc = RC_OK;

	if (config_number(c, CONFIG_STORE) == APP_SQLITE)
		rc = app_look_for_store(folder, s->options.may_init, e);
	if (!rc)
		rc = app_take_folder(folder, &s->lock_fd, e);
	return !rc && s->p.is_dev ? dev_prepare(c, e) : rc;
}

static enum rc start(struct server *s, struct err *e)
{
	const struct config *c = s->p.config;
	bool                 is_alone;
	enum rc              rc;

	s->p.metrics = metrics_new();
	id_uuid(s->p.node);
	s->connections_max = descriptors_for((unsigned)config_number(c, CONFIG_CONNECTIONS), uv_backend_fd(&s->loop));
	if ((rc = take_folder(s, e)) || (rc = open_store(s, e)) || (rc = open_csp(s, e)) ||
	    (rc = aws_parts_new(&s->p, e)) ||
	    (rc = signin_open(s->p.config, s->p.store.store,
	                      s->p.aws->cloud ? aws_cloud_directory(s->p.aws->cloud) : NULL, &s->p.signin, e)) ||
	    (lease_parts_is_wanted(c) && (rc = lease_parts_new(&s->p, e))) ||
	    (guard_parts_is_wanted(c) && (rc = guard_parts_new(&s->p, e))) || (rc = instance_parts_new(&s->p, e)))
		return rc;
	messages_new(&s->p);
	if ((rc = aws_parts_probe(s->p.aws, e)))
		return rc;
	make_jobs(s);
	is_alone = s->p.store.kind == APP_SQLITE;
	if ((rc = wiring_open(&s->p, &s->wiring, e)) || (s->has_lost && (rc = pause_after_loss(s, e))) ||
	    (is_alone && (rc = start_pools(s, e))) || (rc = open_api(s, e)) || (rc = open_sockets(s, e)) ||
	    (is_alone && (rc = jobs_start(s->p.jobs, e))))
		return rc;
	if (!is_alone && begin_work(s, e)) { /* else open from the first request on, as usual */
		log_write(LOG_WARNING, "serve", NULL, 0, "the store is not ready, waiting for it: %s", e->msg);
		err_clear(e);
	}
	wiring_start(s->wiring, s->api, atomic_load(&s->api->is_open) ? NULL : try_to_begin, s);
	return RC_OK;
}

/* --- stop --- */

/* No request is at the store or with a thread any more. Whoever waits for a job is told its end; then nothing keeps the
 * loop. The signals stay ours: their default would end the process while the store is being closed. */
static void on_quiet(void *arg)
{
	struct server *s = arg;

	jobs_free(s->p.jobs);
	s->p.jobs = NULL;
	api_close_handles(s->api);
	uv_unref((uv_handle_t *)&s->on_term);
	uv_unref((uv_handle_t *)&s->on_int);
	uv_unref((uv_handle_t *)&s->on_hup);
}

/* The last connection is closed. Requests of clients that hung up may still be under way, and need the jobs. */
static void on_drained(void *arg)
{
	struct server *s = arg;

	if (--s->undrained)
		return;
	aws_cloud_stop(s->p.aws->cloud);
	instance_parts_stop(s->p.instances);
	wiring_stop(s->wiring);
	api_when_quiet(s->api, on_quiet, s);
}

static void drain(struct server *s, int grace_ms)
{
	if (!s->is_stopping) {
		s->is_stopping = true;
		reload_stop(&s->reload);
		s->undrained = s->probe ? 2 : 1;
		streams_stop(s->api->streams);
		line_stop(s->api->line);
	}
	http_server_drain(s->http, grace_ms, on_drained, s);
	if (s->probe)
		http_server_drain(s->probe, grace_ms, on_drained, s);
}

static void on_left(uv_timer_t *timer)
{
	struct server *s = timer->data;

	uv_close((uv_handle_t *)timer, NULL);
	drain(s, DRAIN_MS);
}

/* Behind a balancer that goes on sending until it has heard that we leave: see LEASEHOLD_DRAIN_DELAY_MS. */
static void leave(struct server *s, uint64_t delay_ms)
{
	s->is_leaving = s->api->is_leaving = true;
	http_server_leave(s->http);
	if (s->probe)
		http_server_leave(s->probe);
	s->leaving.data = s;
	if (uv_timer_init(&s->loop, &s->leaving) || uv_timer_start(&s->leaving, on_left, delay_ms, 0))
		abort(); /* never fails for these */
}

/* The first time politely, then at once: without the delay, and then without waiting for clients. */
static void on_stop(uv_signal_t *signal, int number)
{
	struct server *s = signal->data;
	uint64_t       delay_ms = (uint64_t)config_number(s->p.config, CONFIG_DRAIN_DELAY);

	if (s->is_hurrying)
		return;
	log_write(LOG_INFO, "serve", NULL, 0, "stopping: %s%s", strsignal(number),
	          s->is_stopping ? ", without waiting for clients" : "");
	s->is_hurrying = s->is_stopping;
	if (delay_ms && !s->is_leaving && !s->is_stopping) {
		leave(s, delay_ms);
	} else if (s->is_leaving && !s->is_stopping) {
		uv_timer_stop(&s->leaving);
		on_left(&s->leaving);
	} else {
		drain(s, s->is_hurrying ? 0 : DRAIN_MS);
	}
}

/* The store before the api: what it completes last is told to the api. */
static void close_all(struct server *s)
{
	http_server_free(s->probe);
	http_server_free(s->http);
	app_store_close(&s->p.store);
	api_free(s->api);
	wiring_free(s->wiring);
	signin_close(s->p.signin);
	lease_parts_free(s->p.leases);
	guard_parts_free(s->p.guard);
	instance_parts_free(s->p.instances);
	messages_free(s->p.messages);
	aws_parts_free(s->p.aws);
	csp_close(s->p.csp);
	sim_cloud_close(s->p.sim);
	store_close(s->sim_store);
	metrics_free(s->p.metrics);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
}

static void on_hup(uv_signal_t *signal, int number UNUSED)
{
	reload_begin(&((struct server *)signal->data)->reload);
}

/* --- run --- */

static void watch_signal(struct server *s, uv_signal_t *handle, int number, uv_signal_cb on_signal)
{
	handle->data = s;
	if (uv_signal_init(&s->loop, handle) || uv_signal_start(handle, on_signal, number))
		abort(); /* never fails for these */
}

static void announce(struct server *s)
{
	bool             is_tls = config_text(s->p.config, CONFIG_TLS_CERT) != NULL;
	struct str       listen = config_str(s->p.config, CONFIG_LISTEN);
	const char      *colon = memrchr(listen.p, ':', listen.n);
	struct str       address = str_format(&s->p.config->arena, "%s://%.*s:%d", is_tls ? "https" : "http",
	                                      (int)(colon - listen.p), listen.p, http_server_port(s->http));
	struct log_field fields[] = {
		LOG_STR("address", address),
		LOG_STR("version", STR(LEASEHOLD_VERSION)),
		LOG_STR("data", config_str(s->p.config, CONFIG_DATA)),
		LOG_STR("store", config_str(s->p.config, CONFIG_STORE)),
		LOG_STR("csp", s->is_sim_csp ? STR("simulated") : str_from(s->vendor)),
	};

	aws_parts_warn(s->p.config);
	if (s->p.is_dev)
		dev_welcome(s->p.config, address.p, s->p.leases != NULL);
	log_write(LOG_INFO, "serve", fields, ARRAY_LEN(fields), "listening");
	if (!log_wants(LOG_INFO) &&
	    !(s->p.is_dev &&
	      isatty(STDOUT_FILENO))) /* a program that started us waits for this line, whatever the level */
		printf("{\"message\":\"listening\",\"address\":\"%s\"}\n", address.p), fflush(stdout);
	if (!s->p.is_dev && s->p.leases && s->p.leases->sim)
		log_write(LOG_WARNING, "serve", NULL, 0, "%s is set: lending accounts of a simulated organisation",
		          config_name(CONFIG_JWT_SECRET));
	if (!s->p.is_dev && s->is_sim_csp)
		log_write(LOG_WARNING, "serve", NULL, 0, "no %s: lending simulated sandboxes",
		          config_name(CONFIG_CSP_URL));
	if (!is_tls && !addr_is_near(listen, ADDR_LOOPBACK))
		log_write(LOG_WARNING, "serve", NULL, 0,
		          "serving beyond this machine without TLS: tokens travel readable (LEASEHOLD_TLS_CERT_FILE)");
}

int serve(struct config *config, const struct serve_options *o)
{
	struct server s = { .p = { .config = config, .is_dev = o->is_dev }, .options = *o, .lock_fd = -1 };
	struct err    e = { 0 };
	enum rc       rc;
	int           failure;

	log_flush_before_abort();
	steady_init(&s.steady);
	s.p.clock = clock_steady(&s.steady);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a full disk is an error to be answered, not a reason to die */
	umask(077);
	blocking_prepare();
	fetch_global_init();
	failure = uv_loop_init(&s.loop);
	rc = failure ? err_set(&e, RC_UNAVAILABLE, "cannot make the event loop: %s", uv_strerror(failure))
	             : start(&s, &e);
	if (rc) {
		/* Ends the process: the system takes back what half a start has opened. */
		fprintf(stderr, "leasehold: %s\n", e.msg);
		_exit(rc == RC_INVALID ? EXIT_CONFIG : EXIT_FAILED);
	}
	s.reload = (struct reload){ .loop = &s.loop, .parts = &s.p, .api = s.api, .http = s.http, .probe = s.probe };
	reload_start(&s.reload);
	watch_signal(&s, &s.on_term, SIGTERM, on_stop);
	watch_signal(&s, &s.on_int, SIGINT, on_stop);
	watch_signal(&s, &s.on_hup, SIGHUP, on_hup);
	announce(&s);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	reload_end(&s.reload);
	close_all(&s);
	log_write(LOG_INFO, "serve", NULL, 0, "stopped");
	log_flush();
	/* The loop is not closed: that would remove the signal handlers, and a late signal would end the process. */
	exit(EXIT_SUCCESS);
}
