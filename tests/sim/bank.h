/* bank.h - what runs on the kernel in the simulation: accounts with events and timers, a queue that handles, one that
 * calls. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "store/record.h"

struct sim;
struct sim_node;

enum { BANK_LEDGER, BANK_COURIER, BANK_QUEUE_COUNT };
enum { BANK_ACCOUNTS = 8, BANK_POISONED = 0 /* this account's deliveries always fail, until it is healed */ };

struct bank_account {
	struct str id; /* "account/3" */
	int64_t    balance;
	int64_t    changes;
	int64_t    deadline_ms; /* a timer is armed for it; 0: none */
	int64_t    last_op;
	uint64_t   version;
};
enum { ACCOUNT_F_ID, ACCOUNT_F_BALANCE, ACCOUNT_F_CHANGES, ACCOUNT_F_DEADLINE, ACCOUNT_F_LAST_OP };
extern const struct record_type bank_account_type;

/* That the ledger has handled an event. */
struct bank_effect {
	struct str id; /* the event's */
	struct str subject;
	int64_t    count;
	uint64_t   version;
};
enum { EFFECT_F_ID, EFFECT_F_SUBJECT, EFFECT_F_COUNT };
extern const struct record_type bank_effect_type;

struct bank {
	struct queue queues[BANK_QUEUE_COUNT];
	int64_t      last_op;
	bool         is_healed; /* nothing fails any more */
};

extern const struct route bank_routes[];
extern const size_t       bank_route_count;

void bank_open(struct sim *sim);

/* Somebody changes an account, by this node. */
void bank_operate(struct sim_node *n);

/* An operator looks after dead letters and timers, by this node. */
void bank_operator(struct sim_node *n);

/* Replay all dead letters. False when there were none. */
bool bank_replay_all(struct sim_node *n);
