/* secrets.h - settings whose values are kept elsewhere. */
#pragma once

#include <stdbool.h>

struct buf;
struct config;

/* Replace references ("secretsmanager:NAME[#key]") by their values, also where that was done before, and check the
 * settings again. Without any reference, AWS is not called. A value that cannot be read is a problem, one a line, and
 * its setting stays as it is. Blocks. */
void secrets_read(struct config *c, struct buf *problems);

/* Does any setting have its value from there? */
bool secrets_any(const struct config *c);
