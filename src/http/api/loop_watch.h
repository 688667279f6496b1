/* loop_watch.h - notices what keeps the HTTP loop: the length of its turns, and whose handler used more than a
 * millisecond. Loop thread only. */
#pragma once

#include <stdint.h>
#include <uv.h>

struct loop_watch {
	uv_prepare_t          prepare;
	struct metrics       *metrics;
	struct metric_series *turns;
	uint64_t              turn_ns, idle_ns; /* when the turn began, and how long the loop had waited until then */
	int64_t               cpu_ns;           /* what the thread had used until then */
	double                longest, longest_before; /* seconds: in this minute, and in the one before */
	int64_t               minute;
	int64_t               inner_ns; /* used by spans inside the one that is open */
	int64_t               log_after_ms;
};

/* A piece of work on the loop. Spans may be nested: what an inner one uses is not the outer one's. */
struct loop_span {
	int64_t started_ns, inner_ns;
};

void loop_watch_open(struct loop_watch *w, uv_loop_t *loop, struct metrics *m);

/* Before the loop ends. */
void loop_watch_close(struct loop_watch *w);

struct loop_span loop_span_begin(const struct loop_watch *w, int64_t now_ns);

/* what: the name of a route, or of another thing that is done on the loop; a text that stays. Returns the time. */
int64_t loop_span_end(struct loop_watch *w, const struct loop_span *span, const char *what);
