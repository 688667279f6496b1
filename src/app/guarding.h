/* guarding.h - what the guard beside another system needs, put together: its table, queues, routes, sagas. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "service/guard.h"

struct buf;
struct config;
struct guarding;
struct metrics;
struct reconcile_world;
struct sim_cloud;
struct store;

enum { GUARDING_QUEUES = GUARD_QUEUES + 1, GUARDING_ROUTES = GUARD_ROUTES + 1, GUARDING_SAGAS = GUARD_KINDS };

enum quarantine_mode { QUARANTINE_NATIVE, QUARANTINE_GUARD }; /* in the order of LEASEHOLD_QUARANTINE's words */

/* Beside another system, instead of a pool of our own: then there are no leases here. */
bool guarding_is_wanted(const struct config *c);

/* Settings that are missing or make no sense, one a line. */
void guarding_check(const struct config *c, struct buf *problems);

/* The cloud stays the caller's. RC_INVALID: a setting is wrong. */
MUST_CHECK enum rc guarding_new(const struct config *c, struct store *store, struct sim_cloud *cloud,
                                struct metrics *metrics, struct guarding **ret, struct err *e);
void               guarding_free(struct guarding *g);

/* Rows for the kernel's tables, valid as long as the guarding. */
void                    guarding_queues(struct guarding *g, struct queue ret[GUARDING_QUEUES]);
struct route            guarding_route(size_t i);
const struct saga_kind *guarding_saga(const struct guarding *g, size_t i);

/* What is compared with where accounts are, and how long they rest. */
const struct reconcile_world *guarding_reconcile(const struct guarding *g);
const struct hold_rules      *guarding_rules(const struct guarding *g);

/* The simulated other system gets its accounts. Blocks. Repeat it when it fails. */
MUST_CHECK enum rc guarding_start(struct guarding *g, struct err *e);
