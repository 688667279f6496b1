/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_lease.c - what the "lease" commands do beyond their rows in calls.c.
 *
 * Most answers to a change say little, so the lease is shown as it is afterwards, with what comes next.
 */
#include "cli/commands/run.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"

enum { HOURS_MOST = 87600, HOUR_SEC = 3600 };

/* What comes next, for people. */
static void print_hint(struct remote *remote, const json_t *lease)
{
	struct str id = cell_short(remote, lease, "uuid"), status = cell_text(remote, lease, "status");
	FILE      *to = remote->io->err;

	if (remote->is_json)
		return;
	if (json_is_string(json_object_get(lease, "queuedSince")))
		fprintf(to, "It is approved and waiting in line for a free account");
	else if (str_eq(status, STR("Provisioning")))
		fprintf(to, "The account is being set up");
	else if (str_eq(status, STR("PendingApproval")))
		fprintf(to, "It is waiting for a manager's approval");
	else
		return;
	fprintf(to, ". To wait until it can be used: leasehold lease wait %.*s\n", STR_ARG(id));
}

static int get_lease(struct remote *remote, struct str id, struct answer *ret)
{
	return remote_get(remote, REMOTE_PERSON, compose_path(remote, "/leases/{}", id), ret);
}

/* --- listing --- */

int run_lease_list(struct remote *remote)
{
	struct str          user = str_from(remote->args->values[CLI_OPTION_USER]);
	bool                is_mine = remote->args->values[CLI_OPTION_MINE] != NULL;
	struct call         row = call_row(remote);
	struct lease_caller caller;
	int                 code;

	if (is_mine && user.n)
		return remote_misused(remote, "give --mine or --user, not both");
	if (!user.n) {
		if ((code = lease_caller(remote, &caller)) != CLI_EXIT_OK)
			return code;
		if (is_mine && !caller.email.n)
			return remote_misused(remote, "the server does not say whose token this is: give --user EMAIL");
		user = is_mine || caller.is_only_user ? caller.email : STR("");
	}
	if (user.n)
		row.path = compose_path(remote, "/leases?userEmail={}", user).p;
	return call_run(remote, &row);
}

/* --- requesting one --- */

/* The server knows templates by name too, but a request needs the uuid. */
static int find_template(struct remote *remote, struct str named, struct str *ret)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	int                                code;

	*ret = named;
	if (named.n == UUID_LENGTH && id_may_be_uuid(named))
		return CLI_EXIT_OK;
	code = remote_get(remote, REMOTE_PERSON, compose_path(remote, "/leaseTemplates/{}", named), &answer);
	if (code == CLI_EXIT_OK)
		*ret = cell_text(remote, answer.data, "uuid");
	return code;
}

int run_lease_request(struct remote *remote)
{
	struct compose_field fields[] = { { "leaseTemplateUuid", VALUE_FIXED },
		                          { "comments", VALUE_FIXED,
		                            .text = remote->args->values[CLI_OPTION_COMMENTS] },
		                          { "userEmail", VALUE_TEXT, CLI_OPTION_FOR },
		                          { .name = NULL } };
	struct call          row = call_row(remote);
	struct err           e = { 0 };
	struct str           named, uuid;
	int                  code;

	if (option_needed(remote, CLI_OPTION_TEMPLATE, &named, &e))
		return remote_fail(remote, &e);
	if ((code = find_template(remote, named, &uuid)) != CLI_EXIT_OK)
		return code;
	fields[0].text = str_dup(&remote->arena, uuid).p;
	row.body = fields;
	return call_run(remote, &row);
}

/* --- after a change --- */

/* Wait until the account of a lease that has just ended is clean, then show the lease. One that has waited in line has
 * no account. Owners do not see accounts. */
static int wait_for_return(struct remote *remote, struct str id)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct lease_caller                caller;
	struct str                         account;
	int                                code = lease_caller(remote, &caller);

	if (code != CLI_EXIT_OK || (code = get_lease(remote, id, &answer)) != CLI_EXIT_OK)
		return code;
	account = cell_text(remote, answer.data, "awsAccountId");
	if (account.n && caller.sees_accounts)
		code = lease_wait_for_return(remote, account, cell_text(remote, answer.data, "uuid"));
	else if (account.n)
		fprintf(remote->io->err,
		        "It has ended. Its account is being emptied; only managers and admins can follow that.\n");
	call_print(remote, &calls[CLI_COMMAND_LEASE_SHOW], &answer);
	return code;
}

int finish_lease_request(struct remote *remote, const struct answer *answer)
{
	if (remote->args->values[CLI_OPTION_WAIT])
		return lease_wait(remote, cell_text(remote, answer->data, "leaseId"), STR("Active"));
	call_print(remote, &calls[CLI_COMMAND_LEASE_SHOW], answer);
	print_hint(remote, answer->data);
	return CLI_EXIT_OK;
}

int finish_lease(struct remote *remote, const struct answer *answer)
{
	CLEANUP(answer_free) struct answer now = { .json = NULL };
	int                                code;

	if (remote->args->values[CLI_OPTION_WAIT])
		return lease_wait(remote, answer->id, STR("Active"));
	if (remote->is_json)
		return call_print(remote, &calls[CLI_COMMAND_LEASE_SHOW], answer);
	if (json_is_string(json_object_get(answer->data, "note")))
		fprintf(remote->io->err, "Note: %s.\n", json_string_value(json_object_get(answer->data, "note")));
	code = get_lease(remote, answer->id, &now);
	return code == CLI_EXIT_OK ? finish_lease_request(remote, &now) : code;
}

int finish_lease_end(struct remote *remote, const struct answer *answer)
{
	bool waits = remote->args->values[CLI_OPTION_WAIT] != NULL;

	return waits ? wait_for_return(remote, answer->id) : finish_lease(remote, answer);
}

/* --- more time --- */

/* --until, as ISO 8601 or Unix seconds; must be in the future. */
static int read_until(const struct remote *remote, int64_t *ret)
{
	struct str typed = str_trim(str_from(remote->args->values[CLI_OPTION_UNTIL]));

	if (!iso_time_parse(typed, ret) && !str_to_int(typed, 1, INT32_MAX, ret))
		return remote_misused(remote, "--until must be a time such as 2026-11-15T18:03:43Z, or Unix seconds");
	if (*ret <= wall_sec(clock_now(remote->io->clock)))
		return remote_misused(remote, "--until is in the past; to end a lease: leasehold lease terminate");
	return CLI_EXIT_OK;
}

/* That many hours after its present end. */
static int find_later_end(struct remote *remote, struct str id, int64_t hours, int64_t *ret)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct str                         end;
	int                                code = get_lease(remote, id, &answer);

	if (code != CLI_EXIT_OK)
		return code;
	if (!json_get_text(answer.data, "expirationDate", &end) || !iso_time_parse(end, ret))
		return remote_misused(remote, "the lease has no end to add hours to: give --until TIME");
	*ret += hours * HOUR_SEC;
	return CLI_EXIT_OK;
}

int run_lease_extend(struct remote *remote)
{
	struct call          row = call_row(remote);
	char                 text[ISO_TIME_SIZE];
	struct compose_field fields[] = { { "expirationDate", VALUE_FIXED, .text = text }, { .name = NULL } };
	struct err           e = { 0 };
	struct str           id;
	int64_t              hours, end = 0;
	int                  code;

	if (!remote->args->values[CLI_OPTION_HOURS] == !remote->args->values[CLI_OPTION_UNTIL])
		return remote_misused(remote, "give either --hours N or --until TIME");
	if (option_number(remote, CLI_OPTION_HOURS, 1, HOURS_MOST, 0, &hours, &e))
		return remote_fail(remote, &e);
	if ((!hours && (code = read_until(remote, &end)) != CLI_EXIT_OK) ||
	    (code = lease_find(remote, str_from(remote->args->operands[0]), &id)) != CLI_EXIT_OK ||
	    (hours && (code = find_later_end(remote, id, hours, &end)) != CLI_EXIT_OK))
		return code;
	(void)iso_time(end, text);
	row.path = compose_path(remote, "/leases/{}", id).p;
	row.body = fields;
	return call_run(remote, &row);
}
