/* SPDX-License-Identifier: Apache-2.0 */
/* run_doctor.c - "doctor": is everything where it should be? Looks, and with --fix puts right what can be put right safely. */
#include "cli/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/remote.h"

static const char *outcome(const json_t *finding)
{
	if (json_is_true(json_object_get(finding, "healed")))
		return "put right";
	return json_is_true(json_object_get(finding, "can_be_healed")) ? "--fix puts it right" : "needs a person";
}

static void print_findings(struct remote *remote, const json_t *document)
{
	const json_t *findings = json_object_get(document, "findings");
	int64_t       accounts = 0, holds = 0, found = 0;

	if (!json_get_number(document, "accounts", 0, &accounts) || !json_get_number(document, "holds", 0, &holds) ||
	    !json_get_number(document, "found", 0, &found))
		found = (int64_t)json_array_size(findings);
	fprintf(remote->io->out, "%" PRId64 " accounts and %" PRId64 " open holds looked at: ", accounts, holds);
	if (found)
		fprintf(remote->io->out, "%" PRId64 " found\n", found);
	else
		fprintf(remote->io->out, "nothing is wrong\n");
	for (size_t i = 0; i < json_array_size(findings); i++) {
		const json_t *finding = json_array_get(findings, i);
		struct str    kind = list_text(remote, finding, "kind"), text = list_text(remote, finding, "text");

		fprintf(remote->io->out, "  %-15.*s %.*s [%s]\n", STR_ARG(kind), STR_ARG(text), outcome(finding));
	}
}

int run_doctor(struct remote *remote)
{
	bool                        fixes = remote->args->values[CLI_OPTION_FIX] != NULL;
	struct remote_request       req = { .method = fixes ? "POST" : "GET",
		                            .path = STR("/ops/doctor"),
		                            .scope = REMOTE_ADMIN,
		                            .waiting_for = "the comparison" };
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	int                         code = remote_call(remote, &req, &reply, &document);
	int64_t                     found = 0, healed = 0;

	if (code != CLI_EXIT_OK)
		return code;
	if (remote->is_json)
		remote_print_json(remote, &reply);
	else
		print_findings(remote, document);
	if (!json_get_number(document, "found", 0, &found) || !json_get_number(document, "healed", 0, &healed))
		return CLI_EXIT_FOUND;
	return found > healed ? CLI_EXIT_FOUND : CLI_EXIT_OK;
}
