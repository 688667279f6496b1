/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addr.c - the special IP addresses, as tables; which addresses may be called without TLS.
 *
 * IPv4 addresses are looked up in their IPv6 form ::ffff:a.b.c.d, and so are those that a translator would turn an IPv6
 * address into: no address can hide behind its family. The first row that fits decides, so exceptions come first.
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define MAPPED 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff

enum { MAPPED_BITS = IP_MAPPED_BITS, TEXT_MAX = 63 };

/* clang-format off */
static const struct {
	unsigned char   bytes[16];
	unsigned        bits;
	enum addr_place place;
} rows[] = {
	{ { MAPPED, 169, 254 },             MAPPED_BITS + 16, ADDR_FORBIDDEN }, /* link-local, metadata */
	{ { MAPPED, 100, 100, 100, 200 },   MAPPED_BITS + 32, ADDR_FORBIDDEN }, /* metadata, Alibaba */
	{ { MAPPED, 168, 63, 129, 16 },     MAPPED_BITS + 32, ADDR_FORBIDDEN }, /* metadata, Azure */
	{ { MAPPED, 192, 0, 0, 192 },       MAPPED_BITS + 32, ADDR_FORBIDDEN }, /* metadata, Oracle */
	{ { MAPPED, 224 },                  MAPPED_BITS + 4,  ADDR_FORBIDDEN }, /* multicast */
	{ { MAPPED, 240 },                  MAPPED_BITS + 4,  ADDR_FORBIDDEN }, /* reserved, broadcast */
	{ { MAPPED, 0 },                    MAPPED_BITS + 8,  ADDR_PRIVATE },   /* "this host" is loopback on Linux */
	{ { MAPPED, 127 },                  MAPPED_BITS + 8,  ADDR_PRIVATE },
	{ { MAPPED, 10 },                   MAPPED_BITS + 8,  ADDR_PRIVATE },
	{ { MAPPED, 172, 16 },              MAPPED_BITS + 12, ADDR_PRIVATE },
	{ { MAPPED, 192, 168 },             MAPPED_BITS + 16, ADDR_PRIVATE },
	{ { MAPPED, 100, 64 },              MAPPED_BITS + 10, ADDR_PRIVATE },   /* carrier-grade NAT */
	{ { MAPPED, 192, 0, 0 },            MAPPED_BITS + 24, ADDR_PRIVATE },   /* protocol assignments */
	{ { MAPPED, 198, 18 },              MAPPED_BITS + 15, ADDR_PRIVATE },   /* benchmarks */
	{ { MAPPED },                       MAPPED_BITS,      ADDR_PUBLIC },
	{ { 0xfd, 0, 0x0e, 0xc2, [14] = 0x02, 0x54 }, 128,    ADDR_FORBIDDEN }, /* metadata, AWS */
	{ { 0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54 }, 128,    ADDR_FORBIDDEN }, /* metadata, Google */
	{ { 0xfe, 0x80 },                   10,               ADDR_FORBIDDEN }, /* link-local */
	{ { 0xff },                         8,                ADDR_FORBIDDEN }, /* multicast */
	{ { 0 },                            96,               ADDR_PRIVATE },   /* ::, ::1 and the old form of IPv4 */
	{ { 0xfc },                         7,                ADDR_PRIVATE },   /* unique local */
	{ { 0xfe, 0xc0 },                   10,               ADDR_PRIVATE },   /* the former site-local */
	{ { 0x20, 0x01, 0, 0 },             32,               ADDR_FORBIDDEN }, /* Teredo: an IPv4 address, inverted */
};
/* clang-format on */

static const unsigned char mapped[12] = { MAPPED };

/* Prefixes in front of an IPv4 address that a translator leads to. Where the prefix does not say which bytes that
 * address has, the worst reading counts. The first row that fits decides. */
/* clang-format off */
static const struct {
	unsigned char bytes[16];
	unsigned      bits;
	unsigned      reading_count;
	unsigned char readings[4][4]; /* places of the IPv4 address */
} carriers[] = {
	{ { 0, 0x64, 0xff, 0x9b },            96, 1, { { 12, 13, 14, 15 } } }, /* NAT64 (RFC 6052) */
	{ { 0, 0x64, 0xff, 0x9b, 0, 1 },      96, 1, { { 12, 13, 14, 15 } } }, /* local NAT64 (RFC 8215) */
	{ { 0, 0x64, 0xff, 0x9b, 0, 1 },      48, 4,
	  { { 6, 7, 9, 10 }, { 7, 9, 10, 11 }, { 9, 10, 11, 12 }, { 12, 13, 14, 15 } } },
	{ { 0x20, 0x02 },                     16, 1, { { 2, 3, 4, 5 } } },     /* 6to4 (RFC 3056) */
	{ { [8] = 0xff, 0xff },               96, 1, { { 12, 13, 14, 15 } } }, /* ::ffff:0:a.b.c.d (RFC 2765) */
};
/* clang-format on */

static bool begins_with(const unsigned char address[16], const unsigned char prefix[16], unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(address, prefix, whole) != 0)
		return false;
	return rest == 0 || (address[whole] ^ prefix[whole]) >> (8 - rest) == 0;
}

static enum addr_place place_of_plain(const unsigned char address[16])
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (begins_with(address, rows[i].bytes, rows[i].bits))
			return rows[i].place;
	return ADDR_PUBLIC;
}

static enum addr_place place_of_carried(const unsigned char address[16], size_t carrier)
{
	enum addr_place worst = ADDR_PUBLIC;

	for (unsigned i = 0; i < carriers[carrier].reading_count; i++) {
		unsigned char   inside[16] = { MAPPED };
		enum addr_place place;

		for (unsigned k = 0; k < 4; k++)
			inside[sizeof(mapped) + k] = address[carriers[carrier].readings[i][k]];
		place = place_of_plain(inside);
		worst = place > worst ? place : worst;
	}
	return worst;
}

static enum addr_place place_of(const struct ip *ip)
{
	for (size_t i = 0; i < ARRAY_LEN(carriers); i++)
		if (begins_with(ip->bytes, carriers[i].bytes, carriers[i].bits))
			return place_of_carried(ip->bytes, i);
	return place_of_plain(ip->bytes);
}

struct ip ip_of(const struct sockaddr *sa)
{
	struct ip ip = { { 0 } };

	if (sa->sa_family == AF_INET) {
		struct sockaddr_in v4;

		memcpy(&v4, sa, sizeof(v4));
		memcpy(ip.bytes, mapped, sizeof(mapped));
		memcpy(ip.bytes + sizeof(mapped), &v4.sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 v6;

		memcpy(&v6, sa, sizeof(v6));
		memcpy(ip.bytes, &v6.sin6_addr, sizeof(ip.bytes));
	}
	return ip;
}

bool ip_of_text(struct str text, struct ip *ret)
{
	char      copy[TEXT_MAX + 1] = "";
	struct ip ip = { { MAPPED } };

	if (text.n == 0 || text.n > TEXT_MAX)
		return false;
	memcpy(copy, text.p, text.n);
	if (inet_pton(AF_INET, copy, ip.bytes + sizeof(mapped)) != 1 && inet_pton(AF_INET6, copy, ip.bytes) != 1)
		return false;
	*ret = ip;
	return true;
}

bool ip_is_v4(const struct ip *ip)
{
	return memcmp(ip->bytes, mapped, sizeof(mapped)) == 0;
}

bool ip_is_within(const struct ip *ip, const struct ip *network, unsigned bits)
{
	return begins_with(ip->bytes, network->bytes, bits);
}

enum addr_place addr_place(const struct sockaddr *sa)
{
	struct ip ip = ip_of(sa);

	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return ADDR_FORBIDDEN;
	return place_of(&ip);
}

bool addr_place_of_text(struct str text, enum addr_place *ret)
{
	struct ip ip;

	if (!ip_of_text(text, &ip))
		return false;
	*ret = place_of(&ip);
	return true;
}

/* --- without TLS --- */

/* The host. Empty when there is a user, or anything that readers of URLs may understand differently. */
static struct str host_of(struct str authority)
{
	struct str host;

	if (authority.n && authority.p[0] == '[') {
		authority = str_skip(authority, 1);
		host = memchr(authority.p, ']', authority.n) ? str_cut(&authority, ']') : STR("");
		if (authority.n && !str_cut_prefix(&authority, STR(":")))
			return STR("");
	} else {
		host = str_cut(&authority, ':');
	}
	return str_is_of(authority, "0-9") ? host : STR("");
}

bool addr_is_near(struct str authority, enum addr_reach reach)
{
	/* clang-format off */
	static const struct {
		unsigned char   bytes[16];
		unsigned        bits;
		enum addr_reach reach;
	} near[] = {
		{ { MAPPED, 127 },                         MAPPED_BITS + 8,  ADDR_LOOPBACK },
		{ { [15] = 1 },                            128,              ADDR_LOOPBACK },
		{ { MAPPED, 169, 254 },                    MAPPED_BITS + 16, ADDR_LINK_LOCAL },
		{ { 0xfe, 0x80 },                          10,               ADDR_LINK_LOCAL },
		{ { 0xfd, 0, 0x0e, 0xc2, [15] = 0x23 },    128,              ADDR_LINK_LOCAL }, /* EKS's endpoint */
	};
	/* clang-format on */
	struct str host = host_of(authority);
	struct ip  ip;

	if (str_eq(host, STR("localhost")))
		return true;
	for (size_t i = 0; ip_of_text(host, &ip) && i < ARRAY_LEN(near); i++)
		if (near[i].reach <= reach && begins_with(ip.bytes, near[i].bytes, near[i].bits))
			return true;
	return false;
}

bool url_is_safe(struct str url, enum addr_reach http_reach)
{
	size_t n = 0;

	if (str_cut_prefix(&url, STR("https://")))
		return url.n > 0;
	if (!str_cut_prefix(&url, STR("http://")))
		return false;
	while (n < url.n && !memchr("/?#", url.p[n], 3))
		n++;
	return addr_is_near(str_of(url.p, n), http_reach);
}
