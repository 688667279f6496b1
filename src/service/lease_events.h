/* lease_events.h - what the world is told about a lease, in the transaction of the change; shared by the files of the lease service. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/lease.h"
#include "service/sandbox_events.h"

struct arena;
struct session;

/* What a detail says. */
enum {
	TELLS_KEY = 1 << 0,           /* leaseId: {userEmail, uuid} */
	TELLS_UUID = 1 << 1,          /* leaseId: the uuid alone */
	TELLS_USER = 1 << 2,          /* userEmail */
	TELLS_ACCOUNT = 1 << 3,       /* accountId */
	TELLS_AWS_ACCOUNT = 1 << 4,   /* awsAccountId, as the seed has it */
	TELLS_REQUEST = 1 << 5,       /* requiresManualApproval, comments, templateId, templateName */
	TELLS_APPROVER = 1 << 6,      /* approvedBy */
	TELLS_QUEUED_BY = 1 << 7,     /* approvedBy, of one in line */
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
	TELLS_PROJECTION = 1 << 18,
	TELLS_VALUES = 1 << 19, /* all that a manager can change */
};

/* The names without a mark are the contract's. */
/* clang-format off */
#define LEASE_NEWS_TABLE(X)                                                                                                          \
	X(REQUESTED,         "LeaseRequested",              TELLS_KEY | TELLS_USER | TELLS_REQUEST)                                  \
	X(QUEUED,            "LeaseQueued",                 TELLS_KEY | TELLS_USER | TELLS_QUEUED_BY)                 /* ours */      \
	X(CLAIMED,           "LeaseProvisioningStarted",    TELLS_KEY | TELLS_USER | TELLS_ACCOUNT | TELLS_APPROVER)  /* ours */      \
	X(APPROVED,          "LeaseApproved",               TELLS_UUID | TELLS_USER | TELLS_AWS_ACCOUNT | TELLS_APPROVER)            \
	X(DENIED,            "LeaseDenied",                 TELLS_UUID | TELLS_USER | TELLS_DENIER)                                  \
	X(WITHDRAWN,         "LeaseWithdrawn",              TELLS_KEY | TELLS_USER | TELLS_TEXT)                      /* ours */      \
	X(EDITED,            "LeaseEdited",                 TELLS_KEY | TELLS_ACCOUNT | TELLS_VALUES)                 /* ours */      \
	X(FROZEN,            "LeaseFrozen",                 TELLS_KEY | TELLS_ACCOUNT | TELLS_AWS_ACCOUNT | TELLS_FREEZE_REASON)     \
	X(UNFROZEN,          "LeaseUnfrozen",               TELLS_KEY | TELLS_ACCOUNT | TELLS_AWS_ACCOUNT | TELLS_LIMITS | TELLS_TEXT) \
	X(TERMINATED,        "LeaseTerminated",             TELLS_KEY | TELLS_ACCOUNT | TELLS_END_REASON)                            \
	X(PROVISIONING_FAILED, "LeaseProvisioningFailed",   TELLS_KEY | TELLS_ACCOUNT | TELLS_BLUEPRINT | TELLS_TEXT)                \
	X(OVER_BUDGET,       "LeaseBudgetExceeded",         TELLS_KEY | TELLS_ACCOUNT | TELLS_SPEND)                                 \
	X(EXPIRED,           "LeaseExpired",                TELLS_KEY | TELLS_ACCOUNT | TELLS_EXPIRY)                                \
	X(BUDGET_ALERT,      "LeaseBudgetThresholdAlert",   TELLS_KEY | TELLS_ACCOUNT | TELLS_SPEND | TELLS_BUDGET_ALERT)            \
	X(DURATION_ALERT,    "LeaseDurationThresholdAlert", TELLS_KEY | TELLS_ACCOUNT | TELLS_DURATION_ALERT)                        \
	X(FREEZING_ALERT,    "LeaseFreezingThresholdAlert", TELLS_KEY | TELLS_ACCOUNT | TELLS_FREEZE_REASON)                         \
	X(PROJECTION_ALERT,  "LeaseProjectedSpendAlert",    TELLS_KEY | TELLS_ACCOUNT | TELLS_SPEND | TELLS_PROJECTION) /* ours */
/* clang-format on */

enum lease_news {
#define X(name, type, what) NEWS_LEASE_##name,
	LEASE_NEWS_TABLE(X)
#undef X
	        LEASE_NEWS_COUNT
};

/* What is not in the lease. */
struct lease_fact {
	struct str                text;          /* TELLS_TEXT */
	struct str                freeze_reason; /* the alert's: the lease has none yet; empty: the lease's own */
	struct budget_threshold   budget;
	struct duration_threshold duration;
	int64_t                   projected;
};

/* Tell it; the lease is as it is after the change. fact may be NULL. */
MUST_CHECK enum rc lease_tell(struct session *s, enum lease_news news, const struct lease *l,
                              const struct lease_fact *fact, const struct actor *by, struct err *e);

/* Reasons, as JSON in the arena. */
struct str reason_of_comment(struct arena *a, const char *type, struct str comment);      /* {type, comment} */
struct str reason_of_end(struct arena *a, const struct lease *l, enum lease_event event); /* EXPIRE, EXCEED */
struct str reason_of_budget_freeze(struct arena *a, const struct lease *l, const struct budget_threshold *by);
struct str reason_of_duration_freeze(struct arena *a, const struct lease *l, const struct duration_threshold *by);
