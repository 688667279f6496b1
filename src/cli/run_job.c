/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_job.c - the "job" commands.
 *
 * The server answers a run that takes long before its end (202). Without --async the client then looks at the job until
 * it is over, so that "job run" means the same however long it takes; a run that failed has the exit code of the 503
 * that a short one would have answered.
 */
#include "cli/run.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/remote.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/show.h"

enum { RUN_WAIT_MAX_MS = 3600 * 1000 };

static struct str job_state(const json_t *job)
{
	if (json_is_true(json_object_get(job, "running")))
		return STR("running");
	return json_is_true(json_object_get(job, "paused")) ? STR("paused") : STR("waiting");
}

static void add_job(struct remote *remote, struct table *t, const json_t *job)
{
	struct table_row *row = table_add_row(t);
	struct wall       now = clock_now(remote->io->clock);
	int64_t           interval;

	row->cells[0] = show_member(&remote->arena, job, "name", now);
	row->cells[1] = job_state(job);
	if (json_get_number(job, "interval_sec", 0, &interval) && interval > 0)
		row->cells[2] = show_duration(&remote->arena, interval);
	row->cells[3] = show_member(&remote->arena, job, "last_finished_at", now);
	row->cells[4] = show_member(&remote->arena, job, "last_outcome", now);
	row->cells[5] = show_member(&remote->arena, job, "next_run_at", now);
	row->cells[6] = show_member(&remote->arena, job, "last_error", now);
}

/* The list of jobs as it came. On failure *ret_code is the exit code and the reason was said. */
static json_t *get_jobs(struct remote *remote, struct fetch_reply *reply, int *ret_code)
{
	struct remote_request req = { .method = "GET", .path = STR("/admin/jobs"), .scope = REMOTE_ADMIN };
	struct err            e = { 0 };
	json_t               *document;

	if (remote_send(remote, &req, reply, &e)) {
		*ret_code = remote_fail(remote, &e);
		return NULL;
	}
	if (!remote_is_success(reply)) {
		*ret_code = remote_refused(remote, reply);
		return NULL;
	}
	if (remote_json(reply, &document, &e)) {
		*ret_code = remote_fail(remote, &e);
		return NULL;
	}
	return document;
}

int run_job_list(struct remote *remote)
{
	static const char *const headings[] = { "NAME", "STATE", "EVERY", "LAST END", "OUTCOME", "NEXT RUN", "ERROR" };
	struct fetch_reply       reply;
	struct table             t;
	int                      code = CLI_EXIT_OK;
	CLEANUP(json_freep) json_t *document = get_jobs(remote, &reply, &code);
	const json_t               *jobs = json_object_get(document, "jobs");

	if (!document)
		return code;
	if (remote->is_json) {
		remote_print_json(remote, &reply);
		return code;
	}
	table_init(&t, &remote->arena, headings, ARRAY_LEN(headings));
	for (size_t i = 0; i < json_array_size(jobs); i++)
		add_job(remote, &t, json_array_get(jobs, i));
	table_print(&t, remote->io->out, remote->is_coloured);
	return code;
}

static json_t *find_job(const json_t *document, const char *name)
{
	const json_t *jobs = json_object_get(document, "jobs");

	for (size_t i = 0; i < json_array_size(jobs); i++) {
		const char *got = json_string_value(json_object_get(json_array_get(jobs, i), "name"));

		if (got && strcmp(got, name) == 0)
			return json_array_get(jobs, i);
	}
	return NULL;
}

/* A run that is over: its result, or why it failed. */
static int show_end(struct remote *remote, json_t *job, const struct fetch_reply *reply)
{
	struct wall now = clock_now(remote->io->clock);
	struct str  outcome = show_member(&remote->arena, job, "last_outcome", now);
	struct str  why = show_member(&remote->arena, job, "last_error", now);
	json_t     *result = json_object_get(job, "last_result");

	if (remote->is_json)
		remote_print_json(remote, reply);
	else
		show_record(remote->io->out, &remote->arena, json_is_object(result) ? result : job, now,
		            remote->is_coloured);
	if (!str_eq(outcome, STR("error")))
		return CLI_EXIT_OK;
	fprintf(remote->io->err, "leasehold: %s: the run failed: %.*s\n", remote->args->command->name, STR_ARG(why));
	return CLI_EXIT_UNREACHABLE;
}

/* Pause with a line on the terminal, gone again before anything else is printed. */
static void pause_shown(const struct remote *remote, int64_t seconds)
{
	if (remote->io->is_err_terminal)
		fprintf(remote->io->err, "\rthe job runs ... %" PRId64 " s", seconds);
	fflush(remote->io->err);
	run_pause(remote->io->poll_ms);
	if (remote->io->is_err_terminal)
		fputs("\r\033[K", remote->io->err);
}

/* Look at the job until it has ended. */
static int wait_for_end(struct remote *remote, const char *name)
{
	int64_t    deadline = mono_now().ms + RUN_WAIT_MAX_MS;
	struct err e = { 0 };
	int        code = CLI_EXIT_OK;

	for (int64_t start = mono_now().ms; mono_now().ms < deadline;) {
		struct fetch_reply          reply;
		CLEANUP(json_freep) json_t *document = get_jobs(remote, &reply, &code);
		json_t                     *job = find_job(document, name);

		if (!document)
			return code;
		if (!job || !json_is_true(json_object_get(job, "running")))
			return job ? show_end(remote, job, &reply) : CLI_EXIT_NOT_FOUND;
		pause_shown(remote, (mono_now().ms - start) / 1000);
	}
	/* remote_fail() has the code */
	(void)err_set(&e, RC_TIMEOUT, "job %s still runs after an hour; see: leasehold job list", name);
	return remote_fail(remote, &e);
}

int run_job_to_end(struct remote *remote, const struct remote_request *req, const char *job)
{
	struct fetch_reply reply;
	struct err         e = { 0 };

	if (remote_send(remote, req, &reply, &e))
		return remote_fail(remote, &e);
	if (reply.status != 202)
		return remote_show(remote, &reply);
	return wait_for_end(remote, job);
}

int run_job_run(struct remote *remote)
{
	const char *const    *values = remote->args->values;
	const char           *name = remote->args->operands[0];
	struct remote_request req = { .method = "POST",
		                      .path = ask_path(remote, "/admin/jobs/", "/run"),
		                      .scope = REMOTE_ADMIN,
		                      .headers = { values[CLI_OPTION_ASYNC] ? "Prefer: respond-async" : NULL },
		                      .waiting_for = "waiting for the end of the run" };
	struct err            e = { 0 };

	if (values[CLI_OPTION_FORCE] && strcmp(name, "sync") != 0) {
		(void)err_set(&e, RC_INVALID, "--force is for sync only, not for %s",
		              name); /* remote_fail() has the code */
		return remote_fail(remote, &e);
	}
	if (values[CLI_OPTION_FORCE])
		req.path = STR("/admin/sync?force=true");
	return values[CLI_OPTION_ASYNC] ? remote_run(remote, &req) : run_job_to_end(remote, &req, name);
}

int run_job_pause(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "POST",
	                                                    .path = ask_path(remote, "/admin/jobs/", "/pause"),
	                                                    .scope = REMOTE_ADMIN });
}

int run_job_resume(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "POST",
	                                                    .path = ask_path(remote, "/admin/jobs/", "/resume"),
	                                                    .scope = REMOTE_ADMIN });
}
