/* kernel_ops.h - shared by the files of the kernel; nobody else includes this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

struct arena;
struct event;
struct event_list;
struct kernel;
struct session;
struct timer;

/* Told by the alarm and never routed: a delivery that dies because nobody can be told must not be one more thing to tell. */
#define EVENT_DEAD_LETTERED "DeadLettered"

/* An envelope as event_write_json() writes it. RC_INVALID, RC_CORRUPT. Texts live in the arena. */
MUST_CHECK enum rc event_from_json(struct str text, struct arena *a, struct event *ret, struct err *e);

/* Of one event_list(): how often the store is asked at most. */
enum { EVENT_LOOKS_MAX = 100 };

/* Does the list's filter let it through? Subject and time aside. */
bool event_is_wanted(const struct event_list *l, const struct event *event);

/* Do records lead to the events of this subject (kernel_options.chained)? Then this lists them; l->events has room for l->limit. */
bool               event_is_chained(const struct kernel *k, struct str subject);
MUST_CHECK enum rc event_list_chained(struct session *s, struct event_list *l, struct err *e);

uint64_t kernel_random(struct kernel *k);
bool     kernel_has_webhooks(const struct kernel *k);

/* How ids of that millisecond begin: a lower limit for all ids from then on. */
struct str kernel_time_prefix(struct arena *a, int64_t ms);

/* How many of the wanted timers may fire now. */
size_t kernel_timer_allowance(struct kernel *k, int64_t now_ms, size_t wanted);

#ifdef LEASEHOLD_DEFECTS
/* Do it in a transaction of its own, later (see defect.c). */
enum rc defect_emit_later(struct session *s, const struct event *event);
enum rc defect_arm_later(struct session *s, const struct timer *timer);

/* Now it is later. */
void defect_catch_up(struct kernel *k);

/* The process is gone. */
void defect_forget(struct kernel *k);
#endif
