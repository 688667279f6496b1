/* leases.h - what people can do with leases and templates: transaction functions, each with its argument.
 *
 * Who may do it is decided before (http/), what may be done by the domain. Each change is one transaction for records,
 * events and timers; what must happen outside is done by a saga that this transaction starts (see account_follow.h). */
#pragma once

#include "base/str.h"
#include "domain/account.h"
#include "domain/approval.h"
#include "domain/ports/caller.h"
#include "domain/lease.h"
#include "domain/lease_template.h"
#include "domain/policy.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "store/session.h"
#include "store/store.h"

#define AUTO_APPROVED "AUTO_APPROVED"

/* --- leases --- */

/* Request a lease, for oneself or (assigned) for another. Approved at once when the template or the assignment says so:
 * then an account is claimed or, when none is free, the lease waits in line (queued_ms). RC_NOT_FOUND: no such
 * template, or a private one that the caller may not see; RC_CONFLICT: the owner has the maximum; RC_DENIED: for
 * somebody else, or a rule denies it. */
struct lease_request {
	struct caller        by;
	const struct policy *policy;
	struct str           template_uuid, comments;
	struct str           owner_email; /* as the directory writes it */
	unsigned             owner_roles; /* for the rules: enum role */
	bool                 is_assigned;

	const struct approval_policy *approval; /* the operator's rules; NULL or empty: the template decides */

	struct lease lease; /* the answer */
};
txn_fn lease_request;

/* What would be decided about such a request, and why; nothing is requested. Read-only. RC_NOT_FOUND: no such
 * template, or a private one that the owner may not see. */
struct lease_explain {
	struct str                    template_name;          /* or its uuid */
	struct caller                 owner;                  /* as the directory has him */
	int64_t                       max_spend, duration_ms; /* 0: the template's */
	const struct approval_policy *approval;

	struct approval_question question;       /* the answer: what was asked */
	struct approval_answer   answer;         /* with notes */
	bool                     is_by_template; /* there are no rules */
};
txn_fn lease_explain;

/* One lease, by uuid; owner_email must be its owner (any case), as in a lease id. RC_NOT_FOUND. */
struct lease_call {
	struct caller        by;
	const struct policy *policy;
	struct str           owner_email, uuid;
	struct str           reason; /* deny, freeze, terminate, withdraw: may be empty */

	struct lease lease;       /* the answer */
	int64_t      position;    /* in line, from 1; 0: not in line. Of lease_get only */
	int64_t      estimate_ms; /* when its turn may come; 0: cannot be told */
};
txn_fn lease_get;     /* read-only */
txn_fn lease_approve; /* no account free: waits in line. RC_CONFLICT: not pending, or already in line */
txn_fn lease_deny;
txn_fn lease_withdraw; /* by its owner, while pending */
txn_fn lease_freeze;
txn_fn lease_unfreeze;
txn_fn lease_terminate;

/* Change what may be changed while it is monitored. Problems with the limits are in `problems` (then RC_INVALID). */
struct lease_edit {
	struct lease_call call;
	bool              sets_max_spend, sets_budget, sets_expiry, sets_duration, sets_group;
	int64_t           max_spend, expires_ms;                              /* 0: none any more */
	struct str        budget_thresholds, duration_thresholds, cost_group; /* stored forms; empty: none any more */

	struct problems problems;
};
txn_fn lease_edit;

/* What can be listed besides the statuses: leases in line, which are also among the Provisioning ones, and withdrawn
 * ones, which are also among the ApprovalDenied ones. */
enum { LEASES_IN_LINE = LEASE_STATUS_COUNT, LEASES_WITHDRAWN };

/* A page, the newest first; of one owner (email) or all, of one shown status or all. Read-only. */
struct lease_list {
	struct str owner_email;
	bool       has_status;
	int        status;            /* enum lease_status, LEASES_IN_LINE or LEASES_WITHDRAWN */
	int64_t    expires_before_ms; /* only those in use that end before this; 0: all */
	size_t     limit;             /* up to 1,000 */
	struct str cursor;

	struct page page; /* the answer: struct lease records */
};
txn_fn lease_list;

/* --- templates --- */

struct template_call {
	struct caller         by;
	const struct policy  *policy;
	struct str            uuid;   /* get also takes a name; of a new one, empty: one is made */
	struct lease_template fields; /* put: all but uuid; created_ms is kept when it is set, created_by always */
	bool                  is_new;

	struct lease_template template; /* the answer */
	struct problems problems;       /* put: RC_INVALID */
};
txn_fn template_get;    /* read-only */
txn_fn template_put;    /* RC_NOT_FOUND unless is_new; RC_CONFLICT when a new one is there already */
txn_fn template_delete; /* RC_OK also when there is none */

struct template_list {
	size_t     limit;
	struct str cursor;

	struct page page; /* the answer: struct lease_template records */
};
txn_fn template_list; /* read-only */

/* --- for the system itself --- */

/* Serve the line: give the next in line an account, when there is both. arg is a bool: whether somebody was served. */
txn_fn line_serve;

/* Deny who has been in line since before this time, at most one transaction's worth. */
struct line_expire {
	int64_t before_ms;

	int64_t expired; /* the answer: 0: nobody is left */
};
txn_fn line_expire;

/* What leases do when something happens to their account: for the table of hooks. */
extern const struct account_hooks lease_account_hooks;

#define EVENT_LEASE_TIMER_DUE "LeaseTimerDue"
#define EVENT_ACCOUNT_FREED   "AccountFreed"
#define EVENT_LINE_MOVED      "LineMoved"

/* The timers of leases. */
#define LEASES_QUEUE  "leases"
#define LEASES_EVENTS EVENT_LEASE_TIMER_DUE
extern const struct queue leases_queue;

/* The line: there is an account, or somebody who wants one. */
#define LINE_QUEUE  "line"
#define LINE_EVENTS EVENT_ACCOUNT_FREED "," EVENT_LINE_MOVED ",LeaseQueued"
extern const struct queue line_queue;
