/* instances.h - the real instances in the simulation: tenants that come and go, on a cloud of their own.
 *
 * Only some seeds have them: in all others sim->instances is NULL, and nothing happens here. */
#pragma once

#include <stdbool.h>

#include "kernel/kernel.h"

struct session;
struct sim;
struct sim_node;

enum { SEEDS_PER_INSTANCE = 5, INSTANCE_SEED = 3 }; /* one seed in so many has instances, and no leases */

void instances_open(struct sim *sim);
void instances_close(struct sim *sim);

/* The queues, routes and sagas of a node that starts. */
void instances_start(struct sim_node *n, struct kernel_options *o);
void instances_end(struct sim_node *n);

/* Somebody does something, by this node. */
void instances_operate(struct sim_node *n);

/* Nothing goes wrong any more. */
void instances_calm(struct sim *sim);

/* A commit has happened. */
void instances_observe(struct sim *sim, struct session *s);
void instances_check_quiet(struct sim_node *n);
