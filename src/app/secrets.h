/* secrets.h - settings whose values are kept elsewhere. */
#pragma once

struct buf;
struct config;

/* Put the values in the places of their references ("secretsmanager:NAME[#key]"), and check them again. Settings without
 * one stay, and nothing is called. What cannot be read is a problem, one a line. Blocks. */
void secrets_read(struct config *c, struct buf *problems);

/* Settings that are read again while the server runs: references get the values that they have. Calls nobody. */
void secrets_keep(struct config *fresh, const struct config *held);
