/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - one call to AWS, from a row: request, attempts, answer, and what its failure means.
 *
 * Always true:
 *   1. A write that may have happened is RC_TIMEOUT, whatever the answer to its last attempt: after an attempt without
 *      an answer, "it is there already" may be our own doing. The caller has to look first.         [judge()]
 *   2. RC_UNAVAILABLE and RC_LIMITED mean: it did not happen.
 *   3. A code that no row knows is RC_INTERNAL with the code in the text: never success, never retried forever.
 *   4. Every call is one line of the log at level DEBUG, with neither its request nor its answer.
 */
#include "providers/aws/call.h"

#include <math.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "net/aws.h"
#include "net/aws_xml.h"
#include "net/fetch.h"
#include "providers/aws/call_private.h"
#include "providers/aws/pace.h"

enum { FORM_MAX = 1 << 20, PATH_MAX_BYTES = 8192, TIME_MAX_SEC = 1 << 30 };

/* --- the request --- */

struct str aws_pairs(struct arena *a, const struct aws_pair *pairs, size_t count)
{
	struct buf b = BUF(FORM_MAX);

	for (size_t i = 0; i < count; i++) {
		if (!pairs[i].value.p)
			continue;
		buf_addf(&b, "%s%s=", b.n ? "&" : "", pairs[i].name);
		fetch_escape(&b, pairs[i].value);
	}
	return buf_take(&b, a);
}

/* "/schedules/{Name}" with the arguments in the places of what is in braces. */
static struct str fill_path(const struct aws_call *call, struct arena *a)
{
	struct str        rest = str_from(call->op->path);
	const struct str *arg = call->path_args;
	struct buf        b = BUF(PATH_MAX_BYTES);

	while (rest.n) {
		buf_add_str(&b, str_cut(&rest, '{'));
		if (!rest.p || !memchr(rest.p, '}', rest.n))
			break;
		(void)str_cut(&rest, '}');
		fetch_escape(&b, *arg++);
	}
	return buf_take(&b, a);
}

static void make_request(const struct aws_call *call, struct arena *a, struct aws_request *ret)
{
	const struct aws_service *service = call->op->service;
	struct str                body = call->body;

	switch (service->protocol) {
	case AWS_JSON_1_0:
	case AWS_JSON_1_1:
		ret->type = service->protocol == AWS_JSON_1_0 ? STR("application/x-amz-json-1.0")
		                                              : STR("application/x-amz-json-1.1");
		ret->target = str_format(a, "%s.%s", service->prefix_or_version, call->op->name);
		ret->body = body.n ? body : STR("{}");
		break;
	case AWS_QUERY:
		ret->type = STR("application/x-www-form-urlencoded; charset=utf-8");
		ret->body = str_format(a, "Action=%s&Version=%s%s%.*s", call->op->name, service->prefix_or_version,
		                       body.n ? "&" : "", STR_ARG(body));
		break;
	case AWS_REST_JSON:
		ret->method = call->op->method;
		ret->path = fill_path(call, a);
		ret->query = call->query;
		ret->type = body.n ? STR("application/json") : STR("");
		ret->body = body.n ? body : (struct str){ NULL, 0 };
		break;
	}
}

/* --- the answer --- */

static bool fits(const struct aws_error_row *row, const struct aws_reply *reply)
{
	return str_eq(reply->error_type, str_from(row->code)) &&
	       (!row->says || str_has(reply->error_message, str_from(row->says)));
}

static const struct aws_error_row *find_row(const struct aws_error_row *row, const struct aws_reply *reply)
{
	while (row && row->code && !fits(row, reply))
		row++;
	return row && row->code ? row : NULL;
}

static void tell_denied(const struct aws_caller *c, const struct aws_op *op, const struct err *why)
{
	const struct aws_settings *s = aws_caller_settings(c);

	if (s->on_denied)
		s->on_denied(s->arg, op->permission, why->msg);
}

/* The service answered with an error. */
static enum rc judge(struct aws_caller *c, const struct aws_op *op, const struct aws_reply *reply, struct err *e)
{
	const struct aws_error_row *row = find_row(op->errors, reply);
	struct str                  message = op->is_secret ? STR("") : reply->error_message;
	const char                 *code, *but = "";
	struct err                  why = { 0 };
	enum rc                     rc;

	if (!row)
		row = find_row(aws_common_errors, reply);
	rc = row ? row->rc : RC_INTERNAL;
	code = row ? row->code : NULL;
	if (op->writes && reply->is_uncertain) {
		rc = RC_TIMEOUT;
		but = "; an attempt before was not answered";
	}
	rc = err_set_code(&why, rc, code, "%s as %s: %.*s%s%.*s%s", op->permission, aws_caller_hop(c),
	                  STR_ARG(reply->error_type), message.n ? ": " : "", STR_ARG(message), but);
	if (rc == RC_DENIED)
		tell_denied(c, op, &why);
	return err_set_code(e, rc, code, "%s", why.msg);
}

/* There was no answer but "slow down", or no request at all. */
static enum rc judge_silence(struct aws_caller *c, const struct aws_op *op, enum rc rc, const struct aws_reply *reply,
                             const struct err *why, struct err *e)
{
	const struct aws_error_row *row = rc == RC_LIMITED ? find_row(op->errors, reply) : NULL;
	struct str                  said = rc == RC_LIMITED && !op->is_secret ? reply->error_message : STR("");

	if (row)
		rc = row->rc;
	if (reply->is_uncertain && op->writes)
		rc = RC_TIMEOUT;
	else if (rc == RC_TIMEOUT)
		rc = RC_UNAVAILABLE;
	if (rc == RC_DENIED)
		tell_denied(c, op, why);
	return err_set_code(e, rc, rc == why->rc ? why->code : NULL, "%s as %s: %s%s%.*s", op->permission,
	                    aws_caller_hop(c), why->msg, said.n ? ": " : "", STR_ARG(said));
}

static enum rc read_answer(const struct aws_service *service, struct str body, json_t **ret, struct err *e)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	json_t                     *inside;
	enum rc                     rc;

	if (!str_trim(body).n)
		answer = json_object();
	else if ((rc = service->protocol == AWS_QUERY ? aws_xml_parse(body, &answer, e) : json_parse(body, &answer, e)))
		return rc;
	inside = service->protocol == AWS_QUERY ? aws_xml_result(answer) : answer;
	if (json_is_string(inside) && !json_string_length(inside)) { /* a result with nothing in it */
		*ret = json_object();
		return RC_OK;
	}
	if (!json_is_object(inside))
		return err_set(e, RC_INVALID, "not an object");
	*ret = json_incref(inside);
	return RC_OK;
}

/* --- a call --- */

/* What the hooks of a request need. */
struct under_way {
	const struct aws_settings *settings;
	const struct aws_op       *op;
};

static enum rc keep_pace(void *arg, long left_ms, struct err *e)
{
	const struct under_way *u = arg;

	return aws_pacer_take(u->settings->pacer, u->op->pace, left_ms, e);
}

static void note_throttle(void *arg)
{
	const struct under_way *u = arg;

	aws_pacer_throttled(u->settings->pacer, u->op->pace);
	if (u->settings->on_throttled)
		u->settings->on_throttled(u->settings->arg, u->op);
}

static void log_call(const struct aws_caller *c, const struct aws_op *op, const char *region,
                     const struct aws_reply *reply, int64_t ms, enum rc rc)
{
	struct log_field fields[] = {
		LOG_STR("service", str_from(op->service->signed_as)),
		LOG_STR("operation", str_from(op->name)),
		LOG_STR("as", str_from(aws_caller_hop(c))),
		LOG_STR("region", str_from(region)),
		LOG_STR("request_id", reply->request_id),
		LOG_STR("code", reply->error_type),
		LOG_NUM("attempts", reply->attempts),
		LOG_NUM("status", reply->status),
		LOG_NUM("duration_ms", ms),
	};

	if (log_wants(LOG_DEBUG))
		log_write(LOG_DEBUG, "aws", fields, ARRAY_LEN(fields), "%s: %s", op->permission, rc_text(rc));
}

static enum rc finish(struct aws_caller *c, const struct aws_op *op, enum rc rc, const struct aws_reply *reply,
                      const struct err *why, json_t **ret, struct err *e)
{
	CLEANUP(json_freep) json_t *unwanted = NULL;
	struct err                  unreadable = { 0 };

	if (rc)
		return judge_silence(c, op, rc, reply, why, e);
	if (reply->status < 200 || reply->status > 299)
		return judge(c, op, reply, e);
	if (!read_answer(op->service, reply->body, ret ? ret : &unwanted, &unreadable))
		return RC_OK;
	/* A write has happened, but its outcome has to be looked up. */
	return err_set(e, op->writes ? RC_TIMEOUT : RC_CORRUPT, "%s: an answer that cannot be read%s%s", op->permission,
	               op->is_secret ? "" : ": ", op->is_secret ? "" : unreadable.msg);
}

enum rc aws_do_call(struct aws_caller *c, const struct aws_call *call, struct arena *a, json_t **ret, struct err *e)
{
	const struct aws_op *op = call->op;
	const char          *region = call->region ? call->region : op->service->region;
	struct under_way     u = { aws_caller_settings(c), op };
	struct aws_request   req = { .shown = op->name,
		                     .slow_codes = aws_slow_codes(op->service),
		                     .total_ms = call->ms,
		                     .attempt_ms = call->attempt_ms,
		                     .attempts_max = call->attempts,
		                     .before = keep_pace,
		                     .on_throttle = note_throttle,
		                     .arg = &u };
	struct aws_reply     reply = { 0 };
	struct aws_client   *client;
	struct mono          began = mono_now();
	struct err           why = { 0 };
	enum rc              rc;

	if (!region)
		region = aws_caller_region(c);
	if (!(client = aws_caller_client(c, op->service, region)))
		return err_set(e, RC_INTERNAL, "%s: too many regions", op->permission);
	make_request(call, a, &req);
	rc = aws_send(client, &req, a, &reply, &why);
	rc = finish(c, op, rc, &reply, &why, ret, e);
	log_call(c, op, region, &reply, mono_now().ms - began.ms, rc);
	return rc;
}

enum rc aws_do_within(struct aws_caller *c, const struct aws_op *op, long ms, struct str body, struct arena *a,
                      json_t **ret, struct err *e)
{
	return aws_do_call(c, &(struct aws_call){ .op = op, .body = body, .ms = ms }, a, ret, e);
}

enum rc aws_do(struct aws_caller *c, const struct aws_op *op, struct str body, struct arena *a, json_t **ret,
               struct err *e)
{
	return aws_do_within(c, op, 0, body, a, ret, e);
}

/* --- pages --- */

/* The request for the page of this token; empty: the first. */
static struct aws_call page_call(const struct aws_paging *p, struct str token, struct arena *a)
{
	enum aws_protocol protocol = p->call.op->service->protocol;
	struct aws_call   call = p->call;
	const char       *name = p->asked_token ? p->asked_token : p->token;
	struct str       *to = protocol == AWS_REST_JSON ? &call.query : &call.body;

	if (!token.n)
		return call;
	if (protocol == AWS_REST_JSON || protocol == AWS_QUERY) {
		struct str pair = AWS_PAIRS(a, { name, token });

		*to = str_format(a, "%.*s%s%.*s", STR_ARG(*to), to->n ? "&" : "", STR_ARG(pair));
	} else {
		struct str last = str_skip(JSON_OF(a, member_str(name, token)), 1), first = to->n ? *to : STR("{}");

		first.n--; /* its bracket; the last one closes both */
		*to = str_format(a, "%.*s%s%.*s", STR_ARG(first), first.n > 1 ? "," : "", STR_ARG(last));
	}
	return call;
}

static enum rc take_items(const struct aws_paging *p, const json_t *page, struct err *e)
{
	const json_t *list = json_object_get(page, p->list ? p->list : "");
	enum rc       rc = p->list ? RC_OK : p->each(p->arg, page, e);

	for (size_t i = 0; !rc && i < json_array_size(list); i++)
		rc = p->each(p->arg, json_array_get(list, i), e);
	return rc;
}

static enum rc take_page(struct aws_caller *c, const struct aws_paging *p, struct arena *a, struct str *token,
                         struct arena *token_arena, struct err *e)
{
	CLEANUP(json_freep) json_t *page = NULL;
	struct aws_call             call = page_call(p, *token, a);
	const char                 *permission = call.op->permission;
	struct str                  next;
	enum rc                     rc = aws_do_call(c, &call, a, &page, e);

	if (rc || (rc = take_items(p, page, e)))
		return rc;
	if (!json_get_text(page, p->token, &next))
		return err_set(e, RC_CORRUPT, "%s: the token of the next page is not text", permission);
	if (next.n && str_eq(next, *token))
		return err_set(e, RC_CORRUPT, "%s: the next page is the same again", permission);
	arena_reset(token_arena);
	*token = str_dup(token_arena, next);
	return RC_OK;
}

enum rc aws_pages(struct aws_caller *c, const struct aws_paging *p, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 }, token_arena = { 0 };
	struct str                       token = STR("");
	int                              pages = 0;
	enum rc                          rc;

	do {
		arena_reset(&a);
		rc = take_page(c, p, &a, &token, &token_arena, e);
	} while (!rc && token.n && !(p->is_over && *p->is_over) && ++pages < AWS_PAGES_MAX);
	if (pages == AWS_PAGES_MAX)
		rc = err_set(e, RC_CORRUPT, "%s: more than %d pages", p->call.op->permission, AWS_PAGES_MAX);
	return rc;
}

bool aws_get_time(const json_t *object, const char *name, int64_t *ret_ms)
{
	const json_t *value = json_object_get(object, name);
	double        sec = json_is_number(value) ? json_number_value(value) : NAN;

	if (!(sec >= 0 && sec < TIME_MAX_SEC * 256.0))
		return false;
	*ret_ms = (int64_t)(sec * 1000 + 0.5);
	return true;
}

struct str aws_get_tag(const json_t *list, const char *name, const char *value, const char *wanted, struct arena *a)
{
	const json_t *tag;
	struct str    is, text;
	size_t        i;

	json_array_foreach(list, i, tag)
	{
		if (json_get_text(tag, name, &is) && str_eq(is, str_from(wanted)) &&
		    json_take_text(tag, value, a, &text))
			return text;
	}
	return STR("");
}
