/* clouds.h - sagas that move accounts of the simulated cloud, and the events that tell of it. */
#pragma once

#include <stdbool.h>

#include "kernel/saga.h"

struct event;
struct session;
struct sim;
struct sim_node;

extern const struct saga_kind clouds_kind; /* without its world */

void clouds_open(struct sim *sim);
void clouds_close(struct sim *sim);

/* Somebody wants an account moved, by this node. */
void clouds_operate(struct sim_node *n);

/* The trail's events that are due are taken in, by this node. */
void clouds_feed(struct sim_node *n);

/* Nothing goes wrong any more. */
void clouds_calm(struct sim *sim);

/* Take in all events that are still to come. False when there were none. */
bool clouds_feed_rest(struct sim_node *n);

/* The saga is as it says now; by hand: an operator has skipped a step. */
void clouds_observe(struct sim *sim, const struct saga *saga, bool is_by_hand);
void clouds_check_event(struct sim *sim, const struct event *event);
void clouds_check_quiet(struct sim *sim);
