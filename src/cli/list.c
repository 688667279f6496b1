/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.c - asks for a list page by page and prints it.
 *
 * A page can be empty although more follow (the server looks at so many records, whether they match or not): then the next one is asked
 * for, until there is something to show.
 */
#include "cli/list.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "cli/show.h"

enum { PAGE_MAX = 100, PAGE_DEFAULT = 50, PAGES_MAX = 10000, SHORT_ID = 8 };

/* --- cells --- */

struct str list_text(struct remote *remote, const json_t *item, const char *member)
{
	return show_member(&remote->arena, item, member, clock_now(remote->io->clock));
}

struct str list_short(struct remote *remote, const json_t *item, const char *member)
{
	struct str text = list_text(remote, item, member);

	return text.n > SHORT_ID ? str_of(text.p, SHORT_ID) : text;
}

/* False when there is no time. */
static bool read_seconds(const json_t *item, const char *member, int64_t *ret)
{
	struct str text;

	if (json_get_text(item, member, &text))
		return iso_time_parse(text, ret);
	return json_get_number(item, member, 0, ret) && *ret > 0;
}

struct str list_age(struct remote *remote, const json_t *item, const char *member)
{
	int64_t sec;

	if (!read_seconds(item, member, &sec))
		return STR("");
	return show_age(&remote->arena, wall_sec(clock_now(remote->io->clock)) - sec);
}

struct str list_due(struct remote *remote, const json_t *item, const char *member)
{
	int64_t    sec, left;
	struct str age;

	if (!read_seconds(item, member, &sec))
		return STR("");
	left = sec - wall_sec(clock_now(remote->io->clock));
	age = show_age(&remote->arena, left < 0 ? -left : left);
	return str_format(&remote->arena, left >= 0 ? "in %.*s" : "%.*s ago", STR_ARG(age));
}

struct str list_seconds(struct remote *remote, const json_t *item, const char *member)
{
	const json_t *value = json_object_get(item, member);

	return json_is_integer(value) ? show_age(&remote->arena, json_integer_value(value)) : STR("");
}

/* --- pages --- */

struct progress_so_far {
	struct table t;
	struct str   cursor; /* of the next page; empty at the end */
	size_t       items;
};

static void add_rows(struct remote *remote, const struct list *list, const json_t *items, struct table *t)
{
	for (size_t i = 0; i < json_array_size(items); i++) {
		struct table_row *row = table_add_row(t);

		for (size_t k = 0; k < list->column_count; k++) {
			const struct list_column *c = &list->columns[k];

			row->cells[k] = show_cut(&remote->arena, c->cell(remote, json_array_get(items, i), c->member),
			                         c->width);
		}
	}
}

static enum rc read_cursor(const struct list *list, const json_t *page, struct str before, struct str *ret,
                           struct err *e)
{
	*ret = STR("");
	if (!list->has_pages && !list->is_api)
		return RC_OK;
	if (!json_get_text(page, list->is_api ? "nextPageIdentifier" : "cursor", ret) ||
	    (ret->n && str_eq(*ret, before)))
		return err_set(e, RC_CORRUPT, "the server's answer has no usable cursor");
	return RC_OK;
}

static struct remote_request page_request(struct remote *remote, const struct list *list, int64_t limit,
                                          struct str cursor)
{
	struct remote_request req = { .method = "GET", .scope = list->is_api ? REMOTE_PERSON : REMOTE_ADMIN };

	if (list->is_api)
		req.path = ask_api_query(remote, list->path, list->filters, list->filter_count, limit, cursor);
	else
		req.path = ask_query(remote, list->path, list->filters, list->filter_count, list->has_pages ? limit : 0,
		                     cursor);
	return req;
}

static int take_page(struct remote *remote, const struct list *list, int64_t limit, struct progress_so_far *p)
{
	struct remote_request       req = page_request(remote, list, limit, p->cursor);
	CLEANUP(json_freep) json_t *document = NULL;
	const json_t               *page;
	struct fetch_reply          reply;
	struct err                  e = { 0 };
	struct str                  next;
	int                         code = remote_call(remote, &req, &reply, &document);

	if (code != CLI_EXIT_OK)
		return code;
	page = list->is_api ? json_object_get(document, "data") : document;
	if (read_cursor(list, page, p->cursor, &next, &e))
		return remote_fail(remote, &e);
	if (remote->is_json)
		remote_print_json(remote, &reply);
	else
		add_rows(remote, list, json_object_get(page, list->items), &p->t);
	p->items += json_array_size(json_object_get(page, list->items));
	p->cursor = str_dup(&remote->arena, next);
	return CLI_EXIT_OK;
}

static void init_table(struct remote *remote, const struct list *list, struct table *t)
{
	const char *headings[TABLE_COLUMNS_MAX];

	for (size_t i = 0; i < list->column_count; i++)
		headings[i] = list->columns[i].heading;
	table_init(t, &remote->arena, headings, list->column_count);
}

int list_run(struct remote *remote, const struct list *list)
{
	bool                   is_all = remote->args->values[CLI_OPTION_ALL] != NULL;
	int64_t                most = list->page_most ? list->page_most : PAGE_MAX;
	struct progress_so_far p = { .items = 0 };
	struct err             e = { 0 };
	int64_t                limit;
	int                    code, pages = 0;

	if (ask_number(remote, CLI_OPTION_LIMIT, 1, PAGE_MAX, is_all ? most : PAGE_DEFAULT, &limit, &e))
		return remote_fail(remote, &e);
	if (limit > most)
		limit = most;
	init_table(remote, list, &p.t);
	do {
		code = take_page(remote, list, limit, &p);
	} while (code == CLI_EXIT_OK && p.cursor.n && (is_all || !p.items) && ++pages < PAGES_MAX);
	if (code != CLI_EXIT_OK || remote->is_json)
		return code;
	table_print(&p.t, remote->io->out, remote->is_coloured);
	if (p.cursor.n)
		fprintf(remote->io->err, "There are more; --all lists them all.\n");
	return CLI_EXIT_OK;
}
