/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.c - every answer leaves here: the common headers, one metric, one log line.
 *
 * Errors all look the same, those of the server itself included: an envelope with a code, a message and the request's
 * id. Under /api what the client can mend (4xx) is a "fail" with a list of errors, also when there is only one; what is
 * ours (5xx) is an "error". What went wrong inside (a 500) is told to the log, not to the caller.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "domain/policy.h"
#include "http/api/api.h"
#include "kernel/kernel.h"
#include "service/broker/broker.h"

enum { UNAVAILABLE_RETRY_SEC = 5, STATUS_LEFT = 499 };

static const char common_headers[] = "X-Frame-Options: DENY\r\n"
                                     "X-Content-Type-Options: nosniff\r\n"
                                     "X-XSS-Protection: 1; mode=block\r\n"
                                     "Strict-Transport-Security: max-age=31536000; includeSubDomains\r\n"
                                     "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
                                     "Referrer-Policy: no-referrer\r\n"
                                     "Permissions-Policy: geolocation=(), microphone=(), camera=()\r\n";

/* Of the console's files: only what came with them is loaded or run, and nobody frames them. */
static const char page_headers[] =
        "X-Frame-Options: DENY\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Strict-Transport-Security: max-age=31536000; includeSubDomains\r\n"
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'\r\n"
        "Referrer-Policy: no-referrer\r\n"
        "Cross-Origin-Opener-Policy: same-origin\r\n"
        "Permissions-Policy: geolocation=(), microphone=(), camera=()\r\n";

/* Under /api: those that the original sends. */
static const char api_headers[] = "X-Frame-Options: DENY\r\n"
                                  "Origin-Agent-Cluster: ?1\r\n"
                                  "Referrer-Policy: no-referrer\r\n"
                                  "Strict-Transport-Security: max-age=15552000; includeSubDomains; preload\r\n"
                                  "X-Content-Type-Options: nosniff\r\n"
                                  "X-DNS-Prefetch-Control: off\r\n"
                                  "X-Download-Options: noopen\r\n"
                                  "X-Permitted-Cross-Domain-Policies: none\r\n"
                                  "Cache-Control: no-store, no-cache\r\n";

bool path_is_below(struct str path, struct str folder)
{
	return folder.n && str_starts_with(path, folder) && (path.n == folder.n || path.p[folder.n] == '/');
}

bool api_is_under(const struct api *a, struct str path)
{
	return path_is_below(path, STR("/api")) && !path_is_below(path, a->options.base_path);
}

static void add_cors(struct request *r)
{
	struct str origin = http_header(&r->call->req, STR("Origin"), NULL), rest = r->api->options.cors_origins;
	bool       is_any = str_eq(rest, STR("*")), is_allowed = is_any;

	if (!origin.p)
		return;
	if (!is_any)
		request_header(r, "Vary", "Origin");
	while (rest.n && !is_allowed)
		is_allowed = str_eq(str_trim(str_cut(&rest, ',')), origin);
	if (!is_allowed)
		return;
	request_header(r, "Access-Control-Allow-Origin", "%.*s", STR_ARG(is_any ? STR("*") : origin));
	request_header(r, "Access-Control-Expose-Headers",
	               "X-Request-ID, X-RateLimit-Limit, X-RateLimit-Remaining, Retry-After");
}

static void add_common_headers(struct request *r)
{
	const struct kernel *k = r->api->options.kernel;
	const struct clock  *clock = k ? kernel_options(k)->clock : &clock_real;
	struct buf          *h = &r->call->headers;
	char                 time[ISO_TIME_SIZE] = "";

	if (r->is_page)
		buf_add(h, page_headers, sizeof(page_headers) - 1);
	else if (api_is_under(r->api, r->call->req.path))
		buf_add(h, api_headers, sizeof(api_headers) - 1);
	else
		buf_add(h, common_headers, sizeof(common_headers) - 1);
	if (r->api->options.sends_request_id) {
		buf_add_str(h, STR("X-Request-ID: "));
		buf_add_text(h, r->id);
		buf_add_str(h, STR("\r\n"));
	}
	if (r->rate_remaining >= 0) {
		buf_add_str(h, r->api->rate_head);
		buf_add_int(h, r->rate_remaining);
		buf_add_str(h, STR("\r\n"));
	}
	if (!clock_is_real(clock)) { /* whoever shows "in 2 h" has to know the date of the stored world */
		(void)iso_time(wall_sec(clock_now(clock)), time); /* empty in a year that has no name */
		request_header(r, "Leasehold-Time", "%s", time);
	}
	add_cors(r);
}

static void note_latency(struct request *r, int status, double seconds)
{
	static const int       known[API_STATUS_SLOTS - 1] = { 200, 201, 202, 204, 302, 400, 401, 403, 404, 405,
		                                               409, 413, 415, 422, 429, 499, 500, 503, 504 };
	struct matcher        *m = r->route ? &r->api->matchers[r->route - api_routes] : &r->api->unknown;
	struct metric_series **series;
	size_t                 slot = 0;

	while (slot < ARRAY_LEN(known) && known[slot] != status)
		slot++;
	series = &m->latency[slot];
	if (!*series) {
		char labels[512];

		(void)snprintf(labels, sizeof(labels), "%s,%.*s,%d", r->route ? r->route->method : "any",
		               STR_ARG(m->path), status); /* a cut label is still a label */
		*series = metrics_series(r->api->options.metrics, METRIC_REQUEST_LATENCY, labels);
	}
	metric_observe(*series, seconds);
}

static void log_request(struct request *r, int status, double seconds, const char *error)
{
	const struct http_request *req = &r->call->req;
	struct str       action = str_format(&r->call->arena, "%.*s %.*s", STR_ARG(req->method), STR_ARG(req->path));
	struct log_field fields[] = {
		LOG_STR("request_id", str_from(r->id)),
		LOG_STR("track_id", r->owner),
		LOG_STR("sandbox_id", r->sandbox_id),
		LOG_STR("action", action),
		LOG_STR("outcome", status < 400 ? STR("success") : STR("failure")),
		LOG_NUM("status", status),
		LOG_NUM("latency_ms", (double)(int64_t)(seconds * 1e6) / 1000),
		LOG_STR("error", str_from(error)),
		LOG_STR("instruqt_track_id", request_header_value(r, STR("X-Instruqt-Track-ID"))),
		LOG_STR("client", http_client(r->call)),
		LOG_STR("trace_id", trace_id(str_from(r->trace.text))),
	};

	log_write_later(status >= 500 ? LOG_ERROR : LOG_INFO, "http", fields, ARRAY_LEN(fields), "request");
	api_log_soon(r->api);
}

static void note_answer(struct request *r, int status, const char *error)
{
	double seconds = (double)(mono_ns() - r->call->started_ns) / 1e9;

	add_common_headers(r);
	note_latency(r, status, seconds);
	if (log_wants(status >= 500 ? LOG_ERROR : LOG_INFO))
		log_request(r, status, seconds, error);
}

void request_stream(struct request *r, const char *content_type)
{
	request_header(r, "Cache-Control", "no-store");
	note_answer(r, 200, "");
	http_stream_begin(r->call, content_type);
}

void answer_send(struct request *r, int status, const char *content_type, struct str body, const char *error)
{
	note_answer(r, status, error);
	http_reply(r->call, status, content_type, body);
}

void request_reply_as(struct request *r, int status, const char *content_type, struct str body)
{
	answer_send(r, status, content_type, body, "");
}

void request_reply_taken(struct request *r, int status, const char *content_type, struct buf *body)
{
	note_answer(r, status, "");
	http_reply_taken(r->call, status, content_type, body);
}

struct json_out reply_begin(struct request *r)
{
	struct buf     *b = r->is_writing_page ? &r->page : &r->api->scratch;
	struct json_out o = JSON_OUT(b);

	buf_reset(b);
	json_open_object(&o);
	return o;
}

void reply_send(struct request *r, int status)
{
	if (r->is_writing_page) {
		buf_add_char(&r->page, '}');
		r->page_status = status;
		r->page_type = "application/json";
		return;
	}
	buf_add_char(&r->api->scratch, '}');
	if (r->api->scratch.is_full)
		request_refuse(r, RC_INTERNAL, "the reply is too large");
	else
		answer_send(r, status, "application/json", buf_str(&r->api->scratch), "");
}

void reply_members(struct request *r, int status, const struct json_member *members, size_t count)
{
	struct json_out o = reply_begin(r);

	json_put_members(&o, members, count);
	reply_send(r, status);
}

static void write_error(struct buf *b, const char *code, const char *message, const char *request_id,
                        int64_t retry_after)
{
	JSON_PUT(&JSON_OUT(b), member_object(NULL), member_object("error"), member_word("code", code),
	         member_word("message", message), member_word("request_id", request_id),
	         member_if(retry_after > 0, member_int("retry_after", retry_after)), member_end(), member_end());
}

/* Of the instance contract: camel case, details, the time. */
static void write_tenant_error(struct request *r, const struct err *e, const char *message)
{
	JSON_PUT(&JSON_OUT(&r->api->scratch), member_object(NULL), member_object("error"),
	         member_word("code", e->rc == RC_LIMITED ? "RATE_LIMITED" : err_code(e)),
	         member_word("message", message), member_raw("details", r->details.n ? r->details : STR("null")),
	         member_word("documentationUrl", "docs/instances.md#errors"), member_end(),
	         member_word("requestId", r->id), member_time("timestamp", clock_now(&clock_real).ms), member_end());
}

static void write_fail(struct buf *b, const struct problem *problems, size_t count)
{
	struct json_out o = JSON_OUT(b);

	JSON_PUT(&o, member_object(NULL), member_word("status", "fail"), member_object("data"), member_list("errors"));
	for (size_t i = 0; i < count; i++)
		JSON_PUT(&o, member_object(NULL), member_if_any(member_str("field", problems[i].field)),
		         member_str("message", problems[i].message), member_end());
	JSON_PUT(&o, member_list_end(), member_end(), member_end());
}

void request_fail(struct request *r, const struct err *e)
{
	int         status = rc_http_status(e->rc);
	bool        is_jsend = r->route && r->route->scope == SCOPE_SESSION;
	int64_t     after = r->retry_after;
	const char *message = e->msg;
	struct buf *b = &r->api->scratch;

	assert(e->rc != RC_OK && !r->is_writing_page);
	if (status == 500)
		message = "something went wrong here; the log has the details under this request_id";
	if (!after && e->rc == RC_EXHAUSTED)
		after = BROKER_RETRY_AFTER_SEC;
	if (!after && (e->rc == RC_UNAVAILABLE || e->rc == RC_TIMEOUT))
		after = UNAVAILABLE_RETRY_SEC;
	if (after)
		request_header(r, "Retry-After", "%lld", (long long)after);
	if (e->rc == RC_UNKNOWN)
		request_header(r, "WWW-Authenticate", "Bearer");
	buf_reset(b);
	if (is_jsend && status < 500)
		write_fail(b, &(struct problem){ .message = str_from(message) }, 1);
	else if (is_jsend)
		buf_add_str(b,
		            JSON_OF(&r->call->arena, member_word("status", "error"), member_word("message", message)));
	else if (str_starts_with(r->call->req.path, STR("/v1.0/tenants/")))
		write_tenant_error(r, e, message);
	else
		write_error(b, err_code(e), message, r->id, after);
	answer_send(r, status, "application/json", buf_str(b), e->msg);
}

void request_fail_all(struct request *r, int status, const struct problems *problems)
{
	const struct problem *first = problems->items;
	struct buf           *b = &r->api->scratch;

	assert(problems->count > 0);
	buf_reset(b);
	write_fail(b, first, problems->count < PROBLEMS_MAX ? problems->count : PROBLEMS_MAX);
	answer_send(r, status, "application/json", buf_str(b),
	            str_format(&r->call->arena, "%.*s: %.*s", STR_ARG(first->field), STR_ARG(first->message)).p);
}

void request_refuse(struct request *r, enum rc rc, const char *fmt, ...)
{
	struct err e = { .rc = rc };
	va_list    args;

	va_start(args, fmt);
	(void)vsnprintf(e.msg, sizeof(e.msg), fmt, args); /* cut when it is too long, as err_set() does */
	va_end(args);
	request_fail(r, &e);
}

void request_drop(struct request *r)
{
	assert(http_is_gone(r->call));
	answer_send(r, STATUS_LEFT, NULL, STR(""), "the client left");
}

void request_header(struct request *r, const char *name, const char *fmt, ...)
{
	char    value[512];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, args); /* ours, and short */
	va_end(args);
	buf_addf(&r->call->headers, "%s: %s\r\n", name, value);
}

/* Errors of the server itself, in the same form. */
void api_on_error(int status, const char *why, struct buf *headers, struct buf *body, void *arg)
{
	struct api *a = arg;
	char        id[ID_UUID_SIZE];
	const char *code = status == 408                                     ? "REQUEST_TIMEOUT"
	                   : status == 413 || status == 414 || status == 431 ? "TOO_LARGE"
	                   : status == 503                                   ? "SERVICE_UNAVAILABLE"
	                   : status >= 500 && status != 501 && status != 505 ? "INTERNAL_ERROR"
	                                                                     : "VALIDATION_ERROR";

	id_uuid(id);
	buf_add_str(headers, STR("Content-Type: application/json\r\n"));
	buf_add(headers, common_headers, sizeof(common_headers) - 1);
	if (a->options.sends_request_id)
		buf_addf(headers, "X-Request-ID: %s\r\n", id);
	if (str_eq(a->options.cors_origins, STR("*")))
		buf_add_str(headers, STR("Access-Control-Allow-Origin: *\r\n"));
	write_error(body, code, why, id, status == 503 ? UNAVAILABLE_RETRY_SEC : 0);
	if (status == 503)
		buf_addf(headers, "Retry-After: %d\r\n", UNAVAILABLE_RETRY_SEC);
	struct log_field fields[] = { LOG_STR("request_id", str_from(id)), LOG_NUM("status", status),
		                      LOG_STR("error", str_from(why)) };

	log_write_later(LOG_INFO, "http", fields, ARRAY_LEN(fields), "refused");
	api_log_soon(a);
}
