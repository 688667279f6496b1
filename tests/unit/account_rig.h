/* account_rig.h - the account side of the service on a memory store, with the simulated cloud outside and a clock that
 * the test moves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "domain/account.h"
#include "domain/lease.h"
#include "domain/policy.h"
#include "kernel_rig.h"
#include "providers/sim/cloud.h"
#include "service/pool/account_clean.h"
#include "service/account/account_follow.h"
#include "service/hold/holds.h"
#include "service/pool/accounts.h"
#include "service/lease/leases.h"
#include "store/memory/fault.h"

#define MINUTE_MS 60000ll
#define HOUR_MS   (60 * MINUTE_MS)
#define ANN       STR("Ann@example.com")
#define BOB       STR("bob@example.com")

struct account_rig {
	struct kernel_rig            rig;
	struct fault_plan            faults;
	struct sim_cloud_options     sim_options; /* what is not set here before opening is filled in */
	uint64_t                     chance;
	struct store                *sim_store;
	struct sim_cloud            *sim;
	struct cloud                 cloud;
	struct account_world        *world;
	struct account_clean_options clean;
	struct policy                policy;
	struct hold_rules            rules; /* none: nobody rests */
	struct saga_kind             kind;
	const struct saga_kind      *kinds[1];
	struct queue                 queues[3];
	struct err                   err; /* of the last refusal */
};

void account_rig_open(struct account_rig *r);
void account_rig_close(struct account_rig *r);

/* Number n of those in Entry. */
struct str nth_account(struct account_rig *r, size_t n);

/* A change by an operator, and what comes of it. */
enum rc        try_account(struct account_rig *r, txn_fn *run, struct str id);
void           do_account(struct account_rig *r, txn_fn *run, struct str id);
bool           has_account(struct account_rig *r, struct str id);
struct account get_account(struct account_rig *r, struct str id);

/* Register and let time pass until it is free. */
struct str add_free_account(struct account_rig *r, size_t n);

/* Lend the next free account to this person: the lease is in Provisioning, nothing has been done outside.
 * RC_EXHAUSTED. */
enum rc      try_lend(struct account_rig *r, struct str email, struct str approver, struct lease *ret);
struct lease lend(struct account_rig *r, struct str email);
struct lease get_lease(struct account_rig *r, struct str uuid);

/* What leases do with their account, each in a transaction of its own. */
enum rc try_lease(struct account_rig *r, struct str uuid, enum lease_event event);
void    freeze(struct account_rig *r, struct str uuid);
void    unfreeze(struct account_rig *r, struct str uuid);
void    take_back(struct account_rig *r, struct str uuid);

/* The truth outside. */
enum sim_ou_name where_is(struct account_rig *r, struct str id);
bool             may_use(struct account_rig *r, struct str id, enum cloud_principal kind, struct str who);
size_t           count_access(struct account_rig *r, struct str id);
void             outsider_moves(struct account_rig *r, struct str id, enum sim_ou_name to);

/* From now on this goes wrong, so often (0: always); one rule at a time. */
void goes_wrong(struct account_rig *r, enum world_fault fault, enum world_call call, int64_t count);
void goes_well(struct account_rig *r);

/* Events of this type, and the newest of them, which must be there. */
size_t       count_events(struct account_rig *r, const char *type);
struct event last_event(struct account_rig *r, const char *type);

/* How many sagas are in this state. */
int64_t count_sagas(struct account_rig *r, enum saga_state state);

/* Do what is due, but lose the outcome of the first call that is made: the process ends after it. False: no call was
 * due. */
bool crash_after_call(struct account_rig *r);

/* Clean one again that is clean and rests. */
void clean_resting(struct account_rig *r, struct str id);
