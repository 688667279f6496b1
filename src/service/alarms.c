/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alarms.c - the table of alarms.
 *
 * A hold time keeps from telling what passes by itself. It is 0 where the condition has its own time in it, or does not go away
 * without somebody's doing. The runbook's section has the name of the rule.
 */
#include "service/alarms.h"

#include "base/attr.h"
#include "service/account_alarms.h"
#include "service/broker_alarms.h"
#include "service/hold_alarms.h"

enum { MINUTE_MS = 60000 };

#define RULE(name, find, hold_ms, summary)                            \
	{                                                             \
		name, find, hold_ms, "docs/runbook.md#" name, summary \
	}

/* clang-format off */
const struct alarm_rule service_alarms[] = {
	RULE("dead-letters",  alarm_dead_letters,  0,             "deliveries were given up"),
	RULE("queue-stuck",   alarm_queue_stuck,   0,             "nobody takes what is due"),
	RULE("saga-parked",   alarm_saga_parked,   0,             "a saga waits for a person"),
	RULE("saga-overdue",  alarm_saga_overdue,  MINUTE_MS,     "a saga is over its deadline"),
	RULE("timer-overdue", alarm_timer_overdue, MINUTE_MS,     "timers do not fire in time"),
	RULE("circuit-open",  alarm_circuit_open,  MINUTE_MS,     "calls to a far side are held back"),
	RULE("store-trouble", alarm_store_trouble, MINUTE_MS,     "the store is slow or refuses commits"),
	RULE("node-silent",   alarm_node_silent,   0,             "a node has died or hangs"),
	RULE("pool-low",      alarm_pool_low,      MINUTE_MS,     "few sandboxes are free, or none"),
	RULE("job-failing",   alarm_job_failing,   0,             "a job fails again and again"),
	RULE("job-silent",    alarm_job_silent,    2 * MINUTE_MS, "a job does not run"),

	RULE("accounts-low",        alarm_accounts_low,        MINUTE_MS, "few accounts are free, or none"),
	RULE("line-waiting",        alarm_line_waiting,        0,         "requests wait in line for an account"),
	RULE("account-quarantined", alarm_account_quarantined, 0,         "an account is locked away"),
	RULE("cleanup-stuck",       alarm_cleanup_stuck,       0,         "an account does not come back from cleaning"),

	RULE("hold-overdue",        alarm_hold_overdue,        0,         "an account rests for longer than it should"),
	RULE("hold-bypass",         alarm_hold_bypass,         0,         "an account was free after a cleanup without a rest"),
	RULE("hold-broken",         alarm_hold_broken,         0,         "a rest had no hold, or a hold no timer"),
	RULE("pool-mismatch",       alarm_pool_mismatch,       0,         "an account is not where its record says"),
	RULE("events-silent",       alarm_events_silent,       0,         "the audit trail tells nothing any more"),
	RULE("cloud-throttled",     alarm_cloud_throttled,     0,         "the organisation cannot be listed"),
	RULE("accounts-runway",     alarm_accounts_runway,     MINUTE_MS, "the free accounts are used up before others come back"),
};
/* clang-format on */
const size_t service_alarm_count = ARRAY_LEN(service_alarms);
