/* account.h - an account of the pool: where it should be (its status names its OU), where it is, who holds it. Pure. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

/* The first five are upstream's, with the names of their OUs; Exit is the way out of the pool. An account in cooldown
 * is in the OU Quarantine, and upstream's clients see that as its status: account_ou_names[] has what they know. */
#define ACCOUNT_STATUSES(X)                       \
	X(AVAILABLE, "Available", "Available")    \
	X(ACTIVE, "Active", "Active")             \
	X(CLEANUP, "CleanUp", "CleanUp")          \
	X(QUARANTINE, "Quarantine", "Quarantine") \
	X(FROZEN, "Frozen", "Frozen") X(EXIT, "Exit", "Exit") X(COOLDOWN, "Cooldown", "Quarantine")

enum account_status {
#define X(name, text, ou) ACCOUNT_##name,
	ACCOUNT_STATUSES(X)
#undef X
	        ACCOUNT_STATUS_COUNT
};
extern const char *const account_status_names[ACCOUNT_STATUS_COUNT];
extern const char *const account_ou_names[ACCOUNT_STATUS_COUNT];

/* Why a cleanup is requested: account.clean_reason. */
#define CLEAN_FOR_REGISTRATION "ACCOUNT_REGISTRATION"
#define CLEAN_AFTER_LEASE      "LEASE_TERMINATION"
#define CLEAN_AFTER_FAILURE    "RETRY_FAILED_CLEANUP"

/* The status is where it should be; `placed` is where it is known to be, `granted` who is known to have access. While
 * they differ from the target, a saga moves the world after the record: one at a time for an account. */
struct account {
	struct str          id; /* 12 digits */
	struct str          name, email;
	enum account_status status;
	struct str          placed_ou;              /* name of the OU, "Entry" before it was registered */
	struct str          holder;                 /* who should have access; empty: nobody */
	struct str          granted;                /* who has; empty: nobody */
	struct str          lease_uuid;             /* the live lease on it */
	int64_t             follow_number;          /* of the last saga that follows it */
	int64_t             is_following;           /* 1: it is under way */
	int64_t             has_drifted;            /* at the last scan */
	struct str          clean_run;              /* id of the last cleanup */
	int64_t    clean_started_ms, cleaned_ms;    /* cleaned_ms: the last one that succeeded; orders the free ones */
	int64_t    clean_successes, clean_failures; /* of the run under way */
	struct str clean_reason; /* why it was asked for: ACCOUNT_REGISTRATION, LEASE_TERMINATION, ... */
	struct str clean_log;    /* the last run's own words */
	struct str reason;       /* why it is in quarantine */
	struct str last_lease;   /* the last lease on it that is over: whose costs are still coming in */
	int64_t    rested_ms;    /* when its last hold was closed, after the last cleanup */
	int64_t    open_holds,
	        rest_until_ms; /* for people: how many; in cooldown, the latest due time; 0: until a person says so */
	int64_t  created_ms, edited_ms;
	uint64_t version;
};

/* What always holds: Active has a holder and a lease, Frozen a lease, all others neither. Available has rested after
 * its last cleanup, and nothing holds it. */
bool account_ok(const struct account *a);

enum account_event {
	ACCOUNT_ON_REGISTER,
	ACCOUNT_ON_LEND,
	ACCOUNT_ON_FREEZE,
	ACCOUNT_ON_UNFREEZE,
	ACCOUNT_ON_TAKE_BACK,
	ACCOUNT_ON_CLEANED,
	ACCOUNT_ON_RELEASE, /* its last hold is closed */
	ACCOUNT_ON_HOLD,    /* a person holds it */
	ACCOUNT_ON_QUARANTINE,
	ACCOUNT_ON_RETRY,
	ACCOUNT_ON_EJECT,
	ACCOUNT_EVENT_COUNT
};

struct account_step {
	uint32_t            from; /* bit n: status n */
	enum account_status to;
	const char         *done; /* as in "cannot be lent" */
};

/* The row for this event in this status; NULL: not allowed. Registering has no row: nothing is stored before it. */
const struct account_step *account_step(enum account_status from, enum account_event on);

/* The only writer of status. An account that leaves Active loses its holder; one that is lent gets holder and
 * lease_uuid from the caller, who also clears lease_uuid when the lease is over. REGISTER is for an account that was
 * never stored (version 0). RC_CONFLICT: not from this status. */
MUST_CHECK enum rc account_apply(struct account *a, enum account_event on, struct wall now, struct err *e);

/* Does the world still have to follow? */
bool account_must_follow(const struct account *a);
