/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c - what the operators' routes have in common.
 *
 * All lists have a limit and a cursor; a cursor belongs to its list and its filters. Whoever changes something by hand and against
 * the machine gives a reason, which is kept. Times are Unix seconds, as everywhere in the API.
 */
#include "http/ops.h"

#include "base/json.h"
#include "http/urlform.h"
#include "kernel/kernel.h"

struct kernel *ops_kernel(const struct request *r)
{
	return api_options(r->api)->kernel;
}

int64_t ops_now_ms(const struct request *r)
{
	return clock_now(kernel_options(ops_kernel(r))->clock).ms;
}

const char *ops_list_name(struct request *r, const char *list, const struct str *filters, size_t count)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < count; i++)
		hash = str_hash(filters[i], hash + i + 1);
	return str_format(&r->call->arena, "%s-%016llx", list, (unsigned long long)hash).p;
}

enum rc ops_read_page(struct request *r, const char *list_name, size_t *ret_limit, struct str *ret_cursor,
                      struct err *e)
{
	struct str text, cursor = STR("");
	int64_t    limit;
	enum rc    rc;

	if ((rc = request_query_int(r, "limit", 1, OPS_LIMIT_MAX, OPS_LIMIT_DEFAULT, &limit, e)) ||
	    (rc = request_query(r, "cursor", &text, e)))
		return rc;
	if (text.n && !cursor_unwrap(&r->call->arena, list_name, text, &cursor))
		return err_set(e, RC_INVALID, "this cursor was not made by this list, or with other filters");
	*ret_limit = (size_t)limit;
	*ret_cursor = cursor;
	return RC_OK;
}

enum rc ops_read_text(struct request *r, const char *name, size_t max, struct str *ret, struct err *e)
{
	struct str text;
	enum rc    rc = request_query(r, name, &text, e);

	if (rc)
		return rc;
	if (text.n > max)
		return err_set(e, RC_INVALID, "query parameter %s has %zu bytes, at most %zu are allowed", name, text.n,
		               max);
	*ret = text;
	return RC_OK;
}

enum rc ops_read_id(struct request *r, const char *what, struct str *ret, struct err *e)
{
	if (r->params[0].n > OPS_ID_MAX)
		return err_set(e, RC_NOT_FOUND, "there is no %s with a name of %zu bytes; the longest have %d", what,
		               r->params[0].n, OPS_ID_MAX);
	*ret = r->params[0];
	return RC_OK;
}

enum rc ops_read_reason(struct request *r, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct str                  reason = STR("");
	enum rc                     rc;

	if (r->call->req.body.n && (rc = json_parse(r->call->req.body, &body, e)))
		return err_wrap(e, rc, "body");
	if (!json_is_object(body) || json_object_size(body) != 1 || !json_get_text(body, "reason", &reason) ||
	    !str_trim(reason).n)
		return err_set(e, RC_INVALID, "the body must be {\"reason\": \"why\"}; the reason is kept");
	if (reason.n > OPS_REASON_MAX)
		return err_set(e, RC_INVALID, "reason has %zu bytes, at most %d are allowed", reason.n, OPS_REASON_MAX);
	*ret = str_dup(&r->call->arena, str_trim(reason));
	return RC_OK;
}

bool ops_failed(struct request *r)
{
	if (!r->txn.rc)
		return false;
	request_fail(r, &r->txn.e);
	return true;
}

void ops_send_list(struct request *r, struct json_out *o, const char *list_name, size_t count, struct str next)
{
	json_close_array(o);
	json_put_int(o, "count", (int64_t)count);
	ops_put_text(o, "cursor", next.n ? cursor_wrap(&r->call->arena, list_name, next) : next);
	reply_send(r, 200);
}

void ops_put_time(struct json_out *o, const char *name, int64_t ms)
{
	if (ms)
		json_put_int(o, name, ms / 1000);
	else
		json_put_null(o, name);
}

void ops_put_text(struct json_out *o, const char *name, struct str text)
{
	if (text.n)
		json_put_str(o, name, text);
	else
		json_put_null(o, name);
}

void ops_put_json(struct json_out *o, const char *name, struct str json)
{
	json_put_raw(o, name, json.n ? json : STR("null"));
}
