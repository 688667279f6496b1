/* SPDX-License-Identifier: Apache-2.0 */
/* services.c - see services.h. */
#include "service/services.h"

#include "base/attr.h"
#include "kernel/kernel.h"
#include "kernel/records.h"
#include "service/account/account_follow.h"
#include "service/account/account_report.h"
#include "service/lease/blueprints.h"
#include "service/guard/guard.h"
#include "service/hold/holds.h"
#include "service/instance/instance_records.h"
#include "service/lease/leases.h"
#include "service/people/people.h"
#include "service/record/aws_records.h"
#include "service/record/lease_records.h"
#include "service/broker/records.h"
#include "service/service_accounts.h"
#include "service/cost/statement.h"

/* clang-format off */
const struct record_type *const service_types[] = {
	KERNEL_TYPES,
	&sandbox_type, &tombstone_type, &job_type,
	&lease_type, &account_type, &template_type, &lessee_type, &document_type,
	&statement_type, &cost_share_type, &account_report_type, &blueprint_type, &service_account_type, &person_type,
	&hold_type, &account_holds_type, &guard_mark_type,
	&instance_type, &tenant_slot_type, &operation_type, &backup_type, &once_type, &instance_scan_type,
	AWS_TYPES,
};
/* clang-format on */
const size_t service_type_count = ARRAY_LEN(service_types);

const struct hook service_hooks[] = {
	{ ACCOUNT_HOOKS, &lease_account_hooks },
	{ HOLD_GUARD_MODE, &guard_hold_mode },
};
const size_t service_hook_count = ARRAY_LEN(service_hooks);
