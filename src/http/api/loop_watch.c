/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_watch.c - no handler may hold the HTTP loop for more than a millisecond: everybody else waits for it.
 *
 * Each piece of work is a span. One that lasted longer than HELD_NS and used as much of the processor is counted by its
 * name, and told to the log at most once a second. Only the processor's time counts, because a thread that the machine
 * does not let run holds nothing up by itself; to read it is a system call, so it is read once a turn, and again only
 * when a span was long. A long span is therefore compared with all that its turn has used: where many short ones were
 * before it, one that was only kept waiting can be counted.
 *
 * A turn is what lies between two waits for events. libuv knows how long it waited.
 */
#include "http/api/loop_watch.h"

#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

enum { HELD_NS = 1000000, LOG_PAUSE_MS = 1000, MINUTE_MS = 60000 };

/* What this thread has used of the processor. */
static int64_t cpu_now_ns(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* fails only for a clock that is not there */
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The loop is about to wait for events: its turn is over. */
static void on_prepare(uv_prepare_t *prepare)
{
	struct loop_watch *w = prepare->data;
	uint64_t           now_ns = uv_hrtime(), idle_ns = uv_metrics_idle_time(prepare->loop);
	int64_t            minute = mono_now().ms / MINUTE_MS;
	double             seconds = (double)(int64_t)(now_ns - w->turn_ns - (idle_ns - w->idle_ns)) / 1e9;

	if (w->turn_ns)
		metric_observe(w->turns, seconds);
	if (w->turn_ns && (seconds > w->longest || minute != w->minute)) {
		if (minute != w->minute) {
			w->longest_before = minute == w->minute + 1 ? w->longest : 0;
			w->longest = 0;
			w->minute = minute;
		}
		w->longest = seconds > w->longest ? seconds : w->longest;
		metrics_set(w->metrics, METRIC_LOOP_LONGEST,
		            w->longest > w->longest_before ? w->longest : w->longest_before);
	}
	w->turn_ns = now_ns;
	w->idle_ns = idle_ns;
	w->cpu_ns = cpu_now_ns();
}

void loop_watch_open(struct loop_watch *w, uv_loop_t *loop, struct metrics *m)
{
	*w = (struct loop_watch){ .metrics = m, .turns = metrics_series(m, METRIC_LOOP_TURN, "") };
	(void)uv_loop_configure(loop, UV_METRICS_IDLE_TIME); /* otherwise turns look longer than they are */
	(void)uv_prepare_init(loop, &w->prepare);            /* these two cannot fail */
	w->prepare.data = w;
	(void)uv_prepare_start(&w->prepare, on_prepare);
	uv_unref((uv_handle_t *)&w->prepare);
}

void loop_watch_close(struct loop_watch *w)
{
	uv_close((uv_handle_t *)&w->prepare, NULL);
}

struct loop_span loop_span_begin(const struct loop_watch *w, int64_t now_ns)
{
	return (struct loop_span){ now_ns, w->inner_ns };
}

static void tell_held(struct loop_watch *w, int64_t now_ns, int64_t own_ns, const char *what)
{
	struct log_field fields[] = { LOG_STR("route", str_from(what)),
		                      LOG_NUM("held_ms", (double)(own_ns / 1000) / 1000) };
	int64_t          now_ms = now_ns / 1000000;

	metrics_add(w->metrics, METRIC_LOOP_HELD, what, 1);
	if (now_ms < w->log_after_ms)
		return;
	w->log_after_ms = now_ms + LOG_PAUSE_MS;
	log_write(LOG_WARNING, "http", fields, ARRAY_LEN(fields), "a handler held the loop");
}

int64_t loop_span_end(struct loop_watch *w, const struct loop_span *span, const char *what)
{
	int64_t now_ns = mono_ns(), lasted = now_ns - span->started_ns;
	int64_t own = lasted - (w->inner_ns - span->inner_ns);

	w->inner_ns = span->inner_ns + lasted;
	if (own > HELD_NS && cpu_now_ns() - w->cpu_ns > HELD_NS)
		tell_held(w, now_ns, own, what);
	return now_ns;
}
