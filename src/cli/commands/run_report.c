/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_report.c - what other systems take from us, also as CSV: "report costs", and "hold drain" before the service is
 * removed.
 *
 * The report of a month is CSV, and stays that in a pipe or a file. On a terminal it is a table, with --json a list of
 * objects. A quoted field may contain commas and doubled quotes, but no line ends.
 *
 * The server drains one page of holds at a time; the command repeats that until none is left. What is handed over is
 * printed as it is closed, so that an interrupted run has shown everything that another system has to take.
 */

#include "cli/commands/run.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"

enum { PAGE = 100 };

/* --- report costs --- */

/* The fields of a line, by the names in the first line. */
static json_t *read_line(struct remote *remote, struct str line, struct str names)
{
	json_t *row = json_object();

	while (names.n) {
		struct str name, value;

		(void)csv_cut(&remote->arena, &names, ',', &name); /* a quote that is not closed ends with its line */
		(void)csv_cut(&remote->arena, &line, ',', &value);
		(void)json_object_set_new(row, str_dup(&remote->arena, name).p,
		                          json_stringn(value.p ? value.p : "", value.n)); /* not UTF-8: left out */
	}
	return row;
}

static json_t *read_csv(struct remote *remote, struct str csv)
{
	struct str names = str_cut_line(&csv);
	json_t    *rows = json_array();

	while (csv.n) {
		struct str line = str_cut_line(&csv);

		if (line.n)
			(void)json_array_append_new(rows,
			                            read_line(remote, line, names)); /* fails without memory only */
	}
	return rows;
}

/* clang-format off */
#define SUMS(heading, member) \
	{ heading, member }, { "FROM", "StartDate" }, { "TO", "EndDate" }, { "COST", "Cost" }, \
	{ "CURRENCY", "Currency" }, { NULL }
static const struct {
	const char   *by;
	struct column columns[8];
} cost_tables[] = {
	{ "group",    { SUMS("GROUP", "CostReportGroup") } },
	{ "owner",    { SUMS("OWNER", "Owner") } },
	{ "template", { SUMS("TEMPLATE", "Template") } },
	{ "lease",    { { "LEASE", "Lease" }, { "OWNER", "Owner", 24 }, { "TEMPLATE", "Template", 12 },
	                { "COST", "Cost" }, { "BY MONTH'S END", "ProjectedCost" }, { "STATE", "State" }, { NULL } } },
	{ "day",      { { "DAY", "Day" }, { "COST", "Cost" }, { "CURRENCY", "Currency" }, { NULL } } },
};
/* clang-format on */

static double cost_of(const json_t *row)
{
	const char *text = json_string_value(json_object_get(row, "Cost"));

	return text ? strtod(text, NULL) : 0;
}

static int by_cost(const void *a, const void *b)
{
	double x = cost_of(*(json_t *const *)a), y = cost_of(*(json_t *const *)b);

	return (x < y) - (x > y);
}

/* The most expensive first. */
static void sort_by_cost(struct remote *remote, json_t *rows)
{
	size_t   count = json_array_size(rows);
	json_t **sorted = arena_alloc(&remote->arena, (count + 1) * sizeof(json_t *));

	for (size_t i = 0; i < count; i++)
		sorted[i] = json_incref(json_array_get(rows, i));
	qsort(sorted, count, sizeof(sorted[0]), by_cost);
	for (size_t i = 0; i < count; i++)
		(void)json_array_set_new(rows, i, sorted[i]); /* there is one at i */
}

int run_report_costs(struct remote *remote)
{
	const char                 *by = remote->args->values[CLI_OPTION_BY];
	size_t                      table = 0;
	struct remote_request       req = { .method = "GET",
		                            .scope = REMOTE_ADMIN,
		                            .accept = "Accept: text/csv, application/json",
		                            .waiting_for = "the costs are being added up" };
	struct str                  number = str_from(remote->args->operands[0]), year = str_cut(&number, '-');
	struct fetch_reply          reply;
	struct err                  e = { 0 };
	int64_t                     ignored;
	CLEANUP(json_freep) json_t *rows = NULL;

	if (number.n != 2 || year.n != 4 || !str_to_int(year, 1970, 9999, &ignored) ||
	    !str_to_int(number, 1, 12, &ignored))
		return remote_misused(remote, "MONTH must be one such as 2026-10");
	while (by && table < ARRAY_LEN(cost_tables) && !str_eq(str_from(by), str_from(cost_tables[table].by)))
		table++;
	if (table == ARRAY_LEN(cost_tables))
		return remote_misused(remote, "--by must be group, owner, template, lease or day");
	if (lease_is_mere_person(remote))
		req.scope = REMOTE_PERSON;
	if (compose_query(remote, req.scope == REMOTE_PERSON ? STR("/reports/costs") : STR("/ops/reports/costs"),
	                  call_row(remote).query, false, 0, STR(""), &req.path, &e))
		return remote_fail(remote, &e);
	if (!remote->is_json && !remote->io->is_out_terminal)
		return remote_print_stream(remote, &req);
	if (remote_send(remote, &req, &reply, &e))
		return remote_fail(remote, &e);
	if (!remote_is_success(&reply))
		return remote_refused(remote, &reply);
	rows = read_csv(remote, reply.body);
	if (strcmp(cost_tables[table].by, "day") != 0)
		sort_by_cost(remote, rows);
	if (remote->is_json)
		fprintf(remote->io->out, "%s\n", json_dump(&remote->arena, rows).p);
	else
		cells_print_items(remote, cost_tables[table].columns, rows, remote->is_coloured);
	return CLI_EXIT_OK;
}

/* --- hold drain --- */

/* None of these fields can contain a comma or a quotation mark: they are ids, names and times of ours. */
static void print_csv(const struct remote *remote, const json_t *hold)
{
	char       made[ISO_TIME_SIZE], due[ISO_TIME_SIZE];
	int64_t    due_sec = json_integer_value(json_object_get(hold, "due_at"));
	struct str made_text = iso_time(json_integer_value(json_object_get(hold, "created_at")), made);
	struct str due_text = due_sec ? iso_time(due_sec, due) : STR("");
	struct str id, account, schedule, reason;

	if (json_get_text(hold, "id", &id) && json_get_text(hold, "account_id", &account) &&
	    json_get_text(hold, "schedule", &schedule) && json_get_text(hold, "reason", &reason))
		fprintf(remote->io->out, "%.*s,%.*s,%.*s,%.*s,%.*s,%.*s\n", STR_ARG(account), STR_ARG(id),
		        STR_ARG(schedule), STR_ARG(reason), STR_ARG(made_text), STR_ARG(due_text));
}

int run_hold_drain(struct remote *remote)
{
	bool                                      is_csv = remote->args->values[CLI_OPTION_CSV] && !remote->is_json;
	bool                                      applies = remote->args->values[CLI_OPTION_YES] != NULL;
	struct call                               row = call_row(remote);
	CLEANUP(call_pages_end) struct call_pages pages = { &row, str_from(row.path), PAGE };
	CLEANUP(json_freep) json_t               *all = json_array();
	struct err                                e = { 0 };
	struct str                                reason;
	json_t                                   *holds;
	int64_t                                   done = 0, refused = 0;

	if ((applies && option_needed(remote, CLI_OPTION_REASON, &reason, &e)) ||
	    compose_body(remote, row.body, &pages.body, &e))
		return remote_fail(remote, &e);
	if (is_csv)
		fprintf(remote->io->out, "account,hold,schedule,reason,created,due\n");
	while (call_next(remote, &pages, &holds)) {
		if (remote->is_json)
			remote_print_json(remote, &pages.answer.reply);
		for (size_t i = 0; is_csv && i < json_array_size(holds); i++)
			print_csv(remote, json_array_get(holds, i));
		(void)json_array_extend(all, holds); /* fails only for what is no list */
		done += member_number(pages.answer.json, "done");
		refused += member_number(pages.answer.json, "refused");
	}
	if (!is_csv && !remote->is_json && json_array_size(all))
		cells_print_items(remote, row.columns, all, remote->is_coloured);
	if (applies)
		fprintf(remote->io->err, "%" PRId64 " closed, %" PRId64 " refused\n", done, refused);
	else
		fprintf(remote->io->err, "%zu holds; nothing was changed: add --yes to do it\n", json_array_size(all));
	return pages.code == CLI_EXIT_OK && refused ? CLI_EXIT_REFUSED : pages.code;
}
