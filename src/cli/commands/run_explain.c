/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_explain.c - "explain": the state of one thing in words.
 *
 * The server does the explaining; here it is laid out for a terminal. Times are in UTC, as in the server's sentences.
 * Without an operator's token, leases are explained as owners and managers may see them, accounts as managers may.
 */
#include "cli/commands/run.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/term/show.h"

enum { WIDTH = 100, ACCOUNT_DIGITS = 12, NOTE_CUT = 60, BY_CUT = 32 };

/* --- layout --- */

/* "2026-11-18 10:00 UTC (in 3 h)"; empty when there is none. */
static struct str when(struct remote *remote, const json_t *object, const char *name)
{
	struct str iso = cell_text(remote, object, name), relative;
	int64_t    sec;

	if (!iso_time_parse(iso, &sec))
		return STR("");
	relative = show_relative(&remote->arena, sec - wall_sec(clock_now(remote->io->clock)));
	return str_format(&remote->arena, "%.10s %.5s UTC (%.*s)", iso.p, iso.p + 11, STR_ARG(relative));
}

static void print_heading(struct remote *remote, const char *text)
{
	fprintf(remote->io->out, "\n%s%s%s\n", remote->is_coloured ? "\033[1m" : "", text,
	        remote->is_coloured ? "\033[0m" : "");
}

/* What does not fit goes on below the first letter. */
static void print_wrapped(struct remote *remote, const char *bullet, struct str text)
{
	size_t width = remote->io->width;

	fputs(bullet, remote->io->out);
	show_wrapped(remote->io->out, text, strlen(bullet), strlen(bullet), width && width < WIDTH ? width : WIDTH);
}

static void print_lines(struct remote *remote, const json_t *lines, const char *heading, const char *bullet)
{
	if (json_array_size(lines))
		print_heading(remote, heading);
	for (size_t i = 0; i < json_array_size(lines); i++) {
		CLEANUP(json_freep) json_t *one = json_pack("{s:O}", "line", json_array_get(lines, i));

		print_wrapped(remote, bullet, cell_text(remote, one, "line"));
	}
}

static void print_table(struct remote *remote, const json_t *items, const char *heading, const struct column *columns)
{
	if (!json_array_size(items))
		return;
	print_heading(remote, heading);
	cells_print_items(remote, columns, items, false);
}

/* Until when an open hold lasts; how a closed one ended. */
static struct str until_cell(struct remote *remote, const json_t *hold, const char *member)
{
	struct str due = when(remote, hold, member);

	if (json_is_string(json_object_get(hold, "closed")))
		return when(remote, hold, "closed");
	if (json_is_true(json_object_get(hold, "locks")))
		return STR("when a cleanup succeeds");
	return due.n ? due : STR("when someone releases it");
}

/* To the second: several events are often of one minute. */
static struct str moment_cell(struct remote *remote, const json_t *event, const char *member)
{
	struct str iso = cell_text(remote, event, member);
	int64_t    sec;

	return iso_time_parse(iso, &sec) ? str_format(&remote->arena, "%.10s %.8s", iso.p, iso.p + 11) : STR("");
}

static void print_can(struct remote *remote, const json_t *can)
{
	if (json_array_size(can))
		print_heading(remote, "What you can do");
	for (size_t i = 0; i < json_array_size(can); i++) {
		struct str command = cell_text(remote, json_array_get(can, i), "command");

		print_wrapped(remote, "  ", cell_text(remote, json_array_get(can, i), "do"));
		fprintf(remote->io->out, "      %.*s\n", STR_ARG(command));
	}
}

/* clang-format off */
static const struct column holds[] = { { "HOLD", "id" }, { "REASON", "reason" }, { "STATE", "state" },
	{ "UNTIL", "due", 0, until_cell }, { "NOTE", "closedWhy", NOTE_CUT, .otherwise = "note" }, { NULL } };
static const struct column next[] = { { "WHEN", "at", 0, when }, { "BY", "by", BY_CUT }, { "WHAT", "what" }, { NULL } };
static const struct column events[] = { { "TIME (UTC)", "time", 0, moment_cell }, { "WHO", "actor" },
	{ "WHAT", "text" }, { NULL } };
/* clang-format on */

void print_explanation(struct remote *remote, json_t *document)
{
	struct str where = cell_text(remote, document, "where"), since = when(remote, document, "since");

	print_wrapped(remote, "", cell_text(remote, document, "summary"));
	fprintf(remote->io->out, "\n%.*s%s%.*s\n", STR_ARG(where), since.n ? " since " : "", STR_ARG(since));
	print_lines(remote, json_object_get(document, "problems"), "What is wrong", "  ! ");
	print_lines(remote, json_object_get(document, "why"), "Why", "  - ");
	print_table(remote, json_object_get(document, "holds"), "Holds", holds);
	print_table(remote, json_object_get(document, "next"), "What happens next", next);
	print_can(remote, json_object_get(document, "can"));
	print_table(remote, json_object_get(document, "events"), "History, newest first", events);
}

/* --- the command --- */

#define EXPLAIN_SANDBOX "/ops/explain/sandbox/{}"

/* By what it looks like. A uuid, or a part of one, is a lease unless a sandbox has it. */
static const char *kind_of(struct str id)
{
	if (str_is_digits(id, ACCOUNT_DIGITS))
		return "account";
	if (str_starts_with(id, STR("inst-")))
		return "instance";
	return id_may_be_uuid(id) || str_starts_with(id, STR("eyJ")) ? "lease" : "sandbox"; /* eyJ: the API's own id */
}

static bool is_explained(struct remote *remote, const char *path, struct str id)
{
	struct remote_request req = { .method = "GET", .scope = REMOTE_ADMIN, .path = compose_path(remote, path, id) };
	struct fetch_reply    reply;
	struct err            e = { 0 };

	return remote_send(remote, &req, &reply, &e) == RC_OK && remote_is_success(&reply);
}

static int explain_to_person(struct remote *remote, struct call *row, const char *kind, struct str id)
{
	bool is_lease = strcmp(kind, "lease") == 0;
	int  code = is_lease ? lease_find(remote, id, &id) : CLI_EXIT_OK;

	row->scope = REMOTE_PERSON;
	row->path = compose_path(remote, is_lease ? "/leases/{}/explain" : "/accounts/{}/explain", id).p;
	return code == CLI_EXIT_OK ? call_run(remote, row) : code;
}

/* Leases are looked up with a person's token only. Without one the server finds them by their beginning. */
static int explain_to_operator(struct remote *remote, struct call *row, const char *kind, bool is_guess, struct str id)
{
	struct str token;
	struct err no_person = { 0 };
	bool       is_lease = strcmp(kind, "lease") == 0;
	int        code = CLI_EXIT_OK;

	if (strcmp(kind, "sandbox") == 0 && !id_may_be_uuid(id) && !is_explained(remote, EXPLAIN_SANDBOX, id)) {
		if (is_guess && is_explained(remote, "/ops/explain/instance/{}", id))
			kind = "instance"; /* the last one of that tenant */
		else
			code = sandbox_find(remote, id, &id); /* by its name or its track */
	} else if (!is_lease ||
	           (id_may_be_part(id) && remote_token(remote, REMOTE_PERSON, &token, &no_person) == RC_OK)) {
		code = id_find(remote, str_format(&remote->arena, "{%s}", kind).p, id, &id);
	}
	row->path = compose_path(remote, str_format(&remote->arena, "/ops/explain/%s/{}", kind).p, id).p;
	return code == CLI_EXIT_OK ? call_run(remote, row) : code;
}

int run_explain(struct remote *remote)
{
	bool        has_kind = remote->args->operand_count > 1;
	struct str  id = str_from(remote->args->operands[has_kind]), sandbox = id;
	const char *kind = has_kind ? remote->args->operands[0] : kind_of(id);
	struct call row = call_row(remote);
	int         code;

	if (str_is_word_of(str_from(kind), "lease account") && lease_is_mere_person(remote))
		return explain_to_person(remote, &row, kind, id);
	if (!has_kind && strcmp(kind, "lease") == 0 && id_may_be_uuid(id)) {
		if ((code = id_find(remote, "{sandbox}", id, &sandbox)) != CLI_EXIT_OK)
			return code;
		if (!str_eq(id, sandbox) || is_explained(remote, EXPLAIN_SANDBOX, id))
			kind = "sandbox";
	}
	return explain_to_operator(remote, &row, kind, !has_kind, sandbox);
}
