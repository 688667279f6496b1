/* SPDX-License-Identifier: Apache-2.0 */
/*
 * console_api.c - serves the web console: files that are part of the program.
 *
 * index.html is served at "/" and at every path that may belong to the console's own router; browsers ask for it each
 * time, and get 304 while it is the same. The other files are below /assets/VERSION/, which changes when any of them
 * does, so browsers keep them for good. The runbook is at /assets/ too, for programs, which know no VERSION.
 *
 * Always true:
 *   1. Only clients that accept text/html get a page where nothing else is: programs get 404. [console_is_wanted()]
 *   2. Nothing below /api or the base path is a page, so that a mistyped call is an error.          [is_page()]
 *   3. A page can load nothing from elsewhere and run nothing but its own files. [page_headers, answer.c]
 *
 * Not here: who may do what. The files are public; what they show comes from the API, which checks.
 */
#include "http/routes/console_api.h"

#include <string.h>

#include "http/api/api.h"
#include "http/routes/console_files.h"

#define ASSETS  "/assets/"
#define RUNBOOK "runbook.md"

static const struct console_file *find_file(struct str path)
{
	for (size_t i = 0; i < console_file_count; i++)
		if (str_eq(path, str_from(console_files[i].path)))
			return &console_files[i];
	return NULL;
}

/* Is the word one of a header's list, and not refused by "q=0"? */
static bool is_listed(struct str list, struct str word)
{
	while (list.n) {
		struct str params = str_cut(&list, ',');
		struct str name = str_trim(str_cut(&params, ';'));

		if (str_eq_nocase(name, word))
			return !str_is_word_of(str_trim(params), "q=0 q=0.0 q=0.00 q=0.000");
	}
	return false;
}

/* If-None-Match: "*", or a list of tags, weak ones included. */
static bool is_known(const struct request *r, struct str etag)
{
	struct str list = request_header_value(r, STR("If-None-Match"));

	if (str_eq(list, STR("*")))
		return true;
	while (list.n) {
		struct str one = str_trim(str_cut(&list, ','));

		if (str_starts_with(one, STR("W/")))
			one = str_of(one.p + 2, one.n - 2);
		if (str_eq(one, etag))
			return true;
	}
	return false;
}

static void send_file(struct request *r, const struct console_file *f, const char *cache)
{
	bool       is_packed = is_listed(request_header_value(r, STR("Accept-Encoding")), STR("gzip"));
	struct str etag = str_format(&r->call->arena, "\"%s%s\"", f->tag, is_packed ? "-gzip" : "");

	r->is_page = true;
	request_header(r, "ETag", "%s", etag.p);
	request_header(r, "Cache-Control", "%s", cache);
	request_header(r, "Vary", "Accept-Encoding%s", strcmp(f->path, "index.html") == 0 ? ", Accept" : "");
	if (is_known(r, etag)) {
		request_reply_as(r, 304, NULL, STR(""));
		return;
	}
	if (is_packed)
		request_header(r, "Content-Encoding", "gzip");
	request_reply_as(r, 200, f->type, is_packed ? f->packed : f->plain);
}

bool console_is_wanted(const struct request *r)
{
	return is_listed(request_header_value(r, STR("Accept")), STR("text/html"));
}

void console_answer_page(struct request *r)
{
	send_file(r, find_file(STR("index.html")), "no-cache");
}

static const struct console_file *find_asset(struct str path)
{
	if (!str_cut_prefix(&path, STR(ASSETS)))
		return NULL;
	if (!str_eq(str_cut(&path, '/'), str_from(console_version)))
		return NULL; /* of another version: the browser must load the page again */
	return str_eq(path, STR("index.html")) ? NULL : find_file(path);
}

/* A path that the console's own router may know. */
static bool is_page(const struct request *r)
{
	struct str path = r->call->req.path;

	if (path_is_below(path, STR("/api")) || path_is_below(path, STR("/assets")) ||
	    path_is_below(path, r->api->options.base_path))
		return false;
	return !memchr(path.p, '.', path.n) && console_is_wanted(r);
}

bool console_answer(struct request *r)
{
	const struct http_request *req = &r->call->req;
	const struct console_file *file = find_asset(req->path);

	if (!req->is_head && !str_eq(req->method, STR("GET")))
		return false;
	if (file)
		send_file(r, file, "public, max-age=31536000, immutable");
	else if (str_eq(req->path, STR(ASSETS RUNBOOK)))
		send_file(r, find_file(STR(RUNBOOK)), "no-cache");
	else if (is_page(r))
		console_answer_page(r);
	else
		return false;
	return true;
}
