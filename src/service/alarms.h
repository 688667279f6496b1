/* alarms.h - every alarm there is: the kernel's, the broker's and those of lending accounts, with hold times and where the runbook has it. */
#pragma once

#include <stddef.h>

#include "kernel/alarm.h"

/* For alarm_check(); its arg is a struct broker_alarm_context. */
extern const struct alarm_rule service_alarms[];
extern const size_t            service_alarm_count;
