/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - opens stores for the tests of the broker and looks into them with transactions of its own. */
#include "pool.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/event.h"
#include "kernel_rig.h"
#include "service/broker/broker.h"
#include "service/broker/sandbox_events.h"
#include "service/services.h"
#include "store/memory/memory.h"
#include "store/sqlite/sqlite.h"
#include "test.h"
#include "truth/test_clock.h"

static struct store *open_file(struct pool *p)
{
	struct str    path = str_format(&p->arena, "%s/store.db", p->folder);
	struct store *store = NULL;
	struct err    e = { 0 };
	enum rc rc = store_sqlite_open(&(struct sqlite_options){ path.p, service_types, service_type_count, &p->clock,
	                                                         0 },
	                               &store, &e);

	if (rc)
		print_error("%s\n", e.msg);
	CHECK(rc == RC_OK);
	return store;
}

/* Its tables are there from the start, with rows that nothing matches: a kernel is not replaced under a store that
 * runs. */
static void make_kernel(struct pool *p)
{
	struct kernel_options o = { .store = p->store,
		                    .clock = &p->clock,
		                    .node = STR("node-1"),
		                    .source = STR("leasehold"),
		                    .routine = STR(SANDBOX_ROUTINE_EVENTS),
		                    .chained = STR(SANDBOX_SUBJECTS),
		                    .last_event = sandbox_last_event,
		                    .queues = p->queues,
		                    .queue_count = POOL_TABLE,
		                    .routes = p->routes,
		                    .route_count = POOL_TABLE,
		                    .hooks = service_hooks,
		                    .hook_count = service_hook_count,
		                    .lease_ms = 30000,
		                    .timers_per_sec = 1000,
		                    .random = rig_random,
		                    .random_arg = &p->seed };

	for (int i = 0; i < POOL_TABLE; i++)
		if (!p->queues[i].name) {
			p->queues[i].name = "unused";
			p->routes[i] = (struct route){ "-", "unused" };
		}
	p->kernel = kernel_new(&o);
}

static void wrap(struct pool *p, struct store *backend)
{
	p->backend = backend;
	p->store = store_fault_open(backend, &p->plan);
	make_kernel(p);
}

void pool_route(struct pool *p, const struct queue *queues, size_t queue_count, const struct route *routes,
                size_t route_count)
{
	CHECK(queue_count <= POOL_TABLE && route_count <= POOL_TABLE);
	memcpy(p->queues, queues, queue_count * sizeof(*queues));
	memcpy(p->routes, routes, route_count * sizeof(*routes));
	kernel_read_routes(p->kernel);
}

static void unwrap(struct pool *p)
{
	store_close(p->store);
	kernel_free(p->kernel);
}

void pool_open_memory(struct pool *p)
{
	*p = (struct pool){ .clock = clock_test(POOL_NOW_SEC * 1000ll) };
	wrap(p, store_memory_open(service_types, service_type_count, &p->clock));
}

void pool_open_sqlite(struct pool *p)
{
	*p = (struct pool){ .clock = clock_test(POOL_NOW_SEC * 1000ll), .folder = "/tmp/leasehold-test-XXXXXX" };
	CHECK(mkdtemp(p->folder) != NULL);
	wrap(p, open_file(p));
}

void pool_shut(struct pool *p)
{
	unwrap(p);
}

void pool_open_again(struct pool *p)
{
	wrap(p, open_file(p));
}

void pool_reopen(struct pool *p)
{
	pool_shut(p);
	pool_open_again(p);
}

void pool_renew_kernel(struct pool *p)
{
	kernel_free(p->kernel);
	make_kernel(p);
}

void pool_close(struct pool *p)
{
	char command[96];

	unwrap(p);
	arena_fini(&p->arena);
	if (!p->folder[0])
		return;
	snprintf(command, sizeof(command), "rm -rf %s", p->folder);
	CHECK(system(command) == 0);
}

void each_pool(void (*check)(struct pool *p))
{
	static const struct {
		const char *label;
		void (*open)(struct pool *p);
		bool runs_twice;
	} kinds[] = {
		{ "memory", pool_open_memory, false },
		{ "sqlite", pool_open_sqlite, false },
		{ "memory, every transaction run twice", pool_open_memory, true },
		{ "sqlite, every transaction run twice", pool_open_sqlite, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct pool p;

		CASE(kinds[i].label);
		kinds[i].open(&p);
		if (kinds[i].runs_twice) {
			p.plan.next = FAULT_RERUN;
			p.plan.count = INT_MAX;
		}
		check(&p);
		pool_close(&p);
	}
	CASE("");
}

struct str pool_id(struct arena *a, int n)
{
	return str_format(a, "sb-%04d", n);
}

struct csp_account pool_account(struct arena *a, int n)
{
	return (struct csp_account){ .sandbox_id = pool_id(a, n),
		                     .external_id = str_format(a, "acc/%d", n),
		                     .name = str_format(a, "%s-%04d", n % 2 ? "lab" : "exam", n) };
}

static enum rc put_any(struct session *s, void *arg, struct err *e)
{
	struct sandbox put = *(struct sandbox *)arg, old;
	enum rc        rc = session_get(s, &sandbox_type, put.sandbox_id, &old, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "cannot be read");
	session_put(s, &sandbox_type, &put);
	return RC_OK;
}

void pool_put(struct pool *p, struct sandbox s)
{
	CHECK(store_run(p->store, put_any, &s, &p->arena, NULL) == RC_OK);
}

struct range {
	int from, to;
};

static enum rc put_range(struct session *s, void *arg, struct err *e)
{
	const struct range *r = arg;

	for (int n = r->from; n < r->to; n++) {
		struct csp_account account = pool_account(session_arena(s), n);
		struct sandbox     sandbox = sandbox_from_account(&account, 4, session_now(s));
		enum rc            rc = put_any(s, &sandbox, e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

void pool_fill(struct pool *p, int from, int to)
{
	for (int at = from; at < to; at += SESSION_ACTIONS_MAX) {
		struct range r = { at, at + SESSION_ACTIONS_MAX < to ? at + SESSION_ACTIONS_MAX : to };

		CHECK(store_run(p->store, put_range, &r, &p->arena, NULL) == RC_OK);
	}
}

bool pool_has(struct pool *p, struct str id)
{
	struct sandbox_call c = { .id = id };
	enum rc             rc = store_read(p->store, broker_inspect, &c, &p->arena, NULL);

	CHECK(rc == RC_OK || rc == RC_NOT_FOUND);
	return rc == RC_OK;
}

struct sandbox pool_get(struct pool *p, struct str id)
{
	struct sandbox_call c = { .id = id };

	CHECK(store_read(p->store, broker_inspect, &c, &p->arena, NULL) == RC_OK);
	return c.sandbox;
}

static enum rc get_tombstone(struct session *s, void *arg, struct err *e)
{
	struct tombstone t;

	return session_get(s, &tombstone_type, *(struct str *)arg, &t, e);
}

bool pool_has_tombstone(struct pool *p, struct str id)
{
	enum rc rc = store_read(p->store, get_tombstone, &id, &p->arena, NULL);

	CHECK(rc == RC_OK || rc == RC_NOT_FOUND);
	return rc == RC_OK;
}

int64_t pool_count(struct pool *p, enum sandbox_state state)
{
	struct pool_counts c;

	CHECK(store_read(p->store, broker_count, &c, &p->arena, NULL) == RC_OK);
	return c.by_state[state];
}

static struct event_list events_of(struct pool *p, const char *type)
{
	struct event_list l = { .type = str_from(type), .limit = EVENT_PAGE_MAX };

	CHECK(store_read(p->store, event_list, &l, &p->arena, NULL) == RC_OK);
	return l;
}

int pool_events(struct pool *p, const char *type)
{
	return (int)events_of(p, type).count;
}

struct event pool_event(struct pool *p, const char *type)
{
	struct event_list l = events_of(p, type);

	CHECK(l.count > 0);
	return l.events[l.count - 1];
}

/* --- the vendor --- */

static enum rc fake_list(struct csp *c, struct arena *a, struct csp_account **ret, size_t *ret_count, struct err *e)
{
	struct fake_csp *f = CONTAINER_OF(c, struct fake_csp, csp);

	(void)a;
	f->lists++;
	if (f->on_list)
		f->on_list(f);
	if (f->list_rc)
		return err_set(e, f->list_rc, "fake: no listing today");
	*ret = f->accounts;
	*ret_count = f->count;
	return RC_OK;
}

static enum rc fake_delete(struct csp *c, struct str external_id, struct err *e)
{
	struct fake_csp *f = CONTAINER_OF(c, struct fake_csp, csp);

	f->deletes++;
	if (f->on_delete)
		f->on_delete(f, external_id);
	if (f->delete_rc)
		return err_set_code(e, f->delete_rc, f->delete_code, "fake: will not delete %.*s",
		                    STR_ARG(external_id));
	return RC_OK;
}

static void fake_close(struct csp *c)
{
	(void)c;
}

void fake_csp_init(struct fake_csp *f)
{
	static const struct csp_ops ops = { "fake", fake_list, fake_delete, fake_close };

	*f = (struct fake_csp){ .csp = { &ops } };
}

void fake_csp_list(struct fake_csp *f, struct arena *a, int from, int to)
{
	f->count = (size_t)(to - from);
	f->accounts = arena_alloc(a, (f->count + 1) * sizeof(*f->accounts));
	for (size_t i = 0; i < f->count; i++)
		f->accounts[i] = pool_account(a, from + (int)i);
}
