/* pool.h - the real broker over a simulated vendor, and what must be true of its pool. */
#pragma once

struct broker_settings;
struct csp;
struct event;
struct session;
struct session_entry;
struct sim;
struct sim_node;

void pool_open(struct sim *sim);

/* What the passes of the jobs work with. */
struct csp                   *pool_vendor(struct sim *sim);
const struct broker_settings *pool_settings(struct sim *sim);

/* A track, an operator or a background pass does something, by this node. */
void pool_operate(struct sim_node *n);

void pool_observe(struct sim *sim, struct session *s, const struct session_entry *entry);
void pool_check_event(struct sim *sim, struct session *s, const struct event *event);

/* Do the counts by state add up to what was seen to be committed? */
void pool_check_counts(struct sim_node *n);
