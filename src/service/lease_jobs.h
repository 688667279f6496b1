/* lease_jobs.h - the passes about leases and accounts as jobs. They need a cloud: pass.leases. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "domain/cloud.h"
#include "domain/hold.h"
#include "domain/policy.h"
#include "service/passes.h"

struct lease_world {
	struct cloud cloud; /* costs and organisation are used */
	bool         projects;
	int64_t      line_limit_ms;

	const struct hold_rules *rules; /* how long accounts rest */

	/* The operator's configuration as it is now. Any thread. */
	const struct policy *(*policy)(void *arg);
	void *policy_arg;
};

pass_fn job_watch_leases;
pass_fn job_purge_leases;
pass_fn job_find_orphans;
pass_fn job_tend_line;
pass_fn job_find_drift;
pass_fn job_reconcile; /* counts: accounts and holds looked at, found, healed */
