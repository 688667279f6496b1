/* reconcile.h - compares where accounts are with what records and holds say, independently of any event.
 *
 * A job runs it every quarter of an hour and puts right what can be put right safely; `leasehold doctor` shows the same on demand. What was
 * found is kept as facts, from which the alarms are computed.
 *
 * "What the records say" is an interface: native_records() has those of the lease service. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/discrepancy.h"
#include "domain/hold.h"

struct guard;
struct organisation;
struct pool_listing;
struct pool_records;
struct store;

/* Facts: "discrepancy/KIND/ACCOUNT", there until a pass does not find it any more; and how many passes in a row were throttled. */
#define FACT_DISCREPANCY         "discrepancy/"
#define FACT_THROTTLED           "reconcile/throttled"
#define FACT_DEMAND              "reconcile/demand"  /* leases that began in the last DEMAND_DAYS */
#define FACT_CLOUDTRAIL          "inbox/cloudtrail"  /* when the trail last spoke, see cloudtrail.c */
#define EVENT_ACCOUNT_RECONCILED "AccountReconciled" /* {"accountId", "kind", "text"} */

enum { DISCREPANCIES_MAX = 200, DEMAND_DAYS = 7, SILENT_CLEANUPS = 3, SILENT_HOURS = 6 };

/* --- what the records say --- */

struct pool_views {
	struct pool_view *items; /* in the arena */
	size_t            count;
	struct str        next; /* cursor; empty: that was all */
};

/* One page, blocks. started_ms: what was changed since then is busy. */
typedef enum rc pool_records_list_fn(struct pool_records *r, const struct pool_listing *listing, int64_t started_ms,
                                     struct str cursor, struct arena *a, struct pool_views *ret, struct err *e);

/* Look at one account again and put it right, all of it in one decision that nobody can come between; blocks. *ret: what was wrong by then;
 * NONE: nothing, and nothing was done. */
typedef enum rc pool_records_heal_fn(struct pool_records *r, int64_t started_ms, struct str id, struct str ou,
                                     enum discrepancy *ret, struct err *e);

/* At the end of a pass: what the next one should know of this listing, which began then. Blocks. */
typedef enum rc pool_records_remember_fn(struct pool_records *r, const struct pool_listing *listing, int64_t started_ms,
                                         struct err *e);

struct pool_records_ops {
	pool_records_list_fn     *list;
	pool_records_heal_fn     *heal;
	pool_records_remember_fn *remember; /* NULL: nothing */
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

/* What is compared with what; for the job and the doctor. */
struct reconcile_world {
	struct organisation *organisation;
	struct pool_records *records;
};

/* --- the pass --- */

struct reconcile {
	struct store        *store;
	struct organisation *organisation;
	struct pool_records *records;
	const struct clock  *clock;
	bool                 is_dry_run; /* looks, changes nothing, keeps nothing */

	/* Still wanted? NULL: always. */
	bool (*go_on)(void *arg);
	void *go_on_arg;
};

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

/* Blocks. When the organisation cannot be listed to the end, only the timers of holds were looked at, and that is the failure. */
MUST_CHECK enum rc reconcile_run(const struct reconcile *r, struct reconcile_report *ret, struct err *e);
void               reconcile_report_fini(struct reconcile_report *r);
