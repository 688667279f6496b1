/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_sandbox.c - the "sandbox" commands.
 *
 * A claim that waits is one request for as long as the server holds it, because a second one would go to the end of the
 * line. When the server holds it for less time than --wait says, the claim is repeated until the time is up.
 */
#include "cli/commands/run.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum { DEFAULT_RETRY_SEC = 5, RETRY_MAX_SEC = 60 };

bool sandbox_is_out_of_stock(const struct fetch_reply *reply)
{
	return reply->status == 409 && str_has(reply->body, STR("NO_SANDBOXES_AVAILABLE"));
}

enum rc claim_sandbox(struct remote *remote, enum remote_scope scope, struct str track, int64_t wait_sec,
                      struct fetch_reply *ret, struct err *e)
{
	static const struct compose_field headers[] = { { "Idempotency-Key", VALUE_FILLED, CLI_OPTION_KEY },
		                                        { "X-Sandbox-Name-Prefix", VALUE_FILLED, CLI_OPTION_PREFIX },
		                                        { "X-Instruqt-Track-ID", VALUE_FILLED, CLI_OPTION_LAB },
		                                        { .name = NULL } };
	struct remote_request             req = { .method = "POST",
		                                  .path = scope == REMOTE_TRACK ? STR("/allocate") : STR("/admin/allocate"),
		                                  .scope = scope,
		                                  .waiting_for = "waiting for a free sandbox (Ctrl-C leaves the line)" };
	int64_t deadline = mono_now().ms + wait_sec * 1000, left = wait_sec * 1000, sent, pause;
	size_t  used = 1;
	enum rc rc = compose_headers(remote, headers, &req.headers[1], e);

	if (rc)
		return rc;
	req.headers[0] = str_format(&remote->arena, "X-Track-ID: %.*s", STR_ARG(track)).p;
	while (req.headers[used])
		used++;
	do {
		req.wait_sec = (left + 999) / 1000;
		if (req.wait_sec)
			req.headers[used] = str_format(&remote->arena, "Prefer: wait=%" PRId64, req.wait_sec).p;
		sent = mono_now().ms;
		if ((rc = remote_send(remote, &req, ret, e)))
			return rc;
		left = deadline - mono_now().ms;
		if (!sandbox_is_out_of_stock(ret) || left <= 0)
			break;
		if (mono_now().ms - sent >= 1000)
			pause = 0;
		else if (!str_to_int(fetch_header(ret, "Retry-After"), 1, RETRY_MAX_SEC, &pause))
			pause = DEFAULT_RETRY_SEC; /* the server did not hold the claim for even a second */
		mono_sleep(pause * 1000 < left ? pause * 1000 : left);
		left = deadline - mono_now().ms;
	} while (left > 0);
	return RC_OK;
}

int run_sandbox_claim(struct remote *remote)
{
	const char *const                 *values = remote->args->values;
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct err                         e = { 0 };
	struct str                         track;
	int64_t                            wait_sec;
	int                                code;

	if (values[CLI_OPTION_LAB] && !str_is_of(str_from(values[CLI_OPTION_LAB]), "!-~"))
		return remote_misused(remote, "--lab must be visible ASCII characters without blanks, such as intro-1");
	if (values[CLI_OPTION_FILE])
		return class_claim(remote, values[CLI_OPTION_FILE]);
	if (values[CLI_OPTION_CSV])
		return remote_misused(remote, "--csv is for a class: give --file FILE");
	if (option_number(remote, CLI_OPTION_WAIT, 0, REMOTE_WAIT_MAX_SEC, 0, &wait_sec, &e) ||
	    remote_track(remote, &track, &e) || claim_sandbox(remote, REMOTE_TRACK, track, wait_sec, &answer.reply, &e))
		return remote_fail(remote, &e);
	if ((code = remote_read(remote, REMOTE_TRACK, &answer)) == CLI_EXIT_OK)
		code = call_print(remote, &calls[CLI_COMMAND_SANDBOX_CLAIM], &answer);
	if (answer.reply.status == 200 && !remote->is_json)
		fprintf(remote->io->err, "The track already held this one.\n");
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

/* By its id; only when there is none, by its name and so on. */
static int show_found(struct remote *remote, struct call *row)
{
	struct str                         typed = str_from(remote->args->operands[0]), id;
	struct remote_request              req = { .method = "GET", .scope = REMOTE_ADMIN };
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct err                         e = { 0 };
	int                                code;

	req.path = compose_path(remote, row->path, typed);
	if (remote_send(remote, &req, &answer.reply, &e))
		return remote_fail(remote, &e);
	if (answer.reply.status != 404) {
		code = remote_read(remote, REMOTE_ADMIN, &answer);
		return code == CLI_EXIT_OK ? call_print(remote, &calls[CLI_COMMAND_SANDBOX_SHOW], &answer) : code;
	}
	if ((code = sandbox_find(remote, typed, &id)) != CLI_EXIT_OK)
		return code;
	if (str_eq(id, typed))
		return remote_refused(remote, &answer.reply);
	row->path = compose_path(remote, row->path, id).p;
	return call_run(remote, row);
}

int run_sandbox_show(struct remote *remote)
{
	struct call row = call_row(remote);

	if (!wants_track_view(remote))
		return show_found(remote, &row);
	row.scope = REMOTE_TRACK;
	row.path = "/sandboxes/{}";
	return call_run(remote, &row);
}

int run_sandbox_give_back(struct remote *remote)
{
	const char *file = remote->args->values[CLI_OPTION_FILE];
	struct call row = call_row(remote);

	if ((remote->args->operand_count == 1) == (file != NULL))
		return remote_misused(remote, "give either an ID or --file FILE");
	return file ? class_give_back(remote, file) : call_run(remote, &row);
}

/* --- quarantine --- */

/* Those that are quarantined are no longer on the list, so the first page is always the next one. */
static int quarantine_available(struct many *m)
{
	size_t before;
	int    code;

	do {
		CLEANUP(answer_free) struct answer answer = { .json = NULL };
		const json_t                      *page;

		before = m->done;
		code = remote_get(m->remote, REMOTE_ADMIN, STR("/admin/sandboxes?status=available&limit=100"), &answer);
		page = json_object_get(answer.json, "sandboxes");
		for (size_t i = 0; code == CLI_EXIT_OK && i < json_array_size(page); i++) {
			struct str id = cell_text(m->remote, json_array_get(page, i), "sandbox_id");

			code = many_send(m, id, id);
		}
	} while (code == CLI_EXIT_OK && m->done > before);
	return code;
}

int run_sandbox_quarantine(struct remote *remote)
{
	const char *file = remote->args->values[CLI_OPTION_FROM];
	bool        is_all = remote->args->values[CLI_OPTION_ALL] != NULL;
	struct call row = call_row(remote);
	struct many m = { .remote = remote, .row = &row };
	struct err  e = { 0 };

	if ((remote->args->operand_count == 1) + (file != NULL) + is_all != 1)
		return remote_misused(remote, "give one of ID, --from FILE and --all");
	if (!file && !is_all)
		return call_run(remote, &row);
	if (compose_body(remote, row.body, &m.body, &e))
		return remote_fail(remote, &e);
	return many_end(&m, file ? many_lines(&m, file, NULL) : quarantine_available(&m), "quarantined");
}

/* --- deletion --- */

int run_sandbox_retry_deletion(struct remote *remote)
{
	bool        is_all = remote->args->values[CLI_OPTION_ALL] != NULL;
	struct call row = call_row(remote);

	if (is_all == (remote->args->operand_count == 1))
		return remote_misused(remote, "give either an ID or --all");
	if (is_all)
		row.path = "/admin/retry-failed-deletions";
	return call_run(remote, &row);
}

int run_sandbox_bulk_delete(struct remote *remote)
{
	const char *status = remote->args->values[CLI_OPTION_STATUS];
	struct call row = call_row(remote);
	int         code;

	if (!status || !status[0])
		return remote_misused(remote, "no state: give --status STATUS");
	code = many_agreed(remote,
	                   str_format(&remote->arena, "remove the records of all sandboxes that are %s", status));
	return code == CLI_EXIT_OK ? call_run(remote, &row) : code;
}
