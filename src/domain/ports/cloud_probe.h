/* cloud_probe.h - may we do at the cloud what we need to do there? A row per permission, found by harmless calls. */
#pragma once

#include "base/err.h"
#include "base/str.h"

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

struct cloud_probe {
	/* All rows, in the order of the calls. is_paid: also calls that cost money. Blocks, for some seconds. */
	enum rc (*look)(struct cloud_probe *p, bool is_paid, struct arena *a, struct probe_row **ret, size_t *ret_count,
	                struct err *e);
};
