/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_work.c - what the kernel does: runs of jobs, dead letters, events as they happen.
 *
 * The server answers a long run before its end (202). Without --async the client then polls the job until it is over,
 * so that "job run" means the same however long it takes; a run that failed has the exit code of the 503 that a short
 * one would have been answered with.
 *
 * The server replays some of a queue's letters at a time. "--all" repeats that until as many were replayed as there
 * were at first: what dies again in the meantime is not replayed a second time.
 *
 * "event watch" follows the server's stream of events (text/event-stream). When the connection ends, it reconnects and
 * continues after the last event seen; the server sends an id at the beginning, so this works before the first event
 * too. It ends only when the server has never answered, refuses, or stays away for PATIENCE_MS.
 */
#include "cli/commands/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/term/show.h"

enum { RUN_WAIT_MAX_MS = 3600 * 1000, CALLS_MAX = 100000, DROP_PAGE = 100, RUNBOOK_MAX = 64 * 1024 };
enum { LINE_MAX_BYTES = 512 * 1024, EVENT_ID_ROOM = 64, PATIENCE_MS = 600000, WATCH_LIMIT_MAX = 1000000000 };

/* --- jobs --- */

static json_t *find_job(const json_t *document, struct str name)
{
	const json_t *jobs = json_object_get(document, "jobs");

	for (size_t i = 0; i < json_array_size(jobs); i++)
		if (str_eq(str_from(json_string_value(json_object_get(json_array_get(jobs, i), "name"))), name))
			return json_array_get(jobs, i);
	return NULL;
}

/* As the server answers a short run; of one that failed, what the list of jobs says of it. */
static void print_end_json(struct remote *remote, json_t *job, bool has_failed)
{
	CLEANUP(json_freep) json_t *end = json_pack("{s:s}", "status", "completed");
	struct str                  text;

	(void)json_object_update(end, json_object_get(job, "last_result")); /* none were kept: nothing to add */
	text = json_dump(&remote->arena, has_failed ? job : end);
	fprintf(remote->io->out, "%.*s\n", STR_ARG(text));
}

/* A run that is over: its result, or why it failed. */
static int show_end(struct remote *remote, json_t *job, struct answer *answer)
{
	struct str why = cell_text(remote, job, "last_error");
	json_t    *result = json_object_get(job, "last_result");
	bool       has_failed = str_eq(cell_text(remote, job, "last_outcome"), STR("error"));

	answer->data = json_is_object(result) ? result : job;
	if (remote->is_json)
		print_end_json(remote, job, has_failed);
	else
		call_print(remote, &calls[CLI_COMMAND_JOB_RUN], answer);
	if (!has_failed)
		return CLI_EXIT_OK;
	fprintf(remote->io->err, "leasehold: %s: the run failed: %.*s\n", remote->args->command->name, STR_ARG(why));
	return CLI_EXIT_UNREACHABLE;
}

/* Poll the job until it has ended, with a line on the terminal that is removed before anything else is printed. */
static int wait_for_end(struct remote *remote, struct str name)
{
	int64_t started = mono_now().ms;

	while (mono_now().ms < started + RUN_WAIT_MAX_MS) {
		CLEANUP(answer_free) struct answer answer = { .json = NULL };
		int                                code = remote_get(remote, REMOTE_ADMIN, STR("/admin/jobs"), &answer);
		json_t                            *job = find_job(answer.json, name);

		if (code != CLI_EXIT_OK)
			return code;
		if (!job || !json_is_true(json_object_get(job, "running")))
			return job ? show_end(remote, job, &answer) : CLI_EXIT_NOT_FOUND;
		if (remote->io->is_err_terminal)
			fprintf(remote->io->err, "\rthe job is running ... %" PRId64 " s",
			        (mono_now().ms - started) / 1000);
		fflush(remote->io->err);
		mono_sleep(remote->io->poll_ms);
		if (remote->io->is_err_terminal)
			fputs("\r\033[K", remote->io->err);
	}
	return remote_failed(remote, RC_TIMEOUT, "job %.*s is still running after an hour; see: leasehold job list",
	                     STR_ARG(name));
}

int finish_job(struct remote *remote, const struct answer *answer)
{
	if (json_is_true(json_object_get(answer->json, "joined")))
		fputs("The job was already running or about to run: this is that run, not another one.\n",
		      remote->io->err);
	if (answer->reply.status != 202 || remote->args->values[CLI_OPTION_ASYNC])
		return call_print(remote, &calls[CLI_COMMAND_JOB_RUN], answer);
	return wait_for_end(remote, answer->id.n ? answer->id : STR("stale-removal"));
}

int run_job_run(struct remote *remote)
{
	const char *const *values = remote->args->values;
	struct call        row = call_row(remote);
	const char        *name = remote->args->operands[0];

	if (values[CLI_OPTION_FORCE] && strcmp(name, "sync") != 0)
		return remote_failed(remote, RC_INVALID, "--force is for sync only, not for %s", name);
	if (values[CLI_OPTION_FORCE])
		row.path = "/admin/sync?force=true";
	return call_run(remote, &row);
}

/* --- dead letters --- */

/* One call: how many were replayed, and how many are left. */
static int replay_some(struct remote *remote, int64_t *ret_replayed, int64_t *ret_left)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct str                         queue = str_from(remote->args->values[CLI_OPTION_QUEUE]);
	struct remote_request              req = { .method = "POST", .scope = REMOTE_ADMIN };
	int                                code;

	req.path = compose_path(remote, "/ops/dead-letters/replay?queue={}", queue);
	if ((code = remote_call(remote, &req, &answer)) != CLI_EXIT_OK)
		return code;
	if (!json_get_number(answer.json, "replayed", 0, ret_replayed) ||
	    !json_get_number(answer.json, "left", 0, ret_left))
		return remote_failed(remote, RC_CORRUPT, "the server's answer does not say what was replayed");
	if (remote->is_json)
		remote_print_json(remote, &answer.reply);
	return CLI_EXIT_OK;
}

static int replay_all(struct remote *remote)
{
	int64_t replayed = 0, left = 0, total = 0, wanted = -1;
	int     code = CLI_EXIT_OK;

	for (int i = 0; i < CALLS_MAX && (code = replay_some(remote, &replayed, &left)) == CLI_EXIT_OK; i++) {
		total += replayed;
		if (wanted < 0)
			wanted = replayed + left;
		if (!replayed || !left || total >= wanted)
			break;
	}
	if (!remote->is_json && (code == CLI_EXIT_OK || total))
		fprintf(remote->io->out, "%" PRId64 " replayed, %" PRId64 " left\n", total, left);
	return code;
}

int run_dlq_replay(struct remote *remote)
{
	bool        is_all = remote->args->values[CLI_OPTION_ALL] != NULL;
	bool        has_queue = remote->args->values[CLI_OPTION_QUEUE] != NULL;
	struct call row = call_row(remote);

	if (is_all == (remote->args->operand_count == 1) || is_all != has_queue)
		return remote_misused(remote, "give either an ID, or --all and --queue NAME");
	return is_all ? replay_all(remote) : call_run(remote, &row);
}

/* Always the first page: those that were dropped are no longer on it. */
static int drop_all(struct remote *remote)
{
	static const struct compose_field of_queue[] = { { "queue", VALUE_TEXT, CLI_OPTION_QUEUE }, { .name = NULL } };
	static const struct compose_field why[] = { { "reason", VALUE_TEXT, CLI_OPTION_REASON }, { .name = NULL } };
	static const struct call          list = {
		         .scope = REMOTE_ADMIN, .items = "dead_letters", .query = of_queue, .has_pages = true
	};
	struct remote_request req = { .method = "POST", .scope = REMOTE_ADMIN };
	struct err            e = { 0 };
	size_t                dropped = 0, found = 1;
	int                   code = CLI_EXIT_OK;

	if (compose_body(remote, why, &req.body, &e))
		return remote_fail(remote, &e);
	for (int i = 0; i < CALLS_MAX && found && code == CLI_EXIT_OK; i++) {
		CLEANUP(call_pages_end) struct call_pages pages = { &list, STR("/ops/dead-letters"), DROP_PAGE };
		json_t                                   *letters = NULL;
		struct str                                id;

		code = call_next(remote, &pages, &letters) ? CLI_EXIT_OK : pages.code;
		found = json_array_size(letters);
		for (size_t k = 0; k < found && code == CLI_EXIT_OK; k++) {
			CLEANUP(answer_free) struct answer answer = { .json = NULL };

			if (!json_get_text(json_array_get(letters, k), "id", &id))
				return remote_failed(remote, RC_CORRUPT,
				                     "the server's answer has a dead letter without an id");
			req.path = compose_path(remote, "/ops/dead-letters/{}/drop", id);
			code = remote_call(remote, &req, &answer);
			dropped += code == CLI_EXIT_OK;
		}
	}
	fprintf(remote->is_json ? remote->io->err : remote->io->out, "%zu dropped\n", dropped);
	return code;
}

int run_dlq_drop(struct remote *remote)
{
	bool        is_all = remote->args->values[CLI_OPTION_ALL] != NULL;
	const char *queue = remote->args->values[CLI_OPTION_QUEUE];
	struct call row = call_row(remote);
	int         code;

	if (is_all == (remote->args->operand_count == 1) || (queue && !is_all))
		return remote_misused(remote, "give either an ID, or --all, with --queue NAME for one queue only");
	if (!is_all)
		return call_run(remote, &row);
	code = many_agreed(remote, str_format(&remote->arena, "drop all dead letters%s%s", queue ? " of " : "",
	                                      queue ? queue : ""));
	return code == CLI_EXIT_OK ? drop_all(remote) : code;
}

/* --- alarms --- */

/* The runbook's section for this rule, one line per paragraph, without Markdown's marks; empty when there is none. */
static struct str runbook_section(struct remote *remote, struct str rule)
{
	struct remote_request req = { .method = "GET", .path = STR("/assets/runbook.md"), .scope = REMOTE_ADMIN };
	struct fetch_reply    reply;
	struct str            heading = str_format(&remote->arena, "\n### %.*s\n", STR_ARG(rule));
	struct err            e = { 0 };
	const char           *at, *end;
	struct buf            b = BUF(RUNBOOK_MAX);

	if (remote_send(remote, &req, &reply, &e) || !remote_is_success(&reply))
		return STR("");
	if (!(at = memmem(reply.body.p, reply.body.n, heading.p, heading.n)))
		return STR("");
	at += heading.n;
	end = memmem(at, (size_t)(reply.body.p + reply.body.n - at), "\n##", 3);
	end = end ? end : reply.body.p + reply.body.n;
	for (; at < end; at++)
		if (*at == '\n' && at + 1 < end && at[1] != '\n' && b.n && b.p[b.n - 1] != '\n')
			buf_add(&b, " ", 1);
		else if (*at != '*' && *at != '`')
			buf_add(&b, at, 1);
	return buf_take(&b, &remote->arena);
}

static void print_alarm(struct remote *remote, const struct call *row, const json_t *alarm)
{
	struct str text = runbook_section(remote, cell_text(remote, alarm, "rule"));

	cells_print_details(remote, row->columns, alarm);
	while (text.n) {
		struct str line = str_trim(str_cut(&text, '\n'));

		if (line.n) {
			fputc('\n', remote->io->out);
			show_wrapped(remote->io->out, line, 0, 0, remote->io->width);
		}
	}
}

int run_alarm_show(struct remote *remote)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct str                         wanted = str_from(remote->args->operands[0]);
	struct call                        row = call_row(remote);
	const json_t                      *alarms, *found = NULL;
	int                                code = remote_get(remote, REMOTE_ADMIN, STR("/ops/alarms"), &answer);

	if (code != CLI_EXIT_OK)
		return code;
	alarms = json_object_get(answer.data, "alarms");
	for (size_t i = 0; i < json_array_size(alarms) && !found; i++) {
		const json_t *a = json_array_get(alarms, i);

		if (str_eq(cell_text(remote, a, "name"), wanted) || str_eq(cell_text(remote, a, "rule"), wanted))
			found = a;
	}
	if (!found) {
		fprintf(remote->io->err,
		        "leasehold: alarm show: %.*s is neither raised nor pending; see: leasehold alarm list\n",
		        STR_ARG(wanted));
		return CLI_EXIT_NOT_FOUND;
	}
	if (remote->is_json)
		fprintf(remote->io->out, "%.*s\n", STR_ARG(json_dump(&remote->arena, found)));
	else
		print_alarm(remote, &row, found);
	return CLI_EXIT_OK;
}

/* --- events --- */

struct watch {
	struct remote *remote;
	struct arena   arena;                                          /* of one event */
	struct buf     line;                                           /* what has come of the current one */
	char           last_id[EVENT_ID_ROOM], next_id[EVENT_ID_ROOM]; /* of the last whole event; of the current one */
	bool           is_answered;                                    /* this connection has brought something */
	int64_t        shown, limit;
	struct err     e; /* what came is not a stream of events */
};

static bool take_event(struct watch *w, struct str json)
{
	const struct cli_io        *io = w->remote->io;
	struct wall                 now = clock_now(io->clock);
	CLEANUP(json_freep) json_t *event = NULL;
	struct str                  type, subject, actor, time;
	int64_t                     sec;

	arena_reset(&w->arena);
	if (json_parse(json, &event, &w->e)) {
		(void)err_wrap(&w->e, RC_CORRUPT, "the server's stream cannot be understood"); /* kept in w */
		w->e.rc = RC_CORRUPT;
		return false;
	}
	if (!json_get_text(event, "time", &time) || !iso_time_parse(time, &sec))
		sec = 0;
	time = show_date(&w->arena, sec);
	type = show_member(&w->arena, event, "detail-type", now);
	subject = show_member(&w->arena, event, "subject", now);
	actor = show_member(&w->arena, event, "actor", now);
	if (w->remote->is_json)
		fprintf(io->out, "%.*s\n", STR_ARG(json));
	else
		fprintf(io->out, "%.*s  %-24.*s  %-28.*s  %.*s\n", STR_ARG(time), STR_ARG(type), STR_ARG(subject),
		        STR_ARG(actor));
	fflush(io->out);
	return ++w->shown != w->limit;
}

/* One line of the stream. An event has its data on one, and counts as seen when the empty line behind it has come. */
static bool take_line(struct watch *w, struct str line)
{
	struct str value = line;
	struct str field = str_cut(&value, ':');

	value = str_trim(value);
	if (!line.n)
		memcpy(w->last_id, w->next_id, sizeof(w->last_id));
	if (str_eq(field, STR("id")) && value.n < sizeof(w->next_id)) {
		memcpy(w->next_id, value.p, value.n);
		w->next_id[value.n] = '\0';
	}
	return !str_eq(field, STR("data")) || take_event(w, value);
}

static bool take_bytes(struct str bytes, void *arg)
{
	struct watch *w = arg;

	w->is_answered = true;
	while (bytes.n) {
		bool       is_whole = memchr(bytes.p, '\n', bytes.n) != NULL;
		struct str part = str_cut(&bytes, '\n');
		bool       goes_on;

		buf_add_str(&w->line, part);
		if (w->line.is_full)
			return !err_set(&w->e, RC_CORRUPT, "a line of the server's stream has more than %d bytes",
			                LINE_MAX_BYTES);
		if (!is_whole)
			return true;
		goes_on = take_line(w, buf_str(&w->line));
		buf_reset(&w->line);
		if (!goes_on)
			return false;
	}
	return true;
}

/* One connection, until it ends. RC_OK with an answer, which may be a refusal. */
static enum rc follow(struct watch *w, struct fetch_reply *ret, struct err *e)
{
	struct remote        *remote = w->remote;
	struct remote_request req = { .method = "GET", .scope = REMOTE_ADMIN };
	enum rc rc = compose_query(remote, STR("/ops/events/stream"), event_filters, false, 0, STR(""), &req.path, e);

	if (rc)
		return rc;
	if (w->last_id[0])
		req.headers[0] = str_format(&remote->arena, "Last-Event-ID: %s", w->last_id).p;
	buf_reset(&w->line);
	memcpy(w->next_id, w->last_id, sizeof(w->next_id));
	w->is_answered = false;
	return remote_stream(remote, &req, take_bytes, w, ret, e);
}

static int watch(struct watch *w)
{
	struct remote *remote = w->remote;
	bool           has_answered = false;
	int64_t        heard_ms = mono_now().ms;

	for (;;) {
		struct fetch_reply reply = { 0 };
		struct err         e = { 0 };
		enum rc            rc = follow(w, &reply, &e);
		bool               is_away = rc == RC_UNAVAILABLE || rc == RC_TIMEOUT;
		bool               may_retry = rc ? is_away : remote_is_success(&reply) || reply.status >= 502;

		if (w->e.rc)
			return remote_fail(remote, &w->e);
		if (w->limit && w->shown == w->limit)
			return CLI_EXIT_OK;
		if (w->is_answered) {
			has_answered = true;
			heard_ms = mono_now().ms;
			fprintf(remote->io->err, "The connection has ended; reconnecting.\n");
		}
		if (!has_answered || !may_retry || mono_now().ms - heard_ms > PATIENCE_MS)
			return rc ? remote_fail(remote, &e) : remote_refused(remote, &reply);
		mono_sleep(remote->io->poll_ms);
	}
}

int run_event_watch(struct remote *remote)
{
	struct watch w = { .remote = remote };
	struct str   after = str_from(remote->args->values[CLI_OPTION_AFTER]);
	struct err   e = { 0 };
	int          code;

	if (option_number(remote, CLI_OPTION_LIMIT, 1, WATCH_LIMIT_MAX, 0, &w.limit, &e))
		return remote_fail(remote, &e);
	if (after.n >= sizeof(w.last_id))
		return remote_misused(remote, "--after must be the id of an event");
	memcpy(w.last_id, after.p ? after.p : "", after.n);
	buf_init(&w.line, LINE_MAX_BYTES);
	code = watch(&w);
	buf_fini(&w.line);
	arena_fini(&w.arena);
	return code;
}
