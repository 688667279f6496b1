/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - waiting with progress.
 *
 * On a terminal one line says what is being waited for and is written anew; elsewhere there is a line for each change, so that a log tells
 * what happened. All of it goes to standard error: standard output gets the thing at the end, and nothing else.
 */
#include "cli/watch.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "cli/run.h"
#include "cli/show.h"

/* Most things are ready at once or after a person has had time to look: often at first, seldom after a while. */
enum { EAGER_MS = 2000, EAGER_FACTOR = 8, PATIENT_MS = 60000, PATIENT_FACTOR = 5 };

struct watching {
	const struct watch *w;
	int64_t             started_ms, limit_ms;
	struct str          told; /* the last text */
};

static void show_progress(struct remote *remote, struct watching *x, struct str text)
{
	FILE *to = remote->io->err;

	if (remote->io->is_err_terminal) {
		struct str age = show_age(&remote->arena, (mono_now().ms - x->started_ms) / 1000);

		fprintf(to, "\r%.*s ... %.*s\033[K", STR_ARG(text), STR_ARG(age));
	} else if (!str_eq(text, x->told)) {
		fprintf(to, "%.*s\n", STR_ARG(text));
	}
	fflush(to);
	x->told = text;
}

static void clear_progress(const struct remote *remote)
{
	if (remote->io->is_err_terminal)
		fputs("\r\033[K", remote->io->err);
}

static void pause_between(const struct remote *remote, const struct watching *x)
{
	int64_t waited = mono_now().ms - x->started_ms, left = x->limit_ms - waited;
	int64_t pause = remote->io->poll_ms;

	if (waited < EAGER_MS)
		pause = pause / EAGER_FACTOR + 1;
	else if (waited > PATIENT_MS)
		pause *= PATIENT_FACTOR;
	run_pause((int)(pause < left ? pause : left));
}

static int give_up(const struct remote *remote, const struct watching *x, struct str text)
{
	clear_progress(remote);
	fprintf(remote->io->err, "leasehold: %s: the time is up: %.*s\n", remote->args->command->name, STR_ARG(text));
	fprintf(remote->io->err, "%s\n", x->w->advice);
	return CLI_EXIT_EMPTY;
}

static int finish(struct remote *remote, const struct watching *x, enum watch_outcome outcome, struct str text,
                  const struct fetch_reply *reply, const json_t *document)
{
	clear_progress(remote);
	if (x->w->print)
		x->w->print(remote, reply, document);
	if (outcome == WATCH_DONE)
		return CLI_EXIT_OK;
	fprintf(remote->io->err, "leasehold: %s: %.*s\n", remote->args->command->name, STR_ARG(text));
	return CLI_EXIT_REFUSED;
}

/* One look. *ret_is_over: the exit code is the last. */
static int look(struct remote *remote, const struct remote_request *req, struct watching *x, bool *ret_is_over)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	struct str                  text = STR("");
	enum watch_outcome          outcome;
	int                         code = remote_call(remote, req, &reply, &document);

	*ret_is_over = true;
	if (code != CLI_EXIT_OK)
		return code;
	outcome = x->w->judge(remote, json_object_get(document, "data"), x->w->goal, &text);
	if (outcome != WATCH_ON)
		return finish(remote, x, outcome, text, &reply, document);
	if (mono_now().ms - x->started_ms >= x->limit_ms)
		return give_up(remote, x, text);
	show_progress(remote, x, text);
	*ret_is_over = false;
	return CLI_EXIT_OK;
}

static enum rc read_limit(const struct remote *remote, enum cli_option_id option, int64_t *ret, struct err *e)
{
	const char *typed = remote->args->values[option];

	*ret = REMOTE_WAIT_MAX_SEC;
	return typed && typed[0] ? ask_number(remote, option, 0, REMOTE_WAIT_MAX_SEC, 0, ret, e) : RC_OK;
}

int watch_run(struct remote *remote, const struct watch *w)
{
	struct remote_request req = { .method = "GET", .path = w->path, .scope = REMOTE_PERSON };
	struct watching       x = { .w = w, .started_ms = mono_now().ms };
	struct err            e = { 0 };
	int64_t               limit;
	bool                  is_over;
	int                   code;

	if (read_limit(remote, w->limit, &limit, &e))
		return remote_fail(remote, &e);
	x.limit_ms = limit * 1000;
	for (;;) {
		code = look(remote, &req, &x, &is_over);
		if (is_over)
			return code;
		pause_between(remote, &x);
	}
}
