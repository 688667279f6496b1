/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_token.c - the commands "token", which work without a server, and "service-account", which need one.
 *
 * A token is made here with the server's own secret, so whoever can run "token issue" is an administrator already. Secrets and passwords
 * come from a file, the environment or standard input, never from an argument, where other users of the machine could see them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/password.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "net/jwt.h"

enum { MINUTES_DEFAULT = 60, MINUTES_MAX = 525600, OVERLAP_MAX = 43200, BODY_MAX = 4096, LINE_ROOM = 1024 };

static int fail(const struct cli_io *io, const struct err *e)
{
	fprintf(io->err, "leasehold: %s\n", e->msg);
	return CLI_EXIT_USAGE;
}

/* --- token issue --- */

/* --secret-file, else LEASEHOLD_JWT_SECRET, else what a development server keeps in its data folder. */
static enum rc find_secret(const struct cli_io *io, const struct cli_args *args, struct arena *a, struct str *ret,
                           struct err *e)
{
	const char *file = args->values[CLI_OPTION_SECRET_FILE];
	const char *data = args->values[CLI_OPTION_DATA] ? args->values[CLI_OPTION_DATA] : io->env("LEASEHOLD_DATA");
	struct str  secret = str_from(io->env("LEASEHOLD_JWT_SECRET"));
	struct str  path = str_format(a, "%s/jwt-secret", data ? data : "data");
	enum rc     rc = RC_OK;

	if (file) {
		rc = settings_read_line(file, a, &secret, e);
	} else if (!secret.n && settings_read_line(path.p, a, &secret, NULL)) {
		return err_set(
		        e, RC_INVALID,
		        "token issue: no secret: give --secret-file, set LEASEHOLD_JWT_SECRET, or name the data folder "
		        "of a development server with --data (%.*s is not there)",
		        STR_ARG(path));
	}
	if (rc)
		return rc;
	if (secret.n < JWT_SECRET_MIN)
		return err_set(e, RC_INVALID, "token issue: the secret must have at least %d bytes", JWT_SECRET_MIN);
	*ret = secret;
	return RC_OK;
}

static enum rc read_roles(const char *text, unsigned *ret, struct err *e)
{
	struct str rest = str_from(text ? text : "");

	*ret = 0;
	while (rest.n) {
		struct str name = str_trim(str_cut(&rest, ','));
		unsigned   role = jwt_role_parse(name);

		if (!role)
			return err_set(e, RC_INVALID, "token issue: --role must be User, Manager or Admin, not '%.*s'",
			               STR_ARG(name));
		*ret |= role;
	}
	return *ret ? RC_OK
	            : err_set(e, RC_INVALID,
	                      "token issue: --role is needed: User, Manager, Admin, or several with commas");
}

static enum rc read_session(const struct cli_io *io, const struct cli_args *args, struct jwt_session *ret,
                            struct err *e)
{
	const char *minutes_text = args->values[CLI_OPTION_MINUTES];
	int64_t     minutes = MINUTES_DEFAULT;
	enum rc     rc;

	ret->email = str_from(args->values[CLI_OPTION_EMAIL] ? args->values[CLI_OPTION_EMAIL] : "");
	if (!jwt_is_email(ret->email))
		return err_set(e, RC_INVALID, "token issue: --email is needed, an address such as ann@example.com");
	if ((rc = read_roles(args->values[CLI_OPTION_ROLE], &ret->roles, e)))
		return rc;
	if (minutes_text && !str_to_int(str_from(minutes_text), 1, MINUTES_MAX, &minutes))
		return err_set(e, RC_INVALID, "token issue: --minutes must be a whole number from 1 to %d",
		               MINUTES_MAX);
	ret->issued_at = wall_sec(clock_now(io->clock));
	ret->expires_at = ret->issued_at + minutes * 60;
	return RC_OK;
}

int run_token_issue(const struct cli_io *io, const struct cli_args *args)
{
	struct arena       a = { 0 };
	struct jwt_session session = { .roles = 0 };
	struct err         e = { 0 };
	struct str         secret;
	int                code = CLI_EXIT_OK;

	if (read_session(io, args, &session, &e) || find_secret(io, args, &a, &secret, &e)) {
		code = fail(io, &e);
	} else {
		struct str token = jwt_issue(&session, secret, &a);

		fprintf(io->out, "%.*s\n", STR_ARG(token));
	}
	arena_fini(&a);
	return code;
}

/* --- token hash-password --- */

/* The terminal without the echo of what is typed; false: it stays as it is. */
static bool hide_typing(const struct cli_io *io, struct termios *ret_before)
{
	struct termios quiet;

	if (!io->is_in_terminal || tcgetattr(fileno(io->in), ret_before))
		return false;
	quiet = *ret_before;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	return tcsetattr(fileno(io->in), TCSAFLUSH, &quiet) == 0;
}

static bool read_line(const struct cli_io *io, char line[LINE_ROOM])
{
	struct termios before;
	bool           is_hidden = hide_typing(io, &before);
	bool           is_read;

	if (io->is_in_terminal)
		fprintf(io->err, "Password: ");
	is_read = fgets(line, LINE_ROOM, io->in) != NULL;
	if (is_hidden) {
		(void)tcsetattr(fileno(io->in), TCSAFLUSH, &before); /* nothing better can be done */
		fprintf(io->err, "\n");
	}
	return is_read;
}

int run_token_hash_password(const struct cli_io *io, const struct cli_args *args)
{
	char       line[LINE_ROOM], hash[PASSWORD_HASH_SIZE];
	struct err e = { 0 };

	(void)args; /* has none */
	if (!read_line(io, line)) {
		fprintf(io->err, "leasehold: token hash-password: reads a password, one line, from standard input\n");
		return CLI_EXIT_USAGE;
	}
	line[strcspn(line, "\r\n")] = 0;
	if (password_hash(str_from(line), hash, &e))
		return fail(io, &e);
	fprintf(io->out, "%s\n", hash);
	return CLI_EXIT_OK;
}

/* --- service-account --- */

static struct str state_cell(struct remote *remote, const json_t *item, const char *member)
{
	(void)remote;
	return json_is_integer(json_object_get(item, member)) ? STR("revoked") : STR("active");
}

int run_service_account_list(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "NAME", list_text, "name", 30 },        { "STATE", state_cell, "revoked_at", 7 },
		{ "SCOPES", list_text, "scopes", 30 },    { "AGE", list_age, "created_at", 5 },
		{ "ROTATED", list_age, "rotated_at", 7 },
	};
	static const struct list accounts = { .path = "/ops/service-accounts",
		                              .items = "service_accounts",
		                              .columns = columns,
		                              .column_count = ARRAY_LEN(columns) };

	return list_run(remote, &accounts);
}

static int run_for_key(struct remote *remote, const struct remote_request *req)
{
	int code = remote_run(remote, req);

	if (code == CLI_EXIT_OK && !remote->is_json)
		fprintf(remote->io->err, "The key is not shown again.\n");
	return code;
}

int run_service_account_create(struct remote *remote)
{
	struct remote_request req = { .method = "POST", .path = STR("/ops/service-accounts"), .scope = REMOTE_ADMIN };
	const char           *description = remote->args->values[CLI_OPTION_DESCRIPTION];
	struct err            e = { 0 };
	struct json_out       o;
	struct str            scopes;
	struct buf            b;
	int                   code;

	if (ask_needed(remote, CLI_OPTION_SCOPES, &scopes, &e))
		return remote_fail(remote, &e);
	buf_init(&b, BODY_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "name", str_from(remote->args->operands[0]));
	json_put_str(&o, "scopes", scopes);
	if (description)
		json_put_str(&o, "description", str_from(description));
	json_close_object(&o);
	req.body = buf_str(&b);
	code = b.is_full ? remote_misused(remote, "the options are too long") : run_for_key(remote, &req);
	buf_fini(&b);
	return code;
}

int run_service_account_rotate(struct remote *remote)
{
	struct remote_request req = { .method = "POST", .scope = REMOTE_ADMIN };
	struct err            e = { 0 };
	int64_t               minutes;

	if (ask_number(remote, CLI_OPTION_MINUTES, 0, OVERLAP_MAX, MINUTES_DEFAULT, &minutes, &e))
		return remote_fail(remote, &e);
	req.path = ask_path(remote, "/ops/service-accounts/", "/rotate");
	req.body = str_format(&remote->arena, "{\"overlap_minutes\":%" PRId64 "}", minutes);
	return run_for_key(remote, &req);
}

int run_service_account_revoke(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "DELETE",
	                                                    .path = ask_path(remote, "/ops/service-accounts/", ""),
	                                                    .scope = REMOTE_ADMIN });
}
