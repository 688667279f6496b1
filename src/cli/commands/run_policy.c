/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_policy.c - the "policy" commands: the operator's documents on the command line.
 *
 * "show" prints a document as it is, so that it can be kept in a file and given back to "set". Its version and who
 * wrote it go to standard error. What was written in an editor is not lost, whatever fails afterwards: the file stays,
 * and its name is printed.
 */
#include "cli/commands/run.h"

#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/utf8.h"

enum { LINE_MAX_BYTES = 400 };

extern char **environ;

/* --- which document --- */

/* The operand that names it is the last. */
static const char *name_of(const struct remote *remote)
{
	size_t last = remote->args->command->max - 1;

	return last < remote->args->operand_count ? remote->args->operands[last] : "global";
}

/* Its path. Returns the exit code. */
static int find_path(const struct remote *remote, const char **ret)
{
	static const char *const names[] = { "global", "reporting", "approval" };
	static const char *const paths[] = { "/ops/policy", "/ops/reporting", "/ops/policy/approval" };
	int                      i = str_word(str_from(name_of(remote)), names, ARRAY_LEN(names));

	if (i == ARRAY_LEN(names))
		return remote_failed(remote, RC_INVALID,
		                     "the document must be global, reporting or approval, not '%.40s'",
		                     name_of(remote));
	*ret = paths[i];
	return CLI_EXIT_OK;
}

int run_policy_document(struct remote *remote)
{
	struct call row = call_row(remote);
	const char *path = "";
	int         code = find_path(remote, &path);

	row.path = code ? NULL : str_format(&remote->arena, "%s%s", path, row.path).p;
	return code ? code : call_run(remote, &row);
}

static int64_t version_of(const json_t *document)
{
	return json_integer_value(json_object_get(document, "version"));
}

/* --- what came back --- */

/* A member as one line without control characters. */
static struct str line_of(struct remote *remote, const json_t *object, const char *name)
{
	struct str text;

	return json_get_text(object, name, &text) ? utf8_line(&remote->arena, text, LINE_MAX_BYTES) : STR("");
}

static void print_problems(struct remote *remote, const json_t *problems)
{
	json_t *item;
	size_t  i;

	json_array_foreach(problems, i, item)
	{
		struct str field = line_of(remote, item, "field"), message = line_of(remote, item, "message");

		fprintf(remote->io->err, "  %.*s: %.*s\n", STR_ARG(field), STR_ARG(message));
	}
}

static void print_changes(struct remote *remote, const json_t *changes)
{
	json_t *item;
	size_t  i;

	if (json_array_size(changes) == 0)
		fputs("only the text changes, no value\n", remote->io->out);
	json_array_foreach(changes, i, item)
	{
		struct str key = line_of(remote, item, "key"), from = line_of(remote, item, "from");
		struct str to = line_of(remote, item, "to");

		fprintf(remote->io->out, "%.*s: %.*s -> %.*s\n", STR_ARG(key), STR_ARG(from), STR_ARG(to));
	}
}

void print_policy_document(struct remote *remote, json_t *document)
{
	struct str text, by = line_of(remote, document, "edited_by");

	(void)json_get_text(document, "text", &text); /* else it is empty */
	fwrite(text.p, 1, text.n, remote->io->out);
	if (text.n && text.p[text.n - 1] != '\n')
		fputc('\n', remote->io->out);
	fprintf(remote->io->err, "version %" PRId64 "%s%.*s\n", version_of(document), by.n ? ", written by " : "",
	        STR_ARG(by));
	if (json_array_size(json_object_get(document, "problems"))) {
		fputs("It is not valid:\n", remote->io->err);
		print_problems(remote, json_object_get(document, "problems"));
	}
}

int exit_code_of_policy_check(const json_t *document)
{
	return json_is_true(json_object_get(document, "ok")) ? CLI_EXIT_OK : CLI_EXIT_REFUSED;
}

void print_policy_check(struct remote *remote, json_t *document)
{
	if (exit_code_of_policy_check(document) == CLI_EXIT_OK) {
		print_changes(remote, json_object_get(document, "changes"));
	} else {
		fprintf(remote->io->err, "leasehold: policy check: it is not valid:\n");
		print_problems(remote, json_object_get(document, "problems"));
	}
}

/* --- set --- */

/* Replace that version with a text. Prints what changed or, if it is refused, every problem. */
static int put_document(struct remote *remote, const char *path, struct str text, int64_t version)
{
	CLEANUP(json_freep) json_t *body = json_pack("{s:s%,s:I}", "document", text.p, text.n, "version", version);
	struct remote_request       req = { .method = "PUT", .path = str_from(path), .scope = REMOTE_ADMIN };
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	int                                code;

	if (!body)
		return remote_misused(remote, "the text must be UTF-8");
	req.body = json_dump(&remote->arena, body);
	code = remote_call(remote, &req, &answer);
	if (code != CLI_EXIT_OK) {
		if (answer.reply.body.n && json_parse(answer.reply.body, &answer.json, NULL) == RC_OK)
			print_problems(remote, json_object_get(json_object_get(answer.json, "error"), "problems"));
	} else if (remote->is_json) {
		remote_print_json(remote, &answer.reply);
	} else {
		print_changes(remote, json_object_get(answer.json, "changes"));
		fprintf(remote->io->err, "The document is now at version %" PRId64 ".\n", version_of(answer.json));
	}
	return code;
}

int run_policy_set(struct remote *remote)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct err                         e = { 0 };
	const char                        *path;
	struct str                         text;
	int64_t                            seen;
	int                                code = find_path(remote, &path);

	if (code != CLI_EXIT_OK)
		return code;
	if (option_number(remote, CLI_OPTION_SEEN, 0, INT64_MAX, -1, &seen, &e) ||
	    settings_read_file(remote->io, remote->args->operands[0], &remote->arena, &text, &e))
		return remote_fail(remote, &e);
	if (seen < 0) {
		if ((code = remote_get(remote, REMOTE_ADMIN, str_from(path), &answer)) != CLI_EXIT_OK)
			return code;
		seen = version_of(answer.json);
	}
	return put_document(remote, path, text, seen);
}

/* --- edit --- */

static enum rc write_temporary(struct remote *remote, struct str text, const char **ret, struct err *e)
{
	const char *folder = remote->io->env("TMPDIR");
	struct str  name = str_format(&remote->arena, "%s/leasehold-policy-XXXXXX.yaml",
                                     folder && *folder ? folder : "/tmp");
	char       *path = arena_copy(&remote->arena, name.p, name.n);
	FILE       *file;
	int         fd;

	fd = mkstemps(path, (int)strlen(".yaml"));
	file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!file || fwrite(text.p, 1, text.n, file) != text.n || fclose(file))
		return err_set(e, RC_INVALID, "cannot write %s: %s", path, strerror(errno));
	*ret = path;
	return RC_OK;
}

/* The editor may be a command with arguments, so a shell reads it; the file's name is never part of the command. */
static enum rc run_editor(struct remote *remote, const char *path, struct err *e)
{
	const char *editor = remote->io->env("VISUAL");
	const char *words[] = { "sh", "-c", NULL, "leasehold", path, NULL };
	char       *argv[ARRAY_LEN(words)];
	pid_t       pid;
	int         status;

	if (!editor || !*editor)
		editor = remote->io->env("EDITOR");
	words[2] = str_format(&remote->arena, "%s \"$1\"", editor && *editor ? editor : "vi").p;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		argv[i] = words[i] ? arena_copy(&remote->arena, words[i], strlen(words[i])) : NULL;
	if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ))
		return err_set(e, RC_INVALID, "the editor cannot be started; set EDITOR");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(e, RC_INVALID, "waiting for the editor failed: %s", strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_set(e, RC_INVALID, "the editor failed, nothing was changed; set EDITOR to one that works");
	return RC_OK;
}

/* The file of an edit that was not taken over goes only if nothing was written into it. */
static void keep_written(struct remote *remote, const char *file, struct str before)
{
	struct str now;

	if (settings_read_file(NULL, file, &remote->arena, &now, NULL) == RC_OK && str_eq(before, now))
		unlink(file);
	else if (access(file, F_OK) == 0) /* else the editor has removed it */
		fprintf(remote->io->err, "Your text is in %s; fix it and run: leasehold policy set %s %s\n", file, file,
		        name_of(remote));
}

static int edit(struct remote *remote, const char *path, const json_t *document)
{
	const char *file = NULL;
	struct err  e = { 0 };
	struct str  before, after;
	int         code = CLI_EXIT_OK;

	if (!json_get_text(document, "text", &before))
		return remote_failed(remote, RC_CORRUPT, "the server's answer has no text");
	if (write_temporary(remote, before, &file, &e))
		return remote_fail(remote, &e);
	if (run_editor(remote, file, &e) || settings_read_file(NULL, file, &remote->arena, &after, &e))
		code = remote_fail(remote, &e);
	else if (str_eq(before, after))
		fprintf(remote->io->err, "Nothing was changed.\n");
	else
		code = put_document(remote, path, after, version_of(document));
	if (code == CLI_EXIT_OK)
		unlink(file);
	else
		keep_written(remote, file, before);
	return code;
}

int run_policy_edit(struct remote *remote)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	const char                        *path;
	int                                code = find_path(remote, &path);

	if (code != CLI_EXIT_OK || (code = remote_get(remote, REMOTE_ADMIN, str_from(path), &answer)) != CLI_EXIT_OK)
		return code;
	return edit(remote, path, answer.json);
}

/* --- explain --- */

/* "approve, by the rule small", then a line for each rule that was tried. */
void print_policy_explanation(struct remote *remote, json_t *answer)
{
	struct str decision = line_of(remote, answer, "decision"), by = line_of(remote, answer, "decided_by");
	struct str rule = line_of(remote, answer, "rule");
	FILE      *to = remote->io->out;
	json_t    *note;
	size_t     i;

	fprintf(to, "%.*s", STR_ARG(decision));
	if (str_eq(by, STR("rule")))
		fprintf(to, ", by the rule %.*s\n", STR_ARG(rule));
	else
		fputs(str_eq(by, STR("template")) ? ", by the template: there are no rules\n" : ": no rule matches\n",
		      to);
	json_array_foreach(json_object_get(answer, "rules"), i, note)
	{
		struct str name = line_of(remote, note, "rule"), why = line_of(remote, note, "why");

		fprintf(to, "  %.*s: %s: %.*s\n", STR_ARG(name),
		        json_is_true(json_object_get(note, "matches")) ? "matches" : "no", STR_ARG(why));
	}
}
