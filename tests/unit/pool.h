/* pool.h - what tests of the broker share: a pool in a store of any kind, and a vendor that does what the test says. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "domain/ports/csp.h"
#include "domain/sandbox.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "kernel/records.h"
#include "service/broker/records.h"
#include "store/memory/fault.h"
#include "store/store.h"

enum { POOL_NOW_SEC = 1000000000, POOL_TABLE = 4 };

struct pool {
	struct clock      clock; /* moved by the test, while no transaction runs */
	struct arena      arena;
	struct store     *store;   /* a fault store around the back end; quiet unless the plan is set */
	struct store     *backend; /* its own health and figures */
	struct fault_plan plan;
	struct kernel    *kernel; /* without queues, until pool_route(): events are only logged */
	struct queue      queues[POOL_TABLE];
	struct route      routes[POOL_TABLE];
	uint64_t          seed;
	char              folder[64]; /* empty: memory */
};

void pool_open_memory(struct pool *p);
void pool_open_sqlite(struct pool *p);
void pool_close(struct pool *p);

/* Close the file and open it again. */
void pool_reopen(struct pool *p);

/* The same in two steps: between them the file can be changed by other means. */
void pool_shut(struct pool *p);
void pool_open_again(struct pool *p);

/* Another node on the same store: a kernel that knows nothing of what this one did. While nothing runs. */
void pool_renew_kernel(struct pool *p);

/* Run a check on each back end, plainly and with every transaction run twice. */
void each_pool(void (*check)(struct pool *p));

/* Number n as the vendor lists it: id sb-0007, external id acc/7, name lab-0007, or exam-0008 when n is even. */
struct csp_account pool_account(struct arena *a, int n);
struct str         pool_id(struct arena *a, int n);

/* The numbers [from, to) as available records. */
void pool_fill(struct pool *p, int from, int to);

/* Store the record whatever was there before. */
void pool_put(struct pool *p, struct sandbox s);

/* Records as they are now; texts live in the pool's arena. */
bool           pool_has(struct pool *p, struct str id);
struct sandbox pool_get(struct pool *p, struct str id);
bool           pool_has_tombstone(struct pool *p, struct str id);
int64_t        pool_count(struct pool *p, enum sandbox_state state);

/* How many events of this type are in the log ("*": of any type), and the last of them, which must be there. */
int          pool_events(struct pool *p, const char *type);
struct event pool_event(struct pool *p, const char *type);

/* The kernel's tables from now on, POOL_TABLE rows at most; copied. While nothing runs. */
void pool_route(struct pool *p, const struct queue *queues, size_t queue_count, const struct route *routes,
                size_t route_count);

/* A vendor made of an array. */
struct fake_csp {
	struct csp          csp;
	struct csp_account *accounts;
	size_t              count;
	enum rc             list_rc, delete_rc;
	const char         *delete_code; /* of the error, such as CIRCUIT_OPEN */
	int                 lists, deletes;

	/* Called inside the calls, before they answer; may be NULL. */
	void (*on_list)(struct fake_csp *f);
	void (*on_delete)(struct fake_csp *f, struct str external_id);
	void *arg;
};

void fake_csp_init(struct fake_csp *f);

/* It lists the numbers [from, to). */
void fake_csp_list(struct fake_csp *f, struct arena *a, int from, int to);
