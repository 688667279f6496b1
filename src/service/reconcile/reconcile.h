/* reconcile.h - compares where accounts are with what records and holds say.
 *
 * Three ways lead to a difference: the reconciler, a job of every quarter of an hour that puts right what can be put
 * right safely and keeps what it found as facts, from which the alarms are computed (`leasehold doctor` shows the same
 * on demand); the scan for drift of our own accounts, every six hours; and CloudTrail, within seconds.
 *
 * "What the records say" is an interface: native_records() has those of the lease service.
 *
 * Wiring: account_drift_queue() and account_moved_queue() into the table of queues. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/discrepancy.h"
#include "domain/hold.h"
#include "kernel/queue.h"
#include "service/pass/pass.h"

struct organisation;

/* Facts: "discrepancy/KIND/ACCOUNT", until a pass finds it no more; and how many passes in a row were throttled. */
#define FACT_DISCREPANCY         "discrepancy/"
#define FACT_THROTTLED           "reconcile/throttled"
#define FACT_DEMAND              "reconcile/demand"  /* leases that began in the last DEMAND_DAYS */
#define FACT_CLOUDTRAIL          "trail/cloudtrail"  /* when it last spoke, see guard_log.c */
#define EVENT_ACCOUNT_RECONCILED "AccountReconciled" /* {"accountId", "kind", "text"} */

enum { DISCREPANCIES_MAX = 200, DEMAND_DAYS = 7, SILENT_CLEANUPS = 3, SILENT_HOURS = 6 };

/* --- where they are --- */

/* An account as the organisation has it. */
struct pool_member {
	struct str id, name, email;
	struct str ou;       /* its name */
	bool       is_known; /* for those who compare: we have a record of it */
};

struct pool_listing {
	struct pool_member *members; /* by id */
	size_t              count, room;
	struct arena        arena; /* of all texts */
};

/* All accounts in the pool's OUs, those right below this one (empty: anywhere); blocks. *ret is all zeroes before.
 * After a failure conclude nothing from what was listed. RC_LIMITED, RC_UNAVAILABLE, ...: as the organisation
 * answers. */
MUST_CHECK enum rc pool_list(const struct pass *p, struct organisation *o, struct str below, struct pool_listing *ret,
                             struct err *e);

/* NULL: it is in none of the OUs. */
struct pool_member *pool_find(const struct pool_listing *l, struct str id);

/* --- what the records say --- */

/* A page of them. */
struct pool_views {
	int64_t    started_ms; /* what was changed since then is busy */
	struct str cursor;     /* empty: from the first on */

	struct pool_view *items; /* the answer, in the arena */
	size_t            count;
	struct str        next;       /* cursor; empty: that was all */
	struct str        unreadable; /* why one of them is left alone; empty: all can be read */
};

/* For who makes such a page: RC_CORRUPT concerns this account alone, and the others go on. Any other rc is returned. */
MUST_CHECK enum rc pool_leave_alone(struct pool_view *v, enum rc rc, struct arena *a, struct str *ret_unreadable,
                                    struct err *e);

/* One account to be looked at again and put right, all of it in one decision that nobody can come between. */
struct pool_repair {
	struct pool_records *records;
	int64_t              started_ms;
	struct str           id, ou;

	enum discrepancy found; /* the answer: what was wrong by then; NONE: nothing, and nothing was done */
};

struct pool_records_ops {
	/* All block. */
	enum rc (*list)(struct pool_records *r, const struct pool_listing *listing, struct pool_views *page,
	                struct arena *a, struct err *e);
	enum rc (*heal)(struct pool_repair *repair, struct err *e);
	/* At the end of a pass: what the next one should know of this listing, which began then. NULL: nothing. */
	enum rc (*remember)(struct pool_records *r, const struct pool_listing *listing, int64_t started_ms,
	                    struct err *e);
};

struct pool_records { /* first member of every implementation */
	const struct pool_records_ops *ops;
	struct str                     below; /* the pool's OUs are right below this one; empty: anywhere */
	bool needs_events; /* who relies on events: silence counts even when the trail has never spoken */
};

struct native_records {
	struct pool_records      base;
	struct store            *store;
	const struct hold_rules *rules;
};
struct native_records native_records(struct store *store, const struct hold_rules *rules);

/* Of another system's account table: guard_reconcile.c. */
struct guard_records {
	struct pool_records base;
	struct guard       *guard;
};
struct guard_records guard_records(struct guard *g);

/* --- the passes --- */

struct reconcile_item {
	enum discrepancy kind;
	struct str       account; /* empty: of all */
	struct str       text;
	bool             is_healed;
};

/* All zeroes at first; end it with reconcile_report_fini(). */
struct reconcile_report {
	struct arena          arena;
	struct reconcile_item items[DISCREPANCIES_MAX];
	size_t                count;
	int64_t               accounts, holds; /* looked at */
	int64_t               found, healed;   /* all, also those beyond DISCREPANCIES_MAX */
};

/* Blocks. A dry run looks, changes nothing and keeps nothing. When the organisation cannot be listed to the end,
 * only the timers of holds were looked at, and that is the failure. */
MUST_CHECK enum rc reconcile_run(const struct pass *p, bool is_dry_run, struct reconcile_report *ret, struct err *e);
void               reconcile_report_fini(struct reconcile_report *r);

/* The same as a job. Counts: accounts and holds looked at, found, healed. */
pass_fn pass_reconcile;

/* --- drift of our own accounts (contract 4.3) --- */

#define DRIFT_QUEUE          "account-drift"
#define EVENT_DRIFT_DETECTED "AccountDriftDetected" /* all that its queue hears */

/* Compares every account with the OU it is really in. Blocks. When the organisation cannot be listed to the end,
 * nothing was concluded. Counts: scanned, drifted (told of), suspected (seen for the first time), recovered, stalled
 * (in the right OU, followed again), unknown. */
pass_fn pass_find_drift;

/* Quarantines what has drifted; forgets who has left the organisation's pool. */
struct queue account_drift_queue(void);

/* Somebody else has moved an account: it is locked away as soon as CloudTrail tells of it. */
#define MOVED_QUEUE  "account-moved"
#define MOVED_EVENTS "cloudtrail:MoveAccount"
struct account_moved { /* both stay the caller's */
	struct store       *store;
	struct account_ous *ous;
};
struct queue account_moved_queue(struct account_moved *m);
