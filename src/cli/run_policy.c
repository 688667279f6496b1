/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_policy.c - the "policy" commands: the operator's documents on the command line.
 *
 * A document is text, so show prints it as it is, fit to be kept in a file and given back to set. What is not the text (its version, who
 * wrote it) goes to standard error. An edit that is refused is not lost: the file stays, and its name is told.
 */
#include "cli/run.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/show.h"

enum { TEXT_MAX = 65536, BODY_MAX = 6 * TEXT_MAX + 100, LINE_MAX_BYTES = 400, AMOUNT_MAX = 1000000000 };

extern char **environ;

/* --- which document --- */

static const char *name_of(const struct remote *remote, size_t operand)
{
	return operand < remote->args->operand_count ? remote->args->operands[operand] : "global";
}

static enum rc read_name(const struct remote *remote, size_t operand, const char **ret_path, struct err *e)
{
	const char *name = name_of(remote, operand);

	if (strcmp(name, "global") == 0)
		*ret_path = "/ops/policy";
	else if (strcmp(name, "reporting") == 0)
		*ret_path = "/ops/reporting";
	else if (strcmp(name, "approval") == 0)
		*ret_path = "/ops/policy/approval";
	else
		return err_set(e, RC_INVALID, "the document must be global, reporting or approval, not '%.40s'", name);
	return RC_OK;
}

static struct str join(struct remote *remote, const char *path, const char *rest)
{
	return str_format(&remote->arena, "%s%s", path, rest);
}

/* --- files --- */

static enum rc read_all(FILE *from, const char *name, struct arena *a, struct str *ret, struct err *e)
{
	char  *text = arena_alloc(a, TEXT_MAX + 2);
	size_t n = fread(text, 1, TEXT_MAX + 1, from);

	if (ferror(from))
		return err_set(e, RC_INVALID, "cannot read %s: %s", name, strerror(errno));
	if (n > TEXT_MAX)
		return err_set(e, RC_INVALID, "%s has more than %d bytes, the most that a document may have", name,
		               TEXT_MAX);
	*ret = str_of(text, n);
	return RC_OK;
}

/* "-" is standard input. */
static enum rc read_file(struct remote *remote, const char *path, struct str *ret, struct err *e)
{
	FILE   *file;
	enum rc rc;

	if (strcmp(path, "-") == 0)
		return read_all(remote->io->in, "standard input", &remote->arena, ret, e);
	file = fopen(path, "r");
	if (!file)
		return err_set(e, RC_INVALID, "cannot read %s: %s", path, strerror(errno));
	rc = read_all(file, path, &remote->arena, ret, e);
	fclose(file);
	return rc;
}

/* --- requests --- */

/* {"document": text, "version": n}; no version when it is negative. */
static struct str make_body(struct remote *remote, struct str text, int64_t version)
{
	struct json_out o;
	struct buf      b;
	struct str      body;

	buf_init(&b, BODY_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "document", text);
	if (version >= 0)
		json_put_int(&o, "version", version);
	json_close_object(&o);
	body = str_dup(&remote->arena, buf_str(&b));
	buf_fini(&b);
	return body;
}

/* The document as the server has it; *ret is yours. Not CLI_EXIT_OK: that is told already. */
static int get_document(struct remote *remote, const char *path, struct fetch_reply *ret_reply, json_t **ret)
{
	struct err e = { 0 };

	if (remote_send(remote,
	                &(struct remote_request){ .method = "GET", .path = str_from(path), .scope = REMOTE_ADMIN },
	                ret_reply, &e))
		return remote_fail(remote, &e);
	if (!remote_is_success(ret_reply))
		return remote_refused(remote, ret_reply);
	return remote_json(ret_reply, ret, &e) ? remote_fail(remote, &e) : CLI_EXIT_OK;
}

/* --- what came back --- */

static void print_line(struct remote *remote, FILE *to, const json_t *object, const char *name)
{
	struct str text;
	struct str line = STR("");

	if (json_get_text(object, name, &text))
		line = utf8_line(&remote->arena, text, LINE_MAX_BYTES);
	fprintf(to, "%.*s", STR_ARG(line));
}

static void print_problems(struct remote *remote, const json_t *problems)
{
	json_t *item;
	size_t  i;

	json_array_foreach(problems, i, item)
	{
		fputs("  ", remote->io->err);
		print_line(remote, remote->io->err, item, "field");
		fputs(": ", remote->io->err);
		print_line(remote, remote->io->err, item, "message");
		fputc('\n', remote->io->err);
	}
}

static void print_changes(struct remote *remote, const json_t *changes)
{
	FILE   *to = remote->io->out;
	json_t *item;
	size_t  i;

	if (json_array_size(changes) == 0)
		fputs("nothing changes but the text\n", to);
	json_array_foreach(changes, i, item)
	{
		print_line(remote, to, item, "key");
		fputs(": ", to);
		print_line(remote, to, item, "from");
		fputs(" -> ", to);
		print_line(remote, to, item, "to");
		fputc('\n', to);
	}
}

/* Of a refusal, every problem; of a success, what changed. */
static int show_result(struct remote *remote, const struct fetch_reply *reply)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct err                  e = { 0 };
	int                         code;

	if (!remote_is_success(reply)) {
		code = remote_refused(remote, reply);
		if (remote_json(reply, &document, &e) == RC_OK)
			print_problems(remote, json_object_get(json_object_get(document, "error"), "problems"));
		return code;
	}
	if (remote->is_json) {
		remote_print_json(remote, reply);
		return CLI_EXIT_OK;
	}
	if (remote_json(reply, &document, &e))
		return remote_fail(remote, &e);
	print_changes(remote, json_object_get(document, "changes"));
	fprintf(remote->io->err, "The document has version %lld now.\n",
	        (long long)json_integer_value(json_object_get(document, "version")));
	return CLI_EXIT_OK;
}

/* --- commands --- */

int run_policy_show(struct remote *remote)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	const char                 *path;
	struct err                  e = { 0 };
	struct str                  text;
	int                         code;

	if (read_name(remote, 0, &path, &e))
		return remote_misused(remote, e.msg);
	if ((code = get_document(remote, path, &reply, &document)))
		return code;
	if (remote->is_json) {
		remote_print_json(remote, &reply);
		return CLI_EXIT_OK;
	}
	(void)json_get_text(document, "text", &text); /* else it is empty */
	fwrite(text.p, 1, text.n, remote->io->out);
	if (text.n && text.p[text.n - 1] != '\n')
		fputc('\n', remote->io->out);
	fprintf(remote->io->err, "version %lld", (long long)json_integer_value(json_object_get(document, "version")));
	if (json_is_string(json_object_get(document, "edited_by"))) {
		fputs(", written by ", remote->io->err);
		print_line(remote, remote->io->err, document, "edited_by");
	}
	fputc('\n', remote->io->err);
	if (json_array_size(json_object_get(document, "problems"))) {
		fputs("It cannot be used as it is:\n", remote->io->err);
		print_problems(remote, json_object_get(document, "problems"));
	}
	return CLI_EXIT_OK;
}

static int show_check(struct remote *remote, const struct fetch_reply *reply)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct err                  e = { 0 };
	bool                        is_ok;

	if (!remote_is_success(reply))
		return remote_refused(remote, reply);
	if (remote_json(reply, &document, &e))
		return remote_fail(remote, &e);
	is_ok = json_is_true(json_object_get(document, "ok"));
	if (remote->is_json) {
		remote_print_json(remote, reply);
	} else if (is_ok) {
		print_changes(remote, json_object_get(document, "changes"));
	} else {
		fprintf(remote->io->err, "leasehold: policy check: it cannot be used:\n");
		print_problems(remote, json_object_get(document, "problems"));
	}
	return is_ok ? CLI_EXIT_OK : CLI_EXIT_REFUSED;
}

int run_policy_check(struct remote *remote)
{
	struct remote_request req = { .method = "POST", .scope = REMOTE_ADMIN };
	struct fetch_reply    reply;
	const char           *path;
	struct err            e = { 0 };
	struct str            text;

	if (read_name(remote, 1, &path, &e))
		return remote_misused(remote, e.msg);
	if (read_file(remote, remote->args->operands[0], &text, &e))
		return remote_fail(remote, &e);
	req.path = join(remote, path, "/check");
	req.body = make_body(remote, text, -1);
	if (remote_send(remote, &req, &reply, &e))
		return remote_fail(remote, &e);
	return show_check(remote, &reply);
}

static int put_document(struct remote *remote, const char *path, struct str text, int64_t version)
{
	struct remote_request req = { .method = "PUT", .path = str_from(path), .scope = REMOTE_ADMIN };
	struct fetch_reply    reply;
	struct err            e = { 0 };

	req.body = make_body(remote, text, version);
	if (remote_send(remote, &req, &reply, &e))
		return remote_fail(remote, &e);
	return show_result(remote, &reply);
}

int run_policy_set(struct remote *remote)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	const char                 *path;
	struct err                  e = { 0 };
	struct str                  text;
	int64_t                     seen;
	int                         code;

	if (read_name(remote, 1, &path, &e) || ask_number(remote, CLI_OPTION_SEEN, 0, INT64_MAX, -1, &seen, &e))
		return remote_misused(remote, e.msg);
	if (read_file(remote, remote->args->operands[0], &text, &e))
		return remote_fail(remote, &e);
	if (seen < 0) {
		if ((code = get_document(remote, path, &reply, &document)))
			return code;
		seen = json_integer_value(json_object_get(document, "version"));
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

/* The editor may be a command with arguments, so a shell reads it; the file's name never becomes part of the command. */
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
			return err_set(e, RC_INVALID, "the editor was lost: %s", strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_set(e, RC_INVALID,
		               "the editor failed, nothing was changed; set EDITOR to one that is there");
	return RC_OK;
}

static int edit(struct remote *remote, const char *path, const char *name, const json_t *document)
{
	int64_t     version = json_integer_value(json_object_get(document, "version"));
	const char *file = NULL;
	struct err  e = { 0 };
	struct str  before, after = STR("");
	int         code;

	if (!json_get_text(document, "text", &before) || write_temporary(remote, before, &file, &e) ||
	    run_editor(remote, file, &e) || read_file(remote, file, &after, &e)) {
		if (file)
			unlink(file);
		return remote_fail(remote, &e);
	}
	if (str_eq(before, after)) {
		unlink(file);
		fprintf(remote->io->err, "Nothing was changed.\n");
		return CLI_EXIT_OK;
	}
	code = put_document(remote, path, after, version);
	if (code)
		fprintf(remote->io->err, "Your text is in %s; put it right and use: leasehold policy set %s %s\n", file,
		        file, name);
	else
		unlink(file);
	return code;
}

int run_policy_edit(struct remote *remote)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct fetch_reply          reply;
	const char                 *path;
	struct err                  e = { 0 };
	int                         code;

	if (read_name(remote, 0, &path, &e))
		return remote_misused(remote, e.msg);
	if ((code = get_document(remote, path, &reply, &document)))
		return code;
	return edit(remote, path, name_of(remote, 0), document);
}

/* --- history --- */

static struct str keys_cell(struct remote *remote, const json_t *item, const char *member)
{
	struct str all = STR("");
	json_t    *change;
	size_t     i;

	json_array_foreach(json_object_get(item, member), i, change)
	{
		struct str key;

		if (json_get_text(change, "key", &key))
			all = str_format(&remote->arena, "%.*s%s%.*s", STR_ARG(all), all.n ? ", " : "", STR_ARG(key));
	}
	return all;
}

int run_policy_history(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "VERSION", list_text, "new_version", 8 },
		{ "AGE", list_age, "at", 5 },
		{ "BY", list_text, "by", 30 },
		{ "CHANGED", keys_cell, "changes", 70 },
	};
	struct list edits = {
		.items = "edits", .columns = columns, .column_count = ARRAY_LEN(columns), .has_pages = true
	};
	const char *path;
	struct err  e = { 0 };

	if (read_name(remote, 0, &path, &e))
		return remote_misused(remote, e.msg);
	edits.path = join(remote, path, "/history").p;
	return list_run(remote, &edits);
}

/* --- explain --- */

/* A number above 0 as it was given; 0 when it was not. */
static enum rc read_amount(const struct remote *remote, enum cli_option_id id, double *ret, struct err *e)
{
	const char *text = remote->args->values[id];
	char       *end;

	*ret = 0;
	if (!text)
		return RC_OK;
	*ret = strtod(text, &end);
	if (*end || end == text || !(*ret > 0 && *ret < AMOUNT_MAX))
		return err_set(e, RC_INVALID, "%s must be a number above 0, not '%.40s'", cli_options[id].name, text);
	return RC_OK;
}

static enum rc make_question(struct remote *remote, struct str *ret, struct err *e)
{
	struct json_out o;
	struct buf      b;
	struct str      email;
	double          budget, hours;
	enum rc         rc;

	if ((rc = ask_needed(remote, CLI_OPTION_EMAIL, &email, e)) ||
	    (rc = read_amount(remote, CLI_OPTION_MAX_SPEND, &budget, e)) ||
	    (rc = read_amount(remote, CLI_OPTION_HOURS, &hours, e)))
		return rc;
	buf_init(&b, BODY_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "template", str_from(remote->args->operands[0]));
	json_put_str(&o, "userEmail", email);
	if (budget > 0)
		json_put_real(&o, "maxSpend", budget);
	if (hours > 0)
		json_put_real(&o, "hours", hours);
	json_close_object(&o);
	*ret = str_dup(&remote->arena, buf_str(&b));
	buf_fini(&b);
	return RC_OK;
}

/* "approve, by rule small", then a line for each rule that was looked at. */
static void print_explanation(struct remote *remote, const json_t *answer)
{
	FILE      *to = remote->io->out;
	json_t    *note;
	size_t     i;
	struct str by;

	print_line(remote, to, answer, "decision");
	(void)json_get_text(answer, "decided_by", &by); /* else it is empty */
	if (str_eq(by, STR("rule"))) {
		fputs(", by the rule ", to);
		print_line(remote, to, answer, "rule");
	} else {
		fputs(str_eq(by, STR("template")) ? ", by the template: there are no rules" : ": no rule matches", to);
	}
	fputc('\n', to);
	json_array_foreach(json_object_get(answer, "rules"), i, note)
	{
		fputs("  ", to);
		print_line(remote, to, note, "rule");
		fputs(json_is_true(json_object_get(note, "matches")) ? ": matches: " : ": no: ", to);
		print_line(remote, to, note, "why");
		fputc('\n', to);
	}
}

int run_policy_explain(struct remote *remote)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	struct remote_request       req = { .method = "POST",
		                            .path = STR("/ops/policy/approval/explain"),
		                            .scope = REMOTE_ADMIN };
	struct fetch_reply          reply;
	struct err                  e = { 0 };

	if (make_question(remote, &req.body, &e))
		return remote_misused(remote, e.msg);
	if (remote_send(remote, &req, &reply, &e))
		return remote_fail(remote, &e);
	if (!remote_is_success(&reply))
		return remote_refused(remote, &reply);
	if (remote->is_json) {
		remote_print_json(remote, &reply);
		return CLI_EXIT_OK;
	}
	if (remote_json(&reply, &answer, &e))
		return remote_fail(remote, &e);
	print_explanation(remote, answer);
	return CLI_EXIT_OK;
}
