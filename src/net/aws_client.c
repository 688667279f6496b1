/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_client.c - one operation of a JSON service, tried until there is an answer or no more time.
 *
 * Each attempt is judged:
 *   done     success, or an error that another attempt would only repeat; the caller gets it
 *   again    throttled, 5xx, no connection, no answer in time: after a wait, while attempts and time last
 *   at once  our clock is far off, or our credentials have ended: corrected first, each once in a call
 *
 * Always true:
 *   1. All attempts of a call send the same body; date, credentials and so the signature are each attempt's own.
 *   2. No attempt and no wait goes beyond the call's end: an attempt's time-out is cut by what is left, and a wait that
 *      would not leave time for an attempt is not begun.                                          [wait_for_next()]
 *   3. A wait is random between 0 and base * 2^n, at most wait_max_ms: callers that failed together do not come back
 *      together.
 *   4. How far the clock is off is found once and kept for all calls of the client.               [skew_ms]
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
#include "net/fetch.h"

enum {
	DEFAULT_CONNECT_MS = 1000,
	DEFAULT_ATTEMPT_MS = 5000,
	DEFAULT_TOTAL_MS = 15000,
	DEFAULT_ATTEMPTS = 5,
	DEFAULT_WAIT_BASE_MS = 25,
	DEFAULT_WAIT_MAX_MS = 1000,
	DOUBLINGS_MAX = 16,
	SKEW_MIN_MS = 4 * 60 * 1000, /* the services allow 5 minutes */
	TYPE_MAX = 128,
};

struct aws_client {
	struct aws_client_options o; /* its texts are ours */
	char                     *url;
	struct str                host, path; /* of url */
	_Atomic int64_t           skew_ms;    /* what the service's clock is ahead of ours */
};

enum verdict { DONE, AGAIN, AT_ONCE };

/* What a call knows from one attempt to the next. */
struct call {
	struct aws_client     *client;
	const char            *target;
	struct str             body;
	struct arena          *arena;
	struct mono            end;
	int                    attempts, corrections;
	bool                   has_moved_clock, has_renewed;
	struct aws_credentials used; /* by the last attempt */
	struct wall            signed_at;
	struct fetch_reply     reply;
};

enum remedy { SLOW_DOWN, MOVE_CLOCK, RENEW };

/* clang-format off */
static const struct error_type {
	struct str  name;
	enum remedy remedy;
} known_types[] = {
	{ STR_INIT("ProvisionedThroughputExceededException"), SLOW_DOWN  },
	{ STR_INIT("ThrottlingException"),                    SLOW_DOWN  },
	{ STR_INIT("ThrottledException"),                     SLOW_DOWN  },
	{ STR_INIT("Throttling"),                             SLOW_DOWN  },
	{ STR_INIT("RequestThrottled"),                       SLOW_DOWN  },
	{ STR_INIT("RequestThrottledException"),              SLOW_DOWN  },
	{ STR_INIT("RequestLimitExceeded"),                   SLOW_DOWN  },
	{ STR_INIT("TooManyRequestsException"),               SLOW_DOWN  },
	{ STR_INIT("BandwidthLimitExceeded"),                 SLOW_DOWN  },
	{ STR_INIT("TransactionInProgressException"),         SLOW_DOWN  },
	{ STR_INIT("PriorRequestNotComplete"),                SLOW_DOWN  },
	{ STR_INIT("RequestTimeout"),                         SLOW_DOWN  },
	{ STR_INIT("RequestTimeoutException"),                SLOW_DOWN  },
	{ STR_INIT("RequestTimeTooSkewed"),                   MOVE_CLOCK },
	{ STR_INIT("RequestExpired"),                         MOVE_CLOCK },
	{ STR_INIT("RequestInTheFuture"),                     MOVE_CLOCK },
	{ STR_INIT("InvalidSignatureException"),              MOVE_CLOCK },
	{ STR_INIT("SignatureDoesNotMatch"),                  MOVE_CLOCK },
	{ STR_INIT("ExpiredTokenException"),                  RENEW      },
	{ STR_INIT("ExpiredToken"),                           RENEW      },
	{ STR_INIT("UnrecognizedClientException"),            RENEW      },
	{ STR_INIT("InvalidClientTokenId"),                   RENEW      },
};
/* clang-format on */

/* --- a client --------------------------------------------------------------------------------------------------- */

static long or_default(long given, long fallback)
{
	return given > 0 ? given : fallback;
}

static void set_defaults(struct aws_client_options *o)
{
	o->connect_timeout_ms = or_default(o->connect_timeout_ms, DEFAULT_CONNECT_MS);
	o->attempt_timeout_ms = or_default(o->attempt_timeout_ms, DEFAULT_ATTEMPT_MS);
	o->total_timeout_ms = or_default(o->total_timeout_ms, DEFAULT_TOTAL_MS);
	o->attempts_max = o->attempts_max > 0 ? o->attempts_max : DEFAULT_ATTEMPTS;
	o->wait_base_ms = or_default(o->wait_base_ms, DEFAULT_WAIT_BASE_MS);
	o->wait_max_ms = or_default(o->wait_max_ms, DEFAULT_WAIT_MAX_MS);
}

/* What fetch() will send as the host: without a port that goes without saying. */
static struct str sent_host(struct str url, struct str authority)
{
	struct str usual = str_starts_with(url, STR("https:")) ? STR(":443") : STR(":80");

	if (authority.n > usual.n && str_eq(str_of(authority.p + authority.n - usual.n, usual.n), usual))
		authority.n -= usual.n;
	return authority;
}

struct str aws_url_host(const char *url, struct str *ret_path)
{
	const char *from = strstr(url, "://");
	size_t      n;

	from = from ? from + 3 : url;
	n = strcspn(from, "/");
	*ret_path = str_from(from + n);
	return sent_host(str_from(url), str_of(from, n));
}

struct aws_client *aws_client_new(const struct aws_client_options *o)
{
	struct aws_client *c = mem_new(struct aws_client);
	struct arena       a = { 0 };
	const char        *url = o->endpoint;

	c->o = *o;
	set_defaults(&c->o);
	c->o.region = mem_strdup(o->region);
	c->o.service = mem_strdup(o->service);
	c->o.json_version = mem_strdup(o->json_version);
	if (!url || !url[0])
		url = str_format(&a, "https://%s.%s.%s", o->service, o->region, aws_domain(o->region)).p;
	if (!strchr(strstr(url, "://") ? strstr(url, "://") + 3 : url, '/'))
		url = str_format(&a, "%s/", url).p;
	c->url = mem_strdup(url);
	c->host = aws_url_host(c->url, &c->path);
	arena_fini(&a);
	return c;
}

static void free_text(const char *text)
{
	free((char *)(uintptr_t)text);
}

void aws_client_free(struct aws_client *c)
{
	if (!c)
		return;
	free_text(c->o.region);
	free_text(c->o.service);
	free_text(c->o.json_version);
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

/* Exactly what is signed is sent. */
static void sign(struct call *call, struct str type, struct fetch_request *req)
{
	struct aws_client     *c = call->client;
	struct arena          *a = call->arena;
	struct str             target = str_from(call->target);
	struct sigv4_header    headers[] = { { STR("Host"), c->host },
		                             { STR("Content-Type"), type },
		                             { STR("X-Amz-Target"), target } };
	struct sigv4_request   text = { .method = STR("POST"),
		                        .path = c->path,
		                        .headers = headers,
		                        .header_count = ARRAY_LEN(headers),
		                        .body = call->body,
		                        .region = str_from(c->o.region),
		                        .service = str_from(c->o.service) };
	struct sigv4_signature signature;
	size_t                 n = 0;

	call->signed_at.ms = clock_now(c->o.clock).ms + atomic_load(&c->skew_ms);
	sigv4_sign(&text, &call->used, call->signed_at, a, &signature);
	for (; n < ARRAY_LEN(headers); n++)
		req->headers[n] = header(a, headers[n].name.p, headers[n].value);
	req->headers[n++] = header(a, "X-Amz-Date", signature.amz_date);
	req->headers[n++] = header(a, "Authorization", signature.authorization);
	if (call->used.session_token.n)
		req->headers[n++] = header(a, "X-Amz-Security-Token", call->used.session_token);
}

static enum rc attempt(struct call *call, struct err *e)
{
	const struct aws_client_options *o = &call->client->o;
	struct str                       type = str_format(call->arena, "application/x-amz-json-%s", o->json_version);
	struct fetch_request             req = { .method = "POST",
		                                 .url = call->client->url,
		                                 .body = call->body.p ? call->body : STR(""),
		                                 .max_bytes = AWS_REPLY_MAX };
	enum rc                          rc;
	long                             left;

	if ((rc = aws_identity_get(o->identity, call->arena, &call->used, e)))
		return rc;
	left = time_left(call);
	if (left <= 0)
		return err_set(e, RC_TIMEOUT, "no time left after credentials were found");
	req.total_timeout_ms = o->attempt_timeout_ms < left ? o->attempt_timeout_ms : left;
	req.connect_timeout_ms = o->connect_timeout_ms < left ? o->connect_timeout_ms : left;
	sign(call, type, &req);
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

/* The signature's errors go on with the request they expected, its token included. */
static struct str first_line(struct str text)
{
	return str_cut(&text, '\n');
}

static void read_error(const struct fetch_reply *reply, struct arena *a, struct aws_reply *ret)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct str                  type = STR(""), message = STR("");

	if (json_parse(reply->body, &body, NULL) == RC_OK && json_is_object(body)) {
		if (!json_get_text(body, "__type", &type))
			type = STR("");
		if (!json_get_text(body, "message", &message) || message.n == 0)
			if (!json_get_text(body, "Message", &message))
				message = STR("");
	}
	type = bare_type(type);
	if (type.n == 0)
		type = bare_type(fetch_header(reply, "X-Amzn-ErrorType"));
	ret->error_type = type.n ? str_dup(a, type) : STR("UnknownError");
	ret->error_message = str_dup(a, first_line(message));
}

static void read_reply(const struct call *call, struct aws_reply *ret)
{
	*ret = (struct aws_reply){ .status = call->reply.status,
		                   .body = call->reply.body,
		                   .error_type = STR(""),
		                   .error_message = STR(""),
		                   .attempts = call->attempts };
	if (ret->status < 200 || ret->status > 299)
		read_error(&call->reply, call->arena, ret);
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

static bool renew(struct call *call)
{
	if (call->has_renewed)
		return false;
	aws_identity_refuse(call->client->o.identity, &call->used);
	call->has_renewed = true;
	return true;
}

static enum verdict judge(struct call *call, const struct aws_reply *reply)
{
	if (reply->status >= 500 || reply->status == 429)
		return AGAIN;
	for (size_t i = 0; i < ARRAY_LEN(known_types); i++) {
		if (!str_eq(reply->error_type, known_types[i].name))
			continue;
		switch (known_types[i].remedy) {
		case SLOW_DOWN: return AGAIN;
		case MOVE_CLOCK: return move_clock(call) ? AT_ONCE : DONE;
		case RENEW: return renew(call) ? AT_ONCE : DONE;
		}
	}
	return DONE;
}

/* --- a call ----------------------------------------------------------------------------------------------------- */

static void sleep_ms(long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) != 0)
		;
}

static long choose_wait(const struct aws_client_options *o, int attempts)
{
	int  doublings = attempts - 1 < DOUBLINGS_MAX ? attempts - 1 : DOUBLINGS_MAX;
	long most = o->wait_base_ms << doublings;

	if (most > o->wait_max_ms)
		most = o->wait_max_ms;
	return (long)(id_fast_random() % ((uint64_t)most + 1));
}

/* False when there is no next attempt. */
static bool wait_for_next(const struct call *call)
{
	const struct aws_client_options *o = &call->client->o;
	long                             ms = choose_wait(o, call->attempts);

	if (call->attempts - call->corrections >= o->attempts_max || ms >= time_left(call))
		return false;
	if (o->wait)
		o->wait(o->wait_arg, ms);
	else if (ms > 0)
		sleep_ms(ms);
	return time_left(call) > 0;
}

/* One attempt and what to do after it. rc and *ret say how it ended. */
static enum verdict try_once(struct call *call, struct aws_reply *ret, enum rc *ret_rc, struct err *why)
{
	enum verdict verdict;

	call->attempts++;
	err_clear(why);
	*ret_rc = attempt(call, why);
	if (*ret_rc)
		return *ret_rc == RC_UNAVAILABLE || *ret_rc == RC_TIMEOUT ? AGAIN : DONE;
	read_reply(call, ret);
	verdict = judge(call, ret);
	if (verdict == AGAIN)
		*ret_rc = err_set(why, RC_UNAVAILABLE, "status %d, %.*s", ret->status, STR_ARG(ret->error_type));
	return verdict;
}

enum rc aws_call(struct aws_client *c, const char *target, struct str body, struct arena *a, struct aws_reply *ret,
                 struct err *e)
{
	struct call      call = { .client = c,
		                  .target = target,
		                  .body = body,
		                  .arena = a,
		                  .end = { mono_now().ms + c->o.total_timeout_ms } };
	struct aws_reply reply = { 0 };
	struct err       why = { 0 };
	enum verdict     verdict;
	enum rc          rc;

	for (;;) {
		verdict = try_once(&call, &reply, &rc, &why);
		if (verdict == DONE || (verdict == AGAIN && !wait_for_next(&call)))
			break;
		if (verdict == AT_ONCE)
			call.corrections++;
	}
	if (rc)
		return err_set(e, rc, "%s in %s, after %d attempt%s: %s", target, c->o.region, call.attempts,
		               call.attempts == 1 ? "" : "s", why.msg);
	*ret = reply;
	return RC_OK;
}
