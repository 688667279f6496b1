/* kernel.h - what all parts of the kernel share: who we are, queues, routes, kinds of sagas, time and chance. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

struct session;

/* Events of these types go to this queue. One row of the routing table. */
struct route {
	const char *pattern; /* event types, separated by commas; '*' at the end of one stands for anything */
	const char *queue;
};

/* What a service above adds to one below: a table of functions of a type that the lower one declares. The lower one
 * calls them inside its own transaction, and never has to know who is above it. */
struct hook {
	const char *name;
	const void *functions;
};

struct kernel_options {
	struct store       *store;
	const struct clock *clock;
	struct str          node;                    /* who we are: owner of what we claim */
	struct str          source, account, region; /* of our own events */
	struct str          routine; /* patterns of types that come all the time: not in the index by type */

	/* Subjects that begin with this have a record that names their last event, and each event names the one before
	 * it (both or none). Their events may then be EVENT_CHAINED, except the very last: when the record is gone, the
	 * index must lead to it. There should be few between two indexed ones. Empty: there are no such subjects. */
	struct str chained;
	/* The id of the last event of such a subject; empty: no record, or it names none. Read-only transaction. */
	enum rc (*last_event)(struct session *s, struct str subject, struct str *ret, struct err *e);

	const struct queue            *queues;
	size_t                         queue_count;
	const struct route            *routes;
	size_t                         route_count;
	const struct saga_kind *const *sagas;
	size_t                         saga_count;
	const struct hook             *hooks;
	size_t                         hook_count;

	/* Have a handler run by the transaction that emits its event, when nothing waits before it in its lane. For a
	 * store with one writer: among several, what the handlers write would make the emitters collide. */
	bool is_eager;

	int64_t lease_ms;       /* how long a claimed saga may be silent before another node takes it */
	int64_t timers_per_sec; /* at most so many overdue timers fire in a second */
	uint64_t (*random)(void *arg);
	void           *random_arg;
	struct metrics *metrics; /* may be NULL */
};

/* Makes itself the store's context, so that session_emit() and the like find it. No threads; see pump.h. */
struct kernel *kernel_new(const struct kernel_options *o);
void           kernel_free(struct kernel *k);

/* The rows of the routing table are others than before, as many. Not while events are emitted. */
void kernel_read_routes(struct kernel *k);

const struct kernel_options *kernel_options(const struct kernel *k);

/* The kernel of the session's store. */
struct kernel *kernel_of(const struct session *s);

/* NULL when there is none of that name. */
const struct queue     *kernel_queue(const struct kernel *k, struct str name);
const struct saga_kind *kernel_saga(const struct kernel *k, struct str name);

/* The functions of the hook with this name, which must be registered. */
const void *kernel_hook(const struct kernel *k, const char *name);

/* A new id, greater than all this process has made, and than all stored ones once kernel_prime() was called. */
enum { KERNEL_ID_SIZE = 37 };
void kernel_id(struct kernel *k, int64_t now_ms, char ret[KERNEL_ID_SIZE]);

/* One that is also greater than this one (may be empty), which another node with another clock may have made. */
void       kernel_id_after(struct kernel *k, int64_t now_ms, struct str previous, char ret[KERNEL_ID_SIZE]);
struct str kernel_new_id(struct session *s, struct str previous); /* now, in the session's arena */

/* Read the newest event's id, so that ids go on growing also after the clock was set back. Blocks. */
enum rc kernel_prime(struct kernel *k, struct err *e);

/* After a crash: free everything that is claimed at once, and forget all nodes. Only on the embedded store, where no
 * other node can exist and whoever owns a delivery or a saga is dead. Blocks. */
MUST_CHECK enum rc kernel_recover(struct kernel *k, struct err *e);

/* How far the kernel's clock goes while so much time passes on the machine. Every duration that bounds calls, their
 * owners and their tries is meant for the machine, also where time is scaled. */
int64_t kernel_span_ms(const struct kernel *k, int64_t machine_ms);

/* Full jitter: a random time up to base * 2^tries, and up to max. */
int64_t kernel_backoff(struct kernel *k, int64_t base_ms, int64_t max_ms, int64_t tries);

/* There is, or was, a webhook: until this is known, their queue gets no deliveries. It stays so for the life of the
 * process, since who removes the last one cannot know who adds the next meanwhile. Any thread. */
void kernel_note_webhooks(struct kernel *k);
bool kernel_has_webhooks(const struct kernel *k);

/* Does the type match the pattern? '*' at its end stands for anything; a list has commas. */
bool kernel_matches(struct str patterns, struct str type);

/* The same of the types that come all the time, and of one row of the routing table. */
bool kernel_is_routine(const struct kernel *k, struct str type);
bool kernel_route_matches(const struct kernel *k, size_t row, struct str type);

/* Called after each durable transaction that left something to do, and after each that emitted an event. Any thread,
 * must not wait. NULL: no more; when this has returned, the one before is not called any longer. */
void kernel_on_news(struct kernel *k, void (*on_news)(void *arg), void *arg);
void kernel_on_events(struct kernel *k, void (*on_events)(void *arg), void *arg);
