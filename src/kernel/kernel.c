/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - what the parts of the kernel share.
 *
 * Ids are UUIDs of version 7: 48 bits of time, a counter for ids of the same millisecond, chance for the rest. Within
 * one process they only grow, also when the clock is set back; so on a store with one writer the order of ids is the
 * order of commits.
 */
#include "kernel/kernel.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/id.h"
#include "base/lock.h"
#include "base/mem.h"
#include "kernel/defect.h"
#include "kernel/kernel_private.h"
#include "kernel/queue.h"
#include "kernel/records.h"
#include "kernel/saga.h"
#include "store/session.h"
#include "store/store.h"
#include "store/walk.h"

enum { COUNTER_MAX = 0xfff, RECOVER_PAGE = 90 };

/* What a list of patterns says, see kernel_matches(); every event is held against all of them. */
struct patterns {
	struct pattern {
		struct str text; /* without its '*' */
		bool       is_prefix;
	} * all;
	size_t count;
};

struct kernel {
	struct kernel_options options;
	struct patterns       routine;
	struct patterns      *routes; /* of each row of the table */
	pthread_mutex_t       lock;   /* of the ids, the random numbers and the timers' allowance */
	int64_t               last_ms;
	unsigned              counter;
	int64_t               window_ms; /* the second in which timers fire now */
	int64_t               fired;     /* in it */
	atomic_bool           has_webhooks;
	pthread_mutex_t       news_lock; /* held while it is told, so that nobody is told after he asked not to be */
	struct listener {
		void (*tell)(void *arg);
		void *arg;
	} on_news, on_events;
};

static void tell_news(void *context, unsigned news)
{
	struct kernel *k = context;

	LOCKED(&k->news_lock);
	if (k->on_news.tell && (news & NEWS_TO_DO))
		k->on_news.tell(k->on_news.arg);
	if (k->on_events.tell && (news & NEWS_TO_SEE))
		k->on_events.tell(k->on_events.arg);
}

/* --- patterns --- */

static struct pattern cut_pattern(struct str *rest)
{
	struct str text = str_trim(str_cut(rest, ','));
	bool       is_prefix = str_ends_with(text, STR("*"));

	return (struct pattern){ str_of(text.p, text.n - is_prefix), is_prefix };
}

static bool pattern_matches(const struct pattern *p, struct str type)
{
	if (p->text.n && type.n && p->text.p[0] != type.p[0])
		return false; /* most differ in the first letter */
	return p->is_prefix ? str_starts_with(type, p->text) : str_eq(p->text, type);
}

static struct patterns read_patterns(struct str text)
{
	struct patterns p = { .count = text.n > 0 };

	for (size_t i = 0; i < text.n; i++)
		p.count += text.p[i] == ',';
	p.all = mem_new_array(struct pattern, p.count);
	for (size_t i = 0; i < p.count; i++)
		p.all[i] = cut_pattern(&text);
	return p;
}

static bool patterns_match(const struct patterns *p, struct str type)
{
	for (size_t i = 0; i < p->count; i++)
		if (pattern_matches(&p->all[i], type))
			return true;
	return false;
}

void kernel_read_routes(struct kernel *k)
{
	for (size_t i = 0; i < k->options.route_count; i++) {
		free(k->routes[i].all);
		k->routes[i] = read_patterns(str_from(k->options.routes[i].pattern));
	}
}

bool kernel_is_routine(const struct kernel *k, struct str type)
{
	return patterns_match(&k->routine, type);
}

bool kernel_route_matches(const struct kernel *k, size_t row, struct str type)
{
	return patterns_match(&k->routes[row], type);
}

bool kernel_matches(struct str patterns, struct str type)
{
	while (patterns.n) {
		struct pattern pattern = cut_pattern(&patterns);

		if (pattern_matches(&pattern, type))
			return true;
	}
	return false;
}

/* --- life --- */

struct kernel *kernel_new(const struct kernel_options *o)
{
	struct kernel *k = mem_new(struct kernel);

	k->options = *o;
	k->routine = read_patterns(o->routine);
	k->routes = mem_new_array(struct patterns, o->route_count);
	kernel_read_routes(k);
	pthread_mutex_init(&k->lock, NULL);
	pthread_mutex_init(&k->news_lock, NULL);
	store_set_context(o->store, k, tell_news);
	return k;
}

void kernel_free(struct kernel *k)
{
	if (!k)
		return;
#ifdef LEASEHOLD_DEFECTS
	defect_forget(k);
#endif
	pthread_mutex_destroy(&k->news_lock);
	pthread_mutex_destroy(&k->lock);
	for (size_t i = 0; i < k->options.route_count; i++)
		free(k->routes[i].all);
	free(k->routes);
	free(k->routine.all);
	free(k);
}

const struct kernel_options *kernel_options(const struct kernel *k)
{
	return &k->options;
}

struct kernel *kernel_of(const struct session *s)
{
	return session_context(s);
}

void kernel_on_news(struct kernel *k, void (*on_news)(void *arg), void *arg)
{
	LOCKED(&k->news_lock);
	k->on_news = (struct listener){ on_news, arg };
}

void kernel_on_events(struct kernel *k, void (*on_events)(void *arg), void *arg)
{
	LOCKED(&k->news_lock);
	k->on_events = (struct listener){ on_events, arg };
}

const struct queue *kernel_queue(const struct kernel *k, struct str name)
{
	for (size_t i = 0; i < k->options.queue_count; i++)
		if (str_eq(name, str_from(k->options.queues[i].name)))
			return &k->options.queues[i];
	return NULL;
}

const struct saga_kind *kernel_saga(const struct kernel *k, struct str name)
{
	for (size_t i = 0; i < k->options.saga_count; i++)
		if (str_eq(name, str_from(k->options.sagas[i]->name)))
			return k->options.sagas[i];
	return NULL;
}

const void *kernel_hook(const struct kernel *k, const char *name)
{
	for (size_t i = 0; i < k->options.hook_count; i++)
		if (strcmp(k->options.hooks[i].name, name) == 0)
			return k->options.hooks[i].functions;
	assert(!"a hook that nobody registered");
	abort();
}

/* --- ids --- */

uint64_t kernel_random(struct kernel *k)
{
	LOCKED(&k->lock);
	return k->options.random(k->options.random_arg);
}

static void write_id(uint64_t ms, unsigned counter, uint64_t random, char ret[KERNEL_ID_SIZE])
{
	id_put_uuid(ms << 16 | 0x7000 | counter, id_uuid_half(random), ret);
}

/* False when it is no id of ours. */
static bool read_id(struct str id, int64_t *ret_ms, unsigned *ret_counter)
{
	unsigned long long high, low, counter;

	if (id.n != KERNEL_ID_SIZE - 1 || sscanf(id.p, "%8llx-%4llx-7%3llx", &high, &low, &counter) != 3)
		return false;
	*ret_ms = (int64_t)(high << 16 | low);
	*ret_counter = (unsigned)counter;
	return true;
}

void kernel_id(struct kernel *k, int64_t now_ms, char ret[KERNEL_ID_SIZE])
{
	uint64_t random, ms;
	unsigned counter;

	pthread_mutex_lock(&k->lock);
	if (now_ms > k->last_ms || k->counter == COUNTER_MAX) {
		k->last_ms = now_ms > k->last_ms ? now_ms : k->last_ms + 1;
		k->counter = 0;
	} else {
		k->counter++;
	}
	random = k->options.random(k->options.random_arg);
	ms = (uint64_t)k->last_ms;
	counter = k->counter;
	pthread_mutex_unlock(&k->lock);
	write_id(ms, counter, random, ret);
}

/* The other node's clock is ahead: our own ids do not follow it, only this one does. */
void kernel_id_after(struct kernel *k, int64_t now_ms, struct str previous, char ret[KERNEL_ID_SIZE])
{
	int64_t  ms;
	unsigned counter;

	kernel_id(k, now_ms, ret);
	if (str_cmp(str_of(ret, KERNEL_ID_SIZE - 1), previous) > 0 || !read_id(previous, &ms, &counter))
		return;
	ms += counter == COUNTER_MAX;
	write_id((uint64_t)ms, counter == COUNTER_MAX ? 0 : counter + 1, kernel_random(k), ret);
}

struct str kernel_new_id(struct session *s, struct str previous)
{
	char *id = arena_alloc(session_arena(s), KERNEL_ID_SIZE);

	kernel_id_after(kernel_of(s), session_now(s).ms, previous, id);
	return str_of(id, KERNEL_ID_SIZE - 1);
}

struct str kernel_time_prefix(struct arena *a, int64_t ms)
{
	uint64_t time = ms < 0 ? 0 : (uint64_t)ms;

	return str_format(a, "%08llx-%04llx", (unsigned long long)(time >> 16 & 0xffffffff),
	                  (unsigned long long)(time & 0xffff));
}

static enum rc read_newest(struct session *s, void *arg, struct err *e)
{
	struct records      log = { { .type = &event_type, .index = QUERY_KEYS, .limit = 1, .is_descending = true } };
	enum rc             rc;
	const struct event *newest = session_next(s, &log, &rc, e);

	if (newest)
		*(struct event *)arg = *newest;
	return rc;
}

enum rc kernel_prime(struct kernel *k, struct err *e)
{
	struct arena a = { 0 }; /* of the event's texts */
	struct event newest = { 0 };
	int64_t      ms;
	unsigned     counter;
	enum rc      rc = store_read(k->options.store, read_newest, &newest, &a, e);

	if (!rc && read_id(newest.id, &ms, &counter)) {
		pthread_mutex_lock(&k->lock);
		if (ms >= k->last_ms) {
			k->last_ms = ms;
			k->counter = counter;
		}
		pthread_mutex_unlock(&k->lock);
	}
	arena_fini(&a);
	return rc ? err_wrap(e, rc, "the newest event cannot be read") : RC_OK;
}

/* --- after a crash of the only node --- */

struct claimed {
	const struct record_type *type;
	int                       owner_field, due_field;
};

static enum rc free_page(struct session *s, const struct page *page, void *arg, struct err *e UNUSED)
{
	const struct claimed *c = arg;

	for (size_t i = 0; i < page->count; i++) {
		void *record = page_record(page, c->type, i);

		if (!record_value(c->type, c->owner_field, record).text.n)
			continue;
		record_set(c->type, c->owner_field, record, value_text(STR("")));
		record_set(c->type, c->due_field, record, value_int(session_now(s).ms));
		session_put(s, c->type, record);
	}
	return RC_OK;
}

static enum rc forget_page(struct session *s, const struct page *page, void *arg, struct err *e)
{
	(void)arg, (void)e;
	for (size_t i = 0; i < page->count; i++)
		session_delete(s, &node_type, record_key(&node_type, page_record(page, &node_type, i)));
	return RC_OK;
}

enum rc kernel_recover(struct kernel *k, struct err *e)
{
	struct claimed lanes = { &lane_type, LANE_F_OWNER, LANE_F_DUE };
	struct claimed sagas = { &saga_type, SAGA_F_OWNER, SAGA_F_DUE };
	struct query   q = { .type = &lane_type, .index = QUERY_KEYS, .limit = RECOVER_PAGE };
	enum rc        rc = store_walk(k->options.store, &q, false, free_page, &lanes, e);

	for (int state = 0; state < SAGA_OPEN_STATES && !rc; state++) { /* those that have ended are many */
		q = (struct query)query_of(&saga_type, SAGA_BY_STATE, value_int(state), RECOVER_PAGE);
		rc = store_walk(k->options.store, &q, false, free_page, &sagas, e);
	}
	q = (struct query){ .type = &node_type, .index = QUERY_KEYS, .limit = RECOVER_PAGE };
	if (!rc)
		rc = store_walk(k->options.store, &q, false, forget_page, NULL, e);
	return rc ? err_wrap(e, rc, "what the last process had in hand cannot be freed") : RC_OK;
}

/* --- time and chance --- */

int64_t kernel_span_ms(const struct kernel *k, int64_t machine_ms)
{
	return clock_span_ms(k->options.clock, machine_ms);
}

int64_t kernel_backoff(struct kernel *k, int64_t base_ms, int64_t max_ms, int64_t tries)
{
	int64_t most = base_ms;

	while (tries-- > 0 && most < max_ms)
		most *= 2;
	if (most > max_ms)
		most = max_ms;
	return (int64_t)(kernel_random(k) % (uint64_t)(most + 1));
}

size_t kernel_timer_allowance(struct kernel *k, int64_t now_ms, size_t wanted)
{
	size_t allowed;

	LOCKED(&k->lock);
	if (now_ms - k->window_ms >= kernel_span_ms(k, 1000) || now_ms < k->window_ms) {
		k->window_ms = now_ms;
		k->fired = 0;
	}
	allowed = (size_t)(k->options.timers_per_sec - k->fired);
	if (allowed > wanted)
		allowed = wanted;
	k->fired += (int64_t)allowed;
	return allowed;
}

/* --- routing --- */

void kernel_note_webhooks(struct kernel *k)
{
	atomic_store(&k->has_webhooks, true);
}

bool kernel_has_webhooks(const struct kernel *k)
{
	return atomic_load(&k->has_webhooks);
}
