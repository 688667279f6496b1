/* faults.h - what goes wrong in the simulated world: switches, chance, counts. Any thread. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "domain/world.h"

struct sim_faults_options {
	const struct clock *clock;
	uint64_t (*random)(void *arg);
	void *random_arg;
	bool  waits; /* latency takes its time; otherwise it is only counted */
};

struct sim_faults *sim_faults_new(const struct sim_faults_options *o);
void               sim_faults_free(struct sim_faults *f);

void                sim_faults_set(struct sim_faults *f, const struct world_rules *rules);
struct world_rules  sim_faults_get(struct sim_faults *f);
struct world_counts sim_faults_counts(struct sim_faults *f);

/* What a call is about, when rules can tell: 1 + an enum instance_resource, or 0. */
struct sim_about {
	enum world_call call;
	int64_t         resource;
};

/* A call comes in: waits, then RC_OK, or how it fails before it has done anything. */
MUST_CHECK enum rc sim_faults_before_of(struct sim_faults *f, struct sim_about about, struct err *e);

/* It is done, with this result: what the caller hears of it. */
MUST_CHECK enum rc sim_faults_after_of(struct sim_faults *f, struct sim_about about, enum rc rc, struct err *e);

MUST_CHECK static inline enum rc sim_faults_before(struct sim_faults *f, enum world_call call, struct err *e)
{
	return sim_faults_before_of(f, (struct sim_about){ call, 0 }, e);
}

MUST_CHECK static inline enum rc sim_faults_after(struct sim_faults *f, enum world_call call, enum rc rc, struct err *e)
{
	return sim_faults_after_of(f, (struct sim_about){ call, 0 }, rc, e);
}

/* Does this happen now? For what does not happen to a call. */
bool sim_faults_hit(struct sim_faults *f, enum world_fault fault);

uint64_t sim_faults_random(struct sim_faults *f);

/* A UUID (version 4) by that chance. */
void sim_faults_uuid(struct sim_faults *f, char ret[ID_UUID_SIZE]);
