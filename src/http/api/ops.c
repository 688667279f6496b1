/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c - what the operators' routes have in common.
 *
 * All lists have a limit and a cursor; a cursor belongs to its list and its filters. Whoever changes something by hand
 * and against the machine gives a reason, which is kept. Times are Unix seconds, as everywhere in the API.
 */
#include "http/api/ops.h"

#include "base/clock.h"
#include "base/json.h"
#include "domain/sandbox.h"
#include "http/api/urlform.h"
#include "kernel/kernel.h"

int64_t ops_now_ms(const struct request *r)
{
	return clock_now(kernel_options(r->api->options.kernel)->clock).ms;
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

enum rc ops_read_word(struct request *r, const char *name, const char *const *words, int count, const char *must,
                      int *ret, struct err *e)
{
	struct str text;
	enum rc    rc = request_query(r, name, &text, e);

	*ret = rc || !text.n ? -1 : str_word(text, words, count);
	if (*ret == count)
		rc = err_set(e, RC_INVALID, "%s must be %s, not '%.*s'", name, must, STR_ARG(text));
	return rc;
}

enum rc ops_read_time(struct request *r, const char *name, int64_t *ret_ms, struct err *e)
{
	struct str text;
	int64_t    sec;
	enum rc    rc = request_query(r, name, &text, e);

	if (rc || !text.n)
		return rc;
	if (!str_to_int(text, 0, OPS_TIME_MAX_SEC, &sec) && !iso_time_parse(text, &sec))
		return err_set(e, RC_INVALID, "%s must be a time such as 2026-11-15T18:03:43Z, or Unix seconds", name);
	*ret_ms = sec * 1000;
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

bool ops_is_word(const char *words, const char *name)
{
	struct str rest = str_from(words);

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');

		word.n -= word.n && word.p[word.n - 1] == ',';
		if (str_eq(word, str_from(name)))
			return true;
	}
	return false;
}

enum rc ops_read_object(struct request *r, const char *must, const char *words, json_t **ret, struct err *e)
{
	enum rc     rc = r->call->req.body.n ? request_json(r, ret, e) : RC_OK;
	const char *name;
	json_t     *value;

	if (rc)
		return err_wrap(e, rc, "body");
	if (!json_is_object(*ret))
		return err_set(e, RC_INVALID, "the body must be %s", must);
	json_object_foreach(*ret, name, value)
	{
		if (words && !ops_is_word(words, name))
			return err_set(e, RC_INVALID, "there is no member '%.40s' here; known are: %s", name, words);
	}
	return RC_OK;
}

enum rc ops_read_reason(struct request *r, bool is_needed, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct str                  reason = STR("");
	size_t                      most = is_needed ? OPS_REASON_MAX : SANDBOX_TEXT_MAX;
	bool                        is_good = !is_needed;
	enum rc                     rc;

	if (r->call->req.body.n) {
		if ((rc = request_json(r, &body, e)))
			return err_wrap(e, rc, "body");
		is_good = json_is_object(body) && json_get_text(body, "reason", &reason) &&
		          json_object_size(body) == (json_object_get(body, "reason") ? 1u : 0u);
	}
	if (!is_good || (is_needed && !str_trim(reason).n))
		return err_set(e, RC_INVALID,
		               is_needed ? "the body must be {\"reason\": \"why\"}; the reason is kept"
		                         : "the body must be {\"reason\": \"text\"} or empty");
	if (reason.n > most)
		return err_set(e, RC_INVALID, "reason has %zu bytes, at most %zu are allowed", reason.n, most);
	*ret = str_dup(&r->call->arena, is_needed ? str_trim(reason) : reason);
	return RC_OK;
}

void ops_show(struct request *r, const char *what, size_t size, size_t id_at, txn_fn *get, put_fn *put)
{
	char *record = arena_alloc(&r->call->arena, size);

	if (request_is_good(r, ops_read_id(r, what, (struct str *)(void *)(record + id_at), &r->e)))
		view_submit(r, get, record, READS_LONG, 200, put);
}
