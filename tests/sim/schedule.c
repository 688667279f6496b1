/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - the jobs of the product in the simulation: sync, cleanup, expiry, the removal of what is stale or old.
 *
 * Promise checked here, after every commit: a job that is not paused has a timer, or something in its lane; so it is
 * never forgotten, whoever crashes when.
 */
#include "schedule.h"

#include "base/arena.h"
#include "leases.h"
#include "pool.h"
#include "service/jobs/jobs.h"
#include "sim.h"

enum { LEASE_SEC = 90 };

struct schedule {
	struct known_job {
		bool is_known; /* had a timer once */
		bool is_paused, is_armed, is_in_lane;
	} jobs[JOB_SCHEDULED];
	bool is_changed;
};

static const int64_t interval_sec[JOB_SCHEDULED] = {
	[JOB_SYNC] = 2 * 3600,
	[JOB_CLEANUP] = 3600,
	[JOB_EXPIRY] = 3600,
	[JOB_STALE_REMOVAL] = 6 * 3600,
	[JOB_EVENT_RETENTION] = 12 * 3600,
	[JOB_LEASE_MONITOR] = 3600,
	[JOB_LEASE_LINE] = 3 * 3600,
	[JOB_LEASE_ORPHANS] = 6 * 3600,
	[JOB_LEASE_PURGE] = 12 * 3600,
	[JOB_ACCOUNT_DRIFT] = 3 * 3600,
};

/* Does this seed have it? */
static bool has_job(const struct sim *sim, int id)
{
	return interval_sec[id] && (id < JOB_LEASE_MONITOR || sim->leases);
}

void schedule_open(struct sim *sim)
{
	sim->schedule = arena_alloc(&sim->arena, sizeof(*sim->schedule));
}

struct jobs *schedule_start(struct sim_node *n)
{
	struct sim         *sim = n->sim;
	struct jobs_options o = { .pass.store = &n->base,
		                  .pass.csp = pool_vendor(sim),
		                  .pass.settings = pool_settings(sim),
		                  .pass.leases = sim->leases ? &sim->leases->world : NULL,
		                  .pass.clock = &n->clock,
		                  .lease_sec = LEASE_SEC };

	for (int i = 0; i < JOB_SCHEDULED; i++)
		o.interval_sec[i] = has_job(sim, i) ? sim_paced(sim, interval_sec[i]) : 0;
	return jobs_new(&o);
}

void schedule_end(struct jobs *jobs)
{
	jobs_free(jobs);
}

void schedule_arm(struct sim_node *n)
{
	struct arena a = { 0 };

	n->is_armed = node_run(n, jobs_arm, n->jobs, &a, NULL) == RC_OK;
	arena_fini(&a);
}

/* --- what must be so --- */

static struct known_job *job_of(struct sim *sim, struct str name)
{
	for (int i = 0; i < JOB_SCHEDULED; i++)
		if (has_job(sim, i) && str_eq(name, str_from(jobs_name((enum job_id)i))))
			return &sim->schedule->jobs[i];
	return NULL;
}

/* Behind this prefix of a key. */
static struct known_job *job_behind(struct sim *sim, struct str key, struct str prefix)
{
	return str_starts_with(key, prefix) ? job_of(sim, str_of(key.p + prefix.n, key.n - prefix.n)) : NULL;
}

void schedule_observe(struct sim *sim, const struct session_entry *entry)
{
	struct known_job *job = NULL;

	if (entry->type == &timer_type && (job = job_behind(sim, entry->key, STR("job/")))) {
		job->is_armed = entry->after != NULL;
		job->is_known = true;
	} else if (entry->type == &lane_type && (job = job_behind(sim, entry->key, STR(JOBS_QUEUE "#job/")))) {
		job->is_in_lane = entry->after != NULL;
	} else if (entry->type == &job_type && (job = job_of(sim, entry->key))) {
		job->is_paused = entry->after && ((const struct job_record *)entry->after)->is_paused;
	}
	sim->schedule->is_changed |= job != NULL;
}

void schedule_check(struct sim *sim)
{
	for (int i = 0; i < JOB_SCHEDULED && sim->schedule->is_changed; i++) {
		const struct known_job *job = &sim->schedule->jobs[i];

		if (job->is_known && !job->is_paused && !job->is_armed && !job->is_in_lane)
			sim_broken(sim, "a job is never forgotten",
			           "job %s is not paused, and has neither a timer nor a delivery",
			           jobs_name((enum job_id)i));
	}
	sim->schedule->is_changed = false;
}

/* --- operators --- */

static enum rc pause(struct sim_node *n, enum job_id id, bool is_paused)
{
	struct job_pause p = { .jobs = n->jobs, .id = id, .is_paused = is_paused };
	struct arena     a = { 0 };
	struct err       e = { 0 };
	enum rc          rc = node_run(n, job_pause, &p, &a, &e);

	sim_trace(n->sim, n, "operator %s job %s: %s", is_paused ? "pauses" : "resumes", jobs_name(id),
	          rc ? e.msg : "ok");
	arena_fini(&a);
	return rc;
}

static void request(struct sim_node *n, enum job_id id)
{
	struct job_request r = { .id = id };
	struct arena       a = { 0 };
	struct err         e = { 0 };
	enum rc            rc = node_run(n, job_request, &r, &a, &e);

	sim_trace(n->sim, n, "operator asks for job %s: %s", jobs_name(id), rc ? e.msg : "ok");
	arena_fini(&a);
}

void schedule_operate(struct sim_node *n)
{
	int64_t     count = n->sim->leases ? JOB_SCHEDULED : JOB_LEASE_MONITOR;
	enum job_id id = (enum job_id)chance_below(&n->sim->chance, count);

	if (chance_is(&n->sim->chance, 500))
		request(n, id);
	else
		(void)pause(n, id, chance_is(&n->sim->chance, 300)); /* refused: he will see it */
}

void schedule_pause_all(struct sim_node *n, bool is_paused)
{
	for (int i = 0; i < JOB_SCHEDULED; i++)
		if (has_job(n->sim, i) && pause(n, (enum job_id)i, is_paused))
			sim_broken(n->sim, "a job can be paused and resumed",
			           "job %s cannot, although nothing fails any more", jobs_name((enum job_id)i));
}
