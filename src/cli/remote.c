/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c - talks to the server and explains what went wrong.
 *
 * Every error message has a second line where there is something to do about it. A token is looked for in this order:
 * --token-file, the environment (LEASEHOLD_TOKEN, then the one for the scope), the client file (the same two). It never
 * comes from an argument, where other users of the machine could see it, and is never printed. A session token in
 * LEASEHOLD_TOKEN is good under /api only, so it does not stand in the way of a track's or an operator's.
 */
#include "cli/remote.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "net/jwt.h"

enum {
	ANSWER_MAX = 16 << 20,
	CONNECT_TIMEOUT_MS = 5000,
	TOTAL_TIMEOUT_MS = 30000,
	IDLE_TIMEOUT_MS = 60000,
	TOKEN_MAX = 4096,
	MESSAGE_MAX = 4096,
	SESSION_SEC = 3600
};

static const struct str default_address = STR_INIT("http://127.0.0.1:8080");

/* Where people's requests go: beside /v1, or behind the path that was given. */
static struct str api_beside(struct remote *remote)
{
	struct str base = remote->base;

	if (base.n > 4 && memcmp(base.p + base.n - 4, "/api", 4) == 0)
		return base;
	if (base.n > 3 && memcmp(base.p + base.n - 3, "/v1", 3) == 0)
		base.n -= 3;
	return str_format(&remote->arena, "%.*s/api", STR_ARG(base));
}

/* The address with /v1 when it names no path. */
static enum rc find_base(struct remote *remote, struct err *e)
{
	struct str  address = str_from(remote->args->values[CLI_OPTION_ADDRESS]);
	const char *host, *path;

	if (address.n == 0)
		address = settings_get(&remote->settings, "LEASEHOLD_ADDRESS");
	if (address.n == 0)
		address = default_address;
	address = str_dup(&remote->arena, address);
	if ((!str_starts_with(address, STR("http://")) && !str_starts_with(address, STR("https://"))) ||
	    strpbrk(address.p, "?# "))
		return err_set(e, RC_INVALID, "the address must look like http://host:8080 or https://host/path");
	host = strstr(address.p, "://") + 3;
	while (address.n && address.p[address.n - 1] == '/')
		address.n--;
	path = memchr(host, '/', address.n > (size_t)(host - address.p) ? address.n - (size_t)(host - address.p) : 0);
	remote->base = str_format(&remote->arena, "%.*s%s", STR_ARG(address), path ? "" : "/v1");
	remote->api = api_beside(remote);
	return RC_OK;
}

enum rc remote_open(struct remote *remote, const struct cli_io *io, const struct cli_args *args, struct err *e)
{
	const char *no_colour = io->env("NO_COLOR");
	enum rc     rc;

	*remote = (struct remote){ .io = io, .args = args, .is_json = args->values[CLI_OPTION_JSON] != NULL };
	remote->is_coloured = io->is_out_terminal && !(no_colour && no_colour[0]);
	if ((rc = settings_load(&remote->settings, io, &remote->arena, e)))
		return rc;
	if (!args->values[CLI_OPTION_ADDRESS] && !args->values[CLI_OPTION_TOKEN_FILE] &&
	    (rc = settings_load_dev(&remote->settings, &remote->arena, e)))
		return rc;
	return find_base(remote, e);
}

void remote_close(struct remote *remote)
{
	arena_fini(&remote->arena);
}

static enum rc check_token(struct str token, const char *origin, struct err *e)
{
	bool is_visible = token.n > 0 && token.n <= TOKEN_MAX;

	for (size_t i = 0; i < token.n; i++)
		is_visible = is_visible && token.p[i] > ' ' && token.p[i] < 0x7f;
	if (!is_visible)
		return err_set(e, RC_INVALID, "the token in %s must be 1 to %d visible ASCII characters", origin,
		               TOKEN_MAX);
	return RC_OK;
}

/* A JWT, which begins with the base64 of "{\"". */
static bool is_session(struct str token)
{
	return str_starts_with(token, STR("eyJ"));
}

static enum rc refuse_without_token(const struct remote *remote, enum remote_scope scope, const char *own,
                                    struct err *e)
{
	const char *path = remote->settings.path;

	if (scope == REMOTE_PERSON)
		return err_set(e, RC_UNKNOWN,
		               "no token: set LEASEHOLD_TOKEN, or write LEASEHOLD_TOKEN=... to %s; 'leasehold token "
		               "issue' makes one",
		               path ? path : "a file and name it with --token-file");
	return err_set(e, RC_UNKNOWN, "no token: set LEASEHOLD_TOKEN or %s, or write %s=... to %s", own, own,
	               path ? path : "a file and name it with --token-file");
}

/* The secret is in the file of a development server only for this: whoever may read it is its admin. */
static bool issue_dev_session(struct remote *remote, struct str *ret)
{
	struct str secret = settings_from_file(&remote->settings, "LEASEHOLD_JWT_SECRET");

	if (!remote->settings.dev_path || secret.n < JWT_SECRET_MIN)
		return false;
	*ret = remote_session(remote, STR("admin@example.com"), JWT_ADMIN, secret);
	return true;
}

struct str remote_session(struct remote *remote, struct str email, unsigned roles, struct str secret)
{
	int64_t now = wall_sec(clock_now(&clock_real)); /* sessions go by the machine's date, whatever the world's */
	struct jwt_session session = {
		.email = email, .roles = roles, .issued_at = now, .expires_at = now + SESSION_SEC
	};

	return jwt_issue(&session, secret, &remote->arena);
}

enum rc remote_token(struct remote *remote, enum remote_scope scope, struct str *ret, struct err *e)
{
	static const char *const owns[] = { [REMOTE_TRACK] = "BROKER_API_TOKEN",
		                            [REMOTE_ADMIN] = "BROKER_ADMIN_TOKEN",
		                            [REMOTE_PERSON] = "LEASEHOLD_TOKEN" };
	const char              *token_file = remote->args->values[CLI_OPTION_TOKEN_FILE];
	const char              *names[] = { "LEASEHOLD_TOKEN", owns[scope] };
	struct str (*const places[])(const struct settings *, const char *) = { settings_from_env, settings_from_file };
	enum rc rc;

	if (token_file) {
		if ((rc = settings_read_line(token_file, &remote->arena, ret, e)))
			return rc;
		return check_token(*ret, token_file, e);
	}
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			struct str list = places[i](&remote->settings, names[k]);

			if (list.n == 0 || (scope != REMOTE_PERSON && is_session(list)))
				continue;
			*ret = str_trim(str_cut(&list, ','));
			return check_token(*ret, names[k], e);
		}
	if (scope == REMOTE_PERSON && issue_dev_session(remote, ret))
		return RC_OK;
	return refuse_without_token(remote, scope, owns[scope], e);
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

/* Everything of a request but how its answer is taken. */
static enum rc prepare(struct remote *remote, const struct remote_request *req, struct fetch_request *out,
                       struct err *e)
{
	struct str base = req->scope == REMOTE_PERSON ? remote->api : remote->base;
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

/* A server whose time is scaled says what time it is there. */
static void set_clock(struct remote *remote, const struct fetch_reply *reply)
{
	int64_t sec;

	if (!iso_time_parse(fetch_header(reply, "Leasehold-Time"), &sec))
		return;
	remote->clock = clock_scaled(wall_from_sec(sec), 1);
	remote->clock_io = *remote->io;
	remote->clock_io.clock = &remote->clock;
	remote->io = &remote->clock_io;
}

enum rc remote_send(struct remote *remote, const struct remote_request *req, struct fetch_reply *ret, struct err *e)
{
	struct fetch_request out;
	struct progress      progress;
	enum rc              rc = prepare(remote, req, &out, e);

	if (rc)
		return rc;
	progress_start(&progress, remote->io, req->waiting_for ? req->waiting_for : "waiting for the server");
	rc = fetch(&out, &remote->arena, ret, e);
	progress_stop(&progress);
	if (!rc)
		set_clock(remote, ret);
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

static int exit_for(enum rc rc)
{
	switch (rc) {
	case RC_INVALID: return CLI_EXIT_USAGE;
	case RC_UNKNOWN: return CLI_EXIT_NOT_ALLOWED;
	case RC_UNAVAILABLE:
	case RC_TIMEOUT: return CLI_EXIT_UNREACHABLE;
	default: return CLI_EXIT_REFUSED;
	}
}

static bool has_any(const char *text, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(text, parts[i]))
			return true;
	return false;
}

/* The address behind its scheme, without a user's name and password. */
static struct str place_of(struct str base)
{
	size_t      scheme = (size_t)(strstr(base.p, "://") + 3 - base.p);
	struct str  place = str_of(base.p + scheme, base.n - scheme), rest = place;
	struct str  authority = str_cut(&rest, '/');
	const char *at = memrchr(authority.p, '@', authority.n);
	size_t      skipped = at ? (size_t)(at + 1 - place.p) : 0;

	return str_of(place.p + skipped, place.n - skipped);
}

/* What to do when no answer came. The texts looked for are libcurl's and OpenSSL's. */
static void advise_unreachable(const struct remote *remote, const char *why)
{
	static const char *const spoke_tls[] = { "Empty reply", "HTTP/0.9", "onnection reset", "onnection closed" };
	static const char *const spoke_plainly[] = { "wrong version number", "packet length too long" };
	struct str               place = place_of(remote->base);
	bool                     is_tls = str_starts_with(remote->base, STR("https://"));
	FILE                    *to = remote->io->err;

	if (!is_tls && has_any(why, spoke_tls, ARRAY_LEN(spoke_tls)))
		fprintf(to, "If the server speaks HTTPS, try https://%.*s\n", STR_ARG(place));
	else if (is_tls && has_any(why, spoke_plainly, ARRAY_LEN(spoke_plainly)))
		fprintf(to, "The server answers, but not in HTTPS: try http://%.*s\n", STR_ARG(place));
	else if (strstr(why, "certificate"))
		fprintf(to, "If the certificate is of an authority of your own, name that with --ca FILE.\n");
	else if (remote->settings.dev_path)
		fprintf(to,
		        "Is the development server still running? Its address comes from %s; start it with: make run\n",
		        remote->settings.dev_path);
	else
		fprintf(to, "Is the server running there? The address comes from --address or LEASEHOLD_ADDRESS.\n");
}

int remote_misused(const struct remote *remote, const char *why)
{
	struct err e = { 0 };

	(void)err_set(&e, RC_INVALID, "%s", why); /* remote_fail() has the code */
	return remote_fail(remote, &e);
}

int remote_fail(const struct remote *remote, const struct err *e)
{
	int code = exit_for(e->rc);

	fprintf(remote->io->err, "leasehold: %s: %s\n", remote->args->command->name, e->msg);
	if (code == CLI_EXIT_UNREACHABLE)
		advise_unreachable(remote, e->msg);
	else if (code == CLI_EXIT_NOT_ALLOWED && !remote->settings.dev_path)
		fprintf(remote->io->err,
		        "To try it out: 'make run' starts a server that commands in the same folder find by themselves.\n");
	return code;
}

int remote_exit_code(int status, struct str error_code)
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
static const char *advice(struct str code)
{
	static const struct {
		struct str  code;
		const char *text;
	} table[] = {
		{ STR_INIT("UNAUTHORIZED"),
		  "The token is not known to this server. Check LEASEHOLD_TOKEN, BROKER_API_TOKEN, "
		  "BROKER_ADMIN_TOKEN or --token-file." },
		{ STR_INIT("FORBIDDEN"), "Tracks and operators have different tokens: claim and give-back need "
		                         "BROKER_API_TOKEN, the rest BROKER_ADMIN_TOKEN." },
		{ STR_INIT("NOT_SANDBOX_OWNER"), "Only the track that holds it may do this. Check --track." },
		{ STR_INIT("ALLOCATION_EXPIRED"), "It will be deleted without you. Claim a new one." },
		{ STR_INIT("NO_SANDBOXES_AVAILABLE"), "Wait in line with --wait SECONDS, or try again later." },
		{ STR_INIT("SANDBOX_NOT_FOUND"), "See what there is: leasehold sandbox list" },
		{ STR_INIT("JOB_NOT_FOUND"), "See what there is: leasehold job list" },
		{ STR_INIT("NOT_FOUND"),
		  "Is this the right server? An address with a path is used as it is, without /v1." },
		{ STR_INIT("INVALID_TRACK_ID"), "A track is 1 to 128 visible ASCII characters. Check --track." },
		{ STR_INIT("RATE_LIMIT_EXCEEDED"), "Too many requests at once. Try again in a moment." },
		{ STR_INIT("SERVICE_UNAVAILABLE"), "See what the jobs say: leasehold job list" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(table[i].code, code))
			return table[i].text;
	return NULL;
}

/* The same, but who has waited in line is not told to, and who asked for a thing that is not there, not about addresses. */
static const char *advice_after(const struct remote *remote, struct str code, struct str message)
{
	int64_t waited;
	bool has_waited = str_to_int(str_from(remote->args->values[CLI_OPTION_WAIT]), 1, REMOTE_WAIT_MAX_SEC, &waited);

	if (has_waited && str_eq(code, STR("NO_SANDBOXES_AVAILABLE")))
		return "Wait longer, or try again later.";
	if (str_eq(code, STR("NOT_FOUND")) && message.n && !str_starts_with(message, STR("there is nothing at")))
		return NULL;
	return advice(code);
}

/* What to do about an answer under /api, whose errors have no codes. */
static struct str advice_for_person(struct remote *remote, int status)
{
	struct str noun = cli_command_noun(remote->args->command);

	switch (status) {
	case 401:
		return STR(
		        "The token is not good here, or no longer. 'leasehold token issue' makes a new one; set it as "
		        "LEASEHOLD_TOKEN.");
	case 404:
		if (remote->args->command == &cli_commands[CLI_COMMAND_LEASE_REQUEST])
			noun = STR("template");
		return str_format(&remote->arena, "See what there is: leasehold %.*s list", STR_ARG(noun));
	case 429: return STR("Too many requests at once. Try again in a moment.");
	default: return STR("");
	}
}

/* The parts of an error answer; empty where it has none. */
struct refusal {
	struct str code, message, request_id;
	struct str advice; /* of an answer under /api */
	int64_t    retry_after;
};

/* All that was wrong, each with its field: "maxSpend: must be ...; name: must be ...". */
static struct str join_errors(struct remote *remote, const json_t *errors)
{
	struct buf b;
	struct str ret;

	buf_init(&b, MESSAGE_MAX);
	for (size_t i = 0; i < json_array_size(errors); i++) {
		struct str field, message;

		if (!json_get_text(json_array_get(errors, i), "field", &field) ||
		    !json_get_text(json_array_get(errors, i), "message", &message) || !message.n)
			continue;
		buf_addf(&b, "%s%.*s%s%.*s", b.n ? "; " : "", STR_ARG(field), field.n ? ": " : "", STR_ARG(message));
	}
	ret = str_dup(&remote->arena, buf_str(&b));
	buf_fini(&b);
	return ret;
}

/* An answer under /api: {"status": "fail", "data": {"errors": [...]}} or {"status": "error", "message": "..."}. False when
 * it is none. */
static bool read_fail(struct remote *remote, const json_t *document, int status, struct refusal *ret)
{
	const json_t *errors = json_object_get(json_object_get(document, "data"), "errors");
	struct str    word, message;

	if (!json_get_text(document, "status", &word) || !json_get_text(document, "message", &message) ||
	    (!str_eq(word, STR("fail")) && !str_eq(word, STR("error"))))
		return false;
	ret->message = str_eq(word, STR("fail")) ? join_errors(remote, errors) : message;
	ret->advice = advice_for_person(remote, status);
	return true;
}

static struct refusal read_refusal(const json_t *document)
{
	const json_t  *error = json_object_get(document, "error");
	struct refusal r = { .retry_after = 0 };

	if (!json_get_text(error, "code", &r.code) || !json_get_text(error, "message", &r.message) ||
	    !json_get_text(error, "request_id", &r.request_id) ||
	    !json_get_number(error, "retry_after", 0, &r.retry_after))
		return (struct refusal){ .retry_after = 0 };
	return r;
}

/* Text of the server on a terminal: visible characters only. */
static void print_clean(FILE *to, struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		fputc((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f ? '?' : text.p[i], to);
}

struct str remote_message(struct remote *remote, const struct fetch_reply *reply)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct refusal              r = { .retry_after = 0 };
	struct err                  ignored = { 0 };

	if (remote_json(reply, &document, &ignored) == RC_OK && !read_fail(remote, document, reply->status, &r))
		r = read_refusal(document);
	return r.message.n ? utf8_line(&remote->arena, r.message, MESSAGE_MAX)
	                   : str_format(&remote->arena, "status %d", reply->status);
}

int remote_refused(struct remote *remote, const struct fetch_reply *reply)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct refusal              r = { .retry_after = 0 };
	FILE                       *to = remote->io->err;
	struct err                  ignored = { 0 };

	if (remote_json(reply, &document, &ignored) == RC_OK) {
		if (!read_fail(remote, document, reply->status, &r))
			r = read_refusal(document);
		if (remote->is_json)
			remote_print_json(remote, reply);
	}
	fprintf(to, "leasehold: %s: ", remote->args->command->name);
	if (r.message.n)
		print_clean(to, r.message);
	else
		fprintf(to, "the server answered %d without saying why", reply->status);
	if (r.code.n) {
		fputs(" (", to);
		print_clean(to, r.code);
		if (r.request_id.n) {
			fputs(", request ", to);
			print_clean(to, r.request_id);
		}
		fputc(')', to);
	}
	fputc('\n', to);
	if (r.advice.n)
		fprintf(to, "%.*s\n", STR_ARG(r.advice));
	else if (advice_after(remote, r.code, r.message))
		fprintf(to, "%s\n", advice_after(remote, r.code, r.message));
	if (r.retry_after > 0)
		fprintf(to, "The server suggests to try again in %" PRId64 " s.\n", r.retry_after);
	return remote_exit_code(reply->status, r.code);
}

int remote_show(struct remote *remote, const struct fetch_reply *reply)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct err                  e = { 0 };

	if (!remote_is_success(reply))
		return remote_refused(remote, reply);
	if (remote_json(reply, &document, &e) != RC_OK)
		return remote_fail(remote, &e);
	if (remote->is_json)
		remote_print_json(remote, reply);
	else
		show_record(remote->io->out, &remote->arena, document, clock_now(remote->io->clock),
		            remote->is_coloured);
	return CLI_EXIT_OK;
}

int remote_call(struct remote *remote, const struct remote_request *req, struct fetch_reply *reply, json_t **ret)
{
	struct err e = { 0 };

	if (remote_send(remote, req, reply, &e) != RC_OK)
		return remote_fail(remote, &e);
	if (!remote_is_success(reply))
		return remote_refused(remote, reply);
	return remote_json(reply, ret, &e) == RC_OK ? CLI_EXIT_OK : remote_fail(remote, &e);
}

int remote_run(struct remote *remote, const struct remote_request *req)
{
	struct fetch_reply reply;
	struct err         e = { 0 };

	if (remote_send(remote, req, &reply, &e) != RC_OK)
		return remote_fail(remote, &e);
	return remote_show(remote, &reply);
}
