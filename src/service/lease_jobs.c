/* SPDX-License-Identifier: Apache-2.0 */
/* lease_jobs.c - gives the passes about leases and accounts the form that jobs have. */
#include "service/lease_jobs.h"

#include "service/account_drift.h"
#include "service/lease_passes.h"
#include "service/reconcile.h"

static bool may_go_on(void *arg)
{
	const struct pass *p = arg;

	return p->wait(p->wait_arg, 0);
}

static enum rc run(lease_pass_fn *pass, const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct pass       copy = *p;
	struct lease_pass terms = { .store = p->store,
		                    .clock = p->clock,
		                    .costs = p->leases->cloud.costs,
		                    .projects = p->leases->projects,
		                    .policy = p->leases->policy(p->leases->policy_arg),
		                    .line_limit_ms = p->leases->line_limit_ms,
		                    .may_go_on = may_go_on,
		                    .arg = &copy };

	return pass(&terms, ret, e);
}

enum rc job_watch_leases(const struct pass *p, struct pass_result *ret, struct err *e)
{
	return run(pass_watch_leases, p, ret, e);
}

enum rc job_purge_leases(const struct pass *p, struct pass_result *ret, struct err *e)
{
	return run(pass_purge_leases, p, ret, e);
}

enum rc job_find_orphans(const struct pass *p, struct pass_result *ret, struct err *e)
{
	return run(pass_find_orphans, p, ret, e);
}

enum rc job_tend_line(const struct pass *p, struct pass_result *ret, struct err *e)
{
	return run(pass_tend_line, p, ret, e);
}

enum rc job_find_drift(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct pass          copy = *p;
	struct account_drift drift = { .store = p->store,
		                       .organisation = p->leases->cloud.organisation,
		                       .clock = p->clock,
		                       .go_on = may_go_on,
		                       .go_on_arg = &copy };

	return account_drift_pass(&drift, ret, e);
}

enum rc job_reconcile(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct pass             copy = *p;
	struct reconcile_report report = { .count = 0 };
	struct reconcile        terms = { .store = p->store,
		                          .organisation = p->reconcile->organisation,
		                          .records = p->reconcile->records,
		                          .clock = p->clock,
		                          .go_on = may_go_on,
		                          .go_on_arg = &copy };
	enum rc                 rc = reconcile_run(&terms, &report, e);

	pass_count(ret, "accounts", report.accounts, METRIC__COUNT);
	pass_count(ret, "holds", report.holds, METRIC__COUNT);
	pass_count(ret, "found", report.found, METRIC__COUNT);
	pass_count(ret, "healed", report.healed, METRIC__COUNT);
	reconcile_report_fini(&report);
	return rc;
}
