/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_report.c - the "report" commands: what leases cost.
 *
 * The report of a month is CSV, for spreadsheets: in a pipe or a file it stays that. On a terminal it is a table, with --json a list of
 * objects. Fields may be quoted; a quoted one may have commas and doubled quotes in it, but no line ends.
 */
#include "cli/run.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "cli/show.h"

enum { LINE_MAX_BYTES = 65536 };

/* One field, and *rest behind its comma. */
static struct str cut_field(struct remote *remote, struct str *rest)
{
	bool       is_quoted = rest->n > 0 && rest->p[0] == '"';
	size_t     at = is_quoted;
	struct buf b;
	struct str field;

	if (!is_quoted)
		return str_cut(rest, ',');
	buf_init(&b, LINE_MAX_BYTES);
	for (; at < rest->n; at++) {
		bool is_quote = rest->p[at] == '"';

		if (is_quote && (at + 1 == rest->n || rest->p[at + 1] != '"'))
			break;
		buf_add_char(&b, rest->p[at]);
		at += is_quote;
	}
	field = str_dup(&remote->arena, buf_str(&b));
	buf_fini(&b);
	*rest = str_of(rest->p + at, rest->n - at);
	(void)str_cut(rest, ','); /* the quote, and what does not belong there */
	return field;
}

/* The fields of a line by the names in the first. */
static json_t *read_line(struct remote *remote, struct str line, struct str names)
{
	json_t *row = json_object();

	while (names.n) {
		struct str name = cut_field(remote, &names), value = cut_field(remote, &line);

		(void)json_object_set_new(row, str_dup(&remote->arena, name).p,
		                          json_stringn(value.p ? value.p : "", value.n)); /* not UTF-8: left out */
	}
	return row;
}

static struct str cut_line(struct str *rest)
{
	struct str line = str_cut(rest, '\n');

	return line.n && line.p[line.n - 1] == '\r' ? str_of(line.p, line.n - 1) : line;
}

static json_t *read_csv(struct remote *remote, struct str csv)
{
	struct str names = cut_line(&csv);
	json_t    *rows = json_array();

	while (csv.n) {
		struct str line = cut_line(&csv);

		if (line.n)
			(void)json_array_append_new(rows,
			                            read_line(remote, line, names)); /* fails without memory only */
	}
	return rows;
}

static void print_table(struct remote *remote, const json_t *rows)
{
	static const char *const headings[] = { "GROUP", "FROM", "TO", "COST", "CURRENCY" };
	static const char *const members[] = { "CostReportGroup", "StartDate", "EndDate", "Cost", "Currency" };
	struct wall              now = clock_now(remote->io->clock);
	struct table             t;

	table_init(&t, &remote->arena, headings, ARRAY_LEN(headings));
	for (size_t i = 0; i < json_array_size(rows); i++) {
		struct table_row *row = table_add_row(&t);

		for (size_t k = 0; k < ARRAY_LEN(members); k++)
			row->cells[k] = show_member(&remote->arena, json_array_get(rows, i), members[k], now);
	}
	table_print(&t, remote->io->out, remote->is_coloured);
}

static void print_report(struct remote *remote, const struct fetch_reply *reply)
{
	CLEANUP(json_freep) json_t *rows = read_csv(remote, reply->body);
	char                       *text;

	if (!remote->is_json) {
		print_table(remote, rows);
		return;
	}
	text = json_dumps(rows, JSON_COMPACT);
	fprintf(remote->io->out, "%s\n", text);
	free(text);
}

static bool is_month(struct str text)
{
	struct str rest = text, year = str_cut(&rest, '-');
	int64_t    number;

	return text.n == 7 && year.n == 4 && str_to_int(year, 1970, 9999, &number) && str_to_int(rest, 1, 12, &number);
}

static bool print_bytes(struct str bytes, void *arg)
{
	const struct remote *remote = arg;

	return fwrite(bytes.p, 1, bytes.n, remote->io->out) == bytes.n;
}

int run_report_costs(struct remote *remote)
{
	struct str            month = str_from(remote->args->operands[0]);
	bool                  is_plain = !remote->is_json && !remote->io->is_out_terminal;
	struct remote_request req = { .method = "GET",
		                      .scope = REMOTE_ADMIN,
		                      .accept = "Accept: text/csv, application/json",
		                      .waiting_for = "the costs are being added up" };
	struct fetch_reply    reply;
	struct err            e = { 0 };

	if (!is_month(month))
		return remote_misused(remote, "MONTH must be one such as 2026-10");
	req.path = ask_path(remote, "/ops/reports/costs?month=", "");
	if (is_plain ? remote_stream(remote, &req, print_bytes, remote, &reply, &e)
	             : remote_send(remote, &req, &reply, &e))
		return remote_fail(remote, &e);
	if (!remote_is_success(&reply))
		return remote_refused(remote, &reply);
	if (!is_plain)
		print_report(remote, &reply);
	return CLI_EXIT_OK;
}
