/* claims_pause.h - a stored switch: no sandbox is lent until a person says so. For when nobody knows what is lent. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "kernel/alarm/alarm.h"
#include "kernel/records.h"
#include "service/broker/sandbox_events.h"
#include "store/session.h"
#include "store/store.h"

/* What this process knows of it, for every claim: the stored switch is not read there. Reads may overtake changes, so
 * what is older than what is known is not taken over. */
struct claims_switch {
	atomic_uint_fast64_t state; /* the stored version, and in the lowest bit whether claims are paused */
};
bool claims_switch_is_paused(const struct claims_switch *w);

struct claims_pause;
void claims_switch_note(struct claims_switch *w, const struct claims_pause *p);

/* Read what is stored, as other processes may have changed it. Blocks. */
MUST_CHECK enum rc claims_switch_refresh(struct claims_switch *w, struct store *store, struct err *e);

/* The switch as it is; read-only. arg is a struct claims_pause. */
struct claims_pause {
	struct str   reason; /* of the pause; ERROR_MAX at most */
	struct actor by;     /* of a change */

	bool     is_paused; /* the answer, or what it should be */
	int64_t  since_ms;
	uint64_t version; /* of the stored switch; 0: there was never one */
};
txn_fn claims_pause_get;

/* Have it as is_paused says. A change is told: ClaimsPaused, ClaimsResumed. */
txn_fn claims_pause_set;

/* Pause in a store that no kernel serves yet, so nothing is told; arg is a struct str, the reason. */
txn_fn claims_pause_mark;

alarm_rule_fn alarm_claims_paused; /* arg is not used */
