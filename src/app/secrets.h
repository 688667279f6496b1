/* secrets.h - settings whose values are kept elsewhere. */
#pragma once

#include <stdbool.h>

struct buf;
struct config;

/* Put the values in the places of their references ("secretsmanager:NAME[#key]"), also of those that were read before, and check
 * them again. Settings without one stay, and without any nobody is called. What cannot be read is a problem, one a line, and its
 * setting stays as it is. Blocks. */
void secrets_read(struct config *c, struct buf *problems);

/* Was any of them read so? */
bool secrets_any(const struct config *c);
