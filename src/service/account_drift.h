/* account_drift.h - are the accounts where they should be? Contract 4.3: a pass that looks, and the handler of what it finds.
 *
 * Wiring: account_drift_queue() into the table of queues, with the route { EVENT_DRIFT_DETECTED, DRIFT_QUEUE }; account_drift_pass() is for
 * a job, every six hours.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "domain/cloud.h"
#include "kernel/queue.h"
#include "service/passes.h"

struct store;

#define DRIFT_QUEUE          "account-drift"
#define EVENT_DRIFT_DETECTED "AccountDriftDetected"

struct account_drift {
	struct store        *store;
	struct organisation *organisation;
	const struct clock  *clock;

	/* Still wanted? NULL: always. */
	bool (*go_on)(void *arg);
	void *go_on_arg;
};

/* Compares every account with the OU it is really in; arg is a struct account_drift. Blocks. When the organisation cannot be listed to the
 * end, nothing was concluded. Counts: scanned, drifted (told of), suspected (seen for the first time), recovered, stalled (in the
 * right OU, followed again), unknown. */
MUST_CHECK enum rc account_drift_pass(void *arg, struct pass_result *ret, struct err *e);

/* Quarantines what has drifted; forgets who has left the organisation's pool. */
struct queue account_drift_queue(void);
