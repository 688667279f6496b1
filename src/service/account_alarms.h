/* account_alarms.h - what can be wrong with the accounts that are lent, and with the line for them. The argument is a struct
 * broker_alarm_context; all are off where there are no leases. */
#pragma once

#include "kernel/alarm.h"

alarm_rule_fn alarm_accounts_low; /* fewer are Available than the mark; page: none is, and somebody waits in line */
alarm_rule_fn alarm_line_waiting; /* the first in line has waited for more than an hour */
alarm_rule_fn alarm_account_quarantined; /* each account there, with its reason */
alarm_rule_fn alarm_cleanup_stuck;       /* each account that has been in CleanUp for more than 13 hours */
