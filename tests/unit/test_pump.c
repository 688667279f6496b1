/* SPDX-License-Identifier: Apache-2.0 */
/* test_pump.c - the threads that do the kernel's work: what they do while they cannot. Handlers and calls stop at a
 * gate that the test opens. */
#include "test.h"

#include <pthread.h>
#include <sqlite3.h>
#include <time.h>

#include "base/log.h"
#include "kernel/event.h"
#include "kernel/pump.h"
#include "pool.h"
#include "store/session.h"

enum { DEADLINE_SEC = 30, MANY = 100, WINDOW_MS = 300 };

struct works {
	struct pool     pool;
	struct pump    *pump;
	pthread_mutex_t lock;
	pthread_cond_t  is_changed;
	bool            is_shut;
	int             at_gate, done;
};

static void stop_at_gate(struct works *w)
{
	pthread_mutex_lock(&w->lock);
	w->at_gate++;
	pthread_cond_broadcast(&w->is_changed);
	while (w->is_shut)
		pthread_cond_wait(&w->is_changed, &w->lock);
	w->done++;
	pthread_cond_broadcast(&w->is_changed);
	pthread_mutex_unlock(&w->lock);
}

static enum rc handle(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	(void)s, (void)d, (void)e;
	stop_at_gate(arg);
	return RC_OK;
}

static enum rc call(struct call *c, struct err *e)
{
	(void)e;
	stop_at_gate(c->arg);
	return RC_OK;
}

/* Only who is called "down", or "down2" and so on, lets one wait. */
static enum rc call_target(struct call *c, struct err *e)
{
	struct works *w = c->arg;

	if (str_starts_with(c->delivery->target, STR("down")))
		return call(c, e);
	pthread_mutex_lock(&w->lock);
	w->done++;
	pthread_cond_broadcast(&w->is_changed);
	pthread_mutex_unlock(&w->lock);
	return RC_OK;
}

static void wait_for(struct works *w, const int *what, int least)
{
	struct timespec until;
	int             late = 0, seen;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_SEC;
	pthread_mutex_lock(&w->lock);
	while (*what < least && !late)
		late = pthread_cond_timedwait(&w->is_changed, &w->lock, &until);
	seen = *what;
	pthread_mutex_unlock(&w->lock);
	CHECK(seen >= least);
}

static void open_gate(struct works *w)
{
	pthread_mutex_lock(&w->lock);
	w->is_shut = false;
	pthread_cond_broadcast(&w->is_changed);
	pthread_mutex_unlock(&w->lock);
}

static void poke(void *arg)
{
	pump_poke(arg);
}

static void works_open(struct works *w)
{
	static const struct route routes[] = {
		{ "Inside", "inside" }, { "Outside", "outside" }, { "-", "targets" }, { "-", "own" }
	};
	struct queue queues[] = { { .name = "inside", .handle = handle, .arg = w },
		                  { .name = "outside", .call = call, .arg = w, .concurrency = 1 },
		                  { .name = "targets", .call = call_target, .arg = w },
		                  { .name = "own", .call = call_target, .arg = w, .addressees = 8 } };

	*w = (struct works){ .is_shut = true };
	log_setup(LOG_ERROR, LOG_TEXT); /* the store fails here on purpose */
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->is_changed, NULL);
	pool_open_sqlite(&w->pool);
	pool_route(&w->pool, queues, ARRAY_LEN(queues), routes, ARRAY_LEN(routes));
}

static void works_start(struct works *w)
{
	w->pump = pump_start(&(struct pump_options){ w->pool.kernel, 8, 1000 });
	kernel_on_news(w->pool.kernel, poke, w->pump);
}

static void works_close(struct works *w)
{
	open_gate(w);
	kernel_on_news(w->pool.kernel, NULL, NULL);
	pump_stop(w->pump);
	pool_close(&w->pool);
	pthread_cond_destroy(&w->is_changed);
	pthread_mutex_destroy(&w->lock);
}

struct emission {
	const char *type;
	int         number;
};

static enum rc emit(struct session *s, void *arg, struct err *e)
{
	const struct emission *m = arg;
	struct event           event = { .type = str_from(m->type),
		                         .subject = str_format(session_arena(s), "thing/%d", m->number) };

	return session_emit(s, &event, e);
}

static void emit_many(struct works *w, const char *type, int count)
{
	for (int i = 0; i < count; i++)
		CHECK(store_run(w->pool.store, emit, &(struct emission){ type, i }, &w->pool.arena, NULL) == RC_OK);
}

/* Nothing is expected to happen in this time. */
static void let_time_pass(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = WINDOW_MS * 1000000l }, NULL);
}

static int64_t used_cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

TEST(what_finds_no_room_is_not_looked_for_all_the_time)
{
	struct works w;
	int          before;

	works_open(&w);
	emit_many(&w, "Outside", 3);
	works_start(&w);
	wait_for(&w, &w.at_gate, 1);
	before = atomic_load(&w.pool.plan.reads);
	let_time_pass();
	CHECK(atomic_load(&w.pool.plan.reads) - before <= 5);
	open_gate(&w);
	wait_for(&w, &w.done, 3);
	works_close(&w);
}

TEST(waiting_for_a_store_that_hangs_costs_nothing)
{
	struct works w;
	int64_t      before;

	works_open(&w);
	emit_many(&w, "Inside", MANY);
	works_start(&w);
	wait_for(&w, &w.at_gate, 1);
	before = used_cpu_ms();
	let_time_pass();
	CHECK(used_cpu_ms() - before < WINDOW_MS / 2);
	open_gate(&w);
	wait_for(&w, &w.done, MANY);
	works_close(&w);
}

/* Tries until the store has refused this many, and how long that took. */
static int64_t time_of_faults(struct works *w, int count)
{
	int64_t began_ms = mono_now().ms;

	while (atomic_load(&w->pool.plan.injected) < count) {
		CHECK(mono_now().ms - began_ms < DEADLINE_SEC * 1000);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return mono_now().ms - began_ms;
}

static void check_patience(const char *type)
{
	struct works w;

	works_open(&w);
	open_gate(&w);
	emit_many(&w, type, 1);
	atomic_store(&w.pool.plan.next, FAULT_BEFORE);
	atomic_store(&w.pool.plan.count, 3);
	works_start(&w);
	CHECK(time_of_faults(&w, 3) >= 1900);
	wait_for(&w, &w.done, 1);
	works_close(&w);
}

TEST(what_the_store_refuses_is_tried_again_after_a_while)
{
	check_patience("Inside");
	check_patience("Outside");
}

TEST(a_damaged_record_at_the_front_holds_up_nobody)
{
	struct works w;
	sqlite3     *db = NULL;

	works_open(&w);
	open_gate(&w);
	emit_many(&w, "Inside", 3);
	CHECK(sqlite3_open(str_format(&w.pool.arena, "%s/store.db", w.pool.folder).p, &db) == SQLITE_OK);
	CHECK(sqlite3_exec(db, "UPDATE lane SET event_id = '' WHERE subject < 'thing/2'", NULL, NULL, NULL) ==
	      SQLITE_OK);
	CHECK(sqlite3_changes(db) == 2);
	CHECK(sqlite3_close(db) == SQLITE_OK);
	pool_reopen(&w.pool);
	works_start(&w);
	wait_for(&w, &w.done, 1);
	works_close(&w);
}

struct letter {
	const char *target;
	int         number;
	const char *queue; /* NULL: targets */
};

static enum rc send(struct session *s, void *arg, struct err *e)
{
	const struct letter *l = arg;
	struct event event = { .type = STR("Letter"), .subject = str_format(session_arena(s), "letter/%d", l->number) };
	enum rc      rc = session_emit(s, &event, e);

	return rc ? rc
	          : queue_put(s, kernel_queue(kernel_of(s), str_from(l->queue ? l->queue : "targets")), &event,
	                      str_from(l->target), e);
}

TEST(an_addressee_that_does_not_answer_holds_up_no_other)
{
	struct works w;

	works_open(&w);
	for (int i = 0; i < 11; i++)
		CHECK(store_run(w.pool.store, send, &(struct letter){ i < 10 ? "down" : "well", i }, &w.pool.arena,
		                NULL) == RC_OK);
	works_start(&w);
	wait_for(&w, &w.done, 1); /* with the gate still shut */
	open_gate(&w);
	wait_for(&w, &w.done, 11);
	works_close(&w);
}

static void send_to(struct works *w, const char *queue, const char *target, int count)
{
	for (int i = 0; i < count; i++)
		CHECK(store_run(w->pool.store, send, &(struct letter){ target, i, queue }, &w->pool.arena, NULL) ==
		      RC_OK);
}

TEST(what_waits_for_an_addressee_that_does_not_answer_hides_nobody_elses)
{
	struct works w;

	works_open(&w);
	send_to(&w, "targets", "down", 300); /* more than one look finds */
	send_to(&w, "targets", "well", 1);
	works_start(&w);
	wait_for(&w, &w.done, 1); /* with the gate still shut */
	works_close(&w);
}

TEST(several_addressees_that_do_not_answer_hold_up_no_other)
{
	static const char *const down[] = { "down", "down2", "down3", "down4", "down5" };
	struct works             w;

	works_open(&w);
	for (size_t i = 0; i < ARRAY_LEN(down); i++)
		send_to(&w, "own", down[i], 60);
	send_to(&w, "own", "well", 1);
	works_start(&w);
	wait_for(&w, &w.done, 1); /* with the gate still shut */
	wait_for(&w, &w.at_gate, ARRAY_LEN(down));
	works_close(&w);
}
