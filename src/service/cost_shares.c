/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_shares.c - by month and lease: who pays for which days.
 *
 * The cost report of a month must find the leases of that month, not all that ever ended, and must not miss those whose records are gone. So
 * each lease leaves a share in every month in which it has a midnight, in the transaction that ends it. The keys follow from the lease's
 * times: shares are found again without an index.
 *
 * Always true: the shares of a statement are at most COST_SHARES_MAX, have disjoint days, and live exactly as long as it does.
 */
#include "service/cost_shares.h"

#include <stddef.h>

#include "base/attr.h"
#include "domain/lease.h"
#include "service/cost_report.h"
#include "service/statement.h"
#include "store/record_rows.h"
#include "store/session.h"

enum { SHARE_KEY_MAX = 8 + LEASE_UUID_MAX };

/* clang-format off */
enum {
	SHARE_F_KEY, SHARE_F_MONTH, SHARE_F_LEASE, SHARE_F_ACCOUNT, SHARE_F_COST_GROUP, SHARE_F_FROM, SHARE_F_TO, SHARE_F_MICRO_USD,
	SHARE_F_IS_FINAL,
};

static const struct record_field share_fields[] = {
	[SHARE_F_KEY]        = { TEXT(cost_share, key, SHARE_KEY_MAX) },
	[SHARE_F_MONTH]      = { INT(cost_share, month) },
	[SHARE_F_LEASE]      = { TEXT(cost_share, lease_uuid, LEASE_UUID_MAX) },
	[SHARE_F_ACCOUNT]    = { TEXT(cost_share, account_id, ACCOUNT_ID_MAX) },
	[SHARE_F_COST_GROUP] = { TEXT_OR_NONE(cost_share, cost_group, COST_GROUP_MAX) },
	[SHARE_F_FROM]       = { INT(cost_share, from_ms) },
	[SHARE_F_TO]         = { INT(cost_share, to_ms) },
	[SHARE_F_MICRO_USD]  = { INT(cost_share, micro_usd) },
	[SHARE_F_IS_FINAL]   = { INT(cost_share, is_final) },
};
static const struct record_index share_indexes[] = {
	[COST_SHARE_BY_MONTH] = { "ByMonth", SHARE_F_MONTH, SHARE_F_FROM, false, NO_FIELD, 0, 1 },
};
/* clang-format on */

const struct record_type cost_share_type = {
	.name = "cost_share",
	.size = sizeof(struct cost_share),
	.fields = share_fields,
	.field_count = ARRAY_LEN(share_fields),
	.key = SHARE_F_KEY,
	.version_offset = offsetof(struct cost_share, version),
	.indexes = share_indexes,
	.index_count = ARRAY_LEN(share_indexes),
};

static struct cost_share share_of(struct session *s, const struct statement *st, const struct cost_month *m)
{
	return (struct cost_share){ .key = str_format(session_arena(s), "%04d-%02d/%.*s", m->year, m->month,
		                                      STR_ARG(st->uuid)),
		                    .month = cost_month_number(m),
		                    .lease_uuid = st->uuid,
		                    .account_id = st->account_id,
		                    .cost_group = st->cost_group };
}

/* What is done with one of them. is_there: it has been found in the store. */
typedef void share_fn(struct session *s, struct cost_share *share, bool is_there, const struct statement *st,
                      const int64_t *day_costs);

/* All of the lease's months, the last first. */
static enum rc each_share(struct session *s, const struct statement *st, share_fn *run, const int64_t *day_costs,
                          struct err *e)
{
	struct cost_month month;

	cost_month_of((struct wall){ st->end_ms }, &month);
	for (int i = 0; i < COST_SHARES_MAX && month.to_ms > st->start_ms; i++) {
		struct cost_share share = share_of(s, st, &month), found;
		enum rc           rc;

		if (cost_month_days(&month, st->start_ms, st->end_ms, &share.from_ms, &share.to_ms)) {
			rc = session_get(s, &cost_share_type, share.key, &found, NULL);
			if (rc && rc != RC_NOT_FOUND)
				return err_set(e, rc, "the cost share %.*s cannot be read", STR_ARG(share.key));
			run(s, rc ? &share : &found, !rc, st, day_costs);
		}
		cost_month_before((struct wall){ month.from_ms }, &month);
	}
	return RC_OK;
}

static void open_share(struct session *s, struct cost_share *share, bool is_there, const struct statement *st,
                       const int64_t *day_costs)
{
	(void)st;
	(void)day_costs;
	if (!is_there)
		session_put(s, &cost_share_type, share);
}

enum rc cost_shares_open(struct session *s, const struct statement *st, struct err *e)
{
	return each_share(s, st, open_share, NULL, e);
}

static void settle_share(struct session *s, struct cost_share *share, bool is_there, const struct statement *st,
                         const int64_t *day_costs)
{
	if (!is_there)
		return; /* of a lease that is not reported */
	share->micro_usd = 0;
	for (int64_t ms = share->from_ms; ms < share->to_ms; ms += DAY_MS)
		if (ms >= st->from_ms && ms < st->to_ms)
			share->micro_usd += day_costs[(ms - st->from_ms) / DAY_MS];
	share->is_final = 1;
	session_put(s, &cost_share_type, share);
}

enum rc cost_shares_settle(struct session *s, const struct statement *st, const int64_t *day_costs, struct err *e)
{
	return each_share(s, st, settle_share, day_costs, e);
}

static void remove_share(struct session *s, struct cost_share *share, bool is_there, const struct statement *st,
                         const int64_t *day_costs)
{
	(void)st;
	(void)day_costs;
	if (is_there)
		session_delete(s, &cost_share_type, share->key);
}

enum rc cost_shares_remove(struct session *s, const struct statement *st, struct err *e)
{
	return each_share(s, st, remove_share, NULL, e);
}
