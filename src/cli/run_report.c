/* SPDX-License-Identifier: Apache-2.0 */
/* run_report.c - the "report" commands: what leases cost. */
#include "cli/run.h"

#include <stdio.h>

#include "base/buf.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/remote.h"

enum { ESCAPED_MAX = 65536 };

static bool print_bytes(struct str bytes, void *arg)
{
	const struct remote *remote = arg;

	return fwrite(bytes.p, 1, bytes.n, remote->io->out) == bytes.n;
}

int run_report_costs(struct remote *remote)
{
	struct buf            escaped;
	struct remote_request req = { .method = "GET", .scope = REMOTE_ADMIN };
	struct fetch_reply    reply;
	struct err            e = { 0 };

	buf_init(&escaped, ESCAPED_MAX);
	fetch_escape(&escaped, str_from(remote->args->operands[0]));
	req.path = str_format(&remote->arena, "/ops/reports/costs?month=%s", escaped.p);
	buf_fini(&escaped);
	if (remote_stream(remote, &req, print_bytes, remote, &reply, &e))
		return remote_fail(remote, &e);
	return remote_is_success(&reply) ? CLI_EXIT_OK : remote_refused(remote, &reply);
}

int run_report_statement(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "GET",
	                                                    .path = ask_path(remote, "/ops/leases/", "/statement"),
	                                                    .scope = REMOTE_ADMIN });
}
