/* SPDX-License-Identifier: Apache-2.0 */
/* test_forwarded.c - which client is found behind which proxies. */
#include "test.h"

#include "http/server/forwarded.h"
#include "net/http1.h"

static struct ip ip(const char *text)
{
	struct ip found = { { 0 } };

	CHECK(ip_of_text(str_from(text), &found));
	return found;
}

/* The peer is 10.0.0.1; trusted are 10.0.0.0/8 and 2001:db8:ffff::/48. */
static const struct {
	const char *name, *value, *more; /* more: a second line of the same header, or NULL */
	const char *client;
} cases[] = {
	{ "X-Other", "203.0.113.1", NULL, "10.0.0.1" },
	{ "x-forwarded-for", "203.0.113.1", NULL, "203.0.113.1" },
	{ "X-Forwarded-For", "203.0.113.1:1234", NULL, "203.0.113.1" },
	{ "X-Forwarded-For", "6.6.6.6, 203.0.113.1", NULL, "203.0.113.1" },
	{ "X-Forwarded-For", "6.6.6.6, 203.0.113.1 , 10.2.3.4", NULL, "203.0.113.1" },
	{ "X-Forwarded-For", "6.6.6.6", "203.0.113.1, 10.2.3.4", "203.0.113.1" },
	{ "X-Forwarded-For", "203.0.113.1", "10.2.3.4", "203.0.113.1" },
	{ "X-Forwarded-For", "10.5.5.5, 10.2.3.4", NULL, "10.5.5.5" },
	{ "X-Forwarded-For", "203.0.113.1, unknown, 10.2.3.4", NULL, "10.2.3.4" },
	{ "X-Forwarded-For", "203.0.113.1, ", NULL, "10.0.0.1" },
	{ "X-Forwarded-For", "", NULL, "10.0.0.1" },
	{ "X-Forwarded-For", ",,,,", NULL, "10.0.0.1" },
	{ "X-Forwarded-For", "2001:db8::7", NULL, "2001:db8::7" },
	{ "X-Forwarded-For", "[2001:db8::7]:443, 2001:db8:ffff::1", NULL, "2001:db8::7" },
	{ "X-Forwarded-For", "[", NULL, "10.0.0.1" },
	{ "X-Forwarded-For", "::ffff:203.0.113.1", NULL, "203.0.113.1" },
	{ "Forwarded", "for=203.0.113.1", NULL, "203.0.113.1" },
	{ "Forwarded", "proto=https;For=\"[2001:db8::7]:4711\";by=10.0.0.1", NULL, "2001:db8::7" },
	{ "Forwarded", "for=6.6.6.6;proto=http, for=\"203.0.113.1:80\", for=10.9.9.9", NULL, "203.0.113.1" },
	{ "Forwarded", "for=203.0.113.1, for=_hidden", NULL, "10.0.0.1" },
	{ "Forwarded", "proto=https", NULL, "10.0.0.1" },
	{ "Forwarded", "203.0.113.1", NULL, "10.0.0.1" },
};

TEST(the_client_is_the_last_one_that_no_trusted_proxy_is)
{
	struct proxies trusted;

	CHECK(!proxies_parse(STR("10.0.0.0/8,2001:db8:ffff::/48"), &trusted, NULL));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http_request req = { .header_count = cases[i].more ? 2 : 1 };
		struct ip           peer = ip("10.0.0.1"), wanted = ip(cases[i].client), found;

		CASE(cases[i].value);
		req.headers[0] = (struct http_header){ str_from(cases[i].name), str_from(cases[i].value) };
		req.headers[1] = (struct http_header){ str_from(cases[i].name), str_from(cases[i].more) };
		found = forwarded_client(&trusted, &peer, &req);
		CHECK(memcmp(&found, &wanted, sizeof(found)) == 0);
	}
}

TEST(headers_that_disagree_leave_the_peer)
{
	struct http_request req = { .header_count = 2 };
	struct ip           peer = ip("10.0.0.1"), client = ip("203.0.113.1"), found;
	struct proxies      trusted;

	CHECK(!proxies_parse(STR("10.0.0.1"), &trusted, NULL));
	req.headers[0] = (struct http_header){ STR("X-Forwarded-For"), STR("203.0.113.1") };
	req.headers[1] = (struct http_header){ STR("Forwarded"), STR("for=203.0.113.2") };
	found = forwarded_client(&trusted, &peer, &req);
	CHECK(memcmp(&found, &peer, sizeof(found)) == 0);
	req.headers[1].value = STR("for=203.0.113.1");
	found = forwarded_client(&trusted, &peer, &req);
	CHECK(memcmp(&found, &client, sizeof(found)) == 0);
}

TEST(a_chain_without_end_is_not_followed)
{
	struct http_request req = { .header_count = 1 };
	struct ip           peer = ip("10.0.0.1"), found;
	struct proxies      trusted;
	char                text[2000] = "203.0.113.1";

	CHECK(!proxies_parse(STR("10.0.0.0/8"), &trusted, NULL));
	for (int i = 0; i < 100; i++)
		memcpy(text + strlen(text), ",10.0.0.2", sizeof(",10.0.0.2"));
	req.headers[0] = (struct http_header){ STR("X-Forwarded-For"), str_from(text) };
	found = forwarded_client(&trusted, &peer, &req);
	CHECK(proxies_trust(&trusted, &found));
}

TEST(what_is_no_network_is_refused)
{
	static const char *const wrong[] = { "x",  "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/",
		                             "/8", "10.0.0.1,,",  "::1/129",     "10.0.0.0/8/8" };
	struct proxies           p;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct err e = { 0 };

		CASE(wrong[i]);
		CHECK(proxies_parse(str_from(wrong[i]), &p, &e) == RC_INVALID && e.msg[0]);
	}
	CHECK(!proxies_parse(STR(""), &p, NULL) && p.count == 0);
	CHECK(!proxies_parse(STR("0.0.0.0/0"), &p, NULL));
	CHECK(proxies_trust(&p, &(struct ip){ .bytes = { [10] = 0xff, 0xff, 1, 2, 3, 4 } }));
	CHECK(!proxies_trust(&p, &(struct ip){ .bytes = { 0x20, 1 } }));
}
