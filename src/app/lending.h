/* lending.h - what leases and accounts need, put together: the cloud, the policy in force, queues, routes, sagas. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"
#include "domain/cloud.h"
#include "domain/hold.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "service/lease_jobs.h"

struct approval_policy;
struct config;
struct lending;
struct policy;
struct policy_holder;
struct reconcile_world;
struct sim_cloud;
struct store;

enum { LENDING_QUEUES = 7, LENDING_ROUTES = 7 };

/* Without a secret for sessions nobody could sign in: then there are no leases; nor where we guard the accounts of others. */
bool lending_is_wanted(const struct config *c);

/* How long accounts rest, as it is set. RC_INVALID names the setting. */
MUST_CHECK enum rc lending_read_rules(const struct config *c, struct hold_rules *ret, struct err *e);

/* The cloud stays the caller's. RC_INVALID, RC_UNAVAILABLE: a setting is wrong, or what it names does not work. */
MUST_CHECK enum rc lending_new(const struct config *c, struct store *store, struct sim_cloud *cloud,
                               struct lending **ret, struct err *e);
void               lending_free(struct lending *l);

/* Rows for the kernel's tables, valid as long as the lending. */
void                      lending_queues(struct lending *l, struct queue ret[LENDING_QUEUES]);
extern const struct route lending_routes[LENDING_ROUTES];
const struct saga_kind   *lending_saga(const struct lending *l);

struct cloud         *lending_cloud(struct lending *l);
struct policy_holder *lending_policies(struct lending *l);
/* The accounts that are never lent, separated by commas. */
struct str lending_admin_accounts(const struct lending *l);

const struct lease_world *lending_world(const struct lending *l);

/* What is compared with where accounts are. */
const struct reconcile_world *lending_reconcile(const struct lending *l);

/* The policy in force; arg is the lending. Any thread. */
const struct policy *lending_policy(void *arg);

/* Its approval rules; NULL: there are none. arg is the lending. Any thread. */
const struct approval_policy *lending_approval(void *arg);

/* Read what is stored; arm what has to be armed; in a world that nobody has used yet, register the simulated accounts that are free and make
 * two templates. Blocks. Repeat it when it fails. */
MUST_CHECK enum rc lending_start(struct lending *l, struct err *e);
