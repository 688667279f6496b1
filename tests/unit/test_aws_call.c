/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by rows: what is sent for each protocol, what failures mean, the chain of roles, pages. Signatures are checked
 * by the front of tests/aws. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "fake_server.h"
#include "providers/aws/call.h"
#include "truth/test_clock.h"

enum { NOW = 1440938160, SCRIPT_MAX = 8, TEXT_MAX = 8192 };

/* The server answers calls with these in turn, the last one again and again, and hands out credentials. */
struct fixture {
	struct fake_server *server;
	struct fake_reply   script[SCRIPT_MAX];
	size_t              script_count, calls;
	int                 roles; /* AssumeRole that were asked for */
	char                role_bodies[8][TEXT_MAX];
	char                target[TEXT_MAX], headers[TEXT_MAX], body[TEXT_MAX], method[16];
	struct clock        clock;
	struct aws_settings settings;
	struct aws_callers *callers;
	struct arena        arena;
	struct err          e;
	json_t             *answer;
	int                 denied, throttled;
	char                credentials[TEXT_MAX];
	const char         *refused_role; /* STS refuses it */
};

static char url[128]; /* of the running test's server */

static const char *env(const char *name)
{
	if (strcmp(name, "AWS_ACCESS_KEY_ID") == 0)
		return "AKIAOWN";
	if (strcmp(name, "AWS_SECRET_ACCESS_KEY") == 0)
		return "own-secret";
	return strcmp(name, "AWS_ENDPOINT_URL") == 0 ? url : NULL;
}

/* Their time is counted by the test's clock, from when they were asked for. */
static struct fake_reply hand_out(struct fixture *f, const char *body)
{
	char end[ISO_TIME_SIZE];

	(void)snprintf(f->role_bodies[f->roles % 8], TEXT_MAX, "%s", body);
	f->roles++;
	if (f->refused_role && strstr(body, f->refused_role))
		return (struct fake_reply){
			.status = 403, .body = "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"
		};
	(void)iso_time(f->clock.test_ms / 1000 + 900, end);
	(void)snprintf(f->credentials, sizeof(f->credentials),
	               "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA%d</AccessKeyId>"
	               "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration>"
	               "</Credentials></AssumeRoleResult></AssumeRoleResponse>",
	               f->roles, end);
	return (struct fake_reply){ .status = 200, .body = f->credentials };
}

static struct fake_reply answer(const struct fake_request *req, size_t number, void *arg)
{
	struct fixture *f = arg;
	size_t          at = f->calls < f->script_count ? f->calls : f->script_count - 1;

	(void)number;
	if (strstr(req->body, "Action=AssumeRole&"))
		return hand_out(f, req->body);
	(void)snprintf(f->method, sizeof(f->method), "%s", req->method);
	(void)snprintf(f->target, sizeof(f->target), "%s", req->target);
	(void)snprintf(f->headers, sizeof(f->headers), "%s", req->headers);
	(void)snprintf(f->body, sizeof(f->body), "%s", req->body);
	f->calls++;
	return f->script[at];
}

static void on_denied(void *arg, const char *permission, const char *text)
{
	CHECK(permission[0] && text[0]);
	((struct fixture *)arg)->denied++;
}

static void on_throttled(void *arg, const struct aws_op *op)
{
	CHECK(op != NULL);
	((struct fixture *)arg)->throttled++;
}

static void set_up(struct fixture *f)
{
	*f = (struct fixture){ .clock = clock_test((int64_t)NOW * 1000) };
	f->server = fake_server_open(answer, f);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", fake_server_port(f->server));
	f->settings = (struct aws_settings){ .env = env,
		                             .clock = &f->clock,
		                             .region = "eu-west-1",
		                             .idc_region = "eu-north-1",
		                             .node = "n1",
		                             .user_agent_extra = STR("probe/1"),
		                             .wait_base_ms = 1,
		                             .on_denied = on_denied,
		                             .on_throttled = on_throttled,
		                             .arg = f };
	f->script[0] = (struct fake_reply){ .status = 200, .body = "{}" };
	f->script_count = 1;
}

static void open_callers(struct fixture *f)
{
	CHECK(aws_callers_new(&f->settings, &f->callers, &f->e) == RC_OK);
}

static void tear_down(struct fixture *f)
{
	json_decref(f->answer);
	aws_callers_free(f->callers);
	fake_server_close(f->server);
	arena_fini(&f->arena);
}

static enum rc do_as(struct fixture *f, enum aws_hop hop, const struct aws_call *call)
{
	err_clear(&f->e);
	json_decref(f->answer);
	f->answer = NULL;
	return aws_do_call(aws_caller_of(f->callers, hop), call, &f->arena, &f->answer, &f->e);
}

static bool has_header(const struct fixture *f, const char *line)
{
	struct fake_request req = { .headers = f->headers };

	return fake_request_has(&req, line);
}

static const struct aws_error_row errors[] = { { "DuplicateAccountException", RC_CONFLICT },
	                                       { "LimitExceededException", RC_TOO_LARGE },
	                                       { NULL, RC_OK } };
static const struct aws_op        move = {
	       &aws_services[AWS_ORGANIZATIONS], "MoveAccount", "organizations:MoveAccount", true, NULL, NULL, errors, 0, false
};
static const struct aws_op list = {
	&aws_services[AWS_ORGANIZATIONS], "ListRoots", "organizations:ListRoots", false, NULL, NULL, errors, 0, false
};

TEST(a_json_service_gets_its_target_type_region_and_agent)
{
	struct fixture f;
	struct aws_op ask = { .service = &aws_services[AWS_SSO_ADMIN], .name = "ListInstances", .permission = "sso:x" };

	set_up(&f);
	open_callers(&f);
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &list }) == RC_OK);
	CHECK(strcmp(f.method, "POST") == 0 && strcmp(f.target, "/") == 0 && strcmp(f.body, "{}") == 0);
	CHECK(has_header(&f, "X-Amz-Target: AWSOrganizationsV20161128.ListRoots"));
	CHECK(has_header(&f, "Content-Type: application/x-amz-json-1.1"));
	CHECK(has_header(&f, "User-Agent: leasehold/" LEASEHOLD_VERSION " probe/1"));
	CHECK(strstr(f.headers, "/us-east-1/organizations/aws4_request")); /* whatever our region is */
	CHECK(do_as(&f, AWS_IDENTITY_CENTRE, &(struct aws_call){ .op = &ask }) == RC_OK);
	CHECK(strstr(f.headers, "/eu-north-1/sso/aws4_request"));
	ask.service = &aws_services[AWS_SQS];
	CHECK(do_as(&f, AWS_OWN, &(struct aws_call){ .op = &ask, .region = "ap-south-1" }) == RC_OK);
	CHECK(has_header(&f, "Content-Type: application/x-amz-json-1.0"));
	CHECK(strstr(f.headers, "/ap-south-1/sqs/aws4_request"));
	tear_down(&f);
}

TEST(a_query_service_gets_a_form_and_its_xml_becomes_json)
{
	struct fixture f;
	struct aws_op  publish = { .service = &aws_services[AWS_SNS], .name = "Publish", .permission = "sns:Publish" };

	set_up(&f);
	open_callers(&f);
	f.script[0].body =
	        "<PublishResponse><PublishResult><MessageId>m1</MessageId></PublishResult></PublishResponse>";
	CHECK(do_as(&f, AWS_OWN,
	            &(struct aws_call){ .op = &publish,
	                                .body = AWS_PAIRS(&f.arena, { "TopicArn", STR("a:b") },
	                                                  { "Nothing", { NULL, 0 } },
	                                                  { "Message", STR("x & y=\u00e4") }) }) == RC_OK);
	CHECK(strcmp(f.body, "Action=Publish&Version=2010-03-31&TopicArn=a%3Ab&Message=x%20%26%20y%3D%C3%A4") == 0);
	CHECK(has_header(&f, "Content-Type: application/x-www-form-urlencoded; charset=utf-8"));
	CHECK(strcmp(json_string_value(json_object_get(f.answer, "MessageId")), "m1") == 0);
	f.script[0].body = "<PublishResponse><PublishResult/></PublishResponse>";
	CHECK(do_as(&f, AWS_OWN, &(struct aws_call){ .op = &publish }) == RC_OK);
	CHECK(json_is_object(f.answer) && json_object_size(f.answer) == 0);
	tear_down(&f);
}

TEST(a_rest_service_gets_its_method_path_and_query)
{
	struct fixture f;
	struct aws_op  get = { .service = &aws_services[AWS_SCHEDULER],
		               .name = "GetSchedule",
		               .permission = "scheduler:GetSchedule",
		               .method = "GET",
		               .path = "/schedules/{Name}/x" };
	struct str     names[] = { STR("a/b c") };

	set_up(&f);
	open_callers(&f);
	CHECK(do_as(&f, AWS_OWN,
	            &(struct aws_call){ .op = &get,
	                                .path_args = names,
	                                .query = AWS_PAIRS(&f.arena, { "groupName", STR("g h") }) }) == RC_OK);
	CHECK(strcmp(f.method, "GET") == 0 && strcmp(f.target, "/schedules/a%2Fb%20c/x?groupName=g%20h") == 0);
	CHECK(!f.body[0] && !strstr(f.headers, "Content-Type:"));
	get.service = &aws_services[AWS_SES];
	get.method = "POST";
	get.path = "/v2/email/outbound-emails";
	f.script[0].body = NULL;
	CHECK(do_as(&f, AWS_OWN, &(struct aws_call){ .op = &get, .body = STR("{\"a\":1}") }) == RC_OK);
	CHECK(strstr(f.headers, "/ses/aws4_request") && strcmp(f.body, "{\"a\":1}") == 0);
	CHECK(json_is_object(f.answer));
	tear_down(&f);
}

#define JSON_ERROR(status_, code)                                                          \
	{                                                                                  \
		.status = status_, .body = "{\"__type\":\"" code "\",\"Message\":\"why\"}" \
	}
#define CUT                                            \
	{                                              \
		.raw = "HTTP/1.1 200 OK\r\nContent-Le" \
	}

TEST(what_a_failure_means_depends_on_what_may_have_happened)
{
	static const struct {
		const char       *label;
		bool              writes;
		struct fake_reply script[SCRIPT_MAX];
		enum rc           rc;
		const char       *code;
		size_t            calls;
	} rows[] = {
		{ "throttled, then done",
		  true,
		  { JSON_ERROR(400, "TooManyRequestsException"), { .status = 200, .body = "{}" } },
		  RC_OK,
		  NULL,
		  2 },
		{ "throttled to the end", true, { JSON_ERROR(400, "TooManyRequestsException") }, RC_LIMITED, NULL, 5 },
		{ "a throttle with 503", true, { JSON_ERROR(503, "SlowDown") }, RC_LIMITED, NULL, 5 },
		{ "somebody else changes it",
		  true,
		  { JSON_ERROR(400, "ConcurrentModificationException") },
		  RC_LIMITED,
		  NULL,
		  5 },
		{ "a write and 5xx", true, { JSON_ERROR(500, "ServiceException") }, RC_TIMEOUT, NULL, 5 },
		{ "a read and 5xx", false, { JSON_ERROR(500, "ServiceException") }, RC_UNAVAILABLE, NULL, 5 },
		{ "a write that was cut off", true, { CUT }, RC_TIMEOUT, NULL, 5 },
		{ "a read that was cut off", false, { CUT }, RC_UNAVAILABLE, NULL, 5 },
		{ "cut off, then done", true, { CUT, { .status = 200, .body = "{}" } }, RC_OK, NULL, 2 },
		{ "cut off, then refused: not believed",
		  true,
		  { CUT, JSON_ERROR(400, "DuplicateAccountException") },
		  RC_TIMEOUT,
		  "DuplicateAccountException",
		  2 },
		{ "of a read it is",
		  false,
		  { CUT, JSON_ERROR(400, "DuplicateAccountException") },
		  RC_CONFLICT,
		  "DuplicateAccountException",
		  2 },
		{ "cut off, then throttled",
		  true,
		  { CUT, JSON_ERROR(400, "TooManyRequestsException") },
		  RC_TIMEOUT,
		  NULL,
		  5 },
		{ "refused",
		  true,
		  { JSON_ERROR(400, "com.amazonaws#DuplicateAccountException") },
		  RC_CONFLICT,
		  "DuplicateAccountException",
		  1 },
		{ "a quota",
		  true,
		  { JSON_ERROR(400, "LimitExceededException") },
		  RC_TOO_LARGE,
		  "LimitExceededException",
		  1 },
		{ "no right",
		  true,
		  { JSON_ERROR(400, "AccessDeniedException") },
		  RC_DENIED,
		  "AccessDeniedException",
		  1 },
		{ "not understood",
		  true,
		  { JSON_ERROR(400, "ValidationException") },
		  RC_INVALID,
		  "ValidationException",
		  1 },
		{ "a code that nobody knows", true, { JSON_ERROR(418, "TeapotException") }, RC_INTERNAL, NULL, 1 },
		{ "an answer that cannot be read, of a read",
		  false,
		  { { .status = 200, .body = "<x>" } },
		  RC_CORRUPT,
		  NULL,
		  1 },
		{ "of a write", true, { { .status = 200, .body = "[1]" } }, RC_TIMEOUT, NULL, 1 },
	};
	struct fixture f;

	set_up(&f);
	open_callers(&f);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE(rows[i].label);
		f.calls = f.script_count = 0;
		f.denied = f.throttled = 0;
		while (f.script_count < SCRIPT_MAX &&
		       (rows[i].script[f.script_count].status || rows[i].script[f.script_count].raw)) {
			f.script[f.script_count] = rows[i].script[f.script_count];
			f.script_count++;
		}
		CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = rows[i].writes ? &move : &list }) ==
		      rows[i].rc);
		CHECK(f.calls == rows[i].calls);
		CHECK(rows[i].code ? f.e.code && strcmp(f.e.code, rows[i].code) == 0 : !f.e.code);
		CHECK(f.denied == (rows[i].rc == RC_DENIED));
		CHECK((f.throttled > 0) == (strstr(rows[i].label, "throttle") || rows[i].rc == RC_LIMITED));
		if (rows[i].rc == RC_INTERNAL)
			CHECK(strstr(f.e.msg, "TeapotException"));
	}
	tear_down(&f);
}

TEST(what_never_left_did_not_happen)
{
	struct fixture f;

	set_up(&f);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", fake_closed_port());
	open_callers(&f);
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &move }) == RC_UNAVAILABLE);
	tear_down(&f);
}

TEST(only_cost_explorer_calls_a_limit_a_throttle)
{
	struct fixture f;
	struct aws_op  costs = { .service = &aws_services[AWS_COST_EXPLORER], .name = "Get", .permission = "ce:Get" };

	set_up(&f);
	open_callers(&f);
	f.script[0] = (struct fake_reply)JSON_ERROR(400, "LimitExceededException");
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &costs }) == RC_LIMITED && f.calls == 5);
	costs.service = &aws_services[AWS_COGNITO];
	f.calls = 0;
	CHECK(do_as(&f, AWS_OWN, &(struct aws_call){ .op = &costs }) == RC_INTERNAL && f.calls == 1);
	tear_down(&f);
}

/* --- the chain --- */

TEST(each_hop_is_assumed_by_the_one_before_and_once)
{
	struct fixture f;

	set_up(&f);
	f.settings.intermediate_arn = STR("arn:aws:iam::1:role/hub");
	f.settings.management_arn = STR("arn:aws:iam::2:role/org");
	f.settings.external_id = STR("ext:1");
	open_callers(&f);
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &list }) == RC_OK);
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &list }) == RC_OK);
	CHECK(f.roles == 2 && strstr(f.headers, "Credential=ASIA2/"));
	CHECK(strstr(f.role_bodies[0], "RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fhub"));
	CHECK(strstr(f.role_bodies[0], "RoleSessionName=leasehold-n1-hub") &&
	      strstr(f.role_bodies[0], "DurationSeconds=900") && strstr(f.role_bodies[0], "ExternalId=ext%3A1") &&
	      !strstr(f.role_bodies[0], "SourceIdentity"));
	CHECK(strstr(f.role_bodies[1], "RoleSessionName=leasehold-n1-org"));
	CHECK(do_as(&f, AWS_OWN, &(struct aws_call){ .op = &list }) == RC_OK &&
	      strstr(f.headers, "Credential=AKIAOWN/"));
	CHECK(do_as(&f, AWS_IDENTITY_CENTRE, &(struct aws_call){ .op = &list }) ==
	      RC_OK); /* no role: as the hop before */
	CHECK(f.roles == 2 && strstr(f.headers, "Credential=ASIA1/"));
	tear_down(&f);
}

TEST(a_session_is_renewed_when_a_fifth_is_left)
{
	struct fixture f;

	set_up(&f);
	f.settings.management_arn = STR("arn:aws:iam::2:role/org");
	open_callers(&f);
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &list }) == RC_OK && f.roles == 1);
	f.clock.test_ms += 719 * 1000;
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &list }) == RC_OK && f.roles == 1);
	f.clock.test_ms += 1000;
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &list }) == RC_OK && f.roles == 2);
	CHECK(strstr(f.headers, "Credential=ASIA2/"));
	tear_down(&f);
}

TEST(a_session_that_aws_ends_is_renewed_once)
{
	struct fixture f;

	set_up(&f);
	f.settings.management_arn = STR("arn:aws:iam::2:role/org");
	open_callers(&f);
	f.script[0] = (struct fake_reply)JSON_ERROR(400, "ExpiredTokenException");
	f.script[1] = (struct fake_reply){ .status = 200, .body = "{}" };
	f.script_count = 2;
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &move }) == RC_OK && f.roles == 2 && f.calls == 2);
	f.calls = 0;
	f.script_count = 1; /* it is never content */
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &move }) == RC_DENIED && f.roles == 3 &&
	      f.calls == 2);
	tear_down(&f);
}

TEST(a_refused_hop_is_named)
{
	struct fixture f;

	set_up(&f);
	f.settings.intermediate_arn = STR("arn:aws:iam::1:role/hub");
	f.settings.management_arn = STR("arn:aws:iam::2:role/org");
	open_callers(&f);
	f.refused_role = "hub";
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &move }) == RC_DENIED);
	CHECK(strstr(f.e.msg, "role arn:aws:iam::1:role/hub") && !strstr(f.e.msg, "role/org"));
	CHECK(strstr(f.e.msg, "AccessDenied") && f.calls == 0 && f.denied == 1);
	f.refused_role = "org";
	CHECK(do_as(&f, AWS_MANAGEMENT, &(struct aws_call){ .op = &move }) == RC_DENIED);
	CHECK(strstr(f.e.msg, "role arn:aws:iam::2:role/org") && f.calls == 0);
	tear_down(&f);
}

TEST(the_role_in_a_sandbox_account_is_assumed_by_the_intermediate_one)
{
	struct fixture     f;
	struct aws_caller *sandbox;

	set_up(&f);
	f.settings.intermediate_arn = STR("arn:aws:iam::1:role/hub");
	f.settings.sandbox_role = STR("Cleaner");
	open_callers(&f);
	sandbox = aws_caller_sandbox(f.callers, STR("222222222222"), STR(""), "nuke", 3600);
	CHECK(aws_do(sandbox, &list, STR(""), &f.arena, &f.answer, &f.e) == RC_OK);
	CHECK(f.roles == 2 && strstr(f.role_bodies[1], "222222222222%3Arole%2FCleaner") &&
	      strstr(f.role_bodies[1], "DurationSeconds=3600") && strstr(f.role_bodies[1], "leasehold-n1-nuke"));
	aws_caller_free(sandbox);
	tear_down(&f);
}

/* --- pages --- */

struct walk {
	int pages, things;
};

static enum rc count_page(void *arg, const json_t *page, struct err *e)
{
	struct walk *w = arg;

	(void)e;
	w->pages++;
	w->things += (int)json_array_size(json_object_get(page, "Things"));
	return RC_OK;
}

static enum rc walk_pages(struct fixture *f, struct walk *w)
{
	struct aws_paging p = { .call = { .op = &list }, .token = "NextToken", .each = count_page, .arg = w };

	*w = (struct walk){ 0 };
	f->calls = 0;
	err_clear(&f->e);
	return aws_pages(aws_caller_of(f->callers, AWS_MANAGEMENT), &p, &f->e);
}

TEST(pages_are_read_to_their_end)
{
	struct fixture f;
	struct walk    w;

	set_up(&f);
	open_callers(&f);
	f.script[0].body = "{\"Things\":[1,2],\"NextToken\":\"a\"}";
	f.script[1] = (struct fake_reply){ .status = 200, .body = "{\"Things\":[],\"NextToken\":\"b\"}" };
	f.script[2] = (struct fake_reply){ .status = 200, .body = "{\"Things\":[3],\"NextToken\":null}" };
	f.script_count = 3;
	CHECK(walk_pages(&f, &w) == RC_OK && w.pages == 3 && w.things == 3);
	CHECK(strcmp(f.body, "{\"NextToken\":\"b\"}") == 0);
	f.script[2].body = "{\"Things\":[3],\"NextToken\":\"b\"}";
	CHECK(walk_pages(&f, &w) == RC_CORRUPT && strstr(f.e.msg, "same again"));
	f.script[2].body = "{\"NextToken\":7}";
	CHECK(walk_pages(&f, &w) == RC_CORRUPT);
	tear_down(&f);
}

static enum rc count_item(void *arg, const json_t *item, struct err *e)
{
	int *count = arg;

	(void)e;
	CHECK(json_is_object(item));
	++*count;
	return RC_OK;
}

TEST(the_next_page_is_asked_for_as_each_kind_of_service_wants_it)
{
	struct aws_op      rules = { .service = &aws_services[AWS_LOAD_BALANCING], .name = "R", .permission = "elb:R" };
	struct aws_op      points = { .service = &aws_services[AWS_EFS],
		                      .name = "P",
		                      .permission = "efs:P",
		                      .method = "GET",
		                      .path = "/points" };
	struct aws_paging  p = { .token = "NextToken", .list = "Things", .each = count_item };
	struct fixture     f;
	struct aws_caller *own;
	int                count = 0;
	bool               is_over = false;

	set_up(&f);
	open_callers(&f);
	own = aws_caller_of(f.callers, AWS_OWN);
	p.arg = &count;
	f.script[0].body = "{\"Things\":[{},{}],\"NextToken\":\"a \\\"b\"}";
	f.script[1] = (struct fake_reply){ .status = 200, .body = "{\"Things\":[{}]}" };
	f.script_count = 2;
	p.call = (struct aws_call){ .op = &list, .body = STR("{\"A\":1}") };
	CHECK(aws_pages(own, &p, &f.e) == RC_OK && count == 3);
	CHECK(strcmp(f.body, "{\"A\":1,\"NextToken\":\"a \\\"b\"}") == 0);
	f.calls = 0;
	p.call = (struct aws_call){ .op = &points, .query = AWS_PAIRS(&f.arena, { "Id", STR("x") }) };
	CHECK(aws_pages(own, &p, &f.e) == RC_OK && strcmp(f.target, "/points?Id=x&NextToken=a%20%22b") == 0);
	f.calls = 0;
	p.is_over = &is_over;
	is_over = true;
	CHECK(aws_pages(own, &p, &f.e) == RC_OK && f.calls == 1);
	f.calls = 0;
	f.script[0].body = "<R><RResult><Things><member><a>1</a></member></Things><Next>m&amp;</Next></RResult></R>";
	f.script[1].body = "<R><RResult><Things/></RResult></R>";
	p = (struct aws_paging){ .call = { .op = &rules },
		                 .token = "Next",
		                 .asked_token = "Marker",
		                 .list = "Things",
		                 .each = count_item,
		                 .arg = &count };
	CHECK(aws_pages(own, &p, &f.e) == RC_OK && strstr(f.body, "&Marker=m%26"));
	tear_down(&f);
}

TEST(an_answer_that_does_not_matter_is_not_kept_but_must_be_readable)
{
	struct fixture f;

	set_up(&f);
	open_callers(&f);
	CHECK(aws_do(aws_caller_of(f.callers, AWS_OWN), &list, STR(""), &f.arena, NULL, &f.e) == RC_OK);
	f.script[0].body = "{";
	CHECK(aws_do(aws_caller_of(f.callers, AWS_OWN), &list, STR(""), &f.arena, NULL, &f.e) == RC_CORRUPT);
	tear_down(&f);
}

TEST(times_are_seconds_with_a_fraction)
{
	json_t *object = json_pack("{s:f,s:i,s:s,s:f}", "a", 1794848807.632, "b", 12, "c", "12", "d", -1.0);
	int64_t ms;

	CHECK(aws_get_time(object, "a", &ms) && ms == 1794848807632);
	CHECK(aws_get_time(object, "b", &ms) && ms == 12000);
	CHECK(!aws_get_time(object, "c", &ms) && !aws_get_time(object, "d", &ms) && !aws_get_time(object, "e", &ms));
	json_decref(object);
}
