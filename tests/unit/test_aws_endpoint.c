/* SPDX-License-Identifier: Apache-2.0 */
/* Which address a service has, by AWS's own variables. */
#include "test.h"

#include "base/arena.h"
#include "net/aws_endpoint.h"

static struct {
	const char *all, *own, *ignore;
} variables;

static const char *env(const char *name)
{
	if (strcmp(name, "AWS_ENDPOINT_URL") == 0)
		return variables.all;
	if (strcmp(name, "AWS_ENDPOINT_URL_SSO_ADMIN") == 0)
		return variables.own;
	return strcmp(name, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") == 0 ? variables.ignore : NULL;
}

TEST(a_services_own_variable_wins_over_that_of_all)
{
	static const struct {
		const char *label, *all, *own, *ignore, *url;
	} rows[] = {
		{ "none", NULL, NULL, NULL, NULL },
		{ "empty ones", "", "", "", NULL },
		{ "of all", "https://aws.example.org", NULL, NULL, "https://aws.example.org" },
		{ "its own", "https://aws.example.org", "https://sso.example.org:8443", NULL,
		  "https://sso.example.org:8443" },
		{ "its own alone", NULL, "http://127.0.0.1:4566/", NULL, "http://127.0.0.1:4566" },
		{ "ignored", "https://aws.example.org", "https://sso.example.org", "TRUE", NULL },
		{ "not ignored", "https://aws.example.org", NULL, "false", "https://aws.example.org" },
		{ "an IPv6 address", "http://[::1]:1", NULL, NULL, "http://[::1]:1" },
		{ "a name of this machine", "http://localhost:1", NULL, NULL, "http://localhost:1" },
		{ "a path", "http://127.0.0.1:1/sub//", NULL, NULL, "http://127.0.0.1:1/sub" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena a = { 0 };
		struct err   e = { 0 };
		const char  *url = "unset";

		CASE(rows[i].label);
		variables.all = rows[i].all;
		variables.own = rows[i].own;
		variables.ignore = rows[i].ignore;
		CHECK(aws_endpoint(env, "SSO_ADMIN", &a, &url, &e) == RC_OK);
		CHECK(rows[i].url ? url && strcmp(url, rows[i].url) == 0 : !url);
		arena_fini(&a);
	}
}

TEST(http_goes_no_further_than_this_machine)
{
	static const char *const refused[] = { "http://aws.example.org",
		                               "http://10.0.0.1:80",
		                               "http://169.254.169.254/",
		                               "http://127.0.0.1.example.org",
		                               "http://localhost@example.org/",
		                               "http://0.0.0.0/",
		                               "ftp://127.0.0.1/",
		                               "127.0.0.1:4566",
		                               "https://",
		                               "https://user@aws.example.org",
		                               "https://aws.example.org/?a=b",
		                               "https://aws.example.org/#x",
		                               "https://aws.example.org/ x" };

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct arena a = { 0 };
		struct err   e = { 0 };
		const char  *url = NULL;

		CASE(refused[i]);
		variables.all = NULL;
		variables.own = refused[i];
		variables.ignore = NULL;
		CHECK(aws_endpoint(env, "SSO_ADMIN", &a, &url, &e) == RC_INVALID);
		CHECK(strstr(e.msg, "AWS_ENDPOINT_URL_SSO_ADMIN: ") == e.msg);
		err_clear(&e);
		variables.all = refused[i];
		variables.own = NULL;
		CHECK(aws_endpoint(env, "SSO_ADMIN", &a, &url, &e) == RC_INVALID);
		CHECK(strstr(e.msg, "AWS_ENDPOINT_URL: ") == e.msg);
		arena_fini(&a);
	}
}
