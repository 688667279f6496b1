/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.c - what list, show and act handlers have in common: submit, then write what came of it in the dialect of the
 * route.
 *
 * The operators' routes answer {members}, or {"things": [...], "count": 2, "cursor": ...}. Those under /api answer
 * {"status": "success", "data": {members}}, and their lists end with nextPageIdentifier. A page there may be shorter
 * than asked for: the store gives at most QUERY_LIMIT_MAX at once.
 */
#include "http/api/view.h"

#include "http/api/ops.h"
#include "http/api/urlform.h"

static bool has_envelope(const struct request *r)
{
	return r->route->scope == SCOPE_SESSION;
}

static struct json_out begin(struct request *r)
{
	struct json_out o = reply_begin(r);

	if (has_envelope(r))
		JSON_PUT(&o, member_word("status", "success"), member_object("data"));
	return o;
}

static void end(struct request *r, struct json_out *o, int status)
{
	if (has_envelope(r))
		json_close_object(o);
	reply_send(r, status);
}

bool request_is_good(struct request *r, bool is_wrong)
{
	if (is_wrong)
		request_fail(r, &r->e);
	return !is_wrong;
}

bool request_failed(struct request *r)
{
	if (!r->txn.rc)
		return false;
	request_fail(r, &r->txn.e);
	return true;
}

void view_done(struct request *r)
{
	if (!request_failed(r))
		REPLY(r, 200, member_word("status", "success"));
}

void view_reply(struct request *r, int status, put_fn *put, const void *thing)
{
	struct json_out o;

	if (!put) {
		REPLY(r, 200, member_word("status", "success"), member_text("data", STR("")));
		return;
	}
	o = begin(r);
	if (r->done)
		json_put_str(&o, "status", str_from(r->done));
	put(&o, r, thing);
	end(r, &o, status);
}

static void on_done(struct request *r)
{
	if (!request_failed(r))
		view_reply(r, r->status, r->put, r->shown ? r->shown : r->arg);
}

void view_submit(struct request *r, txn_fn *run, void *arg, enum view_access access, int status, put_fn *put)
{
	r->arg = arg;
	r->put = put;
	r->status = status;
	if (access == READS_LONG)
		request_submit_page(r, run, arg, on_done);
	else
		request_submit(r, run, arg, access == READS, on_done);
}

/* --- lists --- */

static void put_list(struct request *r, struct json_out *o, const struct listing *v, const void *things, size_t size,
                     size_t count, struct str next)
{
	int64_t shown = 0;

	json_put_array(o, v->member);
	for (size_t i = 0; i < count; i++) {
		const void *thing = (const char *)things + i * size;

		if (v->hides && v->hides(v, r, thing))
			continue;
		shown++;
		json_open_object(o);
		v->put(o, r, thing);
		json_close_object(o);
	}
	json_close_array(o);
	if (v->name && has_envelope(r))
		page_token_put(r, o, v->name, next);
	else if (v->name)
		JSON_PUT(o, member_int("count", shown),
		         member_text("cursor", next.n ? cursor_wrap(&r->call->arena, v->name, next) : next));
}

void view_put_all(struct request *r, struct json_out *o, const char *name, const void *things, size_t size,
                  size_t count, put_fn *put)
{
	put_list(r, o, &(struct listing){ name, .put = put }, things, size, count, STR(""));
}

void view_put_list(struct request *r, struct json_out *o, const struct listing *v, const struct page *page)
{
	put_list(r, o, v, page->records, v->type->size, page->count, page->next);
}

void view_reply_list(struct request *r, const struct listing *v, const void *things, size_t size, size_t count,
                     struct str next)
{
	struct json_out o = begin(r);

	put_list(r, &o, v, things, size, count, next);
	end(r, &o, 200);
}

static void on_listed(struct request *r)
{
	const struct listing *v = r->arg;
	const struct page    *page = (const void *)((const char *)v->list + v->page_at);

	if (!request_failed(r))
		view_reply_list(r, v, page->records, v->type->size, page->count, page->next);
}

struct listing *view_begin_list(struct request *r, const struct listing *row)
{
	struct listing *v = NEW_OF(r, struct listing);

	*v = *row;
	v->list = arena_alloc(&r->call->arena, v->size);
	if (!has_envelope(r))
		return v;
	v->problems = NEW_OF(r, struct problems);
	v->problems->arena = &r->call->arena;
	return v;
}

bool view_read_page(struct request *r, struct listing *v)
{
	size_t     *limit = (void *)((char *)v->list + v->limit_at);
	struct str *cursor = (void *)((char *)v->list + v->cursor_at);

	if (has_envelope(r))
		return page_token_read(r, v->name, v->most, limit, cursor, v->problems);
	return request_is_good(r, v->name && ops_read_page(r, v->name, limit, cursor, &r->e));
}

void view_submit_list(struct request *r, struct listing *v)
{
	r->arg = v;
	request_submit_page(r, v->run, v->list, on_listed);
}

void view_list(struct request *r, const struct listing *row)
{
	struct listing *v = view_begin_list(r, row);

	if (request_is_good(r, v->read && v->read(r, v, &r->e)) && view_read_page(r, v))
		view_submit_list(r, v);
}

/* --- pages under /api --- */

struct str page_query(struct request *r, const char *name, struct problems *p)
{
	struct err e = { 0 };
	struct str text;

	if (request_query(r, name, &text, &e)) {
		problems_add(p, name, "%s", e.msg);
		return STR("");
	}
	return text;
}

/* Some clients send the token back as nextPageIdentifier; both names are taken. */
bool page_token_read(struct request *r, const char *list, size_t most, size_t *ret_limit, struct str *ret_cursor,
                     struct problems *p)
{
	struct str token = page_query(r, "pageIdentifier", p), other = page_query(r, "nextPageIdentifier", p);
	struct str size;
	int64_t    limit = (int64_t)most;

	if (token.n && other.n && !str_eq(token, other))
		problems_add(p, "pageIdentifier", "is another name of nextPageIdentifier, and they differ here");
	if (!token.n)
		token = other;
	size = page_query(r, "pageSize", p);
	if (size.n && !str_to_int(size, 1, (int64_t)most, &limit))
		problems_add(p, "pageSize", "must be a whole number from 1 to %zu", most);
	*ret_cursor = STR("");
	if (token.n && !cursor_unwrap(&r->call->arena, list, token, ret_cursor))
		problems_add(p, "pageIdentifier",
		             "is not one that this list gave; take nextPageIdentifier of the page before, or none");
	*ret_limit = limit < QUERY_LIMIT_MAX ? (size_t)limit : QUERY_LIMIT_MAX;
	if (!p->count)
		return true;
	request_fail_all(r, 400, p); /* which the problems may go with */
	return false;
}

void page_token_put(struct request *r, struct json_out *o, const char *list, struct str next)
{
	json_put_text(o, "nextPageIdentifier", next.n ? cursor_wrap(&r->call->arena, list, next) : next);
}
