/* lane.h - shared by the files that deal with deliveries; nobody outside the kernel includes this. */
#pragma once

#include <stdint.h>

#include "kernel/queue.h"

struct arena;

/* What an event about a dead letter says. */
struct str dead_to_detail(const struct dead *dead, struct str reason, struct arena *a);
