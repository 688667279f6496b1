/* guard.h - what to do when another system has moved an account. Pure.
 *
 * The rules are read from the top: the first whose condition holds decides. */
#pragma once

#include "base/str.h"

/* What is known when the event is looked at. Ids of OUs; a status is the other system's. */
struct guard_facts {
	struct str source, destination; /* of the move */
	struct str cleanup, available, quarantine;
	bool       has_failed;    /* the call had an error: nothing was moved */
	bool       is_repeat;     /* this move was decided about already */
	bool       is_old;        /* a later move of the account was seen already */
	bool       has_open_hold; /* of ours */
	bool       is_tracked;    /* the other system's table has the account */
	struct str status;        /* in that table; empty: not tracked */
	bool       is_tagged;     /* the tag that lets it pass once; a look that failed counts as no */
	bool       ejects;        /* accounts are not lent twice */
};

/* X(name, log action, reason in a log line) */
/* clang-format off */
#define GUARD_OUTCOMES(X)                                                                             \
	X(FAILED_CALL,      "EVENT_IGNORED",         "the call failed, nothing was moved")            \
	X(REPEAT,           "EVENT_IGNORED",         "this move was handled already")                  \
	X(OLD,              "EVENT_IGNORED",         "a later move of the account was handled already") \
	X(CLEANED_AGAIN,    "QUARANTINE_ENDED",      "the account is cleaned again")                  \
	X(LOCKED,           "QUARANTINE_LOCKED",     "the other system has quarantined the account")  \
	X(ELSEWHERE,        "EVENT_IGNORED",         "destination OU is not Available")               \
	X(NOT_TRACKED,      "QUARANTINE_SKIP",       "account not found in tracking")                 \
	X(QUARANTINED,      "QUARANTINE_SKIP",       "account already in Quarantine status")          \
	X(NOT_FROM_CLEANUP, "QUARANTINE_SKIP",       "source OU is not CleanUp")                      \
	X(LEASED,           "QUARANTINE_FLAGGED",    "a lease has the account already")               \
	X(BYPASS,           "QUARANTINE_BYPASS_TAG", "the account has the tag do-not-separate")       \
	X(EJECT,            "EJECT_START",           "accounts are not lent twice")                   \
	X(HOLD,             "QUARANTINE_START",      "after its cleanup")
/* clang-format on */

enum guard_outcome {
#define X(name, action, reason) GUARD_##name,
	GUARD_OUTCOMES(X)
#undef X
	        GUARD_OUTCOME_COUNT
};
extern const char *const guard_outcome_actions[GUARD_OUTCOME_COUNT];
extern const char *const guard_outcome_reasons[GUARD_OUTCOME_COUNT];

enum guard_outcome guard_decide(const struct guard_facts *f);

/* Does deciding need a look at the table, and at the tag? Calls that are not needed are not made: an account whose
 * move does not concern us costs none. */
bool guard_needs_table(const struct guard_facts *f);
bool guard_needs_tag(const struct guard_facts *f);

/* A lease has it, by its status in the table. */
bool guard_is_leased(struct str status);

/* --- the end of a hold --- */

/* May a hold be ended by moving the account back? GUARD_RELEASE, or why it is only closed. X(name, reason) */
#define GUARD_RELEASES(X)                                           \
	X(RELEASE, "its time has come")                             \
	X(RELEASE_UNTRACKED, "account not found in tracking")       \
	X(RELEASE_AVAILABLE, "account already in Available status") \
	X(RELEASE_STATUS, "account not in Quarantine status")       \
	X(RELEASE_PLACE, "account not in the Quarantine OU")

enum guard_release {
#define X(name, reason) GUARD_##name,
	GUARD_RELEASES(X)
#undef X
	        GUARD_RELEASE_COUNT
};
extern const char *const guard_release_reasons[GUARD_RELEASE_COUNT];

/* place is the id of the OU where it really is; in Available it is moved already, and only the table has to follow. */
enum guard_release guard_decide_release(bool is_tracked, struct str status, struct str place, struct str quarantine,
                                        struct str available);
