/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_client.c - one request to a service, tried until there is an answer or no more time.
 *
 * Each attempt is judged:
 *   done     success, or an error that another attempt would only repeat; the caller gets it
 *   again    throttled, 5xx, no connection, no answer in time: after a wait, while attempts and time last
 *   at once  our clock is far off, or our credentials have expired: corrected first, each once per call
 *
 * Always true:
 *   1. All attempts of a call send the same body; date, credentials and so the signature are each attempt's own.
 *   2. No attempt and no wait goes beyond the call's end: an attempt's time-out is cut by what is left, and a wait that
 *      would not leave time for an attempt is not begun.                                          [wait_for_next()]
 *   3. A wait is random between 0 and base * 2^n, at most wait_max_ms: callers that failed together do not come back
 *      together.
 *   4. How far the clock is off is found once and kept for all calls of the client.               [skew_ms]
 *   5. is_uncertain is true once anything of a request has left and no answer below 500 came back for it, also when
 *      libcurl sent it again by itself. "Slow down" and "no connection" leave it as it was: nothing has happened.
 *                                                                                                 [try_once()]
 *
 * Connections are kept by fetch.c, one set for each thread. Since an attempt without an answer may have been carried
 * out, a caller that writes uses conditions or a client request token; nothing here knows which operations write.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "net/aws.h"
#include "net/aws_source.h"
#include "net/aws_xml.h"
#include "net/fetch.h"

enum {
	DEFAULT_CONNECT_MS = 1000,
	DEFAULT_ATTEMPT_MS = 5000,
	DEFAULT_TOTAL_MS = 15000,
	DEFAULT_ATTEMPTS = 5,
	DEFAULT_WAIT_BASE_MS = 25,
	DEFAULT_WAIT_MAX_MS = 1000,
	DOUBLINGS_MAX = 16,
	PATIENCE_ENDS_MS = 50,       /* an attempt with less time would mostly be cut off, with an unknown outcome */
	SKEW_MIN_MS = 4 * 60 * 1000, /* the services allow 5 minutes */
	TYPE_MAX = 128,
	REQUEST_ID_MAX = 128,
};

struct aws_client {
	struct aws_client_options o;    /* its texts are the caller's: not after aws_client_new() */
	char                     *url;  /* without a slash at its end, */
	char                     *home; /* and with its path */
	char                     *region, *service, *agent;
	_Atomic int64_t           skew_ms; /* how far the service's clock is ahead of ours */
};

enum verdict { DONE, AGAIN, AT_ONCE };

/* What a call knows from one attempt to the next. */
struct call {
	struct aws_client        *client;
	const struct aws_request *req;
	const char               *url;
	struct arena             *arena;
	struct mono               end;
	int                       attempts, corrections, throttles;
	bool                      is_uncertain, has_moved_clock, has_renewed;
	struct aws_credentials    used; /* by the last attempt */
	struct wall               signed_at;
	struct fetch_reply        reply;
};

enum remedy { SLOW_DOWN, MOVE_CLOCK, RENEW };

static const struct {
	enum remedy remedy;
	const char *types;
} remedies[] = {
	{ SLOW_DOWN, "ProvisionedThroughputExceededException ThrottlingException ThrottledException Throttling "
	             "RequestThrottled RequestThrottledException RequestLimitExceeded TooManyRequestsException "
	             "BandwidthLimitExceeded TransactionInProgressException PriorRequestNotComplete RequestTimeout "
	             "RequestTimeoutException SlowDown EC2ThrottledException KMSThrottling KmsThrottled Throttled "
	             "OverLimit" },
	{ MOVE_CLOCK, "RequestTimeTooSkewed RequestExpired RequestInTheFuture InvalidSignatureException "
	              "SignatureDoesNotMatch" },
	{ RENEW, "ExpiredTokenException ExpiredToken UnrecognizedClientException InvalidClientTokenId" },
};

/* --- a client --------------------------------------------------------------------------------------------------- */

static long or_default(long given, long fallback)
{
	return given > 0 ? given : fallback;
}

struct aws_client *aws_client_new(const struct aws_client_options *o)
{
	struct aws_client               *c = mem_new(struct aws_client);
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char                      *url = o->endpoint;

	c->o = *o;
	c->o.connect_timeout_ms = or_default(o->connect_timeout_ms, DEFAULT_CONNECT_MS);
	c->o.attempt_timeout_ms = or_default(o->attempt_timeout_ms, DEFAULT_ATTEMPT_MS);
	c->o.total_timeout_ms = or_default(o->total_timeout_ms, DEFAULT_TOTAL_MS);
	c->o.attempts_max = o->attempts_max > 0 ? o->attempts_max : DEFAULT_ATTEMPTS;
	c->o.wait_base_ms = or_default(o->wait_base_ms, DEFAULT_WAIT_BASE_MS);
	c->o.wait_max_ms = or_default(o->wait_max_ms, DEFAULT_WAIT_MAX_MS);
	c->region = mem_strdup(o->region);
	c->service = mem_strdup(o->signed_as ? o->signed_as : o->service);
	c->agent = o->user_agent ? mem_strdup(o->user_agent) : NULL;
	if (!url || !url[0])
		url = str_format(&a, "https://%s.%s.%s", o->service, o->region, aws_domain(o->region)).p;
	c->home = mem_strdup(
	        strchr(strstr(url, "://") ? strstr(url, "://") + 3 : url, '/') ? url : str_format(&a, "%s/", url).p);
	c->url = mem_strdup(c->home);
	while (c->url[0] && c->url[strlen(c->url) - 1] == '/')
		c->url[strlen(c->url) - 1] = '\0';
	return c;
}

void aws_client_free(struct aws_client *c)
{
	if (!c)
		return;
	free(c->region);
	free(c->service);
	free(c->agent);
	free(c->home);
	free(c->url);
	free(c);
}

/* --- one attempt ------------------------------------------------------------------------------------------------ */

static long time_left(const struct call *call)
{
	return (long)(call->end.ms - mono_now().ms);
}

static const char *header(struct arena *a, const char *name, struct str value)
{
	return str_format(a, "%s: %.*s", name, STR_ARG(value)).p;
}

/* What fetch() sends as the host of this URL: without the scheme's usual port. Path and query are what follows, as they
 * are. */
static struct str url_host(const char *url, struct str *ret_path, struct str *ret_query)
{
	struct str  usual = str_starts_with(str_from(url), STR("https:")) ? STR(":443") : STR(":80");
	const char *scheme = strstr(url, "://"), *from = scheme ? scheme + 3 : url;
	struct str  host = str_of(from, strcspn(from, "/"));

	*ret_query = str_from(from + host.n);
	*ret_path = str_cut(ret_query, '?');
	if (host.n > usual.n && str_eq(str_skip(host, host.n - usual.n), usual))
		host.n -= usual.n;
	return host;
}

/* Exactly these headers are signed; the agent is not: proxies may change it. */
static void sign(const struct call *call, struct fetch_request *req)
{
	const struct aws_request *r = call->req;
	struct arena             *a = call->arena;
	struct str                path, query, host = url_host(req->url, &path, &query);
	struct sigv4_header       headers[3] = { { STR("Host"), host } };
	struct sigv4_request      text = { .method = str_from(req->method),
		                           .path = path,
		                           .query = query,
		                           .headers = headers,
		                           .header_count = 1,
		                           .body = req->body,
		                           .region = str_from(call->client->region),
		                           .service = str_from(call->client->service) };
	struct sigv4_signature    signature;
	size_t                    n = 0;

	if (r->type.n)
		headers[text.header_count++] = (struct sigv4_header){ STR("Content-Type"), r->type };
	if (r->target.n)
		headers[text.header_count++] = (struct sigv4_header){ STR("X-Amz-Target"), r->target };
	sigv4_sign(&text, &call->used, call->signed_at, a, &signature);
	for (; n < text.header_count; n++)
		req->headers[n] = header(a, headers[n].name.p, headers[n].value);
	req->headers[n++] = header(a, "X-Amz-Date", signature.amz_date);
	req->headers[n++] = header(a, "Authorization", signature.authorization);
	if (call->used.session_token.n)
		req->headers[n++] = header(a, "X-Amz-Security-Token", call->used.session_token);
	if (call->client->agent)
		req->headers[n] = header(a, "User-Agent", str_from(call->client->agent));
}

static long limit_to(long wanted, long left)
{
	return wanted < left ? wanted : left;
}

static enum rc attempt(struct call *call, unsigned *sends, struct err *e)
{
	struct aws_client               *c = call->client;
	const struct aws_client_options *o = &c->o;
	const struct aws_request        *r = call->req;
	struct fetch_request             req = { .method = r->method ? r->method : "POST",
		                                 .url = call->url,
		                                 .body = r->body,
		                                 .max_bytes = AWS_REPLY_MAX,
		                                 .sends = sends };
	enum rc                          rc;
	long                             left;

	if ((rc = aws_identity_get(o->identity, call->arena, &call->used, e)))
		return rc;
	if (r->before && (rc = r->before(r->arg, time_left(call), e)))
		return rc;
	left = time_left(call);
	if (left <= 0)
		return err_set(e, RC_TIMEOUT, "no time left after credentials were found");
	req.total_timeout_ms = limit_to(or_default(r->attempt_ms, o->attempt_timeout_ms), left);
	req.connect_timeout_ms = limit_to(o->connect_timeout_ms, left);
	call->signed_at.ms = clock_now(o->clock).ms + atomic_load(&c->skew_ms);
	sign(call, &req);
	return fetch(&req, call->arena, &call->reply, e);
}

/* --- the answer ------------------------------------------------------------------------------------------------- */

/* "com.amazonaws.dynamodb.v20120810#Type" or "Type:http://..." as "Type". */
static struct str bare_type(struct str given)
{
	const char *hash = given.n ? memchr(given.p, '#', given.n) : NULL;

	if (hash)
		given = str_of(hash + 1, given.n - (size_t)(hash + 1 - given.p));
	given = str_trim(str_cut(&given, ':'));
	return given.n <= TYPE_MAX ? given : STR("");
}

/* The first of these members that is a text. */
static struct str first_text(const json_t *object, const char *const *names, size_t count)
{
	struct str text = STR("");

	for (size_t i = 0; i < count && !text.n; i++)
		if (!json_get_text(object, names[i], &text))
			text = STR("");
	return text;
}

/* {"__type": code, "message": ...}, of REST services {"code": ...}; or <ErrorResponse><Error><Code>, or just
 * <Error><Code>. */
void aws_read_error(const struct fetch_reply *reply, struct arena *a, struct str *ret_code, struct str *ret_message)
{
	static const char *const codes[] = { "__type", "code", "Code" }, *const messages[] = { "message", "Message" };
	CLEANUP(json_freep) json_t *body = NULL;
	bool                        is_xml = reply->body.n && reply->body.p[0] == '<';
	enum rc       rc = is_xml ? aws_xml_parse(reply->body, &body, NULL) : json_parse(reply->body, &body, NULL);
	const json_t *error = is_xml && json_object_get(body, "Error") ? json_object_get(body, "Error") : body;
	struct str    code = STR(""), message = STR("");

	if (!rc && json_is_object(error)) {
		code = bare_type(first_text(error, codes, ARRAY_LEN(codes)));
		message = first_text(error, messages, ARRAY_LEN(messages));
	}
	if (!code.n)
		code = bare_type(fetch_header(reply, "X-Amzn-ErrorType"));
	*ret_code = code.n ? str_dup(a, code) : STR("UnknownError");
	/* The signature's errors go on with the request they expected, its token included. */
	*ret_message = str_dup(a, str_cut(&message, '\n'));
}

static struct str request_id(const struct fetch_reply *reply)
{
	struct str id = fetch_header(reply, "x-amzn-RequestId");

	if (!id.n)
		id = fetch_header(reply, "x-amz-request-id");
	return id.n <= REQUEST_ID_MAX ? id : STR("");
}

static void read_reply(const struct call *call, struct aws_reply *ret)
{
	*ret = (struct aws_reply){ .status = call->reply.status,
		                   .body = call->reply.body,
		                   .error_type = STR(""),
		                   .error_message = STR(""),
		                   .request_id = request_id(&call->reply) };
	if (ret->status < 200 || ret->status > 299)
		aws_read_error(&call->reply, call->arena, &ret->error_type, &ret->error_message);
}

static bool move_clock(struct call *call)
{
	int64_t sec, off;

	if (call->has_moved_clock || !fetch_date(fetch_header(&call->reply, "Date"), &sec))
		return false;
	off = sec * 1000 - call->signed_at.ms;
	if (off > -SKEW_MIN_MS && off < SKEW_MIN_MS)
		return false;
	atomic_store(&call->client->skew_ms, sec * 1000 - clock_now(call->client->o.clock).ms);
	call->has_moved_clock = true;
	return true;
}

static bool is_slow_code(const struct aws_request *r, struct str code)
{
	for (const char *const *at = r->slow_codes; at && *at; at++)
		if (str_eq(code, str_from(*at)))
			return true;
	return false;
}

static enum verdict slow_down(struct call *call)
{
	call->throttles++;
	if (call->req->on_throttle)
		call->req->on_throttle(call->req->arg);
	return AGAIN;
}

static enum verdict judge(struct call *call, const struct aws_reply *reply)
{
	if (reply->status == 429 || is_slow_code(call->req, reply->error_type) ||
	    (call->req->is_slow && call->req->is_slow(reply)))
		return slow_down(call);
	for (size_t i = 0; reply->error_type.n && i < ARRAY_LEN(remedies); i++) {
		if (!str_is_word_of(reply->error_type, remedies[i].types))
			continue;
		switch (remedies[i].remedy) {
		case SLOW_DOWN: return slow_down(call);
		case MOVE_CLOCK: return move_clock(call) ? AT_ONCE : DONE;
		case RENEW:
			if (call->has_renewed)
				return DONE;
			aws_identity_refuse(call->client->o.identity, &call->used);
			call->has_renewed = true;
			return AT_ONCE;
		}
	}
	if (reply->status < 500)
		return DONE;
	call->is_uncertain = true;
	return AGAIN;
}

/* --- a call ----------------------------------------------------------------------------------------------------- */

/* A patient request waits at most half of the time that is left, so that there is an attempt near the end. */
static long choose_wait(const struct call *call)
{
	const struct aws_client_options *o = &call->client->o;
	int  doublings = call->attempts - 1 < DOUBLINGS_MAX ? call->attempts - 1 : DOUBLINGS_MAX;
	long most = limit_to(o->wait_base_ms << doublings, o->wait_max_ms);

	if (call->req->is_patient)
		most = limit_to(most, time_left(call) / 2);
	return most > 0 ? (long)(id_fast_random() % ((uint64_t)most + 1)) : 0;
}

/* False when there is no next attempt. */
static bool wait_for_next(const struct call *call)
{
	const struct aws_client_options *o = &call->client->o;
	int                              most = call->req->attempts_max > 0 ? call->req->attempts_max : o->attempts_max;
	int                              free = call->corrections + (call->req->is_patient ? call->throttles : 0);
	long                             ms = choose_wait(call);

	if (call->attempts - free >= most || ms >= time_left(call) || !fetch_may_go_on())
		return false;
	if (call->req->is_patient && time_left(call) < PATIENCE_ENDS_MS)
		return false;
	if (o->wait)
		o->wait(o->wait_arg, ms);
	else
		mono_sleep(ms);
	return time_left(call) > 0;
}

/* One attempt and what to do after it. rc and *ret say how it ended. */
static enum verdict try_once(struct call *call, struct aws_reply *ret, enum rc *ret_rc, struct err *why)
{
	unsigned     sends = 0;
	enum verdict verdict;

	call->attempts++;
	err_clear(why);
	*ret_rc = attempt(call, &sends, why);
	if (sends > (*ret_rc ? 0 : 1))
		call->is_uncertain = true;
	if (*ret_rc)
		return *ret_rc == RC_UNAVAILABLE || *ret_rc == RC_TIMEOUT ? AGAIN : DONE;
	read_reply(call, ret);
	verdict = judge(call, ret);
	if (verdict == AGAIN)
		*ret_rc = err_set(why, RC_UNAVAILABLE, "status %d, %.*s", ret->status, STR_ARG(ret->error_type));
	return verdict;
}

static const char *make_url(const struct aws_client *c, const struct aws_request *r, struct arena *a)
{
	if (!r->path.n)
		return c->home;
	return str_format(a, "%s%.*s%s%.*s", c->url, STR_ARG(r->path), r->query.n ? "?" : "", STR_ARG(r->query)).p;
}

/* Until there is an answer, or no more time or attempts. */
static enum rc try_all(struct call *call, struct aws_reply *ret, struct err *why)
{
	enum verdict verdict;
	enum rc      rc;

	for (;;) {
		verdict = try_once(call, ret, &rc, why);
		if (verdict == DONE || (verdict == AGAIN && !wait_for_next(call)))
			break;
		if (verdict == AT_ONCE)
			call->corrections++;
	}
	if (rc == RC_UNAVAILABLE && call->throttles == call->attempts - call->corrections)
		rc = RC_LIMITED;
	return rc;
}

enum rc aws_send(struct aws_client *c, const struct aws_request *req, struct arena *a, struct aws_reply *ret,
                 struct err *e)
{
	struct call call = { .client = c,
		             .req = req,
		             .url = make_url(c, req, a),
		             .arena = a,
		             .end = { mono_now().ms + or_default(req->total_ms, c->o.total_timeout_ms) } };
	struct err  why = { 0 };
	enum rc     rc;

	*ret = (struct aws_reply){ 0 };
	rc = try_all(&call, ret, &why);
	ret->attempts = call.attempts;
	ret->throttles = call.throttles;
	ret->is_uncertain = call.is_uncertain;
	if (rc)
		return err_set_code(e, rc, why.code, "%s in %s, after %d attempt%s: %s", req->shown, c->region,
		                    call.attempts, call.attempts == 1 ? "" : "s", why.msg);
	return RC_OK;
}

enum rc aws_call(struct aws_client *c, const char *target, struct str body, struct arena *a, struct aws_reply *ret,
                 struct err *e)
{
	struct aws_request req = { .type = STR("application/x-amz-json-1.0"),
		                   .target = str_from(target),
		                   .body = body.p ? body : STR(""),
		                   .shown = target };
	struct aws_reply   reply;
	enum rc            rc = aws_send(c, &req, a, &reply, e);

	if (rc == RC_LIMITED) {
		if (e)
			e->rc = RC_UNAVAILABLE;
		return RC_UNAVAILABLE;
	}
	if (!rc)
		*ret = reply;
	return rc;
}
