/* schedule.h - the real jobs: passes of the broker, made due by durable timers, run by the kernel's queue. */
#pragma once

#include <stdbool.h>

#include "kernel/queue.h"

struct jobs;
struct session;
struct session_entry;
struct sim;
struct sim_node;

void schedule_open(struct sim *sim);

/* A process has its own: made at its start, gone with it. */
struct jobs *schedule_start(struct sim_node *n);
void         schedule_end(struct jobs *jobs);

/* Arm what is missing; until it has worked once. */
void schedule_arm(struct sim_node *n);

/* An operator wants a pass now, or pauses or resumes a job, by this node. */
void schedule_operate(struct sim_node *n);

/* All jobs, until it has worked. */
void schedule_pause_all(struct sim_node *n, bool is_paused);

void schedule_observe(struct sim *sim, const struct session_entry *entry);

/* After each commit, and at the end. */
void schedule_check(struct sim *sim);
