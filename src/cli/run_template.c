/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_template.c - the "template" commands.
 *
 * The server replaces a template as a whole. So a change reads it, puts what was given over it and sends all of it back: what the server
 * keeps for itself (uuid, the blueprint's name) is left out, as it would be refused.
 */
#include "cli/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/card.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/remote.h"

enum { PAGE_MOST = 1000, FILE_MAX = 65536, AMOUNT_MOST = 1000000000 };

/* --- looking --- */

int run_template_list(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "NAME", list_text, "name", 20 },
		{ "ID", list_text, "uuid", 36 },
		{ "APPROVAL", list_text, "requiresApproval", 8 },
		{ "BUDGET", card_dollars, "maxSpend", 10 },
		{ "LASTS", card_hours, "leaseDurationInHours", 9 },
		{ "VISIBLE", list_text, "visibility", 7 },
	};
	static const struct list templates = { .path = "/leaseTemplates",
		                               .items = "result",
		                               .columns = columns,
		                               .column_count = ARRAY_LEN(columns),
		                               .is_api = true,
		                               .page_most = PAGE_MOST };

	return list_run(remote, &templates);
}

static void print_template(struct remote *remote, const struct fetch_reply *reply, const json_t *document)
{
	static const struct card_line lines[] = {
		{ "Template", list_text, "name" },
		{ "ID", list_text, "uuid" },
		{ "Description", list_text, "description" },
		{ "Needs approval", list_text, "requiresApproval" },
		{ "Visible", list_text, "visibility" },
		{ "Budget", card_dollars, "maxSpend" },
		{ "Budget thresholds", card_thresholds, "budgetThresholds" },
		{ "Lasts", card_hours, "leaseDurationInHours" },
		{ "Time thresholds", card_thresholds, "durationThresholds" },
		{ "Cost group", list_text, "costReportGroup" },
		{ "Blueprint", list_text, "blueprintName" },
		{ "Made by", list_text, "createdBy" },
		{ "Made", card_created, NULL },
	};

	card_show(remote, reply, document, lines, ARRAY_LEN(lines));
}

/* The template that the first operand names; *ret is the answer, yours. */
static int get_template(struct remote *remote, struct fetch_reply *reply, json_t **ret)
{
	return remote_call(remote,
	                   &(struct remote_request){ .method = "GET",
	                                             .path = ask_path(remote, "/leaseTemplates/", ""),
	                                             .scope = REMOTE_PERSON },
	                   reply, ret);
}

int run_template_show(struct remote *remote)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	int                         code = get_template(remote, &reply, &document);

	if (code == CLI_EXIT_OK)
		print_template(remote, &reply, document);
	return code;
}

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

/* --body, at most FILE_MAX bytes. */
static enum rc read_body(struct remote *remote, const char *path, json_t **ret, struct err *e)
{
	bool    is_stdin = strcmp(path, "-") == 0;
	FILE   *file = is_stdin ? remote->io->in : fopen(path, "re");
	char   *text;
	size_t  n;
	enum rc rc;

	if (!file)
		return err_set(e, RC_INVALID, "%s: %s", path, strerror(errno));
	text = arena_alloc(&remote->arena, FILE_MAX + 1);
	n = fread(text, 1, FILE_MAX + 1, file);
	if (ferror(file))
		rc = err_set(e, RC_INVALID, "%s cannot be read", path);
	else if (n > FILE_MAX)
		rc = err_set(e, RC_INVALID, "%s: longer than %d bytes", path, FILE_MAX);
	else if ((rc = json_parse(str_of(text, n), ret, e)))
		rc = err_wrap(e, RC_INVALID, "%s is not JSON", path);
	else if (!json_is_object(*ret))
		rc = err_set(e, RC_INVALID, "%s must be an object: {\"name\": ..., \"maxSpend\": ...}", path);
	if (!is_stdin)
		(void)fclose(file); /* was only read */
	return rc;
}

/* "none" is null: lay_over() takes it away. */
static enum rc put_text(const struct remote *remote, json_t *given, enum cli_option_id id, const char *member,
                        struct err *e)
{
	const char *typed = remote->args->values[id];

	if (typed && json_object_set_new(given, member, strcmp(typed, "none") == 0 ? json_null() : json_string(typed)))
		return err_set(e, RC_INVALID, "%s must be UTF-8", cli_options[id].name);
	return RC_OK;
}

/* A number above 0, or "none". */
static enum rc put_amount(const struct remote *remote, json_t *given, enum cli_option_id id, const char *member,
                          struct err *e)
{
	const char *typed = remote->args->values[id];
	char       *end;
	double      amount;

	if (!typed || strcmp(typed, "none") == 0)
		return put_text(remote, given, id, member, e);
	amount = strtod(typed, &end);
	if (end == typed || *end || !isfinite(amount) || amount <= 0 || amount > AMOUNT_MOST)
		return err_set(e, RC_INVALID, "%s must be a number above 0 such as 50 or 12.5, or none",
		               cli_options[id].name);
	(void)json_object_set_new(given, member,
	                          amount == floor(amount) ? json_integer((json_int_t)amount) : json_real(amount));
	return RC_OK;
}

static enum rc put_approval(const struct remote *remote, json_t *given, struct err *e)
{
	const char *typed = remote->args->values[CLI_OPTION_APPROVAL];

	if (!typed)
		return RC_OK;
	if (strcmp(typed, "yes") != 0 && strcmp(typed, "no") != 0)
		return err_set(e, RC_INVALID, "--approval must be yes or no");
	(void)json_object_set_new(given, "requiresApproval", json_boolean(strcmp(typed, "yes") == 0));
	return RC_OK;
}

/* The file's members, and the options over them; *ret is yours, also after an error. */
static enum rc read_given(struct remote *remote, json_t **ret, struct err *e)
{
	const char *path = remote->args->values[CLI_OPTION_BODY];
	enum rc     rc;

	if (path && (rc = read_body(remote, path, ret, e)))
		return rc;
	if (!*ret)
		*ret = json_object();
	if ((rc = put_text(remote, *ret, CLI_OPTION_DESCRIPTION, "description", e)) ||
	    (rc = put_text(remote, *ret, CLI_OPTION_VISIBILITY, "visibility", e)) ||
	    (rc = put_text(remote, *ret, CLI_OPTION_COST_GROUP, "costReportGroup", e)) ||
	    (rc = put_amount(remote, *ret, CLI_OPTION_MAX_SPEND, "maxSpend", e)) ||
	    (rc = put_amount(remote, *ret, CLI_OPTION_HOURS, "leaseDurationInHours", e)))
		return rc;
	return put_approval(remote, *ret, e);
}

/* Send the template, show what the server made of it. */
static int send_template(struct remote *remote, struct remote_request *req, const json_t *template)
{
	CLEANUP(json_freep) json_t *document = NULL;
	char                       *text = json_dumps(template, JSON_COMPACT);
	struct fetch_reply          reply;
	int                         code;

	req->scope = REMOTE_PERSON;
	req->body = str_dup(&remote->arena, str_from(text));
	free(text);
	if ((code = remote_call(remote, req, &reply, &document)) == CLI_EXIT_OK)
		print_template(remote, &reply, document);
	return code;
}

/* --- changing --- */

int run_template_create(struct remote *remote)
{
	CLEANUP(json_freep) json_t *template = json_object(), *given = NULL;
	struct remote_request req = { .method = "POST", .path = STR("/leaseTemplates") };
	struct err            e = { 0 };

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
	return send_template(remote, &req, template);
}

int run_template_change(struct remote *remote)
{
	static const char *const    own[] = { "uuid", "blueprintName" }; /* of the server */
	CLEANUP(json_freep) json_t *document = NULL, *given = NULL;
	struct remote_request       req = { .method = "PUT" };
	struct fetch_reply          reply;
	struct err                  e = { 0 };
	json_t *template;
	int code;

	if (read_given(remote, &given, &e))
		return remote_fail(remote, &e);
	if (!json_object_size(given))
		return remote_misused(remote, "nothing to change: give --body, --description, --max-spend, --hours, "
		                              "--approval, --visibility or --cost-group");
	if ((code = get_template(remote, &reply, &document)) != CLI_EXIT_OK)
		return code;
	template = json_object_get(document, "data");
	req.path = ask_path_of(remote, "/leaseTemplates/", list_text(remote, template, "uuid"), "");
	lay_over(template, given);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		(void)json_object_del(template, own[i]); /* not there: fine */
	return send_template(remote, &req, template);
}

int run_template_delete(struct remote *remote)
{
	struct remote_request       req = { .method = "DELETE", .scope = REMOTE_PERSON };
	CLEANUP(json_freep) json_t *document = NULL, *gone = NULL;
	struct fetch_reply          reply;
	struct str                  name;
	int                         code = get_template(remote, &reply, &document);

	if (code != CLI_EXIT_OK)
		return code;
	name = list_text(remote, json_object_get(document, "data"), "name");
	req.path = ask_path_of(remote, "/leaseTemplates/", list_text(remote, json_object_get(document, "data"), "uuid"),
	                       "");
	if ((code = remote_call(remote, &req, &reply, &gone)) != CLI_EXIT_OK)
		return code;
	if (remote->is_json)
		remote_print_json(remote, &reply);
	else
		fprintf(remote->io->out, "Template %.*s is gone; leases that were made from it stay.\n", STR_ARG(name));
	return CLI_EXIT_OK;
}
