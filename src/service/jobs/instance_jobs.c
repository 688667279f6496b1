/* SPDX-License-Identifier: Apache-2.0 */
/* instance_jobs.c - gives the passes about instances the form that jobs have. */
#include "service/jobs/instance_jobs.h"

#include "base/arena.h"
#include "service/instance/instances.h"

enum rc job_watch_instances(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct instance_watch w = { 0 };
	enum rc               rc = instance_watch(p->instances, &w, e);

	pass_count(ret, "looked", w.looked, METRIC__COUNT);
	pass_count(ret, "below", w.below, METRIC__COUNT);
	pass_count(ret, "failed", w.failed, METRIC__COUNT);
	return rc;
}

enum rc job_find_orphan_resources(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct instance_scan_result      r = { 0 };
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = instance_scan(p->instances, SCAN_KEEPS, STR(""), &a, &r, e);

	pass_count(ret, "orphans", r.orphans, METRIC__COUNT);
	pass_count(ret, "missing", r.missing, METRIC__COUNT);
	return rc;
}
