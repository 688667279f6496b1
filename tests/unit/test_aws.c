/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: what is sent, what is tried again, and how long. Where credentials come from is in test_aws_identity.c. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "fake_server.h"
#include "net/aws.h"
#include "net/fetch.h"
#include "truth/test_clock.h"

#define TYPE(name) "{\"__type\":\"com.amazonaws.dynamodb.v20120810#" name "\",\"message\":\"why\"}"

enum { NOW = 1440938160, ANSWERS_MAX = 16, WAITS_MAX = 64, BODY_MAX = 4096, THREADS = 8, CALLS = 25 };

static const char target[] = "DynamoDB_20120810.GetItem";

/* The server answers with these in turn, the last one again and again. It keeps what it got. */
struct fixture {
	struct fake_server  *server;
	struct fake_reply    answers[ANSWERS_MAX];
	size_t               answer_count;
	struct fake_reply    credentials; /* for requests to /credentials */
	char                 first_body[BODY_MAX], last_headers[BODY_MAX];
	bool                 are_bodies_equal;
	size_t               calls;
	long                 waits[WAITS_MAX];
	size_t               wait_count;
	struct clock         clock;
	struct aws_identity *identity;
	struct aws_client   *client;
	struct arena         arena;
	struct err           err;
	struct aws_reply     reply;
	char                 endpoint[64];
};

static struct fake_reply answer(const struct fake_request *req, size_t number, void *arg)
{
	struct fixture *f = arg;
	size_t          at = f->calls < f->answer_count ? f->calls : f->answer_count - 1;

	(void)number;
	if (strcmp(req->target, "/credentials") == 0)
		return f->credentials;
	if (f->calls == 0)
		(void)snprintf(f->first_body, sizeof(f->first_body), "%s", req->body);
	f->are_bodies_equal = f->are_bodies_equal && strcmp(f->first_body, req->body) == 0;
	(void)snprintf(f->last_headers, sizeof(f->last_headers), "%s", req->headers);
	f->calls++;
	return f->answers[at];
}

static const char *static_env(const char *name)
{
	if (strcmp(name, "AWS_ACCESS_KEY_ID") == 0)
		return "AKIDEXAMPLE";
	if (strcmp(name, "AWS_SECRET_ACCESS_KEY") == 0)
		return "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
	return strcmp(name, "AWS_SESSION_TOKEN") == 0 ? "session-token" : NULL;
}

static const char *container_uri; /* of the running test */

static const char *container_env(const char *name)
{
	return strcmp(name, "AWS_CONTAINER_CREDENTIALS_FULL_URI") == 0 ? container_uri : NULL;
}

static void note_wait(void *arg, long ms)
{
	struct fixture *f = arg;

	CHECK(f->wait_count < WAITS_MAX);
	f->waits[f->wait_count++] = ms;
}

static void new_client(struct fixture *f, struct aws_client_options o)
{
	aws_client_free(f->client);
	o.region = "us-east-1";
	o.service = "dynamodb";
	o.identity = f->identity;
	o.clock = &f->clock;
	o.endpoint = o.endpoint ? o.endpoint : f->endpoint;
	f->client = aws_client_new(&o);
}

static void set_up_with(struct fixture *f, const char *(*env)(const char *))
{
	struct aws_identity_options o = { .env = env, .clock = &f->clock };

	*f = (struct fixture){ .clock = clock_test((int64_t)NOW * 1000), .are_bodies_equal = true };
	f->server = fake_server_open(answer, f);
	(void)snprintf(f->endpoint, sizeof(f->endpoint), "http://127.0.0.1:%d", fake_server_port(f->server));
	f->identity = aws_identity_new(&o);
	new_client(f, (struct aws_client_options){ .wait = note_wait, .wait_arg = f, .total_timeout_ms = 20000 });
}

static void set_up(struct fixture *f)
{
	set_up_with(f, static_env);
}

static void tear_down(struct fixture *f)
{
	aws_client_free(f->client);
	aws_identity_free(f->identity);
	fake_server_close(f->server);
	arena_fini(&f->arena);
}

/* Begin again with other answers, up to the first without a status, raw text or silence. */
static void script(struct fixture *f, const struct fake_reply *answers, size_t count)
{
	f->answer_count = f->calls = f->wait_count = 0;
	while (f->answer_count < count && (answers[f->answer_count].status || answers[f->answer_count].raw ||
	                                   answers[f->answer_count].is_silent)) {
		f->answers[f->answer_count] = answers[f->answer_count];
		f->answer_count++;
	}
}

static enum rc call(struct fixture *f)
{
	err_clear(&f->err);
	return aws_call(f->client, target, STR("{\"Key\":\"\u00e4\"}"), &f->arena, &f->reply, &f->err);
}

static bool has_header(const struct fixture *f, const char *line)
{
	struct fake_request req = { .headers = f->last_headers };

	return fake_request_has(&req, line);
}

TEST(a_call_is_a_signed_post)
{
	struct fixture         f;
	struct sigv4_header    headers[3];
	struct aws_credentials credentials = { STR("AKIDEXAMPLE"), STR("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
		                               STR("session-token") };
	struct sigv4_request   req = { .method = STR("POST"),
		                       .path = STR("/"),
		                       .headers = headers,
		                       .header_count = 3,
		                       .body = STR("{\"Key\":\"\u00e4\"}"),
		                       .region = STR("us-east-1"),
		                       .service = STR("dynamodb") };
	struct sigv4_signature signature;

	set_up(&f);
	script(&f, &(struct fake_reply){ .status = 200, .body = "{\"Item\":{}}" }, 1);
	CHECK(call(&f) == RC_OK);
	CHECK(f.reply.status == 200 && f.reply.attempts == 1 && f.reply.error_type.n == 0);
	CHECK(str_eq(f.reply.body, STR("{\"Item\":{}}")));
	CHECK(strcmp(f.first_body, "{\"Key\":\"\u00e4\"}") == 0);
	CHECK(has_header(&f, "Content-Type: application/x-amz-json-1.0"));
	CHECK(has_header(&f, "X-Amz-Target: DynamoDB_20120810.GetItem"));
	CHECK(has_header(&f, "X-Amz-Date: 20150830T123600Z"));
	CHECK(has_header(&f, "X-Amz-Security-Token: session-token"));
	headers[0] = (struct sigv4_header){ STR("host"), str_from(f.endpoint + strlen("http://")) };
	headers[1] = (struct sigv4_header){ STR("content-type"), STR("application/x-amz-json-1.0") };
	headers[2] = (struct sigv4_header){ STR("x-amz-target"), str_from(target) };
	sigv4_sign(&req, &credentials, f.clock.wall(&f.clock), &f.arena, &signature);
	CHECK(has_header(&f, str_format(&f.arena, "Authorization: %.*s", STR_ARG(signature.authorization)).p));
	tear_down(&f);
}

/* clang-format off */
static const struct {
	const char       *label;
	struct fake_reply answers[3];
	enum rc           rc;
	int               status, attempts;
	const char       *type;
} outcomes[] = {
	{ "throttled by DynamoDB, then served",
	  { { 400, .body = TYPE("ProvisionedThroughputExceededException") }, { 200, .body = "{}" } }, RC_OK, 200, 2, "" },
	{ "throttled by the account's limit", { { 400, .body = TYPE("ThrottlingException") }, { 200, .body = "{}" } },
	  RC_OK, 200, 2, "" },
	{ "too many requests", { { 400, .body = TYPE("RequestLimitExceeded") }, { 200, .body = "{}" } }, RC_OK, 200, 2, "" },
	{ "the same transaction is under way",
	  { { 400, .body = TYPE("TransactionInProgressException") }, { 200, .body = "{}" } },
	  RC_OK, 200, 2, "" },
	{ "status 429 of something between", { { 429, .body = "slow down" }, { 200, .body = "{}" } }, RC_OK, 200, 2, "" },
	{ "an error of the service", { { 500, .body = TYPE("InternalServerError") }, { 503 }, { 200, .body = "{}" } },
	  RC_OK, 200, 3, "" },
	{ "a connection cut in the answer",
	  { { .raw = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{" }, { 200, .body = "{}" } }, RC_OK, 200, 2, "" },
	{ "a condition that failed", { { 400, .body = TYPE("ConditionalCheckFailedException") } },
	  RC_OK, 400, 1, "ConditionalCheckFailedException" },
	{ "a transaction that was cancelled", { { 400, .body = TYPE("TransactionCanceledException") } },
	  RC_OK, 400, 1, "TransactionCanceledException" },
	{ "a request that makes no sense", { { 400, .body = "{\"__type\":\"ValidationException\"}" } },
	  RC_OK, 400, 1, "ValidationException" },
	{ "a type in the header",
	  { { 403, "X-Amzn-ErrorType: AccessDeniedException:http://x/\r\n", "{\"Message\":\"why\"}" } },
	  RC_OK, 403, 1, "AccessDeniedException" },
	{ "an answer of something else", { { 404, .body = "<html>" } }, RC_OK, 404, 1, "UnknownError" },
	{ "a type that is no text", { { 400, .body = "{\"__type\":7}" } }, RC_OK, 400, 1, "UnknownError" },
	{ "5xx to the last", { { 503, .body = "{}" } }, RC_UNAVAILABLE, 0, 5, "" },
	{ "throttled to the last", { { 400, .body = TYPE("ThrottlingException") } }, RC_UNAVAILABLE, 0, 5, "" },
};
/* clang-format on */

TEST(each_answer_has_its_consequence)
{
	struct fixture f;

	set_up(&f);
	for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
		CASE(outcomes[i].label);
		script(&f, outcomes[i].answers, ARRAY_LEN(outcomes[i].answers));
		f.reply = (struct aws_reply){ 0 };
		CHECK(call(&f) == outcomes[i].rc);
		CHECK(f.reply.status == outcomes[i].status);
		CHECK(str_eq(f.reply.error_type, str_from(outcomes[i].type)));
		CHECK(f.calls == (size_t)outcomes[i].attempts);
		CHECK(f.wait_count == f.calls - 1);
		CHECK(f.are_bodies_equal);
		CHECK(outcomes[i].rc || f.reply.attempts == outcomes[i].attempts);
	}
	tear_down(&f);
}

TEST(a_failure_names_operation_attempts_and_cause)
{
	struct fixture f;

	set_up(&f);
	script(&f, &(struct fake_reply){ .status = 400, .body = TYPE("ThrottlingException") }, 1);
	CHECK(call(&f) == RC_UNAVAILABLE);
	CHECK(strcmp(f.err.msg, "DynamoDB_20120810.GetItem in us-east-1, after 5 attempts: status 400, "
	                        "ThrottlingException") == 0);
	tear_down(&f);
}

TEST(the_message_of_an_error_ends_at_its_first_line)
{
	struct fixture f;

	set_up(&f);
	script(&f,
	       &(struct fake_reply){ .status = 400,
	                             .body = "{\"__type\":\"InvalidSignatureException\",\"message\":\"does not match."
	                                     "\\n\\nx-amz-security-token:session-token\"}" },
	       1);
	CHECK(call(&f) == RC_OK);
	CHECK(str_eq(f.reply.error_message, STR("does not match.")));
	tear_down(&f);
}

TEST(waits_double_up_to_their_limit_and_are_random)
{
	struct fixture f;
	long           sum = 0;

	set_up(&f);
	new_client(&f, (struct aws_client_options){
	                       .wait = note_wait, .wait_arg = &f, .total_timeout_ms = 60000, .attempts_max = 30 });
	script(&f, &(struct fake_reply){ .status = 503 }, 1);
	CHECK(call(&f) == RC_UNAVAILABLE);
	CHECK(f.calls == 30 && f.wait_count == 29);
	for (size_t i = 0; i < f.wait_count; i++) {
		CHECK(f.waits[i] >= 0 && f.waits[i] <= (i < 6 ? 25L << i : 1000));
		sum += f.waits[i];
	}
	CHECK(sum > 1000 && sum < 25000); /* at both ends it would be no jitter */
	tear_down(&f);
}

TEST(a_wait_that_leaves_no_time_is_not_begun)
{
	struct fixture f;

	set_up(&f);
	new_client(&f, (struct aws_client_options){ .wait = note_wait,
	                                            .wait_arg = &f,
	                                            .total_timeout_ms = 2000,
	                                            .wait_base_ms = 1000000,
	                                            .wait_max_ms = 1000000 });
	script(&f, &(struct fake_reply){ .status = 503 }, 1);
	CHECK(call(&f) == RC_UNAVAILABLE);
	for (size_t i = 0; i < f.wait_count; i++)
		CHECK(f.waits[i] < 2000);
	tear_down(&f);
}

static bool says_busy(const struct aws_reply *reply)
{
	return str_eq(reply->error_type, STR("TransactionCanceledException")) &&
	       str_eq(reply->error_message, STR("busy"));
}

static enum rc send_patiently(struct fixture *f, long total_ms)
{
	struct aws_request req = { .target = str_from(target),
		                   .shown = target,
		                   .total_ms = total_ms,
		                   .is_patient = true,
		                   .is_slow = says_busy };

	err_clear(&f->err);
	return aws_send(f->client, &req, &f->arena, &f->reply, &f->err);
}

TEST(who_is_patient_waits_for_its_turn_as_long_as_there_is_time)
{
	struct fixture    f;
	struct fake_reply answers[12];
	struct mono       start;

	set_up(&f);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++)
		answers[i] = (struct fake_reply){ .status = 400,
			                          .body = i % 2 ? TYPE("ThrottlingException")
			                                        : "{\"__type\":\"TransactionCanceledException\","
			                                          "\"Message\":\"busy\"}" };
	answers[11] = (struct fake_reply){ .status = 200, .body = "{}" };
	script(&f, answers, ARRAY_LEN(answers));
	CHECK(send_patiently(&f, 60000) == RC_OK);
	CHECK(f.calls == 12 && f.reply.throttles == 11);

	script(&f, &(struct fake_reply){ .status = 503 }, 1);
	CHECK(send_patiently(&f, 60000) == RC_UNAVAILABLE);
	CHECK(f.calls == 5); /* patience is for those who answer */

	new_client(&f, (struct aws_client_options){ .wait_base_ms = 20, .wait_max_ms = 100000 });
	script(&f, answers, 1);
	start = mono_now();
	CHECK(send_patiently(&f, 400) == RC_LIMITED);
	CHECK(mono_now().ms - start.ms >= 340); /* nearly to the end, whatever the waits would have been */
	tear_down(&f);
}

TEST(a_stopped_server_is_unavailable_within_the_total_time)
{
	struct fixture f;
	struct mono    start;
	char           endpoint[64];

	set_up(&f);
	(void)snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", fake_closed_port());
	new_client(&f, (struct aws_client_options){ .endpoint = endpoint,
	                                            .total_timeout_ms = 300,
	                                            .attempts_max = 1000,
	                                            .wait_base_ms = 10,
	                                            .wait_max_ms = 40 });
	start = mono_now();
	CHECK(call(&f) == RC_UNAVAILABLE);
	CHECK(mono_now().ms - start.ms <= 2000); /* 300, and what a busy machine adds */
	CHECK(strstr(f.err.msg, "127.0.0.1"));
	CHECK(f.calls == 0);
	tear_down(&f);
}

TEST(a_silent_server_is_a_timeout_within_the_total_time)
{
	struct fixture f;
	struct mono    start;

	set_up(&f);
	new_client(&f, (struct aws_client_options){
	                       .total_timeout_ms = 300, .attempt_timeout_ms = 60000, .wait_base_ms = 1 });
	script(&f, &(struct fake_reply){ .is_silent = true }, 1);
	start = mono_now();
	CHECK(call(&f) == RC_TIMEOUT);
	CHECK(mono_now().ms - start.ms <= 5000);
	tear_down(&f);
}

TEST(a_silent_attempt_is_followed_by_another)
{
	static const struct fake_reply answers[] = { { .is_silent = true }, { .status = 200, .body = "{}" } };
	struct fixture                 f;

	set_up(&f);
	new_client(&f,
	           (struct aws_client_options){
	                   .total_timeout_ms = 20000, .attempt_timeout_ms = 100, .wait = note_wait, .wait_arg = &f });
	script(&f, answers, 2);
	CHECK(call(&f) == RC_OK);
	CHECK(f.reply.attempts >= 2 && f.are_bodies_equal);
	tear_down(&f);
}

TEST(a_clock_that_is_far_off_is_corrected_once_for_all_calls)
{
	static const struct fake_reply answers[] = {
		{ 400, "Date: Sun, 30 Aug 2015 14:36:00 GMT\r\n", TYPE("InvalidSignatureException") },
		{ .status = 200, .body = "{}" },
	};
	struct fixture f;

	set_up(&f);
	script(&f, answers, 2);
	CHECK(call(&f) == RC_OK);
	CHECK(f.reply.status == 200 && f.reply.attempts == 2 && f.wait_count == 0);
	CHECK(has_header(&f, "X-Amz-Date: 20150830T143600Z"));
	f.clock.test_ms += 1000;
	CHECK(call(&f) == RC_OK);
	CHECK(f.reply.attempts == 1);
	CHECK(has_header(&f, "X-Amz-Date: 20150830T143601Z"));
	tear_down(&f);
}

TEST(a_clock_is_corrected_only_when_that_may_help)
{
	static const struct {
		const char *label, *date;
		size_t      calls;
	} cases[] = {
		{ "the clock is right", "Date: Sun, 30 Aug 2015 12:36:30 GMT\r\n", 1 },
		{ "no date", NULL, 1 },
		{ "a date that is none", "Date: yesterday\r\n", 1 },
		{ "still refused after the correction", "Date: Sun, 30 Aug 2015 12:46:00 GMT\r\n", 2 },
	};
	struct fixture f;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CASE(cases[i].label);
		set_up(&f);
		script(&f, &(struct fake_reply){ 400, cases[i].date, TYPE("RequestTimeTooSkewed") }, 1);
		CHECK(call(&f) == RC_OK);
		CHECK(f.reply.status == 400 && f.calls == cases[i].calls);
		tear_down(&f);
	}
}

TEST(a_server_whose_clock_jumps_is_followed_once)
{
	static const struct fake_reply answers[] = {
		{ 400, "Date: Sun, 30 Aug 2015 14:36:00 GMT\r\n", TYPE("RequestTimeTooSkewed") },
		{ 400, "Date: Sun, 30 Aug 2015 16:36:00 GMT\r\n", TYPE("RequestTimeTooSkewed") },
		{ .status = 200, .body = "{}" },
	};
	struct fixture f;

	set_up(&f);
	script(&f, answers, 3);
	CHECK(call(&f) == RC_OK);
	CHECK(f.reply.status == 400 && f.calls == 2);
	tear_down(&f);
}

TEST(a_correction_takes_no_attempt_away)
{
	static const struct fake_reply answers[] = {
		{ .status = 400, .body = TYPE("ExpiredTokenException") },
		{ .status = 503 },
		{ .status = 200, .body = "{}" },
	};
	struct fixture f;

	set_up(&f);
	new_client(&f, (struct aws_client_options){ .wait = note_wait, .wait_arg = &f, .attempts_max = 2 });
	script(&f, answers, 3);
	CHECK(call(&f) == RC_OK);
	CHECK(f.reply.status == 200 && f.calls == 3 && f.wait_count == 1);
	tear_down(&f);
}

static struct fake_reply handed_out(const char *body)
{
	return (struct fake_reply){ .status = 200, .body = body };
}

/* Credentials come from the same server and change while the call is under way. */
static struct fake_reply answer_by_token(const struct fake_request *req, size_t number, void *arg)
{
	struct fixture *f = arg;

	if (strcmp(req->target, "/credentials") == 0)
		return answer(req, number, arg);
	f->credentials = handed_out("{\"AccessKeyId\":\"K2\",\"SecretAccessKey\":\"S\",\"Token\":\"new\"}");
	f->calls++;
	return fake_request_has(req, "X-Amz-Security-Token: new")
	               ? (struct fake_reply){ .status = 200, .body = "{}" }
	               : (struct fake_reply){ .status = 400, .body = TYPE("ExpiredTokenException") };
}

TEST(an_ended_token_is_renewed_once)
{
	struct fixture f;
	char           uri[80];

	set_up_with(&f, container_env);
	fake_server_close(f.server);
	f.server = fake_server_open(answer_by_token, &f);
	(void)snprintf(f.endpoint, sizeof(f.endpoint), "http://127.0.0.1:%d", fake_server_port(f.server));
	(void)snprintf(uri, sizeof(uri), "%s/credentials", f.endpoint);
	container_uri = uri;
	new_client(&f, (struct aws_client_options){ .wait = note_wait, .wait_arg = &f, .attempts_max = 1 });
	f.credentials = handed_out("{\"AccessKeyId\":\"K1\",\"SecretAccessKey\":\"S\",\"Token\":\"old\"}");
	CHECK(call(&f) == RC_OK);
	CHECK(f.reply.status == 200 && f.reply.attempts == 2 && f.wait_count == 0);
	CHECK(call(&f) == RC_OK);
	CHECK(f.reply.attempts == 1);
	CHECK(fake_server_requests(f.server) == 5); /* credentials twice, three attempts */
	tear_down(&f);
}

TEST(credentials_that_stay_refused_are_the_callers_error)
{
	struct fixture f;

	set_up(&f);
	script(&f, &(struct fake_reply){ .status = 400, .body = TYPE("UnrecognizedClientException") }, 1);
	CHECK(call(&f) == RC_OK);
	CHECK(f.reply.status == 400 && f.calls == 2);
	CHECK(str_eq(f.reply.error_type, STR("UnrecognizedClientException")));
	tear_down(&f);
}

static const char *half_env(const char *name)
{
	return strcmp(name, "AWS_ACCESS_KEY_ID") == 0 ? "AKIDEXAMPLE" : NULL;
}

TEST(without_credentials_nothing_is_sent)
{
	struct fixture f;

	set_up_with(&f, half_env);
	script(&f, &(struct fake_reply){ .status = 200 }, 1);
	CHECK(call(&f) == RC_INVALID);
	CHECK(strstr(f.err.msg, "AWS_SECRET_ACCESS_KEY is not set"));
	CHECK(f.calls == 0 && f.wait_count == 0);
	tear_down(&f);
}

TEST(an_answer_over_the_limit_is_refused)
{
	struct fixture f;

	set_up(&f);
	script(&f, &(struct fake_reply){ .raw = "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" }, 1);
	CHECK(call(&f) == RC_TOO_LARGE);
	CHECK(f.calls == 1);
	tear_down(&f);
}

/* --- many threads ----------------------------------------------------------------------------------------------- */

static struct fake_reply answer_sometimes(const struct fake_request *req, size_t number, void *arg)
{
	struct fixture *f = arg;

	f->calls++;
	if (number % 3 == 0)
		return (struct fake_reply){ .status = 500, .body = "{}" };
	f->are_bodies_equal = f->are_bodies_equal && strcmp(req->body, "{\"a\":1}") == 0;
	return (struct fake_reply){ .status = 200, .body = "{\"is\":\"fine\"}" };
}

static void *call_often(void *arg)
{
	struct fixture *f = arg;
	size_t          served = 0;

	for (int i = 0; i < CALLS; i++) {
		struct arena     a = { 0 };
		struct aws_reply reply = { 0 };

		served += aws_call(f->client, target, STR("{\"a\":1}"), &a, &reply, NULL) == RC_OK &&
		          reply.status == 200 && str_eq(reply.body, STR("{\"is\":\"fine\"}"));
		arena_fini(&a);
	}
	return (void *)(uintptr_t)served;
}

TEST(eight_threads_call_at_once_on_connections_of_their_own)
{
	struct fixture f;
	pthread_t      threads[THREADS];

	set_up(&f);
	fake_server_close(f.server);
	f.server = fake_server_open(answer_sometimes, &f);
	(void)snprintf(f.endpoint, sizeof(f.endpoint), "http://127.0.0.1:%d", fake_server_port(f.server));
	new_client(&f, (struct aws_client_options){ .attempts_max = 100, .wait_base_ms = 1, .wait_max_ms = 1 });
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, call_often, &f) == 0);
	for (int i = 0; i < THREADS; i++) {
		void *served;

		CHECK(pthread_join(threads[i], &served) == 0);
		CHECK((uintptr_t)served == CALLS);
	}
	CHECK(f.are_bodies_equal);
	CHECK(fake_server_requests(f.server) > THREADS * CALLS);
	CHECK(fake_server_connections(f.server) == THREADS);
	tear_down(&f);
}
