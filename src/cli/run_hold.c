/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_hold.c - the "hold" commands: why accounts rest, and what a person does about it.
 *
 * The server drains a page at a time; "drain" asks until there is none left. What is handed over is printed as it is closed, so that a
 * run that breaks off has shown all that another system has to take.
 */
#include "cli/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/card.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/show.h"

enum { BODY_MAX = 16384, PAGES_MAX = 10000, HOURS_MAX = 87600 };

/* --- cells --- */

static struct str due_cell(struct remote *remote, const json_t *hold, const char *member)
{
	int64_t sec = json_integer_value(json_object_get(hold, member));

	if (!sec)
		return json_is_true(json_object_get(hold, "locks")) ? STR("after a cleanup") : STR("by a person");
	return show_relative(&remote->arena, sec - wall_sec(clock_now(remote->io->clock)));
}

/* Of a closed one its end. */
static struct str end_cell(struct remote *remote, const json_t *hold, const char *member)
{
	(void)member;
	if (json_is_integer(json_object_get(hold, "closed_at")))
		return list_text(remote, hold, "state");
	return due_cell(remote, hold, "due_at");
}

/* Of an open one without a due time: who ends it. */
static struct str person_cell(struct remote *remote, const json_t *hold, const char *member)
{
	bool is_timed = json_is_integer(json_object_get(hold, "due_at"));
	bool is_closed = json_is_integer(json_object_get(hold, "closed_at"));

	(void)member;
	return is_timed || is_closed ? STR("") : due_cell(remote, hold, "due_at");
}

static const struct list_column columns[] = {
	{ "HOLD", list_text, "id", 26 },       { "REASON", list_text, "reason", 14 }, { "ENDS", end_cell, NULL, 15 },
	{ "MADE", list_age, "created_at", 5 }, { "BY", list_text, "created_by", 14 }, { "WHY", list_text, "note", 20 },
};

int run_hold_list(struct remote *remote)
{
	struct list holds = { .path = "/ops/holds",
		              .items = "holds",
		              .columns = columns,
		              .column_count = ARRAY_LEN(columns),
		              .has_pages = true };

	if (remote->args->operand_count)
		holds.path = ask_path(remote, "/ops/holds?account=", "").p;
	return list_run(remote, &holds);
}

static void print_hold(struct remote *remote, const json_t *hold)
{
	static const struct card_line lines[] = {
		{ "Hold", list_text, "id" },
		{ "Account", list_text, "account_id" },
		{ "For", list_text, "reason" },
		{ "State", list_text, "state" },
		{ "Mode", list_text, "mode" },
		{ "Made", list_text, "created_at" },
		{ "Due", list_text, "due_at" },
		{ "Ends", person_cell, NULL },
		{ "By", list_text, "created_by" },
		{ "Why", list_text, "note" },
		{ "Schedule", list_text, "schedule" },
		{ "Event", list_text, "source_event" },
		{ "Lease", list_text, "lease_uuid" },
		{ "Placement", list_text, "placement" },
		{ "Last error", list_text, "last_error" },
		{ "Closed", list_text, "closed_at" },
		{ "Closed by", list_text, "closed_by" },
		{ "Closed because", list_text, "closed_why" },
	};

	card_print(remote, hold, lines, ARRAY_LEN(lines));
}

static int send_and_print(struct remote *remote, const struct remote_request *req)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	int                         code = remote_call(remote, req, &reply, &document);

	if (code != CLI_EXIT_OK)
		return code;
	if (remote->is_json)
		remote_print_json(remote, &reply);
	else
		print_hold(remote, document);
	return CLI_EXIT_OK;
}

int run_hold_show(struct remote *remote)
{
	return send_and_print(remote, &(struct remote_request){ .method = "GET",
	                                                        .path = ask_path(remote, "/ops/holds/", ""),
	                                                        .scope = REMOTE_ADMIN });
}

/* --- orders --- */

static void put_option(const struct remote *remote, struct json_out *o, enum cli_option_id id, const char *name)
{
	if (remote->args->values[id])
		json_put_str(o, name, str_from(remote->args->values[id]));
}

/* Refused here, where they have the names that the person typed. */
static enum rc check_words(const struct remote *remote, struct err *e)
{
	const char *until = remote->args->values[CLI_OPTION_UNTIL];
	struct str  reason;
	int64_t     sec;

	if (until && !iso_time_parse(str_from(until), &sec))
		return err_set(e, RC_INVALID, "--until must be a time such as 2026-11-15T18:03:43Z, not '%s'", until);
	if (remote->args->command->needed & (UINT64_C(1) << CLI_OPTION_REASON))
		return ask_needed(remote, CLI_OPTION_REASON, &reason, e);
	return RC_OK;
}

/* What can be said with every order: account, until when, why and who. */
static enum rc write_body(struct remote *remote, bool has_account, struct str *ret, struct err *e)
{
	struct json_out o;
	struct buf      b;
	int64_t         hours = 0;
	enum rc         rc = ask_number(remote, CLI_OPTION_HOURS, 1, HOURS_MAX, 0, &hours, e);

	if (rc || (rc = check_words(remote, e)))
		return rc;
	buf_init(&b, BODY_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	if (has_account)
		json_put_str(&o, "account", str_from(remote->args->operands[0]));
	if (hours)
		json_put_int(&o, "hours", hours);
	put_option(remote, &o, CLI_OPTION_UNTIL, "due_at");
	put_option(remote, &o, CLI_OPTION_REASON, "reason");
	put_option(remote, &o, CLI_OPTION_EMAIL, "by");
	json_close_object(&o);
	rc = b.is_full ? err_set(e, RC_INVALID, "the reason is too long") : RC_OK;
	*ret = str_dup(&remote->arena, buf_str(&b));
	buf_fini(&b);
	return rc;
}

static int give_order(struct remote *remote, struct str path, bool has_account)
{
	struct remote_request req = { .method = "POST", .path = path, .scope = REMOTE_ADMIN };
	struct err            e = { 0 };

	if (write_body(remote, has_account, &req.body, &e))
		return remote_misused(remote, e.msg);
	return send_and_print(remote, &req);
}

int run_hold_add(struct remote *remote)
{
	return give_order(remote, STR("/ops/holds"), true);
}

int run_hold_extend(struct remote *remote)
{
	if (!remote->args->values[CLI_OPTION_HOURS] == !remote->args->values[CLI_OPTION_UNTIL])
		return remote_misused(remote, "give either --hours N or --until TIME");
	return give_order(remote, ask_path(remote, "/ops/holds/", "/extend"), false);
}

int run_hold_release(struct remote *remote)
{
	return give_order(remote, ask_path(remote, "/ops/holds/", "/release"), false);
}

int run_hold_cancel(struct remote *remote)
{
	return give_order(remote, ask_path(remote, "/ops/holds/", "/cancel"), false);
}

int run_hold_bypass(struct remote *remote)
{
	struct remote_request req = { .method = "POST", .path = STR("/ops/holds/bypass"), .scope = REMOTE_ADMIN };
	struct err            e = { 0 };
	int                   code;

	if (write_body(remote, true, &req.body, &e))
		return remote_misused(remote, e.msg);
	code = remote_run(remote, &req);
	if (code == CLI_EXIT_OK && !remote->is_json)
		fprintf(remote->io->err,
		        "The next cleanup of the account is not followed by a rest; the one after it is.\n");
	return code;
}

/* --- removal --- */

int run_hold_safe_to_remove(struct remote *remote)
{
	struct remote_request       req = { .method = "GET",
		                            .path = STR("/ops/holds/safe-to-remove"),
		                            .scope = REMOTE_ADMIN };
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	int                         code = remote_call(remote, &req, &reply, &document);
	const json_t               *against = json_object_get(document, "against");
	bool                        is_safe = json_is_true(json_object_get(document, "safe"));

	if (code != CLI_EXIT_OK)
		return code;
	if (remote->is_json) {
		remote_print_json(remote, &reply);
	} else {
		fprintf(remote->io->out, "%s\n", is_safe ? "yes: nothing would be stranded" : "no:");
		for (size_t i = 0; i < json_array_size(against); i++)
			fprintf(remote->io->out, "  %s\n", json_string_value(json_array_get(against, i)));
		if (json_is_integer(json_object_get(document, "last_due_at")))
			fprintf(remote->io->out, "  the last of them is due %.*s\n",
			        STR_ARG(due_cell(remote, document, "last_due_at")));
	}
	return is_safe ? CLI_EXIT_OK : CLI_EXIT_FOUND;
}

struct drain {
	bool         is_csv, applies;
	struct str   cursor;
	struct table table;
	int64_t      done, refused, count;
};

static struct str drain_body(struct remote *remote, const struct drain *d)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, BODY_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "mode", str_from(remote->args->operands[0]));
	put_option(remote, &o, CLI_OPTION_REASON, "reason");
	put_option(remote, &o, CLI_OPTION_EMAIL, "by");
	json_put_bool(&o, "apply", d->applies);
	json_close_object(&o);
	text = str_dup(&remote->arena, buf_str(&b));
	buf_fini(&b);
	return text;
}

/* Nothing in these can have a comma or a quotation mark: ids, names and times of ours. */
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

static void take_holds(struct remote *remote, struct drain *d, const json_t *document)
{
	const json_t *holds = json_object_get(document, "holds");

	for (size_t i = 0; i < json_array_size(holds); i++) {
		const json_t     *hold = json_array_get(holds, i);
		struct table_row *row;

		d->count++;
		if (d->is_csv)
			print_csv(remote, hold);
		if (d->is_csv || remote->is_json)
			continue;
		row = table_add_row(&d->table);
		row->cells[0] = list_text(remote, hold, "account_id");
		row->cells[1] = list_text(remote, hold, "reason");
		row->cells[2] = due_cell(remote, hold, "due_at");
		row->cells[3] = list_text(remote, hold, "schedule");
	}
}

static int drain_page(struct remote *remote, struct drain *d)
{
	struct remote_request       req = { .method = "POST", .scope = REMOTE_ADMIN, .body = drain_body(remote, d) };
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	int64_t                     done = 0, refused = 0;
	struct str                  cursor;
	int                         code;

	req.path = ask_query(remote, "/ops/holds/drain", NULL, 0, 100, d->cursor);
	code = remote_call(remote, &req, &reply, &document);
	if (code != CLI_EXIT_OK)
		return code;
	if (!json_get_number(document, "done", 0, &done) || !json_get_number(document, "refused", 0, &refused) ||
	    !json_get_text(document, "cursor", &cursor))
		cursor = STR("");
	if (remote->is_json)
		remote_print_json(remote, &reply);
	take_holds(remote, d, document);
	d->done += done;
	d->refused += refused;
	d->cursor = str_dup(&remote->arena, cursor);
	return CLI_EXIT_OK;
}

static void sum_up(const struct remote *remote, const struct drain *d)
{
	if (d->applies)
		fprintf(remote->io->err, "%" PRId64 " closed, %" PRId64 " refused\n", d->done, d->refused);
	else
		fprintf(remote->io->err, "%" PRId64 " holds; nothing was changed, --yes does it\n", d->count);
}

int run_hold_drain(struct remote *remote)
{
	static const char *const headings[] = { "ACCOUNT", "REASON", "DUE", "SCHEDULE" };
	struct drain             d = { .is_csv = remote->args->values[CLI_OPTION_CSV] && !remote->is_json,
		                       .applies = remote->args->values[CLI_OPTION_YES] != NULL };
	struct err               e = { 0 };
	struct str               reason;
	int                      code, pages = 0;

	if (d.applies && ask_needed(remote, CLI_OPTION_REASON, &reason, &e))
		return remote_misused(remote, e.msg);
	table_init(&d.table, &remote->arena, headings, ARRAY_LEN(headings));
	if (d.is_csv)
		fprintf(remote->io->out, "account,hold,schedule,reason,created,due\n");
	do {
		code = drain_page(remote, &d);
	} while (code == CLI_EXIT_OK && d.cursor.n && ++pages < PAGES_MAX);
	if (!d.is_csv && !remote->is_json && d.count)
		table_print(&d.table, remote->io->out, remote->is_coloured);
	sum_up(remote, &d);
	return code == CLI_EXIT_OK && d.refused ? CLI_EXIT_REFUSED : code;
}
