/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - what each command of commands.def calls, and what it shows.
 *
 * A command that calls one route and prints the answer is a row and nothing else. Only what really does more has a
 * function of its own.
 */
#include "cli/call/call.h"

#include "cli/commands/run.h"

enum { API_PAGE_MOST = 1000, ENTRY_PAGE_MOST = 20 };
enum { HOLD_HOURS_MAX = 87600, STALE_HOURS_MAX = 8760, OVERLAP_MINUTES_MAX = 43200 };

/* clang-format off */

/* --- fields --- */

#define FIELDS(...)             (const struct compose_field[]){ __VA_ARGS__, { .name = NULL } }
#define TEXT(member, id)        { .name = member, .value = VALUE_TEXT, .option = CLI_OPTION_##id }
#define FILLED(member, id)      { .name = member, .value = VALUE_FILLED, .option = CLI_OPTION_##id }
#define TIME(member, id)        { .name = member, .value = VALUE_TIME, .option = CLI_OPTION_##id }
#define AMOUNT(member, id)      { .name = member, .value = VALUE_AMOUNT, .option = CLI_OPTION_##id }
#define FIRST_LINE(member, id)  { .name = member, .value = VALUE_FIRST_LINE, .option = CLI_OPTION_##id }
#define WORD(member, id, word)  { .name = member, .value = VALUE_WORD, .option = CLI_OPTION_##id, .text = word }
#define LITERAL(member, id, js) { .name = member, .value = VALUE_LITERAL, .option = CLI_OPTION_##id, .text = js }
#define FIXED(member, word)     { .name = member, .value = VALUE_FIXED, .text = word }
#define OPERAND(member)         { .name = member, .value = VALUE_OPERAND }
#define NUMBER(member, id, least, most, otherwise) \
	{ .name = member, .value = VALUE_NUMBER, .option = CLI_OPTION_##id, .min = least, .max = most, \
	  .fallback = otherwise }

#define GIVEN_REASON FIELDS(FILLED("reason", REASON))
#define BY_STATUS FIELDS(TEXT("status", STATUS))
/* What can be given with every change of a hold: until when, why and who. */
#define HOLD_FIELDS NUMBER("hours", HOURS, 1, HOLD_HOURS_MAX, 0), TIME("due_at", UNTIL), TEXT("reason", REASON), \
	TEXT("by", EMAIL)
#define WEBHOOK_FIELDS FIELDS(TEXT("url", URL), TEXT("filter", FILTER), TEXT("description", DESCRIPTION), \
	FIRST_LINE("secret", SECRET_FILE), LITERAL("paused", PAUSE, "true"), LITERAL("paused", RESUME, "false"))

const struct compose_field event_filters[] = {
	TEXT("type", TYPE), TEXT("subject", SUBJECT), TEXT("actor", ACTOR), TEXT("since", SINCE), TEXT("until", UNTIL),
	WORD("order", OLDEST, "oldest"), { .name = NULL },
};

static const char *check_extension(const struct cli_args *args)
{
	bool is_one = !args->values[CLI_OPTION_HOURS] != !args->values[CLI_OPTION_UNTIL];

	return is_one ? NULL : "give either --hours N or --until TIME";
}

static const char *check_webhook_change(const struct cli_args *args)
{
	const char *const *v = args->values;

	if (v[CLI_OPTION_PAUSE] && v[CLI_OPTION_RESUME])
		return "give --pause or --resume, not both";
	if (!v[CLI_OPTION_URL] && !v[CLI_OPTION_FILTER] && !v[CLI_OPTION_DESCRIPTION] && !v[CLI_OPTION_SECRET_FILE] &&
	    !v[CLI_OPTION_PAUSE] && !v[CLI_OPTION_RESUME])
		return "nothing to change: give --url, --filter, --description, --secret-file, --pause or --resume";
	return NULL;
}

static const char *check_doctor(const struct cli_args *args)
{
	return args->values[CLI_OPTION_WITHOUT_ARCHIVE] && !args->values[CLI_OPTION_FIX]
	               ? "--without-archive works only together with --fix"
	               : NULL;
}

static const char *check_instance_update(const struct cli_args *args)
{
	const char *const *v = args->values;

	return v[CLI_OPTION_TIER] || v[CLI_OPTION_WORDPRESS] || v[CLI_OPTION_EMAIL]
	               ? NULL
	               : "nothing to change: give --tier, --wordpress or --email";
}

static int run_doctor(struct remote *remote)
{
	struct call row = call_row(remote);

	if (!remote->is_json)
		print_paused_claims(remote);
	if (remote->args->values[CLI_OPTION_FIX])
		row.method = "POST";
	return call_run(remote, &row);
}

/* --- details --- */

static const struct column lease_details[] = {
	{ "Lease", "uuid" }, { "Owner", "userEmail" }, { "Status", "status", .cell = cell_lease_status },
	{ "Line", "queuePosition", .cell = cell_lease_line }, { "Template", "originalLeaseTemplateName" },
	{ "Account", "awsAccountId" }, { "Credentials", "credentialsSecret" },
	{ "Spent/budget", "totalCostAccrued", .cell = cell_lease_spent },
	{ "The cost is", "costState" }, { "Spending known up to", "costAsOf", .cell = cell_time },
	{ "With what is not billed yet, about", "estimatedSpend", .cell = cell_dollars },
	{ "At its end date, at this rate", "projectedSpend", .cell = cell_dollars },
	{ "Over budget before a bill shows it", "possibleOverrun", .cell = cell_dollars },
	{ "Budget thresholds", "budgetThresholds", .cell = cell_thresholds },
	{ "Lasts", "leaseDurationInHours", .cell = cell_hours },
	{ "Time thresholds", "durationThresholds", .cell = cell_thresholds },
	{ "Requested", "meta.createdTime", .cell = cell_time }, { "Requested by", "createdBy" },
	{ "Comments", "comments" }, { "Approved by", "approvedBy" }, { "Approved because", "approvalReason" },
	{ "Denied by", "deniedBy" },
	{ "Reason", "denyReason" }, { "Frozen by", "frozenBy" }, { "Frozen because", "freezeReason.comment" },
	{ "Started", "startDate", .cell = cell_time },
	{ "Ends", "expirationDate", .cell = cell_lease_coming_end },
	{ "Ended", "endDate", .cell = cell_time }, { "Ended by", "terminatedBy" },
	{ "Ended because", "endReason.comment" },
	{ "Cost group", "costReportGroup" }, { "Blueprint", "blueprintName" }, { "API id", "leaseId" },
	{ NULL },
};

static const struct column forecast_details[] = {
	{ "At", "at", .cell = cell_time }, { "Needed", "need" }, { "Free now", "available" },
	{ "Waiting in line", "waiting" }, { "End before then", "ending" },
	{ "Waiting for deletion", "pending_deletion" }, { "New in the last day", "added_last_day" },
	{ "New by then", "expected_refill" },
	{ "Free then", "expected" }, { "Enough", "enough" }, { NULL },
};

static const struct column template_details[] = {
	{ "Template", "name" }, { "ID", "uuid" }, { "Description", "description" },
	{ "Needs approval", "requiresApproval" }, { "Visible", "visibility" },
	{ "Budget", "maxSpend", .cell = cell_dollars },
	{ "Budget thresholds", "budgetThresholds", .cell = cell_thresholds },
	{ "Lasts", "leaseDurationInHours", .cell = cell_hours },
	{ "Time thresholds", "durationThresholds", .cell = cell_thresholds },
	{ "Cost group", "costReportGroup" }, { "Blueprint", "blueprintName" }, { "Created by", "createdBy" },
	{ "Created", "meta.createdTime", .cell = cell_time }, { NULL },
};

static const struct column account_details[] = {
	{ "Account", "awsAccountId" }, { "Name", "name" }, { "Email", "email" }, { "Status", "phase" },
	{ "Cooldown until", "restingUntil", .cell = cell_time }, { "Open holds", "openHolds" },
	{ "Reason", "reason" }, { "Lease", "leaseUuid" }, { "Was outside its OU", "driftAtLastScan" },
	{ "Clean since", "lastCleanedTime", .cell = cell_time },
	{ "Last cleanup started", "cleanupExecutionContext.stateMachineExecutionStartTime", .cell = cell_time },
	{ "Cleaned because", "cleanupReason" }, { "Successful runs", "cleanupSucceededAttempts" },
	{ "Failed runs", "cleanupFailedAttempts" },
	{ "Removed resources", "lastCleanup", .cell = cell_account_report },
	{ "Registered", "meta.createdTime", .cell = cell_time }, { NULL },
};

static const struct column hold_details[] = {
	{ "Hold", "id" }, { "Account", "account_id" }, { "For", "reason" }, { "State", "state" },
	{ "Mode", "mode" }, { "Created", "created_at" }, { "Due", "due_at" },
	{ "Ends", NULL, .cell = cell_hold_person }, { "By", "created_by" }, { "Why", "note" },
	{ "Schedule", "schedule" }, { "Event", "source_event" }, { "Lease", "lease_uuid" },
	{ "Placement", "placement" }, { "Last error", "last_error" }, { "Closed", "closed_at" },
	{ "Closed by", "closed_by" }, { "Closed because", "closed_why" }, { NULL },
};

static const struct column instance_details[] = {
	{ "Instance", "instanceId" }, { "Tenant", "tenantId" }, { "Organization", "organizationName" },
	{ "Contact", "contactEmail" }, { "Status", "status" }, { "State", "provisioningState" },
	{ "Reason", "reason" }, { "Tasks", NULL, .cell = cell_instance_tasks }, { "Tier", "tier" },
	{ "WordPress", "configuration.wordpressVersion" }, { "Site", "endpoint" },
	{ "Under way", "operation", .cell = cell_instance_operation },
	{ "Last error", "lastError", .cell = cell_instance_error },
	{ "May be left over", "lastError.leftovers" },
	{ "Too few tasks since", "belowDesiredSince", .cell = cell_time },
	{ "Archive", "archiveId" }, { "Archive kept until", "archivedUntil", .cell = cell_time },
	{ "Requested by", "requestedBy" }, { "Created", "createdAt", .cell = cell_time },
	{ "Active since", "activatedAt", .cell = cell_time }, { "Removed", "removedAt", .cell = cell_time },
	{ "Actions", "allowedTransitions" }, { NULL },
};

static const struct column statement_details[] = {
	{ "Lease", "lease" }, { "Owner", "user_email" }, { "Account", "account_id" },
	{ "Cost group", "cost_group" }, { "State", "state" },
	{ "Lease began", "lease_started_at", .cell = cell_time },
	{ "Lease ended", "lease_ended_at", .cell = cell_time }, { "Counted from", "from", .cell = cell_time },
	{ "Counted until", "to", .cell = cell_time }, { "Total (USD)", "total_usd", .cell = cell_dollars },
	{ "Estimate (USD)", "estimated_usd", .cell = cell_dollars },
	{ "Budget (USD)", "budget_usd", .cell = cell_dollars },
	{ "Over budget by (USD)", "over_budget_usd", .cell = cell_dollars },
	{ "Known up to", "complete_until", .cell = cell_time }, { "Hash", "hash" }, { NULL },
};

static const struct column spend_details[] = {
	{ "Lease", "lease" }, { "Account", "account_id" }, { "Counted from", "from", .cell = cell_time },
	{ "Known up to", "complete_until", .cell = cell_time },
	{ "Spent so far (USD)", "total_usd", .cell = cell_dollars },
	{ "Budget (USD)", "budget_usd", .cell = cell_dollars }, { NULL },
};

/* --- the rows --- */

#define COLUMNS(...)             .columns = (const struct column[]){ __VA_ARGS__, { .heading = NULL } }
#define CALL(who, verb, where)   .scope = REMOTE_##who, .method = verb, .path = where
#define GET(who, where)          CALL(who, "GET", where)
#define POST(who, where)         CALL(who, "POST", where)
#define LIST(who, where, member) GET(who, where), .items = member
#define STATEMENT                .query = FIELDS(WORD("format", CSV, "csv")), \
	.accept = "Accept: text/csv, application/json", .columns = statement_details, .print = print_statement_rows
#define POLICY_SHOW              GET(ADMIN, ""), .print = print_policy_document
#define POLICY_CHECK             POST(ADMIN, "/check"), .body = FIELDS({ .name = "document", .value = VALUE_FILE }), \
	.print = print_policy_check, .exit_code = exit_code_of_policy_check
#define INSTANCE_ACTION(word) CALL(TENANT, "PUT", "/-/instances/{}/status"), .finish = finish_instance, \
	.body = FIELDS(FIXED("action", word), TEXT("reason", REASON))
#define ROW(id)                  [CLI_COMMAND_##id]

const struct call calls[CLI_COMMAND__COUNT] = {
	ROW(STATUS) = { .run = run_status },
	ROW(DEMO) = { .run = run_demo },
	ROW(EXPLAIN) = { .run = run_explain, GET(ADMIN, ""), .print = print_explanation },
	ROW(DOCTOR_AWS) = { GET(ADMIN, "/ops/doctor/aws"), .query = FIELDS(WORD("paid", PAID, "true")),
		.waiting_for = "waiting for AWS", .print = print_aws_probe, .verdict = "ok" },
	ROW(DOCTOR) = { .run = run_doctor, GET(ADMIN, "/ops/doctor"), .waiting_for = "comparing",
		.query = FIELDS(WORD("without_archive", WITHOUT_ARCHIVE, "true")), .check = check_doctor,
		.print = print_doctor, .exit_code = exit_code_of_doctor },

	ROW(SANDBOX_CLAIM) = { .run = run_sandbox_claim },
	ROW(SANDBOX_SHOW) = { .run = run_sandbox_show, GET(ADMIN, "/admin/sandboxes/{}") },
	ROW(SANDBOX_GIVE_BACK) = { .run = run_sandbox_give_back, POST(TRACK, "/sandboxes/{}/mark-for-deletion") },
	ROW(SANDBOX_REPLACE) = { .run = run_sandbox_replace, POST(ADMIN, "/admin/sandboxes/{}/replace"),
		.body = GIVEN_REASON },
	ROW(POOL_FORECAST) = { GET(ADMIN, "/admin/forecast"), .columns = forecast_details,
		.query = FIELDS(TEXT("at", AT), NUMBER("need", NEED, 0, INT32_MAX, 0)),
		.exit_code = exit_code_of_forecast },
	ROW(SANDBOX_LIST) = { LIST(ADMIN, "/admin/sandboxes", "sandboxes"),
		.query = FIELDS(TEXT("status", STATUS), TEXT("q", FIND)), .has_pages = true,
		.takes_empty_page = true,
		COLUMNS({ "ID", "sandbox_id" }, { "NAME", "name", .is_spare = true }, { "STATUS", "status", 12 },
			{ "TRACK", "allocated_to_track", 8 }, { "EXPIRES", "expires_at", .cell = cell_due },
			{ "REASON", "quarantine_reason", 8, .is_optional = true }) },
	ROW(SANDBOX_STATS) = { GET(ADMIN, "/admin/stats") },
	ROW(SANDBOX_QUARANTINE) = { .run = run_sandbox_quarantine, POST(ADMIN, "/admin/sandboxes/{sandbox}/quarantine"),
		.body = GIVEN_REASON },
	ROW(SANDBOX_RELEASE) = { POST(ADMIN, "/admin/sandboxes/{sandbox}/release") },
	ROW(SANDBOX_DELETE) = { POST(ADMIN, "/admin/sandboxes/{sandbox}/delete") },
	ROW(SANDBOX_RETRY_DELETION) = { .run = run_sandbox_retry_deletion,
		POST(ADMIN, "/admin/sandboxes/{sandbox}/retry-deletion") },
	ROW(SANDBOX_BULK_DELETE) = { .run = run_sandbox_bulk_delete, POST(ADMIN, "/admin/bulk-delete"),
		.query = BY_STATUS },
	ROW(SANDBOX_REMOVE_STALE) = { POST(ADMIN, "/admin/auto-delete-stale"),
		.query = FIELDS(NUMBER("grace_period_hours", HOURS, 1, STALE_HOURS_MAX, 24)),
		.waiting_for = "waiting for the end of the run", .finish = finish_job },

	ROW(CLOCK_SHOW) = { GET(ADMIN, "/ops/clock") },
	ROW(CLOCK_ACCEPT) = { POST(ADMIN, "/ops/clock/accept") },
	ROW(CLAIMS_SHOW) = { GET(ADMIN, "/admin/claims") },
	ROW(CLAIMS_PAUSE) = { POST(ADMIN, "/admin/claims/pause"), .body = GIVEN_REASON },
	ROW(CLAIMS_RESUME) = { POST(ADMIN, "/admin/claims/resume"), .body = GIVEN_REASON },

	ROW(LEASE_REQUEST) = { .run = run_lease_request, POST(PERSON, "/leases"), .finish = finish_lease_request },
	ROW(LEASE_LIST) = { .run = run_lease_list, LIST(PERSON, "/leases", "result"),
		.query = FIELDS(TEXT("status", STATUS), TIME("expiresBefore", UNTIL)),
		.page_most = API_PAGE_MOST, COLUMNS({ "ID", "uuid", 8, cell_id }, { "OWNER", "userEmail", 16 },
			{ "TEMPLATE", "originalLeaseTemplateName", 12 }, { "STATUS", "status", 13, cell_lease_status },
			{ "ACCOUNT", "awsAccountId", 12, .is_spare = true },
			{ "SPENT/BUDGET", "totalCostAccrued", 13, cell_lease_spent },
			{ "FORECAST", "projectedSpend", 8, cell_lease_forecast, .is_spare = true },
			{ "ENDS", "endDate", 8, cell_due, .otherwise = "expirationDate" }) },
	ROW(LEASE_SHOW) = { GET(PERSON, "/leases/{lease}"), .columns = lease_details },
	ROW(LEASE_APPROVE) = { .run = run_lease_many, POST(PERSON, "/leases/{lease}/review"),
		.body = FIELDS(FIXED("action", "Approve"), FILLED("reason", REASON)),
		.finish = finish_lease },
	ROW(LEASE_DENY) = { .run = run_lease_many, POST(PERSON, "/leases/{lease}/review"),
		.body = FIELDS(FIXED("action", "Deny"), TEXT("reason", REASON)), .finish = finish_lease },
	ROW(LEASE_FREEZE) = { POST(PERSON, "/leases/{lease}/freeze"), .body = GIVEN_REASON, .finish = finish_lease },
	ROW(LEASE_UNFREEZE) = { POST(PERSON, "/leases/{lease}/unfreeze"), .finish = finish_lease },
	ROW(LEASE_TERMINATE) = { .run = run_lease_many, POST(PERSON, "/leases/{lease}/terminate"), .body = GIVEN_REASON,
		.finish = finish_lease_end },
	ROW(LEASE_WITHDRAW) = { POST(PERSON, "/leases/{lease}/withdraw"), .finish = finish_lease },
	ROW(LEASE_STATEMENT) = { GET(PERSON, "/leases/{lease}/statement"), STATEMENT },
	ROW(LEASE_SPEND) = { GET(PERSON, "/leases/{lease}/spend"), .columns = spend_details,
		.print = print_spend_rows },
	ROW(LEASE_EXTEND) = { .run = run_lease_extend, CALL(PERSON, "PATCH", ""), .columns = lease_details },
	ROW(LEASE_WAIT) = { .run = run_wait_lease },
	ROW(WAIT_LEASE) = { .run = run_wait_lease },
	ROW(WAIT_ACCOUNT) = { .run = run_wait_account },

	ROW(TEMPLATE_LIST) = { LIST(PERSON, "/leaseTemplates", "result"), .page_most = API_PAGE_MOST,
		COLUMNS({ "NAME", "name", 20 }, { "ID", "uuid", 36 }, { "APPROVAL", "requiresApproval", 8 },
			{ "BUDGET", "maxSpend", 10, cell_dollars }, { "LASTS", "leaseDurationInHours", 9, cell_hours },
			{ "VISIBLE", "visibility", 7 }) },
	ROW(TEMPLATE_SHOW) = { GET(PERSON, "/leaseTemplates/{}"), .columns = template_details },
	ROW(TEMPLATE_CREATE) = { .run = run_template_create },
	ROW(TEMPLATE_CHANGE) = { .run = run_template_change },
	ROW(TEMPLATE_DELETE) = { .run = run_template_delete },

	ROW(ACCOUNT_LIST) = { LIST(PERSON, "/accounts", "result"), .query = FIELDS(TEXT("phase", STATUS)),
		.page_most = API_PAGE_MOST,
		COLUMNS({ "ID", "awsAccountId", 12 }, { "NAME", "name", 20 }, { "STATUS", "phase", 10 },
			{ "COOLDOWN", "restingUntil", 7, cell_account_rest }, { "LEASE", "leaseUuid", 8, cell_id },
			{ "CLEANED", "lastCleanedTime", 8, cell_due }, { "REASON", "reason", 23 }) },
	ROW(ACCOUNT_UNREGISTERED) = { LIST(PERSON, "/accounts/unregistered", "result"), .page_most = ENTRY_PAGE_MOST,
		COLUMNS({ "ID", "Id", 12 }, { "NAME", "Name", 34 }, { "EMAIL", "Email", 50 }) },
	ROW(ACCOUNT_SHOW) = { GET(PERSON, "/accounts/{awsAccountId}"), .columns = account_details, .print = print_account_report },
	ROW(ACCOUNT_REGISTER) = { POST(PERSON, "/accounts"), .body = FIELDS(OPERAND("awsAccountId")),
		.columns = account_details, .print = print_account_report,
		.note = "It is cleaned first. To see its progress: leasehold account show {}" },
	ROW(ACCOUNT_RETRY_CLEANUP) = { POST(PERSON, "/accounts/{awsAccountId}/retryCleanup"),
		.query = FIELDS(WORD("restartRest", FORCE, "true")), .shown_by = CLI_COMMAND_ACCOUNT_SHOW },
	ROW(ACCOUNT_QUARANTINE) = { POST(PERSON, "/accounts/{awsAccountId}/quarantine"), .body = GIVEN_REASON,
		.shown_by = CLI_COMMAND_ACCOUNT_SHOW },
	ROW(ACCOUNT_EJECT) = { POST(PERSON, "/accounts/{awsAccountId}/eject"),
		.result = "Account {} leaves the pool as it is. Nothing in it was deleted: take care of it." },

	ROW(INSTANCE_LIST) = { LIST(ADMIN, "/ops/instances", "instances"), .has_pages = true, .takes_empty_page = true,
		.query = FIELDS(TEXT("status", STATUS), TEXT("tenant", TENANT)),
		COLUMNS({ "TENANT", "tenantId", 24 }, { "STATUS", "status", 22 },
			{ "TASKS", NULL, 5, cell_instance_tasks }, { "TIER", "tier", 12 },
			{ "CHANGED", "updatedAt", 8, cell_age }, { "INSTANCE", "instanceId", 41 }) },
	ROW(INSTANCE_SHOW) = { GET(TENANT, "/-/instances/{}"), .columns = instance_details },
	ROW(INSTANCE_CREATE) = { POST(TENANT, "/{}/instances"), .finish = finish_instance,
		.body = FIELDS(TEXT("organizationName", ORGANIZATION), TEXT("contactEmail", EMAIL), TEXT("tier", TIER),
			TEXT("configuration.wordpressVersion", WORDPRESS),
			NUMBER("configuration.desiredCount", COUNT, 2, 10, 0)),
		.headers = FIELDS(TEXT("Idempotency-Key", KEY)) },
	ROW(INSTANCE_UPDATE) = { CALL(TENANT, "PUT", "/-/instances/{}"), .finish = finish_instance,
		.body = FIELDS(TEXT("contactEmail", EMAIL), TEXT("tier", TIER),
			TEXT("configuration.wordpressVersion", WORDPRESS)), .check = check_instance_update },
	ROW(INSTANCE_EXPLAIN) = { GET(ADMIN, "/ops/explain/instance/{}"), .print = print_explanation },
	ROW(INSTANCE_SUSPEND) = { INSTANCE_ACTION("suspend") },
	ROW(INSTANCE_RESUME) = { INSTANCE_ACTION("resume") },
	ROW(INSTANCE_PARK) = { INSTANCE_ACTION("park") },
	ROW(INSTANCE_UNPARK) = { INSTANCE_ACTION("unpark") },
	ROW(INSTANCE_RECOVER) = { INSTANCE_ACTION("recover") },
	ROW(INSTANCE_SCALE) = { CALL(TENANT, "PUT", "/-/instances/{}/size"), .finish = finish_instance,
		.body = FIELDS(NUMBER("desiredCount", COUNT, 2, 10, 0)) },
	ROW(INSTANCE_DELETE) = { CALL(TENANT, "DELETE", "/-/instances/{}"), .body = FIELDS(TEXT("reason", REASON)),
		.finish = finish_instance },
	ROW(INSTANCE_BACKUP) = { POST(TENANT, "/-/instances/{}/backup"), .finish = finish_instance },
	ROW(INSTANCE_BACKUPS) = { LIST(TENANT, "/-/instances/{}/backups?pageSize=100", "items"),
		COLUMNS({ "BACKUP", "backupId", 48 }, { "KIND", "kind", 14 }, { "STATE", "state", 8 },
			{ "MADE", "createdAt", 8, cell_age }, { "KEPT", "keptUntil", 8, cell_due },
			{ "BYTES", "bytes", 12 }) },
	ROW(INSTANCE_RESTORE) = { POST(TENANT, "/-/instances/{}/restore"), .body = FIELDS(TEXT("backupId", FROM)),
		.finish = finish_instance },
	ROW(INSTANCE_ROTATE) = { POST(TENANT, "/-/instances/{}/rotate"), .finish = finish_instance },
	ROW(INSTANCE_LOGS) = { LIST(TENANT, "/-/instances/{}/logs", "logs"),
		.query = FIELDS(TIME("startTime", SINCE), TIME("endTime", UNTIL), NUMBER("limit", LIMIT, 1, 1000, 0)),
		COLUMNS({ "TIME", "timestamp" }, { "TASK", "taskId" }, { "LINE", "message" }) },
	ROW(INSTANCE_SECRET) = { POST(TENANT, "/-/instances/{}/secret"),
		.note = "The event log records that it was shown." },
	ROW(INSTANCE_PERSON_ADD) = { POST(TENANT, "/-/instances/{}/people"),
		.body = FIELDS({ .name = "email", .value = VALUE_SECOND }, TEXT("name", NAME)),
		.note = "The password is for the first sign-in within a week, and is not shown again." },
	ROW(INSTANCE_PERSON_LIST) = { LIST(TENANT, "/-/instances/{}/people", "items"),
		COLUMNS({ "EMAIL", "email", 40 }, { "NAME", "name", 30 }, { "ADDED", "addedAt", 8, cell_age }) },
	ROW(INSTANCE_PERSON_REMOVE) = { CALL(TENANT, "DELETE", "/-/instances/{}/people/{}") },

	ROW(HOLD_LIST) = { LIST(ADMIN, "/ops/holds", "holds"), .query = FIELDS(OPERAND("account")), .has_pages = true,
		COLUMNS({ "HOLD", "id", 26 }, { "REASON", "reason", 14 }, { "ENDS", NULL, 15, cell_hold_end },
			{ "CREATED", "created_at", 7, cell_age }, { "BY", "created_by", 14 }, { "WHY", "note", 20 }) },
	ROW(HOLD_SHOW) = { GET(ADMIN, "/ops/holds/{}"), .columns = hold_details },
	ROW(HOLD_ADD) = { POST(ADMIN, "/ops/holds"), .body = FIELDS(OPERAND("account"), HOLD_FIELDS),
		.columns = hold_details },
	ROW(HOLD_EXTEND) = { POST(ADMIN, "/ops/holds/{}/extend"), .body = FIELDS(HOLD_FIELDS), .check = check_extension,
		.columns = hold_details },
	ROW(HOLD_RELEASE) = { POST(ADMIN, "/ops/holds/{}/release"), .body = FIELDS(HOLD_FIELDS),
		.columns = hold_details },
	ROW(HOLD_CANCEL) = { POST(ADMIN, "/ops/holds/{}/cancel"), .body = FIELDS(HOLD_FIELDS),
		.columns = hold_details },
	ROW(HOLD_BYPASS) = { POST(ADMIN, "/ops/holds/bypass"), .body = FIELDS(OPERAND("account"), HOLD_FIELDS),
		.note = "The account's next cleanup is not followed by a cooldown; the one after it is." },
	ROW(HOLD_DRAIN) = { .run = run_hold_drain, POST(ADMIN, "/ops/holds/drain"), .items = "holds", .has_pages = true,
		.body = FIELDS(OPERAND("mode"), TEXT("reason", REASON), TEXT("by", EMAIL),
			LITERAL("apply", YES, "true")),
		COLUMNS({ "ACCOUNT", "account_id" }, { "REASON", "reason" }, { "DUE", "due_at", .cell = cell_hold_due },
			{ "SCHEDULE", "schedule" }) },
	ROW(HOLD_SAFE_TO_REMOVE) = { GET(ADMIN, "/ops/holds/safe-to-remove"), .print = print_removal,
		.verdict = "safe" },

	ROW(JOB_LIST) = { LIST(ADMIN, "/admin/jobs", "jobs"),
		COLUMNS({ "NAME", "name" }, { "STATE", NULL, .cell = cell_job_state },
			{ "EVERY", "interval_sec", .cell = cell_duration },
			{ "LAST END", "last_finished_at", .cell = cell_due }, { "OUTCOME", "last_outcome" },
			{ "NEXT RUN", "next_run_at", .cell = cell_due }, { "ERROR", "last_error", 10 }) },
	ROW(JOB_RUN) = { .run = run_job_run, POST(ADMIN, "/admin/jobs/{}/run"),
		.headers = FIELDS(WORD("Prefer", ASYNC, "respond-async")),
		.waiting_for = "waiting for the end of the run", .finish = finish_job },
	ROW(JOB_PAUSE) = { POST(ADMIN, "/admin/jobs/{}/pause") },
	ROW(JOB_RESUME) = { POST(ADMIN, "/admin/jobs/{}/resume") },

	ROW(EVENT_LIST) = { LIST(ADMIN, "/ops/events", "events"), .query = event_filters, .has_pages = true,
		.plain_query = "jobs=no",
		COLUMNS({ "ID", "id", 36 }, { "AGE", "time", 5, cell_age }, { "TYPE", "detail-type", 20 },
			{ "SUBJECT", "subject", 18 }, { "ACTOR", "actor", 12 }) },
	ROW(EVENT_SHOW) = { GET(ADMIN, "/ops/events/{}") },
	ROW(EVENT_EXPORT) = { GET(ADMIN, "/ops/events/export"), .query = event_filters, .is_stream = true,
		.waiting_for = "exporting" },
	ROW(EVENT_WATCH) = { .run = run_event_watch },

	ROW(QUEUE_LIST) = { LIST(ADMIN, "/ops/queues", "queues"),
		COLUMNS({ "NAME", "name", 32 }, { "SUBJECTS", "lanes", 9 },
			{ "OLDEST", "oldest_age_sec", 6, cell_seconds }, { "FAILING", "failing", 8 },
			{ "DEAD", "dead", 8 }, { "TRIES", "tries", 8, cell_queue_tries },
			{ "VISIBILITY", "visibility_sec", 10, cell_seconds }) },
	ROW(QUEUE_SHOW) = { LIST(ADMIN, "/ops/queues/{}/lanes", "lanes"), .has_pages = true,
		COLUMNS({ "SUBJECT", "subject", 26 }, { "TARGET", "target", 12 }, { "STATE", "state", 9 },
			{ "BEHIND", "behind", 6 }, { "AGE", "since_at", 5, cell_age }, { "TRIES", "tries", 5 },
			{ "DUE", "due_at", 8, cell_due }, { "ERROR", "last_error", 15 }) },

	ROW(DLQ_LIST) = { LIST(ADMIN, "/ops/dead-letters", "dead_letters"), .query = FIELDS(TEXT("queue", QUEUE)),
		.has_pages = true,
		COLUMNS({ "ID", "id", 36 }, { "QUEUE", "queue", 11 }, { "SUBJECT", "subject", 16 },
			{ "TRIES", "tries", 5 }, { "DIED", "died_at", 5, cell_age }, { "ERROR", "error", 17 }) },
	ROW(DLQ_SHOW) = { GET(ADMIN, "/ops/dead-letters/{}") },
	ROW(DLQ_REPLAY) = { .run = run_dlq_replay, POST(ADMIN, "/ops/dead-letters/{}/replay") },
	ROW(DLQ_DROP) = { .run = run_dlq_drop, POST(ADMIN, "/ops/dead-letters/{}/drop"), .body = GIVEN_REASON },

	ROW(TIMER_LIST) = { LIST(ADMIN, "/ops/timers", "timers"), .query = FIELDS(TEXT("prefix", PREFIX)),
		.has_pages = true,
		COLUMNS({ "NAME", "name", 36 }, { "DUE", "due_at", 8, cell_due }, { "TYPE", "type", 24 },
			{ "SUBJECT", "subject", 26 }) },
	ROW(TIMER_FIRE) = { POST(ADMIN, "/ops/timers/{}/fire") },
	ROW(TIMER_CANCEL) = { CALL(ADMIN, "DELETE", "/ops/timers/{}") },

	ROW(SAGA_LIST) = { LIST(ADMIN, "/ops/sagas", "sagas"), .has_pages = true,
		.query = FIELDS(TEXT("state", STATE), TEXT("subject", SUBJECT)),
		COLUMNS({ "ID", "id" }, { "KIND", "kind", 12, .is_spare = true },
			{ "SUBJECT", "subject", 14, .is_spare = true },
			{ "STATE", "state", 7 }, { "STEP", "step_name", 9, cell_saga_step },
			{ "SINCE", "step_since_at", 5, cell_age }, { "TRIES", "tries", 5, .is_spare = true },
			{ "WHY", "last_error", 7, .otherwise = "reason" }) },
	ROW(SAGA_SHOW) = { GET(ADMIN, "/ops/sagas/{}"), .print = print_saga },
	ROW(SAGA_RETRY) = { POST(ADMIN, "/ops/sagas/{}/retry"), .print = print_saga },
	ROW(SAGA_SKIP) = { POST(ADMIN, "/ops/sagas/{}/skip"), .body = GIVEN_REASON, .print = print_saga },
	ROW(SAGA_ABORT) = { POST(ADMIN, "/ops/sagas/{}/abort"), .body = GIVEN_REASON, .print = print_saga },

	ROW(ALARM_LIST) = { LIST(ADMIN, "/ops/alarms", "alarms"),
		COLUMNS({ "SEVERITY", "severity", 8 }, { "STATE", "state", 7, .is_spare = true },
			{ "SINCE", "since_at", 5, cell_age }, { "NAME", "name" }, { "EVIDENCE", "evidence", 8 }) },
	ROW(ALARM_SHOW) = { .run = run_alarm_show,
		COLUMNS({ "Alarm", "name" }, { "Severity", "severity" }, { "State", "state" },
			{ "What is wrong", "evidence" }, { "Since", "since_at" }, { "Last change", "checked_at" }) },

	ROW(WEBHOOK_LIST) = { LIST(ADMIN, "/ops/webhooks", "webhooks"),
		COLUMNS({ "ID", "id", 36 }, { "STATE", "paused", .yes = "paused", .no = "active" },
			{ "AGE", "created_at", 5, cell_age }, { "FILTER", "filter", 15 }, { "URL", "url", 30 }) },
	ROW(WEBHOOK_CREATE) = { POST(ADMIN, "/ops/webhooks"), .body = WEBHOOK_FIELDS,
		.note = "The secret is not shown again." },
	ROW(WEBHOOK_CHANGE) = { CALL(ADMIN, "PATCH", "/ops/webhooks/{webhook}"), .body = WEBHOOK_FIELDS,
		.check = check_webhook_change },
	ROW(WEBHOOK_REMOVE) = { CALL(ADMIN, "DELETE", "/ops/webhooks/{webhook}") },
	ROW(WEBHOOK_TEST) = { POST(ADMIN, "/ops/webhooks/{webhook}/test") },

	ROW(POLICY_SHOW) = { .run = run_policy_document, POLICY_SHOW },
	ROW(POLICY_CHECK) = { .run = run_policy_document, POLICY_CHECK },
	ROW(POLICY_SET) = { .run = run_policy_set },
	ROW(POLICY_EDIT) = { .run = run_policy_edit },
	ROW(POLICY_HISTORY) = { .run = run_policy_document, LIST(ADMIN, "/history", "edits"), .has_pages = true,
		COLUMNS({ "VERSION", "new_version", 8 }, { "AGE", "at", 5, cell_age }, { "BY", "by", 30 },
			{ "CHANGED", "changes", 70, cell_policy_keys }) },
	ROW(POLICY_EXPLAIN) = { POST(ADMIN, "/ops/policy/approval/explain"),
		.body = FIELDS(OPERAND("template"), TEXT("userEmail", EMAIL), AMOUNT("maxSpend", MAX_SPEND),
			AMOUNT("hours", HOURS)), .print = print_policy_explanation },
	ROW(CONFIG_SHOW) = { .run = run_policy_document, POLICY_SHOW },
	ROW(CONFIG_VALIDATE) = { .run = run_policy_document, POLICY_CHECK },
	ROW(CONFIG_SET) = { .run = run_policy_set },
	ROW(CONFIG_EDIT) = { .run = run_policy_edit },

	ROW(REPORT_COSTS) = { .run = run_report_costs,
		.query = FIELDS(OPERAND("month"), FILLED("group", GROUP), TEXT("by", BY)) },
	ROW(REPORT_STATEMENT) = { GET(ADMIN, "/ops/leases/{}/statement"), STATEMENT },

	ROW(PERSON_LIST) = { LIST(ADMIN, "/ops/people", "people"), .has_pages = true,
		COLUMNS({ "EMAIL", "email", 40 }, { "NAME", "display_name", 24 }, { "ROLES", "roles", 19 },
			{ "SOURCE", "source", 10 }, { "SIGNED IN", "signed_in_at", 9, cell_age }) },
	ROW(PERSON_REMOVE) = { CALL(ADMIN, "DELETE", "/ops/people/{}") },
	ROW(SERVICE_ACCOUNT_LIST) = { LIST(ADMIN, "/ops/service-accounts", "service_accounts"),
		COLUMNS({ "NAME", "name", 30 }, { "STATE", "revoked_at", .yes = "revoked", .no = "active" },
			{ "SCOPES", "scopes", 30 }, { "AGE", "created_at", 5, cell_age },
			{ "ROTATED", "rotated_at", 7, cell_age }) },
	ROW(SERVICE_ACCOUNT_CREATE) = { POST(ADMIN, "/ops/service-accounts"),
		.body = FIELDS(OPERAND("name"), TEXT("scopes", SCOPES), TEXT("description", DESCRIPTION)),
		.note = "The key is not shown again." },
	ROW(SERVICE_ACCOUNT_ROTATE) = { POST(ADMIN, "/ops/service-accounts/{}/rotate"),
		.body = FIELDS(NUMBER("overlap_minutes", MINUTES, 0, OVERLAP_MINUTES_MAX, 60)),
		.note = "The key is not shown again." },
	ROW(SERVICE_ACCOUNT_REVOKE) = { CALL(ADMIN, "DELETE", "/ops/service-accounts/{}") },
};
/* clang-format on */
