/* lease_private.h - what the files of the lease service share. Nobody else includes this. All inside a transaction. */
#pragma once

#include "base/err.h"
#include "domain/ports/caller.h"
#include "domain/lease.h"
#include "service/pass/pass.h"
#include "store/session.h"

enum { DAY_SEC = 86400 };

/* --- what the world is told about a lease, in the transaction of the change (lease_events.c) --- */

/* What a detail says. */
enum {
	TELLS_KEY = 1 << 0,           /* leaseId: {userEmail, uuid} */
	TELLS_UUID = 1 << 1,          /* leaseId: the uuid alone */
	TELLS_USER = 1 << 2,          /* userEmail */
	TELLS_ACCOUNT = 1 << 3,       /* accountId */
	TELLS_AWS_ACCOUNT = 1 << 4,   /* awsAccountId, as the seed has it */
	TELLS_REQUEST = 1 << 5,       /* requiresManualApproval, comments, templateId, templateName */
	TELLS_APPROVER = 1 << 6,      /* approvedBy, and the reason if there is one */
	TELLS_QUEUED_BY = 1 << 7,     /* the same of one in line */
	TELLS_DENIER = 1 << 8,        /* deniedBy, reason as text */
	TELLS_FREEZE_REASON = 1 << 9, /* reason: the object */
	TELLS_END_REASON = 1 << 10,   /* reason: the object; terminatedBy */
	TELLS_LIMITS = 1 << 11,       /* maxBudget, leaseDurationInHours */
	TELLS_SPEND = 1 << 12,        /* budget, totalSpend */
	TELLS_EXPIRY = 1 << 13,       /* leaseExpirationDate, expirationDate */
	TELLS_BLUEPRINT = 1 << 14,    /* blueprintName */
	TELLS_TEXT = 1 << 15,         /* reason: a text */
	TELLS_BUDGET_ALERT = 1 << 16,
	TELLS_DURATION_ALERT = 1 << 17,
	TELLS_FORECAST = 1 << 18, /* estimatedSpend, projectedSpend, possibleOverrun, when they are known */
	TELLS_VALUES = 1 << 19,   /* all that a manager can change */
};

/* QUEUED, CLAIMED, WITHDRAWN, EDITED and PROJECTION_ALERT are ours; the others are the contract's. */
#define LEASE_NEWS_TABLE(X)                                                                                            \
	X(REQUESTED, "LeaseRequested", TELLS_KEY | TELLS_USER | TELLS_REQUEST)                                         \
	X(QUEUED, "LeaseQueued", TELLS_KEY | TELLS_USER | TELLS_QUEUED_BY)                                             \
	X(CLAIMED, "LeaseProvisioningStarted", TELLS_KEY | TELLS_USER | TELLS_ACCOUNT | TELLS_APPROVER)                \
	X(APPROVED, "LeaseApproved", TELLS_UUID | TELLS_USER | TELLS_AWS_ACCOUNT | TELLS_APPROVER)                     \
	X(DENIED, "LeaseDenied", TELLS_UUID | TELLS_USER | TELLS_DENIER)                                               \
	X(WITHDRAWN, "LeaseWithdrawn", TELLS_KEY | TELLS_USER | TELLS_TEXT)                                            \
	X(EDITED, "LeaseEdited", TELLS_KEY | TELLS_ACCOUNT | TELLS_VALUES)                                             \
	X(FROZEN, "LeaseFrozen", TELLS_KEY | TELLS_ACCOUNT | TELLS_AWS_ACCOUNT | TELLS_FREEZE_REASON | TELLS_FORECAST) \
	X(UNFROZEN, "LeaseUnfrozen", TELLS_KEY | TELLS_ACCOUNT | TELLS_AWS_ACCOUNT | TELLS_LIMITS | TELLS_TEXT)        \
	X(TERMINATED, "LeaseTerminated", TELLS_KEY | TELLS_ACCOUNT | TELLS_END_REASON | TELLS_FORECAST)                \
	X(PROVISIONING_FAILED, "LeaseProvisioningFailed", TELLS_KEY | TELLS_ACCOUNT | TELLS_BLUEPRINT | TELLS_TEXT)    \
	X(OVER_BUDGET, "LeaseBudgetExceeded", TELLS_KEY | TELLS_ACCOUNT | TELLS_SPEND | TELLS_FORECAST)                \
	X(EXPIRED, "LeaseExpired", TELLS_KEY | TELLS_ACCOUNT | TELLS_EXPIRY)                                           \
	X(BUDGET_ALERT, "LeaseBudgetThresholdAlert",                                                                   \
	  TELLS_KEY | TELLS_ACCOUNT | TELLS_SPEND | TELLS_BUDGET_ALERT | TELLS_FORECAST)                               \
	X(DURATION_ALERT, "LeaseDurationThresholdAlert", TELLS_KEY | TELLS_ACCOUNT | TELLS_DURATION_ALERT)             \
	X(FREEZING_ALERT, "LeaseFreezingThresholdAlert", TELLS_KEY | TELLS_ACCOUNT | TELLS_FREEZE_REASON)              \
	X(PROJECTION_ALERT, "LeaseProjectedSpendAlert", TELLS_KEY | TELLS_ACCOUNT | TELLS_SPEND | TELLS_FORECAST)

enum lease_news {
#define X(name, type, what) NEWS_LEASE_##name,
	LEASE_NEWS_TABLE(X)
#undef X
	        LEASE_NEWS_COUNT
};

/* What is not in the lease. */
struct lease_fact {
	struct str       text;          /* TELLS_TEXT */
	struct str       freeze_reason; /* the alert's: the lease has none yet; empty: the lease's own */
	struct threshold budget, duration;
};

/* Tell it; the lease is as it is after the change. fact may be NULL. */
MUST_CHECK enum rc lease_tell(struct session *s, enum lease_news news, const struct lease *l,
                              const struct lease_fact *fact, const struct actor *by, struct err *e);

/* Reasons, as JSON in the arena. */
struct str reason_of_comment(struct arena *a, const char *type, struct str comment); /* {type, comment} */
struct str reason_of_end(struct arena *a, const struct lease_watch *w);              /* EXPIRE, EXCEED */
struct str reason_of_freeze(struct arena *a, const struct lease_watch *w);

/* --- its life (lease_life.c) --- */

/* A person, as actor of events: his email, as much as fits. */
struct actor actor_of_caller(const struct caller *c);

/* RC_NOT_FOUND with a sentence. */
MUST_CHECK enum rc lease_load(struct session *s, struct str uuid, struct lease *ret, struct err *e);

/* The lease of a call, checked against its owner; it is kept as long as the call's policy says. */
struct lease_call;
MUST_CHECK enum rc lease_load_called(struct session *s, struct lease_call *c, struct err *e);

/* A template that this caller (NULL: anybody) may see. RC_NOT_FOUND. */
struct lease_template;
MUST_CHECK enum rc template_load(struct session *s, const struct caller *by, struct str uuid,
                                 struct lease_template *ret, struct err *e);

/* Put it, with what follows from other fields. It must have been read in this session. */
void lease_store(struct session *s, struct lease *l);

/* One more live lease of its owner. RC_CONFLICT: that would be more than max. */
MUST_CHECK enum rc lessee_add(struct session *s, const struct lease *l, int64_t max, struct err *e);

/* Both timers as the lease needs them now: armed, set anew, or cancelled. Two actions. */
MUST_CHECK enum rc lease_arm(struct session *s, const struct lease *l, struct err *e);

/* Does the account belong to this lease? Then *ret is true. */
MUST_CHECK enum rc lease_has_account(struct session *s, const struct lease *l, bool *ret, struct err *e);

/* End a monitored lease: status, end, removal date, counter, timers, LeaseTerminated. With clean_reason its account
 * is taken back. RC_CONFLICT: it has ended already, or was never approved. */
struct lease_ending {
	enum lease_event    event;
	struct str          reason_json;
	struct str          clean_reason; /* empty: the account is somebody else's business */
	const struct actor *by;
};
MUST_CHECK enum rc lease_finish(struct session *s, struct lease *l, const struct lease_ending *end, struct err *e);

/* Freeze it and its account, for this reason, and tell. RC_CONFLICT unless it is Active. */
MUST_CHECK enum rc lease_freeze_for(struct session *s, struct lease *l, struct str reason_json, const struct actor *by,
                                    struct err *e);

/* DENY or WITHDRAW a pending one. The reason may be empty. */
MUST_CHECK enum rc lease_refuse(struct session *s, struct lease *l, enum lease_event event, struct str who,
                                struct str reason, const struct actor *by, struct err *e);

/* Give a pending lease an account, or a place in line when none is free or others wait. Tells, but does not store. */
MUST_CHECK enum rc lease_grant(struct session *s, struct lease *l, struct str approver, const struct actor *by,
                               struct err *e);

/* --- the line (lease_line.c) --- */

/* An account became free: whoever is next in line should hear of it. */
MUST_CHECK enum rc line_poke(struct session *s, struct err *e);

MUST_CHECK enum rc line_is_empty(struct session *s, bool *ret, struct err *e);

/* To the end of it; does not store. */
MUST_CHECK enum rc lease_line_join(struct session *s, struct lease *l, struct str approver, const struct actor *by,
                                   struct err *e);

/* Its place, from 1 (0: not in line), and when its turn may come (0: unknown) if accounts rest for rest_ms. */
MUST_CHECK enum rc line_place(struct session *s, const struct lease *l, int64_t rest_ms, int64_t *ret_position,
                              int64_t *ret_estimate_ms, struct err *e);

/* --- the passes (lease_sweep.c) --- */

/* The pages of this query for each of these statuses. */
MUST_CHECK enum rc lease_walk(const struct pass *p, struct query q, const int *statuses, size_t count,
                              pass_page_fn *visit, void *arg, struct err *e);
