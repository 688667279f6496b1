/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "cli/call/remote.h"
#include "cli/term/args.h"
#include "cli/call/call.h"
#include "cli/cli.h"
#include "cli/term/commands.h"
#include "cli/term/show.h"
#include "fake_server.h"
#include "truth/test_clock.h"

enum { ARGS_MAX = 24, NOW_SEC = 1800000000 };

/* ---- the command line ---- */

/* "a b 'c'" as an argument vector, in a copy of the text. Words are separated by single blanks. */
struct line {
	char  text[256];
	char *argv[ARGS_MAX + 1];
	int   argc;
};

static void split(struct line *l, const char *text)
{
	*l = (struct line){ .argc = 1 };
	l->argv[0] = l->text;
	CHECK((size_t)snprintf(l->text + 1, sizeof(l->text) - 1, "%s", text) < sizeof(l->text) - 1);
	for (char *at = l->text + 1; *at;) {
		CHECK(l->argc < ARGS_MAX);
		l->argv[l->argc++] = at;
		at = strchrnul(at, ' ');
		if (*at)
			*at++ = '\0';
	}
}

TEST(a_right_command_line_is_understood)
{
	static const struct {
		const char         *line;
		enum cli_command_id command;
		const char         *operand; /* the first, or NULL */
		enum cli_option_id  option;
		const char         *value;
	} cases[] = {
		{ "sandbox claim --track t-1", CLI_COMMAND_SANDBOX_CLAIM, NULL, CLI_OPTION_TRACK, "t-1" },
		{ "sandbox claim --track=t-1", CLI_COMMAND_SANDBOX_CLAIM, NULL, CLI_OPTION_TRACK, "t-1" },
		{ "sandbox claim --track=a=b", CLI_COMMAND_SANDBOX_CLAIM, NULL, CLI_OPTION_TRACK, "a=b" },
		{ "--track t-1 sandbox claim", CLI_COMMAND_SANDBOX_CLAIM, NULL, CLI_OPTION_TRACK, "t-1" },
		{ "sandbox --json show sb-1", CLI_COMMAND_SANDBOX_SHOW, "sb-1", CLI_OPTION_JSON, "" },
		{ "sandbox show --json sb-1", CLI_COMMAND_SANDBOX_SHOW, "sb-1", CLI_OPTION_JSON, "" },
		{ "sandbox show --json -- --odd", CLI_COMMAND_SANDBOX_SHOW, "--odd", CLI_OPTION_JSON, "" },
		{ "sandbox retry-deletion --all", CLI_COMMAND_SANDBOX_RETRY_DELETION, NULL, CLI_OPTION_ALL, "" },
		{ "job run sync --async", CLI_COMMAND_JOB_RUN, "sync", CLI_OPTION_ASYNC, "" },
		{ "serve --listen 127.0.0.1:0", CLI_COMMAND_SERVE, NULL, CLI_OPTION_LISTEN, "127.0.0.1:0" },
		{ "job run sync --force", CLI_COMMAND_JOB_RUN, "sync", CLI_OPTION_FORCE, "" },
		{ "sandbox bulk-delete --status=stale", CLI_COMMAND_SANDBOX_BULK_DELETE, NULL, CLI_OPTION_STATUS,
		  "stale" },
		{ "help sandbox --man", CLI_COMMAND_HELP, "sandbox", CLI_OPTION_MAN, "" },
		{ "lease request --template t --wait", CLI_COMMAND_LEASE_REQUEST, NULL, CLI_OPTION_WAIT, "" },
		{ "lease request --wait --template t", CLI_COMMAND_LEASE_REQUEST, NULL, CLI_OPTION_WAIT, "" },
		{ "lease request --wait 60 --template t", CLI_COMMAND_LEASE_REQUEST, NULL, CLI_OPTION_WAIT, "60" },
		{ "lease list --watch", CLI_COMMAND_LEASE_LIST, NULL, CLI_OPTION_WATCH, "" },
		{ "lease list --watch 5", CLI_COMMAND_LEASE_LIST, NULL, CLI_OPTION_WATCH, "5" },
		{ "lease wait 3f2a --wait=9", CLI_COMMAND_LEASE_WAIT, "3f2a", CLI_OPTION_WAIT, "9" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err      e = { 0 };
		struct cli_args args;
		struct line     l;

		CASE(cases[i].line);
		split(&l, cases[i].line);
		CHECK(cli_parse(l.argc, l.argv, &args, &e) == RC_OK);
		CHECK(args.command == &cli_commands[cases[i].command]);
		CHECK(args.operand_count == (cases[i].operand ? 1 : 0));
		CHECK(!cases[i].operand || strcmp(args.operands[0], cases[i].operand) == 0);
		CHECK(args.values[cases[i].option] && strcmp(args.values[cases[i].option], cases[i].value) == 0);
	}
}

TEST(a_wrong_command_line_is_refused_with_what_would_be_right)
{
	static const struct {
		const char *line, *message;
	} cases[] = {
		{ "", "a command is missing" },
		{ "sandboxes", "there is no command 'sandboxes'" },
		{ "sandbox", "sandbox needs one of: claim, show, give-back" },
		{ "sandbox eat", "there is no command 'sandbox eat'; sandbox has: claim, show, give-back" },
		{ "sandbox clame", "there is no command 'sandbox clame'; sandbox has: claim" },
		{ "claim", "there is no command 'claim'; did you mean 'sandbox claim'?" },
		{ "clame sb-1", "there is no command 'clame'; did you mean 'sandbox claim'?" },
		{ "sandbx show sb-1", "there is no command 'sandbx'; did you mean 'sandbox show'?" },
		{ "sandboxs", "did you mean 'sandbox'?" },
		{ "srve", "did you mean 'serve'?" },
		{ "foo", "there is no command 'foo'; see: leasehold help" },
		{ "sandbox show", "sandbox show needs ID: leasehold sandbox show ID" },
		{ "sandbox show a b", "'b' is too much" },
		{ "sandbox show ", "sandbox show needs ID" },
		{ "sandbox claim --colour", "sandbox claim has no option --colour; see: leasehold help sandbox claim" },
		{ "sandbox claim --trak x", "sandbox claim has no option --trak; did you mean --track?" },
		{ "sandbox claim --track t --watch", "sandbox claim has no option --watch" },
		{ "sandbox claim --trak=s3cret", "sandbox claim has no option --trak; did you mean --track?" },
		{ "sandbox stats --trak x", "sandbox stats has no option --trak; see: leasehold help sandbox stats" },
		{ "--trak x sandbox claim", "leasehold has no option --trak; did you mean --track?" },
		{ "sandbox stats -v", "sandbox stats has no option -v" },
		{ "sandbox claim --token s3cret", "sandbox claim has no option --token" },
		{ "sandbox claim -x", "sandbox claim has no option -x" },
		{ "sandbox claim --track", "--track needs a value" },
		{ "sandbox claim --track a --track b", "--track is given twice" },
		{ "sandbox list --all=yes", "--all takes no value" },
		{ "sandbox stats --wait 5", "sandbox stats has no option --wait" },
		{ "completion", "completion needs SHELL" },
		{ "help a b c", "'c' is too much" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err      e = { 0 };
		struct cli_args args;
		struct line     l;

		CASE(cases[i].line);
		split(&l, cases[i].line);
		CHECK(cli_parse(l.argc, l.argv, &args, &e) == RC_INVALID);
		CHECK(strstr(e.msg, cases[i].message));
		CHECK(!strstr(e.msg, "s3cret"));
	}
}

TEST(the_version_may_be_asked_for_as_an_option)
{
	static const char *const lines[] = { "version", "--version", "-v" };

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct err      e = { 0 };
		struct cli_args args;
		struct line     l;

		CASE(lines[i]);
		split(&l, lines[i]);
		CHECK(cli_parse(l.argc, l.argv, &args, &e) == RC_OK);
		CHECK(args.command == &cli_commands[CLI_COMMAND_VERSION] && !args.wants_help);
	}
}

TEST(the_command_table_keeps_its_rules)
{
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) {
		const struct cli_command *c = &cli_commands[i];

		CASE(c->name);
		CHECK(c->min <= c->max && c->max < CLI_WORDS_MAX);
		CHECK((c->max > 0) == (c->operands[0] != '\0'));
		for (enum cli_option_id id = 0; id < CLI_OPTION__COUNT; id++)
			CHECK(!cli_option_is_in(id, c->needed) || !cli_option_is_in(id, c->optional));
		CHECK(c->summary[0] && c->summary[strlen(c->summary) - 1] != '.');
		CHECK(str_starts_with(str_from(c->examples), STR("leasehold ")) || strstr(c->examples, "leasehold"));
	}
}

TEST(each_command_that_asks_a_server_has_a_row)
{
	for (size_t i = 0; i < CLI_COMMAND__COUNT; i++) {
		const struct call *c = &calls[i];

		CASE(cli_commands[i].name);
		CHECK((cli_commands[i].place == CLI_PLACE_API) == (c->run || c->path));
		CHECK(!c->path || c->method);
		CHECK(!c->items || c->columns);
		CHECK(!c->finish || (!c->note && !c->print && !c->columns && !c->exit_code));
	}
}

/* ---- what people see ---- */

TEST(times_are_told_as_people_say_them)
{
	static const struct {
		int64_t     seconds;
		const char *text;
	} cases[] = {
		{ 0, "now" },          { 1, "in 1 s" },
		{ -59, "59 s ago" },   { 60, "in 1 min" },
		{ 3599, "in 59 min" }, { 14399, "in 3 h 59 min" },
		{ 3600, "in 1 h" },    { -7260, "2 h 1 min ago" },
		{ 86400, "in 1 d" },   { 90000, "in 1 d 1 h" },
	};
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CASE(cases[i].text);
		CHECK(str_eq(show_relative(&a, cases[i].seconds), str_from(cases[i].text)));
	}
	setenv("TZ", "UTC", 1);
	CHECK(str_eq(show_time(&a, NOW_SEC + 14399, wall_from_sec(NOW_SEC)),
	             STR("2027-01-15 11:59:59 UTC (in 3 h 59 min)")));
	CHECK(str_eq(show_time(&a, 0, wall_from_sec(NOW_SEC)), STR("")));
	arena_fini(&a);
}

/* What fn writes, as text in the arena. */
static struct str print_table(struct arena *a, const struct table *t, bool is_coloured)
{
	char      *text = NULL;
	size_t     size = 0;
	FILE      *out = open_memstream(&text, &size);
	struct str ret;

	CHECK(out);
	table_print(t, out, is_coloured);
	fclose(out);
	ret = str_dup(a, str_of(text, size));
	free(text);
	return ret;
}

TEST(columns_are_as_wide_as_their_widest_cell)
{
	static const char *const headings[] = { "ID", "NAME", "STATUS" };
	struct arena             a = { 0 };
	struct table             t;
	struct table_row        *row;

	table_init(&t, &a, headings, ARRAY_LEN(headings));
	row = table_add_row(&t);
	row->cells[0] = STR("sandbox-1");
	row->cells[1] = STR("\xc3\xa9t\xc3\xa9");
	row->cells[2] = STR("available");
	row = table_add_row(&t);
	row->cells[0] = STR("s");
	row->cells[2] = STR("deletion_failed");
	CHECK(str_eq(print_table(&a, &t, false), STR("ID         NAME  STATUS\n"
	                                             "sandbox-1  \xc3\xa9t\xc3\xa9   available\n"
	                                             "s          -     deletion_failed\n")));
	CHECK(strstr(print_table(&a, &t, true).p, "\033[31mdeletion_failed\033[0m\n"));
	arena_fini(&a);
}

TEST(text_of_the_server_cannot_steer_the_terminal)
{
	struct arena a = { 0 };
	struct err   e = { 0 };
	json_t      *object = NULL;
	struct wall  now = { 0 };

	CHECK(json_parse(STR("{\"name\": \"a\\u001b[31mb\\nc\\u009bd\", \"ok\": true, \"none\": null, \"n\": 5, "
	                     "\"list\": [1, \"\\u007f\"]}"),
	                 &object, &e) == RC_OK);
	CHECK(str_eq(show_member(&a, object, "name", now), STR("a?[31mb?c??d")));
	CHECK(str_eq(show_member(&a, object, "ok", now), STR("yes")));
	CHECK(str_eq(show_member(&a, object, "none", now), STR("")));
	CHECK(str_eq(show_member(&a, object, "n", now), STR("5")));
	CHECK(str_eq(show_member(&a, object, "list", now), STR("[1,\"?\"]")));
	json_decref(object);
	arena_fini(&a);
}

/* ---- whole runs against a server ---- */

static const char *const *env_table; /* name, value, name, value ..., NULL */

static const char *fake_env(const char *name)
{
	for (size_t i = 0; env_table && env_table[i]; i += 2)
		if (strcmp(env_table[i], name) == 0)
			return env_table[i + 1];
	return NULL;
}

static const char *const both_tokens[] = { "BROKER_API_TOKEN", "track-t0ken, older", "BROKER_ADMIN_TOKEN",
	                                   "admin-t0ken", NULL };

enum { ASKED_MAX = 8 };

/* What the server answers, in turn (the last one again and again), and what it was asked. */
struct script {
	struct fake_reply replies[ASKED_MAX];
	size_t            reply_count;
	char              asked[ASKED_MAX][256];
	char              headers[ASKED_MAX][1024];
	char              body[256];
	size_t            count;
};

static struct fake_reply answer(const struct fake_request *req, size_t number, void *arg)
{
	struct script *s = arg;
	size_t         at = number < s->reply_count ? number : s->reply_count - 1;

	if (number < ASKED_MAX) {
		(void)snprintf(s->asked[number], sizeof(s->asked[number]), "%s %s", req->method, req->target);
		(void)snprintf(s->headers[number], sizeof(s->headers[number]), "%s", req->headers);
		(void)snprintf(s->body, sizeof(s->body), "%s", req->body);
	}
	s->count = number + 1;
	return s->replies[at];
}

struct run {
	struct script       script;
	struct fake_server *server;
	struct clock        clock;
	const char         *typed; /* what somebody at a terminal answers; NULL: there is no terminal */
	FILE               *in;    /* closed by the run; NULL: what was typed */
	size_t              width; /* of the terminal */
	char               *out, *err;
	size_t              out_size, err_size;
	int                 code;
};

static void open_run(struct run *r, int status, const char *body)
{
	*r = (struct run){ .clock = clock_test((int64_t)NOW_SEC * 1000), .code = -1 };
	r->script.replies[0] = (struct fake_reply){ .status = status, .body = body };
	r->script.reply_count = 1;
	r->server = fake_server_open(answer, &r->script);
}

static void run_at(struct run *r, const char *address, const char *text)
{
	char          typed[64] = "\n";
	struct cli_io io = { .is_in_terminal = r->typed != NULL,
		             .is_err_terminal = r->typed != NULL,
		             .out = open_memstream(&r->out, &r->out_size),
		             .err = open_memstream(&r->err, &r->err_size),
		             .env = fake_env,
		             .clock = &r->clock,
		             .poll_ms = 1,
		             .width = r->width };
	struct arena  a = { 0 };
	struct line   l;

	(void)snprintf(typed, sizeof(typed), "%s\n", r->typed ? r->typed : ""); /* fits */
	io.in = r->in ? r->in : fmemopen(typed, strlen(typed), "r");
	split(&l, address ? str_format(&a, "%s --address %s", text, address).p : text);
	arena_fini(&a);
	r->code = cli_run(&io, l.argc, l.argv);
	fclose(io.in);
	fclose(io.out);
	fclose(io.err);
}

static void run(struct run *r, const char *text)
{
	run_at(r, fake_server_url(r->server, ""), text);
}

static void close_run(struct run *r)
{
	fake_server_close(r->server);
	free(r->out);
	free(r->err);
}

/* A whole header line of request number i. */
static bool was_sent(const struct run *r, size_t i, const char *line)
{
	return fake_request_has(&(struct fake_request){ .headers = r->script.headers[i] }, line);
}

TEST(each_command_is_one_call_of_the_api)
{
	static const struct {
		const char *line, *asked, *header;
	} cases[] = {
		{ "sandbox claim --track t", "POST /v1/allocate", "X-Track-ID: t" },
		{ "sandbox claim --track t --key k", "POST /v1/allocate", "Idempotency-Key: k" },
		{ "sandbox claim --track t --prefix eu-", "POST /v1/allocate", "X-Sandbox-Name-Prefix: eu-" },
		{ "sandbox claim --track t --lab L", "POST /v1/allocate", "X-Instruqt-Track-ID: L" },
		{ "sandbox claim --track t --wait 7", "POST /v1/allocate", "Prefer: wait=7" },
		{ "sandbox claim --track t", "POST /v1/allocate", "Authorization: Bearer track-t0ken" },
		{ "sandbox show a/b", "GET /v1/admin/sandboxes/a%2Fb", "Authorization: Bearer admin-t0ken" },
		{ "sandbox show s --track t", "GET /v1/sandboxes/s", "Authorization: Bearer track-t0ken" },
		{ "sandbox give-back s --track t", "POST /v1/sandboxes/s/mark-for-deletion", "X-Track-ID: t" },
		{ "sandbox list", "GET /v1/admin/sandboxes?limit=50", "Authorization: Bearer admin-t0ken" },
		{ "sandbox list --status stale --limit 3", "GET /v1/admin/sandboxes?limit=3&status=stale", NULL },
		{ "sandbox stats", "GET /v1/admin/stats", NULL },
		{ "sandbox quarantine s", "POST /v1/admin/sandboxes/s/quarantine", "Content-Length: 0" },
		{ "sandbox quarantine s --reason x", "POST /v1/admin/sandboxes/s/quarantine",
		  "Content-Type: application/json" },
		{ "sandbox release s", "POST /v1/admin/sandboxes/s/release", NULL },
		{ "sandbox delete s", "POST /v1/admin/sandboxes/s/delete", "Authorization: Bearer admin-t0ken" },
		{ "sandbox retry-deletion s", "POST /v1/admin/sandboxes/s/retry-deletion", NULL },
		{ "sandbox retry-deletion --all", "POST /v1/admin/retry-failed-deletions", NULL },
		{ "sandbox bulk-delete --status a&b --yes", "POST /v1/admin/bulk-delete?status=a%26b",
		  "Authorization: Bearer admin-t0ken" },
		{ "sandbox remove-stale", "POST /v1/admin/auto-delete-stale?grace_period_hours=24", NULL },
		{ "sandbox remove-stale --hours 72", "POST /v1/admin/auto-delete-stale?grace_period_hours=72",
		  "Authorization: Bearer admin-t0ken" },
		{ "job list", "GET /v1/admin/jobs", NULL },
		{ "job run sync", "POST /v1/admin/jobs/sync/run", NULL },
		{ "job run sync --async", "POST /v1/admin/jobs/sync/run", "Prefer: respond-async" },
		{ "job run sync --force", "POST /v1/admin/sync?force=true", NULL },
		{ "job run sync --force --async", "POST /v1/admin/sync?force=true", "Prefer: respond-async" },
		{ "job pause sync", "POST /v1/admin/jobs/sync/pause", NULL },
		{ "job resume sync", "POST /v1/admin/jobs/sync/resume", NULL },
		{ "event list", "GET /v1/ops/events?jobs=no&limit=50", "Authorization: Bearer admin-t0ken" },
		{ "event list --type S* --subject a/b --actor me --since 1 --until 2 --oldest --limit 3",
		  "GET /v1/ops/events?limit=3&type=S%2A&subject=a%2Fb&actor=me&since=1&until=2&order=oldest", NULL },
		{ "event show e-1", "GET /v1/ops/events/e-1", NULL },
		{ "event export --type A*", "GET /v1/ops/events/export?type=A%2A", NULL },
		{ "queue list", "GET /v1/ops/queues", NULL },
		{ "queue show a/b", "GET /v1/ops/queues/a%2Fb/lanes?limit=50", NULL },
		{ "dlq list --queue q", "GET /v1/ops/dead-letters?limit=50&queue=q", NULL },
		{ "dlq show d", "GET /v1/ops/dead-letters/d", NULL },
		{ "dlq replay d", "POST /v1/ops/dead-letters/d/replay", NULL },
		{ "dlq replay --all --queue q", "POST /v1/ops/dead-letters/replay?queue=q", NULL },
		{ "dlq drop d --reason x", "POST /v1/ops/dead-letters/d/drop", "Content-Type: application/json" },
		{ "timer list --prefix a/", "GET /v1/ops/timers?limit=50&prefix=a%2F", NULL },
		{ "timer fire a/b#c", "POST /v1/ops/timers/a%2Fb%23c/fire", NULL },
		{ "timer cancel a/b#c", "DELETE /v1/ops/timers/a%2Fb%23c", NULL },
		{ "saga list --state parked", "GET /v1/ops/sagas?limit=50&state=parked", NULL },
		{ "saga show a/1", "GET /v1/ops/sagas/a%2F1", NULL },
		{ "saga retry a/1", "POST /v1/ops/sagas/a%2F1/retry", NULL },
		{ "saga skip a/1 --reason x", "POST /v1/ops/sagas/a%2F1/skip", "Content-Type: application/json" },
		{ "saga abort a/1 --reason x", "POST /v1/ops/sagas/a%2F1/abort", "Content-Type: application/json" },
		{ "alarm list", "GET /v1/ops/alarms", NULL },
		{ "webhook list", "GET /v1/ops/webhooks", NULL },
		{ "webhook create --url https://x", "POST /v1/ops/webhooks", "Content-Type: application/json" },
		{ "webhook change w --pause", "PATCH /v1/ops/webhooks/w", "Content-Type: application/json" },
		{ "webhook remove w", "DELETE /v1/ops/webhooks/w", NULL },
		{ "webhook test w", "POST /v1/ops/webhooks/w/test", NULL },
	};

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].line);
		open_run(&r, 200, "{\"sandbox_id\": \"s\"}");
		run(&r, cases[i].line);
		CHECK(r.code == CLI_EXIT_OK);
		CHECK(r.script.count == 1);
		CHECK(strcmp(r.script.asked[0], cases[i].asked) == 0);
		CHECK(!cases[i].header || was_sent(&r, 0, cases[i].header));
		CHECK(!strstr(r.out, "t0ken") && !strstr(r.err, "t0ken"));
		close_run(&r);
	}
}

TEST(each_answer_has_its_exit_code)
{
#define ERROR(code) "{\"error\": {\"code\": \"" code "\", \"message\": \"said why\", \"request_id\": \"r-1\"}}"
	static const struct {
		int         status;
		const char *body;
		int         code;
		const char *advice;
	} cases[] = {
		{ 201, "{}", CLI_EXIT_OK, "" },
		{ 400, ERROR("INVALID_TRACK_ID"), CLI_EXIT_REFUSED, "--track" },
		{ 401, ERROR("UNAUTHORIZED"), CLI_EXIT_NOT_ALLOWED, "LEASEHOLD_TOKEN" },
		{ 403, ERROR("FORBIDDEN"), CLI_EXIT_NOT_ALLOWED, "BROKER_ADMIN_TOKEN" },
		{ 403, ERROR("NOT_SANDBOX_OWNER"), CLI_EXIT_NOT_ALLOWED, "--track" },
		{ 404, ERROR("SANDBOX_NOT_FOUND"), CLI_EXIT_NOT_FOUND, "leasehold sandbox list" },
		{ 409, ERROR("NO_SANDBOXES_AVAILABLE"), CLI_EXIT_EMPTY, "--wait" },
		{ 409, ERROR("CONFLICT"), CLI_EXIT_REFUSED, "" },
		{ 429, ERROR("RATE_LIMIT_EXCEEDED"), CLI_EXIT_REFUSED, "again" },
		{ 500, ERROR("INTERNAL_ERROR"), CLI_EXIT_REFUSED, "r-1" },
		{ 503, ERROR("SERVICE_UNAVAILABLE"), CLI_EXIT_UNREACHABLE, "job list" },
		{ 502, "<html>", CLI_EXIT_UNREACHABLE, "answered 502" },
		{ 200, "<html>", CLI_EXIT_REFUSED, "cannot be understood" },
		{ 302, "", CLI_EXIT_REFUSED, "answered 302" },
	};

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].body);
		open_run(&r, cases[i].status, cases[i].body);
		run(&r, "sandbox claim --track t");
		CHECK(r.code == cases[i].code);
		CHECK(strstr(r.err, cases[i].advice));
		CHECK((r.err_size == 0) == (cases[i].code == CLI_EXIT_OK));
		CHECK(!strstr(cases[i].body, "said why") || strstr(r.err, "said why"));
		close_run(&r);
	}
}

TEST(nobody_listening_is_exit_code_6)
{
	struct run r;
	char       url[64];

	env_table = both_tokens;
	open_run(&r, 200, "{}");
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", fake_closed_port()); /* fits */
	run_at(&r, url, "sandbox stats");
	CHECK(r.code == CLI_EXIT_UNREACHABLE);
	CHECK(strstr(r.err, "LEASEHOLD_ADDRESS"));
	close_run(&r);
}

TEST(the_wrong_scheme_is_told_from_a_server_that_is_not_there)
{
	struct run r;
	char       hint[96];

	env_table = both_tokens;
	CASE("http:// to a port that closes without an answer, as one for TLS does");
	open_run(&r, 200, "{}");
	r.script.replies[0] = (struct fake_reply){ .raw = "" };
	run(&r, "sandbox stats");
	(void)snprintf(hint, sizeof(hint), "If the server speaks HTTPS, try https://127.0.0.1:%d/v1\n",
	               fake_server_port(r.server)); /* fits */
	CHECK(r.code == CLI_EXIT_UNREACHABLE && strstr(r.err, hint));
	close_run(&r);

	CASE("http:// to a port that answers with a TLS alert");
	open_run(&r, 200, "{}");
	r.script.replies[0] = (struct fake_reply){ .raw = "\x15\x03\x01\x02\x02\x46" };
	run(&r, "sandbox stats");
	CHECK(r.code == CLI_EXIT_UNREACHABLE && strstr(r.err, "If the server speaks HTTPS, try https://127.0.0.1:"));
	close_run(&r);
}

/* Answers the first connection with plain text, whatever it says. Checks nothing: that is for the test's own thread. */
static void *answer_plainly(void *arg)
{
	static const char answer_text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	int               fd = accept(*(int *)arg, NULL, NULL);
	char              hello[2048];

	if (fd >= 0 && read(fd, hello, sizeof(hello)) > 0)
		(void)!write(fd, answer_text, sizeof(answer_text) - 1); /* the client sees whether it came */
	if (fd >= 0)
		close(fd);
	return NULL;
}

TEST(https_to_a_plain_port_is_told)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t          size = sizeof(at);
	int                listener = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t          thread;
	char               url[64];
	struct run         r;

	CHECK(listener >= 0 && bind(listener, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(listener, 1) == 0);
	CHECK(getsockname(listener, (struct sockaddr *)&at, &size) == 0);
	CHECK(pthread_create(&thread, NULL, answer_plainly, &listener) == 0);
	env_table = both_tokens;
	open_run(&r, 200, "{}");
	(void)snprintf(url, sizeof(url), "https://me:s3cret@127.0.0.1:%d", ntohs(at.sin_port)); /* fits */
	run_at(&r, url, "sandbox stats");
	shutdown(listener, SHUT_RDWR); /* ends an accept() that nobody came to */
	pthread_join(thread, NULL);
	close(listener);
	CHECK(r.code == CLI_EXIT_UNREACHABLE);
	CHECK(strstr(r.err, "The server answers, but not in HTTPS: try http://127.0.0.1:"));
	CHECK(!strstr(r.err, "s3cret"));
	close_run(&r);
}

TEST(removing_many_is_asked_about_at_a_terminal)
{
	static const struct {
		const char *typed;
		int         code;
		size_t      asked;
	} cases[] = { { "yes", CLI_EXIT_OK, 1 },
		      { "y", CLI_EXIT_USAGE, 0 },
		      { "", CLI_EXIT_USAGE, 0 },
		      { "yes, but not all", CLI_EXIT_USAGE, 0 } };

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].typed);
		open_run(&r, 200, "{\"deleted\": 3}");
		r.typed = cases[i].typed;
		run(&r, "sandbox bulk-delete --status stale");
		CHECK(r.code == cases[i].code && r.script.count == cases[i].asked);
		CHECK(strstr(r.err, "all sandboxes that are stale"));
		CHECK((r.code == CLI_EXIT_OK) == !strstr(r.err, "nothing was done"));
		close_run(&r);
	}
}

TEST(mistakes_found_before_sending_send_nothing)
{
	static const char *const no_tokens[] = { NULL };
	static const char *const bad_token[] = { "LEASEHOLD_TOKEN", "a b", NULL };
	static const struct {
		const char        *line;
		const char *const *env;
		int                code;
		const char        *message;
	} cases[] = {
		{ "sandbox stats", no_tokens, CLI_EXIT_NOT_ALLOWED, "set LEASEHOLD_TOKEN or BROKER_ADMIN_TOKEN" },
		{ "sandbox claim --track t", no_tokens, CLI_EXIT_NOT_ALLOWED, "BROKER_API_TOKEN" },
		{ "sandbox stats", bad_token, CLI_EXIT_USAGE, "visible ASCII" },
		{ "sandbox stats --token-file no/such/file", both_tokens, CLI_EXIT_USAGE, "no/such/file" },
		{ "sandbox claim", both_tokens, CLI_EXIT_USAGE, "--track" },
		{ "sandbox claim --track t --wait soon", both_tokens, CLI_EXIT_USAGE, "0 to 86400" },
		{ "sandbox claim --track t --wait 86401", both_tokens, CLI_EXIT_USAGE, "0 to 86400" },
		{ "sandbox list --limit 101", both_tokens, CLI_EXIT_USAGE, "1 to 100" },
		{ "sandbox retry-deletion", both_tokens, CLI_EXIT_USAGE, "an ID or --all" },
		{ "sandbox retry-deletion s --all", both_tokens, CLI_EXIT_USAGE, "an ID or --all" },
		{ "sandbox bulk-delete --yes", both_tokens, CLI_EXIT_USAGE, "give --status" },
		{ "sandbox bulk-delete --status stale", both_tokens, CLI_EXIT_USAGE, "add --yes" },
		{ "sandbox remove-stale --hours 0", both_tokens, CLI_EXIT_USAGE, "1 to 8760" },
		{ "job run cleanup --force", both_tokens, CLI_EXIT_USAGE, "--force is for sync only, not for cleanup" },
		{ "dlq replay", both_tokens, CLI_EXIT_USAGE, "either an ID, or --all and --queue" },
		{ "dlq replay d --all --queue q", both_tokens, CLI_EXIT_USAGE, "either an ID, or --all and --queue" },
		{ "dlq replay --all", both_tokens, CLI_EXIT_USAGE, "either an ID, or --all and --queue" },
		{ "dlq replay d --queue q", both_tokens, CLI_EXIT_USAGE, "either an ID, or --all and --queue" },
		{ "dlq drop d", both_tokens, CLI_EXIT_USAGE, "--reason TEXT is needed" },
		{ "saga abort s --reason=", both_tokens, CLI_EXIT_USAGE, "--reason TEXT is needed" },
		{ "webhook create", both_tokens, CLI_EXIT_USAGE, "--url URL is needed" },
		{ "webhook change w", both_tokens, CLI_EXIT_USAGE, "nothing to change" },
		{ "webhook change w --pause --resume", both_tokens, CLI_EXIT_USAGE, "not both" },
		{ "event list --limit 101", both_tokens, CLI_EXIT_USAGE, "1 to 100" },
		{ "event watch --limit 0", both_tokens, CLI_EXIT_USAGE, "--limit must be a number" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].line);
		env_table = cases[i].env;
		open_run(&r, 200, "{}");
		run(&r, cases[i].line);
		CHECK(r.code == cases[i].code);
		CHECK(strstr(r.err, cases[i].message));
		CHECK(r.script.count == 0);
		close_run(&r);
	}
	env_table = both_tokens;
	struct run r;

	CASE("an address that is none");
	open_run(&r, 200, "{}");
	run_at(&r, "127.0.0.1:8080", "sandbox stats");
	CHECK(r.code == CLI_EXIT_USAGE && strstr(r.err, "http://host:8080"));
	close_run(&r);
}

TEST(an_address_with_a_path_is_used_as_it_is)
{
	struct run r;
	char       url[64];

	env_table = both_tokens;
	open_run(&r, 200, "{}");
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/broker/v9/", fake_server_port(r.server)); /* fits */
	run_at(&r, url, "sandbox stats");
	CHECK(strcmp(r.script.asked[0], "GET /broker/v9/admin/stats") == 0);
	close_run(&r);
}

TEST(show_takes_the_route_that_the_token_allows)
{
	static const char *const track_only[] = { "BROKER_API_TOKEN", "t0ken", "LEASEHOLD_TRACK", "lab", NULL };
	static const char *const both[] = { "BROKER_API_TOKEN", "t0ken", "LEASEHOLD_TRACK", "lab", "BROKER_ADMIN_TOKEN",
		                            "admin-t0ken",      NULL };
	static const char *const any[] = { "LEASEHOLD_TOKEN", "t0ken", NULL };
	static const char *const any_with_track[] = { "LEASEHOLD_TOKEN", "t0ken", "LEASEHOLD_TRACK", "lab", NULL };
	static const struct {
		const char        *label;
		const char *const *env;
		const char        *asked;
	} cases[] = {
		{ "only a track's token", track_only, "GET /v1/sandboxes/s" },
		{ "an operator's token too", both, "GET /v1/admin/sandboxes/s" },
		{ "a token of unknown kind", any, "GET /v1/admin/sandboxes/s" },
		{ "a token of unknown kind and a track", any_with_track, "GET /v1/sandboxes/s" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].label);
		env_table = cases[i].env;
		open_run(&r, 200, "{}");
		run(&r, "sandbox show s");
		CHECK(r.code == CLI_EXIT_OK && strcmp(r.script.asked[0], cases[i].asked) == 0);
		close_run(&r);
	}
}

TEST(json_is_printed_as_it_came)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 200, "{ \"total\":3,\n \"x\":1.50 }");
	run(&r, "sandbox stats --json");
	CHECK(strcmp(r.out, "{ \"total\":3,\n \"x\":1.50 }\n") == 0);
	close_run(&r);

	CASE("an error too");
	open_run(&r, 404, ERROR("SANDBOX_NOT_FOUND"));
	run(&r, "sandbox release s --json");
	CHECK(strcmp(r.out, ERROR("SANDBOX_NOT_FOUND") "\n") == 0);
	CHECK(r.code == CLI_EXIT_NOT_FOUND && strstr(r.err, "said why"));
	close_run(&r);
}

TEST(a_claim_is_shown_with_its_times)
{
	struct run r;

	setenv("TZ", "UTC", 1);
	env_table = both_tokens;
	open_run(&r, 200, "{\"sandbox_id\": \"sb-1\", \"expires_at\": 1800014399, \"sfdc_account_id\": null}");
	run(&r, "sandbox claim --track t");
	CHECK(strcmp(r.out, "sandbox_id       sb-1\n"
	                    "expires_at       2027-01-15 11:59:59 UTC (in 3 h 59 min)\n"
	                    "sfdc_account_id  -\n") == 0);
	CHECK(strstr(r.err, "already held this one"));
	close_run(&r);
}

TEST(a_claim_that_waits_asks_again_while_time_is_left)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 409, ERROR("NO_SANDBOXES_AVAILABLE"));
	r.script.replies[0].headers = "Retry-After: 1\r\n";
	r.script.replies[1] = (struct fake_reply){ .status = 201, .body = "{\"sandbox_id\": \"sb-9\"}" };
	r.script.reply_count = 2;
	run(&r, "sandbox claim --track t --wait 30");
	CHECK(r.code == CLI_EXIT_OK && strstr(r.out, "sb-9"));
	CHECK(r.script.count == 2);
	CHECK(was_sent(&r, 0, "Prefer: wait=30"));
	CHECK(strstr(r.script.headers[1], "Prefer: wait=") && !was_sent(&r, 1, "Prefer: wait=30"));
	close_run(&r);
}

TEST(who_has_waited_is_not_told_to_wait_in_line)
{
	static const struct {
		const char *line, *advice;
	} cases[] = {
		{ "sandbox claim --track t --wait 1", "Wait longer, or try again later." },
		{ "sandbox claim --track t --wait 0", "Wait in line with --wait" },
		{ "sandbox claim --track t", "Wait in line with --wait" },
	};

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].line);
		open_run(&r, 409, ERROR("NO_SANDBOXES_AVAILABLE"));
		run(&r, cases[i].line);
		CHECK(r.code == CLI_EXIT_EMPTY && strstr(r.err, cases[i].advice));
		CHECK(!strstr(r.err, "in line") == !strstr(cases[i].advice, "in line"));
		close_run(&r);
	}
}

TEST(a_reason_has_a_column_where_there_is_one)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 200,
	         "{\"sandboxes\": [{\"sandbox_id\": \"a\", \"quarantine_reason\": null}, {\"sandbox_id\": \"b\"}, "
	         "{\"sandbox_id\": \"c\", \"quarantine_reason\": \"login fails\"}], \"cursor\": null}");
	run(&r, "sandbox list");
	CHECK(strcmp(r.out, "ID  NAME  STATUS  TRACK  EXPIRES  REASON\n"
	                    "a   -     -       -      -        -\n"
	                    "b   -     -       -      -        -\n"
	                    "c   -     -       -      -        login fails\n") == 0);
	close_run(&r);
}

TEST(all_pages_are_followed)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 200, "{\"sandboxes\": [{\"sandbox_id\": \"a\", \"status\": \"available\"}], \"cursor\": \"x/y\"}");
	r.script.replies[1] = (struct fake_reply){
		.status = 200,
		.body = "{\"sandboxes\": [{\"sandbox_id\": \"b\", \"status\": \"stale\"}], \"cursor\": null}"
	};
	r.script.reply_count = 2;
	run(&r, "sandbox list --all");
	CHECK(strcmp(r.script.asked[0], "GET /v1/admin/sandboxes?limit=100") == 0);
	CHECK(strcmp(r.script.asked[1], "GET /v1/admin/sandboxes?limit=100&cursor=x%2Fy") == 0);
	CHECK(r.script.count == 2);
	CHECK(strcmp(r.out, "ID  NAME  STATUS     TRACK  EXPIRES\n"
	                    "a   -     available  -      -\n"
	                    "b   -     stale      -      -\n") == 0);
	close_run(&r);

	CASE("without --all only one, and a hint");
	open_run(&r, 200, "{\"sandboxes\": [], \"cursor\": \"x\"}");
	run(&r, "sandbox list");
	CHECK(r.script.count == 1 && strstr(r.err, "--all"));
	close_run(&r);

	CASE("a cursor that leads nowhere does not loop");
	open_run(&r, 200, "{\"sandboxes\": [], \"cursor\": \"x\"}");
	run(&r, "sandbox list --all");
	CHECK(r.code == CLI_EXIT_REFUSED && r.script.count == 2);
	close_run(&r);
}

TEST(a_long_run_is_followed_to_its_end)
{
#define JOBS(running, outcome, error)                                                                        \
	"{\"jobs\": [{\"name\": \"expiry\", \"running\": false}, {\"name\": \"sync\", \"running\": " running \
	", \"last_outcome\": " outcome ", \"last_error\": " error ", \"last_result\": {\"synced\": 42}}]}"
	static const struct {
		const char *label, *end;
		int         code;
	} cases[] = {
		{ "a good end", JOBS("false", "\"success\"", "null"), CLI_EXIT_OK },
		{ "a bad end", JOBS("false", "\"error\"", "\"CSP down\""), CLI_EXIT_UNREACHABLE },
	};

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].label);
		open_run(&r, 202, "{\"status\": \"running\", \"job\": \"sync\"}");
		r.script.replies[1] = (struct fake_reply){ .status = 200, .body = JOBS("true", "null", "null") };
		r.script.replies[2] = (struct fake_reply){ .status = 200, .body = cases[i].end };
		r.script.reply_count = 3;
		run(&r, "job run sync");
		CHECK(r.code == cases[i].code);
		CHECK(r.script.count == 3);
		CHECK(strcmp(r.out, "synced  42\n") == 0);
		CHECK((r.code == CLI_EXIT_OK) == !strstr(r.err, "CSP down"));
		close_run(&r);
	}
}

TEST(a_long_run_has_the_json_of_a_short_one)
{
	static const struct {
		const char *label, *end, *out;
		int         code;
	} cases[] = {
		{ "a good end", JOBS("false", "\"success\"", "null"), "{\"status\":\"completed\",\"synced\":42}\n",
		  CLI_EXIT_OK },
		{ "a bad end", JOBS("false", "\"error\"", "\"CSP down\""),
		  "{\"name\":\"sync\",\"running\":false,\"last_outcome\":\"error\",\"last_error\":\"CSP down\","
		  "\"last_result\":{\"synced\":42}}\n",
		  CLI_EXIT_UNREACHABLE },
	};

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].label);
		open_run(&r, 202, "{\"status\": \"running\", \"job\": \"sync\"}");
		r.script.replies[1] = (struct fake_reply){ .status = 200, .body = cases[i].end };
		r.script.reply_count = 2;
		run(&r, "job run sync --json");
		CHECK(r.code == cases[i].code && strcmp(r.out, cases[i].out) == 0);
		close_run(&r);
	}
}

TEST(jobs_are_shown_as_a_table)
{
	struct run r;

	setenv("TZ", "UTC", 1);
	env_table = both_tokens;
	open_run(&r, 200,
	         "{\"jobs\": [{\"name\": \"sync\", \"paused\": true, \"running\": false, \"interval_sec\": 600, "
	         "\"last_finished_at\": 1799999940, \"last_outcome\": \"error\", \"last_error\": \"CSP down\", "
	         "\"next_run_at\": null}]}");
	run(&r, "job list");
	CHECK(strcmp(r.out, "NAME  STATE   EVERY   LAST END  OUTCOME  NEXT RUN  ERROR\n"
	                    "sync  paused  10 min  1m ago    error    -         CSP down\n") == 0);
	close_run(&r);
}

TEST(a_reason_is_sent_as_json)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 200, "{}");
	run(&r, "sandbox quarantine s --reason say\"so");
	CHECK(strcmp(r.script.body, "{\"reason\":\"say\\\"so\"}") == 0);
	close_run(&r);
}

/* A directory of its own with leasehold/client in it. */
static void write_client_file(char directory[static 64], const char *text, mode_t mode)
{
	char  path[128];
	FILE *file;

	(void)snprintf(directory, 64, "/tmp/leasehold-test-XXXXXX"); /* fits */
	CHECK(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/leasehold", directory); /* fits */
	CHECK(mkdir(path, 0700) == 0);
	(void)snprintf(path, sizeof(path), "%s/leasehold/client", directory); /* fits */
	file = fopen(path, "w");
	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
	CHECK(chmod(path, mode) == 0);
}

static void remove_client_file(const char *directory)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/leasehold/client", directory); /* fits */
	CHECK(unlink(path) == 0);
	(void)snprintf(path, sizeof(path), "%s/leasehold", directory); /* fits */
	CHECK(rmdir(path) == 0 && rmdir(directory) == 0);
}

TEST(the_client_file_is_used_when_private_and_right)
{
	static const struct {
		const char *label, *text;
		mode_t      mode;
		int         code;
		const char *message;
	} cases[] = {
		{ "private", "# mine\n BROKER_ADMIN_TOKEN = file-t0ken \r\n", 0600, CLI_EXIT_OK, "" },
		{ "readable by the group", "BROKER_ADMIN_TOKEN=file-t0ken\n", 0640, CLI_EXIT_USAGE, "chmod 600" },
		{ "readable by all", "BROKER_ADMIN_TOKEN=file-t0ken\n", 0604, CLI_EXIT_USAGE, "chmod 600" },
		{ "not KEY=VALUE", "\nfile-t0ken\n", 0600, CLI_EXIT_USAGE, "line 2: must be KEY=VALUE" },
		{ "without the right token", "BROKER_API_TOKEN=x\n", 0600, CLI_EXIT_NOT_ALLOWED, "/leasehold/client" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char              directory[64];
		const char *const env[] = { "XDG_CONFIG_HOME", directory, NULL };
		struct run        r;

		CASE(cases[i].label);
		write_client_file(directory, cases[i].text, cases[i].mode);
		env_table = env;
		open_run(&r, 200, "{}");
		run(&r, "sandbox stats");
		remove_client_file(directory);
		CHECK(r.code == cases[i].code);
		CHECK(strstr(r.err, cases[i].message));
		CHECK(!strstr(r.err, "t0ken"));
		CHECK(cases[i].code != CLI_EXIT_OK || was_sent(&r, 0, "Authorization: Bearer file-t0ken"));
		close_run(&r);
		env_table = NULL;
	}
}

TEST(a_token_file_goes_before_the_environment)
{
	char       path[] = "/tmp/leasehold-token-XXXXXX", line[128];
	int        fd = mkstemp(path);
	struct run r;

	CHECK(fd >= 0 && write(fd, "from-file\nmore\n", 15) == 15 && close(fd) == 0);
	env_table = both_tokens;
	open_run(&r, 200, "{}");
	(void)snprintf(line, sizeof(line), "sandbox stats --token-file %s", path); /* fits */
	run(&r, line);
	unlink(path);
	CHECK(r.code == CLI_EXIT_OK && was_sent(&r, 0, "Authorization: Bearer from-file"));
	close_run(&r);
}

/* The manual page writes "-" as "\\-". */
static bool has_escaped(const char *text, const char *name)
{
	struct buf b;
	bool       has;

	buf_init(&b, 256);
	for (; *name; name++) {
		if (*name == '-')
			buf_add_char(&b, '\\');
		buf_add_char(&b, *name);
	}
	has = strstr(text, b.p) != NULL;
	buf_fini(&b);
	return has;
}

/* ---- the operators' commands ---- */

TEST(ages_are_short_and_long_texts_are_cut)
{
	static const struct {
		int64_t     seconds;
		const char *text;
	} cases[] = { { -5, "0s" },   { 0, "0s" },       { 59, "59s" },    { 60, "1m" },       { 3599, "59m" },
		      { 7260, "2h" }, { 172799, "47h" }, { 172800, "2d" }, { 8640000, "100d" } };
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CASE(cases[i].text);
		CHECK(str_eq(show_age(&a, cases[i].seconds), str_from(cases[i].text)));
	}
	CHECK(str_eq(show_cut(&a, STR("twelve chars"), 12), STR("twelve chars")));
	CHECK(str_eq(show_cut(&a, STR("twelve chars"), 7), STR("twelve\xe2\x80\xa6")));
	CHECK(str_eq(show_cut(&a, STR("\xc3\xa9t\xc3\xa9s"), 4), STR("\xc3\xa9t\xc3\xa9s")));
	CHECK(str_eq(show_cut(&a, STR("\xc3\xa9t\xc3\xa9s"), 3), STR("\xc3\xa9t\xe2\x80\xa6")));
	CHECK(str_eq(show_cut(&a, STR(""), 3), STR("")));
	arena_fini(&a);
}

TEST(a_page_that_is_empty_but_not_the_last_is_passed_over)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 200, "{\"events\": [], \"count\": 0, \"cursor\": \"c1\"}");
	r.script.replies[1] = (struct fake_reply){
		.status = 200,
		.body = "{\"events\": [{\"id\": \"e-1\", \"time\": \"2027-01-15T07:58:00.123Z\", \"detail-type\": \"T\", "
		        "\"subject\": \"s\"}], \"count\": 1, \"cursor\": \"c2\"}"
	};
	r.script.reply_count = 2;
	run(&r, "event list");
	CHECK(r.code == CLI_EXIT_OK && r.script.count == 2);
	CHECK(strcmp(r.script.asked[1], "GET /v1/ops/events?jobs=no&limit=50&cursor=c1") == 0);
	CHECK(strcmp(r.out, "ID   AGE  TYPE  SUBJECT  ACTOR\ne-1  2m   T     s        -\n") == 0);
	CHECK(strstr(r.err, "--all"));
	close_run(&r);
}

TEST(all_letters_are_replayed_but_none_that_dies_again)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 200, "{\"replayed\": 100, \"left\": 30}");
	r.script.replies[1] = (struct fake_reply){ .status = 200, .body = "{\"replayed\": 100, \"left\": 5}" };
	r.script.reply_count = 2;
	run(&r, "dlq replay --all --queue q");
	CHECK(r.code == CLI_EXIT_OK && r.script.count == 2);
	CHECK(strcmp(r.out, "200 replayed, 5 left\n") == 0);
	close_run(&r);

	CASE("the server fails halfway");
	open_run(&r, 200, "{\"replayed\": 100, \"left\": 30}");
	r.script.replies[1] = (struct fake_reply){ .status = 503, .body = ERROR("SERVICE_UNAVAILABLE") };
	r.script.reply_count = 2;
	run(&r, "dlq replay --all --queue q");
	CHECK(r.code == CLI_EXIT_UNREACHABLE && strstr(r.out, "100 replayed"));
	close_run(&r);
}

TEST(a_row_sends_what_was_given)
{
	static const struct {
		const char *line, *body;
	} cases[] = {
		{ "hold add 1 --reason why --hours 3 --email a@b",
		  "{\"account\":\"1\",\"hours\":3,\"reason\":\"why\",\"by\":\"a@b\"}" },
		{ "hold extend h --until 2027-01-15T08:00:00Z", "{\"due_at\":\"2027-01-15T08:00:00Z\"}" },
		{ "service-account create n --scopes read,cost", "{\"name\":\"n\",\"scopes\":\"read,cost\"}" },
		{ "service-account rotate n", "{\"overlap_minutes\":60}" },
		{ "service-account rotate n --minutes 0", "{\"overlap_minutes\":0}" },
		{ "policy explain T --email a@b --max-spend 20.5 --hours 48",
		  "{\"template\":\"T\",\"userEmail\":\"a@b\",\"maxSpend\":20.5,\"hours\":48}" },
		{ "webhook change w --description=", "{\"description\":\"\"}" },
		{ "saga retry s", "" },
	};
	static const struct {
		const char *line, *message;
	} refused[] = {
		{ "hold add 1 --reason why --until soon", "--until must be a time such as" },
		{ "hold add 1 --reason why --hours 0", "--hours must be a number from 1 to 87600" },
		{ "hold extend h --reason why", "give either --hours N or --until TIME" },
		{ "policy explain T --email a@b --hours never", "--hours must be a number above 0, not 'never'" },
		{ "policy check no/such/file", "no/such/file: No such file" },
		{ "policy history nonsense", "the document must be global, reporting or approval" },
	};

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].line);
		open_run(&r, 200, "{}");
		run(&r, cases[i].line);
		CHECK(r.code == CLI_EXIT_OK && strcmp(r.script.body, cases[i].body) == 0);
		close_run(&r);
	}
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct run r;

		CASE(refused[i].line);
		open_run(&r, 200, "{}");
		run(&r, refused[i].line);
		CHECK(r.code == CLI_EXIT_USAGE && r.script.count == 0 && strstr(r.err, refused[i].message));
		close_run(&r);
	}
}

TEST(a_webhook_is_described_by_what_was_given)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 201, "{\"id\": \"w\", \"secret\": \"s\"}");
	run(&r, "webhook create --url https://x --filter A*,B --description for&all --pause");
	CHECK(strcmp(r.script.body,
	             "{\"url\":\"https://x\",\"filter\":\"A*,B\",\"description\":\"for&all\",\"paused\":true}") == 0);
	CHECK(r.code == CLI_EXIT_OK && strstr(r.err, "not shown again"));
	close_run(&r);
	open_run(&r, 200, "{}");
	run(&r, "webhook change w --resume");
	CHECK(strcmp(r.script.body, "{\"paused\":false}") == 0);
	close_run(&r);
}

#define STREAM "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define EVENT(n)                                                    \
	"id: id-" n "\nevent: T" n "\ndata: {\"detail-type\":\"T" n \
	"\",\"time\":\"2027-01-15T08:00:00.000Z\",\"subject\":\"s\"}\n\n"

TEST(watching_goes_on_where_it_was_when_the_connection_ends)
{
	struct run r;

	env_table = both_tokens;
	setenv("TZ", "UTC", 1);
	open_run(&r, 200, "");
	r.script.replies[0] = (struct fake_reply){ .raw = STREAM "retry: 2000\nid: id-0\n: events follow\n\n" };
	r.script.replies[1] = (struct fake_reply){ .raw = STREAM EVENT("1") ":\n\nid: id-2\ndata: {\"cut" };
	r.script.replies[2] = (struct fake_reply){ .status = 503, .body = ERROR("SERVICE_UNAVAILABLE") };
	r.script.replies[3] = (struct fake_reply){ .raw = STREAM EVENT("3") EVENT("4") EVENT("5") };
	r.script.reply_count = 4;
	run(&r, "event watch --type T* --limit 3");
	CHECK(r.code == CLI_EXIT_OK);
	CHECK(strcmp(r.script.asked[0], "GET /v1/ops/events/stream?type=T%2A") == 0);
	CHECK(!strstr(r.script.headers[0], "Last-Event-ID"));
	CHECK(was_sent(&r, 1, "Last-Event-ID: id-0"));
	CHECK(strcmp(r.out,
	             "2027-01-15 08:00:00 UTC  T1                        s                             \n"
	             "2027-01-15 08:00:00 UTC  T3                        s                             \n"
	             "2027-01-15 08:00:00 UTC  T4                        s                             \n") == 0);
	CHECK(strstr(r.err, "reconnecting"));
	close_run(&r);
}

TEST(an_event_that_was_cut_off_is_asked_for_again)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 200, "");
	r.script.replies[0] = (struct fake_reply){ .raw = STREAM EVENT(
		                                           "1") "id: id-2\nevent: T2\ndata: {\"detail-type\":" };
	r.script.replies[1] = (struct fake_reply){ .raw = STREAM EVENT("2") };
	r.script.reply_count = 2;
	run(&r, "event watch --json --limit 2 --after id-x");
	CHECK(was_sent(&r, 0, "Last-Event-ID: id-x"));
	CHECK(was_sent(&r, 1, "Last-Event-ID: id-1"));
	CHECK(r.code == CLI_EXIT_OK && strstr(r.out, "\"T1\"") && strstr(r.out, "\"T2\""));
	close_run(&r);
}

TEST(watching_what_cannot_be_watched_ends_with_the_reason)
{
	static const struct {
		struct fake_reply reply;
		int               code;
		const char       *said;
	} cases[] = {
		{ { .status = 403, .body = ERROR("FORBIDDEN") }, CLI_EXIT_NOT_ALLOWED, "said why" },
		{ { .status = 503, .body = ERROR("SERVICE_UNAVAILABLE") }, CLI_EXIT_UNREACHABLE, "said why" },
		{ { .raw = STREAM "data: nonsense\n\n" }, CLI_EXIT_REFUSED, "cannot be understood" },
		{ { .raw = "" }, CLI_EXIT_UNREACHABLE, "HTTPS" },
	};

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].said);
		open_run(&r, 200, "");
		r.script.replies[0] = cases[i].reply;
		run(&r, "event watch");
		CHECK(r.code == cases[i].code && r.script.count == 1);
		CHECK(strstr(r.err, cases[i].said));
		close_run(&r);
	}
}

/* ---- leases ---- */

#define LEASE_UUID "3f2a9c41-0000-4000-8000-000000000001"
#define LEASE_ID   "eyJ1c2VyRW1haWwiOiJhIn0="
#define THE_LEASE(status, more)                                                                          \
	"{\"uuid\":\"" LEASE_UUID "\",\"leaseId\":\"" LEASE_ID                                           \
	"\",\"userEmail\":\"ann.of.the.long.name@example.org\","                                         \
	"\"status\":\"" status                                                                           \
	"\",\"originalLeaseTemplateName\":\"training in the spring\",\"awsAccountId\":\"111122223333\"," \
	"\"totalCostAccrued\":12.5,\"maxSpend\":50" more "}"
#define SUCCESS(data) "{\"status\":\"success\",\"data\":" data "}"
#define ASKER(role)   "{\"authenticated\":true,\"session\":{\"user\":{\"email\":\"ann@x.org\",\"roles\":[\"" role "\"]}}}"
#define PAGE_OF(list) SUCCESS("{\"result\":[" list "],\"nextPageIdentifier\":null}")

static const char *const session_token[] = { "LEASEHOLD_TOKEN", "eyJhbGci.session-t0ken", "BROKER_ADMIN_TOKEN",
	                                     "admin-t0ken", NULL };

/* An answer that is right for every call at once. */
static const char any_answer[] =
        "{\"status\":\"success\",\"session\":{\"user\":{\"email\":\"ann@x.org\",\"roles\":[\"Manager\"]}},"
        "\"data\":{\"uuid\":\"" LEASE_UUID "\",\"leaseId\":\"" LEASE_ID "\",\"status\":\"Active\","
        "\"expirationDate\":\"2027-01-15T08:00:00.250Z\",\"name\":\"small\",\"createdBy\":\"boss@x.org\",\"maxSpend\":5,"
        "\"result\":[{\"uuid\":\"" LEASE_UUID "\",\"leaseId\":\"" LEASE_ID "\"}],\"nextPageIdentifier\":null}}";

/* The next answer, behind those that are there. */
static void then_answer(struct run *r, const char *body)
{
	CHECK(r->script.reply_count < ASKED_MAX);
	r->script.replies[r->script.reply_count++] = (struct fake_reply){ .status = 200, .body = body };
}

TEST(each_command_of_people_is_these_calls)
{
#define WHO  "GET /api/auth/login/status"
#define FIND WHO, "GET /api/leases?pageSize=1000"
#define ID   "eyJ1c2VyRW1haWwiOiJhIn0%3D"
	static const struct {
		const char *line, *asked[3], *body; /* body of the last */
	} cases[] = {
		{ "lease list", { WHO, "GET /api/leases?pageSize=50" }, NULL },
		{ "lease list --mine", { WHO, "GET /api/leases?userEmail=ann%40x.org&pageSize=50" }, NULL },
		{ "lease list --user b@x.org --status Active --limit 3",
		  { "GET /api/leases?userEmail=b%40x.org&pageSize=3&status=Active" },
		  NULL },
		{ "lease list --all", { WHO, "GET /api/leases?pageSize=1000" }, NULL },
		{ "lease show " LEASE_ID, { "GET /api/leases/" ID }, NULL },
		{ "lease show 3f2a", { FIND, "GET /api/leases/" ID }, NULL },
		{ "lease show 3F2A9C41", { FIND, "GET /api/leases/" ID }, NULL },
		{ "lease wait 3f2a", { FIND, "GET /api/leases/" ID }, NULL },
		{ "lease request --template small",
		  { "GET /api/leaseTemplates/small", "POST /api/leases" },
		  "{\"leaseTemplateUuid\":\"" LEASE_UUID "\",\"comments\":\"\"}" },
		{ "lease request --template " LEASE_UUID " --for b@x.org --comments hello",
		  { "POST /api/leases" },
		  "{\"leaseTemplateUuid\":\"" LEASE_UUID "\",\"comments\":\"hello\",\"userEmail\":\"b@x.org\"}" },
		{ "lease request --wait --template " LEASE_UUID, { "POST /api/leases", "GET /api/leases/" ID }, NULL },
		{ "lease approve " LEASE_ID, { "POST /api/leases/" ID "/review", "GET /api/leases/" ID }, NULL },
		{ "lease approve --json 3f2a", { FIND, "POST /api/leases/" ID "/review" }, "{\"action\":\"Approve\"}" },
		{ "lease deny --json 3f2a --reason no",
		  { FIND, "POST /api/leases/" ID "/review" },
		  "{\"action\":\"Deny\",\"reason\":\"no\"}" },
		{ "lease freeze --json 3f2a", { FIND, "POST /api/leases/" ID "/freeze" }, "" },
		{ "lease unfreeze --json 3f2a", { FIND, "POST /api/leases/" ID "/unfreeze" }, "" },
		{ "lease terminate --json 3f2a", { FIND, "POST /api/leases/" ID "/terminate" }, "" },
		{ "lease withdraw --json 3f2a", { FIND, "POST /api/leases/" ID "/withdraw" }, "" },
		{ "lease extend " LEASE_ID " --hours 2",
		  { "GET /api/leases/" ID, "PATCH /api/leases/" ID },
		  "{\"expirationDate\":\"2027-01-15T10:00:00Z\"}" },
		{ "lease extend " LEASE_ID " --until 2027-01-16T00:00:00+01:00",
		  { "PATCH /api/leases/" ID },
		  "{\"expirationDate\":\"2027-01-15T23:00:00Z\"}" },
		{ "template list", { "GET /api/leaseTemplates?pageSize=50" }, NULL },
		{ "template show small", { "GET /api/leaseTemplates/small" }, NULL },
		{ "template create small --max-spend 12.5 --hours 24 --approval no --visibility PRIVATE --cost-group a",
		  { "POST /api/leaseTemplates" },
		  "{\"requiresApproval\":false,\"visibility\":\"PRIVATE\",\"costReportGroup\":\"a\",\"maxSpend\":12.5,"
		  "\"leaseDurationInHours\":24,\"name\":\"small\"}" },
		{ "template create small",
		  { "POST /api/leaseTemplates" },
		  "{\"requiresApproval\":true,\"name\":\"small\"}" },
		{ "template delete small",
		  { "GET /api/leaseTemplates/small", "DELETE /api/leaseTemplates/" LEASE_UUID },
		  "" },
		{ "account list", { "GET /api/accounts?pageSize=50" }, NULL },
		{ "account list --status quarantine", { "GET /api/accounts?pageSize=50&phase=Quarantine" }, NULL },
		{ "lease list --user b@x.org --status pendingapproval",
		  { "GET /api/leases?userEmail=b%40x.org&pageSize=50&status=PendingApproval" },
		  NULL },
		{ "account unregistered --all", { "GET /api/accounts/unregistered?pageSize=20" }, NULL },
		{ "account show 1/2", { "GET /api/accounts/1%2F2" }, NULL },
		{ "account register 111122223333", { "POST /api/accounts" }, "{\"awsAccountId\":\"111122223333\"}" },
		{ "account retry-cleanup 1", { "POST /api/accounts/1/retryCleanup", "GET /api/accounts/1" }, NULL },
		{ "account eject 1", { "POST /api/accounts/1/eject" }, "" },
	};
#undef WHO
#undef FIND
#undef ID

	env_table = session_token;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;
		size_t     n = 0;

		CASE(cases[i].line);
		open_run(&r, 200, any_answer);
		run(&r, cases[i].line);
		CHECK(r.code == CLI_EXIT_OK);
		for (; n < ARRAY_LEN(cases[i].asked) && cases[i].asked[n]; n++) {
			CHECK(strcmp(r.script.asked[n], cases[i].asked[n]) == 0);
			CHECK(was_sent(&r, n, "Authorization: Bearer eyJhbGci.session-t0ken"));
		}
		CHECK(r.script.count == n);
		CHECK(!cases[i].body || strcmp(r.script.body, cases[i].body) == 0);
		CHECK(!strstr(r.out, "t0ken") && !strstr(r.err, "t0ken"));
		close_run(&r);
	}
}

TEST(who_waits_for_the_end_of_a_lease_follows_its_account)
{
	static const struct {
		const char *label, *asker, *lease, *asked, *said;
	} cases[] = {
		{ "it waited in line", ASKER("Admin"),
		  SUCCESS("{\"uuid\":\"" LEASE_UUID "\",\"status\":\"ManuallyTerminated\",\"awsAccountId\":null}"),
		  NULL, "" },
		{ "a manager", ASKER("Manager"), SUCCESS(THE_LEASE("ManuallyTerminated", "")),
		  "GET /api/accounts/111122223333", "" },
		{ "an admin", ASKER("Admin"), SUCCESS(THE_LEASE("ManuallyTerminated", "")),
		  "GET /api/accounts/111122223333", "" },
		{ "the owner", ASKER("User"), SUCCESS(THE_LEASE("ManuallyTerminated", "")), NULL,
		  "only managers and admins can follow" },
	};

	env_table = session_token;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].label);
		open_run(&r, 200, SUCCESS("null"));
		then_answer(&r, cases[i].asker);
		then_answer(&r, cases[i].lease);
		then_answer(&r, SUCCESS("{\"phase\":\"Available\",\"leaseUuid\":null}"));
		run(&r, "lease terminate " LEASE_ID " --wait --json");
		CHECK(r.code == CLI_EXIT_OK && strstr(r.out, "ManuallyTerminated") && strstr(r.err, cases[i].said));
		CHECK(r.script.count == (cases[i].asked ? 4 : 3));
		CHECK(!cases[i].asked || strcmp(r.script.asked[3], cases[i].asked) == 0);
		close_run(&r);
	}
}

/* What is printed of three leases on a terminal of that many columns. */
static void list_leases(struct run *r, size_t width)
{
	open_run(r, 200, ASKER("Manager"));
	r->width = width;
	then_answer(
	        r,
	        PAGE_OF(THE_LEASE("AccountQuarantined", ",\"endDate\":\"2026-01-15T08:00:00Z\",\"costState\":\"provisional\"") "," THE_LEASE(
	                "Active",
	                ",\"expirationDate\":\"2027-01-15T10:00:00Z\",\"projectedSpend\":96") ","
	                                                                                      "{\"uuid\":\"u\",\"userEmail\":\"b@x.org\",\"status\":\"PendingApproval\",\"maxSpend\":5}"));
	run(r, "lease list");
	CHECK(r->code == CLI_EXIT_OK);
}

TEST(leases_are_a_table_that_fits_the_terminal)
{
	struct run r;

	env_table = session_token;
	list_leases(&r, 109);
	CHECK(strcmp(r.out,
	             "ID        OWNER                   TEMPLATE      STATUS         ACCOUNT       SPENT/BUDGET  FORECAST  ENDS\n"
	             "00000001  ann.of.the.long.name@\xe2\x80\xa6  training in\xe2\x80\xa6  AccountQuara\xe2\x80\xa6  111122223333  "
	             "12.50/50.00   so far    365d ago\n"
	             "00000001  ann.of.the.long.name@\xe2\x80\xa6  training in\xe2\x80\xa6  Active         111122223333  "
	             "12.50/50.00   96.00     in 2h\n"
	             "u         b@x.org                 -             PendingAppro\xe2\x80\xa6  -             -/5.00        -         -\n") ==
	      0);
	close_run(&r);
	list_leases(&r, 96);
	CHECK(strstr(r.out, "ACCOUNT") && !strstr(r.out, "FORECAST"));
	close_run(&r);
	list_leases(&r, 79);
	CHECK(strcmp(r.out,
	             "ID        OWNER             TEMPLATE      STATUS         SPENT/BUDGET  ENDS\n"
	             "00000001  ann.of.the.long\xe2\x80\xa6  training in\xe2\x80\xa6  AccountQuara\xe2\x80\xa6  12.50/50.00   365d ago\n"
	             "00000001  ann.of.the.long\xe2\x80\xa6  training in\xe2\x80\xa6  Active         12.50/50.00   in 2h\n"
	             "u         b@x.org           -             PendingAppro\xe2\x80\xa6  -/5.00        -\n") == 0);
	close_run(&r);
}

TEST(all_dead_letters_are_dropped_when_that_is_agreed_to)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 200, "{}");
	run(&r, "dlq drop --all --reason gone");
	CHECK(r.code == CLI_EXIT_USAGE && r.script.count == 0 && strstr(r.err, "--yes"));
	close_run(&r);
	open_run(&r, 200, "{\"dead_letters\":[{\"id\":\"a\"},{\"id\":\"b\"}],\"cursor\":\"\"}");
	then_answer(&r, "{}");
	then_answer(&r, "{}");
	then_answer(&r, "{\"dead_letters\":[],\"cursor\":\"\"}");
	run(&r, "dlq drop --all --reason gone --yes");
	CHECK(r.code == CLI_EXIT_OK && r.script.count == 4 && strcmp(r.out, "2 dropped\n") == 0);
	close_run(&r);
}

TEST(with_json_standard_output_has_nothing_else)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 200, "{\"dead_letters\":[{\"id\":\"a\"}],\"cursor\":\"\"}");
	then_answer(&r, "{}");
	then_answer(&r, "{\"dead_letters\":[],\"cursor\":\"\"}");
	run(&r, "dlq drop --all --reason gone --yes --json");
	CHECK(r.code == CLI_EXIT_OK && !r.out_size && strcmp(r.err, "1 dropped\n") == 0);
	close_run(&r);

	open_run(&r, 200, "{\"sandboxes\":[{\"sandbox_id\":\"a\"}]}");
	then_answer(&r, "{}");
	then_answer(&r, "{\"sandboxes\":[]}");
	run(&r, "sandbox quarantine --all --json");
	CHECK(r.code == CLI_EXIT_OK && !r.out_size && strcmp(r.err, "1 quarantined, 0 not\n") == 0);
	close_run(&r);
}

/* Standard input that has one line, and then cannot be read. */
static ssize_t read_once(void *cookie, char *at, size_t size)
{
	static const char line[] = "sandbox-1\n";
	bool             *has_come = cookie;

	if (*has_come || size < sizeof(line)) {
		errno = EIO;
		return -1;
	}
	*has_come = true;
	memcpy(at, line, sizeof(line) - 1);
	return sizeof(line) - 1;
}

TEST(a_list_that_cannot_be_read_to_its_end_is_not_begun)
{
	bool       has_come = false;
	struct run r;

	env_table = both_tokens;
	CASE("a directory");
	open_run(&r, 200, "{}");
	run(&r, "sandbox quarantine --from /tmp");
	CHECK(r.code == CLI_EXIT_USAGE && r.script.count == 0 && !r.out_size);
	CHECK(strstr(r.err, "/tmp cannot be read: Is a directory"));
	close_run(&r);

	CASE("an error in the middle");
	open_run(&r, 200, "{}");
	r.in = fopencookie(&has_come, "r", (cookie_io_functions_t){ .read = read_once });
	run(&r, "sandbox quarantine --from -");
	CHECK(r.code == CLI_EXIT_USAGE && r.script.count == 0 && has_come);
	CHECK(strstr(r.err, "- cannot be read: Input/output error"));
	close_run(&r);
}

TEST(a_line_that_is_too_long_is_refused_and_not_made_two)
{
	static const struct {
		const char *label;
		int         length, code;
		size_t      count;
	} cases[] = { { "one too many", 1024, CLI_EXIT_USAGE, 0 }, { "the longest", 1023, CLI_EXIT_OK, 2 } };

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char       text[1200];
		struct run r;

		CASE(cases[i].label);
		(void)snprintf(text, sizeof(text), "sandbox-1\r\n\n%0*d\n", cases[i].length, 1); /* fits */
		open_run(&r, 200, "{}");
		r.in = fmemopen(text, strlen(text), "r");
		run(&r, "sandbox quarantine --from -");
		CHECK(r.code == cases[i].code && r.script.count == cases[i].count);
		CHECK(!r.script.count == (strstr(r.err, "- line 3 has more than 1023 bytes") != NULL));
		CHECK(!r.script.count ||
		      strcmp(r.script.asked[0], "POST /v1/admin/sandboxes/sandbox-1/quarantine") == 0);
		close_run(&r);
	}
}

TEST(an_alarm_is_shown_with_what_the_runbook_says)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 200,
	         "{\"alarms\":[{\"name\":\"queue-stuck#mail\",\"rule\":\"queue-stuck\",\"evidence\":\"12 wait\","
	         "\"checked_at\":1}]}");
	then_answer(&r, "# Runbook\n\n### queue-stuck\n\n**Do**: fix the\nreceiver.\n\n### next\n\nOther.\n");
	run(&r, "alarm show queue-stuck");
	CHECK(r.code == CLI_EXIT_OK && strstr(r.out, "What is wrong  12 wait\n"));
	CHECK(strstr(r.out, "Last change    1970-01-01"));
	CHECK(strstr(r.out, "\nDo: fix the receiver.\n") && !strstr(r.out, "Other"));
	close_run(&r);
	open_run(&r, 200, "{\"alarms\":[]}");
	run(&r, "alarm show queue-stuck");
	CHECK(r.code == CLI_EXIT_NOT_FOUND);
	close_run(&r);
}

TEST(routine_events_are_listed_only_when_asked_for)
{
	static const struct {
		const char *line, *query;
	} cases[] = { { "event list", "?jobs=no&limit=50" },
		      { "event list --actor me", "?jobs=no&limit=50&actor=me" },
		      { "event list --all", "?limit=100" },
		      { "event list --type *", "?limit=50&type=%2A" },
		      { "event list --subject job/sync", "?limit=50&subject=job%2Fsync" },
		      { "event list --json", "?limit=50" } };

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;
		char       asked[96];

		CASE(cases[i].line);
		open_run(&r, 200, "{\"events\":[],\"cursor\":\"\"}");
		run(&r, cases[i].line);
		(void)snprintf(asked, sizeof(asked), "GET /v1/ops/events%s", cases[i].query);
		CHECK(strcmp(r.script.asked[0], asked) == 0);
		close_run(&r);
	}
}

TEST(nothing_of_a_table_is_cut_where_there_is_room_or_no_terminal)
{
	static const size_t widths[] = { 0, 200 };

	env_table = session_token;
	for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
		struct run r;

		open_run(&r, 200, ASKER("Manager"));
		r.width = widths[i];
		then_answer(&r, PAGE_OF(THE_LEASE("Active", "")));
		run(&r, "lease list");
		CHECK(strstr(r.out, "ann.of.the.long.name@example.org  training in the spring  Active"));
		CHECK(!strstr(r.out, LEASE_UUID) == (widths[i] > 0)); /* ids are short for people only */
		close_run(&r);
	}
}

TEST(a_lease_is_shown_with_times_and_money_that_people_read)
{
	static const char *const lines[] = { "Status                Active\n",
		                             "Spent/budget          12.50/50.00\n",
		                             "Budget thresholds     at 40.00 ALERT, at 45.50 FREEZE_ACCOUNT\n",
		                             "Lasts                 1 d 2 h\n",
		                             "Time thresholds       at 2 h before the end ALERT\n",
		                             "Ends                  2027-01-15 10:00:00 UTC (in 2 h)\n",
		                             "Requested             2027-01-15 07:00:00 UTC (1 h ago)\n" };
	struct run               r;

	setenv("TZ", "UTC", 1);
	env_table = session_token;
	open_run(
	        &r, 200,
	        SUCCESS(THE_LEASE(
	                "Active",
	                ",\"expirationDate\":\"2027-01-15T10:00:00.5Z\",\"leaseDurationInHours\":26,"
	                "\"meta\":{\"createdTime\":\"2027-01-15T07:00:00Z\"},"
	                "\"durationThresholds\":[{\"hoursRemaining\":2,\"action\":\"ALERT\"}],"
	                "\"budgetThresholds\":[{\"dollarsSpent\":40,\"action\":\"ALERT\"},"
	                "{\"dollarsSpent\":45.5,\"action\":\"FREEZE_ACCOUNT\"}],\"costAsOf\":\"2027-01-15T08:00:00Z\"")));
	run(&r, "lease show " LEASE_ID);
	CHECK(r.code == CLI_EXIT_OK);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		CASE(lines[i]);
		CHECK(strstr(r.out, lines[i]));
	}
	CHECK(!strstr(r.out, "Comments") && !strstr(r.out, "Denied"));
	close_run(&r);
}

TEST(who_is_only_a_user_sees_and_finds_his_own_leases)
{
	struct run r;

	env_table = session_token;
	open_run(&r, 200, ASKER("User"));
	then_answer(&r, PAGE_OF(THE_LEASE("Active", "")));
	run(&r, "lease list");
	CHECK(r.code == CLI_EXIT_OK);
	CHECK(strcmp(r.script.asked[1], "GET /api/leases?userEmail=ann%40x.org&pageSize=50") == 0);
	close_run(&r);
	open_run(&r, 200, ASKER("User"));
	then_answer(&r, PAGE_OF(THE_LEASE("Active", "")));
	then_answer(&r, SUCCESS(THE_LEASE("Active", "")));
	run(&r, "lease show 3f2a");
	CHECK(r.code == CLI_EXIT_OK);
	CHECK(strcmp(r.script.asked[1], "GET /api/leases?userEmail=ann%40x.org&pageSize=1000") == 0);
	close_run(&r);
}

TEST(own_leases_of_nobody_are_not_those_of_all)
{
	struct run r;

	env_table = session_token;
	open_run(&r, 200, "{\"authenticated\":false,\"message\":\"expired\"}");
	run(&r, "lease list --mine");
	CHECK(r.code == CLI_EXIT_USAGE && r.script.count == 1 && strstr(r.err, "give --user EMAIL"));
	close_run(&r);
}

TEST(a_part_of_a_uuid_names_a_lease_only_when_no_other_has_it)
{
#define OTHER "{\"uuid\":\"3f2abbbb-0000-4000-8000-000000000002\",\"leaseId\":\"eyJvdGhlciJ9\"}"
	static const struct {
		const char *typed, *pages[2];
		int         code;
		const char *said; /* on standard error */
	} cases[] = {
		{ "3f2a",
		  { PAGE_OF(THE_LEASE("Active", "") "," OTHER) },
		  CLI_EXIT_USAGE,
		  "several leases start or end with this" },
		{ "3f2a9", { PAGE_OF(THE_LEASE("Active", "") "," OTHER) }, CLI_EXIT_OK, "" },
		{ LEASE_UUID, { PAGE_OF(OTHER "," THE_LEASE("Active", "")) }, CLI_EXIT_OK, "" },
		{ "3f2a",
		  { SUCCESS("{\"result\":[" OTHER "],\"nextPageIdentifier\":\"n\"}"),
		    PAGE_OF(THE_LEASE("Active", "")) },
		  CLI_EXIT_USAGE,
		  "several leases start or end with this" },
		{ "00000001", { PAGE_OF(THE_LEASE("Active", "") "," OTHER) }, CLI_EXIT_OK, "" },
		{ "9999", { PAGE_OF(OTHER) }, CLI_EXIT_NOT_FOUND, "leasehold lease list --all" },
	};
#undef OTHER

	env_table = session_token;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct arena a = { 0 };
		struct run   r;

		CASE(cases[i].typed);
		open_run(&r, 200, ASKER("Manager"));
		for (size_t k = 0; k < 2 && cases[i].pages[k]; k++)
			then_answer(&r, cases[i].pages[k]);
		then_answer(&r, SUCCESS(THE_LEASE("Frozen", "")));
		run(&r, str_format(&a, "lease freeze %s", cases[i].typed).p);
		CHECK(r.code == cases[i].code && strstr(r.err, cases[i].said));
		CHECK((r.code == CLI_EXIT_OK) == (strstr(r.script.asked[2], "POST") != NULL));
		close_run(&r);
		arena_fini(&a);
	}
}

TEST(a_part_of_an_id_names_a_sandbox_or_a_webhook_only_when_no_other_has_it)
{
#define SANDBOX(id, name) "{\"sandbox_id\":\"" id "\",\"name\":\"" name "\"}"
#define ONE               SANDBOX("eca57008-cdd8-4e8d-8c53-9b966f4860b6", "sb-1")
#define SANDBOXES(list)   "{\"sandboxes\":[" list "],\"cursor\":\"\"}"
#define HOOKS             "{\"webhooks\":[{\"id\":\"01a1e11f-c08a-7000-8847-51d3be66015d\"}]}"
	static const struct {
		const char *line, *list, *asked[2]; /* NULL: nothing more */
		int         code;
	} cases[] = {
		{ "sandbox release 6f4860b6",
		  SANDBOXES(ONE),
		  { "GET /v1/admin/sandboxes?q=6f4860b6&limit=100",
		    "POST /v1/admin/sandboxes/eca57008-cdd8-4e8d-8c53-9b966f4860b6/release" },
		  CLI_EXIT_OK },
		{ "sandbox quarantine eca5",
		  SANDBOXES(ONE),
		  { "GET /v1/admin/sandboxes?q=eca5&limit=100",
		    "POST /v1/admin/sandboxes/eca57008-cdd8-4e8d-8c53-9b966f4860b6/quarantine" },
		  CLI_EXIT_OK },
		{ "sandbox delete eca5",
		  SANDBOXES(ONE "," SANDBOX("eca59999-cdd8-4e8d-8c53-000000000000", "sb-2")),
		  { "GET /v1/admin/sandboxes?q=eca5&limit=100", NULL },
		  CLI_EXIT_USAGE },
		{ "sandbox delete beef",
		  SANDBOXES(ONE),
		  { "GET /v1/admin/sandboxes?q=beef&limit=100", "POST /v1/admin/sandboxes/beef/delete" },
		  CLI_EXIT_OK },
		{ "sandbox release eca57008-cdd8-4e8d-8c53-9b966f4860b6",
		  "{}",
		  { "POST /v1/admin/sandboxes/eca57008-cdd8-4e8d-8c53-9b966f4860b6/release", NULL },
		  CLI_EXIT_OK },
		{ "webhook test be66015d",
		  HOOKS,
		  { "GET /v1/ops/webhooks", "POST /v1/ops/webhooks/01a1e11f-c08a-7000-8847-51d3be66015d/test" },
		  CLI_EXIT_OK },
	};
#undef SANDBOX
#undef ONE
#undef SANDBOXES
#undef HOOKS

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].line);
		open_run(&r, 200, cases[i].list);
		then_answer(&r, "{}");
		run(&r, cases[i].line);
		CHECK(r.code == cases[i].code);
		CHECK(strcmp(r.script.asked[0], cases[i].asked[0]) == 0);
		CHECK(r.script.count == 1 + (cases[i].asked[1] != NULL));
		CHECK(!cases[i].asked[1] || strcmp(r.script.asked[1], cases[i].asked[1]) == 0);
		close_run(&r);
	}
}

TEST(waiting_follows_a_lease_until_it_can_be_used)
{
	struct run r;

	env_table = session_token;
	open_run(&r, 200, SUCCESS(THE_LEASE("PendingApproval", "")));
	then_answer(&r, SUCCESS(THE_LEASE("PendingApproval", "")));
	then_answer(&r, SUCCESS(THE_LEASE("PendingApproval",
	                                  ",\"queuedSince\":\"2027-01-15T07:00:00Z\",\"queuePosition\":3,"
	                                  "\"queueEstimate\":\"2027-01-15T08:12:00Z\"")));
	then_answer(&r, SUCCESS(THE_LEASE("Provisioning", "")));
	then_answer(&r, SUCCESS(THE_LEASE("Active", "")));
	run(&r, "lease wait " LEASE_ID);
	CHECK(r.code == CLI_EXIT_OK && r.script.count == 5);
	CHECK(strcmp(r.err, "waiting for approval\n"
	                    "approved, in line for a free account: position 3, about in 12 min\n"
	                    "the account is being set up\n") == 0);
	CHECK(strstr(r.out, "Active\n"));
	close_run(&r);
}

TEST(waiting_on_a_terminal_is_one_line_that_is_written_anew)
{
	struct run r;

	env_table = session_token;
	open_run(&r, 200, SUCCESS(THE_LEASE("Provisioning", "")));
	r.typed = "";
	then_answer(&r, SUCCESS(THE_LEASE("Active", "")));
	run(&r, "lease wait " LEASE_ID);
	CHECK(r.code == CLI_EXIT_OK);
	CHECK(strcmp(r.err, "\rthe account is being set up ... 0s\033[K\r\033[K") == 0);
	close_run(&r);
}

TEST(waiting_ends_with_the_reason_when_nothing_will_come_of_it)
{
	static const struct {
		const char *line, *lease;
		int         code;
		const char *said;
	} cases[] = {
		{ "lease wait " LEASE_ID, SUCCESS(THE_LEASE("ApprovalDenied", ",\"denyReason\":\"not now\"")),
		  CLI_EXIT_REFUSED, "the lease cannot be used: ApprovalDenied: not now\n" },
		{ "lease wait " LEASE_ID, SUCCESS(THE_LEASE("Expired", "")), CLI_EXIT_REFUSED, "be used: Expired\n" },
		{ "lease wait --wait 0 " LEASE_ID, SUCCESS(THE_LEASE("PendingApproval", "")), CLI_EXIT_EMPTY,
		  "the time is up: waiting for approval\n" },
		{ "lease wait --wait soon " LEASE_ID, SUCCESS(THE_LEASE("Active", "")), CLI_EXIT_USAGE,
		  "--wait must be a number from 0 to 86400" },
	};

	env_table = session_token;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].said);
		open_run(&r, 200, cases[i].lease);
		run(&r, cases[i].line);
		CHECK(r.code == cases[i].code && strstr(r.err, cases[i].said));
		close_run(&r);
	}
}

TEST(each_refusal_under_api_is_explained)
{
	static const struct {
		const char *line;
		int         status;
		const char *body;
		int         code;
		const char *said;
	} cases[] = {
		{ "template create x", 400,
		  "{\"status\":\"fail\",\"data\":{\"errors\":[{\"field\":\"maxSpend\",\"message\":\"is too much\"},"
		  "{\"message\":\"and so on\"}]}}",
		  CLI_EXIT_REFUSED, "leasehold: template create: maxSpend: is too much; and so on\n" },
		{ "lease show " LEASE_ID, 401,
		  "{\"status\":\"fail\",\"data\":{\"errors\":[{\"message\":\"expired\"}]}}", CLI_EXIT_NOT_ALLOWED,
		  "expired\nThe token is not valid here, or has expired. 'leasehold token issue'" },
		{ "account list", 403,
		  "{\"status\":\"fail\",\"data\":{\"errors\":[{\"message\":\"needs the role Admin\"}]}}",
		  CLI_EXIT_NOT_ALLOWED, "leasehold: account list: needs the role Admin\n" },
		{ "account show 1", 400,
		  "{\"status\":\"fail\",\"data\":{\"errors\":[{\"field\":\"awsAccountId\",\"message\":\"is short\"}]}}",
		  CLI_EXIT_REFUSED, "leasehold: account show: ACCOUNT: is short\n" },
		{ "account list --status x", 400,
		  "{\"status\":\"fail\",\"data\":{\"errors\":[{\"field\":\"phase\",\"message\":\"is odd\"}]}}",
		  CLI_EXIT_REFUSED, "leasehold: account list: --status: is odd\n" },
		{ "lease show " LEASE_ID, 503, "{\"status\":\"error\",\"message\":\"not now\"}", CLI_EXIT_UNREACHABLE,
		  "leasehold: lease show: not now\n" },
		{ "lease show " LEASE_ID, 500, "{}", CLI_EXIT_REFUSED, "answered 500 without saying why" },
	};

	env_table = session_token;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].said);
		open_run(&r, cases[i].status, cases[i].body);
		run(&r, cases[i].line);
		CHECK(r.code == cases[i].code && strstr(r.err, cases[i].said));
		CHECK(r.out_size == 0);
		close_run(&r);
	}
}

TEST(the_hint_is_about_what_is_not_there)
{
	static const struct {
		const char *line, *message, *hint;
	} cases[] = {
		{ "account show 111122223333", "there is no account 1", "List them: leasehold account list\n" },
		{ "lease request --template x", "there is no lease template x",
		  "List them: leasehold template list\n" },
		{ "lease request --template x --for b@x.org", "b@x.org is not in the directory of people", "" },
		{ "lease spend " LEASE_ID, "lease 3f2a has ended: its statement says what it cost",
		  "Once it has ended: leasehold lease statement " LEASE_ID "\n" },
	};

	env_table = session_token;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct arena a = { 0 };
		struct run   r;

		CASE(cases[i].line);
		open_run(&r, 404,
		         str_format(&a, "{\"status\":\"fail\",\"data\":{\"errors\":[{\"message\":\"%s\"}]}}",
		                    cases[i].message)
		                 .p);
		run(&r, cases[i].line);
		CHECK(r.code == CLI_EXIT_NOT_FOUND);
		CHECK(str_ends_with(str_from(r.err), str_format(&a, "%s\n%s", cases[i].message, cases[i].hint)));
		close_run(&r);
		arena_fini(&a);
	}
}

TEST(an_account_that_is_not_there_is_no_hold_that_is_not_there)
{
	struct run r;

	env_table = both_tokens;
	open_run(&r, 404, "{\"error\":{\"code\":\"NOT_FOUND\",\"message\":\"there is no account 1 in the pool\"}}");
	run(&r, "hold add 111122223333 --reason x");
	CHECK(r.code == CLI_EXIT_NOT_FOUND && strstr(r.err, "\nList them: leasehold account list\n"));
	close_run(&r);
	open_run(&r, 404, "{\"error\":{\"code\":\"NOT_FOUND\",\"message\":\"there is no hold x\"}}");
	run(&r, "hold release x --reason x");
	CHECK(r.code == CLI_EXIT_NOT_FOUND && strstr(r.err, "\nList them: leasehold hold list\n"));
	close_run(&r);
}

/* The first words are what the next command needs. */
TEST(on_80_columns_nothing_is_wider_and_names_are_whole)
{
	static const struct {
		const char *line, *answer, *name;
	} cases[] = {
		{ "saga list",
		  "{\"sagas\":[{\"id\":\"account-follow/219957622145/1795210181438\",\"kind\":\"account-follow\","
		  "\"subject\":\"account/219957622145\",\"state\":\"undoing\",\"step\":2,\"steps\":4,"
		  "\"step_name\":\"credentials\",\"step_since_at\":1,\"tries\":3,\"last_error\":\"it is very long\"}]}",
		  "\naccount-follow/219957622145/1795210181438 " },
		{ "alarm list",
		  "{\"alarms\":[{\"name\":\"saga-parked#account-follow/219957622145/1795210181438\","
		  "\"rule\":\"saga-parked\",\"severity\":\"warning\",\"state\":\"raised\",\"since_at\":1,"
		  "\"evidence\":\"saga account-follow/219957622145/1795210181438 is parked\"}]}",
		  " saga-parked#account-follow/219957622145/1795210181438 " },
		{ "job list",
		  "{\"jobs\":[{\"name\":\"instance-orphans\",\"paused\":false,\"running\":false,\"interval_sec\":86400,"
		  "\"last_finished_at\":1799900000,\"last_outcome\":\"success\",\"last_error\":\"CSP down, and it says why\","
		  "\"next_run_at\":1800086400}]}",
		  "\ninstance-orphans " },
		{ "sandbox list",
		  "{\"sandboxes\":[{\"sandbox_id\":\"7df4a55e-afb9-484a-82c9-ab8df9266560\",\"name\":\"sandbox-000001\","
		  "\"status\":\"pending_deletion\",\"allocated_to_track\":\"student00@school.example\","
		  "\"expires_at\":1800014400,\"quarantine_reason\":\"login fails\"}]}",
		  "\n7df4a55e-afb9-484a-82c9-ab8df9266560 " },
	};

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;
		struct str rest;

		CASE(cases[i].line);
		open_run(&r, 200, cases[i].answer);
		r.width = 80;
		run(&r, cases[i].line);
		CHECK(r.code == CLI_EXIT_OK && strstr(r.out, cases[i].name));
		for (rest = str_from(r.out); rest.n;)
			CHECK(str_cut(&rest, '\n').n <= 80 + strlen("\xe2\x80\xa6") * 2); /* bytes, not columns */
		close_run(&r);
	}
}

TEST(an_explanation_keeps_to_the_terminal)
{
	static const char answer[] = "{\"summary\":\"Account 111122223333 is in cooldown until 2026-11-24 01:22 UTC so "
	                             "that the costs of its last lease are complete; then it can be lent again.\"}";
	static const struct {
		size_t      width;
		const char *line;
	} cases[] = {
		{ 60, "Account 111122223333 is in cooldown until 2026-11-24 01:22\n" },
		{ 0, "the costs of its last lease\n" },
		{ 300, "the costs of its last lease\n" },
	};

	env_table = both_tokens;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		open_run(&r, 200, answer);
		r.width = cases[i].width;
		run(&r, "explain 111122223333");
		CHECK(r.code == CLI_EXIT_OK && strstr(r.out, cases[i].line));
		close_run(&r);
	}
}

TEST(a_person_is_not_told_about_the_tokens_of_tracks)
{
	struct run r;

	env_table = session_token;
	open_run(&r, 403,
	         "{\"error\":{\"code\":\"FORBIDDEN\",\"message\":\"this needs the role Admin, or an admin token\","
	         "\"request_id\":\"r\",\"retry_after\":0}}");
	run(&r, "sandbox stats");
	CHECK(r.code == CLI_EXIT_NOT_ALLOWED && strstr(r.err, "needs the role Admin") && !strstr(r.err, "Tracks"));
	close_run(&r);
}

TEST(mistakes_about_leases_send_nothing)
{
	static const struct {
		const char *line, *message;
	} cases[] = {
		{ "lease request", "--template TEMPLATE is needed" },
		{ "lease list --mine --user b@x.org", "give --mine or --user, not both" },
		{ "lease show 3f2", "4 or more characters" },
		{ "lease show not-hex!", "see: leasehold lease list" },
		{ "lease deny 3f2a", "--reason TEXT is needed" },
		{ "lease extend 3f2a", "give either --hours N or --until TIME" },
		{ "lease extend 3f2a --hours 1 --until 2", "give either --hours N or --until TIME" },
		{ "lease extend 3f2a --hours 0", "--hours must be a number from 1 to" },
		{ "lease extend 3f2a --until tomorrow", "--until must be a time such as" },
		{ "lease extend 3f2a --until 2020-01-01T00:00:00Z", "leasehold lease terminate" },
		{ "template create", "a template needs a name" },
		{ "template create x --max-spend much", "--max-spend must be a number above 0" },
		{ "template create x --max-spend 1e300", "--max-spend must be a number above 0" },
		{ "template create x --max-spend nan", "--max-spend must be a number above 0" },
		{ "template create x --hours -1", "--hours must be a number above 0" },
		{ "template create x --approval maybe", "--approval must be yes or no" },
		{ "template create x --body /nowhere/at/all", "/nowhere/at/all: No such file" },
		{ "template change x", "nothing to change: give --body" },
		{ "report costs", "report costs needs MONTH" },
		{ "report costs 2026-13", "MONTH must be one such as 2026-10" },
		{ "report costs 26-1", "MONTH must be one such as 2026-10" },
		{ "report costs 2026-10 --by week", "--by must be group, owner, template, lease or day" },
	};

	env_table = session_token;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].line);
		open_run(&r, 200, any_answer);
		run(&r, cases[i].line);
		CHECK(r.code == CLI_EXIT_USAGE && strstr(r.err, cases[i].message));
		CHECK(r.script.count == 0);
		close_run(&r);
	}
}

TEST(a_session_token_is_good_for_everything_but_tracks_and_gives_way_to_an_operators)
{
	static const char *const session_only[] = { "LEASEHOLD_TOKEN", "eyJhbGci.x", NULL };
	struct run               r;

	env_table = session_token;
	open_run(&r, 200, "{\"sandboxes\": [], \"cursor\": \"\"}");
	run(&r, "sandbox list");
	CHECK(r.code == CLI_EXIT_OK && was_sent(&r, 0, "Authorization: Bearer admin-t0ken"));
	close_run(&r);
	env_table = session_only;
	open_run(&r, 200, "{\"sandboxes\": [], \"cursor\": \"\"}");
	run(&r, "sandbox list");
	CHECK(r.code == CLI_EXIT_OK && was_sent(&r, 0, "Authorization: Bearer eyJhbGci.x"));
	close_run(&r);
	open_run(&r, 200, "{}");
	run(&r, "sandbox claim --track lab");
	CHECK(r.code == CLI_EXIT_NOT_ALLOWED && r.script.count == 0 && strstr(r.err, "BROKER_API_TOKEN"));
	close_run(&r);
	env_table = both_tokens;
	open_run(&r, 200, any_answer);
	run(&r, "lease list");
	CHECK(r.code == CLI_EXIT_NOT_ALLOWED && r.script.count == 0 && strstr(r.err, "leasehold token issue"));
	close_run(&r);
}

TEST(people_are_served_beside_v1)
{
	static const struct {
		const char *path, *asked;
	} cases[] = {
		{ "", "GET /api/accounts/1" },         { "/v1", "GET /api/accounts/1" },
		{ "/api/", "GET /api/accounts/1" },    { "/lab/v1", "GET /lab/api/accounts/1" },
		{ "/lab", "GET /lab/api/accounts/1" },
	};

	env_table = session_token;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].path);
		open_run(&r, 200, any_answer);
		run_at(&r, fake_server_url(r.server, cases[i].path), "account show 1");
		CHECK(r.code == CLI_EXIT_OK && strcmp(r.script.asked[0], cases[i].asked) == 0);
		close_run(&r);
	}
}

TEST(a_change_of_a_template_keeps_what_is_not_given)
{
	struct run r;

	env_table = session_token;
	open_run(&r, 200,
	         SUCCESS("{\"uuid\":\"" LEASE_UUID "\",\"name\":\"small\",\"blueprintName\":null,\"maxSpend\":5,"
	                 "\"costReportGroup\":\"a\",\"createdBy\":\"boss@x.org\"}"));
	run(&r, "template change small --max-spend 7 --cost-group none");
	CHECK(r.code == CLI_EXIT_OK);
	CHECK(strcmp(r.script.asked[1], "PUT /api/leaseTemplates/" LEASE_UUID) == 0);
	CHECK(strcmp(r.script.body, "{\"name\":\"small\",\"maxSpend\":7,\"createdBy\":\"boss@x.org\"}") == 0);
	close_run(&r);
}

TEST(a_template_may_come_from_standard_input)
{
	struct run r;

	env_table = session_token;
	open_run(&r, 201, SUCCESS("{\"name\":\"x\"}"));
	r.typed = "{\"name\":\"x\",\"maxSpend\":null}";
	run(&r, "template create --body - --hours 4");
	CHECK(r.code == CLI_EXIT_OK);
	CHECK(strcmp(r.script.body, "{\"requiresApproval\":true,\"name\":\"x\",\"leaseDurationInHours\":4}") == 0);
	close_run(&r);
	open_run(&r, 201, "{}");
	r.typed = "[1]";
	run(&r, "template create --body -");
	CHECK(r.code == CLI_EXIT_USAGE && r.script.count == 0 && strstr(r.err, "- must be an object"));
	close_run(&r);
}

TEST(a_report_is_csv_in_a_pipe_and_objects_as_json)
{
	static const char csv[] = "CostReportGroup,StartDate,EndDate,Cost,Currency\r\n"
	                          "\"R&D, \"\"new\"\"\",2026-10-01,2026-10-31,12.50,USD\r\n"
	                          "No group,2026-10-01,2026-10-31,0.00,USD\r\n";
	struct run        r;

	env_table = session_token;
	open_run(&r, 200, csv);
	run(&r, "report costs 2026-10");
	CHECK(r.code == CLI_EXIT_OK && strcmp(r.out, csv) == 0);
	CHECK(strcmp(r.script.asked[0], "GET /v1/ops/reports/costs?month=2026-10") == 0);
	CHECK(was_sent(&r, 0, "Authorization: Bearer admin-t0ken"));
	close_run(&r);
	open_run(&r, 200, csv);
	run(&r, "report costs 2026-10 --by lease");
	CHECK(strcmp(r.script.asked[0], "GET /v1/ops/reports/costs?month=2026-10&by=lease") == 0);
	close_run(&r);
	open_run(&r, 200, csv);
	run(&r, "report costs --json 2026-10");
	CHECK(strcmp(r.out,
	             "[{\"CostReportGroup\":\"R&D, \\\"new\\\"\",\"StartDate\":\"2026-10-01\",\"EndDate\":\"2026-10-31\","
	             "\"Cost\":\"12.50\",\"Currency\":\"USD\"},{\"CostReportGroup\":\"No group\",\"StartDate\":"
	             "\"2026-10-01\",\"EndDate\":\"2026-10-31\",\"Cost\":\"0.00\",\"Currency\":\"USD\"}]\n") == 0);
	close_run(&r);
}

TEST(help_manual_and_completion_cover_every_command)
{
	static const struct {
		const char *line, *must_have;
	} cases[] = {
		{ "help", "exit codes" },
		{ "--help", "exit codes" },
		{ "help --man", ".SH EXIT STATUS" },
		{ "completion bash", "complete -F" },
		{ "completion zsh", "#compdef leasehold" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].line);
		open_run(&r, 200, "{}");
		run_at(&r, NULL, cases[i].line);
		CHECK(r.code == CLI_EXIT_OK && strstr(r.out, cases[i].must_have));
		for (size_t k = 0; k < CLI_COMMAND__COUNT; k++) {
			CASE(cli_commands[k].name);
			CHECK(strstr(r.out, cli_commands[k].name) || has_escaped(r.out, cli_commands[k].name));
		}
		close_run(&r);
	}
}

TEST(help_of_one_command_shows_its_use)
{
	static const struct {
		const char *line, *must_have;
		int         code;
	} cases[] = {
		{ "help sandbox claim", "usage: leasehold sandbox claim [--track TRACK]", CLI_EXIT_OK },
		{ "sandbox claim --help", "usage: leasehold sandbox claim [--track TRACK]", CLI_EXIT_OK },
		{ "sandbox claim -h", "leasehold sandbox claim --track lab-42", CLI_EXIT_OK },
		{ "help store backup", "usage: leasehold store backup --to TARGET", CLI_EXIT_OK },
		{ "help store backup", "TARGET is the file to write", CLI_EXIT_OK },
		{ "help store copy", "SOURCE and TARGET are sqlite:DIR", CLI_EXIT_OK },
		{ "help job run", "NAME: sync, cleanup, expiry, stale-removal, event-retention, lease-monitor,",
		  CLI_EXIT_OK },
		{ "help completion", "SHELL: bash or zsh\n", CLI_EXIT_OK },
		{ "help sandbox claim", "at the end of the line", CLI_EXIT_OK },
		{ "help sandbox claim", "only recorded; a repeated claim is recognised by its track", CLI_EXIT_OK },
		{ "help sandbox show", "even if LEASEHOLD_TRACK and BROKER_API_TOKEN are set", CLI_EXIT_OK },
		{ "help lease extend", "how many hours to add", CLI_EXIT_OK },
		{ "help lease request", " [--for WHO] ", CLI_EXIT_OK },
		{ "help wait account", "  --for STATUS  ", CLI_EXIT_OK },
		{ "help account list", "CleanUp, Cooldown or Quarantine", CLI_EXIT_OK },
		{ "completion bash",
		  "'--status account list'*) _leasehold_words \"Available Active Frozen CleanUp Cooldown Quarantine\"",
		  CLI_EXIT_OK },
		{ "completion bash",
		  "'--status '*) _leasehold_words \"available allocated pending_deletion stale deletion_failed\"",
		  CLI_EXIT_OK },
		{ "help serve", "else 127.0.0.1:8080", CLI_EXIT_OK },
		{ "help serve", "the environment wins over it", CLI_EXIT_OK },
		{ "help", "A track is who claims", CLI_EXIT_OK },
		{ "help", "The CSP is the vendor", CLI_EXIT_OK },
		{ "help --man", ".SH FILES\n", CLI_EXIT_OK },
		{ "help --man", ".SH SIGNALS\n.TP\n\\fBSIGTERM, SIGINT", CLI_EXIT_OK },
		{ "help --man", ".SH CONFIGURATION\n", CLI_EXIT_OK },
		{ "help job", "job resume", CLI_EXIT_OK },
		{ "help exit-codes", "5  not allowed", CLI_EXIT_OK },
		{ "sandbox --help", "sandbox give-back", CLI_EXIT_OK },
		{ "help nothing", "", CLI_EXIT_USAGE },
		{ "completion fish", "", CLI_EXIT_USAGE },
		{ "version", "", CLI_EXIT_USAGE },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].line);
		open_run(&r, 200, "{}");
		run_at(&r, NULL, cases[i].line);
		CHECK(r.code == cases[i].code && strstr(r.out, cases[i].must_have));
		CHECK((r.err_size == 0) == (r.code == CLI_EXIT_OK));
		close_run(&r);
	}
}

TEST(help_for_a_command_that_is_not_there_names_what_was_asked)
{
	static const struct {
		const char *line, *message;
	} cases[] = {
		{ "help sandbox clam", "there is no command 'sandbox clam'; sandbox has: claim, show" },
		{ "help claim", "there is no command 'claim'; did you mean 'sandbox claim'?" },
		{ "help serve now", "'now' is too much; see: leasehold help serve" },
		{ "sandbox clam --help", "there is no command 'sandbox clam'" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r;

		CASE(cases[i].line);
		open_run(&r, 200, "{}");
		run_at(&r, NULL, cases[i].line);
		CHECK(r.code == CLI_EXIT_USAGE && strstr(r.err, cases[i].message));
		close_run(&r);
	}
}
