/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_bench.c - the kernel on the embedded store, durable, beside bare SQLite.
 *
 *   kernel_bench events FOLDER COUNT EMITTERS   so many events, one subscriber each, emitted by so many at once, until the last one is
 *                                               delivered; then as many bare inserts of the same bytes, as many in a
 *                                               commit
 *   kernel_bench timers FOLDER COUNT            arm so many timers; then how long a kernel takes from opening the store to having looked
 *                                               for what is due, and its memory
 *
 * The kernel is set up as the server's is on the embedded store. The event is that of a claim, but in the index by
 * subject: there is no record that leads to it.
 *
 * Prints one JSON object.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/pump.h"
#include "kernel/timer.h"
#include "kernel/work.h"
#include "service/services.h"
#include "service/broker/sandbox_events.h"
#include "store/session.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

enum { TIMERS_PER_TXN = 90, WORKERS = 2 };

static const char detail[] =
        "{\"sandboxId\":\"2af1c8e0-7f2a-4f0e-9a43-0a6f5d1f4c11\",\"name\":\"sandbox-000123\",\"externalId\":"
        "\"identity/accounts/2af1c8e0\",\"track\":\"student-000123\",\"expiresAt\":1763240000}";

static void must(enum rc rc, const struct err *e)
{
	if (!rc)
		return;
	fprintf(stderr, "kernel_bench: %s\n", e->msg);
	exit(1);
}

static uint64_t draw(void *arg)
{
	(void)arg;
	return id_fast_random();
}

/* --- events --- */

struct bench {
	struct store         *store;
	struct kernel        *kernel;
	struct pump          *pump;
	atomic_int_fast64_t   next, emitted; /* begun; durable */
	int64_t               count;
	pthread_mutex_t       lock;
	pthread_cond_t        is_over;
	struct queue          queue;
	struct kernel_options options;
};

struct emitter {
	struct bench *bench;
	struct txn    txn;
	struct arena  arena;
	int64_t       number;
};

/* The bare inserts format nothing either. */
static void put_number(char *end, int64_t number)
{
	for (; number; number /= 10)
		*--end = (char)('0' + number % 10);
}

static enum rc emit(struct session *s, void *arg, struct err *e)
{
	struct emitter *m = arg;
	char            subject[] = "sandbox/000000000000";
	struct event event = { .type = STR("SandboxAllocated"), .actor = STR("track/student"), .detail = STR(detail) };

	put_number(subject + sizeof(subject) - 1, m->number);
	event.subject = str_dup(session_arena(s), str_of(subject, sizeof(subject) - 1));
	return session_emit(s, &event, e);
}

static enum rc take(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	(void)s;
	(void)d;
	(void)arg;
	(void)e;
	return RC_OK;
}

static void emit_next(struct emitter *m);

static void on_emitted(struct txn *t, enum rc rc, const struct err *e)
{
	struct emitter *m = CONTAINER_OF(t, struct emitter, txn);

	must(rc, e);
	emit_next(m);
	atomic_fetch_add(&m->bench->emitted, 1); /* when all are, no emitter is in use */
}

static void emit_next(struct emitter *m)
{
	m->number = atomic_fetch_add(&m->bench->next, 1);
	if (m->number >= m->bench->count)
		return;
	arena_reset(&m->arena);
	m->txn = (struct txn){ .run = emit, .arg = m, .arena = &m->arena, .done = on_emitted };
	store_submit(m->bench->store, &m->txn);
}

static void poke(void *arg)
{
	pump_poke(((struct bench *)arg)->pump);
}

static void open_bench(struct bench *b, const char *folder, const struct route *routes, size_t route_count)
{
	struct err e = { 0 };
	char       path[4096];

	(void)snprintf(path, sizeof(path), "%s/kernel.db", folder);
	must(store_sqlite_open(&(struct sqlite_options){ path, service_types, service_type_count, &clock_real, 0 },
	                       &b->store, &e),
	     &e);
	b->queue = (struct queue){ .name = "bench", .handle = take };
	b->options = (struct kernel_options){ .store = b->store,
		                              .clock = &clock_real,
		                              .node = STR("bench"),
		                              .routine = STR(SANDBOX_ROUTINE_EVENTS),
		                              .queues = &b->queue,
		                              .queue_count = 1,
		                              .routes = routes,
		                              .route_count = route_count,
		                              .is_eager = true,
		                              .timers_per_sec = 1000,
		                              .lease_ms = 30000,
		                              .random = draw };
	b->kernel = kernel_new(&b->options);
}

struct left {
	int64_t lanes;
};

static enum rc count_lanes(struct session *s, void *arg, struct err *e)
{
	struct left *left = arg;

	return session_count(s, &lane_type, QUERY_ALL, value_int(0), &left->lanes, e);
}

/* All emitted, and no lane left. */
static void wait_for_last(struct bench *b)
{
	struct left     left = { 1 };
	struct err      e = { 0 };
	struct timespec moment = { .tv_nsec = 500000 };

	while (left.lanes) {
		struct arena a = { 0 };

		nanosleep(&moment, NULL);
		if (atomic_load(&b->emitted) == b->count)
			must(store_read(b->store, count_lanes, &left, &a, &e), &e);
		arena_fini(&a);
	}
}

/* Of all threads. On a busy machine it says more than the time that has passed. */
static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double run_events(struct bench *b, int emitters, double *ret_group)
{
	struct emitter     *m = mem_new_array(struct emitter, (size_t)emitters);
	struct store_counts before = store_counts(b->store), after;
	int64_t             begun;

	kernel_on_news(b->kernel, poke, b);
	b->pump = pump_start(&(struct pump_options){ b->kernel, WORKERS, 1000 });
	begun = mono_ns();
	for (int i = 0; i < emitters; i++) {
		m[i].bench = b;
		emit_next(&m[i]);
	}
	wait_for_last(b);
	begun = mono_ns() - begun;
	after = store_counts(b->store);
	*ret_group = (double)b->count / (double)(after.commits - before.commits);
	pump_stop(b->pump);
	for (int i = 0; i < emitters; i++)
		arena_fini(&m[i].arena);
	free(m);
	return (double)begun / 1e9;
}

static void must_sql(sqlite3 *db, int got, int wanted)
{
	if (got == wanted)
		return;
	fprintf(stderr, "kernel_bench: %s\n", sqlite3_errmsg(db));
	exit(1);
}

/* The same number of rows of the same bytes: one insert each, nothing else. */
static double run_bare(struct kernel *k, const char *folder, int64_t count, int64_t group)
{
	sqlite3      *db;
	sqlite3_stmt *insert;
	char          path[4096], id[KERNEL_ID_SIZE];
	int64_t       begun;

	(void)snprintf(path, sizeof(path), "%s/bare.db", folder);
	must_sql(NULL, sqlite3_open(path, &db), SQLITE_OK);
	must_sql(db,
	         sqlite3_exec(
	                 db,
	                 "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -8192;"
	                 "CREATE TABLE bare (id TEXT PRIMARY KEY, type TEXT, subject TEXT, actor TEXT, detail TEXT)",
	                 NULL, NULL, NULL),
	         SQLITE_OK);
	must_sql(db,
	         sqlite3_prepare_v2(db, "INSERT INTO bare VALUES (?1, 'SandboxAllocated', ?2, 'track/student', ?3)", -1,
	                            &insert, NULL),
	         SQLITE_OK);
	begun = mono_ns();
	for (int64_t i = 0; i < count; i++) {
		if (i % group == 0)
			must_sql(db, sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
		kernel_id(k, i, id); /* ids in order, as ours */
		sqlite3_bind_text(insert, 1, id, -1, SQLITE_STATIC);
		sqlite3_bind_text(insert, 2, id, -1, SQLITE_STATIC);
		sqlite3_bind_text(insert, 3, detail, -1, SQLITE_STATIC);
		must_sql(db, sqlite3_step(insert), SQLITE_DONE);
		sqlite3_reset(insert);
		if (i % group == group - 1 || i == count - 1)
			must_sql(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	}
	begun = mono_ns() - begun;
	sqlite3_finalize(insert);
	sqlite3_close(db);
	return (double)begun / 1e9;
}

static void bench_events(const char *folder, int64_t count, int emitters)
{
	static const struct route routes[] = { { "*", "bench" } };
	struct bench              b = { .count = count };
	double                    ours, bare, group, begun, ours_cpu, bare_cpu;

	open_bench(&b, folder, routes, 1);
	begun = cpu_seconds();
	ours = run_events(&b, emitters, &group);
	ours_cpu = cpu_seconds() - begun;
	store_close(b.store);
	begun = cpu_seconds();
	bare = run_bare(b.kernel, folder, count, group < 1 ? 1 : (int64_t)(group + 0.5));
	bare_cpu = cpu_seconds() - begun;
	kernel_free(b.kernel);
	printf("{\"events\": %lld, \"emitters\": %d, \"group\": %.1f, \"events_per_sec\": %.0f, \"bare_inserts_per_sec\": %.0f, "
	       "\"ratio\": %.3f, \"cpu_us\": %.1f, \"bare_cpu_us\": %.1f}\n",
	       (long long)count, emitters, group, (double)count / ours, (double)count / bare, bare / ours,
	       ours_cpu / (double)count * 1e6, bare_cpu / (double)count * 1e6);
}

/* --- timers --- */

static enum rc arm_some(struct session *s, void *arg, struct err *e)
{
	int64_t *first = arg;

	for (int64_t i = *first; i < *first + TIMERS_PER_TXN; i++) {
		struct timer timer = { .name = str_format(session_arena(s), "lease-expiry/%08lld", (long long)i),
			               .type = STR("LeaseExpired"),
			               .subject = str_format(session_arena(s), "lease/%08lld", (long long)i),
			               .due_ms = session_now(s).ms + 86400000 + i * 7919 % 86400000 };
		enum rc      rc = session_arm(s, &timer, e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

static long resident_kb(void)
{
	char  line[256];
	long  kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static void bench_timers(const char *folder, int64_t count)
{
	struct bench     b = { 0 };
	struct arena     a = { 0 };
	struct work_list list;
	struct err       e = { 0 };
	int64_t          begun = mono_ns(), armed, start, look;
	long             before_kb;

	open_bench(&b, folder, NULL, 0);
	for (int64_t i = 0; i < count; i += TIMERS_PER_TXN) {
		must(store_run(b.store, arm_some, &i, &a, &e), &e);
		arena_reset(&a);
	}
	armed = mono_ns() - begun;
	store_close(b.store);
	kernel_free(b.kernel);
	before_kb = resident_kb();
	begun = mono_ns();
	open_bench(&b, folder, NULL, 0);
	must(kernel_prime(b.kernel, &e), &e);
	must(work_find(b.kernel, 256, (struct work_skips){ 0 }, &a, &list, &e), &e);
	start = mono_ns() - begun;
	begun = mono_ns();
	for (int i = 0; i < 1000; i++) {
		arena_reset(&a);
		must(work_find(b.kernel, 256, (struct work_skips){ 0 }, &a, &list, &e), &e);
	}
	look = mono_ns() - begun;
	printf("{\"timers\": %lld, \"arm_seconds\": %.2f, \"start_ms\": %.2f, \"look_us\": %.1f, \"due\": %zu, \"memory_grown_kb\": %ld}\n",
	       (long long)count, (double)armed / 1e9, (double)start / 1e6, (double)look / 1e6, list.count,
	       resident_kb() - before_kb);
	store_close(b.store);
	kernel_free(b.kernel);
	arena_fini(&a);
}

int main(int argc, char **argv)
{
	int64_t count = 0, emitters = 1;

	if (argc < 4 || !str_to_int(str_from(argv[3]), 1, 100000000, &count) ||
	    (argc > 4 && !str_to_int(str_from(argv[4]), 1, 100000, &emitters))) {
		fprintf(stderr, "usage: kernel_bench events FOLDER COUNT EMITTERS | timers FOLDER COUNT\n");
		return 2;
	}
	if (strcmp(argv[1], "events") == 0)
		bench_events(argv[2], count, (int)emitters);
	else
		bench_timers(argv[2], count);
	return 0;
}
