/* lease_fill.h - a data folder of the server, filled with accounts and leases as if they had been lent for weeks. */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "store/store.h"

struct arena;
struct sim_cloud;

/* A part of every so many ended leases is of one person: whose list is long. */
#define FILL_CLASS "class@example.com"

enum {
	FILL_FROZEN_EVERY = 20,    /* of the leases in use */
	FILL_CROSSING_EVERY = 100, /* of them: the next pass of the monitor has an alert for it */
	FILL_EVENT_DAYS = 80,      /* as old is the oldest event; they are spread evenly up to now */
};

struct fill {
	struct store     *store;     /* its context is a kernel */
	struct store     *sim_store; /* of the cloud; it must have in_use + spare accounts, all in Available */
	struct sim_cloud *cloud;
	int64_t           in_use, spare; /* accounts: lent (Active and Frozen), and free */
	int64_t           pending; /* leases that wait for an approval, of the owners of the first leases in use */
	int64_t           ended;
	int64_t           instances; /* those and their parts in the cloud */
	int64_t           events;    /* in the log, see growth_fill.c */
};

/* All of it. Ended leases are the oldest, the pending ones the newest. Blocks. */
MUST_CHECK enum rc fill_all(const struct fill *f, struct err *e);

/* The instances, then the events; each lease and each instance has some. Blocks. */
MUST_CHECK enum rc fill_growth(const struct fill *f, struct err *e);

/* So many more events, all of the last hours. Blocks. */
MUST_CHECK enum rc fill_new_events(const struct fill *f, int64_t count, struct err *e);

/* "person-00042@example.com". */
struct str fill_person(struct arena *a, int64_t number);

/* The uuid of a lease, by its number: the ended ones first, then those in use, then the pending ones. */
struct str fill_uuid(struct arena *a, int64_t number);

/* What a transaction of fill_many() adds: these of all, by their numbers from 0 on. */
struct fill_some {
	int64_t     first, count, all;
	const void *arg;
};

/* So many by transactions of per_txn each, several under way at once. What add is given is a struct fill_some.
 * Blocks. */
MUST_CHECK enum rc fill_many(struct store *store, txn_fn *add, const void *arg, int64_t count, int64_t per_txn,
                             struct err *e);
