/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.c - from a command line to an exit code.
 *
 * Answers go to standard output, everything else (errors, advice, progress) to standard error, so a script can read the
 * one and a person sees the other. Commands of the server program are in the table for help's sake; the program's
 * main() takes them first.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/call/call.h"
#include "cli/term/help.h"
#include "cli/term/progress.h"
#include "cli/commands/run.h"

enum { POLL_MS = 2000, TERMINAL_WIDTH = 79, COLUMNS_DEFAULT = 80 };

static int run_help(const struct cli_io *io, const struct cli_args *args)
{
	size_t     width = io->is_out_terminal ? TERMINAL_WIDTH : 0;
	struct err e = { 0 };

	if (args->wants_help && args->command) {
		help_one(io->out, args->command, width);
	} else if (args->values[CLI_OPTION_MAN]) {
		help_man(io->out);
	} else if (args->operand_count == 0) {
		help_all(io->out, width);
	} else if (args->operand_count == 1 && strcmp(args->operands[0], "exit-codes") == 0) {
		help_exit_codes(io->out);
	} else if (!help_command(io->out, args->operands, args->operand_count, width)) {
		(void)cli_refuse_command(args->operands, args->operand_count, &e); /* never RC_OK */
		fprintf(io->err, "leasehold: %s\n", e.msg);
		return CLI_EXIT_USAGE;
	}
	return CLI_EXIT_OK;
}

static int run_once(const struct cli_io *io, const struct cli_args *args)
{
	struct err    e = { 0 };
	struct remote remote;
	int           code;

	if (remote_open(&remote, io, args, &e) == RC_OK)
		code = call_run(&remote, &calls[args->command - cli_commands]);
	else
		code = remote_fail(&remote, &e);
	remote_close(&remote);
	return code;
}

static int dispatch(const struct cli_io *io, const struct cli_args *args)
{
	if (args->wants_help) /* behind a command, a noun or nothing */
		return run_help(io, args);
	if (args->command->place == CLI_PLACE_API)
		return args->values[CLI_OPTION_WATCH] ? refresh_run(io, args, run_once) : run_once(io, args);
	switch ((enum cli_command_id)(args->command - cli_commands)) {
	case CLI_COMMAND_TOKEN_ISSUE: return run_token_issue(io, args);
	case CLI_COMMAND_TOKEN_HASH_PASSWORD: return run_token_hash_password(io, args);
	case CLI_COMMAND_HELP: return run_help(io, args);
	case CLI_COMMAND_COMPLETION:
		if (help_completion(io->out, args->operands[0]))
			return CLI_EXIT_OK;
		fprintf(io->err, "leasehold: completion: the shell must be bash or zsh, not '%s'\n", args->operands[0]);
		return CLI_EXIT_USAGE;
	default: break;
	}
	fprintf(io->err, "leasehold: '%s' is a command of the server program, not of the client\n",
	        args->command->name);
	return CLI_EXIT_USAGE;
}

int cli_run(const struct cli_io *io, int argc, char **argv)
{
	struct err      e = { 0 };
	struct cli_args args;
	int             code;

	if (cli_parse(argc, argv, &args, &e) != RC_OK) {
		fprintf(io->err, "leasehold: %s\n", e.msg);
		return CLI_EXIT_USAGE;
	}
	code = dispatch(io, &args);
	if (fflush(io->out) != 0 && code == CLI_EXIT_OK) {
		fprintf(io->err, "leasehold: the answer could not be written to standard output\n");
		code = CLI_EXIT_REFUSED;
	}
	return code;
}

static const char *environment(const char *name)
{
	return getenv(name);
}

int cli_main(int argc, char **argv)
{
	struct winsize size;
	struct cli_io  io = { .in = stdin,
		              .out = stdout,
		              .err = stderr,
		              .is_in_terminal = isatty(STDIN_FILENO),
		              .is_out_terminal = isatty(STDOUT_FILENO),
		              .is_err_terminal = isatty(STDERR_FILENO),
		              .env = environment,
		              .clock = &clock_real,
		              .poll_ms = POLL_MS };

	if (io.is_out_terminal)
		io.width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : COLUMNS_DEFAULT;
	fetch_global_init();
	return cli_run(&io, argc, argv);
}
