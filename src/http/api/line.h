/* line.h - claims that wait for a sandbox: first come, first served. Loop thread only, but for line_poke_later(). */
#pragma once

#include <uv.h>

#include "base/str.h"

struct api;
struct claim;
struct request;

struct line *line_new(struct api *a, uv_loop_t *loop, int64_t max);
void         line_free(struct line *l);

/* Before the loop ends. */
void line_close_handles(struct line *l);

int64_t line_count(const struct line *l);

/* Put a claim at the end. It is answered by the line: 201 or 200 when served, 409 when the time is up. on_served is
 * called with the request when its claim succeeded. False: the line is full, nothing happened. */
bool line_join(struct line *l, struct request *r, struct claim *claim, int64_t wait_ms,
               void (*on_served)(struct request *r));

/* The name prefixes that people in line wait for; the array lives in the arena. */
const struct str *line_reserved(const struct line *l, struct arena *a, size_t *ret_count);

/* A sandbox may have become free. From any thread. */
void line_poke_later(struct line *l);

/* Answer everybody with 503 and take nobody any more. */
void line_stop(struct line *l);
