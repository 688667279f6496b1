/* csp_sim.h - a simulated vendor inside the program: what `make run` lends out. Part of the simulated cloud's world. */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

struct csp;
struct sim_faults;
struct store;

struct csp_sim_options {
	struct store      *store;  /* opened with sim_types; stays the caller's */
	struct sim_faults *faults; /* what disturbs it, and its chance; stays the caller's */
	int64_t            stock;
};

/* Sees to it that at least stock accounts exist. Blocks. */
MUST_CHECK enum rc csp_sim_open(const struct csp_sim_options *o, struct csp **ret, struct err *e);
