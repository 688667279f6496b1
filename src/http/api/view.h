/* view.h - from a transaction to its answer: one thing, or a page of a list. Under /api it is the "data" of the
 * envelope, elsewhere it is bare. Loop thread only. */
#pragma once

#include "base/json.h"
#include "domain/policy.h"
#include "domain/ports/caller.h"
#include "http/api/api.h"
#include "store/session.h"

/* A handler that is one call, of r. */
#define HANDLER(name, call)                   \
	void handle_##name(struct request *r) \
	{                                     \
		call;                         \
	}

/* What a handler needs until it is answered: zeroed, in the request's arena. */
#define NEW_OF(r, type) ((type *)arena_alloc(&(r)->call->arena, sizeof(type)))

/* Writes the members of a thing into the open object. */
typedef void put_fn(struct json_out *o, struct request *r, const void *thing);

/* One that is nothing but members, of x: PUT_OF(put_node, struct node, n, member_str("id", n->id), ...) */
#define PUT_OF(name, type, x, ...)                                                        \
	static void name(struct json_out *o, struct request *r UNUSED, const void *thing) \
	{                                                                                 \
		const type *x = thing;                                                    \
                                                                                          \
		JSON_PUT(o, __VA_ARGS__);                                                 \
	}

enum view_access {
	READS,
	READS_LONG, /* put() runs on the store's thread: see request_submit_page() */
	WRITES,
};

/* False when something is wrong with it, which is in r->e: then that has been answered. */
bool request_is_good(struct request *r, bool is_wrong);

/* When the request's transaction failed: answer that, and true. */
bool request_failed(struct request *r);

/* Answer with what put() writes of the thing; NULL, only under /api: with "data": null. */
void view_reply(struct request *r, int status, put_fn *put, const void *thing);

/* When the transaction is over, only under /api: 200 without "data". Clients parse all answers, so none is empty. */
void view_done(struct request *r);

/* Run a transaction, then answer with what put() writes of r->shown, or of its argument, which is r->arg too, while
 * that is NULL. Behind the word of r->done, when there is one. */
void view_submit(struct request *r, txn_fn *run, void *arg, enum view_access access, int status, put_fn *put);

/* An array of these things, of which each has so many bytes, each an object that put() fills. */
void view_put_all(struct request *r, struct json_out *o, const char *name, const void *things, size_t size,
                  size_t count, put_fn *put);

/* A list: what it is called, what reads it, how one record of it is written. */
struct listing {
	const char               *member; /* of the answer: the array */
	const char               *name; /* with its filters: its cursors are good for no other; NULL: it is one page */
	const struct record_type *type;
	put_fn                   *put;
	txn_fn                   *run;
	size_t                    size, limit_at, cursor_at, page_at;         /* of run()'s argument: LIST_OF() */
	enum rc (*read)(struct request *r, struct listing *v, struct err *e); /* its filters; NULL: it has none */
	bool (*hides)(const struct listing *v, const struct request *r, const void *record); /* NULL: all are shown */
	size_t most; /* under /api: the records of a page */

	/* Of one call. */
	void            *list;
	struct problems *problems; /* under /api: with the filters */
};

#define PAGE_OF(type) sizeof(type), 0, 0, offsetof(type, page)
#define LIST_OF(type) sizeof(type), offsetof(type, limit), offsetof(type, cursor), offsetof(type, page)

/* A row for one call, with an empty argument. */
struct listing *view_begin_list(struct request *r, const struct listing *row);

/* Read which page is wanted. False: it has been answered. */
bool view_read_page(struct request *r, struct listing *v);

/* Read the list and answer with it. */
void view_submit_list(struct request *r, struct listing *v);

/* All of these. */
void view_list(struct request *r, const struct listing *row);

/* The members of a list, among others of the answer. */
void view_put_list(struct request *r, struct json_out *o, const struct listing *v, const struct page *page);

/* Answer with a list of these things. */
void view_reply_list(struct request *r, const struct listing *v, const void *things, size_t size, size_t count,
                     struct str next);

/* --- pages under /api: pageSize and pageIdentifier in, nextPageIdentifier out --- */

/* A query parameter whose value may be encoded twice, as clients of the original do; empty when it is not there, or
 * a problem. */
struct str page_query(struct request *r, const char *name, struct problems *p);

/* What page is wanted: how many records (most when not said) and the store's cursor (empty: from the start). The
 * list's name, with its filter, is part of the token, so that one of another list is refused. False: that, or another
 * problem, has been answered. */
bool page_token_read(struct request *r, const char *list, size_t most, size_t *ret_limit, struct str *ret_cursor,
                     struct problems *p);

/* "nextPageIdentifier": a token of URL-safe characters only, or an explicit null: some clients ask on until they see
 * it. */
void page_token_put(struct request *r, struct json_out *o, const char *list, struct str next);
