/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_webhook.c - the "webhook" commands.
 *
 * A secret comes from a file or is made by the server; it is never an argument, where other users of the machine could see it.
 */
#include "cli/run.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/settings.h"

enum { BODY_MAX = 65536 };

static struct str state_cell(struct remote *remote, const json_t *item, const char *member)
{
	(void)remote;
	return json_is_true(json_object_get(item, member)) ? STR("paused") : STR("active");
}

int run_webhook_list(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "ID", list_text, "id", 36 },        { "STATE", state_cell, "paused", 6 },
		{ "AGE", list_age, "created_at", 5 }, { "FILTER", list_text, "filter", 15 },
		{ "URL", list_text, "url", 30 },
	};
	static const struct list webhooks = {
		.path = "/ops/webhooks", .items = "webhooks", .columns = columns, .column_count = ARRAY_LEN(columns)
	};

	return list_run(remote, &webhooks);
}

static void put_option(const struct remote *remote, struct json_out *o, enum cli_option_id id, const char *name)
{
	if (remote->args->values[id])
		json_put_str(o, name, str_from(remote->args->values[id]));
}

/* What was given, as the server takes it. */
static enum rc make_body(struct remote *remote, struct str *ret, struct err *e)
{
	const char *const *values = remote->args->values;
	struct str         secret = STR("");
	struct json_out    o;
	struct buf         b;
	enum rc            rc;

	if (values[CLI_OPTION_SECRET_FILE] &&
	    (rc = settings_read_line(values[CLI_OPTION_SECRET_FILE], &remote->arena, &secret, e)))
		return rc;
	buf_init(&b, BODY_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	put_option(remote, &o, CLI_OPTION_URL, "url");
	put_option(remote, &o, CLI_OPTION_FILTER, "filter");
	put_option(remote, &o, CLI_OPTION_DESCRIPTION, "description");
	if (secret.n)
		json_put_str(&o, "secret", secret);
	if (values[CLI_OPTION_PAUSE] || values[CLI_OPTION_RESUME])
		json_put_bool(&o, "paused", values[CLI_OPTION_PAUSE] != NULL);
	json_close_object(&o);
	rc = b.is_full ? err_set(e, RC_INVALID, "the options together have more than %d bytes", BODY_MAX) : RC_OK;
	*ret = rc ? STR("") : str_dup(&remote->arena, buf_str(&b));
	buf_fini(&b);
	return rc;
}

int run_webhook_create(struct remote *remote)
{
	struct remote_request req = { .method = "POST", .path = STR("/ops/webhooks"), .scope = REMOTE_ADMIN };
	struct err            e = { 0 };
	struct str            url;
	int                   code;

	if (ask_needed(remote, CLI_OPTION_URL, &url, &e) || make_body(remote, &req.body, &e))
		return remote_fail(remote, &e);
	code = remote_run(remote, &req);
	if (code == CLI_EXIT_OK && !remote->is_json)
		fprintf(remote->io->err, "The secret is not shown again.\n");
	return code;
}

int run_webhook_change(struct remote *remote)
{
	struct remote_request req = { .method = "PATCH", .scope = REMOTE_ADMIN };
	struct err            e = { 0 };

	if (remote->args->values[CLI_OPTION_PAUSE] && remote->args->values[CLI_OPTION_RESUME])
		return remote_misused(remote, "give --pause or --resume, not both");
	if (make_body(remote, &req.body, &e))
		return remote_fail(remote, &e);
	if (str_eq(req.body, STR("{}")))
		return remote_misused(remote, "nothing to change: give --url, --filter, --description, --secret-file, "
		                              "--pause or --resume");
	req.path = ask_path(remote, "/ops/webhooks/", "");
	return remote_run(remote, &req);
}

int run_webhook_remove(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "DELETE",
	                                                    .path = ask_path(remote, "/ops/webhooks/", ""),
	                                                    .scope = REMOTE_ADMIN });
}

int run_webhook_test(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "POST",
	                                                    .path = ask_path(remote, "/ops/webhooks/", "/test"),
	                                                    .scope = REMOTE_ADMIN });
}
