/* SPDX-License-Identifier: Apache-2.0 */
/* many.c - one command for many things: each is a call of its own. */
#include "cli/commands/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_LINE_MAX = 16, LINE_BYTES_MAX = 1024 };

int many_send(struct many *m, struct str id, struct str label)
{
	struct remote_request req = { .method = m->row->method, .scope = m->row->scope, .body = m->body };
	struct fetch_reply    reply;
	struct err            e = { 0 };
	int                   code;

	req.path = compose_path(m->remote, m->row->path, id);
	if (remote_send(m->remote, &req, &reply, &e))
		return remote_fail(m->remote, &e);
	if (remote_is_success(&reply)) {
		m->done++;
		return CLI_EXIT_OK;
	}
	m->refused++;
	fprintf(m->remote->io->err, "%.*s: ", STR_ARG(label));
	code = remote_refused(m->remote, &reply);
	return reply.status == 403 || reply.status == 404 || reply.status == 409 ? CLI_EXIT_OK : code;
}

int many_lines(struct many *m, const char *file, many_fn *each)
{
	const struct cli_io *io = m->remote->io;
	FILE                *in = strcmp(file, "-") == 0 ? io->in : fopen(file, "re");
	char                 line[LINE_BYTES_MAX];
	int                  code = CLI_EXIT_OK;

	if (!in)
		return remote_failed(m->remote, RC_INVALID, "%s cannot be read: %s", file, strerror(errno));
	while (code == CLI_EXIT_OK && fgets(line, sizeof(line), in)) {
		struct str text = str_trim(str_of(line, strcspn(line, "\n")));

		text = str_dup(&m->remote->arena, text);
		if (text.n)
			code = each ? each(m, text) : many_send(m, text, text);
	}
	if (in != io->in)
		fclose(in);
	return code;
}

int many_end(const struct many *m, int code, const char *did)
{
	const struct cli_io *io = m->remote->io;

	fprintf(m->remote->is_json ? io->err : io->out, "%zu %s, %zu not\n", m->done, did, m->refused);
	return code == CLI_EXIT_OK && m->refused ? CLI_EXIT_FOUND : code;
}

int many_agreed(const struct remote *remote, struct str what)
{
	const struct cli_io *io = remote->io;
	char                 line[ANSWER_LINE_MAX];

	if (remote->args->values[CLI_OPTION_YES])
		return CLI_EXIT_OK;
	if (!io->is_in_terminal || !io->is_err_terminal)
		return remote_failed(remote, RC_INVALID, "not a terminal, so nobody can confirm: add --yes to %.*s",
		                     STR_ARG(what));
	fprintf(io->err, "About to %.*s. Type yes to continue: ", STR_ARG(what));
	fflush(io->err);
	if (fgets(line, sizeof(line), io->in) && strcmp(line, "yes\n") == 0)
		return CLI_EXIT_OK;
	return remote_failed(remote, RC_INVALID, "not confirmed; nothing was done");
}
