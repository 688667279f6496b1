/* peers.h - how many connections each client address has, in memory that is bounded by the number of connections. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* An address as it is counted: IPv4 alone, IPv6 by its first 64 bits, which is what one client usually gets. */
struct peer_key {
	uint8_t bytes[16];
};

struct peers;

/* Room for as many different addresses as there may be connections. */
struct peers *peers_new(unsigned connections_max);
void          peers_free(struct peers *p);

struct peer_key peer_key(const struct sockaddr *address);

/* One more connection of this address, unless it has max already. Every true needs one peers_leave(). */
bool peers_join(struct peers *p, const struct peer_key *key, unsigned max);
void peers_leave(struct peers *p, const struct peer_key *key);
