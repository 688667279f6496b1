/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_sandbox.c - the "sandbox" commands.
 *
 * A claim that waits is one request for as long as the server holds it, because who asks again stands at the end of the
 * line again. When the server holds it for less than was asked, the claim is repeated until the time is up.
 */
#include "cli/run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/remote.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/show.h"

enum { PATH_MAX_BYTES = 4096, PAGE_MAX = 100, PAGES_MAX = 10000, DEFAULT_RETRY_SEC = 5, RETRY_MAX_SEC = 60 };
enum { STALE_HOURS_MAX = 8760, STALE_HOURS = 24, ANSWER_LINE_MAX = 16, REASON_COLUMN = 5 };

void run_pause(int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&t, NULL); /* shorter is fine: the caller looks at the clock */
}

/* Adds "Name: value" at *n unless the value is empty. */
static void add_header(struct remote *remote, struct remote_request *req, size_t *n, const char *name, struct str value)
{
	if (value.n)
		req->headers[(*n)++] = str_format(&remote->arena, "%s: %.*s", name, STR_ARG(value)).p;
}

static enum rc add_track(struct remote *remote, struct remote_request *req, size_t *n, struct err *e)
{
	struct str track;
	enum rc    rc = remote_track(remote, &track, e);

	if (!rc)
		add_header(remote, req, n, "X-Track-ID", track);
	return rc;
}

static bool is_out_of_stock(const struct fetch_reply *reply)
{
	return reply->status == 409 &&
	       memmem(reply->body.p, reply->body.n, "NO_SANDBOXES_AVAILABLE", sizeof("NO_SANDBOXES_AVAILABLE") - 1);
}

/* How long to leave a server alone that did not hold the claim for even a second. */
static int64_t retry_pause_ms(const struct fetch_reply *reply, int64_t held_ms)
{
	int64_t sec;

	if (held_ms >= 1000)
		return 0;
	if (!str_to_int(fetch_header(reply, "Retry-After"), 1, RETRY_MAX_SEC, &sec))
		sec = DEFAULT_RETRY_SEC;
	return sec * 1000;
}

/* Claim until there is an answer other than "none free" or the time is up. prefer_at is where its header goes. */
static enum rc claim_until(struct remote *remote, struct remote_request *req, size_t prefer_at, int64_t wait_sec,
                           struct fetch_reply *ret, struct err *e)
{
	int64_t deadline = mono_now().ms + wait_sec * 1000, left = wait_sec * 1000, sent, pause;
	enum rc rc;

	do {
		req->wait_sec = (left + 999) / 1000;
		if (req->wait_sec)
			req->headers[prefer_at] = str_format(&remote->arena, "Prefer: wait=%" PRId64, req->wait_sec).p;
		sent = mono_now().ms;
		if ((rc = remote_send(remote, req, ret, e)))
			return rc;
		left = deadline - mono_now().ms;
		if (!is_out_of_stock(ret) || left <= 0)
			break;
		pause = retry_pause_ms(ret, mono_now().ms - sent);
		run_pause((int)(pause < left ? pause : left));
		left = deadline - mono_now().ms;
	} while (left > 0);
	return RC_OK;
}

int run_sandbox_claim(struct remote *remote)
{
	const char *const    *values = remote->args->values;
	struct remote_request req = { .method = "POST",
		                      .path = STR("/allocate"),
		                      .scope = REMOTE_TRACK,
		                      .waiting_for = "waiting for a free sandbox (Ctrl-C leaves the line)" };
	struct fetch_reply    reply;
	struct err            e = { 0 };
	int64_t               wait_sec;
	size_t                n = 0;
	int                   code;

	if (ask_number(remote, CLI_OPTION_WAIT, 0, REMOTE_WAIT_MAX_SEC, 0, &wait_sec, &e) ||
	    add_track(remote, &req, &n, &e))
		return remote_fail(remote, &e);
	add_header(remote, &req, &n, "Idempotency-Key", str_from(values[CLI_OPTION_KEY]));
	add_header(remote, &req, &n, "X-Sandbox-Name-Prefix", str_from(values[CLI_OPTION_PREFIX]));
	add_header(remote, &req, &n, "X-Instruqt-Track-ID", str_from(values[CLI_OPTION_LAB]));
	if (claim_until(remote, &req, n, wait_sec, &reply, &e))
		return remote_fail(remote, &e);
	code = remote_show(remote, &reply);
	if (reply.status == 200 && !remote->is_json)
		fprintf(remote->io->err, "The track held this one already.\n");
	return code;
}

/* Operators see more; but a named track, or nothing but a track's token, means the track's own view. */
static bool wants_track_view(struct remote *remote)
{
	struct err no_admin = { 0 }, no_track = { 0 };
	struct str token, track;
	bool       is_any_token = remote->args->values[CLI_OPTION_TOKEN_FILE] ||
	                    settings_get(&remote->settings, "LEASEHOLD_TOKEN").n;

	if (remote->args->values[CLI_OPTION_TRACK])
		return true;
	if (is_any_token)
		return remote_track(remote, &track, &no_track) == RC_OK;
	return remote_token(remote, REMOTE_ADMIN, &token, &no_admin) != RC_OK &&
	       remote_token(remote, REMOTE_TRACK, &token, &no_track) == RC_OK;
}

int run_sandbox_show(struct remote *remote)
{
	struct remote_request req = { .method = "GET", .scope = REMOTE_ADMIN };
	struct err            e = { 0 };
	size_t                n = 0;

	if (!wants_track_view(remote)) {
		req.path = ask_path(remote, "/admin/sandboxes/", "");
		return remote_run(remote, &req);
	}
	req.scope = REMOTE_TRACK;
	req.path = ask_path(remote, "/sandboxes/", "");
	if (add_track(remote, &req, &n, &e))
		return remote_fail(remote, &e);
	return remote_run(remote, &req);
}

int run_sandbox_give_back(struct remote *remote)
{
	struct remote_request req = { .method = "POST",
		                      .path = ask_path(remote, "/sandboxes/", "/mark-for-deletion"),
		                      .scope = REMOTE_TRACK };
	struct err            e = { 0 };
	size_t                n = 0;

	if (add_track(remote, &req, &n, &e))
		return remote_fail(remote, &e);
	return remote_run(remote, &req);
}

static void add_sandboxes(struct remote *remote, struct table *t, const json_t *page)
{
	static const char *const members[] = {
		"sandbox_id",         "name",       "status",
		"allocated_to_track", "expires_at", [REASON_COLUMN] = "quarantine_reason"
	};
	const json_t *list = json_object_get(page, "sandboxes");
	struct wall   now = clock_now(remote->io->clock);

	for (size_t i = 0; i < json_array_size(list); i++) {
		struct table_row *row = table_add_row(t);

		for (size_t k = 0; k < ARRAY_LEN(members); k++)
			row->cells[k] = show_member(&remote->arena, json_array_get(list, i), members[k], now);
	}
}

/* The column of reasons goes when it is empty. */
static void drop_empty_reasons(struct table *t)
{
	for (const struct table_row *row = t->first->next; row; row = row->next)
		if (row->cells[REASON_COLUMN].n)
			return;
	t->columns = REASON_COLUMN;
}

static struct str list_path(struct remote *remote, int64_t limit, struct str cursor)
{
	const char *status = remote->args->values[CLI_OPTION_STATUS];
	struct buf  path;
	struct str  ret;

	buf_init(&path, PATH_MAX_BYTES);
	buf_addf(&path, "/admin/sandboxes?limit=%" PRId64, limit);
	if (status) {
		buf_add_text(&path, "&status=");
		fetch_escape(&path, str_from(status));
	}
	if (cursor.n) {
		buf_add_text(&path, "&cursor=");
		fetch_escape(&path, cursor);
	}
	ret = str_dup(&remote->arena, buf_str(&path));
	buf_fini(&path);
	return ret;
}

/* One page: printed as JSON or added to the table. *cursor is where the next begins, empty at the end. */
static int list_page(struct remote *remote, int64_t limit, struct table *t, struct str *cursor)
{
	struct remote_request       req = { .method = "GET",
		                            .path = list_path(remote, limit, *cursor),
		                            .scope = REMOTE_ADMIN };
	CLEANUP(json_freep) json_t *page = NULL;
	struct fetch_reply          reply;
	struct err                  e = { 0 };
	struct str                  next;

	if (remote_send(remote, &req, &reply, &e))
		return remote_fail(remote, &e);
	if (!remote_is_success(&reply))
		return remote_refused(remote, &reply);
	if (remote_json(&reply, &page, &e))
		return remote_fail(remote, &e);
	if (!json_get_text(page, "cursor", &next) || (next.n && str_eq(next, *cursor))) {
		(void)err_set(&e, RC_CORRUPT,
		              "the server's answer has no usable cursor"); /* remote_fail() has the code */
		return remote_fail(remote, &e);
	}
	if (remote->is_json)
		remote_print_json(remote, &reply);
	else
		add_sandboxes(remote, t, page);
	*cursor = str_dup(&remote->arena, next);
	return CLI_EXIT_OK;
}

int run_sandbox_list(struct remote *remote)
{
	static const char *const headings[] = {
		"ID", "NAME", "STATUS", "TRACK", "EXPIRES", [REASON_COLUMN] = "REASON"
	};
	bool         is_all = remote->args->values[CLI_OPTION_ALL] != NULL;
	struct str   cursor = STR("");
	struct err   e = { 0 };
	struct table t;
	int64_t      limit;
	int          code, pages = 0;

	if (ask_number(remote, CLI_OPTION_LIMIT, 1, PAGE_MAX, is_all ? PAGE_MAX : 50, &limit, &e))
		return remote_fail(remote, &e);
	table_init(&t, &remote->arena, headings, ARRAY_LEN(headings));
	do {
		code = list_page(remote, limit, &t, &cursor);
	} while (code == CLI_EXIT_OK && is_all && cursor.n && ++pages < PAGES_MAX);
	if (code != CLI_EXIT_OK)
		return code;
	drop_empty_reasons(&t);
	if (!remote->is_json)
		table_print(&t, remote->io->out, remote->is_coloured);
	if (cursor.n && !remote->is_json)
		fprintf(remote->io->err, "There are more; --all lists them all.\n");
	return CLI_EXIT_OK;
}

int run_sandbox_stats(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){
	                                  .method = "GET", .path = STR("/admin/stats"), .scope = REMOTE_ADMIN });
}

int run_sandbox_quarantine(struct remote *remote)
{
	struct remote_request req = { .method = "POST",
		                      .path = ask_path(remote, "/admin/sandboxes/", "/quarantine"),
		                      .scope = REMOTE_ADMIN };
	const char           *reason = remote->args->values[CLI_OPTION_REASON];

	if (reason && reason[0])
		req.body = ask_body(remote, "reason", str_from(reason));
	return remote_run(remote, &req);
}

int run_sandbox_release(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "POST",
	                                                    .path = ask_path(remote, "/admin/sandboxes/", "/release"),
	                                                    .scope = REMOTE_ADMIN });
}

int run_sandbox_delete(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "POST",
	                                                    .path = ask_path(remote, "/admin/sandboxes/", "/delete"),
	                                                    .scope = REMOTE_ADMIN });
}

int run_sandbox_retry_deletion(struct remote *remote)
{
	struct remote_request req = { .method = "POST",
		                      .path = STR("/admin/retry-failed-deletions"),
		                      .scope = REMOTE_ADMIN };
	bool                  is_all = remote->args->values[CLI_OPTION_ALL] != NULL;
	struct err            e = { 0 };

	if (is_all == (remote->args->operand_count == 1)) {
		(void)err_set(&e, RC_INVALID, "give either an ID or --all"); /* remote_fail() has the code */
		return remote_fail(remote, &e);
	}
	if (!is_all)
		req.path = ask_path(remote, "/admin/sandboxes/", "/retry-deletion");
	return remote_run(remote, &req);
}

/* RC_OK when it was agreed to, by --yes or by who sits at the terminal. */
static enum rc confirm(const struct remote *remote, const char *status, struct err *e)
{
	const struct cli_io *io = remote->io;
	char                 line[ANSWER_LINE_MAX];

	if (remote->args->values[CLI_OPTION_YES])
		return RC_OK;
	if (!io->is_in_terminal || !io->is_err_terminal)
		return err_set(e, RC_INVALID, "this is no terminal to ask at: add --yes to remove all that are %s",
		               status);
	fprintf(io->err, "Remove the records of all sandboxes that are %s? Type yes: ", status);
	fflush(io->err);
	if (!fgets(line, sizeof(line), io->in) || strcmp(line, "yes\n") != 0)
		return err_set(e, RC_INVALID, "the answer was not yes; nothing was removed");
	return RC_OK;
}

int run_sandbox_bulk_delete(struct remote *remote)
{
	const char           *status = remote->args->values[CLI_OPTION_STATUS];
	struct remote_request req = { .method = "POST", .scope = REMOTE_ADMIN };
	struct err            e = { 0 };
	struct buf            path;
	int                   code;

	if (!status || !status[0]) {
		(void)err_set(&e, RC_INVALID, "no state: give --status STATUS"); /* remote_fail() has the code */
		return remote_fail(remote, &e);
	}
	if (confirm(remote, status, &e))
		return remote_fail(remote, &e);
	buf_init(&path, PATH_MAX_BYTES);
	buf_add_text(&path, "/admin/bulk-delete?status=");
	fetch_escape(&path, str_from(status));
	req.path = buf_str(&path);
	code = remote_run(remote, &req);
	buf_fini(&path);
	return code;
}

int run_sandbox_remove_stale(struct remote *remote)
{
	struct remote_request req = { .method = "POST",
		                      .scope = REMOTE_ADMIN,
		                      .waiting_for = "waiting for the end of the run" };
	struct err            e = { 0 };
	int64_t               hours;

	if (ask_number(remote, CLI_OPTION_HOURS, 1, STALE_HOURS_MAX, STALE_HOURS, &hours, &e))
		return remote_fail(remote, &e);
	req.path = str_format(&remote->arena, "/admin/auto-delete-stale?grace_period_hours=%" PRId64, hours);
	return run_job_to_end(remote, &req, "stale-removal");
}
