/* overview.h - everything at a glance, counted from stored records in one read. */
#pragma once

#include "base/str.h"
#include "domain/account.h"
#include "domain/instance.h"
#include "domain/lease.h"
#include "kernel/alarm/alarm.h"
#include "kernel/queue.h"
#include "kernel/records.h"
#include "service/broker/broker.h"
#include "store/store.h"

/* Read-only. */
struct overview {
	struct queue_counts queues; /* its kernel is set by the caller */

	struct pool_counts pool; /* the answer */
	int64_t            leases[LEASE_STATUS_COUNT];
	int64_t            accounts[ACCOUNT_STATUS_COUNT];
	int64_t            instances[INSTANCE_STATE_COUNT];
	int64_t            leases_in_line;
	int64_t            spend, budget; /* of running leases that have a budget */
	bool               is_partial;    /* spend and budget are of OVERVIEW_LEASES_MAX of them */
	int64_t            sagas[SAGA_OPEN_STATES];
	int64_t            dead_letters;
	struct page        alarms;
};
enum { OVERVIEW_LEASES_MAX = QUERY_LIMIT_MAX };
txn_fn overview_count;
