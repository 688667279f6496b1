/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_token.c - the page tokens of /api.
 *
 * Clients put a token into a URL as it is, so it has only letters, digits, '-' and '_'. Some send it back as nextPageIdentifier; both names are
 * taken. A page may be shorter than asked for: the store gives at most QUERY_LIMIT_MAX at once.
 */
#include "http/page_token.h"

#include "http/api.h"
#include "http/jsend.h"
#include "http/urlform.h"
#include "store/session.h"

struct str page_query(struct request *r, const char *name, struct problems *p)
{
	struct err e = { 0 };
	struct str text;

	if (request_query(r, name, &text, &e)) {
		problems_add(p, name, "%s", e.msg);
		return STR("");
	}
	if (text.n && !url_decode(&r->call->arena, text, &text)) {
		problems_add(p, name, "has a broken %%-escape");
		return STR("");
	}
	return text;
}

static struct str read_token(struct request *r, struct problems *p)
{
	struct str token = page_query(r, "pageIdentifier", p);
	struct str other = page_query(r, "nextPageIdentifier", p);

	if (token.n && other.n && !str_eq(token, other))
		problems_add(p, "pageIdentifier", "is another name of nextPageIdentifier, and they differ here");
	return token.n ? token : other;
}

void page_token_read(struct request *r, const char *list, size_t most, size_t *ret_limit, struct str *ret_cursor,
                     struct problems *p)
{
	struct str token = read_token(r, p);
	struct str size = page_query(r, "pageSize", p);
	int64_t    limit = (int64_t)most;

	if (size.n && !str_to_int(size, 1, (int64_t)most, &limit))
		problems_add(p, "pageSize", "must be a whole number from 1 to %zu", most);
	*ret_cursor = STR("");
	if (token.n && !cursor_unwrap(&r->call->arena, list, token, ret_cursor))
		problems_add(p, "pageIdentifier",
		             "is not one that this list gave; take nextPageIdentifier of the page before, or none");
	*ret_limit = limit < QUERY_LIMIT_MAX ? (size_t)limit : QUERY_LIMIT_MAX;
}

bool page_is_good(struct request *r, const struct problems *p)
{
	if (p->count == 0)
		return true;
	jsend_refuse(r, 400, p);
	return false;
}

void page_token_put(struct request *r, struct json_out *o, const char *list, struct str next)
{
	if (next.n)
		json_put_str(o, "nextPageIdentifier", cursor_wrap(&r->call->arena, list, next));
	else
		json_put_null(o, "nextPageIdentifier");
}
