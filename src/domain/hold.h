/* hold.h - why an account may not be lent yet, and until when. Pure.
 *
 * An account that was cleaned rests: it becomes Available when its last hold is closed. What a hold is for decides
 * how long it lasts. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

/* The first three come by themselves at the end of a cleanup, each when its rule has hours. The next two lock an
 * account away: it is in Quarantine, and leaves it by a cleanup that succeeds, or for good. The last two are a
 * person's, and the exemption of a newcomer. */
#define HOLD_REASONS(X)         \
	X(BILLING, "billing")   \
	X(METADATA, "metadata") \
	X(QUOTA, "quota")       \
	X(FAILED_CLEANUP, "failed-cleanup") X(DRIFT, "drift") X(MANUAL, "manual") X(NEW_ACCOUNT, "new-account")

enum hold_reason {
#define X(name, text) HOLD_##name,
	HOLD_REASONS(X)
#undef X
	        HOLD_REASON_COUNT
};
extern const char *const hold_reason_names[HOLD_REASON_COUNT];

/* How a hold is, or how it ended. */
/* clang-format off */
#define HOLD_STATES(X)                      \
	X(OPEN, "open")                     \
	X(RELEASED, "released")             \
	X(RELEASED_EARLY, "released-early") \
	X(CANCELLED, "cancelled")           \
	X(BYPASSED, "bypassed")             \
	X(EXEMPT, "exempt")                 \
	X(EJECTED, "ejected")               \
	X(CLEANED_AGAIN, "cleaned-again")   \
	X(SKIPPED, "skipped")               \
	X(HANDED_OVER, "handed-over")
/* clang-format on */

enum hold_state {
#define X(name, text) HOLD_##name,
	HOLD_STATES(X)
#undef X
	        HOLD_STATE_COUNT
};
extern const char *const hold_state_names[HOLD_STATE_COUNT];

/* Whose accounts: ours, or those of another system beside which we stand guard. */
#define HOLD_MODES(X) X(NATIVE, "native") X(GUARD, "guard")

enum hold_mode {
#define X(name, text) HOLD_##name,
	HOLD_MODES(X)
#undef X
	        HOLD_MODE_COUNT
};
extern const char *const hold_mode_names[HOLD_MODE_COUNT];

enum {
	HOLD_ID_SIZE = 27,   /* 12 digits, '-', 13 digits, NUL */
	HOLD_NAME_SIZE = 64, /* of the schedule: the longest name that a scheduler outside takes, and NUL */
	HOLD_NOTE_MAX = 1000,
	HOLDS_OPEN_MAX = 16,      /* of one account: as many as one transaction can close, with what follows */
	HOLDS_BY_PERSONS_MAX = 5, /* leaves room for those that come by themselves, and for locking it away */
	HOLD_POOLS_MAX = 16,
	HOLD_HOURS_MAX = 24 * 3650,
	HOLD_PADDING_HOURS = 8, /* that a lease's statement counts before its start and after its end */
};
#define HOLD_HOUR_MS      INT64_C(3600000)
#define HOLD_NAME_PREFIX  "isb-billing-sep-unquarantine-" /* of everything that is visible outside (FR11, FR25) */
#define HOLD_BYPASS_TAG   "do-not-separate"
#define HOLD_RELEASING    "releasing" /* in placement: its timer has done its work */
#define HOLD_METADATA_91D (91 * 24)   /* the preset that outlives 90 days of history */

struct hold {
	struct str       id;      /* "ACCOUNT-MS": the time it was made; no two of an account have the same */
	struct str       account; /* 12 digits */
	enum hold_reason reason;
	enum hold_mode   mode;
	enum hold_state  state;
	int64_t          is_open;      /* 1, or 0: for the index */
	int64_t          locks;        /* 1: the account is in Quarantine because of it */
	int64_t          created_ms;   /* also in the id */
	int64_t          due_ms;       /* 0: until a person closes it */
	struct str       created_by;   /* a person's email, or the part of us */
	struct str       note;         /* why, in words */
	struct str       source_event; /* id of the event that led to it */
	struct str       lease_uuid;   /* of the lease whose costs are waited for */
	struct str placement;  /* guard: how far the move outside is: "intended", "held", "releasing", "released" */
	int64_t    attempts;   /* guard: of the move under way */
	struct str last_error; /* guard: of the last one that failed */
	int64_t    closed_ms;
	struct str closed_by, closed_why;
	uint64_t   version;
};

bool hold_ok(const struct hold *h);

/* --- rules --- */

/* How long, by reason; for a pool (accounts whose name begins so) the hours that are set there win. */
struct hold_pool {
	struct str prefix;
	int64_t    hours[HOLD_REASON_COUNT]; /* -1: as for all */
};

struct hold_rules {
	int64_t          hours[HOLD_REASON_COUNT]; /* BILLING, METADATA and QUOTA are used; 0: no such hold */
	int64_t          padding_hours;            /* of a statement's window, on both sides */
	int64_t          grace_hours;              /* overdue by more than this: an alarm */
	bool             exempts_new;              /* an account that was never lent has nothing to settle */
	bool             ejects;                   /* never lent again: out of the pool after its cleanup */
	struct hold_pool pools[HOLD_POOLS_MAX];
	size_t           pool_count;
};

/* 72 h for billing, nothing else; 8 h of padding and of grace; newcomers are exempt. */
void hold_rules_defaults(struct hold_rules *ret);

/* "lab-:billing=48,metadata=2184;play-:billing=40": add these pools; texts stay the input's. RC_INVALID says where. */
MUST_CHECK enum rc hold_rules_read_pools(struct hold_rules *rules, struct str text, struct err *e);

/* RC_INVALID: a billing hold is too short to keep the bills of two leases apart for certain: it takes 24 h and twice
 * the padding. 0 is allowed: bills need not be kept apart. */
MUST_CHECK enum rc hold_rules_check(const struct hold_rules *rules, struct err *e);

/* Hours of a hold for this reason of an account with this name. */
int64_t hold_hours(const struct hold_rules *rules, struct str account_name, enum hold_reason reason);

/* The longest of the rests that follow a cleanup, and its reason; 0: none is configured. */
int64_t hold_longest_hours(const struct hold_rules *rules, struct str account_name, enum hold_reason *ret_reason);

/* --- one hold --- */

/* The id of a hold made now; *last_ms is when the account's last one was made, and is brought forward. */
struct str hold_make_id(struct str account, struct wall now, int64_t *last_ms, struct arena *a);

/* What its release is called outside, and its timer here. */
struct str hold_schedule_name(const struct hold *h, struct arena *a);

/* Is it open, and its time reached? Never one millisecond before. */
bool hold_is_due(const struct hold *h, struct wall now);

/* Close it. RC_CONFLICT: it is closed already. */
MUST_CHECK enum rc hold_close(struct hold *h, enum hold_state how, struct str by, struct str why, struct wall now,
                              struct err *e);

/* Have it last until then: longer or shorter, but not into the past. RC_CONFLICT: closed, locks the account
 * away, or is being released; RC_INVALID: not after now. */
MUST_CHECK enum rc hold_extend(struct hold *h, int64_t due_ms, struct wall now, struct err *e);
