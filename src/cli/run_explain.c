/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_explain.c - "explain": one thing in words.
 *
 * The server does the explaining; here it is laid out for a terminal. Times are in UTC, as in the server's sentences. Without an operator's
 * token a lease is explained as its owner or a manager may see it.
 */
#include "cli/run.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/lease.h"
#include "cli/remote.h"
#include "cli/show.h"

enum { WIDTH = 100, ACCOUNT_DIGITS = 12, UUID_LENGTH = 36, NOTE_CUT = 60, BY_CUT = 32 };

/* --- what is meant --- */

static bool is_all(struct str text, const char *allowed)
{
	for (size_t i = 0; i < text.n; i++)
		if (!strchr(allowed, text.p[i]))
			return false;
	return true;
}

/* Twelve digits are an account, a uuid or the API's own id is a lease, anything else a sandbox. */
static const char *guess_kind(struct str id)
{
	if (id.n == ACCOUNT_DIGITS && is_all(id, "0123456789"))
		return "account";
	if ((id.n == UUID_LENGTH && is_all(id, "0123456789abcdefABCDEF-")) || str_starts_with(id, STR("eyJ")))
		return "lease";
	return "sandbox";
}

/* --- layout --- */

static struct str text_of(struct remote *remote, const json_t *object, const char *name)
{
	return show_member(&remote->arena, object, name, clock_now(remote->io->clock));
}

/* "2026-11-18 10:00 UTC"; empty when there is none. */
static struct str time_of(struct remote *remote, const json_t *object, const char *name)
{
	struct str iso = text_of(remote, object, name);
	int64_t    sec;

	return iso_time_parse(iso, &sec) ? str_format(&remote->arena, "%.10s %.5s UTC", iso.p, iso.p + 11) : STR("");
}

/* The same with how long ago, or until then. */
static struct str when(struct remote *remote, const json_t *object, const char *name)
{
	struct str time = time_of(remote, object, name), relative;
	int64_t    sec;

	if (!iso_time_parse(text_of(remote, object, name), &sec))
		return STR("");
	relative = show_relative(&remote->arena, sec - wall_sec(clock_now(remote->io->clock)));
	return str_format(&remote->arena, "%.*s (%.*s)", STR_ARG(time), STR_ARG(relative));
}

static void print_heading(struct remote *remote, const char *text)
{
	fprintf(remote->io->out, "\n%s%s%s\n", remote->is_coloured ? "\033[1m" : "", text,
	        remote->is_coloured ? "\033[0m" : "");
}

/* Words in lines; what does not fit goes on below the first letter. */
static void print_wrapped(FILE *out, const char *bullet, struct str text)
{
	size_t indent = strlen(bullet), column = indent;

	fputs(bullet, out);
	while (text.n) {
		struct str word = str_cut(&text, ' ');

		if (column > indent && column + 1 + word.n > WIDTH) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		}
		fprintf(out, "%s%.*s", column > indent ? " " : "", STR_ARG(word));
		column += word.n + (column > indent);
	}
	fputc('\n', out);
}

static void print_lines(struct remote *remote, const json_t *document, const char *member, const char *heading,
                        const char *bullet)
{
	const json_t *lines = json_object_get(document, member);

	if (!json_array_size(lines))
		return;
	print_heading(remote, heading);
	for (size_t i = 0; i < json_array_size(lines); i++) {
		CLEANUP(json_freep) json_t *one = json_pack("{s:O}", "line", json_array_get(lines, i));

		print_wrapped(remote->io->out, bullet, text_of(remote, one, "line"));
	}
}

/* A table of a list's items: what each column shows. */
struct column {
	const char *heading, *member;
	struct str (*cell)(struct remote *remote, const json_t *item, const char *member);
};

static void print_table(struct remote *remote, const json_t *items, const char *heading, const struct column *columns,
                        size_t count)
{
	const char  *headings[TABLE_COLUMNS_MAX];
	struct table t;

	if (!json_array_size(items))
		return;
	for (size_t i = 0; i < count; i++)
		headings[i] = columns[i].heading;
	print_heading(remote, heading);
	table_init(&t, &remote->arena, headings, count);
	for (size_t i = 0; i < json_array_size(items); i++) {
		struct table_row *row = table_add_row(&t);

		for (size_t k = 0; k < count; k++)
			row->cells[k] = columns[k].cell(remote, json_array_get(items, i), columns[k].member);
	}
	table_print(&t, remote->io->out, false);
}

/* Until when an open hold lasts; how a closed one ended. */
static struct str until_cell(struct remote *remote, const json_t *hold, const char *member)
{
	struct str due = when(remote, hold, member);

	if (json_is_string(json_object_get(hold, "closed")))
		return when(remote, hold, "closed");
	return due.n ? due : STR("a person ends it");
}

static struct str note_cell(struct remote *remote, const json_t *hold, const char *member)
{
	struct str why = text_of(remote, hold, "closedWhy");

	return show_cut(&remote->arena, why.n ? why : text_of(remote, hold, member), NOTE_CUT);
}

/* To the second: several events are often of one minute. */
static struct str moment_cell(struct remote *remote, const json_t *event, const char *member)
{
	struct str iso = text_of(remote, event, member);
	int64_t    sec;

	return iso_time_parse(iso, &sec) ? str_format(&remote->arena, "%.10s %.8s", iso.p, iso.p + 11) : STR("");
}

static struct str by_cell(struct remote *remote, const json_t *step, const char *member)
{
	return show_cut(&remote->arena, text_of(remote, step, member), BY_CUT);
}

static void print_tables(struct remote *remote, const json_t *document)
{
	static const struct column holds[] = { { "HOLD", "id", text_of },
		                               { "REASON", "reason", text_of },
		                               { "STATE", "state", text_of },
		                               { "UNTIL", "due", until_cell },
		                               { "NOTE", "note", note_cell } };
	static const struct column next[] = { { "WHEN", "at", when },
		                              { "BY", "by", by_cell },
		                              { "WHAT", "what", text_of } };

	print_table(remote, json_object_get(document, "holds"), "Holds", holds, ARRAY_LEN(holds));
	print_table(remote, json_object_get(document, "next"), "What happens next", next, ARRAY_LEN(next));
}

static void print_can(struct remote *remote, const json_t *document)
{
	const json_t *can = json_object_get(document, "can");

	if (!json_array_size(can))
		return;
	print_heading(remote, "What you can do");
	for (size_t i = 0; i < json_array_size(can); i++) {
		const json_t *one = json_array_get(can, i);
		struct str    what = text_of(remote, one, "do"), command = text_of(remote, one, "command");

		print_wrapped(remote->io->out, "  ", what);
		fprintf(remote->io->out, "      %.*s\n", STR_ARG(command));
	}
}

static void print_events(struct remote *remote, const json_t *document)
{
	static const struct column events[] = { { "TIME (UTC)", "time", moment_cell },
		                                { "WHO", "actor", text_of },
		                                { "WHAT", "text", text_of } };

	print_table(remote, json_object_get(document, "events"), "What led there, the newest first", events,
	            ARRAY_LEN(events));
}

static void print_explanation(struct remote *remote, const json_t *document)
{
	struct str where = text_of(remote, document, "where"), since = when(remote, document, "since");

	print_wrapped(remote->io->out, "", text_of(remote, document, "summary"));
	fprintf(remote->io->out, "\n%.*s%s%.*s\n", STR_ARG(where), since.n ? " since " : "", STR_ARG(since));
	print_lines(remote, document, "problems", "What is wrong", "  ! ");
	print_lines(remote, document, "why", "Why", "  - ");
	print_tables(remote, document);
	print_can(remote, document);
	print_events(remote, document);
}

/* --- asking --- */

static int ask_operator(struct remote *remote, struct str kind, struct str id)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct str                  before = str_format(&remote->arena, "/ops/explain/%.*s/", STR_ARG(kind));
	struct remote_request       req = { .method = "GET",
		                            .path = ask_path_of(remote, before.p, id, ""),
		                            .scope = REMOTE_ADMIN };
	struct fetch_reply          reply;
	struct err                  e = { 0 };

	if (remote_send(remote, &req, &reply, &e))
		return remote_fail(remote, &e);
	if (!remote_is_success(&reply))
		return remote_refused(remote, &reply);
	if (remote_json(&reply, &document, &e))
		return remote_fail(remote, &e);
	if (remote->is_json)
		remote_print_json(remote, &reply);
	else
		print_explanation(remote, document);
	return CLI_EXIT_OK;
}

static int ask_as_person(struct remote *remote, const char *id)
{
	struct remote_request       req = { .method = "GET", .scope = REMOTE_PERSON };
	const struct cli_args      *args = remote->args;
	struct cli_args             of_lease = *args;
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	struct str                  long_id;
	int                         code;

	of_lease.operands[0] = id; /* where lease_find() looks */
	remote->args = &of_lease;
	code = lease_find(remote, &long_id);
	remote->args = args;
	if (code != CLI_EXIT_OK)
		return code;
	req.path = ask_path_of(remote, "/leases/", long_id, "/explain");
	code = remote_call(remote, &req, &reply, &document);
	if (code != CLI_EXIT_OK)
		return code;
	if (remote->is_json)
		remote_print_json(remote, &reply);
	else
		print_explanation(remote, json_object_get(document, "data"));
	return CLI_EXIT_OK;
}

int run_explain(struct remote *remote)
{
	bool        has_kind = remote->args->operand_count > 1;
	const char *id = remote->args->operands[has_kind];
	const char *kind = has_kind ? remote->args->operands[0] : guess_kind(str_from(id));
	struct err  e = { 0 };
	struct str  token;

	if (str_eq(str_from(kind), STR("lease")) && remote_token(remote, REMOTE_ADMIN, &token, &e) &&
	    remote_token(remote, REMOTE_PERSON, &token, &e) == RC_OK)
		return ask_as_person(remote, id);
	return ask_operator(remote, str_from(kind), str_from(id));
}
