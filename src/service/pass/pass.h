/* pass.h - one run of a job: what it needs, what it is told, what it did. Blocks: worker threads. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/metrics.h"
#include "base/str.h"
#include "domain/ports/caller.h"
#include "domain/ports/cloud.h"
#include "domain/sandbox.h"
#include "store/session.h"

/* What passes about leases and accounts need. */
struct lease_world {
	struct cloud cloud;         /* costs and organisation are used */
	bool         projects;      /* the monitor: projected spend may alert */
	int64_t      line_limit_ms; /* the line: nobody waits longer than this; 0: for ever */

	const struct hold_rules *rules; /* how long accounts rest */

	/* The operator's configuration as it is now. Any thread. */
	const struct policy *(*policy)(void *arg);
	void *policy_arg;
};

/* What the reconciler compares with what: service/reconcile/reconcile.h. */
struct reconcile_world {
	struct organisation *organisation;
	struct pool_records *records;
};

struct pass_result;

/* What a provider reads from outside into the store, for all nodes. */
struct pass_refresh {
	enum rc (*run)(void *arg, bool was_asked, struct pass_result *ret,
	               struct err *e); /* NULL: there is nothing to refresh */
	void *arg;
};

/* What a pass needs and is told. */
struct pass {
	struct store                 *store;
	struct csp                   *csp;
	const struct clock           *clock;
	const struct broker_settings *settings;
	struct actor                  by;        /* for the events */
	struct metrics               *metrics;   /* for what the result does not count; may be NULL */
	const struct lease_world     *leases;    /* passes about leases; NULL: there are none */
	const struct reconcile_world *reconcile; /* NULL: there is no pool of accounts */
	const struct instance_world  *instances; /* NULL: there are none */
	const struct pass_refresh    *refresh;   /* of this job; NULL: it is none that refreshes */

	bool               was_asked;   /* by somebody, not by the schedule */
	bool               is_forced;   /* sync: no limit on stale ones */
	int64_t            stale_hours; /* stale removal: not younger than this */
	enum sandbox_state status;      /* bulk delete: which */

	/* Wait between two deletions. False: stop now. NULL: never wait, never stop. */
	bool (*wait)(void *arg, int64_t ms);
	void *wait_arg;
};

enum { PASS_COUNTS_MAX = 6 };

/* What a pass did, in the words of its reply. */
struct pass_result {
	struct {
		const char *name;
		int64_t     value;
		enum metric metric; /* METRIC__COUNT: none */
	} counts[PASS_COUNTS_MAX];
	int count;
};

typedef enum rc pass_fn(const struct pass *p, struct pass_result *ret, struct err *e);

/* Runs what the job refreshes. */
pass_fn pass_refresh_run;

/* --- for the passes themselves --- */

void pass_count(struct pass_result *r, const char *name, int64_t value, enum metric metric);

/* False: stop now. */
bool pass_wait(const struct pass *p, int64_t ms);

/* Between two groups: RC_UNAVAILABLE when it should stop (the server ends, another node has taken over). NULL:
 * never. */
MUST_CHECK enum rc pass_go_on(const struct pass *p, struct err *e);

/* Each page of the query, read on a snapshot, or each of its records; ends when it should stop. The page lives during
 * the visit, which may run transactions in the arena. */
typedef enum rc pass_page_fn(const struct pass *p, const struct page *page, struct arena *a, void *arg, struct err *e);
MUST_CHECK enum rc pass_walk(const struct pass *p, const struct query *q, pass_page_fn *visit, void *arg,
                             struct err *e);
typedef enum rc    pass_record_fn(const struct pass *p, const void *record, void *arg, struct err *e);
MUST_CHECK enum rc pass_each(const struct pass *p, const struct query *q, pass_record_fn *visit, void *arg,
                             struct err *e);
