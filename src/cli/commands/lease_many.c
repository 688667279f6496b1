/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_many.c - approve, deny or end one lease, or many of them.
 *
 * Which ones is decided first, from one look at all leases, and confirmed unless they were named; then each is a call
 * of its own.
 */
#include "cli/commands/run.h"

#include "base/json.h"

/* By command: which leases --all means, and the words for it. */
static const struct action {
	enum cli_command_id command;
	const char         *statuses, *verb, *done;
} actions[] = {
	{ CLI_COMMAND_LEASE_APPROVE, "PendingApproval", "approve", "approved" },
	{ CLI_COMMAND_LEASE_DENY, "PendingApproval", "deny", "denied" },
	{ CLI_COMMAND_LEASE_TERMINATE, "Active Frozen Provisioning", "end", "ended" },
};

/* --- which ones --- */

struct choice {
	struct many   many;
	const json_t *leases; /* all that can be seen */
	json_t       *chosen; /* borrows from them */
};

static int load_leases(struct remote *remote, json_t *ret)
{
	struct str                                user = str_from(remote->args->values[CLI_OPTION_USER]);
	CLEANUP(call_pages_end) struct call_pages pages = lease_pages(remote, user);
	json_t                                   *leases;

	while (call_next(remote, &pages, &leases))
		(void)json_array_extend(ret, leases); /* fails only for what is no list */
	return pages.code;
}

/* The one whose uuid begins or ends with what was typed. */
static int choose_typed(struct many *m, struct str typed)
{
	struct choice *c = CONTAINER_OF(m, struct choice, many);
	json_t        *found = NULL;

	typed = str_trim(typed);
	for (size_t i = 0; i < json_array_size(c->leases); i++) {
		json_t    *one = json_array_get(c->leases, i);
		struct str uuid = cell_text(m->remote, one, "uuid");

		if (str_eq(cell_text(m->remote, one, "leaseId"), typed)) {
			found = one;
			break;
		}
		if (!id_fits(uuid, typed))
			continue;
		if (found)
			return remote_failed(m->remote, RC_INVALID,
			                     "several leases start or end with %.*s: nothing was done", STR_ARG(typed));
		found = one;
	}
	if (!found) {
		(void)remote_failed(m->remote, RC_NOT_FOUND,
		                    "no lease you can see starts or ends with %.*s: nothing was done", STR_ARG(typed));
		return CLI_EXIT_NOT_FOUND;
	}
	return json_array_append(c->chosen, found) ? CLI_EXIT_REFUSED : CLI_EXIT_OK;
}

static int choose_all(struct choice *c, const struct action *action)
{
	struct remote *remote = c->many.remote;
	struct str template = str_from(remote->args->values[CLI_OPTION_TEMPLATE]);

	for (size_t i = 0; i < json_array_size(c->leases); i++) {
		json_t *one = json_array_get(c->leases, i);

		if (!str_is_word_of(cell_text(remote, one, "status"), action->statuses) ||
		    (template.n && !str_eq_nocase(template, cell_text(remote, one, "originalLeaseTemplateName")) &&
		     !str_eq_nocase(template, cell_text(remote, one, "originalLeaseTemplateUuid"))))
			continue;
		if (json_array_append(c->chosen, one))
			return CLI_EXIT_REFUSED;
	}
	return many_agreed(remote,
	                   str_format(&remote->arena, "%s %zu leases", action->verb, json_array_size(c->chosen)));
}

static int choose(struct choice *c, const struct action *action)
{
	const struct cli_args *args = c->many.remote->args;
	const char            *file = args->values[CLI_OPTION_FROM];
	int                    code = CLI_EXIT_OK;

	if (args->values[CLI_OPTION_ALL])
		return choose_all(c, action);
	if (file)
		return many_lines(&c->many, file, choose_typed);
	for (size_t i = 0; code == CLI_EXIT_OK && i < args->operand_count; i++)
		code = choose_typed(&c->many, str_from(args->operands[i]));
	return code;
}

/* --- all of them --- */

static int send_chosen(struct choice *c)
{
	struct remote *remote = c->many.remote;
	int            code = CLI_EXIT_OK;

	for (size_t i = 0; code == CLI_EXIT_OK && i < json_array_size(c->chosen); i++) {
		const json_t *one = json_array_get(c->chosen, i);
		struct str    owner = cell_text(remote, one, "userEmail"), uuid = cell_text(remote, one, "uuid");

		code = many_send(&c->many, cell_text(remote, one, "leaseId"),
		                 str_format(&remote->arena, "%.*s of %.*s", STR_ARG(uuid), STR_ARG(owner)));
	}
	return code;
}

static const char *what_is_wrong(const struct cli_args *args)
{
	bool is_all = args->values[CLI_OPTION_ALL], has_file = args->values[CLI_OPTION_FROM];
	bool is_chosen = args->values[CLI_OPTION_TEMPLATE] || args->values[CLI_OPTION_USER];

	if ((args->operand_count > 0) + has_file + is_all != 1)
		return "give IDs, --from FILE or --all, one of them";
	if (is_chosen && !is_all)
		return "--template and --user choose among --all";
	return args->values[CLI_OPTION_WAIT] && args->operand_count != 1 ? "--wait is for one lease" : NULL;
}

int run_lease_many(struct remote *remote)
{
	CLEANUP(json_freep) json_t *leases = json_array();
	CLEANUP(json_freep) json_t *chosen = json_array();
	struct call                 row = call_row(remote);
	const struct action        *action = actions;
	struct choice               c = { { .remote = remote, .row = &row }, leases, chosen };
	const char                 *wrong = what_is_wrong(remote->args);
	struct err                  e = { 0 };
	int                         code;

	while (remote->args->command != &cli_commands[action->command])
		action++; /* run_lease_many() is in the rows of these only */
	if (wrong)
		return remote_misused(remote, wrong);
	if (remote->args->operand_count == 1)
		return call_run(remote, &row);
	if (compose_body(remote, row.body, &c.many.body, &e))
		return remote_fail(remote, &e);
	if ((code = load_leases(remote, leases)) != CLI_EXIT_OK || (code = choose(&c, action)) != CLI_EXIT_OK)
		return code;
	return many_end(&c.many, send_chosen(&c), action->done);
}
