/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.c - the waiting line.
 *
 * People wait for a name prefix (mostly the empty one, which fits every sandbox). Those with the same prefix form a
 * group. When something may have become free, the first few of each group try their claim again, in the order in which
 * they came; while they succeed, the next ones follow; the first that finds nothing stops its group until the next
 * poke. A poke comes after every job and every operator's release, and once a second in any case.
 *
 * Fairness towards newcomers is kept by broker_claim(): it does not hand out what a group in line could use.
 *
 * However many wait, a turn of the loop is short: an answer from the store concerns only its own group, of which at
 * most TRIES_AT_ONCE are looked at, and what would be too much at once goes on in the next turn.
 *
 * Always true:
 *   1. A waiter is answered exactly once: served, timed out, or gone.
 *   2. A waiter whose claim is at the store is not answered before the claim is.
 *   3. A waiter is in its group's list, or, when its client has left, in the list of those; of which none tries.
 */
#include "http/api/line.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "http/api/api.h"
#include "service/broker/broker.h"

enum {
	GROUPS_MAX = 64,
	TRIES_AT_ONCE = 32,
	TRIES_A_TURN = 128,  /* of all groups */
	ENDS_A_TURN = 64,    /* answers to those whose time is up */
	LOOKS_A_TURN = 2000, /* at those whose time may be up */
	TICK_MS = 50,
	POLL_MS = 1000,
};

/* In the order in which they came. */
struct waiters {
	struct waiter *first, *last;
};

struct group {
	char          *prefix_text; /* owned */
	struct str     prefix;
	struct waiters waiters;
	int64_t        waiting, trying; /* waiting: with those who have left and are not answered yet */
	bool           is_dry;          /* its last try found nothing */
};

struct waiter {
	struct waiter  *prev, *next;
	struct waiters *in;
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
	int64_t        count, max;
	struct group   groups[GROUPS_MAX];
	struct waiters gone;
	size_t         next_group; /* whose turn it is to try */
	struct waiter *looked_at;  /* whether its time is up; NULL: the next group's first */
	size_t         look_group;
	uv_timer_t     tick;
	uv_async_t     poke;
	atomic_bool    is_poked; /* otherwise the line woke itself up, to go on */
	int64_t        poll_ms;
	bool           is_stopped;
};

static void serve_group(struct group *g, int *left);
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

static void link_last(struct waiter *w, struct waiters *list)
{
	w->in = list;
	w->prev = list->last;
	w->next = NULL;
	*(list->last ? &list->last->next : &list->first) = w;
	list->last = w;
}

static void unlink_waiter(struct waiter *w)
{
	*(w->prev ? &w->prev->next : &w->in->first) = w->next;
	*(w->next ? &w->next->prev : &w->in->last) = w->prev;
	if (w->line->looked_at == w)
		w->line->looked_at = w->next;
}

static void leave(struct waiter *w)
{
	struct line *l = w->line;

	unlink_waiter(w);
	w->group->waiting--;
	l->count--;
	w->request->call->on_gone = NULL;
	metrics_set(l->api->options.metrics, METRIC_WAITING, (double)l->count);
}

static void fail(struct waiter *w, enum rc rc, const char *why)
{
	struct request *r = w->request;

	leave(w);
	request_refuse(r, rc, "%s", why);
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

static void drop(struct waiter *w)
{
	struct request *r = w->request;

	leave(w);
	request_drop(r);
}

/* The next tick ends it. */
static void set_aside(struct waiter *w)
{
	unlink_waiter(w);
	link_last(w, &w->line->gone);
}

/* The client hung up: no answer is of use, and no sandbox must be spent on it. */
static void on_gone(struct http_call *call)
{
	struct waiter *w = ((struct request *)call->user)->arg;

	w->is_gone = true;
	if (!w->is_trying)
		set_aside(w);
}

bool line_join(struct line *l, struct request *r, struct claim *claim, int64_t wait_ms,
               void (*on_served)(struct request *r))
{
	struct waiter *w;
	struct group  *group;

	if (l->is_stopped || l->count >= l->max || http_is_gone(r->call) || !(group = find_group(l, claim->prefix)))
		return false;
	w = arena_alloc(&r->call->arena, sizeof(*w));
	*w = (struct waiter){ .line = l,
		              .request = r,
		              .claim = claim,
		              .group = group,
		              .deadline_ms = mono_now().ms + wait_ms,
		              .on_served = on_served };
	link_last(w, &group->waiters);
	l->count++;
	group->waiting++;
	r->arg = w;
	r->call->on_gone = on_gone;
	claim->reserved_count = 0;
	metrics_set(l->api->options.metrics, METRIC_WAITING, (double)l->count);
	if (!uv_is_active((uv_handle_t *)&l->tick))
		uv_timer_start(&l->tick, on_tick, TICK_MS, TICK_MS);
	return true;
}

/* --- serving --- */

static void on_tried(struct request *r)
{
	struct waiter *w = r->arg;
	struct line   *l = w->line;
	struct group  *g = w->group;
	int            left = TRIES_AT_ONCE;

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
			set_aside(w);
	} else {
		struct err e = r->txn.e;

		leave(w);
		request_fail(r, &e);
	}
	serve_group(g, &left);
}

/* The first of the group try, as many as may at once. */
static void serve_group(struct group *g, int *left)
{
	for (struct waiter *w = g->waiters.first; w; w = w->next) {
		if (g->is_dry || g->trying >= TRIES_AT_ONCE || *left <= 0)
			return;
		if (w->is_trying)
			continue;
		w->is_trying = true;
		g->trying++;
		--*left;
		request_submit(w->request, broker_claim, w->claim, false, on_tried);
	}
}

static void serve(struct line *l)
{
	int left = TRIES_A_TURN;

	for (size_t i = 0; i < GROUPS_MAX && left > 0; i++) {
		serve_group(&l->groups[l->next_group], &left);
		if (left > 0)
			l->next_group = (l->next_group + 1) % GROUPS_MAX;
	}
	if (left <= 0)
		uv_async_send(&l->poke); /* the others in the next turn */
}

static void poke(struct line *l)
{
	for (size_t i = 0; i < GROUPS_MAX; i++)
		l->groups[i].is_dry = false;
	serve(l);
}

/* The next one to be looked at; NULL: all groups have been. */
static struct waiter *next_look(struct line *l)
{
	struct waiter *w;

	while (!l->looked_at && l->look_group < GROUPS_MAX)
		l->looked_at = l->groups[l->look_group++].waiters.first;
	w = l->looked_at;
	l->looked_at = w ? w->next : NULL;
	return w;
}

/* Answer those who have left, and those whose time is up. False: there are more to be looked at. */
static bool end_due(struct line *l, int64_t now)
{
	int looks = LOOKS_A_TURN, ends = ENDS_A_TURN;

	for (; l->gone.first && ends > 0; ends--)
		drop(l->gone.first);
	while (looks-- > 0 && ends > 0) {
		struct waiter *w = next_look(l);

		if (!w) {
			l->look_group = 0;
			return true;
		}
		if (w->is_trying || now < w->deadline_ms)
			continue;
		ends--;
		fail_late(w);
	}
	return false;
}

static void on_tick(uv_timer_t *handle)
{
	struct line *l = handle->data;
	int64_t      now = mono_now().ms;
	bool         is_done = end_due(l, now);

	if (!l->count)
		uv_timer_stop(&l->tick);
	else if (!is_done)
		uv_timer_start(&l->tick, on_tick, 1, TICK_MS); /* the others in a moment */
	if (l->count && now >= l->poll_ms) {
		l->poll_ms = now + POLL_MS;
		poke(l);
	}
}

static void on_poke(uv_async_t *handle)
{
	struct line *l = handle->data;

	if (atomic_exchange(&l->is_poked, false))
		poke(l);
	else
		serve(l);
}

void line_poke_later(struct line *l)
{
	atomic_store(&l->is_poked, true);
	uv_async_send(&l->poke);
}

void line_stop(struct line *l)
{
	l->is_stopped = true;
	for (size_t i = 0; i < GROUPS_MAX; i++) {
		for (struct waiter *w = l->groups[i].waiters.first, *next; w; w = next) {
			next = w->next;
			if (!w->is_trying)
				fail(w, RC_UNAVAILABLE, "the server is stopping; ask again");
			else
				w->deadline_ms = 0;
		}
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
		mem_out("the waiting line"); /* the loop was just made */
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
