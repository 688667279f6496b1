/* kernel_private.h - shared by the files of the kernel; nobody else includes this. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "kernel/saga_rule.h"

struct dead;
struct event;
struct event_list;
struct kernel;
struct query;
struct saga;
struct session;
struct timer;

/* Told by the alarm and never routed: a delivery that dies because nobody can be told must not add another. */
#define EVENT_DEAD_LETTERED "DeadLettered"

/* An envelope as event_write_json() writes it. RC_INVALID, RC_CORRUPT. Texts live in the arena. */
MUST_CHECK enum rc event_from_json(struct str text, struct arena *a, struct event *ret, struct err *e);

/* Of one event_list(): how often the store is asked at most. */
enum { EVENT_LOOKS_MAX = 100 };

/* Does the filter of this struct event_list let the struct event through? Subject and time aside. */
bool event_is_wanted(const void *event, const void *list);

/* Do records lead to the events of this subject (kernel_options.chained)? This lists them, at most l->limit. */
bool               event_is_chained(const struct kernel *k, struct str subject);
MUST_CHECK enum rc event_list_chained(struct session *s, struct event_list *l, struct err *e);

/* One decision about a saga, now. */
struct saga_rule saga_rule_for(struct session *s, struct saga *saga);

/* The event of a saga's end: SagaDone, SagaUndone or SagaParked. kind may be NULL. */
MUST_CHECK enum rc saga_tell_end(struct session *s, const struct saga_kind *kind, const struct saga *saga,
                                 struct err *e);

/* Is it a JSON object, and short enough to be stored as a saga's input or data? RC_INVALID, RC_TOO_LARGE. */
MUST_CHECK enum rc saga_check_object(struct str text, const char *what, struct err *e);

/* What an event about a dead letter says. */
struct str dead_to_detail(const struct dead *dead, struct str reason, struct arena *a);

/* Remove the records of this page, and count them. */
MUST_CHECK enum rc kernel_remove_page(struct session *s, const struct query *q, size_t *removed, struct err *e);

uint64_t kernel_random(struct kernel *k);

/* How ids of that millisecond begin: a lower limit for all ids from then on. */
struct str kernel_time_prefix(struct arena *a, int64_t ms);

/* How many of the wanted timers may fire now. */
size_t kernel_timer_allowance(struct kernel *k, int64_t now_ms, size_t wanted);

#ifdef LEASEHOLD_DEFECTS
/* Do it in a transaction of its own, later (tests/sim/defect.c). */
enum rc defect_emit_later(struct session *s, const struct event *event);
enum rc defect_arm_later(struct session *s, const struct timer *timer);

/* Now it is later. */
void defect_catch_up(struct kernel *k);

/* The process is gone. */
void defect_forget(struct kernel *k);
#endif
