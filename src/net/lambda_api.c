/* SPDX-License-Identifier: Apache-2.0 */
/* lambda_api.c - Lambda's runtime API, version 2018-06-01: plain HTTP to an address of this machine that the
 * environment names. */
#include "net/lambda_api.h"

#include "base/buf.h"
#include "base/json.h"
#include "net/fetch.h"

enum { ANSWER_MS = 10000 };

#define VERSION "2018-06-01"

static const char *url_of(const char *at, const char *path, struct arena *a)
{
	return str_format(a, "http://%s/" VERSION "/runtime/%s", at, path).p;
}

enum rc lambda_next(const char *at, struct arena *a, struct lambda_invocation *ret, struct err *e)
{
	struct fetch_request req = { .method = "GET",
		                     .url = url_of(at, "invocation/next", a),
		                     .total_timeout_ms = FETCH_NO_LIMIT,
		                     .max_bytes = LAMBDA_PAYLOAD_MAX };
	struct fetch_reply   reply;
	enum rc              rc = fetch(&req, a, &reply, e);

	if (rc)
		return rc;
	if (reply.status != 200)
		return err_set(e, RC_UNAVAILABLE, "the runtime API answered %d to next", reply.status);
	*ret = (struct lambda_invocation){ .id = fetch_header(&reply, "Lambda-Runtime-Aws-Request-Id"),
		                           .trace = fetch_header(&reply, "Lambda-Runtime-Trace-Id"),
		                           .payload = reply.body };
	if (!str_to_int(fetch_header(&reply, "Lambda-Runtime-Deadline-Ms"), 0, INT64_MAX, &ret->deadline_ms))
		ret->deadline_ms = 0;
	return ret->id.n ? RC_OK : err_set(e, RC_CORRUPT, "the runtime API did not say which invocation it is");
}

static enum rc post(const char *at, const char *path, const char *type, struct str body, struct arena *a, struct err *e)
{
	struct fetch_request req = { .method = "POST",
		                     .url = url_of(at, path, a),
		                     .headers = { "Content-Type: application/json" },
		                     .body = body,
		                     .total_timeout_ms = ANSWER_MS };
	struct fetch_reply   reply;
	enum rc              rc;

	if (type)
		req.headers[1] = str_format(a, "Lambda-Runtime-Function-Error-Type: %s", type).p;
	if ((rc = fetch(&req, a, &reply, e)))
		return rc;
	return reply.status / 100 == 2
	               ? RC_OK
	               : err_set(e, RC_UNAVAILABLE, "the runtime API answered %d to %s", reply.status, path);
}

/* The id is the service's own, but escaped nevertheless. */
static const char *path_of(struct str id, const char *what, struct arena *a)
{
	struct buf b = BUF(4096);

	buf_add_text(&b, "invocation/");
	fetch_escape(&b, id);
	buf_addf(&b, "/%s", what);
	return buf_take(&b, a).p;
}

enum rc lambda_respond(const char *at, struct str id, struct str body, struct arena *a, struct err *e)
{
	return post(at, path_of(id, "response", a), NULL, body, a, e);
}

static struct str write_error(const char *type, const char *text, struct arena *a)
{
	return JSON_OF(a, member_word("errorMessage", text), member_word("errorType", type),
	               member_raw("stackTrace", STR("[]")));
}

enum rc lambda_fail(const char *at, struct str id, const char *type, const char *text, struct arena *a, struct err *e)
{
	return post(at, path_of(id, "error", a), type, write_error(type, text, a), a, e);
}

enum rc lambda_init_error(const char *at, const char *type, const char *text, struct arena *a, struct err *e)
{
	return post(at, "init/error", type, write_error(type, text, a), a, e);
}
