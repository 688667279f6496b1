/* run.h - what each command does. Each returns the exit code and has said why when it is not 0. */
#pragma once

struct cli_args;
struct cli_io;
struct remote;

typedef int cli_run_fn(struct remote *remote);

cli_run_fn run_status, run_demo;
cli_run_fn run_sandbox_claim, run_sandbox_show, run_sandbox_give_back, run_sandbox_list, run_sandbox_stats,
        run_sandbox_quarantine, run_sandbox_release, run_sandbox_delete, run_sandbox_retry_deletion,
        run_sandbox_bulk_delete, run_sandbox_remove_stale;
cli_run_fn run_lease_request, run_lease_list, run_lease_show, run_lease_approve, run_lease_deny, run_lease_freeze,
        run_lease_unfreeze, run_lease_terminate, run_lease_withdraw, run_lease_extend, run_lease_wait,
        run_lease_statement;
cli_run_fn run_wait_lease, run_wait_account;
cli_run_fn run_template_list, run_template_show, run_template_create, run_template_change, run_template_delete;
cli_run_fn run_account_list, run_account_show, run_account_unregistered, run_account_register,
        run_account_retry_cleanup, run_account_quarantine, run_account_eject;
cli_run_fn run_explain;
cli_run_fn run_hold_list, run_hold_show, run_hold_add, run_hold_extend, run_hold_release, run_hold_cancel,
        run_hold_bypass, run_hold_drain, run_hold_safe_to_remove;
cli_run_fn run_doctor;
cli_run_fn run_job_list, run_job_run, run_job_pause, run_job_resume;
cli_run_fn run_event_list, run_event_show, run_event_export, run_event_watch;
cli_run_fn run_queue_list, run_queue_show;
cli_run_fn run_dlq_list, run_dlq_show, run_dlq_replay, run_dlq_drop;
cli_run_fn run_timer_list, run_timer_fire, run_timer_cancel;
cli_run_fn run_saga_list, run_saga_show, run_saga_retry, run_saga_skip, run_saga_abort;
cli_run_fn run_alarm_list;
cli_run_fn run_webhook_list, run_webhook_create, run_webhook_change, run_webhook_remove, run_webhook_test;
cli_run_fn run_policy_show, run_policy_check, run_policy_set, run_policy_edit, run_policy_history, run_policy_explain;
cli_run_fn run_report_costs, run_report_statement;

cli_run_fn run_service_account_list, run_service_account_create, run_service_account_rotate, run_service_account_revoke;

/* Without a server. */
typedef int  cli_local_fn(const struct cli_io *io, const struct cli_args *args);
cli_local_fn run_token_issue, run_token_hash_password;

struct remote_request;

/* Send a request that runs a job; when the server answers before the end of the run, look until it is over. */
int run_job_to_end(struct remote *remote, const struct remote_request *req, const char *job);

/* Wait a little before looking again. */
void run_pause(int ms);
