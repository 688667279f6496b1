/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview_api.c - GET ops/overview: what a screen shows that is always on.
 *
 * Counts come from the store; claims and the line are those of this process, which alone knows them. Many may watch,
 * and counting is expensive: an answer is kept and given to everyone who asks within OVERVIEW_FRESH_MS, or longer where
 * counting reads everything.
 */
#include "base/clock.h"
#include "http/api/line.h"
#include "http/api/ops.h"
#include "service/broker/claims_pause.h"
#include "service/overview.h"

enum { OVERVIEW_FRESH_MS = 1000, STEP_SEC = CLAIM_STATS_STEP_MS / 1000, MINUTE_STEPS = 60 / STEP_SEC, FINE_STEPS = 90 };

/* To a hundredth of a millisecond; null when there were no claims. */
static struct json_member member_p99(const struct claim_counts *c)
{
	double ms = claim_stats_p99_ms(c);

	return ms < 0 ? member_raw("p99_ms", STR("")) : member_micro("p99_ms", (int64_t)(ms * 100 + 0.5) * 10000);
}

static void put_counts(struct json_out *o, const char *const *names, const int64_t *counts, int n)
{
	json_put_object(o, "by_status");
	for (int i = 0; i < n; i++)
		json_put_int(o, names[i], counts[i]);
	json_close_object(o);
}

/* How many wait, and the claims of the last minute. */
static void put_line(struct json_out *o, const struct api *a, int64_t now_ms)
{
	int64_t             step = now_ms / CLAIM_STATS_STEP_MS - MINUTE_STEPS + 1, waiting = line_count(a->line);
	int64_t             estimate = waiting ? claim_stats_estimate_sec(&a->claims, waiting, now_ms) : 0;
	struct claim_counts c = claim_stats_sum(&a->claims, step, MINUTE_STEPS);

	JSON_PUT(o, member_object("line"), member_int("waiting", waiting),
	         estimate < 0 ? member_raw("estimate_sec", STR("")) : member_int("estimate_sec", estimate),
	         member_end(), member_object("claims"), member_int("per_minute", (int64_t)c.granted + c.refused),
	         member_p99(&c), member_bool("paused", claims_switch_is_paused(a->options.lending)), member_end());
}

/* By the minute, but in finer steps at first, so that there is something to see soon after the start. Only steps that
 * are over: the current one would look like a drop. */
static void put_series(struct json_out *o, const struct claim_stats *t, int64_t now_ms)
{
	int64_t now_step = now_ms / CLAIM_STATS_STEP_MS, known = now_step - t->first_step;
	int64_t each = known > FINE_STEPS ? MINUTE_STEPS : 1;
	int64_t last = now_step / each * each, from = t->first_step / each * each;

	if (from < last - CLAIM_STATS_STEPS + each)
		from = last - CLAIM_STATS_STEPS + each;
	JSON_PUT(o, member_int("step_sec", each * STEP_SEC), member_list("series"));
	for (int64_t step = from; step < last; step += each) {
		struct claim_counts c = claim_stats_sum(t, step, each);

		JSON_PUT(o, member_object(NULL), member_int("at", step * STEP_SEC), member_int("granted", c.granted),
		         member_int("refused", c.refused), member_p99(&c), member_end());
	}
	json_close_array(o);
}

/* By status: the seven states of provisioning are one. */
static void put_instances(struct json_out *o, const int64_t *counts)
{
	int64_t provisioning = 0;

	for (int i = 0; i <= INSTANCE_CONFIGURING_WORDPRESS; i++)
		provisioning += counts[i];
	JSON_PUT(o, member_object("instances"), member_object("by_status"), member_int("PROVISIONING", provisioning));
	for (int i = INSTANCE_CONFIGURING_WORDPRESS + 1; i < INSTANCE_STATE_COUNT; i++)
		json_put_int(o, instance_state_names[i], counts[i]);
	JSON_PUT(o, member_end(), member_end());
}

static void put_stored(struct json_out *o, struct request *r, const struct overview *v)
{
	static const struct listing alarms = { "alarms", .type = &alarm_type, .put = ops_put_alarm };

	json_put_object(o, "leases");
	put_counts(o, lease_status_names, v->leases, LEASE_STATUS_COUNT);
	json_put_int(o, "in_line", v->leases_in_line);
	json_put_real(o, "spend_usd", (double)(v->spend / (LEASE_USD / 100)) / 100);
	json_put_real(o, "budget_usd", (double)(v->budget / (LEASE_USD / 100)) / 100);
	JSON_PUT(o, member_bool("partial", v->is_partial), member_end(), member_object("accounts"));
	put_counts(o, account_status_names, v->accounts, ACCOUNT_STATUS_COUNT);
	json_close_object(o);
	put_instances(o, v->instances);
	JSON_PUT(o, member_object("kernel"),
	         member_int("sagas_running", v->sagas[SAGA_RUNNING] + v->sagas[SAGA_UNDOING]),
	         member_int("sagas_parked", v->sagas[SAGA_PARKED]), member_int("dead_letters", v->dead_letters),
	         member_end());
	view_put_list(r, o, &alarms, &v->alarms);
}

static void on_counted(struct request *r)
{
	const struct overview *v = r->arg;
	struct api            *a = r->api;
	int64_t                now_ms = clock_now(&clock_real).ms, fresh_ms = a->options.gauges_fresh_ms;
	struct json_out        o;

	if (request_failed(r))
		return;
	o = reply_begin(r);
	JSON_PUT(&o, member_sec("at", now_ms), member_object("pool"), member_int("total", v->pool.total));
	for (int state = 0; state < SANDBOX_STATE_COUNT; state++)
		json_put_int(&o, sandbox_state_names[state], v->pool.by_state[state]);
	JSON_PUT(&o, member_int("low_water", a->options.low_water), member_end());
	put_line(&o, a, now_ms);
	put_series(&o, &a->claims, now_ms);
	put_stored(&o, r, v);
	JSON_PUT(&o, member_text("notice", a->options.notice));
	buf_reset(&a->overview);
	buf_add_str(&a->overview, buf_str(&a->scratch));
	a->overview_until_ms = mono_now().ms + (fresh_ms > OVERVIEW_FRESH_MS ? fresh_ms : OVERVIEW_FRESH_MS);
	reply_send(r, 200);
}

void handle_overview(struct request *r)
{
	struct overview *v = NEW_OF(r, struct overview);

	if (mono_now().ms < r->api->overview_until_ms) {
		buf_reset(&r->api->scratch);
		buf_add_str(&r->api->scratch, buf_str(&r->api->overview));
		reply_send(r, 200);
		return;
	}
	v->queues.kernel = r->api->options.kernel;
	r->arg = v;
	request_submit(r, overview_count, v, true, on_counted);
}
