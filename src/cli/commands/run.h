/* run.h - what the rows of calls.c refer to: commands of more than one call, and what is shown beyond plain members. */
#pragma once

#include "cli/call/call.h"

call_run_fn run_status, run_demo, run_explain;
call_run_fn run_sandbox_claim, run_sandbox_show, run_sandbox_give_back, run_sandbox_replace, run_sandbox_quarantine,
        run_sandbox_retry_deletion, run_sandbox_bulk_delete;
call_run_fn run_lease_many, run_lease_request, run_lease_list, run_lease_extend, run_wait_lease, run_wait_account;
call_run_fn run_template_create, run_template_change, run_template_delete;
call_run_fn run_hold_drain, run_job_run, run_event_watch, run_dlq_replay, run_dlq_drop, run_alarm_show;
call_run_fn run_policy_document, run_policy_set, run_policy_edit;
call_run_fn run_report_costs;

/* Without a server. */
typedef int  cli_local_fn(const struct cli_io *io, const struct cli_args *args);
cli_local_fn run_token_issue, run_token_hash_password;

extern const struct compose_field event_filters[];

/* Show a lease after a change; with --wait, once it can be used, or once its account is clean. */
call_finish_fn finish_lease_request, finish_lease, finish_lease_end;

call_finish_fn finish_instance; /* says what was accepted; with --wait, waits for the end of the operation */
call_finish_fn finish_job;      /* waits for the end of the run when the server answered before it */

call_print_fn print_explanation, print_policy_document, print_policy_check, print_policy_explanation;
call_print_fn print_aws_probe, print_doctor, print_saga;
call_print_fn print_account_report; /* what the last cleanup removed and left */
call_print_fn print_removal;        /* is it safe to remove the service? */
call_print_fn print_statement_rows; /* the cost of each service */
call_print_fn print_spend_rows;     /* and of each day */

call_exit_fn exit_code_of_policy_check, exit_code_of_doctor;
call_exit_fn exit_code_of_forecast; /* 7: not enough */

void print_paused_claims(struct remote *remote); /* only when they are paused */

cell_fn cell_lease_status;       /* InLine while it waits for an account; Withdrawn when its owner did that */
cell_fn cell_lease_forecast;     /* its projected cost; whether the cost of an ended one is final */
cell_fn cell_lease_spent;        /* "12.50/50.00"; without a budget "12.50" */
cell_fn cell_lease_coming_end;   /* only of a lease that has not ended */
cell_fn cell_lease_line;         /* "place 3, about 2026-11-15 18:03:43 (in 12 min)" */
cell_fn cell_account_rest;       /* when its cooldown ends; empty when it is not in cooldown */
cell_fn cell_account_report;     /* how many resources were removed, could not be, or were kept */
cell_fn cell_hold_due;           /* when it is due, or who ends it */
cell_fn cell_hold_end;           /* the same, of a closed one its state */
cell_fn cell_hold_person;        /* who ends an open one without a due time */
cell_fn cell_instance_tasks;     /* "2/2": running of desired */
cell_fn cell_instance_error;     /* code, step and message of an object */
cell_fn cell_instance_operation; /* how far it is */
cell_fn cell_job_state;          /* running, paused or waiting */
cell_fn cell_queue_tries;
cell_fn cell_saga_step; /* "2/5 move account" */
cell_fn cell_policy_keys;

/* --- one command for many things (many.c): each is a call of its own, so it can be interrupted and run again --- */

struct many {
	struct remote     *remote;
	const struct call *row;  /* what is sent; the id of each goes into the braces of its path */
	struct str         body; /* the same for all */
	size_t             done, refused;
};

/* Send one. A refusal (unknown, in another state, not allowed) is printed on standard error with the label and does
 * not stop the others; an unreachable server does. Returns the exit code. */
int many_send(struct many *m, struct str id, struct str label);

/* Call each() with every line of a file that is not blank; "-" is standard input. The file is read and its lines'
 * lengths are checked before the first call. Stops at the first code that is not 0. Without a function each line is an
 * id to send. */
typedef int many_fn(struct many *m, struct str line);
int         many_lines(struct many *m, const char *file, many_fn *each);

/* "12 approved, 1 not"; with --json on standard error; nothing when it failed before the first. Returns the exit
 * code. */
int many_end(const struct many *m, int code, const char *did);

/* 0 when that ("end 30 leases") is confirmed, by --yes or at the terminal. */
int many_agreed(const struct remote *remote, struct str what);

/* --- what the commands about sandboxes share --- */

/* Claim until the answer is not "none free" or the time is up. Operators claim for a track, too. */
MUST_CHECK enum rc claim_sandbox(struct remote *remote, enum remote_scope scope, struct str track, int64_t wait_sec,
                                 struct fetch_reply *ret, struct err *e);

/* None was free. */
bool sandbox_is_out_of_stock(const struct fetch_reply *reply);

/* For every track in the file of a class. */
int class_claim(struct remote *remote, const char *file);
int class_give_back(struct remote *remote, const char *file);

/* --- waiting until something in the API has the wanted state, with progress (lease_wait.c) --- */

enum wait_outcome { WAIT_ON, WAIT_DONE, WAIT_FAILED };

struct wait {
	struct str        path;
	enum remote_scope scope; /* whose path that is */
	/* *ret_text: what is being waited for, or why it can no longer happen. Lives in the remote's arena. */
	enum wait_outcome (*judge)(struct remote *remote, const json_t *item, struct str goal, struct str *ret_text);
	struct str  goal;     /* for the judge */
	const char *advice;   /* when the time is up */
	int         shown_by; /* a command: prints the result at the end as that does; 0: not at all */

	int64_t    started_ms, limit_ms; /* private from here on */
	struct str shown;                /* the last text */
};

/* Waits as long as --wait or --timeout says, by default a day. Returns the exit code: 0 done, 1 it can no longer
 * happen, 3 the time is up, others as for any call. */
int wait_run(struct remote *remote, struct wait *w);

/* Wait until the lease has this status, or has ended with another; then print it. */
int lease_wait(struct remote *remote, struct str id, struct str status);

/* Wait until the account of a lease that has ended is clean. For managers and admins. */
int lease_wait_for_return(struct remote *remote, struct str account_id, struct str uuid);
