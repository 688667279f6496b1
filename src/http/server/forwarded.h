/* forwarded.h - whom a request comes from when proxies that we trust stand in between. Pure. */
#pragma once

#include "base/addr.h"
#include "base/err.h"
#include "base/str.h"

struct http_request;

enum { PROXIES_MAX = 64 };

/* The networks whose proxies are believed when they say for whom they ask. */
struct proxies {
	struct {
		struct ip address;
		unsigned  bits;
	} networks[PROXIES_MAX];
	size_t count;
};

/* "10.0.0.0/8, 192.0.2.1, 2001:db8::/32"; empty: none. RC_INVALID, with what is wrong. */
MUST_CHECK enum rc proxies_parse(struct str text, struct proxies *ret, struct err *e);

bool proxies_trust(const struct proxies *p, const struct ip *address);

/* The client behind a trusted peer, from X-Forwarded-For or Forwarded: the last address that is not of a trusted
 * proxy. When there is none, or both headers are there and name different ones, it is the last one that is sure. */
struct ip forwarded_client(const struct proxies *p, const struct ip *peer, const struct http_request *req);
