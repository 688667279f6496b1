/* sim_truth.h - how the simulated cloud really is, and what others do in it: never disturbed by a fault. Each call
 * blocks. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "providers/sim/cloud.h"

struct arena;

struct sim_truth {
	enum sim_ou_name ou;
	int64_t          dirty; /* resources that are really left in it */
	int64_t          rate;
	int64_t          moves;
};
MUST_CHECK enum rc sim_cloud_inspect(struct sim_cloud *c, struct str account_id, struct sim_truth *ret, struct err *e);

/* What a tenant really has. */
struct sim_tenant_truth {
	int64_t    resources;     /* how many */
	unsigned   kinds;         /* bit n: an enum instance_resource */
	struct str instance;      /* of which instance; of several: any. In the arena */
	int64_t    owners;        /* of so many instances */
	int64_t    desired;       /* tasks */
	int64_t    route;         /* an enum instance_route */
	int64_t    is_configured; /* WordPress is installed in it, so there are data */
	int64_t    archives;
};
MUST_CHECK enum rc sim_cloud_inspect_tenant(struct sim_cloud *c, struct str tenant, struct arena *a,
                                            struct sim_tenant_truth *ret, struct err *e);

/* What the account really spent in [from, to), whether the bill knows it yet or not. */
MUST_CHECK enum rc sim_cloud_true_spend(struct sim_cloud *c, struct str account_id, int64_t from_ms, int64_t to_ms,
                                        int64_t *ret_micro_usd, struct err *e);

/* The two halves of a change of the other system: the move, from wherever the account is; then its own write, whatever
 * the table says by now. An event may be handled in between. */
MUST_CHECK enum rc sim_isb_move(struct sim_cloud *c, struct str account, enum sim_ou_name to, struct err *e);
MUST_CHECK enum rc sim_isb_write(struct sim_cloud *c, struct str account, struct str status, struct err *e);

/* Both, one right after the other: the status has the name of the OU. */
MUST_CHECK enum rc sim_isb_change(struct sim_cloud *c, struct str account, enum sim_ou_name to, struct err *e);

/* What its table says. Empty: it does not have the account. */
MUST_CHECK enum rc sim_isb_status(struct sim_cloud *c, struct str account, struct arena *a, struct str *ret,
                                  struct err *e);
