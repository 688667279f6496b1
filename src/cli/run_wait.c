/* SPDX-License-Identifier: Apache-2.0 */
/* run_wait.c - the "wait" commands: until a lease or an account has a status. */
#include "cli/run.h"

#include "base/buf.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/lease.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/watch.h"

static const char lease_statuses[] = "PendingApproval ApprovalDenied Provisioning Active Frozen Expired BudgetExceeded "
                                     "ManuallyTerminated AccountQuarantined Ejected ProvisioningFailed";
static const char account_statuses[] = "Available Active Frozen CleanUp Cooldown Quarantine";

/* --for, as the server writes it: one of the words. */
static bool read_status(struct remote *remote, const char *words, struct str *ret)
{
	struct str typed = str_from(remote->args->values[CLI_OPTION_FOR]), rest = str_from(words);

	while (rest.n) {
		*ret = str_cut(&rest, ' ');
		if (str_eq_nocase(typed, *ret))
			return true;
	}
	return false;
}

int run_wait_lease(struct remote *remote)
{
	struct str id, status = STR("Active");
	int        code;

	if (remote->args->values[CLI_OPTION_FOR] && !read_status(remote, lease_statuses, &status))
		return remote_misused(remote, "--for must be a status of a lease: Active, Frozen, Expired, ...");
	code = lease_find(remote, &id);
	return code == CLI_EXIT_OK ? lease_wait(remote, id, status, CLI_OPTION_TIMEOUT) : code;
}

/* The goal is a status, as text. */
static enum watch_outcome judge(struct remote *remote, const json_t *account, const void *goal, struct str *ret_text)
{
	const struct str *wanted = goal;
	struct str        status = list_text(remote, account, "phase");

	*ret_text = str_format(&remote->arena, "the account is in %.*s", STR_ARG(status));
	return str_eq(status, *wanted) ? WATCH_DONE : WATCH_ON;
}

int run_wait_account(struct remote *remote)
{
	struct str   status = STR("Available");
	struct watch w = { .path = ask_path(remote, "/accounts/", ""),
		           .judge = judge,
		           .goal = &status,
		           .limit = CLI_OPTION_TIMEOUT,
		           .advice = "See why: leasehold account show",
		           .print = account_print };

	if (remote->args->values[CLI_OPTION_FOR] && !read_status(remote, account_statuses, &status))
		return remote_misused(
		        remote,
		        "--for must be a status of an account: Available, Active, Frozen, CleanUp, Cooldown or Quarantine");
	return watch_run(remote, &w);
}
