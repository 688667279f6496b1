/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_class.c - sandboxes for a class: the roster is a CSV file, on each line a student's track and, optionally, a
 * name.
 *
 * Each student is a call of its own. A track that holds a sandbox gets that one again, so the command can be repeated,
 * to print the list again or after an interruption. The whole roster is checked before anything is claimed.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/call/cells.h"
#include "cli/commands/run.h"
#include "cli/term/show.h"

enum { TRACK_MAX = 128, STUDENTS_MAX = 1000, PAGE = 100, CELL_BYTES_MAX = 64 * 1024 };

struct student {
	struct str track, name;
};

struct roster {
	struct many    many; /* for its file */
	struct student students[STUDENTS_MAX];
	json_t        *tracks; /* an object: who was there already */
	size_t         count;
	bool           is_begun;
};

/* --- the file --- */

static bool is_heading(struct str cell)
{
	return str_eq_nocase(cell, STR("track")) || str_eq_nocase(cell, STR("student")) ||
	       str_eq_nocase(cell, STR("email"));
}

/* What ends the first cell of the line: spreadsheets of many countries write semicolons, copied cells have tabs. */
static char mark_of(struct str line)
{
	bool is_quoted = false;

	for (size_t i = 0; i < line.n; i++) {
		is_quoted ^= line.p[i] == '"';
		if (!is_quoted && char_is_of(line.p[i], ",;\t"))
			return line.p[i];
	}
	return ',';
}

static int add_student(struct many *m, struct str line)
{
	struct roster  *r = CONTAINER_OF(m, struct roster, many);
	struct student *one = &(struct student){ .track = STR("") };
	bool            is_first = !r->is_begun, is_good;
	char            mark = mark_of(line);

	r->is_begun = true;
	if (is_first && str_starts_with(line, STR("\xef\xbb\xbf"))) /* spreadsheets write a byte order mark */
		line = str_of(line.p + 3, line.n - 3);
	while (str_cut_prefix(&line, STR(" "))) /* a tab would be the end of an empty cell */
		;
	is_good = csv_cut(&m->remote->arena, &line, mark, &one->track) &&
	          csv_cut(&m->remote->arena, &line, mark, &one->name);
	one->track = str_trim(one->track);
	one->name = str_trim(one->name);
	if (is_good && is_first && is_heading(one->track))
		return CLI_EXIT_OK;
	if (!is_good || !one->track.n || one->track.n > TRACK_MAX || !str_is_of(one->track, "!-~"))
		return remote_misused(m->remote,
		                      str_format(&m->remote->arena,
		                                 "'%.*s' is not a track: each line must begin with one, 1 to 128 "
		                                 "visible ASCII characters without blanks, such as an email address; "
		                                 "then a comma and a name, if there is one",
		                                 STR_ARG(utf8_line(&m->remote->arena, one->track, TRACK_MAX)))
		                              .p);
	if (json_object_get(r->tracks, str_dup(&m->remote->arena, one->track).p) || r->count == STUDENTS_MAX)
		return remote_misused(m->remote,
		                      str_format(&m->remote->arena,
		                                 r->count == STUDENTS_MAX ? "'%.*s' is one student too many"
		                                                          : "the track '%.*s' is there twice",
		                                 STR_ARG(one->track))
		                              .p);
	(void)json_object_set_new(r->tracks, str_dup(&m->remote->arena, one->track).p, json_true());
	r->students[r->count++] = *one;
	return CLI_EXIT_OK;
}

static int read_roster(struct roster *r, const char *file)
{
	int code = many_lines(&r->many, file, add_student);

	return code == CLI_EXIT_OK && !r->count ? remote_misused(r->many.remote, "there are no students in the file")
	                                        : code;
}

/* --- the list --- */

static struct str cell_sandbox(struct remote *remote, const json_t *item, const char *member)
{
	struct str id = cell_text(remote, item, member);

	return id.n ? id : STR("none free");
}

static const struct column list_columns[] = {
	{ "TRACK", "track" }, { "STUDENT", "student" },         { "SANDBOX", "sandbox_id", .cell = cell_sandbox },
	{ "NAME", "name" },   { "EXTERNAL ID", "external_id" }, { "ENDS", "expires_at" },
	{ .heading = NULL },
};

static void print_csv_cell(FILE *out, struct str text, bool is_last)
{
	CLEANUP(buf_fini) struct buf b = BUF(CELL_BYTES_MAX);

	buf_add_csv(&b, text);
	fprintf(out, "%.*s%c", STR_ARG(buf_str(&b)), is_last ? '\n' : ',');
}

static void print_csv(struct remote *remote, const json_t *list)
{
	static const char *const members[] = { "track", "student", "sandbox_id", "name", "external_id" };
	FILE                    *out = remote->io->out;

	fputs("track,student,sandbox_id,name,external_id,expires_at\n", out);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		int64_t       end = member_number(one, "expires_at");
		char          text[ISO_TIME_SIZE];

		for (size_t k = 0; k < ARRAY_LEN(members); k++)
			print_csv_cell(out, cell_text(remote, one, members[k]), false);
		print_csv_cell(out, end ? iso_time(end, text) : STR(""), true);
	}
}

static void print_list(struct remote *remote, json_t *list)
{
	if (remote->is_json) {
		CLEANUP(json_freep) json_t *all = json_pack("{s:O}", "class", list);
		struct str                  text = json_dump(&remote->arena, all);

		fprintf(remote->io->out, "%.*s\n", STR_ARG(text));
	} else if (remote->args->values[CLI_OPTION_CSV]) {
		print_csv(remote, list);
	} else {
		cells_print_items(remote, list_columns, list, remote->is_coloured);
	}
}

/* --- claiming --- */

/* Adds the student to the list; *got is whether they have a sandbox. */
static int claim_one(struct remote *remote, const struct student *one, int64_t wait_sec, json_t *list, bool *got)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct err                         e = { 0 };
	json_t                            *item;
	int                                code;

	if (claim_sandbox(remote, REMOTE_ADMIN, one->track, wait_sec, &answer.reply, &e))
		return remote_fail(remote, &e);
	*got = !sandbox_is_out_of_stock(&answer.reply);
	if (*got && (code = remote_read(remote, REMOTE_ADMIN, &answer)) != CLI_EXIT_OK)
		return code;
	item = *got ? json_incref(answer.json) : json_object();
	(void)json_object_set_new(item, "track", json_stringn(one->track.p, one->track.n));
	(void)json_object_set_new(item, "student", json_stringn(one->name.p, one->name.n));
	(void)json_array_append_new(list, item);
	return CLI_EXIT_OK;
}

int class_claim(struct remote *remote, const char *file)
{
	CLEANUP(json_freep) json_t *tracks = json_object();
	CLEANUP(json_freep) json_t *list = json_array();
	struct roster               r = { .many.remote = remote, .tracks = tracks };
	struct err                  e = { 0 };
	int64_t                     wait_sec, end_ms, left;
	size_t                      none = 0;
	bool                        got;
	int                         code;

	if (remote->args->values[CLI_OPTION_TRACK] || remote->args->values[CLI_OPTION_KEY])
		return remote_misused(remote, "the tracks are in the file: give it without --track and --key");
	if (option_number(remote, CLI_OPTION_WAIT, 0, REMOTE_WAIT_MAX_SEC, 0, &wait_sec, &e))
		return remote_fail(remote, &e);
	end_ms = mono_now().ms + wait_sec * 1000;
	code = read_roster(&r, file);
	for (size_t i = 0; code == CLI_EXIT_OK && i < r.count; i++) {
		left = wait_sec ? (end_ms - mono_now().ms) / 1000 : 0;
		got = false;
		code = claim_one(remote, &r.students[i], left > 0 ? left : 0, list, &got);
		none += code == CLI_EXIT_OK && !got;
	}
	if (!json_array_size(list))
		return code;
	print_list(remote, list);
	fprintf(remote->io->err, "%zu have a sandbox", json_array_size(list) - none);
	if (none)
		fprintf(remote->io->err, ", %zu have none: run it again when some are free, or with --wait", none);
	fputs(".\n", remote->io->err);
	return code == CLI_EXIT_OK && none ? CLI_EXIT_EMPTY : code;
}

/* --- giving back --- */

/* An object: the sandbox of each track that holds one. */
static int load_holders(struct remote *remote, json_t *ret)
{
	static const struct call list = { .scope = REMOTE_ADMIN, .items = "sandboxes", .has_pages = true };

	CLEANUP(call_pages_end)
	struct call_pages pages = { &list, STR("/admin/sandboxes?status=allocated"), PAGE };
	json_t           *page;

	while (call_next(remote, &pages, &page))
		for (size_t i = 0; i < json_array_size(page); i++) {
			const json_t *one = json_array_get(page, i);
			const char   *track = json_string_value(json_object_get(one, "allocated_to_track"));

			if (track)
				(void)json_object_set(ret, track, json_object_get(one, "sandbox_id"));
		}
	return pages.code;
}

int class_give_back(struct remote *remote, const char *file)
{
	static const struct call    discard = { .scope = REMOTE_ADMIN,
		                                .method = "POST",
		                                .path = "/admin/sandboxes/{}/delete" };
	CLEANUP(json_freep) json_t *tracks = json_object();
	CLEANUP(json_freep) json_t *holders = json_object();
	struct roster               r = { .many = { .remote = remote, .row = &discard }, .tracks = tracks };
	size_t                      without = 0;
	int                         code = read_roster(&r, file);

	if (code != CLI_EXIT_OK || (code = load_holders(remote, holders)) != CLI_EXIT_OK)
		return code;
	for (size_t i = 0; code == CLI_EXIT_OK && i < r.count; i++) {
		struct str track = r.students[i].track;
		struct str id = cell_text(remote, holders, str_dup(&remote->arena, track).p);

		if (id.n)
			code = many_send(&r.many, id, track);
		else
			without++;
	}
	if (without)
		fprintf(remote->io->err, "%zu hold none.\n", without);
	return many_end(&r.many, code, "given back");
}

/* --- one of them --- */

int run_sandbox_replace(struct remote *remote)
{
	struct call row = call_row(remote);
	struct str  id;
	int         code = sandbox_find(remote, str_from(remote->args->operands[0]), &id);

	row.path = compose_path(remote, row.path, id).p;
	return code == CLI_EXIT_OK ? call_run(remote, &row) : code;
}

int exit_code_of_forecast(const json_t *forecast)
{
	struct str enough;

	return json_get_text(forecast, "enough", &enough) && str_eq(enough, STR("no")) ? CLI_EXIT_FOUND : CLI_EXIT_OK;
}
