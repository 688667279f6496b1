/* cost_shares.h - what an ended lease adds to the cost report of a month: one record for each month in which it pays for a day. Written
 * with the lease's statement, gone with it; the lease itself need not be there any more. */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "store/record.h"

struct session;
struct statement;

/* So that a statement and its shares fit into one transaction. Of a longer lease, the last months are reported. */
enum { COST_SHARES_MAX = 60 };

struct cost_share {
	struct str key;   /* "2026-10/UUID" */
	int64_t    month; /* 202610 */
	struct str lease_uuid, account_id, cost_group;
	int64_t    from_ms, to_ms; /* the days that count */
	int64_t    micro_usd;      /* of these days, when it is known for good */
	int64_t    is_final;       /* 0: the cloud must be asked */
	uint64_t   version;
};
enum cost_share_index { COST_SHARE_BY_MONTH }; /* by the first day */
extern const struct record_type cost_share_type;

/* Make the shares of a statement that was just opened. */
MUST_CHECK enum rc cost_shares_open(struct session *s, const struct statement *st, struct err *e);

/* Note what the days cost, once the statement is final. day_costs has a figure for each day of the statement's window. */
MUST_CHECK enum rc cost_shares_settle(struct session *s, const struct statement *st, const int64_t *day_costs,
                                      struct err *e);

/* Remove them with their statement. */
MUST_CHECK enum rc cost_shares_remove(struct session *s, const struct statement *st, struct err *e);
