/* addr.h - where an IP address lies: on the internet, in a network of one's own, or where nobody has business. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

struct sockaddr;

enum addr_place {
	ADDR_PUBLIC,
	ADDR_PRIVATE, /* this machine, private networks */
	ADDR_FORBIDDEN, /* link-local and a cloud's metadata, multicast, not an IP address: never to be called for somebody else */
};

/* A text such as 10.0.0.1 or fe80::1, without brackets. False when it is no address. */
bool addr_place_of_text(struct str text, enum addr_place *ret);

enum addr_place addr_place(const struct sockaddr *sa);
