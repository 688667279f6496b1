/* lease_fill.h - a data folder of the server, filled with accounts and leases as if they had been lent for weeks. */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

struct arena;
struct sim_cloud;
struct store;

/* A part of every so many ended leases is of one person: whose list is long. */
#define FILL_CLASS "class@example.com"

enum {
	FILL_FROZEN_EVERY = 20,   /* of the leases in use */
	FILL_CROSSING_EVERY = 100 /* of them: the next pass of the monitor has an alert for it */
};

struct fill {
	struct store     *store;     /* its context is a kernel */
	struct store     *sim_store; /* of the cloud; it must have in_use + spare accounts, all in Available */
	struct sim_cloud *cloud;
	int64_t           in_use, spare; /* accounts: lent (Active and Frozen), and free */
	int64_t           pending; /* leases that wait for an approval, of the owners of the first leases in use */
	int64_t           ended;
};

/* All of it. Ended leases are the oldest, the pending ones the newest. Blocks. */
MUST_CHECK enum rc fill_all(const struct fill *f, struct err *e);

/* "person-00042@example.com". */
struct str fill_person(struct arena *a, int64_t number);

/* The uuid of a lease, by its number: the ended ones first, then those in use, then the pending ones. */
struct str fill_uuid(struct arena *a, int64_t number);
