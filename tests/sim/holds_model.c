/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holds_model.c - what must be so of holds, by what was seen to be committed.
 *
 * Promises checked here, at every commit:
 *   an account is free only after a hold, or a record of why there is none, and when all holds are closed
 *      [holds_check_freed()]
 *   who rests has an open hold                                                                     [holds_check_rest()]
 *   a hold with a due time has a timer for that time, in the same commit                                [check_timer()]
 *   a hold that closes by its time closes when it is due, and not before                               [check_closed()]
 *   a closed hold never changes again
 * When all is quiet: no hold is overdue.                                                          [holds_check_quiet()]
 */
#include "leases.h"

#include "base/arena.h"
#include "kernel/records.h"
#include "model.h"
#include "service/hold/holds.h"
#include "sim.h"
#include "store/session.h"

static struct known_hold *hold_of(struct sim *sim, const struct hold *h)
{
	struct leases     *l = sim->leases;
	struct known_hold *k = names_find(&l->holds, h->id);

	if (k)
		return k;
	k = arena_alloc(&sim->arena, sizeof(*k));
	k->id = str_dup(&sim->arena, h->id);
	k->account = lent_account(l, h->account);
	k->next = l->first_hold;
	l->first_hold = k;
	names_add(&l->holds, k->id, k);
	k->account->hold_records++;
	k->is_new = true;
	return k;
}

static void check_timer(struct sim *sim, const struct session *s, const struct hold *h)
{
	struct str          name = hold_schedule_name(h, s->arena);
	const struct timer *timer = NULL;

	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		if (entry->type == &timer_type && str_eq(entry->key, name))
			timer = entry->after;
	if (!timer || timer->due_ms != h->due_ms)
		sim_broken(sim, "no hold without a live release time", "hold %.*s is due, and no timer says so",
		           STR_ARG(h->id));
}

static void check_closed(struct sim *sim, const struct hold *h)
{
	if (h->state == HOLD_RELEASED && h->closed_ms < h->due_ms)
		sim_broken(sim, "no hold is released early", "hold %.*s is released %lld ms before its time",
		           STR_ARG(h->id), (long long)(h->due_ms - h->closed_ms));
}

void holds_observe(struct sim *sim, const struct session *s, const struct session_entry *entry)
{
	const struct hold *after = entry->after;
	struct known_hold *k;
	bool               was_open;

	if (!after) {
		sim_broken(sim, "holds are kept", "hold %.*s is removed", STR_ARG(entry->key));
		return;
	}
	k = hold_of(sim, after);
	was_open = k->is_open;
	if (!was_open && !k->is_new)
		sim_broken(sim, "a closed hold never changes again", "hold %.*s does", STR_ARG(k->id));
	k->is_open = after->state == HOLD_OPEN;
	k->account->open_holds += k->is_open - was_open;
	if (k->is_open && after->due_ms && (k->is_new || after->due_ms != k->due_ms))
		check_timer(sim, s, after);
	if (!k->is_open)
		check_closed(sim, after);
	k->due_ms = after->due_ms;
	k->is_new = false;
	sim_trace(sim, NULL, "hold %.*s (%s) is %s", STR_ARG(k->id), hold_reason_names[after->reason],
	          hold_state_names[after->state]);
}

void holds_check_freed(struct sim *sim, const struct lent_account *k)
{
	if (k->open_holds || !k->hold_records)
		sim_broken(sim, "no account is free before it has rested",
		           "account %.*s is Available with %d open holds and %d holds since its cleanup",
		           STR_ARG(k->id), k->open_holds, k->hold_records);
}

void holds_check_rest(struct sim *sim, const struct lent_account *k)
{
	if (k->is_there && k->status == ACCOUNT_COOLDOWN && !k->open_holds)
		sim_broken(sim, "who rests has an open hold", "account %.*s rests, and nothing holds it",
		           STR_ARG(k->id));
	if (k->is_there && k->status == ACCOUNT_AVAILABLE && k->open_holds)
		sim_broken(sim, "no account is free before it has rested", "account %.*s is Available, and held",
		           STR_ARG(k->id));
}

void holds_check_quiet(struct sim *sim)
{
	for (const struct known_hold *k = sim->leases->first_hold; k; k = k->next)
		if (k->is_open && k->due_ms && k->due_ms < sim_now(sim) - HOUR_MS)
			sim_broken(sim, "every overdue hold is released", "hold %.*s is overdue", STR_ARG(k->id));
}
