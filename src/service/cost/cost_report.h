/* cost_report.h - what the leases of a month cost, by group, owner, template, lease or day, as CSV; and months. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

struct buf;
struct lease;

enum { DAY_MS = 86400000, REPORT_GROUPS_MAX = 1000, REPORT_BYTES_MAX = 1048576, REPORT_LEASES_MAX = 200000 };

/* A month in UTC. */
struct cost_month {
	int     year, month;    /* 2026, 10 */
	int64_t from_ms, to_ms; /* its first moment, and that of the next */
};

/* "2026-10". False when it is anything else, or before 1970. */
MUST_CHECK bool cost_month_parse(struct str text, struct cost_month *ret);

/* The last one that was over at this time. */
void cost_month_before(struct wall now, struct cost_month *ret);

/* The one that has this moment. */
void cost_month_of(struct wall at, struct cost_month *ret);

/* 202610: to look it up by. */
int64_t cost_month_number(const struct cost_month *m);

/* The whole days of the month that [start, end) pays for: those whose midnight is in it. False: none. */
MUST_CHECK bool cost_month_days(const struct cost_month *m, int64_t start_ms, int64_t end_ms, int64_t *ret_from_ms,
                                int64_t *ret_to_ms);

/* When its report is due: 01:25 on the second day after it. */
int64_t cost_month_due_ms(const struct cost_month *m);

/* The same for a lease that may still go on. False: none, or the lease is not one that is reported. */
bool            cost_report_has(const struct lease *l); /* one of those that are reported */
MUST_CHECK bool cost_report_days(const struct lease *l, const struct cost_month *m, struct wall now,
                                 int64_t *ret_from_ms, int64_t *ret_to_ms);

/* What a line of the report is about. By lease it also says what each comes to by the end of the month. */
enum cost_report_by { COST_BY_GROUP, COST_BY_OWNER, COST_BY_TEMPLATE, COST_BY_LEASE, COST_BY_DAY, COST_BY_COUNT };
extern const char *const cost_report_by_names[COST_BY_COUNT]; /* group, owner, template, lease, day */

struct cost_sum {
	struct str group; /* or owner, or template; empty: none */
	int64_t    micro_usd;
};
struct cost_report {
	struct cost_month month;
	struct arena     *arena; /* where groups are kept */
	struct cost_sum   sums[REPORT_GROUPS_MAX];
	size_t            count;
};

/* RC_TOO_LARGE: too many groups, or more dollars than can be counted. */
MUST_CHECK enum rc cost_report_add(struct cost_report *r, struct str group, int64_t micro_usd, struct err *e);

/* Texts as cells, with a comma behind each: quoted where needed; what a spreadsheet would compute gets an
 * apostrophe. */
void csv_add_cells(struct buf *b, const struct str *cells, size_t count);

/* The first day and the last of [from, to), and a comma behind each. */
void csv_add_days(struct buf *b, int64_t from_ms, int64_t to_ms);

/* Dollars with two decimals, rounded. */
void csv_add_dollars(struct buf *b, int64_t micro_usd);

/* Read the leases in use and the shares of those that have ended, ask what their accounts spent, write the table.
 * Blocks, perhaps for long: worker threads only. go_on may be NULL; false ends it with RC_UNAVAILABLE. */
struct cost_report_call {
	struct store       *store;
	struct costs       *costs;
	struct cost_month   month;
	enum cost_report_by by;
	struct str          group; /* only leases of this one, as the report names it; empty: all */
	struct wall         now;
	bool (*go_on)(void *arg);
	void *go_on_arg;
};
MUST_CHECK enum rc cost_report_make(const struct cost_report_call *c, struct buf *csv, struct err *e);
