/* statement.h - what one lease cost, told when the figures are in; and the queue that makes statements and the monthly cost report.
 *
 * Wiring:
 *
 *     queues[n] = reports_queue(&reports);         routes: { "LeaseTerminated", REPORTS_QUEUE }, { "StatementDue", REPORTS_QUEUE },
 *                                                          { "CostReportDue", REPORTS_QUEUE }
 *     store_run(store, reports_arm, ...);          once at the start: the timer of the monthly report
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "kernel/queue.h"
#include "store/record.h"
#include "store/store.h"

struct costs;
struct json_out;

#define REPORTS_QUEUE          "reports"
#define EVENT_LEASE_TERMINATED "LeaseTerminated"
#define EVENT_STATEMENT_DUE    "StatementDue"  /* of a timer */
#define EVENT_COST_REPORT_DUE  "CostReportDue" /* of a timer: {"reportMonth": "yyyy-MM"} */
#define EVENT_COSTS_GENERATED  "LeaseCostsGenerated"
#define EVENT_REPORT_GENERATED "GroupCostReportGenerated"
#define EVENT_REPORT_FAILED    "GroupCostReportGeneratedFailure"
#define COST_REPORT_TIMER      "report/costs"

enum {
	STATEMENT_ROWS_MAX = 400,
	STATEMENT_TEXT_MAX = 32768,
	STATEMENT_PADDING_MS = 8 * 3600000,
	STATEMENT_PROVISIONAL_MS = 24 * 3600000,
	STATEMENT_FINAL_MS = 72 * 3600000,
	STATEMENT_SPREAD_MS = 30 * 60000, /* so that leases that end together do not all ask together */
};
#define STATEMENT_KEPT_MS (3 * 365 * INT64_C(86400000))

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
	int64_t              start_ms, end_ms; /* of the lease */
	int64_t              from_ms, to_ms;   /* the days that are counted */
	int64_t              total;            /* millionths of a dollar */
	int64_t              complete_until_ms;
	struct str           rows; /* JSON: [{"from": "2026-10-01", "days": 1, "usd": 1.25}] */
	struct str           hash; /* SHA-256 of what it says */
	int64_t              made_ms;
	uint64_t             version;
};
extern const struct record_type statement_type;

/* --- pure --- */

/* Whole days: from 8 h before the start, down, to 8 h after the end, up. */
void statement_window(int64_t start_ms, int64_t end_ms, int64_t *ret_from_ms, int64_t *ret_to_ms);

/* What a statement becomes when it is made again. False: it stays as it is. */
bool statement_next(enum statement_state now, enum statement_state wanted, bool is_same, enum statement_state *ret);

/* Members of the open object, as the API shows it. */
void statement_write_json(const struct statement *st, struct json_out *o);

/* --- transactions --- */

/* arg is a struct statement with its uuid set. RC_NOT_FOUND. Read-only. */
txn_fn statement_get;

/* Arm the timer of the monthly report unless it is armed. arg is not used. */
txn_fn reports_arm;

/* --- the queue --- */

struct reports {
	struct store *store;
	struct costs *costs;
	int64_t       provisional_ms, final_ms; /* after the lease's end; 0: 24 h, 72 h */
};
struct queue    reports_queue(struct reports *r);
queue_call_fn   reports_call;
queue_settle_fn reports_settle;
