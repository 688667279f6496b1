/* SPDX-License-Identifier: Apache-2.0 */
/* lease_wait.c - waiting for a lease: until it can be used, or has a status; and for the account of one that has ended. */
#include "cli/lease.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/show.h"
#include "cli/watch.h"

static bool is_open(struct str status)
{
	static const struct str open[] = { STR_INIT("PendingApproval"), STR_INIT("Provisioning"), STR_INIT("Active"),
		                           STR_INIT("Frozen") };

	for (size_t i = 0; i < ARRAY_LEN(open); i++)
		if (str_eq(status, open[i]))
			return true;
	return false;
}

/* "in line, place 3, about in 12 min" */
static struct str line_text(struct remote *remote, const json_t *lease)
{
	struct str at, estimate = STR("");
	int64_t    place, sec;

	if (!json_get_number(lease, "queuePosition", 0, &place) || place == 0)
		return STR("approved, waits in line for a free account");
	if (json_get_text(lease, "queueEstimate", &at) && iso_time_parse(at, &sec))
		estimate = show_relative(&remote->arena, sec - wall_sec(clock_now(remote->io->clock)));
	return str_format(&remote->arena, "approved, in line for a free account: place %" PRId64 "%s%.*s", place,
	                  estimate.n ? ", about " : "", STR_ARG(estimate));
}

static struct str progress_text(struct remote *remote, const json_t *lease, struct str status)
{
	if (str_eq(status, STR("Active")))
		return STR("the lease is in use");
	if (str_eq(status, STR("Provisioning")))
		return STR("the account is being made ready");
	if (str_eq(status, STR("Frozen")))
		return STR("the lease is frozen; a manager can unfreeze it");
	if (json_is_string(json_object_get(lease, "queuedSince")))
		return line_text(remote, lease);
	return STR("waits for approval");
}

/* The goal is a status, as text. */
static enum watch_outcome judge(struct remote *remote, const json_t *lease, const void *goal, struct str *ret_text)
{
	const struct str *wanted = goal;
	struct str        status = list_text(remote, lease, "status");
	struct str        reason = list_text(remote, lease, "denyReason");

	if (str_eq(status, *wanted))
		return WATCH_DONE;
	if (is_open(status)) {
		*ret_text = progress_text(remote, lease, status);
		return WATCH_ON;
	}
	*ret_text = str_format(&remote->arena, "the lease %s: %.*s%s%.*s",
	                       str_eq(*wanted, STR("Active")) ? "cannot be used" : "has ended otherwise",
	                       STR_ARG(status), reason.n ? ": " : "", STR_ARG(reason));
	return WATCH_FAILED;
}

int lease_wait(struct remote *remote, struct str id, struct str status, enum cli_option_id limit)
{
	struct watch w = { .path = ask_path_of(remote, "/leases/", id, ""),
		           .judge = judge,
		           .goal = &status,
		           .limit = limit,
		           .advice = "The request stays as it is; 'leasehold lease wait' goes on waiting.",
		           .print = lease_print };

	return watch_run(remote, &w);
}

/* The goal is the uuid of the lease that is gone from it. */
static enum watch_outcome judge_return(struct remote *remote, const json_t *account, const void *goal,
                                       struct str *ret_text)
{
	const struct str *uuid = goal;
	struct str        phase = list_text(remote, account, "phase");
	struct str        attempts = list_text(remote, account, "cleanupSucceededAttempts");

	if (str_eq(phase, STR("Quarantine"))) {
		*ret_text = str_format(&remote->arena, "the account was not cleaned and is in quarantine: %.*s",
		                       STR_ARG(list_text(remote, account, "reason")));
		return WATCH_FAILED;
	}
	*ret_text = STR("access is being taken away");
	if (str_eq(list_text(remote, account, "leaseUuid"), *uuid))
		return WATCH_ON;
	if (!str_eq(phase, STR("CleanUp")))
		return WATCH_DONE; /* at rest, free, or another's already */
	*ret_text = str_format(&remote->arena, "the account is being emptied%s%.*s",
	                       attempts.n ? "; cleanups that succeeded: " : "", STR_ARG(attempts));
	return WATCH_ON;
}

int lease_wait_for_return(struct remote *remote, struct str account_id, struct str uuid)
{
	struct watch w = { .path = ask_path_of(remote, "/accounts/", account_id, ""),
		           .judge = judge_return,
		           .goal = &uuid,
		           .limit = CLI_OPTION_WAIT,
		           .advice = "The lease has ended; 'leasehold account show' tells how far its account is." };

	return watch_run(remote, &w);
}
