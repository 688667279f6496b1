/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - runs seeds and says what came of them.
 *
 *   sim --seeds 1000 --seed 1        a thousand worlds, from seed 1 on
 *   sim --seed 7 --seeds 1 --trace   one of them, line by line
 *   sim --seeds 100 --nodes 24       a hundred worlds of 24 nodes each, instead of one to three
 *   sim --seeds 100 --days 120       a hundred long worlds: of so many days instead of one to seven, at a slower pace
 *   sim --defects 500                each deliberate mistake must be caught within 500 seeds
 *   sim --same 20                    twenty worlds twice: the same trace, bit for bit
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "kernel/defect.h"
#include "sim.h"

enum { FAILURES_SHOWN = 5 };

struct totals {
	uint64_t seeds, broken, steps, commits;
	int64_t  lived_ms, calm_ms;
	uint64_t faults[FAULT_KIND_COUNT];
};

struct options {
	uint64_t    seeds, first_seed, defect_seeds, same, nodes, days;
	bool        is_traced;
	bool        reads_hold;
	enum defect defect;
};

static const struct {
	const char *name, *text;
} defects[DEFECT_COUNT] = { { "NONE", "" },
#define X(name, text) { #name, text },
	                    DEFECTS(X)
#undef X
};

/* --- one seed --- */

static void show_broken(const struct sim *sim)
{
	printf("BROKEN: %s\n  %s\n  seed %llu, step %llu\n  replay: make sim SEED=%llu TRACE=1%s%s\n", sim->promise,
	       sim->evidence, (unsigned long long)sim->seed, (unsigned long long)sim->failed_step,
	       (unsigned long long)sim->seed, defect_on ? " DEFECT=" : "", defect_on ? defects[defect_on].name : "");
	if (sim->nodes_wanted)
		printf("  with NODES=%d\n", sim->nodes_wanted);
	if (sim->days_wanted)
		printf("  with DAYS=%lld\n", (long long)sim->days_wanted);
}

/* True when all promises were kept. */
static bool run_seed(uint64_t seed, const struct options *o, bool is_quiet, struct totals *t, uint64_t *ret_hash)
{
	struct sim *sim = mem_new(struct sim);
	bool        is_kept;

	sim->is_traced = o->is_traced;
	sim->nodes_wanted = (int)o->nodes;
	sim->reads_hold = o->reads_hold;
	sim->days_wanted = (int64_t)o->days;
	sim->is_hashed = ret_hash != NULL;
	sim_run(sim, seed);
	is_kept = !sim->has_failed;
	if (!is_kept && !is_quiet && t->broken < FAILURES_SHOWN)
		show_broken(sim);
	sim_end(sim);
	t->seeds++;
	t->broken += !is_kept;
	t->steps += sim->steps;
	t->commits += sim->commits;
	t->lived_ms += sim->lived_ms;
	t->calm_ms += sim->calm_ms;
	for (int i = 0; i < FAULT_KIND_COUNT; i++)
		t->faults[i] += sim->faults[i];
	if (ret_hash)
		*ret_hash = sim->trace_hash;
	free(sim);
	return is_kept;
}

/* --- many --- */

static void report(const struct totals *t, double cpu_sec)
{
	double days = (double)t->lived_ms / DAY_MS;

	printf("%llu seeds, %.0f simulated days, %.1f s of CPU: %.0f days a second\n", (unsigned long long)t->seeds,
	       days, cpu_sec, cpu_sec > 0 ? days / cpu_sec : 0);
	printf("%.0f of these days at the ends, without faults\n", (double)t->calm_ms / DAY_MS);
	printf("%llu steps, %llu commits\nfaults injected:\n", (unsigned long long)t->steps,
	       (unsigned long long)t->commits);
	for (int i = 0; i < FAULT_KIND_COUNT; i++)
		printf("  %10llu  %s\n", (unsigned long long)t->faults[i], fault_texts[i]);
	printf("promises broken: %llu\n", (unsigned long long)t->broken);
}

static int run_seeds(const struct options *o)
{
	struct totals t = { 0 };
	clock_t       began = clock();

	for (uint64_t i = 0; i < o->seeds; i++)
		(void)run_seed(o->first_seed + i, o, false, &t, NULL); /* counted in the totals */
	report(&t, (double)(clock() - began) / CLOCKS_PER_SEC);
	return t.broken ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Does the simulator see what it shall see? */
static int run_defects(const struct options *o)
{
	int missed = 0;

	for (enum defect d = DEFECT_NONE + 1; d < DEFECT_COUNT; d++) {
		struct totals t = { 0 };
		uint64_t      seed = o->first_seed;
		bool          is_kept = true;

		defect_on = d;
		while (is_kept && t.seeds < o->defect_seeds)
			is_kept = run_seed(seed++, o, true, &t, NULL);
		defect_on = DEFECT_NONE;
		missed += is_kept;
		printf("%-22s %s %4llu seeds   %s\n", defects[d].name, is_kept ? "NOT CAUGHT in" : "caught after ",
		       (unsigned long long)t.seeds, defects[d].text);
	}
	return missed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_twice(const struct options *o)
{
	struct totals t = { 0 };

	for (uint64_t i = 0; i < o->same; i++) {
		uint64_t first = 0, second = 0;

		if (!run_seed(o->first_seed + i, o, false, &t, &first) ||
		    !run_seed(o->first_seed + i, o, false, &t, &second))
			return EXIT_FAILURE;
		if (first != second) {
			printf("seed %llu has two different traces: something decides by more than the seed\n",
			       (unsigned long long)(o->first_seed + i));
			return EXIT_FAILURE;
		}
	}
	printf("%llu seeds ran twice with the same trace\n", (unsigned long long)o->same);
	return EXIT_SUCCESS;
}

/* --- the command line --- */

static bool read_number(const char *text, uint64_t *ret)
{
	int64_t number;

	if (!text || !str_to_int(str_from(text), 0, INT64_MAX, &number))
		return false;
	*ret = (uint64_t)number;
	return true;
}

static bool read_defect(const char *text, enum defect *ret)
{
	for (enum defect d = DEFECT_NONE + 1; text && d < DEFECT_COUNT; d++)
		if (strcmp(text, defects[d].name) == 0) {
			*ret = d;
			return true;
		}
	return false;
}

static bool read_options(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		bool        is_ok = false;

		if (strcmp(argv[i], "--trace") == 0) {
			o->is_traced = true;
			continue;
		}
		if (strcmp(argv[i], "--reads-hold") == 0) {
			o->reads_hold = true;
			continue;
		}
		if (strcmp(argv[i], "--seeds") == 0)
			is_ok = read_number(value, &o->seeds);
		else if (strcmp(argv[i], "--seed") == 0)
			is_ok = read_number(value, &o->first_seed);
		else if (strcmp(argv[i], "--defects") == 0)
			is_ok = read_number(value, &o->defect_seeds);
		else if (strcmp(argv[i], "--same") == 0)
			is_ok = read_number(value, &o->same);
		else if (strcmp(argv[i], "--nodes") == 0)
			is_ok = read_number(value, &o->nodes) && o->nodes <= NODES_MAX;
		else if (strcmp(argv[i], "--days") == 0)
			is_ok = read_number(value, &o->days) && o->days <= LONG_DAYS_MAX;
		else if (strcmp(argv[i], "--defect") == 0)
			is_ok = read_defect(value, &o->defect);
		if (!is_ok)
			return false;
		i++;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options o = { .seeds = 100, .first_seed = 1 };

	if (!read_options(argc, argv, &o)) {
		fprintf(stderr,
		        "usage: sim [--seeds N] [--seed N] [--nodes 1..24] [--days 1..3650] [--reads-hold] [--trace] [--defect NAME] | --defects N | --same N\n"
		        "NAME is one of:\n");
		for (enum defect d = DEFECT_NONE + 1; d < DEFECT_COUNT; d++)
			fprintf(stderr, "  %-22s %s\n", defects[d].name, defects[d].text);
		return EXIT_FAILURE;
	}
	log_setup(LOG_ERROR, LOG_TEXT); /* what fails on purpose is no news */
	if (o.defect_seeds)
		return run_defects(&o);
	if (o.same)
		return run_twice(&o);
	defect_on = o.defect;
	return run_seeds(&o);
}
