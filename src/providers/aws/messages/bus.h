/* bus.h - our events on a bus of EventBridge: what the queue "bus" calls. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"
#include "kernel/queue.h"

/* Whose names the events have there. */
enum bus_names {
	BUS_OURS,  /* the event's own source; the detail tells our id, subject and actor as "leasehold" */
	BUS_ISB,   /* Innovation Sandbox's: source InnovationSandbox-{namespace}; the detail bare */
	BUS_GUARD, /* always "leasehold", or an Innovation Sandbox beside us would act on it; else as ours */
};

/* Borrowed. */
struct bus_options {
	struct aws_caller *caller;
	struct str         bus; /* name or ARN */
	enum bus_names     names;
	struct str         source;        /* BUS_OURS */
	struct str         isb_namespace; /* BUS_ISB */
};
struct bus *bus_new(const struct bus_options *o);
void        bus_free(struct bus *b);

/* One event. arg is a struct bus; calls at the same time share a request. RC_INVALID: no try will help. */
queue_call_fn bus_call;

/* --- for bus.c and its tests --- */

/* A request has at most so many entries, and less than so many bytes, as EventBridge counts them. */
enum { BUS_ENTRIES_MAX = 10, BUS_BYTES_MAX = 262144 };

/* One entry: its JSON, how many bytes it counts, and what became of it. */
struct bus_entry {
	struct str        json;
	size_t            bytes;
	bool              is_done;
	enum rc           rc;
	struct err        e;
	struct bus_entry *next;
};

/* RC_INVALID: more than fits into any request. */
MUST_CHECK enum rc bus_write_entry(const struct bus_options *o, const struct event *event, struct arena *a,
                                   struct bus_entry *ret, struct err *e);

/* How many of the list, from its beginning, fit into one request: 1 or more. */
size_t bus_fitting(const struct bus_entry *first);

/* The request with the first of them; what its answer says of each, by position. */
struct str bus_write_request(const struct bus_entry *first, size_t count, struct arena *a);
void       bus_read_answer(const json_t *answer, struct bus_entry *first, size_t count);
