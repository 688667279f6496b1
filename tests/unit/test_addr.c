/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/addr.h"
#include "base/arena.h"
#include "base/utf8.h"

static const struct {
	const char     *text;
	enum addr_place place;
} cases[] = {
	{ "8.8.8.8", ADDR_PUBLIC },
	{ "172.15.255.255", ADDR_PUBLIC },
	{ "172.32.0.1", ADDR_PUBLIC },
	{ "100.63.255.255", ADDR_PUBLIC },
	{ "2606:4700::1111", ADDR_PUBLIC },
	{ "64:ff9b::8.8.8.8", ADDR_PUBLIC },
	{ "64:ff9b:1::8.8.8.8", ADDR_PUBLIC },
	{ "64:ff9b:1::10.0.0.1", ADDR_PRIVATE },
	{ "64:ff9b:1::169.254.169.254", ADDR_FORBIDDEN },
	{ "64:ff9b:1:a9fe:a9:fe00::", ADDR_FORBIDDEN },
	{ "64:ff9b:1:7f:0:100::", ADDR_PRIVATE },
	{ "64:ff9b:1:ffff:a9:fea9:fe00:0", ADDR_FORBIDDEN },
	{ "2002:808:808::1", ADDR_PUBLIC },
	{ "2002:7f00:1::", ADDR_PRIVATE },
	{ "2002:a9fe:a9fe::1", ADDR_FORBIDDEN },
	{ "::ffff:8.8.8.8", ADDR_PUBLIC },
	{ "::ffff:0:8.8.8.8", ADDR_PUBLIC },
	{ "::ffff:0:127.0.0.1", ADDR_PRIVATE },
	{ "::ffff:0:169.254.169.254", ADDR_FORBIDDEN },
	{ "2001:0:1::f5ff:fffe", ADDR_FORBIDDEN },
	{ "127.0.0.1", ADDR_PRIVATE },
	{ "127.255.255.254", ADDR_PRIVATE },
	{ "0.0.0.0", ADDR_PRIVATE },
	{ "10.1.2.3", ADDR_PRIVATE },
	{ "172.16.0.1", ADDR_PRIVATE },
	{ "172.31.255.255", ADDR_PRIVATE },
	{ "192.168.1.1", ADDR_PRIVATE },
	{ "100.64.0.1", ADDR_PRIVATE },
	{ "::", ADDR_PRIVATE },
	{ "::1", ADDR_PRIVATE },
	{ "fd12:3456::1", ADDR_PRIVATE },
	{ "::ffff:10.0.0.1", ADDR_PRIVATE },
	{ "64:ff9b::10.0.0.1", ADDR_PRIVATE },
	{ "169.254.169.254", ADDR_FORBIDDEN },
	{ "169.254.0.1", ADDR_FORBIDDEN },
	{ "::ffff:169.254.169.254", ADDR_FORBIDDEN },
	{ "64:ff9b::169.254.169.254", ADDR_FORBIDDEN },
	{ "100.100.100.200", ADDR_FORBIDDEN },
	{ "168.63.129.16", ADDR_FORBIDDEN },
	{ "fd00:ec2::254", ADDR_FORBIDDEN },
	{ "fd20:ce::254", ADDR_FORBIDDEN },
	{ "fe80::1", ADDR_FORBIDDEN },
	{ "febf::1", ADDR_FORBIDDEN },
	{ "ff02::1", ADDR_FORBIDDEN },
	{ "224.0.0.1", ADDR_FORBIDDEN },
	{ "255.255.255.255", ADDR_FORBIDDEN },
};

TEST(each_address_lies_where_it_lies)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		enum addr_place place = ADDR_PUBLIC;

		CASE(cases[i].text);
		CHECK(addr_place_of_text(str_from(cases[i].text), &place));
		CHECK(place == cases[i].place);
	}
}

TEST(what_is_no_address_has_no_place)
{
	static const char *const texts[] = { "", "localhost", "1.2.3", "0x7f.0.0.1", "127.1", "[::1]", "::1%lo" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		enum addr_place place;

		CASE(texts[i]);
		CHECK(!addr_place_of_text(str_from(texts[i]), &place));
	}
}

TEST(a_socket_address_lies_where_its_text_does)
{
	struct sockaddr_in  v4 = { .sin_family = AF_INET, .sin_addr = { htonl(0x0a000001) } };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_un  local = { .sun_family = AF_UNIX };

	CHECK(addr_place((const struct sockaddr *)&v4) == ADDR_PRIVATE);
	CHECK(addr_place((const struct sockaddr *)&v6) == ADDR_PRIVATE);
	CHECK(addr_place((const struct sockaddr *)&local) == ADDR_FORBIDDEN);
}

TEST(http_goes_no_further_than_its_reach)
{
	static const struct {
		const char *url;
		bool        is_loopback, is_near;
	} urls[] = {
		{ "https://sso.example.org", true, true },
		{ "https://", false, false },
		{ "http://sso.example.org", false, false },
		{ "http://127.0.0.1:80/x", true, true },
		{ "http://127.9.9.9", true, true },
		{ "http://localhost", true, true },
		{ "http://localhost:80?x", true, true },
		{ "http://[::1]:80/x", true, true },
		{ "http://[::1]", true, true },
		{ "http://169.254.170.2/x", false, true },
		{ "http://[fe80::1]/", false, true },
		{ "http://[fd00:ec2::23]/v1", false, true },
		{ "http://10.0.0.1", false, false },
		{ "http://127.1", false, false },
		{ "http://::1", false, false },
		{ "http://[::1", false, false },
		{ "http://[::1]80/x", false, false },
		{ "http://[::1]@example.org/x", false, false },
		{ "http://[::1]:80@example.org/x", false, false },
		{ "http://[::1]:80:90", false, false },
		{ "http://localhost:80:90", false, false },
		{ "http://127.0.0.1:80:", false, false },
		{ "http://localhost:h", false, false },
		{ "http://localhost:x@example.org", false, false },
		{ "http://localhost5", false, false },
		{ "http://", false, false },
		{ "http:/", false, false },
		{ "", false, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		CASE(urls[i].url);
		CHECK(url_is_safe(str_from(urls[i].url), ADDR_LOOPBACK) == urls[i].is_loopback);
		CHECK(url_is_safe(str_from(urls[i].url), ADDR_LINK_LOCAL) == urls[i].is_near);
	}
}

TEST(a_line_has_no_control_characters_and_only_whole_ones)
{
	static const struct {
		const char *from, *to;
		size_t      max;
	} lines[] = {
		{ "plain", "plain", 99 },
		{ "a\r\nb\tc\x7f", "a  b c ", 99 },
		{ "\xc2\x85x\xe2\x80\xa8y", " x y", 99 },
		{ "\xff\xc3\xa4\xc3", "?\xc3\xa4?", 99 },
		{ "\xed\xa0\x80", "???", 99 },
		{ "a\xc3\xa4", "a", 2 },
		{ "abc", "", 0 },
	};
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		CASE(lines[i].from);
		CHECK(str_eq(utf8_line(&a, str_from(lines[i].from), lines[i].max), str_from(lines[i].to)));
	}
	arena_fini(&a);
}
