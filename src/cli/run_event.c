/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_event.c - the "event" commands.
 *
 * "watch" follows the server's stream of events (text/event-stream). When the connection ends, it is made again and goes on after the
 * last event seen; the server tells an id at the beginning, so that this holds before the first event too. Only a server that has
 * never answered, that refuses, or that stays away for PATIENCE_MS ends it.
 */
#include "cli/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "cli/show.h"

enum { LINE_MAX_BYTES = 512 * 1024, EVENT_ID_ROOM = 64, PATIENCE_MS = 600000, WATCH_LIMIT_MAX = 1000000000 };

static const struct ask_filter filters[] = {
	{ CLI_OPTION_TYPE, "type", NULL },   { CLI_OPTION_SUBJECT, "subject", NULL },
	{ CLI_OPTION_ACTOR, "actor", NULL }, { CLI_OPTION_SINCE, "since", NULL },
	{ CLI_OPTION_UNTIL, "until", NULL }, { CLI_OPTION_OLDEST, "order", "oldest" },
};

int run_event_list(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "ID", list_text, "id", 36 },
		{ "AGE", list_age, "time", 5 },
		{ "TYPE", list_text, "detail-type", 20 },
		{ "SUBJECT", list_text, "subject", 18 },
		{ "ACTOR", list_text, "actor", 12 },
	};
	static const struct list events = { .path = "/ops/events",
		                            .items = "events",
		                            .columns = columns,
		                            .column_count = ARRAY_LEN(columns),
		                            .filters = filters,
		                            .filter_count = ARRAY_LEN(filters),
		                            .has_pages = true };

	return list_run(remote, &events);
}

int run_event_show(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "GET",
	                                                    .path = ask_path(remote, "/ops/events/", ""),
	                                                    .scope = REMOTE_ADMIN });
}

/* --- export --- */

static bool print_bytes(struct str bytes, void *arg)
{
	const struct remote *remote = arg;

	return fwrite(bytes.p, 1, bytes.n, remote->io->out) == bytes.n;
}

int run_event_export(struct remote *remote)
{
	struct remote_request req = { .method = "GET", .scope = REMOTE_ADMIN };
	struct cli_io         io = *remote->io;
	struct progress       progress;
	struct fetch_reply    reply;
	struct err            e = { 0 };
	enum rc               rc;

	req.path = ask_query(remote, "/ops/events/export", filters, ARRAY_LEN(filters), 0, STR(""));
	io.is_err_terminal = io.is_err_terminal && !io.is_out_terminal; /* else the events themselves are to be seen */
	progress_start(&progress, &io, "exporting");
	rc = remote_stream(remote, &req, print_bytes, remote, &reply, &e);
	progress_stop(&progress);
	if (rc)
		return remote_fail(remote, &e);
	return remote_is_success(&reply) ? CLI_EXIT_OK : remote_refused(remote, &reply);
}

/* --- watch --- */

struct watch {
	struct remote *remote;
	struct arena   arena;                                          /* of one event */
	struct buf     line;                                           /* the one under way */
	char           last_id[EVENT_ID_ROOM], next_id[EVENT_ID_ROOM]; /* of what is whole; of what is under way */
	bool           is_answered; /* the connection under way has brought something */
	int64_t        shown, limit;
	struct err     e; /* what came was no stream of events */
};

static void print_event(struct watch *w, const json_t *event, struct str json)
{
	const struct remote *remote = w->remote;
	struct wall          now = clock_now(remote->io->clock);
	struct str           type, subject, actor, time;
	int64_t              sec;

	if (remote->is_json) {
		fprintf(remote->io->out, "%.*s\n", STR_ARG(json));
		return;
	}
	if (!json_get_text(event, "time", &time) || !iso_time_parse(time, &sec))
		sec = 0;
	time = show_date(&w->arena, sec);
	type = show_member(&w->arena, event, "detail-type", now);
	subject = show_member(&w->arena, event, "subject", now);
	actor = show_member(&w->arena, event, "actor", now);
	fprintf(remote->io->out, "%.*s  %-24.*s  %-28.*s  %.*s\n", STR_ARG(time), STR_ARG(type), STR_ARG(subject),
	        STR_ARG(actor));
}

static bool take_event(struct watch *w, struct str json)
{
	CLEANUP(json_freep) json_t *event = NULL;

	arena_reset(&w->arena);
	if (json_parse(json, &event, &w->e)) {
		(void)err_wrap(&w->e, RC_CORRUPT, "the server's stream cannot be understood"); /* kept in w */
		w->e.rc = RC_CORRUPT;
		return false;
	}
	print_event(w, event, json);
	fflush(w->remote->io->out);
	return ++w->shown != w->limit;
}

/* One line of the stream. An event of ours has its data on one, and counts as seen when the empty line behind it has come. */
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

	req.path = ask_query(remote, "/ops/events/stream", filters, ARRAY_LEN(filters), 0, STR(""));
	if (w->last_id[0])
		req.headers[0] = str_format(&remote->arena, "Last-Event-ID: %s", w->last_id).p;
	buf_reset(&w->line);
	memcpy(w->next_id, w->last_id, sizeof(w->next_id));
	w->is_answered = false;
	return remote_stream(remote, &req, take_bytes, w, ret, e);
}

/* Is it worth another try? */
static bool is_passing(enum rc rc, const struct fetch_reply *reply)
{
	if (rc)
		return rc == RC_UNAVAILABLE || rc == RC_TIMEOUT;
	return remote_is_success(reply) || reply->status >= 502;
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

		if (w->e.rc)
			return remote_fail(remote, &w->e);
		if (w->limit && w->shown == w->limit)
			return CLI_EXIT_OK;
		if (w->is_answered) {
			has_answered = true;
			heard_ms = mono_now().ms;
			fprintf(remote->io->err, "The connection has ended; making it again.\n");
		}
		if (!has_answered || !is_passing(rc, &reply) || mono_now().ms - heard_ms > PATIENCE_MS)
			return rc ? remote_fail(remote, &e) : remote_refused(remote, &reply);
		run_pause(remote->io->poll_ms);
	}
}

int run_event_watch(struct remote *remote)
{
	struct watch w = { .remote = remote };
	struct str   after = str_from(remote->args->values[CLI_OPTION_AFTER]);
	struct err   e = { 0 };
	int          code;

	if (ask_number(remote, CLI_OPTION_LIMIT, 1, WATCH_LIMIT_MAX, 0, &w.limit, &e))
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
