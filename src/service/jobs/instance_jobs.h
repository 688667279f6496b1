/* instance_jobs.h - the passes about tenants' instances as jobs. They need a driver: pass.instances. */
#pragma once

#include "service/pass/pass.h"

pass_fn job_watch_instances;       /* counts: looked at, fewer tasks than there should be, could not be asked */
pass_fn job_find_orphan_resources; /* counts: orphans, missing */
