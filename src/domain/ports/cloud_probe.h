/* cloud_probe.h - may we do at the cloud what we need to do there? A row per permission, found by harmless calls. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct cloud_probe;

enum probe_verdict { PROBE_OK, PROBE_DENIED, PROBE_MISSING, PROBE_UNREACHABLE, PROBE_NOT_TRIED, PROBE_VERDICT_COUNT };
extern const char *const probe_verdict_names[PROBE_VERDICT_COUNT];

struct probe_row {
	struct str         permission; /* "organizations:MoveAccount" */
	struct str         as;         /* by which credentials: the role's ARN, or "own credentials" */
	enum probe_verdict verdict;
	bool               is_needed; /* without it we cannot work at all */
	struct str         text;      /* what was found; empty: nothing to add */
	struct str         change;    /* what to do about it; empty: nothing */
};

/* All rows, in the order in which they were asked for. is_paid: also calls that cost something. Blocks, for some
 * seconds. */
typedef enum rc cloud_probe_fn(struct cloud_probe *p, bool is_paid, struct arena *a, struct probe_row **ret,
                               size_t *ret_count, struct err *e);

struct cloud_probe {
	cloud_probe_fn *look;
};
