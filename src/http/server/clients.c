/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clients.c - a hash table from client address to its number of connections.
 *
 * Open addressing with linear probing. An address is in the table while it has a connection, so a table of twice the
 * connection limit is never more than half full and needs no growth. Removal moves later entries back, so there are no
 * tombstones. The hash is seeded: a client cannot choose addresses that collide.
 */
#include "http/server/clients.h"

#include <assert.h>

#include "base/id.h"
#include "base/mem.h"
#include "base/str.h"

struct entry {
	struct client_key key;
	unsigned          count; /* 0: free */
};

struct clients {
	struct entry *entries;
	size_t        mask; /* entries - 1, a power of two less one */
	uint64_t      seed;
};

struct clients *clients_new(unsigned connections_max)
{
	struct clients *p = mem_new(struct clients);
	size_t          size = 16;

	while (size < (size_t)connections_max * 2)
		size *= 2;
	p->entries = mem_new_array(struct entry, size);
	p->mask = size - 1;
	id_random(&p->seed, sizeof(p->seed));
	return p;
}

void clients_free(struct clients *p)
{
	if (!p)
		return;
	free(p->entries);
	free(p);
}

struct client_key client_key(const struct ip *address)
{
	struct client_key key = { { 0 } };

	memcpy(key.bytes, address->bytes, ip_is_v4(address) ? 16 : 8);
	return key;
}

static size_t home_of(const struct clients *p, const struct client_key *key)
{
	return str_hash(str_of((const char *)key->bytes, sizeof(key->bytes)), p->seed) & p->mask;
}

/* Where the key is, or the free place where it belongs. */
static size_t find(const struct clients *p, const struct client_key *key)
{
	size_t at = home_of(p, key);

	while (p->entries[at].count && memcmp(&p->entries[at].key, key, sizeof(*key)) != 0)
		at = (at + 1) & p->mask;
	return at;
}

bool clients_join(struct clients *p, const struct client_key *key, unsigned max)
{
	struct entry *entry = &p->entries[find(p, key)];

	if (entry->count >= max)
		return false;
	entry->key = *key;
	entry->count++;
	return true;
}

/* Fill the hole with the next entry that may live there, and so on with the hole that leaves. */
static void close_hole(struct clients *p, size_t hole)
{
	for (size_t at = (hole + 1) & p->mask; p->entries[at].count; at = (at + 1) & p->mask) {
		size_t from_home = (at - home_of(p, &p->entries[at].key)) & p->mask;
		size_t from_hole = (at - hole) & p->mask;

		if (from_home < from_hole)
			continue;
		p->entries[hole] = p->entries[at];
		p->entries[at].count = 0;
		hole = at;
	}
}

void clients_leave(struct clients *p, const struct client_key *key)
{
	size_t at = find(p, key);

	assert(p->entries[at].count > 0);
	if (--p->entries[at].count == 0)
		close_hole(p, at);
}
