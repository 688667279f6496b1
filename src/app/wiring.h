/* wiring.h - the kernel of this program: which queues there are, who is told what, and the threads behind it. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"

struct alarm_rule;
struct broker_settings;
struct config;
struct csp;
struct guarding;
struct jobs;
struct kernel;
struct metrics;
struct clock;
struct lending;
struct signin;
struct sim_cloud;
struct store;
struct wiring;

struct wiring_options {
	const struct config          *config;
	struct store                 *store;
	const struct clock           *clock; /* the store's */
	struct metrics               *metrics;
	struct csp                   *csp; /* guarded: its circuit is a fact */
	const struct broker_settings *settings;
	struct jobs                  *jobs;
	struct sim_cloud             *cloud;    /* whose CloudTrail events are brought to the inbox; NULL: none */
	struct signin                *signin;   /* looked after by the pulse */
	bool                          is_alone; /* no other node can use this store */
	bool                          is_dev;
	struct lending               *lending;  /* NULL: no leases */
	struct guarding              *guarding; /* NULL: no guard. One of both at most */
};

/* What can be said against the settings of mail; every problem at once is the configuration's business. RC_INVALID. */
MUST_CHECK enum rc wiring_check(const struct config *c, struct err *e);

/* The kernel, ready for transactions. Nothing runs yet. */
MUST_CHECK enum rc wiring_open(const struct wiring_options *o, struct wiring **ret, struct err *e);
struct kernel     *wiring_kernel(struct wiring *w);

/* The inboxes that there are, by name. */
extern const char *const wiring_inboxes[];
extern const size_t      wiring_inbox_count;

/* From here on work is done. on_events: after each commit that emitted an event, on any thread. */
void wiring_start(struct wiring *w, void (*on_events)(void *arg), void *arg);

/* No work is begun any more; what is under way has ended. */
void wiring_stop(struct wiring *w);

/* After the store is closed. */
void wiring_free(struct wiring *w);
