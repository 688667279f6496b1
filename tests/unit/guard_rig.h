/* guard_rig.h - the guard on a memory store, beside a simulated Innovation Sandbox in the simulated cloud, with a clock
 * that the test moves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "domain/hold.h"
#include "kernel/records.h"
#include "kernel_rig.h"
#include "providers/sim/cloud.h"
#include "service/guard/guard.h"
#include "service/hold/holds.h"
#include "store/memory/fault.h"

#define MINUTE_MS 60000ll
#define HOUR_MS   (60 * MINUTE_MS)

enum { GUARD_RIG_ACCOUNTS = 12 };

struct guard_rig {
	struct kernel_rig       rig;
	struct fault_plan       faults;
	uint64_t                chance;
	int64_t                 event_delay_ms; /* before opening; 0: 2 s */
	struct store           *sim_store;
	struct sim_cloud       *sim;
	struct guard           *guard;
	struct metrics         *metrics;
	struct hold_rules       rules; /* 72 h for billing, unless the test says otherwise */
	struct queue            queues[GUARD_QUEUES + 1];
	struct saga_kind        kinds[GUARD_KINDS];
	const struct saga_kind *kind_list[GUARD_KINDS];
	struct route            routes[GUARD_QUEUES + 1];
	struct str              accounts[GUARD_RIG_ACCOUNTS]; /* all in CleanUp, outside and in the table */
	struct err              err;                          /* of the last refusal */
	bool                    drops_events; /* CloudTrail's events stay where they are, until the test brings them */
};

void guard_rig_open(struct guard_rig *r);
void guard_rig_close(struct guard_rig *r);

/* A new process on the same records: what was in memory is gone. */
void guard_rig_restart(struct guard_rig *r);

/* Let time pass: CloudTrail's events come in when they are due, and all that becomes due is done. */
void pass(struct guard_rig *r, int64_t ms);

/* Until one saga has failed and waits to be tried again, within five minutes. */
void pass_until_retry(struct guard_rig *r);

/* What the other system does. It ends a cleanup with a move, and then writes its table. */
void       isb_ends_cleanup(struct guard_rig *r, struct str account);
void       isb_moves(struct guard_rig *r, struct str account, enum sim_ou_name to);
void       isb_writes(struct guard_rig *r, struct str account, const char *status);
struct str isb_status(struct guard_rig *r, struct str account); /* empty: not in its table */

/* An event as it comes through the inbox; a body in any of its forms. The number that was accepted. */
struct str event_text(struct guard_rig *r, const char *id, struct str account, enum sim_ou_name from,
                      enum sim_ou_name to, int64_t at_ms, const char *more);
size_t     send_body(struct guard_rig *r, struct str body);

/* The truth outside. */
enum sim_ou_name place_of(struct guard_rig *r, struct str account);
int64_t          moves_of(struct guard_rig *r, struct str account);
uint64_t         calls_of(struct guard_rig *r, enum world_call call);
bool             is_with(struct guard_rig *r, struct str account, enum sim_ou_name ou, const char *status);
void             set_tag(struct guard_rig *r, struct str account, const char *value);
bool             has_tag(struct guard_rig *r, struct str account);

/* From now on this goes wrong, so often (0: always); rules add up. */
void goes_wrong(struct guard_rig *r, enum world_fault fault, enum world_call call, int64_t count);
void goes_well(struct guard_rig *r);

/* Our records. */
struct holds open_holds(struct guard_rig *r, struct str account);
bool         is_held(struct guard_rig *r, struct str account);   /* in Quarantine, by one open hold */
struct hold  last_hold(struct guard_rig *r, struct str account); /* open or closed; must be there */
size_t       count_holds(struct guard_rig *r, struct str account);
size_t       count_timers(struct guard_rig *r, const char *prefix);
size_t       count_dead(struct guard_rig *r);

/* What was told: events guard:ACTION. */
size_t       count_actions(struct guard_rig *r, const char *action);
struct event last_action(struct guard_rig *r, const char *action);

enum rc release_early(struct guard_rig *r, struct str hold_id);

/* Do what is due, but lose the outcome of a call: the process ends after it, and a new one begins five minutes later.
 * 0: of the first call that is made; n: of call number n of the first saga. False: there was none. */
bool crash_after_call(struct guard_rig *r, int saga_calls);
