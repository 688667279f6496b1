/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addr.c - the special IP addresses, as one table.
 *
 * IPv4 addresses are looked up as their IPv6 form ::ffff:a.b.c.d, and what NAT64 would turn into IPv4 as that: an address cannot be
 * disguised by its family. The first row that fits decides, so exceptions stand above what they are exceptions of.
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/attr.h"

#define MAPPED 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff

enum { MAPPED_BITS = 96, TEXT_MAX = 63 };

/* clang-format off */
static const struct {
	unsigned char   bytes[16];
	unsigned        bits;
	enum addr_place place;
} rows[] = {
	{ { MAPPED, 169, 254 },             MAPPED_BITS + 16, ADDR_FORBIDDEN }, /* link-local: metadata of most clouds */
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
};
/* clang-format on */

static const unsigned char nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
static const unsigned char mapped[12] = { MAPPED };

static bool begins_with(const unsigned char address[16], const unsigned char prefix[16], unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(address, prefix, whole) != 0)
		return false;
	return rest == 0 || (address[whole] ^ prefix[whole]) >> (8 - rest) == 0;
}

static enum addr_place place_of_v6(const unsigned char given[16])
{
	unsigned char address[16];

	memcpy(address, given, sizeof(address));
	if (memcmp(address, nat64, sizeof(nat64)) == 0)
		memcpy(address, mapped, sizeof(mapped));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (begins_with(address, rows[i].bytes, rows[i].bits))
			return rows[i].place;
	return ADDR_PUBLIC;
}

static enum addr_place place_of_v4(const unsigned char given[4])
{
	unsigned char address[16] = { MAPPED };

	memcpy(address + sizeof(mapped), given, 4);
	return place_of_v6(address);
}

enum addr_place addr_place(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET) {
		struct sockaddr_in v4;

		memcpy(&v4, sa, sizeof(v4));
		return place_of_v4((const unsigned char *)&v4.sin_addr);
	}
	if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 v6;

		memcpy(&v6, sa, sizeof(v6));
		return place_of_v6(v6.sin6_addr.s6_addr);
	}
	return ADDR_FORBIDDEN;
}

bool addr_place_of_text(struct str text, enum addr_place *ret)
{
	char          copy[TEXT_MAX + 1] = "";
	unsigned char address[16];

	if (text.n == 0 || text.n > TEXT_MAX)
		return false;
	memcpy(copy, text.p, text.n);
	if (inet_pton(AF_INET, copy, address) == 1) {
		*ret = place_of_v4(address);
		return true;
	}
	if (inet_pton(AF_INET6, copy, address) != 1)
		return false;
	*ret = place_of_v6(address);
	return true;
}
