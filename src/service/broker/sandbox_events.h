/* sandbox_events.h - what the world is told about a sandbox: one event for each change, in its transaction. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/ports/caller.h"
#include "domain/sandbox.h"

struct session;

/* What the detail says on top of sandboxId, name, externalId and track. CHAINED: comes once in the life of every
 * sandbox, and needs no index by subject, because the record leads to it. */
enum { NEWS_EXPIRY = 1, NEWS_REASON = 2, NEWS_FAILURE = 4, NEWS_STATUS = 8, NEWS_CHAINED = 16 };

/* clang-format off */
#define SANDBOX_NEWS_TABLE(X)                                                                        \
	X(ALLOCATED,          "SandboxAllocated",          NEWS_EXPIRY | NEWS_CHAINED)               \
	X(MARKED,             "SandboxMarkedForDeletion",  NEWS_EXPIRY | NEWS_CHAINED)               \
	X(EXPIRED,            "SandboxExpired",            NEWS_EXPIRY)                              \
	X(DELETED,            "SandboxDeleted",            0)                                        \
	X(DELETION_POSTPONED, "SandboxDeletionPostponed",  NEWS_FAILURE) /* will be tried again */   \
	X(DELETION_FAILED,    "SandboxDeletionFailed",     NEWS_FAILURE) /* for good */              \
	X(DELETION_RETRIED,   "SandboxDeletionRetried",    0)                                        \
	X(STALE,              "SandboxStale",              0)                                        \
	X(QUARANTINED,        "SandboxQuarantined",        NEWS_REASON)                              \
	X(RELEASED,           "SandboxReleased",           NEWS_STATUS)                              \
	X(ADDED,              "SandboxAdded",              NEWS_CHAINED)                             \
	X(RESTORED,           "SandboxRestored",           0)                                        \
	X(REMOVED,            "SandboxRemoved",            0)  /* the record, not the sandbox at the CSP */
/* clang-format on */

/* What happens to every sandbox: for kernel_options.routine. */
#define SANDBOX_ROUTINE_EVENTS "SandboxAllocated,SandboxMarkedForDeletion,SandboxDeleted,SandboxAdded"

enum sandbox_news {
#define X(name, type, more) NEWS_SANDBOX_##name,
	SANDBOX_NEWS_TABLE(X)
#undef X
	        SANDBOX_NEWS_COUNT
};

/* What an event costs at most in a transaction: itself, and a lane and a place in it for each of up to three queues. */
enum { NEWS_QUEUES_MAX = 3, NEWS_ACTIONS = 1 + 2 * NEWS_QUEUES_MAX };

/* Store it as it is after the change, and tell it. The record names the event, and the event the one before it. */
MUST_CHECK enum rc sandbox_save(struct session *s, enum sandbox_news news, struct sandbox *sandbox,
                                const struct actor *by, struct err *e);

/* Remove its record, which was read in this session, and tell it. One that was ever lent leaves a tombstone. */
MUST_CHECK enum rc sandbox_remove(struct session *s, enum sandbox_news news, const struct sandbox *sandbox,
                                  const struct actor *by, struct err *e);

/* For kernel_options.chained and last_event. */
#define SANDBOX_SUBJECTS "sandbox/"
enum rc sandbox_last_event(struct session *s, struct str subject, struct str *ret, struct err *e);

/* The actor of a track's call. */
struct actor actor_of_track(struct session *s, struct str owner, struct str request_id);
