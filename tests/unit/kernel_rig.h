/* kernel_rig.h - a kernel on a memory store with a clock that the test moves; runs all that is due, one stage after the
 * other. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "kernel/work.h"
#include "store/memory/fault.h"
#include "store/store.h"

struct kernel_rig {
	struct clock          clock;
	struct arena          arena; /* what transactions of the test read */
	struct store         *store;
	struct kernel        *kernel;
	uint64_t              seed;
	struct fault_plan    *faults;  /* set before rig_open(), or NULL: what becomes of transactions that write */
	struct kernel_options options; /* set queues, routes, sagas before rig_open(); the rest is filled in */
};

/* The next random number; arg is the seed, a uint64_t. */
uint64_t rig_random(void *arg);

void rig_open(struct kernel_rig *r);
void rig_close(struct kernel_rig *r);

/* The transaction, expected to succeed. */
void rig_run(struct kernel_rig *r, txn_fn *run, void *arg);

/* The same, whatever becomes of it. */
enum rc rig_try(struct kernel_rig *r, txn_fn *run, void *arg, struct err *e);

/* Do what is due until nothing is; the number of works that were done. Fails the test when it does not come to an
 * end. */
int rig_turn(struct kernel_rig *r);

/* Let time pass and do what becomes due, each at its time. */
void rig_pass(struct kernel_rig *r, int64_t ms);
