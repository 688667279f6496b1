/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive.c - the life of one seed: who does what next, what goes wrong, how time passes, and how it ends.
 *
 * Each turn one thing happens: an operation whose time has come, a mishap, one stage of one node's work; or, when
 * nobody has anything to do, time passes until somebody has. After the last day there are no more faults; everything
 * is driven until it is quiet, and all promises are checked. Then what was poisoned is healed, dead letters are
 * replayed and parked sagas retried, and after that nothing at all may be left.
 */
#include "alarms.h"
#include "bank.h"
#include "clouds.h"
#include "instances.h"
#include "leases.h"
#include "model.h"
#include "outside.h"
#include "pool.h"
#include "sagas.h"
#include "schedule.h"
#include "sim.h"
#include "truth/test_clock.h"

enum {
	QUIET_STEPS_MAX = 200000,
	COUNT_EVERY = 64,
	REPLAYS_MAX = 20,
	ROUNDS_MAX = 3,
	BURST_PAUSE_MS = 3000,
	FEED_PAUSE_MS = 30 * 60000,
	LEASES_PERMILLE = 850 /* of the operations, where there are leases */
};

/* --- how rough this world is --- */

static int64_t one_of(struct chance *c, const int64_t *values, size_t count)
{
	return values[chance_below(c, (int64_t)count)];
}

#define ONE_OF(c, ...) one_of(c, (const int64_t[]){ __VA_ARGS__ }, ARRAY_LEN(((const int64_t[]){ __VA_ARGS__ })))

static void draw_profile(struct sim *sim)
{
	struct chance *c = &sim->chance;

	sim->profile = (struct profile){
		.days = ONE_OF(c, 1, 1, 1, 1, 2, 2, 3, 7),
		.pace = 1,
		.nodes = (int)chance_from_to(c, 1, NODES_USUAL),
		.op_pause_ms = ONE_OF(c, 8, 25, 60) * 60000,
		.store = ONE_OF(c, 0, 5, 20, 60),
		.lag = ONE_OF(c, 0, 0, 100, 400),
		.interleave = ONE_OF(c, 0, 30, 150),
		.crash = ONE_OF(c, 0, 1, 4, 12),
		.jump = ONE_OF(c, 0, 0, 2, 5),
		.call = ONE_OF(c, 0, 30, 200, 400),
		.step = ONE_OF(c, 0, 30, 150, 400),
		.vendor = ONE_OF(c, 0, 50, 300),
		.outside = ONE_OF(c, 0, 100, 400),
	};
	if (sim->nodes_wanted)
		sim->profile.nodes = sim->nodes_wanted;
	if (sim_is_long(sim)) {
		sim->profile.days = sim->days_wanted;
		sim->profile.pace = LONG_PACE;
		sim->profile.op_pause_ms = sim_paced(sim, sim->profile.op_pause_ms);
	}
}

/* --- who is there --- */

static struct sim_node *any_node(struct sim            *sim, bool (*is_fit)(const struct sim_node *n),
                                 const struct sim_node *except)
{
	struct sim_node *fit[NODES_MAX];
	int              count = 0;

	for (int i = 0; i < sim->profile.nodes; i++)
		if (&sim->nodes[i] != except && is_fit(&sim->nodes[i]))
			fit[count++] = &sim->nodes[i];
	return count ? fit[chance_below(&sim->chance, count)] : NULL;
}

static void operate(struct sim_node *n)
{
	int64_t what = chance_below(&n->sim->chance, 100);

	if (n->sim->leases && chance_is(&n->sim->chance, LEASES_PERMILLE))
		leases_operate(n);
	else if (n->sim->instances && chance_is(&n->sim->chance, LEASES_PERMILLE))
		instances_operate(n);
	else if (what < 40)
		bank_operate(n);
	else if (what < 70)
		pool_operate(n);
	else if (what < 78)
		outside_send(n);
	else if (what < 83)
		clouds_operate(n);
	else if (what < 92)
		bank_operator(n);
	else if (what < 94)
		alarms_compute(n);
	else
		sagas_operator(n);
}

void sim_interleave(struct sim *sim, const struct sim_node *n)
{
	struct sim_node *other;

	if (sim->depth || sim->is_calm)
		return;
	sim->depth++;
	other = any_node(sim, node_is_busy, n);
	if (other && chance_is(&sim->chance, 900))
		node_step(other);
	else if (chance_is(&sim->chance, 200) && (other = any_node(sim, node_is_up, NULL)))
		chance_is(&sim->chance, 500) ? sagas_operator(other) : operate(other);
	sim->depth--;
}

/* --- mishaps --- */

static void lose_node(struct sim *sim, struct sim_node *n)
{
	int64_t away_ms = chance_is(&sim->chance, 500) ? chance_from_to(&sim->chance, 10, 5000)
	                                               : chance_from_to(&sim->chance, 5000, 600000);

	n->away_until_ms = sim_now(sim) + away_ms;
	switch (chance_below(&sim->chance, 3)) {
	case 0:
		sim->faults[SIM_CRASH]++;
		sim_trace(sim, n, "crashes with %zu works in hand, back in %lld ms", n->hand_count, (long long)away_ms);
		node_crash(n);
		break;
	case 1:
		sim->faults[SIM_PAUSE]++;
		sim_trace(sim, n, "is paused for %lld ms with %zu works in hand", (long long)away_ms, n->hand_count);
		break;
	default:
		sim->faults[SIM_STORE_OUTAGE]++;
		n->outage_until_ms = n->away_until_ms;
		n->away_until_ms = 0;
		sim_trace(sim, n, "does not reach the store for %lld ms", (long long)away_ms);
		break;
	}
}

static void jump_clock(struct sim *sim)
{
	bool    is_back = chance_is(&sim->chance, 400);
	int64_t ms = is_back ? -chance_from_to(&sim->chance, 1000, 30 * 60000)
	                     : chance_from_to(&sim->chance, 1000, 6 * HOUR_MS);

	sim->faults[is_back ? SIM_CLOCK_BACK : SIM_CLOCK_FORWARD]++;
	sim_set_clock(sim, ms);
	sim->next_op_ms += ms;
	sim->next_feed_ms += ms;
	for (int i = 0; i < sim->profile.nodes; i++) {
		sim->nodes[i].away_until_ms += sim->nodes[i].away_until_ms ? ms : 0;
		sim->nodes[i].outage_until_ms += sim->nodes[i].outage_until_ms ? ms : 0;
		sim->nodes[i].idle_until_ms = 0; /* nobody sleeps by the wall clock */
	}
	sim_trace(sim, NULL, "the clock jumps by %lld ms", (long long)ms);
}

static bool has_mishap(struct sim *sim)
{
	if (sim->is_calm)
		return false;
	if (chance_is(&sim->chance, sim->profile.crash)) {
		lose_node(sim, &sim->nodes[chance_below(&sim->chance, sim->profile.nodes)]);
		return true;
	}
	if (chance_is(&sim->chance, sim->profile.jump)) {
		jump_clock(sim);
		return true;
	}
	return false;
}

/* --- time --- */

static void restart_nodes(struct sim *sim)
{
	for (int i = 0; i < sim->profile.nodes; i++) {
		struct sim_node *n = &sim->nodes[i];

		if (n->kernel || sim_now(sim) < n->away_until_ms)
			continue;
		node_start(n);
		sim_trace(sim, n, "starts");
	}
}

/* When somebody will have something to do; INT64_MAX: never. People wait until there is a node to talk to. */
static int64_t next_moment(const struct sim *sim)
{
	int64_t next = INT64_MAX;
	bool    is_anybody_up = false;

	for (int i = 0; i < sim->profile.nodes; i++) {
		const struct sim_node *n = &sim->nodes[i];
		int64_t                at = n->kernel && !n->hand_count ? n->idle_until_ms : 0;

		if (at < n->away_until_ms)
			at = n->away_until_ms;
		if (at < next)
			next = at;
		is_anybody_up |= node_is_up(n);
	}
	if (is_anybody_up && sim->next_op_ms < next)
		next = sim->next_op_ms;
	if (is_anybody_up && sim->next_feed_ms < next)
		next = sim->next_feed_ms;
	return next;
}

/* Operations come in bursts, with long pauses between them. */
static int64_t draw_pause(struct sim *sim)
{
	return chance_below(&sim->chance, chance_is(&sim->chance, 600) ? BURST_PAUSE_MS : 4 * sim->profile.op_pause_ms);
}

void sim_call_takes(struct sim *sim, int64_t ms)
{
	const struct sim_node *caller = sim->caller;
	int64_t                until_ms = sim->lived_ms + ms;
	struct sim_node       *other;

	if (sim->depth || sim->is_calm || !sim->caller) {
		sim_pass(sim, ms);
		return;
	}
	sim->depth++;
	while (!sim->has_failed && sim->lived_ms < until_ms) {
		restart_nodes(sim);
		other = any_node(sim, node_is_busy, caller);
		if (chance_is(&sim->chance, 20) && any_node(sim, node_is_up, NULL))
			operate(any_node(sim, node_is_up, NULL));
		else if (other)
			node_step(other);
		sim_pass(sim, chance_below(&sim->chance, other ? 100 : 2000));
	}
	sim->depth--;
}

/* False: nothing will ever happen. */
static bool turn(struct sim *sim)
{
	struct sim_node *n;
	int64_t          next;

	sim->steps++;
	restart_nodes(sim);
	if (has_mishap(sim))
		return true;
	if (sim_now(sim) >= sim->next_op_ms && (n = any_node(sim, node_is_up, NULL))) {
		sim->next_op_ms = sim_now(sim) + draw_pause(sim);
		operate(n);
		return true;
	}
	if (sim_now(sim) >= sim->next_feed_ms && (n = any_node(sim, node_is_up, NULL))) {
		sim->next_feed_ms = sim_now(sim) + FEED_PAUSE_MS;
		clouds_feed(n);
		return true;
	}
	if ((n = any_node(sim, node_is_busy, NULL))) {
		node_step(n);
		sim_pass(sim, chance_below(&sim->chance, 100));
		return true;
	}
	next = next_moment(sim);
	if (next == INT64_MAX)
		return false;
	sim_pass(sim, next > sim_now(sim) ? next - sim_now(sim) : 1);
	return true;
}

/* --- the end --- */

static void drive_until_idle(struct sim *sim)
{
	int64_t left = QUIET_STEPS_MAX;

	for (int i = 0; i < sim->profile.nodes; i++)
		sim->nodes[i].idle_until_ms = 0;
	while (!sim->has_failed && turn(sim))
		if (--left == 0) {
			sim_broken(sim, "everything comes to an end", "still busy after %d steps without a fault",
			           QUIET_STEPS_MAX);
			return;
		}
}

/* The cloud's events come long after what they tell of. */
static void drive_to_quiet(struct sim *sim)
{
	do
		drive_until_idle(sim);
	while (!sim->has_failed && (clouds_feed_rest(&sim->nodes[0]) || leases_settle(&sim->nodes[0])));
}

static void check_quiet(struct sim *sim)
{
	if (sim->has_failed)
		return;
	sim_trace(sim, NULL, "all is quiet");
	model_check_quiet(sim);
	sagas_check_quiet(sim);
	pool_check_counts(&sim->nodes[0]);
	outside_check_quiet(sim);
	clouds_check_quiet(sim);
	leases_check_quiet(&sim->nodes[0]);
	instances_check_quiet(&sim->nodes[0]);
	alarms_check_quiet(&sim->nodes[0]);
}

/* All that was given up on. False: nothing was. */
static bool try_again(struct sim_node *n)
{
	int replays = 0;

	while (replays < REPLAYS_MAX && bank_replay_all(n))
		replays++;
	return sagas_retry_all(n) || replays;
}

static void end_well(struct sim *sim)
{
	struct sim_node *n = &sim->nodes[0];
	int64_t          began_ms = sim->lived_ms;

	sim->is_calm = true;
	sim->next_op_ms = sim->next_feed_ms = INT64_MAX; /* fed by drive_to_quiet() */
	clouds_calm(sim);
	leases_calm(sim);
	instances_calm(sim);
	for (int i = 0; i < sim->profile.nodes; i++)
		sim->nodes[i].away_until_ms = sim->nodes[i].outage_until_ms = 0;
	restart_nodes(sim);
	schedule_pause_all(n, true);
	while (outside_send_rest(n))
		;
	drive_to_quiet(sim);
	check_quiet(sim);
	if (sim->has_failed)
		return;
	sim->bank->is_healed = true;
	/* In a crowd a node may be so slow that others take its work over, which counts as a try: so a letter may die
	 * again although nothing fails. */
	for (int round = 0; round < ROUNDS_MAX && try_again(n); round++) {
		drive_to_quiet(sim);
		check_quiet(sim);
	}
	schedule_pause_all(n, false);
	if (!sim->has_failed && bank_replay_all(n))
		sim_broken(sim, "a dead letter can be replayed",
		           "there are dead letters, although nothing fails any more");
	if (!sim->has_failed && sagas_retry_all(n))
		sim_broken(sim, "a parked saga can be retried",
		           "there are parked sagas, although nothing fails any more");
	sim->calm_ms = sim->lived_ms - began_ms;
}

void sim_run(struct sim *sim, uint64_t seed)
{
	enum { START_SEC = 1767225600 }; /* 2026-01-01 */

	sim->seed = seed;
	sim->chance.state = seed * 0x2545f4914f6cdd1dull + 1;
	sim->clock = clock_test(START_SEC * 1000ll);
	sim->start_ms = sim->clock.test_ms;
	draw_profile(sim);
	sim->end_ms = sim->start_ms + sim->profile.days * DAY_MS;
	bank_open(sim);
	sagas_open(sim);
	pool_open(sim);
	schedule_open(sim);
	alarms_open(sim);
	outside_open(sim);
	clouds_open(sim);
	leases_open(sim);
	instances_open(sim);
	model_open(sim);
	world_open(sim);
	if (sim->leases)
		leases_seed(sim);
	for (int i = 0; i < sim->profile.nodes; i++)
		node_open(sim, i);
	while (!sim->has_failed && sim_now(sim) < sim->end_ms) {
		(void)turn(sim); /* there is always a next operation */
		if (sim->steps % COUNT_EVERY == 0 && node_is_up(&sim->nodes[0])) {
			pool_check_counts(&sim->nodes[0]);
			leases_check_counts(&sim->nodes[0]);
		}
	}
	if (!sim->has_failed)
		end_well(sim);
}

void sim_end(struct sim *sim)
{
	for (int i = 0; i < sim->profile.nodes; i++)
		node_close(&sim->nodes[i]);
	world_close(sim);
	clouds_close(sim);
	leases_close(sim);
	instances_close(sim);
	arena_fini(&sim->arena);
}
