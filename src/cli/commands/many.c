/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many.c - one command for many things: each is a call of its own.
 *
 * A file is read to its end, and its lines are looked at, before anything is done: half a list is not what was meant.
 */
#include "cli/commands/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

enum { ANSWER_LINE_MAX = 16, LINE_BYTES_MAX = 1023, FILE_BYTES_MAX = 16 * 1024 * 1024 };

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

/* All of a file, in the remote's arena. Returns the exit code. */
static int read_all(struct remote *remote, const char *file, struct str *ret)
{
	bool                         is_stdin = strcmp(file, "-") == 0;
	FILE                        *in = is_stdin ? remote->io->in : fopen(file, "re");
	CLEANUP(buf_fini) struct buf b = BUF(FILE_BYTES_MAX);
	char                         part[4096];
	size_t                       n;
	int                          error;

	if (!in)
		return remote_failed(remote, RC_INVALID, "%s cannot be read: %s", file, strerror(errno));
	while (!b.is_full && (n = fread(part, 1, sizeof(part), in)) > 0)
		buf_add(&b, part, n);
	error = ferror(in) ? errno : 0;
	if (!is_stdin)
		fclose(in);
	if (error)
		return remote_failed(remote, RC_INVALID, "%s cannot be read: %s", file, strerror(error));
	if (b.is_full)
		return remote_failed(remote, RC_INVALID, "%s has more than %d bytes", file, FILE_BYTES_MAX);
	*ret = buf_take(&b, &remote->arena);
	return CLI_EXIT_OK;
}

static int check_lines(const struct remote *remote, const char *file, struct str text)
{
	for (int number = 1; text.n; number++)
		if (str_cut_line(&text).n > LINE_BYTES_MAX)
			return remote_failed(remote, RC_INVALID, "%s line %d has more than %d bytes", file, number,
			                     LINE_BYTES_MAX);
	return CLI_EXIT_OK;
}

int many_lines(struct many *m, const char *file, many_fn *each)
{
	struct str text;
	int        code = read_all(m->remote, file, &text);

	if (code == CLI_EXIT_OK)
		code = check_lines(m->remote, file, text);
	while (code == CLI_EXIT_OK && text.n) {
		struct str line = str_cut_line(&text), id = str_trim(line);

		if (id.n)
			code = each ? each(m, line) : many_send(m, id, id);
	}
	return code;
}

int many_end(const struct many *m, int code, const char *did)
{
	const struct cli_io *io = m->remote->io;

	if (code != CLI_EXIT_OK && !m->done && !m->refused)
		return code; /* it was not begun, and why was printed */
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
