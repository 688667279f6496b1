/* SPDX-License-Identifier: Apache-2.0 */
/* views.c - cells of the rows in calls.c that need more than one member, and answers that are more than a table. */
#include "cli/commands/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/call/remote.h"
#include "cli/term/show.h"

enum { RESOURCES_MOST = 20, RESOURCE_MAX = 500, TRIES_WITHOUT_END = 1000 };

/* --- leases --- */

struct str cell_lease_spent(struct remote *remote, const json_t *lease, const char *member)
{
	struct str spent = cell_dollars(remote, lease, member), budget = cell_dollars(remote, lease, "maxSpend");

	if (!budget.n)
		return spent;
	if (!spent.n)
		spent = STR("-");
	return str_format(&remote->arena, "%.*s/%.*s", STR_ARG(spent), STR_ARG(budget));
}

struct str cell_lease_forecast(struct remote *remote, const json_t *lease, const char *member)
{
	struct str state = cell_text(remote, lease, "costState");

	if (!state.n)
		return cell_dollars(remote, lease, member);
	return str_eq(state, STR("final")) || str_eq(state, STR("amended")) ? STR("final") : STR("so far");
}

struct str cell_lease_coming_end(struct remote *remote, const json_t *lease, const char *member)
{
	return json_is_string(json_object_get(lease, "endDate")) ? STR("") : cell_time(remote, lease, member);
}

struct str cell_lease_status(struct remote *remote, const json_t *lease, const char *member)
{
	struct str status = cell_text(remote, lease, member), by = cell_text(remote, lease, "deniedBy");

	if (json_is_string(json_object_get(lease, "queuedSince")))
		return STR("InLine");
	return by.n && str_eq_nocase(by, cell_text(remote, lease, "userEmail")) ? STR("Withdrawn") : status;
}

struct str cell_lease_line(struct remote *remote, const json_t *lease, const char *member)
{
	struct str place = cell_text(remote, lease, member), about = cell_time(remote, lease, "queueEstimate");

	if (!json_is_string(json_object_get(lease, "queuedSince")))
		return STR("");
	if (!place.n)
		return STR("waits for a free account");
	return str_format(&remote->arena, "place %.*s%s%.*s", STR_ARG(place), about.n ? ", about " : "",
	                  STR_ARG(about));
}

/* --- accounts --- */

struct str cell_account_rest(struct remote *remote, const json_t *account, const char *member)
{
	struct str until = cell_due(remote, account, member);

	if (!until.n && str_eq(cell_text(remote, account, "phase"), STR("Cooldown")))
		return STR("by hand");
	return until;
}

struct str cell_account_report(struct remote *remote, const json_t *account, const char *member)
{
	const json_t *report = json_object_get(account, member);

	if (!json_is_object(report))
		return STR("");
	return str_format(&remote->arena,
	                  "%" PRId64 "; %" PRId64 " could not be, %" PRId64 " were to stay (exit code %" PRId64 ")",
	                  member_number(report, "removed"), member_number(report, "failed"),
	                  member_number(report, "filtered"), member_number(report, "exitCode"));
}

static void print_resources(struct remote *remote, const json_t *list, const char *title)
{
	size_t count = json_array_size(list);

	if (count)
		fprintf(remote->io->out, "\n%s\n", title);
	for (size_t i = 0; i < count && i < RESOURCES_MOST; i++) {
		struct str name = utf8_line(&remote->arena, str_from(json_string_value(json_array_get(list, i))),
		                            RESOURCE_MAX);

		fprintf(remote->io->out, "  %.*s\n", STR_ARG(name));
	}
	if (count > RESOURCES_MOST)
		fprintf(remote->io->out, "  and %zu more: see --json\n", count - RESOURCES_MOST);
}

void print_account_report(struct remote *remote, json_t *account)
{
	const json_t *report = json_object_get(account, "lastCleanup");

	print_resources(remote, json_object_get(report, "removedResources"), "Removed by the last cleanup:");
	print_resources(remote, json_object_get(report, "keptResources"), "Left by it:");
}

/* --- holds --- */

struct str cell_hold_due(struct remote *remote, const json_t *hold, const char *member)
{
	int64_t sec = json_integer_value(json_object_get(hold, member));

	if (!sec)
		return json_is_true(json_object_get(hold, "locks")) ? STR("after a cleanup") : STR("by a person");
	return show_relative(&remote->arena, sec - wall_sec(clock_now(remote->io->clock)));
}

struct str cell_hold_end(struct remote *remote, const json_t *hold, const char *member UNUSED)
{
	if (json_is_integer(json_object_get(hold, "closed_at")))
		return cell_text(remote, hold, "state");
	return cell_hold_due(remote, hold, "due_at");
}

struct str cell_hold_person(struct remote *remote, const json_t *hold, const char *member UNUSED)
{
	bool is_timed = json_is_integer(json_object_get(hold, "due_at"));
	bool is_closed = json_is_integer(json_object_get(hold, "closed_at"));

	return is_timed || is_closed ? STR("") : cell_hold_due(remote, hold, "due_at");
}

void print_removal(struct remote *remote, json_t *document)
{
	const json_t *against = json_object_get(document, "against");
	bool          is_safe = json_is_true(json_object_get(document, "safe"));

	fprintf(remote->io->out, "%s\n", is_safe ? "yes: nothing would be stranded" : "no:");
	for (size_t i = 0; i < json_array_size(against); i++)
		fprintf(remote->io->out, "  %s\n", json_string_value(json_array_get(against, i)));
	if (json_is_integer(json_object_get(document, "last_due_at"))) {
		struct str due = cell_hold_due(remote, document, "last_due_at");

		fprintf(remote->io->out, "  the last of them is due %.*s\n", STR_ARG(due));
	}
}

/* --- doctor --- */

/* Not a finding of the comparison, but what somebody who runs it wants to know first. */
void print_paused_claims(struct remote *remote)
{
	struct remote_request       req = { .method = "GET", .path = STR("/admin/claims"), .scope = REMOTE_ADMIN };
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;

	if (remote_send(remote, &req, &reply, NULL) == RC_OK && remote_is_success(&reply) &&
	    remote_json(&reply, &document, NULL) == RC_OK && json_is_true(json_object_get(document, "paused")))
		fprintf(remote->io->out, "claims are paused: no sandbox is handed out (leasehold claims show)\n");
}

void print_doctor(struct remote *remote, json_t *document)
{
	const json_t *findings = json_object_get(document, "findings");
	int64_t       found = member_number(document, "found");

	fprintf(remote->io->out,
	        "%" PRId64 " accounts and %" PRId64 " open holds checked: ", member_number(document, "accounts"),
	        member_number(document, "holds"));
	if (found)
		fprintf(remote->io->out, "%" PRId64 " found\n", found);
	else
		fprintf(remote->io->out, "nothing is wrong\n");
	for (size_t i = 0; i < json_array_size(findings); i++) {
		const json_t *finding = json_array_get(findings, i);
		struct str    kind = cell_text(remote, finding, "kind"), text = cell_text(remote, finding, "text");
		bool          can_be_healed = json_is_true(json_object_get(finding, "can_be_healed"));
		const char   *outcome = can_be_healed ? "--fix repairs it" : "needs a person";

		if (json_is_true(json_object_get(finding, "healed")))
			outcome = "repaired";
		fprintf(remote->io->out, "  %-15.*s %.*s [%s]\n", STR_ARG(kind), STR_ARG(text), outcome);
	}
}

int exit_code_of_doctor(const json_t *document)
{
	int64_t found, healed;

	if (!json_get_number(document, "found", 0, &found) || !json_get_number(document, "healed", 0, &healed))
		return CLI_EXIT_FOUND;
	return found > healed ? CLI_EXIT_FOUND : CLI_EXIT_OK;
}

static void print_detail(struct remote *remote, const json_t *row, const char *member, const char *before)
{
	struct str shown = cell_text(remote, row, member);

	if (!json_is_null(json_object_get(row, member)))
		fprintf(remote->io->out, "            %s%.*s\n", before, STR_ARG(shown));
}

void print_aws_probe(struct remote *remote, json_t *document)
{
	const json_t *rows = json_object_get(document, "rows");
	int64_t       failed = member_number(document, "failed");

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		struct str    permission = cell_text(remote, row, "permission"), as = cell_text(remote, row, "as");
		struct str    verdict = cell_text(remote, row, "verdict");

		fprintf(remote->io->out, "%-11.*s %-48.*s as %.*s%s\n", STR_ARG(verdict), STR_ARG(permission),
		        STR_ARG(as), json_is_true(json_object_get(row, "needed")) ? "" : " (not needed to start)");
		print_detail(remote, row, "text", "");
		print_detail(remote, row, "change", "to do: ");
	}
	if (failed)
		fprintf(remote->io->out, "%" PRId64 " of %zu failed\n", failed, json_array_size(rows));
	else
		fprintf(remote->io->out, "nothing failed\n");
}

/* --- jobs, queues, sagas --- */

struct str cell_job_state(struct remote *remote UNUSED, const json_t *job, const char *member UNUSED)
{
	if (json_is_true(json_object_get(job, "running")))
		return STR("running");
	return json_is_true(json_object_get(job, "paused")) ? STR("paused") : STR("waiting");
}

struct str cell_queue_tries(struct remote *remote, const json_t *queue, const char *member)
{
	if (json_integer_value(json_object_get(queue, member)) >= TRIES_WITHOUT_END)
		return STR("no limit");
	return cell_text(remote, queue, member);
}

struct str cell_saga_step(struct remote *remote, const json_t *saga, const char *member)
{
	struct str name = cell_text(remote, saga, member);

	return str_format(&remote->arena, "%" PRId64 "/%" PRId64 " %.*s", member_number(saga, "step"),
	                  member_number(saga, "step_count"), STR_ARG(name));
}

/* A record, and its steps as a table below it. */
void print_saga(struct remote *remote, json_t *saga)
{
	static const struct column columns[] = {
		{ "STEP", "number" }, { "NAME", "name" }, { "MARK", "mark" }, { NULL }
	};
	CLEANUP(json_freep) json_t *steps = json_incref(json_object_get(saga, "steps"));

	(void)json_object_del(saga, "steps"); /* not there: nothing to show below */
	show_record(remote->io->out, &remote->arena, saga, clock_now(remote->io->clock), remote->is_coloured);
	if (!json_array_size(steps))
		return;
	for (size_t i = 0; i < json_array_size(steps); i++)
		(void)json_object_set_new(json_array_get(steps, i), "number", json_integer((json_int_t)i + 1));
	fputc('\n', remote->io->out);
	cells_print_items(remote, columns, steps, remote->is_coloured);
}

/* --- statements --- */

static void print_costs(struct remote *remote, const json_t *rows, const char *heading, const char *member)
{
	struct column columns[] = { { heading, member }, { "COST", "usd", .cell = cell_dollars }, { NULL } };

	if (!json_array_size(rows))
		return;
	fputc('\n', remote->io->out);
	cells_print_items(remote, columns, rows, remote->is_coloured);
}

void print_statement_rows(struct remote *remote, json_t *statement)
{
	print_costs(remote, json_object_get(statement, "rows"), "SERVICE", "service");
}

void print_spend_rows(struct remote *remote, json_t *spend)
{
	print_statement_rows(remote, spend);
	print_costs(remote, json_object_get(spend, "days"), "DAY (UTC)", "from");
}

/* --- documents --- */

struct str cell_policy_keys(struct remote *remote, const json_t *edit, const char *member)
{
	struct str all = STR("");
	json_t    *change;
	size_t     i;

	json_array_foreach(json_object_get(edit, member), i, change)
	{
		struct str key;

		if (json_get_text(change, "key", &key))
			all = str_format(&remote->arena, "%.*s%s%.*s", STR_ARG(all), all.n ? ", " : "", STR_ARG(key));
	}
	return all;
}
