/* broker_alarms.h - what can be wrong with the pool and its jobs. The argument is a struct broker_alarm_context. */
#pragma once

#include "kernel/alarm.h"

struct broker_settings;
struct hold_rules;

struct broker_alarm_context {
	const struct broker_settings *settings;

	bool    has_leases;         /* for account_alarms.h */
	int64_t accounts_low_water; /* an alarm when fewer accounts are free; 0: never */

	const struct hold_rules *rules; /* for hold_alarms.h; NULL: nobody rests */
};

alarm_rule_fn alarm_pool_low;    /* fewer are free than low_water; page: none is. Off while low_water is 0 */
alarm_rule_fn alarm_job_failing; /* three failures in a row, or a failure that two intervals have not mended */
alarm_rule_fn alarm_job_silent;  /* no run has ended for three intervals and five minutes */
