/* lease.h - a lease: one person, one account, for a time and a budget. Its states, and every decision about it.
 * Pure. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/policy.h"

enum {
	LEASE_UUID_MAX = 36,
	EMAIL_MAX = 254,
	TEMPLATE_NAME_MAX = 50,
	COMMENTS_MAX = 1000,
	REASON_MAX = 1000,
	THRESHOLDS_MAX = 20,
	ACCOUNT_ID_MAX = 12,
	LEASE_ID_MAX = 512, /* base64 of the longest email and a uuid, with room for blanks */
	LEASE_USD = 1000000,
	LEASE_HOUR_MS = 3600000,
};

/* Group: which fields a status has, see contract 2.1. */
#define LEASE_STATUSES(X)                                   \
	X(PENDING_APPROVAL, "PendingApproval", PENDING)     \
	X(APPROVAL_DENIED, "ApprovalDenied", DENIED)        \
	X(PROVISIONING, "Provisioning", MONITORED)          \
	X(ACTIVE, "Active", MONITORED)                      \
	X(FROZEN, "Frozen", MONITORED)                      \
	X(EXPIRED, "Expired", ENDED)                        \
	X(BUDGET_EXCEEDED, "BudgetExceeded", ENDED)         \
	X(MANUALLY_TERMINATED, "ManuallyTerminated", ENDED) \
	X(ACCOUNT_QUARANTINED, "AccountQuarantined", ENDED) \
	X(EJECTED, "Ejected", ENDED)                        \
	X(PROVISIONING_FAILED, "ProvisioningFailed", ENDED)

enum lease_status {
#define X(name, text, group) LEASE_##name,
	LEASE_STATUSES(X)
#undef X
	        LEASE_STATUS_COUNT
};
enum lease_group { LEASE_GROUP_PENDING, LEASE_GROUP_DENIED, LEASE_GROUP_MONITORED, LEASE_GROUP_ENDED };

extern const char *const lease_status_names[LEASE_STATUS_COUNT];
enum lease_group         lease_group(enum lease_status status);
bool lease_is_live(enum lease_status status); /* counts against the limit per user: pending or monitored */

#define LEASE_EVENTS(X)                                                                          \
	X(APPROVE, "approve") /* an account is claimed, access follows */                        \
	X(PUBLISH, "publish") /* access works */                                                 \
	X(DENY, "deny")                                                                          \
	X(WITHDRAW, "withdraw") /* by its owner, while pending */                                \
	X(RESET, "reset")       /* provisioning failed, approved by a person: back to pending */ \
	X(FAIL, "fail")         /* provisioning failed, approved by rule */                      \
	X(FREEZE, "freeze")                                                                      \
	X(UNFREEZE, "unfreeze")                                                                  \
	X(EXPIRE, "expire")                                                                      \
	X(EXCEED, "exceed the budget")                                                           \
	X(TERMINATE, "terminate")                                                                \
	X(QUARANTINE, "quarantine")                                                              \
	X(EJECT, "eject")

enum lease_event {
#define X(name, text) LEASE_ON_##name,
	LEASE_EVENTS(X)
#undef X
	        LEASE_EVENT_COUNT
};
extern const char *const lease_event_names[LEASE_EVENT_COUNT];

struct lease_step {
	uint32_t          from; /* bit n: status n */
	enum lease_status to;
};

/* The row for this event in this status; NULL when it is not allowed. */
const struct lease_step *lease_step(enum lease_status from, enum lease_event on);

enum threshold_action { THRESHOLD_ALERT, THRESHOLD_FREEZE, THRESHOLD_ACTION_COUNT };
extern const char *const threshold_action_names[THRESHOLD_ACTION_COUNT]; /* ALERT, FREEZE_ACCOUNT */

struct threshold {
	int64_t               at; /* budget: what was spent, in millionths of a dollar; duration: ms that are left */
	enum threshold_action action;
};
struct threshold_list {
	struct threshold items[THRESHOLDS_MAX];
	size_t           count;
};
struct thresholds {
	struct threshold_list budget, duration;
};

/* What follows when spend that is not billed yet would pass the budget; the operator's policy says. */
enum overrun_action { OVERRUN_ALERT, OVERRUN_FREEZE, OVERRUN_END, OVERRUN_ACTION_COUNT };
extern const char *const overrun_action_names[OVERRUN_ACTION_COUNT]; /* alert, freeze, end */

/* As stored. Amounts in millionths of a dollar, times in ms, 0: none. */
struct lease {
	struct str        uuid;
	struct str        user_email; /* as it was given */
	struct str        user_key;   /* lower case: what is compared */
	enum lease_status status;
	struct str        template_uuid, template_name, comments, created_by, blueprint_id, blueprint_name;
	int64_t           max_spend;
	struct str        budget_thresholds; /* JSON: [{"dollarsSpent", "action"}] */
	int64_t           duration_ms;
	struct str        duration_thresholds; /* JSON: [{"hoursRemaining", "action"}] */
	struct str        cost_group, account_id;
	struct str        approved_by; /* an email, or AUTO_APPROVED */
	int64_t           start_ms, last_checked_ms, expires_ms;
	int64_t           cost, cost_at_ms;               /* spend, and up to when it is complete */
	int64_t           settled_until_ms, settled_cost; /* of it, what was spent before that day; 0: nothing is */
	int64_t           end_ms;
	int64_t           ttl_sec;         /* removed after this */
	int64_t           ttl_days;        /* how long it is kept after its end: the policy's, when it was last asked */
	int64_t           queued_ms;       /* approved, and waits in line for an account since; 0: does not */
	struct str        queued_by;       /* who approved it */
	int64_t           is_queued;       /* 1: queued_ms is set; for the index of the line */
	struct str        decided_by;      /* of a denial, a withdrawal */
	struct str        decision_reason; /* the same, or of an approval */
	struct str        ended_by;
	struct str        end_reason;    /* JSON: the reason object of LeaseTerminated */
	struct str        freeze_reason; /* JSON: the reason object of LeaseFrozen */
	struct str        frozen_by;
	int64_t           created_ms, edited_ms;
	int64_t           rate_from_ms, rate_from_cost; /* an earlier observation, for the projection */
	int64_t    projected_ms; /* since when the projected spend passes the budget, and its owner was told; 0: not */
	struct str cost_state;   /* once ended: the state of the statement with its cost; empty: as seen while it ran */
	uint64_t   version;
};

/* What everybody is shown: an approved lease in line counts as Provisioning, since nobody has to decide about it. */
enum lease_status lease_shown_status(const struct lease *l);

/* For a sentence: "lease X is ..."; in line it is neither pending nor provisioned. */
const char *lease_state_text(const struct lease *l);

/* What always holds: per status, which fields are there. */
bool lease_ok(const struct lease *l);

/* The only writer of status, and of what follows from the time alone: start, check and end; RESET forgets account,
 * approver, dates and cost. The caller gives the account and the approver with APPROVE, and ttl_sec with an end or a
 * denial; then lease_ok() holds. RC_CONFLICT: not from this status; the message says from which. */
MUST_CHECK enum rc lease_apply(struct lease *l, enum lease_event on, struct wall now, struct err *e);

/* Hours of its life, as events tell them: from start to end, rounded; without an end, as agreed. 0: neither. */
int64_t lease_hours(const struct lease *l);

/* The stored lists. They were checked when they came in: what is not a threshold nevertheless is left out. */
void thresholds_parse(struct str budget_json, struct str duration_json, struct thresholds *ret);

/* Bills come late, so more has been spent than is known: the known cost, continued at the rate of about the last
 * day. All 0 until an hour of figures is there. */
struct lease_forecast {
	bool    is_known;
	int64_t per_hour;
	int64_t estimated; /* spent by the last check: what is known, and the rate times the lag of the figures */
	int64_t projected; /* at its end, or a day after the last check when it has none */
	int64_t overrun;   /* by how much it may pass its budget before a bill shows it; 0: it will not, or has none */
};
void lease_forecast(const struct lease *l, struct lease_forecast *ret);

/* --- the monitor's rule (contract 4.2), one lease at a time --- */

struct lease_watch {
	struct lease *lease; /* gets the new figures: cost, cost_at_ms, last_checked_ms */
	int64_t       cost, cost_at_ms;
	struct wall   now;
	bool          projects; /* PROJECTED alerts are on */

	enum overrun_action on_projected, on_estimated; /* what follows when these amounts reach the budget */

	/* What follows. One that is over its budget or expired has nothing else. */
	bool                  is_over_budget, is_expired;
	bool                  is_by_forecast;             /* over its budget, or frozen, by what is not billed yet */
	bool                  freezes, freezes_by_budget; /* a threshold freezes it: which kind */
	struct threshold      freeze;
	bool                  alerts_budget, alerts_duration, alerts_projection;
	struct threshold      alert_budget, alert_duration;
	struct lease_forecast forecast;
};

/* Only an Active or Frozen lease is watched; any other is left as it is, and nothing follows. Each crossing is told
 * once, because the lease gets the new figures: store it together with what follows. */
void lease_watch(struct lease_watch *w);

/* When lease_watch() has something new to say by time alone: at a duration threshold after now, or just behind its
 * end (which may have passed). 0: never. */
int64_t lease_next_moment_ms(const struct lease *l, struct wall now);

/* --- ids --- */

/* base64 of {"userEmail":"...","uuid":"..."}. */
struct str lease_id(const struct lease *l, struct arena *a);

/* Both alphabets of base64, padded or not. RC_INVALID. */
MUST_CHECK enum rc lease_id_parse(struct str id, struct arena *a, struct str *ret_email, struct str *ret_uuid,
                                  struct err *e);

/* Rules for texts: an email (ASCII local part without double dots, host with a dot), a uuid, an account id. */
bool       email_is_ok(struct str s);
struct str email_key(struct str s, struct arena *a); /* lower case */
bool       uuid_is_ok(struct str s);
bool       account_id_is_ok(struct str s);
