/* run.h - what each command does. Each returns the exit code and has said why when it is not 0. */
#pragma once

struct remote;

typedef int cli_run_fn(struct remote *remote);

cli_run_fn run_sandbox_claim, run_sandbox_show, run_sandbox_give_back, run_sandbox_list, run_sandbox_stats,
        run_sandbox_quarantine, run_sandbox_release, run_sandbox_retry_deletion, run_sandbox_bulk_delete,
        run_sandbox_remove_stale;
cli_run_fn run_job_list, run_job_run, run_job_pause, run_job_resume;

struct remote_request;

/* Send a request that runs a job; when the server answers before the end of the run, look until it is over. */
int run_job_to_end(struct remote *remote, const struct remote_request *req, const char *job);

/* Wait a little before looking again. */
void run_pause(int ms);
