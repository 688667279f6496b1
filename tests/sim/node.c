/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.c - a process of the simulation: it does what the pump does with threads, one stage of one work at a time.
 *
 * A node looks for work, takes some of it in hand, and with each step brings one of them one stage further. Between
 * any two steps it may be paused for longer than its claims last, or crash and lose everything it had in hand. Timers
 * are settled in the order in which they were found; all else in any order.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "bank.h"
#include "instances.h"
#include "leases.h"
#include "sagas.h"
#include "schedule.h"
#include "service/jobs/jobs.h"
#include "service/services.h"
#include "sim.h"

enum { FIND_LIMIT = 4, LEASE_MS = 60000, STORE_RETRY_MS = 5000, SKEW_MAX_MS = 1000 };

static uint64_t draw(void *arg)
{
	return chance_next(arg);
}

/* A commit of its own has left something to do. */
static void wake(void *arg)
{
	struct sim_node *n = arg;

	n->idle_until_ms = 0;
}

static void make_kernel(struct sim_node *n)
{
	struct sim           *sim = n->sim;
	struct kernel_options o = { .store = &n->base,
		                    .clock = &n->clock,
		                    .node = str_from(n->name),
		                    .source = STR("simulated"),
		                    .account = STR("000000000000"),
		                    .region = STR("nowhere"),
		                    .queues = n->queues,
		                    .queue_count = NODE_QUEUES - LEASE_QUEUES,
		                    .routes = bank_routes,
		                    .route_count = bank_route_count,
		                    .sagas = sagas_kinds(sim),
		                    .saga_count = SAGA_KINDS + 1,
		                    .hooks = service_hooks,
		                    .hook_count = service_hook_count,
		                    .lease_ms = LEASE_MS,
		                    .timers_per_sec = 50,
		                    .random = draw,
		                    .random_arg = &n->chance };

	n->jobs = schedule_start(n);
	n->queues[BANK_LEDGER] = sim->bank->queues[BANK_LEDGER];
	n->queues[BANK_COURIER] = sim->bank->queues[BANK_COURIER];
	n->queues[BANK_QUEUE_COUNT] = jobs_queue(n->jobs);
	leases_start(n, &o);
	instances_start(n, &o);
	n->chance.state = chance_next(&sim->chance);
	o.is_eager = n->chance.state >> 40 & 1; /* each process does it its own way */
	n->kernel = kernel_new(&o);
	kernel_on_news(n->kernel, wake, n);
}

void node_start(struct sim_node *n)
{
	enum rc rc;

	make_kernel(n);
	n->is_armed = false;
	n->idle_until_ms = 0;
	n->away_until_ms = INT64_MAX; /* nobody is served before the newest id is known */
	rc = kernel_prime(n->kernel, NULL);
	n->away_until_ms = 0;
	if (rc) {
		node_crash(n);
		n->away_until_ms = sim_now(n->sim) + STORE_RETRY_MS;
	} else if (n->sim->profile.nodes == 1) {
		rc_ignore(kernel_recover(n->kernel, NULL)); /* else the claims run out */
	}
}

void node_open(struct sim *sim, int number)
{
	struct sim_node *n = &sim->nodes[number];

	*n = (struct sim_node){ .sim = sim, .clock = sim->clock };
	n->skew_ms = chance_from_to(&sim->chance, -SKEW_MAX_MS, SKEW_MAX_MS);
	sim_set_clock(sim, 0);
	(void)snprintf(n->name, sizeof(n->name), "node-%d", number + 1);
	world_open_view(n);
	node_start(n);
}

static void drop_work(struct sim_node *n, size_t at)
{
	struct work *dropped = n->hand[at].work;

	arena_reset(&dropped->arena);
	n->hand_count--;
	for (; at < n->hand_count; at++)
		n->hand[at] = n->hand[at + 1];
	n->hand[n->hand_count].work = dropped;
}

void node_crash(struct sim_node *n)
{
	while (n->hand_count)
		drop_work(n, n->hand_count - 1);
	kernel_free(n->kernel);
	schedule_end(n->jobs);
	leases_end(n);
	instances_end(n);
	n->kernel = NULL;
	n->jobs = NULL;
}

void node_close(struct sim_node *n)
{
	node_crash(n);
	for (size_t i = 0; i < HAND_MAX && n->hand[i].work; i++) {
		work_fini(n->hand[i].work);
		free(n->hand[i].work);
	}
	arena_fini(&n->arena);
	store_close(&n->base);
}

bool node_is_up(const struct sim_node *n)
{
	return n->kernel && sim_now(n->sim) >= n->away_until_ms;
}

bool node_is_busy(const struct sim_node *n)
{
	return node_is_up(n) && (n->hand_count || sim_now(n->sim) >= n->idle_until_ms);
}

enum rc node_run(struct sim_node *n, txn_fn *run, void *arg, struct arena *a, struct err *e)
{
	return store_run(&n->base, run, arg, a, e);
}

enum rc node_read(struct sim_node *n, txn_fn *run, void *arg, struct arena *a, struct err *e)
{
	return store_read(&n->base, run, arg, a, e);
}

/* --- finding --- */

static bool has_in_hand(const struct sim_node *n, const struct work *w)
{
	for (size_t i = 0; i < n->hand_count; i++)
		if (n->hand[i].work->kind == w->kind && str_eq(n->hand[i].work->key, w->key))
			return true;
	return false;
}

static void check_timer_order(struct sim *sim, const struct work_list *list)
{
	const struct work *last = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct work *w = &list->items[i];

		if (w->kind != WORK_TIMER)
			continue;
		if (last && last->due_ms > w->due_ms)
			sim_broken(sim, "overdue timers fire in due order", "timer %.*s is found before %.*s",
			           STR_ARG(last->key), STR_ARG(w->key));
		last = w;
	}
}

static void take(struct sim_node *n, const struct work *w)
{
	if (!n->hand[n->hand_count].work)
		n->hand[n->hand_count].work = mem_new(struct work);
	work_copy(n->hand[n->hand_count].work, w);
	n->hand[n->hand_count++].stage = STAGE_FOUND;
}

static void find(struct sim_node *n)
{
	struct sim      *sim = n->sim;
	struct work_list list = { 0 };
	struct err       e = { 0 };
	int64_t          latest_ms = sim_now(sim) + NODE_POLL_MS;
	enum rc          rc;

	if (!n->is_armed)
		schedule_arm(n);
	arena_reset(&n->arena);
	rc = work_find(n->kernel, FIND_LIMIT, (struct work_skips){ 0 }, &n->arena, &list, &e);
	if (rc) {
		n->idle_until_ms = sim_now(sim) + STORE_RETRY_MS;
		sim_trace(sim, n, "looks for work: %s", e.msg);
		return;
	}
	check_timer_order(sim, &list);
	for (size_t i = 0; i < list.count && n->hand_count < HAND_MAX; i++)
		if (!has_in_hand(n, &list.items[i]))
			take(n, &list.items[i]);
	n->idle_until_ms = list.next_due_ms == INT64_MAX ? INT64_MAX : list.next_due_ms - n->skew_ms;
	if (list.count)
		n->idle_until_ms = sim_now(sim) + 1; /* there may be more behind these */
	if (n->idle_until_ms > latest_ms && sim->has_lagged)
		n->idle_until_ms = latest_ms; /* what it has just seen is old */
	if (list.count)
		sim_trace(sim, n, "looks for work: finds %zu", list.count);
}

/* --- stages --- */

static const char *kind_name(const struct work *w)
{
	static const char *const names[] = { [WORK_LANE] = "lane", [WORK_TIMER] = "timer", [WORK_SAGA] = "saga" };

	return names[w->kind];
}

static void tell(struct sim_node *n, const struct work *w, const char *what, enum rc rc, const struct err *e)
{
	const char *outcome = rc ? e->msg : "ok";

	if (!sim_is_heard(n->sim))
		return;
	if (!rc && w->is_lost)
		outcome = "not ours";
	else if (!rc && w->has_failed)
		outcome = w->failure.msg;
	sim_trace(n->sim, n, "%s %s %.*s: %s", what, kind_name(w), STR_ARG(w->key), outcome);
}

/* The worst moments to be paused are before and after a call, for about as long as a claim lasts. */
static void doze(struct sim_node *n)
{
	struct sim *sim = n->sim;

	if (!sim_fault(sim, SIM_PAUSE, 4 * sim->profile.crash))
		return;
	n->away_until_ms = sim_now(sim) + chance_below(&sim->chance, 2 * LEASE_MS);
	sim_trace(sim, n, "is paused for %lld ms", (long long)(n->away_until_ms - sim_now(sim)));
}

static void claim(struct sim_node *n, size_t at)
{
	struct work *w = n->hand[at].work;
	struct err   e = { 0 };
	enum rc      rc = node_run(n, work_claim, w, &w->arena, &e);

	tell(n, w, "claims", rc, &e);
	if (rc || !w->is_claimed)
		drop_work(n, at);
	else
		n->hand[at].stage = STAGE_CLAIMED;
	doze(n);
}

/* Now and then a process is asked to end while it calls. */
static bool may_go_on(void *arg)
{
	struct sim *sim = arg;

	return sim->is_calm || !chance_is(&sim->chance, sim->profile.crash);
}

static void perform(struct sim_node *n, size_t at)
{
	const struct sim_node *outer = n->sim->caller; /* in whose call this one came */
	struct work           *w = n->hand[at].work;

	w->may_go_on = may_go_on;
	w->may_go_on_arg = n->sim;
	n->sim->caller = n;
	work_perform(w);
	n->sim->caller = outer;
	tell(n, w, "performs", RC_OK, NULL);
	n->hand[at].stage = STAGE_PERFORMED;
	doze(n);
}

/* The last word about a call: whoever waits for it is told. */
static void end_work(struct sim_node *n, size_t at)
{
	work_over(n->hand[at].work);
	drop_work(n, at);
}

static void settle(struct sim_node *n, size_t at)
{
	struct work *w = n->hand[at].work;
	struct err   e = { 0 };
	enum rc      rc = node_run(n, work_settle, w, &w->arena, &e);

	tell(n, w, "settles", rc, &e);
	if (work_is_to_blame(w, rc, &e))
		n->hand[at].stage = STAGE_REFUSED;
	else if (!rc && w->has_more && w->kind == WORK_SAGA)
		n->hand[at].stage = STAGE_CLAIMED;
	else if (rc || !w->has_more || w->needs_call)
		end_work(n, at);
}

static void refuse(struct sim_node *n, size_t at)
{
	struct work *w = n->hand[at].work;
	struct err   e = { 0 };
	enum rc      rc = node_run(n, work_refuse, w, &w->arena, &e);

	tell(n, w, "notes the failure of", rc, &e);
	end_work(n, at);
}

static void extend(struct sim_node *n, size_t at)
{
	struct work *w = n->hand[at].work;
	struct err   e = { 0 };
	enum rc      rc = work_keep(w, &e);

	tell(n, w, "keeps", rc, &e);
	if (!rc && w->is_lost)
		drop_work(n, at);
}

/* The one in hand to go on with. */
static size_t choose(struct sim_node *n)
{
	size_t at = (size_t)chance_below(&n->sim->chance, (int64_t)n->hand_count);

	if (n->hand[at].work->kind == WORK_TIMER)
		for (at = 0; n->hand[at].work->kind != WORK_TIMER; at++)
			;
	return at;
}

static void go_on(struct sim_node *n, size_t at)
{
	bool is_claimed = n->hand[at].stage == STAGE_CLAIMED || n->hand[at].stage == STAGE_PERFORMED;

	if (is_claimed && chance_is(&n->sim->chance, 30)) {
		extend(n, at);
		return;
	}
	switch (n->hand[at].stage) {
	case STAGE_FOUND: n->hand[at].work->needs_call ? claim(n, at) : settle(n, at); return;
	case STAGE_CLAIMED: perform(n, at); return;
	case STAGE_PERFORMED: settle(n, at); return;
	case STAGE_REFUSED: refuse(n, at); return;
	}
}

void node_step(struct sim_node *n)
{
	bool looks = sim_now(n->sim) >= n->idle_until_ms;

	if (n->hand_count && !(looks && n->hand_count < HAND_MAX / 2 && chance_is(&n->sim->chance, 60)))
		go_on(n, choose(n));
	else if (looks)
		find(n);
}
