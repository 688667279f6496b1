/* clients.h - how many connections each client address has, in memory that is bounded by the number of connections. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

/* An address as it is counted: IPv4 alone, IPv6 by its first 64 bits, which is what one client usually gets. */
struct client_key {
	uint8_t bytes[16];
};

struct clients;

/* Room for as many different addresses as there may be connections. */
struct clients *clients_new(unsigned connections_max);
void            clients_free(struct clients *p);

struct client_key client_key(const struct ip *address);

/* One more connection of this address, unless it has max already. Every true needs one clients_leave(). */
bool clients_join(struct clients *p, const struct client_key *key, unsigned max);
void clients_leave(struct clients *p, const struct client_key *key);
