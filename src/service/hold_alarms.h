/* hold_alarms.h - what can be wrong with holds and with the comparison of records and organisation. The argument is a struct
 * broker_alarm_context; all are off where there are no leases. */
#pragma once

#include "kernel/alarm.h"

alarm_rule_fn alarm_hold_overdue;    /* FR17: due, and the grace is over; page: a day later */
alarm_rule_fn alarm_hold_bypass;     /* FR19: free after a cleanup without a rest on record; page: lent already */
alarm_rule_fn alarm_hold_broken;     /* a rest without a hold, a hold without a timer: they were put right */
alarm_rule_fn alarm_pool_mismatch;   /* record and OU differ; page: with a lease on it */
alarm_rule_fn alarm_events_silent;   /* accounts were cleaned, and the trail told nothing */
alarm_rule_fn alarm_cloud_throttled; /* the organisation refuses to be listed, several passes in a row */
alarm_rule_fn alarm_accounts_runway; /* the free ones are used up before the next ones have rested */
