/* sandbox.h - a sandbox of the pool: its states, the rule for each change. Pure: no store, no clock. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/ports/csp.h"

#define SANDBOX_STATES(X)                       \
	X(AVAILABLE, "available")               \
	X(ALLOCATED, "allocated")               \
	X(PENDING_DELETION, "pending_deletion") \
	X(STALE, "stale")                       \
	X(DELETION_FAILED, "deletion_failed")

/* The same for people. */
#define SANDBOX_STATES_TEXT "available, allocated, pending_deletion, stale or deletion_failed"

enum sandbox_state {
#define X(name, text) SANDBOX_##name,
	SANDBOX_STATES(X)
#undef X
	        SANDBOX_STATE_COUNT,
	SANDBOX_GONE = SANDBOX_STATE_COUNT /* not a stored state: the record is removed */
};

#define SANDBOX_EVENTS(X)                                     \
	X(SEEN, "seen by sync")                               \
	X(MISSED, "missed by sync")                           \
	X(CLAIM, "claimed")                                   \
	X(GIVE_BACK, "given back by its owner")               \
	X(EXPIRE, "expired")                                  \
	X(DELETED, "deleted at the CSP")                      \
	X(DELETE_LATER, "deletion failed, to be tried again") \
	X(GIVE_UP, "deletion failed too often")               \
	X(RETRY, "deletion retried by an operator")           \
	X(QUARANTINE, "put in quarantine by an operator")     \
	X(RELEASE_UNUSED, "released, never claimed")          \
	X(RELEASE_USED, "released, claimed before")           \
	X(DISCARD, "marked for deletion by an operator")      \
	X(REMOVE, "record removed by an operator or the stale job")

enum sandbox_event {
#define X(name, text) SANDBOX_ON_##name,
	SANDBOX_EVENTS(X)
#undef X
	        SANDBOX_EVENT_COUNT
};

enum {
	SANDBOX_ID_MAX = 128,
	SANDBOX_NAME_MAX = 256,
	SANDBOX_EXTERNAL_ID_MAX = 512,
	SANDBOX_OWNER_MAX = 128,
	SANDBOX_TEXT_MAX = 240,
	SANDBOX_HOURS_MAX = 24 * 365,
	SANDBOX_EVENT_ID_MAX = 36,
};

/* Times are Unix seconds; 0 means "not yet". */
struct sandbox {
	struct str         sandbox_id, name, external_id;
	enum sandbox_state status;
	struct str         allocated_to_track; /* the last owner; stays after the end of the allocation */
	struct str         idempotency_key, track_name, sfdc_account_id;
	int64_t            allocated_at, lab_duration_hours, deletion_requested_at, deletion_retry_count;
	int64_t            next_deletion_at; /* not before */
	struct str         last_error;
	struct str         quarantine_reason; /* set while an operator keeps it aside */
	int64_t            last_synced, created_at, updated_at;
	struct str         last_event; /* id of the last event about it; the service's, see sandbox_save() */
	uint64_t           version;
};

struct sandbox_step {
	enum sandbox_state from;
	enum sandbox_event on;
	enum sandbox_state to;
};

const char *sandbox_state_name(enum sandbox_state state);
bool        sandbox_state_parse(struct str name, enum sandbox_state *ret);

/* The names, for the record table. */
extern const char *const sandbox_state_names[SANDBOX_STATE_COUNT];

/* The row for this event in this state; NULL when it is not allowed. */
const struct sandbox_step *sandbox_step(enum sandbox_state from, enum sandbox_event on);

/* The whole table as text, one line per row. */
void sandbox_print_table(struct buf *b);

/* True when s keeps its own rules. Asserted before and after every change. */
bool sandbox_ok(const struct sandbox *s);

/* It was lent, or was to be deleted, or a part of a record from outside says so: it never becomes `available` again. */
bool sandbox_was_used(const struct sandbox *s);

/* The only writer of status. RC_CONFLICT: the event is not allowed in this state. */
MUST_CHECK enum rc sandbox_apply(struct sandbox *s, enum sandbox_event on, struct wall now, struct err *e);

int64_t sandbox_expires_at(const struct sandbox *s); /* 0 while it was never allocated */

/* Held by a track whose time is not over. */
bool sandbox_is_live(const struct sandbox *s, struct wall now);

/* A new record for an account of the vendor. Texts are borrowed from the account. */
struct sandbox sandbox_from_account(const struct csp_account *account, int64_t lab_hours, struct wall now);

/* Sync saw the account: takes over its name and number, brings a stale one back. False: nothing to store. */
MUST_CHECK bool sandbox_see(struct sandbox *s, const struct csp_account *account, struct wall now);

struct sandbox_claim {
	struct str owner;
	struct str idempotency_key; /* empty: the owner stands in */
	struct str track_name;
	int64_t    lab_hours;
};
MUST_CHECK enum rc sandbox_claim(struct sandbox *s, const struct sandbox_claim *claim, struct wall now, struct err *e);

/* May this owner look at it? RC_DENIED NOT_SANDBOX_OWNER. */
MUST_CHECK enum rc sandbox_check_owner(const struct sandbox *s, struct str owner, struct err *e);

/* The owner gives it back. *ret_is_changed is false when they had done so before.
 * RC_DENIED: NOT_SANDBOX_OWNER, ALLOCATION_EXPIRED. RC_CONFLICT: an operator has set it aside. */
MUST_CHECK enum rc sandbox_give_back(struct sandbox *s, struct str owner, struct wall now, bool *ret_is_changed,
                                     struct err *e);

/* Has nobody given it back in time? The expiry job's question. */
bool sandbox_is_orphaned(const struct sandbox *s, int64_t grace_sec, struct wall now);

/* A deletion failed: try again later, twice as late each time, or give up after max_attempts. */
MUST_CHECK enum rc sandbox_deletion_failed(struct sandbox *s, int64_t max_attempts, int64_t backoff_sec, struct str why,
                                           struct wall now, struct err *e);
MUST_CHECK enum rc sandbox_retry_deletion(struct sandbox *s, struct wall now, struct err *e);

MUST_CHECK enum rc sandbox_quarantine(struct sandbox *s, struct str reason, struct wall now, struct err *e);
MUST_CHECK enum rc sandbox_release(struct sandbox *s, struct wall now, struct err *e);

/* An operator has it deleted: ends its allocation, or its time aside. */
MUST_CHECK enum rc sandbox_discard(struct sandbox *s, struct wall now, struct err *e);

/* An owner id, key or prefix from outside: 1 to SANDBOX_OWNER_MAX visible ASCII characters. */
bool sandbox_is_label(struct str text);

/* A sandbox id: 1 to SANDBOX_ID_MAX of letters, digits and . _ : - / (in a URL the slash is written %2F). */
bool sandbox_is_id(struct str text);
