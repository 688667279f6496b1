/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.c - the waiting line.
 *
 * People wait for a name prefix (mostly the empty one, which fits every sandbox). Those with the same prefix form a
 * group. When something may have become free, the first few of each group try their claim again, in the order in which
 * they came; while they succeed, the next ones follow; the first that finds nothing stops its group until the next poke.
 * A poke comes after every job and every operator's release, and once a second in any case.
 *
 * Fairness towards newcomers is kept by broker_claim(): it does not hand out what a group in line could use.
 *
 * Always true:
 *   1. A waiter is answered exactly once: served, timed out, or gone.
 *   2. A waiter whose claim is at the store is not answered before the claim is.
 */
#include "http/line.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "http/api.h"
#include "service/broker.h"

enum { GROUPS_MAX = 64, TRIES_AT_ONCE = 32, TICK_MS = 50, POLL_TICKS = 20 };

struct group {
	char      *prefix_text; /* owned */
	struct str prefix;
	int64_t    waiting, trying;
	bool       is_dry; /* its last try found nothing */
};

struct waiter {
	struct waiter  *prev, *next;
	struct line    *line;
	struct request *request;
	struct claim   *claim;
	struct group   *group;
	int64_t         deadline_ms;
	bool            is_trying, is_gone;
	void (*on_served)(struct request *r);
};

struct line {
	struct api    *api;
	struct waiter *first, *last;
	int64_t        count, max;
	struct group   groups[GROUPS_MAX];
	uv_timer_t     tick;
	uv_async_t     poke;
	unsigned       ticks;
	bool           is_stopped;
};

static void serve(struct line *l);
static void on_tick(uv_timer_t *handle);

int64_t line_count(const struct line *l)
{
	return l->count;
}

/* --- groups --- */

static struct group *find_group(struct line *l, struct str prefix)
{
	struct group *unused = NULL;

	for (size_t i = 0; i < GROUPS_MAX; i++) {
		if (l->groups[i].waiting && str_eq(l->groups[i].prefix, prefix))
			return &l->groups[i];
		if (!l->groups[i].waiting && !unused)
			unused = &l->groups[i];
	}
	if (unused) {
		free(unused->prefix_text);
		*unused = (struct group){ .prefix_text = mem_copy(prefix.p, prefix.n) };
		unused->prefix = str_of(unused->prefix_text, prefix.n);
	}
	return unused;
}

const struct str *line_reserved(const struct line *l, struct arena *a, size_t *ret_count)
{
	struct str *prefixes;

	*ret_count = 0;
	if (!l->count)
		return NULL;
	prefixes = arena_alloc(a, GROUPS_MAX * sizeof(*prefixes));
	for (size_t i = 0; i < GROUPS_MAX; i++)
		if (l->groups[i].waiting)
			prefixes[(*ret_count)++] = str_dup(a, l->groups[i].prefix);
	return prefixes;
}

/* --- joining and leaving --- */

static void leave(struct waiter *w)
{
	struct line *l = w->line;

	*(w->prev ? &w->prev->next : &l->first) = w->next;
	*(w->next ? &w->next->prev : &l->last) = w->prev;
	w->group->waiting--;
	l->count--;
	w->request->call->on_gone = NULL;
	metrics_set(api_options(l->api)->metrics, METRIC_WAITING, (double)l->count);
}

static void fail(struct waiter *w, enum rc rc, const char *why)
{
	struct request *r = w->request;
	struct err      e = { 0 };

	leave(w);
	rc_ignore(err_set(&e, rc, "%s", why)); /* noted in e */
	request_fail(r, &e);
}

static void fail_late(struct waiter *w)
{
	struct str  prefix = w->claim->prefix;
	const char *why = "no sandbox became free in time";

	if (prefix.n)
		why = str_format(&w->request->call->arena,
		                 "no sandbox whose name begins with '%.*s' became free in time", STR_ARG(prefix))
		              .p;
	fail(w, RC_EXHAUSTED, why);
}

/* The client hung up: no answer is of use, and no sandbox must be spent on it. */
static void on_gone(struct http_call *call)
{
	struct waiter *w = ((struct request *)call->user)->arg;

	w->is_gone = true;
	if (!w->is_trying)
		w->deadline_ms = 0; /* the next tick ends it */
}

bool line_join(struct line *l, struct request *r, struct claim *claim, int64_t wait_ms,
               void (*on_served)(struct request *r))
{
	struct waiter *w;
	struct group  *group = l->is_stopped || l->count >= l->max ? NULL : find_group(l, claim->prefix);

	if (!group)
		return false;
	w = arena_alloc(&r->call->arena, sizeof(*w));
	*w = (struct waiter){ .prev = l->last,
		              .line = l,
		              .request = r,
		              .claim = claim,
		              .group = group,
		              .deadline_ms = mono_now().ms + wait_ms,
		              .on_served = on_served };
	*(l->last ? &l->last->next : &l->first) = w;
	l->last = w;
	l->count++;
	group->waiting++;
	r->arg = w;
	r->call->on_gone = on_gone;
	claim->reserved_count = 0;
	metrics_set(api_options(l->api)->metrics, METRIC_WAITING, (double)l->count);
	if (!uv_is_active((uv_handle_t *)&l->tick))
		uv_timer_start(&l->tick, on_tick, TICK_MS, TICK_MS);
	return true;
}

/* --- serving --- */

static void on_tried(struct request *r)
{
	struct waiter *w = r->arg;
	struct line   *l = w->line;

	w->is_trying = false;
	w->group->trying--;
	if (!r->txn.rc) {
		leave(w);
		w->on_served(r);
	} else if (r->txn.rc == RC_EXHAUSTED && l->is_stopped) {
		fail(w, RC_UNAVAILABLE, "the server is stopping; ask again");
	} else if (r->txn.rc == RC_EXHAUSTED) {
		w->group->is_dry = true;
		if (w->is_gone)
			w->deadline_ms = 0;
	} else {
		struct err e = r->txn.e;

		leave(w);
		request_fail(r, &e);
	}
	serve(l);
}

static void serve(struct line *l)
{
	for (struct waiter *w = l->first; w; w = w->next) {
		if (w->is_trying || w->is_gone || w->group->is_dry || w->group->trying >= TRIES_AT_ONCE)
			continue;
		w->is_trying = true;
		w->group->trying++;
		request_submit(w->request, broker_claim, w->claim, false, on_tried);
	}
}

static void poke(struct line *l)
{
	for (size_t i = 0; i < GROUPS_MAX; i++)
		l->groups[i].is_dry = false;
	serve(l);
}

static void on_tick(uv_timer_t *handle)
{
	struct line *l = handle->data;
	int64_t      now = mono_now().ms;

	for (struct waiter *w = l->first, *next; w; w = next) {
		next = w->next;
		if (!w->is_trying && now >= w->deadline_ms)
			fail_late(w);
	}
	if (!l->count)
		uv_timer_stop(&l->tick);
	else if (++l->ticks % POLL_TICKS == 0)
		poke(l);
}

static void on_poke(uv_async_t *handle)
{
	poke(handle->data);
}

void line_poke_later(struct line *l)
{
	uv_async_send(&l->poke);
}

void line_stop(struct line *l)
{
	l->is_stopped = true;
	for (struct waiter *w = l->first, *next; w; w = next) {
		next = w->next;
		if (!w->is_trying)
			fail(w, RC_UNAVAILABLE, "the server is stopping; ask again");
		else
			w->deadline_ms = 0;
	}
}

/* --- life cycle --- */

struct line *line_new(struct api *a, uv_loop_t *loop, int64_t max)
{
	struct line *l = mem_new(struct line);

	l->api = a;
	l->max = max;
	l->tick.data = l->poke.data = l;
	if (uv_timer_init(loop, &l->tick) || uv_async_init(loop, &l->poke, on_poke))
		abort(); /* the loop was just made: only memory can be missing */
	return l;
}

void line_close_handles(struct line *l)
{
	uv_close((uv_handle_t *)&l->tick, NULL);
	uv_close((uv_handle_t *)&l->poke, NULL);
}

void line_free(struct line *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < GROUPS_MAX; i++)
		free(l->groups[i].prefix_text);
	free(l);
}
