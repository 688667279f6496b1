/* outside.h - events from outside: sent again, lost and resent, overtaken, beside bad ones. */
#pragma once

#include <stdbool.h>

struct event;
struct session;
struct sim;
struct sim_node;

void outside_open(struct sim *sim);

/* Somebody outside sends something to this node. */
void outside_send(struct sim_node *n);

/* Until everything was acknowledged. False when there is nothing left to send. */
bool outside_send_rest(struct sim_node *n);

void outside_check_event(struct sim *sim, struct session *s, const struct event *event);
void outside_check_quiet(struct sim *sim);
