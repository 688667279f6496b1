/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_lease.c - the "lease" commands.
 *
 * Where the server answers a change with nothing, or with a status alone, the lease is asked for once more, so that a person sees what has
 * become of it; a script, with --json, gets the answer itself.
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
#include "cli/lease.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/show.h"

enum {
	UUID_LENGTH = 36,
	PAGE_MOST = 1000,
	BODY_MAX = 1 << 20 /* more than an argument can have, escaped */,
	HOURS_MOST = 87600,
	HOUR_SEC = 3600
};

/* --- how a lease looks --- */

/* "12.50/50.00"; without a budget "12.50". */
static struct str spent_cell(struct remote *remote, const json_t *lease, const char *member)
{
	struct str spent = card_dollars(remote, lease, member), budget = card_dollars(remote, lease, "maxSpend");

	if (!budget.n)
		return spent;
	return str_format(&remote->arena, "%.*s/%.*s", spent.n ? (int)spent.n : 1, spent.n ? spent.p : "-",
	                  STR_ARG(budget));
}

/* When it ends, or ended. */
static struct str end_cell(struct remote *remote, const json_t *lease, const char *member)
{
	return list_due(remote, lease, json_is_string(json_object_get(lease, "endDate")) ? "endDate" : member);
}

/* Of one that goes on. */
static struct str coming_end_cell(struct remote *remote, const json_t *lease, const char *member)
{
	return json_is_string(json_object_get(lease, "endDate")) ? STR("") : card_time(remote, lease, member);
}

/* "place 3, about 2026-11-15 18:03:43 (in 12 min)" */
static struct str line_cell(struct remote *remote, const json_t *lease, const char *member)
{
	struct str place = list_text(remote, lease, member), about = card_time(remote, lease, "queueEstimate");

	if (!json_is_string(json_object_get(lease, "queuedSince")))
		return STR("");
	if (!place.n)
		return STR("waits for a free account");
	return str_format(&remote->arena, "place %.*s%s%.*s", STR_ARG(place), about.n ? ", about " : "",
	                  STR_ARG(about));
}

void lease_print(struct remote *remote, const struct fetch_reply *reply, const json_t *document)
{
	static const struct card_line lines[] = {
		{ "Lease", list_text, "uuid" },
		{ "Owner", list_text, "userEmail" },
		{ "Status", list_text, "status" },
		{ "Line", line_cell, "queuePosition" },
		{ "Template", list_text, "originalLeaseTemplateName" },
		{ "Account", list_text, "awsAccountId" },
		{ "Credentials", list_text, "credentialsSecret" },
		{ "Spent/budget", spent_cell, "totalCostAccrued" },
		{ "Spending known up to", card_time, "costAsOf" },
		{ "Budget thresholds", card_thresholds, "budgetThresholds" },
		{ "Lasts", card_hours, "leaseDurationInHours" },
		{ "Time thresholds", card_thresholds, "durationThresholds" },
		{ "Requested", card_created, NULL },
		{ "Requested by", list_text, "createdBy" },
		{ "Comments", list_text, "comments" },
		{ "Approved by", list_text, "approvedBy" },
		{ "Denied by", list_text, "deniedBy" },
		{ "Reason", list_text, "denyReason" },
		{ "Started", card_time, "startDate" },
		{ "Ends", coming_end_cell, "expirationDate" },
		{ "Ended", card_time, "endDate" },
		{ "Ended by", list_text, "terminatedBy" },
		{ "Cost group", list_text, "costReportGroup" },
		{ "Blueprint", list_text, "blueprintName" },
		{ "API id", list_text, "leaseId" },
	};

	card_show(remote, reply, document, lines, ARRAY_LEN(lines));
}

/* What comes next, for people. */
static void print_hint(struct remote *remote, const json_t *lease)
{
	struct str id = list_short(remote, lease, "uuid"), status = list_text(remote, lease, "status");
	FILE      *to = remote->io->err;

	if (remote->is_json)
		return;
	if (str_eq(status, STR("Provisioning")))
		fprintf(to, "The account is being made ready");
	else if (!str_eq(status, STR("PendingApproval")))
		return;
	else if (json_is_string(json_object_get(lease, "queuedSince")))
		fprintf(to, "It is approved and waits in line for a free account");
	else
		fprintf(to, "It waits for approval by a manager");
	fprintf(to, ". To wait until it can be used: leasehold lease wait %.*s\n", STR_ARG(id));
}

/* --- looking --- */

int run_lease_list(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "ID", list_short, "uuid", 8 },
		{ "OWNER", list_text, "userEmail", 17 },
		{ "TEMPLATE", list_text, "originalLeaseTemplateName", 12 },
		{ "STATUS", list_text, "status", 18 },
		{ "ACCOUNT", list_text, "awsAccountId", 12 },
		{ "SPENT/BUDGET", spent_cell, "totalCostAccrued", 13 },
		{ "ENDS", end_cell, "expirationDate", 8 },
	};
	static const struct ask_filter filters[] = { { CLI_OPTION_STATUS, "status", NULL } };
	struct list                    leases = { .path = "/leases",
		                                  .items = "result",
		                                  .columns = columns,
		                                  .column_count = ARRAY_LEN(columns),
		                                  .filters = filters,
		                                  .filter_count = ARRAY_LEN(filters),
		                                  .is_api = true,
		                                  .page_most = PAGE_MOST };
	struct str                     user = str_from(remote->args->values[CLI_OPTION_USER]);
	bool                           is_mine = remote->args->values[CLI_OPTION_MINE] != NULL;
	struct lease_asker             asker;
	int                            code;

	if (is_mine && user.n)
		return remote_misused(remote, "give --mine or --user, not both");
	if (!user.n) {
		if ((code = lease_asker(remote, &asker)) != CLI_EXIT_OK)
			return code;
		if (is_mine && !asker.email.n)
			return remote_misused(remote, "the server does not say whose token this is: give --user EMAIL");
		user = is_mine || asker.is_only_user ? asker.email : STR("");
	}
	if (user.n)
		leases.path = ask_path_of(remote, "/leases?userEmail=", user, "").p;
	return list_run(remote, &leases);
}

/* Print the lease with this id of the API; with a hint when something was just done. */
static int show_lease(struct remote *remote, struct str id, bool has_hint)
{
	struct remote_request       req = { .method = "GET",
		                            .path = ask_path_of(remote, "/leases/", id, ""),
		                            .scope = REMOTE_PERSON };
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	int                         code = remote_call(remote, &req, &reply, &document);

	if (code != CLI_EXIT_OK)
		return code;
	lease_print(remote, &reply, document);
	if (has_hint)
		print_hint(remote, json_object_get(document, "data"));
	return CLI_EXIT_OK;
}

int run_lease_show(struct remote *remote)
{
	struct str id;
	int        code = lease_find(remote, &id);

	return code == CLI_EXIT_OK ? show_lease(remote, id, false) : code;
}

int run_lease_wait(struct remote *remote)
{
	struct str id;
	int        code = lease_find(remote, &id);

	return code == CLI_EXIT_OK ? lease_wait(remote, id, STR("Active"), CLI_OPTION_WAIT) : code;
}

/* --- asking for one --- */

static bool is_uuid(struct str text)
{
	return text.n == UUID_LENGTH && text.p[8] == '-' && text.p[13] == '-' && text.p[18] == '-' && text.p[23] == '-';
}

/* The server knows templates by name too, but a request needs the uuid. */
static int find_template(struct remote *remote, struct str named, struct str *ret)
{
	struct remote_request       req = { .method = "GET",
		                            .path = ask_path_of(remote, "/leaseTemplates/", named, ""),
		                            .scope = REMOTE_PERSON };
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	int                         code;

	*ret = named;
	if (is_uuid(named))
		return CLI_EXIT_OK;
	code = remote_call(remote, &req, &reply, &document);
	if (code == CLI_EXIT_OK)
		*ret = list_text(remote, json_object_get(document, "data"), "uuid");
	return code;
}

static struct str request_body(struct remote *remote, struct str template)
{
	const char     *owner = remote->args->values[CLI_OPTION_FOR];
	struct json_out o;
	struct buf      b;
	struct str      body;

	buf_init(&b, BODY_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "leaseTemplateUuid", template);
	json_put_str(&o, "comments", str_from(remote->args->values[CLI_OPTION_COMMENTS]));
	if (owner)
		json_put_str(&o, "userEmail", str_from(owner));
	json_close_object(&o);
	body = str_dup(&remote->arena, buf_str(&b));
	buf_fini(&b);
	return body;
}

int run_lease_request(struct remote *remote)
{
	struct remote_request       req = { .method = "POST", .path = STR("/leases"), .scope = REMOTE_PERSON };
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	struct err                  e = { 0 };
	struct str template;
	int code;

	if (ask_needed(remote, CLI_OPTION_TEMPLATE, &template, &e))
		return remote_fail(remote, &e);
	if ((code = find_template(remote, template, &template)) != CLI_EXIT_OK)
		return code;
	req.body = request_body(remote, template);
	if ((code = remote_call(remote, &req, &reply, &document)) != CLI_EXIT_OK)
		return code;
	if (remote->args->values[CLI_OPTION_WAIT])
		return lease_wait(remote, list_text(remote, json_object_get(document, "data"), "leaseId"),
		                  STR("Active"), CLI_OPTION_WAIT);
	lease_print(remote, &reply, document);
	print_hint(remote, json_object_get(document, "data"));
	return CLI_EXIT_OK;
}

/* --- changing one --- */

/* The account of a lease that has just ended, until it is clean; then the lease once more. Only admins see accounts. */
static int wait_for_return(struct remote *remote, struct str id)
{
	struct remote_request       req = { .method = "GET",
		                            .path = ask_path_of(remote, "/leases/", id, ""),
		                            .scope = REMOTE_PERSON };
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	struct lease_asker          asker;
	const json_t               *lease;
	int                         code = lease_asker(remote, &asker);

	if (code != CLI_EXIT_OK || (code = remote_call(remote, &req, &reply, &document)) != CLI_EXIT_OK)
		return code;
	lease = json_object_get(document, "data");
	if (asker.is_admin)
		code = lease_wait_for_return(remote, list_text(remote, lease, "awsAccountId"),
		                             list_text(remote, lease, "uuid"));
	else
		fprintf(remote->io->err, "It has ended. Its account is being emptied; only admins can watch that.\n");
	lease_print(remote, &reply, document);
	return code;
}

/* Post to the lease that is meant, then show it, or with --wait what becomes of it. */
static int act(struct remote *remote, const char *action, struct str body, bool is_end)
{
	struct remote_request       req = { .method = "POST", .scope = REMOTE_PERSON, .body = body };
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	struct str                  id;
	int                         code = lease_find(remote, &id);

	if (code != CLI_EXIT_OK)
		return code;
	req.path = ask_path_of(remote, "/leases/", id, action);
	if ((code = remote_call(remote, &req, &reply, &document)) != CLI_EXIT_OK)
		return code;
	if (remote->args->values[CLI_OPTION_WAIT])
		return is_end ? wait_for_return(remote, id) : lease_wait(remote, id, STR("Active"), CLI_OPTION_WAIT);
	if (!remote->is_json)
		return show_lease(remote, id, true);
	remote_print_json(remote, &reply);
	return CLI_EXIT_OK;
}

int run_lease_approve(struct remote *remote)
{
	return act(remote, "/review", STR("{\"action\":\"Approve\"}"), false);
}

int run_lease_deny(struct remote *remote)
{
	struct json_out o;
	struct err      e = { 0 };
	struct str      reason;
	struct buf      b;
	int             code;

	if (ask_needed(remote, CLI_OPTION_REASON, &reason, &e))
		return remote_fail(remote, &e);
	buf_init(&b, BODY_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "action", STR("Deny"));
	json_put_str(&o, "reason", reason);
	json_close_object(&o);
	code = act(remote, "/review", buf_str(&b), false);
	buf_fini(&b);
	return code;
}

int run_lease_freeze(struct remote *remote)
{
	return act(remote, "/freeze", STR(""), false);
}

int run_lease_unfreeze(struct remote *remote)
{
	return act(remote, "/unfreeze", STR(""), false);
}

int run_lease_terminate(struct remote *remote)
{
	return act(remote, "/terminate", STR(""), true);
}

int run_lease_withdraw(struct remote *remote)
{
	return act(remote, "/withdraw", STR(""), false);
}

/* --- more time --- */

/* Its end as the server has it, in seconds; 0 in *ret: it has none. */
static int read_end(struct remote *remote, struct str id, int64_t *ret)
{
	struct remote_request       req = { .method = "GET",
		                            .path = ask_path_of(remote, "/leases/", id, ""),
		                            .scope = REMOTE_PERSON };
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	struct str                  end;
	int                         code = remote_call(remote, &req, &reply, &document);

	*ret = 0;
	if (code == CLI_EXIT_OK && json_get_text(json_object_get(document, "data"), "expirationDate", &end))
		if (!iso_time_parse(end, ret))
			*ret = 0;
	return code;
}

/* --until, as ISO 8601 or Unix seconds; must be to come. */
static enum rc read_until(const struct remote *remote, int64_t *ret, struct err *e)
{
	struct str typed = str_trim(str_from(remote->args->values[CLI_OPTION_UNTIL]));

	if (!iso_time_parse(typed, ret) && !str_to_int(typed, 1, INT32_MAX, ret))
		return err_set(e, RC_INVALID, "--until must be a time such as 2026-11-15T18:03:43Z, or Unix seconds");
	if (*ret <= wall_sec(clock_now(remote->io->clock)))
		return err_set(e, RC_INVALID, "--until is in the past; to end a lease: leasehold lease terminate");
	return RC_OK;
}

/* So many hours behind the end it has. */
static int find_later_end(struct remote *remote, struct str id, int64_t hours, int64_t *ret)
{
	int code = read_end(remote, id, ret);

	if (code != CLI_EXIT_OK)
		return code;
	if (*ret == 0)
		return remote_misused(remote, "the lease has no end to which hours could be added: give --until TIME");
	*ret += hours * HOUR_SEC;
	return CLI_EXIT_OK;
}

int run_lease_extend(struct remote *remote)
{
	const char *const          *values = remote->args->values;
	struct remote_request       req = { .method = "PATCH", .scope = REMOTE_PERSON };
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	char                        text[ISO_TIME_SIZE];
	struct err                  e = { 0 };
	struct str                  id;
	int64_t                     hours, end = 0;
	int                         code;

	if (!values[CLI_OPTION_HOURS] == !values[CLI_OPTION_UNTIL])
		return remote_misused(remote, "give --hours N or --until TIME, one of them");
	if (ask_number(remote, CLI_OPTION_HOURS, 1, HOURS_MOST, 0, &hours, &e) ||
	    (!hours && read_until(remote, &end, &e)))
		return remote_fail(remote, &e);
	if ((code = lease_find(remote, &id)) != CLI_EXIT_OK ||
	    (hours && (code = find_later_end(remote, id, hours, &end)) != CLI_EXIT_OK))
		return code;
	req.path = ask_path_of(remote, "/leases/", id, "");
	req.body = ask_body(remote, "expirationDate", iso_time(end, text));
	if ((code = remote_call(remote, &req, &reply, &document)) == CLI_EXIT_OK)
		lease_print(remote, &reply, document);
	return code;
}
