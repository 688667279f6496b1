/* lease_passes.h - the background work about leases, one pass at a time; they need pass.leases. Worker threads. */
#pragma once

#include "service/pass/pass.h"

/* Asks what each Active or Frozen lease has cost, and acts on it. An account whose cost is not available keeps its last
 * figure and its age; the first other failure is reported when all have been seen. */
pass_fn pass_watch_leases;

/* Removes denied and ended leases whose time to live is over. */
pass_fn pass_purge_leases;

/* Ends leases that have lost their account, takes back accounts that have lost their lease. */
pass_fn pass_find_orphans;

/* Denies those who have been in line for too long, and serves the line in case nothing else did. */
pass_fn pass_tend_line;
