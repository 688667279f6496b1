/* aws_lending.h - what one node does for all where accounts of AWS are lent: refresh costs and people, renew
 * credentials. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct aws_parts;
struct jobs_options;

/* Adds the jobs, with their intervals. Without a cloud of AWS: none. */
void aws_lending_jobs(struct aws_parts *x, struct jobs_options *o);

/* All accounts of the pool, in the arena; arg is the store. See aws_cloud_options. */
MUST_CHECK enum rc aws_lending_pool(void *arg, struct arena *a, struct str **ret, size_t *ret_count, struct err *e);
