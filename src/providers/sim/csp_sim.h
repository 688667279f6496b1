/* csp_sim.h - a simulated vendor inside the program, durable in its own file: what `make run` lends out. */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

struct clock;
struct csp;

/* Opens or makes the file and sees to it that at least stock accounts exist. */
MUST_CHECK enum rc csp_sim_open(const char *path, int64_t stock, const struct clock *clock, struct csp **ret,
                                struct err *e);
