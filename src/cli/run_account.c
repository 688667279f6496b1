/* SPDX-License-Identifier: Apache-2.0 */
/* run_account.c - the "account" commands: the pool and its members. The server answers some with nothing; then the account is shown. */
#include "cli/run.h"

#include <stdio.h>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/card.h"
#include "cli/cli.h"
#include "cli/lease.h"
#include "cli/list.h"
#include "cli/remote.h"

enum { PAGE_MOST = 1000, ENTRY_PAGE_MOST = 20, RESOURCES_MOST = 20, RESOURCE_MAX = 500 };

/* Until when it rests; empty when it does not. */
static struct str rest_cell(struct remote *remote, const json_t *account, const char *member)
{
	struct str until = list_due(remote, account, member);

	if (!until.n && str_eq(list_text(remote, account, "phase"), STR("Cooldown")))
		return STR("by hand");
	return until;
}

int run_account_list(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "ID", list_text, "awsAccountId", 12 }, { "NAME", list_text, "name", 20 },
		{ "STATUS", list_text, "phase", 10 },    { "RESTS", rest_cell, "restingUntil", 7 },
		{ "LEASE", list_short, "leaseUuid", 8 }, { "CLEANED", list_due, "lastCleanedTime", 8 },
		{ "REASON", list_text, "reason", 23 },
	};
	static const struct ask_filter filters[] = { { CLI_OPTION_STATUS, "status", NULL } };
	static const struct list       accounts = { .path = "/accounts",
		                                    .items = "result",
		                                    .columns = columns,
		                                    .column_count = ARRAY_LEN(columns),
		                                    .filters = filters,
		                                    .filter_count = ARRAY_LEN(filters),
		                                    .is_api = true,
		                                    .page_most = PAGE_MOST };

	return list_run(remote, &accounts);
}

int run_account_unregistered(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "ID", list_text, "Id", 12 },
		{ "NAME", list_text, "Name", 34 },
		{ "EMAIL", list_text, "Email", 50 },
	};
	static const struct list accounts = { .path = "/accounts/unregistered",
		                              .items = "result",
		                              .columns = columns,
		                              .column_count = ARRAY_LEN(columns),
		                              .is_api = true,
		                              .page_most = ENTRY_PAGE_MOST };

	return list_run(remote, &accounts);
}

/* When the last cleanup began. */
static struct str cleanup_cell(struct remote *remote, const json_t *account, const char *member)
{
	return card_time(remote, json_object_get(account, member), "stateMachineExecutionStartTime");
}

/* How many, and what became of the last run. */
static struct str report_cell(struct remote *remote, const json_t *account, const char *member)
{
	const json_t *report = json_object_get(account, member);
	int64_t       removed, failed, filtered, code;

	if (!json_is_object(report) || !json_get_number(report, "removed", 0, &removed) ||
	    !json_get_number(report, "failed", 0, &failed) || !json_get_number(report, "filtered", 0, &filtered) ||
	    !json_get_number(report, "exitCode", 0, &code))
		return STR("");
	return str_format(&remote->arena, "%lld; %lld could not be, %lld were to stay (exit code %lld)",
	                  (long long)removed, (long long)failed, (long long)filtered, (long long)code);
}

static void print_list(struct remote *remote, const json_t *list, const char *title)
{
	size_t count = json_array_size(list);

	if (count)
		fprintf(remote->io->out, "\n%s\n", title);
	for (size_t i = 0; i < count && i < RESOURCES_MOST; i++) {
		struct str name = utf8_line(&remote->arena, str_from(json_string_value(json_array_get(list, i))),
		                            RESOURCE_MAX);

		fprintf(remote->io->out, "  %.*s\n", STR_ARG(name));
	}
	if (count > RESOURCES_MOST)
		fprintf(remote->io->out, "  and %zu more: see --json\n", count - RESOURCES_MOST);
}

static void print_report(struct remote *remote, const json_t *document)
{
	const json_t *report = json_object_get(json_object_get(document, "data"), "lastCleanup");

	if (remote->is_json)
		return;
	print_list(remote, json_object_get(report, "removedResources"), "Removed by the last cleanup:");
	print_list(remote, json_object_get(report, "keptResources"), "Left by it:");
}

void account_print(struct remote *remote, const struct fetch_reply *reply, const json_t *document)
{
	static const struct card_line lines[] = {
		{ "Account", list_text, "awsAccountId" },
		{ "Name", list_text, "name" },
		{ "Email", list_text, "email" },
		{ "Status", list_text, "phase" },
		{ "Rests until", card_time, "restingUntil" },
		{ "Open holds", list_text, "openHolds" },
		{ "Reason", list_text, "reason" },
		{ "Lease", list_text, "leaseUuid" },
		{ "Was in the wrong place", list_text, "driftAtLastScan" },
		{ "Clean since", card_time, "lastCleanedTime" },
		{ "Last cleanup began", cleanup_cell, "cleanupExecutionContext" },
		{ "Cleaned because", list_text, "cleanupReason" },
		{ "Attempts that succeeded", list_text, "cleanupSucceededAttempts" },
		{ "Attempts that failed", list_text, "cleanupFailedAttempts" },
		{ "Removed resources", report_cell, "lastCleanup" },
		{ "Registered", card_created, NULL },
	};

	card_show(remote, reply, document, lines, ARRAY_LEN(lines));
	print_report(remote, document);
}

/* Send, and show the account that is in the answer. */
static int run_and_print(struct remote *remote, const struct remote_request *req)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	int                         code = remote_call(remote, req, &reply, &document);

	if (code == CLI_EXIT_OK)
		account_print(remote, &reply, document);
	return code;
}

int run_account_show(struct remote *remote)
{
	return run_and_print(remote, &(struct remote_request){ .method = "GET",
	                                                       .path = ask_path(remote, "/accounts/", ""),
	                                                       .scope = REMOTE_PERSON });
}

int run_account_register(struct remote *remote)
{
	struct str id = str_from(remote->args->operands[0]);
	int        code = run_and_print(remote, &(struct remote_request){ .method = "POST",
	                                                                  .path = STR("/accounts"),
	                                                                  .scope = REMOTE_PERSON,
	                                                                  .body = ask_body(remote, "awsAccountId", id) });

	if (code == CLI_EXIT_OK && !remote->is_json)
		fprintf(remote->io->err, "It is emptied first. To see how far it is: leasehold account show %.*s\n",
		        STR_ARG(id));
	return code;
}

/* Post an order whose answer says nothing of the account; the body may be empty. */
static int order(struct remote *remote, const char *name, struct str body)
{
	struct remote_request req = {
		.method = "POST", .path = ask_path(remote, "/accounts/", name), .scope = REMOTE_PERSON, .body = body
	};
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	int                         code = remote_call(remote, &req, &reply, &document);

	if (code == CLI_EXIT_OK && remote->is_json)
		remote_print_json(remote, &reply);
	return code;
}

int run_account_retry_cleanup(struct remote *remote)
{
	int code = order(remote, "/retryCleanup", STR(""));

	return code == CLI_EXIT_OK && !remote->is_json ? run_account_show(remote) : code;
}

int run_account_quarantine(struct remote *remote)
{
	struct err e = { 0 };
	struct str reason;
	int        code;

	if (ask_needed(remote, CLI_OPTION_REASON, &reason, &e))
		return remote_misused(remote, e.msg);
	code = order(remote, "/quarantine", ask_body(remote, "reason", reason));
	return code == CLI_EXIT_OK && !remote->is_json ? run_account_show(remote) : code;
}

int run_account_eject(struct remote *remote)
{
	int code = order(remote, "/eject", STR(""));

	if (code == CLI_EXIT_OK && !remote->is_json)
		fprintf(remote->io->out,
		        "Account %s leaves the pool as it is. What is in it was not removed: look after it.\n",
		        remote->args->operands[0]);
	return code;
}
