/* statement.h - what one lease cost, told when the figures are in; and the queue that makes statements and the monthly
 * cost report.
 *
 * Wiring:
 *
 *     queues[n] = reports_queue(&reports);         routes: REPORTS_EVENTS to REPORTS_QUEUE
 *     store_run(store, reports_arm, ...);          once at the start: the timer of the monthly report */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/hold.h"
#include "kernel/queue.h"
#include "store/record.h"
#include "store/store.h"

struct buf;
struct lease;

#define REPORTS_QUEUE          "reports"
#define EVENT_STATEMENT_DUE    "StatementDue"  /* of a timer */
#define EVENT_COST_REPORT_DUE  "CostReportDue" /* of a timer: {"reportMonth": "yyyy-MM"} */
#define REPORTS_EVENTS         EVENT_STATEMENT_DUE "," EVENT_COST_REPORT_DUE
#define EVENT_COSTS_GENERATED  "LeaseCostsGenerated"
#define EVENT_COSTS_FAILED     "LeaseCostsGeneratedFailure" /* tried again later */
#define EVENT_REPORT_GENERATED "GroupCostReportGenerated"
#define EVENT_REPORT_FAILED    "GroupCostReportGeneratedFailure"
#define COST_REPORT_TIMER      "report/costs"

enum {
	STATEMENT_ROWS_MAX = 400,     /* days, or lots of days */
	STATEMENT_SERVICES_MAX = 100, /* the others are one row */
	STATEMENT_DAYS_MAX = 4000,    /* of a longer lease, the last so many */
	STATEMENT_TEXT_MAX = 49152,
	STATEMENT_PADDING_MS = HOLD_PADDING_HOURS * 3600000,
	STATEMENT_PROVISIONAL_MS = 24 * 3600000,
	STATEMENT_FINAL_MS = 96 * 3600000, /* when nobody says that the account has rested */
	STATEMENT_AGAIN_MS = 12 * 3600000, /* when figures are missing that should be there */
	STATEMENT_SPREAD_MS = 30 * 60000,  /* so that leases that end together do not all ask together */
};
#define STATEMENT_PATIENCE_MS (14 * INT64_C(86400000)) /* then it is final also without all figures */
#define STATEMENT_KEPT_MS     (3 * 365 * INT64_C(86400000))
#define STATEMENT_OTHERS      "Other" /* services that have no row of their own */

enum statement_state {
	STATEMENT_PENDING,
	STATEMENT_PROVISIONAL,
	STATEMENT_FINAL,
	STATEMENT_AMENDED,
	STATEMENT_STATE_COUNT
};
extern const char *const statement_state_names[STATEMENT_STATE_COUNT];

/* Has all that it needs of the lease, whose record does not live as long. */
struct statement {
	struct str           uuid; /* of the lease */
	enum statement_state state;
	struct str           user_email, account_id, cost_group;
	struct str           template_name;    /* empty in those of older programs */
	int64_t              start_ms, end_ms; /* of the lease */
	int64_t              from_ms, to_ms;   /* the days that are counted */
	int64_t              total;            /* millionths of a dollar */
	int64_t              budget;           /* of the lease; 0: it had none */
	int64_t              estimated;        /* at its end, with what was not billed yet; 0: could not be told */
	int64_t              complete_until_ms;
	struct str           rows; /* JSON: [{"service": "AWS Lambda", "usd": 1.25}], the dearest first */
	struct str           days; /* JSON: [{"from": "2026-10-01", "days": 1, "usd": 1.25}] */
	struct str           hash; /* SHA-256 of what it says */
	int64_t              made_ms;
	int64_t              rested_ms; /* when the account had rested; 0: not told yet */
	uint64_t             version;
};
enum statement_index { STATEMENT_BY_ACCOUNT }; /* by the lease's end */
extern const struct record_type statement_type;

/* --- pure --- */

/* Whole days: from 8 h before the start, down, to 8 h after the end, up. */
void statement_window(int64_t start_ms, int64_t end_ms, int64_t *ret_from_ms, int64_t *ret_to_ms);

/* What a statement becomes when it is made again. False: it stays as it is. */
bool statement_next(enum statement_state now, enum statement_state wanted, bool is_same, enum statement_state *ret);

/* What it should become by this time with these figures: final when the rest is over, or final_ms (0:
 * STATEMENT_FINAL_MS) after the lease's end, and all figures are there. */
enum statement_state statement_wanted(const struct statement *st, int64_t final_ms, int64_t now_ms);

/* When it is to be made next, or removed: kept_ms (0: STATEMENT_KEPT_MS) after the lease's end. */
int64_t statement_due_ms(const struct statement *st, int64_t final_ms, int64_t kept_ms, int64_t now_ms);

/* Members of the open object, as the API shows it. */
void statement_write_json(const struct statement *st, struct json_out *o);

/* A table for spreadsheets: a line for each service, the dearest first. */
void statement_write_csv(const struct statement *st, struct buf *b);

/* --- figures --- */

/* Ask what the lease cost and fill in total, rows, days, complete_until_ms and hash; *ret_day_costs has a figure for
 * each day of the window. All in the arena. Blocks. go_on may be NULL; false ends it with RC_UNAVAILABLE. */
struct statement_asking {
	struct costs *costs;
	bool (*go_on)(void *arg);
	void *go_on_arg;
};
MUST_CHECK enum rc statement_ask(struct statement *st, const struct statement_asking *how, struct arena *a,
                                 int64_t **ret_day_costs, struct err *e);

/* --- transactions --- */

/* arg is a struct statement with its uuid set. RC_NOT_FOUND. Read-only. */
txn_fn statement_get;

/* For the transaction that ends the lease: its statement, what it adds to the reports of its months, and the first
 * timer. One that never had an account gets none. At most COST_SHARES_MAX + 3 actions. */
MUST_CHECK enum rc statement_open(struct session *s, const struct lease *l, struct err *e);

/* For the transaction that ends the rest of an account (a hold's release, or a bypass): the statement of the last
 * lease on it is made now, and is final as soon as all figures are there. clean_ms is when the account was clean, up
 * to which its costs count for that lease (0: not known). Without this call, the timer makes it final later. RC_OK
 * also when there is nothing to do. At most 3 actions. */
MUST_CHECK enum rc statement_finalise(struct session *s, struct str account_id, int64_t clean_ms, struct err *e);

/* Set its timer. */
MUST_CHECK enum rc statement_arm(struct session *s, const struct statement *st, int64_t due_ms, struct err *e);

/* Arm the timer of the monthly report unless it is armed. arg is not used. */
txn_fn reports_arm;

/* --- shares: what an ended lease adds to the cost report of a month --- */

/* So that a statement and its shares fit into one transaction. Of a longer lease, the last months are reported. */
enum { COST_SHARES_MAX = 60 };

struct cost_share {
	struct str key;   /* "2026-10/UUID" */
	int64_t    month; /* 202610 */
	struct str lease_uuid, account_id, cost_group;
	struct str user_email, template_name; /* empty in those of older programs */
	int64_t    from_ms, to_ms;            /* the days that count */
	int64_t    micro_usd;                 /* of these days, when it is known for good */
	int64_t    is_final;                  /* 0: the cloud must be asked */
	uint64_t   version;
};
enum cost_share_index { COST_SHARE_BY_MONTH }; /* by the first day */
extern const struct record_type cost_share_type;

/* All shares of a statement: make them when it is opened; note what their days cost, once it is final (day_costs has
 * a figure for each day of its window); remove them with it. */
enum share_change { SHARES_OPEN, SHARES_SETTLE, SHARES_REMOVE };
MUST_CHECK enum rc cost_shares_change(struct session *s, const struct statement *st, enum share_change change,
                                      const int64_t *day_costs, struct err *e);

/* --- the queue --- */

struct reports {
	struct store *store;
	struct costs *costs;
	int64_t       final_ms; /* at the latest, after the lease's end; 0: STATEMENT_FINAL_MS */
	int64_t       kept_ms;  /* so long after the lease's end it is removed; 0: STATEMENT_KEPT_MS */
};
struct queue reports_queue(struct reports *r);
