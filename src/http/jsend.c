/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsend.c - puts answers under /api into their envelope.
 *
 * What the client can mend (4xx) is a "fail" with a list of errors, also when there is only one; what is ours (5xx) is an "error" with a
 * sentence that tells nothing about the inside. Every answer is JSON, also where there is nothing to say: the web pages parse them all.
 *
 * Not here: which status an error has (base/err.h) and the headers (answer.c).
 */
#include "http/jsend.h"

#include <assert.h>

#include "http/api.h"
#include "http/api_ops.h"

struct json_out jsend_begin(struct request *r)
{
	struct json_out o = reply_begin(r);

	json_put_str(&o, "status", STR("success"));
	return o;
}

void jsend_null(struct request *r)
{
	struct json_out o = jsend_begin(r);

	json_put_null(&o, "data");
	reply_send(r, 200);
}

void jsend_done(struct request *r)
{
	(void)jsend_begin(r); /* no more than the status */
	reply_send(r, 200);
}

static void open_errors(struct json_out *o, struct buf *b)
{
	json_out_init(o, b);
	json_open_object(o);
	json_put_str(o, "status", STR("fail"));
	json_put_object(o, "data");
	json_put_array(o, "errors");
}

static void add_error(struct json_out *o, struct str field, struct str message)
{
	json_open_object(o);
	if (field.n)
		json_put_str(o, "field", field);
	json_put_str(o, "message", message);
	json_close_object(o);
}

static void close_errors(struct json_out *o)
{
	json_close_array(o);
	json_close_object(o);
	json_close_object(o);
}

void jsend_write_error(struct buf *b, int status, const char *message)
{
	struct json_out o;

	if (status < 500) {
		open_errors(&o, b);
		add_error(&o, STR(""), str_from(message));
		close_errors(&o);
		return;
	}
	json_out_init(&o, b);
	json_open_object(&o);
	json_put_str(&o, "status", STR("error"));
	json_put_str(&o, "message", str_from(message));
	json_close_object(&o);
}

void jsend_refuse(struct request *r, int status, const struct problems *problems)
{
	struct buf     *b = &r->api->scratch;
	struct json_out o;

	assert(problems->count > 0);
	buf_reset(b);
	open_errors(&o, b);
	for (size_t i = 0; i < problems->count && i < PROBLEMS_MAX; i++)
		add_error(&o, problems->items[i].field, problems->items[i].message);
	close_errors(&o);
	answer_send(r, status, "application/json", buf_str(b),
	            str_format(&r->call->arena, "%.*s: %.*s", STR_ARG(problems->items[0].field),
	                       STR_ARG(problems->items[0].message))
	                    .p);
}

bool jsend_failed(struct request *r)
{
	if (!r->txn.rc)
		return false;
	request_fail(r, &r->txn.e);
	return true;
}
