/* run.h - what each command does. Each returns the exit code and has said why when it is not 0. */
#pragma once

struct api;

typedef int cli_run_fn(struct api *api);

cli_run_fn sandbox_claim, sandbox_show, sandbox_give_back, sandbox_list, sandbox_stats, sandbox_quarantine,
	sandbox_release, sandbox_retry_deletion;
cli_run_fn job_list, job_run, job_pause, job_resume;

/* Wait a little before looking again. */
void run_pause(int ms);
