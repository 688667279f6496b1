/* preflight.h - what must be right outside the settings' own limits before a server starts. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct config;

/* Every problem with the listen address, the data folder's name, the files of certificates, and --dev beside a real
 * vendor; one a line. */
void preflight_check(struct config *c, bool is_dev, struct buf *problems);

/* Every problem with the certificate and key to serve with; none when they are not set. */
void preflight_tls(const struct config *c, struct buf *problems);

/* "127.0.0.1:8080", "[::1]:8080" as address and port. RC_INVALID. The text is in the arena of the configuration. */
MUST_CHECK enum rc preflight_listen(struct config *c, char **ret_host, int *ret_port, struct err *e);
