/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - what all parts of the simulation use: faults, time, the trace, and the first broken promise. */
#include "sim.h"

#include <stdarg.h>
#include <string.h>

enum { LINE_MAX_SIZE = 600 };

const char *const fault_texts[FAULT_KIND_COUNT] = {
#define X(name, text) text,
	FAULTS(X)
#undef X
};

bool sim_fault(struct sim *sim, enum fault_kind kind, int64_t permille)
{
	if (sim->is_calm || permille <= 0 || !chance_is(&sim->chance, permille))
		return false;
	sim->faults[kind]++;
	return true;
}

void sim_set_clock(struct sim *sim, int64_t ms)
{
	sim->clock.test_ms += ms;
	for (int i = 0; i < sim->profile.nodes; i++) {
		sim->nodes[i].clock.test_ms = sim->clock.test_ms + sim->nodes[i].skew_ms;
		sim->nodes[i].clock.test_mono_ms = sim->clock.test_mono_ms;
	}
}

void sim_pass(struct sim *sim, int64_t ms)
{
	sim->clock.test_mono_ms += ms;
	sim->lived_ms += ms;
	sim_set_clock(sim, ms);
}

/* "day 3 04:05:06.789", counted from the start of the seed. */
static void write_time(const struct sim *sim, char *to, size_t size)
{
	int64_t ms = sim_now(sim) - sim->start_ms;

	(void)snprintf(to, size, "day %2lld %02d:%02d:%02d.%03d", (long long)(ms / DAY_MS), (int)(ms / HOUR_MS % 24),
	               (int)(ms / 60000 % 60), (int)(ms / 1000 % 60),
	               (int)(ms % 1000)); /* fits, or is cut: it is only read */
}

void sim_trace(struct sim *sim, const struct sim_node *n, const char *fmt, ...)
{
	char    line[LINE_MAX_SIZE], time[64];
	int     length;
	va_list args;

	if (!sim_is_heard(sim))
		return;
	write_time(sim, time, sizeof(time));
	length = snprintf(line, sizeof(line), "%6llu  %s  %-7s ", (unsigned long long)sim->steps, time,
	                  n ? n->name : "world");
	va_start(args, fmt);
	(void)vsnprintf(line + length, sizeof(line) - (size_t)length, fmt, args); /* cut when too long */
	va_end(args);
	sim->trace_hash = str_hash(str_from(line), sim->trace_hash);
	if (sim->is_traced)
		puts(line);
}

void sim_broken(struct sim *sim, const char *promise, const char *fmt, ...)
{
	va_list args;

	if (sim->has_failed)
		return;
	sim->has_failed = true;
	sim->failed_step = sim->steps;
	(void)snprintf(sim->promise, sizeof(sim->promise), "%s", promise); /* cut when too long */
	va_start(args, fmt);
	(void)vsnprintf(sim->evidence, sizeof(sim->evidence), fmt, args); /* the same */
	va_end(args);
	sim_trace(sim, NULL, "BROKEN: %s: %s", promise, sim->evidence);
}
