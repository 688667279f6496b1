/* pump.h - the threads that do the kernel's work. */
#pragma once

#include <stdint.h>

struct pump_options {
	struct kernel *kernel;
	unsigned       workers; /* calls at once */
	int64_t        poll_ms; /* look for other nodes' work at least this often */
};

struct pump *pump_start(const struct pump_options *o);

/* There is something to do; for kernel_on_news(). Any thread. */
void pump_poke(void *pump);

/* Calls under way are asked to end, and awaited. */
void pump_stop(struct pump *p);
