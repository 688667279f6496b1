/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c - talks to the server and explains what went wrong.
 *
 * Every error message has a second line if there is something to do about it. A token is looked for in this order:
 * --token-file, the environment (LEASEHOLD_TOKEN, then the one for the scope), the client file (the same two). It never
 * comes from an argument, where other users of the machine could see it, and is never printed. A session token in
 * LEASEHOLD_TOKEN is never used for a track, and for an operator only if there is no operator's token beside it.
 */
#include "cli/call/remote.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/call/call.h"
#include "cli/term/progress.h"
#include "cli/term/show.h"
#include "net/jwt.h"

enum { ANSWER_MAX = 16 << 20, TOKEN_MAX = 4096, MESSAGE_MAX = 4096 };
enum { CONNECT_TIMEOUT_MS = 5000, TOTAL_TIMEOUT_MS = 30000, IDLE_TIMEOUT_MS = 60000, SESSION_SEC = 3600 };

/* The address, with /v1 if it has no path. Requests of people go to /api beside /v1, or below another path. */
static enum rc find_base(struct remote *remote, struct err *e)
{
	struct str  address = str_from(remote->args->values[CLI_OPTION_ADDRESS]), root;
	const char *host, *path;

	if (address.n == 0)
		address = settings_get(&remote->settings, "LEASEHOLD_ADDRESS");
	remote->has_address = address.n > 0;
	if (address.n == 0)
		address = STR("http://127.0.0.1:8080");
	address = str_dup(&remote->arena, address);
	if ((!str_starts_with(address, STR("http://")) && !str_starts_with(address, STR("https://"))) ||
	    strpbrk(address.p, "?# "))
		return err_set(e, RC_INVALID, "the address must look like http://host:8080 or https://host/path");
	host = strstr(address.p, "://") + 3;
	while (address.n && address.p[address.n - 1] == '/')
		address.n--;
	path = memchr(host, '/', address.n > (size_t)(host - address.p) ? address.n - (size_t)(host - address.p) : 0);
	remote->base = str_format(&remote->arena, "%.*s%s", STR_ARG(address), path ? "" : "/v1");
	root = remote->base;
	if (str_ends_with(root, STR("/api")))
		root.n -= 4;
	else if (str_ends_with(root, STR("/v1")))
		root.n -= 3;
	remote->api = str_format(&remote->arena, "%.*s/api", STR_ARG(root));
	remote->tenants = str_format(&remote->arena, "%.*s/v1.0/tenants", STR_ARG(root));
	return RC_OK;
}

enum rc remote_open(struct remote *remote, const struct cli_io *io, const struct cli_args *args, struct err *e)
{
	const char *no_colour = io->env("NO_COLOR");
	bool        is_named; /* the server or the token, by an option */
	enum rc     rc;

	*remote = (struct remote){ .io = io, .args = args, .is_json = args->values[CLI_OPTION_JSON] != NULL };
	remote->is_coloured = io->is_out_terminal && !(no_colour && no_colour[0]);
	if ((rc = settings_load(&remote->settings, io, &remote->arena, e)))
		return rc;
	is_named = args->values[CLI_OPTION_ADDRESS] || args->values[CLI_OPTION_TOKEN_FILE];
	if ((rc = settings_load_dev(&remote->settings, is_named, &remote->arena, e)))
		return rc;
	return find_base(remote, e);
}

void remote_close(struct remote *remote)
{
	arena_fini(&remote->arena);
}

static enum rc check_token(struct str token, const char *origin, struct err *e)
{
	if (!token.n || token.n > TOKEN_MAX || !str_is_of(token, "!-~"))
		return err_set(e, RC_INVALID, "the token in %s must be 1 to %d visible ASCII characters", origin,
		               TOKEN_MAX);
	return RC_OK;
}

struct str remote_session(struct remote *remote, struct str email, unsigned roles, struct str secret)
{
	int64_t now = wall_sec(clock_now(&clock_real)); /* sessions go by the machine's date, whatever the world's */
	struct jwt_session session = {
		.email = email, .roles = roles, .issued_at = now, .expires_at = now + SESSION_SEC
	};

	return jwt_issue(&session, secret, &remote->arena);
}

/* A JWT begins with the base64 of "{\"". */
static bool is_session(struct str token)
{
	return str_starts_with(token, STR("eyJ"));
}

enum rc remote_token(struct remote *remote, enum remote_scope scope, struct str *ret, struct err *e)
{
	static const char *const owns[] = { [REMOTE_TRACK] = "BROKER_API_TOKEN",
		                            [REMOTE_ADMIN] = "BROKER_ADMIN_TOKEN",
		                            [REMOTE_PERSON] = "LEASEHOLD_TOKEN",
		                            [REMOTE_TENANT] = "BROKER_ADMIN_TOKEN" };
	const char              *token_file = remote->args->values[CLI_OPTION_TOKEN_FILE];
	const char              *names[] = { "LEASEHOLD_TOKEN", owns[scope] };
	struct str (*const places[])(const struct settings *, const char *) = { settings_from_env, settings_from_file };
	struct str  secret = settings_from_file(&remote->settings, "LEASEHOLD_JWT_SECRET");
	const char *path = remote->settings.path ? remote->settings.path : "a file and name it with --token-file";
	enum rc     rc;

	if (token_file) {
		if ((rc = settings_read_line(token_file, &remote->arena, ret, e)))
			return rc;
		return check_token(*ret, token_file, e);
	}
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			struct str list = places[i](&remote->settings, names[k]);

			if (list.n == 0 || (is_session(list) && scope == REMOTE_TRACK))
				continue;
			if (is_session(list) && scope == REMOTE_ADMIN && places[i](&remote->settings, owns[scope]).n)
				continue; /* the operator's token beside it can do more than a session */
			*ret = str_trim(str_cut(&list, ','));
			return check_token(*ret, names[k], e);
		}
	if (scope != REMOTE_PERSON)
		return err_set(e, RC_UNKNOWN, "no token: set LEASEHOLD_TOKEN or %s, or write %s=... to %s", owns[scope],
		               owns[scope], path);
	if (!remote->settings.dev_path || secret.n < JWT_SECRET_MIN)
		return err_set(e, RC_UNKNOWN,
		               "no token: set LEASEHOLD_TOKEN, or write LEASEHOLD_TOKEN=... to %s; 'leasehold token "
		               "issue' makes one",
		               path);
	/* A development server's file has its secret for this only: anybody who can read the file is its admin. */
	*ret = remote_session(remote, STR("admin@example.com"), JWT_ADMIN, secret);
	return RC_OK;
}

enum rc remote_track(const struct remote *remote, struct str *ret, struct err *e)
{
	struct str track = str_from(remote->args->values[CLI_OPTION_TRACK]);

	if (track.n == 0)
		track = settings_get(&remote->settings, "LEASEHOLD_TRACK");
	if (track.n == 0)
		return err_set(e, RC_INVALID, "no track: give --track TRACK or set LEASEHOLD_TRACK");
	*ret = track;
	return RC_OK;
}

/* The request, except for what becomes of the answer. */
static enum rc prepare(struct remote *remote, const struct remote_request *req, struct fetch_request *out,
                       struct err *e)
{
	bool       is_asset = str_starts_with(req->path, STR("/assets/")); /* beside /api */
	struct str base = is_asset                      ? str_of(remote->api.p, remote->api.n - strlen("/api"))
	                  : req->scope == REMOTE_PERSON ? remote->api
	                  : req->scope == REMOTE_TENANT ? remote->tenants
	                                                : remote->base;
	struct str token = req->token;
	size_t     n = 0;
	enum rc    rc = token.n ? RC_OK : remote_token(remote, req->scope, &token, e);

	if (rc)
		return rc;
	*out = (struct fetch_request){
		.method = req->method,
		.url = str_format(&remote->arena, "%.*s%.*s", STR_ARG(base), STR_ARG(req->path)).p,
		.body = req->body,
		.connect_timeout_ms = CONNECT_TIMEOUT_MS,
		.total_timeout_ms = TOTAL_TIMEOUT_MS + (long)req->wait_sec * 1000,
		.max_bytes = ANSWER_MAX,
		.ca_file = remote->args->values[CLI_OPTION_CA],
	};
	out->headers[n++] = str_format(&remote->arena, "Authorization: Bearer %.*s", STR_ARG(token)).p;
	out->headers[n++] = req->accept ? req->accept : "Accept: application/json";
	if (req->body.n)
		out->headers[n++] = "Content-Type: application/json";
	for (size_t i = 0; i < REMOTE_HEADERS_MAX && req->headers[i]; i++)
		out->headers[n++] = req->headers[i];
	return RC_OK;
}

enum rc remote_stream(struct remote *remote, const struct remote_request *req, remote_take_fn *take, void *arg,
                      struct fetch_reply *ret, struct err *e)
{
	struct fetch_request out;
	enum rc              rc = prepare(remote, req, &out, e);

	if (rc)
		return rc;
	out.take = take;
	out.take_arg = arg;
	out.idle_timeout_ms = IDLE_TIMEOUT_MS;
	return fetch(&out, &remote->arena, ret, e);
}

enum rc remote_send(struct remote *remote, const struct remote_request *req, struct fetch_reply *ret, struct err *e)
{
	struct fetch_request out;
	struct progress      progress;
	int64_t              sec;
	enum rc              rc = prepare(remote, req, &out, e);

	if (rc)
		return rc;
	progress_start(&progress, remote->io, req->waiting_for ? req->waiting_for : "waiting for the server");
	rc = fetch(&out, &remote->arena, ret, e);
	progress_stop(&progress);
	if (!rc && iso_time_parse(fetch_header(ret, "Leasehold-Time"), &sec)) { /* time runs faster there */
		remote->clock = clock_scaled(wall_from_sec(sec), 1);
		remote->clock_io = *remote->io;
		remote->clock_io.clock = &remote->clock;
		remote->io = &remote->clock_io;
	}
	return rc;
}

bool remote_is_success(const struct fetch_reply *reply)
{
	return reply->status >= 200 && reply->status < 300;
}

enum rc remote_json(const struct fetch_reply *reply, json_t **ret, struct err *e)
{
	if (json_parse(reply->body, ret, e) != RC_OK)
		return err_wrap(e, RC_CORRUPT, "the server's answer (status %d) cannot be understood", reply->status);
	return RC_OK;
}

void remote_print_json(const struct remote *remote, const struct fetch_reply *reply)
{
	fwrite(reply->body.p, 1, reply->body.n, remote->io->out);
	if (reply->body.n && reply->body.p[reply->body.n - 1] != '\n')
		fputc('\n', remote->io->out);
}

/* What to do when no answer came. The texts looked for are libcurl's and OpenSSL's. */
static void advise_unreachable(const struct remote *remote, const char *why)
{
	bool is_tls = str_starts_with(remote->base, STR("https://"));
	bool spoke_tls = strstr(why, "Empty reply") || strstr(why, "HTTP/0.9") || strstr(why, "onnection reset") ||
	                 strstr(why, "onnection closed");
	bool        spoke_plainly = strstr(why, "wrong version number") || strstr(why, "packet length too long");
	struct str  place = str_skip(remote->base, strlen(is_tls ? "https://" : "http://")), rest = place;
	struct str  authority = str_cut(&rest, '/');
	const char *at = memrchr(authority.p, '@', authority.n);
	FILE       *to = remote->io->err;

	place = at ? str_skip(place, (size_t)(at + 1 - place.p)) : place; /* without a user's name and password */
	if (!is_tls && spoke_tls)
		fprintf(to, "If the server speaks HTTPS, try https://%.*s\n", STR_ARG(place));
	else if (is_tls && spoke_plainly)
		fprintf(to, "The server answers, but not in HTTPS: try http://%.*s\n", STR_ARG(place));
	else if (strstr(why, "certificate"))
		fprintf(to, "If the certificate is from your own authority, name it with --ca FILE.\n");
	else if (remote->settings.dev_path)
		fprintf(to,
		        "Is the development server still running? Its address comes from %s; start it with: make run\n",
		        remote->settings.dev_path);
	else if (remote->settings.unused_dev_path && !remote->has_address)
		fprintf(to,
		        "A token was given without an address, so the development server's file %s was not used; set "
		        "LEASEHOLD_ADDRESS to the address in it.\n",
		        remote->settings.unused_dev_path);
	else
		fprintf(to, "Is the server running there? The address comes from --address or LEASEHOLD_ADDRESS.\n");
}

static void advise_no_token(const struct remote *remote)
{
	if (remote->settings.unused_dev_path)
		fprintf(remote->io->err,
		        "The development server's file %s was not used, because an address or a token was given: it is "
		        "used as a whole or not at all.\n",
		        remote->settings.unused_dev_path);
	else if (!remote->settings.dev_path)
		fprintf(remote->io->err,
		        "To try it out: 'make run' starts a server that commands in the same folder find by themselves; "
		        "if it has another DATA, set LEASEHOLD_DATA to that.\n");
}

int remote_failed(const struct remote *remote, enum rc rc, const char *fmt, ...)
{
	struct err e = { .rc = rc };
	va_list    args;

	va_start(args, fmt);
	(void)vsnprintf(e.msg, sizeof(e.msg), fmt, args); /* what does not fit is cut off */
	va_end(args);
	return remote_fail(remote, &e);
}

int remote_misused(const struct remote *remote, const char *why)
{
	return remote_failed(remote, RC_INVALID, "%s", why);
}

int remote_fail(const struct remote *remote, const struct err *e)
{
	fprintf(remote->io->err, "leasehold: %s: %s\n", remote->args->command->name, e->msg);
	switch (e->rc) {
	case RC_INVALID: return CLI_EXIT_USAGE;
	case RC_UNKNOWN: advise_no_token(remote); return CLI_EXIT_NOT_ALLOWED;
	case RC_UNAVAILABLE:
	case RC_TIMEOUT: advise_unreachable(remote, e->msg); return CLI_EXIT_UNREACHABLE;
	default: return CLI_EXIT_REFUSED;
	}
}

static int exit_code_of(int status, struct str error_code)
{
	switch (status) {
	case 401:
	case 403: return CLI_EXIT_NOT_ALLOWED;
	case 404: return CLI_EXIT_NOT_FOUND;
	case 409: return str_eq(error_code, STR("NO_SANDBOXES_AVAILABLE")) ? CLI_EXIT_EMPTY : CLI_EXIT_REFUSED;
	case 502:
	case 503:
	case 504: return CLI_EXIT_UNREACHABLE;
	default: return CLI_EXIT_REFUSED;
	}
}

/* What to do about an error, by its code. */
static const struct cli_note advices[] = {
	{ "UNAUTHORIZED", "This server does not know the token. Check LEASEHOLD_TOKEN, BROKER_API_TOKEN, "
	                  "BROKER_ADMIN_TOKEN or --token-file." },
	{ "FORBIDDEN", "Tracks and operators have different tokens: claim and give-back need BROKER_API_TOKEN, "
	               "the rest BROKER_ADMIN_TOKEN." },
	{ "NOT_SANDBOX_OWNER", "Only the track that holds it may do this. Check --track." },
	{ "ALLOCATION_EXPIRED", "It will be deleted by itself. Claim a new one." },
	{ "NO_SANDBOXES_AVAILABLE", "Wait in line with --wait SECONDS, or try again later." },
	{ "SANDBOX_NOT_FOUND", "List them: leasehold sandbox list" },
	{ "JOB_NOT_FOUND", "List them: leasehold job list" },
	{ "NOT_FOUND", "Is this the right server? An address with a path is used as it is, without /v1." },
	{ "INVALID_TRACK_ID", "A track is 1 to 128 visible ASCII characters. Check --track." },
	{ "RATE_LIMIT_EXCEEDED", "Too many requests at once. Try again in a moment." },
	{ "SERVICE_UNAVAILABLE", "See what the jobs say: leasehold job list" },
};

/* NULL: no command lists them. */
static const char *list_advice(struct remote *remote, struct str noun)
{
	const char *list[] = { str_dup(&remote->arena, noun).p, "list" };
	size_t      used;

	return cli_command_find(list, 2, &used) && used == 2
	               ? str_format(&remote->arena, "List them: leasehold %s list", list[0]).p
	               : NULL;
}

/* No advice to wait after having waited; for something that does not exist, the command that lists what does. */
static const char *advice(struct remote *remote, struct str code, struct str message)
{
	int64_t waited;

	if (str_eq(code, STR("NO_SANDBOXES_AVAILABLE")) &&
	    str_to_int(str_from(remote->args->values[CLI_OPTION_WAIT]), 1, REMOTE_WAIT_MAX_SEC, &waited))
		return "Wait longer, or try again later.";
	if (str_eq(code, STR("FORBIDDEN")) && str_starts_with(message, STR("this needs the role")))
		return NULL; /* a person's token, which both would take */
	if (str_eq(code, STR("NOT_FOUND")) && message.n && !str_starts_with(message, STR("there is nothing at")))
		return list_advice(remote, str_starts_with(message, STR("there is no account "))
		                                   ? STR("account") /* or another command's operand */
		                                   : cli_command_noun(remote->args->command));
	for (size_t i = 0; i < ARRAY_LEN(advices); i++)
		if (str_eq(str_from(advices[i].name), code))
			return advices[i].help;
	return NULL;
}

/* What to do about an answer under /api, whose errors have no codes; NULL: nothing. */
static const char *advice_for_person(struct remote *remote, int status, struct str message)
{
	const struct cli_command *c = remote->args->command;
	bool                      is_unknown = str_starts_with(message, STR("there is no "));

	switch (status) {
	case 401:
		return "The token is not valid here, or has expired. 'leasehold token issue' makes a new one; set it "
		       "as LEASEHOLD_TOKEN.";
	case 404:
		if (c == &cli_commands[CLI_COMMAND_LEASE_SPEND] && !is_unknown)
			return str_format(&remote->arena, "Once it has ended: leasehold lease statement %s",
			                  remote->args->operands[0])
			        .p;
		if (!is_unknown)
			return NULL;
		return list_advice(remote, c == &cli_commands[CLI_COMMAND_LEASE_REQUEST] ? STR("template")
		                                                                         : cli_command_noun(c));
	case 429: return "Too many requests at once. Try again in a moment.";
	default: return NULL;
	}
}

/* The parts of an error answer; empty where it has none. */
struct refusal {
	struct str  code, message, request_id;
	const char *advice;
	int64_t     retry_after;
	bool        is_json;
};

/* What was typed as this field: an option or an operand; else the field. */
static struct str typed_as(struct remote *remote, struct str field)
{
	const struct call          *row = &calls[remote->args->command - cli_commands];
	const struct compose_field *lists[] = { row->query, row->body };
	const char                 *mark = str_format(&remote->arena, "{%.*s}", STR_ARG(field)).p;
	struct str                  operand = str_from(remote->args->command->operands);

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (const struct compose_field *f = lists[i]; f && f->name; f++)
			if (str_eq(field, str_from(f->name)) && f->value != VALUE_FIXED)
				return f->value == VALUE_OPERAND ? operand : str_from(cli_options[f->option].name);
	return row->path && strstr(row->path, mark) ? operand : field;
}

/* All that was wrong, each with its field: "--status: must be ...; name: must be ...". */
static struct str join_errors(struct remote *remote, const json_t *errors)
{
	struct buf b = BUF(MESSAGE_MAX);

	for (size_t i = 0; i < json_array_size(errors); i++) {
		struct str field, message;

		if (!json_get_text(json_array_get(errors, i), "field", &field) ||
		    !json_get_text(json_array_get(errors, i), "message", &message) || !message.n)
			continue;
		field = typed_as(remote, field);
		buf_addf(&b, "%s%.*s%s%.*s", b.n ? "; " : "", STR_ARG(field), field.n ? ": " : "", STR_ARG(message));
	}
	return buf_take(&b, &remote->arena);
}

/* An answer under /api: {"status": "fail", "data": {"errors": [...]}} or {"status": "error", "message": "..."}. False
 * when it is none. */
static bool read_fail(struct remote *remote, const json_t *document, int status, struct refusal *ret)
{
	const json_t *errors = json_object_get(json_object_get(document, "data"), "errors");
	struct str    word, message;

	if (!json_get_text(document, "status", &word) || !json_get_text(document, "message", &message) ||
	    (!str_eq(word, STR("fail")) && !str_eq(word, STR("error"))))
		return false;
	ret->message = str_eq(word, STR("fail")) ? join_errors(remote, errors) : message;
	ret->advice = advice_for_person(remote, status, ret->message);
	return true;
}

/* Texts of the server as lines that cannot steer the terminal. */
static struct refusal read_refusal(struct remote *remote, const struct fetch_reply *reply)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct refusal              r = { .is_json = json_parse(reply->body, &document, NULL) == RC_OK };
	const json_t               *error = json_object_get(document, "error");

	if (r.is_json && !read_fail(remote, document, reply->status, &r)) {
		if (!json_get_text(error, "code", &r.code) || !json_get_text(error, "message", &r.message) ||
		    !json_get_text(error, "request_id", &r.request_id) ||
		    !json_get_number(error, "retry_after", 0, &r.retry_after))
			r = (struct refusal){ .is_json = true };
		r.advice = advice(remote, r.code, r.message);
	}
	r.message = utf8_line(&remote->arena, r.message, MESSAGE_MAX);
	r.code = utf8_line(&remote->arena, r.code, MESSAGE_MAX);
	r.request_id = utf8_line(&remote->arena, r.request_id, MESSAGE_MAX);
	return r;
}

struct str remote_message(struct remote *remote, const struct fetch_reply *reply)
{
	struct str message = read_refusal(remote, reply).message;

	return message.n ? message : str_format(&remote->arena, "status %d", reply->status);
}

int remote_refused(struct remote *remote, const struct fetch_reply *reply)
{
	struct refusal r = read_refusal(remote, reply);
	FILE          *to = remote->io->err;

	if (r.is_json && remote->is_json)
		remote_print_json(remote, reply);
	fprintf(to, "leasehold: %s: ", remote->args->command->name);
	if (r.message.n)
		fprintf(to, "%.*s", STR_ARG(r.message));
	else
		fprintf(to, "the server answered %d without saying why", reply->status);
	if (r.code.n)
		fprintf(to, " (%.*s%s%.*s)", STR_ARG(r.code), r.request_id.n ? ", request " : "",
		        STR_ARG(r.request_id));
	fputc('\n', to);
	if (r.advice)
		fprintf(to, "%s\n", r.advice);
	if (r.retry_after > 0)
		fprintf(to, "The server suggests retrying in %" PRId64 " s.\n", r.retry_after);
	return exit_code_of(reply->status, r.code);
}

void answer_free(struct answer *answer)
{
	json_decref(answer->json);
}

int remote_read(struct remote *remote, enum remote_scope scope, struct answer *ret)
{
	struct err e = { 0 };

	if (!remote_is_success(&ret->reply))
		return remote_refused(remote, &ret->reply);
	if (remote_json(&ret->reply, &ret->json, &e))
		return remote_fail(remote, &e);
	ret->data = scope == REMOTE_PERSON ? json_object_get(ret->json, "data") : ret->json;
	return CLI_EXIT_OK;
}

int remote_call(struct remote *remote, const struct remote_request *req, struct answer *ret)
{
	struct err e = { 0 };

	*ret = (struct answer){ .json = NULL };
	return remote_send(remote, req, &ret->reply, &e) ? remote_fail(remote, &e)
	                                                 : remote_read(remote, req->scope, ret);
}

int remote_get(struct remote *remote, enum remote_scope scope, struct str path, struct answer *ret)
{
	return remote_call(remote, &(struct remote_request){ .method = "GET", .path = path, .scope = scope }, ret);
}

static bool print_bytes(struct str bytes, void *arg)
{
	const struct remote *remote = arg;

	return fwrite(bytes.p, 1, bytes.n, remote->io->out) == bytes.n;
}

int remote_print_stream(struct remote *remote, const struct remote_request *req)
{
	struct cli_io      io = *remote->io;
	struct progress    progress;
	struct fetch_reply reply;
	struct err         e = { 0 };
	enum rc            rc;

	io.is_err_terminal = io.is_err_terminal && !io.is_out_terminal; /* the output itself shows progress there */
	progress_start(&progress, &io, req->waiting_for ? req->waiting_for : "waiting for the server");
	rc = remote_stream(remote, req, print_bytes, remote, &reply, &e);
	progress_stop(&progress);
	if (rc)
		return remote_fail(remote, &e);
	return remote_is_success(&reply) ? CLI_EXIT_OK : remote_refused(remote, &reply);
}
