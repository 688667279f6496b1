/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_wait.c - waiting for a status of a lease or an account, and for the account of a lease that has ended.
 *
 * On a terminal one line says what is being waited for and is redrawn; elsewhere there is a line for each change, so
 * that a log shows what happened. All of it goes to standard error: standard output gets the result, and nothing else.
 */

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/commands/run.h"
#include "cli/term/show.h"

/* Most things are ready at once or after a person has had time to look: often at first, seldom after a while. */
enum { EAGER_MS = 2000, EAGER_FACTOR = 8, PATIENT_MS = 60000, PATIENT_FACTOR = 5 };

static void show_progress(struct remote *remote, struct wait *w, struct str text)
{
	FILE *to = remote->io->err;

	if (remote->io->is_err_terminal) {
		struct str age = show_age(&remote->arena, (mono_now().ms - w->started_ms) / 1000);

		fprintf(to, "\r%.*s ... %.*s\033[K", STR_ARG(text), STR_ARG(age));
	} else if (!str_eq(text, w->shown)) {
		fprintf(to, "%.*s\n", STR_ARG(text));
	}
	fflush(to);
	w->shown = text;
}

static void pause_between(const struct remote *remote, const struct wait *w)
{
	int64_t waited = mono_now().ms - w->started_ms, left = w->limit_ms - waited;
	int64_t pause = remote->io->poll_ms;

	if (waited < EAGER_MS)
		pause = pause / EAGER_FACTOR + 1;
	else if (waited > PATIENT_MS)
		pause *= PATIENT_FACTOR;
	mono_sleep(pause < left ? pause : left);
}

/* One look. *ret_is_over: the exit code is the last. */
static int look(struct remote *remote, struct wait *w, bool *ret_is_over)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct str                         text = STR("");
	enum wait_outcome                  outcome;
	bool                               is_late;
	int                                code = remote_get(remote, w->scope, w->path, &answer);

	*ret_is_over = true;
	if (code != CLI_EXIT_OK)
		return code;
	outcome = w->judge(remote, answer.data, w->goal, &text);
	is_late = outcome == WAIT_ON && mono_now().ms - w->started_ms >= w->limit_ms;
	if (outcome == WAIT_ON && !is_late) {
		show_progress(remote, w, text);
		*ret_is_over = false;
		return CLI_EXIT_OK;
	}
	if (remote->io->is_err_terminal)
		fputs("\r\033[K", remote->io->err);
	if (w->shown_by && !is_late)
		call_print(remote, &calls[w->shown_by], &answer);
	if (outcome == WAIT_DONE)
		return CLI_EXIT_OK;
	fprintf(remote->io->err, "leasehold: %s: %s%.*s\n", remote->args->command->name,
	        is_late ? "the time is up: " : "", STR_ARG(text));
	if (is_late)
		fprintf(remote->io->err, "%s\n", w->advice);
	return is_late ? CLI_EXIT_EMPTY : CLI_EXIT_REFUSED;
}

int wait_run(struct remote *remote, struct wait *w)
{
	const char *const *values = remote->args->values;
	enum cli_option_id limit = values[CLI_OPTION_TIMEOUT] ? CLI_OPTION_TIMEOUT : CLI_OPTION_WAIT;
	struct err         e = { 0 };
	bool               is_over;
	int                code;

	w->started_ms = mono_now().ms;
	w->limit_ms = REMOTE_WAIT_MAX_SEC;
	if (values[limit] && values[limit][0] &&
	    option_number(remote, limit, 0, REMOTE_WAIT_MAX_SEC, 0, &w->limit_ms, &e))
		return remote_fail(remote, &e);
	w->limit_ms *= 1000;
	for (;;) {
		code = look(remote, w, &is_over);
		if (is_over)
			return code;
		pause_between(remote, w);
	}
}

/* --- a lease --- */

static struct str progress_text(struct remote *remote, const json_t *lease, struct str status)
{
	struct str at, estimate = STR("");
	int64_t    place, sec;

	if (!json_is_string(json_object_get(lease, "queuedSince"))) {
		if (str_eq(status, STR("Active")))
			return STR("the lease is in use");
		if (str_eq(status, STR("Provisioning")))
			return STR("the account is being set up");
		return str_eq(status, STR("Frozen")) ? STR("the lease is frozen; a manager can unfreeze it")
		                                     : STR("waiting for approval");
	}
	if (!json_get_number(lease, "queuePosition", 0, &place) || place == 0)
		return STR("approved, waiting in line for a free account");
	if (json_get_text(lease, "queueEstimate", &at) && iso_time_parse(at, &sec))
		estimate = show_relative(&remote->arena, sec - wall_sec(clock_now(remote->io->clock)));
	return str_format(&remote->arena, "approved, in line for a free account: position %" PRId64 "%s%.*s", place,
	                  estimate.n ? ", about " : "", STR_ARG(estimate));
}

/* The goal is a status. */
static enum wait_outcome judge(struct remote *remote, const json_t *lease, struct str goal, struct str *ret_text)
{
	struct str status = cell_text(remote, lease, "status"), reason = cell_text(remote, lease, "denyReason");

	if (str_eq(status, goal))
		return WAIT_DONE;
	if (str_is_word_of(status, "PendingApproval Provisioning Active Frozen")) {
		*ret_text = progress_text(remote, lease, status);
		return WAIT_ON;
	}
	*ret_text = str_format(&remote->arena, "the lease %s: %.*s%s%.*s",
	                       str_eq(goal, STR("Active")) ? "cannot be used" : "has ended otherwise", STR_ARG(status),
	                       reason.n ? ": " : "", STR_ARG(reason));
	return WAIT_FAILED;
}

int lease_wait(struct remote *remote, struct str id, struct str status)
{
	struct wait w = { .path = compose_path(remote, "/leases/{}", id),
		          .scope = REMOTE_PERSON,
		          .judge = judge,
		          .goal = status,
		          .advice = "The request stays as it is; 'leasehold lease wait' continues to wait.",
		          .shown_by = CLI_COMMAND_LEASE_SHOW };

	return wait_run(remote, &w);
}

/* --- an account --- */

/* The goal is the uuid of the lease that is gone from it. */
static enum wait_outcome judge_return(struct remote *remote, const json_t *account, struct str goal,
                                      struct str *ret_text)
{
	struct str phase = cell_text(remote, account, "phase");
	struct str attempts = cell_text(remote, account, "cleanupSucceededAttempts");

	if (str_eq(phase, STR("Quarantine"))) {
		*ret_text = str_format(&remote->arena, "the account was not cleaned and is in quarantine: %.*s",
		                       STR_ARG(cell_text(remote, account, "reason")));
		return WAIT_FAILED;
	}
	*ret_text = STR("access is being removed");
	if (str_eq(cell_text(remote, account, "leaseUuid"), goal))
		return WAIT_ON;
	if (!str_eq(phase, STR("CleanUp")))
		return WAIT_DONE; /* at rest, free, or another's already */
	*ret_text = str_format(&remote->arena, "the account is being emptied%s%.*s",
	                       attempts.n ? "; cleanups that succeeded: " : "", STR_ARG(attempts));
	return WAIT_ON;
}

int lease_wait_for_return(struct remote *remote, struct str account_id, struct str uuid)
{
	struct wait w = { .path = compose_path(remote, "/accounts/{}", account_id),
		          .scope = REMOTE_PERSON,
		          .judge = judge_return,
		          .goal = uuid,
		          .advice = "The lease has ended; 'leasehold account show' shows its account's progress." };

	return wait_run(remote, &w);
}

/* The goal is a status. */
static enum wait_outcome judge_account(struct remote *remote, const json_t *account, struct str goal,
                                       struct str *ret_text)
{
	struct str status = cell_text(remote, account, "phase");

	*ret_text = str_format(&remote->arena, "the account is in %.*s", STR_ARG(status));
	return str_eq(status, goal) ? WAIT_DONE : WAIT_ON;
}

/* --- commands --- */

/* --for, as the server writes it: one of the words, the first when it is not given. */
static bool read_status(struct remote *remote, const char *words, struct str *ret)
{
	struct str typed = str_from(remote->args->values[CLI_OPTION_FOR]), rest = str_from(words);

	while (rest.n) {
		*ret = str_cut(&rest, ' ');
		if (!typed.p || str_eq_nocase(typed, *ret))
			return true;
	}
	return false;
}

int run_wait_lease(struct remote *remote)
{
	struct str id, status;
	int        code;

	if (!read_status(remote,
	                 "Active PendingApproval ApprovalDenied Provisioning Frozen Expired BudgetExceeded "
	                 "ManuallyTerminated AccountQuarantined Ejected ProvisioningFailed",
	                 &status))
		return remote_misused(remote, "--for must be a status of a lease: Active, Frozen, Expired, ...");
	code = lease_find(remote, str_from(remote->args->operands[0]), &id);
	return code == CLI_EXIT_OK ? lease_wait(remote, id, status) : code;
}

int run_wait_account(struct remote *remote)
{
	struct wait w = { .path = compose_path(remote, "/accounts/{}", str_from(remote->args->operands[0])),
		          .scope = REMOTE_PERSON,
		          .judge = judge_account,
		          .advice = "See why: leasehold account show",
		          .shown_by = CLI_COMMAND_ACCOUNT_SHOW };

	if (!read_status(remote, "Available Active Frozen CleanUp Cooldown Quarantine", &w.goal))
		return remote_misused(remote, "--for must be a status of an account: Available, Active, Frozen, "
		                              "CleanUp, Cooldown or Quarantine");
	return wait_run(remote, &w);
}
