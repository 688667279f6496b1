/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.c - the switches of the simulated world.
 *
 * A rule says what happens, to which call, how likely, how often and until when. Chance comes from the world's random
 * function, so a seed decides everything. Rules live in memory: a new process starts with a world without faults.
 *
 * Always true:
 *   1. An outage, a throttle and a time-out before the effect mean that nothing happened. [sim_faults_before()]
 *   2. A time-out after the effect means that it happened, and only to calls that succeeded. [sim_faults_after()]
 *   3. A rule with a count happens at most that often, on however many threads. [the lock]
 */
#include "providers/sim/faults.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"

struct sim_faults {
	struct sim_faults_options options;
	pthread_mutex_t           lock; /* of all below, and of the random function */
	struct world_rules        rules;
	struct world_counts       counts;
};

struct sim_faults *sim_faults_new(const struct sim_faults_options *o)
{
	struct sim_faults *f = mem_new(struct sim_faults);

	f->options = *o;
	pthread_mutex_init(&f->lock, NULL);
	return f;
}

void sim_faults_free(struct sim_faults *f)
{
	if (!f)
		return;
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void sim_faults_set(struct sim_faults *f, const struct world_rules *rules)
{
	LOCKED(&f->lock);
	f->rules = *rules;
}

static bool is_over(const struct world_rule *r, int64_t now_ms)
{
	return r->per_mille == 0 || (r->until_ms && now_ms >= r->until_ms);
}

struct world_rules sim_faults_get(struct sim_faults *f)
{
	int64_t            now_ms = clock_now(f->options.clock).ms;
	struct world_rules live = { .count = 0 };

	LOCKED(&f->lock);
	for (size_t i = 0; i < f->rules.count; i++)
		if (!is_over(&f->rules.rules[i], now_ms))
			live.rules[live.count++] = f->rules.rules[i];
	return live;
}

struct world_counts sim_faults_counts(struct sim_faults *f)
{
	LOCKED(&f->lock);
	return f->counts;
}

/* The rule that strikes now, or NULL. With the lock. */
static const struct world_rule *strike(struct sim_faults *f, enum world_fault fault, struct sim_about about)
{
	int64_t now_ms = clock_now(f->options.clock).ms;

	for (size_t i = 0; i < f->rules.count; i++) {
		struct world_rule *r = &f->rules.rules[i];

		if (r->fault != fault || (r->call != WORLD_ANY_CALL && r->call != about.call) ||
		    (r->resource && r->resource != about.resource) || is_over(r, now_ms))
			continue;
		if (r->per_mille < 1000 && (int64_t)(f->options.random(f->options.random_arg) % 1000) >= r->per_mille)
			continue;
		f->counts.faults[fault]++;
		if (r->count && --r->count == 0)
			r->per_mille = 0; /* used up */
		return r;
	}
	return NULL;
}

bool sim_faults_hit(struct sim_faults *f, enum world_fault fault)
{
	LOCKED(&f->lock);
	return strike(f, fault, (struct sim_about){ WORLD_ANY_CALL, 0 }) != NULL;
}

enum rc sim_faults_before_of(struct sim_faults *f, struct sim_about about, struct err *e)
{
	static const enum world_fault ways[] = { WORLD_OUTAGE, WORLD_THROTTLE, WORLD_TIMEOUT_BEFORE };
	const char                   *name = world_call_names[about.call];
	const struct world_rule      *latency;
	enum world_fault              how = WORLD_FAULT_COUNT;
	int64_t                       ms = 0;

	pthread_mutex_lock(&f->lock);
	f->counts.calls[about.call]++;
	if ((latency = strike(f, WORLD_LATENCY, about)))
		ms = latency->latency_ms;
	f->counts.latency_ms += (uint64_t)ms;
	for (size_t i = 0; i < ARRAY_LEN(ways) && how == WORLD_FAULT_COUNT; i++)
		if (strike(f, ways[i], about))
			how = ways[i];
	pthread_mutex_unlock(&f->lock);

	if (ms && f->options.waits)
		mono_sleep(ms);
	switch (how) {
	case WORLD_OUTAGE: return err_set_code(e, RC_UNAVAILABLE, "ServiceException", "simulated outage of %s", name);
	case WORLD_THROTTLE:
		return err_set_code(e, RC_LIMITED, "TooManyRequestsException", "simulated throttling of %s", name);
	case WORLD_TIMEOUT_BEFORE: return err_set(e, RC_TIMEOUT, "simulated time-out of %s", name);
	default: return RC_OK;
	}
}

enum rc sim_faults_after_of(struct sim_faults *f, struct sim_about about, enum rc rc, struct err *e)
{
	bool is_lost = false;

	LOCKED(&f->lock);
	if (rc)
		f->counts.refused[about.call]++;
	else
		is_lost = strike(f, WORLD_TIMEOUT_AFTER, about) != NULL;
	return is_lost ? err_set(e, RC_TIMEOUT, "simulated time-out of %s", world_call_names[about.call]) : rc;
}

uint64_t sim_faults_random(struct sim_faults *f)
{
	LOCKED(&f->lock);
	return f->options.random(f->options.random_arg);
}

void sim_faults_uuid(struct sim_faults *f, char ret[ID_UUID_SIZE])
{
	unsigned long long a = sim_faults_random(f), b = sim_faults_random(f);

	snprintf(ret, ID_UUID_SIZE, "%08llx-%04llx-4%03llx-%04llx-%012llx", a >> 32, a >> 16 & 0xffff, a & 0xfff,
	         (b >> 48 & 0x3fff) | 0x8000, b & 0xffffffffffff);
}
