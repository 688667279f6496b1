/* SPDX-License-Identifier: Apache-2.0 */
/* gauges.c - the same figures for whoever asks /metrics, and for the log. */
#include "service/gauges.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "kernel/kernel.h"

_Static_assert((int)METRIC_POOL_DELETION_FAILED - (int)METRIC_POOL_AVAILABLE == (int)SANDBOX_DELETION_FAILED &&
                       (int)METRIC_POOL_TOTAL - (int)METRIC_POOL_AVAILABLE == (int)SANDBOX_STATE_COUNT,
               "base/metrics.def has a gauge for each state, in the order of the states, right before POOL_TOTAL");

void gauges_init(struct gauges *g, struct kernel *k)
{
	*g = (struct gauges){ .queues.kernel = k, .timers.limit = 1 };
}

enum rc gauges_count(struct session *s, void *arg, struct err *e)
{
	struct gauges *f = arg;
	enum rc        rc;

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

void gauges_set(struct metrics *m, const struct gauges *f)
{
	const struct kernel_options *k = kernel_options(f->queues.kernel);
	const struct queue_count    *c = f->queues.counts;
	int64_t                      now_ms = clock_now(k->clock).ms;
	const struct timer          *first = f->timers.page.count ? page_record(&f->timers.page, &timer_type, 0) : NULL;
	int64_t                      raised[ALARM_SEVERITY_COUNT] = { 0 };

	for (int state = 0; state < SANDBOX_STATE_COUNT; state++)
		metrics_set(m, METRIC_POOL_AVAILABLE + (enum metric)state, (double)f->pool.by_state[state]);
	metrics_set(m, METRIC_POOL_TOTAL, (double)f->pool.total);
	for (size_t i = 0; i < k->queue_count; i++) {
		set_gauge(m, METRIC_QUEUE_LANES, k->queues[i].name, (double)c[i].lanes);
		set_gauge(m, METRIC_QUEUE_OLDEST, k->queues[i].name, seconds_since(c[i].oldest_ms, now_ms));
		set_gauge(m, METRIC_DEAD_LETTERS, k->queues[i].name, (double)c[i].dead);
	}
	metrics_set(m, METRIC_TIMER_LAG, first ? seconds_since(first->due_ms, now_ms) : 0);
	metrics_set(m, METRIC_TIMERS_ARMED, (double)f->timers_armed);
	for (int i = 0; i < SAGA_OPEN_STATES; i++)
		set_gauge(m, METRIC_SAGAS, saga_state_names[i], (double)f->sagas[i]);
	for (size_t i = 0; i < f->alarms.count; i++) {
		const struct alarm *a = page_record(&f->alarms, &alarm_type, i);

		raised[a->severity] += a->state == ALARM_RAISED;
	}
	for (int i = 0; i < ALARM_SEVERITY_COUNT; i++)
		set_gauge(m, METRIC_ALARMS, alarm_severity_names[i], (double)raised[i]);
}

void gauges_read(struct metrics *m, struct store *store)
{
	struct store_counts counts = store_counts(store);

	metrics_set(m, METRIC_STORE_COMMITS, (double)counts.commits);
	metrics_set(m, METRIC_STORE_FAILED_COMMITS, (double)counts.failed_commits);
	metrics_set(m, METRIC_STORE_TRANSACTIONS, (double)counts.transactions);
	metrics_set(m, METRIC_LOG_LOST, (double)log_lost());
	metrics_set(m, METRIC_ALLOCATE_CONFLICTS, (double)counts.conflicts);
}
