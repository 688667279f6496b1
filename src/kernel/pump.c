/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump.c - who runs the kernel's work, and when.
 *
 * One thread looks for what is due. What only touches the store is submitted at once and finishes on the store's own
 * threads, many in one group commit; what calls out goes to a worker thread. The thread sleeps until something becomes
 * due, somebody pokes it, or it is time to look for what other nodes have left.
 *
 * Everything under way is in a table by its key, so that the next look does not begin it a second time; that is to save
 * work, not for safety: two at the same time would be kept apart by the store. What the store has failed stays in the
 * table for a while: it is still due, and would be begun again at once, and for ever.
 *
 * Each addressee of a queue that says so (webhooks) has a call of its own, on a thread of its own, so that one that
 * hangs does not hold up another; what waits for an addressee that has all the calls it may have is passed over.
 *
 * What is due and finds no room is not looked for again before there is room: the end of a call is a reason to look.
 * While a delivery is under way the one behind it cannot be seen; so a look that began something is soon followed by
 * another, and one that found only what was under way is repeated when that is done.
 */
#include "kernel/pump.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/inbox.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernel/kernel.h"
#include "kernel/work.h"

enum {
	FIND_LIMIT = 256,      /* of each queue and kind in one look */
	ENOUGH_UNDER_WAY = 64, /* look again when fewer are */
	BUCKETS = 1024,
	SPARE_MAX = 256,
	TURNS_MAX = 32,
	DEFAULT_CONCURRENCY = 4,
	STORE_RETRY_MS = 1000,
	CLAIMED_MS = 50, /* by then, what was begun is mostly claimed, and so no longer due; */
	SETTLED_MS = 1,  /* or settled, when it makes no call */
};

struct item {                   /* one work under way */
	struct item      *next; /* in its bucket */
	uint64_t          hash;
	struct pump      *pump;
	struct work       work;
	struct txn        txn;
	struct item      *next_call;  /* of those with a worker, or waiting for one */
	uint64_t          target;     /* of a call: its queue and addressee; 0: it has none */
	bool              is_own;     /* the call that its addressee always has, with a thread of its own */
	unsigned          turns;      /* deliveries of one lane in a row: each takes some of the arena */
	bool              has_failed; /* the store has */
	struct item      *next_resting;
	int64_t           rests_until_ms;
	struct inbox_item turn; /* at the workers */
};

/* Workers, and what waits for them. */
struct crew {
	struct pump *pump;
	pthread_t   *threads;
	unsigned     started;
	struct inbox calls;
	size_t       called;   /* with a worker, or waiting for one */
	unsigned    *by_queue; /* of them */
};

enum { SHARED, OWN, CREW_COUNT }; /* OWN: for calls that addressees have of their own, begun when needed */

struct pump {
	struct pump_options          options;
	const struct kernel_options *kernel;
	pthread_t                    finder;
	struct crew                  crews[CREW_COUNT];

	pthread_mutex_t lock;
	pthread_cond_t  is_changed;
	atomic_bool     is_poked;
	bool            is_stopping;
	bool            is_blind; /* the last look saw only what is under way: look again when that is done */
	struct item    *buckets[BUCKETS];
	struct item    *spare; /* done with; their memory is used again */
	size_t          spare_count;
	struct item    *calling, *resting;
	int64_t         complained_ms; /* when the log had the last of the store's failures */
	size_t          alone;         /* under way without a worker */
};

/* --- what is under way --- */

static uint64_t hash_of(const struct work *w)
{
	return str_hash(w->key, (uint64_t)w->kind + 1);
}

static bool is_under_way(const struct pump *p, uint64_t hash)
{
	const struct item *item = p->buckets[hash % BUCKETS];

	while (item && item->hash != hash)
		item = item->next;
	return item != NULL;
}

/* How many calls of the work's queue they have under way; NULL: the work has no queue. */
static unsigned *calls_of(const struct crew *c, const struct work *w)
{
	return w->kind == WORK_LANE ? &c->by_queue[w->queue - c->pump->kernel->queues] : NULL;
}

/* Queue and addressee, as the lane's key begins with them: queue#target|subject. Empty: it has no addressee. */
static struct str prefix_of(const struct work *w)
{
	const char *end = w->kind == WORK_LANE ? memchr(w->key.p, '|', w->key.n) : NULL;

	return end ? str_of(w->key.p, (size_t)(end - w->key.p) + 1) : STR("");
}

static uint64_t target_of(const struct work *w)
{
	struct str prefix = prefix_of(w);

	return prefix.n ? str_hash(prefix, 0) : 0;
}

/* To this addressee: its own, or others. */
static unsigned calls_to(const struct pump *p, uint64_t target, bool is_own)
{
	unsigned count = 0;

	for (const struct item *item = p->calling; item; item = item->next_call)
		count += item->target == target && item->is_own == is_own;
	return count;
}

enum room { NO_ROOM, ROOM, OWN_ROOM };

/* Each addressee of a queue that says so has a call of its own; the rest of the queue's calls never all go to one
 * addressee: one that does not answer must not hold up the others. */
static enum room room_for(const struct pump *p, const struct work *w)
{
	uint64_t        target = target_of(w);
	const unsigned *shared = calls_of(&p->crews[SHARED], w), *own = calls_of(&p->crews[OWN], w);
	unsigned        most;

	if (!w->needs_call)
		return ROOM;
	if (target && *own < w->queue->addressees && !calls_to(p, target, true))
		return OWN_ROOM;
	if (p->crews[SHARED].called >= (size_t)p->options.workers * 2)
		return NO_ROOM;
	if (!shared)
		return ROOM;
	most = w->queue->concurrency ? w->queue->concurrency : DEFAULT_CONCURRENCY;
	return *shared < most && (!target || calls_to(p, target, false) < most - most / 4) ? ROOM : NO_ROOM;
}

static struct item *take_spare(struct pump *p)
{
	struct item *item = p->spare;

	if (!item)
		return mem_new(struct item);
	p->spare = item->next;
	p->spare_count--;
	return item;
}

static void free_item(struct item *item)
{
	work_fini(&item->work);
	free(item);
}

/* One more, or one less (by is -1). */
static void count(struct pump *p, const struct item *item, int by)
{
	struct crew *c = &p->crews[item->is_own ? OWN : SHARED];
	unsigned    *of_queue = calls_of(c, &item->work);

	if (!item->work.needs_call) {
		p->alone += (size_t)by;
		return;
	}
	c->called += (size_t)by;
	if (of_queue)
		*of_queue += (unsigned)by;
}

static struct item *add_item(struct pump *p, const struct work *w, bool is_own)
{
	struct item *item = take_spare(p);

	item->hash = hash_of(w);
	item->pump = p;
	item->turns = 0;
	item->has_failed = false;
	item->is_own = is_own;
	work_copy(&item->work, w);
	item->next = p->buckets[item->hash % BUCKETS];
	p->buckets[item->hash % BUCKETS] = item;
	count(p, item, 1);
	if (w->needs_call) {
		item->target = target_of(w);
		item->next_call = p->calling;
		p->calling = item;
	}
	return item;
}

/* With the lock held. */
static void put_aside(struct pump *p, struct item *item)
{
	struct item **at = &p->buckets[item->hash % BUCKETS];

	while (*at != item)
		at = &(*at)->next;
	*at = item->next;
	if (p->spare_count >= SPARE_MAX) {
		free_item(item);
		return;
	}
	arena_reset(&item->work.arena);
	item->next = p->spare;
	p->spare = item;
	p->spare_count++;
}

/* Those that have rested long enough may be begun again. True: there are others. */
static bool wake_rested(struct pump *p)
{
	struct item **at = &p->resting;

	LOCKED(&p->lock);
	while (*at) {
		struct item *item = *at;

		if (item->rests_until_ms > mono_now().ms) {
			at = &item->next_resting;
			continue;
		}
		*at = item->next_resting;
		put_aside(p, item);
	}
	return p->resting != NULL;
}

static void end_item(struct item *item)
{
	struct pump  *p = item->pump;
	struct item **at = &p->calling;
	bool          is_call = item->work.needs_call, has_more = item->work.has_more, must_look;

	LOCKED(&p->lock);
	while (is_call && *at != item)
		at = &(*at)->next_call;
	if (is_call)
		*at = item->next_call;
	count(p, item, -1);
	if (item->has_failed) {
		item->rests_until_ms = mono_now().ms + STORE_RETRY_MS;
		item->next_resting = p->resting;
		p->resting = item;
	} else {
		put_aside(p, item);
	}
	must_look = is_call || has_more || p->alone == ENOUGH_UNDER_WAY - 1 || (p->alone == 0 && p->is_blind);
	if (must_look)
		atomic_store(&p->is_poked, true);
	if (must_look || p->is_stopping)
		pthread_cond_broadcast(&p->is_changed);
}

/* The store has failed a stage, and the work stays due. One line a second says enough. */
static void complain(struct item *item, const struct err *e)
{
	struct pump *p = item->pump;
	int64_t      now_ms = mono_now().ms;
	bool         is_new;

	item->has_failed = true;
	pthread_mutex_lock(&p->lock);
	is_new = now_ms - p->complained_ms >= STORE_RETRY_MS;
	if (is_new)
		p->complained_ms = now_ms;
	pthread_mutex_unlock(&p->lock);
	log_write(is_new ? LOG_WARNING : LOG_DEBUG, "kernel", NULL, 0, "%.*s: %s", STR_ARG(item->work.key), e->msg);
}

/* --- without a worker --- */

static void on_settled(struct txn *t, enum rc rc, const struct err *e);

static void submit_stage(struct item *item, txn_fn *stage)
{
	item->txn = (struct txn){ .run = stage, .arg = &item->work, .arena = &item->work.arena, .done = on_settled };
	store_submit(item->pump->kernel->store, &item->txn);
}

static void on_settled(struct txn *t, enum rc rc, const struct err *e)
{
	struct item *item = CONTAINER_OF(t, struct item, txn);

	if (t->run == work_settle && work_is_to_blame(&item->work, rc, e)) {
		log_write(LOG_DEBUG, "kernel", NULL, 0, "%.*s: %s", STR_ARG(item->work.key), e->msg);
		submit_stage(item, work_refuse);
		return;
	}
	if (rc)
		complain(item, e);
	else
		work_count(&item->work);
	if (!rc && item->work.has_more && ++item->turns < TURNS_MAX) {
		submit_stage(item, work_settle);
		return;
	}
	end_item(item);
}

/* --- with a worker --- */

static bool may_go_on(void *arg)
{
	struct pump *p = arg;

	LOCKED(&p->lock);
	return !p->is_stopping;
}

static enum rc run_stage(struct item *item, txn_fn *stage)
{
	struct pump *p = item->pump;
	struct work *w = &item->work;
	struct err   e = { 0 };
	enum rc      rc = store_run(p->kernel->store, stage, w, &w->arena, &e);

	if (rc && !(stage == work_settle && work_is_to_blame(w, rc, &e)))
		complain(item, &e);
	if (!rc)
		work_count(w);
	return rc;
}

/* Sagas go on with their next step while they are claimed; a lane's next delivery is a work of its own. */
static void run_call(struct item *item)
{
	struct pump *p = item->pump;
	struct work *w = &item->work;

	w->may_go_on = may_go_on;
	w->may_go_on_arg = p;
	if (run_stage(item, work_claim) || !w->is_claimed)
		return;
	do {
		work_perform(w);
		if (run_stage(item, work_settle)) {
			if (w->is_refused)
				rc_ignore(run_stage(item, work_refuse)); /* logged; else the claim runs out */
			return;
		}
	} while (w->has_more && w->kind == WORK_SAGA && may_go_on(p));
}

static void *work_loop(void *arg)
{
	struct crew       *c = arg;
	struct inbox_item *turn;

	while ((turn = inbox_wait_one(&c->calls))) {
		struct item *item = CONTAINER_OF(turn, struct item, turn);

		if (may_go_on(c->pump))
			run_call(item);
		work_over(&item->work);
		end_item(item);
	}
	return NULL;
}

static void start_worker(struct crew *c)
{
	mem_must(pthread_create(&c->threads[c->started++], NULL, work_loop, c) == 0, "a thread");
}

/* --- looking --- */

/* Only the finder's thread comes here. Each call that an addressee has of its own has a thread, which stays. */
static bool begin(struct pump *p, const struct work *w)
{
	struct item *item = NULL;
	struct crew *c;
	enum room    room;
	size_t       called;

	pthread_mutex_lock(&p->lock);
	room = is_under_way(p, hash_of(w)) ? NO_ROOM : room_for(p, w);
	if (room != NO_ROOM)
		item = add_item(p, w, room == OWN_ROOM);
	c = &p->crews[room == OWN_ROOM ? OWN : SHARED];
	called = c->called;
	pthread_mutex_unlock(&p->lock);
	if (!item)
		return false;
	if (room == OWN_ROOM && called > c->started)
		start_worker(c);
	if (w->needs_call)
		(void)inbox_put(&c->calls, &item->turn);
	else
		submit_stage(item, work_settle);
	return true;
}

/* With the lock held: sleep until there is a reason to look. False: stop. */
static bool wait_for_reason(struct pump *p, int64_t wait_ms)
{
	int64_t until_ms = mono_now().ms + (wait_ms > p->options.poll_ms ? p->options.poll_ms : wait_ms);

	while (!p->is_stopping) {
		if (p->alone >= ENOUGH_UNDER_WAY)
			pthread_cond_wait(&p->is_changed, &p->lock);
		else if (!atomic_load(&p->is_poked) && mono_now().ms < until_ms)
			(void)cond_wait_until(&p->is_changed, &p->lock, until_ms);
		else
			break;
	}
	atomic_store(&p->is_poked, false);
	return !p->is_stopping;
}

static int64_t begin_all(struct pump *p, const struct work_list *list, int64_t wait_ms)
{
	bool has_begun = false;

	for (size_t i = 0; i < list->count; i++) {
		const struct work *w = &list->items[i];

		if (!begin(p, w))
			continue;
		has_begun |= !w->needs_call;
		if (wait_ms > CLAIMED_MS)
			wait_ms = CLAIMED_MS;
	}
	LOCKED(&p->lock);
	p->is_blind = !has_begun && p->alone > 0;
	return has_begun ? SETTLED_MS : wait_ms;
}

/* The addressees that have all the calls they may have. */
static struct work_skips find_saturated(struct pump *p, struct arena *a)
{
	struct str *list;
	size_t      count = 0;

	LOCKED(&p->lock);
	list = arena_alloc(a, (p->crews[SHARED].called + p->crews[OWN].called + 1) * sizeof(*list));
	for (const struct item *item = p->calling; item; item = item->next_call) {
		struct str prefix = prefix_of(&item->work);

		if (prefix.n && room_for(p, &item->work) == NO_ROOM && !str_is_among(prefix, list, count))
			list[count++] = str_dup(a, prefix);
	}
	return (struct work_skips){ list, count };
}

/* Returns how long until there is more to do, as far as is known now. */
static int64_t look(struct pump *p, struct arena *a)
{
	struct err       e = { 0 };
	struct work_list list;
	int64_t          wait_ms = wake_rested(p) ? STORE_RETRY_MS : p->options.poll_ms, until_due_ms;

	if (work_find(p->options.kernel, FIND_LIMIT, find_saturated(p, a), a, &list, &e)) {
		log_write(LOG_WARNING, "kernel", NULL, 0, "cannot look for work: %s", e.msg);
		return STORE_RETRY_MS;
	}
	wait_ms = begin_all(p, &list, wait_ms);
	if (list.next_due_ms == INT64_MAX)
		return wait_ms;
	until_due_ms = clock_wait_ms(p->kernel->clock, list.next_due_ms - clock_now(p->kernel->clock).ms);
	if (until_due_ms < 0)
		return 0;
	return until_due_ms < wait_ms ? until_due_ms : wait_ms;
}

static void *find_loop(void *arg)
{
	struct pump                     *p = arg;
	CLEANUP(arena_fini) struct arena a = { 0 };
	int64_t                          wait_ms = 0;

	pthread_mutex_lock(&p->lock);
	while (wait_for_reason(p, wait_ms)) {
		pthread_mutex_unlock(&p->lock);
		wait_ms = look(p, &a);
		arena_reset(&a);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* --- start and stop --- */

void pump_poke(void *pump)
{
	struct pump *p = pump;

	if (atomic_exchange(&p->is_poked, true))
		return; /* it has been poked already */
	LOCKED(&p->lock);
	pthread_cond_broadcast(&p->is_changed);
}

static void crew_init(struct crew *c, struct pump *p, size_t most)
{
	c->pump = p;
	c->threads = mem_new_array(pthread_t, most);
	c->by_queue = mem_new_array(unsigned, p->kernel->queue_count + 1);
	inbox_init(&c->calls);
}

static void crew_fini(struct crew *c)
{
	inbox_close(&c->calls);
	for (unsigned i = 0; i < c->started; i++)
		pthread_join(c->threads[i], NULL);
	inbox_fini(&c->calls);
	free(c->threads);
	free(c->by_queue);
}

struct pump *pump_start(const struct pump_options *o)
{
	struct pump *p = mem_new(struct pump);
	size_t       addressees = 0;

	p->options = *o;
	p->kernel = kernel_options(o->kernel);
	for (size_t i = 0; i < p->kernel->queue_count; i++)
		addressees += p->kernel->queues[i].addressees;
	crew_init(&p->crews[SHARED], p, o->workers);
	crew_init(&p->crews[OWN], p, addressees + 1);
	cond_init(&p->is_changed);
	pthread_mutex_init(&p->lock, NULL);
	mem_must(pthread_create(&p->finder, NULL, find_loop, p) == 0, "a thread");
	for (unsigned i = 0; i < o->workers; i++)
		start_worker(&p->crews[SHARED]);
	return p;
}

void pump_stop(struct pump *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->is_stopping = true;
	pthread_cond_broadcast(&p->is_changed);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->finder, NULL);
	pthread_mutex_lock(&p->lock);
	while (p->alone + p->crews[SHARED].called + p->crews[OWN].called)
		pthread_cond_wait(&p->is_changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
	crew_fini(&p->crews[SHARED]);
	crew_fini(&p->crews[OWN]);
	while (p->resting) {
		struct item *item = p->resting;

		p->resting = item->next_resting;
		free_item(item);
	}
	while (p->spare)
		free_item(take_spare(p));
	pthread_cond_destroy(&p->is_changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
