/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview.c - counts what there is: the pool, leases, accounts, instances, sagas, dead letters, alarms, and what
 * running leases spend.
 *
 * Everything comes from indexes; only spend and budget read records, up to OVERVIEW_LEASES_MAX. On a
 * store where counting reads everything (DynamoDB) the caller must not ask often.
 *
 * Not here: what is measured while it happens, such as the times of claims (http/api/claim_stats.h).
 */
#include "service/overview.h"

#include "kernel/kernel.h"
#include "kernel/saga.h"
#include "service/instance/instance_records.h"
#include "service/record/lease_records.h"

/* left: how many records may still be read. */
static enum rc add_spend(struct session *s, enum lease_status status, size_t *left, struct overview *o, struct err *e)
{
	struct records      all = { .query = query_of(&lease_type, LEASE_BY_STATUS, value_int(status), *left),
		                    .pages_max = 1 };
	const struct lease *l;
	enum rc             rc;

	all.query.is_descending = true;
	while ((l = session_next(s, &all, &rc, e))) {
		o->spend += l->max_spend ? l->cost : 0;
		o->budget += l->max_spend;
		--*left;
	}
	return rc;
}

static enum rc add_up_running(struct session *s, struct overview *o, struct err *e)
{
	size_t  left = OVERVIEW_LEASES_MAX;
	int64_t running = 0;
	enum rc rc = RC_OK;

	o->spend = o->budget = 0;
	for (int status = 0; status < LEASE_STATUS_COUNT && !rc; status++) {
		if (lease_group((enum lease_status)status) != LEASE_GROUP_MONITORED)
			continue;
		running += o->leases[status];
		if (left)
			rc = add_spend(s, (enum lease_status)status, &left, o, e);
	}
	o->is_partial = running > (int64_t)(OVERVIEW_LEASES_MAX - left);
	return rc;
}

static enum rc count_leases(struct session *s, struct overview *o, struct err *e)
{
	enum rc rc;

	if ((rc = session_count_each(s, &lease_type, LEASE_BY_STATUS, LEASE_STATUS_COUNT, o->leases, e)) ||
	    (rc = session_count_each(s, &account_type, ACCOUNT_BY_STATUS, ACCOUNT_STATUS_COUNT, o->accounts, e)) ||
	    (rc = session_count(s, &lease_type, LEASE_IN_LINE, value_int(1), &o->leases_in_line, e)))
		return rc;
	o->leases[LEASE_PENDING_APPROVAL] -= o->leases_in_line; /* these are decided */
	if (o->leases[LEASE_PENDING_APPROVAL] < 0)              /* counts of indexes may differ by a moment */
		o->leases[LEASE_PENDING_APPROVAL] = 0;
	return add_up_running(s, o, e);
}

enum rc overview_count(struct session *s, void *arg, struct err *e)
{
	struct overview *o = arg;
	enum rc          rc;

	if ((rc = broker_count(s, &o->pool, e)) || (rc = count_leases(s, o, e)) ||
	    (rc = queue_counts(s, &o->queues, e)) || (rc = saga_count(s, o->sagas, e)) ||
	    (rc = session_count_each(s, &instance_type, INSTANCE_BY_STATE, INSTANCE_STATE_COUNT, o->instances, e)) ||
	    (rc = alarm_list(s, &o->alarms, e)))
		return rc;
	o->dead_letters = 0;
	for (size_t i = 0; i < kernel_options(o->queues.kernel)->queue_count; i++)
		o->dead_letters += o->queues.counts[i].dead;
	return RC_OK;
}
