/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sagas.c - the far side of the sagas, and what must be true of it.
 *
 * The far side is an array: how often each step of each saga is in effect. A step that has a check must not be done
 * twice, and the far side does not help; one without a check is recognised by its key. One step in the middle only
 * looks and leaves nothing behind.
 *
 * Promises checked here:
 *   a step is done once                                      [take_effect()]
 *   steps are done in order and undone in reverse order      [take_effect(), lose_effect()]
 *   done: all effects there; undone: none; parked: what is there is listed   [check_far_side()]
 *   each start and each end is an event of the same commit   [sagas_observe(), sagas_check_event()]
 * A step that an operator has skipped is his own business: nothing is said about its effect.
 */
#include "sagas.h"

#include <string.h>

#include "base/arena.h"
#include "clouds.h"
#include "kernel/records.h"
#include "kernel/saga.h"
#include "model.h"
#include "service/account/account_follow.h"
#include "sim.h"
#include "store/session.h"

enum { STEPS = SAGA_KINDS, LOOK_STEP = 2, LIST_PAGE = 20 };

struct known_saga {
	struct str         id;
	int                steps;
	enum saga_state    state;
	struct str         leftovers;
	bool               is_changed_by_hand; /* an operator has skipped a step: the order is not ours any more */
	bool               is_skipped[STEPS];
	int                effects[STEPS];
	bool               is_cloud; /* its far side is the simulated cloud: see clouds.c */
	bool               is_lease; /* the same, of leases.c */
	struct known_saga *next;
};

struct far_side {
	struct saga_kind        kinds[SAGA_KINDS + 1]; /* the last is the cloud's */
	const struct saga_kind *list[SAGA_KINDS + 1];
	struct names            sagas;
	struct known_saga      *first;
};

/* --- what is there --- */

static struct known_saga *find(const struct sim *sim, struct str id)
{
	return names_find(&sim->far_side->sagas, id);
}

static bool leaves_something(int step)
{
	return step != LOOK_STEP;
}

static void take_effect(struct sim *sim, struct known_saga *k, int step, bool is_recognised)
{
	if (!leaves_something(step) || (is_recognised && k->effects[step]))
		return;
	for (int i = 0; i < step && !k->is_changed_by_hand; i++)
		if (leaves_something(i) && !k->effects[i])
			sim_broken(sim, "the steps of a saga are done in order",
			           "saga %.*s: step %d is done before step %d", STR_ARG(k->id), step + 1, i + 1);
	if (++k->effects[step] > 1 && !k->is_changed_by_hand)
		sim_broken(sim, "a step is checked before it is repeated", "saga %.*s: step %d was done twice",
		           STR_ARG(k->id), step + 1);
}

static void lose_effect(struct sim *sim, struct known_saga *k, int step)
{
	for (int i = step + 1; i < k->steps && k->effects[step] && !k->is_changed_by_hand; i++)
		if (k->effects[i])
			sim_broken(sim, "steps are undone in reverse order",
			           "saga %.*s: step %d is undone before step %d", STR_ARG(k->id), step + 1, i + 1);
	k->effects[step] = 0;
}

/* --- calls --- */

/* What goes wrong before anything happens. */
static enum rc fail_before(struct sim *sim, int64_t refused_permille, struct err *e)
{
	static const enum rc kinds[] = { RC_UNAVAILABLE, RC_TIMEOUT, RC_LIMITED };

	sim_call_takes(sim, chance_below(&sim->chance, chance_is(&sim->chance, 100) ? 29000 : 1000));
	if (sim_fault(sim, SIM_STEP_FAILED, sim->profile.step))
		return err_set(e, kinds[chance_below(&sim->chance, ARRAY_LEN(kinds))],
		               "simulated: the far side has trouble");
	if (sim_fault(sim, SIM_STEP_REFUSED, refused_permille))
		return err_set(e, RC_DENIED, "simulated: the far side refuses");
	return RC_OK;
}

static enum rc fail_after(struct sim *sim, struct err *e)
{
	if (sim_fault(sim, SIM_STEP_ANSWER_LOST, sim->profile.step))
		return err_set(e, RC_TIMEOUT, "simulated: done, but the answer was lost");
	return RC_OK;
}

static enum rc do_step(struct saga_call *c, bool is_recognised, struct err *e)
{
	struct sim *sim = c->world;
	int         step = (int)c->saga->step;
	enum rc     rc = fail_before(sim, sim->profile.step / 3, e);

	if (rc)
		return rc;
	take_effect(sim, find(sim, c->saga->id), step, is_recognised);
	c->data = str_format(c->arena, "{\"last\":%d}", step);
	return fail_after(sim, e);
}

static enum rc act_once(struct saga_call *c, struct err *e)
{
	return do_step(c, false, e);
}

static enum rc act_by_key(struct saga_call *c, struct err *e)
{
	return do_step(c, true, e);
}

static enum rc check_step(struct saga_call *c, bool *ret, struct err *e)
{
	struct sim *sim = c->world;

	if (sim_fault(sim, SIM_CHECK_FAILED, sim->profile.step))
		return err_set(e, RC_UNAVAILABLE, "simulated: the far side does not tell");
	*ret = find(sim, c->saga->id)->effects[c->saga->step] > 0;
	return RC_OK;
}

static enum rc undo_step(struct saga_call *c, struct err *e)
{
	struct sim *sim = c->world;
	enum rc     rc = fail_before(sim, sim->profile.step / 5, e);

	if (rc)
		return rc;
	lose_effect(sim, find(sim, c->saga->id), (int)c->saga->step);
	return fail_after(sim, e);
}

static enum rc on_end(struct session *s, const struct saga *saga, struct err *e)
{
	struct sim *sim = sim_of(s);

	(void)saga;
	if (sim_fault(sim, SIM_HANDLER_FAILED, sim->profile.call))
		return err_set(e, RC_UNAVAILABLE, "simulated: the end is refused");
	return RC_OK;
}

static const struct saga_step steps[STEPS] = {
	{ .name = "first", .act = act_once, .check = check_step, .undo = undo_step },
	{ .name = "second", .act = act_by_key, .undo = undo_step, .tries = 3 },
	{ .name = "look", .act = act_by_key },
	{ .name = "fourth",
	  .act = act_once,
	  .check = check_step,
	  .undo = undo_step,
	  .backoff_ms = 60000,
	  .backoff_max_ms = 3600000 },
	{ .name = "fifth", .act = act_once, .check = check_step, .undo = undo_step, .deadline_ms = 6 * 3600 * 1000 },
	{ .name = "sixth", .act = act_by_key, .undo = undo_step },
};

void sagas_open(struct sim *sim)
{
	static const char *const names[SAGA_KINDS] = { "one", "two", "three", "four", "five", "six" };
	struct far_side         *f = arena_alloc(&sim->arena, sizeof(*f));

	f->sagas.arena = &sim->arena;
	for (size_t i = 0; i < SAGA_KINDS; i++) {
		f->kinds[i] = (struct saga_kind){ .name = names[i], .steps = steps, .step_count = i + 1, .world = sim };
		f->list[i] = &f->kinds[i];
	}
	f->kinds[SAGA_KINDS] = clouds_kind;
	f->kinds[SAGA_KINDS].world = sim;
	f->list[SAGA_KINDS] = &f->kinds[SAGA_KINDS];
	f->kinds[3].deadline_ms = 3600 * 1000;
	f->kinds[4].on_end = on_end;
	sim->far_side = f;
}

const struct saga_kind *const *sagas_kinds(const struct sim *sim)
{
	return sim->far_side->list;
}

enum rc sagas_start(struct session *s, struct str id, struct str subject, int64_t number, struct err *e)
{
	struct sim *sim = sim_of(s);

	return session_start(s, sim->far_side->kinds[number % SAGA_KINDS].name, id, subject, STR("{}"), STR("teller"),
	                     e);
}

/* --- what must be so --- */

static struct known_saga *learn(struct sim *sim, const struct saga *saga)
{
	struct known_saga *k = arena_alloc(&sim->arena, sizeof(*k));

	k->id = str_dup(&sim->arena, saga->id);
	k->steps = (int)saga->marks.n;
	k->is_cloud = str_eq(saga->kind, str_from(clouds_kind.name));
	k->is_lease = str_eq(saga->kind, STR(ACCOUNT_FOLLOW)) || str_starts_with(saga->kind, STR("instance-"));
	k->next = sim->far_side->first;
	sim->far_side->first = k;
	names_add(&sim->far_side->sagas, k->id, k);
	return k;
}

static bool is_listed(struct sim *sim, const struct known_saga *k, int step)
{
	struct str name = str_format(&sim->arena, "\"%s\"", steps[step].name);

	return str_has(k->leftovers, name);
}

static void check_step_end(struct sim *sim, const struct known_saga *k, int step)
{
	switch (k->state) {
	case SAGA_DONE:
		if (k->effects[step] != 1)
			sim_broken(sim, "a saga that is done has all its effects, once each",
			           "saga %.*s: step %d is there %d times", STR_ARG(k->id), step + 1, k->effects[step]);
		return;
	case SAGA_UNDONE:
		if (k->effects[step])
			sim_broken(sim, "a saga that is undone leaves nothing", "saga %.*s: step %d is still there",
			           STR_ARG(k->id), step + 1);
		return;
	case SAGA_PARKED:
		if (k->effects[step] && !is_listed(sim, k, step))
			sim_broken(sim, "a parked saga lists its leftovers",
			           "saga %.*s: step %d is there, and not listed", STR_ARG(k->id), step + 1);
		return;
	case SAGA_RUNNING:
	case SAGA_UNDOING:
	case SAGA_STATE_COUNT: return;
	}
}

static void check_far_side(struct sim *sim, const struct known_saga *k)
{
	for (int i = 0; i < k->steps && !k->is_cloud && !k->is_lease; i++)
		if (leaves_something(i) && !k->is_skipped[i])
			check_step_end(sim, k, i);
}

static const char *end_event(enum saga_state state)
{
	switch (state) {
	case SAGA_DONE: return "SagaDone";
	case SAGA_UNDONE: return "SagaUndone";
	case SAGA_PARKED: return "SagaParked";
	case SAGA_RUNNING:
	case SAGA_UNDOING:
	case SAGA_STATE_COUNT: break;
	}
	return NULL;
}

static void check_end(struct sim *sim, struct session *s, const struct known_saga *k, const struct saga *saga)
{
	const char *type = end_event(saga->state);

	if (type && !commit_event(s, str_from(type), saga->subject, STR("")))
		sim_broken(sim, "no event is lost", "saga %.*s ends without %s in the same commit", STR_ARG(k->id),
		           type);
	check_far_side(sim, k);
}

void sagas_observe(struct sim *sim, struct session *s, const struct session_entry *entry)
{
	const struct saga *before = entry->before, *after = entry->after;
	struct known_saga *k = find(sim, entry->key);

	if (!after)
		return; /* old ones are forgotten */
	if (!k)
		k = learn(sim, after);
	if (!before && !commit_event(s, STR("SagaStarted"), after->subject, STR("")))
		sim_broken(sim, "no event is lost", "saga %.*s starts without SagaStarted in the same commit",
		           STR_ARG(k->id));
	if (before && commit_event(s, STR("SagaSkipped"), after->subject, STR("")))
		k->is_changed_by_hand = k->is_skipped[before->step] = true;
	k->state = after->state;
	k->leftovers = str_dup(&sim->arena, after->leftovers);
	if (!before || before->state != after->state)
		check_end(sim, s, k, after);
	if (k->is_cloud)
		clouds_observe(sim, after, k->is_changed_by_hand);
}

void sagas_check_event(struct sim *sim, struct session *s, const struct event *event)
{
	if (!str_starts_with(event->type, STR("Saga")))
		return;
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		if (entry->type == &saga_type && entry->after &&
		    str_eq(((const struct saga *)entry->after)->subject, event->subject))
			return;
	sim_broken(sim, "no event is invented", "%.*s of %.*s without a saga in the commit", STR_ARG(event->type),
	           STR_ARG(event->subject));
}

void sagas_check_quiet(struct sim *sim)
{
	for (const struct known_saga *k = sim->far_side->first; k; k = k->next) {
		if (k->state == SAGA_RUNNING || k->state == SAGA_UNDOING)
			sim_broken(sim, "a saga ends done, undone or parked", "saga %.*s is still %s", STR_ARG(k->id),
			           saga_state_names[k->state]);
		check_far_side(sim, k);
	}
}

int64_t sagas_count_parked(const struct sim *sim)
{
	int64_t count = 0;

	for (const struct known_saga *k = sim->far_side->first; k; k = k->next)
		count += k->state == SAGA_PARKED;
	return count;
}

/* --- operators --- */

static void give_order(struct sim_node *n, txn_fn *order, const char *name, struct str id, struct arena *a)
{
	struct saga_action o = { .id = id, .actor = STR("operator"), .reason = STR("simulated") };
	struct err         e = { 0 };
	enum rc            rc = node_run(n, order, &o, a, &e);

	sim_trace(n->sim, n, "operator %s saga %.*s: %s", name, STR_ARG(id), rc ? e.msg : "ok");
}

static void give_any_order(struct sim_node *n, struct str id, struct arena *a)
{
	switch (chance_below(&n->sim->chance, 5)) {
	case 0:
	case 1: give_order(n, saga_abort, "aborts", id, a); break;
	case 2:
		if (!find(n->sim, id)->is_lease) /* there what he claims is believed */
			give_order(n, saga_skip, "skips a step of", id, a);
		break;
	default: give_order(n, saga_retry, "retries", id, a); break;
	}
}

void sagas_operator(struct sim_node *n)
{
	static const enum saga_state states[] = { SAGA_RUNNING, SAGA_UNDOING, SAGA_PARKED };
	struct sim                  *sim = n->sim;
	struct saga_list             l = { .has_state = true, .limit = LIST_PAGE };
	struct arena                 a = { 0 };
	struct saga                 *saga;

	l.state = states[chance_below(&sim->chance, ARRAY_LEN(states))];
	if (!node_read(n, saga_list, &l, &a, NULL) && l.page.count) {
		saga = page_record(&l.page, &saga_type, (size_t)chance_below(&sim->chance, (int64_t)l.page.count));
		do
			give_any_order(n, saga->id, &a);
		while (chance_is(&sim->chance, 400)); /* some people press all buttons */
	}
	arena_fini(&a);
}

bool sagas_retry_all(struct sim_node *n)
{
	struct saga_list l = { .has_state = true, .state = SAGA_PARKED, .limit = QUERY_LIMIT_MAX };
	struct arena     a = { 0 };
	size_t           count = 0;

	if (!node_read(n, saga_list, &l, &a, NULL))
		for (count = 0; count < l.page.count; count++)
			give_order(n, saga_retry, "retries",
			           ((struct saga *)page_record(&l.page, &saga_type, count))->id, &a);
	arena_fini(&a);
	return count > 0;
}
