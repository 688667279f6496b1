/* alarms.h - the product's alarms in the simulation: told once each, and true when all is quiet. */
#pragma once

struct event;
struct session;
struct session_entry;
struct sim;
struct sim_node;

void alarms_open(struct sim *sim);

/* This node computes the alarms. */
void alarms_compute(struct sim_node *n);

void alarms_observe(struct sim *sim, struct session *s, const struct session_entry *entry);
void alarms_check_event(struct sim *sim, struct session *s, const struct event *event);

/* Are those raised that should be, and no others? By this node, after the hold times. */
void alarms_check_quiet(struct sim_node *n);
