/* csp.h - what the broker needs of the vendor that makes the sandboxes. Implemented in providers/. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct csp;

/* One account that exists at the vendor and may be lent. */
struct csp_account {
	struct str sandbox_id, external_id, name;
	struct str sfdc_account_id; /* empty when there is none */
	int64_t    created_at;      /* Unix seconds; 0 when unknown */
};

struct csp_ops {
	const char *name;

	/* All lendable accounts, in the arena; no two have one sandbox_id or one external_id. RC_UNAVAILABLE or
	 * RC_TIMEOUT when the vendor does not serve, RC_CORRUPT when its answer cannot be understood. Blocks: worker
	 * threads only. */
	enum rc (*list)(struct csp *c, struct arena *a, struct csp_account **ret, size_t *ret_count, struct err *e);

	/* Delete one. Already gone is RC_OK. Safe to repeat. RC_UNAVAILABLE and RC_TIMEOUT: trouble, try later;
	 * RC_DENIED: the vendor understood and refused. Blocks: worker threads only. */
	enum rc (*delete)(struct csp *c, struct str external_id, struct err *e);
	void (*close)(struct csp *c);
};

struct csp { /* first member of every implementation */
	const struct csp_ops *ops;
};

MUST_CHECK static inline enum rc csp_list(struct csp *c, struct arena *a, struct csp_account **ret, size_t *ret_count,
                                          struct err *e)
{
	return c->ops->list(c, a, ret, ret_count, e);
}

MUST_CHECK static inline enum rc csp_delete(struct csp *c, struct str external_id, struct err *e)
{
	return c->ops->delete (c, external_id, e);
}

static inline void csp_close(struct csp *c)
{
	if (c)
		c->ops->close(c);
}
