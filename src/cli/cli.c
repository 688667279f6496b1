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
#include <unistd.h>

#include "cli/remote.h"
#include "cli/again.h"
#include "cli/args.h"
#include "cli/help.h"
#include "cli/run.h"

enum { POLL_MS = 2000, TERMINAL_WIDTH = 79 };

static cli_run_fn *const runs[CLI_COMMAND__COUNT] = {
	[CLI_COMMAND_STATUS] = run_status,
	[CLI_COMMAND_DEMO] = run_demo,
	[CLI_COMMAND_SANDBOX_CLAIM] = run_sandbox_claim,
	[CLI_COMMAND_SANDBOX_SHOW] = run_sandbox_show,
	[CLI_COMMAND_SANDBOX_GIVE_BACK] = run_sandbox_give_back,
	[CLI_COMMAND_SANDBOX_LIST] = run_sandbox_list,
	[CLI_COMMAND_SANDBOX_STATS] = run_sandbox_stats,
	[CLI_COMMAND_SANDBOX_QUARANTINE] = run_sandbox_quarantine,
	[CLI_COMMAND_SANDBOX_RELEASE] = run_sandbox_release,
	[CLI_COMMAND_SANDBOX_DELETE] = run_sandbox_delete,
	[CLI_COMMAND_SANDBOX_RETRY_DELETION] = run_sandbox_retry_deletion,
	[CLI_COMMAND_SANDBOX_BULK_DELETE] = run_sandbox_bulk_delete,
	[CLI_COMMAND_SANDBOX_REMOVE_STALE] = run_sandbox_remove_stale,
	[CLI_COMMAND_LEASE_REQUEST] = run_lease_request,
	[CLI_COMMAND_LEASE_LIST] = run_lease_list,
	[CLI_COMMAND_LEASE_SHOW] = run_lease_show,
	[CLI_COMMAND_LEASE_APPROVE] = run_lease_approve,
	[CLI_COMMAND_LEASE_DENY] = run_lease_deny,
	[CLI_COMMAND_LEASE_FREEZE] = run_lease_freeze,
	[CLI_COMMAND_LEASE_UNFREEZE] = run_lease_unfreeze,
	[CLI_COMMAND_LEASE_TERMINATE] = run_lease_terminate,
	[CLI_COMMAND_LEASE_WITHDRAW] = run_lease_withdraw,
	[CLI_COMMAND_LEASE_STATEMENT] = run_lease_statement,
	[CLI_COMMAND_LEASE_EXTEND] = run_lease_extend,
	[CLI_COMMAND_LEASE_WAIT] = run_lease_wait,
	[CLI_COMMAND_WAIT_LEASE] = run_wait_lease,
	[CLI_COMMAND_WAIT_ACCOUNT] = run_wait_account,
	[CLI_COMMAND_TEMPLATE_LIST] = run_template_list,
	[CLI_COMMAND_TEMPLATE_SHOW] = run_template_show,
	[CLI_COMMAND_TEMPLATE_CREATE] = run_template_create,
	[CLI_COMMAND_TEMPLATE_CHANGE] = run_template_change,
	[CLI_COMMAND_TEMPLATE_DELETE] = run_template_delete,
	[CLI_COMMAND_ACCOUNT_LIST] = run_account_list,
	[CLI_COMMAND_ACCOUNT_SHOW] = run_account_show,
	[CLI_COMMAND_ACCOUNT_UNREGISTERED] = run_account_unregistered,
	[CLI_COMMAND_ACCOUNT_REGISTER] = run_account_register,
	[CLI_COMMAND_ACCOUNT_RETRY_CLEANUP] = run_account_retry_cleanup,
	[CLI_COMMAND_ACCOUNT_QUARANTINE] = run_account_quarantine,
	[CLI_COMMAND_ACCOUNT_EJECT] = run_account_eject,
	[CLI_COMMAND_EXPLAIN] = run_explain,
	[CLI_COMMAND_HOLD_LIST] = run_hold_list,
	[CLI_COMMAND_HOLD_SHOW] = run_hold_show,
	[CLI_COMMAND_HOLD_ADD] = run_hold_add,
	[CLI_COMMAND_HOLD_EXTEND] = run_hold_extend,
	[CLI_COMMAND_HOLD_RELEASE] = run_hold_release,
	[CLI_COMMAND_HOLD_CANCEL] = run_hold_cancel,
	[CLI_COMMAND_HOLD_BYPASS] = run_hold_bypass,
	[CLI_COMMAND_HOLD_DRAIN] = run_hold_drain,
	[CLI_COMMAND_HOLD_SAFE_TO_REMOVE] = run_hold_safe_to_remove,
	[CLI_COMMAND_DOCTOR] = run_doctor,
	[CLI_COMMAND_JOB_LIST] = run_job_list,
	[CLI_COMMAND_JOB_RUN] = run_job_run,
	[CLI_COMMAND_JOB_PAUSE] = run_job_pause,
	[CLI_COMMAND_JOB_RESUME] = run_job_resume,
	[CLI_COMMAND_EVENT_LIST] = run_event_list,
	[CLI_COMMAND_EVENT_SHOW] = run_event_show,
	[CLI_COMMAND_EVENT_EXPORT] = run_event_export,
	[CLI_COMMAND_EVENT_WATCH] = run_event_watch,
	[CLI_COMMAND_QUEUE_LIST] = run_queue_list,
	[CLI_COMMAND_QUEUE_SHOW] = run_queue_show,
	[CLI_COMMAND_DLQ_LIST] = run_dlq_list,
	[CLI_COMMAND_DLQ_SHOW] = run_dlq_show,
	[CLI_COMMAND_DLQ_REPLAY] = run_dlq_replay,
	[CLI_COMMAND_DLQ_DROP] = run_dlq_drop,
	[CLI_COMMAND_TIMER_LIST] = run_timer_list,
	[CLI_COMMAND_TIMER_FIRE] = run_timer_fire,
	[CLI_COMMAND_TIMER_CANCEL] = run_timer_cancel,
	[CLI_COMMAND_SAGA_LIST] = run_saga_list,
	[CLI_COMMAND_SAGA_SHOW] = run_saga_show,
	[CLI_COMMAND_SAGA_RETRY] = run_saga_retry,
	[CLI_COMMAND_SAGA_SKIP] = run_saga_skip,
	[CLI_COMMAND_SAGA_ABORT] = run_saga_abort,
	[CLI_COMMAND_ALARM_LIST] = run_alarm_list,
	[CLI_COMMAND_WEBHOOK_LIST] = run_webhook_list,
	[CLI_COMMAND_WEBHOOK_CREATE] = run_webhook_create,
	[CLI_COMMAND_WEBHOOK_CHANGE] = run_webhook_change,
	[CLI_COMMAND_WEBHOOK_REMOVE] = run_webhook_remove,
	[CLI_COMMAND_WEBHOOK_TEST] = run_webhook_test,
	[CLI_COMMAND_POLICY_SHOW] = run_policy_show,
	[CLI_COMMAND_POLICY_CHECK] = run_policy_check,
	[CLI_COMMAND_POLICY_SET] = run_policy_set,
	[CLI_COMMAND_POLICY_EDIT] = run_policy_edit,
	[CLI_COMMAND_POLICY_HISTORY] = run_policy_history,
	[CLI_COMMAND_POLICY_EXPLAIN] = run_policy_explain,
	[CLI_COMMAND_CONFIG_SHOW] = run_policy_show,
	[CLI_COMMAND_CONFIG_VALIDATE] = run_policy_check,
	[CLI_COMMAND_CONFIG_SET] = run_policy_set,
	[CLI_COMMAND_CONFIG_EDIT] = run_policy_edit,
	[CLI_COMMAND_REPORT_COSTS] = run_report_costs,
	[CLI_COMMAND_REPORT_STATEMENT] = run_report_statement,
	[CLI_COMMAND_SERVICE_ACCOUNT_LIST] = run_service_account_list,
	[CLI_COMMAND_SERVICE_ACCOUNT_CREATE] = run_service_account_create,
	[CLI_COMMAND_SERVICE_ACCOUNT_ROTATE] = run_service_account_rotate,
	[CLI_COMMAND_SERVICE_ACCOUNT_REVOKE] = run_service_account_revoke,
};

static size_t help_width(const struct cli_io *io)
{
	return io->is_out_terminal ? TERMINAL_WIDTH : 0;
}

static int run_help(const struct cli_io *io, const struct cli_args *args)
{
	struct err e = { 0 };

	if (args->values[CLI_OPTION_MAN]) {
		help_man(io->out);
	} else if (args->operand_count == 0) {
		help_all(io->out, help_width(io));
	} else if (args->operand_count == 1 && strcmp(args->operands[0], "exit-codes") == 0) {
		help_exit_codes(io->out);
	} else if (!help_command(io->out, args->operands, args->operand_count, help_width(io))) {
		(void)cli_refuse_command(args->operands, args->operand_count, &e); /* never RC_OK */
		fprintf(io->err, "leasehold: %s\n", e.msg);
		return CLI_EXIT_USAGE;
	}
	return CLI_EXIT_OK;
}

/* "--help" behind a command, or behind nothing or a noun. */
static int run_help_option(const struct cli_io *io, const struct cli_args *args)
{
	if (!args->command)
		return run_help(io, args);
	help_one(io->out, args->command, help_width(io));
	return CLI_EXIT_OK;
}

static int run_local(const struct cli_io *io, const struct cli_args *args)
{
	if (args->command == &cli_commands[CLI_COMMAND_TOKEN_ISSUE])
		return run_token_issue(io, args);
	if (args->command == &cli_commands[CLI_COMMAND_TOKEN_HASH_PASSWORD])
		return run_token_hash_password(io, args);
	if (args->command == &cli_commands[CLI_COMMAND_HELP])
		return run_help(io, args);
	if (help_completion(io->out, args->operands[0]))
		return CLI_EXIT_OK;
	fprintf(io->err, "leasehold: completion: the shell must be bash or zsh, not '%s'\n", args->operands[0]);
	return CLI_EXIT_USAGE;
}

static int run_once(const struct cli_io *io, const struct cli_args *args)
{
	struct err    e = { 0 };
	struct remote remote;
	int           code;

	if (remote_open(&remote, io, args, &e) == RC_OK)
		code = runs[args->command - cli_commands](&remote);
	else
		code = remote_fail(&remote, &e);
	remote_close(&remote);
	return code;
}

static int dispatch(const struct cli_io *io, const struct cli_args *args)
{
	if (args->wants_help)
		return run_help_option(io, args);
	switch (args->command->place) {
	case CLI_PLACE_API: return args->values[CLI_OPTION_WATCH] ? again_run(io, args, run_once) : run_once(io, args);
	case CLI_PLACE_LOCAL: return run_local(io, args);
	case CLI_PLACE_APP: break;
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

static const char *process_env(const char *name)
{
	return getenv(name);
}

int cli_main(int argc, char **argv)
{
	struct cli_io io = { .in = stdin,
		             .out = stdout,
		             .err = stderr,
		             .is_in_terminal = isatty(STDIN_FILENO),
		             .is_out_terminal = isatty(STDOUT_FILENO),
		             .is_err_terminal = isatty(STDERR_FILENO),
		             .env = process_env,
		             .clock = &clock_real,
		             .poll_ms = POLL_MS };

	fetch_global_init();
	return cli_run(&io, argc, argv);
}
