/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_dlq.c - the "dlq" commands: dead letters.
 *
 * The server replays a part of a queue's letters at a time. "replay --all" asks until as many were replayed as there were at first:
 * what dies again in the meantime is not replayed a second time.
 */
#include "cli/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/remote.h"

enum { CALLS_MAX = 100000 };

int run_dlq_list(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "ID", list_text, "id", 36 },           { "QUEUE", list_text, "queue", 11 },
		{ "SUBJECT", list_text, "subject", 16 }, { "TRIES", list_text, "tries", 5 },
		{ "DIED", list_age, "died_at", 5 },      { "ERROR", list_text, "error", 17 },
	};
	static const struct ask_filter filters[] = { { CLI_OPTION_QUEUE, "queue", NULL } };
	static const struct list       letters = { .path = "/ops/dead-letters",
		                                   .items = "dead_letters",
		                                   .columns = columns,
		                                   .column_count = ARRAY_LEN(columns),
		                                   .filters = filters,
		                                   .filter_count = ARRAY_LEN(filters),
		                                   .has_pages = true };

	return list_run(remote, &letters);
}

int run_dlq_show(struct remote *remote)
{
	return remote_run(remote, &(struct remote_request){ .method = "GET",
	                                                    .path = ask_path(remote, "/ops/dead-letters/", ""),
	                                                    .scope = REMOTE_ADMIN });
}

/* One call: how many were replayed, and how many are left. */
static int replay_some(struct remote *remote, int64_t *ret_replayed, int64_t *ret_left)
{
	static const struct ask_filter filters[] = { { CLI_OPTION_QUEUE, "queue", NULL } };
	struct remote_request          req = { .method = "POST", .scope = REMOTE_ADMIN };
	CLEANUP(json_freep) json_t    *answer = NULL;
	struct fetch_reply             reply;
	struct err                     e = { 0 };

	req.path = ask_query(remote, "/ops/dead-letters/replay", filters, ARRAY_LEN(filters), 0, STR(""));
	if (remote_send(remote, &req, &reply, &e))
		return remote_fail(remote, &e);
	if (!remote_is_success(&reply))
		return remote_refused(remote, &reply);
	if (remote_json(&reply, &answer, &e))
		return remote_fail(remote, &e);
	if (!json_get_number(answer, "replayed", 0, ret_replayed) || !json_get_number(answer, "left", 0, ret_left)) {
		(void)err_set(&e, RC_CORRUPT, "the server's answer does not say what was replayed"); /* has the code */
		return remote_fail(remote, &e);
	}
	if (remote->is_json)
		remote_print_json(remote, &reply);
	return CLI_EXIT_OK;
}

static int replay_all(struct remote *remote)
{
	int64_t replayed = 0, left = 0, total = 0, wanted = -1;
	int     code = CLI_EXIT_OK;

	for (int calls = 0; calls < CALLS_MAX; calls++) {
		code = replay_some(remote, &replayed, &left);
		if (code != CLI_EXIT_OK)
			break;
		total += replayed;
		if (wanted < 0)
			wanted = replayed + left;
		if (!replayed || !left || total >= wanted)
			break;
	}
	if (!remote->is_json && (code == CLI_EXIT_OK || total))
		fprintf(remote->io->out, "%" PRId64 " replayed, %" PRId64 " left\n", total, left);
	return code;
}

int run_dlq_replay(struct remote *remote)
{
	bool is_all = remote->args->values[CLI_OPTION_ALL] != NULL;
	bool has_queue = remote->args->values[CLI_OPTION_QUEUE] != NULL;

	if (is_all == (remote->args->operand_count == 1) || is_all != has_queue)
		return remote_misused(remote, "give either an ID, or --all and --queue NAME");
	if (is_all)
		return replay_all(remote);
	return remote_run(remote, &(struct remote_request){ .method = "POST",
	                                                    .path = ask_path(remote, "/ops/dead-letters/", "/replay"),
	                                                    .scope = REMOTE_ADMIN });
}

int run_dlq_drop(struct remote *remote)
{
	struct remote_request req = { .method = "POST", .scope = REMOTE_ADMIN };
	struct err            e = { 0 };
	struct str            reason;

	if (ask_needed(remote, CLI_OPTION_REASON, &reason, &e))
		return remote_fail(remote, &e);
	req.path = ask_path(remote, "/ops/dead-letters/", "/drop");
	req.body = ask_body(remote, "reason", reason);
	return remote_run(remote, &req);
}
