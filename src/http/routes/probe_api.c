/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_api.c - the routes for monitoring: alive, ready, metrics, what is this.
 *
 * Readiness means that the last commit succeeded. A node that is not ready gets no traffic, so it would never commit
 * again; therefore, while the store is unwell, the readiness check itself tries a small write.
 */
#include "base/clock.h"
#include "base/metrics.h"
#include "http/api/auth.h"
#include "http/api/view.h"
#include "http/api/blocking.h"
#include "http/routes/console_api.h"
#include "service/broker/claims_pause.h"
#include "service/broker/records.h"
#include "service/gauges.h"
#include "store/session.h"

enum { METRICS_MAX = 4 * 1024 * 1024 };

void handle_health(struct request *r)
{
	REPLY(r, r->api->is_leaving ? 503 : 200, member_word("status", r->api->is_leaving ? "leaving" : "healthy"),
	      member_sec("timestamp", clock_now(&clock_real).ms));
}

static void reply_ready(struct request *r, const struct err *e)
{
	bool is_paused = claims_switch_is_paused(r->api->options.lending);

	/* A node with paused claims is ready: it serves operators, and tracks that hold a sandbox. */
	REPLY(r, e->rc ? 503 : 200, member_word("status", e->rc ? "not_ready" : "ready"),
	      member_sec("timestamp", clock_now(&clock_real).ms), member_object("checks"),
	      member_word("store", e->rc ? e->msg : "ok"), member_word("claims", is_paused ? "paused" : "ok"),
	      member_end());
}

static void on_probed(struct request *r)
{
	reply_ready(r, &r->txn.e);
}

/* A write that changes something each time: the version. */
static enum rc write_probe(struct session *s, void *arg UNUSED, struct err *e)
{
	struct job_record probe;
	enum rc           rc = session_find_or_new(s, &job_type, STR("readiness-probe"), &probe, e);

	if (rc)
		return rc;
	probe.last_finished_at = wall_sec(session_now(s));
	session_put(s, &job_type, &probe);
	return RC_OK;
}

void handle_ready(struct request *r)
{
	struct err e = { 0 };

	if (r->api->is_leaving) {
		rc_ignore(err_set(&e, RC_UNAVAILABLE, "this process is about to end"));
		reply_ready(r, &e);
	} else if (!atomic_load(&r->api->is_open)) {
		if (!store_health(r->api->options.store, &e)) /* which says why, if it has been asked already */
			rc_ignore(err_set(&e, RC_UNAVAILABLE, "the store has not answered since the start"));
		reply_ready(r, &e);
	} else if (store_health(r->api->options.store, &e) && !store_is_stuck(r->api->options.store))
		request_submit(r, write_probe, NULL, false, on_probed);
	else
		reply_ready(r, &e);
}

static enum rc write_metrics(struct request *r, void *arg, struct err *e UNUSED)
{
	buf_init(arg, METRICS_MAX);
	metrics_write(r->api->options.metrics, arg);
	return RC_OK;
}

static void answer_metrics(struct request *r)
{
	request_reply_taken(r, 200, "text/plain; version=0.0.4; charset=utf-8", r->arg);
}

/* A thousand series take longer to write than the loop has time. */
static void reply_metrics(struct request *r)
{
	const struct api_options *o = &r->api->options;

	gauges_read(o->metrics, o->store);
	metrics_set(o->metrics, METRIC_CSP_CIRCUIT_OPEN, o->is_csp_open && o->is_csp_open(o->csp_arg));
	blocking_start(r, BLOCKING_METRICS, write_metrics, answer_metrics,
	               arena_alloc(&r->call->arena, sizeof(struct buf)));
}

static void on_counted(struct request *r)
{
	if (!r->txn.rc) /* otherwise the store does not answer: the last known figures are shown */
		gauges_set(r->api->options.metrics, r->arg);
	reply_metrics(r);
}

static enum rc check_reader(const struct request *r, struct err *e)
{
	const struct api_tokens *known = &r->api->tokens;
	struct str               token;
	enum rc rc = known->metrics.count ? auth_read_bearer(&r->call->req, RC_UNKNOWN, &token, e) : RC_OK;

	if (rc || !known->metrics.count || token_find(&known->metrics, token) >= 0 ||
	    token_find(&known->admin, token) >= 0)
		return rc;
	return err_set(e, RC_UNKNOWN, "this needs a token of LEASEHOLD_METRICS_TOKENS, or an admin's");
}

void handle_metrics(struct request *r)
{
	struct gauges *f;
	int64_t        now_ms = mono_now().ms;

	if (!request_is_good(r, check_reader(r, &r->e)))
		return;
	if (now_ms < r->api->next_gauges_ms) {
		reply_metrics(r);
		return;
	}
	r->api->next_gauges_ms = now_ms + r->api->options.gauges_fresh_ms;
	f = r->arg = arena_alloc(&r->call->arena, sizeof(*f));
	gauges_init(f, r->api->options.kernel);
	request_submit(r, gauges_count, f, true, on_counted);
}

HANDLER(openapi, request_reply_as(r, 200, "application/json", r->api->options.openapi))

/* Browsers get the console, with a token in the query after a sign-in. Programs learn where the description is. */
void handle_root(struct request *r)
{
	if (console_is_wanted(r)) {
		console_answer_page(r);
		return;
	}
	request_header(r, "Vary", "Accept");
	REPLY(r, 200, member_word("service", "leasehold"), member_word("version", LEASEHOLD_VERSION),
	      member_str("docs", str_format(&r->call->arena, "%.*s/openapi.json", STR_ARG(r->api->options.base_path))),
	      member_bool("simulated", r->api->options.world != NULL),
	      member_bool("instances", r->api->options.instances != NULL),
	      member_text("notice", r->api->options.notice));
}
