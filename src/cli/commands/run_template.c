/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_template.c - the "template" commands.
 *
 * The server replaces a template as a whole. So a change reads it, puts what was given over it and sends all of it
 * back: what the server keeps for itself (uuid, the blueprint's name) is left out, as it would be refused.
 */

#include "cli/commands/run.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { AMOUNT_MOST = 1000000000 };

/* --- what was given --- */

/* Members of the other object go over those of the template; null takes one away. */
static void lay_over(json_t *template, json_t *other)
{
	const char *name;
	json_t     *value;

	json_object_foreach(other, name, value)
	{
		if (json_is_null(value))
			(void)json_object_del(template, name); /* not there: nothing to take away */
		else
			(void)json_object_set(template, name, value); /* fails only for what is no object */
	}
}

enum kind { TEXT, AMOUNT, YES_NO };

static const struct member {
	enum cli_option_id option;
	enum kind          kind;
	const char        *name;
} members[] = {
	{ CLI_OPTION_DESCRIPTION, TEXT, "description" },      { CLI_OPTION_VISIBILITY, TEXT, "visibility" },
	{ CLI_OPTION_COST_GROUP, TEXT, "costReportGroup" },   { CLI_OPTION_MAX_SPEND, AMOUNT, "maxSpend" },
	{ CLI_OPTION_HOURS, AMOUNT, "leaseDurationInHours" }, { CLI_OPTION_APPROVAL, YES_NO, "requiresApproval" },
};

/* What was typed for a member; "none" is null, which takes it away. */
static enum rc read_member(const struct member *m, const char *typed, json_t **ret, struct err *e)
{
	const char *option = cli_options[m->option].name;
	bool        is_yes = strcmp(typed, "yes") == 0;
	char       *end;
	double      amount;

	if (m->kind == YES_NO) {
		*ret = json_boolean(is_yes);
		return is_yes || strcmp(typed, "no") == 0 ? RC_OK
		                                          : err_set(e, RC_INVALID, "%s must be yes or no", option);
	}
	*ret = strcmp(typed, "none") == 0 ? json_null() : json_string(typed);
	if (!*ret)
		return err_set(e, RC_INVALID, "%s must be UTF-8", option);
	if (m->kind == TEXT || json_is_null(*ret))
		return RC_OK;
	json_decref(*ret);
	*ret = NULL;
	amount = strtod(typed, &end);
	if (end == typed || *end || !isfinite(amount) || amount <= 0 || amount > AMOUNT_MOST)
		return err_set(e, RC_INVALID, "%s must be a number above 0 such as 50 or 12.5, or none", option);
	*ret = amount == floor(amount) ? json_integer((json_int_t)amount) : json_real(amount);
	return RC_OK;
}

/* The file's members, and the options over them; *ret is yours, also after an error. */
static enum rc read_given(struct remote *remote, json_t **ret, struct err *e)
{
	const char *path = remote->args->values[CLI_OPTION_BODY];
	struct str  text = STR("{}");
	enum rc     rc = path ? settings_read_file(remote->io, path, &remote->arena, &text, e) : RC_OK;

	if (rc)
		return rc;
	if (json_parse(text, ret, e))
		return err_wrap(e, RC_INVALID, "%s is not JSON", path);
	if (!json_is_object(*ret))
		return err_set(e, RC_INVALID, "%s must be an object: {\"name\": ..., \"maxSpend\": ...}", path);
	for (size_t i = 0; i < ARRAY_LEN(members) && !rc; i++) {
		const char *typed = remote->args->values[members[i].option];
		json_t     *value = NULL;

		if (!typed)
			continue;
		rc = read_member(&members[i], typed, &value, e);
		if (value)
			(void)json_object_set_new(*ret, members[i].name, value); /* fails only for what is no object */
	}
	return rc;
}

/* Send the template, show what the server made of it. */
static int send_template(struct remote *remote, const char *method, struct str path, const json_t *template)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct remote_request              req = { .method = method, .path = path, .scope = REMOTE_PERSON };
	int                                code;

	req.body = json_dump(&remote->arena, template);
	code = remote_call(remote, &req, &answer);
	return code == CLI_EXIT_OK ? call_print(remote, &calls[CLI_COMMAND_TEMPLATE_SHOW], &answer) : code;
}

/* --- changing --- */

/* The template that the first operand names, by name or uuid; and its own path. */
static int get_template(struct remote *remote, struct answer *ret, struct str *ret_path)
{
	struct str named = compose_path(remote, "/leaseTemplates/{}", str_from(remote->args->operands[0]));
	int        code = remote_get(remote, REMOTE_PERSON, named, ret);

	*ret_path = compose_path(remote, "/leaseTemplates/{}", cell_text(remote, ret->data, "uuid"));
	return code;
}

int run_template_create(struct remote *remote)
{
	CLEANUP(json_freep) json_t *template = json_object(), *given = NULL;
	struct err e = { 0 };

	if (read_given(remote, &given, &e))
		return remote_fail(remote, &e);
	(void)json_object_set_new(template, "requiresApproval", json_true()); /* unless something else is given */
	lay_over(template, given);
	if (remote->args->operand_count &&
	    json_object_set_new(template, "name", json_string(remote->args->operands[0])))
		return remote_misused(remote, "NAME must be UTF-8");
	if (!json_object_get(template, "name"))
		return remote_misused(remote, "a template needs a name: leasehold template create NAME, or \"name\" in "
		                              "the file of --body");
	return send_template(remote, "POST", STR("/leaseTemplates"), template);
}

int run_template_change(struct remote *remote)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	CLEANUP(json_freep) json_t        *given = NULL;
	struct err                         e = { 0 };
	struct str                         path;
	int                                code;

	if (read_given(remote, &given, &e))
		return remote_fail(remote, &e);
	if (!json_object_size(given))
		return remote_misused(remote, "nothing to change: give --body, --description, --max-spend, --hours, "
		                              "--approval, --visibility or --cost-group");
	if ((code = get_template(remote, &answer, &path)) != CLI_EXIT_OK)
		return code;
	lay_over(answer.data, given);
	(void)json_object_del(answer.data, "uuid");          /* the server's own; */
	(void)json_object_del(answer.data, "blueprintName"); /* not there: fine */
	return send_template(remote, "PUT", path, answer.data);
}

int run_template_delete(struct remote *remote)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL }, gone = { .json = NULL };
	struct remote_request              req = { .method = "DELETE", .scope = REMOTE_PERSON };
	struct str                         name;
	int                                code = get_template(remote, &answer, &req.path);

	if (code != CLI_EXIT_OK || (code = remote_call(remote, &req, &gone)) != CLI_EXIT_OK)
		return code;
	name = cell_text(remote, answer.data, "name");
	if (remote->is_json)
		remote_print_json(remote, &gone.reply);
	else
		fprintf(remote->io->out, "Template %.*s is gone; leases that were made from it stay.\n", STR_ARG(name));
	return CLI_EXIT_OK;
}
