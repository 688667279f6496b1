/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - tracks that claim and give back, operators, the background passes, and a vendor that deletes and makes new
 * accounts.
 *
 * Promises checked here:
 *   no sandbox has two holders, no track two sandboxes     at every commit                  [observe_sandbox()]
 *   a sandbox that was lent once is never lent again       until the vendor has deleted it  [observe_sandbox()]
 *   only what is marked for deletion is deleted            when the vendor is called        [check_deletable()]
 *   what was answered is stored                            after each claim                 [claim()]
 *   units are conserved                                    the counts by state add up       [pool_check_counts()]
 *   every change of state is in the table of the domain                                     [check_step()]
 */
#include "pool.h"

#include "base/arena.h"
#include "domain/ports/csp.h"
#include "domain/sandbox.h"
#include "model.h"
#include "schedule.h"
#include "service/broker/broker.h"
#include "kernel/event.h"
#include "service/broker/passes.h"
#include "service/broker/records.h"
#include "sim.h"
#include "store/session.h"

enum { SLOTS = 12, TRACKS = 10, LAB_HOURS = 4 };

struct known_sandbox {
	struct str            id;
	bool                  is_there;
	enum sandbox_state    state;
	int                   track; /* while it is allocated; else NOBODY */
	bool                  was_lent;
	struct known_sandbox *next;
};

enum { NOBODY = -1 };

struct pool_world {
	struct csp             csp; /* first: the vendor */
	struct sim            *sim;
	int                    generations[SLOTS];     /* of the vendor's accounts: a deleted one is made anew */
	int64_t                listed_until_ms[SLOTS]; /* the one before is still listed */
	struct names           sandboxes;
	struct known_sandbox  *first;
	struct known_sandbox  *held[TRACKS];
	struct broker_settings settings;
};

/* --- the vendor --- */

static struct csp_account account_of(struct arena *a, int slot, int generation)
{
	return (struct csp_account){ .sandbox_id = str_format(a, "sb-%d-%d", slot, generation),
		                     .external_id = str_format(a, "%d/%d", slot, generation),
		                     .name = str_format(a, "%s-%d", slot % 3 ? "lab" : "exam", slot) };
}

static enum rc vendor_list(struct csp *c, struct arena *a, struct csp_account **ret, size_t *ret_count, struct err *e)
{
	struct pool_world *p = CONTAINER_OF(c, struct pool_world, csp);

	if (sim_fault(p->sim, SIM_VENDOR_FAILED, p->sim->profile.vendor))
		return err_set(e, RC_UNAVAILABLE, "simulated: no listing");
	*ret = arena_alloc(a, SLOTS * sizeof(**ret));
	*ret_count = SLOTS;
	for (int i = 0; i < SLOTS; i++) /* a deleted one is listed for a while */
		(*ret)[i] = account_of(a, i, p->generations[i] - (p->sim->lived_ms < p->listed_until_ms[i]));
	return RC_OK;
}

/* Just before the call, somebody has looked at the record: nothing else may be deleted. */
static void check_deletable(struct sim *sim, int64_t slot, int64_t generation)
{
	struct str id = str_format(&sim->arena, "sb-%lld-%lld", (long long)slot, (long long)generation);
	const struct known_sandbox *k = names_find(&sim->pool->sandboxes, id);

	if (k && k->is_there && k->state != SANDBOX_PENDING_DELETION)
		sim_broken(sim, "only what is marked for deletion is deleted", "sandbox %.*s is deleted while it is %s",
		           STR_ARG(id), sandbox_state_name(k->state));
}

static enum rc vendor_delete(struct csp *c, struct str external_id, struct err *e)
{
	struct pool_world *p = CONTAINER_OF(c, struct pool_world, csp);
	struct sim        *sim = p->sim;
	struct str         rest = external_id;
	int64_t            slot = 0, generation = 0;

	if (!str_to_int(str_cut(&rest, '/'), 0, SLOTS - 1, &slot) || !str_to_int(rest, 0, INT64_MAX, &generation))
		return err_set(e, RC_DENIED, "simulated: no such account");
	check_deletable(sim, slot, generation);
	sim_call_takes(sim, chance_below(&sim->chance, chance_is(&sim->chance, 20) ? 200000 : 3000));
	if (sim_fault(sim, SIM_VENDOR_FAILED, sim->profile.vendor))
		return err_set(e, RC_UNAVAILABLE, "simulated: the vendor does not serve");
	if (p->generations[slot] == generation) {
		p->generations[slot]++;
		if (chance_is(&sim->chance, sim->profile.vendor))
			p->listed_until_ms[slot] = sim->lived_ms + chance_below(&sim->chance, 6 * HOUR_MS);
	}
	if (sim_fault(sim, SIM_VENDOR_ANSWER_LOST, sim->profile.vendor))
		return err_set(e, RC_TIMEOUT, "simulated: deleted, but the answer was lost");
	return RC_OK;
}

static void vendor_close(struct csp *c)
{
	(void)c;
}

void pool_open(struct sim *sim)
{
	static const struct csp_ops ops = { "simulated", vendor_list, vendor_delete, vendor_close };
	struct pool_world          *p = arena_alloc(&sim->arena, sizeof(*p));

	*p = (struct pool_world){ .csp = { &ops }, .sim = sim, .sandboxes = { .arena = &sim->arena } };
	p->settings = (struct broker_settings){ .lab_hours = LAB_HOURS,
		                                .grace_sec = 1800,
		                                .deletion_max_attempts = 3,
		                                .deletion_backoff_sec = 300,
		                                .cleanup_batch_size = 10,
		                                .sync_max_stale_percent = 100,
		                                .event_days = sim_paced(sim, 3) };
	sim->pool = p;
}

struct csp *pool_vendor(struct sim *sim)
{
	return &sim->pool->csp;
}

const struct broker_settings *pool_settings(struct sim *sim)
{
	return &sim->pool->settings;
}

/* --- what must be so --- */

static int track_number(struct str owner)
{
	int64_t number = NOBODY;

	str_cut(&owner, '-');
	return str_to_int(owner, 0, TRACKS - 1, &number) ? (int)number : NOBODY;
}

static struct known_sandbox *sandbox_of(struct sim *sim, struct str id)
{
	struct pool_world    *p = sim->pool;
	struct known_sandbox *k = names_find(&p->sandboxes, id);

	if (k)
		return k;
	k = arena_alloc(&sim->arena, sizeof(*k));
	*k = (struct known_sandbox){ .id = str_dup(&sim->arena, id), .track = NOBODY, .next = p->first };
	p->first = k;
	names_add(&p->sandboxes, k->id, k);
	return k;
}

/* Is there a row in the domain's table? */
static void check_step(struct sim *sim, const struct known_sandbox *k, enum sandbox_state to)
{
	for (enum sandbox_event on = 0; on < SANDBOX_EVENT_COUNT; on++) {
		const struct sandbox_step *step = sandbox_step(k->state, on);

		if (step && step->to == to)
			return;
	}
	if (to != k->state)
		sim_broken(sim, "a sandbox changes only as its table says", "sandbox %.*s goes from %s to %s",
		           STR_ARG(k->id), sandbox_state_name(k->state),
		           to == SANDBOX_GONE ? "gone" : sandbox_state_name(to));
}

static void leave_holder(struct sim *sim, struct known_sandbox *k)
{
	if (k->track != NOBODY && sim->pool->held[k->track] == k)
		sim->pool->held[k->track] = NULL;
	k->track = NOBODY;
}

static void observe_sandbox(struct sim *sim, struct known_sandbox *k, const struct sandbox *after)
{
	int track = after && after->status == SANDBOX_ALLOCATED ? track_number(after->allocated_to_track) : NOBODY;

	if (k->is_there)
		check_step(sim, k, after ? after->status : SANDBOX_GONE);
	if (k->track != NOBODY && track != NOBODY && track != k->track)
		sim_broken(sim, "no sandbox has two holders", "sandbox %.*s goes from track %d to track %d",
		           STR_ARG(k->id), k->track, track);
	if (k->track == NOBODY && track != NOBODY && k->was_lent)
		sim_broken(sim, "a sandbox that was lent once is never lent again", "sandbox %.*s is lent to track %d",
		           STR_ARG(k->id), track);
	k->was_lent |= track != NOBODY;
	if (track == NOBODY)
		leave_holder(sim, k);
	k->is_there = after != NULL;
	k->state = after ? after->status : SANDBOX_GONE;
	k->track = track;
}

/* After all changes of the commit were seen: who holds what. */
static void check_holders(struct sim *sim, struct session *s)
{
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));) {
		struct known_sandbox *k = entry->type == &sandbox_type ? sandbox_of(sim, entry->key) : NULL;

		if (!k || k->track == NOBODY)
			continue;
		if (sim->pool->held[k->track] && sim->pool->held[k->track] != k)
			sim_broken(sim, "no track has two sandboxes", "track %d gets %.*s and has %.*s", k->track,
			           STR_ARG(k->id), STR_ARG(sim->pool->held[k->track]->id));
		sim->pool->held[k->track] = k;
	}
}

/* What may be told of a change to this state. */
static const char *const news[SANDBOX_STATE_COUNT + 1][4] = {
	[SANDBOX_AVAILABLE] = { "SandboxAdded", "SandboxRestored", "SandboxReleased" },
	[SANDBOX_ALLOCATED] = { "SandboxAllocated" },
	[SANDBOX_PENDING_DELETION] = { "SandboxMarkedForDeletion", "SandboxExpired", "SandboxReleased",
	                               "SandboxDeletionRetried" },
	[SANDBOX_STALE] = { "SandboxStale", "SandboxQuarantined" },
	[SANDBOX_DELETION_FAILED] = { "SandboxDeletionFailed" },
	[SANDBOX_GONE] = { "SandboxDeleted", "SandboxRemoved" },
};

static void check_told(struct sim *sim, struct session *s, const struct session_entry *entry)
{
	const struct sandbox *before = entry->before, *after = entry->after;
	enum sandbox_state    to = after ? after->status : SANDBOX_GONE;
	struct str            subject = str_format(s->arena, "sandbox/%.*s", STR_ARG(entry->key));
	int                   told = 0;

	if (before && before->status == to)
		return;
	for (size_t i = 0; i < ARRAY_LEN(news[to]) && news[to][i]; i++)
		told += commit_event(s, str_from(news[to][i]), subject, STR("")) != NULL;
	if (told != 1)
		sim_broken(sim, "no event is lost", "%.*s becomes %s with %d events of it in the commit",
		           STR_ARG(subject), after ? sandbox_state_name(to) : "gone", told);
}

void pool_observe(struct sim *sim, struct session *s, const struct session_entry *entry)
{
	const struct session_entry *later = entry;

	if (entry->type != &sandbox_type)
		return;
	check_told(sim, s, entry);
	observe_sandbox(sim, sandbox_of(sim, entry->key), entry->after);
	while ((later = session_next_change(s, later)) && later->type != &sandbox_type)
		;
	if (!later)
		check_holders(sim, s);
}

void pool_check_event(struct sim *sim, struct session *s, const struct event *event)
{
	struct str id = event->subject;

	if (!str_starts_with(event->type, STR("Sandbox")))
		return;
	(void)str_cut(&id, '/');
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		if (entry->type == &sandbox_type && str_eq(entry->key, id))
			return;
	sim_broken(sim, "no event is invented", "%.*s of %.*s, which does not change with it", STR_ARG(event->type),
	           STR_ARG(event->subject));
}

void pool_check_counts(struct sim_node *n)
{
	struct sim        *sim = n->sim;
	int64_t            known[SANDBOX_STATE_COUNT] = { 0 };
	struct pool_counts c;
	struct arena       a = { 0 };

	if (!node_read(n, broker_count, &c, &a, NULL)) {
		for (const struct known_sandbox *k = sim->pool->first; k; k = k->next)
			if (k->is_there)
				known[k->state]++;
		for (int i = 0; i < SANDBOX_STATE_COUNT; i++)
			if (known[i] != c.by_state[i])
				sim_broken(sim, "units are conserved",
				           "%lld sandboxes are counted as %s, there are %lld", (long long)c.by_state[i],
				           sandbox_state_names[i], (long long)known[i]);
	}
	arena_fini(&a);
}

/* --- tracks --- */

static void claim(struct sim_node *n, int track, struct arena *a)
{
	struct sim  *sim = n->sim;
	struct claim c = { .ask = { .owner = str_format(a, "track-%d", track), .lab_hours = LAB_HOURS } };
	struct err   e = { 0 };
	enum rc      rc;

	if (chance_is(&sim->chance, 200))
		c.prefix = STR("exam");
	rc = node_run(n, broker_claim, &c, a, &e);
	sim_trace(sim, n, "track %d claims: %.*s", track, rc ? (int)sizeof(e.msg) : (int)c.sandbox.sandbox_id.n,
	          rc ? e.msg : c.sandbox.sandbox_id.p);
	if (!rc && (!sim->pool->held[track] || !str_eq(sim->pool->held[track]->id, c.sandbox.sandbox_id)))
		sim_broken(sim, "what was answered is stored", "track %d was told it has %.*s, and has not", track,
		           STR_ARG(c.sandbox.sandbox_id));
}

static void give_back(struct sim_node *n, int track, struct arena *a)
{
	struct sim         *sim = n->sim;
	struct sandbox_call c = { .owner = str_format(a, "track-%d", track) };
	struct err          e = { 0 };
	enum rc             rc;

	if (!sim->pool->held[track])
		return;
	c.id = sim->pool->held[track]->id;
	rc = node_run(n, broker_give_back, &c, a, &e);
	sim_trace(sim, n, "track %d gives back %.*s: %s", track, STR_ARG(c.id), rc ? e.msg : "ok");
}

/* --- operators --- */

/* Rather one that is about to be deleted. */
static int find_slot(struct sim *sim)
{
	struct pool_world *p = sim->pool;
	int                slot = 0;

	for (int tries = 0; tries < 4; tries++) {
		const struct known_sandbox *k;

		slot = (int)chance_below(&sim->chance, SLOTS);
		k = names_find(&p->sandboxes, account_of(&sim->arena, slot, p->generations[slot]).sandbox_id);
		if (k && k->state == SANDBOX_PENDING_DELETION)
			break;
	}
	return slot;
}

static void set_aside(struct sim_node *n, struct arena *a)
{
	static const struct {
		txn_fn     *run;
		const char *name;
	} orders[] = { { broker_quarantine, "quarantines" },
		       { broker_release, "releases" },
		       { broker_retry_deletion, "retries" } };
	struct sim         *sim = n->sim;
	int                 slot = find_slot(sim);
	struct sandbox_call c = { .id = account_of(a, slot, sim->pool->generations[slot]).sandbox_id,
		                  .reason = STR("simulated"),
		                  .by = { .name = STR("admin") } };
	size_t              which = (size_t)chance_below(&sim->chance, ARRAY_LEN(orders));
	struct err          e = { 0 };
	enum rc             rc = node_run(n, orders[which].run, &c, a, &e);

	sim_trace(sim, n, "operator %s %.*s: %s", orders[which].name, STR_ARG(c.id), rc ? e.msg : "ok");
}

void pool_operate(struct sim_node *n)
{
	struct sim  *sim = n->sim;
	struct arena a = { 0 };
	int64_t      what = chance_below(&sim->chance, 100);
	int          track = (int)chance_below(&sim->chance, TRACKS);

	if (what < 50)
		claim(n, track, &a);
	else if (what < 85)
		give_back(n, track, &a);
	else if (what < 90)
		set_aside(n, &a);
	else
		schedule_operate(n);
	arena_fini(&a);
}
