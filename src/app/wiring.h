/* wiring.h - the kernel of this program: which queues there are, who is told what, and the threads behind it. */
#pragma once

#include "base/err.h"

struct api;
struct parts;
struct wiring;

/* Fills p->kernel, ready for transactions. Nothing runs yet. */
MUST_CHECK enum rc wiring_open(struct parts *p, struct wiring **ret, struct err *e);

/* The inboxes that there are, by name; the first is there also where there are no instances. */
enum { WIRING_INBOXES = 3 };
extern const char *const wiring_inboxes[WIRING_INBOXES];

/* Instead of wiring_start(), for a process that runs only while it is asked something: arm knows what other nodes have
 * made, and arms what has to be armed; watch states what this process sees, and computes the alarms. Both block. */
MUST_CHECK enum rc wiring_arm(struct wiring *w, struct err *e);
void               wiring_watch(struct wiring *w);

/* From here on work is done. The api's streams are poked after each commit that emitted an event. begin, unless NULL,
 * is called every second on a thread of its own until it returns true. */
void wiring_start(struct wiring *w, struct api *api, bool (*begin)(void *arg), void *arg);

/* No work is begun any more; what is under way has ended. */
void wiring_stop(struct wiring *w);

/* After the store is closed. */
void wiring_free(struct wiring *w);
