/* hold_safety.h - may we be removed, or would that strand an account? */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

/* Nothing stands against it when all counts are 0. Read-only. */
struct hold_safety {
	bool    is_safe;
	int64_t open;                     /* holds; of these */
	int64_t timed;                    /* end by themselves */
	int64_t by_person;                /* until a person closes them */
	int64_t locked;                   /* lock an account away */
	int64_t moving;                   /* are on their way in or out: a guard's move is not done */
	int64_t sagas;                    /* long operations under way, parked ones too */
	int64_t waiting;                  /* subjects with events from outside, or due holds, that are not handled */
	int64_t dead;                     /* dead letters of these */
	int64_t next_due_ms, last_due_ms; /* of the timed ones; 0: none */
};
txn_fn hold_safety;
