/* recover.h - after a crash of the only node. */
#pragma once

#include "base/attr.h"
#include "base/err.h"

struct kernel;

/* Free everything that is claimed. Only when no other node can exist. Blocks. */
MUST_CHECK enum rc kernel_recover(struct kernel *k, struct err *e);
