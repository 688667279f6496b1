/* services.h - all services together: what they store and do for each other. Needed to open a store or a kernel. */
#pragma once

#include "kernel/kernel.h"

extern const struct record_type *const service_types[];
extern const size_t                    service_type_count;

/* kernel_options.hooks */
extern const struct hook service_hooks[];
extern const size_t      service_hook_count;
