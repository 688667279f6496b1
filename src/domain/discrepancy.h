/* discrepancy.h - where an account is, what the records say of it, and what is wrong when the two differ. Pure. */
#pragma once

#include "base/clock.h"
#include "base/str.h"
#include "domain/hold.h"

/* In the order in which they are looked for; the name, and whether there is a safe way to put it right by itself:
 * never one that makes an account free. */
#define DISCREPANCIES(X)                                                                                              \
	X(NONE, "none", false)                                                                                        \
	X(LENT_AT_REST, "lent-at-rest", false)      /* in Quarantine, with a lease on it: a person decides */         \
	X(UNRECORDED_REST, "unrecorded-rest", true) /* in Quarantine, the record says free: the record follows */     \
	X(REST_ELSEWHERE, "rest-elsewhere", true)   /* the record says it rests, it is in another OU: brought back */ \
	X(MISPLACED, "misplaced", false)            /* any other difference; the drift monitor locks it away */       \
	X(NO_HOLD, "no-hold", true)                 /* it rests, and nothing holds it: it gets a hold */              \
	X(BYPASS, "bypass", true)                   /* free after a cleanup without a rest on record: it rests */     \
	X(LENT_BYPASS, "lent-bypass", false)        /* the same, and lent already */                                  \
	X(NO_TIMER, "no-timer", true)               /* a hold that nothing would release: armed again */              \
	X(EVENTS_SILENT, "events-silent", false)    /* accounts were cleaned, and no event told of a move */          \
	X(STUCK_MOVE, "stuck-move", true)           /* beside another system: a move of ours that has stalled */      \
	X(STALE_HOLD, "stale-hold", true)      /* the same: held, but lent, cleaned or gone: the hold is closed */    \
	X(LEFT_REST, "left-rest", false)       /* the same: held, but in Available by hand: a person decides */       \
	X(FOREIGN_REST, "foreign-rest", false) /* the same: in Quarantine, and not by us */

enum discrepancy {
#define X(name, text, heals) DISCREPANCY_##name,
	DISCREPANCIES(X)
#undef X
	        DISCREPANCY_COUNT
};
extern const char *const discrepancy_names[DISCREPANCY_COUNT];
extern const bool        discrepancy_heals[DISCREPANCY_COUNT];

/* What the records say; the lease service and another system's account table each have their own words for it. */
enum said { SAID_FREE, SAID_RESTING, SAID_LOCKED, SAID_LENT, SAID_ELSE };

struct pool_view {
	struct str id;
	enum said  said;
	struct str status;      /* in the records' own words */
	struct str expected_ou; /* where it should be then */
	bool       is_busy;     /* is being moved, or was changed since the listing began: nothing can be concluded */
	bool       has_lease;
	int64_t    cleaned_ms; /* when its last cleanup was seen to end; 0: never */
	bool   is_accounted;   /* what followed that cleanup is on file: a hold, a bypass, an exemption, an ejection */
	size_t open_holds;     /* as its list of holds says */
	bool   is_handed_over; /* its last hold was handed to another system, which frees it */

	/* Beside another system only. */
	bool   is_guarded;
	bool   is_tracked; /* its table has it */
	bool   is_stuck;   /* a move of ours was begun, has stopped, and nothing will go on with it */
	bool   is_ours;    /* no hold is open, and the last one was closed without bringing it back */
	size_t held;       /* open holds that have brought it to Quarantine */
};

/* What is wrong with it; ou: where the organisation has it, empty: in none of the pool's. */
enum discrepancy discrepancy_judge(const struct pool_view *v, struct str ou);

/* One sentence for people. */
struct str discrepancy_text(enum discrepancy d, const struct pool_view *v, struct str ou, struct arena *a);

/* Until when an account found without a hold rests: what its cleanup would have led to, as far as it lies ahead. */
int64_t discrepancy_due_ms(const struct hold_rules *rules, struct str account_name, int64_t cleaned_ms,
                           struct wall now);

/* A timed hold whose timer is not armed: is that wrong, or is its release under way? */
enum { RELEASE_TAKES_MS = 120000 };
bool hold_is_forgotten(const struct hold *h, struct wall now);

/* --- how long the free ones last --- */

struct runway {
	int64_t ready;       /* free now */
	int64_t next_due_ms; /* the next one that comes back from its rest; 0: none rests */
	int64_t used;        /* lent within the last span_ms */
	int64_t span_ms;
	int64_t horizon_ms; /* what is cleaned now comes back after this */
};

/* When the free ones are used up at the present rate, when that is before the next ones come back; 0: they last. */
int64_t runway_ends_ms(const struct runway *r, struct wall now);
