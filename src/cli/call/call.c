/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - runs the rows of calls.c: puts the request together, sends it, shows the answer. Knows no command.
 *
 * A list is fetched page by page. A page can be empty although more follow (the server reads a number of records,
 * whether they match or not): then the next one is fetched, until there is something to show.
 */
#include "cli/call/call.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/term/show.h"

enum { PAGE_MAX = 100, PAGE_DEFAULT = 50, PAGES_MAX = 10000 };

/* Its path; *ret_id is what replaced the first braces, a second operand replaces the others. "{lease}" and so on are
 * looked up. */
static int call_path(struct remote *remote, const struct call *c, struct str *ret, struct str *ret_id)
{
	struct str id;
	int        code = id_find(remote, c->path, str_from(remote->args->operands[0]), &id);

	*ret = compose_path(remote, c->path, id);
	if (remote->args->operand_count > 1)
		*ret = compose_path(remote, ret->p, str_from(remote->args->operands[1]));
	*ret_id = id;
	return code;
}

static int prepare(struct remote *remote, const struct call *c, struct remote_request *req, struct str *ret_id)
{
	const char *wrong = c->check ? c->check(remote->args) : NULL;
	struct err  e = { 0 };
	struct str  path, track;
	int         code;

	*req = (struct remote_request){
		.method = c->method, .scope = c->scope, .accept = c->accept, .waiting_for = c->waiting_for
	};
	if (wrong)
		return remote_misused(remote, wrong);
	if ((c->body && compose_body(remote, c->body, &req->body, &e)) ||
	    compose_headers(remote, c->headers, req->headers, &e) ||
	    (c->scope == REMOTE_TRACK && remote_track(remote, &track, &e)))
		return remote_fail(remote, &e);
	if (c->scope == REMOTE_TRACK)
		req->headers[0] = str_format(&remote->arena, "X-Track-ID: %.*s", STR_ARG(track)).p;
	if ((code = call_path(remote, c, &path, ret_id)) != CLI_EXIT_OK)
		return code;
	return compose_query(remote, path, c->query, false, 0, STR(""), &req->path, &e) ? remote_fail(remote, &e)
	                                                                                : CLI_EXIT_OK;
}

/* With the first operand for "{}". */
static void print_note(const struct remote *remote, FILE *to, const char *note)
{
	const char *mark = strstr(note, "{}");

	if (mark)
		fprintf(to, "%.*s%s%s\n", (int)(mark - note), note, remote->args->operands[0], mark + 2);
	else
		fprintf(to, "%s\n", note);
}

static void print_data(struct remote *remote, const struct call *c, json_t *data)
{
	if (c->columns)
		cells_print_details(remote, c->columns, data);
	else if (c->result)
		print_note(remote, remote->io->out, c->result);
	else if (!c->print)
		show_record(remote->io->out, &remote->arena, data, clock_now(remote->io->clock), remote->is_coloured);
	if (c->print)
		c->print(remote, data);
}

int call_print(struct remote *remote, const struct call *c, const struct answer *answer)
{
	if (remote->is_json)
		remote_print_json(remote, &answer->reply);
	else
		print_data(remote, c, answer->data);
	return CLI_EXIT_OK;
}

static int show(struct remote *remote, const struct call *c, const struct answer *answer)
{
	if (c->finish)
		return c->finish(remote, answer);
	if (c->shown_by && !remote->is_json)
		return call_run(remote, &calls[c->shown_by]);
	call_print(remote, c, answer);
	if (c->note && !remote->is_json)
		print_note(remote, remote->io->err, c->note);
	if (c->verdict && !json_is_true(json_object_get(answer->data, c->verdict)))
		return CLI_EXIT_FOUND;
	return c->exit_code ? c->exit_code(answer->data) : CLI_EXIT_OK;
}

struct call call_row(const struct remote *remote)
{
	struct call row = calls[remote->args->command - cli_commands];

	row.run = NULL;
	return row;
}

/* --- lists --- */

void call_pages_end(struct call_pages *p)
{
	answer_free(&p->answer);
}

bool call_next(struct remote *remote, struct call_pages *p, json_t **ret)
{
	const struct call    *list = p->list;
	bool                  is_api = list->scope == REMOTE_PERSON, has_pages = list->has_pages || is_api;
	struct remote_request req = { .method = list->method ? list->method : "GET",
		                      .scope = list->scope,
		                      .body = p->body,
		                      .waiting_for = list->waiting_for };
	struct str            next = STR("");
	struct err            e = { 0 };

	if (p->code || (p->count && !p->cursor.n) || p->count++ == PAGES_MAX)
		return false;
	answer_free(&p->answer);
	p->answer.json = NULL;
	if (compose_query(remote, p->path, list->query, is_api, has_pages ? p->limit : 0, p->cursor, &req.path, &e))
		p->code = remote_fail(remote, &e);
	else if ((p->code = remote_call(remote, &req, &p->answer)) == CLI_EXIT_OK && has_pages &&
	         (!json_get_text(p->answer.data, is_api ? "nextPageIdentifier" : "cursor", &next) ||
	          (next.n && str_eq(next, p->cursor))))
		p->code = remote_failed(remote, RC_CORRUPT, "the server's answer has no usable cursor");
	p->cursor = str_dup(&remote->arena, next);
	*ret = json_object_get(p->answer.data, list->items);
	return p->code == CLI_EXIT_OK;
}

static bool is_plain(const struct remote *remote)
{
	const char *const *v = remote->args->values;

	return !remote->is_json && !v[CLI_OPTION_ALL] && !v[CLI_OPTION_TYPE] && !v[CLI_OPTION_SUBJECT];
}

/* One page, or with --all every one, as a table. */
static int run_list(struct remote *remote, const struct call *list)
{
	bool                        is_all = remote->args->values[CLI_OPTION_ALL] != NULL;
	const char                 *subject = remote->args->values[CLI_OPTION_SUBJECT];
	int64_t                     most = list->page_most ? list->page_most : PAGE_MAX;
	CLEANUP(json_freep) json_t *all = json_array();
	bool                        is_empty = !list->takes_empty_page;
	struct err                  e = { 0 };
	struct str                  id;
	json_t                     *items;
	int                         code;

	CLEANUP(call_pages_end) struct call_pages pages = { .list = list };

	if (option_number(remote, CLI_OPTION_LIMIT, 1, PAGE_MAX, is_all ? most : PAGE_DEFAULT, &pages.limit, &e))
		return remote_fail(remote, &e);
	pages.limit = pages.limit < most ? pages.limit : most;
	if ((code = call_path(remote, list, &pages.path, &id)) != CLI_EXIT_OK)
		return code;
	if (list->plain_query && is_plain(remote))
		pages.path = str_format(&remote->arena, "%.*s?%s", STR_ARG(pages.path), list->plain_query);
	while ((!pages.count || is_all || is_empty) && call_next(remote, &pages, &items)) {
		if (remote->is_json)
			remote_print_json(remote, &pages.answer.reply);
		(void)json_array_extend(all, items); /* fails only for what is no list */
		is_empty = is_empty && json_array_size(remote->is_json ? items : all) == 0;
	}
	if (pages.code || remote->is_json)
		return pages.code;
	cells_print_items(remote, list->columns, all, remote->is_coloured);
	if (pages.cursor.n)
		fprintf(remote->io->err, "There are more: use --all.\n");
	if (json_array_size(all) == 0 && subject && !strchr(subject, '/'))
		fprintf(remote->io->err, "A subject has a kind, such as lease/%s, account/%s or job/%s.\n", subject,
		        subject, subject);
	return CLI_EXIT_OK;
}

int call_run(struct remote *remote, const struct call *c)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	struct remote_request              req;
	struct str                         id = STR("");
	int                                code;

	if (c->run)
		return c->run(remote);
	if (c->items)
		return run_list(remote, c);
	if ((code = prepare(remote, c, &req, &id)) != CLI_EXIT_OK)
		return code;
	if (c->is_stream || remote->args->values[CLI_OPTION_CSV])
		return remote_print_stream(remote, &req);
	code = remote_call(remote, &req, &answer);
	answer.id = id;
	return code == CLI_EXIT_OK ? show(remote, c, &answer) : code;
}
