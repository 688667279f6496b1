/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - one program: the server (serve), what looks after its files (config, store), and the client for the rest.
 *
 * The command line is the client's table (cli/commands.def); commands marked APP in it are carried out here. One is not in it, since it is
 * not for people: the server starts itself once more for every run of aws-nuke.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/config.h"
#include "app/preflight.h"
#include "app/serve.h"
#include "app/store_command.h"
#include "app/tokens.h"
#include "base/log.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "domain/sandbox.h"
#include "http/openapi.h"
#include "providers/nuke/supervise.h"

enum { TEXT_MAX = 4 * 1024 * 1024 };

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
	struct buf notes;

	buf_init(&notes, TEXT_MAX);
	config_near_misses((const char *const *)environ, &notes);
	print_lines("leasehold: WARNING: ", &notes);
	buf_fini(&notes);
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

static int run_serve(const struct cli_args *args)
{
	bool          is_dev = args->values[CLI_OPTION_DEV] != NULL;
	struct config config;
	struct buf    problems;
	int           code;

	buf_init(&problems, TEXT_MAX);
	load_config(&config, args, &problems);
	preflight_check(&config, is_dev, &problems);
	if (!is_dev)
		check_tokens(&config, &problems);
	print_near_misses();
	if (problems.n) {
		code = report_problems(", nothing was started", &problems);
	} else {
		bool is_for_people = is_dev && isatty(STDOUT_FILENO);

		log_setup((enum log_level)config_number(&config, CONFIG_LOG_LEVEL),
		          is_for_people ? LOG_TEXT : (enum log_format)config_number(&config, CONFIG_LOG_FORMAT));
		code = serve(&config, is_dev);
	}
	buf_fini(&problems);
	config_fini(&config);
	return code;
}

/* Tokens that are missing are only noted here: whoever looks at the settings may not be the one who has the secrets. */
static int run_config(const struct cli_args *args)
{
	struct config config;
	struct buf    problems, text;
	int           code = CLI_EXIT_OK;

	buf_init(&problems, TEXT_MAX);
	buf_init(&text, TEXT_MAX);
	load_config(&config, args, &problems);
	preflight_check(&config, false, &problems);
	print_near_misses();
	if (config_str(&config, CONFIG_API_TOKEN).n && config_str(&config, CONFIG_ADMIN_TOKEN).n)
		check_tokens(&config, &problems);
	else
		fprintf(stderr, "leasehold: note: 'leasehold serve' needs %s and %s, or --dev\n",
		        config_name(CONFIG_API_TOKEN), config_name(CONFIG_ADMIN_TOKEN));
	if (problems.n)
		code = report_problems("", &problems);
	config_print(&config, &text);
	config_fini(&config);
	buf_fini(&problems);
	print_and_free(&text);
	return code;
}

static int run_store(const struct cli_args *args)
{
	struct config config;
	struct buf    problems;
	int           code;

	buf_init(&problems, TEXT_MAX);
	load_config(&config, args, &problems);
	if (!config_str(&config, CONFIG_DATA).n && !problems.n)
		buf_addf(&problems, "--data: must name a folder\n");
	if (problems.n)
		code = report_problems(", nothing was done", &problems);
	else
		code = store_command(args, &config);
	buf_fini(&problems);
	config_fini(&config);
	return code;
}

static int run_states(void)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	sandbox_print_table(&text);
	return print_and_free(&text);
}

static int run_api_doc(void)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	apidoc_write(&text);
	return print_and_free(&text);
}

static int run_settings_doc(void)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	config_write_doc(&text);
	return print_and_free(&text);
}

static int run_app(const struct cli_args *args)
{
	switch ((enum cli_command_id)(args->command - cli_commands)) {
	case CLI_COMMAND_SERVE: return run_serve(args);
	case CLI_COMMAND_CONFIG: return run_config(args);
	case CLI_COMMAND_STORE_BACKUP:
	case CLI_COMMAND_STORE_CHECK:
	case CLI_COMMAND_STORE_CREATE_TABLES:
	case CLI_COMMAND_STORE_COPY: return run_store(args);
	case CLI_COMMAND_SANDBOX_STATES: return run_states();
	case CLI_COMMAND_API_DOC: return run_api_doc();
	case CLI_COMMAND_SETTINGS_DOC: return run_settings_doc();
	default: printf("leasehold %s\n", LEASEHOLD_VERSION); return CLI_EXIT_OK;
	}
}

int main(int argc, char **argv)
{
	struct cli_args args;

	if (argc == 3 && strcmp(argv[1], NUKE_RUN_COMMAND) == 0)
		return nuke_supervise(argv[2]);
	if (cli_parse(argc, argv, &args, NULL) == RC_OK && args.command && args.command->place == CLI_PLACE_APP &&
	    !args.wants_help)
		return run_app(&args);
	return cli_main(argc, argv);
}
