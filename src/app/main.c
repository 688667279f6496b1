/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - one program: the server (serve), what looks after its files (config, store), and the client for the rest.
 *
 * The command line is the client's table (cli/term/commands.def); commands marked APP in it run here. One command is
 * not in it, because it is not for people: the server starts itself again for every run of aws-nuke.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/config/config.h"
#include "app/first_config.h"
#include "app/lambda.h"
#include "app/preflight.h"
#include "app/secrets.h"
#include "app/serve.h"
#include "app/signin.h"
#include "app/migrate/migrate_command.h"
#include "app/store/store_command.h"
#include "base/log.h"
#include "cli/term/args.h"
#include "cli/cli.h"
#include "domain/instance.h"
#include "domain/sandbox.h"
#include "http/api/api.h"
#include "http/spec/openapi.h"
#include "net/fetch.h"
#include "providers/nuke/program.h"

enum { TEXT_MAX = 4 * 1024 * 1024, HEALTH_MS = 2500 };

static int print_and_free(struct buf *b)
{
	fwrite(b->p, 1, b->n, stdout);
	buf_fini(b);
	return fflush(stdout) ? CLI_EXIT_REFUSED : CLI_EXIT_OK;
}

/* Settings from everywhere, the command line's words on top. */
static void load_config(struct config *c, const struct cli_args *args, struct buf *problems)
{
	/* What is wrong is in `problems`, where the caller may add to it. */
	rc_ignore(config_load(c, (const char *const *)environ, args->values[CLI_OPTION_FILE], problems));
	if (args->values[CLI_OPTION_LISTEN])
		config_set(c, CONFIG_LISTEN, str_from(args->values[CLI_OPTION_LISTEN]), FROM_COMMAND_LINE);
	if (args->values[CLI_OPTION_DATA])
		config_set(c, CONFIG_DATA, str_from(args->values[CLI_OPTION_DATA]), FROM_COMMAND_LINE);
}

static void print_lines(const char *before, const struct buf *lines)
{
	struct str rest = buf_str(lines);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		fprintf(stderr, "%s%.*s\n", before, STR_ARG(line));
	}
}

static void print_near_misses(void)
{
	CLEANUP(buf_fini) struct buf notes = BUF(TEXT_MAX);

	config_near_misses((const char *const *)environ, &notes);
	print_lines("leasehold: WARNING: ", &notes);
}

static int report_problems(const char *and_so, const struct buf *problems)
{
	fprintf(stderr, "leasehold: the configuration has problems%s:\n", and_so);
	print_lines("  ", problems);
	return CLI_EXIT_USAGE;
}

static void check_tokens(const struct config *c, struct buf *problems)
{
	struct api_tokens tokens;
	struct err        e = { 0 };

	if (tokens_read(c, &tokens, &e))
		buf_addf(problems, "%s\n", e.msg);
}

static int run_serve(const struct cli_args *args, struct config *c, struct buf *problems)
{
	bool                 is_dev = args->values[CLI_OPTION_DEV] != NULL;
	bool                 is_for_people = is_dev && isatty(STDOUT_FILENO);
	struct serve_options options = { .is_dev = is_dev,
		                         .may_init = is_dev || args->values[CLI_OPTION_INIT],
		                         .accepts_loss = args->values[CLI_OPTION_ACCEPT_LOSS] };

	if (!problems->n)
		secrets_read(c, problems);
	preflight_check(c, is_dev, problems);
	if (!is_dev)
		check_tokens(c, problems);
	print_near_misses();
	if (problems->n)
		return report_problems(", nothing was started", problems);
	log_setup((enum log_level)config_number(c, CONFIG_LOG_LEVEL),
	          is_for_people ? LOG_TEXT : (enum log_format)config_number(c, CONFIG_LOG_FORMAT));
	return serve(c, &options);
}

static int run_lambda(const struct cli_args *args, struct config *c, struct buf *problems)
{
	log_setup((enum log_level)config_number(c, CONFIG_LOG_LEVEL),
	          (enum log_format)config_number(c, CONFIG_LOG_FORMAT));
	return lambda_run(c, problems, args->values[CLI_OPTION_DATA] != NULL);
}

/* Tokens that are missing are only noted here: whoever looks at the settings may not be the one who has the secrets. */
static int run_config(const struct cli_args *args UNUSED, struct config *c, struct buf *problems)
{
	struct buf text = BUF(TEXT_MAX);
	int        code = CLI_EXIT_OK;

	preflight_check(c, false, problems);
	print_near_misses();
	if (config_str(c, CONFIG_API_TOKEN).n && config_str(c, CONFIG_ADMIN_TOKEN).n)
		check_tokens(c, problems);
	else
		fprintf(stderr, "leasehold: note: 'leasehold serve' needs %s and %s, or --dev\n",
		        config_name(CONFIG_API_TOKEN), config_name(CONFIG_ADMIN_TOKEN));
	if (problems->n)
		code = report_problems("", problems);
	config_print(c, &text);
	print_and_free(&text);
	return code;
}

/* Where it listens; on loopback when that is everywhere. */
static enum rc own_url(struct config *c, const char *path, struct str *ret, struct err *e)
{
	char       *text;
	const char *host;
	int         port;
	enum rc     rc = preflight_listen(c, &text, &port, e);

	if (rc)
		return rc;
	host = strcmp(text, "0.0.0.0") == 0 ? "127.0.0.1" : strcmp(text, "::") == 0 ? "::1" : text;
	*ret = str_format(&c->arena, strchr(host, ':') ? "%s://[%s]:%d%s" : "%s://%s:%d%s",
	                  config_text(c, CONFIG_TLS_CERT) ? "https" : "http", host, port, path);
	return RC_OK;
}

/* Problems may be of settings that are not needed here. */
static int run_health(const struct cli_args *args, struct config *c, struct buf *problems UNUSED)
{
	struct fetch_request req = {
		.method = "GET", .connect_timeout_ms = HEALTH_MS, .total_timeout_ms = HEALTH_MS, .trusts_anybody = true
	};
	struct fetch_reply reply = { 0 };
	struct str         url;
	struct err         e = { 0 };
	enum rc            rc = own_url(c, args->values[CLI_OPTION_READY] ? "/readyz" : "/healthz", &url, &e);

	if (rc) {
		fprintf(stderr, "leasehold: %s\n", e.msg);
		return CLI_EXIT_USAGE;
	}
	fetch_global_init();
	req.url = url.p;
	if (fetch(&req, &c->arena, &reply, &e))
		fprintf(stderr, "leasehold: %s\n", e.msg);
	else
		printf("%.*s\n", STR_ARG(reply.body));
	return reply.status == 200 ? CLI_EXIT_OK : CLI_EXIT_UNREACHABLE;
}

/* "store ..." or "migrate ...". */
static int run_store(const struct cli_args *args, struct config *c, struct buf *problems)
{
	bool is_migration = str_starts_with(str_from(args->command->name), STR("migrate "));

	if (!config_str(c, CONFIG_DATA).n && !problems->n)
		buf_addf(problems, "--data: must name a folder\n");
	if (problems->n)
		return report_problems(", nothing was done", problems);
	return is_migration ? migrate_command(args, c) : store_command(args, c);
}

static int with_config(const struct cli_args *args,
                       int (*run)(const struct cli_args *args, struct config *c, struct buf *problems))
{
	struct config                config;
	CLEANUP(buf_fini) struct buf problems = BUF(TEXT_MAX);
	int                          code;

	load_config(&config, args, &problems);
	code = run(args, &config, &problems);
	config_fini(&config);
	return code;
}

/* A file that is named and not there is made first, with the help of whoever sits there. */
static int run_init(const struct cli_args *args)
{
	const char *file = args->values[CLI_OPTION_FILE];
	struct err  e = { 0 };
	int         code;

	if (!file || access(file, F_OK) == 0)
		return with_config(args, run_store);
	if (first_config_make(file, args->values[CLI_OPTION_DATA], &e)) {
		fprintf(stderr, "leasehold: init: %s\n", e.msg);
		return e.rc == RC_INVALID ? CLI_EXIT_USAGE : CLI_EXIT_REFUSED;
	}
	if (!(code = with_config(args, run_store)))
		first_config_explain(file);
	return code;
}

static int print_text(void (*write)(struct buf *b))
{
	struct buf text = BUF(TEXT_MAX);

	write(&text);
	return print_and_free(&text);
}

static int run_app(const struct cli_args *args)
{
	switch ((enum cli_command_id)(args->command - cli_commands)) {
	case CLI_COMMAND_SERVE: return with_config(args, run_serve);
	case CLI_COMMAND_LAMBDA: return with_config(args, run_lambda);
	case CLI_COMMAND_HEALTH: return with_config(args, run_health);
	case CLI_COMMAND_CONFIG: return with_config(args, run_config);
	case CLI_COMMAND_INIT: return run_init(args);
	case CLI_COMMAND_STORE_BACKUP:
	case CLI_COMMAND_STORE_RESTORE:
	case CLI_COMMAND_STORE_COMPACT:
	case CLI_COMMAND_STORE_CHECK:
	case CLI_COMMAND_STORE_CREATE_TABLES:
	case CLI_COMMAND_STORE_COPY:
	case CLI_COMMAND_MIGRATE_ISB:
	case CLI_COMMAND_MIGRATE_BROKER:
	case CLI_COMMAND_MIGRATE_UNDO: return with_config(args, run_store);
	case CLI_COMMAND_SANDBOX_STATES: return print_text(sandbox_print_table);
	case CLI_COMMAND_INSTANCE_STATES: return print_text(instance_print_table);
	case CLI_COMMAND_API_DOC: return print_text(apidoc_write);
	case CLI_COMMAND_SETTINGS_DOC: return print_text(config_write_doc);
	default: printf("leasehold %s\n", LEASEHOLD_VERSION); return CLI_EXIT_OK;
	}
}

int main(int argc, char **argv)
{
	struct cli_args args = { 0 };

	if (argc == 1 && lambda_is_meant(argv[0]))
		return with_config(&args, run_lambda);
	if (argc == 3 && strcmp(argv[1], NUKE_RUN_COMMAND) == 0)
		return nuke_supervise(argv[2]);
	if (cli_parse(argc, argv, &args, NULL) == RC_OK && args.command && args.command->place == CLI_PLACE_APP &&
	    !args.wants_help)
		return run_app(&args);
	return cli_main(argc, argv);
}
