/* account_moved.h - somebody else has moved an account of our own pool: it is locked away as soon as CloudTrail tells of it.
 *
 * Wiring: account_moved_queue() into the table of queues, with the route { "cloudtrail:MoveAccount", MOVED_QUEUE }. */
#pragma once

#include "domain/cloud.h"
#include "kernel/queue.h"

struct account_moved;
struct store;

#define MOVED_QUEUE "account-moved"

/* Both stay the caller's. */
struct account_moved *account_moved_new(struct store *store, struct organisation *organisation);
void                  account_moved_free(struct account_moved *m);
struct queue          account_moved_queue(struct account_moved *m);
