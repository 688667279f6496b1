/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - the reference: what was committed, and what follows from it.
 *
 * The model sees every commit as it happens, also those whose caller was told otherwise. It knows nothing of how the
 * kernel works: only which records belong together in one commit, how often an event may be handled, and in which
 * order.
 *
 * Promises checked here:
 *   no event is lost, none is invented     an account's change and its event are one commit, the same for timers
 *   each event has its effect once         in queues that handle; at least once in queues that call
 *   in order per subject                   by first effect or receipt; what was dead and is replayed comes late
 *   no timer early, none lost              a timer goes with its event, at its time or later, or is cancelled
 */
#include "model.h"

#include <stdlib.h>

#include "alarms.h"

#include "base/arena.h"
#include "clouds.h"
#include "kernel/event.h"
#include "kernel/records.h"
#include "leases.h"
#include "outside.h"
#include "pool.h"
#include "instances.h"
#include "sagas.h"
#include "schedule.h"
#include "service/hold/holds.h"
#include "service/instance/instances.h"
#include "service/record/lease_records.h"
#include "service/broker/passes.h"
#include "sim.h"

void model_open(struct sim *sim)
{
	struct model *m = arena_alloc(&sim->arena, sizeof(*m));

	m->events.arena = m->subjects.arena = m->timers.arena = &sim->arena;
	m->last_event = &m->first_event;
	sim->model = m;
}

const struct event *commit_event(const struct session *s, struct str type, struct str subject, struct str actor)
{
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));) {
		const struct event *event = entry->after;

		if (entry->type == &event_type && event && !entry->before && str_eq(event->type, type) &&
		    (!subject.n || str_eq(event->subject, subject)) && (!actor.n || str_eq(event->actor, actor)))
			return event;
	}
	return NULL;
}

static const struct session_entry *commit_change(const struct session *s, const struct record_type *type,
                                                 struct str key)
{
	const struct session_entry *entry = NULL;

	while ((entry = session_next_change(s, entry)) && !(entry->type == type && str_eq(entry->key, key)))
		;
	return entry;
}

/* --- events --- */

static struct known_subject *subject_of(struct sim *sim, struct str name)
{
	struct known_subject *subject = names_find(&sim->model->subjects, name);

	if (!subject) {
		subject = arena_alloc(&sim->arena, sizeof(*subject));
		subject->name = str_dup(&sim->arena, name);
		names_add(&sim->model->subjects, subject->name, subject);
	}
	return subject;
}

static void route(struct sim *sim, struct known_event *known)
{
	for (size_t i = 0; i < bank_route_count; i++)
		for (int q = 0; q < BANK_QUEUE_COUNT; q++)
			if (kernel_matches(str_from(bank_routes[i].pattern), known->type) &&
			    str_eq(str_from(bank_routes[i].queue), str_from(sim->bank->queues[q].name)))
				known->in[q].is_routed = true;
}

static void learn_event(struct sim *sim, const struct event *event)
{
	struct known_event *known = names_find(&sim->model->events, event->id);

	if (known) {
		sim_broken(sim, "an event is saved once", "event %.*s is there twice", STR_ARG(event->id));
		return;
	}
	known = arena_alloc(&sim->arena, sizeof(*known));
	known->id = str_dup(&sim->arena, event->id);
	known->type = str_dup(&sim->arena, event->type);
	if (sim->profile.nodes == 1 && str_cmp(known->id, sim->model->last_id) <= 0)
		sim_broken(sim, "with one node the order of ids is the order of commits", "event %.*s comes after %.*s",
		           STR_ARG(known->id), STR_ARG(sim->model->last_id));
	sim->model->last_id = known->id;
	known->subject = subject_of(sim, event->subject);
	known->number = ++known->subject->events;
	route(sim, known);
	names_add(&sim->model->events, known->id, known);
	*sim->model->last_event = known;
	sim->model->last_event = &known->next;
}

/* What each of these tells of must be in the same commit. */
static void check_cause(struct sim *sim, struct session *s, const struct event *event)
{
	struct str actor = event->actor;

	if (str_eq(event->type, STR("BalanceChanged")) && !commit_change(s, &bank_account_type, event->subject))
		sim_broken(sim, "no event is invented", "BalanceChanged of %.*s without a change",
		           STR_ARG(event->subject));
	if (!str_starts_with(actor, STR("timer/")))
		return;
	str_cut(&actor, '/');
	if (!commit_change(s, &timer_type, actor))
		sim_broken(sim, "no event is invented", "%.*s by timer %.*s, which is not removed with it",
		           STR_ARG(event->type), STR_ARG(actor));
}

/* Removed from the log: only by age. */
static void forget_event(struct sim *sim, const struct session *s, const struct event *event)
{
	struct known_event *known = names_find(&sim->model->events, event->id);

	known->is_pruned = true;
	if (s->now.ms - event->time_ms < pool_settings(sim)->event_days * DAY_MS)
		sim_broken(sim, "an event leaves the log only by age", "event %.*s is removed too early",
		           STR_ARG(event->id));
}

/* A dead letter was replayed whose event had left the log. */
static bool is_recalled(struct sim *sim, struct str id)
{
	struct known_event *known = names_find(&sim->model->events, id);

	if (!known || !known->is_pruned)
		return false;
	known->is_pruned = false;
	return true;
}

static void observe_event(struct sim *sim, struct session *s, const struct session_entry *entry)
{
	if (entry->before && entry->after)
		sim_broken(sim, "an event is never changed", "event %.*s is changed", STR_ARG(entry->key));
	if (entry->before && !entry->after)
		forget_event(sim, s, entry->before);
	if (entry->before || !entry->after)
		return;
	if (is_recalled(sim, entry->key))
		return;
	learn_event(sim, entry->after);
	check_cause(sim, s, entry->after);
	sagas_check_event(sim, s, entry->after);
	pool_check_event(sim, s, entry->after);
	outside_check_event(sim, s, entry->after);
	clouds_check_event(sim, entry->after);
	alarms_check_event(sim, s, entry->after);
}

void model_seen(struct sim *sim, int queue, struct str event_id)
{
	struct known_event *known = names_find(&sim->model->events, event_id);
	const char         *name = sim->bank->queues[queue].name;
	int64_t            *last;

	if (!known || !known->in[queue].is_routed) {
		sim_broken(sim, "no event is invented", "queue %s delivers %.*s, which is not for it", name,
		           STR_ARG(event_id));
		return;
	}
	last = &known->subject->last_seen[queue];
	if (known->in[queue].seen++ == 0 && known->number < *last && !known->in[queue].was_dead)
		sim_broken(sim, "in order per subject", "queue %s: event %lld of %.*s comes after event %lld", name,
		           (long long)known->number, STR_ARG(known->subject->name), (long long)*last);
	if (known->number > *last)
		*last = known->number;
}

static void observe_effect(struct sim *sim, const struct session_entry *entry)
{
	const struct bank_effect *effect = entry->after;

	if (!effect)
		return;
	if (effect->count != 1)
		sim_broken(sim, "each event has its effect once", "event %.*s was handled %lld times",
		           STR_ARG(effect->id), (long long)effect->count);
	model_seen(sim, BANK_LEDGER, effect->id);
}

/* --- dead letters --- */

static int queue_number(const struct sim *sim, struct str name)
{
	for (int q = 0; q < BANK_QUEUE_COUNT; q++)
		if (str_eq(name, str_from(sim->bank->queues[q].name)))
			return q;
	return -1;
}

/* Is the event put into a lane again? */
static bool is_replayed(const struct session *s, struct str event_id)
{
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		if (entry->after &&
		    ((entry->type == &lane_type && str_eq(((const struct lane *)entry->after)->event_id, event_id)) ||
		     (entry->type == &waiting_type &&
		      str_eq(((const struct waiting *)entry->after)->event_id, event_id))))
			return true;
	return false;
}

static void observe_dead(struct sim *sim, struct session *s, const struct session_entry *entry)
{
	const struct dead  *dead = entry->after ? entry->after : entry->before;
	struct known_event *known = names_find(&sim->model->events, dead->event_id);
	int                 q = queue_number(sim, dead->queue);

	if (!known || q < 0) { /* the other queues are the product's: what they do does not fail */
		sim_broken(sim, "no event is invented", "a dead letter of event %.*s in queue %.*s",
		           STR_ARG(dead->event_id), STR_ARG(dead->queue));
		return;
	}
	if (entry->after) {
		known->in[q].is_dead = known->in[q].was_dead = true;
		if ((!dead->event.n && !known->is_pruned) || !dead->error.n)
			sim_broken(sim, "a dead letter has the whole payload and the last error",
			           "dead letter %.*s has not", STR_ARG(dead->id));
		return;
	}
	known->in[q].is_dead = false;
	if (is_replayed(s, dead->event_id))
		return;
	known->in[q].is_dropped = true;
	if (!str_eq(sim->model->dropping, dead->id))
		sim_broken(sim, "no event is lost", "dead letter %.*s is removed, and nobody asked for it",
		           STR_ARG(dead->id));
}

/* --- timers --- */

static struct known_timer *timer_of(struct sim *sim, struct str name)
{
	struct known_timer *known = names_find(&sim->model->timers, name);

	if (!known) {
		known = arena_alloc(&sim->arena, sizeof(*known));
		known->name = str_dup(&sim->arena, name);
		known->next = sim->model->first_timer;
		sim->model->first_timer = known;
		names_add(&sim->model->timers, known->name, known);
	}
	return known;
}

/* A timer "lease-KIND/UUID" goes with a change of its lease. */
static bool is_of_lease(const struct session *s, struct str name)
{
	return str_starts_with(str_cut(&name, '/'), STR("lease-")) && commit_change(s, &lease_type, name);
}

/* The timer of a hold goes when the hold is closed. */
static bool is_of_closed_hold(const struct session *s, struct str name)
{
	const struct session_entry *entry = NULL;
	size_t                      prefix = sizeof(HOLD_NAME_PREFIX) - 1;

	if (!str_starts_with(name, STR(HOLD_NAME_PREFIX)))
		return false;
	while ((entry = session_next_change(s, entry)))
		if (entry->type == &hold_type && str_eq(entry->key, str_of(name.p + prefix, name.n - prefix)))
			return ((const struct hold *)entry->after)->state != HOLD_OPEN;
	return false;
}

static void observe_timer(struct sim *sim, struct session *s, const struct session_entry *entry)
{
	const struct timer *before = entry->before, *after = entry->after;
	struct known_timer *known = timer_of(sim, entry->key);
	struct str          actor = str_format(s->arena, "timer/%.*s", STR_ARG(entry->key));

	known->is_armed = after != NULL;
	if (after) {
		known->due_ms = after->due_ms;
		known->is_by_hand = commit_event(s, STR("TimerFiredByHand"), after->subject, STR("")) != NULL;
		return;
	}
	if (commit_event(s, before->type, before->subject, actor)) {
		known->fired_due_ms = before->due_ms;
		if (s->now.ms < before->due_ms)
			sim_broken(sim, "no timer early", "timer %.*s fires %lld ms before its time",
			           STR_ARG(entry->key), (long long)(before->due_ms - s->now.ms));
		return;
	}
	known->is_by_hand = commit_event(s, STR("TimerCancelled"), before->subject, STR("")) != NULL;
	if (!known->is_by_hand && !commit_change(s, &bank_account_type, entry->key) && !is_of_lease(s, entry->key) &&
	    !is_of_closed_hold(s, entry->key) && !commit_event(s, STR("JobPaused"), before->subject, STR("")) &&
	    !commit_event(s, STR(EVENT_INSTANCE_STARTED), before->subject, STR("")))
		sim_broken(sim, "no timer is lost", "timer %.*s is removed without its event", STR_ARG(entry->key));
}

/* --- accounts --- */

static void check_deadline(struct sim *sim, struct str id, int64_t deadline_ms)
{
	const struct known_timer *timer = names_find(&sim->model->timers, id);
	bool                      is_armed = timer && timer->is_armed;

	if (timer && timer->is_by_hand)
		return;
	if (!deadline_ms && is_armed)
		sim_broken(sim, "a timer is armed and cancelled with the change it belongs to",
		           "%.*s has no deadline and a timer", STR_ARG(id));
	if (deadline_ms && !(is_armed && timer->due_ms == deadline_ms) &&
	    !(timer && timer->fired_due_ms == deadline_ms))
		sim_broken(sim, "a timer is armed and cancelled with the change it belongs to",
		           "%.*s has a deadline and no timer for it", STR_ARG(id));
}

static void observe_account(struct sim *sim, struct session *s, const struct session_entry *entry)
{
	const struct bank_account *before = entry->before, *after = entry->after;
	int64_t                    old = before ? before->changes : 0;
	struct known_account      *known = &sim->model->accounts[after->id.p[after->id.n - 1] - '0'];

	if (after->changes != old && !commit_event(s, STR("BalanceChanged"), after->id, STR("")))
		sim_broken(sim, "no event is lost", "%.*s changes without an event in the same commit",
		           STR_ARG(after->id));
	known->changes = after->changes;
	known->deadline_ms = after->deadline_ms;
	known->last_op = after->last_op;
}

/* --- all --- */

static void observe_change(struct sim *sim, struct session *s, const struct session_entry *entry)
{
	schedule_observe(sim, entry);
	if (entry->type == &event_type)
		observe_event(sim, s, entry);
	else if (entry->type == &timer_type)
		observe_timer(sim, s, entry);
	else if (entry->type == &dead_type)
		observe_dead(sim, s, entry);
	else if (entry->type == &bank_effect_type)
		observe_effect(sim, entry);
	else if (entry->type == &bank_account_type)
		observe_account(sim, s, entry);
	else if (entry->type == &alarm_type)
		alarms_observe(sim, s, entry);
	else if (entry->type == &saga_type)
		sagas_observe(sim, s, entry);
	else
		pool_observe(sim, s, entry);
}

/* Events first: what else is in the commit may refer to them. */
void model_observe(struct sim *sim, struct session *s)
{
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		if (entry->type == &event_type)
			observe_change(sim, s, entry);
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		if (entry->type != &event_type)
			observe_change(sim, s, entry);
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		if (entry->type == &bank_account_type)
			check_deadline(sim, entry->key, ((const struct bank_account *)entry->after)->deadline_ms);
	if (sim->leases)
		leases_observe(sim, s);
	instances_observe(sim, s);
	schedule_check(sim);
}

static void check_event(struct sim *sim, const struct known_event *known)
{
	for (int q = 0; q < BANK_QUEUE_COUNT; q++)
		if (known->in[q].is_routed && !known->in[q].seen && !known->in[q].is_dead && !known->in[q].is_dropped)
			sim_broken(sim, "no event is lost", "%.*s, event %lld of %.*s, never came out of queue %s",
			           STR_ARG(known->type), (long long)known->number, STR_ARG(known->subject->name),
			           sim->bank->queues[q].name);
}

int64_t model_count_dead(const struct sim *sim, int queue)
{
	int64_t count = 0;

	for (const struct known_event *known = sim->model->first_event; known; known = known->next)
		count += known->in[queue].is_dead;
	return count;
}

void model_check_quiet(struct sim *sim)
{
	for (const struct known_event *known = sim->model->first_event; known; known = known->next)
		check_event(sim, known);
	for (const struct known_timer *timer = sim->model->first_timer; timer; timer = timer->next)
		if (timer->is_armed && timer->due_ms <= sim_now(sim))
			sim_broken(sim, "no timer is lost", "timer %.*s is overdue and does not fire",
			           STR_ARG(timer->name));
}
