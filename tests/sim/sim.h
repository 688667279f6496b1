/* sim.h - the simulated world: several nodes on one store, one clock, one source of chance. See docs/simulator.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/str.h"
#include "chance.h"
#include "kernel/kernel.h"
#include "kernel/work.h"
#include "names.h"
#include "store/store_ops.h"

enum { HOUR_MS = 3600 * 1000, DAY_MS = 24 * HOUR_MS };

/* Of a long world (--days). */
enum { LONG_DAYS_MAX = 3650, LONG_PACE = 12 };

/* What the simulator does to the program. */
#define FAULTS(X)                                                                \
	X(STORE_REFUSED, "store: transaction refused")                           \
	X(STORE_READ_FAILED, "store: one read of a transaction failed")          \
	X(STORE_RERUN, "store: conflict, function run again")                    \
	X(STORE_ANSWER_LOST, "store: written, but the answer was lost")          \
	X(STORE_OUTAGE, "store: out of reach for a while")                       \
	X(STORE_STALE, "store: index query answered from an old state")          \
	X(STORE_OUTDATED, "store: commit refused, it was based on an old state") \
	X(INTERLEAVED, "another transaction came in between")                    \
	X(CRASH, "node crashed and restarted")                                   \
	X(PAUSE, "node paused")                                                  \
	X(CLOCK_FORWARD, "clock jumped forward")                                 \
	X(CLOCK_BACK, "clock set back")                                          \
	X(HANDLER_FAILED, "queue: handler failed")                               \
	X(CALL_FAILED, "queue: call failed")                                     \
	X(CALL_ANSWER_LOST, "queue: received, but the answer was lost")          \
	X(STEP_FAILED, "saga: step failed before its effect")                    \
	X(STEP_ANSWER_LOST, "saga: step timed out after its effect")             \
	X(STEP_REFUSED, "saga: step refused for good")                           \
	X(CHECK_FAILED, "saga: check could not tell")                            \
	X(EVENT_REPEATED, "inbox: event sent again")                             \
	X(EVENT_REORDERED, "inbox: event overtaken by a later one")              \
	X(EVENT_BAD, "inbox: bad record beside good ones")                       \
	X(EVENT_LATE, "inbox: event lost and sent again much later")             \
	X(CLOUD_FAILED, "cloud: outage, throttling, time-out before the effect") \
	X(CLOUD_ANSWER_LOST, "cloud: time-out after the effect")                 \
	X(CLEAN_FAILED, "cloud: cleanup failed")                                 \
	X(CLEAN_LIED, "cloud: cleanup left something and said it had not")       \
	X(VENDOR_FAILED, "vendor: call failed")                                  \
	X(VENDOR_ANSWER_LOST, "vendor: done, but the answer was lost")

enum fault_kind {
#define X(name, text) SIM_##name,
	FAULTS(X)
#undef X
	        FAULT_KIND_COUNT
};

extern const char *const fault_texts[FAULT_KIND_COUNT];

enum {
	NODES_USUAL = 3,
	NODES_MAX = 24,
	NODE_QUEUES = 8,
	HAND_MAX = 12,
	RECENT_MAX = 32,
	READS_MAX = 8,
	LAG_MS = 10000,
	NODE_POLL_MS = 20000
};

enum stage { STAGE_FOUND, STAGE_CLAIMED, STAGE_PERFORMED, STAGE_REFUSED };

struct sim;

/* A process: its view of the store, its kernel, what it is busy with. */
struct sim_node {
	struct store           base; /* first: the wrapper around the shared store */
	struct sim            *sim;
	char                   name[24];
	struct kernel         *kernel; /* NULL: it is down */
	struct jobs           *jobs;
	struct leases_node    *leases;    /* NULL: this seed has none */
	struct instances_node *instances; /* the same */
	bool                   is_armed;  /* its jobs have their timers */
	struct queue           queues[NODE_QUEUES];
	struct chance          chance; /* its own stream, for the kernel */
	struct clock           clock;
	int64_t                skew_ms;         /* of its clock */
	int64_t                away_until_ms;   /* paused or down until then */
	int64_t                outage_until_ms; /* does not reach the store until then */
	int64_t                idle_until_ms;   /* has found nothing to do before then */
	struct {
		struct work *work; /* those behind the last are kept for the next ones */
		enum stage   stage;
	} hand[HAND_MAX];
	size_t       hand_count;
	struct arena arena; /* of one look for work */
};

/* How rough the world of one seed is; faults in a thousand chances. */
struct profile {
	int64_t days;
	int64_t pace; /* what people, jobs and deadlines take is so many times as long; calls, claims and retries are not */
	int     nodes;
	int64_t op_pause_ms; /* between two operations, on average */
	int64_t store, lag, interleave, crash, jump, call, step, vendor, outside;
};

/* What a record was before a recent change. */
struct recent {
	const struct record_type *type;
	int64_t                   at_ms;
	struct arena              arena;
	struct str                key;
	void                     *before; /* NULL: was not there */
};

/* The table of the shared store. */
struct watched_ops {
	struct store_ops base; /* first */
	struct sim      *sim;
};

struct model;
struct bank;
struct far_side;
struct pool_world;
struct outside;
struct clouds;
struct schedule;
struct alarms;
struct leases;
struct leases_node;
struct instances;
struct instances_node;

struct sim {
	uint64_t                seed;
	struct chance           chance;
	struct profile          profile;
	struct clock            clock;
	int64_t                 start_ms, end_ms, lived_ms; /* lived: time that has passed, jumps aside */
	struct arena            arena;                      /* as long as the seed */
	struct store           *shared;
	struct watched_ops      ops;          /* the shared store's, watched */
	const struct store_ops *memory;       /* its own */
	int                     nodes_wanted; /* 0: as many as the seed says */
	int64_t                 days_wanted;  /* 0: the same; else a long world */
	bool                    reads_hold;   /* none fails */
	int64_t                 calm_ms;      /* of what it has lived: after the last fault */
	struct sim_node         nodes[NODES_MAX];
	struct recent           recent[RECENT_MAX];
	size_t                  recent_count;
	/* Of the transaction under way: an answer was old; its commit was refused; it runs again, on fresh ones. */
	bool                   has_lagged, is_outdated, is_fresh;
	int                    reads_left; /* until one of the transaction under way fails; 0: none does */
	int                    depth;      /* steps within steps */
	const struct sim_node *caller;     /* who is in a call */
	int64_t                next_op_ms, next_feed_ms;
	bool                   is_calm; /* no more faults */

	struct model      *model;
	struct bank       *bank;
	struct far_side   *far_side;
	struct pool_world *pool;
	struct outside    *outside;
	struct clouds     *clouds;
	struct schedule   *schedule;
	struct alarms     *alarms;
	struct leases     *leases;    /* NULL: this seed has none */
	struct instances  *instances; /* the same; never both */

	uint64_t steps, commits;
	uint64_t faults[FAULT_KIND_COUNT];
	bool     is_traced, is_hashed;
	uint64_t trace_hash;
	bool     has_failed;
	char     promise[128], evidence[512];
	uint64_t failed_step;
};

/* Whose store this is. */
static inline struct sim *sim_of(const struct session *s)
{
	return ((const struct watched_ops *)s->store->ops)->sim;
}

/* --- sim.c --- */

/* A promise is broken: remembered with the step, the seed ends. The first one counts. */
void sim_broken(struct sim *sim, const char *promise, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* One readable line of what happens. n may be NULL: the world. */
void               sim_trace(struct sim *sim, const struct sim_node *n, const char *fmt, ...) PRINTF_LIKE(3, 4);
static inline bool sim_is_heard(const struct sim *sim)
{
	return sim->is_traced || sim->is_hashed;
}

/* Shall this fault happen now? Counted when it does. */
bool sim_fault(struct sim *sim, enum fault_kind kind, int64_t permille);

static inline int64_t sim_now(const struct sim *sim)
{
	return sim->clock.test_ms;
}

static inline bool sim_is_long(const struct sim *sim)
{
	return sim->days_wanted > 0;
}

/* So long in a world of days; in a long one at its pace. */
static inline int64_t sim_paced(const struct sim *sim, int64_t time)
{
	return time * sim->profile.pace;
}

/* Time passes. */
void sim_pass(struct sim *sim, int64_t ms);

/* The clock is set, by so much. */
void sim_set_clock(struct sim *sim, int64_t ms);

/* --- drive.c --- */

/* The whole life of one seed. */
void sim_run(struct sim *sim, uint64_t seed);
void sim_end(struct sim *sim);

/* One step of somebody other than n, in the middle of what n does. */
void sim_interleave(struct sim *sim, const struct sim_node *n);

/* The call under way takes so long; the other nodes go on meanwhile. */
void sim_call_takes(struct sim *sim, int64_t ms);

/* --- world.c: the watched store --- */
void world_open(struct sim *sim);
void world_close(struct sim *sim);
void world_open_view(struct sim_node *n);

/* --- node.c --- */
void node_open(struct sim *sim, int number);
void node_start(struct sim_node *n);
void node_crash(struct sim_node *n);
void node_close(struct sim_node *n);
bool node_is_up(const struct sim_node *n);
bool node_is_busy(const struct sim_node *n); /* has something to do now */
void node_step(struct sim_node *n);

/* Run it as this node would; with one try. */
enum rc node_run(struct sim_node *n, txn_fn *run, void *arg, struct arena *a, struct err *e);
enum rc node_read(struct sim_node *n, txn_fn *run, void *arg, struct arena *a, struct err *e);
