/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clouds.c - moves an account from one OU to another and gives somebody access to it, as a saga over the ports of the
 * simulated cloud.
 *
 * The cloud is the product's own (providers/sim), on a store of its own, with throttling, outages, and time-outs
 * before and after the effect; its CloudTrail events come back through the intake, doubled, late and out of order. An
 * account has one saga at a time.
 *
 * Promises checked here:
 *   done: the account was moved once and is there, with access; undone: it is where it was, without;
 *   parked: what is there is listed
 *   each move is one event in our log, however often the trail tells of it
 */
#include "clouds.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "kernel/edge/intake.h"
#include "truth/sim_truth.h"
#include "providers/sim/faults.h"
#include "providers/sim/records.h"
#include "sim.h"
#include "store/memory/memory.h"
#include "store/session.h"

enum { ACCOUNTS = SIM_ACCOUNTS_DEFAULT, FEED_MAX = 5 };

struct move {
	struct str      id; /* the saga's */
	struct account *account;
	struct str      from, to;
	int64_t         moves_before;
	bool            is_started, is_by_hand;
	bool            is_asking; /* the transaction that starts it is under way; others may come in between */
	enum saga_state state;
};

struct account {
	struct str   id;
	struct move *last;
	int64_t      told; /* events in our log about its moves */
};

struct clouds {
	struct store     *store;
	struct sim_cloud *cloud;
	struct cloud      ports;
	struct chance     chance;
	struct account    accounts[ACCOUNTS];
	struct names      moves;
	int               started;
};

static uint64_t draw(void *arg)
{
	return chance_next(arg);
}

/* The truth; the cloud's own store never fails. */
static struct sim_truth inspect(const struct clouds *c, const struct account *account)
{
	struct sim_truth truth = { 0 };

	if (sim_cloud_inspect(c->cloud, account->id, &truth, NULL))
		abort();
	return truth;
}

/* --- steps --- */

static struct move *move_of(const struct saga_call *call)
{
	struct sim *sim = call->world;

	return names_find(&sim->clouds->moves, call->saga->id);
}

static enum rc act_move(struct saga_call *c, struct err *e)
{
	struct sim          *sim = c->world;
	const struct move   *m = move_of(c);
	struct organisation *o = sim->clouds->ports.organisation;

	sim_call_takes(sim, chance_below(&sim->chance, chance_is(&sim->chance, 100) ? 29000 : 2000));
	return o->ops->move(o, m->account->id, m->from, m->to, e);
}

static enum rc find_place(struct saga_call *c, struct str *ret, struct err *e)
{
	struct sim          *sim = c->world;
	struct organisation *o = sim->clouds->ports.organisation;

	return o->ops->find_parent(o, move_of(c)->account->id, c->arena, ret, e);
}

static enum rc is_moved(struct saga_call *c, bool *ret, struct err *e)
{
	struct str place;
	enum rc    rc = find_place(c, &place, e);

	if (!rc)
		*ret = str_eq(place, move_of(c)->to);
	return rc;
}

static enum rc move_back(struct saga_call *c, struct err *e)
{
	struct sim          *sim = c->world;
	const struct move   *m = move_of(c);
	struct organisation *o = sim->clouds->ports.organisation;
	struct str           place;
	enum rc              rc = find_place(c, &place, e);

	if (rc || str_eq(place, m->from))
		return rc;
	return o->ops->move(o, m->account->id, m->to, m->from, e);
}

static enum rc change_access(struct saga_call *c, bool is_grant, struct err *e)
{
	struct sim             *sim = c->world;
	struct access          *x = sim->clouds->ports.access;
	struct cloud_assignment a = { .account_id = move_of(c)->account->id,
		                      .principal = c->saga->id,
		                      .permission_set = STR("user") };

	return x->ops->set(x, &a, is_grant, e);
}

static enum rc grant(struct saga_call *c, struct err *e)
{
	return change_access(c, true, e);
}

static enum rc revoke(struct saga_call *c, struct err *e)
{
	return change_access(c, false, e);
}

static const struct saga_step steps[] = {
	{ .name = "move", .act = act_move, .check = is_moved, .undo = move_back },
	{ .name = "grant", .act = grant, .undo = revoke, .tries = 3 },
};

const struct saga_kind clouds_kind = {
	.name = "move", .steps = steps, .step_count = ARRAY_LEN(steps), .deadline_ms = 12 * HOUR_MS
};

/* --- the cloud --- */

static void set_rules(struct sim *sim)
{
	static const enum world_fault faults[] = { WORLD_OUTAGE,        WORLD_THROTTLE,         WORLD_TIMEOUT_BEFORE,
		                                   WORLD_TIMEOUT_AFTER, WORLD_DUPLICATE_EVENTS, WORLD_REORDER_EVENTS,
		                                   WORLD_LOSE_EVENTS };
	struct world_rules            rules = { .count = 0 };

	for (size_t i = 0; i < ARRAY_LEN(faults) && !sim->is_calm; i++)
		rules.rules[rules.count++] = (struct world_rule){ .fault = faults[i],
			                                          .call = WORLD_ANY_CALL,
			                                          .per_mille = (int)sim->profile.step /
			                                                       (i < 4 ? 3 : 1) };
	sim_faults_set(sim_cloud_faults(sim->clouds->cloud), &rules);
}

static void list_accounts(struct sim *sim)
{
	struct clouds            *c = sim->clouds;
	struct organisation      *o = c->ports.organisation;
	struct cloud_account_page page = { 0 };

	if (o->ops->list_accounts(o, sim_cloud_ou(c->cloud, SIM_OU_AVAILABLE), STR(""), &sim->arena, &page, NULL) ||
	    page.count != ACCOUNTS)
		abort(); /* nothing goes wrong yet */
	for (size_t i = 0; i < page.count; i++)
		c->accounts[i].id = page.items[i].id;
}

void clouds_open(struct sim *sim)
{
	struct clouds           *c = arena_alloc(&sim->arena, sizeof(*c));
	struct sim_cloud_options o = { .clock = &sim->clock,
		                       .random = draw,
		                       .random_arg = &c->chance,
		                       .accounts = ACCOUNTS,
		                       .available = ACCOUNTS };

	c->chance.state = chance_next(&sim->chance);
	c->moves.arena = &sim->arena;
	c->store = o.store = store_memory_open(sim_types, sim_type_count, &sim->clock);
	if (sim_cloud_open(&o, &c->cloud, NULL))
		abort(); /* the memory store does not fail */
	c->ports = sim_cloud_ports(c->cloud);
	sim->clouds = c;
	list_accounts(sim);
	set_rules(sim);
}

void clouds_calm(struct sim *sim)
{
	set_rules(sim);
}

void clouds_close(struct sim *sim)
{
	struct world_counts counts = sim_faults_counts(sim_cloud_faults(sim->clouds->cloud));

	sim->faults[SIM_CLOUD_FAILED] += counts.faults[WORLD_OUTAGE] + counts.faults[WORLD_THROTTLE] +
	                                 counts.faults[WORLD_TIMEOUT_BEFORE];
	sim->faults[SIM_CLOUD_ANSWER_LOST] += counts.faults[WORLD_TIMEOUT_AFTER];
	sim->faults[SIM_EVENT_REPEATED] += counts.faults[WORLD_DUPLICATE_EVENTS];
	sim->faults[SIM_EVENT_REORDERED] += counts.faults[WORLD_REORDER_EVENTS];
	sim->faults[SIM_EVENT_LATE] += counts.faults[WORLD_LOSE_EVENTS];
	sim_cloud_close(sim->clouds->cloud);
	store_close(sim->clouds->store);
}

/* --- what must be so --- */

static void check_done(struct sim *sim, const struct move *m, const struct sim_truth *truth, struct str place)
{
	if (!str_eq(place, m->to) || truth->moves != m->moves_before + 1)
		sim_broken(sim, "a saga that is done has all its effects, once each",
		           "saga %.*s: the account was moved %lld times", STR_ARG(m->id),
		           (long long)(truth->moves - m->moves_before));
}

static void check_end(struct sim *sim, const struct move *m, const struct saga *saga)
{
	struct sim_truth truth = inspect(sim->clouds, m->account);
	struct str       place = sim_cloud_ou(sim->clouds->cloud, truth.ou);

	if (m->is_by_hand)
		return;
	if (m->state == SAGA_DONE)
		check_done(sim, m, &truth, place);
	if (m->state == SAGA_UNDONE && !str_eq(place, m->from))
		sim_broken(sim, "a saga that is undone leaves nothing",
		           "saga %.*s: the account is not back where it was", STR_ARG(m->id));
	if (m->state == SAGA_PARKED && !str_eq(place, m->from) && !str_has(saga->leftovers, STR("\"move\"")))
		sim_broken(sim, "a parked saga lists its leftovers", "saga %.*s: the move is not listed",
		           STR_ARG(m->id));
}

void clouds_observe(struct sim *sim, const struct saga *saga, bool is_by_hand)
{
	struct move *m = names_find(&sim->clouds->moves, saga->id);

	m->is_started = true;
	m->is_by_hand |= is_by_hand;
	m->state = saga->state;
	check_end(sim, m, saga);
}

void clouds_check_event(struct sim *sim, const struct event *event)
{
	struct str id = event->subject;

	if (!str_eq(event->type, STR("cloudtrail:MoveAccount")))
		return;
	(void)str_cut(&id, '/');
	for (int i = 0; i < ACCOUNTS; i++) {
		struct account *account = &sim->clouds->accounts[i];

		if (str_eq(account->id, id) && ++account->told > inspect(sim->clouds, account).moves)
			sim_broken(sim, "an outside event is taken in once", "account %.*s has more events than moves",
			           STR_ARG(id));
	}
}

static void check_access(struct sim *sim, const struct account *account)
{
	const struct move       *m = account->last;
	struct access           *x = sim->clouds->ports.access;
	struct cloud_assignment *list;
	size_t                   count = 0;
	bool                     has_access = false;

	if (!m || !m->is_started || m->is_by_hand || (m->state != SAGA_DONE && m->state != SAGA_UNDONE))
		return;
	if (x->ops->list(x, account->id, &sim->arena, &list, &count, NULL))
		abort(); /* all is calm */
	for (size_t i = 0; i < count; i++)
		has_access |= str_eq(list[i].principal, m->id);
	if (has_access != (m->state == SAGA_DONE))
		sim_broken(sim, "the cloud is as the sagas say", "saga %.*s: there is %s access", STR_ARG(m->id),
		           has_access ? "still" : "no");
}

void clouds_check_quiet(struct sim *sim)
{
	for (int i = 0; i < ACCOUNTS; i++) {
		const struct account *account = &sim->clouds->accounts[i];
		int64_t               moves = inspect(sim->clouds, account).moves;

		check_access(sim, account);
		if (account->told != moves)
			sim_broken(sim, "an outside event is taken in once",
			           "account %.*s has %lld events of %lld moves", STR_ARG(account->id),
			           (long long)account->told, (long long)moves);
	}
}

/* --- what happens --- */

static enum rc start_move(struct session *s, void *arg, struct err *e)
{
	const struct move *m = arg;

	return session_start(s, clouds_kind.name, m->id,
	                     str_format(session_arena(s), "account/%.*s", STR_ARG(m->account->id)), STR("{}"),
	                     STR("admin"), e);
}

/* Nobody is at it; and nobody has confused it by hand. */
static bool is_free(const struct account *account)
{
	const struct move *m = account->last;

	return !m || (!m->is_started && !m->is_asking) ||
	       (!m->is_by_hand && (m->state == SAGA_DONE || m->state == SAGA_UNDONE));
}

void clouds_operate(struct sim_node *n)
{
	struct sim      *sim = n->sim;
	struct clouds   *c = sim->clouds;
	struct account  *account = &c->accounts[chance_below(&sim->chance, ACCOUNTS)];
	struct sim_truth truth = inspect(c, account);
	struct move     *m;
	struct arena     a = { 0 };
	struct err       e = { 0 };
	enum rc          rc;

	if (!is_free(account))
		return;
	m = arena_alloc(&sim->arena, sizeof(*m));
	*m = (struct move){ .id = str_format(&sim->arena, "move-%d", ++c->started),
		            .account = account,
		            .from = sim_cloud_ou(c->cloud, truth.ou),
		            .to = sim_cloud_ou(c->cloud, truth.ou == SIM_OU_ACTIVE ? SIM_OU_CLEANUP : SIM_OU_ACTIVE),
		            .moves_before = truth.moves,
		            .is_asking = true };
	account->last = m;
	names_add(&c->moves, m->id, m);
	rc = node_run(n, start_move, m, &a, &e);
	m->is_asking = false;
	sim_trace(sim, n, "asks to move account %.*s: %s", STR_ARG(account->id), rc ? e.msg : "ok");
	arena_fini(&a);
}

/* One event of the trail into the intake. True when it may be forgotten. */
static bool take_in(struct sim_node *n, const struct sim_due_event *event, struct arena *a)
{
	struct intake_record *records;
	size_t                count;
	struct err            e = { 0 };
	enum rc               rc = intake_parse(STR("cloudtrail"), event->body, a, &records, &count, &e);
	struct intake_call    call = { .source = STR("cloudtrail") };

	if (rc || count != 1 || records[0].verdict == INTAKE_REJECTED) {
		sim_broken(n->sim, "the trail's events are understood", "%s", rc ? e.msg : records[0].e.msg);
		return true;
	}
	call.record = &records[0];
	rc = node_run(n, intake_store, &call, a, &e);
	sim_trace(n->sim, n, "the trail sends %.*s of %.*s: %s", STR_ARG(records[0].event.type),
	          STR_ARG(records[0].event.subject), rc ? e.msg : "ok");
	return rc == RC_OK;
}

static size_t feed(struct sim_node *n)
{
	struct sim           *sim = n->sim;
	struct arena          a = { 0 };
	struct sim_due_event *events;
	size_t                count = 0;

	if (sim_cloud_take_events(sim->clouds->cloud, FEED_MAX, &a, &events, &count, NULL))
		abort();
	for (size_t i = 0; i < count; i++)
		if (take_in(n, &events[i], &a) && sim_cloud_drop_events(sim->clouds->cloud, &events[i], 1, NULL))
			abort();
	arena_fini(&a);
	return count;
}

void clouds_feed(struct sim_node *n)
{
	(void)feed(n); /* perhaps there is nothing */
}

bool clouds_feed_rest(struct sim_node *n)
{
	bool has_fed = false;

	sim_pass(n->sim, HOUR_MS); /* the latest are under way for less */
	while (!n->sim->has_failed && feed(n))
		has_fed = true;
	return has_fed;
}
