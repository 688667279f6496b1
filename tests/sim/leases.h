/* leases.h - the real leases and accounts in the simulation: people, managers, operators and outsiders, on a cloud of
 * their own.
 *
 * Only some seeds have them: in all others sim->leases is NULL, and none of these may be called but those that say
 * so. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "chance.h"
#include "domain/account.h"
#include "domain/ports/cloud.h"
#include "domain/lease.h"
#include "domain/policy.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "names.h"
#include "sagas.h"
#include "service/pool/account_clean.h"
#include "service/pass/pass.h"

struct event;
struct kernel_options;
struct session;
struct sim;
struct sim_cloud;
struct sim_node;

enum {
	LENT_ACCOUNTS = 5, /* of the cloud; */
	LENT_FREE = 3,     /* so many are in the pool from the start */
	PEOPLE = 4,
	LEASES_EACH = 2,    /* at most */
	LEASE_QUEUES = 5,   /* cleanup, drift, holds, leases, line */
	LEASE_ROUTES = 24,  /* room */
	SEEDS_PER_LEASE = 5 /* one seed in so many has leases */
};

/* --- what is known --- */

struct known_person {
	struct str email, key;
	int64_t    live;    /* leases that are pending or in use */
	int64_t    counted; /* what the counter says */
};

struct known_lease {
	struct str           uuid;
	struct known_person *owner;
	bool                 is_there;
	enum lease_status    status;
	struct lent_account *account; /* while it is in use */
	int64_t              place;   /* in line: the number of its commit; 0: not in line */
	int64_t              joined_ms;
	int64_t              expires_ms;
	bool                 has_warning; /* it has a duration threshold, and nobody has changed it */
	int                  told_budget, told_duration, told_freeze;
	struct known_lease  *next;
};

/* An account, as the records have it and as the world was seen to be. */
struct lent_account {
	struct str          id;
	bool                is_there; /* in the pool */
	enum account_status status;
	int                 live; /* leases in use on it */
	struct str          lease_uuid, holder;
	bool                is_following;
	bool                is_placed_free; /* the record says that it is in the OU of free accounts */
	int64_t             era;            /* counts the leases that have left it */
	int64_t             good_runs;      /* cleanups that have succeeded since then */
	bool                is_moved;       /* by an outsider, since it was lent or last cleaned */
	int                 open_holds;
	int                 hold_records; /* made since it was last to be cleaned */
};

struct known_hold {
	struct str           id;
	struct lent_account *account;
	bool                 is_new, is_open;
	int64_t              due_ms;
	struct known_hold   *next;
};

/* A run of the cleaner. */
struct known_run {
	struct lent_account *account;
	int64_t              era; /* in which it was asked for */
	bool                 is_counted;
};

struct leases {
	struct organisation organisation; /* the cloud's ports, with calls that take time */
	struct access       access;
	struct cleaner      cleaner;
	struct sim         *sim;
	struct store       *store; /* the cloud's */
	struct sim_cloud   *cloud;
	struct cloud        real;
	struct chance       chance;
	struct policy       policy;
	struct hold_rules   rules;
	struct lease_world  world;
	bool                is_seeding, lies;

	struct known_person people[PEOPLE];
	struct lent_account accounts[LENT_ACCOUNTS];
	struct names        leases, runs, holds;
	struct known_lease *first;
	struct known_hold  *first_hold;
	int64_t             commits; /* places in line are numbers of commits */
	int                 rounds;  /* of putting right what was left at the end */
};

/* What a node has of it. */
struct leases_node {
	struct account_world        *world;
	struct saga_kind             follow;
	struct account_clean_options clean;
	const struct saga_kind      *kinds[SAGA_KINDS + 2];
	struct route                 routes[LEASE_ROUTES];
};

/* --- leases.c --- */

/* Any seed: those that have no leases are left without. */
void leases_open(struct sim *sim);
void leases_close(struct sim *sim);

/* The store is open: the first accounts and templates. */
void leases_seed(struct sim *sim);

/* The queues, routes and sagas of a node that starts, beside those that are there. Any seed. */
void leases_start(struct sim_node *n, struct kernel_options *o);
void leases_end(struct sim_node *n);

/* Somebody does something, by this node. */
void leases_operate(struct sim_node *n);

/* Nothing goes wrong any more. Any seed. */
void leases_calm(struct sim *sim);

/* The passes that put right what was left. False when there was nothing. Any seed. */
bool leases_settle(struct sim_node *n);

/* --- leases_model.c --- */

struct lent_account *lent_account(struct leases *l, struct str id);

/* A commit has happened. */
void leases_observe(struct sim *sim, struct session *s);

/* Any seed. */
void leases_check_counts(struct sim_node *n);
void leases_check_quiet(struct sim_node *n);

/* --- holds_model.c --- */

struct session_entry;
void holds_observe(struct sim *sim, const struct session *s, const struct session_entry *entry);
void holds_check_freed(struct sim *sim, const struct lent_account *k);
void holds_check_rest(struct sim *sim, const struct lent_account *k);
void holds_check_quiet(struct sim *sim);
