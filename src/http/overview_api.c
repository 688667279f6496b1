/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview_api.c - GET ops/overview: what a screen shows that is always on.
 *
 * Counted figures are of the store; claims and the waiting line are of this process, because that is where they are known. Many may watch, and
 * counting costs: an answer is kept and given to everybody who asks within OVERVIEW_FRESH_MS, or longer where counting reads everything.
 */
#include "base/clock.h"
#include "http/api_ops.h"
#include "http/ops.h"
#include "service/lease_records.h"
#include "service/overview.h"

enum { OVERVIEW_FRESH_MS = 1000, STEP_SEC = TALLY_STEP_MS / 1000, MINUTE_STEPS = 60 / STEP_SEC, FINE_STEPS = 90 };

static int64_t wall_ms(void)
{
	return clock_now(&clock_real).ms;
}

static void put_ms(struct json_out *o, const char *name, double ms)
{
	if (ms < 0)
		json_put_null(o, name);
	else
		json_put_real(o, name, (double)(int64_t)(ms * 100 + 0.5) / 100);
}

static void put_counts(struct json_out *o, const char *name, const char *const *names, const int64_t *counts, int n)
{
	json_put_object(o, name);
	for (int i = 0; i < n; i++)
		json_put_int(o, names[i], counts[i]);
	json_close_object(o);
}

static void put_pool(struct json_out *o, const struct api_options *options, const struct overview *v)
{
	json_put_object(o, "pool");
	json_put_int(o, "total", v->pool.total);
	for (int state = 0; state < SANDBOX_STATE_COUNT; state++)
		json_put_int(o, sandbox_state_names[state], v->pool.by_state[state]);
	json_put_int(o, "low_water", options->low_water);
	json_close_object(o);
}

static void put_line(struct json_out *o, const struct api *a, int64_t now_ms)
{
	int64_t waiting = line_count(a->line);
	int64_t estimate = waiting ? tally_estimate_sec(&a->tally, waiting, now_ms) : 0;

	json_put_object(o, "line");
	json_put_int(o, "waiting", waiting);
	if (estimate < 0)
		json_put_null(o, "estimate_sec");
	else
		json_put_int(o, "estimate_sec", estimate);
	json_close_object(o);
}

/* Of the last minute. */
static void put_claims(struct json_out *o, const struct tally *t, int64_t now_ms)
{
	struct tally_count c = tally_sum(t, now_ms / TALLY_STEP_MS - MINUTE_STEPS + 1, MINUTE_STEPS);

	json_put_object(o, "claims");
	json_put_int(o, "per_minute", (int64_t)c.granted + c.refused);
	put_ms(o, "p99_ms", tally_p99_ms(&c));
	json_close_object(o);
}

/* By the minute, but fine at first, so that there is something to see soon after the start. Ended steps only: the one that runs would look
 * like a fall. */
static void put_series(struct json_out *o, const struct tally *t, int64_t now_ms)
{
	int64_t now_step = now_ms / TALLY_STEP_MS, known = now_step - t->first_step;
	int64_t each = known > FINE_STEPS ? MINUTE_STEPS : 1;
	int64_t last = now_step / each * each, from = t->first_step / each * each;

	if (from < last - TALLY_STEPS + each)
		from = last - TALLY_STEPS + each;
	json_put_int(o, "step_sec", each * STEP_SEC);
	json_put_array(o, "series");
	for (int64_t step = from; step < last; step += each) {
		struct tally_count c = tally_sum(t, step, each);

		json_open_object(o);
		json_put_int(o, "at", step * STEP_SEC);
		json_put_int(o, "granted", c.granted);
		json_put_int(o, "refused", c.refused);
		put_ms(o, "p99_ms", tally_p99_ms(&c));
		json_close_object(o);
	}
	json_close_array(o);
}

static void put_leases(struct json_out *o, const struct overview *v)
{
	json_put_object(o, "leases");
	put_counts(o, "by_status", lease_status_names, v->leases, LEASE_STATUS_COUNT);
	json_put_int(o, "in_line", v->leases_in_line);
	json_put_real(o, "spend_usd", (double)(v->spend / (LEASE_USD / 100)) / 100);
	json_put_real(o, "budget_usd", (double)(v->budget / (LEASE_USD / 100)) / 100);
	json_put_bool(o, "partial", v->is_partial);
	json_close_object(o);
	json_put_object(o, "accounts");
	put_counts(o, "by_status", account_status_names, v->accounts, ACCOUNT_STATUS_COUNT);
	json_close_object(o);
}

static void put_kernel(struct json_out *o, const struct overview *v)
{
	json_put_object(o, "kernel");
	json_put_int(o, "sagas_running", v->sagas[SAGA_RUNNING] + v->sagas[SAGA_UNDOING]);
	json_put_int(o, "sagas_parked", v->sagas[SAGA_PARKED]);
	json_put_int(o, "dead_letters", v->dead_letters);
	json_close_object(o);
	json_put_array(o, "alarms");
	for (size_t i = 0; i < v->alarms.page.count; i++) {
		json_open_object(o);
		ops_put_alarm(o, page_record(&v->alarms.page, &alarm_type, i));
		json_close_object(o);
	}
	json_close_array(o);
}

static void keep(struct api *a)
{
	int64_t fresh_ms = a->options.gauges_fresh_ms;

	buf_reset(&a->overview);
	buf_add_str(&a->overview, buf_str(&a->scratch));
	a->overview_until_ms = mono_now().ms + (fresh_ms > OVERVIEW_FRESH_MS ? fresh_ms : OVERVIEW_FRESH_MS);
}

static void on_counted(struct request *r)
{
	const struct overview *v = r->arg;
	int64_t                now_ms = wall_ms();
	struct json_out        o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	ops_put_time(&o, "at", now_ms);
	put_pool(&o, &r->api->options, v);
	put_line(&o, r->api, now_ms);
	put_claims(&o, &r->api->tally, now_ms);
	put_series(&o, &r->api->tally, now_ms);
	put_leases(&o, v);
	put_kernel(&o, v);
	keep(r->api);
	reply_send(r, 200);
}

void handle_overview(struct request *r)
{
	struct overview *v;

	if (mono_now().ms < r->api->overview_until_ms) {
		buf_reset(&r->api->scratch);
		buf_add_str(&r->api->scratch, buf_str(&r->api->overview));
		reply_send(r, 200);
		return;
	}
	v = arena_alloc(&r->call->arena, sizeof(*v));
	v->queues.kernel = ops_kernel(r);
	r->arg = v;
	request_submit(r, overview_count, v, true, on_counted);
}
