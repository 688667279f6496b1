/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_bench.c - leases and accounts on the embedded store, durable, in this process: what a page, a pass and a
 * decision cost.
 *
 *   lease_bench fill FOLDER IN_USE SPARE PENDING ENDED [INSTANCES EVENTS]   make a data folder that a server can start on
 *   lease_bench measure FOLDER IN_USE SPARE PENDING ENDED                   the same numbers: measure on it. Changes the folder
 *   lease_bench more FOLDER IN_USE SPARE PENDING ENDED INSTANCES EVENTS     add so many events of the last hour
 *
 * A page is a read transaction; every page of a list is read, to its end. A decision is one transaction until it is
 * durable, one after the other; the sagas that it starts are not run. The monitor asks the simulated cloud, on a store
 * of its own, as in the server. Prints one JSON object; times in ms.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "histogram.h"
#include "kernel/kernel.h"
#include "kernel/saga.h"
#include "lease_fill.h"
#include "providers/sim/cloud.h"
#include "providers/sim/records.h"
#include "service/pool/accounts.h"
#include "service/account/account_follow.h"
#include "service/lease/lease_passes.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"
#include "service/services.h"
#include "store/session.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

enum { DECISIONS_MAX = 500, PATH_SIZE = 4096, COUNTS = 20 };

struct bench {
	struct fill             fill;
	struct cloud            cloud;
	struct kernel          *kernel;
	struct account_world   *world;
	struct saga_kind        follow;
	const struct saga_kind *kinds[1];
	struct queue            queues[2];
	struct policy           policy;
	struct arena            arena;
	bool                    has_printed;
};

static const struct caller manager = { .email = STR_INIT("manager@example.com"), .roles = ROLE_USER | ROLE_MANAGER };

static void must(enum rc rc, const struct err *e)
{
	if (!rc)
		return;
	fprintf(stderr, "lease_bench: %s\n", e->msg);
	exit(1);
}

static uint64_t draw(void *arg)
{
	(void)arg;
	return id_fast_random();
}

/* --- the world --- */

static struct store *open_file(const char *folder, const char *name, const struct record_type *const *types,
                               size_t count)
{
	struct store *store;
	struct err    e = { 0 };
	char          path[PATH_SIZE];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	must(store_sqlite_open(&(struct sqlite_options){ path, types, count, &clock_real, 0 }, &store, &e), &e);
	return store;
}

static void open_kernel(struct bench *b)
{
	static const struct route routes[] = { { LEASES_EVENTS, LEASES_QUEUE }, { LINE_EVENTS, LINE_QUEUE } };

	b->world = account_world_new(&(struct account_world_options){
	        .store = b->fill.store, .cloud = b->cloud, .user_permissions = STR("user") });
	b->follow = account_follow_kind(b->world);
	b->kinds[0] = &b->follow;
	b->queues[0] = leases_queue;
	b->queues[1] = line_queue;
	b->kernel = kernel_new(&(struct kernel_options){ .store = b->fill.store,
	                                                 .clock = &clock_real,
	                                                 .node = STR("bench"),
	                                                 .queues = b->queues,
	                                                 .queue_count = ARRAY_LEN(b->queues),
	                                                 .routes = routes,
	                                                 .route_count = ARRAY_LEN(routes),
	                                                 .sagas = b->kinds,
	                                                 .saga_count = ARRAY_LEN(b->kinds),
	                                                 .hooks = service_hooks,
	                                                 .hook_count = service_hook_count,
	                                                 .lease_ms = 30000,
	                                                 .timers_per_sec = 1000,
	                                                 .random = draw });
}

static void open_bench(struct bench *b, const char *folder)
{
	struct fill *f = &b->fill;
	struct err   e = { 0 };

	f->store = open_file(folder, "leasehold.db", service_types, service_type_count);
	f->sim_store = open_file(folder, "sim.db", sim_types, sim_type_count);
	must(sim_cloud_open(&(struct sim_cloud_options){ .store = f->sim_store,
	                                                 .clock = &clock_real,
	                                                 .random = draw,
	                                                 .accounts = f->in_use + f->spare,
	                                                 .available = f->in_use + f->spare },
	                    &f->cloud, &e),
	     &e);
	b->cloud = sim_cloud_ports(f->cloud);
	policy_defaults(&b->policy);
	open_kernel(b);
}

static void close_bench(struct bench *b)
{
	store_close(b->fill.store);
	kernel_free(b->kernel);
	account_world_free(b->world);
	sim_cloud_close(b->fill.cloud);
	store_close(b->fill.sim_store);
	arena_fini(&b->arena);
}

/* --- fill --- */

/* Approved at once. */
static struct str add_template(struct bench *b, struct arena *a)
{
	struct template_call c = { .by = manager, .policy = &b->policy, .is_new = true, .problems.arena = a };
	struct err           e = { 0 };

	c.fields = (struct lease_template){ .name = STR("Playground"),
		                            .created_by = manager.email,
		                            .max_spend = (int64_t)10 * LEASE_USD,
		                            .duration_ms = (int64_t)24 * LEASE_HOUR_MS };
	must(store_run(b->fill.store, template_put, &c, a, &e), &e);
	return c.template.uuid;
}

static void fill(struct bench *b)
{
	struct err e = { 0 };
	int64_t    begun = mono_ns();
	struct str uuid = add_template(b, &b->arena);

	must(fill_all(&b->fill, &e), &e);
	must(fill_growth(&b->fill, &e), &e);
	printf("{\"seconds\": %.2f, \"template\": \"%.*s\", \"lease\": \"%.*s\"}\n", (double)(mono_ns() - begun) / 1e9,
	       STR_ARG(uuid), STR_ARG(fill_uuid(&b->arena, b->fill.ended)));
}

static void add_more(struct bench *b)
{
	struct err e = { 0 };
	int64_t    begun = mono_ns();

	must(fill_new_events(&b->fill, b->fill.events, &e), &e);
	printf("{\"seconds\": %.2f}\n", (double)(mono_ns() - begun) / 1e9);
}

/* --- time --- */

/* Of all threads: what others do on this machine is not in it. */
static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* How long each of many took, and how much processor time all of them. */
struct stopwatch {
	struct histogram times;
	int64_t          begun, cpu_begun, cpu;
};

static void stopwatch_start(struct stopwatch *w)
{
	w->cpu_begun = cpu_ns();
	w->begun = mono_ns();
}

static void stopwatch_stop(struct stopwatch *w)
{
	histogram_add(&w->times, (uint64_t)(mono_ns() - w->begun));
	w->cpu += cpu_ns() - w->cpu_begun;
}

/* --- pages --- */

static void print_name(struct bench *b, const char *name)
{
	printf("%s\"%s\": ", b->has_printed ? ", " : "{", name);
	b->has_printed = true;
}

static void print_times(struct bench *b, const char *name, const struct stopwatch *w)
{
	const struct histogram *h = &w->times;

	print_name(b, name);
	printf("{\"count\": %llu, \"p50\": %.3f, \"p99\": %.3f, \"max\": %.3f, \"cpu_ms\": %.3f}",
	       (unsigned long long)h->count, (double)histogram_quantile(h, 0.5) / 1e6,
	       (double)histogram_quantile(h, 0.99) / 1e6, (double)h->max / 1e6,
	       h->count ? (double)w->cpu / 1e6 / (double)h->count : 0);
}

/* A list to its end. `cursor` and `page` are members of arg. */
static void walk(struct bench *b, const char *name, txn_fn *list, void *arg, struct str *cursor,
                 const struct page *page)
{
	struct stopwatch w = { 0 };
	struct err       e = { 0 };
	char             kept[CURSOR_MAX];

	do {
		arena_reset(&b->arena);
		stopwatch_start(&w);
		must(store_read(b->fill.store, list, arg, &b->arena, &e), &e);
		stopwatch_stop(&w);
		if (page->next.n)
			memcpy(kept, page->next.p, page->next.n);
		*cursor = str_of(kept, page->next.n);
	} while (cursor->n);
	print_times(b, name, &w);
}

static void walk_leases(struct bench *b, const char *name, struct lease_list list)
{
	walk(b, name, lease_list, &list, &list.cursor, &list.page);
}

static void measure_pages(struct bench *b)
{
	struct account_list accounts = { .limit = QUERY_LIMIT_MAX };

	walk_leases(b, "all leases, pages of 100", (struct lease_list){ .limit = 100 });
	walk_leases(b, "all leases, pages of 1000", (struct lease_list){ .limit = QUERY_LIMIT_MAX });
	walk_leases(b, "Active, pages of 1000",
	            (struct lease_list){ .limit = QUERY_LIMIT_MAX, .has_status = true, .status = LEASE_ACTIVE });
	walk_leases(b, "Expired, pages of 100",
	            (struct lease_list){ .limit = 100, .has_status = true, .status = LEASE_EXPIRED });
	walk_leases(b, "of one owner, pages of 100",
	            (struct lease_list){ .limit = 100, .owner_email = STR(FILL_CLASS) });
	walk(b, "accounts, pages of 1000", account_list, &accounts, &accounts.cursor, &accounts.page);
}

/* --- figures --- */

/* What /metrics and the pool's overview show. */
static void measure_count(struct bench *b, const char *name, txn_fn *count, void *arg)
{
	struct stopwatch w = { 0 };
	struct err       e = { 0 };

	for (int i = 0; i < COUNTS; i++) {
		arena_reset(&b->arena);
		stopwatch_start(&w);
		must(store_read(b->fill.store, count, arg, &b->arena, &e), &e);
		stopwatch_stop(&w);
	}
	print_times(b, name, &w);
}

static void measure_counts(struct bench *b)
{
	int64_t accounts[ACCOUNT_STATUS_COUNT], sagas[SAGA_OPEN_STATES];

	measure_count(b, "accounts, counted", account_counts, accounts);
	measure_count(b, "sagas, counted", saga_count, sagas);
}

/* --- passes --- */

static const struct policy *policy_of(void *arg)
{
	const struct bench *b = arg;

	return &b->policy;
}

static void measure_pass(struct bench *b, const char *name, pass_fn *pass)
{
	struct lease_world world = {
		.cloud = b->cloud, .line_limit_ms = 86400000, .policy = policy_of, .policy_arg = b
	};
	struct pass        p = { .store = b->fill.store, .clock = &clock_real, .leases = &world };
	struct pass_result result = { 0 };
	struct err         e = { 0 };
	int64_t            begun = mono_ns(), cpu = cpu_ns();

	must(pass(&p, &result, &e), &e);
	begun = mono_ns() - begun;
	cpu = cpu_ns() - cpu;
	print_name(b, name);
	printf("{\"ms\": %.1f, \"cpu_ms\": %.1f", (double)begun / 1e6, (double)cpu / 1e6);
	for (int i = 0; i < result.count; i++)
		printf(", \"%s\": %lld", result.counts[i].name, (long long)result.counts[i].value);
	printf("}");
}

static void measure_passes(struct bench *b)
{
	measure_pass(b, "monitor, with alerts", pass_watch_leases);
	measure_pass(b, "monitor, quiet", pass_watch_leases);
	measure_pass(b, "orphans", pass_find_orphans);
	measure_pass(b, "purge", pass_purge_leases);
	measure_pass(b, "line", pass_tend_line);
}

/* --- decisions --- */

static struct lease_call call_for(struct bench *b, int64_t owner, int64_t lease)
{
	return (struct lease_call){ .by = manager,
		                    .policy = &b->policy,
		                    .owner_email = fill_person(&b->arena, owner),
		                    .uuid = fill_uuid(&b->arena, lease) };
}

static void decide(struct bench *b, const char *name, txn_fn *run, int64_t first_lease)
{
	struct stopwatch w = { 0 };
	struct err       e = { 0 };

	for (int64_t i = 0; i < DECISIONS_MAX && i < b->fill.pending; i++) {
		struct lease_call c;

		arena_reset(&b->arena);
		c = call_for(b, i, first_lease + i);
		stopwatch_start(&w);
		must(store_run(b->fill.store, run, &c, &b->arena, &e), &e);
		stopwatch_stop(&w);
	}
	print_times(b, name, &w);
}

static void request(struct bench *b, struct str template_uuid)
{
	struct stopwatch w = { 0 };
	struct err       e = { 0 };

	for (int64_t i = 0; i < DECISIONS_MAX && i < b->fill.spare - b->fill.pending; i++) {
		struct lease_request r = { .by = manager, .policy = &b->policy, .template_uuid = template_uuid };

		arena_reset(&b->arena);
		r.owner_email = str_format(&b->arena, "newcomer-%lld@example.com", (long long)i);
		r.is_assigned = true;
		stopwatch_start(&w);
		must(store_run(b->fill.store, lease_request, &r, &b->arena, &e), &e);
		stopwatch_stop(&w);
	}
	print_times(b, "request, approved at once", &w);
}

static void measure_decisions(struct bench *b)
{
	struct arena a = { 0 };

	request(b, add_template(b, &a));
	decide(b, "approve", lease_approve, b->fill.ended + b->fill.in_use);
	decide(b, "terminate", lease_terminate, b->fill.ended);
	arena_fini(&a);
}

static bool read_number(const char *text, int64_t *ret)
{
	return str_to_int(str_from(text), 0, 100000000, ret);
}

/* False: the last ones may be left out together, the others not. */
static bool read_numbers(int argc, char **argv, struct fill *f)
{
	int64_t *const numbers[] = { &f->in_use, &f->spare, &f->pending, &f->ended, &f->instances, &f->events };
	bool           is_ok = argc == 3 + 4 || argc == 3 + (int)ARRAY_LEN(numbers);

	for (int i = 3; is_ok && i < argc; i++)
		is_ok = read_number(argv[i], numbers[i - 3]);
	return is_ok;
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };

	if (!read_numbers(argc, argv, &b.fill)) {
		fprintf(stderr,
		        "usage: lease_bench fill|measure|more FOLDER IN_USE SPARE PENDING ENDED [INSTANCES EVENTS]\n");
		return 2;
	}
	open_bench(&b, argv[2]);
	if (strcmp(argv[1], "fill") == 0) {
		fill(&b);
	} else if (strcmp(argv[1], "more") == 0) {
		add_more(&b);
	} else {
		measure_pages(&b);
		measure_counts(&b);
		measure_passes(&b);
		measure_decisions(&b);
		printf("}\n");
	}
	close_bench(&b);
	return 0;
}
