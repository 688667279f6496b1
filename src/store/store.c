/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - what all back ends share: waiting for a transaction, health, figures. */
#include "store/store.h"

#include <assert.h>

#include "base/arena.h"
#include "base/lock.h"
#include "base/trace.h"
#include "store/store_ops.h"

enum { STUCK_MS = 2000 };

void store_init(struct store *s, const struct store_ops *ops, const struct clock *clock)
{
	s->ops = ops;
	s->clock = clock;
	pthread_mutex_init(&s->health_lock, NULL);
}

void store_fini(struct store *s)
{
	pthread_mutex_destroy(&s->health_lock);
}

void store_turn_nothing(struct store *s)
{
	(void)s;
}

void store_submit_all(struct store *s, struct txn *const *txns, size_t count)
{
	struct mono now = mono_now();

	for (size_t i = 0; i < count; i++) {
		struct txn *t = txns[i];

		assert(t->run && (t->done || t->group) && t->arena);
		t->rc = RC_OK;
		t->news = 0;
		t->follows = NULL;
		t->submitted = now;
		err_clear(&t->e);
	}
	s->ops->submit(s, txns, count);
}

void store_submit(struct store *s, struct txn *t)
{
	store_submit_all(s, &t, 1);
}

void store_set_context(struct store *s, void *context, void (*on_news)(void *context, unsigned news))
{
	s->context = context;
	s->on_news = on_news;
}

/* What the end of a transaction means to others than its caller. Returns its news. */
static unsigned note_end(struct store *s, const struct txn *t, struct mono now)
{
	int64_t took_ms = now.ms - t->submitted.ms;

	if (!t->is_read_only && took_ms > atomic_load(&s->slowest_ms))
		atomic_store(&s->slowest_ms, took_ms); /* two at once: one of them is enough */
	for (const struct follow *f = t->rc ? NULL : t->follows; f; f = f->next)
		if (f->is_kept && f->done)
			f->done(f->arg);
	return t->rc ? 0 : t->news;
}

void store_tell(struct store *s, struct txn *const *txns, size_t count)
{
	struct mono now = mono_now();
	unsigned    news = 0;
	size_t      next;

	for (size_t i = 0; i < count; i = next) {
		struct txn_group *group = txns[i]->group;

		for (next = i; next < count && (next == i || (group && txns[next]->group == group)); next++)
			news |= note_end(s, txns[next], now);
		if (group) /* the transactions are gone from here on */
			group->done(group, &txns[i], next - i);
		else
			txns[i]->done(txns[i], txns[i]->rc, &txns[i]->e);
	}
	if (news && s->on_news)
		s->on_news(s->context, news);
}

/* A transaction that somebody waits for. */
struct awaited {
	struct txn      txn;
	pthread_mutex_t lock;
	pthread_cond_t  is_over;
	bool            is_done;
	struct err     *e;
};

static void wake_waiter(struct txn *t, enum rc rc, const struct err *e)
{
	struct awaited *w = CONTAINER_OF(t, struct awaited, txn);

	LOCKED(&w->lock);
	if (rc && w->e)
		*w->e = *e;
	w->is_done = true;
	pthread_cond_signal(&w->is_over);
}

static enum rc run_and_wait(struct store *s, struct txn txn, struct err *e)
{
	struct awaited                   w = { .txn = txn, .e = e };
	CLEANUP(arena_fini) struct arena own = { 0 };

	if (!txn.arena)
		w.txn.arena = &own;
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.is_over, NULL);
	w.txn.done = wake_waiter;
	w.txn.trace = trace_current();
	store_submit(s, &w.txn);
	s->ops->turn(s);
	pthread_mutex_lock(&w.lock);
	while (!w.is_done)
		pthread_cond_wait(&w.is_over, &w.lock);
	pthread_mutex_unlock(&w.lock);
	pthread_cond_destroy(&w.is_over);
	pthread_mutex_destroy(&w.lock);
	return w.txn.rc;
}

enum rc store_run(struct store *s, txn_fn *run, void *arg, struct arena *a, struct err *e)
{
	return run_and_wait(s, (struct txn){ .run = run, .arg = arg, .arena = a }, e);
}

enum rc store_read(struct store *s, txn_fn *run, void *arg, struct arena *a, struct err *e)
{
	return run_and_wait(s, (struct txn){ .run = run, .arg = arg, .arena = a, .is_read_only = true }, e);
}

void store_note_commit(struct store *s, enum rc rc, const struct err *e, uint64_t transactions, bool has_written)
{
	atomic_fetch_add(&s->commits, 1);
	atomic_fetch_add(&s->transactions, transactions);
	if (rc)
		atomic_fetch_add(&s->failed_commits, 1);
	if (!rc && !has_written)
		return;
	LOCKED(&s->health_lock);
	if (rc)
		s->health = s->failure = *e;
	else
		err_clear(&s->health);
}

bool store_is_stuck(struct store *s)
{
	int64_t since = atomic_load(&s->busy_since_ms);

	return since && mono_now().ms - since > STUCK_MS;
}

enum rc store_health(struct store *s, struct err *e)
{
	struct err health;

	if (store_is_stuck(s))
		return err_set(e, RC_UNAVAILABLE, "a commit has been under way for more than %d s: the disk hangs",
		               STUCK_MS / 1000);

	pthread_mutex_lock(&s->health_lock);
	health = s->health;
	pthread_mutex_unlock(&s->health_lock);
	if (health.rc && e)
		*e = health;
	return health.rc;
}

enum rc store_last_failure(struct store *s, struct err *e)
{
	LOCKED(&s->health_lock);
	*e = s->failure;
	return e->rc;
}

struct store_counts store_counts(struct store *s)
{
	return (struct store_counts){ s->commits, s->failed_commits, s->transactions, s->conflicts, s->checkpoints };
}

int64_t store_take_slowest_ms(struct store *s)
{
	return atomic_exchange(&s->slowest_ms, 0);
}

void store_close(struct store *s)
{
	if (s)
		s->ops->close(s);
}
