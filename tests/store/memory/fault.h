/* fault.h - a store around a store that fails on command: what the world does to us, in a test. */
#pragma once

#include <stdatomic.h>

struct store;

enum fault {
	FAULT_NONE,
	FAULT_BEFORE, /* the transaction is refused, nothing is written */
	FAULT_AFTER,  /* it is written, but the answer says that it failed: the caller cannot know */
	FAULT_READ,   /* its read number `read` fails; the function must pass that on, or do without */
	FAULT_RERUN,  /* the function runs, is thrown away as after a conflict, and runs again */
};

/* The plan is the test's: it may be changed at any time. */
struct fault_plan {
	_Atomic enum fault next;     /* what happens to the next transactions that write */
	int                read;     /* from 1 */
	atomic_int         count;    /* how many of them; each uses one up */
	atomic_int         injected; /* how many faults there were */
	atomic_int         reads;    /* how many transactions that only read */
	atomic_int         refused;  /* so many of the next of these are refused before they have begun */

	/* Called by the submitter before each transaction that writes; may be NULL. What it writes came in between. */
	void (*before_write)(void *arg);
	void *before_write_arg;
};

/* inner is owned by the wrapper from now on. */
struct store *store_fault_open(struct store *inner, struct fault_plan *plan);
