/* lease_passes.h - the background work about leases, one pass at a time. Blocks: worker threads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "domain/policy.h"
#include "service/passes.h"
#include "store/session.h"

struct costs;
struct store;

/* What a pass needs. */
struct lease_pass {
	struct store        *store;
	const struct clock  *clock;
	struct costs        *costs;         /* the monitor */
	bool                 projects;      /* the monitor: projected spend may alert */
	const struct policy *policy;        /* the purge */
	int64_t              line_limit_ms; /* the line: longer than this nobody waits; 0: for ever */

	/* Between two pages: false when it shall stop. */
	bool (*may_go_on)(void *arg);
	void *arg;
};

typedef enum rc lease_pass_fn(const struct lease_pass *p, struct pass_result *ret, struct err *e);

/* Asks what each Active or Frozen lease has cost and does what follows. An account whose cost cannot be had keeps its last figure, with the
 * age of that; the first other failure is reported when all have been seen. */
lease_pass_fn pass_watch_leases;

/* Removes denied and ended leases whose time to live is over. */
lease_pass_fn pass_purge_leases;

/* Ends leases that have lost their account, takes back accounts that have lost their lease. */
lease_pass_fn pass_find_orphans;

/* Denies those who have been in line for too long, and serves the line, should it have been forgotten. */
lease_pass_fn pass_tend_line;

/* For the passes themselves: each page of the query, read on a snapshot. The page lives during the visit. */
typedef enum rc    lease_visit_fn(const struct lease_pass *p, const struct page *page, struct arena *a, void *arg,
                                  struct err *e);
MUST_CHECK enum rc lease_walk(const struct lease_pass *p, const struct query *q, lease_visit_fn *visit, void *arg,
                              struct err *e);
