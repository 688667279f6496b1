/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alarms.c - nodes compute the alarms now and then, all by themselves.
 *
 * Promises checked here:
 *   each change of an alarm is told once, in its own commit      at every commit
 *   an alarm is a fact                                           when all is quiet: dead letters and parked sagas
 */
#include "alarms.h"

#include "base/arena.h"
#include "kernel/alarm/alarm.h"
#include "kernel/event.h"
#include "model.h"
#include "pool.h"
#include "sagas.h"
#include "service/alarms/alarms.h"
#include "sim.h"

enum { PAGE_FROM = 3, HOLD_MS = 180000 };

struct known_alarm {
	struct str          rule;
	bool                is_raised;
	enum alarm_severity severity;
	struct known_alarm *next;
};

struct alarms {
	struct names        names;
	struct known_alarm *first;
};

void alarms_open(struct sim *sim)
{
	sim->alarms = arena_alloc(&sim->arena, sizeof(*sim->alarms));
	sim->alarms->names.arena = &sim->arena;
}

void alarms_compute(struct sim_node *n)
{
	struct broker_alarm_context context = { .settings = pool_settings(n->sim) };
	struct alarm_check          check = {
		         .kernel = n->kernel, .rules = service_alarms, .rule_count = service_alarm_count, .arg = &context
	};
	struct err e = { 0 };
	enum rc    rc = alarm_check(&check, &e);

	sim_trace(n->sim, n, "computes alarms: %lld raised, %lld cleared: %s", (long long)check.raised,
	          (long long)check.cleared, rc ? e.msg : "ok");
}

/* --- at every commit --- */

static struct known_alarm *alarm_of(struct sim *sim, const struct alarm *alarm)
{
	struct known_alarm *known = names_find(&sim->alarms->names, alarm->name);

	if (known)
		return known;
	known = arena_alloc(&sim->arena, sizeof(*known));
	known->rule = str_dup(&sim->arena, alarm->rule);
	known->next = sim->alarms->first;
	sim->alarms->first = known;
	names_add(&sim->alarms->names, str_dup(&sim->arena, alarm->name), known);
	return known;
}

/* What has to be told of the change; NULL: nothing. */
static const char *news_of(const struct known_alarm *before, const struct alarm *after)
{
	bool is_raised = after && after->state == ALARM_RAISED;

	if (before->is_raised != is_raised)
		return is_raised ? "AlarmRaised" : "AlarmCleared";
	return is_raised && before->severity != after->severity ? "AlarmChanged" : NULL;
}

void alarms_observe(struct sim *sim, struct session *s, const struct session_entry *entry)
{
	static const char *const types[] = { "AlarmRaised", "AlarmCleared", "AlarmChanged" };
	const struct alarm      *after = entry->after;
	struct known_alarm      *known = alarm_of(sim, after ? after : entry->before);
	struct str               subject = str_format(s->arena, "alarm/%.*s", STR_ARG(entry->key));
	const char              *news = news_of(known, after);

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		bool is_told = commit_event(s, str_from(types[i]), subject, STR("")) != NULL;
		bool is_due = news && str_eq(str_from(news), str_from(types[i]));

		if (is_told != is_due)
			sim_broken(sim, "each change of an alarm is told once", "%.*s: %s is %s", STR_ARG(subject),
			           types[i], is_told ? "told, and nothing has changed" : "not told");
	}
	known->is_raised = after && after->state == ALARM_RAISED;
	if (after)
		known->severity = after->severity;
}

void alarms_check_event(struct sim *sim, struct session *s, const struct event *event)
{
	if (!str_starts_with(event->type, STR("Alarm")))
		return;
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		if (entry->type == &alarm_type)
			return;
	sim_broken(sim, "no event is invented", "%.*s without an alarm in the commit", STR_ARG(event->type));
}

/* --- when all is quiet --- */

static void check_dead_letters(struct sim *sim, int queue)
{
	struct str                name = str_format(&sim->arena, "dead-letters#%s", sim->bank->queues[queue].name);
	const struct known_alarm *known = names_find(&sim->alarms->names, name);
	int64_t                   dead = model_count_dead(sim, queue);
	bool                      is_raised = known && known->is_raised;

	if (is_raised != (dead > 0) || (is_raised && (known->severity == ALARM_PAGE) != (dead >= PAGE_FROM)))
		sim_broken(sim, "an alarm is a fact", "%.*s is %s with %lld dead letters", STR_ARG(name),
		           is_raised ? alarm_severity_names[known->severity] : "not raised", (long long)dead);
}

void alarms_check_quiet(struct sim_node *n)
{
	struct sim *sim = n->sim;
	int64_t     parked = sagas_count_parked(sim), raised = 0;

	alarms_compute(n);
	sim_pass(sim, HOLD_MS);
	alarms_compute(n);
	for (int q = 0; q < BANK_QUEUE_COUNT; q++)
		check_dead_letters(sim, q);
	for (const struct known_alarm *known = sim->alarms->first; known; known = known->next)
		raised += known->is_raised && str_eq(known->rule, STR("saga-parked"));
	if (raised != (parked < FINDINGS_MAX ? parked : FINDINGS_MAX))
		sim_broken(sim, "an alarm is a fact", "%lld sagas are parked, %lld alarms say so", (long long)parked,
		           (long long)raised);
}
