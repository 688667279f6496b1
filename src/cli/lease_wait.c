/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_wait.c - looks at a lease until it can be used or has ended.
 *
 * On a terminal one line says what is being waited for and is written anew; elsewhere there is a line for each change, so that a log tells
 * what happened. All of it goes to standard error: standard output gets the lease at the end, and nothing else.
 */
#include "cli/lease.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/run.h"
#include "cli/show.h"

/* Most leases are ready at once or after a person has had time to look: often at first, seldom after a while. */
enum { EAGER_MS = 2000, EAGER_FACTOR = 8, PATIENT_MS = 60000, PATIENT_FACTOR = 5 };

enum outcome { STILL_WAITING, CAN_BE_USED, IS_OVER };

static enum outcome outcome_of(struct str status)
{
	static const struct str open[] = { STR_INIT("PendingApproval"), STR_INIT("Provisioning"), STR_INIT("Frozen") };

	if (str_eq(status, STR("Active")))
		return CAN_BE_USED;
	for (size_t i = 0; i < ARRAY_LEN(open); i++)
		if (str_eq(status, open[i]))
			return STILL_WAITING;
	return IS_OVER;
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
	if (str_eq(status, STR("Provisioning")))
		return STR("the account is being made ready");
	if (str_eq(status, STR("Frozen")))
		return STR("the lease is frozen; a manager can unfreeze it");
	if (json_is_string(json_object_get(lease, "queuedSince")))
		return line_text(remote, lease);
	return STR("waits for approval");
}

struct watch {
	int64_t    started_ms, limit_ms;
	struct str told; /* the last text */
};

static void show_progress(struct remote *remote, struct watch *w, struct str text)
{
	FILE *to = remote->io->err;

	if (remote->io->is_err_terminal) {
		struct str age = show_age(&remote->arena, (mono_now().ms - w->started_ms) / 1000);

		fprintf(to, "\r%.*s ... %.*s\033[K", STR_ARG(text), STR_ARG(age));
	} else if (!str_eq(text, w->told)) {
		fprintf(to, "%.*s\n", STR_ARG(text));
	}
	fflush(to);
	w->told = text;
}

static void clear_progress(const struct remote *remote)
{
	if (remote->io->is_err_terminal)
		fputs("\r\033[K", remote->io->err);
}

static void pause_between(const struct remote *remote, const struct watch *w)
{
	int64_t waited = mono_now().ms - w->started_ms, left = w->limit_ms - waited;
	int64_t pause = remote->io->poll_ms;

	if (waited < EAGER_MS)
		pause = pause / EAGER_FACTOR + 1;
	else if (waited > PATIENT_MS)
		pause *= PATIENT_FACTOR;
	run_pause((int)(pause < left ? pause : left));
}

static int give_up(const struct remote *remote, struct str text)
{
	clear_progress(remote);
	fprintf(remote->io->err, "leasehold: %s: the time is up: %.*s\n", remote->args->command->name, STR_ARG(text));
	fprintf(remote->io->err, "The request stays as it is; 'leasehold lease wait' goes on waiting.\n");
	return CLI_EXIT_EMPTY;
}

/* Why it is over: the word of its status, and what was given as a reason. */
static int finish(struct remote *remote, const json_t *lease, struct str status)
{
	struct str reason = list_text(remote, lease, "denyReason");

	if (outcome_of(status) == CAN_BE_USED)
		return CLI_EXIT_OK;
	fprintf(remote->io->err, "leasehold: %s: the lease cannot be used: %.*s%s%.*s\n", remote->args->command->name,
	        STR_ARG(status), reason.n ? ": " : "", STR_ARG(reason));
	return CLI_EXIT_REFUSED;
}

/* One look. *ret_is_over: the exit code is the last. */
static int look(struct remote *remote, const struct remote_request *req, struct watch *w, bool *ret_is_over)
{
	CLEANUP(json_freep) json_t *document = NULL;
	const json_t               *lease;
	struct fetch_reply          reply;
	struct str                  status, text;
	int                         code = remote_call(remote, req, &reply, &document);

	*ret_is_over = true;
	if (code != CLI_EXIT_OK)
		return code;
	lease = json_object_get(document, "data");
	status = list_text(remote, lease, "status");
	if (outcome_of(status) != STILL_WAITING) {
		clear_progress(remote);
		lease_print(remote, &reply, document);
		return finish(remote, lease, status);
	}
	text = progress_text(remote, lease, status);
	if (mono_now().ms - w->started_ms >= w->limit_ms)
		return give_up(remote, text);
	show_progress(remote, w, text);
	*ret_is_over = false;
	return CLI_EXIT_OK;
}

static enum rc read_limit(const struct remote *remote, int64_t *ret, struct err *e)
{
	const char *typed = remote->args->values[CLI_OPTION_WAIT];

	*ret = REMOTE_WAIT_MAX_SEC;
	return typed && typed[0] ? ask_number(remote, CLI_OPTION_WAIT, 0, REMOTE_WAIT_MAX_SEC, 0, ret, e) : RC_OK;
}

int lease_wait(struct remote *remote, struct str id)
{
	struct remote_request req = { .method = "GET",
		                      .path = ask_path_of(remote, "/leases/", id, ""),
		                      .scope = REMOTE_PERSON };
	struct watch          w = { .started_ms = mono_now().ms };
	struct err            e = { 0 };
	int64_t               limit;
	bool                  is_over;
	int                   code;

	if (read_limit(remote, &limit, &e))
		return remote_fail(remote, &e);
	w.limit_ms = limit * 1000;
	for (;;) {
		code = look(remote, &req, &w, &is_over);
		if (is_over)
			return code;
		pause_between(remote, &w);
	}
}
