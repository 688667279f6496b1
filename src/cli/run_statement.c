/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_statement.c - what one lease cost: "lease statement" for people, "report statement" for operators.
 *
 * Both ask for the same record, on two routes: one knows the lease's id and so its owner, the other takes the uuid alone. With --csv the server's
 * table goes to standard output as it comes.
 */
#include "cli/run.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/card.h"
#include "cli/cli.h"
#include "cli/lease.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/show.h"

static bool print_bytes(struct str bytes, void *arg)
{
	const struct remote *remote = arg;

	return fwrite(bytes.p, 1, bytes.n, remote->io->out) == bytes.n;
}

static int print_csv(struct remote *remote, struct remote_request *req)
{
	struct fetch_reply reply;
	struct err         e = { 0 };

	req->accept = "Accept: text/csv, application/json";
	req->path = str_format(&remote->arena, "%.*s?format=csv", STR_ARG(req->path));
	if (remote_stream(remote, req, print_bytes, remote, &reply, &e))
		return remote_fail(remote, &e);
	return remote_is_success(&reply) ? CLI_EXIT_OK : remote_refused(remote, &reply);
}

/* Unix seconds as a time. */
static struct str second_cell(struct remote *remote, const json_t *item, const char *member)
{
	const json_t *sec = json_object_get(item, member);
	char          text[ISO_TIME_SIZE];

	return json_is_integer(sec) ? str_dup(&remote->arena, iso_time(json_integer_value(sec), text)) : STR("");
}

static void print_rows(struct remote *remote, const json_t *rows)
{
	static const char *const headings[] = { "SERVICE", "COST" };
	struct table             t;

	if (json_array_size(rows) == 0)
		return;
	table_init(&t, &remote->arena, headings, ARRAY_LEN(headings));
	for (size_t i = 0; i < json_array_size(rows); i++) {
		struct table_row *row = table_add_row(&t);

		row->cells[0] = list_text(remote, json_array_get(rows, i), "service");
		row->cells[1] = card_dollars(remote, json_array_get(rows, i), "usd");
	}
	fputc('\n', remote->io->out);
	table_print(&t, remote->io->out, remote->is_coloured);
}

static void print_statement(struct remote *remote, const json_t *statement)
{
	static const struct card_line lines[] = {
		{ "Lease", list_text, "lease" },
		{ "Owner", list_text, "user_email" },
		{ "Account", list_text, "account_id" },
		{ "Cost group", list_text, "cost_group" },
		{ "State", list_text, "state" },
		{ "Lease began", second_cell, "lease_started_at" },
		{ "Lease ended", second_cell, "lease_ended_at" },
		{ "Counted from", list_text, "from" },
		{ "Counted until", list_text, "to" },
		{ "Total (USD)", card_dollars, "total_usd" },
		{ "Known up to", list_text, "complete_until" },
		{ "Hash", list_text, "hash" },
	};

	card_print(remote, statement, lines, ARRAY_LEN(lines));
	print_rows(remote, json_object_get(statement, "rows"));
}

/* is_wrapped: the statement is the answer's data. */
static int show_statement(struct remote *remote, struct remote_request *req, bool is_wrapped)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	int                         code;

	if (remote->args->values[CLI_OPTION_CSV])
		return print_csv(remote, req);
	if ((code = remote_call(remote, req, &reply, &document)) != CLI_EXIT_OK)
		return code;
	if (remote->is_json)
		remote_print_json(remote, &reply);
	else
		print_statement(remote, is_wrapped ? json_object_get(document, "data") : document);
	return CLI_EXIT_OK;
}

int run_lease_statement(struct remote *remote)
{
	struct remote_request req = { .method = "GET", .scope = REMOTE_PERSON };
	struct str            id;
	int                   code = lease_find(remote, &id);

	if (code != CLI_EXIT_OK)
		return code;
	req.path = ask_path_of(remote, "/leases/", id, "/statement");
	return show_statement(remote, &req, true);
}

int run_report_statement(struct remote *remote)
{
	struct remote_request req = { .method = "GET",
		                      .path = ask_path(remote, "/ops/leases/", "/statement"),
		                      .scope = REMOTE_ADMIN };

	return show_statement(remote, &req, false);
}
