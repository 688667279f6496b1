/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - the store that all nodes share, watched, and each node's own unreliable view of it.
 *
 * The shared store is the memory back end with functions of its table replaced: apply() shows every commit to the
 * model, so that the model knows what was written whether or not anybody was told; query() sometimes answers an index
 * query from the state of some changes ago, as an eventually consistent index does. What was decided on such an
 * answer is refused at the commit when it no longer holds, and the function runs again: as on DynamoDB. Any of those
 * that read may fail.
 *
 * A node's view is a store around the shared one. It makes the node's kernel the context of each transaction and
 * decides what becomes of it: refused, run twice, written with the answer lost; or another node's step comes in
 * between.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bank.h"
#include "model.h"
#include "service/broker/records.h"
#include "service/services.h"
#include "sim.h"
#include "store/memory/memory.h"
#include "store/session.h"

enum { WORLD_TYPES_MAX = 64 };

/* --- what was before --- */

static void remember(struct sim *sim, const struct session_entry *entry)
{
	struct recent *r = &sim->recent[sim->recent_count++ % RECENT_MAX];

	arena_reset(&r->arena);
	r->type = entry->type;
	r->at_ms = sim->lived_ms; /* an index lags by time that passes, whatever the clock says */
	r->key = str_dup(&r->arena, entry->key);
	r->before = NULL;
	if (!entry->before)
		return;
	r->before = arena_alloc(&r->arena, entry->type->size);
	record_copy(entry->type, r->before, entry->before, &r->arena);
}

/* The first change of the record from this one on; recent_count when there was none. */
static size_t first_change(const struct sim *sim, size_t from, const struct record_type *type, struct str key)
{
	while (from < sim->recent_count) {
		const struct recent *r = &sim->recent[from % RECENT_MAX];

		if (r->type == type && str_eq(r->key, key))
			break;
		from++;
	}
	return from;
}

/* How many changes an index may not have heard of yet. */
static size_t count_recent(const struct sim *sim)
{
	size_t most = sim->recent_count < RECENT_MAX ? sim->recent_count : RECENT_MAX, count = 0;

	while (count < most && sim->recent[(sim->recent_count - count - 1) % RECENT_MAX].at_ms > sim->lived_ms - LAG_MS)
		count++;
	return count;
}

struct old_page {
	const struct query *q;
	struct stored_page *page;
	size_t              room;
};

static void insert_sorted(struct old_page *old, struct stored item)
{
	int            field = query_sort_field(old->q);
	struct stored *items = old->page->items;
	size_t         at = old->page->count;

	if (old->page->count == old->room)
		return;
	for (; field != NO_FIELD && at > 0; at--) {
		int order = value_cmp(old->q->type->fields[field].kind, record_value(old->q->type, field, item.record),
		                      record_value(old->q->type, field, items[at - 1].record));

		if ((old->q->is_descending ? -order : order) >= 0)
			break;
		items[at] = items[at - 1];
	}
	items[at] = item;
	old->page->count++;
}

/* The page as it was some changes ago: what has changed since is as it was then. False when that is the same. */
static bool turn_back(struct session *s, size_t changes, const struct query *q, struct stored_page *page)
{
	struct sim        *sim = sim_of(s);
	struct stored_page now = *page;
	struct old_page    old = { q, page, now.count + changes };
	size_t             then = sim->recent_count - changes;
	bool               is_other = false;

	page->count = 0;
	page->items = arena_alloc(s->arena, old.room * sizeof(*page->items));
	for (size_t i = 0; i < now.count; i++)
		if (first_change(sim, then, q->type, record_key(q->type, now.items[i].record)) == sim->recent_count)
			page->items[page->count++] = now.items[i];
	for (size_t i = then; i < sim->recent_count; i++) {
		const struct recent *r = &sim->recent[i % RECENT_MAX];
		struct stored        item = { 0 }; /* without a handle: it cannot be written, see is_current() */

		if (r->type != q->type || !r->before || !query_matches(q, r->before) ||
		    first_change(sim, then, q->type, r->key) != i)
			continue;
		item.record = arena_alloc(s->arena, q->type->size);
		record_copy(q->type, item.record, r->before, s->arena);
		insert_sorted(&old, item);
		is_other = true;
	}
	is_other |= page->count != now.count;
	if (page->count > q->limit)
		page->count = q->limit;
	return is_other;
}

/* What has come into the page since has pushed out others: they are needed too. */
static enum rc query_old(struct session *s, size_t changes, const struct query *q, struct stored_page *ret,
                         bool *ret_is_other, struct err *e)
{
	struct query       more = *q;
	struct stored_page page = { 0 };
	enum rc            rc;

	more.limit = q->limit + changes < QUERY_LIMIT_MAX ? q->limit + changes : QUERY_LIMIT_MAX;
	if ((rc = sim_of(s)->memory->query(s, &more, &page, e)))
		return rc;
	*ret_is_other = turn_back(s, changes, q, &page);
	ret->items = page.items;
	ret->count = page.count;
	return RC_OK;
}

/* Is this the read that fails? See fail_amid(). */
static enum rc read_one(struct session *s, struct err *e)
{
	struct sim *sim = sim_of(s);

	if (!sim->reads_left || --sim->reads_left)
		return RC_OK;
	sim->faults[SIM_STORE_READ_FAILED]++;
	return err_set(e, RC_UNAVAILABLE, "simulated: this cannot be read");
}

static enum rc get(struct session *s, const struct record_type *type, struct str key, struct stored *ret, struct err *e)
{
	enum rc rc = read_one(s, e);

	return rc ? rc : sim_of(s)->memory->get(s, type, key, ret, e);
}

static enum rc find_unique(struct session *s, const struct record_type *type, int index, struct value v,
                           struct stored *ret, struct err *e)
{
	enum rc rc = read_one(s, e);

	return rc ? rc : sim_of(s)->memory->find_unique(s, type, index, v, ret, e);
}

static enum rc count_records(struct session *s, const struct record_type *type, int index, struct value hash,
                             int64_t *ret, struct err *e)
{
	enum rc rc = read_one(s, e);

	return rc ? rc : sim_of(s)->memory->count(s, type, index, hash, ret, e);
}

static enum rc query(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct sim *sim = sim_of(s);
	bool        is_other = false;
	enum rc     rc = read_one(s, e);
	size_t      changes;

	if (rc || (rc = sim->memory->query(s, q, ret, e)) || q->index < 0 || q->cursor.n || sim->is_fresh)
		return rc;
	changes = count_recent(sim);
	if (!changes || sim->is_calm || !chance_is(&sim->chance, sim->profile.lag))
		return RC_OK;
	rc = query_old(s, (size_t)chance_from_to(&sim->chance, 1, (int64_t)changes), q, ret, &is_other, e);
	if (rc || !is_other)
		return rc;
	sim->faults[SIM_STORE_STALE]++;
	sim->has_lagged = true;
	return RC_OK;
}

/* --- commits --- */

/* Does the session know the record as it is stored? */
static bool is_current(struct session *s, const struct session_entry *entry)
{
	struct stored stored;

	if (!entry->is_changed && !entry->is_decisive)
		return true;
	if (sim_of(s)->memory->get(s, entry->type, entry->key, &stored, NULL))
		return !entry->before;
	return entry->before &&
	       record_version(entry->type, entry->before) == record_version(entry->type, stored.record);
}

/* The others look for what somebody else has left behind only now and then. */
static void wake_nodes(struct sim *sim, const struct session *s)
{
	bool is_news = false;

	for (const struct session_entry *entry = NULL; !is_news && (entry = session_next_change(s, entry));)
		is_news = entry->type == &lane_type || entry->type == &timer_type || entry->type == &saga_type;
	for (int i = 0; is_news && i < sim->profile.nodes; i++)
		if (sim->nodes[i].idle_until_ms > sim_now(sim) + NODE_POLL_MS)
			sim->nodes[i].idle_until_ms = sim_now(sim) + NODE_POLL_MS;
}

static enum rc apply(struct session *s, struct err *e)
{
	struct sim *sim = sim_of(s);
	enum rc     rc;

	for (const struct session_entry *entry = s->first; sim->has_lagged && entry; entry = entry->next)
		if (!is_current(s, entry)) {
			sim->is_outdated = true;
			sim->faults[SIM_STORE_OUTDATED]++;
			return err_set(e, RC_CONFLICT, "simulated: what was read is no longer so");
		}
	if ((rc = sim->memory->apply(s, e)))
		return rc;
	sim->commits++;
	model_observe(sim, s);
	wake_nodes(sim, s);
	for (const struct session_entry *entry = NULL; sim->profile.lag && (entry = session_next_change(s, entry));)
		remember(sim, entry);
	return RC_OK;
}

/* --- a node's view --- */

struct wrapped {
	struct txn       inner;
	struct txn      *outer;
	struct sim_node *node;
	enum fault_kind  fault; /* FAULT_KIND_COUNT: none */
};

static void enter(struct sim_node *n)
{
	n->sim->shared->context = n->base.context;
	n->sim->shared->on_news = n->base.on_news;
	n->sim->has_lagged = n->sim->is_outdated = false;
}

/* One read of the transaction fails, the first or a later one; the function must pass that on, or do without. When
 * there are not so many reads, the commit is refused. */
static enum rc fail_amid(struct session *s, struct wrapped *w, bool *ret_is_refused, struct err *e)
{
	struct sim *sim = w->node->sim;
	enum rc     rc;

	sim->reads_left = sim->reads_hold ? 0 : 1 + (int)(sim->faults[SIM_STORE_REFUSED] % READS_MAX);
	rc = w->outer->run(s, w->outer->arg, e);
	*ret_is_refused = sim->reads_left > 0 || sim->reads_hold;
	sim->reads_left = 0;
	return rc;
}

static enum rc run_wrapped(struct session *s, void *arg, struct err *e)
{
	struct wrapped *w = arg;
	bool            is_refused = true;
	enum rc         rc = RC_OK;

	enter(w->node);
	if (w->fault == SIM_STORE_REFUSED) {
		if (chance_is(&w->node->sim->chance, 500))
			rc = fail_amid(s, w, &is_refused, e);
		if (!is_refused)
			return rc;
		err_clear(e);
		return err_set(e, RC_UNAVAILABLE, "simulated: the store does not take it");
	}
	if (w->fault == SIM_STORE_RERUN) {
		rc_ignore(w->outer->run(s, w->outer->arg, e)); /* thrown away: that is the point */
		session_reset(s);
		err_clear(e);
		sim_interleave(w->node->sim, w->node);
		enter(w->node);
	}
	return w->outer->run(s, w->outer->arg, e);
}

static void finish(struct txn *inner, enum rc rc, const struct err *e)
{
	struct wrapped *w = CONTAINER_OF(inner, struct wrapped, inner);
	struct txn     *outer = w->outer;
	struct sim     *sim = w->node->sim;

	if (rc && sim->is_outdated) { /* again, on what is so; turn() runs it */
		sim->shared->clock = &w->node->clock;
		w->fault = FAULT_KIND_COUNT;
		sim->is_fresh = true;
		store_submit(sim->shared, inner);
		return;
	}
	sim->is_outdated = sim->is_fresh = false;
	outer->rc = rc;
	outer->e = *e;
	if (w->fault == SIM_STORE_ANSWER_LOST && !rc) {
		sim->faults[SIM_STORE_ANSWER_LOST]++;
		outer->rc = err_set(&outer->e, RC_UNAVAILABLE, "simulated: written, but the answer was lost");
	}
	free(w);
	outer->done(outer, outer->rc, &outer->e);
}

static enum fault_kind choose_fault(struct sim_node *n, const struct txn *t)
{
	struct sim *sim = n->sim;

	if (sim_now(sim) < n->outage_until_ms) {
		sim->faults[SIM_STORE_REFUSED]++;
		return SIM_STORE_REFUSED;
	}
	if (sim_fault(sim, SIM_STORE_REFUSED, sim->profile.store))
		return SIM_STORE_REFUSED;
	if (t->is_read_only)
		return FAULT_KIND_COUNT;
	if (sim_fault(sim, SIM_STORE_RERUN, sim->profile.store))
		return SIM_STORE_RERUN;
	if (!sim->is_calm && chance_is(&sim->chance, sim->profile.store))
		return SIM_STORE_ANSWER_LOST; /* counted when it is */
	return FAULT_KIND_COUNT;
}

static void submit_one(struct store *base, struct txn *t)
{
	struct sim_node *n = CONTAINER_OF(base, struct sim_node, base);
	struct wrapped  *w = mem_new(struct wrapped);

	if (sim_fault(n->sim, SIM_INTERLEAVED, n->sim->depth ? 0 : n->sim->profile.interleave))
		sim_interleave(n->sim, n);
	*w = (struct wrapped){ .outer = t, .node = n, .fault = choose_fault(n, t) };
	w->inner = (struct txn){
		.run = run_wrapped, .arg = w, .arena = t->arena, .is_read_only = t->is_read_only, .done = finish
	};
	n->sim->shared->clock = &n->clock;
	store_submit(n->sim->shared, &w->inner);
}

static void submit(struct store *base, struct txn *const *txns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		submit_one(base, txns[i]);
}

static void turn(struct store *base)
{
	struct sim_node *n = CONTAINER_OF(base, struct sim_node, base);

	while (store_memory_turn(n->sim->shared))
		;
}

static void close_view(struct store *base)
{
	store_fini(base);
}

void world_open_view(struct sim_node *n)
{
	static const struct store_ops ops = { .name = "sim", .submit = submit, .turn = turn, .close = close_view };

	n->base = (struct store){ 0 };
	store_init(&n->base, &ops, &n->clock);
}

void world_open(struct sim *sim)
{
	const struct record_type *types[WORLD_TYPES_MAX] = { &bank_account_type, &bank_effect_type };
	size_t                    count = 2;

	assert(service_type_count + count <= WORLD_TYPES_MAX);
	for (size_t i = 0; i < service_type_count; i++)
		types[count++] = service_types[i];
	sim->shared = store_memory_open(types, count, &sim->clock);
	sim->memory = sim->shared->ops;
	sim->ops = (struct watched_ops){ .base = *sim->memory, .sim = sim };
	sim->ops.base.apply = apply;
	sim->ops.base.get = get;
	sim->ops.base.query = query;
	sim->ops.base.find_unique = find_unique;
	sim->ops.base.count = count_records;
	sim->shared->ops = &sim->ops.base;
	sim->recent_count = 0;
}

void world_close(struct sim *sim)
{
	store_close(sim->shared);
	for (size_t i = 0; i < RECENT_MAX; i++)
		arena_fini(&sim->recent[i].arena);
}
