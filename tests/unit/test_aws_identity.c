/* SPDX-License-Identifier: Apache-2.0 */
/* Where credentials come from, and when they are renewed. */
#include "test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "fake_server.h"
#include "net/aws.h"
#include "truth/test_clock.h"

enum { NOW = 1440938160 /* 2015-08-30T12:36:00Z */, ENV_MAX = 12, THREADS = 8, HELD_MINUTES = 60 };

#define SECRET "se/cr+et"
#define STS_ANSWER                                                                              \
	"<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"     \
	"<SessionToken>sts-token==</SessionToken><SecretAccessKey>" SECRET "</SecretAccessKey>" \
	"<Expiration>2015-08-30T13:36:00Z</Expiration><AccessKeyId>ASIASTS</AccessKeyId>"       \
	"</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"

struct variable {
	const char *name, *value;
};

static struct variable environment[ENV_MAX]; /* of the running test */

static const char *get_env(const char *name)
{
	for (size_t i = 0; i < ENV_MAX && environment[i].name; i++)
		if (strcmp(environment[i].name, name) == 0)
			return environment[i].value;
	return NULL;
}

static void set_env(const char *name, const char *value)
{
	size_t i = 0;

	while (environment[i].name && strcmp(environment[i].name, name) != 0)
		i++;
	CHECK(i < ENV_MAX - 1);
	environment[i] = (struct variable){ name, value };
}

/* The server answers each path with what the test put there. */
struct fixture {
	struct fake_server    *server;
	struct fake_reply      reply;
	bool                   has_role; /* the instance */
	char                   seen[4096];
	sem_t                  is_asked, may_answer; /* is_gated only */
	bool                   is_gated;
	struct clock           clock;
	struct aws_identity   *identity;
	struct arena           arena;
	struct err             err;
	struct aws_credentials got;
	char                   url[64], path[64];
};

static struct fake_reply answer_instance(const struct fixture *f, const struct fake_request *req)
{
	if (strcmp(req->target, "/latest/api/token") == 0)
		return strcmp(req->method, "PUT") == 0 &&
		                       fake_request_has(req, "X-aws-ec2-metadata-token-ttl-seconds: 21600")
		               ? (struct fake_reply){ .status = 200, .body = "imds-token" }
		               : (struct fake_reply){ .status = 400 };
	if (!fake_request_has(req, "X-aws-ec2-metadata-token: imds-token"))
		return (struct fake_reply){ .status = 401 };
	if (!f->has_role)
		return (struct fake_reply){ .status = 404 };
	if (strcmp(req->target, "/latest/meta-data/iam/security-credentials/") == 0)
		return (struct fake_reply){ .status = 200, .body = "the-role" };
	return strcmp(req->target, "/latest/meta-data/iam/security-credentials/the-role") == 0
	               ? f->reply
	               : (struct fake_reply){ .status = 404 };
}

static struct fake_reply answer(const struct fake_request *req, size_t number, void *arg)
{
	struct fixture *f = arg;

	(void)number;
	(void)snprintf(f->seen, sizeof(f->seen), "%s %s\n%s%s", req->method, req->target, req->headers, req->body);
	if (f->is_gated) {
		sem_post(&f->is_asked);
		sem_wait(&f->may_answer);
	}
	if (strncmp(req->target, "/latest/", 8) == 0)
		return answer_instance(f, req);
	return f->reply;
}

static void new_identity(struct fixture *f)
{
	struct aws_identity_options o = { .env = get_env,
		                          .clock = &f->clock,
		                          .sts_endpoint = f->url,
		                          .imds_endpoint = f->url,
		                          .container_endpoint = f->url };

	aws_identity_free(f->identity);
	f->identity = aws_identity_new(&o);
}

static void set_up(struct fixture *f)
{
	int fd;

	memset(environment, 0, sizeof(environment));
	*f = (struct fixture){ .clock = clock_test((int64_t)NOW * 1000), .reply = { .status = 404 } };
	CHECK(sem_init(&f->is_asked, 0, 0) == 0 && sem_init(&f->may_answer, 0, 0) == 0);
	f->server = fake_server_open(answer, f);
	(void)snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", fake_server_port(f->server));
	(void)snprintf(f->path, sizeof(f->path), "/tmp/leasehold-aws-XXXXXX");
	fd = mkstemp(f->path);
	CHECK(fd >= 0);
	close(fd);
	new_identity(f);
}

static void tear_down(struct fixture *f)
{
	aws_identity_free(f->identity);
	fake_server_close(f->server);
	CHECK(unlink(f->path) == 0);
	sem_destroy(&f->is_asked);
	sem_destroy(&f->may_answer);
	arena_fini(&f->arena);
}

static void write_file(const struct fixture *f, const char *text)
{
	FILE *file = fopen(f->path, "w");

	CHECK(file != NULL);
	CHECK(fputs(text, file) >= 0);
	CHECK(fclose(file) == 0);
}

static enum rc get(struct fixture *f)
{
	err_clear(&f->err);
	return aws_identity_get(f->identity, &f->arena, &f->got, &f->err);
}

static bool got(const struct fixture *f, const char *key, const char *secret, const char *token)
{
	return str_eq(f->got.access_key, str_from(key)) && str_eq(f->got.secret_key, str_from(secret)) &&
	       str_eq(f->got.session_token, str_from(token));
}

/* The JSON of container and instance, ending so many minutes after the test's beginning. */
static void hand_out(struct fixture *f, const char *key, int minutes)
{
	char       iso[ISO_TIME_SIZE];
	struct str until = iso_time(NOW + minutes * 60, iso);

	f->reply = (struct fake_reply){ .status = 200 };
	f->reply.body = str_format(&f->arena,
	                           "{\"Code\":\"Success\",\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"" SECRET "\","
	                           "\"Token\":\"a-token\",\"Expiration\":\"%.*s\"}",
	                           key, STR_ARG(until))
	                        .p;
}

/* --- the places ------------------------------------------------------------------------------------------------- */

TEST(the_environment_comes_first)
{
	struct fixture f;

	set_up(&f);
	set_env("AWS_ACCESS_KEY_ID", "AKID");
	set_env("AWS_SECRET_ACCESS_KEY", SECRET);
	set_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/role");
	CHECK(get(&f) == RC_OK && got(&f, "AKID", SECRET, ""));
	set_env("AWS_SESSION_TOKEN", "a-token");
	new_identity(&f);
	CHECK(get(&f) == RC_OK && got(&f, "AKID", SECRET, "a-token"));
	CHECK(fake_server_requests(f.server) == 0);
	tear_down(&f);
}

TEST(a_secret_that_no_header_takes_is_refused_and_not_shown)
{
	struct fixture f;

	set_up(&f);
	set_env("AWS_ACCESS_KEY_ID", "AKID\r\nX-Evil: 1");
	set_env("AWS_SECRET_ACCESS_KEY", SECRET);
	CHECK(get(&f) == RC_INVALID);
	CHECK(!strstr(f.err.msg, "Evil") && !strstr(f.err.msg, SECRET));
	tear_down(&f);
}

TEST(without_any_credentials_every_place_is_named)
{
	static const char *const places[] = { "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE",
		                              "/nowhere/.aws/credentials", "AWS_CONTAINER_CREDENTIALS_*", "instance" };
	struct fixture           f;

	set_up(&f);
	set_env("HOME", "/nowhere");
	CHECK(get(&f) == RC_DENIED);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		CASE(places[i]);
		CHECK(strstr(f.err.msg, places[i]));
	}
	tear_down(&f);
}

/* clang-format off */
static const struct {
	const char *label, *profile, *file;
	enum rc     rc;
	const char *key;  /* or a part of the message */
} files[] = {
	{ "the default profile", NULL, "[default]\naws_access_key_id = K\naws_secret_access_key=" SECRET "\n", RC_OK, "K" },
	{ "a named profile", "two", "[default]\naws_access_key_id=K\n[two]\naws_access_key_id=K2\n"
	  "aws_secret_access_key=" SECRET "\n[three]\naws_access_key_id=K3\n", RC_OK, "K2" },
	{ "comments, blank lines, CRLF, capitals and the word profile", "two",
	  "# c\r\n; c\r\n\r\n[ profile two ]\r\nAWS_ACCESS_KEY_ID =  K2 \r\naws_secret_access_key\t=" SECRET "\r\nregion=x",
	  RC_OK, "K2" },
	{ "settings of a setting", NULL, "[default]\ns3 =\n  max_concurrent_requests 20\naws_access_key_id=K\n"
	  "aws_secret_access_key=" SECRET, RC_OK, "K" },
	{ "a profile that is not there", "three", "[default]\naws_access_key_id=K\n", RC_INVALID, "has no profile three" },
	{ "no default profile", NULL, "[two]\naws_access_key_id=K\n", RC_DENIED, "has no profile default" },
	{ "no secret", NULL, "[default]\naws_access_key_id=K\n", RC_INVALID, "must have aws_access_key_id and aws_secret" },
	{ "a program", NULL, "[default]\ncredential_process = /bin/" SECRET "\n", RC_INVALID,
	  "says credential_process, which is not supported" },
	{ "a role", NULL, "[default]\naws_access_key_id=K\naws_secret_access_key=" SECRET "\nrole_arn=arn:x\n", RC_INVALID,
	  "says role_arn, which is not supported" },
	{ "a line without =", NULL, "[default]\n" SECRET "\n", RC_INVALID, "line 2 must be" },
	{ "a profile without its bracket", NULL, "\n\n[default\n", RC_INVALID, "line 3 must be" },
	{ "a setting without a name", NULL, "[default]\n=" SECRET "\n", RC_INVALID, "line 2 must be" },
	{ "an empty file", NULL, "", RC_DENIED, "has no profile default" },
};
/* clang-format on */

TEST(the_shared_file_is_read_by_profile)
{
	struct fixture f;

	set_up(&f);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		CASE(files[i].label);
		set_env("AWS_SHARED_CREDENTIALS_FILE", f.path);
		set_env("AWS_PROFILE", files[i].profile);
		write_file(&f, files[i].file);
		new_identity(&f);
		CHECK(get(&f) == files[i].rc);
		CHECK(files[i].rc || got(&f, files[i].key, SECRET, ""));
		CHECK(!files[i].rc || strstr(f.err.msg, files[i].key));
		CHECK(!strstr(f.err.msg, SECRET));
	}
	tear_down(&f);
}

static void use_web_identity(struct fixture *f)
{
	set_env("AWS_WEB_IDENTITY_TOKEN_FILE", f->path);
	set_env("AWS_ROLE_ARN", "arn:aws:iam::1:role/a b");
	write_file(f, "web&token\n");
}

TEST(a_web_identity_is_exchanged_at_sts)
{
	struct fixture f;

	set_up(&f);
	use_web_identity(&f);
	f.reply = (struct fake_reply){ .status = 200, .body = STS_ANSWER };
	CHECK(get(&f) == RC_OK && got(&f, "ASIASTS", SECRET, "sts-token=="));
	CHECK(strstr(f.seen, "POST /\n") == f.seen);
	CHECK(strstr(f.seen, "Content-Type: application/x-www-form-urlencoded\r\n"));
	CHECK(!strcasestr(f.seen, "authorization"));
	CHECK(strstr(f.seen, "\r\n\r\nAction=AssumeRoleWithWebIdentity&Version=2011-06-15"
	                     "&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa%20b&RoleSessionName=leasehold"
	                     "&WebIdentityToken=web%26token"));
	tear_down(&f);
}

TEST(what_sts_refuses_is_told_without_secrets)
{
	static const struct {
		const char       *label;
		struct fake_reply reply;
		enum rc           rc;
		const char       *says;
	} cases[] = {
		{ "denied",
		  { 403, NULL, "<Error><Code>AccessDenied</Code><Message>" SECRET "</Message></Error>" },
		  RC_DENIED,
		  "AccessDenied" },
		{ "asked too often",
		  { 400, NULL, "<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>" },
		  RC_UNAVAILABLE,
		  "Throttling" },
		{ "cannot ask who signed the token",
		  { 400, NULL, "<ErrorResponse><Error><Code>IDPCommunicationError</Code></Error></ErrorResponse>" },
		  RC_UNAVAILABLE,
		  "IDPCommunicationError" },
		{ "down", { .status = 503 }, RC_UNAVAILABLE, "503" },
		{ "no XML", { .status = 200, .body = SECRET }, RC_UNAVAILABLE, "something other than credentials" },
		{ "two keys",
		  { .status = 200,
		    .body = "<Credentials><AccessKeyId>a</AccessKeyId><AccessKeyId>b</AccessKeyId><SecretAccessKey>c"
		            "</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2015-08-30T13:36:00Z"
		            "</Expiration></Credentials>" },
		  RC_UNAVAILABLE,
		  "something other" },
		{ "an entity",
		  { .status = 200,
		    .body = "<Credentials><AccessKeyId>a&amp;</AccessKeyId><SecretAccessKey>c</SecretAccessKey>"
		            "<SessionToken>t</SessionToken><Expiration>2015-08-30T13:36:00Z</Expiration></Credentials>" },
		  RC_UNAVAILABLE,
		  "something other" },
		{ "no end",
		  { .status = 200,
		    .body = "<Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>c</SecretAccessKey>"
		            "<SessionToken>t</SessionToken></Credentials>" },
		  RC_UNAVAILABLE,
		  "something other" },
		{ "an element that does not end",
		  { .status = 200, .body = "<Credentials><AccessKeyId>a" },
		  RC_UNAVAILABLE,
		  "something other" },
	};
	struct fixture f;

	set_up(&f);
	use_web_identity(&f);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CASE(cases[i].label);
		f.reply = cases[i].reply;
		CHECK(get(&f) == cases[i].rc);
		CHECK(strstr(f.err.msg, "web identity") && strstr(f.err.msg, cases[i].says));
		CHECK(!strstr(f.err.msg, SECRET) && !strstr(f.err.msg, "web&token"));
	}
	tear_down(&f);
}

TEST(a_web_identity_needs_its_file_and_its_role)
{
	struct fixture f;

	set_up(&f);
	set_env("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token");
	CHECK(get(&f) == RC_INVALID && strstr(f.err.msg, "AWS_ROLE_ARN"));
	set_env("AWS_ROLE_ARN", "arn:x");
	CHECK(get(&f) == RC_INVALID && strstr(f.err.msg, "/nowhere/token is not there"));
	set_env("AWS_WEB_IDENTITY_TOKEN_FILE", f.path); /* empty */
	CHECK(get(&f) == RC_INVALID && strstr(f.err.msg, "AWS_WEB_IDENTITY_TOKEN_FILE"));
	CHECK(fake_server_requests(f.server) == 0);
	tear_down(&f);
}

TEST(a_container_is_asked_with_its_token)
{
	struct fixture f;

	set_up(&f);
	hand_out(&f, "ASIACONT", HELD_MINUTES);
	set_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/role?id=1");
	CHECK(get(&f) == RC_OK && got(&f, "ASIACONT", SECRET, "a-token"));
	CHECK(strstr(f.seen, "GET /v2/role?id=1\n") == f.seen && !strcasestr(f.seen, "authorization"));

	set_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", NULL);
	set_env("AWS_CONTAINER_CREDENTIALS_FULL_URI", fake_server_url(f.server, "/full"));
	set_env("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic plain");
	new_identity(&f);
	CHECK(get(&f) == RC_OK && strstr(f.seen, "\r\nAuthorization: Basic plain\r\n"));

	set_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", f.path);
	write_file(&f, "from-file\n");
	new_identity(&f);
	CHECK(get(&f) == RC_OK && strstr(f.seen, "\r\nAuthorization: from-file\r\n"));

	write_file(&f, "two\nX-Lines: 1");
	new_identity(&f);
	CHECK(get(&f) == RC_INVALID && !strstr(f.err.msg, "X-Lines"));
	tear_down(&f);
}

TEST(a_containers_token_goes_nowhere_far)
{
	static const char *const refused[] = {
		"http://example.com/",
		"http://192.0.2.1/",
		"http://127.0.0.1@192.0.2.1/",
		"http://127.0.0.1.nip.io/",
		"http://127.0.0.1\\@192.0.2.1/",
		"http://[2001:db8::1]/",
		"http://169.253.1.1/",
		"http://127.1/",
		"ftp://127.0.0.1/",
		"http://",
		"http://[::1",
		"http://localhost.localhost/",
		"http:/127.0.0.1/",
		"127.0.0.1/",
	};
	struct fixture f;

	set_up(&f);
	set_env("AWS_CONTAINER_AUTHORIZATION_TOKEN", SECRET);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		CASE(refused[i]);
		set_env("AWS_CONTAINER_CREDENTIALS_FULL_URI", refused[i]);
		CHECK(get(&f) == RC_INVALID);
		CHECK(strstr(f.err.msg, "must be https, or http to a loopback or link-local address"));
	}
	tear_down(&f);
}

TEST(an_instance_is_asked_for_a_token_its_role_and_its_keys)
{
	struct fixture f;

	set_up(&f);
	f.has_role = true;
	hand_out(&f, "ASIAINST", HELD_MINUTES);
	CHECK(get(&f) == RC_OK && got(&f, "ASIAINST", SECRET, "a-token"));
	CHECK(fake_server_requests(f.server) == 3);

	f.reply = (struct fake_reply){ .status = 200, .body = "{\"Code\":\"Failed\"}" };
	new_identity(&f);
	CHECK(get(&f) == RC_UNAVAILABLE && strstr(f.err.msg, "something other than credentials"));

	f.has_role = false;
	new_identity(&f);
	CHECK(get(&f) == RC_DENIED && strstr(f.err.msg, "the instance has no role"));

	set_env("AWS_EC2_METADATA_DISABLED", "TRUE");
	new_identity(&f);
	CHECK(get(&f) == RC_DENIED && strstr(f.err.msg, "instance metadata is disabled"));
	CHECK(fake_server_requests(f.server) == 8);
	tear_down(&f);
}

/* --- renewal ---------------------------------------------------------------------------------------------------- */

static void use_container(struct fixture *f)
{
	set_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/role");
	hand_out(f, "K1", HELD_MINUTES);
	CHECK(get(f) == RC_OK && got(f, "K1", SECRET, "a-token"));
}

static void move_to(struct fixture *f, double minutes)
{
	f->clock.test_ms = (int64_t)NOW * 1000 + (int64_t)(minutes * 60000);
}

TEST(credentials_are_kept_until_five_minutes_before_their_end)
{
	struct fixture f;

	set_up(&f);
	use_container(&f);
	hand_out(&f, "K2", 2 * HELD_MINUTES);
	move_to(&f, HELD_MINUTES - 5.1);
	CHECK(get(&f) == RC_OK && got(&f, "K1", SECRET, "a-token"));
	CHECK(fake_server_requests(f.server) == 1);
	move_to(&f, HELD_MINUTES - 4.9);
	CHECK(get(&f) == RC_OK && got(&f, "K2", SECRET, "a-token"));
	CHECK(get(&f) == RC_OK && fake_server_requests(f.server) == 2);
	tear_down(&f);
}

TEST(a_failed_renewal_keeps_what_is_still_valid)
{
	struct fixture f;

	set_up(&f);
	use_container(&f);
	f.reply = (struct fake_reply){ .status = 500 };
	move_to(&f, HELD_MINUTES - 4);
	CHECK(get(&f) == RC_OK && got(&f, "K1", SECRET, "a-token"));
	CHECK(get(&f) == RC_OK && fake_server_requests(f.server) == 2); /* not asked again at once */
	move_to(&f, HELD_MINUTES - 2.5);
	CHECK(get(&f) == RC_OK && fake_server_requests(f.server) == 3);
	move_to(&f, HELD_MINUTES);
	CHECK(get(&f) == RC_UNAVAILABLE && strstr(f.err.msg, "container"));
	hand_out(&f, "K2", 2 * HELD_MINUTES);
	CHECK(get(&f) == RC_OK && got(&f, "K2", SECRET, "a-token"));
	tear_down(&f);
}

TEST(credentials_that_had_already_ended_are_refused)
{
	struct fixture f;

	set_up(&f);
	set_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/role");
	hand_out(&f, "K1", -1);
	CHECK(get(&f) == RC_DENIED && strstr(f.err.msg, "already ended"));
	tear_down(&f);
}

TEST(refused_credentials_are_replaced_unless_they_already_were)
{
	struct fixture         f;
	struct aws_credentials first;

	set_up(&f);
	use_container(&f);
	first = f.got;
	hand_out(&f, "K2", HELD_MINUTES);
	aws_identity_refuse(f.identity, &first);
	CHECK(get(&f) == RC_OK && got(&f, "K2", SECRET, "a-token"));
	aws_identity_refuse(f.identity, &first);
	CHECK(get(&f) == RC_OK && fake_server_requests(f.server) == 2);
	f.reply = (struct fake_reply){ .status = 500 };
	aws_identity_refuse(f.identity, &f.got);
	CHECK(get(&f) == RC_OK && got(&f, "K2", SECRET, "a-token")); /* nothing better to be had */
	tear_down(&f);
}

/* Not NULL when they are the second ones. */
static void *get_in_thread(void *arg)
{
	struct fixture        *f = arg;
	struct arena           a = { 0 };
	struct aws_credentials c;
	bool                   is_new;

	if (aws_identity_get(f->identity, &a, &c, NULL))
		return NULL;
	is_new = str_eq(c.access_key, STR("K2"));
	arena_fini(&a);
	return (void *)(uintptr_t)is_new;
}

TEST(while_one_renews_the_others_use_the_old_ones)
{
	struct fixture f;
	pthread_t      renewer;
	void          *which;

	set_up(&f);
	use_container(&f);
	hand_out(&f, "K2", 2 * HELD_MINUTES);
	move_to(&f, HELD_MINUTES - 4);
	f.is_gated = true;
	CHECK(pthread_create(&renewer, NULL, get_in_thread, &f) == 0);
	CHECK(sem_wait(&f.is_asked) == 0);
	CHECK(get(&f) == RC_OK && got(&f, "K1", SECRET, "a-token"));
	sem_post(&f.may_answer);
	CHECK(pthread_join(renewer, &which) == 0);
	CHECK((uintptr_t)which == true);
	CHECK(fake_server_requests(f.server) == 2);
	tear_down(&f);
}

TEST(at_first_use_one_thread_asks_for_all)
{
	struct fixture f;
	pthread_t      threads[THREADS];

	set_up(&f);
	set_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/role");
	hand_out(&f, "K2", HELD_MINUTES);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, get_in_thread, &f) == 0);
	for (int i = 0; i < THREADS; i++) {
		void *which;

		CHECK(pthread_join(threads[i], &which) == 0);
		CHECK((uintptr_t)which == true);
	}
	CHECK(fake_server_requests(f.server) == 1);
	tear_down(&f);
}
