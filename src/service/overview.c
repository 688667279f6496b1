/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview.c - counts what there is: the pool, leases, accounts, sagas, dead letters, alarms, and what running leases spend.
 *
 * Everything comes from indexes; only spend and budget read records, up to OVERVIEW_LEASES_MAX of each status. On a store where counting
 * reads everything (DynamoDB) the caller must not ask often.
 *
 * Not here: what is measured while it happens, such as the times of claims (http/tally.h).
 */
#include "service/overview.h"

#include "base/attr.h"
#include "kernel/kernel.h"
#include "kernel/saga.h"
#include "service/lease_records.h"

static enum rc count_each(struct session *s, const struct record_type *type, int index, int64_t *counts, int n,
                          struct err *e)
{
	for (int i = 0; i < n; i++) {
		enum rc rc = session_count(s, type, index, value_int(i), &counts[i], e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

static enum rc add_spend(struct session *s, enum lease_status status, struct overview *o, struct err *e)
{
	struct query q = { .type = &lease_type,
		           .index = LEASE_BY_STATUS,
		           .hash = value_int(status),
		           .is_descending = true,
		           .limit = OVERVIEW_LEASES_MAX };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < page.count; i++) {
		const struct lease *l = page_record(&page, &lease_type, i);

		o->spend += l->max_spend ? l->cost : 0;
		o->budget += l->max_spend;
	}
	o->is_partial = o->is_partial || page.next.n;
	return RC_OK;
}

static enum rc count_leases(struct session *s, struct overview *o, struct err *e)
{
	enum rc rc;

	if ((rc = count_each(s, &lease_type, LEASE_BY_STATUS, o->leases, LEASE_STATUS_COUNT, e)) ||
	    (rc = count_each(s, &account_type, ACCOUNT_BY_STATUS, o->accounts, ACCOUNT_STATUS_COUNT, e)) ||
	    (rc = session_count(s, &lease_type, LEASE_IN_LINE, value_int(1), &o->leases_in_line, e)))
		return rc;
	o->spend = o->budget = 0;
	o->is_partial = false;
	for (int status = 0; status < LEASE_STATUS_COUNT && !rc; status++)
		if (lease_group((enum lease_status)status) == LEASE_GROUP_MONITORED)
			rc = add_spend(s, (enum lease_status)status, o, e);
	return rc;
}

enum rc overview_count(struct session *s, void *arg, struct err *e)
{
	struct overview *o = arg;
	enum rc          rc;

	if ((rc = broker_count(s, &o->pool, e)) || (rc = count_leases(s, o, e)) ||
	    (rc = queue_counts(s, &o->queues, e)) || (rc = saga_count(s, o->sagas, e)) ||
	    (rc = alarm_list(s, &o->alarms, e)))
		return rc;
	o->dead_letters = 0;
	for (size_t i = 0; i < kernel_options(o->queues.kernel)->queue_count; i++)
		o->dead_letters += o->queues.counts[i].dead;
	return RC_OK;
}
