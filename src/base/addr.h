/* addr.h - where an IP address lies: on the internet, in a private network, or where no request may go; and which are
 * so near that they may be called without TLS. */
#pragma once

#include "base/str.h"

struct sockaddr;

/* From harmless to worst. */
enum addr_place {
	ADDR_PUBLIC,
	ADDR_PRIVATE,   /* this machine, private networks */
	ADDR_FORBIDDEN, /* link-local, a cloud's metadata, multicast, no IP address: never called for others */
};

/* A text such as 10.0.0.1 or fe80::1, without brackets. False when it is not an address. */
bool addr_place_of_text(struct str text, enum addr_place *ret);

enum addr_place addr_place(const struct sockaddr *sa);

/* An address of either family: IPv4 as ::ffff:a.b.c.d. */
struct ip {
	uint8_t bytes[16];
};

enum { IP_BITS = 128, IP_MAPPED_BITS = 96 }; /* an IPv4 network of n bits has IP_MAPPED_BITS + n here */

/* All zero when it is not an IP address. */
struct ip ip_of(const struct sockaddr *sa);
bool      ip_of_text(struct str text, struct ip *ret); /* as above */

bool ip_is_v4(const struct ip *ip);

/* Are the first bits the same? */
bool ip_is_within(const struct ip *ip, const struct ip *network, unsigned bits);

/* How far http may go. */
enum addr_reach { ADDR_LOOPBACK, ADDR_LINK_LOCAL };

/* Is it localhost or an address within this reach, with a port or without, and nothing else? */
bool addr_is_near(struct str authority, enum addr_reach reach);

/* Is it https, or http within this reach? */
bool url_is_safe(struct str url, enum addr_reach http_reach);
