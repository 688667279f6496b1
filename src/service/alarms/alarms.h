/* alarms.h - every alarm there is: the kernel's, the broker's and those of lending accounts, with hold times and
 * where the runbook has it. The argument of the rules is a struct broker_alarm_context. */
#pragma once

#include "base/str.h"
#include "kernel/alarm/alarm.h"

struct broker_alarm_context {
	const struct broker_settings *settings;

	bool    has_leases;         /* else all about accounts and holds are off */
	bool    has_aws;            /* accounts of AWS are lent: else all about its costs and people is off */
	int64_t accounts_low_water; /* an alarm when fewer accounts are free; 0: never */

	const struct hold_rules *rules; /* NULL: there is no cooldown */
};

/* For alarm_check(). */
extern const struct alarm_rule service_alarms[];
extern const size_t            service_alarm_count;

/* --- the pool of sandboxes and its jobs (alarms.c) --- */

alarm_rule_fn alarm_pool_low; /* fewer are free than low_water; page: none. Off if low_water is 0, or without a pool */
alarm_rule_fn alarm_deletion_failed; /* deletions that nobody tries again until an operator says so */
alarm_rule_fn alarm_still_listed;    /* the vendor lists what was removed more than two hours ago */
alarm_rule_fn alarm_job_failing;     /* three failures in a row, or a failure that two intervals have not mended */
alarm_rule_fn alarm_job_silent;      /* no run has ended for three intervals and five minutes */

/* --- accounts and the line for them (account_alarms.c) --- */

alarm_rule_fn alarm_accounts_low; /* fewer are Available than the mark; page: none is, and somebody waits in line */
alarm_rule_fn alarm_line_waiting; /* the first in line has waited for more than an hour */
alarm_rule_fn alarm_account_quarantined; /* each account there, with its reason */
alarm_rule_fn alarm_cleanup_stuck;       /* each account that has been in CleanUp for more than 13 hours */

/* --- holds, and the comparison of records and organisation (account_alarms.c) --- */

alarm_rule_fn alarm_hold_overdue;    /* FR17: due, and the grace is over; page: a day later */
alarm_rule_fn alarm_hold_bypass;     /* FR19: free after a cleanup without a rest on record; page: lent already */
alarm_rule_fn alarm_hold_broken;     /* a rest without a hold, a hold without a timer: they were put right */
alarm_rule_fn alarm_pool_mismatch;   /* record and OU differ; page: with a lease on it */
alarm_rule_fn alarm_events_silent;   /* accounts were cleaned, and the trail told nothing */
alarm_rule_fn alarm_cloud_throttled; /* the organisation refuses to be listed, several passes in a row, or ten moves */
alarm_rule_fn alarm_accounts_runway; /* the free ones are used up before the next ones have rested */

/* --- what is read from AWS (aws_alarms.c) --- */

alarm_rule_fn alarm_costs_late; /* Cost Explorer was not asked for a day, or an account's costs are five days behind */
alarm_rule_fn alarm_directory_unread; /* Identity Center was not read for half an hour; page: a day, nobody signs in */

/* --- tenants' instances (instance_alarms.c) --- */

alarm_rule_fn alarm_instance_failed;  /* each that is FAILED, with why; page */
alarm_rule_fn alarm_instance_slow;    /* provisioning for more than 15 minutes; page: 20 */
alarm_rule_fn alarm_instance_below;   /* fewer tasks than there should be for 5 minutes; page */
alarm_rule_fn alarm_instance_removal; /* a removal failed and will be tried again */
alarm_rule_fn alarm_instance_orphans; /* what the last scan has found */
